//! Which queue pair's segment a host's interface sends: the one released first, whole, and then the
//! next.

use std::collections::VecDeque;

use units::Time;

use crate::deadlines::Deadlines;

/// The queue pairs of a host that have something to send, by their slot.
#[derive(Debug, Default)]
pub(super) struct Pacer {
    /// When the next segment of each is released.
    releases: Deadlines,
    /// Released segments, in the order of their release: the interface's queue.
    queue: VecDeque<u32>,
}

impl Pacer {
    /// The next segment of `slot` is released at `at`; [`Time::NEVER`]: it has none.
    pub(super) fn set(&mut self, slot: u32, at: Time) {
        self.releases.set(slot, at);
    }

    /// The next of the segments that are released at `now`, to be put into the queue.
    pub(super) fn released(&mut self, now: Time) -> Option<u32> {
        self.releases.pop(now)
    }

    pub(super) fn enqueue(&mut self, slot: u32) {
        self.queue.push_back(slot);
    }

    /// Whose segment is sent.
    pub(super) fn front(&self) -> Option<u32> {
        self.queue.front().copied()
    }

    /// The segment in front is sent.
    pub(super) fn dequeue(&mut self) {
        self.queue.pop_front();
    }

    /// Queue pair `slot` ends; `queued`: with a segment in the queue. Few have one, and looking
    /// for it takes as long as the queue is.
    pub(super) fn remove(&mut self, slot: u32, queued: bool) {
        self.releases.set(slot, Time::NEVER);
        if queued {
            self.queue.retain(|queued| *queued != slot);
        }
    }

    /// When the next segment is released, or before.
    pub(super) fn next(&self) -> Time {
        self.releases.next()
    }
}
