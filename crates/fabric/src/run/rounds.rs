//! Leaving out rounds of work that repeats: steps of a training job (docs/skip.md).
//!
//! Their messages are short, and end; what repeats is how long a round takes. Where all work in the
//! fabric is of one job, and its last rounds took as long as each other, as many as can be are left
//! out: the application goes on with later rounds, and the network does not know.

use std::collections::{BTreeMap, VecDeque};

use endpoint::{JobRecord, Rounds};
use units::{Dur, Time};

use super::Run;
use super::skip::Skipper;
use crate::steady::{Ratio, Tolerance, Totals};

/// So many rounds in a row must take as long as each other.
const ALIKE: usize = 3;

/// What has been counted when a round was seen to be complete.
struct Mark {
    /// In simulated time.
    at: Time,
    placed: u64,
    totals: Totals,
}

/// The rounds so far.
#[derive(Default)]
pub(super) struct Seen {
    /// When they ended, in true time; those of late, by their number.
    ends: BTreeMap<u32, Time>,
    /// The part of the workload that reports them; more than one has no rounds in common.
    tags: Vec<u16>,
    /// How many were complete at the latest mark.
    done: u32,
    /// How many faults there had been.
    faults: usize,
    marks: VecDeque<Mark>,
}

impl Seen {
    /// An application has reported something.
    pub(super) fn note(&mut self, record: &JobRecord) {
        let Some(work) = record.job.work.filter(|work| !work.skipped) else { return };
        if !self.tags.contains(&record.job.tag) {
            self.tags.push(record.job.tag);
        }
        let end = self.ends.entry(work.step).or_default();
        *end = record.job.end.max(*end);
        while self.ends.len() > 4 * ALIKE {
            self.ends.pop_first();
        }
    }

    /// The part of the workload whose rounds they are, if it is one.
    fn tag(&self) -> Option<u16> {
        match self.tags[..] {
            [tag] => Some(tag),
            _ => None,
        }
    }

    /// How long each of the last rounds before number `done` took, if that was as long.
    fn period(&self, done: u32, tolerance: &Tolerance) -> Option<Dur> {
        let first = done.checked_sub(ALIKE as u32 + 1)?;
        let ends: Vec<Time> = (first..done).filter_map(|n| self.ends.get(&n).copied()).collect();
        if ends.len() <= ALIKE {
            return None;
        }
        let times = || ends.windows(2).map(|pair| pair[1].since(pair[0]).0);
        let is_level = times().all(|time| time > 0) && tolerance.is_level(times());
        is_level.then(|| Dur(ends[ALIKE].since(ends[0]).0 / ALIKE as u64))
    }
}

impl<const WATCHED: bool> Run<'_, WATCHED> {
    /// Leave out rounds, if the last ones took as long as each other. Whether there are any that
    /// could be.
    pub(super) fn skip_rounds(&mut self, skipper: &mut Skipper) -> bool {
        let Some(rounds) = self.rounds() else { return false };
        let faults = self.happened().faults;
        if faults != skipper.rounds.faults {
            // What it changes shows in the rounds that end after it.
            skipper.rounds.ends.clear();
            skipper.rounds.marks.clear();
            skipper.rounds.faults = faults;
        }
        if rounds.done <= skipper.rounds.done {
            return true;
        }
        skipper.rounds.done = rounds.done;
        let placed = self.parts().map(|part| part.hosts().placed_bytes()).sum();
        let mark = Mark { at: self.now, placed, totals: self.totals() };
        let marks = &mut skipper.rounds.marks;
        marks.push_back(mark);
        if marks.len() > ALIKE + 1 {
            marks.pop_front();
        }
        let Some(time) = skipper.rounds.period(rounds.done, &skipper.tolerance) else {
            return true;
        };
        let until = self.next_from_outside(None).since(self.true_now());
        let count = (until.0 / time.0).min(rounds.left.into());
        let count = skipper.left_out(count) as u32;
        let alone = skipper.rounds.tag().is_some_and(|tag| self.messages.has_only(tag));
        if alone && count > 0 && skipper.rounds.marks.len() > 1 {
            self.leave_out(skipper, count, time);
        }
        true
    }

    /// How far work has come that repeats, if there is nothing else.
    fn rounds(&self) -> Option<Rounds> {
        let mut all = self.parts().map(|part| part.hosts().rounds());
        let rounds = all.try_fold(Rounds::UNBOUNDED, |all, of| Some(all.and(of?)))?;
        (rounds != Rounds::UNBOUNDED).then_some(rounds)
    }

    /// Leave out `count` rounds, which take `time` each.
    fn leave_out(&mut self, skipper: &mut Skipper, count: u32, time: Dur) {
        let all = time * u64::from(count);
        let mut marks = std::mem::take(&mut skipper.rounds.marks);
        let (Some(from), Some(to)) = (marks.pop_front(), marks.pop_back()) else { return };
        let share = Ratio { part: all, of: to.at.since(from.at) };
        let counts = self.counts();
        let placed = share.of(to.placed - from.placed);
        self.loops[0].part_mut().hosts_mut().place_all_skipped(placed);
        self.count_skipped(skipper, (&from.totals, &to.totals), share, (counts, placed));
        let now = self.true_now();
        self.messages.postpone(all);
        for part in self.parts_mut() {
            part.skip_rounds(now, count, time);
        }
        self.skipped += all;
        self.report_jobs();
    }
}
