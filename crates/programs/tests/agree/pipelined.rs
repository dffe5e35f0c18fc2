//! A circuit with several packets in it does what the interpreter does packet by packet, if they
//! come no closer than its least spacing; and does not, where that has a reason, if they do.

use std::collections::BTreeMap;
use std::sync::Arc;

use p4::interp::Machine;
use p4::ir::circuit::{Outcome, Pipelined};
use p4::ir::{self, CounterId, ExternId, Hardware, PipelineId, RegisterId};
use p4::program::{Externs, Program};
use trimline_programs::PROGRAMS;

use crate::draw::{self, Draw};
use crate::{drawn, shipped};

/// Answers of each instance that depend on the call and on all calls of that instance before it.
#[derive(Clone, Debug, PartialEq)]
struct Instances {
    program: Arc<ir::Program>,
    states: BTreeMap<ExternId, u64>,
}

impl Instances {
    fn new(program: &Arc<ir::Program>) -> Self {
        Self { program: Arc::clone(program), states: BTreeMap::new() }
    }

    /// Something else changes what instances of this kind answer.
    fn disturb(&mut self, kind: &str, by: u64) {
        for (at, known) in (0..).map(ExternId).zip(&self.program.externs) {
            if known.kind == kind {
                let state = self.states.entry(self.program.instance(at)).or_default();
                *state = Draw(*state ^ by).bits();
            }
        }
    }
}

impl Externs for Instances {
    fn call(&mut self, which: ExternId, args: &[u128], results: &mut [u128]) {
        let state = self.states.entry(self.program.instance(which)).or_default();
        let seed = args.iter().fold(*state ^ u64::from(which.0), |seed, arg| {
            Draw(seed ^ *arg as u64 ^ (*arg >> 64) as u64).bits()
        });
        let mut draw = Draw(seed);
        *state = draw.bits();
        for result in results {
            *result = draw.value(128);
        }
    }
}

/// What the interpreter makes of a packet.
fn interpreted(
    machine: &mut Machine,
    pipeline: PipelineId,
    packet: &[u8],
    meta: &[u128],
    externs: &mut Instances,
) -> Outcome {
    let (mut meta, mut out) = (meta.to_vec(), Vec::new());
    let result = machine.run(pipeline, packet, &mut meta, &mut out, externs);
    Outcome { result, meta, out }
}

/// A packet and its metadata.
type Input = (Vec<u8>, Vec<u128>);

/// What comes of some packets, one after the other, and what they leave behind.
#[derive(Debug, PartialEq)]
struct All {
    outcomes: Vec<Outcome>,
    externs: Instances,
    registers: Vec<Vec<u128>>,
    counters: Vec<Vec<p4::state::Count>>,
}

fn left_behind(outcomes: Vec<Outcome>, externs: Instances, state: &p4::state::State) -> All {
    let program = Arc::clone(state.program());
    let places = |size: u32| 0..u128::from(size.min(64));
    let registers = (0..).map(RegisterId).zip(&program.registers);
    let counters = (0..).map(CounterId).zip(&program.counters);
    All {
        outcomes,
        externs,
        registers: registers
            .map(|(id, r)| places(r.size).map(|at| state.register(id, at)).collect())
            .collect(),
        counters: counters
            .map(|(id, c)| places(c.size).map(|at| state.counted(id, at)).collect())
            .collect(),
    }
}

/// The kind of extern that results disturb, if they do.
type Fed = Option<&'static str>;

/// What the results of the packet of this number do to the externs that they disturb.
fn disturbance(outcome: &Outcome) -> u64 {
    outcome.meta.iter().fold(1, |seed, value| Draw(seed ^ *value as u64).bits())
}

fn one_by_one(program: &Arc<ir::Program>, at: PipelineId, inputs: &[Input], fed: Fed) -> All {
    let mut machine = Machine::new(Arc::clone(program));
    let mut externs = Instances::new(program);
    let mut outcomes = Vec::new();
    for (packet, meta) in inputs {
        let outcome = interpreted(&mut machine, at, packet, meta, &mut externs);
        if let Some(kind) = fed {
            externs.disturb(kind, disturbance(&outcome));
        }
        outcomes.push(outcome);
    }
    left_behind(outcomes, externs, <Machine as Program<Instances>>::state(&mut machine))
}

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

/// Packets, half of them almost like the one before: so that packets meet at what they have in
/// common.
fn inputs(
    draw: &mut Draw,
    program: &ir::Program,
    at: PipelineId,
    packet: fn(&mut Draw) -> Vec<u8>,
    count: usize,
) -> Vec<Input> {
    let metas = &program.pipelines[at.index()].meta;
    let mut all: Vec<Input> = Vec::new();
    for _ in 0..count {
        let mut next = (packet(draw), metas.iter().map(|_| draw.value(128)).collect());
        if let Some(before) = all.last()
            && draw.below(2) == 0
        {
            next = before.clone();
            for _ in 0..draw.below(4) {
                let at = draw.below(next.0.len().max(1) as u64) as usize;
                if let Some(byte) = next.0.get_mut(at) {
                    *byte ^= draw.bits() as u8;
                }
            }
        }
        all.push(next);
    }
    all
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
        let program = shipped::compile(variant);
        hold(variant.name, &program, shipped::frame, None);
        hold(variant.name, &program, shipped::frame, Some("get_rx_msg_info"));
    }
}

#[test]
fn drawn_programs_are_exact_at_their_least_spacing() {
    for number in 0..draw::PROGRAMS {
        let program = Arc::new(draw::program(number));
        for spacing in Hardware::new(&program).unwrap().spacings(&[]) {
            let packets = inputs(&mut Draw(number), &program, spacing.pipeline, drawn::packet, 500);
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
