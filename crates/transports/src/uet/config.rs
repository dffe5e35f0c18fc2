//! [`Config`]: every number and switch. No `Default`: these values change the science.

use endpoint::{Cx, Framing};
use units::{Bytes, Dur, HostId, Rate};

use super::nscc::Derived;
use crate::config::{self, ConfigError};
use crate::entropy::{Rule, VALUES_MAX};
use crate::time_wait::life_max;

/// How a sender's window follows its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowControl {
    /// By delay, marks and trimmed packets.
    Nscc,
    /// By marks and trimmed packets, as EQDS does.
    Dctcp,
    /// By delay and marks, as EQDS does (SMaRTT).
    Smartt,
    /// Not at all: it stays as it begins.
    Constant,
    /// There is none: the receiver's credit alone decides.
    None,
}

/// Whose rules a window of NSCC follows where the public simulator and the text of UE 1.0 differ
/// (specs/uet.md#4.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The public simulator's.
    Htsim,
    /// Those of the text, at second hand.
    Ue10,
}

/// How senders ask for credit and receivers give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditRule {
    /// Ultra Ethernet's: what is asked for, at 0.99 of the link's rate.
    Rccc,
    /// EQDS's: whole turns, first to those with refused packets.
    Eqds,
}

/// What the EV of a packet is to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// The index of a path, modulo their number.
    Index,
    /// What switches hash, or ignore.
    Hashed,
}

/// The parameters of Ultra Ethernet's senders and receivers. Sources as in specs/uet.md#2: U is the
/// public simulator, N the text at second hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Payload of a full packet, bytes; 1 or more, with `header` at most 65535. U: 4086.
    pub payload: u16,
    /// Bytes on the wire beside the payload. U: 64.
    pub header: u16,
    /// Bytes on the wire of a packet without payload. U: 64.
    pub control_size: u16,
    /// How the window follows the network. U: NSCC.
    pub control: WindowControl,
    /// Whose rules the window follows. U: its own.
    pub profile: Profile,
    /// Whether receivers give credit (RCCC), beside the window or in its place. U: no.
    pub credit: bool,
    /// How it is asked for and given. U: RCCC.
    pub credit_rule: CreditRule,
    /// What a message is given in its turn, bytes. U: 16384.
    pub credit_turn: u32,
    /// Whether turns are left out at random by the share of packets that were marked or trimmed
    /// lately (EQDS, for oversubscribed fabrics). U: no.
    pub hold_back: bool,
    /// What hosts can send over what the fabric carries between them; `None`: not known. Above 1
    /// and without a window, credit is given at a rate that follows marks and trimming.
    pub oversubscription: Option<f64>,
    /// The round trip of a full packet on the longest empty path, from which windows, target and
    /// timeout follow; `None`: that to each destination.
    pub base_rtt: Option<Dur>,
    /// The most that may be in flight, or sent before the first answer, bytes on the wire; `None`:
    /// one and a half bandwidth-delay products, which NSCC's windows keep to anyway.
    pub max_window: Option<Bytes>,
    /// The first window of a message, bytes on the wire, headers included; `None`: the greatest.
    pub initial_window: Option<Bytes>,
    /// A packet that is not answered for so long is lost; `None`: by the base round trip.
    pub rto: Option<Dur>,
    /// How often that doubles at most while nothing arrives. Ours; U: never.
    pub rto_doublings: u8,
    /// Whether switches trim. Where they do not, windows aim at a queueing delay of one base round
    /// trip in place of three quarters, and a timeout says nothing of broken paths. U: yes.
    pub trimming: bool,
    /// Whether a sender finds losses by packets that arrive out of order, and by probes (SLEEK).
    /// U: no.
    pub sleek: bool,
    /// Messages of one channel share a connection, which is kept for so long after the last of them
    /// was acknowledged; at most `rx_idle_timeout`. `None`: each message is a connection of its
    /// own. U: no, or for good.
    pub keep_connections: Option<Dur>,
    /// How EVs are chosen. U: mixed.
    pub spray: Rule,
    /// EVs of a message, a power of two. U: 64.
    pub entropies: u16,
    /// What a packet's EV is to the network.
    pub paths: Paths,
    /// A receiver acknowledges after so many bytes on the wire. U: 16384.
    pub sack_threshold: u32,
    /// Control packets that a host sends for each one of data while both wait; 1 or more.
    /// U: 10.
    pub control_weight: u8,
    /// The traffic class of all packets.
    pub class: u8,
    /// A message fails if nothing is heard of it for so long while it sends. Ours.
    pub abort_after: Dur,
    /// How long a receiver remembers a finished message, from the last copy of a packet of it; more
    /// than `abort_after`. Ours.
    pub time_wait: Dur,
    /// A receiver forgets a message silent for so long (up to twice as long); at least
    /// `abort_after`. Ours.
    pub rx_idle_timeout: Dur,
}

/// A timeout lasts for so long beside the time in which queues drain (specs/uet.md#2).
pub const RTO_BASE: Dur = Dur::from_us(15);
/// The same of EQDS (`main_eqds.cpp` of U), at this rate.
pub const EQDS_RTO_BASE: Dur = Dur::from_us(150);
const EQDS_RATE: Rate = Rate(100_000_000_000);
/// So many queues on the way there and back.
const RTO_QUEUES: u64 = 6;
/// A timeout doubles so often at the very most. Ours.
pub const RTO_DOUBLINGS_MAX: u8 = 16;
/// A fabric carries so little of what hosts can send at worst. Ours.
const OVERSUBSCRIPTION_MAX: f64 = 1000.0;

impl Config {
    /// What the public simulator does without options.
    #[must_use]
    pub fn htsim(payload: u16) -> Self {
        Self {
            payload,
            header: 64,
            control_size: 64,
            control: WindowControl::Nscc,
            profile: Profile::Htsim,
            credit: false,
            credit_rule: CreditRule::Rccc,
            credit_turn: 16_384,
            hold_back: false,
            oversubscription: None,
            base_rtt: None,
            max_window: None,
            initial_window: None,
            rto: None,
            rto_doublings: 4,
            trimming: true,
            sleek: false,
            keep_connections: None,
            spray: Rule::Mixed,
            entropies: 64,
            paths: Paths::Index,
            sack_threshold: 16_384,
            control_weight: 10,
            class: 0,
            abort_after: Dur::from_ms(10_000),
            time_wait: Dur::from_ms(11_000),
            rx_idle_timeout: Dur::from_ms(15_000),
        }
    }

    /// The text of UE 1.0 where the public simulator departs from it (specs/uet.md#4.7).
    #[must_use]
    pub fn ue_1_0(payload: u16) -> Self {
        Self { profile: Profile::Ue10, ..Self::htsim(payload) }
    }

    /// EQDS as the public simulator has it (specs/uet.md#13), for ports that hold 35 packets at
    /// 100 Gb/s: credit in turns of 4096 B, windows of 64 packets.
    #[must_use]
    pub fn eqds(payload: u16) -> Self {
        let usual = Self::htsim(payload);
        let mtu = u64::from(usual.mtu());
        Self {
            control: WindowControl::None,
            credit: true,
            credit_rule: CreditRule::Eqds,
            credit_turn: 4096,
            max_window: Some(Bytes(64 * mtu)),
            rto: Some(EQDS_RTO_BASE + EQDS_RATE.serialise(35 * mtu) * RTO_QUEUES),
            spray: Rule::Skip,
            ..usual
        }
    }

    /// Bytes on the wire of a full packet.
    #[must_use]
    pub fn mtu(&self) -> u16 {
        self.payload + self.header
    }

    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        let &Self { payload, header, .. } = self;
        let positive = [
            ("payload", u64::from(payload)),
            ("control_size", u64::from(self.control_size)),
            ("base_rtt", self.base_rtt.map_or(1, |time| time.0)),
            ("max_window", self.max_window.map_or(1, |bytes| bytes.0)),
            ("initial_window", self.initial_window.map_or(1, |bytes| bytes.0)),
            ("rto", self.rto.map_or(1, |time| time.0)),
            ("sack_threshold", u64::from(self.sack_threshold)),
            ("credit_turn", u64::from(self.credit_turn)),
            ("control_weight", u64::from(self.control_weight)),
            ("abort_after", self.abort_after.0),
        ];
        config::positive("Ultra Ethernet", &positive)?;
        config::fits("Ultra Ethernet", payload, header)?;
        let entropies = self.entropies;
        if !entropies.is_power_of_two() || entropies > VALUES_MAX {
            let what = format!(
                "Ultra Ethernet: entropies {entropies} must be a power of two, at most {VALUES_MAX}"
            );
            return Err(ConfigError::new(["entropies"], what));
        }
        if self.control == WindowControl::None && !self.credit {
            let what = "Ultra Ethernet: without a window (control none) receivers must give credit";
            return Err(ConfigError::new(["control", "credit"], what));
        }
        if self.sleek && self.control != WindowControl::Nscc {
            let what = "Ultra Ethernet: sleek counts packets of NSCC's window (control nscc)";
            return Err(ConfigError::new(["sleek", "control"], what));
        }
        if self.profile == Profile::Ue10 && self.control != WindowControl::Nscc {
            let what = "Ultra Ethernet: profile ue-1.0 is of NSCC's window (control nscc)";
            return Err(ConfigError::new(["profile", "control"], what));
        }
        let doublings = self.rto_doublings;
        if doublings > RTO_DOUBLINGS_MAX {
            let what = format!(
                "Ultra Ethernet: rto_doublings {doublings} must be at most {RTO_DOUBLINGS_MAX}"
            );
            return Err(ConfigError::new(["rto_doublings"], what));
        }
        let ratio = self.oversubscription.unwrap_or(1.0);
        if !(1.0..=OVERSUBSCRIPTION_MAX).contains(&ratio) {
            let what = format!(
                "Ultra Ethernet: oversubscription {ratio} must be from 1 to {OVERSUBSCRIPTION_MAX}"
            );
            return Err(ConfigError::new(["oversubscription"], what));
        }
        if self.class > 7 {
            return Err(ConfigError::new(["class"], "Ultra Ethernet: class must be from 0 to 7"));
        }
        let kept = self.keep_connections.unwrap_or_default();
        let ordered = [
            (kept <= self.rx_idle_timeout, "keep_connections", "rx_idle_timeout"),
            (self.abort_after < self.time_wait, "abort_after", "time_wait"),
            (self.abort_after <= self.rx_idle_timeout, "abort_after", "rx_idle_timeout"),
        ];
        match ordered.into_iter().find(|(holds, ..)| !holds) {
            Some((_, low, high)) => {
                let what = format!("Ultra Ethernet: {low} is too large for {high}");
                Err(ConfigError::new([low, high], what))
            }
            None => Ok(()),
        }
    }

    /// How a message is cut into packets.
    #[must_use]
    pub fn framing(&self) -> Framing {
        Framing { payload: self.payload, overhead: self.header }
    }

    /// The longest life of a packet with which no message is delivered twice.
    #[must_use]
    pub fn life_max(&self) -> Dur {
        life_max(self.time_wait, self.abort_after).unwrap_or_default()
    }

    /// The most that may be in flight to `to` at first, bytes on the wire.
    pub(super) fn window_max(&self, network: &Network) -> u64 {
        let most = || Derived::new(network, self.trimming).max_window;
        self.max_window.map_or_else(most, |bytes| bytes.0.max(u64::from(network.mtu)))
    }

    /// The network that a sender assumes on the way to `to`.
    pub(super) fn network(&self, cx: &Cx<'_>, to: HostId) -> Network {
        let rtt = self.base_rtt.unwrap_or_else(|| cx.net.base_rtt(to));
        Network { rtt, rate: cx.net.rate(0), mtu: self.mtu(), payload: self.payload }
    }
}

/// What all derived values follow from (specs/uet.md#2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The base round-trip time.
    pub rtt: Dur,
    /// Of a host's link.
    pub rate: Rate,
    /// Bytes on the wire of a full packet.
    pub mtu: u16,
    /// Its payload.
    pub payload: u16,
}

impl Network {
    /// The bandwidth-delay product, bytes.
    #[must_use]
    pub fn bdp(&self) -> u64 {
        self.rate.bytes_in(self.rtt).0
    }

    /// The same in full packets, rounded up.
    #[must_use]
    pub fn bdp_packets(&self) -> u64 {
        self.bdp().div_ceil(u64::from(self.mtu)).max(1)
    }

    /// What a port of the trimming switch holds of data, bytes.
    #[must_use]
    pub fn queue(&self) -> u64 {
        self.bdp_packets() * u64::from(self.mtu)
    }

    /// How long a packet in flight is waited for.
    #[must_use]
    pub fn rto(&self) -> Dur {
        Self::rto_of(self.rate, self.queue(), RTO_BASE)
    }

    /// The same where ports hold `queue` bytes, beside `base`.
    #[must_use]
    pub fn rto_of(rate: Rate, queue: u64, base: Dur) -> Dur {
        base + rate.serialise(queue) * RTO_QUEUES
    }
}
