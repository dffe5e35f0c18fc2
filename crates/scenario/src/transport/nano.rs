//! `[transport] kind = "ndp-nano"`, `"homa-nano"` and `"homatr-nano"`: the keys of
//! [`transports::nano::Config`].

use std::sync::Arc;

use transports::nano::{Config, ConfigError, Nano, Program, SizeClass};
use units::Bytes;

use super::{Around, Need, Signals, Transport, preset, refused};
use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::reader::{Knob, Reader};

/// `kind = "ndp-nano"`.
pub(crate) fn ndp_nano(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    nano(table, Program::Ndp)
}

/// `kind = "homa-nano"`.
pub(crate) fn homa_nano(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    nano(table, Program::Homa)
}

/// `kind = "homatr-nano"`.
pub(crate) fn homatr_nano(table: &mut Reader<'_>, _: &Around<'_>) -> Result<Transport, Diagnostic> {
    nano(table, Program::HomaTr)
}

fn nano(table: &mut Reader<'_>, program: Program) -> Result<Transport, Diagnostic> {
    let p = preset(table, &[("firesim", Config::firesim(program))])?;
    let p = p.as_ref();
    let usual = Config::firesim(program);
    let config = Config {
        program,
        rtt_packets: table.given("rtt_packets", p.map(|p| p.rtt_packets))?,
        tx_messages: table.given("tx_messages", p.map(|p| p.tx_messages))?,
        rx_messages: table.given("rx_messages", p.map(|p| p.rx_messages))?,
        buffers: size_classes(table, p)?,
        timeout: table.given("timeout", p.map(|p| p.timeout))?,
        timeouts_max: table.given("timeouts_max", p.map(|p| Timeouts(p.timeouts_max)))?.0,
        ingress_timeouts: table.given("ingress_timeouts", p.map(|p| p.ingress_timeouts))?,
        pull_cycles: match program {
            Program::Ndp => table.given("pull_cycles", p.map(|p| p.pull_cycles))?,
            Program::Homa | Program::HomaTr => usual.pull_cycles,
        },
        overcommitment: match program {
            Program::Ndp => usual.overcommitment,
            _ => table.given("overcommitment", p.map(|p| p.overcommitment))?,
        },
        strict_paper: match program {
            Program::Ndp => usual.strict_paper,
            _ => table.given("strict_paper", p.map(|p| p.strict_paper))?,
        },
        probe: table.given("probe", p.map(|p| p.probe))?,
        count_chops: match program {
            Program::HomaTr => table.given("count_chops", p.map(|p| p.count_chops))?,
            _ => usual.count_chops,
        },
        ingress_cycles: table.given("ingress_cycles", p.map(|p| p.ingress_cycles))?,
        egress_cycles: table.given("egress_cycles", p.map(|p| p.egress_cycles))?,
    };
    config.check().map_err(|why| refused(table, &why.to_string(), &keys_of(&why)))?;
    let kept = kept(table, program == Program::Ndp);
    Ok(Transport { kept, ..transport(config) })
}

/// The first of the keys whose published value is for links of [`super::PUBLISHED_FOR`] and is kept.
/// `pulls`: pacing PULLs is the NIC's, not the program's.
pub(super) fn kept(table: &Reader<'_>, pulls: bool) -> Option<&'static str> {
    let keys = ["pull_cycles", "timeout"].into_iter().skip(usize::from(!pulls));
    table.has("preset").then(|| keys.into_iter().find(|key| !table.has(key))).flatten()
}

fn transport(config: Config) -> Transport {
    let framing = config.framing();
    let config = Arc::new(config);
    Transport {
        mtu: framing.payload + framing.overhead,
        classes: config.classes(),
        first_window: u64::from(config.rtt_packets) * u64::from(framing.payload),
        signals: match config.program {
            Program::Homa => Signals { classes: Need::Needs, ..Signals::NONE },
            Program::Ndp => Signals { trims: Need::Needs, ..Signals::NONE },
            Program::HomaTr => {
                Signals { trims: Need::Needs, classes: Need::Needs, ..Signals::NONE }
            }
        },
        longest: config.buffers.iter().map(|class| u64::from(class.bytes)).max().unwrap_or(0),
        ..Transport::new(
            framing,
            config.program.protocol().number(),
            Box::new(move || Some(Box::new(Nano::new(Arc::clone(&config)).ok()?))),
        )
    }
}

fn size_classes(
    table: &mut Reader<'_>,
    preset: Option<&Config>,
) -> Result<Vec<SizeClass>, Diagnostic> {
    let preset = preset.map(|p| p.buffers.iter().map(|c| (c.bytes, c.count)).collect());
    let read = buffers(table, preset)?;
    Ok(read.into_iter().map(|(bytes, count)| SizeClass { bytes, count }).collect())
}

/// `[[transport.buffer]]`: the size classes of a NIC, bytes and number of each.
pub(super) fn buffers(
    table: &mut Reader<'_>,
    preset: Option<Vec<(u16, u16)>>,
) -> Result<Vec<(u16, u16)>, Diagnostic> {
    let mut tables = table.tables("buffer")?;
    if tables.is_empty() {
        let Some(preset) = preset else {
            return Err(table.missing("buffer", "add [[transport.buffer]] with `size` and `count`"));
        };
        table.keep_list("buffer", preset.iter().copied().map(show_class).collect());
        return Ok(preset);
    }
    let mut classes = Vec::new();
    for table in &mut tables {
        let size: Bytes = table.need("size")?;
        // At most 65 472, so it fits.
        let bytes = table.within("size", size, Bytes(64)..=Bytes(65_472))?.0 as u16;
        classes.push((bytes, table.need("count")?));
    }
    table.finish_tables("buffer", tables)?;
    Ok(classes)
}

fn show_class((bytes, count): (u16, u16)) -> toml::Table {
    let size = Bytes(u64::from(bytes)).show();
    toml::Table::from_iter([("size".to_owned(), size), ("count".to_owned(), count.show())])
}

/// The keys whose values are refused.
fn keys_of(why: &ConfigError) -> Vec<&'static str> {
    match *why {
        ConfigError::Zero(key) | ConfigError::TooLarge { name: key, .. } => vec![key],
        ConfigError::Buffers => vec!["buffer"],
        ConfigError::NoPowerOfTwo => vec!["tx_messages"],
    }
}

/// A number of timeouts, or "unlimited".
pub(super) struct Timeouts(pub(super) Option<u32>);

impl Knob for Timeouts {
    const EXAMPLE: &'static str = "\"unlimited\"` or `5";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "unlimited" => Ok(Self(None)),
            _ => u32::read(value).map(|n| Self(Some(n))),
        }
    }
    fn show(&self) -> toml::Value {
        match self.0 {
            None => toml::Value::String("unlimited".into()),
            Some(n) => n.show(),
        }
    }
}
