//! A NIC beside the model of the clocked law.

use std::path::Path;
use std::sync::Arc;

use nic::nano::config::Config;
use nic::nano::endpoint::{ProgramError, Runs};
use p4::interp::Machine;
use rtl::cosim::trace::Trace;
use rtl::cosim::traffic::{Plan, Traffic};
use rtl::cosim::{Again, Compared, Cosim, CosimError, Evidence, evidence, locate, recorded};
use rtl::sim::{Program, Simulation};
use rtl::tools::Tools;
use scenario::{Diagnostic, Error};

use super::super::{ALONE, Made};
use super::{LOOKED_FOR, Run, Written, failed};
use crate::Ended;

/// The NIC of `config`, with drawn traffic or with that of an earlier mismatch.
pub(super) fn beside(run: &Run<'_>, config: &Config) -> Ended {
    let beside = Beside { run, config };
    match &run.args.replay {
        Some(file) => beside.replay(file),
        None => beside.compare(),
    }
}

struct Beside<'a> {
    run: &'a Run<'a>,
    config: &'a Config,
}

impl Beside<'_> {
    const fn made(&self) -> &Made {
        self.run.made
    }

    fn runs(&self) -> Runs {
        runs(self.made())
    }

    fn traffic(&self) -> Result<Traffic, Error> {
        traffic(self.run, self.config)
    }

    fn compare(&self) -> Ended {
        let (tools, built, mut bar) = self.run.built()?;
        let circuit = built.start().map_err(|why| failed(&why.into()))?;
        let mut cosim = Cosim::new(circuit, self.traffic()?, self.config.clone());
        let packets = self.run.args.packets;
        match cosim.run(packets, &mut |done| bar.update(done, packets, "packets")) {
            Ok(compared) => {
                drop(bar);
                self.say_agrees(&compared)
            }
            Err(failure) => {
                bar.say("looking for the shortest inputs that fail so");
                let trace = recorded(self.traffic()?, &failure);
                let found = self.shrunk(&built, &trace);
                drop(bar);
                Err(self.report(&tools, &failure, found?))
            }
        }
    }

    fn say_agrees(&self, compared: &Compared) -> Ended {
        let packets = format!(
            "  packets: {} in, {} out; {} of them as close as they may come, {} cycles apart",
            compared.packets,
            compared.sent,
            compared.closest,
            self.made().spacing()
        );
        let messages = format!(
            "  messages: {} delivered, {} acknowledged, {} given up",
            compared.delivered, compared.acked, compared.gave_up
        );
        self.run.say_agrees(Some(compared.cycles), &[packets, messages])
    }

    fn shrunk(&self, built: &Program, trace: &Trace) -> Result<Option<Evidence>, Error> {
        let runs = || self.runs();
        let (program, config) = (self.made().program().as_ref(), self.config);
        let again = Again { program, runs: &runs, config, spacing: self.made().spacing() };
        evidence(&again, built, trace, LOOKED_FOR).map_err(|why| failed(&why))
    }

    /// What is to be said of a failure, and its files.
    fn report(&self, tools: &Tools, failure: &CosimError, found: Option<Evidence>) -> Error {
        let title = self.run.title();
        let Some(found) = found else {
            let hint = "it did not come again with its own inputs alone: repeat the whole run";
            return Error::Run { what: format!("{title}: {failure}"), hint: hint.into() };
        };
        let (field, place) = match failure {
            CosimError::Mismatch(mismatch) => {
                let located = locate(self.made().program(), mismatch);
                (located.field, located.place)
            }
            CosimError::Sim(_) => ("the simulation".to_owned(), String::new()),
        };
        let at = if place.is_empty() { String::new() } else { format!(" ({place})") };
        let what = format!("{title}: {field}{at} differs: {failure}");
        let (packets, cycles, tried) = (found.trace.packets(), found.trace.len(), found.tried);
        let written = Written::new(self.run, (field, place), found);
        let shows = |circuit| {
            // How it ends is known.
            let _ = self.given(circuit, &written.trace);
        };
        let hint = match self.run.leave(tools, &written, &shows) {
            Ok(files) => format!(
                "{packets} packets in {cycles} cycles fail in the same way ({tried} inputs tried): \
                 {files}"
            ),
            Err(why) => format!("its files cannot be written: {why}"),
        };
        Error::Run { what, hint }
    }

    /// What comes of a trace.
    fn given(
        &self,
        circuit: Simulation,
        trace: &Trace,
    ) -> Result<Result<Compared, CosimError>, Error> {
        let runs = || self.runs();
        let traffic = Traffic::alone(self.made().program(), &runs, self.config);
        let traffic = traffic.map_err(|why| no_model(&why))?;
        Ok(Cosim::new(circuit, traffic, self.config.clone()).replay(trace))
    }

    /// The inputs of an earlier mismatch.
    fn replay(&self, file: &Path) -> Ended {
        let check = |trace: &Trace| trace.check(self.config, self.made().spacing());
        let written: Written<Trace> = Run::earlier(file, check)?;
        let (_, built, bar) = self.run.built()?;
        let circuit = built.start().map_err(|why| failed(&why.into()))?;
        drop(bar);
        match self.given(circuit, &written.trace)? {
            Ok(compared) => self.say_agrees(&compared),
            Err(failure) => {
                let what = format!("{}: {failure}", self.run.name());
                let hint = format!("as it was: {}", written.field);
                Err(Error::Run { what, hint })
            }
        }
    }
}

fn runs(made: &Made) -> Runs {
    let mut machine = Machine::new(Arc::clone(made.program()));
    *p4::program::Program::<nic::nano::externs::Units>::state(&mut machine) = made.state.clone();
    Box::new(machine)
}

/// What a NIC is given: drawn.
pub(super) fn traffic(run: &Run<'_>, config: &Config) -> Result<Traffic, Error> {
    let (seed, spacing) = (run.args.seed, run.made.spacing());
    let plan = Plan { seed, spacing, is_dense: !run.args.spaced };
    let runs = || runs(run.made);
    Traffic::new(run.made.program(), &runs, config, plan).map_err(|why| no_model(&why))
}

fn no_model(why: &ProgramError) -> Error {
    Diagnostic::new(why.to_string()).hint(ALONE).into()
}
