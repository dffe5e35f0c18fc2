//! Whether what a fabric does repeats: counts at the ends of windows, and their comparison
//! (docs/skip.md).
//!
//! Windows are compared at several lengths at once, each twice the one below: the teeth of a
//! window that is halved and grows repeat only at lengths that hold several of them.

use std::collections::VecDeque;
use std::sync::Arc;

use endpoint::Stat;
use units::{Dur, Rate, Time};

use crate::outcome::{Amount, LinkStats};
use crate::partition::Partition;
use crate::topology::HEIGHTS;

/// So many windows in a row must be alike.
const WINDOWS: usize = 3;
/// Lengths of windows: from the shortest to 2^7 times that.
const LENGTHS: usize = 8;

const MILLION: u128 = 1_000_000;

/// A share of what was counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) part: Dur,
    pub(crate) of: Dur,
}

impl Ratio {
    /// `count` times the share, rounded down.
    pub(crate) fn of(self, count: u64) -> u64 {
        (u128::from(count) * u128::from(self.part.0) / u128::from(self.of.0.max(1))) as u64
    }
}

/// Everything that results count beside messages, since the start.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    pub(crate) links: Vec<LinkStats>,
    /// Bytes that each host has received.
    pub(crate) received: Vec<u64>,
    /// Packets that hosts have sent, and those of them with payload.
    pub(crate) sent: Amount,
    pub(crate) data_sent: u64,
    pub(crate) faulted: u64,
    pub(crate) stats: [u64; Stat::COUNT],
    pub(crate) tier_bytes: [u64; HEIGHTS],
}

impl Totals {
    pub(crate) fn none(links: usize, hosts: usize) -> Self {
        Self {
            links: vec![LinkStats::default(); links],
            received: vec![0; hosts],
            sent: Amount::default(),
            data_sent: 0,
            faulted: 0,
            stats: [0; Stat::COUNT],
            tier_bytes: [0; HEIGHTS],
        }
    }

    /// Add what a partition has sent, lost to faults, and counted of its transports.
    pub(crate) fn add<const WATCHED: bool>(&mut self, part: &Partition<'_, WATCHED>) {
        let (sent, _, data) = part.hosts().traffic();
        self.sent.join(sent);
        self.data_sent += data;
        self.faulted += part.network().faulted();
        self.stats.iter_mut().zip(part.hosts().stats()).for_each(|(all, one)| *all += one);
    }

    /// Add what was counted from `from` to `to`, scaled by `share`.
    pub(crate) fn grow(&mut self, from: &Self, to: &Self, share: Ratio, in_window: bool) {
        for ((all, from), to) in self.links.iter_mut().zip(&from.links).zip(&to.links) {
            all.grow(from, to, share, in_window);
        }
        let grow = |all: &mut u64, from: u64, to: u64| *all += share.of(to.saturating_sub(from));
        let lists = [
            (&mut self.received[..], &from.received[..], &to.received[..]),
            (&mut self.stats[..], &from.stats[..], &to.stats[..]),
            (&mut self.tier_bytes[..], &from.tier_bytes[..], &to.tier_bytes[..]),
        ];
        for (all, from, to) in lists {
            for ((all, from), to) in all.iter_mut().zip(from).zip(to) {
                grow(all, *from, *to);
            }
        }
        grow(&mut self.sent.packets, from.sent.packets, to.sent.packets);
        grow(&mut self.sent.bytes, from.sent.bytes, to.sent.bytes);
        grow(&mut self.data_sent, from.data_sent, to.data_sent);
        grow(&mut self.faulted, from.faulted, to.faulted);
    }
}

/// What has been counted at the end of a window.
pub(crate) struct Mark {
    /// When, in simulated time.
    pub(crate) at: Time,
    /// Bytes placed, by unfinished message.
    pub(crate) placed: Vec<u64>,
    /// By link, the sum of what its queue held at all looks.
    pub(crate) queued: Vec<u64>,
    /// Looks so far.
    pub(crate) looks: u64,
    pub(crate) totals: Totals,
}

/// The marks since something last came or went.
#[derive(Default)]
pub(crate) struct History {
    /// Windows so far.
    windows: u64,
    /// By length, the latest marks at multiples of it, the newest last.
    marks: [VecDeque<Arc<Mark>>; LENGTHS],
}

impl History {
    /// Begin anew.
    pub(crate) fn clear(&mut self) {
        self.windows = 0;
        self.marks.iter_mut().for_each(VecDeque::clear);
    }

    /// Whether there is no mark yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.marks[0].is_empty()
    }

    /// A window is over, or the first one begins. The first and the last mark of windows that are
    /// alike, if some now are.
    pub(crate) fn push(
        &mut self,
        mark: Mark,
        tolerance: &Tolerance,
    ) -> Option<(Arc<Mark>, Arc<Mark>)> {
        let mark = Arc::new(mark);
        let is_first = self.is_empty();
        self.windows += u64::from(!is_first);
        let mut found = None;
        for (n, marks) in self.marks.iter_mut().enumerate() {
            if !self.windows.is_multiple_of(1 << n) {
                break;
            }
            if marks.len() > WINDOWS {
                marks.pop_front();
            }
            marks.push_back(Arc::clone(&mark));
            if found.is_none() && marks.len() > WINDOWS && tolerance.are_alike(marks) {
                found = Some((Arc::clone(&marks[0]), Arc::clone(&mark)));
            }
        }
        found
    }
}

/// How far windows that are alike may differ.
pub(crate) struct Tolerance {
    /// Millionths of the mean.
    pub(crate) ppm: u32,
    /// By link, what it carries.
    pub(crate) rates: Vec<Rate>,
}

impl Tolerance {
    /// Whether each message moved from `base` to `to` as fast as from `from` to `to`.
    pub(crate) fn go_on(&self, base: &Mark, from: &Mark, to: &Mark) -> bool {
        let (long, short) = (to.at.since(base.at), to.at.since(from.at));
        let share = Ratio { part: short, of: long };
        let since = |mark: &Mark, n: usize| to.placed[n].saturating_sub(mark.placed[n]);
        (0..to.placed.len())
            .all(|n| self.is_level([share.of(since(base, n)), since(from, n)].into_iter()))
    }

    /// Whether the windows between `marks` are alike: each message has moved, by as much in each,
    /// and each queue held as much.
    fn are_alike(&self, marks: &VecDeque<Arc<Mark>>) -> bool {
        let messages = marks[0].placed.len();
        let rates = (0..messages).all(|n| {
            let moved = windows(marks, |mark| mark.placed[n]);
            moved.clone().all(|bytes| bytes > 0) && self.is_level(moved)
        });
        rates && (0..marks[0].queued.len()).all(|link| self.queue_stays(marks, link))
    }

    /// Whether the mean of a queue stays: it changes by no more than the share of what its link
    /// can carry in a window.
    fn queue_stays(&self, marks: &VecDeque<Arc<Mark>>, link: usize) -> bool {
        let (first, second) = (&marks[0], &marks[1]);
        let looks = second.looks.saturating_sub(first.looks);
        let carries = self.rates[link].bytes_in(second.at.since(first.at)).0;
        let most = u128::from(carries) * u128::from(self.ppm) * u128::from(looks) / MILLION;
        let held = windows(marks, |mark| mark.queued[link]);
        let (least, greatest) = held.fold((u64::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
        u128::from(greatest.saturating_sub(least)) <= most
    }

    /// Whether the greatest and the least differ by no more than the share of the mean.
    pub(crate) fn is_level(&self, values: impl Iterator<Item = u64>) -> bool {
        let (mut least, mut most, mut sum, mut count) = (u64::MAX, 0, 0_u128, 0_u128);
        for value in values {
            (least, most) = (least.min(value), most.max(value));
            (sum, count) = (sum + u128::from(value), count + 1);
        }
        let spread = u128::from(most.saturating_sub(least));
        spread * MILLION * count <= sum * u128::from(self.ppm)
    }
}

/// What was counted in each of the windows between `marks`.
fn windows<'a>(
    marks: &'a VecDeque<Arc<Mark>>,
    count: impl Fn(&Mark) -> u64 + Clone + 'a,
) -> impl Iterator<Item = u64> + Clone + 'a {
    let ends = marks.iter().skip(1);
    let begins = marks.iter();
    ends.zip(begins).map(move |(end, begin)| count(end).saturating_sub(count(begin)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Tolerance = Tolerance { ppm: 50_000, rates: Vec::new() };

    fn mark(at: u64, placed: u64) -> Mark {
        let totals = Totals::none(0, 0);
        Mark { at: Time(at), placed: vec![placed], queued: Vec::new(), looks: 0, totals }
    }

    /// How many windows it takes until some are alike, and how many they are, where each moves as
    /// many bytes as `moves` says.
    fn settles(moves: impl Iterator<Item = u64>) -> Option<(u64, u64)> {
        let (mut history, mut placed) = (History::default(), 0);
        history.push(mark(0, 0), &TOLERANCE);
        for (n, bytes) in (1..).zip(moves) {
            placed += bytes;
            if let Some((first, last)) = history.push(mark(n, placed), &TOLERANCE) {
                return Some((n, last.at.0 - first.at.0));
            }
        }
        None
    }

    #[test]
    fn what_moves_evenly_is_found_after_three_windows() {
        assert_eq!(settles([1000, 990, 1010].into_iter()), Some((3, 3)));
        assert_eq!(settles([500, 1000, 990, 1010].into_iter()), Some((4, 3)));
    }

    #[test]
    fn what_grows_or_stands_still_is_not() {
        assert_eq!(settles((0..40).map(|n| 1000 << n)), None);
        assert_eq!(settles((0..200).map(|_| 0)), None);
    }

    /// A sawtooth of six windows is alike at lengths that hold several teeth: three windows of
    /// sixteen move 14 800, 15 200 and 15 600, those of thirty-two 30 000, 30 400 and 30 800.
    #[test]
    fn teeth_are_alike_in_longer_windows() {
        let (found, long) = settles((0..2000).map(|n| 700 + 100 * (n % 6))).unwrap();
        assert_eq!((found, long), (96, 96), "three windows of thirty-two");
    }
}
