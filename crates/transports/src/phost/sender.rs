//! The messages that a host sends: each asks for tokens and sends a packet for each that it is
//! given, of all messages with tokens the one with the fewest packets missing first.

use std::collections::{BTreeSet, VecDeque};

use endpoint::{Cx, FailReason, Msg, MsgId, MsgKey, Packet, Span, Stat, TimerId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{HostId, Time};
use wire::phost::{Kind, Repr};

use super::config::Config;
use super::{Control, Outbox, control, put_header};
use crate::channels::{Channels, Next, Turn};
use crate::deadlines::Deadlines;
use crate::ndp::paths::ControlPaths;
use crate::received::Received;
use crate::slab::{Slab, SlotRef};

/// The right to send one packet.
#[derive(Clone, Copy, Debug)]
struct Token {
    number: u32,
    seq: u64,
    /// It is void after this.
    until: Time,
}

/// One message at its sender.
#[derive(Debug)]
struct Flow {
    msg: Msg,
    packets: u64,
    /// Tokens in hand, the first to expire first.
    tokens: VecDeque<Token>,
    /// Packets that the receiver misses, as far as is known.
    missing: u64,
    /// Counts messages: of two with equally many missing the older goes first.
    order: u64,
    /// Whether it is among those with tokens, under this `missing`.
    listed: bool,
    /// Packets that have been sent at least once.
    sent: Received,
    /// Packets sent, for the draws of paths.
    departures: u64,
    paths: ControlPaths,
    /// When a packet of the receiver last came, or the message began.
    heard: Time,
}

/// The sending half of a host.
#[derive(Debug)]
pub(super) struct Sender {
    config: Config,
    timer: TimerId,
    flows: Slab<Flow>,
    by_id: HashMap<MsgId, SlotRef, FxBuildHasher>,
    /// Messages with tokens in hand, fewest missing packets first.
    ready: BTreeSet<(u64, u64, SlotRef)>,
    /// When to see whether a message should repeat its REQ: at or before that time.
    asks: Deadlines,
    channels: Channels,
    started: u64,
}

impl Sender {
    pub(super) fn new(config: Config, timer: TimerId) -> Self {
        Self {
            config,
            timer,
            flows: Slab::new(),
            by_id: HashMap::default(),
            ready: BTreeSet::new(),
            asks: Deadlines::new(),
            channels: Channels::default(),
            started: 0,
        }
    }

    pub(super) fn submit(&mut self, cx: &mut Cx<'_>, msg: &Msg, out: &mut Outbox) {
        if self.channels.enter(msg) == Turn::First {
            self.start(cx, *msg, out);
        }
    }

    /// Ask for tokens, and use the free ones.
    fn start(&mut self, cx: &mut Cx<'_>, msg: Msg, out: &mut Outbox) {
        let packets = self.config.framing().packets(msg.len);
        let free = self.config.free(cx.net, msg.dst, packets);
        let mtu_time = self.config.mtu_time(cx.net);
        // They are all sent before the first expires.
        let until = cx.now + mtu_time * u64::from(free) + self.config.token_life(cx.net);
        let token = |number: u32| Token { number, seq: u64::from(number), until };
        let draw = cx.draw.part(msg.id.0);
        self.started += 1;
        let at = self.flows.insert(Flow {
            msg,
            packets,
            tokens: (0..free).map(token).collect(),
            missing: packets,
            order: self.started,
            listed: false,
            sent: Received::default(),
            departures: 0,
            paths: ControlPaths::new(self.config.paths, cx.net, msg.dst, draw),
            heard: cx.now,
        });
        self.by_id.insert(msg.id, at);
        self.ask(cx, at, out);
        self.list(at);
    }

    /// Send a REQ, and see later whether it was heard. One that comes after the free tokens, as
    /// repeats do, speaks of none: nothing is sent on them any more, and the receiver need not
    /// wait.
    fn ask(&mut self, cx: &mut Cx<'_>, at: SlotRef, out: &mut Outbox) {
        let Some(flow) = self.flows.get_mut(at) else { return };
        let usable = flow.tokens.back().is_some_and(|token| token.until >= cx.now);
        let free = if usable { self.config.free(cx.net, flow.msg.dst, flow.packets) } else { 0 };
        let kind = Kind::Req { size: flow.msg.len, free };
        out.push(flow.control(cx, kind));
        let due = cx.now + self.config.request_wait(cx.net);
        self.asks.set(at.index(), due);
        self.arm(cx);
    }

    fn arm(&self, cx: &mut Cx<'_>) {
        cx.fx.arm(self.timer, self.asks.next());
    }

    /// Have the message where its tokens and its missing packets put it.
    fn list(&mut self, at: SlotRef) {
        let Some(flow) = self.flows.get_mut(at) else { return };
        if !flow.listed && !flow.tokens.is_empty() {
            flow.listed = true;
            self.ready.insert((flow.missing, flow.order, at));
        }
    }

    fn unlist(&mut self, at: SlotRef) {
        let Some(flow) = self.flows.get_mut(at) else { return };
        if flow.listed {
            flow.listed = false;
            self.ready.remove(&(flow.missing, flow.order, at));
        }
    }

    pub(super) fn on_token(
        &mut self,
        cx: &mut Cx<'_>,
        from: HostId,
        id: MsgId,
        token: (u32, u64, u64),
        out: &mut Outbox,
    ) {
        let (number, seq, missing) = token;
        let known = self.by_id.get(&id).copied();
        let Some(at) = known.filter(|&at| self.flow_to(at, from)) else {
            // It is over, or was never ours: the receiver need not wait for it.
            out.push(end(cx, &self.config, from, id));
            return;
        };
        self.unlist(at);
        let Some(flow) = self.flows.get_mut(at) else { return };
        flow.heard = cx.now;
        flow.missing = missing.min(flow.packets);
        if seq < flow.packets && flow.sent.admits(seq) {
            let until = cx.now + self.config.token_life(cx.net);
            // Free tokens may live longer than it does.
            let place = flow.tokens.partition_point(|token| token.until <= until);
            flow.tokens.insert(place, Token { number, seq, until });
        } else {
            cx.fx.count(Stat::Rejected);
        }
        self.list(at);
    }

    fn flow_to(&mut self, at: SlotRef, peer: HostId) -> bool {
        self.flows.get_mut(at).is_some_and(|flow| flow.msg.dst == peer)
    }

    /// The receiver has it all.
    pub(super) fn on_ack(&mut self, cx: &mut Cx<'_>, from: HostId, id: MsgId, out: &mut Outbox) {
        let Some(&at) = self.by_id.get(&id) else { return };
        let Some(flow) = self.flows.get_mut(at) else { return };
        // What was never sent has not arrived, whatever a peer says.
        if flow.msg.dst != from || flow.sent.prefix() < flow.packets {
            cx.fx.count(Stat::Rejected);
            return;
        }
        cx.fx.acked(id);
        self.close(cx, at, out);
    }

    /// The time has come to see who has heard nothing.
    pub(super) fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut Outbox) {
        let timeout = self.config.request_wait(cx.net);
        while let Some(slot) = self.asks.pop(cx.now) {
            let Some(at) = self.flows.at(slot) else { continue };
            let Some(flow) = self.flows.get_mut(at) else { continue };
            let quiet_until = flow.heard.saturating_add(timeout);
            if quiet_until > cx.now {
                self.asks.set(slot, quiet_until);
            } else if flow.heard.saturating_add(self.config.abort_after) <= cx.now {
                let key = MsgKey { src: cx.me, id: flow.msg.id };
                self.end(cx, at, key, FailReason::TimedOut, out);
            } else {
                cx.fx.timeout(Stat::OtherTimeout, flow.msg.id);
                self.ask(cx, at, out);
            }
        }
        self.arm(cx);
    }

    pub(super) fn cancel(&mut self, cx: &mut Cx<'_>, id: MsgId, out: &mut Outbox) {
        let key = MsgKey { src: cx.me, id };
        if let Some(&at) = self.by_id.get(&id) {
            self.end(cx, at, key, FailReason::Cancelled, out);
            return;
        }
        if self.channels.cancel(id) {
            cx.fx.failed(key, FailReason::Cancelled);
        }
    }

    /// Give a message up, and tell the receiver.
    fn end(
        &mut self,
        cx: &mut Cx<'_>,
        at: SlotRef,
        key: MsgKey,
        why: FailReason,
        out: &mut Outbox,
    ) {
        if let Some(flow) = self.flows.get_mut(at) {
            out.push(end(cx, &self.config, flow.msg.dst, key.id));
        }
        cx.fx.failed(key, why);
        self.close(cx, at, out);
    }

    /// Forget a message, and start the next one of its channel.
    fn close(&mut self, cx: &mut Cx<'_>, at: SlotRef, out: &mut Outbox) {
        self.unlist(at);
        let Some(Flow { msg, .. }) = self.flows.remove(at) else { return };
        self.by_id.remove(&msg.id);
        self.asks.set(at.index(), Time::NEVER);
        if self.flows.is_empty() {
            self.arm(cx);
        }
        if let Some(Next::Start(next)) = self.channels.leave(&msg) {
            self.start(cx, next, out);
        }
    }

    /// The next data packet, if a message has a token. False if none has.
    pub(super) fn poll(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> bool {
        while let Some(&(_, _, at)) = self.ready.first() {
            let Some(flow) = self.flows.get_mut(at) else {
                self.ready.pop_first();
                continue;
            };
            while flow.tokens.front().is_some_and(|token| token.until < cx.now) {
                flow.tokens.pop_front();
            }
            let token = flow.tokens.pop_front();
            if flow.tokens.is_empty() {
                flow.listed = false;
                self.ready.pop_first();
            }
            if let (Some(token), Some(flow)) = (token, self.flows.get_mut(at)) {
                if !flow.sent.insert(token.seq) {
                    cx.fx.count(Stat::Retransmission);
                }
                flow.fill(cx, &self.config, token, slot);
                return true;
            }
        }
        false
    }
}

impl Flow {
    fn fill(&mut self, cx: &Cx<'_>, config: &Config, token: Token, slot: &mut Packet) {
        let Token { number, seq, .. } = token;
        let len = config.framing().payload_of(seq, self.msg.len);
        let classes = config.classes;
        self.departures += 1;
        slot.dst = self.msg.dst;
        slot.path = self.paths.path(cx.net, self.departures);
        slot.class =
            if self.packets <= config.short_packets { classes.short } else { classes.long };
        slot.wire_len = len + config.header;
        let offset = seq * u64::from(config.payload);
        slot.span = Span { msg: self.msg.id, offset, len: u32::from(len) };
        let kind = Kind::Data { number, seq, size: self.msg.len, len };
        put_header(slot, Repr { message: self.msg.id.0, kind });
    }

    fn control(&mut self, cx: &Cx<'_>, kind: Kind) -> Control {
        self.departures += 1;
        let path = self.paths.path(cx.net, self.departures);
        control(self.msg.dst, path, self.msg.id, kind)
    }
}

/// Tell `to` that message `id` is over here.
fn end(cx: &Cx<'_>, config: &Config, to: HostId, id: MsgId) -> Control {
    let paths = ControlPaths::new(config.paths, cx.net, to, cx.draw.part(id.0));
    // Time makes the draw differ between repeated answers.
    let path = paths.path(cx.net, cx.now.0);
    control(to, path, id, Kind::End)
}
