//! `trimline reproduce`: a study or a figure of it, a table of verdicts on stdout, files in the
//! output directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use metrics::{Estimate, FigureRow, OutputDir, ResultsOf, StudyResults};
use scenario::{Diagnostic, Error, unwritable};
use study::{Engine, Left, Options, Plan, Record, Seeding, Study, is_wide};

use crate::progress::{self, RunsBar};
use crate::table::{number, right};
use crate::{
    Ended, Printed, args, cores, html, own_command_line, said, say, say_json, shipped, tell, warn,
};

/// `trimline reproduce`. Fails if a row leaves its recorded verdict.
pub(crate) fn reproduce(args: &args::Reproduce, progress: args::Progress) -> Ended {
    let study = load(args)?.in_form(args.form());
    let mut record = Record::load(&study)?;
    let plan = progress::plan(&study, args.phases, progress)?;
    let dir = args.out.clone().unwrap_or_else(|| default_dir(&study));
    let all_seeds = args.all_seeds || args.phases;
    let seeds = if all_seeds { Seeding::All } else { Seeding::Verdicts };
    let engine = Engine::Threads(args.threads.unwrap_or_else(cores));
    let results = run_into(&dir, &plan, &Options { seeds, engine }, progress)?;
    for row in results.rows() {
        if let Some(problem) = &row.problem {
            tell(format_args!("{}/{}: {problem}\n", row.result.figure, row.result.row));
        }
    }
    say_missing(&results);
    let skipped = study.skipped();
    say_skipped(&skipped);
    say_few_seeds(&results);
    say_phases(&results);
    let printed = match args.json {
        true => say_json(&Printed { directory: &dir, results: &results }),
        false => print(&results, skipped.len(), &dir),
    };
    said(printed, &dir, args.json)?;
    if args.record {
        record.update(&study, &results);
        record.write()?;
    }
    ended(&record.left(&results), &results, &dir)
}

/// Where studies are unpacked that come with the program: of each other program elsewhere.
fn unpacked() -> PathBuf {
    Path::new("out/shipped").join(format!("{:08x}", shipped::fingerprint()))
}

/// The study of this directory, or else the one that comes with the program. That is unpacked, so
/// that the commands in its results repeat its runs.
fn load(args: &args::Reproduce) -> Result<Study, Error> {
    let what = args.study.as_str();
    let name = what.split('/').next().unwrap_or(what);
    let is_one = |dir: &Path| dir.join("study.toml").is_file();
    let path = Path::new(what);
    let here = is_one(&Path::new("studies").join(name))
        || is_one(path)
        || path.parent().is_some_and(is_one);
    if here || !shipped::studies().iter().any(|(shipped, _)| *shipped == name) {
        return Ok(Study::load(what)?);
    }
    if args.record {
        let error = Diagnostic::new(format!("verdicts are recorded in ./studies/{name}"));
        let hint = "`trimline examples DIR` writes studies to DIR/studies; then change to DIR";
        return Err(error.hint(hint).into());
    }
    let dir = unpacked();
    shipped::write(&dir)?;
    let path = dir.join("studies").join(what);
    Ok(Study::load(&path.display().to_string())?)
}

fn print(results: &StudyResults, skipped: usize, dir: &Path) -> Ended {
    say(table(results))?;
    say(results.score())?;
    if results.left_out > 0 {
        say(format_args!("{} rows are left to the full form", results.left_out))?;
    }
    if skipped > 0 {
        say(format_args!("{skipped} rows are skipped"))?;
    }
    say_where(results, dir)
}

/// Say which rows, of which figures, are skipped, and why.
fn say_skipped(skipped: &[(&str, &str, &str)]) {
    for (figure, row, why) in skipped {
        warn(&format!("{figure}/{row}: skipped: {why}"));
    }
}

/// Say which files there are.
pub(crate) fn say_where(results: &StudyResults, dir: &Path) -> Ended {
    let judged = results.rows().next().is_some();
    let name = if judged { "results.json" } else { "study.json" };
    say(format_args!("results: {}", dir.join(name).display()))?;
    say(format_args!("report:  {}", dir.join("report.html").display()))
}

/// An interval of few seeds may be wide for that reason alone: say so.
pub(crate) fn say_few_seeds(results: &StudyResults) {
    let rows = results.rows().filter_map(|row| Some((row.result.measured?, row.interval?)));
    let curves = results.figures.iter().flat_map(|figure| &figure.curves);
    let points = curves.flat_map(|curve| &curve.measured);
    let points = points.filter_map(|point| Some((point.y, point.interval?)));
    if !rows.chain(points).any(|(value, half)| is_wide(value, half)) {
        return;
    }
    let mut seeds: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for figure in &results.figures {
        for run in &figure.runs {
            *seeds.entry((&figure.id, &run.run)).or_default() += 1;
        }
    }
    if let Some((n, times)) = few_seeds(seeds.into_values()) {
        warn(&format!(
            "± is half of the 95 % confidence interval by Student's t: with {n} seeds that is \
             {times} standard errors (with 10 it would be 2.3), so add seeds"
        ));
    }
}

/// Say what hangs on phases.
pub(crate) fn say_phases(results: &StudyResults) {
    for on in &results.on_phases {
        warn(&format!(
            "{}: {} hangs on phases: one more seed would be within {} ± {}, other ties, clocks \
             and jitter move it by {}",
            on.figure,
            on.what,
            number(Some(on.value)),
            number(Some(on.interval)),
            number(Some(on.shift))
        ));
    }
}

/// The fewest seeds of a run that has several, if they are few, and by Student's t of how many
/// standard errors half the interval is then.
fn few_seeds(of_runs: impl Iterator<Item = u32>) -> Option<(u32, f64)> {
    match of_runs.filter(|n| *n > 1).min()? {
        2 => Some((2, 12.7)),
        3 => Some((3, 4.3)),
        _ => None,
    }
}

/// Run `plan`, and leave the results and their page in `dir`.
fn run_into(
    dir: &Path,
    plan: &Plan<'_>,
    options: &Options<'_>,
    progress: args::Progress,
) -> Result<StudyResults, Error> {
    let out = OutputDir::create_for(dir, ResultsOf::Study).map_err(|e| unwritable(&e))?;
    let bar = RunsBar::new(progress, plan.runs());
    let outcome = study::run(plan, options, &|step| bar.update(step))?;
    drop(bar);
    let results = outcome.results(own_command_line());
    results.write(&out).map_err(|e| unwritable(&e))?;
    out.text("report.html", &html::of_run(out.staged())?).map_err(|e| unwritable(&e))?;
    out.commit().map_err(|e| unwritable(&e))?;
    Ok(results)
}

/// `out/reproduce/<study>`, and the figure if it is one.
fn default_dir(study: &Study) -> PathBuf {
    Path::new("out/reproduce").join(study.name())
}

/// An error if a row left its recorded verdict, or a run failed of which only curves would tell.
fn ended(left: &[Left<'_>], results: &StudyResults, dir: &Path) -> Ended {
    for left in left {
        let result = &left.row.result;
        let was = match left.recorded {
            Some(recorded) if recorded < result.verdict => {
                format!("was {}: worse", recorded.name())
            }
            Some(recorded) => format!("was {}: better", recorded.name()),
            None => "not recorded".to_owned(),
        };
        let (figure, row, verdict) = (&result.figure, &result.row, result.verdict.name());
        tell(format_args!("{figure}: {row}: {verdict}, {was}\n"));
    }
    if left.is_empty() {
        return failed_runs(results, dir);
    }
    let all = results.rows().count();
    Err(Error::Run {
        what: format!("{} of {all} rows left their recorded verdicts", left.len()),
        hint: format!(
            "{} shows them; --record takes the new ones over",
            dir.join("report.html").display()
        ),
    })
}

/// Say which points of curves have no value, and why, unless a row says it.
pub(crate) fn say_missing(results: &StudyResults) {
    for figure in &results.figures {
        let said = |why: &String| figure.rows.iter().any(|row| row.problem.as_ref() == Some(why));
        for curve in &figure.curves {
            for (x, why) in curve.missing.iter().filter(|(_, why)| !said(why)) {
                let at = curve.point(&figure.x.label, *x);
                tell(format_args!("{}, {at}: {why}\n", figure.id));
            }
        }
    }
}

/// An error if a run has failed.
fn failed_runs(results: &StudyResults, dir: &Path) -> Ended {
    let runs: Vec<_> = results.figures.iter().flat_map(|figure| &figure.runs).collect();
    let failed: Vec<_> = runs.iter().filter(|run| run.error.is_some()).collect();
    let Some(first) = failed.first() else { return Ok(()) };
    let why = first.error.as_deref().unwrap_or_default();
    Err(Error::Run {
        what: format!(
            "{} of {} runs failed, first {} with seed {}: {why}",
            failed.len(),
            runs.len(),
            first.run,
            first.seed
        ),
        hint: format!("{} has the command of each", dir.join("report.html").display()),
    })
}

fn table(results: &StudyResults) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["row", "published", "band", "measured", "unit", "verdict"]);
    for figure in &results.figures {
        for row in &figure.rows {
            table.add_row([
                format!("{}: {}", figure.id, row.result.row),
                row.result.target.map_or_else(String::new, |target| number(Some(target))),
                band(row),
                measured(row),
                row.result.unit.clone(),
                row.result.verdict.name().to_owned(),
            ]);
        }
    }
    right(table)
}

fn band(row: &FigureRow) -> String {
    match (row.result.low, row.result.high) {
        (Some(low), Some(high)) => format!("{} .. {}", number(Some(low)), number(Some(high))),
        (Some(low), None) => format!(">= {}", number(Some(low))),
        (None, high) => format!("<= {}", number(high)),
    }
}

fn measured(row: &FigureRow) -> String {
    with_interval(&number(row.result.measured), row.interval)
}

/// `value`, and half of its 95 % interval if there is one.
pub(crate) fn with_interval(value: &str, interval: Option<f64>) -> String {
    match interval {
        Some(half) => format!("{value} ± {}", number(Some(half))),
        None => value.to_owned(),
    }
}

/// A mean with its interval.
pub(crate) fn shown(estimate: Option<Estimate>) -> String {
    estimate.map_or("-".to_owned(), |e| with_interval(&number(Some(e.mean)), e.interval))
}

#[cfg(test)]
mod tests {
    use super::{few_seeds, is_wide};

    #[test]
    fn two_seeds_are_few_and_one_has_no_interval() {
        assert_eq!(few_seeds([1, 2, 9].into_iter()), Some((2, 12.7)));
        assert_eq!(few_seeds([3, 5].into_iter()), Some((3, 4.3)));
        assert_eq!(few_seeds([1, 1].into_iter()), None);
        assert_eq!(few_seeds([4].into_iter()), None);
        assert!(is_wide(17.0, 41.1) && is_wide(-1.0, 0.3));
        assert!(!is_wide(17.0, 4.1) && !is_wide(0.0, 0.0));
    }
}
