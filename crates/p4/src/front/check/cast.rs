//! Conversions between types (section 8.11), and values that must be known.

use std::rc::Rc;

use num_bigint::BigInt;

use super::super::ast::TypeRef;
use super::super::source::Span;
use super::types::{Record, Type};
use super::value::{Storage, Typed, Value, as_bits, fits, wrapped};
use super::{Checked, Checker};
use crate::ir;

impl Checker<'_> {
    /// A number that has to be known at compile time.
    pub(super) fn known(&mut self, given: &Typed, what: &str) -> Checked<BigInt> {
        if let Some(value) = given.constant() {
            return Ok(value.clone());
        }
        let message = format!("{what} must be known at compile time");
        Err(self.error(given.span, message, "use a number or a constant"))
    }

    /// The same for all numbers of a struct.
    pub(super) fn all_known(&mut self, given: &Typed, what: &str) -> Checked<()> {
        match &given.value {
            Value::Parts(parts) => {
                parts.iter().try_for_each(|(_, part)| self.all_known(part, what))
            }
            _ => self.known(given, what).map(|_| ()),
        }
    }

    /// What the language converts unasked: `int` to types of fixed width, enums to the type of
    /// their values, and lists to structs (section 8.11.2).
    pub(super) fn convert(&mut self, given: Typed, to: &Type) -> Checked<Typed> {
        if given.ty == *to {
            return Ok(given);
        }
        match (&given.value, to) {
            (Value::Parts(_), Type::Struct(record) | Type::Header(record)) => {
                return self.fill(given, &Rc::clone(record), to);
            }
            (Value::Known(value), Type::Fixed { width, signed }) if given.ty == Type::Int => {
                return Ok(self.fixed(value, *width, *signed, to, given.span));
            }
            (_, Type::Fixed { .. }) if given.ty.underlying() == to && given.ty != *to => {
                return Ok(Typed { ty: to.clone(), ..given });
            }
            _ => {}
        }
        let hint = self.conversion_hint(&given.ty, to);
        Err(self.error(given.span, format!("expected {to}, found {}", given.ty), hint))
    }

    /// How to write a conversion that the language does not do unasked.
    fn conversion_hint(&self, from: &Type, to: &Type) -> String {
        match (from.underlying(), to) {
            (Type::Fixed { signed: a, .. }, Type::Fixed { signed: b, .. }) if a == b => {
                format!("widths must be equal; write a cast: `({to}) ...`")
            }
            (Type::Fixed { width, .. }, Type::Fixed { signed, .. }) => {
                let step = Type::Fixed { width: *width, signed: *signed };
                format!("write casts for the sign and then the width: `({to}) ({step}) ...`")
            }
            (Type::Bool, Type::Fixed { width: 1, .. }) => format!("write `({to}) ...`"),
            (Type::Bool, Type::Fixed { .. }) => format!("write `({to}) (bit<1>) ...`"),
            (Type::Fixed { .. } | Type::Int, Type::Bool) => "compare it: `... != 0`".to_owned(),
            (Type::Distinct(_), _) | (_, Type::Distinct(_)) => format!("write `({to}) ...`"),
            (Type::Header(_) | Type::Struct(_), _) => "name one of its fields".to_owned(),
            (_, Type::Header(_) | Type::Struct(_)) => {
                "name one of its fields, or give all: `{a, b}`".to_owned()
            }
            _ => String::new(),
        }
    }

    /// An `int` in a type of fixed width.
    fn fixed(&mut self, value: &BigInt, width: u16, signed: bool, to: &Type, span: Span) -> Typed {
        let kept = wrapped(value, width, signed);
        if !fits(value, width, signed) {
            let message = format!("{value} does not fit {to}: it becomes {kept}");
            self.messages.warn(span, message, "use a wider type or a smaller number");
        }
        Typed::known(to.clone(), kept, span)
    }

    /// A list or record expression as a struct or header.
    fn fill(&mut self, given: Typed, record: &Rc<Record>, to: &Type) -> Checked<Typed> {
        let Value::Parts(parts) = given.value else { return Ok(given) };
        if parts.len() != record.fields.len() {
            let (name, wanted) = (&record.name, record.fields.len());
            let message = format!("`{name}` has {wanted} fields, not {}", parts.len());
            return Err(self.error(given.span, message, "give a value for each"));
        }
        let mut filled = Vec::new();
        for (n, field) in record.fields.iter().enumerate() {
            let by_name = parts.iter().find(|(name, _)| name.as_ref() == Some(&field.name));
            let Some((_, part)) = by_name.or(parts.get(n).filter(|(name, _)| name.is_none()))
            else {
                let message = format!("no value for the field `{}`", field.name);
                return Err(self.error(given.span, message, "name every field once"));
            };
            filled.push((Some(Rc::clone(&field.name)), self.convert(part.clone(), &field.ty)?));
        }
        Ok(Typed { ty: to.clone(), value: Value::Parts(filled), span: given.span })
    }

    /// `(type) value`.
    pub(super) fn cast(&mut self, ty: &TypeRef, given: Typed, span: Span) -> Checked<Typed> {
        let to = self.type_of(ty)?;
        let given = Typed { span, ..given };
        if given.ty == to {
            return Ok(given);
        }
        if let Type::Distinct(distinct) = &to
            && (given.ty == distinct.of || given.ty == Type::Int)
        {
            let plain = self.convert(given, &distinct.of.clone())?;
            return Ok(Typed { ty: to, ..plain });
        }
        if let Type::Distinct(distinct) = &given.ty
            && distinct.of == to
        {
            return Ok(Typed { ty: to, ..given });
        }
        if let (Type::Enum(e), Some(value)) = (&to, &enum_values(&to))
            && (given.ty == *value || given.ty == Type::Int)
        {
            let plain = self.convert(given, value)?;
            return Ok(Typed { ty: Type::Enum(Rc::clone(e)), ..plain });
        }
        let from = given.ty.underlying().clone();
        let given = Typed { ty: from, ..given };
        self.plain_cast(given, &to)
    }

    /// Between numbers and bools.
    fn plain_cast(&mut self, given: Typed, to: &Type) -> Checked<Typed> {
        let span = given.span;
        match (&given.ty, to) {
            (from, to) if from == to => Ok(given),
            (Type::Int, Type::Bool) => {
                let value = self.known(&given, "an `int`")?;
                if value != BigInt::from(0) && value != BigInt::from(1) {
                    let message = format!("{value} is no bool");
                    return Err(self.error(span, message, "only 0 and 1 can be cast"));
                }
                Ok(Typed::known(Type::Bool, value, span))
            }
            (Type::Fixed { width: 1, signed: false }, Type::Bool)
            | (Type::Bool, Type::Fixed { width: 1, signed: false }) => {
                Ok(Typed { ty: to.clone(), ..given })
            }
            (Type::Fixed { .. }, Type::Int) => {
                let value = self.known(&given, "what is cast to `int`")?;
                Ok(Typed::known(Type::Int, value, span))
            }
            (Type::Fixed { width: a, signed: s }, Type::Fixed { width: b, signed: t })
                if s == t || a == b =>
            {
                self.resize(&given, *b, *t, to)
            }
            (Type::Int, _) => self.convert(given, to),
            _ if matches!(given.value, Value::Parts(_)) => self.convert(given, to),
            (from, _) => {
                let hint = self.conversion_hint(from, to);
                let message = format!("{from} cannot be cast to {to}");
                Err(self.error(span, message, hint))
            }
        }
    }

    fn resize(&mut self, given: &Typed, width: u16, signed: bool, to: &Type) -> Checked<Typed> {
        if let Some(value) = given.constant() {
            return Ok(Typed::known(to.clone(), wrapped(value, width, signed), given.span));
        }
        let sign = given.ty.sign();
        let value = self.scalar(given)?;
        if value.width == width {
            return Ok(Typed::computed(to.clone(), value, given.span));
        }
        let kind = ir::ExprKind::Resize(Box::new(value), sign);
        Ok(Typed::computed(to.clone(), ir::Expr { kind, width }, given.span))
    }

    /// The number that an expression has, at run time or known.
    pub(super) fn scalar(&mut self, given: &Typed) -> Checked<ir::Expr> {
        match (&given.value, given.ty.width()) {
            (Value::Known(value), Some(width)) => {
                Ok(ir::Expr::constant(as_bits(value, width), width))
            }
            (Value::Computed(expr), Some(_)) => Ok(expr.clone()),
            (Value::Stored { storage: Storage::Scalar(slot), slice, .. }, Some(width)) => {
                let whole = ir::Expr::slot(*slot, self.frame.pipeline.slots[slot.index()].width);
                Ok(match slice {
                    None => whole,
                    Some(slice) => {
                        ir::Expr { kind: ir::ExprKind::Slice(Box::new(whole), *slice), width }
                    }
                })
            }
            (Value::Known(_), None) if given.ty == Type::Int => {
                let hint = "give the number a width, such as `8w1`";
                Err(self.error(given.span, "a number without a width", hint))
            }
            _ => {
                let message = format!("{} has no single value here", given.ty);
                Err(self.error(given.span, message, "name one of its fields"))
            }
        }
    }

    /// All numbers of a value, in the order of the slots of its type.
    pub(super) fn scalars(&mut self, given: &Typed) -> Checked<Vec<ir::Expr>> {
        match &given.value {
            Value::Stored { storage, slice: None, .. } if given.ty.width().is_none() => {
                Ok(self.slots_of(storage))
            }
            Value::Parts(parts) => {
                let mut all = Vec::new();
                if matches!(given.ty, Type::Header(_)) {
                    // A header that is given as a list is valid (section 8.13).
                    all.push(ir::Expr::constant(1, 1));
                }
                for (_, part) in parts {
                    all.extend(self.scalars(part)?);
                }
                Ok(all)
            }
            _ => Ok(vec![self.scalar(given)?]),
        }
    }

    fn slots_of(&self, storage: &Storage) -> Vec<ir::Expr> {
        let slots = storage.slots();
        let width = |s: &ir::SlotId| self.frame.pipeline.slots[s.index()].width;
        slots.iter().map(|s| ir::Expr::slot(*s, width(s))).collect()
    }
}

/// The type of an enum's values, if it is an enum and has one.
fn enum_values(ty: &Type) -> Option<Type> {
    match ty {
        Type::Enum(e) => e.underlying.clone(),
        _ => None,
    }
}
