//! The `[traffic]` tables: who sends what to whom, and when. A kind is a file here and a row of
//! [`TRAFFIC`].

mod barrier;
mod ends;
mod file;
mod flows;
mod job;
mod job_placement;
mod job_trace;
mod loops;
mod pairs;
mod partition_aggregate;
mod rpc;
mod sizes;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use endpoint::{App, Draw, Purpose, UNBOUNDED};
use fabric::Topology;
use units::{Bytes, Dur, HostId, Rate, Time};
use workload::{
    Aggregate, Destinations, Flow, Gap, HostSet, Placement, Plan, PlanError, Share, Start,
    StartUnit, Stop,
};

use crate::check::demand::Demand;
use crate::diagnostic::Checked;
use crate::fault::Slows;
use crate::key::{Key, Section, keys, section};
use crate::mux::{self, Mux};
use crate::reader::Reader;
use crate::registry::{Kind, kinds};
use crate::scenario::OnReading;
use crate::transport::{Transport, Transports};
use crate::value::choices;

use barrier::{BARRIER, Cap, barrier};
use ends::{INCAST, SENDERS, SOURCES, TO};
use file::{FILE, file};
use flows::{ALL_TO_ALL, FLOW, FLOWS, RANDOM, all_to_all, flow, incast, permutation, random};
use job::{JOB, job};
use loops::{CLOSED_LOOP, Matrix, POISSON, closed_loop, poisson};
use pairs::PAIRS;
use partition_aggregate::{QUERIES, partition_aggregate};
use rpc::{Draws, RPC, rpc};
use sizes::{Length, Lengths, SIZES};

/// All traffic of a scenario.
pub(crate) struct Traffic {
    /// What each table adds, in the order of the file: the index of a table is the tag of its
    /// messages.
    pub(crate) tables: Vec<Part>,
    /// What each table is called; `None` where it has no name.
    pub(crate) names: Vec<Option<String>>,
    hosts: u32,
}

impl Part {
    /// Whether its messages have a deadline.
    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline < Dur::MAX
    }
}

/// What one `[traffic]` table adds.
pub(crate) struct Part {
    /// Which transport carries it, by its place among them.
    pub(crate) transport: u8,
    /// The deadline of its messages, from submission; [`Dur::MAX`]: none.
    deadline: Dur,
    /// When it is over, whatever is under way; [`Time::NEVER`]: never.
    pub(crate) stop: Time,
    /// Its messages, if they are listed.
    pub(crate) plan: Option<Arc<Plan>>,
    /// The most urgent priority but zero that its messages have; zero: none has one.
    pub(crate) priority: u8,
    /// Before this nothing of it begins, ...
    start: Time,
    /// ... nor at or after this, if it is a loop.
    pub(crate) until: Time,
    /// What of it never ends by itself, if something does not.
    pub(crate) endless: Option<&'static str>,
    /// Whether some of it is submitted however many messages are under way.
    pub(crate) open_loop: bool,
    /// Whether windows are capped.
    capped: bool,
    /// The longest messages that it can have, and the keys that say so.
    longest: Vec<(u64, [&'static str; 3])>,
    /// The pairs of a permutation, for tables after it.
    share: Option<Share>,
    /// The training job that it is, if it is one.
    pub(crate) job: Option<Arc<ai::Job>>,
    /// Its applications, each with its host, one of so many.
    apps: MakeApps,
    /// Adds what it asks of the fabric.
    pub(crate) ask: Ask,
}

/// Makes applications for some of so many hosts.
type MakeApps = Box<dyn Fn(u32) -> Result<Vec<HostApp>, PlanError> + Send + Sync>;

/// Adds to a demand.
type Ask = Box<dyn Fn(&mut Demand, &Topology) + Send + Sync>;

/// An application and its host.
type HostApp = (HostId, Box<dyn App>);

/// A host that sends one message after another, and to whom.
type Sender = (HostId, Destinations);

/// A table that is read, and what that needs to know of the rest.
pub(crate) struct Context<'a, 'd> {
    table: &'a mut Reader<'d>,
    /// What it says.
    written: Written,
    /// Paths are relative to this directory.
    dir: &'a Path,
    /// Told how far a long file has been read.
    on_reading: OnReading<'a>,
    /// The draws of this table.
    draw: Draw,
    /// The fabric; connection matrices fail links.
    topology: &'a mut Topology,
    /// The tables before this one, and what they are called.
    before: &'a [Part],
    names: &'a [Option<String>],
    /// GPUs that are slow for some time.
    slows: &'a Slows,
}

/// Some keys, with what the reference calls them.
type Group = (&'static str, &'static [Key<Written>]);

/// How one kind of traffic is read.
pub(crate) struct ReadTraffic {
    /// Its keys, beside those of all kinds.
    keys: &'static [Group],
    /// Reads what else there is, and says what comes of it.
    part: fn(&mut Context<'_, '_>) -> Checked<Part>,
}

/// Kinds of traffic with their keys; those after `or` one reads by itself, some or others.
macro_rules! traffic {
    ($($name:literal, $part:ident, [$($keys:ident),*] $(or [$($more:ident),*])?, $about:literal;)+)
    => {
        kinds! { TRAFFIC: ReadTraffic {$(
            $name,
            ReadTraffic { keys: &[$($keys),*], part: $part },
            || sections(&[ANY, $($keys,)* $($($more),*)?]),
            $about;
        )+}}
    };
}

traffic! {
    "flow", flow, [FLOW, SIZES, FLOWS, PRIORITY], "one message, from one host to another";
    "permutation", permutation, [PAIRS, SIZES, FLOWS, PRIORITY],
        "every host sends to one host and receives from one";
    "random", random, [SOURCES, TO, RANDOM, SIZES, FLOWS, PRIORITY],
        "every host sends to a host drawn at random";
    "incast", incast, [SOURCES, INCAST, SIZES, FLOWS, PRIORITY],
        "many hosts send to one, all at once";
    "all-to-all", all_to_all, [ALL_TO_ALL, SIZES, FLOWS, PRIORITY],
        "every host sends to every other";
    "poisson", poisson, [POISSON, SIZES, PRIORITY] or [SOURCES, SENDERS, TO, PAIRS],
        "messages at random instants, sizes of a distribution, at a stated load";
    "closed-loop", closed_loop, [SOURCES, SENDERS, TO, CLOSED_LOOP, SIZES, PRIORITY],
        "every host keeps a number of messages in flight, the next after a gap";
    "barrier", barrier, [SOURCES, INCAST, BARRIER, CHANNEL, SPAN, PRIORITY],
        "blocks of an incast: the next one is requested when all senders' parts are there";
    "partition-aggregate", partition_aggregate,
        [QUERIES, SIZES, COMPUTE, CHANNEL, SPAN, PRIORITY],
        "queries over a tree of hosts, with deadlines: late answers are dropped";
    "rpc", rpc, [SOURCES, SENDERS, TO, RPC, COMPUTE, CHANNEL, SPAN, PRIORITY],
        "calls in a closed or open loop: a request, a computation, a response";
    "job", job, [JOB, CHANNEL, PRIORITY],
        "a training job: ranks compute, and meet in collectives and messages";
    "file", file, [FILE], "a connection matrix of htsim (.cm) or a list of messages (.csv)";
}

/// For the reference.
fn sections(groups: &[Group]) -> Vec<Section> {
    let usual = Written::default();
    groups.iter().map(|(name, keys)| section(name, keys, &[], Some(&usual))).collect()
}

/// What a table says, by the names of its keys. A kind reads those that it has.
#[derive(Default)]
pub(crate) struct Written {
    /// Whether there are several transports.
    several: bool,
    /// Whether pairs are those of another table, or what it left.
    shared: bool,
    name: Option<String>,
    transport: String,
    deadline: Option<Dur>,
    stop: Option<Time>,
    priority: u8,
    lengths: Lengths,
    start: Time,
    start_spread: Dur,
    every: Option<Dur>,
    until: Option<Time>,
    /// The most blocks, queries or calls.
    most: Option<u64>,
    source: u32,
    destination: u32,
    hosts: HostSet,
    share: Option<f64>,
    rest_of: Option<String>,
    pairs_of: Option<String>,
    sources: HostSet,
    destinations: HostSet,
    longest_path: bool,
    hotspots: Option<HostSet>,
    hotspot_share: f64,
    flows: Option<u32>,
    flows_per_host: Option<u32>,
    random_sources: bool,
    receiver: u32,
    senders: u32,
    other_racks: bool,
    matrix: Matrix,
    load: Option<f64>,
    /// Messages, queries or calls per second.
    rate: Option<f64>,
    connections: u32,
    channel: Channel,
    gap: Dur,
    /// The gap of queries.
    pause: Option<Dur>,
    gap_kind: GapKind,
    keep_destination: bool,
    compute: Option<Dur>,
    compute_kind: GapKind,
    /// The size of every part of a block.
    part: Option<Length>,
    /// That of the requests of queries.
    asked: Length,
    block: Option<Length>,
    request_latency: Dur,
    request_gap: Dur,
    cap: Cap,
    cap_rate: Rate,
    cap_rtt: Dur,
    cap_queue: Bytes,
    cap_senders: Option<u32>,
    fanout: Vec<u32>,
    deadlines: Vec<Dur>,
    roots: HostSet,
    aggregators: Option<HostSet>,
    workers: HostSet,
    placement: Placement,
    aggregate: Option<Aggregate>,
    request: Lengths,
    response: Lengths,
    outstanding: Option<u32>,
    draw_server: Draws,
    file: PathBuf,
    start_unit: StartUnit,
    job: job::Keys,
}

keys! { "traffic" ANY: Written {
    name (maybe name): String,
        "results of this table's messages alone: `traffic.<name>` in [summary.json](results.md)"
            .range("letters, digits, `-`, `_`; no two that differ in `-` and `_` only")
            .default("none");
    transport (transport when |w| w.several): String,
        "which transport carries these messages".range("a name in `[[transport]]`").written()
            .only("several transports");
    deadline (maybe deadline): Dur,
        "when each message should be whole at its receiver, from its submission: `deadlines.met` \
         and `.missed` in [summary.json](results.md). Only `rule = \"d2tcp\"` heeds it. Not for \
         unbounded messages".range("above 0").default("none");
    stop (maybe stop): Time,
        "what is in flight then is given up, and nothing begins any more: connections are closed. \
         Messages that fail so are not delivered".range("above 0").default("none");
}}

keys! { "traffic.priority" PRIORITY: Written {
    priority: u8, "0 is the most urgent; used by NDP's `discipline = \"prio\"`"
        .range("0 to 255").default("");
}}

keys! { "traffic.compute" COMPUTE: Written {
    compute (maybe compute): Dur [Dur::ZERO..=LONGEST],
        "a worker answers, or a server, so long after its request".default("`0`");
    compute_kind (compute_kind when |w| w.compute.is_some()): GapKind,
        "whether that is the time or its mean".written().only("`compute`");
}}

keys! { "traffic.channel" CHANNEL: Written {
    connections (channel): Channel,
        "`persistent`: all messages from one host to another share a connection, its window and \
         its timer; `fresh`: each has its own".written();
}}

keys! { "traffic.span" SPAN: Written {
    start: Time, "when the first block is requested, or query or call may begin".default("");
    until (maybe until): Time,
        "none begins at or after this; one in progress is finished and counts"
            .range("after `start`").default("none");
}}

/// Whether the messages between two hosts share a connection.
#[derive(Clone, Copy, Default, PartialEq)]
enum Channel {
    #[default]
    Persistent,
    Fresh,
}

choices!(Channel, "persistent" => Channel::Persistent, "fresh" => Channel::Fresh);

/// Whether a time is always the same, or that is its mean.
#[derive(Clone, Copy, Default, PartialEq)]
enum GapKind {
    #[default]
    Fixed,
    Exponential,
}

choices!(GapKind, "fixed" => GapKind::Fixed, "exponential" => GapKind::Exponential);

impl GapKind {
    fn of(self, time: Dur) -> Gap {
        match self {
            Self::Fixed => Gap::Fixed(time),
            Self::Exponential => Gap::Exponential(time),
        }
    }
}

impl Written {
    /// How long a host works on what it is asked.
    fn compute(&self) -> Gap {
        self.compute_kind.of(self.compute.unwrap_or_default())
    }

    /// The most blocks, queries or calls.
    fn most(&self) -> u64 {
        self.most.unwrap_or(u64::MAX)
    }

    /// `what`, if neither a time nor a number ends the loop.
    fn endless(&self, what: &'static str) -> Option<&'static str> {
        (self.until.is_none() && self.most.is_none()).then_some(what)
    }
}

impl Context<'_, '_> {
    /// The channel of all messages between two hosts; zero: none.
    fn channel(&self) -> u32 {
        match self.written.channel {
            // A number that no other table, and hardly any file, gives to a channel.
            Channel::Persistent => u32::MAX - self.before.len() as u32,
            Channel::Fresh => 0,
        }
    }

    /// When nothing begins any more; [`Time::NEVER`] if that is not written.
    fn until(&self) -> Checked<Time> {
        let (start, until) = (self.written.start, self.written.until.unwrap_or(Time::NEVER));
        if until <= start {
            let message = "nothing would ever begin: `until` is not after `start`";
            return self.table.fail("until", message, "too early", format!("after \"{start}\""));
        }
        Ok(until)
    }

    /// The hosts of `set`, the value of `key`.
    fn members(&self, key: &str, set: &HostSet) -> Checked<Vec<HostId>> {
        crate::host::members(self.table, key, set, self.topology.hosts())
    }
}

/// The largest latency, computation and round trip of traffic: as that of links.
const LONGEST: Dur = Dur::from_ms(10_000);

/// The time of one signal of a trigger: the least there is. In htsim triggers act at once; here a
/// flow starts two signals after the one before it was acknowledged, or three after it was
/// delivered ([`Plan::schedules`]).
const TRIGGER_DELAY: Dur = Dur(1);

/// Read all `[traffic]` tables.
pub(crate) fn read(
    tables: &mut [Reader<'_>],
    (dir, on_reading): (&Path, OnReading<'_>),
    seed: u64,
    topology: &mut Topology,
    (transports, slows): (&Transports, &Slows),
) -> Checked<Traffic> {
    let mut traffic = Traffic { tables: Vec::new(), names: Vec::new(), hosts: topology.hosts() };
    for (index, table) in tables.iter_mut().enumerate() {
        if index > usize::from(u16::MAX) {
            return Err(table.error("kind", "more than 65536 tables [[traffic]]", "too many"));
        }
        let ReadTraffic { keys, part } = kind(table)?.read;
        let shared = table.has("rest_of") || table.has("pairs_of");
        let several = transports.are_several();
        let mut written = Written { several, shared, ..Written::default() };
        for (_, keys) in [ANY].iter().chain(keys) {
            table.keys(keys, &mut written, None)?;
        }
        table.complete(&[])?;
        check_name(table, written.name.as_deref(), &traffic.names)?;
        let draw = Draw::new(seed, Purpose::new("scenario: traffic"), index as u64);
        let Traffic { tables: before, names, .. } = &traffic;
        let topology = &mut *topology;
        let mut cx =
            Context { table, written, dir, on_reading, draw, topology, before, names, slows };
        let mut part = part(&mut cx)?;
        let Context { table, written, .. } = cx;
        let (place, transport) = transports.named(table, &written.transport)?;
        check(table, &part, &written, transport)?;
        check_longest(table, &part, transport)?;
        part.transport = place;
        part.deadline = written.deadline.unwrap_or(Dur::MAX);
        part.stop = written.stop.unwrap_or(Time::NEVER);
        traffic.tables.push(part);
        traffic.names.push(written.name);
    }
    Ok(traffic)
}

/// What `kind` says. With a `file` it may be left out.
fn kind(table: &mut Reader<'_>) -> Checked<&'static Kind<ReadTraffic>> {
    if table.has("file") && !table.has("kind") {
        table.or("kind", "file".to_owned())?;
        if let Some(kind) = TRAFFIC.iter().find(|kind| kind.name == "file") {
            return Ok(kind);
        }
    }
    table.choose("kind", TRAFFIC, |kind| kind.name)
}

/// Check what a table is called: not as one of `others`. Formulas of studies write `-` as `_`, so
/// names differ in more than that.
fn check_name(table: &Reader<'_>, name: Option<&str>, others: &[Option<String>]) -> Checked<()> {
    let Some(name) = name else { return Ok(()) };
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(good) {
        let error = table.error("name", format!("`{name}` is no name"), "here");
        return Err(error.hint("letters, digits, `-` and `_`"));
    }
    let in_formulas = name.replace('-', "_");
    let same = |other: &&String| other.replace('-', "_") == in_formulas;
    let Some(other) = others.iter().flatten().find(same) else { return Ok(()) };
    let message = match other == name {
        true => format!("there are two tables `{name}`"),
        false => {
            format!("there are tables `{other}` and `{name}`, both `{in_formulas}` in formulas")
        }
    };
    table.fail("name", message, "the second", "give it another name")
}

/// The largest buffer that a NIC can have, bytes: lengths have 16 bits, buffers whole words.
const BUFFER_MAX: u64 = 65_472;

/// Check that `transport` carries messages as long as the longest, where that is known before the
/// run.
fn check_longest(table: &Reader<'_>, part: &Part, transport: &Transport) -> Checked<()> {
    let Some((longest, keys)) = part.longest.iter().find(|(n, _)| *n > transport.longest) else {
        return Ok(());
    };
    let what = match *longest {
        UNBOUNDED => "no message without an end".to_owned(),
        bytes => format!("no message of {}", Bytes(bytes)),
    };
    let key = table.likeliest(keys).unwrap_or("kind");
    let message = format!("this transport carries {what}: the NIC has no buffer for it");
    let error = table.error(key, message, "too long");
    let (most, ever) = (Bytes(transport.longest), Bytes(BUFFER_MAX));
    Err(error.hint(if *longest > BUFFER_MAX {
        format!(
            "{most} at most, {ever} with larger [[transport.buffer]]; `ndp` or `homa` carry more"
        )
    } else {
        format!("{most} at most, or larger [[transport.buffer]]")
    }))
}

/// Check that `transport` does what the table asks of it, and that something happens in time.
fn check(table: &Reader<'_>, part: &Part, written: &Written, transport: &Transport) -> Checked<()> {
    const SIZED: [&str; 5] = ["size", "distribution", "distribution_file", "block", "request"];
    let has_unbounded = part.longest.iter().any(|(longest, _)| *longest == UNBOUNDED);
    let (key, message, label, hint) = if transport.unbounded_only && !part.never_completes() {
        let message = "this transport never learns whether a message has arrived";
        let hint = "its messages have no end: `size = \"unbounded\"`";
        (table.likeliest(&SIZED).unwrap_or("kind"), message, "messages that end", hint)
    } else if part.capped && !transport.caps_windows {
        let message = "this transport has no window that a cap could bound";
        let hint = "`cap = \"none\"`, without its other keys, or a transport `tcp`";
        ("cap", message, "nothing would come of it", hint)
    } else if written.deadline.is_some() && has_unbounded {
        let message = "a message without an end is never whole, whatever its deadline";
        let hint = "leave it out, or give the messages a size";
        ("deadline", message, "for messages that end", hint)
    } else if written.deadline == Some(Dur::ZERO) {
        let message = "no message can be whole at once";
        ("deadline", message, "here", "a time above 0, or leave it out")
    } else if written.stop == Some(Time::ZERO) {
        ("stop", "nothing would ever begin", "too early", "a time above 0, or leave it out")
    } else {
        return Ok(());
    };
    table.fail(key, message, label, hint)
}

impl Traffic {
    /// One application per host; those of table `only`, if that is given.
    pub(crate) fn apps(&self, only: Option<u16>) -> Result<Vec<Box<dyn App>>, PlanError> {
        let mut apps: Vec<Vec<mux::Part>> = (0..self.hosts).map(|_| Vec::new()).collect();
        let wanted = |(table, _): &(u16, _)| only.is_none_or(|only| only == *table);
        for (table, part) in (0..).zip(&self.tables).filter(wanted) {
            let &Part { transport, deadline, stop, .. } = part;
            for (host, app) in (part.apps)(self.hosts)? {
                let app = if stop == Time::NEVER { app } else { Box::new(Stop::new(app, stop)) };
                apps[host.index()].push(mux::Part { table, transport, deadline, app });
            }
        }
        let alone = self.tables.len() == 1;
        Ok(apps.into_iter().map(|apps| Mux::of(apps, alone)).collect())
    }

    /// The tables that are training jobs beside other traffic.
    pub(crate) fn jobs_together(&self) -> impl Iterator<Item = u16> {
        let tables = (0..).zip(&self.tables).filter(|_| self.tables.len() > 1);
        tables.filter(|(_, part)| part.job.is_some()).map(|(table, _)| table)
    }

    /// A kind of traffic that never ends by itself, if there is one.
    pub(crate) fn endless(&self) -> Option<&'static str> {
        self.tables.iter().rev().find_map(|part| part.endless)
    }
}

impl Part {
    /// A loop whose messages have the priority and the times that are `written`.
    fn of_loop(written: &Written, apps: MakeApps, ask: Ask) -> Self {
        Self {
            transport: 0,
            deadline: Dur::MAX,
            stop: Time::NEVER,
            plan: None,
            priority: written.priority,
            start: written.start,
            until: written.until.unwrap_or(Time::NEVER),
            endless: None,
            open_loop: false,
            capped: false,
            longest: Vec::new(),
            share: None,
            job: None,
            apps,
            ask,
        }
    }

    /// Flows with start times and triggers.
    fn of_plan(plan: Plan) -> Self {
        let (plan, of_apps, of_ask) = {
            let plan = Arc::new(plan);
            (Arc::clone(&plan), Arc::clone(&plan), plan)
        };
        let apps = move |hosts| {
            let schedules = of_apps.schedules(hosts, TRIGGER_DELAY)?.into_iter();
            let busy = (0..hosts).map(HostId).zip(schedules).filter(|(_, s)| !s.is_idle());
            Ok(busy.map(|(host, schedule)| (host, Box::new(schedule) as Box<dyn App>)).collect())
        };
        let ask = move |demand: &mut Demand, topology: &Topology| demand.list(&of_ask, topology);
        let longest = plan.flows.iter().map(|flow| flow.len).max().unwrap_or(0);
        Self {
            priority: plan.flows.iter().map(|flow| flow.prio).max().unwrap_or(0),
            endless: (longest == UNBOUNDED).then_some("a flow of unbounded size"),
            longest: vec![(longest, ["size", "distribution", "file"])],
            plan: Some(plan),
            ..Self::of_loop(&Written::default(), Box::new(apps), Box::new(ask))
        }
    }

    /// The longest of its messages, where that is known.
    pub(crate) fn longest(&self) -> Option<u64> {
        self.longest.iter().map(|(longest, _)| *longest).max()
    }

    /// How many of its messages start at `end` or later, and how many there are. Messages that are
    /// not listed count as one.
    pub(crate) fn starting_from(&self, end: Time) -> (usize, usize) {
        let Some(plan) = &self.plan else { return (usize::from(self.start >= end), 1) };
        let late = |flow: &&Flow| matches!(flow.start, Start::At(at) if at >= end);
        (plan.flows.iter().filter(late).count(), plan.flows.len())
    }

    /// Whether no message of it has an end.
    pub(crate) fn never_completes(&self) -> bool {
        let unbounded = |plan: &Arc<Plan>| plan.flows.iter().all(|flow| flow.len == UNBOUNDED);
        self.plan.as_ref().is_some_and(unbounded)
    }
}

/// An application for every sender.
fn each(senders: &[Sender], app: impl Fn(Destinations) -> Box<dyn App>) -> Vec<HostApp> {
    senders.iter().map(|(host, to)| (*host, app(to.clone()))).collect()
}

/// Applications of one kind.
fn boxed<A: App + 'static>(apps: Vec<(HostId, A)>) -> Vec<HostApp> {
    apps.into_iter().map(|(host, app)| (host, Box::new(app) as Box<dyn App>)).collect()
}
