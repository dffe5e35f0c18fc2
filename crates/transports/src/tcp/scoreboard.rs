//! What SACK blocks say about the data in flight (RFC 6675, sections 3 and 4), in stream positions.
//!
//! Cost: a few ranges from the top for what is lost, and one step per hole below the highest
//! retransmission for what is in flight.

use std::ops::Range;

use endpoint::RangeSet;

/// The scoreboard of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    /// Positions that the receiver has: all below the cumulative acknowledgement, and those in
    /// SACK blocks.
    held: RangeSet,
    /// HighRxt: the first position after the highest one retransmitted in this recovery.
    high_rxt: u64,
    /// A rescue retransmission was sent in this recovery.
    rescued: bool,
}

impl Scoreboard {
    /// Begin anew, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        (self.high_rxt, self.rescued) = (0, false);
    }

    /// The receiver has `range`. Returns how much of it is news.
    pub(super) fn add(&mut self, range: Range<u64>) -> u64 {
        self.held.insert(range)
    }

    /// A recovery, or what follows a timeout, begins: nothing has been retransmitted.
    pub(super) fn forget_retransmissions(&mut self) {
        (self.high_rxt, self.rescued) = (0, false);
    }

    /// Everything below `end` that was to be retransmitted has been.
    pub(super) fn retransmitted(&mut self, end: u64) {
        self.high_rxt = self.high_rxt.max(end);
    }

    /// The rescue retransmission of this recovery was sent.
    pub(super) fn rescue_sent(&mut self) {
        self.rescued = true;
    }

    /// IsLost: every position below this that is not held is lost, since `dup_threshold` separate
    /// ranges above it are held, or more than `dup_threshold - 1` segments of `mss` bytes. With it
    /// the bytes held from there on.
    fn lost_below(&self, una: u64, mss: u64, dup_threshold: u32) -> (u64, u64) {
        let (mut ranges, mut bytes) = (0, 0);
        for range in self.held.iter().rev().take_while(|range| range.start >= una.max(1)) {
            ranges += 1;
            bytes += range.end - range.start;
            if ranges >= dup_threshold || bytes > u64::from(dup_threshold - 1) * mss {
                return (range.start, bytes);
            }
        }
        (una, bytes)
    }

    /// Whether the first position not acknowledged is lost.
    pub(super) fn first_is_lost(&self, una: u64, mss: u64, dup_threshold: u32) -> bool {
        self.lost_below(una, mss, dup_threshold).0 > una
    }

    /// pipe: bytes thought to be in flight below `max` (RFC 6675, SetPipe).
    pub(super) fn pipe(&self, una: u64, max: u64, mss: u64, dup_threshold: u32) -> u64 {
        let (lost_below, held_above) = self.lost_below(una, mss, dup_threshold);
        let not_lost = (max - lost_below).saturating_sub(held_above);
        not_lost + self.missing(una..self.high_rxt)
    }

    /// Bytes that the receiver has beyond `una`, which it has not.
    pub(super) fn held_above(&self, una: u64) -> u64 {
        let above = self.held.iter().rev().take_while(|range| range.start >= una.max(1));
        above.map(|range| range.end - range.start).sum()
    }

    /// Bytes of `range` that the receiver does not have.
    pub(super) fn missing(&self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        self.held.gaps(range).map(|gap| gap.end - gap.start).sum()
    }

    /// The first position from `at` on that the receiver does not have.
    pub(super) fn next_missing(&self, at: u64) -> u64 {
        self.held.gaps(at..u64::MAX).next().map_or(at, |gap| gap.start)
    }

    /// The lowest position that is missing, has not been retransmitted, and lies below something
    /// held (NextSeg, rules 1 and 3). With it, whether it is lost.
    pub(super) fn next_hole(&self, una: u64, mss: u64, dup_threshold: u32) -> Option<(u64, bool)> {
        let top = self.held.iter().next_back()?.end;
        let from = self.high_rxt.max(una);
        let hole = self.next_missing(from);
        let lost = hole < self.lost_below(una, mss, dup_threshold).0;
        (hole < top).then_some((hole, lost))
    }

    /// The last position below `max` that is missing, if no rescue has been sent in this recovery
    /// (NextSeg, rule 4).
    pub(super) fn rescue(&self, una: u64, max: u64) -> Option<u64> {
        let last = self.held.gaps(una..max).last().filter(|_| !self.rescued)?;
        Some(last.end - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn board(held: &[(u64, u64)]) -> Scoreboard {
        let mut board = Scoreboard::default();
        for &(start, end) in held {
            board.add(start * MSS..end * MSS);
        }
        board
    }

    /// RFC 6675, section 4, IsLost: three ranges above, or more than two segments.
    #[test]
    fn three_ranges_or_more_than_two_segments_mean_loss() {
        let lost = |held: &[(u64, u64)]| board(held).lost_below(0, MSS, 3).0 / MSS;
        assert_eq!(lost(&[(1, 3)]), 0, "two segments");
        assert_eq!(lost(&[(1, 4)]), 1, "three in one range");
        assert_eq!(lost(&[(1, 2), (3, 4)]), 0);
        assert_eq!(lost(&[(1, 2), (3, 4), (5, 6)]), 1, "three ranges");
        assert_eq!(lost(&[(1, 2), (3, 4), (5, 9)]), 5);
    }

    /// RFC 6675, section 4, SetPipe, against the definition, position by position.
    #[test]
    fn pipe_is_what_the_definition_counts() {
        let una = 2;
        let max = 20;
        for held in [
            vec![],
            vec![(4, 5)],
            vec![(4, 5), (7, 9)],
            vec![(3, 4), (6, 7), (9, 10), (12, 18)],
            vec![(5, 12)],
        ] {
            for high_rxt in [0, 3, 6, 11] {
                let mut b = board(&[&[(0, una)], &held[..]].concat());
                b.retransmitted(high_rxt * MSS);
                let lost = b.lost_below(una * MSS, MSS, 3).0 / MSS;
                let missing = (una..max).filter(|s| !held.iter().any(|&(l, r)| (l..r).contains(s)));
                let want: u64 =
                    missing.map(|s| u64::from(s >= lost) + u64::from(s < high_rxt)).sum();
                assert_eq!(b.pipe(una * MSS, max * MSS, MSS, 3), want * MSS, "{held:?} {high_rxt}");
            }
        }
    }

    #[test]
    fn holes_come_lowest_first_and_once() {
        let mut b = board(&[(0, 2), (3, 4), (6, 9)]);
        assert_eq!(b.next_hole(2 * MSS, MSS, 3), Some((2 * MSS, true)));
        b.retransmitted(3 * MSS);
        assert_eq!(b.next_hole(2 * MSS, MSS, 3), Some((4 * MSS, true)));
        b.retransmitted(6 * MSS);
        assert_eq!(b.next_hole(2 * MSS, MSS, 3), None);
        assert_eq!(b.rescue(2 * MSS, 12 * MSS), Some(12 * MSS - 1));
        b.rescue_sent();
        assert_eq!(b.rescue(2 * MSS, 12 * MSS), None);
    }
}
