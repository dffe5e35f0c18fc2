//! A queue for each traffic class. Which class is served next is a [`Schedule`]: the highest first,
//! or in turn so that each gets its share of the link in bytes while it has something to send.
//! Equal shares are what NDP beside TCP needs (SIGCOMM'17, section 3.1; specs/ndp.md#3.4): in a
//! shared queue one of them would have it all.
//!
//! In turn: deficit round robin (M. Shreedhar, G. Varghese, SIGCOMM 1995), in the form of RFC 8290,
//! section 4.2, that need not know how long the next packet is: a class with credit sends a packet
//! and pays its length, whatever that is; one without is given its quantum and waits for its next
//! turn.
//!
//! A class can be closed, as priority flow control does (IEEE 802.1Qbb): what waits in it stays
//! there until it is opened again, and the others are served as if it were empty.
//!
//! What finds no room in its class can be trimmed and go on as a header in another class
//! ([`Trim`]): the switch of Homa-Tr (specs/homa-tr.md#3). Packets can be told apart by whether
//! they carry payload ([`Classifier::Payload`]) instead of by their class: the two bands of the
//! same switch for NDP.

use endpoint::Flags;

use crate::boxed::{Discipline, DisciplineSpec, Random, Told};
use crate::{Capacity, Desc, Disposition, Queue, QueueSpec};

/// Parameters of [`ByClass`].
#[derive(Clone, Debug, PartialEq)]
pub struct ByClassSpec {
    /// Which class is served next.
    pub schedule: Schedule,
    /// The classes, 0 to 7, each once and with the discipline of its own queue. A packet of another
    /// class joins the first.
    pub classes: Vec<(u8, QueueSpec)>,
    /// Which of these queues a packet joins.
    pub sort: Classifier,
    /// What finds no room there loses its payload. `None`: what the discipline of its class says.
    /// Not for classes that mark packets.
    pub trim: Option<Trim>,
}

impl ByClassSpec {
    /// Each packet in the queue of its class, which alone says what becomes of it.
    #[must_use]
    pub const fn new(schedule: Schedule, classes: Vec<(u8, QueueSpec)>) -> Self {
        Self { schedule, classes, sort: Classifier::Class, trim: None }
    }

    /// See [`DisciplineSpec::at_last_hop`].
    pub(crate) fn with_last_hop(&self) -> Option<Self> {
        let last = |queue: &QueueSpec| queue.spec().at_last_hop();
        self.classes.iter().any(|(_, queue)| last(queue).is_some()).then(|| {
            let each = self.classes.iter();
            let each = each.map(|(class, queue)| (*class, last(queue).unwrap_or(queue.clone())));
            Self { classes: each.collect(), ..self.clone() }
        })
    }
}

impl DisciplineSpec for ByClassSpec {
    fn build(&self) -> Queue {
        Queue::boxed(ByClass::new(self))
    }

    fn capacities(&self) -> Vec<Capacity> {
        self.classes.iter().flat_map(|(_, queue)| queue.spec().capacities()).collect()
    }

    /// While what is ahead in its own class leaves, every other class sends as much, and a turn
    /// more.
    fn backlog(&self, mtu: u64) -> u64 {
        let turn = match self.schedule {
            Schedule::Strict => 0,
            Schedule::InTurn(quanta) => quanta.into_iter().max().unwrap_or(0),
        };
        let class = |(_, queue): &(u8, QueueSpec)| queue.spec().backlog(mtu) + u64::from(turn);
        self.classes.iter().map(class).max().unwrap_or(0) * self.classes.len() as u64
    }

    fn trims_to(&self) -> u16 {
        let classes = self.classes.iter().map(|(_, queue)| queue.spec().trims_to());
        classes.chain(self.trim.map(|trim| trim.to)).min().unwrap_or(u16::MAX)
    }

    fn always_trims(&self) -> bool {
        self.trim.is_some() || self.classes.iter().all(|(_, queue)| queue.spec().always_trims())
    }

    fn queues_of(&self, classes: &[u8]) -> Vec<&QueueSpec> {
        let joins = |class| self.sort == Classifier::Payload || classes.contains(class);
        self.classes.iter().filter(|(class, _)| joins(class)).map(|(_, queue)| queue).collect()
    }

    fn sorts_by_class(&self) -> bool {
        self.sort == Classifier::Class
    }

    fn at_last_hop(&self) -> Option<QueueSpec> {
        self.with_last_hop().map(Into::into)
    }

    fn marks_at_departure(&self) -> bool {
        self.classes.iter().any(|(_, queue)| queue.spec().marks_at_departure())
    }

    fn peeks(&self) -> bool {
        self.schedule == Schedule::Strict && self.classes.iter().all(|(_, q)| q.spec().peeks())
    }
}

/// By what packets are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classifier {
    /// By their class.
    Class,
    /// What carries payload joins the lowest class, headers and control the highest.
    Payload,
}

/// How the payload is cut off what finds no room. Only the arriving packet is: nothing that waits
/// makes way for it. A header without room is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Length of a trimmed packet, bytes. Headers of nanoTransport have 64; its public switch model
    /// makes them 72 (specs/homa-tr.md#3).
    pub to: u16,
    /// The class in which the header goes on.
    pub header: HeaderClass,
}

/// Where the header of a trimmed packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderClass {
    /// The next lower class than its packet's, or the same if that is the lowest: as in the public
    /// switch model, which would look for a class below the lowest (specs/homa-tr.md#3).
    Next,
    /// The highest.
    Highest,
}

/// In which order classes that have something to send are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// The highest first, always.
    Strict,
    /// In turn, with so many bytes of credit per turn for each class from 0 to 7. At least one full
    /// packet, so that no turn is for nothing.
    InTurn([u32; 8]),
}

impl Schedule {
    /// Equal shares.
    #[must_use]
    pub fn fair(quantum: u32) -> Self {
        Self::InTurn([quantum; 8])
    }

    fn quantum(self, class: u8) -> i64 {
        match self {
            Self::Strict => 1,
            Self::InTurn(quanta) => {
                i64::from(quanta.get(usize::from(class)).copied().unwrap_or(1).max(1))
            }
        }
    }
}

/// A port's queues.
#[derive(Debug)]
pub struct ByClass {
    strict: bool,
    /// Its caller is asked for memory before a packet joins, so none joins unasked.
    admitted: bool,
    trim: Option<Trim>,
    /// In which of the queues packets of each class are that carry payload, and those that do not.
    data_at: [u8; 8],
    control_at: [u8; 8],
    /// Of strict priorities, the lowest first.
    classes: Vec<Class>,
    /// Whose turn it is; of strict priorities, who was served last.
    turn: usize,
    /// Held by all queues.
    bytes: u32,
    /// Bit n: something waits in queue n.
    waits: u8,
    /// Bit n: queue n may be served.
    open: u8,
}

#[derive(Debug)]
struct Class {
    class: u8,
    queue: Queue,
    /// Bytes that it may send; below zero after a packet longer than what it had.
    credit: i64,
    /// What it is given at its turn.
    quantum: i64,
}

impl ByClass {
    pub(crate) fn new(spec: &ByClassSpec) -> Self {
        let class = |(class, queue): &(u8, QueueSpec)| Class {
            class: *class,
            queue: Queue::new(queue),
            credit: 0,
            quantum: spec.schedule.quantum(*class),
        };
        let mut classes: Vec<Class> = spec.classes.iter().take(8).map(class).collect();
        let strict = spec.schedule == Schedule::Strict;
        if strict {
            classes.sort_by_key(|c| c.class);
        }
        let numbers = || spec.classes.iter().map(|(class, _)| *class);
        let at = |class| classes.iter().position(|c| Some(c.class) == class).unwrap_or(0) as u8;
        let of_class = |class| at(numbers().find(|&c| c == class).or(numbers().next()));
        let (data_at, control_at) = match spec.sort {
            Classifier::Class => {
                let own = std::array::from_fn(|class| of_class(class as u8));
                (own, own)
            }
            Classifier::Payload => ([at(numbers().min()); 8], [at(numbers().max()); 8]),
        };
        let (admitted, trim) = (false, spec.trim);
        let (turn, bytes, waits, open) = (0, 0, 0, u8::MAX);
        Self { strict, admitted, trim, data_at, control_at, classes, turn, bytes, waits, open }
    }

    /// The same at a port whose caller asks for memory before a packet joins.
    pub(crate) fn admitted(spec: &ByClassSpec) -> Self {
        Self { admitted: true, ..Self::new(spec) }
    }

    /// In which of the queues `packet` is.
    fn place(&self, packet: Desc) -> usize {
        let at = if packet.is_data() { &self.data_at } else { &self.control_at };
        usize::from(at[usize::from(packet.class & 7)])
    }

    /// Do something to queue `at` that may change what it holds. `None` if there is no class at
    /// all.
    fn change<R>(&mut self, at: usize, act: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        let queue = &mut self.classes.get_mut(at)?.queue;
        let before = queue.bytes();
        let result = act(queue);
        self.bytes = self.bytes - before + queue.bytes();
        self.note_waiting(at);
        Some(result)
    }

    /// Packets may have joined queue `at`, or left it for the link.
    fn note_waiting(&mut self, at: usize) {
        let waits = self.classes.get(at).is_some_and(|class| !class.queue.is_empty());
        self.waits = self.waits & !(1 << at) | u8::from(waits) << at;
    }

    /// The class in which the header of `packet` goes on.
    fn header_class(&self, trim: Trim, packet: Desc) -> u8 {
        let classes = self.classes.iter().map(|c| c.class);
        let class = match trim.header {
            HeaderClass::Next => classes.filter(|&class| class < packet.class).max(),
            HeaderClass::Highest => classes.max(),
        };
        class.unwrap_or(packet.class)
    }

    fn join(&mut self, packet: Desc) -> bool {
        let at = self.place(packet);
        let joins = self.classes.get_mut(at).is_some_and(|class| class.queue.try_enqueue(packet));
        if joins {
            self.bytes += u32::from(packet.len);
            self.waits |= 1 << at;
        }
        joins
    }

    fn enqueue_or_trim(&mut self, trim: Trim, packet: Desc, told: &mut Told<'_>) {
        if self.join(packet) {
            return;
        }
        let header = Desc {
            len: trim.to.min(packet.len),
            flags: packet.flags.with(Flags::TRIMMED),
            class: self.header_class(trim, packet),
            ..packet
        };
        told(Disposition::Trim, header);
        if !self.join(header) {
            told(Disposition::Drop, header);
        }
    }

    /// Whose turn it is of the queues that are `ready`, one of which is.
    fn whose_turn(&mut self, ready: u8) -> usize {
        let mut turn = self.turn;
        // It ends: in each round a class that is ready gains a quantum.
        loop {
            let class = &mut self.classes[turn];
            let ready = ready & 1 << turn != 0;
            if class.credit > 0 {
                if ready {
                    return turn;
                }
                // Nothing to send now, and no credit for later.
                class.credit = 0;
            } else if ready {
                class.credit += class.quantum;
            }
            turn = (turn + 1) % self.classes.len();
        }
    }
}

impl Discipline for ByClass {
    fn try_enqueue(&mut self, packet: Desc) -> bool {
        !self.admitted && self.join(packet)
    }

    /// Nobody waits, so the past is forgotten.
    fn cut_through(&mut self, packet: Desc) -> bool {
        if self.admitted {
            return false;
        }
        if !self.strict {
            self.classes.iter_mut().for_each(|class| class.credit = 0);
        }
        let at = self.place(packet);
        let Some(class) = self.classes.get_mut(at) else { return false };
        let fits = class.queue.cut_through(packet);
        if fits {
            class.credit -= i64::from(packet.len);
            self.bytes += u32::from(packet.len);
        }
        fits
    }

    fn enqueue(&mut self, packet: Desc, random: &mut Random<'_>, told: &mut Told<'_>) {
        match self.trim {
            Some(trim) if packet.is_data() => self.enqueue_or_trim(trim, packet, told),
            _ => {
                let hears = &mut |fate, packet| told(fate, packet);
                let at = self.place(packet);
                if self.change(at, |queue| queue.enqueue(packet, random, hears)).is_none() {
                    told(Disposition::Drop, packet);
                }
            }
        }
    }

    fn dequeue(&mut self) -> Option<Desc> {
        let ready = self.waits & self.open;
        if ready == 0 {
            return None;
        }
        self.turn = if self.strict { ready.ilog2() as usize } else { self.whose_turn(ready) };
        let class = self.classes.get_mut(self.turn)?;
        let packet = class.queue.dequeue()?;
        class.credit -= i64::from(packet.len);
        // It counts as queued until it has been sent.
        self.note_waiting(self.turn);
        Some(packet)
    }

    /// Of strict priorities.
    fn peek(&self) -> Option<Desc> {
        let highest = (self.waits & self.open).checked_ilog2()?;
        self.classes.get(highest as usize)?.queue.peek()
    }

    fn finish(&mut self, packet: Desc) {
        let at = self.place(packet);
        if let Some(class) = self.classes.get_mut(at) {
            class.queue.finish(packet);
            self.bytes -= u32::from(packet.len);
        }
    }

    fn take_mark(&mut self) -> Option<Desc> {
        // It is still the turn of the class that has been served.
        self.classes.get_mut(self.turn)?.queue.take_mark()
    }

    fn bounces(&self) -> bool {
        self.classes.iter().any(|class| class.queue.arrivals_before_bounce() != u32::MAX)
    }

    fn set_open(&mut self, open: u8) {
        let at = self.classes.iter().enumerate();
        let shut = at.filter(|(_, c)| open & 1 << (c.class & 7) == 0);
        self.open = shut.fold(u8::MAX, |open, (at, _)| open & !(1 << at));
    }

    fn discard(&mut self, class: u8, told: &mut Told<'_>) {
        let Some(at) = self.classes.iter().position(|c| c.class == class) else { return };
        self.change(at, |queue| {
            while let Some(packet) = queue.dequeue() {
                queue.finish(packet);
                told(Disposition::Drop, packet);
            }
            // It has not left, marked or not.
            queue.take_mark();
        });
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = Desc> + '_> {
        Box::new(self.classes.iter().flat_map(|class| class.queue.waiting()))
    }

    fn is_empty(&self) -> bool {
        self.waits == 0
    }

    fn bytes(&self) -> u32 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capacity, DropTailSpec, NdpSpec};
    use endpoint::Flags;

    /// NDP with eight packets is class 0, drop-tail with a hundred is class 1.
    fn coexistence() -> ByClass {
        let ndp = NdpSpec { trim_arriving: 1.0, ..NdpSpec::PAPER };
        let tcp = DropTailSpec { capacity: Capacity::Packets(100), ecn_threshold: None };
        let classes = vec![(0, QueueSpec::Ndp(ndp)), (1, QueueSpec::DropTail(tcp))];
        ByClass::new(&ByClassSpec::new(Schedule::fair(9064), classes))
    }

    fn data(class: u8, len: u16) -> Desc {
        Desc { handle: 0, len, flags: Flags(0), class }
    }

    /// Offer a packet; whether it joined as it is.
    fn arrive(queue: &mut ByClass, packet: Desc) -> bool {
        let mut whole = true;
        queue.enqueue(packet, &mut || 0, &mut |_, _| whole = false);
        whole
    }

    /// Keep both classes supplied, and serve. Bytes sent by each.
    fn serve(queue: &mut ByClass, packets: u32, lens: [u16; 2]) -> [u64; 2] {
        let mut sent = [0; 2];
        for _ in 0..packets {
            while arrive(queue, data(0, lens[0])) {}
            while arrive(queue, data(1, lens[1])) {}
            let packet = queue.dequeue().unwrap();
            queue.finish(packet);
            sent[usize::from(packet.class)] += u64::from(packet.len);
        }
        sent
    }

    #[test]
    fn classes_share_by_bytes_whatever_the_lengths_of_their_packets() {
        for lens in [[9064, 9064], [9064, 1500], [64, 9064], [1564, 1500]] {
            let [a, b] = serve(&mut coexistence(), 50_000, lens);
            let ahead = a.abs_diff(b);
            assert!(ahead <= 2 * 9064, "{lens:?}: {a} and {b} bytes");
        }
    }

    #[test]
    fn each_class_has_its_own_room() {
        let mut queue = coexistence();
        let joined = |queue: &mut ByClass, class| {
            (0..200).filter(|_| arrive(queue, data(class, 9064))).count()
        };
        assert_eq!((joined(&mut queue, 0), joined(&mut queue, 1)), (8, 100));
        assert_eq!(queue.waiting().count(), 8 + 192 + 100, "192 headers");
        assert_eq!(queue.bytes(), 108 * 9064 + 192 * 64);
        let mut left = 300;
        while let Some(packet) = queue.dequeue() {
            queue.finish(packet);
            left -= 1;
        }
        assert_eq!((left, queue.bytes()), (0, 0), "and gives everything back");
    }

    #[test]
    fn a_class_alone_has_the_link_and_saves_nothing_up() {
        let mut queue = coexistence();
        for _ in 0..1000 {
            assert!(queue.cut_through(data(1, 9064)), "the port is idle");
            queue.finish(data(1, 9064));
        }
        for _ in 0..50 {
            arrive(&mut queue, data(1, 9064));
        }
        arrive(&mut queue, data(0, 9064));
        let first = (0..3).position(|_| queue.dequeue().is_some_and(|p| p.class == 0));
        assert!(first.is_some(), "class 0 has waited for two packets at most");
    }

    #[test]
    fn a_class_without_a_queue_joins_the_first() {
        let mut queue = coexistence();
        assert!(arrive(&mut queue, data(5, 9064)));
        assert_eq!(queue.classes[0].queue.bytes(), 9064);
        let packet = queue.dequeue().unwrap();
        queue.finish(packet);
        assert_eq!(queue.bytes(), 0);
    }

    fn two_classes(schedule: Schedule) -> ByClass {
        let spec = DropTailSpec { capacity: Capacity::Packets(100), ecn_threshold: None };
        let classes = vec![(0, QueueSpec::DropTail(spec)), (1, QueueSpec::DropTail(spec))];
        ByClass::new(&ByClassSpec::new(schedule, classes))
    }

    #[test]
    fn weights_share_in_their_ratio() {
        let mut quanta = [9064; 8];
        quanta[1] = 3 * 9064;
        let [a, b] = serve(&mut two_classes(Schedule::InTurn(quanta)), 50_000, [9064, 1500]);
        assert!((3 * a).abs_diff(b) <= 8 * 9064, "{a} and {b} bytes");
    }

    #[test]
    fn strict_is_the_highest_first_whatever_waits() {
        let mut queue = two_classes(Schedule::Strict);
        let [a, b] = serve(&mut queue, 1000, [9064, 1500]);
        assert_eq!((a, b), (0, 1000 * 1500));
        let low = std::iter::from_fn(|| queue.dequeue()).skip_while(|p| p.class == 1);
        assert_eq!(low.filter(|p| p.class == 0).count(), 100);
    }

    #[test]
    fn a_closed_class_waits_and_saves_nothing_up() {
        for schedule in [Schedule::fair(9064), Schedule::Strict] {
            let mut queue = two_classes(schedule);
            for _ in 0..40 {
                arrive(&mut queue, data(0, 9064));
                arrive(&mut queue, data(1, 9064));
            }
            queue.set_open(0b01);
            let sent: Vec<u8> = std::iter::from_fn(|| queue.dequeue()).map(|p| p.class).collect();
            assert_eq!(sent, [0; 40], "and then nothing, though 40 wait");
            queue.set_open(0b11);
            for _ in 0..40 {
                arrive(&mut queue, data(0, 9064));
            }
            let first: Vec<u8> = (0..6).filter_map(|_| queue.dequeue()).map(|p| p.class).collect();
            let ahead = first.iter().filter(|&&class| class == 1).count();
            assert_eq!(ahead, if schedule == Schedule::Strict { 6 } else { 3 }, "{first:?}");
        }
    }

    /// Four strict priorities as in the nanoTransport experiments, with room for `packets` of 1088
    /// B each.
    fn bands(packets: u32, trim: Option<Trim>, sort: Classifier) -> ByClass {
        let capacity = Capacity::Bytes(packets * 1088);
        let spec = QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold: None });
        let classes = (4..=7).rev().map(|class| (class, spec.clone())).collect();
        ByClass::new(&ByClassSpec { sort, trim, ..ByClassSpec::new(Schedule::Strict, classes) })
    }

    fn numbered(handle: u32, class: u8) -> Desc {
        Desc { handle, ..data(class, 1088) }
    }

    /// Offer a packet; what became of it, with its class, if it did not join as it is.
    fn fates(queue: &mut ByClass, packet: Desc) -> Vec<(Disposition, u16, u8)> {
        let mut fates = Vec::new();
        queue.enqueue(packet, &mut || 0, &mut |fate, p| fates.push((fate, p.len, p.class)));
        fates
    }

    fn served(queue: &mut ByClass) -> Vec<(u32, u16)> {
        let mut all = Vec::new();
        while let Some(packet) = queue.dequeue() {
            queue.finish(packet);
            all.push((packet.handle, packet.len));
        }
        assert_eq!(queue.bytes(), 0, "everything is given back");
        all
    }

    const NEXT: Trim = Trim { to: 72, header: HeaderClass::Next };

    /// The arriving packet alone is cut; its header waits behind the data of the next lower class.
    #[test]
    fn a_header_goes_on_in_the_next_lower_class() {
        let mut queue = bands(2, Some(NEXT), Classifier::Class);
        assert!(fates(&mut queue, numbered(0, 6)).is_empty());
        assert!(fates(&mut queue, numbered(1, 7)).is_empty());
        assert!(fates(&mut queue, numbered(2, 7)).is_empty(), "two fill it exactly");
        assert_eq!(fates(&mut queue, numbered(3, 7)), [(Disposition::Trim, 72, 6)]);
        assert!(fates(&mut queue, numbered(4, 5)).is_empty());
        let expected = [(1, 1088), (2, 1088), (0, 1088), (3, 72), (4, 1088)];
        assert_eq!(served(&mut queue), expected);
    }

    /// Below the lowest class there is none (the public model's slip): the header stays in it.
    #[test]
    fn the_lowest_class_keeps_its_headers() {
        let mut queue = bands(2, Some(NEXT), Classifier::Class);
        assert!(fates(&mut queue, numbered(0, 4)).is_empty());
        assert!(fates(&mut queue, data(4, 900)).is_empty());
        assert_eq!(
            fates(&mut queue, numbered(2, 4)),
            [(Disposition::Trim, 72, 4)],
            "188 B are free"
        );
        assert_eq!(fates(&mut queue, numbered(3, 4)), [(Disposition::Trim, 72, 4)]);
        let lost = [(Disposition::Trim, 72, 4), (Disposition::Drop, 72, 4)];
        assert_eq!(fates(&mut queue, numbered(4, 4)), lost, "and 44 B are none for a third");
    }

    #[test]
    fn a_header_that_finds_no_room_either_is_lost_and_control_is_never_cut() {
        let mut queue = bands(2, Some(NEXT), Classifier::Class);
        for (handle, class) in [(0, 7), (1, 7), (2, 6), (3, 6)] {
            assert!(fates(&mut queue, numbered(handle, class)).is_empty());
        }
        assert_eq!(
            fates(&mut queue, numbered(4, 7)),
            [(Disposition::Trim, 72, 6), (Disposition::Drop, 72, 6)]
        );
        let control = Desc { handle: 5, len: 65, flags: Flags::CONTROL, class: 7 };
        assert_eq!(fates(&mut queue, control), [(Disposition::Drop, 65, 7)]);
        let trimmed = Desc { flags: Flags::TRIMMED, len: 72, ..numbered(6, 7) };
        assert_eq!(fates(&mut queue, trimmed), [(Disposition::Drop, 72, 7)], "trimmed once only");
    }

    #[test]
    fn headers_in_the_highest_class_overtake_all_data_but_its_own() {
        let trim = Trim { to: 64, header: HeaderClass::Highest };
        let mut queue = bands(2, Some(trim), Classifier::Class);
        for handle in 0..2 {
            assert!(fates(&mut queue, numbered(handle, 5)).is_empty());
        }
        assert!(fates(&mut queue, numbered(2, 6)).is_empty());
        assert_eq!(fates(&mut queue, numbered(3, 5)), [(Disposition::Trim, 64, 7)]);
        assert_eq!(served(&mut queue), [(3, 64), (2, 1088), (0, 1088), (1, 1088)]);
    }

    #[test]
    fn without_trimming_each_class_loses_what_it_has_no_room_for() {
        let mut queue = bands(1, None, Classifier::Class);
        for class in 4..=7 {
            assert!(fates(&mut queue, numbered(0, class)).is_empty());
            assert_eq!(fates(&mut queue, numbered(1, class)), [(Disposition::Drop, 1088, class)]);
        }
    }

    /// NDP's two bands: all packets are of one class; what has no payload goes first.
    #[test]
    fn sorted_by_payload_headers_and_control_go_before_data() {
        let trim = Trim { to: 64, header: HeaderClass::Highest };
        let mut queue = bands(2, Some(trim), Classifier::Payload);
        for handle in 0..2 {
            assert!(fates(&mut queue, numbered(handle, 7)).is_empty());
        }
        assert_eq!(fates(&mut queue, numbered(2, 7)), [(Disposition::Trim, 64, 7)]);
        let control = Desc { handle: 3, len: 65, flags: Flags::CONTROL, class: 7 };
        assert!(fates(&mut queue, control).is_empty());
        assert_eq!(served(&mut queue), [(2, 64), (3, 65), (0, 1088), (1, 1088)]);
    }
}
