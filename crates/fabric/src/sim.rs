//! The engine: pops events and moves packets.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use endpoint::{
    App, AppEffect, AppEvent, Draw, Drop, Effects, Endpoint, Flags, Observer, Packet, PacketEvent,
    Purpose,
};
use queues::{Capacity, Desc, Fate, Kind, Queue, QueueSpec};
use units::{Dur, HostId, MsgKey, Rate, Time};

use crate::config::{Config, ConfigError, Departures};
use crate::digest;
use crate::events::{self, EventQueue};
use crate::faults::Script;
use crate::host::Host;
use crate::messages::Messages;
use crate::outcome::{
    Amount, Conservation, Counters, End, LinkStats, Outcome, Progress, Violation,
};
use crate::port::{FarEnd, Port};
use crate::route::{self, Belief, Known};
use crate::sample::Sampler;
use crate::slab::{self, Slab};
use crate::topology::{Link, Node, Topology};

/// A fabric with its hosts, ready to run once.
pub struct Sim<O> {
    pub(crate) topology: Topology,
    pub(crate) config: Config,
    pub(crate) observer: O,
    pub(crate) now: Time,
    pub(crate) events: EventQueue,
    /// By directed link. A host's link has the host's number.
    pub(crate) ports: Vec<Port>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) slab: Slab,
    pub(crate) messages: Messages,
    pub(crate) belief: Belief,
    /// Per switch: its draws, and how many it has made.
    sprayed: Vec<(Draw, u64)>,
    script: Script,
    sampler: Sampler,
    /// The first rule broken; the run stops.
    pub(crate) violation: Option<Violation>,
    /// An allocated packet that no endpoint wanted yet.
    pub(crate) spare: Option<u32>,
    pub(crate) fx: Effects,
    pub(crate) app_fx: Vec<AppEffect>,
    pub(crate) app_events: VecDeque<AppEvent>,
    /// Whether an application has called upon the endpoint since this was cleared.
    pub(crate) submitted: bool,
    /// Headers that a queue has turned back, until they are forwarded.
    returned: Vec<u32>,
    handled: u64,
}

const SWITCH: Purpose = Purpose::new("switch");
const PORT: Purpose = Purpose::new("port");
const COIN: Purpose = Purpose::new("queue: coin");

impl<O: Observer> Sim<O> {
    /// Join endpoints and applications, one each per host, by a fabric.
    ///
    /// # Errors
    /// If there is not one endpoint and application per host, a fault or queue names a link that is
    /// not there, or failed links leave a pair of hosts without a path.
    pub fn new(
        topology: Topology,
        config: Config,
        endpoints: Vec<Box<dyn Endpoint>>,
        apps: Vec<Box<dyn App>>,
        observer: O,
    ) -> Result<Self, ConfigError> {
        let hosts = topology.hosts();
        let links = topology.links().len() as u32;
        check(&topology, &config, endpoints.len(), apps.len())?;
        let belief = Belief::new(&topology);
        let known = Known { topology: &topology, belief: &belief };
        if let Some((a, b)) = known.cut_off() {
            return Err(ConfigError(format!("the failed links leave no path from {a} to {b}")));
        }
        let ports = ports(&topology, &config);
        let horizon = horizon(&topology);
        let mut host_states = Vec::with_capacity(hosts as usize);
        for (n, (endpoint, app)) in endpoints.into_iter().zip(apps).enumerate() {
            let rate = topology.links()[n].rate;
            host_states.push(Host::new(HostId(n as u32), endpoint, app, rate, &config));
        }
        Ok(Self {
            now: Time::ZERO,
            events: EventQueue::new(config.events, links, hosts, horizon, config.seed),
            ports,
            hosts: host_states,
            slab: Slab::default(),
            messages: Messages::new(config.window),
            belief,
            sprayed: (0..topology.switches.len() as u64)
                .map(|at| (Draw::new(config.seed, SWITCH, at), 0))
                .collect(),
            script: Script::new(&config.faults, config.reroute_after),
            sampler: Sampler::new(config.sample_every, config.window),
            violation: None,
            spare: None,
            fx: Effects::new(),
            app_fx: Vec::new(),
            app_events: VecDeque::new(),
            submitted: false,
            returned: Vec::new(),
            handled: 0,
            topology,
            config,
            observer,
        })
    }

    /// Run to the end: until everything the run waits for is done, the limit, or `progress` (called
    /// at every grid step) breaks.
    ///
    /// With a bounded measurement window, the run goes on until the window is over and every
    /// message submitted in it is delivered or has failed. Without one, until no application has
    /// more to come and every message is done; one of unbounded length never is.
    ///
    /// # Errors
    /// If a transport breaks its contract or the fabric loses count of a packet.
    pub fn run(
        mut self,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<(Outcome, O), Violation> {
        for h in 0..self.topology.hosts() {
            self.start_app(h);
        }
        self.schedule_script();
        self.events.schedule(events::Node::Sample, self.sampler.next_at());
        let end = self.run_grid(progress);
        if self.violation.is_none() {
            self.check_conservation();
            self.close_messages();
        }
        match self.violation.take() {
            Some(violation) => Err(violation),
            None => Ok(self.finish(end)),
        }
    }

    /// Handle events from grid step to grid step.
    fn run_grid(&mut self, progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> End {
        let grid = self.config.grid.0.max(1);
        let mut step = Time(grid);
        loop {
            let stop = step.min(self.config.limit);
            while let Some((at, node)) = self.events.pop(stop) {
                if at < self.now {
                    self.violate(None, format!("time goes back to {at}"));
                }
                self.now = at;
                self.handled += 1;
                self.prefetch();
                self.handle(node);
                if self.violation.is_some() {
                    return End::Stopped;
                }
                if self.messages.open > self.config.open_limit {
                    return End::Backlog;
                }
            }
            self.now = stop;
            if self.config.check {
                self.check_conservation();
            }
            let messages = &self.messages;
            let report = Progress {
                now: stop,
                events: self.handled,
                submitted: messages.submitted,
                delivered: messages.delivered,
            };
            if progress(&report).is_break() || self.violation.is_some() {
                return End::Stopped;
            }
            if self.done() {
                return End::Complete;
            }
            if stop == self.config.limit {
                return End::Limit;
            }
            let Some(next) = self.next_step(Dur(grid)) else { return End::Idle };
            step = next.max(step + Dur(grid));
        }
    }

    /// Have at hand what the next arrivals will touch, one dependent load after the other: the port,
    /// what is on its wire, the packet, the port that it goes to.
    #[inline]
    fn prefetch(&self) {
        let port = |ahead| self.events.arrival_ahead(ahead).map(|link| &self.ports[link as usize]);
        if let Some(port) = port(8) {
            slab::prefetch(port);
        }
        if let Some(first) = port(6).and_then(Port::first_in_flight) {
            slab::prefetch(first);
        }
        if let Some(&(_, handle)) = port(4).and_then(Port::first_in_flight) {
            slab::prefetch(&self.slab[handle]);
        }
        if let Some(port) = port(2)
            && let Some(&(_, handle)) = port.first_in_flight()
        {
            let pkt = &self.slab[handle];
            match port.end {
                FarEnd::Host(host) => slab::prefetch(&self.hosts[host as usize]),
                FarEnd::Switch(at) => {
                    let out = self.topology.likely_port(at, pkt.dst, pkt.path);
                    slab::prefetch(&self.ports[out as usize]);
                }
            }
        }
    }

    /// The first grid step after the next event, or the one that ends the window if that is sooner.
    /// `None` if nothing is left to happen.
    fn next_step(&self, grid: Dur) -> Option<Time> {
        let step = |steps: u64| Time(steps.saturating_mul(grid.0));
        let event = self.events.next_at().map(|at| step((at.0 / grid.0).saturating_add(1)));
        let end = self.config.window.1;
        if end == Time::NEVER || self.now >= end {
            return event;
        }
        let end = step(end.0.div_ceil(grid.0));
        match event {
            Some(event) => Some(event.min(end)),
            None => (self.messages.awaited == 0).then_some(end),
        }
    }

    fn done(&self) -> bool {
        if self.config.window.1 != Time::NEVER {
            return self.now >= self.config.window.1 && self.messages.awaited == 0;
        }
        let Messages { open: 0, unbounded: 0, .. } = self.messages else { return false };
        !self.hosts.iter().any(|host| host.app.more_to_come())
    }

    fn handle(&mut self, node: events::Node) {
        match node {
            events::Node::Arrival(link) => self.arrival(link),
            events::Node::Departure(link) if (link as usize) < self.hosts.len() => {
                self.nic_departure(link);
            }
            events::Node::Departure(link) => self.port_departure(link),
            events::Node::Timer(host) => self.host_timer(host),
            events::Node::App(host) => self.host_app(host),
            events::Node::Fault => self.fault(),
            events::Node::Sample => self.sample(),
        }
    }

    /// The first packet on `link` has arrived at its far end.
    fn arrival(&mut self, link: u32) {
        let port = &mut self.ports[link as usize];
        let Some(handle) = port.arrive() else { return };
        if self.config.departures == Departures::Lazy && port.queue.is_some() {
            port.replay(self.now);
        }
        if let Some(due) = port.next_arrival() {
            self.events.schedule_fixed(events::Node::Arrival(link), due);
        }
        port.stats.packets += 1;
        let pkt = &self.slab[handle];
        if !port.up {
            self.lose(link, handle);
            return;
        }
        port.chain = digest::chain(port.chain, self.now.0, pkt.key, digest::Outcome::Arrived);
        if O::PACKETS {
            self.observer.packet(self.now, link, PacketEvent::Arrived, pkt);
        }
        match port.end {
            FarEnd::Host(host) => self.deliver(host, handle),
            FarEnd::Switch(at) => self.forward(at, handle),
        }
    }

    /// A packet is at switch `at`: queue it at an output port.
    fn forward(&mut self, at: u32, handle: u32) {
        let out = self.output(at, handle);
        self.enqueue(out, handle);
        while let Some(handle) = self.returned.pop() {
            let out = self.output(at, handle);
            self.enqueue(out, handle);
        }
    }

    fn output(&mut self, at: u32, handle: u32) -> u32 {
        let pkt = &self.slab[handle];
        if let Some(port) = self.topology.down_port(at, pkt.dst) {
            return port;
        }
        let known = Known { topology: &self.topology, belief: &self.belief };
        let (draw, draws) = &mut self.sprayed[at as usize];
        route::choose_up(&known, self.config.routing, at, pkt, *draw, draws)
    }

    fn enqueue(&mut self, link: u32, handle: u32) {
        let (now, lazy) = (self.now, self.config.departures == Departures::Lazy);
        let port = &mut self.ports[link as usize];
        if lazy {
            port.replay(now);
        }
        let Some(queue) = port.queue.as_mut() else { return };
        let packet = describe(handle, &self.slab[handle]);
        if !queue.offer(packet) {
            self.refuse(link, packet);
        }
        let port = &mut self.ports[link as usize];
        port.stats.max_queue_bytes = port.stats.max_queue_bytes.max(port.queued_bytes());
        if !port.busy() {
            let arrival = port.kick(now);
            self.started(link, arrival);
        }
    }

    /// `packet` does not simply join the queue of `link`.
    #[cold]
    fn refuse(&mut self, link: u32, packet: Desc) {
        let port = &mut self.ports[link as usize];
        let Some(queue) = port.queue.as_mut() else { return };
        let mut desk = Desk {
            slab: &mut self.slab,
            observer: &mut self.observer,
            chain: &mut port.chain,
            stats: &mut port.stats,
            returned: &mut self.returned,
            now: self.now,
            link,
        };
        let (seed, coins) = (self.config.seed, &mut port.coins);
        let coin = || {
            *coins += 1;
            Draw::new(seed, PORT, u64::from(link)).bits(COIN, *coins)
        };
        queue.enqueue(packet, coin, &mut |fate, packet| desk.apply(fate, packet));
    }

    /// A transmission has begun on `link`: schedule what follows from it.
    fn started(&mut self, link: u32, arrival: Option<Time>) {
        let port = &self.ports[link as usize];
        if self.config.departures == Departures::Eager && port.busy() {
            self.events.schedule_fixed(events::Node::Departure(link), port.free_at);
        }
        if let Some(due) = arrival {
            self.events.schedule_fixed(events::Node::Arrival(link), due);
        }
    }

    /// Eager path only: a switch port has finished a packet.
    fn port_departure(&mut self, link: u32) {
        let arrival = self.ports[link as usize].depart();
        self.started(link, arrival);
    }

    /// A packet has come to the end of a dead link.
    fn lose(&mut self, link: u32, handle: u32) {
        let pkt = &self.slab[handle];
        let port = &mut self.ports[link as usize];
        port.stats.dropped += 1;
        port.stats.dropped_bytes += u64::from(pkt.wire_len);
        port.chain = digest::chain(port.chain, self.now.0, pkt.key, digest::Outcome::Dropped);
        if O::PACKETS {
            self.observer.packet(self.now, link, PacketEvent::Dropped(Drop::Dead), pkt);
        }
        self.slab.free(handle);
    }

    fn schedule_script(&mut self) {
        let next = self.script.next_at().unwrap_or(Time::NEVER);
        self.events.schedule(events::Node::Fault, next);
    }

    fn fault(&mut self) {
        while let Some(step) = self.script.take(self.now) {
            if step.news {
                self.belief.set(step.link, step.up);
            } else {
                self.ports[step.link as usize].up = step.up;
            }
        }
        self.schedule_script();
    }

    fn sample(&mut self) {
        let lazy = self.config.departures == Departures::Lazy;
        for (link, port) in self.ports.iter_mut().enumerate() {
            if lazy && port.queue.is_some() {
                port.replay(self.now);
            }
            if O::PACKETS && port.queue.is_some() {
                self.observer.queue(self.now, link as u32, port.queued_bytes());
            }
        }
        self.sampler.take(self.now, &self.topology, &self.ports, &self.hosts, &self.messages);
        self.events.schedule(events::Node::Sample, self.sampler.next_at());
    }

    /// Remember the first broken rule.
    pub(crate) fn violate(&mut self, key: Option<MsgKey>, what: String) {
        let at = self.now;
        self.violation.get_or_insert(Violation { at, key, what });
    }

    pub(crate) fn require(&mut self, key: Option<MsgKey>, result: Result<(), String>) {
        if let Err(what) = result {
            self.violate(key, what);
        }
    }

    fn conservation(&self) -> Conservation {
        let sum = |amounts: &mut dyn Iterator<Item = Amount>| {
            amounts.fold(Amount::default(), |all, one| Amount {
                packets: all.packets + one.packets,
                bytes: all.bytes + one.bytes,
            })
        };
        let of_hosts = |of: fn(&Host) -> Amount| sum(&mut self.hosts.iter().map(of));
        let of_ports = |of: fn(&LinkStats) -> (u64, u64)| {
            let amount = |(packets, bytes)| Amount { packets, bytes };
            sum(&mut self.ports.iter().map(|port| amount(of(&port.stats))))
        };
        let mut in_flight = Amount::default();
        for handle in self.ports.iter().flat_map(Port::handles) {
            in_flight.add(u64::from(self.slab[handle].wire_len));
        }
        Conservation {
            sent: of_hosts(|host| host.sent),
            received: of_hosts(|host| host.received),
            dropped: of_ports(|stats| (stats.dropped, stats.dropped_bytes)),
            trimmed: of_ports(|stats| (stats.trimmed, stats.trimmed_bytes)),
            in_flight,
        }
    }

    fn check_conservation(&mut self) {
        let count = self.conservation();
        if !count.holds() {
            self.violate(None, format!("packets or bytes are not conserved: {count:?}"));
        }
    }

    /// Report what is still open, and hold it against what hosts have received.
    fn close_messages(&mut self) {
        let hosts = &mut self.hosts;
        match self.messages.drain(|host, key| hosts[host.index()].reassembly.take(key)) {
            Ok(records) => records.iter().for_each(|record| self.observer.message(record)),
            Err((key, what)) => self.violate(Some(key), what),
        }
        let leftover = self.hosts.iter().find_map(|host| host.reassembly.leftover());
        if let Some(key) = leftover {
            self.violate(Some(key), "bytes placed after its end, or at another host".into());
        }
    }

    fn finish(mut self, end: End) -> (Outcome, O) {
        if self.config.departures == Departures::Lazy {
            // What happens at `now` itself is beyond the end, departures too.
            let last = Time(self.now.0.saturating_sub(1));
            for port in self.ports.iter_mut().filter(|port| port.queue.is_some()) {
                port.replay(last);
            }
        }
        let ports = self.ports.iter().map(|port| port.chain);
        let hosts = self.hosts.iter().map(|host| host.chain);
        let outcome = Outcome {
            digest: digest::combine(ports.chain(hosts)),
            now: self.now,
            events: self.handled,
            packet_hops: self.ports.iter().map(|port| port.stats.packets).sum(),
            counters: self.counters(),
            conservation: self.conservation(),
            links: self.ports.iter().map(|port| port.stats).collect(),
            queue_bytes_p99: self.sampler.queue_p99(),
            samples: self.sampler.samples,
            end,
        };
        (outcome, self.observer)
    }

    fn counters(&self) -> Counters {
        let mut sum = Counters {
            submitted: self.messages.submitted,
            delivered: self.messages.delivered,
            failed: self.messages.failed,
            ..Counters::default()
        };
        for host in &self.hosts {
            sum.data_sent += host.data_sent;
            sum.control_sent += host.sent.packets - host.data_sent;
            for (all, one) in sum.stats.iter_mut().zip(host.stats) {
                *all += one;
            }
        }
        for port in &self.ports {
            sum.trimmed += port.stats.trimmed;
            sum.bounced += port.stats.bounced;
            sum.dropped += port.stats.dropped;
            sum.marked += port.stats.marked;
        }
        sum
    }
}

/// Carries out what a queue decides about packets.
struct Desk<'a, O> {
    slab: &'a mut Slab,
    observer: &'a mut O,
    chain: &'a mut u64,
    stats: &'a mut LinkStats,
    returned: &'a mut Vec<u32>,
    now: Time,
    link: u32,
}

impl<O: Observer> Desk<'_, O> {
    fn apply(&mut self, fate: Fate, packet: Desc) {
        let pkt = &mut self.slab[packet.handle];
        let (outcome, event) = match fate {
            Fate::Trim => {
                self.stats.trimmed += 1;
                self.stats.trimmed_bytes += u64::from(pkt.wire_len - packet.len);
                pkt.flags.set(Flags::TRIMMED);
                pkt.wire_len = packet.len;
                (digest::Outcome::Trimmed, PacketEvent::Trimmed)
            }
            Fate::Mark => {
                self.stats.marked += 1;
                pkt.flags.set(Flags::CE);
                (digest::Outcome::Marked, PacketEvent::Marked)
            }
            Fate::Bounce => {
                self.stats.bounced += 1;
                pkt.flags.set(Flags::BOUNCED);
                std::mem::swap(&mut pkt.src, &mut pkt.dst);
                self.returned.push(packet.handle);
                (digest::Outcome::Bounced, PacketEvent::Bounced)
            }
            Fate::Drop => {
                self.stats.dropped += 1;
                self.stats.dropped_bytes += u64::from(pkt.wire_len);
                (digest::Outcome::Dropped, PacketEvent::Dropped(Drop::Full))
            }
        };
        *self.chain = digest::chain(*self.chain, self.now.0, pkt.key, outcome);
        if O::PACKETS {
            self.observer.packet(self.now, self.link, event, &self.slab[packet.handle]);
        }
        if fate == Fate::Drop {
            self.slab.free(packet.handle);
        }
    }
}

fn describe(handle: u32, pkt: &Packet) -> Desc {
    let kind = if pkt.carries_payload() {
        Kind::Data
    } else if pkt.flags.has(Flags::TRIMMED) && !pkt.flags.has(Flags::BOUNCED) {
        Kind::Header
    } else {
        Kind::Control
    };
    Desc { handle, len: pkt.wire_len, kind, ect: pkt.flags.has(Flags::ECT) }
}

fn check(
    topology: &Topology,
    config: &Config,
    endpoints: usize,
    apps: usize,
) -> Result<(), ConfigError> {
    let hosts = topology.hosts() as usize;
    if endpoints != hosts || apps != hosts {
        let what = format!("{endpoints} endpoints and {apps} applications for {hosts} hosts");
        return Err(ConfigError(what));
    }
    let links = topology.links().len();
    let mut faults = config.faults.iter().map(|fault| fault.link);
    if let Some(link) = faults.find(|&link| link as usize >= links) {
        return Err(ConfigError(format!("a fault of link {link} of {links}")));
    }
    if let Some(link) = topology.links().iter().find(|link| link.rate == Rate(0)) {
        return Err(ConfigError(format!("{link} has a rate of zero")));
    }
    let capacities = match &config.queue {
        QueueSpec::DropTail(spec) => [spec.capacity, spec.capacity],
        QueueSpec::Ndp(spec) => [spec.data_capacity, spec.header_capacity],
    };
    for capacity in capacities {
        if let Capacity::Packets(n) = capacity
            && u64::from(n) * u64::from(topology.mtu()) > u64::from(u32::MAX) / 2
        {
            return Err(ConfigError(format!("a queue of {n} packets holds 2 GB or more")));
        }
    }
    Ok(())
}

fn ports(topology: &Topology, config: &Config) -> Vec<Port> {
    let port = |(n, link): (usize, &Link)| {
        let queue = matches!(link.from, Node::Switch(..)).then(|| Queue::new(&config.queue));
        let end = match link.to {
            Node::Host(host) => FarEnd::Host(host),
            Node::Switch(tier, at) => FarEnd::Switch(topology.switch_index(tier, at) as u32),
        };
        Port::new(link, end, topology.delay(n as u32), queue, config.window)
    };
    topology.links().iter().enumerate().map(port).collect()
}

/// The longest time from the start of a transmission to its arrival.
fn horizon(topology: &Topology) -> Dur {
    let longest = |n: usize| {
        let rate = topology.links()[n].rate;
        rate.serialise(u64::from(topology.mtu())) + topology.delay(n as u32)
    };
    (0..topology.links().len()).map(longest).max().unwrap_or(Dur::ZERO)
}
