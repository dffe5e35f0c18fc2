//! What comes to a switch within a slot, where switches take it as one batch: the order in which
//! the switch model of FireSim does, which is that of a binary heap.

use queues::Desc;
use units::Time;

/// A packet that has come to a switch and has not joined a queue yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// When its last bit came.
    pub(crate) came: Time,
    /// When its first bit came.
    pub(crate) began: Time,
    /// The place of its switch in this partition.
    pub(crate) switch: u32,
    /// The number, in the whole fabric, of the link over which it has come.
    pub(crate) number: u32,
    /// The link over which it goes on, in this partition.
    pub(crate) out: u32,
    pub(crate) packet: Desc,
}

/// What has come before `now`, switch by switch, in the order in which it joins queues: the
/// earliest first bit first, and of equal ones as they come out of a heap that is filled port by
/// port. The rest stays in `held`.
pub(crate) fn take(held: &mut Vec<Held>, now: Time) -> Vec<Held> {
    let mut due: Vec<Held> = held.extract_if(.., |packet| packet.came < now).collect();
    due.sort_by_key(|packet| (packet.switch, packet.number, packet.came));
    let mut order = Vec::with_capacity(due.len());
    for batch in due.chunk_by(|a, b| a.switch == b.switch) {
        let mut heap = Vec::with_capacity(batch.len());
        for &packet in batch {
            push(&mut heap, packet);
        }
        while let Some(first) = pop(&mut heap) {
            order.push(first);
        }
    }
    order
}

/// `packet` rises above what began later; not above what began with it.
fn push(heap: &mut Vec<Held>, packet: Held) {
    let last = heap.len();
    heap.push(packet);
    rise(heap, last, packet);
}

/// `packet` goes where it belongs, at place `at` or above.
fn rise(heap: &mut [Held], mut at: usize, packet: Held) {
    while at > 0 && heap[(at - 1) / 2].began > packet.began {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = packet;
}

/// The first of all. Its place sinks to the bottom, where the earlier child rises, of equal ones
/// the second; there the last packet of the heap is put, which rises again.
fn pop(heap: &mut Vec<Held>) -> Option<Held> {
    let last = heap.pop()?;
    let Some(&first) = heap.first() else { return Some(last) };
    let mut at = 0;
    while 2 * at + 1 < heap.len() {
        let (one, other) = (2 * at + 1, 2 * at + 2);
        let second = other < heap.len() && heap[other].began <= heap[one].began;
        let child = if second { other } else { one };
        heap[at] = heap[child];
        at = child;
    }
    rise(heap, at, last);
    Some(first)
}

#[cfg(test)]
mod tests {
    use endpoint::Flags;

    use super::*;

    /// The links of packets whose first bits came then, as they join queues.
    fn order(began: &[u64]) -> Vec<u32> {
        let held = |(number, &began): (u32, &u64)| Held {
            came: Time(100),
            began: Time(began),
            switch: 0,
            number,
            out: 0,
            packet: Desc { handle: number, len: 64, flags: Flags(0), class: 0 },
        };
        let mut all: Vec<Held> = (0..).zip(began).map(held).collect();
        let taken = take(&mut all, Time(101));
        assert!(all.is_empty());
        taken.iter().map(|packet| packet.number).collect()
    }

    /// As `std::priority_queue` of GCC's library gives them: printed by a program of ten lines.
    #[test]
    fn equal_times_come_as_out_of_the_heap_of_a_c_plus_plus_library() {
        assert_eq!(order(&[10; 10]), [0, 2, 6, 9, 8, 5, 7, 4, 1, 3]);
        // One more on the first port, later or earlier.
        let mut eleven = [10; 11];
        eleven[0] = 11;
        assert_eq!(order(&eleven), [1, 2, 6, 10, 9, 8, 5, 3, 7, 4, 0]);
        eleven[0] = 9;
        assert_eq!(order(&eleven), [0, 2, 6, 10, 9, 8, 5, 7, 4, 1, 3]);
    }

    #[test]
    fn first_bits_first() {
        assert_eq!(order(&[5, 3, 9, 1]), [3, 1, 0, 2]);
        assert_eq!(order(&[7]), [0]);
    }

    #[test]
    fn what_comes_later_stays() {
        let packet = Desc { handle: 0, len: 64, flags: Flags(0), class: 0 };
        let held =
            |came| Held { came: Time(came), began: Time(0), switch: 0, number: 0, out: 0, packet };
        let mut all = vec![held(4), held(5)];
        assert_eq!(take(&mut all, Time(5)).len(), 1);
        assert_eq!(all.len(), 1);
    }
}
