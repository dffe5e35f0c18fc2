//! `trimline tune`: the best values of some keys of a scenario, and where others are as good.

use std::path::{Path, PathBuf};

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use metrics::{Estimate, OutputDir, ResultsOf, Stands, TunePoint, TuneResults};
use scenario::Error;
use study::{Instead, Plan, Seeding, Tune};

use crate::jobs::{Batch, Done, nameable};
use crate::progress;
use crate::reproduce::with_interval;
use crate::table::{number, printable, right};
use crate::{Ended, Printed, args, operand, own_command_line, said, say, say_json, warn};

/// `trimline tune`. Fails if a run fails, a point has no value, or none meets the constraints.
pub(crate) fn tune(args: &args::Tune, progress: args::Progress) -> Ended {
    let instead = Instead { edits: &args.sets, seeds: args.seeds.as_ref(), budget: args.budget };
    nameable([&args.file])?;
    let tune = Tune::load(&args.file, &instead)?;
    let dir = args.out.clone().unwrap_or_else(|| default_dir(&args.file));
    if !args.jobs.job.is_empty() {
        let plan = Plan::unchecked(tune.study(), false)?;
        return Batch::new(&plan, &dir, command(args), &args.jobs).run_named();
    }
    let plan = progress::plan(tune.study(), false, progress)?;
    let batch = Batch::new(&plan, &dir, command(args), &args.jobs);
    let seeding = Seeding::Tune(&tune);
    if args.jobs.list_jobs {
        return batch.list(seeding);
    }
    if let Some(scheduler) = args.jobs.emit {
        return batch.emit(scheduler, seeding);
    }
    let out = batch.output(ResultsOf::Search)?;
    let mut done = batch.run(seeding, progress)?;
    let missing = done.take_missing();
    let results = write(&tune, &batch, &done, out)?;
    results.warnings.iter().for_each(|warning| warn(warning));
    let printed = match args.jobs.json {
        true => say_json(&Printed { directory: &dir, results: &results }),
        false => print(&results, &dir),
    };
    said(printed, &dir, args.jobs.json)?;
    batch.ended(&missing)?;
    match (results.best(), results.without_value()) {
        (Some(_), None) => Ok(()),
        (Some(_), Some(what)) => Err(Error::Run {
            what,
            hint: "a metric that not every point has is no aim; the table has the others"
                .to_owned(),
        }),
        (None, _) => Err(Error::Run {
            what: results.without_best(),
            hint: "wider ranges, or looser constraints; the table has every point".to_owned(),
        }),
    }
}

/// `out/tune/<name of the scenario file>`.
fn default_dir(file: &Path) -> PathBuf {
    Path::new("out/tune").join(file.file_stem().unwrap_or(file.as_os_str()))
}

/// The arguments that this search comes from, but those that say where and how it is run.
fn command(args: &args::Tune) -> Vec<String> {
    let mut words = vec!["tune".to_owned(), operand(&args.file)];
    words.extend(args.sets.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
    words.extend(args.seeds.iter().flat_map(|seeds| ["--seeds".to_owned(), seeds.to_string()]));
    words.extend(args.budget.iter().flat_map(|n| ["--budget".to_owned(), n.to_string()]));
    words
}

/// Leave what `done` says, its page and a row for each run in `out`.
fn write(
    tune: &Tune,
    batch: &Batch<'_>,
    done: &Done<'_>,
    out: OutputDir,
) -> Result<TuneResults, Error> {
    let (columns, rows) = tune.runs(&done.outcome, batch.jobs());
    let results = tune.results(&done.outcome, own_command_line())?;
    batch.publish(out, |out| {
        results.write(out)?;
        columns.write(out.file("runs.parquet")?, rows)
    })?;
    Ok(results)
}

fn print(results: &TuneResults, dir: &Path) -> Ended {
    say(table(results))?;
    say(results.about())?;
    results.sentences().iter().try_for_each(|sentence| say(printable(sentence)))?;
    say(format_args!("results: {}", dir.join("tune.json").display()))?;
    say(format_args!("report:  {}", dir.join("report.html").display()))
}

/// A row for each point, the best first.
fn table(results: &TuneResults) -> String {
    let mut table = Table::new();
    let axes = results.axes.iter().map(|axis| printable(axis));
    let aim = [metrics::named(&results.aim.metric), "less the best".to_owned()];
    let constraints = results.constraints.iter().map(|text| printable(text));
    let last = ["seeds".to_owned(), String::new()];
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(axes.chain(aim).chain(constraints).chain(last));
    for point in &results.points {
        table.add_row(row(point));
    }
    right(table)
}

fn row(point: &TunePoint) -> Vec<String> {
    let shown = |estimate: Option<Estimate>, half: Option<f64>| {
        estimate.map_or_else(|| "-".to_owned(), |e| with_interval(&number(Some(e.mean)), half))
    };
    let aim = point.aim();
    let less = point.less_best.as_ref();
    let less = match point.stands {
        Stands::Best => String::new(),
        _ => shown(less.and_then(|less| less.estimate), less.and_then(|less| less.joint_interval)),
    };
    let at = point.at.iter().map(|value| printable(value));
    let sides = point.constraints.iter().map(|side| number(*side));
    let seeds = aim.map_or(0, |aim| aim.seeds).to_string();
    let aim = shown(aim, aim.and_then(|aim| aim.interval));
    let last = [seeds, point.stands.name().to_owned()];
    at.chain([aim, less]).chain(sides).chain(last).collect()
}
