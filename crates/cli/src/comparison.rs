//! `trimline compare --seeds`: scenarios and variants with the same seeds, and what differs between
//! them by more than chance.

use std::path::{Path, PathBuf};

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use metrics::{Compared, ComparisonResults, OutputDir, ResultsOf, Setting, row};
use scenario::Error;
use study::{Comparison, Plan, Seeding, Seeds, What};

use crate::jobs::{Batch, Done, nameable};
use crate::progress;
use crate::reproduce::shown;
use crate::table::{printable, right};
use crate::{Ended, Printed, args, operand, own_command_line, said, say, say_json, tell, warn};

/// `trimline compare --seeds`. Fails if a run fails.
pub(crate) fn compare(args: &args::Compare, seeds: &Seeds, progress: args::Progress) -> Ended {
    nameable(&args.files)?;
    let comparison = Comparison::load(&What {
        files: &args.files,
        edits: &args.edits.sets,
        seeds,
        metrics: &args.metrics,
        baseline: args.baseline.as_deref(),
    })?;
    let dir = args.out.clone().unwrap_or_else(|| PathBuf::from("out/comparison"));
    if !args.jobs.job.is_empty() {
        let plan = Plan::unchecked(comparison.study(), false)?;
        return Batch::new(&plan, &dir, command(args, seeds), &args.jobs).run_named();
    }
    let plan = progress::plan(comparison.study(), false, progress)?;
    let batch = Batch::new(&plan, &dir, command(args, seeds), &args.jobs);
    if args.jobs.list_jobs {
        return batch.list(Seeding::All);
    }
    if let Some(scheduler) = args.jobs.emit {
        return batch.emit(scheduler, Seeding::All);
    }
    for warning in comparison.warnings()? {
        tell(warning.render(false));
    }
    let out = batch.output(ResultsOf::Comparison)?;
    let mut done = batch.run(Seeding::All, progress)?;
    let missing = done.take_missing();
    let results = write(&comparison, &batch, &done, out)?;
    results.warnings.iter().for_each(|warning| warn(warning));
    let printed = match args.jobs.json {
        true => say_json(&Printed { directory: &dir, results: &results }),
        false => print(&results, &dir),
    };
    said(printed, &dir, args.jobs.json)?;
    batch.ended(&missing)
}

/// The arguments that this comparison comes from, but those that say where and how it is run.
fn command(args: &args::Compare, seeds: &Seeds) -> Vec<String> {
    // With `=`, as values may begin with a dash.
    let option = |name: &'static str| move |value: &String| format!("{name}={value}");
    let mut words = vec!["compare".to_owned()];
    words.extend(args.files.iter().map(|file| operand(file)));
    words.extend(args.edits.sets.iter().map(option("--set")));
    words.push(format!("--seeds={seeds}"));
    words.extend(args.metrics.iter().map(option("--metric")));
    words.extend(args.baseline.iter().map(option("--baseline")));
    words
}

/// Leave what `done` says, its page and a row for each run in `out`.
fn write(
    comparison: &Comparison,
    batch: &Batch<'_>,
    done: &Done<'_>,
    out: OutputDir,
) -> Result<ComparisonResults, Error> {
    let (columns, rows) = comparison.runs(&done.outcome, batch.jobs());
    let command = own_command_line();
    let results = comparison.results(&done.outcome, command)?;
    batch.publish(out, |out| {
        results.write(out)?;
        columns.write(out.file("runs.parquet")?, rows)
    })?;
    Ok(results)
}

fn print(results: &ComparisonResults, dir: &Path) -> Ended {
    say(values(results))?;
    if !results.by_size.is_empty() {
        say(by_size(results))?;
    }
    if !results.settings.is_empty() {
        say(settings(results))?;
    }
    say(results.about_traffic())?;
    say(results.about_sentences())?;
    results.sentences().iter().try_for_each(|sentence| say(printable(sentence)))?;
    say(format_args!("results: {}", dir.join("comparison.json").display()))?;
    say(format_args!("report:  {}", dir.join("report.html").display()))
}

fn new_table(head: impl Iterator<Item = String>) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(head.map(|cell| printable(&cell)));
    table
}

/// The labels, then for each but the first what it is less the first.
fn heads(results: &ComparisonResults) -> impl Iterator<Item = String> {
    let labels = &results.labels;
    let less = labels.iter().skip(1).map(|label| format!("{label} - {}", labels[0]));
    labels.iter().cloned().chain(less)
}

/// A row for each metric.
fn values(results: &ComparisonResults) -> String {
    let seeds = format!("mean of {} seeds", results.seeds);
    let mut table = new_table(std::iter::once(seeds).chain(heads(results)));
    for Compared { metric, values, differences } in &results.metrics {
        let differences = differences.iter().map(|d| d.estimate);
        let estimates: Vec<_> = values.iter().copied().chain(differences).collect();
        table.add_row(row(metrics::named(metric), &estimates, results.seeds, shown));
    }
    right(table)
}

/// A row for each range of sizes.
fn by_size(results: &ComparisonResults) -> String {
    let what = "slowdown p99 by size".to_owned();
    let mut table = new_table(std::iter::once(what).chain(heads(results)));
    for size in &results.by_size {
        let estimates = [&size.p99[..], &size.p99_less_first].concat();
        table.add_row(row(size.range(), &estimates, results.seeds, shown));
    }
    right(table)
}

/// A row for each setting of which two have different values; how many more there are that others
/// do not have.
fn settings(results: &ComparisonResults) -> String {
    let (shared, others): (Vec<&Setting>, Vec<&Setting>) =
        results.settings.iter().partition(|setting| setting.is_shared());
    let mut table =
        new_table(std::iter::once("setting".to_owned()).chain(results.labels.iter().cloned()));
    for setting in shared {
        let value = |value: &Option<String>| value.as_deref().map_or("-".to_owned(), printable);
        let cells = setting.values.iter().map(value);
        table.add_row(std::iter::once(setting.path.clone()).chain(cells));
    }
    let more = match others.len() {
        0 => String::new(),
        n => format!("\nand {n} settings that not all of them have: the report lists them"),
    };
    right(table) + &more
}
