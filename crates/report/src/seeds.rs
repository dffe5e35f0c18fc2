//! The page of a comparison over seeds.

use maud::{Markup, html};
use metrics::{Compared, ComparisonResults, Estimate, Plot, Setting, SizeCompared, named, row};

use crate::ReportError;
use crate::axis::Axis;
use crate::chart::Chart;
use crate::number::estimate;
use crate::page::{code, figure, folded, scroll, shell, table, warnings};

/// The page of `results`.
pub(crate) fn page(results: &ComparisonResults) -> Result<String, ReportError> {
    let title = results.labels.join(" · ");
    let sizes = &results.by_size;
    let body = html! {
        header {
            h1 { (title) }
            p.subtitle { (results.seeds) " seeds each; " (results.about_traffic()) }
        }
        (warnings("Before you trust these numbers", &results.warnings))
        h2 { "Which is lower" }
        p { (results.about_sentences()) }
        ul { @for sentence in results.sentences() { li { (sentence) } } }
        h2 { "Numbers" }
        (table(&heads("Mean over seeds", results), &rows(results)))
        p.note {
            "± is half of the 95 % interval of this number alone, by Student's t over seeds. A \
             percentile is taken of each run, and these are averaged. Differences are of runs with \
             the same seed."
        }
        @if !sizes.is_empty() {
            h2 { "Slowdown by size" }
            (by_size(results)?)
            (table(&heads("Slowdown p99", results), &size_rows(results)))
        }
        @if !results.settings.is_empty() {
            h2 { "What differs between them" }
            (settings(results))
        }
        h2 { "How to repeat it" }
        (code(&format!("{}\n{}", results.command, results.repeat.join("\n"))))
    };
    Ok(shell(&format!("{title} · Trimline"), &body))
}

/// The labels, then for each but the first what it is less the first.
fn heads(of: &str, results: &ComparisonResults) -> Vec<String> {
    let labels = &results.labels;
    let less = labels.iter().skip(1).map(|label| format!("{label} – {}", labels[0]));
    std::iter::once(of.to_owned()).chain(labels.iter().cloned()).chain(less).collect()
}

fn rows(results: &ComparisonResults) -> Vec<Vec<String>> {
    let cells = |of: &Compared| {
        let differences = of.differences.iter().map(|d| d.estimate);
        let estimates: Vec<_> = of.values.iter().copied().chain(differences).collect();
        row(named(&of.metric), &estimates, results.seeds, shown)
    };
    results.metrics.iter().map(cells).collect()
}

fn size_rows(results: &ComparisonResults) -> Vec<Vec<String>> {
    let cells = |size: &SizeCompared| {
        let estimates = [&size.p99[..], &size.p99_less_first].concat();
        row(size.range(), &estimates, results.seeds, shown)
    };
    results.by_size.iter().map(cells).collect()
}

fn shown(of: Option<Estimate>) -> String {
    estimate(of.map(|e| e.mean), of.and_then(|e| e.interval))
}

/// Slowdown by range of sizes, a line for each label.
fn by_size(results: &ComparisonResults) -> Result<Markup, ReportError> {
    let of = |label: usize| -> Vec<(f64, Estimate)> {
        let sizes = results.by_size.iter().enumerate();
        sizes.filter_map(|(i, size)| Some((i as f64, size.p99[label]?))).collect()
    };
    let all: Vec<Vec<(f64, Estimate)>> = (0..results.labels.len()).map(of).collect();
    let line = |points: &Vec<(f64, Estimate)>| points.iter().map(|(x, e)| (*x, e.mean)).collect();
    let bar = |points: &Vec<(f64, Estimate)>| {
        points.iter().filter_map(|(x, e)| Some((*x, e.mean, e.interval?))).collect()
    };
    let lines: Vec<Vec<(f64, f64)>> = all.iter().map(line).collect();
    let mut chart = Chart::new(
        "slowdown by size",
        Axis::names("message size", results.by_size.iter().map(SizeCompared::range).collect()),
        Axis::around("slowdown p99 (×)", lines.iter().flatten().map(|(_, y)| *y), None),
        lines,
        Plot::Points,
    );
    chart.over.bars = all.iter().map(bar).collect();
    let about = "Mean of the 99th percentiles of the seeds; bars are 95 % intervals.";
    figure("Slowdown by message size", &results.labels, &chart, about, "No message completed.")
}

fn settings(results: &ComparisonResults) -> Markup {
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "Setting" }
                    @for label in &results.labels { th.text scope="col" { (label) } }
                }
            }
            tbody { @for setting in &results.settings { (of_setting(setting)) } }
        }
    };
    folded(results.settings.len(), scroll("settings", &table))
}

fn of_setting(setting: &Setting) -> Markup {
    html! {
        tr {
            th scope="row" { (setting.path) }
            @for value in &setting.values { td.text { (value.as_deref().unwrap_or("–")) } }
        }
    }
}
