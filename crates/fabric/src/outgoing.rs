//! What one partition has for another.

use endpoint::Packet;
use units::{MsgKey, Time};

use crate::pfc::frame::Frame;

/// A signal on its way to an application, in the order of arrival, sender and the sender's count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Signal {
    pub(crate) at: Time,
    pub(crate) from: u32,
    pub(crate) number: u64,
    pub(crate) tag: u16,
    pub(crate) token: u64,
}

/// What an application says with a message to the application that receives it, and the part of
/// the workload to which it belongs. It reaches the receiver's partition at the end of the round
/// in which the message was submitted, and so before the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) tag: u16,
    pub(crate) token: u64,
}

/// Everything that one partition has for another at the end of a round.
#[derive(Default)]
pub(crate) struct Outgoing {
    /// Packets with the receiving end of their link and their arrival.
    pub(crate) packets: Vec<Packet>,
    pub(crate) arrivals: Vec<(u32, Time)>,
    /// Frames of flow control with the same.
    pub(crate) frames: Vec<(u32, Time, Frame)>,
    /// Signals with the host they go to.
    pub(crate) signals: Vec<(u32, Signal)>,
    /// What is said with messages.
    pub(crate) notes: Vec<(MsgKey, Note)>,
}

impl Outgoing {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { packets, arrivals: _, frames, signals, notes } = self;
        packets.is_empty() && frames.is_empty() && signals.is_empty() && notes.is_empty()
    }

    /// When the first of it happens.
    pub(crate) fn first_at(&self) -> Time {
        let arrivals = self.arrivals.iter().map(|&(_, at)| at);
        let frames = self.frames.iter().map(|&(_, at, _)| at);
        let signals = self.signals.iter().map(|(_, signal)| signal.at);
        arrivals.chain(frames).chain(signals).min().unwrap_or(Time::NEVER)
    }
}
