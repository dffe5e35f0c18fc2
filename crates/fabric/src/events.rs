//! What is to happen, in the order (time, kind, rank).
//!
//! What is scheduled once and never moves (arrivals, departures, timers that come soon) goes into a
//! timing wheel that covers the longest frame plus its propagation; what moves or lies far ahead
//! (other timers, applications, faults) into heaps. Without the wheel everything is in the heaps,
//! and the run must come out the same. Events are taken out a slot at a time
//! ([`EventQueue::open`]); what comes up within the open slot is kept apart
//! ([`EventQueue::fresh`]).
//!
//! Kinds among equal times: fault, departure, arrival, timer, application. Among arrivals a hash of
//! seed, instant and link decides ([`Ties`]), so that no link wins all ties: which of two packets
//! that come at once finds room is a coin's throw, anew each time. Among others the entity's rank
//! does, a seed-drawn permutation of ids; they touch nothing that another one reads. Kind and rank
//! together are an event's *order*, one number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use endpoint::{Draw, Purpose};
use units::Time;

use crate::config::Events;
use crate::event::{Event, EventId, Kind};
use crate::ties::Ties;
use crate::timers::IndexedHeap;
use crate::wheel::{Span, Wheel};

/// When an event comes and what it is among those of the same time.
pub(crate) type Key = (Time, u32);

/// The ranks of a fabric's links and hosts, the same in all partitions.
pub(crate) struct Ranks {
    pub(crate) links: Vec<u32>,
    pub(crate) hosts: Vec<u32>,
    ties: Ties,
}

const RANK: Purpose = Purpose::new("fabric: rank");

impl Ranks {
    pub(crate) fn new(links: u32, hosts: u32, seed: u64) -> Self {
        let ranks = |kind: &str, n: u32| {
            let mut ranks: Vec<u32> = (0..n).collect();
            Draw::new(seed, Purpose::new(kind), 0).shuffle(RANK, 0, &mut ranks);
            ranks
        };
        let ties = Ties::new(seed, links);
        Self { links: ranks("links", links), hosts: ranks("hosts", hosts), ties }
    }
}

/// The events of one host that move, and what is pending of them.
#[derive(Clone, Copy)]
struct Pending {
    rank: u32,
    /// The next `Timer` event in the wheel or the open slot; later ones may be there too and mean
    /// nothing.
    near: Time,
    /// The `Timer` event in the heap.
    far: Time,
}

pub(crate) struct EventQueue {
    /// How many links and hosts there are in all partitions.
    links: u32,
    hosts: u32,
    wheel: Wheel,
    /// What the wheel does not reach, or all of it.
    spilled: BinaryHeap<Reverse<Event>>,
    /// What moves: by 0 for faults, then rank of hosts for timers, then for applications.
    moving: IndexedHeap<Time>,
    /// The time of the first event outside the wheel.
    heap_at: Time,
    /// When the open slot begins.
    start: Time,
    /// What has come up in the open slot, for the same.
    fresh: BinaryHeap<Reverse<(Key, Event)>>,
    /// Ranks of links, by their numbers in this partition.
    ranks: Vec<u32>,
    ties: Ties,
    /// How many bits an order takes.
    order_bits: u32,
    /// By host.
    pending: Vec<Pending>,
    /// Host by rank, of those in this partition.
    by_rank: Vec<u32>,
}

impl EventQueue {
    /// For `hosts` and `links` of this partition (their numbers in the whole fabric), and slots of
    /// two to the power of `shift` picoseconds.
    pub(crate) fn new(
        kind: Events,
        ranks: &Ranks,
        hosts: std::ops::Range<u32>,
        links: impl Iterator<Item = u32>,
        span: Span,
        shift: u32,
    ) -> Self {
        let all = ranks.hosts.len() as u32;
        let mut by_rank = vec![u32::MAX; all as usize];
        let pending = |n: u32| {
            let rank = ranks.hosts[n as usize];
            by_rank[rank as usize] = n - hosts.start;
            Pending { rank, near: Time::NEVER, far: Time::NEVER }
        };
        let pending = hosts.clone().map(pending).collect();
        let wheel = match kind {
            Events::Wheel => Wheel::new(shift, span.horizon),
            Events::Heap => Wheel::none(shift),
        };
        let orders = 1 + 2 * ranks.links.len() as u32 + ranks.ties.places() + 2 * all;
        Self {
            order_bits: orders.ilog2() + 1,
            links: ranks.links.len() as u32,
            hosts: all,
            wheel,
            spilled: BinaryHeap::new(),
            moving: IndexedHeap::new(),
            heap_at: Time::NEVER,
            start: Time::ZERO,
            fresh: BinaryHeap::new(),
            ranks: links.map(|link| ranks.links[link as usize]).collect(),
            ties: ranks.ties,
            pending,
            by_rank,
        }
    }

    /// `packet` arrives over `link` at `at`.
    #[inline(always)]
    pub(crate) fn arrival(&mut self, link: u32, packet: u32, at: Time) {
        self.fix(at, EventId::new(Kind::Arrival, link, packet));
    }

    /// The port of `link` has sent a packet at `at`.
    #[inline(always)]
    pub(crate) fn departure(&mut self, link: u32, at: Time) {
        self.fix(at, EventId::new(Kind::Departure, link, 0));
    }

    /// A frame of flow control arrives over `link` at `at`.
    pub(crate) fn frame(&mut self, link: u32, frame: u32, at: Time) {
        self.fix(at, EventId::new(Kind::Frame, link, frame));
    }

    /// Something that flow control waits for may be due at the port of `link` at `at`: after its
    /// departures, before its arrivals.
    pub(crate) fn pause(&mut self, link: u32, at: Time) {
        self.fix(at, EventId::new(Kind::Pause, link, 0));
    }

    /// In which order events come.
    #[inline(always)]
    pub(crate) fn key(&self, event: Event) -> Key {
        (event.at, self.order(event))
    }

    /// Whether [`EventQueue::short_key`] says the same.
    #[inline(always)]
    pub(crate) fn has_short_keys(&self) -> bool {
        self.wheel.shift + self.order_bits < i32::BITS
    }

    /// The same in 31 bits for events of the open slot.
    #[inline(always)]
    pub(crate) fn short_key(&self, event: Event) -> i32 {
        let since = event.at.0.wrapping_sub(self.start.0) as u32;
        (since << self.order_bits | self.order(event)) as i32
    }

    /// The order of an event among those of its time.
    #[inline(always)]
    pub(crate) fn order(&self, event: Event) -> u32 {
        if event.id().is_arrival() {
            self.order_of_arrival(event)
        } else {
            self.order_of_other(event)
        }
    }

    #[inline(always)]
    fn order_of_arrival(&self, event: Event) -> u32 {
        let rank = self.ranks[event.id().link() as usize];
        1 + 2 * self.links + self.ties.place(event.at, rank)
    }

    #[inline(never)]
    fn order_of_other(&self, event: Event) -> u32 {
        let number = event.id().link() as usize;
        let hosts = 1 + 2 * self.links + self.ties.places();
        // Of one link departures come first, then what flow control waits for.
        match event.id().kind() {
            Kind::Fault => 0,
            Kind::Departure => 1 + 2 * self.ranks[number],
            Kind::Pause => 2 + 2 * self.ranks[number],
            Kind::Arrival | Kind::Frame => self.order_of_arrival(event),
            Kind::Timer => hosts + self.pending[number].rank,
            Kind::App => hosts + self.hosts + self.pending[number].rank,
        }
    }

    /// Schedule what will not be moved.
    #[inline(always)]
    fn fix(&mut self, at: Time, id: EventId) {
        if self.wheel.reaches(at) {
            self.wheel.push(at, id);
        } else {
            self.spill(id.at(at));
        }
    }

    #[inline(never)]
    fn spill(&mut self, event: Event) {
        if event.at < self.end() {
            self.fresh.push(Reverse((self.key(event), event)));
        } else {
            self.heap_at = self.heap_at.min(event.at);
            self.spilled.push(Reverse(event));
        }
    }

    /// Where the open slot ends: all that comes before has been taken out.
    #[inline(always)]
    fn end(&self) -> Time {
        self.wheel.from
    }

    /// Let `Timer` of `host` come at `at`, or some time before that. [`Time::NEVER`]: it need not.
    #[inline(always)]
    pub(crate) fn wake(&mut self, host: u32, at: Time) {
        let Pending { near, far, .. } = self.pending[host as usize];
        if at < near.min(far) {
            self.wake_sooner(host, at);
        }
    }

    #[inline(never)]
    fn wake_sooner(&mut self, host: u32, at: Time) {
        let soon = at < self.end() || self.wheel.reaches(at);
        let pending = &mut self.pending[host as usize];
        if soon {
            pending.near = at;
            self.fix(at, EventId::new(Kind::Timer, host, 0));
        } else {
            pending.far = at;
            let id = 1 + pending.rank;
            self.set(id, at);
        }
    }

    /// Whether the `Timer` event of `host` at `at` is the one that counts; then it is none that is
    /// to come.
    #[inline(always)]
    pub(crate) fn wakes(&mut self, host: u32, at: Time) -> bool {
        let near = &mut self.pending[host as usize].near;
        let wakes = *near == at;
        if wakes {
            *near = Time::NEVER;
        }
        wakes
    }

    /// Schedule `App` of `host`, or move it; [`Time::NEVER`] cancels it. One in the open slot comes
    /// even if it has been moved.
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
        } else if at < self.end() {
            self.moving.remove(id);
            self.spill(self.moved(id, at));
        } else {
            self.moving.set(id, at);
        }
        self.note_heap();
    }

    fn note_heap(&mut self) {
        let moving = self.moving.peek().map_or(Time::NEVER, |(at, _)| at);
        let spilled = self.spilled.peek().map_or(Time::NEVER, |Reverse(event)| event.at);
        self.heap_at = moving.min(spilled);
    }

    /// The event that `moving` calls `id`.
    fn moved(&self, id: u32, at: Time) -> Event {
        if id == 0 {
            Event::new(at, Kind::Fault, 0, 0)
        } else if id - 1 < self.hosts {
            Event::new(at, Kind::Timer, self.by_rank[id as usize - 1], 0)
        } else {
            Event::new(at, Kind::App, self.by_rank[(id - 1 - self.hosts) as usize], 0)
        }
    }

    /// Open the next slot with events before `until`: its events before that, in any order, go to
    /// `due`, which is empty. False if there is no such slot.
    #[inline(always)]
    pub(crate) fn open(&mut self, until: Time, due: &mut Vec<Event>) -> bool {
        let start = self.next_at().unwrap_or(Time::NEVER);
        if start >= until {
            return false;
        }
        self.start = start;
        let end = until.min(self.wheel.end_of_slot(start));
        self.wheel.take(start, end, due);
        if self.heap_at < end {
            self.take_heap(due);
        }
        true
    }

    #[inline(never)]
    fn take_heap(&mut self, due: &mut Vec<Event>) {
        while let Some((at, id)) = self.moving.peek().filter(|&(at, _)| at < self.end()) {
            self.moving.remove(id);
            let event = self.moved(id, at);
            if event.id().kind() == Kind::Timer {
                let pending = &mut self.pending[event.id().link() as usize];
                pending.far = Time::NEVER;
                pending.near = pending.near.min(at);
            }
            due.push(event);
        }
        while self.spilled.peek().is_some_and(|Reverse(event)| event.at < self.end()) {
            due.extend(self.spilled.pop().map(|Reverse(event)| event));
        }
        self.note_heap();
    }

    /// Everything before `until` has happened.
    pub(crate) fn close(&mut self, until: Time) {
        self.wheel.from = self.end().max(until);
    }

    /// The first event that has come up within the open slot.
    #[inline(always)]
    pub(crate) fn fresh(&self) -> Option<Key> {
        self.fresh.peek().map(|Reverse((key, _))| *key)
    }

    /// Whether that one comes before `event`.
    #[inline(always)]
    pub(crate) fn is_fresh_before(&self, event: Event) -> bool {
        self.fresh().is_some_and(|key| key < self.key(event))
    }

    /// Take that event.
    pub(crate) fn pop_fresh(&mut self) -> Option<Event> {
        self.fresh.pop().map(|Reverse((_, event))| event)
    }

    /// When the next event comes, or a bound below it; `None` if nothing is scheduled.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let wheel = self.wheel.next_at().unwrap_or(Time::NEVER);
        let next = wheel.min(self.heap_at);
        (next != Time::NEVER).then_some(next.max(self.end()))
    }

    /// The packets that are on their way over a link.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = u32> {
        let spilled = self.spilled.iter().map(|Reverse(event)| event.id());
        let fresh = self.fresh.iter().map(|Reverse((_, event))| event.id());
        let all = self.wheel.iter().chain(spilled).chain(fresh);
        all.filter(|id| id.is_arrival()).map(|id| id.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Dur;

    const LINKS: u32 = 40;
    const HOSTS: u32 = 10;
    const SPAN: Span =
        Span { horizon: Dur::from_us(8), frame: Dur::from_us(3), apart: Dur::from_us(1) };

    fn queue(kind: Events, shift: u32) -> EventQueue {
        let ranks = Ranks::new(LINKS, HOSTS, 3);
        EventQueue::new(kind, &ranks, 0..HOSTS, 0..LINKS, SPAN, shift)
    }

    /// What happens before `until`, in order. Each event has others follow from it, by what it is
    /// about and nothing else: some in the same slot, some far ahead, some moved. `due_at`: when
    /// each host's `Timer` and `App` are to come, as hosts know it themselves.
    fn happen(
        queue: &mut EventQueue,
        until: Time,
        due_at: &mut [[Time; HOSTS as usize]; 2],
        log: &mut Vec<(Key, Kind, u32, u32)>,
    ) {
        let mut due = Vec::new();
        while queue.open(until, &mut due) {
            assert!(due.iter().all(|event| event.at < until));
            due.sort_unstable_by_key(|&event| Reverse(queue.key(event)));
            loop {
                let first = due.last().map(|&event| queue.key(event));
                let fresh = queue.fresh().filter(|&key| first.is_none_or(|first| key < first));
                let next = if fresh.is_some() { queue.pop_fresh() } else { due.pop() };
                let Some(event) = next else { break };
                let (kind, id) = (event.id().kind(), event.id().link());
                if kind == Kind::Timer && !queue.wakes(id, event.at) {
                    continue;
                }
                if let Kind::Timer | Kind::App = kind {
                    let due_at = &mut due_at[usize::from(kind == Kind::App)][id as usize];
                    if *due_at > event.at {
                        if kind == Kind::Timer {
                            queue.wake(id, *due_at);
                        }
                        continue;
                    }
                    *due_at = Time::NEVER;
                }
                log.push((queue.key(event), kind, id, event.id().packet));
                let n = log.len() as u64;
                let after = |ns| event.at + Dur(ns * 1000);
                match kind {
                    Kind::Arrival if n < 20_000 => {
                        // Coarse times, so that ties are common.
                        queue.arrival((id + 7) % LINKS, id, after(100 * (1 + n % 60)));
                        let host = id % HOSTS;
                        let timer = &mut due_at[0][host as usize];
                        *timer = after(n % 3 * 40).min(*timer);
                        queue.wake(host, *timer);
                        if n.is_multiple_of(8) {
                            let (host, at) = (n as u32 % HOSTS, after(n % 70 * 50));
                            due_at[1][host as usize] = at;
                            queue.app(host, at);
                        }
                    }
                    Kind::Timer => queue.departure(id, after(1 + n % 2 * 10)),
                    _ => {}
                }
            }
        }
        queue.close(until);
    }

    /// Whatever is scheduled, wheels of all widths give what the heaps give, in the same order.
    #[test]
    fn wheels_and_heap_agree() {
        let log = |kind, shift| {
            let mut queue = queue(kind, shift);
            for link in 0..LINKS / 4 {
                queue.arrival(link, link, Time(u64::from(link) * 1000));
            }
            let (mut log, mut due_at) = (Vec::new(), [[Time::NEVER; HOSTS as usize]; 2]);
            // Slots are cut off in their middle, and now and then everything drains.
            for step in 1..12_000 {
                happen(&mut queue, Time(step * 333_333), &mut due_at, &mut log);
            }
            assert_eq!(queue.next_at(), None);
            log
        };
        let heap = log(Events::Heap, 15);
        assert!(heap.len() > 20_000 && heap.is_sorted_by_key(|&(key, ..)| key));
        for kind in [Kind::Arrival, Kind::Departure, Kind::Timer, Kind::App] {
            assert!(heap.iter().filter(|event| event.1 == kind).count() > 500, "{kind:?}");
        }
        for shift in [6, 12, 15, 19] {
            let wheel = log(Events::Wheel, shift);
            let differs = wheel.iter().zip(&heap).position(|(a, b)| a != b);
            assert_eq!(differs.map(|n| (n, wheel[n], heap[n])), None, "slots of 2^{shift} ps");
            assert_eq!(wheel.len(), heap.len());
        }
    }

    /// Of what ties at a port: departures, then flow control, then arrivals.
    #[test]
    fn short_keys_are_in_the_order_of_keys() {
        let mut queue = queue(Events::Wheel, 15);
        let mut events = Vec::new();
        for link in 0..LINKS {
            for at in [Time(5), Time(700)] {
                let kinds = [Kind::Departure, Kind::Pause, Kind::Arrival, Kind::Fault];
                events.extend(kinds.map(|kind| Event::new(at, kind, link, 0)));
                let host = link % HOSTS;
                events.extend([Kind::Timer, Kind::App].map(|kind| Event::new(at, kind, host, 0)));
            }
        }
        assert!(queue.has_short_keys() && !queue.open(Time(1), &mut Vec::new()));
        events.sort_by_key(|&event| queue.key(event));
        assert!(events.is_sorted_by_key(|&event| queue.short_key(event)));
        let of_one = |&&event: &&Event| event.at == Time(5) && event.id().link() == 33;
        let kinds: Vec<Kind> = events.iter().filter(of_one).map(|e| e.id().kind()).collect();
        assert_eq!(kinds, [Kind::Fault, Kind::Departure, Kind::Pause, Kind::Arrival]);
        assert!(!self::queue(Events::Wheel, 24).has_short_keys(), "24 and 8 bits");
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
        let mut queue = queue(Events::Wheel, 15);
        queue.arrival(0, 5, Time(1_000_000));
        queue.arrival(1, 6, Time(1_000_000_000_000));
        queue.departure(2, Time(1000));
        queue.wake(3, Time(2000));
        let mut packets: Vec<u32> = queue.in_flight().collect();
        packets.sort_unstable();
        assert_eq!(packets, [5, 6]);
    }
}
