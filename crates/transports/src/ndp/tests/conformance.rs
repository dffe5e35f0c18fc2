//! The suite that every transport passes, for each strategy and discipline.

use endpoint::Endpoint;
use testkit::conformance::{self, Opts};
use units::{Bytes, Dur};

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
