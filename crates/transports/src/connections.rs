//! Tables of connections by slot and id, whatever the transport: those that a host opens
//! ([`Connections`]), by channel as well, and those that its peers open here with data
//! ([`Opened`]), whose number is bounded.

use std::ops::{Index, IndexMut};

use endpoint::Draw;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, Time};

use crate::connection_ids::{ConnectionIds, Finished};

/// Connections or messages that one peer may have open here at a time: more than any workload has
/// between two hosts.
pub(crate) const OPEN_MAX: u32 = 1 << 16;
/// Messages of one peer that may be open here without a byte of theirs: what environments bound are
/// bytes. More are refused, and their sender repeats what it sent.
pub(crate) const BARE_MAX: u32 = 512;
/// A peer with so many loses those of them that have not moved for so long.
const SILENCE: Dur = Dur::from_ms(60_000);

/// A connection of a pair of hosts: the other host, and its id.
pub(crate) type Id = (HostId, u32);

/// Connections that this host opens. What is in a slot stays there, and is used again.
#[derive(Debug)]
pub(crate) struct Connections<T, const BITS: u32> {
    slots: Vec<T>,
    free: Vec<u32>,
    by_id: HashMap<Id, u32, FxBuildHasher>,
    /// Slot of the connection of (destination, channel).
    channels: HashMap<(HostId, u32), u32, FxBuildHasher>,
    ids: ConnectionIds<BITS>,
}

impl<T, const BITS: u32> Connections<T, BITS> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::default(),
            channels: HashMap::default(),
            ids: ConnectionIds::default(),
        }
    }

    /// The id of a new connection to `dst`; `draw` is this host's draws for that destination.
    pub(crate) fn next_id(&mut self, draw: Draw, dst: HostId) -> u32 {
        self.ids.next(draw, dst)
    }

    /// The slot of the open connection of a channel to `dst`; channel zero has none.
    pub(crate) fn of_channel(&self, dst: HostId, channel: u32) -> Option<u32> {
        if channel == 0 { None } else { self.channels.get(&(dst, channel)).copied() }
    }

    /// The slot of an open connection.
    #[inline]
    pub(crate) fn find(&self, id: Id) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// Open connection `id` for `channel`. In its slot is what was there before, or `new`.
    pub(crate) fn open(&mut self, id: Id, channel: u32, new: impl FnOnce() -> T) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(new());
            self.slots.len() as u32 - 1
        });
        self.by_id.insert(id, slot);
        if channel != 0 {
            self.channels.insert((id.0, channel), slot);
        }
        slot
    }

    /// Connection `id` in `slot` is over.
    pub(crate) fn close(&mut self, slot: u32, id: Id, channel: u32) {
        self.by_id.remove(&id);
        if channel != 0 {
            self.channels.remove(&(id.0, channel));
        }
        self.free.push(slot);
    }

    /// All slots, those of connections that are over included.
    pub(crate) fn slots(&self) -> std::ops::Range<u32> {
        0..self.slots.len() as u32
    }

    /// The slots of those that are open to `peer`.
    pub(crate) fn to(&self, peer: HostId) -> Vec<u32> {
        let to_it = self.by_id.iter().filter(|((host, _), _)| *host == peer);
        let mut slots: Vec<u32> = to_it.map(|(_, &slot)| slot).collect();
        slots.sort_unstable();
        slots
    }

    /// How many are open.
    pub(crate) fn open_count(&self) -> usize {
        self.by_id.len()
    }

    /// What is in a slot, if there is one.
    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)
    }

    /// Those that are open.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.by_id.values().map(|&slot| &self[slot])
    }
}

impl<T, const BITS: u32> Index<u32> for Connections<T, BITS> {
    type Output = T;

    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.slots[slot as usize]
    }
}

impl<T, const BITS: u32> IndexMut<u32> for Connections<T, BITS> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize]
    }
}

/// How many connections or messages of each peer are open here, a bounded number.
#[derive(Debug)]
pub(crate) struct OpenCounts {
    most: u32,
    of: HashMap<HostId, u32, FxBuildHasher>,
}

impl OpenCounts {
    /// None, and at most so many of each.
    pub(crate) const fn up_to(most: u32) -> Self {
        Self { most, of: HashMap::with_hasher(FxBuildHasher) }
    }

    /// One more of `peer`, if it may have one more.
    pub(crate) fn enter(&mut self, peer: HostId) -> bool {
        let count = self.of.entry(peer).or_default();
        let may = *count < self.most;
        *count += u32::from(may);
        may
    }

    /// One less of `peer`.
    pub(crate) fn leave(&mut self, peer: HostId) {
        if let Some(count) = self.of.get_mut(&peer) {
            *count -= 1;
        }
    }
}

/// The receiving half of a connection that a peer has opened.
pub(crate) trait Half {
    /// How far it has come: changes with everything that comes in order.
    fn progress(&self) -> u64;
}

/// Where a packet's connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// In this slot.
    Open(u32),
    /// It is over.
    Over,
    /// It is new here.
    New,
}

/// Connections that peers open here: any packet of data may, as handshakes leave no state. Those
/// that are over stay known.
#[derive(Debug)]
pub(crate) struct Opened<T, const BITS: u32> {
    slots: Vec<T>,
    free: Vec<u32>,
    by_id: HashMap<Id, u32, FxBuildHasher>,
    finished: Finished<BITS>,
    counts: OpenCounts,
    /// When a peer had too many, and where each of its connections was then, by slot.
    swept: (Time, Vec<u64>),
}

impl<T, const BITS: u32> Default for Opened<T, BITS> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_id: HashMap::default(),
            finished: Finished::default(),
            counts: OpenCounts::up_to(OPEN_MAX),
            swept: (Time::ZERO, Vec::new()),
        }
    }
}

impl<T: Half, const BITS: u32> Opened<T, BITS> {
    #[inline]
    pub(crate) fn find(&self, id: Id) -> Found {
        match self.by_id.get(&id) {
            Some(&slot) => Found::Open(slot),
            None if self.finished.contains(id.0, id.1) => Found::Over,
            None => Found::New,
        }
    }

    /// Open connection `id`. In its slot is what was there before, or `new`. `None`: its peer has
    /// too many. Then those that have not moved since they were too many a minute ago are
    /// forgotten, and `closed` is called with their slots.
    pub(crate) fn open(
        &mut self,
        now: Time,
        id: Id,
        new: impl FnOnce() -> T,
        closed: impl FnMut(u32, &mut T),
    ) -> Option<u32> {
        if !self.counts.enter(id.0) {
            self.sweep(now, id.0, closed);
            return None;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(new());
            self.slots.len() as u32 - 1
        });
        self.by_id.insert(id, slot);
        Some(slot)
    }

    /// Forget the connections of `peer` that are where they were at the last sweep.
    #[cold]
    fn sweep(&mut self, now: Time, peer: HostId, mut closed: impl FnMut(u32, &mut T)) {
        let Self { slots, by_id, swept: (at, marks), .. } = self;
        if !marks.is_empty() && now < at.saturating_add(SILENCE) {
            return;
        }
        *at = now;
        marks.resize(slots.len(), u64::MAX);
        let mut silent = Vec::new();
        for (&id, &slot) in by_id.iter().filter(|(id, _)| id.0 == peer) {
            let half = &mut slots[slot as usize];
            let before = std::mem::replace(&mut marks[slot as usize], half.progress());
            if before == half.progress() {
                silent.push((id, slot));
                closed(slot, half);
            }
        }
        for (id, slot) in silent {
            self.marks_gone(slot);
            self.release(slot, id);
        }
    }

    /// `peer` has started again ([`endpoint::Endpoint::on_restart`]): all its connections are
    /// forgotten, and `closed` is called with the slots of those that were open.
    pub(crate) fn restart(&mut self, peer: HostId, mut closed: impl FnMut(u32, &mut T)) {
        self.finished.forget(peer);
        let of_it = self.by_id.iter().filter(|((host, _), _)| *host == peer);
        let mut open: Vec<(u32, Id)> = of_it.map(|(&id, &slot)| (slot, id)).collect();
        open.sort_unstable();
        for (slot, id) in open {
            closed(slot, &mut self.slots[slot as usize]);
            self.marks_gone(slot);
            self.release(slot, id);
        }
    }

    fn marks_gone(&mut self, slot: u32) {
        if let Some(mark) = self.swept.1.get_mut(slot as usize) {
            *mark = u64::MAX;
        }
    }

    /// Connection `id` in `slot` is over.
    pub(crate) fn finish(&mut self, slot: u32, id: Id) {
        self.marks_gone(slot);
        self.release(slot, id);
        self.finished.insert(id.0, id.1);
    }

    fn release(&mut self, slot: u32, id: Id) {
        self.by_id.remove(&id);
        self.free.push(slot);
        self.counts.leave(id.0);
    }

    #[cfg(test)]
    pub(crate) fn open_count(&self) -> usize {
        self.by_id.len()
    }

    /// Slots, those that are free included.
    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    /// How many ranges it takes to remember what is over of `peer`.
    #[cfg(test)]
    pub(crate) fn ranges(&self, peer: HostId) -> usize {
        self.finished.ranges(peer)
    }
}

impl<T, const BITS: u32> Index<u32> for Opened<T, BITS> {
    type Output = T;

    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.slots[slot as usize]
    }
}

impl<T, const BITS: u32> IndexMut<u32> for Opened<T, BITS> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Half for u64 {
        fn progress(&self) -> u64 {
            *self
        }
    }

    const PEER: HostId = HostId(3);

    #[test]
    fn slots_are_used_again_and_channels_find_theirs() {
        let mut table = Connections::<u8, 30>::new();
        let a = table.open((PEER, 7), 2, || 1);
        let b = table.open((PEER, 8), 0, || 2);
        assert_eq!((table.of_channel(PEER, 2), table.of_channel(PEER, 0)), (Some(a), None));
        assert_eq!((table.find((PEER, 8)), table.open_count()), (Some(b), 2));
        table.close(a, (PEER, 7), 2);
        assert_eq!((table.find((PEER, 7)), table.of_channel(PEER, 2)), (None, None));
        assert_eq!(table.open((PEER, 9), 0, || 3), a);
        assert_eq!((table[a], table.slots()), (1, 0..2), "what was there is kept");
    }

    /// A peer's connections are bounded, without harm to others, and room comes back where nothing
    /// moves.
    #[test]
    fn a_peer_has_so_many_open_and_silent_ones_make_room() {
        let mut table = Opened::<u64, 30>::default();
        let open = |table: &mut Opened<u64, 30>, now, id| {
            table.open(Time::ZERO + now, (PEER, id), || 0, |_, half| *half = 0)
        };
        for id in 0..OPEN_MAX {
            assert!(open(&mut table, Dur::ZERO, id).is_some());
        }
        assert_eq!(open(&mut table, Dur::ZERO, OPEN_MAX), None);
        assert!(table.open(Time::ZERO, (HostId(4), 0), || 0, |_, _| {}).is_some(), "another peer");
        let Found::Open(busy) = table.find((PEER, 5)) else { panic!("open") };
        table[busy] = 1000;
        table.finish(9, (PEER, 9));
        assert_eq!(
            (table.find((PEER, 9)), table.find((PEER, OPEN_MAX))),
            (Found::Over, Found::New)
        );
        assert!(open(&mut table, Dur::ZERO, OPEN_MAX).is_some(), "one is over");
        assert_eq!(open(&mut table, SILENCE - Dur(1), OPEN_MAX + 1), None);
        assert_eq!(table.find((PEER, 6)), Found::Open(6), "not yet");
        assert_eq!(open(&mut table, SILENCE, OPEN_MAX + 1), None);
        assert!(open(&mut table, SILENCE, OPEN_MAX + 1).is_some(), "room again");
        assert_eq!(table.find((PEER, 6)), Found::New);
        assert_eq!(table.find((PEER, 5)), Found::Open(busy), "it has moved");
        assert_eq!(table.slots.len() as u32, OPEN_MAX + 1);
        let mut closed = Vec::new();
        table.restart(PEER, |slot, _| closed.push(slot));
        assert!(closed.contains(&busy));
        assert_eq!((table.find((PEER, 5)), table.find((PEER, 9))), (Found::New, Found::New));
        assert_eq!(table.by_id.len(), 1, "the other peer's");
    }
}
