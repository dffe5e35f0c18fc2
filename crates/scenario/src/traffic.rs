//! The `[traffic]` tables: who sends what to whom, and when.

mod barrier;
mod file;
mod flow;
mod pairs;
mod partition_aggregate;
mod poisson;
mod rpc;
mod sizes;

use std::path::Path;
use std::sync::Arc;

use endpoint::{App, Draw, Purpose, Routes, UNBOUNDED};
use fabric::Topology;
use units::{Bytes, Dur, HostId, Time};
use workload::matrix::{self, MatrixError, Pair};
use workload::{
    Arrivals, BarrierSpec, ClosedLoop, ClosedLoopSpec, Destinations, Flow, Gap, HostSet, Plan,
    PlanError, Poisson, PoissonSpec, QuerySpec, Rpc, RpcSpec, Share, Start, Stop,
};

use crate::diagnostic::Diagnostic;
use crate::document::Value;
use crate::mux::{self, Mux};
use crate::reader::Reader;
use crate::registry::Kind;
use crate::transport::{Transport, Transports};
use crate::value::{Form, Refused, ScenarioValue};

use barrier::barrier;
use file::file;
use flow::flow;
use partition_aggregate::partition_aggregate;
use poisson::poisson;
use rpc::rpc;
use sizes::{Sizes, drawn_sizes, sizes};

/// All traffic of a scenario.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// What each table adds, in the order of the file: the index of a table is the tag of its
    /// messages.
    pub(crate) tables: Vec<Part>,
    /// What each table is called; `None` where it has no name.
    pub(crate) names: Vec<Option<String>>,
    /// Which transport carries each, by its place among them.
    transports: Vec<u8>,
    /// The deadline of the messages of each, from submission; [`Dur::MAX`]: none.
    deadlines: Vec<Dur>,
    /// When each is over, whatever is under way; [`Time::NEVER`]: never.
    stops: Vec<Time>,
    hosts: u32,
    /// A kind of traffic that never ends by itself, if there is one.
    pub(crate) endless: Option<&'static str>,
    /// Whether some of it is submitted however many messages are under way.
    pub(crate) open_loop: bool,
}

/// What one `[traffic]` table adds.
#[derive(Debug)]
pub(crate) enum Part {
    /// Flows with start times and triggers.
    Plan(Plan),
    /// Poisson arrivals at some hosts.
    Poisson(Arc<PoissonSpec>, Vec<Sender>),
    /// A closed loop at some hosts.
    ClosedLoop(Arc<ClosedLoopSpec>, Vec<Sender>),
    /// Blocks of an incast.
    Barrier(Arc<BarrierSpec>),
    /// Queries over a tree of hosts.
    Queries(Arc<QuerySpec>),
    /// Calls of some hosts; all others may be called.
    Calls(Arc<RpcSpec>, Vec<Sender>),
}

/// An application and its host.
type HostApp = (HostId, Box<dyn App>);

/// A host that sends one message after another, and to whom.
type Sender = (HostId, Destinations);

/// Between whom the messages of a table go.
struct Ends {
    /// Ascending, each once.
    sources: Vec<HostId>,
    to: Destinations,
}

impl Ends {
    /// Every source sends to any of the destinations.
    fn senders(self) -> Vec<Sender> {
        self.sources.into_iter().map(|host| (host, self.to.clone())).collect()
    }
}

/// What reading a table needs to know of the rest.
pub(crate) struct Context<'a> {
    /// Paths are relative to this directory.
    pub(crate) dir: &'a Path,
    /// The draws of this table.
    pub(crate) draw: Draw,
    /// Its place among the tables.
    pub(crate) table: u16,
    /// The fabric; connection matrices fail links.
    pub(crate) topology: &'a mut Topology,
    /// What the tables before this one have of permutations.
    taken: &'a [pairs::Taken],
    /// That of this table, for those after it; reading it puts it here.
    share: Option<Share>,
}

/// How one kind of traffic is read.
pub(crate) type ReadTraffic = fn(&mut Reader<'_>, &mut Context<'_>) -> Result<Part, Diagnostic>;

/// The time of one signal of a trigger: the least there is. In htsim triggers act at once; here a
/// flow starts two signals after the one before it was acknowledged, or three after it was
/// delivered ([`Plan::schedules`]).
const TRIGGER_DELAY: Dur = Dur(1);

/// What `kind` can be.
pub(crate) const TRAFFIC: &[Kind<ReadTraffic>] = &[
    Kind {
        name: "flow",
        about: "one message, from one host to another",
        read: flow,
        keys: Vec::new,
    },
    Kind {
        name: "permutation",
        about: "every host sends to one host and receives from one",
        read: permutation,
        keys: Vec::new,
    },
    Kind {
        name: "random",
        about: "every host sends to a host drawn at random",
        read: random,
        keys: Vec::new,
    },
    Kind {
        name: "incast",
        about: "many hosts send to one, all at once",
        read: incast,
        keys: Vec::new,
    },
    Kind {
        name: "all-to-all",
        about: "every host sends to every other",
        read: all_to_all,
        keys: Vec::new,
    },
    Kind {
        name: "poisson",
        about: "messages at random instants, sizes of a distribution, at a stated load",
        read: poisson,
        keys: Vec::new,
    },
    Kind {
        name: "closed-loop",
        about: "every host keeps a number of messages in flight, the next after a gap",
        read: closed_loop,
        keys: Vec::new,
    },
    Kind {
        name: "barrier",
        about: "blocks of an incast: the next one is requested when all senders' parts are there",
        read: barrier,
        keys: Vec::new,
    },
    Kind {
        name: "partition-aggregate",
        about: "queries over a tree of hosts, with deadlines: late answers are dropped",
        read: partition_aggregate,
        keys: Vec::new,
    },
    Kind {
        name: "rpc",
        about: "calls in a closed or open loop: a request, a computation, a response",
        read: rpc,
        keys: Vec::new,
    },
    Kind {
        name: "file",
        about: "a connection matrix of htsim (.cm) or a list of messages (.csv)",
        read: file,
        keys: Vec::new,
    },
];

/// Read all `[traffic]` tables.
pub(crate) fn read(
    tables: &mut [Reader<'_>],
    dir: &Path,
    seed: u64,
    topology: &mut Topology,
    transports: &Transports,
) -> Result<Traffic, Diagnostic> {
    let mut traffic = Traffic {
        tables: Vec::with_capacity(tables.len()),
        names: Vec::new(),
        transports: Vec::new(),
        deadlines: Vec::new(),
        stops: Vec::new(),
        hosts: topology.hosts(),
        endless: None,
        open_loop: false,
    };
    let mut taken = Vec::new();
    for (index, table) in tables.iter_mut().enumerate() {
        let Ok(number) = u16::try_from(index) else {
            return Err(table.error("kind", "more than 65536 tables [[traffic]]", "too many"));
        };
        let draw = Draw::new(seed, Purpose::new("scenario: traffic"), index as u64);
        let name = name(table, &traffic.names)?;
        let read = kind(table)?.read;
        let topology = &mut *topology;
        let mut context =
            Context { dir, draw, table: number, topology, taken: &taken, share: None };
        let part = read(table, &mut context)?;
        if let Some(share) = context.share {
            taken.push(pairs::Taken::new(name.clone(), share));
        }
        let (place, transport) = transports.of_traffic(table)?;
        check_end(table, &part, transport)?;
        check_cap(table, &part, transport)?;
        check_longest(table, &part, transport)?;
        traffic.deadlines.push(deadline(table, &part)?);
        traffic.stops.push(stop(table)?);
        traffic.endless = part.endless().or(traffic.endless);
        traffic.open_loop |= part.is_open_loop();
        traffic.tables.push(part);
        traffic.names.push(name);
        traffic.transports.push(place);
    }
    Ok(traffic)
}

/// Check that `transport` carries messages that end, if some do.
fn check_end(table: &Reader<'_>, part: &Part, transport: &Transport) -> Result<(), Diagnostic> {
    let ends = match part {
        Part::Plan(plan) => plan.flows.iter().any(|flow| flow.len != UNBOUNDED),
        Part::Poisson(..)
        | Part::ClosedLoop(..)
        | Part::Barrier(_)
        | Part::Queries(_)
        | Part::Calls(..) => true,
    };
    if !(ends && transport.unbounded_only) {
        return Ok(());
    }
    const KEYS: [&str; 5] = ["size", "distribution", "distribution_file", "block", "request"];
    let key = table.likeliest(&KEYS).unwrap_or("kind");
    let message = "this transport never learns whether a message has arrived";
    let error = table.error(key, message, "messages that end");
    Err(error.hint("its messages have no end: `size = \"unbounded\"`"))
}

/// The largest buffer that a NIC can have, bytes: lengths have 16 bits, buffers whole words.
const BUFFER_MAX: u64 = 65_472;

/// Check that `transport` carries messages as long as the longest, where that is known before the
/// run.
fn check_longest(table: &Reader<'_>, part: &Part, transport: &Transport) -> Result<(), Diagnostic> {
    let drawn = ["size", "distribution", "distribution_file"];
    let requests = ["request", "request_distribution", "request_distribution_file"];
    let responses = ["response", "response_distribution", "response_distribution_file"];
    let longest: [(u64, [&str; 3]); 2] = match part {
        Part::Plan(plan) => {
            let longest = plan.flows.iter().map(|flow| flow.len).max().unwrap_or(0);
            [(longest, ["size", "distribution", "file"]), (0, drawn)]
        }
        Part::Poisson(spec, _) => [(spec.sizes.largest(), drawn), (0, drawn)],
        Part::ClosedLoop(spec, _) => [(spec.sizes.largest(), drawn), (0, drawn)],
        Part::Barrier(spec) => {
            let longest = spec.senders.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
            [(longest, ["size", "block", "size"]), (0, drawn)]
        }
        Part::Queries(spec) => [(spec.request, requests), (spec.longest_answer(), drawn)],
        Part::Calls(spec, _) => {
            [(spec.requests.largest(), requests), (spec.responses.largest(), responses)]
        }
    };
    let Some((longest, keys)) = longest.into_iter().find(|(n, _)| *n > transport.longest) else {
        return Ok(());
    };
    let what = match longest {
        UNBOUNDED => "no message without an end".to_owned(),
        bytes => format!("no message of {}", Bytes(bytes)),
    };
    let key = table.likeliest(&keys);
    let message = format!("this transport carries {what}: the NIC has no buffer for it");
    let error = table.error(key.unwrap_or("kind"), message, "too long");
    let most = Bytes(transport.longest);
    Err(error.hint(if longest > BUFFER_MAX {
        let ever = Bytes(BUFFER_MAX);
        format!(
            "{most} at most, {ever} with larger [[transport.buffer]]; `ndp` or `homa` carry more"
        )
    } else {
        format!("{most} at most, or larger [[transport.buffer]]")
    }))
}

/// Check that `transport` has windows to cap, if they are to be capped.
fn check_cap(table: &Reader<'_>, part: &Part, transport: &Transport) -> Result<(), Diagnostic> {
    let capped = matches!(part, Part::Barrier(spec) if spec.window != u64::MAX);
    if !capped || transport.caps_windows {
        return Ok(());
    }
    let message = "this transport has no window that a cap could bound";
    let error = table.error("cap", message, "nothing would come of it");
    Err(error.hint("`cap = \"none\"`, without its other keys, or a transport `tcp` or `newreno`"))
}

/// When each message of the table should be there, from its submission; [`Dur::MAX`]: no matter
/// when.
fn deadline(table: &mut Reader<'_>, part: &Part) -> Result<Dur, Diagnostic> {
    let Some(deadline) = table.maybe::<Dur>("deadline")? else { return Ok(Dur::MAX) };
    let unbounded = |plan: &Plan| plan.flows.iter().any(|flow| flow.len == UNBOUNDED);
    if matches!(part, Part::Plan(plan) if unbounded(plan)) {
        let message = "a message without an end is never whole, whatever its deadline";
        let error = table.error("deadline", message, "for messages that end");
        return Err(error.hint("leave it out, or give the messages a size"));
    }
    if deadline == Dur::ZERO {
        let error = table.error("deadline", "no message can be whole at once", "here");
        return Err(error.hint("a time above 0, or leave it out"));
    }
    Ok(deadline)
}

/// When the connections of the table are closed, whatever is under way; [`Time::NEVER`]: never.
fn stop(table: &mut Reader<'_>) -> Result<Time, Diagnostic> {
    let Some(stop) = table.maybe::<Time>("stop")? else { return Ok(Time::NEVER) };
    if stop == Time::ZERO {
        let error = table.error("stop", "nothing would ever begin", "too early");
        return Err(error.hint("a time above 0, or leave it out"));
    }
    Ok(stop)
}

/// What a table is called, for results of its own: letters, digits, `-` and `_`, and not as one of
/// `others`. Formulas of studies write `-` as `_`, so names differ in more than that.
fn name(table: &mut Reader<'_>, others: &[Option<String>]) -> Result<Option<String>, Diagnostic> {
    let Some(name) = table.maybe::<String>("name")? else { return Ok(None) };
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(good) {
        let error = table.error("name", format!("`{name}` is no name"), "here");
        return Err(error.hint("letters, digits, `-` and `_`"));
    }
    let in_formulas = |name: &str| name.replace('-', "_");
    let same = |other: &&String| in_formulas(other) == in_formulas(&name);
    if let Some(other) = others.iter().flatten().find(same) {
        let message = match *other == name {
            true => format!("there are two tables `{name}`"),
            false => format!(
                "there are tables `{other}` and `{name}`, both `{}` in formulas",
                in_formulas(&name)
            ),
        };
        return Err(table.error("name", message, "the second").hint("give it another name"));
    }
    Ok(Some(name))
}

/// What `kind` says. With a `file` it may be left out.
fn kind(table: &mut Reader<'_>) -> Result<&'static Kind<ReadTraffic>, Diagnostic> {
    if table.has("file") && !table.has("kind") {
        table.or("kind", "file".to_owned())?;
        if let Some(kind) = TRAFFIC.iter().find(|kind| kind.name == "file") {
            return Ok(kind);
        }
    }
    table.choose("kind", TRAFFIC, |kind| kind.name)
}

impl Traffic {
    /// Which transport carries each table, by its place among them.
    pub(crate) fn transports(&self) -> impl Iterator<Item = u8> {
        self.transports.iter().copied()
    }

    /// When each table is over, whatever is under way; [`Time::NEVER`]: never.
    pub(crate) fn stops(&self) -> impl Iterator<Item = Time> {
        self.stops.iter().copied()
    }

    /// One application per host.
    pub(crate) fn apps(&self) -> Result<Vec<Box<dyn App>>, PlanError> {
        let mut apps: Vec<Vec<mux::Part>> = (0..self.hosts).map(|_| Vec::new()).collect();
        let carried = self.transports.iter().zip(&self.deadlines).zip(&self.stops);
        for ((table, ((&transport, &deadline), &stop)), part) in
            (0..).zip(carried).zip(&self.tables)
        {
            for (host, app) in part.apps(self.hosts)? {
                let app = if stop == Time::NEVER { app } else { Box::new(Stop::new(app, stop)) };
                apps[host.index()].push(mux::Part { table, transport, deadline, app });
            }
        }
        let alone = self.tables.len() == 1;
        Ok(apps.into_iter().map(|apps| Mux::of(apps, alone)).collect())
    }
}

impl Part {
    /// The most urgent priority but zero that its messages have; zero: none has one.
    pub(crate) fn priority(&self) -> u8 {
        match self {
            Self::Plan(plan) => plan.flows.iter().map(|flow| flow.prio).max().unwrap_or(0),
            Self::Poisson(spec, _) => spec.prio,
            Self::ClosedLoop(spec, _) => spec.prio,
            Self::Barrier(spec) => spec.prio,
            Self::Queries(spec) => spec.prio,
            Self::Calls(spec, _) => spec.prio,
        }
    }

    /// How many of its messages start at `end` or later, and how many there are. Messages that are
    /// not listed count as one.
    pub(crate) fn starting_from(&self, end: Time) -> (usize, usize) {
        let alone = |start: Time| (usize::from(start >= end), 1);
        match self {
            Self::Plan(plan) => {
                let late = |flow: &&Flow| matches!(flow.start, Start::At(at) if at >= end);
                (plan.flows.iter().filter(late).count(), plan.flows.len())
            }
            Self::Poisson(..) | Self::ClosedLoop(..) => (0, 1),
            Self::Barrier(spec) => alone(spec.start),
            Self::Queries(spec) => alone(spec.start),
            Self::Calls(spec, _) => alone(spec.start),
        }
    }

    /// Whether no message of it has an end.
    pub(crate) fn never_completes(&self) -> bool {
        matches!(self, Self::Plan(plan) if plan.flows.iter().all(|flow| flow.len == UNBOUNDED))
    }

    /// What of it never ends by itself, if something does not.
    fn endless(&self) -> Option<&'static str> {
        match self {
            Self::Plan(plan) => {
                let unbounded = plan.flows.iter().any(|flow| flow.len == UNBOUNDED);
                unbounded.then_some("a flow of unbounded size")
            }
            Self::Poisson(spec, _) => {
                (spec.until == Time::NEVER).then_some("Poisson traffic without `until`")
            }
            Self::ClosedLoop(..) => Some("a closed loop"),
            Self::Barrier(spec) => {
                (!spec.ends_by_itself()).then_some("a barrier without `until` and `blocks`")
            }
            Self::Queries(spec) => (!spec.ends_by_itself())
                .then_some("a series of queries without `until` and `queries`"),
            Self::Calls(spec, _) => {
                (!spec.ends_by_itself()).then_some("a series of calls without `until` and `calls`")
            }
        }
    }

    /// Whether some of it is submitted however many messages are under way.
    fn is_open_loop(&self) -> bool {
        match self {
            // Queries one after the other, too: at its deadline one leaves behind what is under
            // way.
            Self::Poisson(..) | Self::Queries(_) => true,
            Self::Calls(spec, _) => matches!(spec.arrivals, Arrivals::Poisson(_)),
            Self::Plan(_) | Self::ClosedLoop(..) | Self::Barrier(_) => false,
        }
    }

    /// The applications of this table, each with its host, one of `hosts`.
    fn apps(&self, hosts: u32) -> Result<Vec<HostApp>, PlanError> {
        Ok(match self {
            Self::Plan(plan) => {
                let schedules = plan.schedules(hosts, TRIGGER_DELAY)?.into_iter();
                let busy = (0..hosts).map(HostId).zip(schedules).filter(|(_, s)| !s.is_idle());
                busy.map(|(host, schedule)| (host, Box::new(schedule) as Box<dyn App>)).collect()
            }
            Self::Poisson(spec, senders) => {
                each(senders, |to| Box::new(Poisson::new(Arc::clone(spec), to)))
            }
            Self::ClosedLoop(spec, senders) => {
                each(senders, |to| Box::new(ClosedLoop::new(Arc::clone(spec), to)))
            }
            Self::Barrier(spec) => {
                let apps = spec.apps().into_iter();
                apps.map(|(host, app)| (host, Box::new(app) as Box<dyn App>)).collect()
            }
            Self::Queries(spec) => {
                let apps = spec.apps().into_iter();
                apps.map(|(host, app)| (host, Box::new(app) as Box<dyn App>)).collect()
            }
            Self::Calls(spec, clients) => {
                let mut servers = vec![None; hosts as usize];
                clients.iter().for_each(|(host, to)| servers[host.index()] = Some(to.clone()));
                let app = |to| Box::new(Rpc::new(Arc::clone(spec), to)) as Box<dyn App>;
                (0..hosts).map(HostId).zip(servers.into_iter().map(app)).collect()
            }
        })
    }
}

/// An application for every sender.
fn each(senders: &[Sender], app: impl Fn(Destinations) -> Box<dyn App>) -> Vec<HostApp> {
    senders.iter().map(|(host, to)| (*host, app(to.clone()))).collect()
}

/// The hosts that `key` names; all if it is not there.
fn hosts(
    table: &mut Reader<'_>,
    key: &'static str,
    context: &Context<'_>,
) -> Result<Vec<HostId>, Diagnostic> {
    let set = table.or(key, HostSet::all())?;
    members(table, key, &set, context)
}

/// The hosts of `set`, the value of `key`.
fn members(
    table: &Reader<'_>,
    key: &str,
    set: &HostSet,
    context: &Context<'_>,
) -> Result<Vec<HostId>, Diagnostic> {
    set.members(context.topology.hosts()).map_err(|why| {
        let error = table.error(key, format!("`{key}`: {why}"), "here");
        error.hint(format!("the hosts of the topology are 0 to {}", context.topology.hosts() - 1))
    })
}

/// `sources` and `destinations`, with `hotspots` among these. Every source needs a destination
/// other than itself.
fn ends(table: &mut Reader<'_>, context: &Context<'_>) -> Result<Ends, Diagnostic> {
    let sources = hosts(table, "sources", context)?;
    let destinations = hosts(table, "destinations", context)?;
    if let ([only], Some(host)) =
        (&destinations[..], sources.iter().find(|&h| *h == destinations[0]))
    {
        let message = format!("{host} would send to itself: {only} is the only destination");
        let error = table.error("destinations", message, "here");
        return Err(error.hint("leave that host out of `sources`, or add destinations"));
    }
    let all = destinations.len() == context.topology.hosts() as usize;
    let to = match hotspots(table, context, &destinations)? {
        Some(to) => to,
        None if all => Destinations::all(context.topology.hosts()),
        None => Destinations::among(destinations),
    };
    Ok(Ends { sources, to })
}

/// Who sends one message after another to destinations drawn for each: any, or with `longest_path`
/// only those that no other host is further away from.
fn senders(table: &mut Reader<'_>, context: &Context<'_>) -> Result<Vec<Sender>, Diagnostic> {
    if !table.or("longest_path", false)? {
        return Ok(ends(table, context)?.senders());
    }
    if table.has("hotspots") {
        let message = "`longest_path` and `hotspots` exclude each other";
        return Err(table.error("hotspots", message, "one too many").hint("remove one of them"));
    }
    let (sources, destinations) =
        (hosts(table, "sources", context)?, hosts(table, "destinations", context)?);
    farthest(&sources, &destinations, context.topology).map_err(|(source, longest)| {
        let message = format!("{source} has no destination {longest} links away");
        let error = table.error("longest_path", message, "here");
        error.hint("add destinations, or leave that host out of `sources`")
    })
}

/// Each of `sources` with those of `destinations` that no other host is further away from, or the
/// first source that has none and how far away they would be. How far two hosts are apart depends
/// on their racks alone, so that racks are compared, not hosts.
fn farthest(
    sources: &[HostId],
    destinations: &[HostId],
    topology: &Topology,
) -> Result<Vec<Sender>, (HostId, u32)> {
    /// Hosts of one rack are joined by its switch.
    const IN_RACK: u32 = 2;
    let longest = topology.longest_path();
    let mut racks: Vec<Option<HostId>> = vec![None; topology.racks() as usize];
    for &host in destinations {
        racks[topology.rack(host) as usize].get_or_insert(host);
    }
    let far = |source: HostId, (rack, host): (u32, &Option<HostId>)| match *host {
        None => false,
        Some(_) if rack == topology.rack(source) => longest == IN_RACK,
        Some(host) => topology.hops(source, host) == longest,
    };
    let mut senders: Vec<Sender> = Vec::with_capacity(sources.len());
    // Neighbours have the same far racks, and share the list.
    let mut before: Option<(u32, Vec<bool>, Vec<HostId>, Destinations)> = None;
    for &source in sources {
        let rack = topology.rack(source);
        let known = before.as_ref().filter(|(of, ..)| *of == rack);
        if known.is_none() {
            let racks: Vec<bool> = (0..).zip(&racks).map(|at| far(source, at)).collect();
            let same = before.take().filter(|(_, other, ..)| *other == racks);
            let (list, to) = match same {
                Some((.., list, to)) => (list, to),
                None => {
                    let far = |host: &&HostId| racks[topology.rack(**host) as usize];
                    let list: Vec<HostId> = destinations.iter().filter(far).copied().collect();
                    (list.clone(), Destinations::among(list))
                }
            };
            before = Some((rack, racks, list, to));
        }
        let Some((.., list, to)) = &before else { continue };
        if list.iter().all(|&host| host == source) {
            return Err((source, longest));
        }
        senders.push((source, to.clone()));
    }
    Ok(senders)
}

/// `hotspots` and `hotspot_share`: some of the `destinations` draw a share of all messages.
fn hotspots(
    table: &mut Reader<'_>,
    context: &Context<'_>,
    destinations: &[HostId],
) -> Result<Option<Destinations>, Diagnostic> {
    let Some(set) = table.maybe::<HostSet>("hotspots")? else { return Ok(None) };
    let hotspots = members(table, "hotspots", &set, context)?;
    if let Some(host) = hotspots.iter().find(|host| destinations.binary_search(host).is_err()) {
        let message = format!("{host} is a hotspot and no destination");
        let error = table.error("hotspots", message, "here");
        return Err(error.hint("hotspots are some of the `destinations`"));
    }
    let share = table.need("hotspot_share")?;
    table.within("hotspot_share", share, 0.0..=1.0)?;
    let others: Vec<HostId> =
        destinations.iter().copied().filter(|host| hotspots.binary_search(host).is_err()).collect();
    Ok(Some(Destinations::with_hotspots(hotspots, share, others)))
}

impl ScenarioValue for HostSet {
    fn form() -> Form {
        Form {
            json: vec!["string", "integer"],
            ..Form::new("hosts", "\"0-15, 20\"` or `\"all but 0, 1\"", "")
        }
    }
    fn read(value: &Value) -> Result<Self, Refused> {
        match value {
            Value::Text(text) => {
                text.parse().map_err(|e: workload::HostSetError| e.to_string().into())
            }
            Value::Integer(n) => {
                n.to_string().parse().map_err(|_| format!("{n} is no host").into())
            }
            other => Err(format!("a text that names hosts is wanted, not {}", other.kind()).into()),
        }
    }
    fn show(&self) -> toml::Value {
        toml::Value::String(self.to_string())
    }
}

/// `kind = "permutation"`.
fn permutation(table: &mut Reader<'_>, context: &mut Context<'_>) -> Result<Part, Diagnostic> {
    let share = pairs::read(table, context)?;
    flows(table, context, share.pairs())
}

/// `kind = "random"`: as many flows as sources unless `flows` or `flows_per_host` says otherwise.
fn random(table: &mut Reader<'_>, context: &mut Context<'_>) -> Result<Part, Diagnostic> {
    let Ends { sources, to } = ends(table, context)?;
    let hosts = sources.len() as u32;
    let count = match table.maybe::<u32>("flows_per_host")? {
        Some(_) if table.has("flows") => {
            let message = "`flows` and `flows_per_host` exclude each other";
            return Err(table.error("flows", message, "one too many").hint("remove one of them"));
        }
        Some(n) => table.within("flows_per_host", n, 1..=FLOWS_MAX / hosts)? * hosts,
        None => {
            let count = table.or("flows", hosts)?;
            table.within("flows", count, 1..=FLOWS_MAX)?
        }
    };
    let sources = if table.or("random_sources", false)? {
        matrix::random_sources(&sources, count, context.draw)
    } else {
        sources
    };
    let pairs = matrix::random_pairs(&sources, &to, count, context.draw);
    let pairs = possible(table, "sources", pairs)?;
    flows(table, context, &pairs)
}

/// Whether a pause is `time`, or that is its mean, as `key` says.
fn gap_kind(table: &mut Reader<'_>, key: &'static str, time: Dur) -> Result<Gap, Diagnostic> {
    let kinds = [("fixed", Gap::Fixed(time)), ("exponential", Gap::Exponential(time))];
    table.choose(key, &kinds, |kind| kind.0).map(|kind| kind.1)
}

/// How long a host works on what it is asked: `compute`, nothing without the key.
fn compute(table: &mut Reader<'_>) -> Result<Gap, Diagnostic> {
    let Some(time) = table.maybe("compute")? else { return Ok(Gap::Fixed(Dur::ZERO)) };
    table.within("compute", time, Dur::ZERO..=LONGEST)?;
    gap_kind(table, "compute_kind", time)
}

/// The channel of all messages between two hosts, as `connections` says; zero: none.
fn channel(table: &mut Reader<'_>, context: &Context<'_>) -> Result<u32, Diagnostic> {
    // A number that no other table, and hardly any file, gives to a channel.
    let kinds = [("persistent", u32::MAX - u32::from(context.table)), ("fresh", 0)];
    table.choose("connections", &kinds, |kind| kind.0).map(|kind| kind.1)
}

/// When nothing begins any more; [`Time::NEVER`] without the key.
fn until(table: &mut Reader<'_>, start: Time) -> Result<Time, Diagnostic> {
    let until = table.maybe("until")?.unwrap_or(Time::NEVER);
    if until <= start {
        let message = "nothing would ever begin: `until` is not after `start`";
        return Err(table.error("until", message, "too early").hint(format!("after \"{start}\"")));
    }
    Ok(until)
}

/// When the first job may begin, when no other does, and how many there are at most: `count`.
fn span(table: &mut Reader<'_>, count: &'static str) -> Result<(Time, Time, u64), Diagnostic> {
    let start = table.or("start", Time::ZERO)?;
    let until = until(table, start)?;
    let most: Option<u64> = table.maybe(count)?;
    if let Some(most) = most {
        table.within(count, most, 1..=i64::MAX as u64)?;
    }
    Ok((start, until, most.unwrap_or(u64::MAX)))
}

/// The largest latency, computation and round trip of traffic: as that of links.
const LONGEST: Dur = Dur::from_ms(10_000);

/// More flows than this do not fit into memory as a list.
const FLOWS_MAX: u32 = 16_000_000;

/// `kind = "incast"`.
fn incast(table: &mut Reader<'_>, context: &mut Context<'_>) -> Result<Part, Diagnostic> {
    let pairs = incast_pairs(table, context)?;
    flows(table, context, &pairs)
}

/// `senders` of the `sources`, each with the `receiver`.
fn incast_pairs(table: &mut Reader<'_>, context: &Context<'_>) -> Result<Vec<Pair>, Diagnostic> {
    let hosts_of_fabric = context.topology.hosts();
    let receiver = table.need("receiver")?;
    table.within("receiver", receiver, 0..=hosts_of_fabric - 1)?;
    let receiver = HostId(receiver);
    let mut sources = hosts(table, "sources", context)?;
    sources.retain(|&host| host != receiver);
    let senders = table.need("senders")?;
    table.within("senders", senders, 1..=(sources.len() as u32).max(1))?;
    let rack = hosts_of_fabric / context.topology.racks().max(1);
    let rack = table.or("other_racks", false)?.then_some(rack);
    let pairs = matrix::incast(&sources, receiver, senders, rack, context.draw);
    possible(table, "senders", pairs)
}

/// `kind = "all-to-all"`.
fn all_to_all(table: &mut Reader<'_>, context: &mut Context<'_>) -> Result<Part, Diagnostic> {
    let hosts = hosts(table, "hosts", context)?;
    let pairs = possible(table, "hosts", matrix::all_to_all(&hosts))?;
    flows(table, context, &pairs)
}

fn possible(
    table: &Reader<'_>,
    key: &'static str,
    pairs: Result<Vec<Pair>, MatrixError>,
) -> Result<Vec<Pair>, Diagnostic> {
    pairs.map_err(|why| {
        let error = table.error(key, format!("impossible traffic: {why}"), "here");
        error.hint("change this, or the number of hosts of the topology")
    })
}

/// One flow per pair: its size, its start, its priority. With `every`, the same again and again.
fn flows(
    table: &mut Reader<'_>,
    context: &Context<'_>,
    pairs: &[Pair],
) -> Result<Part, Diagnostic> {
    const SIZE: Purpose = Purpose::new("scenario: flow size");
    const START: Purpose = Purpose::new("scenario: flow start");
    let start = table.or("start", Time::ZERO)?;
    let spread = table.or("start_spread", Dur::ZERO)?;
    let period: Option<Dur> = table.maybe("every")?;
    let rounds = rounds(table, start, period, pairs.len())?;
    let prio = table.or("priority", 0)?;
    let sizes = match period {
        Some(_) => Sizes::Drawn(drawn_sizes(table, context)?),
        None => sizes(table, context)?,
    };
    let mut flows = Vec::with_capacity(rounds.len() * pairs.len());
    let all = rounds.iter().flat_map(|&round| pairs.iter().map(move |&pair| (round, pair)));
    for (i, (round, (src, dst))) in (0..).zip(all) {
        let len = match &sizes {
            Sizes::Unbounded => UNBOUNDED,
            Sizes::Drawn(dist) => dist.sample(context.draw.unit(SIZE, i)),
        };
        let later = match spread {
            Dur::ZERO => Dur::ZERO,
            spread => Dur(context.draw.below(START, i, spread.0)),
        };
        flows.push(Flow { prio, ..Flow::at(round.saturating_add(later), src, dst, len) });
    }
    Ok(Part::Plan(Plan { flows, triggers: Vec::new() }))
}

/// When `flows` flows are submitted, from `start`: once, or every `period` before `until`.
fn rounds(
    table: &mut Reader<'_>,
    start: Time,
    period: Option<Dur>,
    flows: usize,
) -> Result<Vec<Time>, Diagnostic> {
    let Some(period) = period else { return Ok(vec![start]) };
    if !table.has("until") {
        return Err(table.missing("until", "say until when, `until = \"20s\"`"));
    }
    let span = until(table, start)?.since(start);
    let most = u64::from(FLOWS_MAX) / (flows as u64).max(1);
    match span.0.checked_sub(1).and_then(|last| last.checked_div(period.0)) {
        Some(last) if last < most => {
            Ok((0..=last).map(|n| start.saturating_add(Dur(n * period.0))).collect())
        }
        _ => {
            let message = format!("more than {FLOWS_MAX} flows");
            Err(table.error("every", message, "too often").hint("a longer time"))
        }
    }
}

/// `kind = "closed-loop"`.
fn closed_loop(table: &mut Reader<'_>, context: &mut Context<'_>) -> Result<Part, Diagnostic> {
    let senders = senders(table, context)?;
    let connections = table.need("connections")?;
    table.within("connections", connections, 1..=65_536)?;
    let gap = table.need("gap")?;
    let gap = gap_kind(table, "gap_kind", gap)?;
    let keep_destination = table.need("keep_destination")?;
    let prio = table.or("priority", 0)?;
    let sizes = drawn_sizes(table, context)?;
    let until = Time::NEVER;
    let spec = ClosedLoopSpec { connections, sizes, gap, keep_destination, until, prio };
    Ok(Part::ClosedLoop(Arc::new(spec), senders))
}

#[cfg(test)]
mod tests {
    use fabric::{Bcube, Jellyfish, LinkSpec, Vl2};
    use units::Rate;

    use super::*;

    /// By racks the same destinations as host by host.
    #[test]
    fn the_farthest_destinations_are_those_of_every_pair() {
        let link = LinkSpec { rate: Rate(10_000_000_000), delay: Dur::from_us(1) };
        let vl2 = Vl2 {
            aggregation_ports: 4,
            intermediate_ports: 4,
            hosts_per_rack: 2,
            host_link: link,
            switch_link: link,
            shortcut: true,
        };
        let (switches, hosts_per_switch, degree) = (10, 2, 3);
        let (seed, paths, stretch) = (1, 4, 1);
        let jellyfish =
            Jellyfish { switches, degree, hosts_per_switch, seed, paths, stretch, link };
        let shapes = [
            Topology::star(5, link),
            Topology::leaf_spine(3, 2, 4, link, link),
            Topology::fat_tree(4, 1, link),
            Topology::vl2(&vl2),
            Topology::bcube(&Bcube { n: 3, k: 1, stretch: 0, link }),
            Topology::jellyfish(&jellyfish),
        ];
        for topology in shapes.map(Result::unwrap) {
            let hosts: Vec<HostId> = (0..topology.hosts()).map(HostId).collect();
            let some: Vec<HostId> = hosts.iter().copied().filter(|host| host.0 % 3 != 1).collect();
            let found = farthest(&hosts, &some, &topology);
            let far = |src| {
                let longest = topology.longest_path();
                let far = |&&dst: &&HostId| dst != src && topology.hops(src, dst) == longest;
                some.iter().filter(far).copied().collect::<Vec<_>>()
            };
            match hosts.iter().find(|&&src| far(src).is_empty()) {
                Some(&lonely) => {
                    assert_eq!(found.err(), Some((lonely, topology.longest_path())));
                }
                None => {
                    for (src, to) in found.unwrap() {
                        let mut list = to.groups().remove(0).0;
                        list.retain(|&host| host != src);
                        assert_eq!(list, far(src), "{src} of {}", topology.kind());
                    }
                }
            }
        }
    }
}
