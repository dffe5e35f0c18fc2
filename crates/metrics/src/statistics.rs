//! Mean and deviation in one pass, exact percentiles, and a histogram of queue lengths.

use hdrhistogram::Histogram;

use crate::QueueBytes;

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

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
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

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut moments = Self::default();
        values.into_iter().for_each(|v| moments.add(v));
        moments
    }
}

/// The nearest-rank percentile of values in ascending order: the smallest one that at least
/// `permille` thousandths of them do not exceed. Exact: always one of the values, never an
/// interpolation. `None` without values.
#[must_use]
pub fn nearest_rank<T: Copy>(ascending: &[T], permille: u32) -> Option<T> {
    let rank = (ascending.len() as u128 * u128::from(permille)).div_ceil(1000);
    let index = usize::try_from(rank).ok()?.saturating_sub(1);
    ascending.get(index.min(ascending.len().checked_sub(1)?)).copied()
}

/// Longer queues, a terabyte, count as this long in the percentile.
const LONGEST_QUEUE: u64 = 1 << 40;

/// Queue lengths over all ports and samples: too many to keep, so a histogram with three
/// significant digits. The maximum is exact.
#[derive(Clone, Debug)]
pub struct QueueHistogram {
    counts: Histogram<u64>,
    max: Option<u64>,
}

impl QueueHistogram {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        // Constants within what the constructor accepts.
        let counts = Histogram::new_with_bounds(1, LONGEST_QUEUE, 3).expect("valid bounds");
        Self { counts, max: None }
    }

    /// Takes in a sampled queue length, in bytes.
    pub fn sample(&mut self, bytes: u64) {
        self.counts.saturating_record(bytes);
        self.peak(bytes);
    }

    /// Takes in a queue length seen between samples: it counts for the maximum only.
    pub fn peak(&mut self, bytes: u64) {
        self.max = self.max.max(Some(bytes));
    }

    /// The percentiles.
    #[must_use]
    pub fn queue_bytes(&self) -> QueueBytes {
        let max = self.max;
        let sampled = !self.counts.is_empty();
        let p99 = sampled.then(|| self.counts.value_at_quantile(0.99));
        QueueBytes { p99: p99.map(|p| p.min(max.unwrap_or(p))), max }
    }
}

impl Default for QueueHistogram {
    fn default() -> Self {
        Self::new()
    }
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
    fn nearest_ranks_by_hand() {
        let five = [15, 20, 35, 40, 50];
        let at = |permille| nearest_rank(&five, permille).unwrap();
        assert_eq!([at(50), at(300), at(400), at(500), at(1000)], [15, 20, 20, 35, 50]);
        let hundred: Vec<u32> = (1..=100).collect();
        assert_eq!(nearest_rank(&hundred, 990), Some(99));
        assert_eq!(nearest_rank(&hundred, 0), Some(1), "the smallest");
        assert_eq!(nearest_rank::<u32>(&[], 500), None);
    }

    #[test]
    fn queue_percentile_within_a_thousandth() {
        let mut queues = QueueHistogram::new();
        assert_eq!(queues.queue_bytes(), QueueBytes { p99: None, max: None });
        (1..=1000).for_each(|i| queues.sample(i * 72));
        queues.peak(81_064);
        let bytes = queues.queue_bytes();
        let p99 = bytes.p99.unwrap();
        assert!(p99.abs_diff(990 * 72) <= 990 * 72 / 1000, "{p99}");
        assert_eq!(bytes.max, Some(81_064), "exact, although never sampled");
    }
}
