//! pFabric: packets say how much of their message is left, switches serve the least and lose the
//! most, and hosts send at line rate until something is lost.
//!
//! M. Alizadeh, S. Yang, M. Sharif, S. Katti, N. McKeown, B. Prabhakar, S. Shenker: "pFabric:
//! Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013; by specs/pfabric.md. A baseline of the
//! Homa paper, whose authors' copy of the ns-2 program is public (R there). Departures are listed
//! in `pfabric.deviations.toml`. The queue that goes with it is `queues::PFabric`.
//!
//! A message begins with a window of a bandwidth-delay product (`sender`). Each packet is
//! acknowledged by itself (`receiver`). Only a timer tells of a loss, always the same short one:
//! then the window is one packet and grows as TCP's does. After several timeouts in a row the
//! sender asks with packets without payload whether anything gets through.
//!
//! Acknowledgements go before data, and the message with the least left before others. Messages of
//! one non-zero channel are serialised by the sender: the next starts when the one before has been
//! acknowledged.

mod config;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use endpoint::{Cx, Endpoint, Flags, Msg, MsgId, MsgKey, Packet, Stat, Submit, TimerId, Tx};
use endpoint::{NetView, TxPort};
use units::HostId;
use wire::pfabric::{Kind, PROTO, Repr};

use crate::config::ConfigError;
use crate::incoming::describes;
use crate::ndp::paths::ControlPaths;
use crate::outbox::CONTROL_MAX;

pub use config::{Config, PathStrategy, WINDOW_MAX};

use receiver::Receiver;
use sender::Sender;

const RTO_TIMER: TimerId = TimerId(0);
const LINGER_TIMER: TimerId = TimerId(1);

/// pFabric on one host.
#[derive(Debug)]
pub struct PFabric {
    config: Config,
    sender: Sender,
    receiver: Receiver,
    out: Outbox,
}

impl PFabric {
    /// An idle host.
    ///
    /// # Errors
    /// If `config` contradicts itself, see [`Config::check`].
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            sender: Sender::new(config, RTO_TIMER),
            receiver: Receiver::new(config, LINGER_TIMER),
            out: Outbox::new(CONTROL_MAX),
            config,
        })
    }
}

/// A control packet, and those that wait.
type Control = crate::outbox::Control<Repr>;
type Outbox = crate::outbox::Outbox<Control>;

/// Write the pFabric header of a packet.
fn put_header(slot: &mut Packet, header: Repr) {
    slot.proto = PROTO;
    slot.put_header(&header.to_bytes());
}

/// The path of the `n`-th packet about message `id` to `to`.
fn path(config: &Config, cx: &Cx<'_>, to: HostId, id: MsgId, n: u64) -> u32 {
    let net: &NetView<'_> = cx.net;
    ControlPaths::new(config.paths, net, to, cx.draw.part(u64::from(to.0)).part(id.0)).path(net, n)
}

impl Endpoint for PFabric {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.sender.submit(cx, msg);
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
        let key = MsgKey { src: pkt.src, id: MsgId(message) };
        match kind {
            Kind::Data { seq, size, len, .. }
                if describes(config.framing(), pkt, message, seq, len) =>
            {
                receiver.on_data(cx, key, (seq, size, len), out);
            }
            Kind::Data { .. } => cx.fx.count(Stat::Rejected),
            Kind::Probe { seq, size, .. } => receiver.on_probe(cx, key, (seq, size), out),
            Kind::End => receiver.on_end(cx, key),
            Kind::Ack { seq, missing } => sender.on_ack(cx, key, (seq, missing)),
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        let Self { sender, receiver, out, .. } = self;
        match id {
            RTO_TIMER => sender.on_timer(cx, out),
            LINGER_TIMER => receiver.on_linger_timer(cx),
            _ => {}
        }
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        if !port.opens(self.config.class) {
            return Tx::Idle;
        }
        slot.src = cx.me;
        slot.class = self.config.class;
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
