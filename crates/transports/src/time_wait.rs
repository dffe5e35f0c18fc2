//! Keys that are remembered for a time, as those of connections that are over (RFC 9293, section
//! 3.3.2, TIME-WAIT).

use std::collections::VecDeque;
use std::hash::Hash;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, Time};

/// What has become of keys, each for a fixed time after it was last asked about.
#[derive(Debug)]
pub(crate) struct TimeWait<K, V> {
    until: HashMap<K, (Time, V), FxBuildHasher>,
    /// Every key once, by the expiry that it had when it was put here.
    order: VecDeque<(Time, K)>,
}

/// Tables larger than this give memory back when they empty.
const KEEP: usize = 16;

impl<K: Copy + Eq + Hash, V: Copy> TimeWait<K, V> {
    pub(crate) const fn new() -> Self {
        Self { until: HashMap::with_hasher(FxBuildHasher), order: VecDeque::new() }
    }

    /// Remember `key` for `wait`; forget the oldest if there are more than `max`.
    pub(crate) fn insert(&mut self, now: Time, wait: Dur, max: u32, key: K, value: V) {
        self.expire(now);
        let until = now.saturating_add(wait);
        if self.until.insert(key, (until, value)).is_none() {
            self.order.push_back((until, key));
        }
        if self.order.len() > max as usize
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.until.remove(&oldest);
        }
    }

    /// How many keys are remembered; those that have expired since the last `get` included.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// What is remembered of `key`.
    pub(crate) fn get(&mut self, now: Time, key: &K) -> Option<V> {
        if self.order.is_empty() {
            return None;
        }
        self.expire(now);
        self.until.get(key).map(|(_, value)| *value)
    }

    /// Remember `key`, if it is remembered, for `wait` from now.
    pub(crate) fn refresh(&mut self, now: Time, wait: Dur, key: &K) {
        if let Some((until, _)) = self.until.get_mut(key) {
            *until = now.saturating_add(wait);
        }
    }

    /// `key` cannot come back: forget it.
    pub(crate) fn forget(&mut self, key: &K) {
        self.until.remove(key);
        while let Some((_, oldest)) = self.order.front()
            && !self.until.contains_key(oldest)
        {
            self.order.pop_front();
        }
        // One that stays keeps those behind it here, though they are forgotten.
        if self.order.len() > KEEP.max(2 * self.until.len()) {
            let until = &self.until;
            self.order.retain(|(_, key)| until.contains_key(key));
        }
    }

    /// Forget all but those that are to be kept.
    pub(crate) fn retain(&mut self, keep: impl Fn(&K) -> bool) {
        self.until.retain(|key, _| keep(key));
        self.order.retain(|(_, key)| keep(key));
    }

    fn expire(&mut self, now: Time) {
        while let Some(&(due, key)) = self.order.front() {
            if due > now {
                return;
            }
            self.order.pop_front();
            match self.until.get(&key) {
                Some(&(until, _)) if until > now => self.order.push_back((until, key)),
                _ => drop(self.until.remove(&key)),
            }
        }
        let held = self.order.len();
        if self.order.capacity() > KEEP && held < self.order.capacity() / 4 {
            // Not to what is held exactly: the next one would need memory again.
            self.order.shrink_to(KEEP.max(2 * held));
            self.until.shrink_to(KEEP.max(2 * held));
        }
    }
}

/// The longest life of a packet with which a message that is remembered for `time_wait` is not
/// taken for a new one; none if its sender alone goes on for longer. It does so for `asking`, from
/// one life after the message was over here, and its last packet comes another life later.
pub(crate) fn life_max(time_wait: Dur, asking: Dur) -> Option<Dur> {
    time_wait.0.checked_sub(asking.0).map(|spare| Dur(spare / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_expire_unless_refreshed_and_the_oldest_makes_room() {
        let ms = |n| Time::ZERO + Dur::from_ms(n);
        let wait = Dur::from_ms(10);
        let mut table = TimeWait::new();
        table.insert(ms(0), wait, 3, 'a', ());
        table.insert(ms(1), wait, 3, 'b', ());
        table.refresh(ms(9), wait, &'a');
        assert_eq!(table.get(ms(11), &'b'), None);
        assert_eq!(table.get(ms(18), &'a'), Some(()));
        assert_eq!(table.get(ms(19), &'a'), None);
        for key in ['c', 'd', 'e', 'f'] {
            table.insert(ms(20), wait, 3, key, ());
        }
        assert_eq!(table.get(ms(20), &'c'), None, "three places");
        assert_eq!(table.get(ms(20), &'f'), Some(()));
    }

    #[test]
    fn what_is_over_takes_no_room_even_behind_what_is_not() {
        let mut table = TimeWait::new();
        let (now, wait) = (Time(1), Dur::from_ms(10));
        table.insert(now, wait, u32::MAX, 0, ());
        for key in 1..10_000 {
            table.insert(now, wait, u32::MAX, key, ());
            table.forget(&key);
        }
        assert!(table.order.len() <= KEEP && table.order.capacity() <= 8 * KEEP);
        assert_eq!((table.until.len(), table.get(now, &0)), (1, Some(())));
        table.forget(&0);
        assert_eq!(table.len(), 0);
    }
}
