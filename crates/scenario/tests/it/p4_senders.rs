//! `hpcc.p4`, `swift.p4`, `dcqcn.p4` and `nscc.p4` over the simulated fabric, from packets alone:
//! against closed forms and bounds of specs/rdma.md, and against the same rules as they are built
//! in, on the same fabric.

use crate::bottleneck;

use std::path::Path;

use bottleneck::{mean, stays, watch_scenario};
use trimline_scenario::{Options, Scenario, evaluate, simulate};
use units::{Dur, Time};

/// A scenario of `scenarios/p4`, changed.
fn load(name: &str, sets: &[&str]) -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/p4").join(name);
    let sets = sets.iter().chain(&crate::EXACT).map(|&set| set.to_owned());
    let sets: Vec<String> = sets.collect();
    Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

/// What the link to host 0 carried in a window of time, and its queue there.
#[derive(Debug)]
struct Seen {
    /// Bytes on the wire, as a part of what the link can carry.
    utilization: f64,
    /// Mean over time, bytes.
    queue: f64,
    /// For 99 % of the time it is not longer.
    p99: u64,
    /// Jain's index of what the sources have placed.
    fairness: f64,
    dropped: u64,
    trimmed: u64,
    pauses: u64,
}

fn see(scenario: &Scenario, gbps: f64, from: Time, to: Time) -> Seen {
    let (outcome, seen) = watch_scenario(scenario);
    let window = to.since(from).as_s_f64();
    let levels = seen.levels(from, Time(to.0 - Dur::from_us(10).0));
    let stays = stays(&levels);
    let whole: u64 = stays.iter().map(|stay| stay.1).sum();
    let mut left = whole / 100;
    let long = stays.iter().rev().find(|stay| {
        let covers = stay.1 >= left;
        left = left.saturating_sub(stay.1);
        covers
    });
    let mut shares = std::collections::BTreeMap::new();
    for message in &seen.messages {
        *shares.entry(message.key.src).or_insert(0.0) += message.placed_in_window as f64;
    }
    Seen {
        utilization: seen.arrived(from, to) as f64 * 8.0 / (gbps * 1e9 * window),
        queue: mean(&levels),
        p99: long.map_or(0, |stay| stay.0),
        fairness: metrics::jain(shares.into_values()).unwrap(),
        dropped: outcome.counters.dropped,
        trimmed: outcome.counters.trimmed,
        pauses: outcome.links.iter().map(|link| link.pfc.pauses).sum(),
    }
}

const fn us(n: u64) -> Time {
    Time(n * 1_000_000)
}

/// Who sends, in a P4 scenario and in its native one.
fn senders(n: u32) -> [String; 2] {
    [format!("traffic.sources=1-{n}"), format!("traffic.senders={n}")]
}

/// A P4 scenario and its native one with so many senders.
fn both(name: &str, n: u32, gbps: f64, window: (Time, Time)) -> [Seen; 2] {
    let [p4, native] = senders(n);
    let generated = load(&format!("{name}.toml"), &[&p4, "transport.backend=rust"]);
    let native = load(&format!("{name}_native.toml"), &[&native]);
    [generated, native].map(|scenario| see(&scenario, gbps, window.0, window.1))
}

/// specs/rdma.md#H2,H3,I10: n flows of N = 16 expected load the link to eta + (1 - eta) n / N, by
/// the increase that each adds (rounding packets keeps more than four of them below it); the queue
/// is a few packets, nobody is paused, and all is as it is with the rule that is built in.
#[test]
fn hpcc_leaves_a_link_a_little_below_full() {
    for n in [1, 2, 4, 8, 16] {
        let [p4, native] = both("hpcc", n, 100.0, (us(1000), us(2000)));
        let all = format!("{n} flows: {p4:?}, native {native:?}");
        let law = 0.95 + 0.05 * f64::from(n) / 16.0;
        assert!(p4.utilization > 0.95 && p4.utilization < law + 0.002, "{all}");
        assert!(n > 4 || p4.utilization > law - 0.003, "{all}");
        assert!((p4.utilization - native.utilization).abs() < 0.003, "{all}");
        assert!((p4.queue - native.queue).abs() < 150.0 && p4.p99 <= 10_000, "{all}");
        assert!(p4.fairness > 0.995, "{all}");
        assert_eq!((p4.dropped, p4.pauses), (0, 0), "{all}");
    }
}

/// specs/rdma.md#H2 over five switches: twelve hosts of a fat tree to one, whose telemetry names
/// five ports. The link carries 0.95 to 1 in frames of 1122 bytes with 1024 of payload, most queues
/// are a few packets, nobody is paused.
#[test]
fn hpcc_reads_five_hops() {
    let tree = "topology={kind=\"fat-tree\", k=4, link_rate=\"100Gbps\", link_delay=\"1us\"}";
    let sets = [
        tree,
        "transport.constants={BASE_RTT=13000}",
        "traffic.sources=4-15",
        "measure.from=500us",
        "measure.to=1ms",
    ];
    let summary = evaluate(&load("hpcc.toml", &sets), &Options::default(), &mut |_| ());
    let summary = summary.unwrap_or_else(|e| panic!("{}", e.render(false))).summary;
    let load = summary.flows.goodput_gbps.unwrap() / 100.0 * 1122.0 / 1024.0;
    assert!((0.94..1.0).contains(&load), "{load}");
    assert_eq!((summary.packets.dropped, summary.packets.pfc_pauses), (0, 0));
    assert!(summary.queue_bytes.p99.unwrap() <= 10_000, "{:?}", summary.queue_bytes);
}

/// The reference and the generated code make the same run of it, packet for packet.
#[test]
fn interpreter_and_generated_rust_give_the_same_run() {
    for name in ["hpcc.toml", "swift.toml", "dcqcn.toml", "nscc.toml"] {
        let run = |backend: &str| {
            let sets = [backend, "measure.from=0us", "measure.to=100us"];
            let simulated = simulate(&load(name, &sets), &Options::default(), &mut |_| ()).unwrap();
            (simulated.outcome.digest, simulated.outcome.counters.data_sent)
        };
        let interpreted = run("transport.backend=interpreter");
        assert!(interpreted.1 > 400, "{name}: {interpreted:?}");
        assert_eq!(run("transport.backend=rust"), interpreted, "{name}");
    }
}

/// specs/rdma.md#S5: the round-trip time of n flows is the target of their windows w: w packets
/// each are what the link carries in it.
/// It is four links of 1 us, the packet, and those before it. Seconds, by bisection.
fn target_of(n: u32, gbps: f64) -> f64 {
    let a: f64 = 125e-6 / (10f64.sqrt() - 0.1);
    let carried = |w: f64| f64::from(n) * w * 1088.0 * 8.0 / (gbps * 1e9);
    let (mut low, mut high): (f64, f64) = (0.1, 100.0);
    for _ in 0..60 {
        let w = (low + high) / 2.0;
        if carried(w) < 27e-6 + a / w.sqrt() - a / 10.0 { low = w } else { high = w }
    }
    carried(low)
}

/// specs/rdma.md#S5,I14: the delay is at the target, within 10 %, the link full, shared fairly; and
/// all is as with the rule that is built in, within 3 %.
#[test]
fn swift_holds_the_delay_at_its_target() {
    for n in [4, 10] {
        let [p4, native] = both("swift", n, 50.0, (us(5_000), us(15_000)));
        let all = format!("{n} flows: {p4:?}, native {native:?}");
        let delay = p4.queue * 8.0 / 50e9 + 4e-6;
        assert!((delay / target_of(n, 50.0) - 1.0).abs() < 0.1, "{delay} s, {all}");
        assert!((p4.queue / native.queue - 1.0).abs() < 0.03, "{all}");
        assert!(p4.utilization > 0.99 && p4.fairness > 0.99, "{all}");
    }
}

/// specs/rdma.md#S2,I13: four hundred flows have a quarter of a packet each in a round trip, the
/// link is full and nothing lost.
/// Their delay is near the law's, which knows no window that a single ACK makes five times as
/// large. Windows that are a packet at least (S1) make it what 400 packets take.
#[test]
fn swift_holds_more_flows_than_packets() {
    let window = (us(20_000), us(40_000));
    let seen = |sets: &[&str]| see(&load("swift_incast.toml", sets), 10.0, window.0, window.1);
    let below = seen(&["transport.backend=rust"]);
    let delay = below.queue * 8.0 / 10e9 + 4e-6;
    assert!((delay / target_of(400, 10.0) - 1.0).abs() < 0.2, "{delay} s, {below:?}");
    assert!(below.utilization > 0.99 && below.fairness > 0.95, "{below:?}");
    assert_eq!(below.dropped, 0);
    let whole = seen(&["transport.constants={LEAST_WINDOW=1000}"]);
    assert!(whole.queue > 0.9 * 400.0 * 1088.0 && whole.queue > 2.5 * below.queue, "{whole:?}");
}

/// specs/rdma.md#D3: the queue of N flows is at Kmin + p*/Pmax (Kmax - Kmin), where p* = cbrt(R_AI
/// N^2 / (tau C^2) (1/B + N/(T C))^2), rates in packets per second; within 25 %. Ten flows are near
/// Kmax, where that ends. Against the rule that is built in, queues are within 10 %: two flows
/// swing by 70 KB, which 20 ms do not quite average out.
fn dcqcn_is_at_its_fixed_point(n: u32) {
    let bits = 8.0 * 1024.0;
    let (c, ai, tau, timer, counter) = (40e9 / bits, 40e6 / bits, 50e-6, 55e-6, 10e6 / 1024.0);
    let flows = f64::from(n);
    let stage: f64 = 1.0 / counter + flows / (timer * c);
    let p = libm::cbrt(ai * flows * flows / (tau * c * c) * stage * stage);
    let law = 5_000.0 + p / 0.01 * 195_000.0;
    let [p4, native] = both("dcqcn", n, 40.0, (us(20_000), us(40_000)));
    let all = format!("{n} flows: {p4:?}, native {native:?}, law {law}");
    assert!((p4.queue / law - 1.0).abs() < 0.25, "{all}");
    assert!((p4.queue / native.queue - 1.0).abs() < 0.1, "{all}");
    assert!(p4.utilization > 0.99 && p4.fairness > 0.99, "{all}");
    assert_eq!(p4.dropped, 0, "{all}");
}

#[test]
fn dcqcn_of_two_is_at_its_fixed_point() {
    dcqcn_is_at_its_fixed_point(2);
}

#[test]
fn dcqcn_of_ten_is_at_its_fixed_point() {
    dcqcn_is_at_its_fixed_point(10);
}

/// specs/uet.md#4: twelve flows over a fat tree fill the link as the window that is built in does,
/// with its queue within 5 % and as many trimmed packets within 10 %; nothing is lost whole.
#[test]
fn nscc_keeps_the_queue_that_is_built_in() {
    let window = (us(1_000), us(3_000));
    let [p4, native] = [("nscc.toml", &["transport.backend=rust"][..]), ("nscc_native.toml", &[])]
        .map(|(name, sets)| see(&load(name, sets), 100.0, window.0, window.1));
    let all = format!("{p4:?}, native {native:?}");
    assert!(p4.utilization > 0.99 && native.utilization > 0.99, "{all}");
    assert!((p4.queue / native.queue - 1.0).abs() < 0.05, "{all}");
    assert!((p4.trimmed as f64 / native.trimmed as f64 - 1.0).abs() < 0.1, "{all}");
    assert!(p4.fairness > 0.9, "{all}");
    assert_eq!(p4.dropped, 0, "{all}");
}

/// The program chooses the path of each packet: a permutation of a fat tree is done as if every
/// host were alone, whether switches hash what it chose or it is the path's index. With one path
/// for each flow it is not.
#[test]
fn nscc_spreads_packets_over_paths() {
    let last = |mode: &str| {
        let mode = format!("routing.mode={mode}");
        let sets = [
            "transport.backend=rust",
            "traffic={kind=\"permutation\", size=\"64000B\"}",
            "measure={limit=\"10ms\"}",
            &mode,
        ];
        let summary = evaluate(&load("nscc.toml", &sets), &Options::default(), &mut |_| ());
        let summary = summary.unwrap_or_else(|e| panic!("{}", e.render(false))).summary;
        assert_eq!(summary.flows.messages.completed, 16);
        summary.flows.fct_us.max.unwrap()
    };
    let [hashed, indexed, one] = ["ecmp", "spray", "single"].map(last);
    // Twelve links' delay one way is 6 us, 63 packets at 100 Gb/s take 5.5.
    assert!(hashed < 14.5 && indexed < 14.5, "{hashed} {indexed}");
    assert!(one > 16.0, "{one}");
}
