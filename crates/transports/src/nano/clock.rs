//! The NIC's clock, 3.2 GHz (specs/nanotransport.md#1), and the turns in which timers are looked
//! at.

use units::{Dur, Time};

/// `n` cycles of 312.5 ps, rounded up.
pub(super) const fn cycles(n: u64) -> Dur {
    Dur((n * 625).div_ceil(2))
}

/// The timer of entry `id` of `entries` is looked at in cycles 2 `id`, 2 `id` + 2 `entries`, and so
/// on, because a scan reads one after another, two cycles each (specs/nanotransport.md#7). The
/// first look at or after `deadline`.
pub(super) fn look(deadline: Time, id: usize, entries: u16) -> Time {
    let round = 2 * u64::from(entries.max(1));
    let first = 2 * id as u64;
    // Cycle k is at ceil(625 k / 2): the first k that is not before the deadline.
    let earliest = deadline.0.checked_sub(1).map_or(0, |before| 2 * before / 625 + 1);
    let rounds = earliest.saturating_sub(first).div_ceil(round);
    Time::ZERO + cycles(first + rounds * round)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_rounded_up_to_picoseconds() {
        assert_eq!([0, 1, 2, 12, 23, 140].map(|n| cycles(n).0), [0, 313, 625, 3750, 7188, 43_750]);
    }

    /// N10: within 2 N cycles of the deadline, never before it, and only in the entry's own cycles.
    #[test]
    fn n10_looks_are_bounded_late() {
        for entries in [1, 16, 128] {
            for id in [0, 1, usize::from(entries) - 1] {
                let round = 2 * u64::from(entries);
                for deadline in (0..3_000_000).step_by(997) {
                    let at = look(Time(deadline), id, entries);
                    assert!(
                        at.0 >= deadline && at.0 < deadline.max(625 * id as u64) + cycles(round).0
                    );
                    let k = (at.0 * 2 / 625..).find(|&k| Time::ZERO + cycles(k) == at).unwrap();
                    assert_eq!((k % round, k >= 2 * id as u64), (2 * id as u64 % round, true));
                }
            }
        }
        assert_eq!(look(Time(312), 0, 1), Time(625), "one entry: every other cycle");
        assert_eq!(look(Time(625), 0, 1), Time(625));
        assert_eq!(look(Time(626), 0, 1), Time(1250));
    }
}
