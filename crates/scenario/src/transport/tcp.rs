//! `[transport] kind = "tcp"`: the keys of [`transports::tcp::Config`]; and `kind = "newreno"`, which is
//! `tcp` with `rule = "newreno"`, `recovery = "newreno"` and `ecn = false`.

use transports::tcp::rule::{bic, cubic, d2tcp, dctcp, fast, htcp};
use transports::tcp::{
    self, IdleRestart, ReceiveWindow, Recovery, Reduces, RuleConfig, Undo, ictcp, rr,
};
use units::Dur;

use super::{Around, Need, Signals, Transport, bytes, named, preset, refused};
use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::reader::{Knob, Reader};

/// What not every kind has keys for.
pub(super) struct Variant {
    pub(super) rule: RuleConfig,
    pub(super) recovery: Recovery,
    pub(super) ecn: bool,
}

/// `kind = "newreno"`.
pub(crate) fn newreno(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    let rule = RuleConfig::NewReno;
    read(table, &Variant { rule, recovery: Recovery::NewReno, ecn: false })
}

/// `kind = "tcp"`.
pub(crate) fn tcp(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    let (_, recovery) = *table.choose("recovery", RECOVERIES, |(name, _)| name)?;
    let variant = Variant { rule: rule(table)?, recovery, ecn: table.need("ecn")? };
    read(table, &variant)
}

pub(super) const RECOVERIES: &[(&str, Recovery)] =
    &[("reno", Recovery::Reno), ("newreno", Recovery::NewReno), ("sack", Recovery::Sack)];

/// How a rule's own keys are read; `preset`: they have the values of its source.
type ReadRule = fn(&mut Reader<'_>, preset: bool) -> Result<RuleConfig, Diagnostic>;

/// What `rule` can be.
const RULES: &[(&str, ReadRule)] = &[
    ("newreno", |_, _| Ok(RuleConfig::NewReno)),
    ("bic", bic),
    ("htcp", htcp),
    ("cubic", cubic),
    ("dctcp", |table, preset| dctcp(table, preset).map(RuleConfig::Dctcp)),
    ("d2tcp", d2tcp),
    ("fast", fast),
];

fn rule(table: &mut Reader<'_>) -> Result<RuleConfig, Diagnostic> {
    let preset = table.has("preset");
    let (_, read) = *table.choose("rule", RULES, |(name, _)| name)?;
    read(table, preset)
}

fn bic(table: &mut Reader<'_>, preset: bool) -> Result<RuleConfig, Diagnostic> {
    let p = preset.then_some(bic::Params::LINUX);
    Ok(RuleConfig::Bic(bic::Params {
        low_window: table.given("bic_low_window", p.map(|p| p.low_window))?,
        max_increment: table.given("bic_max_increment", p.map(|p| p.max_increment))?,
        beta: table.given("bic_beta", p.map(|p| p.beta))?,
        fast_convergence: table.given("bic_fast_convergence", p.map(|p| p.fast_convergence))?,
        smooth: table.given("bic_smooth", p.map(|p| p.smooth))?,
    }))
}

fn htcp(table: &mut Reader<'_>, preset: bool) -> Result<RuleConfig, Diagnostic> {
    let p = preset.then_some(htcp::Params::LINUX);
    Ok(RuleConfig::HTcp(htcp::Params {
        rtt_scaling: table.given("htcp_rtt_scaling", p.map(|p| p.rtt_scaling))?,
        bandwidth_switch: table.given("htcp_bandwidth_switch", p.map(|p| p.bandwidth_switch))?,
    }))
}

fn cubic(table: &mut Reader<'_>, preset: bool) -> Result<RuleConfig, Diagnostic> {
    let p = preset.then_some(cubic::Params::RFC);
    Ok(RuleConfig::Cubic(cubic::Params {
        c: table.given("cubic_c", p.map(|p| p.c))?,
        beta: table.given("cubic_beta", p.map(|p| p.beta))?,
        fast_convergence: table.given("cubic_fast_convergence", p.map(|p| p.fast_convergence))?,
    }))
}

fn dctcp(table: &mut Reader<'_>, preset: bool) -> Result<dctcp::Params, Diagnostic> {
    let p = preset.then_some(dctcp::Params::RFC);
    Ok(dctcp::Params {
        gain: table.given("dctcp_gain", p.map(|p| p.gain))?,
        initial_alpha: table.given("dctcp_initial_alpha", p.map(|p| p.initial_alpha))?,
        least_window: table.given("dctcp_least_window", p.map(|p| p.least_window))?,
    })
}

/// DCTCP's keys and its own.
fn d2tcp(table: &mut Reader<'_>, preset: bool) -> Result<RuleConfig, Diagnostic> {
    let p = preset.then_some(d2tcp::Params::PAPER);
    Ok(RuleConfig::D2tcp(d2tcp::Params {
        dctcp: dctcp(table, preset)?,
        least_urgency: table.given("d2tcp_least_urgency", p.map(|p| p.least_urgency))?,
        greatest_urgency: table.given("d2tcp_greatest_urgency", p.map(|p| p.greatest_urgency))?,
    }))
}

/// No preset sets them: the paper chooses alpha for each network.
fn fast(table: &mut Reader<'_>, _: bool) -> Result<RuleConfig, Diagnostic> {
    Ok(RuleConfig::Fast(fast::Params {
        alpha: table.need("fast_alpha")?,
        gamma: table.need("fast_gamma")?,
        slow_start_delay: table.need("fast_slow_start_delay")?,
    }))
}

/// The keys that both kinds have.
fn read(table: &mut Reader<'_>, variant: &Variant) -> Result<Transport, Diagnostic> {
    let mss = bytes(table, "mss", None, 1)?;
    let known = [
        ("linux-datacenter", tcp::Config::linux_datacenter(mss)),
        ("ns2", tcp::Config::ns2(mss)),
        ("htsim", tcp::Config::htsim(mss.saturating_add(40))),
        ("linux-2.6", tcp::Config::linux_2_6(mss)),
        ("ns3-3.17", tcp::Config::ns3_3_17(mss)),
        ("ns3-3.39", tcp::Config::ns3_3_39(mss)),
    ];
    let p = preset(table, &known)?;
    let config = config(table, mss, p.as_ref(), variant)?;
    config.check().map_err(|why| refuse(table, &why))?;
    Ok(Transport {
        mtu: (config.mss + config.overhead).max(config.longest_ack()),
        classes: vec![config.class],
        first_window: (config.initial_window * f64::from(config.mss)) as u64,
        caps_windows: true,
        signals: Signals { marks: marks(&config), ..Signals::NONE },
        // No acknowledgements of single packets: they are cumulative.
        ..Transport::new(
            config.framing(),
            wire::tcp::PROTO,
            Box::new(move || Some(Box::new(tcp::Tcp::new(config).ok()?))),
        )
    })
}

/// What marks are to it.
pub(super) fn marks(config: &tcp::Config) -> Need {
    match config.rule {
        _ if !config.ecn => Need::Ignores,
        RuleConfig::Dctcp(_) | RuleConfig::D2tcp(_) => Need::Needs,
        _ => Need::Uses,
    }
}

/// The keys of [`tcp::Config`], but for those of `variant`; `p` is the preset.
pub(super) fn config(
    table: &mut Reader<'_>,
    mss: u16,
    p: Option<&tcp::Config>,
    variant: &Variant,
) -> Result<tcp::Config, Diagnostic> {
    let (dup_threshold, rr) = dup_threshold(table, p.map(|p| p.dup_threshold))?;
    Ok(tcp::Config {
        mss,
        overhead: bytes(table, "overhead", p.map(|p| p.overhead), 40)?,
        ack_bytes: bytes(table, "ack_bytes", p.map(|p| p.ack_bytes), 40)?,
        class: table.given("class", p.map(|p| p.class))?,
        isn: table.given("isn", p.map(|p| p.isn))?,
        handshake: table.given("handshake", p.map(|p| p.handshake))?,
        initial_window: table.given("initial_window", p.map(|p| p.initial_window))?,
        initial_ssthresh: limit(table, "initial_ssthresh", p.map(|p| p.initial_ssthresh))?,
        window_cap: limit(table, "window_cap", p.map(|p| p.window_cap))?,
        receive_window: receive_window(table, p.map(|p| p.receive_window))?,
        rule: variant.rule,
        recovery: variant.recovery,
        ecn: variant.ecn,
        slow_start: table.given("slow_start", p.map(|p| p.slow_start))?,
        ssthresh_of: named(table, "ssthresh_of", REDUCED, p.map(|p| p.ssthresh_of))?,
        increase: increase(table, p.map(|p| p.increase))?,
        grow_unused: table.given("grow_unused", p.map(|p| p.grow_unused))?,
        dup_threshold,
        rr,
        dsack: table.given("dsack", p.map(|p| p.dsack))?,
        undo: named(table, "undo", UNDO, p.map(|p| p.undo))?,
        limited_transmit: table.given("limited_transmit", p.map(|p| p.limited_transmit))?,
        impatient: table.given("impatient", p.map(|p| p.impatient))?,
        conservative_exit: table.given("conservative_exit", p.map(|p| p.conservative_exit))?,
        early_retransmit: table.given("early_retransmit", p.map(|p| p.early_retransmit))?,
        idle_restart: named(table, "idle_restart", RESTARTS, p.map(|p| p.idle_restart))?,
        timestamps: table.given("timestamps", p.map(|p| p.timestamps))?,
        rto: rto(table, p.map(|p| p.rto))?,
        timeouts_max: table.given("timeouts_max", p.map(|p| p.timeouts_max))?,
        delayed_ack: table.given("delayed_ack", p.map(|p| DelayedAck(p.delayed_ack)))?.0,
        quick_acks: table.given("quick_acks", p.map(|p| p.quick_acks))?,
        messages_max: table.given("messages_max", p.map(|p| p.messages_max))?,
    })
}

/// A configuration that is refused.
pub(super) fn refuse(table: &Reader<'_>, why: &tcp::ConfigError) -> Diagnostic {
    // The fields of `Config::rto` are keys like the others.
    let message = why.to_string().replace("rto.", "rto_");
    refused(table, &message, &keys_of(why))
}

/// `dup_threshold = 3`, or `"rr"` with its keys: what RR-TCP begins with and never goes below.
fn dup_threshold(
    table: &mut Reader<'_>,
    p: Option<u32>,
) -> Result<(u32, Option<rr::Params>), Diagnostic> {
    let DupThreshold(Some(number)) =
        table.given("dup_threshold", p.map(|p| DupThreshold(Some(p))))?
    else {
        return Ok((rr::LEAST, Some(rr(table, p.is_some())?)));
    };
    Ok((number, None))
}

/// The keys of RR-TCP; `preset`: they have the values of its publication, or ours.
pub(super) fn rr(table: &mut Reader<'_>, preset: bool) -> Result<rr::Params, Diagnostic> {
    let p = preset.then_some(rr::Params::PRESET);
    Ok(rr::Params {
        fa_ratio: table.given("rr_fa_ratio", p.map(|p| p.fa_ratio))?,
        step: table.given("rr_step", p.map(|p| p.step))?,
        history: table.given("rr_history", p.map(|p| p.history))?,
    })
}

/// Duplicate acknowledgements that mean loss; `None`: "rr".
struct DupThreshold(Option<u32>);

impl Knob for DupThreshold {
    const EXAMPLE: &'static str = "3` or `\"rr\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "rr" => Ok(Self(None)),
            _ => u32::read(value).map(|n| Self(Some(n))),
        }
    }
    fn show(&self) -> toml::Value {
        self.0.map_or_else(|| toml::Value::String("rr".into()), |n| n.show())
    }
}

const UNDO: &[(&str, Undo)] =
    &[("none", Undo::None), ("eifel", Undo::Eifel), ("dsack", Undo::Dsack)];

/// `receive_window = "unlimited"`, or `"ictcp"` with its keys.
fn receive_window(
    table: &mut Reader<'_>,
    p: Option<ReceiveWindow>,
) -> Result<ReceiveWindow, Diagnostic> {
    let ictcp = p.map(|p| p != ReceiveWindow::Unlimited);
    if !named(table, "receive_window", &[("unlimited", false), ("ictcp", true)], ictcp)? {
        return Ok(ReceiveWindow::Unlimited);
    }
    // The paper gives no value.
    let idle = table.need("ictcp_idle")?;
    let p = p.is_some().then_some(ictcp::Params::paper(idle));
    Ok(ReceiveWindow::Ictcp(ictcp::Params {
        capacity_share: table.given("ictcp_capacity_share", p.map(|p| p.capacity_share))?,
        smoothing: table.given("ictcp_smoothing", p.map(|p| p.smoothing))?,
        grow_below: table.given("ictcp_grow_below", p.map(|p| p.grow_below))?,
        shrink_above: table.given("ictcp_shrink_above", p.map(|p| p.shrink_above))?,
        shrink_after: table.given("ictcp_shrink_after", p.map(|p| p.shrink_after))?,
        least_window: table.given("ictcp_least_window", p.map(|p| p.least_window))?,
        scarce_below: table.given("ictcp_scarce_below", p.map(|p| p.scarce_below))?,
        idle,
    }))
}

/// The keys whose values are refused.
fn keys_of(why: &tcp::ConfigError) -> Vec<&'static str> {
    match *why {
        tcp::ConfigError::Range { name: "rto.min", .. } => vec!["rto_min"],
        tcp::ConfigError::Range { name: "rto.initial", .. } => vec!["rto_initial"],
        tcp::ConfigError::Range { name: "rto.random", .. } => vec!["rto_random"],
        tcp::ConfigError::Range { name: "rto.srtt_gain", .. } => vec!["rto_srtt_gain"],
        tcp::ConfigError::Range { name: "rto.rttvar_gain", .. } => vec!["rto_rttvar_gain"],
        tcp::ConfigError::Range { name: "rto.first_rttvar", .. } => vec!["rto_first_rttvar"],
        tcp::ConfigError::Range { name, .. } => vec![name],
        tcp::ConfigError::TooLong { .. } => vec!["mss", "overhead"],
        tcp::ConfigError::NoMarks => vec!["ecn", "rule"],
        tcp::ConfigError::Needs { name: "undo eifel", .. } => vec!["undo", "timestamps"],
        tcp::ConfigError::Needs { name: "undo dsack", .. } => vec!["undo", "dsack"],
        tcp::ConfigError::Needs { name: "dsack", .. } => vec!["dsack", "recovery"],
        tcp::ConfigError::Needs { .. } => vec!["dup_threshold", "dsack"],
        tcp::ConfigError::Rto { .. } => vec!["rto_min", "rto_max"],
    }
}

fn rto(
    table: &mut Reader<'_>,
    p: Option<transports::rto::RtoConfig>,
) -> Result<transports::rto::RtoConfig, Diagnostic> {
    let min_is_variance = p.map(|p| p.min_is_variance);
    let ack_ends_backoff = p.map(|p| p.ack_ends_backoff);
    Ok(transports::rto::RtoConfig {
        min: table.given("rto_min", p.map(|p| p.min))?,
        max: table.given("rto_max", p.map(|p| p.max))?,
        fixed: table.given("rto_fixed", p.map(|p| p.fixed))?,
        random: table.given("rto_random", p.map(|p| p.random))?,
        initial: table.given("rto_initial", p.map(|p| p.initial))?,
        tick: table.given("rto_tick", p.map(|p| p.tick))?,
        min_is_variance: table.given("rto_min_is_variance", min_is_variance)?,
        ack_ends_backoff: table.given("rto_ack_ends_backoff", ack_ends_backoff)?,
        srtt_gain: table.given("rto_srtt_gain", p.map(|p| p.srtt_gain))?,
        rttvar_gain: table.given("rto_rttvar_gain", p.map(|p| p.rttvar_gain))?,
        first_rttvar: table.given("rto_first_rttvar", p.map(|p| p.first_rttvar))?,
    })
}

/// `increase = "per-ack"`, or `"per-byte"` with `slow_start_limit`.
fn increase(table: &mut Reader<'_>, p: Option<tcp::Increase>) -> Result<tcp::Increase, Diagnostic> {
    let usual = match p {
        Some(tcp::Increase::PerByte { slow_start_limit }) => Some(slow_start_limit),
        _ => None,
    };
    let per_byte = p.map(|p| p != tcp::Increase::PerAck);
    if !named(table, "increase", &[("per-ack", false), ("per-byte", true)], per_byte)? {
        return Ok(tcp::Increase::PerAck);
    }
    let slow_start_limit = limit(table, "slow_start_limit", usual)?;
    Ok(tcp::Increase::PerByte { slow_start_limit })
}

const RESTARTS: &[(&str, IdleRestart)] = &[
    ("never", IdleRestart::Never),
    ("initial-window", IdleRestart::InitialWindow),
    ("halving", IdleRestart::Halving),
];

const REDUCED: &[(&str, Reduces)] = &[("window", Reduces::Window), ("flight", Reduces::Flight)];

/// A number of segments, or "unlimited".
fn limit(
    table: &mut Reader<'_>,
    key: &'static str,
    preset: Option<f64>,
) -> Result<f64, Diagnostic> {
    table.given(key, preset.map(Limit)).map(|limit| limit.0)
}

struct Limit(f64);

impl Knob for Limit {
    const EXAMPLE: &'static str = "20.0` or `\"unlimited\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "unlimited" => Ok(Self(f64::INFINITY)),
            _ => f64::read(value).map(Self),
        }
    }
    fn show(&self) -> toml::Value {
        if self.0.is_finite() { self.0.show() } else { toml::Value::String("unlimited".into()) }
    }
}

/// The longest delay of an acknowledgement, or "off": every segment is acknowledged.
struct DelayedAck(Option<Dur>);

impl Knob for DelayedAck {
    const EXAMPLE: &'static str = "\"40ms\"` or `\"off\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "off" => Ok(Self(None)),
            _ => Dur::read(value).map(|d| Self(Some(d))),
        }
    }
    fn show(&self) -> toml::Value {
        self.0.map_or_else(|| toml::Value::String("off".into()), |d| d.show())
    }
}
