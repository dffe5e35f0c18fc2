//! Queues at a port whose program says which of them a packet joins, if any ([`Pipeline`]). They
//! are served in turn by packets, as NDP's two are (specs/ndp.md#3.3): a round has so many places
//! for each queue, and moves on only while several queues hold something.

use endpoint::{Action, Flags, Packet, Pipeline, Verdict};

use crate::boxed::{Discipline, DisciplineSpec, MarksFrom, Random, Told};
use crate::fifo::Fifo;
use crate::{Capacity, Desc, Disposition, PACKET_MIN, Queue};

/// Parameters of [`Programmed`].
#[derive(Debug)]
pub struct ProgrammedSpec {
    /// The program as it begins. Every port has one of its own.
    pub program: Box<dyn Pipeline>,
    /// For each queue, packets served per round while others wait. At least one queue, each with
    /// at least 1.
    pub weights: Vec<u8>,
    /// Bytes that the port holds, the packet in service included. What the program wants beyond
    /// that is lost.
    pub memory: u32,
}

impl PartialEq for ProgrammedSpec {
    fn eq(&self, other: &Self) -> bool {
        let key = |spec: &Self| (spec.program.fingerprint(), spec.memory);
        key(self) == key(other) && self.weights == other.weights
    }
}

impl DisciplineSpec for ProgrammedSpec {
    fn build(&self) -> Queue {
        Queue::boxed(Programmed::new(self))
    }

    fn capacities(&self) -> Vec<Capacity> {
        vec![Capacity::Bytes(self.memory)]
    }

    /// Between two packets of its queue, a full round of the others.
    fn backlog(&self, mtu: u64) -> u64 {
        let round: u64 = self.weights.iter().map(|weight| u64::from(*weight)).sum();
        let memory = u64::from(self.memory);
        memory + memory / PACKET_MIN * round * mtu
    }

    fn marks_from(&self, _classes: &[u8]) -> MarksFrom {
        MarksFrom::Programmed
    }

    fn sorts_by_class(&self) -> bool {
        true
    }

    /// A program may say anything.
    fn trims_to(&self) -> u16 {
        1
    }
}

/// A port's queues and its program.
#[derive(Debug)]
pub struct Programmed {
    program: Box<dyn Pipeline>,
    queues: Vec<Fifo>,
    /// Whose each place of the round is.
    round: Vec<u8>,
    /// Place in the round.
    turn: usize,
    /// Which queue the packet in service was in.
    serving: u8,
    bytes: u32,
    memory: u32,
}

impl Programmed {
    pub(crate) fn new(spec: &ProgrammedSpec) -> Self {
        let places =
            |(queue, weight): (u8, &u8)| std::iter::repeat_n(queue, usize::from((*weight).max(1)));
        let round: Vec<u8> = (0..).zip(&spec.weights).flat_map(places).collect();
        Self {
            program: spec.program.duplicate(),
            queues: spec.weights.iter().map(|_| Fifo::new()).collect(),
            round,
            turn: 0,
            serving: 0,
            bytes: 0,
            memory: spec.memory,
        }
    }

    fn join(&mut self, queue: u8, desc: Desc, told: &mut Told<'_>) {
        let bytes = self.bytes.saturating_add(u32::from(desc.len));
        match self.queues.get_mut(usize::from(queue)) {
            Some(fifo) if bytes <= self.memory => {
                fifo.push_back(desc);
                self.bytes = bytes;
            }
            _ => {
                // The program has counted it.
                self.program.sent(queue, desc.len);
                told(Disposition::Drop, desc);
            }
        }
    }

    /// The queue of the next place in the round whose queue holds something; several do.
    fn next_in_round(&mut self) -> usize {
        loop {
            self.turn = (self.turn + 1) % self.round.len();
            let queue = usize::from(self.round[self.turn]);
            if !self.queues[queue].is_empty() {
                return queue;
            }
        }
    }
}

impl Discipline for Programmed {
    /// It has not been read.
    fn enqueue(&mut self, packet: Desc, _: &mut Random<'_>, told: &mut Told<'_>) {
        told(Disposition::Drop, packet);
    }

    fn reads_packets(&self) -> bool {
        true
    }

    fn enqueue_read(
        &mut self,
        packet: Desc,
        contents: &Packet,
        random: &mut Random<'_>,
        told: &mut Told<'_>,
    ) {
        let Verdict { trim_to, then } = self.program.arrive(contents, random());
        let mut packet = packet;
        if let Some(trim_to) = trim_to.filter(|_| packet.is_data()) {
            packet.len = trim_to.min(packet.len);
            packet.flags.set(Flags::TRIMMED);
            told(Disposition::Trim, packet);
        }
        match then {
            Action::Queue(queue) => self.join(queue, packet, told),
            Action::Bounce if packet.is_header() => told(Disposition::Bounce, packet),
            Action::Bounce | Action::Drop => told(Disposition::Drop, packet),
        }
    }

    fn bounces(&self) -> bool {
        true
    }

    fn dequeue(&mut self) -> Option<Desc> {
        let mut holding = self.queues.iter().enumerate().filter(|(_, queue)| !queue.is_empty());
        let (first, several) = (holding.next()?.0, holding.next().is_some());
        let queue = if several { self.next_in_round() } else { first };
        self.serving = queue as u8;
        self.queues[queue].pop_front()
    }

    fn finish(&mut self, packet: Desc) {
        self.bytes -= u32::from(packet.len);
        self.program.sent(self.serving, packet.len);
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = Desc> + '_> {
        Box::new(self.queues.iter().flat_map(Fifo::iter))
    }

    fn is_empty(&self) -> bool {
        self.queues.iter().all(Fifo::is_empty)
    }

    fn bytes(&self) -> u32 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Control joins the first queue, data the second, whose packets it counts; the message says
    /// what else becomes of it.
    #[derive(Clone, Debug, Default)]
    struct ByKind {
        held: u32,
    }

    impl Pipeline for ByKind {
        fn arrive(&mut self, packet: &Packet, random: u64) -> Verdict {
            let queue = u8::from(packet.carries_payload());
            self.held += u32::from(queue);
            match random {
                0 => Verdict { trim_to: None, then: Action::Queue(queue) },
                1 => Verdict { trim_to: Some(64), then: Action::Queue(0) },
                _ => Verdict { trim_to: Some(64), then: Action::Bounce },
            }
        }

        fn sent(&mut self, queue: u8, _: u16) {
            self.held -= u32::from(queue);
        }

        fn duplicate(&self) -> Box<dyn Pipeline> {
            Box::new(self.clone())
        }

        fn fingerprint(&self) -> u64 {
            0
        }
    }

    fn queue(memory: u32) -> Programmed {
        let program = Box::new(ByKind::default());
        Programmed::new(&ProgrammedSpec { program, weights: vec![3, 1], memory })
    }

    fn arrive(queue: &mut Programmed, handle: u32, len: u16, what: u64) -> Vec<(Disposition, u16)> {
        let flags = if len == 64 { Flags::CONTROL } else { Flags(0) };
        let packet = Packet { wire_len: len, flags, ..Packet::EMPTY };
        let mut fates = Vec::new();
        let desc = Desc { handle, len, flags, class: 0 };
        let told = &mut |fate, packet: Desc| fates.push((fate, packet.len));
        queue.enqueue_read(desc, &packet, &mut || what, told);
        fates
    }

    #[test]
    fn queues_take_turns_by_their_weights_while_several_wait() {
        let mut queue = queue(1_000_000);
        for handle in 0..6 {
            arrive(&mut queue, handle, 64, 0);
            arrive(&mut queue, 100 + handle, 9000, 0);
        }
        let served: Vec<u32> = std::iter::from_fn(|| {
            let packet = queue.dequeue()?;
            queue.finish(packet);
            Some(packet.handle)
        })
        .collect();
        // Places of the round after the first: control twice, data, control three times, data, ...
        assert_eq!(served, [0, 1, 100, 2, 3, 4, 101, 5, 102, 103, 104, 105]);
        assert_eq!(queue.bytes(), 0);
    }

    #[test]
    fn what_the_program_wants_beyond_the_memory_is_lost_and_it_hears_of_it() {
        let mut queue = queue(9100);
        assert!(arrive(&mut queue, 0, 9000, 0).is_empty());
        assert_eq!(arrive(&mut queue, 1, 9000, 0), [(Disposition::Drop, 9000)]);
        assert!(format!("{queue:?}").contains("held: 1"));
        assert!(arrive(&mut queue, 2, 64, 0).is_empty());
    }

    #[test]
    fn packets_are_trimmed_before_what_else_becomes_of_them() {
        let mut queue = queue(9100);
        assert_eq!(arrive(&mut queue, 0, 9000, 1), [(Disposition::Trim, 64)]);
        assert_eq!(
            arrive(&mut queue, 1, 9000, 2),
            [(Disposition::Trim, 64), (Disposition::Bounce, 64)]
        );
        assert_eq!(
            arrive(&mut queue, 2, 64, 2),
            [(Disposition::Drop, 64)],
            "control has no way back"
        );
    }
}
