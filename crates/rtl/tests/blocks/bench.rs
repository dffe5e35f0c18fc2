//! A block beside its model, cycle by cycle, and copies of it with one mistake each, which the
//! bench has to find.

use std::path::{Path, PathBuf};

use trimline_rtl::record::{Layout, Port, Record};
use trimline_rtl::sim::{Design, Program, SimError};
use trimline_rtl::tools::Tools;

use crate::mistakes;
pub(crate) use crate::mistakes::{Mutant, Rng};

/// Cycles of each case, if they are to be others.
const CYCLES: &str = "TRIMLINE_RTL_CYCLES";

/// Cycles of a case, and of a mistake before it counts as not found.
const CYCLES_AT_LEAST: u64 = 20_000;

/// Cycles that the simulation is given at once.
const BATCH: u64 = 1000;

/// A block of `rtl/`, with what is to be known of it here.
pub(crate) struct Block {
    /// Its folder, its file and its module.
    pub(crate) name: &'static str,
    /// Blocks that it is made of; packages first.
    pub(crate) parts: &'static [&'static str],
    /// Inputs and outputs, with their widths in each case.
    pub(crate) cases: Vec<Case>,
    /// Mistakes.
    pub(crate) mutants: &'static [Mutant],
    /// What must not be asked of it.
    pub(crate) forbidden: &'static [Forbidden],
}

/// Inputs that end the simulation of the first case, by an assertion.
pub(crate) struct Forbidden {
    /// The assertion's name.
    pub(crate) assertion: &'static str,
    /// The ports that are not zero.
    pub(crate) inputs: &'static [(&'static str, u64)],
    /// In so many cycles.
    pub(crate) cycles: usize,
}

/// Parameters of a block, and a model with them.
pub(crate) struct Case {
    /// Parameters.
    pub(crate) parameters: Vec<(&'static str, String)>,
    /// Inputs with their widths.
    pub(crate) inputs: Vec<(&'static str, u32)>,
    /// Outputs with their widths.
    pub(crate) outputs: Vec<(&'static str, u32)>,
    /// The model, from its seed.
    pub(crate) model: Box<dyn Fn(u64) -> Box<dyn Model>>,
}

/// What a block should do: draws the inputs of the next cycle and says the outputs.
pub(crate) trait Model {
    /// One cycle. All ports are zero at first.
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>);
}

/// The ports of one side in a cycle.
pub(crate) struct Values<'a> {
    layout: &'a Layout,
    record: Record,
}

impl Values<'_> {
    /// Set a port.
    pub(crate) fn set(&mut self, port: &str, value: impl Into<u128>) {
        let port = self.layout.port(port);
        self.layout.set(&mut self.record, port, value.into());
    }

    /// Set a port of more than 128 bits.
    pub(crate) fn set_words(&mut self, port: &str, words: &[u32]) {
        let port = self.layout.port(port);
        self.layout.set_words(&mut self.record, port, words);
    }
}

/// A model of a block that is told some inputs a cycle before the cycle in which they count.
pub(crate) struct Ahead<M> {
    model: M,
    /// These inputs.
    ports: &'static [&'static str],
    /// Outputs before the first cycle that counts, where they are not 0.
    idle: Vec<(&'static str, u16)>,
    /// The cycle before.
    last: Option<(Record, Record)>,
}

impl<M> Ahead<M> {
    pub(crate) const fn new(
        model: M,
        ports: &'static [&'static str],
        idle: Vec<(&'static str, u16)>,
    ) -> Self {
        Self { model, ports, idle, last: None }
    }
}

impl<M: Model> Model for Ahead<M> {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        let (ins, outs) = (inputs.layout, outputs.layout);
        let mut from = Values { layout: ins, record: ins.zero() };
        let mut to = Values { layout: outs, record: outs.zero() };
        self.model.cycle(&mut from, &mut to);
        match self.last.take() {
            Some(last) => (inputs.record, outputs.record) = last,
            None => self.idle.iter().for_each(|&(port, value)| outputs.set(port, value)),
        }
        for port in self.ports {
            inputs.set_words(port, ins.get_words(&from.record, ins.port(port)));
        }
        self.last = Some((from.record, to.record));
    }
}

/// Where a block and its model part, or what ended the simulation.
enum Difference {
    Port { cycle: u64, port: String, expected: String, found: String },
    Died(SimError),
}

impl Block {
    /// The block in all its cases, and mistakes in it. Panics where something differs, or where a
    /// mistake is not found.
    pub(crate) fn check(&self) {
        let tools = match Tools::find() {
            Ok(tools) => tools,
            Err(why) => {
                println!("{} skipped: {why}", self.name);
                return;
            }
        };
        let cycles = cycles();
        for (at, case) in self.cases.iter().enumerate() {
            let folder = folder(&format!("{}-{at}", self.name));
            let program = case.build(self, &tools, &folder, &self.sources(&folder, None));
            if at == 0 {
                self.forbidden.iter().for_each(|forbidden| forbidden.check(self.name, &program));
            }
            for seed in 1..=2 {
                if let Err(difference) = case.run(&program, seed, cycles) {
                    panic!("{} case {at} seed {seed}: {}", self.name, difference.text());
                }
            }
        }
        let all = 2 * cycles * self.cases.len() as u64;
        println!("{}: {all} cycles equal in {} cases", self.name, self.cases.len());
        self.check_mutants(&tools, cycles);
    }

    fn check_mutants(&self, tools: &Tools, cycles: u64) {
        mistakes::check(self.name, self.mutants, |mutant, at| {
            let folder = folder(&format!("{}-mutant-{at}", self.name));
            let case = &self.cases[mutant.case()];
            let program = case.build(self, tools, &folder, &self.sources(&folder, Some(mutant)));
            case.run(&program, 1, cycles).map_err(|found| found.text())
        });
    }

    /// Its files; the one with a mistake is a copy in `folder`.
    fn sources(&self, folder: &Path, mutant: Option<&Mutant>) -> Vec<PathBuf> {
        let names = self.parts.iter().chain([&self.name]).copied();
        mistakes::sources(names, |name| format!("{name}/{name}.sv"), mutant, folder)
    }
}

impl Forbidden {
    fn check(&self, block: &str, program: &Program) {
        let mut run = program.start().unwrap();
        let layout = run.inputs().clone();
        let mut values = Values { layout: &layout, record: layout.zero() };
        self.inputs.iter().for_each(|(port, value)| values.set(port, *value));
        let inputs = vec![values.record; self.cycles];
        match run.run(&inputs).and_then(|_| run.step(&layout.zero())) {
            Ok(_) => panic!("{block} bears what `{}` forbids", self.assertion),
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains(self.assertion), "{block}: {said}");
            }
        }
    }
}

impl Case {
    fn build(&self, block: &Block, tools: &Tools, folder: &Path, sources: &[PathBuf]) -> Program {
        let ports = |ports: &[(&str, u32)]| {
            ports.iter().map(|(name, bits)| Port::new(name, *bits)).collect::<Vec<_>>()
        };
        let parameters = self.parameters.iter();
        let design = Design {
            top: block.name.into(),
            sources: sources.to_vec(),
            parameters: parameters.map(|(name, value)| ((*name).into(), value.clone())).collect(),
            inputs: ports(&self.inputs),
            outputs: ports(&self.outputs),
        };
        design.build(tools, folder).unwrap_or_else(|error| panic!("{}: {error}", block.name))
    }

    /// `cycles` cycles of the model's draws from `seed`, on both.
    fn run(&self, program: &Program, seed: u64, cycles: u64) -> Result<(), Difference> {
        let mut run = program.start().map_err(|error| Difference::Died(error.into()))?;
        let (ins, outs) = (run.inputs().clone(), run.outputs().clone());
        let mut model = (self.model)(seed);
        let mut done = 0;
        while done < cycles {
            let (mut inputs, mut expected) = (Vec::new(), Vec::new());
            for _ in 0..BATCH.min(cycles - done) {
                let mut from = Values { layout: &ins, record: ins.zero() };
                let mut to = Values { layout: &outs, record: outs.zero() };
                model.cycle(&mut from, &mut to);
                inputs.push(from.record);
                expected.push(to.record);
            }
            let found = run.run(&inputs).map_err(Difference::Died)?;
            for (expected, found) in expected.iter().zip(&found) {
                compare(&outs, done, expected, found)?;
                done += 1;
            }
        }
        Ok(())
    }
}

fn compare(
    layout: &Layout,
    cycle: u64,
    expected: &Record,
    found: &Record,
) -> Result<(), Difference> {
    for (at, port) in layout.ports().iter().enumerate() {
        let [expected, found] = [expected, found].map(|record| layout.get_words(record, at));
        if expected != found {
            let [expected, found] = [expected, found].map(|words| {
                words.iter().rev().map(|word| format!("{word:08x}")).collect::<String>()
            });
            return Err(Difference::Port { cycle, port: port.name().into(), expected, found });
        }
    }
    Ok(())
}

impl Difference {
    fn text(&self) -> String {
        match self {
            Self::Port { cycle, port, expected, found } => {
                format!("cycle {cycle}: `{port}` is {found}, expected {expected}")
            }
            Self::Died(error) => error.to_string(),
        }
    }
}

fn cycles() -> u64 {
    let set = std::env::var(CYCLES).ok().and_then(|cycles| cycles.parse().ok());
    set.unwrap_or(0).max(CYCLES_AT_LEAST)
}

fn folder(name: &str) -> PathBuf {
    mistakes::folder("blocks", name)
}
