//! The Cut-Payload queue, the baseline that NDP is compared with (P. Cheng et al., "Catch the Whole
//! Lot in an Action", NSDI 2014; as in specs/ndp.md#4): one first-in first-out queue that cuts the
//! payload off what would make it too long. Headers wait behind data, and who is cut is a matter of
//! when packets arrive.

use endpoint::Flags;

use crate::boxed::{Discipline, DisciplineSpec, Random, Told};
use crate::fifo::Fifo;
use crate::{Capacity, Desc, Disposition, Occupancy, Queue};

/// Parameters of [`CutPayload`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CutPayloadSpec {
    /// What fits, the packet in service included. What has no payload and does not fit is lost.
    pub capacity: Capacity,
    /// A packet with payload that would make the queue longer than this is trimmed (the NDP
    /// authors' simulator: half of `capacity`).
    pub trim_threshold: Capacity,
    /// Length of a trimmed packet, bytes (64).
    pub trim_to: u16,
}

impl DisciplineSpec for CutPayloadSpec {
    fn build(&self) -> Queue {
        Queue::boxed(CutPayload::new(*self))
    }

    fn capacities(&self) -> Vec<Capacity> {
        vec![self.capacity]
    }

    fn trims_to(&self) -> u16 {
        self.trim_to
    }
}

/// A port's queue.
#[derive(Clone, Debug)]
pub struct CutPayload {
    fifo: Fifo,
    room: Occupancy,
    trim_threshold: Capacity,
    trim_to: u16,
}

impl CutPayload {
    pub(crate) fn new(spec: CutPayloadSpec) -> Self {
        Self {
            fifo: Fifo::new(),
            room: Occupancy::new(spec.capacity),
            trim_threshold: spec.trim_threshold,
            trim_to: spec.trim_to,
        }
    }

    fn above_threshold_with(&self, len: u16) -> bool {
        match self.trim_threshold {
            Capacity::Packets(most) => self.room.packets >= most,
            Capacity::Bytes(most) => self.room.bytes.saturating_add(u32::from(len)) > most,
        }
    }
}

impl Discipline for CutPayload {
    /// The first two rows of the table in specs/ndp.md#4: there is room for it as it is.
    fn try_enqueue(&mut self, packet: Desc) -> bool {
        let fits = self.cut_through(packet);
        if fits {
            self.fifo.push_back(packet);
        }
        fits
    }

    fn cut_through(&mut self, packet: Desc) -> bool {
        let trimmed = packet.is_data() && self.above_threshold_with(packet.len);
        let fits = !trimmed && self.room.fits(packet.len);
        if fits {
            self.room.take(packet.len);
        }
        fits
    }

    /// The other two rows: what has payload loses it, and what still does not fit is lost.
    fn enqueue(&mut self, packet: Desc, _: &mut Random<'_>, told: &mut Told<'_>) {
        if self.try_enqueue(packet) {
            return;
        }
        let mut packet = packet;
        if packet.is_data() {
            packet.len = self.trim_to.min(packet.len);
            packet.flags.set(Flags::TRIMMED);
            told(Disposition::Trim, packet);
        }
        if !self.try_enqueue(packet) {
            told(Disposition::Drop, packet);
        }
    }

    fn dequeue(&mut self) -> Option<Desc> {
        self.fifo.pop_front()
    }

    fn finish(&mut self, packet: Desc) {
        self.room.give_back(packet.len);
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = Desc> + '_> {
        Box::new(self.fifo.iter())
    }

    fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    fn bytes(&self) -> u32 {
        self.room.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packets of 9064 B below the threshold, then one header of 64 B up to the capacity.
    const SPEC: CutPayloadSpec = CutPayloadSpec {
        capacity: Capacity::Bytes(2 * 9064 + 100),
        trim_threshold: Capacity::Bytes(2 * 9064),
        trim_to: 64,
    };

    fn data(handle: u32) -> Desc {
        Desc { handle, len: 9064, flags: Flags(0), class: 0 }
    }

    fn control(handle: u32) -> Desc {
        Desc { handle, len: 64, flags: Flags::CONTROL, class: 0 }
    }

    fn arrive(queue: &mut CutPayload, packet: Desc) -> Vec<(Disposition, u32)> {
        let mut fates = Vec::new();
        queue.enqueue(packet, &mut || 0, &mut |fate, p| fates.push((fate, p.handle)));
        fates
    }

    #[test]
    fn the_arriving_packet_is_trimmed_and_its_header_waits_its_turn() {
        let mut queue = CutPayload::new(SPEC);
        assert!(arrive(&mut queue, data(0)).is_empty());
        assert!(arrive(&mut queue, data(1)).is_empty(), "up to the threshold");
        assert_eq!(arrive(&mut queue, data(2)), [(Disposition::Trim, 2)]);
        assert_eq!(queue.bytes(), 2 * 9064 + 64);
        let served: Vec<(u32, u16)> =
            std::iter::from_fn(|| queue.dequeue()).map(|p| (p.handle, p.len)).collect();
        assert_eq!(served, [(0, 9064), (1, 9064), (2, 64)], "first in, first out");
    }

    #[test]
    fn a_full_queue_loses_headers_and_control_and_bounces_nothing() {
        let mut queue = CutPayload::new(SPEC);
        for handle in 0..3 {
            arrive(&mut queue, data(handle));
        }
        assert_eq!(arrive(&mut queue, data(3)), [(Disposition::Trim, 3), (Disposition::Drop, 3)]);
        assert_eq!(arrive(&mut queue, control(4)), [(Disposition::Drop, 4)]);
    }

    #[test]
    fn the_packet_in_service_counts_until_it_is_finished() {
        let packets = |n| Capacity::Packets(n);
        let spec = CutPayloadSpec { capacity: packets(3), trim_threshold: packets(1), ..SPEC };
        let mut queue = CutPayload::new(spec);
        assert!(queue.cut_through(data(0)), "served at once");
        assert_eq!(arrive(&mut queue, data(1)), [(Disposition::Trim, 1)]);
        queue.finish(data(0));
        let header = queue.dequeue().unwrap();
        queue.finish(header);
        assert_eq!(queue.bytes(), 0);
        assert!(arrive(&mut queue, data(2)).is_empty());
    }
}
