//! [`Judge`]: values of rows and curves from what the runs measured, and verdicts.

use metrics::{
    CurvePoint, Estimate, Experiment, FigureRow, Origin, Plot, RowResult, Shows, Verdict,
    mean_and_interval,
};

use crate::figure::{Curve, CurveOf, Figure};
use crate::formula::Formula;
use crate::metric::ks_distance;
use crate::reads::Read;
use crate::reproduce::{AllRan, Ran};
use crate::row::{Along, Cause, CauseShows, Row};
use crate::run::Point;

/// How many times as wide as the row's band the range of single seeds may be. The range of ten
/// normal values is 3.1 standard deviations: within two bands, more than half of the runs of a
/// model whose mean is right are in the band. Beyond that nearly any value is among the seeds.
const WIDEST_SCATTER: f64 = 2.0;

/// A figure and what its runs measured.
pub(crate) struct Judge<'f> {
    pub(crate) study: &'f str,
    pub(crate) figure: &'f Figure,
    pub(crate) quick: bool,
    /// How many seeds count, at most.
    pub(crate) seeds: usize,
    pub(crate) ran: &'f AllRan,
}

impl Judge<'_> {
    /// The row with its value and its verdict; nothing if the quick form leaves it out.
    pub(crate) fn row(&self, row: &Row) -> Option<FigureRow> {
        let (measured, interval, problem) = match self.measured(row)? {
            Ok((value, interval)) => (Some(value), interval, None),
            Err(problem) => (None, None, Some(problem)),
        };
        let out = !measured.is_some_and(|value| row.holds(value));
        let note = row.note.as_ref().filter(|_| out);
        let cause = row.cause.as_ref().filter(|_| out);
        let experiment = cause.and_then(|cause| self.experiment(row, cause));
        let tested = measured.is_some() && experiment.as_ref().is_some_and(Experiment::confirms);
        let published = row.judged_by(measured);
        let result = RowResult {
            study: self.study.to_owned(),
            figure: self.figure.id.clone(),
            row: row.id.clone(),
            origin: row.origin,
            metric: row.formula.text.clone(),
            unit: row.unit.clone(),
            target: published.target,
            low: published.low,
            high: published.high,
            measured,
            verdict: verdict(row.origin, out, tested),
            source: published.source,
            evidence: note.map_or_else(|| self.command(row), |note| note.link.clone()),
        };
        Some(FigureRow {
            result,
            interval,
            why: row.why.clone(),
            headline: row.headline,
            note: note.map(|note| note.text.clone()),
            experiment,
            problem,
        })
    }

    /// The row's value over seeds, and half of its interval; nothing if the quick form leaves the
    /// row out.
    pub(crate) fn measured(&self, row: &Row) -> Option<Result<OverSeeds, String>> {
        let is_run = |(run, point): (usize, &Point)| {
            self.figure.runs[run].points(self.quick).contains(point)
        };
        if !row.points().into_iter().all(is_run) {
            return None;
        }
        let value = |seed| {
            let Some(onset) = &row.onset else {
                return self.value(row.run, &row.formula, &row.point, seed);
            };
            let place = |along| self.first_below(&row.formula, onset.below, along, seed);
            match &onset.over {
                None => place(&onset.own),
                Some(other) => Ok(place(&onset.own)? / place(other)?),
            }
        };
        Some(self.over_seeds(row.run, &self.figure.reads_of(row), value, statistic(row)))
    }

    /// What the run of `cause` says; nothing if the quick form leaves it out.
    fn experiment(&self, row: &Row, cause: &Cause) -> Option<Experiment> {
        let point = self.figure.point_of(row, cause, self.quick)?;
        let mean = || self.experiment_at(row, cause, &point).ok().map(|(value, _)| value);
        let mut widest = None;
        let (shows, measured, (low, high)) = match cause.shows {
            CauseShows::InBand => (Shows::InBand, mean(), (row.low, row.high)),
            CauseShows::Unreachable(low, high) => (Shows::Unreachable, mean(), (low, high)),
            CauseShows::Scatter => {
                let (least, most) = self.scatter(cause, &point)?;
                widest = row.high.zip(row.low).map(|(high, low)| WIDEST_SCATTER * (high - low));
                (Shows::Scatter, row.target, (Some(least), Some(most)))
            }
        };
        let (run, metric) = (self.figure.runs[cause.run].label(&point), cause.formula.text.clone());
        Some(Experiment { run, metric, shows, measured, low, high, widest })
    }

    /// The least and the greatest value of single seeds of the run of `cause`; nothing if a value
    /// is missing.
    fn scatter(&self, cause: &Cause, point: &Point) -> Option<(f64, f64)> {
        let reads = self.figure.reads(cause.run, &cause.formula, point);
        let value = |seed| self.value(cause.run, &cause.formula, point, seed);
        let values = self.seeds_of(cause.run, &reads).map(value).collect::<Result<Vec<_>, _>>();
        let mut values = values.ok()?;
        values.sort_unstable_by(f64::total_cmp);
        Some((*values.first()?, *values.last()?))
    }

    /// What the run of `cause` measured at `point` of its sweep.
    pub(crate) fn experiment_at(
        &self,
        row: &Row,
        cause: &Cause,
        point: &Point,
    ) -> Result<OverSeeds, String> {
        let value = |seed| self.value(cause.run, &cause.formula, point, seed);
        let reads = self.figure.reads(cause.run, &cause.formula, point);
        self.over_seeds(cause.run, &reads, value, statistic(row))
    }

    /// The command that repeats the row's run with its first seed.
    fn command(&self, row: &Row) -> String {
        let seed = self.figure.runs[row.run].seeds(self.quick).first();
        let ran = seed.and_then(|&seed| self.ran.get(&(row.run, row.point.clone(), seed)));
        ran.map(|ran| ran.record.command.clone()).unwrap_or_default()
    }

    /// Our part of a curve, and the publication's.
    pub(crate) fn curve(&self, curve: &Curve) -> metrics::Curve {
        let points = curve.points(&self.figure.runs[curve.run], self.quick);
        let mut missing = Vec::new();
        let (measured, drawn) = match &curve.of {
            CurveOf::Along { axis, y } => {
                let mut measured = Vec::new();
                for (x, point) in
                    points.iter().filter_map(|p| Some((self.x(curve.run, *axis, p)?, p)))
                {
                    match self.mean(curve.run, y, point) {
                        Ok(Estimate { mean, interval, seeds }) => {
                            let seeds = Some(seeds);
                            measured.push(CurvePoint { x, y: mean, interval, seeds });
                        }
                        Err(problem) => missing.push((x, problem)),
                    }
                }
                (measured, Plot::Points)
            }
            CurveOf::Distribution(name) => {
                (self.distribution(curve.run, name, &points), Plot::Line)
            }
            CurveOf::Scatter(name) => (self.of_first_seed(curve.run, name, &points), Plot::Dots),
            CurveOf::BySize(name) => (self.of_first_seed(curve.run, name, &points), Plot::Line),
            CurveOf::OverTime(name) => (self.of_first_seed(curve.run, name, &points), Plot::Line),
        };
        let (label, source) = (curve.label.clone(), curve.source.clone());
        let published = curve.published.clone();
        metrics::Curve { label, measured, missing, published, source, drawn }
    }

    /// The mean of `formula` at `point` of the sweep of `run`, over the seeds with which all that
    /// it reads was run without an error.
    fn mean(&self, run: usize, formula: &Formula, point: &Point) -> Result<Estimate, String> {
        let reads = self.figure.reads(run, formula, point);
        let has_failed = |seed: &u64| {
            let ran = |(index, point): &Read| self.ran.get(&(*index, point.clone(), *seed));
            reads.iter().filter_map(ran).any(|ran| ran.record.error.is_some())
        };
        let (failed, whole): (Vec<u64>, Vec<u64>) =
            self.seeds_of(run, &reads).partition(has_failed);
        // With failed ones alone there is a reason to be given.
        let seeds = if whole.is_empty() { failed } else { whole };
        let values = seeds.into_iter().map(|seed| self.value(run, formula, point, seed));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        Estimate::of(&values).ok_or_else(|| "there is no seed".to_owned())
    }

    /// Where `point` of the sweep of `run` is along `axis`.
    fn x(&self, run: usize, axis: usize, point: &Point) -> Option<f64> {
        self.figure.runs[run].axes.get(axis)?.values.get(*point.get(axis)?)?.number
    }

    /// The distribution called `name`, over all points, with the seeds with which each was run
    /// without an error: no point has more seeds than another.
    fn distribution(&self, run: usize, name: &str, points: &[Point]) -> Vec<CurvePoint> {
        let mut values: Vec<f64> = Vec::new();
        for &seed in self.figure.runs[run].seeds(self.quick) {
            let ran = points.iter().map(|point| self.ran.get(&(run, point.clone(), seed)));
            let whole = ran.map(|ran| ran.filter(|ran| ran.record.error.is_none()));
            let Some(all) = whole.collect::<Option<Vec<_>>>() else { continue };
            values.extend(all.iter().filter_map(|ran| ran.distributions.get(name)).flatten());
        }
        values.sort_unstable_by(f64::total_cmp);
        let point = |(x, y)| CurvePoint { x, y, interval: None, seeds: None };
        metrics::cdf(&values).into_iter().map(point).collect()
    }

    /// The points called `name`, of the first seed: more would hide each other.
    fn of_first_seed(&self, run: usize, name: &str, points: &[Point]) -> Vec<CurvePoint> {
        let first = self.figure.runs[run].seeds(self.quick).first();
        let ran = points.iter().zip(first).filter_map(|(p, &s)| self.ran.get(&(run, p.clone(), s)));
        let dots = ran.filter_map(|ran| ran.drawn.get(name)).flatten();
        dots.map(|&(x, y)| CurvePoint { x, y, interval: None, seeds: None }).collect()
    }

    /// A statistic over the seeds with which all that `reads` names was run, and half of its 95 %
    /// interval. Each seed gives a value of its own, so that a ratio of two runs compares equal
    /// traffic.
    pub(crate) fn over_seeds(
        &self,
        run: usize,
        reads: &[Read],
        value: impl Fn(u64) -> Result<f64, String>,
        statistic: Statistic,
    ) -> Result<OverSeeds, String> {
        let values = self.seeds_of(run, reads).map(value).collect::<Result<Vec<_>, _>>()?;
        statistic(&values).ok_or_else(|| "there is no seed".to_owned())
    }

    /// The seeds of `run` with which all that `reads` names was run.
    pub(crate) fn seeds_of(&self, run: usize, reads: &[Read]) -> impl Iterator<Item = u64> {
        let were_run = |seed: &u64| {
            let ran = |(index, point): &Read| (*index, point.clone(), *seed);
            reads.iter().all(|read| self.ran.contains_key(&ran(read)))
        };
        let seeds = self.figure.runs[run].seeds(self.quick).iter().copied();
        seeds.take(self.seeds).filter(were_run)
    }

    /// Where `formula` is first below `bound`.
    fn first_below(
        &self,
        formula: &Formula,
        bound: f64,
        along: &Along,
        seed: u64,
    ) -> Result<f64, String> {
        for (x, point) in &along.points {
            if self.value(along.run, formula, point, seed)? < bound {
                return Ok(*x);
            }
        }
        Err(format!("{}: never below {bound}", self.figure.runs[along.run].id))
    }

    /// The value of `formula` at `point` of the sweep of `run`, with one seed.
    pub(crate) fn value(
        &self,
        run: usize,
        formula: &Formula,
        point: &Point,
        seed: u64,
    ) -> Result<f64, String> {
        let own = &self.figure.runs[run];
        formula.eval(|name| {
            if let Some(axis) = own.axis(name) {
                let number = point.get(axis).and_then(|&i| own.axes[axis].values.get(i)?.number);
                return number.ok_or_else(|| format!("`{name}` is not a number"));
            }
            if let Some((other, of)) = self.figure.distance(name) {
                let [a, b] = [run, other].map(|index| self.ran(index, run, point, seed));
                let [a, b] = [a?, b?].map(|ran| ran.distributions.get(of));
                let distance = a.zip(b).and_then(|(a, b)| distance(a, b));
                return distance.ok_or_else(|| format!("`{name}` has no value, seed {seed}"));
            }
            let (index, metric) = self.figure.resolve(run, name);
            let ran = self.ran(index, run, point, seed)?;
            let label = format!("{}, seed {seed}", self.figure.runs[index].id);
            metric_of(ran, metric).map_err(|why| format!("{label}: {why}"))
        })
    }

    /// What the run `index` measured at `point` of the sweep of `run`, with one seed.
    fn ran(&self, index: usize, run: usize, point: &Point, seed: u64) -> Result<&Ran, String> {
        let other = &self.figure.runs[index];
        let there = other.same_point(&self.figure.runs[run], point);
        let ran = there.and_then(|at| self.ran.get(&(index, at, seed)));
        ran.ok_or_else(|| format!("{}, seed {seed} was not run", other.id))
    }
}

/// The distance of Kolmogorov and Smirnov between two samples, both ascending.
fn distance(a: &[f64], b: &[f64]) -> Option<f64> {
    let weighted: Vec<(f64, f64)> = b.iter().map(|value| (*value, 1.0)).collect();
    ks_distance(a, &weighted)
}

/// The verdict on a row that is `out` of its band, or whose cause was `tested`.
fn verdict(origin: Origin, out: bool, tested: bool) -> Verdict {
    match (origin, out) {
        (Origin::Published, false) => Verdict::InBand,
        (Origin::Published, true) if tested => Verdict::CauseTested,
        (Origin::Published, true) => Verdict::NotReproduced,
        (Origin::Own | Origin::Copy, false) => Verdict::Holds,
        (Origin::Own | Origin::Copy, true) => Verdict::DoesNotHold,
    }
}

fn metric_of(ran: &Ran, name: &str) -> Result<f64, String> {
    if let Some(error) = &ran.record.error {
        return Err(error.clone());
    }
    ran.metrics.get(name).copied().ok_or_else(|| format!("`{name}` has no value"))
}

/// A value over seeds, and half of its 95 % interval, if it has one.
pub(crate) type OverSeeds = (f64, Option<f64>);

/// A value of several; nothing of nothing.
type Statistic = fn(&[f64]) -> Option<OverSeeds>;

/// The one of the values of `row`.
fn statistic(row: &Row) -> Statistic {
    if row.median { median } else { mean_and_interval }
}

/// The median, which has no interval here.
fn median(values: &[f64]) -> Option<OverSeeds> {
    let mut ascending = values.to_vec();
    ascending.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(((ascending[low] + ascending[high]) / 2.0, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_by_hand() {
        assert_eq!(median(&[3.0, 9.0, 1.0]), Some((3.0, None)));
        assert_eq!(median(&[4.0, 1.0, 9.0, 2.0]), Some((3.0, None)));
        assert_eq!(median(&[]), None);
    }
}
