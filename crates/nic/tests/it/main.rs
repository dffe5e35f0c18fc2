//! Every integration test of the crate, in one binary: one link instead of many.

mod bytes;
mod clocked;
mod conformance;
mod cycles;
mod dcqcn;
mod frames;
mod goldens;
mod hazards;
mod hpcc;
mod kv_cache;
mod network;
mod nscc;
mod programs;
mod reciprocal;
mod shipped;
mod step;
mod swift;
mod uses;
