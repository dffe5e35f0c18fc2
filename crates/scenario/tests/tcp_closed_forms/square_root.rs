//! Throughput under random loss against the law of Mathis and others (CCR 27(3), 1997):
//! sqrt(3 / 2) / sqrt(p) segments per round trip, for windows that grow by a segment per round trip
//! and are halved by a loss, without delayed acknowledgements.

use std::path::Path;

use trimline_scenario::{Options, Scenario, simulate};

/// One flow with a round trip of 1 ms for `to` ms; its packets are lost at random, acknowledgements are not.
fn scenario(p: f64, recovery: &str, to: u32) -> String {
    format!(
        r#"
        name = "random loss"
        seed = 1
        topology = {{ kind = "star", hosts = 2, link_rate = "100Gbps", link_delay = "250us" }}
        queue = {{ kind = "drop-tail", capacity = "10000 packets" }}
        routing = {{ mode = "ecmp", reroute_after = "0" }}
        traffic = {{ kind = "incast", senders = 1, receiver = 0, size = "unbounded" }}
        measure = {{ from = "100ms", to = "{to}ms" }}
        [[fault]]
        at = "0"
        link = "host 1 -> tor 0"
        one_way = true
        action = "loss"
        probability = {p}
        [transport]
        kind = "tcp"
        preset = "linux-datacenter"
        rule = "newreno"
        recovery = "{recovery}"
        ecn = false
        mss = "1000B"
        increase = "per-ack"
        delayed_ack = "off"
        rto_min = "10ms"
        "#
    )
}

#[test]
fn t9_square_root_law() {
    for recovery in ["newreno", "sack"] {
        for (p, to) in [(1e-4, 8_000), (1e-3, 8_000), (1e-2, 8_000)] {
            let scenario =
                Scenario::parse("test", &scenario(p, recovery, to), Path::new("."), &[]).unwrap();
            let simulated = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
            let segments = simulated.flows[0].placed_in_window as f64 / 1000.0;
            let per_round = segments / f64::from(to - 100);
            let law = (1.5 / p).sqrt();
            println!("{recovery}, p = {p}: {per_round:.1} segments per round trip (law {law:.1})");
            assert!((per_round / law - 1.0).abs() < 0.15, "{recovery}, p = {p}: {per_round}");
        }
    }
}
