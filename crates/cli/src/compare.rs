//! `trimline compare`: several scenarios, two at a time, and one table that compares them. One
//! scenario in two environments is `crate::testbed::compare`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use metrics::Summary;
use scenario::{Error, Options, Progress, Scenario};
use study::Step;

use crate::args;
use crate::progress::{Bar, RunsBar};
use crate::run::{print_warnings, run_into};
use crate::{Ended, cores, html, said, say, table, tell};

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

/// `trimline compare`. Every scenario is read before the first one runs.
pub(crate) fn compare(args: &args::Compare, progress: args::Progress) -> Ended {
    if let [sim, testbed, file] = args.files.as_slice()
        && (sim.as_os_str(), testbed.as_os_str()) == ("sim".as_ref(), "testbed".as_ref())
    {
        return crate::testbed::compare(file, args);
    }
    let path = args.out.join("report.html");
    html::check_ours(&path)?;
    let jobs = jobs(args, progress)?;
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
    let printed = say(table::comparison(&labels, &summaries))
        .and_then(|()| say(format_args!("report: {}", path.display())));
    said(printed, &args.out);
    Ok(())
}

fn take<'a>(jobs: &'a [Job], next: &AtomicUsize) -> Option<(usize, &'a Job)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(index).map(|job| (index, job))
}

fn jobs(args: &args::Compare, progress: args::Progress) -> Result<Vec<Job>, Error> {
    let edits = args.edits.all();
    let names = names(&args.files);
    let mut jobs = Vec::new();
    for (file, name) in args.files.iter().zip(&names) {
        let _reading = Bar::reading(progress, &file.display().to_string());
        let scenario = Scenario::load(file, &edits)?;
        let dir = args.out.join(name);
        let words = ["run".to_owned(), file.display().to_string()];
        let sets = edits.iter().flat_map(|edit| ["--set".to_owned(), edit.clone()]);
        let out = ["--out".to_owned(), dir.display().to_string()];
        let command = scenario::command_line(words.into_iter().chain(sets).chain(out));
        let label = scenario.name().to_owned();
        jobs.push(Job { scenario, dir, command, label });
    }
    let same = |job: &Job| jobs.iter().filter(|other| other.label == job.label).count() > 1;
    let same: Vec<bool> = jobs.iter().map(same).collect();
    for ((job, name), _) in jobs.iter_mut().zip(names).zip(same).filter(|(_, same)| *same) {
        job.label = name;
    }
    Ok(jobs)
}

/// A directory name for each scenario: that of the file, or of the run whose manifest it is. From
/// the second of the same name on, a number makes them differ.
fn names(files: &[PathBuf]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for file in files {
        let stem = match file.parent().and_then(Path::file_name) {
            Some(run) if file.file_name().is_some_and(|name| name == "manifest.json") => run,
            _ => file.file_stem().unwrap_or(file.as_os_str()),
        };
        let stem = stem.to_string_lossy().into_owned();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_a_directory_of_its_own() {
        let files = ["a/x.toml", "x.toml", "out/x-2/manifest.json", "out/y/manifest.json"];
        let names = names(&files.map(PathBuf::from));
        assert_eq!(names, ["x", "x-2", "x-2-2", "y"]);
    }
}
