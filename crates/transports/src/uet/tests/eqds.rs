//! EQDS: credit of the receiver in whole turns, and its two windows (specs/uet.md#13).

use super::super::CreditRule;
use super::*;

fn eqds() -> Config {
    Config::eqds(PAYLOAD as u16)
}

#[test]
fn eqds_conforms() {
    // The links of the suite have a tenth of the rate.
    let config = Config { rto: Some(Dur::from_ms(3)), ..eqds() };
    conforms(config);
    conforms(Config { hold_back: true, ..config });
}

#[test]
fn its_windows_conform() {
    for control in [WindowControl::Dctcp, WindowControl::Smartt] {
        conforms(Config { control, sack_threshold: 4000, ..eqds() });
        conforms(Config { control, credit: false, sack_threshold: 4000, ..eqds() });
    }
}

/// Credit keeps the link full: 4096 B come every 332.48 ns, a packet of 4150 B takes 332 ns.
#[test]
fn a_lone_message_takes_hardly_longer_than_the_link() {
    let config = eqds();
    let mut net = net(config, 2);
    let key = net.submit(HostId(1), TO, 490 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(10));
    let took = net.record(key).delivered.unwrap().since(Time::ZERO);
    let ideal = arrival(&config, 490 * PAYLOAD).since(Time::ZERO);
    assert!(took >= ideal && took.0 < ideal.0 + ideal.0 / 40, "{took}, ideally {ideal}");
    let (one, others): (Vec<_>, Vec<_>) =
        data(&net, 1).into_iter().partition(|data| data.at < Time::ZERO + Dur::from_us(12));
    assert!(one.iter().all(|data| !data.ack_request), "nothing is heard yet");
    assert!(others.iter().filter(|data| data.ack_request).count() > others.len() * 9 / 10);
}

/// Marks keep the window at a packet. A receiver's count, rounded up to 256 B, would let a second
/// go.
#[test]
fn a_window_of_one_packet_lets_one_go_in_a_round_trip() {
    let max_window = Some(Bytes(4150));
    let control = WindowControl::Dctcp;
    let config = Config { control, credit: false, sack_threshold: 4000, max_window, ..eqds() };
    let mut net = net(config, 2);
    net.tamper(|pkt| {
        let header = Repr::parse(pkt.header());
        if let Ok(Repr { kind: Kind::Request { .. }, .. }) = header {
            pkt.flags.set(Flags::CE);
        }
    });
    net.submit(HostId(1), TO, 40 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(2));
    let sent = data(&net, 1);
    assert_eq!(sent.len(), 40);
    assert!(sent.windows(2).all(|two| two[1].at.since(two[0].at) >= DELAY * 2));
}

/// All of 20 senders' first packets meet at one port that trims: what was refused is pulled first,
/// and the port is never without work.
#[test]
fn an_incast_is_pulled_at_the_rate_of_the_link() {
    let mut net = net(eqds(), 21);
    net.set_bottleneck(TO, Bottleneck { rate: RATE, packets: 35, trim: true });
    for from in 1..21 {
        net.submit(HostId(from), TO, 100 * PAYLOAD);
    }
    let end = net.run_until_idle(Dur::from_ms(20));
    net.ledger().assert_all_done();
    let credits = net.log().iter().filter_map(|sent| match kind(sent) {
        Kind::Credit { given } => Some((sent.at, sent.pkt.dst, given)),
        _ => None,
    });
    let mut last = std::collections::BTreeMap::new();
    let mut times = Vec::new();
    for (at, to, given) in credits {
        let before = last.insert(to, given).unwrap_or(0);
        assert_eq!(given - before, 16, "a whole turn");
        times.push(at);
    }
    let took = times[times.len() - 1].since(times[0]).0;
    assert!(took / (times.len() as u64 - 1) >= 332_000, "a turn in 332.48 ns at most");
    let ideal = RATE.serialise(2000 * 4150);
    assert!(net.now().since(Time::ZERO) < ideal * 2, "{end:?}: {:?}", net.now());
}

/// specs/uet.md#U4: what is sent is covered by the first credit, what was given, and a packet.
#[test]
fn u4_no_more_is_sent_than_was_given() {
    for rule in [CreditRule::Eqds, CreditRule::Rccc] {
        let config = Config { credit_rule: rule, ..eqds() };
        let mut net = net(config, 5);
        net.set_bottleneck(TO, Bottleneck { rate: RATE, packets: 8, trim: true });
        let draw = endpoint::Draw::new(3, endpoint::Purpose::new("eqds credit"), 0);
        net.fault(fault::random(draw, Mix { drop: 0.05, ..Mix::NONE }));
        for from in 1..5 {
            net.submit(HostId(from), TO, 1_000_000);
        }
        net.run_until_idle(Dur::from_ms(200));
        net.ledger().assert_all_done();
        for from in 1..5 {
            let (mut given, mut sent) = (0, 0);
            for one in net.log() {
                match kind(one) {
                    Kind::Credit { given: units } if one.pkt.dst == HostId(from) => given = units,
                    Kind::Request { len, .. } if one.pkt.src == HostId(from) => {
                        sent += u64::from(len) + 64;
                        assert!(sent <= 64 * 4150 + u64::from(given) * 256 + 4150);
                    }
                    _ => {}
                }
            }
        }
    }
}
