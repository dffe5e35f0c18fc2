//! Single messages over time, on the page of a run: the largest, and those that were traced.

use std::collections::BTreeMap;

use maud::{Markup, html};
use metrics::{FlowRow, FlowTraceRow, Plot, Span, Timeline};
use units::{Dur, Time};

use crate::ReportError;
use crate::axis::Axis;
use crate::chart::Chart;
use crate::number::number;
use crate::page::figure;
use crate::results::Curve;
use crate::timeline::picture;

/// The largest messages: when each was in the network, and how much of it a second.
pub(crate) fn largest(rows: &[FlowRow], end_us: f64) -> Markup {
    let us = |at: Time| at.0 as f64 / 1e6;
    let lane = |(i, row): (usize, &FlowRow)| {
        let (from_us, to_us) = (us(row.start), row.finish.map_or(end_us, us));
        let gbps = row.placed as f64 * 8.0 / (to_us - from_us).max(1e-6) / 1e3;
        let label = format!("{} Gb/s", number(Some(gbps)));
        let name = format!("{}:{} → {}", row.src, row.msg, row.dst);
        (name, vec![Span { from_us, to_us, label, accent: i % 2 == 1 }])
    };
    html! {
        @if !rows.is_empty() {
            (picture(&Timeline {
                title: "Throughput of the largest messages".to_owned(),
                about: "From submission to completion, or to the end of the run, with the mean \
                        throughput of each. A message is its source, its number and its destination."
                    .to_owned(),
                lanes: rows.iter().enumerate().map(lane).collect(),
            }))
        }
    }
}

/// The most points of a curve.
const POINTS: usize = 1000;

/// One column of a trace as a plot.
struct Column {
    heading: &'static str,
    y: &'static str,
    get: fn(&FlowTraceRow) -> Option<f64>,
    about: &'static str,
}

const COLUMNS: [Column; 5] = [
    Column {
        heading: "Congestion window",
        y: "window (KB)",
        get: |row| row.window.map(|bytes| bytes as f64 / 1e3),
        about: "Bytes that may be in flight.",
    },
    Column {
        heading: "Bytes in flight",
        y: "in flight (KB)",
        get: |row| row.in_flight.map(|bytes| bytes as f64 / 1e3),
        about: "Sent, and neither acknowledged nor taken for lost.",
    },
    Column {
        heading: "Credit",
        y: "credit (KB)",
        get: |row| row.credit.map(|bytes| bytes as f64 / 1e3),
        about: "Granted or pulled for, and not sent yet.",
    },
    Column {
        heading: "Rate",
        y: "rate (Gb/s)",
        get: |row| row.rate.map(|rate| rate as f64 / 1e9),
        about: "The rate at which the sender paces the message.",
    },
    Column {
        heading: "Round-trip time",
        y: "round-trip time (µs)",
        get: |row| row.rtt.map(Dur::as_us_f64),
        about: "Samples of the transport.",
    },
];

/// Windows, rates and round trips of the messages that were traced.
pub(crate) fn traced(rows: &[FlowTraceRow]) -> Result<Markup, ReportError> {
    let mut messages: BTreeMap<(u32, u64), Vec<&FlowTraceRow>> = BTreeMap::new();
    for row in rows {
        messages.entry((row.src, row.msg)).or_default().push(row);
    }
    let names: Vec<String> = messages.keys().map(|(src, msg)| format!("{src}:{msg}")).collect();
    let plots = COLUMNS.iter().filter_map(|column| {
        let point = |row: &&FlowTraceRow| Some((row.at.0 as f64 / 1e6, (column.get)(row)?));
        let line = |rows: &Vec<&FlowTraceRow>| thin(rows.iter().filter_map(point).collect());
        let lines: Vec<Curve> = messages.values().map(line).collect();
        let all = || lines.iter().flatten();
        let largest = all().map(|(_, y)| *y).reduce(f64::max)?;
        let end = all().map(|(x, _)| *x).fold(0.0, f64::max);
        let x = Axis::linear("simulated time (µs)", 0.0, end);
        let y = Axis::linear(column.y, 0.0, largest * 1.05);
        let chart = Chart::new(column.heading, x, y, lines, Plot::Line);
        Some(figure(column.heading, &names, &chart, column.about, ""))
    });
    let plots: Vec<Markup> = plots.collect::<Result<_, _>>()?;
    Ok(html! { div.pair { @for plot in &plots { (plot) } } })
}

/// Of many points the lowest and the highest of each stretch, in their order.
fn thin(points: Curve) -> Curve {
    if points.len() <= POINTS {
        return points;
    }
    let stretches = points.chunks(points.len().div_ceil(POINTS / 2));
    let ends = |stretch: &[(f64, f64)]| {
        let by = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let mut ends: Vec<(f64, f64)> = stretch
            .iter()
            .min_by(by)
            .into_iter()
            .chain(stretch.iter().max_by(by))
            .copied()
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        ends
    };
    stretches.flat_map(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_points_keep_peaks() {
        let points: Curve =
            (0..10_000).map(|i| (f64::from(i), if i == 5_003 { 9.0 } else { 1.0 })).collect();
        let thin = thin(points);
        assert!(thin.len() <= POINTS, "{}", thin.len());
        assert!(thin.contains(&(5_003.0, 9.0)));
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn a_message_has_its_mean_throughput() {
        let at = |us: u64| Time(us * 1_000_000);
        let row =
            FlowRow { start: at(10), finish: Some(at(20)), placed: 12_500, ..FlowRow::default() };
        let page = largest(&[row], 100.0).into_string();
        assert!(page.contains("10.0 Gb/s: 10 to 20 µs"), "{page}");
        assert_eq!(largest(&[], 1.0).into_string(), "");
    }
}
