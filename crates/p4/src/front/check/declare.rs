//! Declarations of the top level, and what is in them.

use std::rc::Rc;

use num_bigint::BigInt;

use super::super::ast::{
    BlockType, Constant, Declaration, Expr, Name, Param, Prototype, Record as AstRecord, TypeRef,
};
use super::super::diagnostic::did_you_mean;
use super::super::limits::{MAX_PARSER_ERRORS, MAX_SLOTS};
use super::super::source::Span;
use super::scope::Symbol;
use super::types::{Distinct, Enum, Extern, Field, Record, Type};
use super::value::{Value, fits};
use super::{Checked, Checker};

impl Checker<'_> {
    pub(super) fn top_level(&mut self, declarations: &[Declaration]) {
        self.scopes.open();
        for declaration in declarations {
            let done = self.declaration(declaration);
            // What is wrong has been reported; the rest is looked at all the same.
            let _ = declaration.name().map_or(done, |name| self.or_broken(name, done));
        }
    }

    fn declaration(&mut self, declaration: &Declaration) -> Checked<()> {
        match declaration {
            Declaration::Constant(constant) => self.constant(constant, true),
            Declaration::Typedef { ty, name, distinct } => self.typedef(ty, name, *distinct),
            Declaration::Header(record) => self.header(record),
            Declaration::Struct(record) => self.structure(record),
            Declaration::Enum { name, underlying, members } => {
                let ty = self.enumeration(name, underlying.as_ref(), members)?;
                self.declare(name, Symbol::Type(ty))
            }
            Declaration::Errors(names) => names.iter().try_for_each(|n| self.error_name(n)),
            Declaration::MatchKinds(names) => {
                names.iter().try_for_each(|n| self.declare(n, Symbol::MatchKind))
            }
            Declaration::Function(function) => {
                if let Some(Symbol::Function(_)) = self.scopes.find_global(&function.name.text) {
                    let what = format!("two functions `{}`", function.name);
                    return Err(self.refuse(function.name.span, &what, "give each its own name"));
                }
                self.prototype(function, &[])?;
                self.declare(&function.name, Symbol::Function(Rc::new(function.clone())))
            }
            Declaration::Extern { name, type_params, methods } => {
                self.extern_object(name, type_params, methods)
            }
            Declaration::BlockType(block) => self.block_type(block),
            Declaration::Action(action) => {
                self.declare(&action.name, Symbol::Action(Rc::clone(action)))
            }
            Declaration::Parser(parser) => {
                self.declare(&parser.name, Symbol::Parser(Rc::clone(parser)))
            }
            Declaration::Control(control) => {
                self.declare(&control.name, Symbol::Control(Rc::clone(control)))
            }
            Declaration::Instance(instance) if &*instance.name.text == "main" => {
                self.main(instance)
            }
            Declaration::Instance(instance) => self.instance(instance),
        }
    }

    /// Give a name its meaning from here to the end of the scope.
    pub(super) fn declare(&mut self, name: &Name, symbol: Symbol) -> Checked<()> {
        let is_value = matches!(symbol, Symbol::Variable { .. } | Symbol::Constant { .. });
        if is_value && matches!(self.scopes.find(&name.text), Some(Symbol::Type(_))) {
            // `(name) -x` is read as a cast where `name` is a type.
            let instead = "choose another name";
            let what = format!("the variable `{name}`, which is the name of a type");
            return Err(self.refuse(name.span, &what, instead));
        }
        match self.scopes.declare(&name.text, symbol, name.span) {
            Ok(()) => Ok(()),
            Err(first) => {
                let place = self.messages.sources.place(first);
                let hint = format!("it is declared at {place}; choose another name");
                Err(self.error(name.span, format!("`{name}` is declared twice"), hint))
            }
        }
    }

    pub(super) fn constant(&mut self, constant: &Constant, top: bool) -> Checked<()> {
        let ty = self.type_of(&constant.ty)?;
        let given = self.expr(&constant.value)?;
        let given = self.convert(given, &ty)?;
        self.all_known(&given, "the value of a constant")?;
        let mut value = given.value;
        if let Some((_, other)) =
            self.constants.iter().find(|(n, _)| top && **n == *constant.name.text)
        {
            value = Value::Known(self.replaced(&ty, *other, constant.value.span)?);
        }
        self.declare(&constant.name, Symbol::Constant { ty, value })
    }

    /// The value that whoever compiles the program gives a constant instead of its own.
    fn replaced(&mut self, ty: &Type, other: i128, span: Span) -> Checked<BigInt> {
        let value = BigInt::from(other);
        let fits = match ty {
            Type::Bool => other == 0 || other == 1,
            Type::Int => true,
            Type::Fixed { width, signed } => fits(&value, *width, *signed),
            _ => false,
        };
        if fits {
            return Ok(value);
        }
        let message = format!("{other} does not fit {ty}, and is to replace this value");
        Err(self.error(span, message, "give a value that fits; bools are 0 and 1"))
    }

    /// Names of `constants` that the program does not have, or that are given twice.
    pub(super) fn unknown_constants(&mut self) {
        let constants = self.constants;
        let span = Span { file: 0, start: 0, end: 0 };
        for (n, (name, _)) in constants.iter().enumerate() {
            if constants.iter().take(n).any(|(before, _)| before == name) {
                let message = format!("two values are to replace that of `{name}`");
                self.error(span, message, "give one");
            }
            let found = self.scopes.find_global(name);
            if matches!(found, Some(Symbol::Constant { .. } | Symbol::Broken)) {
                continue;
            }
            let known = self.scopes.names(|s| matches!(s, Symbol::Constant { .. }));
            let hint = did_you_mean(name, known, "only constants of the top level can be replaced");
            self.error(span, format!("the program has no constant `{name}` to replace"), hint);
        }
    }

    fn typedef(&mut self, ty: &TypeRef, name: &Name, distinct: bool) -> Checked<()> {
        let mut of = self.type_of(ty)?;
        if distinct {
            if of.width().is_none() {
                let hint = "`type` makes a new type of numbers, bools and enums";
                return Err(self.error(ty.span, format!("no new type can be made of {of}"), hint));
            }
            of = Type::Distinct(Rc::new(Distinct { name: Rc::clone(&name.text), of }));
        }
        self.declare(name, Symbol::Type(of))
    }

    fn fields(&mut self, record: &AstRecord) -> Checked<Vec<Field>> {
        let mut fields: Vec<Field> = Vec::new();
        for field in &record.fields {
            let ty = self.type_of(&field.ty)?;
            if fields.iter().any(|f| f.name == field.name.text) {
                let message = format!("two fields `{}`", field.name);
                return Err(self.error(field.name.span, message, "rename one"));
            }
            fields.push(Field { name: Rc::clone(&field.name.text), ty, span: field.name.span });
        }
        Ok(fields)
    }

    fn header(&mut self, record: &AstRecord) -> Checked<()> {
        let fields = self.fields(record)?;
        let odd = fields.iter().find(|f| {
            let counted = matches!(&f.ty, Type::Enum(e) if e.underlying.is_none());
            f.ty.width().is_none() || matches!(f.ty, Type::Error) || counted
        });
        if let Some(field) = odd {
            if let Type::Struct(_) = field.ty {
                return Err(self.refuse(field.span, "a struct in a header", "write its fields"));
            }
            let message = format!("a field of a header cannot have the type {}", field.ty);
            let hint = "headers have `bit<W>`, `int<W>`, `bool` and enums of a given type";
            return Err(self.error(field.span, message, hint));
        }
        let bits: u32 = fields.iter().filter_map(|f| f.ty.width()).map(u32::from).sum();
        if !bits.is_multiple_of(8) {
            let message = format!("header `{}` has {bits} bits, not whole bytes", record.name);
            self.messages.warn(record.name.span, message, "add a padding field");
        }
        let slots = fields.len();
        let ty =
            Type::Header(Rc::new(Record { name: Rc::clone(&record.name.text), fields, slots }));
        self.declare(&record.name, Symbol::Type(ty))
    }

    fn structure(&mut self, record: &AstRecord) -> Checked<()> {
        let fields = self.fields(record)?;
        let odd = fields.iter().find(|f| {
            f.ty.width().is_none()
                && !matches!(f.ty, Type::Header(_) | Type::Struct(_) | Type::Stack(..))
        });
        if let Some(field) = odd {
            let message = format!("a field of a struct cannot have the type {}", field.ty);
            let hint = "structs have numbers, bools, enums, headers, stacks and structs";
            return Err(self.error(field.span, message, hint));
        }
        let slots = fields.iter().fold(0usize, |sum, f| sum.saturating_add(f.ty.slots()));
        if slots > MAX_SLOTS {
            let message = format!("struct `{}` has more than {MAX_SLOTS} fields", record.name);
            return Err(self.error(record.name.span, message, "use smaller structs"));
        }
        let ty =
            Type::Struct(Rc::new(Record { name: Rc::clone(&record.name.text), fields, slots }));
        self.declare(&record.name, Symbol::Type(ty))
    }

    fn enumeration(
        &mut self,
        name: &Name,
        underlying: Option<&TypeRef>,
        members: &[(Name, Option<Expr>)],
    ) -> Checked<Type> {
        let underlying = underlying.map(|ty| self.type_of(ty)).transpose()?;
        if let Some(ty) = underlying.as_ref().filter(|t| !matches!(t, Type::Fixed { .. })) {
            let message = format!("an enum cannot have values of type {ty}");
            return Err(self.error(name.span, message, "write `enum bit<8> Name { A = 1 }`"));
        }
        let mut all: Vec<(Rc<str>, BigInt)> = Vec::new();
        for (member, value) in members {
            if all.iter().any(|(known, _)| *known == member.text) {
                let message = format!("two members `{member}`");
                return Err(self.error(member.span, message, "rename one"));
            }
            let value = match (&underlying, value) {
                (None, None) => BigInt::from(all.len()),
                (Some(ty), Some(value)) => {
                    let given = self.expr(value)?;
                    let given = self.convert(given, ty)?;
                    self.known(&given, "the value of a member")?
                }
                (Some(_), None) => {
                    let message = format!("`{member}` has no value");
                    let hint = "members of an enum of a given type have values: `A = 1`";
                    return Err(self.error(member.span, message, hint));
                }
                (None, Some(value)) => {
                    let hint = format!("give the enum a type: `enum bit<8> {name} {{ ... }}`");
                    return Err(self.error(value.span, "a value in an enum without a type", hint));
                }
            };
            all.push((Rc::clone(&member.text), value));
        }
        let counted = u16::try_from(all.len().next_power_of_two().trailing_zeros().max(1));
        let width = underlying.as_ref().and_then(Type::width).or(counted.ok()).unwrap_or(16);
        Ok(Type::Enum(Rc::new(Enum {
            name: Rc::clone(&name.text),
            members: all,
            underlying,
            width,
        })))
    }

    fn error_name(&mut self, name: &Name) -> Checked<()> {
        if self.errors.contains(&name.text) {
            let message = format!("`error.{name}` is declared twice");
            return Err(self.error(name.span, message, "remove one"));
        }
        if self.program.errors.len() >= MAX_PARSER_ERRORS {
            let what = format!("more than {MAX_PARSER_ERRORS} errors");
            return Err(self.refuse(name.span, &what, "use fewer"));
        }
        self.errors.push(Rc::clone(&name.text));
        if !self.program.errors.iter().any(|e| **e == *name.text) {
            self.program.errors.push(name.text.to_string());
        }
        Ok(())
    }

    fn extern_object(
        &mut self,
        name: &Name,
        type_params: &[Name],
        methods: &[Prototype],
    ) -> Checked<()> {
        let declared = Rc::new(Extern {
            name: Rc::clone(&name.text),
            type_params: type_params.iter().map(|p| Rc::clone(&p.text)).collect(),
            methods: methods.to_vec(),
        });
        let params = declared.type_params.iter().map(|p| Type::Param(Rc::clone(p))).collect();
        self.declare(name, Symbol::Type(Type::Extern(Rc::clone(&declared), params)))?;
        methods.iter().try_for_each(|m| self.prototype(m, type_params))
    }

    /// The types in a function's head are looked up where it is called; here, whether they exist.
    fn prototype(&mut self, function: &Prototype, outer: &[Name]) -> Checked<()> {
        self.scopes.open();
        let done = self.heads(
            function.returns.as_ref(),
            &function.params,
            &[outer, &function.type_params],
        );
        self.scopes.close();
        done
    }

    fn heads(
        &mut self,
        returns: Option<&TypeRef>,
        params: &[Param],
        types: &[&[Name]],
    ) -> Checked<()> {
        types.iter().copied().flatten().try_for_each(|t| self.type_parameter(t))?;
        if let Some(ty) = returns {
            self.type_of(ty)?;
        }
        self.distinct_names(params)?;
        params.iter().try_for_each(|p| self.type_of(&p.ty).map(|_| ()))
    }

    pub(super) fn type_parameter(&mut self, name: &Name) -> Checked<()> {
        self.declare(name, Symbol::Type(Type::Param(Rc::clone(&name.text))))
    }

    pub(super) fn distinct_names(&mut self, params: &[Param]) -> Checked<()> {
        for (n, param) in params.iter().enumerate() {
            if params.iter().take(n).any(|p| p.name.text == param.name.text) {
                let message = format!("two parameters `{}`", param.name);
                return Err(self.error(param.name.span, message, "rename one"));
            }
        }
        Ok(())
    }

    fn block_type(&mut self, block: &BlockType) -> Checked<()> {
        self.scopes.open();
        let done = self.heads(None, &block.params, &[&block.type_params]);
        self.scopes.close();
        done?;
        self.declare(&block.name, Symbol::BlockType(Rc::new(block.clone())))
    }
}
