//! Invariants T1 to T15 of specs/tcp.md#13, for every congestion-control rule and every
//! recovery. T5, T9, T12 and T13, which are about some of them, are in `mod.rs`; T9, T10 and T13 on
//! a fabric are among the tests of `scenario`. 10 Gb/s, segments of 1000 + 40 bytes, a round trip
//! of 2 ms unless said otherwise.

use std::cell::Cell;
use std::rc::Rc;

use endpoint::{Draw, Purpose, Stat, UNBOUNDED};
use testkit::{Link, Net, Seen, Verdict, fault};
use units::{Dur, HostId, Rate, Time};
use wire::tcp::Repr;

use crate::rto::RtoConfig;
use crate::tcp::Tcp;
use crate::tcp::config::{Config, Recovery, Reduces};
use crate::tcp::rule::{RuleConfig, bic, cubic, dctcp, fast, htcp};
use crate::tcp::sender::Sender;
use crate::tcp::window::Phase;

const A: HostId = HostId(0);
const B: HostId = HostId(1);
const MSS: u64 = 1000;
const RTT: Dur = Dur::from_ms(2);
const LINK: Link =
    Link { rate: Rate(10_000_000_000), delay: Dur::from_ms(1), mtu: 1500, paths: 1, hashed: true };

/// Growth by the textbook, and a timeout of at least 20 ms.
fn textbook() -> Config {
    let rto = RtoConfig {
        min: Dur::from_ms(20),
        max: Dur::from_ms(1_000),
        initial: Dur::from_ms(20),
        ack_ends_backoff: true,
        ..RtoConfig::RFC_6298
    };
    Config::textbook(MSS as u16, rto)
}

/// Every rule, with what it leaves of a window of 20 after its first loss, as its publication has
/// it. FAST never finds its own delay here.
fn rules() -> [(RuleConfig, f64); 6] {
    let slow_start_delay = Dur::from_us(500);
    let fast = fast::Params { alpha: 10.0, gamma: 0.5, slow_start_delay };
    [
        (RuleConfig::NewReno, 0.5),
        (RuleConfig::Bic(bic::Params::LINUX), 819.0 / 1024.0),
        (RuleConfig::HTcp(htcp::Params::LINUX), 0.5),
        (RuleConfig::Cubic(cubic::Params::RFC), 0.7),
        (RuleConfig::Dctcp(dctcp::Params::RFC), 0.5),
        (RuleConfig::Fast(fast), 0.5),
    ]
}

/// Every rule with every recovery; with each what is left of the window.
fn all() -> impl Iterator<Item = (Config, f64)> {
    let recoveries = [Recovery::Reno, Recovery::NewReno, Recovery::Sack];
    rules().into_iter().flat_map(move |(rule, left)| {
        let ecn = matches!(rule, RuleConfig::Dctcp(_));
        recoveries.map(|recovery| (Config { rule, recovery, ecn, ..textbook() }, left))
    })
}

fn pair(config: Config) -> Net<Tcp> {
    let make = || Box::new(Tcp::new(config).unwrap());
    Net::new(1, LINK, vec![make(), make()])
}

/// The sender of the only connection.
fn sender(net: &Net<Tcp>) -> &Sender {
    let tcp = net.endpoint(A);
    assert_eq!(tcp.senders.open_count(), 1);
    tcp.senders.iter().next().unwrap()
}

fn stat(net: &Net<Tcp>, stat: Stat) -> u64 {
    net.stat(A, stat)
}

fn at_ms(n: u64) -> Time {
    Time::ZERO + Dur::from_ms(n)
}

fn draw() -> Draw {
    Draw::new(7, Purpose::new("tcp invariants"), 0)
}

/// T1 and T2 at every step of a run in which packets of both directions are lost, doubled and
/// overtaken. The ledger of the wire checks that what is delivered is placed exactly once.
#[test]
fn t1_t2_positions_and_windows_stay_in_range() {
    for (config, _) in all() {
        let mut net = pair(config);
        let late_max = Dur::from_us(300);
        let mix =
            fault::Mix { drop: 0.02, duplicate: 0.01, delay: 0.01, late_max, ..fault::Mix::NONE };
        net.fault(fault::random(draw(), mix));
        let expected = Rc::new(Cell::new(0));
        net.watch(move |_, what, pkt| {
            if what == Seen::Sent && pkt.src == B {
                let ack = Repr::parse(pkt.header()).unwrap().ack;
                assert!(ack >= expected.get(), "RCV.NXT goes back");
                expected.set(ack);
            }
        });
        net.submit(A, B, UNBOUNDED);
        let mut una = 0;
        while net.now() < at_ms(400) {
            assert!(net.step());
            let sender = sender(&net);
            sender.assert_in_range();
            assert!(sender.una() >= una, "{config:?}");
            una = sender.una();
            let window = sender.window();
            assert!(window.cwnd() >= 1.0, "{config:?}");
            let losses = stat(&net, Stat::FastRetransmit) + stat(&net, Stat::Timeout);
            assert!(losses == 0 || window.ssthresh() >= 2.0, "{config:?}");
        }
        assert!(stat(&net, Stat::FastRetransmit) > 5 && una > 500 * MSS, "{config:?}: {una}");
    }
}

/// T3: slow start doubles whatever the rule.
#[test]
fn t3_slow_start_doubles() {
    for (config, _) in all() {
        let mut net = pair(Config { initial_window: 2.0, ..config });
        net.submit(A, B, UNBOUNDED);
        let windows = [1, 2, 3, 4, 5].map(|k| {
            net.run_until(Time::ZERO + RTT * k + Dur::from_us(900));
            sender(&net).window().cwnd()
        });
        assert_eq!(windows, [4.0, 8.0, 16.0, 32.0, 64.0], "{config:?}");
    }
}

/// T4: one loss in a window of 20: one fast retransmit, no timeout, one round trip, and what the
/// rule leaves.
#[test]
fn t4_one_drop_costs_one_round_trip() {
    for (config, left) in all() {
        let config = Config { initial_window: 20.0, ..config };
        let mut net = pair(config);
        net.fault(fault::drop_data(A, &[0]));
        let key = net.submit(A, B, 60 * MSS);
        let phase = |net: &Net<Tcp>| sender(net).window().phase();
        while phase(&net) == Phase::Open {
            assert!(net.step());
        }
        let began = net.now();
        while phase(&net) == Phase::Recovery {
            assert!(net.step());
        }
        let rounds = net.now().since(began).as_us_f64() / RTT.as_us_f64();
        assert!((1.0..1.05).contains(&rounds), "{rounds} round trips: {config:?}");
        let cwnd = sender(&net).window().cwnd();
        assert!((cwnd - left * 20.0).abs() <= 1.0, "{cwnd} left: {config:?}");
        net.run_until_idle(Dur::from_ms(500));
        assert!(net.record(key).acked.is_some());
        let counts = [Stat::FastRetransmit, Stat::Retransmission, Stat::Timeout];
        assert_eq!(counts.map(|s| stat(&net, s)), [1, 1, 0], "{config:?}");
    }
}

/// T6: the last segment is lost: exactly one timeout, not before RTOmin, and one retransmission.
#[test]
fn t6_a_lost_tail_costs_one_timeout() {
    for (config, _) in all() {
        let mut net = pair(config);
        net.fault(fault::drop_data(A, &[7]));
        let key = net.submit(A, B, 8 * MSS);
        net.run_until_idle(Dur::from_ms(500));
        let counts = [Stat::Timeout, Stat::Retransmission, Stat::FastRetransmit];
        assert_eq!(counts.map(|s| stat(&net, s)), [1, 1, 0], "{config:?}");
        let tail = net.log().iter().filter(|s| s.pkt.src == A && s.pkt.span.offset == 7 * MSS);
        let [first, second] = tail.map(|s| s.at).collect::<Vec<_>>()[..] else { panic!() };
        assert!(second.since(first) >= config.rto.min, "{config:?}");
        assert!(net.record(key).acked.is_some());
    }
}

/// T7: nothing arrives any more: 20 ms, 40, 80, ... up to the greatest timeout, and as often as the
/// timer says, not more.
#[test]
fn t7_timeouts_double_up_to_the_maximum() {
    for (mut config, _) in all() {
        config.rto.max = Dur::from_ms(300);
        let mut net = pair(Config { max_timeouts: 7, ..config });
        net.fault(|sent| if sent.n < 20 { Verdict::Pass } else { Verdict::Drop });
        net.submit(A, B, UNBOUNDED);
        net.run_until_idle(Dur::from_ms(2_000));
        let sent: Vec<u64> = net.log().iter().map(|s| s.at.0 / Dur::from_ms(1).0).collect();
        let gaps: Vec<u64> = sent.windows(2).map(|w| w[1] - w[0]).filter(|&gap| gap > 10).collect();
        assert_eq!(gaps, [20, 40, 80, 160, 300, 300], "{config:?}");
    }
}

/// T8: what was sent has arrived or was lost, once nothing is in flight; and every segment that
/// arrived was placed or counted as a duplicate.
#[test]
fn t8_conservation() {
    for (config, _) in all() {
        let mut net = pair(config);
        let mix = fault::Mix { drop: 0.03, ..fault::Mix::NONE };
        net.fault(fault::random(draw(), mix));
        let arrived = Rc::new(Cell::new([0; 2]));
        let count = Rc::clone(&arrived);
        net.watch(move |_, what, pkt| {
            if let Seen::Arrived(_) = what {
                let [all, data] = count.get();
                count.set([all + 1, data + u64::from(pkt.carries_payload())]);
            }
        });
        let key = net.submit(A, B, 2_000 * MSS);
        net.run_until_idle(Dur::from_ms(60_000));
        let [all, data] = arrived.get();
        assert_eq!(net.sent(), all + net.dropped(), "{config:?}");
        assert_eq!(data, 2_000 + net.stat(B, Stat::Duplicate), "{config:?}");
        assert_eq!(net.record(key).placed.prefix(), 2_000 * MSS);
    }
}

/// T11: with a round trip below 10 ms and losses more often than once a second H-TCP is Reno,
/// packet for packet.
#[test]
fn t11_htcp_is_reno_in_a_data_centre() {
    let run = |rule, recovery| {
        let config = Config { rule, recovery, initial_window: 30.0, ..textbook() };
        let mut net = pair(config);
        net.fault(fault::drop_data(A, &[20, 700, 704, 2_500, 6_000, 6_100, 9_000]));
        net.submit(A, B, 10_000 * MSS);
        net.run_until_idle(Dur::from_ms(5_000));
        assert!(net.now() < at_ms(2_000));
        net.log().iter().map(|s| (s.at, s.pkt.span.offset)).collect::<Vec<_>>()
    };
    for recovery in [Recovery::NewReno, Recovery::Sack] {
        let htcp = run(RuleConfig::HTcp(htcp::Params::LINUX), recovery);
        assert!(htcp.len() > 20_000);
        assert!(htcp == run(RuleConfig::NewReno, recovery), "{recovery:?}");
    }
}

/// T14: with a clock of 10 ms no timeout comes sooner than that, though RTOmin is 1 ms, the round
/// trip 2 ms, and losses fall anywhere between two ticks.
#[test]
fn t14_no_timeout_below_a_tick() {
    let mut config = textbook();
    (config.rto.min, config.rto.tick) = (Dur::from_ms(1), Dur::from_ms(10));
    let mut net = pair(config);
    let tail = 4 * MSS;
    let mut seen = 0;
    net.fault(move |sent| {
        let last = sent.pkt.src == A && sent.pkt.span.offset == tail;
        seen += u64::from(last);
        if last && seen % 2 == 1 { Verdict::Drop } else { Verdict::Pass }
    });
    for k in 0..50 {
        net.run_until(Time::ZERO + Dur::from_us(61_300) * k);
        net.submit_on(A, B, 1, 5 * MSS);
    }
    net.run_until_idle(Dur::from_ms(500));
    let sent: Vec<Time> = net
        .log()
        .iter()
        .filter(|s| s.pkt.src == A && s.pkt.span.offset == tail)
        .map(|s| s.at)
        .collect();
    let least = sent.chunks(2).map(|pair| pair[1].since(pair[0])).min().unwrap();
    assert_eq!((sent.len(), stat(&net, Stat::Timeout)), (100, 50));
    assert!(least >= Dur::from_ms(10) && least < Dur::from_ms(23), "{least}");
}

/// T15: half as many acknowledgements as segments, and no needless timeout where RTOmin is above
/// the delay; where it is below, an odd last segment costs one each time.
#[test]
fn t15_delayed_acknowledgements() {
    for (config, _) in all() {
        for (delay, needless) in [(Dur::from_ms(10), 0), (Dur::from_ms(40), 5)] {
            let mut net = pair(Config { delayed_ack: Some(delay), ..config });
            for k in 0..5 {
                net.run_until(at_ms(500 * k));
                net.submit_on(A, B, 1, 401 * MSS);
            }
            net.run_until_idle(Dur::from_ms(1_000));
            let acks = net.log().iter().filter(|s| s.pkt.src == B).count();
            assert!((1_000..=1_015).contains(&acks), "{acks} for 2005 segments: {config:?}");
            assert_eq!(stat(&net, Stat::Timeout), needless, "{config:?}");
            assert_eq!(net.stat(B, Stat::Duplicate), needless, "{config:?}");
        }
    }
}

/// The mean windows of a flow that loses every 10 000th segment, with a round trip of 100 ms:
/// Reno's is sqrt(3 / 2p) (T9), CUBIC's (C (3 + beta) / (4 (1 - beta)) (RTT / p)^3)^(1/4) (RFC
/// 9438, section 5.1), 187 segments. The first 150 s do not count.
#[test]
fn mean_windows_under_periodic_loss() {
    const P: f64 = 1e-4;
    let params = cubic::Params { fast_convergence: false, ..cubic::Params::RFC };
    let packets = 0.1 / P;
    let share = params.c * (3.0 + params.beta) / (4.0 * (1.0 - params.beta));
    let cubic_law = (share * packets * packets * packets).sqrt().sqrt();
    for (rule, law) in
        [(RuleConfig::NewReno, (1.5 / P).sqrt()), (RuleConfig::Cubic(params), cubic_law)]
    {
        // Windows as real numbers, and near to the law from the start: CUBIC is slow to find it,
        // all the more if it yields.
        let (recovery, ssthresh_of) = (Recovery::Sack, Reduces::Window);
        let initial_ssthresh = law;
        let mut config = Config { rule, recovery, ssthresh_of, initial_ssthresh, ..textbook() };
        (config.rto.min, config.rto.initial) = (Dur::from_ms(400), Dur::from_ms(400));
        let make = || Box::new(Tcp::new(config).unwrap());
        let link = Link { delay: Dur::from_ms(50), ..LINK };
        let mut net = Net::new(1, link, vec![make(), make()]);
        net.stop_logging();
        let mut data = 0;
        net.fault(move |sent| {
            data += u64::from(sent.pkt.carries_payload());
            let lost = sent.pkt.carries_payload() && data % 10_000 == 0;
            if lost { Verdict::Drop } else { Verdict::Pass }
        });
        net.submit(A, B, UNBOUNDED);
        net.run_until(at_ms(150_000));
        let before = net.ledger().bytes_placed();
        net.run_until(at_ms(270_000));
        let mean = (net.ledger().bytes_placed() - before) as f64 / MSS as f64 / 1_200.0;
        assert!((mean / law - 1.0).abs() < 0.1, "{rule:?}: {mean} segments, law {law}");
        assert_eq!(stat(&net, Stat::Timeout), 0);
    }
}
