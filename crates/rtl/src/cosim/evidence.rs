//! What is left of a failure: the shortest inputs that fail in the same way, and a waveform.

use std::path::Path;
use std::time::Duration;

use nic::nano::config::Config;
use nic::nano::endpoint::Runs;
use p4::ir;

use super::trace::Trace;
use super::traffic::Traffic;
use super::{Cosim, CosimError, shrink};
use crate::sim::{Design, Program, SimError};
use crate::tools::Tools;

/// Cycles before the failure that a waveform shows.
const SHOWN: u64 = 200;

/// A failure, made small.
#[derive(Debug)]
pub struct Evidence {
    /// Inputs that fail in the same way.
    pub trace: Trace,
    /// How they fail.
    pub failure: CosimError,
    /// How many inputs were tried.
    pub tried: u32,
}

/// What is needed to run inputs again.
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
    fn fails(&self, circuit: crate::sim::Simulation, trace: &Trace) -> Option<CosimError> {
        let traffic = Traffic::alone(self.program, self.runs, self.config).ok()?;
        Cosim::new(circuit, traffic, self.config.clone()).replay(trace).err()
    }
}

/// In which cycle, and what, so that two failures can be compared.
fn kind(error: &CosimError) -> (&'static str, u64) {
    match error {
        CosimError::Mismatch(mismatch) => (mismatch.what, mismatch.cycle),
        CosimError::Sim(SimError::Died { cycle, batch, .. }) => {
            ("the simulation ends", cycle + *batch as u64)
        }
        CosimError::Sim(_) => ("it cannot be run", 0),
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
    let Some(first) = again.fails(built.start()?, trace) else { return Ok(None) };
    let (what, cycle) = kind(&first);
    let cut = trace.cut(cycle + 1);
    let mut last = first;
    let mut fails = |candidate: &Trace| {
        let Ok(circuit) = built.start() else { return false };
        match again.fails(circuit, candidate) {
            Some(error) if kind(&error).0 == what => {
                last = error;
                true
            }
            _ => false,
        }
    };
    let (trace, tried) = shrink(&cut, again.spacing, limit, &mut fails);
    Ok(Some(Evidence { trace, failure: last, tried }))
}

impl Evidence {
    /// The cycle of the failure.
    #[must_use]
    pub fn cycle(&self) -> u64 {
        kind(&self.failure).1
    }

    /// Write the last cycles before the failure to `file`, as a VCD. The design is built once more
    /// for that, in `folder`.
    ///
    /// # Errors
    /// It cannot be built or started.
    pub fn waves(
        &self,
        again: &Again<'_>,
        (tools, design): (&Tools, &Design),
        folder: &Path,
        file: &Path,
    ) -> Result<(), SimError> {
        let built = design.build_waves(tools, folder)?;
        let circuit = built.start_waves(file, self.cycle().saturating_sub(SHOWN))?;
        // How it ends is known.
        let _ = again.fails(circuit, &self.trace);
        Ok(())
    }
}

/// What was given up to the failure; `traffic` is that of the run, from its beginning.
#[must_use]
pub fn recorded(mut traffic: Traffic, failure: &CosimError) -> Trace {
    Trace::record(&mut traffic, kind(failure).1 + 1)
}
