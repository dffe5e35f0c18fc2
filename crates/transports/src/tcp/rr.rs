//! RR-TCP: how many duplicate acknowledgements mean loss, learnt from how far segments are
//! reordered (Zhang, Karp, Floyd and Peterson, "RR-TCP: A Reordering-Robust TCP with DSACK", ICNP
//! 2003).
//!
//! A histogram holds the latest reordering lengths: by how many segments others had overtaken one
//! that then came. The threshold is a percentile of it, the *FA ratio*: the share of false fast
//! retransmits that it avoids. A false one, which the receiver proves by reporting the duplicate,
//! moves that share up; waiting for a threshold that is too high, until the timer or with
//! nothing to send, moves it down, as much more as it costs more. While duplicate acknowledgements
//! come, each releases a new segment, up to one more window (extended limited transmit), so that
//! high thresholds can be reached.
//!
//! `tcp.deviations.toml` says which numbers are not the publication's.

use std::collections::VecDeque;
use std::ops::Range;

use units::{Dur, Time};

use super::rule::between;
use crate::config::{ConfigError, refuse, within};

/// The parameters of RR-TCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The FA ratio of a new connection, 0 to 1 (the publication's example: 0.9).
    pub fa_ratio: f64,
    /// By how much a false fast retransmit raises it, above 0 and at most 1. Ours: 0.01.
    pub step: f64,
    /// Reordering lengths that the histogram holds, at least 1. Ours: 1000.
    pub history: u32,
}

impl Params {
    /// What presets say.
    pub const PRESET: Self = Self { fa_ratio: 0.9, step: 0.01, history: 1_000 };

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("rr_fa_ratio", self.fa_ratio, 0.0..=1.0, "it must be from 0 to 1")?;
        let must = "it must be above 0 and at most 1";
        between("rr_step", self.step, 0.0, 1.0 + f64::EPSILON, must)?;
        if self.history == 0 {
            return refuse("rr_history", 0, "it must be at least 1");
        }
        Ok(())
    }
}

/// The least threshold, and that of a new connection (RFC 5681, section 3.2).
pub const LEAST: u32 = 3;
/// Lengths above this count as this.
const LENGTH_MAX: u32 = 1 << 14;
/// Fast retransmits remembered until their duplicates are reported.
const SUSPECTS: usize = 16;

/// What RR-TCP knows of one connection.
#[derive(Clone, Debug)]
pub(super) struct Rr {
    params: Params,
    fa_ratio: f64,
    /// The latest reordering lengths, oldest first, and how many there are of each.
    recent: VecDeque<u32>,
    counts: Vec<u32>,
    /// What the threshold is, but for the window.
    threshold: u32,
    /// What the last false fast retransmit cost, segments; zero if there was none.
    false_cost: f64,
    /// The scoreboard of fast retransmits that may be false.
    suspects: VecDeque<Suspect>,
}

/// A fast retransmit.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    /// The first position of its segment.
    at: u64,
    since: Time,
    /// By how many segments it reduced the window.
    reduction: f64,
    /// Segments beyond it that had come when it was acknowledged.
    length: u32,
}

impl Rr {
    pub(super) fn new(params: Params) -> Self {
        let (recent, counts, suspects) = (VecDeque::new(), Vec::new(), VecDeque::new());
        let fa_ratio = params.fa_ratio;
        Self { params, fa_ratio, recent, counts, threshold: LEAST, false_cost: 0.0, suspects }
    }

    /// Begin anew as another connection, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.recent.clear();
        self.counts.fill(0);
        self.suspects.clear();
        (self.fa_ratio, self.threshold, self.false_cost) = (self.params.fa_ratio, LEAST, 0.0);
    }

    /// The threshold under a window of `cwnd` segments: no higher than the duplicates that it and
    /// as many segments by extended limited transmit can cause.
    pub(super) fn threshold(&self, cwnd: f64) -> u32 {
        let most = ((2.0 * cwnd) as u32).saturating_sub(1);
        self.threshold.min(most).max(LEAST)
    }

    /// A segment that was sent once was acknowledged after `length` segments beyond it had come.
    pub(super) fn on_reordered(&mut self, length: u32) {
        let length = length.min(LENGTH_MAX);
        if self.recent.len() >= self.params.history as usize
            && let Some(oldest) = self.recent.pop_front()
        {
            self.counts[oldest as usize] -= 1;
        }
        self.recent.push_back(length);
        if self.counts.len() <= length as usize {
            self.counts.resize(length as usize + 1, 0);
        }
        self.counts[length as usize] += 1;
        self.update();
    }

    /// The segment at `at` is sent again by a fast retransmit, which reduces the window by
    /// `reduction`.
    pub(super) fn on_fast_retransmit(&mut self, now: Time, at: u64, reduction: f64) {
        if self.suspects.len() == SUSPECTS {
            self.suspects.pop_front();
        }
        self.suspects.push_back(Suspect { at, since: now, reduction, length: 0 });
    }

    /// The segment at `at`, which was sent again, was acknowledged after `length` segments beyond
    /// it had come.
    pub(super) fn on_repaired(&mut self, at: u64, length: u32) {
        if let Some(suspect) = self.suspects.iter_mut().rev().find(|suspect| suspect.at == at) {
            suspect.length = length;
        }
    }

    /// The receiver reports the duplicate `range`: if a fast retransmit sent it again, that was
    /// false, and cost what a reduced window did not send until now.
    pub(super) fn on_duplicate(&mut self, now: Time, range: &Range<u64>, srtt: Option<Dur>) {
        let Some(i) = self.suspects.iter().rposition(|suspect| range.contains(&suspect.at)) else {
            return;
        };
        if let Some(suspect) = self.suspects.remove(i) {
            self.false_cost = unsent(suspect.reduction, now.since(suspect.since), srtt).max(1.0);
            self.fa_ratio = (self.fa_ratio + self.params.step).min(1.0);
            self.on_reordered(suspect.length);
        }
    }

    /// More than the least threshold was waited for, needlessly, which cost so many segments not
    /// sent.
    pub(super) fn on_waited(&mut self, cost: f64) {
        let weight = if self.false_cost > 0.0 { cost / self.false_cost } else { 1.0 };
        self.fa_ratio = (self.fa_ratio - self.params.step * weight).max(0.0);
        self.update();
    }

    /// The threshold is one above the least length that the share `fa_ratio` of all does not
    /// exceed.
    fn update(&mut self) {
        let wanted = self.fa_ratio * self.recent.len() as f64;
        let mut seen = 0;
        let within = |&count: &u32| {
            seen += count;
            f64::from(seen) >= wanted
        };
        let length = self.counts.iter().position(within).unwrap_or(self.counts.len());
        self.threshold = (length as u32 + 1).max(LEAST);
    }

    #[cfg(test)]
    pub(super) fn fa_ratio(&self) -> f64 {
        self.fa_ratio
    }
}

/// Segments that a window of `window` would have sent in the time `silent`.
pub(super) fn unsent(window: f64, silent: Dur, srtt: Option<Dur>) -> f64 {
    srtt.map_or(window, |srtt| window * (silent.0 as f64 / srtt.0.max(1) as f64))
}

/// Segments that slow start from one segment sends less than half of `window` in each round trip
/// until it is there: what a timeout costs more than a fast retransmit, beside the silence before
/// it.
pub(super) fn slow_start(window: f64) -> f64 {
    let half = window / 2.0;
    let rounds = std::iter::successors(Some(1.0), |sent| Some(sent * 2.0));
    rounds.take_while(|&sent| sent < half).map(|sent| half - sent).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: f64 = 1_000.0;

    fn rr(fa_ratio: f64) -> Rr {
        Rr::new(Params { fa_ratio, history: 10, ..Params::PRESET })
    }

    /// The publication's example: if nine of ten lengths are at most 8, a threshold of 9 avoids 90
    /// %.
    #[test]
    fn the_threshold_is_a_percentile_of_the_lengths() {
        let mut rr = rr(0.9);
        assert_eq!(rr.threshold(WIDE), 3);
        for length in [4, 5, 8, 8, 1, 2, 3, 8, 6, 40] {
            rr.on_reordered(length);
        }
        assert_eq!(rr.threshold(WIDE), 9);
        assert_eq!(rr.threshold(3.5), 6, "seven may be in flight, the first of them missing");
        for _ in 0..9 {
            rr.on_reordered(1);
        }
        assert_eq!(rr.threshold(WIDE), 3, "ten are remembered, and 40 is one of them");
        rr.on_reordered(1);
        assert_eq!(rr.counts.iter().sum::<u32>(), 10);
    }

    /// A false fast retransmit that halves a window of 20 for two round trips costs 20 segments;
    /// silence of a timeout, 50 round trips, 1000, and slow start 1, 2, 4, 8 where 10 could go: 25
    /// more.
    #[test]
    fn costs_move_the_ratio() {
        let srtt = Some(Dur::from_us(100));
        let mut rr = rr(0.9);
        rr.on_fast_retransmit(Time::ZERO, 7_000, 10.0);
        rr.on_repaired(7_000, 5);
        rr.on_duplicate(Time::ZERO + Dur::from_us(200), &(6_000..7_000), srtt);
        assert_eq!((rr.fa_ratio(), rr.threshold(WIDE)), (0.9, 3), "another segment");
        rr.on_duplicate(Time::ZERO + Dur::from_us(200), &(7_000..8_000), srtt);
        assert_eq!((rr.fa_ratio(), rr.threshold(WIDE)), (0.91, 6));
        rr.on_duplicate(Time::ZERO + Dur::from_us(300), &(7_000..8_000), srtt);
        assert_eq!(rr.fa_ratio(), 0.91, "once");
        let cost = unsent(20.0, Dur::from_ms(5), srtt) + slow_start(20.0);
        assert_eq!(cost, 1_025.0);
        rr.on_waited(cost);
        assert!((rr.fa_ratio() - (0.91 - 0.01 * 1_025.0 / 20.0)).abs() < 1e-12);
        rr.on_waited(cost);
        assert_eq!((rr.fa_ratio(), rr.threshold(WIDE)), (0.0, 3));
    }
}
