//! Links that stop and start working during a run, and when the fabric learns of it.

use units::{Dur, Time};

use crate::config::{Fault, FaultAction};

/// One step of the fault script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    pub(crate) at: Time,
    pub(crate) link: u32,
    pub(crate) up: bool,
    /// Whether this is the news of the change (path lists and ECMP groups) or the change itself.
    pub(crate) news: bool,
}

/// The script in order of time.
#[derive(Debug, Default)]
pub(crate) struct Script {
    steps: Vec<Step>,
    next: usize,
}

impl Script {
    pub(crate) fn new(faults: &[Fault], reroute_after: Dur) -> Self {
        let mut steps: Vec<Step> = Vec::with_capacity(2 * faults.len());
        for fault in faults {
            let up = fault.action == FaultAction::Up;
            let step = Step { at: fault.at, link: fault.link, up, news: false };
            steps.extend([step, Step { at: fault.at + reroute_after, news: true, ..step }]);
        }
        steps.sort_unstable();
        Self { steps, next: 0 }
    }

    /// When the next step is due.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.steps.get(self.next).map(|step| step.at)
    }

    /// The next step if it is due at `now`.
    pub(crate) fn take(&mut self, now: Time) -> Option<Step> {
        let step = *self.steps.get(self.next).filter(|step| step.at <= now)?;
        self.next += 1;
        Some(step)
    }
}
