//! [`Results`]: the files of a result directory.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use metrics::{
    CriticalRow, FlowRow, FlowTraceRow, JobRow, LifeRow, LinkRow, Manifest, QueueRow, Series,
    SizeBucket, Sorter, StepRow, Summary, Thinning, Window, long_flow_goodputs, read_critical,
    read_each_flow, read_each_life, read_flow_trace, read_jobs, read_links, read_queues,
    read_series, read_steps, size_range,
};
use units::Time;

use crate::ReportError;

/// How many of the largest messages are kept.
const LARGEST: usize = 12;

/// How many of the slowest messages are kept.
const SLOWEST: usize = 12;

/// Points of a line; of a distribution, as [`metrics::cdf`].
pub(crate) type Curve = Vec<(f64, f64)>;

/// What is read of the messages of a run.
pub(crate) struct Curves {
    /// That of completion times in microseconds.
    pub(crate) fcts_us: Curve,
    /// That of slowdowns.
    pub(crate) slowdowns: Curve,
    /// That of the goodput of long flows in Gb/s.
    pub(crate) long_flows_gbps: Curve,
    /// The largest messages by bytes placed, that first.
    pub(crate) largest: Vec<FlowRow>,
    /// The distributions by size of the messages, where there are messages of more than one size.
    pub(crate) by_size: Vec<OfSize>,
}

/// The distributions of messages of a range of sizes, with fewer points.
pub(crate) struct OfSize {
    pub(crate) sizes: String,
    pub(crate) fcts_us: Curve,
    pub(crate) slowdowns: Curve,
}

/// The files of a result directory.
pub(crate) struct Results {
    dir: PathBuf,
    pub(crate) summary: Summary,
    pub(crate) manifest: Manifest,
    pub(crate) curves: Curves,
    /// None in a run without any, which has no such file.
    pub(crate) jobs: Vec<JobRow>,
    /// None in a run without training jobs, which has no such files.
    pub(crate) steps: Vec<StepRow>,
    pub(crate) critical: Vec<CriticalRow>,
    pub(crate) series: Series,
    pub(crate) links: Vec<LinkRow>,
}

impl Results {
    /// Reads all files of `dir`.
    pub(crate) fn read(dir: &Path) -> Result<Self, ReportError> {
        if !dir.join("summary.json").exists() {
            return Err(ReportError::NoResults(dir.to_owned()));
        }
        let jobs = dir.join("jobs.parquet");
        let (steps, critical) = (dir.join("steps.parquet"), dir.join("critical.parquet"));
        let summary = Summary::read(&dir.join("summary.json"))?;
        let manifest = Manifest::read(&dir.join("manifest.json"))?;
        let measured = summary.flows.measured;
        let time = |us: f64| Time(libm::round(us * 1e6) as u64);
        let window = Window { from: time(measured.from_us), to: time(measured.to_us) };
        let buckets = &summary.flows.slowdown_by_size;
        let curves = curves(&dir.join("flows.parquet"), window, buckets)?;
        Ok(Self {
            dir: dir.to_owned(),
            jobs: if jobs.exists() { read_jobs(&jobs)? } else { Vec::new() },
            steps: if steps.exists() { read_steps(&steps)? } else { Vec::new() },
            critical: if critical.exists() { read_critical(&critical)? } else { Vec::new() },
            summary,
            manifest,
            curves,
            series: read_series(&dir.join("series.parquet"))?,
            links: read_links(&dir.join("links.parquet"))?,
        })
    }
}

/// The most bytes first; of equal ones the first.
fn order(row: &FlowRow) -> (Reverse<u64>, u32, u64) {
    (Reverse(row.placed), row.src, row.msg)
}

/// What is kept of the messages of a run. Neither all rows are in memory nor all values: there may
/// be millions.
fn curves(flows: &Path, window: Window, buckets: &[SizeBucket]) -> Result<Curves, ReportError> {
    let buckets: Vec<&SizeBucket> = buckets.iter().filter(|b| b.count > 0).collect();
    let buckets = if buckets.len() > 1 { buckets } else { Vec::new() };
    // Not beside the results: who reads them need not be allowed to write there.
    let dir = std::env::temp_dir();
    let sorter = || Sorter::new(Some(&dir));
    let (mut long, mut all) = (sorter(), [sorter(), sorter()]);
    let mut largest: Vec<FlowRow> = Vec::new();
    let mut by_size: Vec<[Sorter<f64>; 2]> = buckets.iter().map(|_| [sorter(), sorter()]).collect();
    read_each_flow(flows, |rows| {
        add(&mut all, rows)?;
        largest.extend(rows.iter().filter(|row| row.placed > 0));
        largest.sort_unstable_by_key(order);
        largest.truncate(LARGEST);
        long_flow_goodputs(rows, window).into_iter().try_for_each(|value| long.push(value))?;
        for (bucket, sorters) in buckets.iter().zip(&mut by_size) {
            let inside = |row: &&FlowRow| {
                let below = |size| bucket.to_bytes.is_none_or(|to| size < to);
                row.size.is_some_and(|size| size >= bucket.from_bytes && below(size))
            };
            add(sorters, &rows.iter().filter(inside).copied().collect::<Vec<_>>())?;
        }
        Ok(())
    })?;
    let curve = |sorter: Sorter<f64>, thinning| metrics::cdf_of(&sorter.sort()?, thinning);
    let of_size = |(bucket, [fcts, slowdowns]): (&&SizeBucket, [Sorter<f64>; 2])| {
        Ok(OfSize {
            sizes: size_range(bucket.from_bytes, bucket.to_bytes),
            fcts_us: curve(fcts, Thinning::COARSE)?,
            slowdowns: curve(slowdowns, Thinning::COARSE)?,
        })
    };
    let [fcts, slowdowns] = all;
    Ok(Curves {
        fcts_us: curve(fcts, Thinning::FINE)?,
        slowdowns: curve(slowdowns, Thinning::FINE)?,
        long_flows_gbps: curve(long, Thinning::FINE)?,
        largest,
        by_size: buckets.iter().zip(by_size).map(of_size).collect::<Result<_, ReportError>>()?,
    })
}

impl Results {
    /// The samples of queues, if the run has them.
    pub(crate) fn queues(&self) -> Result<Option<Vec<QueueRow>>, ReportError> {
        let path = self.dir.join("queues.parquet");
        Ok(if path.exists() { Some(read_queues(&path)?) } else { None })
    }

    /// Where the time went of the measured messages that took the longest, that first; none unless
    /// messages were followed.
    pub(crate) fn slowest(&self) -> Result<Vec<LifeRow>, ReportError> {
        let path = self.dir.join("life.parquet");
        let mut slowest: Vec<LifeRow> = Vec::new();
        if path.exists() {
            read_each_life(&path, |rows| {
                slowest.extend(rows.iter().filter(|row| row.measured));
                slowest.sort_unstable_by_key(|row| (Reverse(row.fct), row.src, row.msg));
                slowest.truncate(SLOWEST);
                Ok(())
            })?;
        }
        Ok(slowest)
    }

    /// Windows, rates and round trips of messages, if the run has them.
    pub(crate) fn flow_trace(&self) -> Result<Option<Vec<FlowTraceRow>>, ReportError> {
        let path = self.dir.join("flow_trace.parquet");
        Ok(if path.exists() { Some(read_flow_trace(&path)?) } else { None })
    }
}

/// Add completion times and slowdowns of `rows`.
fn add([fcts, slow]: &mut [Sorter<f64>; 2], rows: &[FlowRow]) -> Result<(), metrics::FileError> {
    metrics::fct_us(rows).into_iter().try_for_each(|value| fcts.push(value))?;
    metrics::slowdowns(rows).into_iter().try_for_each(|value| slow.push(value))
}

/// The directories of runs in `dir`, by name: what a comparison without seeds leaves.
pub(crate) fn runs_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_run = |dir: &PathBuf| {
        ["summary.json", "flows.parquet"].iter().all(|file| dir.join(file).is_file())
    };
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_run).collect();
    runs.sort();
    runs
}

/// A short label for each directory: its name, or the whole path where that is not unique.
pub(crate) fn labels(dirs: &[PathBuf]) -> Vec<String> {
    let name = |dir: &PathBuf| dir.file_name().map(|n| n.to_string_lossy().into_owned());
    let short: Vec<_> = dirs.iter().map(name).collect();
    let unique = |s: &Option<String>| short.iter().filter(|other| *other == s).count() == 1;
    dirs.iter()
        .zip(&short)
        .map(|(dir, name)| match name {
            Some(label) if unique(name) => label.clone(),
            _ => dir.display().to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_where_that_is_clear() {
        let dirs = ["out/ndp", "out/tcp", "a/x", "b/x", "/"].map(PathBuf::from);
        assert_eq!(labels(&dirs), ["ndp", "tcp", "a/x", "b/x", "/"]);
    }
}
