//! [`Outbox`]: control packets that wait for a host's interface.

use std::collections::VecDeque;

use endpoint::{Flags, Packet, Span, Tx};
use units::HostId;

/// Control packets that may wait for the interface where nothing else is said.
pub(crate) const CONTROL_MAX: usize = 1 << 16;

/// A control packet that waits.
#[derive(Debug)]
pub(crate) struct Control<H> {
    pub(crate) to: HostId,
    pub(crate) path: u32,
    /// What it is about.
    pub(crate) span: Span,
    pub(crate) header: H,
}

impl<H> Control<H> {
    /// Fill a packet, of `wire_len` bytes, but for its header, which comes back.
    pub(crate) fn fill(self, slot: &mut Packet, wire_len: u16) -> H {
        slot.dst = self.to;
        slot.path = self.path;
        slot.wire_len = wire_len;
        slot.flags = Flags::CONTROL;
        slot.span = self.span;
        self.header
    }
}

impl<H> Outbox<Control<H>> {
    /// Send what waits first, with `wire_len` bytes and the header that `put` writes; else what
    /// `other` may have, which says whether it has.
    pub(crate) fn poll(
        &mut self,
        slot: &mut Packet,
        wire_len: u16,
        put: impl FnOnce(&mut Packet, H),
        other: impl FnOnce(&mut Packet) -> bool,
    ) -> Tx {
        if let Some(control) = self.pop() {
            let header = control.fill(slot, wire_len);
            put(slot, header);
            return Tx::Sent;
        }
        if other(slot) { Tx::Sent } else { Tx::Idle }
    }
}

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

    /// Whether what is pushed now is lost.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.room
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
