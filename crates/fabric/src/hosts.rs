//! The hosts of a partition: endpoints and applications, their timers, and what they say of
//! messages. Packets come from and go to the [`Network`].
//!
//! Everything that happens at a host at one time runs inline, in the order of the caller's contract
//! (see [`Endpoint`]).

mod skip;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use endpoint::{
    App, AppCx, AppEffect, AppEvent, Cx, Draw, Effect, Effects, Endpoint, JobRecord, Msg, NetView,
    Packet, Purpose, RttRecord, Stat, Submit, Tx, TxPort,
};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, MsgId, MsgKey, Rate, Time, TimerId};

use crate::config::Config;
use crate::digest::{self, Outcome};
use crate::flow_trace::FlowTrace;
use crate::link_state::RoutingView;
use crate::livelock::{CALLS_MAX, Recent, RecentKind};
use crate::message_table::{MessageEvent, Report};
use crate::network::{Network, Sent};
use crate::outcome::{Amount, Violation};
use crate::outgoing::{Note, Outgoing, Signal};
use crate::per_message_stats::PerMessageStats;
use crate::reassembly::{Placed, Reassembly};
use crate::slab;
use crate::timers::IndexedHeap;
use crate::world::World;

const ENDPOINT: Purpose = Purpose::new("endpoint");
/// Draws of applications: the same at every level of a model.
pub const APP: Purpose = Purpose::new("application");

// What is touched for every packet comes first.
#[repr(C)]
struct Host {
    endpoint: Box<dyn Endpoint>,
    me: HostId,
    /// The token of the packet in service; zero if it was not asked for.
    token: u32,
    nics: [Rate; 1],
    draw: Draw,
    /// The endpoint has nothing to send before this, if not for an event.
    wake: Time,
    received: Amount,
    sent: Amount,
    data_sent: u64,
    timers: IndexedHeap<Time>,
    /// What has come of the messages to it.
    reassembly: Reassembly,
    app: Box<dyn App>,
    app_timers: IndexedHeap<Time>,
    inbox: BinaryHeap<Reverse<Signal>>,
    /// Signals sent so far.
    signals: u64,
    next_id: MsgId,
    /// Messages that the endpoint had no room for.
    backlog: VecDeque<Msg>,
    /// What the application's event is scheduled for.
    app_at: Time,
    app_draw: Draw,
    /// The digest chain of its messages.
    chain: u64,
    /// Bytes that count as received in time that was skipped.
    skipped_bytes: u64,
}

impl Host {
    fn new(
        me: HostId,
        endpoint: Box<dyn Endpoint>,
        app: Box<dyn App>,
        rate: Rate,
        config: &Config,
    ) -> Self {
        Self {
            me,
            endpoint,
            app,
            timers: IndexedHeap::new(),
            app_timers: IndexedHeap::new(),
            inbox: BinaryHeap::new(),
            signals: 0,
            next_id: MsgId(0),
            backlog: VecDeque::new(),
            wake: Time::NEVER,
            app_at: Time::NEVER,
            draw: Draw::new(config.seed, ENDPOINT, u64::from(me.0)),
            app_draw: Draw::new(config.seed, APP, u64::from(me.0)),
            nics: [rate],
            token: 0,
            sent: Amount::default(),
            received: Amount::default(),
            data_sent: 0,
            reassembly: Reassembly::new(config.window),
            chain: 0,
            skipped_bytes: 0,
        }
    }

    /// Have the endpoint at hand soon, as far as can be seen from here.
    #[inline(always)]
    fn prefetch_endpoint(&self) {
        slab::prefetch::<_, 8>(&*self.endpoint);
    }

    /// The same for what is behind pointers of what is at hand already: `step` 0, then 1.
    #[inline(always)]
    fn prefetch_behind(&self, step: u8) {
        self.endpoint.prefetch(step);
        self.reassembly.prefetch(step);
    }

    /// Call the endpoint with a context for `now`.
    fn enter<R>(
        &mut self,
        view: &RoutingView<'_>,
        now: Time,
        fx: &mut Effects,
        call: impl FnOnce(&mut dyn Endpoint, &mut Cx<'_>) -> R,
    ) -> R {
        let mtu = view.topology.mtu();
        let whole = view.state.is_whole();
        let net = NetView {
            me: self.me,
            nics: &self.nics,
            mtu,
            whole,
            lateness: Dur::ZERO,
            routes: view,
        };
        let mut cx =
            Cx { now, rx_at: now, me: self.me, room: u64::MAX, net: &net, draw: self.draw, fx };
        call(&mut *self.endpoint, &mut cx)
    }

    fn enter_app(
        &mut self,
        now: Time,
        fx: &mut Vec<AppEffect>,
        call: impl FnOnce(&mut dyn App, &mut AppCx<'_>),
    ) {
        let next_id = &mut self.next_id;
        let received = self.received.bytes + self.skipped_bytes;
        let mut cx = AppCx { now, me: self.me, draw: self.app_draw, received, next_id, fx };
        call(&mut *self.app, &mut cx);
    }

    /// When something happens here although no packet comes; never, if nothing does. So much time
    /// has been `skipped`.
    fn next_at(&self, skipped: Dur) -> Time {
        self.next_timer().min(simulated(self.next_app(), skipped))
    }

    #[inline(always)]
    fn next_timer(&self) -> Time {
        self.timers.peek().map_or(Time::NEVER, |(at, _)| at).min(self.wake)
    }

    /// When the application has something to do next, in true time.
    fn next_app(&self) -> Time {
        let timer = self.app_timers.peek().map_or(Time::NEVER, |(at, _)| at);
        let signal = self.inbox.peek().map_or(Time::NEVER, |Reverse(signal)| signal.at);
        timer.min(signal)
    }
}

/// `WATCHED`: as of the network.
pub(crate) struct Hosts<const WATCHED: bool> {
    world: Arc<World>,
    /// Hosts too many for the nearer caches, what is behind their pointers included.
    far: bool,
    hosts: Vec<Host>,
    /// The number in the fabric of the first host.
    first: u32,
    /// What is said with the messages that its hosts have yet to receive, where anything is. As the
    /// table of messages, it keeps those that failed: the receiver may have all of such a message.
    notes: HashMap<MsgKey, Note, FxBuildHasher>,
    /// What has happened to messages since the run last asked.
    reports: Vec<Report>,
    /// What applications have reported since.
    jobs: Vec<JobRecord>,
    /// Round-trip samples since.
    rtts: Vec<RttRecord>,
    /// An allocated packet that no endpoint wanted yet.
    spare: Option<u32>,
    fx: Effects,
    app_fx: Vec<AppEffect>,
    app_events: VecDeque<AppEvent>,
    /// Whether an application has called upon the endpoint since this was cleared.
    submitted: bool,
    /// Bytes of messages that have reached their places.
    placed_bytes: u64,
    /// What its endpoints have counted.
    stats: [u64; Stat::COUNT],
    /// Of that, what they have counted for single messages.
    per_message: PerMessageStats,
    /// The messages whose windows and rates are observed.
    flows: FlowTrace,
    /// Time that was skipped. Applications and results live in true time, which is the simulated
    /// time and this; endpoints and packets in simulated time, which has no gaps.
    skipped: Dur,
}

/// What the application of `host` has reported, of all that it wants done.
fn reported(host: HostId, fx: &mut Vec<AppEffect>) -> impl Iterator<Item = JobRecord> {
    fx.drain(..).filter_map(move |effect| match effect {
        AppEffect::Job(job) => Some(JobRecord { host, job }),
        _ => None,
    })
}

/// The simulated time that is `time` in true time, after so much time has been `skipped`.
pub(crate) fn simulated(time: Time, skipped: Dur) -> Time {
    if time == Time::NEVER { time } else { Time(time.0.saturating_sub(skipped.0)) }
}

/// What a core of today has to itself, and as much again of what it shares, bytes.
const CACHE: usize = 4 << 20;
/// What a host, its endpoint and an open message take, about, bytes.
const HOST_SIZE: usize = 2 << 10;

impl<const WATCHED: bool> Hosts<WATCHED> {
    /// The hosts from number `first` on, with these endpoints and applications.
    pub(crate) fn new(
        world: &Arc<World>,
        first: u32,
        hosts: impl Iterator<Item = (Box<dyn Endpoint>, Box<dyn App>)>,
    ) -> Self {
        let host = |(h, (endpoint, app)): (u32, _)| {
            let rate = world.topology.links()[h as usize].rate;
            Host::new(HostId(h), endpoint, app, rate, &world.config)
        };
        let hosts: Vec<Host> = (first..).zip(hosts).map(host).collect();
        Self {
            world: Arc::clone(world),
            far: hosts.len() * HOST_SIZE > CACHE,
            hosts,
            first,
            notes: HashMap::default(),
            reports: Vec::new(),
            jobs: Vec::new(),
            rtts: Vec::new(),
            spare: None,
            fx: Effects::new(),
            app_fx: Vec::new(),
            app_events: VecDeque::new(),
            submitted: false,
            placed_bytes: 0,
            stats: [0; Stat::COUNT],
            per_message: PerMessageStats::default(),
            flows: FlowTrace::new(&world.config.flows),
            skipped: Dur::ZERO,
        }
    }

    /// The true time now.
    fn true_now(&self, net: &Network<'_, WATCHED>) -> Time {
        net.core().now() + self.skipped
    }

    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// Whether no host needs a packet to have something happen before a time that it names.
    pub(crate) fn next_at(&self) -> Time {
        let next = self.hosts.iter().map(|host| host.next_at(self.skipped));
        next.min().unwrap_or(Time::NEVER)
    }

    /// The number in the fabric of the host of `port`, if it is one's.
    pub(crate) fn id(&self, port: u32) -> Option<HostId> {
        self.hosts.get(port as usize).map(|host| host.me)
    }

    /// How many packets are allocated although no endpoint wanted them yet.
    pub(crate) fn spares(&self) -> usize {
        usize::from(self.spare.is_some())
    }

    /// Move what hosts have reported of messages to `all`.
    pub(crate) fn take_reports(&mut self, all: &mut Vec<Report>) {
        all.append(&mut self.reports);
    }

    /// The same of jobs.
    pub(crate) fn take_jobs(&mut self, all: &mut Vec<JobRecord>) {
        all.append(&mut self.jobs);
    }

    /// The same of round-trip samples.
    pub(crate) fn take_rtts(&mut self, all: &mut Vec<RttRecord>) {
        all.append(&mut self.rtts);
    }

    pub(crate) fn placed_bytes(&self) -> u64 {
        self.placed_bytes
    }

    pub(crate) fn stats(&self) -> &[u64; Stat::COUNT] {
        &self.stats
    }

    pub(crate) fn per_message(&mut self) -> &mut PerMessageStats {
        &mut self.per_message
    }

    /// Whether some application has more to submit.
    pub(crate) fn more_to_come(&self) -> bool {
        self.hosts.iter().any(|host| host.app.more_to_come())
    }

    /// Tell all applications that the run is over, at `now`.
    pub(crate) fn end_apps(&mut self, now: Time) {
        for host in &mut self.hosts {
            host.enter_app(now, &mut self.app_fx, |app, cx| app.on_end(cx));
            self.jobs.extend(reported(host.me, &mut self.app_fx));
        }
    }

    /// Sent and received by all hosts together, and the packets with payload among those sent.
    pub(crate) fn traffic(&self) -> (Amount, Amount, u64) {
        let (mut sent, mut received, mut data) = (Amount::default(), Amount::default(), 0);
        for host in &self.hosts {
            sent.join(host.sent);
            received.join(host.received);
            data += host.data_sent;
        }
        (sent, received, data)
    }

    /// The digest chains of hosts, in their order.
    pub(crate) fn chains(&self) -> impl Iterator<Item = u64> {
        self.hosts.iter().map(|host| host.chain)
    }

    /// What has been placed of message `key` at host `at`; then it is forgotten there.
    pub(crate) fn take_placed(&mut self, at: HostId, key: MsgKey) -> Placed {
        self.hosts[(at.0 - self.first) as usize].reassembly.take(key)
    }

    /// Message `key` is over for good, for this end too ([`Endpoint::on_over`]).
    pub(crate) fn forget(&mut self, at: HostId, key: MsgKey) {
        self.hosts[(at.0 - self.first) as usize].endpoint.on_over(at, key);
    }

    /// A message of which something is here that was not taken.
    pub(crate) fn leftover(&self) -> Option<MsgKey> {
        self.hosts.iter().find_map(|host| host.reassembly.leftover())
    }

    /// Have the endpoints of the hosts in `visited` at hand soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, visited: &[u32]) {
        let hosts = || visited.iter().filter_map(|&host| self.hosts.get(host as usize));
        hosts().for_each(Host::prefetch_endpoint);
        if self.far {
            hosts().for_each(|host| host.prefetch_behind(0));
            hosts().for_each(|host| host.prefetch_behind(1));
        }
    }

    /// The same of a host itself. Whether `port` is one's.
    #[inline(always)]
    pub(crate) fn prefetch_host(&self, port: u32) -> bool {
        let host = self.hosts.get(port as usize);
        host.inspect(|host| slab::prefetch::<_, 5>(*host)).is_some()
    }

    /// Take in signals and notes that have come from another partition.
    pub(crate) fn receive(&mut self, net: &mut Network<'_, WATCHED>, outgoing: &mut Outgoing) {
        for (host, mut signal) in outgoing.signals.drain(..) {
            signal.at += self.skipped;
            self.take_signal(net, host - self.first, signal);
        }
        self.notes.extend(outgoing.notes.drain(..));
    }
}

impl<const WATCHED: bool> Hosts<WATCHED> {
    /// The run begins.
    pub(crate) fn start(&mut self, net: &mut Network<'_, WATCHED>) {
        net.schedule_script();
        for h in 0..self.hosts.len() as u32 {
            self.call_app(net, h, |app, cx| app.on_start(cx));
            self.finish_call(net, h);
        }
    }

    /// A packet has arrived at its host.
    // Not inlined, like the other rarer events: what is left of the loop then fits the registers.
    #[inline(never)]
    pub(crate) fn deliver(&mut self, net: &mut Network<'_, WATCHED>, h: u32, handle: u32) {
        let (pkt, now) = (net.packet(handle), net.core().now());
        let host = &mut self.hosts[h as usize];
        host.received.add(u64::from(pkt.wire_len));
        if WATCHED {
            net.follow_received((h, host.me), handle);
        }
        let (view, pkt) = (net.view(), net.packet(handle));
        host.enter(&view, now, &mut self.fx, |endpoint, cx| endpoint.on_packet(cx, pkt));
        net.free(handle);
        self.finish_call(net, h);
    }

    /// A timer or a paced transmission is due, or was when this event was scheduled.
    #[inline(never)]
    pub(crate) fn host_timer(&mut self, net: &mut Network<'_, WATCHED>, h: u32) {
        let now = net.core().now();
        let next = self.hosts[h as usize].next_timer();
        if next > now {
            net.core_mut().uncount();
            net.core_mut().events_mut().wake(h, next);
            return;
        }
        self.follow_call(net, h, true);
        for calls in 0.. {
            if self.livelocked(net, h, RecentKind::Timer, calls) {
                break;
            }
            let host = &mut self.hosts[h as usize];
            let Some((_, id)) = host.timers.peek().filter(|&(at, _)| at <= now) else { break };
            host.timers.remove(id);
            let view = net.view();
            host.enter(&view, now, &mut self.fx, |ep, cx| ep.on_timer(cx, TimerId(id)));
            self.apply(net, h);
        }
        self.finish_call(net, h);
    }

    /// A timer of the application, or a signal to it, is due.
    #[inline(never)]
    pub(crate) fn host_app(&mut self, net: &mut Network<'_, WATCHED>, h: u32) {
        let now = self.true_now(net);
        if self.hosts[h as usize].next_app() > now {
            // It has been moved since the slot was opened.
            net.core_mut().uncount();
            return;
        }
        self.follow_call(net, h, false);
        self.hosts[h as usize].app_at = Time::NEVER;
        for calls in 0.. {
            if self.livelocked(net, h, RecentKind::App, calls) {
                break;
            }
            let host = &mut self.hosts[h as usize];
            if let Some((_, id)) = host.app_timers.peek().filter(|&(at, _)| at <= now) {
                host.app_timers.remove(id);
                self.call_app(net, h, |app, cx| app.on_timer(cx, TimerId(id)));
            } else if host.inbox.peek().is_some_and(|Reverse(signal)| signal.at <= now) {
                let Some(Reverse(signal)) = host.inbox.pop() else { break };
                let Signal { from, tag, token, .. } = signal;
                let event = AppEvent::Signal { from: HostId(from), tag, token };
                self.call_app(net, h, |app, cx| app.on_event(cx, event));
            } else {
                break;
            }
        }
        self.note_app(net, h);
        self.finish_call(net, h);
    }

    /// The host's port has finished a packet.
    #[inline(never)]
    pub(crate) fn nic_departure(&mut self, net: &mut Network<'_, WATCHED>, h: u32) {
        net.nic_departure(h);
        if WATCHED {
            net.follow_departed(h);
        }
        let host = &mut self.hosts[h as usize];
        let token = std::mem::take(&mut host.token);
        if token != 0 {
            let view = net.view();
            let now = net.core().now();
            host.enter(&view, now, &mut self.fx, |ep, cx| ep.on_sent(cx, token, now));
        }
        self.finish_call(net, h);
    }

    /// Host `h` is called, without a packet; `timed`: because a time has come.
    #[inline(always)]
    fn follow_call(&mut self, net: &mut Network<'_, WATCHED>, h: u32, timed: bool) {
        if WATCHED {
            let now = net.core().now();
            net.lives_mut().into_iter().for_each(|lives| lives.call(h, now, timed));
        }
    }

    /// Host `h` has broken a rule.
    pub(crate) fn host_violates(&mut self, net: &mut Network<'_, WATCHED>, h: u32, what: &str) {
        let me = self.hosts[h as usize].me;
        net.core_mut().violate(None, format!("{me} {what}"));
    }

    /// Host `h` cannot go on, and so the run cannot.
    #[cold]
    fn host_broke(&mut self, net: &mut Network<'_, WATCHED>, h: u32, why: &str) {
        let what = format!("{}: {why}", self.hosts[h as usize].me);
        let why = Violation::new(net.core().now(), None, what);
        net.core_mut().end(Violation { is_outside: true, ..why });
    }

    /// Whether host `h`, which is called for the `calls`th time at one go, must not go on.
    #[inline(always)]
    fn livelocked(
        &mut self,
        net: &mut Network<'_, WATCHED>,
        h: u32,
        kind: RecentKind,
        calls: u32,
    ) -> bool {
        if calls > CALLS_MAX {
            self.suspect(net, h, kind);
        }
        net.core().violated()
    }

    /// Host `h` is called for one of very many times.
    #[cold]
    #[inline(never)]
    fn suspect(&mut self, net: &mut Network<'_, WATCHED>, h: u32, kind: RecentKind) {
        let (host, at) = (&self.hosts[h as usize], net.core().now());
        let own = |id: MsgId| MsgKey { src: host.me, id };
        let of_effect = self.fx.as_slice().last().and_then(|effect| match *effect {
            Effect::Place { key, .. } | Effect::Delivered(key) | Effect::Failed(key, _) => {
                Some(key)
            }
            Effect::CountReceived(_, key) | Effect::RttReceived(key, _) => Some(key),
            Effect::Acked(id) | Effect::CountFor(_, id) | Effect::Rtt(id, _) => Some(own(id)),
            Effect::Arm { .. } | Effect::Count(_) | Effect::Broken => None,
        });
        let of_event = self.app_events.front().and_then(|event| match *event {
            AppEvent::Delivered { key, .. } | AppEvent::Failed(key, _) => Some(key),
            AppEvent::Acked(id) => Some(own(id)),
            AppEvent::Signal { .. } => None,
        });
        let timer = host.timers.peek().map(|(_, id)| id).filter(|_| kind == RecentKind::Timer);
        let message = of_effect.or(of_event);
        let recent = Recent { kind, host: Some(host.me), link: None, timer, message, at };
        let links = net.link_count();
        net.core_mut().suspect(recent, links);
    }

    /// Finish what a call began: effects, applications, transmission, the next timer.
    #[inline(always)]
    pub(crate) fn finish_call(&mut self, net: &mut Network<'_, WATCHED>, h: u32) {
        if !self.fx.is_empty() {
            self.apply(net, h);
        }
        if !net.is_busy(h) {
            self.transmit(net, h);
        }
        let host = &mut self.hosts[h as usize];
        net.core_mut().events_mut().wake(h, host.next_timer());
        if WATCHED && !self.flows.is_empty() {
            let Host { endpoint, me, .. } = &self.hosts[h as usize];
            let now = net.core().now();
            self.flows.look(&**endpoint, *me, now, net.observer_mut());
        }
    }

    /// Schedule the application's next event, which may have changed.
    fn note_app(&mut self, net: &mut Network<'_, WATCHED>, h: u32) {
        let host = &mut self.hosts[h as usize];
        let app = host.next_app();
        if app != host.app_at {
            host.app_at = app;
            net.core_mut().events_mut().app(h, simulated(app, self.skipped));
        }
    }

    /// Apply effects, and let the application react, until nothing is left.
    fn apply(&mut self, net: &mut Network<'_, WATCHED>, h: u32) {
        for calls in 0.. {
            let done = self.fx.is_empty() && self.app_events.is_empty();
            if done || self.livelocked(net, h, RecentKind::Effect, calls) {
                return;
            }
            let mut fx = std::mem::take(&mut self.fx);
            for effect in fx.as_slice() {
                self.effect(net, h, *effect);
                if *effect == Effect::Broken {
                    self.host_broke(net, h, fx.why_broken());
                }
            }
            fx.clear();
            self.fx = fx;
            if let Some(event) = self.app_events.pop_front() {
                self.react(net, h, event);
            }
        }
    }

    /// Let the application react to `event`.
    // Not inlined: few effects lead here, and the loop over effects then fits the registers.
    #[inline(never)]
    fn react(&mut self, net: &mut Network<'_, WATCHED>, h: u32, event: AppEvent) {
        self.call_app(net, h, |app, cx| app.on_event(cx, event));
        if matches!(event, AppEvent::Acked(_) | AppEvent::Failed(..)) {
            self.offer_backlog(net, h);
        }
    }

    #[inline(always)]
    fn effect(&mut self, net: &mut Network<'_, WATCHED>, h: u32, effect: Effect) {
        match effect {
            Effect::Arm { timer, at } => self.arm(net, h, timer, at),
            Effect::Place { key, offset, len } => {
                let host = &mut self.hosts[h as usize];
                self.placed_bytes += u64::from(len);
                if WATCHED {
                    let now = net.core().now();
                    net.lives_mut().into_iter().for_each(|lives| lives.place(key, now));
                }
                let placed = host.reassembly.place(key, offset, len, net.core().now());
                net.core_mut().require(Some(key), placed);
            }
            Effect::Count(stat) => self.stats[stat as usize] += 1,
            Effect::CountFor(stat, id) => {
                let key = MsgKey { src: self.hosts[h as usize].me, id };
                if WATCHED && stat == Stat::Timeout {
                    let now = net.core().now();
                    net.lives_mut().into_iter().for_each(|lives| lives.time_out(key, now));
                }
                self.count_for(stat, key);
            }
            Effect::CountReceived(stat, key) => {
                self.count_for(stat, key);
                if stat == Stat::Forgotten {
                    let (at, news) = (self.true_now(net), MessageEvent::Forgotten);
                    self.reports.push(Report { at, key, news });
                }
            }
            Effect::Rtt(..) | Effect::RttReceived(..) if !self.world.config.rtts => {}
            Effect::Rtt(id, rtt) => {
                let key = MsgKey { src: self.hosts[h as usize].me, id };
                self.rtts.push(RttRecord { at: self.true_now(net), key, rtt });
            }
            Effect::RttReceived(key, rtt) => {
                self.rtts.push(RttRecord { at: self.true_now(net), key, rtt });
            }
            Effect::Delivered(key) => {
                let host = &mut self.hosts[h as usize];
                let placed = host.reassembly.take(key);
                let (at, len) = (host.me, placed.bytes);
                let Note { tag, token } = self.notes.remove(&key).unwrap_or_default();
                if WATCHED {
                    net.end_life(key);
                }
                self.report(
                    net,
                    h,
                    key,
                    MessageEvent::Delivered { at, placed },
                    Outcome::Delivered,
                );
                self.app_events.push_back(AppEvent::Delivered { key, len, tag, token });
            }
            Effect::Acked(id) => {
                let key = MsgKey { src: self.hosts[h as usize].me, id };
                self.report(net, h, key, MessageEvent::Acked, Outcome::Acked);
                self.app_events.push_back(AppEvent::Acked(id));
            }
            Effect::Failed(key, why) => {
                net.lives_mut().into_iter().for_each(|lives| lives.fail(key));
                self.report(net, h, key, MessageEvent::Failed(why), Outcome::Failed);
                self.app_events.push_back(AppEvent::Failed(key, why));
            }
            // Its caller has the reason.
            Effect::Broken => {}
        }
    }

    /// Tell the run what has become of a message.
    fn report(
        &mut self,
        net: &mut Network<'_, WATCHED>,
        h: u32,
        key: MsgKey,
        news: MessageEvent,
        outcome: Outcome,
    ) {
        let at = self.true_now(net);
        self.reports.push(Report { at, key, news });
        let host = &mut self.hosts[h as usize];
        let name = u64::from(key.src.0) << 40 ^ key.id.0;
        host.chain = digest::chain(host.chain, at.0, name, outcome);
    }

    fn arm(&mut self, net: &mut Network<'_, WATCHED>, h: u32, timer: TimerId, at: Time) {
        if at == Time::NEVER {
            self.hosts[h as usize].timers.remove(timer.0);
        } else if at < net.core().now() {
            self.host_violates(net, h, &format!("armed timer {} in the past", timer.0));
        } else {
            self.hosts[h as usize].timers.set(timer.0, at);
        }
    }

    fn call_app(
        &mut self,
        net: &mut Network<'_, WATCHED>,
        h: u32,
        call: impl FnOnce(&mut dyn App, &mut AppCx<'_>),
    ) {
        let mut fx = std::mem::take(&mut self.app_fx);
        let now = self.true_now(net);
        self.hosts[h as usize].enter_app(now, &mut fx, call);
        for effect in fx.drain(..) {
            self.app_effect(net, h, effect);
        }
        self.app_fx = fx;
        self.note_app(net, h);
    }

    fn app_effect(&mut self, net: &mut Network<'_, WATCHED>, h: u32, effect: AppEffect) {
        match effect {
            AppEffect::Submit { msg, tag, token } => self.submit(net, h, msg, Note { tag, token }),
            AppEffect::Cancel(id) => {
                let view = net.view();
                let host = &mut self.hosts[h as usize];
                if let Some(at) = host.backlog.iter().position(|msg| msg.id == id) {
                    host.backlog.remove(at);
                    let key = MsgKey { src: host.me, id };
                    self.fx.failed(key, endpoint::FailReason::Cancelled);
                } else {
                    self.submitted = true;
                    host.enter(&view, net.core().now(), &mut self.fx, |ep, cx| {
                        ep.on_cancel(cx, id);
                    });
                }
            }
            AppEffect::Arm { timer, at: Time::NEVER } => {
                self.hosts[h as usize].app_timers.remove(timer.0);
            }
            AppEffect::Arm { timer, at } => {
                let now = self.true_now(net);
                self.hosts[h as usize].app_timers.set(timer.0, at.max(now));
            }
            AppEffect::Signal { to, token, after, tag } => {
                let host = &mut self.hosts[h as usize];
                host.signals += 1;
                let (from, number) = (host.me.0, host.signals);
                let at = self.true_now(net) + after;
                self.signal(net, h, to, after, Signal { at, from, number, tag, token });
            }
            AppEffect::Job(job) => {
                let host = self.hosts[h as usize].me;
                self.jobs.push(JobRecord { host, job });
            }
        }
    }

    /// Rare: hosts count single packets with [`Effect::Count`].
    #[cold]
    fn count_for(&mut self, stat: Stat, key: MsgKey) {
        self.stats[stat as usize] += 1;
        self.per_message.count(key, stat);
    }

    fn signal(
        &mut self,
        net: &mut Network<'_, WATCHED>,
        h: u32,
        to: HostId,
        after: Dur,
        signal: Signal,
    ) {
        let World { topology, partitioning, .. } = &*self.world;
        let least = self.hosts[h as usize].app.signal_delay().unwrap_or(Dur(u64::MAX));
        if after == Dur::ZERO || to.0 >= topology.hosts() {
            self.host_violates(
                net,
                h,
                &format!("signals {to} without delay, or {to} is an unknown destination"),
            );
            return;
        }
        let part = partitioning.host_owner(to);
        if after < least {
            self.host_violates(
                net,
                h,
                &format!("signals {to} sooner than `App::signal_delay` says"),
            );
        } else if part == net.core().index() {
            self.take_signal(net, to.0 - self.first, signal);
        } else {
            // In simulated time, as everything that crosses the cut.
            let at = simulated(signal.at, self.skipped);
            net.core_mut().outgoing(part).signals.push((to.0, Signal { at, ..signal }));
        }
    }

    /// A signal is on its way to host `h`.
    pub(crate) fn take_signal(&mut self, net: &mut Network<'_, WATCHED>, h: u32, signal: Signal) {
        self.hosts[h as usize].inbox.push(Reverse(signal));
        self.note_app(net, h);
    }

    /// What is said with message `key` is on its way to host `to`.
    fn tell(&mut self, net: &mut Network<'_, WATCHED>, to: HostId, key: MsgKey, note: Note) {
        if note == Note::default() {
            return;
        }
        let part = self.world.partitioning.host_owner(to);
        if part == net.core().index() {
            self.notes.insert(key, note);
        } else {
            net.core_mut().outgoing(part).notes.push((key, note));
        }
    }

    fn submit(&mut self, net: &mut Network<'_, WATCHED>, h: u32, msg: Msg, note: Note) {
        let key = MsgKey { src: self.hosts[h as usize].me, id: msg.id };
        let World { topology, config, .. } = &*self.world;
        let encapsulation = config.encapsulations.get(usize::from(msg.transport));
        let possible = msg.dst.0 < topology.hosts() && msg.dst != key.src && msg.len > 0;
        let (Some(encapsulation), true) = (encapsulation, possible) else {
            let Msg { len, dst, transport, .. } = msg;
            let what = format!("{len} bytes submitted to {dst} over transport {transport}");
            net.core_mut().violate(Some(key), what);
            return;
        };
        let ideal =
            topology.ideal(key.src, msg.dst, msg.len, encapsulation.framing, encapsulation.spray);
        let Msg { dst, len, deadline, .. } = msg;
        let news = MessageEvent::Submitted { dst, len, tag: note.tag, ideal, deadline };
        self.reports.push(Report { at: self.true_now(net), key, news });
        if WATCHED {
            net.follow_submitted(h, key, (dst, len));
        }
        self.tell(net, msg.dst, key, note);
        // Behind one that was refused, it waits for the next `Acked` or `Failed` too. Most hosts
        // never need a backlog, which is memory.
        if !self.hosts[h as usize].backlog.is_empty() || !self.try_submit(net, h, &msg) {
            self.hosts[h as usize].backlog.push_back(msg);
        }
    }

    /// Offer waiting messages, in order, for as long as the endpoint takes them.
    fn offer_backlog(&mut self, net: &mut Network<'_, WATCHED>, h: u32) {
        while let Some(msg) = self.hosts[h as usize].backlog.front().copied() {
            if !self.try_submit(net, h, &msg) {
                break;
            }
            self.hosts[h as usize].backlog.pop_front();
        }
    }

    /// Offer a message. Whether the endpoint has taken it.
    fn try_submit(&mut self, net: &mut Network<'_, WATCHED>, h: u32, msg: &Msg) -> bool {
        self.submitted = true;
        let view = net.view();
        let host = &mut self.hosts[h as usize];
        let taken =
            host.enter(&view, net.core().now(), &mut self.fx, |ep, cx| ep.on_submit(cx, msg));
        taken == Submit::Taken
    }

    /// The port is free: ask the endpoint what it sends, until it is busy.
    fn transmit(&mut self, net: &mut Network<'_, WATCHED>, h: u32) {
        for calls in 0.. {
            if self.livelocked(net, h, RecentKind::Poll, calls) {
                return;
            }
            let Some(open) = net.open_classes(h) else { return };
            let packet = self.spare.take().unwrap_or_else(|| net.alloc());
            let now = net.core().now();
            let (view, slot) = net.view_and_packet(packet);
            let host = &mut self.hosts[h as usize];
            let port = TxPort { nic: 0, open };
            let answer = host.enter(&view, now, &mut self.fx, |ep, cx| ep.poll_tx(cx, port, slot));
            host.wake = Time::NEVER;
            if WATCHED && answer != Tx::Sent {
                net.lives_mut().into_iter().for_each(|lives| lives.answer(h, answer));
            }
            match answer {
                Tx::Sent if open == u8::MAX => self.send(net, h, packet),
                Tx::Sent => self.send_if_open(net, h, packet),
                Tx::NotBefore(at) if at > now => host.wake = at,
                Tx::NotBefore(at) => {
                    let what = format!("would send not before {at}, now or gone");
                    self.host_violates(net, h, &what);
                }
                Tx::Idle => {}
            }
            if answer != Tx::Sent {
                // The next slot is to arrive cleared, at whichever host.
                *net.view_and_packet(packet).1 = Packet::EMPTY;
                self.spare = Some(packet);
            }
            // What the poll caused may have made an application submit more.
            self.submitted = false;
            if !self.fx.is_empty() {
                self.apply(net, h);
            }
            if answer != Tx::Sent && !self.submitted || net.is_busy(h) {
                return;
            }
        }
    }

    /// Some class is paused: if it is that of `packet`, the interface keeps it until the class may
    /// leave.
    #[inline(never)]
    fn send_if_open(&mut self, net: &mut Network<'_, WATCHED>, h: u32, packet: u32) {
        if !net.holds(h, packet) {
            self.send(net, h, packet);
        }
    }

    /// Which classes host `h` may send may have changed.
    #[inline(never)]
    pub(crate) fn classes_changed(&mut self, net: &mut Network<'_, WATCHED>, h: u32) {
        // The port is idle, or the packet would not wait here.
        self.follow_call(net, h, false);
        if let Some(packet) = net.take_held(h) {
            self.send_if_open(net, h, packet);
        }
        self.finish_call(net, h);
    }

    /// Put the packet on the host's link.
    // One copy where endpoints are asked and one where classes are paused.
    #[inline(always)]
    fn send(&mut self, net: &mut Network<'_, WATCHED>, h: u32, packet: u32) {
        let host = &mut self.hosts[h as usize];
        let Some(Sent { token, len, payload }) = net.send(h, packet, host.me) else {
            let pkt = net.packet(packet);
            let what = format!("sent {} bytes from {} to {}", pkt.wire_len, pkt.src, pkt.dst);
            self.host_violates(net, h, &what);
            return;
        };
        host.token = token;
        host.sent.add(u64::from(len));
        host.data_sent += u64::from(payload);
        if WATCHED {
            net.follow_sent(h, packet);
        }
    }
}
