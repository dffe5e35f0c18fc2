//! A [`Chart`] as the data that the script of the page draws: JSON in the page, each number once.

use maud::{Markup, PreEscaped, html};
use metrics::Plot;
use serde_json::{Value, json};

use crate::axis::Axis;
use crate::chart::{Chart, SHOWN};
use crate::palette::Style;
use crate::results::Curve;

/// Significant digits of a value: a ten-thousandth of it is less than a pixel.
const DIGITS: i32 = 5;

/// The element with the data of `chart`, whose curves are called `names`.
pub(crate) fn element(chart: &Chart, names: &[String]) -> Markup {
    let drawn = match chart.drawn {
        Plot::Line => "line",
        Plot::Points => "points",
        Plot::Dots => "dots",
    };
    let parts = chart.parts.iter().map(|(name, lines)| json!({"name": name, "curves": of(lines)}));
    let data = json!({
        "drawn": drawn,
        "distribution": chart.distribution,
        "x": axis(&chart.x),
        "y": axis(&chart.y),
        "names": names,
        "curves": of(&chart.lines),
        "parts": parts.collect::<Vec<_>>(),
        "open": of(&chart.over.open),
        "bars": chart.over.bars.iter().map(|bars| {
            bars.iter().map(|(x, y, half)| [short(*x), short(*y), short(*half)]).collect()
        }).collect::<Vec<Vec<_>>>(),
        "styles": (0..chart.lines.len()).map(style).collect::<Vec<_>>(),
        "shown": SHOWN,
    });
    // A name must not end the element.
    let text = data.to_string().replace('<', "\\u003c");
    html! { script type="application/json" { (PreEscaped(text)) } }
}

fn style(i: usize) -> Value {
    let style = Style::of(i);
    json!({"colour": style.colour, "dash": style.dash, "mark": style.mark})
}

fn axis(axis: &Axis) -> Value {
    let (low, high) = axis.ends();
    json!({
        "label": axis.label,
        "log": axis.is_log(),
        "names": axis.named(),
        "low": low,
        "high": high,
    })
}

/// A list of all x and one of all y of each curve; `null` for x that are those of the curve before.
fn of(curves: &[Curve]) -> Value {
    let mut before: Option<Vec<Value>> = None;
    let curve = |curve: &Curve| {
        let x: Vec<Value> = curve.iter().map(|(x, _)| short(*x)).collect();
        let y: Vec<Value> = curve.iter().map(|(_, y)| short(*y)).collect();
        if before.as_ref() == Some(&x) {
            return json!([null, y]);
        }
        before = Some(x.clone());
        json!([x, y])
    };
    curves.iter().map(curve).collect()
}

/// `value` with [`DIGITS`], or as many decimals if it is a share: a tail is what is missing to one.
fn short(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let decimals = if (0.9..=1.0).contains(&value) {
        9
    } else {
        let power = libm::floor(libm::log10(value.abs().max(1e-12))) as i32;
        (DIGITS - 1 - power).max(0)
    };
    let scale = libm::pow(10.0, f64::from(decimals));
    let rounded = libm::round(value * scale) / scale;
    // Without a decimal point where it says nothing.
    if rounded == libm::trunc(rounded) && rounded.abs() < 1e15 {
        return json!(rounded as i64);
    }
    json!(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_tails_are_not_lost() {
        let cases = [(0.0, "0"), (1234567.0, "1234567"), (1.23456789, "1.2346"), (-2.5, "-2.5")];
        for (value, text) in cases {
            assert_eq!(short(value).to_string(), text);
        }
        assert_eq!(short(0.000123456).to_string(), "0.00012346");
        assert_eq!(short(0.999_998_7).to_string(), "0.9999987");
        assert_eq!(short(f64::NAN), Value::Null);
    }

    #[test]
    fn the_same_places_are_written_once() {
        let curves = [vec![(1.0, 2.0)], vec![(1.0, 3.0)], vec![(4.0, 5.0)]];
        assert_eq!(of(&curves).to_string(), "[[[1],[2]],[null,[3]],[[4],[5]]]");
    }
}
