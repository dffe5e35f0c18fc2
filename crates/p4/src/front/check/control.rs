//! Controls, which are inlined, and actions (sections 14 and 14.1).

use std::rc::Rc;

use super::super::ast::{Action, Arg, Control, Direction, Param};
use super::super::limits::{MAX_ACTIONS, MAX_CONTROLS};
use super::super::source::Span;
use super::call::nothing;
use super::expr::Evaluated;
use super::scope::{Lowered, LoweredParam, Symbol};
use super::types::Type;
use super::value::{Storage, Typed, Value};
use super::{Checked, Checker, Within};
use crate::ir::{self, ActionId, SlotId, StmtKind};

/// What is left to do with the arguments of a control when all have been evaluated.
#[derive(Default)]
struct Passing {
    /// Before it runs: headers in these are invalid.
    empty: Vec<(Storage, Span)>,
    /// After it has run: copied from the second to the first.
    back: Vec<(Typed, Typed)>,
}

impl Checker<'_> {
    /// A control's locals and body, its parameters bound already.
    pub(super) fn control_body(&mut self, control: &Control) -> Checked<()> {
        self.used.push(Rc::clone(&control.name.text));
        self.depth += 1;
        let locals = self.locals(&control.locals);
        let body = self.block(&control.body);
        self.depth -= 1;
        locals.and(body)
    }

    /// `control.apply(...)`: the control inlined (section 14.4). Parameters are the arguments
    /// themselves where no other argument overlaps; that is the same as copying in and out.
    pub(super) fn apply_control(
        &mut self,
        control: &Rc<Control>,
        path: &str,
        args: &[Arg],
        span: Span,
    ) -> Checked<Typed> {
        if self.within != Within::Control {
            let message = format!("the control `{}` is applied outside of controls", control.name);
            return Err(self.error(span, message, "apply it in the `apply` of a control"));
        }
        if self.depth >= MAX_CONTROLS {
            let instead = format!("at most {MAX_CONTROLS}");
            return Err(self.refuse(span, "controls this deep in one another", instead));
        }
        let given = self.passed(&control.params, args, &control.name.text, span)?;
        let (mut storages, mut passing) = (Vec::new(), Passing::default());
        let apart = self.scopes.only_before(&control.name.text);
        let params = self.block_params(&control.params);
        self.scopes.restore(apart);
        let params = params?;
        for (n, (param, resolved)) in control.params.iter().zip(&params).enumerate() {
            let mine = given[n].clone();
            let others: Vec<SlotId> = given
                .iter()
                .enumerate()
                .filter(|(m, _)| *m != n)
                .flat_map(|(_, o)| o.named.slots())
                .collect();
            let storage = self.argument(param, resolved, mine, &others, path, &mut passing)?;
            storages.push((resolved.clone(), storage));
        }
        let Passing { empty, back } = passing;
        for (storage, span) in empty {
            self.invalidate(&storage, span)?;
        }
        let exits = std::mem::replace(&mut self.frame.exits, false);
        self.inline(control, path, &storages, span)?;
        if self.frame.exits && !back.is_empty() {
            // Section 12.5: `exit` still copies out, and here nothing follows it.
            let instead = "give the control arguments that do not overlap, or set a flag";
            return Err(self.refuse(span, "`exit` in a control that copies out", instead));
        }
        self.frame.exits |= exits;
        for (to, from) in back {
            self.assign(&to, &from, span)?;
        }
        Ok(nothing(span))
    }

    /// The storage of a parameter: the argument's own, or a copy.
    fn argument(
        &mut self,
        param: &Param,
        ty: &Type,
        given: Evaluated,
        others: &[SlotId],
        path: &str,
        passing: &mut Passing,
    ) -> Checked<Storage> {
        let out = matches!(param.direction, Direction::Out | Direction::InOut);
        let passed = given.value;
        let given = if out {
            self.target(given.named, param.direction, ty)?
        } else {
            self.convert(passed.clone(), ty)?
        };
        if param.direction == Direction::None {
            self.known(&given, "an argument for a parameter without direction")?;
        }
        // What was kept before a later argument changed it is not the variable any more.
        let is_kept = param.direction == Direction::InOut && passed.slots() != given.slots();
        if let Value::Stored { storage, slice: None, .. } = &given.value
            && !is_kept
            && given.slots().iter().all(|slot| !others.contains(slot))
        {
            if param.direction == Direction::Out {
                passing.empty.push((storage.clone(), given.span));
            }
            return Ok(storage.clone());
        }
        let storage = self.storage(&format!("{path}.{}", param.name), ty, param.name.span)?;
        let value = Value::Stored { storage: storage.clone(), slice: None, readonly: None };
        let copy = Typed { ty: ty.clone(), value, span: given.span };
        if param.direction == Direction::Out {
            passing.empty.push((storage.clone(), given.span));
        } else {
            let passed = self.convert(passed, ty)?;
            self.assign(&copy, &passed, given.span)?;
        }
        if out {
            passing.back.push((given, copy));
        }
        Ok(storage)
    }

    fn inline(
        &mut self,
        control: &Rc<Control>,
        path: &str,
        storages: &[(Type, Storage)],
        span: Span,
    ) -> Checked<()> {
        let apart = self.scopes.only_before(&control.name.text);
        let around = std::mem::replace(&mut self.frame.path, format!("{path}."));
        self.scopes.open();
        let done = self.collect(|c| {
            for (param, (ty, storage)) in control.params.iter().zip(storages) {
                c.bind(param, ty, Some(storage.clone()))?;
            }
            c.control_body(control)
        });
        self.scopes.close();
        self.scopes.restore(apart);
        self.frame.path = around;
        let ((), body) = done?;
        self.emit(StmtKind::Scope(body), span)
    }

    /// An action of the top level, lowered where the pipeline first uses it.
    pub(super) fn global_action(&mut self, action: &Rc<Action>) -> Checked<Rc<Lowered>> {
        let known = self.frame.actions.iter().find(|l| Rc::ptr_eq(&l.action, action));
        if let Some(known) = known {
            return Ok(Rc::clone(known));
        }
        if self.frame.lowering.len() > MAX_ACTIONS {
            let instead = format!("at most {MAX_ACTIONS}");
            let span = action.name.span;
            return Err(self.refuse(span, "actions this deep in one another", instead));
        }
        self.used.push(Rc::clone(&action.name.text));
        let apart = self.scopes.only_before(&action.name.text);
        let around = std::mem::take(&mut self.frame.path);
        let lowered = self.lower_action(action);
        self.frame.path = around;
        self.scopes.restore(apart);
        let lowered = Rc::new(lowered?);
        self.frame.actions.push(Rc::clone(&lowered));
        Ok(lowered)
    }

    pub(super) fn local_action(&mut self, action: &Rc<Action>) -> Checked<()> {
        let lowered = Rc::new(self.lower_action(action)?);
        self.declare(&action.name, Symbol::Lowered(lowered))
    }

    fn lower_action(&mut self, action: &Rc<Action>) -> Checked<Lowered> {
        let within = std::mem::replace(&mut self.within, Within::Action);
        let exits = std::mem::replace(&mut self.frame.exits, false);
        let called = std::mem::replace(&mut self.frame.called, 0);
        let before = self.statements;
        self.frame.lowering.push(Rc::clone(&action.name.text));
        self.scopes.open();
        let lowered = self.action_body(action);
        self.scopes.close();
        self.frame.lowering.pop();
        let exits = std::mem::replace(&mut self.frame.exits, exits);
        let depth = std::mem::replace(&mut self.frame.called, called);
        self.within = within;
        let (params, inputs, body) = lowered?;
        let id = self.new_action(self.path(&action.name.text), inputs, body, action.name.span);
        let statements = self.statements - before;
        Ok(Lowered { action: Rc::clone(action), id, params, exits, depth, statements })
    }

    pub(super) fn new_action(
        &mut self,
        name: String,
        params: Vec<SlotId>,
        body: ir::Block,
        span: Span,
    ) -> ActionId {
        let place = self.place(span);
        self.frame.pipeline.actions.push(ir::Action { name, params, body, place });
        ActionId(self.frame.pipeline.actions.len() as u32 - 1)
    }

    fn action_body(
        &mut self,
        action: &Action,
    ) -> Checked<(Vec<LoweredParam>, Vec<SlotId>, ir::Block)> {
        self.distinct_names(&action.params)?;
        let (mut params, mut inputs) = (Vec::new(), Vec::new());
        let mut free = None;
        let ((), body) = self.collect(|c| {
            for param in &action.params {
                let ty = c.type_of(&param.ty)?;
                let name = c.path(&format!("{}.{}", action.name, param.name));
                let storage = c.storage(&name, &ty, param.name.span)?;
                match (param.direction, free) {
                    (Direction::None, _) => free = Some(param.name.span),
                    (_, Some(_)) => {
                        // Section 14.1: parameters without direction are the last.
                        let message =
                            format!("`{}` stands behind one without direction", param.name);
                        let hint = "parameters of the control plane are the last ones";
                        return Err(c.error(param.name.span, message, hint));
                    }
                    _ => {}
                }
                if param.direction == Direction::Out {
                    c.invalidate(&storage, param.name.span)?;
                } else {
                    inputs.extend(storage.slots());
                }
                c.bind(param, &ty, Some(storage.clone()))?;
                params.push(LoweredParam { ty, storage });
            }
            c.block(&action.body)
        })?;
        Ok((params, inputs, body))
    }
}

impl Typed {
    /// The slots that it is kept in.
    fn slots(&self) -> Vec<SlotId> {
        match &self.value {
            Value::Stored { storage, .. } => storage.slots(),
            _ => Vec::new(),
        }
    }
}
