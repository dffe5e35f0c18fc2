//! The messages that a host receives: each packet is acknowledged, by itself and with all before
//! it.

use endpoint::{Cx, MsgId, MsgKey, Span, Stat, TimerId};
use units::{HostId, Time};
use wire::pfabric::{Kind, Repr};

use super::config::Config;
use super::{Control, Outbox, path};
use crate::incoming::{Incoming, Message};
use crate::received::Received;
use crate::slab::SlotRef;

/// One message at its receiver.
#[derive(Debug)]
struct Conn {
    key: MsgKey,
    size: u64,
    packets: u64,
    received: Received,
    /// When something of it last arrived.
    heard: Time,
    /// Acknowledgements sent, for the draws of paths.
    departures: u64,
}

impl Message for Conn {
    fn key(&self) -> MsgKey {
        self.key
    }

    fn heard(&self) -> Time {
        self.heard
    }

    fn is_bare(&self) -> bool {
        self.received.is_empty()
    }
}

/// The receiving half of a host.
#[derive(Debug)]
pub(super) struct Receiver {
    config: Config,
    messages: Incoming<Conn>,
}

impl Receiver {
    pub(super) fn new(config: Config, linger_timer: TimerId) -> Self {
        let messages = Incoming::new(linger_timer, config.rx_idle_timeout, config.time_wait);
        Self { config, messages }
    }

    pub(super) fn on_data(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        (seq, size, len): (u64, u64, u16),
        out: &mut Outbox,
    ) {
        if self.answer_for_finished(cx, key, (seq, len), out) {
            return;
        }
        let Some(at) = self.find(cx, key, size) else { return };
        let Some(conn) = self.messages.get_mut(at) else { return };
        let possible = size == conn.size
            && seq < conn.packets
            && conn.received.admits(seq)
            && len == self.config.framing().payload_of(seq, size);
        if !possible {
            cx.fx.count(Stat::Rejected);
            return;
        }
        conn.heard = cx.now;
        if u64::from(len) > cx.room {
            // Without room for it, it is as good as lost.
            return;
        }
        let begins = conn.is_bare();
        if !conn.received.insert(seq) {
            cx.fx.count(Stat::Duplicate);
        } else if len > 0 {
            cx.fx.place(key, seq * u64::from(self.config.payload), u32::from(len));
        }
        let missing = conn.received.prefix();
        conn.departures += 1;
        let n = conn.departures;
        let complete = missing == conn.packets;
        out.push(ack(cx, &self.config, key, (seq, missing, len), n));
        if begins {
            self.messages.begins(key);
        }
        if complete {
            self.messages.complete(cx, at, missing);
        }
    }

    /// Its sender asks whether anything arrives. Of a message that is not known here nothing has.
    pub(super) fn on_probe(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        (seq, size): (u64, u64),
        out: &mut Outbox,
    ) {
        if self.answer_for_finished(cx, key, (seq, 0), out) {
            return;
        }
        let conn = self.messages.find(key).and_then(|at| self.messages.get_mut(at));
        let (missing, n) = match conn {
            Some(conn) if conn.size != size => {
                cx.fx.count(Stat::Rejected);
                return;
            }
            Some(conn) => {
                conn.heard = cx.now;
                conn.departures += 1;
                (conn.received.prefix(), conn.departures)
            }
            None => (seq, cx.now.0),
        };
        out.push(ack(cx, &self.config, key, (seq, missing, 0), n));
    }

    /// Whether the message is over. If all of it came, its ACK was lost: here is another.
    fn answer_for_finished(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        (seq, len): (u64, u16),
        out: &mut Outbox,
    ) -> bool {
        let config = &self.config;
        self.messages.answer_if_over(cx, key, |cx, packets| {
            cx.fx.count(Stat::Duplicate);
            out.push(ack(cx, config, key, (seq, packets, len), cx.now.0));
        })
    }

    /// The sender has given the message up.
    pub(super) fn on_end(&mut self, cx: &mut Cx<'_>, key: MsgKey) {
        self.messages.on_end(cx, key);
    }

    /// See [`endpoint::Endpoint::on_over_below`].
    pub(super) fn over_below(&mut self, host: HostId, oldest: MsgId) {
        self.messages.over_below(host, oldest);
    }

    /// See [`endpoint::Endpoint::on_restart`].
    pub(super) fn restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        self.messages.restart(cx, host);
    }

    /// Forget messages that have been silent for too long.
    pub(super) fn on_linger_timer(&mut self, cx: &mut Cx<'_>) {
        self.messages.on_linger_timer(cx);
    }

    /// The state of a message, new if it has none; `None` if its sender has too many.
    fn find(&mut self, cx: &mut Cx<'_>, key: MsgKey, size: u64) -> Option<SlotRef> {
        if let Some(at) = self.messages.find(key) {
            return Some(at);
        }
        let conn = Conn {
            key,
            size,
            packets: self.config.framing().packets(size),
            received: Received::default(),
            heard: cx.now,
            departures: 0,
        };
        self.messages.open(cx, conn)
    }
}

/// Packet `seq` of message `key`, of `len` bytes, has arrived, and all below `missing`. If that is
/// `seq` itself, it was a probe, and the packet has not. The `n`-th answer about the message.
fn ack(
    cx: &Cx<'_>,
    config: &Config,
    key: MsgKey,
    (seq, missing, len): (u64, u64, u16),
    n: u64,
) -> Control {
    let path = path(config, cx, key.src, key.id, n);
    let offset = seq.saturating_mul(u64::from(config.payload));
    let span = Span { msg: key.id, offset, len: u32::from(len) };
    let header = Repr { message: key.id.0, kind: Kind::Ack { seq, missing } };
    Control { to: key.src, path, span, header }
}
