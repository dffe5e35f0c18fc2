//! [`Sim`]: applications and messages, from event to event.

use std::collections::VecDeque;
use std::hash::Hasher;
use std::ops::ControlFlow;
use std::sync::Arc;

use endpoint::{
    App, AppCx, AppEffect, AppEvent, Draw, FailReason, Framing, JobRecord, MessageRecord, Msg,
    Observer, Purpose, Stat, UNBOUNDED,
};
use fabric::{
    Amount, Conservation, Counters, End, FaultScript, LinkStats, Outcome, Progress, QueueBytes,
    Sample, Topology, Violated, Violation,
};
use hashbrown::HashMap;
use rustc_hash::{FxBuildHasher, FxHasher};
use units::{Dur, HostId, MsgId, MsgKey, Time, TimerId};

use crate::events::{Event, Events};
use crate::pipes::{Pipes, height};
use crate::shares::{Rule, Shares};

/// As over packets: the same draws.
const APP: Purpose = Purpose::new("application");

/// An acknowledgement: a header of the shortest frame.
const ACK: Framing = Framing { payload: 1, overhead: 63 };

/// After so many samples the time between two doubles, and again after as many more: so it is over
/// packets.
const SAMPLES_OF_INTERVAL: usize = 20_000;

/// Events at one instant, at most: applications that wake each other without end.
const AT_ONCE_MAX: u64 = 50_000_000;

/// How the messages of a transport share a fabric, by [`Msg::transport`] as
/// [`fabric::Config::encapsulations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Law {
    /// Bytes on the wire that are sent before anything is acknowledged, twice as many in each
    /// round trip after that; `None`: as many as the share allows.
    pub window: Option<u64>,
}

/// What a run is of: the same as one over packets, of which queues, switches and clocks have no
/// meaning.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who gets how much.
    pub rule: Rule,
    /// By transport.
    pub laws: Vec<Law>,
    /// Seed, encapsulations, faults, window, limit, grid and samples.
    pub fabric: fabric::Config,
}

struct Host {
    app: Box<dyn App>,
    draw: Draw,
    next_id: MsgId,
    timers: HashMap<TimerId, Time, FxBuildHasher>,
    received: u64,
}

/// A message that is not over at both ends.
struct Live {
    msg: Msg,
    key: MsgKey,
    tag: u16,
    token: u64,
    submitted: Time,
    ideal: Dur,
    /// Bytes on the wire, those that are left, and what of them moved inside the window.
    wire: f64,
    left: f64,
    moved: f64,
    in_window: f64,
    /// Bytes per picosecond since then.
    rate: f64,
    since: Time,
    /// Its place among those who share, until all of it is on its way.
    member: Option<u32>,
    /// Of the events that are not out of date.
    drained: u32,
    opened: u32,
    /// What its end takes longer than the fluid.
    tail: Dur,
    /// How long an acknowledgement takes.
    ack: Dur,
    /// What may be sent in a round trip of `rtt`.
    window: f64,
    rtt: Dur,
    delivered: Option<Time>,
}

impl Live {
    /// Payload for bytes on the wire.
    fn payload(&self, wire: f64, framing: Framing) -> u64 {
        if self.msg.len == UNBOUNDED {
            let share = f64::from(framing.payload) / f64::from(framing.payload + framing.overhead);
            return (wire * share) as u64;
        }
        (wire / self.wire * self.msg.len as f64).round() as u64
    }
}

/// A fabric with its applications, ready to run once.
pub struct Sim<'o> {
    topology: Arc<Topology>,
    config: Config,
    shares: Shares,
    pipes: Pipes,
    events: Events,
    hosts: Vec<Host>,
    messages: Vec<Option<Live>>,
    vacant: Vec<u32>,
    places: HashMap<MsgKey, u32, FxBuildHasher>,
    /// The message of each member.
    owners: Vec<u32>,
    observer: &'o mut (dyn Observer + Send),
    script: FaultScript,
    pending: VecDeque<(HostId, AppEvent)>,
    now: Time,
    versions: u32,
    handled: u64,
    packets: u64,
    packet_hops: u64,
    wire: u64,
    placed_bytes: u64,
    counters: Counters,
    open: u64,
    awaited: u64,
    unbounded: u64,
    samples: Vec<Sample>,
    digest: FxHasher,
    violation: Option<Violation>,
}

impl<'o> Sim<'o> {
    /// Join applications, one for each host, by a fabric.
    ///
    /// # Errors
    /// What is sprayed over a fabric that is no tree of tiers.
    pub fn new(
        topology: Arc<Topology>,
        config: Config,
        apps: Vec<Box<dyn App>>,
        observer: &'o mut (dyn Observer + Send),
    ) -> Result<Self, String> {
        let sprays = config.fabric.encapsulations.iter().any(|how| how.spray);
        if sprays && topology.hosts() > 1 && topology.stages(HostId(0), HostId(1)).is_none() {
            let kind = topology.kind();
            return Err(format!("at flow level nothing is sprayed over the paths of a {kind}"));
        }
        let seed = config.fabric.seed;
        let host = |(n, app)| Host {
            app,
            draw: Draw::new(seed, APP, n),
            next_id: MsgId(0),
            timers: HashMap::default(),
            received: 0,
        };
        let hosts = (0..).zip(apps).map(host).collect();
        let script =
            FaultScript::new(&topology, &config.fabric.faults, config.fabric.reroute_after);
        Ok(Self {
            shares: Shares::new(config.rule),
            pipes: Pipes::new(&topology, seed),
            events: Events::default(),
            hosts,
            messages: Vec::new(),
            vacant: Vec::new(),
            places: HashMap::default(),
            owners: Vec::new(),
            observer,
            script,
            pending: VecDeque::new(),
            now: Time::ZERO,
            versions: 0,
            handled: 0,
            packets: 0,
            packet_hops: 0,
            wire: 0,
            placed_bytes: 0,
            counters: Counters::default(),
            open: 0,
            awaited: 0,
            unbounded: 0,
            samples: Vec::new(),
            digest: FxHasher::default(),
            violation: None,
            topology,
            config,
        })
    }

    /// Run to the end, as [`fabric::Sim::run`] does.
    ///
    /// # Errors
    /// Applications that wake each other at one instant without end.
    pub fn run(
        mut self,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Outcome, Box<Violated>> {
        let (from, to) = self.config.fabric.window;
        self.events.push(from, Event::Edge);
        self.events.push(to, Event::Edge);
        if let Some(every) = self.config.fabric.sample_every {
            self.events.push(Time(every.0), Event::Sample);
        }
        self.events.push(self.script.next_at().unwrap_or(Time::NEVER), Event::Fault);
        for host in 0..self.hosts.len() as u32 {
            self.call(HostId(host), |app, cx| app.on_start(cx));
        }
        self.share();
        let end = self.run_grid(progress);
        for host in 0..self.hosts.len() as u32 {
            self.call(HostId(host), |app, cx| app.on_end(cx));
        }
        self.close();
        let violation = self.violation.take();
        let outcome = self.outcome(if violation.is_some() { End::Violated } else { end });
        match violation {
            None => Ok(outcome),
            Some(violation) => Err(Box::new(Violated { violation, outcome })),
        }
    }

    /// Handle events from grid step to grid step.
    fn run_grid(&mut self, progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> End {
        let (grid, limit) = (self.config.fabric.grid.0.max(1), self.config.fabric.limit);
        let mut step = Time(grid);
        loop {
            let stop = step.min(limit);
            self.advance(stop);
            let report = Progress {
                now: stop,
                events: self.handled,
                submitted: self.counters.submitted,
                delivered: self.counters.delivered,
                placed_bytes: self.placed_bytes,
            };
            if self.violation.is_some() || progress(&report).is_break() {
                return End::Stopped;
            }
            if self.open > self.config.fabric.open_limit {
                return End::Backlog;
            }
            if self.is_done() {
                return End::Complete;
            }
            if stop == limit {
                return End::Limit;
            }
            let next = self.events.next_at();
            if next == Time::NEVER {
                return End::Idle;
            }
            step = Time((next.0 / grid + 1).saturating_mul(grid)).max(Time(step.0 + grid));
        }
    }

    fn is_done(&self) -> bool {
        let end = self.config.fabric.window.1;
        if end != Time::NEVER {
            return self.now >= end && self.awaited == 0;
        }
        self.open == 0 && self.unbounded == 0 && !self.hosts.iter().any(|h| h.app.more_to_come())
    }

    /// Handle everything before `stop`.
    fn advance(&mut self, stop: Time) {
        while self.events.next_at() < stop && self.violation.is_none() {
            self.now = self.events.next_at();
            let before = self.handled;
            while self.events.next_at() == self.now {
                while let Some(event) = self.events.pop(self.now) {
                    self.handled += 1;
                    self.handle(event);
                }
                self.share();
                if self.handled - before > AT_ONCE_MAX {
                    let what = "applications wake each other at one instant without end".into();
                    let (at, key, recent) = (self.now, None, Vec::new());
                    let is_outside = false;
                    self.violation = Some(Violation { at, key, what, is_outside, recent });
                    return;
                }
            }
        }
        self.now = self.now.max(stop);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Drained(place, version) => self.drained(place, version),
            Event::Opened(place, version) => self.opened(place, version),
            Event::Delivered(place) => self.deliver(place),
            Event::Acked(place) => self.acknowledge(place),
            Event::Timer(host, timer) => {
                let timers = &mut self.hosts[host.index()].timers;
                if timers.get(&timer) == Some(&self.now) {
                    timers.remove(&timer);
                    self.call(host, |app, cx| app.on_timer(cx, timer));
                }
            }
            Event::Signal(to, from, tag, token) => {
                self.tell(to, AppEvent::Signal { from, tag, token });
            }
            Event::Fault => self.fault(),
            Event::Edge => self.move_all(),
            Event::Sample => self.sample(),
        }
    }

    fn tell(&mut self, host: HostId, event: AppEvent) {
        self.pending.push_back((host, event));
        while let Some((host, event)) = self.pending.pop_front() {
            self.call(host, |app, cx| app.on_event(cx, event));
        }
    }

    /// Call an application, and do what it wants.
    fn call(&mut self, me: HostId, call: impl FnOnce(&mut dyn App, &mut AppCx<'_>)) {
        let mut effects = Vec::new();
        let host = &mut self.hosts[me.index()];
        let mut cx = AppCx {
            now: self.now,
            me,
            draw: host.draw,
            received: host.received,
            next_id: &mut host.next_id,
            fx: &mut effects,
        };
        call(&mut *host.app, &mut cx);
        for effect in effects {
            match effect {
                AppEffect::Submit { msg, tag, token } => self.submit(me, msg, tag, token),
                AppEffect::Cancel(id) => self.cancel(MsgKey { src: me, id }),
                AppEffect::Arm { timer, at } => {
                    self.hosts[me.index()].timers.insert(timer, at);
                    self.events.push(at.max(self.now), Event::Timer(me, timer));
                }
                AppEffect::Signal { to, token, after, tag } => {
                    self.events.push(self.now + after, Event::Signal(to, me, tag, token));
                }
                AppEffect::Job(job) => self.observer.job(&JobRecord { host: me, job }),
            }
        }
    }

    fn submit(&mut self, src: HostId, msg: Msg, tag: u16, token: u64) {
        let key = MsgKey { src, id: msg.id };
        let how = self.config.fabric.encapsulations[usize::from(msg.transport)];
        let law = self.config.laws[usize::from(msg.transport)];
        let (topology, framing) = (Arc::clone(&self.topology), how.framing);
        let way = self.pipes.way(&topology, &mut self.shares, (key, msg.dst), how.spray);
        let bounded = msg.len != UNBOUNDED;
        let packets = framing.packets(msg.len);
        let overhead = packets.saturating_mul(framing.overhead.into());
        let wire = if bounded { (msg.len + overhead) as f64 } else { f64::INFINITY };
        let ideal = topology.ideal(src, msg.dst, msg.len, framing, how.spray);
        let ack = topology.ideal(msg.dst, src, 1, ACK, false);
        let full = topology.ideal(src, msg.dst, framing.payload.into(), framing, false);
        if bounded {
            self.packets += packets;
            self.packet_hops += packets * way.len() as u64;
            self.wire += msg.len + overhead;
        }
        let member = self.shares.add(way, f64::INFINITY, wire);
        let line = self.shares.narrowest(member);
        let alone = if bounded { Dur((wire / line) as u64) } else { Dur::ZERO };
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.messages.push(None);
            self.messages.len() as u32 - 1
        });
        if self.owners.len() <= member as usize {
            self.owners.resize(member as usize + 1, 0);
        }
        self.owners[member as usize] = place;
        self.places.insert(key, place);
        self.counters.submitted += 1;
        self.open += u64::from(bounded);
        self.unbounded += u64::from(!bounded);
        self.awaited += u64::from(bounded && self.is_awaited(self.now));
        self.messages[place as usize] = Some(Live {
            msg,
            key,
            tag,
            token,
            submitted: self.now,
            ideal,
            wire,
            left: wire,
            moved: 0.0,
            in_window: 0.0,
            rate: 0.0,
            since: self.now,
            member: Some(member),
            drained: 0,
            opened: 0,
            tail: Dur(ideal.0.saturating_sub(alone.0)),
            ack,
            window: law.window.map_or(f64::INFINITY, |bytes| bytes as f64),
            rtt: full + ack,
            delivered: None,
        });
        if self.shares.rule() == Rule::ShortestFirst {
            self.move_neighbours(member);
        }
        if law.window.is_some() {
            self.bound(place);
        }
    }

    /// Whether a message that is submitted at `at` is waited for.
    fn is_awaited(&self, at: Time) -> bool {
        let (from, to) = self.config.fabric.window;
        at >= from && at < to
    }

    /// Bound the rate of a message by its window, until that is no bound.
    fn bound(&mut self, place: u32) {
        let Some(live) = self.messages[place as usize].as_mut() else { return };
        let Some(member) = live.member else { return };
        let cap = live.window / live.rtt.0.max(1) as f64;
        let is_open = cap >= self.shares.narrowest(member);
        self.shares.set_cap(member, if is_open { f64::INFINITY } else { cap });
        if !is_open {
            self.versions += 1;
            live.opened = self.versions;
            self.events.push(self.now + live.rtt, Event::Opened(place, self.versions));
        }
    }

    fn opened(&mut self, place: u32, version: u32) {
        let Some(live) = self.messages[place as usize].as_mut() else { return };
        if live.opened == version {
            live.window *= 2.0;
            self.bound(place);
        }
    }

    /// Work out who gets how much now, and when each is done.
    fn share(&mut self) {
        if self.shares.is_settled() {
            return;
        }
        self.shares.settle();
        for member in self.shares.take_changed() {
            let place = self.owners[member as usize];
            self.move_on(place);
            let rate = self.shares.rate(member);
            let Some(live) = self.messages[place as usize].as_mut() else { continue };
            live.rate = rate;
            self.versions += 1;
            live.drained = self.versions;
            if rate > 0.0 && live.left.is_finite() {
                let time = Dur((live.left / rate).ceil() as u64);
                let event = Event::Drained(place, self.versions);
                self.events.push(self.now.saturating_add(time), event);
            }
        }
    }

    /// Let a message move until now at the rate that it had.
    fn move_on(&mut self, place: u32) {
        let Some(live) = self.messages[place as usize].as_mut() else { return };
        let Some(member) = live.member else { return };
        let moved = (live.rate * self.now.since(live.since).0 as f64).min(live.left);
        let (from, to) = self.config.fabric.window;
        let in_window = live.since >= from && self.now <= to;
        live.since = self.now;
        if moved == 0.0 {
            return;
        }
        live.left -= moved;
        live.moved += moved;
        live.in_window += if in_window { moved } else { 0.0 };
        for &pipe in self.shares.pipes(member) {
            self.pipes.carry(pipe, moved, in_window);
        }
        self.shares.set_left(member, live.left);
    }

    fn move_all(&mut self) {
        (0..self.messages.len() as u32).for_each(|place| self.move_on(place));
    }

    /// Let those move who share a host's link with a member: who is shorter is to be seen.
    fn move_neighbours(&mut self, member: u32) {
        let pipes = self.shares.pipes(member);
        let ends = [pipes.first().copied(), pipes.last().copied()];
        let neighbours: Vec<u32> =
            ends.into_iter().flatten().flat_map(|pipe| self.shares.members(pipe)).collect();
        for neighbour in neighbours {
            self.move_on(self.owners[neighbour as usize]);
        }
    }

    /// All of a message is on its way.
    fn drained(&mut self, place: u32, version: u32) {
        if self.messages[place as usize].as_ref().is_none_or(|live| live.drained != version) {
            return;
        }
        self.move_on(place);
        let Some(live) = self.messages[place as usize].as_mut() else { return };
        let Some(member) = live.member.take() else { return };
        live.moved += std::mem::take(&mut live.left);
        self.shares.remove(member);
        let at = (self.now + live.tail).max(live.submitted + live.ideal);
        self.events.push(at, Event::Delivered(place));
    }

    fn deliver(&mut self, place: u32) {
        let now = self.now;
        let Some(live) = self.messages[place as usize].as_mut() else { return };
        live.delivered = Some(now);
        let (key, dst, len) = (live.key, live.msg.dst, live.msg.len);
        let (tag, token, wire, submitted) = (live.tag, live.token, live.wire, live.submitted);
        self.events.push(now + live.ack, Event::Acked(place));
        self.awaited -= u64::from(self.is_awaited(submitted));
        self.open -= 1;
        self.counters.delivered += 1;
        self.placed_bytes += len;
        self.hosts[dst.index()].received += wire as u64;
        self.note(key, 1);
        self.tell(dst, AppEvent::Delivered { key, len, tag, token });
    }

    fn acknowledge(&mut self, place: u32) {
        let Some(live) = self.messages[place as usize].take() else { return };
        self.vacant.push(place);
        self.places.remove(&live.key);
        self.note(live.key, 2);
        self.report(&live, Some(self.now), None);
        self.tell(live.key.src, AppEvent::Acked(live.key.id));
    }

    /// Give a message up; one that is on its way arrives all the same.
    fn cancel(&mut self, key: MsgKey) {
        let Some(&place) = self.places.get(&key) else { return };
        self.move_on(place);
        let is_moving = self.messages[place as usize].as_ref().is_some_and(|l| l.member.is_some());
        let Some(live) = self.messages[place as usize].take_if(|_| is_moving) else { return };
        live.member.into_iter().for_each(|member| self.shares.remove(member));
        self.vacant.push(place);
        self.places.remove(&key);
        let bounded = live.msg.len != UNBOUNDED;
        self.open -= u64::from(bounded);
        self.unbounded -= u64::from(!bounded);
        self.awaited -= u64::from(bounded && self.is_awaited(live.submitted));
        self.counters.failed += 1;
        self.note(key, 3);
        self.report(&live, None, Some(FailReason::Cancelled));
        self.pending.push_back((key.src, AppEvent::Failed(key, FailReason::Cancelled)));
    }

    /// One more link of the digest.
    fn note(&mut self, key: MsgKey, what: u64) {
        for word in [self.now.0, u64::from(key.src.0), key.id.0, what] {
            self.digest.write_u64(word);
        }
    }

    /// Tell the observer what became of a message.
    fn report(&mut self, live: &Live, acked: Option<Time>, failed: Option<FailReason>) {
        let how = self.config.fabric.encapsulations[usize::from(live.msg.transport)];
        self.observer.message(&MessageRecord {
            key: live.key,
            dst: live.msg.dst,
            len: live.msg.len,
            tag: live.tag,
            submitted: live.submitted,
            deadline: live.msg.deadline,
            delivered: live.delivered,
            acked,
            failed,
            ideal: live.ideal,
            placed: live.payload(live.moved, how.framing),
            placed_in_window: live.payload(live.in_window, how.framing),
        });
    }

    /// The run is over: messages that are not have their records, too.
    fn close(&mut self) {
        self.move_all();
        let mut left: Vec<Live> = self.messages.iter_mut().filter_map(Option::take).collect();
        left.sort_by_key(|live| live.key);
        left.iter().for_each(|live| self.report(live, None, None));
    }

    fn fault(&mut self) {
        let mut reroutes = false;
        while let Some(step) = self.script.take(self.now) {
            reroutes |= self.pipes.change(&mut self.shares, step.link, step.change);
        }
        self.events.push(self.script.next_at().unwrap_or(Time::NEVER), Event::Fault);
        if reroutes {
            (0..self.messages.len() as u32).for_each(|place| self.reroute(place));
        }
    }

    /// Take another path if that of a message does not work.
    fn reroute(&mut self, place: u32) {
        let topology = Arc::clone(&self.topology);
        self.move_on(place);
        let Some(live) = self.messages[place as usize].as_mut() else { return };
        let Some(member) = live.member else { return };
        let how = self.config.fabric.encapsulations[usize::from(live.msg.transport)];
        let ends = (live.key, live.msg.dst);
        let way = self.pipes.way(&topology, &mut self.shares, ends, how.spray);
        if way == self.shares.pipes(member) {
            return;
        }
        self.shares.remove(member);
        let member = self.shares.add(way, f64::INFINITY, live.left);
        live.member = Some(member);
        live.rate = 0.0;
        if self.owners.len() <= member as usize {
            self.owners.resize(member as usize + 1, 0);
        }
        self.owners[member as usize] = place;
        if live.window.is_finite() {
            self.bound(place);
        }
    }

    fn sample(&mut self) {
        self.move_all();
        let mut tier_bytes = [0.0; 3];
        for (link, bytes, _) in self.pipes.carried() {
            tier_bytes[height(&self.topology, link)] += bytes;
        }
        let payload = |live: &Live| {
            let how = self.config.fabric.encapsulations[usize::from(live.msg.transport)];
            live.delivered.map_or_else(|| live.payload(live.moved, how.framing), |_| 0)
        };
        let moving: u64 = self.messages.iter().flatten().map(payload).sum();
        self.samples.push(Sample {
            at: self.now,
            queue_bytes: QueueBytes::default(),
            placed_bytes: self.placed_bytes + moving,
            packets: self.packets,
            messages_in_flight: self.open + self.unbounded,
            tier_bytes: tier_bytes.map(|bytes| bytes as u64),
        });
        // As long as something is to come beside samples.
        if let Some(every) = self.config.fabric.sample_every
            && self.events.next_at() != Time::NEVER
        {
            let longer = 1_u64 << (self.samples.len() / SAMPLES_OF_INTERVAL).min(40);
            self.events.push(self.now.saturating_add(every * longer), Event::Sample);
        }
    }

    fn outcome(self, end: End) -> Outcome {
        let mut links = vec![LinkStats::default(); self.topology.links().len()];
        for (link, bytes, in_window) in self.pipes.carried() {
            let link = &mut links[link as usize];
            link.bytes += bytes as u64;
            link.bytes_in_window += in_window as u64;
        }
        let all = Amount { packets: self.packets, bytes: self.wire };
        let conservation = Conservation { sent: all, received: all, ..Conservation::default() };
        let counters =
            Counters { data_sent: self.packets, stats: [0; Stat::COUNT], ..self.counters };
        Outcome {
            digest: self.digest.finish(),
            now: self.now,
            events: self.handled,
            partitions: 1,
            packet_hops: self.packet_hops,
            counters,
            conservation,
            links,
            buffers: Vec::new(),
            memories: Vec::new(),
            deadlock: None,
            samples: self.samples,
            queue_bytes_p99: None,
            end,
        }
    }
}
