//! Every integration test of the crate, in one binary: one link instead of many.

mod contract;
mod engine;
mod graphs;
mod livelock;
mod pfc;
