//! The `[engine]` table: at which level a scenario is run, as packets or as flows.

use std::ops::ControlFlow;
use std::sync::Arc;

use endpoint::{Framing, Observer};
use fabric::{Outcome, Progress, SkipSpec, Topology, Violated};
use flow::{Config, Law, Rule, Sim};

use crate::diagnostic::{Checked, Diagnostic};
use crate::error::Error;
use crate::key::{Section, keys, section};
use crate::measure::Measure;
use crate::reader::Reader;
use crate::routing::Mode;
use crate::run::{Options, apps};
use crate::scenario::Scenario;
use crate::skip;
use crate::transport::Transports;
use crate::value::choices;

/// What a run consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Packet,
    Flow,
}

choices!(Level, "packet" => Level::Packet, "flow" => Level::Flow);

struct Engine {
    level: Level,
    skip: bool,
    skip_tolerance: f64,
}

keys! { ENGINE: Engine {
    level: Level,
        "`packet`: every packet at every hop. `flow`: messages are fluids that share links, some \
         events for each; for a hundred thousand hosts. No queues, losses and marks then: \
         docs/flow-level.md".default("");
    skip: bool,
        "skip time in which everything repeats: a run of its own, with errors of its own: \
         docs/skip.md".default("");
    skip_tolerance (skip_tolerance when |e| e.skip): f64 [1e-6..=0.999_999],
        "how far three windows may differ that count as alike, as a share of their mean"
        .default("0.05").only("`skip = true`");
}}

/// [`Engine::skip_tolerance`]. Ours: what it does to completion times is measured in docs/skip.md.
const TOLERANCE: f64 = 0.05;

const PACKETS: Engine = Engine { level: Level::Packet, skip: false, skip_tolerance: TOLERANCE };

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
    pub(crate) measure: (&'a Reader<'d>, &'a Measure),
    pub(crate) fault: &'a [Reader<'d>],
    pub(crate) routing: (&'a Reader<'d>, Mode),
    pub(crate) topology: &'a Topology,
}

/// Read `[engine]`. How messages share links, if it is at flow level, and when time is skipped, if
/// it is.
pub(crate) fn read(
    table: &mut Reader<'_>,
    asked: &Asked<'_, '_>,
) -> Checked<(Option<Sharing>, Option<SkipSpec>)> {
    let mut engine = PACKETS;
    table.all_keys(ENGINE, &mut engine)?;
    let skip = engine.skip.then(|| skip::spec(engine.skip_tolerance));
    if engine.level == Level::Packet {
        return skip.map_or(Ok(()), |_| skip::answers(asked)).map(|()| (None, skip));
    }
    if skip.is_some() {
        let error =
            table.error("skip", "time is skipped between packets, and this is flow level", "here");
        return Err(error.hint(
            "`engine.level = \"packet\"`, or no `skip`: flow level has no packets to leave out",
        ));
    }
    answers(asked)?;
    Ok((shares(asked.transport, asked.transports)?, None))
}

/// That everything asked of the run can be answered without packets.
fn answers(asked: &Asked<'_, '_>) -> Checked<()> {
    let refuse = |table: &Reader<'_>, key: &'static str, what: &str| {
        let error =
            table.error(key, format!("{what} is of packets, and this is flow level"), "here");
        Err(error.hint("`engine.level = \"packet\"`"))
    };
    let (table, measure) = asked.measure;
    if let Some(key) = measure.of_packets() {
        return refuse(table, key, "what is measured here");
    }
    for fault in asked.fault {
        let action: String = fault.peek("action").unwrap_or_default();
        if action == "loss" {
            return refuse(fault, "action", "a link that loses some");
        }
        if fault.peek::<bool>("announce") == Some(false) && action != "rate" {
            return refuse(fault, "announce", "a link of which nobody knows that it is down");
        }
    }
    let (table, mode) = asked.routing;
    let how = asked.transports.encapsulations(mode);
    flow::check(asked.topology, &how).map_err(|why| {
        let error = table.error("mode", why, "here");
        error.hint("`ecmp` or `single`; or `engine.level = \"packet\"`")
    })
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
    only: Option<u16>,
    (sharing, observer): (&Sharing, &mut (dyn Observer + Send)),
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Result<Outcome, Box<Violated>>, Error> {
    let fabric = scenario.config.clone();
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
