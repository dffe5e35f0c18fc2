//! [`Outbox`]: control packets that wait for a host's interface.

use std::collections::VecDeque;

/// Control packets that wait, oldest first. What finds no room is lost, as in a full device queue.
#[derive(Debug)]
pub(crate) struct Outbox<C> {
    waiting: VecDeque<C>,
    /// So many may wait.
    room: usize,
}

impl<C> Outbox<C> {
    /// Nothing waits, and at most `room` packets may.
    pub(crate) const fn new(room: usize) -> Self {
        Self { waiting: VecDeque::new(), room }
    }

    pub(crate) fn push(&mut self, control: C) {
        if self.waiting.len() < self.room {
            self.waiting.push_back(control);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<C> {
        self.waiting.pop_front()
    }

    /// What is sent next.
    pub(crate) fn front(&self) -> Option<&C> {
        self.waiting.front()
    }

    /// Forget all but those that are to be kept.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&C) -> bool) {
        self.waiting.retain(keep);
    }
}
