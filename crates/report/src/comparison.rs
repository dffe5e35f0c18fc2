//! The page that sets several runs side by side.

use std::path::Path;

use maud::{Markup, html};
use metrics::{Numbers, Summary, metrics_of};

use crate::ReportError;
use crate::life::compared;
use crate::numbers::by_row;
use crate::page::{code, shell, warnings};
use crate::results::{Curves, Results};
use crate::run::{completion_times, long_flows, slowdowns};

/// What a comparison keeps of a run: not the rows, of which there may be millions.
pub(crate) struct Compared {
    summary: Summary,
    command: String,
    curves: Curves,
}

impl Compared {
    /// Reads a result directory.
    pub(crate) fn read(dir: &Path) -> Result<Self, ReportError> {
        let results = Results::read(dir)?;
        Ok(Self {
            curves: results.curves,
            summary: results.summary,
            command: results.manifest.command,
        })
    }
}

/// The page of `runs`, called by their labels.
pub(crate) fn page(labels: &[String], runs: &[Compared]) -> Result<String, ReportError> {
    let curves: Vec<&Curves> = runs.iter().map(|run| &run.curves).collect();
    let long: Vec<_> = curves.iter().map(|run| run.long_flows_gbps.clone()).collect();
    let summaries = runs.iter().map(|run| Numbers::of(&run.summary));
    let numbers: Vec<(String, Numbers)> = labels.iter().cloned().zip(summaries).collect();
    let title = format!("{} runs compared", runs.len());
    let body = html! {
        header {
            h1 { (title) }
            (which(labels, runs))
        }
        (warnings("Before you trust these numbers", &all_warnings(labels, runs)))
        h2 { "Distributions" }
        div.pair {
            (completion_times(&curves, labels)?)
            (slowdowns(&curves, labels)?)
        }
        @if long.iter().any(|values| !values.is_empty()) { (long_flows(&long, labels)?) }
        h2 { "Numbers" }
        (by_row("Run", &metrics_of(&RESULTS), &numbers))
        p.note {
            "Completion times are of measured messages, slowdown the same over that of the \
             message alone in the same fabric; utilization is goodput over the link rates of the \
             receivers in use."
        }
        (by_row("Run", &metrics_of(&PACKETS), &numbers))
        p.note { "Packets and queues are over the whole run." }
        (compared(&numbers))
        h2 { "How to repeat these runs" }
        (code(&runs.iter().map(|r| r.command.as_str()).collect::<Vec<_>>().join("\n")))
    };
    Ok(shell(&format!("{title} · Trimline"), &body))
}

/// The scenarios and seeds that are compared.
fn which(labels: &[String], runs: &[Compared]) -> Markup {
    let list = html! {
        @for (label, run) in labels.iter().zip(runs) {
            p.subtitle { b { (label) } ": " (run.summary.scenario) ", seed " (run.summary.seed) }
        }
    };
    html! {
        @if runs.len() > 8 { details { summary { "Which runs" } (list) } } @else { (list) }
    }
}

fn all_warnings(labels: &[String], runs: &[Compared]) -> Vec<String> {
    let of = |(label, run): (&String, &Compared)| {
        run.summary.warnings.iter().map(|w| format!("{label}: {w}")).collect::<Vec<_>>()
    };
    labels.iter().zip(runs).flat_map(of).collect()
}

/// What the first table sets side by side.
const RESULTS: [&str; 12] = [
    "utilization",
    "fct_us.p50",
    "fct_us.p99",
    "fct_us.max",
    "slowdown.p50",
    "slowdown.p99",
    "flow_goodput_gbps.min",
    "last_completion_us",
    "messages.completed",
    "messages.failed.total",
    "measured.unfinished",
    "measured.failed",
];

/// What the second does.
const PACKETS: [&str; 9] = [
    "packets.data_sent",
    "packets.retransmitted",
    "packets.trimmed",
    "packets.bounced",
    "packets.dropped",
    "packets.ecn_marked",
    "packets.pfc_pauses",
    "timeouts.total",
    "queue_bytes.max",
];
