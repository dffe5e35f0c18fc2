//! No allocation per packet after warm-up. One test, alone in its
//! program: the counter counts all threads.

use std::alloc::System;
use std::path::Path;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use trimline_scenario::{Options, Scenario, simulate};
use units::Time;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const WARM: Time = Time(20_000_000_000);

#[test]
fn nothing_is_allocated_per_packet_after_warm_up() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/ndp_permutation_432.toml");
    for edits in [
        vec!["topology.k=4"],
        vec![
            "topology.k=4",
            "queue={kind=\"drop-tail\",capacity=\"100 packets\"}",
            "routing.mode=ecmp",
            "transport={kind=\"tcp\", rule=\"newreno\", recovery=\"newreno\", ecn=false,preset=\"linux-datacenter\",mss=\"9000B\"}",
        ],
    ] {
        let edits: Vec<String> = edits.into_iter().map(str::to_owned).collect();
        let more = ["measure.from=\"10ms\"", "measure.to=\"60ms\""].map(str::to_owned);
        let scenario = Scenario::load(&file, &[edits, more.to_vec()].concat()).unwrap();
        let (mut before, mut after) = (None, 0);
        let run = simulate(&scenario, &Options::default(), &mut |progress| {
            after = INSTRUMENTED_SYSTEM.stats().allocations;
            if progress.now >= WARM {
                before.get_or_insert(after);
            }
        });
        let hops = run.unwrap().outcome.packet_hops;
        let allocations = after - before.unwrap();
        // Samples keep what they see, and a queue may grow longer than ever before: tens in all.
        assert!(hops > 500_000, "{hops} packet-hops");
        assert!(
            allocations <= 200,
            "{allocations} allocations in two thirds of {hops} packet-hops"
        );
    }
}
