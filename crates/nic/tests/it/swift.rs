//! `p4/swift.p4`: one ACK after the other against the algorithms of Swift in real numbers, within
//! the bounds that the program states at its head.

use crate::shipped;
use crate::step;

use shipped::compile;
use step::{Ack, Drawn, Step};

const ACK_FLAG: u8 = 2;
const RTX_FLAG: u8 = 0x20;
/// Cycles in a microsecond.
const US: f64 = 3_200.0;
const ONE: f64 = 1_048_576.0;

/// a / sqrt(w), cycles: fs_range = 125 us, fs_min = 0.1, fs_max = 100.
fn scaled(window: f64) -> f64 {
    125.0 * US / (1.0 / 0.1f64.sqrt() - 1.0 / 100f64.sqrt()) / window.sqrt()
}

/// What small windows add to the target.
fn adds(window: f64) -> f64 {
    (scaled(window) - scaled(100.0)).clamp(0.0, 125.0 * US)
}

fn target(hops: u8, window: f64) -> f64 {
    25.0 * US + f64::from(hops) * US + adds(window)
}

/// Algorithm 1 for one packet, and by how much of it the program may be wrong.
fn adjust(window: f64, delay: f64, target: f64, slack: f64, may_fall: bool) -> (f64, f64) {
    if delay < target {
        let more = if window >= 1.0 { 1.0 / window } else { 1.0 };
        return ((window + more).min(256.0), 0.0003 * more);
    }
    if !may_fall {
        return (window, 0.0);
    }
    let off = (0.8 * (delay - target) / delay).min(0.5);
    let wrong = 0.0003 * off + 0.8 * slack / delay;
    ((window * (1.0 - off)).max(0.001), window * wrong)
}

fn ack(sent_at: u32, remark: u32, hops: u8, flags: u8) -> Ack {
    let rest = vec![hops, 0, 0, 0, 0, 0, 0, 0];
    Ack { protocol: 198, flags, sent_at, remark, rest }
}

/// A window of so many packets, as the program has it.
fn fixed(packets: f64) -> u128 {
    (packets * ONE) as u128
}

#[test]
fn a_step_is_within_its_bound() {
    let mut drawn = Drawn(3);
    let mut step = Step::new(compile("swift.p4", &[]));
    let (mut grown, mut cut) = (0, 0);
    for _ in 0..20_000 {
        let window = fixed(drawn.scaled(0.0015, 256.0)).max(1_100) as f64 / ONE;
        let host = fixed(drawn.scaled(0.01, 256.0)) as f64 / ONE;
        let hops = 1 + drawn.below(8) as u8;
        let target = target(hops, window);
        let delay = (target * (0.5 + 2.0 * drawn.share())) as u32;
        let remark = drawn.scaled(1.0, 800_000.0) as u32;
        let may_fall = drawn.below(4) != 0;
        let slack = 0.0014 * scaled(window).min(scaled(0.1)) + 2.0;
        if (f64::from(delay) - target).abs() < slack {
            continue; // either side of the target
        }
        step.set("fabric_window", fixed(window));
        step.set("host_window", fixed(host));
        let now = 1_000_000_000;
        let rtt = delay + remark;
        let fell = (1 << 32) | u128::from(now - if may_fall { rtt } else { rtt - 1 });
        for name in ["fabric.fell", "hosts.fell"] {
            step.set(name, fell);
        }
        let pace = step.ack(now, &ack(now - rtt, remark, hops, ACK_FLAG)).unwrap();
        let mut after = [0.0; 2];
        let adjusted = [
            (window, adjust(window, delay.into(), target, slack, may_fall)),
            (host, adjust(host, remark.into(), 100.0 * US, 0.0, may_fall)),
        ];
        for (at, name) in ["fabric", "host"].into_iter().enumerate() {
            let (before, (expected, wrong)) = adjusted[at];
            after[at] = step.get(&format!("{name}_window")) as f64 / ONE;
            let all = format!("{name}: {before} becomes {}, not {expected}", after[at]);
            assert!((after[at] - expected).abs() <= wrong + 3.0 / ONE, "{all}");
            grown += u32::from(after[at] > before);
            cut += u32::from(after[at] < before);
        }
        assert_eq!(step.get("fabric.fell") != fell, after[0] < window, "the time of the decrease");
        let least = after[0].min(after[1]);
        assert_eq!(f64::from(pace.window), least.floor());
        // Packets of 16 words, one each rtt / window.
        let gap = if least < 1.0 { f64::from(rtt) / least * 16.0 } else { 0.0 };
        let gap = gap.min(f64::from(u32::MAX));
        assert!((f64::from(pace.gap) - gap).abs() <= 0.0003 * gap + 1.0, "{pace:?}, not {gap}");
    }
    assert!(grown > 5_000 && cut > 5_000, "{grown} {cut}");
}

/// specs/rdma.md#I12: at most one decrease in a round trip, by max_mdf at most; a repeat that is
/// acknowledged is one of them, and measures nothing.
#[test]
fn i12_one_bounded_decrease_in_a_round_trip() {
    let mut step = Step::new(compile("swift.p4", &[]));
    let ms = 3_200_000;
    let window = |step: &mut Step| step.get("fabric_window") as f64 / ONE;
    step.ack(2 * ms, &ack(ms, 0, 2, ACK_FLAG));
    assert_eq!(window(&mut step), 7.5, "15, a millisecond of delay");
    step.ack(3 * ms - 1, &ack(2 * ms - 1, 0, 2, ACK_FLAG));
    step.ack(3 * ms - 1, &ack(0, 0, 2, ACK_FLAG | RTX_FLAG));
    assert_eq!(window(&mut step), 7.5);
    step.ack(3 * ms, &ack(0, 0, 2, ACK_FLAG | RTX_FLAG));
    assert_eq!(window(&mut step), 3.75);
    assert_eq!(step.get("round_trip"), u128::from(ms));
}

/// specs/rdma.md#I13: half a packet is one packet in two round trips, of 100 us here.
#[test]
fn i13_half_a_window_is_every_second_round_trip() {
    let mut step = Step::new(compile("swift.p4", &[]));
    let (rtt, now) = (320_000, 1_000_000);
    // The target at half a packet is 84 us: what comes off is 0.8 * 16 %.
    for name in ["fabric_window", "host_window"] {
        step.set(name, fixed(0.5));
    }
    for name in ["fabric.fell", "hosts.fell"] {
        step.set(name, (1 << 32) | u128::from(now - 1));
    }
    let pace = step.ack(now, &ack(now - rtt, 0, 2, ACK_FLAG)).unwrap();
    assert!(step.get("host_window") > fixed(0.5), "hosts take no time");
    assert_eq!(step.get("fabric_window"), fixed(0.5), "it fell in this round trip");
    let cycles = f64::from(pace.gap) * 16.0 / 256.0;
    assert!((cycles - 640_000.0).abs() < 200.0, "{cycles}");
    assert_eq!(pace.window, 0);
}
