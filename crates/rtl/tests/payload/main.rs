//! The data path of `rtl/`, each block beside a model of bytes: frames, headers, messages.
//!
//! `TRIMLINE_RTL_RUNS=100` runs more of each block, `TRIMLINE_RTL_MUTANTS=1` all planted mistakes.

mod bench;
mod cost;
mod data_path;
mod header_align;
mod header_merge;
mod joins;
mod memory;
#[path = "../shared/mistakes.rs"]
mod mistakes;
mod packets;
mod places;
mod proofs;
mod widths;
