//! The NIC of specs/nanotransport.md around its two P4 pipelines: reassembly, packetization,
//! timers, packet generator, arbiter, and the externs that programs call.
//!
//! `docs/nic.md` has a picture of the blocks and their two laws of time. Each is a file, pure and
//! without I/O. They count in picoseconds or, in a clocked NIC, in cycles ([`clock::Tick`]).

pub mod arbiter;
pub mod bits;
pub mod blocks;
pub mod buffers;
pub mod cells;
pub mod clock;
pub mod config;
pub mod endpoint;
pub mod externs;
pub mod flows;
pub mod frame;
pub mod generator;
mod mac;
pub mod meta;
pub mod packetization;
mod past;
mod paths;
pub mod reassembly;
pub mod sizing;
pub mod srpt;
mod submissions;
pub mod ticking;
pub mod timers;
