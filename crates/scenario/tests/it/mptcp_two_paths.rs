//! One of two paths fails under a connection of two subflows: docs/notebook/linux_mptcp.toml, which
//! stands beside the Linux kernel in docs/notebook/2026-11-21-mptcp.md. The message is whole
//! (specs/mptcp.md#I1,T9: the simulator asserts that no byte is placed twice), and late by no more
//! than what the repair takes.

use std::path::Path;

use metrics::Summary;
use trimline_scenario::{Options, Scenario, evaluate};

const DEAD: &str = r#"{ at = "1s", link = "tor 0 -> agg 1", action = "down", announce = false }"#;
const LOSSY: &str =
    r#"{ at = "1s", link = "tor 0 -> agg 1", action = "loss", probability = 0.3, one_way = true }"#;

fn run(seed: u64, sets: &[&str]) -> Summary {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notebook");
    let seed = format!("seed={seed}");
    let sets: Vec<String> = [&[&seed[..]], sets].concat().into_iter().map(Into::into).collect();
    let scenario = Scenario::load(&dir.join("linux_mptcp.toml"), &sets);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
    let options = Options { threads: Some(1), ..Options::default() };
    evaluate(&scenario, &options, &mut |_| ()).unwrap().summary
}

/// Seconds until the message had arrived; it must have.
fn completion(seed: u64, fault: &str, sets: &[&str]) -> f64 {
    let fault = format!("fault=[{fault}]");
    let summary = run(seed, &[&[&fault[..]], sets].concat());
    assert_eq!(
        (summary.flows.messages.submitted, summary.flows.messages.completed),
        (1, 1),
        "{fault}"
    );
    summary.flows.last_completion_us.unwrap() / 1e6
}

/// Until 4 MB have crossed links of 4 Mb/s, of which a second one works until `both` seconds.
fn bound(both: f64) -> f64 {
    let on_the_wire = 4e6 * 8.0 * 1500.0 / 1424.0;
    both + (on_the_wire - both * 8e6) / 4e6
}

/// The same if both work all the time.
const BOTH: f64 = 4e6 * 8.0 * 1500.0 / 1424.0 / 8e6;

/// With seed 17 the second path is the joining subflow's, with seed 5 the first one's.
const SEEDS: [u64; 2] = [17, 5];

#[test]
fn t9_a_dead_path_costs_its_capacity_and_a_timeout() {
    for seed in SEEDS {
        for buffer in ["receive_buffer=6291456B", "receive_buffer=100KB"] {
            let took = completion(seed, DEAD, &[&format!("transport.{buffer}")]);
            // A timeout of 200 ms and the round trip in a full queue, 150 ms, while the other path
            // goes on.
            assert!(
                (bound(1.0)..bound(1.0) + 1.0).contains(&took),
                "seed {seed}, {buffer}: {took} s"
            );
        }
    }
}

#[test]
fn without_reinjection_a_dead_path_keeps_its_data() {
    let sets = [
        &format!("fault=[{DEAD}]")[..],
        "transport.reinject=none",
        "transport.opportunistic=false",
        "measure.limit=20s",
    ];
    let summary = run(17, &sets);
    assert_eq!((summary.flows.messages.submitted, summary.flows.messages.completed), (1, 0));
}

#[test]
fn a_path_that_loses_a_third_of_its_packets_is_no_worse_than_a_dead_one() {
    for seed in SEEDS {
        let took = completion(seed, LOSSY, &[]);
        assert!((BOTH..bound(1.0) + 1.0).contains(&took), "seed {seed}: {took} s");
    }
}

#[test]
fn a_path_of_100_ms_more_is_used_where_the_buffer_allows_it() {
    let slow = r#"topology.link=[{ link = "tor 0 -> agg 1", delay = "105ms", one_way = true }]"#;
    for seed in SEEDS {
        let took = completion(seed, "", &[slow]);
        assert!((BOTH..BOTH + 0.8).contains(&took), "seed {seed}: {took} s");
        let small = completion(seed, "", &[slow, "transport.receive_buffer=100KB"]);
        assert!(small > took && small < bound(0.0), "seed {seed}: {small} s");
        // Opportunistic retransmission is not for a subflow whose round trip is less than four
        // times the other's, but when its window is small: less than one segment in a hundred comes
        // twice.
        let sent = run(seed, &[slow, "fault=[]", "transport.receive_buffer=100KB"]).packets;
        assert!(sent.retransmitted <= sent.dropped + 28, "seed {seed}: {sent:?}");
    }
}
