//! First in, first out, with room in place for as many packets as mostly wait: what a port does
//! then touches no memory but its own.

use std::collections::VecDeque;

use endpoint::Flags;

use crate::Desc;

/// With head and length, one cache line. The paper's NDP queue holds 8 packets, of which one is in
/// service.
pub(crate) const PLACES: usize = 7;
const EMPTY: Desc = Desc { handle: 0, len: 0, flags: Flags(0), class: 0 };

/// One of the places. With a type of its own none is out of range, and no access is checked.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Place {
    P0,
    P1,
    P2,
    P3,
    P4,
    P5,
    P6,
}

impl Place {
    const ALL: [Self; PLACES] =
        [Self::P0, Self::P1, Self::P2, Self::P3, Self::P4, Self::P5, Self::P6];

    /// By place, the one so many further round.
    const fn further(by: usize) -> [Self; PLACES] {
        let mut places = Self::ALL;
        let mut n = 0;
        while n < PLACES {
            places[n] = Self::ALL[(n + by) % PLACES];
            n += 1;
        }
        places
    }

    #[inline(always)]
    fn next(self) -> Self {
        const NEXT: [Place; PLACES] = Place::further(1);
        NEXT[self as usize]
    }

    fn previous(self) -> Self {
        const PREVIOUS: [Place; PLACES] = Place::further(PLACES - 1);
        PREVIOUS[self as usize]
    }
}

/// The first packets of a queue, in place.
#[derive(Clone, Debug)]
#[repr(C, align(8))]
pub(crate) struct Ring {
    here: [Desc; PLACES],
    /// The first packet's place, and the one after the last packet's.
    head: Place,
    tail: Place,
    len: u8,
    /// Whether more wait behind; only if all places are taken.
    more: bool,
}

const _: () = assert!(size_of::<Ring>() == 64, "one cache line");

/// The packets behind a [`Ring`].
pub(crate) type Behind = Option<Box<VecDeque<Desc>>>;

impl Ring {
    pub(crate) const fn new() -> Self {
        Self { here: [EMPTY; PLACES], head: Place::P0, tail: Place::P0, len: 0, more: false }
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
    pub(crate) fn push_back(&mut self, behind: &mut Behind, packet: Desc) {
        if self.is_full() {
            self.push_behind(behind, packet);
        } else {
            self.put(packet);
        }
    }

    /// Behind the last packet in place.
    #[inline(always)]
    fn put(&mut self, packet: Desc) {
        self.here[self.tail as usize] = packet;
        self.tail = self.tail.next();
        self.len += 1;
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
        let packet = self.here[self.head as usize];
        self.head = self.head.next();
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
            self.put(packet);
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
        self.tail = self.tail.previous();
        Some(self.here[self.tail as usize])
    }

    pub(crate) fn iter<'a>(&'a self, behind: &'a Behind) -> impl Iterator<Item = Desc> + 'a {
        let head = self.head as usize;
        let here = self.here[head..].iter().chain(&self.here[..head]);
        let here = here.take(usize::from(self.len)).copied();
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
            // Growing and shrinking in turn, across the edge of what fits in place.
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
