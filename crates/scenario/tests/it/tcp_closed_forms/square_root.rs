//! Throughput under random loss against the law of Mathis and others (CCR 27(3), 1997;
//! specs/tcp.md#T9): sqrt(3 / 2) / sqrt(p) segments per round trip, for windows that grow by a
//! segment per round trip and are halved by a loss, without delayed acknowledgements.

use std::path::Path;

use trimline_scenario::{Options, Scenario, simulate};

/// One flow with a round trip of 1 ms for `to` ms; its packets are lost at random, acknowledgements
/// are not.
fn scenario(p: f64, rule: &str, recovery: &str, to: u32) -> String {
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
        rule = "{rule}"
        recovery = "{recovery}"
        ecn = false
        mss = "1000B"
        increase = "per-ack"
        delayed_ack = "off"
        rto_min = "10ms"
        "#
    )
}

/// Segments per round trip.
fn throughput(p: f64, rule: &str, recovery: &str, to: u32) -> f64 {
    let text = scenario(p, rule, recovery, to);
    let scenario = Scenario::parse("test", &text, Path::new("."), &[]).unwrap();
    let simulated = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    let segments = simulated.flows[0].placed_in_window as f64 / 1000.0;
    let per_round = segments / f64::from(to - 100);
    println!("{rule}, {recovery}, p = {p}: {per_round:.1} segments per round trip");
    per_round
}

fn law(p: f64) -> f64 {
    (1.5 / p).sqrt()
}

#[test]
fn t9_square_root_law() {
    for recovery in ["newreno", "sack"] {
        for p in [1e-4, 1e-3, 1e-2] {
            let ratio = throughput(p, "newreno", recovery, 8_000) / law(p);
            assert!((ratio - 1.0).abs() < 0.15, "{recovery}, p = {p}: {ratio} of the law");
        }
    }
}

/// In its Reno-friendly region, which short round trips never leave, CUBIC has Reno's mean window
/// (RFC 9438, section 4.3).
#[test]
fn cubic_is_as_quick_as_reno_where_it_is_friendly() {
    for p in [1e-3, 1e-2] {
        let ratio = throughput(p, "cubic", "sack", 8_000) / law(p);
        assert!((ratio - 1.0).abs() < 0.15, "p = {p}: {ratio} of the law");
    }
}
