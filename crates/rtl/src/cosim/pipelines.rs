//! Pipelines without a NIC around them beside the interpreter: packets as close as they may come,
//! and externs that answer anything.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use endpoint::{Draw, Purpose};
use p4::interp::Machine;
use p4::ir::circuit::Port as Way;
use p4::ir::{self, ExternId, PipelineId};
use p4::program::{Externs, Program as _};
use p4::state::State;
use thiserror::Error;

use super::locate::{Located, setters};
use crate::emit::{Module, Request};
use crate::pipelines::Pipelines;
use crate::record::Record;
use crate::sim::{Program, SimError, Simulation};

const DRAWS: Purpose = Purpose::new("rtl pipelines");

/// A packet, and a value for each of [`ir::Pipeline::meta`].
pub type Input = (Vec<u8>, Vec<u128>);

/// What has been compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Packets.
    pub packets: u64,
    /// Those that the parser has accepted.
    pub accepted: u64,
    /// Cycles.
    pub cycles: u64,
}

/// A pipeline and the interpreter part, or the simulation ends.
#[derive(Debug, Error)]
pub enum PipelineError {
    /// A result differs.
    #[error(
        "cycle {cycle}, packet {packet}: {} is {found:#x}, in the interpreter {expected:#x}",
        located.field
    )]
    Mismatch {
        /// In which cycle.
        cycle: u64,
        /// The packet, from 0.
        packet: usize,
        /// What differs, and its line.
        located: Located,
        /// What it is.
        found: u128,
        /// What it should be.
        expected: u128,
    },
    /// There is no output.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// Packets for a pipeline: Ethernet, IPv4 with one of `protocols` and bytes of a transport header,
/// now and then cut off or not quite right; half of them almost like the one before, so that they
/// meet at what they have in common.
#[must_use]
pub fn draw(pipeline: &ir::Pipeline, protocols: &[u8], seed: u64, count: u64) -> Vec<Input> {
    let stream = Draw::new(seed, DRAWS, 0);
    let mut drawn = 0;
    let mut below = |bound: u64| {
        drawn += 1;
        stream.below(DRAWS, drawn, bound)
    };
    let mut all: Vec<Input> = Vec::new();
    for _ in 0..count {
        if let Some(before) = all.last().filter(|_| below(2) == 0) {
            let mut next = before.clone();
            for _ in 0..below(4) {
                let at = below(next.0.len().max(1) as u64) as usize;
                if let Some(byte) = next.0.get_mut(at) {
                    *byte = below(256) as u8;
                }
            }
            all.push(next);
            continue;
        }
        let frame = frame(protocols, &mut below);
        let meta = pipeline.meta.iter().map(|_| value(&mut below)).collect();
        all.push((frame, meta));
    }
    all
}

/// Small numbers and large ones.
fn value(below: &mut dyn FnMut(u64) -> u64) -> u128 {
    let bits = |below: &mut dyn FnMut(u64) -> u64| u128::from(below(1 << 32));
    match below(4) {
        0 => below(4).into(),
        1 => u128::MAX,
        _ => (0..4).fold(0, |value, _| value << 32 | bits(below)),
    }
}

fn frame(protocols: &[u8], below: &mut dyn FnMut(u64) -> u64) -> Vec<u8> {
    let length = 64 + below(160);
    let mut frame: Vec<u8> = (0..length).map(|_| below(256) as u8).collect();
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    if !protocols.is_empty() {
        frame[23] = protocols[below(protocols.len() as u64) as usize];
    }
    // One flag as a rule.
    frame[34] = if below(4) == 0 { below(256) as u8 } else { 1 << below(5) };
    if below(20) == 0 {
        let at = below(length) as usize;
        frame[at] ^= 1 << below(8);
    }
    if below(20) == 0 {
        frame.truncate(below(70) as usize);
    }
    frame
}

/// Answers of each instance that depend on the call and on all calls of that instance before it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answers {
    program: Arc<ir::Program>,
    states: BTreeMap<ExternId, u64>,
}

impl Answers {
    /// Of the externs of a program, before any call.
    pub(crate) fn new(program: &Arc<ir::Program>) -> Self {
        Self { program: Arc::clone(program), states: BTreeMap::new() }
    }
}

impl Externs for Answers {
    fn call(&mut self, which: ExternId, args: &[u128], results: &mut [u128]) {
        let state = self.states.entry(self.program.instance(which)).or_default();
        let word = |seed: u64, n: u64| Draw::new(seed, DRAWS, n).bits(DRAWS, 0);
        let seed = args.iter().fold(*state ^ u64::from(which.0), |seed, arg| {
            word(seed ^ *arg as u64 ^ (*arg >> 64) as u64, 1)
        });
        *state = word(seed, 2);
        for (n, result) in (3..).step_by(2).zip(results) {
            let wide = u128::from(word(seed, n)) << 64 | u128::from(word(seed, n + 1));
            // Many answers are 0 or 1.
            *result = if word(seed, n) % 3 == 0 { wide & 1 } else { wide };
        }
    }
}

/// A pipeline that runs beside the interpreter.
pub struct Bench<'a> {
    program: &'a Arc<ir::Program>,
    at: PipelineId,
    module: &'a Module,
    run: Simulation,
    externs: Answers,
    /// Registers and counters that other pipelines share, which are outside.
    outside: State,
    /// Answers by the cycle in which they are due, with the request.
    due: VecDeque<(u64, usize, Vec<u128>)>,
    /// The interpreter, and its externs.
    machine: Machine,
    model: Answers,
    compared: Compared,
}

impl<'a> Bench<'a> {
    /// The pipeline `at` of `pipelines`, which `built` simulates; its state begins as `state` is.
    ///
    /// # Errors
    /// The simulation cannot be started.
    pub fn new(
        state: &State,
        (pipelines, program): (&'a Pipelines, &'a Arc<ir::Program>),
        at: PipelineId,
        built: &Program,
    ) -> Result<Self, SimError> {
        let answers = Answers::new(program);
        let mut machine = Machine::new(Arc::clone(program));
        *p4::program::Program::<Answers>::state(&mut machine) = state.clone();
        Ok(Self {
            program,
            at,
            module: &pipelines.modules()[at.index()],
            run: built.start()?,
            externs: answers.clone(),
            outside: state.clone(),
            due: VecDeque::new(),
            machine,
            model: answers,
            compared: Compared::default(),
        })
    }

    /// Send all of `inputs` through it, each `spacing` behind the one before.
    ///
    /// # Errors
    /// See [`PipelineError`].
    pub fn run(
        &mut self,
        inputs: &[Input],
        spacing: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Compared, PipelineError> {
        let end = spacing * inputs.len() as u64 + u64::from(self.module.latency());
        for now in 0..end {
            let packet = |at: u64| {
                let is_one = at.is_multiple_of(spacing);
                is_one.then_some((at / spacing) as usize).filter(|nth| *nth < inputs.len())
            };
            let entering = packet(now).map(|nth| &inputs[nth]);
            let record = self.inputs(now, entering);
            let out = self.run.step(&record)?;
            self.compared.cycles += 1;
            self.answer(&out, now);
            let leaving = now.checked_sub(self.module.latency().into()).and_then(packet);
            self.same("valid_o", None, leaving.unwrap_or(0), &out, leaving.is_some().into())?;
            if let Some(nth) = leaving {
                self.outcome(nth, &inputs[nth], &out)?;
                self.compared.packets += 1;
                progress(self.compared.packets);
            }
        }
        Ok(self.compared)
    }

    fn port(&self, name: &str) -> String {
        format!("{}_{name}", self.module.name())
    }

    fn get(&self, out: &Record, name: &str) -> u128 {
        self.run.outputs().get_named(out, &self.port(name))
    }

    fn inputs(&mut self, now: u64, entering: Option<&Input>) -> Record {
        let layout = self.run.inputs();
        let mut record = layout.zero();
        let mut set = |name: &str, value: u128| {
            layout.set_named(&mut record, &format!("{}_{name}", self.module.name()), value);
        };
        while let Some((_, request, values)) = self.due.pop_front_if(|(due, ..)| *due == now) {
            let names = &self.module.requests()[request].results;
            names.iter().zip(values).for_each(|(name, value)| set(name, value));
        }
        let Some((packet, meta)) = entering else { return record };
        set("valid_i", 1);
        set("length_i", packet.len() as u128);
        let named = self.module.ports().meta_in.iter().zip(meta);
        named.for_each(|(name, value)| {
            if let Some(name) = name {
                set(name, *value);
            }
        });
        if self.module.window() > 0 {
            let mut window = packet.clone();
            window.resize(self.module.window() as usize, 0xa5);
            // Ports of no whole words: the first byte is at the top of the port's bits.
            let words = words_of(&window);
            layout.set_words(&mut record, layout.port(&self.port("packet_i")), &words);
        }
        record
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
                Way::Read(register) => values[0] = self.outside.register(register, args[0]),
                Way::Write(register) => writes.push((register, args)),
                Way::Count(counter) => self.outside.count(counter, args[0], args[1] as usize),
                // Tables are inside.
                Way::LookUp(_) => {}
            }
            if !values.is_empty() {
                self.due.push_back((now + u64::from(*latency), at, values));
            }
        }
        for (register, args) in writes {
            self.outside.set_register(register, args[0], args[1]);
        }
        // Latencies differ.
        self.due.make_contiguous().sort_by_key(|(due, ..)| *due);
    }

    /// What the interpreter makes of a packet, beside what has come out.
    fn outcome(&mut self, nth: usize, input: &Input, out: &Record) -> Result<(), PipelineError> {
        let (mut meta, mut emitted) = (input.1.clone(), Vec::new());
        let parsed = self.machine.run(self.at, &input.0, &mut meta, &mut emitted, &mut self.model);
        self.same("accepted_o", None, nth, out, parsed.is_ok().into())?;
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return self.same("error_o", None, nth, out, error.0.into()),
        };
        self.compared.accepted += 1;
        self.same("bytes_o", None, nth, out, parsed.bytes as u128)?;
        for (field, name) in self.module.ports().meta_out.iter().enumerate() {
            if let Some(name) = name {
                self.same(name, Some(field), nth, out, meta[field])?;
            }
        }
        if self.module.ports().header {
            self.same("header_length_o", None, nth, out, emitted.len() as u128)?;
            return self.headers(nth, out, &emitted);
        }
        Ok(())
    }

    fn headers(&self, nth: usize, out: &Record, emitted: &[u8]) -> Result<(), PipelineError> {
        let layout = self.run.outputs();
        let port = layout.port(&self.port("header_o"));
        let words = layout.get_words(out, port);
        let whole = layout.ports()[port].bits() as usize / 8;
        for (at, expected) in
            emitted.iter().copied().chain(std::iter::repeat(0)).take(whole).enumerate()
        {
            let low = 8 * (whole - 1 - at);
            let found = (words[low / 32] >> (low % 32)) as u8;
            if found != expected {
                let field = format!("byte {at} of the headers that are emitted");
                let located = Located { field, place: String::new() };
                return Err(self.differs(nth, located, found.into(), expected.into()));
            }
        }
        Ok(())
    }

    fn same(
        &self,
        name: &str,
        field: Option<usize>,
        nth: usize,
        out: &Record,
        expected: u128,
    ) -> Result<(), PipelineError> {
        let found = self.get(out, name);
        if found == expected {
            return Ok(());
        }
        Err(self.differs(nth, self.locate(name, field), found, expected))
    }

    fn differs(
        &self,
        packet: usize,
        located: Located,
        found: u128,
        expected: u128,
    ) -> PipelineError {
        let cycle = self.compared.cycles.saturating_sub(1);
        PipelineError::Mismatch { cycle, packet, located, found, expected }
    }

    /// The field of a result, and the line that sets it.
    fn locate(&self, name: &str, field: Option<usize>) -> Located {
        let pipeline = &self.program.pipelines[self.at.index()];
        let Some(field) = field else {
            return Located { field: format!("{}.{name}", pipeline.name), place: String::new() };
        };
        let meta = &pipeline.meta[field];
        let place = setters(self.program, self.at, meta.slot).join(" or ");
        Located { field: meta.name.clone(), place }
    }
}

/// Bytes as words, the last byte at the bottom of the first.
fn words_of(bytes: &[u8]) -> Vec<u32> {
    let mut words = vec![0; bytes.len().div_ceil(4)];
    for (at, byte) in bytes.iter().rev().enumerate() {
        words[at / 4] |= u32::from(*byte) << (8 * (at % 4));
    }
    words
}

/// The fewest of `inputs` with which `fails` says that it fails as before: halves, quarters and so
/// on are left out.
pub fn fewest(inputs: &[Input], fails: &mut dyn FnMut(&[Input]) -> bool) -> Vec<Input> {
    let (mut best, mut size) = (inputs.to_vec(), inputs.len());
    while size > 0 {
        let mut from = 0;
        while from < best.len() {
            let mut rest = best.clone();
            rest.drain(from..best.len().min(from + size));
            if fails(&rest) {
                best = rest;
            } else {
                from += size;
            }
        }
        size /= 2;
    }
    best
}
