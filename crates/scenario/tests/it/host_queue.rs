//! `[host] queue`: the transmit queue of hosts.

use std::path::Path;

use trimline_scenario::{Options, Scenario, evaluate};

/// Three senders of one host's link: more than it can carry. TCP with windows of 40 segments.
const SCENARIO: &str = r#"
    name = "host queue"
    seed = 1
    topology = { kind = "star", hosts = 4, link_rate = "100Mbps", link_delay = "20us" }
    queue = { kind = "drop-tail", capacity = "101 packets" }
    routing = { mode = "single" }
    measure = { to = "2s" }
    [transport]
    kind = "tcp"
    rule = "newreno"
    recovery = "newreno"
    ecn = false
    preset = "ns3-3.17"
    mss = "1400B"
    [traffic]
    kind = "random"
    sources = 0
    flows = 3
    size = "unbounded"
"#;

fn load(host: &str) -> Result<Scenario, String> {
    let text = format!("{host}\n{SCENARIO}");
    let parsed = Scenario::parse("host.toml", &text, Path::new(""), &[]);
    parsed.map_err(|e| e.render(false))
}

/// The digest, packets lost in hosts, packets lost elsewhere, and goodput.
fn run(host: &str, options: &Options) -> (String, u64, u64, f64) {
    let scenario = load(host).unwrap_or_else(|e| panic!("{e}"));
    let results = evaluate(&scenario, options, &mut |_| ()).unwrap_or_else(|e| panic!("{e}"));
    let summary = results.summary;
    let packets = summary.packets;
    (
        summary.digest,
        packets.host_dropped,
        packets.dropped,
        summary.flows.goodput_gbps.unwrap_or_default(),
    )
}

#[test]
fn a_host_can_lose_its_own_packets() {
    let checked = Options { check: true, ..Options::default() };
    let (without, lost, elsewhere, _) = run("", &checked);
    assert_eq!((lost, elsewhere), (0, 0), "three windows of 65535 B wait in the transport");
    let (digest, lost, elsewhere, goodput) = run("host = { queue = \"100 packets\" }", &checked);
    // 3 x 46 segments do not fit 100 packets and the wire.
    assert!(lost > 10, "{lost}");
    assert_eq!(elsewhere, 0, "and nowhere else");
    // 1400 of 1460 B, and the losses leave the link busy.
    assert!((0.0920..0.0959).contains(&goodput), "{goodput}");
    assert_ne!(digest, without);
    // A queue that is never full changes nothing but where packets wait.
    let (_, lost, elsewhere, same) = run("host = { queue = \"150 packets\" }", &checked);
    assert_eq!((lost, elsewhere), (0, 0));
    assert!((0.0920..0.0959).contains(&same), "{same}");
    for threads in [2, 3] {
        let options = Options { threads: Some(threads), ..checked.clone() };
        assert_eq!(run("host = { queue = \"100 packets\" }", &options).0, digest, "{threads}");
    }
}

#[test]
fn a_device_queue_is_counted_in_packets() {
    for (host, says) in [
        ("host = { queue = \"9000B\" }", "100 packets"),
        ("host = { queue = 5 }", "5 has no unit"),
        ("host = { queue = \"0 packets\" }", "packet"),
        ("host = { kueue = \"5 packets\" }", "queue"),
    ] {
        let error = load(host).map(drop).expect_err(says);
        assert!(error.contains(says), "{says}: {error}");
    }
}

/// One message at a time between two idle hosts.
const IDLE: &str = r#"
    name = "stack"
    seed = 1
    topology = { kind = "star", hosts = 2, link_rate = "10Gbps", link_delay = "2us" }
    queue = { kind = "drop-tail", capacity = "100 packets" }
    routing = { mode = "single" }
    measure = { to = "20ms", rtt = true }
    host = { clock_ppm = 0, send_jitter = "0", stack = { median = "7us", sigma = 0, hosts = "all" } }
    [transport]
    kind = "tcp"
    rule = "newreno"
    recovery = "newreno"
    ecn = false
    preset = "linux-datacenter"
    mss = "1448B"
    [traffic]
    kind = "closed-loop"
    sources = 0
    destinations = 1
    connections = 1
    size = "1448B"
    gap = "50us"
    gap_kind = "fixed"
    keep_destination = true
"#;

/// A round trip crosses the stack twice at each end that has one. Two links of 2 us, a packet of
/// 1500 B and its acknowledgement of 40 B without it.
#[test]
fn a_stack_is_crossed_twice_at_each_end() {
    let alone = 4.0 * 2.0 + 2.0 * (1500.0 + 40.0) * 0.0008;
    for (set, crossings) in [
        ("host.stack.median=0", 0.0),
        ("host.stack.hosts=0", 2.0),
        ("host.stack.hosts=1", 2.0),
        ("host.stack.hosts=all", 4.0),
    ] {
        let scenario = Scenario::parse("stack.toml", IDLE, Path::new(""), &[set.to_owned()]);
        let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
        let results = evaluate(&scenario, &Options::default(), &mut |_| ());
        let rtt = results.unwrap_or_else(|e| panic!("{e}")).summary.rtt_us;
        let [min, max] = [rtt.min, rtt.max].map(Option::unwrap);
        // Stamps of TCP are in units of 100 ns or better.
        assert!((min - alone - 7.0 * crossings).abs() < 0.2 && max - min < 0.2, "{set}: {rtt:?}");
    }
}

/// With a stack as without one, whatever order events come in.
#[test]
fn a_stack_draws_the_same_in_any_run() {
    let digest = |options: &Options| {
        let sets = ["host.stack.sigma=0.5".to_owned()];
        let scenario = Scenario::parse("stack.toml", IDLE, Path::new(""), &sets);
        let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
        let results = evaluate(&scenario, options, &mut |_| ()).unwrap_or_else(|e| panic!("{e}"));
        (results.summary.digest, results.summary.rtt_us.stdev)
    };
    let (first, stdev) = digest(&Options::default());
    // Four crossings of mean 7.93 us and deviation 4.23 us: sqrt(4) times that.
    assert!(stdev.is_some_and(|stdev| (stdev - 8.5).abs() < 2.5), "{stdev:?}");
    let other = Options { heap: true, eager: true, check: true, ..Options::default() };
    assert_eq!(digest(&other).0, first);
}
