//! `trimline rtl cosim`: a design beside the model of it. Of what differs it leaves the shortest
//! inputs, a waveform, and the commands that repeat it.

mod bytes;
mod nic;
mod pipelines;
mod switch;

use std::fs;
use std::path::Path;
use std::time::Duration;

use rtl::cosim::{Evidence, Failure, waves};
use rtl::kept;
use rtl::sim::{Program, SimError, Simulation};
use rtl::tools::Tools;
use scenario::{Diagnostic, Error, read_text};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Made, What, no_tools};
use crate::args::{self, Hardware, RtlCosim, USUAL_RATE};
use crate::progress::Count;
use crate::{Ended, say, say_json};

/// How long the shortest inputs are looked for.
const LOOKED_FOR: Duration = Duration::from_secs(60);

/// What to do with a trace that is none.
const NO_TRACE: &str = "--replay wants a trace.json that `trimline rtl cosim` has written of this \
                        program, with the same --constant, --set and --pipelines";

/// `trimline rtl cosim PROGRAM`.
pub(crate) fn cosim(args: &RtlCosim, progress: args::Progress) -> Ended {
    let made = Made::new(&args.hardware, args.bytes)?;
    let run = Run { args, made: &made, progress };
    match &made.what {
        What::Nic(nic) if args.bytes => bytes::beside(&run, &nic.1),
        What::Nic(nic) => nic::beside(&run, &nic.1),
        What::Port(port) => switch::beside(&run, (&port.0, &port.1)),
        What::Pipelines(pipelines) => pipelines::beside(&run, pipelines),
    }
}

/// What is written of a mismatch.
#[derive(Serialize, Deserialize)]
struct Written<T> {
    program: String,
    seed: u64,
    mismatch: String,
    field: String,
    place: String,
    cycle: u64,
    trace: T,
}

impl<T> Written<T> {
    /// Of a failure that was made small.
    fn new<E: Failure + ToString>(
        run: &Run<'_>,
        (field, place): (String, String),
        small: Evidence<T, E>,
    ) -> Self {
        Self {
            program: run.name(),
            seed: run.args.seed,
            mismatch: small.failure.to_string(),
            field,
            place,
            cycle: small.cycle(),
            trace: small.trace,
        }
    }
}

/// What was compared, for `--json`. A mismatch is an error.
#[derive(Serialize)]
struct Agrees<'a> {
    program: String,
    mismatches: u32,
    cycles: Option<u64>,
    compared: Vec<&'a str>,
}

/// A design of a program, and what the command says of it.
struct Run<'a> {
    args: &'a RtlCosim,
    made: &'a Made,
    progress: args::Progress,
}

impl Run<'_> {
    fn name(&self) -> String {
        self.args.hardware.program.file.display().to_string()
    }

    /// Say that there is no mismatch, and in what.
    fn say_agrees(&self, cycles: Option<u64>, lines: &[String]) -> Ended {
        if self.args.json {
            let compared = lines.iter().map(|line| line.trim()).collect();
            return say_json(&Agrees { program: self.name(), mismatches: 0, cycles, compared });
        }
        let cycles = cycles.map_or(String::new(), |cycles| format!(" in {cycles} cycles"));
        say(format_args!("{}: no mismatch{cycles}", self.name()))?;
        lines.iter().try_for_each(say)
    }

    /// A mismatch of which nothing is left but the way to it.
    fn differs(&self, why: &str) -> Error {
        let RtlCosim { hardware, packets, seed, spaced, bytes, .. } = self.args;
        let mut again = format!("{} --packets {packets} --seed {seed}", command(hardware));
        again += if *spaced { " --spaced" } else { "" };
        again += if *bytes { " --bytes" } else { "" };
        Error::Run { what: format!("{}: {why}", self.title()), hint: format!("again: {again}") }
    }

    /// The program, and which draws.
    fn title(&self) -> String {
        format!("{}, seed {}", self.name(), self.args.seed)
    }

    /// The design, built, the tools and what shows progress.
    fn built(&self) -> Result<(Tools, Program, Count), Error> {
        let tools = Tools::find().map_err(|why| no_tools(&why))?;
        let bar = Count::new(self.progress, "building the design");
        let (texts, ports) = (self.made.texts(), self.made.ports());
        let built = kept::built(&tools, &texts, &ports).map_err(|why| failed(&why))?;
        Ok((tools, built, bar))
    }

    /// What an earlier run has left in `file`; `check` says why it cannot be used.
    fn earlier<T: DeserializeOwned>(
        file: &Path,
        check: impl Fn(&T) -> Result<(), String>,
    ) -> Result<Written<T>, Error> {
        let name = file.display();
        let text =
            read_text(file).map_err(|why| Diagnostic::new(format!("cannot read {name}: {why}")))?;
        let refused = |message: String| Diagnostic::new(message).hint(NO_TRACE);
        let written: Written<T> = serde_json::from_str(&text).map_err(|why| {
            let text = why.to_string();
            let what = text.rsplit_once(" at line").map_or(&*text, |(what, _)| what);
            refused(format!("{name}:{}:{}: {what}", why.line(), why.column()))
        })?;
        check(&written.trace).map_err(|why| refused(format!("{name}: `trace`: {why}")))?;
        Ok(written)
    }

    /// Trace and waveform are written, of which `shows` gives a simulation its inputs; what to do
    /// with them.
    fn leave<T: Serialize>(
        &self,
        tools: &Tools,
        written: &Written<T>,
        shows: &dyn Fn(Simulation),
    ) -> Result<String, SimError> {
        let dir = &self.args.out;
        fs::create_dir_all(dir)?;
        let (trace, vcd) = (dir.join("trace.json"), dir.join("waves.vcd"));
        fs::write(&trace, serde_json::to_string_pretty(written).map_err(std::io::Error::from)?)?;
        let folder = kept::folder().join(format!("waves.{}", std::process::id()));
        let design = self.made.ports().written(&self.made.texts(), &folder)?;
        let drawn = waves((tools, &design), &folder, &vcd, written.cycle).map(shows);
        fs::remove_dir_all(&folder)?;
        drawn?;
        let (trace, vcd) = (trace.display(), vcd.display());
        let command = command(&self.args.hardware);
        Ok(format!("{trace}; the last 200 cycles: {vcd}; again: {command} --replay {trace}"))
    }
}

fn failed(why: &SimError) -> Error {
    Error::Run { what: why.to_string(), hint: "trimline rtl build writes the same design".into() }
}

/// This command, without what a trace says.
fn command(hardware: &Hardware) -> String {
    let program = &hardware.program;
    let mut words = vec!["trimline rtl cosim".to_owned(), program.file.display().to_string()];
    let constants = program.constants.iter();
    words.extend(constants.map(|(name, value)| format!("--constant {name}={value}")));
    words.extend(program.entries.iter().map(|file| format!("--entries {}", file.display())));
    words.extend(hardware.sets.iter().map(|set| format!("--set '{set}'")));
    let rate = hardware.rate;
    words.extend((rate.to_string() != USUAL_RATE).then(|| format!("--rate {rate}")));
    words.extend(hardware.pipelines.then(|| "--pipelines".to_owned()));
    words.join(" ")
}
