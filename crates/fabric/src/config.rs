//! How a fabric behaves.

use std::fmt;

use endpoint::Framing;
use queues::QueueSpec;
use units::{Dur, Time};

/// Who chooses among equal ways up, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The packet's path index says (the sender's permuted list, or whatever the sender does).
    Source,
    /// Each switch hashes source, destination, protocol and the packet's entropy (ECMP).
    FlowHash,
    /// Each switch draws uniformly for each packet.
    PacketRandom,
}

/// Which event queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// The timing wheel.
    Wheel,
    /// A binary heap: slower, the cross-check.
    Heap,
}

/// How a switch port's departures are worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departures {
    /// Replayed when the port is next touched.
    Lazy,
    /// One event each: slower, the cross-check.
    Eager,
}

/// A change to a link during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at: Time,
    /// Which directed link.
    pub link: u32,
    /// What.
    pub action: FaultAction,
}

/// What a fault does to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// Whatever arrives over it from now on is lost.
    Down,
    /// It works again.
    Up,
}

/// How the messages of one transport travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carriage {
    /// How it cuts them into packets.
    pub framing: Framing,
    /// Whether consecutive packets of a message may take different paths: a short last packet may
    /// then overtake, which the ideal completion time allows for.
    pub spray: bool,
}

/// Everything about a run except its topology, endpoints and applications.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of every draw.
    pub seed: u64,
    /// How messages travel, by [`endpoint::Msg::transport`]: for ideal completion times.
    pub carriages: Vec<Carriage>,
    /// Who chooses paths.
    pub routing: Routing,
    /// The queue of every switch port.
    pub queue: QueueSpec,
    /// Link faults, in any order.
    pub faults: Vec<Fault>,
    /// How long after a fault the ECMP groups and path lists know of it.
    pub reroute_after: Dur,
    /// Which event queue. No effect on results.
    pub events: Events,
    /// Lazy or eager departures. No effect on results.
    pub departures: Departures,
    /// Partitions of the fabric that run in threads of their own, 1 or more. No effect on results.
    pub threads: u32,
    /// Stop conditions are looked at every so often, at multiples of this.
    pub grid: Dur,
    /// The run ends here at the latest.
    pub limit: Time,
    /// The run ends when more messages than this are neither delivered nor failed: an open-loop
    /// load that the network does not carry would otherwise fill the memory.
    pub open_limit: u64,
    /// The measurement window. Messages submitted in it are waited for.
    pub window: (Time, Time),
    /// Sample queues and rates this often; `None`: never.
    pub sample_every: Option<Dur>,
    /// Check conservation at every grid step, not only at the end.
    pub check: bool,
}

/// Why a run cannot start. `Display` is a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub(crate) String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
