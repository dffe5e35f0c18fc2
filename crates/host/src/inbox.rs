//! Messages being reassembled. Each byte is placed once, each message delivered once.

use std::collections::BTreeMap;

use endpoint::RangeSet;
use units::{HostId, MsgKey};

use crate::Breach;

/// The unfinished messages to this host, and which ones are finished.
#[derive(Debug)]
pub(crate) struct Inbox {
    open: BTreeMap<MsgKey, Assembly>,
    /// Ids of delivered messages per source. Ids are counters, so that the set is mostly one
    /// range; a source that also sends to others costs 16 bytes per gap.
    done: BTreeMap<HostId, RangeSet>,
    /// Bytes of all buffers in `open`.
    buffered: u64,
    max_message: u64,
    max_buffered: u64,
}

#[derive(Debug, Default)]
struct Assembly {
    bytes: Vec<u8>,
    placed: RangeSet,
}

impl Inbox {
    /// An empty inbox that keeps messages of up to `max_message` bytes and `max_buffered` bytes of
    /// unfinished messages.
    pub(crate) fn new(max_message: u64, max_buffered: u64) -> Self {
        Self {
            open: BTreeMap::new(),
            done: BTreeMap::new(),
            buffered: 0,
            max_message,
            max_buffered,
        }
    }

    /// Whether there is room for the bytes of `key` up to `end`. Asked before the endpoint sees
    /// the packet, so that what it then places is bounded.
    pub(crate) fn admits(&self, key: MsgKey, end: u64) -> bool {
        let have = self.open.get(&key).map_or(0, |a| a.bytes.len() as u64);
        let growth = end.saturating_sub(have);
        // The last id of all has no successor, which `done` needs; no counter gets there.
        key.id.0 != u64::MAX
            && end <= self.max_message
            && self.buffered.saturating_add(growth) <= self.max_buffered
    }

    /// Copy `payload` to `offset` of `key`, which must have been admitted.
    pub(crate) fn place(&mut self, key: MsgKey, offset: u64, payload: &[u8]) -> Result<(), Breach> {
        let len = payload.len() as u64;
        let elsewhere = Breach::PlacedElsewhere { key, offset, len: len as u32 };
        let end = offset.checked_add(len).filter(|&end| self.admits(key, end)).ok_or(elsewhere)?;
        let twice = Breach::PlacedTwice { key, offset, len: len as u32 };
        if self.is_done(key) {
            return Err(twice);
        }
        let assembly = self.open.entry(key).or_default();
        if assembly.placed.insert(offset..end) != len {
            return Err(twice);
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
    pub(crate) fn deliver(&mut self, key: MsgKey) -> Result<Vec<u8>, Breach> {
        if self.done.entry(key.src).or_default().insert(key.id.0..key.id.0.saturating_add(1)) == 0 {
            return Err(Breach::DeliveredTwice(key));
        }
        let Assembly { bytes, placed } = self.open.remove(&key).unwrap_or_default();
        self.buffered -= bytes.len() as u64;
        if placed.prefix() != bytes.len() as u64 {
            return Err(Breach::DeliveredWithHole(key));
        }
        Ok(bytes)
    }

    /// Drop what there is of `key`, which has failed.
    pub(crate) fn forget(&mut self, key: MsgKey) {
        if let Some(assembly) = self.open.remove(&key) {
            self.buffered -= assembly.bytes.len() as u64;
        }
    }

    fn is_done(&self, key: MsgKey) -> bool {
        self.done.get(&key.src).is_some_and(|ids| ids.contains(key.id.0))
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
        let again = Breach::PlacedTwice { key: key(0), offset: 2, len: 2 };
        assert_eq!(inbox.place(key(0), 2, b"cd"), Err(again));

        inbox.place(key(1), 0, b"abc").unwrap();
        inbox.deliver(key(1)).unwrap();
        let late = Breach::PlacedTwice { key: key(1), offset: 3, len: 1 };
        assert_eq!(inbox.place(key(1), 3, b"d"), Err(late));
        assert_eq!(inbox.deliver(key(1)), Err(Breach::DeliveredTwice(key(1))));

        inbox.place(key(7), 1, b"b").unwrap();
        assert_eq!(inbox.deliver(key(7)), Err(Breach::DeliveredWithHole(key(7))));
    }

    #[test]
    fn memory_is_bounded() {
        let mut inbox = Inbox::new(10, 15);
        let other = MsgKey { id: MsgId(1), ..KEY };
        assert!(inbox.admits(KEY, 10) && !inbox.admits(KEY, 11));
        inbox.place(KEY, 8, b"ij").unwrap();
        assert!(inbox.admits(KEY, 10), "no growth");
        assert!(inbox.admits(other, 5) && !inbox.admits(other, 6));
        assert!(inbox.place(other, u64::MAX, b"x").is_err());
        assert!(!inbox.admits(MsgKey { id: MsgId(u64::MAX), ..KEY }, 1));
        inbox.forget(KEY);
        assert!(inbox.admits(other, 10));
    }
}
