//! The contract between a switch and a program at its output ports.

use std::fmt::Debug;

use crate::Packet;

/// A program at one output port of a switch, with its state: interpreted P4 or generated Rust. It
/// says where a packet queues that is to leave by this port, and hears when one has left.
///
/// (One method for all causes would have the packet and the time each time. A departure
/// has neither here: ports that nobody else reads work out later what they have sent.)
pub trait Pipeline: Debug + Send + Sync {
    /// `packet` is to leave by this port. `random`: 64 bits, drawn for it.
    fn arrive(&mut self, packet: &Packet, random: u64) -> Verdict;

    /// A packet of `len` bytes, which this program has put in `queue`, has been sent.
    fn sent(&mut self, queue: u8, len: u16);

    /// The same program in the same state, for another port.
    fn duplicate(&self) -> Box<dyn Pipeline>;

    /// A number for the program's text and constants: equal programs have equal ones.
    fn fingerprint(&self) -> u64;
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its payload is cut off, which leaves so many bytes of it (but not more than it has). Only of
    /// packets with payload.
    pub trim_to: Option<u16>,
    /// And then?
    pub then: Action,
}

/// What becomes of a packet, trimmed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It joins the queue of this number.
    Queue(u8),
    /// Its header goes back to its sender. Only of trimmed packets that have not been sent back;
    /// others are lost.
    Bounce,
    /// It is lost.
    Drop,
}
