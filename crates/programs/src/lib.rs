//! The programs of `p4/`, compiled to Rust when this crate is built.

use std::sync::Arc;

use p4::ir;
use p4::program::{Externs, Program};

/// A program that this crate has been built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// Its main file in `p4/`.
    pub file: &'static str,
    /// The constants that are not as the file has them.
    pub constants: &'static [(&'static str, i128)],
}

/// What this crate has been built with: see `build.rs`.
pub const PROGRAMS: &[Variant] = &generated::PROGRAMS;

/// What `build.rs` has written: a module for each program.
#[allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::semicolon_if_nothing_returned,
    dead_code,
    missing_docs,
    unreachable_code,
    unreachable_pub,
    unused,
    reason = "generated"
)]
mod generated {
    use std::sync::Arc;

    use p4::bits;
    use p4::ir::{
        self, CounterId, ErrorId, ExternId, NO_ERROR, NO_MATCH, PACKET_TOO_SHORT, PipelineId,
        RegisterId, TableId,
    };
    use p4::program::{Externs, Parsed, Program};
    use p4::rust::{Context, Exit};
    use p4::state::State;

    use super::Variant;

    include!(concat!(env!("OUT_DIR"), "/programs.rs"));
}

/// The compiled form of a program, if it is one of [`PROGRAMS`] in every statement and constant.
#[must_use]
pub fn find<E: Externs + ?Sized>(program: Arc<ir::Program>) -> Option<Box<dyn Program<E>>> {
    generated::find(program)
}

/// Whether there is a compiled form of `program`.
#[must_use]
pub fn is_generated(program: &ir::Program) -> bool {
    generated::FINGERPRINTS.contains(&program.fingerprint())
}
