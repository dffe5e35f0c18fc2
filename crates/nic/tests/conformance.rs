//! The programs of `p4/` through the suite that every transport passes, with as many timeouts as it takes.

mod shipped;

use endpoint::Endpoint;
use shipped::{HOMA_TR, compile, config, nic};
use testkit::conformance::{self, Opts};
use trimline_nic::nano::buffers::SizeClass;
use trimline_nic::nano::config::Config;
use units::{Bytes, Dur};
use wire::nano::Protocol;

/// 64 KB messages, and a receiver that waits for them as long as the suite can make it.
fn patient(protocol: Protocol) -> Config {
    Config {
        classes: vec![SizeClass { bytes: 65_535, buffers: 64 }],
        tx_messages: 64,
        rx_messages: 64,
        timeout: Dur::from_us(200),
        ingress_timeouts: 100,
        timeouts_max: None,
        // 1088 B at 10 Gb/s.
        pull_cycles: 2_786,
        ..config(protocol, 3)
    }
}

fn conforms(protocol: Protocol, program: &str, constants: &[(&str, u128)], trims: bool) {
    let program = compile(program, constants);
    let make = |_| Box::new(nic(&program, patient(protocol))) as Box<dyn Endpoint>;
    let opts = Opts {
        payload: Bytes(1024),
        window: Bytes(3 * 1024),
        trims,
        bounces: false,
        hashed_paths: false,
        patience: Dur::from_ms(20_000),
    };
    conformance::run_bounded(make, opts);
}

#[test]
fn n7_ndp_delivers_everything_once() {
    conforms(Protocol::Ndp, "ndp.p4", &[], true);
}

#[test]
fn n7_homa_delivers_everything_once() {
    conforms(Protocol::Homa, "homa.p4", &[], false);
}

#[test]
fn n7_homa_tr_delivers_everything_once() {
    conforms(Protocol::Homa, "homa.p4", HOMA_TR, true);
}
