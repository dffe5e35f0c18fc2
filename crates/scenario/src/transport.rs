//! The `[transport]` table: which transport, and every one of its parameters; or several tables
//! `[[transport]]`, for transports that run side by side on every host.
//!
//! A parameter is written by the name of the transport's `Config` field. None has a default here;
//! `preset` names a published set of them, which the other keys then change. A transport is a file
//! here and a row of [`TRANSPORTS`].

mod cbr;
mod circuits;
pub(crate) mod custom;
pub(crate) mod hardware;
mod homa;
mod mptcp;
mod ndp;
pub(crate) mod nic;
mod pfabric;
mod phost;
mod rdma;
mod tcp;
mod uet;

use std::path::Path;

use endpoint::{Endpoint, Framing};
use fabric::{Encapsulation, Link, Node, Topology};
use transports::mux::{Mux, wire_protocols};
use units::{Dur, HostId, Rate};
use wire::int::Hop;

use self::custom::CustomTransport;
use crate::diagnostic::{Checked, Diagnostic, did_you_mean};
use crate::key::{Key, Section, section};
use crate::packet_latency::Acknowledges;
use crate::reader::Reader;
use crate::registry::{Kind, kinds};
use crate::routing::Mode;
use crate::value::Size16;

kinds! { TRANSPORTS: ReadTransport {
    "ndp", ndp::read, ndp::keys,
        "NDP (SIGCOMM'17): trimming, receiver-driven pulls, per-packet spraying";
    "tcp", tcp::read, tcp::keys,
        "TCP with SACK, NewReno or Reno recovery, ECN, ICTCP, and a rule: NewReno, BIC, \
                H-TCP, CUBIC, DCTCP, D2TCP or FAST";
    "mptcp", mptcp::read, mptcp::keys,
        "Multipath TCP (RFC 8684): subflows with coupled windows; MMPTCP (INFOCOM'16): \
                packets scattered over all paths, and subflows after the first bytes";
    "phost", phost::read, phost::keys,
        "pHost (CoNEXT'15): receivers hand out tokens, shortest message first";
    "pfabric", pfabric::read, pfabric::keys,
        "pFabric (SIGCOMM'13): packets say how much of their message is left, for switches that \
                serve the least and lose the most; line rate until a timeout";
    "homa", homa::read, homa::keys,
        "Homa (SIGCOMM'18): receivers grant to the shortest messages and choose \
                priorities; Homa-Tr (SOSR'21), which refuses at once what switches have trimmed";
    "rdma", rdma::read, rdma::keys,
        "RDMA over Converged Ethernet: queue pairs, and a rule for their rate: none, \
                TIMELY, patched TIMELY, FAST, DCQCN, HPCC or Swift";
    "uet", uet::read, uet::keys,
        "Ultra Ethernet (UE 1.0): a window at the sender by delay, marks and trimming (NSCC), \
                credit of the receiver (RCCC), or both, and a path for each packet by entropy \
                values (oblivious, bitmap, REPS, mixed)";
    "nic", nic::read, nic::keys,
        "a programmable NIC (nanoTransport, SOSR'21) with NDP, Homa, Homa-Tr, or a P4 \
                program of your own";
    "cbr", cbr::read, cbr::keys,
        "unresponsive sources of a constant bit rate: load for switches, never complete";
}}

/// Where a program brings a transport of its own. No file alone can name it.
pub(crate) const CUSTOM: Kind<ReadTransport> = Kind {
    name: "custom",
    about: "a transport of the program that runs the scenario, such as a class in Python",
    read: custom::read,
    keys: custom::keys,
};

/// What `kind` was before, and what is no kind but a rule of one: and how it is written.
const WRITTEN: &[(&str, &str)] = &[
    ("newreno", "`kind = \"tcp\"`, `rule = \"newreno\"`, `recovery = \"newreno\"`, `ecn = false`"),
    ("reno", "`kind = \"tcp\"`, `rule = \"newreno\"`, `recovery = \"reno\"`"),
    ("sack", "`kind = \"tcp\"`, `recovery = \"sack\"`"),
    ("bic", "`kind = \"tcp\"`, `rule = \"bic\"`"),
    ("htcp", "`kind = \"tcp\"`, `rule = \"htcp\"`"),
    ("cubic", "`kind = \"tcp\"`, `rule = \"cubic\"`"),
    ("dctcp", "`kind = \"tcp\"`, `rule = \"dctcp\"`"),
    ("d2tcp", "`kind = \"tcp\"`, `rule = \"d2tcp\"`"),
    ("fast", "`kind = \"tcp\"` or `\"rdma\"`, `rule = \"fast\"`"),
    ("ictcp", "`kind = \"tcp\"`, `receive_window = \"ictcp\"`"),
    ("mmptcp", "`kind = \"mptcp\"`, `phases = \"scatter-then-multipath\"`"),
    ("packet-scatter", "`kind = \"mptcp\"`, `phases = \"scatter\"`"),
    ("homa-tr", "`kind = \"homa\"`, `trimmed = \"refused\"`"),
    ("timely", "`kind = \"rdma\"`, `rule = \"timely\"`"),
    ("patched-timely", "`kind = \"rdma\"`, `rule = \"patched-timely\"`"),
    ("fast-rate", "`kind = \"rdma\"`, `rule = \"fast\"`"),
    ("dcqcn", "`kind = \"rdma\"`, `rule = \"dcqcn\"`"),
    ("hpcc", "`kind = \"rdma\"`, `rule = \"hpcc\"`"),
    ("swift", "`kind = \"rdma\"`, `rule = \"swift\"`"),
    ("roce", "`kind = \"rdma\"`, `rule = \"none\"`"),
    ("ndp-nano", "`kind = \"nic\"`, `program = \"ndp\"`"),
    ("homa-nano", "`kind = \"nic\"`, `program = \"homa\"`"),
    ("homatr-nano", "`kind = \"nic\"`, `program = \"homa-tr\"`"),
    ("nscc", "`kind = \"uet\"`, `control = \"nscc\"`"),
    ("rccc", "`kind = \"uet\"`, `control = \"none\"`, `credit = true`"),
    ("reps", "`kind = \"uet\"`, `spray = \"reps\"`"),
    ("p4", "`kind = \"nic\"`, `program` with the path of the file"),
];

/// Rules that some networks have and this simulator does not, with those that come next to them.
const OTHER_RULES: &[&str] = &["bbr", "vegas", "westwood", "hybla", "illinois", "prague"];

/// The kind that a table names, or an error that says how an old one is written now.
fn kind<'k>(table: &mut Reader<'_>) -> Checked<&'k Kind<ReadTransport>> {
    let name = table.peek::<String>("kind").unwrap_or_default();
    if name == CUSTOM.name {
        return table.choose("kind", &[CUSTOM], |kind| kind.name);
    }
    if let Some((_, written)) = WRITTEN.iter().find(|(known, _)| *known == name) {
        let message = format!("`{name}` is no kind of transport");
        return table.fail("kind", message, "written differently", format!("write {written}"));
    }
    if OTHER_RULES.contains(&name.as_str()) {
        let hint = "`kind = \"tcp\"` has a `rule`: newreno, bic, htcp, cubic, dctcp, d2tcp, fast";
        return table.fail("kind", format!("there is no `{name}`"), "no such transport", hint);
    }
    table.choose("kind", TRANSPORTS, |kind| kind.name)
}

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

/// How long a timer runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wait {
    /// So long.
    Time(Dur),
    /// As long as a host's link takes for this many full packets.
    Packets(f64),
}

/// A transport with its parameters, ready to be put on hosts.
pub(crate) struct Transport {
    /// How it cuts messages into packets.
    pub(crate) framing: Framing,
    /// Its longest packet on the wire, data or control.
    pub(crate) mtu: u16,
    /// The protocol of its packets; on the wire, where others of its kind come before it, another
    /// one stands for it.
    pub(crate) proto: u8,
    /// Where it is several protocols in one, what `[[traffic]]` calls each; its packets bear
    /// numbers of their own then.
    pub(crate) parts: Vec<String>,
    /// The traffic classes of its packets.
    pub(crate) classes: Vec<u8>,
    /// What it sends before it hears anything, payload bytes.
    pub(crate) first_window: u64,
    /// Whether a lone message may have more under way later, as after slow start.
    pub(crate) window_grows: bool,
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
    /// What it waits for an answer before it sends again, at most: the key, and its value.
    pub(crate) timers: Vec<(&'static str, Wait)>,
    /// The rate of each of its messages, bytes on the wire counted, if it is constant.
    pub(crate) constant_rate: Option<Rate>,
    /// Whether it acts on the deadlines of messages.
    pub(crate) uses_deadlines: bool,
    /// Whether its rule has round-trip samples.
    pub(crate) samples_rtt: bool,
    /// Whether its connections keep to `Msg::window`.
    pub(crate) caps_windows: bool,
    /// Whether a message waits until the one before it on its connection is acknowledged.
    pub(crate) pauses: bool,
    /// The longest life of a packet with which it delivers nothing twice; `None` if that does not
    /// matter.
    pub(crate) life_max: Option<Dur>,
    /// Tells acknowledgements of single packets from other control packets; `None` if the transport
    /// has none.
    pub(crate) acknowledges: Option<Acknowledges>,
    /// The fewest cycles of a NIC's clock between two packets that its circuit can do with; `None`
    /// if it has none.
    pub(crate) spacing: Option<u64>,
    /// A key whose value is that of a preset for links of [`PUBLISHED_FOR`], if one is.
    pub(crate) kept: Option<&'static str>,
    /// Makes the endpoint of a host.
    pub(crate) endpoint: MakeEndpoint,
    /// Another `endpoint`, for a network in which packets live for no longer than a given time;
    /// `None` if it is the same everywhere.
    pub(crate) for_life: Option<ForLife>,
}

/// Makes the endpoint of a host.
pub(crate) type MakeEndpoint = Box<dyn Fn(HostId) -> Made + Send + Sync>;

/// The endpoint of a host, or why there is none: a configuration that the transport refuses, which
/// reading has checked, or a process that cannot be started.
pub(crate) type Made = Result<Box<dyn Endpoint>, String>;

/// What a transport says to its configuration.
fn made<E: Endpoint + 'static>(endpoint: Result<E, impl ToString>) -> Made {
    match endpoint {
        Ok(endpoint) => Ok(Box::new(endpoint)),
        Err(why) => Err(why.to_string()),
    }
}

/// Makes what makes endpoints, from the longest life of a packet.
pub(crate) type ForLife = Box<dyn Fn(Dur) -> MakeEndpoint + Send + Sync>;

impl Transport {
    /// A transport of class 0 with nothing special: it sends without waiting for an answer, over
    /// the paths that switches choose, messages of any length.
    fn new(framing: Framing, proto: u8, endpoint: MakeEndpoint) -> Self {
        Self {
            framing,
            mtu: framing.payload + framing.overhead,
            proto,
            parts: Vec::new(),
            classes: vec![0],
            first_window: u64::MAX,
            window_grows: false,
            sprays: false,
            scatters: false,
            permutes: false,
            unbounded_only: false,
            longest: u64::MAX,
            telemetry: false,
            signals: Signals::NONE,
            timers: Vec::new(),
            constant_rate: None,
            uses_deadlines: false,
            samples_rtt: false,
            caps_windows: false,
            pauses: false,
            life_max: None,
            acknowledges: None,
            spacing: None,
            kept: None,
            endpoint,
            for_life: None,
        }
    }

    /// The same, with endpoints that need to know how long packets live.
    fn of_life(framing: Framing, proto: u8, for_life: ForLife) -> Self {
        let endpoint = for_life(Dur::MAX);
        Self { for_life: Some(for_life), ..Self::new(framing, proto, endpoint) }
    }
}

/// What reading a transport needs to know of the rest.
pub(crate) struct Around<'a> {
    /// How senders choose paths.
    pub(crate) mode: Mode,
    /// Hosts of the fabric.
    pub(crate) hosts: u32,
    /// The fabric, whose hosts do not know yet how long packets are.
    pub(crate) topology: &'a Topology,
    /// Paths are relative to this directory.
    pub(crate) dir: &'a Path,
    /// What `kind = "custom"` is.
    pub(crate) custom: Option<CustomTransport>,
}

/// How one transport is read.
pub(crate) type ReadTransport = fn(&mut Reader<'_>, &Around<'_>) -> Checked<Transport>;

/// The transports of every host, one at least, in the order of the file.
pub(crate) struct Transports {
    list: Vec<Transport>,
    /// Where there are several, or one in several parts, what `[[traffic]]` calls each.
    names: Vec<String>,
}

/// There are protocol numbers for so many of one kind, see [`transports::mux::wire_protocols`].
const TRANSPORTS_MAX: usize = 100;

/// Read `[transport]` or all `[[transport]]`. Of several, each needs a `name`.
pub(crate) fn read(tables: &mut [Reader<'_>], around: &Around<'_>) -> Checked<Transports> {
    let several = tables.len() > 1;
    let mut read = Transports { list: Vec::new(), names: Vec::new() };
    for table in tables.iter_mut() {
        let kind = kind(table)?;
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
            return table.fail("kind", message, "one too many", hint);
        }
        read.list.push(transport);
    }
    let is_custom =
        |table: &Reader<'_>| table.peek::<String>("kind").as_deref() == Some(CUSTOM.name);
    if around.custom.is_some()
        && let Some(first) = tables.first()
        && !tables.iter().any(is_custom)
    {
        let hint = "write `kind = \"custom\"`, or give no `transport`";
        return first.fail(
            "kind",
            "the program's own transport has no effect",
            "this one runs",
            hint,
        );
    }
    Ok(read)
}

/// Timers of transports that no answer could come before: it would cross ten metres of fibre and
/// back. A run would be nothing but timeouts, and with the shortest of them never end.
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
fn check_least(table: &Reader<'_>, transport: &Transport) -> Checked<()> {
    if transport.framing.payload < PAYLOAD_MIN {
        let key = table.likeliest(&["payload", "mss"]).unwrap_or("kind");
        let message = format!("packets with {} bytes of payload", transport.framing.payload);
        let hint = format!("{PAYLOAD_MIN} bytes at least: less is nothing but headers");
        return table.fail(key, message, "too small", hint);
    }
    // What counts in times that packets take is none.
    let written = TIMERS.iter().map(|&key| (key, table.peek::<Dur>(key)));
    let of_transport = transport.timers.iter().map(|&(key, wait)| match wait {
        Wait::Time(time) => (key, Some(time)),
        Wait::Packets(_) => (key, None),
    });
    for (key, timer) in written.chain(of_transport) {
        if let Some(timer) = timer.filter(|timer| (Dur(1)..TIMER_MIN).contains(timer)) {
            let error = table.error(key, format!("`{key}` is {timer}"), "too short");
            return Err(error.hint(format!(
                "{TIMER_MIN} at least: no answer comes sooner over ten metres of fibre and back, and \
                 a run of nothing but timeouts would never end"
            )));
        }
    }
    Ok(())
}

impl Transport {
    /// What is wrong with a link of `rate` to a host, if it brings packets closer together than the
    /// circuit of its NIC can do with.
    fn too_close(&self, rate: Rate) -> Option<String> {
        let cycles = cycles_in(rate.serialise(SHORTEST));
        let spacing = self.spacing.filter(|spacing| *spacing > cycles)?;
        Some(format!(
            "packets of {SHORTEST} B come every {cycles} cycles from a link of {rate}, and the \
             circuit of this program takes one every {spacing}"
        ))
    }
}

impl Transports {
    /// As [`Transport::too_close`], of the first of all.
    pub(crate) fn too_close(&self, rate: Rate) -> Option<String> {
        self.list.iter().find_map(|transport| transport.too_close(rate))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Transport> {
        self.list.iter()
    }

    /// The one at this place among the names.
    pub(crate) fn at(&self, place: u8) -> Option<&Transport> {
        self.list.get(usize::from(place)).or(self.list.last())
    }

    /// Its index.
    pub(crate) fn index(&self, place: u8) -> usize {
        usize::from(place).min(self.list.len() - 1)
    }

    /// No packet is under way for longer than `life`.
    pub(crate) fn set_packet_life(&mut self, life: Dur) {
        for transport in &mut self.list {
            if let Some(for_life) = &transport.for_life {
                transport.endpoint = for_life(life);
            }
        }
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
    pub(crate) fn encapsulations(&self, mode: Mode) -> Vec<Encapsulation> {
        let by_mode = |t: &Transport| mode.sprays() && (t.sprays || !mode.needs_spraying());
        let spray = |t: &Transport| t.scatters || by_mode(t);
        let each = self.list.iter().map(|t| Encapsulation { framing: t.framing, spray: spray(t) });
        let each: Vec<Encapsulation> = each.collect();
        // The parts of one travel as it does.
        (0..each.len().max(self.names.len())).map(|at| each[at.min(each.len() - 1)]).collect()
    }

    /// Whether `[[traffic]]` has to say which of them it goes over.
    pub(crate) fn are_several(&self) -> bool {
        !self.names.is_empty()
    }

    /// The one that a table of `[[traffic]]` names, and its place among them. One alone needs no
    /// name.
    pub(crate) fn named(&self, table: &Reader<'_>, wanted: &str) -> Checked<(u8, &Transport)> {
        let mut at = 0;
        if self.are_several() {
            let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
            at = names.iter().position(|&name| name == wanted).ok_or_else(|| {
                let message = format!("no transport is named `{wanted}`");
                let error = table.error("transport", message, "no such name");
                error.hint(did_you_mean(wanted, &names))
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

    /// The endpoint of `host`.
    pub(crate) fn endpoint(&self, host: HostId) -> Made {
        if let [alone] = self.list.as_slice() {
            return (alone.endpoint)(host);
        }
        let parts = self.list.iter().map(|t| Ok((t.proto, (t.endpoint)(host)?)));
        let mux = Mux::new(parts.collect::<Result<_, String>>()?);
        made(mux.ok_or("too many transports of one kind"))
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
) -> Checked<()> {
    let writes = |link: &&Link| link.from.is_switch();
    let coded = |rate: Rate| Hop::rates().iter().any(|gbps| gbps * 1_000_000_000 == rate.0);
    let odd = topology.links().iter().filter(writes).find(|link| !coded(link.rate));
    let asks = tables.iter().zip(&transports.list).find(|(_, transport)| transport.telemetry);
    let (Some(link), Some((table, _))) = (odd, asks) else { return Ok(()) };
    let message = format!("telemetry cannot name links of {}, as switches have here", link.rate);
    let known = Hop::rates().map(|gbps| format!("{gbps}")).join(", ");
    let hint = format!("it has codes for links of these Gb/s: {known}");
    table.fail("kind", message, "it has switches write telemetry", hint)
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

/// Check that no host's link brings packets closer together than the circuit of its NIC can do
/// with: two of the shortest, back to back.
pub(crate) fn check_spacing(
    tables: &[Reader<'_>],
    transports: &Transports,
    topology: &Topology,
) -> Checked<()> {
    let to_hosts = topology.links().iter().filter(|link| matches!(link.to, Node::Host(_)));
    let Some(rate) = to_hosts.map(|link| link.rate).max() else { return Ok(()) };
    let each = tables.iter().zip(&transports.list);
    let mut close = each.filter_map(|(table, transport)| Some((table, transport.too_close(rate)?)));
    let Some((table, message)) = close.next() else { return Ok(()) };
    let hint = "slower links to hosts, or leave out `clocked`: the law of instants has no circuit";
    table.fail("clocked", message, "too close for a circuit", hint)
}

/// That the shortest frames of a link of `rate` come too close for a circuit that takes one every
/// `spacing` cycles, if they do.
fn too_close(rate: Rate, spacing: u64) -> Option<String> {
    let cycles = cycles_in(rate.serialise(SHORTEST));
    (spacing > cycles).then(|| {
        format!(
            "packets of {SHORTEST} B come every {cycles} cycles from a link of {rate}, and the \
             circuit of this program takes one every {spacing}"
        )
    })
}

/// The shortest Ethernet frame, bytes.
const SHORTEST: u64 = 64;

/// The whole cycles of a NIC's clock, 3.2 GHz, in a time.
const fn cycles_in(time: Dur) -> u64 {
    (time.0 as u128 * 2 / 625) as u64
}

/// Published sets of values, each for a payload or segment of so many bytes.
type Presets<C> = [(&'static str, fn(u16) -> C)];

/// The payload of the presets in the reference, bytes.
const USUAL_PAYLOAD: u16 = 1400;

/// The payload that `key` says, for presets that depend on it. The key itself is read later.
fn payload(table: &Reader<'_>, key: &str) -> u16 {
    table.peek(key).map_or(USUAL_PAYLOAD, |Size16(bytes)| bytes.max(1))
}

/// For the reference: `keys` with their values in each of `presets`.
fn sections<C>(
    name: &'static str,
    keys: &'static [Key<C>],
    presets: &'static Presets<C>,
) -> Vec<Section> {
    let presets: Vec<_> = presets.iter().map(|(name, of)| (*name, of(USUAL_PAYLOAD))).collect();
    vec![section(name, keys, &presets, None)]
}

/// The one of `names` that `preset` names, if any.
fn chosen(table: &mut Reader<'_>, names: &[&'static str]) -> Checked<Option<usize>> {
    if !table.has("preset") {
        return Ok(None);
    }
    let chosen: &str = table.choose("preset", names, |name| name)?;
    Ok(names.iter().position(|name| *name == chosen))
}

/// A configuration that is being read.
struct Begun<C> {
    /// What has been read so far, and where nothing has, a preset's values. Without a preset every
    /// key must be written, and they mean nothing.
    config: C,
    /// The preset, if one is in force.
    preset: Option<C>,
    names: Vec<&'static str>,
}

impl<C: Clone> Begun<C> {
    /// With the preset that `table` names, if any, for this payload.
    fn of(table: &mut Reader<'_>, presets: &Presets<C>, payload: u16) -> Checked<Self> {
        let names: Vec<&str> = presets.iter().map(|(name, _)| *name).collect();
        let chosen = chosen(table, &names)?;
        let (_, of) = presets[chosen.unwrap_or(0)];
        let config = of(payload);
        Ok(Self { preset: chosen.map(|_| config.clone()), config, names })
    }

    /// Read `keys`.
    fn keys(&mut self, table: &mut Reader<'_>, keys: &'static [Key<C>]) -> Checked<()> {
        table.keys(keys, &mut self.config, self.preset.as_ref())
    }

    /// All keys are read: the configuration, if none is missing.
    fn finish(self, table: &mut Reader<'_>) -> Checked<C> {
        table.complete(&self.names)?;
        Ok(self.config)
    }

    /// Read `keys`, which are all.
    fn read(mut self, table: &mut Reader<'_>, keys: &'static [Key<C>]) -> Checked<C> {
        self.keys(table, keys)?;
        self.finish(table)
    }
}

/// A configuration that its transport refuses, because of the values of `keys`.
fn refused(table: &Reader<'_>, why: &str, keys: &[&str]) -> Diagnostic {
    // What comes from a preset is not written anywhere; presets alone are never refused.
    let key = table.likeliest(keys).unwrap_or("kind");
    let error = table.error(key, why, "refused");
    error.hint("docs/scenario-reference.md has the range of every key")
}
