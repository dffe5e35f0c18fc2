//! The messages that a host sends: of those whose window is open, one packet each in turn
//! (specs/uet.md#4.5).

use std::collections::VecDeque;

use endpoint::{Cx, FailReason, Flags, FlowState, Msg, MsgId, MsgKey, Packet, Span, Stat, TimerId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{HostId, Time};
use wire::uet::{Ack, Kind, Repr};

use super::config::Config;
use super::flow::{Departure, Flow};
use super::{Control, Outbox, control, path, put_header};
use crate::channels::{Channels, Next, Turn};
use crate::deadlines::Deadlines;
use crate::slab::{Slab, SlotRef};

/// The sending half of a host.
#[derive(Debug)]
pub(super) struct Sender {
    config: Config,
    timer: TimerId,
    flows: Slab<Flow>,
    by_id: HashMap<MsgId, SlotRef, FxBuildHasher>,
    /// Messages that may send, or could when they were listed.
    ready: VecDeque<SlotRef>,
    /// When to look at a message: at or before its time.
    deadlines: Deadlines,
    channels: Channels,
    /// Connections that are kept, each for a channel to a host.
    kept: HashMap<(HostId, u32), SlotRef, FxBuildHasher>,
}

impl Sender {
    pub(super) fn new(config: Config, timer: TimerId) -> Self {
        Self {
            config,
            timer,
            flows: Slab::new(),
            by_id: HashMap::default(),
            ready: VecDeque::new(),
            deadlines: Deadlines::new(),
            channels: Channels::default(),
            kept: HashMap::default(),
        }
    }

    pub(super) fn submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) {
        if self.config.keep_connections.is_some() && msg.channel != 0 {
            self.join(cx, *msg);
        } else if self.channels.enter(msg) == Turn::First {
            self.start(cx, *msg, false);
        }
    }

    fn start(&mut self, cx: &Cx<'_>, msg: Msg, kept: bool) -> SlotRef {
        let at = self.flows.insert(Flow::new(cx, &self.config, msg, kept));
        self.by_id.insert(msg.id, at);
        self.list(at);
        at
    }

    /// Send a message over its channel's connection.
    fn join(&mut self, cx: &Cx<'_>, msg: Msg) {
        let channel = (msg.dst, msg.channel);
        let at = self.kept.get(&channel).copied();
        let flow = at.and_then(|at| Some((at, self.flows.get_mut(at)?)));
        let Some((at, flow)) = flow else {
            let at = self.start(cx, msg, true);
            self.kept.insert(channel, at);
            return;
        };
        flow.push(&self.config, msg);
        self.by_id.insert(msg.id, at);
        self.list(at);
    }

    /// Have the message wait for its turn, if it may send.
    fn list(&mut self, at: SlotRef) {
        let Some(flow) = self.flows.get_mut(at) else { return };
        if !flow.listed && flow.may_send(&self.config) {
            flow.listed = true;
            self.ready.push_back(at);
        }
    }

    /// Whether a message waits for its turn.
    pub(super) fn waits(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The message of ours that `key`, with the host that speaks of it, means.
    fn find(&mut self, cx: &mut Cx<'_>, key: MsgKey) -> Option<(SlotRef, &mut Flow)> {
        let at = *self.by_id.get(&key.id)?;
        let flow = self.flows.get_mut(at)?;
        if flow.msg.dst != key.src {
            cx.fx.count(Stat::Rejected);
            return None;
        }
        Some((at, flow))
    }

    pub(super) fn on_ack(&mut self, cx: &mut Cx<'_>, key: MsgKey, of: (u32, u16), ack: &Ack) {
        let config = self.config;
        let Some((at, flow)) = self.find(cx, key) else { return };
        if !flow.on_ack(cx, &config, of, ack) {
            cx.fx.count(Stat::Rejected);
        } else if flow.is_done() && !flow.kept {
            cx.fx.acked(key.id);
            self.close(cx, at);
        } else {
            self.finish(cx, at);
            self.list(at);
            self.time(cx, at);
        }
    }

    /// Tell of the messages of a connection that have arrived.
    fn finish(&mut self, cx: &mut Cx<'_>, at: SlotRef) {
        let Some(flow) = self.flows.get_mut(at).filter(|flow| flow.kept) else { return };
        while let Some(id) = flow.pop_arrived(cx.now) {
            // By its first message a connection is found as long as it lasts.
            if id != flow.msg.id {
                self.by_id.remove(&id);
            }
            cx.fx.acked(id);
        }
    }

    pub(super) fn on_nack(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        of: (u32, u16),
        how: (bool, bool),
    ) {
        let config = self.config;
        let Some((at, flow)) = self.find(cx, key) else { return };
        if flow.on_nack(cx, &config, of, how) {
            self.list(at);
            self.time(cx, at);
        } else {
            cx.fx.count(Stat::Rejected);
        }
    }

    /// The receiver has given the message so much credit in all.
    pub(super) fn on_credit(&mut self, cx: &mut Cx<'_>, key: MsgKey, given: u32) {
        let Some((at, flow)) = self.find(cx, key) else { return };
        flow.on_credit(cx.now, given);
        self.list(at);
        self.time(cx, at);
    }

    /// Have the message looked at when it is due.
    fn time(&mut self, cx: &mut Cx<'_>, at: SlotRef) {
        let Some(flow) = self.flows.get_mut(at) else { return };
        let sooner = flow.take_sooner();
        if self.deadlines.is_set(at.index()) && !sooner {
            return;
        }
        let (due, next) = (flow.due(cx, &self.config), self.deadlines.next());
        self.deadlines.set(at.index(), due.map_or(Time::NEVER, |due| due.max(cx.now)));
        if self.deadlines.next() != next {
            self.arm(cx);
        }
    }

    fn arm(&self, cx: &mut Cx<'_>) {
        cx.fx.arm(self.timer, self.deadlines.next());
    }

    /// The time of some message may have come.
    pub(super) fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut Outbox) {
        while let Some(slot) = self.deadlines.pop(cx.now) {
            let Some(at) = self.flows.at(slot) else { continue };
            self.look_at(cx, at, out);
        }
        self.arm(cx);
    }

    /// What was sent a timeout ago is lost, and credit has to be asked for where there is none.
    fn look_at(&mut self, cx: &mut Cx<'_>, at: SlotRef, out: &mut Outbox) {
        let Some(flow) = self.flows.get_mut(at) else { return };
        let (silent, any) = flow.time_out(cx, &self.config);
        let Msg { id, dst: to, len, .. } = flow.msg;
        let (kept, size) = (flow.kept, if flow.kept { 0 } else { len });
        let over = flow.kept_until(&self.config).is_some_and(|until| until <= cx.now);
        if over || (any && silent >= self.config.abort_after) {
            self.end(cx, at, FailReason::TimedOut, out);
            return;
        }
        while let Some((entropy, number)) = flow.probe(cx.now) {
            let path = path(&self.config, cx, to, entropy);
            let span = Span { msg: id, offset: 0, len: 0 };
            let header = Repr { message: id.0, kind: Kind::Probe { entropy, number } };
            out.push(Control { to, path, span, header });
        }
        let Some(flow) = self.flows.get_mut(at) else { return };
        if any {
            cx.fx.timeout(Stat::OtherTimeout, id);
            if let Some(target) = flow.ask(cx.now, &self.config) {
                out.push(control(
                    cx,
                    &self.config,
                    to,
                    id,
                    Kind::CreditRequest { size, kept, target },
                ));
            }
        }
        self.time(cx, at);
        self.list(at);
    }

    pub(super) fn cancel(&mut self, cx: &mut Cx<'_>, id: MsgId, out: &mut Outbox) {
        let key = MsgKey { src: cx.me, id };
        let Some(&at) = self.by_id.get(&id) else {
            if self.channels.cancel(id) {
                cx.fx.failed(key, FailReason::Cancelled);
            }
            return;
        };
        let Some(flow) = self.flows.get_mut(at) else { return };
        if !flow.kept {
            self.end(cx, at, FailReason::Cancelled, out);
        } else if flow.cancel(cx.now, &self.config, id) {
            cx.fx.failed(key, FailReason::Cancelled);
            if id != flow.msg.id {
                self.by_id.remove(&id);
            }
            self.finish(cx, at);
            self.list(at);
            self.time(cx, at);
        }
    }

    /// Give a connection up with its messages, and tell the receiver.
    fn end(&mut self, cx: &mut Cx<'_>, at: SlotRef, why: FailReason, out: &mut Outbox) {
        if let Some(flow) = self.flows.get(at) {
            let Msg { id, dst, .. } = flow.msg;
            out.push(control(cx, &self.config, dst, id, Kind::Close));
            for id in flow.messages() {
                cx.fx.failed(MsgKey { src: cx.me, id }, why);
            }
        }
        self.close(cx, at);
    }

    /// Forget a connection, and start the next message of its channel.
    fn close(&mut self, cx: &mut Cx<'_>, at: SlotRef) {
        let Some(flow) = self.flows.remove(at) else { return };
        self.by_id.remove(&flow.msg.id);
        if flow.kept {
            for id in flow.messages() {
                self.by_id.remove(&id);
            }
            self.kept.remove(&(flow.msg.dst, flow.msg.channel));
        }
        if flow.listed {
            self.ready.retain(|&other| other != at);
        }
        self.deadlines.set(at.index(), Time::NEVER);
        if self.flows.is_empty() {
            self.arm(cx);
        }
        if !flow.kept
            && let Some(Next::Start(next)) = self.channels.leave(&flow.msg)
        {
            self.start(cx, next, false);
        }
    }

    /// The next packet of the message whose turn it is. False if none may send.
    pub(super) fn poll(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> bool {
        while let Some(at) = self.ready.pop_front() {
            let Some(flow) = self.flows.get_mut(at) else { continue };
            flow.listed = false;
            let turns = 1 + self.ready.len() as u64;
            let Some(departure) = flow.send(cx, &self.config, turns) else { continue };
            if departure.repeated {
                cx.fx.count(Stat::Retransmission);
            }
            let (id, kept) = (flow.msg.id, flow.kept);
            self.fill(cx, (id, kept), departure, slot);
            self.list(at);
            self.time(cx, at);
            return true;
        }
        false
    }

    fn fill(
        &self,
        cx: &Cx<'_>,
        (id, kept): (MsgId, bool),
        departure: Departure,
        slot: &mut Packet,
    ) {
        let Departure { msg, index, seq, len, entropy, ack_request, repeated, target } = departure;
        slot.dst = msg.dst;
        slot.path = path(&self.config, cx, msg.dst, entropy);
        slot.wire_len = len + self.config.header;
        slot.flags = Flags::ECT;
        let offset = index * u64::from(self.config.payload);
        slot.span = Span { msg: msg.id, offset, len: u32::from(len) };
        let (psn, size) = (seq as u32, msg.len);
        let kind = Kind::Request { entropy, psn, size, len, ack_request, repeated, kept, target };
        put_header(slot, Repr { message: id.0, kind });
    }

    /// What message `id` may send, if it is being sent; for traces.
    pub(super) fn state(&self, id: MsgId) -> Option<FlowState> {
        Some(self.flows.get(*self.by_id.get(&id)?)?.state())
    }

    /// See [`endpoint::Endpoint::unsent`].
    pub(super) fn unsent(&self, id: MsgId) -> Option<u64> {
        self.flows.get(*self.by_id.get(&id)?)?.unsent(&self.config, id)
    }

    /// See [`endpoint::Endpoint::shorten`].
    pub(super) fn shorten(&mut self, id: MsgId, bytes: u64) -> u64 {
        let flow = self.by_id.get(&id).and_then(|&at| self.flows.get_mut(at));
        flow.map_or(0, |flow| flow.shorten(&self.config, id, bytes))
    }

    /// The messages under way.
    #[cfg(test)]
    pub(super) fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.by_id.values().filter_map(|&at| self.flows.get(at))
    }
}
