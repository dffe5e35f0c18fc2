//! Every integration test of the crate, in one binary: one link instead of many.

mod bad_input;
mod bench;
mod check;
mod commands;
mod nic_size;
mod p4;
mod reproduce;
mod sweep;
