//! A lone message takes exactly the ideal time.

use testkit::Bottleneck;
use units::{Dur, HostId, Time};

use super::{LINK, TEN_GIG, net};
use crate::ndp::{Config, PathStrategy};

/// When the last of `len` bytes is at the receiver, over one link and one store-and-forward switch,
/// if the sender never pauses.
fn ideal(config: &Config, len: u64) -> Time {
    let framing = config.framing();
    let (mut left, mut sent, mut arrived) = (len, Time::ZERO, Time::ZERO);
    loop {
        let payload = left.min(u64::from(framing.payload));
        let wire = TEN_GIG.serialise(payload + u64::from(framing.overhead));
        sent += wire;
        arrived = arrived.max(sent + LINK.delay) + wire;
        left -= payload;
        if left == 0 {
            return arrived;
        }
    }
}

#[test]
fn a_lone_message_takes_the_ideal_time() {
    for (payload, window) in [(9000, 30), (9000, 3), (1500, 30)] {
        for paths in [PathStrategy::Permute, PathStrategy::Single] {
            let config = Config { initial_window: window, paths, ..Config::paper(payload) };
            let p = u64::from(payload);
            let w = p * u64::from(window);
            for len in [0, 1, p - 1, p, p + 1, 3 * p, w - 1, w, w + 1, w + p, 7 * w + 11, 200 * p] {
                let mut net = net(&config, LINK, 2);
                let wide = Bottleneck { rate: TEN_GIG, packets: 1000, trim: true };
                net.set_bottleneck(HostId(1), wide);
                let key = net.submit(HostId(0), HostId(1), len);
                net.run_until_idle(Dur::from_ms(100));
                let delivered = net.record(key).delivered.unwrap();
                assert_eq!(delivered, ideal(&config, len), "{len} B of {payload}, IW {window}");
            }
        }
    }
}

/// Messages of a channel, long ones, take the time of one message: the link is never idle between
/// them.
#[test]
fn messages_of_a_channel_follow_each_other_without_a_pause() {
    let config = Config::paper(9000);
    let mut net = net(&config, LINK, 2);
    net.set_bottleneck(HostId(1), Bottleneck { rate: TEN_GIG, packets: 1000, trim: true });
    let len = 100 * 9_000;
    let keys: Vec<_> = (0..10).map(|_| net.submit_on(HostId(0), HostId(1), 1, len)).collect();
    net.run_until_idle(Dur::from_ms(100));
    for (nth, key) in (1..).zip(keys) {
        assert_eq!(net.record(key).delivered.unwrap(), ideal(&config, nth * len), "{nth}");
    }
}
