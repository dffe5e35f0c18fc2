//! [`Row`]: a number of the publication with its band.

use std::path::Path;
use std::rc::Rc;

use scenario::{Diagnostic, Reader, read_text};

use crate::figure::{self, Curve, CurveOf, Figure};
use crate::formula::Formula;
use crate::run::{Axis, Point};

/// A number of the publication, and where ours comes from.
pub(crate) struct Row {
    pub(crate) id: String,
    /// Index of the run.
    pub(crate) run: usize,
    /// The point of the run's sweep; with an `onset` the first one along its axis.
    pub(crate) point: Point,
    /// The row's value is where along an axis, not what at a point.
    pub(crate) onset: Option<Onset>,
    pub(crate) formula: Rc<Formula>,
    /// The value is the median over seeds, not the mean.
    pub(crate) median: bool,
    pub(crate) unit: String,
    pub(crate) target: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    pub(crate) source: String,
    pub(crate) why: String,
    /// What explains a value out of the band.
    pub(crate) explained: Option<Note>,
}

/// The first value of an axis at which a formula is below a bound: where goodput collapses.
pub(crate) struct Onset {
    /// The bound.
    pub(crate) below: f64,
    /// The axis of the row's run.
    pub(crate) own: Along,
    /// The row's value is the ratio to where it is so along this one.
    pub(crate) over: Option<Along>,
}

/// The points of a run along an axis.
pub(crate) struct Along {
    /// Index of the run.
    pub(crate) run: usize,
    /// Each with its place on the axis.
    pub(crate) points: Vec<(f64, Point)>,
}

/// A note with packet-level evidence.
#[derive(Clone)]
pub(crate) struct Note {
    /// Its path from the working directory, with the anchor of its heading.
    pub(crate) link: String,
    /// Its text.
    pub(crate) text: String,
    /// The values that it explains, both ends included.
    range: (f64, f64),
}

impl Note {
    /// Whether it explains `value`.
    pub(crate) fn explains(&self, value: f64) -> bool {
        let (low, high) = self.range;
        low <= value && value <= high
    }
}

impl Row {
    /// The points that it takes, each with its run: one, or all along the axis of its onset.
    pub(crate) fn points(&self) -> Vec<(usize, &Point)> {
        let Some(onset) = &self.onset else { return vec![(self.run, &self.point)] };
        let along = [Some(&onset.own), onset.over.as_ref()].into_iter().flatten();
        along.flat_map(|a| a.points.iter().map(|(_, point)| (a.run, point))).collect()
    }

    /// Whether `value` is in the band.
    pub(crate) fn holds(&self, value: f64) -> bool {
        self.low.is_none_or(|low| value >= low) && self.high.is_none_or(|high| value <= high)
    }
}

/// Read a table `[[row]]` into `figure`: one row, or one per point and a curve.
pub(crate) fn read(table: &mut Reader<'_>, figure: &mut Figure) -> Result<(), Diagnostic> {
    let id: String = table.need("id")?;
    let run = figure.run_of(table, "run")?;
    let formula = figure.formula(table, "metric", run)?;
    let unit = table.need("unit")?;
    let source: String = table.need("source")?;
    let why = table.need("why")?;
    let median = table.or("median", false)?;
    let explained = explained(table, &figure.dir)?;
    let band = Band::read(table)?;
    let row = |id, point, onset, target, (low, high)| Row {
        id,
        run,
        point,
        onset,
        formula: Rc::clone(&formula),
        median,
        unit: String::clone(&unit),
        target,
        low,
        high,
        source: source.clone(),
        why: String::clone(&why),
        explained: explained.clone(),
    };
    let own = &figure.runs[run];
    if !table.has("over") {
        let (onset, point) = match table.table("onset")? {
            Some(keys) => {
                let onset = onset(keys, table, figure, run)?;
                let first = onset.own.points.first().map(|(_, point)| point.clone());
                (Some(onset), first.unwrap_or_default())
            }
            None => (None, figure::at(table, own, None)?.into_iter().flatten().collect()),
        };
        let target = table.need("target")?;
        return add(table, figure, row(id, point, onset, target, band.around(target, table)?));
    }
    let axis = figure::axis_of(table, "over", own)?;
    let at = figure::at(table, own, Some(axis))?;
    let Some(node) = table.node("points") else {
        return Err(table.missing("points", "add `points = [[9, 1.02], [17, 1.38]]`"));
    };
    let points = figure::points(node)?;
    let mut rows = Vec::new();
    for &(x, target) in &points {
        let values = &own.axes[axis].values;
        let Some(i) = values.iter().position(|value| value.number == Some(x)) else {
            let message = format!("{x} is not a value of the axis `{}`", own.axes[axis].name);
            return Err(table.error("points", message, "not run"));
        };
        let name = format!("{id} {}={}", own.axes[axis].name, values[i].text);
        let point = at.iter().map(|at| at.unwrap_or(i)).collect();
        rows.push(row(name, point, None, target, band.around(target, table)?));
    }
    if table.or("plot", true)? {
        let (y, source) = (Rc::clone(&formula), source.clone());
        let of = CurveOf::Along { axis, y };
        figure.curves.push(Curve { label: id, run, at, of, published: points, source });
    }
    rows.into_iter().try_for_each(|row| add(table, figure, row))
}

fn add(table: &Reader<'_>, figure: &mut Figure, row: Row) -> Result<(), Diagnostic> {
    if figure.rows.iter().any(|other| other.id == row.id) {
        return Err(table.error("id", format!("two rows are called `{}`", row.id), "here"));
    }
    figure.rows.push(row);
    Ok(())
}

/// The table `onset` of a row, whose `at` says where on the other axes of its run.
fn onset(
    mut keys: Reader<'_>,
    row: &mut Reader<'_>,
    figure: &Figure,
    run: usize,
) -> Result<Onset, Diagnostic> {
    let own = &figure.runs[run];
    let axis = figure::axis_of(&mut keys, "along", own)?;
    let at = figure::at(row, own, Some(axis))?;
    let below = keys.need("below")?;
    let over = match keys.has("over") {
        true => Some(only_axis(&mut keys, figure, &own.axes[axis].name)?),
        false => None,
    };
    keys.finish()?;
    Ok(Onset { below, own: along(figure, run, axis, &at), over })
}

/// The run that `over` names, along `axis`, which must be its only one.
fn only_axis(keys: &mut Reader<'_>, figure: &Figure, axis: &str) -> Result<Along, Diagnostic> {
    let index = figure.run_of(keys, "over")?;
    let run = &figure.runs[index];
    let numbers = |axis: &Axis| axis.values.iter().all(|value| value.number.is_some());
    match run.axes.as_slice() {
        [only] if only.name == axis && numbers(only) => Ok(along(figure, index, 0, &[None])),
        _ => {
            let message = format!("run `{}` has another sweep than `{axis}` alone", run.id);
            Err(keys.error("over", message, "here"))
        }
    }
}

/// The points of a run along `axis`; `at` says where on its others.
fn along(figure: &Figure, run: usize, axis: usize, at: &[Option<usize>]) -> Along {
    let values = figure.runs[run].axes[axis].values.iter().enumerate();
    let point = |i| at.iter().map(|at| at.unwrap_or(i)).collect();
    Along { run, points: values.filter_map(|(i, value)| Some((value.number?, point(i)))).collect() }
}

/// How far a value may be from its target.
enum Band {
    /// Between these; one of them is there.
    Ends(Option<f64>, Option<f64>),
    /// By this share of the target.
    Within(f64),
    /// By this much, in the row's unit.
    PlusMinus(f64),
}

impl Band {
    /// Read `low` and `high`, or `within`, or `plus_minus`.
    fn read(table: &mut Reader<'_>) -> Result<Self, Diagnostic> {
        let (low, high) = (table.maybe("low")?, table.maybe("high")?);
        let (within, plus_minus) = (table.maybe("within")?, table.maybe("plus_minus")?);
        match (within, plus_minus, low.or(high)) {
            (Some(share), None, None) => {
                Ok(Self::Within(table.within("within", share, 0.0..=1.0)?))
            }
            (None, Some(half), None) => {
                Ok(Self::PlusMinus(table.within("plus_minus", half, 0.0..=f64::MAX)?))
            }
            (None, None, Some(_)) => Ok(Self::Ends(low, high)),
            (None, None, None) => Err(table.missing(
                "within",
                "add `low` and `high`, `within = 0.05` (of the target) or `plus_minus = 2`",
            )),
            _ => {
                let key = if within.is_some() { "within" } else { "plus_minus" };
                let message = format!("`{key}` excludes other bands");
                let error = table.error(key, message, "one too many");
                Err(error.hint("one of `low` and `high`, `within`, `plus_minus`"))
            }
        }
    }

    /// The band around `target`, which must be in it.
    fn around(
        &self,
        target: f64,
        table: &Reader<'_>,
    ) -> Result<(Option<f64>, Option<f64>), Diagnostic> {
        let (low, high) = match *self {
            Self::Ends(low, high) => (low, high),
            Self::Within(share) => {
                let half = (target * share).abs();
                (Some(target - half), Some(target + half))
            }
            Self::PlusMinus(half) => (Some(target - half), Some(target + half)),
        };
        if low.is_some_and(|low| target < low) || high.is_some_and(|high| target > high) {
            let message = format!("the target {target} is not in its band");
            let key = if table.has("low") { "low" } else { "high" };
            return Err(table.error(key, message, "here").hint("the band surrounds the target"));
        }
        Ok((low, high))
    }
}

/// The note that explains, which must be there, with its heading.
fn explained(table: &mut Reader<'_>, dir: &Path) -> Result<Option<Note>, Diagnostic> {
    let range = table.maybe::<Vec<f64>>("explains")?;
    let Some(note) = table.maybe::<String>("explained")? else {
        return match range {
            Some(_) => Err(table.missing("explained", "add the note, `explained = \"notes.md\"`")),
            None => Ok(None),
        };
    };
    let range = match range.as_deref() {
        // A note that explained every value would let the row change unnoticed.
        None => {
            let hint = "add the values that the note explains, like `explains = [2.5, 2.8]`";
            return Err(table.missing("explains", hint));
        }
        Some(&[low, high]) if low <= high => (low, high),
        Some(_) => {
            let error = table.error("explains", "a lower and an upper end are wanted", "here");
            return Err(error.hint("write it like `explains = [2.5, 2.8]`"));
        }
    };
    let (file, heading) = note.split_once('#').map_or((note.as_str(), None), |(f, h)| (f, Some(h)));
    let path = dir.join(file);
    let text = read_text(&path).map_err(|why| {
        let message = format!("cannot read the note {}: {why}", path.display());
        let error = table.error("explained", message, "here");
        error.hint("a row is explained by a note with packet-level evidence")
    })?;
    let link = dir.join(&note).display().to_string();
    let Some(heading) = heading else { return Ok(Some(Note { link, text, range })) };
    let text = section(&text, heading).ok_or_else(|| {
        let message = format!("{} has no heading `#{heading}`", path.display());
        let known: Vec<String> = text.lines().filter_map(|l| Some(title(l)?.1)).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let error = table.error("explained", message, "here");
        error.hint(scenario::did_you_mean(heading, &known))
    })?;
    Ok(Some(Note { link, text, range }))
}

/// The part of the Markdown `text` under the heading with the anchor `heading`, up to the next of
/// its level.
fn section(text: &str, heading: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| title(line).is_none_or(|t| t.1 != heading));
    let first = lines.next()?;
    let level = title(first)?.0;
    let inside = lines.take_while(|line| title(line).is_none_or(|t| t.0 > level));
    Some([first].into_iter().chain(inside).collect::<Vec<_>>().join("\n"))
}

/// Level and anchor of a heading.
fn title(line: &str) -> Option<(usize, String)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (level > 0 && text.starts_with(' ')).then(|| (level, anchor(text.trim())))
}

/// The anchor of a heading as Markdown renderers make it: "Slowest flow" is `slowest-flow`.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_level() {
        let text = "# Notes\n## Slowest flow: why?\none\n### Packets\n#two\n## Other\nthree\n";
        let slowest = "## Slowest flow: why?\none\n### Packets\n#two";
        assert_eq!(section(text, "slowest-flow-why").unwrap(), slowest);
        assert_eq!(section(text, "other").unwrap(), "## Other\nthree");
        assert_eq!(section(text, "two"), None, "no heading without a space");
    }
}
