//! NDP: receiver-driven transport over switches that trim packets.
//!
//! Handley, Raiciu, Agache, Voinescu, Moore, Antichi, Wójcik: "Re-architecting datacenter networks
//! and stacks for low latency and high performance", SIGCOMM 2017. Rules are cited by the sections
//! of the specification `ndp.md`, which says for each whether it comes from the paper or from the
//! authors' code. Departures from both are listed in `ndp.deviations.toml`.
//!
//! In one paragraph: a sender pushes its first window at line rate (`flow`, `sender`), over all
//! paths in turn (`paths`). Switches cut the payload off what they cannot hold, so the receiver
//! hears of every packet and answers each at once with an ACK or a NACK (`receiver`). Each answer
//! is owed one PULL; PULLs leave the receiver at the pace at which its link can take full packets
//! (`pull`), and each lets a sender send one packet: first what was lost, then what is new.
//!
//! What a host sends first: ACKs, NACKs and PULLs in the order in which they arose; then data, in
//! the order in which the right to send it arose. A first window therefore goes out as one burst,
//! behind those submitted before it.
//!
//! Messages of one non-zero channel are serialised by the sender: the next starts when the one
//! before has been acknowledged. That costs one round trip without data between two messages of a
//! channel, and nothing on the wire.

mod config;
mod flow;
mod paths;
mod pull;
mod received;
mod receiver;
mod sender;
mod slab;
mod time_wait;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use endpoint::{
    Cx, Endpoint, Flags, Framing, Msg, MsgId, MsgKey, Packet, Span, Stat, Submit, TimerId, Tx,
    TxPort,
};
use units::HostId;
use wire::ndp::{self, Header, Kind, Repr};

pub use config::{Config, ConfigError, Discipline, PathStrategy};

use receiver::Receiver;
use sender::Sender;
use slab::SlotRef;

const PULL_TIMER: TimerId = TimerId(0);
const RTO_TIMER: TimerId = TimerId(1);
const LINGER_TIMER: TimerId = TimerId(2);

/// NDP on one host.
///
/// All packets are of class 0: switches tell data from control by [`Flags`]. Several interfaces
/// share one pull queue, paced for the first of them.
#[derive(Debug)]
pub struct Ndp {
    config: Config,
    sender: Sender,
    receiver: Receiver,
    out: Outbox,
}

impl Ndp {
    /// An idle host.
    ///
    /// # Errors
    /// If `config` contradicts itself, see [`Config::check`].
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            sender: Sender::new(RTO_TIMER),
            receiver: Receiver::new(PULL_TIMER, LINGER_TIMER),
            out: Outbox::default(),
        })
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
    id: MsgId,
    kind: Kind,
    path: u32,
    /// A PULL is only worth sending while its message is still being received.
    pull_of: Option<SlotRef>,
    /// Payload bytes of the packet that is answered.
    len: u16,
}

/// Control packets that wait for the interface, oldest first.
#[derive(Debug, Default)]
struct Outbox(VecDeque<Control>);

impl Outbox {
    fn push(&mut self, config: &Config, control: Control) {
        if self.0.len() < config.control_queue as usize {
            self.0.push_back(control);
        }
    }

    /// The oldest one that still means something. A message that is complete has no PULL any more
    /// (ndp.md invariant I9).
    fn pop(&mut self, receiver: &Receiver) -> Option<Control> {
        loop {
            let control = self.0.pop_front()?;
            if control.pull_of.is_none_or(|at| receiver.is_open(at)) {
                return Some(control);
            }
        }
    }
}

/// Write the NDP header of a packet.
fn emit(slot: &mut Packet, repr: Repr) {
    slot.proto = ndp::PROTOCOL;
    slot.hdr_len = ndp::LEN as u8;
    if let Ok(mut header) = Header::new(&mut slot.hdr[..]) {
        repr.emit(&mut header);
    }
}

/// Write a control packet.
fn fill(me: HostId, config: &Config, control: &Control, slot: &mut Packet) {
    let offset = match control.kind {
        Kind::Ack(f) | Kind::Nack(f) => u64::from(f.seq) * u64::from(config.payload),
        _ => 0,
    };
    slot.src = me;
    slot.dst = control.to;
    slot.path = control.path;
    slot.wire_len = config.control;
    slot.flags = Flags::CONTROL;
    slot.span = Span { msg: control.id, offset, len: u32::from(control.len) };
    emit(slot, Repr { connection: control.id.0, kind: control.kind });
}

/// Whether the header and the environment's span speak of the same bytes. On a real network a peer
/// may say anything.
fn describes(config: &Config, data: &ndp::Data, connection: u64, pkt: &Packet) -> bool {
    let offset = data.seq.wrapping_mul(u32::from(config.payload));
    pkt.span.msg.0 == connection
        && pkt.span.len == u32::from(data.len)
        && pkt.span.offset as u32 == offset
}

impl Endpoint for Ndp {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.sender.submit(cx, &self.config, msg)
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let Ok(repr) = Header::new(pkt.header()).and_then(|header| Repr::parse(&header)) else {
            cx.fx.count(Stat::Rejected);
            return;
        };
        let config = &self.config;
        let from = (pkt.src, MsgId(repr.connection));
        match repr.kind {
            Kind::Data(data) if pkt.flags.has(Flags::BOUNCED) => {
                self.sender.on_bounce(cx, config, from, data.seq);
            }
            Kind::Data(data) if !describes(config, &data, repr.connection, pkt) => {
                cx.fx.count(Stat::Rejected);
            }
            Kind::Data(data) => {
                let key = MsgKey { src: from.0, id: from.1 };
                let trimmed = pkt.flags.has(Flags::TRIMMED);
                self.receiver.on_data(cx, config, key, &data, trimmed, &mut self.out);
            }
            // A control packet that came back is of no use (section 3.2, note d).
            _ if pkt.flags.has(Flags::BOUNCED) => {}
            Kind::Ack(feedback) => self.sender.on_feedback(cx, config, from, feedback, true),
            Kind::Nack(feedback) => self.sender.on_feedback(cx, config, from, feedback, false),
            Kind::Pull { pull, cumulative, .. } => {
                self.sender.on_pull(cx, config, from, pull, cumulative);
            }
            Kind::Keepalive => {}
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        match id {
            PULL_TIMER => self.receiver.on_pull_timer(cx, &self.config, &mut self.out),
            RTO_TIMER => self.sender.on_timer(cx, &self.config),
            LINGER_TIMER => self.receiver.on_linger_timer(cx, &self.config),
            _ => {}
        }
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        if port.open & 1 == 0 {
            return Tx::Idle;
        }
        if let Some(control) = self.out.pop(&self.receiver) {
            fill(cx.me, &self.config, &control, slot);
            return Tx::Sent;
        }
        if self.sender.poll(cx, &self.config, slot) { Tx::Sent } else { Tx::Idle }
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.sender.cancel(cx, &self.config, id);
    }
}
