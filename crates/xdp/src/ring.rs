//! The rings in which program and kernel hand each other parts of the UMEM: one side produces
//! entries, the other consumes them.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use rustix::net::xdp::XdpRingOffset;

use crate::memory::Memory;

/// Bytes of a word of an entry.
const WORD: usize = 8;

/// What both kinds of ring have.
struct Ring {
    memory: Memory,
    at: XdpRingOffset,
    size: u32,
    /// Words of an entry.
    words: usize,
    /// The counter of this side, of entries not yet shown to the other side, too.
    mine: u32,
}

impl Ring {
    fn new(
        socket: BorrowedFd<'_>,
        page: u64,
        at: XdpRingOffset,
        (size, words): (u32, usize),
    ) -> io::Result<Self> {
        let len = at.desc as usize + size as usize * words * WORD;
        Ok(Self { memory: Memory::of(socket, page, len)?, at, size, words, mine: 0 })
    }

    /// Where the words of the entry with this number are.
    fn entry(&self, number: u32) -> usize {
        let place = (number & (self.size - 1)) as usize;
        self.at.desc as usize + place * self.words * WORD
    }
}

/// A ring that the program fills: what is to be filled, what is to be sent.
pub(crate) struct Producer(Ring);

impl Producer {
    /// The ring of `socket` at `page`, of `size` (a power of two) entries of `words` words.
    pub(crate) fn new(
        socket: BorrowedFd<'_>,
        page: u64,
        at: XdpRingOffset,
        shape: (u32, usize),
    ) -> io::Result<Self> {
        Ring::new(socket, page, at, shape).map(Self)
    }

    /// Entries that the kernel has not taken, those not shown to it included.
    pub(crate) fn pending(&self) -> u32 {
        let taken = self.0.memory.u32(self.0.at.consumer as usize).load(Acquire);
        self.0.mine.wrapping_sub(taken)
    }

    /// Entries that fit.
    pub(crate) fn room(&self) -> u32 {
        self.0.size - self.pending()
    }

    /// Write an entry, for which there must be room. The kernel sees it from `show` on.
    pub(crate) fn put(&mut self, words: &[u64]) {
        debug_assert!(self.room() > 0 && words.len() == self.0.words);
        let at = self.0.entry(self.0.mine);
        for (n, word) in words.iter().enumerate() {
            self.0.memory.u64(at + n * WORD).store(*word, Relaxed);
        }
        self.0.mine = self.0.mine.wrapping_add(1);
    }

    pub(crate) fn show(&self) {
        self.0.memory.u32(self.0.at.producer as usize).store(self.0.mine, Release);
    }
}

/// A ring that the kernel fills: what has arrived, what has been sent.
pub(crate) struct Consumer(Ring);

impl Consumer {
    /// As [`Producer::new`].
    pub(crate) fn new(
        socket: BorrowedFd<'_>,
        page: u64,
        at: XdpRingOffset,
        shape: (u32, usize),
    ) -> io::Result<Self> {
        Ring::new(socket, page, at, shape).map(Self)
    }

    /// Entries that wait.
    pub(crate) fn waiting(&self) -> u32 {
        let made = self.0.memory.u32(self.0.at.producer as usize).load(Acquire);
        made.wrapping_sub(self.0.mine)
    }

    /// The oldest entry, of which one must wait. The kernel may use its place from `release` on.
    pub(crate) fn take<const WORDS: usize>(&mut self) -> [u64; WORDS] {
        debug_assert!(self.waiting() > 0 && WORDS == self.0.words);
        let at = self.0.entry(self.0.mine);
        self.0.mine = self.0.mine.wrapping_add(1);
        std::array::from_fn(|n| self.0.memory.u64(at + n * WORD).load(Relaxed))
    }

    pub(crate) fn release(&self) {
        self.0.memory.u32(self.0.at.consumer as usize).store(self.0.mine, Release);
    }
}
