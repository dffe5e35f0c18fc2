//! A transport with a window: so many packets of a message are in flight. An acknowledgement names
//! the packet that came, so a lost one is known when three later ones were acknowledged, or after
//! `rto`. The window grows by one packet in a round trip, and is halved when a packet is lost or a
//! switch has marked it.
//!
//! [`Endpoint`] says what the simulator promises, and what it expects.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use trimline_endpoint::{
    Cx, Endpoint, FailReason, Flags, Framing, Msg, Packet, Span, Stat, Submit, Tx, TxPort,
};
use trimline_scenario::{CUSTOM_PROTO, CustomHost};
use trimline_units::{Dur, HostId, MsgId, MsgKey, Time, TimerId};

/// The only timer. It looks for messages of which nothing was heard for long.
const LOOK: TimerId = TimerId(0);

/// A packet is lost when so many later ones were acknowledged.
const REORDERING: u64 = 3;

/// Bytes of the header: length of the message, number of the transmission.
const HEADER: usize = 16;

/// Keys of `[transport]`, beside `payload` and `header`, which scenarios read themselves.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How messages are cut into packets.
    pub framing: Framing,
    /// The window at first, packets.
    pub initial_window: u32,
    /// What is not acknowledged by then is lost.
    pub rto: Dur,
}

impl Config {
    /// The keys of a scenario, or what is wrong with them.
    pub fn of(host: &CustomHost<'_>) -> Result<Self, String> {
        let window = host.table.get("initial_window");
        let window = window.map_or(0, |window| window.as_integer().unwrap_or(0));
        let initial_window = Some(window).filter(|n| (1..=10_000).contains(n));
        let rto = host.table.get("rto").and_then(|rto| rto.as_str()?.parse::<Dur>().ok());
        Ok(Self {
            framing: host.framing,
            initial_window: initial_window.ok_or("`initial_window` is 1 to 10000 packets")? as u32,
            rto: rto.filter(|rto| *rto > Dur::ZERO).ok_or("`rto` is a time such as \"1ms\"")?,
        })
    }
}

/// How many packets of a message may be in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    packets: f64,
    /// Transmissions before this one were made with a greater window: they do not reduce it again.
    reduced_at: u64,
}

impl Window {
    fn new(packets: u32) -> Self {
        Self { packets: f64::from(packets), reduced_at: 0 }
    }

    /// One more packet was acknowledged, unmarked.
    fn grow(&mut self) {
        self.packets += 1.0 / self.packets;
    }

    /// Transmission `number` was lost, or marked; `next` is the number of the next one.
    fn reduce(&mut self, number: u64, next: u64) {
        if number >= self.reduced_at {
            self.packets = (self.packets / 2.0).max(1.0);
            self.reduced_at = next;
        }
    }
}

/// A message of this host.
#[derive(Debug)]
struct Sending {
    msg: Msg,
    window: Window,
    /// The first packet that was never sent.
    next: u64,
    /// By number of the transmission: the packet.
    in_flight: BTreeMap<u64, u64>,
    lost: VecDeque<u64>,
    acked: BTreeSet<u64>,
    /// When something was last sent or heard.
    heard: Time,
}

impl Sending {
    /// Whether a packet may be sent.
    fn may_send(&self, framing: Framing) -> bool {
        let has_some = !self.lost.is_empty() || self.next < framing.packets(self.msg.len);
        has_some && (self.in_flight.len() as f64) < self.window.packets
    }

    /// All transmissions before `before` are lost.
    fn give_up(&mut self, before: u64, next: u64) -> usize {
        let later = self.in_flight.split_off(&before);
        let lost = std::mem::replace(&mut self.in_flight, later);
        for (&number, &packet) in &lost {
            self.window.reduce(number, next);
            self.lost.push_back(packet);
        }
        lost.len()
    }
}

/// A message to this host that is not whole.
#[derive(Debug, Default)]
struct Receiving {
    packets: BTreeSet<u64>,
}

/// An acknowledgement to send.
#[derive(Debug)]
struct Ack {
    to: HostId,
    span: Span,
    header: [u8; HEADER],
    marked: bool,
}

/// The whole transport of one host.
#[derive(Debug)]
pub struct Transport {
    config: Config,
    sending: BTreeMap<MsgId, Sending>,
    /// Messages that may send, in turn.
    ready: VecDeque<MsgId>,
    acks: VecDeque<Ack>,
    receiving: BTreeMap<MsgKey, Receiving>,
    /// Messages that were whole: what comes of them is acknowledged again, and not placed.
    whole: BTreeSet<MsgKey>,
    /// The number of the next transmission.
    number: u64,
    is_looking: bool,
}

impl Transport {
    /// An idle host.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            sending: BTreeMap::new(),
            ready: VecDeque::new(),
            acks: VecDeque::new(),
            receiving: BTreeMap::new(),
            whole: BTreeSet::new(),
            number: 0,
            is_looking: false,
        }
    }

    /// Let message `id` send, if it may and is not in turn already.
    fn wake(&mut self, id: MsgId) {
        let may = self.sending.get(&id).is_some_and(|s| s.may_send(self.config.framing));
        if may && !self.ready.contains(&id) {
            self.ready.push_back(id);
        }
    }

    fn on_data(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let Some((len, _)) = parsed(pkt) else { return cx.fx.count(Stat::Rejected) };
        if !pkt.carries_payload() || u64::from(pkt.span.len) > cx.room {
            return; // The sender will see that it was lost.
        }
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        let mut header = [0; HEADER];
        header.copy_from_slice(&pkt.hdr[..HEADER]);
        let marked = pkt.flags.has(Flags::CE);
        self.acks.push_back(Ack { to: pkt.src, span: pkt.span, header, marked });
        if self.whole.contains(&key) {
            return cx.fx.count(Stat::Duplicate);
        }
        let message = self.receiving.entry(key).or_default();
        if !message.packets.insert(pkt.span.offset) {
            return cx.fx.count(Stat::Duplicate);
        }
        if pkt.span.len > 0 {
            cx.fx.place(key, pkt.span.offset, pkt.span.len);
        }
        if message.packets.len() as u64 == self.config.framing.packets(len) {
            self.receiving.remove(&key);
            self.whole.insert(key);
            cx.fx.delivered(key);
        }
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let id = pkt.span.msg;
        let (Some((_, number)), Some(sending)) = (parsed(pkt), self.sending.get_mut(&id)) else {
            return cx.fx.count(Stat::Rejected);
        };
        sending.heard = cx.now;
        sending.in_flight.remove(&number);
        let packet = pkt.span.offset / u64::from(self.config.framing.payload);
        sending.acked.insert(packet);
        sending.lost.retain(|lost| *lost != packet);
        match pkt.flags.has(Flags::CE) {
            true => sending.window.reduce(number, self.number),
            false => sending.window.grow(),
        }
        if sending.give_up(number.saturating_sub(REORDERING), self.number) > 0 {
            cx.fx.count_for(Stat::FastRetransmit, id);
        }
        if sending.acked.len() as u64 == self.config.framing.packets(sending.msg.len) {
            self.sending.remove(&id);
            self.ready.retain(|ready| *ready != id);
            cx.fx.acked(id);
        }
        self.wake(id);
    }

    /// The next packet of message `id`, into `slot`. Whether it is sent again.
    fn fill(&mut self, now: Time, id: MsgId, slot: &mut Packet) -> Option<bool> {
        let framing = self.config.framing;
        let sending = self.sending.get_mut(&id).filter(|sending| sending.may_send(framing))?;
        let again = sending.lost.pop_front();
        let packet = again.unwrap_or_else(|| {
            sending.next += 1;
            sending.next - 1
        });
        sending.in_flight.insert(self.number, packet);
        sending.heard = now;
        let len = framing.payload_of(packet, sending.msg.len);
        let offset = packet * u64::from(framing.payload);
        slot.dst = sending.msg.dst;
        slot.span = Span { msg: id, offset, len: u32::from(len) };
        slot.wire_len = len + framing.overhead;
        slot.flags = Flags::ECT;
        slot.put_header(&[sending.msg.len.to_be_bytes(), self.number.to_be_bytes()].concat());
        self.number += 1;
        Some(again.is_some())
    }
}

/// Length of the message, and number of the transmission.
fn parsed(pkt: &Packet) -> Option<(u64, u64)> {
    let (words, _) = pkt.hdr[..usize::from(pkt.hdr_len)].as_chunks::<8>();
    let [len, number] = words else { return None };
    Some((u64::from_be_bytes(*len), u64::from_be_bytes(*number)))
}

impl Endpoint for Transport {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        let sending = Sending {
            msg: *msg,
            window: Window::new(self.config.initial_window),
            next: 0,
            in_flight: BTreeMap::new(),
            lost: VecDeque::new(),
            acked: BTreeSet::new(),
            heard: cx.now,
        };
        self.sending.insert(msg.id, sending);
        self.wake(msg.id);
        if !std::mem::replace(&mut self.is_looking, true) {
            cx.fx.arm(LOOK, cx.now + self.config.rto);
        }
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        match (pkt.proto, pkt.flags.has(Flags::CONTROL)) {
            (CUSTOM_PROTO, true) => self.on_ack(cx, pkt),
            (CUSTOM_PROTO, false) => self.on_data(cx, pkt),
            _ => cx.fx.count(Stat::Rejected),
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, _: TimerId) {
        let rto = self.config.rto;
        let silent = |s: &Sending| !s.in_flight.is_empty() && cx.now.since(s.heard) >= rto;
        let silent = self.sending.iter().filter(|(_, s)| silent(s)).map(|(id, _)| *id);
        for id in silent.collect::<Vec<_>>() {
            if let Some(sending) = self.sending.get_mut(&id) {
                sending.give_up(u64::MAX, self.number);
                sending.window.packets = 1.0;
                sending.heard = cx.now;
                cx.fx.count_for(Stat::Timeout, id);
                cx.fx.count_for(Stat::OtherTimeout, id);
            }
            self.wake(id);
        }
        self.is_looking = !self.sending.is_empty();
        if self.is_looking {
            cx.fx.arm(LOOK, cx.now + rto);
        }
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        if !port.opens(0) {
            return Tx::Idle; // Paused by priority flow control.
        }
        (slot.src, slot.proto) = (cx.me, CUSTOM_PROTO);
        if let Some(ack) = self.acks.pop_front() {
            slot.dst = ack.to;
            slot.span = Span { len: 0, ..ack.span };
            slot.wire_len = self.config.framing.overhead;
            slot.flags = if ack.marked { Flags::CONTROL.with(Flags::CE) } else { Flags::CONTROL };
            slot.put_header(&ack.header);
            return Tx::Sent;
        }
        while let Some(id) = self.ready.pop_front() {
            let Some(again) = self.fill(cx.now, id, slot) else { continue };
            if again {
                cx.fx.count_for(Stat::Retransmission, id);
            }
            // All packets of a message take one path, where switches hash.
            slot.path = (id.0 as u32).wrapping_mul(0x9e37_79b9) ^ cx.me.0;
            self.wake(id);
            return Tx::Sent;
        }
        Tx::Idle
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        if self.sending.remove(&id).is_some() {
            self.ready.retain(|ready| *ready != id);
            cx.fx.failed(MsgKey { src: cx.me, id }, FailReason::Cancelled);
        }
    }

    fn on_over(&mut self, _: HostId, key: MsgKey) {
        self.whole.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_by_one_in_a_round_trip_and_is_halved_once_in_one() {
        let mut window = Window::new(4);
        (0..4).for_each(|_| window.grow());
        assert!((4.8..=5.0).contains(&window.packets), "{window:?}");
        window.reduce(7, 9);
        let halved = window.packets;
        assert!((2.4..=2.5).contains(&halved), "{window:?}");
        window.reduce(8, 9);
        assert_eq!(window.packets, halved, "sent before the window was halved");
        (10..20).for_each(|number| window.reduce(number, number + 1));
        assert_eq!(window.packets, 1.0, "a packet at least");
    }
}
