//! The suite that every transport passes, with the three programs (specs/nanotransport.md#N7).

use std::sync::Arc;

use endpoint::Endpoint;
use testkit::conformance::{self, Opts};
use units::{Bytes, Dur};

use super::PROGRAMS;
use crate::nano::{Clocked, Config, Nano, Program};

/// At the pace of the suite's network, and with a patience for faults that the NIC does not have:
/// messages are never given up, and what has come is kept for longer than any packet is late.
fn lossy(program: Program) -> Config {
    let firesim = Config::firesim(program);
    Config {
        timeout: Dur::from_ms(5),
        max_timeouts: None,
        ingress_timeouts: 1_000_000,
        // A full packet at 1 Gb/s, the slowest receiver of the suite.
        pull_cycles: 28_000,
        ..firesim
    }
}

fn opts(program: Program) -> Opts {
    Opts {
        payload: Bytes(1024),
        window: Bytes(1900),
        trims: program != Program::Homa,
        bounces: false,
        hashed_paths: true,
        patience: Dur::from_ms(1_000),
    }
}

/// N7: delivered once, whatever is lost, trimmed, late or doubled.
#[test]
fn n7_every_program_passes_the_suite() {
    for program in PROGRAMS {
        let config = Arc::new(lossy(program));
        let make = |_| Box::new(Nano::new(Arc::clone(&config)).unwrap()) as Box<dyn Endpoint>;
        conformance::run_bounded(make, opts(program));
    }
}

/// By the clocked law, with a table that holds all messages of the suite.
#[test]
fn n7_every_clocked_program_passes_the_suite() {
    for program in PROGRAMS {
        let config = Config { clocked: true, remember: Some(1 << 14), ..lossy(program) };
        let config = Arc::new(Config { tx_messages: 16, rx_messages: 16, ..config });
        let make = |_| Box::new(Clocked::new(Arc::clone(&config)).unwrap()) as Box<dyn Endpoint>;
        conformance::run_bounded(make, opts(program));
    }
}

/// Few numbers, few buffers of two sizes, a window of one packet.
#[test]
fn a_small_nic_passes_the_suite() {
    for program in PROGRAMS {
        let sizes = [(4_096, 2), (38_912, 2)];
        let buffers = sizes.map(|(bytes, count)| crate::nano::SizeClass { bytes, count }).to_vec();
        let (tx_messages, rx_messages) = (2, 4);
        let config = Config { rtt_packets: 1, tx_messages, rx_messages, buffers, ..lossy(program) };
        let config = Arc::new(config);
        let make = |_| Box::new(Nano::new(Arc::clone(&config)).unwrap()) as Box<dyn Endpoint>;
        conformance::run_bounded(make, opts(program));
    }
}
