//! Which buffers a NIC should have: size classes and how many of each, from a distribution of
//! message sizes (`trimline nic size`; specs/nanotransport.md#5.1,15.3).
//!
//! A message takes the smallest class that is large enough and has a buffer free ([`Buffers`]), so
//! a larger buffer helps a smaller message and not the other way round. Of n messages at once, let
//! S(t) be those larger than t bytes and B(t) the buffers larger than t. Then
//!
//! > refused = max(0, max over t of S(t) - B(t)),
//!
//! in whatever order they come: each class hands what it cannot hold to the next, which is
//! Lindley's recursion, and the right-hand side is its solution (D. V. Lindley, The theory of
//! queues with a single server, 1952). S(t) is binomial. So what is needed is B(t) alone, a number
//! for each size, and the memory of classes is a sum over neighbouring pairs of sizes: dynamic
//! programming finds the least.
//!
//! [`Buffers`]: super::buffers::Buffers

mod binomial;

use std::collections::BTreeMap;

use binomial::{binomial, enough};

use super::buffers::{SizeClass, WORD, words};

/// The most messages at once: ids have 12 bits here ([`Config`](super::config::Config)).
pub const AT_ONCE_MAX: u32 = 4096;

/// A memory that is reached by the 16 bits of a buffer pointer, in bytes.
pub const MEMORY_MAX: u64 = (1 << 16) * WORD as u64;

/// Messages of sizes that need equally many words of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// Whole words that hold the largest of them, bytes.
    bytes: u32,
    /// Their share of the messages.
    share: f64,
    /// Their sizes, weighted with their shares: bytes.
    used: f64,
}

/// How long messages are: those that fit into a buffer at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Ascending.
    steps: Vec<Step>,
    too_long: f64,
}

/// What a size class is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// The share of messages for which it is the smallest class that is large enough.
    pub share: f64,
    /// Bytes of these messages, for one message of any size on average.
    pub used: f64,
    /// Bytes of their buffers, likewise.
    pub allocated: f64,
}

impl Usage {
    /// Bytes of messages by bytes of their buffers; zero if there are none.
    #[must_use]
    pub fn utilisation(self) -> f64 {
        if self.allocated > 0.0 { self.used / self.allocated } else { 0.0 }
    }

    /// That of two kinds of messages together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            share: self.share + other.share,
            used: self.used + other.used,
            allocated: self.allocated + other.allocated,
        }
    }
}

impl Demand {
    /// Sizes in bytes, ascending, each with its share of the messages; `longest` is that of the
    /// longest message that the NIC is to take, which the largest class holds if there are longer
    /// ones. `None` if no message is that short.
    #[must_use]
    pub fn new(sizes: &[(u64, f64)], longest: u32) -> Option<Self> {
        let fits = |&&(size, _): &&(u64, f64)| size <= u64::from(longest);
        let all: f64 = sizes.iter().map(|(_, share)| share).sum();
        let fitting: f64 = sizes.iter().filter(fits).map(|(_, share)| share).sum();
        if fitting <= 0.0 {
            return None;
        }
        let mut steps: Vec<Step> = Vec::new();
        for &(size, share) in sizes.iter().filter(fits) {
            // It fits, so it has 32 bits.
            let bytes = (size.max(1) as u32).next_multiple_of(WORD);
            let share = share / fitting;
            let used = share * size as f64;
            match steps.last_mut() {
                Some(last) if last.bytes == bytes => {
                    last.share += share;
                    last.used += used;
                }
                _ => steps.push(Step { bytes, share, used }),
            }
        }
        let too_long = 1.0 - fitting / all;
        if let Some(last) = steps.last_mut().filter(|_| too_long > 0.0) {
            last.bytes = longest.next_multiple_of(WORD);
        }
        Some(Self { steps, too_long })
    }

    /// The share of all messages that no buffer is to hold.
    #[must_use]
    pub fn too_long(&self) -> f64 {
        self.too_long
    }

    /// The at most `classes` size classes that hold `at_once` messages in the least memory, where
    /// no more than the share `refused` of them is refused on average, and one of each size fits.
    /// Smallest class first.
    #[must_use]
    pub fn classes(&self, at_once: u32, refused: f64, classes: usize) -> Vec<SizeClass> {
        let at_once = at_once.clamp(1, AT_ONCE_MAX);
        // The excess over every bound adds up to no less than what is refused.
        let allowed = refused * f64::from(at_once) / classes.max(1) as f64;
        let mut tail = 1.0;
        let mut needed = vec![enough(&binomial(at_once, 1.0), allowed).max(1)];
        for step in &self.steps {
            tail -= step.share;
            needed.push(enough(&binomial(at_once, tail), allowed).max(1));
        }
        if let Some(beyond) = needed.last_mut() {
            *beyond = 0;
        }
        self.least_memory(&needed, classes.max(1))
    }

    /// `needed[i]` buffers must be larger than the first i steps: the classes of the least memory.
    fn least_memory(&self, needed: &[u32], classes: usize) -> Vec<SizeClass> {
        let steps = self.steps.len();
        let cost = |from: usize, to: usize| {
            let count = u64::from(needed[from].saturating_sub(needed[to]));
            count * u64::from(self.steps[to - 1].bytes)
        };
        // Of the steps before `to`, by number of classes: bytes, and where the last class begins.
        let one = std::iter::once((0, 0)).chain((1..=steps).map(|to| (cost(0, to), 0)));
        let mut rows: Vec<Vec<(u64, usize)>> = vec![one.collect()];
        for _ in 1..classes {
            let Some(before) = rows.last() else { break };
            let best = |to: usize| {
                let cut = |from: usize| (before[from].0 + cost(from, to), from);
                // As good without this class.
                (1..to).map(cut).chain([(before[to].0, to)]).min().unwrap_or_default()
            };
            let row = (0..=steps).map(best).collect();
            rows.push(row);
        }
        let mut found = Vec::new();
        let mut to = steps;
        for row in rows.iter().rev() {
            let from = row[to].1;
            let buffers = needed[from].saturating_sub(needed[to]);
            if from < to && buffers > 0 {
                found.push(SizeClass { bytes: self.steps[to - 1].bytes, buffers: buffers as u16 });
            }
            to = from;
        }
        found.reverse();
        found
    }

    /// The classes for the most messages at once that fit `budget` bytes of one direction, and that
    /// number. `None` if none does.
    #[must_use]
    pub fn within(
        &self,
        budget: u64,
        refused: f64,
        classes: usize,
    ) -> Option<(u32, Vec<SizeClass>)> {
        let plan = |n| self.classes(n, refused, classes);
        let (mut fits, mut beyond) = (0, AT_ONCE_MAX + 1);
        while beyond - fits > 1 {
            let middle = fits.midpoint(beyond);
            if memory(&plan(middle)) <= budget { fits = middle } else { beyond = middle }
        }
        (fits > 0).then(|| (fits, plan(fits)))
    }

    /// The classes for `at_once` messages that fit `budget` bytes of one direction and refuse
    /// least, but no less than `refused`. `None` if none does.
    #[must_use]
    pub fn squeezed(
        &self,
        at_once: u32,
        budget: u64,
        refused: f64,
        classes: usize,
    ) -> Option<Vec<SizeClass>> {
        /// Halvings of the interval.
        const STEPS: u32 = 30;
        let plan = |refused| Some(self.classes(at_once, refused, classes));
        let fits = |plan: &Vec<SizeClass>| memory(plan) <= budget;
        if let Some(plan) = plan(refused).filter(fits) {
            return Some(plan);
        }
        let (mut low, mut high) = (refused, classes as f64);
        let mut best = plan(high).filter(fits)?;
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            match plan(middle).filter(fits) {
                Some(plan) => (high, best) = (middle, plan),
                None => low = middle,
            }
        }
        Some(best)
    }

    /// The share of `at_once` messages that find no buffer, on average: all come, and none has
    /// gone. Classes are smallest first. Exact but for states rarer than 1e-15.
    #[must_use]
    pub fn refused(&self, classes: &[SizeClass], at_once: u32) -> f64 {
        const RARE: f64 = 1e-15;
        // How many messages are too large for the classes so far, and how many are refused at
        // least.
        let mut states = BTreeMap::from([((at_once, 0), 1.0)]);
        let mut below = 0;
        for (place, class) in classes.iter().enumerate() {
            let left: u32 = classes[place..].iter().map(|class| u32::from(class.buffers)).sum();
            let larger = match self.share_above(below) {
                0.0 => 0.0,
                all => self.share_above(class.bytes) / all,
            };
            below = class.bytes;
            let mut next = BTreeMap::new();
            for ((n, excess), weight) in states {
                let excess = excess.max(n.saturating_sub(left));
                for (larger, share) in (0..).zip(binomial(n, larger)) {
                    if weight * share > RARE {
                        *next.entry((larger, excess)).or_insert(0.0) += weight * share;
                    }
                }
            }
            states = next;
        }
        let refused =
            |((n, excess), weight): (&(u32, u32), &f64)| weight * f64::from(*n.max(excess));
        states.iter().map(refused).sum::<f64>() / f64::from(at_once.max(1))
    }

    /// What each of `classes`, smallest first, is used for while all have buffers free.
    #[must_use]
    pub fn usage(&self, classes: &[SizeClass]) -> Vec<Usage> {
        let mut below = 0;
        let mut usage = Vec::new();
        for class in classes {
            let mine = |step: &&Step| step.bytes > below && step.bytes <= class.bytes;
            let of = |step: &Step| Usage {
                share: step.share,
                used: step.used,
                allocated: step.share * f64::from(class.bytes),
            };
            usage.push(self.steps.iter().filter(mine).map(of).fold(Usage::default(), Usage::and));
            below = class.bytes;
        }
        usage
    }

    /// The share of messages of more than `bytes`.
    fn share_above(&self, bytes: u32) -> f64 {
        let above = self.steps.iter().filter(|step| step.bytes > bytes);
        above.map(|step| step.share).sum::<f64>().min(1.0)
    }
}

/// Bytes of the buffers of one direction. Reassembly and packetization have the same.
#[must_use]
pub fn memory(classes: &[SizeClass]) -> u64 {
    words(classes) * u64::from(WORD)
}

#[cfg(test)]
mod tests;
