//! Calls: built-in methods, actions, externs (sections 6.8, 8.20, 14.1).

use std::rc::Rc;

use num_traits::ToPrimitive;

use super::super::ast::{Arg, Direction, Expr, ExprKind, Name, Param, Prototype, TypeRef};
use super::super::diagnostic::did_you_mean;
use super::super::source::Span;
use super::scope::{Applied, Instance, InstanceKind, Lowered, Symbol};
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
    pub(super) fn call(
        &mut self,
        callee: &Expr,
        types: &[TypeRef],
        args: &[Arg],
        span: Span,
    ) -> Checked<Typed> {
        let into = self.frame.into.take();
        if self.within == Within::Top {
            let message = "a call where only what is known at compile time can stand";
            return Err(self.error(span, message, "write the value"));
        }
        match &callee.kind {
            ExprKind::Name { name, global } => {
                let found = match global {
                    true => self.scopes.find_global(&name.text),
                    false => self.scopes.find(&name.text),
                };
                match found.cloned() {
                    Some(Symbol::Function(function)) => {
                        self.function(&function, types, args, into, span)
                    }
                    Some(Symbol::Lowered(lowered)) => self.action_call(&lowered, args, span),
                    Some(Symbol::Action(action)) => {
                        let lowered = self.global_action(&action)?;
                        self.action_call(&lowered, args, span)
                    }
                    Some(Symbol::Type(ty)) => {
                        let message = format!("`{ty}` is a type: it is not called here");
                        let hint =
                            "instances are declared before `apply`; a cast is `(Type) value`";
                        Err(self.error(span, message, hint))
                    }
                    Some(other) => {
                        let hint = "tables and controls are called by `.apply()`";
                        Err(self.misused(name, &other, hint, "something to call"))
                    }
                    None if self.frame.lowering.contains(&name.text) => {
                        let message = format!("the action `{name}` calls itself");
                        Err(self.error(span, message, "P4 has no recursion"))
                    }
                    None => Err(self.unknown(name)),
                }
            }
            ExprKind::Member(base, method) => self.method(base, method, types, args, into, span),
            _ => Err(self.error(span, "this cannot be called", "")),
        }
    }

    fn method(
        &mut self,
        base: &Expr,
        method: &Name,
        types: &[TypeRef],
        args: &[Arg],
        into: Option<(Type, Storage)>,
        span: Span,
    ) -> Checked<Typed> {
        if let ExprKind::Name { name, .. } = &base.kind {
            match self.scopes.find(&name.text).cloned() {
                Some(Symbol::Instance(instance)) => {
                    if let InstanceKind::Control(control) = &instance.kind {
                        self.only(method, "apply")?;
                        return self.apply_control(control, &instance.path, args, span);
                    }
                    return self.instance_method(&instance, method, args, into, span);
                }
                Some(Symbol::Control(control)) => {
                    self.only(method, "apply")?;
                    let path = self.frame.fresh(&self.path(&control.name.text));
                    return self.apply_control(&control, &path, args, span);
                }
                Some(Symbol::Table(table, _)) => {
                    self.only(method, "apply")?;
                    self.no_arguments(args, span)?;
                    self.apply_table(table, false, span)?;
                    return Ok(nothing(span));
                }
                Some(Symbol::Packet) => return self.packet_method(method, types, args, span),
                Some(Symbol::Parser(parser)) => {
                    let what = format!("the parser `{}` within another one", parser.name);
                    return Err(self.refuse(span, &what, "copy its states"));
                }
                _ => {}
            }
        }
        let base = self.expr(base)?;
        match (&base.ty, &base.value) {
            (Type::Header(_), Value::Stored { .. }) => {
                self.header_method(&base, method, args, span)
            }
            (Type::Stack(..), Value::Stored { .. }) => self.stack_method(&base, method, args, span),
            (other, _) => {
                let message = format!("{other} has no method `{method}`");
                Err(self.error(method.span, message, "headers have `isValid`, stacks `push_front`"))
            }
        }
    }

    fn only(&mut self, method: &Name, name: &str) -> Checked<()> {
        if *method.text == *name {
            return Ok(());
        }
        let message = format!("unknown method `{method}`");
        Err(self.error(method.span, message, format!("there is `{name}`")))
    }

    fn no_arguments(&mut self, args: &[Arg], span: Span) -> Checked<()> {
        if args.is_empty() {
            return Ok(());
        }
        Err(self.error(span, format!("{} too many", arguments(args.len())), "it takes none"))
    }

    fn header_method(
        &mut self,
        base: &Typed,
        method: &Name,
        args: &[Arg],
        span: Span,
    ) -> Checked<Typed> {
        let Value::Stored { storage: Storage::Header { id, valid, .. }, readonly, .. } =
            &base.value
        else {
            return Err(self.error(span, "this header is not in a variable", ""));
        };
        let (header, valid, readonly) = (*id, *valid, *readonly);
        self.no_arguments(args, span)?;
        match &*method.text {
            "isValid" => Ok(Typed::computed(Type::Bool, ir::Expr::slot(valid, 1), span)),
            "setValid" | "setInvalid" => {
                self.writable(readonly, span)?;
                let valid = &*method.text == "setValid";
                self.emit(StmtKind::SetValid { header, valid }, span)?;
                Ok(nothing(span))
            }
            _ => {
                let known = ["isValid", "setValid", "setInvalid"];
                let hint = did_you_mean(
                    &method.text,
                    known,
                    "headers have `isValid()`, `setValid()` and `setInvalid()`",
                );
                Err(self.error(method.span, format!("headers have no method `{method}`"), hint))
            }
        }
    }

    /// `push_front` and `pop_front` (section 8.18): headers move over, the rest become invalid.
    fn stack_method(
        &mut self,
        base: &Typed,
        method: &Name,
        args: &[Arg],
        span: Span,
    ) -> Checked<Typed> {
        let Value::Stored { storage: Storage::Stack(stack), readonly, .. } = &base.value else {
            return Err(self.error(span, "this stack is not in a variable", ""));
        };
        self.writable(*readonly, span)?;
        let push = match &*method.text {
            "push_front" => true,
            "pop_front" => false,
            _ => {
                let message = format!("header stacks have no method `{method}`");
                return Err(self.error(method.span, message, "there is `push_front`, `pop_front`"));
            }
        };
        let [Arg { value, .. }] = args else {
            return Err(self.error(span, "one argument is wanted: by how many", ""));
        };
        let given = self.expr(value)?;
        let by = self.known(&given, "by how many a stack moves")?;
        let size = stack.elements.len();
        let by = by.to_usize().unwrap_or(size).min(size);
        let stack = Rc::clone(stack);
        for n in 0..size {
            let at = if push { size - 1 - n } else { n };
            let from = if push { at.checked_sub(by) } else { Some(at + by).filter(|f| *f < size) };
            match from {
                Some(from) => self.copy(&stack.elements[from], &stack.elements[at], span)?,
                None => self.invalidate(&stack.elements[at], span)?,
            }
        }
        Ok(nothing(span))
    }

    /// Assign slot by slot.
    pub(super) fn copy(&mut self, from: &Storage, to: &Storage, span: Span) -> Checked<()> {
        for (from, to) in from.slots().into_iter().zip(to.slots()) {
            let value = ir::Expr::slot(from, self.frame.pipeline.slots[from.index()].width);
            self.emit(StmtKind::Assign { to, slice: None, value }, span)?;
        }
        Ok(())
    }

    /// Make all headers of a variable invalid.
    pub(super) fn invalidate(&mut self, storage: &Storage, span: Span) -> Checked<()> {
        for header in storage.headers() {
            self.emit(StmtKind::SetValid { header, valid: false }, span)?;
        }
        Ok(())
    }

    pub(super) fn writable(&mut self, readonly: Option<&'static str>, span: Span) -> Checked<()> {
        match readonly {
            None => Ok(()),
            Some(why) => {
                let message = format!("this cannot be assigned: it is {why}");
                Err(self.error(span, message, "copy it into a variable, or declare it `inout`"))
            }
        }
    }

    /// `packet.extract(h)` and what else a packet has.
    fn packet_method(
        &mut self,
        method: &Name,
        types: &[TypeRef],
        args: &[Arg],
        span: Span,
    ) -> Checked<Typed> {
        match (self.within, &*method.text, args) {
            (Within::Parser, "extract", [arg]) => self.extract(arg, span),
            (Within::Parser, "extract", [_, _]) => {
                let instead = "use a header of fixed length for each length that occurs";
                Err(self.refuse(span, "`extract` of variable length", instead))
            }
            (Within::Parser, "lookahead", []) => self.lookahead(types, span),
            (Within::Parser, "advance", [arg]) => {
                let given = self.expr(&arg.value)?;
                let given = self.convert(given, &Type::bits(32))?;
                let bits = self.scalar(&given)?;
                self.emit(StmtKind::Advance(bits), span)?;
                Ok(nothing(span))
            }
            (Within::Deparser, "emit", [arg]) => {
                let given = self.expr(&arg.value)?;
                let Value::Stored { storage, .. } = &given.value else {
                    return Err(self.error(span, "only headers in variables are emitted", ""));
                };
                let headers = storage.headers();
                if headers.is_empty() {
                    let message = format!("{} has no header to emit", given.ty);
                    return Err(self.error(
                        given.span,
                        message,
                        "emit a header, or a struct of them",
                    ));
                }
                self.frame.pipeline.deparser.extend(headers);
                Ok(nothing(span))
            }
            (Within::Parser, "length", _) => {
                Err(self.refuse(span, "`length()`", "carry the length in a header"))
            }
            (Within::Parser, "extract" | "lookahead" | "advance", _)
            | (Within::Deparser, "emit", _) => {
                let message = format!("`{method}` with {}", arguments(args.len()));
                Err(self.error(
                    span,
                    message,
                    "`extract(h)`, `lookahead<T>()`, `advance(n)`, `emit(h)`",
                ))
            }
            (within, ..) => {
                let known: &[&str] = match within {
                    Within::Parser => &["extract", "lookahead", "advance"],
                    _ => &["emit"],
                };
                let hint = did_you_mean(&method.text, known.iter().copied(), "");
                Err(self.error(
                    method.span,
                    format!("packets have no method `{method}` here"),
                    hint,
                ))
            }
        }
    }

    fn extract(&mut self, arg: &Arg, span: Span) -> Checked<Typed> {
        let next = match &arg.value.kind {
            ExprKind::Member(base, name) if &*name.text == "next" => {
                let base = self.expr(base)?;
                match base.value {
                    Value::Stored { storage: Storage::Stack(stack), .. } => Some(stack),
                    _ => None,
                }
            }
            _ => None,
        };
        if let Some(stack) = &next {
            if self.conditional > 0 {
                let instead = "extract it in a state of its own, and `select` that state";
                return Err(self.refuse(span, "`extract` into a stack under a condition", instead));
            }
            if self.frame.filled[stack.number] as usize >= stack.elements.len() {
                // Section 13.9: the parser goes to `reject` with StackOutOfBounds.
                let at = self.program.errors.iter().position(|e| e == "StackOutOfBounds");
                let error = ir::ErrorId(at.unwrap_or(0) as u32);
                let on = ir::Expr::constant(0, 1);
                self.emit(StmtKind::Verify { on, error }, span)?;
                self.frame.overflow = true;
                return Ok(nothing(span));
            }
        }
        let given = self.expr(&arg.value)?;
        let Value::Stored { storage: Storage::Header { id, .. }, readonly, .. } = &given.value
        else {
            let message = format!("{} cannot be extracted", given.ty);
            return Err(self.error(given.span, message, "extract headers, one by one"));
        };
        self.writable(*readonly, given.span)?;
        self.emit(StmtKind::Extract(*id), span)?;
        if let Some(stack) = next {
            self.frame.filled[stack.number] += 1;
        }
        Ok(nothing(span))
    }

    fn lookahead(&mut self, types: &[TypeRef], span: Span) -> Checked<Typed> {
        let [ty] = types else {
            let hint = "write `lookahead<bit<8>>()`";
            return Err(self.error(span, "`lookahead` needs to know what to read", hint));
        };
        let ty = self.type_of(ty)?;
        let Some(width) = ty.width().filter(|_| !matches!(ty, Type::Error)) else {
            let instead = "look at bits, such as `lookahead<bit<32>>()`";
            return Err(self.refuse(span, &format!("`lookahead` of {ty}"), instead));
        };
        let slot = self.temporary(width, span);
        self.emit(StmtKind::Lookahead(slot), span)?;
        Ok(Typed::computed(ty, ir::Expr::slot(slot, width), span))
    }

    /// Arguments in the order of the parameters.
    pub(super) fn ordered<'e>(
        &mut self,
        params: &[Param],
        args: &'e [Arg],
        name: &str,
        span: Span,
    ) -> Checked<Vec<&'e Expr>> {
        if args.len() != params.len() {
            let (wanted, given) = (params.len(), args.len());
            let names: Vec<&str> = params.iter().map(|p| &*p.name.text).collect();
            let hint = match wanted {
                0 => "it takes none".to_owned(),
                _ => format!("it takes {}", names.join(", ")),
            };
            let message = format!("`{name}` takes {}, not {given}", arguments(wanted));
            return Err(self.error(span, message, hint));
        }
        let mut ordered = Vec::new();
        for (n, param) in params.iter().enumerate() {
            let named = args
                .iter()
                .find(|a| a.name.as_ref().is_some_and(|given| given.text == param.name.text));
            match named.or(args.get(n).filter(|a| a.name.is_none())) {
                Some(arg) => ordered.push(&arg.value),
                None => {
                    let message = format!("no argument for the parameter `{}`", param.name);
                    let known: Vec<&str> = params.iter().map(|p| &*p.name.text).collect();
                    let hint = format!("`{name}` takes {}", known.join(", "));
                    return Err(self.error(span, message, hint));
                }
            }
        }
        Ok(ordered)
    }

    fn action_call(&mut self, lowered: &Lowered, args: &[Arg], span: Span) -> Checked<Typed> {
        self.run_action(lowered, args, span)?;
        Ok(nothing(span))
    }

    /// Copy in, run, copy out (section 6.8).
    pub(super) fn run_action(
        &mut self,
        lowered: &Lowered,
        args: &[Arg],
        span: Span,
    ) -> Checked<()> {
        let action = &lowered.action;
        if self.within == Within::Parser || self.within == Within::Deparser {
            let message = format!("the action `{}` in a parser or deparser", action.name);
            return Err(self.error(span, message, "actions are called in controls"));
        }
        let given = self.ordered(&action.params, args, &action.name.text, span)?;
        let given = self.sequence(&given)?;
        let (mut inputs, mut back) = (Vec::new(), Vec::new());
        for ((param, made), given) in action.params.iter().zip(&lowered.params).zip(given) {
            let out = matches!(param.direction, Direction::Out | Direction::InOut);
            let given =
                if out { self.target(given, &made.ty)? } else { self.convert(given, &made.ty)? };
            if param.direction != Direction::Out {
                inputs.extend(self.scalars(&given)?);
            }
            if out {
                back.push((given, made));
            }
        }
        if lowered.exits && !back.is_empty() {
            // Section 12.5: `exit` still copies out, and here nothing follows it.
            let instead = "set a flag, and `exit` in the control";
            return Err(self.refuse(span, "`exit` in an action with `out` parameters", instead));
        }
        self.frame.exits |= lowered.exits;
        self.emit(StmtKind::Run { action: lowered.id, args: inputs }, span)?;
        for (to, made) in back {
            let value =
                Value::Stored { storage: made.storage.clone(), slice: None, readonly: None };
            let from = Typed { ty: made.ty.clone(), value, span };
            self.assign(&to, &from, span)?;
        }
        Ok(())
    }

    /// What an `out` or `inout` argument must be: a variable of exactly that type.
    pub(super) fn target(&mut self, given: Typed, ty: &Type) -> Checked<Typed> {
        match &given.value {
            Value::Any => {
                let storage = self.storage("$temp", ty, given.span)?;
                let value = Value::Stored { storage, slice: None, readonly: None };
                Ok(Typed { ty: ty.clone(), value, span: given.span })
            }
            Value::Stored { readonly, .. } => {
                self.writable(*readonly, given.span)?;
                if given.ty == *ty {
                    return Ok(given);
                }
                let message = format!("expected {ty}, found {}", given.ty);
                let hint = "an `out` or `inout` argument has exactly the parameter's type";
                Err(self.error(given.span, message, hint))
            }
            _ => {
                let hint = "an `out` or `inout` argument is a variable or a field";
                Err(self.error(given.span, "this cannot be assigned", hint))
            }
        }
    }

    fn function(
        &mut self,
        function: &Prototype,
        types: &[TypeRef],
        args: &[Arg],
        into: Option<(Type, Storage)>,
        span: Span,
    ) -> Checked<Typed> {
        if &*function.name.text == "verify" {
            return self.verify(args, span);
        }
        let types = types.iter().map(|t| self.type_of(t)).collect::<Checked<Vec<_>>>()?;
        let names = function.type_params.iter().map(|p| Rc::clone(&p.text));
        let bound: Bindings = names.zip(types).collect();
        let unit = Unit {
            kind: &function.name.text,
            instance: "",
            method: "",
            constructor: Vec::new(),
            span: function.name.span,
        };
        self.extern_call(&unit, function, bound, args, into, span)
    }

    /// `verify(condition, error.X)` (section 13.7).
    fn verify(&mut self, args: &[Arg], span: Span) -> Checked<Typed> {
        let [condition, error] = args else {
            return Err(self.error(span, "`verify` takes a condition and an error", ""));
        };
        if self.within != Within::Parser {
            return Err(self.error(span, "`verify` outside a parser", "write an `if`"));
        }
        let on = self.condition(&condition.value)?;
        let on = self.scalar(&on)?;
        let given = self.expr(&error.value)?;
        let given = self.convert(given, &Type::Error)?;
        let code = self.known(&given, "the error of `verify`")?;
        let error = ir::ErrorId(code.to_u32().unwrap_or_default());
        self.emit(StmtKind::Verify { on, error }, span)?;
        Ok(nothing(span))
    }

    fn instance_method(
        &mut self,
        instance: &Instance,
        method: &Name,
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
        let bound = declared.type_params.iter().cloned().zip(types.iter().cloned()).collect();
        let constructor = match &instance.kind {
            InstanceKind::Register(register) => {
                return self.register(*register, &types[0], found, args, span);
            }
            InstanceKind::Counter(counter) => {
                let given = self.ordered(&found.params, args, &method.text, span)?;
                let [index] = &self.sequence(&given)?[..] else { return Ok(nothing(span)) };
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

    /// `read` and `write` of a register.
    fn register(
        &mut self,
        register: ir::RegisterId,
        of: &Type,
        method: &Prototype,
        args: &[Arg],
        span: Span,
    ) -> Checked<Typed> {
        let given = self.ordered(&method.params, args, &method.name.text, span)?;
        let mut given = self.sequence(&given)?.into_iter();
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
        let given = self.ordered(&method.params, args, &method.name.text, span)?;
        let given = self.sequence(&given)?;
        let mut known = bound.clone();
        known.extend(method.type_params.iter().map(|p| (Rc::clone(&p.text), Type::Void)));
        let (mut inputs, mut results) = (Vec::new(), Vec::new());
        let (mut in_names, mut out_names) = (Vec::new(), Vec::new());
        for (param, given) in method.params.iter().zip(given) {
            let declared = self.with_types(&known, |c| c.type_of(&param.ty))?;
            if !matches!(given.value, Value::Parts(_)) && given.ty != Type::Int {
                // Finds what stands for type parameters; whether it fits is checked below.
                given.ty.unify(&declared, &mut bound);
            }
            let wanted = declared.substitute(&bound);
            let out = matches!(param.direction, Direction::Out | Direction::InOut);
            let given =
                if out { self.target(given, &wanted)? } else { self.convert(given, &wanted)? };
            let names = self.value_names(&param.name.text, &wanted, given.span)?;
            if param.direction != Direction::Out {
                inputs.extend(self.scalars(&given)?);
                in_names.extend(names.clone());
            }
            if out {
                results.push(given);
                out_names.extend(names);
            }
        }
        let returned = match &method.returns {
            Some(ty) => self.with_types(&known, |c| c.type_of(ty))?.substitute(&bound),
            None => Type::Void,
        };
        if returned != Type::Void {
            out_names.extend(self.value_names("return", &returned, span)?);
        }
        let latency = self.latency(&method.annotations);
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
            let fitting = into.filter(|(ty, to)| {
                ty == returned && to.slots().iter().all(|s| !results.contains(s))
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
                return Err(self.refuse(
                    span,
                    &format!("passing {ty} to an extern"),
                    "pass fields",
                ));
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

    /// `table.apply().hit` and its like, if that is what stands here.
    pub(super) fn apply_member(
        &mut self,
        base: &Expr,
        member: &Name,
        span: Span,
    ) -> Checked<Option<Typed>> {
        let ExprKind::Call { callee, args, .. } = &base.kind else { return Ok(None) };
        let ExprKind::Member(table, method) = &callee.kind else { return Ok(None) };
        let ExprKind::Name { name, .. } = &table.kind else { return Ok(None) };
        let Some(Symbol::Table(id, _)) = self.scopes.find(&name.text) else { return Ok(None) };
        let id = *id;
        self.only(method, "apply")?;
        self.no_arguments(args, span)?;
        match &*member.text {
            "hit" | "miss" => {
                let Applied { hit, .. } = self.apply_table(id, true, span)?;
                let hit = ir::Expr::slot(hit, 1);
                let value = if &*member.text == "hit" { hit } else { super::operators::not(hit) };
                Ok(Some(Typed::computed(Type::Bool, value, span)))
            }
            "action_run" => {
                let hint = "write `switch (table.apply().action_run) { ... }`";
                Err(self.error(span, "`action_run` outside a `switch`", hint))
            }
            _ => {
                let hint = "there is `hit`, `miss` and `action_run`";
                Err(self.error(member.span, format!("tables have no `{member}`"), hint))
            }
        }
    }
}

pub(super) fn nothing(span: Span) -> Typed {
    Typed { ty: Type::Void, value: Value::Nothing, span }
}

/// "2 arguments".
pub(super) fn arguments(count: usize) -> String {
    if count == 1 { "1 argument".to_owned() } else { format!("{count} arguments") }
}
