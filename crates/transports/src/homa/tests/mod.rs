//! The conformance suite, the ideal time of a lone message, and the invariants and edge cases of
//! specs/homa.md#11,12. What grants are given is in `tests/grants.rs`, Homa-Tr in `tests/trim.rs`.

mod grants;
mod host;
mod told;
mod trim;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use endpoint::{Endpoint, Msg, Packet, Stat};
use testkit::conformance::{self, Opts};
use testkit::{Bottleneck, Link, Net, Seen, Sent, Verdict, fault};
use units::{Bytes, Dur, HostId, Rate, Time};
use wire::homa::{Data, Kind, Repr};

use super::{Config, Cutoffs, Homa, Incast, PathStrategy, Trimmed};

const TEN_GIG: Rate = Rate(10_000_000_000);
const DELAY: Dur = Dur::from_us(2);
const TO: HostId = HostId(0);

/// Four levels for unscheduled packets, four for others, as for W3.
fn w3() -> Config {
    Config::paper(Cutoffs::new(&[433, 2339, 6756]).unwrap())
}

fn net(config: Config, hosts: usize) -> Net {
    let make = |_| Box::new(Homa::new(config).unwrap()) as Box<dyn Endpoint>;
    let mtu = config.payload + config.header;
    let link = Link { rate: TEN_GIG, delay: DELAY, mtu, paths: 4, hashed: false };
    Net::new(1, link, (0..hosts).map(make).collect())
}

fn header(sent: &Sent) -> Repr {
    Repr::parse(sent.pkt.header()).unwrap()
}

fn data(sent: &Sent) -> Option<Data> {
    match header(sent).kind {
        Kind::Data(data) => Some(data),
        _ => None,
    }
}

/// The packets of a kind that have been sent.
fn of_kind(net: &Net, wanted: fn(&Kind) -> bool) -> Vec<Sent> {
    net.log().iter().filter(|sent| wanted(&header(sent).kind)).copied().collect()
}

fn grants(net: &Net) -> Vec<Sent> {
    of_kind(net, |kind| matches!(kind, Kind::Grant { .. }))
}

fn resends(net: &Net) -> Vec<Sent> {
    of_kind(net, |kind| matches!(kind, Kind::Resend { .. }))
}

/// Lose the first `lost` packets of a kind.
fn lose(wanted: fn(&Kind) -> bool, lost: u32) -> impl FnMut(&Sent) -> Verdict {
    let mut seen = 0;
    move |sent| {
        seen += u32::from(wanted(&header(sent).kind));
        let this = wanted(&header(sent).kind) && seen <= lost;
        if this { Verdict::Drop } else { Verdict::Pass }
    }
}

fn conforms(config: Config) {
    let opts = Opts {
        payload: Bytes(u64::from(config.payload)),
        window: Bytes(config.rtt_packets() * u64::from(config.payload)),
        trims: config.trimmed != Trimmed::Lost,
        bounces: false,
        hashed_paths: false,
        patience: Dur::from_ms(60_000),
    };
    conformance::run(|_| Box::new(Homa::new(config).unwrap()) as Box<dyn Endpoint>, opts);
}

#[test]
fn the_paper_conforms() {
    conforms(w3());
}

#[test]
fn one_level_one_path_and_acks_at_once_conform() {
    let config = Config::paper(Cutoffs::new(&[]).unwrap());
    let paths = PathStrategy::Single;
    conforms(Config { priorities: 1, overcommitment: 1, paths, ack_delay: Dur::ZERO, ..config });
}

/// `rtt_bytes` cover the round trip here, so that a message never waits for a grant: its packets
/// leave back to back.
#[test]
fn a_lone_message_takes_the_ideal_time() {
    let config = w3();
    for len in [0, 1, 433, 1442, 1443, 9328, 10_094, 10_095, 14_420, 14_427, 432_600, 1_000_000] {
        let mut net = net(config, 2);
        let key = net.submit(HostId(1), TO, len);
        net.run_until_idle(Dur::from_ms(100));
        let packets = len.div_ceil(1442).max(1);
        let wire: Dur = (0..packets).fold(Dur::ZERO, |sum, n| {
            sum + TEN_GIG.serialise(u64::from(config.cut(len, 0).payload_of(n)) + 96)
        });
        assert_eq!(net.record(key).delivered, Some(Time::ZERO + wire + DELAY), "{len} B");
    }
}

/// Edge case 1: what fits `rtt_bytes`, in whole packets, is never granted.
#[test]
fn what_leaves_unasked_needs_no_grant() {
    for (len, expected) in [(10_094, 0), (10_095, 1), (14_420, 3)] {
        let mut net = net(w3(), 2);
        net.submit(HostId(1), TO, len);
        net.run_until_idle(Dur::from_ms(100));
        assert_eq!(grants(&net).len(), expected, "{len} B");
    }
}

/// Several senders to two receivers, all sizes; nothing is lost.
fn busy(config: Config, watch: impl FnMut(Time, Seen, &Packet) + 'static) -> Net {
    let mut net = net(config, 6);
    net.watch(watch);
    for to in [0, 1] {
        let wide = Bottleneck { rate: TEN_GIG, packets: 10_000, trim: false };
        net.set_bottleneck(HostId(to), wide);
    }
    for n in 0..60 {
        let from = HostId(2 + n % 4);
        net.submit(from, HostId(n / 4 % 2), u64::from(n % 7).pow(3) * 777 + 3);
        net.run_until(net.now() + Dur::from_us(u64::from(n % 3) * 5));
    }
    net.run_until_idle(Dur::from_ms(4));
    net.ledger().assert_all_done();
    net
}

/// What is known of a message, at the ends where it is known.
#[derive(Default)]
struct Known {
    /// At the receiver: packets that have come and that may come.
    come: u64,
    given: u64,
    /// At the sender: packets that may leave, and the level of the last grant.
    granted: u64,
    level: u8,
    packets: u64,
}

/// H1: no packet leaves before the grant for it has come. H2: no grant is for more than the
/// message, nor for more than `rtt_bytes` beyond what has come. H5, H9: control packets have the
/// highest class, unscheduled ones that of their size, granted ones that of the last grant, which
/// is not above any unscheduled one's but for the last `rtt_bytes` of a message.
#[test]
fn h1_h2_h5_h9_what_is_sent_is_granted_and_of_its_class() {
    let config = w3();
    let (mut granted, mut scheduled) = (0, 0);
    let mut messages: BTreeMap<(HostId, HostId, u32), Known> = BTreeMap::new();
    let seen = Rc::new(RefCell::new((0, 0)));
    let out = Rc::clone(&seen);
    let watch = move |_: Time, what: Seen, pkt: &Packet| {
        let Repr { number, kind } = Repr::parse(pkt.header()).unwrap();
        let (from, to) = match kind {
            Kind::Data(_) => (pkt.src, pkt.dst),
            _ => (pkt.dst, pkt.src),
        };
        let known = messages.entry((from, to, number)).or_default();
        match (what, kind) {
            (Seen::Sent, Kind::Data(data)) => {
                if known.packets == 0 {
                    known.packets = config.cut(data.size, data.head).packets();
                    known.granted = u64::from(data.unscheduled);
                }
                assert!(u64::from(data.index) < known.granted, "H1: {pkt:?}");
                let level = match data.index < u32::from(data.unscheduled) {
                    true => config.unscheduled_level(u64::from(data.index), data.size),
                    false => known.level,
                };
                assert_eq!(pkt.class, config.class(level), "H5: {pkt:?}");
            }
            (Seen::Arrived(_), Kind::Data(data)) => {
                known.given = known.given.max(u64::from(data.unscheduled));
                known.come += 1;
            }
            (Seen::Sent, Kind::Grant { granted: now, level }) => {
                assert_eq!(pkt.class, 7, "H9");
                assert_eq!(u64::from(now), known.given + 1, "one packet at a time");
                known.given += 1;
                assert!(known.given <= known.packets.min(known.come + config.rtt_packets()), "H2");
                let left = (known.packets - known.given + 1) * u64::from(config.payload);
                let tail = left < u64::from(config.rtt_bytes) + u64::from(config.payload);
                assert!(level >= if tail { 0 } else { 4 }, "H5: {pkt:?}");
                scheduled += u32::from(!tail);
                granted += 1;
            }
            (Seen::Arrived(_), Kind::Grant { granted: now, level }) => {
                known.granted = known.granted.max(u64::from(now));
                known.level = level;
            }
            _ => assert_eq!(pkt.class, 7, "H9: {pkt:?}"),
        }
        *out.borrow_mut() = (granted, scheduled);
    };
    busy(w3(), watch);
    let (granted, scheduled) = *seen.borrow();
    assert!(granted > 500 && scheduled > 300, "{granted} grants, {scheduled} of them scheduled");
}

/// Of the messages of a sender that may send, the one with the least left goes first.
#[test]
fn h6_senders_serve_the_shortest_remaining_first() {
    let mut net = net(w3(), 5);
    let sizes = [9000, 100, 5000, 1442, 8000, 3000, 2884];
    // The first is on the wire when the others come.
    for (n, len) in sizes.into_iter().enumerate() {
        net.submit(HostId(0), HostId(1 + n as u32 % 4), len);
    }
    net.run_until_idle(Dur::from_ms(4));
    let order: Vec<u64> = net.log().iter().filter_map(|s| Some(data(s)?.size)).collect();
    let mut expected = vec![9000];
    // Of the first 7558 B are left.
    for len in [100, 1442, 2884, 3000, 5000, 9000, 8000] {
        let packets = u64::div_ceil(len, 1442) - u64::from(len == 9000);
        expected.extend(std::iter::repeat_n(len, packets as usize));
    }
    assert_eq!(order, expected);
}

/// H8: no loss, and queues of less than the timeout: in forty timeouts nobody asks, though a long
/// message waits for short ones again and again.
#[test]
fn h8_without_loss_nothing_is_asked_for_again() {
    let (resend_timeout, ack_delay) = (Dur::from_us(500), Dur::from_us(100));
    let mut net = net(Config { resend_timeout, ack_delay, ..w3() }, 6);
    net.set_bottleneck(TO, Bottleneck { rate: TEN_GIG, packets: 10_000, trim: false });
    net.submit(HostId(5), TO, 12_000_000);
    for n in 0..200 {
        net.submit(HostId(1 + n % 4), TO, 1000 * u64::from(n % 61));
        net.run_until(Time::ZERO + Dur::from_us(u64::from(n + 1) * 100));
    }
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    assert!(net.now() > Time::ZERO + resend_timeout * 40);
    let asked = |kind: &Kind| {
        matches!(
            kind,
            Kind::Resend { .. } | Kind::Unknown { .. } | Kind::NeedAck | Kind::Busy { .. }
        )
    };
    assert!(of_kind(&net, asked).is_empty());
}

/// A copy of a packet that comes when its message is long over places nothing (edge case 9).
#[test]
fn h10_a_message_is_delivered_once() {
    let mut net = net(w3(), 2);
    let mut n = 0;
    net.fault(move |_: &Sent| {
        n += 1;
        if n % 3 == 0 { Verdict::Duplicate(Dur::from_ms(n % 5 * 30)) } else { Verdict::Pass }
    });
    for len in [100, 20_000, 5000, 100_000] {
        net.submit(HostId(1), TO, len);
        net.run_until(net.now() + Dur::from_ms(20));
    }
    net.run_until_idle(Dur::from_ms(1000));
    net.ledger().assert_all_done();
    assert!(net.stat(TO, Stat::Duplicate) > 0);
}

/// Long messages to one receiver at 90 % of its link for 20 ms: all are complete soon after.
#[test]
fn h11_all_messages_complete_below_capacity() {
    let mut net = net(w3(), 9);
    net.set_bottleneck(TO, Bottleneck { rate: TEN_GIG, packets: 100_000, trim: false });
    let wire = TEN_GIG.serialise(1538 * 100);
    for n in 0..160 {
        net.submit(HostId(1 + n * 5 % 8), TO, 144_200);
        net.run_until(net.now() + Dur(wire.0 / 9 * 10));
    }
    let end = net.now();
    let idle = net.run_until_idle(Dur::from_ms(1000));
    net.ledger().assert_all_done();
    assert!(idle.since(end) < Dur::from_ms(3), "{}", idle.since(end));
}

/// Lost data is asked for when it has been missing for `resend_timeout`, and comes at the highest
/// level (edge case 6).
#[test]
fn what_is_lost_is_asked_for_and_goes_first() {
    let mut net = net(w3(), 2);
    net.fault(fault::drop_data(HostId(1), &[4, 5, 8]));
    net.submit(HostId(1), TO, 20 * 1442);
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    let asked = resends(&net);
    let kinds: Vec<Kind> = asked.iter().map(|sent| header(sent).kind).collect();
    let expected = [(4, 6), (8, 9)].map(|(first, end)| Kind::Resend { first, end, level: 0 });
    assert_eq!(kinds, expected);
    let since = asked[0].at.since(Time::ZERO);
    assert!(since > Dur::from_ms(5) && since < Dur::from_ms(7), "{since}");
    let again: Vec<(u32, u8)> = net
        .log()
        .iter()
        .filter(|sent| sent.at > asked[0].at)
        .filter_map(|sent| Some((data(sent)?.index, sent.pkt.class)))
        .collect();
    assert_eq!(again, [(4, 7), (5, 7), (8, 7)]);
    assert_eq!(net.stat(HostId(1), Stat::Retransmission), 3);
}

/// A lost grant is one that the receiver thinks given: its RESEND permits what it did
/// (specs/homa.md#4.2).
#[test]
fn a_lost_grant_is_made_up_for() {
    let mut net = net(w3(), 2);
    net.fault(lose(|kind| matches!(kind, Kind::Grant { .. }), 3));
    net.submit(HostId(1), TO, 10 * 1442);
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    let kinds: Vec<Kind> = resends(&net).iter().map(|sent| header(sent).kind).collect();
    assert_eq!(kinds, [Kind::Resend { first: 7, end: 10, level: 0 }]);
    assert_eq!(net.stat(HostId(1), Stat::Retransmission), 0, "they had never left");
    // They go as if the grants had come: not at the highest level.
    let late: Vec<Sent> = of_kind(&net, |kind| matches!(kind, Kind::Data(d) if d.index >= 7));
    assert_eq!(late.iter().map(|sent| sent.pkt.class).collect::<Vec<_>>(), [0, 0, 0]);
}

/// A receiver that has heard nothing cannot ask: the sender does, hears UNKNOWN, and begins anew.
#[test]
fn a_message_that_is_lost_whole_begins_anew() {
    let mut net = net(w3(), 2);
    net.fault(lose(|kind| matches!(kind, Kind::Data(_)), 7));
    net.submit(HostId(1), TO, 30_000);
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    let asked = of_kind(&net, |kind| matches!(kind, Kind::NeedAck));
    let unknown = of_kind(&net, |kind| matches!(kind, Kind::Unknown { mine: false }));
    assert_eq!((asked.len(), unknown.len()), (1, 1));
    assert_eq!(net.stat(HostId(1), Stat::Retransmission), 7);
}

/// That a message is whole is told with data in the other direction, otherwise after `ack_delay`,
/// and again if that is lost.
#[test]
fn acknowledgements_come_with_data_or_by_themselves() {
    let acks = |net: &Net| of_kind(net, |kind| matches!(kind, Kind::Ack { .. })).len();
    let mut with_data = net(w3(), 2);
    let key = with_data.submit(HostId(1), TO, 100);
    with_data.run_until(Time::ZERO + Dur::from_us(10));
    with_data.submit(TO, HostId(1), 100);
    with_data.run_until(Time::ZERO + Dur::from_us(20));
    assert!(with_data.record(key).acked.is_some());
    assert_eq!(acks(&with_data), 0);
    let mut alone = net(w3(), 2);
    alone.fault(lose(|kind| matches!(kind, Kind::Ack { .. }), 1));
    let key = alone.submit(HostId(1), TO, 100);
    alone.run_until_idle(Dur::from_ms(100));
    let acked = alone.record(key).acked.unwrap().since(Time::ZERO);
    assert!(acked > Dur::from_ms(5) && acked < Dur::from_ms(7), "{acked}");
    assert_eq!(acks(&alone), 2);
}

/// Asked for something that waits for its turn, a sender only says that it is alive
/// (specs/homa.md#4.2).
#[test]
fn a_sender_that_has_better_to_do_is_busy() {
    let config = Config { resend_timeout: Dur::from_us(40), ..w3() };
    let mut net = net(config, 3);
    net.submit(HostId(1), TO, 200_000);
    net.run_until(Time::ZERO + Dur::from_us(20));
    // Shorter ones take its turns; it has been granted something.
    for _ in 0..40 {
        net.submit(HostId(1), HostId(2), 10_000);
    }
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    let busy = of_kind(&net, |kind| matches!(kind, Kind::Busy { mine: true }));
    assert!(!busy.is_empty());
}

#[test]
fn a_cancelled_message_gets_no_more_grants() {
    let mut net = net(w3(), 3);
    let long = net.submit(HostId(1), TO, 90_000_000);
    net.run_until(Time::ZERO + Dur::from_us(500));
    net.cancel(long);
    let cancelled = net.now();
    let other = net.submit(HostId(1), TO, 100_000);
    net.run_until_idle(Dur::from_ms(100));
    let late = grants(&net);
    let late = late.iter().filter(|s| s.at > cancelled + DELAY * 2 && s.pkt.span.msg == long.id);
    assert_eq!(late.count(), 0);
    assert!(net.record(other).delivered.is_some());
}

/// Six requests at once and their responses of 10 kB: of the latter, what the first packet says and
/// has.
fn answered(net: &mut Net) -> Vec<(u16, u16)> {
    let requests: Vec<_> = (1..7).map(|to| net.submit(TO, HostId(to), 100)).collect();
    net.run_until_idle(Dur::from_ms(100));
    let asked = net.log().len();
    for (server, &request) in (1..7).zip(&requests) {
        let reply = Msg { reply_to: Some(request), ..Msg::new(TO, 10_000) };
        net.submit_as(HostId(server), reply);
    }
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    let first = |from| {
        let sent = net.log()[asked..].iter().filter(|sent| sent.pkt.src == HostId(from));
        let first = sent.filter_map(data).find(|data| data.index == 0).unwrap();
        (first.unscheduled, first.len)
    };
    (1..7).map(first).collect()
}

/// Incast control (specs/homa.md#10): of six requests at once, those beyond the fourth are marked,
/// and their responses begin with 400 B instead of seven packets.
#[test]
fn marked_requests_have_responses_that_begin_with_little() {
    let mut net = net(Config { incast: Some(Incast { threshold: 4, bytes: 400 }), ..w3() }, 7);
    let expected = [(7, 1442), (7, 1442), (7, 1442), (7, 1442), (1, 400), (1, 400)];
    assert_eq!(answered(&mut net), expected);
    // All are answered: the next requests start from nothing again.
    assert_eq!(answered(&mut net), expected);
    let marked = net.log().iter().filter(|sent| data(sent).is_some_and(|data| data.marked));
    assert_eq!(marked.count(), 2 + 2, "two of each round");
}

/// What is not less than a packet is rounded up to whole ones.
#[test]
fn responses_may_begin_with_whole_packets() {
    let mut net = net(Config { incast: Some(Incast { threshold: 5, bytes: 2000 }), ..w3() }, 7);
    assert_eq!(answered(&mut net)[4..], [(7, 1442), (2, 1442)]);
}

/// Nothing else comes unscheduled: without it the receiver knows nothing, and the message begins
/// anew.
#[test]
fn a_short_first_packet_that_is_lost_is_sent_again() {
    let mut net = net(Config { incast: Some(Incast { threshold: 0, bytes: 400 }), ..w3() }, 7);
    net.fault(lose(|kind| matches!(kind, Kind::Data(data) if data.head == 400), 9));
    assert_eq!(answered(&mut net), [(1, 400); 6]);
}
