//! [`PhaseFold`]: the run as its fault script divides it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use units::{Dur, Time};

use crate::flow_stats::goodput;
use crate::statistics::Values;
use crate::{Distribution, FctUs, FileError, FlowRow, Window};

/// A part of the run in which the fault script changes nothing, and the measured messages that were
/// submitted in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What happens at its beginning.
    pub what: String,
    /// Its beginning, in microseconds since the start of the run.
    pub from_us: f64,
    /// Its end: the beginning of the next, or the end of the run.
    pub to_us: f64,
    /// Measured messages submitted in it.
    pub submitted: u64,
    /// Of these, the bounded ones that were still in flight at its end: what came later hit them,
    /// too.
    pub carried_over: u64,
    /// Of these, the bounded ones that had neither completed nor failed when the run ended.
    pub unfinished: u64,
    /// Of these, the ones that failed.
    pub failed: u64,
    /// Completion times of those that completed, however late, in microseconds.
    pub fct_us: FctUs,
    /// Slowdown of the same.
    pub slowdown: Distribution,
    /// Payload bits placed at receivers, of any message, between the first and the last sample in
    /// it, over the time between these; `null` with fewer than two.
    pub goodput_gbps: Option<f64>,
}

/// Divides the messages of a run by its fault script. Each belongs to the phase in which it was
/// submitted.
#[derive(Debug)]
pub struct PhaseFold(Vec<Open>);

/// A phase whose messages are still to come.
#[derive(Debug)]
struct Open {
    from: Time,
    to: Time,
    phase: Phase,
    fct_us: Values,
    slowdown: Values,
}

impl PhaseFold {
    /// Of a run that ended at `end`, divided where `changes` say. `placed` are samples: when, and
    /// bytes placed since the start. No phases without changes before the end. For `dir` see
    /// [`FlowFold::new`](crate::FlowFold::new).
    #[must_use]
    pub fn new(
        changes: &[(Time, &str)],
        placed: &[(Time, u64)],
        end: Time,
        dir: Option<&Path>,
    ) -> Self {
        let mut begins: Vec<(Time, &str)> =
            changes.iter().filter(|(at, _)| *at < end).copied().collect();
        if begins.first().is_some_and(|(at, _)| *at > Time::ZERO) {
            begins.insert(0, (Time::ZERO, "start"));
        }
        let ends = begins.iter().skip(1).map(|(at, _)| *at).chain([end]);
        let open = |(&(from, what), to): (&(Time, &str), Time)| {
            let phase = Phase {
                what: what.to_owned(),
                from_us: from.as_us_f64(),
                to_us: to.as_us_f64(),
                goodput_gbps: goodput_within(placed, from, to),
                ..Phase::default()
            };
            Open { from, to, phase, fct_us: Values::new(dir), slowdown: Values::new(dir) }
        };
        Self(begins.iter().zip(ends).map(open).collect())
    }

    /// One more message, in the order of `flows.parquet`.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn add(&mut self, row: &FlowRow) -> Result<(), FileError> {
        let phase = self.0.partition_point(|open| open.from <= row.start).checked_sub(1);
        match phase.map(|phase| &mut self.0[phase]) {
            Some(open) if row.measured && row.start < open.to => open.add(row),
            _ => Ok(()),
        }
    }

    /// The phases.
    ///
    /// # Errors
    /// The directory cannot be read or written.
    pub fn finish(self) -> Result<Vec<Phase>, FileError> {
        self.0.into_iter().map(Open::finish).collect()
    }
}

impl Open {
    fn add(&mut self, row: &FlowRow) -> Result<(), FileError> {
        let late = row.finish.is_none_or(|finish| finish > self.to);
        self.phase.submitted += 1;
        self.phase.carried_over += u64::from(row.size.is_some() && late);
        self.phase.unfinished += u64::from(row.is_unfinished());
        self.phase.failed += u64::from(row.has_failed());
        self.fct_us.extend(row.fct().map(Dur::as_us_f64))?;
        self.slowdown.extend(row.slowdown())
    }

    fn finish(self) -> Result<Phase, FileError> {
        let Self { phase, fct_us, slowdown, .. } = self;
        let (fct_us, slowdown) = (fct_us.completion_times()?, slowdown.distribution()?);
        Ok(Phase { fct_us, slowdown, ..phase })
    }
}

/// Between the first and the last of the samples in a phase.
fn goodput_within(placed: &[(Time, u64)], from: Time, to: Time) -> Option<f64> {
    let mut samples = placed.iter().filter(|(at, _)| from <= *at && *at <= to);
    let &(first, before) = samples.next()?;
    let &(last, after) = samples.next_back().unwrap_or(&(first, before));
    goodput(after - before, Window { from: first, to: last })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold_phases(
        rows: &[FlowRow],
        changes: &[(Time, &str)],
        placed: &[(Time, u64)],
        end: Time,
    ) -> Vec<Phase> {
        let mut fold = PhaseFold::new(changes, placed, end, None);
        rows.iter().for_each(|row| fold.add(row).unwrap());
        fold.finish().unwrap()
    }

    const US: u64 = 1_000_000;

    fn message(start_us: u64, fct_us: Option<u64>) -> FlowRow {
        let start = Time(start_us * US);
        FlowRow {
            size: Some(1000),
            start,
            finish: fct_us.map(|us| start + Dur::from_us(us)),
            ideal: Dur::from_us(1),
            measured: true,
            ..FlowRow::default()
        }
    }

    #[test]
    fn by_hand() {
        let rows = [
            message(1, Some(2)),
            message(9, Some(4)), // hit by the fault
            message(10, Some(30)),
            message(19, None),
            FlowRow { measured: false, ..message(15, Some(1)) },
            message(20, Some(3)),
        ];
        let changes = [(10, "down"), (20, "up"), (90, "never")].map(|(us, w)| (Time(us * US), w));
        let placed = [(0, 0), (5, 0), (10, 12_500), (15, 12_500), (40, 50_000)];
        let placed = placed.map(|(us, bytes)| (Time(us * US), bytes));
        let phases = fold_phases(&rows, &changes, &placed, Time(50 * US));
        let spans: Vec<_> = phases.iter().map(|p| (&p.what[..], p.from_us, p.to_us)).collect();
        assert_eq!(spans, [("start", 0.0, 10.0), ("down", 10.0, 20.0), ("up", 20.0, 50.0)]);
        let counts: Vec<_> =
            phases.iter().map(|p| (p.submitted, p.carried_over, p.unfinished)).collect();
        assert_eq!(counts, [(2, 1, 0), (2, 2, 1), (1, 0, 0)]);
        let slowest: Vec<_> = phases.iter().map(|p| p.fct_us.max).collect();
        assert_eq!(slowest, [Some(4.0), Some(30.0), Some(3.0)]);
        assert_eq!(phases[0].slowdown.p50, Some(2.0));
        let goodput: Vec<_> = phases.iter().map(|p| p.goodput_gbps).collect();
        assert_eq!(goodput, [Some(10.0), Some(0.0), None]);
    }

    #[test]
    fn without_a_fault_there_are_no_phases() {
        let late = [(Time(90), "late")];
        assert_eq!(fold_phases(&[message(1, None)], &late, &[], Time(80)), []);
        let at_once = fold_phases(&[], &[(Time::ZERO, "down")], &[], Time(80));
        assert_eq!((at_once.len(), &at_once[0].what[..]), (1, "down"));
    }
}
