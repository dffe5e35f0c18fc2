//! A run: partitions put together, driven from grid step to grid step, and summed up at the end.

use std::collections::VecDeque;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use endpoint::{App, Draw, Effects, Endpoint, JobRecord, Purpose, RttRecord, Stat};
use hashbrown::HashMap;
use queues::{Capacity, PfcBuffer, Queue, QueueSpec, SharedBuffer};
use units::{Dur, HostId, MsgKey, Rate, Time};

use crate::config::{Config, ConfigError, Departures, Events, FaultAction};
use crate::cut::Cut;
use crate::digest;
use crate::encoding::Tables;
use crate::events::{EventQueue, Ranks};
use crate::faults::{self, Script};
use crate::host::Host;
use crate::messages::{Messages, Report};
use crate::outcome::{
    Amount, Conservation, Counters, Deadlock, End, LinkStats, Outcome, Progress, Violation,
};
use crate::part::{Elsewhere, Part, Sampled, Switch, Watcher, World};
use crate::pfc::deadlock::{self, Circle};
use crate::pfc::{Pfc, check_memory, check_pause};
use crate::port::{FarEnd, Port};
use crate::rounds::{Post, Rounds};
use crate::route::{Belief, Forwarding, Known, Leg};
use crate::sample::Sampler;
use crate::slab::Slab;
use crate::slot::Slot;
use crate::tally::Tally;
use crate::topology::{Link, Node, Topology};
use crate::wheel::Span;

/// What a run is put together from.
pub(crate) struct Setup {
    pub(crate) topology: Arc<Topology>,
    pub(crate) config: Config,
    pub(crate) endpoints: Vec<Box<dyn Endpoint>>,
    pub(crate) apps: Vec<Box<dyn App>>,
    pub(crate) observer: Watcher,
}

/// A fabric with its hosts, ready to run once.
pub(crate) struct Run<const WATCHED: bool> {
    world: Arc<World>,
    parts: Vec<Part<WATCHED>>,
    /// How the parts run side by side; nothing if there is one.
    rounds: Option<Arc<Rounds<WATCHED>>>,
    observer: Option<Watcher>,
    /// Everything before this has happened.
    now: Time,
    messages: Messages,
    /// Scratch: what parts have reported.
    reports: Vec<Report>,
    /// Scratch: what applications have reported.
    jobs: Vec<JobRecord>,
    rtts: Vec<RttRecord>,
    sampler: Sampler,
    /// The ends of the measurement window that are to come.
    edges: Vec<Time>,
    /// The first one found.
    deadlock: Option<Deadlock>,
    violation: Option<Violation>,
}

const SWITCH: Purpose = Purpose::new("switch");

impl<const WATCHED: bool> Run<WATCHED> {
    /// As [`crate::Sim::new`].
    pub(crate) fn new(setup: Setup) -> Result<Self, ConfigError> {
        let Setup { topology, config, endpoints, apps, observer } = setup;
        check(&topology, &config, endpoints.len(), apps.len())?;
        let belief = Belief::new(&topology);
        let known = Known { topology: &topology, belief: &belief };
        if let Some((a, b)) = known.cut_off() {
            return Err(ConfigError(format!("the failed links leave no path from {a} to {b}")));
        }
        // Packets are observed in one order only.
        let wanted = if WATCHED { 1 } else { config.threads };
        let rates = faults::rates(&topology, &config.faults);
        let signals = apps.iter().filter_map(|app| app.signal_delay()).min();
        let cut = Cut::new(&topology, &rates, wanted, signals);
        let (parts, lookahead) = (cut.parts, cut.lookahead);
        let tables = Tables::new(&topology, config.routing)?;
        let script = Script::new(&topology, &config.faults, config.reroute_after);
        let mut hosts = endpoints.into_iter().zip(apps);
        let ranks = Ranks::new(topology.links().len() as u32, topology.hosts(), config.seed);
        let (window, sampler) = (config.window, Sampler::new(config.sample_every, config.window));
        let forwarding = Forwarding::new(config.routing, &topology);
        let shortest = shortest(&config);
        let span = span(&topology, &rates, signals, shortest);
        let world = Arc::new(World { topology, config, forwarding, cut, tables });
        let ends = receiving_ends(&world);
        let common = Common { ranks, ends, span, shortest, belief, script };
        let mut part = |index| {
            let range = world.cut.hosts(index);
            let hosts = range.clone().zip(hosts.by_ref().take(range.len()));
            let hosts = hosts.map(|(h, (endpoint, app))| {
                let rate = world.topology.links()[h as usize].rate;
                Host::new(HostId(h), endpoint, app, rate, &world.config)
            });
            build(&world, index, hosts.collect(), &common)
        };
        Ok(Self {
            parts: (0..parts).map(&mut part).collect(),
            rounds: lookahead.map(|time| Arc::new(Rounds::new(parts as usize, time))),
            observer: Some(observer),
            now: Time::ZERO,
            messages: Messages::new(window),
            reports: Vec::new(),
            jobs: Vec::new(),
            rtts: Vec::new(),
            sampler,
            edges: vec![window.1, window.0],
            deadlock: None,
            violation: None,
            world,
        })
    }

    /// As [`crate::Sim::run`].
    pub(crate) fn run(
        mut self,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<(Outcome, Watcher), Violation> {
        self.lend_observer();
        self.note_window(Time::ZERO);
        for part in &mut self.parts {
            part.start();
        }
        self.return_observer();
        self.enter_reports();
        let rounds = self.rounds.clone();
        let end = std::thread::scope(|scope| {
            let _guard = rounds.as_ref().map(|rounds| rounds.guard());
            for index in 1..self.parts.len() {
                let rounds = rounds.clone();
                let work = move || rounds.iter().for_each(|rounds| rounds.work(index));
                if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, work) {
                    self.violate(None, format!("thread {index} cannot be started: {error}"));
                }
            }
            if self.violation.is_some() {
                rounds.iter().for_each(|rounds| rounds.abandon());
                return End::Stopped;
            }
            let end = self.run_grid(progress);
            rounds.iter().for_each(|rounds| rounds.dismiss());
            end
        });
        if self.violation.is_none() {
            self.check_conservation();
            self.check_resumed();
            self.close_messages();
        }
        match (self.violation.take(), self.observer.take()) {
            (None, Some(observer)) => Ok((self.finish(end), observer)),
            (violation, _) => Err(violation.unwrap_or_else(|| Violation::lost_observer(self.now))),
        }
    }

    /// Handle events from grid step to grid step.
    fn run_grid(&mut self, progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> End {
        let grid = self.world.config.grid.0.max(1);
        let limit = self.world.config.limit;
        let mut step = Time(grid);
        loop {
            let stop = step.min(limit);
            self.advance(stop);
            if self.violation.is_none() && self.world.config.check {
                self.check_conservation();
            }
            let messages = &self.messages;
            let report = Progress {
                now: stop,
                events: self.events(),
                submitted: messages.submitted,
                delivered: messages.delivered,
            };
            if self.violation.is_some() || progress(&report).is_break() {
                return End::Stopped;
            }
            if let Some(after) = self.world.config.pfc.deadlock_after {
                self.look_for_deadlock(Time(stop.0.saturating_sub(after.0)));
            }
            if self.messages.open > self.world.config.open_limit {
                return End::Backlog;
            }
            if self.done() {
                return End::Complete;
            }
            if stop == limit {
                return End::Limit;
            }
            let Some(next) = self.next_step(Dur(grid)) else {
                self.look_for_deadlock(stop);
                return End::Idle;
            };
            step = next.max(step + Dur(grid));
        }
    }

    /// Handle everything before `stop`, samples included.
    fn advance(&mut self, stop: Time) {
        loop {
            // A sample comes after all that happens at its instant.
            let sample = self.sampler.next_at();
            let edge = self.edges.last().copied().unwrap_or(Time::NEVER);
            let until = stop.min(sample.saturating_add(Dur(1))).min(edge);
            self.run_parts(until);
            if self.violation.is_some() {
                return;
            }
            self.note_window(until);
            if sample < until {
                self.sample(sample);
            }
            if until == stop {
                return;
            }
        }
    }

    /// Let all parts handle everything before `until`.
    fn run_parts(&mut self, until: Time) {
        if let Some(rounds) = &self.rounds {
            if rounds.run(&mut self.parts, until).is_err() {
                // The scope of the threads passes their panic on.
                self.violate(None, "a thread of the simulator has panicked".into());
                return;
            }
        } else {
            self.lend_observer();
            for part in &mut self.parts {
                part.run(until);
            }
            self.return_observer();
        }
        self.now = until;
        self.take_violations();
        self.enter_reports();
    }

    /// Remember the first rule that a part has seen broken.
    fn take_violations(&mut self) {
        let broken = self.parts.iter_mut().filter_map(|part| part.violation.take());
        if let Some(violation) = broken.min_by_key(|violation| (violation.at, violation.key)) {
            self.violation.get_or_insert(violation);
        }
    }

    /// The first part keeps the observer while it runs alone.
    fn lend_observer(&mut self) {
        if let [part] = &mut self.parts[..] {
            part.observer = self.observer.take();
        }
    }

    fn return_observer(&mut self) {
        if let [part] = &mut self.parts[..] {
            self.observer = part.observer.take();
        }
    }

    /// Enter into the book what the parts have reported.
    fn enter_reports(&mut self) {
        for part in &mut self.parts {
            self.reports.append(&mut part.reports);
        }
        self.reports.sort_unstable_by_key(Report::order);
        for report in &self.reports {
            match self.messages.enter(report) {
                Ok(Some(record)) => self.observer.iter_mut().for_each(|o| o.message(&record)),
                Ok(None) => {}
                Err(what) => {
                    let violation = Violation { at: report.at, key: Some(report.key), what };
                    self.violation.get_or_insert(violation);
                }
            }
        }
        self.reports.clear();
        self.report_jobs();
        self.report_rtts();
    }

    /// Hand on what applications have reported, in the order of time and host.
    fn report_jobs(&mut self) {
        for part in &mut self.parts {
            self.jobs.append(&mut part.jobs);
        }
        // Stable: what one host reports at one instant keeps its order.
        self.jobs.sort_by_key(|record| (record.job.end, record.host));
        for record in self.jobs.drain(..) {
            self.observer.iter_mut().for_each(|observer| observer.job(&record));
        }
    }

    /// Hand on what transports have sampled, in the order of time and message.
    fn report_rtts(&mut self) {
        for part in &mut self.parts {
            self.rtts.append(&mut part.rtts);
        }
        // Stable, as above.
        self.rtts.sort_by_key(|record| (record.at, record.key));
        for record in self.rtts.drain(..) {
            self.observer.iter_mut().for_each(|observer| observer.rtt(&record));
        }
    }

    /// If the measurement window begins or ends at `now`, remember what has been sent before.
    fn note_window(&mut self, now: Time) {
        while self.edges.last() == Some(&now) {
            self.edges.pop();
            for part in &mut self.parts {
                part.replay(before(now));
                part.note_window(1 - self.edges.len());
            }
        }
    }

    fn sample(&mut self, now: Time) {
        let topology = &self.world.topology;
        // Every link that does not begin at a host begins at a switch port.
        let ports = topology.links().len() - topology.hosts() as usize;
        self.sampler.take(now, ports, &mut self.parts, &self.messages);
        if WATCHED && let Some(observer) = &mut self.observer {
            for port in self.parts.iter().flat_map(|part| &part.ports) {
                if port.queue.is_some() {
                    observer.queue(now, port.rare.link, port.queued_bytes());
                }
            }
        }
    }

    /// The first grid step after the next event, or the one that ends the window if that is sooner.
    /// `None` if nothing is left to happen.
    fn next_step(&self, grid: Dur) -> Option<Time> {
        let step = |steps: u64| Time(steps.saturating_mul(grid.0));
        let event = Some(self.next_event()).filter(|&at| at != Time::NEVER);
        let event = event.map(|at| step((at.0 / grid.0).saturating_add(1)));
        let end = self.world.config.window.1;
        if end == Time::NEVER || self.now >= end {
            return event;
        }
        let end = step(end.0.div_ceil(grid.0));
        match event {
            Some(event) => Some(event.min(end)),
            None => (self.messages.awaited == 0).then_some(end),
        }
    }

    /// When the next event comes; while packets are about, perhaps a time before that. All hosts are asked only if
    /// none are.
    fn next_event(&self) -> Time {
        let silent = self.parts.iter().all(Part::is_silent);
        let next = self.parts.iter().map(|part| match silent {
            true => part.next_if_silent(),
            false => part.next_at(),
        });
        let next = next.min().unwrap_or(Time::NEVER);
        // How long before it depends on the cut, but when a deadlock is seen must not.
        let no_step_left_out = !silent && self.world.config.pfc.deadlock_after.is_some();
        if no_step_left_out && next != Time::NEVER { self.now } else { next }
    }

    /// Remember the first circle of pauses that have lasted since `since` or longer.
    fn look_for_deadlock(&mut self, since: Time) {
        if self.deadlock.is_some() || self.parts.iter().all(|part| part.pfc.is_none()) {
            return;
        }
        let stuck = self.parts.iter().flat_map(|part| part.stuck(since));
        let found = deadlock::find(&stuck.collect::<Vec<_>>());
        let links = self.world.topology.links();
        self.deadlock = found.map(|Circle { class, links: circle, since }| {
            let cycle = circle.iter().map(|&link| links[link as usize].from).collect();
            Deadlock { at: self.now, since, class, cycle }
        });
    }

    #[cfg(test)]
    pub(crate) fn is_by_entity(&self) -> bool {
        self.parts.iter().all(|part| part.slot.is_by_entity())
    }

    fn done(&self) -> bool {
        let end = self.world.config.window.1;
        if end != Time::NEVER {
            return self.now >= end && self.messages.awaited == 0;
        }
        let Messages { open: 0, unbounded: 0, .. } = self.messages else { return false };
        !self.hosts().any(|host| host.app.more_to_come())
    }

    fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.parts.iter().flat_map(|part| &part.hosts)
    }

    fn events(&self) -> u64 {
        self.parts.iter().map(|part| part.handled).sum()
    }

    /// Remember the first broken rule.
    fn violate(&mut self, key: Option<MsgKey>, what: String) {
        let at = self.now;
        self.violation.get_or_insert(Violation { at, key, what });
    }

    fn conservation(&self) -> Conservation {
        let sum = |amounts: &mut dyn Iterator<Item = (u64, u64)>| {
            amounts.fold(Amount::default(), |all, (packets, bytes)| Amount {
                packets: all.packets + packets,
                bytes: all.bytes + bytes,
            })
        };
        let of_hosts = |of: fn(&Host) -> Amount| {
            sum(&mut self.hosts().map(of).map(|amount| (amount.packets, amount.bytes)))
        };
        let in_flight = self.parts.iter().flat_map(Part::in_flight);
        let ports = || self.parts.iter().flat_map(|part| &part.ports);
        let mishaps = || ports().filter_map(|port| port.rare.mishaps.as_deref());
        Conservation {
            sent: of_hosts(|host| host.sent),
            received: of_hosts(|host| host.received),
            dropped: sum(&mut mishaps().map(|of| (of.dropped, of.dropped_bytes))),
            trimmed: sum(&mut mishaps().map(|of| (of.trimmed, of.trimmed_bytes))),
            in_flight: sum(&mut in_flight.map(|pkt| (1, u64::from(pkt.wire_len)))),
        }
    }

    fn check_conservation(&mut self) {
        let count = self.conservation();
        if !count.holds() {
            self.violate(None, format!("packets or bytes are not conserved: {count:?}"));
        }
        for part in &mut self.parts {
            part.check_buffers();
            part.check_memories();
        }
        self.take_violations();
    }

    /// Where nothing waits in switches any more, nothing may be paused. (Where packets do wait, the run was stopped, or
    /// they wait for one another: [`Outcome::deadlock`].)
    fn check_resumed(&mut self) {
        if self.parts.iter().all(Part::is_calm) {
            self.parts.iter_mut().for_each(Part::check_resumed);
            self.take_violations();
        }
    }

    /// Per link, both ends together.
    fn links(&self) -> Vec<LinkStats> {
        let mut links = vec![LinkStats::default(); self.world.topology.links().len()];
        for part in &self.parts {
            for (n, port) in part.ports.iter().enumerate() {
                let pfc = part.pfc.as_ref().map(|pfc| pfc.stats(n, self.now));
                let stats = LinkStats { pfc: pfc.unwrap_or_default(), ..port.stats() };
                links[port.rare.link as usize].join(&stats);
            }
        }
        links
    }

    /// Report what is still open, and hold it against what hosts have received.
    fn close_messages(&mut self) {
        let (cut, parts) = (&self.world.cut, &mut self.parts);
        let drained = self.messages.drain(|host, key| {
            let part = &mut parts[cut.host_owner(host) as usize];
            let first = part.first_host;
            part.hosts[(host.0 - first) as usize].reassembly.take(key)
        });
        match drained {
            Ok(records) => {
                for record in &records {
                    self.observer.iter_mut().for_each(|observer| observer.message(record));
                }
            }
            Err((key, what)) => self.violate(Some(key), what),
        }
        let leftover = self.hosts().find_map(|host| host.reassembly.leftover());
        if let Some(key) = leftover {
            self.violate(Some(key), "bytes placed after its end, or at another host".into());
        }
    }

    fn finish(mut self, end: End) -> Outcome {
        // What happens at `now` itself is beyond the end, departures too.
        for part in &mut self.parts {
            part.replay(before(self.now));
        }
        let conservation = self.conservation();
        // Nobody asks for packets any more, and in a large fabric what follows takes as much memory.
        for part in &mut self.parts {
            part.slab = Slab::with_capacity(0);
        }
        let links = self.links();
        Outcome {
            digest: self.digest(),
            now: self.now,
            events: self.events(),
            packet_hops: links.iter().map(|link| link.packets).sum(),
            counters: self.counters(&links),
            counted: Tally::sum(self.parts.iter_mut().map(|part| std::mem::take(&mut part.tally))),
            conservation,
            links,
            buffers: self
                .of_switches(|part| part.buffers.iter().map(SharedBuffer::stats).collect()),
            memories: self.of_switches(|part| {
                let memories = part.pfc.iter().flat_map(|pfc| &pfc.memories);
                memories.map(PfcBuffer::stats).collect()
            }),
            deadlock: self.deadlock,
            queue_bytes_p99: self.sampler.queue_p99(),
            samples: self.sampler.samples,
            end,
        }
    }

    /// What parts say `of` their switches, in the order of the fabric's.
    fn of_switches<T>(&self, of: impl Fn(&Part<WATCHED>) -> Vec<T>) -> Vec<T> {
        let mut all: Vec<(u32, T)> = Vec::new();
        for part in &self.parts {
            all.extend(part.switches.iter().map(|switch| switch.number).zip(of(part)));
        }
        all.sort_by_key(|&(number, _)| number);
        all.into_iter().map(|(_, of)| of).collect()
    }

    /// Of each link what happened at either end, then of each host.
    fn digest(&self) -> u64 {
        let mut chains = vec![[0, 0]; self.world.topology.links().len()];
        for port in self.parts.iter().flat_map(|part| &part.ports) {
            // Where one port is one end of a link, it knows nothing of the other.
            let [sent, arrived] = &mut chains[port.rare.link as usize];
            *sent ^= port.chain;
            *arrived ^= port.arrived;
        }
        let hosts = self.hosts().map(|host| host.chain);
        digest::combine(chains.into_iter().flatten().chain(hosts))
    }

    fn counters(&self, links: &[LinkStats]) -> Counters {
        let mut sum = Counters {
            submitted: self.messages.submitted,
            delivered: self.messages.delivered,
            failed: self.messages.failed,
            ..Counters::default()
        };
        for host in self.hosts() {
            sum.data_sent += host.data_sent;
            sum.control_sent += host.sent.packets - host.data_sent;
        }
        for part in &self.parts {
            sum.faulted += part.faulted;
            for (all, one) in sum.stats.iter_mut().zip(part.stats) {
                *all += one;
            }
        }
        for link in links {
            sum.trimmed += link.trimmed;
            sum.bounced += link.bounced;
            sum.dropped += link.dropped;
            sum.marked += link.marked;
        }
        sum
    }
}

/// The last instant before `time`.
fn before(time: Time) -> Time {
    Time(time.0.saturating_sub(1))
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
    check_faults(topology, config)?;
    if let Some(link) = topology.links().iter().find(|link| link.rate == Rate(0)) {
        return Err(ConfigError(format!("{link} has a rate of zero")));
    }
    if let Some((link, _)) =
        config.queues_at.iter().find(|(n, _)| *n as usize >= topology.links().len())
    {
        return Err(ConfigError(format!("a queue at link {link}, which is not there")));
    }
    let queues = config.queues_at.iter().map(|(_, queue)| queue).chain([&config.queue]);
    for capacity in queues.flat_map(|queue| queue.spec().capacities()) {
        if let Capacity::Packets(n) = capacity
            && u64::from(n) * u64::from(topology.mtu()) > u64::from(u32::MAX) / 2
        {
            return Err(ConfigError(format!("a queue of {n} packets holds 2 GB or more")));
        }
    }
    check_buffer(config)?;
    check_lossless(topology, config)
}

fn check_lossless(topology: &Topology, config: &Config) -> Result<(), ConfigError> {
    let lossless = |queue: &QueueSpec| matches!(queue, QueueSpec::Lossless(_));
    if config.queues_at.iter().any(|(_, queue)| lossless(queue) != lossless(&config.queue)) {
        return Err(ConfigError("lossless queues at some ports and others at others".to_owned()));
    }
    match &config.queue {
        QueueSpec::Lossless(spec) => check_memory(topology, &spec.memory)
            .and_then(|()| check_pause(topology, config.pfc.pause))
            .map_err(ConfigError),
        _ => Ok(()),
    }
}

fn check_buffer(config: &Config) -> Result<(), ConfigError> {
    let Some(buffer) = config.buffer else { return Ok(()) };
    if !config.queue.spec().shares_memory() {
        return Err(ConfigError("a shared buffer for queues that do more than drop".to_owned()));
    }
    if !(buffer.alpha > 0.0 && buffer.alpha.is_finite()) {
        return Err(ConfigError(format!("a shared buffer with an alpha of {}", buffer.alpha)));
    }
    Ok(())
}

fn check_faults(topology: &Topology, config: &Config) -> Result<(), ConfigError> {
    let links = topology.links().len();
    for fault in &config.faults {
        let wrong = match fault.action {
            _ if fault.link as usize >= links => format!("of {links}"),
            FaultAction::Rate(Rate(0)) => "to a rate of zero".to_owned(),
            FaultAction::Loss(share) if !(0.0..=1.0).contains(&share) => {
                format!("to a loss of {share}")
            }
            _ => continue,
        };
        return Err(ConfigError(format!("a fault of link {} {wrong}", fault.link)));
    }
    Ok(())
}

/// What a core of today has to itself, and as much again of what it shares, bytes.
const CACHE: usize = 4 << 20;
/// What a host, its endpoint and a message under way take, about, bytes.
const HOST_SIZE: usize = 2 << 10;

/// Packets that are under way at a time, per host: more than there mostly are.
const PACKETS_PER_HOST: usize = 64;

/// Where a link from one part to another ends.
struct ReceivingEnd {
    link: u32,
    from: u32,
    at: Elsewhere,
}

/// The links across the cut, in order. Within its part, a receiving end comes after all ports that
/// transmit.
fn receiving_ends(world: &World) -> Vec<ReceivingEnd> {
    let World { topology, cut, .. } = world;
    let owners = |link: &Link| (cut.owner(topology, link.from), cut.owner(topology, link.to));
    let mut next = vec![0; cut.parts as usize];
    for link in topology.links() {
        next[owners(link).0 as usize] += 1;
    }
    let mut ends = Vec::new();
    for (n, link) in topology.links().iter().enumerate() {
        let (from, part) = owners(link);
        if from != part {
            let place = &mut next[part as usize];
            ends.push(ReceivingEnd { link: n as u32, from, at: Elsewhere { part, link: *place } });
            *place += 1;
        }
    }
    ends
}

/// What all parts are built from.
struct Common {
    ranks: Ranks,
    ends: Vec<ReceivingEnd>,
    span: Span,
    shortest: u16,
    belief: Belief,
    script: Script,
}

/// Whether what happens at one port has no effect on another but by packets that it sends, and nobody looks at
/// packets on their way.
fn is_plain<const WATCHED: bool>(world: &World) -> bool {
    let World { topology, config, .. } = world;
    let lossless = matches!(config.queue, QueueSpec::Lossless(_));
    let alone = config.buffer.is_none() && !config.telemetry && !lossless;
    let lazy = config.departures == Departures::Lazy && !config.queue.spec().marks_at_departure();
    let sound = config.faults.is_empty() && topology.links().iter().all(|link| link.up);
    let wheel = config.events == Events::Wheel;
    alone && lazy && sound && wheel && !WATCHED && is_settled(world)
}

/// Whether the port to which a packet goes on follows from the packet alone.
fn is_settled(world: &World) -> bool {
    world.config.faults.is_empty() && world.forwarding.is_fixed(world.config.routing)
}

/// Whether each queue has room for the headers of all packets that may come within a slot.
fn has_room(topology: &Topology, ports: &[Port]) -> bool {
    let ways = topology.switches.iter().map(|switch| switch.downs() + switch.ups);
    // One over each link: a slot is over before a second one can have been sent.
    let arrivals = ways.max().unwrap_or(0);
    ports
        .iter()
        .all(|port| port.queue.as_ref().is_none_or(|q| q.arrivals_before_bounce() >= arrivals))
}

/// One part, with its hosts.
fn build<const WATCHED: bool>(
    world: &Arc<World>,
    index: u32,
    hosts: Vec<Host>,
    common: &Common,
) -> Part<WATCHED> {
    let World { topology, config, cut, .. } = &**world;
    let Common { ranks, ends, .. } = common;
    let first_host = cut.hosts(index).start;
    let switches = switches(world, index);
    let leaving: Vec<&ReceivingEnd> = ends.iter().filter(|end| end.from == index).collect();
    let ports = ports(world, index, &switches, ends, &leaving);
    let first_receiving = ports.len() - ends.iter().filter(|end| end.at.part == index).count();
    let pfc = Pfc::new(topology, config, &switches, &ports, first_receiving);
    let height = |port: &Port| topology.links()[port.rare.link as usize].height() as u8;
    let sampled =
        Sampled { height: ports.iter().map(height).collect(), bytes: vec![0; ports.len()] };
    let by_entity = (is_plain::<WATCHED>(world) && has_room(topology, &ports))
        .then(|| common.span.shift_by_entity(ports.len() as u32))
        .flatten();
    let mut queues = ports.iter().filter_map(|port| port.queue.as_ref());
    let bounces = queues.any(|queue| queue.arrivals_before_bounce() != u32::MAX);
    let shift = by_entity.unwrap_or(common.span.shift_in_order(ports.len() as u32));
    let draw = |switch: &Switch| (Draw::new(config.seed, SWITCH, u64::from(switch.number)), 0);
    Part {
        index,
        observer: None,
        now: Time::ZERO,
        events: EventQueue::new(
            config.events,
            ranks,
            cut.hosts(index),
            ports.iter().map(|port| port.rare.link),
            common.span,
            shift,
        ),
        slot: Slot::new(by_entity.map(|_| common.shortest), bounces, is_settled(world)),
        sampled,
        ports,
        first_receiving,
        hosts,
        first_host,
        sprayed: switches.iter().map(draw).collect(),
        pfc: pfc.map(Box::new),
        buffers: config
            .buffer
            .map(|spec| vec![SharedBuffer::new(spec); switches.len()])
            .unwrap_or_default(),
        switches,
        elsewhere: leaving.iter().map(|end| end.at).collect(),
        active: Vec::new(),
        tier_bytes: [0; 3],
        slab: Slab::with_capacity(PACKETS_PER_HOST * cut.hosts(index).len()),
        crossing_at: Time::NEVER,
        notes: HashMap::default(),
        reports: Vec::new(),
        jobs: Vec::new(),
        rtts: Vec::new(),
        outbox: (0..cut.parts).map(|_| Post::default()).collect(),
        belief: common.belief.clone(),
        script: common.script.clone(),
        violation: None,
        spare: None,
        fx: Effects::new(),
        app_fx: Vec::new(),
        app_events: VecDeque::new(),
        submitted: false,
        far_hosts: cut.hosts(index).len() * HOST_SIZE > CACHE,
        returned: Vec::new(),
        handled: 0,
        placed_bytes: 0,
        faulted: 0,
        stats: [0; Stat::COUNT],
        tally: Tally::default(),
        world: Arc::clone(world),
    }
}

/// The switches of a part. Their ports come in the order of their links, after those of hosts.
fn switches(world: &World, index: u32) -> Vec<Switch> {
    let World { topology, cut, .. } = world;
    let mut next = cut.hosts(index).len() as u32;
    let mut mine = Vec::new();
    for (number, switch) in (0..).zip(&topology.switches) {
        if cut.switch_owner(number) != index {
            continue;
        }
        let (tier, below) = topology.below(number);
        let up = next + switch.downs();
        mine.push(Switch { number, tier, below, down: next, up });
        next = up + switch.ups;
    }
    mine
}

fn ports(
    world: &World,
    index: u32,
    switches: &[Switch],
    ends: &[ReceivingEnd],
    leaving: &[&ReceivingEnd],
) -> Vec<Port> {
    let World { topology, config, cut, .. } = world;
    let first_host = cut.hosts(index).start;
    let place = |tier, n| {
        let number = topology.switch_index(tier, n) as u32;
        switches.partition_point(|switch| switch.number < number) as u32
    };
    let here = |to: Node| match to {
        Node::Host(host) => FarEnd::Host(host - first_host),
        Node::Switch(tier, n) => FarEnd::Switch(place(tier, n)),
    };
    let departs = config.departures == Departures::Eager
        || config.buffer.is_some()
        || config.telemetry
        || matches!(config.queue, QueueSpec::Lossless(_))
        || config.queue.spec().marks_at_departure();
    let port = |n: u32, end: FarEnd, transmits: bool| {
        let link = &topology.links()[n as usize];
        let of_switch = matches!(link.from, Node::Switch(..));
        let queue = (of_switch && transmits).then(|| match (config.queue_of(n), config.buffer) {
            (QueueSpec::Lossless(spec), _) => {
                Queue::new(&QueueSpec::Lossless(Box::new(spec.at_rate(link.rate))))
            }
            (spec, None) if !config.telemetry => Queue::new(spec),
            (spec, _) => Queue::in_shared_buffer(spec),
        });
        let delay = topology.delay(n);
        let mut port = Port::new((n, link), end, delay, queue, departs || !of_switch);
        if let FarEnd::Switch(at) = end {
            port.set_onward(switches[at as usize].down, Leg::after(link));
        }
        if let (Node::Switch(tier, n), true) = (link.from, transmits) {
            port.rare.switch = place(tier, n);
        }
        port
    };
    let links = (0..).zip(topology.links());
    let mine = links.filter(|(_, link)| cut.owner(topology, link.from) == index);
    let transmitting = mine.map(|(n, link)| {
        let end = match leaving.binary_search_by_key(&n, |end| end.link) {
            Ok(place) => FarEnd::Elsewhere(place as u32),
            Err(_) => here(link.to),
        };
        port(n, end, true)
    });
    let coming = ends.iter().filter(|end| end.at.part == index);
    let receiving =
        coming.map(|end| port(end.link, here(topology.links()[end.link as usize].to), false));
    // A third of all memory: not to be moved while it grows.
    let owned = |link: &&Link| cut.owner(topology, link.from) == index;
    let count = topology.links().iter().filter(owned).count();
    let mut ports = Vec::with_capacity(count + ends.len());
    ports.extend(transmitting.chain(receiving));
    ports
}

/// What no packet is shorter than, bytes, for all that is known: the shortest Ethernet frame, the headers of some
/// transport, or what is left of a packet that a queue trims.
fn shortest(config: &Config) -> u16 {
    let queues = config.queues_at.iter().map(|(_, queue)| queue).chain([&config.queue]);
    let headers = config.carriages.iter().map(|carriage| carriage.framing.overhead);
    queues.map(|queue| queue.spec().trims_to()).chain(headers).fold(SHORTEST, u16::min).max(1)
}

const SHORTEST: u16 = 64;

/// How far apart events are on links of these `rates`, with packets no shorter than `shortest`, and where the
/// shortest signal between applications takes `signals`.
fn span(
    topology: &Topology,
    rates: &[RangeInclusive<Rate>],
    signals: Option<Dur>,
    shortest: u16,
) -> Span {
    let frame = |rate: &Rate| rate.serialise(u64::from(topology.mtu()));
    let slowest = (0..).zip(rates).map(|(n, rate)| frame(rate.start()) + topology.delay(n)).max();
    let quickest = rates.iter().map(|rate| frame(rate.end())).min();
    let sent = rates.iter().map(|rate| rate.end().serialise(u64::from(shortest)));
    let carried = (0..rates.len() as u32).map(|link| topology.delay(link));
    Span {
        horizon: slowest.unwrap_or(Dur::ZERO),
        frame: quickest.unwrap_or(Dur::ZERO),
        apart: sent.chain(carried).chain(signals).min().unwrap_or(Dur::ZERO),
    }
}
