//! Header stacks (section 8.18): how they move, and where a parser's `next` points to.

use std::rc::Rc;

use num_bigint::BigInt;
use num_traits::{One, ToPrimitive};

use super::super::ast::{Arg, Expr, Name};
use super::super::source::Span;
use super::call::nothing;
use super::types::Type;
use super::value::{Stack, Storage, Typed, Value};
use super::{Checked, Checker, Within};
use crate::ir;

impl Checker<'_> {
    /// `stack.next`, `stack.last` and `stack.lastIndex` (section 8.18): the parser's walk knows how
    /// far the stack is filled.
    pub(super) fn stack_member(&mut self, base: &Typed, name: &Name, span: Span) -> Checked<Typed> {
        let (Value::Stored { storage: Storage::Stack(stack), readonly, .. }, Type::Stack(of, size)) =
            (&base.value, &base.ty)
        else {
            return Err(self.error(span, "this is no header stack", ""));
        };
        let filled = self.frame.filled.get(stack.number).copied().unwrap_or(0);
        let in_parser = self.within == Within::Parser;
        let at = match &*name.text {
            "size" => return Ok(Typed::known(Type::bits(32), *size, span)),
            "lastIndex" if in_parser => {
                let last = u128::from(filled.wrapping_sub(1));
                let expr = ir::Expr::constant(last, 32);
                return Ok(Typed::computed(Type::bits(32), expr, span));
            }
            "next" if in_parser => filled as usize,
            "last" if in_parser => (filled as usize).wrapping_sub(1),
            "next" | "last" | "lastIndex" => {
                let message = format!("`{name}` outside a parser");
                return Err(self.error(span, message, "index the stack: `stack[0]`"));
            }
            _ => {
                let message = format!("{} has no member `{name}`", base.ty);
                let hint = "stacks have `next`, `last`, `lastIndex` and `size`";
                return Err(self.error(name.span, message, hint));
            }
        };
        let is_last = &*name.text == "last";
        let readonly = readonly.or(is_last.then_some("`last`, which is for reading"));
        match stack.elements.get(at) {
            Some(element) => Ok(Typed {
                ty: Type::Header(Rc::clone(of)),
                value: Value::Stored { storage: element.clone(), slice: None, readonly },
                span,
            }),
            None => {
                let message = format!("`{name}` of a stack that holds {filled} of {size} headers");
                Err(self.error(span, message, "extract into `next` before; stop when it is full"))
            }
        }
    }

    /// `stack[0]`.
    pub(super) fn index(&mut self, base: &Expr, index: &Expr, span: Span) -> Checked<Typed> {
        let base = self.expr(base)?;
        let index = self.expr(index)?;
        let (Value::Stored { storage: Storage::Stack(stack), readonly, .. }, Type::Stack(of, size)) =
            (&base.value, &base.ty)
        else {
            let message = format!("{} has no elements", base.ty);
            return Err(self.error(span, message, "only header stacks do; bits are `x[7:0]`"));
        };
        let Some(at) = index.constant() else {
            let instead = "index with a constant, under an `if` for each";
            return Err(self.refuse(index.span, "stack indices of the run time", instead));
        };
        match at.to_usize().and_then(|at| stack.elements.get(at)) {
            Some(element) => Ok(Typed {
                ty: Type::Header(Rc::clone(of)),
                value: Value::Stored { storage: element.clone(), slice: None, readonly: *readonly },
                span,
            }),
            None => {
                let message = format!("element {at} of a stack of {size}");
                let hint = format!("elements are 0 to {}", size.saturating_sub(1));
                Err(self.error(index.span, message, hint))
            }
        }
    }

    /// `push_front` and `pop_front` (section 8.18): headers move over, the rest become invalid.
    pub(super) fn stack_method(
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
        let [arg] = args else {
            return Err(self.error(span, "one argument is wanted: by how many", ""));
        };
        let value = self.only_argument(arg, "count")?;
        let given = self.expr(value)?;
        let by = self.known(&given, "by how many a stack moves")?;
        if by < BigInt::one() {
            return Err(self.error(value.span, format!("a stack moves by {by}"), "by 1 or more"));
        }
        let stack = Rc::clone(stack);
        let size = stack.elements.len();
        let by = by.to_usize().unwrap_or(size).min(size);
        let filled = self.frame.filled[stack.number] as usize;
        let filled = if push { (filled + by).min(size) } else { filled.saturating_sub(by) };
        self.fill_to(&stack, filled as u32, span)?;
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

    /// From here on so many elements of a stack are in use: where a parser's `next` points to.
    fn fill_to(&mut self, stack: &Stack, filled: u32, span: Span) -> Checked<()> {
        if self.within != Within::Parser || self.frame.filled[stack.number] == filled {
            return Ok(());
        }
        if self.conditional > 0 {
            let instead = "change it in a state of its own, and `select` that state";
            return Err(self.refuse(span, "a header stack that moves under a condition", instead));
        }
        self.frame.filled[stack.number] = filled;
        Ok(())
    }

    /// An assigned stack is filled as that which it is assigned (section 8.18).
    pub(super) fn fill_alike(&mut self, to: &Storage, from: &Value, span: Span) -> Checked<()> {
        match (to, from) {
            (Storage::Stack(to), Value::Stored { storage: Storage::Stack(from), .. }) => {
                self.fill_to(to, self.frame.filled[from.number], span)
            }
            (Storage::Struct(to), Value::Stored { storage: Storage::Struct(from), .. }) => {
                to.iter().zip(from).try_for_each(|(to, from)| {
                    let from = from.clone();
                    let from = Value::Stored { storage: from, slice: None, readonly: None };
                    self.fill_alike(to, &from, span)
                })
            }
            (Storage::Struct(to), Value::Parts(from)) => to
                .iter()
                .zip(from)
                .try_for_each(|(to, (_, from))| self.fill_alike(to, &from.value, span)),
            _ => Ok(()),
        }
    }
}
