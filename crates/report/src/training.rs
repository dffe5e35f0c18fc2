//! The part of a run's page about its training jobs: the steps of each rank over time, and what
//! each step waited for.

use std::collections::BTreeMap;

use maud::{Markup, html};
use metrics::{CriticalRow, Span, StepRow, Timeline};
use units::Dur;

use crate::number::number;
use crate::page::table;
use crate::results::Results;
use crate::timeline::picture;

/// A picture has so many lanes at most, and so many boxes.
const LANES: usize = 12;
const BOXES: usize = 80;
/// A box of less than this share of the picture has no label.
const LABELLED: f64 = 0.03;

/// Its training jobs; nothing for a run without any.
pub(crate) fn training(results: &Results) -> Markup {
    let jobs: BTreeMap<u16, Vec<&StepRow>> =
        results.steps.iter().fold(BTreeMap::new(), |mut jobs, row| {
            jobs.entry(row.traffic).or_default().push(row);
            jobs
        });
    html! {
        @if !jobs.is_empty() {
            h2 { "Training" }
            @for (traffic, rows) in &jobs { (job(results, *traffic, rows)) }
        }
    }
}

fn job(results: &Results, traffic: u16, rows: &[&StepRow]) -> Markup {
    let path: Vec<&CriticalRow> =
        results.critical.iter().filter(|row| row.traffic == traffic).collect();
    // Of equal ones the first.
    let slowest = path.chunk_by(|a, b| a.step == b.step).rev().max_by_key(|step| time(step));
    html! {
        (picture(&steps(traffic, rows)))
        @if let Some(step) = slowest { (picture(&critical(traffic, step))) }
        @if !path.is_empty() {
            h3 { "What steps waited for" }
            (waits(&path))
            p.note {
                "The way from a step's end back to that of the step before, as a sum over its pieces. "
                code { "critical.parquet" } " has every piece, and the message that came last; "
                code { "trimline explain DIR SRC:MSG" } " says which link held that up."
            }
        }
    }
}

/// How long a step's way is.
fn time(step: &[&CriticalRow]) -> Dur {
    step.iter().fold(Dur::ZERO, |all, row| all + row.time())
}

/// Ranks from the first to the last, evenly, as many as there is room for.
fn some_ranks(all: &[u32]) -> Vec<u32> {
    let step = all.len().div_ceil(LANES).max(1);
    all.iter().copied().step_by(step).collect()
}

/// The steps of each rank.
fn steps(traffic: u16, rows: &[&StepRow]) -> Timeline {
    let mut ranks: Vec<u32> = rows.iter().map(|row| row.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let shown = some_ranks(&ranks);
    let end = rows.iter().map(|row| row.end.as_us_f64()).fold(0.0, f64::max);
    let lane = |rank: &u32| {
        let of_rank = rows.iter().filter(|row| row.rank == *rank).take(BOXES);
        let spans = of_rank.map(|row| Span {
            from_us: row.start.as_us_f64(),
            to_us: row.end.as_us_f64(),
            label: label(row.time(), end, &format!("step {}", row.step)),
            accent: row.step % 2 == 0,
        });
        (format!("rank {rank}"), spans.collect())
    };
    Timeline {
        title: format!("Steps of the job of traffic table {traffic}"),
        about: format!(
            "When ranks were in which step: {} of {} ranks, the first {BOXES} steps.",
            shown.len(),
            ranks.len()
        ),
        lanes: shown.iter().map(lane).collect(),
    }
}

/// What the slowest step waited for: the ranks that most of the way goes through.
fn critical(traffic: u16, step: &[&CriticalRow]) -> Timeline {
    let begin = step.first().map_or(0.0, |row| row.start.as_us_f64());
    let end = step.last().map_or(0.0, |row| row.end.as_us_f64());
    let mut longest: Vec<&&CriticalRow> = step.iter().collect();
    longest.sort_by_key(|row| std::cmp::Reverse(row.time()));
    longest.truncate(BOXES);
    let mut lanes: BTreeMap<u32, (Dur, Vec<Span>)> = BTreeMap::new();
    for row in longest {
        let lane = lanes.entry(row.rank).or_default();
        lane.0 += row.time();
        lane.1.push(Span {
            from_us: row.start.as_us_f64() - begin,
            to_us: row.end.as_us_f64() - begin,
            label: label(row.time(), end - begin, row.name.as_deref().unwrap_or(&row.what)),
            accent: row.what == "work",
        });
    }
    let mut by_time: Vec<(u32, (Dur, Vec<Span>))> = lanes.into_iter().collect();
    by_time.sort_by_key(|(rank, (time, _))| (std::cmp::Reverse(*time), *rank));
    by_time.truncate(LANES);
    by_time.sort_by_key(|(rank, _)| *rank);
    let number = step.first().map_or(0, |row| row.step);
    Timeline {
        title: format!("What step {number} of traffic table {traffic} waited for"),
        about: "The slowest step, from the end of the one before it: work in the accent colour, messages \
                and collectives in the other, each at the rank that waited for it. Only the longest \
                pieces and the ranks with most of them."
            .to_owned(),
        lanes: by_time.into_iter().map(|(rank, (_, spans))| (format!("rank {rank}"), spans)).collect(),
    }
}

/// `text`, if a box of `time` has room for it in a picture of `whole` microseconds.
fn label(time: Dur, whole: f64, text: &str) -> String {
    if time.as_us_f64() < whole * LABELLED { String::new() } else { text.to_owned() }
}

/// A row for each step.
fn waits(path: &[&CriticalRow]) -> Markup {
    let head = ["Step", "time (µs)", "work", "messages", "collectives", "longest piece"];
    let row = |step: &[&CriticalRow]| {
        let us = |time: Dur| number(Some(time.as_us_f64()));
        let of = |what: &str| {
            let times = step.iter().filter(|row| row.what == what).map(|row| row.time());
            us(times.fold(Dur::ZERO, |all, time| all + time))
        };
        let longest = step.iter().max_by_key(|row| row.time());
        let longest = longest.map_or(String::new(), |row| {
            let name = row.name.as_deref().unwrap_or(&row.what);
            let peer = row.peer.map_or(String::new(), |peer| format!(", for rank {peer}"));
            format!("{name} of rank {}{peer}: {} µs", row.rank, us(row.time()))
        });
        let first = step.first().map_or(String::new(), |row| match row.traffic {
            0 => row.step.to_string(),
            traffic => format!("{} (table {traffic})", row.step),
        });
        vec![first, us(time(step)), of("work"), of("message"), of("collective"), longest]
    };
    let rows: Vec<Vec<String>> = path.chunk_by(|a, b| a.step == b.step).map(row).collect();
    table(&head.map(String::from), &rows)
}
