//! [`Axis`]: which values a plot shows along one side, and where it labels them.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::number::tick;

/// A logarithmic axis where the largest value is at least this many times the smallest.
const LOG_FROM: f64 = 20.0;

/// A side of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) label: String,
    scale: Scale,
    low: f64,
    high: f64,
}

#[derive(Clone, Debug)]
enum Scale {
    Linear,
    Log,
    /// Value `i` is the i-th name.
    Names(Vec<String>),
}

impl Axis {
    /// From `low` to `high`.
    pub(crate) fn linear(label: impl Into<String>, low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { label: label.into(), scale: Scale::Linear, low, high }
    }

    /// Around `values`: logarithmic or not as `logarithmic` says, else if they are positive and far
    /// apart. What is not positive makes it linear in any case.
    pub(crate) fn around(
        label: impl Into<String>,
        values: impl Iterator<Item = f64>,
        logarithmic: Option<bool>,
    ) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|v| v.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            return Self::linear(label, 0.0, 1.0);
        }
        let far = high > low && logarithmic.unwrap_or(high / low >= LOG_FROM);
        if low > 0.0 && far {
            return Self { label: label.into(), scale: Scale::Log, low, high };
        }
        let margin = if high > low { (high - low) * 0.03 } else { high.abs() * 0.1 };
        let floor = if low >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
        Self::linear(label, (low - margin).max(floor), high + margin)
    }

    /// The names, in order.
    pub(crate) fn names(label: impl Into<String>, names: Vec<String>) -> Self {
        let high = names.len() as f64 - 0.5;
        Self { label: label.into(), scale: Scale::Names(names), low: -0.5, high }
    }

    /// Whether it is logarithmic.
    pub(crate) const fn is_log(&self) -> bool {
        matches!(self.scale, Scale::Log)
    }

    /// The names, if it has them instead of numbers.
    pub(crate) fn named(&self) -> Option<&[String]> {
        match &self.scale {
            Scale::Names(names) => Some(names),
            Scale::Linear | Scale::Log => None,
        }
    }

    /// What it shows.
    pub(crate) const fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The value on a linear scale: its logarithm on a logarithmic axis.
    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Log => libm::log10(value.max(f64::MIN_POSITIVE)),
            Scale::Linear | Scale::Names(_) => value,
        }
    }

    fn ticks(&self) -> Vec<f64> {
        match &self.scale {
            Scale::Linear => linear_ticks(self.low, self.high),
            Scale::Log => log_ticks(self.low, self.high),
            Scale::Names(names) => (0..names.len()).map(|i| i as f64).collect(),
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let (low, high) = (self.place(self.low), self.place(self.high));
        let share = (self.place(*value) - low) / (high - low);
        from + libm::round(share * f64::from(to - from)) as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Lines between the labelled ones would only be noise.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks() }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        tick(*value)
    }

    fn format_ext(&self, value: &f64) -> String {
        match &self.scale {
            Scale::Linear | Scale::Log => tick(*value),
            Scale::Names(names) => {
                let name = names.get(libm::round(value.max(0.0)) as usize);
                name.cloned().unwrap_or_default()
            }
        }
    }
}

/// About six multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 6.0;
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough);
    let step = step.unwrap_or(rough);
    let first = libm::ceil(low / step - 1e-9);
    (0..=12)
        .map(|i| (first + f64::from(i)) * step)
        .take_while(|t| *t <= high + step * 1e-9)
        .collect()
}

/// Powers of ten; with multiples of them where there would be fewer than four, and only every n-th
/// where there would be more than eight.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let exponent = |v: f64| libm::floor(libm::log10(v)) as i32;
    let (first, last) = (exponent(low), exponent(high));
    let stride = ((last - first) / 8 + 1) as usize;
    let multiples: &[f64] = match last - first {
        ..3 => &[1.0, 2.0, 5.0],
        3 => &[1.0, 3.0],
        _ => &[1.0],
    };
    let powers = (first..=last).step_by(stride).map(|e| libm::pow(10.0, f64::from(e)));
    let ticks = powers.flat_map(|p| multiples.iter().map(move |m| m * p));
    ticks.filter(|t| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(t)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(linear_ticks(0.0, 1.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(linear_ticks(3.0, 61.0), [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
    }

    #[test]
    fn log_ticks_fit_the_range() {
        assert_eq!(log_ticks(3.0, 120.0), [5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(log_ticks(0.5, 2e4), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
    }

    #[test]
    fn the_scale_follows_the_values() {
        let log = Axis::around("", [1.0, 100.0].into_iter(), None);
        assert_eq!([1.0, 10.0, 100.0].map(|v| log.map(&v, (0, 1000))), [0, 500, 1000]);
        let linear = Axis::around("", [0.0, 1e6].into_iter(), None);
        assert_eq!(linear.range().start, 0.0, "a zero has no logarithm");
        let one = Axis::around("", [7.0].into_iter(), None).range();
        assert!(one.contains(&7.0), "{one:?}");
        assert_eq!(Axis::around("", std::iter::empty(), None).range(), 0.0..1.0);
    }

    #[test]
    fn labels_read_as_the_values() {
        let labels = |axis: &Axis| -> Vec<String> {
            axis.ticks().iter().map(|t| axis.format_ext(t)).collect()
        };
        let log = Axis::around("", [1.0, 1e4].into_iter(), None);
        assert_eq!(labels(&log), ["1", "10", "100", "1\u{202f}000", "10\u{202f}000"]);
        let names = Axis::names("", vec!["small".to_owned(), "large".to_owned()]);
        assert_eq!(labels(&names), ["small", "large"]);
    }
}
