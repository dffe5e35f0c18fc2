//! [`Flow`]: one message at its sender (specs/ndp.md#5). State and rules only: when to send, and
//! which message is next, is [`super::sender`]'s business.

use std::collections::VecDeque;

use endpoint::{Draw, FlowState, Msg, NetView, Purpose, UNBOUNDED};
use units::{Dur, Time};

use super::config::Config;
use super::paths::PathWalk;
use super::scoreboard::Outcome;
use crate::received::{WINDOW_MAX, unwrap_index};

const JITTER: Purpose = Purpose::new("ndp rto jitter");

/// What became of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// On its way, as far as is known: its timeout runs.
    InFlight,
    /// To be sent again: NACKed, bounced or timed out. No timeout runs.
    Resend,
    /// Received.
    Acked,
}

/// One packet between the cumulative acknowledgement and the newest packet.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    /// When it was last put on the wire.
    at: Time,
    /// On which path.
    path: u16,
    fate: Fate,
    /// Whether it has been sent more than once (then it gives no round-trip sample: Karn).
    resent: bool,
}

/// The kinds of feedback that bounce rule b looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feedback {
    Ack,
    Nack,
    Bounce,
}

/// The round-trip estimate (specs/ndp.md#5.1: EWMA with 1/8 and 1/4, as in TCP).
#[derive(Debug)]
struct Rtt {
    /// Smoothed round trip and its mean deviation; `None` before the first sample.
    estimate: Option<(Dur, Dur)>,
    /// The timeout in force, jitter included.
    rto: Dur,
    /// How many jitter draws have been used.
    drawn: u64,
}

impl Rtt {
    fn sample(&mut self, rtt: Dur) {
        self.estimate = Some(match self.estimate {
            None => (rtt, Dur(rtt.0 / 2)),
            Some((srtt, mdev)) => (
                Dur(srtt.0 - srtt.0 / 8 + rtt.0 / 8),
                Dur(mdev.0 - mdev.0 / 4 + rtt.0.abs_diff(srtt.0) / 4),
            ),
        });
    }

    /// Draw the timeout anew from the estimate.
    fn renew(&mut self, config: &Config, draw: Draw) {
        let Some((srtt, mdev)) = self.estimate else { return };
        let rto = Dur(srtt.0.saturating_add(4 * mdev.0)).max(config.rto_min).min(config.rto_max);
        self.rto = if rto > config.rto_min { rto } else { self.jittered(config, draw) };
    }

    /// `rto_min` times a uniform draw from 1 ± jitter.
    fn jittered(&mut self, config: &Config, draw: Draw) -> Dur {
        self.drawn += 1;
        let spread = config.rto_min.0 / 100 * u64::from(config.rto_jitter_percent);
        Dur(config.rto_min.0 - spread + draw.below(JITTER, self.drawn, 2 * spread + 1))
    }
}

/// A packet that a flow sends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) seq: u64,
    pub(crate) offset: u64,
    pub(crate) len: u16,
    pub(crate) path: u32,
    pub(crate) syn: bool,
    pub(crate) last: bool,
    pub(crate) retransmission: bool,
}

/// What a check of the timeouts found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// This many packets have become due and want to be sent, unasked; check again then.
    Due(u32, Time),
    /// No answer has come for longer than the transport is willing to try.
    GiveUp,
}

/// One message at its sender.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) msg: Msg,
    /// Packets of the message; never reached by an unbounded one.
    packets: u64,
    /// The first packet that is not known to be received.
    base: u64,
    /// `next_new - base` packets, from `base` on.
    sent: VecDeque<SentPacket>,
    /// Packets to resend, next first. Entries whose packet is no longer [`Fate::Resend`] are
    /// skipped.
    rtx: VecDeque<u64>,
    /// How many packets are [`Fate::Resend`].
    rtx_live: u64,
    /// The last packet is held back until the message before on its channel is over.
    held: bool,
    /// It would have been sent: its turn is owed.
    owed: bool,
    /// Packets that may be sent and have not been yet (the sender's send credits for this flow).
    pub(crate) granted: u64,
    /// Pulls still expected: packets answered and not yet pulled for. Negative while PULLs have
    /// overtaken the answers that they follow.
    pull_window: i64,
    /// Pulls that found nothing to send while the answer they belong to has not come: PULLs are
    /// sprayed and may overtake NACKs. At most the deficit of `pull_window`.
    early_pulls: u64,
    /// How many feedbacks have come.
    feedbacks: u64,
    /// Highest pull number honoured.
    last_pull: u32,
    /// Latest feedbacks, newest in bit 0: an ACK is 1.
    history: u32,
    /// Whether the receiver has answered: then it has state, and resent packets need no SYN.
    known: bool,
    /// When the receiver was last heard, or a packet sent for the first time.
    quiet_since: Time,
    /// Packets sent unasked, in a row, because no pull came.
    stalls: u32,
    /// When the timeouts are to be looked at; see [`super::sender`].
    pub(crate) check_at: Time,
    rtt: Rtt,
    draw: Draw,
    paths: PathWalk,
}

/// Memory that flows leave to their successors.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    sent: VecDeque<SentPacket>,
    rtx: VecDeque<u64>,
    pub(crate) order: Vec<u16>,
}

impl Flow {
    /// A message whose first window is about to be granted.
    pub(crate) fn new(
        config: &Config,
        net: &NetView<'_>,
        now: Time,
        draw: Draw,
        msg: Msg,
        memory: Memory,
    ) -> Self {
        let Memory { mut sent, mut rtx, order } = memory;
        sent.clear();
        rtx.clear();
        let draw = draw.part(msg.id.0);
        Self {
            msg,
            packets: config.framing().packets(msg.len),
            base: 0,
            sent,
            rtx,
            rtx_live: 0,
            held: false,
            owed: false,
            granted: 0,
            pull_window: 0,
            early_pulls: 0,
            feedbacks: 0,
            last_pull: 0,
            history: 0,
            known: false,
            quiet_since: now,
            stalls: 0,
            check_at: Time::NEVER,
            rtt: Rtt { estimate: None, rto: config.rto_initial, drawn: 0 },
            draw,
            paths: PathWalk::new(config, net, msg.dst, draw, order),
        }
    }

    pub(crate) fn into_memory(self) -> Memory {
        Memory { sent: self.sent, rtx: self.rtx, order: self.paths.into_memory() }
    }

    /// Have at hand what the next packet and the next answer touch.
    pub(crate) fn prefetch(&self) {
        let ends = self.sent.front().into_iter().chain(self.sent.back());
        ends.for_each(endpoint::prefetch::item);
        self.paths.prefetch();
    }

    /// How many packets are sent without being asked for.
    pub(crate) fn first_window(&self, config: &Config) -> u64 {
        self.packets.min(u64::from(config.initial_window))
    }

    /// Whether the last packet waits until it is [released](Self::release_last).
    pub(crate) fn hold_last(&mut self, held: bool) {
        self.held = held;
    }

    /// Something to send was asked for and not found. If all but the last packet is sent, that one
    /// is owed from now on: then 1, else 0.
    pub(crate) fn owe_last(&mut self) -> u64 {
        let is_new = self.held && !self.owed;
        self.owed |= self.held;
        u64::from(is_new)
    }

    /// The last packet may be sent, and was asked for if this is true.
    pub(crate) fn release_last(&mut self) -> bool {
        self.held = false;
        std::mem::take(&mut self.owed)
    }

    /// Packets that may be sent, some day.
    fn free(&self) -> u64 {
        self.packets - u64::from(self.held)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.base == self.packets
    }

    pub(crate) fn rto(&self) -> Dur {
        self.rtt.rto
    }

    /// Bytes of full packets that were never sent, beyond those that it has been asked for and the
    /// last one.
    pub(crate) fn unsent(&self, config: &Config) -> u64 {
        if self.packets == u64::MAX {
            return UNBOUNDED;
        }
        let packets = self.packets.saturating_sub(self.next_new() + self.granted + 1);
        packets * u64::from(config.payload)
    }

    /// Take up to `bytes` of that out. How many were taken.
    pub(crate) fn shorten(&mut self, config: &Config, bytes: u64) -> u64 {
        let payload = u64::from(config.payload);
        let packets = bytes.min(self.unsent(config)) / payload;
        self.packets -= packets;
        self.msg.len -= packets * payload;
        packets * payload
    }

    /// What may be sent, in full packets; for traces.
    pub(crate) fn state(&self, config: &Config) -> FlowState {
        let bytes = |packets: u64| Some(packets * u64::from(config.payload));
        let flying = self.sent.iter().filter(|packet| packet.fate == Fate::InFlight);
        let (credit, in_flight) = (bytes(self.granted), bytes(flying.count() as u64));
        FlowState { credit, in_flight, ..FlowState::default() }
    }

    fn next_new(&self) -> u64 {
        self.base + self.sent.len() as u64
    }

    /// How many packets could be sent beyond those already granted.
    pub(crate) fn ungranted(&self) -> u64 {
        let new = (self.free() - self.next_new()).min(WINDOW_MAX - self.sent.len() as u64);
        (self.rtx_live + new).saturating_sub(self.granted)
    }

    /// specs/ndp.md#5.2, `send_one`: the head of the resend queue, else a new packet, else nothing.
    #[inline]
    pub(crate) fn send(
        &mut self,
        config: &Config,
        net: &NetView<'_>,
        now: Time,
    ) -> Option<Departure> {
        if !self.rtx.is_empty()
            && let Some(departure) = self.resend(config, net, now)
        {
            return Some(departure);
        }
        if !self.may_send_new() {
            return None;
        }
        let seq = self.next_new();
        let path = self.paths.next(net, None);
        let fate = Fate::InFlight;
        self.sent.push_back(SentPacket { at: now, path: path as u16, fate, resent: false });
        self.quiet_since = now;
        Some(self.departure(config, seq, path, false))
    }

    /// The head of the resend queue, on another path than before.
    #[inline(never)]
    fn resend(&mut self, config: &Config, net: &NetView<'_>, now: Time) -> Option<Departure> {
        while let Some(seq) = self.rtx.pop_front() {
            if let Some(packet) = sent_packet(&mut self.sent, self.base, seq)
                && packet.fate == Fate::Resend
            {
                let path = self.paths.next(net, Some(u32::from(packet.path)));
                let fate = Fate::InFlight;
                *packet = SentPacket { at: now, path: path as u16, fate, resent: true };
                self.rtx_live -= 1;
                return Some(self.departure(config, seq, path, true));
            }
        }
        None
    }

    fn may_send_new(&self) -> bool {
        (self.sent.len() as u64) < (self.free() - self.base).min(WINDOW_MAX)
    }

    fn departure(&self, config: &Config, seq: u64, path: u32, retransmission: bool) -> Departure {
        let payload = u64::from(config.payload);
        let offset = seq * payload;
        // A resent packet must not bring a message to life again that the receiver has finished
        // with; it carries SYN only while the receiver may have had nothing of it.
        let first_window = seq < u64::from(config.initial_window);
        Departure {
            seq,
            offset,
            len: (self.msg.len - offset).min(payload) as u16,
            path,
            syn: first_window && !(retransmission && self.known),
            last: seq + 1 == self.packets,
            retransmission,
        }
    }

    /// The index that a sequence number on the wire means; `None` if it was never sent.
    fn index(&self, wire: u32) -> Option<u64> {
        let seq = unwrap_index(self.base, wire);
        (seq < self.next_new()).then_some(seq)
    }

    /// Count a feedback (specs/ndp.md#5.2,5.4).
    fn note(&mut self, now: Time, kind: Feedback) {
        self.history = self.history << 1 | u32::from(kind == Feedback::Ack);
        self.feedbacks += 1;
        // A switch turns headers back, the receiver has said nothing: `abort_after` does not start
        // anew.
        if kind != Feedback::Bounce {
            self.quiet_since = now;
            self.pull_window += 1;
            self.known = true;
            if self.early_pulls > 0 {
                self.keep_early_pulls(0);
            }
        }
    }

    /// An ACK for packet `seq`; everything below `cumulative` has been received too. False if it
    /// cannot be one of ours.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        config: &Config,
        now: Time,
        rx_at: Time,
        seq: u32,
        cumulative: u32,
    ) -> bool {
        let Some(seq) = self.index(seq) else { return false };
        self.note(now, Feedback::Ack);
        if let Some(packet) = sent_packet(&mut self.sent, self.base, seq) {
            if packet.fate == Fate::InFlight && !packet.resent {
                self.rtt.sample(rx_at.since(packet.at));
                if self.rtt.drawn == 0 {
                    self.rtt.renew(config, self.draw);
                }
            }
            self.rtx_live -= u64::from(packet.fate == Fate::Resend);
            if packet.fate != Fate::Acked {
                packet.fate = Fate::Acked;
                self.paths.note(packet.path, Outcome::Ack);
            }
        }
        self.acknowledge_below(cumulative);
        true
    }

    /// A NACK for packet `seq`: it waits to be pulled, unless its pull is here already; the number
    /// of packets that may be sent now. `None` if it cannot be one of ours.
    #[inline(never)]
    pub(crate) fn on_nack(&mut self, now: Time, seq: u32, cumulative: u32) -> Option<u64> {
        let seq = self.index(seq)?;
        let mut pulled = 0;
        if self.mark_resend(seq, Outcome::Nack) {
            self.rtx.push_back(seq);
            pulled = self.early_pulls.min(1);
            self.early_pulls -= pulled;
        }
        self.note(now, Feedback::Nack);
        self.acknowledge_below(cumulative);
        Some(pulled)
    }

    /// The header of packet `seq` came back: whether it is to be resent at once (specs/ndp.md#5.4).
    pub(crate) fn on_bounce(&mut self, config: &Config, now: Time, seq: u32) -> Option<bool> {
        let seq = self.index(seq)?;
        self.note(now, Feedback::Bounce);
        // Rule a: no pull is on its way, and of the first window at most one packet is unanswered,
        // this bounce counted (table 5.2; the authors' program counts first, too).
        let alone = self.pull_window <= 0 && self.feedbacks + 1 >= self.first_window(config);
        if !self.mark_resend(seq, Outcome::Bounce) {
            return Some(false);
        }
        self.rtx.push_front(seq);
        Some(alone || self.path_is_bad(config))
    }

    /// Rule b: among the last feedbacks at least about a quarter are ACKs, so the network is not
    /// overloaded as a whole and the path was bad.
    fn path_is_bad(&self, config: &Config) -> bool {
        let mask = (1u64 << config.bounce_history) - 1;
        let acks = (u64::from(self.history) & mask).count_ones();
        acks > 0 && self.feedbacks.min(u64::from(config.bounce_history)) / u64::from(acks) <= 3
    }

    /// How many packets a pull number asks for. Those that find nothing to send are consumed by
    /// [`super::sender`].
    #[inline]
    pub(crate) fn on_pull(&mut self, now: Time, pull: u32) -> u64 {
        self.quiet_since = now;
        self.known = true;
        let ahead = pull.wrapping_sub(self.last_pull);
        // Wrap-safe comparison of the DPDK host (specs/ndp.md#2.2).
        if ahead == 0 || ahead > 1_000_000_000 {
            return 0;
        }
        self.last_pull = pull;
        self.stalls = 0;
        // A number that runs ahead stands for lost pulls, which are no longer expected either.
        self.pull_window -= i64::from(ahead);
        u64::from(ahead)
    }

    /// `idle` pulls have just found nothing to send. Those that came before the answer they belong
    /// to are kept for it; the others are consumed (specs/ndp.md#5.2).
    pub(crate) fn keep_early_pulls(&mut self, idle: u64) {
        let deficit = (-self.pull_window).max(0) as u64;
        self.early_pulls = (self.early_pulls + idle).min(deficit);
    }

    /// Turn a packet in flight into one to resend, because of `why`. False if it is none.
    fn mark_resend(&mut self, seq: u64, why: Outcome) -> bool {
        let Some(packet) = sent_packet(&mut self.sent, self.base, seq) else { return false };
        if packet.fate != Fate::InFlight {
            return false;
        }
        packet.fate = Fate::Resend;
        self.paths.note(packet.path, why);
        self.rtx_live += 1;
        true
    }

    /// Forget everything below the cumulative acknowledgement, and what is acknowledged after it.
    pub(crate) fn acknowledge_below(&mut self, cumulative: u32) {
        // How many packets that is; not more than were sent, and none if the number is an old one.
        let mut below = i64::from(cumulative.wrapping_sub(self.base as u32) as i32);
        while let Some(packet) = self.sent.front() {
            if packet.fate != Fate::Acked && below <= 0 {
                return;
            }
            below -= 1;
            self.rtx_live -= u64::from(packet.fate == Fate::Resend);
            if packet.fate == Fate::InFlight {
                // Its own ACK, which has been overtaken, will not find it any more.
                self.paths.note(packet.path, Outcome::Ack);
            }
            self.sent.pop_front();
            self.base += 1;
        }
    }

    /// Look at every packet in flight: those whose timeout has passed become packets to resend
    /// (specs/ndp.md#5.5). With nothing in flight, look at how long the flow has been waiting for
    /// pulls.
    pub(crate) fn check(&mut self, config: &Config, now: Time) -> Checked {
        if now >= self.quiet_since.saturating_add(config.abort_after) && self.base < self.next_new()
        {
            return Checked::GiveUp;
        }
        let rto = self.rtt.rto;
        let (mut due, mut oldest) = (0, Time::NEVER);
        for i in 0..self.sent.len() {
            let SentPacket { at, path, fate, .. } = self.sent[i];
            if fate != Fate::InFlight {
                continue;
            }
            if at.saturating_add(rto) <= now {
                due += 1;
                self.sent[i].fate = Fate::Resend;
                self.paths.note(path, Outcome::Loss);
                self.rtx_live += 1;
                self.rtx.push_back(self.base + i as u64);
            } else {
                oldest = oldest.min(at);
            }
        }
        self.rtt.renew(config, self.draw);
        if due > 0 || oldest != Time::NEVER || self.granted > 0 {
            let next = oldest.min(now).saturating_add(self.rtt.rto);
            return Checked::Due(due, next.max(now + Dur(1)));
        }
        self.check_stall(config, now)
    }

    /// Nothing is in flight and nothing may be sent. If no pull is expected, or none has come for
    /// long, one packet goes out unasked; its answer brings a pull number that makes up for lost
    /// ones.
    fn check_stall(&mut self, config: &Config, now: Time) -> Checked {
        if self.held && self.base == self.free() {
            return Checked::Due(0, now + self.rtt.rto);
        }
        let patience = match self.pull_window {
            ..=0 => self.rtt.rto,
            _ => Dur(config.stall_timeout.0.saturating_mul(1 << self.stalls.min(10))),
        };
        let due = self.quiet_since.saturating_add(patience);
        if due > now {
            return Checked::Due(0, due);
        }
        self.stalls += 1;
        Checked::Due(1, now + self.rtt.rto)
    }
}

/// What became of packet `seq`, unless it is below the cumulative acknowledgement `base` or was
/// never sent.
fn sent_packet(sent: &mut VecDeque<SentPacket>, base: u64, seq: u64) -> Option<&mut SentPacket> {
    sent.get_mut(seq.checked_sub(base)? as usize)
}
