//! A packet on its way from host to host, and what its time was spent on.

use endpoint::{Carried, Cause, Flags, Packet, Place, Segment};
use units::{Dur, HostId, MsgKey, Time};

use super::path::Path;

/// A packet of a message, or about one, on its way.
pub(super) struct Travel {
    pub(super) key: MsgKey,
    /// The message's path until the packet began to leave its host.
    before: Path,
    /// The same with the packet's way so far. Control packets do without.
    along: Option<Path>,
    from: HostId,
    pub(super) started: Time,
    /// When it arrived at the place where it is.
    arrived: Time,
    carried: Carried,
    /// The link at whose queue it was trimmed or bounced.
    cut_at: Option<u32>,
    /// How long its class had been paused at the port where it waits, all in all, when it joined
    /// the queue there.
    paused_before: Dur,
    /// How long it was while the packet waited there.
    paused: Dur,
}

/// A link that a packet has crossed.
pub(crate) struct Crossed {
    /// The link's number in the fabric.
    pub(crate) link: u32,
    /// How long the packet takes at its rate.
    pub(crate) serialization: Dur,
    /// Its delay, with that of the switch behind it.
    pub(crate) delay: Dur,
    /// Whether it begins at a host.
    pub(crate) from_host: bool,
    /// Whether it ends at a host.
    pub(crate) to_host: bool,
}

impl Travel {
    /// `pkt` of message `key` begins to leave its host now.
    pub(super) fn new(key: MsgKey, before: Path, pkt: &Packet, now: Time) -> Self {
        let along = (!pkt.flags.has(Flags::CONTROL)).then(|| before.clone());
        let (paused_before, paused) = (Dur::ZERO, Dur::ZERO);
        let carried = carried(pkt);
        let from = pkt.src;
        let (started, arrived) = (now, now);
        Self {
            key,
            before,
            along,
            from,
            started,
            arrived,
            carried,
            cut_at: None,
            paused_before,
            paused,
        }
    }

    pub(super) fn is_control(&self) -> bool {
        self.along.is_none()
    }

    pub(super) fn carried(&self) -> Carried {
        self.carried
    }

    pub(super) fn cut(&mut self, link: u32) {
        self.cut_at.get_or_insert(link);
    }

    /// It joins a queue where its class has been paused for `so_far`.
    pub(super) fn join(&mut self, so_far: Dur) {
        (self.paused_before, self.paused) = (so_far, Dur::ZERO);
    }

    /// It begins to leave that queue.
    pub(super) fn leave(&mut self, so_far: Dur) {
        self.paused = Dur(so_far.0.saturating_sub(self.paused_before.0));
    }

    /// It has arrived at the end of a link. What the link itself does not take was waiting. A rate
    /// that has changed meanwhile moves time from one to the other, and loses none.
    pub(super) fn cross(&mut self, over: &Crossed, now: Time) {
        let taken = now.since(self.arrived);
        let propagation = over.delay.min(taken);
        let serialization = over.serialization.min(Dur(taken.0 - propagation.0));
        let waited = Dur(taken.0 - propagation.0 - serialization.0);
        let paused = std::mem::take(&mut self.paused).min(waited);
        let queued = Dur(waited.0 - paused.0);
        let queueing = match (over.from_host, over.to_host) {
            (true, _) => Cause::SendJitter,
            (_, true) => Cause::LastHopQueueing,
            _ => Cause::FabricQueueing,
        };
        let mut at = std::mem::replace(&mut self.arrived, now);
        let Some(path) = &mut self.along else { return };
        let place = Place::Link(over.link);
        let spent = [
            (Cause::Paused, paused),
            (queueing, queued),
            (Cause::Serialization, serialization),
            (Cause::Propagation, propagation),
        ];
        for (cause, length) in spent {
            path.spend(Segment { at, length, cause, place, packet: Some(self.carried) });
            at += length;
        }
    }

    /// It has come to a host. The message's path up to now.
    pub(super) fn end(self, now: Time) -> Path {
        let (cause, place) = match (self.cut_at, self.along) {
            (None, Some(path)) => return path,
            (Some(link), _) => (Cause::Trimmed, Place::Link(link)),
            (None, None) => (Cause::Control, Place::Host(self.from)),
        };
        let mut path = self.before;
        let (at, length) = (self.started, now.since(self.started));
        path.spend(Segment { at, length, cause, place, packet: Some(self.carried) });
        path
    }

    /// It is dropped. The message's path until it had begun to leave its host.
    pub(super) fn lose(self) -> Path {
        self.before
    }
}

pub(super) fn carried(pkt: &Packet) -> Carried {
    let Packet { flags, class, span, .. } = *pkt;
    Carried { flags, class, offset: span.offset, len: span.len }
}
