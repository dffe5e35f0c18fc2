//! Timers: one deadline each, equal deadlines in id order.

use std::collections::{BTreeMap, BTreeSet};

use units::{Time, TimerId};

/// The armed timers of one endpoint or application.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    deadlines: BTreeMap<TimerId, Time>,
    /// The same, in the order in which they fire.
    order: BTreeSet<(Time, TimerId)>,
}

impl Timers {
    /// Set the one deadline of `id`; [`Time::NEVER`] disarms.
    pub(crate) fn arm(&mut self, id: TimerId, at: Time) {
        if let Some(old) = self.deadlines.remove(&id) {
            self.order.remove(&(old, id));
        }
        if at != Time::NEVER {
            self.deadlines.insert(id, at);
            self.order.insert((at, id));
        }
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Time> {
        self.order.first().map(|&(at, _)| at)
    }

    /// Disarm and return the first timer whose deadline is `now` or earlier.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<TimerId> {
        let &(at, id) = self.order.first().filter(|&&(at, _)| at <= now)?;
        self.order.remove(&(at, id));
        self.deadlines.remove(&id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
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
}
