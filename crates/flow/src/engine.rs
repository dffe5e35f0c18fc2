//! [`Sim`]: applications and messages, from event to event.

use std::collections::VecDeque;
use std::hash::Hasher;
use std::ops::ControlFlow;
use std::sync::Arc;

use endpoint::{
    App, AppCx, AppEffect, AppEvent, Draw, FailReason, Framing, JobRecord, MessageRecord, Msg,
    Observer, Stat, UNBOUNDED,
};
use fabric::{
    APP, Amount, Conservation, Counters, Encapsulation, End, FaultScript, HEIGHTS, LinkStats,
    Outcome, Progress, QueueBytes, SAMPLES_OF_INTERVAL, Sample, Skipped, Topology, Violated,
    Violation,
};
use hashbrown::HashMap;
use rustc_hash::{FxBuildHasher, FxHasher};
use units::{Dur, HostId, MsgId, MsgKey, Time, TimerId};

use crate::events::{Event, Events};
use crate::pipes::Pipes;
use crate::shares::{Rule, Shares};

/// An acknowledgement: a header of the shortest frame.
const ACK: Framing = Framing { payload: 1, overhead: 63 };

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
    /// Which message this is of all: events of earlier ones in its place are out of date.
    number: u64,
    /// When it is looked at again, at the latest when all of it is on its way.
    look_at: Time,
    opened: u64,
    /// Nothing of it is delivered before the one before it on its connection.
    not_before: Time,
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

/// That messages can travel so at flow level.
///
/// # Errors
/// What is sprayed over a fabric that is no tree of tiers, or beside what keeps to one path.
pub fn check(topology: &Topology, how: &[Encapsulation]) -> Result<(), String> {
    let is_tree = topology.hosts() < 2 || topology.stages(HostId(0), HostId(1)).is_some();
    let is_mixed = how.iter().any(|how| !how.spray);
    if !how.iter().any(|how| how.spray) || (is_tree && !is_mixed) {
        return Ok(());
    }
    let beside = if is_tree { " beside what keeps to one path" } else { "" };
    Err(format!("at flow level nothing is sprayed over a {}{beside}", topology.kind()))
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
    numbers: u64,
    /// Messages that wait for one before them on their connection.
    channels: HashMap<(HostId, HostId, u32), VecDeque<u32>, FxBuildHasher>,
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
    /// As of [`check`].
    pub fn new(
        topology: Arc<Topology>,
        config: Config,
        apps: Vec<Box<dyn App>>,
        observer: &'o mut (dyn Observer + Send),
    ) -> Result<Self, String> {
        check(&topology, &config.fabric.encapsulations)?;
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
            numbers: 0,
            channels: HashMap::default(),
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
            Event::Drained(place, number) => self.drained(place, number),
            Event::Opened(place, number) => self.opened(place, number),
            Event::Delivered(place) => self.deliver(place),
            Event::Acked(place) => self.acknowledge(place),
            Event::Timer(host, timer) => {
                let timers = &mut self.hosts[host.index()].timers;
                if timers.get(&timer) == Some(&self.now) {
                    timers.remove(&timer);
                    self.call(host, |app, cx| app.on_timer(cx, timer));
                    self.tell_pending();
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
        self.tell_pending();
    }

    fn tell_pending(&mut self) {
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
        let (topology, framing) = (&self.topology, how.framing);
        let bounded = msg.len != UNBOUNDED;
        let packets = framing.packets(msg.len);
        let overhead = packets.saturating_mul(framing.overhead.into());
        let ack = topology.ideal(msg.dst, src, 1, ACK, false);
        let window = self.config.laws[usize::from(msg.transport)].window;
        // Only windows ask for it.
        let full = window.map_or(Dur::ZERO, |_| {
            topology.ideal(src, msg.dst, framing.payload.into(), framing, false)
        });
        self.numbers += 1;
        let live = Live {
            msg,
            key,
            tag,
            token,
            submitted: self.now,
            ideal: topology.ideal(src, msg.dst, msg.len, framing, how.spray),
            wire: if bounded { (msg.len + overhead) as f64 } else { f64::INFINITY },
            left: f64::INFINITY,
            moved: 0.0,
            in_window: 0.0,
            rate: 0.0,
            since: self.now,
            member: None,
            number: self.numbers,
            look_at: Time::NEVER,
            opened: 0,
            not_before: Time::ZERO,
            tail: Dur::ZERO,
            ack,
            window: window.map_or(f64::INFINITY, |bytes| bytes as f64),
            rtt: full + ack,
            delivered: None,
        };
        if bounded {
            self.packets += packets;
            self.wire += msg.len + overhead;
        }
        self.counters.submitted += 1;
        self.open += u64::from(bounded);
        self.unbounded += u64::from(!bounded);
        self.awaited += u64::from(bounded && self.is_awaited(self.now));
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.messages.push(None);
            self.messages.len() as u32 - 1
        });
        self.places.insert(key, place);
        self.messages[place as usize] = Some(live);
        if msg.channel != 0 {
            let channel = self.channels.entry((src, msg.dst, msg.channel)).or_default();
            channel.push_back(place);
            if channel.len() > 1 {
                return;
            }
        }
        self.start(place);
    }

    /// A message begins to move: alone, or the first of its connection.
    fn start(&mut self, place: u32) {
        let topology = Arc::clone(&self.topology);
        let Some(live) = self.messages[place as usize].as_mut() else { return };
        let how = self.config.fabric.encapsulations[usize::from(live.msg.transport)];
        let ends = (live.key, live.msg.dst);
        let way = self.pipes.way(&topology, &mut self.shares, ends, how.spray);
        if live.wire.is_finite() {
            self.packet_hops += how.framing.packets(live.msg.len) * way.len() as u64;
        }
        let member = self.shares.add(way, f64::INFINITY, live.wire);
        let alone = live.wire / self.shares.narrowest(member);
        live.tail = Dur(live.ideal.0.saturating_sub(alone as u64));
        (live.member, live.left, live.since) = (Some(member), live.wire, self.now);
        let is_bound = live.window.is_finite();
        self.own(member, place);
        if is_bound {
            self.bound(place);
        }
    }

    /// `member` is the message at `place`.
    fn own(&mut self, member: u32, place: u32) {
        if self.owners.len() <= member as usize {
            self.owners.resize(member as usize + 1, 0);
        }
        self.owners[member as usize] = place;
    }

    /// All of a message is on its way and there at `at`, or it is given up: the next of its
    /// connection begins.
    fn leave_channel(&mut self, (src, msg): (HostId, Msg), place: u32, at: Time) {
        let of = (src, msg.dst, msg.channel);
        let Some(channel) = self.channels.get_mut(&of) else { return };
        let was_first = channel.front() == Some(&place);
        channel.retain(|waits| *waits != place);
        match channel.front().copied() {
            None => drop(self.channels.remove(&of)),
            Some(next) if was_first => {
                if let Some(live) = self.messages[next as usize].as_mut() {
                    live.not_before = at;
                }
                self.start(next);
            }
            Some(_) => {}
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
            self.numbers += 1;
            live.opened = self.numbers;
            self.events.push(self.now + live.rtt, Event::Opened(place, self.numbers));
        }
    }

    fn opened(&mut self, place: u32, number: u64) {
        let Some(live) = self.messages[place as usize].as_mut() else { return };
        if live.opened == number {
            live.window *= 2.0;
            self.bound(place);
        }
    }

    /// Work out who gets how much now, and when each is done.
    fn share(&mut self) {
        if self.shares.is_settled() {
            return;
        }
        self.shares.settle(self.now);
        for member in self.shares.take_changed() {
            let place = self.owners[member as usize];
            self.move_on(place);
            let rate = self.shares.rate(member);
            self.shares.set_speed(member, rate);
            if let Some(live) = self.messages[place as usize].as_mut() {
                live.rate = rate;
            }
            self.look_again(place);
        }
    }

    /// Look at a message when all of it is on its way at its rate, unless it is looked at before.
    fn look_again(&mut self, place: u32) {
        let Some(live) = self.messages[place as usize].as_mut() else { return };
        if live.rate > 0.0 && live.left.is_finite() {
            let at = self.now.saturating_add(Dur((live.left / live.rate).ceil() as u64));
            if at < live.look_at {
                live.look_at = at;
                self.events.push(at, Event::Drained(place, live.number));
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
            self.shares.set_left(member, live.left, self.now);
            return;
        }
        live.left -= moved;
        live.moved += moved;
        live.in_window += if in_window { moved } else { 0.0 };
        for &pipe in self.shares.pipes(member) {
            self.pipes.carry(pipe, moved, in_window);
        }
        self.shares.set_left(member, live.left, self.now);
    }

    fn move_all(&mut self) {
        (0..self.messages.len() as u32).for_each(|place| self.move_on(place));
    }

    /// Perhaps all of a message is on its way.
    fn drained(&mut self, place: u32, number: u64) {
        let now = self.now;
        let due =
            |live: &Live| live.number == number && live.member.is_some() && live.look_at <= now;
        if !self.messages[place as usize].as_ref().is_some_and(due) {
            return;
        }
        self.move_on(place);
        let Some(live) = self.messages[place as usize].as_mut() else { return };
        live.look_at = Time::NEVER;
        // Less than moves in a picosecond is rounding.
        if live.left > live.rate {
            return self.look_again(place);
        }
        let Some(member) = live.member.take() else { return };
        live.moved += std::mem::take(&mut live.left);
        let at = (now + live.tail).max(live.submitted + live.ideal).max(live.not_before);
        let of = (live.key.src, live.msg);
        self.shares.remove(member);
        self.events.push(at, Event::Delivered(place));
        self.leave_channel(of, place, at);
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
        // One that waits for another has not begun.
        let is_moving = self.messages[place as usize].as_ref().is_some_and(|l| l.left > 0.0);
        let Some(live) = self.messages[place as usize].take_if(|_| is_moving) else { return };
        live.member.into_iter().for_each(|member| self.shares.remove(member));
        self.leave_channel((key.src, live.msg), place, live.not_before);
        let how = self.config.fabric.encapsulations[usize::from(live.msg.transport)];
        self.placed_bytes += live.payload(live.moved, how.framing);
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
        for live in &left {
            self.note(live.key, live.moved as u64);
            self.report(live, None, None);
        }
    }

    fn fault(&mut self) {
        // What has moved until now moved over the links as they were.
        self.move_all();
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
        let is_bound = live.window.is_finite();
        self.own(member, place);
        if is_bound {
            self.bound(place);
        }
    }

    fn sample(&mut self) {
        self.move_all();
        let mut tier_bytes = [0.0; HEIGHTS];
        for (link, (bytes, _)) in self.topology.links().iter().zip(self.pipes.carried()) {
            tier_bytes[link.height()] += bytes;
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

    fn outcome(mut self, end: End) -> Outcome {
        let mut links = vec![LinkStats::default(); self.topology.links().len()];
        for (link, (bytes, in_window)) in links.iter_mut().zip(self.pipes.carried()) {
            (link.bytes, link.bytes_in_window) = (*bytes as u64, *in_window as u64);
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
            skipped: Skipped::default(),
            end,
        }
    }
}
