//! `[transport] kind = "ndp"`: the keys of [`transports::ndp::Config`].

use std::sync::Arc;

use endpoint::Packet;
use transports::ndp;
use units::{Dur, HostId, MsgId, MsgKey};
use wire::ndp::{Header, Type};

use super::{Around, Need, Signals, Transport, bytes, named, preset, refused};
use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::reader::{Knob, Reader};

/// `kind = "ndp"`.
pub(crate) fn ndp(table: &mut Reader<'_>, around: &Around<'_>) -> Result<Transport, Diagnostic> {
    let payload = bytes(table, "payload", None, 1)?;
    let p = preset(table, &[("paper", ndp::Config::paper(payload))])?;
    let p = p.as_ref();
    let config = ndp::Config {
        payload,
        header: bytes(table, "header", p.map(|p| p.header), 40)?,
        control: bytes(table, "control", p.map(|p| p.control), 40)?,
        // Changes the science, and the sources use anything from 1 to 50: never from a preset.
        initial_window: table.need("initial_window")?,
        paths: around.mode.sender,
        scoreboard: named(table, "scoreboard", SCOREBOARDS, p.map(|p| p.scoreboard))?,
        rto_initial: table.given("rto_initial", p.map(|p| p.rto_initial))?,
        rto_min: table.given("rto_min", p.map(|p| p.rto_min))?,
        rto_max: table.given("rto_max", p.map(|p| p.rto_max))?,
        rto_jitter_percent: table.given("rto_jitter_percent", p.map(|p| p.rto_jitter_percent))?,
        stall_timeout: table.given("stall_timeout", p.map(|p| p.stall_timeout))?,
        give_up: table.given("give_up", p.map(|p| p.give_up))?,
        bounce_history: table.given("bounce_history", p.map(|p| p.bounce_history))?,
        pull_interval: table.given("pull_interval", p.map(|p| PullInterval(p.pull_interval)))?.0,
        discipline: named(table, "discipline", DISCIPLINES, p.map(|p| p.discipline))?,
        preferred: preferred(table, around.hosts)?,
        pull_on_duplicate: table.given("pull_on_duplicate", p.map(|p| p.pull_on_duplicate))?,
        listen: table.given("listen", p.map(|p| p.listen))?,
        msl: table.given("msl", p.map(|p| p.msl))?,
        time_wait: table.given("time_wait", p.map(|p| p.time_wait))?,
        time_wait_entries: table.given("time_wait_entries", p.map(|p| p.time_wait_entries))?,
        linger: table.given("linger", p.map(|p| p.linger))?,
        messages: table.given("messages", p.map(|p| p.messages))?,
        control_queue: table.given("control_queue", p.map(|p| p.control_queue))?,
    };
    config.check().map_err(|why| refused(table, &why.to_string(), &keys_of(&why)))?;
    let config = Arc::new(config);
    Ok(Transport {
        mtu: (config.payload + config.header).max(config.control),
        classes: vec![0],
        first_window: u64::from(config.initial_window) * u64::from(config.payload),
        sprays: true,
        permutes: true,
        life_max: config.life_max(),
        signals: Signals {
            trims: Need::Needs,
            message_priorities: config.discipline == ndp::Discipline::Prio,
            ..Signals::NONE
        },
        acknowledges: Some(acknowledges),
        ..Transport::new(
            config.framing(),
            wire::ndp::PROTOCOL,
            Box::new(move || Some(Box::new(ndp::Ndp::new(Arc::clone(&config)).ok()?))),
        )
    })
}

/// Whether `pkt` is an ACK; a NACK names its packet, too.
fn acknowledges(pkt: &Packet) -> bool {
    let header = Header::new(pkt.header());
    header.is_ok_and(|header| header.packet_type() == Ok(Type::Ack))
}

/// The keys whose values are refused.
fn keys_of(why: &ndp::ConfigError) -> Vec<&'static str> {
    match *why {
        ndp::ConfigError::Zero(key) => vec![key],
        ndp::ConfigError::PacketTooLarge { .. } => vec!["payload", "header"],
        ndp::ConfigError::Order { low, high } => vec![low, high],
        ndp::ConfigError::TimeWait { .. } => vec!["time_wait", "give_up", "msl", "rto_max"],
        ndp::ConfigError::Jitter(_) => vec!["rto_jitter_percent"],
        ndp::ConfigError::History(_) => vec!["bounce_history"],
    }
}

/// The message that is always pulled first, if one is named.
fn preferred(table: &mut Reader<'_>, hosts: u32) -> Result<Option<MsgKey>, Diagnostic> {
    let Some(src) = table.maybe("preferred_host")? else { return Ok(None) };
    table.within("preferred_host", src, 0..=hosts - 1)?;
    let id = table.need("preferred_message")?;
    Ok(Some(MsgKey { src: HostId(src), id: MsgId(id) }))
}

/// The time between pulls, or "wire": the wire time of a full packet on the host's link.
struct PullInterval(Option<Dur>);

impl Knob for PullInterval {
    const EXAMPLE: &'static str = "\"7200ns\"` or `\"wire\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "wire" => Ok(Self(None)),
            _ => Dur::read(value).map(|d| Self(Some(d))),
        }
    }
    fn show(&self) -> toml::Value {
        self.0.map_or_else(|| toml::Value::String("wire".into()), |d| d.show())
    }
}

const DISCIPLINES: &[(&str, ndp::Discipline)] =
    &[("fair", ndp::Discipline::Fair), ("prio", ndp::Discipline::Prio)];

const SCOREBOARDS: &[(&str, ndp::ScoreboardRule)] = &[
    ("decaying", ndp::ScoreboardRule::Decaying),
    ("literal", ndp::ScoreboardRule::Literal),
    ("off", ndp::ScoreboardRule::Off),
];
