//! `p4/hpcc.p4`: one ACK after the other against algorithm 1 of HPCC in real numbers, within the
//! bounds that the program states at its head.

use crate::shipped;
use crate::step;

use shipped::compile;
use step::{Ack, Drawn, Step};
use units::{Rate, Time};
use wire::int::{Hop, Stack};

const PROTOCOL: u8 = 197;
const ACK_FLAG: u8 = 2;
/// T, the line, what is added, and bytes of a full packet: the program's.
const T: f64 = 13_000.0;
const FULL_WINDOW: f64 = 100.0 * T / 8.0;
const STEP: f64 = 80.0;
const PACKET: f64 = 1122.0;
const ETA: f64 = 0.95;

/// What a sender knows of a flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    reference: f64,
    stage: u32,
    utilization: f64,
}

/// What an ACK makes of that: U, W, and whether W follows U.
fn algorithm(flow: Flow, before: &[Hop], after: &[Hop]) -> (f64, f64, bool) {
    let loads = before.iter().zip(after).map(|(before, after)| {
        let line = after.rate().0 as f64 / 8e9;
        let time = after.since(*before).0 as f64 / 1e3;
        let queue = after.queue().min(before.queue()) as f64;
        (queue / (line * T) + after.sent_since(*before) as f64 / time / line, time)
    });
    // Of links that are as busy as one another, the first.
    let (u, time) = loads.rev().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    let weight = time.min(T) / T;
    let u = (1.0 - weight) * flow.utilization + weight * u;
    let follows = u >= ETA || flow.stage >= 5;
    let window = if follows { flow.reference * ETA / u + STEP } else { flow.reference + STEP };
    (u, window.clamp(0.1 * T / 8.0, FULL_WINDOW), follows)
}

fn ack(sent_at: u32, hops: &[Hop]) -> Ack {
    let mut stack = Stack::default();
    hops.iter().for_each(|&hop| stack.push(hop));
    let rest = stack.to_bytes().to_vec();
    Ack { protocol: PROTOCOL, flags: ACK_FLAG, sent_at, remark: 0, rest }
}

/// Ports that a packet has passed, and what they write into another one later.
fn drawn_hops(drawn: &mut Drawn) -> (Vec<Hop>, Vec<Hop>) {
    let hops = 1 + drawn.below(5);
    let pair = |_| {
        let gbps = [25, 50, 100, 200, 400][drawn.below(5) as usize];
        let rate = Rate(gbps * 1_000_000_000);
        let (at, sent) = (drawn.below(1 << 40), drawn.below(1 << 40));
        let time = drawn.scaled(20.0, 100_000.0) as u64 + 1;
        let most = time * gbps / 8;
        let hop = |ns, sent, queue| Hop::new(rate, Time(ns * 1_000), sent, queue).unwrap();
        let queue = |drawn: &mut Drawn| drawn.scaled(1.0, 1e6) as u64 * drawn.below(2);
        let before = hop(at, sent, queue(drawn));
        (before, hop(at + time, sent + drawn.below(most + 1), queue(drawn)))
    };
    (0..hops).map(pair).unzip()
}

/// U within 0.03 % and 2^-22, W within 0.06 % and 1/16 byte, the gap within 0.06 % of what they
/// should be.
#[test]
fn a_step_is_within_its_bound() {
    let mut drawn = Drawn(7);
    let mut step = Step::new(compile("hpcc.p4", &[]));
    let (mut worst, mut followed) = ([0.0f64; 3], 0);
    for _ in 0..20_000 {
        let (before, after) = drawn_hops(&mut drawn);
        let reference = (drawn.scaled(200.0, FULL_WINDOW) * 256.0) as u128;
        let utilization = (drawn.scaled(0.01, 20.0) * 16_777_216.0) as u128;
        let stage = drawn.below(7) as u32;
        let flow = Flow {
            reference: reference as f64 / 256.0,
            stage,
            utilization: utilization as f64 / 16_777_216.0,
        };
        step.set("reference", 0);
        step.ack(0, &ack(0, &before));
        step.set("reference", reference);
        step.set("utilization", utilization);
        step.set("stages", stage.into());
        step.set("round_began", 1000);
        let (u, window, follows) = algorithm(flow, &before, &after);
        let pace = step.ack(5000, &ack(2000, &after)).unwrap();
        let stored = step.get("utilization") as f64 / 16_777_216.0;
        let u_error = (stored - u).abs() - 1.0 / 4_194_304.0;
        assert!(u_error <= 0.0003 * u, "U {stored}, not {u}: {before:?} {after:?}");
        worst[0] = worst[0].max(u_error / u);
        if (u / ETA - 1.0).abs() < 0.0004 && stage < 5 {
            continue; // either side of the target
        }
        let w = step.get("reference") as f64 / 256.0;
        let w_error = (w - window).abs() - 1.0 / 16.0;
        assert!(w_error <= 0.0006 * window, "W {w}, not {window}");
        worst[1] = worst[1].max(w_error / window);
        assert_eq!(step.get("stages"), if follows { 0 } else { u128::from(stage) + 1 });
        assert_eq!(step.get("round_began"), 5000);
        followed += u32::from(follows);
        let packets = (w / PACKET).ceil().max(2.0);
        assert!((f64::from(pace.window) - packets).abs() < 0.5, "{pace:?} of {w}");
        // A packet of 1024 bytes of payload in 16 words, at W / T.
        let gap = PACKET / 16.0 / (w / T) * 3.2 * 256.0;
        let gap_error = (f64::from(pace.gap) - gap).abs() - 1.0;
        assert!(gap_error <= 0.0003 * gap, "gap {pace:?}, not {gap}");
        worst[2] = worst[2].max(gap_error / gap);
    }
    assert!(followed > 5_000 && followed < 19_000, "{followed}");
    assert!(worst[0] > 0.0001 && worst[1] > 0.0001, "the bounds are not loose: {worst:?}");
}

/// specs/rdma.md#I9: a link of 100 Gb/s that is full and has no queue has U = 1. W_c changes once
/// in a round trip.
#[test]
fn i9_a_full_link_has_utilization_one() {
    let mut step = Step::new(compile("hpcc.p4", &[]));
    let hop = |n: u64| {
        let ns = n * 90;
        Hop::new(Rate(100_000_000_000), Time(ns * 1_000), ns * 100 / 8, 0).unwrap()
    };
    assert_eq!(step.ack(0, &ack(0, &[hop(0)])), None, "the first is what others are compared with");
    assert_eq!(step.get("reference") as f64 / 256.0, FULL_WINDOW);
    let mut changes = 0;
    let mut before = step.get("reference");
    // 288 cycles from one to the next; each is acknowledged 4.5 us after it was sent.
    for n in 1..2_000u32 {
        let now = 20_000 + n * 288;
        step.ack(now, &ack(now - 14_400, &[hop(n.into())])).unwrap();
        let reference = step.get("reference");
        changes += u32::from(reference != before);
        before = reference;
    }
    let u = step.get("utilization") as f64 / 16_777_216.0;
    assert!((u - 1.0).abs() < 0.01, "{u}");
    // 2000 packets of 90 ns are 180 us; a round trip and a packet are 4.59 us.
    assert!((36..=41).contains(&changes), "{changes}");
}

/// Another way's telemetry is not compared with the last one's.
#[test]
fn another_way_begins_anew() {
    let mut step = Step::new(compile("hpcc.p4", &[]));
    let hop = |gbps: u64, ns: u64| {
        Hop::new(Rate(gbps * 1_000_000_000), Time(ns * 1_000), 0, 1_000_000).unwrap()
    };
    step.ack(0, &ack(0, &[hop(100, 0)]));
    assert_eq!(step.ack(1, &ack(0, &[hop(400, 90)])), None);
    assert_eq!(step.ack(2, &ack(0, &[hop(400, 180), hop(100, 0)])), None);
    let queued = [hop(400, 270), hop(100, 90)];
    assert!(step.ack(3, &ack(0, &queued)).unwrap().window < 145, "1 MB of queue at 100 Gb/s");
    assert_eq!(step.ack(4, &ack(0, &[])), None, "no telemetry at all");
}
