//! Methods of headers and packets (sections 8.17, 13.8, 16), and whose a method is.

use super::super::ast::{Arg, Expr, ExprKind, Name, TypeRef};
use super::super::diagnostic::did_you_mean;
use super::super::source::Span;
use super::call::{arguments, nothing};
use super::scope::{InstanceKind, Symbol};
use super::types::Type;
use super::value::{Storage, Typed, Value};
use super::{Checked, Checker, Within};
use crate::ir::{self, StmtKind};

impl Checker<'_> {
    pub(super) fn method(
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
                        self.no_types(types)?;
                        return self.apply_control(control, &instance.path, args, span);
                    }
                    return self.instance_method(&instance, method, types, args, into, span);
                }
                Some(Symbol::Control(control)) => {
                    self.only(method, "apply")?;
                    self.no_types(types)?;
                    let path = self.frame.fresh(&self.path(&control.name.text));
                    return self.apply_control(&control, &path, args, span);
                }
                Some(Symbol::Table(table, _)) => {
                    self.only(method, "apply")?;
                    self.no_types(types)?;
                    self.no_arguments(args, span)?;
                    self.apply_table(table, None, None, span)?;
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
        self.no_types(types)?;
        let sizes = ["minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes"];
        if sizes.contains(&&*method.text) {
            return Err(self.refuse(span, &format!("`{method}()`"), "write the number"));
        }
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

    pub(super) fn only(&mut self, method: &Name, name: &str) -> Checked<()> {
        if *method.text == *name {
            return Ok(());
        }
        let message = format!("unknown method `{method}`");
        Err(self.error(method.span, message, format!("there is `{name}`")))
    }

    pub(super) fn no_arguments(&mut self, args: &[Arg], span: Span) -> Checked<()> {
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
            (Within::Parser, "extract", [arg]) => {
                let arg = self.only_argument(arg, "hdr")?;
                self.extract(types, arg, span)
            }
            (Within::Parser, "extract", [_, _]) => {
                let instead = "use a header of fixed length for each length that occurs";
                Err(self.refuse(span, "`extract` of variable length", instead))
            }
            (Within::Parser, "lookahead", []) => self.lookahead(types, span),
            (Within::Parser, "advance", [arg]) => {
                self.no_types(types)?;
                let given = self.only_argument(arg, "sizeInBits")?;
                let given = self.expr(given)?;
                let given = self.convert(given, &Type::bits(32))?;
                let bits = self.scalar(&given)?;
                self.emit(StmtKind::Advance(bits), span)?;
                Ok(nothing(span))
            }
            (Within::Deparser, "emit", [arg]) => {
                let arg = self.only_argument(arg, "hdr")?;
                self.packet_emit(types, arg, span)
            }
            (Within::Parser, "length", _) => {
                Err(self.refuse(span, "`length()`", "carry the length in a header"))
            }
            (Within::Parser, "extract" | "lookahead" | "advance", _)
            | (Within::Deparser, "emit", _) => {
                let message = format!("`{method}` with {}", arguments(args.len()));
                let hint = "`extract(h)`, `lookahead<T>()`, `advance(n)`, `emit(h)`";
                Err(self.error(span, message, hint))
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

    /// The type argument of `extract` and `emit`, if there is one: the type of what is given.
    fn type_argument(&mut self, types: &[TypeRef], given: &Typed) -> Checked<()> {
        let [named] = types else { return self.no_types(types.get(1..).unwrap_or_default()) };
        let ty = self.type_of(named)?;
        if ty == given.ty {
            return Ok(());
        }
        let message = format!("expected {}, found {ty}", given.ty);
        Err(self.error(named.span, message, "leave the type out"))
    }

    fn packet_emit(&mut self, types: &[TypeRef], arg: &Expr, span: Span) -> Checked<Typed> {
        let given = self.expr(arg)?;
        self.type_argument(types, &given)?;
        let Value::Stored { storage, .. } = &given.value else {
            return Err(self.error(span, "only headers in variables are emitted", ""));
        };
        let headers = storage.headers();
        if headers.is_empty() {
            let message = format!("{} has no header to emit", given.ty);
            return Err(self.error(given.span, message, "emit a header, or a struct of them"));
        }
        self.frame.pipeline.deparser.extend(headers);
        Ok(nothing(span))
    }

    fn extract(&mut self, types: &[TypeRef], arg: &Expr, span: Span) -> Checked<Typed> {
        let next = match &arg.kind {
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
        let given = self.expr(arg)?;
        self.type_argument(types, &given)?;
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
}
