//! Disciplines that few scenarios use. Each sits behind one pointer, and its code out of line, so
//! that a port with one of the usual disciplines is no larger and no slower for them.

use crate::cut_payload::{CutPayload, CutPayloadSpec};
use crate::fifo::Fifo;
use crate::{Desc, Fate};

/// One of them. The methods are those of [`crate::Queue`].
#[derive(Clone, Debug)]
pub enum Seldom {
    /// See [`CutPayload`].
    CutPayload(CutPayload),
}

impl Seldom {
    pub(crate) fn cut_payload(spec: CutPayloadSpec) -> Box<Self> {
        Box::new(Self::CutPayload(CutPayload::new(spec)))
    }

    #[inline(never)]
    pub(crate) fn offer(&mut self, packet: Desc) -> bool {
        match self {
            Self::CutPayload(queue) => queue.offer(packet),
        }
    }

    #[inline(never)]
    pub(crate) fn pass(&mut self, packet: Desc) -> bool {
        match self {
            Self::CutPayload(queue) => queue.pass(packet),
        }
    }

    pub(crate) fn enqueue(
        &mut self,
        packet: Desc,
        _coin: impl FnOnce() -> u64,
        fate: &mut impl FnMut(Fate, Desc),
    ) {
        match self {
            Self::CutPayload(queue) => queue.enqueue(packet, fate),
        }
    }

    #[inline(never)]
    pub(crate) fn dequeue(&mut self) -> Option<Desc> {
        match self {
            Self::CutPayload(queue) => queue.dequeue(),
        }
    }

    #[inline(never)]
    pub(crate) fn finish(&mut self, packet: Desc) {
        match self {
            Self::CutPayload(queue) => queue.finish(packet),
        }
    }

    /// The packets waiting: up to three queues of them.
    pub(crate) fn waiting(&self) -> [Option<&Fifo>; 3] {
        match self {
            Self::CutPayload(queue) => [Some(queue.waiting()), None, None],
        }
    }

    pub(crate) fn bytes(&self) -> u32 {
        match self {
            Self::CutPayload(queue) => queue.bytes(),
        }
    }
}
