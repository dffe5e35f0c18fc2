//! `trimline rtl cosim`: a design beside the model of it. Of what differs it leaves the shortest
//! inputs, a waveform, and the commands that repeat it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nic::nano::config::Config;
use nic::nano::endpoint::Runs;
use p4::interp::Machine;
use p4::ir::PipelineId;
use rtl::cosim::pipelines::{self, Bench, PipelineError};
use rtl::cosim::trace::Trace;
use rtl::cosim::traffic::{Plan, Traffic};
use rtl::cosim::{Again, Compared, Cosim, CosimError, Evidence, evidence, locate, recorded};
use rtl::kept;
use rtl::pipelines::Pipelines;
use rtl::sim::{Program, SimError};
use rtl::tools::Tools;
use scenario::{Diagnostic, Error, read_text};
use serde::{Deserialize, Serialize};

use super::{Made, What, no_tools};
use crate::args::{self, RtlCosim};
use crate::progress::Count;
use crate::{Ended, say, tell};

/// How long the shortest inputs are looked for.
const LOOKED_FOR: Duration = Duration::from_secs(60);

/// What is written of a mismatch.
#[derive(Serialize, Deserialize)]
struct Written {
    program: String,
    seed: u64,
    mismatch: String,
    field: String,
    place: String,
    cycle: u64,
    trace: Trace,
}

/// `trimline rtl cosim PROGRAM`.
pub(crate) fn cosim(args: &RtlCosim, progress: args::Progress) -> Ended {
    let made = Made::new(&args.hardware)?;
    let tools = Tools::find().map_err(|why| no_tools(&why))?;
    let bar = Count::new(progress, "building the design");
    let built = kept::built(&tools, &made.texts(), &made.ports()).map_err(|why| failed(&why))?;
    match &made.what {
        What::Pipelines(pipelines) => side_by_side(args, &made, pipelines, &built, bar),
        What::Nic(nic) => {
            let run = Run { args, made: &made, config: &nic.1, tools: &tools, built: &built };
            match &args.replay {
                Some(file) => run.replay(file),
                None => run.compare(bar),
            }
        }
    }
}

fn failed(why: &SimError) -> Error {
    Error::Run { what: why.to_string(), hint: "trimline rtl build writes the same design".into() }
}

/// A NIC beside its model.
struct Run<'a> {
    args: &'a RtlCosim,
    made: &'a Made,
    config: &'a Config,
    tools: &'a Tools,
    built: &'a Program,
}

impl Run<'_> {
    fn runs(&self) -> Runs {
        let mut machine = Machine::new(Arc::clone(self.made.program()));
        *p4::program::Program::<nic::nano::externs::Units>::state(&mut machine) =
            self.made.state.clone();
        Box::new(machine)
    }

    fn plan(&self) -> Plan {
        let (seed, spacing) = (self.args.seed, self.made.spacing());
        Plan { seed, spacing, is_dense: !self.args.spaced }
    }

    fn traffic(&self) -> Result<Traffic, Error> {
        let runs = || self.runs();
        Traffic::new(self.made.program(), &runs, self.config, self.plan())
            .map_err(|why| no_model(&why))
    }

    fn name(&self) -> String {
        self.args.hardware.program.file.display().to_string()
    }

    fn compare(&self, mut bar: Count) -> Ended {
        let circuit = self.built.start().map_err(|why| failed(&why.into()))?;
        let mut run = Cosim::new(circuit, self.traffic()?, self.config.clone());
        let packets = self.args.packets;
        let ended = run.run(packets, &mut |done| bar.update(done, packets, "packets"));
        match ended {
            Ok(compared) => {
                drop(bar);
                self.say_agrees(&compared)
            }
            Err(failure) => {
                bar.say("looking for the shortest inputs that fail so");
                let trace = recorded(self.traffic()?, &failure);
                let found = self.shrunk(&trace);
                drop(bar);
                Err(self.report(&failure, found?))
            }
        }
    }

    fn say_agrees(&self, compared: &Compared) -> Ended {
        let name = self.name();
        say(format_args!("{name}: no mismatch in {} cycles", compared.cycles))?;
        say(format_args!(
            "  packets: {} in, {} out; {} of them as close as they may come, {} cycles apart",
            compared.packets,
            compared.sent,
            compared.closest,
            self.made.spacing()
        ))?;
        say(format_args!(
            "  messages: {} delivered, {} acknowledged, {} given up",
            compared.delivered, compared.acked, compared.gave_up
        ))
    }

    fn again<'b>(&'b self, runs: &'b dyn Fn() -> Runs) -> Again<'b> {
        let (program, config) = (self.made.program().as_ref(), self.config);
        Again { program, runs, config, spacing: self.made.spacing() }
    }

    fn shrunk(&self, trace: &Trace) -> Result<Option<Evidence>, Error> {
        let runs = || self.runs();
        evidence(&self.again(&runs), self.built, trace, LOOKED_FOR).map_err(|why| failed(&why))
    }

    /// What is to be said of a failure, and its files.
    fn report(&self, failure: &CosimError, found: Option<Evidence>) -> Error {
        let Some(found) = found else {
            let what = format!("{}, seed {}: {failure}", self.name(), self.args.seed);
            let hint = "it did not come again with its own inputs alone: repeat the whole run";
            return Error::Run { what, hint: hint.into() };
        };
        let (field, place) = match failure {
            CosimError::Mismatch(mismatch) => {
                let located = locate(self.made.program(), mismatch);
                (located.field, located.place)
            }
            CosimError::Sim(_) => ("the simulation".to_owned(), String::new()),
        };
        let seed = self.args.seed;
        let at = if place.is_empty() { String::new() } else { format!(" ({place})") };
        let what = format!("{}, seed {seed}: {field}{at} differs: {failure}", self.name());
        let written = Written {
            program: self.name(),
            seed,
            mismatch: failure.to_string(),
            field,
            place,
            cycle: found.cycle(),
            trace: found.trace.clone(),
        };
        match self.write(&written, &found) {
            Ok(hint) => Error::Run { what, hint },
            Err(why) => Error::Run { what, hint: format!("its files cannot be written: {why}") },
        }
    }

    /// Trace and waveform; what to do with them.
    fn write(&self, written: &Written, found: &Evidence) -> Result<String, SimError> {
        let dir = &self.args.out;
        fs::create_dir_all(dir)?;
        let (trace, waves) = (dir.join("trace.json"), dir.join("waves.vcd"));
        let text = serde_json::to_string_pretty(written).map_err(std::io::Error::from)?;
        fs::write(&trace, text)?;
        let runs = || self.runs();
        let folder = kept::folder().join(format!("waves.{}", std::process::id()));
        let design = self.made.ports().written(&self.made.texts(), &folder)?;
        let drawn = found.waves(&self.again(&runs), (self.tools, &design), &folder, &waves);
        fs::remove_dir_all(&folder)?;
        drawn?;
        Ok(format!(
            "{} packets in {} cycles fail in the same way ({} inputs tried): {}; the last 200 \
             cycles: {}; again: {} --replay {}",
            found.trace.packets(),
            found.trace.len(),
            found.tried,
            trace.display(),
            waves.display(),
            self.command(),
            trace.display()
        ))
    }

    /// This command without packets and seed.
    fn command(&self) -> String {
        let hardware = &self.args.hardware;
        let mut words = vec!["trimline rtl cosim".to_owned(), self.name()];
        let constants = hardware.program.constants.iter();
        words.extend(constants.map(|(name, value)| format!("--constant {name}={value}")));
        let entries = hardware.program.entries.iter();
        words.extend(entries.map(|file| format!("--entries {}", file.display())));
        words.extend(hardware.sets.iter().map(|set| format!("--set '{set}'")));
        words.join(" ")
    }

    /// The inputs of an earlier mismatch.
    fn replay(&self, file: &Path) -> Ended {
        let name = file.display().to_string();
        let text =
            read_text(file).map_err(|why| Diagnostic::new(format!("cannot read {name}: {why}")))?;
        let written: Written = serde_json::from_str(&text).map_err(|why| {
            let error = Diagnostic::new(format!("{name}:{}:{}: {why}", why.line(), why.column()));
            error.hint("a trace.json that trimline rtl cosim has written is wanted")
        })?;
        let runs = || self.runs();
        let traffic = Traffic::alone(self.made.program(), &runs, self.config)
            .map_err(|why| no_model(&why))?;
        let circuit = self.built.start().map_err(|why| failed(&why.into()))?;
        let ended = Cosim::new(circuit, traffic, self.config.clone()).replay(&written.trace);
        match ended {
            Ok(compared) => self.say_agrees(&compared),
            Err(failure) => {
                let what = format!("{}: {failure}", self.name());
                let hint = format!("as it was: {}", written.field);
                Err(Error::Run { what, hint })
            }
        }
    }
}

fn no_model(why: &nic::nano::endpoint::ProgramError) -> Error {
    Diagnostic::new(why.to_string()).hint(super::ALONE).into()
}

/// Each pipeline beside the interpreter.
fn side_by_side(
    args: &RtlCosim,
    made: &Made,
    all: &Pipelines,
    built: &Program,
    mut bar: Count,
) -> Ended {
    let program = made.program();
    let (protocols, mut lines) = (made.protocols(), Vec::new());
    for (at, spacing) in (0..).map(PipelineId).zip(&made.spacings) {
        let pipeline = &program.pipelines[at.index()];
        let inputs = pipelines::draw(pipeline, &protocols, args.seed, args.packets);
        let spacing = u64::from(spacing.cycles);
        let run = |inputs: &[pipelines::Input], progress: &mut dyn FnMut(u64)| {
            let mut bench = Bench::new(&made.state, (all, program), at, built)?;
            bench.run(inputs, spacing, progress)
        };
        let what = format!("packets of {}", pipeline.name);
        match run(&inputs, &mut |done| bar.update(done, args.packets, &what)) {
            Ok(compared) => lines.push(format!(
                "  {}: {} packets, {} accepted, {spacing} cycles apart, {} cycles",
                pipeline.name, compared.packets, compared.accepted, compared.cycles
            )),
            Err(first) => {
                bar.say("looking for the fewest packets that fail so");
                let mut last = first;
                let inputs = fewest(inputs, &mut last, run);
                drop(bar);
                return Err(differs(args, &pipeline.name, &last, &inputs));
            }
        }
    }
    drop(bar);
    say(format_args!("{}: no mismatch", args.hardware.program.file.display()))?;
    lines.into_iter().try_for_each(say)
}

type Outcome = Result<pipelines::Compared, PipelineError>;

/// The fewest inputs that fail; `last` is how.
fn fewest(
    inputs: Vec<pipelines::Input>,
    last: &mut PipelineError,
    mut run: impl FnMut(&[pipelines::Input], &mut dyn FnMut(u64)) -> Outcome,
) -> Vec<pipelines::Input> {
    let PipelineError::Mismatch { packet, .. } = last else { return inputs };
    let cut = &inputs[..=*packet];
    pipelines::fewest(cut, &mut |some| match run(some, &mut |_| {}) {
        Err(error @ PipelineError::Mismatch { .. }) => {
            *last = error;
            true
        }
        _ => false,
    })
}

fn differs(
    args: &RtlCosim,
    pipeline: &str,
    failure: &PipelineError,
    inputs: &[pipelines::Input],
) -> Error {
    let place = match failure {
        PipelineError::Mismatch { located, .. } if !located.place.is_empty() => {
            format!(" ({})", located.place)
        }
        _ => String::new(),
    };
    let file = args.hardware.program.file.display();
    let what = format!("{file}, {pipeline}, seed {}: {failure}{place}", args.seed);
    let text = inputs.iter().fold(String::new(), |text, (packet, meta)| {
        let bytes: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{text}{bytes} {meta:x?}\n")
    });
    let path = args.out.join("packets.txt");
    let written = fs::create_dir_all(&args.out).and_then(|()| fs::write(&path, text));
    if let Err(why) = written {
        tell(format_args!("cannot write {}: {why}\n", path.display()));
    }
    let hint = format!("{} packets that fail so, with metadata: {}", inputs.len(), path.display());
    Error::Run { what, hint }
}
