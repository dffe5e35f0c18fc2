//! Errors of scenarios and runs as exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use scenario::{Diagnostic, Error};

create_exception!(
    trimline,
    ScenarioError,
    PyValueError,
    "What is wrong with a scenario, and where."
);
create_exception!(trimline, RunError, PyRuntimeError, "A run that failed.");

/// With the message of the command line, and its place as attributes.
pub(crate) fn of_diagnostic(py: Python<'_>, diagnostic: &Diagnostic) -> PyErr {
    // The frame around the place begins a line.
    let error = ScenarioError::new_err(format!("\n{}", diagnostic.render(false)));
    let place = diagnostic.location();
    let value = error.value(py);
    let set = value
        .setattr("file", place.map(|(file, ..)| file))
        .and_then(|()| value.setattr("line", place.map(|(_, line, _)| line)))
        .and_then(|()| value.setattr("column", place.map(|(.., column)| column)));
    set.err().unwrap_or(error)
}

/// The exception for `error`.
pub(crate) fn of_error(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::Input(diagnostic) => of_diagnostic(py, diagnostic),
        Error::Run { .. } | Error::Stopped => {
            RunError::new_err(format!("\n{}", error.render(false)))
        }
    }
}
