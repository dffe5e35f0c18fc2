//! Ultra Ethernet: a window at the sender, credit of the receiver, or both, over switches that trim
//! and mark, and a path for each packet.
//!
//! Ultra Ethernet Specification 1.0, 2025, section 3.6: NSCC, the sender's congestion control,
//! RCCC, the receiver's, and spraying by entropy values, by specs/uet.md. Rules and constants are
//! those of the public simulator. Departures are listed in `uet.deviations.toml`.
//!
//! A message is a connection of its own. It begins with a window of one and a half bandwidth-delay
//! products (`nscc`), and each of its packets takes the path of an entropy value
//! (`crate::entropy`).
//! The receiver counts bytes and acknowledges several packets at once, marked ones by themselves,
//! and answers each trimmed packet with a NACK (`receiver`). Where it gives credit, one pacer for
//! the host does (`pacer`), and a sender needs credit as well (`credit`). What is lost without a
//! word is found by a timer (`flow`).
//!
//! Messages of one non-zero channel share a connection where connections are kept: packets count
//! through them, and window, credit and entropy values last (`pieces`). Elsewhere the sender
//! serialises them: the next starts when the one before has been acknowledged.

mod config;
mod credit;
mod eqds;
mod flow;
mod hold_back;
mod nscc;
mod oversubscription;
mod pacer;
mod pieces;
mod receiver;
mod sender;
mod sleek;
#[cfg(test)]
mod tests;

use endpoint::{
    Cx, Endpoint, Flags, FlowState, Msg, MsgId, MsgKey, Packet, Span, Stat, Submit, TimerId, Tx,
    TxPort,
};
use units::HostId;
use wire::uet::{Kind, PROTO, Repr};

use crate::config::ConfigError;
use crate::incoming::describes;
use crate::outbox::CONTROL_MAX;

pub use config::{
    Config, CreditRule, EQDS_RTO_BASE, Network, Paths, Profile, RTO_BASE, RTO_DOUBLINGS_MAX,
    WindowControl,
};
pub use nscc::Derived;

use receiver::{Arrival, Receiver, Request};
use sender::Sender;

const RTO_TIMER: TimerId = TimerId(0);
const LINGER_TIMER: TimerId = TimerId(1);
const CREDIT_TIMER: TimerId = TimerId(2);
const OVERSUBSCRIPTION_TIMER: TimerId = TimerId(3);

/// Ultra Ethernet on one host.
#[derive(Debug)]
pub struct Uet {
    config: Config,
    sender: Sender,
    receiver: Receiver,
    out: Outbox,
    /// Packets sent while both data and control waited, in a round of one of data.
    turn: u8,
}

impl Uet {
    /// An idle host.
    ///
    /// # Errors
    /// If `config` contradicts itself, see [`Config::check`].
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            sender: Sender::new(config, RTO_TIMER),
            receiver: Receiver::new(config),
            out: Outbox::new(CONTROL_MAX),
            turn: 0,
            config,
        })
    }

    /// Whether it is the turn of data although control waits.
    fn data_first(&mut self) -> bool {
        let both = self.out.front().is_some() && self.sender.waits();
        both && turn_of_data(&mut self.turn, self.config.control_weight)
    }
}

/// While both wait: so many control packets, then one of data.
fn turn_of_data(turn: &mut u8, control_weight: u8) -> bool {
    *turn = if *turn >= control_weight { 0 } else { *turn + 1 };
    *turn == 0
}

/// A control packet, and those that wait.
type Control = crate::outbox::Control<Repr>;
type Outbox = crate::outbox::Outbox<Control>;

/// Write the header of a packet.
fn put_header(slot: &mut Packet, header: Repr) {
    slot.proto = PROTO;
    if let Kind::Probe { .. } = header.kind {
        // It waits where packets with payload do.
        slot.flags = Flags::ECT;
    }
    slot.put_header(&header.to_bytes());
}

/// What tells host `to` of message `id`, on a path of the message's own.
fn control(cx: &Cx<'_>, config: &Config, to: HostId, id: MsgId, kind: Kind) -> Control {
    let path = path(config, cx, to, id.0 as u16);
    let span = Span { msg: id, offset: 0, len: 0 };
    Control { to, path, span, header: Repr { message: id.0, kind } }
}

/// What `Packet::path` is for this EV. Of paths that hosts know to be broken the next that works is
/// taken.
fn path(config: &Config, cx: &Cx<'_>, to: HostId, entropy: u16) -> u32 {
    if config.paths == Paths::Hashed {
        return u32::from(entropy);
    }
    cx.net.path_from(to, u32::from(entropy) % cx.net.paths(to))
}

impl Endpoint for Uet {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.sender.submit(cx, msg);
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let Self { config, sender, receiver, out, .. } = self;
        // Its switches do not bounce.
        let bounced = pkt.flags.has(Flags::BOUNCED);
        let header = Repr::parse(pkt.header());
        let (Ok(Repr { message, kind }), PROTO, false) = (header, pkt.proto, bounced) else {
            cx.fx.count(Stat::Rejected);
            return;
        };
        let key = MsgKey { src: pkt.src, id: MsgId(message) };
        match kind {
            Kind::Request { entropy, psn, size, len, ack_request, repeated, kept, target } => {
                let (msg, index) = (pkt.span.msg, pkt.span.offset / u64::from(config.payload));
                let of = if kept { msg.0 } else { message };
                let seq = if kept { u64::from(psn) } else { index };
                let known = seq as u32 == psn && (!kept || config.keep_connections.is_some());
                if !known || !describes(config.framing(), pkt, of, index, len) {
                    cx.fx.count(Stat::Rejected);
                    return;
                }
                let marked = pkt.flags.has(Flags::CE);
                let last_hop = pkt.flags.has(Flags::LAST_HOP);
                let trimmed = pkt.flags.has(Flags::TRIMMED);
                let how = if trimmed { Arrival::Trimmed { last_hop } } else { Arrival::Whole };
                let request = Request {
                    seq,
                    msg,
                    index,
                    kept,
                    entropy,
                    size,
                    len,
                    ack_request,
                    repeated,
                    marked,
                    target,
                };
                receiver.on_request(cx, key, request, how, out);
            }
            Kind::Ack { entropy, psn, ack } => sender.on_ack(cx, key, (psn, entropy), &ack),
            Kind::Nack { entropy, psn, marked, last_hop } => {
                sender.on_nack(cx, key, (psn, entropy), (marked, last_hop));
            }
            Kind::Probe { entropy, number } => {
                // Cut off, it says nothing of the queues on its way.
                if !pkt.flags.has(Flags::TRIMMED) {
                    receiver.on_probe(cx, key, (entropy, number), pkt.flags.has(Flags::CE), out);
                }
            }
            Kind::Close => receiver.on_close(cx, key),
            Kind::Credit { given } => sender.on_credit(cx, key, given),
            Kind::CreditRequest { size, kept, target } => {
                receiver.on_credit_request(cx, key, (size, kept, target), out);
            }
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        let Self { sender, receiver, out, .. } = self;
        match id {
            RTO_TIMER => sender.on_timer(cx, out),
            LINGER_TIMER => receiver.on_linger_timer(cx),
            CREDIT_TIMER => receiver.give_credit(cx, out),
            OVERSUBSCRIPTION_TIMER => receiver.on_oversubscription_timer(cx),
            _ => {}
        }
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        if !port.opens(self.config.class) {
            return Tx::Idle;
        }
        slot.src = cx.me;
        slot.class = self.config.class;
        if self.data_first() && self.sender.poll(cx, slot) {
            return Tx::Sent;
        }
        let Self { config, sender, out, .. } = self;
        out.poll(slot, config.control_size, put_header, |slot| sender.poll(cx, slot))
    }

    fn unsent(&self, id: MsgId) -> Option<u64> {
        self.sender.unsent(id)
    }

    fn shorten(&mut self, id: MsgId, bytes: u64) -> u64 {
        self.sender.shorten(id, bytes)
    }

    fn on_shortened(&mut self, key: MsgKey, bytes: u64) {
        self.receiver.on_shortened(key, bytes);
    }

    fn flow_state(&self, id: MsgId) -> Option<FlowState> {
        self.sender.state(id)
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.sender.cancel(cx, id, &mut self.out);
    }

    fn on_over_below(&mut self, host: HostId, oldest: MsgId) {
        self.receiver.over_below(host, oldest);
    }

    fn on_restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        self.receiver.restart(cx, host);
    }
}
