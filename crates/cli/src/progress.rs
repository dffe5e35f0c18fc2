//! How far a run has come: a bar on a terminal, nothing in a pipe.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use scenario::{Progress, Scenario};
use study::Step;

/// A progress bar on stderr, hidden where that is not a terminal.
pub(crate) struct Bar {
    bar: ProgressBar,
    started: Instant,
    shown: Instant,
    /// End of the measurement window, picoseconds, if there is one.
    to: Option<u64>,
}

/// The bar has this many steps.
const STEPS: u64 = 1000;
/// And is redrawn this often.
const REDRAW: Duration = Duration::from_millis(100);

impl Bar {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let now = Instant::now();
        Self { bar: bar(STEPS), started: now, shown: now, to: scenario.measure().to.map(|to| to.0) }
    }

    /// Show simulated time, events per second and the time left.
    pub(crate) fn update(&mut self, scenario: &Scenario, progress: &Progress) {
        if self.bar.is_hidden() || self.shown.elapsed() < REDRAW {
            return;
        }
        self.shown = Instant::now();
        let spent = self.started.elapsed().as_secs_f64();
        let done = scenario.done(progress);
        let rate = progress.events as f64 / spent.max(1e-9) / 1e6;
        let now = progress.now.as_us_f64() / 1e3;
        let left = if self.to.is_some_and(|to| progress.now.0 >= to) {
            format!("draining, {} messages under way", progress.submitted - progress.delivered)
        } else if done > 0.0 {
            format!("{:.0} s left", spent / done * (1.0 - done))
        } else {
            String::new()
        };
        self.bar.set_position((done * STEPS as f64) as u64);
        self.bar.set_message(format!("{now:.2} ms simulated, {rate:.1} M events/s, {left}"));
    }

    /// Take the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar over many runs, of which several go on at once.
pub(crate) struct RunsBar {
    bar: ProgressBar,
    /// The share done and the name of each run under way.
    under_way: Mutex<BTreeMap<usize, (f64, String)>>,
    ended: Mutex<usize>,
    runs: usize,
}

impl RunsBar {
    pub(crate) fn new(runs: usize) -> Self {
        let bar = bar(runs as u64 * STEPS);
        Self { bar, under_way: Mutex::new(BTreeMap::new()), ended: Mutex::new(0), runs }
    }

    /// Show how many runs have ended, and those under way.
    pub(crate) fn update(&self, step: Step<'_>) {
        if self.bar.is_hidden() {
            return;
        }
        let (Ok(mut under_way), Ok(mut ended)) = (self.under_way.lock(), self.ended.lock()) else {
            return;
        };
        if step.done >= 1.0 {
            *ended += usize::from(under_way.remove(&step.run).is_some());
        } else {
            under_way.insert(step.run, (step.done, step.label.to_owned()));
        }
        let part: f64 = under_way.values().map(|(done, _)| done).sum();
        self.bar.set_position(((*ended as f64 + part) * STEPS as f64) as u64);
        let names: Vec<&str> = under_way.values().map(|(_, name)| name.as_str()).collect();
        self.bar.set_message(format!("{ended} of {} runs; {}", self.runs, names.join(", ")));
    }

    /// Take the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn bar(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
        bar.set_style(style);
    }
    bar
}
