//! Invariants of specs/nanotransport.md#16 (N), and of specs/homa-tr.md#7 (R), on packets. N2 and
//! N11: `reassembly`; N7: `conformance`; N10: `clock`. N1 and N12 are of the cycles within a
//! pipeline, which is not modelled.

use std::collections::{BTreeMap, BTreeSet};

use endpoint::{Draw, Endpoint, Purpose, Stat, Submit};
use testkit::{Bottleneck, Net, Sent, Verdict};
use units::{Dur, HostId};
use wire::nano::{Kind, Repr};

use super::bench::{ACK, Bench, GRANT, NACK, briefs, data};
use super::{LINK, TO, controls, header, net};
use crate::nano::{Config, Program};

const DRAW: Purpose = Purpose::new("nano invariants");

fn homa_tr() -> Config {
    Config::firesim(Program::HomaTr)
}

/// Whether packet `n` of a run is struck, with `percent`.
fn struck(n: u64, percent: u64) -> bool {
    Draw::new(3, DRAW, 0).below(DRAW, n, 100) < percent
}

/// Messages of 20, 22, ... packets of `senders` hosts to one, under `rule`.
fn incast(config: &Config, senders: u32, rule: impl FnMut(&Sent) -> Verdict + 'static) -> Net {
    let mut net = net(config, senders as usize + 1);
    net.fault(rule);
    for i in 0..senders {
        net.submit(HostId(1 + i), TO, u64::from(20 + 2 * i) * 1024);
    }
    net.run_until_idle(Dur::from_ms(1));
    net
}

fn is_data(sent: &Sent) -> bool {
    sent.pkt.carries_payload()
}

fn trim(percent: u64) -> impl Fn(&Sent) -> Verdict {
    move |sent| match is_data(sent) && struck(sent.n, percent) {
        true => Verdict::Trim,
        false => Verdict::Pass,
    }
}

fn timeouts(net: &Net, hosts: u32) -> u64 {
    (0..hosts).map(|host| net.stat(HostId(host), Stat::Timeout)).sum()
}

/// One NACK for each chopped packet, of its index; one GRANT or ACK for each other new one, and an
/// ACK besides for the last.
#[test]
fn r2_each_packet_has_one_answer() {
    let mut nic = Bench::new(&homa_tr());
    let mut left: Vec<(u16, u16, Vec<u8>)> =
        (0..12).map(|message| (message, 38 - message, (0..38 - message as u8).collect())).collect();
    let draw = Draw::new(5, DRAW, 0);
    for n in 0..u64::MAX {
        if left.is_empty() {
            break;
        }
        let at = draw.below(DRAW, 3 * n, left.len() as u64) as usize;
        let (message, packets, missing) = &mut left[at];
        let chosen = draw.below(DRAW, 3 * n + 1, missing.len() as u64) as usize;
        let (index, chopped) = (missing[chosen], draw.below(DRAW, 3 * n + 2, 4) == 0);
        let pkt = nic.packet(*message, *packets, index, chopped);
        nic.call(|nic, cx| nic.on_packet(cx, &pkt));
        let answers = briefs(&nic.wait(Dur::from_ns(40)));
        if chopped {
            assert!(matches!(answers[..], [(NACK, i, ..)] if i == index), "{answers:?}");
            continue;
        }
        missing.remove(chosen);
        let last = missing.is_empty();
        match answers[..] {
            [(ACK, ..)] => {}
            [(GRANT, ..)] => assert!(!last),
            [(ACK, all, ..), (GRANT, ..)] => assert!(last && u16::from(all) == *packets),
            _ => panic!("{answers:?}"),
        }
        if last {
            left.remove(at);
        }
    }
}

/// Without trims Homa-Tr is Homa.
#[test]
fn r3_without_trims_homa_tr_is_homa() {
    let trace = |program| {
        let net = incast(&Config::firesim(program), 10, |_| Verdict::Pass);
        net.ledger().assert_all_done();
        net.log().iter().map(|s| (s.at, s.pkt.hdr, s.pkt.class, s.pkt.dst)).collect::<Vec<_>>()
    };
    assert_eq!(trace(Program::Homa), trace(Program::HomaTr));
}

/// Also as published: packets are chopped while their messages are granted, and whole ones come
/// after them.
#[test]
fn r4_while_a_message_is_granted_no_timeout_repairs_it() {
    for config in [homa_tr(), Config { strict_paper: true, probe: false, ..homa_tr() }] {
        let mut sent_before = BTreeSet::new();
        let read = config.clone();
        let net = incast(&config, 3, move |sent: &Sent| {
            let offset = header(&read, &sent.pkt).pkt_offset;
            let first = is_data(sent) && sent_before.insert((sent.pkt.src, offset));
            if first && offset < 9 && offset % 3 == 1 { Verdict::Trim } else { Verdict::Pass }
        });
        net.ledger().assert_all_done();
        let refused = controls(&net, &config, TO).iter().filter(|(_, h)| h.kind == NACK).count();
        assert_eq!((refused, timeouts(&net, 4)), (9, 0));
    }
}

/// R2 and R5 in a network: as many NACKs as chopped packets, and of each message every packet comes
/// whole once.
#[test]
fn r5_whole_packets_are_as_many_as_the_message_has() {
    let config = homa_tr();
    let net = incast(&config, 3, trim(20));
    net.ledger().assert_all_done();
    assert_eq!(timeouts(&net, 4), 0, "so nothing is sent twice for nothing");
    let (mut whole, mut chopped) = (BTreeMap::new(), 0);
    for sent in net.log().iter().filter(|sent| is_data(sent)) {
        match trim(20)(sent) {
            Verdict::Trim => chopped += 1,
            _ => *whole.entry(sent.pkt.src.0).or_insert(0) += sent.pkt.span.len,
        }
    }
    let expected = BTreeMap::from([1, 2, 3].map(|i| (i, (18 + 2 * i) * 1024)));
    assert_eq!(whole, expected);
    let refused = controls(&net, &config, TO).iter().filter(|(_, h)| h.kind == NACK).count();
    assert!(refused == chopped && chopped > 8, "{chopped}");
}

/// GRANTs have priorities 1 to 3 with K = 3, and never more than three messages have one each that
/// is better than 4; the packets that they permit have classes below that of first packets.
#[test]
fn r6_grants_have_as_many_priorities_as_messages_are_granted() {
    for overcommitment in [1, 3, 5] {
        let config = Config { overcommitment, ..homa_tr() };
        let net = incast(&config, 8, |_| Verdict::Pass);
        net.ledger().assert_all_done();
        let grants = controls(&net, &config, TO).into_iter().filter(|(_, h)| h.kind == GRANT);
        let levels: BTreeSet<u8> = grants.map(|(_, h)| h.grant_prio).collect();
        assert_eq!(levels, (1..=overcommitment).collect());
        for sent in net.log().iter().filter(|sent| is_data(sent)) {
            let scheduled = header(&config, &sent.pkt).pkt_offset >= 9;
            assert!(sent.pkt.class == 7 && !scheduled || sent.pkt.class < 7 && scheduled);
        }
    }
}

/// A tx id is in use from submission to the last ACK; the lowest free one comes next.
#[test]
fn n3_ids_are_free_when_messages_are_over() {
    let mut nic = Bench::new(&homa_tr());
    for id in 0..16 {
        assert_eq!(nic.submit(id, 1), Submit::Taken);
    }
    assert_eq!(nic.submit(16, 1), Submit::Full);
    let sent = nic.wait(Dur::from_ns(100));
    assert_eq!(
        sent.iter().map(|out| out.header.tx_msg_id).collect::<Vec<_>>(),
        Vec::from_iter(0..16)
    );
    nic.hear((9, 9), (ACK, 1, 0, 0));
    nic.hear((5, 5), (ACK, 1, 0, 0));
    assert_eq!(nic.submit(17, 1), Submit::Taken);
    assert_eq!(nic.wait(Dur::from_ns(100))[0].header.tx_msg_id, 5);
}

/// Under loss and trims, with every program: what is sent for the first time is below the credit
/// (what needs none, or the greatest that any control packet has brought). No probes.
#[test]
fn n4_what_is_sent_has_credit() {
    for program in super::PROGRAMS {
        // Without probes a message whose last credit is lost ends at its fifth timeout.
        let config = Config { probe: false, ..Config::firesim(program) };
        let net = incast(&config, 10, |sent| match sent.n % 19 {
            3 => Verdict::Drop,
            7 if is_data(sent) => Verdict::Trim,
            _ => Verdict::Pass,
        });
        let (mut credit, mut before, mut data) = (BTreeMap::new(), BTreeSet::new(), 0);
        for sent in net.log() {
            let Repr { kind, pkt_offset, credit: offered, .. } = header(&config, &sent.pkt);
            if let Kind::Data { .. } = kind {
                let credit = credit.get(&sent.pkt.src).copied().unwrap_or(9);
                let again = !before.insert((sent.pkt.src, pkt_offset));
                assert!(again || u16::from(pkt_offset) < credit, "{program:?}: {sent:?}");
                data += 1;
            } else if !matches!(kind, NACK) || program == Program::Ndp {
                let credit = credit.entry(sent.pkt.dst).or_insert(9);
                *credit = offered.max(*credit);
            }
        }
        assert!(data > 150, "{program:?}: {data}");
    }
}

/// N5: a packet that is refused twice before a GRANT comes, or waits already, leaves once.
#[test]
fn n5_what_waits_is_not_queued_again() {
    let mut nic = Bench::new(&homa_tr());
    nic.submit(0, 12);
    nic.wait(Dur::from_ns(100));
    assert_eq!(nic.hear((0, 0), (NACK, 2, 0, 0)), []);
    assert_eq!(nic.hear((0, 0), (NACK, 2, 0, 0)), []);
    assert_eq!(nic.hear((0, 0), (GRANT, 0, 10, 1)), [(2, 1), (9, 1)]);
    assert_eq!(nic.hear((0, 0), (GRANT, 0, 11, 1)), [(10, 1)]);
}

/// N6: a timeout repeats up to what had been sent when its timer was started, packet 0 at first,
/// then all.
#[test]
fn n6_timeouts_repeat_what_had_been_sent() {
    let mut nic = Bench::new(&homa_tr());
    nic.submit(0, 5);
    assert_eq!(nic.wait(Dur::from_ns(6_900)).len(), 5);
    assert_eq!(data(&nic.wait(Dur::from_us(1))), [(0, 1)]);
    assert_eq!(data(&nic.wait(Dur::from_us(7))), [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]);
}

/// A control packet that is ready goes before all data that waits.
#[test]
fn n8_control_goes_before_data() {
    for program in super::PROGRAMS {
        let mut nic = Bench::new(&Config::firesim(program));
        let pkt = nic.packet(0, 1, 0, false);
        nic.call(|nic, cx| nic.on_packet(cx, &pkt));
        // The answer enters the arbiter 7 ns later; so does the data, which then waits for 4 ns as
        // it does.
        nic.wait(Dur::from_ns(7));
        nic.submit(0, 9);
        let sent = nic.wait(Dur::from_ns(100));
        assert_eq!(sent.len(), 10);
        let control = sent.iter().position(|o| !matches!(o.header.kind, Kind::Data { .. }));
        assert!(sent[..control.unwrap()].iter().all(|o| o.at < sent[control.unwrap()].at));
        assert!(control.unwrap() == 0 || sent[0].at < sent[control.unwrap()].at, "{program:?}");
    }
}

/// PULLs are 140 cycles (43.75 ns) apart, those joined to ACKs, too, however packets arrive.
#[test]
fn n9_pulls_are_paced() {
    let mut nic = Bench::new(&Config::firesim(Program::Ndp));
    for index in 0..9 {
        let pkt = nic.packet(0, 30, index, index % 3 == 0);
        nic.call(|nic, cx| nic.on_packet(cx, &pkt));
    }
    let sent = nic.wait(Dur::from_us(1));
    let pull =
        |kind| matches!(kind, Kind::Credit | Kind::Ack { pull: true } | Kind::Nack { pull: true });
    let pulls: Vec<_> = sent.iter().filter(|out| pull(out.header.kind)).map(|out| out.at).collect();
    assert_eq!(pulls.len(), 9);
    // Seen in steps of a nanosecond.
    let apart = |pair: &[units::Time]| pair[1].since(pair[0]);
    assert!(pulls.windows(2).all(|p| (43..=44).contains(&(apart(p).0 / 1000))), "{pulls:?}");
    let others = sent.len() - pulls.len();
    assert_eq!(others, 8, "every ACK and NACK but the first goes at once, without");
}

/// What a queue trims at a receiver with half the link rate is repaired, with every program that
/// knows trims.
#[test]
fn a_slow_receiver_gets_everything() {
    for program in [Program::Ndp, Program::HomaTr] {
        let config =
            Config { ingress_timeouts: 100, max_timeouts: None, ..Config::firesim(program) };
        let mut net = net(&config, 6);
        let rate = units::Rate(LINK.rate.0 / 2);
        net.set_bottleneck(TO, Bottleneck { rate, packets: 12, trim: true });
        for i in 1..6 {
            net.submit(HostId(i), TO, 30 * 1024);
        }
        net.run_until_idle(Dur::from_ms(1));
        net.ledger().assert_all_done();
    }
}
