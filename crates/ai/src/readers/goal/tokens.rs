//! The tokens of GOAL.

use workload::TextError;
use workload::text::{Parsed, Source, Word, number};

/// A word, a sign (`:`, `{`, `}`), the end of a line, or, without text, the end of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    /// The byte at which it begins.
    pub(super) at: usize,
}

impl Token<'_> {
    pub(super) fn ends_line(&self) -> bool {
        matches!(self.text, "\n" | "")
    }
}

/// Cuts a text into tokens, without blanks and comments.
pub(super) struct Tokens<'a> {
    pub(super) source: Source<'a>,
    at: usize,
    peeked: Option<Token<'a>>,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        Self { source, at: 0, peeked: None }
    }

    pub(super) fn peek(&mut self) -> Parsed<Token<'a>> {
        if let Some(token) = self.peeked {
            return Ok(token);
        }
        let token = self.cut()?;
        self.peeked = Some(token);
        Ok(token)
    }

    pub(super) fn next(&mut self) -> Parsed<Token<'a>> {
        let token = self.peek()?;
        self.peeked = None;
        Ok(token)
    }

    /// The next token that is not the end of a line.
    pub(super) fn next_word(&mut self) -> Parsed<Token<'a>> {
        loop {
            let token = self.next()?;
            if token.text != "\n" {
                return Ok(token);
            }
        }
    }

    fn cut(&mut self) -> Parsed<Token<'a>> {
        self.skip_blanks()?;
        let text = self.source.text();
        let rest = text.get(self.at..).unwrap_or("");
        let is_sign = |c: char| matches!(c, '\n' | ':' | '{' | '}');
        let mut len = rest.find(|c: char| c.is_whitespace() || is_sign(c)).unwrap_or(rest.len());
        for comment in ["//", "/*"] {
            len = rest.get(..len).and_then(|word| word.find(comment)).unwrap_or(len);
        }
        if len == 0 && rest.starts_with(is_sign) {
            len = 1;
        }
        let token = Token { text: rest.get(..len).unwrap_or(""), at: self.at };
        self.at += len;
        Ok(token)
    }

    fn skip_blanks(&mut self) -> Parsed<()> {
        let text = self.source.text();
        while let Some(rest) = text.get(self.at..) {
            let blank = rest.find(|c: char| c == '\n' || !c.is_whitespace()).unwrap_or(rest.len());
            let rest = rest.get(blank..).unwrap_or("");
            let start = self.at + blank;
            self.at = if rest.starts_with("//") {
                start + rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                let Some(end) = rest.get(2..).and_then(|inside| inside.find("*/")) else {
                    let comment = Token { text: "/*", at: start };
                    return Err(self.wrong(comment, "a comment without an end", "close it: */"));
                };
                start + end + 4
            } else {
                self.at = start;
                return Ok(());
            };
        }
        Ok(())
    }

    /// The word and where it stands. Counts lines: for errors only.
    pub(super) fn word(&self, token: Token<'a>) -> Word<'a> {
        let text = if token.ends_line() { "" } else { token.text };
        Word { text, at: self.source.place(token.at) }
    }

    pub(super) fn wrong(
        &self,
        token: Token<'a>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> TextError {
        self.source.wrong(self.word(token), message, hint)
    }

    pub(super) fn expect(&mut self, text: &str, hint: &str) -> Parsed<()> {
        let token = self.next()?;
        if token.text == text {
            return Ok(());
        }
        Err(self.wrong(token, format!("{text:?} is missing here"), hint))
    }

    pub(super) fn number(&self, token: Token<'a>, what: &str, max: u64) -> Parsed<u64> {
        match number(token.text, max) {
            Some(n) => Ok(n),
            None => self.source.whole(self.word(token), what, max),
        }
    }

    pub(super) fn number_u32(&self, token: Token<'a>, what: &str) -> Parsed<u32> {
        self.number(token, what, u64::from(u32::MAX)).map(|n| n as u32)
    }
}
