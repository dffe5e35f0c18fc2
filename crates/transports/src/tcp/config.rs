//! The parameters of [`super::Tcp`], and published sets of them.

use endpoint::Framing;
use units::Dur;

use super::ictcp;
use super::pias::Demotion;
use super::rr;
use super::rule::{RuleConfig, between};
use crate::config::{ConfigError, refuse, within};
use crate::rto::RtoConfig;

/// How the window grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Increase {
    /// By one segment per acknowledgement in slow start and by 1/cwnd in congestion avoidance,
    /// however much it acknowledges (RFC 5681, section 3.1; ns-2, ns-3.17).
    PerAck,
    /// By the segments acknowledged (RFC 3465), in slow start at most `slow_start_limit` of them
    /// per acknowledgement: 2 in the RFC, and then at most 1 in the slow start that follows a
    /// timeout (RFC 3465, section 2.3); infinite in Linux, after a timeout too.
    PerByte {
        /// L of RFC 3465, segments.
        slow_start_limit: f64,
    },
}

/// How losses are repaired before the timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// One segment; the first acknowledgement of anything new ends the recovery (RFC 5681, section
    /// 3.2). Further losses of the window need three duplicates each, or the timer.
    Reno,
    /// A segment per round trip, by partial acknowledgements (RFC 6582).
    NewReno,
    /// By what SACK blocks say is missing (RFC 2018, 6675).
    Sack,
}

/// Whether what a loss has taken is restored when it proves to have been none, and what proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// It never is.
    None,
    /// Timestamps do (RFC 3522), which [`Config::timestamps`] must turn on.
    Eifel,
    /// Duplicates reported do (RFC 3708), which [`Config::dsack`] must turn on.
    Dsack,
}

/// What a loss or a timeout halves (or reduces as its rule says).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduces {
    /// What is in flight, if that is less than the window (RFC 5681, equation 4; ns-3).
    Flight,
    /// The window in use: the least of the congestion window, the receiver's and the cap, however
    /// little of it is in flight (specs/tcp.md#3; ns-2, Linux, htsim).
    Window,
}

/// How a connection sends again that was silent for longer than its timeout: since its last
/// segment, or with [`IdleRestart::OneSegment`] for as long since the last acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleRestart {
    /// As if it had not been.
    Never,
    /// From the initial window, by slow start (RFC 5681, section 4.1).
    InitialWindow,
    /// From one segment, by slow start (ns-2: its timer goes on when all is acknowledged).
    OneSegment,
    /// The window is halved for each timeout of silence, not below the initial window, and ssthresh
    /// is at least three quarters of what it was (RFC 2861, section 2; Linux).
    Halving,
}

/// What receivers let senders have in flight (RFC 9293, section 3.8.6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReceiveWindow {
    /// Anything: receivers have memory for everything.
    Unlimited,
    /// What the receiver's interface has room for (ICTCP).
    Ictcp(ictcp::Params),
}

/// Everything that can be set about TCP. There is no default: each value changes results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Largest payload of a segment, bytes. Cut to what the MTU leaves.
    pub mss: u16,
    /// Wire bytes of a data packet beside its payload. 40: IP and TCP (ns-2, htsim); 64 and more
    /// where Ethernet and options count (specs/tcp.md#1).
    pub overhead: u16,
    /// Wire bytes of a pure acknowledgement: 40 (ns-2, htsim) or 64 (smallest Ethernet frame).
    pub ack_bytes: u16,
    /// Traffic class of all packets, 0..=7.
    pub class: u8,
    /// That of data only at the beginning of a message, and lower classes beyond (PIAS). At most
    /// `class` steps.
    pub pias: Option<Demotion>,
    /// Initial sequence number of every connection. Both ends know it, handshake or not. 0 outside
    /// tests of wrap-around.
    pub isn: u32,
    /// Connections begin with SYN and SYN-ACK; otherwise with the first data.
    pub handshake: bool,
    /// Initial window, segments, at least 1 (10: RFC 6928; 2 to 4: RFC 5681).
    pub initial_window: f64,
    /// Initial slow-start threshold, segments; infinite unless a profile says otherwise
    /// (RFC 5681, section 3.1: "arbitrarily high").
    pub initial_ssthresh: f64,
    /// Administrative cap of the window, segments, at least 1; infinite for none
    /// (specs/tcp.md#10). A message may set a lower one ([`endpoint::Msg::window`]).
    pub window_cap: f64,
    /// What receivers advertise, and senders heed.
    pub receive_window: ReceiveWindow,
    /// How the window grows and shrinks.
    pub rule: RuleConfig,
    /// How losses are repaired.
    pub recovery: Recovery,
    /// All packets say that they may be marked (ECT), and marks are echoed and heeded (RFC 3168;
    /// by RFC 8257 with [`RuleConfig::Dctcp`] and [`RuleConfig::D2tcp`], which need it).
    pub ecn: bool,
    /// Below `ssthresh` the window grows exponentially (RFC 5681, section 3.1). Otherwise it always
    /// grows as in congestion avoidance (a variant of Phanishayee et al., FAST 2008).
    pub slow_start: bool,
    /// What ssthresh is reckoned from after a loss or a timeout.
    pub ssthresh_of: Reduces,
    /// What an acknowledgement counts as when the window grows.
    pub increase: Increase,
    /// The window grows even while it is not used up (ns-2). Otherwise it is frozen then
    /// (Linux, RFC 7661).
    pub grow_unused: bool,
    /// Duplicate acknowledgements that mean loss, at least 1 (3: RFC 5681, section 3.2).
    pub dup_threshold: u32,
    /// That number is learnt instead, by RR-TCP, which [`Config::dsack`] must turn on.
    pub rr: Option<rr::Params>,
    /// Acknowledgements report duplicates (RFC 2883), which needs [`Recovery::Sack`].
    pub dsack: bool,
    /// Whether and how a needless reduction is undone.
    pub undo: Undo,
    /// The first two duplicate acknowledgements each release a new segment (RFC 3042).
    pub limited_transmit: bool,
    /// In recovery, only the first partial acknowledgement restarts the timer ("impatient");
    /// otherwise every one does ("slow but steady"; RFC 6582, section 4). SACK always does.
    pub impatient: bool,
    /// On leaving recovery the window is at most one segment above what is in flight
    /// (RFC 6582, section 3.2, step 3, option 1), so that no burst follows. SACK counts what is in
    /// flight all along.
    pub conservative_exit: bool,
    /// With fewer than four segments outstanding and no new one to send, as many duplicates as
    /// there are others outstanding mean loss (RFC 5827).
    pub early_retransmit: bool,
    /// How a connection sends again that was silent for longer than its timeout.
    pub idle_restart: IdleRestart,
    /// Every segment carries timestamps, and every acknowledgement of new data is a sample of the
    /// round-trip time, retransmissions included (RFC 7323, sections 3 and 4). Otherwise one
    /// segment is timed at a time. The 12 bytes are to be counted into `overhead` and `ack_bytes`.
    pub timestamps: bool,
    /// Retransmission timeouts.
    pub rto: RtoConfig,
    /// A message fails after so many timeouts in a row without progress, at least 1
    /// (15: Linux, `tcp_retries2`).
    pub max_timeouts: u32,
    /// Acknowledge every second full segment, and others after this delay (RFC 5681, section 4.2:
    /// at most 500 ms). `None`: acknowledge every segment.
    pub delayed_ack: Option<Dur>,
    /// The first so many acknowledgements of a connection are not delayed (16: Linux, quick-ack, as
    /// specs/tcp.md#6 describes it; 0: none).
    pub quick_acks: u32,
    /// Messages that a host may have in flight at once; more are refused until one ends.
    pub max_messages: u32,
}

/// Bytes that SACK blocks add to an acknowledgement at most (RFC 2018, section 3).
const SACK_BYTES_MAX: u16 = 4 + 8 * wire::tcp::SACK_BLOCKS_MAX as u16;

/// The timeouts of ns-2, and but for the least one of htsim (specs/tcp.md#11).
const SIMULATORS_RTO: RtoConfig = RtoConfig {
    min: Dur::from_ms(200),
    initial: Dur::from_ms(3_000),
    tick: Dur::from_ms(10),
    ..RtoConfig::RFC_6298
};

impl Config {
    /// NewReno on Linux in a data centre: byte counting without limit, frozen window when not
    /// used, window of 10 (RFC 6928), delayed acknowledgements of 40 ms, RTO of at least 200 ms
    /// (specs/tcp.md#5,6,11, column "linux-ish").
    #[must_use]
    pub const fn linux_datacenter(mss: u16) -> Self {
        Self {
            mss,
            overhead: 40,
            ack_bytes: 40,
            class: 0,
            pias: None,
            isn: 0,
            handshake: false,
            initial_window: 10.0,
            initial_ssthresh: f64::INFINITY,
            window_cap: f64::INFINITY,
            receive_window: ReceiveWindow::Unlimited,
            rule: RuleConfig::NewReno,
            recovery: Recovery::NewReno,
            ecn: false,
            slow_start: true,
            ssthresh_of: Reduces::Window,
            increase: Increase::PerByte { slow_start_limit: f64::INFINITY },
            grow_unused: false,
            dup_threshold: 3,
            rr: None,
            dsack: false,
            undo: Undo::None,
            limited_transmit: true,
            impatient: false,
            conservative_exit: true,
            early_retransmit: false,
            idle_restart: IdleRestart::Halving,
            timestamps: false,
            rto: RtoConfig {
                min: Dur::from_ms(200),
                max: Dur::from_ms(120_000),
                tick: Dur::from_ms(1),
                min_is_variance: true,
                ack_ends_backoff: true,
                ..RtoConfig::RFC_6298
            },
            max_timeouts: 15,
            delayed_ack: Some(Dur::from_ms(40)),
            quick_acks: 16,
            max_messages: u32::MAX,
        }
    }

    /// [`Config::linux_datacenter`] with timeouts of processes that share a machine with others:
    /// they may not run for milliseconds. 10 ms at first, then 5 to 50 ms. Ours.
    #[must_use]
    pub fn processes(mss: u16) -> Self {
        let linux = Self::linux_datacenter(mss);
        let (min, max) = (Dur::from_ms(5), Dur::from_ms(50));
        Self { rto: RtoConfig { min, max, initial: Dur::from_ms(10), ..linux.rto }, ..linux }
    }

    /// NewReno of ns-2.35 (specs/tcp.md#11, column "ns2-2.35"), whose window never exceeds
    /// 20 packets.
    #[must_use]
    pub const fn ns2(mss: u16) -> Self {
        Self {
            initial_window: 2.0,
            initial_ssthresh: 20.0,
            window_cap: 20.0,
            increase: Increase::PerAck,
            grow_unused: true,
            idle_restart: IdleRestart::OneSegment,
            rto: SIMULATORS_RTO,
            delayed_ack: None,
            quick_acks: 0,
            ..Self::linux_datacenter(mss)
        }
    }

    /// NewReno on Linux before 2010 (2.6): as [`Self::linux_datacenter`], but with a first window
    /// of 3 segments and growth per acknowledgement (specs/tcp.md#11; `tcp_abc` was off).
    #[must_use]
    pub const fn linux_2_6(mss: u16) -> Self {
        Self { initial_window: 3.0, increase: Increase::PerAck, ..Self::linux_datacenter(mss) }
    }

    /// NewReno of ns-3.17, on which MMPTCP was simulated (specs/tcp.md#11, column
    /// "ns3-3.17/mmptcp"): 20 bytes of options, a receiver's window of 65535 bytes without scaling,
    /// first timeout 1.5 s (specs/tcp.md#5).
    #[must_use]
    pub const fn ns3_3_17(mss: u16) -> Self {
        let window = (65_535 / if mss == 0 { 1 } else { mss as u32 }) as f64;
        let window = if window < 1.0 { 1.0 } else { window };
        Self {
            overhead: 60,
            ack_bytes: 60,
            initial_window: 1.0,
            initial_ssthresh: window,
            window_cap: window,
            ssthresh_of: Reduces::Flight,
            increase: Increase::PerAck,
            grow_unused: true,
            limited_transmit: false,
            idle_restart: IdleRestart::Never,
            rto: RtoConfig {
                min: Dur::from_ms(200),
                initial: Dur::from_ms(1_500),
                tick: Dur::from_ms(1),
                srtt_gain: 0.1,
                rttvar_gain: 0.1,
                first_rttvar: 1.0,
                ..RtoConfig::RFC_6298
            },
            delayed_ack: None,
            quick_acks: 0,
            ..Self::linux_datacenter(mss)
        }
    }

    /// NewReno of ns-3.39 (specs/tcp.md#11, column "ns-3.39"), with its timestamps; the
    /// receiver's window is scaled, here without an end.
    #[must_use]
    pub const fn ns3_3_39(mss: u16) -> Self {
        Self {
            overhead: 52,
            ack_bytes: 52,
            ssthresh_of: Reduces::Flight,
            increase: Increase::PerAck,
            grow_unused: true,
            idle_restart: IdleRestart::InitialWindow,
            timestamps: true,
            rto: RtoConfig { tick: Dur::from_ms(1), ack_ends_backoff: true, ..RtoConfig::RFC_6298 },
            delayed_ack: Some(Dur::from_ms(200)),
            quick_acks: 0,
            ..Self::linux_datacenter(mss)
        }
    }

    /// NewReno of htsim (specs/tcp.md#11, column "htsim"), `packet_bytes` long with
    /// headers, and its timer scan of 10 ms.
    #[must_use]
    pub const fn htsim(packet_bytes: u16) -> Self {
        Self {
            initial_ssthresh: 100.0,
            increase: Increase::PerAck,
            limited_transmit: false,
            idle_restart: IdleRestart::Never,
            rto: RtoConfig { min: Dur::from_ms(250), ..SIMULATORS_RTO },
            delayed_ack: None,
            quick_acks: 0,
            ..Self::linux_datacenter(packet_bytes.saturating_sub(40))
        }
    }

    /// The longest acknowledgement on the wire, bytes.
    #[must_use]
    pub const fn longest_ack(&self) -> u16 {
        match self.recovery {
            Recovery::Reno | Recovery::NewReno => self.ack_bytes,
            Recovery::Sack => self.ack_bytes.saturating_add(SACK_BYTES_MAX),
        }
    }

    /// Whether packets say when they left, and echo it, for the sender or the receiver to measure.
    pub(super) fn has_timestamps(&self) -> bool {
        self.timestamps || matches!(self.receive_window, ReceiveWindow::Ictcp(_))
    }

    /// Classes of data below `class`.
    const fn steps(&self) -> u8 {
        match &self.pias {
            Some(demotion) => demotion.steps(),
            None => 0,
        }
    }

    /// The traffic classes of its packets.
    #[must_use]
    pub const fn classes(&self) -> std::ops::RangeInclusive<u8> {
        self.class.saturating_sub(self.steps())..=self.class
    }

    /// How messages are cut into packets.
    #[must_use]
    pub const fn framing(&self) -> Framing {
        Framing { payload: self.mss, overhead: self.overhead }
    }

    /// Check every range.
    ///
    /// # Errors
    /// Names the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        for (name, value) in [
            ("mss", f64::from(self.mss)),
            ("ack_bytes", f64::from(self.ack_bytes)),
            ("initial_window", self.initial_window),
            ("initial_ssthresh", self.initial_ssthresh),
            ("window_cap", self.window_cap),
            ("dup_threshold", f64::from(self.dup_threshold)),
            ("max_timeouts", f64::from(self.max_timeouts)),
            ("max_messages", f64::from(self.max_messages)),
        ] {
            within(name, value, 1.0..=f64::INFINITY, "it must be at least 1")?;
        }
        if let Increase::PerByte { slow_start_limit: value } = self.increase
            && (value.is_nan() || value <= 0.0)
        {
            return refuse("slow_start_limit", value, "it must be above 0");
        }
        if self.class > 7 {
            return refuse("class", self.class, "it must be at most 7");
        }
        if self.steps() > self.class {
            let must = "it must be at least the number of pias_thresholds";
            return refuse("class", self.class, must);
        }
        for (name, value) in [("rto_min", self.rto.min), ("rto_initial", self.rto.initial)] {
            if value == Dur::ZERO {
                return refuse(name, 0, "it must be above 0");
            }
        }
        check_rto(&self.rto)?;
        self.rule.params().check()?;
        if let ReceiveWindow::Ictcp(params) = self.receive_window {
            params.check()?;
        }
        if self.rule.params().echoes_each_mark() && !self.ecn {
            let what = "rules dctcp and d2tcp need ecn";
            return Err(ConfigError::new(["ecn", "rule"], what));
        }
        self.check_reordering()?;
        if self.ack_bytes > u16::MAX - SACK_BYTES_MAX {
            return refuse("ack_bytes", self.ack_bytes, "it must be at most 65499");
        }
        let Self { mss, overhead, rto: RtoConfig { min, max, .. }, .. } = *self;
        if mss.checked_add(overhead).is_none() {
            let what =
                format!("mss {mss} and overhead {overhead} make a packet of more than 65535 bytes");
            return Err(ConfigError::new(["mss", "overhead"], what));
        }
        if min > max {
            let what = format!("rto_min {min} is above rto_max {max}");
            return Err(ConfigError::new(["rto_min", "rto_max"], what));
        }
        Ok(())
    }
}

impl Config {
    /// What [`Config::check`] says of reordering.
    fn check_reordering(&self) -> Result<(), ConfigError> {
        if let Some(params) = self.rr {
            params.check()?;
        }
        let needs = [
            (
                self.dsack && self.recovery != Recovery::Sack,
                ["dsack", "recovery"],
                "dsack needs recovery sack",
            ),
            (self.undo == Undo::Dsack && !self.dsack, ["undo", "dsack"], "undo dsack needs dsack"),
            (
                self.undo == Undo::Eifel && !self.timestamps,
                ["undo", "timestamps"],
                "undo eifel needs timestamps",
            ),
            (
                self.rr.is_some() && !self.dsack,
                ["dup_threshold", "dsack"],
                "dup_threshold rr needs dsack",
            ),
        ];
        match needs.into_iter().find(|&(missing, ..)| missing) {
            Some((_, fields, what)) => Err(ConfigError::new(fields, what)),
            None => Ok(()),
        }
    }
}

/// The ranges of what [`Config::check`] does not say about timeouts.
fn check_rto(rto: &RtoConfig) -> Result<(), ConfigError> {
    for (name, value) in [("rto_random", rto.random), ("rto_first_rttvar", rto.first_rttvar)] {
        within(name, value, 0.0..=f64::MAX, "it must be at least 0 and finite")?;
    }
    for (name, value) in [("rto_srtt_gain", rto.srtt_gain), ("rto_rttvar_gain", rto.rttvar_gain)] {
        between(name, value, 0.0, 1.0 + f64::EPSILON, "it must be above 0 and at most 1")?;
    }
    Ok(())
}

#[cfg(test)]
impl Config {
    /// RFC 5681 and 6582 and nothing more, in segments of `mss` bytes each of which is
    /// acknowledged: what tests can work out by hand.
    pub(crate) const fn textbook(mss: u16, rto: RtoConfig) -> Self {
        Self {
            increase: Increase::PerAck,
            limited_transmit: false,
            conservative_exit: false,
            ssthresh_of: Reduces::Flight,
            delayed_ack: None,
            quick_acks: 0,
            rto,
            ..Self::linux_datacenter(mss)
        }
    }
}
