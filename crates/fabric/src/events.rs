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

/// Nodes in their order among equal times: by kind (design.md section 4, rule 2), then by the rank
/// of the entity. The rest of the queue knows a node by its place in this order.
struct Nodes {
    links: u32,
    hosts: u32,
    /// Per link and per host: a seed-drawn permutation, so that no entity wins all ties.
    link_rank: Vec<u32>,
    host_rank: Vec<u32>,
    by_order: Vec<Node>,
}

const RANK: Purpose = Purpose::new("fabric: rank");

impl Nodes {
    fn new(links: u32, hosts: u32, seed: u64) -> Self {
        let ranks = |kind: &str, n: u32| {
            let mut ranks: Vec<u32> = (0..n).collect();
            Draw::new(seed, Purpose::new(kind), 0).shuffle(RANK, 0, &mut ranks);
            ranks
        };
        let (link_rank, host_rank) = (ranks("links", links), ranks("hosts", hosts));
        let by_order = vec![Node::Fault; 2 + 2 * (links + hosts) as usize];
        let mut nodes = Self { links, hosts, link_rank, host_rank, by_order };
        let of_links = (0..links).flat_map(|n| [Node::Departure(n), Node::Arrival(n)]);
        let of_hosts = (0..hosts).flat_map(|n| [Node::Timer(n), Node::App(n)]);
        for node in of_links.chain(of_hosts).chain([Node::Fault, Node::Sample]) {
            let order = nodes.order(node);
            nodes.by_order[order as usize] = node;
        }
        nodes
    }

    fn order(&self, node: Node) -> u32 {
        let (link_rank, host_rank) = (&self.link_rank, &self.host_rank);
        match node {
            Node::Fault => 0,
            Node::Departure(link) => 1 + link_rank[link as usize],
            Node::Arrival(link) => 1 + self.links + link_rank[link as usize],
            Node::Timer(host) => 1 + 2 * self.links + host_rank[host as usize],
            Node::App(host) => 1 + 2 * self.links + self.hosts + host_rank[host as usize],
            Node::Sample => 1 + 2 * self.links + 2 * self.hosts,
        }
    }

    fn at(&self, order: u32) -> Node {
        self.by_order[order as usize]
    }
}

pub(crate) struct EventQueue {
    nodes: Nodes,
    wheel: Option<Wheel>,
    /// By order: ties of time are then broken as they must be.
    heap: IndexedHeap<Time>,
    /// The time of the heap's first.
    heap_at: Time,
}

impl EventQueue {
    /// `horizon` is the longest time from scheduling an arrival or departure to its coming.
    pub(crate) fn new(kind: Events, links: u32, hosts: u32, horizon: Dur, seed: u64) -> Self {
        let nodes = Nodes::new(links, hosts, seed);
        let wheel = (kind == Events::Wheel).then(|| Wheel::new(links, horizon));
        Self { nodes, wheel, heap: IndexedHeap::new(), heap_at: Time::NEVER }
    }

    /// Schedule an event that is not scheduled and will not be moved.
    // Inlined: with `Port::start`, 50 of 860 instructions per packet-hop.
    #[inline(always)]
    pub(crate) fn schedule_fixed(&mut self, node: Node, at: Time) {
        let order = self.nodes.order(node);
        match (&mut self.wheel, node) {
            (Some(wheel), Node::Arrival(link) | Node::Departure(link)) if wheel.reaches(at) => {
                wheel.push(order, link, at);
            }
            _ => self.set(order, at),
        }
    }

    /// Schedule an event, or move it; [`Time::NEVER`] cancels it.
    pub(crate) fn schedule(&mut self, node: Node, at: Time) {
        let order = self.nodes.order(node);
        if at == Time::NEVER {
            self.remove(order);
        } else {
            self.set(order, at);
        }
    }

    fn set(&mut self, order: u32, at: Time) {
        self.heap.set(order, at);
        self.note_heap();
    }

    fn remove(&mut self, order: u32) {
        self.heap.remove(order);
        self.note_heap();
    }

    fn note_heap(&mut self) {
        self.heap_at = self.heap.peek().map_or(Time::NEVER, |(at, _)| at);
    }

    /// The next event, if it comes strictly before `limit`.
    #[inline]
    pub(crate) fn pop(&mut self, limit: Time) -> Option<(Time, Node)> {
        if let Some(wheel) = &mut self.wheel
            && let Some(&entry) = wheel.open.last()
        {
            let at = wheel.at(entry);
            if at < self.heap_at && at < limit {
                wheel.open.pop();
                return Some((at, self.fixed_node(entry)));
            }
        }
        self.pop_either(limit)
    }

    /// The next event where the next slot has to be opened, or the heap's first may come before.
    fn pop_either(&mut self, limit: Time) -> Option<(Time, Node)> {
        let heap = self.heap.peek();
        let bound = self.heap_at.min(limit);
        if let Some(wheel) = &mut self.wheel
            && let Some(first) = wheel.first(bound)
            && wheel.at(first) < limit
            && heap.is_none_or(|heap| (wheel.at(first), wheel.order(first)) < heap)
        {
            wheel.open.pop();
            let at = wheel.at(first);
            return Some((at, self.fixed_node(first)));
        }
        let (at, order) = heap.filter(|&(at, _)| at < limit)?;
        self.remove(order);
        if let Some(wheel) = &mut self.wheel {
            wheel.advance(at);
        }
        Some((at, self.nodes.at(order)))
    }

    /// The event that comes `n` after the next one in the open slot, if it is an arrival: over which
    /// link.
    #[inline]
    pub(crate) fn arrival_ahead(&self, n: usize) -> Option<u32> {
        let open = &self.wheel.as_ref()?.open;
        let entry = *open.get(open.len().checked_sub(n + 1)?)?;
        match self.fixed_node(entry) {
            Node::Arrival(link) => Some(link),
            _ => None,
        }
    }

    /// What an entry of the wheel stands for.
    fn fixed_node(&self, entry: Entry) -> Node {
        let Some(wheel) = &self.wheel else { return Node::Sample };
        let link = wheel.link(entry);
        // Departures come before arrivals among equal times.
        if wheel.order(entry) <= self.nodes.links {
            Node::Departure(link)
        } else {
            Node::Arrival(link)
        }
    }

    /// When the next event comes, or a bound below it; `None` if nothing but a sample is scheduled.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let sample = self.nodes.order(Node::Sample);
        let only_sample =
            self.heap.len() == 1 && self.heap.peek().is_some_and(|(_, n)| n == sample);
        let wheel = self.wheel.as_ref().and_then(Wheel::next_at);
        if wheel.is_none() && (only_sample || self.heap_at == Time::NEVER) {
            return None;
        }
        Some(wheel.map_or(self.heap_at, |wheel| wheel.min(self.heap_at)))
    }
}

/// An event of the open slot: from the highest bit down its time since the slot began, its order and
/// its link, so that one comparison is the order of the queue and nothing need be looked up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry(u64);

/// Slots of equal width; the one being emptied is kept sorted, the others are lists.
struct Wheel {
    /// Slot of a time: its picoseconds shifted by this.
    shift: u32,
    /// First node of each slot's list.
    heads: Vec<u32>,
    /// Bit per slot: its list is not empty.
    occupied: Vec<u64>,
    /// Per node, by order.
    nodes: Vec<Scheduled>,
    /// The events of slot `current`, latest first.
    open: Vec<Entry>,
    /// The slot being emptied, counted from time zero. Lists hold only later slots, fewer than
    /// `heads.len()` of them.
    current: u64,
    /// Bits that an order, and a link, takes in an entry.
    bits: u32,
}

/// A node in a slot's list.
#[derive(Clone, Copy)]
struct Scheduled {
    at: Time,
    /// The next node of the list.
    next: u32,
    link: u32,
}

const NIL: u32 = u32::MAX;
/// Slots are as wide as makes this many packets fall into one when every link is busy with the
/// longest ones. Control packets come on top: 8 to 10 events per slot in all was best (design.md
/// section 4, rule 9).
const FRAMES_PER_SLOT: u64 = 4;
const SHIFT_MIN: u32 = 6;
const SLOTS_MIN: u64 = 64;
/// Links of a second and more of delay do not fit; their arrivals go to the heap.
const SLOTS_MAX: u64 = 1 << 20;

impl Wheel {
    fn new(links: u32, horizon: Dur) -> Self {
        let width = horizon.0.saturating_mul(FRAMES_PER_SLOT) / u64::from(links.max(1));
        let bits = (1 + 2 * links).ilog2() + 1;
        let shift = width.max(1).ilog2().clamp(SHIFT_MIN, u64::BITS - 2 * bits);
        let slots = ((horizon.0 >> shift) + 3).next_power_of_two().clamp(SLOTS_MIN, SLOTS_MAX);
        let idle = Scheduled { at: Time::NEVER, next: NIL, link: 0 };
        Self {
            shift,
            heads: vec![NIL; slots as usize],
            occupied: vec![0; slots.div_ceil(64) as usize],
            nodes: vec![idle; 1 + 2 * links as usize],
            open: Vec::with_capacity(64),
            current: 0,
            bits,
        }
    }

    fn slot(&self, at: Time) -> u64 {
        at.0 >> self.shift
    }

    fn index(&self, slot: u64) -> usize {
        (slot & (self.heads.len() as u64 - 1)) as usize
    }

    fn start(&self, slot: u64) -> Time {
        Time(slot << self.shift)
    }

    /// Whether a slot for `at` exists now. Always so within the horizon, unless a slot has been
    /// opened ahead of an event in the heap that schedules something before it.
    fn reaches(&self, at: Time) -> bool {
        let slot = self.slot(at);
        slot >= self.current && slot < self.current + self.heads.len() as u64
    }

    fn entry(&self, order: u32, link: u32, at: Time) -> Entry {
        let since = at.0 - self.start(self.current).0;
        Entry(((since << self.bits | u64::from(order)) << self.bits) | u64::from(link))
    }

    fn at(&self, entry: Entry) -> Time {
        Time(self.start(self.current).0 + (entry.0 >> (2 * self.bits)))
    }

    fn order(&self, entry: Entry) -> u32 {
        (entry.0 >> self.bits & ((1 << self.bits) - 1)) as u32
    }

    fn link(&self, entry: Entry) -> u32 {
        (entry.0 & ((1 << self.bits) - 1)) as u32
    }

    fn push(&mut self, order: u32, link: u32, at: Time) {
        let slot = self.slot(at);
        if slot == self.current {
            let entry = self.entry(order, link, at);
            let place = self.open.partition_point(|e| *e > entry);
            self.open.insert(place, entry);
            return;
        }
        let index = self.index(slot);
        let next = std::mem::replace(&mut self.heads[index], order);
        self.nodes[order as usize] = Scheduled { at, next, link };
        self.occupied[index / 64] |= 1 << (index % 64);
    }

    /// The first event if its slot begins no later than `limit`: opens slots up to there.
    fn first(&mut self, limit: Time) -> Option<Entry> {
        while self.open.is_empty() {
            let slot = self.next_slot()?;
            if self.start(slot) > limit {
                return None;
            }
            self.open_slot(slot);
        }
        self.open.last().copied()
    }

    /// Nothing comes before `now` any more.
    fn advance(&mut self, now: Time) {
        if self.open.is_empty() {
            self.current = self.current.max(self.slot(now).saturating_sub(1));
        }
    }

    fn next_at(&self) -> Option<Time> {
        match self.open.last() {
            Some(&entry) => Some(self.at(entry)),
            None => self.next_slot().map(|slot| self.start(slot)),
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
        self.current = slot;
        let index = self.index(slot);
        let mut order = std::mem::replace(&mut self.heads[index], NIL);
        while order != NIL {
            let Scheduled { at, next, link } = self.nodes[order as usize];
            self.open.push(self.entry(order, link, at));
            order = next;
        }
        self.occupied[index / 64] &= !(1 << (index % 64));
        // Not always a handful: hosts that start together stay in step, and their events tie.
        self.open.sort_unstable_by(|a, b| b.cmp(a));
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
    fn the_order_is_a_permutation_by_kind() {
        let nodes = Nodes::new(LINKS, HOSTS, 1);
        for order in 0..nodes.by_order.len() as u32 {
            assert_eq!(nodes.order(nodes.at(order)), order);
        }
        assert_eq!(nodes.at(0), Node::Fault);
        assert!(matches!(nodes.at(LINKS), Node::Departure(_)));
        assert!(matches!(nodes.at(LINKS + 1), Node::Arrival(_)));
        assert_ne!(nodes.link_rank, Nodes::new(LINKS, HOSTS, 2).link_rank);
    }
}
