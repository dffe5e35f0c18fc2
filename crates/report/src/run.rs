//! The page of one run.

use maud::{Markup, html};
use metrics::{
    BY_PHASE, BY_SIZE_ERROR, BY_TRAFFIC, Calibration, LinkRow, Metric, Numbers, Phase, Plot,
    SeriesRow, SizeError, SkipStats, Summary, Verified, metrics_of, metrics_under, nearest_rank,
    size_range,
};
use serde_json::Value;

use crate::ReportError;
use crate::axis::Axis;
use crate::chart::Chart;
use crate::flows::{largest, traced};
use crate::heat_map::heat_map;
use crate::jobs::jobs;
use crate::life::life;
use crate::number::{bytes, count, number, percent};
use crate::numbers::{bare_unit, by_row, head, measured, shown};
use crate::page::{Tile, code, figure, shell, table, tiles, warnings};
use crate::results::{Curve, Curves, OfSize, Results};
use crate::topology::map;
use crate::training::training;

/// The page of one run.
pub(crate) fn page(results: &Results) -> Result<String, ReportError> {
    let summary = &results.summary;
    let body = html! {
        (header(results))
        (warnings("Before you trust these numbers", &summary.warnings))
        (tiles(&headline(summary)))
        h2 { "Messages" }
        (messages(results)?)
        (calibration(&summary.calibration))
        (traffic(summary))
        (largest(&results.curves.largest, summary.sim_time_us))
        (flow_trace(results)?)
        (life(&summary.life_us, &results.slowest()?))
        (jobs(results)?)
        (training(results))
        (phases(&summary.phases))
        h2 { "Fabric" }
        div.pair {
            (queues(results)?)
            (goodput(results)?)
        }
        div.pair {
            (tiers_over_time(results)?)
            (in_flight(results)?)
        }
        (map(&results.links))
        (tier_table(&results.links))
        (queues_over_time(results)?)
        h3 { "Packets" }
        (packets(summary))
        (scenario(results))
    };
    Ok(shell(&format!("{} · Trimline", summary.scenario), &body))
}

fn messages(results: &Results) -> Result<Markup, ReportError> {
    let curves = &results.curves;
    let long = &curves.long_flows_gbps;
    Ok(html! {
        @if !long.is_empty() { (long_flows(std::slice::from_ref(long), &[])?) }
        @if curves.fcts_us.is_empty() {
            p.empty {
                "No measured message completed, so there are no completion times and slowdowns."
            }
        } @else {
            div.pair {
                (completion_times(&[curves], &[])?)
                (slowdowns(&[curves], &[])?)
            }
            (by_size(&results.summary)?)
        }
    })
}

/// Windows, rates and round trips of chosen messages, or how to get them.
fn flow_trace(results: &Results) -> Result<Markup, ReportError> {
    Ok(match results.flow_trace()? {
        Some(rows) => html! { h3 { "Chosen messages over time" } (traced(&rows)?) },
        None => html! {
            p.note {
                "Windows, rates and round trips of a message over time: run with "
                code { "--trace flows@SRC:MSG" } "."
            }
        },
    })
}

/// The queues of single ports, or how to get them.
fn queues_over_time(results: &Results) -> Result<Markup, ReportError> {
    Ok(match results.queues()? {
        Some(rows) => heat_map(&results.links, &rows, results.summary.sim_time_us),
        None => html! {
            p.note {
                "Queues of single ports over time: run with " code { "--trace queues" } "."
            }
        },
    })
}

/// What faults did to completion times.
fn phases(phases: &[Phase]) -> Markup {
    let rows: Vec<_> =
        (1..).zip(phases).map(|(n, phase): (u32, _)| (n.to_string(), Numbers::of(phase))).collect();
    html! {
        @if !phases.is_empty() {
            h3 { "Completion times by phase of the fault script" }
            (by_row("Phase", &metrics_of(&BY_PHASE), &rows))
        }
    }
}

/// How far flow level is from packets, on the messages of the sample that were held out.
fn calibration(of: &Calibration) -> Markup {
    let row = |by: &SizeError| (size_range(by.from_bytes, by.to_bytes), Numbers::of(by));
    let rows: Vec<_> = of.by_size.iter().map(row).collect();
    html! {
        @if let (Some(level), Some(why)) = (&of.level, &of.why) {
            h3 { "Level: " (level) }
            p.note { (why) }
        }
        @if !rows.is_empty() { (by_row("Message size", &metrics_of(&BY_SIZE_ERROR), &rows)) }
    }
}

/// The numbers of each traffic table that has a name.
fn traffic(summary: &Summary) -> Markup {
    let named = summary.traffic.iter().map(|(name, table)| (name.clone(), Numbers::of(table)));
    let rows: Vec<_> = named.collect();
    html! {
        @if !rows.is_empty() {
            h3 { "By traffic table" }
            (by_row("Traffic", &metrics_of(&BY_TRAFFIC), &rows))
        }
    }
}

fn header(results: &Results) -> Markup {
    let (summary, versions) = (&results.summary, &results.manifest.versions);
    let measured = &summary.flows.measured;
    html! {
        header {
            h1 { (summary.scenario) }
            p.subtitle {
                "Trimline " (versions.trimline)
                @if let Some(git) = &versions.git { " (" (git) ")" }
                " · seed " (summary.seed) " · digest " code { (summary.digest) }
            }
            p.subtitle {
                "Simulated " (number(Some(summary.sim_time_us))) " µs, measured from "
                (number(Some(measured.from_us))) " to " (number(Some(measured.to_us))) " µs · "
                (count(summary.packet_hops)) " packet-hops in " (number(Some(summary.wall_s)))
                " s"
            }
            @if summary.skipped.count > 0 { p.subtitle { (skipped(&summary.skipped)) } }
        }
    }
}

/// What was skipped, and what that changes, if that was measured.
fn skipped(of: &SkipStats) -> String {
    let per_cent = |share: f64| format!("{:.2} %", share * 100.0);
    let said = format!("{} of the time skipped, in {} pieces", per_cent(of.share), of.count);
    let Verified { share: Some(share), wall_s, fct_error, .. } = of.verify else { return said };
    let error = |of: Option<f64>| of.map_or_else(|| "-".to_owned(), per_cent);
    format!(
        "{said}; against a run that simulates {} of that, in {} s, completion times are off by {} \
         (mean), {} (p50), {} (p99)",
        per_cent(share),
        number(wall_s),
        error(fct_error.mean),
        error(fct_error.p50),
        error(fct_error.p99),
    )
}

/// The headline numbers, each with those that stand below it.
const HEADLINE: [(&str, &[&str]); 9] = [
    ("utilization", &["goodput_gbps"]),
    ("flow_goodput_gbps.min", &["flow_goodput_gbps.p50", "flow_goodput_gbps.mean"]),
    ("fct_us.p50", &["fct_us.mean", "fct_us.p90"]),
    ("fct_us.p99", &["fct_us.max"]),
    ("slowdown.p99", &["slowdown.p50", "slowdown.mean"]),
    ("last_completion_us", &[]),
    ("messages.completed", &["messages.submitted", "measured.unfinished"]),
    (
        "messages.failed.total",
        &[
            "messages.failed.timed_out",
            "messages.failed.refused",
            "messages.failed.cancelled",
            "messages.failed.forgotten",
        ],
    ),
    ("queue_bytes.max", &["queue_bytes.p99"]),
];

/// What there is of the headline numbers.
fn headline(summary: &Summary) -> Vec<Tile> {
    let numbers = Numbers::of(summary);
    let beside = |metric: &Metric| {
        let value = metric.value(&numbers)?;
        Some(format!("{} {}", metric.label(), measured(metric, Some(value))))
    };
    let tile = |(key, others): (&str, &[&str])| {
        let metric = metrics_of(&[key]).pop()?;
        let value = metric.value(&numbers)?;
        // That nothing failed is no headline.
        if key == "messages.failed.total" && value.as_u64() == Some(0) {
            return None;
        }
        let about: Vec<String> = metrics_of(others).iter().filter_map(beside).collect();
        let (value, unit) = (shown(&metric, Some(value)), bare_unit(&metric));
        Some(Tile { name: metric.label(), value, unit, about: about.join(", ") })
    };
    HEADLINE.into_iter().filter_map(tile).collect()
}

/// The distribution of completion times of each run.
pub(crate) fn completion_times(runs: &[&Curves], legend: &[String]) -> Result<Markup, ReportError> {
    let lines: Vec<Curve> = runs.iter().map(|run| run.fcts_us.clone()).collect();
    let (x, share) = ("completion time (µs)", "share of messages");
    let mut chart = Chart::distribution("completion times", x, share, &lines);
    chart.parts = by_sizes(runs, |of| &of.fcts_us);
    let about = "Share of the measured messages that completed within a time: from submission to \
                 the last byte placed at the receiver.";
    let empty = "No measured message completed, so there are no completion times.";
    figure("Completion time", legend, &chart, about, empty)
}

/// The distribution of slowdowns of each run.
pub(crate) fn slowdowns(runs: &[&Curves], legend: &[String]) -> Result<Markup, ReportError> {
    let lines: Vec<Curve> = runs.iter().map(|run| run.slowdowns.clone()).collect();
    let (x, share) = ("slowdown (×)", "share of messages");
    let mut chart = Chart::distribution("slowdowns", x, share, &lines);
    chart.parts = by_sizes(runs, |of| &of.slowdowns);
    let about = "Completion time over that of the same message alone in the same fabric: 1 is as \
                 fast as can be.";
    let empty = "No measured message completed, so there are no slowdowns.";
    figure("Slowdown", legend, &chart, about, empty)
}

/// For each range of sizes that a run has messages of, a curve of each run.
fn by_sizes(runs: &[&Curves], get: fn(&OfSize) -> &Curve) -> Vec<(String, Vec<Curve>)> {
    let mut names: Vec<&str> = Vec::new();
    for of in runs.iter().flat_map(|run| &run.by_size) {
        if !names.contains(&of.sizes.as_str()) {
            names.push(&of.sizes);
        }
    }
    let of_run = |run: &&Curves, name: &str| {
        let of = run.by_size.iter().find(|of| of.sizes == name);
        of.map(get).cloned().unwrap_or_default()
    };
    let part = |name: &str| runs.iter().map(|run| of_run(run, name)).collect();
    names.into_iter().map(|name| (name.to_owned(), part(name))).collect()
}

/// The distribution of the goodput of long flows of each run.
pub(crate) fn long_flows(runs: &[Curve], legend: &[String]) -> Result<Markup, ReportError> {
    let (x, share) = ("goodput (Gb/s)", "share of flows");
    let chart = Chart::distribution("goodput of long flows", x, share, runs);
    let about = "Share of the long flows (unbounded, or larger than the measurement is long) that \
                 received at most so much: the steeper, the fairer.";
    figure("Goodput of long flows", legend, &chart, about, "There are no long flows.")
}

fn by_size(summary: &Summary) -> Result<Markup, ReportError> {
    let buckets = &summary.flows.slowdown_by_size;
    let names: Vec<String> = buckets.iter().map(|b| size_range(b.from_bytes, b.to_bytes)).collect();
    let line = |get: fn(&metrics::SizeBucket) -> Option<f64>| {
        buckets.iter().enumerate().filter_map(|(i, b)| Some((i as f64, get(b)?))).collect()
    };
    let lines: Vec<Vec<(f64, f64)>> = vec![line(|b| b.p50), line(|b| b.p99)];
    let x = Axis::names("message size", names.clone());
    let y = Axis::around("slowdown (×)", lines.iter().flatten().map(|p| p.1), None);
    let chart = Chart::new("slowdown by size", x, y, lines, Plot::Points);
    let legend = ["p50", "p99"].map(str::to_owned);
    let about = "Only sizes that occur have a dot.";
    let empty = "No measured message completed, so there are no slowdowns.";
    let head = ["Message size", "messages", "mean", "p50", "p99"].map(str::to_owned);
    let rows: Vec<Vec<String>> = buckets
        .iter()
        .zip(names)
        .map(|(b, name)| vec![name, count(b.count), number(b.mean), number(b.p50), number(b.p99)])
        .collect();
    let plot = figure("Slowdown by message size", &legend, &chart, about, empty)?;
    Ok(html! { div.pair { (plot) div { h3 { "The same in numbers" } (table(&head, &rows)) } } })
}

/// A time axis over the run, in microseconds or milliseconds, and what to divide picoseconds by.
fn time_axis(rows: &[SeriesRow]) -> (Axis, f64) {
    let end = rows.last().map_or(0, |r| r.at.0) as f64;
    let (label, unit) =
        if end > 5e9 { ("simulated time (ms)", 1e9) } else { ("simulated time (µs)", 1e6) };
    (Axis::linear(label, 0.0, end / unit), unit)
}

const NO_SERIES: &str = "The run ended before the first sample.";

/// A plot of numbers from zero up, over the run.
struct OverTime<'a> {
    heading: &'static str,
    /// What the vertical axis shows, with its unit.
    y: &'a str,
    /// A curve each.
    lines: &'a [fn(&SeriesRow) -> f64],
    legend: &'a [&'a str],
    about: &'a str,
}

impl OverTime<'_> {
    fn figure(&self, results: &Results) -> Result<Markup, ReportError> {
        let rows = results.series.rows();
        let (x, unit) = time_axis(rows);
        let line = |get: &fn(&SeriesRow) -> f64| -> Vec<(f64, f64)> {
            rows.iter().map(|r| (r.at.0 as f64 / unit, get(r))).collect()
        };
        let lines: Vec<_> = self.lines.iter().map(line).collect();
        let largest = lines.iter().flatten().map(|p| p.1).fold(0.0, f64::max);
        let y = Axis::linear(self.y, 0.0, largest * 1.05);
        let chart = Chart::new(self.heading, x, y, lines, Plot::Line);
        let legend: Vec<String> = self.legend.iter().map(|&name| name.to_owned()).collect();
        figure(self.heading, &legend, &chart, self.about, NO_SERIES)
    }
}

fn queues(results: &Results) -> Result<Markup, ReportError> {
    let plot = OverTime {
        heading: "Queue occupancy",
        y: "queue (KB)",
        lines: &[
            |r| r.queues.max as f64 / 1e3,
            |r| r.queues.p99 as f64 / 1e3,
            |r| r.queues.p50 as f64 / 1e3,
        ],
        legend: &["max", "p99", "p50"],
        about: "Bytes waiting at switch ports, over all ports.",
    };
    plot.figure(results)
}

fn goodput(results: &Results) -> Result<Markup, ReportError> {
    let plot = OverTime {
        heading: "Goodput",
        y: "goodput (Gb/s)",
        lines: &[|r| r.goodput_gbps],
        legend: &[],
        about: "Payload placed at all receivers together.",
    };
    plot.figure(results)
}

fn in_flight(results: &Results) -> Result<Markup, ReportError> {
    let plot = OverTime {
        heading: "Messages in flight",
        y: "messages",
        lines: &[|r| r.in_flight as f64],
        legend: &[],
        about: "Submitted and not yet completed: if this keeps growing, the load is more than \
                the network carries.",
    };
    plot.figure(results)
}

fn tiers_over_time(results: &Results) -> Result<Markup, ReportError> {
    let (rows, tiers) = (results.series.rows(), results.series.tiers());
    let (x, unit) = time_axis(rows);
    let line = |tier: usize| {
        let point = |r: &SeriesRow| Some((r.at.0 as f64 / unit, *r.tier_utilization.get(tier)?));
        rows.iter().filter_map(point).collect()
    };
    let lines = (0..tiers.len()).map(line).collect();
    let y = Axis::linear("mean utilization", 0.0, 1.0);
    let chart = Chart::new("link utilization", x, y, lines, Plot::Line);
    let about = "Share of the time that the links of a tier transmit, headers included, the mean \
                 over its links.";
    let empty = "The run ended before the first sample, or its links have no tiers.";
    figure("Link utilization", tiers, &chart, about, empty)
}

fn tier_table(links: &[LinkRow]) -> Markup {
    // In the order of the topology.
    let mut tiers: Vec<(&str, Vec<&LinkRow>)> = Vec::new();
    for link in links {
        match tiers.iter_mut().find(|(tier, _)| *tier == link.tier) {
            Some((_, links)) => links.push(link),
            None => tiers.push((&link.tier, vec![link])),
        }
    }
    let head = [
        "Tier",
        "Links",
        "utilization min",
        "p50",
        "max",
        "max queue",
        "dropped",
        "trimmed",
        "bounced",
        "ECN-marked",
        "PFC pauses",
        "max pause time (µs)",
    ];
    let row = |(tier, links): &(&str, Vec<&LinkRow>)| {
        let mut used: Vec<f64> = links.iter().filter_map(|l| l.utilization).collect();
        used.sort_unstable_by(f64::total_cmp);
        let sum = |get: fn(&LinkRow) -> u64| count(links.iter().map(|l| get(l)).sum());
        let longest = links.iter().map(|l| l.max_queue_bytes).max().unwrap_or(0);
        let longest_pause = links.iter().map(|l| l.longest_pause).max().unwrap_or_default();
        vec![
            (*tier).to_owned(),
            count(links.len() as u64),
            percent(used.first().copied()),
            percent(nearest_rank(&used, 500)),
            percent(used.last().copied()),
            bytes(longest),
            sum(|l| l.dropped),
            sum(|l| l.trimmed),
            sum(|l| l.bounced),
            sum(|l| l.marked),
            sum(|l| l.pauses),
            number(Some(longest_pause.as_us_f64())),
        ]
    };
    let rows: Vec<Vec<String>> = tiers.iter().map(row).collect();
    html! {
        h3 { "Links by tier" }
        @if rows.is_empty() {
            p.empty { "The result has no links." }
        } @else {
            (table(&head.map(str::to_owned), &rows))
            p.note {
                "Utilization is over the measurement; queues and packets are over the whole run. "
                code { "links.parquet" } " has every link."
            }
        }
    }
}

/// Every count of packets, of timeouts and of flow control that there is.
fn packets(summary: &Summary) -> Markup {
    let numbers = Numbers::of(summary);
    let metrics = ["packets.", "timeouts.", "shared_buffer.", "pfc."].map(metrics_under);
    let rows: Vec<(Metric, String)> = metrics
        .into_iter()
        .flatten()
        .filter_map(|metric| Some((metric, shown(&metric, Some(metric.value(&numbers)?)))))
        .collect();
    html! {
        div.scroll tabindex="0" role="group" aria-label="Table: packets" {
            table {
                thead { tr { th { "Packets" } th { "Value" } th.text { "Meaning" } } }
                tbody {
                    @for (metric, value) in rows {
                        tr {
                            th scope="row" { (head(&metric)) }
                            td { (value) }
                            td.text.wide { (metric.about().replace('`', "")) }
                        }
                    }
                }
            }
        }
    }
}

fn scenario(results: &Results) -> Markup {
    let manifest = &results.manifest;
    let mut lines = Vec::new();
    flatten("", &manifest.scenario, &mut lines);
    html! {
        h2 { "How to repeat this run" }
        (code(&manifest.command))
        p.note {
            "Same scenario, same seed, same engine version (" (manifest.versions.engine)
            "): same digest."
        }
        details {
            summary { "The scenario as it was run" }
            (code(&lines.join("\n")))
        }
    }
}

/// The scenario as one `path = value` line per key, as `--set` takes them.
fn flatten(path: &str, value: &Value, lines: &mut Vec<String>) {
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, value)| flatten(&join(key), value, lines));
        }
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            for (i, item) in items.iter().enumerate() {
                flatten(&join(&i.to_string()), item, lines);
            }
        }
        _ if path.is_empty() => lines.push(value.to_string()),
        _ => lines.push(format!("{path} = {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_one_line_per_key() {
        let scenario = serde_json::json!({
            "seed": 1,
            "topology": {"kind": "fat_tree", "k": 12},
            "faults": [{"link": "a", "at": "1us"}],
            "sizes": ["1KB", "2KB"],
        });
        let mut lines = Vec::new();
        flatten("", &scenario, &mut lines);
        lines.sort_unstable();
        let expected = [
            "faults.0.at = \"1us\"",
            "faults.0.link = \"a\"",
            "seed = 1",
            "sizes = [\"1KB\",\"2KB\"]",
            "topology.k = 12",
            "topology.kind = \"fat_tree\"",
        ];
        assert_eq!(lines, expected);
    }
}
