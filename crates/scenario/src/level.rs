//! The `[engine]` table: at which level a scenario is run, as packets or as flows.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use endpoint::{Framing, Observer};
use fabric::{Outcome, Progress, Routing, SkipSpec, Topology, Violated};
use flow::{Config, Law, Rule, Sim};
use units::{Dur, HostId, Time};

use crate::diagnostic::{Checked, Diagnostic};
use crate::document::{Node, RESOLVED, Value};
use crate::error::Error;
use crate::key::{Section, keys, section};
use crate::measure::Measure;
use crate::reader::Reader;
use crate::routing::Mode;
use crate::run::{Options, apps};
use crate::sample::Sample;
use crate::scenario::Scenario;
use crate::skip;
use crate::transport::Transports;
use crate::value::choices;

/// What a run consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Packet,
    Flow,
    Auto,
}

choices!(Level, "packet" => Level::Packet, "flow" => Level::Flow, "auto" => Level::Auto);

/// At which level a run is, whatever the scenario says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// Every packet at every hop.
    Packet,
    /// Messages as fluids.
    Flow,
}

struct Engine {
    level: Level,
    calibrate: Option<f64>,
    error: Option<f64>,
    skip: bool,
    skip_tolerance: f64,
}

keys! { ENGINE: Engine {
    level: Level,
        "`packet`: every packet at every hop. `flow`: messages are fluids that share links, some \
         events for each; for a hundred thousand hosts. No queues, losses and marks then: \
         docs/flow-level.md. `auto`: `flow` if its measured error is at most `error`, else `packet`"
        .default("");
    calibrate (maybe calibrate when |e| e.level != Level::Packet): f64 [0.01..=0.9],
        "share of the measurement window, from its start, that is run packet by packet first, to \
         correct completion times of all messages at flow level and to measure the error that is \
         left".default("none; required for `auto`").only("`level = \"flow\"` or `\"auto\"`");
    error (maybe error when |e| e.level == Level::Auto): f64 [0.001..=1.0],
        "the largest error of mean, median and 99th percentile of slowdowns of any size that is \
         accepted, as a share".default("required").only("`level = \"auto\"`");
    skip: bool,
        "skip time in which everything repeats: a run of its own, with errors of its own: \
         docs/skip.md".default("");
    skip_tolerance (skip_tolerance when |e| e.skip): f64 [1e-6..=0.999_999],
        "how far three windows may differ that count as alike, as a share of their mean"
        .default("0.05").only("`skip = true`");
}}

/// [`Engine::skip_tolerance`]. Ours: what it does to completion times is measured in docs/skip.md.
const TOLERANCE: f64 = 0.05;

const PACKETS: Engine = Engine {
    level: Level::Packet,
    calibrate: None,
    error: None,
    skip: false,
    skip_tolerance: TOLERANCE,
};

/// For the reference.
pub(crate) fn keys() -> Vec<Section> {
    vec![section("engine", ENGINE, &[], Some(&PACKETS))]
}

/// How messages share links at flow level.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    rule: Rule,
    laws: Vec<Law>,
}

/// Said of each run at flow level.
pub(crate) const MISSING: &str = "flow level: there are no packets, so queues, losses, trims, marks, \
                                  retransmissions and pauses are zero; how far completion times are \
                                  from those of packets: docs/flow-level.md";

/// What is asked of a run, and where it is written.
pub(crate) struct Asked<'a, 'd> {
    pub(crate) transport: &'a [Reader<'d>],
    pub(crate) transports: &'a Transports,
    pub(crate) queue: &'a Reader<'d>,
    pub(crate) traffic: &'a [Reader<'d>],
    pub(crate) measure: (&'a Reader<'d>, &'a Measure),
    pub(crate) fault: &'a [Reader<'d>],
    /// When faults change something.
    pub(crate) changes: &'a BTreeMap<Time, String>,
    pub(crate) routing: (&'a Reader<'d>, Mode),
    pub(crate) topology: &'a Topology,
    /// What `[sweep]` shows.
    pub(crate) metrics: Option<&'a Value>,
}

/// What `[engine]` says.
#[derive(Default)]
pub(crate) struct Levels {
    /// How messages share links, if it is or may be run at flow level.
    pub(crate) sharing: Option<Sharing>,
    /// What of it is run packet by packet first.
    pub(crate) sample: Option<Sample>,
    /// Why `auto` takes packets without a look at a sample.
    pub(crate) why_packets: Option<String>,
    /// When time is skipped, if it is.
    pub(crate) skip: Option<SkipSpec>,
}

/// Read `[engine]`.
pub(crate) fn read(table: &mut Reader<'_>, asked: &Asked<'_, '_>) -> Checked<Levels> {
    let mut engine = PACKETS;
    table.all_keys(ENGINE, &mut engine)?;
    let skip = engine.skip.then(|| skip::spec(engine.skip_tolerance));
    if engine.level == Level::Packet {
        skip.map_or(Ok(()), |_| skip::answers(asked))?;
        return Ok(Levels { skip, ..Levels::default() });
    }
    if skip.is_some() {
        let error =
            table.error("skip", "time is skipped between packets, and this is flow level", "here");
        return Err(error.hint(
            "`engine.level = \"packet\"`, or no `skip`: flow level has no packets to leave out",
        ));
    }
    if engine.level == Level::Auto {
        return auto(table, &engine, asked);
    }
    answers(asked)?;
    let sharing = shares(asked.transport, asked.transports)?;
    let Some(share) = engine.calibrate else { return Ok(Levels { sharing, ..Levels::default() }) };
    let sample = sample(table, share, asked)?;
    if let Some(at) = asked.changes.keys().find(|at| **at >= sample.until) {
        let message =
            format!("the sample is over before the fault at {at}: it knows nothing of it");
        let warning = table.error("calibrate", message, "too early").warning();
        table.warn(warning.hint("a larger share, or an earlier fault"));
    }
    Ok(Levels { sharing, sample: Some(sample), ..Levels::default() })
}

/// Flow level where it answers what is asked, and a sample can say how well.
fn auto(table: &Reader<'_>, engine: &Engine, asked: &Asked<'_, '_>) -> Checked<Levels> {
    let needed = |key: &str, value: Option<f64>, example: &str| {
        value.ok_or_else(|| {
            let error = table.error("level", format!("`auto` needs `{key}`"), "here");
            error.hint(format!("add `{key} = {example}` to [engine]"))
        })
    };
    let wanted = needed("error", engine.error, "0.1")?;
    let share = needed("calibrate", engine.calibrate, "0.2")?;
    let found = answers(asked)
        .and_then(|()| shares(asked.transport, asked.transports))
        .and_then(|sharing| Ok((sharing, sample(table, share, asked)?)));
    let (sharing, sample) = match found {
        Ok(found) => found,
        Err(why) => {
            let why_packets = Some(why.without_hint().to_string());
            return Ok(Levels { why_packets, ..Levels::default() });
        }
    };
    if let Some(at) = asked.changes.keys().find(|at| **at >= sample.until) {
        let why = format!("the sample is over before the fault at {at}");
        return Ok(Levels { why_packets: Some(why), ..Levels::default() });
    }
    let sample = Some(Sample { wanted: Some(wanted), ..sample });
    Ok(Levels { sharing, sample, ..Levels::default() })
}

/// Traffic of which messages are submitted when they are, whatever becomes of others: the same at
/// both levels.
const OPEN: [&str; 7] =
    ["poisson", "flow", "permutation", "random", "incast", "all-to-all", "file"];

/// The sample of `share` of the measurement window.
fn sample(table: &Reader<'_>, share: f64, asked: &Asked<'_, '_>) -> Checked<Sample> {
    let (_, measure) = asked.measure;
    let Some(to) = measure.to else {
        let message = "a sample is a share of the measurement window, which has no end";
        let error = table.error("calibrate", message, "of what?");
        return Err(error.hint("add `to = \"50ms\"` to [measure], or leave `calibrate` out"));
    };
    let kind = |traffic: &Reader<'_>| traffic.peek::<String>("kind").unwrap_or_default();
    let is_open = |traffic: &&Reader<'_>| OPEN.contains(&kind(traffic).as_str());
    if let Some(closed) = asked.traffic.iter().find(|traffic| !is_open(traffic)) {
        let message = format!(
            "`{}` waits for messages, so that others are sent at flow level than over packets: \
             nothing to learn from",
            kind(closed)
        );
        let error = closed.error("kind", message, "here");
        let hint = format!("{}; or no `engine.calibrate`; or packets", OPEN.join(", "));
        return Err(error.hint(hint));
    }
    let length = to.since(measure.from).0 as f64 * share;
    let until = measure.from + Dur(length as u64);
    Ok(Sample { until, wanted: None, at: table.place("calibrate") })
}

/// That everything asked of the run can be answered without packets.
fn answers(asked: &Asked<'_, '_>) -> Checked<()> {
    let (table, measure) = asked.measure;
    if let Some(key) = measure.of_packets() {
        return refuse(table, key, "what is measured here");
    }
    asked.fault.iter().try_for_each(faults)?;
    metrics(asked.metrics)?;
    pauses(asked)?;
    let (table, mode) = asked.routing;
    if mode.switches == Routing::Listed {
        return refuse(table, "mode", "a path from a list");
    }
    let how = asked.transports.encapsulations(mode);
    flow::check(asked.topology, &how).map_err(|why| {
        let error = table.error("mode", why, "here");
        error.hint("`ecmp` or `single`; or `engine.level = \"packet\"`")
    })
}

fn refuse(table: &Reader<'_>, key: &'static str, what: &str) -> Checked<()> {
    let error = table.error(key, format!("{what} is of packets, and this is flow level"), "here");
    Err(error.hint(WITH_PACKETS))
}

/// The rung that has an answer.
const WITH_PACKETS: &str = "`engine.level = \"packet\"`";

fn faults(fault: &Reader<'_>) -> Checked<()> {
    let action: String = fault.peek("action").unwrap_or_default();
    if action == "loss" {
        return refuse(fault, "action", "a link that loses some");
    }
    if fault.peek::<bool>("announce") == Some(false) && action != "rate" {
        return refuse(fault, "announce", "a link of which nobody knows that it is down");
    }
    Ok(())
}

/// That no metric of `[sweep]` is of what only packets have: it would be zero, or have no value.
fn metrics(metrics: Option<&Value>) -> Checked<()> {
    const OF_PACKETS: [&str; 9] = [
        "packets.",
        "timeouts.",
        "queue_bytes.",
        "shared_buffer.",
        "pfc.",
        "rtt_us.",
        "packet_latency_us.",
        "life_us.",
        "messages.with_timeout",
    ];
    let Some(Value::Array(metrics)) = metrics else { return Ok(()) };
    let refuse = |metric: &Node| {
        let Value::Text(text) = &metric.value else { return Ok(()) };
        if !OF_PACKETS.iter().any(|what| text.contains(what)) {
            return Ok(());
        }
        let message = format!("`{text}` is of packets, and this is flow level");
        Err(metric.at.error(message, "here").hint(WITH_PACKETS))
    };
    metrics.iter().try_for_each(refuse)
}

/// That nothing is asked of pauses. Where links can wait for one another in a circle, what flows
/// over them is decided by pauses.
fn pauses(asked: &Asked<'_, '_>) -> Checked<()> {
    let queue = asked.queue;
    if queue.peek::<String>("kind").as_deref() != Some("lossless") {
        return Ok(());
    }
    // A manifest has every default.
    let is_written = |key| queue.has(key) && !queue.place(key).source.name.ends_with(RESOLVED);
    for key in ["watchdog", "deadlock_after"] {
        if is_written(key) {
            return refuse(queue, key, "a deadlock of pauses");
        }
    }
    let (first, last) = (HostId(0), HostId(asked.topology.hosts().saturating_sub(1)));
    match asked.topology.stages(first, last) {
        Some(_) => Ok(()),
        None => refuse(queue, "kind", "a deadlock of pauses, which this fabric can have,"),
    }
}

/// How the messages of these transports share links.
fn shares(transports: &[Reader<'_>], read: &Transports) -> Checked<Option<Sharing>> {
    let mut rules = Vec::new();
    let mut laws = Vec::new();
    for (table, transport) in transports.iter().zip(read.iter()) {
        let kind: String = table.peek("kind").unwrap_or_default();
        let (rule, window) = match kind.as_str() {
            "ndp" | "uet" | "rdma" => (Rule::MaxMin, None),
            "tcp" => (Rule::MaxMin, Some(on_wire(transport.framing, transport.first_window))),
            "homa" | "phost" | "pfabric" => (Rule::ShortestFirst, None),
            _ => {
                let error = table.error("kind", format!("`{kind}` has no flow level"), "here");
                return Err(error.hint(
                    "ndp, uet, rdma, tcp, homa, phost and pfabric have; for this one \
                     `engine.level = \"packet\"`",
                ));
            }
        };
        rules.push(rule);
        laws.push(Law { window });
    }
    let Some((&rule, others)) = rules.split_first() else { return Ok(None) };
    if others.iter().any(|other| *other != rule) {
        let message =
            "at flow level these do not share links: some serve the shortest message first";
        let error = transports[0].error("kind", message, "here");
        return Err(error.hint("`engine.level = \"packet\"`, or one of the two"));
    }
    Ok(Some(Sharing { rule, laws }))
}

/// Bytes on the wire of `payload`: what slow start begins with.
fn on_wire(framing: Framing, payload: u64) -> u64 {
    payload.saturating_add(framing.packets(payload).saturating_mul(framing.overhead.into()))
}

/// That everything asked of the command line can be answered at flow level.
pub(crate) fn check(options: &Options) -> Checked<()> {
    match options.of_packets() {
        Some(what) => {
            let error = Diagnostic::new(format!("{what} is of packets, and this is flow level"));
            Err(error.hint("`--set engine.level=packet`"))
        }
        None => Ok(()),
    }
}

/// Run `scenario` at flow level; of its traffic table `only`, if that is given.
pub(crate) fn run(
    scenario: &Scenario,
    (fabric, only): (fabric::Config, Option<u16>),
    (sharing, observer): (&Sharing, &mut (dyn Observer + Send)),
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Result<Outcome, Box<Violated>>, Error> {
    // The parts of one transport travel as it does.
    let last = sharing.laws.len() - 1;
    let laws = (0..fabric.encapsulations.len()).map(|at| sharing.laws[at.min(last)]).collect();
    let config = Config { rule: sharing.rule, laws, fabric };
    let sim = Sim::new(Arc::clone(&scenario.topology), config, apps(scenario, only)?, observer);
    let sim = sim.map_err(|why| {
        Diagnostic::new(why).hint("`routing.mode = \"ecmp\"` or `\"single\"`, or packets")
    })?;
    let _ = progress(&Progress::default()); // nothing can have failed yet that would stop it
    Ok(sim.run(progress))
}
