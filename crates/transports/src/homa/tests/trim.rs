//! Homa-Tr: the invariants R1 to R6 of specs/homa-tr.md#7, and its defects E1 to E8, with packets
//! in an order by hand. E8 (control packets that are lost are counted) is the switch's, see
//! crates/scenario/tests/it/homa_tr.rs.

use std::collections::{BTreeMap, BTreeSet};

use endpoint::{Effect, Endpoint, Flags, Msg, Packet, Stat};
use testkit::{Net, Sent, Verdict, fault};
use units::{Dur, HostId, MsgId, MsgKey, Time};
use wire::homa::{Kind, Repr};

use super::host::{Host, kind};
use super::{Config, busy, conforms, data, grants, header, net, of_kind, resends, w3};
use crate::homa::{SILENCE_TIMER, Trimmed, put_header};

/// Four levels for unscheduled packets, 4 to 7 for others, as for W3; 7 packets unscheduled.
fn homa_tr(trimmed: Trimmed) -> Config {
    Config { trimmed, ..w3() }
}

fn host(trimmed: Trimmed) -> Host {
    Host::new(homa_tr(trimmed))
}

/// What a call has sent, without addresses.
fn kinds(sent: &[Packet]) -> Vec<Kind> {
    sent.iter().map(|pkt| kind(pkt).1).collect()
}

fn nack(index: u32, granted: u32) -> Kind {
    Kind::Nack { index, granted }
}

fn grant(granted: u32, level: u8) -> Kind {
    Kind::Grant { granted, level }
}

impl Host {
    /// Packet `index` of message 0 of `packets` full packets from host 1 arrives, with or without
    /// its payload, 2 us after the one before: longer than a packet takes.
    fn whole(&mut self, packets: u64, index: u64) -> Vec<Kind> {
        self.now += Dur::from_us(2);
        let pkt = self.packet(1, 0, packets, index);
        kinds(&self.arrive(&pkt))
    }

    fn trimmed(&mut self, packets: u64, index: u64) -> Vec<Kind> {
        self.now += Dur::from_us(2);
        let mut pkt = self.packet(1, 0, packets, index);
        pkt.flags = Flags::TRIMMED;
        kinds(&self.arrive(&pkt))
    }

    /// The application submits a message of `packets` full packets to host 1. Indices and levels of
    /// what leaves.
    fn submit(&mut self, packets: u64) -> Vec<(u32, u8)> {
        let msg = Msg { id: MsgId(0), ..Msg::new(HostId(1), packets * 1442) };
        let sent = self.call(|endpoint, cx| {
            endpoint.on_submit(cx, &msg);
        });
        sent_data(&sent)
    }

    /// Host 1 says something of that message.
    fn hear(&mut self, kind: Kind) -> Vec<(u32, u8)> {
        let mut pkt = Packet { src: HostId(1), flags: Flags::CONTROL, ..Packet::EMPTY };
        put_header(&mut pkt, &Repr { number: 0, kind });
        sent_data(&self.arrive(&pkt))
    }
}

/// Indices and levels of data packets.
fn sent_data(sent: &[Packet]) -> Vec<(u32, u8)> {
    let all = sent.iter().filter_map(|pkt| match kind(pkt).1 {
        Kind::Data(data) => Some((data.index, 7 - pkt.class)),
        _ => None,
    });
    all.collect()
}

#[test]
fn homa_tr_conforms() {
    for trimmed in [Trimmed::Refused, Trimmed::RefusedAsPublished] {
        conforms(homa_tr(trimmed));
        let levels =
            Config { priorities: 4, overcommitment: 3, boost_tail: false, ..homa_tr(trimmed) };
        conforms(Config { ack_delay: Dur::ZERO, ..levels });
    }
}

/// A packet without its payload is refused, and places nothing; the one that comes later with it
/// does.
#[test]
fn r1_nothing_is_delivered_of_a_trimmed_packet() {
    for trimmed in [Trimmed::Refused, Trimmed::RefusedAsPublished] {
        let mut to = host(trimmed);
        assert_eq!(to.whole(2, 0), []);
        assert_eq!(to.trimmed(2, 1), [nack(1, 2)]);
        let places =
            |to: &Host| to.effects.iter().filter(|e| matches!(e, Effect::Place { .. })).count();
        assert_eq!(places(&to), 0);
        assert_eq!(to.whole(2, 1), []);
        assert_eq!(places(&to), 1);
        let key = MsgKey { src: HostId(1), id: MsgId(0) };
        assert!(to.effects.contains(&Effect::Delivered(key)));
        assert_eq!(to.whole(2, 1), [], "the same again");
        assert_eq!(places(&to), 0);
    }
}

/// Trim data packets at random, a share of `share`; of `all` of them if there is nothing to except.
fn trim_some(
    share: u64,
    but: impl Fn(&Sent) -> bool + 'static,
) -> impl FnMut(&Sent) -> Verdict + 'static {
    let draw = endpoint::Draw::new(7, endpoint::Purpose::new("trims"), 0);
    move |sent| {
        let struck = draw.below(endpoint::Purpose::new("trim"), sent.n, 100) < share;
        if struck && data(sent).is_some() && !but(sent) { Verdict::Trim } else { Verdict::Pass }
    }
}

/// How many data packets arrived without their payload under `trim_some`, whose rule this repeats.
fn trims(net: &Net, share: u64, but: impl Fn(&Sent) -> bool + 'static) -> usize {
    let mut rule = trim_some(share, but);
    net.log().iter().filter(|sent| rule(sent) == Verdict::Trim).count()
}

fn nacks(net: &Net) -> usize {
    of_kind(net, |kind| matches!(kind, Kind::Nack { .. })).len()
}

/// Messages of 1 to 60 packets between four hosts, under `rule`.
fn trimming(config: Config, rule: impl FnMut(&Sent) -> Verdict + 'static) -> Net {
    let mut net = net(config, 4);
    net.fault(rule);
    for n in 0..40_u32 {
        let (from, to) = (HostId(n % 4), HostId((n + 1 + n / 4 % 3) % 4));
        net.submit(from, to, u64::from(1 + n * 7 % 60) * 1442);
        net.run_until(net.now() + Dur::from_us(u64::from(n % 3) * 30));
    }
    net.run_until_idle(Dur::from_ms(1000));
    net.ledger().assert_all_done();
    net
}

/// One NACK for each packet that has come without its payload. (That each other packet has a GRANT
/// or an ACK is the NIC's way, not Homa's: `trim`.)
#[test]
fn r2_a_trimmed_packet_has_one_nack() {
    let net = trimming(homa_tr(Trimmed::Refused), trim_some(20, |_| false));
    let count = trims(&net, 20, |_| false);
    assert!(count > 100, "{count}");
    assert_eq!(nacks(&net), count);
}

/// Without trims Homa-Tr is Homa, packet for packet, whichever its rules.
#[test]
fn r3_without_trims_homa_tr_is_homa() {
    let trace = |trimmed| {
        let net = busy(homa_tr(trimmed), |_, _, _| {});
        let all = net.log().iter().map(|s| (s.at, s.pkt.src, s.pkt.dst, s.pkt.class, s.pkt.hdr));
        (net.digest(), all.collect::<Vec<_>>())
    };
    let homa = trace(Trimmed::Lost);
    assert!(homa == trace(Trimmed::Refused) && homa == trace(Trimmed::RefusedAsPublished));
}

/// Of a data packet the message and its place there.
fn packet(sent: &Sent) -> Option<(HostId, HostId, u32, u32)> {
    Some((sent.pkt.src, sent.pkt.dst, header(sent).number, data(sent)?.index))
}

fn timeouts(net: &Net) -> u64 {
    (0..4).map(|host| net.stat(HostId(host), Stat::Timeout)).sum()
}

/// If no control packet is lost, no timeout fires: with the repairs, whatever is trimmed; as
/// published, if the message is being granted still when its packet is trimmed.
#[test]
fn r4_no_timeout_while_control_packets_arrive() {
    for share in [10, 50, 90] {
        let net = trimming(homa_tr(Trimmed::Refused), trim_some(share, |_| false));
        assert_eq!((timeouts(&net), resends(&net).len()), (0, 0), "{share} %");
    }
    // The last seven packets, and what comes again, may be on their way when the last grant has
    // been given. One packet in three comes whole, so that one of those does that have left.
    let mut rule = trim_some(50, |sent| {
        data(sent).is_some_and(|d| u64::from(d.index) + 9 > d.size / 1442 || d.index % 3 == 0)
    });
    let mut sent_before = BTreeSet::new();
    let once = move |sent: &Sent| match packet(sent) {
        Some(packet) if !sent_before.insert(packet) => Verdict::Pass,
        _ => rule(sent),
    };
    let net = trimming(homa_tr(Trimmed::RefusedAsPublished), once);
    assert!(nacks(&net) > 100, "{}", nacks(&net));
    assert_eq!((timeouts(&net), resends(&net).len()), (0, 0));
}

/// Of each message as many packets arrive whole as it has, each once.
#[test]
fn r5_whole_packets_are_as_many_as_the_message_has() {
    let net = trimming(homa_tr(Trimmed::Refused), trim_some(30, |_| false));
    let mut rule = trim_some(30, |_| false);
    let mut left = BTreeMap::new();
    for sent in net.log() {
        if let Some(data) = data(sent).filter(|_| rule(sent) != Verdict::Trim) {
            let message = (sent.pkt.src, sent.pkt.dst, header(sent).number);
            let left = left.entry(message).or_insert(data.size);
            *left -= u64::from(data.len);
        }
    }
    assert_eq!((left.len(), left.values().sum::<u64>()), (40, 0));
}

/// GRANTs have the scheduled levels, 4 to 7 here, and so have the packets that come again. To how
/// many messages they go at a time: `h3_h4_grants_are_those_of_the_rules`, which trims, too.
#[test]
fn r6_grants_have_scheduled_levels() {
    let config = Config { boost_tail: false, ..homa_tr(Trimmed::Refused) };
    let net = trimming(config, trim_some(30, |_| false));
    let levels = grants(&net).into_iter().map(|sent| header(&sent).kind).map(|kind| match kind {
        Kind::Grant { level, .. } => level,
        _ => 0,
    });
    assert!(levels.clone().all(|level| (4..8).contains(&level)) && levels.count() > 500);
    let mut sent_before = BTreeSet::new();
    for sent in net.log() {
        if let Some(packet) = packet(sent) {
            assert!(sent_before.insert(packet) || sent.pkt.class < 4, "{sent:?}");
        }
    }
}

/// A message may begin with a trimmed packet, also where another one of that sender has just ended:
/// nothing has come of it, all that leaves unscheduled is still to come, and it is granted as any
/// other.
#[test]
fn e1_a_message_may_begin_with_a_trimmed_packet() {
    // With the eighth comes the first again, so there are eight on their way.
    let repaired = [vec![nack(0, 7), grant(8, 7)], vec![], vec![grant(9, 7)]];
    let published = [vec![nack(0, 7)], vec![grant(8, 7)], vec![grant(9, 7)]];
    for (trimmed, expected) in
        [(Trimmed::Refused, repaired), (Trimmed::RefusedAsPublished, published)]
    {
        let mut to = host(trimmed);
        for index in 0..2 {
            let other = to.packet(1, 1, 2, index);
            to.arrive(&other);
        }
        assert_eq!([to.trimmed(100, 0), to.whole(100, 1), to.whole(100, 0)], expected);
    }
}

/// A message of what leaves unscheduled is never granted: what is refused of it leaves again at
/// once, at the first scheduled level. As published it waits until it is asked for again.
#[test]
fn e2_what_no_grant_follows_leaves_at_once() {
    let mut from = host(Trimmed::Refused);
    assert_eq!(from.submit(7).len(), 7);
    assert_eq!(from.hear(nack(3, 7)), [(3, 4)]);
    let mut from = host(Trimmed::RefusedAsPublished);
    from.submit(7);
    assert_eq!(from.hear(nack(3, 7)), []);
    assert_eq!(from.hear(Kind::Resend { first: 3, end: 4, level: 0 }), [(3, 0)]);
}

/// The same after the last grant; before it, what is refused waits for the next grant, and leaves
/// with it and at its level, the lowest packets first.
#[test]
fn e2_what_is_refused_leaves_with_the_next_grant() {
    let mut from = host(Trimmed::Refused);
    from.submit(9);
    assert_eq!(from.hear(nack(5, 7)), []);
    assert_eq!(from.hear(nack(2, 7)), []);
    assert_eq!(from.hear(nack(5, 7)), [], "a copy");
    assert_eq!(from.hear(grant(8, 6)), [(2, 6), (5, 6), (7, 6)]);
    assert_eq!(from.hear(nack(7, 8)), []);
    assert_eq!(from.hear(grant(9, 5)), [(7, 5), (8, 5)]);
    assert_eq!(from.hear(nack(8, 9)), [(8, 5)]);
}

/// Where packets are sprayed, a grant may overtake the NACK that left before it: the packet does
/// not wait for another.
#[test]
fn e2_a_nack_that_a_grant_has_overtaken_is_obeyed_at_once() {
    let mut from = host(Trimmed::Refused);
    from.submit(20);
    assert_eq!(from.hear(grant(8, 7)), [(7, 7)]);
    assert_eq!(from.hear(nack(0, 7)), [(0, 7)]);
    assert_eq!(from.hear(nack(1, 8)), []);
    assert_eq!(from.hear(nack(2, 9)), [], "this one has overtaken a grant, which will come");
    assert_eq!(from.hear(grant(9, 7)), [(1, 7), (2, 7), (8, 7)]);
}

/// A refused packet is not in flight until it leaves again, so it makes room for a grant, with
/// which it leaves. As published it does not: all that left unscheduled is refused, and no grant
/// follows.
#[test]
fn e3_a_refused_packet_makes_room() {
    let mut to = host(Trimmed::Refused);
    let answers: Vec<Vec<Kind>> = (0..3).map(|index| to.trimmed(100, index)).collect();
    // With each grant one more is on its way than before the NACK, until two have not come.
    let expected = [vec![nack(0, 7), grant(8, 7)], vec![nack(1, 8)], vec![nack(2, 8), grant(9, 7)]];
    assert_eq!(answers, expected);
    let mut to = host(Trimmed::RefusedAsPublished);
    for index in 0..7 {
        assert_eq!(to.trimmed(100, index), [nack(index as u32, 7)]);
    }
    assert_eq!(to.whole(100, 0), [grant(8, 7)], "what has come after all makes room");
}

/// What has come is not refused if a copy is trimmed; as published it is, and leaves once more.
#[test]
fn e4_what_has_come_is_not_refused() {
    for (trimmed, expected) in
        [(Trimmed::Refused, vec![]), (Trimmed::RefusedAsPublished, vec![nack(0, 8)])]
    {
        let mut to = host(trimmed);
        assert_eq!(to.whole(100, 0), [grant(8, 7)]);
        assert_eq!(to.trimmed(100, 0), expected);
    }
}

/// There are no buffers to run out of but the application's. What finds no room there is not
/// refused, which would have it sent in vain at once, but asked for again later.
#[test]
fn e5_without_room_nothing_is_refused() {
    let mut to = host(Trimmed::Refused);
    assert_eq!(to.whole(2, 0), []);
    to.room = 1000;
    assert_eq!(to.whole(2, 1), []);
    to.now += Dur::from_ms(6);
    let asked = to.call(|endpoint, cx| endpoint.on_timer(cx, SILENCE_TIMER));
    assert_eq!(kinds(&asked), [Kind::Resend { first: 1, end: 2, level: 0 }]);
}

/// A copy of a packet of a message that is over, trimmed, begins nothing: its sender is told that
/// it is over.
#[test]
fn e6_a_message_that_is_over_stays_so() {
    let mut to = host(Trimmed::Refused);
    to.whole(1, 0);
    let answer = to.trimmed(1, 0);
    assert!(matches!(answer[..], [Kind::Ack { .. }]), "{answer:?}");
    assert!(to.receiver_is_idle(), "no message is open");
}

/// E6's timer: of a message that never goes on, nothing is left after `rx_idle_timeout`.
#[test]
fn e6_a_silent_message_is_forgotten() {
    let mut to = host(Trimmed::Refused);
    to.trimmed(2, 0);
    assert!(!to.receiver_is_idle());
    to.now += to.config.rx_idle_timeout;
    to.call(|endpoint, cx| endpoint.on_timer(cx, SILENCE_TIMER));
    assert!(to.receiver_is_idle());
}

/// Lost grants: the next one has what was refused leave; if it was the last, the receiver asks for
/// it after all.
#[test]
fn e7_a_lost_grant_is_superseded_or_asked_for() {
    for (lost, resent) in [(0..1, 0), (2..3, 1)] {
        let mut net = net(homa_tr(Trimmed::Refused), 2);
        let mut n = 0;
        net.fault(move |sent: &Sent| {
            let is_grant = matches!(header(sent).kind, Kind::Grant { .. });
            n += u32::from(is_grant);
            let lose = is_grant && lost.contains(&(n - 1));
            if lose { Verdict::Drop } else { Verdict::Pass }
        });
        // The packet with which the last grant is given is trimmed, too.
        net.fault(|sent: &Sent| match data(sent) {
            Some(data) if sent.n == 0 || data.index == 2 && sent.n < 9 => Verdict::Trim,
            _ => Verdict::Pass,
        });
        net.submit(HostId(1), HostId(0), 10 * 1442);
        net.run_until_idle(Dur::from_ms(100));
        net.ledger().assert_all_done();
        assert_eq!(resends(&net).len(), resent);
        assert_eq!(net.record(MsgKey { src: HostId(1), id: MsgId(0) }).msg.len, 14_420);
        assert!(resent == 1 || net.now() < Time::ZERO + Dur::from_ms(5));
    }
}

/// A lost NACK is a lost packet, as in Homa.
#[test]
fn a_lost_nack_is_made_up_for() {
    let mut net = net(homa_tr(Trimmed::Refused), 2);
    net.fault(super::lose(|kind| matches!(kind, Kind::Nack { .. }), 1));
    net.fault(|sent: &Sent| if sent.n == 3 { Verdict::Trim } else { Verdict::Pass });
    net.submit(HostId(1), HostId(0), 5 * 1442);
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    let kinds: Vec<Kind> = resends(&net).iter().map(|sent| header(sent).kind).collect();
    assert_eq!(kinds, [Kind::Resend { first: 3, end: 4, level: 0 }]);
}

/// To plain Homa a trimmed packet is a lost one.
#[test]
fn homa_ignores_what_is_trimmed() {
    let mut to = host(Trimmed::Lost);
    assert_eq!(to.trimmed(100, 0), []);
    assert!(to.receiver_is_idle());
    let mut net = net(w3(), 2);
    net.fault(fault::drop_data(HostId(1), &[]));
    net.fault(|sent: &Sent| if sent.n == 3 { Verdict::Trim } else { Verdict::Pass });
    net.submit(HostId(1), HostId(0), 5 * 1442);
    net.run_until_idle(Dur::from_ms(100));
    assert_eq!(resends(&net).len(), 1);
}
