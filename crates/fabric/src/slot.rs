//! The open slot of the wheel: where its events lead, and in which order they come.

use crate::events::{Event, EventQueue, Key};
use crate::port::Port;

/// Where an event leads: to a port at which it queues, or to a host, by the number of its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Onward(u32);

impl Onward {
    /// Not worked out.
    pub(crate) const UNKNOWN: Self = Self(Self::MANY - 1);
    /// The event has been handled.
    pub(crate) const DONE: Self = Self(u32::MAX);
    /// There are several of the same; links are fewer than this.
    const MANY: u32 = 1 << 31;

    #[inline(always)]
    pub(crate) fn to(port: u32) -> Self {
        Self(port)
    }

    #[inline(always)]
    pub(crate) fn port(self) -> u32 {
        self.0
    }

    /// Whether other events of the slot lead to the same port.
    #[inline(always)]
    pub(crate) fn is_shared(self) -> bool {
        self.0 >= Self::MANY
    }

    /// Without the mark that there are several.
    pub(crate) fn plain(self) -> Self {
        Self(self.0 & !Self::MANY)
    }
}

/// Where the events of a slot lead.
pub(crate) struct Ahead {
    pub(crate) leads: Vec<Lead>,
    /// The number of this slot's first event, counted over all slots; ports note the latest one.
    first: u32,
    /// The hosts among these.
    pub(crate) visited: Vec<u32>,
}

/// Where an event leads, and the next event that leads there; [`NONE`] if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lead {
    pub(crate) to: Onward,
    pub(crate) next: u32,
}

impl Lead {
    #[inline(always)]
    pub(crate) fn new(to: Onward) -> Self {
        Self { to, next: NONE }
    }
}

const NONE: u32 = u32::MAX;

impl Default for Ahead {
    fn default() -> Self {
        Self { leads: Vec::new(), first: 1, visited: Vec::new() }
    }
}

impl Ahead {
    /// Begin with a slot of `events` events.
    pub(crate) fn clear(&mut self, events: usize, ports: &mut [Port]) {
        let next = self.first.checked_add(self.leads.len() as u32);
        match next.filter(|next| next.checked_add(events as u32).is_some()) {
            Some(next) => self.first = next,
            None => {
                ports.iter_mut().for_each(|port| port.latest = 0);
                self.first = 1;
            }
        }
        self.leads.clear();
        self.visited.clear();
    }

    /// Find the events that lead to the same port.
    pub(crate) fn link(&mut self, ports: &mut [Port]) {
        for n in 0..self.leads.len() {
            let to = self.leads[n].to;
            let Some(port) = ports.get_mut(to.0 as usize) else { continue };
            let before = std::mem::replace(&mut port.latest, self.first + n as u32);
            if before >= self.first {
                let before = &mut self.leads[(before - self.first) as usize];
                before.next = n as u32;
                before.to.0 |= Onward::MANY;
                self.leads[n].to.0 |= Onward::MANY;
            }
        }
    }
}

/// Slots of up to so many events are sorted by counting.
const COUNTED_MAX: usize = 64;
/// Keys that are compared at a time.
const GROUP: usize = 8;

/// Scratch of sorting: keys of either length.
#[derive(Default)]
pub(crate) struct Sorter {
    keys: Vec<i32>,
    long_keys: Vec<(Key, u32)>,
}

impl Sorter {
    /// The places of events in order. Not always of a handful: hosts that start together stay in
    /// step, and their events tie.
    #[inline(always)]
    pub(crate) fn sort(&mut self, due: &[Event], events: &EventQueue, sorted: &mut Vec<u32>) {
        sorted.clear();
        if due.len() <= COUNTED_MAX && events.has_short_keys() {
            let keys = &mut self.keys;
            keys.clear();
            keys.extend(due.iter().map(|&event| events.short_key(event)));
            sort_by_counting(keys, sorted);
        } else {
            let keys = &mut self.long_keys;
            keys.clear();
            keys.extend(due.iter().zip(0..).map(|(&event, n)| (events.key(event), n)));
            keys.sort_unstable();
            sorted.extend(keys.iter().map(|&(_, n)| n));
        }
    }
}

/// The places of `keys`, none below zero, in ascending order. Comparing all with all takes no branch that could be
/// mispredicted, and processors do a group at a time.
#[inline(always)]
fn sort_by_counting(keys: &mut Vec<i32>, sorted: &mut Vec<u32>) {
    let count = keys.len();
    sorted.resize(count, NONE);
    // What fills the last group is later than none.
    keys.resize(count.next_multiple_of(GROUP), -1);
    for (n, &key) in (0..).zip(&keys[..count]) {
        let mut place = count - 1 - later(keys, key);
        // A timer of a host that has been moved away and back.
        while sorted[place] != NONE {
            place -= 1;
        }
        sorted[place] = n;
    }
}

/// How many of `keys`, whole groups of them, are later than `key`.
#[inline(always)]
fn later(keys: &[i32], key: i32) -> usize {
    let mut later = [0; GROUP];
    for group in keys.as_chunks::<GROUP>().0 {
        for (count, &other) in later.iter_mut().zip(group) {
            *count += i32::from(other > key);
        }
    }
    later.iter().sum::<i32>() as usize
}

#[cfg(test)]
mod tests {
    use units::{Dur, Rate};

    use super::*;
    use crate::port::FarEnd;
    use crate::{LinkSpec, Topology};

    /// Events of one port are linked, across the end of the numbers too.
    #[test]
    fn events_of_one_port_are_found() {
        let spec = LinkSpec { rate: Rate(10_000_000_000), delay: Dur::from_us(1) };
        let topology = Topology::dumbbell(4, 4, spec, spec).unwrap();
        let links = topology.links()[..8].iter().zip(0..);
        let port = |(link, n)| Port::new((n, link), FarEnd::Host(n), Dur(1), None, false);
        let mut ports: Vec<Port> = links.map(port).collect();
        let mut ahead = Ahead { first: u32::MAX - 40, ..Ahead::default() };
        for _ in 0..20 {
            ahead.clear(6, &mut ports);
            let to = [5, 2, 5, Onward::UNKNOWN.0, 5, 7].map(Onward);
            ahead.leads.extend(to.map(|to| Lead::new(to)));
            ahead.link(&mut ports);
            let many: Vec<bool> = ahead.leads.iter().map(|to| to.to.is_shared()).collect();
            assert_eq!(many, [true, false, true, false, true, false]);
            let next: Vec<u32> = ahead.leads.iter().map(|lead| lead.next).collect();
            assert_eq!(next, [2, NONE, 4, NONE, NONE, NONE]);
            assert_eq!(ahead.leads[3].to, Onward::UNKNOWN);
        }
    }

    #[test]
    fn counting_sorts() {
        let draw = endpoint::Draw::new(1, endpoint::Purpose::new("test"), 0);
        let mut n = 0;
        for count in 0..200 {
            let mut key = || {
                n += 1;
                // Some are equal.
                draw.below(endpoint::Purpose::new("key"), n, 300) as i32
            };
            let keys: Vec<i32> = (0..count).map(|_| key()).collect();
            let mut sorted = Vec::new();
            sort_by_counting(&mut keys.clone(), &mut sorted);
            assert!(sorted.is_sorted_by_key(|&n| keys[n as usize]), "{keys:?}");
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..count), "each once");
        }
    }
}
