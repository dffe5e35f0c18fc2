//! The life of one message.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use scenario::{Options, Progress, Which};

use crate::document::Document;
use crate::endpoint::Transport;
use crate::run::Listener;

/// The life of `message` (`SRC:MSG` or `max`) in a run of `document`, as JSON.
#[pyfunction]
#[pyo3(signature = (document, message, transport))]
pub(crate) fn explain(
    py: Python<'_>,
    document: &Document,
    message: &str,
    transport: Option<&Transport>,
) -> PyResult<String> {
    let which: Which = message.parse().map_err(PyValueError::new_err)?;
    let options = Options {
        // Python runs one thread at a time.
        threads: transport.map(|_| 1),
        interrupt: Some(Arc::default()),
        ..Options::default()
    };
    let mut listener = Listener::new(&options, None);
    let explained = py.detach(|| {
        let scenario = document.read(transport)?;
        let mut hear = |p: &Progress| listener.hear(scenario.done(p));
        scenario::explain(&scenario, &options, which, &mut hear)
    });
    listener.ended(py, transport, explained).map(|explained| cli::life_json(&explained))
}
