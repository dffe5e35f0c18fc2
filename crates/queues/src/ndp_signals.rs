//! NDP's queue where hosts hear more of it than trimmed headers: packets with payload are marked as
//! they leave, and a header says whether it was trimmed at its last hop (specs/uet.md#6).

use endpoint::{Draw, Flags, Purpose};

use crate::boxed::{Discipline, Random, Told};
use crate::{Desc, Disposition, Ndp, NdpSpec, Ramp, threshold};

const MARK: Purpose = Purpose::new("ndp mark");

/// A port's two queues, and what they tell.
#[derive(Debug)]
pub(crate) struct NdpSignals {
    queue: Ndp,
    /// The probability of a mark, by the full packets that are left behind.
    marks: Option<Ramp>,
    /// What a packet that is trimmed here gets.
    trimmed: Flags,
    /// What was drawn for the packet that arrived last.
    random: u64,
    /// How many packets could be marked so far.
    looked_at: u64,
    /// The packet whose transmission begins, if it is to be marked.
    marked: Option<Desc>,
}

impl NdpSignals {
    pub(crate) fn new(spec: NdpSpec) -> Self {
        let last = spec.last_hop == Some(true);
        Self {
            queue: Ndp::new(spec),
            marks: spec.marks,
            trimmed: if last { Flags::LAST_HOP } else { Flags(0) },
            random: 0,
            looked_at: 0,
            marked: None,
        }
    }

    fn may_be_marked(&self, packet: Desc) -> bool {
        self.marks.is_some() && packet.is_data() && packet.is_ect()
    }

    /// Whether `packet`, whose transmission begins, is marked.
    fn marks(&mut self, packet: Desc) -> bool {
        if !self.may_be_marked(packet) {
            return false;
        }
        let Some(ramp) = &self.marks else { return false };
        let (packets, bytes) = self.queue.data_behind(packet);
        let chance = ramp.chance(ramp.length(packets, bytes));
        self.looked_at += 1;
        chance > 0.0
            && Draw::new(self.random, MARK, self.looked_at).bits(MARK, 0) >> 1 < threshold(chance)
    }
}

impl Discipline for NdpSignals {
    /// Not of what may be marked: a number is drawn for it.
    fn try_enqueue(&mut self, packet: Desc) -> bool {
        !self.may_be_marked(packet) && self.queue.try_enqueue(packet)
    }

    /// It leaves nothing behind, so it is not marked.
    fn cut_through(&mut self, packet: Desc) -> bool {
        self.queue.cut_through(packet)
    }

    fn enqueue(&mut self, packet: Desc, random: &mut Random<'_>, told: &mut Told<'_>) {
        let bits = random();
        if self.may_be_marked(packet) {
            self.random = bits;
        }
        let trimmed = self.trimmed;
        self.queue.enqueue(packet, || bits, &mut |fate, packet| {
            let more = if fate == Disposition::Trim { trimmed } else { Flags(0) };
            told(fate, Desc { flags: packet.flags.with(more), ..packet });
        });
    }

    fn dequeue(&mut self) -> Option<Desc> {
        let packet = self.queue.dequeue()?;
        self.marked = self.marks(packet).then_some(packet);
        Some(packet)
    }

    fn finish(&mut self, packet: Desc) {
        self.queue.finish(packet);
    }

    fn take_mark(&mut self) -> Option<Desc> {
        self.marked.take()
    }

    fn bounces(&self) -> bool {
        self.queue.arrivals_before_bounce() != u32::MAX
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = Desc> + '_> {
        Box::new(self.queue.waiting())
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn bytes(&self) -> u32 {
        self.queue.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capacity, DisciplineSpec, Queue, Unit};

    const SPEC: NdpSpec = NdpSpec {
        data_capacity: Capacity::Packets(10),
        header_capacity: Capacity::Packets(20),
        header_weight: 255,
        bounce: false,
        marks: Some(Ramp { unit: Unit::Packets, min: 2, max: 8, probability: 1.0 }),
        last_hop: Some(false),
        ..NdpSpec::PAPER
    };

    fn data(handle: u32) -> Desc {
        Desc { handle, len: 4150, flags: Flags::ECT, class: 0 }
    }

    fn random(n: u64) -> u64 {
        Draw::new(3, Purpose::new("test"), 0).bits(Purpose::new("arrival"), n)
    }

    /// As a port does: offer first. What became of the packet.
    fn arrive(queue: &mut Queue, packet: Desc, n: u64) -> Vec<(Disposition, Flags)> {
        let mut fates = Vec::new();
        if !queue.try_enqueue(packet) {
            queue.enqueue(packet, || random(n), &mut |fate, packet| {
                fates.push((fate, packet.flags));
            });
        }
        fates
    }

    /// The share of packets marked that leave so many behind.
    fn share(behind: u32) -> f64 {
        const TRIES: u64 = 6_000;
        let mut queue = SPEC.build();
        let (mut marks, mut n) = (0, 0);
        let fill = |queue: &mut Queue, n: &mut u64| {
            assert!(arrive(queue, data(0), *n).is_empty(), "there is room");
            *n += 1;
        };
        (0..behind).for_each(|_| fill(&mut queue, &mut n));
        for _ in 0..TRIES {
            fill(&mut queue, &mut n);
            let packet = queue.dequeue().unwrap();
            marks += u64::from(queue.take_mark() == Some(packet));
            queue.finish(packet);
        }
        marks as f64 / TRIES as f64
    }

    /// Low is 2 packets, high is 8: a straight line between.
    #[test]
    fn the_share_of_marks_follows_what_is_left_behind() {
        for (behind, expected) in
            [(0, 0.0), (2, 0.0), (3, 1.0 / 6.0), (5, 0.5), (7, 5.0 / 6.0), (8, 1.0), (9, 1.0)]
        {
            let found = share(behind);
            // Four standard deviations of a share of 6000.
            let tolerance = 4.0 * (expected * (1.0 - expected) / 6_000.0_f64).sqrt();
            assert!((found - expected).abs() <= tolerance, "{behind}: {found} of {expected}");
        }
    }

    #[test]
    fn headers_control_and_what_understands_no_marks_are_not_marked() {
        let marks = Some(Ramp { unit: Unit::Bytes, min: 0, max: 0, probability: 1.0 });
        for flags in [Flags(0), Flags::CONTROL.with(Flags::ECT), Flags::TRIMMED.with(Flags::ECT)] {
            let mut queue = NdpSpec { marks, ..SPEC }.build();
            for n in 0..5 {
                arrive(&mut queue, Desc { flags, len: 64, ..data(0) }, n);
            }
            while let Some(packet) = queue.dequeue() {
                assert_eq!(queue.take_mark(), None, "{flags:?}");
                queue.finish(packet);
            }
        }
    }

    #[test]
    fn headers_say_whether_it_was_the_last_hop() {
        let fates = |spec: NdpSpec| {
            let mut queue = spec.build();
            let all: Vec<_> = (0..30).flat_map(|n| arrive(&mut queue, data(0), n)).collect();
            assert_eq!(all.len(), 20, "ten fit, twenty are trimmed");
            all.iter().filter(|(_, flags)| flags.has(Flags::LAST_HOP)).count()
        };
        assert_eq!(fates(SPEC), 0);
        let last = SPEC.at_last_hop().expect("it says so");
        let crate::QueueSpec::Ndp(last) = last else { panic!("of the same kind") };
        assert_eq!(fates(last), 20);
        assert_eq!(NdpSpec { last_hop: None, ..SPEC }.at_last_hop(), None);
        let unmarked = NdpSpec { last_hop: None, mark_last_hop: false, ..SPEC }.at_last_hop();
        let Some(crate::QueueSpec::Ndp(unmarked)) = unmarked else { panic!("of the same kind") };
        assert_eq!((unmarked.marks, unmarked.last_hop), (None, None));
    }

    /// Without anything to tell it decides as the plain queue, packet by packet.
    #[test]
    fn it_trims_and_serves_as_the_plain_queue() {
        let plain = NdpSpec { marks: None, last_hop: None, ..SPEC };
        let (mut one, mut other) =
            (plain.build(), NdpSpec { last_hop: Some(false), ..plain }.build());
        for n in 0..20_000 {
            if random(n) % 7 < 3 {
                let packet = one.dequeue();
                assert_eq!(packet, other.dequeue());
                packet.into_iter().for_each(|packet| {
                    one.finish(packet);
                    other.finish(packet);
                });
                continue;
            }
            let packet = data(n as u32);
            assert_eq!(arrive(&mut one, packet, n), arrive(&mut other, packet, n));
            assert_eq!(one.bytes(), other.bytes());
        }
    }
}
