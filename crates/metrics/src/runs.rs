//! The values of many runs: [`RunValues`], `metrics.json` of one, and [`RunTable`], `runs.parquet`
//! with a row for each.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::output::{read_json, write_json};
use crate::table::read_rows;
use crate::{Columns, FileError, OutputDir, StagedFile, TableWriter};

/// What sweeps and comparisons take of a run: `metrics.json`. Every metric by name, as formulas
/// have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunValues {
    /// Those that have a value.
    pub metrics: BTreeMap<String, f64>,
    /// A fingerprint of the measured messages as they were submitted: from where to where, how long
    /// and when. Equal traffic has equal ones.
    pub messages: String,
}

impl RunValues {
    /// Writes `metrics.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, out: &OutputDir) -> Result<(), FileError> {
        write_json(out, "metrics.json", self)
    }

    /// Reads a `metrics.json`.
    ///
    /// # Errors
    /// The file is missing or broken.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        read_json(path)
    }
}

/// A row of `runs.parquet`: a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRow {
    /// The directory of its job.
    pub job: String,
    /// The values of axes that are texts, in the order of these axes.
    pub texts: Vec<String>,
    /// Those of axes that are numbers.
    pub numbers: Vec<Option<f64>>,
    /// The seed.
    pub seed: u64,
    /// Its digest in hexadecimal; `None` if it failed.
    pub digest: Option<String>,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// The metrics, in the order of the table's.
    pub values: Vec<Option<f64>>,
}

/// The columns of `runs.parquet`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTable {
    /// Axes whose values are texts.
    pub texts: Vec<String>,
    /// Axes whose values are numbers.
    pub numbers: Vec<String>,
    /// Metrics and formulas.
    pub metrics: Vec<String>,
}

impl RunTable {
    fn columns(&self) -> Columns<RunRow> {
        let mut columns = Columns::<RunRow>::new()
            .column("job", "the directory of the job")
            .field(|r| &mut r.job);
        for (i, axis) in self.texts.iter().enumerate() {
            let next = columns.column(format!("axis.{axis}"), "where the run is on this axis");
            columns = next.field(move |r: &mut RunRow| &mut r.texts[i]);
        }
        for (i, axis) in self.numbers.iter().enumerate() {
            let about = "where the run is on this axis; bytes, microseconds or Gb/s of a quantity";
            let next = columns.column(format!("axis.{axis}"), about);
            columns = next.field(move |r: &mut RunRow| &mut r.numbers[i]);
        }
        columns = columns
            .column("seed", "the seed")
            .field(|r| &mut r.seed)
            .column("digest", "the run's digest; null if it failed")
            .field(|r| &mut r.digest)
            .column("error", "why the run failed; null if it did not")
            .field(|r| &mut r.error);
        for (i, metric) in self.metrics.iter().enumerate() {
            let about = "a metric or a formula over metrics; null without a value";
            let next = columns.column(metric.clone(), about);
            columns = next.field(move |r: &mut RunRow| &mut r.values[i]);
        }
        columns
    }

    /// Writes `runs.parquet`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, file: StagedFile, rows: Vec<RunRow>) -> Result<(), FileError> {
        let mut table = TableWriter::with_columns(file, self.columns())?;
        rows.into_iter().try_for_each(|row| table.push(row))?;
        table.finish()
    }

    /// All rows of a `runs.parquet` that has these columns, and perhaps others.
    ///
    /// # Errors
    /// The file is missing, broken, or lacks a column.
    pub fn read(&self, path: &Path) -> Result<Vec<RunRow>, FileError> {
        let blank = || RunRow {
            texts: vec![String::new(); self.texts.len()],
            numbers: vec![None; self.numbers.len()],
            values: vec![None; self.metrics.len()],
            ..RunRow::default()
        };
        read_rows(path, |_| self.columns(), blank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back() {
        let named = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let (texts, numbers) = (vec!["variant".to_owned()], vec!["n".to_owned()]);
        let table = RunTable { texts, numbers, metrics: named(["a.p99", "100 * a.p99 / n"]) };
        let row = |seed, digest: Option<&str>, value| RunRow {
            job: format!("{seed:032x}"),
            texts: vec!["NDP".to_owned()],
            numbers: vec![Some(40.0)],
            seed,
            digest: digest.map(str::to_owned),
            error: digest.is_none().then(|| "killed".to_owned()),
            values: vec![value, None],
        };
        let rows = vec![row(1, Some("00ff"), Some(0.1)), row(2, None, None)];
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        table.write(out.file("runs.parquet").unwrap(), rows.clone()).unwrap();
        let values = RunValues {
            metrics: [("a.p99".to_owned(), 1.0 / 3.0)].into(),
            messages: "00ff".to_owned(),
        };
        values.write(&out).unwrap();
        assert_eq!(table.read(&out.staged().join("runs.parquet")).unwrap(), rows);
        assert_eq!(RunValues::read(&out.staged().join("metrics.json")).unwrap(), values);
        let other = RunTable { metrics: vec!["b".to_owned()], ..table };
        let error = other.read(&out.staged().join("runs.parquet")).unwrap_err();
        assert_eq!(error.cause, "it has no column \"b\" of the right type");
    }
}
