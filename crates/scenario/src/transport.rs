//! The `[transport]` table: which transport, and every one of its parameters; or several tables
//! `[[transport]]`, for transports that run side by side on every host.
//!
//! A parameter is written by the name of the transport's `Config` field. None has a default here;
//! `preset` names a published set of them, which the other keys then change.

mod cbr;
mod homa;
mod mptcp;
mod nano;
mod ndp;
mod p4;
mod phost;
mod rdma;
mod tcp;

use std::path::Path;

use endpoint::{Endpoint, Framing};
use fabric::{Carriage, Link, Node, Topology};
use transports::mux::{Mux, wire_protocols};
use units::{Bytes, Dur, Rate};
use wire::int::Hop;

use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::packet_latency::Acknowledges;
use crate::reader::Reader;
use crate::registry::{Kind, TRANSPORTS};
use crate::routing::Mode;

pub(crate) use cbr::cbr;
pub(crate) use homa::{homa, homa_tr};
pub(crate) use mptcp::{mmptcp, mptcp, packet_scatter};
pub(crate) use nano::{homa_nano, homatr_nano, ndp_nano};
pub(crate) use ndp::ndp;
pub(crate) use p4::p4;
pub(crate) use phost::phost;
pub(crate) use rdma::{dcqcn, fast_rate, hpcc, patched_timely, rdma, swift, timely};
pub(crate) use tcp::{newreno, tcp};

/// Whether a transport has a use for something that switches can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// It makes no difference.
    Ignores,
    /// It reacts, and does well without.
    Uses,
    /// Without, its congestion control or loss recovery is another one, or none.
    Needs,
}

/// What of the network a transport acts on, beyond packets that arrive or do not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signals {
    /// ECN marks.
    pub(crate) marks: Need,
    /// Headers of trimmed packets.
    pub(crate) trims: Need,
    /// Priorities that its packets have by their classes.
    pub(crate) classes: Need,
    /// Priorities of messages, as traffic has them.
    pub(crate) message_priorities: bool,
}

impl Signals {
    /// None of them.
    pub(crate) const NONE: Self = Self {
        marks: Need::Ignores,
        trims: Need::Ignores,
        classes: Need::Ignores,
        message_priorities: false,
    };
}

/// A transport with its parameters, ready to be put on hosts.
pub(crate) struct Transport {
    /// How it cuts messages into packets.
    pub(crate) framing: Framing,
    /// Its longest packet on the wire, data or control.
    pub(crate) mtu: u16,
    /// The protocol of its packets; on the wire, where others of its kind come before it, another one
    /// stands for it.
    pub(crate) proto: u8,
    /// Where it is several protocols in one, what `[[traffic]]` calls each; its packets bear numbers of
    /// their own then.
    pub(crate) parts: Vec<String>,
    /// The traffic classes of its packets.
    pub(crate) classes: Vec<u8>,
    /// What it sends before it hears anything, payload bytes.
    pub(crate) first_window: u64,
    /// Whether it can choose a path for each packet.
    pub(crate) sprays: bool,
    /// Whether the packets of a message take several paths even where switches keep those of a flow
    /// together.
    pub(crate) scatters: bool,
    /// Whether that choice can be a walk over all paths in turn.
    pub(crate) permutes: bool,
    /// Whether it carries only messages without an end.
    pub(crate) unbounded_only: bool,
    /// The longest message that it carries, bytes; [`u64::MAX`]: any, also one without an end.
    pub(crate) longest: u64,
    /// Whether switches write telemetry into its packets.
    pub(crate) telemetry: bool,
    /// What it acts on.
    pub(crate) signals: Signals,
    /// Whether its connections keep to `Msg::window`.
    pub(crate) caps_windows: bool,
    /// The longest life of a packet with which it delivers nothing twice; `None` if that does not
    /// matter.
    pub(crate) life_max: Option<Dur>,
    /// Tells acknowledgements of single packets from other control packets; `None` if the transport
    /// has none.
    pub(crate) acknowledges: Option<Acknowledges>,
    /// A key whose value is that of a preset for links of [`PUBLISHED_FOR`], if one is.
    pub(crate) kept: Option<&'static str>,
    /// Makes the endpoint of one host.
    pub(crate) endpoint: MakeEndpoint,
}

/// Makes the endpoint of one host. `None` for a configuration that the transport refuses, which reading has
/// checked.
pub(crate) type MakeEndpoint = Box<dyn Fn() -> Option<Box<dyn Endpoint>> + Send + Sync>;

impl Transport {
    /// A transport of class 0 with nothing special: it sends without waiting for an answer, over the
    /// paths that switches choose, messages of any length.
    fn new(framing: Framing, proto: u8, endpoint: MakeEndpoint) -> Self {
        Self {
            framing,
            mtu: framing.payload + framing.overhead,
            proto,
            parts: Vec::new(),
            classes: vec![0],
            first_window: u64::MAX,
            sprays: false,
            scatters: false,
            permutes: false,
            unbounded_only: false,
            longest: u64::MAX,
            telemetry: false,
            signals: Signals::NONE,
            caps_windows: false,
            life_max: None,
            acknowledges: None,
            kept: None,
            endpoint,
        }
    }
}

/// What reading a transport needs to know of the rest.
pub(crate) struct Around<'a> {
    /// How senders choose paths.
    pub(crate) mode: Mode,
    /// Hosts of the fabric.
    pub(crate) hosts: u32,
    /// Paths are relative to this directory.
    pub(crate) dir: &'a Path,
}

/// How one transport is read.
pub(crate) type ReadTransport = fn(&mut Reader<'_>, &Around<'_>) -> Result<Transport, Diagnostic>;

/// The transports of every host, one at least, in the order of the file.
pub(crate) struct Transports {
    list: Vec<Transport>,
    /// Where there are several, or one in several parts, what `[[traffic]]` calls each.
    names: Vec<String>,
}

/// There are protocol numbers for so many of one kind, see [`transports::mux::wire_protocols`].
const TRANSPORTS_MAX: usize = 100;

/// Read `[transport]` or all `[[transport]]`. Of several, each needs a `name`.
pub(crate) fn read(
    tables: &mut [Reader<'_>],
    around: &Around<'_>,
) -> Result<Transports, Diagnostic> {
    let several = tables.len() > 1;
    let mut read = Transports { list: Vec::new(), names: Vec::new() };
    for table in tables {
        let kind: &Kind<ReadTransport> = table.choose("kind", TRANSPORTS, |k| k.name)?;
        if several {
            let name: String = table.need("name")?;
            if read.names.contains(&name) {
                let error = table.error("name", format!("two transports named `{name}`"), "again");
                return Err(error.hint("traffic says by name which of them carries it"));
            }
            read.names.push(name);
        }
        let transport = (kind.read)(table, around)?;
        check_least(table, &transport)?;
        if !transport.parts.is_empty() {
            if several {
                let error =
                    table.error("kind", "it is several transports already", "beside another");
                return Err(error.hint("leave the other [[transport]] out"));
            }
            read.names.clone_from(&transport.parts);
        }
        if read.list.len() == TRANSPORTS_MAX {
            let message = format!("more than {TRANSPORTS_MAX} transports on a host");
            let hint = "each of one kind needs a protocol number of its own";
            return Err(table.error("kind", message, "one too many").hint(hint));
        }
        read.list.push(transport);
    }
    Ok(read)
}

/// Timers of transports that no answer could come before: it would cross ten metres of fibre and back.
/// A run would be nothing but timeouts, and with the shortest of them never end.
const TIMER_MIN: Dur = Dur::from_ns(100);
const TIMERS: [&str; 6] = [
    "rto_initial",
    "timeout",
    "resend_timeout",
    "request_timeout",
    "window_timeout",
    "stall_timeout",
];
/// The least payload: less is all headers, and a message of megabytes is as many packets.
const PAYLOAD_MIN: u16 = 16;

/// Check that `transport` sends payload worth its headers, and waits for answers that can come.
fn check_least(table: &mut Reader<'_>, transport: &Transport) -> Result<(), Diagnostic> {
    if transport.framing.payload < PAYLOAD_MIN {
        let key = table.likeliest(&["payload", "mss"]).unwrap_or("kind");
        let message = format!("packets with {} bytes of payload", transport.framing.payload);
        let error = table.error(key, message, "too small");
        return Err(
            error.hint(format!("{PAYLOAD_MIN} bytes at least: less is nothing but headers"))
        );
    }
    for key in TIMERS {
        let written = table.has(key).then(|| table.maybe::<Dur>(key)).transpose()?.flatten();
        if let Some(timer) = written.filter(|timer| *timer < TIMER_MIN) {
            let error = table.error(key, format!("`{key}` is {timer}"), "too short");
            return Err(error.hint(format!(
                "{TIMER_MIN} at least: no answer comes sooner over ten metres of fibre and back, and \
                 a run of nothing but timeouts would never end"
            )));
        }
    }
    Ok(())
}

impl Transports {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Transport> {
        self.list.iter()
    }

    /// The one at this place among the names.
    pub(crate) fn at(&self, place: u8) -> Option<&Transport> {
        self.list.get(usize::from(place)).or(self.list.last())
    }

    /// The longest packet of all of them.
    pub(crate) fn mtu(&self) -> u16 {
        self.list.iter().map(|transport| transport.mtu).max().unwrap_or(0)
    }

    /// Whether switches write telemetry into the packets of any.
    pub(crate) fn telemetry(&self) -> bool {
        self.list.iter().any(|transport| transport.telemetry)
    }

    /// How their messages travel where paths are chosen by `mode`.
    pub(crate) fn carriages(&self, mode: Mode) -> Vec<Carriage> {
        let by_mode = |t: &Transport| mode.sprays() && (t.sprays || !mode.needs_spraying());
        let spray = |t: &Transport| t.scatters || by_mode(t);
        let each = self.list.iter().map(|t| Carriage { framing: t.framing, spray: spray(t) });
        let each: Vec<Carriage> = each.collect();
        // The parts of one travel as it does.
        (0..each.len().max(self.names.len())).map(|at| each[at.min(each.len() - 1)]).collect()
    }

    /// The one that a table of `[[traffic]]` names, and its place among them. One alone needs no name.
    pub(crate) fn of_traffic(
        &self,
        table: &mut Reader<'_>,
    ) -> Result<(u8, &Transport), Diagnostic> {
        let mut at = 0;
        if !self.names.is_empty() {
            let wanted: String = table.need("transport")?;
            let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
            at = names.iter().position(|&name| name == wanted).ok_or_else(|| {
                let message = format!("no transport is named `{wanted}`");
                let error = table.error("transport", message, "no such name");
                error.hint(did_you_mean(&wanted, &names))
            })?;
        }
        // At most `TRANSPORTS_MAX`, and as many protocols; the parts of one are one.
        Ok((at as u8, &self.list[at.min(self.list.len() - 1)]))
    }

    /// As [`Transport::acknowledges`]; `None` also where there are several, whose packets the
    /// function could not tell apart.
    pub(crate) fn acknowledges(&self) -> Option<Acknowledges> {
        match self.list.as_slice() {
            [alone] => alone.acknowledges,
            _ => None,
        }
    }

    /// The endpoint of one host; `None` as in [`Transport::endpoint`].
    pub(crate) fn endpoint(&self) -> Option<Box<dyn Endpoint>> {
        if let [alone] = self.list.as_slice() {
            return (alone.endpoint)();
        }
        let parts = self.list.iter().map(|t| Some((t.proto, (t.endpoint)()?)));
        Some(Box::new(Mux::new(parts.collect::<Option<_>>()?)?))
    }

    /// By the protocol that packets bear on the wire, that of their transport's kind.
    pub(crate) fn protocols(&self) -> Vec<(u8, u8)> {
        let own: Vec<u8> = self.list.iter().map(|transport| transport.proto).collect();
        wire_protocols(&own).into_iter().flatten().zip(own).collect()
    }
}

/// Telemetry is written by switches whose links have a rate that it has a code for: all must.
pub(crate) fn check_telemetry(
    tables: &[Reader<'_>],
    transports: &Transports,
    topology: &Topology,
) -> Result<(), Diagnostic> {
    let writes = |link: &&Link| matches!(link.from, Node::Switch(..));
    let coded = |rate: Rate| Hop::rates().iter().any(|gbps| gbps * 1_000_000_000 == rate.0);
    let odd = topology.links().iter().filter(writes).find(|link| !coded(link.rate));
    let asks = tables.iter().zip(&transports.list).find(|(_, transport)| transport.telemetry);
    let (Some(link), Some((table, _))) = (odd, asks) else { return Ok(()) };
    let message = format!("telemetry cannot name links of {}, as switches have here", link.rate);
    let known = Hop::rates().map(|gbps| format!("{gbps}")).join(", ");
    let hint = format!("it has codes for links of so many Gb/s: {known}");
    Err(table.error("kind", message, "it has switches write telemetry").hint(hint))
}

/// The links of nanoTransport's prototype (specs/nanotransport.md#15.2): a PULL is due every 140
/// cycles there, as often as its links carry a full packet.
const PUBLISHED_FOR: Rate = Rate(200_000_000_000);
const PULL_CYCLES: u128 = 140;

/// Warn where a NIC keeps the published times although hosts' links have another rate.
pub(crate) fn check_links(tables: &[Reader<'_>], transports: &Transports, topology: &Topology) {
    let hosts = &topology.links()[..topology.hosts() as usize];
    let Some(rate) = hosts.iter().map(|link| link.rate).min() else { return };
    for (table, transport) in tables.iter().zip(&transports.list) {
        let Some(key) = transport.kept.filter(|_| rate != PUBLISHED_FOR) else { continue };
        let message = format!(
            "the times of this preset are for links of {PUBLISHED_FOR}, and hosts have links of {rate}"
        );
        let hint = if key == "pull_cycles" {
            let times = PUBLISHED_FOR.0 as f64 / rate.0 as f64;
            let cycles = (PULL_CYCLES * u128::from(PUBLISHED_FOR.0)).div_ceil(rate.0.into());
            format!(
                "PULLs ask for {times:.3} times what a link carries: `pull_cycles = {cycles}` asks \
                 for as much; `timeout` is to be longer than a round trip through full queues"
            )
        } else {
            "set `timeout`, longer than a round trip through full queues: its 7us are one there"
                .to_owned()
        };
        table.warn(table.error("preset", message, "published for others").warning().hint(hint));
    }
}

/// The largest payload: with its headers it must fit the 16 bits of a packet's length.
const PAYLOAD_MAX: Bytes = Bytes(65_000);

/// A number of bytes that fits 16 bits.
fn bytes(
    table: &mut Reader<'_>,
    key: &'static str,
    preset: Option<u16>,
    least: u64,
) -> Result<u16, Diagnostic> {
    let n = table.given(key, preset.map(|n| Bytes(u64::from(n))))?;
    // At most 65000, so it fits.
    Ok(table.within(key, n, Bytes(least)..=PAYLOAD_MAX)?.0 as u16)
}

/// The value that `key` names; what is not written comes from a preset, if one is in force.
fn named<T: Copy + PartialEq>(
    table: &mut Reader<'_>,
    key: &'static str,
    values: &[(&'static str, T)],
    preset: Option<T>,
) -> Result<T, Diagnostic> {
    let usual = preset.and_then(|preset| values.iter().find(|(_, value)| *value == preset));
    table.choose_or(key, values, |(name, _)| name, usual).map(|(_, value)| *value)
}

/// The configuration that `preset` names, if any.
fn preset<C>(table: &mut Reader<'_>, known: &[(&'static str, C)]) -> Result<Option<C>, Diagnostic>
where
    C: Clone,
{
    if !table.has("preset") {
        return Ok(None);
    }
    table.choose("preset", known, |(name, _)| name).map(|(_, config)| Some(config.clone()))
}

/// A configuration that its transport refuses, because of the values of `keys`.
fn refused(table: &Reader<'_>, why: &str, keys: &[&str]) -> Diagnostic {
    // What comes from a preset is not written anywhere; presets alone are never refused.
    let key = table.likeliest(keys).unwrap_or("kind");
    let error = table.error(key, why, "refused");
    error.hint("docs/scenario-reference.md has the range of every key")
}
