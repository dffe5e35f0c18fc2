//! One run. It holds the interpreter's lock only where Python is called.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use metrics::OutputDir;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use scenario::{Error, OnProgress, Options, Progress, Scenario, Trace, Written, unwritable};

use crate::document::Document;
use crate::endpoint::Transport;
use crate::error::of_error;

/// How often Python hears from a run, and Ctrl-C from Python.
const BETWEEN_CALLS: Duration = Duration::from_millis(100);

/// Stops runs.
#[pyclass(module = "trimline._trimline", frozen)]
#[derive(Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stop the runs that have it.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a run tells Python, and what stops it.
pub(crate) struct Listener {
    stop: Arc<AtomicBool>,
    /// Set on Ctrl-C: what there is so far is kept.
    interrupt: Arc<AtomicBool>,
    /// Called with the share that is done.
    progress: Option<Py<PyAny>>,
    called: Instant,
    /// What Python has raised: Ctrl-C, or an exception of `progress`.
    raised: Option<PyErr>,
}

impl Listener {
    /// For a run with these flags.
    pub(crate) fn new(options: &Options, progress: Option<Py<PyAny>>) -> Self {
        let stop = options.stop.clone().unwrap_or_default();
        let interrupt = options.interrupt.clone().unwrap_or_default();
        Self { stop, interrupt, progress, called: Instant::now(), raised: None }
    }

    /// How the run has ended, for Python: with what Python itself has raised, if it has.
    pub(crate) fn ended<T>(
        self,
        py: Python<'_>,
        transport: Option<&Transport>,
        ended: Result<T, Error>,
    ) -> PyResult<T> {
        match self.raised.or_else(|| transport.and_then(Transport::take_raised)) {
            Some(raised) => Err(raised),
            None => ended.map_err(|error| of_error(py, &error)),
        }
    }

    pub(crate) fn hear(&mut self, share: f64) {
        if self.called.elapsed() < BETWEEN_CALLS || self.raised.is_some() {
            return;
        }
        self.called = Instant::now();
        let heard = Python::attach(|py| {
            py.check_signals().map_err(|raised| (raised, &self.interrupt))?;
            let told = self.progress.as_ref().map(|progress| progress.call1(py, (share,)));
            told.transpose().map_err(|raised| (raised, &self.stop))
        });
        if let Err((raised, ended_by)) = heard {
            ended_by.store(true, Ordering::Relaxed);
            self.raised = Some(raised);
        }
    }
}

/// What to trace.
fn trace(texts: &[String]) -> PyResult<Trace> {
    let wrong = |text: &str, why| PyValueError::new_err(format!("no trace {text:?}: {why}"));
    texts.iter().map(|text| text.parse::<Trace>().map_err(|why| wrong(text, why))).collect()
}

/// The scenario's run, without a page that nobody will see.
fn run_into(
    out: &Path,
    scenario: &Scenario,
    options: &Options,
    hear: OnProgress<'_>,
) -> Result<Option<Error>, Error> {
    let out = OutputDir::create(out).map_err(|e| unwritable(&e))?;
    let Written { violated, .. } = scenario::run(scenario, options, &out, hear)?;
    out.commit().map_err(|e| unwritable(&e))?;
    Ok(violated)
}

/// Run `document` and leave result files in `out`; where `is_kept`, all those of `trimline run`.
/// `again` says how to repeat it, where the manifest in `out` does not.
#[pyfunction]
#[pyo3(signature = (document, out, *, is_kept, again, threads, traces, stop, transport, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
#[expect(clippy::needless_pass_by_value, reason = "made from objects of Python")]
pub(crate) fn run(
    py: Python<'_>,
    document: &Document,
    out: PathBuf,
    is_kept: bool,
    again: Option<String>,
    threads: Option<u32>,
    traces: Vec<String>,
    stop: &Stop,
    transport: Option<&Transport>,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let manifest = || ["run".to_owned(), out.join("manifest.json").display().to_string()];
    let options = Options {
        trace: trace(&traces)?,
        // Python runs one thread at a time.
        threads: if transport.is_some() { Some(1) } else { threads },
        stop: Some(Arc::clone(&stop.0)),
        interrupt: Some(Arc::default()),
        command: again.unwrap_or_else(|| scenario::command_line(manifest().into_iter())),
        ..Options::default()
    };
    let mut listener = Listener::new(&options, progress);
    let ended = py.detach(|| {
        let scenario = document.read(transport)?;
        let mut hear = |p: &Progress| listener.hear(scenario.done(p));
        let violated = if is_kept {
            cli::run_into(&out, &scenario, &options, &mut hear)?.violated
        } else {
            run_into(&out, &scenario, &options, &mut hear)?
        };
        violated.map_or(Ok(()), Err)
    });
    listener.ended(py, transport, ended)
}
