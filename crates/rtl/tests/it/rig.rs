//! Modules beside the interpreter: packets at their least spacing, externs that answer anything
//! after their latency, and what comes out.

use std::sync::Arc;

use p4::ir::circuit::{Outcome, Target};
use p4::ir::{self, PipelineId, RegisterId};
use p4::program::Parsed;
use p4::state::{Count, State};
use trimline_rtl::cosim::Outside;
use trimline_rtl::emit::{Module, SELECT, Unsupported, emit};
use trimline_rtl::pipelines::Pipelines;
use trimline_rtl::record::{Layout, Record};
use trimline_rtl::sim::{Program, Simulation};
use trimline_rtl::tools::Tools;

use crate::draw::Draw;
use crate::folder;
use crate::traffic::{All, Input, Instances, inputs, left_behind, one_by_one};

/// What goes through a module, and what comes out.
#[derive(Clone)]
pub(crate) struct Bench {
    name: String,
    module: Arc<Module>,
    /// The planted mistake, in a module that has some.
    mutant: usize,
    program: Arc<ir::Program>,
    ins: Layout,
    outs: Layout,
    /// Its state holds in the end what the registers and counters inside hold, too.
    outside: Outside<Instances>,
    draw: Draw,
    spacing: u64,
    packets: Arc<[Input]>,
    wanted: Arc<All>,
    outcomes: Vec<Outcome>,
}

impl Bench {
    pub(crate) fn new(
        program: &Arc<ir::Program>,
        at: PipelineId,
        packets: Vec<Input>,
        module: Module,
    ) -> Self {
        Self {
            name: module.name().to_owned(),
            ins: Layout::new(module.inputs().to_vec()),
            outs: Layout::new(module.outputs().to_vec()),
            mutant: 0,
            program: Arc::clone(program),
            outside: Outside::new(Instances::new(program), State::new(Arc::clone(program))),
            draw: Draw(99),
            spacing: module.spacing().into(),
            module: Arc::new(module),
            wanted: Arc::new(said(program, at, one_by_one(program, at, &packets, None))),
            packets: packets.into(),
            outcomes: Vec::new(),
        }
    }

    pub(crate) fn module(&self) -> &Module {
        &self.module
    }

    /// Cycles from a packet to the next.
    pub(crate) const fn spacing(&self) -> u64 {
        self.spacing
    }

    /// Anything on all inputs, and no packet.
    fn idle(&mut self) -> Record {
        let mut record = self.ins.zero();
        for port in 0..self.ins.ports().len() {
            let words: Vec<u32> =
                (0..self.ins.ports()[port].words()).map(|_| self.draw.bits() as u32).collect();
            self.ins.set_words(&mut record, port, &words);
        }
        self.set(&mut record, "valid_i", 0);
        if !self.module.mutants().is_empty() {
            self.set(&mut record, SELECT.0, self.mutant as u128);
        }
        record
    }

    fn set(&self, record: &mut Record, name: &str, value: u128) {
        self.ins.set(record, self.ins.port(name), value);
    }

    fn get(&self, record: &Record, name: &str) -> u128 {
        self.outs.get(record, self.outs.port(name))
    }

    fn enter(&self, record: &mut Record, (packet, meta): &Input) {
        self.set(record, "valid_i", 1);
        self.set(record, "length_i", packet.len() as u128);
        for (name, value) in self.module.ports().meta_in.iter().zip(meta) {
            if let Some(name) = name {
                self.set(record, name, *value);
            }
        }
        let window = self.module.window() as usize;
        if window > 0 {
            let port = self.ins.port("packet_i");
            // What is behind the packet's end is anything.
            let mut words = self.ins.get_words(record, port).to_vec();
            for (at, byte) in packet.iter().take(window).enumerate() {
                let low = 8 * (window - 1 - at);
                let word = &mut words[low / 32];
                *word = *word & !(0xff << (low % 32)) | u32::from(*byte) << (low % 32);
            }
            self.ins.set_words(record, port, &words);
        }
    }

    /// The inputs of a cycle.
    fn inputs(&mut self, now: u64) -> Record {
        let mut record = self.idle();
        if now.is_multiple_of(self.spacing)
            && let Some(input) = self.packets.get((now / self.spacing) as usize)
        {
            self.enter(&mut record, input);
        }
        let ins = &self.ins;
        let set = |name: &str, value: u128| ins.set(&mut record, ins.port(name), value);
        self.outside.answer(now, self.module.requests(), set);
        record
    }

    /// The outputs of a cycle, and where they differ.
    fn outputs(&mut self, out: &Record, now: u64) -> Result<(), String> {
        let get = |name: &str| self.outs.get(out, self.outs.port(name));
        self.outside.ask(now, self.module.requests(), get);
        let name = &self.name;
        let since = now.checked_sub(self.module.latency().into());
        let due = since.is_some_and(|since| {
            since.is_multiple_of(self.spacing) && since / self.spacing < self.packets.len() as u64
        });
        if (self.get(out, "valid_o") == 1) != due {
            return Err(format!("{name}: valid in cycle {now}: {}", !due));
        }
        if due {
            let (outcome, number) = (self.outcome(out), self.outcomes.len());
            let wanted = &self.wanted.outcomes[number];
            if outcome.as_ref() != Some(wanted) {
                return Err(format!(
                    "{name}: packet {number}, cycle {now}: {outcome:?}, wanted {wanted:?}"
                ));
            }
            self.outcomes.extend(outcome);
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.outcomes.len() == self.packets.len()
    }

    /// What comes out; nothing if that cannot be.
    fn outcome(&self, out: &Record) -> Option<Outcome> {
        if self.get(out, "accepted_o") == 0 {
            let error = ir::ErrorId(self.get(out, "error_o") as u32);
            return Some(Outcome { result: Err(error), meta: Vec::new(), out: Vec::new() });
        }
        let bytes = self.get(out, "bytes_o") as usize;
        let names = self.module.ports().meta_out.iter();
        let meta = names.map(|name| name.as_ref().map_or(0, |name| self.get(out, name))).collect();
        let mut header = Vec::new();
        if self.module.ports().header {
            let port = self.outs.port("header_o");
            let words = self.outs.get_words(out, port);
            let whole = self.outs.ports()[port].bits() as usize / 8;
            let byte = |at: usize| {
                let low = 8 * (whole - 1 - at);
                (words[low / 32] >> (low % 32)) as u8
            };
            let length = self.get(out, "header_length_o") as usize;
            header.extend((0..whole).map(byte));
            // Zeros behind the headers.
            if header.get(length..)?.iter().any(|byte| *byte != 0) {
                return None;
            }
            header.truncate(length);
        }
        Some(Outcome { result: Ok(Parsed { bytes }), meta, out: header })
    }

    /// The inputs that ask for a place of all registers and counters inside.
    fn ask(&mut self, index: u128) -> Record {
        let mut record = self.idle();
        for reading in self.module.readings() {
            self.set(&mut record, &reading.index, index);
        }
        record
    }

    /// What they hold there.
    fn told(&mut self, out: &Record, index: u128) {
        for reading in self.module.readings().to_vec() {
            if index < reading.size.into() {
                let values: Vec<u128> =
                    reading.values.iter().map(|name| self.get(out, name)).collect();
                self.remember(&reading.name, index, &values);
            }
        }
    }

    /// Registers, counters and externs are as the interpreter leaves them.
    fn check_what_is_left(&mut self) -> Result<(), String> {
        let outcomes = std::mem::take(&mut self.outcomes);
        let got = left_behind(outcomes, self.outside.externs().clone(), self.outside.state());
        let same = got == *self.wanted;
        if same { Ok(()) } else { Err(format!("{}: what is left behind", self.name)) }
    }

    fn remember(&mut self, name: &str, index: u128, values: &[u128]) {
        if let [value] = *values {
            let known = self.program.registers.iter().position(|r| r.name == name).unwrap();
            self.outside.state_mut().set_register(RegisterId(known as u32), index, value);
            return;
        }
        let known = self.program.counters.iter().position(|c| c.name == name).unwrap();
        let count = Count { packets: values[0] as u64, bytes: values[1] as u64 };
        let counter = ir::CounterId(known as u32);
        // A state counts; it is not told what it has counted.
        for packet in 0..count.packets {
            let bytes = if packet == 0 { count.bytes as usize } else { 0 };
            self.outside.state_mut().count(counter, index, bytes);
        }
    }
}

/// Only what the module says: metadata that it sets, and none of a packet that is refused.
fn said(program: &ir::Program, at: PipelineId, mut all: All) -> All {
    for outcome in &mut all.outcomes {
        for (value, known) in outcome.meta.iter_mut().zip(&program.pipelines[at.index()].meta) {
            if known.direction == ir::Direction::In {
                *value = 0;
            }
        }
        if outcome.result.is_err() {
            outcome.meta.clear();
            outcome.out.clear();
        }
    }
    all
}

/// Modules side by side in one design: building each alone would take longer.
pub(crate) struct Rig {
    benches: Vec<Bench>,
    built: Program,
}

impl Rig {
    pub(crate) fn new(tools: &Tools, name: &str, benches: Vec<Bench>) -> Self {
        let folder = folder(name);
        let modules = benches.iter().map(|bench| bench.module.as_ref().clone()).collect();
        let all = Pipelines::of(modules);
        let design = all.ports().written(&all.texts(), &folder).unwrap();
        let built = design.build(tools, &folder).unwrap_or_else(|why| panic!("{name}: {why}"));
        Self { benches, built }
    }

    pub(crate) fn benches(&self) -> &[Bench] {
        &self.benches
    }

    /// All packets of all modules, then what they leave behind, with a mistake in one of the
    /// modules or with none; how many packets. An error says where something differs.
    pub(crate) fn hold(&self, mutant: Option<(usize, usize)>) -> Result<usize, String> {
        let mut run = self.built.start().map_err(|why| why.to_string())?;
        let mut benches = self.benches.clone();
        if let Some((bench, number)) = mutant {
            benches[bench].mutant = number;
        }
        while !benches.iter().all(Bench::is_done) {
            let now = run.cycle();
            let inputs: Vec<Record> = benches.iter_mut().map(|b| b.inputs(now)).collect();
            let outputs = step(&mut run, &benches, &inputs)?;
            for (bench, out) in benches.iter_mut().zip(&outputs) {
                bench.outputs(out, now)?;
            }
        }
        for index in 0..64 {
            let inputs: Vec<Record> = benches.iter_mut().map(|b| b.ask(index)).collect();
            let outputs = step(&mut run, &benches, &inputs)?;
            for (bench, out) in benches.iter_mut().zip(&outputs) {
                bench.told(out, index);
            }
        }
        benches.iter_mut().try_for_each(Bench::check_what_is_left)?;
        Ok(benches.iter().map(|bench| bench.packets.len()).sum())
    }
}

/// A cycle with the inputs that each module gets, and each module's outputs.
fn step(run: &mut Simulation, benches: &[Bench], inputs: &[Record]) -> Result<Vec<Record>, String> {
    let (mut whole, mut port) = (run.inputs().zero(), 0);
    for (bench, record) in benches.iter().zip(inputs) {
        for own in 0..bench.ins.ports().len() {
            run.inputs().set_words(&mut whole, port, bench.ins.get_words(record, own));
            port += 1;
        }
    }
    let out = run.step(&whole).map_err(|why| why.to_string())?;
    let (outs, mut all, mut port) = (run.outputs(), Vec::new(), 0);
    for bench in benches {
        let mut record = bench.outs.zero();
        for own in 0..bench.outs.ports().len() {
            bench.outs.set_words(&mut record, own, outs.get_words(&out, port));
            port += 1;
        }
        all.push(record);
    }
    Ok(all)
}

/// The benches of all pipelines of a program.
pub(crate) fn benches(
    name: &str,
    program: &Arc<ir::Program>,
    packet: fn(&mut Draw) -> Vec<u8>,
    count: usize,
    target: Option<&Target>,
) -> Vec<Bench> {
    benches_of(name, program, packet, count, |at, state, name| {
        emit(program, at, state, target, name)
    })
}

/// The same, with modules that `make` makes.
pub(crate) fn benches_of(
    name: &str,
    program: &Arc<ir::Program>,
    packet: fn(&mut Draw) -> Vec<u8>,
    count: usize,
    make: impl Fn(PipelineId, &State, &str) -> Result<Module, Unsupported>,
) -> Vec<Bench> {
    let state = State::new(Arc::clone(program));
    let bench = |(at, pipeline): (PipelineId, &ir::Pipeline)| {
        let name = format!("{name}_{}", pipeline.name);
        let module = make(at, &state, &name).unwrap_or_else(|why| panic!("{name}: {why}"));
        Bench::new(program, at, inputs(&mut Draw(5), program, at, packet, count), module)
    };
    (0..).map(PipelineId).zip(&program.pipelines).map(bench).collect()
}
