//! The edge cases of specs/ndp.md#9, in its order, and a few of our own.

use endpoint::{Effect, FailReason, Flags, MsgId, MsgKey, Stat, UNBOUNDED};
use testkit::Verdict;
use units::{Dur, HostId, Time};
use wire::ndp::{Data, Kind};

use super::bench::{Bench, ME, PEER, ack, data, nack, pull};
use super::{LINK, kind, net};
use crate::ndp::{Config, PathStrategy};

const A: HostId = HostId(0);
const B: HostId = HostId(1);

fn paper() -> Config {
    Config::paper(9000)
}

fn seqs(packets: &[endpoint::Packet]) -> Vec<u32> {
    packets
        .iter()
        .map(|p| match kind(p) {
            Kind::Data(d) => d.seq,
            other => panic!("{other:?} is not data"),
        })
        .collect()
}

/// 1. A one-packet flow is trimmed: NACK with PULL, exactly one resend.
#[test]
fn a_trimmed_single_packet_is_resent_once() {
    let mut net = net(&paper(), LINK, 2);
    net.fault(|sent| if sent.n == 0 { Verdict::Trim } else { Verdict::Pass });
    net.submit(A, B, 9000);
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    let kinds: Vec<Kind> = net.log().iter().map(|s| kind(&s.pkt)).collect();
    let [Kind::Data(first), Kind::Nack(nack), Kind::Data(second), Kind::Ack(ack)] = kinds[..]
    else {
        panic!("{kinds:?}")
    };
    assert_eq!(nack.pull, Some(1));
    assert!(!first.retransmission && second.retransmission && second.last);
    assert_eq!((ack.cumulative, ack.pull), (1, None));
    assert_ne!(net.log()[0].pkt.path, net.log()[2].pkt.path);
}

/// 2. A one-packet flow is bounced: rule a, an immediate resend on another path.
#[test]
fn a_bounced_single_packet_is_resent_at_once_on_another_path() {
    let mut bench = Bench::new(paper());
    let sent = bench.submit(0, 100);
    assert_eq!(sent.len(), 1);
    let again = bench.bounce(&sent[0]);
    assert_eq!(seqs(&again), [0]);
    assert_ne!(again[0].path, sent[0].path);
    let Kind::Data(d) = kind(&again[0]) else { panic!() };
    assert!(d.syn && d.retransmission, "the receiver may not know of us yet");
    let third = bench.bounce(&again[0]);
    assert_eq!(seqs(&third), [0]);
    assert_ne!(third[0].path, again[0].path);
}

/// 3. All of a window is bounced: a bounce counts before it is judged, so the last two are resent.
#[test]
fn a_bounced_window_is_resumed_by_its_last_two_packets() {
    let mut bench = Bench::new(Config { initial_window: 23, ..paper() });
    let sent = bench.submit(0, 100 * 9000);
    assert_eq!(sent.len(), 23);
    for pkt in &sent[..21] {
        assert!(bench.bounce(pkt).is_empty());
    }
    assert_eq!(seqs(&bench.bounce(&sent[21])), [21], "bounced packets go to the front");
    assert_eq!(seqs(&bench.bounce(&sent[22])), [22]);
    // From here on it is pulled, latest bounce first.
    assert_eq!(seqs(&bench.hear(0, nack(22, 0, Some(1)))), [20]);
}

/// Rule b: with a quarter of ACKs among the last feedbacks the path is to blame.
#[test]
fn a_bounce_among_acks_is_resent_at_once_and_among_nacks_is_not() {
    let mut bench = Bench::new(paper());
    let sent = bench.submit(0, 100 * 9000);
    for seq in 0..4 {
        bench.hear(0, nack(seq, 0, None));
    }
    assert!(bench.bounce(&sent[4]).is_empty(), "no ACK among five feedbacks");
    bench.hear(0, ack(5, 0, None));
    assert!(bench.bounce(&sent[6]).is_empty(), "one of seven: 7 / 1 > 3");
    bench.hear(0, ack(7, 0, None));
    assert!(bench.bounce(&sent[8]).is_empty(), "two of nine: 9 / 2 > 3");
    bench.hear(0, ack(9, 0, None));
    assert_eq!(seqs(&bench.bounce(&sent[10])), [10], "three of eleven: 11 / 3 = 3");
}

/// Rule a counts the pulls: after a NACK and its PULL none is expected, before the PULL one is.
#[test]
fn a_bounce_waits_for_a_pull_that_is_expected() {
    let start = || {
        let mut bench = Bench::new(Config { initial_window: 2, ..paper() });
        let sent = bench.submit(0, 100 * 9000);
        (bench, sent)
    };
    let (mut bench, sent) = start();
    assert!(bench.hear(0, nack(0, 0, None)).is_empty());
    assert!(bench.bounce(&sent[1]).is_empty(), "a pull is owed for packet 0");
    let (mut bench, sent) = start();
    assert_eq!(seqs(&bench.hear(0, nack(0, 0, Some(1)))), [0]);
    assert_eq!(seqs(&bench.bounce(&sent[1])), [1]);
}

/// A resent packet must not wake a message that the receiver has forgotten.
#[test]
fn a_known_receiver_gets_no_second_syn() {
    let mut bench = Bench::new(paper());
    bench.submit(0, 100 * 9000);
    let again = bench.hear(0, nack(3, 0, Some(1)));
    assert!(matches!(kind(&again[0]), Kind::Data(d) if d.seq == 3 && d.retransmission && !d.syn));
}

/// Karn: the answer to a resent packet is no round-trip sample.
#[test]
fn a_resent_packet_gives_no_sample() {
    let config = Config {
        initial_window: 1,
        rto_initial: Dur::from_ms(1),
        rto_min: Dur::from_us(10),
        rto_jitter_percent: 0,
        ..paper()
    };
    let mut bench = Bench::new(config);
    bench.submit(0, 100 * 9000);
    assert_eq!(seqs(&bench.wait(Dur::from_us(1001))), [0], "timeout");
    assert_eq!(seqs(&bench.hear(0, ack(0, 1, Some(1)))), [1]);
    assert!(bench.wait(Dur::from_us(900)).is_empty(), "1 us was not the round trip");
    assert_eq!(seqs(&bench.hear(0, ack(1, 2, Some(2)))), [2]);
    // A sample of 900 us: half of that is the first deviation, so three times that.
    assert!(bench.wait(Dur::from_us(2699)).is_empty());
    assert_eq!(seqs(&bench.wait(Dur::from_us(1))), [2]);
}

/// 4. PULLs in the order 3, 1, 2 send 3, 0 and 0 packets.
#[test]
fn reordered_pulls_send_what_their_numbers_say() {
    let mut bench = Bench::new(paper());
    bench.submit(0, 100 * 9000);
    let sent: Vec<usize> = [3, 1, 2].map(|n| bench.hear(0, pull(n)).len()).to_vec();
    assert_eq!(sent, [3, 0, 0]);
}

/// 5. A PULL is lost: the next one sends two packets.
#[test]
fn a_lost_pull_is_made_up_for_by_the_next() {
    let mut bench = Bench::new(paper());
    bench.submit(0, 100 * 9000);
    assert_eq!(seqs(&bench.hear(0, pull(1))), [30]);
    assert_eq!(seqs(&bench.hear(0, pull(3))), [31, 32]);
}

/// 6. LAST arrives first and holes are NACKed: pulls go on until all has come, then stop.
#[test]
fn pulls_survive_the_last_packet_but_not_the_end() {
    let mut bench = Bench::new(paper());
    let last = Data { last: true, len: 5, ..data(9) };
    bench.hear(0, Kind::Data(last));
    for seq in 0..9 {
        let answer = bench.receive(PEER, 0, Flags::TRIMMED, Kind::Data(data(seq)));
        assert!(matches!(kind(&answer[0]), Kind::Nack(f) if f.pull.is_none()));
    }
    let pulls = bench.wait(Dur::from_us(30));
    assert_eq!(pulls.len(), 4, "one per 7.2 us");
    for seq in 0..9 {
        assert!(!bench.delivered(0));
        bench.hear(0, Kind::Data(Data { syn: false, retransmission: true, ..data(seq) }));
    }
    assert!(bench.delivered(0));
    assert!(bench.wait(Dur::from_us(1000)).is_empty(), "I9: the queue is purged");
}

/// 7. Of two flows to a receiver one is slowed by its sender: the other takes what is left.
#[test]
fn the_pull_queue_gives_away_an_unused_share() {
    let mut net = net(&paper(), LINK, 5);
    // Host 1 serves three receivers, so each gets a third of its link.
    let slow = net.submit(B, A, UNBOUNDED);
    net.submit(B, HostId(3), UNBOUNDED);
    net.submit(B, HostId(4), UNBOUNDED);
    let fast = net.submit(HostId(2), A, UNBOUNDED);
    let placed = |net: &testkit::Net, key| net.record(key).placed.prefix() as f64;
    net.run_until(Time::ZERO + Dur::from_ms(2));
    let before = [slow, fast].map(|key| placed(&net, key));
    net.run_until(Time::ZERO + Dur::from_ms(22));
    let after = [slow, fast].map(|key| placed(&net, key));
    let full = 20e-3 * 10e9 / 8.0 * 9000.0 / 9064.0;
    let share = [0, 1].map(|i| (after[i] - before[i]) / full);
    assert!((0.28..0.38).contains(&share[0]), "{share:?}");
    assert!((0.60..0.70).contains(&share[1]), "{share:?}");
    assert!(share[0] + share[1] > 0.97, "{share:?}");
}

/// 8. An id used again within the time-wait is refused at both ends.
#[test]
fn a_finished_id_is_refused_at_both_ends() {
    let mut bench = Bench::new(paper());
    bench.submit(7, 100);
    bench.hear(7, ack(0, 1, None));
    assert_eq!(bench.count(Effect::Acked(MsgId(7))), 1);
    assert!(bench.submit(7, 100).is_empty());
    let refused = Effect::Failed(MsgKey { src: ME, id: MsgId(7) }, FailReason::Refused);
    assert_eq!(bench.count(refused), 1);
    bench.wait(Dur::from_ms(2));
    assert_eq!(bench.submit(7, 100).len(), 1, "after one MSL");

    let mut bench = Bench::new(paper());
    let only = Data { last: true, ..data(0) };
    assert_eq!(bench.hear(3, Kind::Data(only)).len(), 1);
    assert!(bench.hear(3, Kind::Data(only)).is_empty(), "a first copy gets no answer");
    assert_eq!(bench.count(Effect::Count(Stat::Rejected)), 1);
    // The sender that did not hear our ACK asks again, and hears it.
    let again = Kind::Data(Data { retransmission: true, ..only });
    let answer = bench.hear(3, again);
    assert!(matches!(kind(&answer[0]), Kind::Ack(f) if f.cumulative == 1 && f.pull.is_none()));
    // Each question starts the time-wait of 100 ms anew.
    for _ in 0..3 {
        bench.wait(Dur::from_ms(60));
        assert_eq!(bench.hear(3, again).len(), 1);
    }
    assert_eq!(bench.effects.iter().filter(|e| matches!(e, Effect::Delivered(_))).count(), 1);
}

/// 8, with a table that is full: nobody is forgotten early for somebody new.
#[test]
fn a_full_table_takes_on_nobody_new() {
    let mut bench = Bench::new(Config { time_wait_entries: 2, ..paper() });
    let only = Kind::Data(Data { last: true, ..data(0) });
    let again = Kind::Data(Data { last: true, retransmission: true, ..data(0) });
    assert_eq!((bench.hear(0, only).len(), bench.hear(1, only).len()), (1, 1));
    assert!(bench.hear(2, only).is_empty());
    for id in 0..2 {
        assert_eq!(bench.hear(id, again).len(), 1, "still known");
    }
    bench.wait(Dur::from_ms(11_000));
    assert_eq!(bench.hear(2, again).len(), 1, "their time-wait is over");
    assert_eq!(bench.effects.iter().filter(|e| matches!(e, Effect::Delivered(_))).count(), 3);
}

/// Headers that come back say nothing of the receiver: a sender that hears only them gives up.
#[test]
fn bounces_are_no_sign_of_life() {
    let mut bench = Bench::new(Config { abort_after: Dur::from_ms(50), ..paper() });
    let mut sent = bench.submit(0, 100);
    let failed = Effect::Failed(MsgKey { src: ME, id: MsgId(0) }, FailReason::TimedOut);
    while let Some(pkt) = sent.last().copied()
        && bench.count(failed) == 0
    {
        sent = bench.bounce(&pkt);
        sent.extend(bench.wait(Dur::from_ms(1)));
    }
    let ms = Dur::from_ms(1);
    let late = bench.now.since(Time::ZERO);
    assert!(late >= ms * 50 && late <= ms * 75, "50 ms, noticed within a timeout: {late}");
}

/// 9. Lost ACKs and NACKs are repaired by the timeout, lost PULLs by their numbers.
#[test]
fn lost_control_packets_are_repaired() {
    // Which control packet of the receiver is lost, and how many timeouts that costs.
    let lose = |what: fn(Kind) -> bool, trim_first: bool| {
        let mut net = net(&paper(), LINK, 2);
        let mut done = false;
        net.fault(move |sent| {
            if trim_first && sent.n == 0 {
                return Verdict::Trim;
            }
            if done || !what(kind(&sent.pkt)) {
                return Verdict::Pass;
            }
            done = true;
            Verdict::Drop
        });
        let key = net.submit(A, B, 200 * 9000);
        net.run_until_idle(Dur::from_ms(1000));
        net.ledger().assert_all_done();
        assert_eq!(net.dropped(), 1);
        let took = net.record(key).delivered.unwrap();
        (net.stat(A, Stat::Timeout), net.stat(B, Stat::Duplicate), took)
    };
    let ideal = Dur(200 * 9064 * 800) + Dur::from_us(3);
    // The cumulative field of the next answer says it too.
    assert_eq!(lose(|k| matches!(k, Kind::Ack(f) if f.seq == 50), false).0, 0);
    let (timeouts, duplicates, _) = lose(|k| matches!(k, Kind::Ack(f) if f.seq == 199), false);
    assert_eq!((timeouts, duplicates), (1, 1), "the last ACK");
    let (timeouts, duplicates, _) = lose(|k| matches!(k, Kind::Nack(_)), true);
    assert_eq!((timeouts, duplicates), (1, 0));
    let pull = |k| matches!(k, Kind::Ack(f) if f.pull == Some(60));
    let (timeouts, _, took) = lose(pull, false);
    assert_eq!(timeouts, 0);
    assert!(took.since(Time::ZERO) < ideal + Dur::from_us(1), "the number repairs it: {took}");
}

/// I9, while a PULL waits for the port.
#[test]
fn a_pull_that_has_become_useless_is_not_sent() {
    let mut bench = Bench::new(paper());
    bench.hear(0, Kind::Data(data(0)));
    bench.receive(PEER, 0, Flags::TRIMMED, Kind::Data(data(1)));
    bench.busy = true;
    bench.wait(Dur::from_us(10));
    bench.hear(0, Kind::Data(Data { last: true, ..data(1) }));
    assert!(bench.delivered(0));
    bench.busy = false;
    let sent = bench.drain();
    assert!(matches!(sent[..], [ref only] if matches!(kind(only), Kind::Ack(_))), "the ACK alone");
}

/// A credit whose packet has been acknowledged meanwhile is given back.
#[test]
fn a_credit_without_a_packet_is_not_kept() {
    let mut bench = Bench::new(paper());
    bench.submit(0, 2 * 9000);
    bench.busy = true;
    bench.hear(0, nack(0, 0, Some(1)));
    bench.hear(0, ack(0, 1, None));
    bench.busy = false;
    assert!(bench.drain().is_empty());
    assert_eq!(seqs(&bench.hear(0, nack(1, 1, Some(2)))), [1]);
}

/// 10. A header that bounces a second time is the switch's to drop. A host that gets back a control
///     packet, or the header of a message that it does not send, says nothing.
#[test]
fn bounced_packets_are_not_played_back() {
    let mut bench = Bench::new(paper());
    let bounced = Flags::CONTROL.with(Flags::BOUNCED);
    for kind in [ack(0, 1, Some(1)), nack(0, 0, Some(1)), pull(1)] {
        assert!(bench.receive(PEER, 0, bounced, kind).is_empty());
    }
    let header = Flags::TRIMMED.with(Flags::BOUNCED);
    assert!(bench.receive(PEER, 0, header, Kind::Data(data(0))).is_empty());
    assert!(bench.wait(Dur::from_ms(100)).is_empty());
    bench.submit(0, 100);
    bench.receive(PEER, 0, bounced, ack(0, 1, None));
    assert_eq!(bench.count(Effect::Acked(MsgId(0))), 0, "our own ACK, come back");
}

/// 11. With one path all strategies are equal.
#[test]
fn one_path_makes_all_strategies_equal() {
    let digest = |paths| {
        let link = testkit::Link { paths: 1, ..LINK };
        let mut net = net(&Config { paths, ..paper() }, link, 3);
        net.submit(A, B, 1_000_000);
        net.submit(HostId(2), B, 1_000_000);
        net.run_until_idle(Dur::from_ms(100));
        net.digest()
    };
    let permute = digest(PathStrategy::Permute);
    assert_eq!(digest(PathStrategy::Random), permute);
    assert_eq!(digest(PathStrategy::Single), permute);
}

/// 12. The last packet is as long as what is left, not a full packet.
#[test]
fn the_last_packet_has_its_exact_length() {
    for (len, packets, last) in
        [(0, 1, 0), (1, 1, 1), (9000, 1, 9000), (9001, 2, 1), (26_999, 3, 8999)]
    {
        let sent = Bench::new(paper()).submit(0, len);
        assert_eq!(sent.len(), packets);
        let pkt = sent.last().unwrap();
        assert_eq!((pkt.span.len, pkt.wire_len), (last, last as u16 + 64));
        assert!(matches!(kind(pkt), Kind::Data(d) if d.last && u32::from(d.len) == last));
        assert_eq!(sent.iter().map(|p| u64::from(p.span.len)).sum::<u64>(), len);
    }
}

/// Any packet of the first window can be the first to arrive; other packets cannot start anything.
#[test]
fn any_syn_creates_state_and_nothing_else_does() {
    let mut bench = Bench::new(paper());
    let late = Data { syn: false, ..data(40) };
    assert!(bench.hear(0, Kind::Data(late)).is_empty());
    assert_eq!(bench.count(Effect::Count(Stat::Rejected)), 1);
    let answer = bench.hear(0, Kind::Data(data(17)));
    assert!(matches!(kind(&answer[0]), Kind::Ack(f) if f.seq == 17 && f.cumulative == 0));
    let place =
        Effect::Place { key: MsgKey { src: PEER, id: MsgId(0) }, offset: 17 * 9000, len: 9000 };
    assert_eq!(bench.count(place), 1);
    assert_eq!(bench.hear(0, Kind::Data(late)).len(), 1, "now it is known");
}

/// specs/ndp.md#8: no socket is free, the packet is ignored.
#[test]
fn no_more_messages_than_sockets() {
    let mut bench = Bench::new(Config { max_rx_messages: 2, ..paper() });
    for id in 0..2 {
        assert_eq!(bench.hear(id, Kind::Data(data(0))).len(), 1);
    }
    assert!(bench.hear(2, Kind::Data(data(0))).is_empty());
    let end = Data { last: true, ..data(1) };
    bench.hear(0, Kind::Data(end));
    assert!(bench.delivered(0));
    assert_eq!(bench.hear(2, Kind::Data(data(0))).len(), 1);
}

/// I8, and what a pull that finds nothing does.
#[test]
fn resends_go_first_and_idle_pulls_are_consumed() {
    let mut bench = Bench::new(paper());
    bench.submit(0, 31 * 9000);
    bench.hear(0, nack(5, 0, None));
    bench.hear(0, nack(3, 0, None));
    assert_eq!(seqs(&bench.hear(0, pull(2))), [5, 3]);
    bench.hear(0, ack(0, 1, None));
    bench.hear(0, ack(1, 2, None));
    bench.hear(0, ack(2, 3, None));
    assert_eq!(seqs(&bench.hear(0, pull(5))), [30], "two of three find nothing");
    assert!(bench.hear(0, nack(7, 3, None)).is_empty(), "and are not saved");
    assert_eq!(seqs(&bench.hear(0, pull(6))), [7]);
}

/// PULLs and NACKs take different paths. A pull that comes before the NACK of its packet finds
/// nothing to send; no other will come for that packet.
#[test]
fn a_pull_that_overtakes_its_nack_is_kept_for_it() {
    let mut bench = Bench::new(paper());
    bench.submit(0, 2 * 9000);
    assert!(bench.hear(0, pull(2)).is_empty(), "nothing to resend yet");
    assert_eq!(seqs(&bench.hear(0, nack(1, 0, None))), [1]);
    assert!(bench.hear(0, ack(0, 1, None)).is_empty());
    assert!(bench.hear(0, nack(1, 1, None)).is_empty(), "the other belonged to the ACK");
    assert_eq!(seqs(&bench.hear(0, pull(3))), [1]);
}

/// specs/ndp.md#5.5: on time, once per packet, on another path; the clock restarts with the resend.
#[test]
fn timeouts_are_per_packet_and_restart() {
    let ms = Dur::from_ms(1);
    let config =
        Config { rto_initial: ms, rto_min: ms, rto_max: ms, rto_jitter_percent: 0, ..paper() };
    let mut bench = Bench::new(config);
    let sent = bench.submit(0, 2 * 9000);
    bench.wait(Dur::from_us(300));
    bench.hear(0, ack(0, 1, None));
    assert!(bench.wait(Dur::from_us(699)).is_empty(), "not before 1 ms");
    let again = bench.wait(Dur::from_us(1));
    assert_eq!(seqs(&again), [1]);
    assert_ne!(again[0].path, sent[1].path);
    assert!(bench.wait(Dur::from_us(999)).is_empty(), "the clock has restarted");
    assert_eq!(seqs(&bench.wait(Dur::from_us(1))), [1]);
    bench.hear(0, nack(1, 1, None));
    assert!(bench.wait(Dur::from_ms(90)).is_empty(), "a NACKed packet has no timeout");
    assert_eq!(seqs(&bench.wait(Dur::from_ms(10))), [1], "but no pull in 100 ms is too long");
    bench.hear(0, nack(1, 1, None));
    assert!(bench.wait(Dur::from_ms(199)).is_empty(), "twice as patient");
    assert_eq!(seqs(&bench.wait(Dur::from_ms(1))), [1]);
}

/// A receiver that is gone: the message fails, the sender is silent.
#[test]
fn a_sender_gives_up_and_a_receiver_forgets() {
    let mut bench = Bench::new(Config { abort_after: Dur::from_ms(50), ..paper() });
    bench.submit(0, 100);
    bench.wait(Dur::from_ms(49));
    assert_eq!(
        bench.count(Effect::Failed(MsgKey { src: ME, id: MsgId(0) }, FailReason::TimedOut)),
        0
    );
    bench.wait(Dur::from_ms(20));
    assert_eq!(
        bench.count(Effect::Failed(MsgKey { src: ME, id: MsgId(0) }, FailReason::TimedOut)),
        1
    );
    assert!(bench.wait(Dur::from_ms(1000)).is_empty());

    let mut bench = Bench::new(Config {
        abort_after: Dur::from_ms(30),
        rx_idle_timeout: Dur::from_ms(30),
        ..paper()
    });
    for seq in 0..9 {
        bench.receive(PEER, 0, Flags::TRIMMED, Kind::Data(data(seq)));
    }
    bench.wait(Dur::from_ms(35));
    assert_eq!(
        bench.count(Effect::Failed(MsgKey { src: PEER, id: MsgId(0) }, FailReason::TimedOut)),
        1
    );
    assert!(bench.hear(0, Kind::Data(data(0))).is_empty(), "its id is not good any more");
}

/// Queues into which no payload fits, only headers: both ends give up, whatever arrived before.
#[test]
fn what_never_gets_through_is_given_up() {
    let config =
        Config { abort_after: Dur::from_ms(10), rx_idle_timeout: Dur::from_ms(50), ..paper() };
    for first in [0, 1] {
        let mut net = net(&config, LINK, 2);
        net.fault(move |sent| match kind(&sent.pkt) {
            Kind::Data(d) if d.seq >= first => Verdict::Trim,
            _ => Verdict::Pass,
        });
        let key = net.submit(A, B, 100 * 9000);
        net.run_until_idle(Dur::from_ms(500));
        let record = net.record(key);
        let placed: u64 = record.placed.iter().map(|r| r.end - r.start).sum();
        assert_eq!(placed, u64::from(first) * 9000);
        assert!(record.failed.is_some() && record.delivered.is_none(), "{record:?}");
    }
}

/// An application that takes nothing for a while loses nothing: what does not fit is NACKed.
#[test]
fn a_full_application_gets_the_rest_later() {
    let mut net = net(&paper(), LINK, 2);
    net.set_room(B, 25_000);
    let key = net.submit(A, B, 1_000_000);
    net.run_until(Time::ZERO + Dur::from_ms(1));
    let placed: u64 = net.record(key).placed.iter().map(|r| r.end - r.start).sum();
    assert_eq!(placed, 18_000, "two packets fit");
    net.set_room(B, u64::MAX);
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
}

/// A host may hear anything; what cannot be is not answered and places nothing.
#[test]
fn nonsense_is_rejected() {
    let mut bench = Bench::new(paper());
    bench.hear(0, Kind::Data(data(0)));
    bench.hear(0, Kind::Data(Data { last: true, ..data(5) }));
    bench.effects.clear();
    let wrong = [
        Data { len: 100, ..data(1) },
        Data { len: 9001, ..data(1) },
        data(5),
        data(6),
        Data { last: true, ..data(4) },
        data(u32::MAX),
        data(1 << 30),
    ];
    for d in wrong {
        assert!(bench.hear(0, Kind::Data(d)).is_empty(), "{d:?}");
    }
    assert_eq!(bench.effects, vec![Effect::Count(Stat::Rejected); wrong.len()]);
    // The sender's side: not ours, never sent, from the wrong host.
    bench.submit(1, 100);
    for (src, id, kind) in [
        (PEER, 9, ack(0, 1, None)),
        (PEER, 1, ack(1, 2, None)),
        (HostId(3), 1, ack(0, 1, None)),
        (PEER, 9, pull(1)),
    ] {
        assert!(bench.receive(src, id, Flags::CONTROL, kind).is_empty());
    }
    assert_eq!(bench.count(Effect::Acked(MsgId(1))), 0);
}

/// A message that starts behind another keeps its last packet until that one is acknowledged, and
/// the third one waits.
#[test]
fn the_last_packet_waits_for_the_message_before() {
    let mut bench = Bench::new(paper());
    let sent = |packets: Vec<endpoint::Packet>| -> Vec<(u64, u64)> {
        packets.iter().map(|pkt| (pkt.span.msg.0, pkt.span.offset / 9_000)).collect()
    };
    assert_eq!(sent(bench.submit_on(7, 0, 9_000)), [(0, 0)]);
    assert_eq!(sent(bench.submit_on(7, 1, 20_000)), [(1, 0), (1, 1)]);
    assert_eq!(sent(bench.submit_on(7, 2, 9_000)), []);
    assert_eq!(sent(bench.hear(1, ack(0, 1, Some(1)))), [], "pulled for, and kept");
    assert_eq!(sent(bench.wait(Dur::from_ms(1))), []);
    // The first is over: of the second the last packet, and behind it nothing of the third but its
    // last packet, which is its only one.
    assert_eq!(sent(bench.hear(0, ack(0, 1, None))), [(1, 2)]);
    bench.hear(1, ack(1, 2, Some(2)));
    assert_eq!(sent(bench.hear(1, ack(2, 3, None))), [(2, 0)]);
}
