//! A block beside its model, cycle by cycle, and copies of it with one mistake each, which the
//! bench has to find.

use std::fs;
use std::path::{Path, PathBuf};

use trimline_rtl::record::{Layout, Port, Record};
use trimline_rtl::sim::{Design, Program, SimError};
use trimline_rtl::tools::Tools;

/// Cycles of each case, if they are to be others.
const CYCLES: &str = "TRIMLINE_RTL_CYCLES";

/// All mistakes, not only the first of each block.
const MUTANTS: &str = "TRIMLINE_RTL_MUTANTS";

/// Cycles of a case, and of a mistake before it counts as not found.
const CYCLES_AT_LEAST: u64 = 20_000;

/// Cycles that the simulation is given at once.
const BATCH: u64 = 1000;

/// Warnings that a copy with a mistake may give.
const LENIENT: &str = "// verilator lint_off UNUSEDSIGNAL\n// verilator lint_off WIDTH\n\
    // verilator lint_off UNUSEDPARAM\n// verilator lint_off UNSIGNED\n";

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

/// A mistake: in a file, this text is replaced, which is there once.
pub(crate) struct Mutant {
    file: &'static str,
    from: &'static str,
    to: &'static str,
    case: usize,
}

impl Mutant {
    /// In the file of block `file`; to be found in the first case.
    pub(crate) const fn new(file: &'static str, from: &'static str, to: &'static str) -> Self {
        Self { file, from, to, case: 0 }
    }

    /// To be found in case `case`.
    pub(crate) const fn in_case(self, case: usize) -> Self {
        Self { case, ..self }
    }
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

/// Random numbers (splitmix64).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`.
    pub(crate) const fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// True once in `n` times.
    pub(crate) const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
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
        let wanted = if std::env::var_os(MUTANTS).is_some() { self.mutants.len() } else { 1 };
        let mut missed = Vec::new();
        for (at, mutant) in self.mutants.iter().enumerate().take(wanted) {
            let folder = folder(&format!("{}-mutant-{at}", self.name));
            let case = &self.cases[mutant.case];
            let program = case.build(self, tools, &folder, &self.sources(&folder, Some(mutant)));
            match case.run(&program, 1, cycles) {
                Ok(()) => missed.push(mutant.to),
                Err(found) => println!("{}: `{}` found: {}", self.name, mutant.to, found.text()),
            }
        }
        assert!(missed.is_empty(), "{}: not found: {missed:#?}", self.name);
        println!("{}: {wanted} of {wanted} mistakes found", self.name);
    }

    /// Its files; with a mistake, they are copies in `folder`.
    fn sources(&self, folder: &Path, mutant: Option<&Mutant>) -> Vec<PathBuf> {
        let names = self.parts.iter().chain([&self.name]);
        let source = |name: &&str| {
            let rtl = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rtl");
            let path = rtl.join(name).join(format!("{name}.sv"));
            let Some(mutant) = mutant.filter(|mutant| mutant.file == *name) else { return path };
            let text = fs::read_to_string(&path).unwrap();
            let times = text.matches(mutant.from).count();
            assert_eq!(times, 1, "{name}.sv has `{}` {times} times", mutant.from);
            let copy = folder.join(format!("{name}.sv"));
            // A mistake may leave a port without use, or with another width.
            let text = LENIENT.to_owned() + &text.replace(mutant.from, mutant.to);
            fs::write(&copy, text).unwrap();
            copy
        };
        names.map(source).collect()
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

/// An empty folder. All have the same parent, so that the simulator's runtime is compiled once.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("blocks").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}
