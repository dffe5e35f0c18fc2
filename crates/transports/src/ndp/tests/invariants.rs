//! The invariants of specs/ndp.md#10 that concern hosts. I12 is the conformance suite's business.

use std::collections::BTreeMap;

use endpoint::{Draw, Flags, Msg, MsgId, MsgKey, Purpose, UNBOUNDED};
use proptest::prelude::*;
use testkit::fault::{self, Mix};
use testkit::{Bottleneck, Net, Sent};
use units::{Dur, HostId, Time};
use wire::ndp::Kind;

use super::bench::{Bench, data, pull};
use super::{LINK, TEN_GIG, kind, net, pull_number};
use crate::ndp::{Config, Discipline};

const RECEIVER: HostId = HostId(0);

/// The paper's values, but timeouts of 1 ms: the test kit's header queue is short and drops some.
fn quick() -> Config {
    let ms = Dur::from_ms(1);
    Config { rto_initial: ms, rto_min: ms, rto_max: ms, ..Config::paper(9000) }
}

/// `senders` messages of `len` bytes into a trimming queue of eight packets before host 0.
fn incast(config: &Config, senders: u32, len: u64) -> Net {
    let mut net = net(config, LINK, senders as usize + 1);
    net.set_bottleneck(RECEIVER, Bottleneck { rate: TEN_GIG, packets: 8, trim: true });
    for sender in 1..=senders {
        net.submit(HostId(sender), RECEIVER, len);
    }
    net
}

fn data_of(net: &Net, key: MsgKey) -> impl Iterator<Item = &Sent> {
    let of = move |s: &&Sent| s.pkt.src == key.src && s.pkt.span.msg == key.id;
    net.log().iter().filter(|s| !s.pkt.flags.has(Flags::CONTROL)).filter(of)
}

fn control_for(net: &Net, key: MsgKey) -> impl Iterator<Item = &Sent> {
    let of = move |s: &&Sent| s.pkt.dst == key.src && s.pkt.span.msg == key.id;
    net.log().iter().filter(|s| s.pkt.flags.has(Flags::CONTROL)).filter(of)
}

/// I3, I4, I5, I9 on a network that trims a quarter of all packets and loses none.
#[test]
fn every_packet_has_one_answer_and_one_pull() {
    let mut net = net(&Config::paper(9000), LINK, 4);
    let draw = Draw::new(5, Purpose::new("test"), 0);
    net.fault(fault::random(draw, Mix { trim: 0.25, ..Mix::NONE }));
    let keys: Vec<MsgKey> =
        (1..4).map(|sender| net.submit(HostId(sender), RECEIVER, 3_000_000)).collect();
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    for key in keys {
        let sent = data_of(&net, key).count() as u64;
        assert!(sent > 334, "some were trimmed");
        let answers = control_for(&net, key)
            .filter(|s| matches!(kind(&s.pkt), Kind::Ack(_) | Kind::Nack(_)))
            .count() as u64;
        assert_eq!(answers, sent, "I3, I4");
        let pulls = control_for(&net, key).filter_map(|s| pull_number(&s.pkt));
        let highest = u64::from(pulls.max().unwrap());
        assert!(sent <= 30 + highest, "I5: {sent} packets, {highest} pulls");
        let delivered = net.record(key).delivered.unwrap();
        let late = control_for(&net, key)
            .any(|s| s.at > delivered && matches!(kind(&s.pkt), Kind::Pull { .. }));
        assert!(!late, "I9");
    }
}

/// I6: PULLs and PULL bits leave the pacer at least T apart. On the wire one may have waited for
/// another control packet, never longer than that takes.
#[test]
fn pulls_keep_their_distance() {
    let mut net = incast(&quick(), 20, 500_000);
    net.run_until_idle(Dur::from_ms(1000));
    net.ledger().assert_all_done();
    let pulls = net.log().iter().filter(|s| s.pkt.src == RECEIVER);
    let times: Vec<Time> = pulls.filter(|s| pull_number(&s.pkt).is_some()).map(|s| s.at).collect();
    let interval = TEN_GIG.serialise(9064);
    let slack = TEN_GIG.serialise(64);
    assert!(times.len() > 500);
    for (i, pair) in times.windows(2).enumerate() {
        assert!(pair[1].since(pair[0]) + slack >= interval, "{i}: {pair:?}");
    }
    let spanned = times[times.len() - 1].since(times[0]);
    assert!(spanned + slack >= interval * (times.len() as u64 - 1), "and do not drift");
}

/// I11: equal flows are pulled equally often in any 100 T.
#[test]
fn equal_flows_have_equal_shares() {
    let mut net = incast(&quick(), 9, UNBOUNDED);
    net.run_until(Time::ZERO + Dur::from_ms(20));
    let interval = TEN_GIG.serialise(9064);
    let (mut start, mut windows) = (Time::ZERO + Dur::from_ms(5), 0);
    while start + interval * 100 < net.now() {
        let mut shares = BTreeMap::new();
        let inside = net.log().iter().filter(|s| s.at >= start && s.at < start + interval * 100);
        for s in inside.filter(|s| pull_number(&s.pkt).is_some()) {
            *shares.entry(s.pkt.dst).or_insert(0u32) += 1;
        }
        let (min, max) = (shares.values().min().unwrap(), shares.values().max().unwrap());
        assert!(shares.len() == 9 && max - min <= 1, "{shares:?}");
        start += interval * 37;
        windows += 1;
    }
    assert!(windows > 30);
}

/// specs/ndp.md#7.4: of eleven messages ten have priority 5. One that is more urgent is served as
/// if alone, one that is less urgent after all others.
#[test]
fn priorities_are_strict() {
    let config = Config { discipline: Discipline::Prio, ..quick() };
    let finish = |prio| {
        let mut net = net(&config, LINK, 12);
        net.set_bottleneck(RECEIVER, Bottleneck { rate: TEN_GIG, packets: 8, trim: true });
        let submit = |net: &mut Net, sender, prio| {
            let msg = Msg { prio, ..Msg::new(RECEIVER, 2_000_000) };
            net.submit_as(HostId(sender), msg)
        };
        let others: Vec<MsgKey> = (1..11).map(|sender| submit(&mut net, sender, 5)).collect();
        let key = submit(&mut net, 11, prio);
        net.run_until_idle(Dur::from_ms(1000));
        net.ledger().assert_all_done();
        let done = |key: &MsgKey| net.record(*key).delivered.unwrap();
        (done(&key), others.iter().map(done).max().unwrap())
    };
    let (urgent, _) = finish(0);
    assert!(urgent < Time::ZERO + TEN_GIG.serialise(2_000_000) * 3, "{urgent}");
    let (lazy, others) = finish(9);
    assert!(lazy > others, "{lazy}, the others {others}");
}

/// specs/ndp.md#7.4 (NDP figure 16): the priority_message message overtakes.
#[test]
fn the_preferred_message_overtakes() {
    let priority_message = MsgKey { src: HostId(10), id: MsgId(0) };
    let config = Config { priority_message: Some(priority_message), ..quick() };
    let mut net = incast(&config, 10, 2_000_000);
    net.run_until_idle(Dur::from_ms(1000));
    net.ledger().assert_all_done();
    let done = |key: MsgKey| net.record(key).delivered.unwrap().since(Time::ZERO);
    let alone = TEN_GIG.serialise(2_000_000);
    assert!(
        done(priority_message) < alone * 3,
        "{}: first windows of ten, then alone",
        done(priority_message)
    );
    for (key, _) in net.ledger().iter().filter(|(key, _)| **key != priority_message) {
        assert!(done(*key) > alone * 8, "{key}: {}", done(*key));
    }
}

/// I7 on the wire: per round of four packets each path once.
#[test]
fn packets_walk_all_paths_in_turn() {
    let mut net = net(&Config::paper(9000), LINK, 2);
    let key = net.submit(HostId(1), RECEIVER, 4_000_000);
    net.run_until_idle(Dur::from_ms(100));
    let paths: Vec<u32> = data_of(&net, key).map(|s| s.pkt.path).collect();
    for round in paths.chunks_exact(4) {
        let mut sorted = round.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3]);
    }
}

/// 8192 messages at once: each is pulled once per round, and nothing is left behind.
#[test]
fn eight_thousand_senders_are_pulled_in_turn() {
    let mut bench = Bench::new(Config::paper(9000));
    let senders = 8192;
    for round in 0..2 {
        for sender in 1..=senders {
            let header = Kind::Data(data(round));
            let answer = bench.receive(HostId(sender), 0, Flags::TRIMMED, header);
            assert_eq!(answer.len(), 1);
        }
    }
    let interval = TEN_GIG.serialise(9064);
    let pulls = bench.wait(interval * (2 * u64::from(senders)));
    assert_eq!(pulls.len(), 2 * senders as usize - 1, "the very first was combined");
    let first_round = pulls.iter().take_while(|p| pull_number(p) == Some(1)).count();
    assert!(first_round >= senders as usize - 2, "{first_round}");
    for sender in 1..=senders {
        for seq in 0..2 {
            let last = seq == 1;
            let whole = wire::ndp::Data { last, retransmission: true, ..data(seq) };
            bench.receive(HostId(sender), 0, Flags(0), Kind::Data(whole));
        }
    }
    assert!(bench.wait(Dur::from_ms(100)).is_empty(), "nothing is left to pull");
}

/// Memory: an idle host within 1 KiB, a message within a few cache lines.
#[test]
fn state_is_small() {
    assert!(size_of::<crate::ndp::Ndp>() <= 1024, "{}", size_of::<crate::ndp::Ndp>());
    assert!(size_of::<crate::ndp::flow::Flow>() <= 384, "{}", size_of::<crate::ndp::flow::Flow>());
    let conn = size_of::<crate::ndp::receiver::Conn>();
    assert!(conn <= 192, "{conn}");
}

proptest! {
    /// Whatever pull numbers arrive, a sender never sends more than its window and the highest of
    /// them allow (I5).
    #[test]
    fn pulls_never_send_too_much(numbers in proptest::collection::vec(0u32..200, 1..60)) {
        let mut bench = Bench::new(Config::paper(9000));
        let mut sent = bench.submit(0, 1 << 40).len() as u64;
        let mut highest = 0;
        for number in numbers {
            sent += bench.hear(0, pull(number)).len() as u64;
            highest = highest.max(number);
            prop_assert_eq!(sent, 30 + u64::from(highest));
        }
    }
}
