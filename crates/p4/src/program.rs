//! What runs a program, and what a program calls: the interpreter and generated code stand behind
//! one trait, so that a NIC does not know which it has.

use crate::ir::{ErrorId, ExternId, PipelineId};
use crate::state::State;

/// A program with its state.
///
/// Generic over the externs, so that generated code is compiled together with those of its caller;
/// `dyn Externs` will do where speed does not matter.
pub trait Program<E: Externs + ?Sized>: Send + Sync {
    /// Sends a packet through a pipeline: parser, control, deparser.
    ///
    /// `meta` has one value for each of [`Pipeline::meta`](crate::ir::Pipeline::meta), in that
    /// order: those with direction `in` and `inout` are read (bits beyond their widths do not
    /// count), those with `out` and `inout` are written once the control has ended. What the
    /// deparser emits replaces what is in `out`; the rest of the packet is not in it. A pipeline
    /// without a parser reads of `packet` only its length, for counters.
    ///
    /// # Errors
    /// The parser's, where it rejects the packet: [`NO_ERROR`](crate::ir::NO_ERROR) of a transition
    /// to `reject`. Then the control has not run, and `meta` and `out` are as they were.
    ///
    /// # Panics
    /// `meta` has another length than [`Pipeline::meta`](crate::ir::Pipeline::meta).
    fn run(
        &mut self,
        pipeline: PipelineId,
        packet: &[u8],
        meta: &mut [u128],
        out: &mut Vec<u8>,
        externs: &mut E,
    ) -> Result<Parsed, ErrorId>;

    /// The same program in the same state.
    fn duplicate(&self) -> Box<dyn Program<E>>;

    /// Tables, registers and counters.
    fn state(&mut self) -> &mut State;
}

/// What a parser says of a packet that it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Bytes that it has taken from the front, a broken one whole. The rest is payload.
    pub bytes: usize,
}

/// What the architecture supplies to its programs.
pub trait Externs {
    /// Answers a call. `args` and `results` are in the order of [`Extern`](crate::ir::Extern)'s,
    /// within their widths; `results` are 0 when the call comes, and bits beyond their widths do
    /// not count.
    fn call(&mut self, which: ExternId, args: &[u128], results: &mut [u128]);
}

/// For programs without externs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoExterns;

impl Externs for NoExterns {
    fn call(&mut self, _: ExternId, _: &[u128], _: &mut [u128]) {}
}
