//! Timers: one deadline each, equal deadlines in id order.
//!
//! A deadline is moved on much more often than it passes: each packet moves that of a
//! retransmission. So a later one waits beside its entry in the heap until that comes to the top.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use units::{Time, TimerId};

/// So many entries are never too many.
const FEW: usize = 64;

/// A timer that is armed, or has an entry in the heap.
#[derive(Clone, Copy, Debug)]
struct Timer {
    /// Its deadline; [`Time::NEVER`]: disarmed.
    at: Time,
    /// That of its entry that counts, no later.
    queued: Time,
}

/// The armed timers of one endpoint or application.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    timers: BTreeMap<TimerId, Timer>,
    /// In the order in which they fire. Entries that do not count any more are passed over.
    order: BinaryHeap<Reverse<(Time, TimerId)>>,
}

impl Timers {
    /// Set the one deadline of `id`; [`Time::NEVER`] disarms.
    pub(crate) fn arm(&mut self, id: TimerId, at: Time) {
        if at == Time::NEVER {
            if let Some(timer) = self.timers.get_mut(&id) {
                timer.at = at;
            }
            return;
        }
        let timer = self.timers.entry(id).or_insert(Timer { at, queued: Time::NEVER });
        timer.at = at;
        if at < timer.queued {
            timer.queued = at;
            self.order.push(Reverse((at, id)));
            if self.order.len() > 2 * self.timers.len() + FEW {
                self.timers.retain(|_, timer| timer.at != Time::NEVER);
                self.timers.values_mut().for_each(|timer| timer.queued = timer.at);
                let all = self.timers.iter().map(|(&id, timer)| Reverse((timer.at, id)));
                self.order = all.collect();
            }
        }
    }

    /// The earliest deadline.
    pub(crate) fn next(&mut self) -> Option<Time> {
        self.first(Time::NEVER).map(|(at, _)| at)
    }

    /// Disarm and return the first timer whose deadline is `now` or earlier.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<TimerId> {
        let (_, id) = self.first(now)?;
        self.order.pop();
        self.timers.remove(&id);
        Some(id)
    }

    /// The first timer that fires, if it does up to `until`. Its entry is at the top then.
    fn first(&mut self, until: Time) -> Option<(Time, TimerId)> {
        while let Some(&Reverse((at, id))) = self.order.peek().filter(|top| top.0.0 <= until) {
            let Some(timer) = self.timers.get_mut(&id).filter(|timer| timer.queued == at) else {
                self.order.pop();
                continue;
            };
            if timer.at == at {
                return Some((at, id));
            }
            self.order.pop();
            timer.queued = timer.at;
            if timer.at == Time::NEVER {
                self.timers.remove(&id);
            } else {
                self.order.push(Reverse((timer.at, id)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use endpoint::{Draw, Purpose};

    use super::*;

    #[test]
    fn one_deadline_each_and_ties_in_id_order() {
        let mut timers = Timers::default();
        for (id, at) in [(3, 50), (1, 50), (2, 90), (0, 10)] {
            timers.arm(TimerId(id), Time(at));
        }
        timers.arm(TimerId(2), Time(50));
        timers.arm(TimerId(0), Time::NEVER);
        assert_eq!(timers.next(), Some(Time(50)));
        assert_eq!(timers.pop_due(Time(49)), None);
        let fired: Vec<u32> =
            std::iter::from_fn(|| timers.pop_due(Time(50))).map(|t| t.0).collect();
        assert_eq!(fired, [1, 2, 3]);
        assert_eq!(timers.next(), None);
    }

    /// Beside a set of all deadlines, in a few thousand steps; entries that do not count stay few.
    #[test]
    fn what_fires_is_what_a_sorted_set_says() {
        const STEP: Purpose = Purpose::new("step");
        let (mut timers, mut deadlines) = (Timers::default(), BTreeMap::new());
        let mut set: BTreeSet<(Time, TimerId)> = BTreeSet::new();
        let draw = Draw::new(1, Purpose::new("timers"), 0);
        let mut now = Time::ZERO;
        for n in 0..20_000_u64 {
            let below = |k, bound| draw.below(STEP, 4 * n + k, bound);
            let id = TimerId(below(0, 8) as u32);
            let after = [0, 1, 10, 1_000_000][below(1, 4) as usize] * below(2, 5);
            let at = if below(3, 9) == 0 { Time::NEVER } else { Time(now.0 + after) };
            timers.arm(id, at);
            set.extend((at != Time::NEVER).then_some((at, id)));
            if let Some(old) = deadlines.insert(id, at).filter(|&old| old != at) {
                set.remove(&(old, id));
            }
            now.0 += below(2, 4);
            assert_eq!(timers.next(), set.first().map(|&(at, _)| at), "step {n}");
            while let Some(&(at, id)) = set.first().filter(|(at, _)| *at <= now) {
                assert_eq!(timers.pop_due(now), Some(id), "step {n}");
                set.remove(&(at, id));
                deadlines.remove(&id);
            }
            assert_eq!(timers.pop_due(now), None, "step {n}");
            assert!(timers.order.len() <= 2 * 8 + FEW, "{}", timers.order.len());
        }
    }
}
