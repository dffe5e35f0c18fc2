//! Which packets of a message have been received.

use std::collections::VecDeque;

/// How far beyond the first gap a packet may be, in packets. It bounds the memory that a hole costs
/// at both ends: 128 KiB of bits here. A sender at 400 Gb/s with 1500 B packets reaches it 30 ms
/// after an unrepaired loss, many timeouts later.
pub(crate) const WINDOW_MAX: u64 = 1 << 20;

/// How far beyond the first gap, and beyond what was the furthest so far, any packet may be: so
/// that what it costs, 512 bytes of bits, is of the order of what came.
const NEAR: u64 = 4096;

/// A set of packet indices that grows from zero: everything below `prefix`, and bits ahead of it.
#[derive(Debug, Default)]
pub(crate) struct Received {
    prefix: u64,
    /// The bits from `prefix & !63` on: where nearly everything arrives.
    first: u64,
    /// The bits after those of `first`; empty while nothing is there.
    ahead: VecDeque<u64>,
}

impl Received {
    /// The cumulative acknowledgement: the first index that is missing.
    pub(crate) fn prefix(&self) -> u64 {
        self.prefix
    }

    /// Whether `index` may be inserted: it is below `prefix + WINDOW_MAX`, and not so far ahead of
    /// all that has come that one packet could claim all of that window.
    #[inline]
    pub(crate) fn admits(&self, index: u64) -> bool {
        index.wrapping_sub(self.prefix) < NEAR || self.admits_far(index)
    }

    #[cold]
    fn admits_far(&self, index: u64) -> bool {
        let held = (1 + self.ahead.len()) as u64;
        let words = (held + NEAR / 64).min(WINDOW_MAX / 64);
        index < (self.prefix & !63) + 64 * words
    }

    /// Whether nothing has been received.
    pub(crate) fn is_empty(&self) -> bool {
        self.prefix == 0 && self.first == 0 && self.ahead.is_empty()
    }

    pub(crate) fn contains(&self, index: u64) -> bool {
        index < self.prefix || self.word(index) >> (index % 64) & 1 == 1
    }

    /// The 64 bits that `index`, which is not below `prefix`, is one of.
    fn word(&self, index: u64) -> u64 {
        match index / 64 - self.prefix / 64 {
            0 => self.first,
            n => self.ahead.get(n as usize - 1).copied().unwrap_or(0),
        }
    }

    /// Bit n of the answer: whether `prefix + 1 + n` is there.
    pub(crate) fn behind(&self) -> u64 {
        self.bits_at(self.prefix + 1)
    }

    /// Bit n of the answer: whether `index + n` is there.
    pub(crate) fn bits_from(&self, index: u64) -> u64 {
        match self.prefix.saturating_sub(index) {
            0 => self.bits_at(index),
            below @ 1..64 => ((1 << below) - 1) | (self.bits_at(self.prefix) << below),
            _ => u64::MAX,
        }
    }

    /// The same of an index that is not below `prefix`.
    fn bits_at(&self, at: u64) -> u64 {
        let low = self.word(at) >> (at % 64);
        match at % 64 {
            0 => low,
            used => low | self.word(at + 63) << (64 - used),
        }
    }

    /// Add `index`, which must be below `prefix + WINDOW_MAX`; of a peer's packet also one that it
    /// [admits](Self::admits). False if it was there.
    pub(crate) fn insert(&mut self, index: u64) -> bool {
        debug_assert!(index < self.prefix + WINDOW_MAX);
        if index < self.prefix {
            return false;
        }
        let word = match index / 64 - self.prefix / 64 {
            0 => &mut self.first,
            n => grown(&mut self.ahead, n as usize - 1),
        };
        let bit = 1 << (index % 64);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        if index == self.prefix {
            self.advance();
        }
        true
    }

    /// Add everything below `index`.
    pub(crate) fn insert_below(&mut self, index: u64) {
        if index <= self.prefix {
            return;
        }
        if let Some(words) = (index / 64 - self.prefix / 64).checked_sub(1) {
            // At most what is there.
            self.ahead.drain(..words.min(self.ahead.len() as u64) as usize);
            self.first = self.ahead.pop_front().unwrap_or(0);
        }
        self.prefix = index;
        self.first |= (1 << (index % 64)) - 1;
        self.advance();
    }

    /// Move the prefix over the bits that have become contiguous.
    fn advance(&mut self) {
        while self.first == u64::MAX {
            self.prefix = (self.prefix & !63) + 64;
            self.first = self.ahead.pop_front().unwrap_or(0);
        }
        self.prefix = (self.prefix & !63) + u64::from(self.first.trailing_ones());
    }
}

/// Word `n` of `words`, after adding empty ones if it is beyond the end.
#[inline(never)]
fn grown(words: &mut VecDeque<u64>, n: usize) -> &mut u64 {
    if words.len() <= n {
        words.resize(n + 1, 0);
    }
    &mut words[n]
}

/// The packet index that `wire`, its low 32 bits, means near `expected`. One below zero comes out
/// as one near 2^64, beyond everything that can exist.
pub(crate) fn unwrap_index(expected: u64, wire: u32) -> u64 {
    let ahead = wire.wrapping_sub(expected as u32) as i32;
    expected.wrapping_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn indices_wrap_on_the_wire() {
        let high = (1 << 32) + 5;
        assert_eq!(unwrap_index(high, 7), high + 2);
        assert_eq!(unwrap_index(high, u32::MAX), (1 << 32) - 1);
        assert_eq!(unwrap_index(3, u32::MAX), u64::MAX);
    }

    /// A packet claims 512 bytes at most, whatever number it names.
    #[test]
    fn one_packet_cannot_claim_the_window() {
        let mut received = Received::default();
        assert!(received.admits(NEAR - 1) && !received.admits(WINDOW_MAX - 1));
        assert!(!received.admits(u64::MAX), "one below zero");
        let mut inserted = 0;
        for index in (0..2 * WINDOW_MAX).rev().step_by(64) {
            if received.admits(index) {
                received.insert(index);
                inserted += 1;
                assert!(received.ahead.len() as u64 <= inserted * NEAR / 64);
            }
        }
        for index in (0..WINDOW_MAX).step_by(NEAR as usize) {
            assert!(received.admits(index), "step by step all of it");
            received.insert(index);
        }
        assert!(received.admits(WINDOW_MAX - 64) && !received.admits(WINDOW_MAX + 64));
        assert!(received.admits(0), "what was there may come again");
    }

    proptest! {
        #[test]
        fn behaves_like_a_set(
            start in 0u64..200,
            steps in proptest::collection::vec(0u64..300, 0..400),
        ) {
            let mut received = Received::default();
            let mut model: BTreeSet<u64> = (0..start).collect();
            for i in 0..start {
                received.insert(i);
            }
            for (n, step) in steps.into_iter().enumerate() {
                if n % 20 == 19 {
                    received.insert_below(step / 2);
                    model.extend(0..step / 2);
                }
                let new = model.insert(step);
                prop_assert_eq!(received.contains(step), !new);
                prop_assert!(!new || !received.is_empty() || model.len() == 1);
                prop_assert_eq!(received.insert(step), new);
                let prefix = (0..).find(|i| !model.contains(i)).unwrap_or(0);
                prop_assert_eq!(received.prefix(), prefix);
                let behind = (0..64).filter(|n| received.behind() >> n & 1 == 1);
                let there = (0..64).filter(|n| model.contains(&(prefix + 1 + n)));
                prop_assert!(behind.eq(there));
                let ahead = model.range((prefix & !63) + 64..).next().is_some();
                prop_assert_eq!(received.ahead.is_empty(), !ahead);
            }
        }
    }
}
