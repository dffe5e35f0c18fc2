//! What a run is asked to carry: message sizes, arrivals, traffic matrices, readers of traces, and
//! the applications ([`endpoint::App`]) that submit the messages.
//!
//! - [`SizeDist`]: how long messages are; [`read_sizes`] reads more of them.
//! - [`arrivals`]: when they come; [`matrix`]: between whom; [`HostSet`]: among which hosts;
//!   [`Share`]: a part of a matrix, where several workloads share one.
//! - [`Plan`]: a list of flows with start times and triggers, from a matrix, a `.cm` file
//!   ([`read_cm`]) or a CSV file ([`read_messages`]); it becomes one [`Schedule`] per host.
//! - [`Poisson`], [`ClosedLoop`], [`Barrier`], [`PartitionAggregate`], [`Rpc`], [`Quiet`]: the
//!   other applications; [`Stop`] ends one.
//! - [`read_topo`]: htsim's description of a fat-tree.
//! - [`text`], [`rows`]: what readers of text and of CSV share, also those of other crates.
//!
//! Deliberately absent: transports, fabrics, files (readers take text), clocks.

mod apps;
pub mod arrivals;
mod cdf;
mod cm;
mod hosts;
pub mod matrix;
mod messages;
mod plan;
pub mod rows;
mod share;
mod sizes;
pub mod text;
mod topo;

pub use apps::{
    Aggregate, Arrivals, Barrier, BarrierSpec, ClosedLoop, ClosedLoopSpec, Destinations, Gap,
    LEVELS_MAX, PartitionAggregate, Placement, Poisson, PoissonSpec, QuerySpec, Quiet,
    RESPONSE_MAX, Rpc, RpcSpec, Schedule, Stop, WORKERS_MAX, window_share,
};
pub use cdf::read_sizes;
pub use cm::{
    CmFlow, CmTrigger, ConnectionMatrix, LinkFailure, StartUnit, SwitchType, read_cm, read_cm_in,
};
pub use hosts::{HostSet, HostSetError};
pub use messages::{Message, Messages, read_messages};
pub use plan::{Flow, Plan, PlanError, Start, TriggerKind};
pub use share::{Share, ShareError};
pub use sizes::{About, Sampling, SizeDist};
pub use text::TextError;
pub use topo::{Tier, Topo, read_topo};
