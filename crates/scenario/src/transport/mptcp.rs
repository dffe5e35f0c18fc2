//! `[transport] kind = "mptcp"`, `"mmptcp"` and `"packet-scatter"`: the keys of
//! [`transports::mptcp::Config`], and for their subflows those of `kind = "tcp"` but for `rule`.

use transports::mptcp::{
    self, Mptcp, Reinject, Scatter, ScatterThreshold, Scheduler, Switch, SwitchOn,
};
use transports::tcp::rule::{RuleConfig, ewtcp, lia, semicoupled};
use units::Bytes;

use super::tcp::{RECOVERIES, Variant, config as subflow, marks, refuse, rr};
use super::{Around, Signals, Transport, bytes, named, preset, refused};
use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::reader::{Knob, Reader};

/// Which of the family.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Mptcp,
    Mmptcp,
    PacketScatter,
}

/// `kind = "mptcp"`.
pub(crate) fn mptcp(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    read(table, Family::Mptcp)
}

/// `kind = "mmptcp"`.
pub(crate) fn mmptcp(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    read(table, Family::Mmptcp)
}

/// `kind = "packet-scatter"`.
pub(crate) fn packet_scatter(
    table: &mut Reader<'_>,
    _: &Around<'_>,
) -> Result<Transport, Diagnostic> {
    read(table, Family::PacketScatter)
}

fn read(table: &mut Reader<'_>, family: Family) -> Result<Transport, Diagnostic> {
    let mss = bytes(table, "mss", None, 1)?;
    let known = [
        ("mmptcp-infocom16", mptcp::Config::mmptcp_infocom16(mss)),
        ("linux", mptcp::Config::linux(mss)),
        ("htsim", mptcp::Config::htsim(mss.saturating_add(40))),
    ];
    let p = preset(table, &known)?;
    let p = p.as_ref();
    let config = config(table, family, mss, p)?;
    config.check().map_err(|why| match &why {
        mptcp::ConfigError::Tcp(why) => refuse(table, why),
        _ => refused(table, &why.to_string(), keys_of(&why)),
    })?;
    let tcp = &config.tcp;
    Ok(Transport {
        mtu: (tcp.mss + tcp.overhead).max(tcp.longest_ack()),
        classes: vec![tcp.class],
        first_window: (tcp.initial_window * f64::from(tcp.mss)) as u64,
        sprays: family != Family::Mptcp,
        signals: Signals { marks: marks(tcp), ..Signals::NONE },
        scatters: family != Family::Mptcp || config.subflows > 1,
        // No acknowledgements of single packets: they are cumulative.
        ..Transport::new(
            config.framing(),
            wire::tcp::PROTO,
            Box::new(move || Some(Box::new(Mptcp::new(config).ok()?))),
        )
    })
}

/// All keys but `mss` and `preset`, whose values are `mss` and `p`.
fn config(
    table: &mut Reader<'_>,
    family: Family,
    mss: u16,
    p: Option<&mptcp::Config>,
) -> Result<mptcp::Config, Diagnostic> {
    let recovery = named(table, "recovery", RECOVERIES, p.map(|p| p.tcp.recovery))?;
    let ecn = table.given("ecn", p.map(|p| p.tcp.ecn))?;
    let alone = family == Family::PacketScatter;
    let rule = if alone { RuleConfig::NewReno } else { coupling(table, mss, p)? };
    let variant = Variant { rule, recovery, ecn };
    let tcp = subflow(table, mss, p.map(|p| &p.tcp), &variant)?;
    let shared = mptcp::Config {
        tcp,
        subflows: 1,
        join_gap: units::Dur::ZERO,
        handshake_sample: table.given("handshake_sample", p.map(|p| p.handshake_sample))?,
        scheduler: Scheduler::RoundRobin,
        receive_buffer: buffer(table, "receive_buffer", p.map(|p| p.receive_buffer))?,
        send_buffer: buffer(table, "send_buffer", p.map(|p| p.send_buffer))?,
        reinject: Reinject::None,
        opportunistic: false,
        scatter: scatter(table, family, p)?,
    };
    if alone {
        return Ok(shared);
    }
    Ok(mptcp::Config {
        subflows: table.given("subflows", p.map(|p| p.subflows))?,
        join_gap: table.given("join_gap", p.map(|p| p.join_gap))?,
        scheduler: named(table, "scheduler", SCHEDULERS, p.map(|p| p.scheduler))?,
        reinject: named(table, "reinject", REINJECTS, p.map(|p| p.reinject))?,
        opportunistic: table.given("opportunistic", p.map(|p| p.opportunistic))?,
        ..shared
    })
}

const SCHEDULERS: &[(&str, Scheduler)] =
    &[("round-robin", Scheduler::RoundRobin), ("lowest-rtt", Scheduler::LowestRtt)];

const REINJECTS: &[(&str, Reinject)] = &[("none", Reinject::None), ("timeout", Reinject::Timeout)];

const COUPLINGS: &[(&str, Coupling)] = &[
    ("lia", Coupling::Lia),
    ("olia", Coupling::Olia),
    ("uncoupled", Coupling::Uncoupled),
    ("linked", Coupling::Linked),
    ("fully-coupled", Coupling::FullyCoupled),
    ("ewtcp", Coupling::Ewtcp),
    ("semicoupled", Coupling::Semicoupled),
];

/// What `coupling` can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Coupling {
    Lia,
    Olia,
    Uncoupled,
    Linked,
    FullyCoupled,
    Ewtcp,
    Semicoupled,
}

const EWTCP_WEIGHTS: &[(&str, ewtcp::Weight)] =
    &[("1/sqrt(n)", ewtcp::Weight::InverseRoot), ("1/n^2", ewtcp::Weight::InverseSquare)];

/// `coupling` with the keys of the rule that it names.
fn coupling(
    table: &mut Reader<'_>,
    mss: u16,
    p: Option<&mptcp::Config>,
) -> Result<RuleConfig, Diagnostic> {
    let usual = match p.map(|p| p.tcp.rule) {
        Some(RuleConfig::Lia(_)) => Some(Coupling::Lia),
        Some(_) => Some(Coupling::Uncoupled),
        None => None,
    };
    let coupling = named(table, "coupling", COUPLINGS, usual)?;
    Ok(match coupling {
        Coupling::Lia | Coupling::Linked => {
            let usual = match p.map(|p| p.tcp.rule) {
                Some(RuleConfig::Lia(params)) => Some(params.least_increase),
                Some(_) => Some(lia::Params::RFC.least_increase),
                None => None,
            };
            let usual = usual.map(|segments| Bytes((segments * f64::from(mss)).round() as u64));
            let Bytes(least) = table.given("lia_least_increase", usual)?;
            let least_increase = least as f64 / f64::from(mss);
            RuleConfig::Lia(lia::Params { capped: coupling == Coupling::Lia, least_increase })
        }
        Coupling::Olia => RuleConfig::Olia,
        Coupling::Uncoupled => RuleConfig::NewReno,
        Coupling::FullyCoupled => RuleConfig::FullyCoupled,
        Coupling::Ewtcp => {
            let (_, weight) = *table.choose("ewtcp_weight", EWTCP_WEIGHTS, |(name, _)| name)?;
            RuleConfig::Ewtcp(weight)
        }
        Coupling::Semicoupled => RuleConfig::Semicoupled(semicoupled::Params {
            exponent: table.need("semicoupled_exponent")?,
            weight: table.need("semicoupled_weight")?,
        }),
    })
}

/// The first phase, where `family` has one.
fn scatter(
    table: &mut Reader<'_>,
    family: Family,
    p: Option<&mptcp::Config>,
) -> Result<Option<Scatter>, Diagnostic> {
    if family == Family::Mptcp {
        return Ok(None);
    }
    let preset = p.is_some();
    let p = p.and_then(|p| p.scatter);
    let threshold = p.map(|p| Threshold(Some(p.dup_threshold)));
    let dup_threshold = match table.given("scatter_dup_threshold", threshold)?.0 {
        Some(threshold) => threshold,
        None => ScatterThreshold::Rr(rr(table, preset)?),
    };
    let switch = match family {
        Family::Mmptcp => Some(switch(table, p.and_then(|p| p.switch))?),
        Family::Mptcp | Family::PacketScatter => None,
    };
    Ok(Some(Scatter { dup_threshold, switch }))
}

/// A share of the link's rate for `switch = "window"` (specs/mptcp.md#4).
const SWITCH_SHARE: f64 = 1.0 / 50.0;

/// `switch` with its keys.
fn switch(table: &mut Reader<'_>, p: Option<Switch>) -> Result<Switch, Diagnostic> {
    const NAMES: &[(&str, u8)] = &[("bytes", 0), ("window", 1), ("loss", 2)];
    let (usual, threshold) = match p.map(|p| p.on) {
        Some(SwitchOn::Bytes(threshold)) => (Some(0), Some(Bytes(threshold))),
        Some(SwitchOn::Window(_)) => (Some(1), None),
        Some(SwitchOn::Loss) => (Some(2), None),
        None => (None, None),
    };
    let on = match named(table, "switch", NAMES, usual)? {
        0 => SwitchOn::Bytes(table.given("switch_bytes", threshold)?.0),
        1 => SwitchOn::Window(table.given("switch_share", p.map(|_| SWITCH_SHARE))?),
        _ => SwitchOn::Loss,
    };
    Ok(Switch { on, postpone: table.given("switch_postpone", p.map(|p| p.postpone))? })
}

/// The keys whose values are refused.
fn keys_of(why: &mptcp::ConfigError) -> &'static [&'static str] {
    match *why {
        mptcp::ConfigError::Tcp(_) => &[],
        mptcp::ConfigError::Range { name: "subflows", .. } => &["subflows"],
        mptcp::ConfigError::Range { name: "receive_buffer", .. } => &["receive_buffer"],
        mptcp::ConfigError::Range { name: "send_buffer", .. } => &["send_buffer"],
        mptcp::ConfigError::Range { .. } => &["scatter_dup_threshold"],
        mptcp::ConfigError::Share(_) => &["switch_share"],
        mptcp::ConfigError::Gap { .. } => &["join_gap", "subflows"],
        mptcp::ConfigError::Ictcp => &["receive_window"],
        mptcp::ConfigError::Options => &["timestamps", "recovery"],
    }
}

/// A number of bytes, or "unlimited".
fn buffer(
    table: &mut Reader<'_>,
    key: &'static str,
    preset: Option<u64>,
) -> Result<u64, Diagnostic> {
    table.given(key, preset.map(Buffer)).map(|buffer| buffer.0)
}

struct Buffer(u64);

impl Knob for Buffer {
    const EXAMPLE: &'static str = "\"1MB\"` or `\"unlimited\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "unlimited" => Ok(Self(u64::MAX)),
            _ => Bytes::read(value).map(|bytes| Self(bytes.0)),
        }
    }
    fn show(&self) -> toml::Value {
        match self.0 {
            u64::MAX => toml::Value::String("unlimited".into()),
            bytes => Bytes(bytes).show(),
        }
    }
}

/// A number of duplicate acknowledgements, or "paths", or "rr", whose numbers are keys of their own.
struct Threshold(Option<ScatterThreshold>);

impl Knob for Threshold {
    const EXAMPLE: &'static str = "\"paths\"`, `\"rr\"` or `3";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "paths" => Ok(Self(Some(ScatterThreshold::Paths))),
            Value::Text(text) if text == "rr" => Ok(Self(None)),
            _ => u32::read(value).map(|n| Self(Some(ScatterThreshold::Fixed(n)))),
        }
    }
    fn show(&self) -> toml::Value {
        match self.0 {
            Some(ScatterThreshold::Paths) => toml::Value::String("paths".into()),
            Some(ScatterThreshold::Fixed(n)) => n.show(),
            Some(ScatterThreshold::Rr(_)) | None => toml::Value::String("rr".into()),
        }
    }
}
