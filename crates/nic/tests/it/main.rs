//! Every integration test of the crate, in one binary: one link instead of many.

mod arbitrary;
mod broken;
mod conformance;
mod cycles;
mod dcqcn;
mod evaluation;
mod expressions;
mod frames;
mod goldens;
mod hazards;
mod hpcc;
mod kv_cache;
mod meaning;
mod network;
mod programs;
mod reciprocal;
mod shipped;
mod small;
mod step;
mod swift;
mod uses;
