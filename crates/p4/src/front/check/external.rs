//! Calls of externs: functions and methods that the architecture supplies, registers and counters
//! (sections 7.2.10, 8.20 and 8.22).

use std::rc::Rc;

use num_traits::ToPrimitive;

use super::super::ast::{Arg, Direction, Name, Prototype, TypeRef};
use super::super::diagnostic::did_you_mean;
use super::super::source::Span;
use super::call::{nothing, type_parameters};
use super::expr::Evaluated;
use super::scope::{Instance, InstanceKind};
use super::types::{Bindings, Type};
use super::value::{Storage, Typed, Value};
use super::{Checked, Checker, Within};
use crate::ir::{self, Extern, ExternId, SlotId, StmtKind};

/// What an extern is called by: its kind, the instance's name, the method's, and its constructor's
/// arguments.
struct Unit<'a> {
    kind: &'a str,
    instance: &'a str,
    method: &'a str,
    constructor: Vec<u128>,
    span: Span,
}

impl Checker<'_> {
    pub(super) fn function(
        &mut self,
        function: &Prototype,
        types: &[TypeRef],
        args: &[Arg],
        into: Option<(Type, Storage)>,
        span: Span,
    ) -> Checked<Typed> {
        if &*function.name.text == "verify" {
            self.no_types(types)?;
            return self.verify(function, args, span);
        }
        let bound = self.type_arguments(function, types, span)?;
        let unit = Unit {
            kind: &function.name.text,
            instance: "",
            method: "",
            constructor: Vec::new(),
            span: function.name.span,
        };
        self.extern_call(&unit, function, bound, args, into, span)
    }

    pub(super) fn instance_method(
        &mut self,
        instance: &Instance,
        method: &Name,
        given_types: &[TypeRef],
        args: &[Arg],
        into: Option<(Type, Storage)>,
        span: Span,
    ) -> Checked<Typed> {
        let Type::Extern(declared, types) = &instance.ty else { return Ok(nothing(span)) };
        let methods = declared.methods.iter().filter(|m| m.returns.is_some());
        let same: Vec<_> = methods.clone().filter(|m| m.name.text == method.text).collect();
        let found = same.iter().find(|m| m.params.len() == args.len()).or(same.first());
        let Some(found) = found else {
            let known = methods.map(|m| &*m.name.text);
            let hint = did_you_mean(&method.text, known, "");
            let message = format!("`{}` has no method `{method}`", declared.name);
            return Err(self.error(method.span, message, hint));
        };
        let explicit = self.type_arguments(found, given_types, span)?;
        let of_object = declared.type_params.iter().cloned().zip(types.iter().cloned());
        let bound = of_object.chain(explicit).collect();
        let constructor = match &instance.kind {
            InstanceKind::Register(register) => {
                return self.register(*register, &types[0], found, args, span);
            }
            InstanceKind::Counter(counter) => {
                let given = self.evaluated(&found.params, args, &method.text, span)?;
                let [index] = &given[..] else { return Ok(nothing(span)) };
                let index = self.convert(index.clone(), &Type::bits(32))?;
                let index = self.scalar(&index)?;
                self.emit(StmtKind::Count { counter: *counter, index }, span)?;
                return Ok(nothing(span));
            }
            InstanceKind::Extern(constructor) => constructor.clone(),
            InstanceKind::Control(_) => return Ok(nothing(span)),
        };
        let unit = Unit {
            kind: &declared.name,
            instance: &instance.path,
            method: &method.text,
            constructor,
            span: instance.span,
        };
        self.extern_call(&unit, found, bound, args, into, span)
    }

    /// What the type parameters of a function or method stand for, if the call says so: all or
    /// none.
    fn type_arguments(
        &mut self,
        of: &Prototype,
        given: &[TypeRef],
        span: Span,
    ) -> Checked<Bindings> {
        let wanted = of.type_params.len();
        if !given.is_empty() && given.len() != wanted {
            let message =
                format!("`{}` has {}, not {}", of.name, type_parameters(wanted), given.len());
            return Err(self.error(span, message, "give one type for each, or none"));
        }
        let names = of.type_params.iter().map(|p| Rc::clone(&p.text));
        names.zip(given).map(|(name, ty)| Ok((name, self.type_of(ty)?))).collect()
    }

    /// `read` and `write` of a register.
    fn register(
        &mut self,
        register: ir::RegisterId,
        of: &Type,
        method: &Prototype,
        args: &[Arg],
        span: Span,
    ) -> Checked<Typed> {
        let given = self.evaluated(&method.params, args, &method.name.text, span)?;
        let mut given = given.into_iter();
        let index_type = Type::bits(32);
        let Some(index) = given.next() else { return Ok(nothing(span)) };
        let index = self.convert(index, &index_type)?;
        let index = self.scalar(&index)?;
        match given.next() {
            None => {
                let width = of.width().unwrap_or(1);
                let to = self.temporary(width, span);
                self.emit(StmtKind::ReadRegister { register, index, to }, span)?;
                Ok(Typed::computed(of.clone(), ir::Expr::slot(to, width), span))
            }
            Some(value) => {
                let value = self.convert(value, of)?;
                let value = self.scalar(&value)?;
                self.emit(StmtKind::WriteRegister { register, index, value }, span)?;
                Ok(nothing(span))
            }
        }
    }

    fn extern_call(
        &mut self,
        unit: &Unit<'_>,
        method: &Prototype,
        mut bound: Bindings,
        args: &[Arg],
        into: Option<(Type, Storage)>,
        span: Span,
    ) -> Checked<Typed> {
        let passed = self.passed(&method.params, args, &method.name.text, span)?;
        let mut known = bound.clone();
        known.extend(method.type_params.iter().map(|p| (Rc::clone(&p.text), Type::Void)));
        let (mut inputs, mut results) = (Vec::new(), Vec::new());
        let (mut in_names, mut out_names) = (Vec::new(), Vec::new());
        for (param, given) in method.params.iter().zip(passed) {
            let Evaluated { named, value: given } = given;
            let declared = self.with_types(&known, |c| c.type_of(&param.ty))?;
            if !matches!(given.value, Value::Parts(_)) && given.ty != Type::Int {
                // Finds what stands for type parameters; whether it fits is checked below.
                given.ty.unify(&declared, &mut bound);
            }
            let wanted = declared.substitute(&bound);
            let span = given.span;
            let out = matches!(param.direction, Direction::Out | Direction::InOut);
            let target =
                if out { Some(self.target(named, param.direction, &wanted)?) } else { None };
            if param.direction != Direction::Out {
                let given = self.convert(given, &wanted)?;
                if param.direction == Direction::None {
                    self.known(&given, "an argument for a parameter without direction")?;
                }
                inputs.extend(self.scalars(&given)?);
                in_names.extend(self.value_names(&param.name.text, &wanted, span)?);
            }
            if let Some(target) = target {
                results.push(target);
                out_names.extend(self.value_names(&param.name.text, &wanted, span)?);
            }
        }
        let returned = match &method.returns {
            Some(ty) => self.with_types(&known, |c| c.type_of(ty))?.substitute(&bound),
            None => Type::Void,
        };
        if returned != Type::Void {
            out_names.extend(self.value_names("return", &returned, span)?);
        }
        let latency = self.latency(&method.annotations)?;
        let which = self.extern_id(unit, in_names, out_names, latency);
        self.emit_call(which, inputs, results, &returned, into, span)
    }

    /// The call, and what comes back put where it belongs.
    fn emit_call(
        &mut self,
        which: ExternId,
        args: Vec<ir::Expr>,
        outs: Vec<Typed>,
        returned: &Type,
        into: Option<(Type, Storage)>,
        span: Span,
    ) -> Checked<Typed> {
        let (mut results, mut copies): (Vec<SlotId>, Vec<(Typed, Typed)>) =
            (Vec::new(), Vec::new());
        for to in outs {
            let direct = match &to.value {
                Value::Stored { storage, slice: None, .. } => Some(storage.slots()),
                _ => None,
            };
            let direct = direct.filter(|slots| slots.iter().all(|s| !results.contains(s)));
            match direct {
                Some(slots) => results.extend(slots),
                None => {
                    let storage = self.storage("$temp", &to.ty, span)?;
                    results.extend(storage.slots());
                    let value = Value::Stored { storage, slice: None, readonly: None };
                    copies.push((to.clone(), Typed { ty: to.ty.clone(), value, span }));
                }
            }
        }
        let result = if *returned == Type::Void {
            nothing(span)
        } else {
            // What is copied out comes before the result is assigned (section 6.8).
            let fitting = into.filter(|(ty, to)| {
                let apart = to.slots().iter().all(|s| !results.contains(s));
                ty == returned && copies.is_empty() && apart
            });
            let storage = match fitting {
                Some((_, storage)) => storage,
                None => self.storage("$temp", returned, span)?,
            };
            results.extend(storage.slots());
            let value = Value::Stored { storage, slice: None, readonly: Some("a result") };
            Typed { ty: returned.clone(), value, span }
        };
        self.emit(StmtKind::Call { which, args, results }, span)?;
        for (to, from) in copies {
            self.assign(&to, &from, span)?;
        }
        Ok(result)
    }

    /// Names and widths of the numbers in a parameter.
    fn value_names(&mut self, name: &str, ty: &Type, span: Span) -> Checked<Vec<ir::Value>> {
        if let Some(width) = ty.width() {
            return Ok(vec![ir::Value { name: name.to_owned(), width }]);
        }
        let (record, valid) = match ty {
            Type::Struct(record) => (record, false),
            Type::Header(record) => (record, true),
            Type::Param(_) => {
                let message = format!("what `{ty}` stands for cannot be told");
                return Err(self.error(span, message, "give the number a width, such as `8w1`"));
            }
            _ => {
                let hint = "pass fields";
                return Err(self.refuse(span, &format!("passing {ty} to an extern"), hint));
            }
        };
        let mut all = Vec::new();
        if valid {
            all.push(ir::Value { name: format!("{name}.$valid"), width: 1 });
        }
        for field in &record.fields {
            all.extend(self.value_names(&format!("{name}.{}", field.name), &field.ty, span)?);
        }
        Ok(all)
    }

    fn extern_id(
        &mut self,
        unit: &Unit<'_>,
        args: Vec<ir::Value>,
        results: Vec<ir::Value>,
        latency: u32,
    ) -> ExternId {
        let new = Extern {
            kind: unit.kind.to_owned(),
            instance: unit.instance.to_owned(),
            method: unit.method.to_owned(),
            constructor: unit.constructor.clone(),
            args,
            results,
            latency,
            place: self.place(unit.span),
        };
        let known = self.program.externs.iter().position(|e| *e == new);
        let at = known.unwrap_or_else(|| {
            self.program.externs.push(new);
            self.program.externs.len() - 1
        });
        ExternId(at as u32)
    }

    /// `verify(condition, error.X)` (section 13.7).
    fn verify(&mut self, function: &Prototype, args: &[Arg], span: Span) -> Checked<Typed> {
        let [condition, error] = self.ordered(&function.params, args, "verify", span)?[..] else {
            return Err(self.error(span, "`verify` takes a condition and an error", ""));
        };
        if self.within != Within::Parser {
            return Err(self.error(span, "`verify` outside a parser", "write an `if`"));
        }
        let on = self.condition(condition)?;
        let on = self.scalar(&on)?;
        let given = self.expr(error)?;
        let given = self.convert(given, &Type::Error)?;
        let code = self.known(&given, "the error of `verify`")?;
        let error = ir::ErrorId(code.to_u32().unwrap_or_default());
        self.emit(StmtKind::Verify { on, error }, span)?;
        Ok(nothing(span))
    }
}
