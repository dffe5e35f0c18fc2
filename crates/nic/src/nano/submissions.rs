//! Messages on their way into a NIC of cycles: one enters in a cycle (docs/nic.md, C3).

use std::collections::VecDeque;

use endpoint::{Effect, Msg, MsgId};

/// See the top of the file.
#[derive(Debug, Default)]
pub(super) struct Submissions {
    waiting: VecDeque<Msg>,
    /// The first cycle in which another may enter.
    turn: u64,
    /// The first found no room, and no message has been over since.
    is_stuck: bool,
}

impl Submissions {
    /// Whether a message that is submitted in `cycle` is to wait behind others.
    pub(super) fn wait_in(&self, cycle: u64) -> bool {
        !self.waiting.is_empty() || cycle < self.turn
    }

    pub(super) fn push(&mut self, msg: Msg) {
        self.waiting.push_back(msg);
    }

    /// The cycle in which the first enters, if there is one that may.
    pub(super) fn next(&self) -> Option<u64> {
        (!self.waiting.is_empty() && !self.is_stuck).then_some(self.turn)
    }

    pub(super) fn pop(&mut self) -> Option<Msg> {
        self.waiting.pop_front()
    }

    /// A message has entered in `cycle`.
    pub(super) fn entered(&mut self, cycle: u64) {
        self.turn = cycle + 1;
    }

    /// `msg`, which was the first, has found no room.
    pub(super) fn refused(&mut self, msg: Msg) {
        self.waiting.push_front(msg);
        self.is_stuck = true;
    }

    /// What `cycle` has come to: what a message leaves that is over is room for the next.
    pub(super) fn after(&mut self, cycle: u64, effects: &[Effect]) {
        let over = |effect: &Effect| matches!(effect, Effect::Acked(_) | Effect::Failed(..));
        if self.is_stuck && effects.iter().any(over) {
            (self.is_stuck, self.turn) = (false, cycle + 1);
        }
    }

    /// Message `id` is not wanted any more from `cycle` on. Whether it was one of those that wait.
    pub(super) fn cancel(&mut self, cycle: u64, id: MsgId) -> bool {
        let Some(place) = self.waiting.iter().position(|msg| msg.id == id) else { return false };
        self.waiting.remove(place);
        if place == 0 && self.is_stuck {
            // Whoever is the first now has not been offered yet.
            (self.is_stuck, self.turn) = (false, cycle);
        }
        true
    }
}
