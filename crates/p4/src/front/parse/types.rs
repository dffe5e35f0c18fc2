//! Types as they are written.

use std::rc::Rc;

use num_bigint::BigInt;

use super::super::ast::{Direction, Expr, ExprKind, Name, Param, TypeKind, TypeRef};
use super::super::limits::MAX_LOOK_AHEAD;
use super::super::source::Span;
use super::super::token::{Kind, Literal};
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn type_ref(&mut self) -> Parsed<TypeRef> {
        self.nested(Self::any_type)
    }

    fn any_type(&mut self) -> Parsed<TypeRef> {
        let start = self.span();
        let kind = match self.kind().clone() {
            Kind::Word("bool") => TypeKind::Bool,
            Kind::Word("error") => TypeKind::Error,
            Kind::Word("void") => TypeKind::Void,
            Kind::Word("_") => TypeKind::Any,
            Kind::Word(word @ ("bit" | "int")) => {
                self.advance();
                return self.fixed(start, word == "int");
            }
            Kind::Word(word @ ("varbit" | "tuple" | "list" | "string" | "match_kind")) => {
                let instead = match word {
                    "varbit" => "use a header of fixed length for each length that occurs",
                    "tuple" | "list" => "declare a struct",
                    _ => "leave it out: nothing here works on it",
                };
                return Err(self.refuse(start, &format!("the type `{word}`"), instead));
            }
            _ if self.is_name(0) => return self.named_type(start),
            _ => return Err(self.wrong("a type")),
        };
        self.advance();
        Ok(TypeRef { kind, span: start })
    }

    /// Behind `bit` or `int`: `<8>`, `<(W)>`, or nothing.
    fn fixed(&mut self, start: Span, signed: bool) -> Parsed<TypeRef> {
        if !self.eat("<") {
            // `bit` alone is `bit<1>` (section 7.1.6.2), `int` alone of arbitrary precision.
            let one = Literal { value: BigInt::from(1), width: None };
            let width = Expr { kind: ExprKind::Number(one), span: start, depth: 1 };
            let kind = if signed {
                TypeKind::Int
            } else {
                TypeKind::Fixed { width: Box::new(width), signed }
            };
            return Ok(TypeRef { kind, span: start });
        }
        let width = if self.eat("(") {
            let width = self.expr()?;
            self.expect(")", "behind the width")?;
            width
        } else {
            self.plain_width()?
        };
        self.expect(">", "behind the width")?;
        let kind = TypeKind::Fixed { width: Box::new(width), signed };
        Ok(TypeRef { kind, span: self.since(start) })
    }

    fn plain_width(&mut self) -> Parsed<Expr> {
        let span = self.span();
        if let Kind::Number(literal) = self.kind().clone() {
            self.advance();
            return Ok(Expr { kind: ExprKind::Number(literal), span, depth: 1 });
        }
        if let Kind::Name(name) = self.kind() {
            let hint = format!("write `<({name})>`: only a number needs no parentheses");
            return Err(self.messages.error(span, "a width that is not a number", hint));
        }
        Err(self.wrong("a width"))
    }

    fn named_type(&mut self, start: Span) -> Parsed<TypeRef> {
        let name = self.name("a type")?;
        let mut kind = TypeKind::Name(name.clone());
        if self.eat("<") {
            kind = TypeKind::Specialized(name, self.type_arguments()?);
        }
        let mut found = TypeRef { kind, span: self.since(start) };
        if self.eat("[") {
            let size = Box::new(self.expr()?);
            self.expect("]", "behind the size of a header stack")?;
            let kind = TypeKind::Stack(Box::new(found), size);
            found = TypeRef { kind, span: self.since(start) };
        }
        Ok(found)
    }

    /// Behind the `<`, up to and with the `>`.
    pub(super) fn type_arguments(&mut self) -> Parsed<Vec<TypeRef>> {
        self.list(">", Self::type_ref)
    }

    /// `<T, S>`, if it is there.
    pub(super) fn type_parameters(&mut self) -> Parsed<Vec<Name>> {
        if !self.eat("<") {
            return Ok(Vec::new());
        }
        self.list(">", |p| {
            let name = p.name("a type parameter")?;
            if p.types.insert(Rc::clone(&name.text)) {
                p.type_params.push(Rc::clone(&name.text));
            }
            Ok(name)
        })
    }

    /// Behind the opening parenthesis.
    pub(super) fn parameters(&mut self) -> Parsed<Vec<Param>> {
        self.list(")", |p| {
            p.annotations()?;
            let direction = match p.kind() {
                Kind::Word("in") => Direction::In,
                Kind::Word("out") => Direction::Out,
                Kind::Word("inout") => Direction::InOut,
                _ => Direction::None,
            };
            if direction != Direction::None {
                p.advance();
            }
            let ty = p.type_ref()?;
            let name = p.name("the parameter's name")?;
            if p.is("=") {
                let span = p.span();
                let instead = "give the argument at every call";
                return Err(p.refuse(span, "default values of parameters", instead));
            }
            Ok(Param { direction, ty, name })
        })
    }

    /// Whether a type and a name stand here: a declaration of a variable.
    pub(super) fn is_variable(&self) -> bool {
        match &self.token(0).kind {
            Kind::Word("error") => !self.is_at(1, "."),
            Kind::Word("bit" | "int" | "bool" | "varbit" | "tuple" | "string" | "list") => {
                !self.is_at(1, ".") && !self.is_at(1, "=") && !self.is_at(1, "(")
            }
            _ if self.is_name(0) => {
                let mut behind = Some(1);
                if self.is_at(1, "<") {
                    behind = self.behind_type_arguments(1, false);
                }
                if let Some(at) = behind.filter(|&at| self.is_at(at, "[")) {
                    behind = self.behind_index(at);
                }
                behind.is_some_and(|at| self.is_name(at))
            }
            _ => false,
        }
    }

    /// How many tokens on the `]` is that closes the `[` at `ahead`, plus one.
    fn behind_index(&self, ahead: usize) -> Option<usize> {
        let mut open = 0usize;
        for at in ahead..ahead + MAX_LOOK_AHEAD {
            match &self.token(at).kind {
                Kind::Symbol("[") => open += 1,
                Kind::Symbol("]") => {
                    open -= 1;
                    if open == 0 {
                        return Some(at + 1);
                    }
                }
                Kind::Symbol(";" | "{" | "}") | Kind::End => return None,
                _ => {}
            }
        }
        None
    }
}
