//! What is over takes no memory: a closed loop of NDP holds after many messages what it held after
//! some. One test, alone in its program: the counter counts all threads.

use std::alloc::System;
use std::path::Path;

use metrics::OutputDir;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use trimline_scenario::{Options, Scenario, run};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Sixteen hosts that answer one short message with the next: eleven messages in a microsecond.
const LOOP: &str = r#"
    name = "loop"
    seed = 1
    topology = { kind = "leaf-spine", leaves = 4, spines = 2, hosts_per_leaf = 4, link_rate = "100Gbps", uplink_rate = "200Gbps", link_delay = "500ns" }
    queue = { kind = "ndp", capacity = "8 packets" }
    routing = { mode = "permute" }
    transport = { kind = "ndp", preset = "paper", payload = "9000B", initial_window = 12 }
    traffic = { kind = "closed-loop", connections = 4, gap = "1us", gap_kind = "exponential", size = "1000B", keep_destination = false }
    measure = { from = "0us", to = "50ms" }
"#;

/// Bytes that are allocated now.
fn live() -> usize {
    let stats = INSTRUMENTED_SYSTEM.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

#[test]
fn a_closed_loop_keeps_nothing_of_what_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = Scenario::parse("loop", LOOP, Path::new("."), &[]).unwrap();
    let out = OutputDir::create(dir.path()).unwrap();
    // The most after so many messages, of which all fit into memory but few more do, and after all.
    let (mut early, mut all) = (0, 0);
    let written = run(&scenario, &Options::default(), &out, &mut |progress| {
        all = all.max(live());
        if progress.delivered < 200_000 {
            early = all;
        }
    });
    let messages = written.unwrap().summary.flows.messages;
    assert!(messages.completed > 500_000, "{messages:?}");
    assert!(all as f64 <= early as f64 * 1.05, "{early} bytes, then {all}");
}
