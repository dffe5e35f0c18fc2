//! [`RankState`]: how far a rank has come with its tasks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use endpoint::Work;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, Time};

use super::running::Running;
use super::{Owner, Wait, What};
use crate::graph::{InstanceId, Kind, Rank};
use crate::job::Job;
use crate::slow::{self, Slowdown};

/// Bits of a task's state.
const STARTED: u8 = 1;
const ENDED: u8 = 2;
/// The message of a receive is here.
const ARRIVED: u8 = 4;

/// A rank of a player's host.
#[derive(Debug)]
pub(super) struct RankState {
    pub(super) rank: Rank,
    /// By task: the starts and ends that it waits for.
    waits: Vec<u32>,
    state: Vec<u8>,
    /// By task: when it began; empty unless tasks are told.
    starts: Vec<Time>,
    /// By stream that is at work: the tasks that wait for it.
    streams: BTreeMap<u8, VecDeque<u32>>,
    /// The collectives that it takes part in now.
    pub(super) running: BTreeMap<InstanceId, Running>,
    /// Messages of collectives that it has not begun: from whom, and which of theirs.
    early: HashMap<InstanceId, Vec<(Rank, u32)>, FxBuildHasher>,
    /// The steps that have begun here.
    steps: BTreeMap<u32, Step>,
    /// By step: how many tasks have not ended.
    left: Vec<u32>,
    /// How many streams are at work, since when at least one is, and how long before that.
    working: u32,
    since: Time,
    worked: Dur,
    /// What makes its work take longer.
    slowdowns: Vec<Slowdown>,
    /// The first message that its transport gave up: of which task, and to whom.
    lost: Option<(u32, Rank)>,
    /// Steps that were left out: what is reported is of so much later ones.
    skipped: u32,
    /// The last step that is complete.
    last: Option<(Report, Time)>,
    /// When the two directions of its port of the scale-up domain are free.
    pub(super) egress_free: Time,
    pub(super) ingress_free: Time,
}

/// A step that has begun.
#[derive(Clone, Copy, Debug)]
struct Step {
    start: Time,
    /// How long the rank had worked before.
    worked: Dur,
    /// What it has sent, bytes.
    bytes: u64,
}

/// A step as it is reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub(super) start: Time,
    pub(super) bytes: u64,
    pub(super) work: Work,
}

impl RankState {
    pub(super) fn new(rank: Rank, job: &Job) -> Self {
        let tasks = job.graph().tasks(rank);
        let count = tasks.len() as u32;
        let mut left = Vec::new();
        for task in tasks.iter() {
            let step = task.step as usize;
            if left.len() <= step {
                left.resize(step + 1, 0);
            }
            left[step] += 1;
        }
        Self {
            rank,
            waits: (0..count).map(|index| tasks.waits(index)).collect(),
            state: vec![0; count as usize],
            starts: if job.config().tell_tasks {
                vec![Time::ZERO; tasks.len()]
            } else {
                Vec::new()
            },
            streams: BTreeMap::new(),
            running: BTreeMap::new(),
            early: HashMap::default(),
            steps: BTreeMap::new(),
            left,
            working: 0,
            since: Time::ZERO,
            worked: Dur::ZERO,
            slowdowns: job.slowdowns_of(rank),
            lost: None,
            skipped: 0,
            last: None,
            egress_free: Time::ZERO,
            ingress_free: Time::ZERO,
        }
    }

    /// The tasks that wait for nothing.
    pub(super) fn first(&self, job: &Job, seat: u8, ready: &mut BTreeSet<(u8, u32)>) {
        let count = job.graph().tasks(self.rank).len() as u32;
        ready.extend((0..count).filter(|&i| self.waits[i as usize] == 0).map(|i| (seat, i)));
    }

    /// Task `index` begins.
    pub(super) fn started(
        &mut self,
        job: &Job,
        index: u32,
        now: Time,
        seat: u8,
        ready: &mut BTreeSet<(u8, u32)>,
    ) {
        self.state[index as usize] |= STARTED;
        if let Some(start) = self.starts.get_mut(index as usize) {
            *start = now;
        }
        let tasks = job.graph().tasks(self.rank);
        let begun = Step { start: now, worked: self.worked(now), bytes: 0 };
        self.steps.entry(tasks.get(index).step).or_insert(begun);
        for waiting in tasks.after_start_of(index) {
            self.release(seat, waiting, ready);
        }
    }

    /// Task `index` is over; its step, if that is over with it.
    pub(super) fn ended(
        &mut self,
        job: &Job,
        index: u32,
        now: Time,
        seat: u8,
        ready: &mut BTreeSet<(u8, u32)>,
    ) -> Option<Report> {
        self.state[index as usize] |= ENDED;
        let tasks = job.graph().tasks(self.rank);
        for waiting in tasks.after_end_of(index) {
            self.release(seat, waiting, ready);
        }
        let number = tasks.get(index).step;
        let left = &mut self.left[number as usize];
        *left -= 1;
        if *left > 0 {
            return None;
        }
        let Step { start, worked, bytes } = self.steps.remove(&number)?;
        let computed = self.worked(now) - worked;
        let work = self.numbered(number, What::Step, computed);
        let report = Report { start, bytes, work };
        self.last = Some((report, now));
        Some(report)
    }

    /// What is said of `what` in step `step`.
    fn numbered(&self, step: u32, what: What, computed: Dur) -> Work {
        let (rank, step) = (self.rank.0, step + self.skipped);
        Work { rank, step, what: what.encode(), computed, skipped: false }
    }

    /// How many steps are complete, those left out included.
    pub(super) fn steps_done(&self) -> u32 {
        self.last.map_or(0, |(report, _)| report.work.step + 1)
    }

    /// The first step of which nothing has begun.
    pub(super) fn first_unbegun(&self) -> u32 {
        let begun = self.steps.keys().last().map_or(0, |&step| step + 1);
        begun.max(self.steps_done() - self.skipped)
    }

    /// `count` steps are left out, which take `time` each. They, as the last that is complete.
    pub(super) fn skip(&mut self, count: u32, time: Dur) -> impl Iterator<Item = (Report, Time)> {
        let all = time * u64::from(count);
        let copies = self.last.into_iter().flat_map(move |(report, end)| {
            (1..=count).map(move |n| {
                let (later, Report { start, work, .. }) = (time * u64::from(n), report);
                let work = Work { step: work.step + n, skipped: true, ..work };
                (Report { start: start + later, work, ..report }, end + later)
            })
        });
        if let Some((report, end)) = &mut self.last {
            report.work.step += count;
            (report.start, *end) = (report.start + all, *end + all);
        }
        self.skipped += count;
        let steps = self.steps.values_mut().map(|step| &mut step.start);
        let running = self.running.values_mut().map(|running| &mut running.start);
        let ports = [&mut self.since, &mut self.egress_free, &mut self.ingress_free];
        let all_times = self.starts.iter_mut().chain(steps).chain(running).chain(ports);
        all_times.for_each(|at| *at += all);
        copies
    }

    /// `what` as it is reported: of as many steps later as were left out.
    fn later(&self, job: &Job, what: What) -> What {
        let Some(period) = job.period().filter(|_| self.skipped > 0) else { return what };
        let tasks = self.skipped * period.tasks[self.rank.0 as usize];
        match what {
            What::Step => what,
            What::Collective { id, task } => What::Collective {
                id: InstanceId(id.0 + self.skipped * period.instances),
                task: task + tasks,
            },
            What::Task { task } => What::Task { task: task + tasks },
            What::Waits { task, peer, wait } => What::Waits { task: task + tasks, peer, wait },
        }
    }

    /// When task `index` began, if tasks are told.
    pub(super) fn start_of(&self, index: u32) -> Option<Time> {
        self.starts.get(index as usize).copied()
    }

    fn release(&mut self, seat: u8, index: u32, ready: &mut BTreeSet<(u8, u32)>) {
        let waits = &mut self.waits[index as usize];
        *waits -= 1;
        if *waits == 0 {
            ready.insert((seat, index));
        }
    }

    /// Whether the message of receive `index` is here.
    pub(super) fn has_arrived(&self, index: u32) -> bool {
        self.state[index as usize] & ARRIVED != 0
    }

    /// The message of receive `index` is here; whether that ends it.
    pub(super) fn arrives(&mut self, index: u32) -> bool {
        let Some(state) = self.state.get_mut(index as usize) else { return false };
        let is_waited_for = *state & (STARTED | ENDED) == STARTED;
        *state |= ARRIVED;
        is_waited_for
    }

    /// Messages of a collective that came before it.
    pub(super) fn take_early(&mut self, id: InstanceId) -> Vec<(Rank, u32)> {
        self.early.remove(&id).unwrap_or_default()
    }

    pub(super) fn keep_early(&mut self, id: InstanceId, from: Rank, nth: u32) {
        self.early.entry(id).or_default().push((from, nth));
    }

    /// A task for `stream`; returned if the stream is free, which it then is no more.
    pub(super) fn queue(&mut self, stream: u8, task: u32) -> Option<u32> {
        match self.streams.get_mut(&stream) {
            Some(queue) => {
                queue.push_back(task);
                None
            }
            None => {
                self.streams.insert(stream, VecDeque::new());
                Some(task)
            }
        }
    }

    /// The next task of `stream`; without one it is free.
    pub(super) fn next_of(&mut self, stream: u8) -> Option<u32> {
        let next = self.streams.get_mut(&stream)?.pop_front();
        if next.is_none() {
            self.streams.remove(&stream);
        }
        next
    }

    /// When `work` that begins now is done.
    pub(super) fn done_at(&self, now: Time, work: Dur) -> Time {
        slow::end_of(&self.slowdowns, now, work)
    }

    /// One more stream is at work.
    pub(super) fn works(&mut self, now: Time) {
        if self.working == 0 {
            self.since = now;
        }
        self.working += 1;
    }

    /// One stream less is at work.
    pub(super) fn rests(&mut self, now: Time) {
        self.working -= 1;
        if self.working == 0 {
            self.worked += now.since(self.since);
        }
    }

    /// How long it has worked so far.
    fn worked(&self, now: Time) -> Dur {
        let current = if self.working > 0 { now.since(self.since) } else { Dur::ZERO };
        self.worked + current
    }

    /// `bytes` are sent for `owner`.
    pub(super) fn count(&mut self, job: &Job, owner: Owner, bytes: u64) {
        let task = match owner {
            Owner::Task(task) => task,
            Owner::Move(id, _) => match self.running.get(&id) {
                Some(running) => running.task,
                None => return,
            },
        };
        let step = job.graph().tasks(self.rank).get(task).step;
        if let Some(step) = self.steps.get_mut(&step) {
            step.bytes = step.bytes.saturating_add(bytes).min(i64::MAX as u64);
        }
    }

    /// What is said of `task`.
    pub(super) fn work(&self, job: &Job, task: u32, what: What) -> Work {
        let step = job.graph().tasks(self.rank).get(task).step;
        self.numbered(step, self.later(job, what), Dur::ZERO)
    }

    /// The steps that have begun and are not over.
    pub(super) fn open_steps(&self) -> impl Iterator<Item = Report> {
        self.steps.iter().map(move |(&number, step)| {
            let work = self.numbered(number, What::Step, Dur::ZERO);
            Report { start: step.start, bytes: step.bytes, work }
        })
    }

    /// The transport has given up a message for `owner`.
    pub(super) fn lose(&mut self, job: &Job, owner: Owner) {
        let tasks = job.graph().tasks(self.rank);
        let lost = match owner {
            Owner::Task(task) => match tasks.get(task).kind {
                Kind::Send { to, .. } => Some((task, to)),
                _ => None,
            },
            Owner::Move(id, index) => self.running.get(&id).map(|running| {
                let members = job.graph().members(job.graph().instance(id).group);
                (running.task, members[running.get(index).peer as usize])
            }),
        };
        self.lost = self.lost.or(lost);
    }

    /// For what the rank waits, if it has begun and not ended something: since when its step goes
    /// on, and what.
    pub(super) fn waits(&self, job: &Job) -> Option<(Time, Work)> {
        let (task, peer, wait) = match self.lost {
            Some((task, peer)) => (task, peer, Wait::Lost),
            None => self.first_open(job)?,
        };
        let work = self.work(job, task, What::Waits { task, peer, wait });
        let step = work.step - self.skipped;
        let start = self.steps.get(&step).map_or(Time::ZERO, |step| step.start);
        Some((start, work))
    }

    /// The first task that has begun and not ended.
    fn first_open(&self, job: &Job) -> Option<(u32, Rank, Wait)> {
        let is_open = |state: &u8| *state & (STARTED | ENDED) == STARTED;
        let task = self.state.iter().position(is_open)? as u32;
        let graph = job.graph();
        Some(match graph.tasks(self.rank).get(task).kind {
            Kind::Compute { .. } => (task, self.rank, Wait::Work),
            Kind::Send { to, .. } => (task, to, Wait::Ack),
            Kind::Recv { from, .. } => (task, from, Wait::Message),
            Kind::Collective { group, .. } => {
                let id = graph.tasks(self.rank).instance(task)?;
                let (peer, for_ack) = self.running.get(&id)?.waits_for()?;
                let wait = if for_ack { Wait::Ack } else { Wait::Message };
                (task, graph.members(group)[peer as usize], wait)
            }
        })
    }
}
