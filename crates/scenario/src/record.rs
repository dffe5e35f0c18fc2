//! [`Recorder`]: the observer that keeps a row per message and per job.

use endpoint::{Job, JobRecord, MessageRecord, Observer, UNBOUNDED};
use metrics::{FlowRow, JobRow};
use units::{Rate, Time};

/// Keeps what became of each message and of each job.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// One row per message, in the order in which they ended.
    pub(crate) rows: Vec<FlowRow>,
    /// One row per job, in the order of time and host; without the rates of links.
    pub(crate) jobs: Vec<JobRow>,
    /// The measurement window: messages submitted at `from <= t < to` are measured.
    from: Time,
    to: Option<Time>,
}

impl Recorder {
    pub(crate) const fn new(from: Time, to: Option<Time>) -> Self {
        Self { rows: Vec::new(), jobs: Vec::new(), from, to }
    }

    /// Whether what began at `start` is measured.
    fn measures(&self, start: Time) -> bool {
        self.from <= start && self.to.is_none_or(|to| start < to)
    }
}

impl Observer for Recorder {
    fn message(&mut self, r: &MessageRecord) {
        let measured = self.measures(r.submitted);
        self.rows.push(FlowRow {
            src: r.key.src.0,
            dst: r.dst.0,
            msg: r.key.id.0,
            traffic: r.tag,
            size: (r.len != UNBOUNDED).then_some(r.len),
            start: r.submitted,
            finish: r.delivered,
            acked: r.acked,
            ideal: r.ideal,
            placed: r.placed,
            placed_in_window: r.placed_in_window,
            measured,
        });
    }

    fn job(&mut self, record: &JobRecord) {
        let Job { tag, completed, start, end, bytes, received, parts, in_time } = record.job;
        let measured = self.measures(start);
        self.jobs.push(JobRow {
            host: record.host.0,
            traffic: tag,
            start,
            end,
            completed,
            bytes,
            received,
            rate: Rate(0),
            parts,
            in_time,
            measured,
        });
    }
}
