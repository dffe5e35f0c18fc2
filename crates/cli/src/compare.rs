//! `trimline compare`: several scenarios, two at a time, and one table that compares them. With
//! several seeds it is `crate::comparison::compare`, one scenario in two environments
//! `crate::testbed::compare`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use metrics::{ResultsOf, Summary};
use scenario::{Diagnostic, Error, Options, Progress, Scenario, Variant};
use serde::Serialize;
use study::Step;

use crate::args;
use crate::progress::{Bar, RunsBar};
use crate::run::{print_warnings, run_into};
use crate::{Ended, cores, html, operand, said, say, say_json, table, tell};

/// A run that drains has done less than all.
const GOING_ON: f64 = 0.99;

/// Runs at the same time. They share the processor's cores.
const AT_ONCE: usize = 2;

/// One scenario and where its results go.
struct Job {
    scenario: Scenario,
    dir: PathBuf,
    command: String,
    /// What the table calls it: the scenario's name, or that of its directory where it is not
    /// unique.
    label: String,
}

/// What was run, for `--json`.
#[derive(Serialize)]
struct Runs<'a> {
    report: &'a Path,
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    label: &'a str,
    directory: &'a Path,
    summary: &'a Summary,
}

/// `trimline compare`. Every scenario is read before the first one runs.
pub(crate) fn compare(args: &args::Compare, progress: args::Progress) -> Ended {
    if let [sim, testbed, file] = args.files.as_slice()
        && (sim.as_os_str(), testbed.as_os_str()) == ("sim".as_ref(), "testbed".as_ref())
    {
        return crate::testbed::compare(file, args);
    }
    if let Some(option) = args.wires() {
        let error = Diagnostic::new(format!("{option} has no effect without `sim testbed`"));
        let hint = "`trimline compare sim testbed FILE` runs on this machine";
        return Err(error.hint(hint).into());
    }
    if let Some(seeds) = &args.seeds {
        return crate::comparison::compare(args, seeds, progress);
    }
    if let Some(option) = args.jobs.first() {
        let error = Diagnostic::new(format!("{option} has no effect without --seeds"));
        return Err(error.hint("add --seeds, for example --seeds 1-10").into());
    }
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("out/compare"));
    let path = out.join("report.html");
    html::check_ours(&path)?;
    if let Some(other) = ResultsOf::other_in(&out, None) {
        let error = format!("{} has the results of {}", out.display(), other.words());
        return Err(Diagnostic::new(error).hint("choose another directory with --out").into());
    }
    let jobs = jobs(args, &out, progress)?;
    let bar = RunsBar::new(progress, jobs.len());
    let next = AtomicUsize::new(0);
    // One thread each where there are no cores for more, else as many as pay.
    let threads = (cores() < 2 * AT_ONCE as u32).then_some(1);
    let ended: Mutex<Vec<(usize, Result<Summary, Error>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(jobs.len()) {
            scope.spawn(|| {
                while let Some((index, job)) = take(&jobs, &next) {
                    let command = job.command.clone();
                    let options = Options { command, threads, ..Options::default() };
                    let step = |done| bar.update(Step { run: index, label: &job.label, done });
                    let going_on = |p: &Progress| step(job.scenario.done(p).min(GOING_ON));
                    let ran = run_into(&job.dir, &job.scenario, &options, &mut |p| going_on(p));
                    let ran = ran.and_then(|ran| ran.violated.map_or(Ok(ran.summary), Err));
                    step(1.0);
                    let how = if ran.is_ok() { "done" } else { "failed" };
                    tell(format_args!("{}: {how}\n", table::printable(&job.label)));
                    if let Ok(mut ended) = ended.lock() {
                        ended.push((index, ran));
                    }
                }
            });
        }
    });
    drop(bar);
    let mut ended = ended.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    ended.sort_by_key(|(index, _)| *index);
    let summaries: Vec<Summary> =
        ended.into_iter().map(|(_, ran)| ran).collect::<Result<_, _>>()?;
    let labels: Vec<&str> = jobs.iter().map(|job| job.label.as_str()).collect();
    for (label, summary) in labels.iter().zip(&summaries) {
        let named = summary.warnings.iter().map(|w| format!("{label}: {w}"));
        print_warnings(&named.collect::<Vec<_>>());
    }
    let dirs: Vec<PathBuf> = jobs.iter().map(|job| job.dir.clone()).collect();
    html::publish(&html::of_runs(&dirs)?, &path)?;
    let printed = if args.jobs.json {
        let runs = jobs.iter().zip(&summaries).map(|(job, summary)| Run {
            label: &job.label,
            directory: &job.dir,
            summary,
        });
        say_json(&Runs { report: &path, runs: runs.collect() })
    } else {
        say(table::comparison(&labels, &summaries))
            .and_then(|()| say(format_args!("report: {}", path.display())))
    };
    said(printed, &out, args.jobs.json)?;
    Ok(())
}

fn take<'a>(jobs: &'a [Job], next: &AtomicUsize) -> Option<(usize, &'a Job)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(index).map(|job| (index, job))
}

/// A job for each scenario or variant.
fn jobs(args: &args::Compare, out: &Path, progress: args::Progress) -> Result<Vec<Job>, Error> {
    let options = args.edits.all();
    let mut files: Vec<(&Path, Option<Variant>)> = Vec::new();
    for file in &args.files {
        let (_, variants) = Scenario::name_and_variants(file)?;
        let alone = variants.is_empty().then_some(None);
        files.extend(alone.into_iter().chain(variants.into_iter().map(Some)).map(|v| (&**file, v)));
    }
    let names = names(&files);
    let mut jobs = Vec::new();
    for ((file, variant), name) in files.iter().zip(&names) {
        let _reading = Bar::reading(progress, &file.display().to_string());
        let own = variant.iter().flat_map(Variant::edits).map(|(edit, _)| edit.clone());
        let edits: Vec<String> = own.chain(options.iter().cloned()).collect();
        let scenario = Scenario::load(file, &edits).map_err(|error| match variant {
            Some(variant) => variant.located(error),
            None => error,
        })?;
        let dir = out.join(name);
        let words = ["run".to_owned(), operand(file)];
        let sets = edits.iter().flat_map(|edit| ["--set".to_owned(), edit.clone()]);
        let to = ["--out".to_owned(), dir.display().to_string()];
        let command = scenario::command_line(words.into_iter().chain(sets).chain(to));
        let label = variant.as_ref().map_or_else(|| scenario.name(), Variant::name).to_owned();
        jobs.push(Job { scenario, dir, command, label });
    }
    let same = |job: &Job| jobs.iter().filter(|other| other.label == job.label).count() > 1;
    let same: Vec<bool> = jobs.iter().map(same).collect();
    for ((job, name), _) in jobs.iter_mut().zip(names).zip(same).filter(|(_, same)| *same) {
        job.label = name;
    }
    Ok(jobs)
}

/// A directory name for each scenario: that of the file, or of the run whose manifest it is, and of
/// the variant. From the second of the same name on, a number makes them differ.
fn names(files: &[(&Path, Option<Variant>)]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (file, variant) in files {
        let stem = match file.parent().and_then(Path::file_name) {
            Some(run) if file.file_name().is_some_and(|name| name == "manifest.json") => run,
            _ => file.file_stem().unwrap_or(file.as_os_str()),
        };
        let stem = match variant {
            Some(variant) => format!("{}-{}", stem.to_string_lossy(), plain(variant.name())),
            None => stem.to_string_lossy().into_owned(),
        };
        let mut name = stem.clone();
        let mut number = 1;
        while names.contains(&name) {
            number += 1;
            name = format!("{stem}-{number}");
        }
        names.push(name);
    }
    names
}

/// `name` without what a directory's name should not have.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() { c } else { '_' };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_a_directory_of_its_own() {
        let files = ["a/x.toml", "x.toml", "out/x-2/manifest.json", "out/y/manifest.json"];
        let names = names(&files.map(|file| (Path::new(file), None)));
        assert_eq!(names, ["x", "x-2", "x-2-2", "y"]);
    }
}
