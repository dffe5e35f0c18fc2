//! Phase effects (specs/phases.md): real hosts share a queue, hosts in step need not.

use std::path::Path;

use trimline_scenario::{Options, Results, Scenario, evaluate};

/// Unbounded flows of `rule` into one host of a star.
fn star(rule: &str, flows: u32, seed: u64, seconds: u64, more: &[&str]) -> Results {
    let ecn = rule == "dctcp";
    let marks = if ecn { ", ecn_threshold = \"20 packets\"" } else { "" };
    let text = format!(
        r#"
        name = "star"
        seed = {seed}
        topology = {{ kind = "star", hosts = {hosts}, link_rate = "1Gbps", link_delay = "5us" }}
        queue = {{ kind = "drop-tail", capacity = "64 packets"{marks} }}
        routing = {{ mode = "ecmp" }}
        measure = {{ to = "{seconds}s" }}
        [transport]
        kind = "tcp"
        preset = "linux-datacenter"
        rule = "{rule}"
        recovery = "sack"
        ecn = {ecn}
        mss = "1460B"
        [traffic]
        kind = "incast"
        receiver = 0
        senders = {flows}
        size = "unbounded"
        "#,
        hosts = flows + 1
    );
    let sets: Vec<String> = more.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::parse("star.toml", &text, Path::new(""), &sets);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
    evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

/// Jain's index of what the flows have placed.
fn fairness(results: &Results) -> f64 {
    metrics::jain(results.flows.iter().map(|row| row.placed_in_window as f64)).unwrap()
}

/// In `make test` for two seconds; before a release with `TRIMLINE_SEEDS=10`, for ten.
#[test]
fn long_flows_share_a_link() {
    let seeds = crate::drawn::setting("TRIMLINE_SEEDS", 0);
    let (last, seconds) = if seeds == 0 { (1, 2) } else { (seeds, 10) };
    for rule in ["newreno", "cubic", "dctcp"] {
        for flows in [2, 3, 4, 8] {
            for seed in 1..=last {
                let found = fairness(&star(rule, flows, seed, seconds, &[]));
                println!("{rule}, {flows} flows, seed {seed}: {found:.3}");
                assert!(found >= 0.9, "{rule}, {flows} flows, seed {seed}: {found}");
            }
        }
    }
}

/// Hosts in step: one of two flows gets nothing, and the run says so.
#[test]
fn a_starved_flow_is_named() {
    let results = star("newreno", 2, 1, 10, &crate::EXACT);
    assert!(fairness(&results) < 0.51, "{}", fairness(&results));
    let said = |w: &String| w.contains("unbounded flows that got less");
    assert!(results.summary.warnings.iter().any(said), "{:?}", results.summary.warnings);
}
