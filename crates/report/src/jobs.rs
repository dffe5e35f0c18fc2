//! The part of a run's page about its jobs: blocks of a barrier, queries.

use maud::{Markup, html};
use metrics::{JobRow, JobStats, Numbers, job_times_us, metrics_of};

use crate::ReportError;
use crate::chart::Chart;
use crate::numbers::by_row;
use crate::page::figure;
use crate::results::Results;

/// How long jobs took and what they had in time; nothing for a run without any.
pub(crate) fn jobs(results: &Results) -> Result<Markup, ReportError> {
    if results.jobs.is_empty() {
        return Ok(html! {});
    }
    Ok(html! {
        h2 { "Jobs" }
        (times(&results.jobs)?)
        (by_table(results))
    })
}

/// The distribution of job times.
fn times(jobs: &[JobRow]) -> Result<Markup, ReportError> {
    let mut times: Vec<f64> = job_times_us(jobs.iter()).collect();
    times.sort_unstable_by(f64::total_cmp);
    let x = "time of a job (µs)";
    let chart = Chart::distribution("job times", x, "share of jobs", &[metrics::cdf(&times)]);
    let about = "A job is a piece of work of several messages: a block of a barrier, from its \
                 request to its last byte; a query, from its start to its answer.";
    figure("Time of jobs", &[], &chart, about, "No measured job completed.")
}

/// What the table of jobs shows of each traffic table.
const OF_JOBS: [&str; 8] = [
    "jobs.completed",
    "jobs.failed",
    "jobs.goodput_gbps",
    "jobs.time_us.p50",
    "jobs.time_us.p99",
    "jobs.idle_overall",
    "jobs.quality.mean",
    "jobs.quality.min",
];

/// The numbers of all jobs and of those of each table that has a name.
fn by_table(results: &Results) -> Markup {
    let summary = &results.summary;
    let named = summary.traffic.iter().filter(|(_, table)| table.jobs != JobStats::default());
    let mut rows: Vec<_> = named.map(|(name, table)| (name.clone(), Numbers::of(table))).collect();
    rows.push(("all".to_owned(), Numbers::of(summary)));
    html! {
        div {
            h3 { "The same in numbers" }
            (by_row("Traffic", &metrics_of(&OF_JOBS), &rows))
            p.note {
                "Link idle overall: the share of all jobs' time in which nothing arrived on the \
                 link of the host that waits. Answers within deadline: the share of a job's \
                 results that came in time, the mean and the worst job. "
                code { "jobs.parquet" } " has every job."
            }
        }
    }
}
