//! An output port: a queue of [`queues`] and the packet in service.
//!
//! What a port does follows from when packets arrive, not from when this process looks: departures
//! are worked out to the picosecond when the port is next touched, each from the end of the one
//! before. So a process that wakes late neither loses rate nor decides otherwise, and equal
//! arrivals have equal fates, here and in the simulator's port.

use endpoint::Packet;
use queues::{Desc, Disposition, Queue, QueueSpec, draws};
use units::{Rate, Time};

/// What has happened to a packet at a port, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Happened {
    pub(crate) at: Time,
    pub(crate) what: What,
    pub(crate) packet: Desc,
}

/// What can happen to a packet at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Its last bit has left.
    Sent,
    /// The queue has decided.
    Fate(Disposition),
}

pub(crate) struct Port {
    queue: Queue,
    /// Of the link that it transmits over: names its draws.
    link: u32,
    seed: u64,
    rate: Rate,
    serving: Option<Desc>,
    /// When the packet in service will have been sent.
    free_at: Time,
    /// Random choices made so far.
    coins: u64,
    max_bytes: u32,
}

impl Port {
    pub(crate) fn new(link: u32, seed: u64, rate: Rate, queue: &QueueSpec) -> Self {
        Self {
            queue: Queue::new(queue),
            link,
            seed,
            rate,
            serving: None,
            free_at: Time::ZERO,
            coins: 0,
            max_bytes: 0,
        }
    }

    /// When the packet in service will have been sent, if there is one.
    pub(crate) fn next(&self) -> Option<Time> {
        self.serving.map(|_| self.free_at)
    }

    /// Bytes held now, and the most so far, the packet in service included.
    pub(crate) fn bytes(&self) -> (u32, u32) {
        (self.queue.bytes(), self.max_bytes)
    }

    /// From `at` on, packets are sent at `rate`; the one in service goes on at the old one.
    pub(crate) fn set_rate(&mut self, at: Time, rate: Rate, out: &mut Vec<Happened>) {
        // What leaves at this instant makes way for the new rate, as in the simulator.
        self.catch_up(Time(at.0.saturating_sub(1)), out);
        self.rate = rate;
    }

    /// What it has done up to and including `until`.
    pub(crate) fn catch_up(&mut self, until: Time, out: &mut Vec<Happened>) {
        while let Some(sent) = self.serving.filter(|_| self.free_at <= until) {
            let at = self.free_at;
            out.push(Happened { at, what: What::Sent, packet: sent });
            self.serving = None;
            if let Some(next) = self.queue.next(sent) {
                self.start(next, at);
            }
            self.take_mark(at, out);
        }
    }

    /// A packet with these contents arrives.
    pub(crate) fn arrive(
        &mut self,
        at: Time,
        packet: Desc,
        contents: &Packet,
        out: &mut Vec<Happened>,
    ) {
        self.catch_up(at, out);
        let idle = self.serving.is_none();
        let joined = match idle {
            true => self.queue.cut_through(packet),
            false => self.queue.try_enqueue(packet),
        };
        if joined && idle {
            self.start(packet, at);
        } else if !joined {
            self.enqueue(at, packet, contents, out);
        }
        self.max_bytes = self.max_bytes.max(self.queue.bytes());
    }

    fn enqueue(&mut self, at: Time, packet: Desc, contents: &Packet, out: &mut Vec<Happened>) {
        let (seed, link, coins) = (self.seed, self.link, &mut self.coins);
        let coin = || {
            *coins += 1;
            draws::random(seed, link, *coins)
        };
        let mut fate = |fate, packet| out.push(Happened { at, what: What::Fate(fate), packet });
        match self.queue.reads_packets() {
            true => self.queue.enqueue_read(packet, contents, coin, &mut fate),
            false => self.queue.enqueue(packet, coin, &mut fate),
        }
        self.max_bytes = self.max_bytes.max(self.queue.bytes());
        if self.serving.is_none() {
            if let Some(next) = self.queue.dequeue() {
                self.start(next, at);
            }
            self.take_mark(at, out);
        }
    }

    fn start(&mut self, packet: Desc, at: Time) {
        self.serving = Some(packet);
        self.free_at = at + self.rate.serialise(u64::from(packet.len));
    }

    /// What has just gone into service may be marked as it leaves.
    fn take_mark(&mut self, at: Time, out: &mut Vec<Happened>) {
        if let Some(packet) = self.queue.take_mark() {
            out.push(Happened { at, what: What::Fate(Disposition::Mark), packet });
        }
    }
}

#[cfg(test)]
mod tests {
    use queues::{Capacity, DropTailSpec};
    use units::Dur;

    use super::*;

    fn desc(handle: u32) -> Desc {
        Desc { handle, len: 1_000, flags: endpoint::Flags(0), class: 0 }
    }

    /// Packets of 8 us each. However late it is looked at, they leave every 8 us.
    #[test]
    fn departures_count_from_departures() {
        let spec = DropTailSpec { capacity: Capacity::Packets(3), ecn_threshold: None };
        let mut port = Port::new(7, 1, Rate(1_000_000_000), &spec.into());
        let mut out = Vec::new();
        for n in 0..4 {
            port.arrive(Time(u64::from(n)), desc(n), &Packet::EMPTY, &mut out);
        }
        let lost = Happened { at: Time(3), what: What::Fate(Disposition::Drop), packet: desc(3) };
        assert_eq!(std::mem::take(&mut out), [lost]);
        assert_eq!((port.next(), port.bytes()), (Some(Time(8_000_000)), (3_000, 3_000)));
        port.catch_up(Time::ZERO + Dur::from_ms(5), &mut out);
        let left: Vec<_> = out.iter().map(|h| (h.packet.handle, h.at.0 / 1_000_000)).collect();
        assert_eq!(left, [(0, 8), (1, 16), (2, 24)]);
        assert_eq!((port.next(), port.bytes()), (None, (0, 3_000)));
        out.clear();
        port.arrive(Time::ZERO + Dur::from_ms(6), desc(5), &Packet::EMPTY, &mut out);
        port.set_rate(Time::ZERO + Dur::from_ms(6), Rate(1), &mut out);
        assert_eq!(port.next(), Some(Time::ZERO + Dur::from_us(6_008)), "at the old rate");
    }
}
