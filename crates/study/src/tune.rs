//! [`Tune`]: the table `[tune]` of a scenario. Its points are run as successive halving asks for
//! them, and the best is confirmed with fresh seeds (docs/specs/halving.md).

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use metrics::{HalvingRound, RunRow, RunTable, Sampling, TuneResults};
use scenario::{At, Diagnostic, Reader};

use crate::condition::{self, Condition};
use crate::figure::Figure;
use crate::formula::Formula;
use crate::halving::{self, Halved, Standing, halve};
use crate::job::Jobs;
use crate::judge::Judge;
use crate::reproduce::Outcome;
use crate::run::{self, AxisValue, Point, RUNS_MAX, Run};
use crate::seeds::Seeds;
use crate::space::{POINTS_MAX, Points, Space};
use crate::study::{Study, document};
use crate::tuned::Tuned;
use crate::{Checked, edits, runs};

/// What is said of points may be wrong with 5 % for all together: one half is for what the seeds of
/// the halving say, the other for what fresh seeds say (docs/specs/halving.md, section 4).
const PARTS: usize = 2;

/// A scenario's own search for the best values of some of its keys.
pub struct Tune {
    study: Study,
    pub(crate) aim: Arc<Formula>,
    pub(crate) maximise: bool,
    pub(crate) constraints: Vec<Condition>,
    pub(crate) points: Vec<Point>,
    pub(crate) drawn: Sampling,
    pub(crate) rounds: Vec<HalvingRound>,
    pub(crate) seeds: Vec<u64>,
    /// How many seeds at the end are fresh: they have not chosen the best point.
    pub(crate) confirm: usize,
}

/// What replaces values of the file.
#[derive(Default)]
pub struct Instead<'i> {
    /// The `--set` edits, which every run has.
    pub edits: &'i [String],
    /// The seeds.
    pub seeds: Option<&'i Seeds>,
    /// How many runs the halving may take.
    pub budget: Option<u64>,
}

/// How far the search has come.
pub(crate) enum Stage {
    /// These points have to be run with these seeds.
    Needs(BTreeSet<(Point, u64)>),
    Done(Found),
}

/// What was found: indices of points.
pub(crate) struct Found {
    /// The best; none if no point keeps the constraints.
    pub(crate) best: Option<usize>,
    /// In how many rounds each point took part.
    pub(crate) rounds: Vec<usize>,
    /// How many points were to have fresh seeds, the best included.
    pub(crate) finalists: usize,
}

impl Tune {
    /// Read the scenario `file` with `instead`.
    ///
    /// # Errors
    /// There is no table `[tune]`, or the first thing that is wrong in it.
    pub fn load(file: &Path, instead: &Instead<'_>) -> Result<Self, Diagnostic> {
        let document = document(file)?;
        let mut root = Reader::new(&document.root, &document.root.at, "the scenario")?;
        let title: String = root.need("name")?;
        let Some(mut table) = root.table("tune")? else {
            let error = root.error("tune", "the scenario has no table `[tune]`", "in this file");
            return Err(error.hint("docs/tuning.md has an example"));
        };
        let mut sets = table.node("set").map_or(Ok(Vec::new()), run::texts)?;
        let Points { axes, points, are_drawn } = points(&mut table, &sets)?;
        let edits = instead.edits.iter().map(|edit| run::option(edit)).collect::<Vec<_>>();
        edits::check(&edits::TUNE, &sets, &edits)?;
        sets.extend(edits);
        let own = run::needed_seeds(&mut table)?;
        let (seeds, seeds_at) = match instead.seeds {
            Some(seeds) => (seeds.list().to_vec(), run::given("--seeds", &seeds.to_string())),
            None => (own, table.place("seeds")),
        };
        let confirm = confirm(&mut table, points.len(), (&seeds, &seeds_at))?;
        let budget = budget(&mut table, points.len(), instead.budget)?;
        let rounds = halving::schedule(points.len(), budget, (seeds.len() - confirm) as u64);
        let at = table.place("axes");
        let run = Run::plain("tune".to_owned(), file, at, seeds.clone(), sets);
        let figure = figure(file, run.at_points(axes, points.clone()));
        let (aim, maximise) = aim(&mut table, &figure)?;
        let constraints = constraints(&mut table, &figure)?;
        table.finish()?;
        let study = Study::of_figures("tune".to_owned(), title, vec![figure]);
        let drawn = if are_drawn { Sampling::Sobol } else { Sampling::Grid };
        Ok(Self { study, aim, maximise, constraints, points, drawn, rounds, seeds, confirm })
    }

    /// What there is to run, if all were run.
    #[must_use]
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// How many runs it takes at most.
    #[must_use]
    pub fn most_runs(&self) -> usize {
        let mut before = 0;
        let of_round = |round: &HalvingRound| {
            let more = (round.seeds - before) as usize;
            before = round.seeds;
            round.points as usize * more
        };
        let halving: usize = self.rounds.iter().map(of_round).sum();
        halving + self.points.len() * self.confirm
    }

    /// The runs of `outcome`, of the plan with these `jobs`, a row each.
    #[must_use]
    pub fn runs(&self, outcome: &Outcome<'_>, jobs: &Jobs<'_>) -> (RunTable, Vec<RunRow>) {
        let sides = self.constraints.iter().map(|constraint| Arc::clone(&constraint.left));
        let formulas: Vec<Arc<Formula>> =
            std::iter::once(Arc::clone(&self.aim)).chain(sides).collect();
        let judge = outcome.judge();
        judge.map(|judge| runs::table(jobs, &judge, &formulas)).unwrap_or_default()
    }

    /// What `outcome` says. `command` repeats it.
    ///
    /// # Errors
    /// The outcome is that of nothing.
    pub fn results(
        &self,
        outcome: &Outcome<'_>,
        command: String,
    ) -> Result<TuneResults, Diagnostic> {
        let Some(judge) = outcome.judge() else {
            return Err(Diagnostic::new("there is nothing to tune"));
        };
        Ok(Tuned { tune: self, judge }.results(command))
    }

    /// The scenario at its points.
    pub(crate) fn run(&self) -> &Run {
        &self.study.figures[0].runs[0]
    }

    /// What has been found with what was run so far, or what has to be run next. It depends on
    /// nothing else, so that a search that was interrupted goes on as it would have.
    pub(crate) fn stage(&self, judge: &Judge<'_>) -> Stage {
        let standing = |point: usize, seeds: usize| self.standing(judge, point, 0..seeds);
        match halve(self.points.len(), &self.rounds, &standing) {
            Halved::Needs(points, seeds) => Stage::Needs(self.needs(points, seeds)),
            Halved::Done(ranked) => self.confirm(judge, &ranked),
        }
    }

    /// Fresh seeds for the best point and those that are not significantly worse. If the best
    /// breaks a constraint with them, the next is the best.
    fn confirm(&self, judge: &Judge<'_>, ranked: &[Vec<usize>]) -> Stage {
        // Those that were left longest are first.
        let mut rounds = vec![0; self.points.len()];
        let mut order: Vec<usize> = Vec::new();
        for (round, points) in ranked.iter().enumerate().rev() {
            for &point in points {
                if rounds[point] == 0 {
                    rounds[point] = round + 1;
                    order.push(point);
                }
            }
        }
        let feasible = |point: &usize| {
            let standing = self.standing(judge, *point, self.of_halving(rounds[*point]));
            matches!(standing, Some(Standing::Feasible(_)))
        };
        order.retain(feasible);
        for &best in &order {
            let others = order.iter().copied().filter(|&other| other != best);
            let like_best = others.filter(|&other| {
                let seeds = self.of_halving(rounds[best].min(rounds[other]));
                !self.is_worse(&self.less_chosen(judge, other, best, seeds))
            });
            let finalists: Vec<usize> = std::iter::once(best).chain(like_best).collect();
            let left = |point: &usize| self.standing(judge, *point, self.fresh()).is_none();
            if finalists.iter().any(left) {
                return Stage::Needs(self.needs(finalists, self.fresh()));
            }
            if let Some(Standing::Feasible(_)) = self.standing(judge, best, self.fresh()) {
                return Stage::Done(Found { best: Some(best), rounds, finalists: finalists.len() });
            }
        }
        Stage::Done(Found { best: None, rounds, finalists: 0 })
    }

    fn needs(&self, points: Vec<usize>, seeds: Range<usize>) -> BTreeSet<(Point, u64)> {
        let of = |point: usize| {
            self.seeds[seeds.clone()].iter().map(move |seed| (self.points[point].clone(), *seed))
        };
        points.into_iter().flat_map(of).collect()
    }

    /// The places of the seeds of a point that took part in this number of rounds.
    pub(crate) fn of_halving(&self, rounds: usize) -> Range<usize> {
        0..self.rounds[rounds - 1].seeds as usize
    }

    /// The places of the fresh seeds.
    pub(crate) fn fresh(&self) -> Range<usize> {
        self.seeds.len() - self.confirm..self.seeds.len()
    }

    /// How good a point seems with the seeds of these places, if it was run with all of them.
    pub(crate) fn standing(
        &self,
        judge: &Judge<'_>,
        point: usize,
        seeds: Range<usize>,
    ) -> Option<Standing> {
        let was_run = |seed: &u64| judge.ran.contains_key(&(0, self.points[point].clone(), *seed));
        if !self.seeds[seeds.clone()].iter().all(was_run) {
            return None;
        }
        let mean = |formula: &Formula| self.mean(judge, point, formula, seeds.clone());
        let excess = |constraint: &Condition| Ok(constraint.excess(mean)?.max(0.0));
        let broken = self.constraints.iter().map(excess).sum::<Result<f64, String>>();
        Some(match (mean(&self.aim), broken) {
            (Err(_), _) | (_, Err(_)) => Standing::Failed,
            (Ok(mean), Ok(0.0)) => Standing::Feasible(if self.maximise { -mean } else { mean }),
            (_, Ok(broken)) => Standing::Infeasible(broken),
        })
    }

    /// The values of `formula` at a point, for each seed of these places.
    pub(crate) fn values(
        &self,
        judge: &Judge<'_>,
        point: usize,
        formula: &Formula,
        seeds: Range<usize>,
    ) -> Result<Vec<f64>, String> {
        let value = |seed: &u64| judge.value(0, formula, &self.points[point], *seed);
        self.seeds[seeds].iter().map(value).collect()
    }

    pub(crate) fn mean(
        &self,
        judge: &Judge<'_>,
        point: usize,
        formula: &Formula,
        seeds: Range<usize>,
    ) -> Result<f64, String> {
        let values = self.values(judge, point, formula, seeds)?;
        Ok(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The aim at a point less that at `best`, seed by seed; one of several `sentences`.
    pub(crate) fn less_best(
        &self,
        judge: &Judge<'_>,
        point: usize,
        best: usize,
        seeds: Range<usize>,
        sentences: usize,
    ) -> metrics::Difference {
        let of = |point: usize| self.values(judge, point, &self.aim, seeds.clone());
        let (own, best) = (of(point).unwrap_or_default(), of(best).unwrap_or_default());
        let differences: Vec<f64> = own.iter().zip(best).map(|(own, best)| own - best).collect();
        metrics::Difference::so_far(&differences, u32::try_from(sentences).unwrap_or(u32::MAX))
    }

    /// The same over seeds of the halving, which have chosen the best: any pair of points could
    /// have been compared, after any of the rounds.
    pub(crate) fn less_chosen(
        &self,
        judge: &Judge<'_>,
        point: usize,
        best: usize,
        seeds: Range<usize>,
    ) -> metrics::Difference {
        let pairs = self.points.len() * (self.points.len() - 1) / 2;
        self.less_best(judge, point, best, seeds, PARTS * pairs * self.rounds.len())
    }

    /// The same over fresh seeds, of all but one of so many points.
    pub(crate) fn less_confirmed(
        &self,
        judge: &Judge<'_>,
        point: usize,
        best: usize,
        finalists: usize,
    ) -> metrics::Difference {
        self.less_best(judge, point, best, self.fresh(), PARTS * (finalists - 1))
    }

    /// Whether a point with this difference to the best is worse.
    pub(crate) fn is_worse(&self, less_best: &metrics::Difference) -> bool {
        let worse = if self.maximise { metrics::Order::Lower } else { metrics::Order::Higher };
        less_best.order == worse
    }
}

/// The points of the axes with the edits `sets`.
fn points(table: &mut Reader<'_>, sets: &[run::Edit]) -> Checked<Points> {
    let Some(node) = table.node("axes") else {
        return Err(table.missing("axes", "add `axes = { k = { from = 5, to = 100 } }`"));
    };
    let space = Space::read(node)?;
    let axes = space.axes();
    run::check_placeholders(&axes, sets, &table.place("axes"))?;
    let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
    let conditions = table.node("where").map_or(Ok(Vec::new()), run::texts)?;
    let condition = |(text, at): &(String, At)| {
        Condition::read(text, at, |side| condition::of_axes(side, &names, at))
    };
    let conditions = conditions.iter().map(condition).collect::<Checked<Vec<_>>>()?;
    // Where a name is not a number, no condition on it holds.
    let holds = |values: &[AxisValue]| {
        let number = |name: &str| {
            let at = names.iter().position(|axis| *axis == name);
            at.and_then(|i| values.get(i)?.number).ok_or_else(String::new)
        };
        let holds = |of: &Condition| of.excess(|formula| formula.eval(number));
        conditions.iter().all(|of| holds(of).is_ok_and(|excess| excess <= 0.0))
    };
    let points = choose(&space, wanted(table, &space)?, &holds, table)?;
    match points.points.len() {
        0 if !conditions.is_empty() => Err(nothing_meets(table)),
        0 | 1 => {
            let error = table.error("axes", "there are fewer than two points", "here");
            Err(error.hint("give an axis more values, or leave out a condition of `where`"))
        }
        _ => Ok(points),
    }
}

/// How many points are drawn; `None` if all combinations are run.
fn wanted(table: &mut Reader<'_>, space: &Space) -> Checked<Option<usize>> {
    let all = space.combinations();
    let Some(wanted) = table.maybe::<u32>("points")? else {
        return match all {
            Some(all) if all <= POINTS_MAX as u64 => Ok(None),
            Some(all) => {
                let error = table.error("axes", format!("{all} combinations of values"), "here");
                Err(error.hint(format!("{POINTS_MAX} at most; say with `points` how many to draw")))
            }
            None => Err(table.missing("points", "a range has any number: add `points = 16`")),
        };
    };
    let wanted = table.within("points", wanted, 2..=POINTS_MAX as u32)?;
    Ok((all != Some(u64::from(wanted))).then_some(wanted as usize))
}

fn choose(
    space: &Space,
    wanted: Option<usize>,
    holds: &dyn Fn(&[AxisValue]) -> bool,
    table: &Reader<'_>,
) -> Checked<Points> {
    let Some(wanted) = wanted else { return Ok(space.grid(holds)) };
    space.draw(wanted, holds).map_err(|few| {
        if few.0 == 0 {
            return nothing_meets(table);
        }
        let message = format!("there are not {wanted} points: {} were found", few.0);
        let error = table.error("points", message, "too many");
        error.hint("fewer points, wider ranges, or fewer conditions in `where`")
    })
}

/// No point meets the conditions of `where`.
fn nothing_meets(table: &Reader<'_>) -> Diagnostic {
    let error = table.error("where", "no point meets these conditions", "here");
    error.hint("wider ranges, or fewer conditions; one on an axis of names never holds")
}

/// How many seeds are fresh.
fn confirm(
    table: &mut Reader<'_>,
    points: usize,
    (seeds, seeds_at): (&[u64], &At),
) -> Checked<usize> {
    let Some(confirm) = table.maybe::<u32>("confirm")? else {
        let hint = "add `confirm = 10`: the last 10 seeds do not choose the best, but confirm it";
        return Err(table.missing("confirm", hint));
    };
    let confirm = table.within("confirm", confirm, 2..=RUNS_MAX as u32)? as usize;
    if seeds.len() <= confirm {
        let message = format!("there are {} seeds, and {confirm} are to be fresh", seeds.len());
        let error = seeds_at.error(message, "too few");
        return Err(error.hint("the halving takes the others: give more, or a smaller `confirm`"));
    }
    if points as u64 * seeds.len() as u64 > RUNS_MAX {
        let message = format!("{points} points with {} seeds each", seeds.len());
        let error = seeds_at.error(message, "too many");
        return Err(error.hint(format!("{RUNS_MAX} runs at most: fewer points or seeds")));
    }
    Ok(confirm)
}

/// How many runs the halving of so many points may take.
fn budget(table: &mut Reader<'_>, points: usize, instead: Option<u64>) -> Checked<u64> {
    let (rounds, least) = (halving::rounds(points), halving::least_budget(points, 1));
    let example = halving::least_budget(points, 2);
    let about =
        format!("{points} points in {rounds} rounds: with {example} runs each has two seeds");
    let hint = format!("{about} in the first, so `budget = {example}`, or more");
    let own = table.maybe("budget")?;
    match instead.or(own) {
        Some(budget) if budget >= least => Ok(budget),
        Some(budget) => {
            let message = format!("a budget of {budget} runs is less than {least}, one seed each");
            let at = match instead {
                Some(_) => run::given("--budget", &budget.to_string()),
                None => table.place("budget"),
            };
            Err(at.error(message, "too small").hint(hint))
        }
        None => Err(table.missing("budget", &hint)),
    }
}

/// What is made small or large.
fn aim(table: &mut Reader<'_>, figure: &Figure) -> Checked<(Arc<Formula>, bool)> {
    let hint = "`minimise = \"slowdown.p99\"`, or `maximise`";
    let of = |table: &mut Reader<'_>, key: &'static str| {
        let aim = figure.formula(table, key, 0)?;
        if aim.names().next().is_none() {
            let error =
                table.error(key, format!("`{}` is the same at every point", aim.text), "here");
            return Err(error.hint(hint));
        }
        Ok(aim)
    };
    match (table.has("minimise"), table.has("maximise")) {
        (true, false) => Ok((of(table, "minimise")?, false)),
        (false, true) => Ok((of(table, "maximise")?, true)),
        (false, false) => Err(table.missing("minimise", hint)),
        (true, true) => Err(table
            .error("maximise", "there are two aims", "the second")
            .hint("keep one of them, and make a constraint of the other")),
    }
}

fn constraints(table: &mut Reader<'_>, figure: &Figure) -> Checked<Vec<Condition>> {
    let texts = table.node("constraints").map_or(Ok(Vec::new()), run::texts)?;
    let constraint = |(text, at): &(String, At)| {
        let side = |side: &str| figure.formula_of(side, table, "constraints", 0);
        Condition::read(text, at, side)
    };
    texts.iter().map(constraint).collect()
}

/// The figure whose only run is the scenario `file` at all points.
fn figure(file: &Path, run: Run) -> Figure {
    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| "tune".to_owned());
    Figure::of_runs(name, PathBuf::new(), vec![run])
}
