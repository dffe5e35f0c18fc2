//! The messages that a host receives: each packet is acknowledged, by itself and with all before
//! it.

use endpoint::{Cx, FailReason, MsgKey, Span, Stat, TimerId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::Time;
use wire::pfabric::{Kind, Repr};

use super::config::Config;
use super::{Control, Outbox, path};
use crate::connections::{OPEN_MAX, OpenCounts};
use crate::received::Received;
use crate::slab::{Slab, SlotRef};
use crate::time_wait::TimeWait;

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

/// What happened to a message that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// It had so many packets.
    Complete(u64),
    Abandoned,
}

/// The receiving half of a host.
#[derive(Debug)]
pub(super) struct Receiver {
    linger_timer: TimerId,
    conns: Slab<Conn>,
    by_key: HashMap<MsgKey, SlotRef, FxBuildHasher>,
    open: OpenCounts,
    finished: TimeWait<MsgKey, Over>,
}

impl Receiver {
    pub(super) fn new(linger_timer: TimerId) -> Self {
        Self {
            linger_timer,
            conns: Slab::new(),
            by_key: HashMap::default(),
            open: OpenCounts::default(),
            finished: TimeWait::new(),
        }
    }

    pub(super) fn on_data(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        key: MsgKey,
        (seq, size, len): (u64, u64, u16),
        out: &mut Outbox,
    ) {
        if self.answer_for_finished(cx, config, key, (seq, len), out) {
            return;
        }
        let Some(at) = self.find(cx, config, key, size) else { return };
        let Some(conn) = self.conns.get_mut(at) else { return };
        let possible = size == conn.size
            && seq < conn.packets
            && conn.received.admits(seq)
            && len == config.payload_of(seq, size);
        if !possible {
            cx.fx.count(Stat::Rejected);
            return;
        }
        conn.heard = cx.now;
        if u64::from(len) > cx.room {
            // Without room for it, it is as good as lost.
            return;
        }
        if !conn.received.insert(seq) {
            cx.fx.count(Stat::Duplicate);
        } else if len > 0 {
            cx.fx.place(key, seq * u64::from(config.payload), u32::from(len));
        }
        let missing = conn.received.prefix();
        conn.departures += 1;
        let n = conn.departures;
        let complete = missing == conn.packets;
        out.push(ack(cx, config, key, (seq, missing, len), n));
        if complete {
            self.close(cx, at);
            self.remember(cx.now, config, key, Over::Complete(missing));
            cx.fx.delivered(key);
        }
    }

    /// Its sender asks whether anything arrives. Of a message that is not known here nothing has.
    pub(super) fn on_probe(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        key: MsgKey,
        (seq, size): (u64, u64),
        out: &mut Outbox,
    ) {
        if self.answer_for_finished(cx, config, key, (seq, 0), out) {
            return;
        }
        let conn = self.by_key.get(&key).and_then(|&at| self.conns.get_mut(at));
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
        out.push(ack(cx, config, key, (seq, missing, 0), n));
    }

    /// Whether the message is over. If all of it came, its ACK was lost: here is another.
    fn answer_for_finished(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        key: MsgKey,
        (seq, len): (u64, u16),
        out: &mut Outbox,
    ) -> bool {
        match self.finished.get(cx.now, &key) {
            Some(Over::Complete(packets)) => {
                self.finished.refresh(cx.now, config.time_wait, &key);
                cx.fx.count(Stat::Duplicate);
                out.push(ack(cx, config, key, (seq, packets, len), cx.now.0));
                true
            }
            Some(Over::Abandoned) => {
                cx.fx.count(Stat::Rejected);
                true
            }
            None => false,
        }
    }

    /// The sender has given the message up.
    pub(super) fn on_end(&mut self, cx: &mut Cx<'_>, config: &Config, key: MsgKey) {
        let Some(&at) = self.by_key.get(&key) else {
            // What never began need not be remembered by all means.
            let room = self.finished.len() < OPEN_MAX as usize;
            if room && self.finished.get(cx.now, &key).is_none() {
                self.remember(cx.now, config, key, Over::Abandoned);
            }
            return;
        };
        self.close(cx, at);
        self.remember(cx.now, config, key, Over::Abandoned);
        cx.fx.failed(key, FailReason::Cancelled);
    }

    /// The state of a message, new if it has none; `None` if its sender has too many.
    fn find(
        &mut self,
        cx: &mut Cx<'_>,
        config: &Config,
        key: MsgKey,
        size: u64,
    ) -> Option<SlotRef> {
        if let Some(&at) = self.by_key.get(&key) {
            return Some(at);
        }
        if !self.open.enter(key.src) {
            cx.fx.count(Stat::Rejected);
            return None;
        }
        if self.conns.is_empty() {
            cx.fx.arm(self.linger_timer, cx.now.saturating_add(config.rx_idle_timeout));
        }
        let at = self.conns.insert(Conn {
            key,
            size,
            packets: config.packets(size),
            received: Received::default(),
            heard: cx.now,
            departures: 0,
        });
        self.by_key.insert(key, at);
        Some(at)
    }

    fn remember(&mut self, now: Time, config: &Config, key: MsgKey, over: Over) {
        self.finished.insert(now, config.time_wait, u32::MAX, key, over);
    }

    fn close(&mut self, cx: &mut Cx<'_>, at: SlotRef) -> Option<MsgKey> {
        let conn = self.conns.remove(at)?;
        self.by_key.remove(&conn.key);
        self.open.leave(conn.key.src);
        if self.conns.is_empty() {
            cx.fx.disarm(self.linger_timer);
        }
        Some(conn.key)
    }

    /// Forget messages that have been silent for too long.
    pub(super) fn on_linger_timer(&mut self, cx: &mut Cx<'_>, config: &Config) {
        let silent = |conn: &Conn| conn.heard.saturating_add(config.rx_idle_timeout) <= cx.now;
        let all = self.conns.iter_mut();
        let over: Vec<SlotRef> = all.filter(|(_, conn)| silent(conn)).map(|(at, _)| at).collect();
        for at in over {
            let Some(key) = self.close(cx, at) else { continue };
            self.remember(cx.now, config, key, Over::Abandoned);
            cx.fx.failed(key, FailReason::TimedOut);
        }
        if !self.conns.is_empty() {
            cx.fx.arm(self.linger_timer, cx.now.saturating_add(config.rx_idle_timeout));
        }
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
