//! The messages that a host receives (specs/uet.md#5).

use endpoint::{Cx, MsgId, MsgKey, Packet, Span, Stat, TimerId};
use units::Time;
use wire::uet::{Ack, Kind, Repr, UNIT, UNITS};

use super::config::Config;
use super::{Control, Outbox, path};
use crate::incoming::{Incoming, Message};
use crate::received::Received;
use crate::slab::SlotRef;

/// The header of a packet with payload, or of one that has lost it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) seq: u64,
    pub(super) entropy: u16,
    pub(super) size: u64,
    pub(super) len: u16,
    pub(super) ack_request: bool,
    pub(super) repeated: bool,
    pub(super) marked: bool,
}

/// One message at its receiver.
#[derive(Debug)]
struct Conn {
    key: MsgKey,
    size: u64,
    packets: u64,
    received: Received,
    /// How many packets have arrived.
    arrived: u64,
    /// Their bytes on the wire.
    bytes: u64,
    /// Those since the last acknowledgement, again with those that came again.
    unacknowledged: u32,
    /// One was asked for, and is sent again when the last hole closes.
    ack_request: bool,
    /// When something of it last arrived.
    heard: Time,
}

impl Message for Conn {
    fn key(&self) -> MsgKey {
        self.key
    }

    fn heard(&self) -> Time {
        self.heard
    }
}

impl Conn {
    /// Take a packet that has not been here. Whether it is to be acknowledged at once.
    fn take(&mut self, config: &Config, request: &Request) -> bool {
        let first = self.arrived == 0;
        let in_order = request.seq == self.received.prefix();
        self.received.insert(request.seq);
        self.arrived += 1;
        self.bytes += u64::from(request.len) + u64::from(config.header);
        self.ack_request |= request.ack_request;
        let closed = in_order && self.out_of_order() == 0 && self.ack_request;
        if closed {
            self.ack_request = false;
        }
        let enough = self.unacknowledged >= config.sack_threshold;
        first || closed || enough || request.ack_request || request.marked
    }

    fn out_of_order(&self) -> u64 {
        self.arrived - self.received.prefix()
    }

    /// The acknowledgement that a packet causes.
    fn ack(&self, request: &Request, about_it: bool) -> Ack {
        let expected = self.received.prefix();
        let base = match about_it {
            true => request.seq,
            false => request.seq.saturating_sub(63).max(expected + 1),
        };
        Ack {
            repeated: request.repeated,
            marked: request.marked,
            expected: expected as u32,
            bitmap: self.received.bits_from(base),
            base: base as u32,
            received: units(self.bytes),
            out_of_order: self.out_of_order().min(u64::from(u16::MAX)) as u16,
        }
    }
}

/// A number of bytes as it is told.
fn units(bytes: u64) -> u32 {
    (bytes.div_ceil(UNIT) % u64::from(UNITS)) as u32
}

/// The receiving half of a host.
#[derive(Debug)]
pub(super) struct Receiver {
    config: Config,
    messages: Incoming<Conn>,
}

impl Receiver {
    pub(super) fn new(config: Config, linger_timer: TimerId) -> Self {
        let messages = Incoming::new(linger_timer, config.rx_idle_timeout, config.time_wait);
        Self { config, messages }
    }

    /// A packet has arrived, whole or trimmed.
    pub(super) fn on_request(
        &mut self,
        cx: &mut Cx<'_>,
        pkt: &Packet,
        request: Request,
        trimmed: Option<bool>,
        out: &mut Outbox,
    ) {
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        if self.answer_for_finished(cx, key, &request, out) {
            return;
        }
        let Some(at) = self.find(cx, key, request.size) else { return };
        let Some(conn) = self.messages.get_mut(at) else { return };
        let possible = request.size == conn.size
            && request.seq < conn.packets
            && conn.received.admits(request.seq)
            && request.len == self.config.framing().payload_of(request.seq, request.size);
        if !possible {
            cx.fx.count(Stat::Rejected);
            return;
        }
        conn.heard = cx.now;
        let known = conn.received.contains(request.seq);
        if let (Some(last_hop), false) = (trimmed, known) {
            out.push(nack(cx, &self.config, key, &request, last_hop));
            return;
        }
        if trimmed.is_none() && !known && u64::from(request.len) > cx.room {
            // Without room for it, it is as good as lost.
            return;
        }
        let complete = self.accept(cx, at, &request, (known, trimmed.is_some()), out);
        if let Some(packets) = complete {
            self.messages.complete(cx, at, packets);
        }
    }

    /// A packet that need not be sent again. The packets of its message if it was the last.
    fn accept(
        &mut self,
        cx: &mut Cx<'_>,
        at: SlotRef,
        request: &Request,
        (known, trimmed): (bool, bool),
        out: &mut Outbox,
    ) -> Option<u64> {
        let conn = self.messages.get_mut(at)?;
        let key = conn.key;
        if !trimmed {
            let wire = u32::from(request.len) + u32::from(self.config.header);
            conn.unacknowledged = conn.unacknowledged.saturating_add(wire);
        }
        let now = if known {
            if !trimmed {
                cx.fx.count(Stat::Duplicate);
            }
            true
        } else {
            if request.len > 0 {
                let offset = request.seq * u64::from(self.config.payload);
                cx.fx.place(key, offset, u32::from(request.len));
            }
            conn.take(&self.config, request)
        };
        let complete = conn.received.prefix() == conn.packets;
        if now || complete {
            conn.unacknowledged = 0;
            let about_it = request.marked || (request.ack_request && !known);
            let ack = conn.ack(request, about_it);
            out.push(answer(cx, &self.config, key, request, ack));
        }
        complete.then_some(conn.packets)
    }

    /// Whether the message is over. If all of it came, its ACK was lost: here is another.
    fn answer_for_finished(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        request: &Request,
        out: &mut Outbox,
    ) -> bool {
        let config = &self.config;
        self.messages.answer_if_over(cx, key, |cx, packets| {
            cx.fx.count(Stat::Duplicate);
            let headers = packets.wrapping_mul(u64::from(config.header));
            let ack = Ack {
                repeated: request.repeated,
                marked: request.marked,
                expected: packets as u32,
                bitmap: 0,
                base: packets as u32,
                received: units(request.size.wrapping_add(headers)),
                out_of_order: 0,
            };
            out.push(answer(cx, config, key, request, ack));
        })
    }

    /// The sender has given the message up.
    pub(super) fn on_close(&mut self, cx: &mut Cx<'_>, key: MsgKey) {
        self.messages.on_end(cx, key);
    }

    /// Forget messages that have been silent for too long.
    pub(super) fn on_linger_timer(&mut self, cx: &mut Cx<'_>) {
        self.messages.on_linger_timer(cx);
    }

    /// The state of a message, new if it has none; `None` if its sender has too many.
    fn find(&mut self, cx: &mut Cx<'_>, key: MsgKey, size: u64) -> Option<SlotRef> {
        if let Some(at) = self.messages.find(key) {
            return Some(at);
        }
        let conn = Conn {
            key,
            size,
            packets: self.config.framing().packets(size),
            received: Received::default(),
            arrived: 0,
            bytes: 0,
            unacknowledged: 0,
            ack_request: false,
            heard: cx.now,
        };
        self.messages.open(cx, conn)
    }
}

fn answer(cx: &Cx<'_>, config: &Config, key: MsgKey, request: &Request, ack: Ack) -> Control {
    let (entropy, psn) = (request.entropy, request.seq as u32);
    control(cx, config, key, request, Kind::Ack { entropy, psn, ack })
}

fn nack(cx: &Cx<'_>, config: &Config, key: MsgKey, request: &Request, last_hop: bool) -> Control {
    let (entropy, psn, marked) = (request.entropy, request.seq as u32, request.marked);
    control(cx, config, key, request, Kind::Nack { entropy, psn, marked, last_hop })
}

/// An answer to a packet, on the way back that its EV means.
fn control(
    cx: &Cx<'_>,
    config: &Config,
    MsgKey { src: to, id: MsgId(message) }: MsgKey,
    request: &Request,
    kind: Kind,
) -> Control {
    let path = path(config, cx, to, request.entropy);
    let offset = request.seq.saturating_mul(u64::from(config.payload));
    let span = Span { msg: MsgId(message), offset, len: u32::from(request.len) };
    Control { to, path, span, header: Repr { message, kind } }
}
