//! Worker processes: each runs one job. What ends one of them, a crash, a lack of memory, ends none
//! of the others.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use scenario::Error;
use study::{JobEnd, Jobs, Step};

use crate::progress::RunsBar;
use crate::{Ended, INTERRUPTED, own_program};

/// A worker says this often how far it has come.
const BETWEEN_STEPS: Duration = Duration::from_millis(100);

/// Begins a worker's line on its standard output that says why its job failed. Its other lines are
/// the share that is done.
const FAILED: &str = "failed ";

/// The most that is kept of what a worker says on standard error, bytes.
const SAID_MAX: u64 = 1 << 16;

/// What runs the jobs of a plan in worker processes.
pub(crate) struct Workers<'p> {
    pub(crate) jobs: &'p Jobs<'p>,
    /// The arguments of a worker, without the number of its job.
    pub(crate) args: Vec<String>,
    /// How many workers there are at once.
    pub(crate) at_once: u32,
    pub(crate) bar: RunsBar,
    /// How many jobs had been finished before.
    pub(crate) found: AtomicUsize,
}

impl Workers<'_> {
    /// Run the jobs of these numbers, but those that are finished.
    pub(crate) fn run(&self, numbers: &[usize]) -> Vec<JobEnd> {
        let next = AtomicUsize::new(0);
        let ends: Mutex<Vec<(usize, JobEnd)>> = Mutex::new(Vec::new());
        // A single job has all cores for itself.
        let threads = (self.at_once / numbers.len().max(1) as u32).max(1);
        std::thread::scope(|scope| {
            for _ in 0..numbers.len().min(self.at_once as usize) {
                scope.spawn(|| {
                    while let Some(&number) = numbers.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let end = self.run_one(number, threads);
                        ends.lock().unwrap_or_else(PoisonError::into_inner).push((number, end));
                    }
                });
            }
        });
        let mut ends = ends.into_inner().unwrap_or_else(PoisonError::into_inner);
        ends.sort_by_key(|(number, _)| *number);
        ends.into_iter().map(|(_, end)| end).collect()
    }

    fn run_one(&self, number: usize, threads: u32) -> JobEnd {
        if let Some(finished) = self.jobs.finished(number) {
            self.found.fetch_add(1, Ordering::Relaxed);
            return JobEnd::Finished(finished);
        }
        let label = self.jobs.label(number);
        let step = |done| self.bar.update(Step { run: number, label: &label, done });
        step(0.0);
        let failed = self.work(number, threads, &step);
        step(1.0);
        match (failed, self.jobs.finished(number)) {
            (_, Some(finished)) => JobEnd::Finished(finished),
            (Err(why), None) => JobEnd::Failed(why),
            (Ok(()), None) => {
                JobEnd::Failed("it left no results: the scenario has changed meanwhile".to_owned())
            }
        }
    }

    /// Run one job in a process of its own. The reason why it failed, if it did.
    fn work(&self, number: usize, threads: u32, step: &dyn Fn(f64)) -> Result<(), String> {
        let own =
            ["--job", &number.to_string(), "--worker", &threads.to_string()].map(str::to_owned);
        let program = own_program();
        let mut command = Command::new(&program[0]);
        command.args(program[1..].iter().chain(&self.args).chain(&own));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("no process can be started: {e}"))?;
        // Open as long as this process lives: see `end_with_parent`.
        let _stdin = child.stdin.take();
        let (mut failed, said) = listen(&mut child, step);
        let status = child.wait().map_err(|e| e.to_string())?;
        if status.success() {
            return Ok(());
        }
        Err(failed.take().unwrap_or_else(|| why_it_ended(status, &said)))
    }
}

/// What a worker says until it ends: why its job failed, and the end of its standard error.
fn listen(child: &mut Child, step: &dyn Fn(f64)) -> (Option<String>, String) {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let said = scope.spawn(|| {
            let mut said = Vec::new();
            if let Some(mut stderr) = stderr {
                // What cannot be read, or is too much, is not shown; the rest lets it go on.
                let _ = stderr.by_ref().take(SAID_MAX).read_to_end(&mut said);
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
            }
            String::from_utf8_lossy(&said).into_owned()
        });
        let mut failed = None;
        for line in
            stdout.into_iter().flat_map(|out| BufReader::new(out).lines()).map_while(Result::ok)
        {
            match (line.strip_prefix(FAILED), line.parse()) {
                (Some(why), _) => failed = Some(why.to_owned()),
                (None, Ok(done)) => step(done),
                _ => {}
            }
        }
        (failed, said.join().unwrap_or_default())
    })
}

/// How a worker ended that did not say why.
fn why_it_ended(status: ExitStatus, said: &str) -> String {
    // Of a panic: where, and the message. What to set for more comes after that.
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty()).take(2);
    let said = lines.map(|line| format!(": {line}")).collect::<String>();
    match signal(status) {
        // Of the signals that a user does not send, the one of a system without memory.
        Some(9) => format!("its process was killed (signal 9): out of memory?{said}"),
        Some(signal) => format!("its process was killed (signal {signal}){said}"),
        None => format!("its process ended with {status}{said}"),
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// Be a worker: run one job with this number of threads, and say on standard output how far it has
/// come.
pub(crate) fn work(jobs: &Jobs<'_>, number: usize, threads: u32) -> Ended {
    end_with_parent();
    let said = std::cell::Cell::new(None::<Instant>);
    let step = |done: f64| {
        if said.get().is_none_or(|said| said.elapsed() >= BETWEEN_STEPS) {
            said.set(Some(Instant::now()));
            tell_parent(&format!("{done}"));
        }
    };
    let ended = jobs.run((number, None), threads, &step);
    if let Err(error) = &ended {
        let why = match error {
            Error::Input(diagnostic) => diagnostic.to_string(),
            Error::Run { what, .. } => what.clone(),
            Error::Stopped => error.to_string(),
        };
        tell_parent(&format!("{FAILED}{}", why.replace('\n', " ")));
    }
    ended.map(drop)
}

/// A parent that does not listen any more has ended, and so will this process.
fn tell_parent(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// End with the process that started this one, also if that is killed: then standard input ends.
fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        metrics::discard_unfinished();
        std::process::exit(INTERRUPTED);
    });
}
