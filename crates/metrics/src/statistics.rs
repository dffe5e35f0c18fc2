//! Mean and deviation in one pass, fairness, and exact percentiles.

use std::path::Path;

use crate::{FileError, Sorted, Sorter};

/// Mean and standard deviation in one pass. Source: B. P. Welford, "Note on a method for
/// calculating corrected sums of squares and products", Technometrics 4 (1962).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Takes a value in.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    /// The mean; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// The sample's standard deviation (divided by n - 1); `None` below two values.
    #[must_use]
    pub fn stdev(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }
}

/// Values that are summed up as they come, and sorted at the end.
#[derive(Debug)]
pub(crate) struct Values {
    moments: Moments,
    sorter: Sorter<f64>,
}

impl Values {
    /// None yet; as [`Sorter::new`].
    pub(crate) fn new(dir: Option<&Path>) -> Self {
        Self { moments: Moments::default(), sorter: Sorter::new(dir) }
    }

    /// Takes a value in, if there is one.
    pub(crate) fn extend(&mut self, value: Option<f64>) -> Result<(), FileError> {
        value.map_or(Ok(()), |value| {
            self.moments.add(value);
            self.sorter.push(value)
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.moments.count
    }

    pub(crate) fn moments(&self) -> Moments {
        self.moments
    }

    /// In ascending order.
    pub(crate) fn sort(self) -> Result<Sorted<f64>, FileError> {
        self.sorter.sort()
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut moments = Self::default();
        values.into_iter().for_each(|v| moments.add(v));
        moments
    }
}

/// The 97.5th percentile of Student's t for 1, 2, ... degrees of freedom. Source: any table of it,
/// for example NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2.
const STUDENT_T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The mean of independent values, and half the width of its 95 % confidence interval by Student's
/// t, of which there is none below two values. `None` without values.
#[must_use]
pub fn mean_and_interval(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let t = |freedom: usize| {
        STUDENT_T.get(freedom - 1).copied().unwrap_or_else(|| student_t(0.95, freedom))
    };
    mean_and_interval_by(values, t)
}

/// The same of another `confidence`, such as 0.99.
#[must_use]
pub fn mean_and_interval_at(values: &[f64], confidence: f64) -> Option<(f64, Option<f64>)> {
    mean_and_interval_by(values, |freedom| student_t(confidence, freedom))
}

fn mean_and_interval_by(
    values: &[f64],
    t: impl FnOnce(usize) -> f64,
) -> Option<(f64, Option<f64>)> {
    let moments: Moments = values.iter().copied().collect();
    let mean = moments.mean()?;
    let interval =
        moments.stdev().map(|stdev| t(values.len() - 1) * stdev / (values.len() as f64).sqrt());
    Some((mean, interval))
}

/// The value that Student's t with `freedom` degrees of freedom, one at least, does not exceed in
/// size with the probability `confidence`.
#[must_use]
pub fn student_t(confidence: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while within_t(high, freedom) < confidence && high < 1e12 {
        high *= 2.0;
    }
    // To the last digit of a double.
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if within_t(middle, freedom) < confidence { low = middle } else { high = middle }
    }
    high
}

/// The probability that Student's t is no larger in size than `t`. Source: Abramowitz and Stegun,
/// "Handbook of Mathematical Functions", 26.7.3 and 26.7.4.
fn within_t(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    // The terms of both series differ in where they begin.
    let odd = freedom % 2;
    let (mut sum, mut term) = (0.0, if odd == 1 { cosine } else { 1.0 });
    for n in (odd..freedom.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= (n + 1) as f64 / (n + 2) as f64 * cosine * cosine;
    }
    match odd {
        1 => std::f64::consts::FRAC_2_PI * (angle + sine * sum),
        _ => sine * sum,
    }
}

/// Jain's fairness index: (sum x)^2 / (n sum x^2). `None` if all are zero. Source: R. Jain, D.
/// Chiu, W. Hawe, "A quantitative measure of fairness and discrimination", DEC-TR-301 (1984).
pub fn jain(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum, squares) =
        values.fold((0.0, 0.0, 0.0), |(n, sum, squares), v| (n + 1.0, sum + v, squares + v * v));
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// The nearest-rank percentile of values in ascending order: the smallest one that at least
/// `permille` thousandths of them do not exceed. Exact: always one of the values, never an
/// interpolation. `None` without values.
#[must_use]
pub fn nearest_rank<T: Copy>(ascending: &[T], permille: u32) -> Option<T> {
    ascending.get(rank(ascending.len(), permille)).copied()
}

/// Where that percentile is among `n` values, from 0.
pub(crate) fn rank(n: usize, permille: u32) -> usize {
    let rank = (n as u128 * u128::from(permille)).div_ceil(1000);
    usize::try_from(rank).unwrap_or(n).saturating_sub(1).min(n.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_by_hand() {
        let moments: Moments = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().collect();
        assert_eq!(moments.mean(), Some(5.0));
        let stdev = moments.stdev().unwrap();
        assert!((stdev - (32.0f64 / 7.0).sqrt()).abs() < 1e-12, "{stdev}");
        assert_eq!(Moments::default().mean(), None);
        assert_eq!([3.0].into_iter().collect::<Moments>().stdev(), None);
    }

    #[test]
    fn fairness_by_hand() {
        assert_eq!(jain([1.0, 1.0, 1.0].into_iter()), Some(1.0));
        assert_eq!(jain([0.0, 0.0, 3.0].into_iter()), Some(1.0 / 3.0));
        assert_eq!(jain([0.0].into_iter()), None);
    }

    #[test]
    fn intervals_by_hand() {
        // Variance 2.5, t for four degrees of freedom 2.776.
        let (mean, interval) = mean_and_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(mean, 3.0);
        let expected = 2.776 * 2.5f64.sqrt() / 5.0f64.sqrt();
        assert!((interval.unwrap() - expected).abs() < 1e-12, "{interval:?}");
        assert_eq!(mean_and_interval(&[7.0]), Some((7.0, None)));
        assert_eq!(mean_and_interval(&[]), None);
        let many: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        let (_, interval) = mean_and_interval(&many).unwrap();
        assert!((interval.unwrap() - 1.984_217 * 0.050_251_89).abs() < 1e-6, "{interval:?}");
    }

    /// Values of the same handbook's table, and of the normal distribution.
    #[test]
    fn quantiles_of_student_s_t() {
        for (freedom, t) in (1..).zip(STUDENT_T) {
            assert!((student_t(0.95, freedom) - t).abs() < 6e-4, "{freedom}");
        }
        let cases = [(0.99, 1, 63.657), (0.99, 9, 3.250), (0.999, 4, 8.610), (0.9, 60, 1.671)];
        for (confidence, freedom, t) in cases {
            let found = student_t(confidence, freedom);
            assert!((found - t).abs() < 6e-4, "{confidence} {freedom}: {found}");
        }
        assert!((student_t(0.95, 100_000) - 1.95999).abs() < 1e-4);
        assert!(student_t(0.0, 3) < 1e-9);
        let at = mean_and_interval_at(&[1.0, 2.0, 3.0], 0.99).unwrap();
        assert!((at.1.unwrap() - 9.9248 / 3.0f64.sqrt()).abs() < 1e-3, "{at:?}");
    }

    #[test]
    fn nearest_ranks_by_hand() {
        let five = [15, 20, 35, 40, 50];
        let at = |permille| nearest_rank(&five, permille).unwrap();
        assert_eq!([at(50), at(300), at(400), at(500), at(1000)], [15, 20, 20, 35, 50]);
        let hundred: Vec<u32> = (1..=100).collect();
        assert_eq!(nearest_rank(&hundred, 990), Some(99));
        assert_eq!(nearest_rank(&hundred, 0), Some(1), "the smallest");
        assert_eq!(nearest_rank::<u32>(&[], 500), None);
    }
}
