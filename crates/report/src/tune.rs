//! The page of a search for the best values of keys.

use maud::{Markup, html};
use metrics::{Estimate, Plot, Stands, TunePoint, TuneResults, named};

use crate::ReportError;
use crate::axis::Axis;
use crate::chart::Chart;
use crate::number::{estimate, number};
use crate::page::{code, figure, shell, table, warnings};

/// What points stand for, in the order of the legend, and what the legend calls them.
const GROUPS: [(Stands, &str); 5] = [
    (Stands::Best, "best"),
    (Stands::Flat, "not significantly different from the best"),
    (Stands::Better, "better with fresh seeds"),
    (Stands::Worse, "significantly worse"),
    (Stands::Infeasible, "violates a constraint"),
];

/// The page of `results`.
pub(crate) fn page(results: &TuneResults) -> Result<String, ReportError> {
    let title = &results.title;
    let body = html! {
        header {
            h1 { (title) }
            p.subtitle { (aim(results)) "; " (results.about()) }
        }
        (warnings("Before you trust these numbers", &results.warnings))
        h2 { "What was found" }
        ul { @for sentence in results.sentences() { li { (sentence) } } }
        h2 { "The aim along each axis" }
        @for axis in 0..results.axes.len() { (along(results, axis)?) }
        h2 { "Points" }
        (table(&head(results), &rows(&results.points)))
        p.note {
            "± is half of the 95 % interval by Student's t over seeds, of a difference that of all \
             differences together (Bonferroni). Differences are of runs with the same seed. The \
             best point and those like it have fresh seeds: a choice among noisy values makes the \
             chosen one look better than it is."
        }
        h2 { "How to repeat it" }
        (code(&commands(results)))
    };
    Ok(shell(&format!("{title} · Trimline"), &body))
}

/// `minimise slowdown p99, with goodput_gbps >= 9`.
fn aim(results: &TuneResults) -> String {
    let mut parts = vec![results.aim.words()];
    parts.extend((!results.constraints.is_empty()).then(|| results.constraints.join(", ")));
    parts.join(", with ")
}

/// The aim of every point over its place on an axis.
fn along(results: &TuneResults, axis: usize) -> Result<Markup, ReportError> {
    let name = &results.axes[axis];
    let numbers = || results.points.iter().map(|point| point.numbers[axis]);
    let is_number = numbers().all(|number| number.is_some());
    let names = if is_number { Vec::new() } else { values(results, axis) };
    let place = |point: &TunePoint| match is_number {
        true => point.numbers[axis],
        false => Some(names.iter().position(|name| *name == point.at[axis])? as f64),
    };
    let of = |stands: Stands| -> Vec<(f64, Estimate)> {
        let group = results.points.iter().filter(|point| point.stands == stands);
        group.filter_map(|point| Some((place(point)?, point.aim()?))).collect()
    };
    let groups = GROUPS.iter().map(|(stands, called)| (*called, of(*stands)));
    let groups: Vec<(&str, Vec<(f64, Estimate)>)> =
        groups.filter(|(_, points)| !points.is_empty()).collect();
    let dots = |points: &Vec<(f64, Estimate)>| points.iter().map(|(x, e)| (*x, e.mean)).collect();
    let bars = |points: &Vec<(f64, Estimate)>| {
        points.iter().filter_map(|(x, e)| Some((*x, e.mean, e.interval?))).collect()
    };
    let lines: Vec<Vec<(f64, f64)>> = groups.iter().map(|(_, points)| dots(points)).collect();
    let x = match is_number {
        true => Axis::around(name, numbers().flatten(), None),
        false => Axis::names(name, names),
    };
    let y = Axis::around(named(&results.aim.metric), ends(&groups), None);
    let mut chart = Chart::new("the aim along an axis", x, y, lines, Plot::Dots);
    chart.over.bars = groups.iter().map(|(_, points)| bars(points)).collect();
    let legend: Vec<String> = groups.iter().map(|(called, _)| (*called).to_owned()).collect();
    let about = "A dot is a point of the search, wherever it is on the other axes; bars are 95 % \
                 intervals.";
    figure(&format!("Along {name}"), &legend, &chart, about, "No point has a value.")
}

/// The ends of all intervals.
fn ends(groups: &[(&str, Vec<(f64, Estimate)>)]) -> impl Iterator<Item = f64> {
    let all = groups.iter().flat_map(|(_, points)| points);
    all.flat_map(|(_, e)| {
        let half = e.interval.unwrap_or_default();
        [e.mean - half, e.mean + half]
    })
}

/// The values of an axis, each once, in the order of the points.
fn values(results: &TuneResults, axis: usize) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for point in &results.points {
        if !values.contains(&point.at[axis]) {
            values.push(point.at[axis].clone());
        }
    }
    values
}

fn head(results: &TuneResults) -> Vec<String> {
    let aim = [named(&results.aim.metric), "less the best".to_owned()];
    let last = ["seeds", "rounds", "what it is"].map(str::to_owned);
    let axes = results.axes.iter().cloned();
    axes.chain(aim).chain(results.constraints.iter().cloned()).chain(last).collect()
}

fn rows(points: &[TunePoint]) -> Vec<Vec<String>> {
    let row = |point: &TunePoint| {
        let aim = point.aim();
        let less = point.less_best.as_ref();
        let less = estimate(
            less.and_then(|l| l.estimate).map(|e| e.mean),
            less.and_then(|l| l.joint_interval),
        );
        let values = [estimate(aim.map(|aim| aim.mean), aim.and_then(|aim| aim.interval)), less];
        let sides = point.constraints.iter().map(|side| number(*side));
        let seeds = aim.map_or(0, |aim| aim.seeds).to_string();
        let last = [seeds, point.rounds.to_string(), point.stands.name().to_owned()];
        point.at.iter().cloned().chain(values).chain(sides).chain(last).collect()
    };
    points.iter().map(row).collect()
}

/// The command of the search, and that of the best point.
fn commands(results: &TuneResults) -> String {
    let best = results.best().map(|point| point.repeat.clone());
    std::iter::once(results.command.clone()).chain(best).collect::<Vec<_>>().join("\n")
}
