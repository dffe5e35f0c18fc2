//! [`Run`]: a scenario of a figure, with its edits, the axes of its sweep and its seeds.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};

use scenario::{At, Diagnostic, Node, Reader, Scenario, Source, Value, Variant, did_you_mean};
use units::{Bytes, Dur, Rate};

use crate::metric;
use crate::probe::{PROBES, Probe};
use crate::seeds::Seeds;
use crate::{Checked, edits};

/// A scenario of a figure, once or along a sweep.
pub(crate) struct Run {
    pub(crate) id: String,
    /// The scenario file.
    pub(crate) scenario: PathBuf,
    /// Where the scenario is named.
    pub(crate) scenario_at: At,
    pub(crate) seeds: Vec<u64>,
    pub(crate) sets: Vec<Edit>,
    pub(crate) axes: Vec<Axis>,
    /// The points that are run, if it is not every combination of values: those of a tuner.
    drawn: Option<Vec<Point>>,
    /// The values of the axis [`VARIANT`], which is the first one, if there is one; else the only
    /// one that is run, if there is one.
    variants: Vec<Variant>,
    pub(crate) probe: Option<&'static Probe>,
    pub(crate) quick: Option<Part>,
    /// The tool that it takes.
    needs: Option<&'static Tool>,
    /// Why it is not run: its tool is not here.
    missing: Option<String>,
    /// See [`Run::tables`].
    tables: OnceLock<Option<Vec<String>>>,
}

/// A tool that some runs take, which is not part of Trimline.
struct Tool {
    name: &'static str,
    /// Why it does not run, if it does not: looked for once.
    missing: LazyLock<Option<String>>,
}

/// All of them.
static TOOLS: [Tool; 1] =
    [Tool { name: "verilator", missing: LazyLock::new(scenario::no_circuits) }];

/// An axis of a sweep.
#[derive(Debug)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) values: Vec<AxisValue>,
}

/// A value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisValue {
    /// As it stands in edits.
    pub(crate) text: String,
    /// As it counts in formulas and plots: bytes, microseconds, Gb/s, or the number itself.
    pub(crate) number: Option<f64>,
}

/// The axis of the scenario's variants, whose values bring edits of their own.
pub(crate) const VARIANT: &str = "variant";

/// A `--set` edit, and where it stands.
pub(crate) type Edit = (String, At);

/// A point of a sweep: per axis, the index of the value.
pub(crate) type Point = Vec<usize>;

/// What `--quick` runs of a run.
pub(crate) struct Part {
    /// Per axis, the indices of the values.
    values: Vec<Vec<usize>>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) sets: Vec<Edit>,
}

impl Run {
    /// Read a table `[[run]]` of the figure in `dir`.
    pub(crate) fn read(table: &mut Reader<'_>, dir: &Path) -> Checked<Self> {
        let id: String = table.need("id")?;
        name(&id, "the id of a run", &table.place("id"))?;
        let scenario = dir.join(table.need::<PathBuf>("scenario")?);
        let scenario_at = table.place("scenario");
        let (axes, sets) = sweep(table, "sweep")?;
        let probe = match table.has("probe") {
            true => Some(table.choose("probe", PROBES, |probe| probe.name)?),
            false => None,
        };
        let needs = match table.has("needs") {
            true => Some(table.choose("needs", &TOOLS, |tool| tool.name)?),
            false => None,
        };
        let quick = table.node("quick");
        let seeds = needed_seeds(table)?;
        check_runs(&axes, &seeds, &table.place("sweep"))?;
        let quick = quick.map_or(Ok(None), |node| part(node, &axes, &seeds))?;
        let tables = OnceLock::new();
        Ok(Self {
            id,
            scenario,
            scenario_at,
            seeds,
            sets,
            axes,
            drawn: None,
            variants: Vec::new(),
            probe,
            quick,
            needs,
            missing: None,
            tables,
        })
    }

    /// Read the table `[sweep]` of the scenario `file`, of which each run has the `edits`, too.
    /// `seeds` replace its own.
    pub(crate) fn of_sweep(
        table: &mut Reader<'_>,
        file: &Path,
        edits: &[String],
        seeds: Option<&Seeds>,
    ) -> Checked<Self> {
        let (mut axes, mut sets) = sweep(table, "axes")?;
        if axes.is_empty() {
            return Err(table.missing("axes", "add `axes = { n = [10, 100] }`"));
        }
        let (_, variants) = Scenario::name_and_variants(file)?;
        if axes.iter().any(|axis| axis.name == VARIANT) {
            let error = table.error("axes", "an axis cannot be called `variant`", "here");
            return Err(error.hint("the tables [[variant]] are an axis of this name by themselves"));
        }
        if !variants.is_empty() {
            axes.insert(0, axis_of(&variants));
        }
        let edits: Vec<Edit> = edits.iter().map(|edit| option(edit)).collect();
        edits::check(&edits::SWEEP, &sets, &edits)?;
        sets.extend(edits);
        let own = needed_seeds(table)?;
        let seeds = seeds.map_or(own, |seeds| seeds.list().to_vec());
        check_runs(&axes, &seeds, &table.place("axes"))?;
        let (id, at) = ("sweep".to_owned(), table.place("axes"));
        Ok(Self { axes, variants, ..Self::plain(id, file, at, seeds, sets) })
    }

    /// Warnings of edits of variants that edits of the run cancel: these come after.
    pub(crate) fn cancelled_edits(&self) -> Vec<Diagnostic> {
        let cancelled = |variant: &Variant| {
            let (edit, set) = variant.edits().iter().find_map(|(edit, _)| {
                let cancels = |(set, _): &&Edit| edits::within(key_of(edit), key_of(set));
                Some((edit, &self.sets.iter().find(cancels)?.0))
            })?;
            let message = format!("`{edit}` of `{}` is cancelled by `{set}`", variant.name());
            let hint = "edits of a sweep and of the command line come after those of a variant";
            Some(variant.warning(message, "this one").hint(hint))
        };
        self.variants.iter().filter_map(cancelled).collect()
    }

    /// The same of `variant`, if there is one.
    pub(crate) fn with_variant(mut self, variant: Option<Variant>) -> Self {
        self.variants.extend(variant);
        self
    }

    /// The scenario `file` with the edits `sets`, without a sweep. `at` is where it is named.
    pub(crate) fn plain(id: String, file: &Path, at: At, seeds: Vec<u64>, sets: Vec<Edit>) -> Self {
        Self {
            id,
            scenario: file.to_owned(),
            scenario_at: at,
            seeds,
            sets,
            axes: Vec::new(),
            drawn: None,
            variants: Vec::new(),
            probe: None,
            quick: None,
            needs: None,
            missing: None,
            tables: OnceLock::new(),
        }
    }

    /// The same at `points` of `axes`, which stand in `sets`.
    pub(crate) fn at_points(mut self, axes: Vec<Axis>, points: Vec<Point>) -> Self {
        self.axes = axes;
        self.drawn = Some(points);
        self
    }

    /// The points of its sweep, in the order of the values, the last axis fastest.
    pub(crate) fn points(&self, quick: bool) -> Vec<Point> {
        if let Some(drawn) = &self.drawn {
            return drawn.clone();
        }
        let indices = |(i, axis): (usize, &Axis)| match (&self.quick, quick) {
            (None, true) => Vec::new(),
            (Some(part), true) => part.values.get(i).cloned().unwrap_or_default(),
            (_, false) => (0..axis.values.len()).collect(),
        };
        if quick && self.quick.is_none() || self.missing.is_some() {
            return Vec::new();
        }
        let mut points = vec![Point::new()];
        for values in self.axes.iter().enumerate().map(indices) {
            let longer = |point: Point| {
                values.iter().map(move |v| point.iter().chain([v]).copied().collect::<Point>())
            };
            points = points.into_iter().flat_map(longer).collect();
        }
        points
    }

    /// Look for its tool.
    pub(crate) fn find_tool(&mut self) {
        self.missing = self.needs.and_then(|tool| tool.missing.clone());
    }

    /// Why it is not run, if its tool is not here.
    pub(crate) fn missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    /// The seeds of every point.
    pub(crate) fn seeds(&self, quick: bool) -> &[u64] {
        match (&self.quick, quick) {
            (Some(part), true) => &part.seeds,
            _ => &self.seeds,
        }
    }

    /// Whether the seeds are those of `other`, and in the quick form, if both are in it, too.
    pub(crate) fn has_seeds_of(&self, other: &Run) -> bool {
        let both_quick = self.quick.is_some() && other.quick.is_some();
        self.seeds == other.seeds && (!both_quick || self.seeds(true) == other.seeds(true))
    }

    /// The edits at `point`, and where each stands.
    pub(crate) fn edits(&self, point: &Point, quick: bool) -> Vec<Edit> {
        let shorter = self.quick.iter().filter(|_| quick).flat_map(|part| &part.sets);
        let fill = |(set, at): &Edit| {
            let values = self.axes.iter().zip(point).filter_map(|(axis, &i)| {
                Some((format!("{{{}}}", axis.name), &axis.values.get(i)?.text))
            });
            let filled = values.fold(set.clone(), |text, (name, value)| text.replace(&name, value));
            (filled, at.clone())
        };
        let of_variant = self.variant(point).into_iter().flat_map(Variant::edits).cloned();
        of_variant.chain(self.sets.iter().chain(shorter).map(fill)).collect()
    }

    /// The scenario at `point` with `seed`, with phases drawn from `phase_seed` if there is one.
    /// An error in an edit is shown where the edit stands in the figure.
    pub(crate) fn scenario(
        &self,
        point: &Point,
        quick: bool,
        (seed, phase_seed): (u64, Option<u64>),
    ) -> Checked<Scenario> {
        let edits = self.edits(point, quick);
        let mut texts: Vec<String> = edits.iter().map(|(edit, _)| edit.clone()).collect();
        texts.push(format!("seed={seed}"));
        texts.extend(phase_seed.map(|seed| format!("host.phase_seed={seed}")));
        Scenario::load(&self.scenario, &texts).map_err(|error| {
            let at = match error.edit() {
                Some(text) => edits.iter().find(|(edit, _)| edit == text).map(|(_, at)| at),
                None if error.location().is_none() => Some(&self.scenario_at),
                None => None,
            };
            match (at, self.variant(point)) {
                (Some(at), _) => error.moved_to(at, "here"),
                (None, Some(variant)) => error.remark(&format!("in `{}`", variant.name())),
                (None, None) => error,
            }
        })
    }

    /// The variant of the scenario that is run at `point`.
    fn variant(&self, point: &Point) -> Option<&Variant> {
        let of_axis = self.axes.first().is_some_and(|axis| axis.name == VARIANT);
        self.variants.get(if of_axis { *point.first()? } else { 0 })
    }

    /// The names of the scenario's traffic tables, as formulas write them. `None` if it cannot be
    /// read.
    pub(crate) fn tables(&self) -> Option<&[String]> {
        let read = || {
            let (point, &seed) = (self.points(false).into_iter().next()?, self.seeds.first()?);
            Some(metric::table_names(&self.scenario(&point, false, (seed, None)).ok()?))
        };
        self.tables.get_or_init(read).as_deref()
    }

    /// The index of the axis `name`.
    pub(crate) fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.name == name)
    }

    /// `point` in words, for example `n=9, iw=23`; empty without a sweep.
    pub(crate) fn show(&self, point: &Point) -> String {
        let word = |(axis, value): &(&str, &str)| format!("{axis}={value}");
        self.values(point).iter().map(word).collect::<Vec<_>>().join(", ")
    }

    /// The values of the axes at `point`, each with the name of its axis.
    pub(crate) fn values(&self, point: &Point) -> Vec<(&str, &str)> {
        let at = self.axes.iter().zip(point);
        at.filter_map(|(axis, &i)| Some((&*axis.name, &*axis.values.get(i)?.text))).collect()
    }

    /// The run and the point of its sweep, for example `ndp n=9`.
    pub(crate) fn label(&self, point: &Point) -> String {
        format!("{} {}", self.id, self.show(point)).trim_end().to_owned()
    }

    /// The point of this run that `point` of the run `other` means: equal values on equal axes.
    pub(crate) fn same_point(&self, other: &Self, point: &Point) -> Option<Point> {
        let place = |axis: &Axis| {
            let i = other.axis(&axis.name)?;
            let value = other.axes.get(i)?.values.get(*point.get(i)?)?;
            axis.values.iter().position(|v| v.text == value.text)
        };
        self.axes.iter().map(place).collect()
    }
}

/// The axis of `variants`.
fn axis_of(variants: &[Variant]) -> Axis {
    let value = |variant: &Variant| AxisValue { text: variant.name().to_owned(), number: None };
    Axis { name: VARIANT.to_owned(), values: variants.iter().map(value).collect() }
}

/// An edit of the command line.
pub(crate) fn option(edit: &str) -> Edit {
    let source = Source { name: "--set".to_owned(), text: edit.to_owned() };
    (edit.to_owned(), At { source: Arc::new(source), span: 0..edit.len() })
}

/// What was given on the command line for an option, as errors show it.
pub(crate) fn given(option: &str, text: &str) -> At {
    let source = Source { name: option.to_owned(), text: text.to_owned() };
    At { source: Arc::new(source), span: 0..text.len() }
}

/// The key that an edit sets.
pub(crate) fn key_of(edit: &str) -> &str {
    edit.split('=').next().unwrap_or_default().trim()
}

/// Names that formulas use: of runs and axes.
pub(crate) fn name(name: &str, what: &str, at: &At) -> Checked<()> {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if first && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(());
    }
    let error = at.error(format!("{what} cannot be `{name}`"), "here");
    Err(error.hint("letters, digits and `_`, no digit at the start: formulas use it"))
}

/// The entries of the list `node`.
pub(crate) fn list(node: &Node) -> Checked<&[Node]> {
    match &node.value {
        Value::Array(items) if !items.is_empty() => Ok(items),
        Value::Array(_) => Err(node.at.error("an empty list", "nothing in it")),
        other => Err(node.at.error(format!("a list is wanted, not {}", other.kind()), "here")),
    }
}

/// The entries of the list `node`, each of which takes a run at least.
fn list_of_values(node: &Node) -> Checked<&[Node]> {
    let items = list(node)?;
    if items.len() as u64 <= RUNS_MAX {
        return Ok(items);
    }
    let error = node.at.error(format!("a list of {} values", items.len()), "too many");
    Err(error.hint(format!("{RUNS_MAX} at most, as each is a run")))
}

/// The entries of the table `node`.
pub(crate) fn entries(node: &Node) -> Checked<&scenario::Table> {
    match &node.value {
        Value::Table(table) => Ok(table),
        other => Err(node.at.error(format!("a table is wanted, not {}", other.kind()), "here")),
    }
}

/// A list of texts, each with its place.
pub(crate) fn texts(node: &Node) -> Checked<Vec<Edit>> {
    let text = |item: &Node| match &item.value {
        Value::Text(text) => Ok((text.clone(), item.at.clone())),
        other => Err(item.at.error(format!("a text is wanted, not {}", other.kind()), "here")),
    };
    list(node)?.iter().map(text).collect()
}

/// The axes under `key`, and the edits that use them.
fn sweep(table: &mut Reader<'_>, key: &'static str) -> Checked<(Vec<Axis>, Vec<Edit>)> {
    let axes = table.node(key).map_or(Ok(Vec::new()), axes)?;
    let sets = table.node("set").map_or(Ok(Vec::new()), texts)?;
    check_placeholders(&axes, &sets, &table.place(key))?;
    Ok((axes, sets))
}

/// The most runs of a sweep. Each takes about a kilobyte before it begins and a hundredth of a
/// second when it runs, so that more would hardly end.
pub(crate) const RUNS_MAX: u64 = 100_000;

/// Check that the sweep over `axes`, which stand at `at`, is one that can be run.
fn check_runs(axes: &[Axis], seeds: &[u64], at: &At) -> Checked<()> {
    let counts = || axes.iter().map(|axis| axis.values.len()).chain([seeds.len()]);
    let runs = counts().try_fold(1_u64, |runs, n| runs.checked_mul(n as u64));
    let count = match runs {
        Some(runs) if runs <= RUNS_MAX => return Ok(()),
        Some(runs) => runs.to_string(),
        None => format!("about {:.1e}", counts().map(|n| n as f64).product::<f64>()),
    };
    let message =
        format!("this sweep has {count} runs: every value with every other and each seed");
    let error = at.error(message, "too many");
    Err(error
        .hint(format!("{RUNS_MAX} runs at most: take fewer values or axes, or several sweeps")))
}

pub(crate) fn needed_seeds(table: &mut Reader<'_>) -> Checked<Vec<u64>> {
    match table.node("seeds") {
        Some(node) => seeds(node),
        None => Err(table.missing("seeds", "add `seeds = [1]`")),
    }
}

/// A list of seeds, or a text of ranges.
fn seeds(node: &Node) -> Checked<Vec<u64>> {
    if let Value::Text(text) = &node.value {
        let seeds = text.parse::<Seeds>();
        return seeds.map(|seeds| seeds.list().to_vec()).map_err(|why| {
            let error = node.at.error(format!("these are no seeds: {why}"), "here");
            error.hint("for example `seeds = \"1-10\"`, `\"1-5, 8\"` or `[1, 2, 3]`")
        });
    }
    let seed = |item: &Node| match item.value {
        Value::Integer(n) if n >= 0 => Ok(n.unsigned_abs()),
        _ => Err(item.at.error("a seed is a whole number from 0", "here")),
    };
    let items = list_of_values(node)?;
    let seeds = items.iter().map(seed).collect::<Result<Vec<_>, _>>()?;
    once_each(items, &seeds, "a seed")?;
    Ok(seeds)
}

/// No value is there twice: a point run twice would count twice, and make the interval of its mean
/// too narrow.
fn once_each<V: PartialEq>(items: &[Node], values: &[V], what: &str) -> Checked<()> {
    match second(values).and_then(|i| items.get(i)) {
        Some(item) => {
            let error = item.at.error(format!("{what} is there twice"), "again");
            Err(error.hint("it would count twice; remove it"))
        }
        None => Ok(()),
    }
}

/// Where the first value is that was there before.
pub(crate) fn second<V: PartialEq>(values: &[V]) -> Option<usize> {
    (1..values.len()).find(|&i| values[..i].contains(&values[i]))
}

fn axes(node: &Node) -> Checked<Vec<Axis>> {
    let axis = |(key, (at, node)): (&String, &(At, Node))| {
        name(key, "an axis", at)?;
        Ok(Axis { name: key.clone(), values: axis_values(node)? })
    };
    entries(node)?.iter().map(axis).collect()
}

/// The values of an axis, each once.
pub(crate) fn axis_values(node: &Node) -> Checked<Vec<AxisValue>> {
    let items = list_of_values(node)?;
    let values = items.iter().map(axis_value).collect::<Result<Vec<_>, _>>()?;
    once_each(items, &values, "a value of the axis")?;
    Ok(values)
}

/// A number, a quantity with a unit, or a name.
pub(crate) fn axis_value(node: &Node) -> Checked<AxisValue> {
    let (text, number) = match &node.value {
        Value::Integer(n) => (n.to_string(), Some(*n as f64)),
        Value::Float(x) => (x.to_string(), Some(*x)),
        Value::Text(text) => (text.clone(), quantity(text)),
        other => {
            let message = format!("a number or a text is wanted, not {}", other.kind());
            return Err(node.at.error(message, "here"));
        }
    };
    Ok(AxisValue { text, number })
}

/// Bytes, microseconds or Gb/s.
fn quantity(text: &str) -> Option<f64> {
    let bytes = text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64);
    let time = || text.parse::<Dur>().ok().map(Dur::as_us_f64);
    let rate = || text.parse::<Rate>().ok().map(Rate::as_gbps_f64);
    bytes.or_else(time).or_else(rate)
}

/// Every axis stands in some edit, and every `{name}` in an edit is an axis.
pub(crate) fn check_placeholders(axes: &[Axis], sets: &[Edit], axes_at: &At) -> Checked<()> {
    let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
    for (set, at) in sets {
        for part in set.split('{').skip(1) {
            let Some((inside, _)) = part.split_once('}') else { continue };
            let is_name = inside.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if is_name && !inside.is_empty() && !names.contains(&inside) {
                let error = at.error(format!("there is no axis `{inside}`"), "here");
                return Err(error.hint(did_you_mean(inside, &names)));
            }
        }
    }
    for axis in axes {
        let placeholder = format!("{{{}}}", axis.name);
        if !sets.iter().any(|(set, _)| set.contains(&placeholder)) {
            let message = format!("the axis `{}` changes nothing", axis.name);
            let hint = format!(
                "add an edit with {placeholder} to `set`, for example \"traffic.senders={placeholder}\""
            );
            return Err(axes_at.error(message, "not used in `set`").hint(hint));
        }
    }
    Ok(())
}

/// What `quick` says: `true`, `false`, or a part.
fn part(node: &Node, axes: &[Axis], seeds: &[u64]) -> Checked<Option<Part>> {
    let all = axes.iter().map(|axis| (0..axis.values.len()).collect()).collect();
    let mut part = Part { values: all, seeds: seeds.to_vec(), sets: Vec::new() };
    let table = match &node.value {
        Value::Boolean(true) => return Ok(Some(part)),
        Value::Boolean(false) => return Ok(None),
        _ => entries(node)?,
    };
    for (key, (at, value)) in table {
        match key.as_str() {
            "seeds" => part.seeds = some_seeds(value, seeds)?,
            "set" => part.sets = shorter(value)?,
            name => match axes.iter().position(|axis| axis.name == name) {
                Some(i) => part.values[i] = some_values(value, &axes[i])?,
                None => {
                    let error = at.error(format!("unknown key `{name}` in quick"), "unknown");
                    let axes = axes.iter().map(|axis| axis.name.as_str());
                    let known: Vec<&str> = ["seeds", "set"].into_iter().chain(axes).collect();
                    return Err(error.hint(did_you_mean(name, &known)));
                }
            },
        }
    }
    Ok(Some(part))
}

fn some_seeds(node: &Node, all: &[u64]) -> Checked<Vec<u64>> {
    let some = seeds(node)?;
    match some.iter().find(|seed| !all.contains(seed)) {
        Some(seed) => {
            let error = node.at.error(format!("seed {seed} is not one of the run"), "here");
            Err(error.hint("quick runs a part of the full form"))
        }
        None => Ok(some),
    }
}

fn some_values(node: &Node, axis: &Axis) -> Checked<Vec<usize>> {
    let index = |item: &Node| {
        let wanted = axis_value(item)?;
        axis.values.iter().position(|value| value.text == wanted.text).ok_or_else(|| {
            let message = format!("{} is not a value of the axis `{}`", wanted.text, axis.name);
            item.at.error(message, "here").hint("quick runs a part of the full form")
        })
    };
    list(node)?.iter().map(index).collect()
}

/// Edits that make a run shorter, and no other ones.
fn shorter(node: &Node) -> Checked<Vec<Edit>> {
    let sets = texts(node)?;
    match sets.iter().find(|(set, _)| !set.trim_start().starts_with("measure.")) {
        Some((_, at)) => {
            let error = at.error("quick may not change parameters", "not a key of [measure]");
            Err(error.hint("it may shorten the window, for example \"measure.to=10ms\""))
        }
        None => Ok(sets),
    }
}
