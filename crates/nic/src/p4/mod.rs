//! The front end: P4-16 text to [`crate::ir`], with diagnostics that name file, line and column.
