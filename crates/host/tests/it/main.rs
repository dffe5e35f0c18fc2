//! Every integration test of the crate, in one binary: one link instead of many.

/// The other tests' kinds name the crate so.
extern crate transports as trimline_transports;

mod examples;
mod hostile;
mod keys;
mod long_life;
mod node;
mod receive;
mod restart;
#[path = "../../../transports/tests/it/subjects.rs"]
mod subjects;
mod two_processes;
mod xdp;
