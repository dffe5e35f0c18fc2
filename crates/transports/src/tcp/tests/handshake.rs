//! The handshake on the pair harness: what it costs, what its losses cost, and how it looks on the
//! wire.

use super::*;

fn with_handshake() -> Config {
    Config { handshake: true, ..textbook() }
}

/// SYN or SYN-ACK on the wire, 40 bytes.
const HEADER: Dur = RATE.serialise(40);
const ROUND: Dur = Dur(2 * (HEADER.0 + DELAY.0));

fn controls(net: &Net<Tcp>) -> Vec<(HostId, Control)> {
    let log = net.log().iter();
    log.map(|s| (s.pkt.src, Repr::parse(s.pkt.header()).unwrap().control)).collect()
}

fn syns(net: &Net<Tcp>) -> usize {
    controls(net).iter().filter(|&&(src, bits)| src == A && bits.has(Control::SYN)).count()
}

/// A message takes a round trip of bare headers longer; that is the first sample.
#[test]
fn a_message_takes_a_round_trip_longer() {
    let mut net = pair(with_handshake());
    let key = net.submit(A, B, 3 * MSS);
    net.run_until(Time::ZERO + ROUND);
    assert_eq!(net.endpoint(A).only().rto().srtt(), Some(ROUND));
    net.run_until_idle(Dur::from_ms(100));
    let data = RATE.serialise(1040) * 3 + DELAY;
    assert_eq!(net.record(key).delivered, Some(Time::ZERO + ROUND + data));
    let (syn, first) = (controls(&net)[0], controls(&net)[2]);
    assert_eq!((syn, first), ((A, Control::SYN), (A, Control::ACK)));
    assert_eq!(controls(&net)[1], (B, Control::SYN.with(Control::ACK)));
    let header = |n: usize| Repr::parse(net.log()[n].pkt.header()).unwrap();
    assert_eq!(header(0).seq.wrapping_add(1), header(2).seq, "SYN takes a sequence number");
    assert_eq!((header(1).ack, header(2).ack), (header(2).seq, header(1).seq.wrapping_add(1)));
}

#[test]
fn a_connection_opens_once() {
    for (channel, count) in [(1, 1), (0, 3)] {
        let mut net = pair(with_handshake());
        for _ in 0..3 {
            let key = net.submit_on(A, B, channel, 30 * MSS);
            net.run_until_idle(Dur::from_ms(10));
            assert!(net.record(key).acked.is_some());
        }
        assert_eq!(syns(&net), count, "channel {channel}");
    }
}

/// RFC 5681, section 3.1, and Karn: after a lost SYN, or answer to it, the window is one segment,
/// and there is no sample but by timestamps.
#[test]
fn a_lost_handshake_costs_the_initial_timeout_and_the_initial_window() {
    for (loser, timestamps) in [(A, false), (B, false), (A, true)] {
        let mut config = Config { timestamps, ..with_handshake() };
        config.rto.initial = Dur::from_ms(7);
        let mut net = pair(config);
        let mut lost = false;
        net.fault(move |sent| {
            let first = sent.pkt.src == loser && !std::mem::replace(&mut lost, true);
            if first { Verdict::Drop } else { Verdict::Pass }
        });
        let key = net.submit(A, B, 5 * MSS);
        run_until(&mut net, |net| {
            net.endpoint(A).senders.open_count() == 1 && net.endpoint(A).only().is_open()
        });
        let began = Dur::from_ms(7) + ROUND;
        assert_eq!(net.now(), Time::ZERO + began);
        assert_eq!(net.endpoint(A).only().window().cwnd(), 1.0);
        assert_eq!(net.endpoint(A).only().rto().srtt().is_some(), timestamps);
        net.run_until_idle(Dur::from_ms(100));
        assert!(net.record(key).acked.is_some());
        assert_eq!((timeouts(&net), net.stat(A, Stat::HeadTimeout)), (1, 1));
        assert_eq!(net.stat(A, Stat::Retransmission), 0, "no data was sent again");
    }
}

#[test]
fn a_peer_that_does_not_answer_fails_the_message() {
    let mut config = Config { max_timeouts: 4, ..with_handshake() };
    config.rto.max = Dur::from_ms(3);
    let mut net = pair(config);
    net.fault(|_| Verdict::Drop);
    let key = net.submit(A, B, 500);
    net.run_until_idle(Dur::from_ms(1_000));
    let at: Vec<u64> = data(&net).map(|s| s.at.0 / Dur::from_ms(1).0).collect();
    assert_eq!(at, [0, 1, 3, 6], "1, 2, 3 ms, 3 ms");
    assert!(matches!(net.record(key).failed, Some((_, FailReason::TimedOut))));
    assert_eq!(net.endpoint(A).senders.open_count(), 0);
}

/// RFC 8257, section 3.6: DCTCP's are ECN-capable; RFC 3168, section 6.1.1: others must not be.
#[test]
fn only_the_handshakes_of_dctcp_are_ecn_capable() {
    let dctcp = RuleConfig::Dctcp(rule::dctcp::Params::RFC);
    for (rule, capable) in [(RuleConfig::NewReno, false), (dctcp, true)] {
        let mut net = pair(Config { rule, ecn: true, ..with_handshake() });
        net.submit(A, B, MSS);
        net.run_until_idle(Dur::from_ms(10));
        let ect: Vec<bool> = net.log().iter().map(|s| s.pkt.flags.has(Flags::ECT)).collect();
        assert_eq!(ect, [capable, capable, true, true]);
        let asks = Control::SYN.with(Control::ECE).with(Control::CWR);
        let grants = Control::SYN.with(Control::ACK).with(Control::ECE);
        assert_eq!(controls(&net)[..2], [(A, asks), (B, grants)]);
    }
}

/// A message given up before the connection is open leaves nothing, not even a timer.
#[test]
fn a_handshake_for_nothing_ends() {
    for channel in [0, 1] {
        let mut net = pair(with_handshake());
        net.fault(|_| Verdict::Drop);
        let key = net.submit_on(A, B, channel, MSS);
        net.run_until(Time::ZERO + Dur::from_us(1));
        net.cancel(key);
        net.run_until_idle(Dur::from_ms(100));
        assert_eq!((net.endpoint(A).senders.open_count(), timeouts(&net)), (0, 0));
        net.heal();
        let key = net.submit_on(A, B, channel, MSS);
        net.run_until_idle(Dur::from_ms(100));
        assert!(net.record(key).acked.is_some());
    }
}

/// A connection for each of thousands of messages, some with losses: what is over leaves nothing
/// behind, at either end, but a range of ids.
#[test]
fn connections_that_are_over_leave_nothing() {
    let mut net = pair(with_handshake());
    net.stop_logging();
    let mix = fault::Mix { drop: 0.01, ..fault::Mix::NONE };
    net.fault(fault::random(Draw::new(5, Purpose::new("test"), 0), mix));
    for _ in 0..1_000 {
        for _ in 0..3 {
            net.submit(A, B, 2 * MSS);
        }
        net.run_until_idle(Dur::from_ms(1_000));
    }
    net.ledger().assert_all_done();
    let (sender, receiver) = (net.endpoint(A), net.endpoint(B));
    assert_eq!(
        (sender.senders.open_count(), sender.senders.slots().len(), sender.messages),
        (0, 3, 0)
    );
    assert_eq!(receiver.receivers.memory(A), (0, 3, 1));
}
