//! Limits of a port whose classes have queues of their own ([`ByClass`]): what all of them hold
//! together decides whether a packet is lost or marked. PIAS marks so (NSDI'15, section 4.3: a
//! threshold for each queue would mark packets of low classes late and lets the high ones starve
//! them; specs/pfabric.md#6).

use crate::boxed::{Discipline, DisciplineSpec, MarksFrom, Random, Told};
use crate::by_class::ByClass;
use crate::{ByClassSpec, Capacity, Desc, Disposition, Queue, QueueSpec};

/// Parameters of [`PortWide`].
#[derive(Clone, Debug, PartialEq)]
pub struct PortWideSpec {
    /// The classes.
    pub classes: ByClassSpec,
    /// Bytes that all of them hold together, the packet in service included; what arrives beyond
    /// that is lost. `None`: what each says for itself.
    pub capacity: Option<u32>,
    /// An ECN-capable packet that arrives to find more bytes than this in all of them is marked.
    pub ecn_threshold: Option<u32>,
}

impl DisciplineSpec for PortWideSpec {
    fn build(&self) -> Queue {
        Queue::boxed(PortWide {
            classes: ByClass::new(&self.classes),
            capacity: self.capacity.unwrap_or(u32::MAX),
            ecn_threshold: self.ecn_threshold.unwrap_or(u32::MAX),
        })
    }

    fn capacities(&self) -> Vec<Capacity> {
        match self.capacity {
            Some(bytes) => vec![Capacity::Bytes(bytes)],
            None => self.classes.capacities(),
        }
    }

    fn backlog(&self, mtu: u64) -> u64 {
        let of_classes = self.classes.backlog(mtu);
        self.capacity.map_or(of_classes, |bytes| of_classes.min(8 * u64::from(bytes)))
    }

    fn trims_to(&self) -> u16 {
        self.classes.trims_to()
    }

    fn queues_of(&self, classes: &[u8]) -> Vec<&QueueSpec> {
        self.classes.queues_of(classes)
    }

    fn marks_from(&self, _: &[u8]) -> MarksFrom {
        let length = |bytes| MarksFrom::Length(Capacity::Bytes(bytes));
        self.ecn_threshold.map_or(MarksFrom::Never, length)
    }

    fn sorts_by_class(&self) -> bool {
        self.classes.sorts_by_class()
    }

    fn at_last_hop(&self) -> Option<QueueSpec> {
        let classes = self.classes.with_last_hop()?;
        Some(Self { classes, ..self.clone() }.into())
    }

    fn marks_at_departure(&self) -> bool {
        self.classes.marks_at_departure()
    }
}

/// A port's queues.
#[derive(Debug)]
pub struct PortWide {
    classes: ByClass,
    capacity: u32,
    ecn_threshold: u32,
}

impl PortWide {
    /// Whether there is room for a packet.
    fn fits(&self, packet: Desc) -> bool {
        self.classes.bytes().saturating_add(u32::from(packet.len)) <= self.capacity
    }

    /// Whether a packet is marked for what it finds.
    fn marks(&self, packet: Desc) -> bool {
        packet.is_ect() && self.classes.bytes() > self.ecn_threshold
    }
}

impl Discipline for PortWide {
    fn try_enqueue(&mut self, packet: Desc) -> bool {
        self.fits(packet) && !self.marks(packet) && self.classes.try_enqueue(packet)
    }

    fn cut_through(&mut self, packet: Desc) -> bool {
        self.fits(packet) && !self.marks(packet) && self.classes.cut_through(packet)
    }

    fn enqueue(&mut self, packet: Desc, random: &mut Random<'_>, told: &mut Told<'_>) {
        if !self.fits(packet) {
            return told(Disposition::Drop, packet);
        }
        let mut marks = self.marks(packet);
        self.classes.enqueue(packet, random, &mut |fate, of| {
            // Marked already, or not as it was.
            marks &= of.handle != packet.handle;
            told(fate, of);
        });
        if marks {
            told(Disposition::Mark, packet);
        }
    }

    fn dequeue(&mut self) -> Option<Desc> {
        self.classes.dequeue()
    }

    fn finish(&mut self, sent: Desc) {
        self.classes.finish(sent);
    }

    fn take_mark(&mut self) -> Option<Desc> {
        self.classes.take_mark()
    }

    fn bounces(&self) -> bool {
        self.classes.bounces()
    }

    fn set_open(&mut self, open: u8) {
        self.classes.set_open(open);
    }

    fn discard(&mut self, class: u8, told: &mut Told<'_>) {
        self.classes.discard(class, told);
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = Desc> + '_> {
        self.classes.waiting()
    }

    fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    fn bytes(&self) -> u32 {
        self.classes.bytes()
    }
}

#[cfg(test)]
mod tests {
    use endpoint::Flags;

    use super::*;
    use crate::{DropTailSpec, Schedule};

    /// Two classes of ten packets each, and what all of them hold.
    fn port(capacity: Option<u32>, ecn_threshold: Option<u32>) -> Queue {
        let class = DropTailSpec { capacity: Capacity::Packets(10), ecn_threshold: None };
        let classes = [0, 7].map(|number| (number, QueueSpec::DropTail(class)));
        let classes = ByClassSpec::new(Schedule::Strict, classes.into());
        PortWideSpec { classes, capacity, ecn_threshold }.build()
    }

    fn arrive(queue: &mut Queue, handle: u32, class: u8) -> Vec<Disposition> {
        let packet = Desc { handle, len: 1500, flags: Flags::ECT, class };
        let mut fates = Vec::new();
        if !queue.try_enqueue(packet) {
            queue.enqueue(packet, || 0, &mut |fate, _| fates.push(fate));
        }
        fates
    }

    #[test]
    fn what_all_classes_hold_marks_a_packet_of_any() {
        let mut queue = port(None, Some(3000));
        for (handle, class) in [(0, 0), (1, 0), (2, 7)] {
            assert!(arrive(&mut queue, handle, class).is_empty(), "up to the threshold");
        }
        assert_eq!(arrive(&mut queue, 3, 7), [Disposition::Mark]);
        assert_eq!(arrive(&mut queue, 4, 0), [Disposition::Mark]);
        let served = std::iter::from_fn(|| queue.dequeue()).map(|packet| packet.handle);
        assert_eq!(served.collect::<Vec<_>>(), [2, 3, 0, 1, 4], "marked and there");
    }

    #[test]
    fn what_all_classes_hold_together_is_limited() {
        let mut queue = port(Some(3 * 1500), None);
        for (handle, class) in [(0, 0), (1, 7), (2, 0)] {
            assert!(arrive(&mut queue, handle, class).is_empty());
        }
        assert_eq!(arrive(&mut queue, 3, 7), [Disposition::Drop], "nobody makes way");
        let served = queue.dequeue().unwrap();
        assert_eq!(arrive(&mut queue, 4, 7), [Disposition::Drop], "it is in service");
        queue.finish(served);
        assert!(arrive(&mut queue, 5, 7).is_empty());
    }

    #[test]
    fn a_class_may_be_full_before_the_port_is() {
        let mut queue = port(Some(100_000), Some(0));
        assert!(arrive(&mut queue, 0, 7).is_empty(), "it finds nothing");
        for handle in 1..10 {
            assert_eq!(arrive(&mut queue, handle, 7), [Disposition::Mark]);
        }
        assert_eq!(arrive(&mut queue, 10, 7), [Disposition::Drop], "and no mark");
    }
}
