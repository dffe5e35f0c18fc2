//! [`fold_phases`]: the run as its fault script divides it.

use serde::{Deserialize, Serialize};
use units::Time;

use crate::flow_stats::{completion_times, distribution, goodput};
use crate::{Distribution, FctUs, FlowRow, Window};

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

/// Divides a run that ended at `end` where `changes` say. Each message belongs to the phase in
/// which it was submitted. `placed` are samples: when, and bytes placed since the start. No phases
/// without changes before the end.
#[must_use]
pub fn fold_phases(
    rows: &[FlowRow],
    changes: &[(Time, &str)],
    placed: &[(Time, u64)],
    end: Time,
) -> Vec<Phase> {
    let mut begins: Vec<(Time, &str)> =
        changes.iter().filter(|(at, _)| *at < end).copied().collect();
    if begins.is_empty() {
        return Vec::new();
    }
    if begins.first().is_some_and(|(at, _)| *at > Time::ZERO) {
        begins.insert(0, (Time::ZERO, "start"));
    }
    let ends = begins.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let phases = begins.iter().zip(ends);
    phases.map(|(&(from, what), to)| phase(rows, placed, what, from, to)).collect()
}

fn phase(rows: &[FlowRow], placed: &[(Time, u64)], what: &str, from: Time, to: Time) -> Phase {
    let inside = |r: &&FlowRow| r.measured && from <= r.start && r.start < to;
    let submitted: Vec<&FlowRow> = rows.iter().filter(inside).collect();
    let done: Vec<&FlowRow> = submitted.iter().filter(|r| r.finish.is_some()).copied().collect();
    let bounded = || submitted.iter().filter(|r| r.size.is_some());
    let samples: Vec<&(Time, u64)> =
        placed.iter().filter(|(at, _)| from <= *at && *at <= to).collect();
    let goodput_gbps = match (samples.first(), samples.last()) {
        (Some(&&(from, before)), Some(&&(to, after))) => {
            goodput(after - before, Window { from, to })
        }
        _ => None,
    };
    Phase {
        what: what.to_owned(),
        from_us: from.as_us_f64(),
        to_us: to.as_us_f64(),
        submitted: submitted.len() as u64,
        carried_over: bounded().filter(|r| r.finish.is_none_or(|t| t > to)).count() as u64,
        unfinished: submitted.iter().filter(|r| r.is_unfinished()).count() as u64,
        failed: submitted.iter().filter(|r| r.has_failed()).count() as u64,
        fct_us: completion_times(&done),
        slowdown: distribution(done.iter().filter_map(|r| r.slowdown()).collect()),
        goodput_gbps,
    }
}

#[cfg(test)]
mod tests {
    use units::Dur;

    use super::*;

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
