//! Pipelines without a NIC beside the interpreter.

use std::path::Path;

use p4::ir::{Pipeline, PipelineId};
use rtl::cosim::packets::Packets;
use rtl::cosim::pipelines::{Bench, Compared, PipelineError};
use rtl::cosim::traffic::Plan;
use rtl::cosim::{Evidence, smallest};
use rtl::pipelines::Pipelines;
use rtl::sim::{Program, Simulation};
use rtl::tools::Tools;
use scenario::Error;

use super::{LOOKED_FOR, Run, Written, failed};
use crate::Ended;
use crate::progress::Count;

/// Each of them with drawn packets, or one with those of an earlier mismatch.
pub(super) fn beside(run: &Run<'_>, all: &Pipelines) -> Ended {
    let beside = Beside { run, all };
    match &run.args.replay {
        Some(file) => beside.replay(file),
        None => beside.compare(),
    }
}

struct Beside<'a> {
    run: &'a Run<'a>,
    all: &'a Pipelines,
}

impl Beside<'_> {
    fn pipelines(&self) -> impl Iterator<Item = (PipelineId, &Pipeline)> {
        (0..).map(PipelineId).zip(&self.run.made.program().pipelines)
    }

    fn spacing(&self, at: PipelineId) -> u64 {
        self.run.made.spacings.get(at.index()).map_or(1, |spacing| spacing.cycles.into())
    }

    /// What comes of packets in a simulation.
    fn given(
        &self,
        at: PipelineId,
        circuit: Simulation,
        packets: &Packets,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Compared, PipelineError> {
        let made = self.run.made;
        let mut bench = Bench::new(&made.state, (self.all, made.program()), at, circuit);
        bench.run(packets, progress)
    }

    fn compare(&self) -> Ended {
        let protocols = self.run.made.protocols();
        let (tools, built, mut bar) = self.run.built()?;
        let (args, mut lines) = (self.run.args, Vec::new());
        for (at, pipeline) in self.pipelines() {
            let plan = Plan { seed: args.seed, spacing: self.spacing(at), is_dense: !args.spaced };
            let packets = Packets::draw(pipeline, &protocols, plan, args.packets);
            let what = format!("packets of {}", pipeline.name);
            let circuit = built.start().map_err(|why| failed(&why.into()))?;
            let mut progress = |done| bar.update(done, args.packets, &what);
            match self.given(at, circuit, &packets, &mut progress) {
                Ok(compared) => lines.push(self.agrees(at, pipeline, &compared)),
                Err(failure) => {
                    return Err(self.report(at, (&tools, &built), &packets, &failure, bar)?);
                }
            }
        }
        drop(bar);
        self.run.say_agrees(None, &lines)
    }

    fn agrees(&self, at: PipelineId, pipeline: &Pipeline, compared: &Compared) -> String {
        let Compared { packets, accepted, cycles } = compared;
        let apart = self.spacing(at);
        let apart = match (&self.run.args.replay, self.run.args.spaced) {
            (None, false) => format!("{apart} cycles apart"),
            _ => format!("{apart} cycles apart or more"),
        };
        format!(
            "  {}: {packets} packets, {accepted} accepted, {apart}, {cycles} cycles",
            pipeline.name
        )
    }

    /// What is to be said of a failure, and its files.
    fn report(
        &self,
        at: PipelineId,
        (tools, built): (&Tools, &Program),
        packets: &Packets,
        failure: &PipelineError,
        bar: Count,
    ) -> Result<Error, Error> {
        bar.say("looking for the fewest packets that fail so");
        let mut fails =
            |packets: &Packets| Ok(self.given(at, built.start()?, packets, &mut |_| {}).err());
        let found = smallest(packets, self.spacing(at), LOOKED_FOR, &mut fails);
        drop(bar);
        let what = format!("{}, {}: {failure}", self.run.title(), packets.pipeline);
        let Some(found) = found.map_err(|why| failed(&why))? else {
            let hint = "it did not come again: repeat the whole run";
            return Ok(Error::Run { what, hint: hint.into() });
        };
        Ok(self.written(at, tools, what, found))
    }

    fn written(
        &self,
        at: PipelineId,
        tools: &Tools,
        what: String,
        found: Evidence<Packets, PipelineError>,
    ) -> Error {
        let (field, place) = match &found.failure {
            PipelineError::Mismatch { located, .. } => {
                (located.field.clone(), located.place.clone())
            }
            PipelineError::Sim(_) => ("the simulation".to_owned(), String::new()),
        };
        let what = if place.is_empty() { what } else { format!("{what} ({place})") };
        let (count, tried) = (found.trace.packets.len(), found.tried);
        let written = Written::new(self.run, (field, place), found);
        let shows = |circuit| {
            // How it ends is known.
            let _ = self.given(at, circuit, &written.trace, &mut |_| {});
        };
        let hint = match self.run.leave(tools, &written, &shows) {
            Ok(files) => {
                format!("{count} packets fail in the same way ({tried} inputs tried): {files}")
            }
            Err(why) => format!("its files cannot be written: {why}"),
        };
        Error::Run { what, hint }
    }

    /// The packets of an earlier mismatch.
    fn replay(&self, file: &Path) -> Ended {
        let named = |packets: &Packets| {
            self.pipelines().find(|(_, pipeline)| pipeline.name == packets.pipeline)
        };
        let check = |packets: &Packets| match named(packets) {
            Some((at, pipeline)) => packets.check(pipeline, self.spacing(at)),
            None => Err(format!("the program has no pipeline `{}`", packets.pipeline)),
        };
        let written: Written<Packets> = Run::earlier(file, check)?;
        let Some((at, pipeline)) = named(&written.trace) else { return Ok(()) };
        let (_, built, bar) = self.run.built()?;
        let circuit = built.start().map_err(|why| failed(&why.into()))?;
        drop(bar);
        match self.given(at, circuit, &written.trace, &mut |_| {}) {
            Ok(compared) => self.run.say_agrees(None, &[self.agrees(at, pipeline, &compared)]),
            Err(failure) => {
                let what = format!("{}, {}: {failure}", self.run.name(), pipeline.name);
                Err(Error::Run { what, hint: format!("as it was: {}", written.field) })
            }
        }
    }
}
