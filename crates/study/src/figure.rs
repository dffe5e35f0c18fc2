//! [`Figure`]: a directory with a `figure.toml`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use metrics::AxisSpec;
use scenario::{At, Diagnostic, Node, Reader, Value, did_you_mean, nearest};

use crate::Checked;
use crate::by_size;
use crate::formula::Formula;
use crate::metric;
use crate::row::{self, Row};
use crate::run::{self, Point, Run};
use crate::study::document;

/// A figure of a publication, or one number of its text: what to run, what to compare.
pub(crate) struct Figure {
    pub(crate) id: String,
    pub(crate) dir: PathBuf,
    pub(crate) title: String,
    pub(crate) expect: String,
    pub(crate) x: AxisSpec,
    pub(crate) y: AxisSpec,
    pub(crate) runs: Vec<Run>,
    pub(crate) rows: Vec<Row>,
    /// The names of rows that the study's form leaves out.
    pub(crate) left_out: Vec<String>,
    /// Rows of runs whose tool is not here.
    pub(crate) skipped: Vec<Row>,
    pub(crate) curves: Vec<Curve>,
}

/// A curve of the figure's plot.
pub(crate) struct Curve {
    pub(crate) label: String,
    /// Index of the run.
    pub(crate) run: usize,
    /// Per axis of the run the value, `None` along x.
    pub(crate) at: Vec<Option<usize>>,
    pub(crate) of: CurveOf,
    pub(crate) published: Vec<(f64, f64)>,
    pub(crate) source: String,
}

/// The bytes in the queue of a probe, for `over_time`.
const QUEUE_BYTES: &str = "queue_bytes";

/// What a curve shows.
pub(crate) enum CurveOf {
    /// A value along an axis of the sweep.
    Along {
        /// Index of the axis.
        axis: usize,
        /// The value.
        y: Arc<Formula>,
    },
    /// The distribution of something over messages or packets: its name.
    Distribution(String),
    /// A time of each message over that of its submission, with the first seed: its name.
    Scatter(String),
    /// A percentile of the slowdown over the share of messages that are no larger, with the first
    /// seed: its name.
    BySize(String),
    /// How long the queue of the run's probe is over time, with the first seed: its name.
    OverTime(String),
}

impl Figure {
    /// The figure of these runs, without words and rows.
    pub(crate) fn of_runs(id: String, dir: PathBuf, runs: Vec<Run>) -> Self {
        Self {
            id,
            dir,
            title: String::new(),
            expect: String::new(),
            x: AxisSpec::default(),
            y: AxisSpec::default(),
            runs,
            rows: Vec::new(),
            left_out: Vec::new(),
            skipped: Vec::new(),
            curves: Vec::new(),
        }
    }

    /// Read the figure `id` in `dir`.
    pub(crate) fn load(id: &str, dir: &Path) -> Checked<Self> {
        let document = document(&dir.join("figure.toml"))?;
        let mut root = Reader::new(&document.root, &document.root.at, "the figure")?;
        let mut figure = Self {
            id: id.to_owned(),
            dir: dir.to_owned(),
            title: root.need("title")?,
            expect: root.need("expect")?,
            x: axis(&mut root, "x", "x_logarithmic")?,
            y: axis(&mut root, "y", "y_logarithmic")?,
            runs: Vec::new(),
            rows: Vec::new(),
            left_out: Vec::new(),
            skipped: Vec::new(),
            curves: Vec::new(),
        };
        let tables = root.tables("run")?;
        if tables.is_empty() {
            return Err(root.missing("run", "add a table `[[run]]`"));
        }
        for mut table in tables {
            let run = Run::read(&mut table, dir)?;
            if figure.runs.iter().any(|other| other.id == run.id) {
                return Err(table.error("id", format!("two runs are called `{}`", run.id), "here"));
            }
            figure.runs.push(run);
            table.finish()?;
        }
        for mut table in root.tables("row")? {
            row::read(&mut table, &mut figure)?;
            table.finish()?;
        }
        for mut table in root.tables("curve")? {
            let curve = Curve::read(&mut table, &figure)?;
            figure.curves.push(curve);
            table.finish()?;
        }
        root.finish()?;
        figure.skip_without_tools();
        Ok(figure)
    }

    /// The run that a row or curve names under `key`.
    pub(crate) fn run_of(&self, table: &mut Reader<'_>, key: &'static str) -> Checked<usize> {
        let id: String = table.need(key)?;
        self.runs.iter().position(|run| run.id == id).ok_or_else(|| {
            let ids: Vec<&str> = self.runs.iter().map(|run| run.id.as_str()).collect();
            let error = table.error(key, format!("there is no run `{id}`"), "here");
            error.hint(did_you_mean(&id, &ids))
        })
    }

    /// The formula under `key`; its names are metrics of `run` or of the runs that it names, at
    /// points and with seeds that these have, or axes of `run`.
    pub(crate) fn formula(
        &self,
        table: &mut Reader<'_>,
        key: &'static str,
        run: usize,
    ) -> Checked<Arc<Formula>> {
        let text: String = table.need(key)?;
        self.formula_of(&text, table, key, run)
    }

    /// The same for a text that stands under `key`.
    pub(crate) fn formula_of(
        &self,
        text: &str,
        table: &Reader<'_>,
        key: &'static str,
        run: usize,
    ) -> Checked<Arc<Formula>> {
        let formula = Formula::parse(text).map_err(|why| {
            let error = table.error(key, format!("this is not a formula: {}", why.0), "here");
            error.hint("for example `100 * packets.trimmed / packets.data_sent`")
        })?;
        let own = &self.runs[run];
        for name in formula.names() {
            let error = |message: String| table.error(key, message, "here");
            if name.starts_with(KS) {
                let Some((other, of)) = self.distance(name) else {
                    let message = format!("`{name}` is no distance between two runs");
                    return Err(error(message).hint("write it like `ks.RUN.rtt_us`"));
                };
                let other = &self.runs[other];
                metric::check_distribution(of).map_err(|known| {
                    error(format!("no distribution `{of}`")).hint(did_you_mean(of, &known))
                })?;
                for run in [own, other] {
                    check_table(of, run, error)?;
                }
                check_pairing(own, other, error)?;
                continue;
            }
            let Some((other, metric)) = name.split_once("::") else {
                if own.axis(name).is_none() {
                    check_metric(name, own, error)?;
                }
                continue;
            };
            let Some(other) = self.runs.iter().find(|run| run.id == other) else {
                let ids: Vec<&str> = self.runs.iter().map(|run| run.id.as_str()).collect();
                let message = format!("there is no run `{other}`");
                return Err(error(message).hint(did_you_mean(other, &ids)));
            };
            check_metric(metric, other, error)?;
            check_pairing(own, other, error)?;
        }
        Ok(Arc::new(formula))
    }

    /// The other run and the distribution, if `name` is the distance between two: `ks.RUN.rtt_us`.
    pub(crate) fn distance<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        let (run, of) = name.strip_prefix(KS)?.split_once('.')?;
        Some((self.runs.iter().position(|other| other.id == run)?, of))
    }

    /// The metric `name` of a formula of `run`: which run's, and its name there.
    pub(crate) fn resolve<'n>(&self, run: usize, name: &'n str) -> (usize, &'n str) {
        let other = name.split_once("::").and_then(|(id, metric)| {
            Some((self.runs.iter().position(|run| run.id == id)?, metric))
        });
        other.unwrap_or((run, name))
    }
}

/// How the name of a distance between the distributions of two runs begins in a formula.
const KS: &str = "ks.";

fn check_metric(name: &str, run: &Run, error: impl FnOnce(String) -> Diagnostic) -> Checked<()> {
    if metric::is_known(name, run) {
        return check_table(name, run, error);
    }
    let known = metric::names(run);
    // All of them would be a page.
    let hint = match nearest(name, known.iter().map(String::as_str)) {
        Some(name) => format!("did you mean `{name}`?"),
        None => "docs/studies.md lists metrics".to_owned(),
    };
    Err(error(format!("run `{}` has no metric `{name}`", run.id)).hint(hint))
}

/// If `name` is about a traffic table, the scenario of `run` has it.
fn check_table(name: &str, run: &Run, error: impl FnOnce(String) -> Diagnostic) -> Checked<()> {
    let Some((table, _)) = metric::table_of(name) else { return Ok(()) };
    // What is wrong in the scenario is said where it is planned.
    let Some(tables) = run.tables() else { return Ok(()) };
    if tables.iter().any(|known| known == table) {
        return Ok(());
    }
    let known: Vec<&str> = tables.iter().map(String::as_str).collect();
    let error = error(format!("run `{}` has no traffic table `{table}`", run.id));
    Err(match known.is_empty() {
        true => error.hint("give a table `[[traffic]]` of its scenario a `name`"),
        false => error.hint(did_you_mean(table, &known)),
    })
}

/// A formula over two runs compares equal points and equal seeds.
fn check_pairing(own: &Run, other: &Run, error: impl Fn(String) -> Diagnostic) -> Checked<()> {
    let pairs = [(own.seeds(false), other.seeds(false)), (own.seeds(true), other.seeds(true))];
    let quick_too = own.quick.is_some();
    if pairs.iter().take(1 + usize::from(quick_too)).any(|(own, other)| own != other) {
        let message = format!("runs `{}` and `{}` have different seeds", own.id, other.id);
        return Err(error(message).hint("a formula compares runs of the same seed"));
    }
    for quick in [false, true] {
        let there = other.points(quick);
        let missing = own.points(quick).into_iter().find(|point| {
            !other.same_point(own, point).is_some_and(|point| there.contains(&point))
        });
        if let Some(point) = missing {
            let form = if quick { " in the quick form" } else { "" };
            let at = own.show(&point);
            let at = if at.is_empty() { String::new() } else { format!(" at {at}") };
            let message = format!("run `{}` is not run{at}{form}", other.id);
            let hint = format!("it needs the axes and values of run `{}`", own.id);
            return Err(error(message).hint(hint));
        }
    }
    Ok(())
}

/// The label of an axis of the plot, and whether it is logarithmic.
fn axis(
    root: &mut Reader<'_>,
    label: &'static str,
    logarithmic: &'static str,
) -> Checked<AxisSpec> {
    let label = root.maybe(label)?.unwrap_or_default();
    Ok(AxisSpec { label, logarithmic: root.maybe(logarithmic)? })
}

impl CurveOf {
    /// What the name under `key`, one of those that name something of single messages, packets or
    /// of a probe, says of `run`.
    fn read(table: &mut Reader<'_>, key: &'static str, run: &Run) -> Checked<Self> {
        let name: String = table.need(key)?;
        let unknown = |what: &str, known: &[&str]| {
            let error = table.error(key, format!("no {what} `{name}`"), "here");
            error.hint(did_you_mean(&name, known))
        };
        match key {
            "over_time" => {
                if name != QUEUE_BYTES {
                    return Err(unknown("value over time", &[QUEUE_BYTES]));
                }
                if !run.probe.is_some_and(|probe| probe.over_time) {
                    let message = format!("run `{}` has no probe that knows its queue", run.id);
                    let hint = "add `probe = \"queue\"` to the run";
                    return Err(table.error(key, message, "here").hint(hint));
                }
                Ok(Self::OverTime(name))
            }
            "by_size" => match by_size::CURVES.contains(&name.as_str()) {
                true => Ok(Self::BySize(name)),
                false => Err(unknown("percentile", &by_size::CURVES)),
            },
            "scatter" => {
                metric::check_scatter(&name).map_err(|known| unknown("scatter plot", &known))?;
                check_table(&name, run, |message| table.error(key, message, "here"))?;
                Ok(Self::Scatter(name))
            }
            _ => {
                metric::check_distribution(&name)
                    .map_err(|known| unknown("distribution", &known))?;
                check_table(&name, run, |message| table.error(key, message, "here"))?;
                Ok(Self::Distribution(name))
            }
        }
    }
}

impl Curve {
    fn read(table: &mut Reader<'_>, figure: &Figure) -> Checked<Self> {
        let label = table.need("label")?;
        let run = figure.run_of(table, "run")?;
        let own = &figure.runs[run];
        let kinds = ["cdf", "scatter", "by_size", "over_time"];
        let one_of = kinds.into_iter().filter(|key| table.has(key));
        let (of, open) = match one_of.collect::<Vec<_>>().as_slice() {
            [] => {
                let axis = axis_of(table, "x", own)?;
                let y = figure.formula(table, "y", run)?;
                (CurveOf::Along { axis, y }, Some(axis))
            }
            [key] => (CurveOf::read(table, key, own)?, None),
            [_, key, ..] => {
                let shows = "a distribution, a scatter plot, slowdown by size or a queue over time";
                let message = format!("a curve shows {shows}");
                return Err(table
                    .error(key, message, "here")
                    .hint("only one of these; remove one"));
            }
        };
        let at = at(table, own, open)?;
        let published = table.node("published").map_or(Ok(Vec::new()), points)?;
        let source = match published.is_empty() {
            true => table.or("source", String::new())?,
            false => table.need("source")?,
        };
        Ok(Self { label, run, at, of, published, source })
    }

    /// The points of the sweep that it runs through.
    pub(crate) fn points(&self, run: &Run, quick: bool) -> Vec<Point> {
        let on =
            |point: &Point| point.iter().zip(&self.at).all(|(i, at)| at.is_none_or(|at| at == *i));
        run.points(quick).into_iter().filter(on).collect()
    }
}

/// The axis of `run` that `key` names.
pub(crate) fn axis_of(table: &mut Reader<'_>, key: &'static str, run: &Run) -> Checked<usize> {
    let name: String = table.need(key)?;
    let names: Vec<&str> = run.axes.iter().map(|axis| axis.name.as_str()).collect();
    let Some(axis) = run.axis(&name) else {
        let error = table.error(key, format!("run `{}` has no axis `{name}`", run.id), "here");
        return Err(error.hint(did_you_mean(&name, &names)));
    };
    if let Some(value) = run.axes[axis].values.iter().find(|value| value.number.is_none()) {
        let message = format!("`{}` of the axis `{name}` is not a number", value.text);
        return Err(table.error(key, message, "here").hint("values along x need a place on it"));
    }
    Ok(axis)
}

/// The point `at` of the sweep of `run`, open along one axis at most.
pub(crate) fn at(
    table: &mut Reader<'_>,
    run: &Run,
    open: Option<usize>,
) -> Checked<Vec<Option<usize>>> {
    let mut point = vec![None; run.axes.len()];
    if let Some(node) = table.node("at") {
        for (name, (place, value)) in run::entries(node)? {
            let names: Vec<&str> = run.axes.iter().map(|axis| axis.name.as_str()).collect();
            let Some(i) = run.axis(name) else {
                let error = place.error(format!("run `{}` has no axis `{name}`", run.id), "here");
                return Err(error.hint(did_you_mean(name, &names)));
            };
            point[i] = Some(index(&run.axes[i], value)?);
        }
    }
    for (i, axis) in run.axes.iter().enumerate() {
        if open == Some(i) && point[i].is_some() {
            let message = format!("`{}` runs along the axis, it has no one value", axis.name);
            return Err(table.error("at", message, "here"));
        }
        if open != Some(i) && point[i].is_none() {
            let message = format!("the value of `{}` is missing in `at`", axis.name);
            let example = axis.values.first().map_or("", |value| value.text.as_str());
            let hint = format!("add `at = {{ {} = {example} }}`", axis.name);
            return Err(table.error("at", message, "which point of the sweep?").hint(hint));
        }
    }
    Ok(point)
}

/// The index of the value `node` on `axis`.
fn index(axis: &run::Axis, node: &Node) -> Checked<usize> {
    let wanted = run::axis_value(node)?;
    axis.values.iter().position(|value| value.text == wanted.text).ok_or_else(|| {
        let values: Vec<&str> = axis.values.iter().map(|value| value.text.as_str()).collect();
        let message = format!("{} is not a value of the axis `{}`", wanted.text, axis.name);
        let error = node.at.error(message, "not run");
        error.hint(format!("its values: {}", values.join(", ")))
    })
}

/// A list of pairs of numbers.
pub(crate) fn points(node: &Node) -> Checked<Vec<(f64, f64)>> {
    run::list(node)?.iter().map(pair).collect()
}

/// A pair of numbers.
pub(crate) fn pair(node: &Node) -> Checked<(f64, f64)> {
    match &node.value {
        Value::Array(pair) => match pair.as_slice() {
            [x, y] => Ok((number(x)?, number(y)?)),
            _ => Err(not_a_pair(&node.at)),
        },
        _ => Err(not_a_pair(&node.at)),
    }
}

/// A number, or a text that counts as one along an axis.
pub(crate) fn number(node: &Node) -> Checked<f64> {
    run::axis_value(node)?.number.ok_or_else(|| node.at.error("a number is wanted", "here"))
}

fn not_a_pair(at: &At) -> Diagnostic {
    at.error("a pair of numbers is wanted", "here").hint("write it like `[[1, 0.5], [9, 1.02]]`")
}
