//! Time zero of a run: when every host and switch is ready, and a moment later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// From the last one's readiness to time zero. Hosts still make their buffers meanwhile.
const MOMENT: Duration = Duration::from_millis(200);
/// How often is looked whether the run has been stopped.
const LOOK: Duration = Duration::from_millis(20);

/// Time zero, by the monotonic clock and by the one by which the kernel stamps frames.
#[derive(Clone, Copy)]
pub(super) struct Zero {
    pub(super) instant: Instant,
    pub(super) system: SystemTime,
}

/// Where all meet.
pub(super) struct Begin {
    /// Who is awaited.
    parties: Mutex<(usize, Option<Zero>)>,
    changed: Condvar,
}

impl Begin {
    pub(super) fn new(parties: usize) -> Self {
        Self { parties: Mutex::new((parties, None)), changed: Condvar::new() }
    }

    /// A party is ready. Time zero, once all are; `None` if the run is stopped before.
    pub(super) fn ready(&self, stop: &AtomicBool) -> Option<Zero> {
        let mut parties = self.parties.lock().unwrap_or_else(PoisonError::into_inner);
        parties.0 = parties.0.saturating_sub(1);
        if parties.0 == 0 {
            let (instant, system) = (Instant::now() + MOMENT, SystemTime::now() + MOMENT);
            parties.1 = Some(Zero { instant, system });
            self.changed.notify_all();
        }
        drop(parties);
        self.zero(stop)
    }

    /// The same for one who is not awaited.
    pub(super) fn zero(&self, stop: &AtomicBool) -> Option<Zero> {
        let mut parties = self.parties.lock().unwrap_or_else(PoisonError::into_inner);
        while parties.1.is_none() && !stop.load(Ordering::Relaxed) {
            let waited = self.changed.wait_timeout(parties, LOOK);
            parties = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        parties.1
    }
}
