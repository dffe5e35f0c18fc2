//! The barrier-synchronised incast: against what the protocol and the wire allow, and the invariants
//! of specs/incast.md, section 7.

use std::path::Path;

use metrics::JobRow;
use trimline_scenario::{Options, Results, Scenario, evaluate};

/// The study's base case: 1 Gb/s, 25 us, 64 packets of 1040 B, at most 20 of them in flight.
const INCAST: &str = include_str!("../../../scenarios/incast_barrier.toml");

fn load(sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let scenario = Scenario::parse("incast.toml", INCAST, Path::new(""), &sets);
    scenario.unwrap_or_else(|e| panic!("{}", e.render(false)))
}

fn run(sets: &[&str]) -> Results {
    evaluate(&load(sets), &Options::default(), &mut |_| ()).unwrap_or_else(|e| panic!("{e}"))
}

/// The same for half a simulated second.
fn run_briefly(sets: &[&str]) -> Results {
    run(&[&["traffic.0.until=500ms"], sets].concat())
}

const SRU: u64 = 256 * 1024;

/// One sender: nothing is lost, and a block takes what the links take (I1). The window is 20 packets,
/// which is more than the pipe holds, and stays open from block to block.
#[test]
fn a_lone_sender_fills_the_link_but_for_the_request() {
    let results = run_briefly(&["traffic.0.senders=1"]);
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

/// Every block has all of every part (I2), they follow each other without a gap, and an idle link is
/// what goodput lacks (I4).
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
    let sets = ["traffic.0.senders=8", "transport.timeouts_max=2", "routing.reroute_after=1s", cut];
    let results = run_briefly(&[&sets[..], &["traffic.0.sources=1-8"]].concat());
    let failed: Vec<&JobRow> = results.jobs.iter().filter(|job| !job.completed).collect();
    let [failed] = failed[..] else { panic!("{failed:?}") };
    assert_eq!((failed.parts, failed.in_time, failed.bytes), (8, 7, 7 * SRU));
    assert_eq!(results.summary.jobs.failed, 1);
    assert_eq!(results.summary.jobs.completed + 1, results.jobs.len() as u64);
    let warned = results.summary.warnings.iter().any(|w| w.contains("1 jobs were given up"));
    assert!(warned, "{:?}", results.summary.warnings);
    assert!(results.jobs.iter().all(|job| job.end <= failed.end), "no block comes after it");
}
