//! [`Condition`]: two formulas, of which one is at most the other.

use std::sync::Arc;

use scenario::At;

use crate::Checked;
use crate::formula::Formula;

/// `goodput_gbps >= 9`, or `low <= high`.
pub(crate) struct Condition {
    pub(crate) text: String,
    pub(crate) left: Arc<Formula>,
    right: Arc<Formula>,
    /// Whether the left side is to be the larger one.
    at_least: bool,
}

impl Condition {
    /// Read `text`, which stands at `at`; `formula` reads a side of it.
    pub(crate) fn read(
        text: &str,
        at: &At,
        formula: impl Fn(&str) -> Checked<Arc<Formula>>,
    ) -> Checked<Self> {
        let sides = text.split_once("<=").map(|sides| (sides, false));
        let sides = sides.or_else(|| text.split_once(">=").map(|sides| (sides, true)));
        let Some(((left, right), at_least)) = sides else {
            let error = at.error("neither `<=` nor `>=` is in it", "here");
            return Err(error.hint("for example `goodput_gbps >= 9`"));
        };
        let (left, right) = (formula(left.trim())?, formula(right.trim())?);
        for side in [&left, &right] {
            is_a_number(side, at)?;
        }
        Ok(Self { text: text.to_owned(), left, right, at_least })
    }

    /// By which share of the right side the left one is too large or too small, with these values
    /// of names; at most 0 where it holds. Absolute where the right side is 0.
    pub(crate) fn excess(
        &self,
        value: impl Fn(&Formula) -> Result<f64, String>,
    ) -> Result<f64, String> {
        let (left, right) = (value(&self.left)?, value(&self.right)?);
        let over = if self.at_least { right - left } else { left - right };
        Ok(if right == 0.0 { over } else { over / right.abs() })
    }
}

/// That a side without names has a value.
fn is_a_number(side: &Formula, at: &At) -> Checked<()> {
    if side.names().next().is_some() {
        return Ok(());
    }
    let value = side.eval(|name| Err(format!("`{name}` has no value")));
    value.map(|_| ()).map_err(|why| {
        at.error(why, "here").hint("a bound is a finite number, such as `0.99 * 1460 / 1500`")
    })
}

/// A side of a condition on axes alone.
pub(crate) fn of_axes(side: &str, axes: &[&str], at: &At) -> Checked<Arc<Formula>> {
    let formula = Formula::parse(side).map_err(|why| {
        let error = at.error(format!("`{side}` is not a formula: {}", why.0), "here");
        error.hint("for example `low <= 0.8 * high`")
    })?;
    if let Some(name) = formula.names().find(|name| !axes.contains(name)) {
        let error = at.error(format!("there is no axis `{name}`"), "here");
        return Err(error.hint(scenario::did_you_mean(name, axes)));
    }
    Ok(Arc::new(formula))
}

#[cfg(test)]
mod tests {
    use scenario::Document;

    use super::*;

    fn condition(text: &str) -> Checked<Condition> {
        let document = Document::parse("x.toml", "a = 1\n")?;
        let at = document.root.at;
        Condition::read(text, &at, |side| of_axes(side, &["low", "high"], &at))
    }

    #[test]
    fn excess_by_hand() {
        let excess = |text: &str| {
            let value = |name: &str| Ok(if name == "low" { 4.0 } else { 16.0 });
            condition(text).unwrap().excess(|formula| formula.eval(value)).unwrap()
        };
        assert_eq!(excess("low <= high"), -0.75);
        assert_eq!(excess("low >= high"), 0.75);
        assert_eq!(excess("low >= 5"), 0.2);
        assert_eq!(excess("high - 4*low <= 0"), 0.0);
        assert_eq!(excess("low <= 0"), 4.0, "there is no share of nothing");
    }

    #[test]
    fn what_is_no_condition() {
        let said = |text: &str| condition(text).err().unwrap().to_string();
        assert!(said("low").contains("neither `<=` nor `>=`"));
        assert!(said("low <=").contains("`` is not a formula"));
        assert!(said("low <= 1/0").contains("`1/0` is inf"));
        assert!(said("0/0 <= low").contains("`0/0` is NaN"));
        assert!(said("lw <= high").contains("there is no axis `lw`"));
    }
}
