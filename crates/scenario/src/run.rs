//! Running a scenario: endpoints and applications into a fabric, messages and traces out of it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use endpoint::{App, Endpoint, Observer};
use fabric::{End, LifeDetail, Outcome, Progress, Sim, Threads, Violated, Violation};
use metrics::{Calibration, FileError, FlowRow, JobRow, LifeRow, Manifest, OutputDir, Summary};
use units::{Dur, HostId, Time};

use crate::Scenario;
use crate::critical;
use crate::diagnostic::Diagnostic;
use crate::error::Error;
use crate::level::{self, Rung};
use crate::packet_latency::{Latencies, LatencyMeter};
use crate::record::{Recorded, Recorder};
use crate::results::{Evaluated, Results};
use crate::sample;
use crate::skip;
use crate::steps::{self, Worked};
use crate::steps_done::StepsDone;
use crate::trace::{Trace, Traced, Tracer};

/// Version of the engine: results of equal versions have equal digests. 12: EQDS's windows count
/// what has arrived by packets, and looks at oversubscription begin at time zero.
pub const ENGINE_VERSION: u32 = 12;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit it is built from, if that was known: a tarball has none.
const COMMIT: Option<&str> = option_env!("TRIMLINE_GIT");

/// Version, commit and engine: `0.1.0 (commit 26a02be, engine 3)`.
#[must_use]
pub fn version() -> String {
    let commit = COMMIT.map_or_else(String::new, |commit| format!("commit {commit}, "));
    format!("{VERSION} ({commit}engine {ENGINE_VERSION})")
}

/// How to run a scenario. None of it changes results, but for what says which part is run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What to trace.
    pub trace: Trace,
    /// Check the costly invariants, too.
    pub check: bool,
    /// Use the binary heap instead of the timing wheel (the cross-check of the event queue).
    pub heap: bool,
    /// Use an event per departure (the cross-check of lazy departures).
    pub eager: bool,
    /// How closely messages are followed, if the scenario does not ask for more.
    pub life: LifeDetail,
    /// So many threads, at least one; `None`: as many as pay.
    pub threads: Option<u32>,
    /// Set, it stops the run, which then has no results.
    pub stop: Option<Arc<AtomicBool>>,
    /// Set, it ends the run of [`run()`] with the results that it has come to: partial ones, which
    /// say so. Others have none.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Told of each step of a training job that is complete.
    pub steps: Option<Arc<StepsDone>>,
    /// Run it again with this share, above 0, to 1, of what it skips simulated, and compare.
    pub verify: Option<f64>,
    /// Simulate this share of what could be skipped.
    pub exact: Option<f64>,
    /// Of the traffic, this table alone.
    pub only: Option<u16>,
    /// At this level, whatever the scenario says.
    pub rung: Option<Rung>,
    /// The measurement window ends here, before its time.
    pub until: Option<Time>,
    /// The command that repeats this run, for the manifest and for failures.
    pub command: String,
}

/// What a run did, before it is evaluated.
#[derive(Debug)]
pub struct Simulated {
    /// What the fabric says.
    pub outcome: Outcome,
    /// A row per message, by source and message.
    pub flows: Vec<FlowRow>,
    /// Where the time of each delivered message went; empty unless the scenario asks for it.
    pub lives: Vec<LifeRow>,
    /// A row per job.
    pub jobs: Vec<JobRow>,
    /// Round-trip samples with the traffic tables of their messages, ascending; empty unless the
    /// scenario asks for them.
    pub rtts: Vec<(Dur, u16)>,
    /// How long packets took, if the scenario asks for it.
    pub latencies: Option<Latencies>,
    /// How long it took, seconds.
    pub wall_s: f64,
    /// The violated invariant that ended it, if one did.
    pub violation: Option<Violation>,
}

impl Options {
    /// What is asked for of each packet, if something is.
    pub(crate) fn of_packets(&self) -> Option<&'static str> {
        match self.life {
            LifeDetail::None => self.trace.any().then_some("a trace"),
            _ => Some("the life of a message"),
        }
    }

    fn is_stopped(&self) -> bool {
        is_set(self.stop.as_deref())
    }

    fn is_interrupted(&self) -> bool {
        is_set(self.interrupt.as_deref())
    }
}

fn is_set(flag: Option<&AtomicBool>) -> bool {
    flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// What a run has left in its files.
#[derive(Debug)]
pub struct Written {
    /// `summary.json`.
    pub summary: Summary,
    /// If an invariant was violated, or a job's run by itself failed: the error with which the
    /// process is to end. The results are what the run had come to.
    pub violated: Option<Error>,
}

/// What a simulation has left.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) recorded: Recorded,
    pub(crate) latencies: Option<Latencies>,
    /// How long it took, seconds.
    pub(crate) wall_s: f64,
    pub(crate) violation: Option<Violation>,
    /// Whether it was interrupted.
    pub(crate) is_partial: bool,
    /// What the environment has to say, beside what follows from the numbers.
    pub(crate) warnings: Vec<String>,
    /// What ranks of each training job report where it is alone, if the scenario asks for it.
    pub(crate) alone: Vec<Worked>,
    /// At which level it was, if that was not written.
    pub(crate) calibration: Calibration,
}

/// Called when the fabric is built, at time zero, and then at every grid step.
pub type OnProgress<'a> = &'a mut dyn FnMut(&Progress);

/// Run `scenario` without any files: all messages stay in memory.
///
/// # Errors
/// An impossible fabric, or a violated invariant.
pub fn simulate(
    scenario: &Scenario,
    options: &Options,
    progress: OnProgress<'_>,
) -> Result<Simulated, Error> {
    let Ran { outcome, recorded, latencies, wall_s, violation, .. } =
        unviolated(scenario, options, progress)?;
    let Recorded { rows, lives, jobs, rtts, .. } = recorded;
    let flows = rows.into_vec().map_err(|e| unwritable(&e))?;
    let lives = lives.into_vec().map_err(|e| unwritable(&e))?;
    Ok(Simulated { outcome, flows, lives, jobs, rtts, latencies, wall_s, violation })
}

/// The same as it is.
fn unviolated(
    scenario: &Scenario,
    options: &Options,
    progress: OnProgress<'_>,
) -> Result<Ran, Error> {
    whole(scenario, options, simulate_into(scenario, options, None, progress)?)
}

/// `ran`, unless it was interrupted or an invariant was violated.
pub(crate) fn whole(scenario: &Scenario, options: &Options, ran: Ran) -> Result<Ran, Error> {
    if ran.is_partial {
        return Err(Error::Stopped);
    }
    match violated(scenario, options, ran.violation.as_ref()) {
        Some(error) => Err(error),
        None => Ok(ran),
    }
}

/// With messages and traces in `out`, if there is one. A violation is the caller's.
pub(crate) fn simulate_into(
    scenario: &Scenario,
    options: &Options,
    out: Option<&OutputDir>,
    progress: OnProgress<'_>,
) -> Result<Ran, Error> {
    match &scenario.sample {
        Some(sample) => sample::run(scenario, sample, options, (out, progress)),
        None => simulate_at(scenario, options, out, progress),
    }
}

/// The same at one level.
pub(crate) fn simulate_at(
    scenario: &Scenario,
    options: &Options,
    out: Option<&OutputDir>,
    progress: OnProgress<'_>,
) -> Result<Ran, Error> {
    let (from, to) = (scenario.measure.from, options.until.or(scenario.measure.to));
    let mut recorder = Recorder::new(from, to, out.map(OutputDir::staged));
    recorder.tell(options.steps.clone());
    let traces = out.filter(|_| options.trace.any());
    if traces.is_some() || scenario.measure.packet_latency {
        return simulate_watched(scenario, options, (traces, recorder), progress);
    }
    let failed = recorder.failed();
    let started = clock();
    let ended = sim(scenario, options, &mut recorder, &mut while_well(progress, &failed))?;
    ran(scenario, options, ended, (recorder, None), started)
}

/// Run `scenario` and work out its results, without any files.
///
/// # Errors
/// As [`simulate`].
pub fn evaluate(
    scenario: &Scenario,
    options: &Options,
    progress: OnProgress<'_>,
) -> Result<Results, Error> {
    let mut ran = unviolated(scenario, options, progress)?;
    (ran.alone, ran.is_partial) = alone(scenario, options, progress)?;
    Results::of(scenario, ran).map_err(|e| unwritable(&e))
}

/// Run `scenario` under the eyes of `observer`.
///
/// # Errors
/// As [`simulate`].
pub fn observe<O: Observer + Send>(
    scenario: &Scenario,
    options: &Options,
    mut observer: O,
) -> Result<(Outcome, O), Error> {
    let ended = sim(scenario, options, &mut observer, &mut |_| ControlFlow::Continue(()))?;
    if ended.is_partial {
        return Err(Error::Stopped);
    }
    match violated(scenario, options, ended.violation.as_ref()) {
        Some(error) => Err(error),
        None => Ok((ended.outcome, observer)),
    }
}

/// The same until `known`, with progress. When it ended.
pub(crate) fn follow(
    scenario: &Scenario,
    options: &Options,
    observer: &mut (dyn Observer + Send),
    progress: OnProgress<'_>,
    known: &AtomicBool,
) -> Result<Time, Error> {
    let ended = sim(scenario, options, observer, &mut while_well(progress, known))?;
    if ended.is_partial {
        return Err(Error::Stopped);
    }
    match violated(scenario, options, ended.violation.as_ref()) {
        Some(error) => Err(error),
        None => Ok(ended.outcome.now),
    }
}

/// Run `scenario` and put its files into `out`, which the caller then commits: traces, if asked
/// for, `flows.parquet`, `jobs.parquet` if there are jobs, `steps.parquet` and
/// `collectives.parquet` if there are training jobs, and `critical.parquet` if one of them has done
/// a step, `series.parquet`, `links.parquet`,
/// `packet_latency.parquet` and `life.parquet` if the scenario asks for them, `summary.json`,
/// `manifest.json`. Of many messages only some are in memory at once.
///
/// # Errors
/// An impossible fabric, or a file that cannot be written. After a violated invariant the files are
/// written, too: see [`Written::violated`].
pub fn run(
    scenario: &Scenario,
    options: &Options,
    out: &OutputDir,
    progress: OnProgress<'_>,
) -> Result<Written, Error> {
    skip::check_verify(scenario, options)?;
    let mut ran = simulate_into(scenario, options, Some(out), progress)?;
    let mut violated = violated(scenario, options, ran.violation.as_ref());
    if violated.is_none() && !ran.is_partial {
        match alone(scenario, options, progress) {
            Ok(done) => (ran.alone, ran.is_partial) = done,
            // What the jobs did together is worth having all the same.
            Err(error) => violated = Some(error),
        }
    }
    let mut summary = write(scenario, options, &ran, out).map_err(|e| unwritable(&e))?;
    if let Some(share) = options.verify.filter(|_| violated.is_none() && !summary.partial) {
        summary.skipped.verify = skip::verify(scenario, options, (share, &summary), progress)?;
        summary.write(out).map_err(|e| unwritable(&e))?;
    }
    Ok(Written { summary, violated })
}

/// Run each training job by itself, if the scenario asks for it. What their ranks report, and
/// whether that was stopped.
fn alone(
    scenario: &Scenario,
    options: &Options,
    progress: OnProgress<'_>,
) -> Result<(Vec<Worked>, bool), Error> {
    let mut works = Vec::new();
    for table in scenario.traffic.jobs_together().filter(|_| scenario.measure.alone) {
        let (steps, trace) = (None, Trace::default());
        let options = Options { only: Some(table), steps, trace, ..options.clone() };
        let (from, to) = (scenario.measure.from, scenario.measure.to);
        let mut recorder = Recorder::new(from, to, None);
        let failed = recorder.failed();
        let ended = sim(scenario, &options, &mut recorder, &mut while_well(progress, &failed))?;
        if let Some(error) = violated(scenario, &options, ended.violation.as_ref()) {
            return Err(error);
        }
        works.extend(recorder.finish().map_err(|e| unwritable(&e))?.works);
        if ended.is_partial {
            return Ok((works, true));
        }
    }
    Ok((works, false))
}

/// The same with an observer that looks at every packet.
fn simulate_watched(
    scenario: &Scenario,
    options: &Options,
    (out, recorder): (Option<&OutputDir>, Recorder),
    progress: OnProgress<'_>,
) -> Result<Ran, Error> {
    let meter = meter(scenario);
    let mut tracer = Tracer::new(&options.trace, scenario, out, recorder, meter)?;
    let failed = Arc::clone(&tracer.failed);
    let mut options = options.clone();
    if options.trace.packets && scenario.measure.life {
        // The time line shows each message's.
        options.life = LifeDetail::Segments;
    }
    let started = clock();
    let ended = sim(scenario, &options, &mut tracer, &mut while_well(progress, &failed))?;
    let Traced { recorder, latencies, silent } = tracer.finish().map_err(|e| unwritable(&e))?;
    let mut ran = ran(scenario, &options, ended, (recorder, latencies), started)?;
    ran.warnings.extend(silent.into_iter().map(|key| {
        format!("nothing to trace of {key}: it was not sent, or its transport tells nothing")
    }));
    Ok(ran)
}

/// Show progress, until `over`: what cannot be written, or is known, need not be simulated.
fn while_well<'a>(
    progress: OnProgress<'a>,
    over: &'a AtomicBool,
) -> impl FnMut(&Progress) -> ControlFlow<()> + 'a {
    move |p| {
        progress(p);
        if over.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// What is left of a run that began at `started`.
fn ran(
    scenario: &Scenario,
    options: &Options,
    ended: Ended,
    (recorder, latencies): (Recorder, Option<Latencies>),
    started: Instant,
) -> Result<Ran, Error> {
    let wall_s = started.elapsed().as_secs_f64();
    let Ended { outcome, violation, is_partial } = ended;
    let mut recorded = recorder.finish().map_err(|e| unwritable(&e))?;
    for job in &mut recorded.jobs {
        job.rate = scenario.topology.receive_rate(HostId(job.host));
    }
    let warnings = sharing(scenario, options).map(|_| level::MISSING.to_owned());
    Ok(Ran {
        outcome,
        recorded,
        latencies,
        wall_s,
        violation,
        is_partial,
        warnings: warnings.into_iter().collect(),
        alone: Vec::new(),
        calibration: scenario.why_packets.as_deref().map(sample::packets).unwrap_or_default(),
    })
}

/// How messages share links, if this is a run at flow level.
fn sharing<'s>(scenario: &'s Scenario, options: &Options) -> Option<&'s level::Sharing> {
    let rung = options.rung.unwrap_or_else(|| scenario.rung());
    scenario.sharing.as_ref().filter(|_| rung == Rung::Flow)
}

/// The clock is for `wall_s` only; nothing simulated sees it.
pub(crate) fn clock() -> Instant {
    Instant::now()
}

fn meter(scenario: &Scenario) -> Option<LatencyMeter> {
    let acknowledges =
        scenario.transports.acknowledges().filter(|_| scenario.measure.packet_latency)?;
    Some(LatencyMeter::new(acknowledges, scenario.topology(), scenario.config.window))
}

/// The processor cores that this process may use.
fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}

/// How a run ended.
struct Ended {
    outcome: Outcome,
    violation: Option<Violation>,
    /// Whether it was interrupted before it was done.
    is_partial: bool,
}

/// What has ended a run before its time.
pub(crate) fn why_it_ended(violation: &Violation) -> String {
    let what = if violation.is_outside { "the run cannot go on" } else { "invariant violated" };
    format!("{what} {violation}")
}

/// The error that a violated invariant is, if there is one.
pub(crate) fn violated(
    scenario: &Scenario,
    options: &Options,
    violation: Option<&Violation>,
) -> Option<Error> {
    let violation = violation?;
    let blame = match violation.is_outside {
        false => "this is a defect of the transport or of the engine, not of the scenario",
        true => "a process that is no part of the simulator has ended: it says above why, if so",
    };
    let hint = format!("{blame}; seed {}; to see it again: {}", scenario.seed, options.command);
    Some(Error::Run { what: why_it_ended(violation), hint })
}

/// Those of all hosts.
pub(crate) fn endpoints(scenario: &Scenario) -> Result<Vec<Box<dyn Endpoint>>, Error> {
    let endpoint = |host| {
        let made = scenario.transports.endpoint(host).map_err(|why| Error::Run {
            what: format!("{host} has no transport: {why}"),
            hint: "its keys are in [transport]".to_owned(),
        })?;
        Ok(scenario.host.endpoint(made, host))
    };
    (0..scenario.topology.hosts()).map(HostId).map(endpoint).collect()
}

/// The applications of all hosts; of traffic table `only`, if that is given.
pub(crate) fn apps(scenario: &Scenario, only: Option<u16>) -> Result<Vec<Box<dyn App>>, Error> {
    Ok(scenario.traffic.apps(only).map_err(|e| {
        Diagnostic::new(format!("impossible traffic: {e}")).hint("change the tables [[traffic]]")
    })?)
}

/// Build the fabric and run it.
fn sim(
    scenario: &Scenario,
    options: &Options,
    observer: &mut (dyn Observer + Send),
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Ended, Error> {
    let mut config = scenario.config.clone();
    config.check = options.check;
    config.life = config.life.max(options.life);
    config.flows.clone_from(&options.trace.flows);
    config.rtts |= !options.trace.flows.is_empty();
    config.window.1 = options.until.unwrap_or(config.window.1);
    if let (Some(skip), Some(share)) = (&mut config.skip, options.exact) {
        skip.exact_ppm = skip::ppm(share);
    }
    if options.heap {
        config.events = fabric::Events::Heap;
    }
    if options.eager {
        config.departures = fabric::Departures::Eager;
    }
    config.threads = match options.threads {
        Some(threads) => Threads::Fixed(threads.max(1)),
        None => Threads::Auto { most: cores(), hops_per_s: scenario.hops_per_s() },
    };
    let impossible = |why: String| {
        let error = scenario.links_at.error(format!("an impossible fabric: {why}"), "here");
        Error::from(error.hint("every pair of hosts needs a path that works"))
    };
    let mut until_stopped = |p: &Progress| match progress(p) {
        ControlFlow::Continue(()) if options.is_stopped() || options.is_interrupted() => {
            ControlFlow::Break(())
        }
        flow => flow,
    };
    let ended = if let Some(sharing) = sharing(scenario, options) {
        level::check(options)?;
        let of = (config, options.only);
        level::run(scenario, of, (sharing, observer), &mut until_stopped)?
    } else {
        if scenario.config.skip.is_some() {
            skip::check(options)?;
        }
        let (endpoints, apps) = (endpoints(scenario)?, apps(scenario, options.only)?);
        let sim = Sim::new(Arc::clone(&scenario.topology), config, endpoints, apps, observer);
        let sim = sim.map_err(|e| impossible(e.to_string()))?;
        let built = Progress::default();
        let _ = until_stopped(&built); // nothing can have failed yet that would stop it
        sim.run(&mut until_stopped)
    };
    if options.is_stopped() {
        return Err(Error::Stopped);
    }
    Ok(match ended {
        Ok(outcome) => {
            let is_partial = outcome.end == End::Stopped && options.is_interrupted();
            Ended { outcome, violation: None, is_partial }
        }
        Err(violated) => {
            let Violated { violation, outcome } = *violated;
            Ended { outcome, violation: Some(violation), is_partial: false }
        }
    })
}

/// Put the result files into `out`.
pub(crate) fn write(
    scenario: &Scenario,
    options: &Options,
    ran: &Ran,
    out: &OutputDir,
) -> Result<Summary, FileError> {
    let evaluated = Evaluated::of(scenario, ran, Some(out.staged()))?;
    let Evaluated { summary, series, links, .. } = evaluated;
    metrics::write_flows(out.file("flows.parquet")?, &ran.recorded.rows)?;
    if !ran.recorded.jobs.is_empty() {
        metrics::write_jobs(out.file("jobs.parquet")?, &ran.recorded.jobs)?;
    }
    let works = &ran.recorded.works;
    if !works.is_empty() {
        metrics::write_steps(out.file("steps.parquet")?, &steps::step_rows(works))?;
        let rows = steps::collective_rows(scenario, works).into_iter();
        metrics::write_collectives(out.file("collectives.parquet")?, rows)?;
        let critical = critical::rows(scenario, works, &ran.recorded.rows)?;
        if !critical.is_empty() {
            metrics::write_critical(out.file("critical.parquet")?, &critical)?;
        }
    }
    if scenario.measure.life && !ran.recorded.lives.is_empty() {
        metrics::write_lives(out.file("life.parquet")?, &ran.recorded.lives)?;
    }
    series.write(out.file("series.parquet")?)?;
    metrics::write_links(out.file("links.parquet")?, links)?;
    if let Some(latencies) = &ran.latencies {
        let file = out.file("packet_latency.parquet")?;
        metrics::write_packet_latency(file, &latencies.ascending)?;
    }
    manifest(scenario, options).write(out)?;
    summary.write(out)?;
    Ok(summary)
}

/// What was run, and how to run it again.
#[must_use]
pub fn manifest(scenario: &Scenario, options: &Options) -> Manifest {
    // A table of texts, numbers and tables: this cannot fail.
    let resolved = serde_json::to_value(scenario.resolved()).unwrap_or_default();
    Manifest::new(resolved, scenario.seed, VERSION, COMMIT, ENGINE_VERSION, &options.command)
}

/// A result file or directory that cannot be written. Exit code 2, as for a wrong input: the
/// remedy is the user's.
#[must_use]
pub fn unwritable(error: &FileError) -> Error {
    let what = format!("cannot {} {}: {}", error.action, error.path.display(), error.cause);
    Diagnostic::new(what).hint(&error.hint).into()
}
