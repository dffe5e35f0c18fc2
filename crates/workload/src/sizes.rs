//! Message-size distributions: fixed, uniform, and given by points, published ones included.
//!
//! A distribution given by points is a cumulative one: `share` of all messages have at most `size`
//! bytes. Publications differ in how they draw from such points, and the mean differs with it, so
//! each distribution states its [`Sampling`]. Means are those of what [`SizeDist::sample`] really
//! returns, the rounding to whole bytes included, up to the rounding of `f64` sums.
//!
//! A size of zero is never returned: it becomes one byte, because a message has to be delivered.

use crate::read_sizes;

/// How sizes are drawn from points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Uniformly between two neighbouring points, rounded to the nearest byte, or to the nearest
    /// whole packet where the points say so. A first point with a share above zero is drawn with
    /// that share. The rule of pFabric's and HPCC's generators (HPCC rounds down).
    Linear,
    /// One of the listed sizes. The rule of Homa's generator.
    Discrete,
}

/// Where a distribution comes from. Empty strings where nobody said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// What it is, in a few words.
    pub title: String,
    /// Who published it.
    pub publication: String,
    /// Where the points were taken from.
    pub source: String,
}

/// `share` of all messages have at most `size` bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) size: u64,
    pub(crate) share: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Fixed(u64),
    Uniform {
        min: u64,
        max: u64,
    },
    /// `multiple`: all sizes are multiples of this, bytes.
    Points {
        sampling: Sampling,
        multiple: u64,
        points: Vec<Point>,
    },
}

/// A distribution of message sizes. Share it between hosts (`Arc`): points may be many.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDist {
    shape: Shape,
    mean: f64,
    about: About,
}

/// The published distributions that come with this crate, by name.
const SHIPPED: [(&str, &str); 11] = [
    ("web-search", include_str!("../distributions/web-search.txt")),
    ("data-mining", include_str!("../distributions/data-mining.txt")),
    ("hadoop", include_str!("../distributions/hadoop.txt")),
    ("facebook-web", include_str!("../distributions/facebook-web.txt")),
    ("google-rpc", include_str!("../distributions/google-rpc.txt")),
    ("homa-w1", include_str!("../distributions/homa-w1.txt")),
    ("homa-w2", include_str!("../distributions/homa-w2.txt")),
    ("homa-w3", include_str!("../distributions/homa-w3.txt")),
    ("homa-w4", include_str!("../distributions/homa-w4.txt")),
    ("homa-w5", include_str!("../distributions/homa-w5.txt")),
    ("mmptcp-infocom16", include_str!("../distributions/mmptcp-infocom16.txt")),
];

impl SizeDist {
    /// Every message has `size` bytes.
    #[must_use]
    pub fn fixed(size: u64) -> Self {
        let size = size.max(1);
        let about = About { title: format!("fixed, {size}B"), ..About::default() };
        Self { shape: Shape::Fixed(size), mean: size as f64, about }
    }

    /// Every whole number of bytes from `min` to `max`, both included, equally often. `None` if
    /// `min > max`.
    #[must_use]
    pub fn uniform(min: u64, max: u64) -> Option<Self> {
        let (min, max) = (min.max(1), max.max(1));
        let about = About { title: format!("uniform, {min}B to {max}B"), ..About::default() };
        let mean = (min as f64 + max as f64) / 2.0;
        (min <= max).then_some(Self { shape: Shape::Uniform { min, max }, mean, about })
    }

    /// The names that [`SizeDist::shipped`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// The published distribution called `name`.
    #[must_use]
    pub fn shipped(name: &str) -> Option<Self> {
        let (name, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
        read_sizes(text, name).ok()
    }

    /// Points that the reader has checked: not empty, neither column going back, the last share 1,
    /// all sizes multiples of `multiple` bytes.
    pub(crate) fn from_points(
        sampling: Sampling,
        multiple: u64,
        points: Vec<Point>,
        about: About,
    ) -> Self {
        let mean = mean_of(sampling, multiple, &points);
        Self { shape: Shape::Points { sampling, multiple, points }, mean, about }
    }

    /// The size that the uniform draw `u` in `[0, 1)` stands for, bytes, at least 1. It never
    /// falls as `u` grows.
    #[must_use]
    pub fn sample(&self, u: f64) -> u64 {
        match &self.shape {
            Shape::Fixed(size) => *size,
            Shape::Uniform { min, max } => {
                let width = (max - min) as f64 + 1.0;
                min.saturating_add((u * width) as u64).min(*max)
            }
            Shape::Points { sampling, multiple, points } => {
                sample_points(*sampling, *multiple, points, u).max(1)
            }
        }
    }

    /// The largest size there is, bytes.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.sample(1.0 - f64::EPSILON / 2.0)
    }

    /// The mean size, bytes: that of [`SizeDist::sample`] over uniform draws.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Sizes, ascending, each with the share of messages that have it. Where all sizes between two
    /// points can be drawn, a hundred that stand for equally many of these messages each: between
    /// every two points, because the last thousandth of messages may have a fifth of all bytes.
    #[must_use]
    pub fn masses(&self) -> Vec<(u64, f64)> {
        const PARTS: u32 = 100;
        let points = match &self.shape {
            Shape::Fixed(size) => return vec![(*size, 1.0)],
            Shape::Uniform { min, max } => {
                vec![Point { size: *min, share: 0.0 }, Point { size: *max, share: 1.0 }]
            }
            Shape::Points { points, .. } => points.clone(),
        };
        let discrete = self.sampling() == Some(Sampling::Discrete);
        let (mut masses, mut low) = (Vec::new(), Point { size: 0, share: 0.0 });
        for (n, &high) in points.iter().enumerate() {
            let share = high.share - low.share;
            let parts = if discrete || n == 0 { 1 } else { PARTS };
            let middle = |part: u32| (f64::from(part) + 0.5) / f64::from(parts);
            let mass =
                |part| (self.sample(low.share + share * middle(part)), share / f64::from(parts));
            masses.extend((0..parts).filter(|_| share > 0.0).map(mass));
            low = high;
        }
        masses
    }

    /// The smallest and the largest size, bytes.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        let largest = 1.0 - 1.0 / (1u64 << 53) as f64;
        (self.sample(0.0), self.sample(largest))
    }

    /// How sizes are drawn; `None` for fixed and uniform ones.
    #[must_use]
    pub fn sampling(&self) -> Option<Sampling> {
        match &self.shape {
            Shape::Points { sampling, .. } => Some(*sampling),
            Shape::Fixed(_) | Shape::Uniform { .. } => None,
        }
    }

    /// Where it comes from.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }
}

fn sample_points(sampling: Sampling, multiple: u64, points: &[Point], u: f64) -> u64 {
    let above = points.partition_point(|point| point.share <= u);
    let Some(high) = points.get(above).or(points.last()) else { return 1 };
    let low = above.checked_sub(1).and_then(|below| points.get(below));
    match (sampling, low) {
        (Sampling::Linear, Some(low)) if high.share > u => {
            let part = (u - low.share) / (high.share - low.share);
            let size = low.size as f64 + part * (high.size - low.size) as f64;
            // Rounding may reach past the point only in the last bit.
            (((size / multiple as f64 + 0.5) as u64) * multiple).min(high.size)
        }
        _ => high.size,
    }
}

/// The mean of `sample_points(..).max(1)`. Between two whole numbers, rounding to the nearest does
/// not move the mean of a uniform distribution, nor between two multiples; only the half byte (or
/// half multiple) above zero that becomes one byte does.
fn mean_of(sampling: Sampling, multiple: u64, points: &[Point]) -> f64 {
    let mut mean = 0.0;
    let mut low: Option<Point> = None;
    for &high in points {
        let weight = high.share - low.map_or(0.0, |low| low.share);
        mean += weight
            * match (sampling, low) {
                (Sampling::Linear, Some(low)) if low.size < high.size => {
                    let half = 0.5 * multiple as f64;
                    let zeroes = if low.size == 0 { half / high.size as f64 } else { 0.0 };
                    (low.size as f64 + high.size as f64) / 2.0 + zeroes
                }
                _ => high.size.max(1) as f64,
            };
        low = Some(high);
    }
    mean
}

#[cfg(test)]
mod tests {
    use endpoint::{Draw, Purpose};

    use super::*;

    const SIZE: Purpose = Purpose::new("size");

    /// The mean of what `sample` returns and its standard deviation: a thousand draws evenly
    /// spread over each step of the distribution, weighted by the step.
    fn integrate(dist: &SizeDist) -> (f64, f64) {
        let mut steps = vec![0.0, 1.0];
        if let Shape::Points { points, .. } = &dist.shape {
            steps.extend(points.iter().map(|point| point.share));
        }
        steps.sort_by(f64::total_cmp);
        let (mut mean, mut square) = (0.0, 0.0);
        for step in steps.windows(2) {
            let width = step[1] - step[0];
            for i in 0..1000 {
                let size = dist.sample(step[0] + width * (f64::from(i) + 0.5) / 1000.0) as f64;
                mean += width / 1000.0 * size;
                square += width / 1000.0 * size * size;
            }
        }
        (mean, (square - mean * mean).sqrt())
    }

    #[test]
    fn every_published_distribution_reads_and_has_its_papers() {
        for name in SizeDist::names() {
            let dist = SizeDist::shipped(name).expect(name);
            let about = dist.about();
            assert!(!about.title.is_empty(), "{name}");
            let venue = |name| about.publication.contains(name);
            assert!(venue("SIG") || venue("INFOCOM"), "{name}: {}", about.publication);
            assert!(about.source.contains('@'), "{name}: {}", about.source);
        }
        assert_eq!(SizeDist::shipped("web"), None);
    }

    #[test]
    fn published_means_are_those_of_their_points() {
        // Computed apart from this code, from the published points: sums of (share step) x
        // (middle of the interval), or x (size) for the discrete ones.
        for (name, mean) in [
            ("web-search", 1_711_250.0),
            ("data-mining", 12_658_198.6),
            ("hadoop", 120_420.75),
            ("google-rpc", 2_891.621_25),
            ("homa-w1", 189.172_955),
            ("homa-w2", 441.603_504_5),
            ("homa-w3", 2_927.679_004_6),
            ("homa-w4", 127_796.643_65),
            ("homa-w5", 2_564_689.682_4),
            // .5 + .1 * 1.5 + .1 * 2.5 + .05 * 4 + .05 * 6 + .0125 * (23.5 + 56) + .025 * 104.5
            // + .05 * (202 + 727 + 1647) = 133.80625 segments of 1400 B.
            ("mmptcp-infocom16", 187_328.75),
        ] {
            let dist = SizeDist::shipped(name).expect(name);
            let error = dist.mean() - mean;
            // One byte for zero bytes adds at most a tenth of a byte, in google-rpc 0.011.
            assert!((-1e-3..=0.02).contains(&error), "{name}: {} is not {mean}", dist.mean());
        }
    }

    /// What stands for a distribution has its bytes, its largest messages included. (A thousand
    /// equal shares of google-rpc have four fifths.)
    #[test]
    fn masses_have_all_messages_and_all_bytes() {
        let others = [SizeDist::fixed(700), SizeDist::uniform(10, 1009).expect("in order")];
        for dist in SizeDist::names().filter_map(SizeDist::shipped).chain(others) {
            let (title, masses) = (&dist.about().title, dist.masses());
            assert!(masses.is_sorted_by_key(|(size, _)| *size), "{title}");
            assert!(masses.iter().all(|(_, share)| *share > 0.0), "{title}");
            let shares: f64 = masses.iter().map(|(_, share)| share).sum();
            assert!((shares - 1.0).abs() < 1e-9, "{title}: {shares}");
            let mean: f64 = masses.iter().map(|&(size, share)| size as f64 * share).sum();
            assert!((mean / dist.mean() - 1.0).abs() < 1e-3, "{title}: {mean} {}", dist.mean());
            let largest = masses.last().map_or(0, |(size, _)| *size) as f64;
            assert!(largest > 0.95 * dist.largest() as f64, "{title}: {largest}");
        }
    }

    #[test]
    fn masses_by_hand() {
        let discrete = read_sizes("# sampling: discrete\n100 0.25\n300 1\n", "x");
        assert_eq!(discrete.expect("valid").masses(), [(100, 0.25), (300, 0.75)]);
        // Half of the messages have 100 B; the others up to 1100 B, in hundredths of ten sizes
        // each.
        let linear = read_sizes("100 0.5\n1100 1\n", "x").expect("valid").masses();
        assert_eq!(linear.len(), 101);
        assert_eq!((linear[0], linear[1], linear[100]), ((100, 0.5), (105, 0.005), (1095, 0.005)));
    }

    #[test]
    fn sampled_means_approach_the_stated_ones() {
        let draw = Draw::new(1, Purpose::new("test"), 0);
        let uniform = SizeDist::uniform(10, 19).expect("in order");
        assert_eq!((uniform.range(), uniform.mean()), ((10, 19), 14.5));
        assert_eq!(SizeDist::uniform(2, 1), None);
        let shipped = SizeDist::names().filter_map(SizeDist::shipped);
        for dist in shipped.chain([uniform]) {
            let title = &dist.about().title;
            let (mean, deviation) = integrate(&dist);
            assert!((mean / dist.mean() - 1.0).abs() < 1e-5, "{title}: {mean} {}", dist.mean());
            let n = 200_000u64;
            let sum: f64 = (0..n).map(|i| dist.sample(draw.unit(SIZE, i)) as f64).sum();
            let error = sum / n as f64 - dist.mean();
            assert!(error.abs() < 5.0 * deviation / (n as f64).sqrt(), "{title}: {error}");
        }
    }

    #[test]
    fn sampling_follows_the_stated_rule() {
        let text = "100 0.5\n200 0.5\n300 1\n";
        let linear = read_sizes(text, "x").expect("valid");
        assert_eq!(linear.sample(0.0), 100);
        assert_eq!(linear.sample(0.499), 100, "the first point keeps its share");
        assert_eq!(linear.sample(0.5), 200);
        assert_eq!(linear.sample(0.75), 250);
        assert_eq!(linear.sample(1.0), 300, "even a draw out of range is a size");
        assert!((linear.mean() - 175.0).abs() < 1e-12);
        let discrete = read_sizes("# sampling: discrete\n100 0.5\n300 1\n", "x").expect("valid");
        assert_eq!((discrete.sample(0.499), discrete.sample(0.5)), (100, 300));
        assert!((discrete.mean() - 200.0).abs() < 1e-12);
    }

    #[test]
    fn whole_packets_only_where_the_points_say_so() {
        let dist = SizeDist::shipped("mmptcp-infocom16").expect("shipped");
        assert_eq!(dist.range(), (1400, 2107 * 1400));
        // Between one and two segments a tenth of all: the nearer one.
        let sizes = [0.3, 0.51, 0.549, 0.551, 0.6].map(|u| dist.sample(u));
        assert_eq!(sizes, [1400, 1400, 1400, 2800, 2800]);
        assert!((0..1000).all(|i| dist.sample(f64::from(i) / 1000.0).is_multiple_of(1400)));
        // Of 0 to 14, rounded to sevens: 0 (becoming 1) for a quarter, 7 for a half, 14.
        let dist = read_sizes("# multiple of: 7\n0 0\n14 1\n", "x").expect("valid");
        assert!((dist.mean() - 7.25).abs() < 1e-12);
        assert!((integrate(&dist).0 - 7.25).abs() < 1e-9);
    }

    #[test]
    fn zero_becomes_one_byte_and_the_mean_says_so() {
        let dist = read_sizes("0 0\n2 1\n", "x").expect("valid");
        assert_eq!(dist.sample(0.0), 1);
        // Rounded: 0 for a quarter (becoming 1), 1 for a half, 2 for a quarter.
        assert!((dist.mean() - 1.25).abs() < 1e-12);
        assert!((integrate(&dist).0 - 1.25).abs() < 1e-9);
        assert_eq!(SizeDist::fixed(0).sample(0.5), 1);
    }
}
