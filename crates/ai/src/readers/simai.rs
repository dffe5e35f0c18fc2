//! The reader of SimAI's workloads (docs/specs/ai-traces.md#2).
//!
//! ```text
//! HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4
//! 1
//! layer -1 1000 ALLREDUCE 4096 1000 ALLREDUCE 4096 1000 ALLREDUCE 8192 100
//! ```
//! All ranks run the same layers: forward from the first to the last, then backward. What SimAI's
//! packet-level front end does with such a file, and what is different here:
//!
//! - Times are in nanoseconds: its clock ticks once a nanosecond (`CLOCK_PERIOD` 1 in `Common.hh`,
//!   `GetNanoSeconds` in `AstraSimNetwork.cc`), and AICB, which writes the files, sleeps for its
//!   times divided by 10^9 (`workload_applyer.py`).
//! - A layer's collectives of the forward pass and of the input gradient are waited for
//!   (`HYBRID_TRANSFORMER`, also `..._FWD_IN_BCKWD`). Those of weight gradients run beside what
//!   follows, one after another in the order of issue. The update takes its time after each
//!   collective. A group of one rank has no collectives.
//! - `MODEL` computes the weight gradient while the input gradient's collective runs.
//! - `MICRO` runs its layers' collectives one after another, each as a step. SimAI issues the first
//!   layer's only.
//! - Pipeline stages are not played, as there: every rank runs every layer.
//! - `BROADCAST`, which AICB writes, comes from the first rank of its group. SimAI leaves it out.
//! - SimAI pads collectives of the forward pass to 4096 bytes, and reads only the first of the
//!   layers that `checkpoints` lists. Here neither happens.

mod header;
mod layers;

use units::Dur;
use workload::TextError;
use workload::text::{Parsed, Source, Word, one_of};

use self::header::Header;
use self::layers::{Layer, Pass, Work, layers};
use super::program::{Group, Groups, Layout, Line, Program, What};
use super::{Trace, Warnings, located};
use crate::graph::{Builder, Fault, Rank, TaskGraph};

/// Read a workload for at most `room` ranks. `name` is the file's name, for errors.
///
/// # Errors
/// What is not such a file, a policy that is not played, groups that do not divide the GPUs, and
/// more GPUs than `room`.
pub fn read_simai(text: &str, name: &str, room: u32) -> Result<Trace, TextError> {
    let source = Source::new(text, name);
    let mut lines = source.lines(char::is_whitespace);
    let Some(first) = lines.next() else {
        let hint = "the first line names the policy, such as HYBRID_TRANSFORMER";
        return Err(source.missing(source.end(), "the file is empty", hint));
    };
    let header = Header::read(&source, &first, room)?;
    let mut warnings = Warnings::default();
    header.warn(&mut warnings);
    let layers = layers(&source, lines, &mut warnings)?;
    header.check_checkpoints(&source, &layers)?;
    let mut program = Program::default();
    header.policy.play(&mut program, &layers, &header);
    let ranks = header.layout.ranks();
    let tasks = program.entries.len() as u64 * u64::from(ranks);
    if tasks > Builder::TASKS_MAX {
        let message = format!("{ranks} GPUs and {} layers make too many tasks", layers.len());
        let hint = format!("use fewer of either: a job can have {} tasks", Builder::TASKS_MAX);
        return Err(source.wrong(first.first(), message, hint));
    }
    let graph = build(&program, header.layout).map_err(|fault| {
        let at = |index: u32| program.entries.get(index as usize).map(|entry| entry.at);
        located(&source, &fault, |task| at(task.index))
    })?;
    Ok(Trace { graph, warnings: warnings.0, algorithm: None })
}

fn build(program: &Program<'_>, layout: Layout) -> Result<TaskGraph, Fault> {
    let mut builder = Builder::new(layout.ranks())?;
    let mut groups = Groups::new(layout);
    for rank in (0..layout.ranks()).map(Rank) {
        program.add_to(&mut builder, &mut groups, rank)?;
    }
    builder.finish()
}

/// How the layers are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Data,
    Model,
    Micro,
    Inference,
    Transformer,
    TransformerFwdInBckwd,
}

impl Policy {
    const ALL: [(&'static str, Self); 6] = [
        ("DATA", Self::Data),
        ("MODEL", Self::Model),
        ("MICRO", Self::Micro),
        ("DISTRIBUTED_INFERENCE", Self::Inference),
        ("HYBRID_TRANSFORMER", Self::Transformer),
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", Self::TransformerFwdInBckwd),
    ];

    /// Those of SimAI that need what the file does not hold: the dimensions of astra-sim's logical
    /// topology, or rules for single layers.
    const NOT_PLAYED: [&'static str; 5] = [
        "HYBRID_DLRM",
        "HYBRID_DLRM_ENHANCED",
        "HYBRID_DATA_MODEL",
        "HYBRID_MODEL_DATA",
        "HYBRID_CUSTOMIZED",
    ];

    fn read(source: &Source<'_>, word: Word<'_>) -> Parsed<Self> {
        if let Some((_, policy)) = Self::ALL.iter().find(|(name, _)| *name == word.text) {
            return Ok(*policy);
        }
        let names = Self::ALL.map(|(name, _)| name);
        if Self::NOT_PLAYED.contains(&word.text) {
            let hint = format!("policies that are: {}", names.join(", "));
            return Err(source.wrong(word, "this policy is not played", hint));
        }
        Err(source.wrong(word, "unknown policy", one_of(word.text, &names)))
    }

    /// The group of collectives that do not name theirs.
    fn group(self, pass: Pass) -> Option<Group> {
        match (self, pass) {
            (Self::Transformer | Self::TransformerFwdInBckwd, Pass::WeightGradient) => {
                Some(Group::Dp)
            }
            (Self::Transformer | Self::TransformerFwdInBckwd, _) => Some(Group::Tp),
            (Self::Data | Self::Micro, Pass::WeightGradient) => Some(Group::All),
            (Self::Model, Pass::Forward | Pass::InputGradient) => Some(Group::All),
            (Self::Inference, Pass::Forward) => Some(Group::All),
            _ => None,
        }
    }

    /// The layers as a program.
    fn play<'a>(self, program: &mut Program<'a>, layers: &[Layer<'a>], header: &Header) {
        let mut run = Run { policy: self, layout: header.layout, program, gradients: None };
        if self == Self::Micro {
            for (layer, step) in layers.iter().zip(0..) {
                let line = Line { step, ..layer.line };
                run.blocking(line, layer, Pass::WeightGradient);
            }
            return;
        }
        layers.iter().for_each(|layer| run.forward(layer));
        if self == Self::Inference {
            return;
        }
        for (index, layer) in layers.iter().enumerate().rev() {
            let again = header.recomputed(index);
            layers[again].iter().for_each(|layer| run.forward(layer));
            run.backward(layer, index == 0);
        }
    }
}

/// A program in the making.
struct Run<'p, 'a> {
    policy: Policy,
    layout: Layout,
    program: &'p mut Program<'a>,
    /// The last collective of a weight gradient.
    gradients: Option<u32>,
}

impl<'a> Run<'_, 'a> {
    fn forward(&mut self, layer: &Layer<'a>) {
        self.compute(layer, Pass::Forward);
        self.blocking(layer.line, layer, Pass::Forward);
    }

    fn backward(&mut self, layer: &Layer<'a>, is_first: bool) {
        match self.policy {
            // The first layer has no input whose gradient anything needs.
            Policy::Data => {
                self.compute(layer, Pass::WeightGradient);
                self.weight_gradient(layer);
                if !is_first {
                    self.compute(layer, Pass::InputGradient);
                }
            }
            Policy::Model => {
                self.compute(layer, Pass::InputGradient);
                let what = self.collective(layer, Pass::InputGradient).filter(|_| !is_first);
                let beside = what.map(|what| self.program.beside(layer.line, what));
                self.compute(layer, Pass::WeightGradient);
                if let Some(beside) = beside {
                    self.program.join(beside);
                    self.update(layer.line, layer);
                }
            }
            _ => {
                self.compute(layer, Pass::InputGradient);
                self.blocking(layer.line, layer, Pass::InputGradient);
                self.compute(layer, Pass::WeightGradient);
                self.weight_gradient(layer);
            }
        }
    }

    fn compute(&mut self, layer: &Layer<'a>, pass: Pass) {
        let dur = layer.pass(pass).time;
        if dur > Dur::ZERO {
            self.program.then(layer.line, What::Compute { dur, stream: 0 });
        }
    }

    fn collective(&self, layer: &Layer<'a>, pass: Pass) -> Option<What> {
        let Work { collective, group, bytes, .. } = layer.pass(pass);
        let unnamed = self.policy.group(pass)?;
        let group = group.unwrap_or(unnamed);
        let op = collective.filter(|_| bytes > 0 && self.layout.size(group) > 1)?;
        Some(What::Collective { group, op, bytes })
    }

    fn blocking(&mut self, line: Line<'a>, layer: &Layer<'a>, pass: Pass) {
        if let Some(what) = self.collective(layer, pass) {
            self.program.then(line, what);
            self.update(line, layer);
        }
    }

    fn update(&mut self, line: Line<'a>, layer: &Layer<'a>) {
        if layer.update > Dur::ZERO {
            self.program.then(line, What::Compute { dur: layer.update, stream: 0 });
        }
    }

    fn weight_gradient(&mut self, layer: &Layer<'a>) {
        let Some(what) = self.collective(layer, Pass::WeightGradient) else { return };
        let entry = self.program.beside(layer.line, what);
        if let Some(before) = self.gradients.replace(entry) {
            self.program.after(entry, before);
        }
        if layer.update > Dur::ZERO {
            let what = What::Compute { dur: layer.update, stream: UPDATES };
            let update = self.program.beside(layer.line, what);
            self.program.after(update, entry);
        }
    }
}

/// The stream of updates of weights: they run beside what follows.
const UPDATES: u8 = 1;

#[cfg(test)]
mod tests;
