//! All messages that a host receives: one answer and one pull per packet (specs/ndp.md#7,8).

use endpoint::{Cx, FailReason, MsgId, MsgKey, Span, Stat, TimerId};
use units::{Dur, HostId, Time};
use wire::ndp::{Data, Feedback, Header, Kind, Repr};

use super::config::{Config, Discipline};
use super::index::Index;
use super::paths::ControlPaths;
use super::pull::{PullQueue, PullState, Requested};
use super::{Control, Outbox, reject};
use crate::connections::{BARE_MAX, OpenCounts};
use crate::over::{Over, OverMessages};
use crate::received::{Received, unwrap_index};
use crate::slab::{Slab, SlotRef};

/// One message at its receiver.
#[derive(Debug)]
pub(crate) struct Conn {
    key: MsgKey,
    received: Received,
    /// The index of the packet that ends the message, once known.
    last: Option<u64>,
    /// In the pull queue.
    level: u16,
    pulls: PullState,
    /// When a packet of it last arrived, but for headers in answer to pulls.
    heard: Time,
    /// Whether a pull has been sent since a payload last came.
    pulled: bool,
    /// No byte of it has come.
    bare: bool,
    /// Back to the sender.
    paths: ControlPaths,
}

impl AsMut<PullState> for Conn {
    fn as_mut(&mut self) -> &mut PullState {
        &mut self.pulls
    }
}

impl Conn {
    fn new(cx: &Cx<'_>, config: &Config, key: MsgKey, prio: u8) -> Self {
        let draw = cx.draw.part(u64::from(key.src.0)).part(key.id.0);
        Self {
            key,
            received: Received::default(),
            last: None,
            level: level(config, key, prio),
            pulls: PullState::default(),
            heard: cx.now,
            pulled: false,
            bare: true,
            paths: ControlPaths::new(config.paths, cx.net, key.src, draw),
        }
    }

    fn cumulative(&self) -> u32 {
        self.received.prefix() as u32
    }

    fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.received.prefix() > last)
    }

    /// The packet index of `data`; `None` if the packet cannot belong to this message.
    fn index(&self, config: &Config, data: Data) -> Option<u64> {
        let seq = unwrap_index(self.received.prefix(), data.seq);
        let whole = data.len == config.payload;
        let fits = if data.last { data.len <= config.payload } else { whole };
        let agrees = match self.last {
            Some(last) => seq < last && !data.last || seq == last && data.last,
            None => true,
        };
        (fits && agrees && self.received.admits(seq)).then_some(seq)
    }

    /// The `n`-th control packet to the sender. `span` is the payload that it answers.
    #[inline]
    fn control(&self, cx: &Cx<'_>, n: u64, span: Span, kind: Kind) -> Control {
        let path = self.paths.path(cx.net, n);
        let header = Repr { connection: self.key.id.0, kind }.to_bytes();
        Control { to: self.key.src, path, span, header, pull_of: None }
    }
}

/// The receiving half of a host.
#[derive(Debug)]
pub(crate) struct Receiver {
    pull_timer: TimerId,
    linger_timer: TimerId,
    conns: Slab<Conn>,
    by_key: Index<MsgKey, SlotRef>,
    pulls: PullQueue,
    finished: OverMessages,
    /// How many are bare.
    bare: OpenCounts,
    /// PULL packets sent so far, modulo 2^32.
    pacer: u32,
    /// [`Config::interval`], once needed: it takes a wide division.
    interval: Option<Dur>,
}

impl Receiver {
    pub(crate) fn new(pull_timer: TimerId, linger_timer: TimerId) -> Self {
        Self {
            pull_timer,
            linger_timer,
            conns: Slab::new(),
            by_key: Index::new(),
            pulls: PullQueue::new(),
            finished: OverMessages::new(),
            bare: OpenCounts::up_to(BARE_MAX),
            pacer: 0,
            interval: None,
        }
    }

    /// See [`endpoint::Endpoint::prefetch`]: the message of the last packet that came, and the next
    /// to be pulled.
    pub(crate) fn prefetch(&self, step: u8) {
        if step > 0 {
            self.pulls.prefetch();
        } else if let Some(at) = self.by_key.latest() {
            self.conns.prefetch(at);
        }
    }

    /// T.
    fn interval(&mut self, cx: &Cx<'_>, config: &Config) -> Dur {
        *self.interval.get_or_insert_with(|| config.interval(cx.net))
    }

    /// A DATA packet, or its header, has arrived.
    #[inline]
    pub(crate) fn on_data(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        key: MsgKey,
        header: Header<&[u8]>,
        trimmed: bool,
        out: &mut Outbox,
    ) {
        let at = match self.by_key.get(key) {
            Some(at) => at,
            None => match self.open(cx, config, key, header, out) {
                Some(at) => at,
                None => return,
            },
        };
        let data = Data::parse(&header);
        let interval = self.interval(cx, config);
        let Some(conn) = self.conns.get_mut(at) else { return };
        let Some(seq) = conn.index(config, data) else {
            reject(cx);
            return;
        };
        // A header shows that the sender is there, but not that its payloads can ever come.
        conn.pulled &= trimmed;
        if !conn.pulled {
            conn.heard = cx.now;
        }
        if data.last {
            conn.last = Some(seq);
        }
        // Without room for it, a payload counts as trimmed: the sender will offer it again.
        let taken = !trimmed && u64::from(data.len) <= cx.room;
        let new = if taken { conn.received.insert(seq) } else { !conn.received.contains(seq) };
        let lost = trimmed || (new && !taken);
        let offset = seq * u64::from(config.payload);
        if !lost && !new {
            cx.fx.count(Stat::Duplicate);
        } else if !lost && data.len > 0 {
            cx.fx.place(key, offset, u32::from(data.len));
            if std::mem::take(&mut conn.bare) {
                self.bare.leave(key.src);
            }
        }

        // ACK or NACK at once, and ask for one pull; or deliver the message.
        let complete = conn.is_complete();
        let mut pull = None;
        if !complete && (lost || new || config.pull_on_duplicate) {
            conn.pulls.newest = conn.pulls.newest.wrapping_add(1);
            match self.pulls.request(cx.now, interval, at, conn.level, &mut conn.pulls) {
                Requested::Combine => {
                    pull = Some(conn.pulls.newest);
                    conn.pulled = true;
                }
                Requested::Arm(due) => cx.fx.arm(self.pull_timer, due),
                Requested::Queued => {}
            }
        }
        let feedback = Feedback { seq: data.seq, cumulative: conn.cumulative(), pull };
        let kind = if lost { Kind::Nack(feedback) } else { Kind::Ack(feedback) };
        let span = Span { msg: key.id, offset, len: u32::from(data.len) };
        let n = 2 * u64::from(conn.pulls.newest);
        out.push(conn.control(cx, n, span, kind));
        if complete {
            self.deliver(cx, config, at, out);
        }
    }

    /// State for a message of which this is the first packet to come (specs/ndp.md#8).
    #[cold]
    fn open(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        key: MsgKey,
        header: Header<&[u8]>,
        out: &mut Outbox,
    ) -> Option<SlotRef> {
        let data = Data::parse(&header);
        match self.finished.get(cx.now, key) {
            // The sender has not seen that all arrived: tell it again. A first copy needs no
            // answer: it was sent before a copy that has one, or it belongs to a message that
            // must not reuse this id yet.
            Some(Over::Complete(packets)) if data.retransmission => {
                cx.fx.count(Stat::Duplicate);
                self.finished.refresh(cx.now, config.time_wait, key);
                let conn = Conn::new(cx, config, key, data.prio);
                let feedback = Feedback { seq: data.seq, cumulative: packets as u32, pull: None };
                let offset = u64::from(data.seq) * u64::from(config.payload);
                let span = Span { msg: key.id, offset, len: u32::from(data.len) };
                // Time makes the draw differ between repeated answers.
                out.push(conn.control(cx, cx.now.0, span, Kind::Ack(feedback)));
                return None;
            }
            Some(_) => {
                cx.fx.count(Stat::Rejected);
                return None;
            }
            None => {}
        }
        // What is taken on now will have to be remembered: nothing is forgotten early.
        let known = self.conns.len() + self.finished.len();
        let full = known >= config.time_wait_entries as usize;
        let full = full || self.conns.len() >= config.max_rx_messages as usize;
        if !data.syn || full || !self.bare.enter(key.src) {
            cx.fx.count(Stat::Rejected);
            return None;
        }
        if self.conns.is_empty() {
            cx.fx.arm(self.linger_timer, cx.now.saturating_add(config.rx_idle_timeout));
        }
        let at = self.conns.insert(Conn::new(cx, config, key, data.prio));
        self.by_key.insert(key, at);
        Some(at)
    }

    #[cold]
    fn deliver(&mut self, cx: &mut Cx<'_>, config: &Config, at: SlotRef, out: &mut Outbox) {
        let Some(conn) = self.close(cx, at, out) else { return };
        let over = Over::Complete(conn.received.prefix());
        self.remember(cx.now, config, conn.key, over);
        cx.fx.delivered(conn.key);
    }

    /// See [`endpoint::Endpoint::on_over`].
    pub(super) fn forget(&mut self, key: MsgKey) {
        self.finished.forget(key);
    }

    /// See [`endpoint::Endpoint::on_over_below`].
    pub(super) fn over_below(&mut self, host: HostId, oldest: MsgId) {
        self.finished.below(host, oldest);
    }

    /// See [`endpoint::Endpoint::on_restart`].
    pub(super) fn restart(&mut self, cx: &mut Cx<'_>, host: HostId, out: &mut Outbox) {
        self.finished.restart(host);
        let of_it = self.conns.iter_mut().filter(|(_, conn)| conn.key.src == host);
        for at in of_it.map(|(at, _)| at).collect::<Vec<_>>() {
            if let Some(conn) = self.close(cx, at, out) {
                cx.fx.failed(conn.key, FailReason::Cancelled);
            }
        }
    }

    fn remember(&mut self, now: Time, config: &Config, key: MsgKey, over: Over) {
        self.finished.insert(now, config.time_wait, config.time_wait_entries, key, over);
    }

    /// Forget a message and its pulls.
    fn close(&mut self, cx: &mut Cx<'_>, at: SlotRef, out: &mut Outbox) -> Option<Conn> {
        let mut conn = self.conns.remove(at)?;
        // Its PULLs are worth nothing any more (specs/ndp.md#I9). Most messages are of one packet,
        // and have none.
        if conn.pulls.newest != 0 {
            out.retain(|control| control.pull_of != Some(at));
        }
        self.pulls.purge(&mut conn.pulls);
        self.by_key.remove(conn.key);
        if conn.bare {
            self.bare.leave(conn.key.src);
        }
        if self.conns.is_empty() {
            cx.fx.disarm(self.linger_timer);
        }
        Some(conn)
    }

    /// The pacer lets one pull go.
    pub(crate) fn on_pull_timer(&mut self, cx: &mut Cx<'_>, config: &Config, out: &mut Outbox) {
        let interval = self.interval(cx, config);
        let from = cx.paced_from(self.pulls.due());
        let Some((at, pull)) = self.pulls.fire(from, interval, &mut self.conns) else { return };
        if let Some(due) = self.pulls.next() {
            cx.fx.arm(self.pull_timer, due);
        }
        let Some(conn) = self.conns.get_mut(at) else { return };
        conn.pulled = true;
        self.pacer = self.pacer.wrapping_add(1);
        let kind = Kind::Pull { pull, pacer: self.pacer, cumulative: conn.cumulative() };
        let n = 2 * u64::from(pull) + 1;
        let span = Span { msg: conn.key.id, offset: 0, len: 0 };
        let control = conn.control(cx, n, span, kind);
        out.push(Control { pull_of: Some(at), ..control });
    }

    /// Forget messages silent, or pulled for in vain, for too long.
    #[cold]
    pub(crate) fn on_linger_timer(&mut self, cx: &mut Cx<'_>, config: &Config, out: &mut Outbox) {
        let silent: Vec<SlotRef> = self
            .conns
            .iter_mut()
            .filter(|(_, conn)| conn.heard.saturating_add(config.rx_idle_timeout) <= cx.now)
            .map(|(at, _)| at)
            .collect();
        for at in silent {
            if let Some(conn) = self.close(cx, at, out) {
                self.remember(cx.now, config, conn.key, Over::Abandoned);
                cx.fx.failed(conn.key, FailReason::TimedOut);
            }
        }
        if !self.conns.is_empty() {
            cx.fx.arm(self.linger_timer, cx.now.saturating_add(config.rx_idle_timeout));
        }
    }
}

/// The level of a message in the pull queue, lower first (specs/ndp.md#7.4). `prio` is the sender's
/// choice.
fn level(config: &Config, key: MsgKey, prio: u8) -> u16 {
    match config.discipline {
        _ if config.priority_message == Some(key) => 0,
        Discipline::Fair => 1,
        Discipline::Prio => 1 + u16::from(prio),
    }
}
