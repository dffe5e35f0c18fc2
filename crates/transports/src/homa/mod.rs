//! Homa: messages begin with a round trip's worth of data, unscheduled; what follows is granted by
//! the receiver, to the few messages with the least to come; switches serve packets by priorities
//! that receivers choose.
//!
//! B. Montazeri, Y. Li, M. Alizadeh, J. Ousterhout: "Homa: A Receiver-Driven Low-Latency Transport
//! Protocol Using Network Priorities", SIGCOMM 2018; by specs/homa.md: the paper (P) as its authors
//! simulated it (OM, `PlatformLab/HomaSimulation`), and the Linux kernel module (LK) where those
//! say nothing: loss, acknowledgements. Departures are listed in `homa.deviations.toml`.
//!
//! A sender chooses, whenever its link is free, the message with the least left to send (`sender`).
//! A receiver gives grants to the `overcommitment` best messages, of as many senders, one packet at
//! a time, so that each has `rtt_bytes` in flight (`grants`). Packets of short messages, and of the
//! ends of long ones, go before others (`config`, `cutoffs`). Switches only have to serve eight
//! classes by strict priority, and may spray.
//!
//! Losses are found by silence: a receiver asks with RESEND for what it has permitted and misses, a
//! sender that is not asked for anything asks with NEED_ACK whether its message has arrived. Both
//! are rare, so one timer goes over all messages (`receiver`, `sender`).
//!
//! Homa-Tr is all this, and that receivers refuse at once what switches have trimmed (`trim`).
//!
//! Messages are numbered for each pair of hosts. So a receiver remembers for ever which have been
//! delivered, in one number and some bits, and each data packet tells its receiver which of the
//! other direction have arrived. Messages of one non-zero channel are serialised by the sender.
//! Where a host has started again, both ends number from zero.

mod config;
mod cutoffs;
mod grants;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
mod trim;

use endpoint::{
    Cx, Endpoint, Flags, FlowState, Msg, MsgId, Packet, Span, Stat, Submit, TimerId, Tx, TxPort,
};
use units::{Dur, HostId, Time};
use wire::homa::{CONTROL_LEN, DATA_LEN, Kind, PROTO, Repr};

pub use config::{Config, Incast, LevelBy, PathStrategy, Trimmed};
pub use cutoffs::{Cutoffs, Wire};

use receiver::Receiver;
use sender::Sender;

use crate::config::ConfigError;
use crate::deadlines::Armed;
use crate::outbox::CONTROL_MAX;

/// When the next grant may be given.
const GRANT_TIMER: TimerId = TimerId(0);
/// When to look for silent messages.
const SILENCE_TIMER: TimerId = TimerId(1);
/// When to tell of messages that have arrived.
const ACK_TIMER: TimerId = TimerId(2);

/// Silence is looked for so often in a `resend_timeout`.
const LOOKS: u64 = 4;

/// Homa on one host.
#[derive(Debug)]
pub struct Homa {
    config: Config,
    sender: Sender,
    receiver: Receiver,
    out: Outbox,
    armed: Armed<3>,
    /// When to look for silence next; `NEVER` while no message is open.
    look_at: Time,
}

/// A control packet, and those that wait.
type Control = crate::outbox::Control<Repr>;
type Outbox = crate::outbox::Outbox<Control>;

impl Homa {
    /// An idle host.
    ///
    /// # Errors
    /// If `config` contradicts itself, see [`Config::check`].
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            sender: Sender::new(config),
            receiver: Receiver::new(config),
            out: Outbox::new(CONTROL_MAX),
            armed: Armed::NONE,
            look_at: Time::NEVER,
        })
    }

    /// Have the timers stand where they must.
    fn arm(&mut self, cx: &mut Cx<'_>) {
        if self.sender.is_idle() && self.receiver.is_idle() {
            self.look_at = Time::NEVER;
        } else if self.look_at == Time::NEVER {
            self.look_at = cx.now + Dur(self.config.resend_timeout.0.div_ceil(LOOKS));
        }
        let next = [self.receiver.grant_at(), self.look_at, self.receiver.ack_at()];
        self.armed.move_to(next, cx.fx);
    }

    fn on_header(&mut self, cx: &mut Cx<'_>, pkt: &Packet, header: Repr) {
        let Self { sender, receiver, out, .. } = self;
        let Repr { number, kind } = header;
        let from = pkt.src;
        match kind {
            // Environments let control packets through without their payload, and a peer may say
            // anything.
            Kind::Data(_) if pkt.flags.has(Flags::CONTROL) => cx.fx.count(Stat::Rejected),
            Kind::Data(data) => {
                sender.on_whole(cx, from, data.whole);
                if pkt.flags.has(Flags::TRIMMED) {
                    receiver.on_trimmed(cx, pkt, (number, data), out);
                } else if let Some(key) = receiver.on_data(cx, pkt, (number, data), out) {
                    sender.on_arrival(cx, key, &data);
                }
            }
            Kind::Grant { granted, level } => sender.on_grant(cx, (from, number), (granted, level)),
            Kind::Resend { first, end, level: _ } => {
                sender.on_resend(cx, (from, number), (first, end), out);
            }
            Kind::Unknown { mine: true } => receiver.on_unknown(cx, (from, number), out),
            Kind::Unknown { mine: false } => sender.on_unknown(cx, (from, number)),
            Kind::Busy { mine: true } => receiver.on_busy(cx, (from, number)),
            Kind::Busy { mine: false } => sender.on_busy(cx, (from, number)),
            Kind::NeedAck => receiver.on_need_ack(cx, (from, number), pkt.span.msg, out),
            Kind::Ack { first_missing, next } => {
                sender.on_ack(cx, (from, number), (first_missing, next));
            }
            Kind::Nack { index, granted } => sender.on_nack(cx, (from, number), (index, granted)),
        }
    }
}

/// What tells host `to` of a message, which is `msg` to the environment.
fn control(to: HostId, path: u32, msg: MsgId, header: Repr) -> Control {
    Control { to, path, span: Span { msg, ..Span::default() }, header }
}

/// Write the Homa header of a packet.
fn put_header(slot: &mut Packet, header: &Repr) {
    slot.proto = PROTO;
    slot.put_header(header.to_bytes().as_slice());
}

const _: () = assert!(DATA_LEN <= endpoint::HDR_MAX && CONTROL_LEN <= DATA_LEN);

impl Endpoint for Homa {
    fn on_submit(&mut self, cx: &mut Cx<'_>, msg: &Msg) -> Submit {
        self.sender.submit(cx, msg);
        self.arm(cx);
        Submit::Taken
    }

    fn on_packet(&mut self, cx: &mut Cx<'_>, pkt: &Packet) {
        // Its switches do not bounce, and those of Homa do not trim: elsewhere, such a packet is a
        // lost one.
        let trimmed = pkt.flags.has(Flags::TRIMMED) && self.config.trimmed == Trimmed::Lost;
        let lost = trimmed || pkt.flags.has(Flags::BOUNCED);
        let (Ok(header), PROTO, false) = (Repr::parse(pkt.header()), pkt.proto, lost) else {
            cx.fx.count(Stat::Rejected);
            return;
        };
        self.on_header(cx, pkt, header);
        self.arm(cx);
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>, id: TimerId) {
        self.armed.fired(id);
        let Self { sender, receiver, out, .. } = self;
        match id {
            GRANT_TIMER => receiver.give_grants(cx, out),
            ACK_TIMER => receiver.tell_whole(cx, out),
            SILENCE_TIMER => {
                self.look_at = Time::NEVER;
                receiver.look_for_silence(cx, out);
                sender.look_for_silence(cx, out);
            }
            _ => {}
        }
        self.arm(cx);
    }

    fn poll_tx(&mut self, cx: &mut Cx<'_>, port: TxPort, slot: &mut Packet) -> Tx {
        // The classes share the interface's one queue, so a pause of any of them pauses all.
        if port.open != u8::MAX {
            return Tx::Idle;
        }
        slot.src = cx.me;
        if let Some(control) = self.out.pop() {
            slot.class = self.config.class(0);
            let header = control.fill(slot, self.config.control);
            put_header(slot, &header);
            return Tx::Sent;
        }
        let Self { sender, receiver, .. } = self;
        let whole = |to| receiver.tell_with_data(to);
        if sender.poll(cx, whole, slot) { Tx::Sent } else { Tx::Idle }
    }

    fn flow_state(&self, id: MsgId) -> Option<FlowState> {
        self.sender.state(id)
    }

    fn on_cancel(&mut self, cx: &mut Cx<'_>, id: MsgId) {
        self.sender.cancel(cx, id, &mut self.out);
        self.arm(cx);
    }

    fn on_restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        self.out.retain(|control| control.to != host);
        self.receiver.restart(cx, host, &mut self.out);
        self.sender.restart(cx, host);
        self.arm(cx);
    }
}
