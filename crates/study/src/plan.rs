//! [`Plan`]: the runs that a study takes, every scenario checked before the first one runs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use metrics::Form;
use rayon::prelude::*;
use scenario::{Diagnostic, Scenario, command_line};

use crate::Checked;
use crate::figure::Figure;
use crate::run::{Point, Run};
use crate::study::Study;

/// The runs that a study takes.
pub struct Plan<'s> {
    pub(crate) study: &'s Study,
    pub(crate) jobs: Vec<Job<'s>>,
    /// The first seed of each run with other phases; numbered after `jobs`.
    pub(crate) others: Vec<Job<'s>>,
}

/// One run: a scenario at a point of its sweep with one seed.
#[derive(Clone)]
pub(crate) struct Job<'s> {
    /// Whose it is; several figures may show the same.
    pub(crate) places: Vec<Place<'s>>,
    pub(crate) run: &'s Run,
    pub(crate) point: Point,
    pub(crate) seed: u64,
    /// The seed of phases, to see what hangs on them.
    pub(crate) phase_seed: Option<u64>,
    /// The round in which it is run: the place of its seed among those of its run.
    pub(crate) round: usize,
    /// What to call it while it runs.
    pub(crate) label: String,
    /// [`Scenario::identity`], where it has been read.
    pub(crate) scenario: Option<u128>,
    quick: bool,
}

/// What makes a scenario another one, its seed left out: file, edits, seed of phases and probe.
type OfPoint = (PathBuf, Vec<String>, Option<u64>, Option<&'static str>);

/// Jobs that differ only in their seeds.
pub struct PlannedPoint {
    /// What to call it.
    pub label: String,
    /// The scenario file.
    pub file: PathBuf,
    /// The `--set` edits of each of them.
    pub edits: Vec<String>,
    /// How many jobs they are, at least one.
    pub jobs: usize,
}

/// A figure that shows a run.
#[derive(Clone)]
pub(crate) struct Place<'s> {
    /// Index of the figure.
    pub(crate) figure: usize,
    /// Index of the run in the figure.
    pub(crate) index: usize,
    pub(crate) run: &'s Run,
    /// Of that run's sweep.
    pub(crate) point: Point,
}

impl<'s> Plan<'s> {
    /// What to run for `study` in its form. With `phases` there is one draw of phases for all seeds
    /// of a run, so that intervals are over traffic; the first seed is run once more with another
    /// draw, and what that moves is named.
    ///
    /// # Errors
    /// The first thing that is wrong in a scenario or in an edit.
    pub fn new(study: &'s Study, phases: bool) -> Result<Self, Diagnostic> {
        Self::telling(study, phases, &|_, _| ())
    }

    /// The same; `on_read` is told how many scenarios of how many have been read.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn telling(
        study: &'s Study,
        phases: bool,
        on_read: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self, Diagnostic> {
        let mut plan = Self::unchecked(study, phases)?;
        let quick = study.form.is_quick();
        // The same edits with another seed are wrong in the same way.
        let first = |job: &&Job<'_>| job.run.seeds(quick).first() == Some(&job.seed);
        let firsts: Vec<&Job<'_>> = plan.jobs.iter().filter(first).chain(&plan.others).collect();
        let (all, read) = (firsts.len(), AtomicUsize::new(0));
        let identity = |job: &&Job<'_>| {
            let identity = job.scenario()?.identity();
            on_read(read.fetch_add(1, Ordering::Relaxed) + 1, all);
            Ok((job.of_point(), identity))
        };
        let checked: Vec<Checked<(OfPoint, u128)>> = firsts.par_iter().map(identity).collect();
        let known: BTreeMap<OfPoint, u128> = checked.into_iter().collect::<Result<_, _>>()?;
        for job in plan.jobs.iter_mut().chain(&mut plan.others) {
            job.scenario = known.get(&job.of_point()).copied();
        }
        Ok(plan)
    }

    /// The same, of which no scenario has been read: to run single jobs of it.
    ///
    /// # Errors
    /// There is nothing to run.
    pub fn unchecked(study: &'s Study, phases: bool) -> Result<Self, Diagnostic> {
        let figures = study.figures.iter().enumerate();
        let mut jobs = each_once(figures.flat_map(|(i, f)| of_figure(i, f, study.form)));
        if jobs.is_empty() {
            let error = format!("there is nothing to run for {}", study.name());
            return Err(match study.form {
                Form::Full => Diagnostic::new(error).hint("name figures in its study.toml"),
                Form::Published | Form::Quick => {
                    let form = study.form.name();
                    let error = Diagnostic::new(format!("{error} in its {form} form"));
                    error.hint(format!("run the full form, without --{form}"))
                }
            });
        }
        for job in jobs.iter_mut().filter(|_| phases) {
            job.phase_seed = job.run.seeds(job.quick).first().copied();
        }
        let first = jobs.iter().filter(|job| job.round == 0);
        let others = first.filter_map(Job::with_other_phases).collect();
        Ok(Self { study, jobs, others })
    }

    /// How many runs it takes at most.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.jobs.len() + self.others.len()
    }

    /// Its jobs without those with other phases, those with other seeds together, in the order of
    /// the plan.
    #[must_use]
    pub fn points(&self) -> Vec<PlannedPoint> {
        let mut points: Vec<PlannedPoint> = Vec::new();
        let mut known: BTreeMap<OfPoint, usize> = BTreeMap::new();
        for job in &self.jobs {
            let at = *known.entry(job.of_point()).or_insert(points.len());
            if at == points.len() {
                let (label, file, edits) =
                    (job.label.clone(), job.run.scenario.clone(), job.edits());
                points.push(PlannedPoint { label, file, edits, jobs: 0 });
            }
            points[at].jobs += 1;
        }
        points
    }

    /// The job of this number, from 0.
    pub(crate) fn job(&self, number: usize) -> Option<&Job<'s>> {
        self.jobs.iter().chain(&self.others).nth(number)
    }
}

/// Equal runs together.
fn each_once<'s>(all: impl Iterator<Item = Job<'s>>) -> Vec<Job<'s>> {
    let mut jobs: Vec<Job<'_>> = Vec::new();
    let mut known: BTreeMap<_, usize> = BTreeMap::new();
    for job in all {
        match known.entry(job.identity()) {
            Entry::Occupied(at) => {
                let known = &mut jobs[*at.get()];
                known.places.extend(job.places);
                known.round = known.round.min(job.round);
            }
            Entry::Vacant(place) => {
                place.insert(jobs.len());
                jobs.push(job);
            }
        }
    }
    jobs
}

fn of_figure(index: usize, figure: &Figure, form: Form) -> Vec<Job<'_>> {
    let quick = form.is_quick();
    let mut jobs = Vec::new();
    // The rows of the published form are all published; `keep_published` has left the others out.
    let read =
        (form == Form::Published).then(|| &figure.read_by_rows() | &figure.read_by_causes(quick));
    let is_wanted =
        |r, point: &Point| read.as_ref().is_none_or(|read| read.contains(&(r, point.clone())));
    for (r, run) in figure.runs.iter().enumerate() {
        for point in run.points(quick).into_iter().filter(|point| is_wanted(r, point)) {
            for (round, &seed) in run.seeds(quick).iter().enumerate() {
                let label = format!("{} {}", figure.id, run.label(&point));
                let point = point.clone();
                let place = Place { figure: index, index: r, run, point: point.clone() };
                jobs.push(Job {
                    places: vec![place],
                    run,
                    point,
                    seed,
                    phase_seed: None,
                    round,
                    label,
                    scenario: None,
                    quick,
                });
            }
        }
    }
    jobs
}

impl Job<'_> {
    /// The same with other phases, if the plan asks what hangs on them.
    fn with_other_phases(&self) -> Option<Self> {
        const OTHER: u64 = 1 << 32;
        let phase_seed = self.phase_seed? + OTHER;
        Some(Self { phase_seed: Some(phase_seed), ..self.clone() })
    }

    /// Read its scenario.
    pub(crate) fn scenario(&self) -> Checked<Scenario> {
        self.run.scenario(&self.point, self.quick, (self.seed, self.phase_seed))
    }

    /// What makes it another run.
    fn identity(&self) -> (OfPoint, u64) {
        (self.of_point(), self.seed)
    }

    fn of_point(&self) -> OfPoint {
        let file = &self.run.scenario;
        // One that is not there is complained about later.
        let file = file.canonicalize().unwrap_or_else(|_| file.clone());
        (file, self.edits(), self.phase_seed, self.run.probe.map(|probe| probe.name))
    }

    /// Its `--set` edits but for its seeds.
    fn edits(&self) -> Vec<String> {
        let edits = self.run.edits(&self.point, self.quick);
        edits.into_iter().map(|(edit, _)| edit).collect()
    }

    /// The command that repeats it.
    pub(crate) fn command(&self) -> String {
        let phases = self.phase_seed.map(|seed| format!("host.phase_seed={seed}"));
        let sets =
            self.edits().into_iter().chain(phases).flat_map(|edit| ["--set".to_owned(), edit]);
        let scenario = self.run.scenario.display().to_string();
        let words = ["run".to_owned(), scenario].into_iter().chain(sets);
        command_line(words.chain(["--seed".to_owned(), self.seed.to_string()]))
    }
}
