//! Training and inference jobs: what their GPUs compute, send and receive, and in which order.
//!
//! - [`TaskGraph`]: the tasks of each rank and what they wait for; a [`Builder`] checks it.
//! - [`readers`]: from GOAL, SimAI, AICB and Chakra files.
//!
//! Deliberately absent: transports, fabrics, files (readers take text or bytes), clocks.

mod graph;
pub mod readers;

pub use graph::{
    Builder, Fault, GroupId, Instance, InstanceId, Kind, Label, Op, Rank, Task, TaskGraph, TaskId,
    Tasks,
};
