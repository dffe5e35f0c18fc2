//! The loop: events are handled a slot of the wheel at a time.
//!
//! A packet-hop touches some ten cache lines, most of which have not been near the processor for
//! microseconds of simulated time. A slot's events are known when it is opened, so all that they will touch is asked for
//! at once: first packets and the ports they come over; then, with those at hand, the ports and hosts they
//! go to, which are noted for when the event comes; then endpoints.
//!
//! A slot is shorter than the shortest packet takes to be sent. So what happens at one port or host within it has no
//! effect on another one, and only events of one have to be handled in order. Few slots hold two of one: most
//! are handled as they come. That holds until a switch turns a header back, which goes from port to port in
//! no time, or where more is shared than links (memory of a switch, an observer of packets, a link that fails):
//! then all of a slot is sorted. Results are the same.

use endpoint::Packet;
use queues::HEADER_MAX;

use crate::events::{Event, Key};
use crate::host::Host;
use crate::part::Part;
use crate::port::{FarEnd, Port};
use crate::route::Forwarding;
use crate::slab;
use units::Time;

/// Where an event leads: to a port at which it queues, or to a host, by the number of its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Onward(u32);

impl Onward {
    /// Nobody has looked.
    pub(crate) const UNKNOWN: Self = Self(Self::MANY - 1);
    /// The event has been handled.
    const DONE: Self = Self(u32::MAX);
    /// There are several of the same; links are fewer than this.
    const MANY: u32 = 1 << 31;

    pub(crate) fn port(self) -> u32 {
        self.0
    }

    /// Without the mark that there are several.
    fn plain(self) -> Self {
        Self(self.0 & !Self::MANY)
    }
}

/// The open slot.
#[derive(Default)]
pub(crate) struct Slot {
    /// Whether only the events of one port or host have to be handled in order.
    by_entity: bool,
    /// Whether a packet's next port can be told before it arrives.
    settled: bool,
    /// Then, no packet is shorter than this, and no header longer.
    shortest: u16,
    longest_header: u16,
    due: Vec<Event>,
    ahead: Ahead,
    /// Scratch: the places of events in order, and their keys.
    sorted: Vec<u32>,
    keys: Vec<i32>,
    long_keys: Vec<(Key, u32)>,
}

/// Where the events of a slot lead.
#[derive(Default)]
struct Ahead {
    leads: Vec<Lead>,
    /// The number of this slot's first event, counted over all slots; ports note the latest one.
    first: u32,
    /// The hosts among these.
    visited: Vec<u32>,
}

/// Where an event leads, and the next event that leads there; [`NONE`] if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lead {
    to: Onward,
    next: u32,
}

const NONE: u32 = u32::MAX;

impl Ahead {
    /// Begin with a slot of so many events.
    fn clear(&mut self, events: usize, ports: &mut [Port]) {
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
    fn link(&mut self, ports: &mut [Port]) {
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

impl Slot {
    /// `shortest`: if only events of one port or host have to be handled in order, the
    /// length that no packet falls below. `bounces`: whether queues send headers back. `settled`: whether the port to
    /// which a packet goes on follows from the packet alone.
    pub(crate) fn new(shortest: Option<u16>, bounces: bool, settled: bool) -> Self {
        Self {
            by_entity: shortest.is_some(),
            settled,
            shortest: shortest.unwrap_or(0),
            longest_header: if bounces { HEADER_MAX } else { u16::MAX },
            ahead: Ahead { first: 1, ..Ahead::default() },
            ..Self::default()
        }
    }

    #[cfg(test)]
    pub(crate) fn is_by_entity(&self) -> bool {
        self.by_entity
    }

    /// A packet appears: slots were not made for one that is shorter than was said, or a header longer than
    /// queues allow for.
    #[inline(always)]
    pub(crate) fn take_note(&mut self, pkt: &Packet) {
        if pkt.wire_len < self.shortest
            || pkt.wire_len > self.longest_header && !pkt.carries_payload()
        {
            self.by_entity = false;
        }
    }
}

impl<const WATCHED: bool> Part<WATCHED> {
    /// Handle every event that comes strictly before `until`.
    #[inline(never)]
    pub(crate) fn run(&mut self, until: Time) {
        let mut due = std::mem::take(&mut self.slot.due);
        while self.violation.is_none() && self.events.open(until, &mut due) {
            let mut ahead = std::mem::take(&mut self.slot.ahead);
            ahead.clear(due.len(), &mut self.ports);
            self.look_ahead(&due, &mut ahead);
            self.handled += due.len() as u64;
            if self.slot.by_entity && self.events.crowded == 0 {
                ahead.link(&mut self.ports);
                self.handle_by_entity(&due, &mut ahead);
            } else {
                self.handle_in_order(&due, &ahead.leads);
            }
            self.slot.ahead = ahead;
            due.clear();
        }
        self.slot.due = due;
        if self.violation.is_none() {
            self.cross(until);
            self.pass(until);
        }
    }

    /// Nothing is left to happen before `until`.
    pub(crate) fn pass(&mut self, until: Time) {
        self.events.close(until);
        self.now = self.now.max(until);
    }

    /// Handle events in any order, but those of one port or host.
    #[inline(never)]
    fn handle_by_entity(&mut self, due: &[Event], ahead: &mut Ahead) {
        for (n, &event) in due.iter().enumerate() {
            let to = ahead.leads[n].to;
            if to.0 >= Onward::MANY {
                self.handle_several(due, ahead, n as u32);
                continue;
            }
            self.happen(event, to);
            if self.events.fresh().is_some() {
                self.catch_up(to, (Time::NEVER, 0));
            }
        }
    }

    /// Handle event `n` and those that follow at the same port or host, unless that has been done.
    #[inline(never)]
    fn handle_several(&mut self, due: &[Event], ahead: &mut Ahead, mut n: u32) {
        let to = ahead.leads[n as usize].to;
        if to == Onward::DONE {
            return;
        }
        let to = to.plain();
        let mut sorted = std::mem::take(&mut self.slot.sorted);
        sorted.clear();
        while let Some(lead) = ahead.leads.get_mut(n as usize) {
            lead.to = Onward::DONE;
            sorted.push(n);
            n = lead.next;
        }
        sorted.sort_unstable_by_key(|&n| self.events.key(due[n as usize]));
        for &n in &sorted {
            let event = due[n as usize];
            if self.events.fresh().is_some() {
                self.catch_up(to, self.events.key(event));
            }
            self.happen(event, to);
        }
        self.slot.sorted = sorted;
        self.catch_up(to, (Time::NEVER, 0));
    }

    /// Handle the events that have come up within the slot at the port or host that is being dealt with, as far as
    /// they come before `until`.
    #[inline(never)]
    fn catch_up(&mut self, to: Onward, until: (Time, u32)) {
        // A host that goes round in circles has ever more to come.
        while self.violation.is_none() && self.events.fresh().is_some_and(|key| key < until) {
            let Some(event) = self.events.pop_fresh() else { return };
            if event.about().is_arrival() || event.about().link() != to.0 {
                self.violate(None, format!("an effect elsewhere too soon, at {}", event.at));
            }
            self.handled += 1;
            self.happen(event, to);
        }
    }

    /// Handle events in order, those too that come up meanwhile.
    #[inline(never)]
    fn handle_in_order(&mut self, due: &[Event], leads: &[Lead]) {
        let mut sorted = std::mem::take(&mut self.slot.sorted);
        self.sort(due, &mut sorted);
        for &n in &sorted {
            let event = due[n as usize];
            while self.events.fresh().is_some_and(|key| key < self.events.key(event)) {
                self.handle_fresh();
            }
            if self.violation.is_some() {
                break;
            }
            self.note_time(event);
            self.happen(event, leads[n as usize].to);
        }
        while self.violation.is_none() && self.events.fresh().is_some() {
            self.handle_fresh();
        }
        self.slot.sorted = sorted;
    }

    /// The places of events in order. Not always of a handful: hosts that start together stay in step, and their events
    /// tie.
    #[inline(always)]
    fn sort(&mut self, due: &[Event], sorted: &mut Vec<u32>) {
        sorted.clear();
        let events = &self.events;
        if due.len() <= COUNTED_MAX && events.has_short_keys() {
            let keys = &mut self.slot.keys;
            keys.clear();
            keys.extend(due.iter().map(|&event| events.short_key(event)));
            sort_by_counting(keys, sorted);
        } else {
            let keys = &mut self.slot.long_keys;
            keys.clear();
            keys.extend(due.iter().zip(0..).map(|(&event, n)| (events.key(event), n)));
            keys.sort_unstable();
            sorted.extend(keys.iter().map(|&(_, n)| n));
        }
    }

    #[inline(never)]
    fn handle_fresh(&mut self) {
        if let Some(event) = self.events.pop_fresh() {
            self.handled += 1;
            self.note_time(event);
            self.happen(event, Onward::UNKNOWN);
        }
    }

    #[inline(always)]
    fn note_time(&mut self, event: Event) {
        if event.at < self.now {
            self.violate(None, format!("time goes back to {}", event.at));
        }
    }

    /// What ports to other partitions have done before `until`: nobody here asks for it, and the others must
    /// know of it before they go on.
    fn cross(&mut self, until: Time) {
        let Self { ports, events, crossing_at, .. } = self;
        let last = Time(until.0.saturating_sub(1));
        *crossing_at = Time::NEVER;
        let mut crossing = std::mem::take(&mut events.crossing);
        crossing.retain(|&me| {
            let port = &mut ports[me as usize];
            port.replay(me, last, events);
            if port.waits() {
                *crossing_at = port.free_at.min(*crossing_at);
            }
            port.crossing = port.busy();
            port.crossing
        });
        events.crossing = crossing;
    }

    /// Have at hand what the events of the slot just opened will touch, and note where they lead.
    #[inline(never)]
    fn look_ahead(&self, due: &[Event], ahead: &mut Ahead) {
        for event in due {
            slab::prefetch_lines(&self.ports, event.about().link(), 0..4);
            self.slab.prefetch(event.about().packet);
        }
        for &event in due {
            let to = self.find_onward(event);
            if let Some(host) = self.hosts.get(to.0 as usize) {
                slab::prefetch::<_, 5>(host);
                slab::prefetch_lines(&self.ports, to.0, 0..2);
                self.slab.prefetch_header(event.about().packet);
                ahead.visited.push(to.0);
            } else if to != Onward::UNKNOWN {
                slab::prefetch_lines(&self.ports, to.0, 0..4);
            }
            ahead.leads.push(Lead { to, next: NONE });
        }
        let hosts = || ahead.visited.iter().filter_map(|&host| self.hosts.get(host as usize));
        hosts().for_each(Host::prefetch_endpoint);
        if self.far_hosts {
            hosts().for_each(|host| host.prefetch_behind(0));
            hosts().for_each(|host| host.prefetch_behind(1));
        }
    }

    /// Where an event leads.
    #[inline(always)]
    fn find_onward(&self, event: Event) -> Onward {
        let about = event.about();
        if !about.is_arrival() {
            return Onward(about.link());
        }
        let (port, packet) = (&self.ports[about.link() as usize], self.slab.get(about.packet));
        match (self.world.forwarding, packet) {
            (Forwarding::Digits, Some(pkt)) => Onward(port.onward(pkt)),
            (forwarding, Some(pkt)) => self.find_choice(port, forwarding, pkt),
            (_, None) => Onward::UNKNOWN,
        }
    }

    /// The same where switches choose.
    #[inline(never)]
    fn find_choice(&self, port: &Port, forwarding: Forwarding, pkt: &Packet) -> Onward {
        match (port.end(), forwarding) {
            (FarEnd::Host(host), _) => Onward(host),
            (FarEnd::Switch(at), Forwarding::Choice(up)) if self.slot.settled => {
                Onward(self.port_chosen(at, pkt, up, &mut 0))
            }
            _ => Onward::UNKNOWN,
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
    use std::sync::Arc;

    use endpoint::{App, AppCx, Cx, Endpoint, Framing, Msg, Submit, Tx, TxPort};
    use queues::{Capacity, DropTailSpec, NdpSpec, QueueSpec};
    use units::{Dur, Rate, TimerId};

    use super::*;
    use crate::{
        Carriage, Config, Departures, Events, Fault, FaultAction, LinkSpec, PfcSpec, Routing, Sim,
        Topology,
    };

    /// A host that does nothing.
    struct Silent;

    impl App for Silent {
        fn on_start(&mut self, _: &mut AppCx<'_>) {}
    }

    impl Endpoint for Silent {
        fn on_submit(&mut self, _: &mut Cx<'_>, _: &Msg) -> Submit {
            Submit::Full
        }
        fn on_packet(&mut self, _: &mut Cx<'_>, _: &Packet) {}
        fn on_timer(&mut self, _: &mut Cx<'_>, _: TimerId) {}
        fn poll_tx(&mut self, _: &mut Cx<'_>, _: TxPort, _: &mut Packet) -> Tx {
            Tx::Idle
        }
    }

    /// Signals this soon.
    struct Signals(Dur);

    impl App for Signals {
        fn on_start(&mut self, _: &mut AppCx<'_>) {}
        fn signal_delay(&self) -> Option<Dur> {
            Some(self.0)
        }
    }

    fn ndp(headers: Capacity) -> QueueSpec {
        QueueSpec::Ndp(NdpSpec {
            data_capacity: Capacity::Packets(8),
            header_capacity: headers,
            header_weight: 10,
            data_weight: 1,
            trim_arriving: 0.5,
            trim_to: 64,
            bounce: true,
        })
    }

    fn config() -> Config {
        Config {
            seed: 1,
            carriages: vec![Carriage {
                framing: Framing { payload: 1436, overhead: 64 },
                spray: true,
            }],
            routing: Routing::Source,
            queue: ndp(Capacity::Bytes(72_000)),
            queues_at: Vec::new(),
            buffer: None,
            pfc: PfcSpec::default(),
            telemetry: false,
            faults: Vec::new(),
            reroute_after: Dur::from_us(20),
            events: Events::Wheel,
            departures: Departures::Lazy,
            threads: 1,
            grid: Dur::from_us(10),
            limit: Time(0),
            open_limit: u64::MAX,
            window: (Time::ZERO, Time::NEVER),
            sample_every: None,
            rtts: false,
            check: false,
        }
    }

    fn by_entity(config: Config, delay: Dur, app: fn() -> Box<dyn App>) -> bool {
        let link = LinkSpec { rate: Rate(10_000_000_000), delay };
        let topology = Arc::new(Topology::fat_tree(12, 1, link).unwrap());
        let endpoints = (0..432).map(|_| Box::new(Silent) as Box<dyn Endpoint>).collect();
        let apps = (0..432).map(|_| app()).collect();
        Sim::new(topology, config, endpoints, apps, ()).unwrap().is_by_entity()
    }

    /// In which runs slots need not be sorted: without this, a rule too strict would go unnoticed.
    #[test]
    fn slots_are_sorted_only_where_more_than_links_is_shared() {
        let us = Dur::from_us(1);
        let silent: fn() -> Box<dyn App> = || Box::new(Silent);
        let plain = |config| by_entity(config, us, silent);
        assert!(plain(config()));
        assert!(plain(Config { routing: Routing::FlowHash, ..config() }));
        let capacity = Capacity::Packets(10);
        let drop_tail = QueueSpec::DropTail(DropTailSpec { capacity, ecn_threshold: None });
        assert!(plain(Config { queue: drop_tail, ..config() }));
        assert!(by_entity(config(), us, || Box::new(Signals(Dur::from_us(1)))));
        // And where not.
        assert!(!plain(Config { routing: Routing::PacketRandom, ..config() }));
        assert!(!plain(Config { queue: ndp(Capacity::Packets(8)), ..config() }));
        assert!(!plain(Config { departures: Departures::Eager, ..config() }));
        assert!(!plain(Config { events: Events::Heap, ..config() }));
        assert!(!plain(Config { telemetry: true, ..config() }));
        let fault = Fault::new(Time(1), 3, FaultAction::Down);
        assert!(!plain(Config { faults: vec![fault], ..config() }));
        assert!(!by_entity(config(), Dur(0), silent), "a link without delay");
        assert!(!by_entity(config(), us, || Box::new(Signals(Dur(0)))));
    }

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
            ahead.leads.extend(to.map(|to| Lead { to, next: NONE }));
            ahead.link(&mut ports);
            let many: Vec<bool> = ahead.leads.iter().map(|to| to.to.0 >= Onward::MANY).collect();
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
