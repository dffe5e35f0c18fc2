//! Numbers of the table of results, as pages show them.

use maud::Markup;
use metrics::{Metric, Numbers, Unit};
use serde_json::Value;

use crate::number::{bytes, count, number, percent};
use crate::page::table;

/// The value of `metric`; what has a unit of its own carries it.
pub(crate) fn shown(metric: &Metric, value: Option<&Value>) -> String {
    match (value, metric.unit()) {
        (Some(Value::String(text)), _) => text.clone(),
        (value, Unit::Share) => percent(value.and_then(Value::as_f64)),
        (Some(value), Unit::Bytes) => bytes(value.as_u64().unwrap_or_default()),
        (Some(Value::Number(n)), _) if n.is_u64() => count(n.as_u64().unwrap_or_default()),
        (value, _) => number(value.and_then(Value::as_f64)),
    }
}

/// The unit that [`shown`] leaves out.
pub(crate) const fn bare_unit(metric: &Metric) -> &'static str {
    match metric.unit() {
        Unit::Share | Unit::Bytes => "",
        unit => unit.sign(),
    }
}

/// The value with its unit.
pub(crate) fn measured(metric: &Metric, value: Option<&Value>) -> String {
    format!("{} {}", shown(metric, value), bare_unit(metric)).trim_end().to_owned()
}

/// The label, with the unit that [`shown`] leaves out.
pub(crate) fn head(metric: &Metric) -> String {
    match bare_unit(metric) {
        "" => metric.label(),
        _ => metric.head(),
    }
}

/// A table with a row for each name. Columns in which every row has nothing, or nought, are left
/// out.
pub(crate) fn by_row(of: &str, metrics: &[Metric], rows: &[(String, Numbers)]) -> Markup {
    let counts = |metric: &Metric, numbers| {
        metric.value(numbers).is_some_and(|value| value.as_f64() != Some(0.0))
    };
    let some = |metric: &&Metric| rows.iter().any(|(_, numbers)| counts(metric, numbers));
    let columns: Vec<&Metric> = metrics.iter().filter(some).collect();
    let heads: Vec<String> =
        std::iter::once(of.to_owned()).chain(columns.iter().map(|m| head(m))).collect();
    let cells = |(name, numbers): &(String, Numbers)| {
        let values = columns.iter().map(|metric| shown(metric, metric.value(numbers)));
        std::iter::once(name.clone()).chain(values).collect()
    };
    table(&heads, &rows.iter().map(cells).collect::<Vec<_>>())
}
