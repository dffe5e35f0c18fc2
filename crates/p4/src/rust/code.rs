//! Text of the generated source, line by line.

use std::fmt::{Display, Write};

use crate::ir::{Place, Program};

/// Source as it grows.
pub(super) struct Code<'a> {
    program: &'a Program,
    text: String,
    depth: usize,
}

impl<'a> Code<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        Self { program, text: String::new(), depth: 0 }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    pub(super) fn line(&mut self, text: impl Display) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.text, "{:width$}{text}", "", width = 4 * self.depth);
    }

    /// A line that says where in the P4 source it comes from.
    pub(super) fn from(&mut self, place: Place, text: impl Display) {
        match self.place(place) {
            Some(place) => self.line(format_args!("{text} // {place}")),
            None => self.line(text),
        }
    }

    /// `file:line`, where there is one.
    pub(super) fn place(&self, place: Place) -> Option<String> {
        let file = self.program.files.get(usize::from(place.file)).filter(|_| place.line > 0)?;
        Some(format!("{file}:{}", place.line))
    }

    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// `head {`, what `write` writes, and `}`.
    pub(super) fn braces(&mut self, head: impl Display, write: impl FnOnce(&mut Self)) {
        self.line(format_args!("{head} {{"));
        self.inside(write);
        self.line("}");
    }

    /// What `write` writes, one step further in.
    pub(super) fn inside(&mut self, write: impl FnOnce(&mut Self)) {
        self.depth += 1;
        write(self);
        self.depth -= 1;
    }
}
