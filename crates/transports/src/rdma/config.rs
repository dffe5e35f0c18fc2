//! [`Config`]: every number and switch of the transport. No `Default`: these values change the
//! science.

use endpoint::Framing;
use units::{Dur, Rate};
use wire::int;

use super::flow::OUTSTANDING_MAX;
use super::rule::{RuleConfig, dcqcn, hpcc, swift, timely};
use super::stream::Cut;
use crate::config::{ConfigError, refuse, within};
use crate::rto::RtoConfig;

/// What an acknowledgement answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Each packet.
    Packet,
    /// The last packet of a burst of as many full packets as fit in so many bytes of payload, one
    /// at least and 32768 at most (TIMELY: 16, 32 or 64 KB).
    Bytes(u32),
}

/// How what is lost is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// A receiver takes packets in order only, says once for each hole what it misses (NAK), and
    /// the sender goes on from there: RDMA over Converged Ethernet.
    GoBackN {
        /// The same hole is named again after so long (specs/rdma.md#6: 500 us).
        nack_interval: Dur,
    },
    /// A receiver takes what comes and acknowledges it by a bitmap; the sender repeats what is
    /// missing (Swift).
    Selective {
        /// A packet counts as lost when one sent so many later has been acknowledged, 1 to 63.
        reordering: u32,
    },
}

/// Who paces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The host that has the data sends it (RDMA WRITE).
    Write,
    /// The host that gets the data asks for it, segment by segment (RDMA READ).
    Read,
}

/// How quickly the packets of a segment follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NicPacing {
    /// As the interface can: a segment is a burst.
    Line,
    /// At this rate, if it is lower (TIMELY's figure 16).
    At(Rate),
    /// At the rate of the queue pair: no bursts at all ("ECN or Delay": per-packet pacing). Needs
    /// round-trip times that begin with the last packet, `count_nic_wait` off.
    Own,
}

/// What a round-trip time leaves out of its segment's serialisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subtract {
    /// That of all its packets.
    Segment,
    /// That of the last.
    Packet,
}

/// The clocks that round-trip times are measured by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timestamps {
    /// The interface stamps packets as they leave and arrive.
    Nic,
    /// The host does, when it hands a segment over and when it gets an acknowledgement.
    Host,
}

/// What is wrong with the stamps of acknowledgements (`clock.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Each is late by a time drawn from zero to this (TIMELY's figure 12).
    pub noise: Dur,
    /// The interface's clock drifts against the host's by at most so many parts in 10^9, drawn for
    /// each host, quick or slow. At most 10^6.
    pub drift_ppb: u32,
    /// How often the host reads both clocks to translate one into the other; above zero. `None`: at
    /// the start only, and drift accumulates.
    pub calibration: Option<Dur>,
    /// The host reads its own clock later than the interface's by a time drawn from zero to this.
    pub reading: Dur,
}

/// The parameters of the transport.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Payload of a full packet, bytes; at least 1, with `overhead` at most 65535.
    pub payload: u16,
    /// Bytes on the wire beside the payload, at least 1.
    pub overhead: u16,
    /// Bytes on the wire of acknowledgements and other control packets.
    pub ack_bytes: u16,
    /// The traffic class of data, 0 to 7.
    pub class: u8,
    /// The traffic class of control packets, 0 to 7: that of data, or one that goes before it (ACK
    /// priority).
    pub ack_class: u8,
    /// What is acknowledged.
    pub segment: Segment,
    /// How quickly the packets of a segment follow one another.
    pub nic_pacing: NicPacing,
    /// A new rate also changes the gap that has begun (specs/timely.md#4: a choice).
    pub recompute_gap: bool,
    /// A round-trip time includes what its segment waited for others in the interface.
    pub count_nic_wait: bool,
    /// What a round-trip time leaves out of its segment's own time on the first link: all of it
    /// (TIMELY), or only its last packet's (the simulator of "ECN or Delay", where the rest
    /// counts). Without `count_nic_wait`: all.
    pub subtract: Subtract,
    /// What round-trip times are measured by.
    pub timestamps: Timestamps,
    /// What is wrong with them. Drift and calibration matter to [`Timestamps::Nic`] only.
    pub clock: Clock,
    /// A receiver holds each acknowledgement and congestion notification for a time drawn from zero
    /// to this, so that they may overtake one another (CoNEXT 2016, section 5: jitter of the
    /// feedback).
    pub feedback_jitter: Dur,
    /// Who paces.
    pub operation: Operation,
    /// How losses are repaired.
    pub recovery: Recovery,
    /// The retransmission timeout.
    pub rto: RtoConfig,
    /// A queue pair fails after so many timeouts without progress, at least 1.
    pub max_timeouts: u32,
    /// Packets may be marked instead of dropped (ECT).
    pub ecn: bool,
    /// A receiver sends a congestion notification packet (CNP) for a marked packet, at most one per
    /// queue pair in so long (DCQCN: 50 us). `None`: it sends none.
    pub cnp_interval: Option<Dur>,
    /// Packets ask switches for telemetry, and acknowledgements return it.
    pub telemetry: bool,
    /// The rule that says how fast a queue pair sends.
    pub rule: RuleConfig,
}

impl Config {
    /// Long enough for what a pause of the fabric holds up (the first timeout: specs/rdma.md#6;
    /// the others are ours).
    pub const RTO: RtoConfig = RtoConfig {
        min: Dur::from_ms(20),
        max: Dur::from_ms(1_000),
        initial: Dur::from_ms(20),
        ack_ends_backoff: true,
        ..RtoConfig::RFC_6298
    };

    /// Queue pairs of RDMA over Converged Ethernet with `rule`: bytes of RoCEv2 (annex A17:
    /// Ethernet with its check sequence 18, IPv4 20, UDP 8, BTH 12, ICRC 4; AETH 4), an
    /// acknowledgement for each packet, before data where classes matter; go-back-N with
    /// specs/rdma.md#6; 7 retries (the greatest count of InfiniBand, volume 1, section 9.7.5.2.8).
    #[must_use]
    pub const fn roce(payload: u16, rule: RuleConfig) -> Self {
        Self {
            payload,
            overhead: 62,
            ack_bytes: 66,
            class: 0,
            ack_class: 7,
            segment: Segment::Packet,
            nic_pacing: NicPacing::Line,
            recompute_gap: true,
            count_nic_wait: true,
            subtract: Subtract::Segment,
            timestamps: Timestamps::Nic,
            clock: Clock::PERFECT,
            feedback_jitter: Dur::ZERO,
            operation: Operation::Write,
            recovery: Recovery::GoBackN { nack_interval: Dur::from_us(500) },
            rto: Self::RTO,
            max_timeouts: 7,
            ecn: false,
            cnp_interval: None,
            telemetry: false,
            rule,
        }
    }

    /// TIMELY as published: an acknowledgement for each segment of 16 KB (specs/timely.md#2), which
    /// is released by the rate at the release of the one before (specs/timely.md#4, "schedule":
    /// next_time = release + seg / R at release), whatever the rate becomes until then.
    #[must_use]
    pub const fn timely(payload: u16) -> Self {
        let rule = RuleConfig::Timely(timely::Params::PAPER);
        let segment = Segment::Bytes(16 << 10);
        Self { segment, recompute_gap: false, ..Self::roce(payload, rule) }
    }

    /// DCQCN: packets are marked, and marks come back by a CNP every 50 us at most
    /// (specs/rdma.md#4), unless `params` go by acknowledgements.
    #[must_use]
    pub const fn dcqcn(payload: u16, params: dcqcn::Params) -> Self {
        let cnp_interval = match params.cuts {
            dcqcn::Cuts::Cnp => Some(Dur::from_us(50)),
            dcqcn::Cuts::Clocked(_) => None,
        };
        Self { ecn: true, cnp_interval, ..Self::roce(payload, RuleConfig::Dcqcn(params)) }
    }

    /// HPCC: packets have room for telemetry; acknowledgements are in the class of data, as
    /// wherever windows limit what is in flight (specs/rdma.md#5, last paragraph).
    #[must_use]
    pub const fn hpcc(payload: u16, params: hpcc::Params) -> Self {
        let roce = Self::roce(payload, RuleConfig::Hpcc(params));
        let overhead = roce.overhead + int::LEN as u16;
        Self { overhead, telemetry: true, ack_class: roce.class, ..roce }
    }

    /// Swift: what is lost is repeated, after three later packets or 100 us at least, 1 ms at
    /// first; what a packet waits in its own host's interface is not the fabric's delay
    /// (specs/rdma.md#7).
    #[must_use]
    pub const fn swift(payload: u16, params: swift::Params) -> Self {
        Self {
            count_nic_wait: false,
            recovery: Recovery::Selective { reordering: 3 },
            rto: RtoConfig { min: Dur::from_us(100), initial: Dur::from_ms(1), ..Self::RTO },
            ..Self::roce(payload, RuleConfig::Swift(params))
        }
    }

    /// Check every range.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        for (name, value) in [
            ("payload", u32::from(self.payload)),
            ("overhead", u32::from(self.overhead)),
            ("ack_bytes", u32::from(self.ack_bytes)),
            ("max_timeouts", self.max_timeouts),
        ] {
            if value == 0 {
                return refuse(name, 0, "it must be at least 1");
            }
        }
        for (name, value) in [("class", self.class), ("ack_class", self.ack_class)] {
            if value > 7 {
                return refuse(name, value, "it must be at most 7");
            }
        }
        let Self { payload, overhead, .. } = *self;
        if payload.checked_add(overhead).is_none() {
            let what =
                format!("payload {payload} B and overhead {overhead} B exceed 65535 B together");
            return Err(ConfigError::new(["payload", "overhead"], what));
        }
        if let Segment::Bytes(bytes) = self.segment
            && self.cut().segment > OUTSTANDING_MAX
        {
            return refuse("segment", bytes, "it must be at most 32768 payloads");
        }
        match self.nic_pacing {
            NicPacing::Line => {}
            NicPacing::At(rate) => Speed::Fixed(rate).check("nic_pacing")?,
            NicPacing::Own if self.stamps_departures() => {}
            NicPacing::Own => {
                let what = "nic_pacing own needs timestamps nic and count_nic_wait off";
                return Err(ConfigError::new(["nic_pacing", "timestamps", "count_nic_wait"], what));
            }
        }
        if let Recovery::Selective { reordering } = self.recovery {
            let (name, value) = ("reordering", f64::from(reordering));
            within(name, value, 1.0..=63.0, "it must be from 1 to 63")?;
            let needs = [
                (self.segment != Segment::Packet, "segment packet"),
                (self.telemetry, "an acknowledgement without telemetry"),
                (self.operation == Operation::Read, "operation write"),
            ];
            if let Some((_, of)) = needs.into_iter().find(|(missing, _)| *missing) {
                let what = format!("recovery selective needs {of}");
                return Err(ConfigError::new(["recovery"], what));
            }
        }
        if self.feedback_jitter > Dur::ZERO && self.operation == Operation::Read {
            let what = "feedback_jitter needs operation write";
            return Err(ConfigError::new(["feedback_jitter"], what));
        }
        self.clock.check()?;
        self.check_rto()?;
        self.rule.params().check()
    }

    fn check_rto(&self) -> Result<(), ConfigError> {
        let rto = self.rto;
        for (name, value) in [("rto_min", rto.min), ("rto_initial", rto.initial)] {
            within(name, value.0 as f64, 1.0..=f64::MAX, "it must be above 0")?;
        }
        if rto.min > rto.max {
            let what = "rto_min must be at most rto_max";
            return Err(ConfigError::new(["rto_min", "rto_max"], what));
        }
        Ok(())
    }

    /// How messages are cut into packets and segments.
    pub(super) fn cut(&self) -> Cut {
        let payload = u64::from(self.payload.max(1));
        let segment = match self.segment {
            Segment::Packet => 1,
            Segment::Bytes(bytes) => (u64::from(bytes) / payload).max(1),
        };
        Cut { payload, overhead: u64::from(self.overhead), segment }
    }

    /// The longest acknowledgement on the wire, bytes.
    #[must_use]
    pub const fn longest_ack(&self) -> u16 {
        let telemetry = if self.telemetry { int::LEN as u16 } else { 0 };
        self.ack_bytes.saturating_add(telemetry)
    }

    /// How messages are cut into packets.
    #[must_use]
    pub const fn framing(&self) -> Framing {
        Framing { payload: self.payload, overhead: self.overhead }
    }
}

/// A rate, in itself or by that of the host's interface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// So much of the line rate.
    Share(f64),
    /// This, whatever the line.
    Fixed(Rate),
}

impl Speed {
    /// Bits per second on a line of `line`.
    #[must_use]
    pub fn of(self, line: Rate) -> f64 {
        match self {
            Self::Share(share) => share * line.0 as f64,
            Self::Fixed(rate) => rate.0 as f64,
        }
    }

    pub(super) fn check(self, name: &'static str) -> Result<(), ConfigError> {
        let positive = match self {
            Self::Share(value) => value > 0.0 && value <= 1.0,
            Self::Fixed(rate) => rate.0 > 0,
        };
        if positive {
            return Ok(());
        }
        let must = "must be a rate above zero, or a share of the line rate above 0 and at most 1";
        Err(ConfigError::new([name], format!("{name} {must}")))
    }
}

/// The rate of a queue pair that begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// The line rate over n + 1, where n other queue pairs of the host have something in flight.
    Share,
    /// This.
    At(Speed),
}

impl Initial {
    /// Bits per second on a line of `line`, with `others` in flight.
    #[must_use]
    pub fn of(self, line: Rate, others: u32) -> f64 {
        match self {
            Self::Share => line.0 as f64 / (f64::from(others) + 1.0),
            Self::At(speed) => speed.of(line),
        }
    }

    pub(super) fn check(self, name: &'static str) -> Result<(), ConfigError> {
        match self {
            Self::Share => Ok(()),
            Self::At(speed) => speed.check(name),
        }
    }
}
