//! `[transport] kind = "phost"`: the keys of [`transports::phost::Config`].

use transports::phost::{self, Classes, FreeTokens};

use super::{Around, Need, Signals, Transport, bytes, preset, refused};
use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::reader::{Knob, Reader};

/// `kind = "phost"`.
pub(crate) fn phost(table: &mut Reader<'_>, around: &Around<'_>) -> Result<Transport, Diagnostic> {
    let payload = bytes(table, "payload", None, 1)?;
    let known = [
        ("ndp-paper", phost::Config::ndp_paper(payload)),
        ("authors", phost::Config::authors(payload)),
    ];
    let p = preset(table, &known)?;
    let p = p.as_ref();
    let classes = p.map(|p| p.classes);
    let config = phost::Config {
        payload,
        header: bytes(table, "header", p.map(|p| p.header), 40)?,
        control: bytes(table, "control", p.map(|p| p.control), 40)?,
        paths: around.mode.sender,
        free_tokens: table.given("free_tokens", p.map(|p| p.free_tokens))?,
        window: table.given("window", p.map(|p| p.window))?,
        token_expiry: table.given("token_expiry", p.map(|p| p.token_expiry))?,
        window_timeout: table.given("window_timeout", p.map(|p| p.window_timeout))?,
        resend_timeout: table.given("resend_timeout", p.map(|p| p.resend_timeout))?,
        request_timeout: table.given("request_timeout", p.map(|p| p.request_timeout))?,
        short_packets: table.given("short_packets", p.map(|p| p.short_packets))?,
        classes: Classes {
            control: table.given("class_control", classes.map(|c| c.control))?,
            short: table.given("class_short", classes.map(|c| c.short))?,
            long: table.given("class_long", classes.map(|c| c.long))?,
        },
        give_up: table.given("give_up", p.map(|p| p.give_up))?,
        time_wait: table.given("time_wait", p.map(|p| p.time_wait))?,
        linger: table.given("linger", p.map(|p| p.linger))?,
    };
    config.check().map_err(|why| refused(table, &why.to_string(), &keys_of(&why)))?;
    Ok(Transport {
        mtu: (config.payload + config.header).max(config.control),
        classes: vec![config.classes.control, config.classes.short, config.classes.long],
        // It has so many packets under way, from the first round trip or the second on.
        first_window: u64::from(config.window) * u64::from(config.payload),
        sprays: true,
        signals: Signals { classes: Need::Needs, ..Signals::NONE },
        life_max: Some(config.life_max()),
        // No acknowledgements of single packets: only whole messages are.
        ..Transport::new(
            config.framing(),
            wire::phost::PROTO,
            Box::new(move || Some(Box::new(phost::PHost::new(config).ok()?))),
        )
    })
}

/// The keys whose values are refused.
fn keys_of(why: &phost::ConfigError) -> Vec<&'static str> {
    match *why {
        phost::ConfigError::Zero(key)
        | phost::ConfigError::Time(key)
        | phost::ConfigError::Class(key) => vec![key],
        phost::ConfigError::PacketTooLarge { .. } => vec!["payload", "header"],
        phost::ConfigError::Order { low, high } => vec![low, high],
    }
}

impl Knob for FreeTokens {
    const EXAMPLE: &'static str = "\"bdp\"` or `8";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "bdp" => Ok(Self::Bdp),
            _ => u32::read(value).map(Self::UpTo),
        }
    }
    fn show(&self) -> toml::Value {
        match self {
            Self::Bdp => toml::Value::String("bdp".into()),
            Self::UpTo(n) => n.show(),
        }
    }
}
