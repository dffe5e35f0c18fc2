//! The monotonic clock as endpoint time.

use std::time::Instant;

use units::Time;

/// Picoseconds since the host was made. Never goes back ([`Instant`] guarantees it).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// A clock that reads zero now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time now. Stops after 213 days, where 64 bits of picoseconds end.
    pub(crate) fn now(self) -> Time {
        let ps = self.0.elapsed().as_nanos().saturating_mul(1_000);
        Time(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}
