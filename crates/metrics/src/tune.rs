//! [`TuneResults`]: what `trimline tune` leaves, `tune.json`. Points of a scenario's parameters, of
//! which successive halving has chosen the best.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::output::{read_json, write_json};
use crate::{Difference, Estimate, FileError, OutputDir, named};

/// Version of `tune.json`.
pub const TUNE_SCHEMA: u32 = 1;

/// The points, and what was found of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuneResults {
    /// [`TUNE_SCHEMA`].
    pub schema: u32,
    /// Version of the engine.
    pub engine: u32,
    /// The command that repeats it.
    pub command: String,
    /// The scenario's name.
    pub title: String,
    /// What is made as small or as large as can be.
    pub aim: Aim,
    /// What has to hold, as it is written.
    pub constraints: Vec<String>,
    /// What varies.
    pub axes: Vec<String>,
    /// How the points were chosen.
    pub drawn: Sampling,
    /// The rounds of the halving.
    pub rounds: Vec<HalvingRound>,
    /// How many fresh seeds the best point got, and each that was not significantly worse.
    pub confirm: u32,
    /// How many jobs it took.
    pub jobs: u64,
    /// All of them, the best first.
    pub points: Vec<TunePoint>,
    /// Where the optimum is flat; `null` without a best point.
    pub flat: Option<Flat>,
    /// What the runs of the best point warn of.
    pub warnings: Vec<String>,
}

/// An aim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aim {
    /// A metric or a formula.
    pub metric: String,
    /// Whether it is made large.
    pub maximise: bool,
}

impl Aim {
    /// In words: `minimise slowdown p99`.
    #[must_use]
    pub fn words(&self) -> String {
        let verb = if self.maximise { "maximise" } else { "minimise" };
        format!("{verb} {}", named(&self.metric))
    }
}

/// How points are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampling {
    /// Every value of every axis with every other.
    Grid,
    /// Along the Sobol sequence.
    Sobol,
}

impl Sampling {
    /// In words, for a number of points.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Grid => "all combinations of the values",
            Self::Sobol => "a scrambled Sobol sequence",
        }
    }
}

/// A round of the halving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HalvingRound {
    /// How many points take part.
    pub points: u32,
    /// How many seeds each has at its end, those of earlier rounds included.
    pub seeds: u32,
}

/// A point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TunePoint {
    /// Where it is on each axis.
    pub at: Vec<String>,
    /// The same as numbers: bytes, microseconds or Gb/s of quantities; `null` of names.
    pub numbers: Vec<Option<f64>>,
    /// What it is.
    pub stands: Stands,
    /// In how many rounds it took part.
    pub rounds: u32,
    /// The aim over the seeds by which it was chosen or not.
    pub chosen_by: Option<Estimate>,
    /// The aim over fresh seeds; `null` of points that were significantly worse before.
    pub confirmed: Option<Estimate>,
    /// The left sides of the constraints, over fresh seeds if there are some.
    pub constraints: Vec<Option<f64>>,
    /// The aim less that of the best, seed by seed: over fresh seeds if there are some. `null` of
    /// the best, and of points that violate a constraint.
    pub less_best: Option<Difference>,
    /// Why it has no value, if it has none.
    pub error: Option<String>,
    /// The command that runs it with the first seed.
    pub repeat: String,
}

impl TunePoint {
    /// The aim, over fresh seeds if there are some.
    #[must_use]
    pub fn aim(&self) -> Option<Estimate> {
        self.confirmed.or(self.chosen_by)
    }

    /// `low=4 high=17`.
    #[must_use]
    pub fn label(&self, axes: &[String]) -> String {
        let words = axes.iter().zip(&self.at).map(|(axis, value)| format!("{axis}={value}"));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// What a point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stands {
    /// The best.
    Best,
    /// Better than the best with fresh seeds: the halving has dropped it by chance.
    Better,
    /// Not significantly different from the best.
    Flat,
    /// Significantly worse than the best: errors of all points together are 5 % at most.
    Worse,
    /// Its mean breaks a constraint.
    Infeasible,
    /// A job of it has failed, or has no value of a metric that is asked for.
    Failed,
    /// Jobs of it are missing.
    Open,
}

impl Stands {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Better => "better",
            Self::Flat => "flat",
            Self::Worse => "worse",
            Self::Infeasible => "infeasible",
            Self::Failed => "failed",
            Self::Open => "open",
        }
    }
}

/// The best point and those that are not significantly different from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flat {
    /// How many there are.
    pub points: u32,
    /// Their least and greatest value on each axis.
    pub from: Vec<String>,
    /// See `from`.
    pub to: Vec<String>,
    /// None of them is worse than the best by more than this share of it, with 95 % for all of
    /// them; `null` if there is no other, or the best is 0.
    pub within: Option<f64>,
}

impl TuneResults {
    /// The best point, if one was found.
    #[must_use]
    pub fn best(&self) -> Option<&TunePoint> {
        self.points.iter().find(|point| point.stands == Stands::Best)
    }

    /// How the points were chosen and thinned out.
    #[must_use]
    pub fn about(&self) -> String {
        let rounds = self.rounds.iter().map(|r| format!("{} x {}", r.points, r.seeds));
        let rounds = rounds.collect::<Vec<_>>().join(", ");
        format!(
            "{} points, {}; successive halving, points x seeds: {rounds}; then {} fresh seeds",
            self.points.len(),
            self.drawn.words(),
            self.confirm
        )
    }

    /// What was found, in sentences.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let (Some(best), Some(flat)) = (self.best(), &self.flat) else {
            return vec![self.without_best()];
        };
        let aim = best.aim().map_or_else(String::new, |aim| self.about_aim(aim));
        let mut sentences = vec![format!("best: {}{aim}", best.label(&self.axes))];
        sentences.push(self.about_flat(flat));
        sentences.extend((0..self.axes.len()).filter_map(|axis| self.about_end(best, axis)));
        let better = self.points.iter().filter(|point| point.stands == Stands::Better);
        sentences.extend(better.map(|point| {
            let label = point.label(&self.axes);
            format!("{label} is better with fresh seeds: dropped by chance, so raise the budget")
        }));
        sentences
    }

    fn about_aim(&self, aim: Estimate) -> String {
        let half = aim.interval.map_or_else(String::new, |half| format!(" ± {}", short(half)));
        let what = named(&self.aim.metric);
        format!(", {what} {}{half} over {} fresh seeds", short(aim.mean), aim.seeds)
    }

    /// Why there is no best point.
    #[must_use]
    pub fn without_best(&self) -> String {
        let Some(least) = self.points.first().filter(|p| p.stands == Stands::Infeasible) else {
            let why = self.without_value().unwrap_or_else(|| "runs are missing".to_owned());
            return format!("no best point: {why}");
        };
        let side = |value: &Option<f64>| value.map_or_else(|| "none".to_owned(), short);
        let sides = self.constraints.iter().zip(&least.constraints);
        let sides: Vec<String> =
            sides.map(|(text, value)| format!("{text} (it is {})", side(value))).collect();
        format!(
            "no point meets the constraints; the one that violates them least is {}: {}",
            least.label(&self.axes),
            sides.join(", ")
        )
    }

    /// Says that the best value of an axis is the last one on its side.
    fn about_end(&self, best: &TunePoint, axis: usize) -> Option<String> {
        let tried = || self.points.iter().filter_map(|point| point.numbers[axis]);
        let own = best.numbers[axis]?;
        let (least, most) = (tried().fold(own, f64::min), tried().fold(own, f64::max));
        let end = match (own == least, own == most) {
            (true, false) => "smallest",
            (false, true) => "largest",
            _ => return None,
        };
        let (name, value) = (&self.axes[axis], &best.at[axis]);
        Some(format!(
            "{name}={value} is the {end} value tried: a wider range may hold a better one"
        ))
    }

    fn about_flat(&self, flat: &Flat) -> String {
        if flat.points < 2 {
            return self.about_others();
        }
        let range = |((axis, from), to): ((&String, &String), &String)| match from == to {
            true => format!("{axis} {from}"),
            false => format!("{axis} from {from} to {to}"),
        };
        let ranges: Vec<String> =
            self.axes.iter().zip(&flat.from).zip(&flat.to).map(range).collect();
        let within = flat.within.map_or_else(String::new, |within| {
            format!(
                "; with 95 % none of them is worse than the best by more than {:.1} %",
                within * 100.0
            )
        });
        let (n, all) = (flat.points, self.points.len());
        let ranges = ranges.join(", ");
        format!("flat: {n} of {all} points are not significantly different: {ranges}{within}")
    }

    /// Where nothing is as good as the best: what the others are.
    fn about_others(&self) -> String {
        use Stands::{Better, Failed, Infeasible, Open, Worse};
        let count = |stands| self.points.iter().filter(|point| point.stands == stands).count();
        let others = [Better, Worse, Infeasible, Failed, Open].map(|is| (count(is), is.name()));
        if others.iter().all(|&(n, name)| n == 0 || name == Worse.name()) {
            return "flat: nowhere; every other point is significantly worse".to_owned();
        }
        let some = others.iter().filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}"));
        format!("flat: nowhere; of the other points {}", some.collect::<Vec<_>>().join(", "))
    }

    /// Which points have no value, and why the first has none.
    #[must_use]
    pub fn without_value(&self) -> Option<String> {
        let failed: Vec<&TunePoint> =
            self.points.iter().filter(|point| point.stands == Stands::Failed).collect();
        let first = failed.first()?;
        let why = first.error.as_deref().unwrap_or("its runs failed");
        let (n, all, label) = (failed.len(), self.points.len(), first.label(&self.axes));
        Some(format!("{n} of {all} points have no value; {label}: {why}"))
    }

    /// Writes `tune.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, out: &OutputDir) -> Result<(), FileError> {
        write_json(out, "tune.json", self)
    }

    /// Reads a `tune.json`.
    ///
    /// # Errors
    /// The file is missing, broken or of another schema.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let results: Self = read_json(path)?;
        if results.schema != TUNE_SCHEMA {
            let cause = format!("its schema is {}, not {TUNE_SCHEMA}", results.schema);
            return Err(FileError::new("read", path, cause, "tune again with this version"));
        }
        Ok(results)
    }
}

/// Four digits, or all before the point.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 1000.0 || v == 0.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 1.0 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}
