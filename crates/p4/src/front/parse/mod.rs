//! Tokens to an [`ast`](super::ast): recursive descent over the grammar of P4-16 1.2.4 (appendix
//! G).
//!
//! What the grammar has and Trimline has not is refused here if it can be told from its first
//! tokens, with what to write instead. After an error, reading goes on behind the next `;` or `}`.

mod block;
mod declaration;
mod expr;
#[cfg(test)]
mod round_trip;
mod statement;
mod types;

use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use std::rc::Rc;

use super::ast::{Annotation, Arg, Declaration, Expr, Name};
use super::diagnostic::{Messages, Reported};
use super::limits::{MAX_DEPTH, MAX_LOOK_AHEAD};
use super::source::Span;
use super::token::{ALSO_NAMES, Kind, Token};

/// What to do about an expression that is deeper.
const SHALLOWER: &str = "name an intermediate result";

type Parsed<T> = Result<T, Reported>;

/// All declarations of a program, those that are wrong left out.
pub(crate) fn program(tokens: &[Token], messages: &mut Messages) -> Vec<Declaration> {
    let mut parser = Parser::new(tokens, messages);
    let mut all = Vec::new();
    while *parser.kind() != Kind::End && !parser.messages.full() {
        let before = parser.at;
        if parser.eat(";") {
            continue;
        }
        let declaration = parser.declaration();
        for name in std::mem::take(&mut parser.type_params) {
            parser.types.remove(&name);
        }
        if let Ok(declaration) = declaration {
            all.push(declaration);
        } else {
            parser.recover(before);
            // At the top level a brace that closes is left over from what was wrong.
            while parser.eat("}") {}
        }
    }
    all
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    messages: &'a mut Messages,
    /// Names that have been declared as types so far: `(name) x` is a cast if it is one.
    types: HashSet<Rc<str>, FxBuildHasher>,
    /// Those that are type parameters of the declaration being read.
    type_params: Vec<Rc<str>>,
    depth: u16,
}

impl<'a> Parser<'a> {
    fn new(tokens: &'a [Token], messages: &'a mut Messages) -> Self {
        Self {
            tokens,
            at: 0,
            messages,
            types: HashSet::default(),
            type_params: Vec::new(),
            depth: 0,
        }
    }

    /// The token `ahead` places on; at the end of the program, the end.
    fn token(&self, ahead: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + ahead).min(last)]
    }

    fn kind(&self) -> &Kind {
        &self.token(0).kind
    }

    fn span(&self) -> Span {
        self.token(0).span
    }

    /// From `start` to the last token that was taken.
    fn since(&self, start: Span) -> Span {
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        last.map_or(start, |token| start.to(token.span))
    }

    fn is_at(&self, ahead: usize, text: &str) -> bool {
        matches!(&self.token(ahead).kind, Kind::Word(t) | Kind::Symbol(t) if *t == text)
    }

    fn is(&self, text: &str) -> bool {
        self.is_at(0, text)
    }

    /// A word that is a keyword in some places only (`key`, `size`).
    fn is_word(&self, text: &str) -> bool {
        self.is(text) || matches!(self.kind(), Kind::Name(name) if **name == *text)
    }

    fn advance(&mut self) -> Span {
        let span = self.span();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        span
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.is(text);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, text: &str, after: &str) -> Parsed<Span> {
        if self.is(text) {
            return Ok(self.advance());
        }
        Err(self.wrong(&format!("`{text}` {after}")))
    }

    /// Report that something else stands here.
    fn wrong(&mut self, expected: &str) -> Reported {
        let found = self.kind().describe();
        // A missing `;` is best shown behind what it should have followed.
        let span = match self.at.checked_sub(1).and_then(|at| self.tokens.get(at)) {
            Some(last) if expected.starts_with("`;`") => {
                Span { start: last.span.end.saturating_sub(1), ..last.span }
            }
            _ => self.span(),
        };
        self.messages.error(span, format!("expected {expected}, found {found}"), "")
    }

    fn refuse(&mut self, span: Span, what: &str, instead: &str) -> Reported {
        self.messages.unsupported(span, what, instead)
    }

    fn is_name(&self, ahead: usize) -> bool {
        match &self.token(ahead).kind {
            Kind::Name(_) => true,
            Kind::Word(word) => ALSO_NAMES.contains(word),
            _ => false,
        }
    }

    fn name(&mut self, what: &str) -> Parsed<Name> {
        let text: Rc<str> = match self.kind() {
            Kind::Name(text) => Rc::clone(text),
            Kind::Word(word) if ALSO_NAMES.contains(word) => Rc::from(*word),
            Kind::Word(word) => {
                let message = format!("`{word}` is a keyword and cannot be {what}");
                let span = self.span();
                return Err(self.messages.error(span, message, "choose another name"));
            }
            _ => return Err(self.wrong(what)),
        };
        Ok(Name { text, span: self.advance() })
    }

    /// Note a name that stands for a type from here on.
    fn type_name(&mut self, what: &str) -> Parsed<Name> {
        let name = self.name(what)?;
        self.types.insert(Rc::clone(&name.text));
        Ok(name)
    }

    /// Do something one level deeper, unless it is too deep.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let starts = ["{", "if", "switch"].iter().any(|text| self.is(text));
            let instead = if starts { "put what is inside into an action" } else { SHALLOWER };
            return Err(self.too_deep(self.span(), instead));
        }
        self.depth += 1;
        let done = inner(self);
        self.depth -= 1;
        done
    }

    fn too_deep(&mut self, span: Span, instead: &str) -> Reported {
        let what = format!("more than {MAX_DEPTH} levels in one another");
        self.refuse(span, &what, instead)
    }

    /// Items between commas up to `close`, which is taken.
    fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut all = Vec::new();
        if self.eat(close) {
            return Ok(all);
        }
        loop {
            all.push(item(self)?);
            if self.eat(close) {
                return Ok(all);
            }
            self.expect(",", &format!("or `{close}`"))?;
        }
    }

    /// Items between commas up to `}`; here a comma may stand behind the last one (section 6.4.4).
    fn braced_list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut all = Vec::new();
        while !self.eat("}") {
            all.push(item(self)?);
            if !self.is("}") {
                self.expect(",", "or `}`")?;
            }
        }
        Ok(all)
    }

    /// Behind the opening parenthesis.
    fn arguments(&mut self) -> Parsed<Vec<Arg>> {
        self.list(")", |p| {
            let named = p.is_name(0) && p.is_at(1, "=");
            let name = if named { Some(p.name("a parameter")?) } else { None };
            if named {
                p.advance();
            }
            Ok(Arg { name, value: p.expr()? })
        })
    }

    /// `@name`, `@name(...)`, `@name[...]`.
    fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
        let mut all = Vec::new();
        while self.eat("@") {
            let name = match self.kind() {
                Kind::Word(word) => Name { text: Rc::from(*word), span: self.advance() },
                _ => self.name("an annotation")?,
            };
            let mut number = None;
            if self.is("(") || self.is("[") {
                let start = self.at;
                self.skip_balanced()?;
                if let [_, Token { kind: Kind::Number(n), .. }, _] = &self.tokens[start..self.at] {
                    number = Some(n.clone());
                }
            }
            all.push(Annotation { name, number });
        }
        Ok(all)
    }

    /// Skip from an opening bracket to behind the one that closes it.
    fn skip_balanced(&mut self) -> Parsed<()> {
        let start = self.span();
        let mut wanted = Vec::new();
        loop {
            match self.kind() {
                Kind::Symbol("(") => wanted.push(")"),
                Kind::Symbol("[") => wanted.push("]"),
                Kind::Symbol("{") => wanted.push("}"),
                Kind::Symbol(close @ (")" | "]" | "}")) if wanted.pop() != Some(*close) => {
                    let message = format!("`{close}` closes no bracket");
                    let span = self.span();
                    return Err(self.messages.error(span, message, "brackets close in order"));
                }
                Kind::End => {
                    return Err(self.messages.error(start, "this bracket is not closed", ""));
                }
                _ => {}
            }
            self.advance();
            if wanted.is_empty() {
                return Ok(());
            }
        }
    }

    /// After an error: go on behind the next `;`, or behind the `}` of what began meanwhile, or
    /// before the `}` of what is around. Something is skipped in any case.
    fn recover(&mut self, from: usize) {
        let opened = |p: &Self| {
            let taken = &p.tokens[from.min(p.at)..p.at];
            taken.iter().fold(0i64, |open, token| match token.kind {
                Kind::Symbol("{") => open + 1,
                Kind::Symbol("}") => open - 1,
                _ => open,
            })
        };
        let mut open = opened(self);
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::Symbol("{") => open += 1,
                Kind::Symbol("}") if open <= 0 => return,
                Kind::Symbol("}") => {
                    open -= 1;
                    if open == 0 {
                        self.advance();
                        self.eat(";");
                        return;
                    }
                }
                Kind::Symbol(";") if open <= 0 => {
                    self.advance();
                    return;
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// Read items up to `}`, which is taken; what is wrong with one does not keep the others from
    /// being read.
    fn items<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<Option<T>>) -> Parsed<Vec<T>> {
        let mut all = Vec::new();
        while !self.eat("}") {
            let before = self.at;
            match item(self) {
                Ok(found) => all.extend(found),
                Err(reported) if *self.kind() == Kind::End || self.messages.full() => {
                    return Err(reported);
                }
                Err(_) => self.recover(before),
            }
            if *self.kind() == Kind::End {
                return Err(self.wrong("`}`"));
            }
        }
        Ok(all)
    }

    fn deep(&mut self, expr: Expr) -> Parsed<Expr> {
        if expr.depth > MAX_DEPTH { Err(self.too_deep(expr.span, SHALLOWER)) } else { Ok(expr) }
    }
}
