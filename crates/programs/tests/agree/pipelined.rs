//! A circuit with several packets in it does what the interpreter does packet by packet, if they
//! come no closer than its least spacing; and does not, where that has a reason, if they do.

use std::sync::Arc;

use p4::ir::circuit::Pipelined;
use p4::ir::{self, Hardware, PipelineId};
use trimline_programs::PROGRAMS;

use crate::draw::{self, Draw};
use crate::traffic::{self, All, Fed, Input, Instances};
use crate::traffic::{compile, disturbance, inputs, left_behind, one_by_one};

/// The same with a packet every so many cycles. The results of a packet disturb externs in its last
/// cycle, before what is asked in it; what they are is known from the packets one by one.
fn pipelined(
    program: &Arc<ir::Program>,
    at: PipelineId,
    inputs: &[Input],
    spacing: u32,
    (fed, wanted): (Fed, &All),
) -> All {
    let mut circuit = Pipelined::new(Arc::clone(program), at).unwrap();
    let last = Hardware::new(program).unwrap().schedules()[at.index()].cycles() - 1;
    let mut externs = Instances::new(program);
    let (mut outcomes, mut cycle, mut waiting) = (Vec::new(), 0, inputs.iter());
    while outcomes.len() < inputs.len() {
        if cycle % spacing == 0
            && let Some((packet, meta)) = waiting.next()
        {
            circuit.enter(packet, meta);
        }
        let done = cycle.checked_sub(last).filter(|since| since % spacing == 0);
        let done = done.and_then(|since| wanted.outcomes.get((since / spacing) as usize));
        if let Some((kind, done)) = fed.zip(done) {
            externs.disturb(kind, disturbance(done));
        }
        outcomes.extend(circuit.step(&mut externs));
        cycle += 1;
    }
    left_behind(outcomes, externs, circuit.state())
}

/// Holds all pipelines of a program to the interpreter, at their least spacing and at some above,
/// and sees that a closer one differs.
fn hold(name: &str, program: &Arc<ir::Program>, packet: fn(&mut Draw) -> Vec<u8>, fed: Fed) {
    let kinds: Vec<&str> = fed.into_iter().collect();
    let spacings = Hardware::new(program).unwrap().spacings(&kinds);
    for spacing in spacings {
        let (at, least) = (spacing.pipeline, spacing.cycles);
        let packets = inputs(&mut Draw(7), program, at, packet, 300);
        let wanted = one_by_one(program, at, &packets, fed);
        for cycles in [least, least + 1, least + 5] {
            let got = pipelined(program, at, &packets, cycles, (fed, &wanted));
            let pairs = got.outcomes.iter().zip(&wanted.outcomes);
            for (number, (got, wanted)) in pairs.enumerate() {
                assert_eq!(got, wanted, "{name}: {at:?}, packet {number}, {cycles} cycles apart");
            }
            assert!(got == wanted, "{name}: {at:?}: what is left, {cycles} cycles apart");
        }
        if least > ir::PACKET_CYCLES {
            let differs = (0..100).any(|seed| {
                let packets = inputs(&mut Draw(seed), program, at, packet, 300);
                let wanted = one_by_one(program, at, &packets, fed);
                pipelined(program, at, &packets, least - 1, (fed, &wanted)) != wanted
            });
            assert!(differs, "{name}: {spacing:?}: also {} cycles apart", least - 1);
        }
    }
}

#[test]
fn shipped_programs_are_exact_at_their_least_spacing_and_not_below() {
    for variant in PROGRAMS {
        let program = compile(variant.file, variant.constants);
        hold(variant.name, &program, traffic::frame, None);
        hold(variant.name, &program, traffic::frame, Some("get_rx_msg_info"));
    }
}

#[test]
fn drawn_programs_are_exact_at_their_least_spacing() {
    for number in 0..draw::PROGRAMS {
        let program = Arc::new(draw::program(number));
        for spacing in Hardware::new(&program).unwrap().spacings(&[]) {
            let packets =
                inputs(&mut Draw(number), &program, spacing.pipeline, traffic::packet, 500);
            let wanted = one_by_one(&program, spacing.pipeline, &packets, None);
            for cycles in [spacing.cycles, spacing.cycles + 3] {
                let nothing = (None, &wanted);
                let got = pipelined(&program, spacing.pipeline, &packets, cycles, nothing);
                let pairs = got.outcomes.iter().zip(&wanted.outcomes);
                for (turn, (got, wanted)) in pairs.enumerate() {
                    assert_eq!(got, wanted, "program {number}, packet {turn}\n{program}");
                }
                assert!(got == wanted, "program {number}: what is left, {cycles} cycles apart");
            }
        }
    }
}
