//! `[transport] kind = "rdma"`, `"timely"`, `"patched-timely"` and `"fast-rate"`: the keys of
//! [`transports::rdma::Config`], and those of its rule. `"dcqcn"`, `"hpcc"` and `"swift"` are in files of their own.

mod dcqcn;
mod hpcc;
mod swift;

use transports::rdma::rule::timely::{Calm, HaiBelow, Middle, Update};
use transports::rdma::rule::{RuleConfig, fast, timely as timely_rule};
use transports::rdma::{
    self, Clock, Initial, NicPacing, Operation, Recovery, Segment, Speed, Subtract, Timestamps,
};
use transports::rto::RtoConfig;
use units::{Bytes, Dur, Rate};

use super::{Around, Need, Signals, Transport, bytes, named, preset, refused};
use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::reader::{Knob, Reader};

pub(crate) use dcqcn::dcqcn;
pub(crate) use hpcc::hpcc;
pub(crate) use swift::swift;

/// What not every kind has keys for.
struct Variant {
    rule: RuleConfig,
    cnp_interval: Option<Dur>,
    telemetry: bool,
}

impl Variant {
    /// Of a rule that hears of round-trip times alone.
    fn plain(rule: RuleConfig) -> Self {
        Self { rule, cnp_interval: None, telemetry: false }
    }
}

/// `kind = "rdma"`.
pub(crate) fn rdma(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    let rule = RuleConfig::Unlimited;
    let payload = bytes(table, "payload", None, 1)?;
    let p = preset(table, &[("roce", rdma::Config::roce(payload, rule))])?;
    read(table, payload, p.as_ref(), &Variant::plain(rule))
}

/// `kind = "timely"`.
pub(crate) fn timely(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    let payload = bytes(table, "payload", None, 1)?;
    let by_packet = |params| rdma::Config::roce(payload, RuleConfig::Timely(params));
    // eRPC's timing wheel knows the rate when a packet is put into it.
    let erpc = rdma::Config { recompute_gap: false, ..by_packet(timely_rule::Params::ERPC) };
    let known = [
        ("paper", rdma::Config::timely(payload)),
        ("erpc", erpc),
        ("hpcc", by_packet(timely_rule::Params::HPCC)),
    ];
    let p = preset(table, &known)?;
    let rule = timely_params(table, p.as_ref(), Middle::Gradient)?;
    read(table, payload, p.as_ref(), &Variant::plain(RuleConfig::Timely(rule)))
}

/// `kind = "patched-timely"`.
pub(crate) fn patched_timely(
    table: &mut Reader<'_>,
    _: &Around<'_>,
) -> Result<Transport, Diagnostic> {
    let payload = bytes(table, "payload", None, 1)?;
    let rule = RuleConfig::Timely(timely_rule::Params::PATCHED);
    let p = preset(table, &[("paper", rdma::Config { rule, ..rdma::Config::timely(payload) })])?;
    let rule = timely_params(table, p.as_ref(), Middle::Weighted)?;
    read(table, payload, p.as_ref(), &Variant::plain(RuleConfig::Timely(rule)))
}

/// `kind = "fast-rate"`.
pub(crate) fn fast_rate(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    let payload = bytes(table, "payload", None, 1)?;
    let p = preset(table, &[("timely-paper", rdma::Config::timely(payload))])?;
    let given = p.as_ref().map(|_| fast::Params::TIMELY_PAPER);
    let rule = fast::Params {
        // The point of the comparison: TIMELY's Table 1 has three of them.
        alpha: table.need("alpha")?,
        gamma: table.given("gamma", given.map(|p| p.gamma))?,
        min_rate: table.given("min_rate", given.map(|p| p.min_rate))?,
        max_rate: table.given("max_rate", given.map(|p| p.max_rate))?,
        initial: table.given("initial_rate", given.map(|p| p.initial))?,
    };
    read(table, payload, p.as_ref(), &Variant::plain(RuleConfig::Fast(rule)))
}

const UPDATES: &[(&str, Update)] =
    &[("completion", Update::Completion), ("round-trip", Update::RoundTrip)];

const CALMS: &[(&str, Calm)] = &[("gradient", Calm::Gradient), ("difference", Calm::Difference)];

fn timely_params(
    table: &mut Reader<'_>,
    p: Option<&rdma::Config>,
    middle: Middle,
) -> Result<timely_rule::Params, Diagnostic> {
    let p = p.and_then(|p| match p.rule {
        RuleConfig::Timely(params) => Some(params),
        _ => None,
    });
    Ok(timely_rule::Params {
        t_low: table.given("t_low", p.map(|p| p.t_low))?,
        t_high: table.given("t_high", p.map(|p| p.t_high))?,
        middle,
        delta: table.given("delta", p.map(|p| p.delta))?,
        beta: table.given("beta", p.map(|p| p.beta))?,
        alpha: table.given("alpha", p.map(|p| p.alpha))?,
        min_rtt: table.given("min_rtt", p.map(|p| p.min_rtt))?,
        hai_factor: table.given("hai_factor", p.map(|p| p.hai_factor))?,
        hai_after: table.given("hai_after", p.map(|p| p.hai_after))?,
        hai_by: named(table, "hai_by", CALMS, p.map(|p| p.hai_by))?,
        hai_below_t_low: table.given("hai_below_t_low", p.map(|p| p.hai_below_t_low))?,
        min_rate: table.given("min_rate", p.map(|p| p.min_rate))?,
        max_rate: table.given("max_rate", p.map(|p| p.max_rate))?,
        initial: table.given("initial_rate", p.map(|p| p.initial))?,
        update: named(table, "update", UPDATES, p.map(|p| p.update))?,
        zero_gradient_increases: table
            .given("zero_gradient_increases", p.map(|p| p.zero_gradient_increases))?,
        least_factor: table.given("least_factor", p.map(|p| p.least_factor))?,
        scaled: table.given("scaled", p.map(|p| p.scaled))?,
        least_use: table.given("least_use", p.map(|p| p.least_use))?,
        bypass: table.given("bypass", p.map(|p| p.bypass))?,
    })
}

const OPERATIONS: &[(&str, Operation)] = &[("write", Operation::Write), ("read", Operation::Read)];

const TIMESTAMPS: &[(&str, Timestamps)] = &[("nic", Timestamps::Nic), ("host", Timestamps::Host)];

const SUBTRACTS: &[(&str, Subtract)] =
    &[("segment", Subtract::Segment), ("packet", Subtract::Packet)];

/// The keys that all kinds have.
fn read(
    table: &mut Reader<'_>,
    payload: u16,
    p: Option<&rdma::Config>,
    variant: &Variant,
) -> Result<Transport, Diagnostic> {
    let class = table.given("class", p.map(|p| p.class))?;
    // Where a preset has acknowledgements in the class of data, they follow it.
    let ack_class = p.map(|p| if p.ack_class == p.class { class } else { p.ack_class });
    let config = rdma::Config {
        payload,
        overhead: bytes(table, "overhead", p.map(|p| p.overhead), 40)?,
        ack_bytes: bytes(table, "ack_bytes", p.map(|p| p.ack_bytes), 40)?,
        class,
        ack_class: table.given("ack_class", ack_class)?,
        segment: table.given("segment", p.map(|p| p.segment))?,
        nic_pacing: table.given("nic_pacing", p.map(|p| p.nic_pacing))?,
        recompute_gap: table.given("recompute_gap", p.map(|p| p.recompute_gap))?,
        count_nic_wait: table.given("count_nic_wait", p.map(|p| p.count_nic_wait))?,
        subtract: named(table, "subtract", SUBTRACTS, p.map(|p| p.subtract))?,
        timestamps: named(table, "timestamps", TIMESTAMPS, p.map(|p| p.timestamps))?,
        clock: clock(table, p.map(|p| p.clock))?,
        feedback_jitter: table.given("feedback_jitter", p.map(|p| p.feedback_jitter))?,
        operation: named(table, "operation", OPERATIONS, p.map(|p| p.operation))?,
        recovery: recovery(table, p.map(|p| p.recovery))?,
        rto: rto(table, p.map(|p| p.rto))?,
        timeouts_max: table.given("timeouts_max", p.map(|p| p.timeouts_max))?,
        ecn: table.given("ecn", p.map(|p| p.ecn))?,
        cnp_interval: variant.cnp_interval,
        telemetry: variant.telemetry,
        rule: variant.rule,
    };
    config.check().map_err(|why| refused(table, &why.to_string(), &keys_of(&why)))?;
    Ok(Transport {
        mtu: (config.payload + config.overhead).max(config.longest_ack()),
        classes: vec![config.class, config.ack_class],
        first_window: u64::MAX, // rates, not windows
        telemetry: variant.telemetry,
        signals: match variant.rule {
            RuleConfig::Dcqcn(_) => Signals { marks: Need::Needs, ..Signals::NONE },
            _ => Signals::NONE,
        },
        // No acknowledgements of single packets: they are cumulative.
        ..Transport::new(
            config.framing(),
            wire::roce::PROTO,
            Box::new(move || Some(Box::new(rdma::Rdma::new(config).ok()?))),
        )
    })
}

/// `recovery = "go-back-n"` with `nack_interval`, or `"selective"` with `reordering`.
fn recovery(table: &mut Reader<'_>, p: Option<Recovery>) -> Result<Recovery, Diagnostic> {
    let selective = p.map(|p| matches!(p, Recovery::Selective { .. }));
    if named(table, "recovery", &[("go-back-n", false), ("selective", true)], selective)? {
        let usual = match p {
            Some(Recovery::Selective { reordering }) => Some(reordering),
            _ => None,
        };
        return Ok(Recovery::Selective { reordering: table.given("reordering", usual)? });
    }
    let usual = match p {
        Some(Recovery::GoBackN { nack_interval }) => Some(nack_interval),
        _ => None,
    };
    Ok(Recovery::GoBackN { nack_interval: table.given("nack_interval", usual)? })
}

fn rto(table: &mut Reader<'_>, p: Option<RtoConfig>) -> Result<RtoConfig, Diagnostic> {
    Ok(RtoConfig {
        min: table.given("rto_min", p.map(|p| p.min))?,
        initial: table.given("rto_initial", p.map(|p| p.initial))?,
        max: table.given("rto_max", p.map(|p| p.max))?,
        ..rdma::Config::RTO
    })
}

fn clock(table: &mut Reader<'_>, p: Option<Clock>) -> Result<Clock, Diagnostic> {
    Ok(Clock {
        noise: table.given("rtt_noise", p.map(|p| p.noise))?,
        drift_ppb: table.given("clock_drift", p.map(|p| p.drift_ppb))?,
        calibration: table.given("clock_calibration", p.map(|p| Calibration(p.calibration)))?.0,
        reading: table.given("clock_reading", p.map(|p| p.reading))?,
    })
}

/// The keys whose values are refused.
fn keys_of(why: &rdma::ConfigError) -> Vec<&'static str> {
    match *why {
        rdma::ConfigError::Range { name, .. } | rdma::ConfigError::Speed(name) => vec![name],
        rdma::ConfigError::TooLong { .. } => vec!["payload", "overhead"],
        rdma::ConfigError::Order { low, high } => vec![low, high],
        rdma::ConfigError::Needs { name, .. } => vec![name],
    }
}

impl Knob for Speed {
    const EXAMPLE: &'static str = "\"10Mbps\"` or `0.001";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(_) => Rate::read(value).map(Self::Fixed),
            _ => f64::read(value).map(Self::Share),
        }
    }
    fn show(&self) -> toml::Value {
        match self {
            Self::Share(share) => share.show(),
            Self::Fixed(rate) => rate.show(),
        }
    }
}

impl Knob for HaiBelow {
    const EXAMPLE: &'static str = "false`, `true` or `\"always\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "always" => Ok(Self::Always),
            _ => bool::read(value).map(|calm| if calm { Self::Calm } else { Self::Never }),
        }
    }
    fn show(&self) -> toml::Value {
        match self {
            Self::Never => false.show(),
            Self::Calm => true.show(),
            Self::Always => "always".to_owned().show(),
        }
    }
}

impl Knob for Initial {
    const EXAMPLE: &'static str = "\"share\"`, `\"1Gbps\"` or `0.1";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "share" => Ok(Self::Share),
            _ => Speed::read(value).map(Self::At),
        }
    }
    fn show(&self) -> toml::Value {
        match self {
            Self::Share => toml::Value::String("share".into()),
            Self::At(speed) => speed.show(),
        }
    }
}

impl Knob for Segment {
    const EXAMPLE: &'static str = "\"16KB\"` or `\"packet\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "packet" => Ok(Self::Packet),
            _ => {
                let Bytes(bytes) = Bytes::read(value)?;
                u32::try_from(bytes).map(Self::Bytes).map_err(|_| format!("{bytes} B is too long"))
            }
        }
    }
    fn show(&self) -> toml::Value {
        match self {
            Self::Packet => toml::Value::String("packet".into()),
            Self::Bytes(bytes) => Bytes(u64::from(*bytes)).show(),
        }
    }
}

/// How often clocks are compared, or "start".
struct Calibration(Option<Dur>);

impl Knob for Calibration {
    const EXAMPLE: &'static str = "\"10ms\"` or `\"start\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "start" => Ok(Self(None)),
            _ => Dur::read(value).map(|interval| Self(Some(interval))),
        }
    }
    fn show(&self) -> toml::Value {
        self.0.map_or_else(|| toml::Value::String("start".into()), |interval| interval.show())
    }
}

/// A value, or "off".
struct Off<T>(Option<T>);

impl<T: Knob> Knob for Off<T> {
    const EXAMPLE: &'static str = "\"off\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "off" => Ok(Self(None)),
            _ => T::read(value).map(|value| Self(Some(value))),
        }
    }
    fn show(&self) -> toml::Value {
        self.0.as_ref().map_or_else(|| toml::Value::String("off".into()), Knob::show)
    }
}

/// The rate inside segments, "line", or "own".
impl Knob for NicPacing {
    const EXAMPLE: &'static str = "\"700Mbps\"`, `\"line\"` or `\"own\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "line" => Ok(Self::Line),
            Value::Text(text) if text == "own" => Ok(Self::Own),
            _ => Rate::read(value).map(Self::At),
        }
    }
    fn show(&self) -> toml::Value {
        match self {
            Self::Line => toml::Value::String("line".into()),
            Self::Own => toml::Value::String("own".into()),
            Self::At(rate) => rate.show(),
        }
    }
}
