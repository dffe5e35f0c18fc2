//! [`reproduce()`]: run a [`Plan`], judge every row.

use std::collections::{BTreeMap, BTreeSet};

use metrics::{FigureResults, RunRecord, STUDY_SCHEMA, StudyResults, Timeline};
use rayon::prelude::*;
use scenario::{ENGINE_VERSION, Error, Scenario};

use crate::figure::{CurveOf, Figure};
use crate::judge::Judge;
use crate::metric::{self, Metrics};
use crate::phases;
use crate::plan::{Job, Place, Plan};
use crate::rounds::FEWEST_SEEDS;
use crate::run::Point;
use crate::study::Study;

/// How to reproduce a study.
pub struct Options {
    /// Run every seed, not only as many as a verdict takes.
    pub all_seeds: bool,
    /// How many runs go on at once; no effect on results.
    pub threads: u32,
    /// The command that repeats it, for the report.
    pub command: String,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Number of the run, from 0.
    pub run: usize,
    /// What to call it.
    pub label: &'a str,
    /// The share that is done; 1 at its end.
    pub done: f64,
}

/// A run that drains has done less than all.
const UNDER_WAY: f64 = 0.99;

/// What came out of one run.
#[derive(Clone)]
pub(crate) struct Ran {
    pub(crate) record: RunRecord,
    /// Nothing if it failed.
    pub(crate) metrics: Metrics,
    /// Ascending values by name, of the distributions that the figure's curves show.
    pub(crate) distributions: BTreeMap<String, Vec<f64>>,
    /// Points by name, of the scatter plots and queues over time that they show.
    pub(crate) drawn: BTreeMap<String, Vec<(f64, f64)>>,
    timeline: Option<Timeline>,
}

/// All runs of a figure: by index of the run, point and seed.
pub(crate) type AllRan = BTreeMap<(usize, Point, u64), Ran>;

/// Run what `plan` says, several runs at once, and judge every row. `progress` is called from the
/// threads of the runs.
///
/// # Errors
/// The threads cannot be started. That a run fails is no error: its rows fail.
pub fn reproduce(
    plan: &Plan<'_>,
    options: &Options,
    progress: &(dyn Fn(Step<'_>) + Sync),
) -> Result<StudyResults, Error> {
    let study = plan.study;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads as usize).build();
    let pool = pool.map_err(|e| Error::Run {
        what: format!("cannot start {} threads: {e}", options.threads),
        hint: "use fewer, with --threads".to_owned(),
    })?;
    // A single run has all threads for itself.
    let threads = (options.threads / plan.jobs.len().max(1) as u32).max(1);
    let mut figures: Vec<AllRan> = study.figures.iter().map(|_| AllRan::new()).collect();
    let rounds = plan.jobs.iter().map(|job| job.round + 1).max().unwrap_or(0);
    let mut left: BTreeSet<usize> = (0..plan.jobs.len()).collect();
    for round in 0.. {
        // A run that is needed late begins with the seeds that it has left out.
        let so_far = left.iter().copied().filter(|&i| plan.jobs[i].round <= round);
        let all = options.all_seeds || round < FEWEST_SEEDS;
        let needed: Vec<usize> =
            if all { so_far.collect() } else { needed(plan, &figures, so_far) };
        if needed.is_empty() && round >= rounds {
            break;
        }
        let jobs = shown_by(study, needed.iter().map(|&i| (i, &plan.jobs[i])));
        for (i, ran) in pool.install(|| run_all(&jobs, threads, progress)) {
            keep(&plan.jobs[i], &ran, &mut figures);
            left.remove(&i);
        }
    }
    for i in left {
        progress(Step { run: i, label: &plan.jobs[i].label, done: 1.0 });
    }
    let on_phases = if plan.phases {
        let others: Vec<Job<'_>> =
            plan.jobs.iter().filter(|job| job.round == 0).map(Job::with_other_phases).collect();
        let jobs = shown_by(study, others.iter().enumerate());
        let ran = pool.install(|| run_all(&jobs, threads, &|_| ()));
        let mut with_others: Vec<AllRan> = study.figures.iter().map(|_| AllRan::new()).collect();
        for (i, ran) in &ran {
            keep(&others[*i], ran, &mut with_others);
        }
        let figures = study.figures.iter().zip(&figures).zip(&with_others);
        let of = |((figure, ran), others)| {
            let all = judge(plan, figure, ran);
            let first = Judge { seeds: 1, ..judge(plan, figure, ran) };
            phases::of_figure(&all, &first, &judge(plan, figure, others))
        };
        figures.flat_map(of).collect()
    } else {
        Vec::new()
    };
    let results = study.figures.iter().zip(figures);
    let figures: Vec<FigureResults> =
        results.map(|(figure, ran)| of_figure(plan, figure, ran)).collect();
    let all: usize = study.figures.iter().map(|figure| figure.rows.len()).sum();
    let judged: usize = figures.iter().map(|figure| figure.rows.len()).sum();
    Ok(StudyResults {
        schema: STUDY_SCHEMA,
        study: study.name.clone(),
        title: study.title.clone(),
        publication: study.publication.clone(),
        picture: study.picture.clone(),
        quick: plan.quick,
        left_out: (all - judged) as u64,
        command: options.command.clone(),
        engine: ENGINE_VERSION,
        on_phases,
        figures,
    })
}

/// Those of `jobs` that a row or a curve still needs after what has been `ran`.
fn needed(plan: &Plan<'_>, ran: &[AllRan], jobs: impl Iterator<Item = usize>) -> Vec<usize> {
    let of_figure = |(figure, ran)| judge(plan, figure, ran).undecided();
    let undecided: Vec<_> = plan.study.figures.iter().zip(ran).map(of_figure).collect();
    let is_read =
        |place: &Place<'_>| undecided[place.figure].contains(&(place.index, place.point.clone()));
    jobs.filter(|&i| plan.jobs[i].places.iter().any(is_read)).collect()
}

/// A job with its index in the plan, and what its figures' curves and rows show of it.
type Wanted<'s> = (usize, &'s Job<'s>, Vec<Shown<'s>>);

/// `jobs`, each with an index of the caller's.
fn shown_by<'s>(
    study: &'s Study,
    jobs: impl Iterator<Item = (usize, &'s Job<'s>)>,
) -> Vec<Wanted<'s>> {
    let shown = |place: &Place<'_>| shown(&study.figures[place.figure], place.index);
    jobs.map(|(i, job)| (i, job, job.places.iter().flat_map(shown).collect())).collect()
}

/// What came out of `job` goes to all figures that show it.
fn keep(job: &Job<'_>, ran: &Ran, figures: &mut [AllRan]) {
    for place in &job.places {
        let mut ran = ran.clone();
        ran.record.run = place.run.label(&place.point);
        figures[place.figure].insert((place.index, place.point.clone(), job.seed), ran);
    }
}

/// Run `jobs`. They begin in their order: it is that of the progress bar.
fn run_all(
    jobs: &[Wanted<'_>],
    threads: u32,
    progress: &(dyn Fn(Step<'_>) + Sync),
) -> Vec<(usize, Ran)> {
    let run = |(i, job, wanted): &Wanted<'_>| {
        let step = |done| progress(Step { run: *i, label: &job.label, done });
        (*i, run(job, wanted, threads, &step))
    };
    jobs.iter().par_bridge().map(run).collect()
}

fn judge<'f>(plan: &'f Plan<'_>, figure: &'f Figure, ran: &'f AllRan) -> Judge<'f> {
    Judge { study: &plan.study.name, figure, quick: plan.quick, seeds: usize::MAX, ran }
}

/// What curves show of a run's messages or packets: see [`CurveOf`].
enum Shown<'f> {
    Distribution(&'f str),
    Scatter(&'f str),
    OverTime(&'f str),
}

/// What the curves and rows of the figure take of a run beside its metrics.
fn shown(figure: &Figure, run: usize) -> Vec<Shown<'_>> {
    let compared = figure.rows.iter().flat_map(|row| {
        let of = move |name| {
            let (other, of) = figure.distance(name)?;
            let runs = row.cause.iter().map(|cause| cause.run).chain([row.run, other]);
            runs.into_iter().any(|of| of == run).then_some(Shown::Distribution(of))
        };
        row.formula.names().filter_map(of)
    });
    let of_run = figure.curves.iter().filter(|curve| curve.run == run);
    let shown = of_run.filter_map(|curve| match &curve.of {
        CurveOf::Distribution(name) => Some(Shown::Distribution(name)),
        CurveOf::Scatter(name) => Some(Shown::Scatter(name)),
        CurveOf::OverTime(name) => Some(Shown::OverTime(name)),
        CurveOf::Along { .. } => None,
    });
    shown.chain(compared).collect()
}

fn of_figure(plan: &Plan<'_>, figure: &Figure, ran: AllRan) -> FigureResults {
    let judge = judge(plan, figure, &ran);
    let curves = figure.curves.iter().map(|curve| judge.curve(curve)).collect();
    let rows = figure.rows.iter().filter_map(|row| judge.row(row)).collect();
    FigureResults {
        id: figure.id.clone(),
        title: figure.title.clone(),
        expect: figure.expect.clone(),
        x: figure.x.clone(),
        y: figure.y.clone(),
        curves,
        rows,
        timelines: ran.values().filter_map(|ran| ran.timeline.clone()).collect(),
        runs: ran.into_values().map(|ran| ran.record).collect(),
    }
}

/// Run one.
fn run(job: &Job<'_>, wanted: &[Shown<'_>], threads: u32, step: &dyn Fn(f64)) -> Ran {
    let record = RunRecord {
        run: job.run.label(&job.point),
        seed: job.seed,
        command: job.command(),
        digest: None,
        wall_s: 0.0,
        packet_hops: 0,
        error: None,
    };
    let mut ran = Ran {
        record,
        metrics: Metrics::new(),
        distributions: BTreeMap::new(),
        drawn: BTreeMap::new(),
        timeline: None,
    };
    if let Err(error) = measure(job, wanted, threads, step, &mut ran) {
        ran.metrics.clear();
        ran.record.error = Some(error);
    }
    step(1.0);
    ran
}

/// Run it into `ran`, or say why it failed.
fn measure(
    job: &Job<'_>,
    wanted: &[Shown<'_>],
    threads: u32,
    step: &dyn Fn(f64),
    ran: &mut Ran,
) -> Result<(), String> {
    let scenario = job.scenario().map_err(|e| e.to_string())?;
    let command = ran.record.command.clone();
    let options =
        scenario::Options { threads: Some(threads), command, ..scenario::Options::default() };
    let results =
        scenario::evaluate(&scenario, &options, &mut |p| step(scenario.done(p).min(UNDER_WAY)));
    let results = results.map_err(|e| e.to_string())?;
    ran.record.digest = Some(results.summary.digest.clone());
    ran.record.wall_s = results.summary.wall_s;
    ran.record.packet_hops = results.summary.packet_hops;
    ran.metrics = metric::of(&scenario, &results);
    for shown in wanted {
        match *shown {
            Shown::Distribution(name) => {
                let values = metric::distribution(name, &scenario, &results);
                ran.distributions.insert(name.to_owned(), values);
            }
            Shown::Scatter(name) => {
                let dots = metric::scatter(name, &scenario, &results);
                ran.drawn.insert(name.to_owned(), dots);
            }
            Shown::OverTime(_) => {} // of the probe
        }
    }
    probe(job, &scenario, wanted, ran).map_err(|e| e.to_string())
}

fn probe(
    job: &Job<'_>,
    scenario: &Scenario,
    wanted: &[Shown<'_>],
    ran: &mut Ran,
) -> Result<(), Error> {
    let Some(probe) = job.run.probe else { return Ok(()) };
    let probed = (probe.measure)(scenario)?;
    let named = probe.metrics.iter().zip(probed.values);
    ran.metrics.extend(named.filter_map(|(name, value)| Some(((*name).to_owned(), value?))));
    for shown in wanted {
        if let (Shown::OverTime(name), Some(queue)) = (shown, &probed.queue) {
            ran.drawn.insert((*name).to_owned(), queue.corners());
        }
    }
    // One picture per point: the other seeds look the same.
    let first = job.run.seeds.first() == Some(&job.seed);
    let title = job.run.label(&job.point);
    let timeline = probed.timeline.filter(|_| first);
    ran.timeline = timeline.map(|timeline| Timeline { title, ..timeline });
    Ok(())
}
