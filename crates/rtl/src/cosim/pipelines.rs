//! Pipelines without a NIC around them beside the interpreter: packets as close as they may come,
//! and externs that answer anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use endpoint::{Draw, Purpose};
use p4::interp::Machine;
use p4::ir::circuit::Port as Way;
use p4::ir::{self, CounterId, ExternId, PipelineId, RegisterId};
use p4::program::{Externs, Program as _};
use p4::state::{Count, State};
use thiserror::Error;

use super::evidence::Failure;
use super::locate::{Located, accessed, setters};
use super::outside::Outside;
use super::packets::{Input, Packets};
use crate::emit::Module;
use crate::pipelines::Pipelines;
use crate::record::Record;
use crate::sim::{SimError, Simulation};

const DRAWS: Purpose = Purpose::new("rtl pipelines");

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

impl Failure for PipelineError {
    fn kind(&self) -> (&str, u64) {
        match self {
            Self::Mismatch { located, cycle, .. } => (&located.field, *cycle),
            Self::Sim(error) => error.kind(),
        }
    }
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
    outside: Outside<Answers>,
    /// The interpreter, and its externs.
    machine: Machine,
    model: Answers,
    compared: Compared,
}

impl<'a> Bench<'a> {
    /// The pipeline `at` of `pipelines`, which `run` simulates; its state begins as `state` is.
    #[must_use]
    pub fn new(
        state: &State,
        (pipelines, program): (&'a Pipelines, &'a Arc<ir::Program>),
        at: PipelineId,
        run: Simulation,
    ) -> Self {
        let answers = Answers::new(program);
        let mut machine = Machine::new(Arc::clone(program));
        *self::state(&mut machine) = state.clone();
        Self {
            program,
            at,
            module: &pipelines.modules()[at.index()],
            run,
            outside: Outside::new(answers.clone(), state.clone()),
            machine,
            model: answers,
            compared: Compared::default(),
        }
    }

    /// Send all packets through it; `progress` is told how many are through.
    ///
    /// # Errors
    /// See [`PipelineError`].
    pub fn run(
        &mut self,
        packets: &Packets,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Compared, PipelineError> {
        let latency = u64::from(self.module.latency());
        let mut enter = packets.cycles().zip(&packets.packets).peekable();
        let mut leave = packets.cycles().zip(&packets.packets).enumerate().peekable();
        for now in 0.. {
            let entering = enter.next_if(|(cycle, _)| *cycle == now).map(|(_, input)| input);
            let record = self.inputs(now, entering);
            let out = self.run.step(&record)?;
            self.compared.cycles += 1;
            let get = |name: &str| {
                self.run.outputs().get_named(&out, &format!("{}_{name}", self.module.name()))
            };
            self.outside.ask(now, self.module.requests(), get);
            let Some((nth, _)) = leave.peek() else { break };
            let nth = *nth;
            let leaving = leave.next_if(|(_, (cycle, _))| cycle + latency == now);
            self.same("valid_o", None, nth, &out, leaving.is_some().into())?;
            if let Some((_, (_, input))) = leaving {
                self.outcome(nth, input, &out)?;
                self.compared.packets += 1;
                progress(self.compared.packets);
            }
        }
        self.left_behind()?;
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
        self.outside.answer(now, self.module.requests(), &mut set);
        let Some(Input { bytes, meta, .. }) = entering else { return record };
        set("valid_i", 1);
        set("length_i", bytes.len() as u128);
        let named = self.module.ports().meta_in.iter().zip(meta);
        named.for_each(|(name, value)| {
            if let Some(name) = name {
                set(name, *value);
            }
        });
        if self.module.window() > 0 {
            let mut window = bytes.clone();
            window.resize(self.module.window() as usize, 0xa5);
            // Ports of no whole words: the first byte is at the top of the port's bits.
            let words = words_of(&window);
            layout.set_words(&mut record, layout.port(&self.port("packet_i")), &words);
        }
        record
    }

    /// What the interpreter makes of a packet, beside what has come out.
    fn outcome(&mut self, nth: usize, input: &Input, out: &Record) -> Result<(), PipelineError> {
        let (mut meta, mut emitted) = (input.meta.clone(), Vec::new());
        let parsed =
            self.machine.run(self.at, &input.bytes, &mut meta, &mut emitted, &mut self.model);
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

    /// What externs have been asked, and what registers and counters hold, is as the interpreter
    /// leaves it.
    fn left_behind(&mut self) -> Result<(), PipelineError> {
        let program = Arc::clone(self.program);
        for (id, known) in (0..).map(ExternId).zip(&program.externs) {
            let asked = |answers: &Answers| answers.states.get(&id).copied().unwrap_or(0).into();
            let is_it = |port| matches!(port, Way::Call(which) if program.instance(which) == id);
            let field = format!("what {} is asked", known.instance);
            self.same_left(field, &is_it, asked(self.outside.externs()), asked(&self.model))?;
        }
        for (id, known) in (0..).map(RegisterId).zip(&program.registers) {
            let is_it = |port| port == Way::Write(id);
            let is_outside = self.module.requests().iter().any(|request| is_it(request.port));
            for index in (0..known.size.into()).take_while(|_| is_outside) {
                let (field, found) = (&known.name, self.outside.state().register(id, index));
                let expected = state(&mut self.machine).register(id, index);
                self.same_left(format!("{field}[{index}]"), &is_it, found, expected)?;
            }
        }
        for (id, known) in (0..).map(CounterId).zip(&program.counters) {
            let is_it = |port| port == Way::Count(id);
            let is_outside = self.module.requests().iter().any(|request| is_it(request.port));
            for index in (0..known.size.into()).take_while(|_| is_outside) {
                let count = |Count { packets, bytes }: Count| words([packets, bytes]);
                let found = count(self.outside.state().counted(id, index));
                let expected = count(state(&mut self.machine).counted(id, index));
                self.same_left(format!("{}[{index}]", known.name), &is_it, found, expected)?;
            }
        }
        self.inside()
    }

    /// Registers and counters of the module are read as the control plane reads them.
    fn inside(&mut self) -> Result<(), PipelineError> {
        let readings = self.module.readings();
        let most = readings.iter().map(|reading| reading.size).max().unwrap_or(0);
        let layout = self.run.inputs();
        let asks = |index: u32| {
            let mut record = layout.zero();
            let ports = readings.iter().map(|reading| self.port(&reading.index));
            ports.for_each(|port| layout.set_named(&mut record, &port, index.into()));
            record
        };
        let asked: Vec<Record> = (0..most).map(asks).collect();
        let told = self.run.run(&asked)?;
        for reading in readings {
            for (index, out) in (0..u128::from(reading.size)).zip(&told) {
                let values: Vec<u128> =
                    reading.values.iter().map(|name| self.get(out, name)).collect();
                let found = if let [packets, bytes] = values[..] {
                    words([packets as u64, bytes as u64])
                } else {
                    values.first().copied().unwrap_or(0)
                };
                let Some((way, expected)) = self.holds(&reading.name, index) else { continue };
                let field = format!("{}[{index}]", reading.name);
                self.same_left(field, &|port| port == way, found, expected)?;
            }
        }
        Ok(())
    }

    /// What the interpreter holds in a place of the register or counter of this name.
    fn holds(&mut self, name: &str, index: u128) -> Option<(Way, u128)> {
        let state = state(&mut self.machine);
        let program = self.program;
        let register = (0..).map(RegisterId).zip(&program.registers).find(|(_, r)| r.name == name);
        if let Some((id, _)) = register {
            return Some((Way::Write(id), state.register(id, index)));
        }
        let mut counters = (0..).map(CounterId).zip(&program.counters);
        let (id, _) = counters.find(|(_, counter)| counter.name == name)?;
        let Count { packets, bytes } = state.counted(id, index);
        Some((Way::Count(id), words([packets, bytes])))
    }

    fn same_left(
        &self,
        field: String,
        is_it: &dyn Fn(Way) -> bool,
        found: u128,
        expected: u128,
    ) -> Result<(), PipelineError> {
        if found == expected {
            return Ok(());
        }
        let place = accessed(self.program, self.at, is_it);
        let last = (self.compared.packets as usize).saturating_sub(1);
        Err(self.differs(last, Located { field, place }, found, expected))
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

/// What an interpreter keeps.
fn state(machine: &mut Machine) -> &mut State {
    p4::program::Program::<Answers>::state(machine)
}

/// Two numbers as one.
fn words([high, low]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// Bytes as words, the last byte at the bottom of the first.
fn words_of(bytes: &[u8]) -> Vec<u32> {
    let mut words = vec![0; bytes.len().div_ceil(4)];
    for (at, byte) in bytes.iter().rev().enumerate() {
        words[at / 4] |= u32::from(*byte) << (8 * (at % 4));
    }
    words
}
