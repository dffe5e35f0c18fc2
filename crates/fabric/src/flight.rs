//! Packets on a wire, in order of arrival.

use std::collections::VecDeque;

use units::Time;

/// So many packets are kept in place: at 10 Gb/s and 1 us, what is on the wire of full packets.
const NEAR: usize = 3;

/// A FIFO of (arrival time, handle). The first few are part of the port, so that its owner touches
/// no other memory; a burst of small packets spills over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    due: [Time; NEAR],
    handle: [u32; NEAR],
    /// How many of the above are in use.
    near: u32,
    /// Those after them.
    #[expect(clippy::box_collection, reason = "24 bytes less in every port; most never have any")]
    far: Option<Box<VecDeque<(Time, u32)>>>,
}

impl Flight {
    pub(crate) fn is_empty(&self) -> bool {
        self.near == 0
    }

    /// When the first arrives.
    pub(crate) fn front(&self) -> Option<Time> {
        (self.near > 0).then_some(self.due[0])
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, due: Time, handle: u32) {
        let n = self.near as usize;
        if n < NEAR {
            self.due[n] = due;
            self.handle[n] = handle;
            self.near += 1;
        } else {
            self.spill(due, handle);
        }
    }

    #[cold]
    fn spill(&mut self, due: Time, handle: u32) {
        self.far.get_or_insert_default().push_back((due, handle));
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        if self.near == 0 {
            return None;
        }
        let first = self.handle[0];
        self.due.copy_within(1.., 0);
        self.handle.copy_within(1.., 0);
        self.near -= 1;
        if self.near as usize == NEAR - 1 {
            self.refill();
        }
        Some(first)
    }

    /// Move the first of those after to the last place in the port.
    fn refill(&mut self) {
        let Some(far) = &mut self.far else { return };
        let Some((due, handle)) = far.pop_front() else { return };
        self.due[NEAR - 1] = due;
        self.handle[NEAR - 1] = handle;
        self.near += 1;
        if far.is_empty() {
            // Begins again at the start of the buffer, which is in the cache.
            far.clear();
        }
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = u32> {
        let far = self.far.iter().flat_map(|far| far.iter().map(|&(_, handle)| handle));
        self.handle.into_iter().take(self.near as usize).chain(far)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_deque() {
        let draw = endpoint::Draw::new(1, endpoint::Purpose::new("test"), 0);
        let (mut flight, mut deque) = (Flight::default(), VecDeque::new());
        for n in 0..10_000 {
            // Fills and drains in turn.
            let fill = if n / 50 % 2 == 0 { 7 } else { 3 };
            if draw.below(endpoint::Purpose::new("flight"), n, 10) < fill {
                flight.push(Time(n), n as u32);
                deque.push_back((Time(n), n as u32));
            } else {
                assert_eq!(flight.pop(), deque.pop_front().map(|(_, handle)| handle));
            }
            assert_eq!(flight.front(), deque.front().map(|&(due, _)| due));
            assert_eq!(flight.is_empty(), deque.is_empty());
            assert!(flight.handles().eq(deque.iter().map(|&(_, handle)| handle)));
        }
    }
}
