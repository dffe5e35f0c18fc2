//! The unit tests of the public hardware (specs/nanotransport.md#15.4; `rtt_pkts` is 2), and the
//! invariants of specs/homa-tr.md#7, on the programs of `p4/`.

use crate::shipped;

use endpoint::{Effect, Flags, Packet, Stat};
use shipped::{Bench, Data, HOMA_TR, compile, config};
use units::{Dur, MsgId};
use wire::nano::{Kind, Protocol, Repr};

const RTT: u16 = 2;

fn homa(constants: &[(&str, i128)]) -> Bench {
    Bench::new(&compile("homa.p4", constants), config(Protocol::Homa, RTT))
}

fn ndp() -> Bench {
    Bench::new(&compile("ndp.p4", &[]), config(Protocol::Ndp, RTT))
}

/// Packet `offset` of a message of `packets`.
const fn data(packets: u16, offset: u8) -> Data {
    Data { from: 1, tx_msg_id: 0, packets, offset, chop: false }
}

/// An answer, as the table of the specification writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// ACK(ackNo), of NDP ACK(index).
    Ack(u8),
    /// NACK(index, ackNo, no GRANT follows).
    Nack(u8, u16, bool),
    /// GRANT(grant offset, priority).
    Grant(u16, u8),
    /// NDP: ACK or NACK of an index, with a PULL up to an offset.
    Pulled(bool, u8, u16),
}

use Answer::{Ack, Grant, Nack, Pulled};

fn read(header: &Repr) -> Answer {
    let Repr { pkt_offset, credit, grant_prio, .. } = *header;
    match header.kind {
        Kind::Ack { pull: false } => Ack(pkt_offset),
        Kind::Ack { pull: true } => Pulled(true, pkt_offset, credit),
        Kind::Nack { pull: false } => Nack(pkt_offset, credit, grant_prio == 1),
        Kind::Nack { pull: true } => Pulled(false, pkt_offset, credit),
        Kind::Credit => Grant(credit, grant_prio),
        Kind::Data { .. } => panic!("a receiver sends no data: {header:?}"),
    }
}

fn answers(bench: &mut Bench, packet: Data) -> Vec<Answer> {
    bench.data(packet).iter().map(|(_, header)| read(header)).collect()
}

/// The answers to all packets of a message in order.
fn message(bench: &mut Bench, packets: u16) -> Vec<Answer> {
    (0..packets).flat_map(|i| answers(bench, data(packets, i as u8))).collect()
}

#[test]
fn homa_acknowledges_a_message_of_one_packet() {
    assert_eq!(message(&mut homa(&[]), 1), [Ack(1)]);
}

#[test]
fn homa_acknowledges_what_it_need_not_grant() {
    assert_eq!(message(&mut homa(&[]), 2), [Ack(1), Ack(2)]);
}

#[test]
fn homa_grants_a_packet_for_each_that_arrives() {
    assert_eq!(message(&mut homa(&[]), 4), [Grant(3, 1), Grant(4, 1), Ack(3), Ack(4)]);
}

#[test]
fn homa_tr_reports_a_chopped_packet() {
    let chop = Data { chop: true, ..data(4, 1) };
    let nack = homa(HOMA_TR).data(chop);
    let [(1, header)] = nack.as_slice() else { panic!("{nack:?}") };
    assert_eq!((header.kind, header.pkt_offset), (Kind::Nack { pull: false }, 1));
    assert_eq!(homa(&[]).data(chop), [], "Homa knows no such packet");
}

/// The short message gets priority 1, the long one's next GRANT priority 2.
#[test]
fn homa_puts_the_shorter_message_first() {
    let mut bench = homa(&[]);
    let (long, short) = (data(10, 0), Data { from: 2, ..data(4, 0) });
    assert_eq!(answers(&mut bench, long), [Grant(3, 1)]);
    assert_eq!(answers(&mut bench, short), [Grant(3, 1)]);
    let second = bench.data(data(10, 1));
    let [(1, header)] = second.as_slice() else { panic!("{second:?}") };
    assert_eq!(read(header), Grant(4, 2));
}

/// E1: the state of a message begins with its first packet, also if that is chopped, and not with
/// what the id's last message has left.
#[test]
fn e1_a_chopped_first_packet_begins_the_message() {
    let mut bench = homa(HOMA_TR);
    message(&mut bench, 6);
    let chop = |offset| Data { tx_msg_id: 1, chop: true, ..data(6, offset) };
    let whole = |offset| Data { chop: false, ..chop(offset) };
    assert_eq!(answers(&mut bench, chop(0)), [Nack(0, 0, false)]);
    assert_eq!(answers(&mut bench, whole(1)), [Grant(3, 1)]);
    assert_eq!(answers(&mut bench, whole(0)), [Grant(4, 1)]);
}

/// E2: a NACK says whether a GRANT will follow that the packet could leave with.
#[test]
fn e2_a_nack_after_the_last_grant_says_so() {
    let nack = |constants| {
        let mut bench = homa(constants);
        let packets: Vec<_> = (0..2).flat_map(|i| answers(&mut bench, data(4, i))).collect();
        assert_eq!(packets, [Grant(3, 1), Grant(4, 1)]);
        answers(&mut bench, Data { chop: true, ..data(4, 3) })
    };
    assert_eq!(nack(HOMA_TR), [Nack(3, 2, true)]);
    assert_eq!(nack(&[("TRIM", 1), ("STRICT_PAPER", 1)]), [Nack(3, 2, false)]);
}

/// E3: with `COUNT_CHOPS` a chopped packet lets another be granted.
#[test]
fn e3_chops_can_count() {
    let mut bench = homa(&[("TRIM", 1), ("COUNT_CHOPS", 1)]);
    let chop = Data { chop: true, ..data(6, 0) };
    assert_eq!(answers(&mut bench, chop), [Nack(0, 0, false), Grant(3, 1)]);
    assert_eq!(answers(&mut bench, data(6, 1)), [Grant(4, 1)]);
}

/// E5: sixteen messages have all the room; the next is told to wait.
#[test]
fn e5_without_room_the_sender_is_told_to_wait() {
    let mut bench = homa(&[]);
    for from in 1..=16 {
        assert_eq!(answers(&mut bench, Data { from, ..data(2, 0) }), [Ack(1)]);
    }
    assert_eq!(answers(&mut bench, Data { from: 17, ..data(2, 0) }), [Nack(0, 0, false)]);
    let mut bench = ndp();
    for from in 1..=16 {
        answers(&mut bench, Data { from, ..data(2, 0) });
    }
    assert_eq!(answers(&mut bench, Data { from: 17, ..data(2, 0) }), []);
}

/// E6: a complete message is acknowledged again and not begun anew.
#[test]
fn e6_duplicates_of_a_complete_message_are_acknowledged() {
    let mut bench = homa(HOMA_TR);
    message(&mut bench, 2);
    let delivered = bench.fx.as_slice().len();
    assert_eq!(answers(&mut bench, data(2, 0)), [Ack(2)]);
    assert_eq!(answers(&mut bench, Data { chop: true, ..data(2, 1) }), [Ack(2)]);
    let again = &bench.fx.as_slice()[delivered..];
    assert!(again.iter().all(|fx| !matches!(fx, Effect::Delivered(_))), "{again:?}");
    let mut bench = ndp();
    message(&mut bench, 1);
    assert_eq!(answers(&mut bench, data(1, 0)), [Ack(0)]);
}

/// E9: a duplicate of a message in flight gets what its sender should know.
#[test]
fn e9_duplicates_of_a_message_under_way_are_answered() {
    let mut bench = homa(&[]);
    assert_eq!(answers(&mut bench, data(6, 0)), [Grant(3, 1)]);
    assert_eq!(answers(&mut bench, data(6, 0)), [Grant(3, 1)]);
    let small = Data { tx_msg_id: 1, ..data(2, 0) };
    assert_eq!([answers(&mut bench, small), answers(&mut bench, small)], [[Ack(1)], [Ack(1)]]);
    let mut strict = homa(&[("STRICT_PAPER", 1)]);
    assert_eq!(answers(&mut strict, data(6, 0)), [Grant(3, 1)]);
    assert_eq!(answers(&mut strict, data(6, 0)), []);
}

/// specs/nanotransport.md#10: the pull offset grows with each packet that has arrived whole, a
/// duplicate included.
#[test]
fn ndp_pulls_a_packet_for_each_that_arrives_whole() {
    let mut bench = ndp();
    assert_eq!(answers(&mut bench, data(9, 0)), [Pulled(true, 0, 3)]);
    let chop = Data { chop: true, ..data(9, 1) };
    assert_eq!(answers(&mut bench, chop), [Pulled(false, 1, 3)]);
    assert_eq!(answers(&mut bench, data(9, 1)), [Pulled(true, 1, 4)]);
    assert_eq!(answers(&mut bench, data(9, 1)), [Pulled(true, 1, 5)]);
    let chopped_first = Data { tx_msg_id: 1, chop: true, ..data(9, 0) };
    assert_eq!(answers(&mut bench, chopped_first), [Pulled(false, 0, 2)]);
}

/// What names a message at its sender comes back as it was, and the contexts are swapped.
#[test]
fn answers_echo_what_names_the_message() {
    for mut bench in [ndp(), homa(&[])] {
        let sent = bench.data(Data { from: 5, tx_msg_id: 3, ..data(4, 0) });
        let [(5, header)] = sent.as_slice() else { panic!("{sent:?}") };
        let named = (header.tx_msg_id, header.buf_ptr, header.buf_size_class, header.msg_len);
        assert_eq!(named, (3, 3 * 608, 0, 4096));
        assert_eq!((header.src_context, header.dst_context), (0, 3));
    }
}

/// What is no ACK, NACK or GRANT acknowledges nothing: RESEND, BUSY, BOGUS and no flag at all.
#[test]
fn homa_takes_no_other_packet_for_an_acknowledgement() {
    const MSG: u64 = 7;
    for flags in [0x00, 0x20, 0x40, 0x80] {
        let mut bench = homa(HOMA_TR);
        assert_eq!(bench.submit(2, MSG, 1_000), []);
        bench.wait(Dur::from_ns(100));
        let [(2, sent)] = bench.departures()[..] else { panic!("one packet of data") };
        let ack = Repr {
            kind: Kind::Ack { pull: false },
            src_context: sent.dst_context,
            dst_context: sent.src_context,
            pkt_offset: 1,
            ..sent
        };
        bench.flagged(2, ack, flags);
        bench.wait(Dur::from_ns(100));
        bench.departures();
        let acked = |bench: &mut Bench| bench.fx.as_slice().contains(&Effect::Acked(MsgId(MSG)));
        assert!(!acked(&mut bench), "flags {flags:#04x}");
        bench.flagged(2, ack, wire::nano::flags::ACK);
        bench.wait(Dur::from_ns(100));
        bench.departures();
        assert!(acked(&mut bench), "the same with ACK");
    }
}

/// Of four packets two are sent. Whoever says that all have come is not believed beyond these.
#[test]
fn an_acknowledgement_of_what_was_never_sent_ends_nothing() {
    for (mut nic, indices) in [(homa(&[]), vec![4]), (ndp(), vec![0, 1, 2, 3])] {
        let sent = nic.submit(1, 0, 4 * 1024);
        assert_eq!(sent.len(), 0, "the way out takes its time");
        nic.wait(Dur::from_ns(100));
        let sent = nic.departures();
        assert_eq!(sent.len(), 2);
        let (_, data) = sent[0];
        for pkt_offset in indices {
            let kind = Kind::Ack { pull: false };
            let forged = Repr { kind, pkt_offset, src_context: 0, dst_context: 0, ..data };
            nic.packet(1, forged, Packet { flags: Flags::CONTROL, ..Packet::EMPTY });
        }
        let ended = |effect: &Effect| matches!(effect, Effect::Acked(_));
        assert!(!nic.fx.as_slice().iter().any(ended), "{:?}", nic.fx);
        assert!(nic.fx.as_slice().contains(&Effect::Count(Stat::Rejected)));
    }
}
