//! At-most-once through outages: a sender may ask for seconds, and nothing is delivered twice.

use std::path::Path;

use trimline_scenario::{Options, Scenario, simulate};

/// Everybody sends to everybody; one host's link goes dead while most of it is under way.
fn all_to_all(up_at: &str, seed: u64) -> String {
    format!(
        r#"
        name = "outage"
        seed = {seed}
        topology = {{ kind = "leaf-spine", leaves = 4, spines = 2, hosts_per_leaf = 4,
            link_rate = "10Gbps", uplink_rate = "20Gbps", link_delay = "1us" }}
        queue = {{ kind = "ndp", capacity = "8 packets" }}
        routing = {{ mode = "permute", reroute_after = "1ms" }}
        transport = {{ kind = "ndp", preset = "paper", payload = "9000B", initial_window = 30 }}
        traffic = {{ kind = "all-to-all", size = "1KB" }}
        measure = {{ limit = "20s" }}
        [[fault]]
        at = "3us"
        link = "tor 0 -> host 0"
        action = "down"
        [[fault]]
        at = "{up_at}"
        link = "tor 0 -> host 0"
        action = "up"
        "#
    )
}

#[test]
fn every_message_arrives_once_however_long_the_outage() {
    for up_at in ["10ms", "110ms", "300ms", "2s"] {
        for seed in 1..4 {
            let text = all_to_all(up_at, seed);
            let scenario = Scenario::parse("outage.toml", &text, Path::new("."), &[]).unwrap();
            let run = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
            let counters = run.outcome.counters;
            assert_eq!((counters.submitted, counters.delivered), (240, 240), "up at {up_at}");
            assert!(counters.dropped > 0, "the outage took something");
        }
    }
}
