//! [`Results`]: the files of a result directory.

use std::path::{Path, PathBuf};

use metrics::{
    JobRow, LinkRow, Manifest, Series, Sorter, Summary, Window, long_flow_goodputs, read_each_flow,
    read_jobs, read_links, read_series,
};
use units::Time;

use crate::ReportError;

/// A distribution, as [`metrics::cdf`].
pub(crate) type Curve = Vec<(f64, f64)>;

/// The files of a result directory.
pub(crate) struct Results {
    pub(crate) summary: Summary,
    pub(crate) manifest: Manifest,
    /// The distribution of completion times in microseconds.
    pub(crate) fcts_us: Curve,
    /// That of slowdowns.
    pub(crate) slowdowns: Curve,
    /// That of the goodput of long flows in Gb/s.
    pub(crate) long_flows_gbps: Curve,
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
        let [fcts_us, slowdowns, long_flows_gbps] = curves(&dir.join("flows.parquet"), window)?;
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

/// The distributions of completion times, of slowdowns and of the goodput of long flows. Neither
/// all rows are in memory nor all values: there may be millions.
fn curves(flows: &Path, window: Window) -> Result<[Curve; 3], ReportError> {
    // Not beside the results: who reads them need not be allowed to write there.
    let dir = std::env::temp_dir();
    let mut sorters = [(); 3].map(|()| Sorter::new(Some(&dir)));
    read_each_flow(flows, |rows| {
        let values =
            [metrics::fct_us(rows), metrics::slowdowns(rows), long_flow_goodputs(rows, window)];
        for (sorter, values) in sorters.iter_mut().zip(values) {
            values.into_iter().try_for_each(|value| sorter.push(value))?;
        }
        Ok(())
    })?;
    let [fcts_us, slowdowns, long_flows_gbps] = sorters;
    let curve = |sorter: Sorter<f64>| metrics::cdf_of(&sorter.sort()?);
    Ok([curve(fcts_us)?, curve(slowdowns)?, curve(long_flows_gbps)?])
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
