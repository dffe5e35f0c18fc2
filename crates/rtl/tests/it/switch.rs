//! The port of `ndp_switch.p4` beside the interpreter and a model of its queues (docs/nic.md, S1 to
//! S6), every output in every cycle.

use std::sync::Arc;

use p4::ir;
use p4::state::State;
use trimline_rtl::cosim::switch::{Compared, run};
use trimline_rtl::switch::{self, Sizes};

use crate::{everything, folder, tools, traffic};

/// Some 30,000 cycles.
const PACKETS: u64 = 4_000;

/// A mistake in the top: what stands there, and what instead.
const MISTAKES: [(&str, &str); 5] = [
    (".join_length_i(left)", ".join_length_i(length)"),
    ("&& !drops && !bounces", "&& !drops"),
    ("(drop || !in_accepted_o)", "drop"),
    ("trim_to < length ? trim_to : length", "trim_to > length ? trim_to : length"),
    (".done_i,", ".done_i(take_i && done_i),"),
];

/// Where the port and its model part.
fn differs(
    program: &Arc<ir::Program>,
    memory: u32,
    mistake: Option<(&str, &str)>,
) -> Result<Compared, String> {
    let tools = tools("switch").ok_or("no tools")?;
    let sizes = Sizes { weights: vec![10, 1], places: 64, memory };
    let state = State::new(Arc::clone(program));
    let mut port = switch::build(program, &state, &sizes).unwrap();
    if let Some((from, to)) = mistake {
        let (_, top) = port.files.last_mut().unwrap();
        assert!(top.contains(from), "{from}");
        *top = top.replace(from, to);
    }
    let folder = folder(&format!("switch-{memory}-{}", mistake.map_or(0, |(from, _)| from.len())));
    let built = port.design(&folder).unwrap().build(&tools, &folder);
    let mut circuit = built.map_err(|why| why.to_string())?.start().unwrap();
    run(&mut circuit, (&port, &sizes), &state, (7, PACKETS), &mut |_| {})
        .map_err(|why| why.to_string())
}

/// NDP's switch with queues so short that headers go back; with memory that is too small for what
/// the program lets in; and with mistakes.
#[test]
fn the_port_of_ndp_is_its_program_between_its_queues() {
    if tools("switch").is_none() {
        return;
    }
    let constants = [("DATA_CAPACITY", 30_000), ("HEADER_CAPACITY", 1_000)];
    let program = traffic::compile("ndp_switch.p4", &constants);
    let compared = differs(&program, 31_000, None).unwrap_or_else(|why| panic!("{why}"));
    println!("31000 B: {compared:?}");
    let Compared { trims, bounces, drops, .. } = compared;
    assert!(trims > 100 && bounces > 100 && drops > 100, "{compared:?}");
    if everything() {
        let compared = differs(&program, 20_000, None).unwrap_or_else(|why| panic!("{why}"));
        println!("20000 B: {compared:?}");
        assert!(compared.losses > 100, "{compared:?}");
    }
    for mistake in MISTAKES.into_iter().take(if everything() { MISTAKES.len() } else { 1 }) {
        let found = differs(&program, 31_000, Some(mistake)).unwrap_err();
        println!("`{}` found: {found}", mistake.1);
        // Not because it is no SystemVerilog.
        assert!(found.starts_with("cycle ") || found.contains("Assertion failed"), "{found}");
    }
}
