//! [`Config`]: every number and switch of Homa. No `Default`: these values change the science.

use endpoint::{Framing, NetView, UNBOUNDED};
use units::Dur;

use super::cutoffs::Cutoffs;
use crate::config::{self, ConfigError};
pub use crate::ndp::PathStrategy;

/// Which size of a message decides the level of its unscheduled packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelBy {
    /// What is left to send at that packet ("STATIC_CBF_GRADUATED" of the authors' simulator).
    Remaining,
    /// All of it (Linux).
    Length,
}

/// Incast control (specs/homa.md#10; P only): a host with many requests out asks for responses that
/// begin with little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incast {
    /// While more requests than this are unanswered, further ones are marked. A request is any
    /// message that is no response: meant for traffic of requests and responses.
    pub threshold: u32,
    /// The response to a marked request begins with so many bytes unscheduled: in a packet of its
    /// own that is no longer, or rounded up to whole packets if it is not less than one.
    pub bytes: u32,
}

/// What a packet is to its receiver if a switch has cut its payload off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trimmed {
    /// Lost: Homa.
    Lost,
    /// Refused at once: Homa-Tr, without the defects of its public code (specs/homa-tr.md#6).
    Refused,
    /// The same with E2, E3 and E4 of that section: refused packets wait for a GRANT even if none
    /// will come, and shrink the window; also what has come before is refused.
    RefusedAsPublished,
}

/// The parameters of Homa. Sources as in specs/homa.md: P is the paper (SIGCOMM 2018), OM its
/// authors' simulator, LK the Linux kernel module. Levels of priority are numbered from the
/// highest, 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Payload of a full packet, bytes; 1 or more, with `header` at most 65535. OM: 1442.
    pub payload: u16,
    /// Bytes on the wire beside the payload, all headers, the check sequence, the preamble and the
    /// gap between packets. OM: 30 of Homa, 28 of IP and UDP, 38 of Ethernet.
    pub header: u16,
    /// Bytes on the wire of a control packet. OM: 84, the least that Ethernet sends.
    pub control: u16,
    /// How packets are spread over paths: an independent draw for each, or one path for a message.
    pub paths: PathStrategy,
    /// Payload bytes that leave unscheduled at the start of a message, and that a message with
    /// grants is kept ahead by; rounded up to whole packets. OM: 9328, which are 10 000 on the
    /// wire.
    pub rtt_bytes: u32,
    /// Priority levels in all, 1 to 8. P: 8.
    pub priorities: u8,
    /// How unscheduled packets are divided among the first of them; what is left is for scheduled
    /// ones.
    pub cutoffs: Cutoffs,
    /// What of a message the cut-offs are compared with.
    pub priority_by: LevelBy,
    /// Messages that are given grants at once (K). P: as many as scheduled levels.
    pub overcommitment: u32,
    /// The last `rtt_bytes` of a message are granted at the level of an unscheduled message of that
    /// size, where that is better ("boostTailBytesPrio" of OM).
    pub boost_tail: bool,
    /// Incast control, if any.
    pub incast: Option<Incast>,
    /// Whether this is Homa-Tr.
    pub trimmed: Trimmed,
    /// A receiver that misses packets which it has asked for, or a sender that hears nothing, asks
    /// again after so long, and each time that it passes again. P: "a few ms". LK: 5 ms.
    pub resend_timeout: Dur,
    /// That a message is whole is reported with the next data to its sender, or after so long by
    /// itself. LK leaves the latter to its sender, who asks after 2 ms.
    pub ack_delay: Dur,
    /// A message fails at its sender if no packet about it comes for so long. LK: 100 ms.
    pub abort_after: Dur,
    /// And at its receiver, which remembers that it has; at least `abort_after`. Ours.
    pub rx_idle_timeout: Dur,
}

impl Config {
    /// The paper's simulations (OM) with `unscheduled` of eight levels for unscheduled packets,
    /// divided as `cutoffs` says, and as much overcommitment as other levels (one at least).
    #[must_use]
    pub fn paper(cutoffs: Cutoffs) -> Self {
        Self {
            payload: 1442,
            header: 96,
            control: 84,
            paths: PathStrategy::Random,
            rtt_bytes: 9328,
            priorities: 8,
            cutoffs,
            priority_by: LevelBy::Remaining,
            overcommitment: u32::from(8 - cutoffs.levels().min(7)),
            boost_tail: true,
            incast: None,
            trimmed: Trimmed::Lost,
            resend_timeout: Dur::from_ms(5),
            ack_delay: Dur::from_ms(1),
            abort_after: Dur::from_ms(10_000),
            rx_idle_timeout: Dur::from_ms(15_000),
        }
    }

    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let &Self { payload, header, priorities, .. } = self;
        let positive = [
            ("payload", u64::from(payload)),
            ("control", u64::from(self.control)),
            ("rtt_bytes", u64::from(self.rtt_bytes)),
            ("overcommitment", u64::from(self.overcommitment)),
            ("resend_timeout", self.resend_timeout.0),
            ("abort_after", self.abort_after.0),
        ];
        config::positive("Homa", &positive)?;
        config::fits("Homa", payload, header)?;
        if self.rtt_packets() >= u64::from(u16::MAX) {
            let what = "Homa: rtt_bytes are more than 65534 packets";
            return Err(ConfigError::new(["rtt_bytes", "payload"], what));
        }
        if !(1..=8).contains(&priorities) {
            let what = format!("Homa: priorities must be from 1 to 8, not {priorities}");
            return Err(ConfigError::new(["priorities"], what));
        }
        if self.cutoffs.levels() > priorities {
            let levels = self.cutoffs.levels();
            let what = format!(
                "Homa: {levels} priorities for unscheduled packets, and only {priorities} in all"
            );
            let fields = ["priorities", "cutoffs", "unscheduled_priorities"];
            return Err(ConfigError::new(fields, what));
        }
        if self.abort_after > self.rx_idle_timeout {
            let what = "Homa: abort_after must not be more than rx_idle_timeout";
            return Err(ConfigError::new(["abort_after", "rx_idle_timeout"], what));
        }
        Ok(())
    }

    /// How a message is cut into packets.
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing { payload: self.payload, overhead: self.header }
    }

    /// How a message of `size` bytes is cut, whose first packet has `head` bytes, or is as the
    /// others if that is zero.
    pub(super) fn cut(&self, size: u64, head: u16) -> Cut {
        let head = if head == 0 { self.payload } else { head.min(self.payload) };
        Cut { size, payload: self.payload, head }
    }

    /// `rtt_bytes` in packets.
    pub(super) fn rtt_packets(&self) -> u64 {
        self.in_packets(self.rtt_bytes)
    }

    /// `bytes` of payload in packets, rounded up.
    pub(super) fn in_packets(&self, bytes: u32) -> u64 {
        u64::from(bytes).div_ceil(u64::from(self.payload.max(1)))
    }

    /// How long a full packet takes on interface 0: the least between two grants to one sender.
    pub(super) fn packet_time(&self, net: &NetView<'_>) -> Dur {
        net.rate(0).serialise(u64::from(self.payload) + u64::from(self.header))
    }

    /// The traffic class of a level: classes are numbered from the lowest.
    #[must_use]
    pub fn class(&self, level: u8) -> u8 {
        7 - level.min(7)
    }

    /// The level of packet `index` of a message of `len` bytes, if it leaves unscheduled.
    pub(super) fn unscheduled_level(&self, index: u64, len: u64) -> u8 {
        match self.priority_by {
            LevelBy::Length => self.cutoffs.level(len),
            LevelBy::Remaining => {
                let sent = index.saturating_mul(u64::from(self.payload));
                self.cutoffs.level(len.saturating_sub(sent))
            }
        }
    }

    /// The level at which the best but `rank` of `active` messages is granted (specs/homa.md#5.3,
    /// rule 5): the lowest levels, so that a better message that comes later finds one above; those
    /// beyond share the last.
    pub(super) fn scheduled_level(&self, rank: usize, active: usize) -> u8 {
        let scheduled = usize::from(self.priorities - self.cutoffs.levels().min(self.priorities));
        let above = scheduled.saturating_sub(active);
        let place = (above + rank).min(scheduled.saturating_sub(1));
        // Below eight.
        (usize::from(self.cutoffs.levels()) + place).min(usize::from(self.priorities) - 1) as u8
    }

    /// The best level of packets that are not first packets of their message (the specification's
    /// N_UNSCHED).
    pub(super) fn first_scheduled_level(&self) -> u8 {
        self.cutoffs.levels().min(self.priorities - 1)
    }

    /// The level of a grant for packet `index`, the first that has none.
    pub(super) fn grant_level(&self, scheduled: u8, index: u64, cut: &Cut) -> u8 {
        let left_bytes = cut.left(index);
        if !self.boost_tail || left_bytes >= u64::from(self.rtt_bytes) {
            return scheduled;
        }
        let level = match self.priority_by {
            LevelBy::Length => self.cutoffs.level(cut.size),
            LevelBy::Remaining => self.cutoffs.level(left_bytes),
        };
        scheduled.min(level)
    }
}

/// How a message is cut: into full packets but for the last, and for the first of one that begins
/// with little.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) size: u64,
    payload: u16,
    /// Payload of the first packet, if the message has so much.
    head: u16,
}

impl Cut {
    /// How many packets. One of no bytes needs a packet to say so.
    pub(super) fn packets(&self) -> u64 {
        match self.size {
            UNBOUNDED => u64::MAX,
            size => 1 + size.saturating_sub(u64::from(self.head)).div_ceil(u64::from(self.payload)),
        }
    }

    /// Where packet `index` begins; beyond the end if there is none.
    pub(super) fn offset(&self, index: u64) -> u64 {
        let Some(others) = index.checked_sub(1) else { return 0 };
        others.saturating_mul(u64::from(self.payload)).saturating_add(u64::from(self.head))
    }

    /// Bytes from packet `index` on.
    pub(super) fn left(&self, index: u64) -> u64 {
        self.size.saturating_sub(self.offset(index))
    }

    /// Payload of packet `index`.
    pub(super) fn payload_of(&self, index: u64) -> u16 {
        let full = if index == 0 { self.head } else { self.payload };
        // At most `full`.
        self.left(index).min(u64::from(full)) as u16
    }

    /// The payload of the first packet as headers name it: zero if it is a full one, or all there
    /// is.
    pub(super) fn short_head(&self) -> u16 {
        let short = self.head < self.payload && self.size > u64::from(self.head);
        if short { self.head } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(cutoffs: &[u64]) -> Config {
        Config::paper(Cutoffs::new(cutoffs).unwrap())
    }

    /// specs/homa.md#5.3, rule 5, for the four scheduled levels of W3: 4 to 7.
    #[test]
    fn few_active_messages_use_the_lowest_levels() {
        let w3 = config(&[433, 2339, 6756]);
        assert_eq!(w3.overcommitment, 4);
        let levels =
            |active| (0..active).map(|r| w3.scheduled_level(r, active)).collect::<Vec<_>>();
        assert_eq!(levels(1), [7]);
        assert_eq!(levels(2), [6, 7]);
        assert_eq!(levels(4), [4, 5, 6, 7]);
        assert_eq!(levels(6), [4, 5, 6, 7, 7, 7], "those beyond share the lowest");
        let none = config(&[1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(none.scheduled_level(0, 3), 7, "no level of their own");
    }

    /// The last `rtt_bytes` have the level of an unscheduled message of that size, if that is
    /// better.
    #[test]
    fn the_tail_is_boosted() {
        let w3 = config(&[433, 2339, 6756]);
        let cut = w3.cut(20 * 1442, 0);
        let level = |left: u64| w3.grant_level(5, 20 - left, &cut);
        assert_eq!(level(7), 5, "10094 B are left");
        assert_eq!([6, 5, 4, 2, 1].map(level), [3, 3, 2, 2, 1], "8652, 7210, 5768, 2884, 1442 B");
        assert_eq!(Config { boost_tail: false, ..w3 }.grant_level(5, 19, &cut), 5);
        let by_length = Config { priority_by: LevelBy::Length, ..w3 };
        assert_eq!(by_length.grant_level(5, 19, &cut), 3);
    }

    #[test]
    fn a_message_may_begin_with_a_short_packet() {
        let w3 = config(&[433]);
        let packets = |size, head| {
            let cut = w3.cut(size, head);
            (0..cut.packets()).map(|n| (cut.offset(n), cut.payload_of(n))).collect::<Vec<_>>()
        };
        assert_eq!(packets(3000, 0), [(0, 1442), (1442, 1442), (2884, 116)]);
        assert_eq!(packets(3000, 400), [(0, 400), (400, 1442), (1842, 1158)]);
        assert_eq!((packets(400, 400), packets(0, 400)), (vec![(0, 400)], vec![(0, 0)]));
        assert_eq!(w3.cut(400, 400).short_head(), 0, "all there is");
        assert_eq!([0, 400, 2000].map(|head| w3.cut(9000, head).short_head()), [0, 400, 0]);
        assert_eq!([0, 1, 2, 3].map(|n| w3.cut(3000, 400).left(n)), [3000, 2600, 1158, 0]);
    }

    #[test]
    fn classes_are_numbered_from_the_lowest() {
        let w3 = config(&[433, 2339, 6756]);
        assert_eq!((w3.class(0), w3.class(7)), (7, 0));
        assert_eq!([0, 1, 5, 6].map(|index| w3.unscheduled_level(index, 9000)), [3, 3, 1, 0]);
    }

    #[test]
    fn contradictions_are_refused() {
        let good = config(&[433]);
        assert_eq!(good.check(), Ok(()));
        for (config, what) in [
            (Config { payload: 0, ..good }, "payload must be more than zero"),
            (Config { priorities: 9, ..good }, "priorities must be from 1 to 8, not 9"),
            (
                Config { priorities: 1, ..good },
                "2 priorities for unscheduled packets, and only 1 in all",
            ),
            (
                Config { payload: 1, rtt_bytes: 70_000, ..good },
                "rtt_bytes are more than 65534 packets",
            ),
            (
                Config { rx_idle_timeout: Dur(1), ..good },
                "abort_after must not be more than rx_idle_timeout",
            ),
        ] {
            assert_eq!(config.check().unwrap_err().to_string(), format!("Homa: {what}"));
        }
    }
}
