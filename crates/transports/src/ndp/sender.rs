//! All messages that a host sends: who may send next, timeouts, channels, time-wait.
//!
//! What may be sent now is a FIFO of send credits, in the order in which they arose: a first window
//! when its message is submitted, a packet when it is pulled for, a resend when a rule of section
//! 5.4 or 5.5 says so. A credit names a message, not a packet: which packet that is, is decided
//! when the wire is free.
//!
//! Timeouts: each message has one instant at which its packets in flight are looked at; the
//! earliest of them is the host's one timer. An instant that has become too early costs a look; it
//! is never too late by more than the timeout's own change since it was set.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use endpoint::{
    Cx, FailReason, Flags, FlowState, Msg, MsgId, MsgKey, Packet, Span, Stat, Submit, TimerId, Tx,
};
use units::{HostId, Time};
use wire::ndp::{Data, Feedback, Kind, Repr};

use super::config::Config;
use super::flow::{Checked, Departure, Flow, Memory};
use super::index::Index;
use super::reject;
use crate::channels::{Channels, Next, Turn};
use crate::slab::{Slab, SlotRef};
use crate::time_wait::TimeWait;

/// How many finished messages leave their buffers to later ones.
const MEMORIES: usize = 4;

/// Packets that a message may send.
#[derive(Debug)]
struct Credit {
    flow: SlotRef,
    packets: u64,
}

/// Where a message of this host is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Being sent.
    Sending(SlotRef),
    /// Behind others on its channel.
    Waiting,
}

/// What a sender has to do: packets to send, timeouts to look at.
#[derive(Debug)]
struct Agenda {
    credits: VecDeque<Credit>,
    /// When to look at which message. Entries that disagree with `Flow::check_at` are stale.
    checks: BinaryHeap<Reverse<(Time, SlotRef)>>,
    timer: TimerId,
    /// The deadline of `timer`.
    armed: Time,
}

impl Agenda {
    /// Let a message send up to `packets` more, after everyone who has been granted before. Returns
    /// how many of them it has nothing to send for. The last packet, if it is held back, counts as
    /// sent: it is owed.
    #[inline(always)]
    fn grant(&mut self, cx: &mut Cx<'_>, at: SlotRef, flow: &mut Flow, packets: u64) -> u64 {
        let idle = packets.saturating_sub(flow.ungranted());
        let packets = packets - idle;
        let idle = if idle > 0 { idle - flow.owe_last() } else { idle };
        if packets == 0 {
            return idle;
        }
        flow.granted += packets;
        match self.credits.back_mut() {
            Some(last) if last.flow == at => last.packets += packets,
            _ => self.credits.push_back(Credit { flow: at, packets }),
        }
        // No packet sent from now on can be due before this.
        self.check_by(cx, at, flow, cx.now.saturating_add(flow.rto()));
        idle
    }

    /// Let a message send what it is pulled for.
    #[inline]
    fn pull(&mut self, cx: &mut Cx<'_>, at: SlotRef, flow: &mut Flow, packets: u64) {
        if packets > 0 {
            let idle = self.grant(cx, at, flow, packets);
            if idle > 0 {
                flow.keep_early_pulls(idle);
            }
        }
    }

    /// Look at a message at `due` or earlier.
    #[inline]
    fn check_by(&mut self, cx: &mut Cx<'_>, at: SlotRef, flow: &mut Flow, due: Time) {
        if due < flow.check_at {
            flow.check_at = due;
            self.check_at(cx, at, due);
        }
    }

    #[cold]
    fn check_at(&mut self, cx: &mut Cx<'_>, at: SlotRef, due: Time) {
        self.checks.push(Reverse((due, at)));
        self.arm(cx, due);
    }

    /// Let the timer fire at `due` or earlier.
    fn arm(&mut self, cx: &mut Cx<'_>, due: Time) {
        if due < self.armed {
            self.armed = due;
            cx.fx.arm(self.timer, due);
        }
    }
}

/// The sending half of a host.
#[derive(Debug)]
pub(crate) struct Sender {
    flows: Slab<Flow>,
    by_id: Index<MsgId, Stage>,
    agenda: Agenda,
    channels: Channels,
    /// Ids that must not be used again yet.
    finished: TimeWait<MsgId, ()>,
    memories: Vec<Memory>,
}

impl Sender {
    pub(crate) fn new(timer: TimerId) -> Self {
        let (credits, checks) = (VecDeque::new(), BinaryHeap::new());
        Self {
            flows: Slab::new(),
            by_id: Index::new(),
            agenda: Agenda { credits, checks, timer, armed: Time::NEVER },
            channels: Channels::default(),
            finished: TimeWait::new(),
            memories: Vec::new(),
        }
    }

    /// See [`endpoint::Endpoint::on_over`].
    pub(super) fn forget(&mut self, id: MsgId) {
        self.finished.forget(&id);
    }

    pub(crate) fn submit(&mut self, cx: &mut Cx<'_>, config: &Config, msg: &Msg) -> Submit {
        // At-most-once (specs/ndp.md#8): an id in use, or used within the last MSL, is refused.
        if self.by_id.get(msg.id).is_some() || self.is_finished(cx.now, msg.id) {
            cx.fx.failed(MsgKey { src: cx.me, id: msg.id }, FailReason::Refused);
            return Submit::Taken;
        }
        if self.by_id.len() >= config.max_tx_messages as usize {
            return Submit::Full;
        }
        match self.channels.enter(msg) {
            Turn::First => self.start(cx, config, *msg, false),
            Turn::Second => self.start(cx, config, *msg, true),
            Turn::Later => self.by_id.insert(msg.id, Stage::Waiting),
        }
        Submit::Taken
    }

    fn is_finished(&mut self, now: Time, id: MsgId) -> bool {
        self.finished.get(now, &id).is_some()
    }

    /// Zero-RTT: the first window goes out without asking. `behind` another of its channel: all but
    /// the last packet, without which it is not delivered.
    fn start(&mut self, cx: &mut Cx<'_>, config: &Config, msg: Msg, behind: bool) {
        let memory = self.memories.pop().unwrap_or_default();
        let mut flow = Flow::new(config, cx.net, cx.now, cx.draw, msg, memory);
        flow.hold_last(behind);
        let window = flow.first_window(config);
        let at = self.flows.insert(flow);
        self.by_id.insert(msg.id, Stage::Sending(at));
        if let Some(flow) = self.flows.get_mut(at) {
            self.agenda.grant(cx, at, flow, window);
        }
    }

    /// See [`endpoint::Endpoint::prefetch`]: the next to send, and the message of the last packet
    /// that came.
    pub(crate) fn prefetch(&self, step: u8) {
        let heard = match self.by_id.latest() {
            Some(Stage::Sending(at)) => Some(at),
            _ => None,
        };
        if step == 0 {
            if let Some(credit) = self.agenda.credits.front() {
                endpoint::prefetch::item(credit);
            }
            heard.into_iter().for_each(|at| self.flows.prefetch(at));
        } else {
            let next = self.agenda.credits.front().map(|credit| credit.flow);
            if let Some(next) = next.filter(|&next| Some(next) != heard) {
                self.flows.prefetch(next);
            }
            if let Some(flow) = heard.and_then(|at| self.flows.get(at)) {
                flow.prefetch();
            }
        }
    }

    /// What may be sent of message `id`, if it is being sent; for traces.
    pub(super) fn state(&self, config: &Config, id: MsgId) -> Option<FlowState> {
        let Some(Stage::Sending(at)) = self.by_id.peek(id) else { return None };
        Some(self.flows.get(at)?.state(config))
    }

    /// See [`endpoint::Endpoint::unsent`].
    pub(super) fn unsent(&self, config: &Config, id: MsgId) -> Option<u64> {
        let Some(Stage::Sending(at)) = self.by_id.peek(id) else { return None };
        Some(self.flows.get(at)?.unsent(config))
    }

    /// See [`endpoint::Endpoint::shorten`].
    pub(super) fn shorten(&mut self, config: &Config, id: MsgId, bytes: u64) -> u64 {
        let Some(Stage::Sending(at)) = self.by_id.peek(id) else { return 0 };
        self.flows.get_mut(at).map_or(0, |flow| flow.shorten(config, bytes))
    }

    /// Put the next packet into `slot`, unless nothing may be sent.
    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Cx<'_>, config: &Config, slot: &mut Packet) -> Tx {
        if self.agenda.credits.is_empty() { Tx::Idle } else { self.send(cx, config, slot) }
    }

    #[inline(never)]
    fn send(&mut self, cx: &mut Cx<'_>, config: &Config, slot: &mut Packet) -> Tx {
        while let Some(credit) = self.agenda.credits.front_mut() {
            if let Some(flow) = self.flows.get_mut(credit.flow)
                && let Some(departure) = flow.send(config, cx.net, cx.now)
            {
                flow.granted -= 1;
                credit.packets -= 1;
                if credit.packets == 0 {
                    self.agenda.credits.pop_front();
                }
                if departure.retransmission {
                    cx.fx.count(Stat::Retransmission);
                }
                let msg = flow.msg;
                fill(cx.me, config, &msg, departure, slot);
                if departure.last && msg.channel != 0 && !departure.retransmission {
                    self.start_behind(cx, config, &msg);
                }
                return Tx::Sent;
            }
            self.drop_credit();
        }
        Tx::Idle
    }

    /// All of `msg` is sent: the next one of its channel starts behind it.
    #[cold]
    fn start_behind(&mut self, cx: &mut Cx<'_>, config: &Config, msg: &Msg) {
        if let Some(next) = self.channels.sent(msg) {
            self.start(cx, config, next, true);
        }
    }

    /// A message that started behind another is now the first of its channel.
    fn release(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        let Some(Stage::Sending(at)) = self.by_id.get(id) else { return };
        let Some(flow) = self.flows.get_mut(at) else { return };
        if flow.release_last() {
            self.agenda.grant(cx, at, flow, 1);
        }
    }

    /// The first credit is for a message that is over, or has nothing to send any more.
    #[cold]
    fn drop_credit(&mut self) {
        if let Some(credit) = self.agenda.credits.pop_front()
            && let Some(flow) = self.flows.get_mut(credit.flow)
        {
            flow.granted -= credit.packets;
        }
    }

    /// The message that a control packet is about, if it is one of ours: `key.src` is who sent the
    /// packet.
    #[inline]
    fn find(&mut self, cx: &mut Cx<'_>, key: MsgKey) -> Option<(SlotRef, &mut Flow, &mut Agenda)> {
        if let Some(Stage::Sending(at)) = self.by_id.get(key.id)
            && let Some(flow) = self.flows.get_mut(at)
            && flow.msg.dst == key.src
        {
            return Some((at, flow, &mut self.agenda));
        }
        reject(cx);
        None
    }

    #[inline]
    pub(crate) fn on_feedback(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        key: MsgKey,
        feedback: Feedback,
        is_ack: bool,
    ) {
        let Some((at, flow, agenda)) = self.find(cx, key) else { return };
        let Feedback { seq, cumulative, pull } = feedback;
        let early = if is_ack {
            flow.on_ack(config, cx.now, cx.rx_at, seq, cumulative).then_some(0)
        } else {
            flow.on_nack(cx.now, seq, cumulative)
        };
        let Some(early) = early else {
            reject(cx);
            return;
        };
        if flow.is_done() {
            self.finish(cx, config, at, None);
            return;
        }
        let pulled = pull.map_or(0, |pull| flow.on_pull(cx.now, pull));
        agenda.pull(cx, at, flow, early + pulled);
        // The first round-trip sample shortens the initial timeout; an answer to a flow that was
        // given long to wait ends that.
        agenda.check_by(cx, at, flow, cx.now.saturating_add(flow.rto()));
    }

    #[inline]
    pub(crate) fn on_pull(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        key: MsgKey,
        pull: u32,
        cumulative: u32,
    ) {
        let Some((at, flow, agenda)) = self.find(cx, key) else { return };
        flow.acknowledge_below(cumulative);
        let packets = flow.on_pull(cx.now, pull);
        if flow.is_done() {
            self.finish(cx, config, at, None);
        } else {
            agenda.pull(cx, at, flow, packets);
        }
    }

    pub(crate) fn on_bounce(&mut self, cx: &mut Cx<'_>, config: &Config, key: MsgKey, seq: u32) {
        let Some((at, flow, agenda)) = self.find(cx, key) else { return };
        if flow.on_bounce(config, cx.now, seq) == Some(true) {
            agenda.grant(cx, at, flow, 1);
        }
    }

    #[inline(never)]
    pub(crate) fn on_timer(&mut self, cx: &mut Cx<'_>, config: &Config) {
        self.agenda.armed = Time::NEVER;
        while let Some(&Reverse((due, at))) = self.agenda.checks.peek() {
            if due > cx.now {
                self.agenda.arm(cx, due);
                break;
            }
            self.agenda.checks.pop();
            let Some(flow) = self.flows.get_mut(at) else { continue };
            if flow.check_at != due {
                continue;
            }
            flow.check_at = Time::NEVER;
            match flow.check(config, cx.now) {
                Checked::GiveUp => self.finish(cx, config, at, Some(FailReason::TimedOut)),
                Checked::Due(packets, next) => {
                    if packets > 0 {
                        cx.fx.timeout(Stat::OtherTimeout, flow.msg.id);
                    }
                    self.agenda.check_by(cx, at, flow, next);
                    self.agenda.grant(cx, at, flow, u64::from(packets));
                }
            }
        }
    }

    pub(crate) fn cancel(&mut self, cx: &mut Cx<'_>, config: &Config, id: MsgId) {
        match self.by_id.get(id) {
            Some(Stage::Sending(at)) => self.finish(cx, config, at, Some(FailReason::Cancelled)),
            Some(Stage::Waiting) => {
                self.by_id.remove(id);
                self.channels.cancel(id);
                cx.fx.failed(MsgKey { src: cx.me, id }, FailReason::Cancelled);
            }
            None => {}
        }
    }

    /// Forget a message, tell the application, and start the next one of its channel.
    #[cold]
    fn finish(&mut self, cx: &mut Cx<'_>, config: &Config, at: SlotRef, why: Option<FailReason>) {
        let Some(flow) = self.flows.remove(at) else { return };
        let msg = flow.msg;
        if self.memories.len() < MEMORIES {
            self.memories.push(flow.into_memory());
        }
        self.by_id.remove(msg.id);
        self.finished.insert(cx.now, config.msl, config.time_wait_entries, msg.id, ());
        match why {
            None => cx.fx.acked(msg.id),
            Some(why) => cx.fx.failed(MsgKey { src: cx.me, id: msg.id }, why),
        }
        match self.channels.leave(&msg) {
            Some(Next::Start(next)) => self.start(cx, config, next, false),
            Some(Next::Release(id)) => self.release(cx, id),
            None => {}
        }
        if self.flows.is_empty() {
            let Agenda { credits, checks, timer, armed } = &mut self.agenda;
            checks.clear();
            credits.clear();
            if *armed != Time::NEVER {
                *armed = Time::NEVER;
                cx.fx.disarm(*timer);
            }
        }
    }
}

/// Write a DATA packet.
#[inline]
fn fill(me: HostId, config: &Config, msg: &Msg, d: Departure, slot: &mut Packet) {
    let data = Data {
        seq: d.seq as u32,
        syn: d.syn,
        last: d.last,
        retransmission: d.retransmission,
        chopped: false,
        prio: msg.prio,
        len: d.len,
        pacer_echo: None,
    };
    slot.src = me;
    slot.dst = msg.dst;
    slot.path = d.path;
    slot.wire_len = d.len + config.header;
    slot.flags = Flags(0);
    slot.span = Span { msg: msg.id, offset: d.offset, len: u32::from(d.len) };
    let repr = Repr { connection: msg.id.0, kind: Kind::Data(data) };
    super::put_header(slot, repr.to_bytes());
}
