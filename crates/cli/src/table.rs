//! The tables on stdout.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use metrics::{Metric, Numbers, SizeError, Summary, Unit, size_range};
use serde_json::Value;

/// Three or four digits, and the unit in the label.
pub(crate) fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(v) if v.abs() >= 1000.0 => format!("{v:.0}"),
        Some(v) if v.abs() >= 10.0 => format!("{v:.1}"),
        Some(v) => format!("{v:.3}"),
    }
}

/// The value of `metric` among `numbers`; what it is counted in stands in the label.
fn cell(metric: &Metric, numbers: &Numbers) -> String {
    match (metric.value(numbers), metric.unit()) {
        (None, _) => "-".to_owned(),
        (Some(Value::String(text)), _) => printable(text),
        (Some(value), Unit::Share) => {
            value.as_f64().map_or_else(String::new, |share| format!("{:.2} %", share * 100.0))
        }
        (Some(value), _) if value.is_u64() => value.to_string(),
        (Some(value), _) => number(value.as_f64()),
    }
}

/// `text` without what a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    let visible = |c: char| match c {
        '\n' => "\n".to_owned(),
        c if c.is_control() => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    text.chars().map(visible).collect()
}

/// The summary of one run.
pub(crate) fn summary(s: &Summary) -> String {
    comparison(&[&s.scenario], std::slice::from_ref(s))
}

/// What the scenario `name` will do.
pub(crate) fn forecast(name: &str, rows: Vec<(String, String)>) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(["scenario".to_owned(), printable(name)]);
    for (label, value) in rows {
        table.add_row([label, value]);
    }
    right(table)
}

/// Several runs side by side, one column each, headed by its label: what any of them has.
pub(crate) fn comparison(labels: &[&str], summaries: &[Summary]) -> String {
    let numbers: Vec<Numbers> = summaries.iter().map(Numbers::of).collect();
    let head = std::iter::once("scenario").chain(labels.iter().copied()).map(printable);
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(head);
    for metric in metrics::all_metrics() {
        if numbers.iter().any(|numbers| metric.is_shown(numbers)) {
            let cells = numbers.iter().map(|numbers| cell(&metric, numbers));
            table.add_row(std::iter::once(metric.head()).chain(cells));
        }
    }
    right(table)
}

/// The traffic tables that have names, a row each; `None` without one.
pub(crate) fn by_traffic(s: &Summary) -> Option<String> {
    let named = s.traffic.iter().map(|(name, table)| (printable(name), Numbers::of(table)));
    by_row("traffic", &metrics::metrics_of(&metrics::BY_TRAFFIC), &named.collect::<Vec<_>>())
}

/// The phases of a run with faults, a row each; `None` without one.
pub(crate) fn phases(s: &Summary) -> Option<String> {
    let phases =
        (1..).zip(&s.phases).map(|(n, phase): (u32, _)| (n.to_string(), Numbers::of(phase)));
    by_row("phase", &metrics::metrics_of(&metrics::BY_PHASE), &phases.collect::<Vec<_>>())
}

/// How far flow level is from packets, a row for each range of sizes; `None` if that was not
/// measured.
pub(crate) fn calibration(s: &Summary) -> Option<String> {
    let row = |by: &SizeError| (size_range(by.from_bytes, by.to_bytes), Numbers::of(by));
    let rows: Vec<_> = s.calibration.by_size.iter().map(row).collect();
    by_row("message size", &metrics::metrics_of(&metrics::BY_SIZE_ERROR), &rows)
}

/// A table with a row for each name. Columns in which every row has nothing, or nought, are left
/// out.
fn by_row(of: &str, metrics: &[Metric], rows: &[(String, Numbers)]) -> Option<String> {
    rows.first()?;
    let counts = |metric: &Metric, numbers| {
        metric.value(numbers).is_some_and(|value| value.as_f64() != Some(0.0))
    };
    let some = |metric: &&Metric| rows.iter().any(|(_, numbers)| counts(metric, numbers));
    let columns: Vec<&Metric> = metrics.iter().filter(some).collect();
    let mut table = Table::new();
    let heads = columns.iter().map(|metric| metric.head());
    table.load_style(UTF8_FULL_CONDENSED).set_header(std::iter::once(of.to_owned()).chain(heads));
    for (name, numbers) in rows {
        let cells = columns.iter().map(|metric| cell(metric, numbers));
        table.add_row(std::iter::once(name.clone()).chain(cells));
    }
    Some(right(table))
}

/// Numbers end in one line.
pub(crate) fn right(mut table: Table) -> String {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_no_name() {
        assert_eq!(printable("a\u{1b}[31mb\rc\nd µ"), "a\\u{1b}[31mb\\u{d}c\nd µ");
        let red = Summary { scenario: "\u{1b}[31mred".to_owned(), ..Summary::default() };
        assert!(!summary(&red).contains('\u{1b}'), "{}", summary(&red));
    }

    #[test]
    fn columns_without_a_number_are_left_out() {
        assert_eq!(by_traffic(&Summary::default()), None);
        let named = |name: &str| (name.to_owned(), metrics::TrafficStats::default());
        let mut s = Summary { traffic: [named("x"), named("y")].into(), ..Summary::default() };
        if let Some(table) = s.traffic.get_mut("y") {
            table.fct_us.p99 = Some(2.0);
        }
        let text = by_traffic(&s).unwrap_or_default();
        assert!(text.contains("completion time p99 (µs)") && text.contains("2.000"), "{text}");
        assert!(!text.contains("failed"), "{text}");
    }
}
