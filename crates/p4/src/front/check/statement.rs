//! Statements (section 12).

use num_bigint::BigInt;
use num_traits::Zero;

use super::super::ast::{Block, Expr, ExprKind, Statement, StatementKind, SwitchCase, Variable};
use super::super::source::Span;
use super::scope::Symbol;
use super::types::Type;
use super::value::{Storage, Typed, Value, as_bits, reads};
use super::{Checked, Checker, Within};
use crate::ir::{self, StmtKind, TableId};

impl Checker<'_> {
    /// Statements one after another. A mistake in one does not hide those in the others.
    pub(super) fn statements(&mut self, statements: &[Statement]) -> Checked<()> {
        let mut result = Ok(());
        for statement in statements {
            self.effort(statement.span)?;
            if let Err(reported) = self.statement(statement) {
                result = Err(reported);
            }
        }
        let leaves = |s: &&Statement| matches!(s.kind, StatementKind::Return | StatementKind::Exit);
        let mut behind = statements.iter().skip_while(|s| !leaves(s)).skip(1);
        if let Some(first) = behind.next() {
            self.messages.warn(first.span, "this is never reached", "remove it");
        }
        result
    }

    pub(super) fn block(&mut self, block: &Block) -> Checked<()> {
        self.scopes.open();
        let done = self.statements(&block.statements);
        self.scopes.close();
        done
    }

    fn statement(&mut self, statement: &Statement) -> Checked<()> {
        let span = statement.span;
        if self.within == Within::Deparser
            && !matches!(
                statement.kind,
                StatementKind::Call(_) | StatementKind::Block(_) | StatementKind::Empty
            )
        {
            let instead = "a deparser only emits; `emit` skips headers that are not valid";
            return Err(self.refuse(span, "this statement in a deparser", instead));
        }
        let before = self.frame.block.len();
        self.statement_kind(statement)?;
        if self.within == Within::Deparser && self.frame.block.len() > before {
            let instead = "do it in the control before; a deparser only emits";
            return Err(self.refuse(span, "a call with an effect in a deparser", instead));
        }
        Ok(())
    }

    fn statement_kind(&mut self, statement: &Statement) -> Checked<()> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Empty => Ok(()),
            StatementKind::Constant(constant) => {
                let done = self.constant(constant, false);
                self.or_broken(&constant.name, done)
            }
            StatementKind::Variable(variable) => {
                let done = self.variable(variable);
                self.or_broken(&variable.name, done)
            }
            StatementKind::Assign(left, right) => self.assignment(left, right, span),
            StatementKind::Call(call) => self.call_statement(call),
            StatementKind::If(on, yes, no) => self.conditional(on, yes, no.as_deref(), span),
            StatementKind::Block(block) => self.block(block),
            StatementKind::Return if self.within != Within::Parser => {
                self.emit(StmtKind::Return, span)
            }
            StatementKind::Exit if self.within != Within::Parser => self.exit(span),
            StatementKind::Return | StatementKind::Exit => {
                let hint = "a parser ends by `transition accept;` or `reject`";
                Err(self.error(span, "this statement in a parser", hint))
            }
            StatementKind::Switch { on, cases } => self.switch(on, cases, span),
        }
    }

    fn exit(&mut self, span: Span) -> Checked<()> {
        self.frame.exits = true;
        self.emit(StmtKind::Exit, span)
    }

    /// A local variable. Without a value its headers are invalid (section 8.25).
    pub(super) fn variable(&mut self, variable: &Variable) -> Checked<()> {
        let ty = self.type_of(&variable.ty)?;
        let name = &variable.name;
        let path = self.path(&name.text);
        let storage = self.storage(&path, &ty, name.span)?;
        let value = Value::Stored { storage: storage.clone(), slice: None, readonly: None };
        let target = Typed { ty: ty.clone(), value, span: name.span };
        match &variable.value {
            None => self.invalidate(&storage, name.span)?,
            Some(value) => self.initialize(&target, &storage, value)?,
        }
        self.declare(name, Symbol::Variable { ty, storage, readonly: None })
    }

    /// Assign the first value; a call puts its result straight there.
    fn initialize(&mut self, to: &Typed, storage: &Storage, value: &Expr) -> Checked<()> {
        if matches!(value.kind, ExprKind::Call { .. }) {
            self.frame.into = Some((to.ty.clone(), storage.clone()));
        }
        let given = self.expr(value);
        self.frame.into = None;
        let given = self.convert(given?, &to.ty)?;
        if given.value_is(storage) { Ok(()) } else { self.assign(to, &given, value.span) }
    }

    fn assignment(&mut self, left: &Expr, right: &Expr, span: Span) -> Checked<()> {
        let to = self.expr(left)?;
        match &to.value {
            Value::Stored { readonly, .. } => self.writable(*readonly, to.span)?,
            Value::Known(_) => {
                return Err(self.error(to.span, "a constant cannot be assigned", "use a variable"));
            }
            _ => {
                let hint = "variables, fields and slices of them can be assigned";
                return Err(self.error(to.span, "this cannot be assigned", hint));
            }
        }
        if let Value::Stored { storage, slice: None, .. } = &to.value {
            let storage = storage.clone();
            return self.initialize(&to, &storage, right);
        }
        let given = self.expr(right)?;
        let given = self.convert(given, &to.ty)?;
        self.assign(&to, &given, span)
    }

    /// `to` is a variable, a field or a slice of one; `from` has its type.
    pub(super) fn assign(&mut self, to: &Typed, from: &Typed, span: Span) -> Checked<()> {
        let Value::Stored { storage, slice, .. } = &to.value else {
            return Err(self.error(to.span, "this cannot be assigned", ""));
        };
        if let (Storage::Scalar(slot), slice) = (storage, *slice) {
            let value = self.scalar(from)?;
            return self.emit(StmtKind::Assign { to: *slot, slice, value }, span);
        }
        let slots = storage.slots();
        self.fill_alike(storage, &from.value, span)?;
        let mut parts = self.scalars(from)?;
        if slots.len() != parts.len() {
            let message = format!("expected {}, found {}", to.ty, from.ty);
            return Err(self.error(from.span, message, ""));
        }
        // `s = {s.b, s.a}`: what is read is read before anything is written.
        let swaps = matches!(from.value, Value::Parts(_)) && parts.iter().any(|p| reads(p, &slots));
        if swaps {
            for part in &mut parts {
                let to = self.temporary(part.width, span);
                let width = part.width;
                let value = std::mem::replace(part, ir::Expr::slot(to, width));
                self.emit(StmtKind::Assign { to, slice: None, value }, span)?;
            }
        }
        for (to, value) in slots.into_iter().zip(parts) {
            self.emit(StmtKind::Assign { to, slice: None, value }, span)?;
        }
        Ok(())
    }

    fn call_statement(&mut self, call: &Expr) -> Checked<()> {
        if !matches!(call.kind, ExprKind::Call { .. }) {
            return Err(self.error(call.span, "an expression alone does nothing", "assign it"));
        }
        self.expr(call).map(|_| ())
    }

    fn conditional(
        &mut self,
        on: &Expr,
        yes: &Statement,
        no: Option<&Statement>,
        span: Span,
    ) -> Checked<()> {
        let on = self.condition(on);
        let branch = |c: &mut Self, statement: Option<&Statement>| {
            c.collect(|c| {
                c.conditionally(|c| {
                    c.scopes.open();
                    let done = statement.map_or(Ok(()), |s| c.statements(std::slice::from_ref(s)));
                    c.scopes.close();
                    done
                })
            })
            .map(|((), block)| block)
        };
        let (then, otherwise) = (branch(self, Some(yes)), branch(self, no));
        let (on, then, otherwise) = (on?, then?, otherwise?);
        if let Some(known) = on.constant() {
            let taken = if known.is_zero() { otherwise } else { then };
            // A scope of its own is not needed: what the branch declares has slots of its own.
            self.frame.block.extend(taken);
            return Ok(());
        }
        let on = self.scalar(&on)?;
        self.emit(StmtKind::If { on, then, otherwise }, span)
    }

    fn switch(&mut self, on: &Expr, cases: &[SwitchCase], span: Span) -> Checked<()> {
        match self.within {
            Within::Parser => return Err(self.error(span, "`switch` in a parser", "use `select`")),
            Within::Action => {
                let hint = "it stands in controls only; write `if`";
                return Err(self.error(span, "`switch` in an action", hint));
            }
            _ => {}
        }
        if let ExprKind::Member(base, member) = &on.kind
            && &*member.text == "action_run"
            && let Some((table, name)) = self.applied_table(base)?
        {
            let action_run = self.temporary(ir::ACTION_WIDTH, on.span);
            self.apply_table(table, None, Some(action_run), on.span)?;
            let selector = ir::Expr::slot(action_run, ir::ACTION_WIDTH);
            let labels = |c: &mut Self, label: &Expr| c.action_label(table, &name, label);
            return self.cases(selector, cases, labels, span);
        }
        let on = self.expr(on)?;
        if !matches!(on.ty, Type::Fixed { .. } | Type::Enum(_) | Type::Error) {
            let message = format!("`switch` on {}", on.ty);
            let hint = "it looks at numbers, enums and `action_run`";
            return Err(self.error(on.span, message, hint));
        }
        let ty = on.ty.clone();
        let selector = self.scalar(&on)?;
        let width = selector.width;
        let labels = |c: &mut Self, label: &Expr| {
            let given = c.expr(label)?;
            let given = c.convert(given, &ty)?;
            let value: BigInt = c.known(&given, "a case")?;
            Ok(as_bits(&value, width))
        };
        self.cases(selector, cases, labels, span)
    }

    /// The number of an action in a table.
    fn action_label(&mut self, table: TableId, name: &str, label: &Expr) -> Checked<u128> {
        let known = self.table_actions(table);
        if let ExprKind::Name { name: action, .. } = &label.kind
            && let Some(at) = known.iter().position(|a| **a == *action.text)
        {
            return Ok(at as u128);
        }
        let hint = format!("it has {}", known.join(", "));
        Err(self.error(label.span, format!("no action of the table `{name}`"), hint))
    }

    fn cases(
        &mut self,
        on: ir::Expr,
        cases: &[SwitchCase],
        mut value: impl FnMut(&mut Self, &Expr) -> Checked<u128>,
        span: Span,
    ) -> Checked<()> {
        let (mut lowered, mut default) = (Vec::new(), Vec::new());
        let (mut labels, mut is_default) = (Vec::new(), false);
        let (mut seen, mut ended) = (Vec::new(), false);
        for case in cases {
            if ended {
                let hint = "`default` is the last one";
                return Err(self.error(case.span, "a case behind `default`", hint));
            }
            match &case.label {
                None => is_default = true,
                Some(label) => {
                    let value = value(self, label)?;
                    if seen.contains(&value) {
                        let hint = "remove one";
                        return Err(self.error(label.span, "this case is there twice", hint));
                    }
                    seen.push(value);
                    labels.push(value);
                }
            }
            ended = is_default;
            let Some(body) = &case.body else { continue };
            let ((), block) = self.collect(|c| c.conditionally(|c| c.block(body)))?;
            if is_default {
                // Labels that share the body of `default` do what it does.
                default = block;
                labels.clear();
            } else {
                lowered.push((std::mem::take(&mut labels), block));
            }
        }
        if !labels.is_empty() && !is_default {
            lowered.push((labels, Vec::new()));
        }
        self.emit(StmtKind::Switch { on, cases: lowered, default }, span)
    }
}

impl Typed {
    /// Whether it is what that variable holds.
    fn value_is(&self, storage: &Storage) -> bool {
        matches!(&self.value, Value::Stored { storage: s, slice: None, .. } if s == storage)
    }
}
