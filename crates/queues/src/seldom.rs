//! Disciplines that few scenarios use. Each sits behind one pointer, and its code out of line, so
//! that a port with one of the usual disciplines is no larger and no slower for them.

use endpoint::Packet;

use crate::by_class::ByClass;
use crate::cut_payload::CutPayload;
use crate::programmed::Programmed;
use crate::red::Red;
use crate::{Desc, Fate, Queue};

/// One of them. The methods are those of [`crate::Queue`].
#[derive(Clone, Debug)]
pub enum Seldom {
    /// See [`CutPayload`].
    CutPayload(CutPayload),
    /// See [`Red`].
    Red(Red),
    /// See [`ByClass`].
    ByClass(ByClass),
    /// See [`crate::QueueSpec::Lossless`].
    Lossless(ByClass),
    /// See [`Programmed`].
    Programmed(Programmed),
    /// See [`Queue::in_shared_buffer`].
    InSharedBuffer(Queue),
}

impl Seldom {
    #[inline(never)]
    pub(crate) fn offer(&mut self, packet: Desc) -> bool {
        match self {
            Self::CutPayload(queue) => queue.offer(packet),
            Self::Red(queue) => queue.offer(packet),
            Self::ByClass(queue) => queue.offer(packet),
            Self::Lossless(_) | Self::Programmed(_) | Self::InSharedBuffer(_) => false,
        }
    }

    #[inline(never)]
    pub(crate) fn pass(&mut self, packet: Desc) -> bool {
        match self {
            Self::CutPayload(queue) => queue.pass(packet),
            Self::Red(queue) => queue.pass(packet),
            Self::ByClass(queue) => queue.pass(packet),
            Self::Lossless(_) | Self::Programmed(_) | Self::InSharedBuffer(_) => false,
        }
    }

    /// Whether it may send headers back.
    pub(crate) fn bounces(&self) -> bool {
        match self {
            Self::CutPayload(_) | Self::Red(_) | Self::Lossless(_) => false,
            Self::ByClass(queue) => queue.bounces(),
            Self::Programmed(_) => true,
            Self::InSharedBuffer(queue) => queue.calm_arrivals() != u32::MAX,
        }
    }

    pub(crate) fn set_open(&mut self, open: u8) {
        if let Self::Lossless(queue) = self {
            queue.set_open(open);
        }
    }

    pub(crate) fn discard(&mut self, class: u8, fate: &mut impl FnMut(Fate, Desc)) {
        if let Self::Lossless(queue) = self {
            queue.discard(class, fate);
        }
    }

    pub(crate) fn enqueue(
        &mut self,
        packet: Desc,
        coin: impl FnOnce() -> u64,
        fate: &mut impl FnMut(Fate, Desc),
    ) {
        match self {
            Self::CutPayload(queue) => queue.enqueue(packet, fate),
            Self::Red(queue) => queue.enqueue(packet, coin, fate),
            Self::ByClass(queue) | Self::Lossless(queue) => queue.enqueue(packet, coin, fate),
            Self::InSharedBuffer(queue) => queue.enqueue(packet, coin, fate),
            // It has not been read.
            Self::Programmed(_) => fate(Fate::Drop, packet),
        }
    }

    pub(crate) fn reads_packets(&self) -> bool {
        match self {
            Self::Programmed(_) => true,
            Self::InSharedBuffer(queue) => queue.reads_packets(),
            _ => false,
        }
    }

    pub(crate) fn enqueue_read(
        &mut self,
        packet: Desc,
        contents: &Packet,
        coin: impl FnOnce() -> u64,
        fate: &mut impl FnMut(Fate, Desc),
    ) {
        match self {
            Self::Programmed(queue) => queue.arrive(packet, contents, coin(), fate),
            Self::InSharedBuffer(queue) => queue.enqueue_read(packet, contents, coin, fate),
            _ => self.enqueue(packet, coin, fate),
        }
    }

    #[inline(never)]
    pub(crate) fn dequeue(&mut self) -> Option<Desc> {
        match self {
            Self::CutPayload(queue) => queue.dequeue(),
            Self::Red(queue) => queue.dequeue(),
            Self::ByClass(queue) | Self::Lossless(queue) => queue.dequeue(),
            Self::Programmed(queue) => queue.dequeue(),
            Self::InSharedBuffer(queue) => queue.dequeue(),
        }
    }

    #[inline(never)]
    pub(crate) fn finish(&mut self, packet: Desc) {
        match self {
            Self::CutPayload(queue) => queue.finish(packet),
            Self::Red(queue) => queue.finish(packet),
            Self::ByClass(queue) | Self::Lossless(queue) => queue.finish(packet),
            Self::Programmed(queue) => queue.finish(packet),
            Self::InSharedBuffer(queue) => queue.finish(packet),
        }
    }

    pub(crate) fn take_mark(&mut self) -> Option<Desc> {
        match self {
            Self::CutPayload(_) | Self::Programmed(_) => None,
            Self::Red(queue) => queue.take_mark(),
            Self::ByClass(queue) | Self::Lossless(queue) => queue.take_mark(),
            Self::InSharedBuffer(queue) => queue.take_mark(),
        }
    }

    pub(crate) fn waiting(&self) -> Box<dyn Iterator<Item = Desc> + '_> {
        match self {
            Self::CutPayload(queue) => Box::new(queue.waiting().iter()),
            Self::Red(queue) => Box::new(queue.waiting()),
            Self::ByClass(queue) | Self::Lossless(queue) => Box::new(queue.waiting()),
            Self::Programmed(queue) => Box::new(queue.waiting()),
            Self::InSharedBuffer(queue) => Box::new(queue.waiting()),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::CutPayload(queue) => queue.waiting().is_empty(),
            Self::Red(queue) => queue.is_empty(),
            Self::ByClass(queue) | Self::Lossless(queue) => queue.is_empty(),
            Self::Programmed(queue) => queue.is_empty(),
            Self::InSharedBuffer(queue) => queue.is_empty(),
        }
    }

    pub(crate) fn bytes(&self) -> u32 {
        match self {
            Self::CutPayload(queue) => queue.bytes(),
            Self::Red(queue) => queue.bytes(),
            Self::ByClass(queue) | Self::Lossless(queue) => queue.bytes(),
            Self::Programmed(queue) => queue.bytes(),
            Self::InSharedBuffer(queue) => queue.bytes(),
        }
    }
}
