//! [`Series`]: the run over time, `series.parquet`. However long the run, at most [`MAX_POINTS`].

use std::path::Path;

use units::Time;

use crate::table::read_rows;
use crate::{Columns, FileError, StagedFile, TableWriter};

/// The most points a series keeps: enough for any plot.
pub const MAX_POINTS: usize = 2000;

/// Prefix of the columns that hold a tier's utilization.
const TIER: &str = "util_";

/// Lengths of all switch queues at one instant, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSample {
    /// Median over ports.
    pub p50: u64,
    /// 99th percentile over ports.
    pub p99: u64,
    /// The longest.
    pub max: u64,
    /// All together.
    pub total: u64,
}

/// One sample of a run; rates are means since the sample before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesRow {
    /// When.
    pub at: Time,
    /// The switch queues.
    pub queues: QueueSample,
    /// Payload placed at receivers, in Gb/s.
    pub goodput_gbps: f64,
    /// Messages submitted and not yet completed.
    pub in_flight: u64,
    /// Mean utilization of the links of each tier, 0 to 1, in the order of [`Series::tiers`].
    pub tier_utilization: Vec<f64>,
}

impl SeriesRow {
    /// Takes in the samples of the next `weight` intervals, after `own` of this one's.
    fn merge(&mut self, next: &Self, own: u64, weight: u64) {
        let (a, b) = (own as f64, weight as f64);
        let mean = |x: f64, y: f64| (x * a + y * b) / (a + b);
        let whole = |x: u64, y: u64| (x * own + y * weight) / (own + weight);
        self.at = next.at;
        self.queues = QueueSample {
            p50: whole(self.queues.p50, next.queues.p50),
            p99: self.queues.p99.max(next.queues.p99),
            max: self.queues.max.max(next.queues.max),
            total: whole(self.queues.total, next.queues.total),
        };
        self.goodput_gbps = mean(self.goodput_gbps, next.goodput_gbps);
        self.in_flight = whole(self.in_flight, next.in_flight);
        for (own, next) in self.tier_utilization.iter_mut().zip(&next.tier_utilization) {
            *own = mean(*own, *next);
        }
    }
}

/// Samples of a run, taken at equal intervals. Beyond [`MAX_POINTS`], neighbours are merged two by
/// two: means of means and counts, the larger of the 99th percentiles and of the maxima.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    tiers: Vec<String>,
    rows: Vec<SeriesRow>,
    /// Samples in each row but the last.
    stride: u64,
    /// Samples in the last row.
    last: u64,
}

impl Series {
    /// An empty series of a fabric with these tiers of links, for example `tor-up`.
    #[must_use]
    pub fn new(tiers: Vec<String>) -> Self {
        Self { tiers, rows: Vec::new(), stride: 1, last: 1 }
    }

    /// The names of the tiers.
    #[must_use]
    pub fn tiers(&self) -> &[String] {
        &self.tiers
    }

    /// The samples, in order of time.
    #[must_use]
    pub fn rows(&self) -> &[SeriesRow] {
        &self.rows
    }

    /// Appends the next sample. A tier that it says nothing of counts as idle.
    pub fn push(&mut self, mut row: SeriesRow) {
        row.tier_utilization.resize(self.tiers.len(), 0.0);
        match self.rows.last_mut() {
            Some(open) if self.last < self.stride => {
                open.merge(&row, self.last, 1);
                self.last += 1;
            }
            _ => {
                self.rows.push(row);
                self.last = 1;
            }
        }
        if self.rows.len() > MAX_POINTS {
            self.halve();
        }
    }

    /// Merges rows two by two. All but the last are full; the last has one sample, since it was
    /// just pushed.
    fn halve(&mut self) {
        let mut merged: Vec<SeriesRow> = Vec::with_capacity(MAX_POINTS);
        for (i, row) in self.rows.drain(..).enumerate() {
            match merged.last_mut() {
                Some(open) if i % 2 == 1 => open.merge(&row, self.stride, self.stride),
                _ => merged.push(row),
            }
        }
        self.rows = merged;
        self.stride *= 2;
    }

    /// Writes `series.parquet`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, file: StagedFile) -> Result<(), FileError> {
        let mut table = TableWriter::with_columns(file, columns(&self.tiers))?;
        for row in &self.rows {
            table.push(row.clone())?;
        }
        table.finish()
    }
}

/// Reads a `series.parquet`; the tiers are its columns that begin with `util_`.
///
/// # Errors
/// The file is missing, broken, or lacks a column.
pub fn read_series(path: &Path) -> Result<Series, FileError> {
    let mut tiers: Vec<String> = Vec::new();
    let find = |names: &[String]| {
        tiers = names.iter().filter_map(|n| n.strip_prefix(TIER)).map(str::to_owned).collect();
        columns(&tiers)
    };
    let rows = read_rows(path, find, SeriesRow::default)?;
    Ok(Series { tiers, rows, stride: 1, last: 1 })
}

fn columns(tiers: &[String]) -> Columns<SeriesRow> {
    let columns = Columns::<SeriesRow>::new()
        .column("at_ps", "time of the sample, since the start of the run")
        .field(|r| &mut r.at)
        .column("queue_p50_bytes", "median over switch ports")
        .field(|r| &mut r.queues.p50)
        .column(
            "queue_p99_bytes",
            "99th percentile over switch ports; the largest of the samples merged into the row",
        )
        .field(|r| &mut r.queues.p99)
        .column(
            "queue_max_bytes",
            "longest switch queue; the largest of the samples merged into the row",
        )
        .field(|r| &mut r.queues.max)
        .column("queue_total_bytes", "all switch queues together")
        .field(|r| &mut r.queues.total)
        .column("goodput_gbps", "payload placed at receivers since the row before")
        .field(|r| &mut r.goodput_gbps)
        .column("in_flight", "messages submitted and not yet completed")
        .field(|r| &mut r.in_flight);
    tiers.iter().enumerate().fold(columns, |columns, (i, tier)| {
        let about = "mean utilization of the tier's links since the row before, 0 to 1";
        columns.column(format!("{TIER}{tier}"), about).field(move |r| {
            let known = r.tier_utilization.len().max(i + 1);
            r.tier_utilization.resize(known, 0.0);
            &mut r.tier_utilization[i]
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(i: u64) -> SeriesRow {
        SeriesRow {
            at: Time(i + 1),
            queues: QueueSample { p50: i % 7, p99: i, max: i, total: i + i % 7 },
            goodput_gbps: i as f64,
            in_flight: 5,
            tier_utilization: vec![0.5],
        }
    }

    #[test]
    fn thinning_keeps_means_and_maxima() {
        for samples in [1, 1999, 2000, 2001, 4000, 4001, 9999, 100_000u64] {
            let mut series = Series::new(vec!["tor-up".to_owned()]);
            (0..samples).for_each(|i| series.push(sample(i)));
            let rows = series.rows();
            assert!(rows.len() <= MAX_POINTS, "{samples} samples, {} rows", rows.len());
            assert!(samples < 2000 || rows.len() >= MAX_POINTS / 2, "{samples}, {}", rows.len());
            let last = rows.last().unwrap();
            assert_eq!(last.at, Time(samples), "the last sample is in");
            assert_eq!(last.queues.max, samples - 1);
            let weights = (rows.len() as u64 - 1) * series.stride;
            let full: f64 = rows[..rows.len() - 1].iter().map(|r| r.goodput_gbps).sum();
            let sum = full * series.stride as f64 + last.goodput_gbps * series.last as f64;
            let expected = (samples * (samples - 1) / 2) as f64;
            assert!((sum - expected).abs() <= 1e-6 * expected.max(1.0), "{samples}: {sum}");
            assert_eq!(weights + series.last, samples);
            assert!(rows.iter().all(|r| r.in_flight == 5 && r.tier_utilization == [0.5]));
        }
    }

    #[test]
    fn reads_back_with_its_tiers() {
        let dir = tempfile::tempdir().unwrap();
        let out = crate::OutputDir::create(dir.path()).unwrap();
        let mut series = Series::new(vec!["host-up".to_owned(), "tor-down".to_owned()]);
        for i in 0..10 {
            series.push(SeriesRow { tier_utilization: vec![0.25, i as f64], ..sample(i) });
        }
        series.push(SeriesRow { tier_utilization: vec![0.5], ..sample(10) });
        series.write(out.file("series.parquet").unwrap()).unwrap();
        out.commit().unwrap();
        let read = read_series(&dir.path().join("series.parquet")).unwrap();
        assert_eq!(read, series);
        assert_eq!(read.rows()[10].tier_utilization, [0.5, 0.0], "what is not said is idle");
    }
}
