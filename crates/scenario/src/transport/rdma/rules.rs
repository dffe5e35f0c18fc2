//! What `rule` can be, and the keys of each.

use transports::rdma::rule::timely::{Calm, HaiBelow, Middle, Update};
use transports::rdma::rule::{dcqcn, fast, hpcc, swift, timely};
use transports::rdma::{Config, Initial, RuleConfig, Speed};
use units::Dur;

use super::super::Presets;
use crate::document::Value;
use crate::key::{Key, keys};
use crate::reader::Reader;
use crate::value::{Form, Off, Or, Refused, ScenarioValue, SizeOr, choices};

/// A rule with its keys.
pub(super) struct Rule {
    /// As it is written.
    pub(super) name: &'static str,
    /// The same, for messages.
    pub(super) only: &'static str,
    /// What the reference calls its keys.
    pub(super) section: &'static str,
    /// Published sets of values.
    pub(super) presets: &'static Presets<Config>,
    /// The keys.
    pub(super) keys: &'static [Key<Config>],
    /// Sets what no key does.
    pub(super) prepare: fn(&Reader<'_>, &mut Config),
}

/// A rule: name, keys, presets, what sets the rest.
macro_rules! rule {
    ($name:literal, $keys:expr, $presets:expr, $prepare:expr) => {
        Rule {
            name: $name,
            only: concat!("`rule = \"", $name, "\"`"),
            section: concat!("transport.rdma.", $name),
            presets: $presets,
            keys: $keys,
            prepare: $prepare,
        }
    };
}

/// What `rule` can be.
pub(super) const RULES: &[Rule] = &[
    rule!("none", &[], ROCE, |_, _| {}),
    rule!("timely", TIMELY, TIMELY_PRESETS, |_, _| {}),
    rule!("patched-timely", TIMELY, PATCHED_PRESETS, weighted),
    rule!("fast", FAST, FAST_PRESETS, |_, _| {}),
    rule!("dcqcn", DCQCN, DCQCN_PRESETS, |_, _| {}),
    rule!("hpcc", HPCC, HPCC_PRESETS, additive_step),
    rule!("swift", SWIFT, SWIFT_PRESETS, |_, _| {}),
];

/// Presets without a rule for the rate.
pub(super) const ROCE: &Presets<Config> =
    &[("roce", |payload| Config::roce(payload, RuleConfig::Unlimited))];

const TIMELY_PRESETS: &Presets<Config> = &[
    ("paper", Config::timely),
    // eRPC's timing wheel knows the rate when a packet is put into it.
    ("erpc", |payload| Config {
        recompute_gap: false,
        ..Config::roce(payload, RuleConfig::Timely(timely::Params::ERPC))
    }),
    ("hpcc", |payload| Config::roce(payload, RuleConfig::Timely(timely::Params::HPCC))),
];
const PATCHED_PRESETS: &Presets<Config> = &[("paper", |payload| Config {
    rule: RuleConfig::Timely(timely::Params::PATCHED),
    ..Config::timely(payload)
})];
const FAST_PRESETS: &Presets<Config> = &[("timely-paper", |payload| Config {
    rule: RuleConfig::Fast(fast::Params::TIMELY_PAPER),
    ..Config::timely(payload)
})];
const DCQCN_PRESETS: &Presets<Config> = &[
    ("paper", |payload| Config::dcqcn(payload, dcqcn::Params::PAPER)),
    ("ns3-rdma", |payload| Config::dcqcn(payload, dcqcn::Params::NS3_RDMA)),
    ("mlx", |payload| Config::dcqcn(payload, dcqcn::Params::MLX)),
    ("mlx-paper", |payload| Config::dcqcn(payload, dcqcn::Params::MLX_PAPER)),
];
const HPCC_PRESETS: &Presets<Config> = &[
    ("paper", |payload| Config::hpcc(payload, hpcc::Params::PAPER)),
    ("simulator", |payload| Config::hpcc(payload, hpcc::Params::SIMULATOR)),
];
const SWIFT_PRESETS: &Presets<Config> =
    &[("paper", |payload| Config::swift(payload, swift::Params::PAPER))];

/// What of TIMELY is patched.
fn weighted(_: &Reader<'_>, config: &mut Config) {
    if let RuleConfig::Timely(params) = &mut config.rule {
        params.middle = Middle::Weighted;
    }
}

/// `flows` or `w_ai` says what the additive step of HPCC is, whichever is written.
fn additive_step(table: &Reader<'_>, config: &mut Config) {
    let RuleConfig::Hpcc(params) = &mut config.rule else { return };
    if table.has("flows") {
        params.w_ai = hpcc::Increase::Flows(1);
    } else if table.has("w_ai") {
        params.w_ai = hpcc::Increase::Speed(Speed::Share(1.0));
    }
}

keys! { TIMELY: Config {
    t_low (rule: RuleConfig::Timely(p) => p.t_low): Dur,
        "below this round-trip time the rate grows. Equal to `t_high`: the gradient never \
         matters".range("at most `t_high`");
    t_high (rule: RuleConfig::Timely(p) => p.t_high): Dur, "above it the rate shrinks";
    delta (rule: RuleConfig::Timely(p) => p.delta): Speed, "what the rate grows by";
    beta (rule: RuleConfig::Timely(p) => p.beta): f64,
        "how strongly it shrinks".range("above 0, at most 1");
    alpha (rule: RuleConfig::Timely(p) => p.alpha): f64,
        "weight of the newest difference of round-trip times (the paper gives none; its preset's \
         is our own)".range("above 0, at most 1");
    min_rtt (rule: RuleConfig::Timely(p) => p.min_rtt): Dur,
        "what the gradient is measured in".range("above 0");
    hai_factor (rule: RuleConfig::Timely(p) => p.hai_factor): f64,
        "hyperactive increase: `delta` times this".range("at least 1");
    hai_after (rule: RuleConfig::Timely(p) => p.hai_after): u32,
        "after this many acknowledgements in a row that count".range("at least 1");
    hai_by (rule: RuleConfig::Timely(p) => p.hai_by): Calm,
        "those count whose gradient lets the rate grow, between the thresholds, or those whose \
         round-trip time is below the one before";
    hai_below_t_low (rule: RuleConfig::Timely(p) => p.hai_below_t_low): HaiBelow,
        "hyperactive increase below `t_low`, too; `\"always\"`: whatever the gradient there";
    min_rate (rule: RuleConfig::Timely(p) => p.min_rate): Speed, "the rate is never below (own)";
    max_rate (rule: RuleConfig::Timely(p) => p.max_rate): Speed, "nor above";
    initial_rate (rule: RuleConfig::Timely(p) => p.initial_rate): Initial,
        "the first rate. `\"share\"`: line rate / (n + 1), n other queue pairs of the host \
         having something in flight";
    update (rule: RuleConfig::Timely(p) => p.update): Update,
        "the rate is worked out at each acknowledgement that measures a round-trip time, or once \
         for what was sent since the last time; the first of all is then only remembered";
    zero_gradient_increases (rule: RuleConfig::Timely(p) => p.zero_gradient_increases): bool,
        "the rate grows at a gradient of zero, too";
    min_factor (rule: RuleConfig::Timely(p) => p.min_factor): f64,
        "an update leaves at least this share of the rate".range("0 to 1").was("least_factor");
    scaled (rule: RuleConfig::Timely(p) => p.scaled): bool,
        "an update sooner than `min_rtt` after the last counts less";
    min_use (rule: RuleConfig::Timely(p) => p.min_use): f64,
        "the rate grows only if more than this share of it was used"
            .range("0 to 1").was("least_use");
    bypass (rule: RuleConfig::Timely(p) => p.bypass): bool,
        "nothing is worked out at `max_rate` below `t_low`";
}}

choices!(Update, "completion" => Update::Completion, "round-trip" => Update::RoundTrip);
choices!(Calm, "gradient" => Calm::Gradient, "difference" => Calm::Difference);

impl ScenarioValue for HaiBelow {
    fn form() -> Form {
        bool::form().or_word("always")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
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

keys! { FAST: Config {
    // The point of the comparison: TIMELY's Table 1 has three of them.
    alpha (rule: RuleConfig::Fast(p) => p.alpha): Speed,
        "how much of its rate each queue pair keeps queued (the paper: 10, 50 and 100 Mb/s)"
            .written();
    gamma (rule: RuleConfig::Fast(p) => p.gamma): f64,
        "share of the way to the new rate that an update goes".range("above 0, at most 1");
    min_rate (rule: RuleConfig::Fast(p) => p.min_rate): Speed, "the rate is never below (own)";
    max_rate (rule: RuleConfig::Fast(p) => p.max_rate): Speed, "nor above (own)";
    initial_rate (rule: RuleConfig::Fast(p) => p.initial_rate): Initial,
        "the first rate, as for `timely` (own)";
}}

keys! { DCQCN: Config {
    feedback (get feedback, set set_feedback): Feedback,
        "how a mark comes back: by a notification packet, or with the acknowledgement";
    cnp_interval (cnp_interval: Some(interval) => *interval): Dur,
        "no more than one notification for a queue pair in this time".only("`feedback = \"cnp\"`");
    cut_interval (rule: RuleConfig::Dcqcn(dcqcn::Params { cuts: dcqcn::Cuts::Clocked(every), .. })
        => *every): Dur,
        "a cut at the end of each interval of this length in which a mark came; the first mark \
         begins the first".range("from 1 ns").only("`feedback = \"ack\"`");
    g (rule: RuleConfig::Dcqcn(p) => p.g): f64,
        "weight of the newest observation in alpha".range("above 0, at most 1").was("gain");
    alpha_timer (rule: RuleConfig::Dcqcn(p) => p.alpha_timer): Dur,
        "alpha falls after this long without a notification; with `feedback = \"ack\"` it is \
         computed at this interval".range("from 1 ns");
    rate_timer (rule: RuleConfig::Dcqcn(p) => p.rate_timer): Dur,
        "interval at which the rate is raised".range("from 1 us");
    byte_counter (rule: RuleConfig::Dcqcn(p) => p.byte_counter): SizeOr<Off>,
        "and each time that this much has been sent".range("above 0");
    f (rule: RuleConfig::Dcqcn(p) => p.f): u32,
        "from which time on the target is raised, too".range("at least 1").was("stages");
    r_ai (rule: RuleConfig::Dcqcn(p) => p.r_ai): Speed,
        "by this much".range("above 0").was("increase");
    r_hai (rule: RuleConfig::Dcqcn(p) => p.r_hai): Or<Off, Speed>,
        "by this much when timer and counter are both beyond `f`, or the timer if there is no \
         counter".range("above 0").was("hyper_increase");
    min_rate (rule: RuleConfig::Dcqcn(p) => p.min_rate): Speed,
        "the rate is never below".range("above 0");
    clamp_target (rule: RuleConfig::Dcqcn(p) => p.clamp_target): bool,
        "each cut brings the target down to the rate; if not, only the first after an increase";
    alpha_first (rule: RuleConfig::Dcqcn(p) => p.alpha_first): bool,
        "a notification raises alpha before it cuts, not after";
}}

/// How a mark comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Feedback {
    Cnp,
    Ack,
}

choices!(Feedback, "cnp" => Feedback::Cnp, "ack" => Feedback::Ack);

fn feedback(config: &Config) -> Option<Feedback> {
    let RuleConfig::Dcqcn(params) = config.rule else { return None };
    Some(if params.cuts == dcqcn::Cuts::Cnp { Feedback::Cnp } else { Feedback::Ack })
}

/// What a preset has of the same feedback stays.
fn set_feedback(config: &mut Config, feedback: Feedback) {
    let RuleConfig::Dcqcn(params) = &mut config.rule else { return };
    match feedback {
        Feedback::Cnp => {
            params.cuts = dcqcn::Cuts::Cnp;
            config.cnp_interval.get_or_insert(Dur::ZERO);
        }
        Feedback::Ack => {
            if params.cuts == dcqcn::Cuts::Cnp {
                params.cuts = dcqcn::Cuts::Clocked(Dur::ZERO);
            }
            config.cnp_interval = None;
        }
    }
}

// T and N are those of a network: no preset sets them.
keys! { HPCC: Config {
    rtt (rule: RuleConfig::Hpcc(p) => p.rtt): Dur,
        "T: a little more than the longest round-trip time without queues"
            .range("above 0").written();
    eta (rule: RuleConfig::Hpcc(p) => p.eta): f64,
        "what links are loaded to".range("above 0, at most 1").was("utilization");
    max_stage (rule: RuleConfig::Hpcc(p) => p.max_stage): u32,
        "after this many additive steps the window is set by the load again".was("stages");
    flows (rule: RuleConfig::Hpcc(hpcc::Params { w_ai: hpcc::Increase::Flows(flows), .. }) =>
        *flows): u32,
        "N: the additive step is the window of a whole link times (1 - `eta`) over this number \
         of flows".range("at least 1").written().only("a scenario without `w_ai`");
    w_ai (rule: RuleConfig::Hpcc(hpcc::Params { w_ai: hpcc::Increase::Speed(speed), .. }) =>
        *speed): Speed,
        "instead of `flows`: the additive step as a rate"
            .range("above 0").only("a scenario without `flows`").was("increase");
    min_rate (rule: RuleConfig::Hpcc(p) => p.min_rate): Speed,
        "the rate is never below".range("above 0");
    reaction (rule: RuleConfig::Hpcc(p) => p.reaction): hpcc::Reaction,
        "which acknowledgements change the window: all, from a reference of the last round trip; \
         one in a round trip, and nothing is measured in between; all, each from what the last \
         one left";
}}

choices!(hpcc::Reaction,
    "both" => hpcc::Reaction::Both, "per-rtt" => hpcc::Reaction::PerRtt,
    "per-ack" => hpcc::Reaction::PerAck);

keys! { SWIFT: Config {
    base_target (rule: RuleConfig::Swift(p) => p.base_target): Dur,
        "target of the delay in the fabric";
    hop_scaling (rule: RuleConfig::Swift(p) => p.hop_scaling): Dur,
        "what each link on the way adds to it".was("per_hop");
    fs_range (get fs_range, set set_fs_range): Or<Off, Dur>,
        "the most that flow scaling adds to the target, at windows of `fs_min` and less; \
         `\"off\"`: nothing".range("above 0").was("scaling_range");
    fs_min (rule: RuleConfig::Swift(swift::Params { scaling: Some(p), .. }) => p.fs_min): f64,
        "the window, packets, below which flow scaling adds `fs_range`"
            .range("above 0").only("`fs_range` that is not `\"off\"`").was("scaling_least");
    fs_max (rule: RuleConfig::Swift(swift::Params { scaling: Some(p), .. }) => p.fs_max): f64,
        "the window, packets, from which on it adds nothing"
            .range("above `fs_min`").only("`fs_range` that is not `\"off\"`").was("scaling_most");
    endpoint_target (rule: RuleConfig::Swift(p) => p.endpoint_target): Dur,
        "target of the delay in the hosts: from a packet's arrival at the receiver's interface \
         to its acknowledgement's departure there, and from the arrival of that at the sender's \
         to its transport";
    ai (rule: RuleConfig::Swift(p) => p.ai): f64,
        "growth per round trip, packets".range("above 0").was("increase");
    beta (rule: RuleConfig::Swift(p) => p.beta): f64,
        "how strongly the window shrinks".range("above 0, below 1").was("decrease");
    max_mdf (rule: RuleConfig::Swift(p) => p.max_mdf): f64,
        "the greatest part that a decrease takes off"
            .range("above 0, below 1").was("most_decrease");
    min_cwnd (rule: RuleConfig::Swift(p) => p.min_cwnd): f64,
        "least window, packets".range("above 0").was("least_window");
    max_cwnd (rule: RuleConfig::Swift(p) => p.max_cwnd): f64,
        "greatest window, packets".range("at least `min_cwnd`").was("most_window");
    initial_window (rule: RuleConfig::Swift(p) => p.initial_window): f64,
        "the first window, packets".range("`min_cwnd` to `max_cwnd`");
    retx_reset_threshold (rule: RuleConfig::Swift(p) => p.retx_reset_threshold): u32,
        "this many timeouts without an acknowledgement make the window the least"
            .range("at least 1").was("reset_after");
}}

fn fs_range(config: &Config) -> Option<Or<Off, Dur>> {
    let RuleConfig::Swift(params) = config.rule else { return None };
    Some(params.scaling.map(|scaling| scaling.fs_range).into())
}

/// The bounds are keys of their own; those of a preset stay.
fn set_fs_range(config: &mut Config, range: Or<Off, Dur>) {
    let RuleConfig::Swift(params) = &mut config.rule else { return };
    let range: Option<Dur> = range.into();
    params.scaling = range.map(|fs_range| {
        let begun = params.scaling.unwrap_or(swift::Scaling { fs_range, fs_min: 1.0, fs_max: 1.0 });
        swift::Scaling { fs_range, ..begun }
    });
}
