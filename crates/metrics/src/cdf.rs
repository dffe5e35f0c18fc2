//! Cumulative distributions with no more points than the eye can use, in the tail as well.

use crate::{FileError, Sorted};

/// Percentiles, in thousandths, that every curve has exactly: those that results state.
const EXACT: [u32; 4] = [500, 900, 990, 999];

/// How closely a curve follows its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thinning {
    /// Between neighbouring points there is at most this part of the values: 1/400 of them.
    pub body: usize,
    /// And at most this part of the values that are not smaller: 1/10 of them. So the tail has
    /// points as far as it goes.
    pub tail: usize,
}

impl Thinning {
    /// What the eye can use.
    pub const FINE: Self = Self { body: 400, tail: 10 };
    /// For curves of which there are many.
    pub const COARSE: Self = Self { body: 100, tail: 10 };

    /// The ranks of the points of `n` values, ascending: the first and the last, the exact
    /// percentiles, and what lies between them.
    fn ranks(self, n: usize) -> Vec<usize> {
        let mut exact = EXACT.map(|permille| crate::statistics::rank(n, permille)).to_vec();
        exact.push(n - 1);
        let mut ranks = vec![0];
        for end in exact {
            while let Some(&at) = ranks.last()
                && at < end
            {
                let step = (n / self.body).min((n - at) / self.tail).max(1);
                ranks.push((at + step).min(end));
            }
        }
        ranks
    }
}

/// The cumulative distribution of ascending values, as (value, share of values up to it), from
/// (smallest, 0) on. Few values are drawn as the staircase they are. Every point is exact.
#[must_use]
pub fn cdf(ascending: &[f64]) -> Vec<(f64, f64)> {
    thinned(ascending, Thinning::FINE)
}

fn thinned(ascending: &[f64], thinning: Thinning) -> Vec<(f64, f64)> {
    let n = ascending.len();
    let Some(first) = ascending.first() else { return Vec::new() };
    let mut points = vec![(*first, 0.0)];
    if n <= thinning.body / 2 {
        let step = |(i, v): (usize, &f64)| [(*v, i as f64 / n as f64), (*v, share(i, n))];
        points.extend(ascending.iter().enumerate().flat_map(step));
        return points;
    }
    points.extend(thinning.ranks(n).into_iter().map(|rank| (ascending[rank], share(rank, n))));
    points
}

/// The same of values that need not be in memory.
///
/// # Errors
/// They cannot be read.
pub fn cdf_of(ascending: &Sorted<f64>, thinning: Thinning) -> Result<Vec<(f64, f64)>, FileError> {
    if let Sorted::Held(values) = ascending {
        return Ok(thinned(values, thinning));
    }
    let n = ascending.len() as usize;
    let mut points = Vec::new();
    let mut ranks = thinning.ranks(n).into_iter().peekable();
    for (at, value) in ascending.iter()?.enumerate() {
        let value = value?;
        points.extend((at == 0).then_some((value, 0.0)));
        points.extend(ranks.next_if_eq(&at).map(|rank| (value, share(rank, n))));
    }
    Ok(points)
}

/// The share of `n` values up to that of `rank`, from zero.
fn share(rank: usize, n: usize) -> f64 {
    (rank + 1) as f64 / n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_a_staircase() {
        let points = cdf(&[1.0, 3.0]);
        assert_eq!(points, [(1.0, 0.0), (1.0, 0.0), (1.0, 0.5), (3.0, 0.5), (3.0, 1.0)]);
        assert_eq!(cdf(&[]), []);
    }

    #[test]
    fn values_in_a_file_have_the_same_curve() {
        let dir = tempfile::tempdir().unwrap();
        let sorted = |dir: Option<&std::path::Path>| {
            let mut sorter = crate::Sorter::new(dir);
            (0..300_000).rev().for_each(|n| sorter.push(f64::from(n % 1000)).unwrap());
            sorter.sort().unwrap()
        };
        let (held, written) = (sorted(None), sorted(Some(dir.path())));
        assert!(matches!(written, Sorted::Written(_)));
        let curve = |sorted| cdf_of(sorted, Thinning::FINE).unwrap();
        assert_eq!(curve(&written), curve(&held));
    }

    #[test]
    fn many_values_are_thinned_within_what_is_stated() {
        for thinning in [Thinning::FINE, Thinning::COARSE] {
            for n in [201, 400, 401, 5_000, 100_000, 1_000_000] {
                let values: Vec<f64> = (0..n).map(f64::from).collect();
                let points = thinned(&values, thinning);
                assert!(points.len() <= thinning.body + 150, "{n}: {}", points.len());
                assert_eq!(points.first(), Some(&(0.0, 0.0)));
                assert_eq!(points.last(), Some(&(f64::from(n - 1), 1.0)), "the largest is in");
                for pair in points[1..].windows(2) {
                    let (at, between) = (pair[0].0, pair[1].0 - pair[0].0);
                    let body = f64::from(n) / thinning.body as f64;
                    let tail = (f64::from(n) - at) / thinning.tail as f64;
                    assert!(between <= body.min(tail).max(1.0), "{n}: {between} after {at}");
                }
            }
        }
    }

    #[test]
    fn stated_percentiles_are_points() {
        let values: Vec<f64> = (0..77_777).map(f64::from).collect();
        let points = cdf(&values);
        for permille in EXACT {
            let value = crate::nearest_rank(&values, permille).unwrap();
            assert!(points.iter().any(|(x, _)| *x == value), "{permille}");
        }
    }
}
