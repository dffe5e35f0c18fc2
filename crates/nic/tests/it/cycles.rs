//! Extern requests cycle by cycle, as hardware will see them (specs/nanotransport.md#4): a
//! read-modify-write unit reads its memory in one cycle, writes it in the next, and answers in the
//! one after that. It must not be asked in two cycles running, or the second request would read
//! what the first is about to replace. Cycles are those of `ir::Hardware`.

use crate::shipped;

use std::collections::BTreeMap;

use p4::ir::{self, ExternId, Hardware, Port};
use shipped::{HOMA_TR, compile, compile_changed};

/// Cycles from a request of a read-modify-write unit to its answer.
const LATENCY: u32 = 2;

/// In which cycles of the pipeline a program calls each of its externs.
fn call_sites(program: &ir::Program) -> BTreeMap<ExternId, Vec<u32>> {
    let mut sites: BTreeMap<ExternId, Vec<u32>> = BTreeMap::new();
    for memory in Hardware::new(program).unwrap().memories() {
        for access in memory.accesses {
            if let Port::Call(which) = access.port {
                sites.entry(which).or_default().push(access.at.cycle);
            }
        }
    }
    sites
}

/// The ports of units that read, modify and write.
fn ports(program: &ir::Program) -> impl Iterator<Item = (&ir::Extern, Vec<u32>)> {
    let called = |(which, sites): (ExternId, _)| (&program.externs[which.index()], sites);
    call_sites(program).into_iter().map(called).filter(|(called, _)| called.latency == LATENCY)
}

/// The cycles in which a program calls `kind`.`method`, each once.
fn cycles_of(program: &ir::Program, kind: &str, method: &str) -> Vec<u32> {
    let mut cycles = Vec::new();
    for (which, sites) in call_sites(program) {
        let called = &program.externs[which.index()];
        if (called.kind.as_str(), called.method.as_str()) == (kind, method) {
            cycles.extend(sites);
        }
    }
    cycles.sort_unstable();
    cycles.dedup();
    cycles
}

/// N1: what needs an answer comes two cycles after the request, not earlier and, in these programs,
/// not later: lookup, registers, scheduler, second port, GRANT.
#[test]
fn n1_answers_come_two_cycles_after_requests() {
    let ndp = compile("ndp.p4", &[]);
    assert_eq!(cycles_of(&ndp, "get_rx_msg_info", ""), [0]);
    assert_eq!(cycles_of(&ndp, "IfElseRaw", "execute"), [2]);
    // The answer to a duplicate of a message that is over needs the lookup alone, and waits.
    assert_eq!(cycles_of(&ndp, "ctrl_pkt", ""), [4]);
    let homa = compile("homa.p4", HOMA_TR);
    assert_eq!(cycles_of(&homa, "get_rx_msg_info", ""), [0]);
    assert_eq!(cycles_of(&homa, "DualPortRaw", "execute"), [2]);
    assert_eq!(cycles_of(&homa, "SrptScheduler", "schedule"), [4]);
    assert_eq!(cycles_of(&homa, "DualPortRaw", "second"), [6]);
    assert_eq!(cycles_of(&homa, "grant_pkt", ""), [8], "that of a duplicate waits");
    for program in [ndp, homa] {
        let units = ["get_rx_msg_info", "IfElseRaw", "DualPortRaw", "SrptScheduler"];
        for called in program.externs.iter().filter(|called| units.contains(&called.kind.as_str()))
        {
            assert_eq!(called.latency, LATENCY, "{called:?}");
        }
    }
}

/// N12: the shortest packet has 65 bytes, two words of 512 bits. If every port is asked in one
/// cycle of the pipeline, its requests are two cycles apart at least; with two places, that of a
/// packet in the later one and that of a packet behind it in the earlier one could meet.
#[test]
fn n12_every_port_is_asked_in_one_cycle_of_the_pipeline() {
    let programs =
        [("ndp.p4", &[][..]), ("homa.p4", HOMA_TR), ("ndp_homa.p4", &[]), ("window.p4", &[])];
    for (name, constants) in programs {
        let program = compile(name, constants);
        assert!(ports(&program).count() > 0);
        for (called, sites) in ports(&program) {
            assert!(sites.iter().all(|cycle| *cycle == sites[0]), "{name}: {called:?} {sites:?}");
        }
    }
}

/// What the test above would find: a register that is asked again for what it has answered.
#[test]
fn a_port_that_is_asked_in_two_cycles_is_seen() {
    let program = compile_changed("window.p4", |text| {
        let again = "acknowledge(info.ack_no, arrived.execute(info.rx_msg_id, count == 1, \
                     RAW_ADD, 16w1, RAW_READ, 16w0) + nic.rtt_pkts);";
        text.replacen("acknowledge(info.ack_no, count + nic.rtt_pkts);", again, 1)
    });
    let apart = ports(&program).filter(|(_, sites)| sites.iter().any(|c| *c != sites[0]));
    let apart: Vec<_> = apart.map(|(called, sites)| (called.kind.as_str(), sites)).collect();
    assert_eq!(apart, [("IfElseRaw", vec![2, 4])]);
}
