//! Every integration test of the crate, in one binary: one link instead of many.

mod examples;
mod node;
mod restart;
mod two_processes;
