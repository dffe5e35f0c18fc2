//! The packet generator: control packets that programs ask for, on their way to the arbiter
//! (specs/nanotransport.md#8).

use std::collections::VecDeque;

use units::{Dur, Time};

use super::config::Config;
use super::meta::Egress;
use super::packetization::QUEUE_PLACES;

/// The PULL bit of a control packet's flags (`PULL_FLAG` in `nano.p4`).
const PULL: u8 = wire::nano::flags::PULL;

/// The pacer of PULLs. A PULL takes a token, which is back a fixed time later.
#[derive(Debug)]
pub struct Pacer {
    period: Dur,
    token_back: Time,
    waiting: VecDeque<Egress>,
    room: usize,
}

impl Pacer {
    /// One PULL each `period`; up to `room` of them wait, others are lost.
    #[must_use]
    pub const fn new(period: Dur, room: u32) -> Self {
        Self { period, token_back: Time::ZERO, waiting: VecDeque::new(), room: room as usize }
    }

    /// `packet` was asked for at `now`: what of it goes at once. A PULL that finds the token goes
    /// with what it is joined to, before those that wait; its credit is not less than theirs.
    pub fn ask(&mut self, now: Time, packet: Egress) -> Option<Egress> {
        if packet.flags & PULL == 0 {
            return Some(packet);
        }
        if self.token_back <= now {
            self.token_back = now + self.period;
            return Some(packet);
        }
        if self.waiting.len() < self.room {
            self.waiting.push_back(Egress { flags: PULL, ..packet });
        }
        let rest = packet.flags & !PULL;
        (rest != 0).then_some(Egress { flags: rest, ..packet })
    }

    /// When the next PULL that waits is released.
    #[must_use]
    pub fn next_release(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.token_back)
    }

    /// Release it, if that time has come. It takes the token.
    pub fn release(&mut self, now: Time) -> Option<Egress> {
        let at = self.next_release().filter(|at| *at <= now)?;
        self.token_back = at + self.period;
        self.waiting.pop_front()
    }
}

/// Who asked for a control packet: each has a FIFO, and they are served in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `ack_pkt`.
    Ack,
    /// `nack_pkt`.
    Nack,
    /// `ctrl_pkt`, and PULLs that the pacer has released.
    Ctrl,
    /// `grant_pkt`.
    Grant,
}

/// Control packets at the arbiter, with the time since which they wait.
#[derive(Debug)]
pub struct Control {
    queues: [VecDeque<(Time, Egress)>; 4],
    /// Packets that find room in each of them.
    places: usize,
}

impl Control {
    /// None waits. A clocked NIC has room for so many of each kind (C8), another for all.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let places = if config.clocked { QUEUE_PLACES } else { usize::MAX };
        Self { queues: [const { VecDeque::new() }; 4], places }
    }

    /// `packet` begins to wait at `now`. Whether there is room for it.
    pub fn push(&mut self, now: Time, class: Class, packet: Egress) -> bool {
        let queue = &mut self.queues[class as usize];
        let has_room = queue.len() < self.places;
        if has_room {
            queue.push_back((now, packet));
        }
        has_room
    }

    /// Since when the one waits that has waited longest.
    #[must_use]
    pub fn waiting_since(&self) -> Option<Time> {
        self.queues.iter().filter_map(|queue| Some(queue.front()?.0)).min()
    }

    /// The next of those that wait since `since` or longer.
    pub fn next(&mut self, since: Time) -> Option<Egress> {
        let ready = |queue: &&mut VecDeque<(Time, Egress)>| {
            queue.front().is_some_and(|(at, _)| *at <= since)
        };
        let (_, packet) = self.queues.iter_mut().find(ready)?.pop_front()?;
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::cycles;
    use super::*;
    use wire::nano::flags::{ACK, NACK};

    const PERIOD: Dur = cycles(140);

    fn packet(flags: u8, credit: u16) -> Egress {
        Egress { flags, credit, ..Egress::from_values(&[]) }
    }

    fn pacer() -> Pacer {
        Pacer::new(PERIOD, 4)
    }

    /// N9: PULLs, those joined to something included, are at least a period apart.
    #[test]
    fn n9_pulls_are_a_period_apart() {
        let mut pacer = pacer();
        let mut pulls = Vec::new();
        // Five packets arrive back to back at twice the pacer's rate.
        let arrivals: Vec<Time> = (0..5).map(|n| Time(n * PERIOD.0 / 2)).collect();
        let mut next = arrivals.iter().copied().peekable();
        let mut credits = 10..;
        loop {
            let release = pacer.next_release();
            let arrival = next.peek().copied();
            let (now, sent) = match (arrival, release) {
                (Some(at), r) if r.is_none_or(|r| at <= r) => {
                    next.next();
                    (at, pacer.ask(at, packet(ACK | PULL, credits.next().unwrap())))
                }
                (_, Some(at)) => (at, pacer.release(at)),
                _ => break,
            };
            pulls.extend(sent.filter(|p| p.flags & PULL != 0).map(|p| (now, p.credit, p.flags)));
        }
        let times: Vec<u64> = pulls.iter().map(|(at, ..)| at.0).collect();
        assert!(times.windows(2).all(|w| w[1] - w[0] >= PERIOD.0), "{times:?}");
        assert_eq!(times.len(), 5, "none is lost");
        // At one period the third packet arrives as the token comes back: it takes it, joined.
        let expected =
            [(10, ACK | PULL), (12, ACK | PULL), (14, ACK | PULL), (11, PULL), (13, PULL)];
        assert_eq!(pulls.iter().map(|&(_, c, f)| (c, f)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn without_the_token_the_answer_goes_at_once_and_the_pull_waits() {
        let mut pacer = pacer();
        pacer.ask(Time(0), packet(NACK | PULL, 1));
        let answer = pacer.ask(Time(1), packet(NACK | PULL, 2)).unwrap();
        assert_eq!((answer.flags, answer.credit), (NACK, 2));
        assert_eq!(pacer.ask(Time(2), packet(ACK, 0)).unwrap().flags, ACK, "not paced");
        assert_eq!(pacer.release(Time(PERIOD.0 - 1)), None);
        assert_eq!(pacer.release(Time(PERIOD.0)).unwrap().flags, PULL);
        assert_eq!(pacer.next_release(), None);
        // Four may wait.
        for n in 0..9 {
            pacer.ask(Time(PERIOD.0), packet(PULL, n));
        }
        assert_eq!(pacer.waiting.len(), 4);
    }

    #[test]
    fn acks_before_nacks_before_grants_each_first_in_first_out() {
        let mut control = Control::new(&Config::prototype(9, Dur::from_us(7)));
        control.push(Time(0), Class::Grant, packet(0, 1));
        control.push(Time(1), Class::Nack, packet(0, 2));
        control.push(Time(2), Class::Ack, packet(0, 3));
        control.push(Time(2), Class::Ack, packet(0, 4));
        control.push(Time(9), Class::Ack, packet(0, 5));
        assert_eq!(control.waiting_since(), Some(Time(0)));
        assert_eq!(control.next(Time(0)).unwrap().credit, 1, "no other was there");
        let rest = std::iter::from_fn(|| control.next(Time(5)));
        assert_eq!(rest.map(|p| p.credit).collect::<Vec<_>>(), [3, 4, 2]);
        assert_eq!(control.waiting_since(), Some(Time(9)));
    }

    /// C8: of each kind 256 wait.
    #[test]
    fn law_c8_what_finds_its_queue_full_is_lost() {
        let prototype = Config::prototype(9, Dur::from_us(7));
        let mut control = Control::new(&Config { clocked: true, ..prototype });
        assert!((0..256).all(|n| control.push(Time(0), Class::Ack, packet(0, n))));
        assert!(!control.push(Time(0), Class::Ack, packet(0, 256)));
        assert!(control.push(Time(0), Class::Nack, packet(0, 0)), "another kind");
        assert!(control.next(Time(0)).is_some_and(|first| first.credit == 0));
        assert!(control.push(Time(0), Class::Ack, packet(0, 257)));
    }
}
