//! Samples of queues and rates at fixed intervals.

use std::collections::BTreeMap;

use units::{Dur, Time};

use crate::message_table::MessageTable;
use crate::outcome::{QueueBytes, Sample};
use crate::partition::Partition;
use crate::steady::Ratio;
use crate::topology::HEIGHTS;

/// After so many samples the time between two doubles, and again after as many more: a run that
/// waits for timeouts that back off may last for simulated hours.
pub const SAMPLES_OF_INTERVAL: usize = 20_000;

/// What samples count since the start, see [`Sample`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) placed_bytes: u64,
    pub(crate) packets: u64,
    pub(crate) tier_bytes: [u64; HEIGHTS],
}

impl Counts {
    fn add(&mut self, gain: &Self, share: Ratio) {
        self.placed_bytes += share.of(gain.placed_bytes);
        self.packets += share.of(gain.packets);
        for (all, one) in self.tier_bytes.iter_mut().zip(gain.tier_bytes) {
            *all += share.of(one);
        }
    }
}

pub(crate) struct Sampler {
    every: Option<Dur>,
    /// How many of the first intervals one has now.
    weight: u64,
    window: (Time, Time),
    next: Time,
    pub(crate) samples: Vec<Sample>,
    /// How often a port held a number of bytes, inside the window.
    seen: BTreeMap<u32, u64>,
    scratch: Vec<u32>,
    /// What counts beside what partitions count, because time was skipped.
    skipped: Counts,
}

impl Sampler {
    pub(crate) fn new(every: Option<Dur>, window: (Time, Time)) -> Self {
        let every = every.filter(|every| *every > Dur::ZERO);
        let next = every.map_or(Time::NEVER, |every| Time(every.0));
        let (samples, seen, scratch) = (Vec::new(), BTreeMap::new(), Vec::new());
        let skipped = Counts::default();
        Self { every, weight: 1, window, next, samples, seen, scratch, skipped }
    }

    pub(crate) fn next_at(&self) -> Time {
        self.next
    }

    /// Look at every switch port, of which there are `ports`, as it is at `now` of the simulated
    /// time, `at` in true time.
    pub(crate) fn take<'a, 'o: 'a, const WATCHED: bool>(
        &mut self,
        (now, at): (Time, Time),
        ports: usize,
        parts: impl Iterator<Item = &'a mut Partition<'o, WATCHED>>,
        messages: &MessageTable,
    ) {
        let counts = self.look(now, parts);
        self.record(at, ports, counts, messages);
    }

    /// Time is to be skipped from the simulated time `now` on: what is there now, for
    /// [`Sampler::fill`].
    pub(crate) fn look<'a, 'o: 'a, const WATCHED: bool>(
        &mut self,
        now: Time,
        parts: impl Iterator<Item = &'a mut Partition<'o, WATCHED>>,
    ) -> Counts {
        self.scratch.clear();
        let mut counts = self.skipped;
        for part in parts {
            let sent = part.network_mut().sample(now, &mut self.scratch);
            for (all, one) in counts.tier_bytes.iter_mut().zip(sent) {
                *all += one;
            }
            counts.placed_bytes += part.hosts().placed_bytes();
            counts.packets += part.hosts().traffic().0.packets;
        }
        self.scratch.sort_unstable();
        counts
    }

    /// `time` is skipped from `from` of the true time on, when there was `counts`, with queues as
    /// they are: `gain` comes evenly.
    pub(crate) fn fill(
        &mut self,
        (from, time): (Time, Dur),
        ports: usize,
        (counts, gain): (Counts, Counts),
        messages: &MessageTable,
    ) {
        while self.next < from + time {
            let share = Ratio { part: self.next.since(from), of: time };
            let mut then = counts;
            then.add(&gain, share);
            self.record(self.next, ports, then, messages);
        }
        // Placed bytes are counted by hosts.
        let whole = Ratio { part: time, of: time };
        self.skipped.add(&Counts { placed_bytes: 0, ..gain }, whole);
    }

    /// One sample, with what is in queues in `scratch`, ascending.
    fn record(&mut self, now: Time, ports: usize, counts: Counts, messages: &MessageTable) {
        let Counts { placed_bytes, packets, tier_bytes } = counts;
        let empty = ports - self.scratch.len();
        if now >= self.window.0 && now < self.window.1 {
            *self.seen.entry(0).or_default() += empty as u64 * self.weight;
            for run in self.scratch.chunk_by(|a, b| a == b) {
                *self.seen.entry(run[0]).or_default() += run.len() as u64 * self.weight;
            }
        }
        // Nearest rank, the empty queues first.
        let at = |share: usize| {
            let rank = ((empty + self.scratch.len()) * share).div_ceil(100);
            let full = rank.checked_sub(empty + 1).and_then(|rank| self.scratch.get(rank));
            full.copied().unwrap_or(0)
        };
        let total = self.scratch.iter().map(|&bytes| u64::from(bytes)).sum();
        let queue_bytes = QueueBytes { p50: at(50), p99: at(99), max: at(100), total };
        let messages_in_flight = messages.open + messages.unbounded;
        let sample =
            Sample { at: now, queue_bytes, placed_bytes, packets, messages_in_flight, tier_bytes };
        self.samples.push(sample);
        if self.samples.len().is_multiple_of(SAMPLES_OF_INTERVAL) {
            self.every = self.every.map(|every| every * 2);
            self.weight *= 2;
        }
        self.next = self.every.map_or(Time::NEVER, |every| now + every);
    }

    /// The 99th percentile (nearest rank) over ports and time, inside the window.
    pub(crate) fn queue_p99(&self) -> Option<u32> {
        let count: u64 = self.seen.values().sum();
        let rank = (count * 99).div_ceil(100);
        let mut below = 0;
        self.seen.iter().find_map(|(&bytes, &n)| {
            below += n;
            (below >= rank && count > 0).then_some(bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day at 50 us would be 1.7 thousand million samples. Time weighs the same however often it
    /// was looked at.
    #[test]
    fn a_long_run_has_few_samples_and_they_weigh_what_they_stand_for() {
        let window = (Time::ZERO, Time::NEVER);
        let every = Dur::from_us(50);
        let (mut sampler, messages) =
            (Sampler::new(Some(every), window), MessageTable::new(window));
        let day = Time(86_400_000_000_000_000);
        while sampler.next_at() < day {
            sampler.take(
                (sampler.next_at(), sampler.next_at()),
                3,
                std::iter::empty::<&mut Partition<'_, false>>(),
                &messages,
            );
        }
        let Sample { at, .. } = sampler.samples[SAMPLES_OF_INTERVAL - 1];
        assert_eq!(at, Time(every.0 * SAMPLES_OF_INTERVAL as u64), "as if it were short");
        assert!(sampler.samples.len() < 20 * SAMPLES_OF_INTERVAL, "{}", sampler.samples.len());
        let last = sampler.samples.last().unwrap().at;
        assert_eq!(sampler.seen[&0], 3 * (last.0 / every.0));
    }
}
