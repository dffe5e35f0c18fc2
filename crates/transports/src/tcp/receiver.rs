//! The receiving half (specs/tcp.md#2): reassembly, message boundaries,
//! acknowledgements with what they say of holes and marks, and the memory of finished connections.
//!
//! [`Receiver`] is what a subflow of MPTCP has of it, too.

use std::ops::Range;

use endpoint::{Cx, Effects, FailReason, Flags, Packet, RangeSet, Stat};
use units::{HostId, MsgId, MsgKey, Time};
use wire::tcp::{Control, Repr, SACK_BLOCKS_MAX, SACK_BLOCKS_WITH_TIMESTAMPS, SackBlocks};

use super::config::{Config, ReceiveWindow, Recovery};
use super::handshake;
use super::ictcp::{Arrival, Ictcp};
use super::retransmission::FastRetransmits;
use super::{CONN_BITS, WINDOW};
use crate::connection_ids::unwrap;
use crate::connections::{Found, Half, Opened};
use crate::deadlines::Deadlines;

/// The end of a message in the stream.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The first position after the message.
    end: u64,
    msg: MsgId,
    /// The sender has given it up: what came is all that comes.
    given_up: bool,
    /// The connection ends with it.
    last: bool,
}

/// The receiving half of one sequence space: what has come, and what acknowledgements say of it.
/// What becomes of the payload is the owner's affair.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub(crate) peer: HostId,
    conn: u32,
    /// How many its acknowledgements have room for.
    sack_blocks: usize,
    /// Of the last data packet: its acknowledgements hash to the same path.
    path: u32,
    /// Positions received. Everything below `prefix()` was received in order: RCV.NXT.
    received: RangeSet,
    /// In-order bytes not acknowledged yet (delayed acknowledgement).
    unacked: u64,
    /// A position in each of the ranges that the last acknowledgements named, most recent first
    /// (RFC 2018, section 4).
    recent: [u64; SACK_BLOCKS_MAX],
    /// What acknowledgements say of marks (ECE): whether the last segment had one (RFC 8257,
    /// section 3.2), or any since the sender last said that it reacts (RFC 3168, section 6.1.3).
    echo: bool,
    /// Acknowledgements sent.
    acks: u32,
    /// Largest payload seen: what counts as a full segment.
    largest: u64,
    /// What the delayed acknowledgement will say it answers.
    msg: MsgId,
    /// TS.Recent: the stamp to echo, of the last segment that did not begin beyond what the last
    /// acknowledgement (Last.ACK.sent) said (RFC 7323, section 4.3).
    stamp: u32,
    last_ack: u64,
    /// What came again since the last acknowledgement (RFC 2883).
    duplicate: Option<Range<u64>>,
}

/// The ends of messages received beyond the first position that is missing, highest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageEnds(Vec<Mark>);

/// The receiving half of a connection.
#[derive(Clone, Debug)]
struct Connection {
    receiver: Receiver,
    ends: MessageEnds,
}

/// An acknowledgement to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub(crate) peer: HostId,
    pub(crate) conn: u32,
    /// As on the wire.
    pub(crate) number: u32,
    /// FIN: the connection is complete. ECE: it echoes congestion. SYN: it opens the connection.
    pub(crate) control: Control,
    pub(crate) sack: SackBlocks,
    /// The window field.
    pub(crate) window: u16,
    pub(crate) path: u32,
    /// The message of the data that it answers.
    pub(crate) msg: MsgId,
    /// The stamp that it echoes.
    pub(crate) stamp: u32,
}

/// Every connection to this host.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    connections: Opened<Connection, CONN_BITS>,
    /// Of delayed acknowledgements, by slot of the connection.
    pub(crate) deadlines: Deadlines,
    /// What fast retransmits have brought.
    fast_retransmits: FastRetransmits,
    /// The windows of the connections, where there are any.
    ictcp: Option<Ictcp>,
}

impl Receivers {
    pub(crate) fn new(config: &Config) -> Self {
        let ictcp = match config.receive_window {
            ReceiveWindow::Unlimited => None,
            ReceiveWindow::Ictcp(params) => Some(Ictcp::new(params)),
        };
        Self { ictcp, ..Self::default() }
    }

    /// A packet of `bytes` has arrived at this host, whatever it is. Segments carry up to `mss`.
    pub(crate) fn arrived(&mut self, cx: &Cx<'_>, mss: u16, bytes: u16) {
        if let Some(ictcp) = &mut self.ictcp {
            let capacity = cx.net.nics.iter().map(|rate| rate.0).sum();
            ictcp.arrived(cx.now, capacity, mss, bytes);
        }
    }

    /// Say the window in an acknowledgement of everything below `next`.
    fn advertise(&mut self, slot: u32, now: Time, next: u64, ack: Ack) -> Ack {
        match &mut self.ictcp {
            Some(ictcp) => Ack { window: ictcp.advertise(slot, now, next), ..ack },
            None => ack,
        }
    }

    /// A data segment of connection `conn` of `pkt.src`. Returns the acknowledgements to send now:
    /// of what came before it, and of this one too.
    pub(crate) fn on_data(
        &mut self,
        config: &Config,
        now: Time,
        conn: u32,
        header: &Repr,
        pkt: &Packet,
        fx: &mut Effects,
    ) -> [Option<Ack>; 2] {
        let Some(space) = segment_space(header, pkt) else { return [None, None] };
        let peer = pkt.src;
        let slot = match self.connections.find((peer, conn)) {
            Found::Open(slot) => slot,
            Found::Over => {
                self.fast_retransmits.arrived(conn, header, pkt, false, fx);
                return [None, Some(answer_finished(conn, header, pkt, space))];
            }
            Found::New => match self.create(config, now, peer, conn) {
                Some(slot) => slot,
                None => {
                    fx.count(Stat::Rejected);
                    return [None, None];
                }
            },
        };
        let Connection { receiver, ends } = &mut self.connections[slot];
        let expected = receiver.next();
        let Some(seq) = receiver.position(config, header.seq) else { return [None, None] };
        if let Some(ictcp) = &mut self.ictcp {
            let (len, last) = (u64::from(pkt.span.len), ends_message(header.control));
            let echo = header.timestamps.map_or(0, |times| times.echo);
            ictcp.on_data(slot, now, Arrival { echo, len, last });
        }
        let before = receiver.arrive(config, header, pkt, seq, space);
        let range = seq..seq + space;
        place(&receiver.received, range.clone(), pkt, fx);
        let progress = receiver.insert(range);
        let new = progress != Progress::Duplicate;
        self.fast_retransmits.arrived(conn, header, pkt, new, fx);
        if new {
            ends.note(seq + space, header.control, pkt.span.msg);
        }
        let complete = ends.deliver(peer, receiver.next(), fx);
        let due = complete || receiver.is_ack_due(config, progress);
        let ack = due.then(|| receiver.acknowledge(config, complete, Some(seq)));
        let next = receiver.next();
        delay_ack(&mut self.deadlines, config, now, slot, due);
        let before = before.map(|ack| self.advertise(slot, now, expected, ack));
        let ack = ack.map(|ack| self.advertise(slot, now, next, ack));
        if complete {
            self.finish(slot);
        }
        [before, ack]
    }

    /// The answer to a SYN of connection `conn`, unless that is over.
    pub(crate) fn on_syn(
        &self,
        config: &Config,
        conn: u32,
        header: &Repr,
        pkt: &Packet,
    ) -> Option<Ack> {
        let over = self.connections.find((pkt.src, conn)) == Found::Over;
        (!over).then(|| handshake::answer(config, conn, header, pkt))
    }

    /// The next delayed acknowledgement that is due.
    pub(crate) fn pop_delayed(&mut self, config: &Config, now: Time) -> Option<Ack> {
        let slot = self.deadlines.pop(now)?;
        let receiver = &mut self.connections[slot].receiver;
        let (ack, next) = (receiver.acknowledge(config, false, None), receiver.next());
        Some(self.advertise(slot, now, next, ack))
    }

    /// The slot of a new connection; `None` if its peer has too many.
    fn create(&mut self, config: &Config, now: Time, peer: HostId, conn: u32) -> Option<u32> {
        let Self { connections, deadlines, ictcp, .. } = self;
        let room =
            if config.has_timestamps() { SACK_BLOCKS_WITH_TIMESTAMPS } else { SACK_BLOCKS_MAX };
        let new = || {
            let (receiver, ends) = (Receiver::new(peer, conn, room), MessageEnds::default());
            Connection { receiver, ends }
        };
        let slot = connections.open(now, (peer, conn), new, |slot, _| {
            deadlines.set(slot, Time::NEVER);
            ictcp.iter_mut().for_each(|ictcp| ictcp.close(slot));
        })?;
        let connection = &mut connections[slot];
        connection.receiver.reopen(peer, conn);
        connection.ends.clear();
        if let Some(ictcp) = ictcp {
            ictcp.open(slot);
        }
        Some(slot)
    }

    /// See [`endpoint::Endpoint::on_restart`].
    pub(super) fn restart(&mut self, host: HostId) {
        let Self { connections, deadlines, ictcp, .. } = self;
        connections.restart(host, |slot, _| {
            deadlines.set(slot, Time::NEVER);
            ictcp.iter_mut().for_each(|ictcp| ictcp.close(slot));
        });
    }

    fn finish(&mut self, slot: u32) {
        let Receiver { peer, conn, .. } = self.connections[slot].receiver;
        self.connections.finish(slot, (peer, conn));
        if let Some(ictcp) = &mut self.ictcp {
            ictcp.close(slot);
        }
    }
}

impl Half for Connection {
    fn progress(&self) -> u64 {
        self.receiver.next()
    }
}

/// What the arrival of a segment did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// In order, and no hole before or after.
    InOrder,
    /// Out of order, or (a part of) a hole filled: acknowledged at once.
    Other,
    /// Everything had come before: acknowledged at once, too.
    Duplicate,
}

impl Receiver {
    /// Of connection `conn` of `peer`, whose acknowledgements have room for so many SACK blocks.
    pub(crate) fn new(peer: HostId, conn: u32, sack_blocks: usize) -> Self {
        Self {
            peer,
            conn,
            sack_blocks,
            path: 0,
            received: RangeSet::new(),
            unacked: 0,
            recent: [0; SACK_BLOCKS_MAX],
            echo: false,
            acks: 0,
            largest: 0,
            msg: MsgId(0),
            stamp: 0,
            last_ack: 0,
            duplicate: None,
        }
    }

    /// Begin anew as another connection, keeping the memory.
    pub(crate) fn reopen(&mut self, peer: HostId, conn: u32) {
        self.received.clear();
        (self.peer, self.conn) = (peer, conn);
        (self.unacked, self.acks, self.largest) = (0, 0, 0);
        (self.recent, self.echo) = ([0; SACK_BLOCKS_MAX], false);
        (self.stamp, self.last_ack, self.duplicate) = (0, 0, None);
    }

    /// The first position that is missing: RCV.NXT.
    pub(crate) fn next(&self) -> u64 {
        self.received.prefix()
    }

    /// The position that `seq` of a header names; `None` if it makes no sense.
    pub(crate) fn position(&self, config: &Config, seq: u32) -> Option<u64> {
        unwrap(seq.wrapping_sub(config.isn), self.next(), 32)
    }

    /// A segment has come: note what it says beside its payload, `space` positions from `seq` on.
    /// The acknowledgement, if any, is of what came before it.
    pub(crate) fn arrive(
        &mut self,
        config: &Config,
        header: &Repr,
        pkt: &Packet,
        seq: u64,
        space: u64,
    ) -> Option<Ack> {
        let before = self.note_mark(config, header.control, pkt);
        if let Some(times) = header.timestamps
            && seq <= self.last_ack
        {
            self.stamp = times.value;
        }
        self.path = pkt.path;
        self.msg = pkt.span.msg;
        self.largest = self.largest.max(space);
        before
    }

    /// What the segment says of congestion. Where each mark is echoed, what waits for a delayed
    /// acknowledgement must get it before the echo changes (RFC 8257, section 3.2, figure 1).
    fn note_mark(&mut self, config: &Config, control: Control, pkt: &Packet) -> Option<Ack> {
        if !config.ecn {
            return None;
        }
        let marked = pkt.flags.has(Flags::CE);
        if !marked && !self.echo {
            return None;
        }
        if !config.rule.params().echoes_each_mark() {
            self.echo = marked || self.echo && !control.has(Control::CWR);
            return None;
        }
        let waiting = marked != self.echo && self.unacked > 0;
        let before = waiting.then(|| self.acknowledge(config, false, None));
        self.echo = marked;
        before
    }

    /// Acknowledgements of what came last take `path`, whatever it took itself.
    pub(crate) fn answer_over(&mut self, path: u32) {
        self.path = path;
    }

    /// The positions `range` have come.
    pub(crate) fn insert(&mut self, range: Range<u64>) -> Progress {
        let before = self.received.prefix();
        let had_hole = self.received.fragments() > usize::from(before > 0);
        if self.received.insert(range.clone()) == 0 {
            self.duplicate = Some(range);
            return Progress::Duplicate;
        }
        let after = self.received.prefix();
        if had_hole || after == before {
            return Progress::Other;
        }
        self.unacked += after - before;
        Progress::InOrder
    }

    pub(crate) fn is_ack_due(&self, config: &Config, progress: Progress) -> bool {
        config.delayed_ack.is_none()
            || progress != Progress::InOrder
            || self.unacked >= 2 * self.largest
            || self.acks < config.quick_acks
    }

    /// The acknowledgement of everything received, caused by the segment at `latest`.
    pub(crate) fn acknowledge(
        &mut self,
        config: &Config,
        complete: bool,
        latest: Option<u64>,
    ) -> Ack {
        self.unacked = 0;
        self.acks = self.acks.saturating_add(1);
        self.last_ack = self.received.prefix();
        let number = (self.last_ack as u32).wrapping_add(config.isn);
        let sack = match config.recovery {
            Recovery::Reno | Recovery::NewReno => SackBlocks::NONE,
            Recovery::Sack => self.sack_blocks(config, latest),
        };
        let Self { peer, conn, path, msg, stamp, .. } = *self;
        let control = ack_control(complete, self.echo);
        Ack { peer, conn, number, control, sack, window: WINDOW, path, msg, stamp }
    }

    /// The duplicate, if that is to be reported (RFC 2883, section 4), and the ranges held beyond
    /// RCV.NXT: first that of the segment at `latest`, then those named last (RFC 2018, section 4).
    fn sack_blocks(&mut self, config: &Config, latest: Option<u64>) -> SackBlocks {
        let next = self.received.prefix();
        let number = |at: u64| (at as u32).wrapping_add(config.isn);
        let mut blocks = SackBlocks::NONE;
        let reports = config.dsack && self.sack_blocks > 0;
        if let Some(range) = self.duplicate.take().filter(|_| reports) {
            blocks.push(number(range.start), number(range.end));
        }
        let room = self.sack_blocks - blocks.as_slice().len();
        let mut named = 0;
        let mut recent = [0; SACK_BLOCKS_MAX];
        for at in latest.into_iter().chain(self.recent) {
            let Some(range) = self.received.range_of(at).filter(|range| range.start > next) else {
                continue;
            };
            if named < room && !recent[..named].contains(&range.start) {
                recent[named] = range.start;
                named += 1;
                blocks.push(number(range.start), number(range.end));
            }
        }
        self.recent = recent;
        blocks
    }
}

impl MessageEnds {
    /// A segment of message `msg` has come that ends before position `end`.
    pub(crate) fn note(&mut self, end: u64, control: Control, msg: MsgId) {
        if ends_message(control) {
            let (last, given_up) = (control.has(Control::FIN), control.has(Control::RST));
            let at = self.0.partition_point(|m| m.end > end);
            self.0.insert(at, Mark { end, msg, given_up, last });
        }
    }

    /// Hand over the messages of `peer` that are whole: everything below `next` is here. True if
    /// the connection is over.
    pub(crate) fn deliver(&mut self, peer: HostId, next: u64, fx: &mut Effects) -> bool {
        while let Some(&mark) = self.0.last()
            && mark.end <= next
        {
            self.0.pop();
            let key = MsgKey { src: peer, id: mark.msg };
            if mark.given_up {
                fx.failed(key, FailReason::Cancelled);
            } else {
                fx.delivered(key);
            }
            if mark.last {
                return true;
            }
        }
        false
    }

    /// Forget everything, keep the memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Place what the packet carries of the positions `range` and is not among those `received`.
#[inline(always)] // a part of the way of every segment
pub(crate) fn place(received: &RangeSet, range: Range<u64>, pkt: &Packet, fx: &mut Effects) {
    if pkt.span.len == 0 {
        return;
    }
    let key = MsgKey { src: pkt.src, id: pkt.span.msg };
    // In order, as most come, or beyond everything.
    if received.iter().next_back().is_none_or(|last| last.end <= range.start) {
        fx.place(key, pkt.span.offset, (range.end - range.start) as u32);
        return;
    }
    for gap in received.gaps(range.clone()) {
        let offset = pkt.span.offset.saturating_add(gap.start - range.start);
        fx.place(key, offset, (gap.end - gap.start) as u32);
    }
}

/// An acknowledgement of the connection in `slot` was `due` now, or the `deadlines` are to see to
/// it.
pub(crate) fn delay_ack(
    deadlines: &mut Deadlines,
    config: &Config,
    now: Time,
    slot: u32,
    due: bool,
) {
    match (due, config.delayed_ack) {
        (true, Some(_)) => deadlines.set(slot, Time::NEVER),
        (false, Some(delay)) if !deadlines.is_set(slot) => deadlines.set(slot, now + delay),
        _ => {}
    }
}

/// The answer to a segment of connection `conn`, which is over, of `space` positions: a duplicate,
/// for [`FastRetransmits::arrived`] to count.
pub(crate) fn answer_finished(conn: u32, header: &Repr, pkt: &Packet, space: u64) -> Ack {
    Ack {
        peer: pkt.src,
        conn,
        number: header.seq.wrapping_add(space as u32),
        control: ack_control(true, pkt.flags.has(Flags::CE)),
        sack: SackBlocks::NONE,
        window: WINDOW,
        path: pkt.path,
        msg: pkt.span.msg,
        stamp: header.timestamps.map_or(0, |times| times.value),
    }
}

/// What an acknowledgement says beside its number.
fn ack_control(complete: bool, echo: bool) -> Control {
    let mut control = Control::ACK;
    for (set, bit) in [(complete, Control::FIN), (echo, Control::ECE)] {
        control = if set { control.with(bit) } else { control };
    }
    control
}

/// Whether a segment with these bits is the last of a message.
fn ends_message(control: Control) -> bool {
    control.has(Control::FIN) || control.has(Control::PSH)
}

/// The sequence numbers that a segment occupies; `None` if it carries nothing at all.
pub(crate) fn segment_space(header: &Repr, pkt: &Packet) -> Option<u64> {
    match pkt.span.len {
        0 => ends_message(header.control).then_some(1),
        len => Some(u64::from(len)),
    }
}

#[cfg(test)]
impl Receivers {
    /// Connections with state.
    pub(crate) fn open(&self) -> usize {
        self.connections.open_count()
    }

    /// Connections with state, places for such, and ranges of ids of those with `peer` that are
    /// over.
    pub(crate) fn memory(&self, peer: HostId) -> (usize, usize, usize) {
        (self.open(), self.connections.places(), self.connections.ranges(peer))
    }
}

#[cfg(test)]
mod tests {
    use units::Dur;

    use super::super::rule::{RuleConfig, dctcp};
    use super::*;

    const PEER: HostId = HostId(7);

    struct Script {
        config: Config,
        receivers: Receivers,
    }

    impl Script {
        fn new(config: Config) -> Self {
            Self { config, receivers: Receivers::new(&config) }
        }

        /// Segment `n` of 1000 bytes comes; what is acknowledged, and with it ECE.
        fn data(&mut self, n: u64, marked: bool, reduced: bool) -> Vec<Ack> {
            let mut pkt = Packet { src: PEER, ..Packet::EMPTY };
            pkt.span.len = 1000;
            pkt.span.offset = n * 1000;
            if marked {
                pkt.flags.set(Flags::CE);
            }
            let control = if reduced { Control::ACK.with(Control::CWR) } else { Control::ACK };
            let seq = (n * 1000) as u32;
            let sack = SackBlocks::NONE;
            let header = Repr {
                src_port: 0,
                dst_port: 0,
                seq,
                ack: 0,
                control,
                window: 0,
                sack,
                timestamps: None,
            };
            let mut fx = Effects::new();
            let acks = self.receivers.on_data(&self.config, Time::ZERO, 1, &header, &pkt, &mut fx);
            acks.into_iter().flatten().collect()
        }

        fn echoes(&mut self, n: u64, marked: bool, reduced: bool) -> Vec<(u32, bool)> {
            self.data(n, marked, reduced)
                .iter()
                .map(|ack| (ack.number / 1000, ack.control.has(Control::ECE)))
                .collect()
        }
    }

    /// RFC 8257, figure 1: a change of marks is echoed at once, for what came before it.
    #[test]
    fn dctcp_echoes_each_mark_with_delayed_acknowledgements() {
        let rule = RuleConfig::Dctcp(dctcp::Params::RFC);
        let delayed_ack = Some(Dur::from_ms(40));
        let config = Config {
            rule,
            ecn: true,
            delayed_ack,
            quick_acks: 0,
            ..Config::linux_datacenter(1000)
        };
        let mut s = Script::new(config);
        assert_eq!(s.echoes(0, false, false), []);
        assert_eq!(s.echoes(1, true, false), [(1, false)], "segment 0, before the mark");
        assert_eq!(s.echoes(2, true, false), [(3, true)]);
        assert_eq!(s.echoes(3, true, false), []);
        assert_eq!(s.echoes(4, false, false), [(4, true)]);
        assert_eq!(s.echoes(5, false, false), [(6, false)]);
    }

    /// RFC 3168, section 6.1.3: ECE until CWR.
    #[test]
    fn a_mark_is_echoed_until_the_sender_has_reacted() {
        let config = Config { ecn: true, delayed_ack: None, ..Config::linux_datacenter(1000) };
        let mut s = Script::new(config);
        assert_eq!(s.echoes(0, true, false), [(1, true)]);
        assert_eq!(s.echoes(1, false, false), [(2, true)]);
        assert_eq!(s.echoes(2, false, true), [(3, false)]);
        assert_eq!(s.echoes(3, true, true), [(4, true)], "a new mark on the segment that says so");
    }

    #[test]
    fn without_ecn_marks_mean_nothing() {
        let mut s = Script::new(Config { delayed_ack: None, ..Config::linux_datacenter(1000) });
        assert_eq!(s.echoes(0, true, false), [(1, false)]);
    }

    /// RFC 2018, section 4: the block of the segment just received comes first, then the others as
    /// they were named last; four at most, and none that is acknowledged.
    #[test]
    fn sack_blocks_name_the_latest_first() {
        let config = Config { recovery: Recovery::Sack, ..Config::linux_datacenter(1000) };
        let mut s = Script::new(config);
        let mut blocks = |n| {
            let acks = s.data(n, false, false);
            let last = acks.last().unwrap().sack;
            last.as_slice().iter().map(|&(l, r)| (l / 1000, r / 1000)).collect::<Vec<_>>()
        };
        assert_eq!(blocks(0), []);
        assert_eq!(blocks(2), [(2, 3)]);
        assert_eq!(blocks(4), [(4, 5), (2, 3)]);
        assert_eq!(blocks(6), [(6, 7), (4, 5), (2, 3)]);
        assert_eq!(blocks(5), [(4, 7), (2, 3)], "two have become one");
        assert_eq!(blocks(2), [(2, 3), (4, 7)], "a duplicate is news of where it lies");
        assert_eq!(blocks(9), [(9, 10), (2, 3), (4, 7)]);
        assert_eq!(blocks(11), [(11, 12), (9, 10), (2, 3), (4, 7)]);
        assert_eq!(blocks(13), [(13, 14), (11, 12), (9, 10), (2, 3)]);
        assert_eq!(blocks(1), [(13, 14), (11, 12), (9, 10)], "1 to 3 are acknowledged now");
    }
}
