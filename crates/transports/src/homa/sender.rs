//! The messages that a host sends: of those that have something to send and may, the one with the
//! least left goes first (SRPT), one packet at a time.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::ops::Range;

use endpoint::{Cx, FailReason, FlowState, Msg, MsgId, MsgKey, Packet, Span, Stat, UNBOUNDED};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, Time};
use wire::homa::{Data, ENDLESS, Kind, Repr, Whole};

use super::config::{Config, Cut};
use super::{Control, Outbox, control, put_header};
use crate::channels::{Channels, Next, Turn};
use crate::ndp::paths::ControlPaths;
use crate::received::{WINDOW_MAX, unwrap_index};
use crate::slab::{Slab, SlotRef};
use crate::time_wait::TimeWait;

/// One message at its sender.
#[derive(Debug)]
pub(super) struct Flow {
    msg: Msg,
    /// Among those to the same host.
    number: u64,
    cut: Cut,
    pub(super) packets: u64,
    /// Packets that leave unscheduled.
    pub(super) unscheduled: u64,
    /// Whether its response must begin with little.
    marked: bool,
    /// Packets below this may be sent.
    pub(super) granted: u64,
    /// Packets below this have been sent.
    pub(super) next: u64,
    /// Packets below this have been sent before, if sending has begun anew.
    sent: u64,
    /// The level of what was granted.
    pub(super) level: u8,
    /// What is to be sent again.
    pub(super) again: VecDeque<Again>,
    /// Refused packets that wait for a grant, ascending (`trim`).
    pub(super) refused: Vec<u64>,
    /// Packets in `again`.
    lost: u64,
    /// Counts messages: of two with equally much left the older goes first.
    order: u64,
    /// The entry of `ready` that stands for it, if any: what was left then.
    listed: Option<u64>,
    /// Packets sent, for the draws of paths.
    departures: u64,
    paths: ControlPaths,
    /// When a packet of the receiver last came, or it had all that may be sent: since then it is
    /// its turn.
    pub(super) heard: Time,
    /// For how long, together, it has been the turn of its receiver, which then knew nothing of it
    /// each time.
    pub(super) unknown: Dur,
    /// When it last sent, or asked its receiver.
    active: Time,
}

/// Packets that are to be sent again.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) range: Range<u64>,
    /// They came without their payload; otherwise they did not come.
    pub(super) refused: bool,
}

/// The messages to one host that are not over, by number.
#[derive(Debug, Default)]
struct Peer {
    /// The number of the first of `flows`.
    first: u64,
    flows: VecDeque<Option<SlotRef>>,
    /// What it has last said of them.
    whole: Whole,
}

/// A message as its receiver names it: the host, and the number as on the wire.
pub(super) type Named = (HostId, u32);

/// The sending half of a host.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) config: Config,
    flows: Slab<Flow>,
    by_id: HashMap<MsgId, SlotRef, FxBuildHasher>,
    peers: HashMap<HostId, Peer, FxBuildHasher>,
    /// Messages that may send: the least left first. An entry that is not its message's `listed`
    /// means nothing.
    ready: BinaryHeap<Reverse<(u64, u64, SlotRef)>>,
    channels: Channels,
    started: u64,
    /// Requests without a response so far, for incast control.
    unanswered: u32,
    /// Requests that have come marked, until the response starts.
    marked: TimeWait<MsgKey, ()>,
}

impl Sender {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            flows: Slab::new(),
            by_id: HashMap::default(),
            peers: HashMap::default(),
            ready: BinaryHeap::new(),
            channels: Channels::default(),
            started: 0,
            unanswered: 0,
            marked: TimeWait::new(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.flows.is_empty()
    }

    pub(super) fn submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) {
        if self.channels.enter(msg) == Turn::First {
            self.start(cx, *msg);
        }
    }

    fn start(&mut self, cx: &mut Cx<'_>, msg: Msg) {
        let marked = self.marks(&msg);
        let (unscheduled, head) = self.begins_with(cx.now, &msg);
        let cut = self.config.cut(msg.len, head);
        let packets = cut.packets();
        let unscheduled = unscheduled.min(packets);
        let peer = self.peers.entry(msg.dst).or_default();
        self.started += 1;
        let at = self.flows.insert(Flow {
            msg,
            number: peer.first + peer.flows.len() as u64,
            cut,
            packets,
            unscheduled,
            marked,
            granted: unscheduled,
            next: 0,
            sent: 0,
            level: self.config.priorities - 1,
            again: VecDeque::new(),
            refused: Vec::new(),
            lost: 0,
            order: self.started,
            listed: None,
            departures: 0,
            paths: ControlPaths::new(self.config.paths, cx.net, msg.dst, cx.draw.part(msg.id.0)),
            heard: cx.now,
            unknown: Dur::ZERO,
            active: cx.now,
        });
        peer.flows.push_back(Some(at));
        self.by_id.insert(msg.id, at);
        if peer.flows.len() as u64 <= WINDOW_MAX {
            self.list(at);
        }
    }

    /// Whether the response to `msg` must begin with little (specs/homa.md#10).
    fn marks(&mut self, msg: &Msg) -> bool {
        let Some(incast) = self.config.incast.filter(|_| msg.reply_to.is_none()) else {
            return false;
        };
        self.unanswered += 1;
        self.unanswered > incast.threshold
    }

    /// Packets of `msg` that leave unscheduled, and the payload of the first if it is to be a short
    /// one.
    fn begins_with(&mut self, now: Time, msg: &Msg) -> (u64, u16) {
        let marked = msg.reply_to.filter(|request| self.marked.get(now, request).is_some());
        let (Some(incast), Some(_)) = (self.config.incast, marked) else {
            return (self.config.rtt_packets(), 0);
        };
        if incast.bytes < u32::from(self.config.payload) {
            return (1, incast.bytes as u16);
        }
        (self.config.in_packets(incast.bytes).min(self.config.rtt_packets()), 0)
    }

    /// Message `key`, of which this was a packet, has arrived whole.
    pub(super) fn on_arrival(&mut self, cx: &Cx<'_>, key: MsgKey, data: &Data) {
        if data.response {
            self.unanswered = self.unanswered.saturating_sub(1);
        } else if data.marked {
            self.marked.insert(cx.now, self.config.rx_idle_timeout, u32::MAX, key, ());
        }
    }

    /// Have the message among those that may send, if it may.
    pub(super) fn list(&mut self, at: SlotRef) {
        let Some(flow) = self.flows.get_mut(at) else { return };
        let left = flow.left(&self.config);
        if flow.may_send() && flow.listed != Some(left) {
            flow.listed = Some(left);
            self.ready.push(Reverse((left, flow.order, at)));
        }
    }

    /// The message that `from` calls `number`, if it is not over.
    pub(super) fn find(&mut self, (from, number): Named) -> Option<(SlotRef, &mut Flow)> {
        let peer = self.peers.get(&from)?;
        let ahead = unwrap_index(peer.first, number).checked_sub(peer.first)?;
        let at = (*peer.flows.get(usize::try_from(ahead).ok()?)?)?;
        Some((at, self.flows.get_mut(at)?))
    }

    /// Packets below `granted` may be sent, at `level`. An older grant than the last one says
    /// nothing (specs/homa.md#11, case 5).
    pub(super) fn on_grant(&mut self, cx: &mut Cx<'_>, name: Named, (granted, level): (u32, u8)) {
        let lowest = self.config.priorities - 1;
        let Some((at, flow)) = self.find(name) else { return };
        (flow.heard, flow.unknown) = (cx.now, Dur::ZERO);
        let granted = unwrap_index(flow.granted, granted);
        // What cannot be ahead is behind, beyond zero.
        if granted <= flow.granted || granted - flow.granted > u64::from(u32::MAX / 2) {
            return;
        }
        flow.granted = granted.min(flow.packets);
        flow.level = level.min(lowest);
        flow.release();
        self.list(at);
    }

    /// Packets `first..end` are missing. What has been sent of them is sent again, first of all
    /// (specs/homa.md#11, case 6); that the rest may be sent was lost, and it goes as it would have
    /// (specs/homa.md#4.2). If it all waits here for its turn, say so.
    pub(super) fn on_resend(
        &mut self,
        cx: &mut Cx<'_>,
        name: Named,
        (first, end): (u32, u32),
        out: &mut Outbox,
    ) {
        let Some((at, flow)) = self.find(name) else {
            out.push(answer(cx, &self.config, name, Kind::Unknown { mine: true }));
            return;
        };
        (flow.heard, flow.unknown) = (cx.now, Dur::ZERO);
        let first = unwrap_index(flow.next, first);
        let end = unwrap_index(flow.next, end).min(flow.packets);
        if first >= end {
            return;
        }
        let waits = flow.next < flow.granted && flow.next <= first && flow.lost == 0;
        if waits {
            out.push(flow.control(cx, Kind::Busy { mine: true }));
        } else if first < flow.next {
            flow.refused.retain(|index| !(first..end).contains(index));
            flow.repeat(first..end.min(flow.next), false);
            cx.fx.timeout(Stat::OtherTimeout, flow.msg.id);
        }
        flow.granted = flow.granted.max(end);
        self.list(at);
    }

    /// The receiver knows nothing of the message: what has been sent is sent anew, unscheduled
    /// (specs/homa.md#4.2).
    pub(super) fn on_unknown(&mut self, cx: &mut Cx<'_>, name: Named) {
        let Some((at, flow)) = self.find(name) else { return };
        flow.unknown += cx.now.since(flow.heard);
        flow.heard = cx.now;
        flow.sent = flow.sent.max(flow.next);
        flow.unscheduled = flow.unscheduled.max(flow.next);
        flow.next = 0;
        flow.again.clear();
        flow.refused.clear();
        flow.lost = 0;
        cx.fx.timeout(Stat::OtherTimeout, flow.msg.id);
        self.list(at);
    }

    /// The receiver is alive.
    pub(super) fn on_busy(&mut self, cx: &mut Cx<'_>, name: Named) {
        if let Some((_, flow)) = self.find(name) {
            (flow.heard, flow.unknown) = (cx.now, Dur::ZERO);
        }
    }

    /// Host `from` has message `number`, all below `first_missing`, and of those after `number` the
    /// ones that `next` has bits for.
    pub(super) fn on_ack(
        &mut self,
        cx: &mut Cx<'_>,
        (from, number): Named,
        (first_missing, next): (u32, u32),
    ) {
        let Some(peer) = self.peers.get(&from) else { return };
        let number = unwrap_index(peer.first, number);
        self.acked_below(cx, from, first_missing);
        self.acked(cx, (from, number as u32));
        self.acked_behind(cx, (from, number), next);
    }

    /// The messages after `number` that `bits` has bits for have arrived.
    fn acked_behind(&mut self, cx: &mut Cx<'_>, (from, number): (HostId, u64), mut bits: u32) {
        while bits != 0 {
            let ahead = 1 + u64::from(bits.trailing_zeros());
            bits &= bits - 1;
            // A number that cannot be, which a peer may name, wraps.
            self.acked(cx, (from, number.wrapping_add(ahead) as u32));
        }
    }

    /// All messages below `first_missing` have arrived. That number in full; `None` if it says
    /// nothing: old news from before the first, or what cannot be true.
    fn acked_below(&mut self, cx: &mut Cx<'_>, from: HostId, first_missing: u32) -> Option<u64> {
        let peer = self.peers.get(&from)?;
        let (first, end) = (peer.first, peer.first + peer.flows.len() as u64);
        let missing = unwrap_index(first, first_missing);
        if missing > end {
            return None;
        }
        for number in first..missing {
            self.acked(cx, (from, number as u32));
        }
        Some(missing)
    }

    /// A message has arrived, says its receiver: true only of one all of which was sent.
    fn acked(&mut self, cx: &mut Cx<'_>, name: Named) {
        let Some((at, flow)) = self.find(name) else { return };
        if flow.next.max(flow.sent) < flow.packets {
            cx.fx.count(Stat::Rejected);
            return;
        }
        cx.fx.acked(flow.msg.id);
        self.close(cx, at);
    }

    /// Host `from` has these messages.
    pub(super) fn on_whole(&mut self, cx: &mut Cx<'_>, from: HostId, whole: Whole) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        if peer.whole == whole {
            return;
        }
        peer.whole = whole;
        if let Some(missing) = self.acked_below(cx, from, whole.first_missing) {
            self.acked_behind(cx, (from, missing), whole.behind);
        }
    }

    /// Ask the receivers of messages that have nothing more to send and have been silent for long;
    /// give up those that have been silent for very long, or have known nothing of the message for
    /// so long although it was sent anew each time: nothing of it gets through. While a message
    /// waits for its own turn there is nothing to hear (specs/homa.md#8: the ball is in its own
    /// court).
    pub(super) fn look_for_silence(&mut self, cx: &mut Cx<'_>, out: &mut Outbox) {
        let mut dead = Vec::new();
        for (at, flow) in self.flows.iter_mut() {
            if flow.may_send() {
                continue;
            }
            if flow.heard.saturating_add(self.config.abort_after)
                <= cx.now.saturating_add(flow.unknown)
            {
                dead.push(at);
            } else if flow.heard.max(flow.active).saturating_add(self.config.resend_timeout)
                <= cx.now
            {
                flow.active = cx.now;
                out.push(flow.control(cx, Kind::NeedAck));
            }
        }
        for at in dead {
            self.end(cx, at, FailReason::TimedOut, out);
        }
    }

    /// What may be sent of message `id`, if it is being sent; for traces.
    pub(super) fn state(&self, id: MsgId) -> Option<FlowState> {
        let flow = self.flows.get(*self.by_id.get(&id)?)?;
        let credit = flow.cut.left(flow.next).saturating_sub(flow.cut.left(flow.granted));
        Some(FlowState { credit: Some(credit), ..FlowState::default() })
    }

    pub(super) fn cancel(&mut self, cx: &mut Cx<'_>, id: MsgId, out: &mut Outbox) {
        if let Some(&at) = self.by_id.get(&id) {
            self.end(cx, at, FailReason::Cancelled, out);
        } else if self.channels.cancel(id) {
            cx.fx.failed(MsgKey { src: cx.me, id }, FailReason::Cancelled);
        }
    }

    /// `host` has started again: what it has not confirmed it may have or not, and nothing will
    /// say. Messages to it are numbered from zero.
    pub(super) fn restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        let Some(peer) = self.peers.remove(&host) else { return };
        let flows: Vec<Flow> =
            peer.flows.into_iter().flatten().filter_map(|at| self.flows.remove(at)).collect();
        for flow in &flows {
            self.by_id.remove(&flow.msg.id);
            if flow.msg.reply_to.is_none() {
                self.unanswered = self.unanswered.saturating_sub(1);
            }
            cx.fx.failed(MsgKey { src: cx.me, id: flow.msg.id }, FailReason::Refused);
        }
        // Those behind them on their channels are the first ones of the new numbering.
        for flow in flows {
            if let Some(Next::Start(next)) = self.channels.leave(&flow.msg) {
                self.start(cx, next);
            }
        }
    }

    /// Give a message up, and tell the receiver.
    fn end(&mut self, cx: &mut Cx<'_>, at: SlotRef, why: FailReason, out: &mut Outbox) {
        let Some(flow) = self.flows.get_mut(at) else { return };
        if flow.msg.reply_to.is_none() {
            // No response will come.
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        out.push(flow.control(cx, Kind::Unknown { mine: true }));
        cx.fx.failed(MsgKey { src: cx.me, id: flow.msg.id }, why);
        self.close(cx, at);
    }

    /// Forget a message, and start the next one of its channel.
    fn close(&mut self, cx: &mut Cx<'_>, at: SlotRef) {
        let over = self.flows.remove_but(at, |flow| (flow.msg, flow.number));
        let Some((msg, number)) = over else { return };
        self.by_id.remove(&msg.id);
        if self.flows.is_empty() {
            self.ready.clear();
        }
        let peer = self.peers.get_mut(&msg.dst);
        let permitted = peer.map(|peer| peer.forget(number)).unwrap_or_default();
        for at in permitted {
            self.list(at);
        }
        if let Some(Next::Start(next)) = self.channels.leave(&msg) {
            self.start(cx, next);
        }
    }

    /// The next data packet, if a message may send. False if none may. `whole` says what has
    /// arrived of a host.
    pub(super) fn poll(
        &mut self,
        cx: &mut Cx<'_>,
        whole: impl FnOnce(HostId) -> Whole,
        slot: &mut Packet,
    ) -> bool {
        while let Some(mut top) = self.ready.peek_mut() {
            let Reverse((left, _, at)) = *top;
            let listed = self.flows.get_mut(at).filter(|flow| flow.listed == Some(left));
            let Some(flow) = listed else {
                PeekMut::pop(top);
                continue;
            };
            if flow.may_send() {
                let first = self.peers.get(&flow.msg.dst).map_or(flow.number, |peer| peer.first);
                flow.send(cx, &self.config, flow.number - first, whole(flow.msg.dst), slot);
                if !flow.may_send() {
                    flow.heard = cx.now;
                }
                // It has less left than before, so it stays the first.
                let left = flow.left(&self.config);
                flow.listed = Some(left);
                top.0.0 = left;
                return true;
            }
            flow.listed = None;
            PeekMut::pop(top);
        }
        false
    }
}

impl Peer {
    /// Message `number` is over. Which others may begin by that: a receiver knows [`WINDOW_MAX`]
    /// messages from the first that is not over.
    fn forget(&mut self, number: u64) -> Vec<SlotRef> {
        let before = self.first;
        let ahead = number.checked_sub(self.first).and_then(|ahead| usize::try_from(ahead).ok());
        if let Some(flow) = ahead.and_then(|ahead| self.flows.get_mut(ahead)) {
            *flow = None;
        }
        while let Some(None) = self.flows.front() {
            self.flows.pop_front();
            self.first += 1;
        }
        let window = WINDOW_MAX as usize;
        let kept_back = window.saturating_sub((self.first - before) as usize);
        self.flows
            .range(kept_back.min(self.flows.len())..window.min(self.flows.len()))
            .flatten()
            .copied()
            .collect()
    }
}

impl Flow {
    /// Bytes left to send, granted or not, and those to send again: what SRPT goes by.
    fn left(&self, config: &Config) -> u64 {
        let payload = u64::from(config.payload);
        self.cut.left(self.next).saturating_add(self.lost * payload)
    }

    fn may_send(&self) -> bool {
        self.next < self.granted || self.lost > 0
    }

    /// Send `range`, which has been sent, again.
    pub(super) fn repeat(&mut self, range: Range<u64>, refused: bool) {
        // What is to be sent again anyway is not asked for twice.
        let mut first = range.start;
        while first < range.end {
            if let Some(known) = self.again.iter().find(|a| a.range.contains(&first)) {
                first = known.range.end;
                continue;
            }
            let known = self.again.iter().map(|a| a.range.start).filter(|&start| start > first);
            let end = known.min().unwrap_or(range.end).min(range.end);
            self.lost += end - first;
            self.again.push_back(Again { range: first..end, refused });
            first = end;
        }
    }

    /// The next packet to send, and its level.
    fn take(&mut self, config: &Config) -> (u64, u8) {
        if let Some(Again { range, refused }) = self.again.front_mut() {
            let (index, refused) = (range.start, *refused);
            range.start += 1;
            if range.is_empty() {
                self.again.pop_front();
            }
            self.lost -= 1;
            return (index, if refused { self.refused_level(config) } else { 0 });
        }
        let index = self.next;
        self.next += 1;
        let level = match index < self.unscheduled {
            true => config.unscheduled_level(index, self.msg.len),
            false => self.level,
        };
        (index, level)
    }

    /// Put the next packet into `slot`; the oldest open message to that host is `behind` numbers
    /// behind.
    fn send(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        behind: u64,
        whole: Whole,
        slot: &mut Packet,
    ) {
        let before = self.next;
        let (index, level) = self.take(config);
        if self.next == before || index < self.sent {
            cx.fx.count(Stat::Retransmission);
        }
        let len = self.cut.payload_of(index);
        self.departures += 1;
        self.active = cx.now;
        slot.src = cx.me;
        slot.dst = self.msg.dst;
        slot.path = self.paths.path(cx.net, self.departures);
        slot.class = config.class(level);
        slot.wire_len = len + config.header;
        let offset = self.cut.offset(index);
        slot.span = Span { msg: self.msg.id, offset, len: u32::from(len) };
        let data = Data {
            len,
            index: index as u32,
            size: if self.msg.len == UNBOUNDED { ENDLESS } else { self.msg.len },
            // Both at most 65535.
            unscheduled: self.unscheduled.min(u64::from(u16::MAX)) as u16,
            head: self.cut.short_head(),
            oldest: behind.min(u64::from(u16::MAX)) as u16,
            marked: self.marked,
            response: self.msg.reply_to.is_some(),
            whole,
        };
        put_header(slot, &Repr { number: self.number as u32, kind: Kind::Data(data) });
    }

    fn control(&mut self, cx: &Cx<'_>, kind: Kind) -> Control {
        self.departures += 1;
        let path = self.paths.path(cx.net, self.departures);
        let header = Repr { number: self.number as u32, kind };
        control(self.msg.dst, path, self.msg.id, header)
    }
}

/// Say something of a message that is not there.
fn answer(cx: &Cx<'_>, config: &Config, (to, number): Named, kind: Kind) -> Control {
    let paths = ControlPaths::new(config.paths, cx.net, to, cx.draw.part(u64::from(number)));
    // Time makes the draw differ between repeated answers.
    let path = paths.path(cx.net, cx.now.0);
    control(to, path, MsgId(0), Repr { number, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A receiver knows 2^20 messages from the first that is not over; those beyond begin as it
    /// moves on.
    #[test]
    fn messages_beyond_the_window_are_kept_back() {
        let mut slab = Slab::new();
        let slots: Vec<SlotRef> = (0..WINDOW_MAX + 10).map(|n| slab.insert(n)).collect();
        let flows = slots.iter().copied().map(Some).collect();
        let mut peer = Peer { flows, ..Peer::default() };
        assert_eq!(peer.forget(2), []);
        assert_eq!(peer.forget(0), slots[WINDOW_MAX as usize..][..1]);
        assert_eq!(peer.forget(1), slots[WINDOW_MAX as usize + 1..][..2], "1 and 2 are over");
        assert_eq!(peer.first, 3);
    }
}
