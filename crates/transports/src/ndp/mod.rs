//! NDP: receiver-driven transport over switches that trim packets.
//!
//! Handley, Raiciu, Agache, Voinescu, Moore, Antichi, Wójcik: "Re-architecting datacenter networks
//! and stacks for low latency and high performance", SIGCOMM 2017. Rules are cited by the sections
//! of `specs/ndp.md`, which says for each whether it comes from the paper or from the
//! authors' code. Departures from both are listed in `ndp.deviations.toml`.
//!
//! In one paragraph: a sender pushes its first window at line rate (`flow`, `sender`), over all
//! paths in turn (`paths`), except those that do much worse than the others (`scoreboard`).
//! Switches cut the payload off what they cannot hold, so the receiver gets the header of every
//! packet and answers each at once with an ACK or a NACK (`receiver`). Each answer is owed one
//! PULL; PULLs leave the receiver at the pace at which its link can take full packets (`pull`), and
//! each lets a sender send one packet: first what was lost, then what is new.
//!
//! What a host sends first: ACKs, NACKs and PULLs in the order in which they arose; then data, in
//! the order in which the right to send it arose. A first window therefore goes out as one burst,
//! behind those submitted before it.
//!
//! Messages of one non-zero channel go one after the other, as on a connection that is kept: when
//! all of one has been sent, the next starts behind it, but for its last packet. That leaves when
//! the one before has been acknowledged, so that no message is delivered before it.

mod config;
mod flow;
mod index;
pub(crate) mod paths;
mod pull;
mod receiver;
mod scoreboard;
mod sender;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use endpoint::{
    Cx, Endpoint, Flags, FlowState, Framing, Msg, MsgId, MsgKey, Packet, Span, Stat, Submit,
    TimerId, Tx, TxPort,
};
use units::HostId;
use wire::ndp::{self, Data, Feedback, Header, Type};

pub use config::{Config, Discipline, PathStrategy, ScoreboardRule};

use crate::config::ConfigError;
use crate::slab::SlotRef;
use receiver::Receiver;
use sender::Sender;

const PULL_TIMER: TimerId = TimerId(0);
const RTO_TIMER: TimerId = TimerId(1);
const LINGER_TIMER: TimerId = TimerId(2);

/// NDP on one host.
///
/// All packets are of class 0: switches tell data from control by [`Flags`]. Several interfaces
/// share one pull queue, paced for the first of them.
#[derive(Debug)]
pub struct Ndp {
    /// Shared by hosts.
    config: Arc<Config>,
    sender: Sender,
    receiver: Receiver,
    out: Outbox,
}

impl Ndp {
    /// An idle host.
    ///
    /// # Errors
    /// If `config` contradicts itself, see [`Config::check`].
    pub fn new(config: impl Into<Arc<Config>>) -> Result<Self, ConfigError> {
        let config = config.into();
        config.check()?;
        Ok(Self {
            out: Outbox::new(config.control_queue as usize),
            config,
            sender: Sender::new(RTO_TIMER),
            receiver: Receiver::new(PULL_TIMER, LINGER_TIMER),
        })
    }

    /// A table with few places is one of a NIC, which does not know what is over: its size decides
    /// what it forgets.
    fn forgets_by_size(&self) -> bool {
        self.config.time_wait_entries < u32::MAX
    }

    /// How a message is cut into packets.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.config.framing()
    }
}

/// An ACK, NACK or PULL that waits for the interface.
#[derive(Debug)]
struct Control {
    to: HostId,
    path: u32,
    /// The payload that is answered; empty for a PULL.
    span: Span,
    header: [u8; ndp::LEN],
    /// A PULL: the message. It is only worth sending while that is still being received.
    pull_of: Option<SlotRef>,
}

/// Those that wait.
type Outbox = crate::outbox::Outbox<Control>;

/// Write the NDP header of a packet.
#[inline]
fn put_header(slot: &mut Packet, header: [u8; ndp::LEN]) {
    slot.proto = ndp::PROTOCOL;
    slot.put_header(&header);
}

/// Write a control packet.
fn fill(me: HostId, config: &Config, control: &Control, slot: &mut Packet) {
    slot.src = me;
    slot.dst = control.to;
    slot.path = control.path;
    slot.wire_len = config.control;
    slot.flags = Flags::CONTROL;
    slot.span = control.span;
    put_header(slot, control.header);
}

/// Whether the header and the environment's span speak of the same bytes. On a real network a peer
/// may say anything: also that data is a control packet, which environments let through without its
/// payload.
fn describes(config: &Config, header: Header<&[u8]>, pkt: &Packet) -> bool {
    let data = Data::parse(&header);
    let offset = data.seq.wrapping_mul(u32::from(config.payload));
    !pkt.flags.has(Flags::CONTROL)
        && pkt.span.msg.0 == header.connection()
        && pkt.span.len == u32::from(data.len)
        && pkt.span.offset as u32 == offset
}

/// One function for each type of packet, none of them part of another: each keeps its own values in
/// registers.
impl Ndp {
    #[inline(never)]
    fn on_data(&mut self, cx: &mut Cx<'_>, pkt: &Packet, header: Header<&[u8]>) {
        if !describes(&self.config, header, pkt) {
            reject(cx);
            return;
        }
        let (key, trimmed) = (key(pkt, header), pkt.flags.has(Flags::TRIMMED));
        self.receiver.on_data(cx, &self.config, key, header, trimmed, &mut self.out);
    }

    #[inline(never)]
    fn on_feedback(&mut self, cx: &mut Cx<'_>, pkt: &Packet, header: Header<&[u8]>, is_ack: bool) {
        let feedback = Feedback::parse(&header);
        self.sender.on_feedback(cx, &self.config, key(pkt, header), feedback, is_ack);
    }

    #[inline(never)]
    fn on_pull(&mut self, cx: &mut Cx<'_>, pkt: &Packet, header: Header<&[u8]>) {
        let (pull, cumulative) = (header.number(), header.extension());
        self.sender.on_pull(cx, &self.config, key(pkt, header), pull, cumulative);
    }

    #[inline(never)]
    fn on_bounce(&mut self, cx: &mut Cx<'_>, pkt: &Packet, header: Header<&[u8]>) {
        match header.packet_type() {
            Ok(Type::Data) => {
                self.sender.on_bounce(cx, &self.config, key(pkt, header), header.number());
            }
            // A control packet that came back is of no use (specs/ndp.md#3.2, note d).
            Ok(_) => {}
            Err(_) => reject(cx),
        }
    }
}

/// The message that `pkt` is about, if its sender is who sent `pkt`.
fn key(pkt: &Packet, header: Header<&[u8]>) -> MsgKey {
    MsgKey { src: pkt.src, id: MsgId(header.connection()) }
}

/// A packet means nothing here.
#[cold]
fn reject(cx: &mut Cx<'_>) {
    cx.fx.count(Stat::Rejected);
}

impl Endpoint for Ndp {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.sender.submit(cx, &self.config, msg)
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let Ok(header) = Header::new(pkt.header()) else {
            reject(cx);
            return;
        };
        if pkt.flags.has(Flags::BOUNCED) {
            self.on_bounce(cx, pkt, header);
            return;
        }
        match header.packet_type() {
            Ok(Type::Data) => self.on_data(cx, pkt, header),
            Ok(Type::Ack) => self.on_feedback(cx, pkt, header, true),
            Ok(Type::Nack) => self.on_feedback(cx, pkt, header, false),
            Ok(Type::Pull) => self.on_pull(cx, pkt, header),
            Ok(Type::Keepalive) => {}
            Err(_) => reject(cx),
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        match id {
            PULL_TIMER => self.receiver.on_pull_timer(cx, &self.config, &mut self.out),
            RTO_TIMER => self.sender.on_timer(cx, &self.config),
            LINGER_TIMER => self.receiver.on_linger_timer(cx, &self.config, &mut self.out),
            _ => {}
        }
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        if port.open & 1 == 0 {
            return Tx::Idle;
        }
        match self.out.pop() {
            Some(control) => {
                fill(cx.me, &self.config, &control, slot);
                Tx::Sent
            }
            None => self.sender.poll(cx, &self.config, slot),
        }
    }

    fn on_over(&mut self, me: HostId, key: MsgKey) {
        if self.forgets_by_size() {
            return;
        }
        match key.src == me {
            true => self.sender.forget(key.id),
            false => self.receiver.forget(key),
        }
    }

    fn on_over_below(&mut self, host: HostId, oldest: MsgId) {
        if !self.forgets_by_size() {
            self.receiver.over_below(host, oldest);
        }
    }

    fn on_restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        self.receiver.restart(cx, host, &mut self.out);
    }

    fn unsent(&self, id: MsgId) -> Option<u64> {
        self.sender.unsent(&self.config, id)
    }

    fn shorten(&mut self, id: MsgId, bytes: u64) -> u64 {
        self.sender.shorten(&self.config, id, bytes)
    }

    fn flow_state(&self, id: MsgId) -> Option<FlowState> {
        self.sender.state(&self.config, id)
    }

    fn prefetch(&self, step: u8) {
        if step == 0
            && let Some(control) = self.out.front()
        {
            endpoint::prefetch::item(control);
        }
        self.sender.prefetch(step);
        self.receiver.prefetch(step);
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.sender.cancel(cx, &self.config, id);
    }
}
