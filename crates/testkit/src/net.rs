//! [`Net`]: endpoints joined by a perfect switch, on a simulated clock.
//!
//! Each host has one interface of a stated rate. A packet takes its serialisation time there, then
//! the one-way delay, and is at its destination: nothing queues unless the test puts a
//! [`Bottleneck`] before a host. Faults strike as a packet leaves its host.
//!
//! Events at one instant happen in the engine's order: faults, departures, arrivals,
//! timers; then by host; arrivals by order of departure, timers by id.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hash::Hasher as _;

use endpoint::{
    Cx, Draw, Effect, Effects, Endpoint, Flags, Msg, NetView, Packet, Purpose, Routes, Stat,
    Submit, Tx, TxPort,
};
use rustc_hash::FxHasher;
use units::{Dur, HostId, MsgId, MsgKey, Rate, Time, TimerId};

use crate::bottleneck::{Bottleneck, Queue};
use crate::fault::{self, Rule, Verdict};
use crate::ledger::{Ledger, Record};
use crate::naps::Naps;

/// The links of a [`Net`], all alike.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Of each host's interface.
    pub rate: Rate,
    /// From the last bit sent to the last bit received.
    pub delay: Dur,
    /// Largest `wire_len`, bytes.
    pub mtu: u16,
    /// Paths between any two hosts, at least 1. All have the same delay.
    pub paths: u32,
    /// Whether `Packet::path` is entropy that the network hashes (broken paths are then avoided
    /// once known to be broken) or an index of the sender's choice (and he must avoid them).
    pub hashed: bool,
}

/// A packet that a host has put on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When its first bit left.
    pub at: Time,
    /// How many packets left before it, all hosts together.
    pub n: u64,
    /// As it left.
    pub pkt: Packet,
}

/// What a watcher sees of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Its host has begun to send it.
    Sent,
    /// It has reached this host.
    Arrived(HostId),
}

/// Is told of every packet that a host sends or gets.
pub(crate) type Watch = Box<dyn FnMut(Time, Seen, &Packet)>;

/// Alters packets on their way.
type Tamper = Box<dyn FnMut(&mut Packet)>;

/// The kinds of events, in the order in which they happen at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Reroute,
    Departure,
    Dequeue,
    Arrival,
    /// A packet that arrived while its host slept.
    Late,
    Timer(TimerId),
    Wake,
}

struct Flight {
    due: Time,
    n: u64,
    pkt: Packet,
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Flight {}
impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Flight {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.n).cmp(&(other.due, other.n))
    }
}

struct Host<E: ?Sized> {
    endpoint: Box<E>,
    /// End of the packet in transmission; `NEVER` when the port is free.
    departs: Time,
    token: u32,
    /// When a `NotBefore` ends.
    wake: Time,
    timers: Vec<Time>,
    /// Messages that the endpoint had no room for.
    waiting: VecDeque<Msg>,
    retry: bool,
    room: u64,
    stats: [u64; Stat::COUNT],
    bottleneck: Option<Queue>,
    /// When its process runs again.
    awake: Time,
    naps: u64,
    /// What arrived meanwhile, and when.
    late: VecDeque<(Time, Packet)>,
}

/// The fabric's shape as endpoints see it: every pair alike.
pub struct Star {
    paths: u32,
    base_rtt: Dur,
    down: Vec<bool>,
    version: u32,
}

impl Star {
    /// `paths` paths between any two hosts, all of which work, and this round-trip time.
    #[must_use]
    pub fn new(paths: u32, base_rtt: Dur) -> Self {
        Self { paths, base_rtt, down: vec![false; paths as usize], version: 0 }
    }
}

impl Routes for Star {
    fn paths(&self, _: HostId, _: HostId) -> u32 {
        self.paths
    }
    fn path_up(&self, _: HostId, _: HostId, path: u32) -> bool {
        !self.down.get(path as usize).copied().unwrap_or(false)
    }
    fn version(&self) -> u32 {
        self.version
    }
    fn hops(&self, _: HostId, _: HostId) -> u32 {
        1
    }
    fn base_rtt(&self, _: HostId, _: HostId) -> Dur {
        self.base_rtt
    }
}

/// Endpoints joined by a network. `E` is `dyn Endpoint`, or the type of a transport whose insides
/// a test wants to see.
pub struct Net<E: Endpoint + ?Sized = dyn Endpoint> {
    link: Link,
    seed: u64,
    now: Time,
    hosts: Vec<Host<E>>,
    flights: BinaryHeap<Reverse<Flight>>,
    routes: Star,
    /// Paths that lose everything, known to the endpoints or not.
    dead: Vec<bool>,
    reroute_at: Time,
    rules: Vec<Rule>,
    watch: Option<Watch>,
    tamper: Option<Tamper>,
    naps: Option<Naps>,
    sent: u64,
    log: Option<Vec<Sent>>,
    dropped: u64,
    ledger: Ledger,
    next_id: Vec<u64>,
    fx: Effects,
    digest: FxHasher,
    steps_here: u32,
}

const HOST: Purpose = Purpose::new("testkit host");

/// More events than this at one instant are an endpoint that runs in circles.
const STEPS_PER_INSTANT: u32 = 1_000_000;

impl<E: Endpoint + ?Sized> Net<E> {
    /// Hosts `0..` with these endpoints. `seed` feeds the endpoints' draws.
    #[must_use]
    pub fn new(seed: u64, link: Link, endpoints: Vec<Box<E>>) -> Self {
        assert!(link.paths >= 1, "at least one path");
        let one_way = |bytes| link.rate.serialise(bytes) + link.delay;
        let base_rtt = one_way(u64::from(link.mtu)) + one_way(64);
        let hosts: Vec<_> = endpoints.into_iter().map(Host::new).collect();
        let down = vec![false; link.paths as usize];
        Self {
            link,
            seed,
            now: Time::ZERO,
            next_id: vec![0; hosts.len()],
            hosts,
            flights: BinaryHeap::new(),
            routes: Star { paths: link.paths, base_rtt, down: down.clone(), version: 0 },
            dead: down,
            reroute_at: Time::NEVER,
            rules: Vec::new(),
            watch: None,
            tamper: None,
            naps: None,
            sent: 0,
            log: Some(Vec::new()),
            dropped: 0,
            ledger: Ledger::default(),
            fx: Effects::new(),
            digest: FxHasher::default(),
            steps_here: 0,
        }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// The endpoint of `host`.
    #[must_use]
    pub fn endpoint(&self, host: HostId) -> &E {
        &self.hosts[host.index()].endpoint
    }

    /// Every packet sent so far, in order; empty after [`Net::stop_logging`].
    #[must_use]
    pub fn log(&self) -> &[Sent] {
        self.log.as_deref().unwrap_or(&[])
    }

    /// Keep no log, so that a long run allocates nothing.
    pub fn stop_logging(&mut self) {
        self.log = None;
    }

    /// How many packets were sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// How many packets were lost: by rules, dead paths and full bottlenecks.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How often the endpoint of `host` counted `stat`.
    #[must_use]
    pub fn stat(&self, host: HostId, stat: Stat) -> u64 {
        self.hosts[host.index()].stats[stat as usize]
    }

    /// What became of every message.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What became of message `key`.
    #[must_use]
    pub fn record(&self, key: MsgKey) -> &Record {
        self.ledger.get(key)
    }

    /// A hash of everything that has happened, with its times.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest.finish()
    }

    /// Tell `watch` of every packet from now on.
    pub fn watch(&mut self, watch: impl FnMut(Time, Seen, &Packet) + 'static) {
        self.watch = Some(Box::new(watch));
    }

    /// Let `rule` judge every packet from now on.
    pub fn fault(&mut self, rule: impl FnMut(&Sent) -> Verdict + 'static) {
        self.rules.push(Box::new(rule));
    }

    /// Let `tamper` alter every packet from now on. The ledger then only checks what holds for any
    /// peer.
    pub fn tamper(&mut self, tamper: impl FnMut(&mut Packet) + 'static) {
        self.ledger.distrust();
        self.tamper = Some(Box::new(tamper));
    }

    /// Let `pkt` arrive at its destination now: a late copy or, after [`Net::tamper`], one that no
    /// host has sent.
    pub fn inject(&mut self, pkt: Packet) {
        self.deliver(&pkt);
    }

    /// Remove every rule.
    pub fn heal(&mut self) {
        self.rules.clear();
    }

    /// Let the hosts' processes sleep from now on.
    pub fn set_naps(&mut self, naps: Naps) {
        self.naps = Some(naps);
    }

    /// Put a slow queue before `host`.
    pub fn set_bottleneck(&mut self, host: HostId, config: Bottleneck) {
        self.hosts[host.index()].bottleneck = Some(Queue::new(config));
    }

    /// Lose everything on `path` from now on; after `reroute_after` the endpoints are told.
    pub fn fail_path(&mut self, path: u32, reroute_after: Dur) {
        self.dead[path as usize] = true;
        self.reroute_at = self.now + reroute_after;
    }

    /// Submit `len` bytes, without order.
    pub fn submit(&mut self, src: HostId, dst: HostId, len: u64) -> MsgKey {
        self.submit_as(src, Msg::new(dst, len))
    }

    /// Submit on a channel.
    pub fn submit_on(&mut self, src: HostId, dst: HostId, channel: u32, len: u64) -> MsgKey {
        self.submit_as(src, Msg { channel, ..Msg::new(dst, len) })
    }

    /// Submit `msg`; its id is chosen here.
    pub fn submit_as(&mut self, src: HostId, msg: Msg) -> MsgKey {
        let h = src.index();
        let id = MsgId(self.next_id[h]);
        self.next_id[h] += 1;
        let key = MsgKey { src, id };
        let msg = Msg { id, ..msg };
        self.ledger.submit(key, msg, self.now);
        self.hosts[h].waiting.push_back(msg);
        // A message behind one that was refused waits with it.
        if self.hosts[h].waiting.len() == 1 {
            self.hosts[h].retry = true;
            self.settle(h);
        }
        key
    }

    /// Cancel a message. One that still waits for room never reaches the endpoint.
    pub fn cancel(&mut self, key: MsgKey) {
        let h = key.src.index();
        self.ledger.cancel(key);
        let before = self.hosts[h].waiting.len();
        self.hosts[h].waiting.retain(|m| m.id != key.id);
        if self.hosts[h].waiting.len() < before {
            let failed = Effect::Failed(key, endpoint::FailReason::Cancelled);
            self.ledger.apply(self.now, key.src, None, failed);
        } else {
            self.call(h, None, |endpoint, cx| endpoint.on_cancel(cx, key.id));
        }
    }

    /// `host` hears that messages of `src` below `oldest` are over.
    pub fn over_below(&mut self, host: HostId, src: HostId, oldest: MsgId) {
        self.hosts[host.index()].endpoint.on_over_below(src, oldest);
    }

    /// Let the application of `host` take `room` bytes more before it takes nothing.
    pub fn set_room(&mut self, host: HostId, room: u64) {
        self.hosts[host.index()].room = room;
        self.call(host.index(), None, E::on_room);
    }

    /// Run until `end`, and stand there.
    pub fn run_until(&mut self, end: Time) {
        while self.next().is_some_and(|(at, _, _)| at <= end) {
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// Run until nothing is in flight and no timer is armed. Returns when that was.
    ///
    /// # Panics
    /// If that takes longer than `limit` from now.
    pub fn run_until_idle(&mut self, limit: Dur) -> Time {
        let end = self.now + limit;
        while let Some((at, cause, h)) = self.next() {
            assert!(at <= end, "not idle after {limit}: {cause:?} of host {h} due at {at}");
            self.step();
        }
        self.now
    }

    /// Do the next thing. False if there is nothing to do, now or ever.
    pub fn step(&mut self) -> bool {
        let Some((at, cause, h)) = self.next() else { return false };
        assert!(at >= self.now, "time goes back");
        self.steps_here = if at == self.now { self.steps_here + 1 } else { 0 };
        assert!(self.steps_here < STEPS_PER_INSTANT, "host {h} runs in circles at {at}: {cause:?}");
        self.now = at;
        self.digest.write_u64(at.0);
        self.digest.write_u32(h as u32);
        match cause {
            Cause::Reroute => self.reroute(),
            Cause::Departure => self.depart(h),
            Cause::Dequeue => self.dequeue(h),
            Cause::Arrival => self.arrive(),
            Cause::Late => self.look_late(h),
            Cause::Timer(id) => {
                self.hosts[h].timers[id.0 as usize] = Time::NEVER;
                self.call(h, None, |endpoint, cx| endpoint.on_timer(cx, id));
            }
            Cause::Wake => self.pump(h),
        }
        if !matches!(cause, Cause::Reroute | Cause::Departure) {
            self.nap(h);
        }
        true
    }

    /// Let the process of `h` sleep if it has nothing to do now.
    fn nap(&mut self, h: usize) {
        let (Some(naps), now, seed) = (self.naps, self.now, self.seed) else { return };
        let host = &mut self.hosts[h];
        if host.awake > now || host.next().0 <= now {
            return;
        }
        host.naps += 1;
        host.awake = now + naps.length(Draw::new(seed, HOST, h as u64), host.naps);
    }

    /// The earliest event and its host.
    fn next(&self) -> Option<(Time, Cause, usize)> {
        let mut first = (self.reroute_at, Cause::Reroute, 0);
        if let Some(Reverse(f)) = self.flights.peek() {
            first = first.min((f.due, Cause::Arrival, f.pkt.dst.index()));
        }
        for (h, host) in self.hosts.iter().enumerate() {
            first = first.min((host.departs, Cause::Departure, h));
            if let Some(queue) = &host.bottleneck {
                first = first.min((queue.done(), Cause::Dequeue, h));
            }
            let (at, cause) = host.next();
            first = first.min((at.max(self.now), cause, h));
        }
        (first.0 != Time::NEVER).then_some(first)
    }

    /// Call an endpoint, apply the effects in order, and let it send.
    fn call(&mut self, h: usize, rx: Option<&Packet>, what: impl FnOnce(&mut E, &mut Cx<'_>)) {
        self.call_inner(h, rx, what);
        self.settle(h);
    }

    fn call_inner<R>(
        &mut self,
        h: usize,
        rx: Option<&Packet>,
        what: impl FnOnce(&mut E, &mut Cx<'_>) -> R,
    ) -> R {
        let me = HostId(h as u32);
        let mut fx = std::mem::take(&mut self.fx);
        let nics = [self.link.rate];
        let lateness = self.naps.map_or(Dur::ZERO, |naps| naps.max);
        let net = NetView {
            me,
            nics: &nics,
            mtu: self.link.mtu,
            whole: false,
            lateness,
            routes: &self.routes,
        };
        let draw = Draw::new(self.seed, HOST, h as u64);
        let room = self.hosts[h].room;
        let mut cx = Cx { now: self.now, rx_at: self.now, me, room, net: &net, draw, fx: &mut fx };
        let result = what(&mut self.hosts[h].endpoint, &mut cx);
        for &effect in fx.as_slice() {
            assert_ne!(effect, Effect::Broken, "host {h}: {}", fx.why_broken());
            self.apply(h, rx, effect);
        }
        fx.clear();
        self.fx = fx;
        result
    }

    fn apply(&mut self, h: usize, rx: Option<&Packet>, effect: Effect) {
        self.ledger.apply(self.now, HostId(h as u32), rx, effect);
        let host = &mut self.hosts[h];
        match effect {
            Effect::Arm { timer, at } => {
                let i = timer.0 as usize;
                if host.timers.len() <= i {
                    host.timers.resize(i + 1, Time::NEVER);
                }
                host.timers[i] = at;
            }
            Effect::Count(stat) | Effect::CountFor(stat, _) | Effect::CountReceived(stat, _) => {
                host.stats[stat as usize] += 1;
            }
            Effect::Acked(_) | Effect::Failed(..) => host.retry = true,
            Effect::Place { len, .. } => {
                assert!(u64::from(len) <= host.room, "host {h} placed more than its room");
                if host.room != u64::MAX {
                    host.room -= u64::from(len);
                }
            }
            Effect::Delivered(_) | Effect::Rtt(..) | Effect::RttReceived(..) | Effect::Broken => {}
        }
    }

    /// Offer what waits for room, then let the endpoint send.
    fn settle(&mut self, h: usize) {
        while std::mem::take(&mut self.hosts[h].retry) {
            while let Some(&msg) = self.hosts[h].waiting.front() {
                match self.call_inner(h, None, |endpoint, cx| endpoint.on_submit(cx, &msg)) {
                    Submit::Taken => self.hosts[h].waiting.pop_front(),
                    Submit::Full => break,
                };
            }
        }
        self.pump(h);
    }

    /// Ask for a packet if the port is free.
    fn pump(&mut self, h: usize) {
        if self.hosts[h].departs != Time::NEVER {
            return;
        }
        self.hosts[h].wake = Time::NEVER;
        let mut slot = Packet::EMPTY;
        let port = TxPort { nic: 0, open: 0xff };
        match self.call_inner(h, None, |endpoint, cx| endpoint.poll_tx(cx, port, &mut slot)) {
            Tx::Sent => self.transmit(h, slot),
            Tx::NotBefore(t) => {
                assert!(t > self.now, "host {h}: NotBefore({t}) at {}", self.now);
                self.hosts[h].wake = t;
            }
            Tx::Idle => {}
        }
    }

    fn transmit(&mut self, h: usize, pkt: Packet) {
        assert_eq!(pkt.src.index(), h, "a packet of another source");
        assert!(pkt.dst.index() < self.hosts.len(), "no host {}", pkt.dst);
        assert!((1..=self.link.mtu).contains(&pkt.wire_len), "wire_len {}", pkt.wire_len);
        assert!(!pkt.carries_payload() || u32::from(pkt.wire_len) >= pkt.span.len, "too short");
        assert!(!pkt.flags.has(Flags::TRIMMED) && !pkt.flags.has(Flags::BOUNCED), "sent so");
        for value in [pkt.span.msg.0, pkt.span.offset, u64::from(pkt.span.len)] {
            self.digest.write_u64(value);
        }
        self.digest.write(pkt.header());
        self.digest.write_u32(pkt.path);
        let departs = self.now + self.link.rate.serialise(u64::from(pkt.wire_len));
        self.hosts[h].departs = departs;
        self.hosts[h].token = pkt.token;
        let sent = Sent { at: self.now, n: self.sent, pkt };
        if let Some(watch) = &mut self.watch {
            watch(self.now, Seen::Sent, &pkt);
        }
        self.sent += 1;
        self.ledger.sent(&pkt);
        if let Some(log) = &mut self.log {
            log.push(sent);
        }
        self.launch(&sent, departs + self.link.delay);
    }

    /// Decide what becomes of a packet that would arrive at `due`.
    fn launch(&mut self, sent: &Sent, due: Time) {
        let mut pkt = sent.pkt;
        if self.lost_on_path(&pkt) {
            self.dropped += 1;
            return;
        }
        if let Some(tamper) = &mut self.tamper {
            tamper(&mut pkt);
        }
        let verdict = self.rules.iter_mut().map(|rule| rule(sent)).find(|v| *v != Verdict::Pass);
        let n = sent.n;
        match verdict.unwrap_or(Verdict::Pass) {
            Verdict::Pass => self.fly(due, n, pkt),
            Verdict::Drop => self.dropped += 1,
            Verdict::Duplicate(late) => {
                self.fly(due, n, pkt);
                self.fly(due + late, n, pkt);
            }
            Verdict::Delay(late) => self.fly(due + late, n, pkt),
            Verdict::Trim | Verdict::Bounce if !pkt.carries_payload() => self.fly(due, n, pkt),
            Verdict::Trim => {
                fault::trim(&mut pkt);
                self.fly(due, n, pkt);
            }
            Verdict::Bounce => {
                fault::bounce(&mut pkt);
                self.fly(due, n, pkt);
            }
        }
    }

    fn fly(&mut self, due: Time, n: u64, pkt: Packet) {
        self.flights.push(Reverse(Flight { due, n, pkt }));
    }

    /// Whether the path of `pkt` loses it: the path chosen, or the one hashed to.
    fn lost_on_path(&self, pkt: &Packet) -> bool {
        let chosen = (pkt.path % self.link.paths) as usize;
        if !self.link.hashed || !self.routes.down[chosen] {
            return self.dead[chosen];
        }
        // The hashing group has been rebuilt without the paths known to be down.
        let up = (0..self.dead.len()).filter(|&p| !self.routes.down[p]);
        let count = up.clone().count().max(1);
        up.clone().nth(pkt.path as usize % count).is_none_or(|p| self.dead[p])
    }

    fn reroute(&mut self) {
        self.reroute_at = Time::NEVER;
        self.routes.down.clone_from(&self.dead);
        self.routes.version += 1;
    }

    fn depart(&mut self, h: usize) {
        self.hosts[h].departs = Time::NEVER;
        let token = std::mem::take(&mut self.hosts[h].token);
        let now = self.now;
        if token == 0 {
            self.pump(h);
        } else {
            self.call(h, None, |endpoint, cx| endpoint.on_sent(cx, token, now));
        }
    }

    fn arrive(&mut self) {
        let Some(Reverse(Flight { pkt, .. })) = self.flights.pop() else { return };
        let h = pkt.dst.index();
        let now = self.now;
        match &mut self.hosts[h].bottleneck {
            Some(queue) => self.dropped += u64::from(!queue.offer(now, pkt)),
            None => self.deliver(&pkt),
        }
    }

    fn dequeue(&mut self, h: usize) {
        let now = self.now;
        if let Some(pkt) = self.hosts[h].bottleneck.as_mut().and_then(|queue| queue.take(now)) {
            self.deliver(&pkt);
        }
    }

    fn deliver(&mut self, pkt: &Packet) {
        if let Some(watch) = &mut self.watch {
            watch(self.now, Seen::Arrived(pkt.dst), pkt);
        }
        let host = &mut self.hosts[pkt.dst.index()];
        if host.awake > self.now || !host.late.is_empty() {
            host.late.push_back((self.now, *pkt));
        } else {
            self.take(pkt, self.now);
        }
    }

    /// A packet that came at `at` is looked at.
    fn take(&mut self, pkt: &Packet, at: Time) {
        self.call(pkt.dst.index(), Some(pkt), |endpoint, cx| {
            cx.rx_at = at;
            endpoint.on_packet(cx, pkt);
        });
    }

    fn look_late(&mut self, h: usize) {
        if let Some((at, pkt)) = self.hosts[h].late.pop_front() {
            self.take(&pkt, at);
        }
    }
}

impl<E: ?Sized> Host<E> {
    /// What its process does next, and from when on.
    fn next(&self) -> (Time, Cause) {
        let mut first = (self.wake, Cause::Wake);
        if let Some(&(at, _)) = self.late.front() {
            first = first.min((at, Cause::Late));
        }
        for (id, &at) in self.timers.iter().enumerate() {
            first = first.min((at, Cause::Timer(TimerId(id as u32))));
        }
        (first.0.max(self.awake), first.1)
    }

    fn new(endpoint: Box<E>) -> Self {
        Self {
            endpoint,
            departs: Time::NEVER,
            token: 0,
            wake: Time::NEVER,
            timers: Vec::new(),
            waiting: VecDeque::new(),
            retry: false,
            room: u64::MAX,
            stats: [0; Stat::COUNT],
            bottleneck: None,
            awake: Time::ZERO,
            naps: 0,
            late: VecDeque::new(),
        }
    }
}
