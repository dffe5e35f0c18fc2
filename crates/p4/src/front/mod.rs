//! The front end: P4-16 text to [`crate::ir`], with diagnostics that name file, line and column.
//!
//! docs/p4.md lists what of P4-16 is supported. What is accepted is legal P4-16 and means what its
//! specification (version 1.2.4; "section" in comments here means one of its) says; what is not
//! supported is refused with its place and what to write instead.
//!
//! Text becomes tokens (`lexer`), a tree (`ast`, `parse`) and, names and types resolved, the IR
//! (`check`).

mod ast;
mod check;
mod diagnostic;
mod lexer;
mod limits;
mod parse;
mod source;
mod token;

pub use diagnostic::{Diagnostic, Severity};
pub use source::Source;

use crate::ir;
use diagnostic::Messages;

/// What came of a program.
#[derive(Debug)]
pub struct Compiled {
    /// The program, if it has no errors.
    pub program: Option<ir::Program>,
    /// Errors and warnings, in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

/// Files of the library, by their names in `#include <...>`.
const LIBRARY: &[(&str, &str)] = &[
    ("<core.p4>", include_str!("../../../../p4/include/core.p4")),
    ("<nano.p4>", include_str!("../../../../p4/include/nano.p4")),
    ("<switch.p4>", include_str!("../../../../p4/include/switch.p4")),
];

/// The text of a file by its name, as asked for or as written in an `#include "..."`; or why there
/// is none, in a few words.
pub type Files<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Compile the file `main`. `constants` replace the values of top-level constants of those names.
#[must_use]
pub fn check(files: Files<'_>, main: &str, constants: &[(String, i128)]) -> Compiled {
    let with_library = |name: &str| match LIBRARY.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok((*text).to_owned()),
        None => files(name),
    };
    let mut messages = Messages::default();
    let tokens = lexer::tokens(&with_library, main, &mut messages);
    let declarations = parse::program(&tokens, &mut messages);
    let program = if messages.failed() {
        // What could not be read would only be missed.
        ir::Program::default()
    } else {
        check::program(&declarations, constants, &mut messages)
    };
    let failed = messages.failed();
    let (diagnostics, _) = messages.into_sorted();
    Compiled { program: (!failed).then_some(program), diagnostics }
}

/// As [`check()`], without warnings.
///
/// # Errors
/// What is wrong with the program; at least one diagnostic.
pub fn compile(
    files: Files<'_>,
    main: &str,
    constants: &[(String, i128)],
) -> Result<ir::Program, Vec<Diagnostic>> {
    let Compiled { program, diagnostics } = check(files, main, constants);
    program
        .ok_or_else(|| diagnostics.into_iter().filter(|d| d.severity == Severity::Error).collect())
}
