//! Text to tokens (P4-16 specification 1.2.4, section 6.4), with the part of the preprocessor that
//! programs need (section 6.2): includes and include guards.

use std::rc::Rc;

use hashbrown::HashSet;
use num_bigint::BigInt;
use rustc_hash::FxBuildHasher;

use super::Files;
use super::diagnostic::{Messages, Reported};
use super::limits::{MAX_DIGITS, MAX_INCLUDED, MAX_INCLUDES, MAX_TOKENS};
use super::source::Span;
use super::token::{KEYWORDS, Kind, Literal, SYMBOLS, Token};

/// Read `main` and what it includes.
pub(crate) fn tokens(files: Files<'_>, main: &str, messages: &mut Messages) -> Vec<Token> {
    let mut reader = Reader {
        files,
        messages,
        tokens: Vec::new(),
        open: Vec::new(),
        included: 0,
        defined: HashSet::default(),
    };
    let text = files(main);
    let (text, missing) = match text {
        Ok(text) => (text, None),
        Err(why) => (String::new(), Some(why)),
    };
    let number = reader.messages.sources.add(main, text).unwrap_or_default();
    let start = Span { file: number, start: 0, end: 0 };
    if let Some(why) = missing {
        reader.messages.error(start, format!("cannot read `{main}`: {why}"), "");
    }
    // What is wrong has been reported, and the tokens before it may show more.
    let _ = reader.file(number);
    let end = reader.messages.sources.file(number).map_or(0, |f| f.text.len()) as u32;
    let span = Span { file: number, start: end.saturating_sub(1), end };
    reader.tokens.push(Token { kind: Kind::End, span });
    reader.tokens
}

/// Everything that outlives one file.
struct Reader<'a> {
    files: Files<'a>,
    messages: &'a mut Messages,
    tokens: Vec<Token>,
    /// The files being read, outermost first: a file that includes itself is in here.
    open: Vec<u16>,
    /// How many includes there have been.
    included: usize,
    /// Names of `#define`.
    defined: HashSet<String, FxBuildHasher>,
}

/// Where reading of one file has got to.
struct Cursor {
    file: u16,
    text: Rc<str>,
    at: usize,
    conditions: Vec<Condition>,
}

/// An open `#ifdef`.
struct Condition {
    span: Span,
    /// Whether the text counts that stands here.
    counts: bool,
    /// Whether its `#else` has been.
    has_else: bool,
}

impl Cursor {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn span(&self, start: usize) -> Span {
        Span { file: self.file, start: start as u32, end: self.at as u32 }
    }

    /// Take bytes while they are of a kind.
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &str {
        let start = self.at;
        let length = self.rest().bytes().take_while(|&b| wanted(b)).count();
        self.at += length;
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn counts(&self) -> bool {
        self.conditions.iter().all(|condition| condition.counts)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl Reader<'_> {
    fn file(&mut self, file: u16) -> Result<(), Reported> {
        let Some(source) = self.messages.sources.file(file) else { return Ok(()) };
        let text: Rc<str> = Rc::from(source.text.as_str());
        let mut cursor = Cursor { file, text, at: 0, conditions: Vec::new() };
        self.open.push(file);
        while !cursor.rest().is_empty() {
            self.step(&mut cursor)?;
            if self.tokens.len() > MAX_TOKENS {
                let here = cursor.span(cursor.at);
                return Err(self.messages.error(here, "the program is too long", "split it"));
            }
        }
        self.open.pop();
        if let Some(Condition { span, .. }) = cursor.conditions.last() {
            self.messages.error(*span, "this condition has no `#endif`", "add one");
        }
        Ok(())
    }

    /// Take white space, a comment, a directive or a token.
    fn step(&mut self, cursor: &mut Cursor) -> Result<(), Reported> {
        let start = cursor.at;
        let Some(first) = cursor.rest().bytes().next() else { return Ok(()) };
        if first.is_ascii_whitespace() {
            cursor.take_while(|b| b.is_ascii_whitespace());
        } else if cursor.rest().starts_with("\\\n") {
            cursor.at += 2;
        } else if cursor.rest().starts_with("//") {
            cursor.take_while(|b| b != b'\n');
        } else if cursor.rest().starts_with("/*") {
            self.comment(cursor);
        } else if first == b'#' {
            return self.directive(cursor);
        } else if !cursor.counts() {
            cursor.at += cursor.rest().chars().next().map_or(1, char::len_utf8);
        } else if let Some(kind) = self.token(cursor, first) {
            self.tokens.push(Token { kind, span: cursor.span(start) });
        }
        Ok(())
    }

    fn comment(&mut self, cursor: &mut Cursor) {
        let start = cursor.at;
        match cursor.rest().get(2..).and_then(|rest| rest.find("*/")) {
            Some(length) => cursor.at += length + 4,
            None => {
                cursor.at += 2;
                self.messages.error(
                    cursor.span(start),
                    "this comment does not end",
                    "close it: `*/`",
                );
                cursor.at = cursor.text.len();
            }
        }
    }

    /// One token; `None` if what stands there is none, which is reported and skipped.
    fn token(&mut self, cursor: &mut Cursor, first: u8) -> Option<Kind> {
        let start = cursor.at;
        if first.is_ascii_digit() {
            return self.number(cursor);
        }
        if is_word(first) {
            let word = cursor.take_while(is_word).to_owned();
            if self.defined.contains(&word) {
                let message = format!("`{word}` is the name of a `#define`");
                let hint = "the preprocessor would leave it out here; rename one of them";
                self.messages.error(cursor.span(start), message, hint);
            }
            let keyword = KEYWORDS.iter().find(|k| **k == word);
            return Some(
                keyword.map_or_else(|| Kind::Name(word.as_str().into()), |k| Kind::Word(k)),
            );
        }
        if first == b'"' {
            return self.text(cursor);
        }
        if let Some(symbol) = SYMBOLS.iter().find(|s| cursor.rest().starts_with(**s)) {
            cursor.at += symbol.len();
            return Some(Kind::Symbol(symbol));
        }
        let odd = cursor.rest().chars().next().unwrap_or_default();
        cursor.at += odd.len_utf8();
        let hint = "names are of ASCII letters, digits and `_`";
        self.messages.error(cursor.span(start), format!("`{}` is no P4", odd.escape_debug()), hint);
        None
    }

    /// A string ends at the first quote that an even number of backslashes precedes.
    fn text(&mut self, cursor: &mut Cursor) -> Option<Kind> {
        let start = cursor.at;
        let mut escaped = true; // The opening quote.
        let length = cursor.rest().bytes().position(|b| {
            let ends = b == b'"' && !escaped;
            escaped = b == b'\\' && !escaped;
            ends
        });
        let Some(length) = length else {
            cursor.at = start + 1;
            self.messages.error(cursor.span(start), "this string does not end", "close it: `\"`");
            cursor.at = cursor.text.len();
            return None;
        };
        cursor.at = start + length + 1;
        Some(Kind::Text(cursor.text.get(start + 1..start + length)?.into()))
    }

    /// Section 6.4.3.2. The width prefix, the base prefix and the digits are one word.
    fn number(&mut self, cursor: &mut Cursor) -> Option<Kind> {
        let start = cursor.at;
        let word = cursor.take_while(is_word).to_owned();
        match literal(&word) {
            Ok(literal) => Some(Kind::Number(literal)),
            Err(message) => {
                let hint = "write 12, 0xFF, 0b1010, 8w12 (8 bits) or 4s3 (4 bits, signed)";
                self.messages.error(cursor.span(start), message, hint);
                // Something to go on with.
                Some(Kind::Number(Literal { value: BigInt::ZERO, width: None }))
            }
        }
    }

    fn directive(&mut self, cursor: &mut Cursor) -> Result<(), Reported> {
        let start = cursor.at;
        let before = cursor.text.get(..start).unwrap_or_default();
        let first_of_line = before.rsplit('\n').next().unwrap_or_default().trim().is_empty();
        let line = cursor.take_while(|b| b != b'\n').to_owned();
        let span = cursor.span(start);
        if !first_of_line {
            let hint = "directives such as `#include` stand alone on a line";
            self.messages.error(span, "`#` in the middle of a line", hint);
            return Ok(());
        }
        let line = line.trim_start_matches('#').split("//").next().unwrap_or_default().trim();
        let (word, rest) = line
            .split_once(|c: char| !c.is_ascii_alphanumeric())
            .map_or((line, ""), |(word, _)| {
                (word, line.get(word.len()..).unwrap_or_default().trim())
            });
        if self.condition(cursor, span, word, rest) || !cursor.counts() {
            return Ok(());
        }
        match word {
            "include" => return self.include(span, rest),
            "define" => self.define(span, rest),
            "undef" => {
                self.defined.remove(rest);
            }
            "pragma" | "line" => {}
            _ => self.refuse_directive(span, word),
        }
        Ok(())
    }

    fn refuse_directive(&mut self, span: Span, word: &str) {
        let instead = "of the preprocessor there are `#include`, `#define NAME`, `#undef`, `#ifdef`, \
                       `#ifndef`, `#else` and `#endif`";
        self.messages.unsupported(span, &format!("`#{word}`"), instead);
    }

    /// Whether the directive was one of the conditions.
    fn condition(&mut self, cursor: &mut Cursor, span: Span, word: &str, rest: &str) -> bool {
        let defined = self.defined.contains(rest);
        let open = |counts| Condition { span, counts, has_else: false };
        match word {
            "ifdef" => cursor.conditions.push(open(defined)),
            "ifndef" => cursor.conditions.push(open(!defined)),
            "if" | "elif" => {
                self.refuse_directive(span, word);
                if word == "if" {
                    cursor.conditions.push(open(true));
                }
            }
            "else" => match cursor.conditions.last_mut() {
                Some(condition) if !condition.has_else => {
                    (condition.counts, condition.has_else) = (!condition.counts, true);
                }
                Some(_) => {
                    self.messages.error(span, "a second `#else` of one `#ifdef`", "remove it");
                }
                None => self.unopened(span, word),
            },
            "endif" => {
                if cursor.conditions.pop().is_none() {
                    self.unopened(span, word);
                }
            }
            _ => return false,
        }
        true
    }

    fn unopened(&mut self, span: Span, word: &str) {
        self.messages.error(span, format!("`#{word}` without `#ifdef`"), "remove it");
    }

    fn define(&mut self, span: Span, rest: &str) {
        if rest.is_empty() || !rest.bytes().all(is_word) {
            let instead = "write a constant, such as `const bit<16> RTT = 9;`; `#define NAME` alone \
                           is for include guards";
            self.messages.unsupported(span, "macros that stand for something", instead);
        } else {
            self.defined.insert(rest.to_owned());
        }
    }

    fn include(&mut self, span: Span, rest: &str) -> Result<(), Reported> {
        let quoted = rest.strip_prefix('"').and_then(|r| r.strip_suffix('"'));
        let name = match quoted {
            Some(name) => name,
            None if rest.starts_with('<') && rest.ends_with('>') => rest,
            None => {
                let hint = "write `#include \"file.p4\"` or `#include <core.p4>`";
                self.messages.error(span, "this names no file", hint);
                return Ok(());
            }
        };
        if self.messages.sources.find(name).is_some_and(|n| self.open.contains(&n)) {
            let hint = "a file cannot include itself, also not by way of others";
            return Err(self.messages.error(
                span,
                format!("`{name}` is being included already"),
                hint,
            ));
        }
        if self.open.len() >= MAX_INCLUDES {
            let hint = "flatten them";
            return Err(self.messages.error(span, "includes are too deep", hint));
        }
        self.included += 1;
        if self.included > MAX_INCLUDED {
            let message = format!("more than {MAX_INCLUDED} includes in all");
            return Err(self.messages.error(span, message, "include each file once"));
        }
        // A file that is there already is not asked for again.
        let file = match self.messages.sources.find(name) {
            Some(known) => Some(known),
            None => {
                let text = (self.files)(name).map_err(|why| {
                    let hint = "a file in quotes is looked for beside the program; the library has \
                                <core.p4>, <nano.p4> and <switch.p4>";
                    self.messages.error(span, format!("cannot read `{name}`: {why}"), hint)
                })?;
                self.messages.sources.add(name, text)
            }
        };
        // So few files can be numbered.
        file.map_or(Ok(()), |file| self.file(file))
    }
}

/// The value and width of an integer literal.
fn literal(word: &str) -> Result<Literal, String> {
    let digits_of = |text: &str, radix: u32| -> Result<BigInt, String> {
        let digits: String = text.chars().filter(|&c| c != '_').collect();
        if digits.len() > MAX_DIGITS {
            return Err("this number is too long".to_owned());
        }
        BigInt::parse_bytes(digits.as_bytes(), radix)
            .filter(|_| !digits.starts_with(['+', '-']))
            .ok_or_else(|| format!("`{word}` is no number"))
    };
    let value_of = |text: &str| match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => digits_of(text.get(2..).unwrap_or_default(), 16),
        Some("0o") => digits_of(text.get(2..).unwrap_or_default(), 8),
        Some("0b") => digits_of(text.get(2..).unwrap_or_default(), 2),
        Some("0d") => digits_of(text.get(2..).unwrap_or_default(), 10),
        _ => digits_of(text, 10),
    };
    let prefix = word.bytes().take_while(u8::is_ascii_digit).count();
    let sign = word.as_bytes().get(prefix).copied();
    if !matches!(sign, Some(b'w' | b's')) {
        return Ok(Literal { value: value_of(word)?, width: None });
    }
    let (width, digits) = (word.get(..prefix), word.get(prefix + 1..).unwrap_or_default());
    let width: u32 = width.and_then(|w| w.parse().ok()).unwrap_or(0);
    if digits.is_empty() || digits.starts_with('_') {
        return Err(format!("`{word}` has a width and no value"));
    }
    Ok(Literal { value: value_of(digits)?, width: Some((width, sign == Some(b's'))) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<Kind>, Vec<String>) {
        let files = |name: &str| match name {
            "main" => Ok(text.to_owned()),
            "a.p4" => Ok("a".to_owned()),
            "self.p4" => Ok("#include \"self.p4\"\n".to_owned()),
            "guarded.p4" => Ok("#ifndef G\n#define G\ng\n#endif\n".to_owned()),
            _ => Err("there is none".to_owned()),
        };
        let mut messages = Messages::default();
        let tokens = tokens(&files, "main", &mut messages);
        let kinds = tokens.into_iter().map(|t| t.kind).filter(|k| *k != Kind::End).collect();
        let (all, _) = messages.into_sorted();
        (kinds, all.into_iter().map(|d| d.message).collect())
    }

    fn words(text: &str) -> String {
        let (kinds, messages) = read(text);
        assert!(messages.is_empty(), "{messages:?}");
        kinds.iter().map(|k| k.describe().replace('`', "")).collect::<Vec<_>>().join(" ")
    }

    /// The examples of section 6.4.3.2.
    #[test]
    fn integer_literals_of_the_specification() {
        for (text, value, width) in [
            ("32w255", 255, Some((32, false))),
            ("32w0d255", 255, Some((32, false))),
            ("32w0xFF", 255, Some((32, false))),
            ("32s0xFF", 255, Some((32, true))),
            ("8w0b10101010", 0xaa, Some((8, false))),
            ("8w0b_1010_1010", 0xaa, Some((8, false))),
            ("8w170", 0xaa, Some((8, false))),
            ("16w0377", 377, Some((16, false))),
            ("16w0o377", 255, Some((16, false))),
            ("1_000", 1000, None),
            ("0XfF", 255, None),
        ] {
            assert_eq!(literal(text), Ok(Literal { value: BigInt::from(value), width }), "{text}");
        }
        for text in ["8w", "8w_1", "0x", "12ab", "0b12", "8s"] {
            assert!(literal(text).is_err(), "{text}");
        }
        assert!(literal(&"9".repeat(500)).is_err());
    }

    #[test]
    fn words_symbols_strings_and_comments() {
        assert_eq!(words("a/*x*/b // c\n d"), "a b d");
        assert_eq!(words("a &&&b ..c|+|d>>e"), "a &&& b .. c |+| d > > e");
        assert_eq!(words("bi/**/t bit\\\n8"), "bi t bit the number 8");
        assert_eq!(words(r#""a\"b" x"#), r#"the string "a\"b" x"#);
    }

    #[test]
    fn includes_and_their_guards() {
        assert_eq!(words("#include \"a.p4\"\nb"), "a b");
        assert_eq!(words("#include \"guarded.p4\"\n#include \"guarded.p4\"\nb"), "g b");
        assert_eq!(words("#ifdef X\na é \"\n#else\nb\n#endif\nc"), "b c");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, part) in [
            ("#include \"self.p4\"", "being included already"),
            ("#include \"gone.p4\"", "cannot read `gone.p4`: there is none"),
            ("#include gone", "names no file"),
            ("#define A 3", "macros"),
            ("#if A > 3\n#endif", "`#if`"),
            ("#ifdef A", "no `#endif`"),
            ("#endif", "without `#ifdef`"),
            ("#else", "without `#ifdef`"),
            ("#ifdef A\n#else\n#else\n#endif", "second `#else`"),
            ("#define A\nA", "the name of a `#define`"),
            ("/* a", "does not end"),
            ("\"a", "does not end"),
            ("é", "no P4"),
            ("a #b", "middle of a line"),
            ("9z", "no number"),
        ] {
            let (_, messages) = read(text);
            assert_eq!(messages.len(), 1, "{text}: {messages:?}");
            assert!(messages[0].contains(part), "{text}: {messages:?}");
        }
    }
}
