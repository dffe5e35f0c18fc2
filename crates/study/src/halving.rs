//! Successive halving: which points get more seeds, and which are left at the end. The rule is
//! Sequential Halving (docs/specs/halving.md, section 1).

use std::cmp::Ordering;
use std::ops::Range;

use metrics::HalvingRound;

/// How good a point seems. Less is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Standing {
    /// The mean of the aim, where no constraint is broken.
    Feasible(f64),
    /// By how much constraints are broken.
    Infeasible(f64),
    Failed,
}

impl Standing {
    /// A point that breaks no constraint is better than one that does; of two that do, the one
    /// that breaks them by less (docs/specs/halving.md, section 3).
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Feasible(a), Self::Feasible(b)) | (Self::Infeasible(a), Self::Infeasible(b)) => {
                a.total_cmp(b)
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Feasible(_) => 0,
            Self::Infeasible(_) => 1,
            Self::Failed => 2,
        }
    }
}

/// How many rounds it takes until one of `points` is left.
pub(crate) const fn rounds(points: usize) -> u32 {
    if points < 2 { 0 } else { (points - 1).ilog2() + 1 }
}

/// The rounds of `points` with `budget` jobs, which they share equally, but with no more seeds than
/// `most`.
pub(crate) fn schedule(points: usize, budget: u64, most: u64) -> Vec<HalvingRound> {
    let count = rounds(points);
    let (mut left, mut seeds) = (points as u64, 0);
    let mut round = |_| {
        seeds = (seeds + budget / (left * u64::from(count))).min(most);
        let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let round = HalvingRound { points: number(left), seeds: number(seeds) };
        left = left.div_ceil(2);
        round
    };
    (0..count).map(&mut round).collect()
}

/// The least budget with which each of `points` has `seeds` in the first round.
pub(crate) fn least_budget(points: usize, seeds: u64) -> u64 {
    points as u64 * u64::from(rounds(points)) * seeds
}

/// What the halving says.
#[derive(Debug, PartialEq)]
pub(crate) enum Halved {
    /// These points need jobs with the seeds of these places.
    Needs(Vec<usize>, Range<usize>),
    /// The points of each round, the best first; after the last round its first one is left.
    Done(Vec<Vec<usize>>),
}

/// Go through `rounds`. `standing` says how good a point seems with a number of seeds, the first
/// ones, if it was run with them.
pub(crate) fn halve(
    points: usize,
    rounds: &[HalvingRound],
    standing: &dyn Fn(usize, usize) -> Option<Standing>,
) -> Halved {
    let mut left: Vec<usize> = (0..points).collect();
    let mut ranked = Vec::new();
    for round in rounds {
        let seeds = round.seeds as usize;
        let stands: Vec<Option<Standing>> =
            left.iter().map(|&point| standing(point, seeds)).collect();
        let open = left.iter().zip(&stands).filter(|(_, stands)| stands.is_none());
        let open: Vec<usize> = open.map(|(point, _)| *point).collect();
        if !open.is_empty() {
            return Halved::Needs(open, 0..seeds);
        }
        let mut order: Vec<(usize, Standing)> =
            left.into_iter().zip(stands.into_iter().flatten()).collect();
        // Of equal ones the first stays first.
        order.sort_by(|(_, a), (_, b)| a.order(b));
        left = order.into_iter().map(|(point, _)| point).collect();
        ranked.push(left.clone());
        left.truncate(left.len().div_ceil(2));
    }
    Halved::Done(ranked)
}

#[cfg(test)]
mod tests {
    use endpoint::{Draw, Purpose};

    use super::*;

    #[test]
    fn rounds_share_the_budget() {
        assert_eq!([0, 1, 2, 3, 4, 5, 8, 9].map(rounds), [0, 0, 1, 2, 2, 3, 3, 4]);
        let of = |points, budget| -> Vec<(u32, u32)> {
            schedule(points, budget, u64::MAX).iter().map(|r| (r.points, r.seeds)).collect()
        };
        assert_eq!(of(16, 128), [(16, 2), (8, 6), (4, 14), (2, 30)]);
        assert_eq!(of(5, 100), [(5, 6), (3, 17), (2, 33)], "what is left is rounded up");
        assert_eq!(of(1, 100), []);
        assert_eq!(least_budget(16, 2), 128);
        for points in 2..200 {
            for budget in [least_budget(points, 2), 1000 + least_budget(points, 2)] {
                let mut before = 0;
                let jobs = |round: &HalvingRound| {
                    let more = round.seeds - before;
                    before = round.seeds;
                    u64::from(round.points) * u64::from(more)
                };
                let rounds = schedule(points, budget, u64::MAX);
                let jobs: u64 = rounds.iter().map(jobs).sum();
                assert!(jobs <= budget && rounds[0].seeds >= 2, "{points} {budget}: {jobs}");
            }
        }
    }

    /// Points at 0, 1, ... with an optimum at `best`, and noise that is partly common to all.
    fn value(seed: u64, point: usize, best: usize, noise: f64) -> f64 {
        let uniform = |id: u64| {
            let bits = Draw::new(seed, Purpose::new("test"), id).bits(Purpose::new("noise"), 0);
            bits as f64 / u64::MAX as f64 - 0.5
        };
        let away = point.abs_diff(best) as f64;
        away * away + 5.0 * uniform(u64::MAX) + noise * uniform(point as u64)
    }

    #[test]
    fn it_finds_the_best_and_runs_it_most() {
        let mut found = 0;
        for first_seed in (0..20).map(|n| n * 1000) {
            let runs = std::cell::RefCell::new([0usize; 32]);
            let standing = |point: usize, seeds: usize| {
                let mut runs = runs.borrow_mut();
                runs[point] = runs[point].max(seeds);
                let sum: f64 =
                    (0..seeds as u64).map(|s| value(first_seed + s, point, 11, 4.0)).sum();
                Some(Standing::Feasible(sum / seeds as f64))
            };
            let rounds = schedule(32, 640, u64::MAX);
            let Halved::Done(ranked) = halve(32, &rounds, &standing) else { panic!("all is run") };
            let sizes: Vec<usize> = ranked.iter().map(Vec::len).collect();
            assert_eq!(sizes, [32, 16, 8, 4, 2]);
            found += usize::from(ranked[4][0] == 11);
            let runs = runs.into_inner();
            assert_eq!((runs[11], runs[31]), (124, 4), "{first_seed}");
        }
        assert!(found >= 18, "{found} of 20");
    }

    #[test]
    fn what_was_not_run_is_asked_for_round_by_round() {
        let rounds = schedule(4, 16, u64::MAX);
        let run_up_to = |most: usize| {
            move |point: usize, seeds: usize| {
                (seeds <= most).then_some(Standing::Feasible(-(point as f64)))
            }
        };
        assert_eq!(halve(4, &rounds, &run_up_to(0)), Halved::Needs(vec![0, 1, 2, 3], 0..2));
        assert_eq!(halve(4, &rounds, &run_up_to(2)), Halved::Needs(vec![3, 2], 0..6));
        let done = Halved::Done(vec![vec![3, 2, 1, 0], vec![3, 2]]);
        assert_eq!(halve(4, &rounds, &run_up_to(6)), done);
    }

    #[test]
    fn constraints_come_before_the_aim_and_failures_last() {
        let stands = [
            Standing::Failed,
            Standing::Infeasible(0.5),
            Standing::Feasible(9.0),
            Standing::Infeasible(0.1),
            Standing::Feasible(2.0),
        ];
        let rounds = schedule(5, 30, u64::MAX);
        let Halved::Done(ranked) = halve(5, &rounds, &|point, _| Some(stands[point])) else {
            panic!("all is run")
        };
        assert_eq!(ranked[0], [4, 2, 3, 1, 0]);
    }
}
