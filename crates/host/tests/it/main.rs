//! Every integration test of the crate, in one binary: one link instead of many.

mod restart;
mod two_processes;
