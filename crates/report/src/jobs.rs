//! The part of a run's page about its jobs: blocks of a barrier, queries.

use maud::{Markup, html};
use metrics::{Drawn, JobRow, JobStats, job_times_us};

use crate::ReportError;
use crate::axis::Axis;
use crate::chart::{Chart, Overlay};
use crate::number::{count, number, percent};
use crate::page::{figure, table};
use crate::results::Results;

/// How long jobs took and what they had in time; nothing for a run without any.
pub(crate) fn jobs(results: &Results) -> Result<Markup, ReportError> {
    if results.jobs.is_empty() {
        return Ok(html! {});
    }
    Ok(html! {
        h2 { "Jobs" }
        div.pair { (times(&results.jobs)?) (by_table(results)) }
    })
}

/// The distribution of job times.
fn times(jobs: &[JobRow]) -> Result<Markup, ReportError> {
    let mut times: Vec<f64> = job_times_us(jobs.iter()).collect();
    times.sort_unstable_by(f64::total_cmp);
    let chart = Chart {
        title: "job times",
        x: Axis::around("time of a job (µs)", times.iter().copied(), None),
        y: Axis::linear("share of jobs", 0.0, 1.0),
        lines: vec![metrics::cdf(&times)],
        drawn: Drawn::Line,
        over: Overlay::default(),
    };
    let about = "A job is a piece of work of several messages: a block of a barrier, from its \
                 request to its last byte; a query, from its start to its answer.";
    figure("Time of jobs", &[], &chart, about, "No measured job completed.")
}

/// The numbers of all jobs and of those of each table that has a name.
fn by_table(results: &Results) -> Markup {
    let head = ["", "Completed", "Failed", "Goodput, Gb/s", "Median, µs", "p99, µs"];
    let head = head.into_iter().chain(["Link idle", "In time", "Worst"]).map(str::to_owned);
    let row = |name: &str, jobs: &JobStats| {
        let counts = [jobs.completed, jobs.failed].map(count);
        let numbers = [jobs.goodput_gbps, jobs.time_us.p50, jobs.time_us.p99].map(number);
        let shares = [jobs.idle_overall, jobs.quality.mean, jobs.quality.min].map(percent);
        let name = [name.to_owned()];
        name.into_iter().chain(counts).chain(numbers).chain(shares).collect()
    };
    let summary = &results.summary;
    let named = summary.traffic.iter().filter(|(_, table)| table.jobs != JobStats::default());
    let mut rows: Vec<Vec<String>> = named.map(|(name, table)| row(name, &table.jobs)).collect();
    rows.push(row("all", &summary.jobs));
    html! {
        div {
            h3 { "The same in numbers" }
            (table(&head.collect::<Vec<_>>(), &rows))
            p.note {
                "Link idle: the share of all jobs' time in which nothing arrived on the link of the \
                 host that waits. In time: the share of a job's results that came in time, the \
                 mean and the worst job. " code { "jobs.parquet" } " has every job."
            }
        }
    }
}
