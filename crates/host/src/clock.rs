//! The monotonic clock as endpoint time, and the calendar that tells one start from the next.

use std::time::{Instant, SystemTime};

use units::Time;

/// Picoseconds since the host began. Never goes back ([`Instant`] guarantees it).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// A clock that reads zero up to `start`.
    pub(crate) fn new(start: Instant) -> Self {
        Self(start)
    }

    /// The time now. Stops after 213 days, where 64 bits of picoseconds end.
    pub(crate) fn now(self) -> Time {
        self.at(Instant::now())
    }

    pub(crate) fn at(self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.0);
        let seconds = since.as_secs().saturating_mul(1_000_000_000_000);
        Time(seconds.saturating_add(u64::from(since.subsec_nanos()) * 1_000))
    }

    /// By the system's clock: as long ago as that says. Who sets it meanwhile is not noticed.
    pub(crate) fn at_system(self, at: SystemTime) -> Time {
        let ago = at.elapsed().unwrap_or_default();
        self.at(Instant::now().checked_sub(ago).unwrap_or(self.0))
    }
}

/// Microseconds since 1970 by the system clock; zero if it stands before.
pub(crate) fn since_1970_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
