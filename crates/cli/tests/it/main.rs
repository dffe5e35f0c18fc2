//! Every integration test of the crate, in one binary: one link instead of many.

mod bad_input;
mod bench;
mod check;
mod commands;
mod comparison;
mod gallery;
mod jobs;
mod licences;
mod nic_size;
mod outputs;
mod p4;
mod repro;
mod reproduce;
mod rtl;
mod scoreboard;
mod sweep;
mod testbed;
mod wireshark;
