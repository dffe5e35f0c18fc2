//! SLEEK: the recovery of a sender where nothing is trimmed, by how many packets have arrived out
//! of order, and by probes (specs/uet.md#11). Arithmetic only: what is sent is the sender's
//! business.

use std::ops::Range;

use units::{Dur, Time};

/// So many windows of packets out of order are a loss, as a fraction.
const REORDERED: (u64, u64) = (3, 2);
/// But never fewer packets than this.
const REORDERED_MIN: u64 = 5;
/// While more is to be sent, a probe goes so many base round trips after the last answer.
const FIRST_PROBE: u64 = 3;
/// And again after so many.
const NEXT_PROBE: u64 = 5;

/// What an acknowledgement says, and what follows from the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// All packets below have arrived.
    pub(super) expected: u64,
    /// Packets sent at least once.
    pub(super) sent: u64,
    /// Packets that have arrived out of order.
    pub(super) out_of_order: u64,
    /// Packets wait for retransmission.
    pub(super) resends: bool,
    /// Bytes: the window, its greatest value, and the payload of a full packet.
    pub(super) window: u64,
    pub(super) max_window: u64,
    pub(super) payload: u64,
}

/// The recovery of one message.
#[derive(Debug, Default)]
pub(super) struct Sleek {
    /// It lasts until all packets below this one have arrived; `None`: nothing is known to be lost.
    until: Option<u64>,
    /// Packets below are not sent again on account of what arrives out of order.
    resent: u64,
    /// What was sent later is not lost on account of the probe by which it began.
    sent_by: Time,
    /// When a probe is due.
    probe_due: Option<Time>,
    /// The last probe, and when it was sent.
    probe: u32,
    probe_sent: Time,
}

impl Sleek {
    /// Whether packets are sent again whatever the window says.
    pub(super) fn is_recovering(&self) -> bool {
        self.until.is_some()
    }

    /// The packets to be sent again, of those that have not arrived.
    pub(super) fn on_ack(&mut self, seen: Seen) -> Range<u64> {
        let Seen { expected, sent, window, max_window, payload, .. } = seen;
        self.until = self.until.filter(|&until| expected < until);
        let least = (window * REORDERED.0 / REORDERED.1).min(max_window) / payload;
        let lost = seen.out_of_order >= least.max(REORDERED_MIN);
        if self.until.is_none() && lost && !seen.resends {
            (self.until, self.sent_by) = (Some(sent), Time::NEVER);
        }
        let Some(until) = self.until else { return 0..0 };
        let range = self.resent.max(expected)..until.min(expected + window / payload);
        self.resent = self.resent.max(range.end);
        range
    }

    /// The last probe came back without delay: what was sent more than `before` ahead of it and has
    /// not arrived is lost.
    pub(super) fn on_probe(&mut self, expected: u64, sent: u64, before: Dur) {
        self.until = Some(sent);
        self.resent = expected;
        self.sent_by = Time(self.probe_sent.0.saturating_sub(before.0));
    }

    /// Whether a packet that was sent at `at` may be lost.
    pub(super) fn may_be_lost(&self, at: Time) -> bool {
        at <= self.sent_by
    }

    /// Packet `seq`, sent again, is lost again.
    pub(super) fn resend(&mut self, seq: u64) {
        self.resent = self.resent.min(seq);
    }

    /// An answer came `now`; `more`: something is yet to be sent. `None`: nothing is waited for.
    pub(super) fn plan(&mut self, now: Time, more: Option<bool>, base: Dur, target: Dur) {
        let wait = |more| if more { base * FIRST_PROBE } else { base + target };
        self.probe_due = more.map(|more| now.saturating_add(wait(more)));
    }

    pub(super) fn probe_due(&self) -> Option<Time> {
        self.probe_due
    }

    /// The number of the probe to be sent, if one is due.
    pub(super) fn probe(&mut self, now: Time, base: Dur) -> Option<u32> {
        self.probe_due.filter(|&due| due <= now)?;
        self.probe = self.probe.wrapping_add(1);
        self.probe_sent = now;
        self.probe_due = Some(now.saturating_add(base * NEXT_PROBE));
        Some(self.probe)
    }

    /// How long ago probe `number`, which was answered, was sent; `None` unless it is the last.
    pub(super) fn probe_rtt(&self, now: Time, number: u32) -> Option<Dur> {
        (number == self.probe).then(|| now.since(self.probe_sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 43 packets of 4086 B in flight are a window of 175 698 B.
    fn seen(expected: u64, sent: u64, out_of_order: u64) -> Seen {
        let (window, max_window, payload) = (175_698, 262_926, 4086);
        Seen { expected, sent, out_of_order, resends: false, window, max_window, payload }
    }

    /// One and a half windows are 64 packets.
    #[test]
    fn recovery_begins_with_packets_out_of_order_and_ends_with_what_was_sent() {
        let mut sleek = Sleek::default();
        assert_eq!(sleek.on_ack(seen(10, 90, 63)), 0..0);
        assert!(!sleek.is_recovering());
        assert_eq!(sleek.on_ack(Seen { resends: true, ..seen(10, 90, 64) }), 0..0);
        assert_eq!(sleek.on_ack(seen(10, 90, 64)), 10..53, "a window of them");
        assert_eq!(sleek.on_ack(seen(12, 95, 64)), 53..55, "the rest as the window moves");
        assert_eq!(sleek.on_ack(seen(60, 99, 0)), 60..90, "what was sent before");
        assert_eq!(sleek.on_ack(seen(89, 120, 0)), 90..90);
        assert!(sleek.is_recovering());
        assert_eq!(sleek.on_ack(seen(90, 120, 30)), 0..0);
        assert!(!sleek.is_recovering());
    }

    #[test]
    fn five_packets_out_of_order_are_no_loss_however_small_the_window() {
        let mut sleek = Sleek::default();
        let small = |out_of_order| Seen { window: 4150, ..seen(0, 9, out_of_order) };
        assert_eq!(sleek.on_ack(small(4)), 0..0);
        assert_eq!(sleek.on_ack(small(5)), 0..1);
    }

    #[test]
    fn what_is_lost_again_is_sent_again() {
        let mut sleek = Sleek::default();
        sleek.plan(Time::ZERO, Some(true), Dur::from_us(14), Dur::from_us(10));
        sleek.probe(Time::ZERO + Dur::from_us(42), Dur::from_us(14));
        sleek.on_probe(10, 40, Dur::from_us(10));
        let at = |us| Time::ZERO + Dur::from_us(us);
        assert!(sleek.may_be_lost(at(32)) && !sleek.may_be_lost(at(33)), "it is on its way");
        assert_eq!(sleek.on_ack(seen(10, 40, 0)), 10..40, "a probe needs no packets out of order");
        sleek.resend(12);
        assert_eq!(sleek.on_ack(seen(11, 40, 0)), 12..40);
        assert_eq!(sleek.on_ack(seen(11, 40, 0)), 40..40);
    }

    #[test]
    fn probes_go_when_nothing_is_heard_and_only_the_last_counts() {
        let (base, target) = (Dur::from_us(14), Dur::from_us(10));
        let at = |us| Time::ZERO + Dur::from_us(us);
        let mut sleek = Sleek::default();
        sleek.plan(at(0), Some(false), base, target);
        assert_eq!(sleek.probe_due(), Some(at(24)));
        sleek.plan(at(0), Some(true), base, target);
        assert_eq!((sleek.probe_due(), sleek.probe(at(41), base)), (Some(at(42)), None));
        assert_eq!(sleek.probe(at(42), base), Some(1));
        assert_eq!(sleek.probe(at(112), base), Some(2), "five round trips later");
        assert_eq!(sleek.probe_rtt(at(130), 1), None);
        assert_eq!(sleek.probe_rtt(at(130), 2), Some(Dur::from_us(18)));
        sleek.plan(at(130), None, base, target);
        assert_eq!(sleek.probe_due(), None);
    }
}
