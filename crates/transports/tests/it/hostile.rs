//! Every kind of endpoint on drawn networks ([`testkit::hostile`]): a few seeds here, as many as
//! `TRIMLINE_HOSTILE_SEEDS` says elsewhere, from `TRIMLINE_HOSTILE_FIRST` on.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use endpoint::{Cx, Draw, Effects, Endpoint, Flags, MsgId, NetView, Packet, Purpose, Span, Stat};
use testkit::hostile::{self, Subject};
use testkit::{Link, Net, Sent, Star, Verdict, conformance};
use trimline_transports::{ndp, phost, tcp};
use units::{Dur, HostId, Rate, Time};

use crate::subjects;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Try each kind with each seed, and then say which have failed.
fn try_all(run: impl Fn(&Subject<'_>, u64)) {
    let first = number("TRIMLINE_HOSTILE_FIRST", 1);
    let seeds = first..first + number("TRIMLINE_HOSTILE_SEEDS", 20);
    let mut failed = Vec::new();
    subjects::each(|subject| {
        for seed in seeds.clone() {
            if catch_unwind(AssertUnwindSafe(|| run(subject, seed))).is_err() {
                failed.push(format!("{} {seed}", subject.name));
            }
        }
    });
    assert!(failed.is_empty(), "{} runs failed: {failed:?}", failed.len());
}

/// By how many bytes the heap of this thread grows.
fn growth(run: &mut dyn FnMut()) -> u64 {
    let mut result = Ok(());
    // The counter does not survive a panic.
    let count = allocation_counter::measure(|| result = catch_unwind(AssertUnwindSafe(&mut *run)));
    result.unwrap_or_else(|panic| resume_unwind(panic));
    u64::try_from(count.bytes_current).unwrap_or(0)
}

#[test]
fn honest_networks_deliver_everything_once() {
    try_all(|subject, seed| {
        let digest = hostile::honest(subject, seed);
        println!("digest {} {seed} {digest:016x}", subject.name);
    });
}

#[test]
fn no_altered_packet_makes_an_endpoint_panic_grow_or_lie() {
    try_all(|subject, seed| {
        hostile::altered(subject, seed, growth);
    });
}

/// A receiver refuses messages of which it has no byte when they are too many, and their honest
/// sender repeats what it sent of them.
#[test]
fn more_messages_than_may_be_bare_all_arrive() {
    subjects::each(|subject| {
        // With so many messages that wait, a pHost sender's link is full of REQs, which it repeats
        // every 32 packet times, whatever the receiver does.
        if subject.endless || subject.name == "phost" {
            return;
        }
        let opts = subject.opts;
        let mut net = conformance::net(subject.make, opts, 1);
        net.stop_logging();
        let is_cut = |sent: &Sent| sent.at < Time::ZERO + Dur::from_us(2_000);
        if opts.trims {
            net.fault(move |sent| if is_cut(sent) { Verdict::Trim } else { Verdict::Pass });
        }
        for _ in 0..1_500 {
            net.submit(HostId(0), HostId(1), opts.payload.0 + 1);
        }
        net.run_until_idle(opts.patience);
        net.ledger().assert_all_done();
        println!("{}: {} rejected", subject.name, net.stat(HostId(1), Stat::Rejected));
    });
}

/// By how many bytes `endpoint`, and what it wants done, grows with packets of host 1, all at one
/// time; and how many of them it rejects.
fn flooded(mut endpoint: impl Endpoint, count: u64, packet: impl Fn(u64) -> Packet) -> (u64, u64) {
    let me = HostId(0);
    let routes = Star::new(4, Dur::from_us(20));
    let net = NetView {
        me,
        nics: &[Rate(10_000_000_000)],
        mtu: 9064,
        whole: true,
        lateness: Dur::ZERO,
        routes: &routes,
    };
    let draw = Draw::new(1, Purpose::new("hostile host"), 0);
    let (mut fx, mut rejected, now) = (Effects::new(), 0, Time::ZERO);
    let held = growth(&mut || {
        for n in 0..count {
            let mut cx = Cx { now, rx_at: now, me, room: u64::MAX, net: &net, draw, fx: &mut fx };
            endpoint.on_packet(&mut cx, &packet(n));
            let no = |effect: &&_| **effect == endpoint::Effect::Count(Stat::Rejected);
            rejected += fx.as_slice().iter().filter(no).count() as u64;
            fx.clear();
        }
    });
    (held, rejected)
}

fn ndp_data(n: u64, seq: u32, flags: Flags) -> Packet {
    let kind = wire::ndp::Kind::Data(wire::ndp::Data {
        seq,
        syn: true,
        last: false,
        retransmission: false,
        chopped: false,
        prio: 0,
        len: 9000,
        pacer_echo: None,
    });
    let header = wire::ndp::Repr { connection: n, kind }.to_bytes();
    let span = Span { msg: MsgId(n), offset: u64::from(seq) * 9000, len: 9000 };
    let (src, proto, hdr_len) = (HostId(1), wire::ndp::PROTOCOL, header.len() as u8);
    let mut pkt = Packet { src, proto, flags, span, hdr_len, wire_len: 9064, ..Packet::EMPTY };
    pkt.hdr[..header.len()].copy_from_slice(&header);
    pkt
}

/// 72 bytes claimed 128 KiB: data that said that it was control, with a number far ahead.
#[test]
fn a_number_far_ahead_claims_no_memory_at_an_ndp_receiver() {
    let host = || ndp::Ndp::new(ndp::Config::paper(9000)).unwrap();
    let far = (1 << 20) - 1;
    let (held, rejected) = flooded(host(), 1000, |n| ndp_data(n, far, Flags::CONTROL));
    assert_eq!(rejected, 1000, "data is no control packet");
    assert!(held < 1 << 10, "{held} bytes");
    let (held, _) = flooded(host(), 1000, |n| ndp_data(n, far, Flags(0)));
    assert!(held < 1000 << 10, "{held} bytes for data that came");
    let (held, rejected) = flooded(host(), 1000, |n| ndp_data(n, 4000, Flags(0)));
    assert!(rejected == 0 && held < 2000 << 10, "{held} bytes for data that came");
}

/// Without a handshake, any segment opens a connection.
#[test]
fn a_flood_of_segments_opens_a_bounded_number_of_connections() {
    let segment = |n: u64| {
        let header = wire::tcp::Repr {
            src_port: 0x8000 | (n >> 15) as u16,
            dst_port: (n & 0x7fff) as u16,
            seq: 1,
            ack: 0,
            control: wire::tcp::Control::ACK,
            window: 0,
            sack: wire::tcp::SackBlocks::NONE,
            timestamps: None,
        };
        let span = Span { msg: MsgId(n), offset: 1, len: 1 };
        let (src, proto) = (HostId(1), wire::tcp::PROTO);
        let mut pkt = Packet { src, proto, span, wire_len: 41, ..Packet::EMPTY };
        header.emit(&mut pkt.hdr).unwrap();
        pkt.hdr_len = header.buffer_len() as u8;
        pkt
    };
    let host = tcp::Tcp::new(tcp::Config::linux_datacenter(1000)).unwrap();
    let (held, rejected) = flooded(host, 100_000, segment);
    assert_eq!(rejected, 100_000 - (1 << 16), "65536 of one peer");
    assert!(held < 64 << 20, "{held} bytes");
}

/// A receiver gives no tokens while it waits for what comes on free ones: an hour, for one REQ.
#[test]
fn a_request_with_countless_free_tokens_does_not_stop_a_phost_receiver() {
    let config = phost::Config::ndp_paper(1000);
    let make = || Box::new(phost::PHost::new(config).unwrap()) as Box<dyn Endpoint>;
    let (rate, delay) = (Rate(10_000_000_000), Dur::from_us(2));
    let link = Link { rate, delay, mtu: 1064, paths: 1, hashed: false };
    let mut net = Net::new(1, link, vec![make(), make(), make()]);
    net.tamper(|_| {});
    let kind = wire::phost::Kind::Req { size: 1, free: u32::MAX };
    let header = wire::phost::Repr { message: 7, kind }.to_bytes();
    let (src, flags, proto) = (HostId(1), Flags::CONTROL, wire::phost::PROTO);
    let hdr_len = header.len() as u8;
    let mut pkt = Packet { src, flags, proto, hdr_len, wire_len: 64, ..Packet::EMPTY };
    pkt.hdr[..header.len()].copy_from_slice(&header);
    let key = net.submit(HostId(2), HostId(0), 1_000_000);
    net.run_until(Time::ZERO + Dur::from_us(50));
    net.inject(pkt);
    net.run_until(Time::ZERO + Dur::from_ms(1_000));
    assert!(net.record(key).acked.is_some());
}
