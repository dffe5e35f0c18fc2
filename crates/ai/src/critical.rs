//! What a step waited for, from its end back to its beginning: work, messages and collectives, each
//! of which the next one waited for.

use std::collections::BTreeMap;

use units::{Dur, Time};

use crate::graph::{GroupId, Kind, Op, Rank, TaskId};
use crate::job::Job;

/// From when to when a task went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it began.
    pub start: Time,
    /// When it was over.
    pub end: Time,
}

/// The spans of a job's tasks, by rank and task; `None` of those that are not over.
pub type Spans = Vec<Vec<Option<Span>>>;

/// What a piece of a critical path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The rank computed.
    Work,
    /// A message from this rank was on its way, or not acknowledged yet.
    Message {
        /// Whose.
        from: Rank,
    },
    /// The rank took part in a collective, which this rank was the last to begin.
    Collective {
        /// Who.
        last: Rank,
    },
}

/// A piece of a critical path: up to `end` the rank of `task` waited for what has begun at `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The task that went on: of a message its receive, or its send if it waited for that to be
    /// acknowledged.
    pub task: TaskId,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// What it was.
    pub because: Because,
}

/// The tasks that a task waits for, each with whether for its start only.
type Preds = Vec<Vec<(u32, bool)>>;

/// Works out critical paths of a job.
#[derive(Debug)]
pub struct Critical<'a> {
    job: &'a Job,
    spans: &'a Spans,
    /// By step: the task that ended last, if all have.
    last: Vec<Option<(Time, TaskId)>>,
    /// By rank, of those that were looked at.
    preds: BTreeMap<Rank, Preds>,
    /// By rank and stream: what ends when, in order of time.
    streams: BTreeMap<(Rank, u8), Vec<(Time, u32)>>,
}

impl<'a> Critical<'a> {
    /// For `job`, whose tasks took `spans`.
    #[must_use]
    pub fn new(job: &'a Job, spans: &'a Spans) -> Self {
        let last = last_of_steps(job, spans);
        Self { job, spans, last, preds: BTreeMap::new(), streams: BTreeMap::new() }
    }

    /// What step `number` waited for, from `begin` on, in the order of time; nothing of a step that
    /// is not complete. Pieces that took no time are left out.
    pub fn of_step(&mut self, number: u32, begin: Time) -> Vec<Piece> {
        let mut path = Vec::new();
        let Some(&Some((_, mut at))) = self.last.get(number as usize) else { return path };
        // Each turn goes back to a task that began no later, over an edge; there are no cycles.
        let mut most = self.job.graph().len();
        while let Some((piece, before)) = self.back(at) {
            if piece.end <= begin || most == 0 {
                break;
            }
            if piece.start < piece.end {
                path.push(Piece { start: piece.start.max(begin), ..piece });
            }
            most -= 1;
            match before {
                Some(before) => at = before,
                None => break,
            }
        }
        path.reverse();
        path
    }

    fn span(&self, task: TaskId) -> Option<Span> {
        *self.spans.get(task.rank.0 as usize)?.get(task.index as usize)?
    }

    /// What `task` took, and what that waited for.
    fn back(&mut self, task: TaskId) -> Option<(Piece, Option<TaskId>)> {
        let Span { start, end } = self.span(task)?;
        let graph = self.job.graph();
        let piece = |start, because| Piece { task, start, end, because };
        Some(match graph.tasks(task.rank).get(task.index).kind {
            Kind::Compute { stream, .. } => {
                (piece(start, Because::Work), self.before(task, Some(stream)))
            }
            Kind::Send { .. } => {
                let because = Because::Message { from: task.rank };
                (piece(start, because), self.before(task, None))
            }
            Kind::Recv { from, .. } => {
                let index = graph.tasks(task.rank).counterpart(task.index)?;
                let send = TaskId { rank: from, index };
                // It may not be acknowledged yet.
                let sent = self.span(send)?.start;
                let because = Because::Message { from };
                // It was there before it was waited for.
                if end <= start {
                    (piece(end, because), self.before(task, None))
                } else {
                    (piece(sent.min(end), because), self.before(send, None))
                }
            }
            Kind::Collective { group, .. } => {
                let last = self.last_to_begin(task, group)?;
                let begun = self.span(last)?.start;
                let because = Because::Collective { last: last.rank };
                // All had come before it was waited for.
                if end <= start {
                    return Some((piece(end, because), self.before(task, None)));
                }
                // Some are done with their part before the last one begins.
                let (begun, last) = if begun < end { (begun, last) } else { (start, task) };
                (piece(begun, because), self.before(last, None))
            }
        })
    }

    /// The task of the same collective as `task` that began last; of a broadcast the root's, which
    /// the others wait for.
    fn last_to_begin(&self, task: TaskId, group: GroupId) -> Option<TaskId> {
        let graph = self.job.graph();
        let instance = graph.tasks(task.rank).instance(task.index)?;
        let mut last: Option<(Time, TaskId)> = None;
        let needs = |rank: &&Rank| match graph.tasks(task.rank).get(task.index).kind {
            Kind::Collective { op: Op::Broadcast { root }, .. } => **rank == root,
            _ => true,
        };
        for &rank in graph.members(group).iter().filter(needs) {
            let index = self.job.task_of(instance, rank)?;
            let id = TaskId { rank, index };
            let start = self.span(id)?.start;
            if last.is_none_or(|(latest, _)| start > latest) {
                last = Some((start, id));
            }
        }
        last.map(|(_, task)| task)
    }

    /// What `task` waited for before it began: of those of its rank the one that ended last, or
    /// what its stream did until then. Where that is another's start, what that one waited for.
    fn before(&mut self, task: TaskId, stream: Option<u8>) -> Option<TaskId> {
        let (mut at, mut stream) = (task, stream);
        loop {
            match self.waited_for(at, stream)? {
                (task, false) => return Some(task),
                (task, true) => at = task,
            }
            stream = match self.job.graph().tasks(at.rank).get(at.index).kind {
                Kind::Compute { stream, .. } => Some(stream),
                _ => None,
            };
        }
    }

    /// The task that `task` waited for before it began, and whether for its start only.
    fn waited_for(&mut self, task: TaskId, stream: Option<u8>) -> Option<(TaskId, bool)> {
        let rank = task.rank;
        let start = self.span(task)?.start;
        self.preds.entry(rank).or_insert_with(|| preds(self.job, rank));
        let list = self.preds.get(&rank)?.get(task.index as usize)?;
        let mut ready: Option<(Time, TaskId, bool)> = None;
        for &(index, is_start) in list {
            let id = TaskId { rank, index };
            let Some(span) = self.span(id) else { continue };
            let at = if is_start { span.start } else { span.end };
            if ready.is_none_or(|(latest, ..)| at > latest) {
                ready = Some((at, id, is_start));
            }
        }
        let queued = ready.is_none_or(|(at, ..)| at < start);
        if let Some(stream) = stream.filter(|_| queued)
            && let Some(earlier) = self.on_stream(rank, stream, start)
            && earlier != task
        {
            return Some((earlier, false));
        }
        ready.map(|(_, task, is_start)| (task, is_start))
    }

    /// The work of `stream` that ended at `end`.
    fn on_stream(&mut self, rank: Rank, stream: u8, end: Time) -> Option<TaskId> {
        let (job, spans) = (self.job, self.spans);
        let list = self.streams.entry((rank, stream)).or_insert_with(|| {
            let spans = spans.get(rank.0 as usize).map_or(&[][..], Vec::as_slice);
            let tasks = (0_u32..).zip(job.graph().tasks(rank).iter()).zip(spans);
            let done = tasks.filter_map(|((index, task), span)| match task.kind {
                Kind::Compute { stream: of, dur } if of == stream && dur > Dur::ZERO => {
                    Some(((*span)?.end, index))
                }
                _ => None,
            });
            let mut list: Vec<(Time, u32)> = done.collect();
            list.sort_unstable();
            list
        });
        let at = list.binary_search_by_key(&end, |(end, _)| *end).ok()?;
        Some(TaskId { rank, index: list[at].1 })
    }
}

/// By step: the task that ended last, of equal ones the first; `None` if one has not ended.
fn last_of_steps(job: &Job, spans: &Spans) -> Vec<Option<(Time, TaskId)>> {
    let steps = job.graph().steps() as usize;
    let (mut last, mut is_open) = (vec![None; steps], vec![false; steps]);
    for (rank, of_rank) in (0..).map(Rank).zip(spans) {
        for ((index, task), span) in (0..).zip(job.graph().tasks(rank).iter()).zip(of_rank) {
            let step = task.step as usize;
            let Some(Span { end, .. }) = *span else {
                is_open[step] = true;
                continue;
            };
            if last[step].is_none_or(|(latest, _)| end > latest) {
                last[step] = Some((end, TaskId { rank, index }));
            }
        }
    }
    let closed = last.into_iter().zip(is_open);
    closed.map(|(last, is_open)| last.filter(|_| !is_open)).collect()
}

/// By task of `rank`: what it waits for.
fn preds(job: &Job, rank: Rank) -> Preds {
    let tasks = job.graph().tasks(rank);
    let mut preds: Preds = vec![Vec::new(); tasks.len()];
    for pred in 0..tasks.len() as u32 {
        for task in tasks.after_start_of(pred) {
            preds[task as usize].push((pred, true));
        }
        for task in tasks.after_end_of(pred) {
            preds[task as usize].push((pred, false));
        }
    }
    preds
}
