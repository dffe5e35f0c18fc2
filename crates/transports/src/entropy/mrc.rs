//! The path rules of Multipath Reliable Connection (MRC; specs/uet.md#14.2): an EV that was marked
//! or trimmed is skipped, one whose packet was lost leaves the set, and is probed until it works
//! again.

use units::{Dur, Time};

use super::oblivious::Oblivious;
use super::{Draws, Feedback, Waits};

/// What is known of an EV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Open,
    /// Passed over until then, or until it is sent through for want of another.
    Skipped(Time),
    /// Left out. When it is probed next.
    Failed(Time),
}

/// The order of EVs, and what is known of each.
#[derive(Debug)]
pub(super) struct Mrc {
    order: Oblivious,
    paths: Box<[Path]>,
    waits: Waits,
    /// No probe is due before this.
    probe_due: Option<Time>,
}

impl Mrc {
    pub(super) fn new(mask: u16, waits: Waits, draws: &mut Draws) -> Self {
        let paths = vec![Path::Open; usize::from(mask) + 1].into();
        Self { order: Oblivious::new(mask, draws), paths, waits, probe_due: None }
    }

    /// The next EV that is open; else the next that is skipped, which then is no longer; else,
    /// where all paths have failed, the next.
    pub(super) fn next(&mut self, now: Time, draws: &mut Draws) -> u16 {
        let open = |path| match path {
            Path::Open => true,
            Path::Skipped(until) => until <= now,
            Path::Failed(_) => false,
        };
        if !self.seek(open, draws) {
            self.seek(|path| !matches!(path, Path::Failed(_)), draws);
        }
        let path = &mut self.paths[usize::from(self.order.current())];
        if let Path::Skipped(_) = path {
            *path = Path::Open;
        }
        self.order.next(draws)
    }

    /// Pass over EVs up to the first that is `good`. Whether there is one.
    fn seek(&mut self, good: impl Fn(Path) -> bool, draws: &mut Draws) -> bool {
        // The rest of this round, and the next, whose order is another, as a whole.
        for _ in 0..2 * self.paths.len() {
            if good(self.paths[usize::from(self.order.current())]) {
                return true;
            }
            self.order.skip(draws);
        }
        false
    }

    pub(super) fn feedback(&mut self, now: Time, value: u16, what: Feedback) {
        let path = &mut self.paths[usize::from(value & self.order.mask())];
        *path = match (what, *path) {
            (Feedback::Lost, failed @ Path::Failed(_)) => failed,
            (Feedback::Lost, _) => {
                let due = now.saturating_add(self.waits.rto);
                self.probe_due = Some(self.probe_due.map_or(due, |other| other.min(due)));
                Path::Failed(due)
            }
            (Feedback::Marked | Feedback::Trimmed, _) => {
                Path::Skipped(now.saturating_add(self.waits.rtt))
            }
            // Whatever came through a path that had failed, it works.
            (Feedback::Good, Path::Failed(_)) => Path::Open,
            (Feedback::Good, path) => path,
        };
    }

    /// When an EV has to be probed, or sooner.
    pub(super) fn probe_due(&self) -> Option<Time> {
        self.probe_due
    }

    /// The next EV to be probed `now`, if one is due.
    pub(super) fn probe(&mut self, now: Time) -> Option<u16> {
        self.probe_due.filter(|&due| due <= now)?;
        let due = |path: &Path| matches!(path, Path::Failed(due) if *due <= now);
        let found = self.paths.iter().position(due);
        if let Some(at) = found {
            self.paths[at] = Path::Failed(now.saturating_add(self.waits.rto.max(Dur(1))));
        } else {
            let dues = self.paths.iter().filter_map(|path| match path {
                Path::Failed(due) => Some(*due),
                _ => None,
            });
            self.probe_due = dues.min();
        }
        found.map(|at| self.order.value(at as u16))
    }

    /// How many EVs are left out.
    #[cfg(test)]
    pub(super) fn failed(&self) -> usize {
        self.paths.iter().filter(|path| matches!(path, Path::Failed(_))).count()
    }
}
