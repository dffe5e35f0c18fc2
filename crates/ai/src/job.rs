//! [`Job`]: a graph of tasks on hosts, and how its collectives and messages are carried.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, Rate, Time};

use crate::collective::nccl::{self, Shape};
use crate::collective::{Algorithm, Cut, Member, Moves, Unsuited};
use crate::graph::{GroupId, Instance, InstanceId, Op, Period, Rank, TaskGraph};
use crate::placement::Placement;
use crate::player::{Player, token};
use crate::slow::{self, Slowdown};

/// How the algorithm of a collective is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// Always this one, as far as the operation has it.
    Fixed(Algorithm),
    /// As NCCL's model says ([`nccl`]), for nodes whose links carry so much.
    Nccl(Rate),
}

/// What connects the ranks of a node: a switch with a port for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleUp {
    /// The rate of each port, in each direction.
    pub rate: Rate,
    /// From one port to another.
    pub latency: Dur,
}

/// Work that takes longer than it should.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Straggler {
    /// The share of compute tasks that do, drawn for each.
    pub share: f64,
    /// How many times longer, beyond once: 0.5 makes 3 of 2.
    pub excess: f64,
    /// Whether that is the mean of an exponential distribution, from which each task draws.
    pub exponential: bool,
}

/// How a job is carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// When it begins.
    pub start: Time,
    /// The algorithm of its collectives.
    pub choice: Choice,
    /// How they are cut into messages.
    pub cut: Cut,
    /// Between ranks of a node, which is a host, or [several](Placement::with_nics). Of several its
    /// latency is not zero.
    pub scale_up: ScaleUp,
    /// Work that takes longer.
    pub straggler: Straggler,
    /// The [channel](endpoint::Msg::channel) of its messages; those of a collective's n-th channel
    /// have this less n times 65536. 0: none.
    pub channel: u32,
    /// See [`endpoint::Msg::prio`].
    pub prio: u8,
    /// Whether each task is reported that is no collective: critical paths need them.
    pub tell_tasks: bool,
}

/// Why a job cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// Another number of ranks is placed than the graph has.
    #[error("{placed} ranks are placed, and the job has {ranks}")]
    Placed {
        /// Placed.
        placed: u32,
        /// Of the graph.
        ranks: u32,
    },
    /// A collective whose algorithm does not suit its group.
    #[error("the {op} number {number} of the job: {why}")]
    Unsuited {
        /// What it does.
        op: &'static str,
        /// Which of the job's collectives, from 0.
        number: u32,
        /// Why not.
        why: Unsuited,
    },
    /// More collectives than messages can name.
    #[error("{0} collectives; a job can have {max}", max = token::INSTANCES_MAX)]
    TooMany(u32),
}

/// A job, ready to be played.
#[derive(Debug)]
pub struct Job {
    graph: TaskGraph,
    placement: Placement,
    config: Config,
    /// In the order in which they were given.
    slowdowns: Vec<Slowdown>,
    groups: Vec<Group>,
    /// By step: how many ranks have tasks of it.
    steps: Vec<u32>,
    /// How the graph repeats itself, if it does.
    period: Option<Period>,
    /// By collective: its members' tasks, in the order of the group.
    tasks: Vec<Box<[u32]>>,
    /// The place of each host among those of the placement.
    indices: HashMap<HostId, u32, FxBuildHasher>,
}

/// What all need to know of a group.
#[derive(Debug)]
struct Group {
    /// The place of each rank among its members.
    places: HashMap<Rank, u32, FxBuildHasher>,
    /// By member: its node, as the placement numbers it.
    nodes: Vec<u32>,
    shape: (u32, u32),
}

impl Job {
    /// `graph` on the hosts of `placement`.
    ///
    /// # Errors
    /// A placement of other ranks, or a collective that its algorithm does not suit.
    pub fn new(graph: TaskGraph, placement: Placement, config: Config) -> Result<Self, JobError> {
        let (placed, ranks) = (placement.len(), graph.ranks());
        if placed != ranks {
            return Err(JobError::Placed { placed, ranks });
        }
        if graph.instances() > token::INSTANCES_MAX {
            return Err(JobError::TooMany(graph.instances()));
        }
        let group = |members: &[Rank]| {
            let node = |&rank: &Rank| placement.node(placement.seat(rank).0);
            let nodes: Vec<u32> = members.iter().map(node).collect();
            let mut distinct = nodes.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let shape = (members.len() as u32, distinct.len() as u32);
            Group { places: members.iter().copied().zip(0..).collect(), nodes, shape }
        };
        let groups = graph.groups().map(group).collect();
        let indices = placement.hosts().iter().copied().zip(0..).collect();
        let steps = ranks_of_steps(&graph);
        let (slowdowns, tasks) = (Vec::new(), Vec::new());
        let period = graph.period().filter(|_| config.straggler.share == 0.0);
        let mut job =
            Self { graph, placement, config, slowdowns, groups, steps, period, tasks, indices };
        if config.tell_tasks {
            job.tasks = job.tasks_of_collectives();
        }
        for number in 0..job.graph.instances() {
            let instance = job.graph.instance(InstanceId(number));
            let op = instance.op.name();
            job.moves(instance, 0).map_err(|why| JobError::Unsuited { op, number, why })?;
        }
        Ok(job)
    }

    /// The same job with GPUs that are slow for some time. Those of ranks that it does not have
    /// count for nothing.
    #[must_use]
    pub fn with_slowdowns(self, slowdowns: Vec<Slowdown>) -> Self {
        Self { slowdowns, ..self }
    }

    /// How its steps repeat, if they do. With work that takes longer at times they do not.
    pub(crate) fn period(&self) -> Option<&Period> {
        self.period.as_ref().filter(|_| self.slowdowns.is_empty())
    }

    /// What makes the work of `rank` take longer.
    pub(crate) fn slowdowns_of(&self, rank: Rank) -> Vec<Slowdown> {
        self.slowdowns.iter().filter(|slow| slow.rank == rank).copied().collect()
    }

    /// The longest that `work`, done without a break from the beginning of the job on, takes any
    /// rank.
    pub(crate) fn slowest(&self, work: Dur) -> Dur {
        let start = self.config.start;
        let of = |slow: &Slowdown| slow::end_of(&self.slowdowns_of(slow.rank), start, work);
        self.slowdowns.iter().map(|slow| of(slow).since(start)).max().unwrap_or(work).max(work)
    }

    /// Its tasks.
    #[must_use]
    pub fn graph(&self) -> &TaskGraph {
        &self.graph
    }

    /// Where its ranks are.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// How it is carried.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The application of each of its hosts.
    #[must_use]
    pub fn players(self: &std::sync::Arc<Self>) -> Vec<(HostId, Player)> {
        let player = |(index, &host)| (host, Player::new(std::sync::Arc::clone(self), index));
        (0..).zip(self.placement.hosts()).map(player).collect()
    }

    /// The algorithm of a collective.
    #[must_use]
    pub fn algorithm(&self, Instance { group, op, bytes }: Instance) -> Algorithm {
        let rate = match self.config.choice {
            Choice::Fixed(algorithm) => return algorithm,
            Choice::Nccl(rate) => rate,
        };
        let (ranks, nodes) = self.shape(group);
        let rate = if nodes == 1 { self.config.scale_up.rate } else { rate };
        nccl::choose(op, Shape { ranks, hosts: nodes, bus: rate.as_gbps_f64() / 8.0 }, bytes)
    }

    /// How many ranks `group` has, and on how many nodes.
    pub(crate) fn shape(&self, group: GroupId) -> (u32, u32) {
        self.groups[group.index()].shape
    }

    /// How many ranks have tasks of `step`.
    #[must_use]
    pub fn ranks_of_step(&self, step: u32) -> u32 {
        self.steps.get(step as usize).copied().unwrap_or(0)
    }

    /// The task of `rank`, a member, that takes part in `instance`; `None` if tasks are not told.
    pub(crate) fn task_of(&self, instance: InstanceId, rank: Rank) -> Option<u32> {
        let place = self.place(self.graph.instance(instance).group, rank);
        self.tasks.get(instance.0 as usize)?.get(place as usize).copied()
    }

    /// By collective: its members' tasks.
    fn tasks_of_collectives(&self) -> Vec<Box<[u32]>> {
        let instances = (0..self.graph.instances()).map(InstanceId);
        let members = |id| self.graph.members(self.graph.instance(id).group).len();
        let mut all: Vec<Box<[u32]>> =
            instances.map(|id| vec![0; members(id)].into_boxed_slice()).collect();
        for rank in (0..self.graph.ranks()).map(Rank) {
            let tasks = self.graph.tasks(rank);
            for index in 0..tasks.len() as u32 {
                let Some(id) = tasks.instance(index) else { continue };
                let place = self.place(self.graph.instance(id).group, rank);
                all[id.0 as usize][place as usize] = index;
            }
        }
        all
    }

    /// What member `me` does for a collective.
    pub(crate) fn moves(&self, instance: Instance, me: u32) -> Result<Moves, Unsuited> {
        let Instance { group, op, bytes } = instance;
        let root = match op {
            Op::Broadcast { root } => self.place(group, root),
            _ => 0,
        };
        let hosts = &self.groups[group.index()].nodes;
        let member = Member { me: me as usize, hosts, cut: self.config.cut };
        member.moves(self.algorithm(instance), op, root as usize, bytes)
    }

    /// The rank on seat `seat` of `host`.
    pub(crate) fn rank_on(&self, host: HostId, seat: u8) -> Option<Rank> {
        let index = *self.indices.get(&host)?;
        self.placement.ranks_of(index).get(usize::from(seat)).copied()
    }

    /// The place of `rank`, a member, in `group`.
    pub(crate) fn place(&self, group: GroupId, rank: Rank) -> u32 {
        self.groups[group.index()].places.get(&rank).copied().unwrap_or(0)
    }
}

/// By step: how many ranks have tasks of it.
fn ranks_of_steps(graph: &TaskGraph) -> Vec<u32> {
    let mut steps = vec![0; graph.steps() as usize];
    for rank in (0..graph.ranks()).map(Rank) {
        let mut seen: Vec<u32> = graph.tasks(rank).iter().map(|task| task.step).collect();
        seen.sort_unstable();
        seen.dedup();
        seen.into_iter().for_each(|step| steps[step as usize] += 1);
    }
    steps
}
