//! A sink for whole messages that writes them to the host's memory, as RDMA does
//! (specs/nanotransport.md#2, step 7; specs/nanotransport.md#14): the host registers regions, a
//! message names one and a place in it, and the host finds an entry in a completion queue.
//!
//! Reassembly has the message whole before anything is written, so that nothing of a message which
//! never completes is.

use std::collections::{BTreeMap, VecDeque};

use thiserror::Error;
use units::HostId;

/// Bytes at the head of a message that say where the rest belongs: the region's key (4) and the
/// offset in it (8), big-endian.
pub(crate) const HEADER: usize = 12;

/// Why a write is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Shorter than its header.
    #[error("a message without a place")]
    Short,
    /// No region has this key.
    #[error("no region has key {0:#010x}")]
    Key(u32),
    /// The region may be read only.
    #[error("the region is not for writing")]
    ReadOnly,
    /// Not wholly inside the region.
    #[error("{len} bytes at {offset} reach beyond the region's {size}")]
    Bounds {
        /// Where it was to begin.
        offset: u64,
        /// Bytes to write.
        len: usize,
        /// Bytes of the region.
        size: usize,
    },
}

/// An entry of the completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Who has written.
    pub(crate) src: HostId,
    /// What, or why not.
    pub(crate) outcome: Result<Written, Refusal>,
}

/// Bytes that have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The region's key.
    pub(crate) key: u32,
    /// Where they begin.
    pub(crate) offset: u64,
    /// How many.
    pub(crate) len: usize,
}

#[derive(Debug)]
struct Region {
    bytes: Vec<u8>,
    writable: bool,
}

/// The memory that a host has registered, and what has become of the writes to it.
#[derive(Debug)]
pub(crate) struct Memory {
    regions: BTreeMap<u32, Region>,
    completions: VecDeque<Completion>,
    room: usize,
    refused: u64,
}

impl Memory {
    /// Nothing is registered. The completion queue has `room` entries: without a free one nothing
    /// is written.
    #[must_use]
    pub(crate) const fn new(room: usize) -> Self {
        Self { regions: BTreeMap::new(), completions: VecDeque::new(), room, refused: 0 }
    }

    /// Register `bytes` under `key`. Returns whether the key was free.
    pub(crate) fn register(&mut self, key: u32, bytes: Vec<u8>, writable: bool) -> bool {
        let free = !self.regions.contains_key(&key);
        if free {
            self.regions.insert(key, Region { bytes, writable });
        }
        free
    }

    /// Take the region back: what comes for it is refused.
    pub(crate) fn deregister(&mut self, key: u32) -> Option<Vec<u8>> {
        self.regions.remove(&key).map(|region| region.bytes)
    }

    /// What is in a region.
    #[must_use]
    pub(crate) fn region(&self, key: u32) -> Option<&[u8]> {
        self.regions.get(&key).map(|region| region.bytes.as_slice())
    }

    /// Write a `message` of `src` that is whole. Its transport has acknowledged it before: a
    /// refusal is for the host here, in the completion queue and in the count.
    pub(crate) fn write(&mut self, src: HostId, message: &[u8]) {
        if self.completions.len() >= self.room {
            self.refused += 1;
            return;
        }
        let outcome = self.place(message);
        self.refused += u64::from(outcome.is_err());
        self.completions.push_back(Completion { src, outcome });
    }

    fn place(&mut self, message: &[u8]) -> Result<Written, Refusal> {
        let (header, payload) = message.split_first_chunk::<HEADER>().ok_or(Refusal::Short)?;
        let [k0, k1, k2, k3, offset @ ..] = *header;
        let (key, offset) = (u32::from_be_bytes([k0, k1, k2, k3]), u64::from_be_bytes(offset));
        let region = self.regions.get_mut(&key).ok_or(Refusal::Key(key))?;
        if !region.writable {
            return Err(Refusal::ReadOnly);
        }
        let (len, size) = (payload.len(), region.bytes.len());
        let bounds = Refusal::Bounds { offset, len, size };
        let start = usize::try_from(offset).map_err(|_| bounds)?;
        let end = start.checked_add(len).ok_or(bounds)?;
        region.bytes.get_mut(start..end).ok_or(bounds)?.copy_from_slice(payload);
        Ok(Written { key, offset, len })
    }

    /// The oldest entry of the completion queue, which is taken off.
    pub(crate) fn poll(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// Writes that were refused.
    #[must_use]
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }
}

/// The message that writes `bytes` at `offset` of the region that has `key` at the other end.
#[must_use]
pub(crate) fn write_message(key: u32, offset: u64, bytes: &[u8]) -> Vec<u8> {
    let mut message = key.to_be_bytes().to_vec();
    message.extend(offset.to_be_bytes());
    message.extend(bytes);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    const SRC: HostId = HostId(4);

    fn outcome(memory: &mut Memory, message: &[u8]) -> Result<Written, Refusal> {
        memory.write(SRC, message);
        let completion = memory.poll().unwrap();
        assert_eq!((completion.src, memory.poll()), (SRC, None), "one entry for each write");
        completion.outcome
    }

    #[test]
    fn bytes_land_where_the_message_says_and_nowhere_else() {
        let mut memory = Memory::new(4);
        assert!(memory.register(7, vec![0xee; 10], true));
        assert!(!memory.register(7, vec![], true), "the key is taken");
        let written = outcome(&mut memory, &write_message(7, 3, b"abcd"));
        assert_eq!(written, Ok(Written { key: 7, offset: 3, len: 4 }));
        assert_eq!(memory.region(7).unwrap(), b"\xee\xee\xeeabcd\xee\xee\xee");
        assert!(outcome(&mut memory, &write_message(7, 0, b"0123456789")).is_ok(), "to its end");
        assert_eq!(outcome(&mut memory, &write_message(7, 10, b"")).map(|w| w.len), Ok(0));
    }

    #[test]
    fn what_is_not_allowed_is_refused_counted_and_changes_nothing() {
        let mut memory = Memory::new(4);
        memory.register(1, vec![0; 8], true);
        memory.register(2, vec![0; 8], false);
        let bounds = |offset, len| Refusal::Bounds { offset, len, size: 8 };
        let refused = [
            (write_message(9, 0, b"x"), Refusal::Key(9)),
            (write_message(2, 0, b"x"), Refusal::ReadOnly),
            (write_message(1, 5, b"abcd"), bounds(5, 4)),
            (write_message(1, 9, b""), bounds(9, 0)),
            (write_message(1, u64::MAX, b"ab"), bounds(u64::MAX, 2)),
            (write_message(1, 0, b"")[..11].to_vec(), Refusal::Short),
        ];
        for (message, why) in &refused {
            assert_eq!(outcome(&mut memory, message), Err(*why));
        }
        assert_eq!(memory.refused(), refused.len() as u64);
        for i in 0..5 {
            memory.write(SRC, &write_message(1, i, b"a"));
        }
        assert_eq!(memory.region(1).unwrap(), b"aaaa\0\0\0\0", "the queue is full at the fifth");
        assert_eq!(memory.refused(), refused.len() as u64 + 1);
        assert_eq!(std::iter::from_fn(|| memory.poll()).count(), 4);
        assert!(memory.deregister(1).is_some());
        assert_eq!(outcome(&mut memory, &write_message(1, 0, b"a")), Err(Refusal::Key(1)));
    }
}
