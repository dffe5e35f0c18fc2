//! Which subflows there are, and when: joins, and MMPTCP's two phases.

use super::*;
use crate::mptcp::config::GAP_STEP;
use crate::mptcp::phases::{Gaps, Phase};

/// Messages that are a burst: 60 segments may leave at once.
fn burst(config: Config) -> Config {
    Config { tcp: tcp::Config { initial_window: 60.0, ..config.tcp }, ..config }
}

fn joins(net: &Net<Mptcp>) -> Vec<&Sent> {
    let join = |s: &&Sent| s.pkt.src == A && signal(s).body == Body::Join;
    net.log().iter().filter(join).collect()
}

/// specs/mptcp.md#1: gaps of whole microseconds below 50, another one for each subflow.
#[test]
fn joins_wait_for_different_gaps() {
    let mut net = pair(mptcp(8), LINK);
    net.submit(A, B, 3_000_000);
    net.run_until_idle(Dur::from_ms(100));
    // A SYN waits for the packet in transmission, of which there are few yet.
    let late = LINK.rate.serialise(2 * 1060);
    let mut gaps: Vec<u64> = joins(&net).iter().map(|s| s.at.0 / GAP_STEP.0).collect();
    assert!(joins(&net).iter().all(|s| s.at.0 % GAP_STEP.0 <= late.0));
    let ports: Vec<u16> = joins(&net)
        .iter()
        .map(|s| Repr::parse(s.pkt.header()).unwrap())
        .map(|header| header.dst_port)
        .collect();
    assert!(ports.windows(2).all(|two| two[0] != two[1]), "{ports:?}");
    gaps.dedup();
    assert!(gaps.len() == 7 && gaps.iter().all(|&us| us < 50), "{gaps:?}");
    let used = data(&net).fold([0; 8], |mut n, (i, _)| {
        n[usize::from(i)] += 1;
        n
    });
    assert!(used.iter().all(|&n| n > 100), "{used:?}");
}

/// Each of 50 gaps is as likely as every other.
#[test]
fn gaps_are_uniform() {
    let mut counts = [0; 50];
    for seed in 0..3_000 {
        let draw = Draw::new(seed, Purpose::new("gaps"), 0);
        let mut gaps = Gaps::new(&mptcp(8));
        let mut set: Vec<u64> = (0..7)
            .map(|n| gaps.next(|below| draw.below(Purpose::new("gap"), n, below)).0 / GAP_STEP.0)
            .collect();
        set.iter().for_each(|&gap| counts[gap as usize] += 1);
        set.sort_unstable();
        set.dedup();
        assert_eq!(set.len(), 7);
    }
    // 420 expected; the deviation is 20.
    assert!(counts.iter().all(|n| (320..520).contains(n)), "{counts:?}");
}

/// I4: a flow below the threshold has one subflow. It switches above it.
#[test]
fn i4_a_short_flow_does_not_switch() {
    for (len, switches) in [(70_000, false), (100_000, false), (400_000, true)] {
        let mut net = pair(mmptcp(8, 100_000), LINK);
        net.submit(A, B, len);
        net.run_until_idle(Dur::from_ms(1_000));
        net.ledger().assert_all_done();
        assert_eq!(joins(&net).len(), if switches { 8 } else { 0 }, "{len} bytes");
    }
}

/// The messages of a channel are one connection, which switches for all of them; each message by
/// itself has one of its own.
#[test]
fn messages_of_a_channel_switch_together() {
    for (channel, switches) in [(0, false), (1, true)] {
        let mut net = pair(mmptcp(8, 100_000), LINK);
        for _ in 0..6 {
            net.submit_on(A, B, channel, 70_000);
            net.run_until_idle(Dur::from_ms(1_000));
        }
        net.ledger().assert_all_done();
        assert_eq!(joins(&net).len(), if switches { 8 } else { 0 }, "channel {channel}");
    }
}

/// I11: what is sent again does not count.
#[test]
fn i11_retransmissions_do_not_trigger_the_switch() {
    let mut net = pair(mmptcp(8, 100_000), LINK);
    let mut n = 0;
    net.fault(move |sent| {
        n += u64::from(sent.pkt.carries_payload());
        if sent.pkt.carries_payload() && n.is_multiple_of(3) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    net.submit(A, B, 95_000);
    net.run_until_idle(Dur::from_ms(60_000));
    net.ledger().assert_all_done();
    let sent: u64 = data(&net).map(|(_, s)| u64::from(s.pkt.span.len)).sum();
    assert!(sent > 120_000, "{sent} bytes");
    assert_eq!(joins(&net).len(), 0);
}

/// I5: after the switch nothing new goes over subflow 0, and its window is not in the group. I12:
/// when it has drained its timer stands still.
#[test]
fn i5_i12_the_first_subflow_drains() {
    let mut net = pair(patient(mmptcp(4, 100_000)), LINK);
    // Something to repair after the switch.
    net.fault(fault::drop_data(A, &[102, 104]));
    net.submit(A, B, 20_000_000);
    let switched = |net: &Net<Mptcp>| net.endpoint(A).connections[0].phase == Phase::Switched;
    while !switched(&net) {
        assert!(net.step());
    }
    let (at, next) = (net.now(), net.endpoint(A).connections[0].next);
    net.run_until(at + Dur::from_ms(3));
    let connection = &net.endpoint(A).connections[0];
    assert!(connection.next > next + 1_000_000, "the others carry it");
    assert!(!connection.subflows[0].sender.source().holds(next - MSS), "drained");
    assert!(!net.endpoint(A).timeouts.is_set(0) && net.endpoint(A).timeouts.is_set(1));
    assert_eq!(connection.standings.len(), 4, "of five subflows");
    for (subflow, sent) in data(&net).filter(|(_, s)| s.at > at) {
        let Body::Data { dsn, .. } = signal(sent).body else { panic!() };
        assert!(subflow != 0 || dsn < next, "a repair");
        assert_eq!(signal(sent).scattered, subflow == 0);
    }
    assert!(data(&net).any(|(i, s)| i == 0 && s.at > at), "repaired after the switch");
    net.run_until_idle(Dur::from_ms(1_000));
    net.ledger().assert_all_done();
    assert_eq!(timeouts(&net), 0);
}

/// I6: 50 segments use 15 of 16 paths or all with probability 0.87; acknowledgements use one.
#[test]
fn i6_segments_are_spread_and_acknowledgements_are_not() {
    let mut wide = 0;
    for seed in 0..200 {
        let make = || Box::new(Mptcp::new(packet_scatter()).unwrap());
        let mut net = Net::new(seed, Link { paths: 16, ..LINK }, vec![make(), make()]);
        net.submit(A, B, 50 * MSS);
        net.run_until_idle(Dur::from_ms(10));
        let paths = |of| {
            let mut paths: Vec<u32> =
                net.log().iter().filter(|s| s.pkt.src == of).map(|s| s.pkt.path % 16).collect();
            paths.sort_unstable();
            paths.dedup();
            paths.len()
        };
        wide += u32::from(paths(A) >= 15);
        assert_eq!(paths(B), 1);
    }
    // 174 expected of 200; the deviation is 5.
    assert!((155..=193).contains(&wide), "{wide} of 200");
}

/// I6, before the first segment and after the last: the answer to a SYN, and those to what comes
/// again when the connection is over, take the path of the others.
#[test]
fn i6_all_answers_take_one_path() {
    for seed in 0..20 {
        let config = packet_scatter();
        let tcp = tcp::Config { handshake: true, ..config.tcp };
        let make = || Box::new(Mptcp::new(burst(Config { tcp, ..config })).unwrap());
        let mut net = Net::new(seed, Link { paths: 16, ..LINK }, vec![make(), make()]);
        // The first acknowledgements are lost, so that the timer sends again what has arrived.
        let start = Time::ZERO + LINK.delay * 3;
        net.fault(move |s| {
            match s.pkt.src == B && !is_syn(s) && s.at < start + Dur::from_us(500) {
                true => Verdict::Drop,
                false => Verdict::Pass,
            }
        });
        net.submit(A, B, 50 * MSS);
        net.run_until_idle(Dur::from_ms(100));
        net.ledger().assert_all_done();
        let answers: Vec<&Sent> = net.log().iter().filter(|s| s.pkt.src == B).collect();
        assert!(is_syn(answers[0]), "the first is a SYN-ACK");
        let late = |s: &&&Sent| s.at > start + Dur::from_us(500);
        assert!(answers.iter().filter(late).count() > 0, "and some come late");
        assert!(answers.iter().all(|s| s.pkt.path == answers[0].pkt.path));
    }
}

fn fast_retransmits(threshold: ScatterThreshold) -> (u64, u64) {
    let scatter = Some(Scatter { dup_threshold: threshold, switch: None });
    let config = patient(Config { scatter, ..packet_scatter() });
    let mut net = pair(config, Link { paths: 16, ..LINK });
    // A packet is overtaken by up to 15 others.
    let late_max = LINK.rate.serialise(1060) * 15;
    let mix = fault::Mix { delay: 0.3, late_max, ..fault::Mix::NONE };
    net.fault(fault::random(Draw::new(1, Purpose::new("reorder"), 0), mix));
    net.submit(A, B, 2_000_000);
    net.run_until_idle(Dur::from_ms(1_000));
    net.ledger().assert_all_done();
    (net.stat(A, Stat::FastRetransmit), net.stat(B, Stat::Duplicate))
}

/// I7: reordering over fewer packets than there are paths is not taken for loss; it is with a
/// threshold of 3.
#[test]
fn i7_reordering_is_no_loss() {
    assert_eq!(fast_retransmits(ScatterThreshold::Paths), (0, 0));
    let (fast, spurious) = fast_retransmits(ScatterThreshold::Fixed(3));
    assert!(fast > 10 && spurious >= fast, "{fast} {spurious}");
}

/// I8: with 16 paths, what is lost of the last 18 segments of 50 is repaired by the timer alone.
#[test]
fn i8_the_tail_of_a_scattered_flow_needs_the_timer() {
    for lost in 25..50 {
        let mut net = pair(burst(patient(packet_scatter())), Link { paths: 16, ..LINK });
        net.fault(fault::drop_data(A, &[lost]));
        net.submit(A, B, 50 * MSS);
        net.run_until_idle(Dur::from_ms(1_000));
        net.ledger().assert_all_done();
        let repairs = (net.stat(A, Stat::FastRetransmit), timeouts(&net));
        assert_eq!(repairs, if lost < 50 - 18 - 1 { (1, 0) } else { (0, 1) }, "segment {lost}");
    }
}

/// Long runs need not be of many packets.
const SLOW: Link = Link { rate: Rate(20_000_000), ..LINK };

/// I10: joins whose SYNs are lost, once or always, do not stop the flow.
#[test]
fn i10_a_lost_join_does_no_harm() {
    for (losses, joined) in [(1, 4), (3, 4), (4, 1)] {
        let mut net = pair(patient(mptcp(4)), SLOW);
        let mut lost = [0; 4];
        net.fault(move |sent| {
            let i = usize::from(signal(sent).subflow);
            if i == 0 || !is_syn(sent) || lost[i] == losses {
                return Verdict::Pass;
            }
            lost[i] += 1;
            Verdict::Drop
        });
        let key = net.submit(A, B, endpoint::UNBOUNDED);
        net.run_until(ms(3_100));
        let state = |s: &connection::Subflow| s.state == State::Live && s.sender.is_open();
        let open = net.endpoint(A).connections[0].subflows.iter().filter(|s| state(s)).count();
        assert_eq!(open, joined, "{losses} losses");
        assert_eq!(joins(&net).len(), 3 * (1 + losses.min(3)));
        // 200, 400 and 800 ms after one another.
        let of_one: Vec<u64> = joins(&net)
            .iter()
            .filter(|s| signal(s).subflow == 1)
            .map(|s| s.at.0 / Dur::from_ms(1).0)
            .collect();
        assert_eq!(of_one, [0, 200, 600, 1_400][..=losses.min(3)]);
        net.cancel(key);
        net.run_until_idle(Dur::from_ms(2_000));
    }
}

/// Until a new subflow is open, the first one goes on, and for good if none ever is.
#[test]
fn a_switch_that_fails_leaves_the_first_subflow() {
    let mut net = pair(patient(mmptcp(2, 20_000)), SLOW);
    net.fault(|sent| match is_syn(sent) {
        true => Verdict::Drop,
        false => Verdict::Pass,
    });
    let key = net.submit(A, B, endpoint::UNBOUNDED);
    net.run_until(ms(4_000));
    assert_eq!(joins(&net).len(), 8);
    assert!(data(&net).last().unwrap().1.at > ms(3_999));
    assert_eq!(net.endpoint(A).connections[0].phase, Phase::Switching);
    net.cancel(key);
    net.run_until_idle(Dur::from_ms(100));
}

/// The other two conditions of the switch, and its postponement.
#[test]
fn the_switch_waits_for_its_condition() {
    let run = |on, postpone, lost: &[u64]| {
        let switch = Some(Switch { on, postpone });
        let scatter = Some(Scatter { dup_threshold: ScatterThreshold::Paths, switch });
        let tcp = tcp::Config { initial_window: 1.0, ..mptcp(2).tcp };
        let mut net = pair(patient(Config { tcp, scatter, ..mptcp(2) }), LINK);
        net.fault(fault::drop_data(A, lost));
        net.submit(A, B, 300_000);
        net.step();
        while net.endpoint(A).connections[0].phase == Phase::Scatter {
            if !net.step() {
                return None;
            }
        }
        Some(net.endpoint(A).connections[0].subflows[0].sender.cwnd())
    };
    assert_eq!(run(SwitchOn::Loss, false, &[]), None);
    assert!(run(SwitchOn::Loss, false, &[60]).is_some());
    // 10 Gb/s times the round trip of 10.9 us are 13.6 kB: more than 13 segments, if nothing waits.
    assert_eq!(run(SwitchOn::Window(0.1), false, &[]), Some(2.0));
    assert_eq!(run(SwitchOn::Window(0.5), false, &[]), Some(7.0));
    assert_eq!(run(SwitchOn::Window(0.1), true, &[]), None, "slow start never ends");
    let after = run(SwitchOn::Bytes(30_000), true, &[40]).unwrap();
    assert!(after < 65.0, "once the recovery is over");
}
