//! `[transport] kind = "p4"`: a P4 program on the NIC of [`nic::nano`], and that NIC's sizes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use nic::interp::Machine;
use nic::ir;
use nic::nano::buffers::SizeClass;
use nic::nano::config::{Config, ConfigError};
use nic::nano::endpoint::{FRAMING, Nano, Runs};
use units::Dur;

use super::nano::{Timeouts, buffers};
use super::{Around, Transport, preset, refused};
use crate::diagnostic::{Diagnostic, Source};
use crate::document::Value;
use crate::files;
use crate::reader::{Knob, Reader};
use crate::routing::Mode;

/// Who runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    /// The reference.
    Interpreter,
    /// Generated code, for the programs of `p4/` with the constants that `programs` has.
    Rust,
}

const BACKENDS: [(&str, Backend); 2] =
    [("interpreter", Backend::Interpreter), ("rust", Backend::Rust)];

/// What runs `program` on one host; `None` if there is no generated code of it.
fn runs(backend: Backend, program: &Arc<ir::Program>) -> Option<Runs> {
    match backend {
        Backend::Interpreter => Some(Box::new(Machine::new(Arc::clone(program)))),
        Backend::Rust => programs::find(Arc::clone(program)),
    }
}

/// `kind = "p4"`.
pub(crate) fn p4(table: &mut Reader<'_>, around: &Around<'_>) -> Result<Transport, Diagnostic> {
    let program = Arc::new(program(table, around.dir)?);
    let (_, backend) = *table.choose("backend", &BACKENDS, |(name, _)| name)?;
    let protocols: Protocols = table.need("protocol")?;
    let parts: Vec<String> = protocols.0.iter().filter_map(|(name, _)| name.clone()).collect();
    let config = config(table, around.mode, &protocols)?;
    let Some(first) = runs(backend, &program) else {
        let message = "there is no generated Rust of this program with these constants";
        let error = table.error("backend", message, "not this one");
        return Err(
            error.hint("use \"interpreter\"; crates/programs/build.rs lists what is generated")
        );
    };
    Nano::new(&program, first, config.clone()).map_err(|why| {
        let error = table.error("program", why.to_string(), "this program");
        error.hint("p4/include/nano.p4 declares what the NIC has")
    })?;
    Ok(Transport {
        framing: FRAMING,
        mtu: FRAMING.payload + FRAMING.overhead,
        proto: config.protocols.first().copied().unwrap_or(0),
        // Types of service count from zero, classes the other way.
        parts,
        classes: (8_u8.saturating_sub(config.priorities)..8).collect(),
        first_window: u64::from(config.rtt_packets) * u64::from(FRAMING.payload),
        sprays: true,
        scatters: false,
        permutes: false,
        unbounded_only: false,
        longest: u64::from(config.longest()),
        telemetry: false,
        caps_windows: false,
        life_max: None,
        acknowledges: None,
        endpoint: Box::new(move || {
            Some(Box::new(Nano::new(&program, runs(backend, &program)?, config.clone()).ok()?))
        }),
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
        probe: table.or("probe", true)?,
        pull_cycles: table.given("pull_cycles", p.map(|p| p.pull_cycles))?,
        pulls_max: table.or("pulls_max", 256)?,
        remember: table.or("remember", 1024)?,
        ingress_cycles: table.or("ingress_cycles", 23)?,
        egress_cycles: table.or("egress_cycles", 12)?,
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
        ConfigError::NoClass | ConfigError::TooLong(_) | ConfigError::Memory(_) => vec!["buffer"],
    }
}

/// Compile the program, with its constants. What it includes is looked for beside it.
fn program(table: &mut Reader<'_>, dir: &Path) -> Result<ir::Program, Diagnostic> {
    let file = files::read(table, "program", dir)?;
    let constants = table.or("constants", Constants(BTreeMap::new()))?;
    let constants: Vec<(String, u128)> = constants.0.into_iter().collect();
    let dir = file.path.parent().unwrap_or(Path::new("")).to_owned();
    let main = file.source.name.clone();
    let text_of = |name: &str| {
        if name == main {
            Some(file.source.text.clone())
        } else {
            files::read_text(&dir.join(name)).ok()
        }
    };
    nic::p4::compile(&text_of, &main, &constants).map_err(|errors| located(table, &errors))
}

/// The first error of the compiler, drawn in its file.
fn located(table: &Reader<'_>, errors: &[nic::p4::Diagnostic]) -> Diagnostic {
    let Some(error) = errors.first() else {
        return table.error("program", "the program cannot be compiled", "this one");
    };
    let message = match errors.len() {
        1 => error.message.clone(),
        n => format!("{} (and {} more)", error.message, n - 1),
    };
    let name = error.file().to_owned();
    let source = Arc::new(Source { name, text: error.source.text.clone() });
    let diagnostic = Diagnostic::new(message).at(&source, error.span.clone(), "here");
    if error.hint.is_empty() { diagnostic } else { diagnostic.hint(error.hint.clone()) }
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

/// Values of the program's constants, by name.
struct Constants(BTreeMap<String, u128>);

impl Knob for Constants {
    const EXAMPLE: &'static str = "{ TRIM = true }";
    fn read(value: &Value) -> Result<Self, String> {
        let Value::Table(table) = value else {
            return Err(format!("a table of constants is wanted, not {}", value.kind()));
        };
        let constant = |name: &String, value: &Value| match value {
            Value::Boolean(value) => Ok((name.clone(), u128::from(*value))),
            Value::Integer(n) => u128::try_from(*n)
                .map(|n| (name.clone(), n))
                .map_err(|_| format!("`{name}` is negative")),
            other => Err(format!("`{name}` is {}, not a number or true or false", other.kind())),
        };
        let read = table.iter().map(|(name, (_, node))| constant(name, &node.value));
        read.collect::<Result<_, _>>().map(Self)
    }
    fn show(&self) -> toml::Value {
        let number = |n: &u128| toml::Value::Integer(i64::try_from(*n).unwrap_or(i64::MAX));
        toml::Value::Table(self.0.iter().map(|(name, n)| (name.clone(), number(n))).collect())
    }
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
