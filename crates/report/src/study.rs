//! The page of a study: our curves over the published points, every row with its verdict.

use maud::{Markup, html};
use metrics::{AxisSpec, Curve, FigureResults, FigureRow, Plot, RunRecord, StudyResults, Verdict};

use crate::ReportError;
use crate::axis::Axis;
use crate::chart::{Chart, Overlay};
use crate::number::{count, number};
use crate::page::{Tile, figure, shell, tiles};
use crate::timeline;

/// The page of `study`.
pub(crate) fn page(study: &StudyResults) -> Result<String, ReportError> {
    let figures: Vec<Markup> = study.figures.iter().map(of_figure).collect::<Result<_, _>>()?;
    let body = html! {
        header {
            h1 { (study.title) }
            @if !study.publication.is_empty() { p.subtitle { (study.publication) } }
            @if study.quick {
                p.subtitle {
                    "Quick form: fewer sizes and seeds, shorter runs; "
                    (count(study.left_out)) " rows are left to the full form."
                }
            }
        }
        @if study.rows().next().is_some() {
            (tiles(&verdicts(study)))
            (contents(study))
        }
        @for figure in &figures { (figure) }
        h2 { "How to repeat this" }
        pre { (study.command) }
        p.note {
            "Same scenarios, same seeds, same engine version (" (study.engine) "): same digests."
        }
    };
    Ok(shell(&format!("{} · Trimline", study.title), &body))
}

fn verdicts(study: &StudyResults) -> [Tile; 3] {
    let tile = |name: &str, verdict, about: &str| Tile {
        name: name.to_owned(),
        value: count(study.count(verdict) as u64),
        unit: "rows",
        about: about.to_owned(),
    };
    [
        tile("Pass", Verdict::Pass, "in the band around the published number"),
        tile("Explained", Verdict::Explained, "out of the band; a note says why"),
        tile("Fail", Verdict::Fail, "out of the band, or without a value"),
    ]
}

fn contents(study: &StudyResults) -> Markup {
    html! {
        @if study.figures.len() > 1 {
            ul.legend {
                @for figure in &study.figures {
                    @let worst = figure.rows.iter().map(|row| rank(row.result.verdict)).max();
                    li {
                        a href={ "#" (figure.id) } { (figure.id) } " "
                        @if let Some(worst) = worst { (badge(RANKS[worst])) }
                    }
                }
            }
        }
    }
}

/// Verdicts from good to bad.
const RANKS: [Verdict; 3] = [Verdict::Pass, Verdict::Explained, Verdict::Fail];

fn rank(verdict: Verdict) -> usize {
    RANKS.iter().position(|other| *other == verdict).unwrap_or(0)
}

fn badge(verdict: Verdict) -> Markup {
    let (class, text) = match verdict {
        Verdict::Pass => ("pass", "pass"),
        Verdict::Explained => ("explained", "explained"),
        Verdict::Fail => ("fail", "fail"),
    };
    html! { span.verdict.(class) { (text) } }
}

fn of_figure(results: &FigureResults) -> Result<Markup, ReportError> {
    let timelines: Vec<Markup> = results.timelines.iter().map(timeline::picture).collect();
    Ok(html! {
        h2 id=(results.id) { (results.id) ": " (results.title) }
        @if !results.expect.is_empty() { p { (results.expect) } }
        @if !results.curves.is_empty() { (plot(results)?) (missing(results)) }
        @for timeline in &timelines { (timeline) }
        @if !results.rows.is_empty() { (rows(&results.rows)) }
        (notes(&results.rows))
        @if !results.runs.is_empty() { (runs(&results.runs)) }
    })
}

fn plot(results: &FigureResults) -> Result<Markup, ReportError> {
    let measured = |curve: &Curve| curve.measured.iter().map(|p| (p.x, p.y)).collect::<Vec<_>>();
    let all = || {
        let of = |curve: &Curve| [measured(curve), curve.published.clone()].concat();
        results.curves.iter().flat_map(of)
    };
    let bar = |curve: &Curve| {
        let bar = |p: &metrics::CurvePoint| Some((p.x, p.y, p.interval?));
        curve.measured.iter().filter_map(bar).collect::<Vec<_>>()
    };
    let chart = Chart {
        title: "figure",
        x: axis(&results.x, all().map(|(x, _)| x)),
        y: axis(&results.y, all().map(|(_, y)| y)),
        lines: results.curves.iter().map(measured).collect(),
        drawn: drawn(&results.curves),
        over: Overlay {
            circles: results.curves.iter().map(|curve| curve.published.clone()).collect(),
            bars: results.curves.iter().map(bar).collect(),
        },
    };
    let legend: Vec<String> = results.curves.iter().map(|curve| curve.label.clone()).collect();
    let mut sources: Vec<&str> = Vec::new();
    for curve in &results.curves {
        if !curve.source.is_empty() && !sources.contains(&curve.source.as_str()) {
            sources.push(&curve.source);
        }
    }
    let ours = match chart.drawn {
        Plot::Dots => "Dots: measured, one per message, with the first seed.",
        Plot::Points | Plot::Line => "Lines: measured.",
    };
    let about = match sources.as_slice() {
        [] => ours.to_owned(),
        sources => format!("{ours} Circles: published ({}).", sources.join("; ")),
    };
    let published = results.curves.iter().any(|curve| !curve.published.is_empty());
    let heading = if published { "Measured and published" } else { "Measured" };
    figure(heading, &legend, &chart, &about, "Nothing was measured.")
}

/// How all curves of a figure are drawn: a dot per point only if none of them has too many.
fn drawn(curves: &[Curve]) -> Plot {
    let any = |drawn| curves.iter().any(|curve| curve.drawn == drawn);
    [Plot::Dots, Plot::Line].into_iter().find(|&drawn| any(drawn)).unwrap_or(Plot::Points)
}

/// The points without a value, and why.
fn missing(results: &FigureResults) -> Markup {
    html! {
        @for curve in &results.curves {
            @for (x, why) in &curve.missing {
                p.note { "No value at " (curve.point(&results.x.label, *x)) ": " (why) }
            }
        }
    }
}

fn axis(spec: &AxisSpec, values: impl Iterator<Item = f64>) -> Axis {
    Axis::around(spec.label.as_str(), values, spec.logarithmic)
}

fn rows(rows: &[FigureRow]) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th scope="col" { "Row" }
                        th scope="col" { "Target" }
                        th scope="col" { "Band" }
                        th scope="col" { "Measured" }
                        th.text scope="col" { "Unit" }
                        th.text scope="col" { "Verdict" }
                        th.text scope="col" { "Published in" }
                        th.text scope="col" { "Why this band" }
                    }
                }
                tbody { @for row in rows { (of_row(row)) } }
            }
        }
    }
}

/// What explains the rows out of their bands, each note once.
fn notes(rows: &[FigureRow]) -> Markup {
    let mut notes: Vec<(&str, &str)> = rows
        .iter()
        .filter_map(|r| Some((r.result.evidence.as_str(), r.note.as_deref()?)))
        .collect();
    notes.dedup();
    html! {
        @for (link, text) in notes {
            details {
                summary { "Explained: " (link) }
                pre { (text) }
            }
        }
    }
}

fn of_row(row: &FigureRow) -> Markup {
    let result = &row.result;
    html! {
        tr {
            th scope="row" title=(result.metric) { (result.row) }
            td { (number(Some(result.target))) }
            td { (band(result.low, result.high)) }
            td {
                (number(result.measured))
                @if let Some(half) = row.interval { " ± " (number(Some(half))) }
            }
            td.text { (result.unit) }
            td.text {
                (badge(result.verdict))
                @if let Some(problem) = &row.problem { " " (problem) }
            }
            td.text.wide { (result.source) }
            td.text.wide { (row.why) }
        }
    }
}

fn band(low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{} – {}", number(Some(low)), number(Some(high))),
        (Some(low), None) => format!("≥ {}", number(Some(low))),
        (None, high) => format!("≤ {}", number(high)),
    }
}

fn runs(runs: &[RunRecord]) -> Markup {
    html! {
        details {
            summary { "The runs behind this (" (count(runs.len() as u64)) ")" }
            div.scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "Run" }
                            th scope="col" { "Seed" }
                            th scope="col" { "Packet-hops" }
                            th scope="col" { "Wall time (s)" }
                            th.text scope="col" { "Digest" }
                            th.text scope="col" { "Command" }
                        }
                    }
                    tbody {
                        @for run in runs {
                            tr {
                                th scope="row" { (run.run) }
                                td { (run.seed) }
                                td { (count(run.packet_hops)) }
                                td { (number(Some(run.wall_s))) }
                                td.text {
                                    @if let Some(digest) = &run.digest { code { (digest) } }
                                    @if let Some(error) = &run.error { (error) }
                                }
                                td.text { code { (run.command) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
