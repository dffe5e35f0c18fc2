//! Every integration test of the crate, in one binary: one link instead of many.

mod errors;
mod repository;
mod reproduce;
mod tune;
