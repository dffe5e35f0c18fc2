//! Cumulative distributions with no more points than the eye can use.

use crate::{FileError, Sorted};

/// The most points of one curve.
const POINTS: usize = 400;

/// Of these, so many in the last hundredth: the tail is what people look at.
const TAIL_POINTS: usize = 100;

/// The cumulative distribution of ascending values, as (value, share of values up to it), from
/// (smallest, 0) on. Few values are drawn as the staircase they are.
#[must_use]
pub fn cdf(ascending: &[f64]) -> Vec<(f64, f64)> {
    let n = ascending.len();
    let Some(first) = ascending.first() else { return Vec::new() };
    let mut points = vec![(*first, 0.0)];
    if n <= POINTS / 2 {
        let step = |(i, v): (usize, &f64)| [(*v, i as f64 / n as f64), (*v, share(i, n))];
        points.extend(ascending.iter().enumerate().flat_map(step));
        return points;
    }
    points.extend(ranks(n).into_iter().map(|rank| (ascending[rank], share(rank, n))));
    points
}

/// The same of values that need not be in memory.
///
/// # Errors
/// They cannot be read.
pub fn cdf_of(ascending: &Sorted<f64>) -> Result<Vec<(f64, f64)>, FileError> {
    if let Sorted::Held(values) = ascending {
        return Ok(cdf(values));
    }
    let n = ascending.len() as usize;
    let mut points = Vec::new();
    let mut ranks = ranks(n).into_iter().peekable();
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

/// The ranks of the points of many values, ascending.
fn ranks(n: usize) -> Vec<usize> {
    let tail = n - n / 100;
    let body = (0..POINTS - TAIL_POINTS).map(|i| i * tail / (POINTS - TAIL_POINTS));
    let rest = (0..=TAIL_POINTS).map(|i| tail + i * (n - 1 - tail) / TAIL_POINTS);
    let mut ranks: Vec<usize> = body.chain(rest).map(|rank| rank.min(n - 1)).collect();
    ranks.dedup();
    ranks
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
        assert_eq!(cdf_of(&written).unwrap(), cdf_of(&held).unwrap());
    }

    #[test]
    fn many_values_are_thinned_and_keep_their_ends() {
        for n in [201, 400, 401, 5_000, 100_000] {
            let values: Vec<f64> = (0..n).map(f64::from).collect();
            let points = cdf(&values);
            assert!(points.len() <= POINTS + 2, "{n}: {}", points.len());
            assert_eq!(points.first(), Some(&(0.0, 0.0)));
            assert_eq!(points.last(), Some(&(f64::from(n - 1), 1.0)), "the largest is in");
            assert!(points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
        }
    }
}
