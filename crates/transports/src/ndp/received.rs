//! Which packets of a message have been received.

use std::collections::VecDeque;

/// How far beyond the first gap a packet may be, in packets. It bounds the memory that a hole costs
/// at both ends: 128 KiB of bits here. A sender at 400 Gb/s with 1500 B packets reaches it 30 ms
/// after an unrepaired loss, many timeouts later.
pub(crate) const WINDOW_MAX: u64 = 1 << 20;

/// A set of packet indices that grows from zero: everything below `prefix`, and bits ahead of it.
#[derive(Debug, Default)]
pub(crate) struct Received {
    prefix: u64,
    /// Bits from `prefix & !63` on; empty while nothing is ahead of the prefix.
    ahead: VecDeque<u64>,
}

impl Received {
    /// The cumulative acknowledgement: the first index that is missing.
    pub(crate) fn prefix(&self) -> u64 {
        self.prefix
    }

    pub(crate) fn contains(&self, index: u64) -> bool {
        index < self.prefix
            || self
                .ahead
                .get((index / 64 - self.prefix / 64) as usize)
                .is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Add `index`, which must be below `prefix + WINDOW_MAX`. False if it was there.
    pub(crate) fn insert(&mut self, index: u64) -> bool {
        debug_assert!(index < self.prefix + WINDOW_MAX);
        if self.contains(index) {
            return false;
        }
        if index == self.prefix && self.ahead.is_empty() {
            self.prefix += 1;
            return true;
        }
        if self.ahead.is_empty() {
            self.ahead.push_back(below(self.prefix));
        }
        let word = (index / 64 - self.prefix / 64) as usize;
        while self.ahead.len() <= word {
            self.ahead.push_back(0);
        }
        self.ahead[word] |= 1 << (index % 64);
        if index == self.prefix {
            self.advance();
        }
        true
    }

    /// Move the prefix over the bits that have become contiguous.
    fn advance(&mut self) {
        while let Some(&word) = self.ahead.front() {
            self.prefix = (self.prefix & !63) + u64::from(word.trailing_ones());
            if word != u64::MAX {
                if self.ahead.len() == 1 && word == below(self.prefix) {
                    self.ahead.clear();
                }
                return;
            }
            self.ahead.pop_front();
        }
    }
}

/// The bits of the word of `prefix` that lie below it.
fn below(prefix: u64) -> u64 {
    (1 << (prefix % 64)) - 1
}

/// The packet index that `wire`, its low 32 bits, means near `expected`; `None` below zero.
pub(crate) fn unwrap_index(expected: u64, wire: u32) -> Option<u64> {
    let ahead = wire.wrapping_sub(expected as u32) as i32;
    expected.checked_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn indices_wrap_on_the_wire() {
        let high = (1 << 32) + 5;
        assert_eq!(unwrap_index(high, 7), Some(high + 2));
        assert_eq!(unwrap_index(high, u32::MAX), Some((1 << 32) - 1));
        assert_eq!(unwrap_index(3, u32::MAX), None);
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
            for step in steps {
                let new = model.insert(step);
                prop_assert_eq!(received.contains(step), !new);
                prop_assert_eq!(received.insert(step), new);
                let prefix = (0..).find(|i| !model.contains(i)).unwrap_or(0);
                prop_assert_eq!(received.prefix(), prefix);
                let ahead = model.range(prefix..).next().is_some();
                prop_assert_eq!(received.ahead.is_empty(), !ahead);
            }
        }
    }
}
