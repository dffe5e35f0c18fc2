//! Expressions.

use super::super::ast::{Arg, Binary, Expr, ExprKind, KeySet, LEVELS, TypeRef, Unary};
use super::super::source::Span;
use super::super::token::Kind;
use super::{MAX_LOOK_AHEAD, Parsed, Parser};

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.nested(Self::choice)
    }

    fn boxed(&mut self) -> Parsed<Box<Expr>> {
        self.expr().map(Box::new)
    }

    /// An expression whose parts are `parts` deep.
    fn make(&mut self, kind: ExprKind, start: Span, parts: &[u16]) -> Parsed<Expr> {
        let depth = 1 + parts.iter().copied().max().unwrap_or(0);
        let span = self.since(start);
        self.deep(Expr { kind, span, depth })
    }

    /// `c ? a : b`.
    fn choice(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let condition = self.binary(0)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        let yes = self.boxed()?;
        self.expect(":", "between the two values of `?`")?;
        let no = self.boxed()?;
        let depths = [condition.depth, yes.depth, no.depth];
        self.make(ExprKind::Choice(Box::new(condition), yes, no), start, &depths)
    }

    /// The operator here, if it is of at least that level.
    fn operator(&self, least: usize) -> Option<(usize, Binary)> {
        let Kind::Symbol(mut text) = *self.kind() else { return None };
        if text == ">" && self.is_at(1, ">") && self.token(1).span.start == self.span().end {
            text = ">>";
        }
        let level = (least..LEVELS.len()).find(|&l| LEVELS[l].iter().any(|(t, _)| *t == text))?;
        LEVELS[level].iter().find(|(t, _)| *t == text).map(|&(_, op)| (level, op))
    }

    /// Precedence climbing: operators of level `least` and tighter.
    fn binary(&mut self, least: usize) -> Parsed<Expr> {
        let start = self.span();
        let mut left = self.prefix()?;
        while let Some((level, op)) = self.operator(least) {
            self.advance();
            if op == Binary::ShiftRight {
                self.advance();
            }
            let right = self.nested(|p| p.binary(level + 1))?;
            let depths = [left.depth, right.depth];
            left =
                self.make(ExprKind::Binary(op, Box::new(left), Box::new(right)), start, &depths)?;
        }
        Ok(left)
    }

    fn prefix(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let op = match self.kind() {
            Kind::Symbol("!") => Unary::Not,
            Kind::Symbol("~") => Unary::Complement,
            Kind::Symbol("-") => Unary::Minus,
            Kind::Symbol("+") => Unary::Plus,
            Kind::Symbol("(") if self.is_cast() => {
                self.advance();
                let ty = Box::new(self.type_ref()?);
                self.expect(")", "behind the type of a cast")?;
                let value = self.nested(Self::prefix)?;
                let depth = value.depth;
                return self.make(ExprKind::Cast(ty, Box::new(value)), start, &[depth]);
            }
            _ => {
                let primary = self.primary()?;
                return self.postfix(primary);
            }
        };
        self.advance();
        let value = self.nested(Self::prefix)?;
        let depth = value.depth;
        self.make(ExprKind::Unary(op, Box::new(value)), start, &[depth])
    }

    /// Whether the parenthesis here holds a type: a keyword of types, or a name declared as one.
    fn is_cast(&self) -> bool {
        match &self.token(1).kind {
            Kind::Word(word) => {
                matches!(*word, "bit" | "int" | "bool" | "varbit" | "tuple")
                    || (*word == "error" && self.is_at(2, ")"))
            }
            Kind::Name(name) => {
                self.types.contains(name) && (self.is_at(2, ")") || self.is_at(2, "<"))
            }
            _ => false,
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let kind = match self.kind().clone() {
            Kind::Number(literal) => ExprKind::Number(literal),
            Kind::Text(_) => ExprKind::Text,
            Kind::Word("true") => ExprKind::Bool(true),
            Kind::Word("false") => ExprKind::Bool(false),
            Kind::Word("_") => ExprKind::Any,
            Kind::Word("this") => return Err(self.refuse(start, "`this`", "name the instance")),
            Kind::Word("error") => {
                self.advance();
                self.expect(".", "and the name of an error behind `error`")?;
                let name = self.name("the name of an error")?;
                return self.make(ExprKind::Error(name), start, &[]);
            }
            Kind::Symbol("{#}") => {
                let instead = "call `setInvalid()` on the header";
                return Err(self.refuse(start, "the invalid header `{#}`", instead));
            }
            Kind::Symbol("...") => {
                return Err(self.refuse(start, "default values `...`", "write the values"));
            }
            Kind::Symbol(".") => {
                self.advance();
                let name = self.name("a name")?;
                return self.make(ExprKind::Name { name, global: true }, start, &[]);
            }
            Kind::Symbol("(") => return self.parenthesized(),
            Kind::Symbol("{") => return self.braces(),
            _ if self.is_name(0) => {
                let name = self.name("a name")?;
                return self.make(ExprKind::Name { name, global: false }, start, &[]);
            }
            _ => return Err(self.wrong("an expression")),
        };
        self.advance();
        self.make(kind, start, &[])
    }

    fn parenthesized(&mut self) -> Parsed<Expr> {
        let start = self.advance();
        let mut inner = self.expr()?;
        self.expect(")", "to close the parenthesis")?;
        inner.span = self.since(start);
        Ok(inner)
    }

    /// `{a, b}` or `{x = a, y = b}`.
    fn braces(&mut self) -> Parsed<Expr> {
        let start = self.advance();
        if self.is_name(0) && self.is_at(1, "=") {
            let fields = self.braced_list(|p| {
                let name = p.name("a field")?;
                p.expect("=", "behind the field")?;
                Ok((name, p.expr()?))
            })?;
            let depths: Vec<u16> = fields.iter().map(|(_, e)| e.depth).collect();
            return self.make(ExprKind::Record(fields), start, &depths);
        }
        let items = self.braced_list(Self::expr)?;
        let depths: Vec<u16> = items.iter().map(|e| e.depth).collect();
        self.make(ExprKind::List(items), start, &depths)
    }

    /// Members, indices, slices and calls behind an expression.
    fn postfix(&mut self, mut base: Expr) -> Parsed<Expr> {
        let start = base.span;
        loop {
            let depth = base.depth;
            if self.eat(".") {
                let member = self.name("a field or method")?;
                base = self.make(ExprKind::Member(Box::new(base), member), start, &[depth])?;
            } else if self.eat("[") {
                base = self.index(base, start)?;
            } else if self.is("(") {
                base = self.call(base, start, Vec::new())?;
            } else if self.is("<") && self.is_type_arguments() {
                self.advance();
                let types = self.type_arguments()?;
                base = self.call(base, start, types)?;
            } else {
                return Ok(base);
            }
        }
    }

    fn index(&mut self, base: Expr, start: Span) -> Parsed<Expr> {
        let first = self.boxed()?;
        let mut depths = vec![base.depth, first.depth];
        let kind = if self.eat(":") {
            let last = self.boxed()?;
            depths.push(last.depth);
            ExprKind::Slice(Box::new(base), first, last)
        } else {
            ExprKind::Index(Box::new(base), first)
        };
        self.expect("]", "to close the index")?;
        self.make(kind, start, &depths)
    }

    fn call(&mut self, callee: Expr, start: Span, types: Vec<TypeRef>) -> Parsed<Expr> {
        self.expect("(", "and arguments")?;
        let args: Vec<Arg> = self.arguments()?;
        let depths: Vec<u16> = args.iter().map(|a| a.value.depth).chain([callee.depth]).collect();
        self.make(ExprKind::Call { callee: Box::new(callee), types, args }, start, &depths)
    }

    /// Whether the `<` here opens type arguments of a call: nothing but types up to the `>` that
    /// closes it, and then a parenthesis.
    fn is_type_arguments(&self) -> bool {
        self.behind_type_arguments(0, true).is_some_and(|behind| self.is_at(behind, "("))
    }

    /// How many tokens on the `>` is that closes the `<` at `ahead`, plus one; `None` if what is
    /// between them is no list of types. `known`: names have to be of types that are declared, as
    /// in `f(a < b, c > (d))`, which has none.
    pub(super) fn behind_type_arguments(&self, ahead: usize, known: bool) -> Option<usize> {
        let mut open = 0usize;
        for at in ahead..ahead + MAX_LOOK_AHEAD {
            match &self.token(at).kind {
                Kind::Symbol("<") => open += 1,
                Kind::Symbol(">") => {
                    open -= 1;
                    if open == 0 {
                        return Some(at + 1);
                    }
                }
                Kind::Name(name) if known && !self.types.contains(name) => return None,
                Kind::Name(_) | Kind::Number(_) | Kind::Symbol("," | "(" | ")" | "[" | "]") => {}
                Kind::Word("bit" | "int" | "bool" | "error" | "void" | "_" | "varbit") => {}
                _ => return None,
            }
            // Numbers and parentheses are in widths only: `a < 3 > (b)` compares.
            let is_type = matches!(self.token(ahead + 1).kind, Kind::Name(_) | Kind::Word(_));
            if !is_type {
                return None;
            }
        }
        None
    }

    /// The sets of a `select` case or a table entry: one, or several in parentheses. Behind a
    /// parenthesis that turns out to hold a part of the first value, reading starts again.
    pub(super) fn key_sets(&mut self) -> Parsed<Vec<KeySet>> {
        if self.is("(") && self.is_tuple() {
            self.advance();
            return self.list(")", Self::key_set);
        }
        Ok(vec![self.key_set()?])
    }

    /// Whether the parenthesis here closes just before `:`. Then it holds one set or several.
    fn is_tuple(&self) -> bool {
        let mut open = 0usize;
        for at in 0.. {
            match &self.token(at).kind {
                Kind::Symbol("(" | "[" | "{") => open += 1,
                Kind::Symbol(")" | "]" | "}") => {
                    open = open.saturating_sub(1);
                    if open == 0 {
                        return self.is_at(at + 1, ":");
                    }
                }
                Kind::End | Kind::Symbol(";") => return false,
                _ => {}
            }
        }
        false
    }

    fn key_set(&mut self) -> Parsed<KeySet> {
        if self.is("default") || self.is("_") {
            self.advance();
            return Ok(KeySet::Any);
        }
        let first = self.expr()?;
        if self.eat("&&&") {
            return Ok(KeySet::Mask(first, self.expr()?));
        }
        if self.eat("..") {
            return Ok(KeySet::Range(first, self.expr()?));
        }
        Ok(KeySet::Value(first))
    }
}
