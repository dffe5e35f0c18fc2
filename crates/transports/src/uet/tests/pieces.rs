//! Connections that are kept for the messages of a channel (specs/uet.md#12).

use endpoint::{FailReason, Msg, MsgKey};

use super::*;

fn kept() -> Config {
    Config { keep_connections: Some(Dur::from_us(200)), ..config() }
}

/// `count` messages of `packets` packets each, on one channel, all at once.
fn submit(net: &mut Net<Uet>, count: u64, packets: u64) -> Vec<MsgKey> {
    let msg = Msg { channel: 7, ..Msg::new(TO, packets * PAYLOAD) };
    (0..count).map(|_| net.submit_as(HostId(1), msg)).collect()
}

/// The connections of host 1, in the order of their packets.
fn connections(net: &Net<Uet>) -> Vec<u64> {
    let sent = net.log().iter().filter(|sent| matches!(kind(sent), Kind::Request { .. }));
    let mut all: Vec<u64> =
        sent.map(|sent| Repr::parse(sent.pkt.header()).unwrap().message).collect();
    all.dedup();
    all
}

#[test]
fn connections_that_are_kept_conform() {
    conforms(kept());
    conforms(Config { credit: true, control: WindowControl::None, ..kept() });
    conforms(Config { sleek: true, trimming: false, ..kept() });
}

/// One message of ten packets takes as long. Without a connection each waits for the one before.
#[test]
fn messages_of_a_channel_follow_one_another_without_a_pause() {
    let times =
        [(1, 10, kept()), (10, 1, kept()), (10, 1, config())].map(|(count, len, config)| {
            let mut net = net(config, 2);
            let keys = submit(&mut net, count, len);
            net.run_until_idle(Dur::from_ms(2));
            net.ledger().assert_all_done();
            let psns: Vec<u32> = data(&net, 1).iter().map(|data| data.psn).collect();
            if config.keep_connections.is_some() {
                assert_eq!(psns, (0..10).collect::<Vec<_>>());
                assert_eq!(connections(&net), [keys[0].id.0]);
            }
            net.record(*keys.last().unwrap()).acked.unwrap().since(Time::ZERO)
        });
    assert_eq!(times[0], times[1]);
    assert!(times[2] > times[1] * 7, "{times:?}");
}

#[test]
fn an_idle_connection_is_kept_for_a_while() {
    let mut net = net(kept(), 2);
    let first = submit(&mut net, 1, 3)[0];
    net.run_until(Time::ZERO + Dur::from_us(100));
    submit(&mut net, 1, 3);
    net.run_until(Time::ZERO + Dur::from_us(300));
    assert_eq!(connections(&net), [first.id.0], "used again");
    net.run_until(Time::ZERO + Dur::from_us(500));
    let closed = net.log().iter().filter(|sent| matches!(kind(sent), Kind::Close)).count();
    assert_eq!((closed, net.endpoint(HostId(1)).sender.flows().count()), (1, 0));
    let third = submit(&mut net, 1, 3)[0];
    net.run_until_idle(Dur::from_ms(1));
    net.ledger().assert_all_done();
    assert_eq!(connections(&net), [first.id.0, third.id.0]);
}

/// One that has begun, one that has not: those behind arrive, and nothing new of it is sent.
#[test]
fn a_cancelled_message_does_not_hold_up_those_behind_it() {
    for cancelled in [0, 1, 2] {
        let mut net = net(kept(), 2);
        let keys = submit(&mut net, 3, 300);
        net.run_until(Time::ZERO + Dur::from_us(50));
        net.cancel(keys[cancelled]);
        let now = net.now();
        net.run_until_idle(Dur::from_ms(2));
        for (n, key) in keys.iter().enumerate() {
            let record = net.record(*key);
            assert_eq!(record.delivered.is_some(), n != cancelled, "{n} with {cancelled}");
            assert_eq!(record.acked.is_some(), n != cancelled);
        }
        let record = net.record(keys[cancelled]);
        assert_eq!(record.failed, Some((now, FailReason::Cancelled)));
        let begun = cancelled == 0;
        assert_eq!(record.receiver_failed.is_some(), begun, "what has come is forgotten");
        let late = net.log().iter().filter(|sent| {
            matches!(kind(sent), Kind::Request { .. })
                && sent.at > now
                && sent.pkt.span.msg == keys[cancelled].id
        });
        assert_eq!(late.count(), 0);
    }
}

/// A connection whose peer is gone fails with all of its messages.
#[test]
fn all_messages_of_a_connection_fail_together() {
    let config = Config {
        abort_after: Dur::from_ms(5),
        time_wait: Dur::from_ms(6),
        rx_idle_timeout: Dur::from_ms(6),
        ..kept()
    };
    let mut net = net(config, 2);
    net.fault(|_| Verdict::Drop);
    let keys = submit(&mut net, 3, 2);
    net.run_until_idle(Dur::from_ms(100));
    for key in keys {
        assert!(matches!(net.record(key).failed, Some((_, FailReason::TimedOut))));
    }
}

/// specs/uet.md#U3,U9: messages of several channels, with losses, copies and late packets.
#[test]
fn messages_of_channels_arrive_once_and_in_order_whatever_happens() {
    for seed in 0..8 {
        let draw = endpoint::Draw::new(seed, endpoint::Purpose::new("uet pieces"), 0);
        let mix = Mix {
            drop: 0.03,
            trim: 0.05,
            duplicate: 0.03,
            delay: 0.05,
            late_max: Dur::from_us(40),
            ..Mix::NONE
        };
        let config = Config { credit: seed % 2 == 1, ..kept() };
        let mut net = net(config, 3);
        net.fault(fault::random(draw, mix));
        for n in 0..60 {
            let len = [0, 1, PAYLOAD, 50_000, 300_000][n as usize % 5];
            let msg = Msg { channel: 1 + n as u32 % 3, ..Msg::new(TO, len) };
            net.submit_as(HostId(1 + n as u32 % 2), msg);
            net.run_until(Time::ZERO + Dur::from_us(30 * n));
        }
        while net.step() {
            for host in 1..3 {
                net.endpoint(HostId(host)).sender.flows().for_each(|flow| {
                    flow.check(&config);
                });
            }
        }
        net.ledger().assert_all_done();
    }
}
