//! The NIC that is programmed in P4 (nanoTransport, SOSR 2021): a compiler front end for a subset of
//! P4-16, its intermediate representation, two ways to run that, and the blocks of the NIC around
//! the two pipelines.
//!
//! P4 text goes through [`p4`] into an [`ir::Program`]. The reference that runs it is [`interp`];
//! [`rust`] writes Rust source that does the same, faster. [`nano`] is the NIC.
//!
//! Deliberately absent: event queues, links, files.

pub mod bits;
pub mod interp;
pub mod ir;
pub mod nano;
pub mod p4;
pub mod program;
pub mod rust;
pub mod state;
pub mod switch;
