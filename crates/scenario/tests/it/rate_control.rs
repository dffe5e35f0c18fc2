//! DCQCN, HPCC and Swift over the simulated fabric against the closed forms and bounds of
//! specs/rdma.md#4,9,10, from packets alone.

use crate::bottleneck;

use std::collections::BTreeMap;
use std::path::Path;

use bottleneck::{mean, stays, watch};
use endpoint::{Observer, Packet, PacketEvent};
use trimline_scenario::{Options, Scenario, observe};
use units::{Dur, HostId, Time};
use wire::roce;

const DCQCN: &str = r#"
    queue = { kind = "drop-tail", capacity = "4MB", red_min = "5KB", red_max = "200KB", red_probability = 0.01, mark_at = "departure", not_ect = "pass" }
    transport = { kind = "rdma", rule = "dcqcn", preset = "paper", payload = "1000B" }"#;
const HPCC: &str = r#"
    queue = { kind = "lossless", preset = "hpcc", buffer = "32MB" }
    transport = { kind = "rdma", rule = "hpcc", preset = "paper", payload = "1000B", rtt = "4500ns", flows = 16 }"#;
const SWIFT: &str = r#"
    queue = { kind = "drop-tail", capacity = "12MB" }
    transport = { kind = "rdma", rule = "swift", preset = "paper", payload = "1000B" }"#;

/// `flows` into one link of `gbps`, from as many hosts, each link of 1 us; measured `from` to `to`
/// ms.
fn scenario(kind: &str, flows: u32, gbps: u32, (from, to): (u64, u64)) -> String {
    format!(
        r#"
        name = "{flows} flows"
        seed = 1
        routing = {{ mode = "ecmp" }}
        topology = {{ kind = "star", hosts = {hosts}, link_rate = "{gbps}Gbps", link_delay = "1us" }}
        traffic = {{ kind = "incast", senders = {flows}, receiver = 0, size = "unbounded" }}
        measure = {{ from = "{from}ms", to = "{to}ms" }}
        {kind}
        "#,
        hosts = flows + 1
    )
}

fn ms(n: u64) -> Time {
    Time::ZERO + Dur::from_ms(n)
}

/// specs/rdma.md#I14: one flow has 94 % of what the link can carry of payload, four have it
/// together, shared fairly.
#[test]
fn i14_full_and_fair() {
    let kinds =
        [(DCQCN, 40, (40, 60), 1062.0), (HPCC, 100, (1, 3), 1104.0), (SWIFT, 50, (3, 6), 1062.0)];
    for (kind, gbps, window, packet) in kinds {
        for flows in [1, 4] {
            let (outcome, seen) = watch(&scenario(kind, flows, gbps, window));
            let shares: Vec<f64> =
                seen.messages.iter().map(|m| m.placed_in_window as f64).collect();
            let sum: f64 = shares.iter().sum();
            let capacity =
                f64::from(gbps) * 1e6 / 8.0 * (window.1 - window.0) as f64 * 1000.0 / packet;
            let all = format!("{kind}: {flows} flows have {:.3} of {shares:?}", sum / capacity);
            assert!(sum / capacity >= 0.94, "{all}");
            assert!(metrics::jain(shares.iter().copied()) >= Some(0.95), "{all}");
            assert_eq!(outcome.counters.dropped, 0, "{all}");
        }
    }
}

/// specs/rdma.md#D3,4.3: the queue of N flows is at Kmin + p*/Pmax (Kmax - Kmin), where
/// p* = cbrt(R_AI N^2 / (tau C^2) (1/B + N/(T C))^2), rates in packets per second; within 25 %.
#[test]
fn d3_fixed_point() {
    let packets = 8.0 * 1000.0;
    let (c, ai, tau, timer, counter) =
        (40e9 / packets, 40e6 / packets, 50e-6, 55e-6, 10e6 / 1000.0);
    for n in [2, 4] {
        let flows = f64::from(n);
        let stage: f64 = 1.0 / counter + flows / (timer * c);
        let p = libm::cbrt(ai * flows * flows / (tau * c * c) * stage * stage);
        let law = 5_000.0 + p / 0.01 * 195_000.0;
        let (_, seen) = watch(&scenario(DCQCN, n, 40, (50, 100)));
        let mean = mean(&seen.levels(ms(50), ms(99)));
        assert!((mean / law - 1.0).abs() < 0.25, "{n} flows: {mean:.0} B, law {law:.0} B");
    }
}

/// specs/rdma.md#H3: after its start an incast of sixteen leaves the queue below 10 KB for 99 % of
/// the time.
#[test]
fn h3_incast_of_sixteen() {
    let (outcome, seen) = watch(&scenario(HPCC, 16, 100, (1, 3)));
    let stays = stays(&seen.levels(ms(1), Time(2_990_000_000)));
    let whole: u64 = stays.iter().map(|stay| stay.1).sum();
    let short: u64 = stays.iter().filter(|stay| stay.0 <= 10_000).map(|stay| stay.1).sum();
    assert!(short as f64 >= 0.99 * whole as f64, "{short} of {whole}");
    assert_eq!(outcome.counters.dropped, 0);
}

/// specs/rdma.md#S5: the round-trip time of ten flows is the target of their windows w: w packets
/// each are what 50 Gb/s carry in it.
/// It is four links, the packet and those before it. Within 10 %.
#[test]
fn s5_delay_is_the_target() {
    let (_, seen) = watch(&scenario(SWIFT, 10, 50, (5, 15)));
    let mean = mean(&seen.levels(ms(5), Time(14_990_000_000))) * 8.0 / 50e9 + 4e-6;
    let a: f64 = 125e-6 / (10f64.sqrt() - 0.1);
    // By bisection: at the law's window, time to carry all windows = target.
    let (mut low, mut high): (f64, f64) = (0.1, 100.0);
    for _ in 0..60 {
        let w = (low + high) / 2.0;
        let carried = 10.0 * w * 1062.0 * 8.0 / 50e9;
        if carried < 27e-6 + a / w.sqrt() - a / 10.0 { low = w } else { high = w }
    }
    let law = 10.0 * low * 1062.0 * 8.0 / 50e9;
    assert!((mean / law - 1.0).abs() < 0.1, "{mean} s, law {law} s");
}

/// When notifications reach each sender.
#[derive(Default)]
struct Notifications(BTreeMap<HostId, Vec<Time>>);

impl Observer for Notifications {
    fn watches_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, at: Time, _: u32, event: PacketEvent, pkt: &Packet) {
        let header = roce::Repr::parse(pkt.header());
        let is_cnp = header.is_ok_and(|header| matches!(header.kind, roce::Kind::Cnp));
        // Its first link: it leaves the receiver.
        if event == PacketEvent::Sent && is_cnp {
            self.0.entry(pkt.dst).or_default().push(at);
        }
    }
}

/// specs/rdma.md#I6: one notification in 50 us for each flow at most, however many of its packets
/// are marked.
#[test]
fn i6_one_notification_in_50_us() {
    let text = scenario(DCQCN, 4, 40, (0, 5));
    let scenario = Scenario::parse("test", &text, Path::new("."), &[]);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
    let options = Options { threads: Some(1), ..Options::default() };
    let (outcome, seen) = observe(&scenario, &options, Notifications::default()).unwrap();
    assert_eq!(seen.0.len(), 4);
    let sent: usize = seen.0.values().map(Vec::len).sum();
    assert!(outcome.links.iter().map(|link| link.marked).sum::<u64>() > 2 * sent as u64);
    for times in seen.0.values() {
        // They wait for the packet in transmission: 13 ns for an acknowledgement.
        let least = times.windows(2).map(|pair| pair[1].since(pair[0])).min().unwrap();
        assert!(least >= Dur(49_900_000), "{least}");
    }
}
