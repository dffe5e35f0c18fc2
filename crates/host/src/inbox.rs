//! Messages being reassembled. Each byte is placed once, each message delivered once.

use std::collections::BTreeMap;
use std::ops::Range;

use endpoint::RangeSet;
use units::{HostId, MsgId, MsgKey};

use crate::link::Said;

/// What the endpoint wants contradicts what came before: bytes placed twice, beyond the limits, or
/// after the end of their message, or a message delivered twice or with a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

/// The unfinished messages to this host, and which ones are over.
#[derive(Debug)]
pub(crate) struct Inbox {
    open: BTreeMap<MsgKey, Assembly>,
    /// The messages in `open`, by their number.
    order: BTreeMap<u64, MsgKey>,
    /// The number of the next message.
    next: u64,
    /// Which messages of each source are over.
    over: BTreeMap<HostId, Over>,
    /// Bytes of all buffers in `open`.
    buffered: u64,
    /// Empty pieces of messages that were delivered, for later ones: their memory need not be had
    /// from the kernel again. With `buffered` they are within `max_buffered`.
    spare: Vec<Vec<u8>>,
    max_message: u64,
    max_buffered: u64,
}

/// The messages of one source that are over.
#[derive(Debug, Default)]
struct Over {
    /// All below this one are, says the source.
    oldest: MsgId,
    /// Ids of those that were delivered or given up. What is below `oldest` is one range; behind it
    /// a message to another host is a gap.
    ids: RangeSet,
}

#[derive(Debug, Default)]
struct Assembly {
    /// How many messages began before this one.
    nth: u64,
    /// Its bytes in pieces of [`CHUNK`] by their number, each as long as the last byte in it needs:
    /// a byte far behind all others costs no more than a piece. The first has as much memory as it
    /// needs, most messages are short; others have that of a whole piece.
    chunks: BTreeMap<u64, Vec<u8>>,
    placed: RangeSet,
    /// What its first packet said.
    said: Said,
}

/// Bytes of a piece of a message. A small one is cheap to zero, a large one to find.
const CHUNK: u64 = 16 << 10;
/// The most pieces that are kept: four messages of a megabyte.
const SPARE: usize = 256;

/// The parts of the bytes from `offset` to `end` that lie in one piece each: its number, and where
/// in it.
fn parts(offset: u64, end: u64) -> impl Iterator<Item = (u64, Range<usize>)> {
    let numbers = offset / CHUNK..end.div_ceil(CHUNK);
    numbers.map(move |n| {
        let within = |at: u64| (at.clamp(n * CHUNK, (n + 1) * CHUNK) - n * CHUNK) as usize;
        (n, within(offset)..within(end))
    })
}

/// Bytes of memory of piece `n` of a message, of which `len` bytes are in use.
fn memory(n: u64, len: usize) -> u64 {
    if n == 0 { len as u64 } else { CHUNK }
}

impl Assembly {
    /// Bytes of memory that the bytes from `offset` to `end` would need beside what there is.
    fn growth(&self, offset: u64, end: u64) -> u64 {
        let grows = |(n, part): (u64, Range<usize>)| {
            let have = self.chunks.get(&n).map_or(0, |chunk| memory(n, chunk.len()));
            memory(n, part.end).saturating_sub(have)
        };
        parts(offset, end).map(grows).sum()
    }

    /// Copy `payload` to `offset`; into `spare` pieces if there are any.
    fn write(&mut self, offset: u64, mut payload: &[u8], spare: &mut Vec<Vec<u8>>) {
        for (n, part) in parts(offset, offset + payload.len() as u64) {
            let (here, rest) = payload.split_at(part.len());
            let chunk = self.chunks.entry(n).or_insert_with(|| match n {
                0 => Vec::new(),
                _ => spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK as usize)),
            });
            if chunk.len() == part.start {
                chunk.extend_from_slice(here);
            } else {
                chunk.resize(chunk.len().max(part.end), 0);
                chunk[part].copy_from_slice(here);
            }
            payload = rest;
        }
    }

    /// Bytes of memory that it has.
    fn memory(&self) -> u64 {
        self.chunks.iter().map(|(&n, chunk)| memory(n, chunk.len())).sum()
    }

    /// The bytes of a message without holes. Its pieces are spare then, up to `most`.
    fn into_bytes(mut self, spare: &mut Vec<Vec<u8>>, most: usize) -> Vec<u8> {
        if self.chunks.len() <= 1 {
            return self.chunks.pop_first().unwrap_or_default().1;
        }
        let mut bytes = Vec::with_capacity(self.chunks.values().map(Vec::len).sum());
        for (n, mut chunk) in self.chunks {
            bytes.extend_from_slice(&chunk);
            if n > 0 && spare.len() < most {
                chunk.clear();
                spare.push(chunk);
            }
        }
        bytes
    }
}

impl Inbox {
    /// An empty inbox that keeps messages of up to `max_message` bytes and `max_buffered` bytes of
    /// unfinished messages, not counting the oldest one.
    pub(crate) fn new(max_message: u64, max_buffered: u64) -> Self {
        Self {
            open: BTreeMap::new(),
            order: BTreeMap::new(),
            next: 0,
            over: BTreeMap::new(),
            buffered: 0,
            spare: Vec::new(),
            max_message,
            max_buffered,
        }
    }

    /// How many pieces may be spare.
    fn spare_max(&self) -> usize {
        let room = self.max_buffered.saturating_sub(self.buffered) / CHUNK;
        usize::try_from(room).map_or(SPARE, |room| room.min(SPARE))
    }

    /// Whether there is room for the bytes of `key` from `offset` to `end`. Asked before the
    /// endpoint sees the packet, so that what it then places is bounded.
    ///
    /// The message that began first may always grow, so that some message can always finish. The
    /// others never have more than `max_buffered` bytes together.
    pub(crate) fn admits(&self, key: MsgKey, offset: u64, end: u64) -> bool {
        // The last id of all has no successor, which `over` needs; no counter gets there.
        if key.id.0 == u64::MAX || end > self.max_message {
            return false;
        }
        if self.order.first_key_value().is_none_or(|(_, &oldest)| oldest == key) {
            return true;
        }
        let growth = match self.open.get(&key) {
            Some(assembly) => assembly.growth(offset, end),
            None => Assembly::default().growth(offset, end),
        };
        growth == 0 || self.buffered.saturating_add(growth) <= self.max_buffered
    }

    /// Copy `payload` to `offset` of `key`, which must have been admitted, and says `said`.
    pub(crate) fn place(
        &mut self,
        key: MsgKey,
        offset: u64,
        payload: &[u8],
        said: Said,
    ) -> Result<(), Contradiction> {
        let len = payload.len() as u64;
        let end = offset.checked_add(len).ok_or(Contradiction)?;
        if self.is_over(key) || !self.admits(key, offset, end) {
            return Err(Contradiction);
        }
        let assembly = self.open.entry(key).or_insert_with(|| {
            let nth = self.next;
            self.next += 1;
            self.order.insert(nth, key);
            Assembly { nth, said, ..Assembly::default() }
        });
        if assembly.placed.insert(offset..end) != len {
            return Err(Contradiction);
        }
        self.buffered += assembly.growth(offset, end);
        assembly.write(offset, payload, &mut self.spare);
        self.spare.truncate(self.spare_max());
        Ok(())
    }

    /// All of `key` is `payload`: what placing and delivering it would give, if nothing has come of
    /// it yet.
    pub(crate) fn whole(&mut self, key: MsgKey, payload: &[u8]) -> Option<Vec<u8>> {
        let fresh = !self.open.contains_key(&key) && self.admits(key, 0, payload.len() as u64);
        (fresh && self.end(key)).then(|| payload.to_vec())
    }

    /// Take `key` out whole, with what it says. Its length is what has been placed, without a hole.
    pub(crate) fn deliver(&mut self, key: MsgKey) -> Result<(Vec<u8>, Said), Contradiction> {
        let assembly = self.remove(key);
        let end = assembly.placed.iter().next_back().map_or(0, |last| last.end);
        if !self.end(key) || assembly.placed.prefix() != end {
            return Err(Contradiction);
        }
        let (said, most) = (assembly.said, self.spare_max());
        Ok((assembly.into_bytes(&mut self.spare, most), said))
    }

    /// Drop what there is of `key`, which the endpoint has failed.
    pub(crate) fn forget(&mut self, key: MsgKey) {
        self.remove(key);
    }

    /// Drop what there is of `key`, and take no more of it.
    pub(crate) fn give_up(&mut self, key: MsgKey) {
        self.remove(key);
        self.end(key);
    }

    /// All messages of `src` to this host below `oldest` are over, says their sender: what is
    /// remembered of them is one number. Who says so too early harms its own messages only. False
    /// if that was known.
    pub(crate) fn is_over_below(&mut self, src: HostId, oldest: MsgId) -> bool {
        let over = self.over.entry(src).or_default();
        if oldest <= over.oldest {
            return false;
        }
        over.oldest = oldest;
        if over.ids.prefix() < oldest.0 {
            over.ids.insert(0..oldest.0);
        }
        true
    }

    /// `src` has started again: of its former life no packet is taken any more, so that nothing of
    /// it need be kept.
    pub(crate) fn restart(&mut self, src: HostId) {
        self.over.remove(&src);
        let open: Vec<MsgKey> = self.open.keys().filter(|key| key.src == src).copied().collect();
        open.into_iter().for_each(|key| self.forget(key));
    }

    /// Whether `key` was delivered or given up.
    pub(crate) fn is_over(&self, key: MsgKey) -> bool {
        self.over.get(&key.src).is_some_and(|over| over.ids.contains(key.id.0))
    }

    /// Note that `key` is over. False if it was before.
    fn end(&mut self, key: MsgKey) -> bool {
        let over = self.over.entry(key.src).or_default();
        over.ids.insert(key.id.0..key.id.0.saturating_add(1)) > 0
    }

    fn remove(&mut self, key: MsgKey) -> Assembly {
        let assembly = self.open.remove(&key);
        if let Some(assembly) = &assembly {
            self.order.remove(&assembly.nth);
            self.buffered -= assembly.memory();
        }
        assembly.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: MsgKey = MsgKey { src: HostId(1), id: MsgId(0) };
    const SAID: Said = (3, 4);

    #[test]
    fn pieces_in_any_order_make_the_message() {
        let mut inbox = Inbox::new(100, 100);
        inbox.place(KEY, 3, b"lime", SAID).unwrap();
        inbox.place(KEY, 7, b"", SAID).unwrap();
        inbox.place(KEY, 0, b"tri", SAID).unwrap();
        assert_eq!(inbox.deliver(KEY).unwrap(), (b"trilime".to_vec(), SAID));
        assert_eq!(inbox.buffered, 0);
        let empty = MsgKey { id: MsgId(1), ..KEY };
        assert_eq!(
            inbox.deliver(empty).unwrap(),
            (vec![], (0, 0)),
            "a message of no bytes needs no packet"
        );
    }

    #[test]
    fn a_message_in_one_packet_is_taken_once_and_not_if_some_of_it_has_come() {
        let mut inbox = Inbox::new(100, 10);
        let key = |id| MsgKey { id: MsgId(id), ..KEY };
        assert_eq!(inbox.whole(key(0), b"lime"), Some(b"lime".to_vec()));
        assert_eq!((inbox.whole(key(0), b"lime"), inbox.is_over(key(0))), (None, true));
        inbox.place(key(1), 0, b"tr", SAID).unwrap();
        assert_eq!((inbox.whole(key(1), b"lime"), inbox.is_over(key(1))), (None, false));
        assert_eq!(inbox.whole(key(2), &[7; 11]), None, "no room beside the oldest");
        assert_eq!(inbox.whole(key(2), &[7; 101]), None, "too long");
        assert_eq!((inbox.buffered, inbox.open.len()), (2, 1));
    }

    #[test]
    fn nothing_is_placed_or_delivered_twice_or_with_a_hole() {
        let mut inbox = Inbox::new(100, 100);
        let key = |id| MsgKey { id: MsgId(id), ..KEY };
        inbox.place(key(0), 0, b"abc", SAID).unwrap();
        assert_eq!(inbox.place(key(0), 2, b"cd", SAID), Err(Contradiction));

        inbox.place(key(1), 0, b"abc", SAID).unwrap();
        inbox.deliver(key(1)).unwrap();
        assert_eq!(inbox.place(key(1), 3, b"d", SAID), Err(Contradiction));
        assert_eq!(inbox.deliver(key(1)), Err(Contradiction));

        inbox.place(key(7), 1, b"b", SAID).unwrap();
        assert_eq!(inbox.deliver(key(7)), Err(Contradiction));

        inbox.give_up(key(0));
        assert!(inbox.is_over(key(0)) && inbox.place(key(0), 3, b"d", SAID).is_err());
        assert_eq!((inbox.buffered, inbox.open.len(), inbox.order.len()), (0, 0, 0));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_message_can_always_finish() {
        let mut inbox = Inbox::new(10, 6);
        let other = MsgKey { id: MsgId(1), ..KEY };
        let third = MsgKey { id: MsgId(2), ..KEY };
        assert!(inbox.admits(KEY, 0, 10) && !inbox.admits(KEY, 0, 11));
        inbox.place(other, 0, b"abc", SAID).unwrap();
        inbox.place(KEY, 0, b"abc", SAID).unwrap();
        assert!(inbox.admits(KEY, 0, 3), "no growth");
        assert!(!inbox.admits(KEY, 3, 4) && !inbox.admits(third, 0, 1), "full");
        inbox.place(other, 0, b"", SAID).unwrap();
        inbox.place(other, 3, b"defghij", SAID).unwrap();
        assert!(inbox.admits(KEY, 0, 3) && !inbox.admits(KEY, 3, 4), "full");
        assert!(inbox.place(other, u64::MAX, b"x", SAID).is_err());
        assert!(!inbox.admits(MsgKey { id: MsgId(u64::MAX), ..KEY }, 0, 1));
        inbox.deliver(other).unwrap();
        assert!(inbox.admits(KEY, 3, 10), "now the oldest");
        assert!(inbox.admits(third, 0, 3) && !inbox.admits(third, 0, 4));
        inbox.forget(KEY);
        assert!(inbox.admits(third, 0, 10));
    }

    /// One byte at the end of the longest message that there may be, which a stranger can claim.
    #[test]
    fn a_byte_far_behind_costs_no_more_than_a_piece() {
        const LONGEST: u64 = 1 << 40;
        let mut inbox = Inbox::new(LONGEST, LONGEST);
        inbox.place(KEY, LONGEST - 1, b"x", SAID).unwrap();
        assert_eq!(inbox.buffered, CHUNK);
        inbox.place(KEY, 0, b"y", SAID).unwrap();
        assert_eq!(inbox.buffered, CHUNK + 1);
        assert_eq!(inbox.deliver(KEY), Err(Contradiction), "a hole");
        assert_eq!(inbox.buffered, 0);
    }

    #[test]
    fn bytes_over_several_pieces_in_any_order_make_the_message() {
        let key = KEY;
        let len = 5 * CHUNK + 77;
        let mut whole = vec![0; len as usize];
        endpoint::payload::fill(key, 0, &mut whole);
        for step in [1_400, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5] {
            let starts: Vec<u64> = (0..len).step_by(step as usize).collect();
            let (even, odd): (Vec<_>, Vec<_>) = starts.iter().partition(|&at| at / step % 2 == 0);
            let mut inbox = Inbox::new(len, len);
            for offset in odd.into_iter().rev().chain(even) {
                let end = len.min(offset + step);
                let before = inbox.buffered;
                assert!(inbox.admits(key, offset, end));
                inbox.place(key, offset, &whole[offset as usize..end as usize], SAID).unwrap();
                assert!(inbox.buffered - before <= step + 2 * CHUNK, "{step}");
            }
            assert_eq!(inbox.buffered, 6 * CHUNK);
            assert!(inbox.deliver(key).unwrap().0 == whole, "{step}");
            assert_eq!((inbox.buffered, inbox.spare.len()), (0, 5), "{step}");
        }
    }

    #[test]
    fn pieces_are_used_again_and_count_as_long_as_they_are_kept() {
        let mut inbox = Inbox::new(1 << 20, 4 * CHUNK);
        let key = |id| MsgKey { id: MsgId(id), ..KEY };
        let piece = vec![7; CHUNK as usize];
        (0..3).for_each(|n| inbox.place(key(0), n * CHUNK, &piece, SAID).unwrap());
        assert_eq!(inbox.deliver(key(0)).unwrap().0, vec![7; 3 * CHUNK as usize]);
        assert_eq!(inbox.spare.len(), 2, "not the first, which may be small");
        inbox.place(key(1), CHUNK, b"x", SAID).unwrap();
        assert_eq!((inbox.buffered, inbox.spare.len()), (CHUNK, 1), "whole, for a byte");
        inbox.place(key(1), 2 * CHUNK, b"y", SAID).unwrap();
        (0..2).for_each(|n| inbox.place(key(1), 3 * CHUNK + n * CHUNK, b"z", SAID).unwrap());
        assert_eq!((inbox.buffered, inbox.spare.len()), (4 * CHUNK, 0));
        inbox.place(key(1), 0, &piece, SAID).unwrap();
        assert!(inbox.deliver(key(1)).is_err(), "holes");
        (0..4).for_each(|n| inbox.place(key(2), n * CHUNK, &piece, SAID).unwrap());
        inbox.deliver(key(2)).unwrap();
        assert_eq!(inbox.spare.len(), 3);
        (3..5).for_each(|id| inbox.place(key(id), 0, &piece, SAID).unwrap());
        assert_eq!((inbox.buffered, inbox.spare.len()), (2 * CHUNK, 2), "the limit is of both");
    }

    /// A source that sends every second of its messages to somebody else.
    #[test]
    fn what_is_remembered_of_a_long_life_is_one_range_and_what_is_open() {
        let mut inbox = Inbox::new(100, 100);
        for id in (0..10_000).step_by(2) {
            let key = MsgKey { id: MsgId(id), ..KEY };
            inbox.is_over_below(KEY.src, MsgId(id.saturating_sub(20)));
            inbox.place(key, 0, b"abc", SAID).unwrap();
            inbox.deliver(key).unwrap();
            assert!(inbox.is_over(key) && inbox.over[&KEY.src].ids.fragments() <= 12);
        }
        assert!(
            !inbox.is_over_below(KEY.src, MsgId(5)) && inbox.is_over_below(KEY.src, MsgId(9_999))
        );
        assert!(inbox.is_over(MsgKey { id: MsgId(9_000), ..KEY }), "late news change nothing");
        inbox.place(MsgKey { id: MsgId(20_000), ..KEY }, 0, b"abc", SAID).unwrap();
        inbox.restart(KEY.src);
        assert!(!inbox.is_over(KEY));
        assert_eq!((inbox.buffered, inbox.open.len(), inbox.order.len()), (0, 0, 0));
    }
}
