//! A scenario on this machine: real hosts and switches in network namespaces, with the simulator's
//! applications, transports, queues and result files.
//!
//! [`up`] makes the namespaces, [`run()`] runs the scenario in them, [`down`] removes them, also
//! those that a crash has left. What only the simulator can do is refused, with the place in the
//! file.

mod begin;
mod capture;
mod check;
mod cost;
mod hosts;
mod outcome;
mod state;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ::switch::{Backend, Harm, Interface, Seen, SmallPages, Switch, Totals, Watch, netns};

use fabric::Node;
use metrics::OutputDir;
use units::{Dur, HostId, Time};

use crate::error::Error;
use metrics::Summary;

use crate::run::{self, Options, Ran};
use crate::{Scenario, unwritable};

pub use cost::Cost;
pub use state::Testbed;

use capture::Capture;
use hosts::{Ended, Shared};

/// How a testbed is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wires {
    /// What happens to the frames of all switches.
    pub harm: Harm,
    /// Hosts and switches use AF_XDP, not UDP sockets and AF_PACKET.
    pub xdp: bool,
    /// They never sleep: each takes a core, and saves being woken.
    pub busy: bool,
}

/// What the threads of a run share, beside the scenario.
struct Run<'a> {
    bed: &'a Testbed,
    wires: Wires,
    shared: &'a Shared,
    /// Where frames are captured.
    capture: Option<&'a Capture>,
}

/// Frames that leave later than this make completion times those of this machine.
const LATE: Dur = Dur::from_us(500);
/// How often is looked whether a run is over.
const LOOK: Duration = Duration::from_millis(2);

impl Scenario {
    /// The switch `node` of this scenario, for real frames.
    ///
    /// # Errors
    /// There is none, or the scenario has what only the simulator can do.
    pub fn switch(&self, node: Node) -> Result<Switch, Error> {
        Ok(check::switch(self, node)?)
    }

    /// Play the record of a switch to the simulator: how many packets and events were the same.
    ///
    /// # Errors
    /// Something was not, or the record is none of this scenario's switch.
    pub fn replay(&self, record: &[::switch::record::Entry]) -> Result<(u64, u64), Error> {
        let agreement = ::switch::replay(&self.topology, &self.config, record);
        let agreement = agreement.map_err(|why| Error::Run {
            what: format!("the simulator does something else: {why}"),
            hint: "the same scenario, seed and --set as when it was recorded?".to_owned(),
        })?;
        Ok((agreement.packets, agreement.events))
    }
}

/// Make the namespaces of `scenario`, called `name`.
///
/// # Errors
/// The scenario cannot run in them, some are there already, or this user may not make any.
pub fn up(scenario: &Scenario, name: &str) -> Result<Testbed, Error> {
    check::scenario(scenario)?;
    Ok(Testbed::up(name, &scenario.topology, check::mtu(scenario)?)?)
}

/// Remove the namespaces of the testbed called `name`, and nothing else. How many there were.
///
/// # Errors
/// There is no testbed of that name, or this user may not remove it.
pub fn down(name: &str) -> Result<usize, Error> {
    Ok(Testbed::find(name)?.down()?)
}

/// Run `scenario` in the namespaces called `name`, and put the simulator's result files into `out`,
/// which the caller then commits; and `cpu.csv`, of what is returned, too: what packets cost. Of
/// what `options` trace, packets can be had, as captures of all links at their switches.
///
/// # Errors
/// The namespaces are those of another topology, or something in them stops working.
pub fn run(
    scenario: &Scenario,
    name: &str,
    wires: Wires,
    options: &Options,
    out: &OutputDir,
) -> Result<(Summary, Vec<Cost>), Error> {
    check::scenario(scenario)?;
    let _pages = SmallPages::new();
    let bed = Testbed::find(name)?;
    bed.check(&scenario.topology, check::mtu(scenario)?)?;
    let began = Instant::now();
    let capture = options.trace.packets.then(|| Capture::new(out, scenario));
    let capture = capture.transpose().map_err(|e| unwritable(&e))?;
    let (hosts, switches, complete) = live(scenario, &bed, wires, capture.as_ref())?;
    let wall_s = began.elapsed().as_secs_f64();
    let outcome = outcome::outcome(scenario, &hosts, &switches, complete);
    let recorded = outcome::recorded(scenario, &hosts, out).map_err(|e| unwritable(&e))?;
    let warnings = switches.iter().flat_map(Switched::warnings).collect();
    let ran = Ran {
        outcome,
        recorded,
        latencies: None,
        wall_s,
        violation: None,
        is_partial: false,
        warnings,
        alone: Vec::new(),
        calibration: metrics::Calibration::default(),
    };
    let summary = run::write(scenario, options, &ran, out).map_err(|e| unwritable(&e))?;
    let costs = costs(&hosts, &switches);
    capture.map_or(Ok(()), Capture::finish).map_err(|e| unwritable(&e))?;
    out.text("cpu.csv", &cost::csv(&costs)).map_err(|e| unwritable(&e))?;
    Ok((summary, costs))
}

fn costs(hosts: &[Ended], switches: &[Switched]) -> Vec<Cost> {
    let host = |(n, Ended { counters: c, cpu, .. }): (u32, &Ended)| Cost {
        node: Node::Host(n),
        packets: c.sent + c.received,
        cpu: *cpu,
    };
    let switch = |Switched { node, switch, cpu, .. }: &Switched| {
        let packets = switch.counters().map(|c| c.received + c.sent).sum();
        Cost { node: *node, packets, cpu: *cpu }
    };
    (0..).zip(hosts).map(host).chain(switches.iter().map(switch)).collect()
}

/// A switch after a run, and what its wires did.
struct Switched {
    node: Node,
    switch: Switch,
    totals: Totals,
    cpu: Dur,
}

impl Switched {
    /// What a reader should know of the wires before trusting the numbers.
    fn warnings(&self) -> Vec<String> {
        let (node, totals) = (self.node, &self.totals);
        let mut warnings = Vec::new();
        if totals.latest > LATE {
            let late = totals.latest.as_us_f64();
            warnings.push(format!(
                "{node} sent a frame {late:.0} us late: this machine was busy with something else"
            ));
        }
        let lost = totals.overflowed + totals.refused + totals.too_long;
        if lost > 0 {
            warnings.push(format!("{node}: the kernel lost {lost} frames beside the scenario"));
        }
        warnings
    }
}

/// Everything runs, each in a thread of its own, which is in its own namespace. Hosts, switches,
/// and whether all that is waited for was done in time.
fn live(
    scenario: &Scenario,
    bed: &Testbed,
    wires: Wires,
    capture: Option<&Capture>,
) -> Result<(Vec<Ended>, Vec<Switched>, bool), Error> {
    let nodes = check::switches(scenario);
    let parties = hosts::parties(scenario)?;
    let shared = &Shared::new(scenario, nodes.len() + parties.len());
    let run = &Run { bed, wires, shared, capture };
    std::thread::scope(|scope| {
        let switch = |node| scope.spawn(move || switched(scenario, node, run));
        let switches: Vec<_> = nodes.into_iter().map(switch).collect();
        let host = |(me, party)| {
            scope.spawn(move || hosts::run(scenario, (bed, wires), me, party, shared))
        };
        let hosts: Vec<_> = (0..).map(HostId).zip(parties).map(host).collect();
        let complete = wait(scenario, shared);
        shared.stop.store(true, Ordering::Relaxed);
        let hosts: Vec<_> = hosts.into_iter().map(|host| joined(host.join())).collect();
        let switches: Vec<_> = switches.into_iter().map(|one| joined(one.join())).collect();
        // Of those who could not begin one is an error; the others have only waited for it.
        let hosts: Vec<Option<Ended>> = hosts.into_iter().collect::<Result<_, _>>()?;
        let switches: Vec<Option<Switched>> = switches.into_iter().collect::<Result<_, _>>()?;
        Ok((
            hosts.into_iter().flatten().collect(),
            switches.into_iter().flatten().collect(),
            complete,
        ))
    })
}

/// What a thread came to.
fn joined<T>(result: std::thread::Result<Result<T, Error>>) -> Result<T, Error> {
    result.unwrap_or_else(|_| {
        let (what, hint) = ("a thread of the testbed panicked".to_owned(), String::new());
        Err(Error::Run { what, hint })
    })
}

/// Run switch `node` until the run is over. `None` if it never began.
fn switched(scenario: &Scenario, node: Node, run: &Run<'_>) -> Result<Option<Switched>, Error> {
    let Run { bed, shared, wires: Wires { harm, xdp, busy }, .. } = *run;
    let mut switch = check::switch(scenario, node)?;
    let links: Vec<(u32, u32)> = switch.links().collect();
    let stop = &shared.stop;
    let backend = if xdp { Backend::Xdp } else { Backend::Packet };
    let inside = || {
        let open = |n| Interface::open(&format!("p{n}"), backend);
        let interfaces: Result<Vec<Interface>, _> = (0..links.len()).map(open).collect();
        let mut interfaces = interfaces.map_err(|e| e.to_string())?;
        let Some(zero) = shared.begin.ready(stop) else { return Ok(None) };
        let options = ::switch::Options { harm, seed: scenario.seed, start: zero.system, busy };
        let go_on = |_: &Switch, _: &Totals| !stop.load(Ordering::Relaxed);
        let mut see =
            |seen: Seen<'_>| run.capture.map_or(Ok(()), |capture| capture.see(&links, seen));
        let watch = run.capture.map(|_| &mut see as &mut Watch<'_>);
        let before = cost::so_far();
        let ran = ::switch::run(&mut switch, &mut interfaces, options, watch, go_on);
        let totals = ran.map_err(|e| e.to_string())?;
        Ok(Some((totals, Dur(cost::so_far().0 - before.0))))
    };
    let ran = netns::within(&bed.namespace(node), inside).map_err(|e| e.to_string());
    // Without it the others would wait for the time limit.
    let totals = ran.and_then(|ran| ran).inspect_err(|_| stop.store(true, Ordering::Relaxed));
    let totals = totals.map_err(|why| Error::Run {
        what: format!("{node}: {why}"),
        hint: "`trimline testbed down` and `up` make it anew".to_owned(),
    })?;
    Ok(totals.map(|(totals, cpu)| Switched { node, switch, totals, cpu }))
}

/// Wait until everything that the run waits for is done, or a party has stopped. Whether it is.
fn wait(scenario: &Scenario, shared: &Shared) -> bool {
    let limit = scenario.measure.limit;
    let Some(zero) = shared.begin.zero(&shared.stop) else { return false };
    // A message may be acknowledged a moment before its application hears of it and goes on, so
    // that nothing counts unless it is so at two looks.
    let mut was_done = false;
    loop {
        let now =
            Time(u64::try_from(zero.instant.elapsed().as_nanos() * 1_000).unwrap_or(u64::MAX));
        let is_done = shared.done(now);
        if is_done && was_done {
            return true;
        }
        was_done = is_done;
        if now >= limit || shared.stop.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(LOOK);
    }
}
