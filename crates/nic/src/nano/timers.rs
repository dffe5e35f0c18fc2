//! A bank of timers, one for each message id: exact to schedule and cancel, late by a bounded time
//! when they fire, since the entries are looked at in turn (specs/nanotransport.md#7).

use std::collections::BTreeSet;

use units::Time;

use super::clock::Tick;

/// A bank of timers, each with a word that comes back when it fires.
#[derive(Debug)]
pub struct Timers<T> {
    entries: Vec<Option<(Time, T)>>,
    /// The entries in use by the look at which they fire.
    looks: BTreeSet<(Time, u16)>,
    tick: Tick,
}

impl<T: Copy> Timers<T> {
    /// A bank of `n` that are not running.
    #[must_use]
    pub fn new(n: u16, tick: Tick) -> Self {
        Self { entries: vec![None; usize::from(n)], looks: BTreeSet::new(), tick }
    }

    /// Start timer `id`, or start it again: due at `deadline`.
    pub fn schedule(&mut self, id: u16, deadline: Time, word: T) {
        self.cancel(id);
        let entries = self.entries.len();
        let Some(entry) = self.entries.get_mut(usize::from(id)) else { return };
        let at = self.tick.look(usize::from(id), entries, deadline);
        *entry = Some((at, word));
        self.looks.insert((at, id));
    }

    /// Stop timer `id`, if it runs.
    pub fn cancel(&mut self, id: u16) {
        if let Some((at, _)) = self.entries.get_mut(usize::from(id)).and_then(Option::take) {
            self.looks.remove(&(at, id));
        }
    }

    /// Whether timer `id` runs.
    #[must_use]
    pub fn runs(&self, id: u16) -> bool {
        self.entries.get(usize::from(id)).is_some_and(Option::is_some)
    }

    /// When the next one fires.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// The next one that fires at or before `now`; it runs no more.
    pub fn pop(&mut self, now: Time) -> Option<(Time, u16, T)> {
        let (at, id) = *self.looks.first().filter(|(at, _)| *at <= now)?;
        self.looks.remove(&(at, id));
        let (_, word) = self.entries.get_mut(usize::from(id))?.take()?;
        Some((at, id, word))
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::cycles;
    use super::*;

    /// N10: a timer fires in [T, T + 2N] cycles.
    #[test]
    fn n10_a_timer_is_late_by_at_most_one_turn() {
        const N: u16 = 16;
        for id in 0..N {
            for deadline in (1_000_000..1_050_000).step_by(977).map(Time) {
                let mut timers = Timers::new(N, Tick::Picosecond);
                timers.schedule(id, deadline, ());
                let at = timers.next().unwrap();
                let latest = deadline + cycles(2 * u64::from(N));
                assert!(deadline <= at && at <= latest, "{deadline:?} {at:?}");
                assert_eq!(timers.pop(Time(at.0 - 1)), None, "not before its look");
                assert_eq!(timers.pop(at), Some((at, id, ())));
                assert!(!timers.runs(id));
            }
        }
    }

    #[test]
    fn a_timer_has_one_deadline_and_can_be_cancelled() {
        let mut timers = Timers::new(4, Tick::Picosecond);
        timers.schedule(1, Time(100), 'a');
        timers.schedule(1, Time(50_000), 'b');
        timers.schedule(2, Time(20_000), 'c');
        timers.cancel(2);
        timers.cancel(3);
        timers.schedule(9, Time(1), 'x');
        assert_eq!(timers.pop(Time(40_000)), None);
        assert_eq!(timers.pop(Time(60_000)).map(|(_, id, word)| (id, word)), Some((1, 'b')));
        assert_eq!(timers.next(), None);
    }
}
