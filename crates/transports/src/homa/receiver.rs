//! The messages that a host receives: what has come of each, what its sender may send, and which
//! are over.

use std::collections::{BTreeSet, VecDeque};

use endpoint::{Cx, FailReason, MsgId, MsgKey, Packet, Stat, UNBOUNDED};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use units::{HostId, Time};
use wire::homa::{Data, ENDLESS, Kind, Repr, Whole};

use super::config::{Config, Cut};
use super::grants::Grants;
use super::sender::Named;
use super::{Control, Outbox, control};
use crate::connections::OPEN_MAX;
use crate::ndp::paths::ControlPaths;
use crate::received::{Received, WINDOW_MAX, unwrap_index};
use crate::slab::{Slab, SlotRef};

/// One message at its receiver.
#[derive(Debug)]
pub(super) struct Conn {
    key: MsgKey,
    /// Its sender's place among `Receiver::peers`, and its number there.
    peer: u32,
    number: u64,
    pub(super) cut: Cut,
    pub(super) packets: u64,
    pub(super) received: Received,
    /// Packets received.
    pub(super) count: u64,
    /// Packets below this may come: unscheduled, or by grants.
    pub(super) granted: u64,
    /// Those of them that were refused and wait at their sender for the next grant (`trim`).
    pub(super) refused: u64,
    /// Counts messages: of two with equally much left the older goes first.
    pub(super) order: u64,
    /// Bytes left to grant of its entry among the senders that wait for grants, if it has one.
    pub(super) waits: Option<u64>,
    /// When data of it last arrived, or its sender said that it has other things to do.
    heard: Time,
    /// When what is missing was last asked for.
    asked: Time,
    /// When that was first asked for, if nothing whole has come since.
    pub(super) in_vain: Option<Time>,
    /// When its sender last gave a sign of life.
    alive: Time,
    /// Control packets sent, for the draws of paths.
    departures: u64,
    paths: ControlPaths,
}

/// A message that is none of [`Receiver::conns`] any more.
struct Closed {
    key: MsgKey,
    peer: u32,
    number: u64,
}

/// A host that has sent messages.
#[derive(Debug)]
pub(super) struct Peer {
    host: HostId,
    /// Messages that are over: delivered, or given up by their sender.
    pub(super) over: Received,
    /// Messages given up here, which their sender may not know.
    abandoned: BTreeSet<u64>,
    /// Messages that are neither over nor given up.
    open: u32,
    /// Messages that are whole, which has not been reported to it.
    unreported: Vec<(u64, MsgId)>,
    /// When that must be reported; `NEVER` if there are none.
    ack_at: Time,
    /// Control packets sent that are not of an open message, for the draws of paths.
    departures: u64,
    paths: ControlPaths,
}

/// The receiving half of a host.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) config: Config,
    pub(super) conns: Slab<Conn>,
    /// By place among `peers` and number.
    by_number: HashMap<(u32, u64), SlotRef, FxBuildHasher>,
    pub(super) peers: Vec<Peer>,
    by_host: HashMap<HostId, u32, FxBuildHasher>,
    grants: Grants,
    /// Whose `ack_at` comes when, in that order; an entry of another time than its peer's means
    /// nothing.
    acks: VecDeque<(Time, u32)>,
    started: u64,
}

/// Gaps of one message that are asked for at a time.
const GAPS: usize = 16;

impl Receiver {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            conns: Slab::new(),
            by_number: HashMap::default(),
            peers: Vec::new(),
            by_host: HashMap::default(),
            grants: Grants::new(),
            acks: VecDeque::new(),
            started: 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.conns.is_empty()
    }

    /// When to call `give_grants` if nothing arrives before.
    pub(super) const fn grant_at(&self) -> Time {
        self.grants.wake()
    }

    /// When to call `tell_whole`, or earlier.
    pub(super) fn ack_at(&self) -> Time {
        self.acks.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// The place of `host` among `peers`.
    pub(super) fn peer(&mut self, cx: &Cx<'_>, host: HostId) -> u32 {
        let peers = &mut self.peers;
        *self.by_host.entry(host).or_insert_with(|| {
            peers.push(Peer {
                host,
                over: Received::default(),
                abandoned: BTreeSet::new(),
                open: 0,
                unreported: Vec::new(),
                ack_at: Time::NEVER,
                departures: 0,
                paths: ControlPaths::new(
                    self.config.paths,
                    cx.net,
                    host,
                    cx.draw.part(u64::from(host.0)),
                ),
            });
            peers.len() as u32 - 1
        })
    }

    /// Where the message of a packet of data is, which this may begin, and which of its packets
    /// this is; with or without its payload. `None` if nothing more is wanted of it.
    pub(super) fn arrive(
        &mut self,
        cx: &mut Cx<'_>,
        pkt: &Packet,
        (number, data): (u32, Data),
    ) -> Option<(SlotRef, u64)> {
        let peer = self.peer(cx, pkt.src);
        let state = &self.peers[peer as usize];
        let number = unwrap_index(state.over.prefix(), number);
        if state.over.contains(number) {
            cx.fx.count(Stat::Duplicate);
            return None;
        }
        if !state.may_begin(number) {
            cx.fx.count(Stat::Rejected);
            return None;
        }
        self.forget_below(cx, (peer, number), data.oldest);
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        let at = match self.by_number.get(&(peer, number)) {
            Some(&at) => at,
            None if self.peers[peer as usize].open >= OPEN_MAX => {
                cx.fx.count(Stat::Rejected);
                return None;
            }
            None => self.open(cx, key, (peer, number), &data),
        };
        let conn = self.conns.get_mut(at)?;
        let Some(index) = conn.index_of(pkt, &data) else {
            cx.fx.count(Stat::Rejected);
            return None;
        };
        conn.heard = cx.now;
        conn.alive = cx.now;
        // It has come, so it was permitted.
        let unforeseen = index >= conn.granted;
        conn.granted = conn.granted.max(index + 1);
        if unforeseen && conn.left() > 0 {
            self.grants.add(&mut self.conns, &self.config, peer, at);
        }
        Some((at, index))
    }

    /// The message, if it is whole with this packet.
    pub(super) fn on_data(
        &mut self,
        cx: &mut Cx<'_>,
        pkt: &Packet,
        (number, data): (u32, Data),
        out: &mut Outbox,
    ) -> Option<MsgKey> {
        let (at, index) = self.arrive(cx, pkt, (number, data))?;
        let conn = self.conns.get_mut(at)?;
        let key = conn.key;
        conn.in_vain = None;
        if u64::from(data.len) > cx.room {
            // Without room for it, it is as good as lost.
        } else if !conn.received.insert(index) {
            cx.fx.count(Stat::Duplicate);
        } else {
            conn.count += 1;
            if data.len > 0 {
                cx.fx.place(key, conn.cut.offset(index), u32::from(data.len));
            }
        }
        let is_whole = conn.count == conn.packets;
        if is_whole {
            self.deliver(cx, at, out);
        }
        self.give_grants(cx, out);
        is_whole.then_some(key)
    }

    /// A message of which this is the first packet to arrive.
    fn open(
        &mut self,
        cx: &Cx<'_>,
        key: MsgKey,
        (peer, number): (u32, u64),
        data: &Data,
    ) -> SlotRef {
        let size = if data.size == ENDLESS { UNBOUNDED } else { data.size };
        let cut = self.config.cut(size, data.head);
        let packets = cut.packets();
        self.started += 1;
        let at = self.conns.insert(Conn {
            key,
            peer,
            number,
            cut,
            packets,
            received: Received::default(),
            count: 0,
            granted: u64::from(data.unscheduled).min(packets),
            refused: 0,
            order: self.started,
            waits: None,
            heard: cx.now,
            asked: cx.now,
            in_vain: None,
            alive: cx.now,
            departures: 0,
            paths: ControlPaths::new(
                self.config.paths,
                cx.net,
                key.src,
                cx.draw.part(u64::from(key.src.0)).part(number),
            ),
        });
        self.by_number.insert((peer, number), at);
        self.peers[peer as usize].open += 1;
        if self.conns.get(at).is_some_and(|conn| conn.left() > 0) {
            self.grants.add(&mut self.conns, &self.config, peer, at);
        }
        at
    }

    /// Give the grants that are due.
    pub(super) fn give_grants(&mut self, cx: &mut Cx<'_>, out: &mut Outbox) {
        self.grants.give(cx, &self.config, &mut self.conns, out);
    }

    /// A message is whole.
    fn deliver(&mut self, cx: &mut Cx<'_>, at: SlotRef, out: &mut Outbox) {
        let Some(conn) = self.close(at) else { return };
        let peer = &mut self.peers[conn.peer as usize];
        peer.over.insert(conn.number);
        cx.fx.delivered(conn.key);
        if self.config.ack_delay.0 == 0 {
            out.push(peer.ack(cx, (conn.number, conn.key.id)));
            return;
        }
        peer.unreported.push((conn.number, conn.key.id));
        if peer.ack_at == Time::NEVER {
            peer.ack_at = cx.now + self.config.ack_delay;
            self.acks.push_back((peer.ack_at, conn.peer));
        }
    }

    /// Forget a message: which it was.
    fn close(&mut self, at: SlotRef) -> Option<Closed> {
        let (closed, left) = self.conns.remove_but(at, |conn| {
            let &mut Conn { key, peer, number, .. } = conn;
            (Closed { key, peer, number }, conn.left())
        })?;
        self.by_number.remove(&(closed.peer, closed.number));
        self.peers[closed.peer as usize].open -= 1;
        if left > 0 {
            self.grants.change(&mut self.conns, &self.config, closed.peer);
        }
        Some(closed)
    }

    /// What has arrived whole of `host`: data report these, so no ACK need do so.
    pub(super) fn tell_with_data(&mut self, host: HostId) -> Whole {
        let Some(&at) = self.by_host.get(&host) else { return Whole::default() };
        let peer = &mut self.peers[at as usize];
        if !peer.unreported.is_empty() {
            let reported = peer.over.prefix() + 1 + u64::from(u32::BITS);
            peer.unreported.retain(|&(number, _)| number >= reported);
        }
        if peer.unreported.is_empty() {
            peer.ack_at = Time::NEVER;
        }
        // Low bits: its sender knows about where it stands.
        Whole { first_missing: peer.over.prefix() as u32, behind: peer.over.behind() as u32 }
    }

    /// Tell of messages that were delivered a while ago, where no data went that way: with each ACK
    /// of one, and of the 32 numbers after it.
    pub(super) fn tell_whole(&mut self, cx: &Cx<'_>, out: &mut Outbox) {
        while let Some(&(at, peer)) = self.acks.front() {
            let peer = &mut self.peers[peer as usize];
            if peer.ack_at == at {
                if at > cx.now {
                    return;
                }
                peer.ack_at = Time::NEVER;
                peer.tell(cx, out);
            }
            self.acks.pop_front();
        }
    }

    /// A sender asks what has become of a message.
    pub(super) fn on_need_ack(
        &mut self,
        cx: &mut Cx<'_>,
        (from, number): Named,
        id: MsgId,
        out: &mut Outbox,
    ) {
        let at = self.peer(cx, from);
        let peer = &mut self.peers[at as usize];
        let number = unwrap_index(peer.over.prefix(), number);
        if let Some(&at) = self.by_number.get(&(at, number)) {
            if let Some(conn) = self.conns.get_mut(at) {
                conn.alive = cx.now;
                out.push(conn.control(cx, Kind::Busy { mine: false }));
            }
        } else if peer.over.contains(number) {
            out.push(peer.ack(cx, (number, id)));
        } else if !peer.abandoned.contains(&number) {
            out.push(peer.control(cx, (number, id), Kind::Unknown { mine: false }));
        }
    }

    /// `host` has started again: its messages are over, and it numbers from zero.
    pub(super) fn restart(&mut self, cx: &mut Cx<'_>, host: HostId, out: &mut Outbox) {
        let Some(&peer) = self.by_host.get(&host) else { return };
        let of_it = self.conns.iter_mut().filter(|(_, conn)| conn.peer == peer);
        for at in of_it.map(|(at, _)| at).collect::<Vec<_>>() {
            if let Some(conn) = self.close(at) {
                cx.fx.failed(conn.key, FailReason::Cancelled);
            }
        }
        let state = &mut self.peers[peer as usize];
        state.over = Received::default();
        state.abandoned.clear();
        state.unreported.clear();
        state.ack_at = Time::NEVER;
        self.give_grants(cx, out);
    }

    /// Its sender has other things to send than what was asked for.
    pub(super) fn on_busy(&mut self, cx: &mut Cx<'_>, (from, number): Named) {
        let Some(&peer) = self.by_host.get(&from) else { return };
        let number = unwrap_index(self.peers[peer as usize].over.prefix(), number);
        let conn = self.by_number.get(&(peer, number)).copied();
        if let Some(conn) = conn.and_then(|at| self.conns.get_mut(at)) {
            (conn.heard, conn.in_vain) = (cx.now, None);
            conn.alive = cx.now;
        }
    }

    /// Its sender knows nothing of the message any more.
    pub(super) fn on_unknown(&mut self, cx: &mut Cx<'_>, (from, number): Named, out: &mut Outbox) {
        let peer = self.peer(cx, from);
        let state = &self.peers[peer as usize];
        let number = unwrap_index(state.over.prefix(), number);
        if state.may_begin(number) {
            self.abort_after(cx, (peer, number));
            self.give_grants(cx, out);
        }
    }

    /// All messages of `peer` that are more than `oldest` below `number` are over at their sender.
    fn forget_below(&mut self, cx: &mut Cx<'_>, (peer, number): (u32, u64), oldest: u16) {
        let state = &mut self.peers[peer as usize];
        let first = number.saturating_sub(u64::from(oldest));
        if oldest == u16::MAX || first <= state.over.prefix() {
            return;
        }
        state.abandoned = state.abandoned.split_off(&first);
        for number in state.over.prefix()..first {
            if !self.peers[peer as usize].over.contains(number) {
                self.abort_after(cx, (peer, number));
            }
        }
    }

    /// A message is over without having been delivered.
    fn abort_after(&mut self, cx: &mut Cx<'_>, (peer, number): (u32, u64)) {
        self.peers[peer as usize].over.insert(number);
        let Some(&at) = self.by_number.get(&(peer, number)) else { return };
        if let Some(conn) = self.close(at) {
            cx.fx.failed(conn.key, FailReason::Cancelled);
        }
    }

    /// Ask for what has been permitted and does not come; forget messages whose sender is silent
    /// for very long, and those of which nothing comes for so long although it was asked for.
    pub(super) fn look_for_silence(&mut self, cx: &mut Cx<'_>, out: &mut Outbox) {
        let mut dead = Vec::new();
        for (at, conn) in self.conns.iter_mut() {
            let silent = conn.in_vain.map_or(conn.alive, |asked| asked.min(conn.alive));
            if silent.saturating_add(self.config.rx_idle_timeout) <= cx.now {
                dead.push(at);
            } else if conn.under_way() > 0
                && conn.heard.max(conn.asked).saturating_add(self.config.resend_timeout) <= cx.now
            {
                conn.asked = cx.now;
                conn.in_vain.get_or_insert(cx.now);
                conn.ask_for_gaps(cx, out);
            }
        }
        for at in dead {
            let Some(conn) = self.close(at) else { continue };
            self.peers[conn.peer as usize].abandoned.insert(conn.number);
            cx.fx.failed(conn.key, FailReason::TimedOut);
        }
        self.give_grants(cx, out);
    }
}

impl Peer {
    /// Whether message `number`, which is not over, may be received.
    fn may_begin(&self, number: u64) -> bool {
        let from = self.over.prefix();
        (from..from + WINDOW_MAX).contains(&number)
            && !self.over.contains(number)
            && !self.abandoned.contains(&number)
    }

    /// Report all that has not been reported.
    fn tell(&mut self, cx: &Cx<'_>, out: &mut Outbox) {
        let mut unreported = std::mem::take(&mut self.unreported);
        unreported.sort_unstable();
        // Each ACK tells what is below the first that is missing.
        let mut reported = self.over.prefix();
        let known = unreported.partition_point(|&(number, _)| number < reported);
        let (below, ahead) = unreported.split_at(known);
        if let (Some(&latest), []) = (below.last(), ahead) {
            out.push(self.ack(cx, latest));
        }
        for &message in ahead {
            if message.0 >= reported {
                out.push(self.ack(cx, message));
                reported = message.0 + 1 + u64::from(u32::BITS);
            }
        }
    }

    /// Message `of` is whole, and so are others.
    pub(super) fn ack(&mut self, cx: &Cx<'_>, of: (u64, MsgId)) -> Control {
        // Low bits: its sender knows about where it stands.
        let first_missing = self.over.prefix() as u32;
        let is_whole = |n: &u32| self.over.contains(of.0 + 1 + u64::from(*n));
        let next = (0..u32::BITS).filter(is_whole).fold(0, |bits, n| bits | 1 << n);
        self.control(cx, of, Kind::Ack { first_missing, next })
    }

    fn control(&mut self, cx: &Cx<'_>, (number, msg): (u64, MsgId), kind: Kind) -> Control {
        self.departures += 1;
        let path = self.paths.path(cx.net, self.departures);
        control(self.host, path, msg, Repr { number: number as u32, kind })
    }
}

impl Conn {
    /// Packets that may come and are neither here nor wait for a grant again.
    pub(super) fn under_way(&self) -> u64 {
        self.granted.saturating_sub(self.count + self.refused)
    }

    /// Packets that need a grant still.
    pub(super) fn left(&self) -> u64 {
        self.packets - self.granted
    }

    /// Bytes that need a grant still.
    pub(super) fn left_bytes(&self) -> u64 {
        self.cut.left(self.granted)
    }

    /// Which packet this is, if the header, the environment's span and the message agree. On a real
    /// network a peer may say anything.
    fn index_of(&self, pkt: &Packet, data: &Data) -> Option<u64> {
        let size = if data.size == ENDLESS { UNBOUNDED } else { data.size };
        let prefix = self.received.prefix();
        let index = unwrap_index(prefix, data.index);
        let possible = size == self.cut.size
            && data.head == self.cut.short_head()
            && index < self.packets
            && self.received.admits(index)
            && data.len == self.cut.payload_of(index)
            && pkt.span.msg == self.key.id
            && pkt.span.len == u32::from(data.len)
            && self.cut.offset(index) == pkt.span.offset;
        possible.then_some(index)
    }

    /// Ask for the packets that have been permitted and are missing, the first gaps of them.
    fn ask_for_gaps(&mut self, cx: &Cx<'_>, out: &mut Outbox) {
        let mut first = self.received.prefix();
        for _ in 0..GAPS {
            while first < self.granted && self.received.contains(first) {
                first += 1;
            }
            let mut end = first;
            while end < self.granted && !self.received.contains(end) {
                end += 1;
            }
            if first == end {
                return;
            }
            // Low bits, as in grants; at the highest level (specs/homa.md#11, case 6).
            let kind = Kind::Resend { first: first as u32, end: end as u32, level: 0 };
            out.push(self.control(cx, kind));
            first = end;
        }
    }

    pub(super) fn control(&mut self, cx: &Cx<'_>, kind: Kind) -> Control {
        self.departures += 1;
        let path = self.paths.path(cx.net, self.departures);
        let header = Repr { number: self.number as u32, kind };
        control(self.key.src, path, self.key.id, header)
    }
}
