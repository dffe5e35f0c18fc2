//! The NDP queue (SIGCOMM'17, section 3.1): a short queue of full packets, a queue of headers and
//! control served ten times as often, trimming instead of loss, and headers turned back to their
//! senders when even those do not fit.

use endpoint::Flags;

use crate::boxed::MarksFrom;
use crate::fifo::{Behind, PLACES, Ring};
use crate::ndp_signals::NdpSignals;
use crate::{
    Capacity, Desc, DisciplineSpec, Disposition, HEADER_MAX, Occupancy, PACKET_MIN, Queue,
    QueueSpec, Ramp, threshold,
};

/// Parameters of [`Ndp`]. The paper's values in parentheses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NdpSpec {
    /// Full packets, the one in service included (8 packets; the authors' simulator: 72 000 B).
    pub data_capacity: Capacity,
    /// Headers and control (the same memory as the data queue: 72 000 B).
    pub header_capacity: Capacity,
    /// Headers and control served while data waits, per round (10). At least 1.
    pub header_weight: u8,
    /// Data packets served while headers wait, per round (1). At least 1.
    pub data_weight: u8,
    /// Probability that the arriving packet is trimmed rather than the last one queued (0.5).
    /// From 0 to 1.
    pub trim_arriving: f64,
    /// Length of a trimmed packet, bytes (64); 0: what does not fit is lost.
    pub trim_to: u16,
    /// Whether headers that do not fit are returned to their senders (yes).
    pub bounce: bool,
    /// The probability with which an ECN-capable packet with payload is marked as it leaves, by the
    /// full packets that it leaves behind (none).
    pub marks: Option<Ramp>,
    /// Whether the port's link leads to a host, and headers that are trimmed here say so; `None`:
    /// they say nothing of the kind (none).
    pub last_hop: Option<bool>,
    /// Whether ports to hosts mark as others do (yes).
    pub mark_last_hop: bool,
}

impl NdpSpec {
    /// What the paper and its code have (specs/ndp.md#1).
    pub const PAPER: Self = Self {
        data_capacity: Capacity::Packets(8),
        header_capacity: Capacity::Bytes(72_000),
        header_weight: 10,
        data_weight: 1,
        trim_arriving: 0.5,
        trim_to: 64,
        bounce: true,
        marks: None,
        last_hop: None,
        mark_last_hop: true,
    };
}

impl DisciplineSpec for NdpSpec {
    fn wrap(self) -> QueueSpec {
        QueueSpec::Ndp(self)
    }

    fn build(&self) -> Queue {
        match (self.marks, self.last_hop) {
            (None, None) => Queue::Ndp(Ndp::new(*self)),
            _ => Queue::boxed(NdpSignals::new(*self)),
        }
    }

    fn at_last_hop(&self) -> Option<QueueSpec> {
        let marks = self.marks.filter(|_| self.mark_last_hop);
        let last = Self { marks, last_hop: self.last_hop.map(|_| true), ..*self };
        (last != *self).then(|| last.wrap())
    }

    fn marks_at_departure(&self) -> bool {
        self.marks.is_some()
    }

    fn marks_from(&self, _classes: &[u8]) -> MarksFrom {
        let from = |ramp: Ramp| MarksFrom::Length(ramp.unit.capacity(ramp.min));
        self.marks.map_or(MarksFrom::Never, from)
    }

    fn capacities(&self) -> Vec<Capacity> {
        vec![self.data_capacity, self.header_capacity]
    }

    fn scaled(&self, share: f64) -> Option<QueueSpec> {
        let marks = self.marks.map(|ramp| ramp.scaled(share));
        let data_capacity = self.data_capacity.scaled(share);
        let header_capacity = self.header_capacity.scaled(share);
        Some(Self { data_capacity, header_capacity, marks, ..*self }.wrap())
    }

    /// A packet waits as data, and once trimmed as a header; what waits in the other queue
    /// meanwhile is served in the ratio of the weights.
    fn backlog(&self, mtu: u64) -> u64 {
        let header = u64::from(self.trim_to);
        let count = |capacity, size: u64| match capacity {
            Capacity::Packets(n) => u64::from(n),
            Capacity::Bytes(n) => u64::from(n) / size,
        };
        let weights = [self.header_weight, self.data_weight];
        let [header_weight, data_weight] = weights.map(|weight| u64::from(weight.max(1)));
        let headers_between = count(self.data_capacity, mtu) * header_weight / data_weight * header;
        let data_between =
            count(self.header_capacity, PACKET_MIN) * data_weight / header_weight * mtu;
        let own = self.data_capacity.bytes(mtu) + self.header_capacity.bytes(header);
        own + headers_between + data_between
    }

    fn trims_to(&self) -> u16 {
        self.trim_to
    }
}

/// A port's two queues.
// In order of use: with what the simulator puts before it, a packet touches one line here, or two
// if it waits.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Ndp {
    data_room: Occupancy,
    header_room: Occupancy,
    /// Position in the round of `header_weight + data_weight` services; moves only while both
    /// queues are non-empty.
    turn: u16,
    round: u16,
    header_weight: u8,
    bounce: bool,
    trim_to: u16,
    /// Trim the arriving packet if 63 random bits are below this.
    trim_arriving_below: u64,
    data: Ring,
    headers: Ring,
    data_behind: Behind,
    headers_behind: Behind,
}

/// At most so many queued packets are trimmed to make room for one (they may be smaller than it).
const VICTIMS_MAX: u32 = 2;

impl Ndp {
    pub(crate) fn new(spec: NdpSpec) -> Self {
        let header_weight = spec.header_weight.max(1);
        Self {
            data: Ring::new(),
            headers: Ring::new(),
            data_behind: None,
            headers_behind: None,
            data_room: Occupancy::new(spec.data_capacity),
            header_room: Occupancy::new(spec.header_capacity),
            turn: 0,
            header_weight,
            round: u16::from(header_weight) + u16::from(spec.data_weight.max(1)),
            trim_arriving_below: threshold(spec.trim_arriving),
            trim_to: spec.trim_to,
            bounce: spec.bounce,
        }
    }

    #[inline(always)]
    fn room(&mut self, packet: Desc) -> &mut Occupancy {
        if packet.is_data() { &mut self.data_room } else { &mut self.header_room }
    }

    /// Steps 2 and 5 of specs/ndp.md#3.2: there is room.
    #[inline(always)]
    pub(crate) fn try_enqueue(&mut self, packet: Desc) -> bool {
        let fits = self.cut_through(packet);
        if fits {
            if packet.is_data() {
                self.data.push_back(&mut self.data_behind, packet);
            } else {
                self.headers.push_back(&mut self.headers_behind, packet);
            }
        }
        fits
    }

    /// As `try_enqueue`, of a packet that is served at once.
    #[inline(always)]
    pub(crate) fn cut_through(&mut self, packet: Desc) -> bool {
        let room = self.room(packet);
        let fits = room.fits(packet.len);
        if fits {
            room.take(packet.len);
        }
        fits
    }

    /// The order of steps is specs/ndp.md#3.2.
    pub(crate) fn enqueue(
        &mut self,
        packet: Desc,
        random: impl FnOnce() -> u64,
        fate: &mut impl FnMut(Disposition, Desc),
    ) {
        if self.try_enqueue(packet) {
            return;
        }
        if !packet.is_data() {
            self.enqueue_header(packet, fate);
        } else if random() >> 1 < self.trim_arriving_below || !self.make_room(packet.len, fate) {
            self.trim(packet, fate);
        } else {
            self.enqueue_data(packet);
        }
    }

    fn enqueue_data(&mut self, packet: Desc) {
        self.data_room.take(packet.len);
        self.data.push_back(&mut self.data_behind, packet);
    }

    /// Trim from the tail of the data queue until `len` fits. The packet in service is not in the
    /// FIFO and so never a victim. Says whether there was any victim: with mixed sizes the queue
    /// may then exceed its capacity by less than a packet, as in the authors' code.
    fn make_room(&mut self, len: u16, fate: &mut impl FnMut(Disposition, Desc)) -> bool {
        let mut victims = 0;
        while victims < VICTIMS_MAX && !self.data_room.fits(len) {
            let Some(victim) = self.data.pop_back(&mut self.data_behind) else { break };
            self.data_room.give_back(victim.len);
            self.trim(victim, fate);
            victims += 1;
        }
        victims > 0
    }

    fn trim(&mut self, packet: Desc, fate: &mut impl FnMut(Disposition, Desc)) {
        if self.trim_to == 0 {
            fate(Disposition::Drop, packet);
            return;
        }
        let flags = packet.flags.with(Flags::TRIMMED);
        let header = Desc { len: self.trim_to.min(packet.len), flags, ..packet };
        fate(Disposition::Trim, header);
        self.enqueue_header(header, fate);
    }

    fn enqueue_header(&mut self, packet: Desc, fate: &mut impl FnMut(Disposition, Desc)) {
        if self.try_enqueue(packet) {
            return;
        }
        if packet.is_header() && self.bounce {
            fate(Disposition::Bounce, packet);
        } else {
            fate(Disposition::Drop, packet);
        }
    }

    /// Weighted round robin by packets (specs/ndp.md#3.3).
    #[inline(always)]
    pub(crate) fn dequeue(&mut self) -> Option<Desc> {
        // No packet is in service: what takes room waits. The rings themselves may be far from the
        // processor.
        if self.header_room.packets == 0 {
            if self.data_room.packets == 0 {
                return None;
            }
            return self.data.pop_front(&mut self.data_behind);
        }
        if self.data_room.packets == 0 {
            return self.headers.pop_front(&mut self.headers_behind);
        }
        self.turn += 1;
        if self.turn == self.round {
            self.turn = 0;
        }
        if self.turn < u16::from(self.header_weight) {
            self.headers.pop_front(&mut self.headers_behind)
        } else {
            self.data.pop_front(&mut self.data_behind)
        }
    }

    #[inline(always)]
    pub(crate) fn finish(&mut self, packet: Desc) {
        self.room(packet).give_back(packet.len);
    }

    /// Whether more than half of the room for headers is taken.
    #[inline(always)]
    pub(crate) fn bounce_possible(&self) -> bool {
        let room = &self.header_room;
        self.headers.is_full()
            && (room.packets > room.packets_max / 2 || room.bytes > room.bytes_max / 2)
            && self.bounce
    }

    /// How many packets the rest holds at least.
    pub(crate) fn arrivals_before_bounce(&self) -> u32 {
        if !self.bounce {
            return u32::MAX;
        }
        let longest = u32::from(self.trim_to.max(HEADER_MAX));
        let room = &self.header_room;
        // Those that need less than the places in the port itself are not looked at.
        let crowded = room.packets_max.min(room.bytes_max / longest) / 2;
        // Each brings its own header, or those of the packets that make room for it.
        if crowded > PLACES as u32 { crowded / VICTIMS_MAX } else { 0 }
    }

    /// The packets that wait, headers first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Desc> {
        let headers = self.headers.iter(&self.headers_behind);
        headers.chain(self.data.iter(&self.data_behind))
    }

    /// The full packets, and their bytes, that are there beside `packet`, which is one of them.
    pub(crate) fn data_behind(&self, packet: Desc) -> (u32, u32) {
        (self.data_room.packets - 1, self.data_room.bytes - u32::from(packet.len))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.data.is_empty()
    }

    pub(crate) fn bytes(&self) -> u32 {
        self.data_room.bytes + self.header_room.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: NdpSpec = NdpSpec { data_capacity: Capacity::Bytes(72_000), ..NdpSpec::PAPER };
    const TRIM_ARRIVING: u64 = 0;
    const TRIM_TAIL: u64 = u64::MAX;

    fn data(handle: u32) -> Desc {
        Desc { handle, len: 9064, flags: Flags(0), class: 0 }
    }

    fn control(handle: u32) -> Desc {
        Desc { handle, len: 64, flags: Flags::CONTROL, class: 0 }
    }

    fn arrive(queue: &mut Ndp, packet: Desc, random: u64) -> Vec<(Disposition, u32)> {
        let mut fates = Vec::new();
        queue.enqueue(packet, || random, &mut |fate, p| fates.push((fate, p.handle)));
        fates
    }

    fn full(spec: NdpSpec) -> (Ndp, Desc) {
        let mut queue = Ndp::new(spec);
        queue.enqueue_data(data(0));
        let served = queue.dequeue().unwrap();
        for handle in 1..7 {
            assert!(arrive(&mut queue, data(handle), TRIM_ARRIVING).is_empty());
        }
        (queue, served)
    }

    #[test]
    fn seven_packets_fit_72000_bytes_and_eight_fit_eight_packets() {
        let (mut queue, _) = full(PAPER);
        assert_eq!(arrive(&mut queue, data(7), TRIM_ARRIVING), [(Disposition::Trim, 7)]);
        let (mut queue, _) = full(NdpSpec { data_capacity: Capacity::Packets(8), ..PAPER });
        assert!(arrive(&mut queue, data(7), TRIM_ARRIVING).is_empty());
        assert_eq!(arrive(&mut queue, data(8), TRIM_ARRIVING), [(Disposition::Trim, 8)]);
    }

    #[test]
    fn the_coin_chooses_between_the_arriving_packet_and_the_tail_never_the_one_in_service() {
        let (mut queue, _) = full(PAPER);
        assert_eq!(arrive(&mut queue, data(7), TRIM_TAIL), [(Disposition::Trim, 6)]);
        assert_eq!(queue.data.iter(&queue.data_behind).last().map(|p| p.handle), Some(7));

        let one = NdpSpec { data_capacity: Capacity::Packets(1), ..PAPER };
        let mut queue = Ndp::new(one);
        queue.enqueue_data(data(0));
        let _in_service = queue.dequeue();
        assert_eq!(arrive(&mut queue, data(1), TRIM_TAIL), [(Disposition::Trim, 1)]);
    }

    #[test]
    fn at_most_two_victims_make_room_for_a_larger_packet() {
        let spec = NdpSpec { data_capacity: Capacity::Bytes(10_000), ..PAPER };
        let mut queue = Ndp::new(spec);
        for handle in 0..10 {
            queue.enqueue_data(Desc { len: 1000, ..data(handle) });
        }
        assert_eq!(
            arrive(&mut queue, data(10), TRIM_TAIL),
            [(Disposition::Trim, 9), (Disposition::Trim, 8)]
        );
        assert!(queue.data_room.bytes < 10_000 + 9064);
    }

    /// Invariant specs/ndp.md#I2: while both queues are non-empty, any 11 departures hold 1 of
    /// data.
    #[test]
    fn ten_headers_are_served_for_each_data_packet() {
        let (mut queue, _) = full(PAPER);
        for handle in 100..200 {
            queue.enqueue(control(handle), || 0, &mut |_, _| ());
        }
        let served: Vec<bool> = (0..66).map(|_| queue.dequeue().unwrap().is_data()).collect();
        for window in served.windows(11) {
            assert_eq!(window.iter().filter(|&&data| data).count(), 1);
        }
    }

    /// What Ultra Ethernet has where nothing is trimmed: one of two packets is lost, at random.
    #[test]
    fn without_trimming_the_arriving_packet_or_the_last_one_is_lost() {
        for (random, lost) in [(TRIM_ARRIVING, 9), (TRIM_TAIL, 7)] {
            let (mut queue, _) = full(NdpSpec { trim_to: 0, ..PAPER });
            let last = queue.waiting().last().unwrap().handle;
            let expected = if lost == 9 { 9 } else { last };
            let fates = arrive(&mut queue, data(9), random);
            assert_eq!(fates, [(Disposition::Drop, expected)]);
            assert_eq!(queue.waiting().filter(|p| !p.is_data()).count(), 0);
        }
    }

    #[test]
    fn headers_bounce_once_and_control_drops_when_the_header_queue_is_full() {
        let spec = NdpSpec { header_capacity: Capacity::Packets(1), ..PAPER };
        let (mut queue, _) = full(spec);
        assert_eq!(arrive(&mut queue, data(7), TRIM_ARRIVING), [(Disposition::Trim, 7)]);
        let both = [(Disposition::Trim, 8), (Disposition::Bounce, 8)];
        assert_eq!(arrive(&mut queue, data(8), TRIM_ARRIVING), both);
        assert_eq!(arrive(&mut queue, control(9), TRIM_ARRIVING), [(Disposition::Drop, 9)]);
        let (mut queue, _) = full(NdpSpec { bounce: false, ..spec });
        arrive(&mut queue, control(9), TRIM_ARRIVING);
        let lost = [(Disposition::Trim, 8), (Disposition::Drop, 8)];
        assert_eq!(arrive(&mut queue, data(8), TRIM_ARRIVING), lost);
    }

    #[test]
    fn every_byte_taken_is_given_back() {
        let (mut queue, served) = full(PAPER);
        queue.finish(served);
        for n in 0..500 {
            arrive(&mut queue, data(n), if n % 3 == 0 { TRIM_TAIL } else { TRIM_ARRIVING });
        }
        while let Some(packet) = queue.dequeue() {
            queue.finish(packet);
        }
        assert_eq!((queue.bytes(), queue.data_room.packets, queue.header_room.packets), (0, 0, 0));
    }
}
