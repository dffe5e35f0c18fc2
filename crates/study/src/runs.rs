//! Every run of a plan as a row of `runs.parquet`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metrics::{RunRow, RunTable};

use crate::formula::Formula;
use crate::job::Jobs;
use crate::judge::Judge;
use crate::plan::Place;
use crate::reproduce::{AllRan, Ran};
use crate::run::{Axis, VARIANT};

/// Numbers of a run that are no results of it.
const NO_METRICS: [&str; 3] = ["seed", "schema", "wall_s"];

/// A row for each run of the only figure of the plan of `jobs`, with its metrics and the values of
/// `formulas`.
pub(crate) fn table(
    jobs: &Jobs<'_>,
    judge: &Judge<'_>,
    formulas: &[Arc<Formula>],
) -> (RunTable, Vec<RunRow>) {
    let axes: &[Axis] = judge.figure.runs.first().map_or(&[], |run| &run.axes);
    let is_number = |axis: &&Axis| axis.values.iter().all(|value| value.number.is_some());
    let (numbers, texts): (Vec<&Axis>, Vec<&Axis>) = axes.iter().partition(is_number);
    let names = |axes: &[&Axis]| axes.iter().map(|axis| axis.name.clone()).collect::<Vec<_>>();
    let mut formulas = formulas.to_vec();
    // A column has a name of its own.
    formulas.sort_by(|a, b| a.text.cmp(&b.text));
    formulas.dedup_by(|a, b| a.text == b.text);
    let plain = metrics_of(judge.ran, &formulas);
    let all = formulas.iter().map(|formula| formula.text.clone()).chain(plain.iter().cloned());
    let mut table =
        RunTable { texts: names(&texts), numbers: names(&numbers), metrics: all.collect() };
    // Of a comparison: the runs themselves.
    table.texts.extend(axes.is_empty().then(|| VARIANT.to_owned()));
    let mut rows = Vec::new();
    for (number, job) in jobs.plan().jobs.iter().enumerate() {
        for Place { index, run, point, .. } in &job.places {
            let Some(ran) = judge.ran.get(&(*index, point.clone(), job.seed)) else { continue };
            let at = |name: &String| {
                let axis = run.axis(name)?;
                run.axes[axis].values.get(*point.get(axis)?)
            };
            let text = |axis: &String| at(axis).map_or(&run.id, |value| &value.text).clone();
            let of_formula = |f: &Arc<Formula>| judge.value(*index, f, point, job.seed).ok();
            let of_metric = |name: &String| ran.metrics.get(name).copied();
            let values = formulas.iter().map(of_formula).chain(plain.iter().map(of_metric));
            rows.push(RunRow {
                job: jobs.name(number),
                texts: table.texts.iter().map(text).collect(),
                numbers: table.numbers.iter().map(|axis| at(axis)?.number).collect(),
                seed: job.seed,
                digest: ran.record.digest.clone(),
                error: ran.record.error.clone(),
                values: values.collect(),
            });
        }
    }
    (table, rows)
}

/// The names of all metrics that a run has and that are no formula.
fn metrics_of(ran: &AllRan, formulas: &[Arc<Formula>]) -> Vec<String> {
    let names: BTreeSet<&String> = ran.values().flat_map(|ran: &Ran| ran.metrics.keys()).collect();
    let is_wanted = |name: &&&String| {
        !NO_METRICS.contains(&name.as_str()) && !formulas.iter().any(|f| f.text == ***name)
    };
    names.iter().filter(is_wanted).map(|name| (*name).clone()).collect()
}

/// Warnings, each with whose it is: those that differ in numbers are one, the first, with all whose
/// it is.
fn by_kind<'w, O>(all: impl Iterator<Item = (O, &'w String)>) -> Vec<(&'w str, Vec<O>)> {
    let mut kinds: BTreeMap<String, (&str, Vec<O>)> = BTreeMap::new();
    for (whose, warning) in all {
        let kind = warning.replace(|c: char| c.is_ascii_digit() || c == '.', "");
        kinds.entry(kind).or_insert_with(|| (warning, Vec::new())).1.push(whose);
    }
    kinds.into_values().collect()
}

/// The warnings of points, by what these are called, each once, with at how many points it is.
/// Warnings that differ in numbers are one.
pub(crate) fn warnings_of_points(of_points: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let all = of_points.len();
    let each = of_points.iter().flat_map(|(point, of)| of.iter().map(move |one| (point, one)));
    let shown = |(warning, mut points): (&str, Vec<&String>)| {
        points.dedup();
        match points[..] {
            [only] => format!("{only}: {warning}"),
            _ => format!("{} of {all} points, for example {}: {warning}", points.len(), points[0]),
        }
    };
    by_kind(each).into_iter().map(shown).collect()
}

/// The warnings of the seeds of what is called `label`, each once, with how many seeds it is of.
/// Warnings that differ in numbers are one.
pub(crate) fn warnings(label: &str, of_seeds: &[Vec<String>]) -> Vec<String> {
    let all = of_seeds.len();
    let each = of_seeds.iter().flatten().map(|warning| ((), warning));
    let shown = |(warning, whose): (&str, Vec<()>)| match whose.len() {
        1 if all == 1 => format!("{label}: {warning}"),
        n => format!("{label}, {n} of {all} seeds, for example: {warning}"),
    };
    by_kind(each).into_iter().map(shown).collect()
}
