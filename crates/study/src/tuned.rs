//! [`Tuned`]: what a search has found, as results.

use std::ops::Range;

use metrics::{
    Aim, Difference, Estimate, Flat, Order, Stands, TUNE_SCHEMA, TunePoint, TuneResults,
};
use scenario::ENGINE_VERSION;

use crate::halving::Standing;
use crate::judge::Judge;
use crate::reproduce::Ran;
use crate::run::Point;
use crate::runs;
use crate::tune::{Found, Stage, Tune};

/// A search and what its runs measured.
pub(crate) struct Tuned<'t> {
    pub(crate) tune: &'t Tune,
    pub(crate) judge: Judge<'t>,
}

/// A point as the results have it, and how good it is.
type Ranked = (TunePoint, Standing);

impl Tuned<'_> {
    /// What was found. `command` repeats it.
    pub(crate) fn results(&self, command: String) -> TuneResults {
        let found = match self.tune.stage(&self.judge) {
            Stage::Done(found) => Some(found),
            Stage::Needs(_) => None,
        };
        let all = 0..self.tune.points.len();
        let mut points: Vec<Ranked> = match &found {
            Some(found) => all.map(|point| self.point(point, found)).collect(),
            None => all.map(|point| self.open(point)).collect(),
        };
        // Of equal ones the first stays first.
        points.sort_by(|(a, is), (b, of)| a.stands.cmp(&b.stands).then_with(|| is.order(of)));
        let points: Vec<TunePoint> = points.into_iter().map(|(point, _)| point).collect();
        let axes = self.tune.run().axes.iter().map(|axis| axis.name.clone()).collect();
        let best = found.and_then(|found| found.best);
        TuneResults {
            schema: TUNE_SCHEMA,
            engine: ENGINE_VERSION,
            command,
            title: self.tune.study().title.clone(),
            aim: Aim { metric: self.tune.aim.text.clone(), maximise: self.tune.maximise },
            constraints: self.tune.constraints.iter().map(|of| of.text.clone()).collect(),
            axes,
            drawn: self.tune.drawn,
            rounds: self.tune.rounds.clone(),
            confirm: u32::try_from(self.tune.confirm).unwrap_or(u32::MAX),
            jobs: self.judge.ran.len() as u64,
            flat: self.flat(&points),
            warnings: best.map_or_else(Vec::new, |best| self.warnings(best)),
            points,
        }
    }

    /// A point of a search that has ended.
    fn point(&self, point: usize, found: &Found) -> Ranked {
        let tune = self.tune;
        let halving = tune.of_halving(found.rounds[point]);
        let fresh = tune.standing(&self.judge, point, tune.fresh());
        let standing = fresh.or_else(|| tune.standing(&self.judge, point, halving.clone()));
        let standing = standing.unwrap_or(Standing::Failed);
        let latest = if fresh.is_some() { tune.fresh() } else { halving.clone() };
        let beside = |best: &usize| *best != point && matches!(standing, Standing::Feasible(_));
        let less_best = found.best.filter(beside).map(|best| match fresh {
            Some(_) => tune.less_confirmed(&self.judge, point, best, found.finalists),
            None => {
                let common = tune.of_halving(found.rounds[point].min(found.rounds[best]));
                tune.less_chosen(&self.judge, point, best, common)
            }
        });
        let stands = match (standing, &less_best) {
            (Standing::Failed, _) => Stands::Failed,
            (Standing::Infeasible(_), _) => Stands::Infeasible,
            (Standing::Feasible(_), None) => Stands::Best,
            (Standing::Feasible(_), Some(less)) => self.beside_best(less),
        };
        let estimated = TunePoint {
            stands,
            rounds: u32::try_from(found.rounds[point]).unwrap_or(u32::MAX),
            chosen_by: self.estimate(point, halving),
            confirmed: fresh.and_then(|_| self.estimate(point, tune.fresh())),
            less_best,
            ..self.about(point, latest)
        };
        (estimated, standing)
    }

    /// What a point is whose aim less that of the best is `less`.
    fn beside_best(&self, less: &Difference) -> Stands {
        match less.order {
            Order::Lower | Order::Higher if self.tune.is_worse(less) => Stands::Worse,
            Order::Lower | Order::Higher => Stands::Better,
            Order::Equal | Order::Undecided | Order::Unknown => Stands::Flat,
        }
    }

    /// A point of a search of which jobs are missing: with the seeds of the first round.
    fn open(&self, point: usize) -> Ranked {
        let first = self.tune.of_halving(1);
        let open = TunePoint {
            stands: Stands::Open,
            chosen_by: self.estimate(point, first.clone()),
            ..self.about(point, first)
        };
        (open, Standing::Failed)
    }

    /// What is known of a point without a comparison, with the seeds of these places.
    fn about(&self, point: usize, seeds: Range<usize>) -> TunePoint {
        let (tune, run) = (self.tune, self.tune.run());
        let at: &Point = &tune.points[point];
        let values = || run.axes.iter().zip(at).map(|(axis, &i)| &axis.values[i]);
        let mean = |formula| tune.mean(&self.judge, point, formula, seeds.clone());
        let sides = tune.constraints.iter().map(|of| mean(&of.left));
        let first = self.judge.ran.get(&(0, at.clone(), tune.seeds[0]));
        TunePoint {
            at: values().map(|value| value.text.clone()).collect(),
            numbers: values().map(|value| value.number).collect(),
            stands: Stands::Open,
            rounds: 0,
            chosen_by: None,
            confirmed: None,
            constraints: sides.clone().map(Result::ok).collect(),
            less_best: None,
            error: std::iter::once(mean(&tune.aim)).chain(sides).find_map(Result::err),
            repeat: first.map_or_else(String::new, |ran| ran.record.command.clone()),
        }
    }

    /// The aim at a point over the seeds of these places.
    fn estimate(&self, point: usize, seeds: Range<usize>) -> Option<Estimate> {
        Estimate::of(&self.tune.values(&self.judge, point, &self.tune.aim, seeds).ok()?)
    }

    /// Where the optimum is flat: the best point, and those that are not worse.
    fn flat(&self, points: &[TunePoint]) -> Option<Flat> {
        let best = points.iter().find(|point| point.stands == Stands::Best)?;
        let flat: Vec<&TunePoint> = points
            .iter()
            .filter(|point| matches!(point.stands, Stands::Best | Stands::Flat))
            .collect();
        let ends = |axis: usize| {
            let index = |point: &&TunePoint| {
                let values = &self.tune.run().axes[axis].values;
                values.iter().position(|value| value.text == point.at[axis])
            };
            let places = || flat.iter().filter_map(index);
            let text = |i: usize| self.tune.run().axes[axis].values[i].text.clone();
            Some((text(places().min()?), text(places().max()?)))
        };
        let (from, to) = (0..best.at.len()).filter_map(ends).unzip();
        let of_best = best.aim()?.mean.abs();
        let within = |point: &&TunePoint| {
            let less = point.less_best.as_ref()?;
            let mean = less.estimate?.mean;
            let worse = if self.tune.maximise { -mean } else { mean };
            Some((worse + less.joint_interval?) / of_best)
        };
        let within = flat.iter().filter_map(within).max_by(f64::total_cmp);
        Some(Flat {
            points: u32::try_from(flat.len()).unwrap_or(u32::MAX),
            from,
            to,
            within: within.filter(|share| share.is_finite()).map(|share| share.max(0.0)),
        })
    }

    /// What the runs of the best point warn of.
    fn warnings(&self, best: usize) -> Vec<String> {
        let own = |((_, point, _), ran): (&(usize, Point, u64), &'_ Ran)| {
            (*point == self.tune.points[best]).then(|| ran.warnings.clone())
        };
        let warnings: Vec<Vec<String>> = self.judge.ran.iter().filter_map(own).collect();
        runs::warnings("the best point", &warnings)
    }
}

#[cfg(test)]
mod tests {
    use endpoint::{Draw, Purpose};

    use super::*;
    use crate::plan::Plan;
    use crate::reproduce::AllRan;
    use crate::tune::Instead;

    /// Eight points and twenty seeds, of which the last ten are fresh.
    const SEARCH: &str = r#"
name = "made up"
[tune]
axes = { n = [0, 1, 2, 3, 4, 5, 6, 7] }
set = ["traffic.senders={n}"]
seeds = "0-19"
budget = 72
confirm = 10
minimise = "fct_us.p99"
constraints = ["utilization >= 0.5"]
"#;

    /// The first of the fresh seeds.
    const FRESH: u64 = 10;

    /// What a search finds where a run at `n` with a seed has this aim and this utilization.
    fn search(value: &dyn Fn(u64, u64) -> (f64, f64)) -> TuneResults {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.toml");
        std::fs::write(&file, SEARCH).unwrap();
        let tune = Tune::load(&file, &Instead::default()).unwrap();
        let plan = Plan::unchecked(tune.study(), false).unwrap();
        let mut ran = AllRan::new();
        loop {
            let judge = Judge {
                study: "",
                figure: &tune.study().figures[0],
                quick: false,
                seeds: usize::MAX,
                ran: &ran,
            };
            let Stage::Needs(wanted) = tune.stage(&judge) else {
                return Tuned { tune: &tune, judge }.results(String::new());
            };
            for (point, seed) in wanted {
                let job = plan.jobs.iter().find(|job| job.point == point && job.seed == seed);
                let mut made_up = Ran::nothing(job.unwrap());
                let (aim, utilization) = value(point[0] as u64, seed);
                made_up.metrics.insert("fct_us.p99".to_owned(), aim);
                made_up.metrics.insert("utilization".to_owned(), utilization);
                ran.insert((0, point, seed), made_up);
            }
        }
    }

    /// Uniform between -1 and 1.
    fn noise(search: u64, n: u64, seed: u64) -> f64 {
        let bits = Draw::new(search, Purpose::new("test"), n).bits(Purpose::new("noise"), seed);
        2.0 * (bits as f64 / u64::MAX as f64) - 1.0
    }

    fn place(results: &TuneResults, stands: Stands) -> Vec<&str> {
        let of = results.points.iter().filter(|point| point.stands == stands);
        of.map(|point| &*point.at[0]).collect()
    }

    /// Where all points are alike, the one that is chosen looks better than it is in the data that
    /// chose it. Fresh seeds say what it is.
    #[test]
    fn fresh_seeds_do_not_flatter_the_best() {
        const SEARCHES: u64 = 100;
        let (mut chosen_by, mut confirmed, mut all_flat) = (0.0, 0.0, 0);
        for n in 0..SEARCHES {
            let results = search(&|point, seed| (10.0 + noise(n, point, seed), 1.0));
            let best = results.best().unwrap();
            chosen_by += best.chosen_by.unwrap().mean / SEARCHES as f64;
            confirmed += best.confirmed.unwrap().mean / SEARCHES as f64;
            all_flat += u32::from(results.flat.unwrap().points == 8);
        }
        assert!(chosen_by < 9.8, "{chosen_by}");
        assert!((confirmed - 10.0).abs() < 0.06, "three standard errors: {confirmed}");
        assert!(all_flat >= 93, "of {SEARCHES} searches {all_flat} say that all is flat");
    }

    #[test]
    fn what_is_clearly_worse_is_no_finalist() {
        let results = search(&|n, seed| {
            let noise = noise(0, 9, seed) + 0.01 * noise(1, n, seed);
            (10.0 + n.abs_diff(3) as f64 + noise, 1.0)
        });
        assert_eq!(place(&results, Stands::Best), ["3"]);
        assert_eq!(place(&results, Stands::Worse).len(), 7);
        let best = results.best().unwrap();
        assert_eq!((best.rounds, best.confirmed.unwrap().seeds), (3, 10));
        // Most of the noise is common to all and gone in the differences: three seeds decide.
        let far = results.points.last().unwrap();
        assert_eq!((&*far.at[0], far.confirmed, far.rounds), ("7", None, 1));
    }

    /// Points that are alike: `worse` and `better` are false, in 5 % of searches at most. With
    /// noise of 5 % of 100 searches, 11 or more come by chance with less than 2 %.
    #[test]
    fn equal_points_are_seldom_told_apart() {
        let wrong = |n: &u64| {
            let results = search(&|point, seed| (10.0 + noise(1_000 + n, point, seed), 1.0));
            let told = |stands| !place(&results, stands).is_empty();
            told(Stands::Worse) || told(Stands::Better)
        };
        let wrong = (0..100).filter(wrong).count();
        assert!(wrong <= 10, "{wrong} of 100");
    }

    #[test]
    fn where_nothing_is_flat_it_says_what_the_others_are() {
        let results = search(&|n, seed| {
            let aim = 10.0 + n.abs_diff(3) as f64 + noise(1, n, seed) * 0.01;
            (aim, if n > 4 { 0.4 } else { 0.6 })
        });
        let said = results.sentences().join("\n");
        assert!(
            said.contains("flat: nowhere; of the other points 4 worse, 3 infeasible"),
            "{said}"
        );
    }

    #[test]
    fn a_best_point_that_breaks_a_constraint_with_fresh_seeds_is_none() {
        let results = search(&|n, seed| {
            let breaks = n == 3 && seed >= FRESH;
            let aim = 10.0 + 0.1 * n.abs_diff(3) as f64 + noise(1, n, seed) * 0.01;
            (aim, if breaks { 0.4 } else { 0.6 })
        });
        assert_eq!(place(&results, Stands::Infeasible), ["3"]);
        assert!(["2", "4"].contains(&place(&results, Stands::Best)[0]));
    }

    #[test]
    fn a_point_that_was_dropped_by_chance_is_shown() {
        // A finalist, since its few values of the halving scatter.
        let unlucky = |seed: u64| if seed >= FRESH { 5.0 } else { 10.5 + noise(2, 0, seed) };
        let results = search(&|n, seed| match n {
            6 => (unlucky(seed), 1.0),
            _ => (10.0 + 0.01 * n as f64 + noise(2, n, seed) * 0.5, 1.0),
        });
        assert_eq!(place(&results, Stands::Better), ["6"]);
        assert_ne!(results.best().unwrap().at, ["6"]);
        let said = results.sentences().join("\n");
        assert!(said.contains("n=6 is better with fresh seeds"), "{said}");
    }
}
