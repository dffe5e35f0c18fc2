//! A run: partitions put together, driven from grid step to grid step, and summed up at the end.

mod rounds;
mod skip;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use endpoint::{App, Draw, Endpoint, JobRecord, RttRecord};
use units::{Dur, HostId, MsgKey, Time};

use crate::build::{self, Common};
use crate::check::check;
use crate::config::{Config, ConfigError, Threads};
use crate::digest;
use crate::encoding::Tables;
use crate::event_loop::EventLoop;
use crate::faults;
use crate::hosts::simulated;
use crate::link_state::{LinkState, RoutingView};
use crate::links::Watcher;
use crate::message_table::{MessageTable, Report};
use crate::network::{Network, SWITCH};
use crate::outcome::{
    Amount, Conservation, Counters, Deadlock, End, LinkStats, Outcome, Progress, Skipped, Violated,
    Violation,
};
use crate::parallel::Rounds;
use crate::partition::Partition;
use crate::partitioning::Partitioning;
use crate::per_message_stats::PerMessageStats;
use crate::pfc::deadlock::{self, Circle};
use crate::route::Forwarding;
use crate::sample::Sampler;
use crate::steady::Totals;
use crate::topology::Topology;
use crate::world::World;
use skip::Skipper;

/// What a run is put together from.
pub(crate) struct Setup<'o> {
    pub(crate) topology: Arc<Topology>,
    pub(crate) config: Config,
    pub(crate) endpoints: Vec<Box<dyn Endpoint>>,
    pub(crate) apps: Vec<Box<dyn App>>,
    pub(crate) observer: Watcher<'o>,
}

/// A fabric with its hosts, ready to run once.
pub(crate) struct Run<'o, const WATCHED: bool> {
    world: Arc<World>,
    loops: Vec<EventLoop<'o, WATCHED>>,
    /// How partitions run in parallel; nothing if there is one.
    rounds: Option<Arc<Rounds<'o, WATCHED>>>,
    /// Lent to the only partition while it runs.
    observer: Option<Watcher<'o>>,
    /// Everything before this has happened. In simulated time, as all that partitions do; without
    /// [`Config::skip`] it is the true time.
    now: Time,
    /// Time that was skipped.
    skipped: Dur,
    skipper: Option<Skipper>,
    messages: MessageTable,
    /// Messages that are over, each with its receiver, and from when on no packet of it is about.
    leaving: VecDeque<(Time, MsgKey, HostId)>,
    /// Scratch: what hosts have reported.
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

impl<'o, const WATCHED: bool> Run<'o, WATCHED> {
    /// As [`crate::Sim::new`].
    pub(crate) fn new(setup: Setup<'o>) -> Result<Self, ConfigError> {
        let Setup { topology, config, endpoints, apps, observer } = setup;
        check(&topology, &config, endpoints.len(), apps.len())?;
        let link_state = LinkState::new(&topology);
        let view = RoutingView { topology: &topology, state: &link_state };
        if let Some((a, b)) = view.cut_off() {
            return Err(ConfigError(format!("the failed links leave no path from {a} to {b}")));
        }
        // Packets are observed in one order only.
        let wanted = if WATCHED { Threads::Fixed(1) } else { config.threads };
        let rates = faults::rates(&topology, &config.faults);
        let signals = apps.iter().filter_map(|app| app.signal_delay()).min();
        let partitioning = Partitioning::new(&topology, &rates, wanted, signals);
        let (parts, lookahead) = (partitioning.parts, partitioning.lookahead);
        let tables = Tables::new(&topology, config.routing)?;
        let forwarding = Forwarding::new(&config, &topology);
        let draw = |switch| Draw::new(config.seed, SWITCH, switch);
        let draws = (0..topology.switches.len() as u64).map(draw).collect();
        let skipper = config.skip.map(|spec| Skipper::new(&config, spec, &topology));
        let (window, sampler) = (config.window, Sampler::new(config.sample_every, config.window));
        let world = Arc::new(World { topology, config, forwarding, partitioning, tables, draws });
        let common = Common::new(&world, &rates, signals, link_state);
        let mut hosts = endpoints.into_iter().zip(apps);
        let mut event_loop = |index| {
            let count = world.partitioning.hosts(index).len();
            let hosts = hosts.by_ref().take(count);
            EventLoop::new(build::partition(&world, index, hosts, &common))
        };
        Ok(Self {
            loops: (0..parts).map(&mut event_loop).collect(),
            rounds: lookahead
                .map(|time| Arc::new(Rounds::new(parts as usize, time, wanted.is_auto()))),
            observer: Some(observer),
            now: Time::ZERO,
            skipped: Dur::ZERO,
            skipper,
            messages: MessageTable::new(window),
            leaving: VecDeque::new(),
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
    ) -> Result<Outcome, Box<Violated>> {
        self.lend_observer();
        self.note_window(Time::ZERO);
        self.parts_mut().for_each(Partition::start);
        self.return_observer();
        self.enter_reports();
        let rounds = self.rounds.clone();
        let end = std::thread::scope(|scope| {
            let _guard = rounds.as_ref().map(|rounds| rounds.guard());
            for index in 1..self.loops.len() {
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
        }
        let now = self.true_now();
        self.parts_mut().for_each(|part| part.hosts_mut().end_apps(now));
        self.report_jobs();
        self.close_messages();
        match self.violation.take() {
            None => Ok(self.finish(end)),
            Some(violation) => {
                let end = if violation.is_outside { End::Broken } else { End::Violated };
                let outcome = self.finish(end);
                Err(Box::new(Violated { violation, outcome }))
            }
        }
    }

    /// Handle events from grid step to grid step.
    fn run_grid(&mut self, progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> End {
        let grid = self.world.config.grid.0.max(1);
        let limit = self.world.config.limit;
        let mut step = Time(grid);
        loop {
            let stop = step.min(self.simulated(limit));
            self.advance(stop);
            if self.violation.is_none() && self.world.config.check {
                self.check_conservation();
            }
            let messages = &self.messages;
            let report = Progress {
                now: self.true_now(),
                events: self.events(),
                submitted: messages.submitted,
                delivered: messages.delivered,
                placed_bytes: self.parts().map(|part| part.hosts().placed_bytes()).sum(),
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
            if stop == self.simulated(limit) {
                return End::Limit;
            }
            self.skip_if_steady();
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
            let sample = self.simulated(self.sampler.next_at());
            let edge = self.simulated(self.edges.last().copied().unwrap_or(Time::NEVER));
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

    /// Let all partitions handle everything before `until`.
    fn run_parts(&mut self, until: Time) {
        if let Some(rounds) = &self.rounds {
            if rounds.run(&mut self.loops, until).is_err() {
                // The scope of the threads passes their panic on.
                self.violate(None, "a thread of the simulator has panicked".into());
                return;
            }
        } else {
            self.lend_observer();
            for event_loop in &mut self.loops {
                event_loop.run(until);
            }
            self.return_observer();
        }
        self.now = until;
        self.take_violations();
        self.enter_reports();
    }

    /// Remember the first violation that a partition has seen.
    fn take_violations(&mut self) {
        let violated = self.parts_mut().filter_map(|part| part.core_mut().take_violation());
        let first = violated.min_by_key(|violation| (violation.at, violation.key));
        if let Some(Violation { at, .. }) = first {
            let at = at.saturating_add(self.skipped);
            self.violation = self.violation.take().or(first.map(|of| Violation { at, ..of }));
        }
    }

    /// The first partition keeps the observer while it runs alone.
    fn lend_observer(&mut self) {
        if let [only] = &mut self.loops[..] {
            only.part_mut().network_mut().lend(self.observer.take());
        }
    }

    fn return_observer(&mut self) {
        if let [only] = &mut self.loops[..] {
            self.observer = only.part_mut().network_mut().give_back();
        }
    }

    /// Enter into the table of messages what hosts have reported.
    fn enter_reports(&mut self) {
        for event_loop in &mut self.loops {
            event_loop.part_mut().hosts_mut().take_reports(&mut self.reports);
        }
        self.forget_leaving();
        self.reports.sort_unstable_by_key(Report::order);
        let life = self.world.config.packet_life;
        for report in &self.reports {
            match self.messages.enter(report) {
                Ok(Some(record)) => {
                    self.observer.iter_mut().for_each(|o| o.message(&record));
                    // Packets are in flight in simulated time.
                    let gone = simulated(report.at, self.skipped).saturating_add(life);
                    if gone < Time::NEVER {
                        self.leaving.push_back((gone, record.key, record.dst));
                    }
                }
                Ok(None) => {}
                Err(what) => {
                    let violation = Violation::new(report.at, Some(report.key), what);
                    self.violation.get_or_insert(violation);
                }
            }
        }
        self.reports.clear();
        self.report_jobs();
        self.report_rtts();
        self.report_counts(PerMessageStats::is_many);
    }

    /// Tell both ends of the messages of which no packet can come any more: so what they remember
    /// does not grow with the run.
    fn forget_leaving(&mut self) {
        let is_past = |leaving: &mut (Time, MsgKey, HostId)| leaving.0 < self.now;
        while let Some((_, key, dst)) = self.leaving.pop_front_if(is_past) {
            for host in [key.src, dst] {
                let owner = self.world.partitioning.host_owner(host);
                self.loops[owner as usize].part_mut().hosts_mut().forget(host, key);
            }
        }
    }

    /// Hand on what transports have counted for single messages, of the partitions of which
    /// `is_due` says so. Sums have no order.
    fn report_counts(&mut self, is_due: fn(&PerMessageStats) -> bool) {
        for event_loop in &mut self.loops {
            let counts = event_loop.part_mut().hosts_mut().per_message();
            if is_due(counts) {
                for ((key, stat), times) in counts.take() {
                    self.observer.iter_mut().for_each(|o| o.count(key, stat, times));
                }
            }
        }
    }

    /// Hand on what applications have reported, in the order of time and host.
    fn report_jobs(&mut self) {
        for event_loop in &mut self.loops {
            event_loop.part_mut().hosts_mut().take_jobs(&mut self.jobs);
        }
        // Stable: what one host reports at one instant keeps its order.
        self.jobs.sort_by_key(|record| (record.job.end, record.host));
        for record in self.jobs.drain(..) {
            self.skipper.iter_mut().for_each(|skipper| skipper.rounds.note(&record));
            self.observer.iter_mut().for_each(|observer| observer.job(&record));
        }
    }

    /// Hand on what transports have sampled, in the order of time and message.
    fn report_rtts(&mut self) {
        for event_loop in &mut self.loops {
            event_loop.part_mut().hosts_mut().take_rtts(&mut self.rtts);
        }
        // Stable, as above.
        self.rtts.sort_by_key(|record| (record.at, record.key));
        for record in self.rtts.drain(..) {
            self.observer.iter_mut().for_each(|observer| observer.rtt(&record));
        }
    }

    /// If the measurement window begins or ends at `now`, remember what has been sent before.
    fn note_window(&mut self, now: Time) {
        while self.edges.last().is_some_and(|&edge| self.simulated(edge) == now) {
            self.edges.pop();
            let edge = 1 - self.edges.len();
            for part in self.parts_mut() {
                part.network_mut().replay(before(now));
                part.network_mut().note_window(edge);
            }
        }
    }

    fn sample(&mut self, now: Time) {
        let at = now.saturating_add(self.skipped);
        let ports = self.switch_ports();
        let parts = self.loops.iter_mut().map(EventLoop::part_mut);
        self.sampler.take((now, at), ports, parts, &self.messages);
        if WATCHED && let Some(observer) = &mut self.observer {
            for port in self.loops.iter().flat_map(|of| of.part().network().ports()) {
                if port.queue.is_some() {
                    observer.queue(now, port.rare.link, port.queued_bytes());
                }
            }
        }
    }

    /// Every link that does not begin at a host begins at a switch port.
    fn switch_ports(&self) -> usize {
        self.world.topology.links().len() - self.world.topology.hosts() as usize
    }

    /// The first grid step after the next event, or the one that ends the window if that is sooner.
    /// `None` if nothing is left to happen.
    fn next_step(&self, grid: Dur) -> Option<Time> {
        let step = |steps: u64| Time(steps.saturating_mul(grid.0));
        let event = Some(self.next_event()).filter(|&at| at != Time::NEVER);
        let event = event.map(|at| step((at.0 / grid.0).saturating_add(1)));
        let event = event.map(|event| {
            self.next_stuck().fold(event, |first, at| first.min(step(at.0.div_ceil(grid.0))))
        });
        // Where no packet is about, nothing repeats.
        let is_watched = self.messages.open + self.messages.unbounded > 0 && !self.is_silent();
        let skipper = self.skipper.as_ref().filter(|_| is_watched);
        let look = skipper.map_or(Time::NEVER, Skipper::next_at);
        let event = event.map(|event| event.min(step(look.0.div_ceil(grid.0))));
        let end = self.simulated(self.world.config.window.1);
        if end == Time::NEVER || self.now >= end {
            return event;
        }
        let end = step(end.0.div_ceil(grid.0));
        match event {
            Some(event) => Some(event.min(end)),
            None => (self.messages.awaited == 0).then_some(end),
        }
    }

    /// Whether no packet is about.
    fn is_silent(&self) -> bool {
        self.parts().all(Partition::is_silent)
    }

    /// When the next event comes; while packets are about, perhaps a time before that. All hosts
    /// are asked only if none are.
    fn next_event(&self) -> Time {
        let silent = self.is_silent();
        let next = self.parts().map(|part| match silent {
            true => part.next_if_silent(),
            false => part.next_at(),
        });
        next.min().unwrap_or(Time::NEVER)
    }

    /// When pauses will have lasted so long that a deadlock may be seen: the first in each
    /// partition.
    fn next_stuck(&self) -> impl Iterator<Item = Time> {
        let after = self.world.config.pfc.deadlock_after.filter(|_| self.deadlock.is_none());
        let networks =
            after.into_iter().flat_map(|after| self.networks().map(move |net| (net, after)));
        networks.filter_map(|(network, after)| network.next_stuck(self.now, after))
    }

    /// Remember the first circle of pauses that have lasted since `since` or longer.
    fn look_for_deadlock(&mut self, since: Time) {
        if self.deadlock.is_some() {
            return;
        }
        let stuck = self.networks().flat_map(|network| network.stuck(since));
        let found = deadlock::find(&stuck.collect::<Vec<_>>());
        let links = self.world.topology.links();
        self.deadlock = found.map(|Circle { class, links: circle, since }| {
            let cycle = circle.iter().map(|&link| links[link as usize].from).collect();
            Deadlock { at: self.now, since, class, cycle }
        });
    }

    #[cfg(test)]
    pub(crate) fn is_by_entity(&self) -> bool {
        self.networks().all(Network::is_by_entity)
    }

    fn done(&self) -> bool {
        let end = self.world.config.window.1;
        if end != Time::NEVER {
            return self.true_now() >= end && self.messages.awaited == 0;
        }
        let MessageTable { open: 0, unbounded: 0, .. } = self.messages else { return false };
        !self.parts().any(|part| part.hosts().more_to_come())
    }

    fn parts(&self) -> impl Iterator<Item = &Partition<'o, WATCHED>> {
        self.loops.iter().map(EventLoop::part)
    }

    fn parts_mut(&mut self) -> impl Iterator<Item = &mut Partition<'o, WATCHED>> {
        self.loops.iter_mut().map(EventLoop::part_mut)
    }

    fn networks(&self) -> impl Iterator<Item = &Network<'o, WATCHED>> {
        self.parts().map(Partition::network)
    }

    fn events(&self) -> u64 {
        self.parts().map(|part| part.core().handled()).sum()
    }

    /// Remember the first violation.
    fn violate(&mut self, key: Option<MsgKey>, what: String) {
        let at = self.true_now();
        self.violation.get_or_insert(Violation::new(at, key, what));
    }

    fn conservation(&self) -> Conservation {
        let mut count = Conservation::default();
        for part in self.parts() {
            let (sent, received, _) = part.hosts().traffic();
            count.sent.join(sent);
            count.received.join(received);
            count.in_flight.join(part.network().in_flight());
            for drops in part.network().ports().iter().filter_map(|port| port.rare.drops.as_deref())
            {
                let amount = |packets, bytes| Amount { packets, bytes };
                count.dropped.join(amount(drops.dropped, drops.dropped_bytes));
                count.trimmed.join(amount(drops.trimmed, drops.trimmed_bytes));
            }
        }
        count
    }

    fn check_conservation(&mut self) {
        let count = self.conservation();
        if !count.holds() {
            self.violate(None, format!("packets or bytes are not conserved: {count:?}"));
        }
        self.parts_mut().for_each(|part| part.network_mut().check_memories());
        self.take_violations();
    }

    /// Where nothing waits in switches any more, nothing may be paused. (Where packets do wait, the
    /// run was stopped, or they wait for one another: [`Outcome::deadlock`].)
    fn check_resumed(&mut self) {
        if self.networks().all(Network::is_calm) {
            self.parts_mut().for_each(|part| part.network_mut().check_resumed());
            self.take_violations();
        }
    }

    /// Per link, both ends together.
    fn links(&self) -> Vec<LinkStats> {
        let mut links = vec![LinkStats::default(); self.world.topology.links().len()];
        for (link, stats) in self.networks().flat_map(|network| network.link_stats(self.now)) {
            links[link as usize].join(&stats);
        }
        links
    }

    /// Report what is still open, and hold it against what hosts have received.
    fn close_messages(&mut self) {
        let (partitioning, loops) = (&self.world.partitioning, &mut self.loops);
        let (records, wrong) = self.messages.drain(|host, key| {
            let owner = &mut loops[partitioning.host_owner(host) as usize];
            owner.part_mut().hosts_mut().take_placed(host, key)
        });
        for record in &records {
            self.observer.iter_mut().for_each(|observer| observer.message(record));
        }
        if let Some((key, what)) = wrong {
            self.violate(Some(key), what);
        }
        let leftover = self.parts().find_map(|part| part.hosts().leftover());
        if let Some(key) = leftover {
            self.violate(Some(key), "bytes placed after its end, or at another host".into());
        }
    }

    fn finish(mut self, end: End) -> Outcome {
        // What happens at `now` itself is beyond the end, departures too.
        let last = before(self.now);
        self.parts_mut().for_each(|part| part.network_mut().replay(last));
        let conservation = self.conservation();
        self.parts_mut().for_each(|part| part.network_mut().drop_packets());
        let mut links = self.links();
        self.report_counts(|_| true);
        let mut skipped = Skipped { time: self.skipped, count: 0 };
        if let Some(skipper) = &self.skipper {
            skipped.count = skipper.count;
            links.iter_mut().zip(&skipper.extra.links).for_each(|(all, more)| all.join(more));
        }
        Outcome {
            digest: self.digest(),
            now: self.true_now(),
            events: self.events(),
            partitions: self.networks().count() as u32,
            packet_hops: links.iter().map(|link| link.packets).sum(),
            counters: self.counters(&links),
            conservation,
            links,
            buffers: by_number(self.networks().flat_map(Network::buffer_stats)),
            memories: by_number(self.networks().flat_map(Network::memory_stats)),
            deadlock: self.deadlock,
            queue_bytes_p99: self.sampler.queue_p99(),
            samples: self.sampler.samples,
            skipped,
            end,
        }
    }

    /// Of each link what happened at either end, then of each host.
    fn digest(&self) -> u64 {
        let mut chains = vec![[0, 0]; self.world.topology.links().len()];
        for port in self.loops.iter().flat_map(|of| of.part().network().ports()) {
            // Where one port is one end of a link, it knows nothing of the other.
            let [sent, arrived] = &mut chains[port.rare.link as usize];
            *sent ^= port.chain;
            *arrived ^= port.arrived;
        }
        let hosts = self.parts().flat_map(|part| part.hosts().chains());
        digest::combine(chains.into_iter().flatten().chain(hosts))
    }

    fn counters(&self, links: &[LinkStats]) -> Counters {
        let mut sum = Counters {
            submitted: self.messages.submitted,
            delivered: self.messages.delivered,
            failed: self.messages.failed,
            ..Counters::default()
        };
        let skipped = self.skipper.as_ref().map(|skipper| skipper.extra.clone());
        let mut all = skipped.unwrap_or_else(|| Totals::none(0, 0));
        self.parts().for_each(|part| all.add(part));
        (sum.data_sent, sum.control_sent) = (all.data_sent, all.sent.packets - all.data_sent);
        (sum.faulted, sum.stats) = (all.faulted, all.stats);
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

/// What switches say, in the order of their numbers in the fabric.
fn by_number<T>(of_switches: impl Iterator<Item = (u32, T)>) -> Vec<T> {
    let mut all: Vec<(u32, T)> = of_switches.collect();
    all.sort_by_key(|&(number, _)| number);
    all.into_iter().map(|(_, of)| of).collect()
}
