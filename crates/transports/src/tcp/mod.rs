//! TCP as one host's transport: RFC 5681 (congestion control), RFC 6582 (NewReno), RFC 2018 and
//! 6675 (SACK), RFC 6298 (timeouts), RFC 3042 (limited transmit), RFC 3168 (ECN), by specs/tcp.md.
//! Departures are listed in `tcp.deviations.toml` beside this directory.
//!
//! How the window grows, and what a loss or a mark leaves of it, is the affair of a
//! congestion-control rule, a small file each ([`rule`]): NewReno, BIC, H-TCP, CUBIC, DCTCP, FAST.
//! Receivers let senders have anything in flight, or what their interface has room for ([`ictcp`]).
//!
//! # Connections
//!
//! A connection begins with a handshake (`handshake.rs`) where that is asked for; otherwise the
//! first data segment opens it. A message with channel zero has a connection of its own, which ends
//! with it (FIN). The messages of another channel to one host share a connection, in order; PSH
//! marks the end of each, and the congestion state survives from one to the next. Connections carry
//! data in one direction.
//!
//! The ports hold the connection's id, 30 bits, counted per pair of hosts: the sender's port is
//! 32768 + the upper 15 bits, the receiver's the lower 15 bits. So the port numbers say which side
//! a packet comes from, and the two directions between two hosts never meet.
//!
//! URG marks the first segment that is sent because a timer has expired, ECE the first of a
//! recovery (a fast retransmit), both together any other that is sent again, so that a receiver can
//! count the timeout or the fast retransmit as spurious (`retransmission.rs`); nothing else depends
//! on it. The sender counts those after which an acknowledgement of something new comes before the
//! interface takes that segment.
//!
//! Everything is decided from the TCP header and the payload length. The message identity and the
//! place of the bytes in it ([`endpoint::Span`]) come with the packet; they name where the payload
//! goes and nothing else. Each connection draws its path entropy once; acknowledgements return it.
//!
//! # Sending
//!
//! Acknowledgements go first, each with the number it had when it fell due, so that duplicates
//! stay duplicates. Connections with something to send take turns, a packet each. With PIAS
//! ([`Demotion`]) those go first whose packet has sent the fewest bytes, in steps.
//!
//! # Cost
//!
//! Per packet one hash lookup and O(1) work, or O(log n) in the number of holes. All deadlines of
//! a kind share one timer of the host ([`Deadlines`]), so an acknowledgement moves no timer.

mod config;
mod dsack;
pub(crate) mod handshake;
pub mod ictcp;
mod pias;
pub(crate) mod receiver;
pub(crate) mod retransmission;
pub mod rr;
pub mod rule;
mod scoreboard;
pub(crate) mod sender;
pub(crate) mod stream;
#[cfg(test)]
pub(crate) mod tests;
mod timestamps;
mod undo;
mod window;

use std::collections::VecDeque;

use endpoint::{
    Cx, Endpoint, FailReason, Flags, FlowState, Msg, Packet, Purpose, Span, Stat, Submit, Tx,
    TxPort,
};
use units::{HostId, MsgId, MsgKey, Time, TimerId};
use wire::tcp::{Control, PROTO, Repr, SACK_BLOCKS_MAX, SackBlocks, Timestamps};

pub use config::{Config, IdleRestart, Increase, ReceiveWindow, Recovery, Reduces, Undo};
pub use pias::Demotion;
use receiver::{Ack, Receivers};
pub use rule::RuleConfig;
use sender::{Identity, Incoming, Sender};
use stream::Segment;

use crate::config::ConfigError;
use crate::connection_ids::unwrap;
use crate::connections::Connections;
use crate::deadlines::{Armed, Deadlines, Timer};
use crate::outbox::{CONTROL_MAX, Outbox};

/// Bits of a connection id.
pub(crate) const CONN_BITS: u32 = 30;
/// The bit of a port that says: this is the sender's side of the connection.
pub(crate) const SENDER_PORT: u16 = 0x8000;
/// The window field of receivers that take everything, and of data: it is not read.
const WINDOW: u16 = u16::MAX;

pub(crate) const PATH: Purpose = Purpose::new("tcp path");

/// One host's TCP.
#[derive(Debug)]
pub struct Tcp {
    config: Config,
    /// Bit c: there are packets of class c.
    classes: u8,
    senders: Connections<Sender, CONN_BITS>,
    /// Slots of the senders that have something to send, in turn.
    round: VecDeque<u32>,
    /// Retransmission timers, by slot.
    timeouts: Deadlines,
    receivers: Receivers,
    acks: Outbox<Ack>,
    /// Messages in flight.
    messages: u32,
    /// The timers of the host: for retransmissions, and for delayed acknowledgements.
    armed: Armed<2>,
}

impl Tcp {
    /// TCP by `config`.
    ///
    /// # Errors
    /// If `config` is impossible.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            classes: config.classes().fold(0, |classes, class| classes | 1 << class),
            senders: Connections::new(),
            round: VecDeque::new(),
            timeouts: Deadlines::new(),
            receivers: Receivers::new(&config),
            acks: Outbox::new(CONTROL_MAX),
            messages: 0,
            armed: Armed::NONE,
        })
    }

    /// The sender for a new message: that of its channel, or a new one.
    fn sender_for(&mut self, cx: &Cx<'_>, msg: &Msg) -> u32 {
        if let Some(slot) = self.senders.of_channel(msg.dst, msg.channel) {
            return slot;
        }
        let id = self.new_identity(cx, msg);
        let new = || Sender::new(&self.config, id);
        let slot = self.senders.open((id.dst, id.conn), msg.channel, new);
        let sender = &mut self.senders[slot];
        sender.reopen(&self.config, id);
        sender.spread_timeout(&self.config, cx.draw);
        slot
    }

    fn new_identity(&mut self, cx: &Cx<'_>, msg: &Msg) -> Identity {
        let draw = cx.draw.part(u64::from(msg.dst.0));
        let conn = self.senders.next_id(draw, msg.dst);
        let path = draw.bits(PATH, u64::from(conn)) as u32;
        Identity { dst: msg.dst, conn, path, channel: msg.channel, mss: self.mss(cx) }
    }

    /// Largest payload of a segment here.
    fn mss(&self, cx: &Cx<'_>) -> u16 {
        self.config.mss.min(cx.net.mtu.saturating_sub(self.config.overhead).max(1))
    }

    /// Bring everything about the sender in `slot` in line with its state: its turn, its timer,
    /// its end.
    fn settle(&mut self, now: Time, slot: u32, timer: Timer) {
        let sender = &mut self.senders[slot];
        if sender.is_done() && (sender.id.channel == 0 || !sender.is_open()) {
            self.close(slot);
            return;
        }
        if !sender.in_round && sender.can_send(&self.config) {
            sender.in_round = true;
            self.round.push_back(slot);
        }
        let timeout = || sender.rto().timeout(&self.config.rto);
        self.timeouts.follow(slot, timer, now, timeout);
    }

    /// All messages of the connection in `slot` fail.
    fn give_up(&mut self, cx: &mut Cx<'_>, slot: u32) {
        let sender = &mut self.senders[slot];
        self.messages -= sender.open_messages();
        sender.give_up(cx.me, cx.fx);
        self.close(slot);
    }

    fn close(&mut self, slot: u32) {
        // Its place in the round, if any, stays: the slot has nothing to send, or belongs to the
        // next connection by then.
        let id = self.senders[slot].id;
        self.senders.close(slot, (id.dst, id.conn), id.channel);
        self.timeouts.set(slot, Time::NEVER);
    }

    /// Let the host's timers stand at the earliest deadlines.
    fn arm_timers(&mut self, cx: &mut Cx<'_>) {
        let next = [self.timeouts.next(), self.receivers.deadlines.next()];
        self.armed.move_to(next, cx.fx);
    }

    fn on_data(&mut self, cx: &mut Cx<'_>, header: &Repr, pkt: &Packet) {
        let conn = conn_id(header.src_port, header.dst_port);
        if header.control.has(Control::SYN) {
            let answer = self.receivers.on_syn(&self.config, conn, header, pkt);
            answer.into_iter().for_each(|ack| self.acks.push(ack));
            return;
        }
        if pkt.flags.has(Flags::CONTROL) {
            // Environments let it through without its payload, and a peer may say anything.
            return cx.fx.count(Stat::Rejected);
        }
        let acks = self.receivers.on_data(&self.config, cx.now, conn, header, pkt, cx.fx);
        acks.into_iter().flatten().for_each(|ack| self.acks.push(ack));
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, header: &Repr, pkt: &Packet) {
        let conn = conn_id(header.dst_port, header.src_port);
        let Some(slot) = self.senders.find((pkt.src, conn)) else {
            return; // of a connection that is over
        };
        let sender = &mut self.senders[slot];
        if header.control.has(Control::SYN) {
            let echo = header.timestamps.map_or(0, |times| times.echo);
            let timer = sender.on_syn_ack(&self.config, cx.now, echo, true);
            self.settle(cx.now, slot, timer);
            return;
        }
        let mut blocks = [(0, 0); SACK_BLOCKS_MAX];
        let Some(incoming) = incoming(&self.config, header, sender.una(), &mut blocks) else {
            return;
        };
        let open = sender.open_messages();
        let timer = sender.on_ack(&self.config, cx.now, &incoming, cx.fx);
        self.messages -= open - sender.open_messages();
        self.settle(cx.now, slot, timer);
    }

    /// Whose turn it is: with PIAS, the first of those with a packet of the highest class.
    fn next_turn(&mut self) -> Option<u32> {
        let Some(demotion) = &self.config.pias else { return self.round.pop_front() };
        let steps = |slot: u32| {
            let segment = self.senders[slot].peek(&self.config);
            segment.map_or(0, |segment| demotion.steps_at(segment.offset))
        };
        let (place, _) = self.round.iter().enumerate().min_by_key(|&(_, &slot)| steps(slot))?;
        self.round.remove(place)
    }

    /// The next data packet, from the sender whose turn it is.
    fn send_data(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> bool {
        while let Some(turn) = self.next_turn() {
            let sender = &mut self.senders[turn];
            sender.in_round = false;
            let Some(segment) = sender.next_segment(&self.config, cx.now) else { continue };
            if segment.control.has(Control::SYN) {
                handshake::fill_syn(&self.config, cx.now, &sender.id, segment, slot);
            } else {
                fill_data(&self.config, cx.now, &sender.id, segment, slot);
            }
            let timer = if self.timeouts.is_set(turn) { Timer::Keep } else { Timer::Restart };
            self.settle(cx.now, turn, timer);
            if segment.again {
                cx.fx.count_for(Stat::Retransmission, segment.msg);
            }
            return true;
        }
        false
    }
}

impl Endpoint for Tcp {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        if self.messages >= self.config.max_messages {
            return Submit::Full;
        }
        self.messages += 1;
        let slot = self.sender_for(cx, msg);
        let sender = &mut self.senders[slot];
        sender.submit(msg.id, msg.len, cx.now.saturating_add(msg.deadline));
        sender.cap_window(&self.config, msg.window);
        self.settle(cx.now, slot, Timer::Keep);
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let mss = self.mss(cx);
        self.receivers.arrived(cx, mss, pkt.wire_len);
        // A trimmed segment fails its checksum, and a bounced one belongs to no connection.
        let damaged = pkt.flags.has(Flags::TRIMMED) || pkt.flags.has(Flags::BOUNCED);
        match Repr::parse(pkt.header()) {
            Ok(header) if pkt.proto == PROTO && !damaged => {
                let from_sender = header.src_port & SENDER_PORT != 0;
                let to_sender = header.dst_port & SENDER_PORT != 0;
                match (from_sender, to_sender) {
                    (true, false) => self.on_data(cx, &header, pkt),
                    (false, true) => self.on_ack(cx, &header, pkt),
                    _ => cx.fx.count(Stat::Rejected),
                }
            }
            _ => cx.fx.count(Stat::Rejected),
        }
        self.arm_timers(cx);
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        self.armed.fired(id);
        while let Some(slot) = self.timeouts.pop(cx.now) {
            let sender = &mut self.senders[slot];
            if sender.on_timeout(&self.config, cx.now, cx.fx) {
                sender.spread_timeout(&self.config, cx.draw);
                self.settle(cx.now, slot, Timer::Restart);
            } else {
                self.give_up(cx, slot);
            }
        }
        while let Some(ack) = self.receivers.pop_delayed(&self.config, cx.now) {
            self.acks.push(ack);
        }
        self.arm_timers(cx);
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        // All classes share the interface's one queue, so a pause of any of them pauses all.
        if port.open & self.classes != self.classes {
            return Tx::Idle;
        }
        slot.src = cx.me;
        slot.proto = PROTO;
        slot.class = self.config.class;
        if let Some(ack) = self.acks.pop() {
            fill_ack(&self.config, cx.now, ack, slot);
            return Tx::Sent;
        }
        let sent = self.send_data(cx, slot);
        self.arm_timers(cx);
        if sent { Tx::Sent } else { Tx::Idle }
    }

    fn on_restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        for slot in self.senders.to(host) {
            self.give_up(cx, slot);
        }
        self.receivers.restart(host);
        self.arm_timers(cx);
    }

    fn unsent(&self, id: MsgId) -> Option<u64> {
        self.senders.slots().find_map(|slot| self.senders[slot].unsent(id))
    }

    fn shorten(&mut self, id: MsgId, bytes: u64) -> u64 {
        // A message is in one of them.
        self.senders.slots().map(|slot| self.senders[slot].shorten(id, bytes)).sum()
    }

    fn flow_state(&self, id: MsgId) -> Option<FlowState> {
        let mut senders = self.senders.slots().map(|slot| &self.senders[slot]);
        Some(senders.find(|sender| sender.source().holds(id))?.state(&self.config))
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        // Rare, so a walk over all connections is cheaper than an index kept for every message.
        for slot in self.senders.slots() {
            if self.senders[slot].cancel(id) {
                self.messages -= 1;
                cx.fx.failed(MsgKey { src: cx.me, id }, FailReason::Cancelled);
                self.settle(cx.now, slot, Timer::Keep);
                break;
            }
        }
        self.arm_timers(cx);
    }
}

/// The acknowledgement that `header` is to a sender whose first position not acknowledged is `una`,
/// if it makes sense; `blocks` is where what it says by SACK goes.
#[inline(always)] // a part of the way of every packet
pub(crate) fn incoming<'a>(
    config: &Config,
    header: &Repr,
    una: u64,
    blocks: &'a mut [(u64, u64); SACK_BLOCKS_MAX],
) -> Option<Incoming<'a>> {
    let position = |number: u32| unwrap(number.wrapping_sub(config.isn), una, 32);
    let ack = position(header.ack)?;
    let named = header.sack.as_slice();
    for (place, &(left, right)) in blocks.iter_mut().zip(named) {
        // What makes no sense is an empty block.
        *place = position(left).zip(position(right)).unwrap_or((0, 0));
    }
    let edge = match config.receive_window {
        ReceiveWindow::Unlimited => u64::MAX,
        ReceiveWindow::Ictcp(_) => ack.saturating_add(ictcp::window_bytes(header.window)),
    };
    Some(Incoming {
        ack,
        edge,
        stamp: header.timestamps.map_or(0, |times| times.value),
        echo: header.timestamps.map_or(0, |times| times.echo),
        complete: header.control.has(Control::FIN),
        marked: config.ecn && header.control.has(Control::ECE),
        sack: &blocks[..named.len()],
    })
}

/// The connection id in the ports of its sender and its receiver.
pub(crate) fn conn_id(sender_port: u16, receiver_port: u16) -> u32 {
    u32::from(sender_port & !SENDER_PORT) << 15 | u32::from(receiver_port & !SENDER_PORT)
}

/// The inverse of [`conn_id`].
pub(crate) fn ports(conn: u32) -> (u16, u16) {
    let low = |bits: u32| (bits & 0x7fff) as u16;
    (SENDER_PORT | low(conn >> 15), low(conn))
}

#[inline(always)] // likewise
pub(crate) fn fill_data(
    config: &Config,
    now: Time,
    id: &Identity,
    segment: Segment,
    slot: &mut Packet,
) {
    slot.dst = id.dst;
    slot.path = id.path;
    slot.span = Span { msg: segment.msg, offset: segment.offset, len: segment.len };
    if let Some(demotion) = &config.pias {
        slot.class = config.class.saturating_sub(demotion.steps_at(segment.offset));
    }
    // Fits: Config::check has added the largest values of both.
    slot.wire_len = segment.len as u16 + config.overhead;
    if config.ecn {
        slot.flags.set(Flags::ECT);
    }
    let (src_port, dst_port) = ports(id.conn);
    let seq = (segment.seq as u32).wrapping_add(config.isn);
    let control = segment.control;
    // Data flows one way: there is nothing to acknowledge but the peer's initial number.
    let ack = config.isn;
    let sack = SackBlocks::NONE;
    let timestamps = times(config, now, segment.echo);
    let window = WINDOW;
    write(Repr { src_port, dst_port, seq, ack, control, window, sack, timestamps }, slot);
}

#[inline(always)] // likewise
pub(crate) fn fill_ack(config: &Config, now: Time, ack: Ack, slot: &mut Packet) {
    slot.dst = ack.peer;
    slot.path = ack.path;
    slot.flags = Flags::CONTROL;
    slot.span = Span { msg: ack.msg, offset: 0, len: 0 };
    let opens = ack.control.has(Control::SYN);
    if config.ecn && !opens || handshake::may_be_marked(config) {
        slot.flags.set(Flags::ECT);
    }
    // At most 36 bytes; Config::check has added them.
    slot.wire_len = config.ack_bytes + ack.sack.option_bytes() as u16;
    let (dst_port, src_port) = ports(ack.conn);
    let Ack { control, sack, window, stamp, number: ack, .. } = ack;
    let seq = if opens { handshake::seq(config) } else { config.isn };
    let timestamps = times(config, now, stamp);
    write(Repr { src_port, dst_port, seq, ack, control, window, sack, timestamps }, slot);
}

/// What a packet says about time, where that is asked for.
fn times(config: &Config, now: Time, echo: u32) -> Option<Timestamps> {
    config.has_timestamps().then(|| Timestamps { value: timestamps::stamp(now), echo })
}

fn write(header: Repr, slot: &mut Packet) {
    let written = header.emit(&mut slot.hdr);
    debug_assert!(written.is_ok(), "a packet has room for a TCP header");
    slot.hdr_len = header.buffer_len() as u8;
}
