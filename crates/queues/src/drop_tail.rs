//! Drop-tail, with an optional threshold at which packets are marked.

use crate::boxed::MarksFrom;
use crate::fifo::Fifo;
use crate::{Capacity, Desc, DisciplineSpec, Disposition, Occupancy, Queue, QueueSpec};

/// Parameters of [`DropTail`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DropTailSpec {
    /// What fits, the packet in service included.
    pub capacity: Capacity,
    /// Mark an arriving ECT packet when the queue already holds more than this (DCTCP's K:
    /// SIGCOMM'10, section 3.1). `None`: never mark.
    pub ecn_threshold: Option<Capacity>,
}

impl DisciplineSpec for DropTailSpec {
    fn wrap(self) -> QueueSpec {
        QueueSpec::DropTail(self)
    }

    fn build(&self) -> Queue {
        Queue::DropTail(DropTail::new(*self))
    }

    fn capacities(&self) -> Vec<Capacity> {
        vec![self.capacity]
    }

    fn with_capacity(&self, capacity: Capacity) -> Option<QueueSpec> {
        Some(Self { capacity, ..*self }.wrap())
    }

    fn scaled(&self, share: f64) -> Option<QueueSpec> {
        let ecn_threshold = self.ecn_threshold.map(|threshold| threshold.scaled(share));
        Some(Self { capacity: self.capacity.scaled(share), ecn_threshold }.wrap())
    }

    fn peeks(&self) -> bool {
        true
    }

    fn shares_memory(&self) -> bool {
        true
    }

    fn marks_from(&self, _classes: &[u8]) -> MarksFrom {
        self.ecn_threshold.map_or(MarksFrom::Never, MarksFrom::Length)
    }
}

/// First in, first out; what does not fit is lost.
// In order of use.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct DropTail {
    room: Occupancy,
    ecn_threshold: Option<Capacity>,
    fifo: Fifo,
}

impl DropTail {
    pub(crate) fn new(spec: DropTailSpec) -> Self {
        Self {
            fifo: Fifo::new(),
            room: Occupancy::new(spec.capacity),
            ecn_threshold: spec.ecn_threshold,
        }
    }

    #[inline(always)]
    pub(crate) fn try_enqueue(&mut self, packet: Desc) -> bool {
        let fits = self.cut_through(packet);
        if fits {
            self.fifo.push_back(packet);
        }
        fits
    }

    /// As `try_enqueue`, of a packet that is served at once.
    #[inline(always)]
    pub(crate) fn cut_through(&mut self, packet: Desc) -> bool {
        let fits = self.room.fits(packet.len) && !(packet.is_ect() && self.above_threshold());
        if fits {
            self.room.take(packet.len);
        }
        fits
    }

    pub(crate) fn enqueue(&mut self, packet: Desc, fate: &mut impl FnMut(Disposition, Desc)) {
        if !self.room.fits(packet.len) {
            fate(Disposition::Drop, packet);
            return;
        }
        if packet.is_ect() && self.above_threshold() {
            fate(Disposition::Mark, packet);
        }
        self.room.take(packet.len);
        self.fifo.push_back(packet);
    }

    fn above_threshold(&self) -> bool {
        match self.ecn_threshold {
            None => false,
            Some(Capacity::Packets(k)) => self.room.packets > k,
            Some(Capacity::Bytes(k)) => self.room.bytes > k,
        }
    }

    #[inline(always)]
    pub(crate) fn dequeue(&mut self) -> Option<Desc> {
        self.fifo.pop_front()
    }

    #[inline(always)]
    pub(crate) fn finish(&mut self, packet: Desc) {
        self.room.give_back(packet.len);
    }

    pub(crate) fn waiting(&self) -> &Fifo {
        &self.fifo
    }

    pub(crate) fn bytes(&self) -> u32 {
        self.room.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use endpoint::Flags;

    fn packet(handle: u32, len: u16) -> Desc {
        Desc { handle, len, flags: Flags::ECT, class: 0 }
    }

    fn arrive(queue: &mut DropTail, packet: Desc) -> Vec<Disposition> {
        let mut fates = Vec::new();
        queue.enqueue(packet, &mut |fate, _| fates.push(fate));
        fates
    }

    #[test]
    fn the_packet_in_service_counts_until_it_is_finished() {
        let spec = DropTailSpec { capacity: Capacity::Packets(2), ecn_threshold: None };
        let mut queue = DropTail::new(spec);
        assert!(arrive(&mut queue, packet(1, 100)).is_empty());
        let served = queue.dequeue().unwrap();
        assert!(arrive(&mut queue, packet(2, 100)).is_empty());
        assert_eq!(arrive(&mut queue, packet(3, 100)), [Disposition::Drop]);
        queue.finish(served);
        assert!(arrive(&mut queue, packet(3, 100)).is_empty());
        assert_eq!(queue.dequeue().map(|p| p.handle), Some(2));
        assert_eq!(queue.bytes(), 200);
    }

    #[test]
    fn bytes_fill_exactly_and_small_packets_still_fit() {
        let spec = DropTailSpec { capacity: Capacity::Bytes(250), ecn_threshold: None };
        let mut queue = DropTail::new(spec);
        assert!(arrive(&mut queue, packet(1, 200)).is_empty());
        assert_eq!(arrive(&mut queue, packet(2, 51)), [Disposition::Drop]);
        assert!(arrive(&mut queue, packet(3, 50)).is_empty());
    }

    #[test]
    fn marks_above_the_threshold_and_only_who_can_be_marked() {
        let spec = DropTailSpec {
            capacity: Capacity::Packets(9),
            ecn_threshold: Some(Capacity::Packets(1)),
        };
        let mut queue = DropTail::new(spec);
        assert!(arrive(&mut queue, packet(1, 100)).is_empty());
        assert!(arrive(&mut queue, packet(2, 100)).is_empty(), "holds 1, not more than 1");
        assert_eq!(arrive(&mut queue, packet(3, 100)), [Disposition::Mark]);
        assert!(arrive(&mut queue, Desc { flags: Flags(0), ..packet(4, 100) }).is_empty());
    }
}
