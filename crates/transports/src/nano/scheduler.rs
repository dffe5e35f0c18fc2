//! The SRPT scheduler (specs/nanotransport.md#9): the message with the fewest packets left that may
//! be granted more, if it is among the first few.

use std::collections::VecDeque;

/// Messages that are compared; more wait for a place.
const PLACES: usize = 16;

/// A message, by the receiver's number. All counts are in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) rx: usize,
    /// Not yet received: its rank. Fewer are better.
    pub(super) remaining: u16,
    /// Permitted so far.
    pub(super) granted: u16,
    /// What it could be permitted.
    pub(super) grantable: u16,
}

impl Entry {
    /// Of equals the lower number goes first.
    const fn rank(&self) -> (u16, usize) {
        (self.remaining, self.rx)
    }
}

/// What is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) rx: usize,
    /// Messages that come before it.
    pub(super) level: u8,
    /// Packets now permitted.
    pub(super) offset: u16,
}

/// The messages that are being granted.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    places: Vec<Entry>,
    waiting: VecDeque<Entry>,
}

impl Scheduler {
    /// A packet of a message has come. What waits is changed in place and never chosen.
    pub(super) fn update(&mut self, entry: Entry) {
        let places_left = self.places.len() < PLACES;
        let mut all = self.places.iter_mut().chain(&mut self.waiting);
        match all.find(|there| there.rx == entry.rx) {
            Some(there) => *there = entry,
            None if places_left => self.places.push(entry),
            None => self.waiting.push_back(entry),
        }
    }

    /// Message `rx` needs nothing more.
    pub(super) fn remove(&mut self, rx: usize) {
        self.waiting.retain(|entry| entry.rx != rx);
        if let Some(at) = self.places.iter().position(|entry| entry.rx == rx) {
            self.places.swap_remove(at);
            self.places.extend(self.waiting.pop_front());
        }
    }

    /// Permit the best message all that it could have, if fewer than `levels` come before it.
    pub(super) fn grant(&mut self, levels: u8) -> Option<Grant> {
        let wanting = self.places.iter().filter(|entry| entry.grantable > entry.granted);
        let best = *wanting.min_by_key(|entry| entry.rank())?;
        let before = self.places.iter().filter(|entry| entry.rank() < best.rank()).count();
        let level = u8::try_from(before).ok().filter(|level| *level < levels)?;
        let entry = self.places.iter_mut().find(|entry| entry.rx == best.rx)?;
        entry.granted = entry.grantable;
        Some(Grant { rx: best.rx, level, offset: best.grantable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(rx: usize, remaining: u16, granted: u16, grantable: u16) -> Entry {
        Entry { rx, remaining, granted, grantable }
    }

    #[test]
    fn the_fewest_left_first_and_of_equals_the_lower_number() {
        let mut scheduler = Scheduler::default();
        for (rx, remaining) in [(2, 30), (1, 20), (0, 20)] {
            scheduler.update(entry(rx, remaining, 9, 10));
        }
        let granted: Vec<Option<Grant>> = (0..4).map(|_| scheduler.grant(3)).collect();
        let grant = |rx, level| Some(Grant { rx, level, offset: 10 });
        assert_eq!(granted, [grant(0, 0), grant(1, 1), grant(2, 2), None]);
    }

    /// "Invariant trap": messages with nothing to be granted hold their levels until they are
    /// removed.
    #[test]
    fn outstanding_messages_keep_their_levels() {
        let mut scheduler = Scheduler::default();
        for rx in 0..3 {
            scheduler.update(entry(rx, 5, 12, 12));
        }
        scheduler.update(entry(3, 6, 9, 10));
        assert_eq!(scheduler.grant(3), None, "three come before it");
        scheduler.remove(1);
        assert_eq!(scheduler.grant(3), Some(Grant { rx: 3, level: 2, offset: 10 }));
    }

    /// What finds all places taken is chosen only once it has one, though it be the best.
    #[test]
    fn the_seventeenth_waits_and_is_changed_where_it_waits() {
        let mut scheduler = Scheduler::default();
        for rx in 0..18 {
            scheduler.update(entry(rx, 30, 9, if rx < 16 { 9 } else { 10 }));
        }
        scheduler.update(entry(17, 1, 9, 11));
        assert_eq!(scheduler.grant(16), None);
        scheduler.remove(16);
        assert_eq!(scheduler.grant(16), None, "no place has become free");
        scheduler.remove(4);
        assert_eq!(scheduler.grant(16), Some(Grant { rx: 17, level: 0, offset: 11 }));
    }
}
