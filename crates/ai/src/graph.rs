//! [`TaskGraph`]: the tasks of all ranks and what they wait for. [`Builder`] makes one and checks
//! it, so that a graph that exists can be played to its end on a fabric that delivers.
//!
//! A task waits for tasks of its own rank only. Ranks meet in messages and collectives: the n-th
//! send from one rank to another with one tag is for the n-th receive there, and the n-th
//! collective of a group is one for all its members. "n-th" counts in the order in which tasks
//! were added to their rank.

mod check;

use std::fmt;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::Dur;

type Map<K, V> = HashMap<K, V, FxBuildHasher>;

/// A GPU's process, from 0 within its job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

/// A task: its rank, and its place among those of the rank, from 0 in the order of adding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// Whose.
    pub rank: Rank,
    /// Which of them.
    pub index: u32,
}

/// A list of ranks that take part in collectives together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(u32);

/// The name of a task: many tasks share few names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u32);

/// A collective that all members of a group take part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u32);

/// What a collective does. `bytes` of [`Kind::Collective`] are those of the whole vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Each rank has a vector of `bytes`; all get the sum.
    AllReduce,
    /// Each rank has one of n equal parts of `bytes`; all get all.
    AllGather,
    /// Each rank has a vector of `bytes`; each gets the sum of one of n equal parts.
    ReduceScatter,
    /// Each rank has `bytes` in n equal parts, one for each rank, itself included.
    AllToAll,
    /// This rank has `bytes`; all get them.
    Broadcast {
        /// Whose.
        root: Rank,
    },
    /// Nothing is carried; none goes on before all have come. `bytes` is 0.
    Barrier,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Work for this long. A stream of a rank does one such task at a time, in the order in which
    /// they become ready, and a task starts when its stream begins it. 0 takes no time and waits
    /// for no stream: a point at which others meet.
    Compute {
        /// How long.
        dur: Dur,
        /// Which stream.
        stream: u8,
    },
    /// Send a message. The task ends when it is acknowledged.
    Send {
        /// To which rank.
        to: Rank,
        /// How much, bytes.
        bytes: u64,
        /// Which.
        tag: u32,
    },
    /// Wait for a message.
    Recv {
        /// From whom.
        from: Rank,
        /// How much, bytes.
        bytes: u64,
        /// Which.
        tag: u32,
    },
    /// Take part in a collective.
    Collective {
        /// With whom.
        group: GroupId,
        /// What.
        op: Op,
        /// How much, bytes: see [`Op`].
        bytes: u64,
    },
}

/// A task, as it is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// What it does.
    pub kind: Kind,
    /// The step of the job that it belongs to, from 0.
    pub step: u32,
    /// Its name, if it has one.
    pub label: Option<Label>,
}

impl Task {
    /// A task of step 0 without a name.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self { kind, step: 0, label: None }
    }
}

/// A collective and its members' tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instance {
    /// With whom.
    pub group: GroupId,
    /// What.
    pub op: Op,
    /// How much, bytes.
    pub bytes: u64,
}

/// Why tasks are no job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No ranks, or too many.
    #[error("a job of {0} ranks; it can have 1 to {max}", max = Builder::RANKS_MAX)]
    Ranks(u32),
    /// More tasks than fit into memory, found before they are made.
    #[error("a job of about {0} tasks; it can have {max}", max = Builder::TASKS_MAX)]
    Tasks(u64),
    /// A rank has too many tasks, or the job too many groups, collectives or names.
    #[error("too many {0}")]
    TooMany(&'static str),
    /// A rank that the job does not have.
    #[error("rank {} is named, but the job has {ranks}, numbered from 0", rank.0)]
    NoSuchRank {
        /// Which.
        rank: Rank,
        /// How many there are.
        ranks: u32,
    },
    /// A task that was not added.
    #[error("there is no {0}")]
    NoSuchTask(TaskId),
    /// A group without members.
    #[error("a group without ranks")]
    EmptyGroup,
    /// A group that names a rank twice.
    #[error("a group names rank {} twice", .0.0)]
    TwiceInGroup(Rank),
    /// A collective of a group that the rank is no member of, or whose root is none.
    #[error("{task}: rank {} is not in the group of its collective", rank.0)]
    NotInGroup {
        /// The collective.
        task: TaskId,
        /// Who is not.
        rank: Rank,
    },
    /// A message from a rank to itself.
    #[error("{0} is a message from a rank to itself")]
    ToItself(TaskId),
    /// A task that waits for a task of another rank.
    #[error("{task} cannot wait for {pred}: they are of different ranks; use a message")]
    AcrossRanks {
        /// The one that waits.
        task: TaskId,
        /// For which.
        pred: TaskId,
    },
    /// Tasks that wait for each other; each for the next, and the last for the first.
    #[error("tasks wait for each other: {}", Chain(.0))]
    Cycle(Vec<TaskId>),
    /// A send without a receive, or a receive without a send.
    #[error("{task} has no counterpart: {what}")]
    Unmatched {
        /// Which.
        task: TaskId,
        /// What is missing, for people.
        what: String,
    },
    /// A receive of another size than its send.
    #[error("{recv} waits for {expected} bytes, but {send} sends {sent}")]
    OtherSize {
        /// The receive.
        recv: TaskId,
        /// The bytes that it expects.
        expected: u64,
        /// The send.
        send: TaskId,
        /// The bytes that it sends.
        sent: u64,
    },
    /// A collective in which a member of the group never takes part.
    #[error("rank {} never takes part in the collective of {task}: it is number {nth} of the group", missing.0)]
    Missing {
        /// A member's task that does.
        task: TaskId,
        /// Who does not.
        missing: Rank,
        /// Which of the group's collectives, from 1.
        nth: usize,
    },
    /// A collective that two members describe differently.
    #[error("{task} and {other} are the same collective of a group, but {what} differs: {values}")]
    Differs {
        /// One.
        task: TaskId,
        /// The other.
        other: TaskId,
        /// What differs.
        what: &'static str,
        /// Both values, for people.
        values: String,
    },
}

impl Fault {
    /// The task at which the input is wrong, so that a reader can say where it stands.
    #[must_use]
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Self::NoSuchTask(task)
            | Self::ToItself(task)
            | Self::NotInGroup { task, .. }
            | Self::AcrossRanks { task, .. }
            | Self::Unmatched { task, .. }
            | Self::OtherSize { recv: task, .. }
            | Self::Missing { task, .. }
            | Self::Differs { task, .. } => Some(*task),
            Self::Cycle(tasks) => tasks.first().copied(),
            Self::Ranks(_)
            | Self::Tasks(_)
            | Self::TooMany(_)
            | Self::NoSuchRank { .. }
            | Self::EmptyGroup
            | Self::TwiceInGroup(_) => None,
        }
    }
}

/// The most tasks of a cycle that a message names.
const CYCLE_SHOWN: usize = 6;

/// Tasks that wait for each other, for people.
struct Chain<'a>(&'a [TaskId]);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for task in self.0.iter().take(CYCLE_SHOWN) {
            write!(f, "{task} for ")?;
        }
        match self.0.len().checked_sub(CYCLE_SHOWN) {
            Some(more @ 1..) => write!(f, "{more} more and then the first"),
            _ if self.0.len() == 1 => f.write_str("itself"),
            _ => f.write_str("the first"),
        }
    }
}

impl GroupId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {} of rank {}", self.index, self.rank.0)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Op {
    /// What the field calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllToAll => "all-to-all",
            Self::Broadcast { .. } => "broadcast",
            Self::Barrier => "barrier",
        }
    }
}

/// What a task waits for of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Until {
    Start,
    End,
}

/// A task that waits, and for which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    pred: u32,
    until: Until,
    task: u32,
}

/// Makes a [`TaskGraph`]. Add tasks, say what waits for what, and [finish](Builder::finish).
///
/// ```
/// use trimline_ai::{Builder, Kind, Rank, Task};
/// let mut job = Builder::new(2)?;
/// let send = Kind::Send { to: Rank(1), bytes: 1_000, tag: 7 };
/// let recv = Kind::Recv { from: Rank(0), bytes: 1_000, tag: 7 };
/// let work = Kind::Compute { dur: units::Dur::from_us(3), stream: 0 };
/// job.add(Rank(0), Task::new(send))?;
/// let recv = job.add(Rank(1), Task::new(recv))?;
/// let work = job.add(Rank(1), Task::new(work))?;
/// job.after(work, recv)?;
/// let graph = job.finish()?;
/// assert_eq!(graph.tasks(Rank(1)).len(), 2);
/// # Ok::<(), trimline_ai::Fault>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    ranks: Vec<Tasks>,
    /// What each rank's tasks wait for.
    edges: Vec<Vec<Edge>>,
    groups: Vec<Box<[Rank]>>,
    /// By group: its members in the order of their numbers, to look one up in.
    sorted: Vec<Box<[Rank]>>,
    group_ids: Map<Box<[Rank]>, GroupId>,
    labels: Vec<Box<str>>,
    label_ids: Map<Box<str>, Label>,
}

impl Builder {
    /// The most ranks of a job.
    pub const RANKS_MAX: u32 = 1 << 20;
    /// The most tasks of a job that is generated or repeated: some gigabytes.
    pub const TASKS_MAX: u64 = 1 << 25;

    /// A job of `ranks` ranks without tasks.
    ///
    /// # Errors
    /// None, or more than [`Builder::RANKS_MAX`].
    pub fn new(ranks: u32) -> Result<Self, Fault> {
        if !(1..=Self::RANKS_MAX).contains(&ranks) {
            return Err(Fault::Ranks(ranks));
        }
        Ok(Self {
            ranks: vec![Tasks::default(); ranks as usize],
            edges: vec![Vec::new(); ranks as usize],
            groups: Vec::new(),
            sorted: Vec::new(),
            group_ids: Map::default(),
            labels: Vec::new(),
            label_ids: Map::default(),
        })
    }

    /// How many ranks there are.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// How many tasks `rank` has so far.
    #[must_use]
    pub fn len_of(&self, rank: Rank) -> u32 {
        self.ranks.get(rank.0 as usize).map_or(0, |tasks| tasks.list.len() as u32)
    }

    /// The group of `ranks`, in this order: neighbours in it are neighbours in a ring. Equal lists
    /// are one group.
    ///
    /// # Errors
    /// No ranks, one twice, or one that the job does not have.
    pub fn group(&mut self, ranks: &[Rank]) -> Result<GroupId, Fault> {
        if let Some(id) = self.group_ids.get(ranks) {
            return Ok(*id);
        }
        if ranks.is_empty() {
            return Err(Fault::EmptyGroup);
        }
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        for &rank in &sorted {
            self.known(rank)?;
        }
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Fault::TwiceInGroup(pair[0]));
        }
        let id = GroupId(index(self.groups.len(), "groups")?);
        self.groups.push(ranks.into());
        self.sorted.push(sorted.into());
        self.group_ids.insert(ranks.into(), id);
        Ok(id)
    }

    /// The group of all ranks in their order.
    ///
    /// # Errors
    /// Too many groups.
    pub fn everyone(&mut self) -> Result<GroupId, Fault> {
        let ranks: Vec<Rank> = (0..self.ranks()).map(Rank).collect();
        self.group(&ranks)
    }

    /// The name `text`.
    ///
    /// # Errors
    /// Too many names.
    pub fn label(&mut self, text: &str) -> Result<Label, Fault> {
        if let Some(id) = self.label_ids.get(text) {
            return Ok(*id);
        }
        let id = Label(index(self.labels.len(), "names of tasks")?);
        self.labels.push(text.into());
        self.label_ids.insert(text.into(), id);
        Ok(id)
    }

    /// Add `task` to `rank`.
    ///
    /// # Errors
    /// A rank that the job does not have, a message from a rank to itself, a collective of a group
    /// without the rank, or too many tasks.
    pub fn add(&mut self, rank: Rank, task: Task) -> Result<TaskId, Fault> {
        self.known(rank)?;
        let id = TaskId { rank, index: index(self.len_of(rank) as usize, "tasks of a rank")? };
        match task.kind {
            Kind::Send { to: peer, .. } | Kind::Recv { from: peer, .. } => {
                self.known(peer)?;
                if peer == rank {
                    return Err(Fault::ToItself(id));
                }
            }
            Kind::Collective { group, op, .. } => {
                let members = self.sorted.get(group.0 as usize).ok_or(Fault::EmptyGroup)?;
                let root = if let Op::Broadcast { root } = op { root } else { rank };
                for member in [rank, root] {
                    if members.binary_search(&member).is_err() {
                        return Err(Fault::NotInGroup { task: id, rank: member });
                    }
                }
            }
            Kind::Compute { .. } => {}
        }
        self.ranks[rank.0 as usize].list.push(task);
        Ok(id)
    }

    /// `task` starts after the end of `pred`, a task of the same rank.
    ///
    /// # Errors
    /// Tasks of different ranks, one that was not added, or the same task twice.
    pub fn after(&mut self, task: TaskId, pred: TaskId) -> Result<(), Fault> {
        self.edge(task, pred, Until::End)
    }

    /// `task` starts after the start of `pred`, a task of the same rank.
    ///
    /// # Errors
    /// As [`Builder::after`].
    pub fn after_start(&mut self, task: TaskId, pred: TaskId) -> Result<(), Fault> {
        self.edge(task, pred, Until::Start)
    }

    fn edge(&mut self, task: TaskId, pred: TaskId, until: Until) -> Result<(), Fault> {
        for id in [task, pred] {
            if id.index >= self.len_of(id.rank) {
                return Err(Fault::NoSuchTask(id));
            }
        }
        if task.rank != pred.rank {
            return Err(Fault::AcrossRanks { task, pred });
        }
        if task == pred {
            return Err(Fault::Cycle(vec![task]));
        }
        let edges = &mut self.edges[task.rank.0 as usize];
        index(edges.len(), "dependencies of a rank")?;
        edges.push(Edge { pred: pred.index, until, task: task.index });
        Ok(())
    }

    fn known(&self, rank: Rank) -> Result<(), Fault> {
        let ranks = self.ranks();
        if rank.0 < ranks { Ok(()) } else { Err(Fault::NoSuchRank { rank, ranks }) }
    }

    /// The graph, if it can be played to its end.
    ///
    /// # Errors
    /// A message or collective without all its parts, or tasks that wait for each other.
    pub fn finish(mut self) -> Result<TaskGraph, Fault> {
        for (tasks, edges) in self.ranks.iter_mut().zip(self.edges) {
            tasks.link(edges);
        }
        let mut graph = TaskGraph {
            ranks: self.ranks,
            groups: self.groups,
            labels: self.labels,
            instances: Vec::new(),
            work: Dur::ZERO,
        };
        check::match_messages(&mut graph)?;
        check::match_collectives(&mut graph)?;
        graph.work = check::play(&graph)?;
        Ok(graph)
    }
}

/// `n` as the number of something of which there are at most 2^32 - 1.
fn index(n: usize, what: &'static str) -> Result<u32, Fault> {
    u32::try_from(n).ok().filter(|&n| n < u32::MAX).ok_or(Fault::TooMany(what))
}

/// The tasks of all ranks, checked.
#[derive(Clone, Debug)]
pub struct TaskGraph {
    ranks: Vec<Tasks>,
    groups: Vec<Box<[Rank]>>,
    labels: Vec<Box<str>>,
    instances: Vec<Instance>,
    work: Dur,
}

impl TaskGraph {
    /// How long it takes at least: the longest chain of work in which each piece waits for the one
    /// before, on a network that takes no time.
    #[must_use]
    pub fn longest_chain(&self) -> Dur {
        self.work
    }

    /// How many ranks it has.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// The tasks of `rank`, which it must have.
    #[must_use]
    pub fn tasks(&self, rank: Rank) -> &Tasks {
        &self.ranks[rank.0 as usize]
    }

    /// The members of each group.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[Rank]> {
        self.groups.iter().map(|members| &**members)
    }

    /// The members of `group`.
    #[must_use]
    pub fn members(&self, group: GroupId) -> &[Rank] {
        &self.groups[group.0 as usize]
    }

    /// What `label` says.
    #[must_use]
    pub fn text(&self, label: Label) -> &str {
        &self.labels[label.0 as usize]
    }

    /// The collective `id`.
    #[must_use]
    pub fn instance(&self, id: InstanceId) -> Instance {
        self.instances[id.0 as usize]
    }

    /// How many collectives there are.
    #[must_use]
    pub fn instances(&self) -> u32 {
        self.instances.len() as u32
    }

    /// The memory that it takes, bytes: tasks, and what waits for what.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let of_task = size_of::<Task>() + 3 * size_of::<u32>();
        let of_rank = |tasks: &Tasks| {
            tasks.list.len() * of_task + tasks.edges.len() * size_of::<Edge>() + size_of::<Tasks>()
        };
        let ranks: usize = self.ranks.iter().map(of_rank).sum();
        let members: usize = self.groups.iter().map(|group| size_of_val(&**group)).sum();
        (ranks + members + self.instances.len() * size_of::<Instance>()) as u64
    }

    /// How many tasks all ranks have together.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.ranks.iter().map(|tasks| tasks.len() as u64).sum()
    }

    /// Whether no rank has a task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many steps there are: one more than the last one's number.
    #[must_use]
    pub fn steps(&self) -> u32 {
        let steps = self.ranks.iter().flat_map(|tasks| tasks.list.iter().map(|task| task.step));
        steps.max().map_or(0, |step| step.saturating_add(1))
    }
}

/// How a graph repeats itself from step to step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    /// By rank, tasks of a step.
    pub(crate) tasks: Vec<u32>,
    /// Collectives of a step.
    pub(crate) instances: u32,
}

/// With fewer steps nothing is gained by knowing whether they repeat.
const STEPS_MIN: u32 = 6;

impl TaskGraph {
    /// How it repeats: if each rank has the same tasks in each step, which wait for the same, and
    /// only the first and the last may differ in what they wait for.
    pub(crate) fn period(&self) -> Option<Period> {
        let steps = Some(self.steps()).filter(|&steps| steps >= STEPS_MIN)?;
        let instances = self.instances() / steps;
        let tasks = self.ranks.iter().map(|tasks| tasks.period(steps, instances));
        let tasks = tasks.collect::<Option<Vec<u32>>>()?;
        Some(Period { tasks, instances })
    }
}

/// The tasks of a rank.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    list: Vec<Task>,
    /// By task: how many others it waits for.
    waits: Vec<u32>,
    /// Those who wait, by the task that they wait for and what of it.
    edges: Vec<Edge>,
    /// By task: where its edges begin; one more for the end of the last.
    from: Vec<u32>,
    /// By task: of a send or receive, its counterpart's index; of a collective, its
    /// [`InstanceId`].
    partner: Vec<u32>,
}

impl Tasks {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Task number `index`.
    #[must_use]
    pub fn get(&self, index: u32) -> &Task {
        &self.list[index as usize]
    }

    /// All of them, in the order of adding.
    pub fn iter(&self) -> impl Iterator<Item = &Task> {
        self.list.iter()
    }

    /// How many starts and ends of others task `index` waits for.
    #[must_use]
    pub fn waits(&self, index: u32) -> u32 {
        self.waits[index as usize]
    }

    /// The tasks that wait for the start of task `index`.
    pub fn after_start_of(&self, index: u32) -> impl Iterator<Item = u32> {
        self.followers(index, Until::Start)
    }

    /// The tasks that wait for the end of task `index`.
    pub fn after_end_of(&self, index: u32) -> impl Iterator<Item = u32> {
        self.followers(index, Until::End)
    }

    /// The index of the counterpart of task `index`, a send or receive, among its rank's tasks.
    #[must_use]
    pub fn counterpart(&self, index: u32) -> Option<u32> {
        let is_message = matches!(self.get(index).kind, Kind::Send { .. } | Kind::Recv { .. });
        is_message.then(|| self.partner[index as usize])
    }

    /// The collective that task `index` takes part in.
    #[must_use]
    pub fn instance(&self, index: u32) -> Option<InstanceId> {
        let is_collective = matches!(self.get(index).kind, Kind::Collective { .. });
        is_collective.then(|| InstanceId(self.partner[index as usize]))
    }

    fn followers(&self, index: u32, until: Until) -> impl Iterator<Item = u32> {
        let (from, to) = (self.from[index as usize], self.from[index as usize + 1]);
        let edges = &self.edges[from as usize..to as usize];
        edges.iter().filter(move |edge| edge.until == until).map(|edge| edge.task)
    }

    /// How many tasks each of `steps` has, of `instances` collectives each, if they are alike.
    fn period(&self, steps: u32, instances: u32) -> Option<u32> {
        let count = self.list.len() as u32;
        let of_step = Some(count / steps).filter(|n| n * steps == count)?;
        let is_in_order = (0..count).all(|n| self.get(n).step == n / of_step.max(1));
        let alike = |n: u32| {
            let (one, next) = (self.get(n), self.get(n + of_step));
            let partner = |n| self.instance(n).map(|id| id.0);
            let later = partner(n).map(|id| id + instances);
            one.kind == next.kind
                && one.label == next.label
                && partner(n + of_step) == later
                && self.counterpart(n).is_none()
                && (n < of_step || self.waits(n) == self.waits(n + of_step))
        };
        let follows = |n: u32| {
            [Until::Start, Until::End].into_iter().all(|until| {
                let later = self.followers(n, until).map(|task| task + of_step);
                later.eq(self.followers(n + of_step, until))
            })
        };
        let but_last = count.saturating_sub(of_step);
        let holds = is_in_order
            && (0..but_last).all(alike)
            && (0..but_last.saturating_sub(of_step)).all(follows);
        holds.then_some(of_step)
    }

    /// Sort what waits for what.
    fn link(&mut self, mut edges: Vec<Edge>) {
        let count = self.list.len();
        edges.sort_unstable();
        edges.dedup();
        self.waits = vec![0; count];
        self.from = Vec::with_capacity(count + 1);
        for edge in &edges {
            self.waits[edge.task as usize] += 1;
        }
        let mut at = 0;
        for pred in 0..count as u32 {
            self.from.push(at as u32);
            at += edges[at..].iter().take_while(|edge| edge.pred == pred).count();
        }
        self.from.push(at as u32);
        self.edges = edges;
        self.partner = vec![u32::MAX; count];
    }
}

#[cfg(test)]
mod tests;
