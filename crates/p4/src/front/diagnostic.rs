//! [`Diagnostic`]: what is wrong with a program, where, and what to write instead.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::source::{Source, Sources, Span};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// The program means something, but perhaps not what was meant.
    Warning,
}

/// One message about a program.
///
/// `Display` gives one line: `file:line:column: error: message; hint`. Whoever shows it to people
/// has the text and the place to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the program is refused for it.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What to write instead; may be empty.
    pub hint: String,
    /// The file it is in.
    pub source: Arc<Source>,
    /// The bytes of the file that are meant.
    pub span: Range<usize>,
    /// Line and column of the first of them, from one; columns count characters.
    pub line_column: (usize, usize),
}

impl Diagnostic {
    /// The file, as it was asked for.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.source.name
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.line_column;
        let kind = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}:{line}:{column}: {kind}: {}", self.source.name, self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "; {}", self.hint) }
    }
}

impl std::error::Error for Diagnostic {}

/// After so many errors the rest of a program is not looked at: they are mostly consequences.
pub(crate) const MAX_ERRORS: usize = 20;

/// After so many warnings no more are kept: whoever heeds them begins with the first.
const MAX_WARNINGS: usize = 50;

/// Something was wrong and has been reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reported;

/// The messages of one compilation.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) sources: Sources,
    all: Vec<Diagnostic>,
    errors: usize,
}

impl Messages {
    /// Report an error. What comes back is for `return Err(...)`.
    pub(crate) fn error(
        &mut self,
        span: Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Reported {
        self.push(Severity::Error, span, message.into(), hint.into());
        Reported
    }

    /// Report something that is legal and suspicious.
    pub(crate) fn warn(&mut self, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.push(Severity::Warning, span, message.into(), hint.into());
    }

    /// Report legal P4-16 that Trimline does not take.
    pub(crate) fn unsupported(
        &mut self,
        span: Span,
        what: &str,
        instead: impl Into<String>,
    ) -> Reported {
        self.error(span, format!("not in Trimline's subset of P4-16: {what}"), instead)
    }

    /// The same place is checked again for every use of an action or a control: say it once.
    fn push(&mut self, severity: Severity, span: Span, message: String, hint: String) {
        let warnings = self.all.len() - self.errors;
        if self.errors >= MAX_ERRORS || (severity == Severity::Warning && warnings >= MAX_WARNINGS)
        {
            return;
        }
        let Some(source) = self.sources.file(span.file) else { return };
        let (source, line_column) = (Arc::clone(source), self.sources.line_column(span));
        // What is quoted from the program may have several lines.
        let (message, hint) = (one_line(message), one_line(hint));
        let new = Diagnostic { severity, message, hint, source, span: span.range(), line_column };
        if !self.all.contains(&new) {
            self.errors += usize::from(severity == Severity::Error);
            self.all.push(new);
        }
    }

    /// Whether the program is refused.
    pub(crate) fn failed(&self) -> bool {
        self.errors > 0
    }

    /// Whether there is no use in looking for more.
    pub(crate) fn full(&self) -> bool {
        self.errors >= MAX_ERRORS
    }

    /// All messages, in the order of their places.
    pub(crate) fn into_sorted(mut self) -> (Vec<Diagnostic>, Sources) {
        let place = |d: &Diagnostic| (self.sources.find(&d.source.name), d.span.start);
        self.all.sort_by_key(place);
        (self.all, self.sources)
    }
}

fn one_line(text: String) -> String {
    if text.contains(char::is_control) { text.replace(char::is_control, " ") } else { text }
}

/// The name among `known` that `wrong` was probably meant to be.
///
/// Nearness as scenario files have it: one slip, or alike by Jaro and Winkler.
#[must_use]
pub(crate) fn nearest<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let likeness = |name: &str| {
        let slip = name.len() > 2 && strsim::osa_distance(wrong, name) == 1;
        if slip { 1.0 } else { strsim::jaro_winkler(wrong, name) }
    };
    known
        .into_iter()
        .map(|name| (likeness(name), name))
        .filter(|(likeness, name)| *likeness > 0.75 && *name != wrong)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// "did you mean ...?", or `otherwise` if no name is near.
#[must_use]
pub(crate) fn did_you_mean<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
    otherwise: &str,
) -> String {
    match nearest(wrong, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None => otherwise.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(text: &str) -> Messages {
        let mut messages = Messages::default();
        messages.sources.add("a.p4", text.to_owned());
        messages
    }

    #[test]
    fn a_message_has_place_and_hint() {
        let mut m = messages("x\n  lenn = 3;\n");
        m.error(Span { file: 0, start: 4, end: 8 }, "unknown name `lenn`", "did you mean `len`?");
        let (all, _) = m.into_sorted();
        let expected = "a.p4:2:3: error: unknown name `lenn`; did you mean `len`?";
        assert_eq!(all[0].to_string(), expected);
    }

    #[test]
    fn what_is_quoted_stays_on_the_line() {
        let mut m = messages("x");
        m.error(Span { file: 0, start: 0, end: 1 }, "found the string \"a\nb\"", "no \t");
        let (all, _) = m.into_sorted();
        assert_eq!(all[0].to_string(), "a.p4:1:1: error: found the string \"a b\"; no  ");
    }

    #[test]
    fn the_same_message_is_given_once_and_errors_are_limited() {
        let mut m = messages(&" ".repeat(100));
        for start in 0..50 {
            for _ in 0..2 {
                m.error(Span { file: 0, start, end: start + 1 }, "m", "");
            }
        }
        assert!(m.failed() && m.full());
        assert_eq!(m.into_sorted().0.len(), MAX_ERRORS);
    }

    #[test]
    fn nearest_names() {
        assert_eq!(nearest("pkt_ofset", ["msg_len", "pkt_offset"]), Some("pkt_offset"));
        assert_eq!(nearest("zebra", ["msg_len", "pkt_offset"]), None);
    }
}
