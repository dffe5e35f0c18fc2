//! The messages that a host sends: of those whose window is open, the one with the least left first
//! (specs/pfabric.md#3).

use std::collections::BTreeSet;

use endpoint::{Cx, FailReason, Flags, Msg, MsgId, MsgKey, Packet, Span, Stat, TimerId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, Time};
use wire::pfabric::{Kind, Repr};

use super::config::Config;
use super::{Control, Outbox, path, put_header};
use crate::channels::{Channels, Next, Turn};
use crate::deadlines::Deadlines;
use crate::received::Received;
use crate::slab::{Slab, SlotRef};

/// The least threshold of slow start, packets, as in TCP.
const THRESHOLD_MIN: f64 = 2.0;

/// One message at its sender.
#[derive(Debug)]
struct Flow {
    msg: Msg,
    packets: u64,
    /// Counts messages: of two with as much left the older goes first.
    order: u64,
    /// Under what it is listed, if it may send.
    listed: Option<u64>,
    /// Packets that have arrived, as far as is known.
    acked: Received,
    /// Their payload, bytes.
    acked_bytes: u64,
    /// Where to look for the next packet to send; what lies below is acknowledged or in flight.
    cursor: u64,
    /// Packets sent at least once.
    sent: u64,
    /// Packets beyond the first unacknowledged one that may be sent.
    window: f64,
    /// Up to this window, slow start.
    threshold: f64,
    /// Timeouts since the last acknowledgement.
    timeouts: u32,
    /// Probes are sent instead of packets.
    probing: bool,
    /// When what is in flight counts as lost.
    due: Time,
    /// When an acknowledgement last came, or the first packet went since nothing was in flight.
    heard: Time,
    /// How long, together, answers were waited for in vain before that. Waiting here for others to
    /// send is no part of it.
    in_vain: Dur,
    /// Packets sent, for the draws of paths.
    departures: u64,
}

/// The sending half of a host.
#[derive(Debug)]
pub(super) struct Sender {
    config: Config,
    timer: TimerId,
    flows: Slab<Flow>,
    by_id: HashMap<MsgId, SlotRef, FxBuildHasher>,
    /// Messages that may send, the least left first.
    ready: BTreeSet<(u64, u64, SlotRef)>,
    /// When to look at a message: at or before its time.
    deadlines: Deadlines,
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
            deadlines: Deadlines::new(),
            channels: Channels::default(),
            started: 0,
        }
    }

    pub(super) fn submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) {
        if self.channels.enter(msg) == Turn::First {
            self.start(cx, *msg);
        }
    }

    /// At line rate from the first packet on.
    fn start(&mut self, cx: &Cx<'_>, msg: Msg) {
        self.started += 1;
        let at = self.flows.insert(Flow {
            msg,
            packets: self.config.framing().packets(msg.len),
            order: self.started,
            listed: None,
            acked: Received::default(),
            acked_bytes: 0,
            cursor: 0,
            sent: 0,
            window: f64::from(self.config.initial_window),
            threshold: f64::from(self.config.max_window),
            timeouts: 0,
            probing: false,
            due: Time::NEVER,
            heard: cx.now,
            in_vain: Dur::ZERO,
            departures: 0,
        });
        self.by_id.insert(msg.id, at);
        self.list(at);
    }

    /// Have the message where what is left of it puts it, if it may send.
    fn list(&mut self, at: SlotRef) {
        let Some(flow) = self.flows.get_mut(at) else { return };
        let place = flow.next().is_some().then(|| flow.left());
        if place == flow.listed {
            return;
        }
        if let Some(old) = std::mem::replace(&mut flow.listed, place) {
            self.ready.remove(&(old, flow.order, at));
        }
        if let Some(new) = place {
            self.ready.insert((new, flow.order, at));
        }
    }

    /// Packet `seq` of a message of ours has arrived, and none below `missing` is missing. If that
    /// is `seq`, only its probe has.
    pub(super) fn on_ack(
        &mut self,
        cx: &mut Cx<'_>,
        MsgKey { src: from, id }: MsgKey,
        (seq, missing): (u64, u64),
    ) {
        let Some(&at) = self.by_id.get(&id) else { return };
        let Some(flow) = self.flows.get_mut(at) else { return };
        // What was never sent has not arrived, whatever a peer says.
        if flow.msg.dst != from || seq >= flow.sent || missing > flow.sent {
            cx.fx.count(Stat::Rejected);
            return;
        }
        let before = flow.acked.prefix();
        if missing != seq {
            flow.acknowledge(&self.config, seq);
        }
        for index in before..missing {
            flow.acknowledge(&self.config, index);
        }
        flow.heard = cx.now;
        flow.timeouts = 0;
        let progress = flow.acked.prefix() > before;
        // That a probe gets through says nothing of full packets.
        if progress || missing != seq {
            flow.in_vain = Dur::ZERO;
        }
        if flow.probing {
            // Something gets through: what is missing is sent from the first packet on.
            flow.probing = false;
            flow.due = Time::NEVER;
            flow.cursor = flow.acked.prefix();
        }
        if progress {
            flow.grow(&self.config);
            flow.cursor = flow.cursor.max(flow.acked.prefix());
            let in_flight = flow.cursor > flow.acked.prefix();
            flow.due = if in_flight { self.config.timeout(cx) } else { Time::NEVER };
        }
        if flow.acked.prefix() == flow.packets {
            cx.fx.acked(id);
            self.close(cx, at);
            return;
        }
        self.list(at);
        self.time(cx, at);
    }

    /// Have an entry for the message's time, if it has one.
    fn time(&mut self, cx: &mut Cx<'_>, at: SlotRef) {
        let Some(flow) = self.flows.get_mut(at) else { return };
        if self.deadlines.is_set(at.index()) || flow.due == Time::NEVER {
            return;
        }
        self.deadlines.set(at.index(), flow.due);
        self.arm(cx);
    }

    fn arm(&self, cx: &mut Cx<'_>) {
        cx.fx.arm(self.timer, self.deadlines.next());
    }

    /// The time of some message may have come.
    pub(super) fn on_timer(&mut self, cx: &mut Cx<'_>, out: &mut Outbox) {
        while let Some(slot) = self.deadlines.pop(cx.now) {
            let Some(at) = self.flows.at(slot) else { continue };
            let Some(flow) = self.flows.get_mut(at) else { continue };
            if flow.due <= cx.now {
                self.time_out(cx, at, out);
            } else {
                self.deadlines.set(slot, flow.due);
            }
        }
        self.arm(cx);
    }

    /// What is in flight is lost. The timer runs again once something has been sent.
    fn time_out(&mut self, cx: &mut Cx<'_>, at: SlotRef, out: &mut Outbox) {
        let Some(flow) = self.flows.get_mut(at) else { return };
        flow.in_vain += cx.now.since(flow.heard);
        if flow.in_vain >= self.config.abort_after {
            let key = MsgKey { src: cx.me, id: flow.msg.id };
            self.end(cx, at, key, FailReason::TimedOut, out);
            return;
        }
        cx.fx.timeout(Stat::OtherTimeout, flow.msg.id);
        flow.due = Time::NEVER;
        flow.timeouts = flow.timeouts.saturating_add(1);
        flow.probing = flow.timeouts >= self.config.probe_after;
        flow.threshold = (flow.window / 2.0).floor().max(THRESHOLD_MIN);
        flow.window = 1.0;
        flow.cursor = flow.acked.prefix();
        self.list(at);
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
            let to = flow.msg.dst;
            let path = path(&self.config, cx, to, key.id, flow.departures);
            let span = Span { msg: key.id, offset: 0, len: 0 };
            let header = Repr { message: key.id.0, kind: Kind::End };
            out.push(Control { to, path, span, header });
        }
        cx.fx.failed(key, why);
        self.close(cx, at);
    }

    /// Forget a message, and start the next one of its channel.
    fn close(&mut self, cx: &mut Cx<'_>, at: SlotRef) {
        let Some(Flow { msg, listed, order, .. }) = self.flows.remove(at) else { return };
        if let Some(left) = listed {
            self.ready.remove(&(left, order, at));
        }
        self.by_id.remove(&msg.id);
        self.deadlines.set(at.index(), Time::NEVER);
        if self.flows.is_empty() {
            self.arm(cx);
        }
        if let Some(Next::Start(next)) = self.channels.leave(&msg) {
            self.start(cx, next);
        }
    }

    /// The next packet, if a message may send. False if none may.
    pub(super) fn poll(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> bool {
        let Some(&(_, _, at)) = self.ready.first() else { return false };
        let Some(flow) = self.flows.get_mut(at) else { return false };
        let Some(seq) = flow.next() else { return false };
        flow.fill(cx, &self.config, seq, slot);
        if flow.due == Time::NEVER {
            flow.heard = cx.now;
            flow.due = self.config.timeout(cx);
        }
        if !flow.probing {
            if seq < flow.sent {
                cx.fx.count(Stat::Retransmission);
            }
            flow.sent = flow.sent.max(seq + 1);
        }
        flow.cursor = seq + 1;
        self.list(at);
        self.time(cx, at);
        true
    }
}

impl Flow {
    /// Payload that is not acknowledged, bytes.
    fn left(&self) -> u64 {
        self.msg.len.saturating_sub(self.acked_bytes)
    }

    /// The next packet that it may send: missing, not in flight, and inside the window. Of probes,
    /// one at a time.
    fn next(&self) -> Option<u64> {
        let first = self.acked.prefix();
        if self.probing {
            return (self.cursor <= first).then_some(first);
        }
        let end = self.packets.min(first.saturating_add(self.window as u64));
        (self.cursor.max(first)..end).find(|&seq| !self.acked.contains(seq))
    }

    /// Packet `seq` has arrived.
    fn acknowledge(&mut self, config: &Config, seq: u64) {
        if self.acked.insert(seq) {
            self.acked_bytes += u64::from(config.framing().payload_of(seq, self.msg.len));
        }
    }

    /// As TCP's: slow start, then a packet each round trip.
    fn grow(&mut self, config: &Config) {
        self.window += if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
        self.window = self.window.min(f64::from(config.max_window));
    }

    fn fill(&mut self, cx: &Cx<'_>, config: &Config, seq: u64, slot: &mut Packet) {
        let size = self.msg.len;
        let len = config.framing().payload_of(seq, size);
        self.departures += 1;
        slot.dst = self.msg.dst;
        slot.path = path(config, cx, self.msg.dst, self.msg.id, self.departures);
        let offset = seq * u64::from(config.payload);
        let remaining = u32::try_from(self.left()).unwrap_or(u32::MAX);
        let kind = if self.probing {
            slot.wire_len = config.control;
            slot.flags = Flags::CONTROL;
            slot.span = Span { msg: self.msg.id, offset, len: 0 };
            Kind::Probe { remaining, seq, size }
        } else {
            slot.wire_len = len + config.header;
            slot.span = Span { msg: self.msg.id, offset, len: u32::from(len) };
            Kind::Data { remaining, seq, size, len }
        };
        put_header(slot, Repr { message: self.msg.id.0, kind });
    }
}
