//! The defects of the public code (specs/homa-tr.md#6: E1 to E7; docs/nic.md: E9 and the probe),
//! packet by packet. E8 is the switch's: crates/scenario/tests/it/homa_tr.rs. E6, in part:
//! `reassembly`.

use units::Dur;
use wire::nano::Kind;

use super::bench::{ACK, Bench, GRANT, NACK, data};
use crate::nano::{Config, Program};

fn homa_tr() -> Config {
    Config::firesim(Program::HomaTr)
}

/// As published, where the programs have that.
fn strict() -> Config {
    Config { strict_paper: true, probe: false, ..homa_tr() }
}

/// In a place where another message was before: all that is granted by itself is still to come.
#[test]
fn e1_a_chopped_first_packet_begins_the_message() {
    for config in [homa_tr(), strict()] {
        let mut nic = Bench::new(&config);
        let other = nic.packet(1, 1, 0, false);
        nic.call(|nic, cx| endpoint::Endpoint::on_packet(nic, cx, &other));
        nic.wait(Dur::from_ns(100));
        assert_eq!(nic.chopped(20, 0), [(NACK, 0, 0, 0)]);
        assert_eq!(nic.whole(20, 1), [(GRANT, 0, 10, 1)]);
        assert_eq!(nic.whole(20, 0), [(GRANT, 2, 11, 1)]);
    }
}

/// The NACK says that no GRANT follows, and the sender obeys it at once; what is sent again has
/// priority 1 at best.
#[test]
fn e2_what_is_chopped_last_is_sent_again_at_once() {
    for (config, prio) in [(homa_tr(), 1), (strict(), 0)] {
        let mut nic = Bench::new(&config);
        nic.whole(3, 0);
        assert_eq!(nic.chopped(3, 1), [(NACK, 1, 1, prio)]);
    }
    let mut nic = Bench::new(&homa_tr());
    nic.submit(0, 3);
    assert_eq!(data(&nic.wait(Dur::from_ns(100))), [(0, 0), (1, 0), (2, 0)]);
    assert_eq!(nic.hear((0, 0), (NACK, 1, 1, 1)), [(1, 1)]);
    assert_eq!(nic.hear((0, 0), (NACK, 2, 1, 0)), [], "a GRANT would follow");
    assert_eq!(nic.hear((0, 0), (GRANT, 1, 10, 2)), [(2, 2)], "and brings it along");
}

#[test]
fn e3_chopped_packets_may_make_room() {
    let mut nic = Bench::new(&Config { count_chops: true, ..homa_tr() });
    assert_eq!(nic.chopped(20, 0), [(NACK, 0, 0, 0), (GRANT, 0, 10, 1)]);
    assert_eq!(nic.chopped(20, 1), [(NACK, 1, 0, 0), (GRANT, 0, 11, 1)]);
    let mut nic = Bench::new(&homa_tr());
    assert_eq!(nic.chopped(20, 0), [(NACK, 0, 0, 0)]);
    assert_eq!(nic.chopped(20, 1), [(NACK, 1, 0, 0)]);
}

#[test]
fn e4_what_has_arrived_is_not_sent_again() {
    let mut nic = Bench::new(&homa_tr());
    nic.submit(0, 3);
    nic.wait(Dur::from_ns(100));
    assert_eq!(nic.hear((0, 0), (NACK, 0, 2, 1)), []);
    assert_eq!(nic.hear((0, 0), (NACK, 2, 2, 1)), [(2, 1)]);
}

/// Refused for want of room, a packet waits for its sender's timeout.
#[test]
fn e5_without_room_the_sender_waits_for_its_timeout() {
    let mut nic = Bench::new(&Config { rx_messages: 1, ..homa_tr() });
    nic.whole(2, 0);
    let other = nic.packet(1, 2, 1, false);
    nic.call(|nic, cx| endpoint::Endpoint::on_packet(nic, cx, &other));
    assert_eq!(super::bench::briefs(&nic.wait(Dur::from_ns(100))), [(NACK, 1, 0, 0)]);
    let mut nic = Bench::new(&homa_tr());
    nic.submit(0, 1);
    nic.wait(Dur::from_ns(100));
    assert_eq!(nic.hear((0, 0), (NACK, 0, 0, 0)), []);
    assert_eq!(data(&nic.wait(Dur::from_us(8))), [(0, 1)]);
}

#[test]
fn e6_duplicates_of_a_complete_message_are_acknowledged() {
    let mut nic = Bench::new(&homa_tr());
    for _ in 0..3 {
        assert_eq!(nic.whole(1, 0), [(ACK, 1, 0, 0)]);
        assert_eq!(nic.chopped(1, 0), [(ACK, 1, 0, 0)]);
    }
}

#[test]
fn e7_the_next_grant_replaces_a_lost_one() {
    let mut nic = Bench::new(&homa_tr());
    nic.submit(0, 12);
    assert_eq!(nic.wait(Dur::from_ns(100)).len(), 9);
    assert_eq!(nic.hear((0, 0), (GRANT, 2, 11, 2)), [(9, 2), (10, 2)]);
    assert_eq!(nic.hear((0, 0), (GRANT, 1, 10, 3)), [], "late, it permits nothing");
}

#[test]
fn e9_duplicates_of_a_message_under_way_are_answered() {
    let mut nic = Bench::new(&homa_tr());
    assert_eq!(nic.whole(20, 0), [(GRANT, 1, 10, 1)]);
    assert_eq!(nic.whole(20, 0), [(GRANT, 1, 10, 1)]);
    let mut nic = Bench::new(&homa_tr());
    assert_eq!(nic.whole(3, 0), [(ACK, 1, 0, 0)]);
    assert_eq!(nic.whole(3, 0), [(ACK, 1, 0, 0)]);
    let mut nic = Bench::new(&strict());
    nic.whole(20, 0);
    assert_eq!(nic.whole(20, 0), []);
}

/// All nine are acknowledged, and the GRANTs are lost: the second timeout asks with the tenth
/// packet.
#[test]
fn a_probe_asks_for_a_lost_grant() {
    for (config, expected) in [(homa_tr(), vec![(9, 1)]), (strict(), vec![])] {
        let mut nic = Bench::new(&config);
        nic.submit(0, 12);
        nic.wait(Dur::from_ns(100));
        assert_eq!(nic.hear((0, 0), (ACK, 9, 0, 0)), []);
        assert_eq!(data(&nic.wait(Dur::from_us(13))), [], "there has been progress");
        assert_eq!(data(&nic.wait(Dur::from_us(2))), expected);
    }
}

/// Of twelve packets nine are sent. Whoever says that all have come is not believed beyond these.
#[test]
fn an_acknowledgement_of_what_was_never_sent_ends_nothing() {
    let mut nic = Bench::new(&homa_tr());
    nic.submit(0, 12);
    assert_eq!(nic.wait(Dur::from_ns(100)).len(), 9);
    assert_eq!(nic.hear((0, 0), (ACK, 12, 0, 0)), []);
    assert_eq!(nic.hear((0, 0), (GRANT, 9, 12, 2)), [(9, 2), (10, 2), (11, 2)]);
    let mut nic = Bench::new(&Config::firesim(Program::Ndp));
    nic.submit(0, 12);
    assert_eq!(nic.wait(Dur::from_ns(100)).len(), 9);
    for packet in 0..12 {
        nic.hear((0, 0), (ACK, packet, 0, 0));
    }
    let pull = Kind::Nack { pull: true };
    assert_eq!(nic.hear((0, 0), (pull, 11, 12, 0)), [(9, 0), (10, 0), (11, 0)]);
}
