//! EQDS in oversubscribed fabrics: turns of credit are left out at random while much of what
//! arrives is marked or trimmed (specs/uet.md#13.3).

use std::collections::VecDeque;

use endpoint::{Draw, Purpose};
use units::{Dur, Time};

const HOLD_BACK: Purpose = Purpose::new("credit held back");

/// What came before is forgotten (`NOMINAL_RTT` of the public simulator).
const RECENT: Dur = Dur::from_us(10);
/// So large a share is borne.
const BORNE: f64 = 0.1;

/// What has arrived lately.
#[derive(Debug, Default)]
pub(super) struct HoldBack {
    /// When, and whether it was marked or trimmed.
    recent: VecDeque<(Time, bool)>,
    bad: usize,
    turns: u64,
}

impl HoldBack {
    /// A packet has arrived, `bad` if marked or trimmed.
    pub(super) fn on_packet(&mut self, now: Time, bad: bool) {
        self.forget(now);
        self.recent.push_back((now, bad));
        self.bad += usize::from(bad);
    }

    fn forget(&mut self, now: Time) {
        while let Some(&(at, bad)) = self.recent.front()
            && at.saturating_add(RECENT) < now
        {
            self.recent.pop_front();
            self.bad -= usize::from(bad);
        }
    }

    /// Whether the turn that is due is left out.
    pub(super) fn leaves_out(&mut self, now: Time, draw: Draw) -> bool {
        self.forget(now);
        let share = self.bad as f64 / self.recent.len().max(1) as f64;
        if share < BORNE {
            return false;
        }
        self.turns += 1;
        draw.unit(HOLD_BACK, self.turns) < share - BORNE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    /// Of a thousand turns those left out, with so many bad packets of ten.
    fn left_out(bad: u64) -> usize {
        let mut hold_back = HoldBack::default();
        (0..10).for_each(|n| hold_back.on_packet(at(n), n < bad));
        let draw = Draw::new(1, Purpose::new("test"), 0);
        (0..1000).filter(|_| hold_back.leaves_out(at(10), draw)).count()
    }

    #[test]
    fn turns_are_left_out_by_what_is_beyond_a_tenth() {
        assert_eq!((left_out(0), left_out(1)), (0, 0));
        assert!((350..450).contains(&left_out(5)), "{}", left_out(5));
        assert!((860..940).contains(&left_out(10)), "{}", left_out(10));
    }

    #[test]
    fn what_came_long_ago_does_not_count() {
        let mut hold_back = HoldBack::default();
        (0..100).for_each(|_| hold_back.on_packet(at(0), true));
        let draw = Draw::new(1, Purpose::new("test"), 0);
        assert!((0..100).any(|_| hold_back.leaves_out(at(10), draw)));
        assert!((0..100).all(|_| !hold_back.leaves_out(at(11), draw)));
        hold_back.on_packet(at(11), false);
        assert_eq!((hold_back.recent.len(), hold_back.bad), (1, 0));
    }
}
