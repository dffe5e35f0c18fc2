//! How far a run has come: a bar on a terminal, nothing in a pipe.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use scenario::{Progress, Scenario};

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
        let bar = ProgressBar::new(STEPS);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
            bar.set_style(style);
        }
        let now = Instant::now();
        Self { bar, started: now, shown: now, to: scenario.measure().to.map(|to| to.0) }
    }

    /// Show simulated time, events per second and the time left.
    pub(crate) fn update(&mut self, progress: &Progress) {
        if self.bar.is_hidden() || self.shown.elapsed() < REDRAW {
            return;
        }
        self.shown = Instant::now();
        let spent = self.started.elapsed().as_secs_f64();
        let done = self.fraction(progress);
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

    /// The share of the run that is done: of the window's time, or of the messages.
    fn fraction(&self, progress: &Progress) -> f64 {
        let (done, all) = match self.to {
            Some(to) => (progress.now.0, to),
            None => (progress.delivered, progress.submitted),
        };
        if all == 0 { 0.0 } else { (done as f64 / all as f64).min(1.0) }
    }

    /// Take the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
