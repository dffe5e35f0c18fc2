//! `[transport] kind = "nic"`: a programmable NIC (nanoTransport, SOSR 2021) and what runs on it: a
//! program that has a model in Rust, [`transports::nano`], or any in P4 on the blocks of
//! [`nic::nano`].

use std::sync::Arc;

use endpoint::Framing;
use fabric::Routing;
use nic::nano::blocks::clocked::least_spacing;
use nic::nano::buffers::SizeClass as Buffers;
use nic::nano::config::{Config as NicConfig, ConfigError as NicConfigError, PathChoice};
use nic::nano::endpoint::{FRAMING, Nano as Nic, Runs};
use transports::nano::{Clocked, Config, Nano, Program, SizeClass};
use units::Dur;

use super::circuits::Circuits;
use super::{Around, ForLife, Made, Need, Signals, Transport, Wait, chosen, made, refused};
use crate::diagnostic::Checked;
use crate::document::Value;
use crate::key::{Key, Section, keys, section};
use crate::p4::{self, Backend, Compiled, Named};
use crate::reader::Reader;
use crate::routing::Mode;
use crate::value::{Form, Lifetime, Or, PART_MAX, Refused, ScenarioValue, Size16, Unlimited};

/// The programs that have a model: file and constant in P4, and the number of their protocol.
const MODELS: &[(&str, Program, &str, &[&str])] = &[
    ("ndp", Program::Ndp, "ndp.p4", &[]),
    ("homa", Program::Homa, "homa.p4", &[]),
    ("homa-tr", Program::HomaTr, "homa.p4", &["TRIM"]),
];

// Of every program with a model.
keys! { MODEL: Config {
    rtt_packets: u16,
        "packets of a message that leave before anything is heard".range("1 to 32768");
    tx_messages: u16, "messages in flight from a host; more wait".range("a power of two, to 1024");
    rx_messages: u16,
        "messages in flight to a host; packets of others are refused".range("1 to 1024");
    timeout: Dur,
        "a message that is not complete this long after its beginning, or after its last timeout, \
         repeats what is not acknowledged".range("100 ns to 1 s");
    max_timeouts: Or<Unlimited, u32>,
        "a message fails at this timeout in a row without progress"
            .range("at least 1").was("timeouts_max");
    ingress_timeouts: u32,
        "a receiver ends a message silent for this many timeouts, and from then on refuses it if \
         packets of it had come".range("1 to 10^6");
    remember: Or<Lifetime, u32>,
        "messages that are over and that a receiver still knows, so that none is delivered twice: \
         `\"lifetime\"`, as long as their packets can live (own), or this many last delivered \
         and as many ended: 1024 is a size for hardware, 0 what is published. What they deliver \
         twice is counted: [nic.md](nic.md#what-the-nic-promises)".default("");
    pull_cycles (pull_cycles when |c| c.program == Program::Ndp): u32,
        "cycles of 3.2 GHz from one PULL to the next: 140 is a full packet at 200 Gb/s; the \
         prototype has 122".range("1 to 2^20").only("`program = \"ndp\"`");
    overcommitment (overcommitment when |c| c.program != Program::Ndp): u8,
        "messages that are granted at a time"
            .range("1 to 7").only("`program = \"homa\"` or `\"homa-tr\"`");
    strict_paper (strict_paper when |c| c.program != Program::Ndp): bool,
        "the program without the repairs E2 and E9 of docs/nic.md (its constant \
         `STRICT_PAPER`): what is trimmed after its message has been granted whole waits for the \
         timeout, and duplicates of a message in progress are not answered. With `probe = false` \
         it is as published, but for E1, E4 and E6".only("`program = \"homa\"` or `\"homa-tr\"`");
    probe: bool,
        "a timeout that finds nothing to repeat sends one packet beyond the credit: a GRANT or \
         PULL may have been lost";
    count_chops (count_chops when |c| c.program == Program::HomaTr): bool,
        "a trimmed packet makes room for another (the constant `COUNT_CHOPS`), and so does its \
         repetition: the window of its message grows by one for each"
            .only("`program = \"homa-tr\"`");
    ingress_cycles: u32,
        "cycles of 3.2 GHz from a packet's last bit to what it causes".range("1 to 2^20");
    egress_cycles: u32, "and from there to the first bit on the wire".range("0 to 2^20");
    clocked: bool,
        "everything happens in cycles of the host's own clock, and tables have the sizes and shapes \
         that a circuit's have: `remember` is a power of two (1024 where it is not written), ids \
         are 128 of each direction at most ([nic.md](nic.md#the-clocked-law))".default("");
}}

// Of a program in a file.
keys! { PROGRAM: Programmed {
    protocol: Protocols,
        "the IP protocol that messages are sent with: 155 for `ndp.p4`, 154 for `homa.p4`; \
         refused if the program does not write it into their packets. A program of several: `{ \
         ndp = 155, homa = 154 }`, and each `[[traffic]]` says which by `transport = \"ndp\"`"
            .range("0 to 255").written();
    priorities (nic.priorities): u8,
        "how many types of service the program uses, from 0: type t is traffic class 7 - t, and \
         what is beyond counts as the last. 1 for `ndp.p4`, 4 for `homa.p4`, 2 for `hpcc.p4`, \
         `swift.p4`, `dcqcn.p4`, `nscc.p4`".range("1 to 8").written();
    rtt_packets (nic.rtt_packets): u16, "as above".range("at least 1");
    tx_messages (nic.tx_messages): u16, "as above".range("a power of two, to 4096");
    rx_messages (nic.rx_messages): u16, "as above".range("a power of two, to 4096");
    timeout (nic.timeout): Dur, "as above".range("at least 100 ns");
    max_timeouts (nic.max_timeouts): Or<Unlimited, u32>, "as above".was("timeouts_max");
    ingress_timeouts (nic.ingress_timeouts): u32, "as above".range("at least 1");
    probe (nic.probe): bool, "as above";
    pull_cycles (nic.pull_cycles): u32, "as above".range("at least 1");
    max_pulls (nic.max_pulls): u32,
        "PULLs that wait for the pacer; others are lost".was("pulls_max");
    remember (nic.remember): Or<Lifetime, u32>, "as above".default("");
    ingress_cycles (nic.ingress_cycles): u32, "as above".range("at least 1");
    egress_cycles (nic.egress_cycles): u32, "as above";
    clocked (nic.clocked): bool,
        "as above. Not for programs that call `set_flow`".default("");
    telemetry: bool,
        "switches write in-band telemetry into packets whose type of service asks for it, as \
         they do for `rule = \"hpcc\"`".default("");
    overhead: Size16 [Size16(64)..=PART_MAX],
        "headers of a packet: what the program writes. `\"98B\"` for `hpcc.p4`. The ideal \
         completion time needs it".default("");
}}

/// What the keys of a program in a file say.
#[derive(Clone)]
struct Programmed {
    nic: NicConfig,
    protocol: Protocols,
    telemetry: bool,
    overhead: u16,
}

impl Programmed {
    fn firesim() -> Self {
        let nic = NicConfig::prototype(9, Dur::from_us(7));
        let protocol = Protocols(vec![(None, 0)]);
        Self { nic, protocol, telemetry: false, overhead: FRAMING.overhead }
    }
}

/// For the reference.
pub(super) fn keys() -> Vec<Section> {
    let model = Config::firesim(Program::HomaTr);
    let programmed = Programmed::firesim();
    vec![
        p4::keys(),
        section("transport.nic.model", MODEL, &[("firesim", model)], None),
        section("transport.nic.p4", PROGRAM, &[("firesim", programmed.clone())], Some(&programmed)),
    ]
}

/// `kind = "nic"`.
pub(super) fn read(table: &mut Reader<'_>, around: &Around<'_>) -> Checked<Transport> {
    let named = Named::read(table)?;
    if let Some(host) = named.rtl_hosts.iter().find(|host| **host >= around.hosts) {
        let last = around.hosts.saturating_sub(1);
        let message = format!("there is no host {host} whose NIC could be a circuit");
        let hint = format!("hosts are numbered from 0 to {last}");
        return table.fail("rtl_hosts", message, "not this one", hint);
    }
    let program = named.program.to_string_lossy().into_owned();
    match MODELS.iter().find(|(name, ..)| *name == program) {
        Some(&(_, program, file, constants)) => model(table, program, file, constants, &named),
        None if program.ends_with(".p4") => programmed(table, around, named),
        None => {
            let message = format!("unknown program `{program}`");
            let error = table.error("program", message, "no such program");
            Err(error.hint("\"ndp\", \"homa\", \"homa-tr\", or a file whose name ends in .p4"))
        }
    }
}

/// A program that has a model, run by whatever `backend` says: the results are the same.
fn model(
    table: &mut Reader<'_>,
    program: Program,
    file: &str,
    constants: &[&str],
    named: &Named,
) -> Checked<Transport> {
    let backend = named.backend.unwrap_or(Backend::Model);
    table.resolve("backend", &backend);
    let preset = chosen(table, &["firesim"])?.map(|_| Config::firesim(program));
    let mut config = Config::firesim(program);
    table.keys(MODEL, &mut config, preset.as_ref())?;
    table.complete(&["firesim"])?;
    let class = |c: &SizeClass| Class { size: c.bytes, count: c.count };
    let classes = buffers(table, preset.map(|p| p.buffers.iter().map(class).collect()))?;
    let class = |c: &Class| SizeClass { bytes: c.size, count: c.count };
    config.buffers = classes.iter().map(class).collect();
    if config.clocked {
        config.remember = hardware_table(table, config.remember);
    }
    config.check().map_err(|why| refused(table, &why.to_string(), why.fields()))?;
    let constants = constants_of(&config, constants);
    let framing = config.framing();
    let longest = config.buffers.iter().map(|class| u64::from(class.bytes)).max().unwrap_or(0);
    let transport = Transport {
        mtu: framing.payload + framing.overhead,
        classes: config.classes(),
        first_window: u64::from(config.rtt_packets) * u64::from(framing.payload),
        longest,
        timers: vec![("timeout", Wait::Time(config.timeout))],
        signals: match program {
            Program::Homa => Signals { classes: Need::Needs, ..Signals::NONE },
            Program::Ndp => Signals { trims: Need::Needs, ..Signals::NONE },
            Program::HomaTr => {
                Signals { trims: Need::Needs, classes: Need::Needs, ..Signals::NONE }
            }
        },
        kept: kept(table, program == Program::Ndp),
        spacing: config.clocked.then(|| spacing(table, file, &constants)).transpose()?,
        ..Transport::new(
            framing,
            config.program.protocol().number(),
            Box::new(|_| Err(String::new())),
        )
    };
    let for_life: ForLife = if backend == Backend::Model {
        Box::new(move |packet_life| {
            let config = Arc::new(Config { packet_life, ..config.clone() });
            Box::new(move |_| native(&config))
        })
    } else {
        let mut compiled = Compiled::shipped(table, file, &constants, backend)?;
        compiled.rtl_hosts.clone_from(&named.rtl_hosts);
        on_the_nic(table, compiled, on_blocks(&config))?
    };
    Ok(Transport { endpoint: for_life(Dur::MAX), for_life: Some(for_life), ..transport })
}

/// The endpoint of one host by the model's law of time.
fn native(config: &Arc<Config>) -> Made {
    let config = Arc::clone(config);
    match config.clocked {
        true => made(Clocked::new(config)),
        false => made(Nano::new(config)),
    }
}

/// The constants of a shipped program that make it do what its model does: `set` to 1, and what
/// keys say.
fn constants_of(config: &Config, set: &[&str]) -> Vec<(String, i128)> {
    let is_set = |name: &&str| ((*name).to_owned(), 1);
    let mut constants: Vec<(String, i128)> = set.iter().map(is_set).collect();
    if config.program != Program::Ndp {
        let chosen = [("STRICT_PAPER", config.strict_paper), ("COUNT_CHOPS", config.count_chops)];
        constants.extend(chosen.iter().filter(|(_, on)| *on).map(|(name, _)| is_set(name)));
        if config.overcommitment != 3 {
            constants.push(("OVERCOMMITMENT".to_owned(), config.overcommitment.into()));
        }
    }
    constants
}

/// The least spacing of a shipped program.
fn spacing(table: &Reader<'_>, file: &str, constants: &[(String, i128)]) -> Checked<u64> {
    let compiled = Compiled::shipped(table, file, constants, Backend::Interpreter)?;
    Ok(least_spacing(&compiled.program))
}

/// `remember` of a clocked NIC: what is written, or else what is a size for hardware.
fn hardware_table(table: &mut Reader<'_>, remember: Option<u32>) -> Option<u32> {
    /// Messages delivered, and as many ended.
    const USUAL: u32 = 1024;
    if table.has("remember") {
        return remember;
    }
    table.resolve("remember", &USUAL);
    Some(USUAL)
}

/// The NIC of a model, for the same program in P4.
fn on_blocks(config: &Config) -> NicConfig {
    let priorities = match config.program {
        Program::Ndp => 1,
        Program::Homa | Program::HomaTr => config.overcommitment + 1,
    };
    let class = |c: &SizeClass| Buffers { bytes: c.bytes.into(), buffers: c.count };
    NicConfig {
        classes: config.buffers.iter().map(class).collect(),
        tx_messages: config.tx_messages,
        rx_messages: config.rx_messages,
        ingress_timeouts: config.ingress_timeouts,
        max_timeouts: config.max_timeouts,
        remember: config.remember,
        packet_life: config.packet_life,
        probe: config.probe,
        pull_cycles: config.pull_cycles,
        ingress_cycles: config.ingress_cycles,
        egress_cycles: config.egress_cycles,
        protocols: vec![config.program.protocol().number()],
        priorities,
        clocked: config.clocked,
        ..NicConfig::prototype(config.rtt_packets, config.timeout)
    }
}

/// A program in a file, on the blocks of the NIC.
fn programmed(table: &mut Reader<'_>, around: &Around<'_>, named: Named) -> Checked<Transport> {
    let compiled = Compiled::new(table, around.dir, named)?;
    let Programmed { mut nic, protocol, telemetry, overhead } = sized(table)?;
    nic.choice = path_choice(around.mode);
    let framing = Framing { overhead, ..FRAMING };
    let first_protocol = nic.protocols.first().copied().unwrap_or(0);
    let (classes, longest) = (8_u8.saturating_sub(nic.priorities)..8, u64::from(nic.longest()));
    let first_window = u64::from(nic.rtt_packets) * u64::from(FRAMING.payload);
    let timeout = nic.timeout;
    let pulls = compiled.program.externs.iter().any(|called| called.kind == "ctrl_pkt");
    let spacing = nic.clocked.then(|| least_spacing(&compiled.program));
    let for_life = on_the_nic(table, compiled, nic)?;
    Ok(Transport {
        spacing,
        mtu: framing.payload + framing.overhead,
        timers: vec![("timeout", Wait::Time(timeout))],
        parts: protocol.0.iter().filter_map(|(name, _)| name.clone()).collect(),
        // Types of service count from zero, classes the other way.
        classes: classes.collect(),
        first_window,
        // A program may open its window; whether it does is not known.
        window_grows: true,
        sprays: true,
        longest,
        // A program may react to all of them; what it needs is not known.
        signals: Signals {
            marks: Need::Uses,
            trims: Need::Uses,
            classes: Need::Uses,
            message_priorities: false,
        },
        kept: kept(table, pulls),
        telemetry,
        ..Transport::of_life(framing, first_protocol, for_life)
    })
}

/// Who chooses paths where they are chosen by `mode`.
fn path_choice(mode: Mode) -> PathChoice {
    match mode.switches {
        Routing::FlowHash | Routing::PacketRandom => PathChoice::Hashed,
        _ if mode.needs_spraying() => PathChoice::Packets,
        _ => PathChoice::Messages,
    }
}

/// The keys of a program in a file, and the buffers.
fn sized(table: &mut Reader<'_>) -> Checked<Programmed> {
    let preset = chosen(table, &["firesim"])?.map(|_| Programmed::firesim());
    let mut read = Programmed::firesim();
    table.keys(PROGRAM, &mut read, preset.as_ref())?;
    table.complete(&["firesim"])?;
    let nic = &mut read.nic;
    // At most what the 16 bits of a message's length can say.
    let class = |c: &Buffers| Class { size: c.bytes as u16, count: c.buffers };
    let classes = buffers(table, preset.map(|p| p.nic.classes.iter().map(class).collect()))?;
    let class = |c: &Class| Buffers { bytes: u32::from(c.size), buffers: c.count };
    nic.classes = classes.iter().map(class).collect();
    nic.protocols = read.protocol.0.iter().map(|(_, number)| *number).collect();
    if nic.clocked {
        nic.remember = hardware_table(table, nic.remember);
    }
    nic.check().map_err(|why| refused(table, &why.to_string(), &nic_keys_of(&why)))?;
    Ok(read)
}

/// The NIC that `table` describes by the keys of a program in a file.
pub(super) fn config_of(table: &mut Reader<'_>) -> Checked<NicConfig> {
    Ok(sized(table)?.nic)
}

/// The first of the keys whose published value is for links of [`super::PUBLISHED_FOR`] and is
/// kept. `pulls`: the program has the NIC pace its PULLs.
fn kept(table: &Reader<'_>, pulls: bool) -> Option<&'static str> {
    let keys = ["pull_cycles", "timeout"].into_iter().skip(usize::from(!pulls));
    table.has("preset").then(|| keys.into_iter().find(|key| !table.has(key))).flatten()
}

/// Makes the NICs, of which one is tried.
fn on_the_nic(table: &Reader<'_>, compiled: Compiled, config: NicConfig) -> Checked<ForLife> {
    let runs: Runs = compiled.first(table)?;
    let tried = Nic::new(&compiled.program, runs, config.clone()).and_then(Nic::try_egress);
    tried.map_err(|why| {
        let error = table.error("program", why.to_string(), "this program");
        error.hint("p4/include/nano.p4 declares what the NIC has")
    })?;
    let compiled = Arc::new(compiled);
    let circuit =
        compiled.is_rtl().then(|| Circuits::new(table, &compiled, &config)).transpose()?;
    let circuit = circuit.map(Arc::new);
    Ok(Box::new(move |packet_life| {
        let config = NicConfig { packet_life, ..config.clone() };
        let (compiled, circuit) = (Arc::clone(&compiled), circuit.clone());
        Box::new(move |host| match &circuit {
            Some(circuit) if compiled.is_circuit(host) => circuit.endpoint(&config),
            _ => model_of(&compiled, &config),
        })
    }))
}

/// The model of a program's NIC.
fn model_of(compiled: &Compiled, config: &NicConfig) -> Made {
    let runs = compiled.runs().ok_or("nothing runs this program")?;
    made(Nic::new(&compiled.program, runs, config.clone()))
}

/// A size class of buffers, bytes and number.
#[derive(Clone, Copy, Default)]
struct Class {
    size: u16,
    count: u16,
}

keys! { BUFFER: Class {
    size: Size16 [Size16(64)..=Size16(65_472)],
        "of each; with a model 1024 B at least, and a multiple of 64 B".written();
    count: u16, "how many".range("at least 1; 4 MiB in all").written();
}}

/// For the reference: the keys of `[[transport.buffer]]`.
pub(crate) fn buffer_keys() -> Vec<Section> {
    vec![section("transport.buffer", BUFFER, &[], None)]
}

/// `[[transport.buffer]]`: the size classes of a NIC.
fn buffers(table: &mut Reader<'_>, preset: Option<Vec<Class>>) -> Checked<Vec<Class>> {
    let mut tables = table.tables("buffer")?;
    if tables.is_empty() {
        let Some(preset) = preset else {
            return Err(table.missing("buffer", "add [[transport.buffer]] with `size` and `count`"));
        };
        let show = |class: &Class| {
            let shown = |key: &Key<Class>| Some((key.info.name.to_owned(), (key.show)(class)?));
            BUFFER.iter().filter_map(shown).collect()
        };
        table.keep_list("buffer", preset.iter().map(show).collect());
        return Ok(preset);
    }
    let mut classes = Vec::new();
    for table in &mut tables {
        let mut class = Class::default();
        table.all_keys(BUFFER, &mut class)?;
        classes.push(class);
    }
    table.finish_tables("buffer", tables)?;
    Ok(classes)
}

fn nic_keys_of(why: &NicConfigError) -> Vec<&'static str> {
    match *why {
        NicConfigError::Zero(key) | NicConfigError::Ids(key, _) => vec![key],
        NicConfigError::Priorities(_) => vec!["priorities"],
        NicConfigError::NoClass | NicConfigError::Classes(_) => vec!["buffer"],
        NicConfigError::TooLong(_) | NicConfigError::Memory(_) => vec!["buffer"],
        NicConfigError::Lifetime | NicConfigError::Remember(_) => vec!["remember"],
        NicConfigError::ClockedIds(key, _) => vec![key],
        NicConfigError::BeforeLookup(_) => vec!["ingress_cycles"],
    }
}

/// IP protocols: one, or several with names by which `[[traffic]]` chooses.
#[derive(Clone)]
struct Protocols(Vec<(Option<String>, u8)>);

impl ScenarioValue for Protocols {
    fn form() -> Form {
        let form = Form::new("integer or table", "154` or `{ ndp = 155, homa = 154 }", "integer");
        Form { json: vec!["integer", "object"], ..form }
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        let Value::Table(table) = value else {
            return u8::read(value).map(|number| Self(vec![(None, number)]));
        };
        let named = table.iter().map(|(name, (_, node))| {
            let number = u8::read(&node.value);
            let number = number.map_err(|why| format!("`{name}`: {}", why.sentence()))?;
            Ok((Some(name.clone()), number))
        });
        let named: Vec<_> = named.collect::<Result<_, String>>()?;
        if named.is_empty() {
            return Err("no protocol is named".to_owned().into());
        }
        Ok(Self(named))
    }
    fn show(&self) -> toml::Value {
        let named = |(name, number): &(Option<String>, u8)| Some((name.clone()?, number.show()));
        match self.0.as_slice() {
            [(None, number)] => number.show(),
            several => toml::Value::Table(several.iter().filter_map(named).collect()),
        }
    }
}
