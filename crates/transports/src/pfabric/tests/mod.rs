//! The conformance suite, the ideal time of a lone message, and the rules of specs/pfabric.md#3.

use endpoint::Endpoint;
use testkit::conformance::{self, Opts};
use testkit::{Bottleneck, Link, Net, Sent, Verdict, fault};
use units::{Bytes, Dur, HostId, Rate, Time};
use wire::pfabric::{Kind, Repr};

use super::{Config, PFabric, PathStrategy};

const TEN_GIG: Rate = Rate(10_000_000_000);
const DELAY: Dur = Dur::from_us(2);
const TO: HostId = HostId(0);
/// Of a full packet here.
const PAYLOAD: u64 = 1460;

fn net(config: Config, hosts: usize) -> Net {
    let make = |_| Box::new(PFabric::new(config).unwrap()) as Box<dyn Endpoint>;
    let mtu = config.payload + config.header;
    let link = Link { rate: TEN_GIG, delay: DELAY, mtu, paths: 4, hashed: false };
    Net::new(1, link, (0..hosts).map(make).collect())
}

fn kind(sent: &Sent) -> Kind {
    Repr::parse(sent.pkt.header()).unwrap().kind
}

/// What `from` has sent of data: when, which packet, and how much was left.
fn data(net: &Net, from: u32) -> Vec<(Time, u64, u32)> {
    let sent = net.log().iter().filter(|sent| sent.pkt.src == HostId(from));
    let data = sent.filter_map(|sent| match kind(sent) {
        Kind::Data { seq, remaining, .. } => Some((sent.at, seq, remaining)),
        _ => None,
    });
    data.collect()
}

fn conforms(config: Config) {
    let opts = Opts {
        payload: Bytes(u64::from(config.payload)),
        window: Bytes(u64::from(config.initial_window) * u64::from(config.payload)),
        trims: false,
        bounces: false,
        hashed_paths: false,
        patience: Dur::from_ms(60_000),
    };
    conformance::run(|_| Box::new(PFabric::new(config).unwrap()) as Box<dyn Endpoint>, opts);
}

#[test]
fn the_values_of_the_paper_conform() {
    conforms(Config::paper(1500));
}

#[test]
fn the_values_beside_homa_conform() {
    conforms(Config { paths: PathStrategy::Single, ..Config::homa_paper(1460) });
}

/// When the last of `len` bytes is there, over one link and one store-and-forward switch.
fn arrival(config: &Config, len: u64) -> Time {
    let framing = config.framing();
    let (mut left, mut sent, mut arrived) = (len, Time::ZERO, Time::ZERO);
    loop {
        let payload = left.min(u64::from(framing.payload));
        let wire = TEN_GIG.serialise(payload + u64::from(framing.overhead));
        sent += wire;
        arrived = arrived.max(sent + DELAY) + wire;
        left -= payload;
        if left == 0 {
            return arrived;
        }
    }
}

/// The window is more than what fits into a round trip here.
#[test]
fn a_lone_message_takes_the_ideal_time() {
    let config = Config::homa_paper(PAYLOAD as u16);
    for packets in [0, 1, 2, 12, 13, 300] {
        for len in [packets * PAYLOAD, packets * PAYLOAD + 7] {
            let mut net = net(config, 2);
            net.set_bottleneck(TO, Bottleneck { rate: TEN_GIG, packets: 1000, trim: false });
            let key = net.submit(HostId(1), TO, len);
            net.run_until_idle(Dur::from_ms(100));
            assert_eq!(net.record(key).delivered.unwrap(), arrival(&config, len), "{len} B");
            assert_eq!(data(&net, 1).len() as u64, len.div_ceil(PAYLOAD).max(1));
        }
    }
}

#[test]
fn packets_say_how_much_of_their_message_is_not_acknowledged() {
    let mut net = net(Config::homa_paper(PAYLOAD as u16), 2);
    let len = 30 * PAYLOAD + 100;
    net.submit(HostId(1), TO, len);
    net.run_until_idle(Dur::from_ms(1));
    let acks: Vec<(Time, u64)> = net
        .log()
        .iter()
        .filter_map(|sent| match kind(sent) {
            Kind::Ack { missing, .. } => Some((sent.at, missing)),
            _ => None,
        })
        .collect();
    for (at, _, remaining) in data(&net, 1) {
        // An acknowledgement takes so long; nothing is lost, so all of them count.
        let arrived = |&&(sent, _): &&(Time, u64)| sent + TEN_GIG.serialise(40) + DELAY <= at;
        let acked = acks.iter().filter(arrived).map(|(_, missing)| *missing).max().unwrap_or(0);
        assert_eq!(u64::from(remaining), len - acked * PAYLOAD, "at {at}");
    }
    assert!(data(&net, 1).last().unwrap().2 < 13 * PAYLOAD as u32);
}

#[test]
fn nothing_but_the_timer_tells_of_a_loss_and_then_the_window_is_one_packet() {
    let config = Config::homa_paper(PAYLOAD as u16);
    let mut net = net(config, 2);
    net.fault(fault::drop_data(HostId(1), &[3]));
    let key = net.submit(HostId(1), TO, 40 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(1));
    net.ledger().assert_all_done();
    let sent = data(&net, 1);
    // Three have arrived; so far beyond the first that has not it may send.
    let first: Vec<u64> = sent.iter().map(|(_, seq, _)| *seq).take(15).collect();
    assert_eq!(first, (0..15).collect::<Vec<_>>());
    let (again, seq, remaining) = sent[15];
    assert_eq!((seq, u64::from(remaining)), (3, 26 * PAYLOAD), "14 of 40 have arrived");
    // Packet 2 has been sent and acknowledged: the last progress.
    let wire = TEN_GIG.serialise(1500);
    let progress = sent[2].0 + wire * 1 + DELAY + TEN_GIG.serialise(40) + DELAY;
    assert_eq!(again, progress + config.rto);
    // Its acknowledgement is for all: slow start goes on with two.
    let seqs: Vec<u64> = sent[16..].iter().map(|(_, seq, _)| *seq).collect();
    assert_eq!(seqs, (15..40).collect::<Vec<_>>());
    let answered = sent[16].0;
    let soon = sent[16..].iter().filter(|(at, ..)| at.since(answered) <= wire * 2).count();
    assert_eq!(soon, 2, "{key:?}: a window of two");
}

/// Five timeouts, then a probe each 24 us; and once something gets through, packets again.
#[test]
fn after_five_timeouts_in_a_row_it_asks_without_payload() {
    let config = Config::homa_paper(PAYLOAD as u16);
    let mut net = net(config, 2);
    let until = Time::ZERO + Dur::from_us(300);
    net.fault(move |sent: &Sent| match sent.at < until {
        true => Verdict::Drop,
        false => Verdict::Pass,
    });
    net.submit(HostId(1), TO, 20 * PAYLOAD);
    net.run_until_idle(Dur::from_ms(1));
    net.ledger().assert_all_done();
    let probes: Vec<&Sent> =
        net.log().iter().filter(|sent| matches!(kind(sent), Kind::Probe { .. })).collect();
    let full = data(&net, 1);
    let before: Vec<u64> =
        full.iter().filter(|(at, ..)| *at < until).map(|(_, seq, _)| *seq).collect();
    assert_eq!(before, [(0..12).collect(), vec![0; 4]].concat(), "a window, then one at a time");
    assert_eq!(probes[0].at, full[15].0 + config.rto, "the fifth timeout");
    assert!(probes.windows(2).all(|pair| pair[1].at.since(pair[0].at) == config.rto));
    let heard: Vec<_> = probes.iter().filter(|probe| probe.at >= until).collect();
    assert_eq!(heard.len(), 1, "the first that arrives is answered");
    assert!(probes.iter().all(|probe| probe.pkt.wire_len == config.control));
    assert!(matches!(kind(probes[0]), Kind::Probe { remaining: 29_200, seq: 0, .. }));
    let (first, seq, _) = full[16];
    assert_eq!(seq, 0);
    let round = (TEN_GIG.serialise(40) + DELAY) * 2;
    assert!(first.since(heard[0].at) <= round + DELAY * 2, "as soon as the answer is there");
}

#[test]
fn the_message_with_less_left_goes_first() {
    let mut net = net(Config::homa_paper(PAYLOAD as u16), 3);
    let long = net.submit(HostId(1), HostId(0), 3_000_000);
    net.run_until(Time::ZERO + Dur::from_us(500));
    let start = net.now();
    let short = net.submit(HostId(1), HostId(2), 150_000);
    net.run_until_idle(Dur::from_ms(100));
    let done = |key| net.record(key).delivered.unwrap();
    assert!(done(short) < done(long));
    let alone = arrival(&Config::homa_paper(PAYLOAD as u16), 150_000);
    let took = done(short).since(start);
    assert!(took.0 < alone.0 + 2 * TEN_GIG.serialise(1500).0, "{took}");
}

#[test]
fn a_cancelled_message_is_over_at_both_ends() {
    let mut net = net(Config::homa_paper(PAYLOAD as u16), 2);
    let key = net.submit(HostId(1), TO, 90_000_000);
    net.run_until(Time::ZERO + Dur::from_us(500));
    net.cancel(key);
    let cancelled = net.now();
    net.run_until_idle(Dur::from_ms(1));
    assert!(data(&net, 1).iter().all(|(at, ..)| *at <= cancelled));
    let ends = net.log().iter().filter(|sent| matches!(kind(sent), Kind::End)).count();
    assert_eq!(ends, 1);
}
