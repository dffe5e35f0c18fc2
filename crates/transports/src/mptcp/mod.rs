//! Multipath TCP and its family as one host's transport: MPTCP (RFC 8684; congestion control: RFC
//! 6356 and others), MMPTCP (Kheirkhah, Wakeman, Parisis, INFOCOM 2016) and packet scatter alone,
//! by specs/mptcp.md. Departures are listed in `mptcp.deviations.toml` beside this
//! directory.
//!
//! # Connections and subflows
//!
//! A subflow is a connection of [`crate::tcp`]: a sequence space, a window, a loss recovery and a
//! timer of its own, and ports of its own, which switches hash to a path. What it sends are pieces
//! of the connection's data, a segment each (`mappings.rs`), which has data sequence numbers of its
//! own. The receiver acknowledges subflows as TCP does, and in each acknowledgement (DATA_ACK) all
//! data before which nothing is missing. So a loss is repaired where it happened, while the others
//! go on.
//!
//! ```text
//!  messages ──► connection: data sequence numbers ──► scheduler ──► subflow 0: TCP sender ──► path a
//!                  ▲                                      └───────► subflow 1: TCP sender ──► path b
//!                  └── DATA_ACK ── receiver: by data sequence number ◄── TCP receiving halves ◄──┘
//! ```
//!
//! As in TCP, a message of channel zero has a connection of its own; the messages of another
//! channel to one host share one, in order. What is in the ports, in PSH, FIN, RST and URG, and
//! what starts and ends a connection, is as [`crate::tcp`] says; here FIN ends the data of all
//! subflows (DATA_FIN). Every packet names its connection and its subflow ([`wire::mptcp`]).
//!
//! # Phases
//!
//! MMPTCP begins with one subflow, each segment of which takes a path of its own; when enough has
//! been sent, it opens others and goes on as MPTCP (`phases.rs`).
//!
//! # Cost
//!
//! Per packet O(subflows), and O(log n) in what a subflow has outstanding; O(n) while something
//! waits to go over other subflows or the buffers are full. All deadlines of a kind share one timer
//! of the host.

mod blocked;
pub mod config;
mod connection;
pub(crate) mod coupling;
mod mappings;
mod phases;
mod receiver;
mod scheduler;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use endpoint::{Cx, Endpoint, FailReason, Flags, FlowState, Msg, Packet, Stat, Submit, Tx, TxPort};
use units::{HostId, MsgId, MsgKey, Time, TimerId};
use wire::mptcp::{Body, Signal};
use wire::tcp::{Control, PROTO, Repr, SACK_BLOCKS_MAX};

pub use config::{Config, Reinject, Scatter, ScatterThreshold, Scheduler, Switch, SwitchOn};
use connection::{Connection, State};
use receiver::{Ack, Receivers};

use crate::config::ConfigError;
use crate::connections::Connections;
use crate::deadlines::{Armed, Deadlines, Timer};
use crate::outbox::{CONTROL_MAX, Outbox};
use crate::tcp::sender::Identity;
use crate::tcp::stream::Segment;
use crate::tcp::{self, CONN_BITS, PATH, SENDER_PORT, conn_id, handshake};

/// One host's MPTCP.
#[derive(Debug)]
pub struct Mptcp {
    config: Config,
    /// By destination and token.
    connections: Connections<Connection, CONN_BITS>,
    /// Slots of the connections that have something to send, in turn.
    round: VecDeque<u32>,
    /// Retransmission timers and delayed joins, by [`Mptcp::deadline`].
    timeouts: Deadlines,
    receivers: Receivers,
    acks: Outbox<Ack>,
    /// Messages in flight.
    messages: u32,
    /// The timers of the host: for retransmissions and joins, and for delayed acknowledgements.
    armed: Armed<2>,
}

impl Mptcp {
    /// MPTCP by `config`.
    ///
    /// # Errors
    /// If `config` is impossible.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            connections: Connections::new(),
            round: VecDeque::new(),
            timeouts: Deadlines::new(),
            receivers: Receivers::default(),
            acks: Outbox::new(CONTROL_MAX),
            messages: 0,
            armed: Armed::NONE,
        })
    }

    /// The connection for a new message: that of its channel, or a new one.
    fn connection_for(&mut self, cx: &Cx<'_>, msg: &Msg) -> u32 {
        if let Some(slot) = self.connections.of_channel(msg.dst, msg.channel) {
            return slot;
        }
        let draw = cx.draw.part(u64::from(msg.dst.0));
        let token = self.connections.next_id(draw, msg.dst);
        // Consecutive ids for its subflows.
        let conn = token.wrapping_mul(self.config.subflows_max()) % (1 << CONN_BITS);
        let path = draw.bits(PATH, u64::from(conn)) as u32;
        let mss = self.mss(cx);
        let id = Identity { dst: msg.dst, conn, path, channel: msg.channel, mss };
        let new = || Connection::new(&self.config, id, token);
        let slot = self.connections.open((msg.dst, token), msg.channel, new);
        let connection = &mut self.connections[slot];
        connection.reopen(&self.config, id, token);
        if connection.open(&self.config, cx) {
            self.await_joins(slot);
        }
        slot
    }

    /// Largest payload of a segment here.
    fn mss(&self, cx: &Cx<'_>) -> u16 {
        let tcp = &self.config.tcp;
        tcp.mss.min(cx.net.mtu.saturating_sub(tcp.overhead).max(1))
    }

    /// Which of the deadlines is that of subflow `i` of the connection in `slot`.
    fn deadline(&self, slot: u32, i: usize) -> u32 {
        slot * self.config.subflows_max() + i as u32
    }

    /// Set the deadlines of the subflows that wait to join.
    fn await_joins(&mut self, slot: u32) {
        for (i, subflow) in self.connections[slot].subflows.iter().enumerate() {
            if let State::Waiting(until) = subflow.state {
                self.timeouts.set(slot * self.config.subflows_max() + i as u32, until);
            }
        }
    }

    /// Bring everything about the connection in `slot` in line with its state, after something has
    /// happened to subflow `i`: its turn, that one's timer, its end.
    fn settle(&mut self, now: Time, slot: u32, i: usize, timer: Timer) {
        let deadline = self.deadline(slot, i);
        let connection = &mut self.connections[slot];
        if connection.is_over() {
            self.close(slot);
            return;
        }
        if !connection.in_round && connection.can_send(&self.config) {
            connection.in_round = true;
            self.round.push_back(slot);
        }
        self.timeouts.follow(deadline, timer, now, || connection.timeout(&self.config, i));
    }

    fn close(&mut self, slot: u32) {
        // Its place in the round, if any, stays, as in TCP.
        for i in 0..self.connections[slot].subflows.len() {
            self.timeouts.set(self.deadline(slot, i), Time::NEVER);
        }
        let connection = &mut self.connections[slot];
        let Connection { id, token, .. } = *connection;
        // What its subflows hold is not needed any more.
        connection.subflows.clear();
        self.connections.close(slot, (id.dst, token), id.channel);
    }

    /// Let the host's timers stand at the earliest deadlines.
    fn arm_timers(&mut self, cx: &mut Cx<'_>) {
        let next = [self.timeouts.next(), self.receivers.deadlines.next()];
        self.armed.move_to(next, cx.fx);
    }

    fn on_data(&mut self, cx: &mut Cx<'_>, header: &Repr, signal: &Signal, pkt: &Packet) {
        let conn = conn_id(header.src_port, header.dst_port);
        let said = (header, signal);
        if header.control.has(Control::SYN) {
            let answer = self.receivers.on_syn(&self.config, cx.draw, conn, said, pkt);
            answer.into_iter().for_each(|ack| self.acks.push(ack));
            return;
        }
        if pkt.flags.has(Flags::CONTROL) {
            // Environments let it through without its payload, and a peer may say anything.
            return cx.fx.count(Stat::Rejected);
        }
        let acks = self.receivers.on_data(&self.config, cx, conn, said, pkt);
        acks.into_iter().flatten().for_each(|ack| self.acks.push(ack));
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, header: &Repr, signal: &Signal, pkt: &Packet) {
        let Some(slot) = self.connections.find((pkt.src, signal.token)) else {
            return; // of a connection that is over
        };
        let connection = &mut self.connections[slot];
        let i = usize::from(signal.subflow);
        let Some(subflow) = connection.subflows.get_mut(i).filter(|s| s.state == State::Live)
        else {
            return; // of a subflow that has failed, or that was never opened
        };
        let tcp = &self.config.tcp;
        let joins;
        let timer = if header.control.has(Control::SYN) {
            let echo = header.timestamps.map_or(0, |times| times.echo);
            let opening = !subflow.sender.is_open();
            let measures = self.config.handshake_sample;
            let timer = subflow.sender.on_syn_ack(tcp, cx.now, echo, measures);
            joins = opening && connection.on_open(&self.config, cx, i);
            timer
        } else {
            let mut blocks = [(0, 0); SACK_BLOCKS_MAX];
            let una = subflow.sender.una();
            let Some(incoming) = tcp::incoming(tcp, header, una, &mut blocks) else { return };
            let Body::DataAck(data_ack) = signal.body else { return };
            let window = self.config.window(header.window);
            let open = connection.open_messages();
            let heard = (&incoming, data_ack, window);
            let timer = connection.on_ack(&self.config, cx.now, i, heard, cx.fx);
            self.messages -= open - connection.open_messages();
            joins = connection.may_switch(&self.config, cx);
            timer
        };
        if joins {
            self.await_joins(slot);
        }
        self.settle(cx.now, slot, i, timer);
    }

    /// The deadline of subflow `i` of the connection in `slot` has come.
    fn on_deadline(&mut self, cx: &mut Cx<'_>, slot: u32, i: usize) {
        let connection = &mut self.connections[slot];
        let Some(subflow) = connection.subflows.get(i) else { return };
        let joins = subflow.state != State::Live;
        if connection.on_timeout(&self.config, cx.now, i, cx.fx) {
            let subflow = &mut connection.subflows[i];
            subflow.sender.spread_timeout(&self.config.tcp, cx.draw);
            // A SYN starts the timer when it is sent.
            self.settle(cx.now, slot, i, if joins { Timer::Keep } else { Timer::Restart });
        } else if connection.is_alive() {
            self.settle(cx.now, slot, i, Timer::Stop);
        } else {
            self.messages -= connection.open_messages();
            connection.give_up(cx.me, cx.fx);
            self.close(slot);
        }
    }

    /// The next data packet, from the connection whose turn it is.
    fn send_data(&mut self, cx: &mut Cx<'_>, slot: &mut Packet) -> bool {
        while let Some(turn) = self.round.pop_front() {
            let connection = &mut self.connections[turn];
            connection.in_round = false;
            let Some((i, segment, dsn)) = connection.next_segment(&self.config, cx.now) else {
                continue;
            };
            fill(&self.config, cx, connection, i, segment, dsn, slot);
            if segment.again {
                cx.fx.count_for(Stat::Retransmission, segment.msg);
            }
            let started = self.timeouts.is_set(self.deadline(turn, i));
            self.settle(cx.now, turn, i, if started { Timer::Keep } else { Timer::Restart });
            return true;
        }
        false
    }
}

impl Endpoint for Mptcp {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        if self.messages >= self.config.tcp.max_messages {
            return Submit::Full;
        }
        self.messages += 1;
        let slot = self.connection_for(cx, msg);
        self.connections[slot].submit(msg.id, msg.len);
        self.settle(cx.now, slot, 0, Timer::Keep);
        self.arm_timers(cx);
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        // A trimmed segment fails its checksum, and a bounced one belongs to no connection.
        let damaged = pkt.flags.has(Flags::TRIMMED) || pkt.flags.has(Flags::BOUNCED);
        let said = Repr::parse(pkt.header()).ok().zip(Signal::parse(pkt.header()).ok());
        match said.filter(|_| pkt.proto == PROTO && !damaged) {
            Some((header, signal)) => {
                let from_sender = header.src_port & SENDER_PORT != 0;
                let to_sender = header.dst_port & SENDER_PORT != 0;
                match (from_sender, to_sender) {
                    (true, false) => self.on_data(cx, &header, &signal, pkt),
                    (false, true) => self.on_ack(cx, &header, &signal, pkt),
                    _ => cx.fx.count(Stat::Rejected),
                }
            }
            None => cx.fx.count(Stat::Rejected),
        }
        self.arm_timers(cx);
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        self.armed.fired(id);
        while let Some(deadline) = self.timeouts.pop(cx.now) {
            let max = self.config.subflows_max();
            self.on_deadline(cx, deadline / max, (deadline % max) as usize);
        }
        while let Some(ack) = self.receivers.pop_delayed(&self.config, cx.now) {
            self.acks.push(ack);
        }
        self.arm_timers(cx);
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        if !port.opens(self.config.tcp.class) {
            return Tx::Idle;
        }
        slot.src = cx.me;
        slot.proto = PROTO;
        slot.class = self.config.tcp.class;
        if let Some(ack) = self.acks.pop() {
            tcp::fill_ack(&self.config.tcp, cx.now, ack.tcp, slot);
            append(&ack.signal, slot);
            return Tx::Sent;
        }
        let sent = self.send_data(cx, slot);
        self.arm_timers(cx);
        if sent { Tx::Sent } else { Tx::Idle }
    }

    fn on_restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        self.receivers.restart(host);
        self.arm_timers(cx);
    }

    fn flow_state(&self, id: MsgId) -> Option<FlowState> {
        let mut connections = self.connections.slots().map(|slot| &self.connections[slot]);
        connections.find_map(|connection| connection.state(&self.config, id))
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        // Rare, so a walk over all connections is cheaper than an index kept for every message.
        for slot in self.connections.slots() {
            if self.connections[slot].cancel(id) {
                self.messages -= 1;
                cx.fx.failed(MsgKey { src: cx.me, id }, FailReason::Cancelled);
                self.settle(cx.now, slot, 0, Timer::Keep);
                break;
            }
        }
        self.arm_timers(cx);
    }
}

/// Put `segment` of subflow `i` on the wire: a SYN, or data from `dsn` on.
fn fill(
    config: &Config,
    cx: &Cx<'_>,
    connection: &mut Connection,
    i: usize,
    segment: Segment,
    dsn: u64,
    slot: &mut Packet,
) {
    let id = connection.subflows[i].sender.id;
    let (token, subflow) = (connection.token, i as u8);
    if segment.control.has(Control::SYN) {
        handshake::fill_syn(&config.tcp, cx.now, &id, segment, slot);
        let body = if i == 0 { Body::Capable } else { Body::Join };
        append(&Signal { token, subflow, scattered: false, body }, slot);
        return;
    }
    // Fits: as long as the payload, or 1.
    let len = segment.space() as u16;
    tcp::fill_data(&config.tcp, cx.now, &id, segment, slot);
    let (path, scattered) = connection.next_path(cx.draw, i);
    slot.path = path;
    append(&Signal { token, subflow, scattered, body: Body::Data { dsn, len } }, slot);
}

/// Add what the packet says of its connection to its TCP header.
fn append(signal: &Signal, slot: &mut Packet) {
    match signal.append(&mut slot.hdr) {
        Ok(len) => slot.hdr_len = len as u8,
        Err(why) => {
            debug_assert!(false, "Config::check has seen to it that all options fit: {why}");
        }
    }
}
