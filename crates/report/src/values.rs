//! The numbers of a [`Chart`] as a table: for those who do not see it, and without a script.

use maud::Markup;
use metrics::Plot;

use crate::chart::Chart;
use crate::number::{number, tick};
use crate::page::table;
use crate::results::Curve;

/// Shares of a distribution, and what they are called.
const SHARES: [(&str, f64); 6] =
    [("min", 0.0), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

/// What `chart` shows, whose curves are called `names`.
pub(crate) fn values(chart: &Chart, names: &[String]) -> Markup {
    match chart.drawn {
        Plot::Line if chart.distribution => by_share(chart, names),
        Plot::Line | Plot::Dots => by_curve(chart, names),
        Plot::Points => by_place(chart, names),
    }
}

/// Those of the curves that have points, with their names.
fn drawn<'a>(chart: &'a Chart, names: &'a [String]) -> impl Iterator<Item = (String, &'a Curve)> {
    let name = |i: usize| names.get(i).cloned().unwrap_or_default();
    let all = chart.lines.iter().enumerate().map(move |(i, line)| (name(i), line));
    all.filter(|(_, line)| !line.is_empty())
}

fn head<'a>(first: &'a str, others: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    std::iter::once(first).chain(others).map(str::to_owned).collect()
}

fn by_share(chart: &Chart, names: &[String]) -> Markup {
    let of = |curve: &Curve, share: f64| {
        number(curve.iter().find(|(_, y)| *y >= share - 1e-12).map(|(x, _)| *x))
    };
    let row = |(name, curve): (String, &Curve)| {
        std::iter::once(name).chain(SHARES.iter().map(|(_, share)| of(curve, *share))).collect()
    };
    let rows: Vec<Vec<String>> = drawn(chart, names).map(row).collect();
    table(&head(&chart.x.label, SHARES.map(|(name, _)| name)), &rows)
}

fn by_curve(chart: &Chart, names: &[String]) -> Markup {
    let row = |(name, curve): (String, &Curve)| {
        let ys = || curve.iter().map(|(_, y)| *y).filter(|y| y.is_finite());
        let n = ys().count();
        let mean = (n > 0).then(|| ys().sum::<f64>() / n as f64);
        let (min, max) = (ys().reduce(f64::min), ys().reduce(f64::max));
        vec![name, n.to_string(), number(min), number(mean), number(max)]
    };
    let rows: Vec<Vec<String>> = drawn(chart, names).map(row).collect();
    table(&head(&chart.y.label, ["points", "min", "mean", "max"]), &rows)
}

/// A row for each place of which there is a point.
fn by_place(chart: &Chart, names: &[String]) -> Markup {
    let open = |i: usize| chart.over.open.get(i).into_iter().flatten();
    let all = chart.lines.iter().enumerate().flat_map(|(i, line)| line.iter().chain(open(i)));
    let mut places: Vec<f64> = all.map(|(x, _)| *x).collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let cell = |i: usize, x: f64| {
        let here = |curve: Option<&Curve>| {
            curve.into_iter().flatten().find(|(at, _)| *at == x).map(|(_, y)| *y)
        };
        let mut text = number(here(chart.lines.get(i)));
        let mut bars = chart.over.bars.get(i).into_iter().flatten();
        if let Some((_, _, half)) = bars.find(|(at, _, _)| *at == x) {
            text += &format!(" ± {}", number(Some(*half)));
        }
        if let Some(published) = here(chart.over.open.get(i)) {
            text += &format!(" (published: {})", number(Some(published)));
        }
        text
    };
    let name = |x: f64| match chart.x.named() {
        Some(names) => names.get(x as usize).cloned().unwrap_or_default(),
        None => tick(x),
    };
    let curves: Vec<usize> =
        (0..chart.lines.len()).filter(|i| !chart.lines[*i].is_empty()).collect();
    let row = |x: &f64| {
        std::iter::once(name(*x)).chain(curves.iter().map(|i| cell(*i, *x))).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = places.iter().map(row).collect();
    let called =
        curves.iter().map(|i| names.get(*i).map_or(chart.y.label.as_str(), String::as_str));
    table(&head(&chart.x.label, called), &rows)
}
