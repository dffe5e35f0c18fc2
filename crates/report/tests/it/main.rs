//! Every integration test of the crate, in one binary: one link instead of many.

mod browser;
mod fixture;
mod page;
mod report;
