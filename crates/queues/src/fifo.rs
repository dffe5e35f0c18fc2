//! First in, first out, with room in place for as many packets as mostly wait: what a port does then
//! touches no memory but its own.

use std::collections::VecDeque;

use endpoint::Flags;

use crate::Desc;

/// A power of two: the paper's NDP queue holds 8 packets.
const PLACES: usize = 8;
const EMPTY: Desc = Desc { handle: 0, len: 0, flags: Flags(0), class: 0 };

/// Packets in order. The first [`PLACES`] are here, the others elsewhere.
// In order of use.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Fifo {
    /// Those behind; empty unless all places are taken.
    #[expect(clippy::box_collection, reason = "one word in every port instead of four")]
    behind: Option<Box<VecDeque<Desc>>>,
    head: u8,
    len: u8,
    /// A ring.
    here: [Desc; PLACES],
}

impl Fifo {
    pub(crate) const fn new() -> Self {
        Self { behind: None, head: 0, len: 0, here: [EMPTY; PLACES] }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    fn place(&self, n: u8) -> usize {
        usize::from(self.head + n) % PLACES
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, packet: Desc) {
        if usize::from(self.len) < PLACES {
            self.here[self.place(self.len)] = packet;
            self.len += 1;
        } else {
            self.push_behind(packet);
        }
    }

    #[inline(never)]
    fn push_behind(&mut self, packet: Desc) {
        self.behind.get_or_insert_default().push_back(packet);
    }

    #[inline(always)]
    pub(crate) fn pop_front(&mut self) -> Option<Desc> {
        if self.len == 0 {
            return None;
        }
        let packet = self.here[self.place(0)];
        self.head = self.place(1) as u8;
        self.len -= 1;
        if self.behind.is_some() {
            self.move_up();
        }
        Some(packet)
    }

    /// The first of those behind takes the place that has become free.
    #[inline(never)]
    fn move_up(&mut self) {
        if let Some(packet) = self.behind.as_mut().and_then(|behind| behind.pop_front()) {
            self.here[self.place(self.len)] = packet;
            self.len += 1;
        }
    }

    pub(crate) fn pop_back(&mut self) -> Option<Desc> {
        if let Some(packet) = self.behind.as_mut().and_then(|behind| behind.pop_back()) {
            return Some(packet);
        }
        self.len = self.len.checked_sub(1)?;
        Some(self.here[self.place(self.len)])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Desc> {
        let here = (0..self.len).map(|n| self.here[self.place(n)]);
        here.chain(self.behind.iter().flat_map(|behind| behind.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is done, it holds what a plain deque holds.
    #[test]
    fn agrees_with_a_deque() {
        let mut fifo = Fifo::new();
        let mut deque = VecDeque::new();
        let draw = endpoint::Draw::new(1, endpoint::Purpose::new("test"), 0);
        for n in 0..50_000u32 {
            // Growing and shrinking by turns, across the edge of what fits in place.
            let growing = n / 40 % 2;
            match draw.below(endpoint::Purpose::new("fifo"), u64::from(n), 8) as u32 {
                0..2 => assert_eq!(fifo.pop_front(), deque.pop_front()),
                2 => assert_eq!(fifo.pop_back(), deque.pop_back()),
                choice if choice < 4 + 4 * growing => {
                    let packet = Desc { handle: n, ..EMPTY };
                    fifo.push_back(packet);
                    deque.push_back(packet);
                }
                _ => assert_eq!(fifo.pop_front(), deque.pop_front()),
            }
            assert_eq!(fifo.is_empty(), deque.is_empty());
            assert!(fifo.iter().eq(deque.iter().copied()), "after {n}");
        }
    }
}
