//! [`StudyResults`]: what `trimline reproduce` leaves. `results.json` is the list of verdicts
//! and has keys that do not change; `study.json` has all that the report page shows.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::output::{read_json, write_json};
use crate::{FileError, OutputDir};

/// Version of `results.json` and `study.json`.
pub const STUDY_SCHEMA: u32 = 2;

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// In its band.
    Pass,
    /// Out of its band, and a note with packet-level evidence says why.
    Explained,
    /// Out of its band, or without a value.
    Fail,
}

/// One number of the publication and ours: an entry of `results.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowResult {
    /// The study's name.
    pub study: String,
    /// The figure's name.
    pub figure: String,
    /// The row's name.
    pub row: String,
    /// What is compared: a metric or a formula over metrics.
    pub metric: String,
    /// Unit of target, band and measured value; empty for a plain number.
    pub unit: String,
    /// What the publication says.
    pub target: f64,
    /// Lower end of the band; `null`: no bound.
    pub low: Option<f64>,
    /// Upper end of the band; `null`: no bound.
    pub high: Option<f64>,
    /// Our value, the mean over seeds; `null`: there is none.
    pub measured: Option<f64>,
    /// The judgement.
    pub verdict: Verdict,
    /// Where the target is published.
    pub source: String,
    /// The note that explains the disagreement if the verdict is `explained`, else the command that
    /// repeats the (first) run behind the value.
    pub evidence: String,
}

/// A [`RowResult`] and what only the page shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureRow {
    /// The row.
    #[serde(flatten)]
    pub result: RowResult,
    /// Half the width of the 95 % confidence interval of `measured`; `null` with one seed.
    pub interval: Option<f64>,
    /// Why the band is that wide.
    pub why: String,
    /// The text of the note that explains, if the verdict is `explained`.
    pub note: Option<String>,
    /// Why there is no value, if there is none.
    pub problem: Option<String>,
}

/// A point of our curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// Half the width of the 95 % confidence interval of `y`, if there are several seeds.
    pub interval: Option<f64>,
}

/// A curve of the publication and ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Name in the legend.
    pub label: String,
    /// Ours.
    pub measured: Vec<CurvePoint>,
    /// Points of ours without a value: along the horizontal axis, and why.
    #[serde(default)]
    pub missing: Vec<(f64, String)>,
    /// Points of the publication.
    pub published: Vec<(f64, f64)>,
    /// Where they are published; empty without any.
    pub source: String,
    /// How `measured` is drawn.
    pub drawn: Plot,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plot {
    /// A line with a dot at each point: values along an axis.
    Points,
    /// A line alone: a distribution.
    Line,
    /// Dots alone: a value per message.
    Dots,
}

impl Curve {
    /// What to call the point at `x` of the axis `axis`: `n=9 iw=23`.
    #[must_use]
    pub fn point(&self, axis: &str, x: f64) -> String {
        format!("{axis}={x} {}", self.label).trim_end().to_owned()
    }
}

/// A stretch of a [`Timeline`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Its start, microseconds.
    pub from_us: f64,
    /// Its end, microseconds.
    pub to_us: f64,
    /// What it is.
    pub label: String,
    /// Whether to draw it in the accent colour.
    pub accent: bool,
}

/// What happened at a few places over time, one lane each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Whose it is: the run and the point of its sweep.
    pub title: String,
    /// How to read it.
    pub about: String,
    /// Name and stretches of each lane, from the top.
    pub lanes: Vec<(String, Vec<Span>)>,
}

/// One run behind a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's name, with the point of its sweep.
    pub run: String,
    /// The seed.
    pub seed: u64,
    /// The command that repeats it.
    pub command: String,
    /// Its digest in hexadecimal; `null` if it failed.
    pub digest: Option<String>,
    /// Real time that it took, seconds.
    pub wall_s: f64,
    /// Packets that crossed a link.
    pub packet_hops: u64,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// A figure: its curves, its rows and its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureResults {
    /// Its name.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What the reader should see.
    pub expect: String,
    /// The horizontal axis of the plot.
    pub x: AxisSpec,
    /// The vertical axis of the plot.
    pub y: AxisSpec,
    /// The curves of the plot.
    pub curves: Vec<Curve>,
    /// Pictures of what happened over time.
    pub timelines: Vec<Timeline>,
    /// The numbers that are judged.
    pub rows: Vec<FigureRow>,
    /// What was run.
    pub runs: Vec<RunRecord>,
}

/// An axis of a figure's plot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisSpec {
    /// What it shows, with its unit.
    pub label: String,
    /// Logarithmic or not; `null`: as the values suggest.
    pub logarithmic: Option<bool>,
}

/// What one `trimline reproduce` found: `study.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyResults {
    /// [`STUDY_SCHEMA`].
    pub schema: u32,
    /// The study's name.
    pub study: String,
    /// Its title.
    pub title: String,
    /// What it reproduces.
    pub publication: String,
    /// Whether this is the quick form.
    pub quick: bool,
    /// Rows that the quick form leaves out.
    pub left_out: u64,
    /// The command that repeats it.
    pub command: String,
    /// Version of the engine.
    pub engine: u32,
    /// The figures, in the study's order.
    pub figures: Vec<FigureResults>,
}

impl StudyResults {
    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &FigureRow> {
        self.figures.iter().flat_map(|figure| &figure.rows)
    }

    /// How many rows have the verdict `verdict`.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows().filter(|row| row.result.verdict == verdict).count()
    }

    /// Writes `study.json` and, if there are rows, `results.json`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, out: &OutputDir) -> Result<(), FileError> {
        write_json(out, "study.json", self)?;
        let rows: Vec<&RowResult> = self.rows().map(|row| &row.result).collect();
        if rows.is_empty() {
            return Ok(());
        }
        write_json(out, "results.json", &rows)
    }

    /// Reads a `study.json`.
    ///
    /// # Errors
    /// The file is missing, broken or of another schema.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let study: Self = read_json(path)?;
        if study.schema != STUDY_SCHEMA {
            let cause = format!("its schema is {}, not {STUDY_SCHEMA}", study.schema);
            return Err(FileError::new(
                "read",
                path,
                cause,
                "reproduce the study with this version",
            ));
        }
        Ok(study)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn study() -> StudyResults {
        let result = RowResult {
            study: "ndp".to_owned(),
            figure: "fig14".to_owned(),
            row: "slowest".to_owned(),
            metric: "flow_goodput_gbps.min".to_owned(),
            unit: "Gb/s".to_owned(),
            target: 9.02,
            low: Some(8.5),
            high: None,
            measured: Some(8.9),
            verdict: Verdict::Pass,
            source: "Fig 14 [D]".to_owned(),
            evidence: "trimline run x.toml".to_owned(),
        };
        let why = "digitised".to_owned();
        let row = FigureRow { result, interval: None, why, note: None, problem: None };
        let figure = FigureResults {
            id: "fig14".to_owned(),
            title: String::new(),
            expect: String::new(),
            x: AxisSpec::default(),
            y: AxisSpec::default(),
            curves: Vec::new(),
            timelines: Vec::new(),
            rows: vec![row],
            runs: Vec::new(),
        };
        StudyResults {
            schema: STUDY_SCHEMA,
            study: "ndp".to_owned(),
            title: "NDP".to_owned(),
            publication: String::new(),
            quick: false,
            left_out: 0,
            command: String::new(),
            engine: 1,
            figures: vec![figure],
        }
    }

    /// These keys are a contract with readers. A change here is a change of [`STUDY_SCHEMA`].
    #[test]
    fn results_json_has_the_keys_of_the_contract() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        study().write(&out).unwrap();
        out.commit().unwrap();
        let text = std::fs::read_to_string(dir.path().join("results.json")).unwrap();
        let rows: Vec<serde_json::Map<String, Value>> = serde_json::from_str(&text).unwrap();
        let mut keys: Vec<&str> = rows[0].keys().map(String::as_str).collect();
        keys.sort_unstable();
        let mut expected: Vec<&str> = "study figure row metric unit target low high measured \
                                       verdict source evidence"
            .split_whitespace()
            .collect();
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(rows[0]["verdict"], "pass");
        assert_eq!(rows[0]["high"], Value::Null);
        assert_eq!(StudyResults::read(&dir.path().join("study.json")).unwrap(), study());
    }

    #[test]
    fn another_schema_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        StudyResults { schema: 9, ..study() }.write(&out).unwrap();
        out.commit().unwrap();
        let error = StudyResults::read(&dir.path().join("study.json")).unwrap_err();
        assert_eq!(error.cause, "its schema is 9, not 2");
    }
}
