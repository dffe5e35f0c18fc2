//! `trimline run`: one scenario, a summary on stdout, files in the output directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use metrics::{OutputDir, Summary};
use scenario::{Error, Estimate, Options, Scenario, StepsDone, Written, unwritable};

use crate::args::{self, Departures, Events};
use crate::progress::Bar;
use crate::{
    ENDS_ITSELF, Ended, INTERRUPT, Printed, html, own_command_line, said, say, say_json, table,
    tell, warn,
};

/// `trimline run`.
pub(crate) fn run(args: &args::Run, progress: args::Progress) -> Ended {
    let mut bar = Bar::reading(progress, &args.file.display().to_string());
    let mut edits = args.edits.all();
    if args.skip {
        edits.push("engine.skip=true".to_owned());
    }
    let scenario = Scenario::load_telling(&args.file, &edits, &|file, share| {
        bar.read(file, share);
    })?;
    let dir = args.out.clone().unwrap_or_else(|| default_dir(&args.file));
    let options = Options {
        trace: args.trace.iter().cloned().collect(),
        check: args.check,
        verify: args.verify,
        heap: args.events == Events::Heap,
        eager: args.departures == Departures::Eager,
        threads: args.threads.number(),
        command: own_command_line(),
        interrupt: Some(Arc::clone(&INTERRUPT)),
        ..Options::default()
    };
    if let Some(estimate) = scenario.estimate().filter(Estimate::is_large) {
        tell(format_args!("{} hosts: {estimate}\n", scenario.topology().hosts()));
    }
    let steps = Arc::new(StepsDone::new(&scenario));
    let options = Options { steps: Some(Arc::clone(&steps)), ..options };
    bar.running(&scenario);
    let finished = run_into(&dir, &scenario, &options, &mut |p| {
        // Until it runs, there is nothing to keep.
        let _ = ENDS_ITSELF.set(ENDING);
        bar.steps(steps.take());
        bar.update(&scenario, p);
    });
    bar.steps(steps.take());
    drop(bar);
    let Ran { summary, violated } = finished?;
    print_warnings(&summary.warnings);
    let printed = match args.json {
        true => say_json(&Printed { directory: &dir, results: &summary }),
        false => print(&summary, &dir),
    };
    said(printed, &dir, args.json)?;
    match violated {
        Some(error) => Err(error),
        None if summary.partial => Err(Error::Stopped),
        None => Ok(()),
    }
}

/// Said when a run is interrupted.
const ENDING: &str = "interrupted: what there is so far is written; again to discard it\n";

fn print(summary: &Summary, dir: &Path) -> Ended {
    say(table::summary(summary))?;
    let more = [table::by_traffic(summary), table::phases(summary), table::calibration(summary)];
    more.into_iter().flatten().try_for_each(say)?;
    if let Some(why) = &summary.calibration.why {
        say(format_args!("level:   {why}"))?;
    }
    let partial = if summary.partial { " (partial)" } else { "" };
    say(format_args!("results: {}{partial}", dir.display()))?;
    say(format_args!("report:  {}", dir.join("report.html").display()))
}

/// What a run has left.
pub struct Ran {
    /// What `summary.json` says.
    pub summary: Summary,
    /// The invariant that was violated: the results end there.
    pub violated: Option<Error>,
}

/// Run `scenario` and leave all of its files in `dir`, or none; also after a violated invariant,
/// and what an interrupted run has come to.
/// That `dir` can be written is found out before the run.
///
/// # Errors
/// As [`scenario::run`], and a directory that cannot be written.
pub fn run_into(
    dir: &Path,
    scenario: &Scenario,
    options: &Options,
    progress: scenario::OnProgress<'_>,
) -> Result<Ran, Error> {
    let out = OutputDir::create(dir).map_err(|e| unwritable(&e))?;
    let Written { summary, violated } = scenario::run(scenario, options, &out, progress)?;
    out.text("report.html", &html::of_run(out.staged())?).map_err(|e| unwritable(&e))?;
    out.commit().map_err(|e| unwritable(&e))?;
    Ok(Ran { summary, violated })
}

/// `out/<name of the scenario file>`.
pub(crate) fn default_dir(file: &Path) -> PathBuf {
    Path::new("out").join(file.file_stem().unwrap_or(file.as_os_str()))
}

/// What a reader should know before trusting the numbers, on stderr.
pub(crate) fn print_warnings(warnings: &[String]) {
    for warning in warnings {
        warn(warning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_go_to_a_directory_of_the_scenario_s_name() {
        assert_eq!(default_dir(Path::new("scenarios/first.toml")), Path::new("out/first"));
    }
}
