//! [`StudyResults`]: what `trimline reproduce` leaves. `results.json` is the list of verdicts
//! and has keys that do not change; `study.json` has all that the report page shows.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::output::{read_json, write_json};
use crate::{FileError, OutputDir};

/// Version of `results.json` and `study.json`.
pub const STUDY_SCHEMA: u32 = 6;

/// Whose number a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The publication's: in a figure, in its text or in its authors' data.
    Published,
    /// Ours: a property, arithmetic, or an experiment that no publication has.
    Own,
    /// It repeats another row, and counts nowhere.
    Copy,
}

/// How much of a study is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// All of it.
    #[default]
    Full,
    /// What published rows and the experiments on their causes read, as in the full form.
    Published,
    /// Fewer sizes and seeds, shorter runs.
    Quick,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Full, Self::Published, Self::Quick];

    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Published => "published",
            Self::Quick => "quick",
        }
    }

    /// Whether runs have fewer sizes and seeds, and are shorter.
    #[must_use]
    pub const fn is_quick(self) -> bool {
        matches!(self, Self::Quick)
    }
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Verdict {
    /// A published number in its band.
    #[serde(rename = "in band")]
    InBand,
    /// Out of its band, and an experiment of the study, run by the same command, confirms why.
    #[serde(rename = "cause tested")]
    CauseTested,
    /// Out of its band, or without a value.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// A row of our own within its bounds.
    #[serde(rename = "holds")]
    Holds,
    /// A row of our own beyond its bounds, or without a value.
    #[serde(rename = "does not hold")]
    DoesNotHold,
}

impl Verdict {
    /// All of them; of a kind of row the better ones first.
    pub const ALL: [Self; 5] =
        [Self::InBand, Self::CauseTested, Self::NotReproduced, Self::Holds, Self::DoesNotHold];

    /// Its name in files and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InBand => "in band",
            Self::CauseTested => "cause tested",
            Self::NotReproduced => "not reproduced",
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
        }
    }

    /// Whether the value is where it should be.
    #[must_use]
    pub const fn is_good(self) -> bool {
        matches!(self, Self::InBand | Self::Holds)
    }
}

/// How many rows of a study came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Published rows in their bands.
    pub in_band: usize,
    /// Published rows out of their bands for a cause that an experiment confirms.
    pub cause_tested: usize,
    /// All other published rows.
    pub not_reproduced: usize,
    /// Rows of our own that hold.
    pub holds: usize,
    /// Rows of our own that do not.
    pub does_not_hold: usize,
}

impl Score {
    /// The score of rows with these origins and verdicts. Copies do not count.
    #[must_use]
    pub fn of(rows: impl Iterator<Item = (Origin, Verdict)>) -> Self {
        let mut score = Self::default();
        for (_, verdict) in rows.filter(|(origin, _)| *origin != Origin::Copy) {
            *match verdict {
                Verdict::InBand => &mut score.in_band,
                Verdict::CauseTested => &mut score.cause_tested,
                Verdict::NotReproduced => &mut score.not_reproduced,
                Verdict::Holds => &mut score.holds,
                Verdict::DoesNotHold => &mut score.does_not_hold,
            } += 1;
        }
        score
    }

    /// All published rows.
    #[must_use]
    pub const fn published(&self) -> usize {
        self.in_band + self.cause_tested + self.not_reproduced
    }

    /// All rows of our own.
    #[must_use]
    pub const fn own(&self) -> usize {
        self.holds + self.does_not_hold
    }
}

impl std::ops::Add for Score {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            in_band: self.in_band + other.in_band,
            cause_tested: self.cause_tested + other.cause_tested,
            not_reproduced: self.not_reproduced + other.not_reproduced,
            holds: self.holds + other.holds,
            does_not_hold: self.does_not_hold + other.does_not_hold,
        }
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "published rows in band: {} of {}; cause tested: {}; not reproduced: {}; own \
             properties: {} of {} hold",
            self.in_band,
            self.published(),
            self.cause_tested,
            self.not_reproduced,
            self.holds,
            self.own()
        )
    }
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
    /// Whose number it is.
    pub origin: Origin,
    /// What is compared: a metric or a formula over metrics.
    pub metric: String,
    /// Unit of target, band and measured value; empty for a plain number.
    pub unit: String,
    /// What the publication says, or what a row of our own expects; `null`: a bound alone.
    pub target: Option<f64>,
    /// Lower end of the band; `null`: no bound.
    pub low: Option<f64>,
    /// Upper end of the band; `null`: no bound.
    pub high: Option<f64>,
    /// Our value, the mean over seeds; `null`: there is none.
    pub measured: Option<f64>,
    /// The judgement.
    pub verdict: Verdict,
    /// Where the target is published, or where a row of our own comes from.
    pub source: String,
    /// The note on the disagreement if the value is out of its band and there is a note, else the
    /// command that repeats the (first) run behind the value.
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
    /// Whether it is one of the numbers that a reader of the publication looks for first.
    pub headline: bool,
    /// The text of the note, if the value is out of its band and there is a note.
    pub note: Option<String>,
    /// The experiment on the cause, if the value is out of its band and there is one.
    pub experiment: Option<Experiment>,
    /// Why there is no value, if there is none.
    pub problem: Option<String>,
}

/// The run that tests why a row is out of its band.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Its name, with the point of its sweep.
    pub run: String,
    /// What is compared.
    pub metric: String,
    /// What it shows if it confirms the cause.
    pub shows: Shows,
    /// Its value; the published one if it shows scatter. `null`: there is none.
    pub measured: Option<f64>,
    /// Lower end of the values that confirm the cause: of the row's band, of what shows that the
    /// band cannot be reached, or the least value of a single seed.
    pub low: Option<f64>,
    /// Upper end of them.
    pub high: Option<f64>,
    /// If it shows scatter: the widest range of single seeds that says anything.
    pub widest: Option<f64>,
}

/// What an experiment on a cause can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shows {
    /// With the cause taken away the row is in its band.
    InBand,
    /// The band cannot be reached.
    Unreachable,
    /// The published value, of a single run, lies among those of single seeds, and these are not
    /// so far apart that nearly any value would.
    Scatter,
}

impl Experiment {
    /// Whether it confirms the cause.
    #[must_use]
    pub fn confirms(&self) -> bool {
        let range = self.high.zip(self.low).map(|(high, low)| high - low);
        let says_nothing = self.widest.zip(range).is_some_and(|(widest, range)| range > widest);
        !says_nothing && self.measured.is_some_and(|value| is_within(value, self.low, self.high))
    }
}

/// Whether `value` is between `low` and `high`, as far as these are there.
#[must_use]
pub fn is_within(value: f64, low: Option<f64>, high: Option<f64>) -> bool {
    low.is_none_or(|low| value >= low) && high.is_none_or(|high| value <= high)
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
    /// Over how many seeds, if it is a mean.
    #[serde(default)]
    pub seeds: Option<u32>,
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
    /// The figure whose plot is shown first, if any.
    pub picture: Option<String>,
    /// How much of the study was run.
    pub form: Form,
    /// Rows that this form leaves out.
    pub left_out: u64,
    /// The command that repeats it.
    pub command: String,
    /// Version of the engine.
    pub engine: u32,
    /// What hangs on phases, if that was looked for.
    pub on_phases: Vec<OnPhases>,
    /// What the runs of a sweep warn of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The figures, in the study's order.
    pub figures: Vec<FigureResults>,
}

/// A value that other ties, clocks and jitter move by more than single seeds differ
/// (specs/phases.md#3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnPhases {
    /// The figure.
    pub figure: String,
    /// The row, or the curve and its point.
    pub what: String,
    /// The value over all seeds.
    pub value: f64,
    /// How far one more seed's value may be from it: half of the 95 % prediction interval.
    pub interval: f64,
    /// How far other phases moved it with the first seed.
    pub shift: f64,
}

impl StudyResults {
    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &FigureRow> {
        self.figures.iter().flat_map(|figure| &figure.rows)
    }

    /// How many rows came out.
    #[must_use]
    pub fn score(&self) -> Score {
        Score::of(self.rows().map(|row| (row.result.origin, row.result.verdict)))
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
            let hint = "reproduce the study with this version";
            return Err(FileError::new("read", path, cause, hint));
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
            origin: Origin::Published,
            metric: "flow_goodput_gbps.min".to_owned(),
            unit: "Gb/s".to_owned(),
            target: Some(9.02),
            low: Some(8.5),
            high: None,
            measured: Some(8.9),
            verdict: Verdict::InBand,
            source: "Fig 14, read off the plot".to_owned(),
            evidence: "trimline run x.toml".to_owned(),
        };
        let row = FigureRow {
            result,
            interval: None,
            why: "digitised".to_owned(),
            headline: true,
            note: None,
            experiment: None,
            problem: None,
        };
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
            picture: None,
            form: Form::Full,
            left_out: 0,
            command: String::new(),
            engine: 1,
            on_phases: Vec::new(),
            warnings: Vec::new(),
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
        let mut expected: Vec<&str> = "study figure row origin metric unit target low high \
                                       measured verdict source evidence"
            .split_whitespace()
            .collect();
        expected.sort_unstable();
        assert_eq!(keys, expected);
        assert_eq!(rows[0]["verdict"], "in band");
        assert_eq!(rows[0]["origin"], "published");
        assert_eq!(rows[0]["high"], Value::Null);
        assert_eq!(StudyResults::read(&dir.path().join("study.json")).unwrap(), study());
    }

    #[test]
    fn a_verdict_is_called_alike_everywhere() {
        for verdict in Verdict::ALL {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.name());
        }
    }

    #[test]
    fn copies_do_not_score() {
        use {Origin::*, Verdict::*};
        let rows =
            [(Published, InBand), (Published, NotReproduced), (Copy, Holds), (Own, DoesNotHold)];
        let score = Score::of(rows.into_iter());
        assert_eq!((score.in_band, score.published(), score.holds, score.own()), (1, 2, 0, 1));
        let twice = (score + score).to_string();
        assert!(twice.starts_with("published rows in band: 2 of 4; cause tested: 0"), "{twice}");
    }

    #[test]
    fn another_schema_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        StudyResults { schema: 9, ..study() }.write(&out).unwrap();
        out.commit().unwrap();
        let error = StudyResults::read(&dir.path().join("study.json")).unwrap_err();
        assert_eq!(error.cause, format!("its schema is 9, not {STUDY_SCHEMA}"));
    }
}
