//! The pFabric queue (SIGCOMM'13, section 4.1): a few packets, of which the one whose message has
//! the most left is lost when there is no room, and the message with the least left is served
//! first.
//!
//! What is left of a message stands in its packets' headers ([`wire::pfabric::urgency`]), as it was
//! when they were sent. So later packets of a message are more urgent than earlier ones; served is
//! the earliest of the message that has the most urgent one, and messages stay in order
//! (specs/pfabric.md#2). Other packets have no such header: those with payload are the least
//! urgent, control the most.

use std::collections::VecDeque;

use endpoint::Packet;
use units::HostId;
use wire::pfabric::{PROTO, Urgency, urgency};

use crate::boxed::{Discipline, DisciplineSpec, Random, Told};
use crate::{Capacity, Desc, Disposition, Occupancy, Queue, QueueSpec};

/// Parameters of [`PFabric`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PFabricSpec {
    /// What fits, the packet in service included (36 KB, two bandwidth-delay products).
    pub capacity: Capacity,
}

impl DisciplineSpec for PFabricSpec {
    fn build(&self) -> Queue {
        Queue::boxed(PFabric::new(*self))
    }

    fn capacities(&self) -> Vec<Capacity> {
        vec![self.capacity]
    }

    fn with_capacity(&self, capacity: Capacity) -> Option<QueueSpec> {
        Some(Self { capacity }.wrap())
    }

    /// What is more urgent passes a packet for as long as it arrives. As if that were the eight
    /// classes of strict priorities.
    fn backlog(&self, mtu: u64) -> u64 {
        8 * self.capacity.bytes(mtu)
    }

    fn loses_because(&self) -> &'static str {
        "queues were full of packets of shorter messages"
    }
}

/// The message of a packet, among packets that go the same way.
type Message = (HostId, HostId, Urgency);

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    packet: Desc,
    remaining: u32,
    /// Its message, if it is one of pFabric's. What is left of it is not looked at.
    message: Option<Message>,
}

impl Waiting {
    fn of(packet: Desc, contents: &Packet) -> Self {
        let header = if contents.proto == PROTO { urgency(contents.header()) } else { None };
        let remaining = match header {
            Some(urgency) => urgency.remaining,
            None if packet.is_data() => u32::MAX,
            None => 0,
        };
        // A trimmed or returned packet is no longer one of its message's.
        let of_message =
            header.map(|it| (contents.src, contents.dst, Urgency { remaining: 0, ..it }));
        Self { packet, remaining, message: of_message }
    }
}

/// A port's queue.
#[derive(Debug)]
pub struct PFabric {
    /// In order of arrival.
    waiting: VecDeque<Waiting>,
    room: Occupancy,
}

impl PFabric {
    pub(crate) fn new(spec: PFabricSpec) -> Self {
        Self { waiting: VecDeque::new(), room: Occupancy::new(spec.capacity) }
    }

    fn take(&mut self, arriving: Waiting) {
        self.room.take(arriving.packet.len);
        self.waiting.push_back(arriving);
    }

    /// Which packet is lost for an arriving one: of those whose loss makes room, and the arriving
    /// one itself (`None`), the one with the most left; of several with as much the latest.
    fn victim(&self, arriving: &Waiting) -> Option<usize> {
        let mut most = (arriving.remaining, None);
        for (place, waiting) in self.waiting.iter().enumerate().rev() {
            let mut room = self.room;
            room.give_back(waiting.packet.len);
            if waiting.remaining > most.0 && room.fits(arriving.packet.len) {
                most = (waiting.remaining, Some(place));
            }
        }
        most.1
    }

    fn arrive(&mut self, arriving: Waiting, told: &mut Told<'_>) {
        if self.room.fits(arriving.packet.len) {
            self.take(arriving);
            return;
        }
        let victim = self.victim(&arriving).and_then(|place| self.waiting.remove(place));
        let lost = match victim {
            Some(victim) => {
                self.room.give_back(victim.packet.len);
                self.take(arriving);
                victim
            }
            None => arriving,
        };
        told(Disposition::Drop, lost.packet);
    }

    /// The earliest packet of the message that has the packet with the least left.
    fn next_place(&self) -> Option<usize> {
        let all = || self.waiting.iter().enumerate();
        let (place, urgent) = all().min_by_key(|(_, waiting)| waiting.remaining)?;
        let Some(message) = urgent.message else { return Some(place) };
        all().find(|(_, waiting)| waiting.message == Some(message)).map(|(place, _)| place)
    }
}

impl Discipline for PFabric {
    /// It has not been read.
    fn enqueue(&mut self, packet: Desc, _: &mut Random<'_>, told: &mut Told<'_>) {
        self.arrive(Waiting::of(packet, &Packet::EMPTY), told);
    }

    fn reads_packets(&self) -> bool {
        true
    }

    fn enqueue_read(
        &mut self,
        packet: Desc,
        contents: &Packet,
        _: &mut Random<'_>,
        told: &mut Told<'_>,
    ) {
        self.arrive(Waiting::of(packet, contents), told);
    }

    fn dequeue(&mut self) -> Option<Desc> {
        let place = self.next_place()?;
        self.waiting.remove(place).map(|waiting| waiting.packet)
    }

    fn finish(&mut self, sent: Desc) {
        self.room.give_back(sent.len);
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = Desc> + '_> {
        Box::new(self.waiting.iter().map(|waiting| waiting.packet))
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
    use endpoint::Flags;
    use wire::pfabric::{Kind, Repr};

    use super::*;

    const FULL: u16 = 1500;

    fn queue(packets: u32) -> PFabric {
        PFabric::new(PFabricSpec { capacity: Capacity::Bytes(packets * u32::from(FULL)) })
    }

    /// A packet of `len` bytes of `message`, of which so much is left. What is lost for it.
    fn arrive(
        queue: &mut PFabric,
        handle: u32,
        len: u16,
        (message, remaining): (u64, u32),
    ) -> Vec<u32> {
        let kind = Kind::Data { remaining, seq: 0, size: 1_000_000, len: len - 40 };
        let flags = Flags(0);
        put(queue, Desc { handle, len, flags, class: 0 }, Repr { message, kind })
    }

    fn put(queue: &mut PFabric, packet: Desc, header: Repr) -> Vec<u32> {
        let mut contents =
            Packet { proto: PROTO, hdr_len: wire::pfabric::LEN as u8, ..Packet::EMPTY };
        contents.hdr[..wire::pfabric::LEN].copy_from_slice(&header.to_bytes());
        let mut lost = Vec::new();
        let told = &mut |fate, packet: Desc| {
            assert_eq!(fate, Disposition::Drop);
            lost.push(packet.handle);
        };
        queue.enqueue_read(packet, &contents, &mut || 0, told);
        lost
    }

    fn served(queue: &mut PFabric) -> Vec<u32> {
        std::iter::from_fn(|| {
            let packet = queue.dequeue()?;
            queue.finish(packet);
            Some(packet.handle)
        })
        .collect()
    }

    #[test]
    fn the_packet_of_the_message_with_the_most_left_is_lost() {
        let mut queue = queue(3);
        for (handle, left) in [(0, 9000), (1, 50_000), (2, 3000)] {
            assert!(arrive(&mut queue, handle, FULL, (handle.into(), left)).is_empty());
        }
        assert_eq!(arrive(&mut queue, 3, FULL, (3, 60_000)), [3], "the arriving one itself");
        assert_eq!(arrive(&mut queue, 4, FULL, (4, 4000)), [1]);
        assert_eq!(arrive(&mut queue, 5, FULL, (5, 9000)), [5], "the latest of equals");
        assert_eq!(served(&mut queue), [2, 4, 0]);
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn of_several_with_as_much_left_the_latest_is_lost() {
        let mut queue = queue(2);
        arrive(&mut queue, 0, FULL, (0, 9000));
        arrive(&mut queue, 1, FULL, (1, 9000));
        assert_eq!(arrive(&mut queue, 2, FULL, (2, 100)), [1]);
    }

    #[test]
    fn the_packet_in_service_takes_room_and_is_never_lost() {
        let mut queue = queue(2);
        arrive(&mut queue, 0, FULL, (0, 90_000));
        let served = queue.dequeue().unwrap();
        assert!(arrive(&mut queue, 1, FULL, (1, 9000)).is_empty());
        assert_eq!(arrive(&mut queue, 2, FULL, (2, 100)), [1]);
        queue.finish(served);
        assert!(arrive(&mut queue, 3, FULL, (3, 9000)).is_empty());
    }

    #[test]
    fn only_what_makes_room_is_lost_for_another() {
        let mut queue = queue(2);
        arrive(&mut queue, 0, 40, (0, 90_000));
        arrive(&mut queue, 1, FULL, (1, 5000));
        arrive(&mut queue, 2, 100, (2, 100));
        assert_eq!(arrive(&mut queue, 3, FULL, (3, 200)), [1], "40 B are not enough");
        assert_eq!(served(&mut queue), [2, 3, 0]);
    }

    #[test]
    fn the_message_with_the_least_left_is_served_first_its_earliest_packet_before_others() {
        let mut queue = queue(10);
        // Message 7 has less left with every acknowledgement that comes between its packets.
        let arrivals = [(0, 7, 9000), (1, 8, 4000), (2, 7, 7500), (3, 7, 3000), (4, 9, 3500)];
        for (handle, message, left) in arrivals {
            arrive(&mut queue, handle, FULL, (message, left));
        }
        assert_eq!(served(&mut queue), [0, 2, 3, 4, 1]);
    }

    #[test]
    fn messages_of_other_hosts_with_the_same_number_are_others() {
        let mut queue = queue(10);
        let kind = |remaining| Kind::Data { remaining, seq: 0, size: 9000, len: 1460 };
        let desc = |handle| Desc { handle, len: FULL, flags: Flags(0), class: 0 };
        put(&mut queue, desc(0), Repr { message: 1, kind: kind(9000) });
        let header = Repr { message: 1, kind: kind(100) }.to_bytes();
        let mut contents = Packet { proto: PROTO, hdr_len: 32, src: HostId(5), ..Packet::EMPTY };
        contents.hdr[..32].copy_from_slice(&header);
        queue.enqueue_read(desc(1), &contents, &mut || 0, &mut |_, _| ());
        assert_eq!(served(&mut queue), [1, 0]);
    }

    #[test]
    fn what_answers_goes_first_in_order_and_packets_of_others_go_last() {
        let mut queue = queue(10);
        let control = |handle| Desc { handle, len: 40, flags: Flags::CONTROL, class: 0 };
        let other = Packet::EMPTY;
        let mut none = |_: Disposition, _: Desc| ();
        let data = Desc { handle: 0, len: FULL, flags: Flags(0), class: 0 };
        queue.enqueue_read(data, &other, &mut || 0, &mut none);
        arrive(&mut queue, 1, FULL, (7, 100));
        put(&mut queue, control(2), Repr { message: 7, kind: Kind::Ack { seq: 1, missing: 0 } });
        queue.enqueue_read(control(3), &other, &mut || 0, &mut none);
        put(&mut queue, control(4), Repr { message: 8, kind: Kind::Ack { seq: 1, missing: 0 } });
        assert_eq!(served(&mut queue), [2, 3, 4, 1, 0]);
    }

    #[test]
    fn every_byte_taken_is_given_back() {
        let mut queue = queue(5);
        for n in 0..500 {
            let len = if n % 3 == 0 { 40 } else { FULL - n as u16 };
            arrive(&mut queue, n, len, (u64::from(n % 7), n * 7919 % 10_000));
            if n % 4 == 0 {
                let packet = queue.dequeue().unwrap();
                queue.finish(packet);
            }
            assert!(queue.bytes() <= 5 * u32::from(FULL));
        }
        served(&mut queue);
        assert_eq!((queue.bytes(), queue.is_empty()), (0, true));
    }
}
