//! P4: a compiler front end for a subset of P4-16, its intermediate representation, and two ways to
//! run that.
//!
//! P4 text goes through [`front`] into an [`ir::Program`]. The reference that runs it is
//! [`interp`]; [`rust`] writes Rust source that does the same, faster. A [`program::Program`] is
//! what runs, by whichever; what it calls is [`program::Externs`].
//!
//! Deliberately absent: what programs run on (crate `nic`), packets' meaning, files.

pub mod bits;
pub mod front;
pub mod interp;
pub mod ir;
pub mod program;
pub mod rust;
pub mod state;
