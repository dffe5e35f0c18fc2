//! A timing wheel: slots of equal width; the one being emptied is sorted, the others are not.

use units::{Dur, Time};

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct About {
    /// The kind of event and, below [`About::KIND_SHIFT`], a link or host.
    pub(crate) what: u32,
    pub(crate) packet: u32,
}

impl About {
    pub(crate) const ARRIVAL: u32 = 0;
    pub(crate) const DEPARTURE: u32 = 1;
    pub(crate) const TIMER: u32 = 2;
    /// Of flow control; never in the wheel.
    pub(crate) const CONTROL: u32 = 3;
    /// A place of the wheel that has not been filled.
    const NOTHING: Self = Self::new(3, 0, 0);
    /// There are at most four million links.
    const KIND_SHIFT: u32 = 30;

    #[inline(always)]
    pub(crate) const fn new(kind: u32, link: u32, packet: u32) -> Self {
        Self { what: kind << Self::KIND_SHIFT | link, packet }
    }

    #[inline(always)]
    pub(crate) const fn kind(self) -> u32 {
        self.what >> Self::KIND_SHIFT
    }

    /// The link or host.
    #[inline(always)]
    pub(crate) const fn link(self) -> u32 {
        self.what & ((1 << Self::KIND_SHIFT) - 1)
    }
}

/// Where an event leads: to a port, to a host, or nobody has looked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Onward(u32);

impl Onward {
    pub(crate) const UNKNOWN: Self = Self(u32::MAX);
    /// Links are fewer.
    const HOST: u32 = 1 << 31;

    #[inline(always)]
    pub(crate) const fn to_port(port: u32) -> Self {
        Self(port)
    }

    #[inline(always)]
    pub(crate) const fn to_host(host: u32) -> Self {
        Self(Self::HOST | host)
    }

    #[inline(always)]
    pub(crate) fn port(self) -> Option<u32> {
        (self.0 < Self::HOST).then_some(self.0)
    }

    #[inline(always)]
    pub(crate) fn host(self) -> Option<u32> {
        (self.0 >= Self::HOST && self.0 != u32::MAX).then_some(self.0 ^ Self::HOST)
    }
}

/// When in its slot an event comes and, below that, its order. Not negative; signed, because that is
/// what processors compare many of at once.
type Key = i32;

const CHUNK_EVENTS: usize = 10;
const NIL: u32 = u32::MAX;

/// Events of one slot: two cache lines.
#[repr(align(128))]
struct Chunk {
    keys: [Key; CHUNK_EVENTS],
    about: [About; CHUNK_EVENTS],
    len: u32,
    /// The next, full, chunk of the slot.
    next: u32,
}

const EMPTY: Chunk =
    Chunk { keys: [0; CHUNK_EVENTS], about: [About::NOTHING; CHUNK_EVENTS], len: 0, next: NIL };

const _: () = assert!(size_of::<Chunk>() == 128, "two cache lines");

/// An event of the open slot.
#[derive(Clone, Copy)]
struct Due {
    /// When in the slot, picoseconds.
    since: u32,
    order: u32,
    about: About,
}

/// A place that has not been filled.
const NOT_DUE: Due = Due { since: 0, order: 0, about: About::NOTHING };

pub(crate) struct Wheel {
    /// Slot of a time: its picoseconds shifted by this.
    shift: u32,
    /// The bits of a time that say when in its slot it is.
    since: u64,
    /// Bits that an order takes in a key.
    bits: u32,
    /// First chunk of each slot.
    heads: Vec<u32>,
    /// Bit per slot: it has a chunk.
    occupied: Vec<u64>,
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    /// The events of slot `current` in order; those before `next` are gone.
    due: Vec<Due>,
    next: usize,
    /// Where each leads, if somebody has looked.
    onward: Vec<Onward>,
    /// Whether it has just been opened.
    fresh: bool,
    /// When slot `current` begins.
    start: Time,
    /// The slot being emptied, counted from time zero. Chunks hold only later slots, fewer than
    /// `heads.len()` of them.
    current: u64,
    /// Scratch: the events of a slot before they are sorted.
    unsorted: (Vec<Key>, Vec<About>),
    places: Vec<u64>,
}

/// Slots are as wide as makes this many packets fall into one when every link is busy with the
/// longest ones. Control packets come on top: some 40 events in all. Sorted by comparison,
/// 8 to 10 were best (design.md section 4, rule 9); counting carries further
/// (docs/notebook/2026-11-20-speed.md).
const FRAMES_PER_SLOT: u64 = 16;
/// Slots of up to so many events are sorted by counting.
const COUNTED_MAX: usize = 64;
/// Keys that are compared at a time.
const GROUP: usize = 8;
const SHIFT_MIN: u32 = 6;
const SLOTS_MIN: u64 = 64;
/// Links of a second and more of delay do not fit; their arrivals go to a heap.
const SLOTS_MAX: u64 = 1 << 20;

/// How far apart events are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The longest time from scheduling an arrival or departure to its coming.
    pub(crate) horizon: Dur,
    /// The time that the longest packet takes on the quickest link.
    pub(crate) frame: Dur,
}

impl Span {
    const NONE: Self = Self { horizon: Dur::ZERO, frame: Dur::ZERO };
}

impl Wheel {
    /// For orders below `orders`, `busy` links, and times as in `span`.
    pub(crate) fn new(orders: u32, busy: u32, span: Span) -> Self {
        let Span { horizon, frame } = span;
        let width = frame.0.saturating_mul(FRAMES_PER_SLOT) / u64::from(busy.max(1));
        let bits = orders.ilog2() + 1;
        let shift = width.max(1).ilog2().clamp(SHIFT_MIN, Key::BITS - 1 - bits);
        let slots = ((horizon.0 >> shift) + 3).next_power_of_two().clamp(SLOTS_MIN, SLOTS_MAX);
        Self {
            shift,
            since: (1 << shift) - 1,
            bits,
            heads: vec![NIL; slots as usize],
            occupied: vec![0; slots.div_ceil(64) as usize],
            chunks: Vec::new(),
            free: Vec::new(),
            due: Vec::new(),
            next: 0,
            onward: Vec::new(),
            fresh: false,
            start: Time::ZERO,
            current: 0,
            unsorted: (Vec::new(), Vec::new()),
            places: Vec::new(),
        }
    }

    /// A wheel that reaches nothing.
    pub(crate) fn none() -> Self {
        Self { heads: Vec::new(), occupied: Vec::new(), ..Self::new(1, 1, Span::NONE) }
    }

    fn slot(&self, at: Time) -> u64 {
        at.0 >> self.shift
    }

    fn index(&self, slot: u64) -> usize {
        (slot & (self.heads.len() as u64 - 1)) as usize
    }

    fn start_of(&self, slot: u64) -> Time {
        Time(slot << self.shift)
    }

    /// Whether a slot for `at` exists now. Always so within the horizon, unless a slot has been
    /// opened ahead of an event in a heap that schedules something before it.
    #[inline(always)]
    pub(crate) fn reaches(&self, at: Time) -> bool {
        self.slot(at).wrapping_sub(self.current) < self.heads.len() as u64
    }

    /// Add an event at a time that the wheel reaches.
    #[inline(always)]
    pub(crate) fn push(&mut self, order: u32, about: About, at: Time) {
        let key = ((at.0 & self.since) << self.bits) as Key | order as Key;
        let slot = self.slot(at);
        if slot == self.current {
            self.insert(key, about);
            return;
        }
        let index = self.index(slot);
        let head = self.heads[index];
        match self.chunks.get_mut(head as usize) {
            Some(chunk) if (chunk.len as usize) < CHUNK_EVENTS => {
                chunk.keys[chunk.len as usize] = key;
                chunk.about[chunk.len as usize] = about;
                chunk.len += 1;
            }
            _ => self.push_chunk(index, key, about),
        }
    }

    /// Add an event to the open slot.
    #[cold]
    fn insert(&mut self, key: Key, about: About) {
        let new = self.due(key, about);
        let earlier = |due: &Due| (due.since, due.order) < (new.since, new.order);
        let at = self.next + self.due[self.next..].partition_point(earlier);
        self.due.insert(at, new);
        if at < self.onward.len() {
            self.onward.insert(at, Onward::UNKNOWN);
        }
    }

    #[inline(always)]
    fn due(&self, key: Key, about: About) -> Due {
        let order = key as u32 & ((1 << self.bits) - 1);
        Due { since: key as u32 >> self.bits, order, about }
    }

    /// Begin a chunk of slot `index`.
    #[inline(never)]
    fn push_chunk(&mut self, index: usize, key: Key, about: About) {
        let at = self.free.pop().unwrap_or_else(|| {
            self.chunks.push(EMPTY);
            self.chunks.len() as u32 - 1
        });
        let chunk = &mut self.chunks[at as usize];
        chunk.keys[0] = key;
        chunk.about[0] = about;
        chunk.len = 1;
        chunk.next = self.heads[index];
        self.heads[index] = at;
        self.occupied[index / 64] |= 1 << (index % 64);
    }

    /// The first event of the open slot.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<(Time, About)> {
        let due = self.due.get(self.next)?;
        Some((Time(self.start.0 + u64::from(due.since)), due.about))
    }

    /// The order of the first event of the open slot.
    pub(crate) fn peek_order(&self) -> Option<u32> {
        self.due.get(self.next).map(|due| due.order)
    }

    /// Whether a slot has been opened since this was asked.
    #[inline(always)]
    pub(crate) fn has_opened(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// What was in the open slot when it was opened.
    #[inline(always)]
    pub(crate) fn opened(&self) -> impl Iterator<Item = About> {
        self.due.iter().map(|due| due.about)
    }

    /// Where each of them leads; empty until somebody has looked.
    pub(crate) fn all_onward(&mut self) -> &mut Vec<Onward> {
        &mut self.onward
    }

    /// Where the first event of the open slot leads.
    #[inline(always)]
    pub(crate) fn onward(&self) -> Onward {
        self.onward.get(self.next).copied().unwrap_or(Onward::UNKNOWN)
    }

    /// Take the first event of the open slot.
    #[inline(always)]
    pub(crate) fn pop(&mut self) {
        self.next += 1;
    }

    /// Whether the open slot has been emptied.
    fn is_done(&self) -> bool {
        self.next >= self.due.len()
    }

    /// The first event if its slot begins no later than `limit`: opens slots up to there.
    pub(crate) fn first(&mut self, limit: Time) -> Option<(Time, About)> {
        while self.is_done() {
            let slot = self.next_slot()?;
            if self.start_of(slot) > limit {
                return None;
            }
            self.open_slot(slot);
        }
        self.peek()
    }

    /// Nothing comes before `now` any more.
    pub(crate) fn advance(&mut self, now: Time) {
        if self.is_done() {
            self.current = self.current.max(self.slot(now).saturating_sub(1));
        }
    }

    /// When the next event comes, or a bound below it.
    pub(crate) fn next_at(&self) -> Option<Time> {
        match self.peek() {
            Some((at, _)) => Some(at),
            None => self.next_slot().map(|slot| self.start_of(slot)),
        }
    }

    /// The first occupied slot after `current`.
    fn next_slot(&self) -> Option<u64> {
        if self.heads.is_empty() {
            return None;
        }
        let start = self.index(self.current + 1);
        let words = self.occupied.len();
        let first = self.occupied[start / 64] & (u64::MAX << (start % 64));
        let found = (0..=words).find_map(|n| {
            let word = (start / 64 + n) % words;
            let bits = if n == 0 { first } else { self.occupied[word] };
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        })?;
        let distance = self.index(found as u64 + self.heads.len() as u64 - start as u64);
        Some(self.current + 1 + distance as u64)
    }

    fn open_slot(&mut self, slot: u64) {
        self.fresh = true;
        self.onward.clear();
        self.current = slot;
        self.start = self.start_of(slot);
        let index = self.index(slot);
        let mut at = std::mem::replace(&mut self.heads[index], NIL);
        self.occupied[index / 64] &= !(1 << (index % 64));
        let (keys, about) = &mut self.unsorted;
        keys.clear();
        about.clear();
        while let Some(chunk) = self.chunks.get(at as usize) {
            let len = (chunk.len as usize).min(CHUNK_EVENTS);
            keys.extend_from_slice(&chunk.keys[..len]);
            about.extend_from_slice(&chunk.about[..len]);
            self.free.push(at);
            at = chunk.next;
        }
        self.sort();
    }

    /// Put the events of a slot in order. Not always a handful: hosts that start together stay in step,
    /// and their events tie.
    fn sort(&mut self) {
        let events = self.unsorted.1.len();
        self.next = 0;
        self.due.clear();
        self.due.resize(events, NOT_DUE);
        if events <= COUNTED_MAX {
            self.sort_by_counting(events);
        } else {
            self.sort_by_comparing();
        }
    }

    fn sort_by_counting(&mut self, events: usize) {
        let bits = self.bits;
        let mask = (1 << bits) - 1;
        let (keys, about) = &mut self.unsorted;
        // No key is below zero, so what fills the last group is later than none.
        keys.resize(events.next_multiple_of(GROUP), -1);
        for (&key, &about) in keys.iter().zip(&*about) {
            let mut place = events - 1 - later(keys, key);
            let mut due = &mut self.due[place];
            // A timer of a host that has been moved away and back.
            while due.about != About::NOTHING {
                place -= 1;
                due = &mut self.due[place];
            }
            *due = Due { since: key as u32 >> bits, order: key as u32 & mask, about };
        }
    }

    fn sort_by_comparing(&mut self) {
        let (keys, about) = &self.unsorted;
        self.places.clear();
        self.places.extend((0..).zip(keys).map(|(n, &key)| (key as u64) << 32 | n));
        self.places.sort_unstable();
        for (n, place) in self.places.iter().enumerate() {
            self.due[n] = self.due((place >> 32) as Key, about[*place as u32 as usize]);
        }
    }

    /// What every event is about.
    pub(crate) fn entries(&self) -> impl Iterator<Item = About> {
        let chunks = self.heads.iter().flat_map(|&head| {
            std::iter::successors(self.chunks.get(head as usize), |chunk| {
                self.chunks.get(chunk.next as usize)
            })
        });
        let waiting = chunks.flat_map(|chunk| &chunk.about[..chunk.len as usize]);
        let open = self.due.iter().skip(self.next).map(|due| &due.about);
        waiting.chain(open).copied()
    }
}

/// How many of `keys`, whole groups of them, are later than `key`. Comparing all with all takes no branch
/// that could be mispredicted, and processors do a group at a time.
#[inline(always)]
fn later(keys: &[Key], key: Key) -> usize {
    let mut later = [0; GROUP];
    for group in keys.as_chunks::<GROUP>().0 {
        for (count, &other) in later.iter_mut().zip(group) {
            *count += i32::from(other > key);
        }
    }
    later.iter().sum::<i32>() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever falls into a slot, before and after it is opened, comes out in order: equal timers too.
    #[test]
    fn a_slot_comes_out_in_order() {
        let draw = endpoint::Draw::new(1, endpoint::Purpose::new("test"), 0);
        let purpose = endpoint::Purpose::new("wheel");
        let mut n = 0;
        let mut below = |bound| {
            n += 1;
            draw.below(purpose, n, bound)
        };
        for round in 1..400 {
            let span = Span { horizon: Dur(1 << 22), frame: Dur(1 << 20) };
            let mut wheel = Wheel::new(1000, 16, span);
            // All in the slot after the next, with many ties.
            let start = 2 << wheel.shift;
            let mut due = Vec::new();
            let mut push = |wheel: &mut Wheel, least: u64, order: u32| {
                let at = Time(start + least + 3 * below(8));
                wheel.push(order, About::new(About::TIMER, order, 0), at);
                due.push((at, order));
                at
            };
            for i in 0..round {
                push(&mut wheel, 0, i * 7 % 50);
            }
            let mut popped = Vec::new();
            while let Some((at, about)) = wheel.first(Time::NEVER) {
                assert_eq!(wheel.peek_order(), Some(about.link()));
                wheel.pop();
                popped.push((at, about.link()));
                if popped.len() % 5 == 0 && popped.len() < 100 {
                    push(&mut wheel, at.0 - start + 1, 999);
                }
            }
            due.sort_unstable();
            assert_eq!(popped, due);
        }
    }
}
