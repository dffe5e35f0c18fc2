//! Every integration test of the crate, in one binary: one link instead of many.

mod arbitrary;
mod broken;
mod evaluation;
mod expressions;
mod meaning;
mod small;
