//! `[transport] kind = "ndp"`: the keys of [`transports::ndp::Config`].

use std::sync::Arc;

use endpoint::Packet;
use transports::ndp::{self, Config, Discipline, ScoreboardRule};
use units::{HostId, MsgId, MsgKey};
use wire::ndp::{Header, Type};

use super::{
    Around, Begun, Need, Presets, Signals, Transport, Wait, made, payload, refused, sections,
};
use crate::diagnostic::Checked;
use crate::document::Value;
use crate::key::{Section, keys};
use crate::reader::Reader;
use crate::value::{Form, Or, PART_MAX, Refused, ScenarioValue, Size16, Wire, choices};

const PRESETS: &Presets<Config> = &[("paper", Config::paper)];

keys! { KEYS: Config {
    payload: Size16 [Size16(1)..=PART_MAX], "payload of a full data packet".written();
    // Changes the science, and the sources use anything from 1 to 50: never from a preset.
    initial_window: u32,
        "packets sent at once, unscheduled, when a message starts (paper: 30)"
            .range("at least 1").written();
    header: Size16 [Size16(40)..=PART_MAX], "bytes on the wire beside the payload of a data packet";
    control: Size16 [Size16(40)..=PART_MAX], "bytes on the wire of an ACK, NACK or PULL";
    scoreboard: ScoreboardRule,
        "which paths sit out rounds of `mode = \"permute\"` because they do much worse than the \
         others; without effect in other modes. See below";
    rto_initial: units::Dur,
        "retransmission timeout before the first round-trip sample".range("at least 100 ns");
    rto_min: units::Dur, "smallest timeout, before jitter".range("above 0");
    rto_max: units::Dur, "largest timeout, before jitter"
        .range("at least `rto_min` and 100 ns");
    rto_jitter_percent: u8,
        "a timeout clamped to `rto_min` is spread uniformly by this much either way"
            .range("0 to 99");
    stall_timeout: units::Dur,
        "a sender that waits for pulls and hears nothing for this long sends one packet unasked \
         (own)".range("above 0");
    abort_after: units::Dur,
        "a message unanswered for this long fails (own)".range("above 0").was("give_up");
    bounce_history: u8, "how many answers the rule for bounced headers looks back".range("1 to 32");
    pull_interval: Or<Wire, units::Dur>,
        "least time between two pulls; `\"wire\"`: the wire time of a full packet on the host's \
         link".range("above 0");
    discipline: Discipline,
        "who is pulled next: round robin over messages, or strictly by `priority`";
    priority_message (get |c| c.priority_message, set |c, v: MsgKey| c.priority_message = Some(v)):
        MsgKey,
        "one message (its sender, and its number there, from 0) whose pulls go before all \
         others: `{ host = 3, message = 0 }`"
            .range("a host of the fabric; any").default("none").was("preferred_host");
    pull_on_duplicate: bool, "a data packet that came before asks for a pull again";
    max_rx_messages: u32,
        "messages in reception at once; data for more is ignored".range("at least 1").was("listen");
    msl: units::Dur,
        "how long a sender refuses to use the id of a finished message again"
            .range("see `time_wait`");
    time_wait: units::Dur,
        "how long a receiver remembers a finished message (own). With twice the longest time \
         that a packet can be in flight in this fabric (all queues on its way full) for `msl`, \
         it must suffice as well, or the scenario is refused: the message could be delivered \
         twice".range("at least `abort_after`, the longest timeout and twice `msl` together");
    time_wait_entries: u32,
        "how many messages a receiver knows, finished or not; data of others is ignored (own). A \
         sender remembers as many finished ones".range("at least 1");
    rx_idle_timeout: units::Dur,
        "a receiver gives up a message silent, or pulled for in vain, for this long (own)"
            .range("at least `abort_after`").was("linger");
    max_tx_messages: u32,
        "messages that a sender takes at once (own)".range("at least 1").was("messages");
    control_queue: u32,
        "control packets that may wait for the host's link; more are lost".range("at least 1");
}}

choices!(ScoreboardRule,
    "decaying" => ScoreboardRule::Decaying,
    "literal" => ScoreboardRule::Literal,
    "off" => ScoreboardRule::Off);
choices!(Discipline, "fair" => Discipline::Fair, "prio" => Discipline::Prio);

impl ScenarioValue for MsgKey {
    fn form() -> Form {
        Form::new("table", "{ host = 3, message = 0 }", "object")
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        let wrong = || format!("`host` and `message` are wanted, not {}", value.kind());
        let Value::Table(table) = value else { return Err(wrong().into()) };
        let (Some((_, host)), Some((_, message)), 2) =
            (table.get("host"), table.get("message"), table.len())
        else {
            return Err("`host` and `message` are wanted, and nothing else".to_owned().into());
        };
        let (host, message) = (u32::read(&host.value)?, u64::read(&message.value)?);
        Ok(Self { src: HostId(host), id: MsgId(message) })
    }
    fn show(&self) -> toml::Value {
        let (host, message) = (self.src.0.show(), self.id.0.show());
        toml::Value::Table(
            [("host".to_owned(), host), ("message".to_owned(), message)].into_iter().collect(),
        )
    }
}

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    sections("transport.ndp", KEYS, PRESETS)
}

/// `kind = "ndp"`.
pub(super) fn read(table: &mut Reader<'_>, around: &Around<'_>) -> Checked<Transport> {
    let mut begun = Begun::of(table, PRESETS, payload(table, "payload"))?;
    begun.config.paths = around.mode.sender;
    let config = begun.read(table, KEYS)?;
    if let Some(message) = config.priority_message.filter(|message| message.src.0 >= around.hosts) {
        let error = format!("`priority_message` is of host {}", message.src.0);
        let error = table.error("priority_message", error, "no such host");
        return Err(error.hint(format!("from 0 to {}", around.hosts - 1)));
    }
    config.check().map_err(|why| refused(table, &why.to_string(), why.fields()))?;
    let config = Arc::new(config);
    Ok(Transport {
        mtu: (config.payload + config.header).max(config.control),
        classes: vec![0],
        first_window: u64::from(config.initial_window) * u64::from(config.payload),
        timers: vec![("rto_max", Wait::Time(config.rto_max))],
        sprays: true,
        permutes: true,
        life_max: config.life_max(),
        signals: Signals {
            trims: Need::Needs,
            message_priorities: config.discipline == Discipline::Prio,
            ..Signals::NONE
        },
        acknowledges: Some(acknowledges),
        ..Transport::new(
            config.framing(),
            wire::ndp::PROTOCOL,
            Box::new(move |_| made(ndp::Ndp::new(Arc::clone(&config)))),
        )
    })
}

/// Whether `pkt` is an ACK; a NACK names its packet, too.
fn acknowledges(pkt: &Packet) -> bool {
    let header = Header::new(pkt.header());
    header.is_ok_and(|header| header.packet_type() == Ok(Type::Ack))
}
