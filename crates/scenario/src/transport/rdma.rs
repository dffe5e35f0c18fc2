//! `[transport] kind = "rdma"`: the keys of [`transports::rdma::Config`], and those of its rule.

mod rules;

use transports::rdma::{
    self, Config, Initial, NicPacing, Operation, Recovery, Segment, Speed, Subtract, Timestamps,
};
use units::{Dur, Rate};

use self::rules::{RULES, Rule};
use super::{Around, Begun, Need, Signals, Transport, Wait, made, payload, refused, sections};
use crate::diagnostic::Checked;
use crate::document::Value;
use crate::key::{Section, keys};
use crate::reader::Reader;
use crate::value::{
    Form, Or, PART_MAX, Refused, ScenarioValue, Size16, Size32, Start, choices, word_or,
};

keys! { KEYS: Config {
    payload: Size16 [Size16(1)..=PART_MAX], "payload of a full packet".written();
    overhead: Size16 [Size16(40)..=PART_MAX],
        "bytes on the wire beside the payload; with `rule = \"hpcc\"` 42 B of telemetry are \
         among them";
    ack_bytes: Size16 [Size16(40)..=PART_MAX],
        "bytes on the wire of acknowledgements and other control packets";
    class (get |c| Some(c.class), set set_class): u8, "traffic class of data".range("0 to 7");
    ack_class: u8,
        "traffic class of control packets. The same as `class`: no priority for acknowledgements"
            .range("0 to 7");
    segment: Segment,
        "what is acknowledged: each packet, or a burst of as many full packets as have this much \
         payload".range("up to 32768 payloads");
    nic_pacing: NicPacing,
        "packets of a segment leave at this rate; `\"own\"`: at that of their queue pair, \
         without bursts, which needs `count_nic_wait = false`. With `read` a rate also spaces \
         the packets that a host answers with, each request's by itself".range("above 0");
    recompute_gap: bool, "a new rate changes the gap that has begun, too, not only the next";
    count_nic_wait: bool,
        "round-trip times include what a segment waited for others in its host's interface";
    subtract: Subtract,
        "what round-trip times leave out of a segment's own time on the first link: all, or its \
         last packet's (the simulator of \"ECN or Delay\"). Without `count_nic_wait`: all";
    timestamps: Timestamps,
        "who takes the time of an acknowledgement for round-trip times: the interface when it \
         arrives, or the host when it handles it";
    rtt_noise (clock.noise): Dur, "each such time is later by one drawn between zero and this";
    clock_drift (clock.drift_ppb): u32,
        "the clock of an interface differs from its host's by at most this many parts in 10^9, \
         drawn for each host. With `timestamps = \"nic\"`".range("0 to 1000000");
    clock_calibration (clock.calibration): Or<Start, Dur>,
        "how often hosts compare both clocks, to translate one into the other. `\"start\"`: only \
         then, and drift adds up".range("above 0");
    clock_reading (clock.reading): Dur,
        "in such a comparison the host reads its own clock later by a time drawn between zero \
         and this";
    feedback_jitter: Dur,
        "receivers hold each acknowledgement and congestion notification for a time drawn \
         between zero and this; they may overtake one another. With `operation = \"write\"`";
    operation: Operation,
        "`write`: the host that has the data paces it. `read`: it offers a message, and the \
         other host asks for its segments, paces these requests, and has the rule. It needs \
         `go-back-n`";
    recovery (keep recovery): Recovery,
        "`go-back-n`: receivers take packets in order and name the first that is missing; all \
         from there on is sent again. `selective`: they take what comes; what is missing is sent \
         again. It needs `segment = \"packet\"`";
    nack_interval (recovery: Recovery::GoBackN { nack_interval } => *nack_interval): Dur,
        "the same missing packet is named again after this long".only("`recovery = \"go-back-n\"`");
    reordering (recovery: Recovery::Selective { reordering } => *reordering): u32,
        "a packet is lost if one sent this many later has been acknowledged"
            .range("1 to 63").only("`recovery = \"selective\"`");
    rto_min (rto.min): Dur,
        "least retransmission timeout (RFC 6298)".range("above 0, at most `rto_max`");
    rto_initial (rto.initial): Dur, "first timeout (own)".range("at least 100 ns");
    rto_max (rto.max): Dur, "greatest timeout (own)".range("at least 100 ns");
    max_timeouts: u32,
        "a message fails after this many timeouts without progress"
            .range("at least 1").was("timeouts_max");
    ecn: bool, "packets may be marked";
}}

choices!(Operation, "write" => Operation::Write, "read" => Operation::Read);
choices!(Timestamps, "nic" => Timestamps::Nic, "host" => Timestamps::Host);
choices!(Subtract, "segment" => Subtract::Segment, "packet" => Subtract::Packet);

choices!(variants Recovery,
    "go-back-n" => Recovery::GoBackN { nack_interval: Dur::ZERO },
    "selective" => Recovery::Selective { reordering: 1 });
word_or!(Initial: Speed, "share" => Initial::Share; Initial::At);
word_or!(Segment: Size32, "packet" => Segment::Packet; Segment::Bytes);
word_or!(NicPacing: Rate, "line" => NicPacing::Line, "own" => NicPacing::Own; NicPacing::At);

/// Where acknowledgements are in the class of data, as in a preset, they follow it.
fn set_class(config: &mut Config, class: u8) {
    if config.ack_class == config.class {
        config.ack_class = class;
    }
    config.class = class;
}

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    let mut all = sections("transport.rdma", KEYS, rules::ROCE);
    for Rule { section, keys, presets, .. } in RULES {
        if !keys.is_empty() {
            all.extend(sections(section, keys, presets));
        }
    }
    all
}

/// `kind = "rdma"`.
pub(super) fn read(table: &mut Reader<'_>, _: &Around<'_>) -> Checked<Transport> {
    let rule = table.choose("rule", RULES, |rule| rule.name)?;
    let mut begun = Begun::of(table, rule.presets, payload(table, "payload"))?;
    (rule.prepare)(table, &mut begun.config);
    begun.keys(table, rule.keys)?;
    begun.keys(table, KEYS)?;
    for other in RULES.iter().filter(|other| other.name != rule.name) {
        table.without(other.keys, other.only);
    }
    let config = begun.finish(table)?;
    config.check().map_err(|why| refused(table, &why.to_string(), why.fields()))?;
    Ok(Transport {
        mtu: (config.payload + config.overhead).max(config.longest_ack()),
        classes: vec![config.class, config.ack_class],
        first_window: u64::MAX, // rates, not windows
        samples_rtt: true,
        timers: vec![("rto_max", Wait::Time(config.rto.max))],
        telemetry: config.telemetry,
        signals: match config.rule {
            rdma::RuleConfig::Dcqcn(_) => Signals { marks: Need::Needs, ..Signals::NONE },
            _ => Signals::NONE,
        },
        // No acknowledgements of single packets: they are cumulative.
        ..Transport::new(
            config.framing(),
            wire::roce::PROTO,
            Box::new(move |_| made(rdma::Rdma::new(config))),
        )
    })
}

/// A rate, or a share of the line rate.
impl ScenarioValue for Speed {
    fn form() -> Form {
        Form { json: vec!["string", "number"], ..Form::new("speed", "\"10Mbps\"` or `0.001", "") }
    }
    fn read(value: &Value) -> Result<Self, Refused> {
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
