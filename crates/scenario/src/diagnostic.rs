//! [`Diagnostic`]: what is wrong with an input, where, and what would be right.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, Severity,
    SourceCode, SourceSpan, SpanContents,
};

use crate::document::At;

/// A text that came from outside: a file, or one `--set` option.
#[derive(Debug, Clone)]
pub struct Source {
    /// What to call it in messages: the path as the user wrote it, or `--set`.
    pub name: String,
    /// Its whole text.
    pub text: String,
}

/// What has been read and is right, or what is wrong with it.
pub(crate) type Checked<T> = Result<T, Diagnostic>;

/// One error in an input: message, place, hint. The process that prints it exits with 2; after a
/// warning it goes on.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    is_warning: bool,
    message: String,
    hint: Option<String>,
    place: Option<Place>,
}

#[derive(Debug, Clone)]
struct Place {
    source: Arc<Source>,
    span: Range<usize>,
    label: String,
}

impl Diagnostic {
    /// An error without a place in a text, such as an output directory that cannot be written.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { is_warning: false, message: message.into(), hint: None, place: None }
    }

    /// Make a warning of it.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.is_warning = true;
        self
    }

    /// Add something to the message, in brackets.
    #[must_use]
    pub fn remark(mut self, more: &str) -> Self {
        self.message = format!("{} ({more})", self.message);
        self
    }

    /// Say what would be right.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Leave out what would be right.
    #[must_use]
    pub(crate) fn without_hint(mut self) -> Self {
        self.hint = None;
        self
    }

    /// Say where: `span` counts bytes of `source`, `label` is written beneath it.
    #[must_use]
    pub fn at(mut self, source: &Arc<Source>, span: Range<usize>, label: &str) -> Self {
        let end = span.end.min(source.text.len());
        let span = span.start.min(end)..end;
        self.place = Some(Place { source: Arc::clone(source), span, label: label.to_owned() });
        self
    }

    /// Say where as readers of text files do: line and column from one, in characters.
    #[must_use]
    pub(crate) fn at_line(
        self,
        source: &Arc<Source>,
        line: u32,
        column: u32,
        len: u32,
        label: &str,
    ) -> Self {
        let skipped: usize = source
            .text
            .split_inclusive('\n')
            .take((line as usize).saturating_sub(1))
            .map(str::len)
            .sum();
        let rest = source.text.get(skipped..).unwrap_or_default();
        let bytes =
            |chars: u32| -> usize { rest.chars().take(chars as usize).map(char::len_utf8).sum() };
        let start = skipped + bytes(column.saturating_sub(1));
        let end = skipped + bytes(column.saturating_sub(1).saturating_add(len));
        self.at(source, start..end, label)
    }

    /// The text of the `--set` edit that it is about, if it is about one.
    #[must_use]
    pub fn edit(&self) -> Option<&str> {
        let place = self.place.as_ref()?;
        (place.source.name == "--set").then_some(place.source.text.as_str())
    }

    /// The same error at another place: where an edit stands that is not on the command line.
    #[must_use]
    pub fn moved_to(mut self, at: &At, label: &str) -> Self {
        if let Some(edit) = self.place.take() {
            self.message = format!("{} (in `{}`)", self.message, edit.source.text);
        }
        self.at(&at.source, at.span.clone(), label)
    }

    /// File, line and column, the latter two counted from one (columns in characters).
    #[must_use]
    pub fn location(&self) -> Option<(&str, usize, usize)> {
        let place = self.place.as_ref()?;
        let before = &place.source.text.as_bytes()[..place.span.start];
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let last = before.rsplit(|&b| b == b'\n').next().unwrap_or_default();
        let column = 1 + String::from_utf8_lossy(last).chars().count();
        Some((&place.source.name, line, column))
    }

    /// The whole message for a terminal (`colour`) or for anything else, several lines.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        if let Some(short) = self.place.as_ref().and_then(cut_out) {
            return self.render_short(&short);
        }
        let theme =
            if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let mut out = String::new();
        let handler = GraphicalReportHandler::new_themed(theme).with_width(100).with_links(false);
        match handler.render_report(&mut out, &Report::of(self)) {
            Ok(()) => out,
            Err(fmt::Error) => format!("{self}\n"),
        }
    }
}

impl Diagnostic {
    /// As [`Diagnostic::render`], of a line that is too long to be drawn whole.
    fn render_short(&self, shown: &str) -> String {
        let place = self.location().map(|(file, line, column)| format!("{file}:{line}:{column}"));
        let hint = self.hint.as_ref().map(|hint| format!("  help: {hint}\n")).unwrap_or_default();
        let (message, place) = (&self.message, place.unwrap_or_default());
        let mark = if self.is_warning { '⚠' } else { '×' };
        format!("  {mark} {message}\n   ╭─[{place}]\n   · ...{shown}...\n   ╰────\n{hint}")
    }
}

/// A line longer than this many bytes is not drawn whole.
const MAX_LINE: usize = 1000;

/// What stands at a place in a line that is too long to be drawn whole: some characters from there.
fn cut_out(place: &Place) -> Option<String> {
    let (before, rest) = place.source.text.split_at_checked(place.span.start)?;
    let start = before.rsplit('\n').next().map_or(0, str::len);
    let end = rest.split('\n').next().unwrap_or_default();
    (start + end.len() > MAX_LINE).then(|| end.chars().take(120).collect())
}

/// One line: `file:line:column: message; hint`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line, column)) = self.location() {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        f.write_str(&self.message)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for Diagnostic {}

/// The span as it is drawn: the end of a text, where nothing can be underlined, is drawn at the
/// last character.
fn drawn(place: &Place) -> Range<usize> {
    let text = &place.source.text;
    match text.char_indices().next_back() {
        Some((last, c)) if place.span.start == text.len() && c != '\n' => last..text.len(),
        _ => place.span.clone(),
    }
}

/// What `miette` draws.
#[derive(Debug)]
struct Report {
    message: String,
    severity: Severity,
    hint: Option<String>,
    source: Option<Text>,
    label: Option<LabeledSpan>,
}

/// A text to draw from. Where `miette` names a place, it counts columns in bytes; this is that of
/// [`Diagnostic::location`], in characters.
#[derive(Debug)]
struct Text {
    source: Arc<Source>,
    column: usize,
}

impl SourceCode for Text {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let found = self.source.text.read_span(span, before, after)?;
        // Lines around it begin at their beginnings; without any, the place itself is asked for.
        let column = if before == 0 { self.column - 1 } else { found.column() };
        Ok(Box::new(MietteSpanContents::new_named(
            self.source.name.clone(),
            found.data(),
            *found.span(),
            found.line(),
            column,
            found.line_count(),
        )))
    }
}

impl Report {
    fn of(d: &Diagnostic) -> Self {
        let column = d.location().map_or(1, |(_, _, column)| column);
        let source = d.place.as_ref().map(|p| Text { source: Arc::clone(&p.source), column });
        let severity = if d.is_warning { Severity::Warning } else { Severity::Error };
        let label = d
            .place
            .as_ref()
            .map(|p| LabeledSpan::new(Some(p.label.clone()), drawn(p).start, drawn(p).len()));
        Self { message: d.message.clone(), severity, hint: d.hint.clone(), source, label }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report {}

impl miette::Diagnostic for Report {
    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.hint.as_ref().map(|h| Box::new(h) as _)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|s| s as _)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.label.clone().map(|l| Box::new(std::iter::once(l)) as _)
    }
}

/// The name among `known` that `wrong` was probably meant to be.
#[must_use]
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let likeness = |name: &str| {
        // Jaro-Winkler knows nothing of neighbours swapped in a name of three or four letters.
        let slip = name.len() > 2 && strsim::osa_distance(&wrong, name) == 1;
        if slip { 1.0 } else { strsim::jaro_winkler(&wrong, name) }
    };
    known
        .into_iter()
        .map(|name| (likeness(name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// The hint for a name that does not exist: the nearest one, or all of them.
#[must_use]
pub fn did_you_mean(wrong: &str, known: &[&str]) -> String {
    match nearest(wrong, known.iter().copied()) {
        Some(name) if known.len() == 1 => format!("did you mean `{name}`?"),
        Some(name) => format!("did you mean `{name}`? There is {}", listed(known)),
        None => format!("there is {}", listed(known)),
    }
}

/// "`a`, `b` and `c`".
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    match quoted.split_last() {
        None => "nothing to choose from".to_owned(),
        Some((one, [])) => format!("only {one}"),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_and_columns_from_one_in_characters() {
        let source = Arc::new(Source { name: "x.toml".into(), text: "a = 1\né = 2\n".into() });
        let at = |span| Diagnostic::new("m").at(&source, span, "here").to_string();
        assert_eq!(at(0..1), "x.toml:1:1: m");
        assert_eq!(at(8..9), "x.toml:2:2: m", "é is two bytes and one column");
        assert_eq!(at(500..900), "x.toml:3:1: m", "a span outside the text is clamped");
    }

    #[test]
    fn places_of_text_readers_are_found_again() {
        let source = Arc::new(Source { name: "x.cm".into(), text: "Nodes 4\né->2 size\n".into() });
        let at = |line, column| {
            Diagnostic::new("m")
                .at_line(&source, line, column, 3, "")
                .location()
                .map(|l| (l.1, l.2))
        };
        for place in [(1, 1), (1, 7), (2, 1), (2, 6), (3, 1)] {
            assert_eq!(at(place.0 as u32, place.1 as u32), Some(place));
        }
        assert_eq!(at(99, 99), Some((3, 1)), "clamped");
    }

    #[test]
    fn renders_place_label_and_hint() {
        let source = Arc::new(Source { name: "x.toml".into(), text: "seed = -1\n".into() });
        let text =
            Diagnostic::new("negative seed").at(&source, 7..9, "here").hint("use 1").render(false);
        for part in ["negative seed", "x.toml:1:8", "seed = -1", "here", "use 1"] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(!text.contains('\u{1b}'), "no colour asked for");
    }

    #[test]
    fn what_is_drawn_counts_columns_in_characters_and_marks_warnings() {
        let source = Arc::new(Source { name: "x.p4".into(), text: "\n  /* é é */ 300\n".into() });
        let found = Diagnostic::new("too large").at(&source, 16..19, "here");
        let drawn = found.render(false);
        assert!(drawn.contains("× too large") && drawn.contains("[x.p4:2:14]"), "{drawn}");
        assert_eq!(found.location(), Some(("x.p4", 2, 14)));
        let drawn = found.warning().render(false);
        assert!(drawn.contains("⚠ too large") && !drawn.contains('×'), "{drawn}");
    }

    #[test]
    fn a_line_without_end_is_not_drawn_whole() {
        let text = format!("seed = {}\n", "9".repeat(100_000));
        let source = Arc::new(Source { name: "x.toml".into(), text });
        let text =
            Diagnostic::new("too large").at(&source, 7..100_007, "here").hint("1").render(false);
        for part in ["too large", "x.toml:1:8", "999...", "help: 1"] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        assert!(text.len() < 400);
    }

    #[test]
    fn finds_the_nearest_name_or_none() {
        assert_eq!(nearest("lnik_rate", ["link_rate", "link_delay", "k"]), Some("link_rate"));
        assert_eq!(nearest("npd", ["ndp", "newreno"]), Some("ndp"));
        assert_eq!(nearest("zebra", ["link_rate", "link_delay", "k"]), None);
    }
}
