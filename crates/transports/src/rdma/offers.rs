//! What others read from this host (RDMA READ): messages are offered, and sent as they are asked
//! for, at line rate and in the order of the requests, or at [`NicPacing::At`] a rate, each request
//! by itself. The reader paces segments; here is no congestion state. An offer is repeated until
//! the reader is heard.

use std::collections::VecDeque;

use endpoint::{Cx, FailReason, Msg, MsgId, Packet, Stat};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{Dur, HostId, MsgKey, Time};
use wire::roce::{Ack, BITS, Kind, Repr};

use super::config::{Config, NicPacing};
use super::control::{Control, Outbox};
use super::flow::{Departure, Identity};
use super::stream::Stream;
use super::{fill_data, report_ended};
use crate::connection_ids::unwrap;
use crate::deadlines::Deadlines;
use crate::received::Received;
use crate::rto::Rto;

/// Offers that are repeated at once, so that many waiting messages are no burst.
const REPEATED: usize = 8;

/// One queue pair that a peer reads.
#[derive(Debug)]
struct Offer {
    id: Identity,
    stream: Stream,
    /// The first packet that the reader does not have, as far as is known.
    una: u64,
    /// The highest packet ever sent, plus one.
    max: u64,
    /// Packets that have been sent.
    sent: Received,
    /// The first packet after the last request.
    asked: u64,
    /// Times that the offer was repeated since the reader was last heard.
    repeats: u32,
    /// When it is repeated next: there are no round-trip times here, only backoff.
    rto: Rto,
}

/// Packets that have been asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    slot: u32,
    next: u64,
    end: u64,
    /// The next one does not leave before this.
    at: Time,
}

/// Every queue pair that is read from this host.
#[derive(Debug, Default)]
pub(super) struct Offers {
    table: Vec<Option<Offer>>,
    free: Vec<u32>,
    by_id: HashMap<(HostId, u32), u32, FxBuildHasher>,
    channels: HashMap<(HostId, u32), u32, FxBuildHasher>,
    asked: VecDeque<Asked>,
    deadlines: Deadlines,
}

impl Offers {
    /// The queue pair of the channel of `msg`, if there is one.
    pub(super) fn identity(&self, msg: &Msg) -> Option<Identity> {
        let slot = self.channels.get(&(msg.dst, msg.channel))?;
        self.table[*slot as usize].as_ref().map(|offer| offer.id)
    }

    /// When [`Self::on_timer`] is wanted.
    pub(super) fn deadline(&self) -> Time {
        self.deadlines.next()
    }

    /// Offer `msg` on queue pair `id`.
    pub(super) fn submit(
        &mut self,
        cx: &Cx<'_>,
        config: &Config,
        id: Identity,
        msg: &Msg,
        out: &mut Outbox,
    ) {
        let slot = self.slot_of(config, id);
        let Some(offer) = &mut self.table[slot as usize] else { return };
        let start = offer.stream.end();
        offer.stream.submit(msg.id, msg.len);
        out.push(offer.advert(cx.now, msg.id, start, msg.len));
        if !self.deadlines.is_set(slot) {
            self.heard(cx.now, config, slot);
        }
    }

    fn slot_of(&mut self, config: &Config, id: Identity) -> u32 {
        if let Some(&slot) = self.by_id.get(&(id.peer, id.queue_pair)) {
            return slot;
        }
        let stream = Stream::new(config.cut());
        let offer = Offer {
            id,
            stream,
            una: 0,
            max: 0,
            sent: Received::default(),
            asked: 0,
            repeats: 0,
            rto: Rto::new(),
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.table.push(None);
            self.table.len() as u32 - 1
        });
        self.table[slot as usize] = Some(offer);
        self.by_id.insert((id.peer, id.queue_pair), slot);
        if id.channel != 0 {
            self.channels.insert((id.peer, id.channel), slot);
        }
        slot
    }

    /// The reader of `slot` lives: its offers need not be repeated for a while.
    fn heard(&mut self, now: Time, config: &Config, slot: u32) {
        if let Some(offer) = &mut self.table[slot as usize] {
            (offer.repeats, offer.rto) = (0, Rto::new());
            let waits = !offer.stream.is_done();
            let at = if waits { now.saturating_add(offer.patience(config)) } else { Time::NEVER };
            self.deadlines.set(slot, at);
        }
    }

    /// Packets of `queue_pair` are asked for, from the one at `position` on.
    pub(super) fn on_request(
        &mut self,
        cx: &Cx<'_>,
        config: &Config,
        queue_pair: u32,
        (position, packets): (u64, u32),
        pkt: &Packet,
        out: &mut Outbox,
    ) {
        let Some(&slot) = self.by_id.get(&(pkt.src, queue_pair)) else {
            // Given up here: so must it be there.
            let (message, len) = (pkt.span.msg.0, 0);
            let kind = Kind::Advert { message, len, ends_queue_pair: true, given_up: true };
            out.push(Control::answer(pkt, queue_pair, position, kind, cx.now));
            return;
        };
        self.heard(cx.now, config, slot);
        let Some(offer) = &mut self.table[slot as usize] else { return };
        let end = position.saturating_add(u64::from(packets)).min(offer.stream.end());
        if position < offer.una || position >= end {
            return;
        }
        if position < offer.asked {
            // The reader has gone back: what it asked for before is of no use.
            self.asked.retain(|asked| asked.slot != slot);
        }
        offer.asked = end;
        self.asked.push_back(Asked { slot, next: position, end, at: cx.now });
    }

    /// The reader of `queue_pair` has everything before packet `psn`, or has given the queue pair
    /// up.
    pub(super) fn on_ack(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        (queue_pair, psn): (u32, u32),
        ack: Ack,
        pkt: &Packet,
    ) {
        let Some(&slot) = self.by_id.get(&(pkt.src, queue_pair)) else { return };
        let Some(offer) = &mut self.table[slot as usize] else { return };
        if ack.over && ack.nak {
            offer.stream.fail(cx.me, FailReason::TimedOut, cx.fx);
            return self.close(slot);
        }
        let next = if ack.over { Some(offer.stream.end()) } else { unwrap(psn, offer.una, BITS) };
        // What was never sent has not come, whatever a peer says.
        let may_be = offer.una..=offer.sent_end();
        let Some(next) = next.filter(|next| may_be.contains(next)) else { return };
        offer.una = next;
        report_ended(&mut offer.stream, next, cx);
        let over = offer.stream.is_done() && offer.id.channel == 0;
        self.heard(cx.now, config, slot);
        if over {
            self.close(slot);
        }
    }

    /// Repeat what readers have not reacted to.
    pub(super) fn on_timer(&mut self, cx: &mut Cx<'_>, config: &Config, out: &mut Outbox) {
        while let Some(slot) = self.deadlines.pop(cx.now) {
            let Some(offer) = &mut self.table[slot as usize] else { continue };
            offer.repeats += 1;
            if offer.repeats > config.max_timeouts {
                offer.stream.fail(cx.me, FailReason::TimedOut, cx.fx);
                self.close(slot);
                continue;
            }
            for (id, start, len) in offer.stream.messages().take(REPEATED) {
                out.push(offer.advert(cx.now, id, start, len));
            }
            offer.rto.on_timeout();
            self.deadlines.set(slot, cx.now.saturating_add(offer.patience(config)));
        }
    }

    /// The next packet that was asked for. False if none may leave now.
    pub(super) fn poll(&mut self, cx: &mut Cx<'_>, config: &Config, slot: &mut Packet) -> bool {
        // At the line rate it is always the first; paced segments leave side by side.
        while let Some(turn) = self.asked.iter().position(|asked| asked.at <= cx.now) {
            let asked = &mut self.asked[turn];
            let (of, psn) = (asked.slot, asked.next);
            asked.next += 1;
            if let NicPacing::At(pacing) = config.nic_pacing
                && pacing < cx.net.rate(0)
            {
                asked.at = cx.paced_from(asked.at)
                    + pacing.serialise(u64::from(config.payload + config.overhead));
            }
            if asked.next == asked.end {
                self.asked.remove(turn);
            }
            let Some(offer) = &mut self.table[of as usize] else { continue };
            let Some(piece) = offer.stream.piece(psn) else { continue };
            let again = psn < offer.max;
            if again {
                cx.fx.count_for(Stat::Retransmission, piece.msg);
            }
            offer.max = offer.max.max(psn + 1);
            if offer.sent.admits(psn) {
                offer.sent.insert(psn);
            }
            let (ack, stamp, more, restarts_timer) = (false, false, false, false);
            let departure = Departure { psn, piece, ack, stamp, again, more, restarts_timer };
            fill_data(config, &offer.id, &departure, slot);
            return true;
        }
        false
    }

    /// When the next packet may leave, which may not now; [`Time::NEVER`]: none is asked for.
    pub(super) fn next_at(&self) -> Time {
        self.asked.iter().map(|asked| asked.at).min().unwrap_or(Time::NEVER)
    }

    /// Give message `id` up: its reader learns that when it asks for more.
    pub(super) fn cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        // Rare, as at the writer.
        if self.table.iter_mut().flatten().any(|offer| offer.stream.abandon(id)) {
            cx.fx.failed(MsgKey { src: cx.me, id }, FailReason::Cancelled);
        }
    }

    fn close(&mut self, slot: u32) {
        let Some(Offer { id, .. }) = self.table[slot as usize].take() else { return };
        self.by_id.remove(&(id.peer, id.queue_pair));
        if id.channel != 0 {
            self.channels.remove(&(id.peer, id.channel));
        }
        self.deadlines.set(slot, Time::NEVER);
        self.asked.retain(|asked| asked.slot != slot);
        self.free.push(slot);
    }
}

impl Offer {
    /// The first packet that has not been sent, those of messages given up aside: that they are is
    /// known already.
    fn sent_end(&mut self) -> u64 {
        while let Some(end) = self.stream.abandoned_end(self.sent.prefix()) {
            self.sent.insert_below(end);
        }
        self.sent.prefix()
    }

    /// How long the reader may be silent now.
    fn patience(&self, config: &Config) -> Dur {
        self.rto.timeout(&config.rto)
    }

    fn advert(&self, now: Time, msg: MsgId, start: u64, len: u64) -> Control {
        let ends_queue_pair = self.id.channel == 0;
        let kind = Kind::Advert { message: msg.0, len, ends_queue_pair, given_up: false };
        let psn = start as u32 & ((1 << BITS) - 1);
        let header = Repr { queue_pair: self.id.queue_pair, psn, kind };
        let Identity { peer: to, path, .. } = self.id;
        Control { to, path, header, msg, since: now, telemetry: None }
    }
}
