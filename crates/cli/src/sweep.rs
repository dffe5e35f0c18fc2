//! `trimline sweep`: a scenario along its sweep, mean and 95 % interval per point.

use std::path::Path;

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use metrics::{Curve, StudyResults};
use study::{Plan, Sweep};

use crate::reproduce::{
    How, failed_runs, run_into, say_few_seeds, say_missing, say_phases, say_where, with_interval,
};
use crate::table::{number, right};
use crate::{Ended, args, said, say};

/// `trimline sweep`. Fails if a run fails.
pub(crate) fn sweep(args: &args::Sweep, progress: args::Progress) -> Ended {
    let sweep = Sweep::load(&args.file, &args.sets)?;
    let plan = Plan::new(sweep.study())?;
    let dir = args.out.clone().unwrap_or_else(|| {
        Path::new("out/sweep").join(args.file.file_stem().unwrap_or(args.file.as_os_str()))
    });
    let plan = if args.phases { plan.with_phases() } else { plan };
    let how = How { threads: args.threads, all_seeds: true, progress };
    let results = run_into(&dir, &plan, &how, |results| sweep.by_metric(results))?;
    say_missing(&results);
    say_few_seeds(&results);
    say_phases(&results);
    said(say(table(&results)).and_then(|()| say_where(&results, &dir)), &dir);
    failed_runs(&results, &dir)
}

/// A row per point, a column per metric.
fn table(results: &StudyResults) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let x = results.figures.first().map_or("", |figure| figure.x.label.as_str());
    let metrics = results.figures.iter().map(|figure| figure.id.as_str());
    table.set_header([x, "at"].into_iter().chain(metrics));
    for (i, curve) in results.figures.first().into_iter().flat_map(|f| &f.curves).enumerate() {
        let of_metric: Vec<&Curve> =
            results.figures.iter().filter_map(|figure| figure.curves.get(i)).collect();
        let mut xs: Vec<f64> = of_metric.iter().copied().flat_map(xs).collect();
        xs.sort_unstable_by(f64::total_cmp);
        xs.dedup();
        for x in xs {
            let value = |curve: &&Curve| {
                let point = curve.measured.iter().find(|point| point.x == x);
                point.map_or("-".to_owned(), |p| with_interval(&number(Some(p.y)), p.interval))
            };
            let values = of_metric.iter().map(value);
            table.add_row([x.to_string(), curve.label.clone()].into_iter().chain(values));
        }
    }
    right(table)
}

/// The places of a curve's points, those without a value too.
fn xs(curve: &Curve) -> impl Iterator<Item = f64> {
    let missing = curve.missing.iter().map(|(x, _)| *x);
    curve.measured.iter().map(|point| point.x).chain(missing)
}
