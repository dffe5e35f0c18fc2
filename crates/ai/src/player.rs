//! [`Player`]: plays the ranks of one host.
//!
//! A task begins when those that it waits for have begun or ended. Ranks of one node exchange over
//! its scale-up domain (`scale_up`). All else goes through the transport.

mod rank;
mod running;
mod scale_up;
pub(crate) mod token;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

use endpoint::{App, AppCx, AppEvent, Msg, Purpose, Rounds, Work};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, MsgId, MsgKey, Time, TimerId};

use crate::graph::{InstanceId, Kind, Rank};
use crate::job::{Job, Straggler};
use rank::{RankState, Report};
use running::Running;
use scale_up::{Beside, Source};
use token::Token;

const AGENDA: TimerId = TimerId(0);
/// So many steps at the end of a job are played in any case.
const LAST_STEPS: u32 = 2;
const STRAGGLES: Purpose = Purpose::new("job: stragglers");
const STRAGGLES_BY: Purpose = Purpose::new("job: how much longer stragglers take");

/// What a [`Work`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// All tasks of a step.
    Step,
    /// A collective, and the rank's task of it.
    Collective {
        /// Which.
        id: InstanceId,
        /// The task.
        task: u32,
    },
    /// A task that is no collective. Told if [`tell_tasks`](crate::Config::tell_tasks) says so.
    Task {
        /// The task.
        task: u32,
    },
    /// Not done: the rank's task with this index waits for this rank.
    Waits {
        /// The task.
        task: u32,
        /// For whom: its own rank if it computes.
        peer: Rank,
        /// For what of it.
        wait: Wait,
    },
}

/// For what a task waits that does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For the rank's own work.
    Work,
    /// For a message.
    Message,
    /// For the acknowledgement of a message.
    Ack,
    /// For nothing any more: the transport has given a message up.
    Lost,
}

impl Wait {
    const ALL: [Self; 4] = [Self::Work, Self::Message, Self::Ack, Self::Lost];
}

impl What {
    /// As the code of [`Work::what`].
    #[must_use]
    pub fn encode(self) -> u64 {
        match self {
            Self::Step => 0,
            Self::Task { task } => 1 << 61 | u64::from(task),
            Self::Collective { id, task } => 1 << 62 | u64::from(id.0) << 32 | u64::from(task),
            Self::Waits { task, peer, wait } => {
                1 << 63 | (wait as u64) << 60 | u64::from(peer.0) << 32 | u64::from(task)
            }
        }
    }

    /// From the code of [`Work::what`].
    #[must_use]
    pub fn decode(code: u64) -> Self {
        if code >> 63 == 1 {
            let peer = Rank((code >> 32) as u32 & ((1 << 28) - 1));
            let wait = Wait::ALL[(code >> 60 & 3) as usize];
            return Self::Waits { task: code as u32, peer, wait };
        }
        if code >> 62 == 1 {
            let id = InstanceId((code >> 32) as u32 & (token::INSTANCES_MAX - 1));
            return Self::Collective { id, task: code as u32 };
        }
        if code >> 61 == 1 {
            return Self::Task { task: code as u32 };
        }
        Self::Step
    }
}

/// What a message was sent for, at its sender.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Task(u32),
    Move(InstanceId, u32),
}

/// A message of a rank of this host.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seat: u8,
    owner: Owner,
}

/// What comes at its time.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// The job begins.
    Start,
    /// A compute task ends.
    Computed { seat: u8, task: u32 },
    /// A message within this host begins to arrive at the port of its receiver, which takes `time`.
    AtPort { from: Source, to: u8, token: u64, time: Dur },
    /// A message within this node is there.
    Arrived { from: Source, token: u64 },
}

/// The application of one host of a job. Made by [`Job::players`].
#[derive(Debug)]
pub struct Player {
    job: Arc<Job>,
    /// Which of the placement's hosts it is.
    host: u32,
    ranks: Vec<RankState>,
    /// Messages in the network.
    sent: HashMap<MsgId, Sent, FxBuildHasher>,
    beside: Beside,
    agenda: BinaryHeap<Reverse<(Time, u64)>>,
    due: HashMap<u64, Due, FxBuildHasher>,
    scheduled: u64,
    /// Tasks that can begin, by seat; none between calls.
    ready: BTreeSet<(u8, u32)>,
    /// Steps from this one on are not played: as many were left out.
    end: u32,
}

impl Player {
    pub(crate) fn new(job: Arc<Job>, host: u32) -> Self {
        let ranks = job.placement().ranks_of(host);
        let ranks = ranks.iter().map(|&rank| RankState::new(rank, &job)).collect();
        Self {
            job,
            host,
            ranks,
            sent: HashMap::default(),
            beside: Beside::default(),
            agenda: BinaryHeap::new(),
            due: HashMap::default(),
            scheduled: 0,
            ready: BTreeSet::new(),
            end: u32::MAX,
        }
    }

    /// The step of a task.
    fn step_of(&self, seat: u8, task: u32) -> u32 {
        let rank = self.ranks[usize::from(seat)].rank;
        self.job.graph().tasks(rank).get(task).step
    }

    /// The tasks that wait for nothing can begin.
    fn start(&mut self) {
        for (seat, rank) in self.ranks.iter().enumerate() {
            rank.first(&self.job, seat as u8, &mut self.ready);
        }
    }

    fn schedule(&mut self, at: Time, due: Due) {
        self.agenda.push(Reverse((at, self.scheduled)));
        self.due.insert(self.scheduled, due);
        self.scheduled += 1;
    }

    /// Begin what can begin, and look to the next time.
    fn go_on(&mut self, cx: &mut AppCx<'_>) {
        while let Some((seat, task)) = self.ready.pop_first() {
            if self.step_of(seat, task) < self.end {
                self.begin(cx, seat, task);
            }
        }
        if let Some(Reverse((at, _))) = self.agenda.peek() {
            cx.arm(AGENDA, *at);
        }
    }

    fn begin(&mut self, cx: &mut AppCx<'_>, seat: u8, task: u32) {
        let job = Arc::clone(&self.job);
        let rank = &mut self.ranks[usize::from(seat)];
        let kind = job.graph().tasks(rank.rank).get(task).kind;
        if let Kind::Compute { dur, stream } = kind
            && dur > Dur::ZERO
        {
            // It starts when its stream is free.
            if let Some(task) = rank.queue(stream, task) {
                self.compute(cx, seat, task);
            }
            return;
        }
        rank.started(&job, task, cx.now, seat, &mut self.ready);
        match kind {
            Kind::Compute { .. } => self.end(cx, seat, task),
            Kind::Send { to, bytes, .. } => {
                let tasks = job.graph().tasks(rank.rank);
                let index = tasks.counterpart(task).unwrap_or_default();
                let token = Token::Recv { to: job.placement().seat(to).1, index };
                let sent = Sent { seat, owner: Owner::Task(task) };
                self.send(cx, sent, (to, bytes, 0), token);
            }
            Kind::Recv { .. } => {
                if rank.has_arrived(task) {
                    self.end(cx, seat, task);
                }
            }
            Kind::Collective { .. } => self.join(cx, seat, task),
        }
    }

    /// Begin to work on `task`, for which its stream is free.
    fn compute(&mut self, cx: &mut AppCx<'_>, seat: u8, task: u32) {
        let rank = &mut self.ranks[usize::from(seat)];
        let Kind::Compute { dur, .. } = self.job.graph().tasks(rank.rank).get(task).kind else {
            return;
        };
        rank.started(&self.job, task, cx.now, seat, &mut self.ready);
        rank.works(cx.now);
        let draw = u64::from(seat) << 32 | u64::from(task);
        let excess = excess(self.job.config().straggler, cx, draw, dur);
        let done = rank.done_at(cx.now, dur + excess);
        self.schedule(done, Due::Computed { seat, task });
    }

    fn computed(&mut self, cx: &mut AppCx<'_>, seat: u8, task: u32) {
        let rank = &mut self.ranks[usize::from(seat)];
        rank.rests(cx.now);
        let next = match self.job.graph().tasks(rank.rank).get(task).kind {
            Kind::Compute { stream, .. } => rank.next_of(stream),
            _ => None,
        };
        self.end(cx, seat, task);
        if let Some(next) = next {
            self.compute(cx, seat, next);
        }
    }

    /// Take part in a collective.
    fn join(&mut self, cx: &mut AppCx<'_>, seat: u8, task: u32) {
        let job = Arc::clone(&self.job);
        let rank = &mut self.ranks[usize::from(seat)];
        let Some(id) = job.graph().tasks(rank.rank).instance(task) else { return };
        let instance = job.graph().instance(id);
        let me = job.place(instance.group, rank.rank);
        // All members' moves were tried for the first one of them when the job was made.
        let Ok(moves) = job.moves(instance, me) else { return };
        let mut running = Running::new(task, cx.now, moves);
        for (from, nth) in rank.take_early(id) {
            running.arrived(job.place(instance.group, from), nth);
        }
        rank.running.insert(id, running);
        self.push(cx, seat, id);
    }

    /// Send what a collective can send now; end it if it is over.
    fn push(&mut self, cx: &mut AppCx<'_>, seat: u8, id: InstanceId) {
        let job = Arc::clone(&self.job);
        let instance = job.graph().instance(id);
        let members = job.graph().members(instance.group);
        loop {
            let rank = &mut self.ranks[usize::from(seat)];
            let Some(running) = rank.running.get_mut(&id) else { return };
            let Some((index, nth)) = running.next_send() else {
                if running.is_over() {
                    self.leave(cx, seat, id);
                }
                return;
            };
            let m = *running.get(index);
            let to = members[m.peer as usize];
            let to_seat = job.placement().seat(to).1;
            let token = Token::Part { to: to_seat, from: seat, instance: id, nth };
            let sent = Sent { seat, owner: Owner::Move(id, index) };
            self.send(cx, sent, (to, m.bytes, m.channel), token);
        }
    }

    /// A rank has done its part of a collective.
    fn leave(&mut self, cx: &mut AppCx<'_>, seat: u8, id: InstanceId) {
        let rank = &mut self.ranks[usize::from(seat)];
        let Some(running) = rank.running.remove(&id) else { return };
        let task = running.task;
        let work = rank.work(&self.job, task, What::Collective { id, task });
        let bytes = self.job.graph().instance(id).bytes;
        report(cx, running.start, bytes, true, work);
        self.end(cx, seat, task);
    }

    fn send(
        &mut self,
        cx: &mut AppCx<'_>,
        sent: Sent,
        (to, bytes, channel): (Rank, u64, u32),
        token: Token,
    ) {
        self.ranks[usize::from(sent.seat)].count(&self.job, sent.owner, bytes);
        let host = self.job.placement().seat(to).0;
        let token = token.encode();
        if self.job.placement().node(host) == self.job.placement().node(self.host) {
            self.send_beside(cx, sent, (to, bytes), token);
            return;
        }
        let config = self.job.config();
        let channel = if config.channel == 0 { 0 } else { config.channel - (channel << 16) };
        // A message has at least a byte.
        let msg = Msg {
            channel,
            prio: config.prio,
            ..Msg::new(self.job.placement().host(to), bytes.max(1))
        };
        let id = cx.submit_saying(msg, token);
        self.sent.insert(id, sent);
    }

    /// A message of a rank of host `from` is for one of this host, and here.
    fn arrived(&mut self, cx: &mut AppCx<'_>, from: HostId, token: u64) {
        match Token::decode(token) {
            Token::Recv { to, index } => {
                let Some(rank) = self.ranks.get_mut(usize::from(to)) else { return };
                if rank.arrives(index) {
                    self.end(cx, to, index);
                }
            }
            Token::Part { to, from: seat, instance, nth } => {
                let job = Arc::clone(&self.job);
                let Some(from) = job.rank_on(from, seat) else { return };
                let Some(rank) = self.ranks.get_mut(usize::from(to)) else { return };
                let place = job.place(job.graph().instance(instance).group, from);
                if let Some(running) = rank.running.get_mut(&instance) {
                    running.arrived(place, nth);
                    self.push(cx, to, instance);
                } else {
                    rank.keep_early(instance, from, nth);
                }
            }
            Token::Ack { .. } => {}
        }
    }

    /// A message of a rank of this host is at its receiver.
    fn acked(&mut self, cx: &mut AppCx<'_>, Sent { seat, owner }: Sent) {
        match owner {
            Owner::Task(task) => self.end(cx, seat, task),
            Owner::Move(id, index) => {
                let rank = &mut self.ranks[usize::from(seat)];
                if let Some(running) = rank.running.get_mut(&id) {
                    running.acked(index);
                    self.push(cx, seat, id);
                }
            }
        }
    }

    fn end(&mut self, cx: &mut AppCx<'_>, seat: u8, task: u32) {
        let job = Arc::clone(&self.job);
        let rank = &mut self.ranks[usize::from(seat)];
        let is_collective = job.graph().tasks(rank.rank).instance(task).is_some();
        if let Some(start) = rank.start_of(task).filter(|_| !is_collective) {
            report(cx, start, 0, true, rank.work(&job, task, What::Task { task }));
        }
        if let Some(step) = rank.ended(&job, task, cx.now, seat, &mut self.ready) {
            report(cx, step.start, step.bytes, true, step.work);
        }
    }
}

/// Report a step or collective, complete or not.
fn report(cx: &mut AppCx<'_>, start: Time, bytes: u64, completed: bool, work: Work) {
    cx.report(endpoint::Job {
        completed,
        start,
        end: cx.now,
        bytes,
        work: Some(work),
        ..endpoint::Job::default()
    });
}

impl App for Player {
    fn on_start(&mut self, cx: &mut AppCx<'_>) {
        let start = self.job.config().start;
        if start > cx.now {
            self.schedule(start, Due::Start);
        } else {
            self.start();
        }
        self.go_on(cx);
    }

    fn on_event(&mut self, cx: &mut AppCx<'_>, event: AppEvent) {
        match event {
            AppEvent::Delivered { key: MsgKey { src, .. }, token, .. } => {
                self.arrived(cx, src, token);
            }
            AppEvent::Acked(id) => {
                if let Some(sent) = self.sent.remove(&id) {
                    self.acked(cx, sent);
                }
            }
            // Who waits for it waits for good; the end of the run says so.
            AppEvent::Failed(MsgKey { src, id }, _) if src == cx.me => {
                if let Some(sent) = self.sent.remove(&id) {
                    self.ranks[usize::from(sent.seat)].lose(&self.job, sent.owner);
                }
            }
            AppEvent::Signal { from, token, .. } => self.signalled(cx, from, token),
            AppEvent::Failed(..) => {}
        }
        self.go_on(cx);
    }

    fn on_timer(&mut self, cx: &mut AppCx<'_>, _: TimerId) {
        while let Some(&Reverse((at, number))) = self.agenda.peek()
            && at <= cx.now
        {
            self.agenda.pop();
            match self.due.remove(&number) {
                Some(Due::Start) => self.start(),
                Some(Due::Computed { seat, task }) => self.computed(cx, seat, task),
                Some(Due::AtPort { from, to, token, time }) => {
                    self.at_port(cx, from, to, token, time);
                }
                Some(Due::Arrived { from, token }) => self.arrived_beside(cx, from, token),
                None => {}
            }
        }
        self.go_on(cx);
    }

    fn on_end(&mut self, cx: &mut AppCx<'_>) {
        for rank in &self.ranks {
            for step in rank.open_steps() {
                report(cx, step.start, step.bytes, false, step.work);
            }
            if let Some((start, work)) = rank.waits(&self.job) {
                report(cx, start, 0, false, work);
            }
        }
    }

    /// Also while a message is not acknowledged: tasks that wait for that submit others, though
    /// all messages are delivered.
    fn more_to_come(&self) -> bool {
        !self.agenda.is_empty() || !self.sent.is_empty() || !self.beside.is_idle()
    }

    fn rounds(&self) -> Option<Rounds> {
        self.job.period()?;
        let done = self.ranks.iter().map(RankState::steps_done).min()?;
        let begun = self.ranks.iter().map(RankState::first_unbegun).max()?;
        let end = self.end.min(self.job.graph().steps());
        Some(Rounds { done, left: end.saturating_sub(begun + LAST_STEPS) })
    }

    fn on_skipped(&mut self, cx: &mut AppCx<'_>, count: u32, time: Dur) {
        self.end = self.end.min(self.job.graph().steps()) - count;
        for rank in &mut self.ranks {
            for (Report { start, bytes, work }, end) in rank.skip(count, time) {
                let work = Some(work);
                let job = endpoint::Job {
                    completed: true,
                    start,
                    end,
                    bytes,
                    work,
                    ..Default::default()
                };
                cx.report(job);
            }
        }
        let all = time * u64::from(count);
        let agenda = std::mem::take(&mut self.agenda).into_iter();
        self.agenda = agenda.map(|Reverse((at, number))| Reverse((at + all, number))).collect();
    }

    fn signal_delay(&self) -> Option<Dur> {
        let several = self.job.placement().nics() > 1;
        several.then_some(self.job.config().scale_up.latency)
    }
}

/// How much longer work of `dur`, whose number of draws is `draw`, takes if it straggles.
fn excess(straggler: Straggler, cx: &AppCx<'_>, draw: u64, dur: Dur) -> Dur {
    if straggler.share == 0.0 || cx.draw.unit(STRAGGLES, draw) >= straggler.share {
        return Dur::ZERO;
    }
    let mean = dur.0 as f64 * straggler.excess;
    if straggler.exponential {
        workload::arrivals::exponential(mean, cx.draw.unit(STRAGGLES_BY, draw))
    } else {
        Dur(mean as u64)
    }
}

#[cfg(test)]
mod tests;
