//! The page of a study: how many published rows came out and the numbers that a reader looks for
//! first, then each figure, folded.

use maud::{Markup, html};
use metrics::{
    AxisSpec, Curve, Experiment, FigureResults, FigureRow, Form, OnPhases, Origin, Plot, RunRecord,
    Score, Shows, StudyResults, Verdict,
};

use crate::ReportError;
use crate::axis::Axis;
use crate::chart::{Chart, Overlay};
use crate::number::{count, number};
use crate::page::{Tile, code, figure, shell, tiles, warnings};
use crate::timeline;

/// The page of `study`.
pub(crate) fn page(study: &StudyResults) -> Result<String, ReportError> {
    // What is folded has a headline and a picture above it. A sweep has neither.
    let folded = study.figures.len() > 1 && study.rows().next().is_some();
    let figures = study.figures.iter().map(|figure| of_figure(figure, folded));
    let figures: Vec<Markup> = figures.collect::<Result<_, _>>()?;
    let body = html! {
        header {
            h1 { (study.title) }
            @if !study.publication.is_empty() { p.subtitle { (study.publication) } }
            @if let Some(form) = part(study.form) {
                p.subtitle { (form) "; " (count(study.left_out)) " rows are left to the full form." }
            }
        }
        (warnings("Before you trust these numbers", &study.warnings))
        @if study.rows().next().is_some() {
            (tiles(&score(study.score())))
            (headline(study)?)
            (contents(study))
        }
        @if !study.on_phases.is_empty() { (on_phases(&study.on_phases)) }
        @for figure in &figures { (figure) }
        @if study.rows().next().is_some() { (words()) }
        h2 { "How to repeat this" }
        (code(&study.command))
        p.note {
            "Same scenarios, same seeds, same engine version (" (study.engine) "): same digests."
        }
    };
    Ok(shell(&format!("{} · Trimline", study.title), &body))
}

/// What a form runs that is not all of the study.
const fn part(form: Form) -> Option<&'static str> {
    match form {
        Form::Full => None,
        Form::Published => Some("Published rows, with all their sizes and seeds"),
        Form::Quick => Some("Quick form: fewer sizes and seeds, shorter runs"),
    }
}

/// What other phases move by more than single seeds differ.
fn on_phases(all: &[OnPhases]) -> Markup {
    html! {
        h2 { "What hangs on phases" }
        p.note {
            "Other ties, clocks and jitter move these values, with the same traffic, by more than "
            "one more seed's value would differ (its 95 % prediction interval)."
        }
        div.scroll tabindex="0" role="group" aria-label="Table: what hangs on phases" {
            table {
                thead {
                    tr {
                        th scope="col" { "Value" }
                        th scope="col" { "Mean of all seeds, and one more seed" }
                        th scope="col" { "Moved by" }
                    }
                }
                tbody {
                    @for on in all {
                        tr {
                            th.wide scope="row" { (on.figure) ": " (on.what) }
                            td { (number(Some(on.value))) " ± " (number(Some(on.interval))) }
                            td { (number(Some(on.shift))) }
                        }
                    }
                }
            }
        }
    }
}

fn score(score: Score) -> [Tile; 4] {
    let tile = |name: &str, n: usize, of: Option<usize>, about: &str| Tile {
        name: name.to_owned(),
        value: match of {
            Some(of) => format!("{n} of {of}"),
            None => n.to_string(),
        },
        unit: "",
        about: about.to_owned(),
    };
    let (published, own) = (score.published(), score.own());
    [
        tile(
            "Published rows in band",
            score.in_band,
            Some(published),
            "numbers or statements of the publication",
        ),
        tile(
            "Cause tested",
            score.cause_tested,
            None,
            "out of the band; an experiment in this study confirms why",
        ),
        tile(
            "Not reproduced",
            score.not_reproduced,
            None,
            "out of the band, or without a value; notes say what is known",
        ),
        tile(
            "Own properties",
            score.holds,
            Some(own),
            "arithmetic, invariants and experiments of ours",
        ),
    ]
}

/// The numbers that a reader of the publication looks for first, and a picture.
fn headline(study: &StudyResults) -> Result<Markup, ReportError> {
    let rows: Vec<&FigureRow> = study.rows().filter(|row| row.headline).collect();
    // A form may leave that figure out.
    let measured = |figure: &&FigureResults| figure.curves.iter().any(|c| !c.measured.is_empty());
    let chosen = study.figures.iter().find(|figure| Some(&figure.id) == study.picture.as_ref());
    let of_rows = || study.figures.iter().filter(|f| f.rows.iter().any(|row| row.headline));
    let shown = chosen.filter(measured).or_else(|| of_rows().find(measured)).or(chosen);
    let first = shown.and_then(|figure| {
        Some((figure, Some(figure.curves.as_slice()).filter(|c| !c.is_empty())?))
    });
    let picture = match first {
        Some((results, curves)) => plot(results, curves)?,
        None => html! {},
    };
    Ok(html! {
        @if !rows.is_empty() {
            h2 { "What the publication is known for" }
            div {
                div.scroll tabindex="0" role="group" aria-label="Table: headline numbers" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "Number" }
                                th scope="col" { "Published" }
                                th scope="col" { "Ours" }
                                th.text scope="col" { "Unit" }
                                th.text scope="col" { "Verdict" }
                            }
                        }
                        tbody { @for row in rows { (of_headline(row)) } }
                    }
                }
                (picture)
            }
        }
    })
}

fn of_headline(row: &FigureRow) -> Markup {
    let result = &row.result;
    html! {
        tr {
            th.wide scope="row" title=(result.source) {
                a href={ "#" (result.figure) } { (result.figure) } ": " (result.row)
            }
            td {
                @match result.target {
                    Some(target) => (number(Some(target))),
                    None => (band(result.low, result.high)),
                }
            }
            td { (number(result.measured)) }
            td.text { (result.unit) }
            td.text { (badge(result.verdict)) }
        }
    }
}

fn contents(study: &StudyResults) -> Markup {
    html! {
        @if study.figures.len() > 1 {
            h2 { "All figures" }
            ul.legend {
                @for figure in &study.figures {
                    li { a href={ "#" (figure.id) } { (figure.id) } " " (in_band(figure)) }
                }
            }
        }
    }
}

/// How many published rows of a figure are in their bands, if there are any.
fn in_band(figure: &FigureResults) -> String {
    let rows = figure.rows.iter().map(|row| (row.result.origin, row.result.verdict));
    match Score::of(rows) {
        score if score.published() > 0 => format!("{}/{}", score.in_band, score.published()),
        _ => String::new(),
    }
}

fn badge(verdict: Verdict) -> Markup {
    html! { span.verdict.(verdict.name().replace(' ', "-")) { (verdict.name()) } }
}

/// How sources are named.
fn words() -> Markup {
    const WORDS: [(&str, &str); 10] = [
        ("text of the publication", "stands in its text"),
        ("read off the plot", "digitised from its figure: one or two per cent of the axis"),
        ("authors' data, scripts", "numbers in the authors' files or of their program's runs"),
        ("our run of the authors' program", "we ran it; the number is not published"),
        ("text of the study, slides", "stands in the documents from which this project was made"),
        ("hardware simulation", "printed or plotted by the public hardware simulation"),
        ("stored notes", "a summary of the publication, not its text"),
        ("from memory", "not looked up again: to be treated with care"),
        ("arithmetic", "derived by us"),
        ("quick model", "a number of a model of a few lines: plausibility only"),
    ];
    html! {
        details {
            summary { "How sources are named" }
            table { tbody {
                @for (word, meaning) in WORDS {
                    tr { th.wide scope="row" { (word) } td.text.wide { (meaning) } }
                }
            } }
        }
    }
}

fn of_figure(results: &FigureResults, folded: bool) -> Result<Markup, ReportError> {
    let timelines: Vec<Markup> = results.timelines.iter().map(timeline::picture).collect();
    let plot = (!results.curves.is_empty()).then(|| plot(results, &results.curves)).transpose()?;
    let inside = html! {
        h2 id=(results.id) { (results.id) @if !results.title.is_empty() { ": " (results.title) } }
        @if !results.expect.is_empty() { p { (results.expect) } }
        @if let Some(plot) = &plot { (plot) }
        (missing(results))
        @for timeline in &timelines { (timeline) }
        @for (origin, heading) in TABLES { (rows(&results.rows, origin, heading)) }
        (notes(&results.rows))
        @if !results.runs.is_empty() { (runs(&results.runs)) }
    };
    Ok(html! {
        @if folded {
            details.figure {
                summary { b { (results.id) } ": " (results.title) " " (in_band(results)) }
                (inside)
            }
        } @else {
            (inside)
        }
    })
}

/// The tables of a figure.
const TABLES: [(Origin, &str); 3] = [
    (Origin::Published, "Published"),
    (Origin::Own, "Own properties"),
    (Origin::Copy, "Rows that repeat others"),
];

/// A plot of `curves`, which are of the figure `results`. One of which nothing was measured is only
/// named: its colour is that of its place, in every form of the study.
fn plot(results: &FigureResults, curves: &[Curve]) -> Result<Markup, ReportError> {
    let measured = |curve: &Curve| curve.measured.iter().map(|p| (p.x, p.y)).collect::<Vec<_>>();
    let is_measured = |curve: &&Curve| !curve.measured.is_empty();
    let published = |curve: &Curve| {
        if is_measured(&curve) { curve.published.clone() } else { Vec::new() }
    };
    let all = || {
        let of = |curve: &Curve| [measured(curve), published(curve)].concat();
        curves.iter().flat_map(of)
    };
    let bar = |curve: &Curve| {
        let bar = |p: &metrics::CurvePoint| Some((p.x, p.y, p.interval?));
        curve.measured.iter().filter_map(bar).collect::<Vec<_>>()
    };
    let x = axis(&results.x, all().map(|(x, _)| x));
    let y = axis(&results.y, all().map(|(_, y)| y));
    let lines = curves.iter().map(measured).collect();
    let mut chart = Chart::new("figure", x, y, lines, drawn(curves));
    chart.over = Overlay {
        open: curves.iter().map(published).collect(),
        bars: curves.iter().map(bar).collect(),
    };
    let (drawn, not): (Vec<&Curve>, Vec<&Curve>) = curves.iter().partition(is_measured);
    let named = |curve: &Curve| is_measured(&curve).then(|| curve.label.clone());
    let legend: Vec<String> = curves.iter().map(|c| named(c).unwrap_or_default()).collect();
    let mut sources: Vec<&str> = Vec::new();
    for curve in drawn {
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
        sources => format!("{ours} Open marks: published ({}).", sources.join("; ")),
    };
    let not: Vec<&str> = not.iter().map(|curve| curve.label.as_str()).collect();
    let about = match not.as_slice() {
        [] => about,
        not => format!("{about} Not measured: {}.", not.join("; ")),
    };
    let any_published = curves.iter().any(|curve| !published(curve).is_empty());
    let heading = if any_published { "Measured and published" } else { "Measured" };
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

/// The rows of one origin.
fn rows(rows: &[FigureRow], origin: Origin, heading: &str) -> Markup {
    let rows: Vec<&FigureRow> = rows.iter().filter(|row| row.result.origin == origin).collect();
    let published = origin == Origin::Published;
    html! {
        @if !rows.is_empty() {
            h3 { (heading) }
            div.scroll tabindex="0" role="group" aria-label={ "Table: " (heading) } {
                table {
                    thead {
                        tr {
                            th scope="col" { "Row" }
                            th scope="col" { (if published { "Published" } else { "Expected" }) }
                            th scope="col" { "Band" }
                            th scope="col" { "Ours" }
                            th.text scope="col" { "Unit" }
                            th.text scope="col" { "Verdict" }
                            th.text scope="col" { "Source, and why this band" }
                        }
                    }
                    tbody { @for row in rows { (of_row(row)) } }
                }
            }
        }
    }
}

/// The notes on rows out of their bands, each once.
fn notes(rows: &[FigureRow]) -> Markup {
    let mut notes: Vec<(&str, &str)> = rows
        .iter()
        .filter_map(|r| Some((r.result.evidence.as_str(), r.note.as_deref()?)))
        .collect();
    notes.dedup();
    html! {
        @for (link, text) in notes {
            details {
                summary { "Note: " (link) }
                (code(text))
            }
        }
    }
}

fn of_row(row: &FigureRow) -> Markup {
    let result = &row.result;
    html! {
        tr {
            th.wide scope="row" title=(result.metric) { (result.row) }
            td { @if result.target.is_some() { (number(result.target)) } }
            td { (band(result.low, result.high)) }
            td {
                (number(result.measured))
                @if let Some(half) = row.interval { " ± " (number(Some(half))) }
            }
            td.text { (result.unit) }
            td.text.wide {
                (badge(result.verdict))
                @if let Some(problem) = &row.problem { " " (problem) }
                @if let Some(experiment) = &row.experiment { " " (of_experiment(experiment)) }
            }
            td.text.wide { (result.source) br; span.note { (row.why) } }
        }
    }
}

/// What the experiment on a row's cause found.
fn of_experiment(experiment: &Experiment) -> Markup {
    let band = band(experiment.low, experiment.high);
    let found = match (experiment.confirms(), experiment.shows) {
        (true, Shows::InBand) => format!("in the band, {band}"),
        (true, Shows::Unreachable) => format!("{band}: the band cannot be reached"),
        (true, Shows::Scatter) => format!("the published value, among single seeds: {band}"),
        (false, Shows::Scatter) => {
            let widest = number(experiment.widest);
            format!("not among single seeds within {widest} of one another: {band}")
        }
        (false, _) => format!("not {band}: it does not confirm the cause"),
    };
    html! {
        span.note title=(experiment.metric) {
            "experiment " (experiment.run) ": " (number(experiment.measured)) ", " (found)
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
            div.scroll tabindex="0" role="group" aria-label="Table: runs" {
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
