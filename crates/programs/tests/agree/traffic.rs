//! Packets for programs, externs that answer anything, and what the interpreter makes of them: for
//! what is held to the interpreter, here and in `crates/rtl`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use p4::interp::Machine;
use p4::ir::circuit::Outcome;
use p4::ir::{self, CounterId, ExternId, PipelineId, RegisterId};
use p4::program::{Externs, Program};

use crate::draw::Draw;

/// A program as a scenario would compile it.
pub(crate) fn compile(file: &str, constants: &[(&str, i128)]) -> Arc<ir::Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|e| e.to_string());
    let constants = constants.iter().map(|(name, value)| ((*name).to_owned(), *value));
    let constants: Vec<(String, i128)> = constants.collect();
    Arc::new(p4::front::compile(&text, file, &constants).unwrap())
}

/// Bytes, of many values or few.
pub(crate) fn packet(draw: &mut Draw) -> Vec<u8> {
    let length = draw.below(120) as usize;
    let few = draw.below(2) == 0;
    (0..length)
        .map(|_| if few { [0, 0, 1, 0xff][draw.below(4) as usize] } else { draw.bits() as u8 })
        .collect()
}

/// Ethernet, IPv4 and bytes of a transport header, now and then cut off or not quite right.
pub(crate) fn frame(draw: &mut Draw) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..64 + draw.below(60)).map(|_| draw.bits() as u8).collect();
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[23] = [154, 155, 197, 198, 199, 253, 200][draw.below(7) as usize];
    // One flag as a rule.
    frame[34] = if draw.below(4) == 0 { draw.bits() as u8 } else { 1 << draw.below(5) };
    if draw.below(4) == 0 {
        key_value(draw, &mut frame);
    }
    if draw.below(20) == 0 {
        let at = draw.below(frame.len() as u64) as usize;
        frame[at] ^= 1 << draw.below(8);
    }
    if draw.below(20) == 0 {
        frame.truncate(draw.below(70) as usize);
    }
    frame
}

/// A request of `kv_rules.p4` behind the header: few keys, so that some are found.
pub(crate) fn key_value(draw: &mut Draw, frame: &mut Vec<u8>) {
    frame[34] = 0x01;
    frame[39..41].copy_from_slice(&32_u16.to_be_bytes());
    frame.truncate(64);
    frame.extend(b"KVC1");
    frame.push(1 + draw.below(2) as u8);
    frame.extend([0; 10]);
    frame.push(draw.below(4) as u8);
    frame.extend((0..16).map(|_| draw.bits() as u8));
}

/// Answers of each instance that depend on the call and on all calls of that instance before it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Instances {
    program: Arc<ir::Program>,
    states: BTreeMap<ExternId, u64>,
}

impl Instances {
    pub(crate) fn new(program: &Arc<ir::Program>) -> Self {
        Self { program: Arc::clone(program), states: BTreeMap::new() }
    }

    /// Something else changes what instances of this kind answer.
    pub(crate) fn disturb(&mut self, kind: &str, by: u64) {
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
pub(crate) fn interpreted(
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
pub(crate) type Input = (Vec<u8>, Vec<u128>);

/// What comes of some packets, one after the other, and what they leave behind.
#[derive(Debug, PartialEq)]
pub(crate) struct All {
    pub(crate) outcomes: Vec<Outcome>,
    externs: Instances,
    registers: Vec<Vec<u128>>,
    counters: Vec<Vec<p4::state::Count>>,
}

pub(crate) fn left_behind(
    outcomes: Vec<Outcome>,
    externs: Instances,
    state: &p4::state::State,
) -> All {
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
pub(crate) type Fed = Option<&'static str>;

/// What the results of the packet of this number do to the externs that they disturb.
pub(crate) fn disturbance(outcome: &Outcome) -> u64 {
    outcome.meta.iter().fold(1, |seed, value| Draw(seed ^ *value as u64).bits())
}

pub(crate) fn one_by_one(
    program: &Arc<ir::Program>,
    at: PipelineId,
    inputs: &[Input],
    fed: Fed,
) -> All {
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

/// Packets, half of them almost like the one before: so that packets meet at what they have in
/// common.
pub(crate) fn inputs(
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
