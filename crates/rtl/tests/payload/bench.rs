//! A block between sources and sinks: what goes in is drawn, what comes out is compared with what
//! the block's model says, item by item, while both sides stall as they like.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};

use trimline_rtl::record::{Layout, Port, Record};
use trimline_rtl::sim::{Design, Program, SimError, Simulation};
use trimline_rtl::synth::{SynthTools, Synthesis, synthesise};
use trimline_rtl::tools::Tools;

use crate::mistakes;
pub(crate) use crate::mistakes::{Mutant, Rng};

/// How many runs with stalls, if there are to be more than a few.
const RUNS: &str = "TRIMLINE_RTL_RUNS";

/// Runs with stalls of each block, and of each mistake before it counts as not found.
const RUNS_AT_LEAST: u64 = 3;

/// Cycles without an item in or out after which a block hangs.
const PATIENCE: u64 = 2000;

/// The width of a beat: data, bytes, last.
pub(crate) const BEAT: u32 = 520;

/// In place of a width: that of a header, 8 times the parameter `HeaderBytes`.
pub(crate) const HEADER: u32 = 0;

/// The value of a port.
pub(crate) type Words = Vec<u32>;

/// Ports that carry items: `NAME_valid`, `NAME_ready` unless nobody may refuse, and fields. Without
/// fields, `NAME` alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Channel {
    pub(crate) name: &'static str,
    pub(crate) ready: bool,
    /// Without their `_i` or `_o`, and their widths.
    pub(crate) fields: &'static [(&'static str, u32)],
}

impl Channel {
    fn valid(&self) -> String {
        if self.fields.is_empty() { self.name.to_owned() } else { format!("{}_valid", self.name) }
    }
}

/// A block of `rtl/`, with what is to be known of it here.
pub(crate) struct Block {
    /// Its module; its file is the last of `files`.
    pub(crate) name: &'static str,
    /// Below `rtl/`, without `.sv`; packages first.
    pub(crate) files: &'static [&'static str],
    /// Parameters of each case.
    pub(crate) cases: &'static [&'static [(&'static str, u64)]],
    pub(crate) sources: &'static [Channel],
    pub(crate) sinks: &'static [Channel],
    /// Inputs and outputs of no channel.
    pub(crate) inputs: &'static [(&'static str, u32)],
    pub(crate) outputs: &'static [(&'static str, u32)],
    /// A run: draws, compares.
    pub(crate) run: fn(&mut Bench, case: usize) -> Result<(), Failure>,
    pub(crate) mutants: &'static [Mutant],
}

/// What a run has found.
#[derive(Debug)]
pub(crate) enum Failure {
    Differs { port: String, found: String, expected: String },
    Died(SimError),
    Hangs(String),
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Self {
        Self::Died(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs { port, found, expected } => {
                write!(f, "`{port}` is {found}, expected {expected}")
            }
            Self::Died(error) => error.fmt(f),
            Self::Hangs(what) => f.write_str(what),
        }
    }
}

/// How often one end of a channel does not move, in eighths; drawn anew now and then.
struct Stalls {
    eighths: u64,
    until: u64,
}

impl Stalls {
    const NONE: Self = Self { eighths: 0, until: u64::MAX };

    fn moves(&mut self, cycle: u64, rng: &mut Rng) -> bool {
        if cycle >= self.until {
            self.eighths = [0, 1, 4, 7][rng.below(4) as usize];
            self.until = cycle + 8 + rng.below(64);
        }
        self.eighths == 0 || rng.below(8) >= self.eighths
    }
}

/// The ports of a channel, in the layouts of inputs and outputs.
struct Places {
    valid: usize,
    ready: Option<usize>,
    fields: Vec<usize>,
}

impl Places {
    /// `gives` has valid and the fields, `takes` has ready.
    fn new(channel: &Channel, gives: (&Layout, &str), takes: (&Layout, &str)) -> Self {
        let name = channel.name;
        let place =
            |(layout, end): (&Layout, &str), port: String| layout.port(&format!("{port}_{end}"));
        let fields = channel.fields.iter();
        Self {
            valid: place(gives, channel.valid()),
            ready: channel.ready.then(|| place(takes, format!("{name}_ready"))),
            fields: fields.map(|(field, _)| place(gives, (*field).to_owned())).collect(),
        }
    }
}

struct Source {
    channel: Channel,
    places: Places,
    /// Items with the cycle before which they do not come.
    waiting: VecDeque<(Vec<Words>, u64)>,
    stalls: Stalls,
    offers: bool,
    /// Cycles in which an item was offered and not taken.
    refused: u64,
}

struct Sink {
    channel: Channel,
    places: Places,
    expected: VecDeque<Vec<Words>>,
    stalls: Stalls,
    /// Offered and not taken: it must stay.
    held: Option<Vec<Words>>,
    /// Items, and the cycles of the first and the last.
    taken: u64,
    first: u64,
    last: u64,
}

/// A block that runs.
pub(crate) struct Bench {
    run: Simulation,
    ins: Layout,
    outs: Layout,
    inputs: Record,
    outputs: Record,
    pub(crate) rng: Rng,
    sources: Vec<Source>,
    sinks: Vec<Sink>,
    /// Whether nobody stalls.
    pub(crate) full_rate: bool,
    idle: u64,
    compared: u64,
}

/// What moved in a cycle: channels by name.
#[derive(Default)]
pub(crate) struct Moved(Vec<(&'static str, Vec<Words>)>);

impl Moved {
    /// What this channel has moved.
    pub(crate) fn on(&self, channel: &str) -> Option<&[Words]> {
        let moved = self.0.iter().find(|(name, _)| *name == channel);
        moved.map(|(_, fields)| fields.as_slice())
    }
}

impl Bench {
    fn new(block: &Block, program: &Program, seed: u64) -> Result<Self, Failure> {
        let run = program.start().map_err(SimError::from)?;
        let (ins, outs) = (run.inputs().clone(), run.outputs().clone());
        let full_rate = seed == 0;
        let stalls = || if full_rate { Stalls::NONE } else { Stalls { eighths: 0, until: 0 } };
        let source = |channel: &Channel| Source {
            channel: *channel,
            places: Places::new(channel, (&ins, "i"), (&outs, "o")),
            waiting: VecDeque::new(),
            stalls: stalls(),
            offers: false,
            refused: 0,
        };
        let sink = |channel: &Channel| Sink {
            channel: *channel,
            places: Places::new(channel, (&outs, "o"), (&ins, "i")),
            expected: VecDeque::new(),
            stalls: stalls(),
            held: None,
            taken: 0,
            first: 0,
            last: 0,
        };
        Ok(Self {
            inputs: ins.zero(),
            outputs: outs.zero(),
            rng: Rng::new(seed),
            sources: block.sources.iter().map(source).collect(),
            sinks: block.sinks.iter().map(sink).collect(),
            run,
            ins,
            outs,
            full_rate,
            idle: 0,
            compared: 0,
        })
    }

    /// The next cycle.
    pub(crate) const fn now(&self) -> u64 {
        self.run.cycle()
    }

    /// Give `channel` an item, when all before it are taken.
    pub(crate) fn offer(&mut self, channel: &str, fields: Vec<Words>) {
        self.offer_from(channel, fields, 0);
    }

    /// The same, not before a cycle.
    pub(crate) fn offer_from(&mut self, channel: &str, fields: Vec<Words>, cycle: u64) {
        let source = self.sources.iter_mut().find(|source| source.channel.name == channel);
        let source = source.unwrap_or_else(|| panic!("no source `{channel}`"));
        assert_eq!(source.channel.fields.len(), fields.len(), "{channel}");
        source.waiting.push_back((fields, cycle));
    }

    /// `channel` has to give an item, when it has given all before it.
    pub(crate) fn expect(&mut self, channel: &str, fields: Vec<Words>) {
        let sink = self.sinks.iter_mut().find(|sink| sink.channel.name == channel);
        let sink = sink.unwrap_or_else(|| panic!("no sink `{channel}`"));
        assert_eq!(sink.channel.fields.len(), fields.len(), "{channel}");
        sink.expected.push_back(fields);
    }

    /// Set an input of no channel, until it is set again.
    pub(crate) fn set(&mut self, port: &str, value: &[u32]) {
        let port = self.ins.port(port);
        self.ins.set_words(&mut self.inputs, port, value);
    }

    /// An output in the last cycle.
    pub(crate) fn get(&self, port: &str) -> &[u32] {
        self.outs.get_words(&self.outputs, self.outs.port(port))
    }

    /// An input in the last cycle.
    pub(crate) fn given(&self, port: &str) -> &[u32] {
        self.ins.get_words(&self.inputs, self.ins.port(port))
    }

    /// That an output was this in the last cycle.
    pub(crate) fn check(&mut self, port: &str, expected: &[u32]) -> Result<(), Failure> {
        self.compared += 1;
        compare(port, self.get(port), expected)
    }

    /// Cycles in which an item was offered to `source` and not taken.
    pub(crate) fn refused(&self, source: &str) -> u64 {
        let found = self.sources.iter().find(|found| found.channel.name == source);
        found.map_or(0, |source| source.refused)
    }

    /// Cycles between the first and the last item of `sink` without one.
    pub(crate) fn gaps(&self, sink: &str) -> u64 {
        let found = self.sinks.iter().find(|found| found.channel.name == sink);
        found.map_or(0, |sink| (sink.last + 1).saturating_sub(sink.first + sink.taken))
    }

    /// At full rate, that `what` is zero.
    pub(crate) fn never(&self, what: &str, count: u64) -> Result<(), Failure> {
        if self.full_rate { compare(what, &[count as u32], &[0]) } else { Ok(()) }
    }

    /// Whether anything is still to come.
    pub(crate) fn busy(&self) -> bool {
        self.sources.iter().any(|source| !source.waiting.is_empty())
            || self.sinks.iter().any(|sink| !sink.expected.is_empty())
    }

    /// All that is to come, and some cycles in which nothing may.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        while self.busy() {
            self.cycle()?;
        }
        for _ in 0..40 {
            self.cycle()?;
        }
        Ok(())
    }

    /// One cycle.
    pub(crate) fn cycle(&mut self) -> Result<Moved, Failure> {
        self.apply();
        self.outputs = self.run.step(&self.inputs)?;
        let mut moved = Moved::default();
        let set = |port: usize| self.outs.get(&self.outputs, port) != 0;
        for source in self.sources.iter_mut().filter(|source| source.offers) {
            if source.places.ready.is_none_or(set) {
                let item = source.waiting.pop_front().map(|(fields, _)| fields);
                moved.0.push((source.channel.name, item.unwrap_or_default()));
                source.offers = false;
            } else {
                source.refused += 1;
            }
        }
        let cycle = self.run.cycle() - 1;
        for sink in &mut self.sinks {
            let name = sink.channel.name;
            let valid = set(sink.places.valid);
            let port = |port: &usize| self.outs.get_words(&self.outputs, *port).to_vec();
            let item: Vec<Words> = sink.places.fields.iter().map(port).collect();
            if let Some(held) = sink.held.take() {
                compare(&format!("{}_o", sink.channel.valid()), &[u32::from(valid)], &[1])?;
                compare_all(&sink.channel, &item, &held)?;
            }
            let ready = sink.places.ready;
            let takes = ready.is_none_or(|ready| self.ins.get(&self.inputs, ready) != 0);
            if valid && takes {
                let Some(expected) = sink.expected.pop_front() else {
                    let port = format!("{}_o", sink.channel.valid());
                    return compare(&port, &[1], &[0]).map(|()| moved);
                };
                compare_all(&sink.channel, &item, &expected)?;
                self.compared += item.len() as u64;
                sink.first = if sink.taken == 0 { cycle } else { sink.first };
                sink.last = cycle;
                sink.taken += 1;
                moved.0.push((name, item));
            } else if valid {
                sink.held = Some(item);
            }
        }
        let waits = moved.0.is_empty() && self.busy();
        self.idle = if waits { self.idle + 1 } else { 0 };
        if self.idle > PATIENCE {
            let waits = self.sinks.iter().filter(|sink| !sink.expected.is_empty());
            let names: Vec<_> = waits.map(|sink| sink.channel.name).collect();
            return Err(Failure::Hangs(format!("nothing moves; still to come from {names:?}")));
        }
        Ok(moved)
    }

    /// What sources and sinks do in the next cycle.
    fn apply(&mut self) {
        let cycle = self.run.cycle();
        for source in &mut self.sources {
            if let Some((fields, from)) = source.waiting.front() {
                // What is offered stays.
                let moves = source.stalls.moves(cycle, &mut self.rng);
                source.offers = source.offers || (*from <= cycle && moves);
                for (port, value) in source.places.fields.iter().zip(fields) {
                    self.ins.set_words(&mut self.inputs, *port, value);
                }
            }
            self.ins.set(&mut self.inputs, source.places.valid, source.offers.into());
        }
        for sink in &mut self.sinks {
            if let Some(ready) = sink.places.ready {
                let moves = sink.stalls.moves(cycle, &mut self.rng);
                self.ins.set(&mut self.inputs, ready, moves.into());
            }
        }
    }
}

fn compare_all(channel: &Channel, found: &[Words], expected: &[Words]) -> Result<(), Failure> {
    for (((field, _), found), expected) in channel.fields.iter().zip(found).zip(expected) {
        compare(&format!("{field}_o"), found, expected)?;
    }
    Ok(())
}

/// That a port has the words it should have; what is missing of these is zero.
pub(crate) fn compare(port: &str, found: &[u32], expected: &[u32]) -> Result<(), Failure> {
    let text = |words: &[u32]| {
        let digits: String = words.iter().rev().map(|word| format!("{word:08x}")).collect();
        format!("0x{digits}")
    };
    let given = expected.iter().copied().chain(std::iter::repeat(0));
    let expected: Words = given.take(found.len().max(expected.len())).collect();
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (text(found), text(&expected));
    Err(Failure::Differs { port: port.to_owned(), found, expected })
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
        let (mut cycles, mut compared) = (0, 0);
        for case in 0..self.cases.len() {
            // Cases of the same parameters are one design.
            let same = self.cases.iter().position(|of| *of == self.cases[case]).unwrap_or(case);
            let folder = folder(&format!("{}-{same}", self.name));
            let program = self.build(case, &tools, &folder, &self.sources(&folder, None));
            match self.runs(&program, case) {
                Ok(done) => (cycles, compared) = (cycles + done.0, compared + done.1),
                Err(why) => panic!("{} case {case} {why}", self.name),
            }
        }
        println!("{}: {cycles} cycles, {compared} values equal", self.name);
        self.check_mutants(&tools);
    }

    /// At full rate, then with stalls. How many cycles, and values that were compared.
    fn runs(&self, program: &Program, case: usize) -> Result<(u64, u64), String> {
        let set = std::env::var(RUNS).ok().and_then(|runs| runs.parse().ok());
        let runs: u64 = set.unwrap_or(0).max(RUNS_AT_LEAST);
        let (mut cycles, mut compared) = (0, 0);
        for seed in 0..=runs {
            let mut bench = Bench::new(self, program, seed).map_err(|why| why.to_string())?;
            let done = (self.run)(&mut bench, case);
            let cycle = bench.now().saturating_sub(1);
            done.map_err(|why| format!("seed {seed} cycle {cycle}: {why}"))?;
            cycles += bench.now();
            compared += bench.compared;
        }
        Ok((cycles, compared))
    }

    fn check_mutants(&self, tools: &Tools) {
        mistakes::check(self.name, self.mutants, |mutant, at| {
            let folder = folder(&format!("{}-mutant-{at}", self.name));
            let sources = self.sources(&folder, Some(mutant));
            let program = self.build(mutant.case(), tools, &folder, &sources);
            self.runs(&program, mutant.case()).map(|_| ())
        });
    }

    /// Its files; the one with a mistake is a copy in `folder`.
    fn sources(&self, folder: &Path, mutant: Option<&Mutant>) -> Vec<PathBuf> {
        let files = self.files.iter().copied();
        mistakes::sources(files, |file| format!("{file}.sv"), mutant, folder)
    }

    /// The block in `case`, of these files.
    fn design(&self, case: usize, sources: Vec<PathBuf>) -> Design {
        let parameters = self.cases[case];
        let header = parameters.iter().find(|(name, _)| *name == "HeaderBytes");
        let header = header.map_or(0, |(_, bytes)| 8 * *bytes as u32);
        let ports = |ports: &[(&str, u32)], end: &str| -> Vec<Port> {
            let width = |bits: u32| if bits == HEADER { header } else { bits };
            let port =
                |(name, bits): &(&str, u32)| Port::new(&format!("{name}_{end}"), width(*bits));
            ports.iter().map(port).collect()
        };
        let mut inputs = ports(self.inputs, "i");
        let mut outputs = ports(self.outputs, "o");
        for channel in self.sources {
            inputs.push(Port::new(&format!("{}_i", channel.valid()), 1));
            inputs.extend(ports(channel.fields, "i"));
            outputs
                .extend(channel.ready.then(|| Port::new(&format!("{}_ready_o", channel.name), 1)));
        }
        for channel in self.sinks {
            outputs.push(Port::new(&format!("{}_o", channel.valid()), 1));
            outputs.extend(ports(channel.fields, "o"));
            inputs
                .extend(channel.ready.then(|| Port::new(&format!("{}_ready_i", channel.name), 1)));
        }
        let parameter = |(name, value): &(&str, u64)| {
            // What is wider than a number says so.
            let wide = *value > u32::MAX.into();
            let value = if wide { format!("64'h{value:x}") } else { value.to_string() };
            ((*name).to_owned(), value)
        };
        Design {
            top: self.name.into(),
            sources,
            parameters: parameters.iter().map(parameter).collect(),
            inputs,
            outputs,
        }
    }

    fn build(&self, case: usize, tools: &Tools, folder: &Path, sources: &[PathBuf]) -> Program {
        let design = self.design(case, sources.to_vec());
        design.build(tools, folder).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// What it costs in `case`.
    pub(crate) fn cost(&self, case: usize) -> Option<Synthesis> {
        let tools = match SynthTools::find() {
            Ok(tools) => tools,
            Err(why) => {
                println!("{} skipped: {why}", self.name);
                return None;
            }
        };
        let folder = folder(&format!("{}-synthesis-{case}", self.name));
        let design = self.design(case, self.sources(&folder, None));
        Some(synthesise(&tools, &design, &folder).unwrap_or_else(|why| panic!("{why}")))
    }
}

fn folder(name: &str) -> PathBuf {
    mistakes::folder("payload", name)
}

/// The port of a beat with the first of `bytes`, and whether it is the last; what is beyond them
/// is `beyond`.
fn beat(bytes: &[u8], last: bool, beyond: &[u8; 64]) -> Words {
    let bytes_of = |at: usize| bytes.get(at).copied().unwrap_or(beyond[at]);
    let data: Vec<u8> = (0..64).map(bytes_of).collect();
    let mut words = words(&data);
    words.push(bytes.len() as u32 | u32::from(last) << 7);
    words
}

/// Bytes as words, byte 0 the lowest.
pub(crate) fn words(bytes: &[u8]) -> Words {
    let word = |chunk: &[u8]| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    };
    bytes.chunks(4).map(word).collect()
}

/// The beats of a frame as they go in: what is beyond its end is anything.
pub(crate) fn beats_in(rng: &mut Rng, frame: &[u8]) -> Vec<Words> {
    let n = frame.len().div_ceil(64).max(1);
    let part = |at: usize| &frame[64 * at..frame.len().min(64 * (at + 1))];
    (0..n)
        .map(|at| beat(part(at), at + 1 == n, &std::array::from_fn(|_| rng.next() as u8)))
        .collect()
}

/// The beats of a frame as they come out: what is beyond its end is zero.
pub(crate) fn beats_out(frame: &[u8]) -> Vec<Words> {
    let n = frame.len().div_ceil(64).max(1);
    let part = |at: usize| &frame[64 * at..frame.len().min(64 * (at + 1))];
    (0..n).map(|at| beat(part(at), at + 1 == n, &[0; 64])).collect()
}
