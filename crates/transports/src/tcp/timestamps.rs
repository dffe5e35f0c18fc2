//! The clock of the timestamps option (RFC 7323, section 3): 32 bits that wrap.

use units::{Dur, Time};

/// Its unit. Usual timestamps count milliseconds (RFC 7323, section 5.4: 1 ms to 1 s), too long for
/// the round trips of a data centre; ICTCP's count 100 ns (Wu and others, CoNEXT 2010, section
/// 5.4).
const TICK: Dur = Dur::from_ns(100);

/// The time as a packet says it.
pub(super) fn stamp(now: Time) -> u32 {
    (now.0 / TICK.0) as u32
}

/// The time since a packet was stamped `earlier`, in whole ticks, at least one.
pub(super) fn since(earlier: u32, now: Time) -> Dur {
    Dur(u64::from(stamp(now).wrapping_sub(earlier).max(1)) * TICK.0)
}
