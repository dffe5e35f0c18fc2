//! The goldens of the prototype's own tests (specs/nanotransport.md#15.4), and others by hand:
//! packets go into one NIC, what it answers is read off.

use testkit::{Net, Sent, Verdict};
use units::{Dur, HostId};
use wire::nano::{Kind, Repr};

use super::{TO, controls, net};
use crate::nano::{Config, Program};

/// As in the prototype's tests: two packets to begin with.
fn two(program: Program) -> Config {
    Config { rtt_packets: 2, ..Config::firesim(program) }
}

/// What host 0 answers to messages of so many packets, in order: the type, pkt_offset, credit,
/// priority.
fn answers(config: &Config, messages: &[u64]) -> Vec<(Kind, u8, u16, u8)> {
    let mut net = net(config, messages.len() + 1);
    for (i, packets) in (1..).zip(messages) {
        net.submit(HostId(i), TO, packets * 1024);
    }
    finish(&mut net);
    let brief = |h: &Repr| (h.kind, h.pkt_offset, h.credit, h.grant_prio);
    controls(&net, config, TO).iter().map(|(_, header)| brief(header)).collect()
}

fn finish(net: &mut Net) {
    net.run_until_idle(Dur::from_ms(1));
    net.ledger().assert_all_done();
}

const ACK: Kind = Kind::Ack { pull: false };
const NACK: Kind = Kind::Nack { pull: false };
const GRANT: Kind = Kind::Credit;

#[test]
fn homa_acknowledges_what_needs_no_grant() {
    for program in [Program::Homa, Program::HomaTr] {
        assert_eq!(answers(&two(program), &[1]), [(ACK, 1, 0, 0)]);
        assert_eq!(answers(&two(program), &[2]), [(ACK, 1, 0, 0), (ACK, 2, 0, 0)]);
    }
}

#[test]
fn homa_grants_a_packet_for_each() {
    let expected = [(GRANT, 1, 3, 1), (GRANT, 2, 4, 1), (ACK, 3, 0, 0), (ACK, 4, 0, 0)];
    assert_eq!(answers(&two(Program::Homa), &[4]), expected);
    assert_eq!(answers(&two(Program::HomaTr), &[4]), expected);
}

#[test]
fn homa_tr_refuses_a_chopped_packet() {
    let config = two(Program::HomaTr);
    let mut net = net(&config, 2);
    net.fault(|sent: &Sent| match sent.n {
        1 => Verdict::Trim,
        _ => Verdict::Pass,
    });
    net.submit(HostId(1), TO, 4 * 1024);
    finish(&mut net);
    let headers: Vec<Repr> = controls(&net, &config, TO).iter().map(|(_, h)| *h).collect();
    assert_eq!((headers[1].kind, headers[1].pkt_offset, headers[1].credit), (NACK, 1, 1));
}

/// The long message has the lower number; the short one overtakes it as soon as it is known.
#[test]
fn homa_gives_the_shorter_message_the_higher_priority() {
    let grants: Vec<_> =
        answers(&two(Program::Homa), &[8, 4]).into_iter().filter(|a| a.0 == GRANT).collect();
    // Packets arrive in turn: long, short, long, short. The long one is alone when its first packet
    // comes.
    assert_eq!(
        grants[..4],
        [(GRANT, 1, 3, 1), (GRANT, 1, 3, 1), (GRANT, 2, 4, 2), (GRANT, 2, 4, 1)]
    );
}

#[test]
fn ten_homa_messages_of_14_to_32_packets_end_with_an_acknowledgement_of_all() {
    let packets: Vec<u64> = (0..10).map(|i| 32 - 2 * i).collect();
    let config = two(Program::Homa);
    let mut net = net(&config, 11);
    for (i, n) in (1..).zip(&packets) {
        net.submit(HostId(i), TO, n * 1024);
    }
    finish(&mut net);
    for (i, n) in (1..).zip(&packets) {
        let of = |s: &&Sent| s.pkt.dst == HostId(i);
        let last = net.log().iter().rfind(of).unwrap();
        let header = super::header(&config, &last.pkt);
        assert_eq!((header.kind, u64::from(header.pkt_offset)), (ACK, *n));
    }
}

/// specs/nanotransport.md#10: every packet has its ACK and a PULL for one more, also those for
/// which there is nothing more to send.
#[test]
fn ndp_pulls_with_every_acknowledgement() {
    let all = answers(&two(Program::Ndp), &[4]);
    let credits: Vec<u16> = all.iter().filter(|a| a.0 != ACK).map(|a| a.2).collect();
    assert_eq!(credits, [3, 4, 5, 6]);
    let acknowledged: Vec<u8> =
        all.iter().filter(|a| matches!(a.0, Kind::Ack { .. })).map(|a| a.1).collect();
    assert_eq!(acknowledged, [0, 1, 2, 3]);
}

#[test]
fn ndp_refuses_a_chopped_packet_without_credit_and_the_pull_sends_it_again() {
    let config = two(Program::Ndp);
    let mut net = net(&config, 2);
    net.fault(|sent: &Sent| match sent.n {
        0 => Verdict::Trim,
        _ => Verdict::Pass,
    });
    net.submit(HostId(1), TO, 2 * 1024);
    finish(&mut net);
    let headers = controls(&net, &config, TO);
    let refused = headers[0].1;
    assert_eq!(
        (refused.kind, refused.pkt_offset, refused.credit),
        (Kind::Nack { pull: true }, 0, 2)
    );
    assert_eq!(net.stat(HostId(1), endpoint::Stat::Retransmission), 1);
    assert_eq!(net.stat(HostId(1), endpoint::Stat::Timeout), 0);
}
