//! Tables of traffic that share one drawn permutation (specs/mptcp.md#6), at rates of the
//! whole network; hotspots; heartbeats.

use std::collections::BTreeSet;
use std::path::Path;

use metrics::FlowRow;
use trimline_scenario::{Options, Results, Scenario, evaluate};

/// Two transports on sixteen hosts around one switch.
const STAR: &str = r#"
    name = "star"
    seed = 1
    topology = { kind = "star", hosts = 16, link_rate = "10Gbps", link_delay = "1us" }
    queue = { kind = "drop-tail", capacity = "100 packets" }
    routing = { mode = "single" }
    transport = [
        { name = "a", kind = "tcp", rule = "newreno", recovery = "newreno", ecn = false, preset = "linux-datacenter", mss = "1460B" },
        { name = "b", kind = "phost", preset = "ndp-paper", payload = "1436B" },
    ]
"#;

fn load(rest: &str) -> Result<Scenario, String> {
    let parsed = Scenario::parse("star.toml", &format!("{STAR}{rest}"), Path::new(""), &[]);
    parsed.map_err(|e| e.render(false))
}

fn run(rest: &str) -> Results {
    let scenario = load(rest).unwrap_or_else(|e| panic!("{e}"));
    evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

fn of_table(results: &Results, table: u16) -> impl Iterator<Item = &FlowRow> {
    results.flows.iter().filter(move |row| row.traffic == table)
}

fn pairs(results: &Results, table: u16) -> BTreeSet<(u32, u32)> {
    of_table(results, table).map(|row| (row.src, row.dst)).collect()
}

/// specs/mptcp.md#6: a third of the pairs carries long flows, over the others runs one Poisson
/// process.
#[test]
fn long_and_short_flows_share_a_permutation() {
    let results = run(r#"
        measure = { to = "20ms" }
        [[traffic]]
        name = "long"
        kind = "permutation"
        share = 0.33
        size = "unbounded"
        transport = "a"
        [[traffic]]
        name = "short"
        kind = "poisson"
        rest_of = "long"
        message_rate = 50000
        until = "10ms"
        size = "2KB"
        transport = "a"
    "#);
    let (long, short) = (pairs(&results, 0), pairs(&results, 1));
    assert_eq!((long.len(), short.len()), (5, 11), "0.33 x 16 = 5.28, rounded down");
    let both = || long.iter().chain(&short);
    assert_eq!(both().map(|pair| pair.0).collect::<BTreeSet<_>>().len(), 16, "each sends to one");
    assert_eq!(both().map(|pair| pair.1).collect::<BTreeSet<_>>().len(), 16, "and hears of one");
    assert!(both().all(|(src, dst)| src != dst));
    // 500 messages of the whole network in 10 ms, sigma 22; of each pair 45, sigma 7.
    let count = of_table(&results, 1).count();
    assert!(count.abs_diff(500) < 110, "{count}");
    for src in short.iter().map(|pair| pair.0) {
        let own = of_table(&results, 1).filter(|row| row.src == src).count();
        assert!(own.abs_diff(45) < 33, "host {src}: {own}");
    }
    let last = of_table(&results, 1).map(|row| row.start.0).max();
    assert!(last.is_some_and(|at| at < 10_000_000_000), "nothing after `until`: {last:?}");
    assert!(of_table(&results, 1).all(|row| row.finish.is_some()), "drained");
    let names: Vec<&str> = results.summary.traffic.keys().map(String::as_str).collect();
    assert_eq!(names, ["long", "short"]);
}

/// Two transports side by side: by host, with shares; by message, with two Poisson processes over
/// the same pairs, whose sum is one of which every message draws its transport.
#[test]
fn fleets_mix_by_host_and_by_flow() {
    let results = run(r#"
        [[traffic]]
        name = "by-host"
        kind = "permutation"
        share = 0.25
        size = "20KB"
        transport = "a"
        [[traffic]]
        name = "other-hosts"
        kind = "permutation"
        rest_of = "by-host"
        share = 0.25
        size = "20KB"
        transport = "b"
        [[traffic]]
        name = "by-flow"
        kind = "poisson"
        rest_of = "other-hosts"
        message_rate = 25000
        until = "10ms"
        size = "2KB"
        transport = "a"
        [[traffic]]
        kind = "poisson"
        pairs_of = "by-flow"
        message_rate = 75000
        until = "10ms"
        size = "2KB"
        transport = "b"
    "#);
    let parts = [0, 1, 2, 3].map(|table| pairs(&results, table));
    assert_eq!([0, 1, 2].map(|i: usize| parts[i].len()), [4, 4, 8]);
    let all: BTreeSet<_> = parts[..3].iter().flatten().collect();
    assert_eq!(all.len(), 16, "nobody's pair is another's");
    assert_eq!(parts[2], parts[3]);
    let counts = [2, 3].map(|table| of_table(&results, table).count());
    assert!(counts[0].abs_diff(250) < 80 && counts[1].abs_diff(750) < 140, "{counts:?}");
    // Without an unbounded flow the run ends by itself when all is delivered.
    assert!(results.flows.iter().all(|row| row.finish.is_some()));
}

/// Adding a table changes nobody else's draws, and neither does who carries a table.
#[test]
fn the_permutation_is_drawn_once() {
    let long = "[[traffic]]\nname = \"long\"\nkind = \"permutation\"\nshare = 0.5\nsize = \"9KB\"\n\
                transport = \"a\"\n";
    let rest = "[[traffic]]\nkind = \"permutation\"\nrest_of = \"long\"\nsize = \"9KB\"\n\
                transport = \"b\"\n";
    let with = run(&format!("{long}{rest}"));
    let alone = run(long);
    assert_eq!(pairs(&with, 0), pairs(&alone, 0));
    let other = run(&format!("{}{rest}", long.replace("\"a\"", "\"b\"")));
    assert_eq!(pairs(&with, 1), pairs(&other, 1));
}

#[test]
fn hotspots_draw_their_share_of_the_traffic() {
    let results = run(r#"
        [traffic]
        kind = "poisson"
        message_rate = 200000
        until = "10ms"
        hotspots = "0-1"
        hotspot_share = 0.5
        size = "1KB"
        transport = "a"
    "#);
    let total = results.flows.len();
    let hot = results.flows.iter().filter(|row| row.dst < 2).count();
    // Of 2000, sigma 22.
    assert!((hot as f64 / total as f64 - 0.5).abs() < 0.06, "{hot} of {total}");
    let others: BTreeSet<u32> = results.flows.iter().map(|row| row.dst).collect();
    assert_eq!(others.len(), 16, "the rest is uniform over the others");
}

/// The incast option of the spec's specs/mptcp.md#6: ten workers, all at once, at each heartbeat.
#[test]
fn a_heartbeat_repeats_the_same_flows() {
    let results = run(r#"
        [traffic]
        kind = "incast"
        receiver = 3
        senders = 10
        size = "7KB"
        every = "5ms"
        until = "15ms"
        transport = "a"
    "#);
    let mut starts: Vec<u64> =
        results.flows.iter().map(|row| row.start.0 / 1_000_000_000).collect();
    starts.sort_unstable();
    starts.dedup_by_key(|ms| *ms);
    assert_eq!(starts, [0, 5, 10], "and none at 15 ms");
    assert_eq!(results.flows.len(), 30);
    assert_eq!(pairs(&results, 0).len(), 10, "the same workers");
}

#[test]
fn impossible_tables_say_what_is_wrong() {
    let long = "[[traffic]]\nname = \"long\"\nkind = \"permutation\"\nsize = \"9KB\"\n\
                transport = \"a\"\nshare = 0.75\n";
    let rest = format!(
        "{long}[[traffic]]\nkind = \"permutation\"\nsize = \"9KB\"\n\
                transport = \"a\"\n"
    );
    let again = format!(
        "rest_of = \"long\"\nshare = 0.125\n{}rest_of = \"long\"",
        rest.trim_start_matches(long)
    );
    let poisson = "[traffic]\nkind = \"poisson\"\nsize = \"1KB\"\nuntil = \"1ms\"\n\
                transport = \"a\"\n";
    let incast = "[traffic]\nkind = \"incast\"\nsenders = 2\nreceiver = 0\ntransport = \"a\"\n";
    for (text, says) in [
        (format!("{rest}rest_of = \"lung\""), "did you mean `long`"),
        (format!("{rest}rest_of = \"long\"\npairs_of = \"long\""), "exclude each other"),
        (format!("{rest}rest_of = \"long\"\nshare = 0.5"), "comes to 1.25"),
        (format!("{rest}{again}"), "already taken these pairs"),
        (format!("{rest}{again}"), "give that table a `name`"),
        (format!("{rest}name = \"b\"\n{again}"), "`rest_of = \"b\"` takes what that one left"),
        (format!("{rest}rest_of = \"long\"\nhosts = \"0-3\""), "`hosts` has no effect here"),
        (format!("{rest}pairs_of = \"long\"\nshare = 0.5"), "`share` has no effect here"),
        (rest.replace("share = 0.75", "share = 0.01"), "so few pairs comes to none"),
        (poisson.to_owned(), "`load = 0.6`"),
        (format!("{poisson}load = 0.1\nmessage_rate = 10"), "exclude each other"),
        (format!("{poisson}load = 0.1\nhotspots = 0"), "hotspot_share"),
        (
            format!("{poisson}load = 0.1\ndestinations = \"1-3\"\nhotspots = 0\nhotspot_share = 1"),
            "is a hotspot and no destination",
        ),
        (format!("{incast}size = \"1KB\"\nevery = \"1ms\""), "`until = \"20s\"`"),
        (format!("{incast}size = \"1KB\"\nevery = 0\nuntil = \"1s\""), "too often"),
        (format!("{incast}size = \"unbounded\"\nevery = \"1ms\"\nuntil = \"1s\""), "must end"),
    ] {
        let error = load(&text).map(drop).expect_err(says);
        assert!(error.contains(says), "{says}: {error}");
    }
}
