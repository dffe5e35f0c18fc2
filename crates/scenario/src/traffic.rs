//! The `[traffic]` tables: who sends what to whom, and when.

use std::path::Path;
use std::sync::Arc;

use endpoint::{App, Draw, Purpose, UNBOUNDED};
use fabric::{Node, Tier, Topology};
use units::{Bytes, Dur, HostId, Time};
use workload::matrix::{self, MatrixError, Pair};
use workload::{
    ClosedLoop, ClosedLoopSpec, Destinations, Flow, Gap, LinkFailure, Plan, PlanError, Poisson,
    PoissonSpec, SizeDist, Start, SwitchType, arrivals,
};

use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::document::Value;
use crate::files;
use crate::mux::Mux;
use crate::reader::{Knob, Reader};
use crate::registry::{Kind, TRAFFIC};
use crate::transport::Transport;

/// All traffic of a scenario.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// Everything with a schedule.
    plan: Option<(Plan, Dur)>,
    /// Everything without, in the order of the file.
    processes: Vec<Process>,
    hosts: u32,
    /// A kind of traffic that never ends by itself, if there is one.
    pub(crate) endless: Option<&'static str>,
    /// Whether some of it is submitted however many messages are under way.
    pub(crate) open_loop: bool,
}

/// Traffic that every host generates for itself.
#[derive(Debug)]
enum Process {
    Poisson(Arc<PoissonSpec>),
    ClosedLoop(Arc<ClosedLoopSpec>),
}

/// What one `[traffic]` table adds.
pub(crate) enum Part {
    /// Flows with start times and triggers.
    Plan(Plan),
    /// Poisson arrivals at every host.
    Poisson(PoissonSpec),
    /// A closed loop at every host.
    ClosedLoop(ClosedLoopSpec),
}

/// What reading a table needs to know of the rest.
pub(crate) struct Context<'a> {
    /// Paths are relative to this directory.
    pub(crate) dir: &'a Path,
    /// The draws of this table.
    pub(crate) draw: Draw,
    /// The fabric; connection matrices fail links.
    pub(crate) topology: &'a mut Topology,
}

/// How one kind of traffic is read.
pub(crate) type ReadTraffic = fn(&mut Reader<'_>, &mut Context<'_>) -> Result<Part, Diagnostic>;

/// The time of one signal of a trigger: the least there is. In htsim triggers act at once; here a
/// flow starts two signals after the one before it was acknowledged, or three after it was
/// delivered ([`Plan::schedules`]).
const TRIGGER_DELAY: Dur = Dur(1);

/// Read all `[traffic]` tables.
pub(crate) fn read(
    tables: &mut [Reader<'_>],
    dir: &Path,
    seed: u64,
    topology: &mut Topology,
    transport: &Transport,
) -> Result<Traffic, Diagnostic> {
    let hosts = topology.hosts();
    let processes = Vec::new();
    let mut traffic = Traffic { plan: None, processes, hosts, endless: None, open_loop: false };
    for (index, table) in tables.iter_mut().enumerate() {
        let draw = Draw::new(seed, Purpose::new("scenario: traffic"), index as u64);
        let read = kind(table)?.read;
        let mut context = Context { dir, draw, topology: &mut *topology };
        let part = read(table, &mut context)?;
        check_end(table, &part, transport)?;
        match part {
            Part::Plan(plan) => {
                if plan.flows.iter().any(|flow| flow.len == UNBOUNDED) {
                    traffic.endless = Some("a flow of unbounded size");
                }
                traffic.add(plan);
            }
            Part::Poisson(spec) => {
                traffic.endless = Some("Poisson traffic");
                traffic.open_loop = true;
                traffic.processes.push(Process::Poisson(Arc::new(spec)));
            }
            Part::ClosedLoop(spec) => {
                traffic.endless = Some("a closed loop");
                traffic.processes.push(Process::ClosedLoop(Arc::new(spec)));
            }
        }
    }
    Ok(traffic)
}

/// Check that `transport` carries messages that end, if some do.
fn check_end(table: &Reader<'_>, part: &Part, transport: &Transport) -> Result<(), Diagnostic> {
    let ends = match part {
        Part::Plan(plan) => plan.flows.iter().any(|flow| flow.len != UNBOUNDED),
        Part::Poisson(_) | Part::ClosedLoop(_) => true,
    };
    if !(ends && transport.unbounded_only) {
        return Ok(());
    }
    let key = table.likeliest(&["size", "distribution", "distribution_file"]).unwrap_or("kind");
    let message = "this transport never learns whether a message has arrived";
    let error = table.error(key, message, "messages that end");
    Err(error.hint("its messages have no end: `size = \"unbounded\"`"))
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
    /// Add `plan`, its triggers renumbered.
    fn add(&mut self, plan: Plan) {
        let (all, _) = self.plan.get_or_insert_with(|| (Plan::default(), TRIGGER_DELAY));
        let base = all.triggers.len() as u32;
        let moved = |trigger: Option<u32>| trigger.map(|t| t + base);
        all.flows.extend(plan.flows.into_iter().map(|flow| Flow {
            start: match flow.start {
                Start::Trigger(trigger) => Start::Trigger(trigger + base),
                at => at,
            },
            on_acked: moved(flow.on_acked),
            on_delivered: moved(flow.on_delivered),
            ..flow
        }));
        all.triggers.extend(plan.triggers);
    }

    /// One application per host.
    pub(crate) fn apps(&self) -> Result<Vec<Box<dyn App>>, PlanError> {
        let mut apps: Vec<Vec<Box<dyn App>>> = (0..self.hosts).map(|_| Vec::new()).collect();
        if let Some((plan, delay)) = &self.plan {
            for (mine, schedule) in apps.iter_mut().zip(plan.schedules(self.hosts, *delay)?) {
                mine.push(Box::new(schedule));
            }
        }
        let to = Destinations::all(self.hosts);
        for process in &self.processes {
            for mine in &mut apps {
                mine.push(match process {
                    Process::Poisson(spec) => Box::new(Poisson::new(Arc::clone(spec), to.clone())),
                    Process::ClosedLoop(spec) => {
                        Box::new(ClosedLoop::new(Arc::clone(spec), to.clone()))
                    }
                });
            }
        }
        Ok(apps.into_iter().map(Mux::of).collect())
    }
}

/// `kind = "permutation"`.
pub(crate) fn permutation(
    table: &mut Reader<'_>,
    context: &mut Context<'_>,
) -> Result<Part, Diagnostic> {
    let pairs = matrix::permutation(context.topology.hosts(), context.draw);
    let pairs = possible(table, "kind", pairs)?;
    flows(table, context, &pairs)
}

/// `kind = "random"`: as many flows as hosts unless `flows` says otherwise.
pub(crate) fn random(
    table: &mut Reader<'_>,
    context: &mut Context<'_>,
) -> Result<Part, Diagnostic> {
    let hosts = context.topology.hosts();
    let count = table.or("flows", hosts)?;
    table.within("flows", count, 1..=FLOWS_MAX)?;
    let pairs = possible(table, "flows", matrix::random_pairs(hosts, count, context.draw))?;
    flows(table, context, &pairs)
}

/// More flows than this do not fit into memory as a list.
const FLOWS_MAX: u32 = 16_000_000;

/// `kind = "incast"`.
pub(crate) fn incast(
    table: &mut Reader<'_>,
    context: &mut Context<'_>,
) -> Result<Part, Diagnostic> {
    let topology = &context.topology;
    let hosts = topology.hosts();
    let receiver = HostId(table.need("receiver")?);
    if receiver.0 >= hosts {
        let error = MatrixError::NoSuchHost { host: receiver, hosts };
        possible(table, "receiver", Err(error))?;
    }
    let senders = table.need("senders")?;
    table.within("senders", senders, 1..=hosts - 1)?;
    let rack = hosts / topology.racks().max(1);
    let rack = table.or("other_racks", false)?.then_some(rack);
    let pairs = matrix::incast(hosts, receiver, senders, rack, context.draw);
    let pairs = possible(table, "senders", pairs)?;
    flows(table, context, &pairs)
}

/// `kind = "all-to-all"`.
pub(crate) fn all_to_all(
    table: &mut Reader<'_>,
    context: &mut Context<'_>,
) -> Result<Part, Diagnostic> {
    let pairs = possible(table, "kind", matrix::all_to_all(context.topology.hosts()))?;
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

/// One flow per pair: its size, its start, its priority.
fn flows(
    table: &mut Reader<'_>,
    context: &Context<'_>,
    pairs: &[Pair],
) -> Result<Part, Diagnostic> {
    const SIZE: Purpose = Purpose::new("scenario: flow size");
    let start = table.or("start", Time::ZERO)?;
    let prio = table.or("priority", 0)?;
    let sizes = match sizes(table, context, true)? {
        Sizes::Unbounded => None,
        Sizes::Drawn(dist) => Some(dist),
    };
    let len = |i: usize| match &sizes {
        None => UNBOUNDED,
        Some(dist) => dist.sample(context.draw.unit(SIZE, i as u64)),
    };
    let mut plan = Plan::of_pairs(pairs, start, len);
    plan.flows.iter_mut().for_each(|flow| flow.prio = prio);
    Ok(Part::Plan(plan))
}

/// `kind = "poisson"`. Open loop, under way from time zero until the run ends, so that what is
/// measured is drained under continuing load.
pub(crate) fn poisson(
    table: &mut Reader<'_>,
    context: &mut Context<'_>,
) -> Result<Part, Diagnostic> {
    enough_hosts(table, context)?;
    let load: f64 = table.need("load")?;
    table.within("load", load, 0.0001..=10.0)?;
    let prio = table.or("priority", 0)?;
    let sizes = drawn_sizes(table, context)?;
    // Load is relative to a host's own link: that of host 0, whose number is also its link's.
    let rate = context.topology.links().first().map_or(units::Rate(0), |link| link.rate);
    let mean_gap_ps = arrivals::mean_gap_ps(load, rate, sizes.mean())
        .ok_or_else(|| table.error("load", "this load cannot be offered", "here"))?;
    Ok(Part::Poisson(PoissonSpec { mean_gap_ps, sizes, until: Time::NEVER, prio }))
}

/// `kind = "closed-loop"`.
pub(crate) fn closed_loop(
    table: &mut Reader<'_>,
    context: &mut Context<'_>,
) -> Result<Part, Diagnostic> {
    enough_hosts(table, context)?;
    let connections = table.need("connections")?;
    table.within("connections", connections, 1..=65_536)?;
    let gap = table.need("gap")?;
    let kinds = [("fixed", Gap::Fixed(gap)), ("exponential", Gap::Exponential(gap))];
    let &(_, gap) = table.choose("gap_kind", &kinds, |k| k.0)?;
    let keep_destination = table.need("keep_destination")?;
    let prio = table.or("priority", 0)?;
    let sizes = drawn_sizes(table, context)?;
    let until = Time::NEVER;
    Ok(Part::ClosedLoop(ClosedLoopSpec { connections, sizes, gap, keep_destination, until, prio }))
}

fn enough_hosts(table: &Reader<'_>, context: &Context<'_>) -> Result<(), Diagnostic> {
    match context.topology.hosts() {
        hosts @ 0..2 => possible(table, "kind", Err(MatrixError::TooFewHosts(hosts))).map(drop),
        _ => Ok(()),
    }
}

/// How long the messages of a table are.
enum Sizes {
    /// They never end.
    Unbounded,
    /// Drawn from this; a fixed size is a distribution, too.
    Drawn(SizeDist),
}

/// A size or "unbounded", as one writes it.
struct Size(Option<u64>);

/// Larger messages than this are refused: 1 PB takes ten days at 10 Gb/s.
const SIZE_MAX: u64 = 1_000_000_000_000_000;

impl Knob for Size {
    const EXAMPLE: &'static str = "\"135KB\"";
    fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "unbounded" => Ok(Self(None)),
            _ => match Bytes::read(value)? {
                Bytes(0) => Err("a message needs at least one byte".to_owned()),
                Bytes(n) if n > SIZE_MAX => Err(format!("{n} bytes is more than {SIZE_MAX}")),
                Bytes(n) => Ok(Self(Some(n))),
            },
        }
    }
    fn show(&self) -> toml::Value {
        self.0.map_or_else(|| toml::Value::String("unbounded".to_owned()), |n| Bytes(n).show())
    }
}

fn drawn_sizes(table: &mut Reader<'_>, context: &Context<'_>) -> Result<SizeDist, Diagnostic> {
    match sizes(table, context, false)? {
        Sizes::Drawn(dist) => Ok(dist),
        Sizes::Unbounded => Err(table
            .error("size", "messages that come one after another must end", "never ends")
            .hint("give a size such as \"135KB\", or a distribution")),
    }
}

/// Exactly one of `size`, `distribution` (a published one) and `distribution_file` (points).
fn sizes(
    table: &mut Reader<'_>,
    context: &Context<'_>,
    may_be_unbounded: bool,
) -> Result<Sizes, Diagnostic> {
    const KEYS: [&str; 3] = ["size", "distribution", "distribution_file"];
    let given: Vec<&str> = KEYS.into_iter().filter(|key| table.has(key)).collect();
    if let [_, second, ..] = given.as_slice() {
        let message = format!("`{}` and `{second}` exclude each other", given[0]);
        return Err(table.error(second, message, "one too many").hint("remove one of them"));
    }
    if let Some(Size(size)) = table.maybe("size")? {
        return Ok(size.map_or(Sizes::Unbounded, |n| Sizes::Drawn(SizeDist::fixed(n))));
    }
    let dist = if let Some(name) = table.maybe::<String>("distribution")? {
        SizeDist::shipped(&name).ok_or_else(|| {
            let names: Vec<&str> = SizeDist::names().collect();
            let error =
                table.error("distribution", format!("unknown distribution `{name}`"), "here");
            error.hint(did_you_mean(&name, &names))
        })?
    } else if table.has("distribution_file") {
        let file = files::read(table, "distribution_file", context.dir)?;
        let dist = workload::read_sizes(&file.source.text, &file.source.name);
        dist.map_err(|e| files::located(&file.source, &e))?
    } else {
        let unbounded = if may_be_unbounded { " or \"unbounded\"" } else { "" };
        let hint = format!("add `size = \"135KB\"`{unbounded}, or `distribution = \"web-search\"`");
        return Err(table.missing("size", &hint));
    };
    describe(table, &dist)?;
    Ok(Sizes::Drawn(dist))
}

/// Say in the resolved scenario what a distribution is. When that is read again, it is a comment.
fn describe(table: &mut Reader<'_>, dist: &SizeDist) -> Result<(), Diagnostic> {
    let _ = table.table("about")?;
    let about = dist.about();
    let (smallest, largest) = dist.range();
    let sampling = dist.sampling().map(|s| format!("{s:?}").to_lowercase());
    let rows = [
        ("title", about.title.clone()),
        ("publication", about.publication.clone()),
        ("source", about.source.clone()),
        ("sampling", sampling.unwrap_or_default()),
        ("mean_bytes", format!("{:.1}", dist.mean())),
        ("smallest", Bytes(smallest).to_string()),
        ("largest", Bytes(largest).to_string()),
    ];
    let rows = rows.into_iter().map(|(key, text)| (key.to_owned(), toml::Value::String(text)));
    table.keep("about", rows.collect());
    Ok(())
}

/// `kind = "file"`: a connection matrix of htsim (`.cm`) or a list of messages (`.csv`).
pub(crate) fn file(table: &mut Reader<'_>, context: &mut Context<'_>) -> Result<Part, Diagnostic> {
    let file = files::read(table, "file", context.dir)?;
    let source = &file.source;
    let located = |e: workload::TextError| files::located(source, &e);
    let hosts = context.topology.hosts();
    let plan = match file.path.extension().and_then(|e| e.to_str()) {
        Some("cm") => {
            let matrix = workload::read_cm(&source.text, &source.name).map_err(located)?;
            matrix.check_hosts(hosts).map_err(located)?;
            for failure in &matrix.failures {
                fail(table, failure, context.topology)?;
            }
            matrix.plan()
        }
        Some("csv") => {
            let messages = workload::read_messages(&source.text, &source.name).map_err(located)?;
            messages.check_hosts(hosts).map_err(located)?;
            messages.plan()
        }
        _ => {
            let message = format!("`{}` is neither .cm nor .csv", source.name);
            let error = table.error("file", message, "unknown kind of file");
            return Err(error.hint("a connection matrix of htsim (.cm) or messages (.csv)"));
        }
    };
    if plan.flows.is_empty() {
        let error = table.error("file", format!("`{}` has no messages", source.name), "empty");
        return Err(error.hint("give a file with at least one message"));
    }
    let count = |n: usize| toml::Value::Integer(n as i64);
    let rows = [("messages", count(plan.flows.len())), ("triggers", count(plan.triggers.len()))];
    table.keep("about", rows.map(|(key, value)| (key.to_owned(), value)).into_iter().collect());
    Ok(Part::Plan(plan))
}

/// A `failure` line: uplink `link` of a switch, both directions.
fn fail(
    table: &Reader<'_>,
    failure: &LinkFailure,
    topology: &mut Topology,
) -> Result<(), Diagnostic> {
    let tier = match failure.switch_type {
        SwitchType::Tor => Tier::Tor,
        SwitchType::Agg => Tier::Agg,
        SwitchType::Core => Tier::Core,
    };
    let from = Node::Switch(tier, failure.switch);
    let mut uplinks = topology.links().iter().filter(|l| l.from == from && l.to > from);
    let Some(up) = uplinks.nth(failure.link as usize).copied() else {
        let message = format!("a failure names uplink {} of {from}", failure.link);
        let error = table.error("file", message, "the topology has no such link");
        return Err(error.hint("use the topology that the file was made for"));
    };
    for (from, to) in [(up.from, up.to), (up.to, up.from)] {
        if let Some(link) = topology.find_link(from, to) {
            topology.fail_link(link);
        }
    }
    Ok(())
}
