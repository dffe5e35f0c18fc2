//! `[transport] kind = "p4"`: a P4 program on the NIC of [`nic::nano`], and that NIC's sizes.

use endpoint::Framing;
use nic::nano::buffers::SizeClass;
use nic::nano::config::{Config, ConfigError};
use nic::nano::endpoint::{FRAMING, Nano, Runs};
use units::Dur;

use super::nano::{Timeouts, buffers, kept};
use super::{Around, Need, Signals, Transport, bytes, preset, refused};
use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::p4::Compiled;
use crate::reader::{Knob, Reader};
use crate::routing::Mode;

/// `kind = "p4"`.
pub(crate) fn p4(table: &mut Reader<'_>, around: &Around<'_>) -> Result<Transport, Diagnostic> {
    let compiled = Compiled::read(table, around.dir)?;
    let protocols: Protocols = table.need("protocol")?;
    let parts: Vec<String> = protocols.0.iter().filter_map(|(name, _)| name.clone()).collect();
    let config = config(table, around.mode, &protocols)?;
    let overhead = bytes(table, "overhead", Some(FRAMING.overhead), 64)?;
    let framing = Framing { overhead, ..FRAMING };
    let telemetry = table.or("telemetry", false)?;
    let runs: Runs = compiled.first(table)?;
    let tried = Nano::new(&compiled.program, runs, config.clone()).and_then(Nano::try_egress);
    tried.map_err(|why| {
        let error = table.error("program", why.to_string(), "this program");
        error.hint("p4/include/nano.p4 declares what the NIC has")
    })?;
    Ok(Transport {
        mtu: framing.payload + framing.overhead,
        parts,
        // Types of service count from zero, classes the other way.
        classes: (8_u8.saturating_sub(config.priorities)..8).collect(),
        first_window: u64::from(config.rtt_packets) * u64::from(FRAMING.payload),
        sprays: true,
        longest: u64::from(config.longest()),
        // A program may react to all of them; what it needs is not known.
        signals: Signals {
            marks: Need::Uses,
            trims: Need::Uses,
            classes: Need::Uses,
            message_priorities: false,
        },
        kept: kept(table, true),
        telemetry,
        ..Transport::new(
            framing,
            config.protocols.first().copied().unwrap_or(0),
            Box::new(move || {
                let runs = compiled.runs()?;
                Some(Box::new(Nano::new(&compiled.program, runs, config.clone()).ok()?))
            }),
        )
    })
}

/// The sizes and times of the NIC.
fn config(table: &mut Reader<'_>, mode: Mode, protocols: &Protocols) -> Result<Config, Diagnostic> {
    let p = preset(table, &[("firesim", Config::prototype(9, Dur::from_us(7)))])?;
    let p = p.as_ref();
    let config = Config {
        protocols: protocols.0.iter().map(|(_, number)| *number).collect(),
        priorities: table.need("priorities")?,
        rtt_packets: table.given("rtt_packets", p.map(|p| p.rtt_packets))?,
        tx_messages: table.given("tx_messages", p.map(|p| p.tx_messages))?,
        rx_messages: table.given("rx_messages", p.map(|p| p.rx_messages))?,
        classes: size_classes(table, p)?,
        timeout: table.given("timeout", p.map(|p| p.timeout))?,
        timeouts_max: table.given("timeouts_max", p.map(|p| Timeouts(p.timeouts_max)))?.0,
        ingress_timeouts: table.given("ingress_timeouts", p.map(|p| p.ingress_timeouts))?,
        probe: table.given("probe", p.map(|p| p.probe))?,
        pull_cycles: table.given("pull_cycles", p.map(|p| p.pull_cycles))?,
        pulls_max: table.given("pulls_max", p.map(|p| p.pulls_max))?,
        remember: table.given("remember", p.map(|p| p.remember))?,
        ingress_cycles: table.given("ingress_cycles", p.map(|p| p.ingress_cycles))?,
        egress_cycles: table.given("egress_cycles", p.map(|p| p.egress_cycles))?,
        spray: mode.needs_spraying(),
    };
    config.check().map_err(|why| refused(table, &why.to_string(), &keys_of(&why)))?;
    Ok(config)
}

/// The keys whose values are refused.
fn keys_of(why: &ConfigError) -> Vec<&'static str> {
    match *why {
        ConfigError::Zero(key) | ConfigError::Ids(key, _) => vec![key],
        ConfigError::Priorities(_) => vec!["priorities"],
        ConfigError::NoClass | ConfigError::Classes(_) => vec!["buffer"],
        ConfigError::TooLong(_) | ConfigError::Memory(_) => vec!["buffer"],
    }
}

fn size_classes(
    table: &mut Reader<'_>,
    preset: Option<&Config>,
) -> Result<Vec<SizeClass>, Diagnostic> {
    // At most what the 16 bits of a message's length can say.
    let preset = preset.map(|p| p.classes.iter().map(|c| (c.bytes as u16, c.buffers)).collect());
    let read = buffers(table, preset)?;
    let class = |(bytes, buffers)| SizeClass { bytes: u32::from(bytes), buffers };
    Ok(read.into_iter().map(class).collect())
}

/// IP protocols: one, or several with names by which `[[traffic]]` chooses.
struct Protocols(Vec<(Option<String>, u8)>);

impl Knob for Protocols {
    const EXAMPLE: &'static str = "154` or `{ ndp = 155, homa = 154 }";
    fn read(value: &Value) -> Result<Self, String> {
        let Value::Table(table) = value else {
            return u8::read(value).map(|number| Self(vec![(None, number)]));
        };
        let named = table.iter().map(|(name, (_, node))| {
            let number = u8::read(&node.value).map_err(|why| format!("`{name}`: {why}"))?;
            Ok((Some(name.clone()), number))
        });
        let named: Vec<_> = named.collect::<Result<_, String>>()?;
        if named.is_empty() { Err("no protocol is named".to_owned()) } else { Ok(Self(named)) }
    }
    fn show(&self) -> toml::Value {
        let named = |(name, number): &(Option<String>, u8)| Some((name.clone()?, number.show()));
        match self.0.as_slice() {
            [(None, number)] => number.show(),
            several => toml::Value::Table(several.iter().filter_map(named).collect()),
        }
    }
}
