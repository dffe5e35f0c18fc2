//! What a [`super::Node`]'s host runs: an application and its bytes, both over one state that only
//! the host's thread touches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use endpoint::{AppCx, AppEffect, AppEvent, FailReason, Msg};
use flume::{Receiver, Sender};
use units::{HostId, MsgId, MsgKey};

use super::{Kind, Limits, Message, NodeError, Order, Parcel};

/// Tags of the node's messages: what each is to the one who gets it.
const PLAIN: u16 = 0;
const REQUEST: u16 = 1;
const RESPONSE: u16 = 2;

/// Who has sent all waits so long for the last repeats of its peers before it stops.
const QUIET: Duration = Duration::from_millis(50);

type Outcome = Sender<Result<Option<Message>, NodeError>>;

/// A message that is not known to be delivered.
struct Sending {
    ticket: u64,
    bytes: Bytes,
    /// Requests are told of later, with their answer.
    outcome: Outcome,
    is_request: bool,
}

/// A request without an answer so far.
struct Asked {
    id: MsgId,
    of: HostId,
    outcome: Outcome,
}

/// All that the host's thread knows of a node's messages.
pub(super) struct State {
    parcels: Receiver<Parcel>,
    orders: Receiver<Order>,
    arrived: Sender<Message>,
    limits: Limits,
    unread: Arc<AtomicU64>,
    sending: BTreeMap<MsgId, Sending>,
    /// Requests without an answer so far, by ticket.
    asked: BTreeMap<u64, Asked>,
    /// Bytes of all that is in `sending`.
    unsent: u64,
    /// The message that was received last: the application hears of it next.
    last: Option<(MsgKey, Vec<u8>)>,
    /// When to stop at the latest.
    close: Option<Instant>,
    /// When something was heard last.
    heard: Instant,
}

/// The state, which only one thread locks.
pub(super) fn lock<'a>(state: &'a Mutex<State>) -> MutexGuard<'a, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    pub(super) fn new(
        parcels: Receiver<Parcel>,
        orders: Receiver<Order>,
        arrived: Sender<Message>,
        limits: Limits,
        unread: Arc<AtomicU64>,
    ) -> Self {
        Self {
            parcels,
            orders,
            arrived,
            limits,
            unread,
            sending: BTreeMap::new(),
            asked: BTreeMap::new(),
            unsent: 0,
            last: None,
            close: None,
            heard: Instant::now(),
        }
    }

    /// Whether the host is to stop.
    pub(super) fn is_over(&self) -> bool {
        let Some(close) = self.close else { return false };
        let all_sent = self.sending.is_empty() && self.parcels.is_empty();
        let now = Instant::now();
        now >= close || (all_sent && now >= self.heard + QUIET)
    }

    /// Do what other threads want.
    fn serve(&mut self, cx: &mut AppCx<'_>) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Cancel(ticket) => self.cancel(cx, ticket),
                Order::Close(linger) => {
                    let now = Instant::now();
                    // Beyond what the clock holds there is no limit but a day.
                    let day = Duration::from_secs(86_400);
                    self.close = Some(now + linger.min(day));
                    self.heard = now;
                }
            }
        }
        while self.unsent < self.limits.unsent
            && let Ok(parcel) = self.parcels.try_recv()
        {
            self.submit(cx, parcel);
        }
    }

    fn cancel(&mut self, cx: &mut AppCx<'_>, ticket: u64) {
        // Those that still wait in the queue come out first, so that it is found.
        while let Ok(parcel) = self.parcels.try_recv() {
            self.submit(cx, parcel);
        }
        let sending = self.sending.iter().find(|(_, sending)| sending.ticket == ticket);
        let asked = self.asked.get(&ticket);
        if let Some(id) = sending.map(|(&id, _)| id).or(asked.map(|asked| asked.id)) {
            cx.cancel(id);
        }
        if let Some(asked) = self.asked.remove(&ticket) {
            let _ = asked.outcome.send(Err(NodeError::Failed(FailReason::Cancelled)));
        }
    }

    fn submit(&mut self, cx: &mut AppCx<'_>, parcel: Parcel) {
        let Parcel { ticket, to, bytes, manner, kind, outcome } = parcel;
        let id = *cx.next_id;
        cx.next_id.0 += 1;
        let (tag, token, reply_to) = match kind {
            Kind::Plain => (PLAIN, 0, None),
            Kind::Request => (REQUEST, ticket, None),
            Kind::Response { number, to } => (RESPONSE, number, Some(to)),
        };
        let len = bytes.len() as u64;
        let msg = Msg {
            id,
            channel: manner.channel,
            prio: manner.priority,
            reply_to,
            ..Msg::new(to, len)
        };
        let is_request = matches!(kind, Kind::Request);
        if is_request {
            self.asked.insert(ticket, Asked { id, of: to, outcome: outcome.clone() });
        }
        self.unsent += len;
        self.sending.insert(id, Sending { ticket, bytes, outcome, is_request });
        cx.fx.push(AppEffect::Submit { msg, tag, token });
    }

    /// A message of this host has come to its end.
    fn end(&mut self, cx: &mut AppCx<'_>, id: MsgId, result: Result<(), NodeError>) {
        let Some(sending) = self.sending.remove(&id) else { return };
        self.unsent -= sending.bytes.len() as u64;
        match (sending.is_request, result) {
            (true, Ok(())) => {}
            (true, Err(e)) => {
                if let Some(asked) = self.asked.remove(&sending.ticket) {
                    let _ = asked.outcome.send(Err(e));
                }
            }
            (false, result) => {
                // Nobody need be waiting.
                let _ = sending.outcome.send(result.map(|()| None));
            }
        }
        self.serve(cx);
    }

    /// A message has come.
    fn take(&mut self, key: MsgKey, tag: u16, token: u64) {
        let Some((_, bytes)) = self.last.take().filter(|(last, _)| *last == key) else { return };
        let request = (tag == REQUEST).then_some(token);
        let message = Message { from: key.src, bytes, key, request };
        if tag == RESPONSE {
            self.unread.fetch_sub(message.bytes.len() as u64, Ordering::SeqCst);
            // Only who was asked may answer.
            if self.asked.get(&token).is_some_and(|asked| asked.of == key.src)
                && let Some(asked) = self.asked.remove(&token)
            {
                let _ = asked.outcome.send(Ok(Some(message)));
            }
        } else {
            // Nobody takes messages of a node that is being shut down.
            let _ = self.arrived.send(message);
        }
    }
}

/// The application's side of the state.
pub(super) struct App<'a>(pub(super) &'a Mutex<State>);

impl endpoint::App for App<'_> {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        lock(self.0).serve(cx);
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        let mut state = lock(self.0);
        match event {
            AppEvent::Delivered { key, tag, token, .. } => state.take(key, tag, token),
            AppEvent::Acked(id) => state.end(cx, id, Ok(())),
            AppEvent::Failed(key, why) if key.src == cx.me => {
                state.end(cx, key.id, Err(NodeError::Failed(why)));
            }
            // Of another host's message nobody here waits for. A signal is the bell.
            AppEvent::Failed(..) => {}
            AppEvent::Signal { .. } => state.serve(cx),
        }
        state.heard = Instant::now();
    }
}

/// The bytes' side of the state.
pub(super) struct Content<'a>(pub(super) &'a Mutex<State>);

impl crate::Content for Content<'_> {
    fn read(&mut self, key: MsgKey, offset: u64, buf: &mut [u8]) {
        let state = lock(self.0);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = state
            .sending
            .get(&key.id)
            .and_then(|sending| sending.bytes.get(start..start.checked_add(buf.len())?));
        // A message that is over is not sent again, whatever its bytes: peers ignore them.
        match bytes {
            Some(bytes) => buf.copy_from_slice(bytes),
            None => buf.fill(0),
        }
    }

    fn received(&mut self, key: MsgKey, bytes: Vec<u8>) {
        let mut state = lock(self.0);
        state.unread.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        state.last = Some((key, bytes));
    }

    fn room(&self) -> u64 {
        let state = lock(self.0);
        state.limits.unread.saturating_sub(state.unread.load(Ordering::SeqCst))
    }
}
