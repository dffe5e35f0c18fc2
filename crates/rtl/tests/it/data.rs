//! Whole NICs with their bytes beside the model of the clocked law.

use std::fs;
use std::sync::Arc;

use nic::nano::buffers::SizeClass;
use nic::nano::config::Config;
use p4::state::State;
use trimline_rtl::cosim::CosimError;
use trimline_rtl::cosim::bytes::{Bytes, Carried, Pace};
use trimline_rtl::cosim::traffic::{Plan, Traffic};
use trimline_rtl::nic::data;
use trimline_rtl::sim::Program;
use units::Dur;

use crate::busy::{config, traffic_of};
use crate::latency::{Latency, latency};
use crate::whole::{BOTH, BYPASS, Case, HOMA, HOMA_TR, NDP, WINDOW, packets};
use crate::{folder, tools};

/// What a build has beside the case: its sizes, and mistakes in it: file, text, and what is in its
/// place.
type Mistake = &'static [(&'static str, &'static str, &'static str)];

/// A NIC of the case in hardware.
fn build(case: &Case, config: &Config, name: &str, mistake: Mistake) -> Option<Program> {
    let tools = tools(name)?;
    let program = case.compile();
    let state = State::new(Arc::clone(&program));
    let nic = data::build(&program, &state, config).unwrap();
    let folder = folder(name);
    let design = nic.design(&folder).unwrap();
    for (file, from, to) in mistake {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches(from).count(), 1, "{file}: `{from}`");
        // A mistake may leave something without use.
        fs::write(&path, LENIENT.to_owned() + &text.replace(from, to)).unwrap();
    }
    Some(design.build(&tools, &folder).unwrap_or_else(|why| panic!("{why}")))
}

const LENIENT: &str = "// verilator lint_off UNUSEDSIGNAL\n// verilator lint_off WIDTH\n";

fn runs(case: &Case, config: &Config, built: &Program, pace: Pace) -> Bytes {
    let is_dense = pace != Pace::Link;
    let plan = Plan { seed: 1, spacing: case.spacing, is_dense };
    Bytes::new(built.start().unwrap(), traffic(case, config, plan).rough(), config.clone(), pace)
}

fn traffic(case: &Case, config: &Config, plan: Plan) -> Traffic {
    traffic_of(&case.compile(), config, plan)
}

/// Frames and bytes under loss, trims, repetitions and delays, a beat each cycle, at the link's
/// pace, and with everybody stalling.
fn agree(case: &Case) {
    let config = config(case.protocols);
    let Some(built) = build(case, &config, &format!("data_{}", case.name), &[]) else { return };
    for pace in [Pace::Beats, Pace::Link, Pace::Stalls] {
        let mut run = runs(case, &config, &built, pace);
        match run.run(packets() / 20).and_then(|_| run.drain()) {
            Ok(carried) => {
                println!("{}, {pace:?}: {carried:?}", case.name);
                let Carried { late, gaps, shut, messages, .. } = carried;
                assert!(messages > 0);
                assert!(pace == Pace::Stalls || (late, gaps, shut) == (0, 0, 0));
            }
            Err(why) => panic!("{}, {pace:?}: {why}", case.name),
        }
    }
    is_fast(case, &built);
}

/// Cycles in and out that the publication has, worst case.
const PUBLISHED: (u64, u64) = (23, 12);

/// From first beat to first beat, a message of 1 B and one of 1024. A packet counts when all of it
/// is there (C2), so the other beats of a long frame come on top.
fn is_fast(case: &Case, built: &Program) {
    for (len, beats) in [(1, 2), (1024, 17)] {
        let took = latency(built, case.protocols[0], len);
        println!("{}, {len} B: {took:?}", case.name);
        let Latency { out, into, behind } = took;
        assert_eq!(into, behind + beats - 1, "{}, {len} B", case.name);
        assert!(behind < PUBLISHED.0 && out <= PUBLISHED.1, "{}, {len} B: {took:?}", case.name);
        if case.name == NDP.name {
            assert_eq!((out, behind), (12, 13), "{len} B");
        }
    }
}

#[test]
fn ndp_with_bytes() {
    agree(&NDP);
}

/// All programs, and at the rate of their links.
const ALL: &str = "TRIMLINE_RTL_ALL";

#[test]
fn all_programs_with_bytes() {
    if std::env::var_os(ALL).is_some() {
        [HOMA, HOMA_TR, BOTH, WINDOW, BYPASS].iter().for_each(agree);
    }
}

/// About so many cycles at the rate of links, whatever the length of messages.
const BUSY: u64 = 100_000;

/// Frames that a link brings in that time (a cycle is 62.5 bits) where each packet of `len`
/// bytes, or of 1024, comes with an answer of 65.
const fn frames(len: u64) -> u64 {
    let packet = if len < 1024 { len + 64 } else { 1088 };
    BUSY * 625 / ((packet + 65) * 80 / 2)
}

/// Messages of `len` bytes both ways, as fast as links carry them: no frame is refused, none
/// begins late, none has a gap.
fn keeps_up(case: &Case, built: &Program, config: &Config, len: u64) {
    let plan = Plan { seed: 1, spacing: case.spacing, is_dense: true };
    let traffic = traffic(case, config, plan).steady(len);
    let mut run = Bytes::new(built.start().unwrap(), traffic, config.clone(), Pace::Link);
    let carried = run.run(frames(len)).unwrap_or_else(|why| panic!("{why}"));
    // Half picoseconds of a byte and of a cycle.
    let time = (carried.compared.cycles * 625) as f64;
    let load = |bytes: u64| (bytes * 80) as f64 / time;
    let (came, went) = (load(carried.arrived_bytes), load(carried.frame_bytes));
    println!("{}, {len} B: links carry {came:.3} in and {went:.3} out: {carried:?}", case.name);
    let Carried { refused, late, gaps, shut, .. } = run.drain().unwrap();
    assert_eq!((refused, late, gaps, shut), (0, 0, 0, 0));
}

#[test]
fn links_are_kept_busy_both_ways() {
    if std::env::var_os(ALL).is_none() {
        return;
    }
    for case in [NDP, HOMA, HOMA_TR, BOTH, WINDOW, BYPASS] {
        // As many messages as it takes to fill a link with the shortest.
        let classes = vec![SizeClass { bytes: 1024, buffers: 64 }];
        let many = Config { tx_messages: 64, rx_messages: 64, classes, ..config(case.protocols) };
        let few = Config { tx_messages: 4, rx_messages: 4, ..config(case.protocols) };
        for (name, config, lens) in [("many", many, &[1, 1024][..]), ("few", few, &[38_912])] {
            let name = format!("rate_{}_{name}", case.name);
            let Some(built) = build(&case, &config, &name, &[]) else { return };
            lens.iter().for_each(|len| keeps_up(&case, &built, &config, *len));
        }
    }
}

/// Mistakes in what joins the two paths.
const MISTAKES: &[Mistake] = &[
    // Messages lie where the law has them.
    &[
        ("rx_packets.sv", ".packet_place_o(found.place)", ".packet_place_o(other)"),
        (
            "rx_packets.sv",
            "  always_comb begin\n    found.keep",
            "  logic [15:0] other;\n  always_comb begin\n    found.place = lookup_buf_ptr_i;\n    found.keep",
        ),
        (
            "rx_places.sv",
            "give_what_is_taken: assert ((given & free_q) == '0)",
            "give_what_is_taken: assert (1'b1 || (given & free_q) == '0)",
        ),
    ],
    // Packets in the places of others.
    &[(
        "nic_data.sv",
        ".tx_packet_offset_i(n_made_pkt_offset_o)",
        ".tx_packet_offset_i(n_made_pkt_offset_o ^ 8'd1)",
    )],
    &[(
        "nic_data.sv",
        ".rx_packet_offset_i(packet_offset)",
        ".rx_packet_offset_i(packet_offset ^ 8'd1)",
    )],
    // Messages in the buffers of others.
    &[(
        "nic_data.sv",
        ".tx_packet_ready_o(reader_ready), .tx_packet_buf_ptr_i(n_made_buf_ptr_o)",
        ".tx_packet_ready_o(reader_ready), .tx_packet_buf_ptr_i('0)",
    )],
    &[(
        "nic_data.sv",
        ".rx_packet_buf_ptr_i(packet_buf_ptr)",
        ".rx_packet_buf_ptr_i(n_lookup_buf_ptr_o)",
    )],
    // A byte of the header is payload.
    &[(
        "nic_data.sv",
        ".rx_parsed_bytes_i(n_results_bytes_o)",
        ".rx_parsed_bytes_i(n_results_bytes_o - 8'd1)",
    )],
    // A packet has the place of the one behind it.
    &[("rx_packets.sv", ".Cycles(Behind)", ".Cycles(Behind + 1)")],
    // Not among them: `.lookup_keep_i(1'b1)`, with which duplicates are written. They bring the
    // same bytes to the same place, so that nothing shows it.
    // Frames come whether there is a place for them or not, or closer than the program may have.
    &[("frame_gate.sv", "wait_q != '0 || !open_i", "wait_q != '0")],
    &[("frame_gate.sv", "wait_q != '0 || !open_i", "!open_i")],
    // Messages that are read keep their places.
    &[("rx_packets.sv", " - CountW'(done_valid_i)", "")],
    // Control packets are as short as their headers.
    &[("tx_packets.sv", "front_bytes : front_bytes + 8'd1", "front_bytes : front_bytes")],
    // More packets are chosen than there is room for.
    &[("nic_data.sv", "tx_open_i && tx_room", "tx_open_i")],
    // A cycle late.
    &[("nic.sv", "now_q <= now_q + 32'd1", "now_q <= now_q + 32'd2")],
];

/// A message's buffer is written while a packet of the message before it is still read.
const TOO_EARLY: Mistake =
    &[("nic_data.sv", ".ask_buf_ptr_i(n_submit_buf_ptr_o)", ".ask_buf_ptr_i(16'hffff)")];

/// All mistakes, not only the first.
const MUTANTS: &str = "TRIMLINE_RTL_MUTANTS";

/// What finds a mistake in a NIC of Homa-Tr with this timeout, if anything does.
fn found_by(name: &str, timeout: Dur, mistake: Mistake) -> Option<Result<(), CosimError>> {
    let config = Config { timeout, ..config(HOMA_TR.protocols) };
    let built = build(&HOMA_TR, &config, name, mistake)?;
    Some([Pace::Stalls, Pace::Beats].into_iter().try_for_each(|pace| {
        let mut run = runs(&HOMA_TR, &config, &built, pace);
        run.run(30_000).and_then(|_| run.drain()).map(|_| ())
    }))
}

#[test]
fn mistakes_in_the_joins_are_found() {
    let all = std::env::var_os(MUTANTS).is_some();
    let usual = config(HOMA_TR.protocols).timeout;
    // Such a NIC sends much again though it has arrived: a message is over, and its buffer another
    // one's, while such a packet is on its way.
    let impatient = Dur::from_ns(200);
    if all && let Some(Err(why)) = found_by("data_impatient", impatient, &[]) {
        panic!("without a mistake: {why}");
    }
    let mistakes = MISTAKES.iter().map(|mistake| (usual, *mistake));
    let mistakes = mistakes.chain([(impatient, TOO_EARLY)]);
    let wanted = if all { MISTAKES.len() + 1 } else { 1 };
    let mut missed = Vec::new();
    for (at, (timeout, mistake)) in mistakes.enumerate().take(wanted) {
        match found_by(&format!("data_mistake_{at}"), timeout, mistake) {
            Some(Err(why)) => println!("{mistake:?} found: {why}"),
            Some(Ok(())) => missed.push(mistake),
            None => return,
        }
    }
    assert!(missed.is_empty(), "not found: {missed:#?}");
}
