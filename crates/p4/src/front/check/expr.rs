//! Expressions: what they name, what type they have, what they compute.
//!
//! Expressions of the IR have no effects, so a call within an expression becomes a statement before
//! it. What is evaluated before the call is then kept in a temporary slot, and what P4 evaluates
//! only under a condition (`&&`, `||`, `?:`) is put under an `if`.

use std::rc::Rc;

use num_traits::Zero;

use super::super::ast::{Binary, Expr, ExprKind, Name};
use super::super::diagnostic::did_you_mean;
use super::super::source::Span;
use super::operators::not;
use super::scope::Symbol;
use super::types::Type;
use super::value::{Storage, Typed, Value};
use super::{Checked, Checker};
use crate::ir::{self, StmtKind};

/// An expression that has been evaluated.
#[derive(Clone)]
pub(super) struct Evaluated {
    /// What it names: a variable, if it is one.
    pub(super) named: Typed,
    /// The value that it had then.
    pub(super) value: Typed,
}

impl Checker<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Checked<Typed> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Number(literal) => self.number(literal, span),
            ExprKind::Bool(value) => Ok(Typed::bool(*value, span)),
            ExprKind::Text => Ok(Typed { ty: Type::Text, value: Value::Text, span }),
            ExprKind::Any => Ok(Typed { ty: Type::Param("_".into()), value: Value::Any, span }),
            ExprKind::Name { name, global } => self.named(name, *global, span),
            ExprKind::Error(name) => self.error_value(name, span),
            ExprKind::Member(base, name) => self.member(base, name, span),
            ExprKind::Index(base, index) => self.index(base, index, span),
            ExprKind::Slice(base, high, low) => {
                let base = self.expr(base)?;
                let (high, low) = (self.expr(high)?, self.expr(low)?);
                self.slice(&base, &high, &low, span)
            }
            ExprKind::Unary(op, value) => {
                let value = self.expr(value)?;
                self.unary(*op, &value, span)
            }
            ExprKind::Binary(op @ (Binary::And | Binary::Or), left, right) => {
                self.short_circuit(*op, left, right, span)
            }
            ExprKind::Binary(op, left, right) => {
                let [left, right] = self.operands([left, right])?;
                self.binary(*op, left, right, span)
            }
            ExprKind::Choice(on, yes, no) => {
                let chosen = self.choice(on, yes, no, span)?;
                Ok(chosen.unassignable("what `?:` chooses"))
            }
            ExprKind::Cast(ty, value) => {
                let value = self.expr(value)?;
                let cast = self.cast(ty, value, span)?;
                Ok(cast.unassignable("the result of a cast"))
            }
            ExprKind::Call { callee, types, args } => self.call(callee, types, args, span),
            ExprKind::List(items) => {
                let items: Vec<&Expr> = items.iter().collect();
                let items = self.sequence(&items)?;
                self.parts(items.into_iter().map(|item| (None, item)).collect(), span)
            }
            ExprKind::Record(fields) => {
                let items: Vec<&Expr> = fields.iter().map(|(_, item)| item).collect();
                let items = self.sequence(&items)?;
                let names = fields.iter().map(|(name, _)| Some(Rc::clone(&name.text)));
                self.parts(names.zip(items).collect(), span)
            }
        }
    }

    fn parts(&mut self, parts: Vec<(Option<Rc<str>>, Typed)>, span: Span) -> Checked<Typed> {
        Ok(Typed { ty: Type::Param("{...}".into()), value: Value::Parts(parts), span })
    }

    fn number(&mut self, literal: &super::super::token::Literal, span: Span) -> Checked<Typed> {
        let plain = Typed::known(Type::Int, literal.value.clone(), span);
        match literal.width {
            None => Ok(plain),
            Some((width, signed)) => match u16::try_from(width) {
                Ok(width) if (1..=ir::MAX_WIDTH).contains(&width) => {
                    // Section 6.4.3.2: 8s0b1010_1010 is -86, so only what is too long is odd.
                    let ty = Type::Fixed { width, signed };
                    let bits = u64::from(width);
                    let kept = super::value::wrapped(&literal.value, width, signed);
                    if literal.value.bits() > bits {
                        let message = format!("{} does not fit {ty}", literal.value);
                        self.messages.warn(span, message, format!("it becomes {kept}"));
                    }
                    Ok(Typed::known(ty, kept, span))
                }
                _ => {
                    let instead = format!("1 to {} bits", ir::MAX_WIDTH);
                    Err(self.refuse(span, &format!("{width} bits"), instead))
                }
            },
        }
    }

    fn named(&mut self, name: &Name, global: bool, span: Span) -> Checked<Typed> {
        let found = match global {
            true => self.scopes.find_global(&name.text),
            false => self.scopes.find(&name.text),
        };
        match found {
            Some(Symbol::Constant { ty, value }) => {
                Ok(Typed { ty: ty.clone(), value: value.clone(), span })
            }
            Some(Symbol::Variable { ty, storage, readonly }) => {
                let (ty, storage, readonly) = (ty.clone(), storage.clone(), *readonly);
                Ok(Typed { ty, value: Value::Stored { storage, slice: None, readonly }, span })
            }
            Some(other) => {
                let hint = match other {
                    Symbol::Type(_) => "`Type.member` is a member of an enum",
                    Symbol::Table(..) => "apply it: `name.apply()`",
                    Symbol::Lowered(_) | Symbol::Action(_) | Symbol::Function(_) => {
                        "call it: `name(...)`"
                    }
                    _ => "",
                };
                let other = other.clone();
                Err(self.misused(name, &other, hint, "a value"))
            }
            None => Err(self.unknown(name)),
        }
    }

    pub(super) fn unknown(&mut self, name: &Name) -> super::Reported {
        if self.scopes.is_later(&name.text) {
            let message = format!("`{name}` is not declared yet here");
            let hint = "names are declared before their use, and nothing calls itself";
            return self.error(name.span, message, hint);
        }
        let known = self.scopes.names(|s| !matches!(s, Symbol::Type(_) | Symbol::MatchKind));
        let hint = did_you_mean(&name.text, known, "names are declared before their use");
        self.error(name.span, format!("unknown name `{name}`"), hint)
    }

    fn error_value(&mut self, name: &Name, span: Span) -> Checked<Typed> {
        let declared = self.errors.contains(&name.text);
        let position = self.program.errors.iter().position(|e| **e == *name.text);
        match position.filter(|_| declared) {
            Some(at) => Ok(Typed::known(Type::Error, at, span)),
            None => {
                let otherwise = match position {
                    Some(_) => "write `#include <core.p4>`",
                    None => "declare it: `error { Name }`",
                };
                let hint = did_you_mean(&name.text, self.errors.iter().map(|e| &**e), otherwise);
                Err(self.error(name.span, format!("unknown error `{name}`"), hint))
            }
        }
    }

    fn member(&mut self, base: &Expr, name: &Name, span: Span) -> Checked<Typed> {
        if let ExprKind::Name { name: of, .. } = &base.kind
            && let Some(Symbol::Type(ty)) = self.scopes.find(&of.text)
        {
            let ty = ty.clone();
            return self.enum_member(&ty, name, span);
        }
        if let Some(applied) = self.apply_member(base, name, span)? {
            return Ok(applied);
        }
        let base = self.expr(base)?;
        let (record, offset) = match &base.ty {
            Type::Header(record) => (Rc::clone(record), true),
            Type::Struct(record) => (Rc::clone(record), false),
            Type::Stack(..) => return self.stack_member(&base, name, span),
            other => {
                let message = format!("{other} has no member `{name}`");
                return Err(self.error(name.span, message, "only structs and headers have fields"));
            }
        };
        let Some((at, field)) = record.field(&name.text) else {
            let known = record.fields.iter().map(|f| &*f.name);
            let hint = did_you_mean(&name.text, known, &listed(&record));
            let message = format!("{} has no field `{name}`", base.ty);
            return Err(self.error(name.span, message, hint));
        };
        let ty = field.ty.clone();
        match base.value {
            Value::Stored { storage, readonly, .. } => {
                let storage = match storage {
                    Storage::Header { fields, .. } if offset => Storage::Scalar(fields[at]),
                    Storage::Struct(parts) => parts[at].clone(),
                    other => other,
                };
                Ok(Typed { ty, value: Value::Stored { storage, slice: None, readonly }, span })
            }
            Value::Parts(parts) => match parts.into_iter().nth(at) {
                Some((_, part)) => Ok(Typed { span, ..part }),
                None => Err(self.error(span, "no such part", "")),
            },
            _ => Err(self.error(span, "this has no fields here", "")),
        }
    }

    fn enum_member(&mut self, ty: &Type, name: &Name, span: Span) -> Checked<Typed> {
        let Type::Enum(of) = ty else {
            let message = format!("{ty} has no member `{name}`");
            return Err(self.error(span, message, "only types that are enums have members"));
        };
        match of.members.iter().find(|(member, _)| *member == name.text) {
            Some((_, value)) => Ok(Typed::known(ty.clone(), value.clone(), span)),
            None => {
                let known = of.members.iter().map(|(member, _)| &**member);
                let hint = did_you_mean(&name.text, known, "");
                Err(self.error(name.span, format!("{ty} has no member `{name}`"), hint))
            }
        }
    }

    /// Operands in order. If a later one has effects, what came before is kept.
    fn operands<const N: usize>(&mut self, all: [&Expr; N]) -> Checked<[Typed; N]> {
        let values = self.sequence(&all)?;
        let count = values.len();
        values.try_into().map_err(|_| {
            let span = all.first().map_or(Span { file: 0, start: 0, end: 0 }, |e| e.span);
            self.error(span, format!("{count} operands"), "")
        })
    }

    /// Expressions in order. If a later one has effects, what came before is kept.
    pub(super) fn sequence(&mut self, all: &[&Expr]) -> Checked<Vec<Typed>> {
        let evaluated = self.evaluate(all)?;
        Ok(evaluated.into_iter().map(|e| e.value).collect())
    }

    /// The same, with what each names: an argument that is copied back needs both.
    pub(super) fn evaluate(&mut self, all: &[&Expr]) -> Checked<Vec<Evaluated>> {
        let mut done: Vec<Evaluated> = Vec::new();
        for expr in all {
            let (named, effects) = self.collect(|c| c.expr(expr))?;
            if !effects.is_empty() {
                for before in &mut done {
                    self.keep(&mut before.value)?;
                }
                self.frame.block.extend(effects);
            }
            done.push(Evaluated { value: named.clone(), named });
        }
        Ok(done)
    }

    /// Put a number that is not a constant into a temporary slot.
    fn keep(&mut self, value: &mut Typed) -> Checked<()> {
        match &mut value.value {
            Value::Parts(parts) => parts.iter_mut().try_for_each(|(_, part)| self.keep(part)),
            Value::Computed(_) | Value::Stored { .. } => match value.ty.width() {
                Some(width) => {
                    let expr = self.scalar(value)?;
                    let to = self.temporary(width, value.span);
                    self.emit(StmtKind::Assign { to, slice: None, value: expr }, value.span)?;
                    value.value = Value::Computed(ir::Expr::slot(to, width));
                    Ok(())
                }
                None => self.keep_whole(value),
            },
            _ => Ok(()),
        }
    }

    fn keep_whole(&mut self, value: &mut Typed) -> Checked<()> {
        let parts = self.scalars(value)?;
        let storage = self.storage("$temp", &value.ty.clone(), value.span)?;
        for (to, expr) in storage.slots().into_iter().zip(parts) {
            self.emit(StmtKind::Assign { to, slice: None, value: expr }, value.span)?;
        }
        value.value = Value::Stored { storage, slice: None, readonly: Some("a temporary value") };
        Ok(())
    }

    /// `&&` and `||`: the right side is evaluated only if the left side does not decide.
    fn short_circuit(
        &mut self,
        op: Binary,
        left: &Expr,
        right: &Expr,
        span: Span,
    ) -> Checked<Typed> {
        let left = self.expr(left)?;
        let (right, effects) = self.collect(|c| c.conditionally(|c| c.expr(right)))?;
        if effects.is_empty() {
            return self.binary(op, left, right, span);
        }
        // Types are checked as without effects.
        self.binary(op, left.clone(), right.clone(), span)?;
        let value = self.scalar(&left)?;
        let to = self.temporary(1, span);
        self.emit(StmtKind::Assign { to, slice: None, value }, span)?;
        let result = ir::Expr::slot(to, 1);
        let (_, then) = self.collect(|c| {
            c.frame.block.extend(effects);
            let value = c.scalar(&right)?;
            c.emit(StmtKind::Assign { to, slice: None, value }, span)
        })?;
        let on = if op == Binary::And { result.clone() } else { not(result.clone()) };
        self.emit(StmtKind::If { on, then, otherwise: Vec::new() }, span)?;
        Ok(Typed::computed(Type::Bool, result, span))
    }

    pub(super) fn conditionally<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        self.conditional += 1;
        let done = inner(self);
        self.conditional -= 1;
        done
    }

    /// `on ? yes : no` (section 8.5.1).
    fn choice(&mut self, on: &Expr, yes: &Expr, no: &Expr, span: Span) -> Checked<Typed> {
        let on = self.condition(on)?;
        let (yes, yes_effects) = self.collect(|c| c.conditionally(|c| c.expr(yes)))?;
        let (no, no_effects) = self.collect(|c| c.conditionally(|c| c.expr(no)))?;
        let (yes, no) = self.same_type(Binary::Equal, yes, no, span)?;
        if let Some(known) = on.constant() {
            let taken = !known.is_zero();
            let (value, effects) = if taken { (yes, yes_effects) } else { (no, no_effects) };
            self.frame.block.extend(effects);
            return Ok(Typed { span, ..value });
        }
        let Some(width) = yes.ty.width() else {
            if yes.ty == Type::Int {
                let hint = "give one of them a width, such as `8w1`";
                return Err(self.error(span, "a choice between two `int` at run time", hint));
            }
            let instead = "write an `if` and two assignments";
            return Err(self.refuse(span, &format!("`?:` between values of {}", yes.ty), instead));
        };
        let on = self.scalar(&on)?;
        let ty = yes.ty.clone();
        if yes_effects.is_empty() && no_effects.is_empty() {
            let (a, b) = (self.scalar(&yes)?, self.scalar(&no)?);
            let kind = ir::ExprKind::Mux(Box::new(on), Box::new(a), Box::new(b));
            return Ok(Typed::computed(ty, ir::Expr { kind, width }, span));
        }
        let to = self.temporary(width, span);
        let mut branch = |effects: ir::Block, value: &Typed| {
            let ((), block) = self.collect(|c| {
                c.frame.block.extend(effects);
                let value = c.scalar(value)?;
                c.emit(StmtKind::Assign { to, slice: None, value }, span)
            })?;
            Ok(block)
        };
        let (then, otherwise) = (branch(yes_effects, &yes)?, branch(no_effects, &no)?);
        self.emit(StmtKind::If { on, then, otherwise }, span)?;
        Ok(Typed::computed(ty, ir::Expr::slot(to, width), span))
    }

    /// A bool.
    pub(super) fn condition(&mut self, expr: &Expr) -> Checked<Typed> {
        let given = self.expr(expr)?;
        if given.ty == Type::Bool {
            return Ok(given);
        }
        let message = format!("a condition of type {}", given.ty);
        let hint = match &given.ty {
            Type::Header(_) => "ask whether it is valid: `.isValid()`",
            _ => "compare it: `... != 0`",
        };
        Err(self.error(given.span, message, hint))
    }
}

/// "there is `a`, `b`".
fn listed(record: &super::types::Record) -> String {
    let names: Vec<String> =
        record.fields.iter().take(12).map(|f| format!("`{}`", f.name)).collect();
    format!("it has {}", names.join(", "))
}
