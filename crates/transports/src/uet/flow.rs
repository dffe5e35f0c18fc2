//! [`Flow`]: one connection at its sender, of one message or of several. State and rules; whose
//! turn it is, is [`super::sender`]'s business.

use std::collections::VecDeque;

use endpoint::{Cx, FlowState, Msg, MsgId, UNBOUNDED};
use units::{Dur, Time};
use wire::uet::{Ack, UNIT, UNITS};

use super::config::{Config, Network, WindowControl};
use super::credit::{Credit, Demand};
use super::nscc::{Answer, Nscc};
use super::pieces::{Leaving, Piece};
use super::sleek::{Seen, Sleek};
use crate::entropy::{Entropy, Feedback, Rule, Waits};
use crate::received::unwrap_index;

/// Packets between the first that has not arrived and the last that was sent, at most. Ours: a
/// receiver accepts packets so far beyond the first gap.
const REACH: u64 = 4096;
/// A packet that has been sent so often is not sent again before its timeout. Ours: where headers
/// alone fill a link, and go first, nothing else would ever get through.
const COPIES_MAX: u8 = 128;

/// A message that has nothing in flight, and has said what it needs, asks for credit after so many
/// timeouts without any. Ours: what receivers give may be lost, too, and among a thousand messages
/// a turn takes long.
const TURN: u64 = 16;
/// The number of probes that ask for a path alone: those of [`Sleek`] count from 1.
const OF_A_PATH: u32 = 0;

/// What is known of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    /// Trimmed or lost: it waits for retransmission.
    Resend,
    Arrived,
}

/// A packet from the first that has not arrived on.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// When it was last sent.
    at: Time,
    /// The EV that it then had.
    entropy: u16,
    /// How often it was sent.
    copies: u8,
    fate: Fate,
}

/// What goes out next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) msg: Msg,
    /// Its number in the message, and in the connection.
    pub(super) index: u64,
    pub(super) seq: u64,
    pub(super) len: u16,
    pub(super) entropy: u16,
    pub(super) ack_request: bool,
    pub(super) repeated: bool,
    pub(super) target: u32,
}

/// One connection at its sender.
#[derive(Debug)]
pub(super) struct Flow {
    /// The message that it began with, whose id is its own.
    pub(super) msg: Msg,
    /// It is kept for more messages.
    pub(super) kept: bool,
    pieces: Leaving,
    /// Since when it has had none, if it is kept.
    idle: Option<Time>,
    network: Network,
    nscc: Nscc,
    /// Where receivers give any.
    credit: Option<Credit>,
    /// Where it looks for losses without being told.
    sleek: Option<Sleek>,
    entropy: Entropy,
    /// All packets below have arrived.
    base: u64,
    /// From `base` on, as far as packets have been sent.
    records: VecDeque<Record>,
    /// How many of them wait for retransmission, and the first that might.
    resends: u64,
    resend_from: u64,
    /// How many of them are in flight.
    outstanding: u64,
    /// Packets in the order in which they were sent. Of an older copy, or of one that has been
    /// answered, nothing is expected any more.
    order: VecDeque<(Time, u64)>,
    /// Bytes on the wire that have not been sent, and of the packets that wait for retransmission.
    backlog: u64,
    resend_bytes: u64,
    /// Since when it has waited for the credit that it asked for.
    asked: Option<Time>,
    /// From when on it may ask again.
    may_ask: Time,
    /// Since when it has waited for credit.
    starved: Option<Time>,
    /// The credit that it last asked for, in a packet or by REQ.
    target: u32,
    /// Bytes on the wire that were sent and neither counted by the receiver nor refused nor lost.
    /// The receiver's count is rounded up, so that it can be a little less than nothing.
    in_flight: i64,
    /// The receiver's last count.
    received: u32,
    /// EQDS: what has arrived is counted here, by its packets.
    own_count: bool,
    /// It waits for its turn to send.
    pub(super) listed: bool,
    /// When an answer last came, or the first packet went since nothing was in flight.
    heard: Time,
    /// How long, together, answers were waited for in vain before that.
    in_vain: Dur,
    /// It may have to be looked at sooner than [`Flow::due`] last said.
    sooner: bool,
    /// How long an answer is waited for at first.
    rto: Dur,
    /// How often that was doubled since something arrived, and when it last was.
    doublings: u32,
    doublings_max: u32,
    doubled: Time,
}

impl Flow {
    pub(super) fn new(cx: &Cx<'_>, config: &Config, msg: Msg, kept: bool) -> Self {
        let network = config.network(cx, msg.dst);
        let draw = cx.draw.part(u64::from(msg.dst.0)).part(msg.id.0);
        let packets = config.framing().packets(msg.len);
        let most = config.window_max(&network);
        let rto = config.rto.unwrap_or_else(|| network.rto());
        let waits = Waits { rtt: network.rtt, rto };
        let of = (network, config.trimming, most);
        Self {
            msg,
            kept,
            pieces: Leaving::new(msg, packets),
            idle: None,
            network,
            nscc: Nscc::new(cx.now, (config.control, config.profile), of, config.initial_window),
            credit: config.credit.then(|| Credit::new(config.credit_rule, most)),
            sleek: config.sleek.then(Sleek::default),
            entropy: Entropy::new(config.spray, config.entropies, waits, draw),
            base: 0,
            records: VecDeque::new(),
            resends: 0,
            resend_from: 0,
            outstanding: 0,
            order: VecDeque::new(),
            backlog: wire_bytes(config, msg.len, packets),
            resend_bytes: 0,
            asked: None,
            may_ask: Time::ZERO,
            starved: None,
            target: 0,
            in_flight: 0,
            received: 0,
            own_count: matches!(config.control, WindowControl::Dctcp | WindowControl::Smartt),
            listed: false,
            heard: cx.now,
            in_vain: Dur::ZERO,
            sooner: true,
            rto,
            doublings: 0,
            doublings_max: u32::from(config.rto_doublings),
            doubled: Time::ZERO,
        }
    }

    /// `msg` comes after those that it has.
    pub(super) fn push(&mut self, config: &Config, msg: Msg) {
        let packets = config.framing().packets(msg.len);
        self.pieces.push(msg, packets);
        self.backlog = self.backlog.saturating_add(wire_bytes(config, msg.len, packets));
        self.idle = None;
    }

    /// The next of its messages that has arrived.
    pub(super) fn pop_arrived(&mut self, now: Time) -> Option<MsgId> {
        let id = self.pieces.pop(self.base);
        if self.kept && self.is_done() {
            self.idle = self.idle.or(Some(now));
        }
        id
    }

    /// Message `id`, one of several, is not wanted any more: no new packet of it is sent. Whether
    /// it is here.
    pub(super) fn cancel(&mut self, now: Time, config: &Config, id: MsgId) -> bool {
        let sent = self.sent();
        let Some(Piece { msg, first, end, .. }) = self.pieces.cancel(id, sent) else {
            return false;
        };
        let begun = sent.clamp(first, end) - first;
        let left = msg.len.saturating_sub(begun.saturating_mul(u64::from(config.payload)));
        let unsent = wire_bytes(config, left, end - first - begun);
        self.backlog = self.backlog.saturating_sub(unsent);
        self.await_credit(now);
        true
    }

    /// Bytes of full packets of message `id` that were never sent, but for the last two packets.
    pub(super) fn unsent(&self, config: &Config, id: MsgId) -> Option<u64> {
        let piece = self.pieces.get(id)?;
        if piece.msg.len == UNBOUNDED {
            return Some(UNBOUNDED);
        }
        let packets = piece.end.saturating_sub(self.sent().max(piece.first) + 2);
        Some(packets * u64::from(config.payload))
    }

    /// Take up to `bytes` of that out. How many were taken.
    pub(super) fn shorten(&mut self, config: &Config, id: MsgId, bytes: u64) -> u64 {
        let payload = u64::from(config.payload);
        let packets = self.unsent(config, id).unwrap_or(0).min(bytes) / payload;
        let taken = packets * payload;
        self.pieces.shorten(id, packets, taken);
        if self.msg.id == id {
            self.msg.len -= taken;
        }
        self.backlog = self.backlog.saturating_sub(wire_bytes(config, taken, packets));
        taken
    }

    /// The messages that it still has.
    pub(super) fn messages(&self) -> impl Iterator<Item = MsgId> {
        self.pieces.ids()
    }

    /// How long the answer to what was sent at `at` is waited for. Each packet of a flight that is
    /// lost waits as long as the first.
    fn wait(&self, cx: &Cx<'_>, at: Time) -> Dur {
        let last = u32::from(at < self.doubled);
        let doublings = self.doublings.saturating_sub(last).min(self.doublings_max);
        let wait = self.rto.0.saturating_mul(1 << doublings);
        Dur(wait.saturating_add(cx.net.answer_lateness().0))
    }

    /// When the answer to what was sent at `at` is overdue.
    fn overdue(&self, cx: &Cx<'_>, at: Time) -> Time {
        at.saturating_add(self.wait(cx, at))
    }

    /// What it may send, and what of it is in flight.
    pub(super) fn state(&self) -> FlowState {
        let bytes = |bytes: i64| u64::try_from(bytes).unwrap_or(0);
        FlowState {
            window: self.nscc.some_window(),
            in_flight: Some(bytes(self.in_flight)),
            credit: self.credit.as_ref().map(|credit| bytes(credit.left())),
            ..FlowState::default()
        }
    }

    /// All of it has arrived.
    pub(super) fn is_done(&self) -> bool {
        self.base == self.pieces.end()
    }

    /// Packets sent at least once.
    fn sent(&self) -> u64 {
        self.base + self.records.len() as u64
    }

    fn record(&mut self, seq: u64) -> Option<&mut Record> {
        self.records.get_mut(usize::try_from(seq.checked_sub(self.base)?).ok()?)
    }

    /// Bytes on the wire of a packet.
    fn size(&self, config: &Config, seq: u64) -> u16 {
        let Some(piece) = self.pieces.of(seq) else { return config.header };
        config.framing().payload_of(seq - piece.first, piece.msg.len) + config.header
    }

    /// The packet that is next: the lowest that waits for retransmission, else a new one.
    fn next(&mut self) -> Option<u64> {
        if self.resends == 0 {
            let seq = self.sent();
            return (seq < self.pieces.end() && seq - self.base < REACH).then_some(seq);
        }
        let from = self.resend_from.max(self.base);
        let mut records = self.records.range((from - self.base) as usize..);
        let ahead = records.position(|record| record.fate == Fate::Resend)?;
        self.resend_from = from + ahead as u64;
        Some(self.resend_from)
    }

    fn fits(&self, size: u16) -> bool {
        self.nscc.admits(self.in_flight, size)
    }

    /// Whether what was lost may go whatever the window says.
    fn recovers(&self) -> bool {
        self.resends > 0 && self.sleek.as_ref().is_some_and(Sleek::is_recovering)
    }

    /// Whether credit, where it is given, permits to send.
    fn has_credit(&self) -> bool {
        self.credit.as_ref().is_none_or(|credit| credit.left() > 0)
    }

    /// The packet that may be sent now.
    fn sendable(&mut self, config: &Config) -> Option<u64> {
        let seq = self.next()?;
        let fits = self.recovers() || self.fits(self.size(config, seq));
        (self.has_credit() && fits).then_some(seq)
    }

    /// Whether something may be sent now.
    pub(super) fn may_send(&mut self, config: &Config) -> bool {
        self.sendable(config).is_some()
    }

    /// Send the next packet, if it may be sent. So many messages of this host, with this one, wait
    /// for their turn.
    pub(super) fn send(&mut self, cx: &Cx<'_>, config: &Config, turns: u64) -> Option<Departure> {
        let seq = self.sendable(config)?;
        let size = self.size(config, seq);
        let &Piece { msg, first, .. } = self.pieces.of(seq)?;
        let entropy = self.entropy.choose(cx.now);
        let (at, sent) = (cx.now, self.sent());
        let repeated = seq < sent;
        if repeated {
            self.resends -= 1;
            self.resend_bytes -= u64::from(size);
            let record = self.record(seq)?;
            let copies = record.copies.saturating_add(1);
            *record = Record { at, entropy, copies, fate: Fate::InFlight };
        } else {
            self.backlog = self.backlog.saturating_sub(u64::from(size));
            self.records.push_back(Record { at, entropy, copies: 1, fate: Fate::InFlight });
        }
        if self.outstanding == 0 {
            self.heard = at;
            self.sooner = true;
        }
        self.outstanding += 1;
        self.order.push_back((at, seq));
        self.in_flight = self.in_flight.saturating_add(i64::from(size));
        let full = self.nscc.asks(self.in_flight, size, config.sack_threshold);
        let target = self.spend(cx, config, size, turns);
        let exhausted = full || self.credit.as_ref().is_some_and(Credit::is_used_up);
        let ack_request = repeated || seq + 1 == self.pieces.end() || exhausted;
        let index = seq - first;
        let len = config.framing().payload_of(index, msg.len);
        Some(Departure { msg, index, seq, len, entropy, ack_request, repeated, target })
    }

    /// A packet of `size` bytes takes credit. What the message asks for with it.
    fn spend(&mut self, cx: &Cx<'_>, config: &Config, size: u16, turns: u64) -> u32 {
        let demand = self.demand(config, turns);
        let Some(credit) = &mut self.credit else { return 0 };
        credit.spend(size);
        self.target = credit.ask_with_packet(demand);
        self.await_credit(cx.now);
        self.target
    }

    /// What it has to ask for credit for.
    fn demand(&self, config: &Config, turns: u64) -> Demand {
        let (backlog, resends) = (self.backlog, self.resend_bytes);
        let (window, mtu) = (self.nscc.some_window(), u64::from(config.mtu()));
        Demand { backlog, resends, window, mtu, turns }
    }

    /// Know since when it waits for credit, if it does.
    fn await_credit(&mut self, now: Time) {
        let unsent = self.resends > 0 || self.sent() < self.pieces.end();
        let waits = unsent && !self.has_credit();
        self.starved = if waits { self.starved.or(Some(now)) } else { None };
        if !waits {
            self.asked = None;
        }
    }

    /// The receiver has given so much credit in all.
    pub(super) fn on_credit(&mut self, now: Time, given: u32) {
        self.hear(now);
        let Some(credit) = &mut self.credit else { return };
        if credit.give(given) {
            self.asked = None;
        }
        self.await_credit(now);
    }

    /// The answer to packet `psn`, if it says what can be: that sent packets have arrived.
    pub(super) fn on_ack(
        &mut self,
        cx: &Cx<'_>,
        config: &Config,
        (psn, entropy): (u32, u16),
        ack: &Ack,
    ) -> bool {
        let seq = unwrap_index(self.base, psn);
        let expected = unwrap_index(self.base, ack.expected);
        let first = unwrap_index(self.base, ack.base);
        // What was never sent has not arrived, whatever a peer says.
        let sent = self.sent();
        if (seq >= sent && !ack.probe) || expected > sent {
            return false;
        }
        self.hear(cx.now);
        let rtt = match ack.probe {
            true => self.probe_sample(cx, psn),
            false => self.sample(cx, seq, ack.repeated),
        };
        let mut newly = self.count(ack.received);
        let bitmap = (0..64).filter(|n| ack.bitmap >> n & 1 == 1).map(|n| first.wrapping_add(n));
        newly +=
            (self.base..expected).chain(bitmap).map(|seq| self.arrive(config, seq)).sum::<u64>();
        if newly > 0 && self.doublings > 0 {
            self.doublings = 0;
            self.sooner = true;
        }
        self.forget_arrived();
        self.settle();
        let what = if ack.marked { Feedback::Marked } else { Feedback::Good };
        self.entropy.feedback(cx.now, entropy, what);
        let (marked, in_flight) = (ack.marked, self.in_flight);
        self.nscc.on_ack(Answer { now: cx.now, newly, in_flight, marked, rtt });
        let probed = rtt.filter(|_| ack.probe);
        self.recover(cx, config, (expected, ack.out_of_order), probed);
        self.await_credit(cx.now);
        true
    }

    /// Where it looks for losses itself: have what is missing sent again, and the next probe
    /// planned. A probe may just have taken `probed`.
    fn recover(
        &mut self,
        cx: &Cx<'_>,
        config: &Config,
        (expected, out_of_order): (u64, u16),
        probed: Option<Dur>,
    ) {
        let (sent, resends, end) = (self.sent(), self.resends > 0, self.pieces.end());
        let Some(sleek) = &mut self.sleek else { return };
        let (base, target) = (self.nscc.base_rtt(), self.nscc.target());
        let more = sent < end;
        let now = cx.now.saturating_add(cx.net.answer_lateness());
        sleek.plan(now, (more || expected < sent).then_some(more), base, target);
        if probed.is_some_and(|rtt| rtt.0 - base.0 < target.0) {
            sleek.on_probe(expected, sent, target + cx.net.answer_lateness());
        }
        let lost = sleek.on_ack(Seen {
            expected,
            sent,
            out_of_order: u64::from(out_of_order),
            resends,
            window: self.nscc.window(),
            max_window: self.nscc.max_window(),
            payload: u64::from(config.payload),
        });
        self.sooner = true;
        for seq in lost {
            let in_flight = self.record(seq).filter(|record| record.fate == Fate::InFlight);
            let sent = in_flight.map(|record| record.at);
            if sent.is_some_and(|at| self.sleek.as_ref().is_some_and(|s| s.may_be_lost(at))) {
                self.miss(config, seq);
            }
        }
        self.settle();
    }

    /// The next probe to be sent, if one is due: its EV and number.
    pub(super) fn probe(&mut self, now: Time) -> Option<(u16, u32)> {
        if let Some(entropy) = self.entropy.probe(now) {
            return Some((entropy, OF_A_PATH));
        }
        let number = self.sleek.as_mut()?.probe(now, self.nscc.base_rtt())?;
        Some((self.entropy.choose(now), number))
    }

    /// Packet `psn` was trimmed, at the last hop perhaps. One that is not in flight was answered
    /// before.
    pub(super) fn on_nack(
        &mut self,
        cx: &Cx<'_>,
        config: &Config,
        (psn, entropy): (u32, u16),
        (marked, last_hop): (bool, bool),
    ) -> bool {
        let seq = unwrap_index(self.base, psn);
        let sent = self.sent();
        if seq >= sent {
            return false;
        }
        self.hear(cx.now);
        let waits =
            |record: &&mut Record| record.fate == Fate::InFlight && record.copies < COPIES_MAX;
        let Some(record) = self.record(seq).filter(waits) else {
            self.await_credit(cx.now);
            return true;
        };
        let rtt = Some(cx.rx_at.since(record.at));
        let size = self.size(config, seq);
        let answer = Answer { now: cx.now, newly: 0, in_flight: self.in_flight, marked, rtt };
        let spare = last_hop && self.credit.is_some();
        self.nscc.on_nack(answer, u64::from(size), spare);
        self.miss(config, seq);
        self.settle();
        self.await_credit(cx.now);
        // Another path would have led over the same last hop.
        let what = match (last_hop, marked) {
            (false, _) => Feedback::Trimmed,
            (true, true) => Feedback::Marked,
            (true, false) => Feedback::Good,
        };
        self.entropy.feedback(cx.now, entropy, what);
        true
    }

    fn hear(&mut self, now: Time) {
        self.heard = now;
        self.in_vain = Dur::ZERO;
        self.end_speculation();
    }

    fn end_speculation(&mut self) {
        let unsent = self.resends > 0 || self.sent() < self.pieces.end();
        let size = self.network.mtu;
        if let Some(credit) = &mut self.credit {
            credit.end_speculation(self.backlog);
            if unsent {
                credit.wait(size);
            }
        }
    }

    /// The round trip of packet `seq`, if it is certain which copy was answered. EQDS takes it to
    /// be the last.
    fn sample(&mut self, cx: &Cx<'_>, seq: u64, repeated: bool) -> Option<Dur> {
        let own_count = self.own_count;
        let record = self.record(seq).filter(|record| record.fate == Fate::InFlight)?;
        let certain = own_count || record.copies == 1 + u8::from(repeated);
        certain.then(|| cx.rx_at.since(record.at))
    }

    /// The round trip of probe `number`, if it was the last. It is short, and so may take less than
    /// a full packet does at least.
    fn probe_sample(&self, cx: &Cx<'_>, number: u32) -> Option<Dur> {
        let sleek = self.sleek.as_ref().filter(|_| number != OF_A_PATH)?;
        let rtt = sleek.probe_rtt(cx.rx_at, number)?;
        Some(rtt.max(self.nscc.base_rtt()))
    }

    /// The bytes by which the receiver's count has grown, where it counts. Answers may overtake one
    /// another.
    fn count(&mut self, received: u32) -> u64 {
        if self.own_count {
            return 0;
        }
        let units = received.wrapping_sub(self.received) % UNITS;
        if units >= UNITS / 2 {
            return 0;
        }
        self.received = received;
        let newly = u64::from(units) * UNIT;
        self.in_flight = self.in_flight.saturating_sub_unsigned(newly);
        newly
    }

    /// Packet `seq` has arrived. Its bytes, if they were in flight and are counted here.
    fn arrive(&mut self, config: &Config, seq: u64) -> u64 {
        let own_count = self.own_count;
        let Some(record) = self.record(seq) else { return 0 };
        match std::mem::replace(&mut record.fate, Fate::Arrived) {
            Fate::InFlight => {
                self.outstanding -= 1;
                if own_count {
                    let size = self.size(config, seq);
                    self.in_flight = self.in_flight.saturating_sub(i64::from(size));
                    return u64::from(size);
                }
            }
            Fate::Resend => {
                self.resends -= 1;
                let size = self.size(config, seq);
                self.resend_bytes -= u64::from(size);
                if !own_count {
                    // It was taken out of flight before the receiver counted it.
                    self.in_flight = self.in_flight.saturating_add(i64::from(size));
                }
            }
            Fate::Arrived => {}
        }
        0
    }

    /// Packet `seq`, which is in flight, is to be sent again.
    fn miss(&mut self, config: &Config, seq: u64) {
        let size = self.size(config, seq);
        let Some(record) = self.record(seq) else { return };
        record.fate = Fate::Resend;
        self.outstanding -= 1;
        self.sooner = true;
        self.resends += 1;
        self.resend_bytes += u64::from(size);
        self.resend_from = if self.resends == 1 { seq } else { self.resend_from.min(seq) };
        self.in_flight = self.in_flight.saturating_sub(i64::from(size));
    }

    /// Where every packet has been answered nothing is in flight, whatever a receiver has counted.
    /// One that counts too little would leave a closed window, and no timer to open it.
    fn settle(&mut self) {
        if self.outstanding == 0 {
            self.in_flight = self.in_flight.min(0);
        }
    }

    fn forget_arrived(&mut self) {
        while self.records.front().is_some_and(|record| record.fate == Fate::Arrived) {
            self.records.pop_front();
            self.base += 1;
        }
    }

    /// When it has to be looked at, if nothing is heard.
    pub(super) fn due(&mut self, cx: &Cx<'_>, config: &Config) -> Option<Time> {
        let oldest = [self.oldest(), self.asked].into_iter().flatten().min();
        let timeout = match oldest {
            Some(at) => Some(self.overdue(cx, at)),
            None => self.starved.map(|at| self.patience_ends(cx, config, at)),
        };
        let probe = self.sleek.as_ref().and_then(Sleek::probe_due);
        let path = self.entropy.probe_due();
        [timeout, probe, path, self.kept_until(config)].into_iter().flatten().min()
    }

    /// When it is given up for want of messages.
    pub(super) fn kept_until(&self, config: &Config) -> Option<Time> {
        Some(self.idle?.saturating_add(config.keep_connections?))
    }

    /// Whether that may be sooner than it was when last asked for.
    pub(super) fn take_sooner(&mut self) -> bool {
        std::mem::take(&mut self.sooner)
    }

    /// Until when it waits for credit that it has asked for, with nothing in flight. What is more
    /// than it has asked for never comes by itself: packets that were trimmed since.
    fn patience_ends(&self, cx: &Cx<'_>, config: &Config, since: Time) -> Time {
        let wants = self.credit.as_ref().map_or(0, |credit| credit.ask(self.demand(config, 1)));
        let more = wants.wrapping_sub(self.target) as i32 > 0;
        let wait = self.wait(cx, since).0.saturating_mul(if more { 1 } else { TURN });
        since.saturating_add(Dur(wait))
    }

    /// When the oldest packet in flight was sent.
    fn oldest(&mut self) -> Option<Time> {
        while let Some(&(at, seq)) = self.order.front() {
            let record = self.record(seq);
            if record.is_some_and(|record| record.fate == Fate::InFlight && record.at == at) {
                return Some(at);
            }
            self.order.pop_front();
        }
        None
    }

    /// It is due. How long nothing has been heard, and whether anything was lost.
    pub(super) fn time_out(&mut self, cx: &Cx<'_>, config: &Config) -> (Dur, bool) {
        let idle = self.outstanding == 0 && self.asked.is_none();
        let starved = self.starved.filter(|_| idle);
        let starved = starved.filter(|&at| self.patience_ends(cx, config, at) <= cx.now);
        let is_over = |flow: &Self, at: Time| flow.overdue(cx, at) <= cx.now;
        // Since when the latest of what is over had been waited for.
        let mut since = self.asked.filter(|&at| is_over(self, at)).max(starved);
        let mut postponed = false;
        while self.oldest().is_some_and(|at| is_over(self, at)) {
            let Some((at, seq)) = self.order.pop_front() else { break };
            if self.postpones(cx.now, seq) {
                postponed = true;
                continue;
            }
            let entropy = self.record(seq).map_or(0, |record| record.entropy);
            if config.trimming || config.spray != Rule::Reps {
                self.entropy.feedback(cx.now, entropy, Feedback::Lost);
            }
            let size = self.size(config, seq);
            self.nscc.on_loss(u64::from(size));
            if self.resends > 0 {
                self.end_speculation();
            }
            self.miss(config, seq);
            since = since.max(Some(at));
        }
        self.settle();
        self.await_credit(cx.now);
        if since.is_some_and(|at| at >= self.doubled) {
            // What was sent before the last doubling tells nothing new.
            self.doublings += 1;
            self.doubled = cx.now;
        }
        let silent = self.in_vain + cx.now.since(self.heard);
        if self.outstanding == 0 {
            self.in_vain = silent;
            self.heard = cx.now;
        }
        (silent, since.is_some() || postponed)
    }

    /// The answer to packet `seq` is overdue, but what has been lost is being found anyway. If this
    /// was a retransmission, it is found again. Either waits for another timeout.
    fn postpones(&mut self, now: Time, seq: u64) -> bool {
        if !self.sleek.as_ref().is_some_and(Sleek::is_recovering) {
            return false;
        }
        let Some(record) = self.record(seq) else { return false };
        let again = record.copies > 1;
        // Of which copy an answer is can no longer be told.
        *record = Record { at: now, copies: record.copies.saturating_add(1), ..*record };
        self.order.push_back((now, seq));
        if let Some(sleek) = self.sleek.as_mut().filter(|_| again) {
            sleek.resend(seq);
        }
        true
    }

    /// After a timeout: what to ask for, if credit is waited for. At most once in a round trip,
    /// whatever has come since.
    pub(super) fn ask(&mut self, now: Time, config: &Config) -> Option<u32> {
        self.starved?;
        self.asked = Some(now);
        if now < self.may_ask {
            return None;
        }
        self.may_ask = now.saturating_add(self.network.rtt);
        self.starved = Some(now);
        self.target = self.credit.as_ref()?.ask(self.demand(config, 1));
        Some(self.target)
    }

    /// specs/uet.md#U1,U3, and that counts are right. Bytes of the packets in flight.
    #[cfg(test)]
    pub(super) fn check(&self, config: &Config) -> i64 {
        let count = |fate| self.records.iter().filter(|r| r.fate == fate).count() as u64;
        assert_eq!((count(Fate::InFlight), count(Fate::Resend)), (self.outstanding, self.resends));
        let in_flight = |(_, record): &(u64, &Record)| record.fate == Fate::InFlight;
        let mut bytes = 0;
        for (seq, record) in (self.base..).zip(&self.records).filter(in_flight) {
            assert!(self.order.contains(&(record.at, seq)), "{seq} has no timeout");
            bytes += i64::from(self.size(config, seq));
        }
        let most = self.network.bdp() * 3 / 2;
        let bounds = u64::from(config.mtu())..=most;
        assert!(self.nscc.some_window().is_none_or(|window| bounds.contains(&window)));
        bytes
    }
}

/// Bytes on the wire of so many packets with `len` bytes of payload together.
fn wire_bytes(config: &Config, len: u64, packets: u64) -> u64 {
    len.saturating_add(packets.saturating_mul(u64::from(config.header)))
}
