//! The reading end of RDMA READ: it asks for the segments of what others offer, at the rate of the
//! queue pair, whose congestion state is here. What a writer learns from acknowledgements the
//! reader sees by itself.

use endpoint::{Cx, FailReason, Flags, MsgId, Packet, Stat};
use units::{Dur, MsgKey, Time};
use wire::int;
use wire::roce::{BITS, Data, Kind, Repr};

use super::config::Recovery;
use super::control::Control;
use super::flow::{Identity, Incoming};
use super::{PATH, Rdma, token};
use crate::connection_ids::unwrap;
use crate::deadlines::Timer;

/// Queue pairs that a host reads at a time: those whose owners are silent end after some timeouts.
/// Ours.
const READS_MAX: usize = 1 << 16;

/// A message that a peer offers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    pub(super) message: u64,
    pub(super) len: u64,
    /// The queue pair ends with it.
    pub(super) ends_queue_pair: bool,
    /// The peer knows nothing of the queue pair any more.
    pub(super) given_up: bool,
}

impl Rdma {
    /// A peer offers a message on `queue_pair`, the low bits of whose first packet are `psn`.
    pub(super) fn on_offer(
        &mut self,
        cx: &mut Cx<'_>,
        (queue_pair, psn): (u32, u32),
        offer: Offered,
        pkt: &Packet,
    ) {
        let known = self.flows.find((pkt.src, queue_pair));
        if offer.given_up {
            if let Some(slot) = known {
                self.flows[slot].stream.fail(pkt.src, FailReason::Cancelled, cx.fx);
                self.close(slot);
            }
            return;
        }
        if self.read.contains(pkt.src, queue_pair) {
            let mut answer = Control::acknowledge(cx, pkt, queue_pair, 0, true);
            if self.given_up.contains(pkt.src, queue_pair)
                && let Kind::Ack(ack) = &mut answer.header.kind
            {
                ack.nak = true;
            }
            self.out.push(answer);
            return;
        }
        let mut full = || self.flows.open_count() >= READS_MAX || !self.bare.enter(pkt.src);
        if known.is_none() && full() {
            // Nothing of it has come: it is offered again.
            self.out.push(Control::acknowledge(cx, pkt, queue_pair, 0, false));
            return cx.fx.count(Stat::Rejected);
        }
        let slot = known.unwrap_or_else(|| {
            let draw = cx.draw.part(u64::from(pkt.src.0));
            let path = draw.bits(PATH, u64::from(queue_pair)) as u32;
            // Zero only matters as what says that the queue pair ends with its message.
            let channel = if offer.ends_queue_pair { 0 } else { queue_pair + 1 };
            self.open(cx, Identity { peer: pkt.src, queue_pair, path, channel })
        });
        let flow = &mut self.flows[slot];
        let end = flow.stream.end();
        match unwrap(psn, end, BITS) {
            Some(start) if start == end => flow.stream.submit(MsgId(offer.message), offer.len),
            Some(start) if start < end => {
                // Known already: how far it has got.
                let una = flow.una();
                self.out.push(Control::acknowledge(cx, pkt, queue_pair, una, false));
            }
            _ => {} // one before it is missing
        }
        self.settle(cx.now, cx.now, slot, Timer::Keep);
    }

    /// Ask for the next segment of the flow in `turn`, if its turn still is.
    pub(super) fn send_request(&mut self, cx: &mut Cx<'_>, turn: u32, slot: &mut Packet) -> bool {
        let flow = &mut self.flows[turn];
        let Some(request) = flow.request(&self.config, cx.now) else { return false };
        flow.queued = false;
        let packets = (request.end - request.psn) as u32; // of a segment
        let kind = Kind::ReadRequest { position: request.psn, packets };
        let psn = request.psn as u32 & ((1 << BITS) - 1);
        let header = Repr { queue_pair: flow.id.queue_pair, psn, kind };
        let released = flow.released();
        let msg = flow.stream.piece(request.psn).map_or(MsgId(0), |piece| piece.msg);
        let Identity { peer: to, path, .. } = flow.id;
        Control { to, path, header, msg, since: cx.now, telemetry: None }.fill(
            &self.config,
            cx.now,
            slot,
        );
        if request.stamp {
            slot.token = token(turn, request.end);
        }
        self.pacer.dequeue();
        let timer = match request.restarts_timer || !self.timeouts.is_set(turn) {
            true => Timer::Restart,
            false => Timer::Keep,
        };
        // The gap runs from the release, however long the request waited for the interface.
        self.settle(cx.now, released, turn, timer);
        true
    }

    /// A packet has come that was asked for.
    pub(super) fn on_answer(
        &mut self,
        cx: &mut Cx<'_>,
        (queue_pair, psn): (u32, u32),
        data: Data,
        pkt: &Packet,
    ) {
        let Some(slot) = self.flows.find((pkt.src, queue_pair)) else {
            return cx.fx.count(Stat::Duplicate);
        };
        let stamp = self.stamp(cx);
        let flow = &mut self.flows[slot];
        let expected = flow.una();
        let Some(psn) = unwrap(psn, expected, BITS) else { return };
        let Recovery::GoBackN { nack_interval } = self.config.recovery else { return };
        let nak = psn > expected;
        if psn < expected {
            return cx.fx.count(Stat::Duplicate);
        }
        if nak && flow.named.has(expected, cx.now, nack_interval) {
            return;
        }
        let next = if nak { Some(expected) } else { self.place(cx, slot, psn, data, pkt) };
        let Some(next) = next else { return };
        let telemetry = self.config.telemetry.then(|| int::Stack::parse(pkt.header())).flatten();
        let incoming = Incoming {
            next,
            nak,
            cause: (!nak).then_some(psn),
            bitmap: 0,
            stamp,
            remote: Dur::ZERO,
            local: self.time_here(cx),
            marked: pkt.flags.has(Flags::CE),
            hops: telemetry.as_ref().map_or(&[], |stack| stack.hops()),
        };
        self.notice_mark(cx.now, slot, incoming.marked);
        let flow = &mut self.flows[slot];
        let Some(timer) = flow.on_ack(&self.config, cx.now, &incoming, cx.fx) else { return };
        if expected == 0 && next > 0 {
            self.bare.leave(pkt.src);
        }
        self.end_messages(cx, slot, next, pkt);
        self.settle(cx.now, cx.now, slot, timer);
    }

    /// Place packet `psn`, the next one. Returns the one that is next then; `None` if it cannot be
    /// placed.
    fn place(
        &mut self,
        cx: &mut Cx<'_>,
        slot: u32,
        psn: u64,
        data: Data,
        pkt: &Packet,
    ) -> Option<u64> {
        let flow = &mut self.flows[slot];
        if data.given_up {
            return Some(flow.skip(psn));
        }
        let piece = flow.stream.piece(psn)?;
        // On a real network a peer may say anything.
        if (piece.msg, piece.offset, piece.len) != (pkt.span.msg, pkt.span.offset, pkt.span.len) {
            cx.fx.count(Stat::Rejected);
            return None;
        }
        // Without room for it, it is as good as lost.
        if u64::from(piece.len) > cx.room {
            return None;
        }
        if piece.len > 0 {
            cx.fx.place(MsgKey { src: pkt.src, id: piece.msg }, piece.offset, piece.len);
        }
        Some(psn + 1)
    }

    /// As if a notification had come for a marked packet, if it is time.
    fn notice_mark(&mut self, now: Time, slot: u32, marked: bool) {
        let flow = &mut self.flows[slot];
        if let Some(interval) = self.config.cnp_interval
            && marked
            && flow.notices.may(now, interval)
        {
            flow.on_cnp(&self.config, now);
        }
    }

    /// Tell the application and the owner of messages all of whose packets are before `next`.
    fn end_messages(&mut self, cx: &mut Cx<'_>, slot: u32, next: u64, pkt: &Packet) {
        let flow = &mut self.flows[slot];
        let mut any = false;
        while let Some(ended) = flow.stream.pop_ended(next) {
            let key = MsgKey { src: pkt.src, id: ended.id };
            if ended.abandoned {
                cx.fx.failed(key, FailReason::Cancelled);
            } else {
                cx.fx.delivered(key);
            }
            any = true;
        }
        if any {
            let (queue_pair, over) = (flow.id.queue_pair, flow.id.channel == 0);
            self.out.push(Control::acknowledge(cx, pkt, queue_pair, next, over));
        }
    }
}
