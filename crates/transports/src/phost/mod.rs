//! pHost: receivers hand out tokens, one for each packet that their link can take, to the message
//! with the fewest packets left; switches only have to spray.
//!
//! P. X. Gao, A. Narayan, G. Kumar, R. Agarwal, S. Ratnasamy, S. Shenker: "pHost: Distributed
//! Near-Optimal Datacenter Transport Over Commodity Network Fabric", CoNEXT 2015; by
//! specs/ndp.md#11 and the authors' public simulator (`NetSys/simulator`, "R2" below). A baseline
//! of the NDP paper, which names what it changed (P). Departures are listed in
//! `phost.deviations.toml`.
//!
//! A sender announces a message with a REQ and gives itself some tokens at once (`sender`). Each
//! MTU time the receiver gives one token, for one packet by name (`receiver`). A token not used at
//! once expires: the receiver's link is then idle for a packet, but the sender's is not blocked by
//! it. The sender serves the tokens it holds shortest message first. Nothing tells of a loss: a
//! message with as many tokens as packets is put aside for a while, and then what is missing is
//! given tokens again.
//!
//! Control packets go before data. Messages of one non-zero channel are serialised by the sender:
//! the next starts when the one before has been acknowledged.

mod config;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use endpoint::{Cx, Endpoint, Flags, Msg, MsgId, Packet, Span, Stat, Submit, TimerId, Tx, TxPort};
use units::HostId;
use wire::phost::{Kind, PROTO, Repr};

pub use config::{Classes, Config, FreeTokens, PathStrategy};

use crate::config::ConfigError;
use crate::incoming::describes;
use crate::outbox::CONTROL_MAX;

use receiver::{Receiver, key};
use sender::Sender;

const TOKEN_TIMER: TimerId = TimerId(0);
const REQUEST_TIMER: TimerId = TimerId(1);
const LINGER_TIMER: TimerId = TimerId(2);

/// pHost on one host.
#[derive(Debug)]
pub struct PHost {
    config: Config,
    sender: Sender,
    receiver: Receiver,
    out: Outbox,
}

impl PHost {
    /// An idle host.
    ///
    /// # Errors
    /// If `config` contradicts itself, see [`Config::check`].
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            sender: Sender::new(config, REQUEST_TIMER),
            receiver: Receiver::new(config, TOKEN_TIMER, LINGER_TIMER),
            out: Outbox::new(CONTROL_MAX),
        })
    }
}

/// A control packet, and those that wait.
type Control = crate::outbox::Control<Repr>;
type Outbox = crate::outbox::Outbox<Control>;

/// What tells host `to` of message `id`.
fn control(to: HostId, path: u32, id: MsgId, kind: Kind) -> Control {
    let span = Span { msg: id, ..Span::default() };
    Control { to, path, span, header: Repr { message: id.0, kind } }
}

/// Write the pHost header of a packet.
fn put_header(slot: &mut Packet, header: Repr) {
    slot.proto = PROTO;
    slot.put_header(&header.to_bytes());
}

impl Endpoint for PHost {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.sender.submit(cx, msg, &mut self.out);
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        let Self { config, sender, receiver, out } = self;
        // Its switches neither trim nor bounce: elsewhere, a trimmed packet is a lost one.
        let damaged = pkt.flags.has(Flags::TRIMMED) || pkt.flags.has(Flags::BOUNCED);
        let header = Repr::parse(pkt.header());
        let (Ok(Repr { message, kind }), PROTO, false) = (header, pkt.proto, damaged) else {
            cx.fx.count(Stat::Rejected);
            return;
        };
        let key = key(pkt.src, message);
        match kind {
            Kind::Req { size, free } => receiver.on_req(cx, key, (size, free), out),
            Kind::Data { number, seq, size, len }
                if describes(config.framing(), pkt, message, seq, len) =>
            {
                receiver.on_data(cx, key, (number, seq, size, len), out);
            }
            Kind::Data { .. } => cx.fx.count(Stat::Rejected),
            Kind::End => receiver.on_end(cx, key),
            Kind::Token { number, seq, missing } => {
                sender.on_token(cx, pkt.src, MsgId(message), (number, seq, missing), out);
            }
            Kind::Ack => sender.on_ack(cx, pkt.src, MsgId(message), out),
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        let Self { sender, receiver, out, .. } = self;
        match id {
            TOKEN_TIMER => receiver.give(cx, out),
            REQUEST_TIMER => sender.on_timer(cx, out),
            LINGER_TIMER => receiver.on_linger_timer(cx),
            _ => {}
        }
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        // All classes share the interface's one queue, so a pause of any of them pauses all.
        if port.open != u8::MAX {
            return Tx::Idle;
        }
        slot.src = cx.me;
        // Packets with payload have classes of their own.
        slot.class = self.config.classes.control;
        let Self { config, sender, out, .. } = self;
        out.poll(slot, config.control, put_header, |slot| sender.poll(cx, slot))
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
