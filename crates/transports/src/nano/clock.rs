//! The NIC's clock, 3.2 GHz (specs/nanotransport.md#1), and the turns in which timers are looked
//! at.

use endpoint::{Draw, Purpose};
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

/// The same where times are counts of cycles: `wait` after the cycle `now`.
pub(super) fn look_in_cycles(now: Time, wait: Dur, id: usize, entries: u16) -> Time {
    let (round, first) = (2 * u64::from(entries.max(1)), 2 * id as u64);
    let deadline = (now + wait).0;
    Time(first + deadline.saturating_sub(first).div_ceil(round) * round)
}

/// A time in cycles, rounded up.
pub(super) const fn in_cycles(time: Dur) -> Dur {
    let (whole, rest) = (time.0 / 625, time.0 % 625);
    Dur(2 * whole + (2 * rest).div_ceil(625))
}

const PHASE: Purpose = Purpose::new("nano clock phase");

/// A host's clock (docs/nic.md, C1): its cycle k begins at (625 k + phase) / 2 ps, rounded up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    phase: i128,
}

impl Clock {
    pub(super) fn of(draw: Draw) -> Self {
        Self { phase: draw.below(PHASE, 0, 625).into() }
    }

    pub(super) fn begin(self, cycle: u64) -> Time {
        let ps = (i128::from(cycle) * 625 + self.phase + 1) / 2;
        Time(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// The cycle of an input at `at`: the first that begins after it.
    pub(super) fn input(self, at: Time) -> u64 {
        // 625 k + phase > 2 at.
        ((2 * i128::from(at.0) - self.phase).div_euclid(625) + 1).max(0) as u64
    }

    /// How many cycles after cycle 0 the last one begins that does so at or before `at`; less than
    /// zero if none does.
    pub(super) fn last(self, at: Time) -> i128 {
        (2 * i128::from(at.0) - self.phase).div_euclid(625)
    }
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

    /// C1.
    #[test]
    fn law_c1_an_input_waits_for_the_next_cycle() {
        for phase in [0, 1, 313, 624] {
            let clock = Clock { phase };
            for at in (0..3_000).map(Time) {
                let cycle = clock.input(at);
                assert!(clock.begin(cycle) > at, "{phase}: {at:?}");
                assert!(cycle == 0 || clock.begin(cycle - 1) <= at, "{phase}: {at:?}");
                assert_eq!(clock.last(at) + 1, i128::from(cycle).max(clock.last(at) + 1));
            }
        }
        assert_eq!(Clock { phase: 1 }.begin(0), Time(1), "rounded up");
    }

    /// C4.
    #[test]
    fn law_c4_timers_count_cycles() {
        let of = [0, 1, 312, 313, 625, 626, 7_000_000].map(|ps| in_cycles(Dur(ps)).0);
        assert_eq!(of, [0, 1, 1, 2, 2, 3, 22_400]);
        let look = |id, deadline| look_in_cycles(Time(0), Dur(deadline), id, 4).0;
        assert_eq!([look(0, 8), look(0, 9), look(3, 6), look(3, 7), look(3, 0)], [8, 16, 6, 14, 6]);
    }
}
