//! Training and inference jobs: what their GPUs compute, send and receive, and in which order.
//!
//! - [`TaskGraph`]: the tasks of each rank and what they wait for; a [`Builder`] checks it.
//! - [`readers`]: from GOAL, SimAI, AICB and Chakra files.
//! - [`Repeated`], [`Model`]: jobs for people without a trace.
//! - [`collective`]: what a rank sends and receives for an all-reduce and the like.
//! - [`Placement`]: which host each rank is on.
//! - [`Job`]: a graph on its hosts; its [`Player`]s are the hosts' applications.
//! - [`Critical`]: what each step of a job that was played waited for.
//!
//! Deliberately absent: transports, fabrics, files (readers take text or bytes), clocks.

pub mod collective;
mod critical;
mod graph;
mod job;
mod model;
mod placement;
mod player;
pub mod readers;
mod slow;
mod volume;

pub use critical::{Because, Critical, Piece, Span, Spans};
pub use graph::{
    Builder, Fault, GroupId, Instance, InstanceId, Kind, Label, Op, Rank, Task, TaskGraph, TaskId,
    Tasks,
};
pub use job::{Choice, Config, Job, JobError, ScaleUp, Straggler};
pub use model::{Model, ModelError, Repeated};
pub use placement::{Placement, PlacementError, RANKS_PER_HOST_MAX};
pub use player::{Player, Wait, What};
pub use slow::Slowdown;
pub use volume::Volume;
