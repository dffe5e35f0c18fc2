//! A queue for each traffic class, served in turn so that each class gets the same share of the link
//! in bytes while it has something to send: NDP beside TCP (SIGCOMM'17, section 3.1; ndp.md section
//! 3.4). In a shared queue one of them would have it all.
//!
//! Deficit round robin (M. Shreedhar, G. Varghese, SIGCOMM 1995), in the form of RFC 8290, section
//! 4.2, that need not know how long the next packet is: a class with credit sends a packet and pays
//! its length, whatever that is; one without is given a quantum and waits for its next turn.

use crate::{Desc, Fate, Queue, QueueSpec};

/// Parameters of [`Fair`].
#[derive(Clone, Debug, PartialEq)]
pub struct FairSpec {
    /// Credit per turn, bytes. At least one full packet, so that no turn is for nothing.
    pub quantum: u32,
    /// The classes, each with the discipline of its own queue. A packet of another class joins the
    /// first.
    pub classes: Vec<(u8, QueueSpec)>,
}

/// A port's queues.
#[derive(Clone, Debug)]
pub struct Fair {
    quantum: i64,
    classes: Vec<Class>,
    /// Whose turn it is.
    turn: usize,
}

#[derive(Clone, Debug)]
struct Class {
    class: u8,
    queue: Queue,
    /// Bytes that it may send; below zero after a packet longer than what it had.
    credit: i64,
}

impl Fair {
    pub(crate) fn new(spec: &FairSpec) -> Self {
        let class = |(class, spec): &(u8, QueueSpec)| Class {
            class: *class,
            queue: Queue::new(spec),
            credit: 0,
        };
        let classes = spec.classes.iter().map(class).collect();
        Self { quantum: i64::from(spec.quantum.max(1)), classes, turn: 0 }
    }

    /// Where packets of `class` queue; nowhere, if there is no class at all.
    fn class(&mut self, class: u8) -> Option<&mut Class> {
        let at = self.classes.iter().position(|c| c.class == class).unwrap_or(0);
        self.classes.get_mut(at)
    }

    pub(crate) fn offer(&mut self, packet: Desc) -> bool {
        self.class(packet.class).is_some_and(|class| class.queue.offer(packet))
    }

    /// As `offer`, of a packet that is served at once. Nobody waits, so the past is forgotten.
    pub(crate) fn pass(&mut self, packet: Desc) -> bool {
        self.classes.iter_mut().for_each(|class| class.credit = 0);
        let Some(class) = self.class(packet.class) else { return false };
        let fits = class.queue.pass(packet);
        if fits {
            class.credit -= i64::from(packet.len);
        }
        fits
    }

    pub(crate) fn enqueue(
        &mut self,
        packet: Desc,
        coin: impl FnOnce() -> u64,
        fate: &mut impl FnMut(Fate, Desc),
    ) {
        match self.class(packet.class) {
            Some(class) => class.queue.enqueue(packet, coin, fate),
            None => fate(Fate::Drop, packet),
        }
    }

    pub(crate) fn dequeue(&mut self) -> Option<Desc> {
        if self.is_empty() {
            return None;
        }
        // It ends: in each round a class that waits gains a quantum.
        loop {
            let class = &mut self.classes[self.turn];
            if class.credit > 0 {
                if let Some(packet) = class.queue.dequeue() {
                    class.credit -= i64::from(packet.len);
                    return Some(packet);
                }
                // Nothing to send now, and no credit for later.
                class.credit = 0;
            } else if !class.queue.is_empty() {
                class.credit += self.quantum;
            }
            self.turn = (self.turn + 1) % self.classes.len();
        }
    }

    pub(crate) fn finish(&mut self, packet: Desc) {
        if let Some(class) = self.class(packet.class) {
            class.queue.finish(packet);
        }
    }

    pub(crate) fn take_mark(&mut self) -> Option<Desc> {
        self.classes.iter_mut().find_map(|class| class.queue.take_mark())
    }

    pub(crate) fn waiting(&self) -> impl Iterator<Item = Desc> {
        self.classes.iter().flat_map(|class| class.queue.waiting())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.classes.iter().all(|class| class.queue.is_empty())
    }

    pub(crate) fn bytes(&self) -> u32 {
        self.classes.iter().map(|class| class.queue.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capacity, DropTailSpec, NdpSpec};
    use endpoint::Flags;

    /// NDP with eight packets is class 0, drop-tail with a hundred is class 1.
    fn coexistence() -> Fair {
        let ndp = NdpSpec {
            data_capacity: Capacity::Packets(8),
            header_capacity: Capacity::Bytes(72_000),
            header_weight: 10,
            data_weight: 1,
            trim_arriving: 1.0,
            trim_to: 64,
            bounce: true,
        };
        let tcp = DropTailSpec { capacity: Capacity::Packets(100), ecn_threshold: None };
        let classes = vec![(0, QueueSpec::Ndp(ndp)), (1, QueueSpec::DropTail(tcp))];
        Fair::new(&FairSpec { quantum: 9064, classes })
    }

    fn data(class: u8, len: u16) -> Desc {
        Desc { handle: 0, len, flags: Flags(0), class }
    }

    /// Offer a packet; whether it joined as it is.
    fn offer(queue: &mut Fair, packet: Desc) -> bool {
        let mut whole = true;
        queue.enqueue(packet, || 0, &mut |_, _| whole = false);
        whole
    }

    /// Keep both classes supplied, and serve. Bytes sent by each.
    fn serve(queue: &mut Fair, packets: u32, lens: [u16; 2]) -> [u64; 2] {
        let mut sent = [0; 2];
        for _ in 0..packets {
            while offer(queue, data(0, lens[0])) {}
            while offer(queue, data(1, lens[1])) {}
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
        let joined =
            |queue: &mut Fair, class| (0..200).filter(|_| offer(queue, data(class, 9064))).count();
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
            assert!(queue.pass(data(1, 9064)), "the port is idle");
            queue.finish(data(1, 9064));
        }
        for _ in 0..50 {
            offer(&mut queue, data(1, 9064));
        }
        offer(&mut queue, data(0, 9064));
        let first = (0..3).position(|_| queue.dequeue().is_some_and(|p| p.class == 0));
        assert!(first.is_some(), "class 0 has waited for two packets at most");
    }

    #[test]
    fn a_class_without_a_queue_joins_the_first() {
        let mut queue = coexistence();
        assert!(offer(&mut queue, data(5, 9064)));
        assert_eq!(queue.classes[0].queue.bytes(), 9064);
        let packet = queue.dequeue().unwrap();
        queue.finish(packet);
        assert_eq!(queue.bytes(), 0);
    }
}
