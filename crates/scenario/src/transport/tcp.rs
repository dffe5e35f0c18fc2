//! `[transport] kind = "tcp"`: the keys of [`transports::tcp::Config`].

use transports::tcp::rule::{bic, cubic, d2tcp, dctcp, fast, htcp};
use transports::tcp::{
    self, Config, Demotion, IdleRestart, Increase, ReceiveWindow, Recovery, Reduces, RuleConfig,
    Undo, ictcp, rr,
};
use units::{Bytes, Dur};

use super::{
    Around, Begun, Need, Presets, Signals, Transport, Wait, made, payload, refused, sections,
};
use crate::diagnostic::Checked;
use crate::document::Value;
use crate::key::{Key, Section, keys, section, section_of_variants};
use crate::reader::Reader;
use crate::value::{
    Form, Limit, Off, Or, PART_MAX, Refused, Rr, ScenarioValue, Size16, choices, read_word,
    same_variant, show_word,
};

const PRESETS: &Presets<Config> = &[
    ("linux-datacenter", Config::linux_datacenter),
    ("ns2", Config::ns2),
    ("htsim", |mss| Config::htsim(mss.saturating_add(40))),
    ("linux-2.6", Config::linux_2_6),
    ("ns3-3.17", Config::ns3_3_17),
    ("ns3-3.39", Config::ns3_3_39),
];

// No preset sets these three.
keys! { KEYS: Config {
    rule: RuleConfig, "the congestion-control rule".written();
    recovery: Recovery,
        "how losses are repaired. `reno`: one lost segment; the first acknowledgement of \
         anything new ends the recovery (RFC 5681). `newreno`: a lost segment per round trip \
         (RFC 6582). `sack`: what SACK blocks say is missing (RFC 6675); an acknowledgement with \
         n blocks is 4 + 8 n bytes longer, n at most 4. `conservative_exit` and `impatient` are \
         for `newreno` only".written();
    ecn: bool,
        "all packets are ECN-capable, and marks are echoed and heeded: as a loss, once per \
         window of data (RFC 3168); by `dctcp` and `d2tcp`, which need it, in proportion (RFC \
         8257)".written();
}}

// The values with a preset are those of the source of each rule.
keys! { RULES: Config {
    bic_low_window (rule: RuleConfig::Bic(p) => p.low_window): f64,
        "up to this window, segments, it is NewReno".range("above 0").any_preset().only(BIC);
    bic_max_increment (rule: RuleConfig::Bic(p) => p.max_increment): f64,
        "greatest growth per round trip, segments".range("above 0").any_preset().only(BIC);
    bic_beta (rule: RuleConfig::Bic(p) => p.beta): f64,
        "factor of the window after a loss (819/1024)"
            .range("0 to 1, exclusive").any_preset().only(BIC);
    bic_fast_convergence (rule: RuleConfig::Bic(p) => p.fast_convergence): bool,
        "a flow that loses below its last maximum leaves room".any_preset().only(BIC);
    bic_smooth (rule: RuleConfig::Bic(p) => p.smooth): f64,
        "how slowly the window grows next to its last maximum"
            .range("above 0").any_preset().only(BIC);
    htcp_rtt_scaling (rule: RuleConfig::HTcp(p) => p.rtt_scaling): bool,
        "growth is divided by 100 ms over the least round-trip time, within 0.5 to 10"
            .any_preset().only(HTCP);
    htcp_bandwidth_switch (rule: RuleConfig::HTcp(p) => p.bandwidth_switch): bool,
        "a loss halves the window where throughput has changed by more than a fifth"
            .any_preset().only(HTCP);
    cubic_c (rule: RuleConfig::Cubic(p) => p.c): f64,
        "steepness, segments per second cubed".range("above 0").any_preset().only(CUBIC);
    cubic_beta (rule: RuleConfig::Cubic(p) => p.beta): f64,
        "factor of the window after a loss".range("0 to 1, exclusive").any_preset().only(CUBIC);
    cubic_fast_convergence (rule: RuleConfig::Cubic(p) => p.fast_convergence): bool,
        "a flow that loses below its last maximum leaves room".any_preset().only(CUBIC);
    dctcp_gain (rule: RuleConfig::Dctcp(p) | RuleConfig::D2tcp(d2tcp::Params { dctcp: p, .. }) =>
        p.gain): f64,
        "weight of the newest round trip in the estimate of marks (g)"
            .range("above 0, at most 1").any_preset().only(DCTCP);
    dctcp_initial_alpha (rule: RuleConfig::Dctcp(p) | RuleConfig::D2tcp(d2tcp::Params { dctcp: p,
        .. }) => p.initial_alpha): f64,
        "the estimate before anything was acknowledged; 0 in htsim"
            .range("0 to 1").any_preset().only(DCTCP);
    dctcp_min_window (rule: RuleConfig::Dctcp(p) | RuleConfig::D2tcp(d2tcp::Params { dctcp: p, ..
        }) => p.min_window): f64,
        "the window is never below this after a mark or a loss, segments"
            .range("at least 1").any_preset().only(DCTCP).was("dctcp_least_window");
    d2tcp_min_urgency (rule: RuleConfig::D2tcp(p) => p.min_urgency): f64,
        "least exponent d of the gamma correction alpha^d: the time that the rest of the message \
         needs over the time until its `deadline`"
            .range("above 0, at most 1").any_preset().only(D2TCP).was("d2tcp_least_urgency");
    d2tcp_max_urgency (rule: RuleConfig::D2tcp(p) => p.max_urgency): f64,
        "the greatest; also when the deadline has passed"
            .range("at least 1").any_preset().only(D2TCP).was("d2tcp_greatest_urgency");
    // The paper chooses alpha for each network.
    fast_alpha (rule: RuleConfig::Fast(p) => p.alpha): f64,
        "segments that each flow keeps queued".range("above 0").written().only(FAST);
    fast_gamma (rule: RuleConfig::Fast(p) => p.gamma): f64,
        "share of the way to its new window that each round trip goes (the paper: 0.5)"
            .range("above 0, at most 1").written().only(FAST);
    fast_slow_start_delay (rule: RuleConfig::Fast(p) => p.slow_start_delay): Dur,
        "queueing delay that ends slow start (the ns-2 module: 0.75 ms)".written().only(FAST);
}}

// Of a connection, or of a subflow of Multipath TCP.
keys! { pub(super) SUBFLOW: Config {
    mss: Size16 [Size16(1)..=PART_MAX], "largest payload of a segment".written();
    overhead: Size16 [Size16(40)..=PART_MAX], "bytes on the wire beside the payload";
    ack_bytes: Size16 [Size16(40)..=PART_MAX], "bytes on the wire of a pure acknowledgement";
    class: u8, "traffic class of all packets".range("0 to 7");
    isn: u32, "initial sequence number".range("0 to 2^32 - 1");
    handshake: bool,
        "a connection begins with SYN and SYN-ACK of `ack_bytes` each, which give the first \
         round-trip sample; otherwise with its first data";
    initial_window: f64, "segments".range("at least 1");
    initial_ssthresh: Limit,
        "initial slow-start threshold, segments; `ns3-3.17`: 65535 B in whole segments"
            .range("at least 1");
    window_cap: Limit,
        "largest window, segments; `ns3-3.17`: 65535 B in whole segments".range("at least 1");
    receive_window (keep receive_window): ReceiveWindow,
        "what receivers let senders have in flight: anything, or what ICTCP allows (its keys are \
         below)";
    slow_start: bool,
        "below `ssthresh` the window grows exponentially; `false`: always as in congestion \
         avoidance";
    ssthresh_of: Reduces,
        "a loss or a timeout halves the window in use (ns-2, Linux, htsim), or what is in flight \
         if that is less (RFC 5681, equation 4)";
    increase (keep increase): Increase,
        "the window grows with each acknowledgement (RFC 5681), or with what it acknowledges \
         (RFC 3465)";
    slow_start_limit (increase: Increase::PerByte { slow_start_limit } => *slow_start_limit):
        Limit,
        "segments per acknowledgement in slow start; a number is at most 1 in the slow start \
         that follows a timeout (RFC 3465)".range("above 0").only("`increase = \"per-byte\"`");
    grow_unused: bool, "the window grows even while it is not used up";
    dup_threshold (get |c| Some(c.rr.is_none().then_some(c.dup_threshold).into()),
                   set set_dup_threshold): Or<Rr, u32>,
        "duplicate acknowledgements that mean loss; `\"rr\"`: RR-TCP learns how many (its keys \
         are below)".range("at least 1");
    dsack: bool,
        "acknowledgements report duplicates (RFC 2883), in 8 bytes more; needs `recovery = \
         \"sack\"`";
    undo: Undo,
        "the window that a needless fast retransmit or timeout took is restored (RFC 4015) when \
         timestamps prove it needless (RFC 3522; needs `timestamps`), or duplicates reported do \
         (RFC 3708; needs `dsack`)";
    limited_transmit: bool, "the first two duplicates each release a new segment (RFC 3042)";
    impatient: bool,
        "in recovery only the first partial acknowledgement restarts the timer (RFC 6582)";
    conservative_exit: bool,
        "leaving recovery, the window is at most one segment above what is in flight";
    early_retransmit: bool,
        "with fewer than four segments outstanding and no new one to send, as many duplicates as \
         can come mean loss (RFC 5827)";
    idle_restart: IdleRestart,
        "how a connection sends again that was silent for longer than its timeout: as before; \
         from the initial window (RFC 5681, section 4.1); from one segment, counted from the last acknowledgement, not \
         from the last segment (ns-2); with half of its window for each timeout of silence, not below the initial one \
         (RFC 2861, Linux)";
    timestamps: bool,
        "every acknowledgement of new data is a round-trip sample (RFC 7323), not one segment at \
         a time; count the 12 bytes into `overhead` and `ack_bytes`";
    rto_min (rto.min): Dur, "least retransmission timeout"
            .range("above 0; with `rto_fixed` at least 100 ns");
    rto_max (rto.max): Dur, "greatest timeout, backed off or not"
            .range("at least `rto_min` and 100 ns");
    rto_fixed (rto.fixed): bool,
        "the timeout is `rto_min`, whatever is measured, and never backed off";
    rto_random (rto.random): f64,
        "x: a timeout t is drawn from t to (1 + x) t, after backoff and beyond `rto_max` too, \
         anew for each expiry (SIGCOMM 2009: 0.5)".range("at least 0");
    rto_initial (rto.initial): Dur, "timeout before the first sample".range("at least 100 ns");
    rto_tick (rto.tick): Dur, "granularity of the clock; `0` is an ideal one";
    rto_min_is_variance (rto.min_is_variance): bool,
        "`rto_min` bounds the term of the variance, not the sum (Linux)";
    rto_ack_ends_backoff (rto.ack_ends_backoff): bool,
        "any acknowledgement of new data ends the backoff (Linux)";
    rto_srtt_gain (rto.srtt_gain): f64,
        "weight of the newest sample in the smoothed round-trip time".range("above 0, at most 1");
    rto_rttvar_gain (rto.rttvar_gain): f64,
        "weight of the newest deviation in the mean deviation".range("above 0, at most 1");
    rto_first_rttvar (rto.first_rttvar): f64,
        "mean deviation after the first sample, as a share of it".range("at least 0");
    max_timeouts: u32,
        "a message fails after this many timeouts in a row".range("at least 1").was("timeouts_max");
    delayed_ack: Or<Off, Dur>,
        "longest delay of an acknowledgement; `\"off\"`: every segment is acknowledged";
    quick_acks: u32, "this many acknowledgements at the start of a connection are not delayed";
    max_messages: u32,
        "messages that a host may have in flight".range("at least 1").was("messages_max");
}}

// Whole classes, of which subflows have one.
keys! { PIAS: Pias {
    pias_thresholds (maybe thresholds): Vec<Bytes>,
        "PIAS: packets that begin beyond the first of these positions in their message go one \
         class below `class`, beyond the second two, and so on; at hosts a higher class goes \
         first. Acknowledgements have `class`".range("one to `class`, ascending").default("none");
}}

/// How PIAS divides messages.
#[derive(Default)]
struct Pias {
    thresholds: Option<Vec<Bytes>>,
}

impl Pias {
    /// Read them, if they are written.
    fn read(table: &mut Reader<'_>) -> Checked<Option<Demotion>> {
        let mut read = Self::default();
        table.keys(PIAS, &mut read, None)?;
        let Some(thresholds) = read.thresholds else { return Ok(None) };
        let bytes: Vec<u64> = thresholds.iter().map(|bytes| bytes.0).collect();
        let Some(demotion) = Demotion::new(&bytes) else {
            let message = "positions after which packets go one class lower each";
            let error = table.error("pias_thresholds", message, "not these");
            return Err(error.hint("one to seven sizes, ascending: [\"10KB\", \"1MB\"]"));
        };
        Ok(Some(demotion))
    }
}

keys! { RR: Config {
    rr_fa_ratio (rr: Some(p) => p.fa_ratio): f64,
        "the percentile of a new connection: the share of false fast retransmits to be avoided \
         (the publication's example)".range("0 to 1").any_preset().only("`dup_threshold = \"rr\"`");
    rr_step (rr: Some(p) => p.step): f64,
        "by how much a false fast retransmit raises it; a needless wait lowers it, as much more \
         as it costs more (own)"
            .range("above 0, at most 1").any_preset().only("`dup_threshold = \"rr\"`");
    rr_history (rr: Some(p) => p.history): u32,
        "reordering lengths that are remembered (own)"
            .range("at least 1").any_preset().only("`dup_threshold = \"rr\"`");
}}

keys! { ICTCP: Config {
    ictcp_idle (receive_window: ReceiveWindow::Ictcp(p) => p.idle): Dur,
        "a connection on which nothing has come for longer begins anew. The paper says \"long \
         time idle\" and no number".written().only(ONLY_ICTCP);
    ictcp_alpha (receive_window: ReceiveWindow::Ictcp(p) => p.alpha): f64,
        "share of the link that windows may grow into"
            .range("0 to 1").any_preset().only(ONLY_ICTCP).was("ictcp_capacity_share");
    ictcp_beta (receive_window: ReceiveWindow::Ictcp(p) => p.beta): f64,
        "weight of the old value in the measured throughput"
            .range("0 to 1").any_preset().only(ONLY_ICTCP).was("ictcp_smoothing");
    ictcp_gamma1 (receive_window: ReceiveWindow::Ictcp(p) => p.gamma1): f64,
        "a window grows while its throughput is short of what it allows by no more than this \
         share, or by no more than a segment"
            .range("0 to 1").any_preset().only(ONLY_ICTCP).was("ictcp_grow_below");
    ictcp_gamma2 (receive_window: ReceiveWindow::Ictcp(p) => p.gamma2): f64,
        "it shrinks by a segment when its throughput is short by at least this share ..."
            .range("0 to 1").any_preset().only(ONLY_ICTCP).was("ictcp_shrink_above");
    ictcp_shrink_after (receive_window: ReceiveWindow::Ictcp(p) => p.shrink_after): u32,
        "... in this many round trips in a row".range("at least 1").any_preset().only(ONLY_ICTCP);
    ictcp_min_window (receive_window: ReceiveWindow::Ictcp(p) => p.min_window): u32,
        "least window, and the first, segments"
            .range("at least 1").any_preset().only(ONLY_ICTCP).was("ictcp_least_window");
    ictcp_scarce_below (receive_window: ReceiveWindow::Ictcp(p) => p.scarce_below): f64,
        "windows above the average shrink while less than this share of the link is available"
            .range("0 to 1").any_preset().only(ONLY_ICTCP);
}}

/// What rules the keys are for.
const BIC: &str = "`rule = \"bic\"`";
const HTCP: &str = "`rule = \"htcp\"`";
const CUBIC: &str = "`rule = \"cubic\"`";
const D2TCP: &str = "`rule = \"d2tcp\"`";
const FAST: &str = "`rule = \"fast\"`";
const DCTCP: &str = "`rule = \"dctcp\"` or `\"d2tcp\"`";
/// And those of receivers.
const ONLY_ICTCP: &str = "`receive_window = \"ictcp\"`";

choices!(Recovery,
    "reno" => Recovery::Reno, "newreno" => Recovery::NewReno, "sack" => Recovery::Sack);
choices!(Undo, "none" => Undo::None, "eifel" => Undo::Eifel, "dsack" => Undo::Dsack);
choices!(Reduces, "window" => Reduces::Window, "flight" => Reduces::Flight);
choices!(IdleRestart,
    "never" => IdleRestart::Never, "initial-window" => IdleRestart::InitialWindow,
    "one-segment" => IdleRestart::OneSegment,
    "halving" => IdleRestart::Halving);

choices!(variants ReceiveWindow,
    "unlimited" => ReceiveWindow::Unlimited,
    "ictcp" => ReceiveWindow::Ictcp(ictcp::Params::paper(Dur::ZERO)));
choices!(variants Increase,
    "per-ack" => Increase::PerAck,
    "per-byte" => Increase::PerByte { slow_start_limit: f64::INFINITY });

/// What `rule` can be.
const NAMES: &[(&str, RuleConfig)] = &[
    ("newreno", RuleConfig::NewReno),
    ("bic", RuleConfig::Bic(bic::Params::LINUX)),
    ("htcp", RuleConfig::HTcp(htcp::Params::LINUX)),
    ("cubic", RuleConfig::Cubic(cubic::Params::RFC)),
    ("dctcp", RuleConfig::Dctcp(dctcp::Params::RFC)),
    ("d2tcp", RuleConfig::D2tcp(d2tcp::Params::PAPER)),
    (
        "fast",
        RuleConfig::Fast(fast::Params { alpha: 1.0, gamma: 1.0, slow_start_delay: Dur::ZERO }),
    ),
];

/// The numbers are those of its source, and keys of their own.
impl ScenarioValue for RuleConfig {
    fn form() -> Form {
        Form::of_words(NAMES.iter().map(|(name, _)| *name).collect())
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        read_word(value, NAMES)
    }
    fn show(&self) -> toml::Value {
        show_word(self, NAMES, same_variant)
    }
}

/// `dup_threshold = 3`, or `"rr"`: what RR-TCP begins with and never goes below.
fn set_dup_threshold(config: &mut Config, threshold: Or<Rr, u32>) {
    let threshold: Option<u32> = threshold.into();
    config.rr = threshold.is_none().then_some(rr::Params::PRESET);
    config.dup_threshold = threshold.unwrap_or(rr::LEAST);
}

/// Tables of keys that subflows have, too; what applies to one applies to the other.
pub(super) const OF_SUBFLOWS: [&[Key<Config>]; 3] = [SUBFLOW, RR, ICTCP];

/// The title of a column.
const ANY_PRESET: &str = "with a preset";

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    let base = Config::linux_datacenter(super::USUAL_PAYLOAD);
    let rules: Vec<_> = NAMES.iter().map(|(_, rule)| Config { rule: *rule, ..base }).collect();
    let receive_window = ReceiveWindow::Ictcp(ictcp::Params::paper(Dur::ZERO));
    let learning = Config { rr: Some(rr::Params::PRESET), receive_window, ..base };
    let mut all = sections("transport.tcp", KEYS, PRESETS);
    all.push(section_of_variants("transport.tcp.rule", RULES, ANY_PRESET, &rules));
    all.extend(sections("transport.tcp.connection", SUBFLOW, PRESETS));
    all.push(section("transport.tcp.pias", PIAS, &[], None));
    all.push(section_of_variants("transport.tcp.rr", RR, ANY_PRESET, &[learning]));
    all.push(section_of_variants("transport.tcp.ictcp", ICTCP, ANY_PRESET, &[learning]));
    all
}

/// `kind = "tcp"`.
pub(super) fn read(table: &mut Reader<'_>, _: &Around<'_>) -> Checked<Transport> {
    let mut begun = Begun::of(table, PRESETS, payload(table, "mss"))?;
    begun.keys(table, KEYS)?;
    begun.keys(table, RULES)?;
    for keys in OF_SUBFLOWS {
        begun.keys(table, keys)?;
    }
    begun.config.pias = Pias::read(table)?;
    let config = begun.finish(table)?;
    config.check().map_err(|why| refused(table, &why.to_string(), why.fields()))?;
    Ok(Transport {
        mtu: (config.mss + config.overhead).max(config.longest_ack()),
        classes: config.classes().rev().collect(),
        first_window: (config.initial_window * f64::from(config.mss)) as u64,
        window_grows: true,
        caps_windows: true,
        samples_rtt: true,
        timers: timers(&config),
        uses_deadlines: matches!(config.rule, RuleConfig::D2tcp(_)),
        signals: Signals {
            marks: marks(&config),
            classes: if config.pias.is_some() { Need::Needs } else { Need::Ignores },
            ..Signals::NONE
        },
        // No acknowledgements of single packets: they are cumulative.
        ..Transport::new(
            config.framing(),
            wire::tcp::PROTO,
            Box::new(move |_| made(tcp::Tcp::new(config))),
        )
    })
}

/// The bounds of its timeout: both are one where that is fixed.
pub(super) fn timers(config: &Config) -> Vec<(&'static str, Wait)> {
    let most =
        if config.rto.fixed { ("rto_min", config.rto.min) } else { ("rto_max", config.rto.max) };
    vec![(most.0, Wait::Time(most.1))]
}

/// What marks are to it.
pub(super) fn marks(config: &Config) -> Need {
    match config.rule {
        _ if !config.ecn => Need::Ignores,
        RuleConfig::Dctcp(_) | RuleConfig::D2tcp(_) => Need::Needs,
        _ => Need::Uses,
    }
}
