//! `trimline run`: one scenario, a summary on stdout, files in the output directory.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use metrics::OutputDir;
use scenario::{Error, Options, Scenario, Trace, Written, command_line, unwritable};

use crate::args::{self, Departures, Events, TraceKind};
use crate::progress::Bar;
use crate::{Ended, html, say, table};

/// `trimline run`.
pub(crate) fn run(args: &args::Run) -> Ended {
    let scenario = Scenario::load(&args.file, &args.edits.all())?;
    let dir = args.out.clone().unwrap_or_else(|| default_dir(&args.file));
    let options = Options {
        trace: Trace {
            packets: args.trace.contains(&TraceKind::Packets),
            queues: args.trace.contains(&TraceKind::Queues),
        },
        check: args.check,
        heap: args.events == Events::Heap,
        eager: args.departures == Departures::Eager,
        threads: args.threads,
        command: command_line(std::env::args().skip(1)),
    };
    let estimate = scenario.estimate();
    if estimate.is_large() {
        eprintln!("{} hosts: {estimate}", scenario.topology().hosts());
    }
    let mut bar = Bar::new(&scenario);
    let finished = run_into(&dir, &scenario, &options, &mut |p| bar.update(&scenario, p));
    bar.finish();
    let Written { results, violated } = finished?;
    say(table::summary(&results.summary))?;
    if !results.summary.phases.is_empty() {
        say(table::phases(&results.summary.phases))?;
    }
    print_warnings(&results.summary.warnings);
    say(format_args!("results: {}", dir.display()))?;
    say(format_args!("report:  {}", dir.join("report.html").display()))?;
    violated.map_or(Ok(()), Err)
}

/// Run `scenario` and leave all of its files in `dir`, or none; also after a violated invariant. That `dir` can be written is found
/// out before the run.
pub(crate) fn run_into(
    dir: &Path,
    scenario: &Scenario,
    options: &Options,
    progress: scenario::OnProgress<'_>,
) -> Result<Written, Error> {
    let out = OutputDir::create(dir).map_err(|e| unwritable(&e))?;
    let written = scenario::run(scenario, options, &out, progress)?;
    out.text("report.html", &html::of_run(out.staged())?).map_err(|e| unwritable(&e))?;
    out.commit().map_err(|e| unwritable(&e))?;
    Ok(written)
}

/// `out/<name of the scenario file>`.
pub(crate) fn default_dir(file: &Path) -> PathBuf {
    Path::new("out").join(file.file_stem().unwrap_or(file.as_os_str()))
}

/// What a reader should know before trusting the numbers, on stderr.
pub(crate) fn print_warnings(warnings: &[String]) {
    let (on, off) =
        if std::io::stderr().is_terminal() { ("\u{1b}[33m", "\u{1b}[0m") } else { ("", "") };
    for warning in warnings {
        eprintln!("{on}warning:{off} {warning}");
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
