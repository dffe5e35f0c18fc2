//! Ten thousand malformed scenarios: each is read or gives an error with a place, none panics.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use trimline_scenario::Scenario;

const SHIPPED: [&str; 11] = [
    include_str!("../../../../scenarios/first.toml"),
    include_str!("../../../../scenarios/ndp_permutation_432.toml"),
    include_str!("../../../../scenarios/ndp_incast_100x135KB.toml"),
    include_str!("../../../../scenarios/demo/websearch_newreno.toml"),
    include_str!("../../../../scenarios/htsim/connection_matrix.toml"),
    include_str!("../../../../scenarios/incast_barrier.toml"),
    include_str!("../../../../scenarios/partition_aggregate.toml"),
    include_str!("../../../../scenarios/rpc_reads_and_writes.toml"),
    // A switch with every key of its own.
    r#"
name = "switch"
seed = 3
topology = { kind = "star", hosts = 5, link_rate = "10Gbps", link_delay = "1us" }
routing.mode = "ecmp"
traffic = { kind = "all-to-all", size = "10KB" }
transport = { kind = "tcp", rule = "newreno", recovery = "newreno", ecn = false, preset = "ns2", mss = "1000B" }
[queue]
kind = "drop-tail"
capacity = "80 packets"
red_min = "20 packets"
red_max = "40 packets"
red_probability = 0.1
red_weight = 0.002
mark_at = "departure"
not_ect = "drop"
[buffer]
kind = "shared"
size = "4MB"
alpha = 0.5
"#,
    // Everything that the shipped ones do not use.
    r#"
name = "all"
seed = 3
[topology]
kind = "dumbbell"
left_hosts = 3
right_hosts = 2
link_rate = "10Gbps"
link_delay = "1us"
bottleneck_rate = "1Gbps"
[[topology.link]]
link = "host 1 -> tor 0"
rate = "5Gbps"
delay = "3us"
one_way = true
[queue]
kind = "drop-tail"
capacity = "80 packets"
ecn_threshold = "20 packets"
[routing]
mode = "random"
reroute_after = "1ms"
[transport]
kind = "tcp"
rule = "newreno"
recovery = "newreno"
ecn = false
preset = "ns2"
mss = "1000B"
increase = "per-byte"
slow_start_limit = 2.0
delayed_ack = "40ms"
[[traffic]]
kind = "closed-loop"
connections = 2
gap = "10us"
gap_kind = "exponential"
keep_destination = true
size = "5KB"
[[traffic]]
kind = "barrier"
receiver = 1
senders = 3
block = "20KB"
request_latency = "4us"
request_gap = "1us"
connections = "fresh"
start = "1ms"
blocks = 5
cap = "dynamic"
cap_rate = "1Gbps"
cap_rtt = "100us"
cap_queue = "66560B"
cap_senders = 6
[[traffic]]
kind = "random"
flows = 4
distribution = "homa-w3"
priority = 3
[[fault]]
at = "1ms"
link = "tor 0 -> tor 1"
action = "down"
[[fault]]
at = "2ms"
link = "tor 0 -> tor 1"
action = "up"
[[fault]]
at = "2ms"
until = "3ms"
switch = "tor 1"
action = "flap"
period = "100us"
down_share = 0.25
announce = false
[[fault]]
at = "1ms"
link = "tor 0 -> tor 1"
one_way = true
action = "rate"
rate = "1Mbps"
[[fault]]
at = "1ms"
link = "host 0 -> tor 0"
action = "loss"
probability = 0.5
[measure]
from = "1ms"
to = "3ms"
limit = "9ms"
"#,
    r#"
name = "file"
seed = 3
topology = { kind = "star", hosts = 5, link_rate = "10Gbps", link_delay = "1us" }
queue = { kind = "ndp", capacity = "8 packets", bounce = false }
routing.mode = "spray"
routing.path_encoding = "core-address"
traffic = { kind = "all-to-all", size = "10KB", start = "5us" }
[transport]
kind = "ndp"
preset = "paper"
payload = "1500B"
initial_window = 12
"#,
];

/// What people and accidents put where something else belongs.
const NASTY: [&str; 24] = [
    "-1",
    "0",
    "1e308",
    "nan",
    "inf",
    "99999999999999999999",
    "9223372036854775807",
    "\"\"",
    "\"unbounded\"",
    "\"-5KB\"",
    "\"5\"",
    "\"5XB\"",
    "\"99999999999GB\"",
    "\"10Gbps\"",
    "\"1ns\"",
    "true",
    "[]",
    "{}",
    "[[]]",
    "1979-05-27",
    "\"\\u0000\"",
    "\"é漢\"",
    "\"agg 99 -> tor 1\"",
    "'''",
];

/// One way to damage a text.
#[derive(Debug, Clone)]
enum Damage {
    /// Everything from here on is missing.
    Cut(prop::sample::Index),
    /// A line is missing.
    DropLine(prop::sample::Index),
    /// A line stands twice.
    TwiceLine(prop::sample::Index),
    /// Two lines have changed places.
    SwapLines(prop::sample::Index, prop::sample::Index),
    /// Another value after the `=` of a line.
    Value(prop::sample::Index, prop::sample::Index),
    /// A character in between.
    Insert(prop::sample::Index, char),
    /// A character is missing.
    Remove(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        1 => index().prop_map(Damage::Cut),
        2 => index().prop_map(Damage::DropLine),
        2 => index().prop_map(Damage::TwiceLine),
        2 => (index(), index()).prop_map(|(a, b)| Damage::SwapLines(a, b)),
        4 => (index(), index()).prop_map(|(a, b)| Damage::Value(a, b)),
        3 => (index(), prop_oneof![Just('='), Just('"'), Just('['), Just('-'), Just('.'), any::<char>()])
            .prop_map(|(a, c)| Damage::Insert(a, c)),
        3 => index().prop_map(Damage::Remove),
    ]
}

fn apply(text: &str, damage: &Damage) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut chars: Vec<char> = text.chars().collect();
    if lines.is_empty() || chars.is_empty() {
        return text.to_owned();
    }
    let (n, m) = (lines.len(), chars.len());
    match damage {
        Damage::Cut(at) => return chars[..at.index(m)].iter().collect(),
        Damage::Insert(at, c) => chars.insert(at.index(m), *c),
        Damage::Remove(at) => drop(chars.remove(at.index(m))),
        Damage::DropLine(at) => drop(lines.remove(at.index(n))),
        Damage::TwiceLine(at) => lines.insert(at.index(n), lines[at.index(n)]),
        Damage::SwapLines(a, b) => lines.swap(a.index(n), b.index(n)),
        Damage::Value(at, with) => {
            let key = lines[at.index(n)].split('=').next().unwrap_or_default();
            let line = format!("{key}= {}", NASTY[with.index(NASTY.len())]);
            lines[at.index(n)] = &line;
            return lines.join("\n");
        }
    }
    match damage {
        Damage::Insert(..) | Damage::Remove(_) => chars.into_iter().collect(),
        _ => lines.join("\n"),
    }
}

#[test]
fn ten_thousand_malformed_scenarios_are_read_or_give_a_place() {
    let config = ProptestConfig { cases: 10_000, failure_persistence: None, ..Default::default() };
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/htsim"));
    let counts = std::cell::Cell::new((0u32, 0u32));
    let strategy = (0..SHIPPED.len(), prop::collection::vec(damage(), 1..4));
    TestRunner::new(config)
        .run(&strategy, |(which, damages)| {
            let text = damages.iter().fold(SHIPPED[which].to_owned(), |t, d| apply(&t, d));
            let (r, a) = counts.get();
            match Scenario::parse("x.toml", &text, dir, &[]) {
                Ok(_) => counts.set((r, a + 1)),
                Err(error) => {
                    counts.set((r + 1, a));
                    let (file, line, column) = error.location().expect("a place");
                    prop_assert!(line >= 1 && column >= 1);
                    // Or in a file that the scenario names.
                    prop_assert!(file != "x.toml" || line <= text.lines().count() + 1, "{error}");
                    prop_assert!(error.render(false).contains(file), "{error}");
                }
            }
            Ok(())
        })
        .unwrap();
    let (refused, read) = counts.get();
    assert!(refused > 5_000 && read > 200, "{refused} refused, {read} read: not much of a test");
}

#[test]
fn random_set_options_are_applied_or_give_a_place() {
    let config = ProptestConfig { cases: 2_000, failure_persistence: None, ..Default::default() };
    TestRunner::new(config)
        .run(&"[a-z_.0-9=\"\\[\\]{} é-]{0,30}", |edit| {
            let dir = Path::new(".");
            if let Err(error) = Scenario::parse("x.toml", SHIPPED[0], dir, &[edit]) {
                prop_assert!(error.location().is_some(), "{error}");
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn the_undamaged_ones_are_read() {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/htsim"));
    for text in SHIPPED {
        if let Err(error) = Scenario::parse("x.toml", text, dir, &[]) {
            panic!("{}", error.render(false));
        }
    }
}
