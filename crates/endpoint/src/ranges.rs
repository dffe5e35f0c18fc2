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
        match self.0.last_mut() {
            _ if range.is_empty() => 0,
            // In order: the usual case.
            Some(last) if last.end == range.start => {
                last.end = range.end;
                range.end - range.start
            }
            Some(last) if last.end > range.start => self.insert_among(range),
            _ => self.append(range),
        }
    }

    /// Add a range beyond all others.
    fn append(&mut self, range: Range<u64>) -> u64 {
        let new = range.end - range.start;
        self.0.push(range);
        new
    }

    /// Add a range that is not empty and begins below the end of the last one.
    #[inline(never)]
    fn insert_among(&mut self, range: Range<u64>) -> u64 {
        // The ranges before `next` begin at or below the new one.
        let next = self.place_of(range.start);
        let end_before = if next > 0 { self.0[next - 1].end } else { 0 };
        let start_after = self.0.get(next).map_or(u64::MAX, |after| after.start);
        if end_before > range.start || start_after < range.end {
            return self.insert_overlapping(range);
        }
        let new = range.end - range.start;
        let joins_before = next > 0 && end_before == range.start;
        let joins_after = next < self.0.len() && start_after == range.end;
        match (joins_before, joins_after) {
            (true, false) => self.0[next - 1].end = range.end,
            (false, true) => self.0[next].start = range.start,
            (true, true) => self.0[next - 1].end = self.0.remove(next).end,
            (false, false) => self.0.insert(next, range),
        }
        new
    }

    /// How many ranges begin at or below `start`. What arrives is nearly in order, so the answer
    /// is mostly near the end.
    #[inline]
    fn place_of(&self, start: u64) -> usize {
        const NEAR: usize = 8;
        let near = self.0.len().saturating_sub(NEAR);
        for next in (near..self.0.len()).rev() {
            if self.0[next].start <= start {
                return next + 1;
            }
        }
        self.0[..near].partition_point(|r| r.start <= start)
    }

    #[cold]
    fn insert_overlapping(&mut self, range: Range<u64>) -> u64 {
        // The ranges first..last touch or overlap the new one.
        let first = self.0.partition_point(|r| r.end < range.start);
        let last = first + self.0[first..].partition_point(|r| r.start <= range.end);
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

    /// The range that `at` is in, if it is in the set. Neighbours that touch are one range.
    #[must_use]
    pub fn range_of(&self, at: u64) -> Option<Range<u64>> {
        let i = self.0.partition_point(|r| r.end <= at);
        self.0.get(i).filter(|r| r.start <= at).cloned()
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
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> {
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Draw, Purpose};

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
        assert_eq!((set.range_of(40), set.range_of(39)), (None, Some(0..40)));
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

    /// Against a set of single numbers, in orders from nearly sorted to random, with repetitions
    /// and more fragments than `place_of` looks at one by one.
    #[test]
    fn behaves_like_a_set_of_numbers() {
        const WHERE: Purpose = Purpose::new("where");
        const LENGTH: Purpose = Purpose::new("length");
        for disorder in [1, 4, 30, 600] {
            let draw = Draw::new(disorder, WHERE, 0);
            let (mut set, mut model) = (RangeSet::new(), BTreeSet::new());
            let mut most = 0;
            for n in 0..300 {
                let start = n + draw.below(WHERE, n, disorder);
                let end = start + draw.below(LENGTH, n, 4);
                let new = (start..end).filter(|&at| model.insert(at)).count() as u64;
                assert_eq!(set.insert(start..end), new);
                assert!(set.0.windows(2).all(|w| w[0].end < w[1].start), "sorted and apart");
                assert!(set.iter().cloned().flatten().eq(model.iter().copied()));
                most = most.max(set.fragments());
            }
            assert!(disorder < 600 || most > 20, "{most}");
        }
    }
}
