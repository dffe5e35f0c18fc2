//! `measure.rtt`: the round-trip samples of transports among the results.

use std::path::Path;

use trimline_scenario::{Options, Results, Scenario, evaluate};

/// Two flows, one through a crowded port and one alone, between pods.
const SCENARIO: &str = r#"
    name = "samples"
    seed = 1
    topology = { kind = "fat-tree", k = 4, link_rate = "10Gbps", link_delay = "1us" }
    queue = { kind = "drop-tail", capacity = "200 packets", ecn_threshold = "30 packets" }
    routing = { mode = "ecmp" }
    measure = { from = "3ms", to = "8ms", rtt = true }
    [transport]
    kind = "tcp"
    rule = "dctcp"
    recovery = "sack"
    ecn = true
    preset = "linux-datacenter"
    mss = "1460B"
    initial_window = 10
    [[traffic]]
    name = "crowd"
    kind = "incast"
    receiver = 0
    senders = 4
    sources = "8-15"
    size = "unbounded"
    [[traffic]]
    name = "alone"
    kind = "random"
    sources = 5
    destinations = 1
    size = "unbounded"
"#;

fn run(sets: &[&str], threads: u32) -> Results {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("rtt.toml", SCENARIO, Path::new(""), &sets);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
    let options = Options { threads: Some(threads), ..Options::default() };
    evaluate(&scenario, &options, &mut |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn each_table_has_its_own_samples() {
    let summary = run(&[], 1).summary;
    let [crowd, alone] = ["crowd", "alone"].map(|name| summary.traffic[name].rtt_us);
    // A segment and its acknowledgement over six links of 1 us, with nothing else on the way.
    let least = 6.0 * (1500.0 + 40.0) * 0.0008 + 12.0;
    assert!(alone.min.unwrap() >= least - 0.2, "{alone:?} {least}");
    // Four flows keep some twenty packets of 1.2 us before the crowded port.
    let wait = crowd.mean.unwrap() - least;
    assert!((12.0..80.0).contains(&wait), "{crowd:?}");
    assert!(crowd.mean.unwrap() > alone.mean.unwrap() + 6.0, "{crowd:?} {alone:?}");
    assert_eq!(summary.rtt_us.max, Some(crowd.max.unwrap().max(alone.max.unwrap())));
}

/// READ: the samples are the reader's, of the messages that it reads.
#[test]
fn readers_have_samples_of_what_they_read() {
    let timely = r#"transport={ kind = "rdma", rule = "timely", preset = "paper", payload = "1000B", operation = "read" }"#;
    let one = run(&[timely], 1);
    let [crowd, alone] = ["crowd", "alone"].map(|name| one.summary.traffic[name].rtt_us);
    assert!(alone.min.unwrap() > 12.0 && crowd.mean.unwrap() > alone.mean.unwrap());
    assert_eq!(one.rtts, run(&[timely], 3).rtts);
}

/// Keeping samples changes nothing, nor do threads change samples.
#[test]
fn samples_change_nothing() {
    let (kept, not) = (run(&[], 1), run(&["measure.rtt=false"], 1));
    assert_eq!(kept.summary.digest, not.summary.digest);
    assert!(not.rtts.is_empty() && not.summary.rtt_us.mean.is_none());
    assert!(kept.rtts.len() > 100);
    assert_eq!(kept.rtts, run(&[], 4).rtts);
}
