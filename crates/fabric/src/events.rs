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
    /// The time of the heap's first.
    heap_at: Time,
}

impl EventQueue {
    /// `horizon` is the longest time from scheduling an arrival or departure to its coming.
    pub(crate) fn new(kind: Events, links: u32, hosts: u32, horizon: Dur, seed: u64) -> Self {
        let nodes = Nodes::new(links, hosts, seed);
        let fixed = &nodes.order[..2 * links as usize];
        let wheel = (kind == Events::Wheel).then(|| Wheel::new(fixed, horizon));
        Self { nodes, wheel, heap: IndexedHeap::new(), heap_at: Time::NEVER }
    }

    /// Schedule an event that is not scheduled and will not be moved.
    pub(crate) fn schedule_fixed(&mut self, node: Node, at: Time) {
        let id = self.nodes.id(node);
        match &mut self.wheel {
            Some(wheel) if wheel.reaches(at) => wheel.push(id, at),
            _ => self.set(id, at),
        }
    }

    /// Schedule an event, or move it; [`Time::NEVER`] cancels it.
    pub(crate) fn schedule(&mut self, node: Node, at: Time) {
        let id = self.nodes.id(node);
        if at == Time::NEVER {
            self.remove(id);
        } else {
            self.set(id, at);
        }
    }

    fn set(&mut self, id: u32, at: Time) {
        self.heap.set(id, (at, self.nodes.order[id as usize]));
        self.note_heap();
    }

    fn remove(&mut self, id: u32) {
        self.heap.remove(id);
        self.note_heap();
    }

    fn note_heap(&mut self) {
        self.heap_at = self.heap.peek().map_or(Time::NEVER, |((at, _), _)| at);
    }

    /// The next event, if it comes strictly before `limit`.
    pub(crate) fn pop(&mut self, limit: Time) -> Option<(Time, Node)> {
        let bound = self.heap_at.min(limit);
        if let Some(first) = self.wheel.as_mut().and_then(|wheel| wheel.first(bound)) {
            let tied = || first.at() < limit && first < self.heap_first();
            if first.at() < bound || tied() {
                if let Some(wheel) = &mut self.wheel {
                    wheel.pop();
                }
                return Some((first.at(), self.nodes.node(first.id())));
            }
        }
        if self.heap_at >= limit {
            return None;
        }
        let first = self.heap_first();
        self.remove(first.id());
        if let Some(wheel) = &mut self.wheel {
            wheel.advance(first.at());
        }
        Some((first.at(), self.nodes.node(first.id())))
    }

    /// The heap's first; later than everything if there is none.
    fn heap_first(&self) -> Entry {
        self.heap.peek().map_or(Entry(u128::MAX), |((at, order), id)| Entry::new(at, order, id))
    }

    /// When the next event comes, or a bound below it; `None` if nothing is scheduled.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let heap = Some(self.heap_at).filter(|&at| at != Time::NEVER);
        let wheel = self.wheel.as_ref().and_then(Wheel::next_at);
        heap.into_iter().chain(wheel).min()
    }
}

/// A scheduled event: from the highest bit down its time (64), order (32) and node (32), so that
/// one comparison is the order of the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry(u128);

impl Entry {
    const fn new(at: Time, order: u32, id: u32) -> Self {
        Self((at.0 as u128) << 64 | (order as u128) << 32 | id as u128)
    }

    const fn at(self) -> Time {
        Time((self.0 >> 64) as u64)
    }

    const fn id(self) -> u32 {
        self.0 as u32
    }
}

/// Slots of equal width; the one being emptied is kept sorted, the others are lists.
struct Wheel {
    /// Slot of a time: its picoseconds shifted by this.
    shift: u32,
    /// First node of each slot's list.
    heads: Vec<u32>,
    /// Bit per slot: its list is not empty.
    occupied: Vec<u64>,
    nodes: Vec<Scheduled>,
    /// The entries of all slots up to `current`, latest first.
    open: Vec<Entry>,
    /// The slot being emptied, counted from time zero. Lists hold only later slots, fewer than
    /// `heads.len()` of them.
    current: u64,
}

/// A node in a slot's list.
#[derive(Clone, Copy)]
struct Scheduled {
    at: Time,
    /// Its place among equal times; constant.
    order: u32,
    /// The next node of the list.
    next: u32,
}

const NIL: u32 = u32::MAX;
/// Slots are as wide as makes this many packets fall into one when every link is busy with the
/// longest ones. Control packets come on top: 8 to 10 events per slot in all was best (design.md
/// section 4, rule 9).
const FRAMES_PER_SLOT: u64 = 4;
const SHIFT_MIN: u32 = 6;
const SLOTS_MIN: u64 = 64;

impl Wheel {
    fn new(order: &[u32], horizon: Dur) -> Self {
        let links = order.len() as u64 / 2;
        let width = horizon.0.saturating_mul(FRAMES_PER_SLOT) / links.max(1);
        let shift = width.max(1).ilog2().max(SHIFT_MIN);
        let slots = ((horizon.0 >> shift) + 3).next_power_of_two().max(SLOTS_MIN);
        let idle = |&order| Scheduled { at: Time::NEVER, order, next: NIL };
        Self {
            shift,
            heads: vec![NIL; slots as usize],
            occupied: vec![0; slots.div_ceil(64) as usize],
            nodes: order.iter().map(idle).collect(),
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

    fn push(&mut self, id: u32, at: Time) {
        let slot = self.slot(at);
        let index = self.index(slot);
        let node = &mut self.nodes[id as usize];
        if slot <= self.current {
            let entry = Entry::new(at, node.order, id);
            self.insert(entry);
            return;
        }
        node.at = at;
        node.next = std::mem::replace(&mut self.heads[index], id);
        self.occupied[index / 64] |= 1 << (index % 64);
    }

    /// Put an entry into its place among the open ones. Slots are small: from the back.
    fn insert(&mut self, entry: Entry) {
        let mut at = self.open.len();
        self.open.push(entry);
        while at > 0 && self.open[at - 1] < entry {
            self.open[at] = self.open[at - 1];
            at -= 1;
        }
        self.open[at] = entry;
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
            Some(entry) => Some(entry.at()),
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
        let mut id = std::mem::replace(&mut self.heads[index], NIL);
        while id != NIL {
            let node = self.nodes[id as usize];
            self.open.push(Entry::new(node.at, node.order, id));
            id = node.next;
        }
        // Not always a handful: hosts that start together stay in step, and their events tie.
        self.open.sort_unstable_by(|a, b| b.cmp(a));
        self.occupied[index / 64] &= !(1 << (index % 64));
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
