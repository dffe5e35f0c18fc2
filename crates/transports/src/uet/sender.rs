//! The messages that a host sends: of those whose window is open, one packet each in turn
//! (specs/uet.md#4.5).

use std::collections::VecDeque;

use endpoint::{Cx, FailReason, Flags, FlowState, Msg, MsgId, MsgKey, Packet, Span, Stat, TimerId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::Time;
use wire::uet::{Ack, Kind, Repr};

use super::config::Config;
use super::flow::{Departure, Flow};
use super::{Outbox, control, path, put_header};
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
        }
    }

    pub(super) fn submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) {
        if self.channels.enter(msg) == Turn::First {
            self.start(cx, *msg);
        }
    }

    fn start(&mut self, cx: &Cx<'_>, msg: Msg) {
        let at = self.flows.insert(Flow::new(cx, &self.config, msg));
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
        } else if flow.is_done() {
            cx.fx.acked(key.id);
            self.close(cx, at);
        } else {
            self.list(at);
            self.time(cx, at);
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
        let (id, to, size) = (flow.msg.id, flow.msg.dst, flow.msg.len);
        if any && silent >= self.config.abort_after {
            self.end(cx, at, MsgKey { src: cx.me, id }, FailReason::TimedOut, out);
            return;
        }
        if any {
            cx.fx.timeout(Stat::OtherTimeout, id);
            if let Some(target) = flow.ask(cx.now, &self.config) {
                out.push(control(cx, &self.config, to, id, Kind::CreditRequest { size, target }));
            }
        }
        self.time(cx, at);
        self.list(at);
    }

    pub(super) fn cancel(&mut self, cx: &mut Cx<'_>, id: MsgId, out: &mut Outbox) {
        let key = MsgKey { src: cx.me, id };
        if let Some(&at) = self.by_id.get(&id) {
            self.end(cx, at, key, FailReason::Cancelled, out);
        } else if self.channels.cancel(id) {
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
        if let Some(flow) = self.flows.get(at) {
            out.push(control(cx, &self.config, flow.msg.dst, key.id, Kind::Close));
        }
        cx.fx.failed(key, why);
        self.close(cx, at);
    }

    /// Forget a message, and start the next one of its channel.
    fn close(&mut self, cx: &mut Cx<'_>, at: SlotRef) {
        let Some(flow) = self.flows.remove(at) else { return };
        self.by_id.remove(&flow.msg.id);
        if flow.listed {
            self.ready.retain(|&other| other != at);
        }
        self.deadlines.set(at.index(), Time::NEVER);
        if self.flows.is_empty() {
            self.arm(cx);
        }
        if let Some(Next::Start(next)) = self.channels.leave(&flow.msg) {
            self.start(cx, next);
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
            let msg = flow.msg;
            self.fill(cx, &msg, departure, slot);
            self.list(at);
            self.time(cx, at);
            return true;
        }
        false
    }

    fn fill(&self, cx: &Cx<'_>, msg: &Msg, departure: Departure, slot: &mut Packet) {
        let Departure { seq, len, entropy, ack_request, repeated, target } = departure;
        slot.dst = msg.dst;
        slot.path = path(&self.config, cx, msg.dst, entropy);
        slot.wire_len = len + self.config.header;
        slot.flags = Flags::ECT;
        let offset = seq * u64::from(self.config.payload);
        slot.span = Span { msg: msg.id, offset, len: u32::from(len) };
        let (psn, size) = (seq as u32, msg.len);
        let kind = Kind::Request { entropy, psn, size, len, ack_request, repeated, target };
        put_header(slot, Repr { message: msg.id.0, kind });
    }

    /// What message `id` may send, if it is being sent; for traces.
    pub(super) fn state(&self, id: MsgId) -> Option<FlowState> {
        Some(self.flows.get(*self.by_id.get(&id)?)?.state())
    }

    /// The messages under way.
    #[cfg(test)]
    pub(super) fn flows(&self) -> impl Iterator<Item = &Flow> {
        self.by_id.values().filter_map(|&at| self.flows.get(at))
    }
}
