//! [`Row`]: a number with its band.

use std::path::Path;
use std::sync::Arc;

use metrics::{Origin, is_within};
use scenario::{Node, Reader, Value, read_text};

use crate::Checked;
use crate::figure::{self, Curve, CurveOf, Figure};
use crate::formula::Formula;
use crate::run::{self, Axis, Point};

/// A number of the publication, or a property of our own, and where our value comes from.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) origin: Origin,
    /// It is among the first that the page shows.
    pub(crate) headline: bool,
    /// Index of the run.
    pub(crate) run: usize,
    /// The point of the run's sweep; with an `onset` the first one along its axis.
    pub(crate) point: Point,
    /// The row's value is where along an axis, not what at a point.
    pub(crate) onset: Option<Onset>,
    pub(crate) formula: Arc<Formula>,
    /// The value is the median over seeds, not the mean.
    pub(crate) median: bool,
    pub(crate) unit: String,
    /// Without one there is only a bound.
    pub(crate) target: Option<f64>,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    pub(crate) source: String,
    pub(crate) why: String,
    /// What to read about a value out of the band.
    pub(crate) note: Option<Note>,
    /// The experiment that tests why it is.
    pub(crate) cause: Option<Cause>,
    /// The publication's other value for the number, if it contradicts itself.
    pub(crate) contradicted: Option<Published>,
}

/// What the publication says of a row's number: what a value of ours is judged by.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) target: Option<f64>,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    pub(crate) source: String,
}

/// The run that tests why a row is out of its band.
#[derive(Clone)]
pub(crate) struct Cause {
    /// Index of the run.
    pub(crate) run: usize,
    /// The point of its sweep; without, that of the row.
    pub(crate) at: Option<Point>,
    /// The row's metric, if the experiment has no other one.
    pub(crate) formula: Arc<Formula>,
    pub(crate) shows: CauseShows,
}

/// What the experiment on a cause is to show.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum CauseShows {
    /// It moves the row into its band.
    InBand,
    /// A value between these: the band cannot be reached.
    Unreachable(Option<f64>, Option<f64>),
    /// The target lies between the least and the greatest value of single seeds.
    Scatter,
}

/// Fewer seeds say little about scatter: one value more of the same kind would be outside all of
/// them with a probability of 2 / (seeds + 1).
const FEWEST_OF_SCATTER: usize = 10;

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
}

impl Row {
    /// The points that it takes, each with its run: one, or all along the axis of its onset.
    pub(crate) fn points(&self) -> Vec<(usize, &Point)> {
        let Some(onset) = &self.onset else { return vec![(self.run, &self.point)] };
        let along = [Some(&onset.own), onset.over.as_ref()].into_iter().flatten();
        along.flat_map(|a| a.points.iter().map(|(_, point)| (a.run, point))).collect()
    }

    /// Whether `value` is in the band, or in that of the publication's other value.
    pub(crate) fn holds(&self, value: f64) -> bool {
        self.bands().any(|(low, high)| is_within(value, low, high))
    }

    /// The band, and that of the publication's other value.
    pub(crate) fn bands(&self) -> impl Iterator<Item = (Option<f64>, Option<f64>)> {
        let other = self.contradicted.as_ref().map(|other| (other.low, other.high));
        [Some((self.low, self.high)), other].into_iter().flatten()
    }

    /// What `measured` is judged by: the publication's other value if that is met and its first
    /// one is not.
    pub(crate) fn judged_by(&self, measured: Option<f64>) -> Published {
        let (target, low, high) = (self.target, self.low, self.high);
        let Some(other) = &self.contradicted else {
            return Published { target, low, high, source: self.source.clone() };
        };
        let [first, second] = [target, other.target].map(Option::unwrap_or_default);
        let meets = |low, high| measured.is_some_and(|value| is_within(value, low, high));
        if !meets(low, high) && meets(other.low, other.high) {
            let source = format!("{}; contradicted by {first}: {}", other.source, self.source);
            return Published { source, ..other.clone() };
        }
        let source = format!("{}; contradicted by {second}: {}", self.source, other.source);
        Published { target, low, high, source }
    }
}

/// What `origin` may say.
const ORIGINS: &[(&str, Origin)] =
    &[("published", Origin::Published), ("own", Origin::Own), ("copy", Origin::Copy)];

/// Read a table `[[row]]` into `figure`: one row, or one per point and a curve.
pub(crate) fn read(table: &mut Reader<'_>, figure: &mut Figure) -> Checked<()> {
    let id: String = table.need("id")?;
    let origin = table.choose("origin", ORIGINS, |(name, _)| name)?.1;
    let run = figure.run_of(table, "run")?;
    let formula = figure.formula(table, "metric", run)?;
    let unit = table.need("unit")?;
    let source: String = table.need("source")?;
    let why = table.need("why")?;
    let median = table.or("median", false)?;
    let headline = table.or("headline", false)?;
    let note = note(table, &figure.dir)?;
    let cause = cause(table, figure, (run, &formula), note.is_some())?;
    if origin != Origin::Published && (headline || cause.is_some()) {
        let key = if headline { "headline" } else { "cause" };
        let error = table.error(key, "nothing is published for this row", "here");
        return Err(error.hint("only rows with `origin = \"published\"` have it"));
    }
    let band = Band::read(table)?;
    let row = |id, point, onset, target, (low, high)| Row {
        id,
        origin,
        headline,
        run,
        point,
        onset,
        formula: Arc::clone(&formula),
        median,
        unit: String::clone(&unit),
        target,
        low,
        high,
        source: source.clone(),
        why: String::clone(&why),
        note: note.clone(),
        cause: cause.clone(),
        contradicted: None,
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
        let target = table.maybe("target")?;
        let contradicted = contradicted(table, target)?;
        let row = row(id, point, onset, target, band.around(target, table)?);
        return add(table, figure, Row { contradicted, ..row });
    }
    let axis = figure::axis_of(table, "over", own)?;
    let at = figure::at(table, own, Some(axis))?;
    let points = points(table)?;
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
        let (y, source) = (Arc::clone(&formula), source.clone());
        let of = CurveOf::Along { axis, y };
        let published = match origin {
            Origin::Published => points.iter().filter_map(|&(x, y)| Some((x, y?))).collect(),
            Origin::Own | Origin::Copy => Vec::new(),
        };
        figure.curves.push(Curve { label: id, run, at, of, published, source });
    }
    rows.into_iter().try_for_each(|row| add(table, figure, row))
}

/// The table `contradicted` of a row with `target`: the publication's other value.
fn contradicted(table: &mut Reader<'_>, target: Option<f64>) -> Checked<Option<Published>> {
    let Some(mut keys) = table.table("contradicted")? else { return Ok(None) };
    if target.is_none() {
        return Err(table.missing("target", "add the value that is contradicted"));
    }
    let other = Some(keys.need("target")?);
    let (low, high) = Band::read(&mut keys)?.around(other, &keys)?;
    let source = keys.need("source")?;
    keys.finish()?;
    Ok(Some(Published { target: other, low, high, source }))
}

/// The places of a row per point, each with its target; a place alone has only the bound.
fn points(table: &mut Reader<'_>) -> Checked<Vec<(f64, Option<f64>)>> {
    let Some(node) = table.node("points") else {
        return Err(table.missing("points", "add `points = [[9, 1.02], [17, 1.38]]`"));
    };
    let point = |item: &Node| match &item.value {
        Value::Array(_) => figure::pair(item).map(|(x, y)| (x, Some(y))),
        _ => figure::number(item).map(|x| (x, None)),
    };
    run::list(node)?.iter().map(point).collect()
}

/// The table `cause` of a row with `formula`.
fn cause(
    table: &mut Reader<'_>,
    figure: &Figure,
    (of, formula): (usize, &Formula),
    noted: bool,
) -> Checked<Option<Cause>> {
    let Some(mut keys) = table.table("cause")? else { return Ok(None) };
    if !noted {
        return Err(table.missing("note", "add the note that tells the cause"));
    }
    let run = figure.run_of(&mut keys, "run")?;
    let own = &figure.runs[run];
    let formula = match keys.has("metric") {
        true => figure.formula(&mut keys, "metric", run)?,
        false => figure.formula_of(&formula.text, &keys, "run", run)?,
    };
    let at = match keys.has("at") {
        true => Some(figure::at(&mut keys, own, None)?.into_iter().flatten().collect()),
        false => None,
    };
    let shows = match keys.maybe::<String>("shows")?.as_deref() {
        None => CauseShows::InBand,
        Some("unreachable") => CauseShows::Unreachable(keys.maybe("low")?, keys.maybe("high")?),
        Some("scatter") => CauseShows::Scatter,
        Some(_) => {
            let error = keys.error("shows", "an experiment shows another thing", "here");
            let hint = "it moves into the band, or `shows = \"unreachable\"`, or `\"scatter\"`";
            return Err(error.hint(hint));
        }
    };
    if shows == CauseShows::Unreachable(None, None) {
        return Err(keys.missing("low", "add `low` or `high`: which values show it"));
    }
    if shows == CauseShows::Scatter && own.seeds(false).len() < FEWEST_OF_SCATTER {
        let message = format!("run `{}` has {} seeds", own.id, own.seeds(false).len());
        let error = keys.error("shows", message, "here");
        return Err(error.hint(format!("scatter takes {FEWEST_OF_SCATTER} seeds or more")));
    }
    if run == of && at.is_none() && shows == CauseShows::InBand {
        let error = keys.error("run", "this is the row's own run", "here");
        return Err(error.hint("another way of counting is no experiment: name another run"));
    }
    keys.finish()?;
    Ok(Some(Cause { run, at, formula, shows }))
}

fn add(table: &Reader<'_>, figure: &mut Figure, row: Row) -> Checked<()> {
    if figure.rows.iter().any(|other| other.id == row.id) {
        return Err(table.error("id", format!("two rows are called `{}`", row.id), "here"));
    }
    if let Some(cause) = &row.cause {
        let (run, own) = (&figure.runs[cause.run], &figure.runs[row.run]);
        if cause.at.is_none() && run.same_point(own, &row.point).is_none() {
            let message = format!("run `{}` is not run at {}", run.id, own.show(&row.point));
            return Err(table.error("cause", message, "here").hint("say where with `at`"));
        }
        if cause.shows == CauseShows::InBand && !run.has_seeds_of(own) {
            let message = format!("run `{}` has other seeds than `{}`", run.id, own.id);
            let error = table.error("cause", message, "here");
            return Err(error.hint("give both the same seeds, also in their quick forms"));
        }
        if cause.shows == CauseShows::Scatter && row.target.is_none() {
            let message = format!("`{}` has no target to look for among seeds", row.id);
            return Err(table.error("cause", message, "here").hint("add `target`"));
        }
        if cause.shows == CauseShows::Scatter && row.low.and(row.high).is_none() {
            let message = format!("`{}` has no band, so any range of seeds would do", row.id);
            return Err(table.error("cause", message, "here").hint("add `low` and `high`"));
        }
        if row.onset.is_some() {
            return Err(table.error("cause", "a place along an axis has no experiment", "here"));
        }
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
) -> Checked<Onset> {
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
fn only_axis(keys: &mut Reader<'_>, figure: &Figure, axis: &str) -> Checked<Along> {
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
    fn read(table: &mut Reader<'_>) -> Checked<Self> {
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
        target: Option<f64>,
        table: &Reader<'_>,
    ) -> Checked<(Option<f64>, Option<f64>)> {
        let Some(target) = target else {
            return match *self {
                Self::Ends(low, high) => Ok((low, high)),
                Self::Within(_) | Self::PlusMinus(_) => {
                    Err(table.missing("target", "add it, or a bound instead: `low = 1`"))
                }
            };
        };
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

/// The note of a row, which must be there, with its heading.
fn note(table: &mut Reader<'_>, dir: &Path) -> Checked<Option<Note>> {
    let Some(note) = table.maybe::<String>("note")? else { return Ok(None) };
    let (file, heading) = note.split_once('#').map_or((note.as_str(), None), |(f, h)| (f, Some(h)));
    let path = dir.join(file);
    let text = read_text(&path).map_err(|why| {
        let message = format!("cannot read the note {}: {why}", path.display());
        let error = table.error("note", message, "here");
        error.hint("what is known of a value out of its band, with packet-level evidence")
    })?;
    let link = dir.join(&note).display().to_string();
    let Some(heading) = heading else { return Ok(Some(Note { link, text })) };
    let text = section(&text, heading).ok_or_else(|| {
        let message = format!("{} has no heading `#{heading}`", path.display());
        let known: Vec<String> = text.lines().filter_map(|l| Some(title(l)?.1)).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let error = table.error("note", message, "here");
        error.hint(scenario::did_you_mean(heading, &known))
    })?;
    Ok(Some(Note { link, text }))
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
