//! The invariants I1 to I10 of specs/incast.md#7, and the bulk transfers of specs/tcp.md#14:
//! blocks of 256 KiB from each of N senders to host 0, links of 1 Gb/s and 25 us, packets of 1000 +
//! 40 bytes, a queue of 64 packets unless said otherwise, NewReno of ns-2 with windows of at most
//! 20 packets.

use crate::bottleneck;

use std::collections::BTreeSet;

use bottleneck::{Bottleneck, watch};
use endpoint::{JobRecord, Stat};
use fabric::Outcome;
use units::{Dur, Time};

const SRU: u64 = 262_144;
/// Of a full packet, and of the last one of an SRU: 144 bytes of payload.
const PACKET: Dur = Dur::from_ns(8 * 1040);
const LAST: Dur = Dur::from_ns(8 * 184);
/// Payload of a full link.
const FULL_MBPS: f64 = 1_000.0 * 1_000.0 / 1_040.0;

/// An incast, by what differs from the base case of the study.
#[derive(Clone, Copy)]
struct Incast {
    senders: u32,
    queue: u32,
    rto_min: &'static str,
    capped: bool,
    gap: &'static str,
    ms: u64,
    seed: u64,
}

const BASE: Incast =
    Incast { senders: 8, queue: 64, rto_min: "200ms", capped: false, gap: "0", ms: 1_000, seed: 1 };

impl Incast {
    fn text(&self) -> String {
        let Self { senders, queue, rto_min, gap, ms, seed, .. } = self;
        let (hosts, buffer) = (senders + 1, queue * 1040);
        let cap = match self.capped {
            true => format!(
                "\"dynamic\"\ncap_rate = \"1Gbps\"\ncap_rtt = \"100us\"\ncap_queue = \"{buffer}B\""
            ),
            false => "\"none\"".to_owned(),
        };
        format!(
            r#"
            name = "incast"
            seed = {seed}
            topology = {{ kind = "star", hosts = {hosts}, link_rate = "1Gbps", link_delay = "25us" }}
            queue = {{ kind = "drop-tail", capacity = "{queue} packets" }}
            routing = {{ mode = "ecmp" }}
            host = {{ clock_ppm = 0, send_jitter = "0" }}
            transport = {{ kind = "tcp", rule = "newreno", recovery = "newreno", ecn = false, preset = "ns2", mss = "1000B", rto_min = "{rto_min}" }}
            measure = {{ to = "{ms}ms" }}
            [traffic]
            kind = "barrier"
            receiver = 0
            senders = {senders}
            size = "{SRU}B"
            request_latency = "50us"
            request_gap = "{gap}"
            connections = "persistent"
            cap = {cap}
            "#
        )
    }

    fn run(&self) -> (Outcome, Bottleneck) {
        watch(&self.text())
    }

    fn goodput_mbps(&self) -> f64 {
        goodput_mbps(&self.run().1.jobs)
    }
}

fn took(job: &JobRecord) -> Dur {
    job.job.end.since(job.job.start)
}

/// Payload of the blocks over the time from the first's beginning to the last's end.
fn goodput_mbps(jobs: &[JobRecord]) -> f64 {
    let bytes: u64 = jobs.iter().map(|job| job.job.bytes).sum();
    let time = jobs.last().unwrap().job.end.since(jobs[0].job.start);
    bytes as f64 * 8.0 / time.as_us_f64()
}

/// Timeouts of all causes.
fn timeouts(outcome: &Outcome) -> u64 {
    outcome.counters.stat(Stat::Timeout)
}

/// One sender: nothing is lost, and the time of a block is arithmetic. The first: three round trips
/// of slow start (2, 4, 8 packets; alone, a packet and its acknowledgement take 117.28 us), then
/// the other 249 packets one after the other. Each later one finds a window of 20, which is more
/// than a round trip holds: 263 packets one after the other. Both take a request of 50 us before,
/// and two links of 25 us and the switch after, where the last packet waits for the one before it.
#[test]
fn i1_one_sender_takes_what_arithmetic_says() {
    let (outcome, seen) = Incast { senders: 1, ms: 100, ..BASE }.run();
    assert_eq!((outcome.counters.dropped, timeouts(&outcome)), (0, 0));
    let ends = Dur::from_us(50) + Dur::from_us(50) + PACKET + LAST;
    let first = Dur::from_ns(3 * 117_280) + PACKET * 248 + ends;
    let later = PACKET * 262 + ends;
    assert_eq!(took(&seen.jobs[0]), first);
    assert!(seen.jobs.len() > 40 && seen.jobs[1..].iter().all(|job| took(job) == later));
}

/// specs/tcp.md#14: 910 to 915 Mb/s for one sender, 935 to 957 for 2 to 64 where nothing is lost,
/// within 2 %.
#[test]
fn bulk_transfers_fill_the_link() {
    for (senders, low, high) in
        [(1, 910.0, 915.0), (2, 935.0, 957.0), (16, 935.0, 957.0), (64, 935.0, 957.0)]
    {
        let incast = Incast { senders, queue: 2_000, ms: 300, ..BASE };
        let (outcome, seen) = incast.run();
        let goodput = goodput_mbps(&seen.jobs);
        assert_eq!(outcome.counters.dropped, 0);
        assert!(goodput > 0.98 * low && goodput < 1.02 * high, "N = {senders}: {goodput}");
        assert!(goodput < FULL_MBPS);
    }
}

/// I2, in collapse: each block has delivered N SRUs, exactly, and what arrived meanwhile at host 0
/// is what the application was told.
#[test]
fn i2_each_block_is_whole() {
    let (_, seen) = Incast { senders: 16, ms: 2_000, ..BASE }.run();
    assert!(seen.jobs.len() > 3);
    for JobRecord { job, .. } in &seen.jobs {
        assert!(job.completed);
        assert_eq!((job.bytes, job.parts, job.in_time), (16 * SRU, 16, 16));
        assert_eq!(job.received, seen.arrived(job.start, job.end));
    }
}

/// I3: nothing is lost while N windows of 20 fit into the pipe, 12 packets, and the buffer.
#[test]
fn i3_nothing_is_lost_below_the_onset() {
    for (senders, queue) in [(2, 32), (3, 64), (6, 128), (13, 256)] {
        let (outcome, _) = Incast { senders, queue, ms: 200, ..BASE }.run();
        assert_eq!(
            (outcome.counters.dropped, timeouts(&outcome)),
            (0, 0),
            "N = {senders}, {queue}"
        );
    }
    let (outcome, _) = Incast { senders: 16, ms: 200, ..BASE }.run();
    assert!(outcome.counters.dropped > 0);
}

/// I4, in collapse: what goodput lacks is idle time of the bottleneck, and a block either has no
/// timeout and is quick, or lasts at least RTOmin.
#[test]
fn i4_collapse_is_idle_time() {
    let (outcome, seen) = Incast { senders: 16, ms: 5_000, ..BASE }.run();
    let (first, last) = (seen.jobs[0].job.start, seen.jobs.last().unwrap().job.end);
    let received: u64 = seen.jobs.iter().map(|job| job.job.received).sum();
    let idle = 1.0 - received as f64 * 8.0 / (last.since(first).as_us_f64() * 1_000.0);
    let missing = 1.0 - goodput_mbps(&seen.jobs) / FULL_MBPS;
    assert!(idle > 0.5 && (idle - missing).abs() < 0.02, "{idle} idle, {missing} missing");
    let long = seen.jobs.iter().filter(|job| took(job) >= Dur::from_ms(200)).count() as u64;
    assert!(long > 5 && timeouts(&outcome) >= long);
    // Without a timeout a block takes 36 ms, and some more for what is sent again.
    assert!(
        seen.jobs.iter().all(|job| took(job) >= Dur::from_ms(200) || took(job) < Dur::from_ms(60))
    );
}

/// I5: beyond the collapse a larger buffer never costs more than 10 % of goodput, and the collapse
/// does not come earlier.
#[test]
fn i5_goodput_grows_with_the_buffer() {
    let mut before = 0;
    for queue in [32, 64, 128, 256] {
        let collapses =
            |&senders: &u32| Incast { senders, queue, ms: 1_500, ..BASE }.goodput_mbps() < 450.0;
        let onset = [2, 4, 8, 16, 32].iter().copied().find(|n| collapses(n)).unwrap_or(64);
        assert!(onset >= before);
        before = onset;
    }
    let goodputs = [32, 64, 128, 256, 512]
        .map(|queue| Incast { senders: 16, queue, ms: 4_000, ..BASE }.goodput_mbps());
    assert!(goodputs.is_sorted_by(|less, more| *more > 0.9 * less), "{goodputs:?}");
}

/// I6: a shorter RTOmin never costs more than 10 % of goodput.
#[test]
fn i6_goodput_grows_with_quicker_timers() {
    let goodputs = ["200ms", "40ms", "10ms", "1ms"]
        .map(|rto_min| Incast { senders: 16, rto_min, ms: 4_000, ..BASE }.goodput_mbps());
    assert!(goodputs.is_sorted_by(|less, more| *more > 0.9 * less), "{goodputs:?}");
}

/// I7: with the dynamic cap nothing is lost up to one segment for each sender: pipe and buffer hold
/// 12 500 + 66 560 bytes, 76 packets. The senders are asked 10 us apart, so that the packets find
/// the pipe in use.
#[test]
fn i7_the_dynamic_cap_prevents_losses() {
    let run = |senders| Incast { senders, capped: true, gap: "10us", ms: 150, ..BASE }.run();
    for senders in [2, 9, 15, 24, 38, 64, 76] {
        let (outcome, _) = run(senders);
        assert_eq!((outcome.counters.dropped, timeouts(&outcome)), (0, 0), "N = {senders}");
    }
    assert!(run(77).0.counters.dropped > 0);
}

/// Where all are asked at once, I7 does not hold for every N, as a burst finds the pipe empty: N
/// windows of W packets are at the switch within W packet times, in which W - 1 leave, and the
/// buffer holds 64.
#[test]
fn i7_a_burst_has_no_pipe() {
    for senders in [10, 13, 16, 32, 33, 38, 64, 65, 76] {
        let incast = Incast { senders, capped: true, ..BASE };
        let window = (76 / senders).min(2); // the initial window is 2
        let first = Incast { ms: 1, ..incast }.run().0.counters.dropped;
        let lost = (senders * window).saturating_sub(window - 1 + 64);
        assert_eq!(first, u64::from(lost), "N = {senders}");
    }
}

/// I8: the same seed gives the same run; another one only another order. One sender has none, and
/// below the onset, where all senders are alike, blocks take as long in whatever order.
#[test]
fn i8_a_seed_is_an_order() {
    let run = |senders, seed| {
        let (outcome, seen) = Incast { senders, seed, ms: 100, ..BASE }.run();
        (outcome.digest, seen.jobs.iter().map(took).collect::<Vec<_>>())
    };
    assert_eq!(run(16, 1), run(16, 1));
    assert_ne!(run(16, 1).0, run(16, 2).0);
    for senders in [1, 3] {
        assert_eq!(run(senders, 1).1, run(senders, 2).1, "N = {senders}");
    }
}

/// I9, at every packet: the queue never holds more than 64, and one is dropped only then.
#[test]
fn i9_packets_are_dropped_only_when_the_queue_is_full() {
    for senders in [4, 16, 48] {
        let (outcome, seen) = Incast { senders, ms: 1_000, ..BASE }.run();
        let levels = seen.levels(Time::ZERO, Time::ZERO + Dur::from_ms(999));
        assert!(levels.iter().all(|level| level.packets <= 64));
        let drops: Vec<u32> =
            levels.iter().filter(|l| l.dropped.is_some()).map(|l| l.packets).collect();
        assert!(drops.iter().all(|&packets| packets == 64));
        assert!(drops.len() as u64 <= outcome.counters.dropped);
        assert!(senders == 4 || drops.len() > 10, "N = {senders}: {}", drops.len());
    }
}

/// I10: every timeout has one cause. Nothing of a block is acknowledged before a timeout (head)
/// only where more than 64 first packets come at once.
#[test]
fn i10_causes_add_up() {
    let mut causes = BTreeSet::new();
    for (senders, rto_min) in [(8, "200ms"), (16, "10ms"), (48, "1ms"), (100, "200ms")] {
        // Without a sample a timeout takes 3 s.
        let ms = if senders == 100 { 3_500 } else { 1_000 };
        let (outcome, _) = Incast { senders, rto_min, ms, ..BASE }.run();
        let all =
            [Stat::HeadTimeout, Stat::TailTimeout, Stat::RetransmissionTimeout, Stat::OtherTimeout];
        let counts = all.map(|cause| outcome.counters.stat(cause));
        assert_eq!(counts.iter().sum::<u64>(), timeouts(&outcome), "N = {senders}: {counts:?}");
        assert_eq!(counts[0] > 0, senders > 64, "N = {senders}: {counts:?}");
        causes.extend((0..4).filter(|&i| counts[i] > 0));
    }
    assert_eq!(causes.len(), 4, "all causes were seen");
}
