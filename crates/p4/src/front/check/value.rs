//! Values of expressions, and where variables are kept.

use std::rc::Rc;

use num_bigint::{BigInt, Sign};
use num_traits::{One, ToPrimitive};

use super::super::source::Span;
use super::types::Type;
use crate::ir::{self, HeaderId, SlotId};

/// The slots of a variable, in the shape of its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Storage {
    Scalar(SlotId),
    Header { id: HeaderId, valid: SlotId, fields: Vec<SlotId> },
    Struct(Vec<Storage>),
    Stack(Rc<Stack>),
}

/// A header stack: its elements, and its number among the stacks of the pipeline.
#[derive(Debug, PartialEq)]
pub(super) struct Stack {
    pub(super) elements: Vec<Storage>,
    pub(super) number: usize,
}

impl Storage {
    /// All slots, valid bits before fields.
    pub(super) fn slots(&self) -> Vec<SlotId> {
        let mut all = Vec::new();
        self.collect(&mut all);
        all
    }

    fn collect(&self, all: &mut Vec<SlotId>) {
        match self {
            Self::Scalar(slot) => all.push(*slot),
            Self::Header { valid, fields, .. } => {
                all.push(*valid);
                all.extend(fields);
            }
            Self::Struct(parts) => parts.iter().for_each(|p| p.collect(all)),
            Self::Stack(stack) => stack.elements.iter().for_each(|p| p.collect(all)),
        }
    }

    /// All headers, in order.
    pub(super) fn headers(&self) -> Vec<HeaderId> {
        match self {
            Self::Scalar(_) => Vec::new(),
            Self::Header { id, .. } => vec![*id],
            Self::Struct(parts) => parts.iter().flat_map(Self::headers).collect(),
            Self::Stack(stack) => stack.elements.iter().flat_map(Self::headers).collect(),
        }
    }
}

/// What an expression has as its value.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// A number known at compile time: in the range of its type; of a bool 0 or 1.
    Known(BigInt),
    /// A number at run time.
    Computed(ir::Expr),
    /// What a variable holds; assignable if nothing forbids it.
    Stored { storage: Storage, slice: Option<ir::Slice>, readonly: Option<&'static str> },
    /// A struct or header in the making: `{a, b}`, `{x = a}`; names where they were given.
    Parts(Vec<(Option<Rc<str>>, Typed)>),
    /// A string.
    Text,
    /// Nothing: a call of something void.
    Nothing,
    /// `_`.
    Any,
}

/// A value, its type, and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    pub(super) ty: Type,
    pub(super) value: Value,
    pub(super) span: Span,
}

impl Typed {
    pub(super) fn known(ty: Type, value: impl Into<BigInt>, span: Span) -> Self {
        Self { ty, value: Value::Known(value.into()), span }
    }

    pub(super) fn bool(value: bool, span: Span) -> Self {
        Self::known(Type::Bool, u8::from(value), span)
    }

    pub(super) fn computed(ty: Type, value: ir::Expr, span: Span) -> Self {
        Self { ty, value: Value::Computed(value), span }
    }

    /// The same, if it is in a variable no longer assignable: section 6.7 says what l-values are.
    pub(super) fn unassignable(mut self, why: &'static str) -> Self {
        if let Value::Stored { readonly, .. } = &mut self.value {
            *readonly = readonly.or(Some(why));
        }
        self
    }

    /// The number, if it is known.
    pub(super) fn constant(&self) -> Option<&BigInt> {
        match &self.value {
            Value::Known(value) => Some(value),
            _ => None,
        }
    }
}

/// 2^n.
pub(super) fn power(n: u16) -> BigInt {
    BigInt::one() << usize::from(n)
}

/// The low bits of a number in two's complement.
pub(super) fn as_bits(value: &BigInt, width: u16) -> u128 {
    let modulus = power(width);
    let rest = ((value % &modulus) + &modulus) % &modulus;
    rest.to_u128().unwrap_or_default()
}

/// The number that the low bits of `value` mean in a type of that width.
pub(super) fn wrapped(value: &BigInt, width: u16, signed: bool) -> BigInt {
    let bits = BigInt::from(as_bits(value, width));
    if signed && bits >= power(width - 1) { bits - power(width) } else { bits }
}

/// Whether the number has a meaning in such a type as it is.
pub(super) fn fits(value: &BigInt, width: u16, signed: bool) -> bool {
    if signed {
        -power(width - 1) <= *value && *value < power(width - 1)
    } else {
        value.sign() != Sign::Minus && *value < power(width)
    }
}

/// Whether an expression reads one of these slots.
pub(super) fn reads(expr: &ir::Expr, slots: &[SlotId]) -> bool {
    use ir::ExprKind as K;
    match &expr.kind {
        K::Const(_) => false,
        K::Slot(slot) => slots.contains(slot),
        K::Unary(_, a) | K::Slice(a, _) | K::Resize(a, _) => reads(a, slots),
        K::Binary(_, a, b) | K::Concat(a, b) => reads(a, slots) || reads(b, slots),
        K::Mux(a, b, c) => reads(a, slots) || reads(b, slots) || reads(c, slots),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_as_their_types_do() {
        let n = |v: i32| BigInt::from(v);
        assert_eq!(wrapped(&n(300), 8, false), n(44));
        assert_eq!(wrapped(&n(-1), 8, false), n(255));
        assert_eq!(wrapped(&n(170), 8, true), n(-86), "8s0b1010_1010 of section 6.4.3.2");
        assert_eq!(wrapped(&n(-129), 8, true), n(127));
        assert!(fits(&n(255), 8, false) && !fits(&n(256), 8, false) && !fits(&n(-1), 8, false));
        assert!(fits(&n(-128), 8, true) && !fits(&n(128), 8, true));
        assert_eq!(as_bits(&n(-1), 128), u128::MAX);
    }
}
