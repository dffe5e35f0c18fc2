//! The table of results: each number of `summary.json` once, with its key, label, unit and one
//! sentence. The table on stdout, the pages, the metrics of studies and docs/results.md take their
//! words from here.

use serde::Serialize;
use serde_json::Value;

mod table;

use table::ENTRIES;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A text.
    Text,
    /// A count of messages, packets, events, jobs; or a ratio.
    Plain,
    /// A part of one, shown in percent.
    Share,
    /// Microseconds.
    Us,
    /// Seconds.
    Seconds,
    /// Gigabits per second.
    Gbps,
    /// Bytes.
    Bytes,
    /// Per second.
    PerSecond,
}

impl Unit {
    /// Its sign, as docs show it; empty for what has none.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Text | Self::Plain => "",
            Self::Share => "0 to 1",
            Self::Us => "µs",
            Self::Seconds => "s",
            Self::Gbps => "Gb/s",
            Self::Bytes => "B",
            Self::PerSecond => "1/s",
        }
    }
}

/// When the table on stdout shows a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// In every run.
    Always,
    /// If there is one.
    IfThere,
    /// If there is one, and it is not zero.
    IfNotZero,
}

/// One line of the table: a number, or several parts of one kind.
#[derive(Debug)]
struct Entry {
    key: &'static str,
    /// The last piece of the keys, and the last word of the labels.
    parts: &'static [&'static str],
    label: &'static str,
    unit: Unit,
    /// The parts on stdout, and when; `""` stands for a number without parts.
    shown: (&'static [&'static str], Shown),
    about: &'static str,
}

impl Entry {
    /// Its metrics.
    fn metrics(&'static self) -> impl Iterator<Item = Metric> {
        let single: &[&str] = if self.parts.is_empty() { &[""] } else { &[] };
        self.parts.iter().chain(single).map(move |part| Metric { entry: self, part })
    }

    /// The line of docs/results.md.
    fn documented(&self) -> String {
        let parts = self.parts.iter().enumerate().map(|(i, part)| match i {
            0 => format!("`{}.{part}`", self.key),
            _ => format!("`.{part}`"),
        });
        let keys: Vec<String> = match self.parts {
            [] => vec![format!("`{}`", self.key)],
            _ => parts.collect(),
        };
        let Self { label, unit, about, .. } = self;
        format!("| {} | {label} | {} | {about} |", keys.join(", "), unit.sign())
    }
}

/// A number of `summary.json`.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    entry: &'static Entry,
    part: &'static str,
}

impl Metric {
    /// Its place in `summary.json`, with dots: `fct_us.p99`.
    #[must_use]
    pub fn key(&self) -> String {
        joined(self.entry.key, ".", self.part)
    }

    /// What it is called: `completion time p99`.
    #[must_use]
    pub fn label(&self) -> String {
        joined(self.entry.label, " ", self.part)
    }

    /// The label with the unit of a bare number: `completion time p99 (µs)`.
    #[must_use]
    pub fn head(&self) -> String {
        match self.unit() {
            Unit::Text | Unit::Plain | Unit::Share => self.label(),
            unit => format!("{} ({})", self.label(), unit.sign()),
        }
    }

    /// Its unit.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        self.entry.unit
    }

    /// One sentence on what it is.
    #[must_use]
    pub const fn about(&self) -> &'static str {
        self.entry.about
    }

    /// Its value in a summary, or in a part of one; of `phases[].from_us` in a phase. `None` where
    /// there is nothing to state.
    #[must_use]
    pub fn value<'n>(&self, numbers: &'n Numbers) -> Option<&'n Value> {
        let key = self.key();
        let inside = key.rsplit("[].").next().unwrap_or_default();
        let path = format!("/{}", inside.replace('.', "/"));
        numbers.0.pointer(&path).filter(|value| !value.is_null())
    }

    /// Whether the table on stdout shows it for these numbers.
    #[must_use]
    pub fn is_shown(&self, numbers: &Numbers) -> bool {
        let (parts, when) = self.entry.shown;
        parts.contains(&self.part)
            && match (when, self.value(numbers)) {
                (Shown::Always, _) => true,
                (Shown::IfThere, value) => value.is_some(),
                (Shown::IfNotZero, value) => value.is_some_and(|v| v.as_f64() != Some(0.0)),
            }
    }
}

fn joined(a: &str, between: &str, b: &str) -> String {
    if b.is_empty() { a.to_owned() } else { format!("{a}{between}{b}") }
}

/// The numbers of a summary, or of a part of one, to be asked for by [`Metric`].
#[derive(Clone, Debug)]
pub struct Numbers(Value);

impl Numbers {
    /// Those of `summary` or of a part of it.
    #[must_use]
    pub fn of(summary: &impl Serialize) -> Self {
        // Structs of numbers and texts: this cannot fail.
        Self(serde_json::to_value(summary).unwrap_or_default())
    }
}

/// All metrics, in the order of the table.
pub fn all_metrics() -> impl Iterator<Item = Metric> {
    ENTRIES.iter().flat_map(Entry::metrics)
}

/// The metrics with these keys, in this order.
pub fn metrics_of(keys: &[&str]) -> Vec<Metric> {
    let find = |key: &&str| all_metrics().find(|metric| metric.key() == **key);
    keys.iter().filter_map(find).collect()
}

/// The metrics whose keys begin with `path`, as they are called inside what stands there.
pub fn metrics_under(path: &str) -> impl Iterator<Item = Metric> {
    all_metrics().filter(move |metric| metric.entry.key.starts_with(path))
}

/// What tables by `[[traffic]]` table show of each: keys inside
/// [`TrafficStats`](crate::TrafficStats).
pub const BY_TRAFFIC: [&str; 18] = [
    "messages.completed",
    "messages.submitted",
    "messages.failed.total",
    "fct_us.p50",
    "fct_us.p99",
    "fct_us.max",
    "flow_goodput_gbps.mean",
    "jobs.completed",
    "jobs.failed",
    "jobs.time_us.p50",
    "jobs.time_us.p99",
    "jobs.quality.mean",
    "steps.completed",
    "steps.time_us.p50",
    "steps.time_us.max",
    "steps.alone_us.p50",
    "steps.slowdown.p50",
    "steps.slowdown.max",
];

/// What tables by phase of the fault script show of each [`Phase`](crate::Phase).
pub const BY_PHASE: [&str; 9] = [
    "phases[].from_us",
    "phases[].what",
    "phases[].submitted",
    "phases[].carried_over",
    "phases[].failed",
    "phases[].fct_us.p50",
    "phases[].fct_us.p99",
    "phases[].fct_us.max",
    "phases[].goodput_gbps",
];

/// What tables by size of a sample show of each [`SizeError`](crate::SizeError).
pub const BY_SIZE_ERROR: [&str; 7] = [
    "calibration.by_size[].count",
    "calibration.by_size[].uncorrected.p50",
    "calibration.by_size[].uncorrected.mean",
    "calibration.by_size[].uncorrected.p99",
    "calibration.by_size[].corrected.p50",
    "calibration.by_size[].corrected.mean",
    "calibration.by_size[].corrected.p99",
];

/// The lines of docs/results.md on `summary.json`.
#[must_use]
pub fn documented_metrics() -> String {
    let head = "| key | label | unit | definition |\n|---|---|---|---|\n".to_owned();
    ENTRIES.iter().fold(head, |text, entry| text + &entry.documented() + "\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Failed, FlowStats, Messages, Phase, Summary, TrafficStats};

    #[test]
    fn lists_of_keys_name_metrics() {
        assert_eq!(metrics_of(&BY_TRAFFIC).len(), BY_TRAFFIC.len());
        assert_eq!(metrics_of(&BY_PHASE).len(), BY_PHASE.len());
        assert_eq!(metrics_of(&BY_SIZE_ERROR).len(), BY_SIZE_ERROR.len());
        let phase = Numbers::of(&Phase { from_us: 7.0, submitted: 1, ..Phase::default() });
        let found = metrics_of(&BY_PHASE).iter().filter_map(|m| m.value(&phase).cloned()).count();
        assert_eq!(found, 5, "without completion times and goodput");
        let table = Numbers::of(&TrafficStats::default());
        assert!(metrics_of(&BY_TRAFFIC)[0].value(&table).is_some());
    }

    #[test]
    fn a_label_names_one_number_of_a_run() {
        let of_run = all_metrics().filter(|metric| !metric.key().contains("[]"));
        let labels: Vec<String> = of_run.map(|metric| metric.label()).collect();
        let once: BTreeSet<&String> = labels.iter().collect();
        assert_eq!(once.len(), labels.len());
        assert!(all_metrics().all(|metric| !metric.about().is_empty()));
    }

    #[test]
    fn what_is_not_there_is_not_shown() {
        let shown = |summary: &Summary| -> Vec<String> {
            let numbers = Numbers::of(summary);
            all_metrics().filter(|m| m.is_shown(&numbers)).map(|m| m.head()).collect()
        };
        let usual = shown(&Summary::default());
        assert!(usual.contains(&"completion time p99 (µs)".to_owned()), "{usual:?}");
        assert!(!usual.iter().any(|label| label.contains("failed")), "{usual:?}");
        let failed = Failed { total: 2, timed_out: 2, ..Failed::default() };
        let messages = Messages { failed, ..Messages::default() };
        let flows = FlowStats { messages, ..FlowStats::default() };
        let more = shown(&Summary { flows, ..Summary::default() });
        assert_eq!(more.len(), usual.len() + 2, "the sum and the cause");
        assert!(more.contains(&"failed: timed out".to_owned()), "{more:?}");
    }

    /// docs/results.md has the lines that this table makes. `TRIMLINE_BLESS=1` writes them there.
    #[test]
    fn the_docs_have_this_table() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
        let text = std::fs::read_to_string(page).unwrap();
        let (before, rest) = text.split_once("| key | label |").expect("the table's head");
        let end = rest.find("\n\n").expect("the table's end") + 1;
        let whole = format!("{before}{}{}", documented_metrics(), &rest[end..]);
        if std::env::var_os("TRIMLINE_BLESS").is_some() {
            std::fs::write(page, &whole).unwrap();
        }
        assert!(text == whole, "docs/results.md: run this test with TRIMLINE_BLESS=1");
    }
}
