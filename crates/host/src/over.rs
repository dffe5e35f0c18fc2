//! Which messages of a peer are over, in memory that does not grow.

use std::collections::VecDeque;

/// Ids that are told apart behind the newest one, a power of two of words: 128 KB a peer at most.
const WINDOW: u64 = 1 << 20;
const WORD: u64 = 64;

/// The ids of one peer's messages that were delivered or given up. Ids are a counter that never
/// goes back, so what lies [`WINDOW`] behind the newest counts as over. Another life of the peer
/// begins far ahead ([`crate::Config::incarnation`]), which ends all messages of the one before.
#[derive(Debug, Default)]
pub(crate) struct Over {
    /// All ids below it are over: a multiple of [`WORD`].
    base: u64,
    /// A bit for each id from `base` on.
    bits: VecDeque<u64>,
}

impl Over {
    /// Whether message `id` is over.
    pub(crate) fn contains(&self, id: u64) -> bool {
        let Some(ahead) = id.checked_sub(self.base) else { return true };
        let word = usize::try_from(ahead / WORD).ok().and_then(|n| self.bits.get(n));
        word.is_some_and(|word| word >> (id % WORD) & 1 == 1)
    }

    /// Message `id` is over.
    pub(crate) fn insert(&mut self, id: u64) {
        if self.contains(id) {
            return;
        }
        let word = id / WORD * WORD;
        self.rise_to(word.saturating_sub(WINDOW - WORD));
        // `contains` has checked that it is not below.
        let n = ((word - self.base) / WORD) as usize;
        if self.bits.len() <= n {
            self.bits.resize(n + 1, 0);
        }
        self.bits[n] |= 1 << (id % WORD);
        while self.bits.front() == Some(&u64::MAX)
            && let Some(base) = self.base.checked_add(WORD)
        {
            self.rise_to(base);
        }
    }

    /// Everything below `base` is over.
    fn rise_to(&mut self, base: u64) {
        let words = base.saturating_sub(self.base) / WORD;
        self.bits.drain(..self.bits.len().min(usize::try_from(words).unwrap_or(usize::MAX)));
        self.base = self.base.max(base);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use endpoint::{Draw, Purpose};

    /// Beside a set of all that were put in.
    #[test]
    fn it_is_the_set_of_what_is_over_within_the_window() {
        let draw = Draw::new(1, Purpose::new("over"), 0);
        let (mut over, mut all) = (Over::default(), BTreeSet::new());
        for n in 0..20_000 {
            let id = n / 2 + draw.below(Purpose::new("id"), n, 500);
            assert_eq!(over.contains(id), all.contains(&id), "{id}");
            over.insert(id);
            all.insert(id);
        }
        assert!((0..12_000).all(|id| over.contains(id) == all.contains(&id)));
    }

    #[test]
    fn ten_million_messages_of_which_others_get_each_second_one_take_no_more_than_the_window() {
        let mut over = Over::default();
        (0..10_000_000).step_by(2).for_each(|id| over.insert(id));
        assert!(over.bits.capacity() as u64 <= 2 * WINDOW / WORD, "{}", over.bits.capacity());
        assert!(over.contains(9_999_998) && !over.contains(9_999_999) && over.contains(1));
        let mut whole = Over::default();
        (0..1_000_000).for_each(|id| whole.insert(id));
        assert!(whole.bits.len() <= 1, "without gaps nothing is kept");
    }

    #[test]
    fn a_life_far_ahead_ends_the_one_before_and_the_largest_ids_fit() {
        let mut over = Over::default();
        over.insert(5);
        for id in [1 << 60].into_iter().chain(u64::MAX - 200..=u64::MAX) {
            assert!(!over.contains(id));
            over.insert(id);
            assert!(over.contains(id));
            assert!(over.contains(7) && over.bits.len() as u64 <= WINDOW / WORD);
        }
    }
}
