//! How far a command has come, on stderr: a bar on a terminal, elsewhere a line now and then.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use scenario::{Diagnostic, Progress, Scenario, StepDone};
use study::{Plan, Step, Study};

use crate::{args, tell};

/// The bar has this many steps.
const STEPS: u64 = 1000;
/// And is redrawn this often.
const REDRAW: Duration = Duration::from_millis(100);
/// Where there is no bar, a line comes this often: what ends sooner has none.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Where progress is shown.
enum Shown {
    Bar(ProgressBar),
    Lines(Lines),
    Nowhere,
}

/// A thread that prints the latest message from time to time.
struct Lines {
    message: Arc<Mutex<String>>,
    /// Dropped, it ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    fn start(between: Duration) -> Self {
        let message = Arc::new(Mutex::new(String::new()));
        let (end, ended) = channel();
        let latest = Arc::clone(&message);
        let thread = std::thread::spawn(move || {
            while ended.recv_timeout(between) == Err(RecvTimeoutError::Timeout) {
                tell(format_args!("{}\n", locked(&latest)));
            }
        });
        Self { message, end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.end.take());
        // It prints and cannot fail; nothing is to be done if it did.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shown {
    fn new(when: args::Progress, steps: u64) -> Self {
        let bar = || {
            let bar = ProgressBar::new(steps);
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
                bar.set_style(style);
            }
            bar
        };
        match when {
            args::Progress::Never => Self::Nowhere,
            args::Progress::Auto => match bar() {
                bar if bar.is_hidden() => Self::Lines(Lines::start(BETWEEN_LINES)),
                bar => Self::Bar(bar),
            },
            args::Progress::Lines => Self::Lines(Lines::start(BETWEEN_LINES)),
        }
    }

    /// Say `line` at once, and go on.
    fn say(&self, line: &str) {
        match self {
            Self::Bar(bar) => bar.println(line),
            Self::Lines(_) => tell(format_args!("{line}\n")),
            Self::Nowhere => {}
        }
    }

    /// Show `message`; of the bar's steps, `position` are done.
    fn show(&self, position: u64, steps: u64, message: String) {
        match self {
            Self::Bar(bar) => {
                bar.set_position(position);
                bar.set_message(message);
            }
            Self::Lines(lines) => {
                let percent = position * 100 / steps.max(1);
                *locked(&lines.message) = format!("{percent} %: {message}");
            }
            Self::Nowhere => {}
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// The progress of one run. Dropped, it is taken away.
pub(crate) struct Bar {
    shown: Shown,
    started: Instant,
    drawn: Option<Instant>,
    /// End of the measurement window, picoseconds, if there is one.
    to: Option<u64>,
    /// By training job: its latest step.
    jobs: BTreeMap<String, String>,
}

impl Bar {
    /// Says that `what` is being read.
    pub(crate) fn reading(when: args::Progress, what: &str) -> Self {
        let shown = Shown::new(when, STEPS);
        shown.show(0, STEPS, format!("reading {what}"));
        Self { shown, started: Instant::now(), drawn: None, to: None, jobs: BTreeMap::new() }
    }

    /// So much of `file`, which the scenario names, has been read.
    pub(crate) fn read(&self, file: &str, share: f64) {
        self.shown.show((share * STEPS as f64) as u64, STEPS, format!("reading {file}"));
    }

    /// The run of `scenario` begins.
    pub(crate) fn running(&mut self, scenario: &Scenario) {
        self.started = Instant::now();
        self.to = scenario.measure().to.map(|to| to.0);
        self.shown.show(0, STEPS, "building the fabric".to_owned());
    }

    /// Steps of training jobs are complete. What the first one of each took is said at once.
    pub(crate) fn steps(&mut self, steps: Vec<StepDone>) {
        for step in steps {
            if step.done == 1 && step.steps > 1 {
                self.shown.say(&step.to_string());
            }
            let latest = format!(", {}", step.latest());
            self.jobs.insert(step.job, latest);
        }
    }

    /// Show simulated time, events per second, the time left, and the steps of training jobs.
    pub(crate) fn update(&mut self, scenario: &Scenario, progress: &Progress) {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        self.drawn = Some(Instant::now());
        let spent = self.started.elapsed().as_secs_f64();
        let done = scenario.done(progress);
        let rate = progress.events as f64 / spent.max(1e-9) / 1e6;
        let now = progress.now.as_us_f64() / 1e3;
        let left = if self.to.is_some_and(|to| progress.now.0 >= to) {
            format!("draining, {} messages in flight", progress.submitted - progress.delivered)
        } else if done > 0.0 {
            format!("{:.0} s left", spent / done * (1.0 - done))
        } else {
            String::new()
        };
        let steps: String = self.jobs.values().map(String::as_str).collect();
        let message = format!("{now:.2} ms simulated, {rate:.1} M events/s, {left}{steps}");
        self.shown.show((done * STEPS as f64) as u64, STEPS, message);
    }
}

/// How many of so many have been done. Dropped, it is taken away.
pub(crate) struct Count {
    shown: Shown,
    drawn: Option<Instant>,
}

impl Count {
    /// Says `message` until the first have been done.
    pub(crate) fn new(when: args::Progress, message: &str) -> Self {
        let shown = Shown::new(when, STEPS);
        shown.show(0, STEPS, message.to_owned());
        Self { shown, drawn: None }
    }

    /// Something else begins.
    pub(crate) fn say(&self, message: &str) {
        self.shown.show(0, STEPS, message.to_owned());
    }

    /// `done` of `all` `what`.
    pub(crate) fn update(&mut self, done: u64, all: u64, what: &str) {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        self.drawn = Some(Instant::now());
        let position = (u128::from(done) * u128::from(STEPS) / u128::from(all.max(1))) as u64;
        self.shown.show(position, STEPS, format!("{done} of {all} {what}"));
    }
}

/// The plan of `study`, with progress while its scenarios are read.
pub(crate) fn plan(
    study: &Study,
    phases: bool,
    when: args::Progress,
) -> Result<Plan<'_>, Diagnostic> {
    let count = Mutex::new(Count::new(when, "reading scenarios"));
    Plan::telling(study, phases, &|read, all| {
        locked(&count).update(read as u64, all as u64, "scenarios read");
    })
}

/// The progress of many runs, of which several go on at once. Dropped, it is taken away.
pub(crate) struct RunsBar {
    shown: Shown,
    state: Mutex<Runs>,
    all: usize,
}

#[derive(Default)]
struct Runs {
    /// The share done and the name of each run that goes on.
    going_on: BTreeMap<usize, (f64, String)>,
    ended: usize,
    drawn: Option<Instant>,
}

impl RunsBar {
    pub(crate) fn new(when: args::Progress, runs: usize) -> Self {
        let shown = Shown::new(when, runs as u64 * STEPS);
        Self { shown, state: Mutex::default(), all: runs }
    }

    /// Show how many runs have ended, and those that go on.
    pub(crate) fn update(&self, step: Step<'_>) {
        if matches!(self.shown, Shown::Nowhere) {
            return;
        }
        let mut state = locked(&self.state);
        state.note(step);
        // A run may step millions of times.
        if state.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        state.drawn = Some(Instant::now());
        let Runs { going_on, ended, .. } = &*state;
        let part: f64 = going_on.values().map(|(done, _)| done).sum();
        let names: Vec<&str> = going_on.values().map(|(_, name)| name.as_str()).collect();
        let message = format!("{ended} of {} runs; {}", self.all, names.join(", "));
        let position = ((*ended as f64 + part) * STEPS as f64) as u64;
        self.shown.show(position, self.all as u64 * STEPS, message);
    }
}

impl Runs {
    fn note(&mut self, step: Step<'_>) {
        if step.done >= 1.0 {
            self.ended += usize::from(self.going_on.remove(&step.run).is_some());
        } else if let Some((done, _)) = self.going_on.get_mut(&step.run) {
            *done = step.done;
        } else {
            self.going_on.insert(step.run, (step.done, step.label.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_the_latest_and_end_with_their_owner() {
        let lines = Shown::Lines(Lines::start(Duration::from_millis(1)));
        lines.show(250, STEPS, "half of the half".to_owned());
        std::thread::sleep(Duration::from_millis(5));
        let Shown::Lines(Lines { message, .. }) = &lines else { return };
        let message = Arc::clone(message);
        assert_eq!(*locked(&message), "25 %: half of the half");
        drop(lines);
        assert_eq!(Arc::strong_count(&message), 1, "the thread has ended");
    }
}
