//! What is to come, in order of time and, at one instant, in the order in which it was known.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::{HostId, Time, TimerId};

/// Something that will happen, unless it is out of date by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// Perhaps all of the message at this place is on its way, if this is its number.
    Drained(u32, u64),
    /// Its window has opened, if this is the number of that.
    Opened(u32, u64),
    /// It is delivered.
    Delivered(u32),
    /// Its sender knows that.
    Acked(u32),
    /// A timer of an application.
    Timer(HostId, TimerId),
    /// A signal for an application: from whom, tag, token.
    Signal(HostId, HostId, u16, u64),
    /// Something changes at a link.
    Fault,
    /// The measurement window begins or ends.
    Edge,
    Sample,
}

#[derive(Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(Time, u64, Event)>>,
    known: u64,
}

impl Events {
    pub(crate) fn push(&mut self, at: Time, event: Event) {
        if at != Time::NEVER {
            self.heap.push(Reverse((at, self.known, event)));
            self.known += 1;
        }
    }

    /// When the next is due; never, if there is none.
    pub(crate) fn next_at(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }

    /// The next one that is due at `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Event> {
        if self.next_at() > now {
            return None;
        }
        self.heap.pop().map(|Reverse((.., event))| event)
    }
}
