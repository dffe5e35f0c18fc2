//! `[transport] kind = "mptcp"`: the keys of [`transports::mptcp::Config`], and for its subflows
//! those of `kind = "tcp"` but for `rule`.

use transports::mptcp::{
    Config, Mptcp, Reinject, Scatter, ScatterThreshold, Scheduler, Switch, SwitchOn,
};
use transports::tcp::rr;
use transports::tcp::rule::{RuleConfig, ewtcp, lia, semicoupled};
use units::{Bytes, Dur};

use super::tcp::{OF_SUBFLOWS, marks, timers};
use super::{Around, Begun, Presets, Signals, Transport, made, payload, refused, sections};
use crate::diagnostic::Checked;
use crate::document::Value;
use crate::key::{Section, keys};
use crate::reader::Reader;
use crate::value::{Form, Refused, ScenarioValue, SizeOr, Unlimited, choices};

const PRESETS: &Presets<Config> = &[
    ("mmptcp-infocom16", Config::mmptcp_infocom16),
    ("linux", Config::linux),
    ("htsim", |mss| Config::htsim(mss.saturating_add(40))),
];

keys! { KEYS: Config {
    phases (get |c| Some(Phases::of(c)), set set_phases): Phases,
        "what a connection does. `multipath`: Multipath TCP, several subflows from the start. \
         `scatter-then-multipath`: MMPTCP, one subflow whose packets each take a path of their \
         own, and the others later. `scatter`: the first of the two phases for ever".written();
    recovery (tcp.recovery): transports::tcp::Recovery, "as for `tcp`";
    ecn (tcp.ecn): bool, "as for `tcp`";
    handshake_sample: bool,
        "the handshake of a subflow is a sample of its round-trip time; otherwise its timeout is \
         `rto_initial` until data was acknowledged";
    receive_buffer: SizeOr<Unlimited>,
        "what a receiver lets its peer send of a connection beyond what has come in order"
            .range("at least `mss`");
    send_buffer: SizeOr<Unlimited>,
        "what a sender has in flight of a connection that is not acknowledged in order"
            .range("at least `mss`");
}}

keys! { MULTIPATH: Config {
    subflows: u32, "of each connection".range("1 to 63");
    join_gap: Dur,
        "a subflow that joins waits for a random number of whole microseconds below this, \
         another one each".range("0, or a microsecond for each join");
    coupling (get |c| Coupling::of(&c.tcp.rule), set set_coupling): Coupling,
        "how windows grow in congestion avoidance. `lia`: all together as one TCP on the best \
         path (RFC 6356). `olia`: Khalili and others, CoNEXT 2012. `uncoupled`: each as a TCP. \
         `linked`: `lia` without its cap at a TCP's growth. The others: Wischik and others, NSDI \
         2011. Slow start and decreases are NewReno's, but `fully-coupled` halves the total";
    lia_min_increase (get lia_min_increase, set set_lia_min_increase): Bytes,
        "an acknowledgement adds at least this much (ns-3: a byte)"
            .range("0 to `mss`").any_preset().only("`coupling = \"lia\"` or `\"linked\"`")
            .was("lia_least_increase");
    ewtcp_weight (tcp.rule: RuleConfig::Ewtcp(weight) => *weight): ewtcp::Weight,
        "a subflow's growth as a share of a TCP's".written().only("`coupling = \"ewtcp\"`");
    semicoupled_exponent (tcp.rule: RuleConfig::Semicoupled(p) => p.exponent): f64,
        "0 moves everything to the best paths, 2 is `uncoupled`"
            .range("0 to 2").written().only("`coupling = \"semicoupled\"`");
    semicoupled_weight (tcp.rule: RuleConfig::Semicoupled(p) => p.weight): f64,
        "how aggressive all together are"
            .range("above 0, at most 1").written().only("`coupling = \"semicoupled\"`");
    scheduler: Scheduler, "which subflow with window for it carries the next segment";
    reinject: Reinject,
        "`timeout`: what a subflow has outstanding when its timer expires goes over others, too. \
         If a subflow fails (`max_timeouts`), it always does";
    opportunistic: bool,
        "while `receive_buffer` or `send_buffer` is full, the windows of slower subflows that \
         have the oldest data outstanding are halved, once per round trip; another one sends \
         that data, too, if their round trips are over 4 times its own or their windows 4 \
         segments at most";
}}

keys! { SCATTER: Config {
    scatter_dup_threshold (scatter: Some(scatter) => scatter.dup_threshold): ScatterThreshold,
        "`dup_threshold` of the first subflow; `\"paths\"`: 3 and one more for each path to the \
         destination, 3 if there is but one; `\"rr\"` as there, with its keys".range("at least 1");
    rr_fa_ratio (scatter: Some(Scatter { dup_threshold: ScatterThreshold::Rr(p), .. }) =>
        p.fa_ratio): f64,
        "as for `tcp`".range("0 to 1").any_preset().only("`scatter_dup_threshold = \"rr\"`");
    rr_step (scatter: Some(Scatter { dup_threshold: ScatterThreshold::Rr(p), .. }) => p.step): f64,
        "as for `tcp`"
            .range("above 0, at most 1").any_preset().only("`scatter_dup_threshold = \"rr\"`");
    rr_history (scatter: Some(Scatter { dup_threshold: ScatterThreshold::Rr(p), .. }) =>
        p.history): u32,
        "as for `tcp`".range("at least 1").any_preset().only("`scatter_dup_threshold = \"rr\"`");
    switch (keep scatter: Some(Scatter { switch: Some(switch), .. }) => switch.on): SwitchOn,
        "when the others join: after `switch_bytes`; when window over round-trip time is \
         `switch_share` of the rate of the host's link; at the first fast retransmit"
            .only("`phases = \"scatter-then-multipath\"`");
    switch_bytes (scatter: Some(Scatter { switch: Some(Switch { on: SwitchOn::Bytes(bytes), .. }),
        .. }) => *bytes): SizeOr<Unlimited>,
        "more than this was sent, retransmissions not counted, when an acknowledgement comes; by \
         all messages of a `channel` together, as they share a connection"
            .only("`switch = \"bytes\"`");
    switch_share (scatter: Some(Scatter { switch: Some(Switch { on: SwitchOn::Window(share), .. }),
        .. }) => *share): f64,
        "see `switch` (specs/mptcp.md#4: 0.02)"
            .range("above 0, at most 1").any_preset().only("`switch = \"window\"`");
    switch_postpone (scatter: Some(Scatter { switch: Some(switch), .. }) => switch.postpone): bool,
        "not during slow start, recovery or what follows a timeout"
            .only("`phases = \"scatter-then-multipath\"`");
}}

choices!(Scheduler,
    "round-robin" => Scheduler::RoundRobin, "lowest-rtt" => Scheduler::LowestRtt);
choices!(Reinject, "none" => Reinject::None, "timeout" => Reinject::Timeout);
choices!(ewtcp::Weight,
    "1/sqrt(n)" => ewtcp::Weight::InverseRoot, "1/n^2" => ewtcp::Weight::InverseSquare);

choices!(variants SwitchOn,
    "bytes" => SwitchOn::Bytes(0),
    "window" => SwitchOn::Window(1.0 / 50.0),
    "loss" => SwitchOn::Loss);

/// What a connection does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phases {
    Multipath,
    ScatterThenMultipath,
    Scatter,
}

choices!(Phases,
    "multipath" => Phases::Multipath,
    "scatter-then-multipath" => Phases::ScatterThenMultipath,
    "scatter" => Phases::Scatter);

impl Phases {
    fn of(config: &Config) -> Self {
        match config.scatter {
            None => Self::Multipath,
            Some(Scatter { switch: Some(_), .. }) => Self::ScatterThenMultipath,
            Some(Scatter { switch: None, .. }) => Self::Scatter,
        }
    }
}

/// Leave a configuration what `phases` have keys for. Keys set what the preset does not have.
fn set_phases(config: &mut Config, phases: Phases) {
    let begun =
        config.scatter.unwrap_or(Scatter { dup_threshold: ScatterThreshold::Paths, switch: None });
    let switch = begun.switch.unwrap_or(Switch { on: SwitchOn::Loss, postpone: false });
    config.scatter = match phases {
        Phases::Multipath => None,
        Phases::ScatterThenMultipath => Some(Scatter { switch: Some(switch), ..begun }),
        Phases::Scatter => Some(Scatter { switch: None, ..begun }),
    };
    if phases == Phases::Scatter {
        config.tcp.rule = RuleConfig::NewReno;
        (config.subflows, config.join_gap) = (1, Dur::ZERO);
        (config.scheduler, config.reinject) = (Scheduler::RoundRobin, Reinject::None);
        config.opportunistic = false;
    }
}

/// How windows are coupled.
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

choices!(Coupling,
    "lia" => Coupling::Lia,
    "olia" => Coupling::Olia,
    "uncoupled" => Coupling::Uncoupled,
    "linked" => Coupling::Linked,
    "fully-coupled" => Coupling::FullyCoupled,
    "ewtcp" => Coupling::Ewtcp,
    "semicoupled" => Coupling::Semicoupled);

impl Coupling {
    fn of(rule: &RuleConfig) -> Option<Self> {
        Some(match rule {
            RuleConfig::Lia(lia::Params { capped: true, .. }) => Self::Lia,
            RuleConfig::Lia(_) => Self::Linked,
            RuleConfig::Olia => Self::Olia,
            RuleConfig::FullyCoupled => Self::FullyCoupled,
            RuleConfig::Ewtcp(_) => Self::Ewtcp,
            RuleConfig::Semicoupled(_) => Self::Semicoupled,
            _ => Self::Uncoupled,
        })
    }
}

/// The rule of that name. `lia` and `linked` keep the least increase of a preset.
fn set_coupling(config: &mut Config, coupling: Coupling) {
    let lia = match config.tcp.rule {
        RuleConfig::Lia(params) => params,
        _ => lia::Params::RFC,
    };
    config.tcp.rule = match coupling {
        Coupling::Lia | Coupling::Linked => {
            RuleConfig::Lia(lia::Params { capped: coupling == Coupling::Lia, ..lia })
        }
        Coupling::Olia => RuleConfig::Olia,
        Coupling::Uncoupled => RuleConfig::NewReno,
        Coupling::FullyCoupled => RuleConfig::FullyCoupled,
        Coupling::Ewtcp => RuleConfig::Ewtcp(ewtcp::Weight::InverseRoot),
        Coupling::Semicoupled => {
            RuleConfig::Semicoupled(semicoupled::Params { exponent: 1.0, weight: 1.0 })
        }
    };
}

fn lia_min_increase(config: &Config) -> Option<Bytes> {
    let RuleConfig::Lia(params) = config.tcp.rule else { return None };
    Some(Bytes((params.min_increase * f64::from(config.tcp.mss)).round() as u64))
}

fn set_lia_min_increase(config: &mut Config, Bytes(bytes): Bytes) {
    if let RuleConfig::Lia(params) = &mut config.tcp.rule {
        params.min_increase = bytes as f64 / f64::from(config.tcp.mss);
    }
}

/// A number of duplicate acknowledgements, or "paths", or "rr", whose numbers are keys of their
/// own.
impl ScenarioValue for ScatterThreshold {
    fn form() -> Form {
        u32::form().or_word("paths").or_word("rr")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) if text == "paths" => Ok(Self::Paths),
            Value::Text(text) if text == "rr" => Ok(Self::Rr(rr::Params::PRESET)),
            _ => u32::read(value).map(Self::Fixed),
        }
    }
    fn show(&self) -> toml::Value {
        match self {
            Self::Paths => "paths".to_owned().show(),
            Self::Fixed(n) => n.show(),
            Self::Rr(_) => "rr".to_owned().show(),
        }
    }
}

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    let mut all = sections("transport.mptcp", KEYS, PRESETS);
    all.extend(sections("transport.mptcp.multipath", MULTIPATH, PRESETS));
    all.extend(sections("transport.mptcp.scatter", SCATTER, PRESETS));
    all
}

/// `kind = "mptcp"`.
pub(super) fn read(table: &mut Reader<'_>, _: &Around<'_>) -> Checked<Transport> {
    let mut begun = Begun::of(table, PRESETS, payload(table, "mss"))?;
    begun.keys(table, KEYS)?;
    for keys in OF_SUBFLOWS {
        let preset = begun.preset.as_ref().map(|preset| &preset.tcp);
        table.keys(keys, &mut begun.config.tcp, preset)?;
    }
    let phases = Phases::of(&begun.config);
    match phases {
        Phases::Scatter => table.without(MULTIPATH, "`phases` with `multipath`"),
        _ => begun.keys(table, MULTIPATH)?,
    }
    match phases {
        Phases::Multipath => table.without(SCATTER, "`phases` with `scatter`"),
        _ => begun.keys(table, SCATTER)?,
    }
    let config = begun.finish(table)?;
    config.check().map_err(|why| refused(table, &why.to_string(), why.fields()))?;
    let tcp = &config.tcp;
    Ok(Transport {
        mtu: (tcp.mss + tcp.overhead).max(tcp.longest_ack()),
        classes: vec![tcp.class],
        first_window: (tcp.initial_window * f64::from(tcp.mss)) as u64,
        window_grows: true,
        samples_rtt: true,
        timers: timers(tcp),
        signals: Signals { marks: marks(tcp), ..Signals::NONE },
        sprays: phases != Phases::Multipath,
        scatters: phases != Phases::Multipath || config.subflows > 1,
        // No acknowledgements of single packets: they are cumulative.
        ..Transport::new(
            config.framing(),
            wire::tcp::PROTO,
            Box::new(move |_| made(Mptcp::new(config))),
        )
    })
}
