//! What is left of a failure: the shortest inputs that fail in the same way, and a waveform.

use std::path::Path;
use std::time::Duration;

use nic::nano::config::Config;
use nic::nano::endpoint::Runs;
use p4::ir;

use super::trace::Trace;
use super::traffic::Traffic;
use super::{Cosim, CosimError, Inputs, shrink};
use crate::sim::{Design, Program, SimError, Simulation};
use crate::tools::Tools;

/// Cycles before the failure that a waveform shows.
const SHOWN: u64 = 200;

/// A way to fail.
pub trait Failure {
    /// What, so that two can be compared, and in which cycle.
    fn kind(&self) -> (&str, u64);
}

impl Failure for SimError {
    fn kind(&self) -> (&str, u64) {
        match self {
            Self::Died { cycle, batch, .. } => ("the simulation ends", cycle + *batch as u64),
            _ => ("it cannot be run", 0),
        }
    }
}

impl Failure for CosimError {
    fn kind(&self) -> (&str, u64) {
        match self {
            Self::Mismatch(mismatch) => (mismatch.what, mismatch.cycle),
            Self::Sim(error) => error.kind(),
        }
    }
}

/// A failure, made small.
#[derive(Debug)]
pub struct Evidence<T = Trace, E = CosimError> {
    /// Inputs that fail in the same way.
    pub trace: T,
    /// How they fail.
    pub failure: E,
    /// How many inputs were tried.
    pub tried: u32,
}

/// What is needed to run inputs of a NIC again.
pub struct Again<'a> {
    /// The program.
    pub program: &'a ir::Program,
    /// What makes it ready to run.
    pub runs: &'a dyn Fn() -> Runs,
    /// Its NIC.
    pub config: &'a Config,
    /// Fewest cycles between two packets.
    pub spacing: u64,
}

impl Again<'_> {
    /// What comes of `trace` in `circuit`; `None`: it passes.
    fn fails(&self, circuit: Simulation, trace: &Trace) -> Option<CosimError> {
        let traffic = Traffic::alone(self.program, self.runs, self.config).ok()?;
        Cosim::new(circuit, traffic, self.config.clone()).replay(trace).err()
    }
}

/// Shrink `trace`, which makes the circuit `built` fail, for `limit` at the longest. `None`: it
/// does not fail when it is given these inputs again.
///
/// # Errors
/// The circuit cannot be started.
pub fn evidence(
    again: &Again<'_>,
    built: &Program,
    trace: &Trace,
    limit: Duration,
) -> Result<Option<Evidence>, SimError> {
    let mut fails = |trace: &Trace| Ok(again.fails(built.start()?, trace));
    smallest(trace, again.spacing, limit, &mut fails)
}

/// The same of any inputs; `fails` says how they fail, if they do.
///
/// # Errors
/// The circuit cannot be started.
pub fn smallest<T: Inputs, E: Failure>(
    trace: &T,
    spacing: u64,
    limit: Duration,
    fails: &mut dyn FnMut(&T) -> Result<Option<E>, SimError>,
) -> Result<Option<Evidence<T, E>>, SimError> {
    let Some(mut last) = fails(trace)? else { return Ok(None) };
    let (what, cycle) = last.kind();
    let (what, cut) = (what.to_owned(), trace.cut(cycle + 1));
    let mut as_before = |candidate: &T| match fails(candidate) {
        Ok(Some(error)) if error.kind().0 == what => {
            last = error;
            true
        }
        _ => false,
    };
    let (trace, tried) = shrink(&cut, spacing, limit, &mut as_before);
    Ok(Some(Evidence { trace, failure: last, tried }))
}

impl<T, E: Failure> Evidence<T, E> {
    /// The cycle of the failure.
    pub fn cycle(&self) -> u64 {
        self.failure.kind().1
    }
}

impl Evidence {
    /// Write the last cycles before the failure to `file`, as a VCD. The design is built once more
    /// for that, in `folder`.
    ///
    /// # Errors
    /// It cannot be built or started.
    pub fn waves(
        &self,
        again: &Again<'_>,
        to: (&Tools, &Design),
        folder: &Path,
        file: &Path,
    ) -> Result<(), SimError> {
        let circuit = waves(to, folder, file, self.cycle())?;
        // How it ends is known.
        let _ = again.fails(circuit, &self.trace);
        Ok(())
    }
}

/// A design, built in `folder` to write the last cycles before `cycle` to `file`, as a VCD.
///
/// # Errors
/// It cannot be built or started.
pub fn waves(
    (tools, design): (&Tools, &Design),
    folder: &Path,
    file: &Path,
    cycle: u64,
) -> Result<Simulation, SimError> {
    let built = design.build_waves(tools, folder)?;
    Ok(built.start_waves(file, cycle.saturating_sub(SHOWN))?)
}

/// What was given up to the failure; `traffic` is that of the run, from its beginning.
#[must_use]
pub fn recorded(mut traffic: Traffic, failure: &CosimError) -> Trace {
    Trace::record(&mut traffic, failure.kind().1 + 1)
}
