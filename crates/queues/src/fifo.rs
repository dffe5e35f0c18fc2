//! First in, first out, with room in place for as many packets as mostly wait: what a port does then
//! touches no memory but its own.

use std::collections::VecDeque;

use endpoint::Flags;

use crate::Desc;

/// With head and length, one cache line. The paper's NDP queue holds 8 packets, of which one is in service.
pub(crate) const PLACES: usize = 7;
const EMPTY: Desc = Desc { handle: 0, len: 0, flags: Flags(0), class: 0 };

/// The first packets of a queue, in place.
#[derive(Clone, Debug)]
#[repr(C, align(8))]
pub(crate) struct Ring {
    here: [Desc; PLACES],
    head: u8,
    len: u8,
    /// Whether more wait behind; only if all places are taken.
    more: bool,
}

const _: () = assert!(size_of::<Ring>() == 64, "one cache line");

/// The packets behind a [`Ring`].
pub(crate) type Behind = Option<Box<VecDeque<Desc>>>;

impl Ring {
    pub(crate) const fn new() -> Self {
        Self { here: [EMPTY; PLACES], head: 0, len: 0, more: false }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether all places are taken.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        usize::from(self.len) >= PLACES
    }

    #[inline(always)]
    fn place(&self, n: u8) -> usize {
        let place = usize::from(self.head) + usize::from(n);
        // Below in any case: the compiler is to see it.
        (if place >= PLACES { place - PLACES } else { place }).min(PLACES - 1)
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, behind: &mut Behind, packet: Desc) {
        if self.is_full() {
            self.push_behind(behind, packet);
        } else {
            self.here[self.place(self.len)] = packet;
            self.len += 1;
        }
    }

    #[inline(never)]
    fn push_behind(&mut self, behind: &mut Behind, packet: Desc) {
        self.more = true;
        behind.get_or_insert_default().push_back(packet);
    }

    #[inline(always)]
    pub(crate) fn pop_front(&mut self, behind: &mut Behind) -> Option<Desc> {
        if self.len == 0 {
            return None;
        }
        let packet = self.here[self.place(0)];
        self.head = self.place(1) as u8;
        self.len -= 1;
        if self.more {
            self.move_up(behind);
        }
        Some(packet)
    }

    /// The first of those behind takes the place that has become free.
    #[inline(never)]
    fn move_up(&mut self, behind: &mut Behind) {
        let Some(behind) = behind else { return };
        if let Some(packet) = behind.pop_front() {
            self.here[self.place(self.len)] = packet;
            self.len += 1;
        }
        self.more = !behind.is_empty();
    }

    pub(crate) fn pop_back(&mut self, behind: &mut Behind) -> Option<Desc> {
        if let Some(behind) = behind
            && let Some(packet) = behind.pop_back()
        {
            self.more = !behind.is_empty();
            return Some(packet);
        }
        self.len = self.len.checked_sub(1)?;
        Some(self.here[self.place(self.len)])
    }

    pub(crate) fn iter<'a>(&'a self, behind: &'a Behind) -> impl Iterator<Item = Desc> + 'a {
        let here = (0..self.len).map(|n| self.here[self.place(n)]);
        here.chain(behind.iter().flat_map(|behind| behind.iter().copied()))
    }
}

/// Packets in order, the first ones in place.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Fifo {
    ring: Ring,
    behind: Behind,
}

impl Fifo {
    pub(crate) const fn new() -> Self {
        Self { ring: Ring::new(), behind: None }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, packet: Desc) {
        self.ring.push_back(&mut self.behind, packet);
    }

    #[inline(always)]
    pub(crate) fn pop_front(&mut self) -> Option<Desc> {
        self.ring.pop_front(&mut self.behind)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Desc> {
        self.ring.iter(&self.behind)
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
                2 => assert_eq!(fifo.ring.pop_back(&mut fifo.behind), deque.pop_back()),
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
