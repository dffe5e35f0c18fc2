//! Sets of byte ranges, for reassembly and for checking it.

use std::ops::Range;

/// A set of `u64`s kept as sorted, disjoint, non-touching ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet(Vec<Range<u64>>);

impl RangeSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Add `range`. Returns how many of its members were new; `range.len()` says "all of them".
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        // The ranges first..last touch or overlap the new one. Mostly there are none or one, at
        // the end.
        let first = self.0.partition_point(|r| r.end < range.start);
        let last = first + self.0[first..].partition_point(|r| r.start <= range.end);
        if first == last {
            let new = range.end - range.start;
            self.0.insert(first, range);
            return new;
        }
        let old: u64 = self.0[first..last].iter().map(|r| r.end - r.start).sum();
        let merged = self.0[first].start.min(range.start)..self.0[last - 1].end.max(range.end);
        let new = merged.end - merged.start - old;
        self.0[first] = merged;
        self.0.drain(first + 1..last);
        new
    }

    /// The parts of `range` that are not in the set, lowest first.
    pub fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<'_> {
        let first = self.0.partition_point(|r| r.end <= range.start);
        let inside = self.0[first..].iter().cloned().take_while(move |r| r.start < range.end);
        let mut at = range.start;
        inside.chain(std::iter::once(range.end..range.end)).filter_map(move |r| {
            let gap = at..r.start;
            at = r.end;
            (!gap.is_empty()).then_some(gap)
        })
    }

    /// Whether `at` is in the set.
    #[must_use]
    pub fn contains(&self, at: u64) -> bool {
        let i = self.0.partition_point(|r| r.end <= at);
        self.0.get(i).is_some_and(|r| r.start <= at)
    }

    /// The end of the range that begins at zero: everything below it is in the set.
    #[must_use]
    pub fn prefix(&self) -> u64 {
        self.0.first().filter(|r| r.start == 0).map_or(0, |r| r.end)
    }

    /// The ranges, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = &Range<u64>> {
        self.0.iter()
    }

    /// How many separate ranges there are.
    #[must_use]
    pub fn fragments(&self) -> usize {
        self.0.len()
    }

    /// Forget everything, keep the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_and_counts_what_is_new() {
        let mut set = RangeSet::new();
        assert_eq!(set.insert(10..20), 10);
        assert_eq!(set.insert(30..40), 10);
        assert_eq!(set.prefix(), 0);
        assert_eq!(set.insert(15..35), 10, "the gap only");
        assert_eq!(set.fragments(), 1);
        assert_eq!(set.insert(0..10), 10, "touching ranges join");
        assert_eq!((set.prefix(), set.fragments()), (40, 1));
        assert_eq!(set.insert(5..25), 0);
        assert!(set.contains(0) && set.contains(39) && !set.contains(40));
    }

    #[test]
    fn gaps_are_what_an_insertion_adds() {
        let mut set = RangeSet::new();
        set.insert(10..20);
        set.insert(30..40);
        let gaps = |range| set.gaps(range).map(|gap| (gap.start, gap.end)).collect::<Vec<_>>();
        assert_eq!(gaps(0..50), [(0, 10), (20, 30), (40, 50)]);
        assert_eq!(gaps(15..35), [(20, 30)]);
        assert_eq!(gaps(20..30), [(20, 30)]);
        assert_eq!(gaps(12..18), []);
        assert_eq!(gaps(35..41), [(40, 41)]);
    }
}
