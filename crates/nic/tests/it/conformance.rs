//! The programs of `p4/` through the suite that every transport passes, with as many timeouts as it
//! takes (specs/nanotransport.md#N7).

use crate::shipped;

use std::path::Path;
use std::sync::Arc;

use endpoint::Endpoint;
use p4::ir;
use shipped::{HOMA_TR, compile, config, nic};
use testkit::conformance::{self, Opts};
use trimline_nic::nano::buffers::SizeClass;
use trimline_nic::nano::config::Config;
use units::{Bytes, Dur};
use wire::nano::Protocol;

const NDP: u8 = Protocol::Ndp.number();
const HOMA: u8 = Protocol::Homa.number();
/// For experiments (RFC 3692).
const WINDOW: u8 = 253;

/// 64 KB messages, and a receiver that waits for them as long as the suite can make it.
fn patient(protocol: u8) -> Config {
    Config {
        classes: vec![SizeClass { bytes: 65_535, buffers: 64 }],
        tx_messages: 64,
        rx_messages: 64,
        // Longer than hosts of the suite are late, both ways, and a message queues for its pace.
        timeout: Dur::from_us(1_000),
        ingress_timeouts: 100,
        max_timeouts: None,
        // 1088 B at 10 Gb/s.
        pull_cycles: 2_786,
        protocols: vec![protocol],
        ..config(Protocol::Ndp, 3)
    }
}

fn conforms(protocol: u8, program: &str, constants: &[(&str, i128)], trims: bool) {
    conforms_on(&patient(protocol), &compile(program, constants), trims);
}

fn conforms_on(config: &Config, program: &Arc<ir::Program>, trims: bool) {
    let make = |_| Box::new(nic(program, config.clone())) as Box<dyn Endpoint>;
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
    conforms(NDP, "ndp.p4", &[], true);
}

#[test]
fn n7_homa_delivers_everything_once() {
    conforms(HOMA, "homa.p4", &[], false);
}

#[test]
fn n7_homa_tr_delivers_everything_once() {
    conforms(HOMA, "homa.p4", HOMA_TR, true);
}

#[test]
fn n7_both_in_one_image_deliver_everything_once() {
    conforms(NDP, "ndp_homa.p4", HOMA_TR, true);
    conforms(HOMA, "ndp_homa.p4", HOMA_TR, true);
}

/// The program of docs/p4-transport.md.
#[test]
fn n7_the_window_of_the_docs_delivers_everything_once() {
    conforms(WINDOW, "window.p4", &[], false);
}

/// By the clocked law, with a table that holds all messages of the suite.
#[test]
fn n7_clocked_hosts_deliver_everything_once() {
    let of = |protocol| Config { clocked: true, remember: Some(1 << 14), ..patient(protocol) };
    for (protocol, program, constants, trims) in [
        (NDP, "ndp.p4", &[][..], true),
        (HOMA, "homa.p4", &[], false),
        (HOMA, "homa.p4", HOMA_TR, true),
        (WINDOW, "window.p4", &[], false),
    ] {
        conforms_on(&of(protocol), &compile(program, constants), trims);
    }
}

/// Nothing tells senders to slow down here: HPCC's windows stay as they begin, Swift's grow, DCQCN
/// has none. Nothing but delay tells senders to slow down here: HPCC's windows stay as they begin,
/// DCQCN has none.
#[test]
fn n7_hpcc_delivers_everything_once() {
    conforms(197, "hpcc.p4", &[], false);
}

#[test]
fn n7_swift_delivers_everything_once() {
    // Delays of 20 ms, where 27 us are wanted, make it a packet every 84 ms: receivers must not end
    // such messages.
    let config = Config { ingress_timeouts: 10_000, ..patient(198) };
    conforms_on(&config, &compile("swift.p4", &[]), false);
}

#[test]
fn n7_dcqcn_delivers_everything_once() {
    conforms(199, "dcqcn.p4", &[], false);
}

#[test]
fn n7_nscc_delivers_everything_once() {
    conforms(200, "nscc.p4", &[], true);
}

/// The page and the program are one text.
#[test]
fn the_docs_hold_the_whole_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let page = read("docs/p4-transport.md");
    let blocks = page.split("```p4\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    assert_eq!(blocks.collect::<Vec<_>>().join("\n"), read("p4/window.p4"));
}
