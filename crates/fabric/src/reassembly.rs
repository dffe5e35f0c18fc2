//! What a host has received of the messages to it, and the check that no byte is placed twice.
//! The receiving host owns this; `messages` compares it with what was submitted.

use endpoint::RangeSet;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, MsgKey, Time};

use crate::hosts::simulated;

/// Bytes of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placed {
    /// All of them.
    pub(crate) bytes: u64,
    /// Those placed inside the measurement window.
    pub(crate) in_window: u64,
    /// The end of the last one.
    pub(crate) end: u64,
}

#[derive(Default)]
struct Part {
    ranges: RangeSet,
    placed: Placed,
    /// Bytes that count as placed, though the message was shortened by them.
    skipped: u64,
    skipped_in_window: u64,
}

pub(crate) struct Reassembly {
    index: HashMap<MsgKey, u32, FxBuildHasher>,
    /// The message of the latest packet: the next one is often of the same.
    latest: Option<(MsgKey, u32)>,
    parts: Vec<Part>,
    free: Vec<u32>,
    window: (Time, Time),
}

impl Reassembly {
    pub(crate) fn new(window: (Time, Time)) -> Self {
        let (index, parts, free) = (HashMap::default(), Vec::new(), Vec::new());
        Self { index, latest: None, parts, free, window }
    }

    /// Have at hand the message of the latest packet: its state, then its ranges.
    pub(crate) fn prefetch(&self, step: u8) {
        let Some((_, slot)) = self.latest else { return };
        let Some(part) = self.parts.get(slot as usize) else { return };
        if step == 0 {
            endpoint::prefetch::item(part);
        } else if let Some(last) = part.ranges.iter().last() {
            endpoint::prefetch::item(last);
        }
    }

    /// Where the state of a message is; a new one if it has none.
    #[inline(never)]
    fn find(&mut self, key: MsgKey) -> u32 {
        let Self { index, latest, parts, free, .. } = self;
        let slot = *index.entry(key).or_insert_with(|| {
            free.pop().unwrap_or_else(|| {
                if parts.is_empty() {
                    // Many hosts never have more than one; a list begins with room for four.
                    parts.reserve_exact(1);
                }
                parts.push(Part::default());
                parts.len() as u32 - 1
            })
        });
        *latest = Some((key, slot));
        slot
    }

    /// Payload has reached its place.
    #[inline(always)]
    pub(crate) fn place(
        &mut self,
        key: MsgKey,
        offset: u64,
        len: u32,
        now: Time,
    ) -> Result<(), String> {
        let (bytes, end) = (u64::from(len), offset.saturating_add(u64::from(len)));
        let slot = match self.latest {
            Some((latest, slot)) if latest == key => slot,
            _ => self.find(key),
        };
        let Part { ranges, placed, .. } = &mut self.parts[slot as usize];
        if ranges.insert(offset..end) != bytes {
            return Err(format!("bytes {offset}..{end} placed twice"));
        }
        placed.bytes += bytes;
        placed.end = placed.end.max(end);
        if now >= self.window.0 && now < self.window.1 {
            placed.in_window += bytes;
        }
        Ok(())
    }

    /// What has been placed of a message; then it is forgotten.
    pub(crate) fn take(&mut self, key: MsgKey) -> Placed {
        self.latest = None;
        let Some(slot) = self.index.remove(&key) else { return Placed::default() };
        self.free.push(slot);
        let part = &mut self.parts[slot as usize];
        part.ranges.clear();
        let Placed { bytes, in_window, end } = std::mem::take(&mut part.placed);
        let skipped = std::mem::take(&mut part.skipped);
        let in_window = in_window + std::mem::take(&mut part.skipped_in_window);
        Placed { bytes: bytes + skipped, in_window, end: end + skipped }
    }

    /// Bytes of a message that are here.
    pub(crate) fn bytes(&self, key: MsgKey) -> u64 {
        let part = self.index.get(&key).map(|&slot| &self.parts[slot as usize]);
        part.map_or(0, |part| part.placed.bytes)
    }

    /// Message `key` is shorter by `bytes`, which count as placed at `now`.
    pub(crate) fn skip(&mut self, key: MsgKey, bytes: u64, now: Time) {
        let slot = self.find(key);
        let part = &mut self.parts[slot as usize];
        part.skipped += bytes;
        if now >= self.window.0 && now < self.window.1 {
            part.skipped_in_window += bytes;
        }
    }

    /// `time` has been skipped: the measurement window is nearer.
    pub(crate) fn pass(&mut self, time: Dur) {
        let (from, to) = self.window;
        self.window = (simulated(from, time), simulated(to, time));
    }

    /// A message of which something is here, the lowest key if there are several.
    pub(crate) fn leftover(&self) -> Option<MsgKey> {
        self.index.keys().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{HostId, MsgId};

    const KEY: MsgKey = MsgKey { src: HostId(0), id: MsgId(0) };

    #[test]
    fn nothing_is_placed_twice_and_the_window_counts_apart() {
        let mut here = Reassembly::new((Time(10), Time(20)));
        assert!(here.place(KEY, 0, 60, Time(9)).is_ok());
        assert!(here.place(KEY, 70, 10, Time(19)).is_ok());
        assert!(here.place(KEY, 60, 10, Time(20)).is_ok());
        assert_eq!(here.leftover(), Some(KEY));
        assert_eq!(here.take(KEY), Placed { bytes: 80, in_window: 10, end: 80 });
        assert_eq!((here.leftover(), here.take(KEY)), (None, Placed::default()));
        assert!(here.place(KEY, 0, 60, Time(21)).is_ok(), "the memory is clean again");
        assert!(here.place(KEY, 59, 10, Time(22)).is_err(), "one byte twice");
    }
}
