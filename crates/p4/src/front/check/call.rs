//! Calls: what is called, its arguments, actions (sections 6.8 and 8.20).

use std::rc::Rc;

use super::super::ast::{Arg, Direction, Expr, ExprKind, Name, Param, TypeRef};
use super::super::limits::MAX_ACTIONS;
use super::super::source::Span;
use super::expr::Evaluated;
use super::scope::{Lowered, Symbol};
use super::types::Type;
use super::value::{Typed, Value};
use super::{Checked, Checker, Within};
use crate::ir::{self, StmtKind, TableId};

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
                    Some(Symbol::Lowered(lowered)) => {
                        self.no_types(types)?;
                        self.action_call(&lowered, args, span)
                    }
                    Some(Symbol::Action(action)) => {
                        self.no_types(types)?;
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

    /// Arguments in the order of the parameters.
    pub(super) fn ordered<'e>(
        &mut self,
        params: &[Param],
        args: &'e [Arg],
        name: &str,
        span: Span,
    ) -> Checked<Vec<&'e Expr>> {
        let order = self.order(params, args, name, span)?;
        Ok(order.into_iter().map(|at| &args[at].value).collect())
    }

    /// Values of the arguments in the order of the parameters, evaluated in the order in which they
    /// are written (section 6.8).
    pub(super) fn evaluated(
        &mut self,
        params: &[Param],
        args: &[Arg],
        name: &str,
        span: Span,
    ) -> Checked<Vec<Typed>> {
        let passed = self.passed(params, args, name, span)?;
        Ok(passed.into_iter().map(|p| p.value).collect())
    }

    /// The same, with what the arguments name: `out` and `inout` are copied back to it.
    pub(super) fn passed(
        &mut self,
        params: &[Param],
        args: &[Arg],
        name: &str,
        span: Span,
    ) -> Checked<Vec<Evaluated>> {
        let order = self.order(params, args, name, span)?;
        let written: Vec<&Expr> = args.iter().map(|arg| &arg.value).collect();
        let passed = self.evaluate(&written)?;
        Ok(order.into_iter().map(|at| passed[at].clone()).collect())
    }

    /// Which argument is for which parameter.
    fn order(
        &mut self,
        params: &[Param],
        args: &[Arg],
        name: &str,
        span: Span,
    ) -> Checked<Vec<usize>> {
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
        let by_name = args.iter().any(|arg| arg.name.is_some());
        if let Some(plain) = args.iter().find(|arg| by_name && arg.name.is_none()) {
            let hint = "either all arguments have names, or none";
            return Err(self.error(plain.value.span, "an argument without a name", hint));
        }
        let mut ordered = Vec::new();
        for (n, param) in params.iter().enumerate() {
            let named = args
                .iter()
                .position(|a| a.name.as_ref().is_some_and(|given| given.text == param.name.text));
            match named.or(Some(n).filter(|_| !by_name)) {
                Some(at) => ordered.push(at),
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

    /// Type arguments of what takes none.
    pub(super) fn no_types(&mut self, types: &[TypeRef]) -> Checked<()> {
        let Some(first) = types.first() else { return Ok(()) };
        Err(self.error(first.span, "a type argument for what takes none", "remove it"))
    }

    /// The argument of a method that has one; it may be given by name.
    pub(super) fn only_argument<'e>(&mut self, arg: &'e Arg, param: &str) -> Checked<&'e Expr> {
        match &arg.name {
            Some(name) if *name.text != *param => {
                let message = format!("no parameter is called `{name}`");
                Err(self.error(name.span, message, format!("it is called `{param}`")))
            }
            _ => Ok(&arg.value),
        }
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
        if lowered.depth >= MAX_ACTIONS {
            let instead = format!("at most {MAX_ACTIONS}");
            return Err(self.refuse(span, "actions this deep in one another", instead));
        }
        self.frame.called = self.frame.called.max(lowered.depth + 1);
        self.efforts(lowered.statements, span)?;
        let passed = self.passed(&action.params, args, &action.name.text, span)?;
        let (mut inputs, mut back) = (Vec::new(), Vec::new());
        for ((param, made), given) in action.params.iter().zip(&lowered.params).zip(passed) {
            if matches!(param.direction, Direction::Out | Direction::InOut) {
                back.push((self.target(given.named, param.direction, &made.ty)?, made));
            }
            if param.direction != Direction::Out {
                let value = self.convert(given.value, &made.ty)?;
                inputs.extend(self.scalars(&value)?);
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
    pub(super) fn target(
        &mut self,
        given: Typed,
        direction: Direction,
        ty: &Type,
    ) -> Checked<Typed> {
        match &given.value {
            Value::Any if direction == Direction::Out => {
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

    /// The table of `table.apply()` and its name, if that is what stands here.
    pub(super) fn applied_table(&mut self, call: &Expr) -> Checked<Option<(TableId, Rc<str>)>> {
        let ExprKind::Call { callee, types, args } = &call.kind else { return Ok(None) };
        let ExprKind::Member(table, method) = &callee.kind else { return Ok(None) };
        let ExprKind::Name { name, .. } = &table.kind else { return Ok(None) };
        let Some(Symbol::Table(id, name)) = self.scopes.find(&name.text) else { return Ok(None) };
        let found = (*id, Rc::clone(name));
        self.only(method, "apply")?;
        self.no_types(types)?;
        self.no_arguments(args, call.span)?;
        Ok(Some(found))
    }

    /// `table.apply().hit` and its like, if that is what stands here.
    pub(super) fn apply_member(
        &mut self,
        base: &Expr,
        member: &Name,
        span: Span,
    ) -> Checked<Option<Typed>> {
        let Some((id, _)) = self.applied_table(base)? else { return Ok(None) };
        match &*member.text {
            "hit" | "miss" => {
                let hit = self.temporary(1, span);
                self.apply_table(id, Some(hit), None, span)?;
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

/// "2 type parameters".
pub(super) fn type_parameters(count: usize) -> String {
    if count == 1 { "1 type parameter".to_owned() } else { format!("{count} type parameters") }
}

pub(super) fn nothing(span: Span) -> Typed {
    Typed { ty: Type::Void, value: Value::Nothing, span }
}

/// "2 arguments".
pub(super) fn arguments(count: usize) -> String {
    if count == 1 { "1 argument".to_owned() } else { format!("{count} arguments") }
}
