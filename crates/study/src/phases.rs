//! Which values hang on phases: all seeds are run with one draw of ties, clocks and jitter, so that
//! intervals are over traffic; the first seed is run again with another draw, and a value that
//! moves by more than it differs between seeds is named (specs/phases.md#3).

use metrics::{OnPhases, mean_and_interval};

use crate::figure::CurveOf;
use crate::judge::{Judge, OverSeeds};

/// A smaller share of a value is no matter, also where all seeds agree.
const LITTLE: f64 = 0.05;

type Measured = Result<OverSeeds, String>;

/// The values of a figure that hang on phases: `all` judges it over all seeds, `first` with the
/// first one, `other` with that one and other phases.
pub(crate) fn of_figure(all: &Judge<'_>, first: &Judge<'_>, other: &Judge<'_>) -> Vec<OnPhases> {
    let mut found = Vec::new();
    for row in &all.figure.rows {
        let values = [all, first, other].map(|judge| judge.measured(row));
        if let [Some(over), Some(first), Some(other)] = values {
            let seeds = all.seeds_of(row.run, &all.figure.reads_of(row)).count();
            found.extend(compared(&row.id, seeds, [over, first, other]));
        }
    }
    for curve in &all.figure.curves {
        let CurveOf::Along { y, .. } = &curve.of else { continue };
        let run = &all.figure.runs[curve.run];
        for point in curve.points(run, all.quick) {
            let values = [all, first, other].map(|judge| {
                let reads = judge.figure.reads(curve.run, y, &point);
                let value = |seed| judge.value(curve.run, y, &point, seed);
                judge.over_seeds(curve.run, &reads, value, mean_and_interval)
            });
            let what = format!("{}, {}", curve.label, run.show(&point));
            let seeds = all.seeds_of(curve.run, &all.figure.reads(curve.run, y, &point)).count();
            found.extend(compared(&what, seeds, values));
        }
    }
    found.into_iter().map(|on| OnPhases { figure: all.figure.id.clone(), ..on }).collect()
}

/// Nothing if the value of one seed moves by no more than the value of one more seed would differ
/// from the mean of `seeds` (its 95 % prediction interval, wider than that of the mean by the root
/// of their number and one), or has no interval, or moves a little.
fn compared(what: &str, seeds: usize, [all, first, other]: [Measured; 3]) -> Option<OnPhases> {
    let (value, interval) = all.ok()?;
    let (interval, shift) =
        (interval? * (seeds as f64 + 1.0).sqrt(), other.ok()?.0 - first.ok()?.0);
    (shift.abs() > interval.max(value.abs() * LITTLE)).then(|| OnPhases {
        figure: String::new(),
        what: what.to_owned(),
        value,
        interval,
        shift,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_by_more_than_seeds_differ_is_named() {
        let of = |shift: f64, interval| {
            compared("x", 3, [Ok((10.0, interval)), Ok((9.0, None)), Ok((9.0 + shift, None))])
        };
        assert_eq!(of(2.5, Some(1.0)).map(|on| (on.value, on.shift)), Some((10.0, 2.5)));
        assert_eq!(of(-2.5, Some(1.0)).map(|on| on.interval), Some(2.0));
        assert_eq!(of(2.0, Some(1.0)), None, "within what one value differs by");
        assert_eq!(of(0.4, Some(0.0)), None, "a little");
        assert_eq!(of(2.5, None), None, "one seed has no interval");
    }
}
