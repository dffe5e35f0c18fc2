//! The parameters of [`super::Mptcp`], and published sets of them.

use endpoint::Framing;
use units::Dur;

use crate::config::{ConfigError, refuse};
use crate::tcp::rule::lia;
use crate::tcp::{self, ReceiveWindow, Recovery, RuleConfig, rr};

/// Subflows that a connection may have, the scattering one included.
pub const SUBFLOWS_MAX: u32 = 64;

/// The steps in which joins are delayed (specs/mptcp.md#1).
pub(super) const GAP_STEP: Dur = Dur::from_us(1);

/// Which subflow carries the next segment, of those that have window for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Each in turn, a segment at a time (the reference code of MMPTCP).
    RoundRobin,
    /// The one with the least smoothed round-trip time (Linux); one that has none yet comes last.
    LowestRtt,
}

/// When data that is on its way over one subflow is sent over another, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reinject {
    /// Never, while the subflow lives: a lost segment is repaired where it was lost.
    None,
    /// All that a subflow has outstanding when its timer expires (Linux).
    Timeout,
}

/// What duplicate acknowledgements mean while packets are scattered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScatterThreshold {
    /// Loss after 3 + P of them, P the number of paths to the destination; 3 if there is but one
    /// (specs/mptcp.md#4).
    Paths,
    /// Loss after so many, at least 1.
    Fixed(u32),
    /// Loss after as many as RR-TCP learns, which needs [`tcp::Config::dsack`].
    Rr(rr::Params),
}

/// What ends the first phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SwitchOn {
    /// The connection has sent more than this, retransmissions not counted, bytes: what the
    /// messages of a channel have together, since they are one connection.
    Bytes(u64),
    /// The window is worth this share of the rate of the host's link: w / srtt >= share * rate.
    Window(f64),
    /// The first fast retransmission.
    Loss,
}

/// When a connection that scatters opens subflows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switch {
    /// The condition, looked at whenever an acknowledgement comes.
    pub on: SwitchOn,
    /// It is left until slow start, a recovery, or what follows a timeout is over.
    pub postpone: bool,
}

/// The first phase: one subflow, each segment of which takes a path of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    /// What duplicate acknowledgements mean there.
    pub dup_threshold: ScatterThreshold,
    /// What ends it; `None`: nothing (packet scatter alone).
    pub switch: Option<Switch>,
}

/// Everything that can be set about MPTCP and its family. There is no default: each value changes
/// results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Of each subflow. Its rule is the coupled one; `overhead` and `ack_bytes` count the option's
    /// 20 bytes if anything does. `handshake`: the first subflow begins with one; the others always
    /// do.
    pub tcp: tcp::Config,
    /// Subflows of a connection, at least 1; with a first phase those after it, its own not
    /// counted.
    pub subflows: u32,
    /// Joins wait for a random time below this, another one each, whole microseconds; zero: they do
    /// not.
    pub join_gap: Dur,
    /// The handshake of a subflow is a sample of its round-trip time (RFC 6298). Not so in the
    /// reference code: its timeout is the initial one until data has been acknowledged.
    pub handshake_sample: bool,
    /// Which subflow is next.
    pub scheduler: Scheduler,
    /// What a receiver lets its peer have in flight beyond what is here in order, over all subflows
    /// together, bytes; [`u64::MAX`]: anything.
    pub receive_buffer: u64,
    /// What a sender keeps of a connection until its DATA_ACK, bytes; [`u64::MAX`]: anything.
    pub send_buffer: u64,
    /// Whether data goes over a second subflow.
    pub reinject: Reinject,
    /// When one of these buffers is full, slower subflows that have the oldest data outstanding get
    /// their windows halved, once per round trip, and a much quicker one sends that data, too
    /// (`blocked.rs`).
    pub opportunistic: bool,
    /// The first phase, if there is one.
    pub scatter: Option<Scatter>,
}

impl Config {
    /// The published evaluation of MMPTCP (specs/mptcp.md#6): subflows as in
    /// [`tcp::Config::ns3_3_17`], and the first phase ends after 100 KB. For MPTCP leave `scatter`
    /// out.
    #[must_use]
    pub const fn mmptcp_infocom16(mss: u16) -> Self {
        // One byte per acknowledgement at least (specs/mptcp.md#3, "reference per-ACK form").
        let min_increase = 1.0 / if mss == 0 { 1.0 } else { mss as f64 };
        let rule = RuleConfig::Lia(lia::Params { capped: true, min_increase });
        Self {
            tcp: tcp::Config { rule, ..tcp::Config::ns3_3_17(mss) },
            subflows: 8,
            join_gap: Dur::from_us(50),
            handshake_sample: false,
            scheduler: Scheduler::RoundRobin,
            receive_buffer: u64::MAX,
            send_buffer: u64::MAX,
            reinject: Reinject::None,
            opportunistic: false,
            scatter: Some(Scatter {
                dup_threshold: ScatterThreshold::Paths,
                switch: Some(Switch { on: SwitchOn::Bytes(100_000), postpone: false }),
            }),
        }
    }

    /// Linux with the MPTCP kernel of multipath-tcp.org (specs/mptcp.md#2): subflows as
    /// in [`tcp::Config::linux_datacenter`] with SACK, shared buffers as large as Linux lets TCP's
    /// grow (`tcp_rmem`, `tcp_wmem`).
    #[must_use]
    pub const fn linux(mss: u16) -> Self {
        let rule = RuleConfig::Lia(lia::Params::RFC);
        let tcp = tcp::Config::linux_datacenter(mss);
        Self {
            tcp: tcp::Config { rule, recovery: Recovery::Sack, overhead: 60, ack_bytes: 60, ..tcp },
            join_gap: Dur::ZERO,
            handshake_sample: true,
            scheduler: Scheduler::LowestRtt,
            receive_buffer: 6_291_456,
            send_buffer: 4_194_304,
            reinject: Reinject::Timeout,
            opportunistic: true,
            scatter: None,
            ..Self::mmptcp_infocom16(mss)
        }
    }

    /// htsim with `COUPLED_INC`, packets `packet_bytes` long with headers: subflows as in
    /// [`tcp::Config::htsim`], all of which start at once; the option takes no bytes.
    #[must_use]
    pub const fn htsim(packet_bytes: u16) -> Self {
        let rule = RuleConfig::Lia(lia::Params::RFC);
        Self {
            tcp: tcp::Config { rule, ..tcp::Config::htsim(packet_bytes) },
            join_gap: Dur::ZERO,
            handshake_sample: true,
            scatter: None,
            ..Self::mmptcp_infocom16(packet_bytes)
        }
    }

    /// Largest number of subflows that a connection has at once.
    pub(super) fn subflows_max(&self) -> u32 {
        match self.scatter {
            None => self.subflows,
            Some(Scatter { switch: None, .. }) => 1,
            Some(_) => self.subflows + 1,
        }
    }

    /// How many of them join.
    pub(super) fn joins(&self) -> u32 {
        self.subflows_max() - 1
    }

    /// By how many bits receive windows are shifted on the wire (RFC 7323, section 2): both ends
    /// know it, as if it had been negotiated.
    pub(super) fn window_shift(&self) -> u32 {
        (u64::BITS - self.receive_buffer.leading_zeros()).saturating_sub(16)
    }

    /// The bytes that the window field of an acknowledgement means.
    pub(super) fn window(&self, field: u16) -> u64 {
        match self.receive_buffer {
            u64::MAX => u64::MAX,
            _ => u64::from(field) << self.window_shift(),
        }
    }

    /// How messages are cut into packets.
    #[must_use]
    pub const fn framing(&self) -> Framing {
        self.tcp.framing()
    }

    /// Check every range.
    ///
    /// # Errors
    /// Names the first field that is out of its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.tcp.check()?;
        if self.tcp.receive_window != ReceiveWindow::Unlimited {
            let what = "receive_window ictcp is for connections of one subflow";
            return Err(ConfigError::new(["receive_window"], what));
        }
        if self.tcp.timestamps && self.tcp.recovery == Recovery::Sack {
            let what =
                "SACK blocks, timestamps and the option of Multipath TCP do not fit one header";
            return Err(ConfigError::new(["timestamps", "recovery"], what));
        }
        if !(1..SUBFLOWS_MAX).contains(&self.subflows) {
            return refuse("subflows", self.subflows, "it must be from 1 to 63");
        }
        let joins = self.joins();
        let gap = self.join_gap;
        if gap > Dur::ZERO && gap.0 / GAP_STEP.0 < u64::from(joins) {
            let what = format!(
                "join_gap {gap} is too short for {joins} joins, each in another microsecond"
            );
            return Err(ConfigError::new(["join_gap", "subflows"], what));
        }
        let segment = u64::from(self.tcp.mss);
        for (name, value) in
            [("receive_buffer", self.receive_buffer), ("send_buffer", self.send_buffer)]
        {
            if value < segment {
                return refuse(name, value, "it must hold a segment at least");
            }
        }
        match self.scatter.map(|scatter| scatter.dup_threshold) {
            Some(ScatterThreshold::Fixed(0)) => {
                return refuse("scatter_dup_threshold", 0, "it must be at least 1");
            }
            Some(ScatterThreshold::Rr(params)) => {
                tcp::Config { rr: Some(params), ..self.tcp }.check()?;
            }
            _ => {}
        }
        match self.scatter.and_then(|scatter| scatter.switch) {
            // Not `share <= 0.0`: a NaN is out of range too.
            Some(Switch { on: SwitchOn::Window(share), .. }) if !(share > 0.0 && share <= 1.0) => {
                refuse("switch_share", share, "it must be above 0 and at most 1")
            }
            _ => Ok(()),
        }
    }
}
