//! The barrier-synchronised incast: against what the protocol and the wire allow, and the
//! invariants of specs/incast.md#7.

use std::path::Path;

use metrics::JobRow;
use trimline_scenario::{Options, Results, Scenario, evaluate};

/// The study's base case: 1 Gb/s, 25 us, 64 packets of 1040 B, at most 20 of them in flight.
const INCAST: &str = include_str!("../../../../scenarios/incast_barrier.toml");

fn parse(text: &str, sets: &[&str]) -> Result<Scenario, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Scenario::parse("incast.toml", text, Path::new(""), &sets).map_err(|e| e.render(false))
}

fn run(sets: &[&str]) -> Results {
    let scenario = parse(INCAST, sets).unwrap_or_else(|e| panic!("{e}"));
    evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

/// The same for half a simulated second.
fn run_briefly(sets: &[&str]) -> Results {
    run(&[&["traffic.0.until=500ms"], sets].concat())
}

const SRU: u64 = 256 * 1024;

/// One sender: nothing is lost, and a block takes what the links take (I1). The window is 20
/// packets, which is more than the pipe holds, and stays open from block to block.
#[test]
fn a_lone_sender_fills_the_link_but_for_the_request() {
    let results = run_briefly(&[&["traffic.0.senders=1"], &crate::EXACT[..]].concat());
    let packets = results.summary.packets;
    assert_eq!((packets.dropped, packets.retransmitted), (0, 0));
    // The request 50 us, two links of 25 us; 262 packets of 1040 B and one of 184 B at 8 ns a byte,
    // and the first once more for the second link.
    let alone = 50.0 + 50.0 + 262.0 * 8.32 + 1.472 + 8.32;
    let jobs = results.summary.jobs;
    assert!((jobs.time_us.min.unwrap() - alone).abs() < 1e-6, "{jobs:?}");
    let most = SRU as f64 * 8.0 / alone / 1e3;
    let goodput = jobs.goodput_gbps.unwrap();
    // The first block is slow start.
    assert!(goodput < most && goodput > 0.99 * most, "{goodput} of {most}");
}

/// Every block has all of every part (I2), they follow each other without a gap, and an idle link
/// is what goodput lacks (I4).
#[test]
fn blocks_are_whole_and_follow_each_other() {
    let results = run_briefly(&["traffic.0.senders=16"]);
    assert!(results.jobs.len() > 1, "{:?}", results.jobs);
    for job in &results.jobs {
        assert!(job.completed && job.host == 0);
        assert_eq!((job.bytes, job.parts, job.in_time), (16 * SRU, 16, 16));
    }
    assert!(results.jobs.windows(2).all(|pair| pair[0].end == pair[1].start));
    let until = units::Time(500_000_000_000);
    let (last, before) = results.jobs.split_last().unwrap();
    assert!(last.end >= until && before.iter().all(|job| job.end < until));
    let jobs = results.summary.jobs;
    assert!(results.summary.packets.dropped > 0, "it is a collapse");
    // Headers are 40 of 1040 bytes; what is sent twice is a little more.
    let used = jobs.goodput_gbps.unwrap() * 1.04;
    let idle = jobs.idle_overall.unwrap();
    assert!((1.0 - idle - used).abs() < 0.05 * used, "{idle} idle, {used} used");
    assert_eq!(results.summary.traffic["blocks"].jobs, jobs);
}

/// Below the onset, N windows fit into pipe and buffer: nothing is lost (I3).
#[test]
fn nothing_is_lost_below_the_onset() {
    // 3 x 20 packets are less than the 12 of the pipe and the 64 of the buffer.
    let results = run_briefly(&["traffic.0.senders=3"]);
    assert_eq!(results.summary.packets.dropped, 0);
    assert!(results.summary.jobs.goodput_gbps.unwrap() > 0.9);
}

/// Equal seeds, equal runs; another seed changes the order of the requests, and so the run (I8).
#[test]
fn a_seed_is_an_order() {
    let of = |seed: &str| {
        let results = run_briefly(&["traffic.0.blocks=3", "traffic.0.sources=1-8", seed]);
        let mut flows = results.flows;
        flows.sort_unstable_by_key(|flow| flow.start);
        let order: Vec<u32> = flows.iter().map(|flow| flow.src).collect();
        (results.summary.digest, order)
    };
    let (first, second) = (of("seed=1"), of("seed=2"));
    assert_eq!(first, of("seed=1"));
    assert_ne!(first.0, second.0);
    let sorted = |order: &[u32]| {
        let mut order = order.to_vec();
        order.sort_unstable();
        order
    };
    for block in 0..3 {
        let part = block * 8..block * 8 + 8;
        assert_ne!(first.1[part.clone()], second.1[part.clone()]);
        assert_eq!(sorted(&first.1[part]), (1..9).collect::<Vec<_>>());
    }
}

/// Fresh connections start from the initial window in each block, persistent ones do not.
#[test]
fn persistent_connections_keep_their_window() {
    let median = |connections: &str| {
        let sets = ["traffic.0.senders=1", connections];
        run_briefly(&sets).summary.jobs.time_us.p50.unwrap()
    };
    let [persistent, fresh] =
        ["persistent", "fresh"].map(|kind| median(&format!("traffic.0.connections={kind}")));
    // From 2 packets, some round trips of 117 us are not filled.
    assert!(fresh > persistent + 100.0, "{fresh} {persistent}");
}

/// A sender that is cut off gives up: the block is reported, the run ends, and says so.
#[test]
fn a_failed_part_ends_the_barrier_and_is_reported() {
    let cut = "fault=[{at=\"20ms\", link=\"host 3 -> tor 0\", action=\"down\", announce=false}]";
    let sets = ["traffic.0.senders=8", "transport.max_timeouts=2", "routing.reroute_after=1s", cut];
    let results = run_briefly(&[&sets[..], &["traffic.0.sources=1-8"]].concat());
    let failed: Vec<&JobRow> = results.jobs.iter().filter(|job| !job.completed).collect();
    let [failed] = failed[..] else { panic!("{failed:?}") };
    assert_eq!((failed.parts, failed.in_time, failed.bytes), (8, 7, 7 * SRU));
    assert_eq!(results.summary.jobs.failed, 1);
    assert_eq!(results.summary.jobs.completed + 1, results.jobs.len() as u64);
    let warned =
        results.summary.warnings.iter().any(|w| w.contains("a message of theirs failed: 1,"));
    assert!(warned, "{:?}", results.summary.warnings);
    assert!(results.jobs.iter().all(|job| job.end <= failed.end), "no block comes after it");
}

/// The study's cap for the base case: a base round trip of 100 us and 64 packets of 1040 B.
const CAP: [&str; 4] = [
    "traffic.0.cap=dynamic",
    "traffic.0.cap_rate=1Gbps",
    "traffic.0.cap_rtt=100us",
    "traffic.0.cap_queue=66560B",
];

/// With the dynamic cap, windows fit into pipe and buffer, and nothing is lost (I7). 79 060 bytes
/// are 76 packets, so up to 64 senders have one each at least.
#[test]
fn the_dynamic_cap_loses_nothing() {
    for senders in [1, 5, 16, 64] {
        let senders = format!("traffic.0.senders={senders}");
        let results = run_briefly(&[&CAP[..], &[&senders]].concat());
        let (packets, jobs) = (results.summary.packets, results.summary.jobs);
        assert_eq!((packets.dropped, packets.retransmitted), (0, 0), "{senders}");
        assert!(jobs.goodput_gbps.unwrap() > 0.9, "{senders}: {jobs:?}");
    }
}

/// Twice the cap brings the collapse back: it is the cap that prevents it.
#[test]
fn a_cap_for_half_the_senders_collapses() {
    let results =
        run_briefly(&[&CAP[..], &["traffic.0.senders=16", "traffic.0.cap_senders=8"]].concat());
    assert!(results.summary.packets.dropped > 0);
    assert!(results.summary.jobs.goodput_gbps.unwrap() < 0.3);
}

/// The study's caveat: each job knows its own senders only, so a second one that joins overflows
/// what the first had planned for itself.
#[test]
fn a_second_job_that_joins_breaks_the_first_one_s_plan() {
    let second = "name=\"second\", kind=\"barrier\", receiver=0, sources=\"33-64\", senders=32, \
                  size=\"256KiB\", request_latency=\"50us\", request_gap=0, connections=\"persistent\", \
                  start=\"300ms\", until=\"600ms\", cap=\"dynamic\", cap_rate=\"1Gbps\", \
                  cap_rtt=\"100us\", cap_queue=\"66560B\"";
    let mut base: toml::Table = toml::from_str(INCAST).unwrap();
    let tables = base["traffic"].as_array_mut().unwrap();
    let second: toml::Table = toml::from_str(&format!("x = {{ {second} }}")).unwrap();
    tables.push(second["x"].clone());
    let own = ["senders=32", "sources=1-32", "until=600ms"].map(|set| format!("traffic.0.{set}"));
    let sets: Vec<&str> = own.iter().map(String::as_str).chain(CAP).collect();
    let scenario = parse(&toml::to_string(&base).unwrap(), &sets).unwrap_or_else(|e| panic!("{e}"));
    let results = evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    let traffic = &results.summary.traffic;
    assert!(traffic["blocks"].jobs.completed > 1 && traffic["second"].jobs.completed > 0);
    let joined = units::Time(300_000_000_000);
    let of_first = |job: &&JobRow| job.traffic == 0;
    let (alone, beside): (Vec<&JobRow>, Vec<&JobRow>) =
        results.jobs.iter().filter(of_first).partition(|job| job.end < joined);
    let longest = |jobs: &[&JobRow]| jobs.iter().map(|job| job.time()).max().unwrap();
    // 67 ms of wire time each; then the link is shared, and one loss costs a timeout of 200 ms.
    assert!(longest(&alone).as_us_f64() < 75_000.0, "{:?}", longest(&alone));
    assert!(longest(&beside).as_us_f64() > 200_000.0, "{:?}", longest(&beside));
    assert!(results.summary.packets.dropped > 0);
}

#[test]
fn impossible_barriers_are_located() {
    for (sets, says) in [
        (&["traffic.0.block=5B"][..], "exclude each other"),
        (&["traffic.0.size=unbounded"], "must end"),
        (&["traffic.0.request_latency=0"], "`request_latency`"),
        (&["traffic.0.senders=65"], "`senders`"),
        (&["traffic.0.receiver=65"], "`receiver`"),
        (&["traffic.0.until=0"], "nothing would ever begin"),
        (&["traffic.0.blocks=0"], "`blocks`"),
        (&["traffic.0.connections=some"], "unknown connections"),
        (&["traffic.0.cap_rtt=1ms"], "only with `cap = \"dynamic\"`"),
        (&["traffic.0.cap=dynamic"], "add `cap_rate = ...` (rate"),
        (&[CAP[0], CAP[1], CAP[2], CAP[3], "traffic.0.cap_senders=0"], "`cap_senders`"),
        (&["transport={kind='cbr', payload='1KB', header='40B', rate='1Mbps'}"], "never learns"),
        (
            &[
                CAP[0],
                CAP[1],
                CAP[2],
                CAP[3],
                "transport={kind='ndp', preset='paper', payload='1KB', initial_window=9}",
            ],
            "no window that a cap could bound",
        ),
    ] {
        let error = parse(INCAST, sets).map(|_| ()).unwrap_err();
        assert!(error.contains(says) && error.contains("help: "), "{sets:?}: {error}");
    }
    let little = INCAST.replace("size = \"256KiB\"", "block = \"7B\"");
    let error = parse(&little, &[]).map(|_| ()).unwrap_err();
    assert!(error.contains("a block of 7 bytes for 8 senders"), "{error}");
    let endless = INCAST.replace("until = \"20s\"", "");
    let error = parse(&endless, &[]).map(|_| ()).unwrap_err().replace('\n', " ");
    assert!(error.contains("a barrier without `until` and `blocks`"), "{error}");
}
