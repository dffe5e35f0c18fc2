//! [`Life`]: where the time of one message went, from its submission until it was delivered.
//! docs/explain.md says what each cause means, and how the time is divided.

use units::{Dur, HostId, MsgKey, Time};

use crate::Flags;

/// What a part of a message's completion time was spent on. Every picosecond has exactly one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cause {
    /// Bits of its data were put on a link.
    Serialization,
    /// Bits of its data were on a link or within a switch.
    Propagation,
    /// Its data waited at a switch port that leads to another switch.
    FabricQueueing,
    /// Its data waited at the switch port that leads to the receiver.
    LastHopQueueing,
    /// PFC had paused its class: at a switch port, or at the port of its host.
    Paused,
    /// A packet was on its way whose payload was cut off, or whose header was bounced.
    Trimmed,
    /// From the start of a packet that was dropped until its bytes were sent again.
    Dropped,
    /// The same where a retransmission timer had to expire; also such a wait without lost data.
    Timeout,
    /// A control packet was on its way: handshake, acknowledgement, pull, grant.
    Control,
    /// The receiver had not yet sent the control packet that let the sender go on.
    ReceiverWait,
    /// The transport held the message at its sender: window, grant or turn.
    SenderWait,
    /// The sender waited for a time that it had chosen itself.
    Pacing,
    /// The host's port was busy with packets of other messages.
    PortBusy,
    /// The host's packet left late by its clock's jitter.
    SendJitter,
    /// All of it had arrived, and it was not yet delivered.
    DeliveryWait,
}

impl Cause {
    /// How many there are, for tables indexed by `cause as usize`.
    pub const COUNT: usize = 15;

    /// Each of them, in the order of the enum.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Serialization,
        Self::Propagation,
        Self::FabricQueueing,
        Self::LastHopQueueing,
        Self::Paused,
        Self::Trimmed,
        Self::Dropped,
        Self::Timeout,
        Self::Control,
        Self::ReceiverWait,
        Self::SenderWait,
        Self::Pacing,
        Self::PortBusy,
        Self::SendJitter,
        Self::DeliveryWait,
    ];
}

/// Where the time of a delivered message went.
#[derive(Clone, Copy, Debug)]
pub struct Life<'a> {
    /// Which message.
    pub key: MsgKey,
    /// When the application submitted it.
    pub submitted: Time,
    /// When it was delivered.
    pub delivered: Time,
    /// How long it spent on each cause, by [`Cause`]: together the time between the two.
    pub spent: &'a [Dur; Cause::COUNT],
    /// The same in the order of time, without gaps; empty unless asked for.
    pub segments: &'a [Segment],
}

/// A part of a message's life that has one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// From when on.
    pub at: Time,
    /// For how long.
    pub length: Dur,
    /// Why.
    pub cause: Cause,
    /// Where.
    pub place: Place,
    /// The packet that was on its way or waited to leave.
    pub packet: Option<Carried>,
}

/// A host or a directed link, whose queue is at its transmitting end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This host.
    Host(HostId),
    /// This link: see `fabric::Topology`.
    Link(u32),
}

/// What tells the packets of one message apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// As they were when it was sent.
    pub flags: Flags,
    /// Its class.
    pub class: u8,
    /// The first byte that it carries.
    pub offset: u64,
    /// How many it carries.
    pub len: u32,
}
