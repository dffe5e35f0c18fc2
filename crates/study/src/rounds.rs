//! Which seeds a run still needs: seeds are run in rounds, and a run takes part in the next one as
//! long as a row or a curve that reads it is undecided.

use std::collections::BTreeSet;

use metrics::mean_and_interval;

use crate::figure::CurveOf;
use crate::judge::{Judge, OverSeeds};
use crate::reads::Read;
use crate::row::{CauseShows, Row};

/// An interval needs two values.
pub(crate) const FEWEST_SEEDS: usize = 2;

/// Before a sweep may stop for its intervals: with fewer seeds an interval is too often narrow by
/// chance. Source: A. M. Law, "Simulation Modeling and Analysis", the sequential procedure for a
/// relative error of the mean, which begins with ten replications.
pub(crate) const FEWEST_BEFORE_STOP: usize = 10;

/// After these, how many seeds there are in the next round: a quarter more.
pub(crate) fn more_seeds(seeds: usize) -> usize {
    seeds + seeds.div_ceil(4)
}

/// Half of an interval is wide if it is more than this share of the value.
const WIDE: f64 = 0.25;

/// Whether half of a value's interval says little about the value: more than a quarter of it.
#[must_use]
pub fn is_wide(value: f64, half: f64) -> bool {
    half > value.abs() * WIDE
}

impl Judge<'_> {
    /// What rows that are undecided read.
    pub(crate) fn undecided(&self) -> BTreeSet<Read> {
        self.figure.rows.iter().flat_map(|row| self.undecided_by(row)).collect()
    }

    /// What `row` and the experiment of its cause read, as long as their intervals contain an end
    /// of the band.
    fn undecided_by(&self, row: &Row) -> Vec<Read> {
        let Some(measured) = self.measured(row) else { return Vec::new() };
        let bands: Vec<Band> = row.bands().collect();
        let decided = is_decided(&measured, row.median, &bands);
        let reads = if decided { Vec::new() } else { self.figure.reads_of(row) };
        let inside = measured.is_ok_and(|(value, _)| row.holds(value));
        let Some((cause, point)) = row
            .cause
            .as_ref()
            .filter(|_| !inside)
            .and_then(|cause| Some((cause, self.figure.point_of(row, cause, self.quick)?)))
        else {
            return reads;
        };
        let of_mean =
            |band| is_decided(&self.experiment_at(row, cause, &point), row.median, &[band]);
        let experiment_decided = match cause.shows {
            CauseShows::InBand => of_mean((row.low, row.high)),
            CauseShows::Unreachable(low, high) => of_mean((low, high)),
            // More seeds only widen it, but all are run: the page shows how wide it is.
            CauseShows::Scatter => false,
        };
        if decided && experiment_decided {
            return reads;
        }
        // Both, so that they are compared over the same seeds.
        [self.figure.reads_of(row), self.figure.reads(cause.run, &cause.formula, &point)].concat()
    }

    /// What curves read where half of the interval is more than `share` of the value. Another seed
    /// does not help where there is no value.
    pub(crate) fn wider_than(&self, share: f64) -> BTreeSet<Read> {
        let mut reads = BTreeSet::new();
        self.each_point(&mut |of, measured| {
            let half = |&(value, half): &(f64, Option<f64>)| {
                half.is_none_or(|half| half > share * value.abs())
            };
            if measured.as_ref().is_ok_and(half) {
                reads.extend(of);
            }
        });
        reads
    }

    /// What curves read where their intervals are wide.
    pub(crate) fn wide_points(&self) -> BTreeSet<Read> {
        let mut reads = BTreeSet::new();
        self.each_point(&mut |of, measured| {
            if !measured.is_ok_and(|(value, half)| half.is_some_and(|h| !is_wide(value, h))) {
                reads.extend(of);
            }
        });
        reads
    }

    /// What each point of a curve reads, and its value over seeds.
    fn each_point(&self, see: &mut dyn FnMut(Vec<Read>, Result<OverSeeds, String>)) {
        for curve in &self.figure.curves {
            let CurveOf::Along { y, .. } = &curve.of else { continue };
            for point in curve.points(&self.figure.runs[curve.run], self.quick) {
                let of = self.figure.reads(curve.run, y, &point);
                let value = |seed| self.value(curve.run, y, &point, seed);
                let measured = self.over_seeds(curve.run, &of, value, mean_and_interval);
                see(of, measured);
            }
        }
    }
}

/// Lower and upper end.
type Band = (Option<f64>, Option<f64>);

/// Whether another seed would hardly change the verdict: the whole interval is within a band, or
/// outside all of them. A median has no interval. One of no width says nothing: of counts of what
/// is rare, and of places on an axis, two are often equal.
fn is_decided(measured: &Result<(f64, Option<f64>), String>, median: bool, bands: &[Band]) -> bool {
    let Ok((value, Some(half))) = measured else { return false };
    let (least, most) = (value - half, value + half);
    let is_inside = |&(low, high): &Band| {
        low.is_none_or(|low| least >= low) && high.is_none_or(|high| most <= high)
    };
    let is_outside = |&(low, high): &Band| {
        low.is_some_and(|low| most < low) || high.is_some_and(|high| least > high)
    };
    !median && *half > 0.0 && (bands.iter().any(is_inside) || bands.iter().all(is_outside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decided_is_what_no_end_of_a_band_cuts() {
        let band = (Some(9.0), Some(11.0));
        let at = |value, half| is_decided(&Ok((value, Some(half))), false, &[band]);
        assert!(at(10.0, 1.0) && at(8.0, 0.9) && at(12.0, 0.5));
        assert!(!at(10.0, 1.1) && !at(8.0, 1.0) && !at(11.5, 0.6));
        assert!(!at(10.0, 0.0), "two equal values");
        let either = [band, (Some(19.0), Some(21.0))];
        let at_either = |value, half| is_decided(&Ok((value, Some(half))), false, &either);
        assert!(at_either(20.0, 0.5) && at_either(15.0, 0.5) && !at_either(18.5, 1.0));
        assert!(!is_decided(&Ok((10.0, None)), false, &[band]), "one seed");
        assert!(!is_decided(&Ok((10.0, Some(0.1))), true, &[band]), "a median");
        assert!(!is_decided(&Err("failed".to_owned()), false, &[band]));
        assert!(is_decided(&Ok((10.0, Some(99.0))), false, &[(None, None)]));
    }
}
