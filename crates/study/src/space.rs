//! What a tuner varies: axes with lists or ranges of values, and the points that are drawn of them
//! (docs/specs/halving.md, section 2).

use std::collections::{BTreeMap, BTreeSet};

use scenario::{At, Node, Reader, Value};
use units::{Bytes, Dur, Rate};

use crate::Checked;
use crate::run::{self, Axis, AxisValue, Point};

/// The most points: so long is the Sobol sequence of the library.
pub(crate) const POINTS_MAX: usize = 1 << 16;

/// The most axes that the library has.
const AXES_MAX: usize = 256;

/// Significant digits of a value that is drawn from a range, or of the width of a range that is
/// narrower than its values: more would only be hard to read.
const DIGITS: i32 = 3;

/// The axes of a tuner.
pub(crate) struct Space {
    dimensions: Vec<Dimension>,
}

/// An axis.
struct Dimension {
    name: String,
    values: Values,
}

enum Values {
    List(Vec<AxisValue>),
    Range(Range),
}

/// From one value to another.
struct Range {
    low: f64,
    high: f64,
    is_log: bool,
    of: Quantity,
}

/// What the ends of a range are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Whole,
    Real,
    Bytes,
    Time,
    Rate,
}

/// The points of a space: the values of its axes, and for each point their indices.
pub(crate) struct Points {
    pub(crate) axes: Vec<Axis>,
    pub(crate) points: Vec<Point>,
    /// Whether they are drawn, not all that there are.
    pub(crate) are_drawn: bool,
}

/// Why there are fewer points than wanted: so many are there after all attempts.
pub(crate) struct TooFew(pub(crate) usize);

impl Space {
    /// Read the table `node`, an entry for each axis.
    pub(crate) fn read(node: &Node) -> Checked<Self> {
        let axis = |(name, (at, node)): (&String, &(At, Node))| {
            run::name(name, "an axis", at)?;
            let values = match &node.value {
                Value::Table(_) => Values::Range(Range::read(name, at, node)?),
                _ => Values::List(run::axis_values(node)?),
            };
            Ok(Dimension { name: name.clone(), values })
        };
        let dimensions: Vec<Dimension> =
            run::entries(node)?.iter().map(axis).collect::<Checked<_>>()?;
        match dimensions.len() {
            0 => Err(node.at.error("no axes: there is nothing to vary", "an empty table")),
            1..=AXES_MAX => Ok(Self { dimensions }),
            n => Err(node.at.error(format!("{n} axes, {AXES_MAX} at most"), "too many")),
        }
    }

    /// The axes as far as they are known without points: for names in edits and formulas.
    pub(crate) fn axes(&self) -> Vec<Axis> {
        let axis = |dimension: &Dimension| Axis {
            name: dimension.name.clone(),
            values: match &dimension.values {
                Values::List(values) => values.clone(),
                Values::Range(range) => vec![range.value(range.low), range.value(range.high)],
            },
        };
        self.dimensions.iter().map(axis).collect()
    }

    /// How many combinations of values there are; `None` of ranges.
    pub(crate) fn combinations(&self) -> Option<u64> {
        let count = |dimension: &Dimension| match &dimension.values {
            Values::List(values) => Some(values.len() as u64),
            Values::Range(_) => None,
        };
        self.dimensions.iter().map(count).try_fold(1_u64, |all, n| all.checked_mul(n?))
    }

    /// Every combination of values that `holds`; none of the axes is a range.
    pub(crate) fn grid(&self, holds: &dyn Fn(&[AxisValue]) -> bool) -> Points {
        let mut all: Vec<Vec<AxisValue>> = vec![Vec::new()];
        for dimension in &self.dimensions {
            let Values::List(values) = &dimension.values else { continue };
            let longer = |point: Vec<AxisValue>| {
                values.iter().map(move |v| point.iter().chain([v]).cloned().collect())
            };
            all = all.into_iter().flat_map(longer).collect();
        }
        all.retain(|values| holds(values));
        Points { are_drawn: false, ..self.of_values(&all) }
    }

    /// `count` points of the sequence that `hold`, each once.
    ///
    /// # Errors
    /// The sequence has fewer.
    pub(crate) fn draw(
        &self,
        count: usize,
        holds: &dyn Fn(&[AxisValue]) -> bool,
    ) -> Result<Points, TooFew> {
        let mut all: Vec<Vec<AxisValue>> = Vec::new();
        let mut known = BTreeSet::new();
        for index in 0..POINTS_MAX as u32 {
            if all.len() == count {
                break;
            }
            let value = |(i, dimension): (u32, &Dimension)| {
                dimension.at(f64::from(sobol_burley::sample(index, i, 0)))
            };
            let values: Vec<AxisValue> = (0..).zip(&self.dimensions).map(value).collect();
            let texts: Vec<String> = values.iter().map(|value| value.text.clone()).collect();
            if holds(&values) && known.insert(texts) {
                all.push(values);
            }
        }
        match all.len() == count {
            true => Ok(Points { are_drawn: true, ..self.of_values(&all) }),
            false => Err(TooFew(all.len())),
        }
    }

    /// The points with these values.
    fn of_values(&self, all: &[Vec<AxisValue>]) -> Points {
        let mut points = vec![Point::new(); all.len()];
        let mut axes = Vec::new();
        for (i, dimension) in self.dimensions.iter().enumerate() {
            let mut values: Vec<AxisValue> = all.iter().map(|point| point[i].clone()).collect();
            // Of ranges ascending, of lists as they are written.
            if let Values::Range(_) = dimension.values {
                let number = |value: &AxisValue| value.number.unwrap_or_default();
                values.sort_by(|a, b| number(a).total_cmp(&number(b)));
                values.dedup();
            } else if let Values::List(list) = &dimension.values {
                values.clone_from(list);
            }
            let places: BTreeMap<&str, usize> =
                values.iter().enumerate().map(|(place, value)| (&*value.text, place)).collect();
            for (point, at) in points.iter_mut().zip(all) {
                // Each of them is among those that it was collected from.
                point.extend(places.get(&*at[i].text));
            }
            axes.push(Axis { name: dimension.name.clone(), values });
        }
        Points { axes, points, are_drawn: false }
    }
}

impl Dimension {
    /// The value at a share of the axis.
    fn at(&self, share: f64) -> AxisValue {
        match &self.values {
            Values::List(values) => {
                let index = (share * values.len() as f64) as usize;
                values[index.min(values.len() - 1)].clone()
            }
            Values::Range(range) => range.at(share),
        }
    }
}

impl Range {
    fn read(name: &str, at: &At, node: &Node) -> Checked<Self> {
        let mut table = Reader::new(node, at, &format!("the axis `{name}`"))?;
        let (from, to) = (end(&mut table, "from")?, end(&mut table, "to")?);
        let scale: Option<String> = table.maybe("scale")?;
        let is_log = match scale.as_deref() {
            None | Some("linear") => false,
            Some("logarithmic") => true,
            Some(other) => {
                let error = table.error("scale", format!("unknown scale `{other}`"), "here");
                return Err(error.hint(scenario::did_you_mean(other, &["linear", "logarithmic"])));
            }
        };
        let ((low, of), (high, other)) = (from, to);
        let of = match (of, other) {
            (of, other) if of == other => of,
            (Quantity::Whole, Quantity::Real) | (Quantity::Real, Quantity::Whole) => Quantity::Real,
            _ => {
                let message = format!("the ends of the range `{name}` are of different kinds");
                let error = table.error("to", message, "not what `from` is");
                return Err(error.hint("both numbers, both sizes, both times or both rates"));
            }
        };
        if low >= high {
            let message = match low > high {
                true => format!("the range `{name}` is upside down: `from` is above `to`"),
                false => format!("the range `{name}` has one value"),
            };
            let error = table.error("to", message, "not above `from`");
            return Err(error.hint("give a `to` that is larger"));
        }
        if is_log && low <= 0.0 {
            let message = format!("the logarithmic range `{name}` begins at {low}");
            let error = table.error("from", message, "not above 0");
            return Err(error.hint("begin above 0, or leave out `scale`"));
        }
        table.finish()?;
        Ok(Self { low, high, is_log, of })
    }

    /// The value at a share of the range.
    fn at(&self, share: f64) -> AxisValue {
        // Each whole number has as large a part, those at the ends, too.
        let wider = if self.of == Quantity::Whole { 0.5 } else { 0.0 };
        let (low, high) = (self.low - wider, self.high + wider);
        let value = match self.is_log && low > 0.0 {
            true => low * libm::exp(share * libm::log(high / low)),
            false => low + share * (high - low),
        };
        self.value(self.rounded(value).clamp(self.low, self.high))
    }

    fn rounded(&self, value: f64) -> f64 {
        if self.of == Quantity::Whole || value == 0.0 {
            return libm::round(value);
        }
        let finest = value.abs().min(self.high - self.low);
        let digits = DIGITS - 1 - libm::floor(libm::log10(finest)) as i32;
        let scale = libm::exp10(f64::from(digits.abs()));
        match digits >= 0 {
            true => libm::round(value * scale) / scale,
            false => libm::round(value / scale) * scale,
        }
    }

    fn value(&self, number: f64) -> AxisValue {
        // -0 is 0.
        let number = number + 0.0;
        // What is not below 0: the ends of a range of quantities are such.
        let exact = |scale: f64| libm::round(number * scale) as u64;
        let text = match self.of {
            Quantity::Whole => format!("{number:.0}"),
            Quantity::Real => number.to_string(),
            Quantity::Bytes => Bytes(exact(1.0)).to_string(),
            Quantity::Time => Dur(exact(1e6)).to_string(),
            Quantity::Rate => Rate(exact(1e9)).to_string(),
        };
        AxisValue { text, number: Some(number) }
    }
}

/// The end of a range under `key`.
fn end(table: &mut Reader<'_>, key: &'static str) -> Checked<(f64, Quantity)> {
    let Some(node) = table.node(key) else {
        return Err(table.missing(key, "a range is `{ from = 4, to = 40 }`"));
    };
    let found = match &node.value {
        Value::Integer(n) => Some((*n as f64, Quantity::Whole)),
        Value::Float(x) if x.is_finite() => Some((*x, Quantity::Real)),
        Value::Text(text) => quantity(text),
        _ => None,
    };
    let why = || {
        let error = node.at.error("a range begins and ends with a quantity", "no such");
        error.hint(
            "a number, or a size, time or rate above 0: 4, 0.5, \"37350B\", \"10us\", \"10Gbps\"",
        )
    };
    found.ok_or_else(why)
}

fn quantity(text: &str) -> Option<(f64, Quantity)> {
    let bytes = text.parse::<Bytes>().ok().map(|bytes| (bytes.0 as f64, Quantity::Bytes));
    let time = || text.parse::<Dur>().ok().map(|time| (time.as_us_f64(), Quantity::Time));
    let rate = || text.parse::<Rate>().ok().map(|rate| (rate.as_gbps_f64(), Quantity::Rate));
    bytes.or_else(time).or_else(rate)
}

#[cfg(test)]
mod tests {
    use scenario::Document;

    use super::*;

    fn space(text: &str) -> Checked<Space> {
        let document = Document::parse("x.toml", text)?;
        Space::read(&document.root)
    }

    fn texts(points: &Points) -> Vec<Vec<&str>> {
        let at = |point: &Point| {
            points.axes.iter().zip(point).map(|(axis, &i)| &*axis.values[i].text).collect()
        };
        points.points.iter().map(at).collect()
    }

    #[test]
    fn a_grid_has_every_combination_that_holds() {
        let space = space("b = [1, 2, 3]\na = [\"x\", \"y\"]\n").unwrap();
        assert_eq!(space.combinations(), Some(6));
        let grid = space.grid(&|values| values[1].number != Some(2.0));
        assert_eq!(texts(&grid), [["x", "1"], ["x", "3"], ["y", "1"], ["y", "3"]]);
        assert!(!grid.are_drawn);
    }

    #[test]
    fn drawn_points_fill_a_range_each_once() {
        let space = space("n = { from = 1, to = 8 }\nm = { from = 1, to = 8 }\n").unwrap();
        assert_eq!(space.combinations(), None);
        let all = space.draw(64, &|_| true).unwrap_or_else(|few| panic!("{}", few.0));
        assert_eq!(all.axes[0].values.len(), 8, "every number, the ends too");
        let below = |values: &[AxisValue]| values[0].number < values[1].number;
        let Err(TooFew(28)) = space.draw(29, &below) else { panic!("28 pairs are ascending") };
        let few = space.draw(16, &|_| true).unwrap_or_else(|few| panic!("{}", few.0));
        for axis in 0..2 {
            let mut quarters = [0; 4];
            few.points.iter().for_each(|point| {
                let value = few.axes[axis].values[point[axis]].number.unwrap();
                quarters[(value as usize - 1) / 2] += 1;
            });
            assert!(quarters.iter().all(|n| (2..=6).contains(n)), "{quarters:?}");
        }
    }

    #[test]
    fn values_have_units_and_three_digits() {
        let axis = |range: &str, share: f64| {
            let space = space(&format!("a = {range}\n")).unwrap();
            space.dimensions[0].at(share).text
        };
        let logarithmic = "{ from = \"1KB\", to = \"1MB\", scale = \"logarithmic\" }";
        assert_eq!(axis(logarithmic, 0.5), "31600B");
        assert_eq!(axis(logarithmic, 0.0), "1000B");
        assert_eq!(axis("{ from = \"1us\", to = \"3us\" }", 0.123), "1250ns");
        assert_eq!(axis("{ from = \"10Gbps\", to = \"25Gbps\" }", 0.5), "17500Mbps");
        assert_eq!(axis("{ from = 0, to = 1.0 }", 0.123_456), "0.123");
        assert_eq!(axis("{ from = 0.0004, to = 0.0009 }", 0.123_456), "0.000462");
        assert_eq!(axis("{ from = -7, to = 7 }", 0.999), "7");
        assert_eq!(axis("[\"a\", \"b\"]", 0.999), "b");
        assert_eq!(axis("{ from = 1000.0, to = 1000.5 }", 0.3), "1000.15", "of its width");
        assert_eq!(axis("{ from = \"100us\", to = \"101us\" }", 0.123), "100120ns");
        let whole = "{ from = -1, to = 1 }";
        assert_eq!([0.4, 0.5, 0.6].map(|share| axis(whole, share)), ["0", "0", "0"]);
    }

    #[test]
    fn what_is_no_space() {
        let error = |text: &str| space(text).err().unwrap().to_string();
        let cases = [
            ("a = { from = 9, to = 2 }\n", "x.toml:1:22: the range `a` is upside down"),
            ("a = { from = 9, to = 9 }\n", "x.toml:1:22: the range `a` has one value"),
            ("a = { from = \"9KB\", to = \"9us\" }\n", "x.toml:1:26: the ends of the range `a`"),
            ("a = { from = \"-9KB\", to = \"9KB\" }\n", "x.toml:1:14: a range begins and ends"),
            ("a = { from = 0, to = 9, scale = \"logarithmic\" }\n", "x.toml:1:14: the logarith"),
            ("a = { from = 1, to = 9, scale = \"log\" }\n", "x.toml:1:33: unknown scale `log`"),
            ("a = { from = 1 }\n", "`to` is missing in the axis `a`"),
            ("a = { from = 1, to = 9, step = 1 }\n", "unknown key `step` in the axis `a`"),
            ("a = []\n", "x.toml:1:5: an empty list"),
            ("a = [1, 1]\n", "a value of the axis is there twice"),
            ("a = 3\n", "a list is wanted"),
            ("\"1\" = [3]\n", "an axis cannot be `1`"),
        ];
        for (text, begins) in cases {
            let said = error(text);
            assert!(said.contains(begins), "{text}: {said}");
        }
    }
}
