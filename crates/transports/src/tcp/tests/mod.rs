//! NewReno on the pair harness: the invariants of specs/tcp.md#13, and the conformance
//! suite. Times are exact: 10 Gb/s, 5 us one way, segments of 1000 + 40 bytes.

mod handshake;
mod invariants;
mod linux;
mod reordering;
mod script;
mod traces;

use endpoint::{Draw, Effect, Endpoint, FailReason, Stat, UNBOUNDED};
use testkit::{Bottleneck, Link, Net, Sent, Star, Verdict, conformance, fault};
use units::{Bytes, Dur, HostId, MsgKey, Rate, Time};

use super::retransmission::Retransmission;
use super::sender::Sender;
use super::window::Phase;
use super::*;

const A: HostId = HostId(0);
const B: HostId = HostId(1);
const MSS: u64 = 1000;
const RATE: Rate = Rate(10_000_000_000);
const DELAY: Dur = Dur::from_us(5);
/// Of [`long_pipe`].
const DELAY_LONG: Dur = Dur::from_ms(1);
const LINK: Link = Link { rate: RATE, delay: DELAY, mtu: 1500, paths: 1, hashed: true };

/// Textbook NewReno: growth per acknowledgement, no delayed acknowledgements, no limited
/// transmit, an ideal clock, and a timeout that never expires on its own.
fn textbook() -> Config {
    let rto = crate::rto::RtoConfig {
        min: Dur::from_ms(1),
        max: Dur::from_ms(1_000),
        initial: Dur::from_ms(1),
        ack_ends_backoff: true,
        ..crate::rto::RtoConfig::RFC_6298
    };
    Config::textbook(MSS as u16, rto)
}

fn pair(config: Config) -> Net<Tcp> {
    let make = || Box::new(Tcp::new(config).unwrap());
    Net::new(1, LINK, vec![make(), make()])
}

impl Tcp {
    /// The only sender.
    fn only(&self) -> &Sender {
        assert_eq!(self.senders.open_count(), 1);
        self.senders.iter().next().unwrap()
    }
}

/// Run until just after the first moment when `what` holds; panics if it never does.
fn run_until(net: &mut Net<Tcp>, mut what: impl FnMut(&Net<Tcp>) -> bool) {
    while !what(net) {
        assert!(net.step(), "went idle");
    }
}

fn data(net: &Net<Tcp>) -> impl Iterator<Item = &Sent> {
    net.log().iter().filter(|s| s.pkt.src == A)
}

fn timeouts(net: &Net<Tcp>) -> u64 {
    net.stat(A, Stat::Timeout)
}

/// A message within the initial window: every packet is serialised, the last one crosses.
#[test]
fn a_lone_message_takes_exactly_its_ideal_time() {
    for config in [textbook(), Config::linux_datacenter(MSS as u16)] {
        for len in [1, 999, 1000, 1001, 5 * MSS, 9 * MSS + 1, 10 * MSS] {
            let mut net = pair(config);
            let key = net.submit(A, B, len);
            net.run_until_idle(Dur::from_ms(500));
            let full = RATE.serialise(1040) * (len / MSS);
            let rest = len % MSS;
            let last = if rest == 0 { Dur::ZERO } else { RATE.serialise(rest + 40) };
            let ideal = Time::ZERO + full + last + DELAY;
            assert_eq!(net.record(key).delivered, Some(ideal), "{len} bytes");
            let ack = RATE.serialise(40) + DELAY;
            assert_eq!(net.record(key).acked, Some(ideal + ack), "the last segment has FIN");
        }
    }
}

#[test]
fn a_message_without_bytes_is_one_header() {
    let mut net = pair(textbook());
    let key = net.submit(A, B, 0);
    net.run_until_idle(Dur::from_ms(1));
    assert_eq!(net.record(key).delivered, Some(Time::ZERO + RATE.serialise(40) + DELAY));
    assert_eq!(net.sent(), 2);
}

/// Bandwidth times delay is huge here, so that rounds do not overlap.
fn long_pipe(config: Config) -> Net<Tcp> {
    let make = || Box::new(Tcp::new(config).unwrap());
    Net::new(1, Link { delay: DELAY_LONG, ..LINK }, vec![make(), make()])
}

const fn slow_timer(config: Config) -> Config {
    let rto = crate::rto::RtoConfig {
        min: Dur::from_ms(500),
        max: Dur::from_ms(4_000),
        initial: Dur::from_ms(500),
        ..config.rto
    };
    Config { rto, ..config }
}

/// The window at the end of each round trip of 2 ms.
fn windows(net: &mut Net<Tcp>, rounds: u64) -> Vec<f64> {
    let round = |k: u64| Time::ZERO + Dur::from_us(2_900 + 2_000 * k);
    (0..rounds)
        .map(|k| {
            net.run_until(round(k));
            net.endpoint(A).only().window().cwnd()
        })
        .collect()
}

#[test]
fn t3_slow_start_doubles_and_congestion_avoidance_adds_one() {
    let mut net = long_pipe(slow_timer(Config { initial_window: 2.0, ..textbook() }));
    net.submit(A, B, UNBOUNDED);
    assert_eq!(windows(&mut net, 6), [4.0, 8.0, 16.0, 32.0, 64.0, 128.0]);

    let config = Config { initial_window: 2.0, initial_ssthresh: 16.0, ..textbook() };
    let mut net = long_pipe(slow_timer(config));
    net.submit(A, B, UNBOUNDED);
    let windows = windows(&mut net, 10);
    for (k, window) in windows.into_iter().enumerate().skip(3) {
        let ideal = 16.0 + (k - 2) as f64;
        assert!((window - ideal).abs() < 1.0, "round {k}: {window}");
    }
}

#[test]
fn t4_one_drop_costs_one_fast_retransmit_and_half_the_window() {
    for dropped in [0, 3, 6] {
        let mut net = long_pipe(slow_timer(textbook()));
        net.fault(fault::drop_data(A, &[dropped]));
        let key = net.submit(A, B, 40 * MSS);
        run_until(&mut net, |net| net.stat(A, Stat::FastRetransmit) == 1);
        let began = net.now();
        let before = (10 + dropped) as f64;
        // Not exactly half: what the window allows but the interface has not sent yet is not in
        // flight.
        assert!((net.endpoint(A).only().window().ssthresh() - before / 2.0).abs() <= 1.0);
        run_until(&mut net, |net| net.endpoint(A).only().window().phase() == Phase::Open);
        let took = net.now().since(began);
        let rtt = DELAY_LONG * 2;
        assert!(took >= rtt && took < rtt + Dur::from_us(60), "one round trip: {took}");
        assert!((net.endpoint(A).only().window().cwnd() - before / 2.0).abs() <= 1.0);
        net.run_until_idle(Dur::from_ms(500));
        assert!(net.record(key).acked.is_some());
        assert_eq!((net.stat(A, Stat::FastRetransmit), timeouts(&net)), (1, 0));
        assert_eq!(net.stat(A, Stat::Retransmission), 1);
    }
}

#[test]
fn t5_k_drops_in_a_window_take_k_round_trips() {
    for k in 1..=5 {
        let mut net = long_pipe(slow_timer(Config { initial_window: 30.0, ..textbook() }));
        let dropped: Vec<u64> = (0..k).map(|i| 3 * i).collect();
        net.fault(fault::drop_data(A, &dropped));
        net.submit(A, B, 200 * MSS);
        run_until(&mut net, |net| net.stat(A, Stat::FastRetransmit) == 1);
        let began = net.now();
        run_until(&mut net, |net| net.endpoint(A).only().window().phase() == Phase::Open);
        let rounds = net.now().since(began).as_us_f64() / (DELAY_LONG * 2).as_us_f64();
        assert!((rounds - k as f64).abs() < 0.2, "{k} drops: {rounds} round trips");
        assert_eq!(timeouts(&net), 0);
        assert_eq!(net.stat(A, Stat::Retransmission), k);
    }
}

/// Reno repairs two losses in a window without its timer, but not four: each halves the window,
/// until too few duplicates come (Fall and Floyd, CCR 26(3), 1996, sections 6.2 to 6.4).
#[test]
fn t5_reno_needs_the_timer_for_many_drops() {
    for (k, expired) in [(1, 0), (2, 0), (4, 1)] {
        let reno = Config { recovery: Recovery::Reno, initial_window: 30.0, ..textbook() };
        let mut net = long_pipe(slow_timer(reno));
        let dropped: Vec<u64> = (0..k).map(|i| 3 * i).collect();
        net.fault(fault::drop_data(A, &dropped));
        let key = net.submit(A, B, 200 * MSS);
        net.run_until_idle(Dur::from_ms(5_000));
        assert!(net.record(key).acked.is_some());
        assert_eq!(timeouts(&net), expired, "{k} drops");
    }
}

/// With SACK, however many are lost (T5): one round trip, and one more for what the first leaves.
#[test]
fn t5_sack_repairs_a_window_in_two_round_trips() {
    for k in [1, 3, 5, 8] {
        let sack = Config { recovery: Recovery::Sack, initial_window: 30.0, ..textbook() };
        let mut net = long_pipe(slow_timer(sack));
        let dropped: Vec<u64> = (0..k).map(|i| 3 * i).collect();
        net.fault(fault::drop_data(A, &dropped));
        let key = net.submit(A, B, 200 * MSS);
        run_until(&mut net, |net| net.stat(A, Stat::FastRetransmit) == 1);
        let began = net.now();
        run_until(&mut net, |net| net.endpoint(A).only().window().phase() == Phase::Open);
        let rounds = net.now().since(began).as_us_f64() / (DELAY_LONG * 2).as_us_f64();
        assert!(rounds < 2.1, "{k} drops: {rounds} round trips");
        assert_eq!((timeouts(&net), net.stat(A, Stat::Retransmission)), (0, k));
        assert_eq!(net.stat(B, Stat::Duplicate), 0, "nothing is sent again needlessly");
        net.run_until_idle(Dur::from_ms(500));
        assert!(net.record(key).acked.is_some());
    }
}

/// A lost retransmission is repaired by the timer, with SACK too: one timeout, and only what is
/// missing is sent again.
#[test]
fn a_lost_retransmission_costs_a_timeout() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let mut net = long_pipe(slow_timer(Config { recovery, ..textbook() }));
        let mut lost = 0;
        net.fault(move |sent| {
            let first = sent.pkt.carries_payload() && sent.pkt.span.offset == 2 * MSS;
            lost += u32::from(first);
            if first && lost <= 2 { Verdict::Drop } else { Verdict::Pass }
        });
        let key = net.submit(A, B, 40 * MSS);
        net.run_until_idle(Dur::from_ms(5_000));
        assert!(net.record(key).acked.is_some());
        assert_eq!((timeouts(&net), net.stat(A, Stat::FastRetransmit)), (1, 1), "{recovery:?}");
        if recovery == Recovery::Sack {
            assert_eq!(net.stat(B, Stat::Duplicate), 1, "the rescue, of the last segment");
        }
    }
}

/// Invariant specs/tcp.md#T12: up to 14 segments BIC is Reno; here for a whole lossy transfer.
#[test]
fn t12_bic_is_reno_below_its_low_window() {
    let run = |rule| {
        let mut net = long_pipe(slow_timer(Config { rule, window_cap: 13.0, ..textbook() }));
        net.fault(fault::drop_data(A, &[7, 60, 61, 200, 350]));
        net.submit(A, B, 600 * MSS);
        net.run_until_idle(Dur::from_ms(20_000));
        data(&net).map(|sent| (sent.at, sent.pkt.span.offset)).collect::<Vec<_>>()
    };
    let bic = run(RuleConfig::Bic(rule::bic::Params::LINUX));
    assert!(bic.len() > 600);
    assert_eq!(bic, run(RuleConfig::NewReno));
}

#[test]
fn t7_timeouts_double_up_to_the_maximum_and_then_the_message_fails() {
    let mut config = Config { max_timeouts: 8, ..textbook() };
    config.rto.max = Dur::from_ms(30);
    let mut net = pair(config);
    net.fault(|_| Verdict::Drop);
    let key = net.submit(A, B, 500);
    net.run_until_idle(Dur::from_ms(1_000));
    let at: Vec<u64> = data(&net).map(|s| s.at.0 / Dur::from_ms(1).0).collect();
    let gaps: Vec<u64> = at.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(gaps, [1, 2, 4, 8, 16, 30, 30]);
    assert!(matches!(net.record(key).failed, Some((_, FailReason::TimedOut))));
    assert_eq!(net.endpoint(A).senders.open_count(), 0);
}

const CAUSES: [Stat; 4] =
    [Stat::HeadTimeout, Stat::TailTimeout, Stat::RetransmissionTimeout, Stat::OtherTimeout];

/// The classes of specs/incast.md#3, by what is lost of a message of `len` segments: `lost` are
/// packets, in the order of sending, `twice` is a segment and its retransmission.
#[test]
fn each_timeout_has_its_cause() {
    let causes = |len: u64, lost: &'static [u64], twice: &'static [u64]| {
        let mut net = long_pipe(slow_timer(textbook()));
        net.fault(fault::drop_data(A, lost));
        let mut again = 0;
        if !twice.is_empty() {
            net.fault(move |sent| {
                let it =
                    sent.pkt.carries_payload() && twice.contains(&(sent.pkt.span.offset / MSS));
                again += u32::from(it);
                if it && again <= 2 { Verdict::Drop } else { Verdict::Pass }
            });
        }
        let key = net.submit(A, B, len * MSS);
        net.run_until_idle(Dur::from_ms(5_000));
        assert!(net.record(key).acked.is_some());
        assert_eq!(net.stat(B, Stat::SpuriousTimeout), 0);
        CAUSES.map(|cause| net.stat(A, cause))
    };
    assert_eq!(causes(40, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[]), [1, 0, 0, 0], "the first window");
    assert_eq!(causes(3, &[0, 1, 2], &[]), [1, 0, 0, 0], "head goes before tail");
    assert_eq!(causes(40, &[39], &[]), [0, 1, 0, 0], "the last segment");
    assert_eq!(causes(40, &[37, 38, 39], &[]), [0, 1, 0, 0], "the last three");
    assert_eq!(causes(40, &[], &[2]), [0, 0, 1, 0], "a retransmission");
    let window: &[u64] =
        &[10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29];
    assert_eq!(causes(40, window, &[]), [0, 0, 0, 1], "a whole window amid the message");
}

/// Invariant specs/incast.md#I10, against what is on the wire: a segment that says so follows each
/// timeout, and has one cause.
#[test]
fn i10_causes_add_up_to_the_timeouts() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let mut net = pair(Config { recovery, ..textbook() });
        let mix = fault::Mix { drop: 0.2, ..fault::Mix::NONE };
        net.fault(fault::random(Draw::new(3, Purpose::new("test"), 0), mix));
        for _ in 0..40 {
            net.submit(A, B, 12 * MSS);
        }
        net.run_until_idle(Dur::from_ms(60_000));
        let caused = CAUSES.map(|cause| net.stat(A, cause));
        let says = |wanted| {
            let repeat =
                |sent: &Sent| Retransmission::of(Repr::parse(sent.pkt.header()).unwrap().control);
            data(&net).filter(|sent| repeat(sent) == wanted).count() as u64
        };
        let told = says(Retransmission::Timeout);
        assert_eq!((caused.iter().sum::<u64>(), told), (timeouts(&net), timeouts(&net)));
        assert!(caused.iter().all(|&n| n > 0), "{caused:?}");
        let spurious = net.stat(B, Stat::SpuriousTimeout);
        assert!(
            spurious > 0 && spurious < told,
            "{spurious} of {told}: acknowledgements were lost"
        );
    }
}

/// specs/tcp.md#6: a timeout shorter than the delay of an acknowledgement expires needlessly.
#[test]
fn a_timeout_during_a_delayed_acknowledgement_is_spurious() {
    let delayed_ack = Some(Dur::from_ms(5));
    let mut net = pair(Config { delayed_ack, ..textbook() });
    let key = net.submit_on(A, B, 1, 3 * MSS);
    net.run_until_idle(Dur::from_ms(100));
    assert!(net.record(key).acked.is_some());
    assert_eq!((timeouts(&net), net.stat(A, Stat::TailTimeout)), (1, 1));
    assert_eq!(net.stat(B, Stat::SpuriousTimeout), 1);
}

/// The law of Mathis et al. (CCR 27(3), 1997; specs/tcp.md#T9): packets per round trip = sqrt(3 /
/// 2p).
#[test]
fn t9_throughput_follows_the_square_root_of_loss() {
    for (p, seconds) in [(0.0003, 60), (0.001, 20), (0.003, 8)] {
        let mut config = slow_timer(textbook());
        config.rto.min = Dur::from_ms(10);
        let mut net = long_pipe(config);
        net.stop_logging();
        let draw = Draw::new(5, Purpose::new("test"), 0);
        net.fault(move |sent| {
            let lost = draw.unit(Purpose::new("loss"), sent.n) < p;
            if lost && sent.pkt.carries_payload() { Verdict::Drop } else { Verdict::Pass }
        });
        net.submit(A, B, UNBOUNDED);
        let time = Dur::from_ms(1_000 * seconds);
        net.run_until(Time::ZERO + time);
        let rounds = time.as_us_f64() / (DELAY_LONG * 2).as_us_f64();
        let measured = net.ledger().bytes_placed() as f64 / MSS as f64 / rounds;
        let law = (1.5 / p).sqrt();
        let ratio = measured / law;
        assert!((0.85..1.15).contains(&ratio), "p = {p}: {measured} per round, law {law}");
    }
}

#[test]
fn delayed_acknowledgements_halve_their_number() {
    let delayed_ack = Some(Dur::from_us(500));
    let mut net = pair(slow_timer(Config { delayed_ack, ..textbook() }));
    net.submit(A, B, 1000 * MSS);
    net.run_until_idle(Dur::from_ms(500));
    let acks = net.log().iter().filter(|s| s.pkt.src == B).count();
    assert!((500..=502).contains(&acks), "{acks}");
    assert_eq!(timeouts(&net), 0);

    // An odd segment on a persistent connection waits for the timer.
    let mut net = pair(slow_timer(Config { delayed_ack, ..textbook() }));
    let key = net.submit_on(A, B, 1, 3 * MSS);
    net.run_until_idle(Dur::from_ms(1));
    let arrived = RATE.serialise(1040) * 3 + DELAY;
    let acked = Time::ZERO + arrived + Dur::from_us(500) + RATE.serialise(40) + DELAY;
    assert_eq!(net.record(key).acked, Some(acked));
}

/// The first acknowledgements of a connection are not delayed where that is asked for.
#[test]
fn quick_acks_come_at_once() {
    let delayed_ack = Some(Dur::from_us(500));
    let mut net = pair(slow_timer(Config { delayed_ack, quick_acks: 16, ..textbook() }));
    net.submit(A, B, 100 * MSS);
    net.run_until_idle(Dur::from_ms(500));
    let acks = net.log().iter().filter(|s| s.pkt.src == B).count();
    assert_eq!(acks, 16 + 84 / 2);
}

/// RFC 5681, section 4.2: what fills a part of a gap is acknowledged at once.
#[test]
fn a_hole_filled_is_not_acknowledged_late() {
    let delayed_ack = Some(Dur::from_ms(50));
    let mut net = pair(slow_timer(Config { delayed_ack, ..textbook() }));
    net.fault(fault::drop_data(A, &[1, 2]));
    let key = net.submit_on(A, B, 1, 8 * MSS);
    net.run_until_idle(Dur::from_ms(500));
    let acked = net.record(key).acked.unwrap();
    assert!(acked < Time::ZERO + Dur::from_us(100), "two round trips of recovery: {acked}");
}

#[test]
fn limited_transmit_saves_the_timeout_of_a_small_window() {
    // Three segments in flight, the first lost: two duplicates only, unless they release more.
    let run = |limited_transmit| {
        let config = Config { initial_window: 3.0, limited_transmit, ..textbook() };
        let mut net = pair(config);
        net.fault(fault::drop_data(A, &[0]));
        net.submit(A, B, 8 * MSS);
        net.run_until_idle(Dur::from_ms(100));
        (timeouts(&net), net.stat(A, Stat::FastRetransmit))
    };
    assert_eq!(run(false), (1, 0));
    assert_eq!(run(true), (0, 1));
}

#[test]
fn the_cap_bounds_what_is_in_flight_and_what_is_halved() {
    let mut net =
        long_pipe(slow_timer(Config { window_cap: 6.0, grow_unused: true, ..textbook() }));
    net.fault(fault::drop_data(A, &[60]));
    net.submit(A, B, UNBOUNDED);
    run_until(&mut net, |net| {
        assert!(
            net.endpoint(A).senders.open_count() == 0 || net.endpoint(A).only().flight() <= 6 * MSS
        );
        net.stat(A, Stat::FastRetransmit) == 1
    });
    assert_eq!(net.endpoint(A).only().window().ssthresh(), 3.0, "half of 6, not of cwnd");
    // Unless told to grow unused, the window stays near what is used.
    let mut net = long_pipe(slow_timer(Config { window_cap: 6.0, ..textbook() }));
    net.submit(A, B, UNBOUNDED);
    net.run_until(Time::ZERO + Dur::from_ms(40));
    let cwnd = net.endpoint(A).only().window().cwnd();
    assert!(cwnd <= 12.0, "frozen: {cwnd}");
}

/// RFC 7323, section 4: with timestamps every acknowledgement of new data is a sample, even of what
/// was sent twice; without, one segment of a window is timed, and Karn's algorithm forbids a sample
/// of that.
#[test]
fn timestamps_measure_every_round_trip() {
    let srtt_after = |timestamps, lost: &[u64], acks: u64| {
        let rto = crate::rto::RtoConfig { srtt_gain: 1.0, ..textbook().rto };
        let mut net = long_pipe(slow_timer(Config { timestamps, rto, ..textbook() }));
        net.fault(fault::drop_data(A, lost));
        net.submit(A, B, 40 * MSS);
        let from_b = |net: &Net<Tcp>| net.log().iter().filter(|sent| sent.pkt.src == B).count();
        run_until(&mut net, |net| from_b(net) as u64 == acks);
        let last = net.log().iter().rfind(|sent| sent.pkt.src == B).unwrap().at;
        run_until(&mut net, |net| net.now() >= last + RATE.serialise(40) + DELAY_LONG);
        net.endpoint(A).only().rto().srtt()
    };
    // From the first bit of a segment to the last of its acknowledgement; the k-th waits for
    // nothing.
    let rtt = RATE.serialise(1040) + RATE.serialise(40) + DELAY_LONG * 2;
    let tick = Dur::from_ns(100);
    for acks in 1..=5 {
        assert_eq!(srtt_after(false, &[], acks), Some(rtt));
        let sample = srtt_after(true, &[], acks).unwrap();
        assert!(sample <= rtt + tick && sample + tick >= rtt, "{acks}: {sample} for {rtt}");
    }
    // Everything is lost but once: the first sample is of a retransmission.
    let first = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    assert_eq!(srtt_after(false, &first, 1), None);
    let sample = srtt_after(true, &first, 1).unwrap();
    assert!(sample <= rtt + tick && sample + tick >= rtt, "of the second transmission: {sample}");
}

/// RFC 7323, section 4.3: a delayed acknowledgement echoes the first segment that it answers, and
/// so counts the delay; one of a hole filled the segment that filled it.
#[test]
fn an_acknowledgement_echoes_the_segment_it_waited_for() {
    let echoes = |lost: &[u64]| {
        let delayed_ack = Some(Dur::from_ms(5));
        let config = Config { timestamps: true, delayed_ack, ..textbook() };
        let mut net = long_pipe(slow_timer(config));
        net.fault(fault::drop_data(A, lost));
        net.submit(A, B, 8 * MSS);
        net.run_until_idle(Dur::from_ms(100));
        let times = |sent: &Sent| Repr::parse(sent.pkt.header()).unwrap().timestamps.unwrap();
        let sent: Vec<u32> = data(&net).map(|sent| times(sent).value).collect();
        let acks = net.log().iter().filter(|sent| sent.pkt.src == B);
        acks.map(|ack| sent.iter().position(|&t| t == times(ack).echo).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(echoes(&[]), [0, 2, 4, 6]);
    // Segment 2 is lost: duplicates echo 1's stamp, the last to arrive in order, until it comes
    // again.
    let after = echoes(&[2]);
    assert_eq!(after[0], 0);
    assert_eq!(after.last(), Some(&8), "the ninth packet is the retransmission: {after:?}");
}

/// Vasudevan and others (SIGCOMM 2009): timers started at one instant expire at different ones, all
/// within the range; and doubled after an expiry.
#[test]
fn random_timeouts_part_what_began_together() {
    let expiries = |random| {
        let mut config = Config { max_timeouts: 3, ..textbook() };
        config.rto.random = random;
        let mut net = pair(config);
        net.fault(|_| Verdict::Drop);
        for _ in 0..50 {
            net.submit(A, B, 500);
        }
        net.run_until_idle(Dur::from_ms(100));
        let sent: Vec<Vec<Time>> = (0..50)
            .map(|i| data(&net).filter(|s| s.pkt.span.msg.0 == i).map(|s| s.at).collect())
            .collect();
        sent.iter().map(|at| [at[1].since(at[0]), at[2].since(at[1])]).collect::<Vec<_>>()
    };
    let ms = |dur: &Dur| dur.as_us_f64() / 1e3;
    let all = expiries(0.5);
    // A packet of 540 bytes may wait for 49 others.
    let wait = ms(&(RATE.serialise(540) * 50));
    for (i, times) in [1.0, 2.0].into_iter().enumerate() {
        let each: Vec<f64> = all.iter().map(|timeouts| ms(&timeouts[i]) / times).collect();
        assert!(each.iter().all(|&t| (1.0..1.5 + wait).contains(&t)), "{each:?}");
        let mean = each.iter().sum::<f64>() / 50.0;
        assert!((1.17..1.33).contains(&mean), "of 50 uniform draws, four deviations: {mean}");
    }
    assert!(expiries(0.0).iter().all(|t| ms(&t[0]) < 1.0 + wait));
}

/// `Msg::window` counts bytes on the wire, in whole segments, one at least; the newest message of a
/// connection sets it, and `window_cap` holds beside it.
#[test]
fn a_message_caps_the_window_of_its_connection() {
    for (window, segments) in
        [(5 * 1040, 5), (6 * 1040 - 1, 5), (0, 1), (100 * 1040, 8), (u64::MAX, 8)]
    {
        let mut net = long_pipe(slow_timer(Config { window_cap: 8.0, ..textbook() }));
        let msg = |len| Msg { channel: 1, window, ..Msg::new(B, len) };
        net.submit_as(A, msg(100 * MSS));
        net.run_until(Time::ZERO + Dur::from_ms(1));
        assert_eq!(net.endpoint(A).only().flight(), segments * MSS, "{window} bytes");
        // The next message lifts it, for what is left of the first as well.
        net.submit_as(A, Msg { channel: 1, ..Msg::new(B, MSS) });
        net.run_until(Time::ZERO + Dur::from_us(1_500));
        assert_eq!(net.endpoint(A).only().flight(), 8 * MSS);
    }
}

/// Edge case 5 of specs/tcp.md#12: a cap below what is in flight stops sending, and takes
/// nothing back; cwnd is as it was, and a loss halves the capped window.
#[test]
fn a_smaller_cap_than_the_flight_stops_sending() {
    let mut net = long_pipe(slow_timer(Config { grow_unused: true, ..textbook() }));
    net.submit_as(A, Msg { channel: 1, ..Msg::new(B, 100 * MSS) });
    net.run_until(Time::ZERO + Dur::from_us(2_900)); // 20 segments, 1000 us in flight
    assert_eq!(net.endpoint(A).only().window().cwnd(), 20.0);
    assert_eq!(net.endpoint(A).only().flight(), 20 * MSS);
    net.submit_as(A, Msg { channel: 1, window: 6 * 1040, ..Msg::new(B, MSS) });
    assert_eq!(net.endpoint(A).only().flight(), 20 * MSS);
    let before = data(&net).count();
    run_until(&mut net, |net| net.endpoint(A).only().flight() <= 6 * MSS);
    assert_eq!(data(&net).count(), before, "nothing is sent until no more than that is in flight");
    assert_eq!(net.stat(A, Stat::Retransmission), 0);
    run_until(&mut net, |net| data(net).count() == before + 20);
    assert!(net.endpoint(A).only().flight() <= 6 * MSS);
    let cwnd = net.endpoint(A).only().window().cwnd();
    assert!(cwnd > 30.0, "as it would be without the cap: {cwnd}");
    let mut lost = false;
    net.fault(move |sent| {
        let first = sent.pkt.src == A && !std::mem::replace(&mut lost, true);
        if first { Verdict::Drop } else { Verdict::Pass }
    });
    run_until(&mut net, |net| net.stat(A, Stat::FastRetransmit) == 1);
    assert_eq!(net.endpoint(A).only().window().ssthresh(), 3.0);
}

#[test]
fn an_idle_connection_restarts_from_the_initial_window() {
    let cwnd_after_idle = |idle_restart| {
        let mut net = pair(Config { idle_restart, ..textbook() });
        net.submit_on(A, B, 1, 100 * MSS);
        net.run_until(Time::ZERO + Dur::from_ms(50));
        net.submit_on(A, B, 1, MSS);
        assert_eq!(net.endpoint(A).senders.open_count(), 1, "the same connection");
        net.endpoint(A).only().window().cwnd()
    };
    assert_eq!(cwnd_after_idle(IdleRestart::InitialWindow), 10.0);
    assert_eq!(cwnd_after_idle(IdleRestart::OneSegment), 1.0);
    assert!(cwnd_after_idle(IdleRestart::Never) > 15.0);
}

/// ns-2's timer is set by the last acknowledgement and goes on. The others count from the last
/// segment, a round trip of 2 ms before.
#[test]
fn one_segment_is_for_silence_since_the_last_acknowledgement() {
    let restarts = |idle_restart, timeouts: f64| {
        let mut config = Config { idle_restart, initial_window: 4.0, ..textbook() };
        (config.rto.min, config.rto.initial) = (Dur::from_ms(5), Dur::from_ms(5));
        let mut net = long_pipe(config);
        net.submit_on(A, B, 1, 100 * MSS);
        run_until(&mut net, |net| net.endpoint(A).messages == 0);
        let (window, rto) = (net.endpoint(A).only().cwnd(), *net.endpoint(A).only().rto());
        let silence = Dur((rto.timeout(&config.rto).0 as f64 * timeouts) as u64);
        net.run_until(net.now() + silence);
        net.submit_on(A, B, 1, MSS);
        net.endpoint(A).only().cwnd() < window
    };
    assert!(restarts(IdleRestart::InitialWindow, 0.9));
    assert!(!restarts(IdleRestart::OneSegment, 0.9));
    assert!(restarts(IdleRestart::OneSegment, 1.1));
}

/// RFC 2861, section 2: half of the window for each timeout of 1 ms that nothing was sent, down to
/// the initial window of 10; ssthresh is then at least three quarters of it.
#[test]
fn a_silent_connection_loses_half_its_window_for_each_timeout() {
    let after = |us: u64| {
        let config = Config { idle_restart: IdleRestart::Halving, ..textbook() };
        let config = Config { initial_ssthresh: 50.0, grow_unused: true, ..config };
        let mut net = pair(config);
        net.submit_on(A, B, 1, 2_000 * MSS);
        run_until(&mut net, |net| net.endpoint(A).messages == 0);
        let (quiet, window) = (data(&net).last().unwrap().at, *net.endpoint(A).only().window());
        net.run_until(quiet + Dur::from_us(us));
        net.submit_on(A, B, 1, MSS);
        let now = net.endpoint(A).only().window();
        (now.cwnd() / window.cwnd(), now.cwnd(), now.ssthresh() / window.cwnd())
    };
    assert_eq!(after(1_000).0, 1.0, "as long as the timeout, not longer");
    assert_eq!(after(1_001).0, 0.5);
    assert_eq!(after(2_001).0, 0.25);
    assert_eq!(after(50_000).1, 10.0);
    assert_eq!(after(50_000).2, 0.75);
}

/// RFC 5827: three segments, the first lost and nothing to follow: two duplicates are all that
/// comes. A cap of three has the same effect where there is more to send (edge case 4 of
/// specs/tcp.md#12).
#[test]
fn early_retransmit_needs_all_that_can_come() {
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        for (len, window_cap) in [(3, f64::INFINITY), (2, f64::INFINITY), (12, 3.5), (12, 2.0)] {
            let run = |early_retransmit| {
                let config = Config { recovery, window_cap, early_retransmit, ..textbook() };
                let mut net = pair(config);
                net.fault(fault::drop_data(A, &[0]));
                let key = net.submit(A, B, len * MSS);
                net.run_until_idle(Dur::from_ms(100));
                assert!(net.record(key).acked.is_some());
                (timeouts(&net), net.stat(A, Stat::FastRetransmit), net.stat(B, Stat::Duplicate))
            };
            let (timeouts, fast, _) = run(false);
            assert_eq!((timeouts, fast), (1, 0), "{recovery:?} {len} {window_cap}");
            assert_eq!(run(true), (0, 1, 0), "{recovery:?} {len} {window_cap}");
        }
    }
    // Reordering of two segments is not taken for a loss while more can be sent.
    let mut net = pair(Config { early_retransmit: true, initial_window: 3.0, ..textbook() });
    let swap = move |sent: &Sent| {
        let first = sent.pkt.src == A && sent.pkt.span.offset == 0;
        if first { Verdict::Delay(Dur::from_us(3)) } else { Verdict::Pass }
    };
    net.fault(swap);
    net.submit(A, B, 20 * MSS);
    net.run_until_idle(Dur::from_ms(100));
    assert_eq!(net.stat(A, Stat::FastRetransmit), 0);
}

/// The columns of specs/tcp.md#11, where they say something.
#[test]
fn presets_are_the_profiles_of_the_specification() {
    let ms = Dur::from_ms;
    let row = |c: Config| {
        let rto = (c.rto.min, c.rto.max, c.rto.initial, c.rto.tick);
        (c.initial_window, c.window_cap, c.initial_ssthresh, c.limited_transmit, rto)
    };
    let none = f64::INFINITY;
    let ns2 = Config::ns2(1000);
    let times = (ms(200), ms(60_000), ms(3_000), ms(10));
    assert_eq!(row(ns2), (2.0, 20.0, 20.0, true, times));
    assert_eq!((ns2.overhead, ns2.delayed_ack), (40, None));
    let mmptcp = Config::ns3_3_17(1400);
    let times = (ms(200), ms(60_000), ms(1_500), ms(1));
    assert_eq!(row(mmptcp), (1.0, 46.0, 46.0, false, times));
    let gains = (mmptcp.rto.srtt_gain, mmptcp.rto.rttvar_gain, mmptcp.rto.first_rttvar);
    assert_eq!((mmptcp.overhead, gains, mmptcp.delayed_ack), (60, (0.1, 0.1, 1.0), None));
    let ns3 = Config::ns3_3_39(536);
    let times = (ms(1_000), ms(60_000), ms(1_000), ms(1));
    assert_eq!(row(ns3), (10.0, none, none, true, times));
    assert_eq!(ns3.delayed_ack, Some(ms(200)));
    let times = (ms(200), ms(120_000), ms(1_000), ms(1));
    assert_eq!(row(Config::linux_datacenter(1460)), (10.0, none, none, true, times));
    assert_eq!(row(Config::linux_2_6(1460)), (3.0, none, none, true, times));
    let htsim = Config::htsim(1500);
    let times = (ms(250), ms(60_000), ms(3_000), ms(10));
    assert_eq!(row(htsim), (10.0, none, 100.0, false, times));
    assert_eq!((htsim.mss, htsim.delayed_ack, htsim.quick_acks), (1460, None, 0));
    let restart = |c: Config| c.idle_restart;
    assert_eq!((restart(ns2), restart(ns3)), (IdleRestart::OneSegment, IdleRestart::InitialWindow));
    assert_eq!([htsim, mmptcp].map(restart), [IdleRestart::Never; 2]);
    for config in [ns2, mmptcp, ns3, htsim, Config::linux_2_6(1460), Config::linux_datacenter(1460)]
    {
        assert_eq!((config.dup_threshold, config.check()), (3, Ok(())));
    }
    assert_eq!(Config::ns3_3_17(u16::MAX).window_cap, 1.0);
}

#[test]
fn a_late_duplicate_of_a_finished_message_is_acknowledged_not_delivered() {
    let mut net = pair(textbook());
    // The acknowledgements of the whole message are lost, twice over.
    let mut lost = 0;
    net.fault(move |sent| {
        let ack = sent.pkt.src == B && lost < 8;
        lost += u32::from(ack);
        if ack { Verdict::Drop } else { Verdict::Pass }
    });
    let key = net.submit(A, B, 6 * MSS);
    net.run_until_idle(Dur::from_ms(100));
    assert!(net.record(key).acked.is_some(), "the ledger checks that it was delivered once");
    assert!(net.stat(B, Stat::Duplicate) > 0);
    assert_eq!(net.endpoint(B).receivers.open(), 0, "no state of finished connections");
}

#[test]
fn sequence_numbers_wrap() {
    let mut net = pair(Config { isn: u32::MAX - 5_000, ..textbook() });
    net.fault(fault::drop_data(A, &[4, 20]));
    let key = net.submit(A, B, 60 * MSS + 1);
    net.run_until_idle(Dur::from_ms(100));
    assert!(net.record(key).acked.is_some());
    assert_eq!(unwrap(3, u64::from(u32::MAX), 32), Some(u64::from(u32::MAX) + 4));
    assert_eq!(unwrap(u32::MAX, 2, 32), None);
    assert_eq!(unwrap(1, (1 << CONN_BITS) - 1, CONN_BITS), Some((1 << CONN_BITS) + 1));
}

#[test]
fn senders_take_turns() {
    let mut net = pair(textbook());
    let keys: Vec<MsgKey> = (0..4).map(|_| net.submit(A, B, 5 * MSS)).collect();
    net.run_until_idle(Dur::from_ms(10));
    let order: Vec<u64> = data(&net).map(|s| s.pkt.span.msg.0).collect();
    assert_eq!(order[..8], [0, 0, 1, 2, 3, 0, 1, 2], "the first was alone at first");
    assert!(keys.iter().all(|&key| net.record(key).acked.is_some()));
}

#[test]
fn ports_and_connection_ids_are_inverses() {
    for conn in [0, 1, 0x7fff, 0x8000, 0x1234_5678, (1 << CONN_BITS) - 1] {
        let (sender, receiver) = ports(conn);
        assert!(sender & SENDER_PORT != 0 && receiver & SENDER_PORT == 0);
        assert_eq!(conn_id(sender, receiver), conn);
    }
}

#[test]
fn small_per_connection() {
    assert!(size_of::<Sender>() <= 500, "{}", size_of::<Sender>());
}

#[test]
fn impossible_configurations_are_named() {
    let error = |config: Config| Tcp::new(config).unwrap_err().to_string();
    let good = textbook();
    assert_eq!(error(Config { mss: 0, ..good }), "mss is 0: it must be at least 1");
    assert_eq!(
        error(Config { initial_window: f64::NAN, ..good }),
        "initial_window is NaN: it must be at least 1"
    );
    assert_eq!(error(Config { class: 8, ..good }), "class is 8: it must be at most 7");
    assert_eq!(
        error(Config { mss: 65_500, ..good }),
        "mss 65500 and overhead 40 make a packet of more than 65535 bytes"
    );
    let rto = crate::rto::RtoConfig { min: Dur::from_ms(2_000), ..good.rto };
    assert_eq!(error(Config { rto, ..good }), "rto_min 2s is above rto_max 1s");
}

/// Configurations that differ in every switch.
fn variants() -> [Config; 13] {
    let fast = textbook();
    let mut ns2 = Config { ..Config::ns2(MSS as u16) };
    ns2.rto.min = Dur::from_ms(1);
    ns2.rto.tick = Dur::from_us(100);
    let mut linux = Config::linux_datacenter(MSS as u16);
    linux.rto = crate::rto::RtoConfig { min_is_variance: true, ..fast.rto };
    linux.delayed_ack = Some(Dur::from_us(300));
    let crowded = Config { max_messages: 3, impatient: true, isn: u32::MAX - 99, ..fast };
    let reno = Config { recovery: Recovery::Reno, slow_start: false, ..fast };
    let sack = Config { recovery: Recovery::Sack, isn: u32::MAX - 99, ..fast };
    let rule = RuleConfig::Dctcp(rule::dctcp::Params::RFC);
    let dctcp = Config { rule, ecn: true, recovery: Recovery::Sack, ..linux };
    let rule = RuleConfig::Cubic(rule::cubic::Params::RFC);
    let cubic = Config { rule, ecn: true, recovery: Recovery::Sack, ..fast };
    let bic = Config { rule: RuleConfig::Bic(rule::bic::Params::LINUX), ..sack };
    let htcp = Config { rule: RuleConfig::HTcp(rule::htcp::Params::LINUX), ..fast };
    let slow_start_delay = Dur::from_us(20);
    let params = rule::fast::Params { alpha: 10.0, gamma: 0.5, slow_start_delay };
    let delay_based = Config { rule: RuleConfig::Fast(params), ..sack };
    let params = ictcp::Params::paper(Dur::from_ms(1));
    let ictcp = Config { receive_window: ReceiveWindow::Ictcp(params), ..sack };
    let mut opened = Config { handshake: true, timestamps: true, ..sack };
    opened.rto.random = 0.5;
    [fast, ns2, linux, crowded, reno, sack, dctcp, cubic, bic, htcp, delay_based, ictcp, opened]
}

/// What the conformance suite is to know of TCP and its subflows.
pub(crate) fn suite() -> conformance::Opts {
    conformance::Opts {
        payload: Bytes(MSS),
        window: Bytes(10 * MSS),
        trims: false,
        bounces: false,
        hashed_paths: true,
        patience: Dur::from_ms(600_000),
    }
}

#[test]
fn conforms() {
    for config in variants() {
        conformance::run(|_| Box::new(Tcp::new(config).unwrap()) as Box<dyn Endpoint>, suite());
    }
}

#[test]
fn two_senders_share_a_bottleneck() {
    let make = || Box::new(Tcp::new(textbook()).unwrap());
    let mut net = Net::new(1, LINK, vec![make(), make(), make()]);
    let half = Bottleneck { rate: Rate(5_000_000_000), packets: 30, trim: false };
    net.set_bottleneck(HostId(2), half);
    net.stop_logging();
    let keys = [A, B].map(|src| net.submit(src, HostId(2), UNBOUNDED));
    let end = Dur::from_ms(500);
    net.run_until(Time::ZERO + end);
    let placed =
        keys.map(|key| net.record(key).placed.iter().map(|r| r.end - r.start).sum::<u64>());
    let capacity = half.rate.bytes_in(end).0 * MSS / (MSS + 40);
    let total: u64 = placed.iter().sum();
    assert!(total <= capacity && total > capacity * 85 / 100, "{placed:?} of {capacity}");
    assert!(placed.iter().all(|&p| p > capacity * 3 / 10), "about fair: {placed:?}");
}

/// specs/mptcp.md#I2: one subflow whose rule is LIA sends what NewReno sends, packet for packet; so
/// do the others.
#[test]
fn i2_a_coupled_rule_alone_is_newreno() {
    let sent = |rule| {
        let make = || Box::new(Tcp::new(Config { rule, ..textbook() }).unwrap());
        let mut net = Net::new(1, LINK, vec![make(), make(), make()]);
        let half = Bottleneck { rate: Rate(5_000_000_000), packets: 30, trim: false };
        net.set_bottleneck(HostId(2), half);
        let _ = [A, B].map(|src| net.submit(src, HostId(2), UNBOUNDED));
        net.run_until(Time::ZERO + Dur::from_ms(20));
        assert!(net.stat(A, Stat::FastRetransmit) > 3, "there are losses");
        net.log().iter().map(|sent| (sent.at, sent.pkt.span)).collect::<Vec<_>>()
    };
    let newreno = sent(RuleConfig::NewReno);
    for rule in [
        RuleConfig::Lia(rule::lia::Params::RFC),
        RuleConfig::Lia(rule::lia::Params { capped: false, ..rule::lia::Params::RFC }),
        RuleConfig::Olia,
        RuleConfig::Ewtcp(rule::ewtcp::Weight::InverseSquare),
        RuleConfig::Semicoupled(rule::semicoupled::Params { exponent: 1.0, weight: 1.0 }),
    ] {
        assert!(sent(rule) == newreno, "{rule:?}");
    }
}

/// Invariant specs/tcp.md#T13, with the slow-start threshold of the ns-2 module: 1 Gb/s, a round
/// trip of 100 us, two flows that keep ten packets queued each. 0.75 ms of delay let slow start
/// overshoot; the rule then brings the queue to its 20 packets, and slow start stays over.
#[test]
fn t13_fast_keeps_alpha_packets_of_each_flow_queued() {
    const SLOW: Rate = Rate(1_000_000_000);
    let slow_start_delay = Dur::from_us(750);
    let params = rule::fast::Params { alpha: 10.0, gamma: 0.5, slow_start_delay };
    let config = Config { rule: RuleConfig::Fast(params), ..slow_timer(textbook()) };
    let make = || Box::new(Tcp::new(config).unwrap());
    // Forth and back 50 us less the serialisation on the quick links of the hosts.
    let link = Link { delay: Dur::from_us(49), ..LINK };
    let mut net = Net::new(1, link, vec![make(), make(), make()]);
    let sink = HostId(2);
    net.set_bottleneck(sink, Bottleneck { rate: SLOW, packets: 10_000, trim: false });
    net.stop_logging();
    let keys = [A, B].map(|src| net.submit(src, sink, UNBOUNDED));
    let placed = |net: &Net<Tcp>| {
        keys.map(|key| net.record(key).placed.iter().map(|r| r.end - r.start).sum::<u64>() as f64)
    };
    net.run_until(Time::ZERO + Dur::from_ms(100));
    let before = placed(&net);
    // The queue: what is in flight beyond what the wires hold, 100 us and its own serialisation.
    let (mut queue, mut samples) = (0.0, 0.0);
    for ms in 101..=400 {
        net.run_until(Time::ZERO + Dur::from_ms(ms));
        let flight: u64 = [A, B].iter().map(|&host| net.endpoint(host).only().flight()).sum();
        queue += flight as f64 / MSS as f64;
        samples += 1.0;
    }
    let pipe = SLOW.bytes_in(Dur::from_us(100)).0 as f64 / 1040.0;
    let queue = queue / samples - pipe;
    assert!((18.0..=22.0).contains(&queue), "{queue} packets queued");
    let after = placed(&net);
    let rates = [after[0] - before[0], after[1] - before[1]];
    let sum: f64 = rates.iter().sum();
    let jain = sum * sum / (2.0 * rates.iter().map(|r| r * r).sum::<f64>());
    assert!(jain >= 0.99, "{rates:?}");
    assert!(sum * 8.0 / 0.3 > 0.99 * 1e9 * 1000.0 / 1040.0, "the link is full: {rates:?}");
}

mod hostile {
    use endpoint::{Effects, HDR_MAX, NetView};
    use proptest::prelude::*;
    use wire::tcp::Timestamps;

    use super::*;
    use crate::connection_ids::FIRST_CONN;

    /// A packet near enough to a real one to reach deep: the first connection's ports, small
    /// numbers, any control bits; or any header at all.
    fn packet() -> impl Strategy<Value = Packet> {
        let span = (0..3u64, prop_oneof![0..9_000u64, any::<u64>()], 0..3_000u32);
        let blocks = proptest::collection::vec((0..9_000u32, 0..9_000u32), 0..4);
        let numbers = (0..9_000u32, 0..9_000u32, any::<u8>(), any::<bool>(), blocks);
        let raw = proptest::option::of(proptest::collection::vec(any::<u8>(), HDR_MAX));
        (span, numbers, raw, 0..32u8, any::<u8>()).prop_map(|(span, numbers, raw, flags, len)| {
            let mut pkt = Packet { src: B, dst: A, proto: PROTO, ..Packet::EMPTY };
            pkt.span = Span { msg: MsgId(span.0), offset: span.1, len: span.2 };
            pkt.flags = Flags(flags);
            let (mine, theirs) = ports(Draw::new(0, PATH, 0).part(1).bits(FIRST_CONN, 0) as u32);
            let (src_port, dst_port) = if numbers.3 { (mine, theirs) } else { (theirs, mine) };
            let (seq, ack, control) = (numbers.0, numbers.1, Control(numbers.2));
            let mut sack = SackBlocks::NONE;
            numbers.4.iter().for_each(|&(left, right)| sack.push(left, right));
            let timestamps = Some(Timestamps { value: numbers.1, echo: numbers.0 });
            let repr = Repr { src_port, dst_port, seq, ack, control, window: 0, sack, timestamps };
            write(repr, &mut pkt);
            if let Some(raw) = raw {
                pkt.hdr.copy_from_slice(&raw);
                pkt.hdr_len = len;
            }
            pkt
        })
    }

    proptest! {
        /// Whatever arrives, TCP neither panics nor delivers what was not placed.
        #[test]
        fn no_packet_breaks_it(
            packets in proptest::collection::vec(packet(), 1..60), heeded in any::<bool>(),
            handshake in any::<bool>(), sack in any::<bool>(),
        ) {
            let params = ictcp::Params::paper(Dur::from_us(500));
            let receive_window =
                if heeded { ReceiveWindow::Ictcp(params) } else { ReceiveWindow::Unlimited };
            let recovery = if sack { Recovery::Sack } else { Recovery::NewReno };
            let timestamps = handshake;
            let config =
                Config { receive_window, recovery, handshake, timestamps, ..textbook() };
            let mut tcp = Tcp::new(config).unwrap();
            let nics = [RATE];
            let routes = &Star::new(1, Dur::from_us(1));
            let net = NetView { me: A, nics: &nics, mtu: 1500, whole: false, lateness: Dur::ZERO, routes };
            let mut fx = Effects::new();
            let mut now = Time::ZERO;
            let draw = Draw::new(0, PATH, 0);
            let msg = |id| Msg { id: MsgId(id), ..Msg::new(B, 5_000) };
            let mut acked = 0;
            for (i, pkt) in packets.iter().enumerate() {
                now += Dur::from_us(100);
                let mut cx =
                    Cx { now, rx_at: now, me: A, room: u64::MAX, net: &net, draw, fx: &mut fx };
                if i % 20 == 0 {
                    tcp.on_submit(&mut cx, &msg(i as u64));
                }
                tcp.on_packet(&mut cx, pkt);
                tcp.on_timer(&mut cx, TimerId(0));
                for _ in 0..3 {
                    let mut slot = Packet::EMPTY;
                    tcp.poll_tx(&mut cx, TxPort { nic: 0, open: 0xff }, &mut slot);
                }
                acked += fx.as_slice().iter().filter(|e| matches!(e, Effect::Acked(_))).count();
                fx.clear();
            }
            prop_assert!(acked <= packets.len().div_ceil(20));
        }
    }
}

/// PIAS: one class lower beyond each threshold, acknowledgements in the first.
#[test]
fn what_a_message_has_sent_says_the_class_of_its_packets() {
    let pias = Demotion::new(&[2 * MSS, 10 * MSS]);
    let mut net = pair(Config { class: 7, pias, ..textbook() });
    net.submit(A, B, 20 * MSS);
    net.run_until_idle(Dur::from_ms(1));
    net.ledger().assert_all_done();
    let classes: Vec<u8> = data(&net).map(|sent| sent.pkt.class).collect();
    assert_eq!(classes, [vec![7; 3], vec![6; 8], vec![5; 9]].concat());
    assert!(net.log().iter().all(|sent| sent.pkt.src == A || sent.pkt.class == 7));
}

/// And a host sends what has the highest class first.
#[test]
fn a_message_that_has_sent_less_goes_first() {
    let pias = Demotion::new(&[2 * MSS]);
    let config = Config { class: 1, pias, initial_window: 100.0, ..textbook() };
    for (pias, packets) in [(pias, 3), (None, 5)] {
        let mut net = pair(Config { pias, ..config });
        net.submit(A, B, 50 * MSS);
        net.run_until(Time::ZERO + RATE.serialise(1040) * 10);
        let short = net.submit(A, B, 3 * MSS);
        net.run_until_idle(Dur::from_ms(1));
        let sent: Vec<bool> = data(&net).map(|sent| sent.pkt.span.msg == short.id).collect();
        let first = sent.iter().position(|&short| short).unwrap();
        let took = sent[first..].iter().take(packets).filter(|&&short| short).count();
        assert_eq!(took, 3, "{pias:?}: one after the other, or in turn");
        assert_eq!(sent[first..first + 3].iter().all(|&short| short), pias.is_some());
    }
}
