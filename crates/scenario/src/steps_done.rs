//! [`StepsDone`]: which steps of training jobs a run has completed so far, for whoever watches it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use ai::What;
use units::{Dur, Time};

use crate::Scenario;
use crate::steps::Worked;
use crate::warnings::for_people;

/// A step that all ranks of its job have completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepDone {
    /// The name of the job's traffic table, or its number.
    pub job: String,
    /// Which step, from 0.
    pub step: u32,
    /// How many steps of the job are complete now.
    pub done: u32,
    /// How many it has.
    pub steps: u32,
    /// How long it took: from the end of the step before, if that was not earlier than its start.
    pub time: Dur,
    /// How long a rank did not compute in it, the mean.
    pub exposed: Dur,
}

impl StepDone {
    /// How far its job has come: `train: 3 of 10 steps, the last took 4.1 ms`.
    #[must_use]
    pub fn latest(&self) -> String {
        let Self { job, done, steps, time, .. } = self;
        format!("{job}: {done} of {steps} steps, the last took {}", for_people(*time))
    }
}

/// What it took: `train: step 0 took 4.3 ms, 3.0 ms of it exposed communication`.
impl fmt::Display for StepDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, step, time, exposed, .. } = self;
        let (time, exposed) = (for_people(*time), for_people(*exposed));
        write!(f, "{job}: step {step} took {time}, {exposed} of it exposed communication")
    }
}

/// The steps of a run's training jobs that are complete. A run tells it, others ask.
#[derive(Debug)]
pub struct StepsDone(Mutex<State>);

#[derive(Debug)]
struct State {
    /// By traffic table.
    jobs: BTreeMap<u16, JobDone>,
    /// Steps that nobody has asked for yet.
    fresh: Vec<StepDone>,
}

#[derive(Debug)]
struct JobDone {
    name: String,
    /// By step: how many ranks have tasks of it.
    ranks: Vec<u32>,
    /// Steps that some ranks have completed.
    open: BTreeMap<u32, Step>,
    done: u32,
    steps: u32,
    /// When the latest one that is complete ended.
    end: Time,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    ranks: u32,
    start: Time,
    end: Time,
    exposed: Dur,
}

impl StepsDone {
    /// None of `scenario` yet.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let mut jobs = BTreeMap::new();
        let traffic = &scenario.traffic;
        for ((table, part), name) in (0..).zip(&traffic.tables).zip(&traffic.names) {
            let Some(job) = &part.job else { continue };
            let ranks: Vec<u32> =
                (0..job.graph().steps()).map(|step| job.ranks_of_step(step)).collect();
            let steps = ranks.iter().filter(|ranks| **ranks > 0).count() as u32;
            let name = name.clone().unwrap_or_else(|| format!("traffic {table}"));
            let (open, end) = (BTreeMap::new(), Time::ZERO);
            jobs.insert(table, JobDone { name, ranks, open, done: 0, steps, end });
        }
        Self(Mutex::new(State { jobs, fresh: Vec::new() }))
    }

    /// The steps that have been completed since it was asked last, in order.
    pub fn take(&self) -> Vec<StepDone> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.fresh)
    }

    /// A rank has done something.
    pub(crate) fn note(&self, worked: &Worked) {
        if !worked.completed || What::decode(worked.work.what) != What::Step {
            return;
        }
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { jobs, fresh } = &mut *state;
        fresh.extend(jobs.get_mut(&worked.table).and_then(|job| job.note(worked)));
    }
}

impl JobDone {
    /// The step that is complete with this, if one is.
    fn note(&mut self, &Worked { start, end, work, .. }: &Worked) -> Option<StepDone> {
        let none = Step { ranks: 0, start, end, exposed: Dur::ZERO };
        let step = self.open.entry(work.step).or_insert(none);
        step.ranks += 1;
        (step.start, step.end) = (step.start.min(start), step.end.max(end));
        step.exposed += Dur(end.since(start).0.saturating_sub(work.computed.0));
        if step.ranks < *self.ranks.get(work.step as usize)? {
            return None;
        }
        let step = self.open.remove(&work.step)?;
        let time =
            step.end.since(if self.done > 0 { self.end.max(step.start) } else { step.start });
        self.end = step.end;
        self.done += 1;
        Some(StepDone {
            job: self.name.clone(),
            step: work.step,
            done: self.done,
            steps: self.steps,
            time,
            exposed: Dur(step.exposed.0 / u64::from(step.ranks)),
        })
    }
}

#[cfg(test)]
mod tests {
    use endpoint::Work;
    use units::HostId;

    use super::*;

    fn worked(step: u32, rank: u32, start_us: u64, end_us: u64) -> Worked {
        let computed = Dur::from_us(4);
        Worked {
            host: HostId(rank),
            table: 0,
            start: Time::ZERO + Dur::from_us(start_us),
            end: Time::ZERO + Dur::from_us(end_us),
            completed: true,
            bytes: 0,
            work: Work { rank, step, what: What::Step.encode(), computed, skipped: false },
        }
    }

    #[test]
    fn a_step_is_complete_with_its_last_rank() {
        let mut job = JobDone {
            name: "train".into(),
            ranks: vec![2, 2],
            open: BTreeMap::new(),
            done: 0,
            steps: 2,
            end: Time::ZERO,
        };
        assert_eq!(job.note(&worked(0, 1, 2, 20)), None);
        // One rank is ahead by a step.
        assert_eq!(job.note(&worked(1, 1, 20, 30)), None);
        let first = job.note(&worked(0, 0, 1, 25)).unwrap();
        assert_eq!((first.step, first.done, first.steps), (0, 1, 2));
        // Of 18 and 24 us, 4 each are work.
        assert_eq!((first.time, first.exposed), (Dur::from_us(24), Dur::from_us(17)));
        let second = job.note(&worked(1, 0, 25, 40)).unwrap();
        assert_eq!((second.step, second.done, second.time), (1, 2, Dur::from_us(15)));
    }
}
