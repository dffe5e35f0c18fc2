//! The discrete-event simulator: hosts that run endpoints and applications, joined by links and
//! switches.
//!
//! [`Topology`] says what is joined to what, [`Config`] how it behaves, [`Sim`] runs it and
//! [`Outcome`] says what happened. Messages and packets are reported to an `Observer` on the way.
//!
//! Deliberately absent: any named transport, files, wall-clock time.

mod config;
mod cut;
mod digest;
mod encoding;
mod events;
mod faults;
mod graph;
mod host;
mod messages;
mod outcome;
mod pace;
mod part;
mod pfc;
mod port;
mod reassembly;
mod rounds;
mod route;
mod run;
mod sample;
mod shortest;
mod sim;
mod slab;
mod slot;
mod tally;
mod telemetry;
mod timers;
mod topology;
mod valiant;
mod wheel;

pub use config::{
    Carriage, Config, ConfigError, Departures, Encoding, Events, Fault, FaultAction, Pause,
    PfcSpec, Routing, Watchdog, WatchdogAction,
};
pub use outcome::{
    Amount, Conservation, Counted, Counters, Deadlock, End, LinkStats, Outcome, PauseStats,
    Progress, QueueBytes, Sample, Violation,
};
pub use pfc::{check_memory, check_pause};
pub use sim::Sim;
pub use topology::{
    Bcube, Clos, Jellyfish, Link, LinkSpec, Node, Tier, Topology, TopologyError, Vl2,
};
