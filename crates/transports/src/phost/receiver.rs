//! The messages that a host receives: one token per MTU time, to the message with the fewest
//! packets missing among those that may have one.

use std::collections::BTreeSet;

use endpoint::{Cx, MsgId, MsgKey, Stat, TimerId};
use units::{Dur, HostId, Time};
use wire::phost::Kind;

use super::config::{Config, FREE_MAX, scaled};
use super::{Control, Outbox, control};
use crate::incoming::{Incoming, Message};
use crate::ndp::paths::ControlPaths;
use crate::received::{Received, WINDOW_MAX};
use crate::slab::SlotRef;

/// Whether a message may have a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Its REQ has not come.
    Unasked,
    /// It waits among others, by this many packets missing.
    Ready(u64),
    /// Not before this.
    After(Time),
}

/// One message at its receiver.
#[derive(Debug)]
struct Conn {
    key: MsgKey,
    size: u64,
    packets: u64,
    received: Received,
    /// Packets received.
    count: u64,
    /// Counts REQs: of two with equally many missing the older goes first.
    order: u64,
    turn: Turn,
    /// Tokens given, the free ones included.
    tokens: u64,
    /// Tokens up to the highest one used, as far as has been seen.
    used: u64,
    /// When as many tokens have been given, the message is put aside.
    goal: u64,
    /// Put aside until then.
    aside: Option<Time>,
    /// Where to look for the next packet to give a token for.
    cursor: u64,
    /// When it was last given a token, or asked for the first.
    token_at: Time,
    /// When something of it last arrived.
    heard: Time,
    /// Control packets sent, for the draws of paths.
    departures: u64,
    paths: ControlPaths,
}

impl Message for Conn {
    fn key(&self) -> MsgKey {
        self.key
    }

    fn heard(&self) -> Time {
        self.heard
    }

    fn is_bare(&self) -> bool {
        self.count == 0
    }
}

/// The receiving half of a host.
#[derive(Debug)]
pub(super) struct Receiver {
    config: Config,
    token_timer: TimerId,
    messages: Incoming<Conn>,
    /// Who may have a token: fewest missing packets first.
    ready: BTreeSet<(u64, u64, SlotRef)>,
    /// Who may later.
    later: BTreeSet<(Time, SlotRef)>,
    asked: u64,
    /// When the next token may leave: one MTU time after the last.
    free_at: Time,
    /// No token before this: the link is busy with what the latest REQ's free tokens send.
    hold_until: Time,
    /// When the message that is first may have a token; [`Time::NEVER`] where none waits.
    due: Time,
}

impl Receiver {
    pub(super) fn new(config: Config, token_timer: TimerId, linger_timer: TimerId) -> Self {
        Self {
            config,
            token_timer,
            messages: Incoming::new(linger_timer, config.rx_idle_timeout, config.time_wait),
            ready: BTreeSet::new(),
            later: BTreeSet::new(),
            asked: 0,
            free_at: Time::ZERO,
            hold_until: Time::ZERO,
            due: Time::NEVER,
        }
    }

    /// A message of `size` bytes wants tokens; `free` of them its sender has given itself.
    pub(super) fn on_req(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        (size, free): (u64, u32),
        out: &mut Outbox,
    ) {
        let how = self.config.paths;
        let over = self.messages.answer_if_over(cx, key, |cx, _| {
            let paths = ControlPaths::new(how, cx.net, key.src, cx.draw.part(key.id.0));
            let path = paths.path(cx.net, cx.now.0);
            out.push(control(key.src, path, key.id, Kind::Ack));
        });
        if over {
            return;
        }
        // More than a sender gives itself would keep the link waiting for ever.
        let free = free.min(FREE_MAX);
        let Some(at) = self.find(cx, key, size) else { return };
        let Some(conn) = self.messages.get_mut(at) else { return };
        conn.heard = cx.now;
        if conn.turn != Turn::Unasked {
            return;
        }
        self.asked += 1;
        conn.order = self.asked;
        // Packets on free tokens may have come before it.
        conn.tokens = u64::from(free).min(conn.packets).max(conn.used);
        conn.cursor = conn.tokens;
        conn.token_at = cx.now;
        let mtu_time = self.config.mtu_time(cx.net);
        self.hold_until = cx.now.max(self.free_at) + mtu_time * u64::from(free);
        if conn.tokens == conn.goal {
            // R2: the free tokens have covered everything; twice the time they need.
            let wait = mtu_time * (2 * u64::from(free)) + cx.net.answer_lateness();
            conn.aside = Some(cx.now + wait);
        }
        self.place(cx, at);
        self.give(cx, out);
    }

    pub(super) fn on_data(
        &mut self,
        cx: &mut Cx<'_>,
        key: MsgKey,
        (number, seq, size, len): (u32, u64, u64, u16),
        out: &mut Outbox,
    ) {
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
        // Beyond 2^32 tokens the number is that nearest to what has been given.
        let ahead = number.wrapping_sub(conn.tokens as u32) as i32;
        let used = conn.tokens.saturating_add_signed(i64::from(ahead) + 1);
        let given = if conn.turn == Turn::Unasked { conn.packets } else { conn.tokens };
        conn.used = conn.used.max(used.min(given));
        let mut begins = false;
        if u64::from(len) > cx.room {
            // Without room for it, it is as good as lost.
        } else if !conn.received.insert(seq) {
            cx.fx.count(Stat::Duplicate);
        } else {
            conn.count += 1;
            if len > 0 {
                cx.fx.place(key, seq * u64::from(self.config.payload), u32::from(len));
            }
            begins = conn.count == 1;
        }
        let complete = conn.count == conn.packets;
        if begins {
            self.messages.begins(key);
        }
        if complete {
            self.deliver(cx, at, out);
        } else {
            self.place(cx, at);
        }
        self.give(cx, out);
    }

    /// The sender knows nothing of the message any more.
    pub(super) fn on_end(&mut self, cx: &mut Cx<'_>, key: MsgKey) {
        if let Some((at, conn)) = self.messages.on_end(cx, key) {
            self.displace(at, conn.turn, conn.order);
        }
    }

    /// See [`endpoint::Endpoint::on_over_below`].
    pub(super) fn over_below(&mut self, host: HostId, oldest: MsgId) {
        self.messages.over_below(host, oldest);
    }

    /// See [`endpoint::Endpoint::on_restart`].
    pub(super) fn restart(&mut self, cx: &mut Cx<'_>, host: HostId) {
        for (at, conn) in self.messages.restart(cx, host) {
            self.displace(at, conn.turn, conn.order);
        }
    }

    /// Forget messages that have been silent for too long.
    pub(super) fn on_linger_timer(&mut self, cx: &mut Cx<'_>) {
        for (at, conn) in self.messages.on_linger_timer(cx) {
            self.displace(at, conn.turn, conn.order);
        }
    }

    /// The state of a message, new if it has none; `None` if it is over.
    fn find(&mut self, cx: &mut Cx<'_>, key: MsgKey, size: u64) -> Option<SlotRef> {
        if let Some(at) = self.messages.find(key) {
            return Some(at);
        }
        if self.messages.over(cx.now, key).is_some() {
            cx.fx.count(Stat::Rejected);
            return None;
        }
        let packets = self.config.framing().packets(size);
        let draw = cx.draw.part(u64::from(key.src.0)).part(key.id.0);
        let conn = Conn {
            key,
            size,
            packets,
            received: Received::default(),
            count: 0,
            order: 0,
            turn: Turn::Unasked,
            tokens: 0,
            used: 0,
            goal: packets,
            aside: None,
            cursor: 0,
            token_at: cx.now,
            heard: cx.now,
            departures: 0,
            paths: ControlPaths::new(self.config.paths, cx.net, key.src, draw),
        };
        self.messages.open(cx, conn)
    }

    /// Have a message that has asked where its state puts it: ready for a token, or later.
    fn place(&mut self, cx: &Cx<'_>, at: SlotRef) {
        let mtu_time = self.config.mtu_time(cx.net);
        let Some(conn) = self.messages.get_mut(at) else { return };
        if conn.order == 0 {
            return;
        }
        let (before, order) = (conn.turn, conn.order);
        conn.turn = conn.next_turn(cx, &self.config, mtu_time);
        let turn = conn.turn;
        self.displace(at, before, order);
        match turn {
            Turn::Ready(missing) => drop(self.ready.insert((missing, order, at))),
            Turn::After(time) => drop(self.later.insert((time, at))),
            Turn::Unasked => {}
        }
    }

    /// The message at `at`, whose turn was `turn`, waits no more.
    fn displace(&mut self, at: SlotRef, turn: Turn, order: u64) {
        match turn {
            Turn::Ready(missing) => drop(self.ready.remove(&(missing, order, at))),
            Turn::After(time) => drop(self.later.remove(&(time, at))),
            Turn::Unasked => {}
        }
    }

    /// The time of a token, or of somebody who waits for one, may have come.
    pub(super) fn give(&mut self, cx: &mut Cx<'_>, out: &mut Outbox) {
        while let Some(&(time, at)) = self.later.first()
            && time <= cx.now
        {
            self.place(cx, at);
        }
        let mtu_time = self.config.mtu_time(cx.net);
        if self.turn_at() <= cx.now
            && let Some(&(_, _, at)) = self.ready.first()
            && let Some(conn) = self.messages.get_mut(at)
        {
            out.push(conn.token(cx, &self.config, mtu_time));
            self.free_at = cx.paced_from(self.due) + mtu_time;
            self.place(cx, at);
        }
        self.due = if self.ready.is_empty() { Time::NEVER } else { self.turn_at() };
        let later = self.later.first().map_or(Time::NEVER, |(time, _)| *time);
        cx.fx.arm(self.token_timer, self.due.min(later));
    }

    /// When the next token may be given.
    fn turn_at(&self) -> Time {
        self.free_at.max(self.hold_until)
    }

    fn deliver(&mut self, cx: &mut Cx<'_>, at: SlotRef, out: &mut Outbox) {
        let Some(conn) = self.messages.get_mut(at) else { return };
        out.push(conn.control(cx, Kind::Ack));
        let packets = conn.packets;
        if let Some(conn) = self.messages.complete(cx, at, packets) {
            self.displace(at, conn.turn, conn.order);
        }
    }
}

impl Conn {
    /// When it may have its next token.
    fn next_turn(&mut self, cx: &Cx<'_>, config: &Config, mtu_time: Dur) -> Turn {
        let (now, lateness) = (cx.now, cx.net.answer_lateness());
        if let Some(until) = self.aside {
            if until > now {
                return Turn::After(until);
            }
            // What is missing by now was lost, or its token was: tokens for it once more.
            self.aside = None;
            self.goal = self.tokens.saturating_add(self.missing());
        }
        let window = u64::from(config.window);
        if self.tokens - self.used >= window {
            let until = self.token_at + scaled(mtu_time, config.window_timeout) + lateness;
            if until > now {
                return Turn::After(until);
            }
            // Whole windows do not vanish for ever: try one more.
            self.used = self.tokens - window + 1;
        }
        Turn::Ready(self.missing())
    }

    fn missing(&self) -> u64 {
        self.packets - self.count
    }

    /// A token for the next packet that is missing, after the one before; from the first again once
    /// all have had theirs.
    fn token(&mut self, cx: &Cx<'_>, config: &Config, mtu_time: Dur) -> Control {
        let first = self.received.prefix();
        let end = self.packets.min(first + WINDOW_MAX);
        let mut seq = self.cursor.max(first);
        while seq < end && self.received.contains(seq) {
            seq += 1;
        }
        if seq >= end {
            seq = first;
        }
        self.cursor = seq + 1;
        let number = self.tokens as u32;
        self.tokens += 1;
        self.token_at = cx.now;
        if self.tokens == self.goal {
            let wait = scaled(mtu_time, config.resend_timeout) + cx.net.answer_lateness();
            self.aside = Some(cx.now + wait);
        }
        self.control(cx, Kind::Token { number, seq, missing: self.missing() })
    }

    fn control(&mut self, cx: &Cx<'_>, kind: Kind) -> Control {
        self.departures += 1;
        let path = self.paths.path(cx.net, self.departures);
        control(self.key.src, path, self.key.id, kind)
    }
}

/// The message that a packet from `src` is about, if `src` sends it.
pub(super) fn key(src: HostId, message: u64) -> MsgKey {
    MsgKey { src, id: MsgId(message) }
}
