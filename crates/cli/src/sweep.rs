//! `trimline sweep`: a scenario along its sweep, mean and 95 % interval per point.

use std::path::{Path, PathBuf};

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use metrics::{Curve, CurvePoint, Estimate, OutputDir, ResultsOf, StudyResults};
use scenario::Error;
use study::{Plan, Seeding, Sweep};

use crate::jobs::{Batch, Done, nameable};
use crate::progress;
use crate::reproduce::{say_few_seeds, say_missing, say_phases, say_where, shown};
use crate::table::right;
use crate::{Ended, Printed, args, operand, own_command_line, said, say, say_json, tell, warn};

/// `trimline sweep`. Fails if a run fails.
pub(crate) fn sweep(args: &args::Sweep, progress: args::Progress) -> Ended {
    nameable([&args.file])?;
    let sweep = Sweep::load(&args.file, &args.sets, args.seeds.as_ref())?;
    let dir = args.out.clone().unwrap_or_else(|| default_dir(&args.file));
    if !args.jobs.job.is_empty() {
        let plan = Plan::unchecked(sweep.study(), args.phases)?;
        return Batch::new(&plan, &dir, command(args), &args.jobs).run_named();
    }
    let plan = progress::plan(sweep.study(), args.phases, progress)?;
    let batch = Batch::new(&plan, &dir, command(args), &args.jobs);
    let seeding = match args.until.or(sweep.until()) {
        Some(share) if !args.phases => Seeding::Until(share),
        _ => Seeding::All,
    };
    if args.jobs.list_jobs {
        return batch.list(seeding);
    }
    if let Some(scheduler) = args.jobs.emit {
        return batch.emit(scheduler, seeding);
    }
    for warning in sweep.warnings()? {
        tell(warning.render(false));
    }
    let out = batch.output(ResultsOf::Study)?;
    let mut done = batch.run(seeding, progress)?;
    let missing = done.take_missing();
    let results = write(&sweep, &batch, done, (out, seeding))?;
    results.warnings.iter().for_each(|warning| warn(warning));
    say_missing(&results);
    say_few_seeds(&results);
    say_phases(&results);
    let printed = match args.jobs.json {
        true => say_json(&Printed { directory: &dir, results: &results }),
        false => say(table(&results, seeding)).and_then(|()| say_where(&results, &dir)),
    };
    said(printed, &dir, args.jobs.json)?;
    batch.ended(&missing)
}

/// `out/sweep/<name of the scenario file>`.
fn default_dir(file: &Path) -> PathBuf {
    Path::new("out/sweep").join(file.file_stem().unwrap_or(file.as_os_str()))
}

/// The arguments that this sweep comes from, but those that say where and how it is run.
fn command(args: &args::Sweep) -> Vec<String> {
    let mut words = vec!["sweep".to_owned(), operand(&args.file)];
    words.extend(args.sets.iter().flat_map(|set| ["--set".to_owned(), set.clone()]));
    words.extend(args.seeds.iter().flat_map(|seeds| ["--seeds".to_owned(), seeds.to_string()]));
    let until = args.until.map(|share| format!("{}%", share * 100.0));
    words.extend(until.into_iter().flat_map(|until| ["--until".to_owned(), until]));
    words.extend(args.phases.then(|| "--phases".to_owned()));
    words
}

/// Leave the results of `done`, their page and a row for each run in `out`.
fn write(
    sweep: &Sweep,
    batch: &Batch<'_>,
    done: Done<'_>,
    (out, seeding): (OutputDir, Seeding<'_>),
) -> Result<StudyResults, Error> {
    let (columns, rows) = sweep.runs(&done.outcome, batch.jobs());
    let mut results = sweep.by_metric(done.outcome.results(own_command_line()));
    if let Seeding::Until(share) = seeding {
        results.warnings.extend(too_wide(&results, share));
    }
    batch.publish(out, |out| {
        results.write(out)?;
        columns.write(out.file("runs.parquet")?, rows)
    })?;
    Ok(results)
}

/// A warning of points whose intervals are wider than `share` of their values, though all seeds
/// were run.
fn too_wide(results: &StudyResults, share: f64) -> Option<String> {
    let points = results.figures.iter().flat_map(|f| &f.curves).flat_map(|c| &c.measured);
    let is_wide =
        |point: &&CurvePoint| point.interval.is_none_or(|half| half > (share * point.y).abs());
    let (all, wide) =
        points.fold((0, 0), |(all, wide), point| (all + 1, wide + usize::from(is_wide(&point))));
    (wide > 0).then(|| {
        format!(
            "{wide} of {all} values have intervals of more than ± {} %, and there are no more seeds: \
             add some with --seeds",
            // 0.0001, not 0.00009999999999999999.
            (share * 1e8).round() / 1e6
        )
    })
}

/// A row per point, a column per metric.
fn table(results: &StudyResults, seeding: Seeding<'_>) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let x = results.figures.first().map_or("", |figure| figure.x.label.as_str());
    let metrics = results.figures.iter().map(|figure| figure.id.as_str());
    table.set_header([x, "at"].into_iter().chain(metrics));
    let points = results.figures.iter().flat_map(|f| &f.curves).flat_map(|c| &c.measured);
    // Where seeds are added as they are needed, fewer are no gap.
    let most = match seeding {
        Seeding::Until(_) => None,
        _ => points.filter_map(|point| point.seeds).max(),
    };
    for (i, curve) in results.figures.first().into_iter().flat_map(|f| &f.curves).enumerate() {
        let of_metric: Vec<&Curve> =
            results.figures.iter().filter_map(|figure| figure.curves.get(i)).collect();
        let mut xs: Vec<f64> = of_metric.iter().copied().flat_map(xs).collect();
        xs.sort_unstable_by(f64::total_cmp);
        xs.dedup();
        for x in xs {
            let value = |curve: &&Curve| {
                let CurvePoint { y: mean, interval, seeds, .. } =
                    *curve.measured.iter().find(|point| point.x == x)?;
                Some(Estimate { mean, interval, seeds: seeds? })
            };
            let values: Vec<Option<Estimate>> = of_metric.iter().map(value).collect();
            let mut cells = metrics::row(x.to_string(), &values, most.unwrap_or_default(), shown);
            cells.insert(1, curve.label.clone());
            table.add_row(cells);
        }
    }
    right(table)
}

/// The places of a curve's points, those without a value too.
fn xs(curve: &Curve) -> impl Iterator<Item = f64> {
    let missing = curve.missing.iter().map(|(x, _)| *x);
    curve.measured.iter().map(|point| point.x).chain(missing)
}
