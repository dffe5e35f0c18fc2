//! The messages that a host receives (specs/uet.md#5).

use endpoint::{Cx, FailReason, MsgId, MsgKey, Span, Stat};
use units::{Dur, HostId, Time};
use wire::uet::{Ack, Kind, Repr, UNIT, UNITS};

use super::config::{Config, WindowControl};
use super::hold_back::HoldBack;
use super::oversubscription::Oversubscription;
use super::pacer::{Given, Join, Pacer};
use super::pieces::Arriving;
use super::{CREDIT_TIMER, Control, LINGER_TIMER, OVERSUBSCRIPTION_TIMER, Outbox, path};
use crate::incoming::{Incoming, Message};
use crate::received::{Received, unwrap_index};
use crate::slab::SlotRef;

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Whole,
    /// Without its payload.
    Trimmed {
        last_hop: bool,
    },
    /// It is a REQ, and asks for nothing but credit.
    Asks,
}

/// The header of a packet with payload, or of one that has lost it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Its number in the connection. Of one that is kept, modulo 2^32 until that is found.
    pub(super) seq: u64,
    /// The message that it is of, and its number in that.
    pub(super) msg: MsgId,
    pub(super) index: u64,
    /// The connection is kept.
    pub(super) kept: bool,
    pub(super) entropy: u16,
    pub(super) size: u64,
    pub(super) len: u16,
    pub(super) ack_request: bool,
    pub(super) repeated: bool,
    pub(super) marked: bool,
    pub(super) target: u32,
}

impl Request {
    /// As if packet `seq` of a message of `size` bytes had come, the only one of connection `key`
    /// unless that is `kept`: for questions that are about no packet.
    fn asking(key: MsgKey, size: u64, seq: u64, kept: bool) -> Self {
        Self {
            seq,
            msg: key.id,
            index: seq,
            kept,
            entropy: 0,
            size,
            len: 0,
            ack_request: false,
            repeated: false,
            marked: false,
            target: 0,
        }
    }
}

/// EVs of the packets that carry credit, one after the other. U: 128.
const GRANT_VALUES: u16 = 128;

/// One connection at its receiver.
#[derive(Debug)]
struct Conn {
    key: MsgKey,
    /// It stays when its messages are complete.
    kept: bool,
    /// Those that are not delivered and of which something has come; unless it is kept, the one.
    pieces: Arriving,
    received: Received,
    /// How many packets have arrived.
    arrived: u64,
    /// Their bytes on the wire.
    bytes: u64,
    /// Those since the last acknowledgement, again with those that came again.
    unacknowledged: u32,
    /// One was asked for, and is sent again when the last hole closes.
    ack_request: bool,
    given: Given,
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

    fn is_bare(&self) -> bool {
        self.arrived == 0
    }

    fn unfinished(&self) -> Vec<MsgKey> {
        self.pieces.unfinished().map(|id| MsgKey { id, ..self.key }).collect()
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

    /// Whether it can be a packet of this connection, whose messages then have its own.
    fn admits(&mut self, config: &Config, request: &Request, how: Arrival) -> bool {
        let &Request { seq, msg, index, kept, size, len, .. } = request;
        if kept != self.kept {
            return false;
        }
        if how == Arrival::Asks {
            return kept || self.pieces.has(msg, size);
        }
        let packets = config.framing().packets(size);
        let fits = index < packets && len == config.framing().payload_of(index, size);
        let Some(first) = seq.checked_sub(index).filter(|_| fits && self.received.admits(seq))
        else {
            return false;
        };
        if !kept {
            return self.pieces.has(msg, size);
        }
        // What is delivered is not looked at again.
        seq < self.received.prefix() || self.pieces.put(seq, (msg, size), (first, packets))
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
            probe: false,
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
    pacer: Pacer,
    /// Where the fabric is oversubscribed, and no sender has a window.
    oversubscription: Option<Oversubscription>,
    /// Its timer runs.
    looks: bool,
    /// Where turns of credit may be left out.
    hold_back: Option<HoldBack>,
    /// Counts grants of credit: their EVs.
    grants: u16,
}

impl Receiver {
    pub(super) fn new(config: Config) -> Self {
        let Config { rx_idle_timeout, time_wait, oversubscription, .. } = config;
        let messages = Incoming::new(LINGER_TIMER, rx_idle_timeout, time_wait);
        let alone = config.credit && config.control == WindowControl::None;
        let ratio = oversubscription.filter(|&ratio| alone && ratio > 1.0);
        let oversubscription = ratio.map(Oversubscription::new);
        let pacer = Pacer::new(config.credit_rule, config.credit_turn);
        let hold_back = config.hold_back.then(HoldBack::default);
        Self { config, messages, pacer, oversubscription, looks: false, hold_back, grants: 0 }
    }

    /// A packet has arrived, whole or trimmed.
    pub(super) fn on_request(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        request: Request,
        how: Arrival,
        out: &mut Outbox,
    ) {
        if let Some(oversubscription) = &mut self.oversubscription {
            oversubscription.on_packet(request.marked, how);
        }
        if let Some(hold_back) = &mut self.hold_back {
            hold_back.on_packet(cx.now, request.marked || how != Arrival::Whole);
        }
        self.receive(cx, key, request, how, out);
        self.give_credit(cx, out);
    }

    /// See [`endpoint::Endpoint::on_shortened`]. Rare, so a walk over all connections will do.
    pub(super) fn on_shortened(&mut self, key: MsgKey, bytes: u64) {
        let packets = bytes / u64::from(self.config.payload);
        let of_source = self.messages.iter_mut().filter(|conn| conn.key.src == key.src);
        of_source.for_each(|conn| conn.pieces.shorten(key.id, packets, bytes));
    }

    /// A sender waits for credit.
    pub(super) fn on_credit_request(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        (size, kept, target): (u64, bool, u32),
        out: &mut Outbox,
    ) {
        if !self.config.credit || (kept && self.config.keep_connections.is_none()) {
            cx.fx.count(Stat::Rejected);
            return;
        }
        // As if the last packet of a message had come, which is asked about.
        let last = self.config.framing().packets(size).saturating_sub(1);
        let request = Request::asking(key, size, if kept { 0 } else { last }, kept);
        let request = Request { target, repeated: true, ..request };
        self.receive(cx, key, request, Arrival::Asks, out);
        self.give_credit(cx, out);
    }

    fn receive(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        mut request: Request,
        how: Arrival,
        out: &mut Outbox,
    ) {
        if self.answer_for_finished(cx, key, &request, None, out) {
            return;
        }
        let Some(at) = self.find(cx, key, &request) else { return };
        let Some(conn) = self.messages.get_mut(at) else { return };
        if request.kept {
            request.seq = unwrap_index(conn.received.prefix(), request.seq as u32);
        }
        if !conn.admits(&self.config, &request, how) {
            cx.fx.count(Stat::Rejected);
            return;
        }
        conn.heard = cx.now;
        let whole = how == Arrival::Whole;
        let known = conn.received.contains(request.seq);
        if self.config.credit && (whole || how == Arrival::Asks || !known) {
            let join = match how {
                Arrival::Whole => Join::No,
                Arrival::Trimmed { .. } => Join::Refused,
                Arrival::Asks => Join::Asks,
            };
            self.pacer.ask(at, &mut conn.given, request.target, join);
        }
        match how {
            Arrival::Asks => return,
            Arrival::Trimmed { last_hop } if !known => {
                out.push(nack(cx, &self.config, key, &request, last_hop));
                return;
            }
            // Without room for it, it is as good as lost.
            Arrival::Whole if !known && u64::from(request.len) > cx.room => return,
            _ => {}
        }
        let complete = self.accept(cx, at, &request, (known, !whole), out);
        if let Some(packets) = complete
            && let Some(conn) = self.messages.complete(cx, at, packets)
        {
            self.pacer.forget(&conn.given);
        }
    }

    /// The time of somebody who waits for credit may have come.
    pub(super) fn give_credit(&mut self, cx: &mut Cx<'_>, out: &mut Outbox) {
        if !self.config.credit {
            return;
        }
        let due = self.pacer.due(cx.now);
        let hold_back = self.hold_back.as_mut().filter(|_| due <= cx.now);
        if hold_back.is_some_and(|hold_back| hold_back.leaves_out(cx.now, cx.draw)) {
            self.pacer.leave_out(cx.paced_from(due), cx.net.rate(0));
        } else if due <= cx.now
            && let Some(at) = self.pacer.next(|at| self.messages.is_open(at))
            && let Some(conn) = self.messages.get_mut(at)
        {
            let (from, rate, key) = (cx.paced_from(due), cx.net.rate(0), conn.key);
            let given = self.pacer.give(from, rate, at, &mut conn.given);
            self.grants = self.grants.wrapping_add(1);
            let path = path(&self.config, cx, key.src, self.grants % GRANT_VALUES);
            let span = Span { msg: key.id, offset: 0, len: 0 };
            let header = Repr { message: key.id.0, kind: Kind::Credit { given } };
            out.push(Control { to: key.src, path, span, header });
        }
        let due = self.pacer.due(cx.now);
        cx.fx.arm(CREDIT_TIMER, due);
    }

    /// Look at what has arrived, and at how much credit the fabric can take.
    pub(super) fn on_oversubscription_timer(&mut self, cx: &mut Cx<'_>) {
        let Some(oversubscription) = &mut self.oversubscription else { return };
        oversubscription.look();
        self.pacer.scale(oversubscription.rate());
        self.looks = false;
        if !self.messages.is_empty() {
            self.look_later(cx);
        }
    }

    /// Have a look planned, if none is.
    fn look_later(&mut self, cx: &mut Cx<'_>) {
        let Some(oversubscription) = &mut self.oversubscription else { return };
        if std::mem::replace(&mut self.looks, true) {
            return;
        }
        // A host's round trip to itself is zero.
        let rtt = self.config.base_rtt.unwrap_or(cx.net.base_rtt(cx.me)).max(Dur::from_us(1));
        let due = oversubscription.due(cx.now, cx.draw, rtt);
        self.pacer.scale(oversubscription.rate());
        cx.fx.arm(OVERSUBSCRIPTION_TIMER, due);
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
                let offset = request.index * u64::from(self.config.payload);
                cx.fx.place(MsgKey { id: request.msg, ..key }, offset, u32::from(request.len));
            }
            conn.take(&self.config, request)
        };
        let begins = !known && conn.arrived == 1;
        let prefix = conn.received.prefix();
        let whole = conn.pieces.ends_at(prefix);
        let complete = whole && !conn.kept;
        if conn.kept {
            while let Some((id, cut)) = conn.pieces.pop(prefix) {
                let key = MsgKey { id, ..key };
                match cut {
                    true => cx.fx.failed(key, FailReason::Cancelled),
                    false => cx.fx.delivered(key),
                }
            }
        }
        if now || complete {
            conn.unacknowledged = 0;
            let about_it = request.marked || (request.ack_request && !known);
            let ack = conn.ack(request, about_it);
            out.push(answer(cx, &self.config, key, request, ack));
        }
        if begins {
            self.messages.begins(key);
        }
        complete.then_some(prefix)
    }

    /// The sender wants to know what of a message has arrived.
    pub(super) fn on_probe(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        (entropy, number): (u16, u32),
        marked: bool,
        out: &mut Outbox,
    ) {
        // It is of no packet.
        let of = Request { entropy, marked, ..Request::asking(key, 0, 0, false) };
        if self.answer_for_finished(cx, key, &of, Some(number), out) {
            return;
        }
        let at = self.messages.find(key);
        let Some(conn) = at.and_then(|at| self.messages.get_mut(at)) else {
            cx.fx.count(Stat::Rejected);
            return;
        };
        conn.heard = cx.now;
        let ack = Ack { probe: true, ..conn.ack(&of, false) };
        out.push(control(cx, &self.config, key, &of, Kind::Ack { entropy, psn: number, ack }));
    }

    /// Whether the message is over. If all of it came, its ACK was lost: here is another, to a
    /// packet or to a `probe`.
    fn answer_for_finished(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        request: &Request,
        probe: Option<u32>,
        out: &mut Outbox,
    ) -> bool {
        let config = &self.config;
        self.messages.answer_if_over(cx, key, |cx, packets| {
            if probe.is_none() {
                cx.fx.count(Stat::Duplicate);
            }
            let headers = packets.wrapping_mul(u64::from(config.header));
            let ack = Ack {
                repeated: request.repeated,
                marked: request.marked,
                probe: probe.is_some(),
                expected: packets as u32,
                bitmap: 0,
                base: packets as u32,
                received: units(request.size.wrapping_add(headers)),
                out_of_order: 0,
            };
            let (entropy, psn) = (request.entropy, probe.unwrap_or(request.seq as u32));
            out.push(control(cx, config, key, request, Kind::Ack { entropy, psn, ack }));
        })
    }

    /// The sender has given the message up.
    pub(super) fn on_close(&mut self, cx: &mut Cx<'_>, key: MsgKey) {
        if let Some((_, conn)) = self.messages.on_end(cx, key) {
            self.pacer.forget(&conn.given);
        }
    }

    /// The share of its link's rate at which it gives credit.
    #[cfg(test)]
    pub(super) fn credit_rate(&self) -> f64 {
        self.oversubscription.as_ref().map_or(1.0, Oversubscription::rate)
    }

    /// See [`endpoint::Endpoint::on_over_below`].
    pub(super) fn over_below(&mut self, host: HostId, oldest: MsgId) {
        // A connection that is kept is named by its first message, and outlives it.
        if self.config.keep_connections.is_none() {
            self.messages.over_below(host, oldest);
        }
    }

    /// See [`endpoint::Endpoint::on_restart`].
    pub(super) fn restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        for (_, conn) in self.messages.restart(cx, host) {
            self.pacer.forget(&conn.given);
        }
    }

    /// Forget messages that have been silent for too long.
    pub(super) fn on_linger_timer(&mut self, cx: &mut Cx<'_>) {
        for (_, conn) in self.messages.on_linger_timer(cx) {
            self.pacer.forget(&conn.given);
        }
    }

    /// The state of a message, new if it has none; `None` if its sender has too many.
    fn find(&mut self, cx: &mut Cx<'_>, key: MsgKey, request: &Request) -> Option<SlotRef> {
        if let Some(at) = self.messages.find(key) {
            return Some(at);
        }
        if self.messages.is_empty() {
            self.look_later(cx);
        }
        let beyond = self.config.window_max(&self.config.network(cx, key.src)) / UNIT;
        let conn = Conn {
            key,
            kept: request.kept,
            pieces: match request.kept {
                true => Arriving::default(),
                false => {
                    let packets = self.config.framing().packets(request.size);
                    Arriving::only(key.id, request.size, packets)
                }
            },
            received: Received::default(),
            arrived: 0,
            bytes: 0,
            unacknowledged: 0,
            ack_request: false,
            given: Given::up_to(beyond),
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
    let offset = request.index.saturating_mul(u64::from(config.payload));
    let span = Span { msg: request.msg, offset, len: u32::from(request.len) };
    Control { to, path, span, header: Repr { message, kind } }
}
