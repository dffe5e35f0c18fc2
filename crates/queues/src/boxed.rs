//! What a kind of queue is to everybody else: [`Discipline`] is the queue of one port, and
//! [`DisciplineSpec`] its parameters.
//!
//! To add a kind: a file here with both, a `pub mod` line in `lib.rs`, and an entry in the list of
//! queues of `crates/scenario` with the function that reads its keys. `red.rs` is an example.
//!
//! The usual kinds are called directly ([`Queue`]). All others sit behind one pointer, so that a
//! port with a usual kind is no larger and no slower for them.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use endpoint::Packet;

use crate::{Capacity, Desc, Disposition, Queue, QueueSpec};

/// Gives 64 uniform bits. To be asked at most once in a call.
pub type Random<'a> = dyn FnMut() -> u64 + 'a;

/// Is told of every packet that did not simply join the queue, and what becomes of it.
pub type Told<'a> = dyn FnMut(Disposition, Desc) + 'a;

/// The queue of one port. The packet in service counts as held until [`Discipline::finish`].
pub trait Discipline: Debug + Send {
    /// A packet arrives: it joins if it may do so as it is. If not, nothing has happened, and
    /// [`Discipline::enqueue`] says what becomes of it. Without this, `enqueue` is always asked.
    fn try_enqueue(&mut self, _packet: Desc) -> bool {
        false
    }

    /// The same at an idle port: if it may join, it is in service at once.
    fn cut_through(&mut self, _packet: Desc) -> bool {
        false
    }

    /// A packet arrives, and `told` hears what becomes of it if it does not simply join.
    fn enqueue(&mut self, packet: Desc, random: &mut Random<'_>, told: &mut Told<'_>);

    /// Whether what becomes of a packet depends on its contents. Then packets arrive by
    /// [`Discipline::enqueue_read`].
    fn reads_packets(&self) -> bool {
        false
    }

    /// As `enqueue`, of a packet with these contents.
    fn enqueue_read(
        &mut self,
        packet: Desc,
        _contents: &Packet,
        random: &mut Random<'_>,
        told: &mut Told<'_>,
    ) {
        self.enqueue(packet, random, told);
    }

    /// Which packet goes next, if one may. It is in service now.
    fn dequeue(&mut self) -> Option<Desc>;

    /// Which packet `dequeue` would give, of a kind that can tell ([`DisciplineSpec::peeks`]).
    fn peek(&self) -> Option<Desc> {
        None
    }

    /// `sent`, the packet in service, has been transmitted.
    fn finish(&mut self, sent: Desc);

    /// The packet that has just gone into service, if it is to be marked as it leaves.
    fn take_mark(&mut self) -> Option<Desc> {
        None
    }

    /// Whether it may send headers back to their senders.
    fn bounces(&self) -> bool {
        false
    }

    /// Bit c of `open`: packets of class c may leave. For kinds that flow control can pause.
    fn set_open(&mut self, _open: u8) {}

    /// Every packet that waits in `class` is lost. For kinds that flow control can pause.
    fn discard(&mut self, _class: u8, _told: &mut Told<'_>) {}

    /// The packets waiting, the one in service not among them.
    fn waiting(&self) -> Box<dyn Iterator<Item = Desc> + '_>;

    /// Whether no packet waits.
    fn is_empty(&self) -> bool;

    /// Bytes held.
    fn bytes(&self) -> u32;
}

/// From which length a queue marks packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarksFrom {
    /// From none.
    Never,
    /// From this one on, for certain or by chance.
    Length(Capacity),
    /// As a program decides.
    Programmed,
}

/// The parameters of a kind of queue, and what others need to know of it.
pub trait DisciplineSpec: Any + Debug + Send + Sync + SameSpec {
    /// It as a [`QueueSpec`].
    fn wrap(self) -> QueueSpec
    where
        Self: Sized,
    {
        QueueSpec::Boxed(Arc::new(self))
    }

    /// An empty queue: [`Queue::boxed`] of its [`Discipline`].
    fn build(&self) -> Queue;

    /// What each of its queues holds.
    fn capacities(&self) -> Vec<Capacity>;

    /// The same with another capacity; `None` if its capacity is more than one number.
    fn with_capacity(&self, _capacity: Capacity) -> Option<QueueSpec> {
        None
    }

    /// The same with `share` of the capacity, and of the length from which packets are marked;
    /// `None` if that is not known of its kind.
    fn scaled(&self, _share: f64) -> Option<QueueSpec> {
        None
    }

    /// The most bytes that leave a port before a packet does that has just joined, with packets of
    /// up to `mtu` bytes. As it stands here: of a kind that serves in order of arrival.
    fn backlog(&self, mtu: u64) -> u64 {
        self.capacities().into_iter().map(|capacity| capacity.bytes(mtu)).sum()
    }

    /// The length of a packet whose payload it has cut off, bytes; [`u16::MAX`] if it cuts none
    /// off.
    fn trims_to(&self) -> u16 {
        u16::MAX
    }

    /// Whether it trims every packet with payload that it would lose otherwise.
    fn always_trims(&self) -> bool {
        self.trims_to() != u16::MAX
    }

    /// Whether it marks packets as they leave, so that its caller must ask [`Queue::take_mark`]
    /// at that moment.
    fn marks_at_departure(&self) -> bool {
        false
    }

    /// Whether it can tell which packet goes next without giving it: needed where switches send in
    /// slots.
    fn peeks(&self) -> bool {
        false
    }

    /// Whether ports with it can share the memory of their switch ([`crate::SharedBuffer`]): it
    /// does nothing but lose what it does not take.
    fn shares_memory(&self) -> bool {
        false
    }

    /// The same for a port whose link leads to a host, if it makes a difference to its kind.
    fn at_last_hop(&self) -> Option<QueueSpec> {
        None
    }

    /// Of a kind that is made of several queues: those that packets of `classes` join.
    fn queues_of(&self, _classes: &[u8]) -> Vec<&QueueSpec> {
        Vec::new()
    }

    /// From which length packets of `classes` are marked.
    fn marks_from(&self, _classes: &[u8]) -> MarksFrom {
        MarksFrom::Never
    }

    /// Whether packets that cannot be marked are lost in place of a mark.
    fn drops_unmarked(&self) -> bool {
        false
    }

    /// Whether the class of a packet makes a difference.
    fn sorts_by_class(&self) -> bool {
        false
    }

    /// Why it loses packets, as a sentence begins: "packets were lost: ...".
    fn loses_because(&self) -> &'static str {
        "queues were full"
    }
}

/// Comparison of kinds behind a pointer. Every specification that can be compared has it.
pub trait SameSpec {
    /// Whether `other` is of the same kind and equal.
    fn same(&self, other: &dyn Any) -> bool;
}

impl<S: PartialEq + 'static> SameSpec for S {
    fn same(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
}

impl PartialEq for dyn DisciplineSpec {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

/// A queue at a port whose caller asks for memory before a packet joins. So none joins unasked.
#[derive(Debug)]
pub(crate) struct Admitted(pub(crate) Queue);

impl Discipline for Admitted {
    fn enqueue(&mut self, packet: Desc, random: &mut Random<'_>, told: &mut Told<'_>) {
        self.0.enqueue(packet, random, &mut |fate, packet| told(fate, packet));
    }

    fn reads_packets(&self) -> bool {
        self.0.reads_packets()
    }

    fn enqueue_read(
        &mut self,
        packet: Desc,
        contents: &Packet,
        random: &mut Random<'_>,
        told: &mut Told<'_>,
    ) {
        self.0.enqueue_read(packet, contents, random, &mut |fate, packet| told(fate, packet));
    }

    fn dequeue(&mut self) -> Option<Desc> {
        self.0.dequeue()
    }

    fn finish(&mut self, sent: Desc) {
        self.0.finish(sent);
    }

    fn take_mark(&mut self) -> Option<Desc> {
        self.0.take_mark()
    }

    fn bounces(&self) -> bool {
        self.0.arrivals_before_bounce() != u32::MAX
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = Desc> + '_> {
        Box::new(self.0.waiting())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes(&self) -> u32 {
        self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CutPayloadSpec, DropTailSpec, MarkAt, NotEct, Ramp, RedSpec};

    const CAPACITY: Capacity = Capacity::Packets(8);
    const RED: RedSpec = RedSpec {
        capacity: CAPACITY,
        ramp: Ramp { unit: crate::Unit::Packets, min: 1, max: 2, probability: 0.5 },
        weight: None,
        mark_at: MarkAt::Arrival,
        not_ect: NotEct::Drop,
    };

    #[test]
    fn kinds_behind_a_pointer_are_compared_by_kind_and_parameters() {
        let spec = |spec: RedSpec| QueueSpec::from(spec);
        assert_eq!(spec(RED), spec(RED).clone());
        assert_ne!(spec(RED), spec(RedSpec { not_ect: NotEct::Pass, ..RED }));
        let cut = CutPayloadSpec { capacity: CAPACITY, trim_threshold: CAPACITY, trim_to: 64 };
        assert_ne!(spec(RED), cut.into());
        let plain = DropTailSpec { capacity: CAPACITY, ecn_threshold: None };
        assert_ne!(spec(RED), QueueSpec::DropTail(plain));
    }

    #[test]
    fn where_memory_is_asked_for_first_nothing_joins_unasked() {
        let packet = Desc { handle: 7, len: 100, flags: endpoint::Flags(0), class: 0 };
        let mut queue = Queue::in_shared_buffer(&QueueSpec::from(RED));
        assert!(!queue.try_enqueue(packet) && !queue.cut_through(packet));
        queue.enqueue(packet, || 0, &mut |fate, _| panic!("{fate:?}"));
        assert_eq!((queue.bytes(), queue.dequeue()), (100, Some(packet)));
    }
}
