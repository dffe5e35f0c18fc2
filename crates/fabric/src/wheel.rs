//! A timing wheel: what is to happen, in slots of equal width. Within a slot there is no order: that is made
//! where it is needed ([`crate::slot`]).

use units::{Dur, Time};

use crate::events::{Event, EventId};

/// How far apart events are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The longest time from scheduling an arrival or departure to its coming.
    pub(crate) horizon: Dur,
    /// The time that the longest packet takes on the quickest link.
    pub(crate) frame: Dur,
    /// The same of the shortest packet, or a shorter time in which nothing that happens at one host or port has
    /// an effect on another one.
    pub(crate) apart: Dur,
}

/// Links carry three packets of control or of a trimmed header with each longest packet, about.
const PACKETS_PER_FRAME: u64 = 4;
/// Packets in a slot, about: enough to hide the time of fetching what they touch, few enough to keep all that
/// near.
const PACKETS_PER_SLOT: u64 = 64;
/// With fewer, opening slots costs more than sorting wider ones.
const PACKETS_MIN: u64 = 16;
/// A slot whose events are handled in order is sorted, few more quickly than many.
const FRAMES_IN_ORDER: u64 = 32;
/// Times within a slot take 31 bits.
const SHIFT_MAX: u32 = 31;
const SLOTS_MIN: u64 = 64;
/// Links of a second and more of delay do not fit; their arrivals go to a heap.
const SLOTS_MAX: u64 = 1 << 20;

impl Span {
    /// How wide slots are whose events at `busy` ports may be handled in any order but those of one port, as an
    /// exponent of two; `None` if too few would come in one.
    pub(crate) fn shift_by_entity(self, busy: u32) -> Option<u32> {
        let packets = PACKETS_PER_FRAME * u64::from(busy.max(1));
        let time_of = |count| self.frame.0.saturating_mul(count) / packets;
        let width = time_of(PACKETS_PER_SLOT).max(1).min(self.apart.0);
        let shift = width.checked_ilog2()?.min(SHIFT_MAX);
        // In debug builds, and so in tests, small fabrics go this way, too.
        let least = if cfg!(debug_assertions) { 0 } else { PACKETS_MIN };
        (1 << shift >= time_of(least)).then_some(shift)
    }

    /// The same of slots whose events are handled in order.
    pub(crate) fn shift_in_order(self, busy: u32) -> u32 {
        let wanted = self.frame.0.saturating_mul(FRAMES_IN_ORDER) / u64::from(busy.max(1));
        wanted.max(1).ilog2().min(SHIFT_MAX)
    }
}

/// An event in its slot.
#[derive(Clone, Copy)]
struct Entry {
    /// When in the slot, picoseconds.
    since: u32,
    event: EventId,
}

const NOTHING: Entry = Entry { since: 0, event: EventId::NOTHING };

/// Entries are handed out in chunks of so many. Those that have just been emptied are filled first, so that what is in
/// use stays near.
const CHUNK: u32 = 10;
const NIL: u32 = u32::MAX;

/// The chunk of a slot that is being filled; the others are full.
#[derive(Clone, Copy)]
struct Head {
    /// Where its next entry goes, and one past its last place. Equal if there is no chunk, or it is full.
    next: u32,
    end: u32,
}

const NO_HEAD: Head = Head { next: 0, end: 0 };

pub(crate) struct Wheel {
    /// Slot of a time: its picoseconds shifted by this.
    pub(crate) shift: u32,
    /// By slot: a ring. So small that it stays near, which chunks do not.
    heads: Vec<Head>,
    /// Bit per slot: it has a chunk.
    occupied: Vec<u64>,
    entries: Vec<Entry>,
    /// By chunk: the one that its slot filled before.
    before: Vec<u32>,
    free: Vec<u32>,
    /// What comes before this has been taken out.
    pub(crate) from: Time,
    /// So far after that, picoseconds, there is a slot for sure; no less than the horizon.
    reach: u64,
}

impl Wheel {
    /// For slots of two to the power of `shift` picoseconds that reach as far as `horizon`.
    pub(crate) fn new(shift: u32, horizon: Dur) -> Self {
        let slots = ((horizon.0 >> shift) + 3).next_power_of_two().clamp(SLOTS_MIN, SLOTS_MAX);
        Self {
            shift,
            heads: vec![NO_HEAD; slots as usize],
            occupied: vec![0; (slots / 64) as usize],
            entries: Vec::new(),
            before: Vec::new(),
            free: Vec::new(),
            from: Time::ZERO,
            reach: (slots - 1) << shift,
        }
    }

    /// A wheel that reaches nothing.
    pub(crate) fn none(shift: u32) -> Self {
        Self { heads: Vec::new(), occupied: Vec::new(), reach: 0, ..Self::new(shift, Dur::ZERO) }
    }

    #[inline(always)]
    fn slot(&self, at: Time) -> u64 {
        at.0 >> self.shift
    }

    /// Where the slot of `at` ends.
    pub(crate) fn end_of_slot(&self, at: Time) -> Time {
        Time((self.slot(at) + 1) << self.shift)
    }

    #[inline(always)]
    fn index(&self, slot: u64) -> usize {
        (slot & (self.heads.len() as u64).wrapping_sub(1)) as usize
    }

    /// Whether there is a slot for `at`, and it has not been taken.
    #[inline(always)]
    pub(crate) fn reaches(&self, at: Time) -> bool {
        at.0.wrapping_sub(self.from.0) < self.reach
    }

    /// Add an event at a time that the wheel reaches.
    #[inline(always)]
    pub(crate) fn push(&mut self, at: Time, event: EventId) {
        let index = self.index(self.slot(at));
        let since = (at.0 & ((1 << self.shift) - 1)) as u32;
        let head = &mut self.heads[index];
        if head.next < head.end {
            self.entries[head.next as usize] = Entry { since, event };
            head.next += 1;
        } else {
            self.push_chunk(index, since, event);
        }
    }

    /// Begin a chunk of slot `index`.
    #[inline(never)]
    fn push_chunk(&mut self, index: usize, since: u32, event: EventId) {
        let Self { heads, entries, before, free, .. } = self;
        let chunk = free.pop().unwrap_or_else(|| {
            entries.extend([NOTHING; CHUNK as usize]);
            before.push(NIL);
            before.len() as u32 - 1
        });
        let head = &mut heads[index];
        before[chunk as usize] = if head.end == 0 { NIL } else { head.end / CHUNK - 1 };
        let first = chunk * CHUNK;
        entries[first as usize] = Entry { since, event };
        *head = Head { next: first + 1, end: first + CHUNK };
        self.occupied[index / 64] |= 1 << (index % 64);
    }

    /// When the first event comes, or a bound below it.
    pub(crate) fn next_at(&self) -> Option<Time> {
        if self.heads.is_empty() {
            return None;
        }
        let base = self.slot(self.from);
        let start = self.index(base);
        let words = self.occupied.len();
        let first = self.occupied[start / 64] & (u64::MAX << (start % 64));
        let found = (0..=words).find_map(|n| {
            let word = (start / 64 + n) % words;
            let bits = if n == 0 { first } else { self.occupied[word] };
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        })?;
        let distance = self.index(found as u64 + self.heads.len() as u64 - start as u64);
        Some(Time((base + distance as u64) << self.shift))
    }

    /// Move the events of the slot of `start` that come before `end`, which is no later than its end, to
    /// `due`. Nothing comes before `start`.
    pub(crate) fn take(&mut self, start: Time, end: Time, due: &mut Vec<Event>) {
        self.from = end;
        let slot = self.slot(start);
        let index = self.index(slot);
        let Some(head) = self.heads.get_mut(index) else { return };
        let head = std::mem::replace(head, NO_HEAD);
        self.occupied[index / 64] &= !(1 << (index % 64));
        let (from, begin) = (due.len(), slot << self.shift);
        for (chunk, entries) in chunks(&self.entries, &self.before, head) {
            let at = |entry: &Entry| Time(begin + u64::from(entry.since));
            due.extend(entries.iter().map(|entry| entry.event.at(at(entry))));
            self.free.push(chunk);
        }
        if slot == self.slot(end) {
            self.put_back(from, end, due);
        }
    }

    /// Of what has been taken, put back what does not come before `end`.
    #[inline(never)]
    fn put_back(&mut self, from: usize, end: Time, due: &mut Vec<Event>) {
        let mut n = from;
        while let Some(&event) = due.get(n) {
            if event.at < end {
                n += 1;
            } else {
                due.swap_remove(n);
                self.push(event.at, event.id());
            }
        }
    }

    /// What every event is about.
    pub(crate) fn iter(&self) -> impl Iterator<Item = EventId> {
        let heads = self.heads.iter();
        let chunks = heads.flat_map(|&head| chunks(&self.entries, &self.before, head));
        chunks.flat_map(|(_, entries)| entries).map(|entry| entry.event)
    }
}

/// The chunks of a slot, the latest first, and what is in them.
#[inline(always)]
fn chunks<'a>(
    entries: &'a [Entry],
    before: &'a [u32],
    head: Head,
) -> impl Iterator<Item = (u32, &'a [Entry])> {
    let last = (head.end > 0).then(|| (head.end / CHUNK - 1, head.next));
    let all = std::iter::successors(last, |&(chunk, _)| {
        let chunk = before[chunk as usize];
        (chunk != NIL).then(|| (chunk, (chunk + 1) * CHUNK))
    });
    all.map(|(chunk, end)| (chunk, &entries[(chunk * CHUNK) as usize..end as usize]))
}
