//! Which seeds a run still needs: seeds are run in rounds, and a run takes part in the next one as
//! long as a row or a curve that reads it is undecided.

use std::collections::BTreeSet;

use metrics::mean_and_interval;

use crate::figure::CurveOf;
use crate::formula::Formula;
use crate::judge::Judge;
use crate::row::Row;
use crate::run::Point;

/// An interval needs two values.
pub(crate) const FEWEST_SEEDS: usize = 2;

/// Half of an interval is wide if it is more than this share of the value.
const WIDE: f64 = 0.25;

/// Whether half of a value's interval says little about the value: more than a quarter of it.
#[must_use]
pub fn is_wide(value: f64, half: f64) -> bool {
    half > value.abs() * WIDE
}

/// A point of the sweep of a run: by index of the run.
pub(crate) type Read = (usize, Point);

impl Judge<'_> {
    /// What rows and curves that are undecided read.
    pub(crate) fn undecided(&self) -> BTreeSet<Read> {
        let rows = self.figure.rows.iter().flat_map(|row| self.undecided_by(row));
        rows.chain(self.wide_points()).collect()
    }

    /// What `row` and the experiment of its cause read, as long as their intervals contain an end
    /// of the band.
    fn undecided_by(&self, row: &Row) -> Vec<Read> {
        let Some(measured) = self.measured(row) else { return Vec::new() };
        let band = (row.low, row.high);
        let decided = is_decided(&measured, row.median, band);
        let reads = if decided { Vec::new() } else { self.reads_of(row) };
        let inside = measured.is_ok_and(|(value, _)| row.holds(value));
        let Some((cause, point)) = row
            .cause
            .as_ref()
            .filter(|_| !inside)
            .and_then(|cause| Some((cause, self.point_of(row, cause)?)))
        else {
            return reads;
        };
        let experiment = self.experiment_at(row, cause, &point);
        if decided && is_decided(&experiment, row.median, cause.unreachable.unwrap_or(band)) {
            return reads;
        }
        // Both, so that they are compared over the same seeds.
        [self.reads_of(row), self.reads(cause.run, &cause.formula, &point)].concat()
    }

    /// What curves read where their intervals are wide.
    fn wide_points(&self) -> Vec<Read> {
        let mut reads = Vec::new();
        for curve in &self.figure.curves {
            let CurveOf::Along { y, .. } = &curve.of else { continue };
            for point in curve.points(&self.figure.runs[curve.run], self.quick) {
                let of = self.reads(curve.run, y, &point);
                let value = |seed| self.value(curve.run, y, &point, seed);
                let measured = self.over_seeds(curve.run, &of, value, mean_and_interval);
                if !measured.is_ok_and(|(value, half)| half.is_some_and(|h| !is_wide(value, h))) {
                    reads.extend(of);
                }
            }
        }
        reads
    }

    /// What a row reads.
    pub(crate) fn reads_of(&self, row: &Row) -> Vec<Read> {
        let points = row.points().into_iter();
        points.flat_map(|(run, point)| self.reads(run, &row.formula, point)).collect()
    }

    /// The runs that `formula` reads at `point` of the sweep of `run`, each at its own point.
    pub(crate) fn reads(&self, run: usize, formula: &Formula, point: &Point) -> Vec<Read> {
        let own = &self.figure.runs[run];
        let others = formula.names().filter(|name| own.axis(name).is_none()).map(|name| {
            let other = self.figure.distance(name).map(|(other, _)| other);
            other.unwrap_or_else(|| self.figure.resolve(run, name).0)
        });
        let all: BTreeSet<usize> = others.chain([run]).collect();
        let at = |index: usize| Some((index, self.figure.runs[index].same_point(own, point)?));
        all.into_iter().filter_map(at).collect()
    }
}

/// Whether another seed would hardly change the verdict: the whole interval is within the band, or
/// outside it. A median has no interval. One of no width says nothing: of counts of what is rare,
/// and of places on an axis, two are often equal.
fn is_decided(
    measured: &Result<(f64, Option<f64>), String>,
    median: bool,
    (low, high): (Option<f64>, Option<f64>),
) -> bool {
    let Ok((value, Some(half))) = measured else { return false };
    let (least, most) = (value - half, value + half);
    let inside = low.is_none_or(|low| least >= low) && high.is_none_or(|high| most <= high);
    let outside = low.is_some_and(|low| most < low) || high.is_some_and(|high| least > high);
    !median && *half > 0.0 && (inside || outside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decided_is_what_no_end_of_the_band_cuts() {
        let band = (Some(9.0), Some(11.0));
        let at = |value, half| is_decided(&Ok((value, Some(half))), false, band);
        assert!(at(10.0, 1.0) && at(8.0, 0.9) && at(12.0, 0.5));
        assert!(!at(10.0, 1.1) && !at(8.0, 1.0) && !at(11.5, 0.6));
        assert!(!at(10.0, 0.0), "two equal values");
        assert!(!is_decided(&Ok((10.0, None)), false, band), "one seed");
        assert!(!is_decided(&Ok((10.0, Some(0.1))), true, band), "a median");
        assert!(!is_decided(&Err("failed".to_owned()), false, band));
        assert!(is_decided(&Ok((10.0, Some(99.0))), false, (None, None)));
    }
}
