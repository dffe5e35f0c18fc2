//! The conformance suite, the ideal time of a lone message, and the rules of
//! specs/uet.md#4.4,4.5,5.

use endpoint::{Endpoint, Flags, Packet, Stat};
use testkit::conformance::{self, Opts};
use testkit::fault::{self, Mix};
use testkit::{Bottleneck, Link, Net, Sent, Verdict};
use units::{Bytes, Dur, HostId, Rate, Time};
use wire::uet::{Ack, Kind, Repr};

use super::{Config, Paths, Uet, WindowControl};
use crate::entropy::Rule;

mod eqds;
mod pieces;
mod sleek;

const RATE: Rate = Rate(100_000_000_000);
const DELAY: Dur = Dur::from_us(6);
const TO: HostId = HostId(0);
const PAYLOAD: u64 = 4086;

fn config() -> Config {
    Config::htsim(PAYLOAD as u16)
}

fn link(paths: u32) -> Link {
    Link { rate: RATE, delay: DELAY, mtu: config().mtu(), paths, hashed: false }
}

/// Hosts whose insides can be looked at.
fn net(config: Config, hosts: usize) -> Net<Uet> {
    let make = |_| Box::new(Uet::new(config).unwrap());
    Net::new(1, link(4), (0..hosts).map(make).collect())
}

fn kind(sent: &Sent) -> Kind {
    Repr::parse(sent.pkt.header()).unwrap().kind
}

/// A packet with payload as it was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Data {
    at: Time,
    psn: u32,
    entropy: u16,
    ack_request: bool,
    repeated: bool,
}

fn data(net: &Net<Uet>, from: u32) -> Vec<Data> {
    let sent = net.log().iter().filter(|sent| sent.pkt.src == HostId(from));
    let data = sent.filter_map(|sent| match kind(sent) {
        Kind::Request { entropy, psn, ack_request, repeated, .. } => {
            Some(Data { at: sent.at, psn, entropy, ack_request, repeated })
        }
        _ => None,
    });
    data.collect()
}

fn acks(net: &Net<Uet>) -> Vec<(Time, u32, Ack)> {
    let acks = net.log().iter().filter_map(|sent| match kind(sent) {
        Kind::Ack { psn, ack, .. } => Some((sent.at, psn, ack)),
        _ => None,
    });
    acks.collect()
}

fn conforms(config: Config) {
    let opts = Opts {
        payload: Bytes(u64::from(config.payload)),
        window: Bytes(15_000),
        trims: true,
        bounces: false,
        hashed_paths: config.paths != Paths::Index,
        patience: Dur::from_ms(60_000),
    };
    conformance::run(|_| Box::new(Uet::new(config).unwrap()) as Box<dyn Endpoint>, opts);
}

#[test]
fn every_choice_of_paths_conforms() {
    for spray in [Rule::Oblivious, Rule::Bitmap, Rule::Reps, Rule::Mixed] {
        conforms(Config { spray, ..config() });
    }
}

#[test]
fn hashed_and_single_paths_conform() {
    conforms(Config { paths: Paths::Hashed, ..Config::htsim(1000) });
    conforms(Config { entropies: 1, ..Config::htsim(1000) });
}

#[test]
fn the_rules_of_the_text_conform() {
    conforms(Config::ue_1_0(1000));
    conforms(Config { credit: true, ..Config::ue_1_0(1000) });
}

#[test]
fn a_constant_window_conforms() {
    let control = WindowControl::Constant;
    conforms(Config { control, initial_window: Some(Bytes(20_000)), ..Config::htsim(1000) });
}

/// Credit alone, and both; with a window that keeps shrinking below what is given.
#[test]
fn credit_conforms() {
    let alone = Config { credit: true, control: WindowControl::None, ..config() };
    conforms(alone);
    conforms(Config { oversubscription: Some(4.0), ..alone });
    conforms(Config { credit: true, ..Config::htsim(1000) });
}

/// When the last of `len` bytes is there, over one link and one store-and-forward switch.
fn arrival(config: &Config, len: u64) -> Time {
    let framing = config.framing();
    let (mut left, mut sent, mut arrived) = (len, Time::ZERO, Time::ZERO);
    loop {
        let payload = left.min(u64::from(framing.payload));
        let wire = RATE.serialise(payload + u64::from(framing.overhead));
        sent += wire;
        arrived = arrived.max(sent + DELAY) + wire;
        left -= payload;
        if left == 0 {
            return arrived;
        }
    }
}

/// The window is one and a half of what fits into a round trip.
#[test]
fn a_lone_message_takes_the_ideal_time() {
    let config = config();
    for packets in [0, 1, 2, 43, 64, 490] {
        for len in [packets * PAYLOAD, packets * PAYLOAD + 7] {
            let mut net = net(config, 2);
            net.set_bottleneck(TO, Bottleneck { rate: RATE, packets: 1000, trim: false });
            let key = net.submit(HostId(1), TO, len);
            net.run_until_idle(Dur::from_ms(100));
            assert_eq!(net.record(key).delivered.unwrap(), arrival(&config, len), "{len} B");
            assert_eq!(data(&net, 1).len() as u64, len.div_ceil(PAYLOAD).max(1));
        }
    }
}

/// The first, then each four packets; the last asks for one.
#[test]
fn acknowledgements_come_every_16_kb() {
    let mut net = net(config(), 2);
    net.submit(HostId(1), TO, 41 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(1));
    let psns: Vec<u32> = acks(&net).iter().map(|(_, psn, _)| *psn).collect();
    let expected: Vec<u32> = [0].into_iter().chain((4..=40).step_by(4)).collect();
    assert_eq!(psns, expected);
    let asked: Vec<u32> =
        data(&net, 1).iter().filter(|data| data.ack_request).map(|data| data.psn).collect();
    assert_eq!(asked, [40]);
    let last = acks(&net).last().unwrap().2;
    // 41 packets of 4150 B in units of 256 B, rounded up.
    assert_eq!((last.expected, last.received), (41, (41 * 4150_u32).div_ceil(256)));
}

/// A full window: the last packet that fits asks, and none is sent before the answer.
#[test]
fn no_more_is_in_flight_than_the_window_and_the_last_that_fits_asks() {
    let config = Config { initial_window: Some(Bytes(10 * 4150)), ..config() };
    let mut net = net(config, 2);
    net.submit(HostId(1), TO, 100 * PAYLOAD);
    net.run_until(Time::ZERO + DELAY);
    let sent = data(&net, 1);
    assert_eq!(sent.len(), 10);
    // With nine sent, a tenth as large fills it exactly.
    let asked: Vec<u32> = sent.iter().filter(|d| d.ack_request).map(|d| d.psn).collect();
    assert_eq!(asked, [8, 9]);
}

/// What is trimmed is refused at once and sent again with an EV of its own, asking for an answer.
#[test]
fn a_trimmed_packet_is_refused_and_sent_again() {
    let mut net = net(config(), 2);
    let mut left = 1;
    net.fault(move |sent: &Sent| match kind(sent) {
        Kind::Request { psn: 3, .. } if left == 1 => {
            left = 0;
            Verdict::Trim
        }
        _ => Verdict::Pass,
    });
    net.submit(HostId(1), TO, 200 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(1));
    net.ledger().assert_all_done();
    let nacks = net.log().iter().filter(|sent| matches!(kind(sent), Kind::Nack { psn: 3, .. }));
    assert_eq!(nacks.count(), 1, "specs/uet.md#5: one for each header");
    let again: Vec<Data> = data(&net, 1).into_iter().filter(|data| data.repeated).collect();
    assert_eq!((again.len(), again[0].psn, again[0].ack_request), (1, 3, true));
    let rtt = link(1).rate.serialise(4150 + 64) + DELAY * 2;
    let first = data(&net, 1)[3].at;
    assert!(again[0].at.since(first) < rtt + RATE.serialise(2 * 4150), "as soon as it is heard");
    assert_eq!(net.stat(HostId(1), Stat::Timeout), 0);
}

fn rto() -> Dur {
    let rtt = RATE.serialise(4150 + 64) + DELAY * 2;
    let packets = RATE.bytes_in(rtt).0.div_ceil(4150);
    Dur::from_us(15) + RATE.serialise(packets * 4150) * 6
}

/// Nothing but the timer tells of a loss: 15 us and six times the drain time of a BDP of packets.
#[test]
fn a_lost_packet_is_sent_again_after_the_timeout() {
    let config = config();
    let mut net = net(config, 2);
    net.fault(fault::drop_data(HostId(1), &[20]));
    net.submit(HostId(1), TO, 100 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(1));
    net.ledger().assert_all_done();
    let sent = data(&net, 1);
    let first = sent.iter().find(|data| data.psn == 20).unwrap().at;
    let again = sent.iter().find(|data| data.repeated).unwrap();
    assert_eq!((again.psn, again.at), (20, first + rto()));
    assert_eq!((net.stat(HostId(1), Stat::Retransmission), sent.len()), (1, 101));
}

/// The timeout of a flight doubles once, not with each packet of it.
#[test]
fn all_packets_of_a_lost_flight_wait_equally_long() {
    let mut net = net(config(), 2);
    net.fault(fault::drop_data(HostId(1), &[10, 11, 12]));
    net.submit(HostId(1), TO, 13 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(1));
    net.ledger().assert_all_done();
    let sent = data(&net, 1);
    let waits = sent[13..].iter().map(|again| again.at.since(sent[again.psn as usize].at));
    // Packet 9 has arrived, but no acknowledgement says so.
    assert_eq!(waits.collect::<Vec<_>>(), [rto(); 4]);
}

/// As in the public simulator: each copy is waited for as long as the first.
#[test]
fn a_timeout_may_be_fixed() {
    let mut net = net(Config { rto_doublings: 0, ..config() }, 2);
    let outage = Time::ZERO + rto() * 5;
    net.fault(move |sent: &Sent| match kind(sent) {
        Kind::Request { .. } if sent.at < outage => Verdict::Drop,
        _ => Verdict::Pass,
    });
    net.submit(HostId(1), TO, PAYLOAD);
    net.run_until_idle(Dur::from_ms(1));
    net.ledger().assert_all_done();
    let sent = data(&net, 1);
    let gaps = sent.windows(2).map(|two| two[1].at.since(two[0].at));
    assert_eq!(gaps.collect::<Vec<_>>(), [rto(); 5]);
}

/// A timeout that has doubled several times is as short as ever once something arrives.
#[test]
fn what_is_lost_after_an_outage_is_missed_as_soon_as_before() {
    let mut net = net(config(), 2);
    let outage = Time::ZERO + Dur::from_us(600);
    let mut lost = false;
    net.fault(move |sent: &Sent| match kind(sent) {
        Kind::Request { .. } if sent.at < outage => Verdict::Drop,
        Kind::Request { .. } if sent.at > outage + Dur::from_us(100) && !lost => {
            lost = true;
            Verdict::Drop
        }
        _ => Verdict::Pass,
    });
    net.submit(HostId(1), TO, 1_000 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(5));
    net.ledger().assert_all_done();
    let sent = data(&net, 1);
    let gaps = sent.windows(2).map(|two| two[1].at.since(two[0].at));
    assert!(gaps.max().unwrap() > rto() * 3, "it doubled");
    let after = sent.iter().find(|data| data.at > outage + Dur::from_us(100)).unwrap();
    let again = sent.iter().find(|data| data.psn == after.psn && data.at > after.at).unwrap();
    let wait = again.at.since(after.at);
    // The window may put it off a little.
    assert!(wait < rto() * 2, "{wait}");
}

/// A marked packet is answered by itself, with its EV and its bit in the bitmap.
#[test]
fn marked_packets_are_answered_at_once() {
    let mut net = net(config(), 2);
    net.tamper(|pkt| {
        let header = Repr::parse(pkt.header());
        if let Ok(Repr { kind: Kind::Request { psn: 6 | 7, .. }, .. }) = header {
            pkt.flags.set(Flags::CE);
        }
    });
    net.submit(HostId(1), TO, 30 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(1));
    let sent = data(&net, 1);
    let marked: Vec<_> = acks(&net).into_iter().filter(|(_, _, ack)| ack.marked).collect();
    assert_eq!(marked.iter().map(|(_, psn, _)| *psn).collect::<Vec<_>>(), [6, 7]);
    for (_, psn, ack) in marked {
        assert_eq!((ack.base, ack.bitmap & 1), (psn, 1));
        let echoed = net.log().iter().find_map(|sent| match kind(sent) {
            Kind::Ack { entropy, psn: of, .. } if of == psn => Some(entropy),
            _ => None,
        });
        assert_eq!(echoed, Some(sent[psn as usize].entropy));
    }
}

#[test]
fn ten_control_packets_go_before_one_of_data() {
    let mut turn = 0;
    let order: Vec<bool> = (0..66).map(|_| super::turn_of_data(&mut turn, 10)).collect();
    assert!(order.chunks(11).all(|round| round.iter().position(|&data| data) == Some(10)));
    assert!(order.windows(11).all(|some| some.iter().filter(|&&data| data).count() == 1));
}

/// specs/uet.md#U1,U3 after every event, whatever the network does.
#[test]
fn u1_u3_hold_under_loss_duplication_reordering_and_trimming() {
    for seed in 1..=12 {
        let draw = endpoint::Draw::new(seed, endpoint::Purpose::new("uet faults"), 0);
        let mix = Mix {
            drop: 0.03,
            duplicate: 0.03,
            delay: 0.05,
            trim: 0.1,
            late_max: Dur::from_us(seed * 20),
            ..Mix::NONE
        };
        let config = config();
        let mut net = net(config, 3);
        net.fault(fault::random(draw, mix));
        for len in [0, 1, 100_000, 2_000_000] {
            net.submit(HostId(1), TO, len);
            net.submit(HostId(2), TO, len);
        }
        let mut events = 0;
        while net.step() {
            for host in 0..3 {
                net.endpoint(HostId(host)).sender.flows().for_each(|flow| {
                    flow.check(&config);
                });
            }
            events += 1;
        }
        net.ledger().assert_all_done();
        assert!(events > 2_000);
    }
}

/// specs/uet.md#U2.
#[test]
fn u2_without_loss_in_flight_is_what_is_outstanding() {
    let config = config();
    let mut net = net(config, 2);
    net.submit(HostId(1), TO, 3_000_000);
    let mut most = 0;
    while net.step() {
        for flow in net.endpoint(HostId(1)).sender.flows() {
            let state = flow.state();
            let (window, in_flight) = (state.window.unwrap(), state.in_flight.unwrap());
            let bytes = flow.check(&config);
            assert!((bytes - 255..=bytes).contains(&(in_flight as i64)) || bytes < 256);
            assert!(in_flight <= window);
            most = most.max(in_flight);
        }
    }
    assert!(most > 150_000, "{most}: about one and a half BDP");
}

/// Credit alone, in an incast: who waits and has heard nothing asks, once in a timeout at most
/// (specs/uet.md#U8); all arrives, and never more is sent than was given (U4).
#[test]
fn u4_u8_credit_is_asked_for_seldom_and_covers_what_is_sent() {
    let config = Config { control: WindowControl::None, credit: true, ..config() };
    let mut net = net(config, 5);
    net.set_bottleneck(TO, Bottleneck { rate: RATE, packets: 8, trim: true });
    let draw = endpoint::Draw::new(3, endpoint::Purpose::new("uet credit"), 0);
    net.fault(fault::random(draw, Mix { drop: 0.05, ..Mix::NONE }));
    for from in 1..5 {
        net.submit(HostId(from), TO, 1_000_000);
    }
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    let rtt = RATE.serialise(4150 + 64) + DELAY * 2;
    let own = RATE.bytes_in(rtt).0 * 3 / 2;
    let mut asked = 0;
    for from in 1..5 {
        let (mut given, mut sent, mut last) = (0, 0, None);
        for one in net.log() {
            match kind(one) {
                Kind::Credit { given: units } if one.pkt.dst == HostId(from) => given = units,
                Kind::Request { len, .. } if one.pkt.src == HostId(from) => {
                    sent += u64::from(len) + 64;
                    assert!(sent <= own + u64::from(given) * 256 + 4150);
                }
                Kind::CreditRequest { .. } if one.pkt.src == HostId(from) => {
                    asked += 1;
                    assert!(last.is_none_or(|last| one.at.since(last) >= rtt));
                    last = Some(one.at);
                }
                _ => {}
            }
        }
    }
    assert!(asked > 0, "some of what was given is lost");
}

/// A message of one packet asks for nothing when it sends that. Trimmed, it asks by REQ, and does
/// not wait until a long message asks for no more.
#[test]
fn a_trimmed_message_of_one_packet_is_given_credit_beside_a_long_one() {
    let config = Config { control: WindowControl::None, credit: true, ..config() };
    let mut net = net(config, 3);
    let mut left = 1;
    net.fault(move |sent: &Sent| match kind(sent) {
        Kind::Request { .. } if sent.pkt.src == HostId(1) && left == 1 => {
            left = 0;
            Verdict::Trim
        }
        _ => Verdict::Pass,
    });
    net.submit(HostId(2), TO, 100_000_000);
    net.submit(HostId(1), TO, PAYLOAD);
    net.run_until_idle(Dur::from_ms(20));
    net.ledger().assert_all_done();
    let again: Vec<Data> = data(&net, 1).into_iter().filter(|data| data.repeated).collect();
    assert_eq!(again.len(), 1);
    let long = data(&net, 2).last().unwrap().at;
    assert!(long > Time::ZERO + Dur::from_ms(8));
    // There and back, a timeout, and once more there and back.
    assert!(again[0].at < Time::ZERO + Dur::from_us(150), "{:?}", again[0].at);
}

/// All that host 1 sends is lost, and the credit that has come is heard again and again.
#[test]
fn u8_copies_of_old_credit_permit_no_second_request_for_it() {
    let config = Config { control: WindowControl::None, credit: true, ..config() };
    let mut net = net(config, 2);
    net.fault(|sent: &Sent| match kind(sent) {
        Kind::Request { .. } => Verdict::Drop,
        _ => Verdict::Pass,
    });
    let key = net.submit(HostId(1), TO, 100 * PAYLOAD);
    for n in 0..30_000 {
        net.run_until(Time::ZERO + Dur::from_ns(10 * n));
        let header = Repr { message: key.id.0, kind: Kind::Credit { given: 0 } };
        let mut pkt = Packet { src: TO, dst: HostId(1), ..Packet::EMPTY };
        super::put_header(&mut pkt, header);
        net.inject(pkt);
    }
    let asks = net.log().iter().filter(|sent| matches!(kind(sent), Kind::CreditRequest { .. }));
    let asks: Vec<Time> = asks.map(|sent| sent.at).collect();
    let rtt = RATE.serialise(4150 + 64) + DELAY * 2;
    assert!(asks.len() > 1, "{asks:?}");
    assert!(asks.windows(2).all(|two| two[1].since(two[0]) >= rtt), "{asks:?}");
}

/// A receiver that acknowledges packets and counts no bytes: the window opens as it has heard of
/// all of them, whatever was trimmed or lost, with and without credit.
#[test]
fn a_receiver_that_counts_nothing_leaves_no_message_waiting() {
    let credit = Config { credit: true, ..config() };
    for (seed, config) in [(1, config()), (2, config()), (3, credit)] {
        let mut net = net(config, 2);
        let draw = endpoint::Draw::new(seed, endpoint::Purpose::new("uet counts"), 0);
        net.fault(fault::random(draw, Mix { drop: 0.02, trim: 0.05, ..Mix::NONE }));
        net.tamper(|pkt| {
            let header = Repr::parse(pkt.header());
            if let Ok(Repr { message, kind: Kind::Ack { entropy, psn, ack } }) = header {
                let ack = Ack { received: 0, ..ack };
                super::put_header(pkt, Repr { message, kind: Kind::Ack { entropy, psn, ack } });
            }
        });
        let key = net.submit(HostId(1), TO, 500 * PAYLOAD);
        net.run_until_idle(Dur::from_ms(1_000));
        // Of altered packets the network keeps no record but this.
        assert!(net.record(key).acked.is_some(), "seed {seed}");
    }
}

/// Messages of one marked packet, which begin more often than looks come, put no look off.
#[test]
fn short_messages_at_an_idle_host_do_not_hide_that_the_fabric_is_full() {
    let config = Config { control: WindowControl::None, credit: true, ..config() };
    let mut net = net(Config { oversubscription: Some(4.0), ..config }, 2);
    net.tamper(|pkt| {
        if let Ok(Repr { kind: Kind::Request { .. }, .. }) = Repr::parse(pkt.header()) {
            pkt.flags.set(Flags::CE);
        }
    });
    for n in 0..100 {
        net.run_until(Time::ZERO + Dur::from_us(5 * n));
        net.submit(HostId(1), TO, PAYLOAD);
    }
    net.run_until_idle(Dur::from_ms(1));
    assert!(acks(&net).len() >= 100, "all have come");
    let rate = net.endpoint(TO).receiver.credit_rate();
    assert!(rate < 0.5, "{rate}");
}

#[test]
fn a_cancelled_message_is_over_at_both_ends() {
    let mut net = net(config(), 2);
    let key = net.submit(HostId(1), TO, 90_000_000);
    net.run_until(Time::ZERO + Dur::from_us(500));
    net.cancel(key);
    let cancelled = net.now();
    net.run_until_idle(Dur::from_ms(1));
    assert!(data(&net, 1).iter().all(|data| data.at <= cancelled));
    let closed = net.log().iter().filter(|sent| matches!(kind(sent), Kind::Close)).count();
    assert_eq!(closed, 1);
}

#[test]
fn nonsense_is_refused_by_name() {
    let refused = |config: Config| config.check().unwrap_err().to_string();
    assert_eq!(config().check(), Ok(()));
    let broken = Config { entropies: 48, ..config() };
    let what = "Ultra Ethernet: entropies 48 must be a power of two, at most 32768";
    assert_eq!(refused(broken), what);
    let broken = Config { sack_threshold: 0, ..config() };
    assert_eq!(refused(broken), "Ultra Ethernet: sack_threshold must be more than zero");
    let broken = Config { time_wait: Dur::from_ms(1), ..config() };
    assert_eq!(refused(broken), "Ultra Ethernet: abort_after is too large for time_wait");
}
