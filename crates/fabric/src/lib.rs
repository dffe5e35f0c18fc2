//! The discrete-event simulator: hosts that run endpoints and applications, joined by links and
//! switches.
//!
//! [`Topology`] says what is joined to what, [`Config`] how it behaves, [`Sim`] runs it and
//! [`Outcome`] says what happened. Messages and packets are reported to an `Observer` on the
//! way.
//!
//! Deliberately absent: any named transport, files, wall-clock time.

mod batch;
mod build;
mod check;
mod config;
mod core;
mod digest;
mod encoding;
mod event;
mod event_loop;
mod events;
mod faults;
mod flow_trace;
mod graph;
mod host_clock;
mod hosts;
mod life;
mod link_state;
mod links;
mod livelock;
mod message_table;
mod network;
mod outcome;
mod outgoing;
mod pace;
mod parallel;
mod partition;
mod partitioning;
mod per_message_stats;
mod pfc;
mod planes;
mod port;
mod reassembly;
mod route;
mod router;
mod run;
mod sample;
mod shortest;
mod sim;
mod slab;
mod slot;
mod steady;
mod switch;
mod telemetry;
mod ties;
mod timers;
mod topology;
mod transit;
mod valiant;
mod wheel;
mod world;

pub use config::{
    Config, ConfigError, Departures, Encapsulation, Encoding, Events, Fault, FaultAction,
    LifeDetail, Pause, PfcSpec, Routing, SkipSpec, Threads, Watchdog, WatchdogAction,
};
pub use faults::{Change as LinkChange, Script as FaultScript, Step as FaultStep};
pub use host_clock::{HostClock, SendJitter};
pub use hosts::APP;
pub use livelock::{Recent, RecentKind};
pub use outcome::{
    Amount, Conservation, Counters, Deadlock, End, LinkStats, Outcome, PauseStats, Progress,
    QueueBytes, Sample, Skipped, Violated, Violation,
};
pub use pfc::{check_memory, check_pause, little_headroom};
pub use router::Router;
pub use sample::SAMPLES_OF_INTERVAL;
pub use sim::Sim;
pub use topology::{
    Bcube, Clos, HEIGHTS, Jellyfish, Link, LinkSpec, Node, PLANES_MAX, Stage, Tier, Topology,
    TopologyError, Vl2,
};
