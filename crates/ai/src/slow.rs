//! [`Slowdown`]: from one instant to another, the work of a rank takes longer
//! (specs/ai-jobs.md#1.8).

use units::{Dur, Time};

use crate::graph::Rank;

/// A factor of 1.
const ONE: u128 = 1_000_000;

/// A GPU that is slow for some time: a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowdown {
    /// Whose.
    pub rank: Rank,
    /// From when.
    pub from: Time,
    /// Until when; [`Time::NEVER`]: for good.
    pub until: Time,
    /// How many times as long work takes meanwhile, in millionths; at least 1. Factors of
    /// slowdowns that overlap multiply. [`Slowdown::PAUSED`]: nothing is done.
    pub millionths: u64,
}

impl Slowdown {
    /// The factor of a GPU that stands still.
    pub const PAUSED: u64 = u64::MAX;

    fn holds(&self, at: Time) -> bool {
        self.from <= at && at < self.until
    }
}

/// When `work` that begins at `start` is done by a rank with these slowdowns, rounded up to a
/// picosecond at each of their beginnings and ends.
pub(crate) fn end_of(slowdowns: &[Slowdown], start: Time, work: Dur) -> Time {
    let (mut at, mut left) = (start, u128::from(work.0));
    loop {
        let held = slowdowns.iter().filter(|slow| slow.holds(at));
        let factor = held.fold(ONE, |all, slow| {
            all.saturating_mul(slow.millionths.into()).div_ceil(ONE).min(u64::MAX.into())
        });
        let times = slowdowns.iter().flat_map(|slow| [slow.from, slow.until]);
        let next = times.filter(|&time| time > at).min().unwrap_or(Time::NEVER);
        let span = u128::from(next.since(at).0);
        let is_paused = factor >= Slowdown::PAUSED.into();
        let needed = match is_paused {
            true => u128::MAX,
            false => left.saturating_mul(factor).div_ceil(ONE),
        };
        if needed <= span || next == Time::NEVER {
            return at.saturating_add(Dur(u64::try_from(needed).unwrap_or(u64::MAX)));
        }
        if !is_paused {
            left -= span.saturating_mul(ONE) / factor;
        }
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(from: u64, until: u64, millionths: u64) -> Slowdown {
        Slowdown { rank: Rank(0), from: Time(from), until: Time(until), millionths }
    }

    fn end(slowdowns: &[Slowdown], start: u64, work: u64) -> u64 {
        end_of(slowdowns, Time(start), Dur(work)).0
    }

    #[test]
    fn work_is_stretched_while_a_slowdown_holds() {
        let never = Time::NEVER.0;
        let twice = [slow(100, 200, 2_000_000)];
        assert_eq!(end(&[], 7, 10), 17);
        assert_eq!(end(&twice, 0, 100), 100, "before");
        assert_eq!(end(&twice, 100, 50), 200, "all of it");
        assert_eq!(end(&twice, 80, 30), 120, "20 before, 10 within");
        assert_eq!(end(&twice, 190, 10), 205, "5 within, 5 after");
        assert_eq!(end(&twice, 50, 150), 250, "50 before, 50 within, 50 after");
        assert_eq!(end(&twice, 200, 10), 210, "after");
        let both = [slow(100, never, 2_000_000), slow(150, 170, 3_000_000)];
        assert_eq!(end(&both, 100, 30), 174, "25 at a half, 3 at a sixth, 2 at a half");
        let paused = [slow(100, 200, Slowdown::PAUSED), slow(150, 300, 2_000_000)];
        assert_eq!(end(&paused, 70, 50), 240, "30 before, nothing until 200, 20 at a half");
        let day = slow(0, 90_000_000_000_000_000, Slowdown::PAUSED);
        assert_eq!(end(&[day], 5, 3), day.until.0 + 3, "a day");
        assert_eq!(end(&[slow(0, never, 500_000)], 10, 20), 20, "faster");
        assert_eq!(end(&[slow(0, never, 1_500_000)], 0, 3), 5, "rounded up");
        assert_eq!(end(&[slow(0, never, u64::MAX)], 5, u64::MAX), never, "no overflow");
    }
}
