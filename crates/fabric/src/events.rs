//! The event queue: one live event per node, popped in the order (time, kind, rank).
//!
//! A node is one kind of event of one entity. What is scheduled once and never moves (arrivals,
//! departures) goes into a timing wheel whose slots cover the longest frame plus its propagation;
//! what moves or lies far ahead (timers, applications, faults, samples) into a heap. Without the
//! wheel everything is in the heap, and the run must come out the same.

use endpoint::{Draw, Purpose};
use units::{Dur, Time};

use crate::config::Events;
use crate::timers::IndexedHeap;

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// A packet arrives at the far end of a link.
    Arrival(u32),
    /// A port has finished a packet.
    Departure(u32),
    /// A timer or a paced transmission of a host is due.
    Timer(u32),
    /// A timer of, or a signal to, a host's application is due.
    App(u32),
    /// The next fault.
    Fault,
    /// The next sample or window edge.
    Sample,
}

/// Numbers nodes, and orders them among equal times.
struct Nodes {
    links: u32,
    hosts: u32,
    /// Per node: its kind's place (design.md section 4, rule 2), then its entity's rank.
    order: Vec<u32>,
}

const RANK: Purpose = Purpose::new("fabric: rank");

impl Nodes {
    fn new(links: u32, hosts: u32, seed: u64) -> Self {
        let ranks = |kind: &str, n: u32| {
            let mut ranks: Vec<u32> = (0..n).collect();
            Draw::new(seed, Purpose::new(kind), 0).shuffle(RANK, 0, &mut ranks);
            ranks
        };
        let (link, host) = (ranks("links", links), ranks("hosts", hosts));
        // In order: fault, departures, arrivals, timers, applications, sample.
        let after = |base: u32, ranks: &[u32]| ranks.iter().map(|r| base + r).collect::<Vec<_>>();
        let mut order = after(1 + links, &link);
        order.extend(after(1, &link));
        order.extend(after(1 + 2 * links, &host));
        order.extend(after(1 + 2 * links + hosts, &host));
        order.extend([0, 1 + 2 * links + 2 * hosts]);
        Self { links, hosts, order }
    }

    fn id(&self, node: Node) -> u32 {
        match node {
            Node::Arrival(link) => link,
            Node::Departure(link) => self.links + link,
            Node::Timer(host) => 2 * self.links + host,
            Node::App(host) => 2 * self.links + self.hosts + host,
            Node::Fault => 2 * self.links + 2 * self.hosts,
            Node::Sample => 2 * self.links + 2 * self.hosts + 1,
        }
    }

    fn node(&self, id: u32) -> Node {
        let Self { links, hosts, .. } = *self;
        match id {
            _ if id < links => Node::Arrival(id),
            _ if id < 2 * links => Node::Departure(id - links),
            _ if id < 2 * links + hosts => Node::Timer(id - 2 * links),
            _ if id < 2 * links + 2 * hosts => Node::App(id - 2 * links - hosts),
            _ if id == 2 * links + 2 * hosts => Node::Fault,
            _ => Node::Sample,
        }
    }
}

pub(crate) struct EventQueue {
    nodes: Nodes,
    wheel: Option<Wheel>,
    /// Keys are (time, order).
    heap: IndexedHeap<(Time, u32)>,
}

impl EventQueue {
    /// `horizon` is the longest time from scheduling an arrival or departure to its coming.
    pub(crate) fn new(kind: Events, links: u32, hosts: u32, horizon: Dur, seed: u64) -> Self {
        let wheel = (kind == Events::Wheel).then(|| Wheel::new(links, horizon));
        Self { nodes: Nodes::new(links, hosts, seed), wheel, heap: IndexedHeap::new() }
    }

    /// Schedule an event that is not scheduled and will not be moved.
    pub(crate) fn schedule_fixed(&mut self, node: Node, at: Time) {
        let id = self.nodes.id(node);
        let order = self.nodes.order[id as usize];
        match &mut self.wheel {
            Some(wheel) if wheel.reaches(at) => wheel.push(Entry { at, order, id }),
            _ => self.heap.set(id, (at, order)),
        }
    }

    /// Schedule an event, or move it; [`Time::NEVER`] cancels it.
    pub(crate) fn schedule(&mut self, node: Node, at: Time) {
        let id = self.nodes.id(node);
        if at == Time::NEVER {
            self.heap.remove(id);
        } else {
            self.heap.set(id, (at, self.nodes.order[id as usize]));
        }
    }

    /// The next event, if it comes strictly before `limit`.
    pub(crate) fn pop(&mut self, limit: Time) -> Option<(Time, Node)> {
        let heap = self.heap.peek().map(|((at, order), id)| Entry { at, order, id });
        let wheel = self
            .wheel
            .as_mut()
            .and_then(|wheel| wheel.first(heap.map_or(limit, |entry| entry.at.min(limit))));
        let entry = match (wheel, heap) {
            (Some(w), Some(h)) => {
                if w < h {
                    w
                } else {
                    h
                }
            }
            (w, h) => w.or(h)?,
        };
        if entry.at >= limit {
            return None;
        }
        match &mut self.wheel {
            Some(wheel) if wheel_owns(entry, heap) => wheel.pop(),
            wheel => {
                self.heap.remove(entry.id);
                if let Some(wheel) = wheel {
                    wheel.advance(entry.at);
                }
            }
        }
        Some((entry.at, self.nodes.node(entry.id)))
    }

    /// When the next event comes, or a bound below it; `None` if nothing is scheduled.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let heap = self.heap.peek().map(|((at, _), _)| at);
        let wheel = self.wheel.as_ref().and_then(Wheel::next_at);
        heap.into_iter().chain(wheel).min()
    }
}

/// Whether `entry` came from the wheel: it is not the heap's first.
fn wheel_owns(entry: Entry, heap: Option<Entry>) -> bool {
    heap.is_none_or(|first| first.id != entry.id)
}

/// A scheduled event. Compares as the queue pops: by time, then order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry {
    at: Time,
    order: u32,
    id: u32,
}

/// Slots of equal width; the one being emptied is kept sorted, the others are lists.
struct Wheel {
    /// Slot of a time: its picoseconds shifted by this.
    shift: u32,
    /// First node of each slot's list.
    heads: Vec<u32>,
    /// Bit per slot: its list is not empty.
    occupied: Vec<u64>,
    /// Per node: the entry, and the next node of its list.
    entries: Vec<(Entry, u32)>,
    /// The entries of all slots up to `current`, latest first.
    open: Vec<Entry>,
    /// The slot being emptied, counted from time zero. Lists hold only later slots, fewer than
    /// `heads.len()` of them.
    current: u64,
}

const NIL: u32 = u32::MAX;
/// Slots are as wide as makes this many events fall into one when every link is busy; 8 to 10 was
/// best (design.md section 4, rule 9).
const EVENTS_PER_SLOT: u64 = 8;
const SHIFT_MIN: u32 = 6;
const SLOTS_MIN: u64 = 64;

impl Wheel {
    fn new(links: u32, horizon: Dur) -> Self {
        let width = horizon.0.saturating_mul(EVENTS_PER_SLOT) / u64::from(links.max(1));
        let shift = width.max(1).ilog2().max(SHIFT_MIN);
        let slots = ((horizon.0 >> shift) + 3).next_power_of_two().max(SLOTS_MIN);
        let none = Entry { at: Time::NEVER, order: 0, id: 0 };
        Self {
            shift,
            heads: vec![NIL; slots as usize],
            occupied: vec![0; slots.div_ceil(64) as usize],
            entries: vec![(none, NIL); 2 * links as usize],
            open: Vec::with_capacity(64),
            current: 0,
        }
    }

    fn slot(&self, at: Time) -> u64 {
        at.0 >> self.shift
    }

    fn index(&self, slot: u64) -> usize {
        (slot & (self.heads.len() as u64 - 1)) as usize
    }

    /// Whether a slot for `at` exists now. Always so within the horizon.
    fn reaches(&self, at: Time) -> bool {
        self.slot(at) < self.current + self.heads.len() as u64
    }

    fn push(&mut self, entry: Entry) {
        let slot = self.slot(entry.at);
        if slot <= self.current {
            let at = self.open.partition_point(|e| *e > entry);
            self.open.insert(at, entry);
            return;
        }
        let index = self.index(slot);
        self.entries[entry.id as usize] = (entry, self.heads[index]);
        self.heads[index] = entry.id;
        self.occupied[index / 64] |= 1 << (index % 64);
    }

    /// The first entry if its slot begins no later than `limit`: opens slots up to there.
    fn first(&mut self, limit: Time) -> Option<Entry> {
        while self.open.is_empty() {
            let slot = self.next_slot()?;
            if Time(slot << self.shift) > limit {
                return None;
            }
            self.open_slot(slot);
        }
        self.open.last().copied()
    }

    fn pop(&mut self) {
        self.open.pop();
    }

    /// Nothing comes before `now` any more.
    fn advance(&mut self, now: Time) {
        if self.open.is_empty() {
            self.current = self.current.max(self.slot(now).saturating_sub(1));
        }
    }

    fn next_at(&self) -> Option<Time> {
        match self.open.last() {
            Some(entry) => Some(entry.at),
            None => self.next_slot().map(|slot| Time(slot << self.shift)),
        }
    }

    /// The first occupied slot after `current`.
    fn next_slot(&self) -> Option<u64> {
        let start = self.index(self.current + 1);
        let words = self.occupied.len();
        let first = self.occupied[start / 64] & (u64::MAX << (start % 64));
        let found = (0..=words).find_map(|n| {
            let word = (start / 64 + n) % words;
            let bits = if n == 0 { first } else { self.occupied[word] };
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        })?;
        let distance = self.index(found as u64 + self.heads.len() as u64 - start as u64);
        Some(self.current + 1 + distance as u64)
    }

    fn open_slot(&mut self, slot: u64) {
        let index = self.index(slot);
        let mut id = self.heads[index];
        while id != NIL {
            let (entry, next) = self.entries[id as usize];
            self.open.push(entry);
            id = next;
        }
        self.heads[index] = NIL;
        self.occupied[index / 64] &= !(1 << (index % 64));
        self.open.sort_unstable_by(|a, b| b.cmp(a));
        self.current = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: u32 = 40;
    const HOSTS: u32 = 10;

    /// Whatever is scheduled, the wheel pops what the heap pops, in the same order.
    #[test]
    fn wheel_and_heap_agree() {
        let horizon = Dur::from_us(8);
        let queue = |kind| EventQueue::new(kind, LINKS, HOSTS, horizon, 3);
        let (mut wheel, mut heap) = (queue(Events::Wheel), queue(Events::Heap));
        let draw = Draw::new(5, Purpose::new("test"), 0);
        let purpose = Purpose::new("events");
        let (mut now, mut busy, mut n) = (Time::ZERO, vec![false; LINKS as usize], 0);
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
                wheel.schedule_fixed(Node::Arrival(link), at);
                heap.schedule_fixed(Node::Arrival(link), at);
            }
            let (host, far) = (draw(u64::from(HOSTS)) as u32, draw(50_000) * 100_000);
            if step % 7 == 0 {
                wheel.schedule(Node::Timer(host), now + Dur(far));
                heap.schedule(Node::Timer(host), now + Dur(far));
            }
            let limit = now + Dur(draw(40) * 100_000);
            let (a, b) = (wheel.pop(limit), heap.pop(limit));
            assert_eq!(a, b, "step {step}");
            if let Some((at, node)) = a {
                assert!(at >= now);
                now = at;
                if let Node::Arrival(link) = node {
                    busy[link as usize] = false;
                }
            } else {
                now = limit;
            }
        }
    }

    #[test]
    fn ids_name_nodes() {
        let nodes = Nodes::new(LINKS, HOSTS, 1);
        for id in 0..nodes.order.len() as u32 {
            assert_eq!(nodes.id(nodes.node(id)), id);
        }
        let mut order = nodes.order.clone();
        order.sort_unstable();
        assert!(order.iter().enumerate().all(|(n, &o)| n as u32 == o), "a permutation");
    }
}
