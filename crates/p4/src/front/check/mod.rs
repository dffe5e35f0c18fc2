//! Names, types and widths, and what follows from them: the [`ir::Program`].
//!
//! Checking and lowering are one walk. Blocks are walked once for every place that they are put in
//! (controls are inlined), and those that the package does not use once, for their mistakes only.
//! The same mistake is reported once.

mod block;
mod call;
mod cast;
mod control;
mod declare;
mod expr;
mod external;
mod frame;
mod instance;
mod method;
mod operators;
mod package;
mod parser;
mod resolve;
mod scope;
mod stack;
mod statement;
mod table;
mod types;
mod value;

use std::rc::Rc;

use super::ast::{Declaration, Name};
use super::diagnostic::{Messages, Reported};
use super::limits::MAX_STATEMENTS;
use super::source::Span;
use crate::ir;
use frame::Frame;
use scope::{Scopes, Symbol};

type Checked<T> = Result<T, Reported>;

/// What a piece of the program may do depends on where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// No statements: constants and declarations.
    Top,
    Parser,
    Action,
    Control,
    Deparser,
}

/// Check the declarations of a program and lower what its package uses. `constants` replace the
/// values of top-level constants of those names.
pub(super) fn program(
    declarations: &[Declaration],
    constants: &[(String, i128)],
    messages: &mut Messages,
) -> ir::Program {
    let mut checker = Checker {
        messages,
        constants,
        program: ir::Program::default(),
        scopes: Scopes::default(),
        frame: Frame::default(),
        within: Within::Top,
        statements: 0,
        depth: 0,
        errors: Vec::new(),
        used: Vec::new(),
        conditional: 0,
    };
    checker.program.errors = ir::CORE_ERRORS.iter().map(ToString::to_string).collect();
    checker.top_level(declarations);
    checker.unused_blocks(declarations);
    checker.unknown_constants();
    let files = (0..).map_while(|n| checker.messages.sources.file(n));
    checker.program.files = files.map(|f| f.name.clone()).collect();
    checker.program
}

struct Checker<'a> {
    messages: &'a mut Messages,
    constants: &'a [(String, i128)],
    program: ir::Program,
    scopes: Scopes,
    /// The pipeline that is being built.
    frame: Frame,
    within: Within,
    /// How many statements there are so far, walked and emitted.
    statements: usize,
    /// How many controls are being inlined into one another.
    depth: usize,
    /// Errors that the program declares; those of the core library have numbers without it, too.
    errors: Vec<Rc<str>>,
    /// Blocks and actions of the top level that have been walked.
    used: Vec<Rc<str>>,
    /// How many conditions are around what is being lowered.
    conditional: usize,
}

impl Checker<'_> {
    fn error(
        &mut self,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Reported {
        self.messages.error(span, message, hint)
    }

    fn refuse(&mut self, span: Span, what: &str, instead: impl Into<String>) -> Reported {
        self.messages.unsupported(span, what, instead)
    }

    /// Report that a name stands for something that cannot stand here.
    fn misused(&mut self, name: &Name, found: &Symbol, hint: &str, wanted: &str) -> Reported {
        if matches!(found, Symbol::Broken) {
            return Reported;
        }
        let message = format!("`{name}` is {}, not {wanted}", found.describe());
        self.error(name.span, message, hint)
    }

    /// A declaration that may have gone wrong: then its name is known all the same.
    fn or_broken(&mut self, name: &Name, done: Checked<()>) -> Checked<()> {
        if done.is_err() {
            // It may be declared twice; that has been reported.
            let _ = self.scopes.declare(&name.text, Symbol::Broken, name.span);
        }
        done
    }

    fn place(&self, span: Span) -> ir::Place {
        let (line, column) = self.messages.sources.line_column(span);
        let short = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        ir::Place { file: span.file, line: short(line), column: short(column) }
    }

    /// Add a statement to the block that is being built.
    fn emit(&mut self, kind: ir::StmtKind, span: Span) -> Checked<()> {
        self.effort(span)?;
        let place = self.place(span);
        self.frame.block.push(ir::Stmt { kind, place });
        Ok(())
    }

    /// Count a statement, walked or emitted: inlined controls grow quickly.
    fn effort(&mut self, span: Span) -> Checked<()> {
        self.efforts(1, span)
    }

    /// Count so many.
    fn efforts(&mut self, count: usize, span: Span) -> Checked<()> {
        if self.statements > MAX_STATEMENTS {
            return Err(Reported);
        }
        self.statements += count;
        if self.statements > MAX_STATEMENTS {
            let hint = "controls and actions are inlined and parsers' loops unrolled; use fewer";
            return Err(self.error(span, "the program becomes too long", hint));
        }
        Ok(())
    }

    /// What `inner` emits, as a block of its own.
    fn collect<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Checked<T>,
    ) -> Checked<(T, ir::Block)> {
        let around = std::mem::take(&mut self.frame.block);
        let done = inner(self);
        let block = std::mem::replace(&mut self.frame.block, around);
        Ok((done?, block))
    }
}
