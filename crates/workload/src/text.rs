//! Located errors, and the few things that every reader of text shares: lines, words, numbers.

use std::fmt;

/// What a text says, or what is wrong with it.
pub type Parsed<T> = Result<T, TextError>;

/// What is wrong with a text file, and where. Every reader of text reports this one type.
///
/// `Display` gives `file:line:column: message`, the offending text and the hint; a front end that
/// can draw the line has all the parts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TextError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column of the first wrong character, from 1, counted in characters.
    pub column: u32,
    /// How many characters are wrong; zero where something is missing.
    pub len: u32,
    /// What stands there; empty where something is missing.
    pub value: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        if !self.value.is_empty() {
            write!(f, ": {:?}", self.value)?;
        }
        write!(f, "\n  hint: {}", self.hint)
    }
}

/// A position in a file: line and column from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// A word of a file and where it stands. A missing word is empty and stands where it should.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word<'a> {
    /// The word.
    pub text: &'a str,
    /// Where it begins.
    pub at: Place,
}

/// A file being read: its name, for errors, and its text without a byte order mark.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

/// One line, cut into words. Never empty.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    pub(crate) words: Vec<Word<'a>>,
    end: Place,
}

/// Saturating, because a file may be longer than anybody wants to read.
#[must_use]
pub fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl<'a> Source<'a> {
    /// The file `name` with this text.
    #[must_use]
    pub fn new(text: &'a str, name: &'a str) -> Self {
        Self { name, text: text.strip_prefix('\u{feff}').unwrap_or(text) }
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The lines that hold something, comments (`#` in front) left out.
    pub fn lines(&self, separator: fn(char) -> bool) -> impl Iterator<Item = Line<'a>> {
        self.text.lines().enumerate().filter_map(move |(index, text)| {
            let line = Line::cut(text, to_u32(index).saturating_add(1), separator);
            line.filter(|line| !line.first().text.starts_with('#'))
        })
    }

    /// Where the text ends: the place of what is missing from a file cut short.
    #[must_use]
    pub fn end(&self) -> Place {
        let last = self.text.lines().last().unwrap_or("");
        Place {
            line: to_u32(self.text.lines().count()).max(1),
            column: to_u32(last.chars().count()).saturating_add(1),
        }
    }

    /// Line and column of byte `offset`. For errors only: it counts lines from the first one on.
    #[must_use]
    pub fn place(&self, offset: usize) -> Place {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or("");
        Place {
            line: to_u32(before.matches('\n').count()).saturating_add(1),
            column: to_u32(line.chars().count()).saturating_add(1),
        }
    }

    /// An error about `word`.
    #[must_use]
    pub fn wrong(
        &self,
        word: Word<'_>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> TextError {
        TextError {
            file: self.name.to_owned(),
            line: word.at.line,
            column: word.at.column,
            len: to_u32(word.text.chars().count()),
            value: word.text.to_owned(),
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// An error about something that is not there.
    #[must_use]
    pub fn missing(
        &self,
        at: Place,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> TextError {
        self.wrong(Word { text: "", at }, message, hint)
    }

    /// `word` as a whole number of at most `max`; `what` names it in errors.
    ///
    /// # Errors
    /// It is none.
    pub fn whole(&self, word: Word<'_>, what: &str, max: u64) -> Parsed<u64> {
        let hint = format!("write {what} as a whole number from 0 to {max}");
        if word.text.is_empty() {
            return Err(self.wrong(word, format!("{what} is missing"), hint));
        }
        if word.text.starts_with('-') {
            return Err(self.wrong(word, format!("{what} is negative"), hint));
        }
        if !word.text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.wrong(word, format!("{what} is not a whole number"), hint));
        }
        number(word.text, max).ok_or_else(|| self.wrong(word, format!("{what} is too large"), hint))
    }

    /// `word` as a whole number that fits 32 bits.
    ///
    /// # Errors
    /// It is none.
    pub fn whole_u32(&self, word: Word<'_>, what: &str) -> Parsed<u32> {
        self.whole(word, what, u64::from(u32::MAX)).map(|n| n as u32)
    }

    /// `word` as a 32-bit number from 1.
    ///
    /// # Errors
    /// It is none.
    pub fn positive_u32(&self, word: Word<'_>, what: &str) -> Parsed<u32> {
        match self.whole_u32(word, what)? {
            0 => Err(self.wrong(word, format!("{what} is zero"), format!("{what} starts at 1"))),
            n => Ok(n),
        }
    }
}

impl<'a> Line<'a> {
    fn cut(text: &'a str, line: u32, separator: fn(char) -> bool) -> Option<Self> {
        let mut words = Vec::new();
        let mut column = 1u32;
        for piece in text.split_inclusive(separator) {
            let word = piece.trim_end_matches(separator);
            if !word.is_empty() {
                words.push(Word { text: word, at: Place { line, column } });
            }
            column = column.saturating_add(to_u32(piece.chars().count()));
        }
        (!words.is_empty()).then_some(Self { words, end: Place { line, column } })
    }

    /// The first word.
    #[must_use]
    pub fn first(&self) -> Word<'a> {
        self.word(0)
    }

    /// All of them.
    #[must_use]
    pub fn words(&self) -> &[Word<'a>] {
        &self.words
    }

    /// Word `index`, or an empty one at the end of the line.
    #[must_use]
    pub fn word(&self, index: usize) -> Word<'a> {
        self.words.get(index).copied().unwrap_or(Word { text: "", at: self.end })
    }
}

/// `text` as a whole number of at most `max`, if it is one. [`Source::whole`] says what is wrong
/// with others, but wants to know where they stand.
#[must_use]
pub fn number(text: &str, max: u64) -> Option<u64> {
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|&n| is_number && n <= max)
}

/// A hint for a word that is none of `known`: the nearest one, and all of them.
#[must_use]
pub fn one_of(word: &str, known: &[&str]) -> String {
    let word = word.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&word, &name.to_lowercase());
    let nearest = known.iter().map(|name| (distance(name), *name)).min();
    let all = known.join(", ");
    match nearest {
        Some((distance, name)) if distance <= 1 + name.len() / 3 => {
            format!("did you mean {name}? Use one of {all}")
        }
        _ => format!("use one of {all}"),
    }
}

#[cfg(test)]
impl TextError {
    /// What tests of readers compare: line, column, value and message.
    pub(crate) fn says(&self) -> (u32, u32, &str, &str) {
        assert!(!self.hint.is_empty(), "{self}");
        (self.line, self.column, &self.value, &self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_their_place_in_characters() {
        let source = Source::new("\u{feff}# é\n\n é  10 \r\n", "x");
        let lines: Vec<_> = source.lines(char::is_whitespace).collect();
        assert_eq!(lines.len(), 1);
        let ten = lines[0].word(1);
        assert_eq!((ten.text, ten.at), ("10", Place { line: 3, column: 5 }));
        assert_eq!(lines[0].word(2).at.line, 3, "a missing word stands at the end of its line");
        assert_eq!(source.place(source.text.find("10").expect("there")), ten.at);
        let error = source.wrong(ten, "too small", "write 11");
        assert_eq!(error.to_string(), "x:3:5: too small: \"10\"\n  hint: write 11");
    }

    #[test]
    fn whole_numbers_say_what_is_wrong() {
        let source = Source::new("", "x");
        let read = |text| {
            let word = Word { text, at: Place::default() };
            source.whole(word, "size", 100).map_err(|e| e.message)
        };
        assert_eq!(read("100"), Ok(100));
        for (text, message) in [
            ("", "size is missing"),
            ("-1", "size is negative"),
            ("1.5", "size is not a whole number"),
            ("101", "size is too large"),
            ("99999999999999999999999", "size is too large"),
        ] {
            assert_eq!(read(text), Err(message.to_owned()));
        }
    }
}
