//! A design, built by Verilator and run as a child process: a record of inputs for each cycle in, a
//! record of outputs out.
//!
//! In a cycle the inputs are applied, the outputs are read when all logic has settled, and then the
//! clock rises. So an output is a function of this cycle's inputs and of what the edges before it
//! have stored. Reset (`rst_ni`) has been applied before the first cycle.

use std::fmt::{self, Write as _};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::guard::Guard;
use crate::record::{Layout, Port, Record};
use crate::runtime::{HEADERS, Runtime, Waves, compiler};
use crate::tools::{ToolError, Tools, output};

/// A design to be run: sources, and the ports of its top module beside `clk_i` and `rst_ni`.
#[derive(Clone, Debug)]
pub struct Design {
    /// The top module.
    pub top: String,
    /// SystemVerilog files, packages before those that import them.
    pub sources: Vec<PathBuf>,
    /// Parameters of the top module, as SystemVerilog writes their values.
    pub parameters: Vec<(String, String)>,
    /// Inputs.
    pub inputs: Vec<Port>,
    /// Outputs.
    pub outputs: Vec<Port>,
}

/// Why a design cannot be built or run.
#[derive(Debug, Error)]
pub enum SimError {
    /// Verilator or the compiler refuses it.
    #[error("{0}")]
    Build(#[from] ToolError),
    /// A file.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The simulation has ended by itself, by an assertion or a crash; or it has not answered.
    #[error(
        "the simulation of `{top}` {how} in {}; its last input: {input}{}",
        cycles(*cycle, *batch),
        colon(said)
    )]
    Died {
        /// The top module.
        top: String,
        /// What it did: see [`How`].
        how: How,
        /// The first cycle whose outputs did not come.
        cycle: u64,
        /// Cycles that it had been given.
        batch: usize,
        /// The inputs of the last of them that are not zero.
        input: String,
        /// What it said.
        said: String,
    },
}

/// How a simulation ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By itself, or by somebody else's hand.
    Ended,
    /// It was ended, because no answer came in this time.
    Hung(Duration),
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => write!(f, "ended"),
            Self::Hung(patience) => write!(f, "did not answer for {patience:?}"),
        }
    }
}

fn cycles(first: u64, batch: usize) -> String {
    match batch {
        0 | 1 => format!("cycle {first}"),
        _ => format!("one of the {batch} cycles from {first}"),
    }
}

/// What it said, if anything, behind a colon.
fn colon(said: &str) -> String {
    match said.trim() {
        "" => String::new(),
        said => format!("; it said: {said}"),
    }
}

impl Design {
    /// The same of `texts`, names and texts of its sources, which are written to `folder`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn written(&self, texts: &[(String, String)], folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut sources = Vec::new();
        for (name, text) in texts {
            sources.push(folder.join(name));
            fs::write(&sources[sources.len() - 1], text)?;
        }
        Ok(Self { sources, ..self.clone() })
    }

    /// Build it in `folder`, and start it.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn start(&self, tools: &Tools, folder: &Path) -> Result<Simulation, SimError> {
        Ok(self.build(tools, folder)?.start()?)
    }

    /// Build it in `folder`, unless it stands there.
    ///
    /// # Errors
    /// See [`SimError`]. Any warning of Verilator is an error.
    pub fn build(&self, tools: &Tools, folder: &Path) -> Result<Program, SimError> {
        self.build_with(tools, folder, Waves::No)
    }

    /// The same, which can write waveforms: [`Program::start_waves`].
    ///
    /// # Errors
    /// See [`Design::build`].
    pub fn build_waves(&self, tools: &Tools, folder: &Path) -> Result<Program, SimError> {
        self.build_with(tools, folder, Waves::Yes)
    }

    fn build_with(&self, tools: &Tools, folder: &Path, waves: Waves) -> Result<Program, SimError> {
        fs::create_dir_all(folder)?;
        let runtime = Runtime::find(tools, folder, waves)?;
        let read = |path: &PathBuf| Ok((path.display().to_string(), fs::read_to_string(path)?));
        let texts: Vec<_> = self.sources.iter().map(read).collect::<io::Result<_>>()?;
        let (built, key) = (folder.join("built"), self.key(runtime.key(), &texts));
        let stands = fs::read_to_string(&built).is_ok_and(|text| text == key);
        if !(stands && folder.join("simulation").exists()) {
            let _ = fs::remove_file(&built);
            self.compile(tools, &runtime, folder, waves)?;
            fs::write(built, key)?;
        }
        Ok(self.program(folder))
    }

    /// The same for two builds that make the same simulation: with the same runtime, of sources
    /// with these names and texts.
    pub(crate) fn key(&self, runtime: u64, texts: &[(String, String)]) -> String {
        let mut hash = DefaultHasher::new();
        (runtime, FLAGS, &self.top, &self.parameters, self.main(), texts).hash(&mut hash);
        format!("{:016x}", hash.finish())
    }

    fn compile(
        &self,
        tools: &Tools,
        runtime: &Runtime,
        folder: &Path,
        waves: Waves,
    ) -> Result<(), SimError> {
        // What an earlier design has left here is no part of this one.
        generated(folder)?.iter().try_for_each(fs::remove_file)?;
        let mut verilator = tools.verilator();
        verilator.args(FLAGS).args(["--top-module", &self.top]);
        if waves == Waves::Yes {
            verilator.args(["--trace", "--trace-structs"]);
        }
        verilator.arg("--Mdir").arg(folder);
        for (name, value) in &self.parameters {
            verilator.arg(format!("-G{name}={value}"));
        }
        output(verilator.args(&self.sources))?;
        fs::write(folder.join("main.cpp"), self.main())?;
        let whole = folder.join("whole.cc");
        fs::write(&whole, one_unit(&generated(folder)?))?;
        let mut compiler = compiler(tools, waves);
        compiler.arg("-I").arg(folder).arg("-I").arg(runtime.folder());
        compiler.arg(&whole).arg(runtime.object());
        output(compiler.arg("-o").arg(folder.join("simulation")))?;
        Ok(())
    }

    /// As [`Design::build`] has left it in `folder`.
    #[must_use]
    pub fn program(&self, folder: &Path) -> Program {
        let layout = |ports: &[Port]| Layout::new(ports.to_vec());
        Program {
            top: self.top.clone(),
            program: folder.join("simulation"),
            inputs: layout(&self.inputs),
            outputs: layout(&self.outputs),
            patience: PATIENCE,
        }
    }

    /// The program around the model: see the top of the file. It reads a batch whole before it
    /// answers, so neither side waits for the other to read.
    fn main(&self) -> String {
        let each = |ports: &[Port], call: &str| {
            ports.iter().fold(String::new(), |mut text, port| {
                let _ = writeln!(text, "    {call}(top.{}, w, {});", port.name(), port.words());
                text
            })
        };
        let words = |ports: &[Port]| ports.iter().map(Port::words).sum::<usize>();
        MAIN.replace("@APPLY@", &each(&self.inputs, "apply"))
            .replace("@SAMPLE@", &each(&self.outputs, "sample"))
            .replace("@INPUTS@", &words(&self.inputs).to_string())
            .replace("@OUTPUTS@", &words(&self.outputs).to_string())
    }
}

/// What Verilator is always told.
const FLAGS: [&str; 5] = ["--cc", "-Wall", "--assert", "--prefix", "Vtop"];

const MAIN: &str = r#"// Generated by trimline: runs the model of Vtop.h on records of words.
#include "Vtop.h"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <vector>
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

template <typename T> static void apply(T& port, const uint32_t*& w, int words) {
    uint64_t value = *w++;
    if (words > 1) value |= static_cast<uint64_t>(*w++) << 32;
    port = static_cast<T>(value);
}
template <std::size_t N> static void apply(VlWide<N>& port, const uint32_t*& w, int) {
    for (std::size_t i = 0; i < N; ++i) port[i] = *w++;
}
template <typename T> static void sample(const T& port, uint32_t*& w, int words) {
    *w++ = static_cast<uint32_t>(port);
    if (words > 1) *w++ = static_cast<uint32_t>(static_cast<uint64_t>(port) >> 32);
}
template <std::size_t N> static void sample(const VlWide<N>& port, uint32_t*& w, int) {
    for (std::size_t i = 0; i < N; ++i) *w++ = port[i];
}

static void apply_all(Vtop& top, const uint32_t* w) {
    (void)w;
@APPLY@}
static void sample_all(const Vtop& top, uint32_t* w) {
    (void)top, (void)w;
@SAMPLE@}
// The waveform of the cycles from `first` on: cycle k begins at 2 k, the clock rises at 2 k + 1.
struct Waves {
#if VM_TRACE
    VerilatedVcdC file;
    uint64_t first = 0;
    void open(Vtop& top, int argc, char** argv) {
        if (argc < 3) return;
        first = std::strtoull(argv[2], nullptr, 10);
        Verilated::traceEverOn(true);
        top.trace(&file, 99);
        file.open(argv[1]);
    }
    void dump(uint64_t time) {
        if (!file.isOpen() || time < 2 * first) return;
        file.dump(time);
        file.flush();
    }
#else
    void open(Vtop&, int, char**) {}
    void dump(uint64_t) {}
#endif
    uint64_t cycle = 0;
};

// The clock falls with the next inputs: nothing looks at its fall, and each look costs a third.
static void edge(Vtop& top, Waves& waves) {
    waves.dump(2 * waves.cycle);
    top.clk_i = 1;
    top.eval();
    waves.dump(2 * waves.cycle++ + 1);
    top.clk_i = 0;
}

int main(int argc, char** argv) {
    // Assertions speak on the standard output: records have one of their own.
    std::FILE* records = fdopen(dup(1), "wb");
    if (!records || dup2(2, 1) < 0) return 1;
    static Vtop top;
    static Waves waves;
    waves.open(top, argc, argv);
    std::vector<uint32_t> in(@INPUTS@), out(@OUTPUTS@);
    apply_all(top, in.data());
    top.clk_i = 0;
    top.rst_ni = 1;
    top.eval();
    top.rst_ni = 0;
    top.eval();
    Waves none;
    edge(top, none);
    top.rst_ni = 1;
    top.eval();
    uint32_t cycles;
    while (std::fread(&cycles, sizeof cycles, 1, stdin) == 1) {
        // The highest bit: a look at the outputs, without an edge.
        const bool look = cycles >> 31;
        cycles &= 0x7fffffff;
        in.resize(std::size_t{cycles} * @INPUTS@);
        out.resize(std::size_t{cycles} * @OUTPUTS@);
        if (std::fread(in.data(), 4, in.size(), stdin) != in.size()) return 1;
        for (uint32_t cycle = 0; cycle < cycles; ++cycle) {
            apply_all(top, in.data() + std::size_t{cycle} * @INPUTS@);
            top.eval();
            sample_all(top, out.data() + std::size_t{cycle} * @OUTPUTS@);
            if (!look) edge(top, waves);
        }
        if (std::fwrite(out.data(), 4, out.size(), records) != out.size()) return 1;
        std::fflush(records);
    }
    return 0;
}
"#;

/// A batch of thousands of cycles of the largest design takes a second on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The bit of a batch's length that asks for a look ([`Simulation::look`]).
const LOOK: u32 = 1 << 31;

/// All of it for the compiler at once, behind the headers that the runtime has compiled.
fn one_unit(files: &[PathBuf]) -> String {
    let names = files.iter().filter_map(|file| file.file_name()?.to_str());
    let names = std::iter::once(HEADERS).chain(names).chain(["main.cpp"]);
    names.map(|name| format!("#include \"{name}\"\n")).collect()
}

/// The C++ that Verilator has written.
fn generated(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let is_model = name.is_some_and(|name| name.starts_with("Vtop") && name.ends_with(".cpp"));
        if is_model {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A design that has been built.
#[derive(Clone, Debug)]
pub struct Program {
    top: String,
    program: PathBuf,
    inputs: Layout,
    outputs: Layout,
    patience: Duration,
}

impl Program {
    /// The same, which has this time for an answer: it hangs if twice that passes without one.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Start it, after its reset.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(&self) -> io::Result<Simulation> {
        self.run(Command::new(&self.program))
    }

    /// Start one of [`Design::build_waves`]: it writes a VCD file of the cycles from `first` on, in
    /// which cycle k begins at 2 k and the clock rises at its end.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start_waves(&self, file: &Path, first: u64) -> io::Result<Simulation> {
        let mut command = Command::new(&self.program);
        command.arg(file).arg(first.to_string());
        self.run(command)
    }

    fn run(&self, mut command: Command) -> io::Result<Simulation> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let guard = Guard::new(child, self.patience)?;
        let (Some(input), Some(output)) = (input, output) else {
            return Err(io::Error::other("a child without pipes"));
        };
        Ok(Simulation { built: self.clone(), guard, input, output, cycle: 0 })
    }
}

/// A design that runs.
#[derive(Debug)]
pub struct Simulation {
    built: Program,
    guard: Arc<Guard>,
    input: ChildStdin,
    output: ChildStdout,
    cycle: u64,
}

impl Simulation {
    /// The order of its inputs.
    #[must_use]
    pub const fn inputs(&self) -> &Layout {
        &self.built.inputs
    }

    /// The order of its outputs.
    #[must_use]
    pub const fn outputs(&self) -> &Layout {
        &self.built.outputs
    }

    /// The next cycle: how many have run.
    #[must_use]
    pub const fn cycle(&self) -> u64 {
        self.cycle
    }

    /// One cycle.
    ///
    /// # Errors
    /// See [`SimError::Died`].
    pub fn step(&mut self, inputs: &Record) -> Result<Record, SimError> {
        let outputs = self.run(std::slice::from_ref(inputs))?.pop();
        Ok(outputs.unwrap_or_else(|| self.outputs().zero()))
    }

    /// What the outputs are with these inputs; the cycle goes on.
    ///
    /// # Errors
    /// See [`SimError::Died`].
    pub fn look(&mut self, inputs: &Record) -> Result<Record, SimError> {
        let outputs = self.exchange(std::slice::from_ref(inputs), LOOK)?.pop();
        Ok(outputs.unwrap_or_else(|| self.outputs().zero()))
    }

    /// As many cycles as there are records; their outputs.
    ///
    /// # Errors
    /// See [`SimError::Died`].
    pub fn run(&mut self, inputs: &[Record]) -> Result<Vec<Record>, SimError> {
        let outputs = self.exchange(inputs, 0)?;
        self.cycle += inputs.len() as u64;
        Ok(outputs)
    }

    fn exchange(&mut self, inputs: &[Record], how: u32) -> Result<Vec<Record>, SimError> {
        self.guard.waits(true);
        let outputs = self.ask(inputs, how);
        self.guard.waits(false);
        outputs.map_err(|_| self.died(inputs))
    }

    fn ask(&mut self, inputs: &[Record], how: u32) -> io::Result<Vec<Record>> {
        let mut bytes = Vec::with_capacity(4 + 4 * inputs.len() * self.inputs().words());
        bytes.extend((inputs.len() as u32 | how).to_ne_bytes());
        let words = inputs.iter().flat_map(|record| &record.0);
        words.for_each(|word| bytes.extend(word.to_ne_bytes()));
        self.input.write_all(&bytes)?;
        self.input.flush()?;
        let words = self.outputs().words();
        let mut bytes = vec![0; 4 * words * inputs.len()];
        self.output.read_exact(&mut bytes)?;
        let word = |bytes: &[u8]| u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let mut words_of = bytes.chunks_exact(4).map(word);
        Ok(inputs.iter().map(|_| Record(words_of.by_ref().take(words).collect())).collect())
    }

    fn died(&self, inputs: &[Record]) -> SimError {
        let hung = self.guard.has_ended_it();
        SimError::Died {
            top: self.built.top.clone(),
            how: if hung { How::Hung(self.built.patience) } else { How::Ended },
            cycle: self.cycle,
            batch: inputs.len(),
            input: inputs.last().map(|record| self.inputs().show(record)).unwrap_or_default(),
            said: self.guard.last_words(),
        }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.guard.end();
    }
}

#[cfg(test)]
pub(crate) mod tests;
