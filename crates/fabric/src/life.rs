//! Where the time of messages goes, on request. A message is followed forwards: with each of its
//! packets, and each that answers one, goes the message's path from its submission up to then
//! (`path`). A packet adds what it meets on its way (`travel`). A packet that leaves a host takes
//! over the path of what let it leave (`message`). The path of the packet that makes the message
//! whole is where its time went. By construction it has no gaps, and it ends at the submission.
//!
//! Memory grows with packets in flight and messages that are open. Everything is in one place, so
//! the fabric is not cut.

mod message;
mod path;
mod travel;

use endpoint::{Cause, Flags, Packet, Segment, Tx, UNBOUNDED};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, MsgKey, Time};

use crate::config::LifeDetail;
use message::{Activity, Departure, Message};
use path::Path;
use travel::Travel;

pub(crate) use travel::Crossed;

/// A host's port and endpoint, as far as they let packets leave.
#[derive(Clone, Copy, Default)]
struct HostState {
    /// Since when its port is, or was, busy without a break.
    busy_since: Time,
    /// When its last packet began to leave, and when that will have, or has, left.
    started: Time,
    free_at: Time,
    /// The message that sends that packet.
    serving: Option<MsgKey>,
    /// Before this, its endpoint wanted not to be asked.
    due: Option<Time>,
    /// When its last timer fired.
    timer_at: Time,
    /// Its endpoint is called because a time has come.
    timed: bool,
}

impl HostState {
    /// A packet leaves from `now` until `end`. How long it has waited for the port, if it could
    /// have left before: data behind other data, control behind the packet that was in service.
    fn send(&mut self, (now, end): (Time, Time), control: bool) -> Dur {
        if self.free_at < now {
            self.busy_since = now;
        }
        let since = if control { self.started.max(self.busy_since) } else { self.busy_since };
        (self.started, self.free_at, self.due) = (now, end, None);
        now.since(since)
    }
}

/// The packet that an endpoint has been given.
struct InHand {
    key: MsgKey,
    path: Path,
}

/// Where the time of all messages goes that are on their way.
pub(crate) struct Lives {
    segments: bool,
    hosts: Vec<HostState>,
    messages: HashMap<MsgKey, Message, FxBuildHasher>,
    /// By packet.
    travels: Vec<Option<Travel>>,
    in_hand: Option<InHand>,
}

/// Where the time of a message went that has been delivered.
pub(crate) struct Ended {
    pub(crate) submitted: Time,
    pub(crate) spent: [Dur; Cause::COUNT],
    pub(crate) segments: Vec<Segment>,
}

impl Lives {
    /// Of `hosts` hosts, if they are to be followed.
    pub(crate) fn new(detail: LifeDetail, hosts: usize) -> Option<Box<Self>> {
        let segments = match detail {
            LifeDetail::None => return None,
            LifeDetail::Sums => false,
            LifeDetail::Segments => true,
        };
        Some(Box::new(Self {
            segments,
            hosts: vec![HostState::default(); hosts],
            messages: HashMap::default(),
            travels: Vec::new(),
            in_hand: None,
        }))
    }

    /// Host `h` is called; `timed`: because a time has come that its endpoint has named.
    pub(crate) fn call(&mut self, h: u32, now: Time, timed: bool) {
        let host = &mut self.hosts[h as usize];
        host.timed = timed;
        if timed {
            host.timer_at = now;
        }
        self.in_hand = None;
    }

    /// The port of host `h` has sent a packet; its classes have been `paused` for so long.
    pub(crate) fn depart(&mut self, h: u32, paused: [Dur; 8]) {
        let serving = self.hosts[h as usize].serving.take();
        if let Some(message) = serving.and_then(|key| self.messages.get_mut(&key)) {
            message.depart(paused);
        }
    }

    /// The endpoint of host `h` has been asked what it sends.
    pub(crate) fn answer(&mut self, h: u32, answer: Tx) {
        self.hosts[h as usize].due = match answer {
            Tx::NotBefore(at) => Some(at),
            Tx::Sent | Tx::Idle => None,
        };
    }

    /// A host, whose classes have been `paused` for so long, has been handed message `key` of `len`
    /// bytes for `dst`.
    pub(crate) fn submit(
        &mut self,
        key: MsgKey,
        (dst, len): (HostId, u64),
        now: Time,
        paused: [Dur; 8],
    ) {
        if len == UNBOUNDED {
            return;
        }
        let submission = Activity { at: now, path: Path::new(self.segments), paused };
        self.messages.insert(key, Message::new(dst, submission));
    }

    /// The sender's retransmission timer of message `key` has expired.
    pub(crate) fn time_out(&mut self, key: MsgKey, now: Time) {
        if let Some(message) = self.messages.get_mut(&key) {
            message.time_out(now);
        }
    }

    /// The message that `pkt`, which leaves now, is of or about.
    fn key_of(&self, pkt: &Packet) -> Option<MsgKey> {
        let own = MsgKey { src: pkt.src, id: pkt.span.msg };
        let of_own = self.messages.get(&own).filter(|message| message.dst == pkt.dst);
        if !pkt.flags.has(Flags::CONTROL) {
            return of_own.map(|_| own);
        }
        // Mostly an answer; but the first packet of a sender may be a request.
        let other = MsgKey { src: pkt.dst, id: pkt.span.msg };
        let of_other = self.messages.get(&other).filter(|message| message.dst == pkt.src);
        match (of_own, of_other.filter(|message| message.is_known())) {
            (Some(message), Some(_)) if !message.has_begun() => Some(own),
            (_, Some(_)) => Some(other),
            (Some(_), None) => Some(own),
            (None, None) => None,
        }
    }

    /// `pkt`, packet `handle` of host `h`, begins to leave now, and has left at `end`.
    pub(crate) fn send(
        &mut self,
        (h, handle): (u32, u32),
        pkt: &Packet,
        (now, end): (Time, Time),
        paused: [Dur; 8],
    ) {
        let key = self.key_of(pkt);
        let (host, control) = (&mut self.hosts[h as usize], pkt.flags.has(Flags::CONTROL));
        let departure = Departure {
            host: pkt.src,
            now,
            carried: travel::carried(pkt),
            control,
            timed: host.timed || host.due.is_some_and(|due| due <= now),
            timer_at: host.timer_at,
            busy: host.send((now, end), control),
            paused,
        };
        let travel = key.and_then(|key| {
            let message = self.messages.get_mut(&key)?;
            let path = if pkt.src == key.src {
                let path = message.leave_sender(&departure)?;
                message.sent(&path, &departure, end);
                host.serving = Some(key);
                path
            } else {
                message.leave_receiver(&departure)?
            };
            debug_assert_eq!(path.total(), now.since(message.submitted), "{key:?}: a gap");
            Some(Travel::new(key, path, pkt, now))
        });
        self.set_travel(handle, travel);
    }

    fn set_travel(&mut self, handle: u32, travel: Option<Travel>) {
        let handle = handle as usize;
        if self.travels.len() <= handle {
            self.travels.resize_with(handle + 1, || None);
        }
        self.travels[handle] = travel;
    }

    fn travel(&mut self, handle: u32) -> Option<&mut Travel> {
        self.travels.get_mut(handle as usize)?.as_mut()
    }

    /// Packet `handle` has arrived at the far end of a link.
    pub(crate) fn cross(&mut self, handle: u32, over: &Crossed, now: Time) {
        if let Some(travel) = self.travel(handle) {
            travel.cross(over, now);
        }
    }

    /// It joins a queue of a port where its class has been paused for `so_far`.
    pub(crate) fn join(&mut self, handle: u32, so_far: Dur) {
        if let Some(travel) = self.travel(handle) {
            travel.join(so_far);
        }
    }

    /// It begins to leave that queue.
    pub(crate) fn leave(&mut self, handle: u32, so_far: Dur) {
        if let Some(travel) = self.travel(handle) {
            travel.leave(so_far);
        }
    }

    /// It is trimmed or bounced at the queue of `link`.
    pub(crate) fn cut(&mut self, handle: u32, link: u32) {
        if let Some(travel) = self.travel(handle) {
            travel.cut(link);
        }
    }

    /// It is dropped at an end of `link`.
    pub(crate) fn lose(&mut self, handle: u32, link: u32) {
        let Some(travel) = self.travels.get_mut(handle as usize).and_then(Option::take) else {
            return;
        };
        if travel.is_control() {
            return;
        }
        if let Some(message) = self.messages.get_mut(&travel.key) {
            let (carried, started) = (travel.carried(), travel.started);
            message.lose(carried, started, travel.lose(), link);
        }
    }

    /// Its host, whose classes have been `paused` for so long, is given it now.
    pub(crate) fn receive(&mut self, handle: u32, host: HostId, now: Time, paused: [Dur; 8]) {
        let Some(travel) = self.travels.get_mut(handle as usize).and_then(Option::take) else {
            return;
        };
        let (key, control) = (travel.key, travel.is_control());
        let Some(message) = self.messages.get_mut(&key) else { return };
        let path = travel.end(now);
        message.hear(host == key.src, control, Activity { at: now, path: path.clone(), paused });
        self.in_hand = Some(InHand { key, path });
    }

    /// New bytes of message `key` have come to their places.
    pub(crate) fn place(&mut self, key: MsgKey, now: Time) {
        let Some(in_hand) = self.in_hand.as_ref().filter(|in_hand| in_hand.key == key) else {
            return;
        };
        if let Some(message) = self.messages.get_mut(&key) {
            message.place(now, in_hand.path.clone());
        }
    }

    /// Message `key` is given up by one of its ends.
    pub(crate) fn fail(&mut self, key: MsgKey) {
        self.messages.remove(&key);
    }

    /// Message `key` is delivered now: where its time went, if it has been followed.
    ///
    /// # Errors
    /// If that is not all of its time.
    pub(crate) fn deliver(&mut self, key: MsgKey, now: Time) -> Result<Option<Ended>, String> {
        let Some(mut message) = self.messages.remove(&key) else { return Ok(None) };
        let Some(path) = message.deliver(now) else { return Ok(None) };
        let (submitted, took) = (message.submitted, now.since(message.submitted));
        if path.total() != took {
            return Err(format!("its life sums to {}, and it took {took}", path.total()));
        }
        Ok(Some(Ended { submitted, spent: *path.spent(), segments: path.segments() }))
    }
}
