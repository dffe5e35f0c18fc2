//! A host: its endpoint and application, their timers, and its network interface.
//!
//! Everything that happens at a host at one time runs inline, in the order of the caller's contract
//! (see [`Endpoint`]).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use endpoint::{
    App, AppCx, AppEffect, AppEvent, Cx, Draw, Effect, Effects, Endpoint, Flags, Msg, NetView,
    Observer, PacketEvent, Purpose, Stat, Submit, Tx, TxPort,
};
use queues::{Desc, Kind};
use units::{HostId, MsgId, MsgKey, Rate, Time, TimerId};

use crate::config::Config;
use crate::digest::{self, Outcome};
use crate::events::Node;
use crate::outcome::Amount;
use crate::reassembly::Reassembly;
use crate::route::Known;
use crate::sim::Sim;
use crate::timers::IndexedHeap;

const ENDPOINT: Purpose = Purpose::new("endpoint");
const APP: Purpose = Purpose::new("application");

/// More calls than this at one host at one instant are an endpoint, or an application, that goes
/// round in circles.
const TURNS_MAX: u32 = 1 << 22;

/// A signal on its way: when, from whom, the sender's count, what.
type Signal = Reverse<(Time, u32, u64, u64)>;

pub(crate) struct Host {
    pub(crate) me: HostId,
    endpoint: Box<dyn Endpoint>,
    pub(crate) app: Box<dyn App>,
    timers: IndexedHeap<Time>,
    app_timers: IndexedHeap<Time>,
    inbox: BinaryHeap<Signal>,
    /// Signals sent so far.
    signals: u64,
    next_id: MsgId,
    /// Messages that the endpoint had no room for.
    backlog: VecDeque<Msg>,
    /// The endpoint has nothing to send before this, if not for an event.
    wake: Time,
    /// What the events of this host are scheduled for.
    timer_at: Time,
    app_at: Time,
    draw: Draw,
    app_draw: Draw,
    nics: [Rate; 1],
    /// The token of the packet in service; zero if nobody asked.
    token: u32,
    /// Calls at the instant `turns_at`.
    turns: u32,
    turns_at: Time,
    pub(crate) sent: Amount,
    pub(crate) received: Amount,
    pub(crate) data_sent: u64,
    pub(crate) stats: [u64; Stat::COUNT],
    /// What has come of the messages to it.
    pub(crate) reassembly: Reassembly,
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
            timer_at: Time::NEVER,
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
            stats: [0; Stat::COUNT],
            reassembly: Reassembly::new(config.window),
            chain: 0,
        }
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
        let net = NetView { me: self.me, nics: &self.nics, mtu, routes: known };
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
        let mut cx = AppCx { now, me: self.me, draw: self.app_draw, next_id, fx };
        call(&mut *self.app, &mut cx);
    }

    fn next_app(&self) -> Time {
        let timer = self.app_timers.peek().map_or(Time::NEVER, |(at, _)| at);
        let signal = self.inbox.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
        timer.min(signal)
    }
}

impl<O: Observer> Sim<O> {
    pub(crate) fn start_app(&mut self, h: u32) {
        self.call_app(h, |app, cx| app.on_start(cx));
        self.settle(h);
    }

    /// A packet has arrived at its host.
    pub(crate) fn deliver(&mut self, h: u32, handle: u32) {
        let pkt = &self.slab[handle];
        let host = &mut self.hosts[h as usize];
        host.received.add(u64::from(pkt.wire_len));
        let known = Known { topology: &self.topology, belief: &self.belief };
        host.enter(&known, self.now, &mut self.fx, |endpoint, cx| endpoint.on_packet(cx, pkt));
        self.slab.free(handle);
        self.settle(h);
    }

    /// A timer or a paced transmission is due.
    pub(crate) fn host_timer(&mut self, h: u32) {
        let now = self.now;
        self.hosts[h as usize].timer_at = Time::NEVER;
        while self.turn(h) {
            let host = &mut self.hosts[h as usize];
            let Some((_, id)) = host.timers.peek().filter(|&(at, _)| at <= now) else { break };
            host.timers.remove(id);
            let known = Known { topology: &self.topology, belief: &self.belief };
            host.enter(&known, now, &mut self.fx, |ep, cx| ep.on_timer(cx, TimerId(id)));
            self.apply(h);
        }
        self.settle(h);
    }

    /// A timer of the application, or a signal to it, is due.
    pub(crate) fn host_app(&mut self, h: u32) {
        let now = self.now;
        self.hosts[h as usize].app_at = Time::NEVER;
        while self.turn(h) {
            let host = &mut self.hosts[h as usize];
            if let Some((_, id)) = host.app_timers.peek().filter(|&(at, _)| at <= now) {
                host.app_timers.remove(id);
                self.call_app(h, |app, cx| app.on_timer(cx, TimerId(id)));
            } else if host.inbox.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
                let Some(Reverse((_, from, _, token))) = host.inbox.pop() else { break };
                let event = AppEvent::Signal { from: HostId(from), token };
                self.call_app(h, |app, cx| app.on_event(cx, event));
            } else {
                break;
            }
        }
        self.settle(h);
    }

    /// The host's port has finished a packet.
    pub(crate) fn nic_departure(&mut self, h: u32) {
        self.ports[h as usize].depart();
        let host = &mut self.hosts[h as usize];
        let token = std::mem::take(&mut host.token);
        if token != 0 {
            let known = Known { topology: &self.topology, belief: &self.belief };
            let now = self.now;
            host.enter(&known, now, &mut self.fx, |ep, cx| ep.on_sent(cx, token, now));
        }
        self.settle(h);
    }

    /// Whether host `h` may go on at this instant.
    fn turn(&mut self, h: u32) -> bool {
        let host = &mut self.hosts[h as usize];
        if host.turns_at != self.now {
            (host.turns_at, host.turns) = (self.now, 0);
        }
        host.turns += 1;
        if host.turns > TURNS_MAX {
            self.violate(None, format!("host {h} goes round in circles at one instant"));
        }
        self.violation.is_none()
    }

    /// Finish what a call began: effects, applications, transmission, the next timer.
    fn settle(&mut self, h: u32) {
        self.apply(h);
        self.transmit(h);
        let host = &mut self.hosts[h as usize];
        let timer = host.timers.peek().map_or(Time::NEVER, |(at, _)| at).min(host.wake);
        if timer != host.timer_at {
            host.timer_at = timer;
            self.events.schedule(Node::Timer(h), timer);
        }
        let app = host.next_app();
        if app != host.app_at {
            host.app_at = app;
            self.events.schedule(Node::App(h), app);
        }
    }

    /// Apply effects, and let the application react, until nothing is left.
    fn apply(&mut self, h: u32) {
        while (!self.fx.is_empty() || !self.app_events.is_empty()) && self.turn(h) {
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

    fn effect(&mut self, h: u32, effect: Effect) {
        let (now, me) = (self.now, HostId(h));
        match effect {
            Effect::Arm { timer, at } => self.arm(h, timer, at),
            Effect::Place { key, offset, len } => {
                let host = &mut self.hosts[h as usize];
                let placed = host.reassembly.place(key, offset, len, now);
                self.require(Some(key), placed);
            }
            Effect::Delivered(key) => {
                let placed = self.hosts[h as usize].reassembly.take(key);
                match self.messages.deliver(key, me, placed, now) {
                    Ok(len) => {
                        self.note_message(h, key, Outcome::Delivered);
                        self.app_events.push_back(AppEvent::Delivered { key, len });
                        self.close(key);
                    }
                    Err(what) => self.violate(Some(key), what),
                }
            }
            Effect::Acked(id) => {
                let key = MsgKey { src: me, id };
                let acked = self.messages.acknowledge(key, now);
                self.require(Some(key), acked);
                self.note_message(h, key, Outcome::Acked);
                self.app_events.push_back(AppEvent::Acked(id));
                self.close(key);
            }
            Effect::Failed(key, why) => match self.messages.fail(key) {
                Ok(false) => {}
                Ok(true) => {
                    self.note_message(h, key, Outcome::Failed);
                    self.app_events.push_back(AppEvent::Failed(key, why));
                }
                Err(what) => self.violate(Some(key), what),
            },
            Effect::Count(stat) => self.hosts[h as usize].stats[stat as usize] += 1,
        }
    }

    fn arm(&mut self, h: u32, timer: TimerId, at: Time) {
        if at == Time::NEVER {
            self.hosts[h as usize].timers.remove(timer.0);
        } else if at < self.now {
            self.violate(None, format!("host {h} armed timer {} in the past", timer.0));
        } else {
            self.hosts[h as usize].timers.set(timer.0, at);
        }
    }

    fn note_message(&mut self, h: u32, key: MsgKey, outcome: Outcome) {
        let host = &mut self.hosts[h as usize];
        let name = u64::from(key.src.0) << 40 ^ key.id.0;
        host.chain = digest::chain(host.chain, self.now.0, name, outcome);
    }

    fn close(&mut self, key: MsgKey) {
        if let Some(record) = self.messages.close(key) {
            self.observer.message(&record);
        }
    }

    fn call_app(&mut self, h: u32, call: impl FnOnce(&mut dyn App, &mut AppCx<'_>)) {
        let mut fx = std::mem::take(&mut self.app_fx);
        self.hosts[h as usize].enter_app(self.now, &mut fx, call);
        for effect in fx.drain(..) {
            self.app_effect(h, effect);
        }
        self.app_fx = fx;
    }

    fn app_effect(&mut self, h: u32, effect: AppEffect) {
        match effect {
            AppEffect::Submit(msg) => self.submit(h, msg),
            AppEffect::Cancel(id) => {
                let known = Known { topology: &self.topology, belief: &self.belief };
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
            AppEffect::Signal { to, token, after } => {
                let host = &mut self.hosts[h as usize];
                host.signals += 1;
                let signal = (self.now + after, h, host.signals, token);
                self.signal(to, signal);
            }
        }
    }

    fn signal(&mut self, to: HostId, signal: (Time, u32, u64, u64)) {
        if signal.0 <= self.now || to.0 >= self.topology.hosts() {
            self.violate(None, format!("a signal to {to} without delay, or to nobody"));
            return;
        }
        let host = &mut self.hosts[to.index()];
        host.inbox.push(Reverse(signal));
        let at = host.next_app();
        if at != host.app_at {
            host.app_at = at;
            self.events.schedule(Node::App(to.0), at);
        }
    }

    fn submit(&mut self, h: u32, msg: Msg) {
        let key = MsgKey { src: HostId(h), id: msg.id };
        if msg.dst.0 >= self.topology.hosts() || msg.dst.0 == h || msg.len == 0 {
            let what = format!("{} bytes submitted to {}", msg.len, msg.dst);
            self.violate(Some(key), what);
            return;
        }
        let Config { framing, spray, .. } = self.config;
        let ideal = self.topology.ideal(key.src, msg.dst, msg.len, framing, spray);
        self.messages.submit(key, msg.dst, msg.len, self.now, ideal);
        let backlog = &mut self.hosts[h as usize].backlog;
        backlog.push_back(msg);
        // Behind one that was refused, it waits for the next `Acked` or `Failed` too.
        if backlog.len() == 1 {
            self.offer_backlog(h);
        }
    }

    /// Offer waiting messages, in order, for as long as the endpoint takes them.
    fn offer_backlog(&mut self, h: u32) {
        let known = Known { topology: &self.topology, belief: &self.belief };
        let host = &mut self.hosts[h as usize];
        while let Some(msg) = host.backlog.front().copied() {
            self.submitted = true;
            let taken = host.enter(&known, self.now, &mut self.fx, |ep, cx| ep.on_submit(cx, &msg));
            if taken == Submit::Full {
                break;
            }
            host.backlog.pop_front();
        }
    }

    /// If the port is free, ask the endpoint what it sends.
    fn transmit(&mut self, h: u32) {
        while self.turn(h) && !self.ports[h as usize].busy() {
            let handle = self.spare.take().unwrap_or_else(|| self.slab.alloc());
            let known = Known { topology: &self.topology, belief: &self.belief };
            let (host, slot) = (&mut self.hosts[h as usize], &mut self.slab[handle]);
            let port = TxPort { nic: 0, open: u8::MAX };
            let answer =
                host.enter(&known, self.now, &mut self.fx, |ep, cx| ep.poll_tx(cx, port, slot));
            host.wake = Time::NEVER;
            match answer {
                Tx::Sent => self.send(h, handle),
                Tx::NotBefore(at) if at > self.now => host.wake = at,
                Tx::NotBefore(at) => self.violate(None, format!("host {h}: not before {at}")),
                Tx::Idle => {}
            }
            if answer != Tx::Sent {
                self.spare = Some(handle);
            }
            // What the poll caused may have made an application submit more.
            self.submitted = false;
            self.apply(h);
            if answer != Tx::Sent && !self.submitted {
                break;
            }
        }
    }

    /// Put the packet on the host's link.
    fn send(&mut self, h: u32, handle: u32) {
        let pkt = &mut self.slab[handle];
        let bad = pkt.src.0 != h
            || pkt.dst.0 == h
            || pkt.dst.0 >= self.topology.hosts()
            || pkt.wire_len == 0
            || pkt.wire_len > self.topology.mtu();
        if bad {
            let what =
                format!("host {h} sent {} bytes from {} to {}", pkt.wire_len, pkt.src, pkt.dst);
            self.violate(None, what);
            return;
        }
        pkt.key = digest::packet_key(pkt);
        let host = &mut self.hosts[h as usize];
        host.token = pkt.token;
        host.sent.add(u64::from(pkt.wire_len));
        host.data_sent += u64::from(pkt.carries_payload());
        let packet =
            Desc { handle, len: pkt.wire_len, kind: Kind::Control, ect: pkt.flags.has(Flags::ECT) };
        if O::PACKETS {
            self.observer.packet(self.now, h, PacketEvent::Sent, &self.slab[handle]);
        }
        let port = &mut self.ports[h as usize];
        port.chain = digest::chain(port.chain, self.now.0, self.slab[handle].key, Outcome::Sent);
        let arrival = port.start(packet, self.now);
        self.events.schedule_fixed(Node::Departure(h), port.free_at);
        if let Some(due) = arrival {
            self.events.schedule_fixed(Node::Arrival(h), due);
        }
    }
}
