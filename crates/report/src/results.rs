//! [`Results`]: the files of a result directory.

use std::path::{Path, PathBuf};

use metrics::{
    JobRow, LinkRow, Manifest, Series, Summary, Window, long_flow_goodputs, read_each_flow,
    read_jobs, read_links, read_series,
};
use units::Time;

use crate::ReportError;

/// The files of a result directory.
pub(crate) struct Results {
    pub(crate) summary: Summary,
    pub(crate) manifest: Manifest,
    /// Completion times in microseconds, ascending.
    pub(crate) fcts_us: Vec<f64>,
    /// Slowdowns, ascending.
    pub(crate) slowdowns: Vec<f64>,
    /// Goodput per long flow in Gb/s, ascending.
    pub(crate) long_flows_gbps: Vec<f64>,
    /// None in a run without any, which has no such file.
    pub(crate) jobs: Vec<JobRow>,
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
        let summary = Summary::read(&dir.join("summary.json"))?;
        let manifest = Manifest::read(&dir.join("manifest.json"))?;
        let measured = summary.flows.measured;
        let time = |us: f64| Time(libm::round(us * 1e6) as u64);
        let window = Window { from: time(measured.from_us), to: time(measured.to_us) };
        // Not all rows at once: there may be millions.
        let (mut fcts_us, mut slowdowns, mut long_flows_gbps) =
            (Vec::new(), Vec::new(), Vec::new());
        read_each_flow(&dir.join("flows.parquet"), |rows| {
            fcts_us.extend(metrics::fct_us(rows));
            slowdowns.extend(metrics::slowdowns(rows));
            long_flows_gbps.extend(long_flow_goodputs(rows, window));
        })?;
        for values in [&mut fcts_us, &mut slowdowns, &mut long_flows_gbps] {
            values.sort_unstable_by(f64::total_cmp);
        }
        Ok(Self {
            jobs: if jobs.exists() { read_jobs(&jobs)? } else { Vec::new() },
            summary,
            manifest,
            fcts_us,
            slowdowns,
            long_flows_gbps,
            series: read_series(&dir.join("series.parquet"))?,
            links: read_links(&dir.join("links.parquet"))?,
        })
    }
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
