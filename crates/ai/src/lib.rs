//! Training and inference jobs: what their GPUs compute, send and receive, and in which order.
//!
//! - [`TaskGraph`]: the tasks of each rank and what they wait for; a [`Builder`] checks it.
//!
//! Deliberately absent: transports, fabrics, files (readers take text or bytes), clocks.

mod graph;

pub use graph::{
    Builder, Fault, GroupId, Instance, InstanceId, Kind, Label, Op, Rank, Task, TaskGraph, TaskId,
    Tasks,
};
