//! The pull queue and its pacer, shared by all messages that a host receives
//! (specs/ndp.md#7.3,7.4).
//!
//! Queued pulls of one message have consecutive numbers that end at its newest one, so the queue
//! keeps only their count, in the message's state, and a place for the message in the order of
//! service.

use std::collections::VecDeque;

use units::{Dur, Time};

use crate::slab::{Slab, SlotRef};

/// What the pull queue keeps in each message's state.
#[derive(Debug, Default)]
pub(crate) struct PullState {
    /// Pulls generated so far, modulo 2^32: the number of the newest one.
    pub(crate) newest: u32,
    /// How many of them wait in the queue.
    queued: u32,
    /// Whether the message has a place in the order of service.
    placed: bool,
}

/// Whether a requested pull leaves at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requested {
    /// Set the PULL bit on the answer that is about to be sent.
    Combine,
    /// It waits; the pacer's timer must be armed for this instant.
    Arm(Time),
    /// It waits; the timer is armed.
    Queued,
}

/// The queue and the pacer.
#[derive(Debug)]
pub(crate) struct PullQueue {
    /// Messages with queued pulls, by level; a lower key is served first. Few, sorted, never
    /// removed.
    levels: Vec<(u16, VecDeque<SlotRef>)>,
    /// Queued pulls of all messages.
    queued: u64,
    /// When the next pull may leave: one interval after the last one.
    free_at: Time,
}

impl PullQueue {
    pub(crate) const fn new() -> Self {
        Self { levels: Vec::new(), queued: 0, free_at: Time::ZERO }
    }

    /// Have the head of the queue at hand.
    pub(crate) fn prefetch(&self) {
        if let Some((_, ring)) = self.levels.first()
            && let Some(at) = ring.front()
        {
            endpoint::prefetch::item(at);
        }
    }

    /// A message at `level` has generated its pull `state.newest`.
    pub(crate) fn request(
        &mut self,
        now: Time,
        interval: Dur,
        at: SlotRef,
        level: u16,
        state: &mut PullState,
    ) -> Requested {
        if self.queued == 0 && self.free_at <= now {
            self.free_at = now.saturating_add(interval);
            return Requested::Combine;
        }
        self.queued += 1;
        state.queued += 1;
        if !state.placed {
            state.placed = true;
            self.level(level).push_back(at);
        }
        if self.queued == 1 { Requested::Arm(self.free_at) } else { Requested::Queued }
    }

    /// The timer has fired: the message to pull and its pull number; the gap to the next pull
    /// counts from `from`. Nothing if all that waited has been purged.
    pub(crate) fn fire<T: AsMut<PullState>>(
        &mut self,
        from: Time,
        interval: Dur,
        messages: &mut Slab<T>,
    ) -> Option<(SlotRef, u32)> {
        for (_, ring) in &mut self.levels {
            while let Some(at) = ring.pop_front() {
                let Some(pulls) = messages.get_mut(at).map(AsMut::as_mut) else { continue };
                if pulls.queued == 0 {
                    pulls.placed = false;
                    continue;
                }
                let number = pulls.newest.wrapping_sub(pulls.queued - 1);
                pulls.queued -= 1;
                self.queued -= 1;
                pulls.placed = pulls.queued > 0;
                if pulls.placed {
                    ring.push_back(at);
                }
                self.free_at = from.saturating_add(interval);
                return Some((at, number));
            }
        }
        None
    }

    /// When the next pull may leave.
    pub(crate) fn due(&self) -> Time {
        self.free_at
    }

    /// When the timer must fire after `fire`: `None` if nothing waits.
    pub(crate) fn next(&self) -> Option<Time> {
        (self.queued > 0).then_some(self.free_at)
    }

    /// Forget the queued pulls of a message. Its place is given up when it is next reached.
    pub(crate) fn purge(&mut self, state: &mut PullState) {
        self.queued -= u64::from(state.queued);
        state.queued = 0;
    }

    fn level(&mut self, key: u16) -> &mut VecDeque<SlotRef> {
        let i = match self.levels.iter().position(|(k, _)| *k == key) {
            Some(i) => i,
            None => self.add_level(key),
        };
        &mut self.levels[i].1
    }

    #[cold]
    fn add_level(&mut self, key: u16) -> usize {
        let i = self.levels.partition_point(|(k, _)| *k < key);
        self.levels.insert(i, (key, VecDeque::new()));
        i
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Dur = Dur::from_us(7);

    impl AsMut<PullState> for PullState {
        fn as_mut(&mut self) -> &mut PullState {
            self
        }
    }

    /// A queue with messages at the given levels.
    struct Bench {
        queue: PullQueue,
        messages: Slab<PullState>,
        at: Vec<(SlotRef, u16)>,
    }

    impl Bench {
        fn new(levels: &[u16]) -> Self {
            let mut messages = Slab::new();
            let at = levels.iter().map(|&l| (messages.insert(PullState::default()), l)).collect();
            Self { queue: PullQueue::new(), messages, at }
        }

        fn request(&mut self, now: Time, message: usize) -> Requested {
            let (at, level) = self.at[message];
            let state = self.messages.get_mut(at).unwrap();
            state.newest += 1;
            self.queue.request(now, T, at, level, state)
        }

        /// Which message is pulled with which number, until nothing waits.
        fn drain(&mut self) -> Vec<(usize, u32)> {
            std::iter::from_fn(|| self.queue.fire(Time::ZERO, T, &mut self.messages))
                .map(|(at, n)| (self.at.iter().position(|(a, _)| *a == at).unwrap(), n))
                .collect()
        }
    }

    /// The table of specs/ndp.md#7.3, row by row.
    #[test]
    fn the_first_pull_is_combined_and_later_ones_keep_their_distance() {
        let us = |n| Time::ZERO + Dur::from_us(n);
        let mut b = Bench::new(&[1]);
        assert_eq!(b.request(us(100), 0), Requested::Combine);
        assert_eq!(b.request(us(103), 0), Requested::Arm(us(107)));
        assert_eq!(b.request(us(104), 0), Requested::Queued);
        assert_eq!(b.queue.fire(us(107), T, &mut b.messages), Some((b.at[0].0, 2)));
        assert_eq!(b.queue.next(), Some(us(114)));
        assert_eq!(b.queue.fire(us(114), T, &mut b.messages), Some((b.at[0].0, 3)));
        assert_eq!(b.queue.next(), None);
        assert_eq!(b.request(us(121), 0), Requested::Combine, "T has passed");
    }

    #[test]
    fn fair_is_round_robin_over_messages() {
        let mut b = Bench::new(&[1, 1, 1]);
        b.request(Time::ZERO, 0);
        for message in [0, 0, 0, 1, 2, 2] {
            b.request(Time::ZERO, message);
        }
        assert_eq!(b.drain(), [(0, 2), (1, 1), (2, 1), (0, 3), (2, 2), (0, 4)]);
    }

    #[test]
    fn levels_are_strict() {
        let mut b = Bench::new(&[9, 3, 9, 0]);
        b.request(Time::ZERO, 0);
        for message in [0, 0, 2, 1, 1, 3] {
            b.request(Time::ZERO, message);
        }
        assert_eq!(b.drain(), [(3, 1), (1, 1), (1, 2), (0, 2), (2, 1), (0, 3)]);
    }

    #[test]
    fn a_purged_message_is_not_pulled_and_the_next_moves_up() {
        let mut b = Bench::new(&[1, 1]);
        b.request(Time::ZERO, 0);
        for message in [0, 0, 1] {
            b.request(Time::ZERO, message);
        }
        let (gone, _) = b.at[0];
        b.queue.purge(b.messages.get_mut(gone).unwrap());
        b.messages.remove(gone);
        assert_eq!(b.drain(), [(1, 1)]);
        assert_eq!(b.queue.queued, 0);
        assert!(b.queue.levels[0].1.is_empty(), "no place is left behind");
    }
}
