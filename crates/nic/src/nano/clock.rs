//! The NIC's clock of 3.2 GHz, on the simulator's picoseconds (specs/nanotransport.md#1).

use units::{Dur, Time};

/// A cycle lasts 312.5 ps.
const TWO_CYCLES_PS: u64 = 625;

/// So many cycles, rounded up to a picosecond.
#[must_use]
pub const fn cycles(n: u64) -> Dur {
    let ps = (n as u128 * TWO_CYCLES_PS as u128).div_ceil(2);
    Dur(if ps > u64::MAX as u128 { u64::MAX } else { ps as u64 })
}

/// The first cycle at or after `at`.
#[must_use]
pub const fn first_cycle(at: Time) -> u64 {
    // ceil(k * 312.5) >= at  <=>  k * 625 > 2 * (at - 1).
    match at.0 {
        0 => 0,
        at => ((at as u128 - 1) * 2 / TWO_CYCLES_PS as u128) as u64 + 1,
    }
}

/// When entry `index` of a RAM of `entries` is first looked at, at or after `deadline`. One entry
/// after another is looked at, two cycles each, in a circle that begins at time zero
/// (specs/nanotransport.md#7).
#[must_use]
pub const fn look(index: usize, entries: usize, deadline: Time) -> Time {
    let (turn, mine) = (2 * entries as u64, 2 * index as u64);
    let first = first_cycle(deadline);
    let wait = (mine + turn - first % turn) % turn;
    Time(cycles(first + wait).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_rounded_up_to_picoseconds() {
        assert_eq!((cycles(1), cycles(2), cycles(140)), (Dur(313), Dur(625), Dur(43_750)));
    }

    /// Against a search cycle by cycle.
    #[test]
    fn a_look_is_the_first_of_its_entry_at_or_after_the_deadline() {
        for entries in [1, 3, 16] {
            for deadline in (0..40_000).step_by(61) {
                for index in 0..entries {
                    let mine = |k: &u64| k % (2 * entries as u64) == 2 * index as u64;
                    let due = |k: &u64| cycles(*k).0 >= deadline;
                    let found = (0..).find(|k| mine(k) && due(k)).map(cycles).unwrap();
                    assert_eq!(look(index, entries, Time(deadline)), Time(found.0));
                }
            }
        }
    }
}
