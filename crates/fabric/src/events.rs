//! The event queue: events in the order (time, kind, rank).
//!
//! What is scheduled once and never moves (arrivals, departures, timers that come soon) goes into a
//! timing wheel whose slots cover the longest frame plus its propagation; what moves or lies far
//! ahead (other timers, applications, faults) into heaps. Without the wheel everything is in the
//! heaps, and the run must come out the same.
//!
//! Kinds among equal times (design.md section 4, rule 2): fault, departure, arrival, timer,
//! application. Within a kind the entity's rank decides, a seed-drawn permutation of ids, so that no
//! link wins all ties. Kind and rank together are an event's *order*, one number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use endpoint::{Draw, Purpose};
use units::Time;

use crate::config::Events;
use crate::timers::IndexedHeap;
use crate::wheel::{About, Onward, Span, Wheel};

/// What happens. Links, hosts and packets by their numbers in this partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A packet arrives at the far end of a link.
    Arrival { link: u32, packet: u32 },
    /// A port has finished a packet.
    Departure(u32),
    /// A frame of flow control ([`crate::pfc::Frame`]) arrives at the far end of a link.
    Frame { link: u32, frame: u32 },
    /// Something that flow control waits for may be due at a port.
    Pause(u32),
    /// A timer or a paced transmission of a host may be due.
    Timer(u32),
    /// A timer of, or a signal to, a host's application is due.
    App(u32),
    /// The next fault.
    Fault,
}

/// The ranks of a fabric's links and hosts, the same in all partitions.
pub(crate) struct Ranks {
    pub(crate) links: Vec<u32>,
    pub(crate) hosts: Vec<u32>,
}

const RANK: Purpose = Purpose::new("fabric: rank");

impl Ranks {
    pub(crate) fn new(links: u32, hosts: u32, seed: u64) -> Self {
        let ranks = |kind: &str, n: u32| {
            let mut ranks: Vec<u32> = (0..n).collect();
            Draw::new(seed, Purpose::new(kind), 0).shuffle(RANK, 0, &mut ranks);
            ranks
        };
        Self { links: ranks("links", links), hosts: ranks("hosts", hosts) }
    }
}

/// The events of one host that move, and what is pending of them.
#[derive(Clone, Copy)]
struct Pending {
    rank: u32,
    /// The next `Timer` event in the wheel; later ones may be there too and mean nothing.
    near: Time,
    /// The `Timer` event in the heap.
    far: Time,
}

/// An event in a heap: time, order, and what it is about.
type Spilled = Reverse<(Time, u32, About)>;

pub(crate) struct EventQueue {
    /// How many links and hosts there are in all partitions.
    links: u32,
    hosts: u32,
    wheel: Wheel,
    /// What the wheel does not reach, or all of it.
    spilled: BinaryHeap<Spilled>,
    /// What moves: by 0 for faults, then rank of hosts for timers, then for applications.
    moving: IndexedHeap<Time>,
    /// The time of the first event outside the wheel.
    heap_at: Time,
    /// Packets on their way to other partitions: link, packet, arrival.
    pub(crate) leaving: Vec<(u32, u32, Time)>,
    /// Busy ports that lead there.
    pub(crate) crossing: Vec<u32>,
    /// By host.
    pending: Vec<Pending>,
    /// Host by rank, of those in this partition.
    by_rank: Vec<u32>,
}

impl EventQueue {
    /// For `hosts` (their numbers in the whole fabric), and `busy` links of this partition.
    pub(crate) fn new(
        kind: Events,
        ranks: &Ranks,
        hosts: std::ops::Range<u32>,
        busy: u32,
        span: Span,
    ) -> Self {
        let (links, all) = (ranks.links.len() as u32, ranks.hosts.len() as u32);
        let mut by_rank = vec![u32::MAX; all as usize];
        let pending = |n: u32| {
            let rank = ranks.hosts[n as usize];
            by_rank[rank as usize] = n - hosts.start;
            Pending { rank, near: Time::NEVER, far: Time::NEVER }
        };
        let pending = hosts.clone().map(pending).collect();
        let orders = 1 + 2 * links + all;
        let wheel = match kind {
            Events::Wheel => Wheel::new(orders, busy, span),
            Events::Heap => Wheel::none(),
        };
        Self {
            links,
            hosts: all,
            wheel,
            spilled: BinaryHeap::new(),
            moving: IndexedHeap::new(),
            heap_at: Time::NEVER,
            leaving: Vec::new(),
            crossing: Vec::new(),
            pending,
            by_rank,
        }
    }

    /// `packet` arrives over `link`, of rank `rank`, at `at`.
    #[inline(always)]
    pub(crate) fn arrival(&mut self, rank: u32, link: u32, packet: u32, at: Time) {
        self.fix(1 + self.links + rank, About::new(About::ARRIVAL, link, packet), at);
    }

    /// The port of `link`, of rank `rank`, has sent a packet at `at`.
    #[inline(always)]
    pub(crate) fn departure(&mut self, rank: u32, link: u32, at: Time) {
        self.fix(1 + rank, About::new(About::DEPARTURE, link, 0), at);
    }

    /// A frame of flow control, which is not zero, arrives over `link`, of rank `rank`, at `at`. Such frames
    /// are few and stay out of the wheel, where every arrival is that of a packet.
    pub(crate) fn frame(&mut self, rank: u32, link: u32, frame: u32, at: Time) {
        self.spill(1 + self.links + rank, About::new(About::CONTROL, link, frame), at);
    }

    /// Something that flow control waits for may be due at the port of `link`, of rank `rank`, at `at`: after its
    /// departures, before its arrivals.
    pub(crate) fn pause(&mut self, rank: u32, link: u32, at: Time) {
        self.spill(1 + rank, About::new(About::CONTROL, link, 0), at);
    }

    /// Schedule what will not be moved.
    #[inline(always)]
    fn fix(&mut self, order: u32, about: About, at: Time) {
        if self.wheel.reaches(at) {
            self.wheel.push(order, about, at);
        } else {
            self.spill(order, about, at);
        }
    }

    #[cold]
    fn spill(&mut self, order: u32, about: About, at: Time) {
        self.spilled.push(Reverse((at, order, about)));
        self.heap_at = self.heap_at.min(at);
    }

    /// Let `Timer(host)` come at `at`, or some time before that. [`Time::NEVER`]: it need not.
    #[inline]
    pub(crate) fn wake(&mut self, host: u32, at: Time) {
        let pending = &mut self.pending[host as usize];
        if at >= pending.near.min(pending.far) {
            return;
        }
        if self.wheel.reaches(at) {
            pending.near = at;
            let about = About::new(About::TIMER, host, 0);
            self.wheel.push(1 + 2 * self.links + pending.rank, about, at);
        } else {
            pending.far = at;
            let id = 1 + pending.rank;
            self.set(id, at);
        }
    }

    /// Schedule `App(host)`, or move it; [`Time::NEVER`] cancels it.
    pub(crate) fn app(&mut self, host: u32, at: Time) {
        self.set(1 + self.hosts + self.pending[host as usize].rank, at);
    }

    /// Schedule the next fault; [`Time::NEVER`]: there is none.
    pub(crate) fn fault(&mut self, at: Time) {
        self.set(0, at);
    }

    fn set(&mut self, id: u32, at: Time) {
        if at == Time::NEVER {
            self.moving.remove(id);
        } else {
            self.moving.set(id, at);
        }
        self.note_heap();
    }

    fn note_heap(&mut self) {
        let moving = self.moving.peek().map_or(Time::NEVER, |(at, _)| at);
        let spilled = self.spilled.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
        self.heap_at = moving.min(spilled);
    }

    /// The order of what `moving` calls `id`.
    fn order(&self, id: u32) -> u32 {
        if id == 0 { 0 } else { 2 * self.links + id }
    }

    /// The next event, if it comes strictly before `limit`, is an arrival and can be had quickly:
    /// when, what, and where it leads.
    #[inline(always)]
    pub(crate) fn pop_arrival(&mut self, limit: Time) -> Option<(Time, About, Onward)> {
        let (at, about) = self.wheel.peek()?;
        if at >= self.heap_at.min(limit) || about.kind() != About::ARRIVAL {
            return None;
        }
        let onward = self.wheel.onward();
        self.wheel.pop();
        Some((at, about, onward))
    }

    /// The next event, if it comes strictly before `limit`.
    #[inline(always)]
    pub(crate) fn pop(&mut self, limit: Time) -> Option<(Time, Event)> {
        if let Some((at, about)) = self.wheel.peek()
            && at < self.heap_at
            && at < limit
        {
            self.wheel.pop();
            if let Some(event) = self.event(about, at) {
                return Some((at, event));
            }
        }
        self.pop_any(limit)
    }

    /// The next event where the next slot has to be opened, or the heaps' first may come before.
    #[inline(never)]
    fn pop_any(&mut self, limit: Time) -> Option<(Time, Event)> {
        loop {
            let heap = self.heap_first();
            let bound = self.heap_at.min(limit);
            let wheel = &mut self.wheel;
            if let Some((at, about)) = wheel.first(bound)
                && at < limit
                // Of what ties in both, a port's departure is in the wheel and its `Pause` in the heap.
                && heap.is_none_or(|heap| (at, wheel.peek_order().unwrap_or(0)) <= heap)
            {
                wheel.pop();
                match self.event(about, at) {
                    Some(event) => return Some((at, event)),
                    None => continue,
                }
            }
            let (at, order) = heap.filter(|&(at, _)| at < limit)?;
            let event = self.pop_heap(order);
            self.wheel.advance(at);
            return Some((at, event));
        }
    }

    /// Time and order of the first event outside the wheel.
    fn heap_first(&self) -> Option<(Time, u32)> {
        let moving = self.moving.peek().map(|(at, id)| (at, self.order(id)));
        let spilled = self.spilled.peek().map(|Reverse((at, order, _))| (*at, *order));
        match (moving, spilled) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Take the first event outside the wheel, which has this order.
    fn pop_heap(&mut self, order: u32) -> Event {
        let timers = 1 + 2 * self.links;
        let event = if order == 0 {
            self.moving.remove(0);
            Event::Fault
        } else if order < timers {
            match self.spilled.pop() {
                Some(Reverse((_, _, about))) if about.kind() == About::CONTROL => {
                    match (about.link(), about.packet) {
                        (link, 0) => Event::Pause(link),
                        (link, frame) => Event::Frame { link, frame },
                    }
                }
                Some(Reverse((_, _, about))) => link_event(about),
                None => Event::Fault,
            }
        } else {
            self.moving.remove(order - 2 * self.links);
            let rank = order - timers;
            if rank < self.hosts {
                let host = self.by_rank[rank as usize];
                self.pending[host as usize].far = Time::NEVER;
                Event::Timer(host)
            } else {
                Event::App(self.by_rank[(rank - self.hosts) as usize])
            }
        };
        self.note_heap();
        event
    }

    /// What an entry of the wheel means; nothing if it is a timer that has moved.
    #[inline(always)]
    fn event(&mut self, about: About, at: Time) -> Option<Event> {
        match about.kind() {
            About::TIMER => self.near_timer(about.link(), at),
            _ => Some(link_event(about)),
        }
    }

    fn near_timer(&mut self, host: u32, at: Time) -> Option<Event> {
        let near = &mut self.pending[host as usize].near;
        if *near != at {
            return None;
        }
        *near = Time::NEVER;
        Some(Event::Timer(host))
    }

    /// When the next event comes, or a bound below it; `None` if nothing is scheduled.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let wheel = self.wheel.next_at().unwrap_or(Time::NEVER);
        let next = wheel.min(self.heap_at);
        (next != Time::NEVER).then_some(next)
    }

    /// Whether a slot of the wheel has been opened since this was asked.
    #[inline(always)]
    pub(crate) fn has_opened(&mut self) -> bool {
        self.wheel.has_opened()
    }

    /// The events of the open slot. A host's number is that of its link, so [`About::link`] names a port
    /// in any case.
    #[inline(always)]
    pub(crate) fn opened(&self) -> impl Iterator<Item = About> {
        self.wheel.opened()
    }

    /// Where each of them leads; empty until somebody has looked.
    pub(crate) fn all_onward(&mut self) -> &mut Vec<Onward> {
        self.wheel.all_onward()
    }

    /// The packets that are on their way over a link.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = u32> {
        let spilled = self.spilled.iter().map(|Reverse((_, _, about))| *about);
        let all = self.wheel.entries().chain(spilled);
        all.filter(|about| about.kind() == About::ARRIVAL).map(|about| about.packet)
    }
}

#[inline(always)]
fn link_event(about: About) -> Event {
    match about.kind() {
        About::ARRIVAL => Event::Arrival { link: about.link(), packet: about.packet },
        _ => Event::Departure(about.link()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Dur;

    const LINKS: u32 = 40;
    const HOSTS: u32 = 10;
    const SPAN: Span = Span { horizon: Dur::from_us(8), frame: Dur::from_us(3) };

    /// Whatever is scheduled, the wheel pops what the heaps pop, in the same order.
    #[test]
    fn wheel_and_heap_agree() {
        let ranks = Ranks::new(LINKS, HOSTS, 3);
        let queue = |kind| EventQueue::new(kind, &ranks, 0..HOSTS, LINKS, SPAN);
        let (mut wheel, mut heap) = (queue(Events::Wheel), queue(Events::Heap));
        let draw = Draw::new(5, Purpose::new("test"), 0);
        let purpose = Purpose::new("events");
        let (mut now, mut busy, mut n) = (Time::ZERO, vec![false; LINKS as usize], 0);
        let mut due = [Time::NEVER; HOSTS as usize];
        for step in 0..200_000u64 {
            let mut draw = |bound| {
                n += 1;
                draw.below(purpose, n, bound)
            };
            let link = draw(u64::from(LINKS)) as u32;
            // Now and then everything drains and time jumps ahead.
            let draining = step / 1000 % 10 == 9;
            if !busy[link as usize] && !draining {
                busy[link as usize] = true;
                // Coarse times, so that ties are common.
                let at = now + Dur(draw(80) * 100_000);
                for queue in [&mut wheel, &mut heap] {
                    queue.arrival(ranks.links[link as usize], link, link + 7, at);
                }
            }
            let (host, far) = (draw(u64::from(HOSTS)) as u32, draw(50_000) * 100_000);
            if step % 7 == 0 {
                wheel.app(host, now + Dur(far));
                heap.app(host, now + Dur(far));
            }
            if step % 5 == 0 {
                let at = now + Dur(draw(if step % 3 == 0 { 100 } else { 5_000 }) * 100_000);
                due[host as usize] = at;
                wheel.wake(host, at);
                heap.wake(host, at);
            }
            let limit = now + Dur(draw(40) * 100_000);
            let a = pop_due(&mut wheel, &mut due.clone(), limit);
            let b = pop_due(&mut heap, &mut due, limit);
            assert_eq!(a, b, "step {step}");
            if let Some((at, event)) = a {
                assert!(at >= now);
                now = at;
                if let Event::Arrival { link, packet } = event {
                    assert_eq!(packet, link + 7);
                    busy[link as usize] = false;
                }
            } else {
                now = limit;
            }
        }
    }

    /// Pop, and let wakes that come early mean nothing, as hosts do.
    fn pop_due(
        queue: &mut EventQueue,
        due: &mut [Time; HOSTS as usize],
        limit: Time,
    ) -> Option<(Time, Event)> {
        loop {
            let (at, event) = queue.pop(limit)?;
            let Event::Timer(host) = event else { return Some((at, event)) };
            let due = &mut due[host as usize];
            if *due <= at {
                *due = Time::NEVER;
                return Some((at, event));
            }
            queue.wake(host, *due);
        }
    }

    #[test]
    fn ranks_are_a_permutation_of_the_seed() {
        let mut links = Ranks::new(LINKS, HOSTS, 1).links;
        assert_ne!(links, Ranks::new(LINKS, HOSTS, 2).links);
        links.sort_unstable();
        assert_eq!(links, (0..LINKS).collect::<Vec<_>>());
    }

    #[test]
    fn packets_in_flight_are_listed_wherever_they_are() {
        let ranks = Ranks::new(LINKS, HOSTS, 3);
        let mut queue = EventQueue::new(Events::Wheel, &ranks, 0..HOSTS, LINKS, SPAN);
        queue.arrival(0, 0, 5, Time(1_000_000));
        queue.arrival(1, 1, 6, Time(1_000_000_000_000));
        queue.departure(2, 2, Time(1000));
        queue.wake(3, Time(2000));
        let mut packets: Vec<u32> = queue.in_flight().collect();
        packets.sort_unstable();
        assert_eq!(packets, [5, 6]);
    }
}
