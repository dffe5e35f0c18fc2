//! Jobs for people without a trace: one collective again and again, or the steps of a model that
//! is trained with several kinds of parallelism (specs/ai-jobs.md#4).

use units::Dur;

use crate::graph::{Builder, Fault, GroupId, Kind, Label, Op, Rank, Task, TaskGraph, TaskId};

/// The same collective in each step, after some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Who: ranks 0 up to this.
    pub ranks: u32,
    /// What.
    pub op: Op,
    /// How much: see [`Op`].
    pub bytes: u64,
    /// The work of each rank before it.
    pub compute: Dur,
    /// How often.
    pub steps: u32,
}

impl Repeated {
    /// Its tasks.
    ///
    /// # Errors
    /// An impossible number of ranks.
    pub fn graph(&self) -> Result<TaskGraph, Fault> {
        within(u64::from(self.ranks).saturating_mul(self.steps.into()).saturating_mul(2))?;
        let mut job = Builder::new(self.ranks)?;
        let group = job.everyone()?;
        let Self { op, bytes, compute, .. } = *self;
        for rank in (0..self.ranks).map(Rank) {
            let mut chain = Chain { rank, last: None, step: 0 };
            for step in 0..self.steps {
                chain.step = step;
                if compute > Dur::ZERO {
                    chain.add(&mut job, Kind::Compute { dur: compute, stream: 0 }, None)?;
                }
                chain.add(&mut job, Kind::Collective { group, op, bytes }, None)?;
            }
        }
        job.finish()
    }
}

/// A model that is trained: `tensor` x `data` x `pipeline` ranks, tensor groups first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Ranks that share each layer.
    pub tensor: u32,
    /// Copies of the model, each with batches of its own.
    pub data: u32,
    /// Stages, each with layers of its own.
    pub pipeline: u32,
    /// Ranks of the copies that share a layer's experts; 1: no experts.
    pub experts: u32,
    /// Layers of a stage.
    pub layers: u32,
    /// Batches of a step that pass through the stages one after the other.
    pub microbatches: u32,
    /// Work of a rank for one layer and microbatch, forward.
    pub forward: Dur,
    /// The same backward.
    pub backward: Dur,
    /// What a layer gives to the next one for a microbatch, bytes.
    pub activations: u64,
    /// Gradients of a rank's part of a layer, bytes.
    pub gradients: u64,
    /// What a rank sends to experts, its own included, for a microbatch, bytes.
    pub dispatch: u64,
    /// Whether a layer's gradients are reduced while those before it are worked out.
    pub overlap: bool,
    /// How many steps.
    pub steps: u32,
}

/// Why a model is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Copies that cannot be divided among groups of experts.
    #[error("{experts} ranks share experts, which does not divide {data} copies")]
    Experts {
        /// Ranks of a group of experts.
        experts: u32,
        /// Copies.
        data: u32,
    },
    /// Tasks that are no job.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Model {
    /// How many ranks it has; `None` if that is no number of 32 bits.
    #[must_use]
    pub fn ranks(&self) -> Option<u32> {
        self.tensor.checked_mul(self.data)?.checked_mul(self.pipeline)
    }

    /// The most tasks that it can have: a layer's pass has six at most.
    fn tasks(&self) -> u64 {
        let layers = u64::from(self.layers);
        let passes = (2 * 6 * layers + 4).saturating_mul(self.microbatches.into());
        let of_rank = (passes.saturating_add(layers + 1)).saturating_mul(self.steps.into());
        self.ranks().map_or(u64::MAX, |ranks| of_rank.saturating_mul(ranks.into()))
    }

    /// Its tasks.
    ///
    /// # Errors
    /// Experts that do not divide the copies, or an impossible number of ranks.
    pub fn graph(&self) -> Result<TaskGraph, ModelError> {
        let Self { experts, data, .. } = *self;
        if experts == 0 || !data.is_multiple_of(experts) {
            return Err(ModelError::Experts { experts, data });
        }
        let ranks = self.ranks().unwrap_or(u32::MAX);
        within(self.tasks())?;
        let mut job = Builder::new(ranks)?;
        for rank in 0..ranks {
            let mut stage = Stage::new(self, &mut job, rank)?;
            for step in 0..self.steps {
                stage.step(&mut job, step)?;
            }
        }
        Ok(job.finish()?)
    }
}

/// Check that a job of `tasks` tasks fits into memory.
fn within(tasks: u64) -> Result<(), Fault> {
    if tasks > Builder::TASKS_MAX { Err(Fault::Tasks(tasks)) } else { Ok(()) }
}

/// Tasks of a rank, each after the one before.
struct Chain {
    rank: Rank,
    last: Option<TaskId>,
    step: u32,
}

impl Chain {
    /// Add a task beside the chain, after its last one.
    fn branch(&self, job: &mut Builder, kind: Kind, label: Option<Label>) -> Result<TaskId, Fault> {
        let task = job.add(self.rank, Task { kind, step: self.step, label })?;
        if let Some(last) = self.last {
            job.after(task, last)?;
        }
        Ok(task)
    }

    fn add(&mut self, job: &mut Builder, kind: Kind, label: Option<Label>) -> Result<(), Fault> {
        self.last = Some(self.branch(job, kind, label)?);
        Ok(())
    }
}

/// The two ways through the model.
#[derive(Clone, Copy, PartialEq)]
enum Pass {
    Forward,
    Backward,
}

/// A rank: a part of each layer of a stage, in one copy.
struct Stage<'a> {
    model: &'a Model,
    chain: Chain,
    /// Which stage it is of.
    stage: u32,
    tensor: GroupId,
    data: GroupId,
    experts: GroupId,
    /// The names of forward and backward work, activations, gradients, and what experts get.
    names: [Label; 5],
    /// What the next step waits for beside the chain.
    open: Vec<TaskId>,
}

impl<'a> Stage<'a> {
    fn new(model: &'a Model, job: &mut Builder, rank: u32) -> Result<Self, Fault> {
        let Model { tensor, data, experts, .. } = *model;
        let (of_tensor, of_data) = (rank % tensor, rank / tensor % data);
        let stage = rank / (tensor * data);
        let first = stage * tensor * data;
        let at = |d: u32, t: u32| Rank(first + d * tensor + t);
        let share = of_data / experts * experts;
        let names = ["forward", "backward", "activations", "gradients", "experts"];
        let mut labels = Vec::new();
        for name in names {
            labels.push(job.label(name)?);
        }
        let mut group = |ranks: Vec<Rank>| job.group(&ranks);
        Ok(Self {
            model,
            chain: Chain { rank: Rank(rank), last: None, step: 0 },
            stage,
            tensor: group((0..tensor).map(|t| at(of_data, t)).collect())?,
            data: group((0..data).map(|d| at(d, of_tensor)).collect())?,
            experts: group((share..share + experts).map(|d| at(d, of_tensor)).collect())?,
            names: [labels[0], labels[1], labels[2], labels[3], labels[4]],
            open: Vec::new(),
        })
    }

    /// One forward and one backward pass at a time (specs/ai-jobs.md#4.2): as many forward passes
    /// first as there are stages after this one, then a forward and a backward one, alternating.
    fn step(&mut self, job: &mut Builder, step: u32) -> Result<(), Fault> {
        let Model { pipeline, microbatches, .. } = *self.model;
        self.chain.step = step;
        self.meet(job)?;
        let ahead = (pipeline - 1 - self.stage).min(microbatches);
        for batch in 0..ahead {
            self.pass(job, Pass::Forward, batch)?;
        }
        for batch in 0..microbatches {
            if batch + ahead < microbatches {
                self.pass(job, Pass::Forward, batch + ahead)?;
            }
            self.pass(job, Pass::Backward, batch)?;
        }
        Ok(())
    }

    /// The chain goes on after the gradients of the step before.
    fn meet(&mut self, job: &mut Builder) -> Result<(), Fault> {
        if self.open.is_empty() {
            return Ok(());
        }
        let nothing = Kind::Compute { dur: Dur::ZERO, stream: 0 };
        self.chain.add(job, nothing, None)?;
        for open in std::mem::take(&mut self.open) {
            if let Some(last) = self.chain.last {
                job.after(last, open)?;
            }
        }
        Ok(())
    }

    /// Microbatch `batch` through the layers of this stage.
    fn pass(&mut self, job: &mut Builder, pass: Pass, batch: u32) -> Result<(), Fault> {
        let Model { tensor, data, pipeline, layers, activations, .. } = *self.model;
        let (rank, distance) = (self.chain.rank.0, tensor * data);
        let (before, after) = match pass {
            Pass::Forward => (self.stage > 0, self.stage + 1 < pipeline),
            Pass::Backward => (self.stage + 1 < pipeline, self.stage > 0),
        };
        let peer = |later: bool| Rank(if later { rank + distance } else { rank - distance });
        let is_forward = pass == Pass::Forward;
        let (tag, name) = (batch * 2 + u32::from(!is_forward), Some(self.names[2]));
        if before {
            let recv = Kind::Recv { from: peer(!is_forward), bytes: activations, tag };
            self.chain.add(job, recv, name)?;
        }
        let is_last = !is_forward && batch + 1 == self.model.microbatches;
        for _ in 0..layers {
            self.layer(job, pass)?;
            if is_last && self.model.overlap {
                self.reduce(job, 1)?;
            }
        }
        // What another stage waits for goes first.
        if after {
            let send = Kind::Send { to: peer(is_forward), bytes: activations, tag };
            self.chain.branch(job, send, name)?;
        }
        if is_last && !self.model.overlap {
            self.reduce(job, layers)?;
        }
        Ok(())
    }

    /// A layer: two halves of its work, with what ranks have to tell each other after each.
    fn layer(&mut self, job: &mut Builder, pass: Pass) -> Result<(), Fault> {
        let Model { tensor, experts, activations, dispatch, .. } = *self.model;
        let (dur, name) = match pass {
            Pass::Forward => (self.model.forward, self.names[0]),
            Pass::Backward => (self.model.backward, self.names[1]),
        };
        let work = |dur| Kind::Compute { dur, stream: 0 };
        let reduce = (tensor > 1).then_some((
            Kind::Collective { group: self.tensor, op: Op::AllReduce, bytes: activations },
            self.names[2],
        ));
        let exchange = (experts > 1).then_some((
            Kind::Collective { group: self.experts, op: Op::AllToAll, bytes: dispatch },
            self.names[4],
        ));
        if reduce.is_none() && exchange.is_none() {
            return self.chain.add(job, work(dur), Some(name));
        }
        let first = Dur(dur.0 / 2);
        self.chain.add(job, work(first), Some(name))?;
        for (kind, name) in reduce.into_iter().chain(exchange) {
            self.chain.add(job, kind, Some(name))?;
        }
        self.chain.add(job, work(dur - first), Some(name))?;
        for (kind, name) in exchange.into_iter().chain(reduce) {
            self.chain.add(job, kind, Some(name))?;
        }
        Ok(())
    }

    /// The gradients of so many layers, over all copies.
    fn reduce(&mut self, job: &mut Builder, layers: u32) -> Result<(), Fault> {
        let Model { data, gradients, overlap, .. } = *self.model;
        if data < 2 {
            return Ok(());
        }
        let bytes = gradients.saturating_mul(layers.into());
        let reduce = Kind::Collective { group: self.data, op: Op::AllReduce, bytes };
        let name = Some(self.names[3]);
        if overlap {
            self.open.push(self.chain.branch(job, reduce, name)?);
        } else {
            self.chain.add(job, reduce, name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Tasks;

    const US: Dur = Dur::from_us(1);

    fn model() -> Model {
        Model {
            tensor: 1,
            data: 1,
            pipeline: 1,
            experts: 1,
            layers: 2,
            microbatches: 2,
            forward: US,
            backward: US * 2,
            activations: 1_000,
            gradients: 4_000,
            dispatch: 500,
            overlap: false,
            steps: 2,
        }
    }

    /// Number of tasks of a rank by kind: compute, send, receive, all-reduce, all-to-all.
    fn counts(tasks: &Tasks) -> [usize; 5] {
        let mut counts = [0; 5];
        for task in tasks.iter() {
            counts[match task.kind {
                Kind::Compute { .. } => 0,
                Kind::Send { .. } => 1,
                Kind::Recv { .. } => 2,
                Kind::Collective { op: Op::AllReduce, .. } => 3,
                Kind::Collective { .. } => 4,
            }] += 1;
        }
        counts
    }

    #[test]
    fn a_collective_again_and_again() {
        let mut job = Repeated { ranks: 3, op: Op::AllGather, bytes: 6, compute: US, steps: 4 };
        let graph = job.graph().unwrap();
        assert_eq!((graph.steps(), graph.instances(), graph.len()), (4, 4, 24));
        assert_eq!(graph.tasks(Rank(1)).waits(2), 1, "for the collective before");
        job.compute = Dur::ZERO;
        assert_eq!(job.graph().unwrap().len(), 12);
    }

    #[test]
    fn each_kind_of_parallelism_has_its_messages() {
        // Two layers, two microbatches, two steps, both ways: 16 times work.
        assert_eq!(counts(model().graph().unwrap().tasks(Rank(0))), [16, 0, 0, 0, 0]);
        // Work in halves, each with an all-reduce.
        let tensor = Model { tensor: 4, ..model() };
        assert_eq!(counts(tensor.graph().unwrap().tasks(Rank(3))), [32, 0, 0, 32, 0]);
        // Gradients of all layers once a step.
        let data = Model { data: 4, ..model() };
        assert_eq!(counts(data.graph().unwrap().tasks(Rank(3))), [16, 0, 0, 2, 0]);
        // Or of each, and a point at which the next step begins.
        let overlap = Model { data: 4, overlap: true, ..model() };
        assert_eq!(counts(overlap.graph().unwrap().tasks(Rank(3))), [17, 0, 0, 4, 0]);
        let experts = Model { data: 4, experts: 2, ..model() };
        assert_eq!(counts(experts.graph().unwrap().tasks(Rank(3))), [32, 0, 0, 2, 32]);
        // The one in the middle of three stages sends and receives both ways.
        let stages = Model { pipeline: 3, ..model() };
        let graph = stages.graph().unwrap();
        let of = |rank| counts(graph.tasks(Rank(rank)));
        assert_eq!([0, 1, 2].map(of), [[16, 4, 4, 0, 0], [16, 8, 8, 0, 0], [16, 4, 4, 0, 0]]);
    }

    #[test]
    fn groups_are_those_of_the_ranks() {
        let all = Model { tensor: 2, data: 4, pipeline: 2, experts: 2, ..model() };
        assert_eq!(all.ranks(), Some(16));
        let graph = all.graph().unwrap();
        // Rank 13: stage 1, copy 2, second part.
        let tasks = graph.tasks(Rank(13));
        let group = |bytes: u64| {
            let is =
                |task: &&Task| matches!(task.kind, Kind::Collective { bytes: b, .. } if b == bytes);
            let Some(Kind::Collective { group, .. }) = tasks.iter().find(is).map(|t| t.kind) else {
                panic!("no collective of {bytes}")
            };
            graph.members(group).iter().map(|rank| rank.0).collect::<Vec<_>>()
        };
        assert_eq!(group(1_000), [12, 13]);
        assert_eq!(group(8_000), [9, 11, 13, 15]);
        assert_eq!(group(500), [13, 15]);
    }

    #[test]
    fn what_is_no_model() {
        let experts = Model { data: 4, experts: 3, ..model() }.graph().unwrap_err();
        assert_eq!(experts.to_string(), "3 ranks share experts, which does not divide 4 copies");
        let large = Model { tensor: 1 << 16, data: 1 << 16, ..model() };
        assert_eq!(large.ranks(), None);
        assert!(matches!(large.graph(), Err(ModelError::Fault(Fault::Tasks(_)))));
        let long = Model { layers: 100_000, microbatches: 100_000, ..model() }.graph().unwrap_err();
        assert!(long.to_string().starts_with("a job of about 240"), "{long}");
        let often = Repeated { ranks: 100, op: Op::Barrier, bytes: 0, compute: US, steps: 1 << 20 };
        assert!(matches!(often.graph(), Err(Fault::Tasks(209_715_200))));
    }
}
