//! [`Document`]: a scenario as it is written, in a file or in Python.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use scenario::{At, Diagnostic, Node, Scenario, Source, Table, Value};
use study::Sweep;

use crate::endpoint::Transport;
use crate::error::of_diagnostic;

/// Where a value stands in a Python source.
#[derive(FromPyObject)]
struct Place {
    /// The name of the file.
    name: String,
    /// Its text.
    text: String,
    /// Bytes of the whole call.
    span: (usize, usize),
    /// Bytes of a key and of its value, by the path of the key.
    spans: BTreeMap<String, (usize, usize, usize, usize)>,
}

/// The places of what Python builds.
struct Places {
    source: Arc<Source>,
    whole: Range<usize>,
    spans: BTreeMap<String, (Range<usize>, Range<usize>)>,
}

impl From<Place> for Places {
    fn from(Place { name, text, span, spans }: Place) -> Self {
        let range = |from: usize, to: usize| {
            text.floor_char_boundary(from)..text.floor_char_boundary(to.max(from))
        };
        let whole = range(span.0, span.1);
        let spans =
            spans.into_iter().map(|(path, (a, b, c, d))| (path, (range(a, b), range(c, d))));
        let spans = spans.collect();
        Self { source: Arc::new(Source { name, text }), whole, spans }
    }
}

impl Places {
    fn at(&self, span: &Range<usize>) -> At {
        At { source: Arc::clone(&self.source), span: span.clone() }
    }

    fn of_key(&self, path: &str) -> At {
        self.at(self.spans.get(path).map_or(&self.whole, |(key, _)| key))
    }

    fn of_value(&self, path: &str) -> At {
        self.at(self.spans.get(path).map_or(&self.whole, |(_, value)| value))
    }
}

/// Tables are read and dropped by recursion. No scenario has more than five levels.
const LEVELS_MAX: usize = 64;

/// `value`, which stands at `path`.
fn node(value: &Bound<'_, PyAny>, path: &str, places: &Places) -> Result<Node, Diagnostic> {
    let at = places.of_value(path);
    if path.split('.').count() > LEVELS_MAX {
        return Err(at.error("tables within tables without end", "here"));
    }
    let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let value = if let Ok(table) = value.cast::<PyDict>() {
        let mut entries = Table::new();
        for (key, value) in table {
            let Ok(key) = key.extract::<String>() else {
                let message = format!("the key {key} is {}, no text", type_of(&key));
                return Err(at.error(message, "in this table").hint("keys are texts"));
            };
            let path = inner(&key);
            let entry = (places.of_key(&path), node(&value, &path, places)?);
            entries.insert(key, entry);
        }
        Value::Table(entries)
    } else if let Ok(b) = value.cast::<PyBool>() {
        Value::Boolean(b.is_true())
    } else if let Ok(text) = value.cast::<PyString>() {
        Value::Text(text.to_string_lossy().into_owned())
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let mut items = Vec::new();
        for (n, item) in value.try_iter().into_iter().flatten().flatten().enumerate() {
            items.push(node(&item, &inner(&n.to_string()), places)?);
        }
        Value::Array(items)
    } else if let Ok(x) = value.cast::<PyFloat>() {
        Value::Float(x.value())
    } else if let Ok(n) = value.extract::<i64>() {
        Value::Integer(n)
    } else if value.is_instance_of::<PyInt>() {
        let error = at.error(format!("{value} is out of range"), "too large");
        return Err(error.hint("whole numbers are from -2^63 to 2^63 - 1"));
    } else if let Ok(x) = value.extract::<f64>() {
        Value::Float(x)
    } else if let Ok(path) = value.extract::<PathBuf>() {
        Value::Text(path.to_string_lossy().into_owned())
    } else {
        let message = format!("{value} is {}", type_of(value));
        let hint = "scenarios have texts, numbers, True and False, lists and dicts";
        return Err(at.error(message, "no value of a scenario").hint(hint));
    };
    Ok(Node { value, at })
}

fn type_of(value: &Bound<'_, PyAny>) -> String {
    value
        .get_type()
        .name()
        .map_or_else(|_| "something".to_owned(), |name| format!("of type {name}"))
}

/// A scenario as it is written. Nothing of it is checked but that it is TOML.
#[pyclass(module = "trimline._trimline")]
#[derive(Clone)]
pub(crate) struct Document {
    document: scenario::Document,
    /// Paths are relative to this directory.
    dir: PathBuf,
}

impl Document {
    /// Read it. `transport` is what `kind = "custom"` means.
    pub(crate) fn read(&self, transport: Option<&Transport>) -> Result<Scenario, Diagnostic> {
        let custom = transport.map(Transport::custom);
        Scenario::of_document(&self.document, (&self.dir, &|_, _| ()), custom)
    }
}

#[pymethods]
impl Document {
    /// The scenario file `path`, or the manifest of a run.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "made from an object of Python")]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let loaded = py.detach(|| scenario::Document::load(&path));
        let document = loaded.map_err(|d| of_diagnostic(py, &d))?;
        let dir = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { document, dir })
    }

    /// What `tree` is, which stands at `place`.
    #[staticmethod]
    fn build(py: Python<'_>, tree: &Bound<'_, PyDict>, place: Place) -> PyResult<Self> {
        let root = node(tree.as_any(), "", &place.into()).map_err(|d| of_diagnostic(py, &d))?;
        Ok(Self { document: scenario::Document { root }, dir: PathBuf::new() })
    }

    /// Put `value`, which stands at `place`, at the dotted `path`.
    fn put(&mut self, path: &str, value: &Bound<'_, PyAny>, place: Place) -> PyResult<()> {
        let places = Places::from(place);
        let key = places.of_key(path);
        let put = node(value, path, &places)
            .and_then(|node| self.document.put(path, node, |_| key.clone()));
        put.map_err(|d| of_diagnostic(value.py(), &d))
    }

    /// A copy that knows nothing of this one.
    fn copy(&self) -> Self {
        self.clone()
    }

    /// As TOML.
    fn to_toml(&self) -> PyResult<String> {
        let text = toml::to_string(&self.document.root.value.to_toml());
        text.map_err(|e| pyo3::exceptions::PyValueError::new_err(e.to_string()))
    }

    /// Read it: all defaults spelled out, in JSON; what `trimline check` prints, as rows; warnings.
    fn check(&self, py: Python<'_>, transport: Option<&Transport>) -> PyResult<Checked> {
        let read = py.detach(|| {
            let scenario = self.read(transport)?;
            let resolved = serde_json::to_string(scenario.resolved()).unwrap_or_default();
            let warnings = scenario.warnings().iter().map(|w| w.render(false)).collect();
            Ok((resolved, scenario.forecast(), warnings))
        });
        read.map_err(|d: Diagnostic| of_diagnostic(py, &d))
    }

    /// Read the table `[sweep]` of it, which is written to `file`, and what it makes of its first
    /// point: most of what is wrong in edits is so at every point.
    #[expect(clippy::needless_pass_by_value, reason = "made from an object of Python")]
    fn check_sweep(&self, py: Python<'_>, file: PathBuf) -> PyResult<()> {
        let read =
            py.detach(|| Sweep::of_document(&self.document, &file, &[], None)?.check_first());
        read.map_err(|d| of_diagnostic(py, &d))
    }
}

/// Resolved scenario, forecast, warnings.
type Checked = (String, Vec<(String, String)>, Vec<String>);
