//! What stands at the top level.

use std::rc::Rc;

use super::super::ast::{
    Annotation, BlockKind, BlockType, Declaration, Field, Instance, Name, Prototype, Record,
};
use super::super::source::Span;
use super::super::token::Kind;
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn declaration(&mut self) -> Parsed<Declaration> {
        let annotations = self.annotations()?;
        let start = self.span();
        let word = match self.kind() {
            Kind::Word(word) => *word,
            _ => "",
        };
        match word {
            "const" => self.constant().map(Declaration::Constant),
            "typedef" => self.typedef(false),
            "type" if !self.is_at(1, "(") => self.typedef(true),
            "header" => self.record().map(Declaration::Header),
            "struct" => self.record().map(Declaration::Struct),
            "enum" => self.enumeration(),
            "error" if self.is_at(1, "{") => {
                self.advance();
                self.identifiers().map(Declaration::Errors)
            }
            "match_kind" => {
                self.advance();
                self.identifiers().map(Declaration::MatchKinds)
            }
            "extern" => self.extern_declaration(annotations),
            "action" => self.action().map(|a| Declaration::Action(Rc::new(a))),
            "parser" => self.block_or_type(BlockKind::Parser),
            "control" => self.block_or_type(BlockKind::Control),
            "package" => self.block_or_type(BlockKind::Package),
            "header_union" => {
                let instead = "use one header for each alternative, valid or not";
                Err(self.refuse(start, "header unions", instead))
            }
            "value_set" => {
                Err(self.refuse(start, "parser value sets", "write the values in `select`"))
            }
            "table" | "state" if self.is_name(1) => {
                let message = format!("a {word} at the top level");
                let hint = "tables stand in a control, states in a parser";
                Err(self.messages.error(start, message, hint))
            }
            _ => self.instance_or_function(),
        }
    }

    /// `Pipeline(P(), C()) main;`, or what looks like a function.
    fn instance_or_function(&mut self) -> Parsed<Declaration> {
        let start = self.span();
        let is_type =
            self.is_name(0) || matches!(self.kind(), Kind::Word("void" | "bit" | "bool" | "int"));
        if !is_type {
            return Err(self.wrong("a declaration"));
        }
        if self.is_variable() || self.is("void") {
            let ty = self.type_ref()?;
            let name = self.name("a name")?;
            if self.is("(") || self.is("<") {
                let instead = "write an action with an `out` parameter";
                return Err(self.refuse(self.since(start), "functions with a body", instead));
            }
            let message = format!("`{name}` is a variable at the top level");
            let hint = "variables stand in parsers, controls and actions; or write `const`";
            let span = self.since(ty.span);
            return Err(self.messages.error(span, message, hint));
        }
        self.instance().map(Declaration::Instance)
    }

    /// `register<bit<16>>(16) credit;`
    pub(super) fn instance(&mut self) -> Parsed<Instance> {
        let ty = self.type_ref()?;
        self.expect("(", "and arguments, or a name, behind the type")?;
        let args = self.arguments()?;
        let name = self.name("the instance's name")?;
        if self.is("=") {
            let span = self.span();
            return Err(self.refuse(span, "abstract methods", "use an extern without them"));
        }
        self.expect(";", "behind the instance")?;
        Ok(Instance { ty, args, name })
    }

    fn typedef(&mut self, distinct: bool) -> Parsed<Declaration> {
        self.advance();
        if matches!(self.kind(), Kind::Word("struct" | "header" | "enum" | "header_union")) {
            let span = self.span();
            let instead = "declare it, then name it";
            return Err(self.refuse(span, "a declaration within `typedef`", instead));
        }
        let ty = self.type_ref()?;
        let name = self.type_name("the type's name")?;
        self.expect(";", "behind the type")?;
        Ok(Declaration::Typedef { ty, name, distinct })
    }

    /// A header or a struct.
    fn record(&mut self) -> Parsed<Record> {
        self.advance();
        let name = self.type_name("the type's name")?;
        if self.is("<") {
            let span = self.span();
            let instead = "write one type for each use";
            return Err(self.refuse(span, "headers and structs with type parameters", instead));
        }
        self.expect("{", "and fields")?;
        let fields = self.items(|p| {
            p.annotations()?;
            let ty = p.type_ref()?;
            let name = p.name("the field's name")?;
            p.expect(";", "behind the field")?;
            Ok(Some(Field { ty, name }))
        })?;
        Ok(Record { name, fields })
    }

    /// `enum Color { Red, Green }`, `enum bit<8> Type { A = 1 }`.
    fn enumeration(&mut self) -> Parsed<Declaration> {
        self.advance();
        let has_type = !(self.is_name(0) && self.is_at(1, "{"));
        let underlying = if has_type { Some(self.type_ref()?) } else { None };
        let name = self.type_name("the enumeration's name")?;
        self.expect("{", "and members")?;
        let members = self.braced_list(|p| {
            let member = p.name("a member")?;
            let value = if p.eat("=") { Some(p.expr()?) } else { None };
            Ok((member, value))
        })?;
        Ok(Declaration::Enum { name, underlying, members })
    }

    /// `{ A, B }`.
    fn identifiers(&mut self) -> Parsed<Vec<Name>> {
        self.expect("{", "and names")?;
        self.braced_list(|p| p.name("a name"))
    }

    fn extern_declaration(&mut self, annotations: Vec<Annotation>) -> Parsed<Declaration> {
        self.advance();
        let is_object = self.is_name(0) && (self.is_at(1, "{") || self.is_at(1, "<")) && {
            let behind =
                if self.is_at(1, "<") { self.behind_type_arguments(1, false) } else { Some(1) };
            behind.is_some_and(|at| self.is_at(at, "{"))
        };
        if !is_object {
            let function = self.prototype(annotations)?;
            self.expect(";", "behind the function")?;
            return Ok(Declaration::Function(function));
        }
        let name = self.type_name("the extern's name")?;
        let type_params = self.type_parameters()?;
        self.expect("{", "and methods")?;
        let methods = self.items(|p| {
            let annotations = p.annotations()?;
            if p.is("abstract") {
                let span = p.span();
                return Err(p.refuse(span, "abstract methods", "use an extern without them"));
            }
            let method = p.prototype(annotations)?;
            p.expect(";", "behind the method")?;
            Ok(Some(method))
        })?;
        Ok(Declaration::Extern { name, type_params, methods })
    }

    /// A function, a method, or (a name and a parenthesis) a constructor.
    fn prototype(&mut self, annotations: Vec<Annotation>) -> Parsed<Prototype> {
        if self.is_name(0) && self.is_at(1, "(") {
            let name = self.name("a constructor")?;
            self.advance();
            let params = self.parameters()?;
            return Ok(Prototype {
                annotations,
                returns: None,
                name,
                type_params: Vec::new(),
                params,
            });
        }
        let returns = Some(self.type_ref()?);
        let name = self.name("the name of a function or method")?;
        let type_params = self.type_parameters()?;
        self.expect("(", "and parameters")?;
        let params = self.parameters()?;
        Ok(Prototype { annotations, returns, name, type_params, params })
    }

    /// A parser, control or package: its type if `;` follows, else the thing itself.
    fn block_or_type(&mut self, kind: BlockKind) -> Parsed<Declaration> {
        let start = self.advance();
        let name = self.type_name("a name")?;
        let type_params = self.type_parameters()?;
        self.expect("(", "and parameters")?;
        let params = self.parameters()?;
        if self.eat(";") {
            return Ok(Declaration::BlockType(BlockType { kind, name, type_params, params }));
        }
        self.check_block_head(start, kind, &type_params)?;
        match kind {
            BlockKind::Parser => self.parser(name, params),
            BlockKind::Control => self.control(name, params),
            BlockKind::Package => Err(self.wrong("`;` behind the package")),
        }
    }

    fn check_block_head(&mut self, start: Span, kind: BlockKind, types: &[Name]) -> Parsed<()> {
        if let [first, ..] = types {
            let hint = "only their declared types have type parameters; name the types";
            return Err(self.messages.error(first.span, "a block with type parameters", hint));
        }
        if self.is("(") && kind != BlockKind::Package {
            let span = self.since(start);
            let instead = "use a constant of the program, or a parameter of `apply`";
            return Err(self.refuse(span, "constructor parameters of blocks", instead));
        }
        Ok(())
    }
}
