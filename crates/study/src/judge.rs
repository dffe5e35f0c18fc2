//! Values of rows and curves from what the runs measured, and verdicts.

use metrics::{CurvePoint, FigureRow, RowResult, Verdict, mean_and_interval};

use crate::figure::{Curve, CurveOf, Figure};
use crate::formula::Formula;
use crate::plan::Plan;
use crate::reproduce::{AllRan, Ran};
use crate::row::Row;
use crate::run::Point;

/// The verdict on `value`, or on the lack of one.
fn verdict(row: &Row, value: Option<f64>) -> Verdict {
    match value {
        Some(value) if row.holds(value) => Verdict::Pass,
        Some(_) if row.explained.is_some() => Verdict::Explained,
        _ => Verdict::Fail,
    }
}

/// The row with its value and its verdict; nothing if the quick form leaves it out.
pub(crate) fn row(plan: &Plan<'_>, figure: &Figure, row: &Row, ran: &AllRan) -> Option<FigureRow> {
    let run = &figure.runs[row.run];
    if !run.points(plan.quick).contains(&row.point) {
        return None;
    }
    let seeds = run.seeds(plan.quick);
    let values = over_seeds(figure, row.run, &row.formula, &row.point, seeds, ran);
    let (measured, interval, problem) = match values {
        Ok((mean, interval)) => (Some(mean), interval, None),
        Err(problem) => (None, None, Some(problem)),
    };
    let verdict = verdict(row, measured);
    let first = ran.get(&(row.run, row.point.clone(), seeds.first().copied().unwrap_or_default()));
    let command = first.map(|ran| ran.record.command.clone()).unwrap_or_default();
    let note = row.explained.as_ref().filter(|_| verdict == Verdict::Explained);
    let evidence = note.map_or(command, |note| note.link.clone());
    let result = RowResult {
        study: plan.study.name.clone(),
        figure: figure.id.clone(),
        row: row.id.clone(),
        metric: row.formula.text.clone(),
        unit: row.unit.clone(),
        target: row.target,
        low: row.low,
        high: row.high,
        measured,
        verdict,
        source: row.source.clone(),
        evidence,
    };
    let (why, note) = (row.why.clone(), note.map(|note| note.text.clone()));
    Some(FigureRow { result, interval, why, note, problem })
}

/// Our part of a curve, and the publication's.
pub(crate) fn curve(figure: &Figure, curve: &Curve, quick: bool, ran: &AllRan) -> metrics::Curve {
    let run = &figure.runs[curve.run];
    let points = curve.points(run, quick);
    let seeds = run.seeds(quick);
    let (measured, distribution) = match &curve.of {
        CurveOf::Along { axis, y } => {
            let point = |point: &Point| {
                let value = run.axes.get(*axis)?.values.get(*point.get(*axis)?)?;
                let y = over_seeds(figure, curve.run, y, point, seeds, ran).ok()?;
                Some(CurvePoint { x: value.number?, y: y.0, interval: y.1 })
            };
            (points.iter().filter_map(point).collect(), false)
        }
        CurveOf::Distribution(name) => {
            let of = |point: &Point, seed: u64| {
                ran.get(&(curve.run, point.clone(), seed))?.distributions.get(name)
            };
            let all =
                points.iter().flat_map(|point| seeds.iter().filter_map(move |&s| of(point, s)));
            let mut values: Vec<f64> = all.flatten().copied().collect();
            values.sort_unstable_by(f64::total_cmp);
            let point = |(x, y)| CurvePoint { x, y, interval: None };
            (metrics::cdf(&values).into_iter().map(point).collect(), true)
        }
    };
    let (label, source) = (curve.label.clone(), curve.source.clone());
    metrics::Curve { label, measured, published: curve.published.clone(), source, distribution }
}

/// The mean over `seeds`, and half of its 95 % interval. Each seed gives a value of its own, so
/// that a ratio of two runs compares equal traffic.
fn over_seeds(
    figure: &Figure,
    run: usize,
    formula: &Formula,
    point: &Point,
    seeds: &[u64],
    ran: &AllRan,
) -> Result<(f64, Option<f64>), String> {
    let value = |&seed: &u64| value(figure, run, formula, point, seed, ran);
    let values: Vec<f64> = seeds.iter().map(value).collect::<Result<_, _>>()?;
    mean_and_interval(&values).ok_or_else(|| "there is no seed".to_owned())
}

/// The value of `formula` at `point` of the sweep of `run`, with one seed.
fn value(
    figure: &Figure,
    run: usize,
    formula: &Formula,
    point: &Point,
    seed: u64,
    ran: &AllRan,
) -> Result<f64, String> {
    let own = &figure.runs[run];
    formula.eval(|name| {
        if let Some(axis) = own.axis(name) {
            let number = point.get(axis).and_then(|&i| own.axes[axis].values.get(i)?.number);
            return number.ok_or_else(|| format!("`{name}` is not a number"));
        }
        let (index, metric) = figure.resolve(run, name);
        let other = &figure.runs[index];
        let there = other.same_point(own, point).and_then(|at| ran.get(&(index, at, seed)));
        let label = format!("{}, seed {seed}", other.id);
        let ran = there.ok_or_else(|| format!("{label} was not run"))?;
        metric_of(ran, metric).map_err(|why| format!("{label}: {why}"))
    })
}

fn metric_of(ran: &Ran, name: &str) -> Result<f64, String> {
    if let Some(error) = &ran.record.error {
        return Err(error.clone());
    }
    ran.metrics.get(name).copied().ok_or_else(|| format!("`{name}` has no value"))
}
