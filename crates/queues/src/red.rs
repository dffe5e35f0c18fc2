//! Random early detection: what arrives at a queue is marked, or lost, with a probability that
//! grows with the queue. S. Floyd, V. Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", 1993, in the form that switches have and DCQCN configures (Y. Zhu et al., SIGCOMM
//! 2015, section 3.1; specs/tcp.md#9): nothing up to one length, a straight line from there to
//! another, everything beyond it. Where both are the same length K it is DCTCP's step.
//!
//! As in switches, and unlike ns-2's RED: packets are drawn independently, not spaced by a count
//! since the last mark, and the average is not taken down for the time in which the port was idle,
//! so that after a burst it falls with packets, not with time.

use std::collections::VecDeque;

use crate::boxed::{Discipline, DisciplineSpec, MarksFrom, Random, Told};
use crate::{Capacity, Desc, Disposition, Occupancy, Queue, QueueSpec, threshold};

/// Parameters of [`Red`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedSpec {
    /// What fits, the packet in service included.
    pub capacity: Capacity,
    /// How likely a packet is chosen.
    pub ramp: Ramp,
    /// Weight of the queue that an arriving packet finds in the average that decides, above 0 and
    /// up to 1 (Floyd and Jacobson: 0.002). `None`: the queue itself decides, as for DCTCP and
    /// DCQCN.
    pub weight: Option<f64>,
    /// When the queue is looked at.
    pub mark_at: MarkAt,
    /// What happens to a packet that cannot be marked.
    pub not_ect: NotEct,
}

/// The probability with which packets are chosen, by the length of the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// What the lengths count.
    pub unit: Unit,
    /// Up to this: 0.
    pub min: u32,
    /// At this, `min` or more: `probability`; beyond it: 1.
    pub max: u32,
    /// From 0 to 1.
    pub probability: f64,
}

/// In what a queue is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Packets of any size.
    Packets,
    /// Bytes on the wire.
    Bytes,
}

impl Unit {
    /// A length of `n` of this unit.
    pub(crate) const fn capacity(self, n: u32) -> Capacity {
        match self {
            Self::Packets => Capacity::Packets(n),
            Self::Bytes => Capacity::Bytes(n),
        }
    }
}

/// When a packet that is chosen is marked. What cannot be marked is lost when it arrives or not at
/// all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkAt {
    /// When it arrives, by what it finds: DCTCP's paper (SIGCOMM'10, section 3.1), most simulators.
    Arrival,
    /// When its transmission begins, by what it leaves behind: switches that mark as they send, so
    /// that the sender hears sooner (specs/tcp.md#8.4). [`crate::Queue::take_mark`] says so.
    Departure,
}

/// What happens to a chosen packet that is not ECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEct {
    /// Nothing.
    Pass,
    /// It is lost, as RED has it (RFC 3168, section 5).
    Drop,
}

impl Ramp {
    /// The step at `threshold`: everything is chosen that finds more.
    #[must_use]
    pub fn step(threshold: Capacity) -> Self {
        let (unit, at) = match threshold {
            Capacity::Packets(n) => (Unit::Packets, n),
            Capacity::Bytes(n) => (Unit::Bytes, n),
        };
        Self { unit, min: at, max: at, probability: 1.0 }
    }

    /// From `share` of its least length on, up to `share` of its greatest.
    pub(crate) fn scaled(self, share: f64) -> Self {
        let scaled = |n: u32| (f64::from(n) * share) as u32;
        Self { min: scaled(self.min), max: scaled(self.max), ..self }
    }

    pub(crate) fn chance(&self, length: f64) -> f64 {
        let (min, max) = (f64::from(self.min), f64::from(self.max));
        if length <= min {
            0.0
        } else if length > max {
            1.0
        } else {
            self.probability * (length - min) / (max - min)
        }
    }

    pub(crate) fn length(&self, packets: u32, bytes: u32) -> f64 {
        f64::from(match self.unit {
            Unit::Packets => packets,
            Unit::Bytes => bytes,
        })
    }
}

impl DisciplineSpec for RedSpec {
    fn build(&self) -> Queue {
        Queue::boxed(Red::new(*self))
    }

    fn capacities(&self) -> Vec<Capacity> {
        vec![self.capacity]
    }

    fn with_capacity(&self, capacity: Capacity) -> Option<QueueSpec> {
        Some(Self { capacity, ..*self }.into())
    }

    fn scaled(&self, share: f64) -> Option<QueueSpec> {
        let (capacity, ramp) = (self.capacity.scaled(share), self.ramp.scaled(share));
        Some(Self { capacity, ramp, ..*self }.into())
    }

    fn marks_at_departure(&self) -> bool {
        self.mark_at == MarkAt::Departure
    }

    fn shares_memory(&self) -> bool {
        true
    }

    fn marks_from(&self, _classes: &[u8]) -> MarksFrom {
        MarksFrom::Length(self.ramp.unit.capacity(self.ramp.min))
    }

    fn drops_unmarked(&self) -> bool {
        self.not_ect == NotEct::Drop
    }

    fn loses_because(&self) -> &'static str {
        match self.not_ect {
            NotEct::Drop => "queues were full, or chose packets that cannot be marked",
            NotEct::Pass => "queues were full",
        }
    }
}

/// A packet, and the number drawn for it when it arrived, if it may be marked when it leaves.
type Waiting = (Desc, Option<u64>);

/// First in, first out; see the module.
#[derive(Clone, Debug)]
pub struct Red {
    spec: RedSpec,
    waiting: VecDeque<Waiting>,
    room: Occupancy,
    /// What arriving packets have found, on average, if that is what decides.
    average: f64,
    /// The packet whose transmission begins, if it is to be marked.
    marked: Option<Desc>,
}

impl Red {
    pub(crate) fn new(spec: RedSpec) -> Self {
        let room = Occupancy::new(spec.capacity);
        Self { spec, waiting: VecDeque::new(), room, average: 0.0, marked: None }
    }

    /// What decides about a packet that arrives now: the queue, or the average with it.
    fn found(&self) -> f64 {
        let length = self.spec.ramp.length(self.room.packets, self.room.bytes);
        match self.spec.weight {
            None => length,
            Some(weight) => self.average + weight * (length - self.average),
        }
    }

    /// What happens to an arriving packet that is chosen; nothing if it need not be asked.
    fn fate(&self, packet: Desc) -> Option<Disposition> {
        match (packet.is_ect(), self.spec.mark_at, self.spec.not_ect) {
            (true, MarkAt::Arrival, _) => Some(Disposition::Mark),
            (false, _, NotEct::Drop) => Some(Disposition::Drop),
            (true, MarkAt::Departure, _) | (false, _, NotEct::Pass) => None,
        }
    }

    /// Whether a number is drawn for it that is looked at when it leaves.
    fn keeps_random(&self, packet: Desc) -> bool {
        packet.is_ect() && self.spec.mark_at == MarkAt::Departure
    }
}

impl Discipline for Red {
    fn try_enqueue(&mut self, packet: Desc) -> bool {
        let joins = self.cut_through(packet);
        if joins {
            self.waiting.push_back((packet, None));
        }
        joins
    }

    fn cut_through(&mut self, packet: Desc) -> bool {
        let found = self.found();
        let spared = self.fate(packet).is_none() || self.spec.ramp.chance(found) <= 0.0;
        let joins = self.room.fits(packet.len) && spared && !self.keeps_random(packet);
        if joins {
            self.average = found;
            self.room.take(packet.len);
        }
        joins
    }

    fn enqueue(&mut self, packet: Desc, random: &mut Random<'_>, told: &mut Told<'_>) {
        self.average = self.found();
        if !self.room.fits(packet.len) {
            told(Disposition::Drop, packet);
            return;
        }
        let mut kept = None;
        if self.keeps_random(packet) {
            kept = Some(random());
        } else if let Some(chosen) = self.fate(packet)
            && random() >> 1 < threshold(self.spec.ramp.chance(self.average))
        {
            told(chosen, packet);
            if chosen == Disposition::Drop {
                return;
            }
        }
        self.room.take(packet.len);
        self.waiting.push_back((packet, kept));
    }

    fn dequeue(&mut self) -> Option<Desc> {
        let (packet, random) = self.waiting.pop_front()?;
        let behind = match self.spec.weight {
            Some(_) => self.average,
            // The packet itself counts until it is finished.
            None => {
                let bytes = self.room.bytes - u32::from(packet.len);
                self.spec.ramp.length(self.room.packets - 1, bytes)
            }
        };
        let chosen =
            random.is_some_and(|random| random >> 1 < threshold(self.spec.ramp.chance(behind)));
        self.marked = chosen.then_some(packet);
        Some(packet)
    }

    fn finish(&mut self, packet: Desc) {
        self.room.give_back(packet.len);
    }

    fn take_mark(&mut self) -> Option<Desc> {
        self.marked.take()
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = Desc> + '_> {
        Box::new(self.waiting.iter().map(|(packet, _)| *packet))
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn bytes(&self) -> u32 {
        self.room.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DropTail, DropTailSpec};
    use endpoint::{Draw, Flags, Purpose};

    const ECT: Flags = Flags::ECT;
    const PLAIN: Flags = Flags(0);

    const SPEC: RedSpec = RedSpec {
        capacity: Capacity::Packets(100),
        ramp: Ramp { unit: Unit::Packets, min: 10, max: 30, probability: 0.2 },
        weight: None,
        mark_at: MarkAt::Arrival,
        not_ect: NotEct::Drop,
    };

    fn packet(handle: u32, flags: Flags) -> Desc {
        Desc { handle, len: 1000, flags, class: 0 }
    }

    /// A number that differs from call to call.
    fn random(n: u32) -> u64 {
        Draw::new(1, Purpose::new("test"), 0).bits(Purpose::new("coin"), u64::from(n))
    }

    /// As a port does: offer first. What became of the packet beside joining.
    fn arrive(queue: &mut Red, packet: Desc) -> Vec<Disposition> {
        let (mut fates, n) = (Vec::new(), packet.handle);
        if !queue.try_enqueue(packet) {
            queue.enqueue(packet, &mut || random(n), &mut |fate, _| fates.push(fate));
        }
        fates
    }

    /// The share of arrivals with a fate at a queue that holds `length` packets.
    fn share(spec: RedSpec, length: u32, flags: Flags) -> f64 {
        const TRIES: u32 = 20_000;
        let mut queue = Red::new(RedSpec { not_ect: NotEct::Pass, ..spec });
        (0..length).for_each(|n| assert!(queue.try_enqueue(packet(n, PLAIN))));
        queue.spec = spec;
        let fates = |n| arrive(&mut queue.clone(), packet(n, flags)).len();
        (0..TRIES).map(fates).sum::<usize>() as f64 / f64::from(TRIES)
    }

    /// Kmin = 10, Kmax = 30, Pmax = 0.2.
    #[test]
    fn the_share_of_marks_and_losses_follows_the_ramp() {
        let ramp = [(0, 0.0), (10, 0.0), (11, 0.01), (20, 0.1), (30, 0.2), (31, 1.0), (99, 1.0)];
        for (length, expected) in ramp {
            for flags in [ECT, PLAIN] {
                let found = share(SPEC, length, flags);
                // Four standard deviations of a share of 20 000.
                let tolerance = 4.0 * (expected * (1.0 - expected) / 20_000.0_f64).sqrt();
                assert!((found - expected).abs() <= tolerance, "{length}: {found} of {expected}");
            }
            let passed = share(RedSpec { not_ect: NotEct::Pass, ..SPEC }, length, PLAIN);
            assert_eq!(passed, 0.0, "what cannot be marked passes");
        }
    }

    #[test]
    fn marks_keep_the_packet_and_losses_do_not() {
        let mut queue = Red::new(RedSpec { ramp: Ramp::step(Capacity::Bytes(1500)), ..SPEC });
        assert!(arrive(&mut queue, packet(0, PLAIN)).is_empty());
        assert!(arrive(&mut queue, packet(1, ECT)).is_empty(), "finds 1000 B");
        assert_eq!(arrive(&mut queue, packet(2, ECT)), [Disposition::Mark]);
        assert_eq!(arrive(&mut queue, packet(3, PLAIN)), [Disposition::Drop]);
        assert_eq!(queue.bytes(), 3000);
        let left: Vec<u32> = std::iter::from_fn(|| queue.dequeue()).map(|p| p.handle).collect();
        assert_eq!(left, [0, 1, 2]);
        for n in 0..3 {
            queue.finish(packet(n, ECT));
        }
        assert_eq!((queue.bytes(), queue.is_empty()), (0, true));
    }

    /// The step of a ramp is that of drop-tail's threshold, packet by packet.
    #[test]
    fn a_ramp_of_no_width_is_the_step() {
        let (capacity, k) = (Capacity::Packets(12), Capacity::Packets(5));
        let ramp = Ramp::step(k);
        let spec = RedSpec { capacity, ramp, not_ect: NotEct::Pass, ..SPEC };
        let mut red = Red::new(spec);
        let mut step = DropTail::new(DropTailSpec { capacity, ecn_threshold: Some(k) });
        for n in 0..50_000 {
            if random(n) % 5 < 2 {
                let sent = red.dequeue();
                assert_eq!(sent, step.dequeue());
                if let Some(sent) = sent {
                    red.finish(sent);
                    step.finish(sent);
                }
                continue;
            }
            let packet = packet(n, if random(n).is_multiple_of(3) { PLAIN } else { ECT });
            let mut fates = Vec::new();
            step.enqueue(packet, &mut |fate, _| fates.push(fate));
            assert_eq!(arrive(&mut red, packet), fates, "packet {n}");
            assert_eq!(red.bytes(), step.bytes());
        }
    }

    /// By hand: with a weight of 1/2, packets that find 0, 1, 2, 3, 4, 5 packets make averages of
    /// 0, 0.5, 1.25, 2.125, 3.0625 and 4.03125: the sixth is the first beyond 4.
    #[test]
    fn the_average_follows_the_queue_with_its_weight() {
        let ramp = Ramp::step(Capacity::Packets(4));
        let mut queue = Red::new(RedSpec { ramp, weight: Some(0.5), ..SPEC });
        let fates: Vec<_> = (0..7).map(|n| arrive(&mut queue, packet(n, ECT)).len()).collect();
        assert_eq!(fates, [0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(queue.average, 4.031_25 + (6.0 - 4.031_25) / 2.0);
        // Emptied, it falls by a half with each packet that finds it empty.
        while let Some(sent) = queue.dequeue() {
            queue.finish(sent);
        }
        assert_eq!(arrive(&mut queue, packet(7, ECT)).len(), 0, "5.015625 / 2");
        assert_eq!(queue.average, 5.015_625 / 2.0);
    }

    #[test]
    fn at_departure_what_is_left_behind_decides() {
        let ramp = Ramp::step(Capacity::Packets(2));
        let mut queue = Red::new(RedSpec { ramp, mark_at: MarkAt::Departure, ..SPEC });
        for n in 0..6 {
            let flags = if n == 1 { PLAIN } else { ECT };
            let fates = arrive(&mut queue, packet(n, flags));
            assert!(fates.is_empty(), "no mark at arrival, and the second finds only one");
        }
        let mut marked = Vec::new();
        while let Some(sent) = queue.dequeue() {
            marked.extend(queue.take_mark().map(|mark| mark.handle));
            assert_eq!(queue.take_mark(), None);
            queue.finish(sent);
        }
        // Behind 0, 1, 2 wait 5, 4, 3: more than two; 1 cannot be marked.
        assert_eq!(marked, [0, 2]);
        // What cannot be marked is lost at arrival, if it is.
        for n in 0..3 {
            assert!(arrive(&mut queue, packet(n, ECT)).is_empty());
        }
        assert_eq!(arrive(&mut queue, packet(3, PLAIN)), [Disposition::Drop]);
    }
}
