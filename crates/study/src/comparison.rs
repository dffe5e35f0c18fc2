//! [`Comparison`]: scenarios and their variants beside each other, with the same seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use metrics::{
    COMPARISON_SCHEMA, Compared, ComparisonResults, Difference, Estimate, RunRow, RunTable,
    Setting, SizeBucket, SizeCompared,
};
use scenario::{
    At, Diagnostic, Document, ENGINE_VERSION, Reader, Scenario, Source, Variant, did_you_mean,
};

use crate::figure::Figure;
use crate::formula::Formula;
use crate::job::Jobs;
use crate::judge::Judge;
use crate::reproduce::{AllRan, Outcome, Ran};
use crate::run::{Edit, Run, option, second};
use crate::seeds::Seeds;
use crate::study::Study;
use crate::{Checked, edits, runs, variant};

/// What is compared, unless metrics are named. Those that no run has are left out.
const USUAL: [&str; 7] = [
    "fct_us.p50",
    "fct_us.p99",
    "slowdown.p99",
    "goodput_gbps",
    "flow_goodput_gbps.min",
    "jobs.time_us.p99",
    "timeouts.total",
];

/// Scenarios and their variants beside each other.
pub struct Comparison {
    study: Study,
    metrics: Vec<Arc<Formula>>,
    /// Whether the metrics are [`USUAL`].
    is_usual: bool,
    files: Vec<PathBuf>,
    edits: Vec<String>,
}

/// What is compared: a scenario, or a variant of one.
struct Subject {
    label: String,
    file: PathBuf,
    variant: Option<Variant>,
}

/// What to compare.
pub struct What<'w> {
    /// Scenarios. One with variants stands for these.
    pub files: &'w [PathBuf],
    /// The `--set` edits, which every run has.
    pub edits: &'w [String],
    /// The seeds of every scenario.
    pub seeds: &'w Seeds,
    /// Metrics and formulas; none: the usual ones.
    pub metrics: &'w [String],
    /// The one that others are compared with, if it is not the first.
    pub baseline: Option<&'w str>,
}

impl Comparison {
    /// Read what is compared.
    ///
    /// # Errors
    /// A file cannot be read, there is only one scenario, or a metric or baseline is unknown.
    pub fn load(what: &What<'_>) -> Result<Self, Diagnostic> {
        let What { files, edits, seeds, metrics, baseline } = what;
        let options: Vec<Edit> = edits.iter().map(|edit| option(edit)).collect();
        edits::check(&edits::COMPARISON, &[], &options)?;
        let mut subjects = subjects(files)?;
        if let Some(baseline) = baseline {
            let labels: Vec<&str> = subjects.iter().map(|subject| &*subject.label).collect();
            let Some(at) = labels.iter().position(|label| label == baseline) else {
                let error = Diagnostic::new(format!("nothing here is called `{baseline}`"));
                return Err(error.hint(did_you_mean(baseline, &labels)));
            };
            subjects[..=at].rotate_right(1);
        }
        if subjects.len() < 2 {
            let error = Diagnostic::new("there is one scenario, and nothing to compare it with");
            return Err(error.hint("name several files, or give the scenario `[[variant]]` tables"));
        }
        let named = |subject: Subject| {
            let Subject { label, file, variant } = subject;
            let text = file.display().to_string();
            let span = 0..text.len();
            let source = Arc::new(Source { name: "the command line".to_owned(), text });
            let (at, seeds) = (At { source, span }, seeds.list().to_vec());
            Run::plain(label, &file, at, seeds, options.clone()).with_variant(variant)
        };
        let runs = subjects.into_iter().map(named).collect();
        let figure = Figure::of_runs("comparison".to_owned(), PathBuf::new(), runs);
        let is_usual = metrics.is_empty();
        let usual: Vec<String> = USUAL.iter().map(|metric| (*metric).to_owned()).collect();
        let metrics = formulas(&figure, if is_usual { &usual } else { metrics })?;
        let study = Study::of_figures("comparison".to_owned(), String::new(), vec![figure]);
        let (files, edits) = (files.to_vec(), edits.to_vec());
        Ok(Self { study, metrics, is_usual, files, edits })
    }

    /// What there is to run.
    #[must_use]
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Warnings of variants that change nothing.
    ///
    /// # Errors
    /// A scenario cannot be read any more.
    pub fn warnings(&self) -> Result<Vec<Diagnostic>, Diagnostic> {
        let of_files = self.files.iter().map(|file| variant::without_effect(file, &self.edits));
        Ok(of_files.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// The runs of `outcome`, of the plan with these `jobs`, a row each.
    #[must_use]
    pub fn runs(&self, outcome: &Outcome<'_>, jobs: &Jobs<'_>) -> (RunTable, Vec<RunRow>) {
        let judge = outcome.judge();
        judge.map(|judge| runs::table(jobs, &judge, &self.metrics)).unwrap_or_default()
    }

    /// What `outcome` says. `command` repeats it.
    ///
    /// # Errors
    /// A scenario cannot be read any more.
    pub fn results(
        &self,
        outcome: &Outcome<'_>,
        command: String,
    ) -> Result<ComparisonResults, Diagnostic> {
        let (Some(judge), Some(ran)) = (outcome.judge(), outcome.all_ran()) else {
            return Err(Diagnostic::new("there is nothing to compare"));
        };
        let table = Table { judge, ran, runs: &self.study.figures[0].runs };
        let mut measured: Vec<Measured<'_>> =
            self.metrics.iter().map(|metric| table.measured(metric)).collect();
        let seeds = table.runs[0].seeds.len();
        measured.retain(|of| !self.is_usual || of.says_something(seeds));
        let sentences = u32::try_from(measured.len() * (table.runs.len() - 1)).unwrap_or(u32::MAX);
        let labels: Vec<String> = table.runs.iter().map(|run| run.id.clone()).collect();
        Ok(ComparisonResults {
            schema: COMPARISON_SCHEMA,
            engine: ENGINE_VERSION,
            command,
            repeat: table.commands(),
            seeds: u32::try_from(seeds).unwrap_or(u32::MAX),
            metrics: measured.iter().map(|of| of.compared(sentences, seeds)).collect(),
            sentences,
            by_size: table.by_size(),
            settings: settings(table.runs)?,
            warnings: table.warnings(),
            same_messages: table.same_messages(),
            labels,
        })
    }
}

/// The scenarios and variants in `files`, each with a label of its own.
fn subjects(files: &[PathBuf]) -> Checked<Vec<Subject>> {
    let mut subjects: Vec<Subject> = Vec::new();
    for file in files {
        let (name, variants) = Scenario::name_and_variants(file)?;
        let alone = variants.is_empty().then_some((name, None));
        let named = variants.into_iter().map(|variant| (variant.name().to_owned(), Some(variant)));
        let all = alone.into_iter().chain(named);
        subjects.extend(all.map(|(label, variant)| Subject { label, file: file.clone(), variant }));
    }
    // Where names are equal, files are added, and where these are equal, numbers.
    let again = |subjects: &[Subject]| -> Vec<bool> {
        let count = |label: &str| subjects.iter().filter(|other| other.label == label).count();
        subjects.iter().map(|subject| count(&subject.label) > 1).collect()
    };
    let twice = again(&subjects);
    for (subject, _) in subjects.iter_mut().zip(twice).filter(|(_, twice)| *twice) {
        subject.label = format!("{} ({})", subject.label, subject.file.display());
    }
    let twice = again(&subjects);
    for ((n, subject), _) in (1..).zip(&mut subjects).zip(twice).filter(|(_, twice)| *twice) {
        subject.label = format!("{} {n}", subject.label);
    }
    Ok(subjects)
}

/// `metrics` as formulas, which every run has.
fn formulas(figure: &Figure, metrics: &[String]) -> Checked<Vec<Arc<Formula>>> {
    if let Some(again) = second(metrics) {
        let error = Diagnostic::new(format!("the metric `{}` is there twice", metrics[again]));
        return Err(error.hint("it would count twice, and widen every interval; remove it"));
    }
    let formula = |metric: &String| {
        // As if it stood in a file, so that an error can be shown in it.
        let text = format!("metric = {}", toml_text(metric));
        let document = Document::parse("--metric", &text)?;
        let table = Reader::new(&document.root, &document.root.at, "--metric")?;
        let of_runs = (0..figure.runs.len())
            .map(|run| figure.formula_of(metric, &table, "metric", run))
            .collect::<Checked<Vec<_>>>()?;
        of_runs.into_iter().next().ok_or_else(|| Diagnostic::new("there is nothing to compare"))
    };
    metrics.iter().map(formula).collect()
}

/// `text` in quotes.
fn toml_text(text: &str) -> String {
    // JSON's escapes are among those of TOML.
    serde_json::Value::from(text).to_string()
}

/// What the runs measured.
struct Table<'t> {
    judge: Judge<'t>,
    ran: &'t AllRan,
    runs: &'t [Run],
}

/// The values of a metric.
struct Measured<'m> {
    metric: &'m Formula,
    /// Of each run, by seed.
    values: Vec<BTreeMap<u64, f64>>,
}

impl Measured<'_> {
    /// Whether any run has a value that is not 0, and a pair of runs as many in common as a
    /// difference takes, of so many seeds.
    fn says_something(&self, seeds: usize) -> bool {
        let first = &self.values[0];
        let pairs = self.values.iter().skip(1).map(|other| differences(first, other).len());
        pairs.max().unwrap_or_default() >= seeds.min(2)
            && self.values.iter().flat_map(BTreeMap::values).any(|value| *value != 0.0)
    }

    /// A difference for each run but the first, of `sentences` in all.
    ///
    /// With some of the `seeds` there is no value: it takes as many more as there were for each
    /// value so far.
    fn compared(&self, sentences: u32, seeds: usize) -> Compared {
        let first = &self.values[0];
        let difference = |other: &BTreeMap<u64, f64>| {
            let values = differences(first, other);
            let difference = Difference::of(&values, sentences);
            let for_each = |more: u32| {
                let more = u64::from(more) * seeds as u64;
                u32::try_from(more.div_ceil(values.len().max(1) as u64)).unwrap_or(u32::MAX)
            };
            Difference { more_seeds: difference.more_seeds.map(for_each), ..difference }
        };
        Compared {
            metric: self.metric.text.clone(),
            values: self.values.iter().map(estimate).collect(),
            differences: self.values.iter().skip(1).map(difference).collect(),
        }
    }
}

fn estimate(values: &BTreeMap<u64, f64>) -> Option<Estimate> {
    Estimate::of(&values.values().copied().collect::<Vec<_>>())
}

/// `other` less `first`, with the seeds that both have.
fn differences(first: &BTreeMap<u64, f64>, other: &BTreeMap<u64, f64>) -> Vec<f64> {
    other.iter().filter_map(|(seed, value)| Some(value - first.get(seed)?)).collect()
}

impl<'t> Table<'t> {
    /// The values of `metric` in every run.
    fn measured<'m>(&self, metric: &'m Formula) -> Measured<'m> {
        let of = |run: usize| {
            let seeds = self.runs[run].seeds.iter();
            let value =
                |&seed: &u64| Some((seed, self.judge.value(run, metric, &Vec::new(), seed).ok()?));
            seeds.filter_map(value).collect()
        };
        Measured { metric, values: (0..self.runs.len()).map(of).collect() }
    }

    /// What run `index` left, by seed; those that failed left out.
    fn of_run(&self, index: usize) -> impl Iterator<Item = (u64, &'t Ran)> {
        let own = self.ran.iter().filter(move |((run, _, _), _)| *run == index);
        let own = own.filter(|(_, ran)| ran.record.error.is_none());
        own.map(|((_, _, seed), ran)| (*seed, ran))
    }

    /// The commands of the first seed.
    fn commands(&self) -> Vec<String> {
        let command = |index| {
            let mut own = self.ran.iter().filter(|((run, _, _), _)| *run == index);
            own.next().map(|(_, ran)| ran.record.command.clone()).unwrap_or_default()
        };
        (0..self.runs.len()).map(command).collect()
    }

    /// Slowdown by size: ranges in which some run has messages.
    fn by_size(&self) -> Vec<SizeCompared> {
        let all = || (0..self.runs.len()).flat_map(|run| self.of_run(run));
        let buckets = all().flat_map(|(_, ran)| &ran.by_size);
        let ranges: BTreeSet<(u64, Option<u64>)> =
            buckets.filter(|b| b.count > 0).map(|b| (b.from_bytes, b.to_bytes)).collect();
        ranges.into_iter().map(|range| self.of_size(range)).collect()
    }

    fn of_size(&self, (from_bytes, to_bytes): (u64, Option<u64>)) -> SizeCompared {
        let values = |get: fn(&SizeBucket) -> Option<f64>| -> Vec<BTreeMap<u64, f64>> {
            let of_seed = |(seed, ran): (u64, &Ran)| {
                let bucket = ran.by_size.iter().find(|bucket| bucket.from_bytes == from_bytes)?;
                Some((seed, get(bucket)?))
            };
            (0..self.runs.len()).map(|run| self.of_run(run).filter_map(of_seed).collect()).collect()
        };
        let (p50, p99) = (values(|bucket| bucket.p50), values(|bucket| bucket.p99));
        let less_first = |other| Estimate::of(&differences(&p99[0], other));
        SizeCompared {
            from_bytes,
            to_bytes,
            p50: p50.iter().map(estimate).collect(),
            p99: p99.iter().map(estimate).collect(),
            p99_less_first: p99.iter().skip(1).map(less_first).collect(),
        }
    }

    /// What the summaries warn of, each once for each run, with how many seeds it is of. Warnings
    /// that differ in numbers are one.
    fn warnings(&self) -> Vec<String> {
        let of = |(index, run): (usize, &Run)| {
            let all = self.of_run(index).map(|(_, ran)| ran.warnings.clone());
            runs::warnings(&run.id, &all.collect::<Vec<_>>())
        };
        self.runs.iter().enumerate().flat_map(of).collect()
    }

    /// Whether all runs with the same seed had the same measured messages.
    fn same_messages(&self) -> bool {
        let first: BTreeMap<u64, &str> =
            self.of_run(0).map(|(seed, ran)| (seed, &*ran.messages)).collect();
        let differs = |(seed, ran): (u64, &Ran)| {
            first.get(&seed).is_some_and(|messages| *messages != ran.messages)
        };
        !(1..self.runs.len()).flat_map(|run| self.of_run(run)).any(differs)
    }
}

/// The settings that are not the same in all `runs`.
fn settings(runs: &[Run]) -> Checked<Vec<Setting>> {
    let flat = |run: &Run| {
        let seed = run.seeds.first().copied().unwrap_or_default();
        let scenario = run.scenario(&Vec::new(), false, (seed, None))?;
        let mut flat = BTreeMap::new();
        flatten("", scenario.resolved(), &mut flat);
        Ok(flat)
    };
    let all: Vec<BTreeMap<String, String>> = runs.iter().map(flat).collect::<Checked<_>>()?;
    let paths: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let setting = |path: &&String| Setting {
        path: (*path).clone(),
        values: all.iter().map(|flat| flat.get(*path).cloned()).collect(),
    };
    let differs = |setting: &Setting| setting.values.iter().any(|v| *v != setting.values[0]);
    Ok(paths.iter().map(setting).filter(differs).collect())
}

/// What is no setting: names, and fingerprints of files.
const NO_SETTINGS: [&str; 3] = ["name", "seed", "about"];

/// Every value of `table` by its path.
fn flatten(path: &str, table: &toml::Table, into: &mut BTreeMap<String, String>) {
    for (key, value) in table.iter().filter(|(key, _)| !NO_SETTINGS.contains(&key.as_str())) {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        flatten_value(path, value, into);
    }
}

fn flatten_value(path: String, value: &toml::Value, into: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => flatten(&path, table, into),
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            for (i, item) in items.iter().enumerate() {
                let path = if items.len() == 1 { path.clone() } else { format!("{path}.{i}") };
                flatten_value(path, item, into);
            }
        }
        toml::Value::String(text) => drop(into.insert(path, text.clone())),
        other => drop(into.insert(path, other.to_string())),
    }
}
