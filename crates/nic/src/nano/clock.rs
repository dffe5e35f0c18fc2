//! The NIC's clock of 3.2 GHz, on the simulator's picoseconds (specs/nanotransport.md#1).

use endpoint::{Draw, Purpose};
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

/// What the blocks of a NIC count in: their [`Time`]s and [`Dur`]s are so many of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// Instants are exact.
    Picosecond,
    /// Everything happens in a cycle of the host's own clock (docs/nic.md, "The clocked law").
    Cycle,
}

impl Tick {
    /// `n` cycles, rounded up.
    #[must_use]
    pub const fn cycles(self, n: u64) -> Dur {
        match self {
            Self::Picosecond => cycles(n),
            Self::Cycle => Dur(n),
        }
    }

    /// A time in picoseconds, rounded up.
    #[must_use]
    pub const fn of(self, time: Dur) -> Dur {
        match self {
            Self::Picosecond => time,
            Self::Cycle => Dur((time.0 as u128 * 2).div_ceil(TWO_CYCLES_PS as u128) as u64),
        }
    }

    /// When entry `index` of a RAM of `entries` is first looked at, at or after `deadline`. One
    /// entry after another is looked at, two cycles each, in a circle that begins at cycle zero
    /// (specs/nanotransport.md#7).
    #[must_use]
    pub const fn look(self, index: usize, entries: usize, deadline: Time) -> Time {
        let (turn, mine) = (2 * entries as u64, 2 * index as u64);
        let first = match self {
            Self::Picosecond => first_cycle(deadline),
            Self::Cycle => deadline.0,
        };
        let wait = (mine + turn - first % turn) % turn;
        Time(self.cycles(first.saturating_add(wait)).0)
    }
}

const PHASE: Purpose = Purpose::new("nano clock phase");

/// When the cycles of one host begin (C1): cycle k at ceil((625 k + phase) / 2) ps.
#[derive(Clone, Copy, Debug)]
pub struct Edges {
    phase: u64,
}

impl Edges {
    /// Those of the host with these draws.
    #[must_use]
    pub const fn of(draw: Draw) -> Self {
        Self { phase: draw.below(PHASE, 0, TWO_CYCLES_PS) }
    }

    /// The beginning of `cycle`; [`Time::NEVER`] beyond the end of time.
    #[must_use]
    pub const fn begin(self, cycle: u64) -> Time {
        let ps = (cycle as u128 * TWO_CYCLES_PS as u128 + self.phase as u128).div_ceil(2);
        if ps >= Time::NEVER.0 as u128 { Time::NEVER } else { Time(ps as u64) }
    }

    /// The first cycle that begins after `at`: that of an input at this instant.
    #[must_use]
    pub const fn first_after(self, at: Time) -> u64 {
        match (at.0 as u128 * 2).checked_sub(self.phase as u128) {
            None => 0,
            Some(since) => (since / TWO_CYCLES_PS as u128) as u64 + 1,
        }
    }

    /// The last cycle that begins at or before `at`, if one does.
    #[must_use]
    pub const fn last_by(self, at: Time) -> Option<u64> {
        self.first_after(at).checked_sub(1)
    }
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
                    assert_eq!(
                        Tick::Picosecond.look(index, entries, Time(deadline)),
                        Time(found.0)
                    );
                }
            }
        }
    }

    /// C1: against a search; an input at the beginning of a cycle belongs to the next one.
    #[test]
    fn law_c1_an_input_belongs_to_the_first_cycle_that_begins_after_it() {
        for phase in [0, 1, 2, 311, 312, 624] {
            let edges = Edges { phase };
            for at in (0..5_000).map(Time) {
                let first = (0..).find(|k| (625 * k + phase).div_ceil(2) > at.0).unwrap();
                assert_eq!(edges.first_after(at), first, "{phase} {at:?}");
                assert!(edges.begin(first) > at);
                assert!(edges.last_by(at).is_none_or(|k| edges.begin(k) <= at));
            }
        }
        let draws = |host| Draw::new(1, Purpose::new("host"), host);
        let phases: Vec<u64> = (0..100).map(|host| Edges::of(draws(host)).phase).collect();
        assert!(phases.iter().all(|phase| *phase < 625) && phases[0] != phases[1]);
    }

    /// C4: slot i is looked at in the cycles 2 i modulo 2 N, and times are whole cycles.
    #[test]
    fn law_c4_timers_count_cycles() {
        assert_eq!(Tick::Cycle.of(Dur::from_us(7)), Dur(22_400));
        assert_eq!(
            [0, 1, 312, 313, 625, 626].map(|ps| Tick::Cycle.of(Dur(ps)).0),
            [0, 1, 1, 2, 2, 3]
        );
        let look = |index, deadline| Tick::Cycle.look(index, 4, Time(deadline)).0;
        assert_eq!([look(0, 8), look(0, 9), look(3, 6), look(3, 7), look(3, 0)], [8, 16, 6, 14, 6]);
    }
}
