//! A switch in software: the ports, queues, routes and faults of the simulator, with real frames.
//!
//! [`Switch`] is one switch of a scenario's topology. What it does to a packet follows from when
//! packets came, by the code that the simulator runs ([`queues`], [`fabric::Router`]); frames are
//! rewritten accordingly: trimmed, marked, sent back. [`run()`] drives it over interfaces of this
//! machine; [`record`] keeps what came and what became of it, and [`replay()`] plays that to the
//! simulator.
//!
//! | file | what |
//! |---|---|
//! | `switch` | [`Switch`]: arrivals, routes, faults, what is done to frames |
//! | `port` | an output port: its queue and the packet in service |
//! | `frames` | frames and the packets in them |
//! | `record`, `replay` | what came and what became of it, and the simulator's word on it |
//! | `interface` | an interface of this machine, by AF_PACKET (`packet`) or AF_XDP |
//! | `run` | the loop: receive, decide, send, sleep; faults that only a real wire has |
//! | `seen` | what is told of each frame, for captures |
//! | `offloads` | what the kernel must not do to frames of an interface |
//! | `pages` | no huge pages while packets travel |
//! | `netns` | network namespaces joined by virtual links |
//!
//! Deliberately absent: transports, hosts, files of scenarios.

mod frames;
mod interface;
pub mod netns;
mod offloads;
mod packet;
mod pages;
mod port;
pub mod record;
mod replay;
mod run;
mod seen;
mod switch;

pub use interface::{Backend, Interface, InterfaceError};
pub use offloads::disable_offloads;
pub use pages::SmallPages;
pub use replay::{Agreement, ReplayError, replay};
pub use run::{Harm, Options, RunError, Totals, run};
pub use seen::{Seen, Watch};

pub use switch::{Counters, Switch, SwitchError};
