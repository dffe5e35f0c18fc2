//! What an endpoint wants done, as plain values in order.

use units::{Dur, MsgId, MsgKey, Time, TimerId};

/// One thing that an endpoint wants its environment to do or to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Call `on_timer(timer)` at `at`, and not at any earlier deadline. [`Time::NEVER`] disarms.
    Arm {
        /// Which timer.
        timer: TimerId,
        /// When.
        at: Time,
    },
    /// The payload of the packet just received, or a part of it, belongs here. Never twice.
    Place {
        /// The message.
        key: MsgKey,
        /// Its position in the message.
        offset: u64,
        /// How many bytes.
        len: u32,
    },
    /// Every byte of a message to this host has been placed: tell the application, once.
    Delivered(MsgKey),
    /// The sender knows that its message has been delivered whole.
    Acked(MsgId),
    /// A message will not complete.
    Failed(MsgKey, FailReason),
    /// Something worth counting happened.
    Count(Stat),
    /// The same, and it is known to which message of this host. Counted once, not beside
    /// [`Self::Count`].
    CountFor(Stat, MsgId),
    /// The same for a message to this host.
    CountReceived(Stat, MsgKey),
    /// A round-trip sample of a message of this host reached the transport's rule: for the run's
    /// results.
    Rtt(MsgId, Dur),
    /// The same of a message to this host.
    RttReceived(MsgKey, Dur),
    /// Something outside of the endpoint on which it rests has ended ([`Effects::why_broken`]): the
    /// host cannot go on. No defect of the endpoint.
    Broken,
}

/// Why a message failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    /// The application cancelled it.
    Cancelled,
    /// The peer did not answer for as long as the transport is willing to try.
    TimedOut,
    /// The peer refused it (a connection id inside its time-wait, no listener).
    Refused,
    /// The receiver had forgotten a part of it ([`Stat::Forgotten`]), so its sender took it for
    /// delivered. No endpoint can know: the environment says so, which sees both ends.
    Forgotten,
}

/// What transports count. One word per line of `summary.json`; a transport uses those that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Stat {
    /// A data packet was sent again, for whatever reason.
    Retransmission,
    /// A retransmission timer expired and caused something to be sent again. Its cause is counted
    /// beside it: see [`Effects::timeout`].
    Timeout,
    /// Loss was inferred from acknowledgements.
    FastRetransmit,
    /// Data that had already been received came again.
    Duplicate,
    /// A packet for a message that is over, or was never known, was ignored.
    Rejected,
    /// Cause of a timeout (specs/incast.md#3): nothing of the message had been acknowledged.
    HeadTimeout,
    /// Not so, but so few packets were left that duplicate acknowledgements could not prove the
    /// loss.
    TailTimeout,
    /// Neither, but what was lost had been retransmitted before.
    RetransmissionTimeout,
    /// None of these, or a timeout of a transport that does not tell.
    OtherTimeout,
    /// A timeout whose data the receiver had already: it was sent to it again, or was acknowledged
    /// before it could be; counted beside the causes.
    SpuriousTimeout,
    /// A fast retransmit whose original arrived, before or after it: nothing had been lost. Counted
    /// by the receiver, for the message; by the sender where it hears so before it could send.
    SpuriousFastRetransmit,
    /// A packet found the transmit queue of its host's interface full and was lost before the link;
    /// or a control packet that of its kind in a clocked NIC.
    HostDrop,
    /// A receiver had forgotten a message that it had delivered, and delivered it again. Only
    /// transports that are told to forget so soon count this; for all others it is a defect.
    DeliveredTwice,
    /// A receiver had forgotten a message that it had a part of, and begins it anew. Its sender may
    /// take it for delivered when it is not. For whom as above; counted for the message.
    Forgotten,
}

impl Stat {
    /// How many there are, for tables indexed by `stat as usize`.
    pub const COUNT: usize = 14;
}

/// The effects of one call, in order. Reused between calls: pushing allocates only to warm up.
#[derive(Debug, Default)]
pub struct Effects {
    list: Vec<Effect>,
    /// Of [`Effect::Broken`].
    why_broken: String,
}

impl Effects {
    /// No effects yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { list: Vec::new(), why_broken: String::new() }
    }

    /// Fire `timer` at `at`.
    #[inline]
    pub fn arm(&mut self, timer: TimerId, at: Time) {
        self.list.push(Effect::Arm { timer, at });
    }

    /// Do not fire `timer`.
    pub fn disarm(&mut self, timer: TimerId) {
        self.arm(timer, Time::NEVER);
    }

    /// Place `len` bytes of payload at `offset` of `key`.
    #[inline]
    pub fn place(&mut self, key: MsgKey, offset: u64, len: u32) {
        self.list.push(Effect::Place { key, offset, len });
    }

    /// Tell the application that `key` is whole.
    pub fn delivered(&mut self, key: MsgKey) {
        self.list.push(Effect::Delivered(key));
    }

    /// Tell the application that its message `id` was delivered.
    pub fn acked(&mut self, id: MsgId) {
        self.list.push(Effect::Acked(id));
    }

    /// Tell the application that `key` will not complete.
    pub fn failed(&mut self, key: MsgKey, why: FailReason) {
        self.list.push(Effect::Failed(key, why));
    }

    /// Count `stat` once.
    #[inline]
    pub fn count(&mut self, stat: Stat) {
        self.list.push(Effect::Count(stat));
    }

    /// Count `stat` once, for message `id` of this host.
    #[inline]
    pub fn count_for(&mut self, stat: Stat, id: MsgId) {
        self.list.push(Effect::CountFor(stat, id));
    }

    /// Count `stat` once, for message `key` to this host.
    #[inline]
    pub fn count_received(&mut self, stat: Stat, key: MsgKey) {
        self.list.push(Effect::CountReceived(stat, key));
    }

    /// Report a round-trip sample of message `id` of this host.
    #[inline]
    pub fn rtt(&mut self, id: MsgId, rtt: Dur) {
        self.list.push(Effect::Rtt(id, rtt));
    }

    /// Report a round-trip sample of message `key` to this host.
    #[inline]
    pub fn rtt_received(&mut self, key: MsgKey, rtt: Dur) {
        self.list.push(Effect::RttReceived(key, rtt));
    }

    /// Count a timeout of message `id` of this host and its `cause`: head, tail, retransmission or
    /// other.
    pub fn timeout(&mut self, cause: Stat, id: MsgId) {
        self.count_for(Stat::Timeout, id);
        self.count(cause);
    }

    /// The host cannot go on, for this reason: what has ended, where, and its last input.
    pub fn broken(&mut self, why: String) {
        self.why_broken = why;
        self.list.push(Effect::Broken);
    }

    /// The reason of [`Effect::Broken`]; empty where there is none.
    #[must_use]
    pub fn why_broken(&self) -> &str {
        &self.why_broken
    }

    /// Add those of `other`, which has none then.
    pub fn append(&mut self, other: &mut Self) {
        self.list.append(&mut other.list);
    }

    /// The effects so far, oldest first.
    #[must_use]
    pub fn as_slice(&self) -> &[Effect] {
        &self.list
    }

    /// The timers that effects after the first `skip` arm or disarm, to be renamed by who joins
    /// several endpoints into one.
    pub fn timers_mut(&mut self, skip: usize) -> impl Iterator<Item = &mut TimerId> {
        self.list.iter_mut().skip(skip).filter_map(|effect| match effect {
            Effect::Arm { timer, .. } => Some(timer),
            _ => None,
        })
    }

    /// Forget all effects, keep the memory.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
