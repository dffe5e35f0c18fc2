//! The wire of a clocked NIC: when the arbiter may choose, and when what it has chosen begins
//! (docs/nic.md, C5).

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use endpoint::Packet;
use units::{Dur, Time};

use super::clock::Edges;

/// A packet that has been chosen.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    /// When it has passed the way out.
    ready: Time,
    /// When its first bit is due.
    start: Time,
    /// How long it takes on the wire.
    takes: Dur,
    packet: Packet,
}

/// See the top of the file.
#[derive(Debug)]
pub(super) struct Mac {
    /// Cycles of the way out.
    egress: u64,
    /// When the wire is free of all that has been chosen.
    free: Time,
    chosen: VecDeque<Chosen>,
}

impl Mac {
    pub(super) const fn new(egress: u64) -> Self {
        Self { egress, free: Time::ZERO, chosen: VecDeque::new() }
    }

    /// The cycles in which the arbiter may choose: from the last one whose packet is out as soon
    /// as the wire is free, and while no packet is overdue.
    pub(super) fn open(&self, edges: Edges) -> RangeInclusive<u64> {
        let from = edges.last_by(self.free).unwrap_or(0).saturating_sub(self.egress);
        let first = self.chosen.front();
        from..=first.map_or(u64::MAX, |first| edges.last_by(first.start).unwrap_or(0))
    }

    /// When a packet that is chosen in `cycle` begins.
    pub(super) fn start(&self, edges: Edges, cycle: u64) -> Time {
        self.free.max(edges.begin(cycle + self.egress))
    }

    /// `packet` was chosen in `cycle`, and `takes` so long.
    pub(super) fn push(&mut self, edges: Edges, cycle: u64, takes: Dur, packet: Packet) {
        let ready = edges.begin(cycle + self.egress);
        let start = self.start(edges, cycle);
        self.free = start + takes;
        self.chosen.push_back(Chosen { ready, start, takes, packet });
    }

    /// When the next packet begins, of those that have been chosen.
    pub(super) fn next(&self) -> Option<Time> {
        self.chosen.front().map(|first| first.start)
    }

    /// The packet that begins now, or is late.
    pub(super) fn take(&mut self, now: Time) -> Option<Packet> {
        let first = self.chosen.pop_front_if(|first| first.start <= now)?;
        if first.start < now {
            self.free = now + first.takes;
            for next in &mut self.chosen {
                next.start = self.free.max(next.ready);
                self.free = next.start + next.takes;
            }
        }
        Some(first.packet)
    }
}

#[cfg(test)]
mod tests {
    use endpoint::{Draw, Purpose};

    use super::*;

    const EGRESS: u64 = 12;
    const SHORT: Dur = Dur(2_600);

    fn edges() -> Edges {
        Edges::of(Draw::new(1, Purpose::new("host"), 1))
    }

    /// C5: the choice falls in the last cycle whose packet is out when the wire is free; of short
    /// packets the next is chosen before the one before has begun.
    #[test]
    fn law_c5_the_choice_is_as_late_as_the_way_out_lets_it() {
        let (edges, mut mac) = (edges(), Mac::new(EGRESS));
        assert_eq!(mac.open(edges), 0..=u64::MAX);
        mac.push(edges, 100, SHORT, Packet::EMPTY);
        let start = edges.begin(112);
        assert_eq!(mac.next(), Some(start));
        let open = mac.open(edges);
        let out = |cycle| edges.begin(cycle + EGRESS);
        assert!(out(*open.start()) <= start + SHORT && out(open.start() + 1) > start + SHORT);
        assert_eq!(*open.end(), 112, "in 113 it would be overdue");
        assert!(*open.start() < 112, "before it has begun");
        mac.push(edges, *open.start(), SHORT, Packet::EMPTY);
        assert!(mac.take(Time(start.0 - 1)).is_none());
        assert!(mac.take(start).is_some());
        assert_eq!(mac.next(), Some(start + SHORT), "back to back");
    }

    /// C5: what goes late puts off what has been chosen behind it, and nothing is chosen meanwhile.
    #[test]
    fn law_c5_what_is_late_puts_off_what_follows() {
        let (edges, mut mac) = (edges(), Mac::new(EGRESS));
        mac.push(edges, 100, SHORT, Packet::EMPTY);
        mac.push(edges, 108, SHORT, Packet::EMPTY);
        let late = edges.begin(200);
        assert!(*mac.open(edges).end() < 200);
        assert!(mac.take(late).is_some());
        assert_eq!(mac.next(), Some(late + SHORT));
        assert_eq!(mac.free, late + SHORT + SHORT);
        assert!(*mac.open(edges).end() > 200);
    }
}
