//! The conformance suite, the ideal time of a lone message, and what queue pairs do that is not a
//! rule's affair.

use endpoint::{
    Cx, Draw, Effect, Effects, Endpoint, Flags, Msg, MsgId, MsgKey, NetView, Packet, Purpose, Span,
    Stat, Submit, TimerId, Tx, TxPort, UNBOUNDED,
};
use testkit::conformance::{self, Opts};
use testkit::{Bottleneck, Link, Net, Sent, Star, Verdict, fault};
use units::{Bytes, Dur, HostId, Rate, Time};
use wire::int;
use wire::roce::{Ack, Data, Kind, Part, Repr};

use super::control::Control;
use super::rule::timely::Params;
use super::rule::{dcqcn, hpcc, swift};
use super::{
    Config, Initial, NicPacing, Operation, Rdma, Recovery, RuleConfig, Segment, Speed, Subtract,
    put_header,
};
use crate::rto::RtoConfig;

const TEN_GIG: Rate = Rate(10_000_000_000);
const DELAY: Dur = Dur::from_us(2);
const TO: HostId = HostId(0);

fn net(config: Config, hosts: usize) -> Net {
    let make = |_| Box::new(Rdma::new(config).unwrap()) as Box<dyn Endpoint>;
    let mtu = config.payload + config.overhead;
    let link = Link { rate: TEN_GIG, delay: DELAY, mtu, paths: 4, hashed: true };
    Net::new(1, link, (0..hosts).map(make).collect())
}

/// For networks that lose packets as RDMA's never do.
fn lossy(config: Config) -> Config {
    let rto = RtoConfig { min: Dur::from_us(500), initial: Dur::from_ms(1), ..config.rto };
    Config { rto, max_timeouts: 100, ..config }
}

fn conforms(config: Config) {
    let config = lossy(config);
    let opts = Opts {
        payload: Bytes(u64::from(config.payload)),
        window: Bytes(16 * u64::from(config.payload)),
        trims: false,
        bounces: false,
        hashed_paths: true,
        patience: Dur::from_ms(600_000),
    };
    conformance::run(|_| Box::new(Rdma::new(config).unwrap()) as Box<dyn Endpoint>, opts);
}

const UNLIMITED: Config = Config::roce(1024, RuleConfig::Unlimited);

#[test]
fn an_acknowledgement_for_each_packet_conforms() {
    conforms(UNLIMITED);
}

#[test]
fn an_acknowledgement_for_each_segment_conforms() {
    conforms(Config { segment: Segment::Bytes(4 << 10), ..UNLIMITED });
}

#[test]
fn timely_conforms() {
    conforms(Config::timely(1024));
}

#[test]
fn selective_recovery_conforms() {
    conforms(Config { recovery: Recovery::Selective { reordering: 3 }, ..UNLIMITED });
}

/// Acknowledgements that overtake one another.
#[test]
fn feedback_with_jitter_conforms() {
    let jitter = Config { feedback_jitter: Dur::from_us(100), ..UNLIMITED };
    conforms(jitter);
    conforms(Config { recovery: Recovery::Selective { reordering: 3 }, ..jitter });
    let read = Config { operation: Operation::Read, ..jitter };
    assert_eq!(read.check().unwrap_err().to_string(), "feedback_jitter needs operation write");
}

/// At the line rate nothing comes between the packets of a message, nor between its segments.
#[test]
fn a_lone_message_takes_the_ideal_time() {
    let unlimited = UNLIMITED;
    let segments = Config { segment: Segment::Bytes(4 << 10), ..UNLIMITED };
    let selective = Config { recovery: Recovery::Selective { reordering: 3 }, ..UNLIMITED };
    for config in [unlimited, segments, selective, Config::timely(1024), Config::timely(4096)] {
        let p = u64::from(config.payload);
        for len in [0, 1, p, p + 1, 4 * p, 5 * p + 7, 100 * p, 1000 * p + 1] {
            let mut net = net(config, 2);
            let key = net.submit(HostId(1), TO, len);
            net.run_until_idle(Dur::from_ms(100));
            let framing = config.framing();
            let wire = len + len.div_ceil(p).max(1) * u64::from(framing.overhead);
            let ideal = Time::ZERO + TEN_GIG.serialise(wire) + DELAY;
            assert_eq!(net.record(key).delivered, Some(ideal), "{len} B of {config:?}");
        }
    }
}

/// An endpoint whose round-trip times are kept.
struct Recorder {
    inner: Rdma,
    /// Each with the message it is of and when it was measured.
    samples: Vec<(Time, MsgId, Dur)>,
}

impl Endpoint for Recorder {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.inner.on_submit(cx, msg)
    }
    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        self.inner.on_packet(cx, pkt);
        for effect in cx.fx.as_slice() {
            if let Effect::Rtt(id, rtt) | Effect::RttReceived(MsgKey { id, .. }, rtt) = *effect {
                self.samples.push((cx.now, id, rtt));
            }
        }
    }
    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        self.inner.on_timer(cx, id);
    }
    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        self.inner.poll_tx(cx, port, slot)
    }
    fn on_sent(&mut self, cx: &mut Cx<'_>, token: u32, at: Time) {
        self.inner.on_sent(cx, token, at);
    }
}

/// Hosts with these configurations, host 0 behind a queue of `packets` at 10 Gb/s.
fn bottleneck(configs: &[Config], packets: usize) -> Net<Recorder> {
    let recorder = |config: &Config| {
        Box::new(Recorder { inner: Rdma::new(*config).unwrap(), samples: Vec::new() })
    };
    let link = Link { rate: TEN_GIG, delay: DELAY, mtu: 9000, paths: 1, hashed: true };
    let mut net = Net::new(1, link, configs.iter().map(recorder).collect());
    net.set_bottleneck(TO, Bottleneck { rate: TEN_GIG, packets, trim: false });
    net.stop_logging();
    net
}

/// The round-trip times that `host` has measured.
fn samples(net: &Net<Recorder>, host: u32) -> &[(Time, MsgId, Dur)] {
    &net.endpoint(HostId(host)).samples
}

/// What a sample is on an idle path: both ways, the acknowledgement, and the last packet once more
/// at the switch.
fn idle_rtt(config: &Config) -> Dur {
    let last = u64::from(config.payload + config.overhead);
    DELAY * 2 + TEN_GIG.serialise(u64::from(config.ack_bytes)) + TEN_GIG.serialise(last)
}

/// Invariants of specs/timely.md#7: also where the interface paces, and where it stamps departures.
#[test]
fn i1_i2_samples_of_an_idle_path_are_constant_whatever_the_segment() {
    let segment = |bytes| Config { segment: Segment::Bytes(bytes), ..Config::timely(1024) };
    let paced = Config { nic_pacing: NicPacing::At(Rate(700_000_000)), ..Config::timely(1024) };
    let stamped = Config { count_nic_wait: false, ..Config::timely(1024) };
    let by_packet = Config { segment: Segment::Packet, ..Config::timely(1024) };
    for config in
        [segment(16 << 10), segment(32 << 10), segment(64 << 10), paced, stamped, by_packet]
    {
        let mut net = bottleneck(&[config; 2], 1000);
        net.submit(HostId(1), TO, 640 << 10);
        net.run_until_idle(Dur::from_ms(100));
        let samples = samples(&net, 1);
        let segments = (640 << 10) / (config.cut().segment * 1024);
        assert_eq!(samples.len() as u64, segments);
        assert!(
            samples.iter().all(|(_, _, rtt)| *rtt == idle_rtt(&config)),
            "{config:?}: {samples:?}"
        );
    }
}

/// What the receiver holds back is a part of the round-trip time: anything from nothing to the
/// limit, half of it on average.
#[test]
fn jitter_of_feedback_is_in_the_samples() {
    let jitter = Dur::from_us(100);
    let config = Config { feedback_jitter: jitter, ..Config::roce(1024, RuleConfig::Unlimited) };
    let mut net = bottleneck(&[config; 2], 1000);
    for _ in 0..500 {
        net.submit(HostId(1), TO, 1024); // one at a time: one that is overtaken gives no sample
        net.run_until_idle(Dur::from_ms(100));
    }
    let idle = idle_rtt(&config);
    let held = samples(&net, 1).iter().map(|(_, _, rtt)| rtt.0 - idle.0);
    let held: Vec<u64> = held.collect();
    assert!(held.iter().all(|held| *held <= jitter.0), "{held:?}");
    let mean = held.iter().sum::<u64>() / held.len() as u64;
    assert!((45_000_000..55_000_000).contains(&mean), "{mean} ps");
}

/// Without bursts (`own`), and with one whose own time on the link counts but for the last packet's
/// (`packet`): the simulator of "ECN or Delay".
#[test]
fn segments_paced_packet_by_packet_have_the_samples_of_a_lone_packet_and_bursts_may_count_their_own_time()
 {
    let at = Initial::At(Speed::Fixed(Rate(1_000_000_000)));
    let rule = RuleConfig::Timely(Params { initial_rate: at, hai_factor: 1.0, ..Params::PAPER });
    let timely = Config { rule, ..Config::timely(1024) };
    let own = Config { nic_pacing: NicPacing::Own, count_nic_wait: false, ..timely };
    let burst = Config { subtract: Subtract::Packet, ..timely };
    let counted = idle_rtt(&timely) + TEN_GIG.serialise(15 * 1086);
    for (config, rtt) in [(own, idle_rtt(&own)), (burst, counted)] {
        let mut net = bottleneck(&[config; 2], 1000);
        net.submit(HostId(1), TO, 64 << 10);
        net.run_until_idle(Dur::from_ms(100));
        assert_eq!(samples(&net, 1).iter().map(|s| s.2).collect::<Vec<_>>(), [rtt; 4]);
        // 64 packets at 1 to 1.04 Gb/s, or four bursts, the last of which takes no gap.
        let last = samples(&net, 1)[3].0.since(Time::ZERO).as_us_f64();
        let us = if config == own { 530.0..560.0 } else { 400.0..440.0 };
        assert!(us.contains(&last), "{last} us");
    }
    let refused = Config { nic_pacing: NicPacing::Own, ..timely };
    assert!(refused.check().is_err());
}

/// specs/timely.md#4: a segment is released at next_time = release + seg / R at the release before
/// it, unless `recompute_gap`.
#[test]
fn the_gap_that_has_begun_follows_a_new_rate_only_if_so_chosen() {
    let at = Initial::At(Speed::Fixed(Rate(100_000_000)));
    let rule = RuleConfig::Timely(Params {
        initial_rate: at,
        delta: Speed::Fixed(Rate(100_000_000)),
        ..Params::PAPER
    });
    let second = |recompute_gap| {
        let config = Config { rule, recompute_gap, ..Config::timely(1024) };
        let mut net = bottleneck(&[config; 2], 1000);
        net.submit(HostId(1), TO, 32 << 10);
        net.run_until_idle(Dur::from_ms(100));
        samples(&net, 1)[1].0.since(samples(&net, 1)[0].0)
    };
    // The first sample, 19 us after the release, doubles the rate.
    let gap = Rate(100_000_000).serialise(16 * 1086);
    assert_eq!((second(false), second(true) * 2), (gap, gap));
}

#[test]
fn i1_a_short_last_segment_gives_a_sample_of_its_own() {
    let config = Config::timely(1024);
    let mut net = bottleneck(&[config; 2], 1000);
    net.submit(HostId(1), TO, 16 * 1024 + 100);
    net.run_until_idle(Dur::from_ms(1));
    let [(_, _, first), (_, _, second)] = *samples(&net, 1) else { panic!("two samples") };
    assert_eq!(first, idle_rtt(&config));
    // At the switch it waits for what is left of the packet before it: as long as a full one takes,
    // all in all.
    assert_eq!(second, idle_rtt(&config));
}

#[test]
fn i10_a_single_flow_reaches_the_line_rate_and_keeps_an_empty_queue() {
    let initial = Initial::At(Speed::Share(0.1));
    let rule = RuleConfig::Timely(Params { initial_rate: initial, ..Params::PAPER });
    let mut net = bottleneck(&[Config { rule, ..Config::timely(1024) }; 2], 1000);
    net.submit(HostId(1), TO, UNBOUNDED);
    // delta = 10 Mb/s for each segment: R grows tenfold in ln 10 * 16 * 1086 B / delta = 32 ms.
    net.run_until(Time::ZERO + Dur::from_ms(40));
    let before = net.ledger().bytes_placed();
    net.run_until(Time::ZERO + Dur::from_ms(60));
    let ideal = TEN_GIG.bytes_in(Dur::from_ms(20)).0 * 1024 / (1024 + 62);
    let placed = net.ledger().bytes_placed() - before;
    assert!(placed * 1000 > ideal * 999, "{placed} of {ideal} B");
    assert!(samples(&net, 1).iter().all(|(_, _, rtt)| *rtt <= Dur::from_us(50)));
}

/// Patched TIMELY from C/N each: the mean round-trip time is T_low (1 + N delta / (beta C)) within
/// 15 % (specs/timely.md#5 has the queueing delay, without the 5 us of propagation), and all have
/// their share within 5 %.
#[test]
fn i11_patched_timely_settles_at_its_fixed_point() {
    for n in [2, 10] {
        let initial = Initial::At(Speed::Share(1.0 / n as f64));
        let rule = RuleConfig::Timely(Params { initial_rate: initial, ..Params::PATCHED });
        let config = Config { rule, ..Config::timely(1024) };
        let mut net = bottleneck(&vec![config; n + 1], 100_000);
        let half = Time::ZERO + Dur::from_ms(60);
        let keys: Vec<MsgKey> =
            (1..=n as u32).map(|h| net.submit(HostId(h), TO, UNBOUNDED)).collect();
        let placed = |net: &Net<Recorder>| -> Vec<u64> {
            keys.iter().map(|key| net.record(*key).placed.prefix()).collect()
        };
        net.run_until(half);
        let before = placed(&net);
        net.run_until(half + Dur::from_ms(60));
        let shares: Vec<u64> =
            placed(&net).iter().zip(before).map(|(after, b)| after - b).collect();
        let fair = shares.iter().sum::<u64>() / n as u64;
        assert!(shares.iter().all(|share| share.abs_diff(fair) * 20 <= fair), "{n}: {shares:?}");
        let late: Vec<u64> = (1..=n as u32)
            .flat_map(|host| samples(&net, host))
            .filter(|(at, ..)| *at > half)
            .map(|(_, _, rtt)| rtt.0)
            .collect();
        let mean = late.iter().sum::<u64>() as f64 / late.len() as f64 / 1e6;
        let expected = 50.0 * (1.0 + n as f64 * 10e6 / (0.008 * 10e9));
        assert!((mean / expected - 1.0).abs() < 0.15, "{n} flows: {mean} us, not {expected}");
    }
}

/// specs/timely.md#E1: two flows that begin with 7 and 3 Gb/s, a packet at a time, are still unfair
/// after 100 ms.
#[test]
fn i12_timely_by_packets_repairs_no_unfairness() {
    let config = |share| {
        let rule = RuleConfig::Timely(Params {
            initial_rate: Initial::At(Speed::Share(share)),
            ..Params::PAPER
        });
        Config { segment: Segment::Packet, ..Config { rule, ..Config::timely(1024) } }
    };
    let mut net = bottleneck(&[config(1.0), config(0.7), config(0.3)], 100_000);
    let keys = [1, 2].map(|h| net.submit(HostId(h), TO, UNBOUNDED));
    let placed = |net: &Net<Recorder>| keys.map(|key| net.record(key).placed.prefix());
    net.run_until(Time::ZERO + Dur::from_ms(100));
    let before = placed(&net);
    net.run_until(Time::ZERO + Dur::from_ms(110));
    let after = placed(&net);
    let [a, b] = [0, 1].map(|i| after[i] - before[i]);
    assert!(a * 2 > b * 3, "{a} and {b} bytes in 10 ms");
}

/// The numbers of the data packets sent, by the header.
fn sent(net: &Net) -> Vec<u32> {
    let data = net.log().iter().map(|s| Repr::parse(s.pkt.header()).unwrap());
    data.filter(|r| matches!(r.kind, Kind::Data(_))).map(|r| r.psn).collect()
}

fn naks(net: &Net) -> usize {
    let all = net.log().iter().map(|s| Repr::parse(s.pkt.header()).unwrap().kind);
    all.filter(|kind| matches!(kind, Kind::Ack(Ack { nak: true, .. }))).count()
}

/// A round trip is 4 us and two packets, so four more leave before the NAK is there.
#[test]
fn after_a_loss_go_back_n_goes_on_from_there_and_selective_recovery_repeats_one_packet() {
    let selective = Config { recovery: Recovery::Selective { reordering: 3 }, ..UNLIMITED };
    for config in [UNLIMITED, selective] {
        let mut net = net(config, 2);
        net.fault(fault::drop_data(HostId(1), &[5]));
        net.submit(HostId(1), TO, 30 * 1024);
        net.run_until_idle(Dur::from_ms(100));
        net.ledger().assert_all_done();
        let sent = sent(&net);
        let again = sent.iter().skip(6).position(|&psn| psn == 5).unwrap() + 6;
        assert_eq!(sent[..again], (0..again as u32).collect::<Vec<_>>());
        let after: Vec<u32> = match config.recovery {
            Recovery::GoBackN { .. } => (5..30).collect(),
            Recovery::Selective { .. } => std::iter::once(5).chain(again as u32..30).collect(),
        };
        assert_eq!(sent[again..], after);
        assert_eq!(net.stat(HostId(1), Stat::Timeout), 0);
        assert_eq!(naks(&net), usize::from(config == UNLIMITED), "each hole is named once");
    }
}

#[test]
fn a_lost_end_waits_for_the_timer() {
    for config in [UNLIMITED, Config::timely(1024)] {
        let mut net = net(config, 2);
        net.fault(fault::drop_data(HostId(1), &[9]));
        let key = net.submit(HostId(1), TO, 10 * 1024);
        net.run_until_idle(Dur::from_ms(100));
        assert_eq!(net.stat(HostId(1), Stat::Timeout), 1);
        let delivered = net.record(key).delivered.unwrap();
        assert!(delivered.since(Time::ZERO) >= config.rto.initial);
    }
}

/// A NAK that is lost is repeated after its interval, for as long as packets come.
#[test]
fn a_hole_is_named_again_after_the_interval() {
    let config =
        Config { recovery: Recovery::GoBackN { nack_interval: Dur::from_us(20) }, ..UNLIMITED };
    let mut net = net(config, 2);
    let mut lost = 0;
    net.fault(move |sent: &Sent| {
        let kind = Repr::parse(sent.pkt.header()).unwrap().kind;
        let nak = matches!(kind, Kind::Ack(Ack { nak: true, .. }));
        lost += u32::from(nak);
        if nak && lost <= 2 || sent.n == 3 { Verdict::Drop } else { Verdict::Pass }
    });
    net.submit(HostId(1), TO, 200 * 1024);
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    assert_eq!((naks(&net), net.stat(HostId(1), Stat::Timeout)), (3, 0));
}

/// At half of the line rate segments of 4 packets leave every 8 packet times; two flows take turns.
#[test]
fn segments_are_paced_and_released_in_order() {
    let half = Initial::At(Speed::Share(0.5));
    let rule = RuleConfig::Timely(Params {
        initial_rate: half,
        max_rate: Speed::Share(0.5),
        ..Params::PAPER
    });
    let config =
        Config { segment: Segment::Bytes(4 << 10), ..Config { rule, ..Config::timely(1024) } };
    let mut net = net(config, 3);
    net.submit(HostId(1), TO, 64 * 1024);
    net.submit(HostId(1), HostId(2), 64 * 1024);
    net.run_until_idle(Dur::from_ms(1));
    let data: Vec<&Sent> = net.log().iter().filter(|s| s.pkt.src == HostId(1)).collect();
    let packet = TEN_GIG.serialise(1024 + 62);
    for (n, sent) in (0..).zip(&data) {
        assert_eq!(sent.at, Time::ZERO + packet * n);
        assert_eq!(sent.pkt.dst, [TO, HostId(2)][(n / 4 % 2) as usize]);
    }
    assert_eq!(data.len(), 128);
}

/// What waits in the interface behind others is a part of the round-trip time, or not.
#[test]
fn waiting_in_the_interface_counts_if_so_chosen() {
    for count_nic_wait in [true, false] {
        let rule = RuleConfig::Timely(Params {
            initial_rate: Initial::At(Speed::Share(1.0)),
            ..Params::PAPER
        });
        let config = Config { count_nic_wait, rule, ..Config::timely(1024) };
        let mut net = bottleneck(&[config; 3], 1000);
        net.submit(HostId(1), TO, 16 << 10);
        net.submit(HostId(1), HostId(2), 16 << 10);
        net.run_until_idle(Dur::from_ms(1));
        let samples = samples(&net, 1);
        let second = samples.iter().find(|(_, id, _)| id.0 == 1).unwrap().2;
        let wait = if count_nic_wait { TEN_GIG.serialise(16 * (1024 + 62)) } else { Dur::ZERO };
        // Host 2 has no queue before it.
        assert_eq!(second, DELAY * 2 + TEN_GIG.serialise(66) + wait);
    }
}

/// specs/rdma.md#7: Swift's fabric delay is the fabric's: forty windows that fill their own host's
/// link see an idle fabric, and none of them shrinks.
#[test]
fn swift_does_not_take_its_own_interface_for_the_fabric() {
    let config = Config::swift(1024, swift::Params::PAPER);
    let mut net = bottleneck(&vec![config; 42], 1000);
    for to in 2..42 {
        net.submit(HostId(1), HostId(to), 256 << 10);
    }
    net.run_until(Time::ZERO + Dur::from_ms(5));
    // Other hosts than 0 have no queue before them.
    let base = DELAY * 2 + TEN_GIG.serialise(66);
    assert!(samples(&net, 1).iter().all(|(_, _, rtt)| *rtt == base));
    let flows = &net.endpoint(HostId(1)).inner.flows;
    assert!(flows.iter().all(|flow| flow.rule().window() > 15 * 1086 - 1), "grown, not shrunk");
}

/// Call an endpoint of host 0 by hand, for a packet that came at `rx_at` or for something else.
fn with_cx(rx_at: Time, now: Time, call: impl FnOnce(&mut Cx<'_>)) -> Vec<Effect> {
    let nics = [TEN_GIG];
    let routes = Star::new(1, Dur::from_us(10));
    let net = NetView {
        me: TO,
        nics: &nics,
        mtu: 9000,
        whole: true,
        lateness: Dur::ZERO,
        routes: &routes,
    };
    let mut fx = Effects::new();
    let draw = Draw::new(1, Purpose::new("bench"), 0);
    call(&mut Cx { now, rx_at, me: TO, room: u64::MAX, net: &net, draw, fx: &mut fx });
    fx.as_slice().to_vec()
}

/// Ask an endpoint for a packet while these classes are open.
fn poll(host: &mut Rdma, now: Time, open: u8) -> (Tx, Packet) {
    let (mut answer, mut slot) = (Tx::Idle, Packet::EMPTY);
    with_cx(now, now, |cx| answer = host.poll_tx(cx, TxPort { nic: 0, open }, &mut slot));
    (answer, slot)
}

/// Of packet 0, which is all that has come.
const ACK: Ack = Ack {
    nak: false,
    over: false,
    marked: false,
    messages: 0,
    cause: Some(-1),
    remote: 0,
    bitmap: None,
};

/// A control packet of host 1, about what is before packet 1.
fn from_peer(queue_pair: u32, kind: Kind) -> Packet {
    let mut packet = Packet { src: HostId(1), flags: Flags::CONTROL, ..Packet::EMPTY };
    put_header(&mut packet, Repr { queue_pair, psn: 1, kind }, None);
    packet
}

/// PFC: class 3 is data here, class 6 acknowledgements; a closed class holds back only its own
/// packets, and the time in which it is closed counts as round-trip time.
#[test]
fn a_paused_class_holds_back_its_own_packets() {
    let config = Config { class: 3, ack_class: 6, ..UNLIMITED };
    let mut host = Rdma::new(config).unwrap();
    let us = |n| Time::ZERO + Dur::from_us(n);
    with_cx(us(0), us(0), |cx| {
        host.on_submit(cx, &Msg::new(HostId(1), 1 << 20));
    });
    assert_eq!(poll(&mut host, us(0), !(1 << 3)).0, Tx::Idle);
    let kind = Kind::Cnp;
    let header = Repr { queue_pair: 1, psn: 0, kind };
    let control =
        Control { to: HostId(1), path: 0, header, msg: MsgId(0), since: us(0), telemetry: None };
    host.out.push(control);
    assert_eq!(poll(&mut host, us(1), !(1 << 6 | 1 << 3)).0, Tx::Idle);
    let (tx, sent) = poll(&mut host, us(1), !(1 << 3));
    assert_eq!((tx, sent.class), (Tx::Sent, 6));
    host.out.push(control);
    let (tx, sent) = poll(&mut host, us(2), !(1 << 6));
    assert_eq!((tx, sent.class, sent.span.len), (Tx::Sent, 3, 1024));
    let queue_pair = Repr::parse(sent.header()).unwrap().queue_pair;
    let answer = from_peer(queue_pair, Kind::Ack(ACK));
    let effects = with_cx(us(20), us(20), |cx| host.on_packet(cx, &answer));
    let rtt = Dur(us(20).0 - TEN_GIG.serialise(1086).0);
    assert!(effects.contains(&Effect::Rtt(MsgId(0), rtt)), "from 0 on, not from 2 us: {effects:?}");
}

/// A data packet from host 1 with these flags, as a receiver gets it.
fn data(psn: u32, flags: Flags, telemetry: Option<&int::Stack>) -> Packet {
    let data = Data {
        answers: false,
        part: Part::Only,
        ack: true,
        ends_message: false,
        ends_queue_pair: false,
        given_up: false,
    };
    let span = Span { msg: MsgId(0), offset: u64::from(psn) * 1024, len: 1024 };
    let mut packet = Packet { src: HostId(1), dst: TO, flags, span, ..Packet::EMPTY };
    put_header(&mut packet, Repr { queue_pair: 7, psn, kind: Kind::Data(data) }, telemetry);
    packet
}

/// The control packets with which `host` answers packets that come at these microseconds.
fn answers(host: &mut Rdma, packets: &[(u64, Packet)]) -> Vec<(u64, Repr, Packet)> {
    let mut all = Vec::new();
    for &(us, packet) in packets {
        let rx_at = Time::ZERO + Dur::from_us(us);
        let now = rx_at + Dur::from_us(3);
        with_cx(rx_at, now, |cx| host.on_packet(cx, &packet));
        while let (Tx::Sent, slot) = poll(host, now, u8::MAX) {
            all.push((us, Repr::parse(slot.header()).unwrap(), slot));
        }
    }
    all
}

/// specs/rdma.md#4, NP, and its invariant I6: one notification per 50 us and queue pair.
#[test]
fn i6_marked_packets_cause_one_notification_in_each_interval_and_are_echoed() {
    let mut host = Rdma::new(Config { cnp_interval: Some(Dur::from_us(50)), ..UNLIMITED }).unwrap();
    let ce = Flags::ECT.with(Flags::CE);
    let marks =
        [(0, ce), (10, Flags::ECT), (20, ce), (49, ce), (50, ce), (200, Flags::ECT), (201, ce)];
    let packets: Vec<(u64, Packet)> =
        (0..).zip(marks).map(|(psn, (us, flags))| (us, data(psn, flags, None))).collect();
    let answers = answers(&mut host, &packets);
    let at = |which: &dyn Fn(&Kind) -> bool| -> Vec<u64> {
        answers.iter().filter(|(_, repr, _)| which(&repr.kind)).map(|(us, ..)| *us).collect()
    };
    assert_eq!(at(&|kind| matches!(kind, Kind::Cnp)), [0, 50, 201]);
    let marked = |kind: &Kind| matches!(kind, Kind::Ack(Ack { marked: true, .. }));
    assert_eq!(at(&marked), [0, 20, 49, 50, 201]);
    assert!(answers.iter().all(|(_, repr, slot)| repr.queue_pair == 7 && slot.class == 7));
}

/// What switches wrote comes back as it was, in a packet that is so much longer, with the time that
/// the host took.
#[test]
fn telemetry_and_the_time_at_the_receiver_come_back() {
    let rule = RuleConfig::Unlimited;
    let config = Config { telemetry: true, overhead: 62 + 42, ..Config::roce(1024, rule) };
    let mut host = Rdma::new(config).unwrap();
    let mut stack = int::Stack::default();
    stack.push(int::Hop::new(TEN_GIG, Time::ZERO + Dur::from_us(9), 5_000, 800).unwrap());
    let answers = answers(&mut host, &[(0, data(0, Flags::ECT, Some(&stack)))]);
    let [(_, repr, slot)] = &answers[..] else { panic!("one acknowledgement") };
    assert_eq!(int::Stack::parse(slot.header()), Some(stack));
    assert_eq!((slot.wire_len, slot.hdr_len), (66 + 42, 22 + 42));
    let Kind::Ack(ack) = repr.kind else { panic!("{repr:?}") };
    assert_eq!((ack.remote, ack.cause, repr.psn), (3_000, Some(-1), 1));
}

/// specs/rdma.md#5: no priority for acknowledgements where windows limit what is in flight.
#[test]
fn acknowledgements_of_hpcc_are_in_the_class_of_data() {
    for params in [hpcc::Params::PAPER, hpcc::Params::SIMULATOR] {
        let config = Config::hpcc(1024, params);
        let answers = answers(&mut Rdma::new(config).unwrap(), &[(0, data(0, Flags::ECT, None))]);
        assert_eq!(answers[0].2.class, config.class);
    }
}

const READ: Config = Config { operation: Operation::Read, ..Config::timely(1024) };

#[test]
fn reading_conforms() {
    conforms(READ);
    conforms(Config { operation: Operation::Read, ..UNLIMITED });
}

/// An offer there, a request back, and then as if it were written: the requests of later segments
/// leave early enough.
#[test]
fn a_lone_read_takes_the_ideal_time_and_a_round_trip() {
    for len in [0, 1, 1024, 16 << 10, 100_000, 1_000_000] {
        let mut net = net(READ, 2);
        let key = net.submit(HostId(1), TO, len);
        net.run_until_idle(Dur::from_ms(100));
        let wire = len + len.div_ceil(1024).max(1) * 62;
        let round_trip = (TEN_GIG.serialise(66) + DELAY) * 2;
        let expected = Time::ZERO + round_trip + TEN_GIG.serialise(wire) + DELAY;
        assert_eq!(net.record(key).delivered, Some(expected), "{len} B");
    }
}

/// `nic_pacing` spaces the packets of a segment that is read, too, and the round-trip time has that
/// taken out.
#[test]
fn answers_are_paced_inside_segments() {
    let slow = Rate(1_000_000_000);
    let config = Config { nic_pacing: NicPacing::At(slow), ..READ };
    let mut net = bottleneck(&[config; 3], 1000);
    net.submit(TO, HostId(1), 16 << 10);
    net.run_until_idle(Dur::from_ms(100));
    let [(_, _, one)] = samples(&net, 1) else { panic!("one segment") };
    let mut net = self::net(config, 3);
    net.submit(TO, HostId(1), 16 << 10);
    net.submit(TO, HostId(2), 16 << 10);
    net.run_until_idle(Dur::from_ms(100));
    let data = |to| -> Vec<Time> {
        let data = net.log().iter().filter(|s| s.pkt.src == TO && s.pkt.span.len > 0);
        data.filter(|s| s.pkt.dst == HostId(to)).map(|s| s.at).collect()
    };
    for to in [1, 2] {
        let times = data(to);
        let gaps: Vec<Dur> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
        assert_eq!(gaps, vec![slow.serialise(1024 + 62); 15], "to {to}: beside the other");
    }
    // Both ways, and a request, which the switch sends once more; the segment's own time is taken
    // out.
    assert_eq!(*one, DELAY * 2 + TEN_GIG.serialise(66) * 2);
}

/// The reader slows down when its own queue grows: two owners, each of whom could fill its link.
#[test]
fn a_reader_holds_the_congestion_state() {
    let mut net = bottleneck(&[READ; 5], 100_000);
    for host in 1..5 {
        net.submit(HostId(host), TO, UNBOUNDED);
    }
    net.run_until(Time::ZERO + Dur::from_ms(10));
    let rates = |host| -> Vec<u64> {
        net.endpoint(HostId(host)).inner.flows.iter().map(|f| f.rule().rate().0).collect()
    };
    assert!((1..5).all(|host| rates(host).is_empty()), "owners have none");
    assert!(rates(0).len() == 4 && rates(0).iter().sum::<u64>() < 2 * TEN_GIG.0, "{:?}", rates(0));
    assert_eq!(net.dropped(), 0);
}

/// A rule whose deadline passes while its channel is idle catches up when the next message comes.
#[test]
fn an_idle_queue_pair_of_dcqcn_wakes_its_rule() {
    let mut host = Rdma::new(Config::dcqcn(1024, dcqcn::Params::PAPER)).unwrap();
    let us = |n| Time::ZERO + Dur::from_us(n);
    let submit = |host: &mut Rdma, at, id| {
        let msg = Msg { id: MsgId(id), channel: 1, ..Msg::new(HostId(1), 100) };
        with_cx(at, at, |cx| {
            host.on_submit(cx, &msg);
        })
    };
    submit(&mut host, us(0), 0);
    let (_, sent) = poll(&mut host, us(0), u8::MAX);
    let queue_pair = Repr::parse(sent.header()).unwrap().queue_pair;
    for (at, kind) in [(5, Kind::Cnp), (6, Kind::Ack(ACK))] {
        with_cx(us(at), us(at), |cx| host.on_packet(cx, &from_peer(queue_pair, kind)));
    }
    assert!(host.flows[0].stream.is_done() && host.flows[0].rule().rate() == Rate(TEN_GIG.0 / 2));
    let effects = submit(&mut host, us(10_000), 1);
    let early = |effect: &Effect| matches!(effect, Effect::Arm { at, .. } if *at <= us(10_000));
    assert!(!effects.iter().any(early), "{effects:?}");
    assert!(host.flows[0].rule().rate().0 > TEN_GIG.0 * 9 / 10, "as if it had been awake");
}

/// With a window far below a packet what is lost waits for much longer than the timeout before it
/// leaves again.
#[test]
fn what_waits_for_its_release_has_no_timeout() {
    let window = swift::Params { initial_window: 0.02, max_cwnd: 0.02, ..swift::Params::PAPER };
    let mut net = net(Config::swift(1024, window), 2);
    net.fault(fault::drop_data(HostId(1), &[5]));
    net.submit(HostId(1), TO, 20 * 1024);
    net.run_until_idle(Dur::from_ms(1000));
    net.ledger().assert_all_done();
    let stats = [Stat::Timeout, Stat::Retransmission].map(|stat| net.stat(HostId(1), stat));
    assert_eq!(stats, [1, 1]);
}

/// What a receiver has no room for is as good as lost, with either recovery.
#[test]
fn what_has_no_room_is_not_acknowledged() {
    let selective = Config { recovery: Recovery::Selective { reordering: 3 }, ..UNLIMITED };
    for config in [UNLIMITED, selective] {
        let mut net = net(lossy(config), 2);
        net.set_room(TO, 0);
        let key = net.submit(HostId(1), TO, 4 * 1024);
        net.run_until(Time::ZERO + Dur::from_us(100));
        let answers = net.log().iter().filter(|sent| sent.pkt.src == TO).count();
        assert_eq!(answers, naks(&net), "{config:?}: only what is missing is named");
        net.set_room(TO, u64::MAX);
        net.run_until_idle(Dur::from_ms(1000));
        assert!(net.record(key).delivered.is_some(), "{config:?}");
    }
}

/// Hosts that read and serve at once: requests take a little of what answers have, and answers
/// nothing of the rate.
#[test]
fn reading_both_ways_takes_as_long_as_writing() {
    let by_packet = Config { operation: Operation::Read, ..UNLIMITED };
    for read in [READ, by_packet] {
        let [read, written] =
            [read, Config { operation: Operation::Write, ..read }].map(|config| {
                let mut net = net(config, 2);
                let ways = [(1, 0), (0, 1)];
                let keys = ways.map(|(from, to)| net.submit(HostId(from), HostId(to), 4 << 20));
                net.run_until_idle(Dur::from_ms(100));
                keys.map(|key| net.record(key).delivered.unwrap().0).into_iter().max().unwrap()
            });
        assert!(read * 100 < written * 105, "{read} against {written} ps");
    }
}

/// A reader that has given a queue pair up says so: its owner reports no success, and uses another
/// one.
#[test]
fn what_a_reader_has_given_up_is_not_acknowledged() {
    for channel in [0, 1] {
        let mut net = net(Config { max_timeouts: 3, ..lossy(READ) }, 2);
        net.fault(|sent: &Sent| {
            let kind = Repr::parse(sent.pkt.header()).unwrap().kind;
            if matches!(kind, Kind::Data(_)) { Verdict::Drop } else { Verdict::Pass }
        });
        let lost = net.submit_on(HostId(1), TO, channel, 100_000);
        net.run_until_idle(Dur::from_ms(1000));
        let record = net.record(lost);
        assert!(record.failed.is_some() && record.acked.is_none(), "{channel}: {record:?}");
        net.heal();
        let next = net.submit_on(HostId(1), TO, channel, 100_000);
        net.run_until_idle(Dur::from_ms(1000));
        assert!(net.record(next).acked.is_some(), "{channel}");
    }
}

#[test]
fn impossible_sizes_and_times_are_refused() {
    let segment = Config { segment: Segment::Bytes(u32::MAX), ..Config::timely(256) };
    let timer = dcqcn::Params { alpha_timer: Dur(1), ..dcqcn::Params::PAPER };
    let silent = Config { overhead: 0, ..UNLIMITED };
    for (config, of) in
        [(segment, "segment"), (Config::dcqcn(1024, timer), "alpha_timer"), (silent, "overhead")]
    {
        let refused = Rdma::new(config).unwrap_err();
        assert!(refused.to_string().starts_with(&format!("{of} is ")), "{refused}");
        assert_eq!(refused.fields(), [of]);
    }
}
