//! The messages that a host receives under a transport that opens their state with any packet
//! (pFabric, pHost, Ultra Ethernet): those that are open, a bounded number from each peer, and what
//! became of the others, for as long as their packets may still come.

use endpoint::{Cx, FailReason, Flags, Framing, MsgKey, Packet, Stat, TimerId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, MsgId, Time};

use crate::connections::{BARE_MAX, OPEN_MAX, OpenCounts};
use crate::over::{Over, OverMessages};
use crate::slab::{Slab, SlotRef};

/// What a transport keeps of a message that is open.
pub(crate) trait Message {
    /// Which message it is.
    fn key(&self) -> MsgKey;
    /// When something of it last arrived.
    fn heard(&self) -> Time;
    /// Whether none of its payload has come.
    fn is_bare(&self) -> bool;
    /// The messages that fail if no more comes: this, unless a transport keeps several together.
    fn unfinished(&self) -> Vec<MsgKey> {
        vec![self.key()]
    }
}

/// Messages of one receiving host.
#[derive(Debug)]
pub(crate) struct Incoming<M> {
    /// Armed while a message is open.
    linger_timer: TimerId,
    /// A message that has been silent for so long is given up.
    idle: Dur,
    /// One that is over is remembered for so long after it was last asked about.
    time_wait: Dur,
    messages: Slab<M>,
    by_key: HashMap<MsgKey, SlotRef, FxBuildHasher>,
    open: OpenCounts,
    /// Those of which no payload has come.
    bare: OpenCounts,
    finished: OverMessages,
}

impl<M: Message> Incoming<M> {
    pub(crate) fn new(linger_timer: TimerId, idle: Dur, time_wait: Dur) -> Self {
        Self {
            linger_timer,
            idle,
            time_wait,
            messages: Slab::new(),
            by_key: HashMap::default(),
            open: OpenCounts::up_to(OPEN_MAX),
            bare: OpenCounts::up_to(BARE_MAX),
            finished: OverMessages::new(),
        }
    }

    /// The slot of an open message.
    pub(crate) fn find(&self, key: MsgKey) -> Option<SlotRef> {
        self.by_key.get(&key).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether what was in a slot is still open.
    pub(crate) fn is_open(&self, at: SlotRef) -> bool {
        self.messages.get(at).is_some()
    }

    /// What is in a slot, if it is open.
    pub(crate) fn get_mut(&mut self, at: SlotRef) -> Option<&mut M> {
        self.messages.get_mut(at)
    }

    /// All that are open.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.messages.iter_mut().map(|(_, message)| message)
    }

    /// What became of a message that is over, if that is remembered.
    pub(crate) fn over(&mut self, now: Time, key: MsgKey) -> Option<Over> {
        self.finished.get(now, key)
    }

    /// Whether message `key`, of which a packet has come, is over. If all of it came, its sender
    /// has not heard so: `again` says it once more, and has the number of its packets.
    pub(crate) fn answer_if_over(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        again: impl FnOnce(&mut Cx<'_>, u64),
    ) -> bool {
        match self.over(cx.now, key) {
            Some(Over::Complete(packets)) => {
                self.finished.refresh(cx.now, self.time_wait, key);
                again(cx, packets);
            }
            Some(Over::Abandoned) => cx.fx.count(Stat::Rejected),
            None => return false,
        }
        true
    }

    /// Open a message that is not open, and of which no payload has come; `None` if its sender has
    /// too many.
    pub(crate) fn open(&mut self, cx: &mut Cx<'_>, message: M) -> Option<SlotRef> {
        let key = message.key();
        let bare = self.bare.enter(key.src);
        if !bare || !self.open.enter(key.src) {
            if bare {
                self.bare.leave(key.src);
            }
            cx.fx.count(Stat::Rejected);
            return None;
        }
        if self.messages.is_empty() {
            cx.fx.arm(self.linger_timer, cx.now.saturating_add(self.idle));
        }
        let at = self.messages.insert(message);
        self.by_key.insert(key, at);
        Some(at)
    }

    /// The first payload of a message has come.
    pub(crate) fn begins(&mut self, key: MsgKey) {
        self.bare.leave(key.src);
    }

    /// All of a message has come, in so many packets.
    pub(crate) fn complete(&mut self, cx: &mut Cx<'_>, at: SlotRef, packets: u64) -> Option<M> {
        let message = self.close(cx, at)?;
        self.remember(cx.now, message.key(), Over::Complete(packets));
        cx.fx.delivered(message.key());
        Some(message)
    }

    /// Its sender has given message `key` up.
    pub(crate) fn on_end(&mut self, cx: &mut Cx<'_>, key: MsgKey) -> Option<(SlotRef, M)> {
        let Some(at) = self.find(key) else {
            // What never began need not be remembered by all means.
            if self.finished.len() < OPEN_MAX as usize && self.over(cx.now, key).is_none() {
                self.remember(cx.now, key, Over::Abandoned);
            }
            return None;
        };
        self.fail(cx, &[at], FailReason::Cancelled, Some(Over::Abandoned)).pop()
    }

    /// See [`endpoint::Endpoint::on_over_below`].
    pub(crate) fn over_below(&mut self, host: HostId, oldest: MsgId) {
        self.finished.below(host, oldest);
    }

    /// See [`endpoint::Endpoint::on_restart`].
    pub(crate) fn restart(&mut self, cx: &mut Cx<'_>, host: HostId) -> Vec<(SlotRef, M)> {
        self.finished.restart(host);
        let of_it = self.messages.iter_mut().filter(|(_, message)| message.key().src == host);
        let of_it: Vec<SlotRef> = of_it.map(|(at, _)| at).collect();
        self.fail(cx, &of_it, FailReason::Cancelled, None)
    }

    /// Give up the messages that have been silent for too long.
    pub(crate) fn on_linger_timer(&mut self, cx: &mut Cx<'_>) -> Vec<(SlotRef, M)> {
        let (now, idle) = (cx.now, self.idle);
        let open = self.messages.iter_mut();
        let silent = open.filter(|(_, message)| message.heard().saturating_add(idle) <= now);
        let silent: Vec<SlotRef> = silent.map(|(at, _)| at).collect();
        let failed = self.fail(cx, &silent, FailReason::TimedOut, Some(Over::Abandoned));
        if !self.messages.is_empty() {
            cx.fx.arm(self.linger_timer, now.saturating_add(idle));
        }
        failed
    }

    /// The messages in these slots fail; they are remembered as `over`, if at all.
    fn fail(
        &mut self,
        cx: &mut Cx<'_>,
        slots: &[SlotRef],
        why: FailReason,
        over: Option<Over>,
    ) -> Vec<(SlotRef, M)> {
        let mut failed = Vec::new();
        for &at in slots {
            let Some(message) = self.close(cx, at) else { continue };
            if let Some(over) = over {
                self.remember(cx.now, message.key(), over);
            }
            for key in message.unfinished() {
                cx.fx.failed(key, why);
            }
            failed.push((at, message));
        }
        failed
    }

    fn close(&mut self, cx: &mut Cx<'_>, at: SlotRef) -> Option<M> {
        let message = self.messages.remove(at)?;
        let key = message.key();
        self.by_key.remove(&key);
        self.open.leave(key.src);
        if message.is_bare() {
            self.bare.leave(key.src);
        }
        if self.messages.is_empty() {
            cx.fx.disarm(self.linger_timer);
        }
        Some(message)
    }

    fn remember(&mut self, now: Time, key: MsgKey, over: Over) {
        self.finished.insert(now, self.time_wait, u32::MAX, key, over);
    }
}

/// Whether the header of a data packet, of `len` bytes at packet `seq` of `message`, and the
/// environment's span speak of the same bytes. On a real network a peer may say anything.
pub(crate) fn describes(framing: Framing, pkt: &Packet, message: u64, seq: u64, len: u16) -> bool {
    let offset = seq.checked_mul(u64::from(framing.payload));
    let control = pkt.flags.has(Flags::CONTROL);
    !control
        && offset == Some(pkt.span.offset)
        && pkt.span.msg.0 == message
        && pkt.span.len == u32::from(len)
}
