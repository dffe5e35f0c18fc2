//! MPTCP and its family on the pair harness: the invariants of specs/mptcp.md#8, and the
//! conformance suite. 10 Gb/s, 5 us one way, segments of 1000 + 60 bytes, unless a test says
//! otherwise.

mod buffers;
mod faults;
mod phases;

use endpoint::{Draw, Endpoint, Purpose};
use testkit::{Link, Net, Sent, Verdict, conformance, fault};
use units::{Dur, HostId, Rate};

use super::*;
use crate::rto::RtoConfig;
use crate::tcp::tests::suite;
use crate::tcp::{RuleConfig, Tcp};

const A: HostId = HostId(0);
const B: HostId = HostId(1);
const MSS: u64 = 1000;
const LINK: Link =
    Link { rate: Rate(10_000_000_000), delay: Dur::from_us(5), mtu: 1500, paths: 4, hashed: true };

fn subflow() -> tcp::Config {
    let rto = RtoConfig {
        min: Dur::from_ms(1),
        max: Dur::from_ms(1_000),
        initial: Dur::from_ms(1),
        ack_ends_backoff: true,
        ..RtoConfig::RFC_6298
    };
    tcp::Config { overhead: 60, ack_bytes: 60, ..tcp::Config::textbook(MSS as u16, rto) }
}

/// MPTCP with `n` subflows, coupled by LIA.
fn mptcp(n: u32) -> Config {
    let rule = RuleConfig::Lia(tcp::rule::lia::Params::RFC);
    Config {
        tcp: tcp::Config { rule, ..subflow() },
        subflows: n,
        scatter: None,
        ..Config::mmptcp_infocom16(MSS as u16)
    }
}

fn mmptcp(n: u32, threshold: u64) -> Config {
    let switch = Some(Switch { on: SwitchOn::Bytes(threshold), postpone: false });
    let scatter = Some(Scatter { dup_threshold: ScatterThreshold::Paths, switch });
    Config { scatter, ..mptcp(n) }
}

fn packet_scatter() -> Config {
    let scatter = Some(Scatter { dup_threshold: ScatterThreshold::Paths, switch: None });
    Config { scatter, ..mptcp(1) }
}

/// A timer that never expires by itself.
fn patient(config: Config) -> Config {
    let rto = RtoConfig { min: Dur::from_ms(200), initial: Dur::from_ms(200), ..config.tcp.rto };
    Config { tcp: tcp::Config { rto, ..config.tcp }, ..config }
}

fn pair(config: Config, link: Link) -> Net<Mptcp> {
    let make = || Box::new(Mptcp::new(config).unwrap());
    Net::new(1, link, vec![make(), make()])
}

/// What a packet says of its connection.
fn signal(sent: &Sent) -> Signal {
    Signal::parse(sent.pkt.header()).unwrap()
}

fn is_syn(sent: &Sent) -> bool {
    Repr::parse(sent.pkt.header()).unwrap().control.has(Control::SYN)
}

/// Data packets of host A, by subflow.
fn data(net: &Net<Mptcp>) -> impl Iterator<Item = (u8, &Sent)> {
    let data = net.log().iter().filter(|s| s.pkt.src == A && s.pkt.carries_payload());
    data.map(|s| (signal(s).subflow, s))
}

fn timeouts(net: &Net<Mptcp>) -> u64 {
    net.stat(A, Stat::Timeout)
}

fn ms(n: u64) -> Time {
    Time::ZERO + Dur::from_ms(n)
}

fn conforms(config: Config) {
    conformance::run(|_| Box::new(Mptcp::new(config).unwrap()) as Box<dyn Endpoint>, suite());
}

#[test]
fn mptcp_conforms() {
    conforms(mptcp(1));
    conforms(mptcp(4));
}

#[test]
fn linux_conforms() {
    let config = Config::linux(MSS as u16);
    let rto = RtoConfig { initial: Dur::from_ms(1), min: Dur::from_ms(1), ..config.tcp.rto };
    let tcp = tcp::Config { rto, ..config.tcp };
    conforms(Config { tcp, receive_buffer: 20 * MSS, send_buffer: 40 * MSS, ..config });
}

#[test]
fn mmptcp_conforms() {
    conforms(mmptcp(3, 20_000));
    conforms(packet_scatter());
}

/// The first phase with what TCP has against reordering instead of the threshold from the paths.
#[test]
fn mmptcp_conforms_with_a_threshold_learnt_and_with_reductions_undone() {
    let config = mmptcp(2, 20 * MSS);
    let threshold = ScatterThreshold::Rr(tcp::rr::Params::PRESET);
    let scatter = config.scatter.map(|s| Scatter { dup_threshold: threshold, ..s });
    let recovery = tcp::Recovery::Sack;
    let rr = tcp::Config { recovery, dsack: true, undo: tcp::Undo::Dsack, ..config.tcp };
    let needs = Config { scatter, ..config }.check().unwrap_err().to_string();
    assert_eq!(needs, "dup_threshold rr needs dsack");
    conforms(Config { scatter, tcp: rr, ..config });
    let tcp = tcp::Config { timestamps: true, undo: tcp::Undo::Eifel, ..config.tcp };
    let scatter =
        config.scatter.map(|s| Scatter { dup_threshold: ScatterThreshold::Fixed(3), ..s });
    conforms(Config { scatter, tcp, ..config });
}

/// What a trace says of a packet, the option left out.
fn seen(sent: &Sent) -> (Time, HostId, u32, u16, Repr) {
    (
        sent.at,
        sent.pkt.src,
        sent.pkt.path,
        sent.pkt.wire_len,
        Repr::parse(sent.pkt.header()).unwrap(),
    )
}

fn trace(make: impl Fn() -> Box<dyn Endpoint>, seed: u64) -> Vec<(Time, HostId, u32, u16, Repr)> {
    let mut net = Net::new(seed, LINK, vec![make(), make()]);
    let mix =
        fault::Mix { drop: 0.03, delay: 0.05, late_max: Dur::from_us(40), ..fault::Mix::NONE };
    net.fault(fault::random(Draw::new(seed, Purpose::new("mptcp trace"), 0), mix));
    for (channel, len) in [(0, 300_000), (1, 40_000), (1, 0), (0, 1), (1, 77_777)] {
        net.submit_on(A, B, channel, len);
        net.submit_on(B, A, channel, len / 2);
        net.run_until(net.now() + Dur::from_us(300));
    }
    net.run_until_idle(Dur::from_ms(100_000));
    net.ledger().assert_all_done();
    net.log().iter().map(seen).collect()
}

/// I2: one subflow is a NewReno connection, packet for packet.
#[test]
fn i2_one_subflow_is_newreno() {
    for (seed, handshake) in [(1, false), (2, true), (3, false), (4, true)] {
        let config = tcp::Config { handshake, delayed_ack: Some(Dur::from_ms(1)), ..subflow() };
        let tcp = trace(|| Box::new(Tcp::new(config).unwrap()), seed);
        let rule = RuleConfig::Lia(tcp::rule::lia::Params::RFC);
        let config =
            Config { tcp: tcp::Config { rule, ..config }, handshake_sample: true, ..mptcp(1) };
        let one = trace(|| Box::new(Mptcp::new(config).unwrap()), seed);
        for (n, (a, b)) in tcp.iter().zip(&one).enumerate() {
            assert_eq!(a, b, "seed {seed}, packet {n}");
        }
        assert_eq!(tcp.len(), one.len());
    }
}

/// Bytes that a connection of `n` subflows coupled by `rule` gets through in 6 s, and a NewReno
/// flow with the same round trip and the same loss rate.
fn goodput(n: u32, rule: RuleConfig, seed: u64) -> [f64; 2] {
    let several = Config { tcp: tcp::Config { rule, ..mptcp(n).tcp }, ..mptcp(n) };
    let make = |config| Box::new(Mptcp::new(patient(config)).unwrap());
    let hosts = [several, mptcp(1), mptcp(1)].map(make);
    let mut net = Net::new(seed, Link { delay: Dur::from_us(500), ..LINK }, hosts.into());
    net.stop_logging();
    let mix = fault::Mix { drop: 0.0005, ..fault::Mix::NONE };
    net.fault(fault::random(Draw::new(seed, Purpose::new("loss"), 0), mix));
    let keys = [A, B].map(|from| net.submit(from, HostId(2), endpoint::UNBOUNDED));
    net.run_until(ms(6_000));
    keys.map(|key| net.record(key).placed.prefix() as f64)
}

/// What `n` subflows coupled by `rule` take, over what one flow takes; so many seeds.
fn share(n: u32, rule: RuleConfig, seeds: u64) -> f64 {
    let runs = (1..=seeds).map(|seed| goodput(n, rule, seed));
    let [several, one] = runs.fold([0.0; 2], |sum, run| [sum[0] + run[0], sum[1] + run[1]]);
    several / one
}

const LIA: RuleConfig = RuleConfig::Lia(tcp::rule::lia::Params::RFC);

/// I9: with LIA, two subflows take at most 1.1 times what one NewReno flow takes.
#[test]
fn i9_lia_takes_no_more_than_one_flow() {
    let two = share(2, LIA, 3);
    assert!(two > 1.0 && two < 1.1, "{two}");
}

/// Losses strike at random: then the windows of more subflows differ so much by chance that LIA's
/// alpha, which takes the largest for the best, makes that 1.2.
#[test]
fn i9_lia_with_four_subflows_takes_a_little_more() {
    let four = share(4, LIA, 3);
    assert!(four > 1.1 && four < 1.3, "{four}");
}

/// Uncoupled, two take twice as much.
#[test]
fn i9_without_lia_two_subflows_take_twice_as_much() {
    let uncoupled = share(2, RuleConfig::NewReno, 2);
    assert!(uncoupled > 1.9 && uncoupled < 2.1, "{uncoupled}");
}
