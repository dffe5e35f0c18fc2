//! [`JobRow`]: a piece of work of several messages, one row of `jobs.parquet`; and [`fold_jobs`]:
//! what the jobs of a run say about it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use units::{Dur, Rate, Time};

use crate::statistics::{Moments, nearest_rank};
use crate::table::{read_table, write_table};
use crate::{Columns, FileError, Row, StagedFile};

/// A block of an incast, a query: several messages that one application waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobRow {
    /// The host whose application waits.
    pub host: u32,
    /// The `[[traffic]]` table of the scenario that it comes from, counted from zero.
    pub traffic: u16,
    /// When it began.
    pub start: Time,
    /// When it was complete, or given up.
    pub end: Time,
    /// Whether it is complete; otherwise it was given up, because a message failed.
    pub completed: bool,
    /// Payload delivered, bytes.
    pub bytes: u64,
    /// Bytes on the wire that arrived at the host meanwhile.
    pub received: u64,
    /// The rate of the host's link.
    pub rate: Rate,
    /// The results it asked for.
    pub parts: u64,
    /// Those of them that came in time.
    pub in_time: u64,
    /// Whether it began inside the measurement window.
    pub measured: bool,
}

impl JobRow {
    /// How long it took.
    #[must_use]
    pub fn time(&self) -> Dur {
        self.end.since(self.start)
    }

    /// The share of its time in which nothing arrived on the host's link; `None` for one that took
    /// no time. Not below 0: the first packet may have begun to arrive before the job.
    #[must_use]
    pub fn idle(&self) -> Option<f64> {
        idle(self.received as f64, self.capacity())
    }

    /// The bytes that its host's link could carry in its time.
    fn capacity(&self) -> f64 {
        self.rate.0 as f64 * self.time().as_s_f64() / 8.0
    }

    /// The share of its results that came in time; `None` if it asked for none.
    #[must_use]
    pub fn quality(&self) -> Option<f64> {
        (self.parts > 0).then(|| self.in_time as f64 / self.parts as f64)
    }

    /// Whether its numbers count.
    fn counts(&self) -> bool {
        self.measured && self.completed
    }
}

/// The idle share of a link that carried `received` bytes and could have carried `capacity`.
fn idle(received: f64, capacity: f64) -> Option<f64> {
    (capacity > 0.0).then(|| (1.0 - received / capacity).max(0.0))
}

impl Row for JobRow {
    fn columns() -> Columns<Self> {
        Columns::<Self>::new()
            .column("host", "the host whose application waits, from 0")
            .field(|r| &mut r.host)
            .column("traffic", "the [[traffic]] table that it comes from, counted from 0")
            .field(|r| &mut r.traffic)
            .column("start_ps", "when it began, since the start of the run")
            .field(|r| &mut r.start)
            .column("end_ps", "when it was complete, or given up")
            .field(|r| &mut r.end)
            .column(
                "completed",
                "whether it is complete; otherwise it was given up, because a message failed",
            )
            .field(|r| &mut r.completed)
            .column("parts", "the results it asked for")
            .field(|r| &mut r.parts)
            .column("in_time", "those of them that came in time")
            .field(|r| &mut r.in_time)
            .column("bytes", "payload delivered")
            .field(|r| &mut r.bytes)
            .column("received_bytes", "bytes on the wire that arrived at the host meanwhile")
            .field(|r| &mut r.received)
            .column("link_bps", "the rate of the host's link, bits per second")
            .field(|r| &mut r.rate.0)
            .column("time_ps", "end_ps - start_ps")
            .derived(|r| r.time().0)
            .column("idle", "the share of its time in which nothing arrived on the host's link")
            .derived(Self::idle)
            .column("quality", "in_time / parts")
            .derived(Self::quality)
            .column("measured", "whether it began inside the measurement window")
            .field(|r| &mut r.measured)
    }
}

/// Writes `jobs.parquet`: one row per job, in the order of `rows`.
///
/// # Errors
/// The file cannot be written.
pub fn write_jobs(file: StagedFile, rows: &[JobRow]) -> Result<(), FileError> {
    write_table(file, rows.iter().copied())
}

/// All rows of a `jobs.parquet`, in file order.
///
/// # Errors
/// The file is missing, broken, or lacks a column.
pub fn read_jobs(path: &Path) -> Result<Vec<JobRow>, FileError> {
    read_table(path)
}

/// What jobs say: over those that began inside the measurement window and are complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobStats {
    /// How many.
    pub completed: u64,
    /// Those that began inside the window and were given up, because a message failed.
    pub failed: u64,
    /// Payload bits of all of them, over the time from the start of the first to the end of the
    /// last.
    pub goodput_gbps: Option<f64>,
    /// How long they took, in microseconds.
    pub time_us: Stats,
    /// The share of a job's time in which nothing arrived on the link of its host.
    pub idle: Stats,
    /// The same of the time of all jobs together, so that long ones count for more.
    pub idle_overall: Option<f64>,
    /// The share of a job's results that came in time.
    pub quality: Stats,
}

/// How values are spread; percentiles are exact nearest ranks, `stdev` is the sample's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Mean.
    pub mean: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// Standard deviation.
    pub stdev: Option<f64>,
}

impl FromIterator<f64> for Stats {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        // In the order of the rows, so that the last bits do not depend on equal values.
        let moments: Moments = values.iter().copied().collect();
        values.sort_unstable_by(f64::total_cmp);
        Self {
            mean: moments.mean(),
            min: values.first().copied(),
            p50: nearest_rank(&values, 500),
            p90: nearest_rank(&values, 900),
            p99: nearest_rank(&values, 990),
            max: values.last().copied(),
            stdev: moments.stdev(),
        }
    }
}

/// Folds jobs into [`JobStats`], which defines every number.
#[must_use]
pub fn fold_jobs<'a>(rows: impl Iterator<Item = &'a JobRow>) -> JobStats {
    let rows: Vec<&JobRow> = rows.filter(|row| row.measured).collect();
    let counted = || rows.iter().copied().filter(|row| row.counts());
    let bytes: u64 = counted().map(|row| row.bytes).sum();
    let start = counted().map(|row| row.start).min().unwrap_or(Time::ZERO);
    let end = counted().map(|row| row.end).max().unwrap_or(Time::ZERO);
    let length = end.since(start).as_s_f64();
    JobStats {
        completed: counted().count() as u64,
        failed: rows.iter().filter(|row| !row.completed).count() as u64,
        goodput_gbps: (length > 0.0).then(|| bytes as f64 * 8.0 / length / 1e9),
        time_us: job_times_us(counted()).collect(),
        idle: counted().filter_map(JobRow::idle).collect(),
        idle_overall: idle(
            counted().map(|row| row.received as f64).sum(),
            counted().map(JobRow::capacity).sum(),
        ),
        quality: counted().filter_map(JobRow::quality).collect(),
    }
}

/// How long the jobs took that began inside the measurement window and are complete, in
/// microseconds, in the order of the rows.
pub fn job_times_us<'a>(rows: impl Iterator<Item = &'a JobRow>) -> impl Iterator<Item = f64> {
    rows.filter(|row| row.counts()).map(|row| row.time().as_us_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OutputDir;

    const US: u64 = 1_000_000;

    /// 1250 bytes on the wire at 1 Gb/s take 10 us.
    fn job(start_us: u64, us: u64) -> JobRow {
        let start = Time(start_us * US);
        JobRow {
            start,
            end: start + Dur::from_us(us),
            completed: true,
            bytes: 1_000,
            received: 1_250,
            rate: Rate(1_000_000_000),
            parts: 4,
            in_time: 4,
            measured: true,
            ..JobRow::default()
        }
    }

    #[test]
    fn by_hand() {
        let rows = [
            JobRow { measured: false, ..job(0, 1) },
            job(10, 20),
            JobRow { in_time: 3, ..job(30, 40) },
            JobRow { completed: false, in_time: 1, ..job(70, 500) },
        ];
        let stats = fold_jobs(rows.iter());
        assert_eq!((stats.completed, stats.failed), (2, 1));
        // 16 000 bits in 60 us.
        assert_eq!(stats.goodput_gbps, Some(16.0 / 60.0));
        let time = stats.time_us;
        assert_eq!([time.mean, time.min, time.p50], [Some(30.0), Some(20.0), Some(20.0)]);
        assert_eq!([time.p90, time.p99, time.max], [Some(40.0); 3]);
        assert_eq!(time.stdev, Some(200.0_f64.sqrt()));
        assert_eq!([stats.idle.min, stats.idle.max], [Some(0.5), Some(0.75)]);
        // 20 us of 60.
        assert!(stats.idle_overall.is_some_and(|idle| (idle - 2.0 / 3.0).abs() < 1e-12));
        assert_eq!([stats.quality.mean, stats.quality.min], [Some(0.875), Some(0.75)]);
        assert_eq!(fold_jobs([].iter()), JobStats::default());
    }

    #[test]
    fn what_cannot_be_told_is_none() {
        assert_eq!(JobRow::default().idle(), None);
        assert_eq!(JobRow::default().quality(), None);
        assert_eq!(job(0, 5).idle(), Some(0.0), "it had begun to arrive before");
    }

    #[test]
    fn reads_back_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        let given_up = JobRow { host: 7, traffic: 3, completed: false, in_time: 1, ..job(9, 2) };
        let rows = [job(1, 2), given_up, JobRow { measured: false, ..job(3, 4) }];
        write_jobs(out.file("jobs.parquet").unwrap(), &rows).unwrap();
        out.commit().unwrap();
        assert_eq!(read_jobs(&dir.path().join("jobs.parquet")).unwrap(), rows);
        let Columns(columns) = JobRow::columns();
        let names: Vec<&str> = columns.iter().map(|c| &*c.name).collect();
        let expected = "host traffic start_ps end_ps completed parts in_time bytes received_bytes \
             link_bps time_ps idle quality measured";
        assert_eq!(names.join(" "), expected);
        assert!(columns.iter().all(|c| !c.about.is_empty()));
    }
}
