//! The blocks of `rtl/`, each beside a model written from the clocked law of docs/nic.md.
//!
//! `TRIMLINE_RTL_CYCLES=1000000` runs more cycles, `TRIMLINE_RTL_MUTANTS=1` all planted mistakes.

mod arbiter;
mod bench;
mod cells;
mod generator;
mod law;
mod meta;
#[path = "../shared/mistakes.rs"]
#[allow(dead_code, reason = "shared with the tests of the data path")]
mod mistakes;
mod packetization;
mod prio;
mod reassembly;
mod srpt;
mod timers;
mod trim_queue;
