//! The page that sets several runs side by side.

use std::path::Path;

use maud::html;
use metrics::Summary;

use crate::ReportError;
use crate::number::{bytes, count, number, percent};
use crate::page::{shell, table, warnings};
use crate::results::Results;
use crate::run::{completion_times, long_flows, slowdowns};

/// What a comparison keeps of a run: not the rows, of which there may be millions.
pub(crate) struct Curves {
    summary: Summary,
    command: String,
    fcts_us: Vec<f64>,
    slowdowns: Vec<f64>,
    long_flows_gbps: Vec<f64>,
}

impl Curves {
    /// Reads a result directory.
    pub(crate) fn read(dir: &Path) -> Result<Self, ReportError> {
        let results = Results::read(dir)?;
        Ok(Self {
            fcts_us: results.fcts_us(),
            slowdowns: results.slowdowns(),
            long_flows_gbps: results.long_flows_gbps(),
            summary: results.summary,
            command: results.manifest.command,
        })
    }
}

/// The page of `runs`, called by their labels.
pub(crate) fn page(labels: &[String], runs: &[Curves]) -> Result<String, ReportError> {
    let collect =
        |get: fn(&Curves) -> &Vec<f64>| runs.iter().map(|r| get(r).clone()).collect::<Vec<_>>();
    let long = collect(|r| &r.long_flows_gbps);
    let title = format!("{} runs compared", runs.len());
    let body = html! {
        header {
            h1 { (title) }
            @for (label, run) in labels.iter().zip(runs) {
                p.subtitle {
                    b { (label) } ": " (run.summary.scenario) ", seed " (run.summary.seed)
                }
            }
        }
        (warnings("Before you trust these numbers", &all_warnings(labels, runs)))
        h2 { "Numbers" }
        (table(&RESULTS.map(str::to_owned), &results(labels, runs)))
        p.note {
            "FCT is the completion time of measured messages, slowdown the same over that of the \
             message alone in the same fabric; utilization is goodput over the link rates of the \
             receivers in use."
        }
        (table(&PACKETS.map(str::to_owned), &packets(labels, runs)))
        p.note { "Packets and queues are over the whole run." }
        h2 { "Distributions" }
        div.pair {
            (completion_times(&collect(|r| &r.fcts_us), labels)?)
            (slowdowns(&collect(|r| &r.slowdowns), labels)?)
        }
        @if long.iter().any(|values| !values.is_empty()) { (long_flows(&long, labels)?) }
        h2 { "How to repeat these runs" }
        pre { (runs.iter().map(|r| r.command.as_str()).collect::<Vec<_>>().join("\n")) }
    };
    Ok(shell(&format!("{title} · Trimline"), &body))
}

fn all_warnings(labels: &[String], runs: &[Curves]) -> Vec<String> {
    let of = |(label, run): (&String, &Curves)| {
        run.summary.warnings.iter().map(|w| format!("{label}: {w}")).collect::<Vec<_>>()
    };
    labels.iter().zip(runs).flat_map(of).collect()
}

const RESULTS: [&str; 10] = [
    "Run",
    "Utilization",
    "FCT p50 (µs)",
    "FCT p99 (µs)",
    "FCT max (µs)",
    "Slowdown p50",
    "Slowdown p99",
    "Slowest long flow (Gb/s)",
    "Last completion (µs)",
    "Unfinished",
];

fn results(labels: &[String], runs: &[Curves]) -> Vec<Vec<String>> {
    let row = |(label, run): (&String, &Curves)| {
        let flows = &run.summary.flows;
        vec![
            label.clone(),
            percent(flows.utilization),
            number(flows.fct_us.p50),
            number(flows.fct_us.p99),
            number(flows.fct_us.max),
            number(flows.slowdown.p50),
            number(flows.slowdown.p99),
            number(flows.flow_goodput_gbps.min),
            number(flows.last_completion_us),
            count(flows.measured.unfinished),
        ]
    };
    labels.iter().zip(runs).map(row).collect()
}

const PACKETS: [&str; 8] = [
    "Run",
    "Data sent",
    "Retransmitted",
    "Trimmed",
    "Bounced",
    "Dropped",
    "ECN marked",
    "Longest queue",
];

fn packets(labels: &[String], runs: &[Curves]) -> Vec<Vec<String>> {
    let row = |(label, run): (&String, &Curves)| {
        let (packets, queues) = (&run.summary.packets, &run.summary.queue_bytes);
        vec![
            label.clone(),
            count(packets.data_sent),
            count(packets.retransmitted),
            count(packets.trimmed),
            count(packets.bounced),
            count(packets.dropped),
            count(packets.ecn_marked),
            queues.max.map_or_else(|| "–".to_owned(), bytes),
        ]
    };
    labels.iter().zip(runs).map(row).collect()
}
