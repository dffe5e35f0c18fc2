//! [`ComparisonResults`]: what `trimline compare --seeds` leaves, `comparison.json`. Several
//! scenarios, run with the same seeds, each beside the first of them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::output::{read_json, write_json};
use crate::{
    FileError, OutputDir, all_metrics, mean_and_interval, mean_and_interval_at, size_range,
    student_t,
};

/// Version of `comparison.json`.
pub const COMPARISON_SCHEMA: u32 = 1;

/// What differences are at: 95 %.
const CONFIDENCE: f64 = 0.95;

/// To more seeds than this a sentence does not lead.
const SEEDS_MAX: u32 = 10_000;

/// Several scenarios beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonResults {
    /// [`COMPARISON_SCHEMA`].
    pub schema: u32,
    /// Version of the engine.
    pub engine: u32,
    /// The command that repeats it.
    pub command: String,
    /// What is compared. All others are compared with the first.
    pub labels: Vec<String>,
    /// The command that runs each with the first seed.
    pub repeat: Vec<String>,
    /// How many seeds there are.
    pub seeds: u32,
    /// The metrics, each with a difference for all labels but the first.
    pub metrics: Vec<Compared>,
    /// How many differences have a sentence: their confidence is for all of them together.
    pub sentences: u32,
    /// Slowdown by size of message, ascending.
    pub by_size: Vec<SizeCompared>,
    /// The settings that differ.
    pub settings: Vec<Setting>,
    /// What a reader should know before trusting the numbers.
    pub warnings: Vec<String>,
    /// Whether all runs with the same seed had the same measured messages.
    pub same_messages: bool,
}

/// A metric of all that is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Its name, or the formula.
    pub metric: String,
    /// Its mean over seeds, of each label; `null` without a value.
    pub values: Vec<Option<Estimate>>,
    /// What it is of each label less what it is of the first, over seeds.
    pub differences: Vec<Difference>,
}

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half of its 95 % interval by Student's t; `null` with one seed.
    pub interval: Option<f64>,
    /// Over how many seeds.
    pub seeds: u32,
}

impl Estimate {
    /// That of `values`, one for each seed.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let (mean, interval) = mean_and_interval(values)?;
        Some(Self { mean, interval, seeds: u32::try_from(values.len()).unwrap_or(u32::MAX) })
    }
}

/// A row of a table: its name and a cell for each of the `estimates`, with a word on those that
/// are means over fewer than all `seeds`. If that holds for the whole row, its name says so, once.
#[must_use]
pub fn row(
    name: String,
    estimates: &[Option<Estimate>],
    seeds: u32,
    shown: impl Fn(Option<Estimate>) -> String,
) -> Vec<String> {
    let fewer = |of: u32| match of < seeds {
        true => format!(" ({of} of {seeds} seeds)"),
        false => String::new(),
    };
    let mut counts = estimates.iter().flatten().map(|e| e.seeds);
    let first = counts.next().unwrap_or(seeds);
    let alike = counts.all(|of| of == first);
    let cell = |&estimate: &Option<Estimate>| {
        let mark = estimate.filter(|_| !alike).map_or(String::new(), |e| fewer(e.seeds));
        shown(estimate) + &mark
    };
    let name = if alike { name + &fewer(first) } else { name };
    std::iter::once(name).chain(estimates.iter().map(cell)).collect()
}

/// What one has more than the other, with the same seed and so the same traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Over the seeds with which both have a value; `null` if there is none.
    pub estimate: Option<Estimate>,
    /// Half of the interval that all sentences together keep to with 95 %.
    pub joint_interval: Option<f64>,
    /// Which is lower.
    pub order: Order,
    /// If that is undecided: how many more seeds would tell, if the difference is what it seems;
    /// `null` if it takes too many.
    pub more_seeds: Option<u32>,
}

/// Which of two is lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// It is lower than the first.
    Lower,
    /// It is higher.
    Higher,
    /// Both are the same with every seed.
    Equal,
    /// The interval contains 0.
    Undecided,
    /// One of them has no value, or there are fewer than two seeds with which both do.
    Unknown,
}

/// With fewer seeds than these, differences that are all the same decide nothing.
const FEW: usize = 10;
/// Differences are the same whose interval is at most this share of their mean.
const SAME: f64 = 1e-9;

impl Difference {
    /// That of `differences`, one for each seed, of which there are `sentences` such.
    #[must_use]
    pub fn of(differences: &[f64], sentences: u32) -> Self {
        let so_far = Self::so_far(differences, sentences);
        let (n, joint) = (differences.len(), joint_confidence(sentences));
        let mean = so_far.estimate.map(|estimate| estimate.mean);
        let more_seeds = match (so_far.order, mean.zip(so_far.joint_interval)) {
            (Order::Undecided, Some((mean, half))) if is_same(mean, half) => {
                u32::try_from(FEW - n).ok()
            }
            (Order::Undecided, Some((mean, half))) => more_seeds(mean, half, n, joint),
            _ => None,
        };
        Self { more_seeds, ..so_far }
    }

    /// The same without how many more seeds would tell, which takes a thousand times as long.
    #[must_use]
    pub fn so_far(differences: &[f64], sentences: u32) -> Self {
        let at = mean_and_interval_at(differences, joint_confidence(sentences));
        let at = at.and_then(|(mean, half)| Some((mean, half?)));
        let order = match at {
            None => Order::Unknown,
            Some((0.0, 0.0)) => Order::Equal,
            // An interval of no width says nothing where there are few.
            Some((mean, half)) if is_same(mean, half) && differences.len() < FEW => {
                Order::Undecided
            }
            Some((mean, half)) if mean + half < 0.0 => Order::Lower,
            Some((mean, half)) if mean - half > 0.0 => Order::Higher,
            Some(_) => Order::Undecided,
        };
        let (estimate, joint_interval) = (Estimate::of(differences), at.map(|(_, half)| half));
        Self { estimate, joint_interval, order, more_seeds: None }
    }
}

/// Whether differences with this mean and half of an interval are all the same.
fn is_same(mean: f64, half: f64) -> bool {
    half <= SAME * mean.abs()
}

/// The confidence that each of `intervals` needs, so that all of them hold with 95 %: their
/// errors add up to 5 % at most. Source: O. J. Dunn, "Multiple comparisons among means", Journal of
/// the American Statistical Association 56 (1961); the method is called Bonferroni's.
#[must_use]
pub fn joint_confidence(intervals: u32) -> f64 {
    1.0 - (1.0 - CONFIDENCE) / f64::from(intervals.max(1))
}

/// How many more than `seeds` it takes until half of the interval, now `half`, is less than `mean`,
/// if mean and deviation stay what they are.
fn more_seeds(mean: f64, half: f64, seeds: usize, confidence: f64) -> Option<u32> {
    let root = |n: u32| f64::from(n).sqrt();
    let t = |n: u32| student_t(confidence, n as usize - 1);
    let now = u32::try_from(seeds).ok().filter(|n| *n < SEEDS_MAX)?;
    let deviation = half * root(now) / t(now);
    let is_enough = |n: u32| t(n) * deviation / root(n) < mean.abs();
    if !is_enough(SEEDS_MAX) {
        return None;
    }
    // The more seeds, the narrower: halve the range in which the first that are enough must be.
    let (mut few, mut enough) = (now, SEEDS_MAX);
    while few + 1 < enough {
        let middle = few.midpoint(enough);
        if is_enough(middle) { enough = middle } else { few = middle }
    }
    Some(enough - now)
}

/// Slowdown of the messages of some sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeCompared {
    /// Smallest size.
    pub from_bytes: u64,
    /// The first size that is too large; `null` if none is.
    pub to_bytes: Option<u64>,
    /// The median slowdown, of each label.
    pub p50: Vec<Option<Estimate>>,
    /// The 99th percentile, of each label.
    pub p99: Vec<Option<Estimate>>,
    /// That of each label but the first, less that of the first.
    pub p99_less_first: Vec<Option<Estimate>>,
}

impl SizeCompared {
    /// The range of sizes in words.
    #[must_use]
    pub fn range(&self) -> String {
        size_range(self.from_bytes, self.to_bytes)
    }
}

/// A setting that is not the same in all that is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its path in the scenario.
    pub path: String,
    /// Its value for each label, as TOML; `null` where it is not there.
    pub values: Vec<Option<String>>,
}

impl Setting {
    /// Whether two have it with different values, and not only one has it at all.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        let mut there = self.values.iter().flatten();
        let first = there.next();
        there.any(|value| Some(value) != first)
    }
}

impl ComparisonResults {
    /// A sentence for each difference: the metric's and the label's numbers, and what it says.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let first = self.labels.first().map_or("", String::as_str);
        let mut sentences = Vec::new();
        for compared in &self.metrics {
            let base = compared.values.first().copied().flatten();
            for (label, difference) in self.labels.iter().skip(1).zip(&compared.differences) {
                let what = named(&compared.metric);
                let says = difference.says(base);
                sentences.push(format!("{label}'s {what} is lower than {first}'s: {says}"));
            }
        }
        sentences
    }

    /// Whether differences are those of equal traffic.
    #[must_use]
    pub fn about_traffic(&self) -> &'static str {
        if self.same_messages {
            "traffic: with each seed the same measured messages, submitted at the same times"
        } else {
            "traffic: not the same with each seed, as settings of it differ or messages wait for \
             others: part of a difference may come from that"
        }
    }

    /// Of how many differences the sentences are, and how sure they are.
    #[must_use]
    pub fn about_sentences(&self) -> String {
        match self.sentences {
            0 => "nothing can be compared".to_owned(),
            1 => "1 comparison, at 95 %".to_owned(),
            n => format!(
                "{n} comparisons: with 95 % no yes or no among them is wrong (Bonferroni: each at \
                 {:.2} %)",
                100.0 * joint_confidence(n)
            ),
        }
    }

    /// Writes `comparison.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, out: &OutputDir) -> Result<(), FileError> {
        write_json(out, "comparison.json", self)
    }

    /// Reads a `comparison.json`.
    ///
    /// # Errors
    /// The file is missing, broken or of another schema.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let results: Self = read_json(path)?;
        if results.schema != COMPARISON_SCHEMA {
            let cause = format!("its schema is {}, not {COMPARISON_SCHEMA}", results.schema);
            return Err(FileError::new("read", path, cause, "compare again with this version"));
        }
        Ok(results)
    }
}

impl Difference {
    /// What it says of "is lower". `base` is the value that it is the difference to.
    fn says(&self, base: Option<Estimate>) -> String {
        let by = || {
            let mean = self.estimate.map_or(0.0, |estimate| estimate.mean.abs());
            let half = self.joint_interval.unwrap_or(0.0);
            let share = base.map(|base| 100.0 * mean / base.mean.abs()).filter(|s| s.is_finite());
            let share = share.map_or_else(String::new, |share| format!(" ({})", percent(share)));
            format!("by {} ± {}{share}", short(mean), short(half))
        };
        match (self.order, self.more_seeds) {
            (Order::Lower, _) => format!("yes, {}", by()),
            (Order::Higher, _) => format!("no, it is higher {}", by()),
            (Order::Equal, _) => "no, it is the same with every seed".to_owned(),
            (Order::Undecided, Some(1)) => "undecided, about 1 more seed".to_owned(),
            (Order::Undecided, Some(more)) => format!("undecided, about {more} more seeds"),
            (Order::Undecided, None) => {
                format!("undecided, more than {SEEDS_MAX} more seeds")
            }
            (Order::Unknown, _) => "unknown, fewer than two seeds give both a value".to_owned(),
        }
    }
}

/// What tables call the metric, or the formula.
#[must_use]
pub fn named(metric: &str) -> String {
    let known = all_metrics().find(|known| known.key() == metric);
    known.map_or_else(|| metric.to_owned(), |known| known.head())
}

/// Three digits, or all before the point.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

fn percent(share: f64) -> String {
    if share >= 10.0 { format!("{share:.0} %") } else { format!("{share:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_by_hand() {
        let of = |differences: &[f64]| Difference::of(differences, 1);
        // Mean -3, deviation 1, t for two degrees 4.303: half is 2.484.
        let lower = of(&[-2.0, -3.0, -4.0]);
        assert_eq!((lower.order, lower.more_seeds), (Order::Lower, None));
        assert!((lower.joint_interval.unwrap() - 2.484).abs() < 1e-3, "{lower:?}");
        assert_eq!(of(&[2.0, 3.0, 4.0]).order, Order::Higher);
        // Mean -2: the interval contains 0. Four seeds: t 3.182 / 2 is less than 2.
        let undecided = of(&[-1.0, -2.0, -3.0]);
        assert_eq!((undecided.order, undecided.more_seeds), (Order::Undecided, Some(1)));
        assert_eq!(of(&[0.0, 0.0]).order, Order::Equal);
        assert_eq!(of(&[-1.0]).order, Order::Unknown);
        assert_eq!(of(&[]).estimate, None);
        assert_eq!(of(&[1.0, -1.0]).more_seeds, None, "no difference at all");
    }

    /// Of more comparisons each takes more.
    #[test]
    fn many_comparisons_are_each_at_a_higher_confidence() {
        assert!((joint_confidence(10) - 0.995).abs() < 1e-12);
        let differences = [-2.0, -3.0, -4.0];
        let of_ten = Difference::of(&differences, 10);
        assert_eq!(of_ten.order, Order::Undecided);
        assert_eq!(of_ten.estimate, Difference::of(&differences, 1).estimate);
        // t at 99.5 % for four degrees of freedom 5.598, over the root of five: 2.50.
        assert_eq!(of_ten.more_seeds, Some(2));
    }

    /// Means over fewer seeds say so: the row's name if all are, else each of them.
    #[test]
    fn rows_mark_means_over_fewer_seeds() {
        let of = |values: &[f64]| Estimate::of(values);
        let shown = |e: Option<Estimate>| e.map_or("-".to_owned(), |e| e.mean.to_string());
        let of_three = |estimates: &[Option<Estimate>]| row("x".to_owned(), estimates, 3, shown);
        let (three, two) = (of(&[1.0, 2.0, 3.0]), of(&[4.0, 6.0]));
        assert_eq!(of_three(&[three, None, three]), ["x", "2", "-", "2"]);
        assert_eq!(of_three(&[two, None, two]), ["x (2 of 3 seeds)", "5", "-", "5"]);
        assert_eq!(of_three(&[three, None, two]), ["x", "2", "-", "5 (2 of 3 seeds)"]);
        assert_eq!(of_three(&[None]), ["x", "-"]);
    }

    #[test]
    fn sentences_read_back() {
        let values = |means: [f64; 3]| means.map(|mean| Estimate::of(&[mean])).to_vec();
        let differences = [&[-2.0, -3.0, -4.0][..], &[0.0, 0.0]];
        let compared = Compared {
            metric: "fct_us.p99".to_owned(),
            values: values([10.0, 7.0, 10.0]),
            differences: differences.map(|d| Difference::of(d, 2)).to_vec(),
        };
        let results = ComparisonResults {
            schema: COMPARISON_SCHEMA,
            engine: 7,
            command: String::new(),
            labels: ["NDP", "HPCC", "Swift"].map(str::to_owned).to_vec(),
            repeat: Vec::new(),
            seeds: 3,
            metrics: vec![compared],
            sentences: 2,
            by_size: Vec::new(),
            settings: Vec::new(),
            warnings: Vec::new(),
            same_messages: true,
        };
        let [hpcc, swift] = results.sentences().try_into().unwrap();
        let metric = "completion time p99 (µs)";
        assert_eq!(
            hpcc,
            format!("HPCC's {metric} is lower than NDP's: undecided, about 1 more seed")
        );
        let same = "no, it is the same with every seed";
        assert_eq!(swift, format!("Swift's {metric} is lower than NDP's: {same}"));
        assert!(results.about_sentences().contains("2 comparisons"));
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        results.write(&out).unwrap();
        assert_eq!(
            ComparisonResults::read(&out.staged().join("comparison.json")).unwrap(),
            results
        );
    }
}
