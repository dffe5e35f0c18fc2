//! Scenario files, the registry, runs and their results. See `Scenario`.

mod diagnostic;
mod document;
mod reader;

pub use diagnostic::{Diagnostic, Source};
pub use document::Document;
