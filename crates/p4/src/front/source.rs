//! Files of a program and places in them.

use std::ops::Range;
use std::sync::Arc;

/// A text that was read: the main file or one that it includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What messages call it: the path as it was asked for, or `<core.p4>`.
    pub name: String,
    /// Its whole text.
    pub text: String,
}

/// Some bytes of one of a program's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    /// Which file, in order of first reading.
    pub(crate) file: u16,
    /// First byte.
    pub(crate) start: u32,
    /// The byte after the last one.
    pub(crate) end: u32,
}

impl Span {
    /// From the first byte of this to the last of `other`, if both are in one file.
    #[must_use]
    pub(crate) fn to(self, other: Self) -> Self {
        let end = if self.file == other.file { self.end.max(other.end) } else { self.end };
        Self { end, ..self }
    }

    /// As a range of bytes.
    #[must_use]
    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// All files of a program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    files: Vec<Arc<Source>>,
    /// Of each file, where its lines begin.
    lines: Vec<Vec<u32>>,
}

impl Sources {
    /// Add a file; `None` if there are too many to number.
    pub(crate) fn add(&mut self, name: &str, text: String) -> Option<u16> {
        let number = u16::try_from(self.files.len()).ok()?;
        let begins = text.bytes().zip(1..).filter(|(b, _)| *b == b'\n').map(|(_, next)| next);
        self.lines.push([0].into_iter().chain(begins).collect());
        self.files.push(Arc::new(Source { name: name.to_owned(), text }));
        Some(number)
    }

    /// The file of a span.
    #[must_use]
    pub(crate) fn file(&self, number: u16) -> Option<&Arc<Source>> {
        self.files.get(usize::from(number))
    }

    /// The number of the file of that name, if it was read.
    pub(crate) fn find(&self, name: &str) -> Option<u16> {
        let at = self.files.iter().position(|f| f.name == name)?;
        u16::try_from(at).ok()
    }

    /// Line and column of a span's first character, both from one; columns count characters.
    pub(crate) fn line_column(&self, span: Span) -> (usize, usize) {
        let file = usize::from(span.file);
        let (Some(source), Some(lines)) = (self.files.get(file), self.lines.get(file)) else {
            return (0, 0);
        };
        let line = lines.partition_point(|&begin| begin <= span.start);
        let begin = lines.get(line.wrapping_sub(1)).copied().unwrap_or_default();
        let before = source.text.get(begin as usize..span.start as usize).unwrap_or_default();
        (line, 1 + before.chars().count())
    }

    /// `file:line:column` of a span's first character.
    #[must_use]
    pub(crate) fn place(&self, span: Span) -> String {
        let Some(file) = self.file(span.file) else { return String::new() };
        let (line, column) = self.line_column(span);
        format!("{}:{line}:{column}", file.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let mut sources = Sources::default();
        sources.add("x.p4", "a\né b\n".to_owned());
        let at = |start| sources.line_column(Span { file: 0, start, end: start });
        assert_eq!([at(0), at(1), at(2)], [(1, 1), (1, 2), (2, 1)]);
        assert_eq!(at(5), (2, 3), "é is two bytes and one column");
        assert_eq!([at(6), at(7)], [(2, 4), (3, 1)]);
    }
}
