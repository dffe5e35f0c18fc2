//! What the emitter makes does what the interpreter does: drawn programs and those of `p4/`, at
//! their least spacing, with externs that answer anything after their latency.
//!
//! A few of each in every run; all of them, with more packets, where `TRIMLINE_RTL` is `all`.

use std::collections::VecDeque;
use std::fs;
use std::sync::Arc;

use p4::ir::circuit::Outcome;
use p4::ir::{self, Hardware, PipelineId, Port as Way, RegisterId};
use p4::program::{Externs, Parsed};
use p4::state::{Count, State};
use programs::PROGRAMS;
use trimline_rtl::emit::{Module, Request, emit};
use trimline_rtl::record::{Layout, Record};
use trimline_rtl::sim::{Design, Simulation};
use trimline_rtl::tools::Tools;

use crate::draw::{self, Draw};
use crate::traffic::{self, All, Input, Instances, inputs, left_behind, one_by_one};
use crate::{folder, tools};

/// Whether to run all there is.
fn everything() -> bool {
    std::env::var("TRIMLINE_RTL").is_ok_and(|value| value == "all")
}

/// A module that runs.
struct Bench {
    module: Module,
    run: Simulation,
    ins: Layout,
    outs: Layout,
    program: Arc<ir::Program>,
    /// Registers and counters that other pipelines share, which are outside.
    state: State,
    externs: Instances,
    /// Answers by the cycle in which they are due, with the request.
    due: VecDeque<(u64, usize, Vec<u128>)>,
    draw: Draw,
}

impl Bench {
    fn new(tools: &Tools, program: &Arc<ir::Program>, at: PipelineId, name: &str) -> Self {
        let state = State::new(Arc::clone(program));
        let module = emit(program, at, &state, None, name);
        let module = module.unwrap_or_else(|why| panic!("{name}: {why}"));
        let folder = folder(name);
        fs::create_dir_all(&folder).unwrap();
        let source = folder.join(format!("{name}.sv"));
        fs::write(&source, module.text()).unwrap();
        let design = Design {
            top: name.to_owned(),
            sources: vec![source],
            parameters: Vec::new(),
            inputs: module.inputs().to_vec(),
            outputs: module.outputs().to_vec(),
        };
        let run = design.start(tools, &folder).unwrap_or_else(|why| panic!("{name}: {why}"));
        let (ins, outs) = (run.inputs().clone(), run.outputs().clone());
        Self {
            module,
            run,
            ins,
            outs,
            program: Arc::clone(program),
            state,
            externs: Instances::new(program),
            due: VecDeque::new(),
            draw: Draw(99),
        }
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

    /// One cycle; what leaves in it.
    fn step(&mut self, input: Option<&Input>) -> Option<Outcome> {
        let mut record = self.idle();
        if let Some(input) = input {
            self.enter(&mut record, input);
        }
        let now = self.run.cycle();
        while let Some((_, request, values)) = self.due.pop_front_if(|(due, ..)| *due == now) {
            let names = &self.module.requests()[request].results;
            for (name, value) in names.iter().zip(values) {
                self.set(&mut record, name, value);
            }
        }
        let out = self.run.step(&record).unwrap_or_else(|why| panic!("{why}"));
        self.answer(&out, now);
        let done = self.get(&out, "valid_o") == 1;
        done.then(|| self.outcome(&out))
    }

    /// Asks the externs what the module asks.
    fn answer(&mut self, out: &Record, now: u64) {
        let mut writes = Vec::new();
        for (at, request) in self.module.requests().iter().enumerate() {
            if self.get(out, &request.valid) == 0 {
                continue;
            }
            let Request { port, latency, args, results, .. } = request;
            let args: Vec<u128> = args.iter().map(|name| self.get(out, name)).collect();
            let mut values = vec![0; results.len()];
            match *port {
                Way::Call(which) => self.externs.call(which, &args, &mut values),
                Way::Read(register) => values[0] = self.state.register(register, args[0]),
                Way::Write(register) => writes.push((register, args)),
                Way::Count(counter) => self.state.count(counter, args[0], args[1] as usize),
                Way::LookUp(_) => unreachable!("tables are inside"),
            }
            if !values.is_empty() {
                self.due.push_back((now + u64::from(*latency), at, values));
            }
        }
        for (register, args) in writes {
            self.state.set_register(register, args[0], args[1]);
        }
        // Latencies differ.
        self.due.make_contiguous().sort_by_key(|(due, ..)| *due);
    }

    fn outcome(&self, out: &Record) -> Outcome {
        if self.get(out, "accepted_o") == 0 {
            let error = ir::ErrorId(self.get(out, "error_o") as u32);
            return Outcome { result: Err(error), meta: Vec::new(), out: Vec::new() };
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
            assert!(header[length..].iter().all(|byte| *byte == 0), "zeros behind the headers");
            header.truncate(length);
        }
        Outcome { result: Ok(Parsed { bytes }), meta, out: header }
    }

    /// Registers and counters, wherever they are.
    fn left(&mut self) {
        for reading in self.module.readings().to_vec() {
            for index in 0..reading.size.min(64) {
                let mut record = self.idle();
                self.set(&mut record, &reading.index, index.into());
                let out = self.run.step(&record).unwrap();
                let values: Vec<u128> =
                    reading.values.iter().map(|name| self.get(&out, name)).collect();
                self.remember(&reading.name, index.into(), &values);
            }
        }
    }

    fn remember(&mut self, name: &str, index: u128, values: &[u128]) {
        if let [value] = *values {
            let known = self.program.registers.iter().position(|r| r.name == name).unwrap();
            self.state.set_register(RegisterId(known as u32), index, value);
            return;
        }
        let known = self.program.counters.iter().position(|c| c.name == name).unwrap();
        let count = Count { packets: values[0] as u64, bytes: values[1] as u64 };
        let counter = ir::CounterId(known as u32);
        // A state counts; it is not told what it has counted.
        for packet in 0..count.packets {
            let bytes = if packet == 0 { count.bytes as usize } else { 0 };
            self.state.count(counter, index, bytes);
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

/// Builds a pipeline, and sends packets through it and the interpreter; how many.
fn hold(
    tools: &Tools,
    name: &str,
    program: &Arc<ir::Program>,
    at: PipelineId,
    packet: fn(&mut Draw) -> Vec<u8>,
) -> usize {
    let count = if everything() { 20_000 } else { 1000 };
    let spacing = Hardware::new(program).unwrap().spacings(&[])[at.index()].cycles;
    let pipeline = &program.pipelines[at.index()].name;
    let mut bench = Bench::new(tools, program, at, &format!("{name}_{pipeline}"));
    let packets = inputs(&mut Draw(5), program, at, packet, count);
    let wanted = said(program, at, one_by_one(program, at, &packets, None));
    let mut outcomes = Vec::new();
    let mut waiting = packets.iter();
    while outcomes.len() < count {
        let cycle = bench.run.cycle();
        let input = if cycle.is_multiple_of(spacing.into()) { waiting.next() } else { None };
        let left = cycle.checked_sub(bench.module.latency().into());
        let due = left.is_some_and(|since| since.is_multiple_of(spacing.into()));
        let outcome = bench.step(input);
        assert_eq!(outcome.is_some(), due, "{name}_{pipeline}: valid in cycle {cycle}");
        if let Some(outcome) = outcome {
            let number = outcomes.len();
            let right = &wanted.outcomes[number];
            assert_eq!(&outcome, right, "{name}_{pipeline}: packet {number}, cycle {cycle}");
            outcomes.push(outcome);
        }
    }
    bench.left();
    let got = left_behind(outcomes, bench.externs.clone(), &bench.state);
    assert!(got == wanted, "{name}_{pipeline}: what is left behind");
    count
}

/// All modules of all programs, whether or not they run here.
#[test]
fn verilator_has_nothing_to_say_of_any_module() {
    let Some(tools) = tools("emitted") else { return };
    let folder = folder("lint");
    fs::create_dir_all(&folder).unwrap();
    let shipped = PROGRAMS.iter().map(|variant| {
        (variant.name.to_owned(), traffic::compile(variant.file, variant.constants))
    });
    let drawn = (0..draw::PROGRAMS).map(|n| (format!("drawn{n}"), Arc::new(draw::program(n))));
    let mut lint = tools.verilator();
    // Every module is a top here.
    lint.args(["--lint-only", "-Wall", "-Wno-MULTITOP"]);
    for (name, program) in shipped.chain(drawn) {
        let state = State::new(Arc::clone(&program));
        for (at, pipeline) in (0..).map(PipelineId).zip(&program.pipelines) {
            let name = format!("{name}_{}", pipeline.name);
            let module = emit(&program, at, &state, None, &name);
            let module = module.unwrap_or_else(|why| panic!("{name}: {why}"));
            let source = folder.join(format!("{name}.sv"));
            fs::write(&source, module.text()).unwrap();
            lint.arg(source);
        }
    }
    let said = lint.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn shipped_programs_do_what_the_interpreter_does() {
    let Some(tools) = tools("emitted") else { return };
    let few = ["ndp", "homa_tr", "ndp_switch"];
    let mut packets = 0;
    for variant in PROGRAMS.iter().filter(|v| everything() || few.contains(&v.name)) {
        let program = traffic::compile(variant.file, variant.constants);
        for at in (0..program.pipelines.len() as u32).map(PipelineId) {
            packets += hold(&tools, variant.name, &program, at, traffic::frame);
        }
    }
    println!("{packets} packets, all as the interpreter has them");
}

#[test]
fn drawn_programs_do_what_the_interpreter_does() {
    let Some(tools) = tools("emitted") else { return };
    let end = if everything() { draw::PROGRAMS } else { 4 };
    let mut packets = 0;
    for number in 0..end {
        let program = Arc::new(draw::program(number));
        let name = format!("drawn{number}");
        packets += hold(&tools, &name, &program, PipelineId(0), traffic::packet);
    }
    println!("{packets} packets, all as the interpreter has them");
}
