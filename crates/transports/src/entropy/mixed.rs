//! EVs of packets that arrived unmarked are used again, first in, first out; while there are none,
//! the bitmap's (specs/uet.md#3). Where one acknowledgement answers several packets, REPS alone
//! would draw most of its EVs.

use std::collections::VecDeque;

use super::bitmap::Bitmap;
use super::{Draws, Feedback};

/// The state of one message.
#[derive(Debug)]
pub(super) struct Mixed {
    bitmap: Bitmap,
    again: VecDeque<u16>,
    /// So many may wait, as many as there are EVs.
    room: usize,
}

impl Mixed {
    pub(super) fn new(mask: u16, draws: &mut Draws) -> Self {
        let room = usize::from(mask) + 1;
        Self { bitmap: Bitmap::new(mask, draws), again: VecDeque::new(), room }
    }

    pub(super) fn next(&mut self, draws: &mut Draws) -> u16 {
        match self.again.pop_front() {
            Some(value) => value,
            None => self.bitmap.next(draws),
        }
    }

    pub(super) fn feedback(&mut self, value: u16, what: Feedback) {
        self.bitmap.feedback(value, what);
        if what == Feedback::Good && self.again.len() < self.room {
            self.again.push_back(value);
        }
    }
}
