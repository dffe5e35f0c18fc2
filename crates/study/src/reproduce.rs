//! [`run()`]: run a [`Plan`], judge every row.

use std::collections::{BTreeMap, BTreeSet};

use metrics::{
    FigureResults, Form, OnPhases, RunRecord, STUDY_SCHEMA, SizeBucket, StudyResults, Timeline,
};
use rayon::prelude::*;
use scenario::{ENGINE_VERSION, Error, Results, Scenario};

use crate::by_size;
use crate::figure::{CurveOf, Figure};
use crate::job::JobEnd;
use crate::judge::Judge;
use crate::metric::{self, Metrics};
use crate::phases;
use crate::plan::{Job, Place, Plan};
use crate::rounds::{FEWEST_BEFORE_STOP, FEWEST_SEEDS, more_seeds};
use crate::run::Point;
use crate::runs;
use crate::tune::{Stage, Tune};

/// How to run a plan.
pub struct Options<'e> {
    /// Which of its seeds.
    pub seeds: Seeding<'e>,
    /// What runs them.
    pub engine: Engine<'e>,
}

/// Runs the jobs of these numbers: see [`Engine::Jobs`].
pub type RunJobs<'e> = dyn Fn(&[usize]) -> Vec<JobEnd> + 'e;

/// How many of the seeds of a plan are run.
#[derive(Clone, Copy)]
pub enum Seeding<'t> {
    /// Every one.
    All,
    /// As many as the verdicts on rows take.
    Verdicts,
    /// As many as it takes until half of each interval is at most this share of its value.
    Until(f64),
    /// Those that a search asks for, of the points that it asks for.
    Tune(&'t Tune),
}

impl Seeding<'_> {
    /// How many runs of `plan` that takes at most.
    #[must_use]
    pub fn most_runs(&self, plan: &Plan<'_>) -> usize {
        match self {
            Self::Tune(tune) => tune.most_runs().min(plan.runs()),
            Self::All | Self::Verdicts | Self::Until(_) => plan.runs(),
        }
    }
}

/// What runs the jobs of a plan. No effect on results.
pub enum Engine<'e> {
    /// A number of threads of this process, several runs at once.
    Threads(u32),
    /// Something else, which is given the numbers of jobs, and says what became of each.
    Jobs(&'e RunJobs<'e>),
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
    /// Slowdown by size of message, of a job.
    pub(crate) by_size: Vec<SizeBucket>,
    /// What its summary warns of, of a job.
    pub(crate) warnings: Vec<String>,
    /// See [`metrics::RunValues`], of a job.
    pub(crate) messages: String,
}

impl Ran {
    /// `job`, of which nothing is known yet.
    pub(crate) fn nothing(job: &Job<'_>) -> Self {
        let record = RunRecord {
            run: job.run.label(&job.point),
            seed: job.seed,
            command: job.command(),
            digest: None,
            wall_s: 0.0,
            packet_hops: 0,
            error: None,
        };
        Self {
            record,
            metrics: Metrics::new(),
            distributions: BTreeMap::new(),
            drawn: BTreeMap::new(),
            timeline: None,
            by_size: Vec::new(),
            warnings: Vec::new(),
            messages: String::new(),
        }
    }
}

/// All runs of a figure: by index of the run, point and seed.
pub(crate) type AllRan = BTreeMap<(usize, Point, u64), Ran>;

/// What came out of a plan.
pub struct Outcome<'p> {
    plan: &'p Plan<'p>,
    /// By figure.
    ran: Vec<AllRan>,
    on_phases: Vec<OnPhases>,
}

/// Run what `plan` says. `progress` is called from the threads of the runs.
///
/// # Errors
/// The threads cannot be started. That a run fails is no error: its rows fail.
pub fn run<'p>(
    plan: &'p Plan<'p>,
    options: &Options<'_>,
    progress: &(dyn Fn(Step<'_>) + Sync),
) -> Result<Outcome<'p>, Error> {
    let runner = Runner::new(plan, &options.engine)?;
    let ran = runner.rounds(options.seeds, progress);
    let on_phases = runner.on_phases(&ran, progress);
    Ok(Outcome { plan, ran, on_phases })
}

impl Outcome<'_> {
    /// What came out of each job of the only figure.
    pub(crate) fn all_ran(&self) -> Option<&AllRan> {
        self.ran.first()
    }

    /// What the runs of the only figure measured.
    pub(crate) fn judge(&self) -> Option<Judge<'_>> {
        let (figure, ran) = self.plan.study.figures.iter().zip(&self.ran).next()?;
        Some(judge(self.plan, figure, ran))
    }

    /// Every row, judged. `command` repeats it all.
    #[must_use]
    pub fn results(self, command: String) -> StudyResults {
        let warnings = self.warnings();
        let Self { plan, ran, on_phases } = self;
        let study = plan.study;
        // A figure of which nothing is published was not run.
        let was_run = |figure: &Figure| study.form != Form::Published || !figure.rows.is_empty();
        let results = study.figures.iter().zip(ran).filter(|(figure, _)| was_run(figure));
        let figures: Vec<FigureResults> =
            results.map(|(figure, ran)| of_figure(plan, figure, ran)).collect();
        let all = study.figures.iter().map(|figure| figure.rows.len() + figure.left_out.len());
        let all: usize = all.sum();
        let judged: usize = figures.iter().map(|figure| figure.rows.len()).sum();
        StudyResults {
            schema: STUDY_SCHEMA,
            study: study.name.clone(),
            title: study.title.clone(),
            publication: study.publication.clone(),
            picture: study.picture.clone(),
            form: study.form,
            left_out: (all - judged) as u64,
            command,
            engine: ENGINE_VERSION,
            on_phases,
            warnings,
            figures,
        }
    }

    /// What the jobs' summaries warn of, each once, with at how many points.
    fn warnings(&self) -> Vec<String> {
        let mut of_points: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (figure, ran) in self.plan.study.figures.iter().zip(&self.ran) {
            for ((run, point, _), ran) in ran {
                let of_point = of_points.entry(figure.runs[*run].show(point)).or_default();
                of_point.extend(ran.warnings.iter().cloned());
            }
        }
        runs::warnings_of_points(&of_points)
    }
}

/// What runs the jobs of a plan.
struct Runner<'p> {
    plan: &'p Plan<'p>,
    runs: Runs<'p>,
}

enum Runs<'p> {
    /// Here, each run with a number of threads: a single one has all for itself.
    Here(rayon::ThreadPool, u32),
    Jobs(&'p RunJobs<'p>),
}

impl<'p> Runner<'p> {
    fn new(plan: &'p Plan<'p>, engine: &Engine<'p>) -> Result<Self, Error> {
        let threads = match engine {
            Engine::Threads(threads) => *threads,
            Engine::Jobs(run) => return Ok(Self { plan, runs: Runs::Jobs(*run) }),
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build();
        let pool = pool.map_err(|e| Error::Run {
            what: format!("cannot start {threads} threads: {e}"),
            hint: "use fewer, with --threads".to_owned(),
        })?;
        let each = (threads / plan.jobs.len().max(1) as u32).max(1);
        Ok(Self { plan, runs: Runs::Here(pool, each) })
    }

    /// Run as many seeds as `seeding` says.
    fn rounds(&self, seeding: Seeding<'_>, progress: &(dyn Fn(Step<'_>) + Sync)) -> Vec<AllRan> {
        if let Seeding::Tune(tune) = seeding {
            return self.tune(tune, progress);
        }
        let Plan { study, jobs, .. } = self.plan;
        let mut ran: Vec<AllRan> = study.figures.iter().map(|_| AllRan::new()).collect();
        let rounds = jobs.iter().map(|job| job.round + 1).max().unwrap_or(0);
        let mut left: BTreeSet<usize> = (0..jobs.len()).collect();
        let for_causes = for_causes(self.plan);
        let fewest = match seeding {
            Seeding::All | Seeding::Tune(_) => rounds,
            Seeding::Verdicts => FEWEST_SEEDS,
            Seeding::Until(_) => FEWEST_BEFORE_STOP,
        };
        let mut seeds = fewest;
        loop {
            // A run that is needed late begins with the seeds that it has left out.
            let so_far = left.iter().copied().filter(|&i| jobs[i].round < seeds);
            let needed: Vec<usize> = match seeding {
                Seeding::All => so_far.collect(),
                _ if seeds <= fewest => so_far.filter(|i| !for_causes.contains(i)).collect(),
                _ => needed(self.plan, seeding, &ran, so_far),
            };
            if needed.is_empty() && seeds > rounds.max(fewest) {
                break;
            }
            for i in &needed {
                left.remove(i);
            }
            let were_run = self.run(needed.into_iter().map(|i| (i, &jobs[i])), progress, &mut ran);
            if !were_run {
                break;
            }
            seeds =
                if matches!(seeding, Seeding::Until(_)) { more_seeds(seeds) } else { seeds + 1 };
        }
        for i in left {
            progress(Step { run: i, label: &jobs[i].label, done: 1.0 });
        }
        ran
    }

    /// Run what `tune` asks for until it has found the best.
    fn tune(&self, tune: &Tune, progress: &(dyn Fn(Step<'_>) + Sync)) -> Vec<AllRan> {
        let Plan { study, jobs, .. } = self.plan;
        let mut ran: Vec<AllRan> = study.figures.iter().map(|_| AllRan::new()).collect();
        loop {
            let stage = tune.stage(&judge(self.plan, &study.figures[0], &ran[0]));
            let Stage::Needs(wanted) = stage else { return ran };
            let is_wanted = |job: &&Job<'_>| {
                let was_run = ran[0].contains_key(&(0, job.point.clone(), job.seed));
                !was_run && wanted.contains(&(job.point.clone(), job.seed))
            };
            let next = jobs.iter().enumerate().filter(|(_, job)| is_wanted(job));
            let next: Vec<(usize, &Job<'_>)> = next.collect();
            // What is asked for and is no job of the plan would be asked for again.
            if next.is_empty() || !self.run(next.into_iter(), progress, &mut ran) {
                return ran;
            }
        }
    }

    /// What other phases than those of `ran` change, if the plan asks for it.
    fn on_phases(&self, ran: &[AllRan], progress: &(dyn Fn(Step<'_>) + Sync)) -> Vec<OnPhases> {
        let Plan { study, jobs, others } = self.plan;
        if others.is_empty() {
            return Vec::new();
        }
        let mut with_others: Vec<AllRan> = study.figures.iter().map(|_| AllRan::new()).collect();
        self.run((jobs.len()..).zip(others), progress, &mut with_others);
        let of = |((figure, ran), others)| {
            let all = judge(self.plan, figure, ran);
            let first = Judge { seeds: 1, ..judge(self.plan, figure, ran) };
            phases::of_figure(&all, &first, &judge(self.plan, figure, others))
        };
        study.figures.iter().zip(ran).zip(&with_others).flat_map(of).collect()
    }

    /// Run `jobs`, each with its number, into those of their figures. They begin in their order: it
    /// is that of the progress bar. Whether all were run.
    fn run<'s>(
        &self,
        jobs: impl Iterator<Item = (usize, &'s Job<'s>)>,
        progress: &(dyn Fn(Step<'_>) + Sync),
        figures: &mut [AllRan],
    ) -> bool {
        let study = self.plan.study;
        let (pool, each) = match &self.runs {
            Runs::Here(pool, each) => (pool, *each),
            Runs::Jobs(run) => return keep_jobs(jobs, *run, figures),
        };
        let shown = |place: &Place<'_>| shown(&study.figures[place.figure], place.index);
        let jobs: Vec<(usize, &Job<'_>, Vec<Shown<'_>>)> =
            jobs.map(|(i, job)| (i, job, job.places.iter().flat_map(shown).collect())).collect();
        let one = |(i, job, wanted): &(usize, &'s Job<'s>, Vec<Shown<'_>>)| {
            let step = |done| progress(Step { run: *i, label: &job.label, done });
            (*job, run_one(job, wanted, each, &step))
        };
        let ran: Vec<(&Job<'_>, Ran)> =
            pool.install(|| jobs.iter().par_bridge().map(one).collect());
        for (job, ran) in &ran {
            keep(job, ran, figures);
        }
        true
    }
}

/// What `run` says of `jobs` goes into those of their figures. Whether all were run.
fn keep_jobs<'s>(
    jobs: impl Iterator<Item = (usize, &'s Job<'s>)>,
    run: &RunJobs<'_>,
    figures: &mut [AllRan],
) -> bool {
    let (numbers, jobs): (Vec<usize>, Vec<&Job<'_>>) = jobs.unzip();
    let mut all = true;
    for (job, end) in jobs.into_iter().zip(run(&numbers)) {
        let mut ran = Ran::nothing(job);
        match end {
            JobEnd::Finished(finished) => finished.into_ran(&mut ran),
            JobEnd::Failed(why) => ran.record.error = Some(why),
            JobEnd::NotRun => {
                all = false;
                continue;
            }
        }
        keep(job, &ran, figures);
    }
    all
}

/// The jobs that only experiments on causes read: a row that is in its band needs none.
fn for_causes(plan: &Plan<'_>) -> BTreeSet<usize> {
    let quick = plan.study.form.is_quick();
    let alone = plan.study.figures.iter().map(|figure| figure.read_by_causes_alone(quick));
    let alone: Vec<_> = alone.collect();
    let is_alone =
        |place: &Place<'_>| alone[place.figure].contains(&(place.index, place.point.clone()));
    let jobs = plan.jobs.iter().enumerate();
    jobs.filter(|(_, job)| job.places.iter().all(is_alone)).map(|(i, _)| i).collect()
}

/// Those of `jobs` that a row or a curve still needs after what has been `ran`. Seeds of the
/// published form are for its rows alone.
fn needed(
    plan: &Plan<'_>,
    seeding: Seeding<'_>,
    ran: &[AllRan],
    jobs: impl Iterator<Item = usize>,
) -> Vec<usize> {
    let of_figure = |(figure, ran)| {
        let judge = judge(plan, figure, ran);
        match (seeding, plan.study.form) {
            (Seeding::Until(share), _) => judge.wider_than(share),
            (_, Form::Published) => judge.undecided(),
            (_, Form::Full | Form::Quick) => &judge.undecided() | &judge.wide_points(),
        }
    };
    let undecided: Vec<_> = plan.study.figures.iter().zip(ran).map(of_figure).collect();
    let is_read =
        |place: &Place<'_>| undecided[place.figure].contains(&(place.index, place.point.clone()));
    jobs.filter(|&i| plan.jobs[i].places.iter().any(is_read)).collect()
}

/// What came out of `job` goes to all figures that show it.
fn keep(job: &Job<'_>, ran: &Ran, figures: &mut [AllRan]) {
    for place in &job.places {
        let mut ran = ran.clone();
        ran.record.run = place.run.label(&place.point);
        figures[place.figure].insert((place.index, place.point.clone(), job.seed), ran);
    }
}

fn judge<'f>(plan: &'f Plan<'_>, figure: &'f Figure, ran: &'f AllRan) -> Judge<'f> {
    Judge {
        study: &plan.study.name,
        figure,
        quick: plan.study.form.is_quick(),
        seeds: usize::MAX,
        ran,
    }
}

/// What curves show of a run's messages or packets: see [`CurveOf`].
enum Shown<'f> {
    Distribution(&'f str),
    Scatter(&'f str),
    BySize(&'f str),
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
        CurveOf::BySize(name) => Some(Shown::BySize(name)),
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
fn run_one(job: &Job<'_>, wanted: &[Shown<'_>], threads: u32, step: &dyn Fn(f64)) -> Ran {
    let mut ran = Ran::nothing(job);
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
    // One thread, or as many as pay.
    let threads = (threads == 1).then_some(1);
    let options = scenario::Options { threads, command, ..scenario::Options::default() };
    let results = evaluate(&scenario, &options, step).map_err(|e| e.to_string())?;
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
            Shown::BySize(name) => {
                ran.drawn.insert(name.to_owned(), by_size::curve(name, &results.flows));
            }
            Shown::OverTime(_) => {} // of the probe
        }
    }
    probe(job, &scenario, wanted, ran).map_err(|e| e.to_string())
}

/// Run `scenario`, and say how far it has come.
pub(crate) fn evaluate(
    scenario: &Scenario,
    options: &scenario::Options,
    step: &dyn Fn(f64),
) -> Result<Results, Error> {
    scenario::evaluate(scenario, options, &mut |p| step(scenario.done(p).min(UNDER_WAY)))
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
