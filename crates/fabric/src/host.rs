//! A host: its endpoint and application, their timers, and its network interface.
//!
//! Everything that happens at a host at one time runs inline, in the order of the caller's contract
//! (see [`Endpoint`]).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use endpoint::{
    App, AppCx, AppEffect, AppEvent, Cx, Draw, Effect, Effects, Endpoint, JobRecord, Msg, NetView,
    Packet, PacketEvent, Purpose, RttRecord, Stat, Submit, Tx, TxPort,
};
use units::{Dur, HostId, MsgId, MsgKey, Rate, Time, TimerId};

use crate::config::Config;
use crate::digest::{self, Outcome};
use crate::messages::{News, Report};
use crate::outcome::Amount;
use crate::part::{Part, World, describe, observe};
use crate::reassembly::Reassembly;
use crate::route::{Forwarding, Known};
use crate::slab;
use crate::timers::IndexedHeap;

const ENDPOINT: Purpose = Purpose::new("endpoint");
const APP: Purpose = Purpose::new("application");

/// More calls than this at one host at one instant are an endpoint, or an application, that goes
/// round in circles.
const TURNS_MAX: u32 = 1 << 22;

/// A signal on its way to an application, in the order of arrival, sender and the sender's count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Signal {
    pub(crate) at: Time,
    from: u32,
    number: u64,
    tag: u16,
    token: u64,
}

/// What an application says with a message to the application that receives it, and which part of
/// the workload it is. It reaches the receiver's partition at the end of the round in which the message
/// was submitted, and so before the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    tag: u16,
    token: u64,
}

// What is touched for every packet comes first.
#[repr(C)]
pub(crate) struct Host {
    endpoint: Box<dyn Endpoint>,
    pub(crate) me: HostId,
    /// The token of the packet in service; zero if nobody asked.
    token: u32,
    nics: [Rate; 1],
    draw: Draw,
    /// The endpoint has nothing to send before this, if not for an event.
    wake: Time,
    pub(crate) received: Amount,
    pub(crate) sent: Amount,
    pub(crate) data_sent: u64,
    timers: IndexedHeap<Time>,
    /// What has come of the messages to it.
    pub(crate) reassembly: Reassembly,
    pub(crate) app: Box<dyn App>,
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
    /// Calls at the instant `turns_at`.
    turns: u32,
    turns_at: Time,
    /// The digest chain of its messages.
    pub(crate) chain: u64,
}

impl Host {
    pub(crate) fn new(
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
            turns: 0,
            turns_at: Time::ZERO,
            sent: Amount::default(),
            received: Amount::default(),
            data_sent: 0,
            reassembly: Reassembly::new(config.window),
            chain: 0,
        }
    }

    /// Have the endpoint at hand soon, as far as can be seen from here.
    #[inline(always)]
    pub(crate) fn prefetch_endpoint(&self) {
        slab::prefetch::<_, 8>(&*self.endpoint);
    }

    /// The same for what is behind pointers of what is at hand already: `step` 0, then 1.
    #[inline(always)]
    pub(crate) fn prefetch_behind(&self, step: u8) {
        self.endpoint.fetch(step);
        self.reassembly.fetch(step);
    }

    /// Call the endpoint with a context for `now`.
    fn enter<R>(
        &mut self,
        known: &Known<'_>,
        now: Time,
        fx: &mut Effects,
        call: impl FnOnce(&mut dyn Endpoint, &mut Cx<'_>) -> R,
    ) -> R {
        let mtu = known.topology.mtu();
        let whole = known.belief.is_whole();
        let net = NetView { me: self.me, nics: &self.nics, mtu, whole, routes: known };
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
        let received = self.received.bytes;
        let mut cx = AppCx { now, me: self.me, draw: self.app_draw, received, next_id, fx };
        call(&mut *self.app, &mut cx);
    }

    /// When something happens here although no packet comes; never, if nothing does.
    pub(crate) fn next_at(&self) -> Time {
        self.next_timer().min(self.next_app())
    }

    #[inline(always)]
    fn next_timer(&self) -> Time {
        self.timers.peek().map_or(Time::NEVER, |(at, _)| at).min(self.wake)
    }

    fn next_app(&self) -> Time {
        let timer = self.app_timers.peek().map_or(Time::NEVER, |(at, _)| at);
        let signal = self.inbox.peek().map_or(Time::NEVER, |Reverse(signal)| signal.at);
        timer.min(signal)
    }
}

impl<const WATCHED: bool> Part<WATCHED> {
    /// The run begins.
    pub(crate) fn start(&mut self) {
        self.schedule_script();
        for h in 0..self.hosts.len() as u32 {
            self.call_app(h, |app, cx| app.on_start(cx));
            self.settle(h);
        }
    }

    /// A packet has arrived at its host.
    // Not inlined, like the other rarer events: what is left of the loop then fits the registers.
    #[inline(never)]
    pub(crate) fn deliver(&mut self, h: u32, handle: u32) {
        let pkt = &self.slab[handle];
        let host = &mut self.hosts[h as usize];
        host.received.add(u64::from(pkt.wire_len));
        let known = Known { topology: &self.world.topology, belief: &self.belief };
        host.enter(&known, self.now, &mut self.fx, |endpoint, cx| endpoint.on_packet(cx, pkt));
        self.slab.free(handle);
        self.settle(h);
    }

    /// A timer or a paced transmission is due, or was when this event was scheduled.
    #[inline(never)]
    pub(crate) fn host_timer(&mut self, h: u32) {
        let now = self.now;
        let next = self.hosts[h as usize].next_timer();
        if next > now {
            self.handled -= 1;
            self.events.wake(h, next);
            return;
        }
        while self.turn(h) {
            let host = &mut self.hosts[h as usize];
            let Some((_, id)) = host.timers.peek().filter(|&(at, _)| at <= now) else { break };
            host.timers.remove(id);
            let known = Known { topology: &self.world.topology, belief: &self.belief };
            host.enter(&known, now, &mut self.fx, |ep, cx| ep.on_timer(cx, TimerId(id)));
            self.apply(h);
        }
        self.settle(h);
    }

    /// A timer of the application, or a signal to it, is due.
    #[inline(never)]
    pub(crate) fn host_app(&mut self, h: u32) {
        let now = self.now;
        if self.hosts[h as usize].next_app() > now {
            // It has been moved since the slot was opened.
            self.handled -= 1;
            return;
        }
        self.hosts[h as usize].app_at = Time::NEVER;
        while self.turn(h) {
            let host = &mut self.hosts[h as usize];
            if let Some((_, id)) = host.app_timers.peek().filter(|&(at, _)| at <= now) {
                host.app_timers.remove(id);
                self.call_app(h, |app, cx| app.on_timer(cx, TimerId(id)));
            } else if host.inbox.peek().is_some_and(|Reverse(signal)| signal.at <= now) {
                let Some(Reverse(signal)) = host.inbox.pop() else { break };
                let Signal { from, tag, token, .. } = signal;
                let event = AppEvent::Signal { from: HostId(from), tag, token };
                self.call_app(h, |app, cx| app.on_event(cx, event));
            } else {
                break;
            }
        }
        self.note_app(h);
        self.settle(h);
    }

    /// The host's port has finished a packet.
    #[inline(never)]
    pub(crate) fn nic_departure(&mut self, h: u32) {
        self.ports[h as usize].depart(h, &mut self.events);
        let host = &mut self.hosts[h as usize];
        let token = std::mem::take(&mut host.token);
        if token != 0 {
            let known = Known { topology: &self.world.topology, belief: &self.belief };
            let now = self.now;
            host.enter(&known, now, &mut self.fx, |ep, cx| ep.on_sent(cx, token, now));
        }
        self.settle(h);
    }

    /// Host `h` has broken a rule.
    pub(crate) fn host_violates(&mut self, h: u32, what: &str) {
        let me = self.hosts[h as usize].me;
        self.violate(None, format!("{me} {what}"));
    }

    /// Whether host `h` has taken too many turns in one call, or something else is wrong.
    #[inline(always)]
    fn goes_round(&mut self, h: u32, turn: u32) -> bool {
        if turn > TURNS_MAX {
            self.host_violates(h, "goes round in circles in one call");
        }
        self.violation.is_some()
    }

    /// Whether host `h` may go on at this instant.
    fn turn(&mut self, h: u32) -> bool {
        let host = &mut self.hosts[h as usize];
        if host.turns_at != self.now {
            (host.turns_at, host.turns) = (self.now, 0);
        }
        host.turns += 1;
        if host.turns > TURNS_MAX {
            self.host_violates(h, "goes round in circles at one instant");
        }
        self.violation.is_none()
    }

    /// Finish what a call began: effects, applications, transmission, the next timer.
    #[inline(always)]
    pub(crate) fn settle(&mut self, h: u32) {
        if !self.fx.is_empty() {
            self.apply(h);
        }
        if !self.ports[h as usize].busy() {
            self.transmit(h);
        }
        let host = &mut self.hosts[h as usize];
        self.events.wake(h, host.next_timer());
    }

    /// Schedule the application's next event, which may have changed.
    fn note_app(&mut self, h: u32) {
        let host = &mut self.hosts[h as usize];
        let app = host.next_app();
        if app != host.app_at {
            host.app_at = app;
            self.events.app(h, app);
        }
    }

    /// Apply effects, and let the application react, until nothing is left.
    fn apply(&mut self, h: u32) {
        for turn in 0.. {
            if self.fx.is_empty() && self.app_events.is_empty() || self.goes_round(h, turn) {
                return;
            }
            let mut fx = std::mem::take(&mut self.fx);
            for effect in fx.as_slice() {
                self.effect(h, *effect);
            }
            fx.clear();
            self.fx = fx;
            if let Some(event) = self.app_events.pop_front() {
                self.call_app(h, |app, cx| app.on_event(cx, event));
                if matches!(event, AppEvent::Acked(_) | AppEvent::Failed(..)) {
                    self.offer_backlog(h);
                }
            }
        }
    }

    #[inline(always)]
    fn effect(&mut self, h: u32, effect: Effect) {
        match effect {
            Effect::Arm { timer, at } => self.arm(h, timer, at),
            Effect::Place { key, offset, len } => {
                let host = &mut self.hosts[h as usize];
                self.placed_bytes += u64::from(len);
                let placed = host.reassembly.place(key, offset, len, self.now);
                self.require(Some(key), placed);
            }
            Effect::Count(stat) => self.stats[stat as usize] += 1,
            Effect::CountFor(stat, id) => {
                let key = MsgKey { src: self.hosts[h as usize].me, id };
                self.count_for(stat, key);
            }
            Effect::CountReceived(stat, key) => self.count_for(stat, key),
            Effect::Rtt(..) | Effect::RttReceived(..) if !self.world.config.rtts => {}
            Effect::Rtt(id, rtt) => {
                let key = MsgKey { src: self.hosts[h as usize].me, id };
                self.rtts.push(RttRecord { at: self.now, key, rtt });
            }
            Effect::RttReceived(key, rtt) => self.rtts.push(RttRecord { at: self.now, key, rtt }),
            Effect::Delivered(key) => {
                let host = &mut self.hosts[h as usize];
                let placed = host.reassembly.take(key);
                let (at, len) = (host.me, placed.bytes);
                let Note { tag, token } = self.notes.remove(&key).unwrap_or_default();
                self.report(h, key, News::Delivered { at, placed }, Outcome::Delivered);
                self.app_events.push_back(AppEvent::Delivered { key, len, tag, token });
            }
            Effect::Acked(id) => {
                let key = MsgKey { src: self.hosts[h as usize].me, id };
                self.report(h, key, News::Acked, Outcome::Acked);
                self.app_events.push_back(AppEvent::Acked(id));
            }
            Effect::Failed(key, why) => {
                self.report(h, key, News::Failed(why), Outcome::Failed);
                self.app_events.push_back(AppEvent::Failed(key, why));
            }
        }
    }

    /// Tell the run what has become of a message.
    fn report(&mut self, h: u32, key: MsgKey, news: News, outcome: Outcome) {
        self.reports.push(Report { at: self.now, key, news });
        let host = &mut self.hosts[h as usize];
        let name = u64::from(key.src.0) << 40 ^ key.id.0;
        host.chain = digest::chain(host.chain, self.now.0, name, outcome);
    }

    fn arm(&mut self, h: u32, timer: TimerId, at: Time) {
        if at == Time::NEVER {
            self.hosts[h as usize].timers.remove(timer.0);
        } else if at < self.now {
            self.host_violates(h, &format!("armed timer {} in the past", timer.0));
        } else {
            self.hosts[h as usize].timers.set(timer.0, at);
        }
    }

    fn call_app(&mut self, h: u32, call: impl FnOnce(&mut dyn App, &mut AppCx<'_>)) {
        let mut fx = std::mem::take(&mut self.app_fx);
        self.hosts[h as usize].enter_app(self.now, &mut fx, call);
        for effect in fx.drain(..) {
            self.app_effect(h, effect);
        }
        self.app_fx = fx;
        self.note_app(h);
    }

    fn app_effect(&mut self, h: u32, effect: AppEffect) {
        match effect {
            AppEffect::Submit { msg, tag, token } => self.submit(h, msg, Note { tag, token }),
            AppEffect::Cancel(id) => {
                let known = Known { topology: &self.world.topology, belief: &self.belief };
                let host = &mut self.hosts[h as usize];
                if let Some(at) = host.backlog.iter().position(|msg| msg.id == id) {
                    host.backlog.remove(at);
                    let key = MsgKey { src: host.me, id };
                    self.fx.failed(key, endpoint::Why::Cancelled);
                } else {
                    self.submitted = true;
                    host.enter(&known, self.now, &mut self.fx, |ep, cx| ep.on_cancel(cx, id));
                }
            }
            AppEffect::Arm { timer, at: Time::NEVER } => {
                self.hosts[h as usize].app_timers.remove(timer.0);
            }
            AppEffect::Arm { timer, at } => {
                self.hosts[h as usize].app_timers.set(timer.0, at.max(self.now));
            }
            AppEffect::Signal { to, token, after, tag } => {
                let host = &mut self.hosts[h as usize];
                host.signals += 1;
                let (at, from, number) = (self.now + after, host.me.0, host.signals);
                self.signal(h, to, after, Signal { at, from, number, tag, token });
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
        self.tally.count(key, stat);
    }

    fn signal(&mut self, h: u32, to: HostId, after: Dur, signal: Signal) {
        let World { topology, cut, .. } = &*self.world;
        let least = self.hosts[h as usize].app.signal_delay().unwrap_or(Dur(u64::MAX));
        if after == Dur::ZERO || to.0 >= topology.hosts() {
            self.host_violates(h, &format!("signals {to} without delay, or signals nobody"));
            return;
        }
        let part = cut.host_owner(to);
        if after < least {
            self.host_violates(h, &format!("signals {to} sooner than `App::signal_delay` says"));
        } else if part == self.index {
            self.take_signal(to.0 - self.first_host, signal);
        } else {
            self.outbox[part as usize].signals.push((to.0, signal));
        }
    }

    /// A signal is on its way to host `h`.
    pub(crate) fn take_signal(&mut self, h: u32, signal: Signal) {
        self.hosts[h as usize].inbox.push(Reverse(signal));
        self.note_app(h);
    }

    /// What is said with message `key` is on its way to host `to`.
    fn tell(&mut self, to: HostId, key: MsgKey, note: Note) {
        if note == Note::default() {
            return;
        }
        let part = self.world.cut.host_owner(to);
        if part == self.index {
            self.notes.insert(key, note);
        } else {
            self.outbox[part as usize].notes.push((key, note));
        }
    }

    fn submit(&mut self, h: u32, msg: Msg, note: Note) {
        let key = MsgKey { src: self.hosts[h as usize].me, id: msg.id };
        let World { topology, config, .. } = &*self.world;
        let carriage = config.carriages.get(usize::from(msg.transport));
        let possible = msg.dst.0 < topology.hosts() && msg.dst != key.src && msg.len > 0;
        let (Some(carriage), true) = (carriage, possible) else {
            let Msg { len, dst, transport, .. } = msg;
            let what = format!("{len} bytes submitted to {dst} over transport {transport}");
            self.violate(Some(key), what);
            return;
        };
        let ideal = topology.ideal(key.src, msg.dst, msg.len, carriage.framing, carriage.spray);
        let Msg { dst, len, deadline, .. } = msg;
        let news = News::Submitted { dst, len, tag: note.tag, ideal, deadline };
        self.reports.push(Report { at: self.now, key, news });
        self.tell(msg.dst, key, note);
        // Behind one that was refused, it waits for the next `Acked` or `Failed` too. Most hosts never need
        // a backlog, which is memory.
        if !self.hosts[h as usize].backlog.is_empty() || !self.offer(h, &msg) {
            self.hosts[h as usize].backlog.push_back(msg);
        }
    }

    /// Offer waiting messages, in order, for as long as the endpoint takes them.
    fn offer_backlog(&mut self, h: u32) {
        while let Some(msg) = self.hosts[h as usize].backlog.front().copied() {
            if !self.offer(h, &msg) {
                break;
            }
            self.hosts[h as usize].backlog.pop_front();
        }
    }

    /// Offer a message. Whether the endpoint has taken it.
    fn offer(&mut self, h: u32, msg: &Msg) -> bool {
        self.submitted = true;
        let known = Known { topology: &self.world.topology, belief: &self.belief };
        let host = &mut self.hosts[h as usize];
        let taken = host.enter(&known, self.now, &mut self.fx, |ep, cx| ep.on_submit(cx, msg));
        taken == Submit::Taken
    }

    /// While the port is free, ask the endpoint what it sends.
    fn transmit(&mut self, h: u32) {
        for turn in 0.. {
            if self.ports[h as usize].busy() || self.goes_round(h, turn) {
                return;
            }
            let open = self.pfc.as_ref().map_or(Some(u8::MAX), |pfc| pfc.asks(h));
            let Some(open) = open else { return };
            let packet = self.spare.take().unwrap_or_else(|| self.slab.alloc());
            let known = Known { topology: &self.world.topology, belief: &self.belief };
            let (host, slot) = (&mut self.hosts[h as usize], &mut self.slab[packet]);
            let port = TxPort { nic: 0, open };
            let answer =
                host.enter(&known, self.now, &mut self.fx, |ep, cx| ep.poll_tx(cx, port, slot));
            host.wake = Time::NEVER;
            match answer {
                Tx::Sent if open == u8::MAX => self.send(h, packet),
                Tx::Sent => self.send_if_open(h, packet),
                Tx::NotBefore(at) if at > self.now => host.wake = at,
                Tx::NotBefore(at) => {
                    self.host_violates(h, &format!("would send not before {at}, now or gone"));
                }
                Tx::Idle => {}
            }
            if answer != Tx::Sent {
                // The next slot is to arrive cleared, whoever gets it.
                self.slab[packet] = Packet::EMPTY;
                self.spare = Some(packet);
            }
            // What the poll caused may have made an application submit more.
            self.submitted = false;
            if !self.fx.is_empty() {
                self.apply(h);
            }
            if answer != Tx::Sent && !self.submitted {
                break;
            }
        }
    }

    /// Put the packet on the host's link.
    // One copy where endpoints are asked and one where classes are paused.
    #[inline(always)]
    pub(crate) fn send(&mut self, h: u32, packet: u32) {
        let (pkt, host) = (&mut self.slab[packet], &mut self.hosts[h as usize]);
        let topology = &self.world.topology;
        let bad = pkt.src != host.me
            || pkt.dst == host.me
            || pkt.dst.0 >= topology.hosts()
            || pkt.wire_len == 0
            || pkt.wire_len > topology.mtu();
        if bad {
            let (len, from, to) = (pkt.wire_len, pkt.src, pkt.dst);
            self.host_violates(h, &format!("sent {len} bytes from {from} to {to}"));
            return;
        }
        self.slot.take_note(pkt);
        pkt.key = digest::packet_key(pkt);
        match self.world.forwarding {
            Forwarding::Digits => topology.stamp(pkt),
            Forwarding::Encoded => self.world.tables.write(topology, pkt),
            Forwarding::Choice(_) | Forwarding::Valiant(_) => {}
        }
        host.token = pkt.token;
        host.sent.add(u64::from(pkt.wire_len));
        host.data_sent += u64::from(pkt.carries_payload());
        let desc = describe(packet, pkt);
        let port = &mut self.ports[h as usize];
        if WATCHED {
            observe(&mut self.observer, self.now, port.rare.link, PacketEvent::Sent, pkt);
        }
        port.chain = digest::chain(port.chain, self.now.0, pkt.key, Outcome::Sent);
        port.note_active(h, &mut self.active);
        port.start(h, desc, self.now, &mut self.events);
    }
}
