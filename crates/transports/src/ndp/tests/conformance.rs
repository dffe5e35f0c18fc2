//! The suite that every transport passes, for each strategy and discipline.

use endpoint::Endpoint;
use testkit::conformance::{self, Opts};
use testkit::{Bottleneck, Link, Naps, Net};
use units::{Bytes, Dur, HostId, Rate, Time};

use crate::ndp::{Config, Discipline, Ndp, PathStrategy};

/// The paper's values, except that the network loses packets as NDP's never does: what makes up
/// for lost pulls and lost answers is faster, and lasts longer than any packet or retry.
fn lossy() -> Config {
    Config {
        initial_window: 12,
        rto_initial: Dur::from_ms(1),
        rto_min: Dur::from_ms(1),
        stall_timeout: Dur::from_ms(5),
        msl: Dur::from_ms(50),
        ..Config::paper(1500)
    }
}

fn run(config: &Config) {
    let window = u64::from(config.initial_window) * u64::from(config.payload);
    let opts = Opts {
        payload: Bytes(u64::from(config.payload)),
        window: Bytes(window),
        trims: true,
        bounces: true,
        hashed_paths: false,
        patience: Dur::from_ms(60_000),
    };
    let make = |_| Box::new(Ndp::new(config.clone()).unwrap()) as Box<dyn Endpoint>;
    conformance::run(make, opts);
}

#[test]
fn permuted_paths_and_fair_pulls() {
    run(&lossy());
}

#[test]
fn random_paths_and_strict_pulls() {
    run(&Config {
        paths: PathStrategy::Random,
        discipline: Discipline::Prio,
        initial_window: 6,
        pull_on_duplicate: false,
        ..lossy()
    });
}

#[test]
fn a_single_path_and_few_sockets() {
    run(&Config { paths: PathStrategy::Single, max_rx_messages: 3, max_tx_messages: 5, ..lossy() });
}

/// Seven hosts send 100 KB each to one, over 1 Gb/s, with processes that are late. A pacer that
/// counted from when its timer fired would add half of the lateness to each of the 12 us between
/// two pulls.
#[test]
fn pulls_keep_their_rate_on_hosts_that_are_late() {
    let config = Config { initial_window: 12, ..Config::paper(1436) };
    let rate = Rate(1_000_000_000);
    let done = |late_us| {
        let link = Link { rate, delay: Dur::from_us(2), mtu: 1500, paths: 4, hashed: false };
        let hosts = (0..8).map(|_| Box::new(Ndp::new(config.clone()).unwrap()));
        let mut net = Net::new(1, link, hosts.collect());
        net.set_bottleneck(HostId(0), Bottleneck { rate, packets: 8, trim: true });
        net.set_naps(Naps { max: Dur::from_us(late_us), pause: Dur::ZERO, pause_every: 0 });
        let keys: Vec<_> = (1..8).map(|h| net.submit(HostId(h), HostId(0), 100_000)).collect();
        net.run_until_idle(Dur::from_ms(1_000));
        let ends = keys.iter().map(|&key| net.record(key).delivered.unwrap());
        ends.max().unwrap().since(Time::ZERO)
    };
    let packets = 7 * 100_000_u64.div_ceil(1436);
    let optimum = rate.serialise(1500).0 * packets;
    for late_us in [0, 10, 50, 100] {
        let share = done(late_us).0 as f64 / optimum as f64;
        assert!(share < 1.1, "{late_us} us late: {share} times the optimum");
        println!("{late_us} us late: {share:.3} times the optimum");
    }
}
