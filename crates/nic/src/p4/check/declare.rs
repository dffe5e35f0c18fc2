//! Declarations of the top level, and types as they are written.

use std::rc::Rc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::super::ast::{
    Annotation, Arg, BlockType, Constant, Declaration, Instance as AstInstance, Name, Param,
    Prototype, Record as AstRecord, TypeKind, TypeRef,
};
use super::super::diagnostic::did_you_mean;
use super::super::source::Span;
use super::call::arguments;
use super::scope::{Instance, InstanceKind, Symbol};
use super::types::{Bindings, Distinct, Enum, Extern, Field, Record, Type};
use super::{Checked, Checker, MAX_SLOTS};
use crate::ir::{self, Counter, CounterId, Register, RegisterId};

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
        let mut value = self.known(&given, "the value of a constant")?;
        if let Some((_, other)) =
            self.constants.iter().find(|(n, _)| top && **n == *constant.name.text)
        {
            value = self.replaced(&ty, *other, constant.value.span)?;
        }
        self.declare(&constant.name, Symbol::Constant { ty, value })
    }

    /// The value that whoever compiles the program gives a constant instead of its own.
    fn replaced(&mut self, ty: &Type, other: u128, span: Span) -> Checked<BigInt> {
        let value = BigInt::from(other);
        let fits = match ty {
            Type::Bool => other <= 1,
            Type::Int => true,
            Type::Fixed { width, signed } => super::value::fits(&value, *width, *signed),
            _ => false,
        };
        if fits {
            return Ok(value);
        }
        let message = format!("{other} does not fit {ty}, and is to replace this value");
        Err(self.error(span, message, "give a value that fits; bools are 0 and 1"))
    }

    /// Names of `constants` that the program does not have.
    pub(super) fn unknown_constants(&mut self) {
        let constants = self.constants;
        for (name, _) in constants {
            if matches!(self.scopes.find_global(name), Some(Symbol::Constant { .. })) {
                continue;
            }
            let known = self.scopes.names(|s| matches!(s, Symbol::Constant { .. }));
            let hint = did_you_mean(name, known, "only constants of the top level can be replaced");
            let span = Span { file: 0, start: 0, end: 0 };
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
        members: &[(Name, Option<super::super::ast::Expr>)],
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
        let known = self.program.errors.iter().position(|e| **e == *name.text);
        if known.is_some_and(|at| at >= ir::CORE_ERRORS.len()) {
            let message = format!("`error.{name}` is declared twice");
            return Err(self.error(name.span, message, "remove one"));
        }
        if self.program.errors.len() > 255 {
            return Err(self.refuse(name.span, "more than 256 errors", "use fewer"));
        }
        if known.is_none() {
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

    /// An instance of an extern or a control.
    pub(super) fn instance(&mut self, instance: &AstInstance) -> Checked<()> {
        let path = self.path(&instance.name.text);
        if let TypeKind::Name(name) = &instance.ty.kind
            && let Some(Symbol::Control(control)) = self.scopes.find(&name.text)
        {
            let control = Rc::clone(control);
            if let Some(arg) = instance.args.first() {
                let hint = "controls have no constructor parameters here";
                return Err(self.error(arg.value.span, "too many arguments", hint));
            }
            let kind = InstanceKind::Control(control);
            let made = Instance { ty: Type::Void, path, kind, span: instance.name.span };
            return self.declare(&instance.name, Symbol::Instance(Rc::new(made)));
        }
        let ty = self.type_of(&instance.ty)?;
        let Type::Extern(declared, types) = &ty else {
            let message = format!("{ty} cannot be instantiated");
            let hint = "instances are of externs and controls; variables are `Type name;`";
            return Err(self.error(instance.ty.span, message, hint));
        };
        if let Some(Type::Param(_)) = types.first() {
            let message = format!("`{}` needs type arguments", declared.name);
            let hint = format!("such as `{}<bit<16>>(...)`", declared.name);
            return Err(self.error(instance.ty.span, message, hint));
        }
        let (declared, types) = (Rc::clone(declared), types.clone());
        let args = self.constructor(&declared, &types, &instance.args, instance.ty.span)?;
        let kind = self.instance_kind(&declared, &types, args, &path, instance)?;
        let made = Instance { ty, path, kind, span: instance.name.span };
        self.declare(&instance.name, Symbol::Instance(Rc::new(made)))
    }

    /// `Register` and `Counter` are the machine's own; what else there is, the architecture supplies.
    fn instance_kind(
        &mut self,
        declared: &Extern,
        types: &[Type],
        args: Vec<u128>,
        path: &str,
        instance: &AstInstance,
    ) -> Checked<InstanceKind> {
        let place = self.place(instance.name.span);
        let size = || args.first().and_then(|&n| u32::try_from(n).ok());
        match (&*declared.name, types) {
            ("Register", [of]) => {
                let (Some(width), Some(size)) = (of.width(), size()) else {
                    let hint = "write one register for each field";
                    let what = format!("registers of {of}");
                    return Err(self.refuse(instance.ty.span, &what, hint));
                };
                let id = RegisterId(self.program.registers.len() as u32);
                let name = path.to_owned();
                self.program.registers.push(Register { name, width, size, place });
                Ok(InstanceKind::Register(id))
            }
            ("Counter", []) => {
                let id = CounterId(self.program.counters.len() as u32);
                let (name, size) = (path.to_owned(), size().unwrap_or(0));
                self.program.counters.push(Counter { name, size, place });
                Ok(InstanceKind::Counter(id))
            }
            _ => Ok(InstanceKind::Extern(args)),
        }
    }

    /// Check and evaluate the arguments of an extern's constructor.
    fn constructor(
        &mut self,
        declared: &Extern,
        types: &[Type],
        args: &[Arg],
        span: Span,
    ) -> Checked<Vec<u128>> {
        let constructors = declared.methods.iter().filter(|m| m.returns.is_none());
        let found = constructors.clone().find(|m| m.params.len() == args.len());
        let Some(constructor) = found.cloned() else {
            let counts: Vec<String> = constructors.map(|m| m.params.len().to_string()).collect();
            let message = format!("`{}` is not made of {}", declared.name, arguments(args.len()));
            let hint = if counts.is_empty() {
                "it has no constructor: the architecture makes it".to_owned()
            } else {
                format!("it takes {}", counts.join(" or "))
            };
            return Err(self.error(span, message, hint));
        };
        let bound: Bindings =
            declared.type_params.iter().cloned().zip(types.iter().cloned()).collect();
        let mut values = Vec::new();
        for (param, arg) in constructor.params.iter().zip(args) {
            let wanted = self.with_types(&bound, |c| c.type_of(&param.ty))?.substitute(&bound);
            let given = self.expr(&arg.value)?;
            let given = self.convert(given, &wanted)?;
            let value = self.known(&given, "an argument of a constructor")?;
            let width = wanted.width().unwrap_or(ir::MAX_WIDTH);
            values.push(super::value::as_bits(&value, width));
        }
        Ok(values)
    }

    /// Do something where these type parameters are known.
    pub(super) fn with_types<T>(
        &mut self,
        types: &[(Rc<str>, Type)],
        inner: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.scopes.open();
        for (name, _) in types {
            // Two of one name were reported where they are declared.
            let nowhere = Span { file: 0, start: 0, end: 0 };
            let _ = self.scopes.declare(name, Symbol::Type(Type::Param(Rc::clone(name))), nowhere);
        }
        let done = inner(self);
        self.scopes.close();
        done
    }

    /// What a type as written is.
    pub(super) fn type_of(&mut self, ty: &TypeRef) -> Checked<Type> {
        match &ty.kind {
            TypeKind::Bool => Ok(Type::Bool),
            TypeKind::Int => Ok(Type::Int),
            TypeKind::Error => Ok(Type::Error),
            TypeKind::Void => Ok(Type::Void),
            TypeKind::Any => Ok(Type::Param("_".into())),
            TypeKind::Fixed { width, signed } => {
                let given = self.expr(width)?;
                let value = self.known(&given, "a width")?;
                match value.to_u16() {
                    Some(width) if (1..=ir::MAX_WIDTH).contains(&width) => {
                        Ok(Type::Fixed { width, signed: *signed })
                    }
                    _ => {
                        let what = format!("{value} bits");
                        let instead = format!("1 to {} bits; cut it into fields", ir::MAX_WIDTH);
                        Err(self.refuse(width.span, &what, instead))
                    }
                }
            }
            TypeKind::Name(name) => self.named_type(name, None),
            TypeKind::Specialized(name, args) => {
                let args = args.iter().map(|a| self.type_of(a)).collect::<Checked<Vec<_>>>()?;
                self.named_type(name, Some(args))
            }
            TypeKind::Stack(of, size) => {
                let given = self.expr(size)?;
                let value = self.known(&given, "the size of a header stack")?;
                let of_type = self.type_of(of)?;
                let Type::Header(record) = of_type else {
                    let message = format!("a stack of {of_type}");
                    return Err(self.error(of.span, message, "stacks are of headers"));
                };
                match value.to_u32().filter(|n| (1..=64).contains(n)) {
                    Some(size) => Ok(Type::Stack(record, size)),
                    None => {
                        let what = format!("a stack of {value} headers");
                        Err(self.refuse(size.span, &what, "1 to 64"))
                    }
                }
            }
        }
    }

    fn named_type(&mut self, name: &Name, args: Option<Vec<Type>>) -> Checked<Type> {
        let (params, ty) = match self.scopes.find(&name.text) {
            Some(Symbol::Type(Type::Extern(e, params))) if args.is_some() => {
                let with = Type::Extern(Rc::clone(e), args.clone().unwrap_or_default());
                (params.len(), with)
            }
            Some(Symbol::BlockType(b)) => {
                let with = Type::Block(Rc::clone(b), args.clone().unwrap_or_default());
                (b.type_params.len(), with)
            }
            Some(Symbol::Type(ty)) => (0, ty.clone()),
            Some(other) => {
                let other = other.clone();
                return Err(self.misused(name, &other, "", "a type"));
            }
            None => {
                let known = self.scopes.names(|s| matches!(s, Symbol::Type(_)));
                let hint = did_you_mean(&name.text, known, "types are declared before their use");
                if self.scopes.is_later(&name.text) {
                    return Err(self.unknown(name));
                }
                return Err(self.error(name.span, format!("unknown type `{name}`"), hint));
            }
        };
        let given = args.map_or(params, |a| a.len());
        if given != params {
            let message = format!("`{name}` has {params} type parameters, not {given}");
            return Err(self.error(name.span, message, "give one type for each"));
        }
        Ok(ty)
    }

    /// `@latency(2)`: cycles until the results are there.
    pub(super) fn latency(&mut self, annotations: &[Annotation]) -> u32 {
        let found = annotations.iter().find(|a| &*a.name.text == "latency");
        let number = found.and_then(|a| a.number.as_ref());
        number.and_then(|n| n.value.to_u32()).unwrap_or(0)
    }
}
