//! [`Observer`]: what an environment reports while it runs.

use units::{Dur, HostId, MsgKey, Time};

use crate::{FailReason, FlowState, Job, Life, Packet, Stat};

/// Receives what happens during a run.
pub trait Observer {
    /// Whether `packet` and `queue` are to be called. Asked once: environments have loops of their
    /// own for observers that do not look at packets.
    fn watches_packets(&self) -> bool {
        false
    }

    /// A message is over: delivered, failed, or unfinished when the run ended.
    fn message(&mut self, record: &MessageRecord) {
        let _ = record;
    }

    /// A transport has counted `stat` `times` more for message `key`: a sum that may come in parts,
    /// also after the message is over, and always before the run is.
    fn count(&mut self, key: MsgKey, stat: Stat, times: u64) {
        let _ = (key, stat, times);
    }

    /// A piece of work of several messages is over.
    fn job(&mut self, record: &JobRecord) {
        let _ = record;
    }

    /// A transport had a round-trip sample.
    fn rtt(&mut self, record: &RttRecord) {
        let _ = record;
    }

    /// A message has been delivered: where its time went. If asked for.
    fn life(&mut self, life: &Life<'_>) {
        let _ = life;
    }

    /// What a transport lets a message send has changed. If asked for.
    fn flow(&mut self, record: &FlowRecord) {
        let _ = record;
    }

    /// Something happened to a packet, at `at`. `link` is the directed link (see
    /// `fabric::Topology`) that the packet has crossed or is about to enter.
    fn packet(&mut self, at: Time, link: u32, event: PacketEvent, pkt: &Packet) {
        let _ = (at, link, event, pkt);
    }

    /// The queue of `link` held `bytes` when it was sampled.
    fn queue(&mut self, at: Time, link: u32, bytes: u32) {
        let _ = (at, link, bytes);
    }
}

/// The observer that ignores everything.
impl Observer for () {}

/// What can happen to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// A host has begun to transmit it.
    Sent,
    /// It has arrived at the far end of a link.
    Arrived,
    /// Its payload was cut off at the queue of the link.
    Trimmed,
    /// Its header was turned back at the queue of the link.
    Bounced,
    /// It was marked at the queue of the link.
    Marked,
    /// It is gone.
    Dropped(Drop),
    /// It is no packet but a frame of flow control (PFC), whole in the place of the header, and has
    /// arrived at the far end of the link, where it ends.
    FlowControl,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The queue was full.
    Full,
    /// The link is down.
    Dead,
    /// The link loses some packets, and this one.
    Lossy,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// Which.
    pub key: MsgKey,
    /// The receiving host.
    pub dst: HostId,
    /// Bytes, or [`crate::UNBOUNDED`].
    pub len: u64,
    /// The tag with which it was submitted ([`crate::AppEffect::Submit`]).
    pub tag: u16,
    /// When the application submitted it.
    pub submitted: Time,
    /// From submission until it should be whole; [`Dur::MAX`]: no deadline.
    pub deadline: Dur,
    /// When its last byte was placed; `None` if that has not happened.
    pub delivered: Option<Time>,
    /// When the sender learnt of it; `None` if that has not happened.
    pub acked: Option<Time>,
    /// Why an endpoint gave it up before it was whole; `None` if none did.
    pub failed: Option<FailReason>,
    /// How long it takes alone in the same fabric; zero for an unbounded one.
    pub ideal: Dur,
    /// Bytes placed so far, or at the end of the run.
    pub placed: u64,
    /// Bytes placed inside the measurement window.
    pub placed_in_window: u64,
}

/// A round-trip sample of a message, as its transport's rule got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttRecord {
    /// When it got it.
    pub at: Time,
    /// Of which message.
    pub key: MsgKey,
    /// How long.
    pub rtt: Dur,
}

/// What a transport lets a message send from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// Since when.
    pub at: Time,
    /// Which message.
    pub key: MsgKey,
    /// What.
    pub state: FlowState,
}

/// What became of a piece of work of several messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// The host whose application reports it.
    pub host: HostId,
    /// What it reports.
    pub job: Job,
}
