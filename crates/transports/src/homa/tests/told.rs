//! What hosts tell one another of whole messages, and what senders make of silence.

use super::*;

/// Messages that wait behind others of their own host hear nothing, and are not given up for it
/// (specs/homa.md#8: the ball is in the sender's court).
#[test]
fn waiting_for_its_own_turn_is_no_silence() {
    let abort_after = Dur::from_ms(20);
    let mut net = net(Config { abort_after, rx_idle_timeout: abort_after, ..w3() }, 2);
    for n in 0..3620 {
        // 30 ms of the link in all; the longest go last.
        net.submit(HostId(1), TO, if n < 20 { 10_000 } else { 9000 });
    }
    net.run_until_idle(Dur::from_ms(200));
    net.ledger().assert_all_done();
}

/// Send `count` short messages 10 us apart beside what is open, and see that their sender hears of
/// each within `ack_delay`, without asking.
fn all_are_told(net: &mut Net, count: u64) {
    let mut short = Vec::new();
    for n in 0..count {
        net.run_until(Time::ZERO + Dur::from_us(10 * (n + 1)));
        short.push(net.submit(HostId(1), TO, 1000));
    }
    net.run_until_idle(Dur::from_ms(100));
    net.ledger().assert_all_done();
    for key in short {
        let waited = net.record(key).acked.unwrap().since(net.record(key).delivered.unwrap());
        assert!(waited < Dur::from_us(1010), "{key}: {waited}, not after ack_delay");
    }
    assert!(of_kind(net, |kind| matches!(kind, Kind::NeedAck)).is_empty());
}

/// Behind a long message that is open: each ACK tells of 33 numbers.
#[test]
fn messages_behind_an_open_one_are_told_in_groups() {
    let mut net = net(w3(), 2);
    net.submit(HostId(1), TO, 20_000_000);
    all_are_told(&mut net, 500);
    // About a hundred are whole in each `ack_delay`: four ACKs.
    let acks = of_kind(&net, |kind| matches!(kind, Kind::Ack { .. })).len();
    assert!((20..=30).contains(&acks), "{acks} ACKs");
}

/// Data of the other direction tells of the 33 numbers from the first that is missing; the others
/// are told all the same.
#[test]
fn what_data_does_not_tell_of_is_told() {
    let mut net = net(w3(), 2);
    net.submit(HostId(1), TO, 10_000_000);
    net.submit(TO, HostId(1), 10_000_000);
    all_are_told(&mut net, 200);
}

/// Both hosts answer one another, and no data gets through, all of it or all but the first packet:
/// the message is given up at both ends.
#[test]
fn what_never_gets_through_is_given_up() {
    for passes in [0, 1] {
        let abort_after = Dur::from_ms(50);
        let mut net = net(Config { abort_after, rx_idle_timeout: abort_after, ..w3() }, 2);
        net.fault(move |sent: &Sent| {
            let lost = data(sent).is_some_and(|data| data.index >= passes);
            if lost { Verdict::Drop } else { Verdict::Pass }
        });
        let key = net.submit(HostId(1), TO, 100_000);
        net.run_until_idle(Dur::from_ms(500));
        assert!(net.record(key).failed.is_some(), "{passes} packets pass");
    }
}

/// A message that its receiver did not know is sent anew. While it waits behind others of its own
/// host for that, nobody owes it an answer.
#[test]
fn begun_anew_it_waits_for_its_turn() {
    let abort_after = Dur::from_ms(20);
    let mut net = net(Config { abort_after, rx_idle_timeout: abort_after, ..w3() }, 2);
    net.fault(lose(|kind| matches!(kind, Kind::Data(_)), 7));
    net.submit(HostId(1), TO, 100_000);
    net.run_until(Time::ZERO + Dur::from_us(4_900));
    // 30 ms of the link.
    for _ in 0..3600 {
        net.submit(HostId(1), TO, 9000);
    }
    net.run_until_idle(Dur::from_ms(200));
    net.ledger().assert_all_done();
}
