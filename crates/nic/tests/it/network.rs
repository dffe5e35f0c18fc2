//! NICs that talk to each other over the ideal network of `testkit`.

use crate::shipped;

use std::sync::Arc;

use endpoint::{Endpoint, FailReason, Packet};
use p4::ir;
use shipped::{HOMA_TR, compile, compile_changed, config, nic};
use testkit::{Link, Net};
use trimline_nic::nano::config::Config;
use units::{Dur, HostId, MsgKey, Rate, Time};
use wire::nano::{Header, Kind, Protocol, Repr};

const RATE: Rate = Rate(200_000_000_000);
const DELAY: Dur = Dur::from_ns(262);
const SINK: HostId = HostId(0);

fn network(program: &Arc<ir::Program>, config: &Config, hosts: u32) -> Net {
    let link = Link { rate: RATE, delay: DELAY, mtu: 1088, paths: 1, hashed: false };
    let endpoint = |_| Box::new(nic(program, config.clone())) as Box<dyn Endpoint>;
    Net::new(1, link, (0..hosts).map(endpoint).collect())
}

fn header(protocol: Protocol, pkt: &Packet) -> Repr {
    Repr::parse(&Header::new(protocol, pkt.header()).unwrap()).unwrap()
}

fn programs() -> [(Protocol, Arc<ir::Program>); 3] {
    [
        (Protocol::Ndp, compile("ndp.p4", &[])),
        (Protocol::Homa, compile("homa.p4", &[])),
        (Protocol::Homa, compile("homa.p4", HOMA_TR)),
    ]
}

/// A message that needs no credit takes the way out, its packets one after another, the link, and
/// the way in; its acknowledgement the same again. To the picosecond.
#[test]
fn a_lone_message_takes_exactly_the_way_there() {
    for (protocol, program) in programs() {
        for len in [0, 1, 1023, 1024, 1025, 9 * 1024] {
            let mut net = network(&program, &config(protocol, 9), 2);
            let key = net.submit(HostId(1), SINK, len);
            net.run_until_idle(Dur::from_ms(1));
            let full = len.max(1).div_ceil(1024) - 1;
            let last = RATE.serialise(64 + len.max(1) - full * 1024);
            let wire = Dur(full * RATE.serialise(1088).0) + last;
            let whole = Time(0) + Dur(3_750) + wire + DELAY + Dur(7_188);
            assert_eq!(net.record(key).delivered, Some(whole), "{len} bytes");
            let back = Dur(3_750) + RATE.serialise(65) + DELAY + Dur(7_188);
            // NDP acknowledges each packet; if the last one is shorter than a control packet takes,
            // its ACK waits for the one before.
            let acked = net.record(key).acked.unwrap();
            assert!(acked >= whole + back && acked <= whole + back + RATE.serialise(65), "{len}");
        }
    }
}

/// specs/nanotransport.md#15.4: ten messages of 32 to 14 packets; each ends with an ACK of all of
/// its packets.
#[test]
fn each_of_ten_messages_ends_with_an_ack_of_all() {
    let program = compile("homa.p4", &[]);
    let mut net = network(&program, &config(Protocol::Homa, 2), 11);
    let lens: Vec<u16> = (0..10).map(|i| 32 - 2 * i).collect();
    for (i, &packets) in lens.iter().enumerate() {
        net.submit(HostId(1 + i as u32), SINK, u64::from(packets) * 1024);
    }
    net.run_until_idle(Dur::from_ms(1));
    net.ledger().assert_all_done();
    for (i, &packets) in lens.iter().enumerate() {
        let to = |host| move |pkt: &&Packet| pkt.dst == HostId(host) && pkt.src == SINK;
        let sent = net.log().iter().map(|sent| &sent.pkt).filter(to(1 + i as u32));
        let last = sent.map(|pkt| header(Protocol::Homa, pkt)).next_back().unwrap();
        let expected = (Kind::Ack { pull: false }, packets as u8);
        assert_eq!((last.kind, last.pkt_offset), expected, "{packets} packets");
    }
}

/// specs/homa-tr.md#R3: where nothing is trimmed, Homa-Tr sends what Homa sends, byte for byte.
#[test]
fn r3_without_trimming_homa_tr_is_homa() {
    let trace = |constants| {
        let mut net = network(&compile("homa.p4", constants), &config(Protocol::Homa, 9), 11);
        for i in 0..10 {
            net.submit(HostId(1 + i), SINK, u64::from(20 + 2 * i) * 1024);
        }
        net.run_until_idle(Dur::from_ms(1));
        net.ledger().assert_all_done();
        let packets = net.log().iter().map(|sent| (sent.at, sent.pkt.hdr, sent.pkt.class));
        packets.collect::<Vec<_>>()
    };
    assert_eq!(trace(&[]), trace(HOMA_TR));
}

/// specs/homa-tr.md#R6: priorities of GRANTs are 1 to 3, and the packets that they permit bear
/// them.
#[test]
fn r6_grants_have_three_priorities_below_that_of_unscheduled_packets() {
    let mut net = network(&compile("homa.p4", &[]), &config(Protocol::Homa, 9), 6);
    for i in 0..5 {
        net.submit(HostId(1 + i), SINK, u64::from(30 + i) * 1024);
    }
    net.run_until_idle(Dur::from_ms(1));
    let mut seen = [0; 8];
    for sent in net.log() {
        let header = header(Protocol::Homa, &sent.pkt);
        match header.kind {
            Kind::Credit => assert!((1..=3).contains(&header.grant_prio), "{header:?}"),
            Kind::Data { .. } if header.pkt_offset < 9 => assert_eq!(sent.pkt.class, 7),
            Kind::Data { .. } => seen[usize::from(sent.pkt.class)] += 1,
            _ => assert_eq!(sent.pkt.class, 7),
        }
    }
    assert_eq!(seen[..4].iter().sum::<u32>() + seen[7], 0, "{seen:?}");
    assert!(seen[4..7].iter().all(|&n| n > 0), "{seen:?}");
}

/// No buffer can hold it: it fails at once and says so, and nothing is sent.
#[test]
fn a_message_longer_than_any_buffer_is_refused() {
    let mut net = network(&compile("ndp.p4", &[]), &config(Protocol::Ndp, 9), 2);
    let long: MsgKey = net.submit(HostId(1), SINK, 38_913);
    let fits = net.submit(HostId(1), SINK, 38_912);
    net.run_until_idle(Dur::from_ms(1));
    assert_eq!(net.record(long).failed, Some((Time(0), FailReason::Refused)));
    assert!(net.record(fits).acked.is_some());
}

/// More messages than the NIC has ids for wait for one.
#[test]
fn more_messages_than_ids_wait() {
    let mut net = network(&compile("homa.p4", &[]), &config(Protocol::Homa, 9), 2);
    for _ in 0..50 {
        net.submit(HostId(1), SINK, 3_000);
    }
    net.run_until_idle(Dur::from_ms(1));
    net.ledger().assert_all_done();
}

/// Packets are as long as their headers say, and the NIC compares that with the payload: a program
/// cannot send 1024 bytes in less time than they take.
#[test]
fn a_program_whose_lengths_are_wrong_sends_nothing() {
    for wrong in ["0", "HEADERS_LEN + segment - 1", "HEADERS_LEN + segment + 1"] {
        let program = compile_changed("window.p4", |text| {
            text.replacen("total_len = HEADERS_LEN + segment;", &format!("total_len = {wrong};"), 1)
        });
        let config = Config { protocols: vec![253], ..config(Protocol::Ndp, 9) };
        let mut net = network(&program, &config, 2);
        let key = net.submit(HostId(1), SINK, 20_000);
        net.run_until_idle(Dur::from_ms(1));
        assert_eq!(net.log().len(), 0, "{wrong}");
        assert!(matches!(net.record(key).failed, Some((_, FailReason::TimedOut))), "{wrong}");
    }
}
