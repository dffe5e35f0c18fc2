//! The invariants of NDP that concern hosts (specs/ndp.md#10), checked from the packets alone:
//! what each host has sent and what has reached it. An independent model of both ends of every
//! message, so that the same check runs over the test kit's network and over whole fabrics.
//!
//! I1, I2, I3 and I10 are about switch ports and need the fabric; I12 is the ledger's.

use std::collections::{BTreeMap, VecDeque};

use endpoint::{Flags, Packet};
use units::{Dur, HostId, MsgId, MsgKey, Rate, Time};
use wire::ndp::{Data, Feedback, Header, Kind, Repr};

/// What the checks must know of the configuration under test.
pub struct Rules {
    /// IW, packets.
    pub initial_window: u64,
    /// The shortest silence after which a sender may send unasked.
    pub timeout_min: Dur,
    /// T of each host.
    pub interval: Vec<Dur>,
    /// The rate of each host's link, the lowest that it ever has.
    pub rate: Vec<Rate>,
    /// Whether every packet that arrives for an open message is answered: no host has to do without
    /// room for messages or answers, and nobody gives up.
    pub answers_all: bool,
    /// Whether a repeated packet asks for a pull.
    pub pull_on_duplicate: bool,
    /// Whether pulls go round over all messages of a host.
    pub fair: bool,
    /// Whether packets wait in a queue between host and link: then they were chosen before.
    pub queued: bool,
    /// The number of paths from one host to another, if all are walked in turn and all work.
    pub permuted: Option<Box<dyn Fn(HostId, HostId) -> u32 + Send>>,
}

/// What became of a packet, as far as its sender has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    /// NACKed or bounced, not sent again yet.
    Resend,
    Acked,
}

/// One message, both ends.
#[derive(Default)]
struct Message {
    // The sender.
    fates: Vec<Fate>,
    /// Everything below is [`Fate::Acked`].
    base: usize,
    sent_at: Vec<Time>,
    sent: u64,
    /// Packets in [`Fate::Resend`].
    resend: u64,
    bounces: u64,
    highest_pull_heard: u32,
    /// How often the sender had waited for so long that it may have sent a packet unasked, not
    /// necessarily that one: each copy that was in flight for a timeout, and each send after a
    /// silence.
    unasked: u64,
    heard: Option<Time>,
    resent: bool,
    /// Paths of the round that is in flight.
    round: Vec<u32>,
    // The receiver.
    open: bool,
    received: Vec<bool>,
    missing_below_last: Option<u64>,
    complete: bool,
    pulls_asked: u32,
    pulls_sent: u32,
}

impl Message {
    fn is_overdue(&self, seq: usize, at: Time, patience: Dur) -> bool {
        self.sent_at[seq] + patience <= at
    }

    /// Packet `seq` becomes `fate`.
    fn enter(&mut self, seq: usize, at: Time, patience: Dur, fate: Fate) {
        let before = self.fates[seq];
        let overdue = before == Fate::InFlight && self.is_overdue(seq, at, patience);
        self.unasked += u64::from(overdue);
        self.resend -= u64::from(before == Fate::Resend);
        self.resend += u64::from(fate == Fate::Resend);
        self.fates[seq] = fate;
    }

    /// Packets whose timeout may have passed, and who have not been heard of since.
    fn overdue(&self, at: Time, patience: Dur) -> u64 {
        let waits =
            |&seq: &usize| self.fates[seq] == Fate::InFlight && self.is_overdue(seq, at, patience);
        (self.base..self.fates.len()).filter(waits).count() as u64
    }
}

/// An arrival that has not been answered.
struct Owed {
    key: MsgKey,
    seq: u32,
    trimmed: bool,
    since: Time,
    /// Whether it may stay so.
    optional: bool,
}

/// The fairness of one host's pulls, in windows of 100 T.
#[derive(Default)]
struct Window {
    start: Time,
    /// For each message that waits: pulls queued, the least of that in this window, pulls sent in
    /// it.
    waiting: BTreeMap<MsgKey, (u32, u32, u32)>,
}

/// One host.
#[derive(Default)]
struct Host {
    owed: VecDeque<Owed>,
    /// The end of the latest packet on its link.
    busy_until: Time,
    /// No pull can have left the pacer before this.
    next_pull: Time,
    window: Window,
}

/// The checker. Violations are collected, not panicked on: a fabric may call it from any thread.
pub struct HostInvariants {
    rules: Rules,
    hosts: Vec<Host>,
    messages: BTreeMap<MsgKey, Message>,
    violations: Vec<String>,
    /// How many packets were looked at.
    packets: u64,
    /// How many comparisons of shares of pulls were made.
    shares: u64,
}

/// Violations beyond these are not kept.
const KEPT: usize = 20;
/// An answer may wait for so long in its host: a full control queue of 1000 packets at 10 Gb/s is
/// 51 us.
const ANSWER_MAX: Dur = Dur::from_us(200);
/// Packets of a message, in rounds of all its paths, that the scoreboard cannot have judged yet: a
/// path needs 100 samples, and one packet may be three.
const UNJUDGED_ROUNDS: u64 = 30;

impl HostInvariants {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        let hosts = rules.interval.iter().map(|_| Host::default()).collect();
        let (messages, violations) = (BTreeMap::new(), Vec::new());
        Self { rules, hosts, messages, violations, packets: 0, shares: 0 }
    }

    /// How many packets were looked at, and how many comparisons of shares made.
    #[must_use]
    pub fn looked_at(&self) -> (u64, u64) {
        (self.packets, self.shares)
    }

    /// What was violated, once the run has ended at `now`.
    #[must_use]
    pub fn finish(mut self, now: Time) -> Vec<String> {
        for h in 0..self.hosts.len() {
            let late =
                self.hosts[h].owed.iter().find(|o| !o.optional && o.since + ANSWER_MAX < now);
            if let Some(Owed { key, seq, since, .. }) = late {
                let what = format!("packet {seq} of {key}, there since {since}, has no answer");
                self.violated("I4", now, &what);
            }
        }
        self.violations
    }

    fn violated(&mut self, id: &str, at: Time, what: &str) {
        if self.violations.len() < KEPT {
            self.violations.push(format!("{id} at {at}: {what}"));
        }
    }

    /// A host has begun to send `pkt`.
    pub fn sent(&mut self, at: Time, pkt: &Packet) {
        let Some(kind) = kind(pkt) else { return };
        self.packets += 1;
        match kind {
            Kind::Data(data) => self.sent_data(at, pkt, data),
            Kind::Ack(feedback) => self.sent_answer(at, pkt, feedback, true),
            Kind::Nack(feedback) => self.sent_answer(at, pkt, feedback, false),
            Kind::Pull { pull, .. } => self.sent_pull(at, pkt, pull, true),
            Kind::Keepalive => {}
        }
        let h = pkt.src.index();
        self.hosts[h].busy_until = at + self.rules.rate[h].serialise(u64::from(pkt.wire_len));
    }

    /// `pkt` has reached `host`.
    pub fn arrived(&mut self, at: Time, host: HostId, pkt: &Packet) {
        let Some(kind) = kind(pkt) else { return };
        self.packets += 1;
        if pkt.flags.has(Flags::BOUNCED) {
            if let Kind::Data(data) = kind {
                self.heard_bounce(at, MsgKey { src: host, id: pkt.span.msg }, data.seq);
            }
            return;
        }
        let mine = MsgKey { src: host, id: connection(pkt) };
        match kind {
            Kind::Data(data) => self.received_data(at, host, pkt, data),
            Kind::Ack(f) => self.heard_answer(at, mine, f, true),
            Kind::Nack(f) => self.heard_answer(at, mine, f, false),
            Kind::Pull { pull, cumulative, .. } => {
                self.heard_cumulative(at, mine, cumulative);
                self.heard_pull(mine, pull);
            }
            Kind::Keepalive => {}
        }
    }

    // ------------------------------------------------------------------------------ the sender

    fn sent_data(&mut self, at: Time, pkt: &Packet, data: Data) {
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        self.i8_resends_first(at, key, data);
        self.i7_all_paths_in_turn(at, key, pkt, data);
        let patience = self.rules.timeout_min;
        let m = self.messages.entry(key).or_default();
        let seq = data.seq as usize;
        if m.fates.len() <= seq {
            m.fates.resize(seq + 1, Fate::InFlight);
            m.sent_at.resize(seq + 1, at);
        }
        let silent = m.heard.is_some_and(|heard| heard + patience <= at);
        m.unasked += u64::from(silent);
        if seq >= m.base {
            m.enter(seq, at, patience, Fate::InFlight);
        }
        m.sent_at[seq] = at;
        m.sent += 1;
        self.i5_no_more_than_asked_for(at, key);
    }

    /// I5: packets sent are at most the window, the pulls heard, the bounces, and what a timeout
    /// allowed.
    fn i5_no_more_than_asked_for(&mut self, at: Time, key: MsgKey) {
        let m = &self.messages[&key];
        let pulled = u64::from(m.highest_pull_heard);
        let most = self.rules.initial_window + pulled + m.bounces + m.unasked;
        if m.sent > most && m.sent > most + m.overdue(at, self.rules.timeout_min) {
            let (sent, bounces, unasked) = (m.sent, m.bounces, m.unasked);
            let what = format!(
                "{key}: {sent} packets sent, {pulled} pulls heard, {bounces} bounces, {unasked} unasked"
            );
            self.violated("I5", at, &what);
        }
    }

    /// I7: until a packet is resent, each round of the permutation takes each path once.
    fn i7_all_paths_in_turn(&mut self, at: Time, key: MsgKey, pkt: &Packet, data: Data) {
        let Some(paths) = &self.rules.permuted else { return };
        let paths = paths(pkt.src, pkt.dst);
        let m = self.messages.entry(key).or_default();
        m.resent |= data.retransmission;
        if m.resent || m.sent >= UNJUDGED_ROUNDS * u64::from(paths) {
            return;
        }
        let again = m.round.contains(&pkt.path);
        m.round.push(pkt.path);
        if m.round.len() == paths as usize {
            m.round.clear();
        }
        if again || pkt.path >= paths {
            let what = format!("{key}: path {} of {paths} twice in a round", pkt.path);
            self.violated("I7", at, &what);
        }
    }

    /// I8: nothing new while something NACKed or bounced waits.
    fn i8_resends_first(&mut self, at: Time, key: MsgKey, data: Data) {
        if self.rules.queued {
            return;
        }
        let waiting = self.messages.get(&key).map_or(0, |m| m.resend);
        if !data.retransmission && waiting > 0 {
            let what = format!("{key}: new packet {} before {waiting} to resend", data.seq);
            self.violated("I8", at, &what);
        }
    }

    fn heard_answer(&mut self, at: Time, key: MsgKey, feedback: Feedback, ack: bool) {
        let Feedback { seq, cumulative, pull } = feedback;
        let patience = self.rules.timeout_min;
        let Some(m) = self.messages.get_mut(&key) else { return };
        match m.fates.get(seq as usize) {
            Some(_) if ack => m.enter(seq as usize, at, patience, Fate::Acked),
            Some(Fate::InFlight) => m.enter(seq as usize, at, patience, Fate::Resend),
            _ => {}
        }
        self.heard_cumulative(at, key, cumulative);
        if let Some(pull) = pull {
            self.heard_pull(key, pull);
        }
    }

    fn heard_cumulative(&mut self, at: Time, key: MsgKey, cumulative: u32) {
        let patience = self.rules.timeout_min;
        let Some(m) = self.messages.get_mut(&key) else { return };
        m.heard = Some(at);
        while m.base < (cumulative as usize).min(m.fates.len()) {
            m.enter(m.base, at, patience, Fate::Acked);
            m.base += 1;
        }
    }

    fn heard_pull(&mut self, key: MsgKey, pull: u32) {
        if let Some(m) = self.messages.get_mut(&key) {
            m.highest_pull_heard = m.highest_pull_heard.max(pull);
        }
    }

    fn heard_bounce(&mut self, at: Time, key: MsgKey, seq: u32) {
        let patience = self.rules.timeout_min;
        let Some(m) = self.messages.get_mut(&key) else { return };
        m.bounces += 1;
        if m.fates.get(seq as usize) == Some(&Fate::InFlight) {
            m.enter(seq as usize, at, patience, Fate::Resend);
        }
    }

    // ---------------------------------------------------------------------------- the receiver

    fn received_data(&mut self, at: Time, host: HostId, pkt: &Packet, data: Data) {
        let key = MsgKey { src: pkt.src, id: pkt.span.msg };
        let trimmed = pkt.flags.has(Flags::TRIMMED);
        let m = self.messages.entry(key).or_default();
        m.open |= data.syn;
        let optional = !self.rules.answers_all || !m.open || m.complete;
        let seq = data.seq as usize;
        if m.received.len() <= seq {
            m.received.resize(seq + 1, false);
        }
        if data.last && m.open {
            let have = m.received.iter().filter(|r| **r).count() as u64;
            m.missing_below_last.get_or_insert(u64::from(data.seq) + 1 - have);
        }
        let new = m.open && !trimmed && !m.received[seq];
        if new {
            m.received[seq] = true;
            m.missing_below_last = m.missing_below_last.map(|n| n - 1);
        }
        let was_complete = m.complete;
        m.complete |= m.missing_below_last == Some(0);
        let asks = trimmed || new || self.rules.pull_on_duplicate;
        if m.open && !m.complete && asks {
            m.pulls_asked += 1;
            let waiting = &mut self.hosts[host.index()].window.waiting;
            let (queued, ..) = waiting.entry(key).or_insert((0, 0, 0));
            *queued += 1;
        } else if m.complete && !was_complete {
            self.hosts[host.index()].window.waiting.remove(&key);
        }
        let owed = Owed { key, seq: data.seq, trimmed, since: at, optional };
        self.hosts[host.index()].owed.push_back(owed);
    }

    fn sent_answer(&mut self, at: Time, pkt: &Packet, feedback: Feedback, ack: bool) {
        let key = MsgKey { src: pkt.dst, id: connection(pkt) };
        self.i4_one_answer_each(at, pkt.src, key, feedback.seq, ack);
        if let Some(pull) = feedback.pull {
            self.sent_pull(at, pkt, pull, false);
        }
    }

    /// I4: arrivals are answered in their order, once each: a whole packet by an ACK, a header by
    /// a NACK (or an ACK, if the message is over).
    fn i4_one_answer_each(&mut self, at: Time, host: HostId, key: MsgKey, seq: u32, ack: bool) {
        while let Some(owed) = self.hosts[host.index()].owed.pop_front() {
            if owed.key == key && owed.seq == seq {
                let right = ack != owed.trimmed || owed.optional;
                if !right {
                    let what =
                        format!("packet {seq} of {key}: ACK {ack}, trimmed {}", owed.trimmed);
                    self.violated("I4", at, &what);
                }
                return;
            }
            if !owed.optional {
                let what = format!("packet {} of {} was not answered", owed.seq, owed.key);
                self.violated("I4", at, &what);
            }
        }
        self.violated("I4", at, &format!("an answer to packet {seq} of {key}, which never came"));
    }

    /// A PULL, or an answer with the PULL bit.
    fn sent_pull(&mut self, at: Time, pkt: &Packet, number: u32, alone: bool) {
        let key = MsgKey { src: pkt.dst, id: connection(pkt) };
        self.i4_one_pull_each(at, key, number);
        self.i6_pulls_keep_their_distance(at, pkt.src);
        if alone {
            self.i9_no_pull_after_completion(at, key);
        }
        self.i11_equal_shares(at, pkt.src, key, alone);
    }

    /// I4: pull numbers count the arrivals of a message, each goes out once, in order.
    fn i4_one_pull_each(&mut self, at: Time, key: MsgKey, number: u32) {
        let strict = self.rules.answers_all;
        let m = self.messages.entry(key).or_default();
        let (before, asked) = (m.pulls_sent, m.pulls_asked);
        m.pulls_sent = number;
        let next = number == before + 1 || !strict && number > before;
        if !next || strict && number > asked {
            let what = format!("{key}: pull {number} after {before}, {asked} were asked for");
            self.violated("I4", at, &what);
        }
    }

    /// I6: pulls leave the pacer at least T apart. On the link one may come late, behind another
    /// packet: it left the pacer when it began to be sent only if the link was free before.
    fn i6_pulls_keep_their_distance(&mut self, at: Time, host: HostId) {
        let interval = self.rules.interval[host.index()];
        let h = &mut self.hosts[host.index()];
        let earliest = h.next_pull;
        let paced = if h.busy_until < at { at } else { earliest };
        h.next_pull = paced.max(earliest) + interval;
        if at < earliest {
            self.violated("I6", at, &format!("{host}: a pull that was due at {earliest}"));
        }
    }

    /// I9: once a receiver has all of a message, it pulls no more for it. An answer from before,
    /// with its PULL bit, may still be waiting for the link. Where packets are refused, their model
    /// does not know what the receiver has.
    fn i9_no_pull_after_completion(&mut self, at: Time, key: MsgKey) {
        let complete = self.messages.get(&key).is_some_and(|m| m.complete);
        if complete && self.rules.answers_all {
            self.violated("I9", at, &format!("{key}: a pull after completion"));
        }
    }

    /// I11: in 100 T, messages that wait all the time are pulled equally often, but one. A pull may
    /// be out of the queue and not yet on the link, so a message waits if two of its pulls do.
    fn i11_equal_shares(&mut self, at: Time, host: HostId, key: MsgKey, alone: bool) {
        let length = self.rules.interval[host.index()] * 100;
        let window = &mut self.hosts[host.index()].window;
        if let Some((queued, least, sent)) = window.waiting.get_mut(&key) {
            *queued = queued.saturating_sub(1);
            *least = (*least).min(*queued);
            *sent += u32::from(alone);
        }
        if at < window.start + length {
            return;
        }
        let steady = window.waiting.values().filter(|(_, least, _)| *least > 1);
        let sent: Vec<u32> = steady.map(|(.., sent)| *sent).collect();
        let range = sent.iter().max().zip(sent.iter().min());
        window.start = at;
        window.waiting.retain(|_, (queued, least, sent)| {
            (*least, *sent) = (*queued, 0);
            *queued > 0
        });
        let known = self.rules.fair && self.rules.answers_all;
        if let Some((most, least)) = range.filter(|_| known) {
            self.shares += u64::from(sent.len() > 1);
            if most - least > 1 {
                let what = format!("{host}: pulls of waiting messages in 100 T: {sent:?}");
                self.violated("I11", at, &what);
            }
        }
    }
}

fn kind(pkt: &Packet) -> Option<Kind> {
    if pkt.proto != wire::ndp::PROTOCOL {
        return None;
    }
    Repr::parse(&Header::new(pkt.header()).ok()?).ok().map(|repr| repr.kind)
}

/// The message that the header names.
fn connection(pkt: &Packet) -> MsgId {
    MsgId(Header::new(pkt.header()).map_or(0, |header| header.connection()))
}

#[cfg(test)]
mod tests {
    use endpoint::Span;

    use super::*;

    const A: HostId = HostId(0);
    const B: HostId = HostId(1);

    fn packet(src: HostId, dst: HostId, kind: Kind) -> Packet {
        let bytes = Repr { connection: 7, kind }.to_bytes();
        let mut pkt = Packet { src, dst, wire_len: 64, ..Packet::EMPTY };
        pkt.span = Span { msg: MsgId(7), offset: 0, len: 0 };
        (pkt.proto, pkt.hdr_len) = (wire::ndp::PROTOCOL, wire::ndp::LEN as u8);
        pkt.hdr[..wire::ndp::LEN].copy_from_slice(&bytes);
        pkt
    }

    fn data(seq: u32, last: bool) -> Packet {
        let data = Data {
            seq,
            syn: true,
            last,
            retransmission: false,
            chopped: false,
            prio: 0,
            len: 0,
            pacer_echo: None,
        };
        packet(A, B, Kind::Data(data))
    }

    fn answer(seq: u32, pull: Option<u32>) -> Feedback {
        Feedback { seq, cumulative: 0, pull }
    }

    /// What a conversation breaks: packets as (microsecond, whether it is an arrival, packet).
    fn broken(conversation: &[(u64, bool, Packet)]) -> Vec<String> {
        let rules = Rules {
            initial_window: 3,
            timeout_min: Dur::from_ms(1),
            interval: vec![Dur::from_us(7); 2],
            rate: vec![Rate(10_000_000_000); 2],
            answers_all: true,
            pull_on_duplicate: true,
            fair: true,
            queued: false,
            permuted: None,
        };
        let mut checker = HostInvariants::new(rules);
        for (us, arrives, pkt) in conversation {
            let at = Time::ZERO + Dur::from_us(*us);
            if *arrives { checker.arrived(at, pkt.dst, pkt) } else { checker.sent(at, pkt) }
        }
        let all = checker.finish(Time::ZERO + Dur::from_ms(9));
        all.iter().map(|v| v.split(' ').next().unwrap_or("").to_owned()).collect()
    }

    #[test]
    fn a_proper_conversation_breaks_nothing() {
        let ack = packet(B, A, Kind::Ack(answer(0, Some(1))));
        let last = packet(B, A, Kind::Ack(answer(1, None)));
        let (one, two) = (data(0, false), data(1, true));
        let all =
            [(0, false, one), (1, false, two), (5, true, one), (5, false, ack), (6, true, two)];
        let end = [(6, false, last), (9, true, ack), (10, true, last)];
        assert_eq!(broken(&[&all[..], &end[..]].concat()), Vec::<String>::new());
    }

    #[test]
    fn what_only_a_wrong_endpoint_does_is_found() {
        let ack = |pull| packet(B, A, Kind::Ack(answer(0, pull)));
        let nack = packet(B, A, Kind::Nack(answer(0, None)));
        let pull = packet(B, A, Kind::Pull { pull: 1, pacer: 1, cumulative: 0 });
        let (first, only) = (data(0, false), data(0, true));
        assert_eq!(broken(&[(0, false, first), (5, true, first)]), ["I4"], "no answer");
        assert_eq!(broken(&[(5, true, first), (5, false, nack)]), ["I4"], "it was whole");
        assert_eq!(broken(&[(5, false, ack(None))]), ["I4"], "an answer to nothing");
        let twice = [(5, true, first), (5, false, ack(Some(1))), (20, false, pull)];
        assert_eq!(broken(&twice), ["I4"], "the same pull again");
        let new = [(0, false, first), (5, true, nack), (6, false, data(1, false))];
        assert_eq!(broken(&new), ["I8"], "something new first");
        let late =
            [(0, true, first), (0, false, ack(None)), (5, true, only), (5, false, ack(None))];
        let late = [&late[..], &[(20, false, pull)]].concat();
        assert_eq!(broken(&late), ["I9"], "a pull after completion");
    }
}
