//! Messages being reassembled. Each byte is placed once, each message delivered once.

use std::collections::BTreeMap;

use endpoint::RangeSet;
use units::{HostId, MsgKey};

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
    /// Ids of the messages that were delivered or given up, per source. Ids are counters, so that
    /// the set is mostly one range per life of the source; a source that also sends to others
    /// costs 16 bytes per gap.
    over: BTreeMap<HostId, RangeSet>,
    /// Bytes of all buffers in `open`.
    buffered: u64,
    max_message: u64,
    max_buffered: u64,
}

#[derive(Debug, Default)]
struct Assembly {
    /// How many messages began before this one.
    nth: u64,
    bytes: Vec<u8>,
    placed: RangeSet,
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
            max_message,
            max_buffered,
        }
    }

    /// Whether there is room for the bytes of `key` up to `end`. Asked before the endpoint sees
    /// the packet, so that what it then places is bounded.
    ///
    /// The message that began first may always grow, so that some message can always finish. The
    /// others never have more than `max_buffered` bytes together.
    pub(crate) fn admits(&self, key: MsgKey, end: u64) -> bool {
        let have = self.open.get(&key).map_or(0, |a| a.bytes.len() as u64);
        let growth = end.saturating_sub(have);
        let is_oldest = self.order.first_key_value().is_none_or(|(_, &oldest)| oldest == key);
        // The last id of all has no successor, which `over` needs; no counter gets there.
        key.id.0 != u64::MAX
            && end <= self.max_message
            && (is_oldest
                || growth == 0
                || self.buffered.saturating_add(growth) <= self.max_buffered)
    }

    /// Copy `payload` to `offset` of `key`, which must have been admitted.
    pub(crate) fn place(
        &mut self,
        key: MsgKey,
        offset: u64,
        payload: &[u8],
    ) -> Result<(), Contradiction> {
        let len = payload.len() as u64;
        let end = offset.checked_add(len).ok_or(Contradiction)?;
        if self.is_over(key) || !self.admits(key, end) {
            return Err(Contradiction);
        }
        let assembly = self.open.entry(key).or_insert_with(|| {
            let nth = self.next;
            self.next += 1;
            self.order.insert(nth, key);
            Assembly { nth, ..Assembly::default() }
        });
        if assembly.placed.insert(offset..end) != len {
            return Err(Contradiction);
        }
        let (start, end) = (offset as usize, end as usize);
        if assembly.bytes.len() < end {
            self.buffered += (end - assembly.bytes.len()) as u64;
            assembly.bytes.resize(end, 0);
        }
        assembly.bytes[start..end].copy_from_slice(payload);
        Ok(())
    }

    /// Take `key` out whole. Its length is what has been placed, without a hole.
    pub(crate) fn deliver(&mut self, key: MsgKey) -> Result<Vec<u8>, Contradiction> {
        let Assembly { bytes, placed, .. } = self.remove(key);
        if !self.end(key) || placed.prefix() != bytes.len() as u64 {
            return Err(Contradiction);
        }
        Ok(bytes)
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

    /// Whether `key` was delivered or given up.
    pub(crate) fn is_over(&self, key: MsgKey) -> bool {
        self.over.get(&key.src).is_some_and(|ids| ids.contains(key.id.0))
    }

    /// Note that `key` is over. False if it was before.
    fn end(&mut self, key: MsgKey) -> bool {
        let ids = self.over.entry(key.src).or_default();
        ids.insert(key.id.0..key.id.0.saturating_add(1)) > 0
    }

    fn remove(&mut self, key: MsgKey) -> Assembly {
        let assembly = self.open.remove(&key);
        if let Some(assembly) = &assembly {
            self.order.remove(&assembly.nth);
            self.buffered -= assembly.bytes.len() as u64;
        }
        assembly.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::MsgId;

    const KEY: MsgKey = MsgKey { src: HostId(1), id: MsgId(0) };

    #[test]
    fn pieces_in_any_order_make_the_message() {
        let mut inbox = Inbox::new(100, 100);
        inbox.place(KEY, 3, b"lime").unwrap();
        inbox.place(KEY, 7, b"").unwrap();
        inbox.place(KEY, 0, b"tri").unwrap();
        assert_eq!(inbox.deliver(KEY).unwrap(), b"trilime");
        assert_eq!(inbox.buffered, 0);
        let empty = MsgKey { id: MsgId(1), ..KEY };
        assert_eq!(inbox.deliver(empty).unwrap(), b"", "a message of no bytes needs no packet");
    }

    #[test]
    fn nothing_is_placed_or_delivered_twice_or_with_a_hole() {
        let mut inbox = Inbox::new(100, 100);
        let key = |id| MsgKey { id: MsgId(id), ..KEY };
        inbox.place(key(0), 0, b"abc").unwrap();
        assert_eq!(inbox.place(key(0), 2, b"cd"), Err(Contradiction));

        inbox.place(key(1), 0, b"abc").unwrap();
        inbox.deliver(key(1)).unwrap();
        assert_eq!(inbox.place(key(1), 3, b"d"), Err(Contradiction));
        assert_eq!(inbox.deliver(key(1)), Err(Contradiction));

        inbox.place(key(7), 1, b"b").unwrap();
        assert_eq!(inbox.deliver(key(7)), Err(Contradiction));

        inbox.give_up(key(0));
        assert!(inbox.is_over(key(0)) && inbox.place(key(0), 3, b"d").is_err());
        assert_eq!((inbox.buffered, inbox.open.len(), inbox.order.len()), (0, 0, 0));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_message_can_always_finish() {
        let mut inbox = Inbox::new(10, 6);
        let other = MsgKey { id: MsgId(1), ..KEY };
        let third = MsgKey { id: MsgId(2), ..KEY };
        assert!(inbox.admits(KEY, 10) && !inbox.admits(KEY, 11));
        inbox.place(other, 0, b"abc").unwrap();
        inbox.place(KEY, 0, b"abc").unwrap();
        assert!(inbox.admits(KEY, 3), "no growth");
        assert!(!inbox.admits(KEY, 4) && !inbox.admits(third, 1), "full");
        inbox.place(other, 0, b"").unwrap();
        inbox.place(other, 3, b"defghij").unwrap();
        assert!(inbox.admits(KEY, 3) && !inbox.admits(KEY, 4), "full");
        assert!(inbox.place(other, u64::MAX, b"x").is_err());
        assert!(!inbox.admits(MsgKey { id: MsgId(u64::MAX), ..KEY }, 1));
        inbox.deliver(other).unwrap();
        assert!(inbox.admits(KEY, 10), "now the oldest");
        assert!(inbox.admits(third, 3) && !inbox.admits(third, 4));
        inbox.forget(KEY);
        assert!(inbox.admits(third, 10));
    }
}
