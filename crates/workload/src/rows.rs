//! The rows of a CSV file, each of whose fields knows its place in the text.

use crate::text::{Parsed, Place, Source, Word, to_u32};

/// The rows of a CSV file, from the first: comments (`#` in front) and empty lines left out.
pub struct Rows<'a> {
    source: Source<'a>,
    records: csv::StringRecordsIntoIter<&'a [u8]>,
    begin: Begin,
}

impl<'a> Rows<'a> {
    /// Those of `source`.
    #[must_use]
    pub fn new(source: Source<'a>) -> Self {
        let records = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .from_reader(source.text().as_bytes())
            .into_records();
        Self { source, records, begin: Begin { at: 0, line: 1 } }
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Parsed<Row<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = match self.records.next()? {
            Ok(record) => record,
            Err(error) => {
                let hint = "write one row a line, its fields parted by commas";
                let end = self.source.end();
                return Some(Err(self.source.missing(end, format!("not CSV: {error}"), hint)));
            }
        };
        let text = self.source.text();
        self.begin = self.begin.of_next(text, &record);
        Some(Ok(Row { text, record, begin: self.begin }))
    }
}

/// Where a row begins: its first byte, and the line of that, from 1.
#[derive(Clone, Copy, Debug)]
struct Begin {
    at: usize,
    line: u32,
}

impl Begin {
    /// That of `record`, which comes after this one. The CSV library knows the byte, but does not
    /// count the empty lines and comments before the row. Lines are counted from row to row, so
    /// that reading takes a time in proportion to the file.
    fn of_next(self, text: &str, record: &csv::StringRecord) -> Self {
        let start = record.position().map_or(0, csv::Position::byte) as usize;
        let mut at = start.min(text.len());
        while let Some(rest) = text.get(at..) {
            at += match rest.chars().next() {
                Some('\r' | '\n') => 1,
                Some('#') => rest.find('\n').unwrap_or(rest.len()),
                _ => break,
            };
        }
        let between = text.get(self.at..at).unwrap_or("");
        Self { at, line: self.line.saturating_add(newlines(between)) }
    }
}

fn newlines(text: &str) -> u32 {
    to_u32(text.matches('\n').count())
}

/// A row of the file, to find its fields in the text.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    text: &'a str,
    record: csv::StringRecord,
    begin: Begin,
}

impl<'a> Row<'a> {
    /// How many fields it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.record.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.record.is_empty()
    }

    /// The byte of the file at which it begins.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.begin.at
    }

    /// Field `index` without blanks around it; empty if there is none.
    #[must_use]
    pub fn text(&self, index: usize) -> &str {
        self.record.get(index).unwrap_or("").trim()
    }

    /// The same with its place; at the end of the row if there is none. Finding the place takes a
    /// look at the whole row.
    #[must_use]
    pub fn word(&self, index: usize) -> Word<'_> {
        let text = self.text(index);
        let row = self.rest();
        let mut at = self.field(index);
        if !text.is_empty() {
            let rest = row.get(at..).unwrap_or("");
            at += rest.len() - rest.trim_start_matches([' ', '\t', '"']).len();
        }
        Word { text, at: self.place(at) }
    }

    /// The line of the file on which it begins.
    #[must_use]
    pub fn line(&self) -> &'a str {
        self.rest().lines().next().unwrap_or("")
    }

    /// The file from this row on.
    fn rest(&self) -> &'a str {
        self.text.get(self.begin.at..).unwrap_or("")
    }

    /// The byte of [`Row::rest`] at which field `index` begins; the end of the row if there is
    /// none. Quotes count only where a field begins with one (RFC 4180).
    fn field(&self, index: usize) -> usize {
        let row = self.rest();
        let (mut field, mut inside, mut quoted, mut first) = (0, false, false, true);
        for (offset, c) in row.char_indices() {
            if field == index || (c == '\n' && !inside) {
                return offset;
            }
            quoted = if first { c == '"' } else { quoted };
            inside ^= quoted && c == '"';
            first = c == ',' && !inside;
            field += usize::from(first);
        }
        row.len()
    }

    /// Line and column of byte `at` of [`Row::rest`].
    fn place(&self, at: usize) -> Place {
        let before = self.rest().get(..at).unwrap_or(self.rest());
        let line = before.rsplit('\n').next().unwrap_or("");
        Place {
            line: self.begin.line.saturating_add(newlines(before)),
            column: to_u32(line.trim_end_matches('\r').chars().count()).saturating_add(1),
        }
    }
}
