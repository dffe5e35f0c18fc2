//! Designs that run: pipelines, and whole NICs.

mod busy;
mod cost;
mod counted;
mod data;
#[path = "../../../programs/tests/agree/draw.rs"]
#[allow(dead_code, reason = "shared with the tests of `programs`")]
mod draw;
mod emitted;
mod evidence;
mod harness;
mod latency;
mod mutants;
mod rig;
mod switch;
mod synthesis;
#[path = "../../../programs/tests/agree/traffic.rs"]
#[allow(dead_code, reason = "shared with the tests of `programs`")]
mod traffic;
mod whole;

use std::path::PathBuf;

use trimline_rtl::tools::Tools;

/// Verilator, or a word on why a test does nothing.
fn tools(test: &str) -> Option<Tools> {
    Tools::find().map_err(|why| println!("{test} skipped: {why}")).ok()
}

/// Whether to run all there is.
fn everything() -> bool {
    std::env::var("TRIMLINE_RTL").is_ok_and(|value| value == "all")
}

/// A folder of this test's own.
fn folder(test: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rtl").join(test)
}
