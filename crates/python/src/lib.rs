//! The native part of the Python package `trimline`; the other part is in `python/trimline`, which
//! has all that a user sees.
//!
//! `document`: scenarios as Python builds them. `run`: one run, without the interpreter's lock.
//! `explain`: the life of a message. `endpoint`: a transport written in Python, as a transport.
//! `main`: the command line.
//!
//! Deliberately absent: result files (Python reads them), defaults, lists of keys.

mod document;
mod endpoint;
mod error;
mod explain;
mod run;

use pyo3::prelude::*;

/// What `trimline` does with these arguments; its exit code.
#[pyfunction]
fn main(py: Python<'_>, program: Vec<std::ffi::OsString>, args: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| cli::main(program, args.into_iter()))
}

/// Version, commit and engine.
#[pyfunction]
fn version() -> String {
    scenario::version()
}

#[pymodule]
fn _trimline(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(explain::explain, module)?)?;
    module.add_class::<document::Document>()?;
    module.add_class::<run::Stop>()?;
    module.add_class::<endpoint::Transport>()?;
    module.add_class::<endpoint::context::Context>()?;
    module.add_class::<endpoint::packet::Packet>()?;
    module.add_class::<endpoint::packet::Message>()?;
    module.add("ScenarioError", module.py().get_type::<error::ScenarioError>())?;
    module.add("RunError", module.py().get_type::<error::RunError>())
}
