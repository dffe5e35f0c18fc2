//! The jobs of a sweep, a comparison or a search: run here or elsewhere, listed, handed to a batch
//! system.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use metrics::{FileError, OutputDir, ResultsOf};
use scenario::{Diagnostic, ENGINE_VERSION, Error, command_line, quoted, unwritable};
use serde::Serialize;
use study::{About, Engine, JobEnd, Jobs, Options, Outcome, Plan, RunJobs, Seeding};

use crate::progress::RunsBar;
use crate::workers::{self, Workers};
use crate::{Ended, GOES_ON, args, cores, html, own_program, say, say_json, table, tell, warn};

/// The elements of an array of jobs, at most: what Slurm takes as it comes (`MaxArraySize`).
const ELEMENTS_MAX: usize = 1000;

/// Of the name of a job's directory so much stands in arrays.
const NAME_SHOWN: usize = 8;

/// So many jobs without results are named.
const NAMED_MAX: usize = 10;

/// Said when jobs are interrupted.
const GOING_ON: &str =
    "interrupted: finished jobs stay, unfinished ones are discarded; the same command goes on\n";

/// The jobs of a plan and how they are run.
pub(crate) struct Batch<'p> {
    plan: &'p Plan<'p>,
    jobs: Jobs<'p>,
    /// The output directory.
    out: &'p Path,
    /// The command that has them, as arguments.
    command: Vec<String>,
    how: &'p args::Jobs,
}

/// What was run, and what has no results.
pub(crate) struct Done<'p> {
    pub(crate) outcome: Outcome<'p>,
    missing: Vec<Missing>,
    /// How many jobs were needed.
    asked: usize,
}

/// The jobs without results, and how many jobs there are.
pub(crate) struct NoResults {
    of: usize,
    jobs: Vec<Missing>,
}

/// A job without results.
struct Missing {
    label: String,
    why: String,
}

/// That the names of the scenarios' files can stand in the commands of jobs.
///
/// # Errors
/// One of them is not UTF-8.
pub(crate) fn nameable<'f>(files: impl IntoIterator<Item = &'f PathBuf>) -> Ended {
    let Some(file) = files.into_iter().find(|file| file.to_str().is_none()) else { return Ok(()) };
    let error = format!("the name of {} is not UTF-8", file.display());
    Err(Diagnostic::new(error).hint("jobs are commands of their own: rename the file").into())
}

impl<'p> Batch<'p> {
    /// The jobs of `plan` in the output directory `out`. `command` are the arguments that this plan
    /// comes from.
    pub(crate) fn new(
        plan: &'p Plan<'p>,
        out: &'p Path,
        mut command: Vec<String>,
        how: &'p args::Jobs,
    ) -> Self {
        command.extend(["--out".to_owned(), out.display().to_string()]);
        command.extend(how.flows.then(|| "--flows".to_owned()));
        Self { plan, jobs: Jobs::new(plan, out, how.flows), out, command, how }
    }

    pub(crate) fn jobs(&self) -> &Jobs<'p> {
        &self.jobs
    }

    /// Run the jobs that `--job` names, one after the other, and nothing else.
    pub(crate) fn run_named(&self) -> Ended {
        let named = self.how.job.as_slice();
        if let (Some(threads), [job]) = (self.how.worker, named) {
            return workers::work(&self.jobs, job.number, threads);
        }
        let mut ended = Ok(());
        let mut ran_to = Vec::new();
        for args::JobNumber { number, name } in named {
            let number = *number;
            let threads = self.how.threads.unwrap_or(1);
            let ran = self.jobs.run((number, name.as_deref()), threads, &|_| ());
            let error = ran.as_ref().err().map(|error| error.render(false));
            ran_to.push(JobRun { number, directory: ran.as_ref().ok().cloned(), error });
            match (ran, named) {
                (Ok(_), _) => {}
                // The caller says it.
                (Err(error), [_]) => ended = Err(error),
                (Err(error), _) => {
                    tell(error.render(false));
                    ended = Err(Error::Run {
                        what: "not all of these jobs have results".to_owned(),
                        hint: "each failure is above".to_owned(),
                    });
                }
            }
        }
        if self.how.json { say_json(&ran_to).and(ended) } else { ended }
    }

    /// Run what is needed of the jobs, as many seeds as `seeding` says, and say of how many there
    /// were results before.
    pub(crate) fn run(
        &self,
        seeding: Seeding<'_>,
        progress: args::Progress,
    ) -> Result<Done<'p>, Error> {
        self.say_other_engines();
        if self.how.collect {
            self.say_no_threads();
            let done = self.run_by(seeding, &|numbers| self.found(numbers))?;
            Self::name_missing(&done.missing);
            return Ok(done);
        }
        let _ = GOES_ON.set(GOING_ON);
        let workers = Workers {
            jobs: &self.jobs,
            args: self.command.clone(),
            at_once: self.how.threads.unwrap_or_else(cores),
            bar: RunsBar::new(progress, seeding.most_runs(self.plan)),
            found: AtomicUsize::new(0),
        };
        let done = self.run_by(seeding, &|numbers| workers.run(numbers))?;
        let found = workers.found.load(Ordering::Relaxed);
        // The bar goes before what is said.
        drop(workers);
        let (all, failed) = (done.asked, done.missing.len());
        let now = all - found - failed;
        let of_them = format!("{found} finished before, {now} run now, {failed} failed");
        tell(format_args!("{all} jobs: {of_them}\n"));
        Self::name_missing(&done.missing);
        Ok(done)
    }

    /// Write a script for the batch system `scheduler` that runs what is left of the jobs.
    pub(crate) fn emit(&self, scheduler: args::Scheduler, seeding: Seeding<'_>) -> Ended {
        self.say_no_threads();
        let left = self.left(seeding)?;
        match scheduler {
            args::Scheduler::Slurm => self.emit_slurm(&left),
        }
    }

    /// The numbers of jobs that are needed next and have no results.
    fn left(&self, seeding: Seeding<'_>) -> Result<Vec<usize>, Error> {
        let left = RefCell::new(Vec::new());
        self.run_by(seeding, &|numbers: &[usize]| {
            let ends = self.found(numbers);
            let is_left = |(_, end): &(&usize, &JobEnd)| matches!(end, JobEnd::NotRun);
            let more = numbers.iter().zip(&ends).filter(is_left).map(|(number, _)| *number);
            left.borrow_mut().extend(more);
            ends
        })?;
        Ok(left.into_inner())
    }

    /// What there is of these jobs.
    fn found(&self, numbers: &[usize]) -> Vec<JobEnd> {
        let found =
            |&number: &usize| self.jobs.finished(number).map_or(JobEnd::NotRun, JobEnd::Finished);
        numbers.iter().map(found).collect()
    }

    /// What `run` makes of the jobs.
    fn run_by(&self, seeding: Seeding<'_>, run: &RunJobs<'_>) -> Result<Done<'p>, Error> {
        let (asked, missing) = (Cell::new(0), RefCell::new(Vec::new()));
        let noting = |numbers: &[usize]| {
            let ends = run(numbers);
            asked.set(asked.get() + numbers.len());
            let why = |(&number, end): (&usize, &JobEnd)| {
                let why = match end {
                    JobEnd::Finished(_) => return None,
                    JobEnd::Failed(why) => why.clone(),
                    JobEnd::NotRun => "not run".to_owned(),
                };
                Some(Missing { label: self.jobs.label(number), why })
            };
            missing.borrow_mut().extend(numbers.iter().zip(&ends).filter_map(why));
            ends
        };
        let options = Options { seeds: seeding, engine: Engine::Jobs(&noting) };
        let outcome = study::run(self.plan, &options, &|_| ())?;
        Ok(Done { outcome, missing: missing.into_inner(), asked: asked.get() })
    }

    /// Say that nothing is run, if threads were asked for.
    fn say_no_threads(&self) {
        if self.how.threads.is_some() {
            warn("--threads has no effect: nothing is run");
        }
    }

    /// Say that directories of other engines are of no use.
    fn say_other_engines(&self) {
        for (engine, count) in self.jobs.of_other_engines() {
            warn(&format!(
                "{count} jobs in {} are of engine {engine}, this is {ENGINE_VERSION}: what is \
                 needed of them is run again; remove what is not",
                self.out.join("jobs").display()
            ));
        }
    }

    /// Say which jobs have no results, before anything else can go wrong, a full disk for example.
    fn name_missing(missing: &[Missing]) {
        for Missing { label, why } in missing.iter().take(NAMED_MAX) {
            tell(format_args!("{}\n", table::printable(&format!("{label}: {why}"))));
        }
        if missing.len() > NAMED_MAX {
            tell(format_args!("and {} more\n", missing.len() - NAMED_MAX));
        }
    }

    /// Say how many jobs have no results, and how to go on: an error, if there are any.
    pub(crate) fn ended(&self, missing: &NoResults) -> Ended {
        let NoResults { of, jobs } = missing;
        let Some(first) = jobs.first() else { return Ok(()) };
        let one_reason = jobs.iter().all(|job| job.why == first.why);
        let why = if one_reason { format!(": {}", first.why) } else { String::new() };
        Err(Error::Run {
            what: format!("{} of {of} jobs have no results{why}", jobs.len()),
            hint: format!(
                "the results of the others stay in {}; to go on: {}",
                self.out.join("jobs").display(),
                command_line(self.command.iter().cloned())
            ),
        })
    }

    /// Where the results of all jobs together go.
    ///
    /// # Errors
    /// It cannot be written, or has other results.
    pub(crate) fn output(&self, of: ResultsOf) -> Result<OutputDir, Error> {
        OutputDir::create_for(self.out, of).map_err(|e| {
            match self.how.collect && e.is_forbidden() {
                true => unwritable(&FileError { hint: self.elsewhere(), ..e }),
                false => unwritable(&e),
            }
        })
    }

    /// How to have the table of jobs that are where nothing can be written.
    fn elsewhere(&self) -> String {
        format!(
            "the table stands beside the jobs: copy {} to where you may write, and give that with \
             --out",
            self.out.display()
        )
    }

    /// That the results of all jobs together cannot be written loses none of theirs.
    fn not_written(&self, error: &FileError) -> Error {
        let jobs = self.out.join("jobs");
        let what = format!("cannot {} {}: {}", error.action, error.path.display(), error.cause);
        let hint =
            format!("those of each job stay in {}: the same command goes on", jobs.display());
        Diagnostic::new(what).hint(hint).into()
    }

    /// Leave results, as `write` writes them, and their page in `out`.
    pub(crate) fn publish(
        &self,
        out: OutputDir,
        write: impl FnOnce(&OutputDir) -> Result<(), FileError>,
    ) -> Result<(), Error> {
        write(&out).map_err(|e| self.not_written(&e))?;
        let page = html::of_run(out.staged())?;
        out.text("report.html", &page).map_err(|e| self.not_written(&e))?;
        out.commit().map_err(|e| self.not_written(&e))
    }

    /// Print a line for each job: its number, whether it is finished, what it is; as JSON also
    /// whether it is needed next, of as many seeds as `seeding` says.
    pub(crate) fn list(&self, seeding: Seeding<'_>) -> Ended {
        let program = own_program();
        self.say_no_threads();
        let mut listed: Vec<Listed> =
            (0..self.jobs.count()).filter_map(|number| self.listed(number, &program)).collect();
        if self.how.json {
            let left = self.left(seeding)?;
            for job in &mut listed {
                job.needed = left.contains(&job.number);
            }
            return say_json(&listed);
        }
        listed.iter().try_for_each(|job| {
            let state = if job.finished { "finished" } else { "left" };
            let label = table::printable(&job.label);
            say(format_args!("{:>6}  {state:<8}  {}  {label}", job.number, job.directory.display()))
        })
    }

    fn listed(&self, number: usize, program: &[String]) -> Option<Listed> {
        let About { seed, axes, command: repeat } = self.jobs.about(number)?;
        let own = ["--job".to_owned(), number.to_string()];
        let command = program.iter().chain(&self.command).cloned();
        Some(Listed {
            number,
            finished: self.jobs.finished(number).is_some(),
            needed: false,
            directory: self.jobs.dir(number),
            label: self.jobs.label(number),
            axes: axes.into_iter().map(|(a, value)| (a.to_owned(), value.to_owned())).collect(),
            seed,
            command: command.chain(own).collect(),
            repeat,
        })
    }

    fn emit_slurm(&self, left: &[usize]) -> Ended {
        let dir = self.out.join("slurm");
        let array = dir.join("array.sh");
        let collect = self.command.iter().cloned().chain(["--collect".to_owned()]);
        if left.is_empty() {
            let nothing = "every job has its results: there is nothing to submit";
            return match self.how.json {
                true => say_json(&Emitted {
                    jobs: 0,
                    elements: 0,
                    script: None,
                    results: collect.collect(),
                }),
                false => say(nothing),
            };
        }
        let unwritable = |e: std::io::Error| {
            let error = Diagnostic::new(format!("cannot write to {}: {e}", dir.display()));
            Error::from(error.hint("choose another directory with --out"))
        };
        std::fs::create_dir_all(&dir).map_err(unwritable)?;
        let elements = left.len().min(ELEMENTS_MAX);
        let mut lines = vec![String::new(); elements];
        for (i, number) in left.iter().enumerate() {
            let line = &mut lines[i % elements];
            let comma = if line.is_empty() { "" } else { "," };
            // With what another scenario would not have: the file may change before it runs.
            let name: String = self.jobs.name(*number).chars().take(NAME_SHOWN).collect();
            let _ = write!(line, "{comma}{number}:{name}"); // into a text: cannot fail
        }
        let absolute = std::path::absolute(&dir).map_err(unwritable)?;
        let script = self.slurm_script(&lines, &absolute).map_err(unwritable)?;
        std::fs::write(&array, script).map_err(unwritable)?;
        if self.how.json {
            let (jobs, results) = (left.len(), collect.collect());
            return say_json(&Emitted { jobs, elements, script: Some(&array), results });
        }
        say(format_args!("{} jobs in {elements} elements of an array", left.len()))?;
        say(format_args!("submit:  sbatch {}", array.display()))?;
        say(format_args!("results: {}", command_line(collect)))
    }

    /// The script of an array whose elements run the jobs of these lines, with their outputs in
    /// `dir`. The lines stand in it: a scheduler keeps the script, and no later one changes what is
    /// to come.
    fn slurm_script(&self, lines: &[String], dir: &Path) -> std::io::Result<String> {
        let here = std::env::current_dir()?.display().to_string();
        let words = own_program().into_iter().chain(self.command.iter().cloned());
        let command: Vec<String> = words.map(|word| quoted(&word)).collect();
        Ok(format!(
            "#!/bin/sh\n\
             # An element runs the jobs in its line below. Those that are finished are not run \
             again.\n\
             #SBATCH --job-name=trimline\n\
             #SBATCH --array=0-{}\n\
             #SBATCH --cpus-per-task=1\n\
             #SBATCH --output=\"{}/%a.log\"\n\
             cd {} || exit 1\n\
             jobs=$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" <<'JOBS'\n\
             {}\n\
             JOBS\n\
             )\n\
             exec {} --job \"$jobs\"\n",
            lines.len() - 1,
            // Slurm writes an element's number for %a.
            dir.display().to_string().replace('%', "%%"),
            quoted(&here),
            lines.join("\n"),
            command.join(" "),
        ))
    }
}

/// What `--emit --json` says.
#[derive(Serialize)]
struct Emitted<'a> {
    jobs: usize,
    elements: usize,
    /// What the scheduler is given, unless nothing is left.
    script: Option<&'a Path>,
    /// The arguments that show the results.
    results: Vec<String>,
}

/// A job that `--job --json` ran.
#[derive(Serialize)]
struct JobRun {
    number: usize,
    /// Where they are, if it has results.
    directory: Option<PathBuf>,
    /// Why it has none, if so.
    error: Option<String>,
}

/// A job as `--list-jobs --json` shows it.
#[derive(Serialize)]
struct Listed {
    number: usize,
    finished: bool,
    /// Whether it is to be run next: not so if seeds are added one after the other, and this is not
    /// its turn.
    needed: bool,
    directory: PathBuf,
    label: String,
    axes: std::collections::BTreeMap<String, String>,
    seed: u64,
    /// What runs it into its directory.
    command: Vec<String>,
    /// The command that runs it alone, elsewhere.
    repeat: String,
}

impl Done<'_> {
    /// The jobs without results.
    pub(crate) fn take_missing(&mut self) -> NoResults {
        NoResults { of: self.asked, jobs: std::mem::take(&mut self.missing) }
    }
}
