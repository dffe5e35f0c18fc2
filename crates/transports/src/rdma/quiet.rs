//! What is not said again too soon: the hole that a NAK names, and congestion notifications
//! (specs/rdma.md#4,6).

use units::{Dur, Time};

/// The hole that was last named, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Named(Option<(u64, Time)>);

impl Named {
    /// Whether packet `psn`, which is missing, was named less than `interval` ago; if not, it is
    /// now.
    pub(super) fn has(&mut self, psn: u64, now: Time, interval: Dur) -> bool {
        let named = self.0.is_some_and(|(hole, at)| hole == psn && now < at + interval);
        if !named {
            self.0 = Some((psn, now));
        }
        named
    }
}

/// No notification before this.
#[derive(Clone, Debug, Default)]
pub(super) struct Notices(Time);

impl Notices {
    /// Whether a notification may be given now; then none may for `interval`.
    pub(super) fn may(&mut self, now: Time, interval: Dur) -> bool {
        let may = now >= self.0;
        if may {
            self.0 = now.saturating_add(interval);
        }
        may
    }
}
