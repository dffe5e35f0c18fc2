//! [`Sweep`]: the table `[sweep]` of a scenario, run as a study without targets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use metrics::{AxisSpec, FigureResults, RunRow, RunTable, StudyResults};
use scenario::{Diagnostic, Document, Reader, Scenario, Value};

use crate::figure::{self, Curve, CurveOf, Figure};
use crate::formula::Formula;
use crate::job::Jobs;
use crate::plan::Plan;
use crate::reproduce::Outcome;
use crate::run::{self, Run};
use crate::seeds::Seeds;
use crate::study::{Study, document};
use crate::{Checked, runs, variant};

/// A scenario's own sweep.
pub struct Sweep {
    study: Study,
    /// What it shows.
    metrics: Vec<Arc<Formula>>,
    /// See [`Sweep::until`].
    until: Option<f64>,
    file: PathBuf,
    edits: Vec<String>,
}

impl Sweep {
    /// Whether the scenario `file` has a table `[sweep]`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_in(file: &Path) -> Result<bool, Diagnostic> {
        let Value::Table(root) = Document::load(file)?.root.value else { return Ok(false) };
        Ok(root.contains_key("sweep"))
    }

    /// Read the scenario `file` with the `--set` edits `edits`, which every run has; `seeds`
    /// replace those of the file.
    ///
    /// # Errors
    /// There is no table `[sweep]`, or the first thing that is wrong in it.
    pub fn load(file: &Path, edits: &[String], seeds: Option<&Seeds>) -> Result<Self, Diagnostic> {
        Self::of_document(&document(file)?, file, edits, seeds)
    }

    /// The same of a `document` that is written to `file`, and that knows better where what is
    /// wrong stands.
    ///
    /// # Errors
    /// As of [`Sweep::load`].
    pub fn of_document(
        document: &Document,
        file: &Path,
        edits: &[String],
        seeds: Option<&Seeds>,
    ) -> Result<Self, Diagnostic> {
        let mut root = Reader::new(&document.root, &document.root.at, "the scenario")?;
        let title = root.need("name")?;
        let Some(mut table) = root.table("sweep")? else {
            let example = "add a table `[sweep]`, for example with `axes = { n = [10, 100] }`, \
                           `set = [\"traffic.senders={n}\"]`, `seeds = [1]`, `metrics = [\"fct_us.p99\"]`";
            let error = root.error("sweep", "the scenario has no table `[sweep]`", "in this file");
            return Err(error.hint(example));
        };
        let run = Run::of_sweep(&mut table, file, edits, seeds)?;
        let until = until(&mut table)?;
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| "sweep".to_owned());
        let metrics: Vec<String> = table.need("metrics")?;
        if metrics.is_empty() {
            let error =
                table.error("metrics", "no metrics: there is nothing to show", "an empty list");
            return Err(error.hint("for example `metrics = [\"fct_us.p99\"]`"));
        }
        if let Some(again) = run::second(&metrics) {
            let error =
                table.error("metrics", format!("`{}` is there twice", metrics[again]), "here");
            return Err(error.hint("remove one of them"));
        }
        let dir = file.parent().unwrap_or(Path::new("")).to_owned();
        let mut figure = Figure::of_runs(name.clone(), dir, vec![run]);
        let axis = axis(&mut table, &figure.runs[0])?;
        figure.x.label = figure.runs[0].axes[axis].name.clone();
        let mut formulas = Vec::new();
        for metric in &metrics {
            let y = figure.formula_of(metric, &table, "metrics", 0)?;
            formulas.push(Arc::clone(&y));
            for at in others(&figure.runs[0], axis) {
                let label = label(&figure.runs[0], &at);
                let of = CurveOf::Along { axis, y: y.clone() };
                let (published, source) = (Vec::new(), String::new());
                figure.curves.push(Curve { label, run: 0, at, of, published, source });
            }
        }
        table.finish()?;
        let study = Study::of_figures(name, title, vec![figure]);
        let (file, edits) = (file.to_owned(), edits.to_vec());
        Ok(Self { study, metrics: formulas, until, file, edits })
    }

    /// Seeds are added until half of each interval is at most this share of its value, or there are
    /// no more.
    #[must_use]
    pub fn until(&self) -> Option<f64> {
        self.until
    }

    /// Warnings of variants that change nothing, or less than they say.
    ///
    /// # Errors
    /// The scenario cannot be read any more.
    pub fn warnings(&self) -> Result<Vec<Diagnostic>, Diagnostic> {
        let cancelled = self.study.figures.iter().flat_map(|figure| &figure.runs);
        let cancelled = cancelled.flat_map(Run::cancelled_edits);
        // Wrong edits are named where they are planned.
        let read = Scenario::load(&self.file, &self.edits).ok();
        let missing = read.and_then(|read| read.without_packets());
        let missing = missing.map(|text| Diagnostic::new(text).warning());
        let of_variants = variant::without_effect(&self.file, &self.edits)?;
        Ok(of_variants.into_iter().chain(cancelled).chain(missing).collect())
    }

    /// The runs of `outcome`, of the plan with these `jobs`, a row each.
    #[must_use]
    pub fn runs(&self, outcome: &Outcome<'_>, jobs: &Jobs<'_>) -> (RunTable, Vec<RunRow>) {
        let judge = outcome.judge();
        judge.map(|judge| runs::table(jobs, &judge, &self.metrics)).unwrap_or_default()
    }

    /// That the scenario of its first job can be read.
    ///
    /// # Errors
    /// What is wrong in it, or in an edit.
    pub fn check_first(&self) -> Result<(), Diagnostic> {
        let plan = Plan::unchecked(&self.study, false)?;
        plan.job(0).map_or(Ok(()), |job| job.scenario().map(drop))
    }

    /// What there is to run.
    #[must_use]
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// `results` with a figure for each metric.
    #[must_use]
    pub fn by_metric(&self, mut results: StudyResults) -> StudyResults {
        let Some(all) = results.figures.pop() else { return results };
        let each = all.curves.len() / self.metrics.len().max(1);
        let runs = std::iter::once(all.runs).chain(std::iter::repeat_with(Vec::new));
        let curves = all.curves.chunks(each.max(1)).map(<[_]>::to_vec);
        let figures = self.metrics.iter().zip(curves).zip(runs).map(|((metric, curves), runs)| {
            FigureResults {
                id: metric.text.clone(),
                title: String::new(),
                expect: String::new(),
                x: all.x.clone(),
                y: AxisSpec { label: metric.text.clone(), logarithmic: None },
                curves,
                timelines: Vec::new(),
                rows: Vec::new(),
                runs,
            }
        });
        results.figures = figures.collect();
        results
    }
}

/// The share under `until`, if it is there.
fn until(table: &mut Reader<'_>) -> Checked<Option<f64>> {
    let Some(text) = table.maybe::<String>("until")? else { return Ok(None) };
    share(&text).map(Some).map_err(|why| {
        let error = table.error("until", why, "here");
        error.hint("how wide half of an interval may be: `until = \"5%\"`")
    })
}

/// The share that `5%` is.
///
/// # Errors
/// Why it is none.
pub fn share(text: &str) -> Result<f64, String> {
    let percent = text.trim().strip_suffix('%').and_then(|n| n.trim().parse::<f64>().ok());
    let share = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    share
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("`{text}` is no share such as 5%: above 0%, at most 100%"))
}

/// The axis along x: `x`, or the only one beside that of variants.
fn axis(table: &mut Reader<'_>, run: &Run) -> Checked<usize> {
    let mut own = run.axes.iter().enumerate().filter(|(_, axis)| axis.name != run::VARIANT);
    match (own.next(), own.next()) {
        (Some((i, only)), None)
            if !table.has("x") && only.values.iter().all(|value| value.number.is_some()) =>
        {
            Ok(i)
        }
        _ => figure::axis_of(table, "x", run),
    }
}

/// Every combination of values of the axes but `axis`.
fn others(run: &Run, axis: usize) -> Vec<Vec<Option<usize>>> {
    // A combination comes first with the first value of the axis.
    let first = run.points(false).into_iter().filter(|point| point.get(axis) == Some(&0));
    let open = |(i, value)| (i != axis).then_some(value);
    first.map(|point| point.into_iter().enumerate().map(open).collect()).collect()
}

/// The values of the axes that are not along x.
fn label(run: &Run, at: &[Option<usize>]) -> String {
    let value = |(axis, at): (&run::Axis, &Option<usize>)| {
        let text = &axis.values.get((*at)?)?.text;
        let is_named = axis.name != run::VARIANT;
        Some(if is_named { format!("{}={text}", axis.name) } else { text.clone() })
    };
    let words: Vec<String> = run.axes.iter().zip(at).filter_map(value).collect();
    words.join(", ")
}
