//! Unary and binary operators (sections 8.5 to 8.9): types, widths, folding, lowering.

use std::rc::Rc;

use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{ToPrimitive, Zero};

use super::super::ast::{Binary, Unary};
use super::super::limits::MAX_INT_BITS;
use super::super::source::Span;
use super::types::Type;
use super::value::{Typed, Value, as_bits, power, wrapped};
use super::{Checked, Checker};
use crate::ir::{self, BinaryOp, UnaryOp};

impl Checker<'_> {
    pub(super) fn unary(&mut self, op: Unary, given: &Typed, span: Span) -> Checked<Typed> {
        let ty = given.ty.underlying().clone();
        let fits = match op {
            Unary::Not => ty == Type::Bool,
            Unary::Complement => matches!(ty, Type::Fixed { .. }),
            Unary::Minus | Unary::Plus => matches!(ty, Type::Fixed { .. } | Type::Int),
        };
        if !fits {
            let hint = match (op, &ty) {
                (Unary::Not, _) => "`!` is for bools; compare: `... == 0`",
                (Unary::Complement, Type::Int) => "give the number a width, such as `8w1`",
                _ => "it is for numbers",
            };
            let message = format!("`{}` cannot be applied to {ty}", op.symbol());
            return Err(self.error(span, message, hint));
        }
        if let Some(value) = given.constant() {
            let value = match op {
                Unary::Not => BigInt::from(1) - value,
                Unary::Complement => -value - 1,
                Unary::Minus => -value,
                Unary::Plus => value.clone(),
            };
            return Ok(known_in(ty, value, span));
        }
        let value = self.scalar(given)?;
        let op = match op {
            Unary::Not | Unary::Complement => UnaryOp::Not,
            Unary::Minus => UnaryOp::Neg,
            Unary::Plus => return Ok(Typed::computed(ty, value, span)),
        };
        let width = value.width;
        let kind = ir::ExprKind::Unary(op, Box::new(value));
        Ok(Typed::computed(ty, ir::Expr { kind, width }, span))
    }

    pub(super) fn binary(
        &mut self,
        op: Binary,
        left: Typed,
        right: Typed,
        span: Span,
    ) -> Checked<Typed> {
        match op {
            Binary::Or | Binary::And => self.logical(op, &left, &right, span),
            Binary::ShiftLeft | Binary::ShiftRight => self.shift(op, &left, &right, span),
            Binary::Concat => self.concat(&left, &right, span),
            _ => {
                let (left, right) = self.same_type(op, left, right, span)?;
                match op {
                    Binary::Equal | Binary::NotEqual => self.equality(op, &left, &right, span),
                    Binary::Less | Binary::Greater | Binary::LessEqual | Binary::GreaterEqual => {
                        self.compare(op, &left, &right, span)
                    }
                    _ => self.arithmetic(op, &left, &right, span),
                }
            }
        }
    }

    /// Operands of one type: an `int` takes the other's, an enum counts as its values, and nothing
    /// else is converted (section 8.11.2).
    pub(super) fn same_type(
        &mut self,
        op: Binary,
        left: Typed,
        right: Typed,
        span: Span,
    ) -> Checked<(Typed, Typed)> {
        let (mut left, mut right) = (left, right);
        if left.ty == right.ty && matches!(op, Binary::Equal | Binary::NotEqual) {
            return Ok((left, right));
        }
        let is_fixed = |t: &Type| matches!(t.underlying(), Type::Fixed { .. });
        if (is_fixed(&left.ty) || left.ty == Type::Int)
            && (is_fixed(&right.ty) || right.ty == Type::Int)
        {
            left.ty = left.ty.underlying().clone();
            right.ty = right.ty.underlying().clone();
        }
        // A number without a width, or a list, becomes what the other side is.
        let is_loose = |t: &Typed| t.ty == Type::Int || matches!(t.value, Value::Parts(_));
        if is_loose(&left) && !is_loose(&right) && left.ty != right.ty && can_become(&left, &right)
        {
            left = self.convert(left, &right.ty)?;
        } else if is_loose(&right) && !is_loose(&left) && can_become(&right, &left) {
            right = self.convert(right, &left.ty)?;
        }
        if left.ty == right.ty {
            return Ok((left, right));
        }
        let (a, b) = (&left.ty, &right.ty);
        let message = format!("`{}` between {a} and {b}", op.symbol());
        let hint = match (a, b) {
            (Type::Fixed { width: m, signed: s }, Type::Fixed { width: n, signed: t }) => {
                let which = if s == t { "widths" } else { "signs" };
                let wider = if m >= n { a } else { b };
                format!("{which} must be equal; write a cast, such as `({wider}) ...`")
            }
            (Type::Distinct(_), _) | (_, Type::Distinct(_)) => {
                "a `type` is a type of its own; write a cast".to_owned()
            }
            (Type::Header(_) | Type::Struct(_), _) | (_, Type::Header(_) | Type::Struct(_)) => {
                "name one of its fields".to_owned()
            }
            _ => String::new(),
        };
        Err(self.error(span, message, hint))
    }

    fn arithmetic(&mut self, op: Binary, l: &Typed, r: &Typed, span: Span) -> Checked<Typed> {
        let bitwise = matches!(op, Binary::BitAnd | Binary::BitOr | Binary::BitXor);
        let saturating = matches!(op, Binary::AddSaturating | Binary::SubSaturating);
        let fine = match &l.ty {
            Type::Fixed { .. } => true,
            Type::Int => !bitwise && !saturating,
            _ => false,
        };
        if !fine {
            let hint = match &l.ty {
                Type::Int => "give a number a width, such as `8w1`",
                Type::Bool => "bools have `&&`, `||` and `!`",
                _ => "it is for numbers",
            };
            let message = format!("`{}` cannot be applied to {}", op.symbol(), l.ty);
            return Err(self.error(span, message, hint));
        }
        if matches!(op, Binary::Div | Binary::Mod) {
            self.check_division(op, l, r, span)?;
        }
        if let (Some(a), Some(b)) = (l.constant(), r.constant()) {
            return self.fold(op, a, b, &l.ty, span);
        }
        let sign = l.ty.sign();
        let op = match op {
            Binary::Add => BinaryOp::Add,
            Binary::Sub => BinaryOp::Sub,
            Binary::Mul => BinaryOp::Mul,
            Binary::AddSaturating => BinaryOp::AddSat(sign),
            Binary::SubSaturating => BinaryOp::SubSat(sign),
            Binary::BitAnd => BinaryOp::And,
            Binary::BitOr => BinaryOp::Or,
            _ => BinaryOp::Xor,
        };
        let width = l.ty.width().unwrap_or(1);
        self.operation(op, l, r, l.ty.clone(), width, span)
    }

    /// Division is for positive numbers of type `int` (section 8.8); `bit<W>` has none (section
    /// 8.6).
    fn check_division(&mut self, op: Binary, l: &Typed, r: &Typed, span: Span) -> Checked<()> {
        if l.ty != Type::Int {
            let message = format!("`{}` cannot be applied to {}", op.symbol(), l.ty);
            let hint =
                "P4-16 divides compile-time `int` only; shift, or look the result up in a table";
            return Err(self.error(span, message, hint));
        }
        let positive = |side: &Typed| side.constant().is_some_and(|v| v.sign() != Sign::Minus);
        if !positive(l) || !positive(r) || r.constant().is_some_and(Zero::is_zero) {
            let message = format!("`{}` is for positive numbers only", op.symbol());
            return Err(self.error(span, message, ""));
        }
        Ok(())
    }

    /// The result of an operation on known numbers.
    fn fold(
        &mut self,
        op: Binary,
        a: &BigInt,
        b: &BigInt,
        ty: &Type,
        span: Span,
    ) -> Checked<Typed> {
        let value = match op {
            Binary::Add | Binary::AddSaturating => a + b,
            Binary::Sub | Binary::SubSaturating => a - b,
            Binary::Mul => a * b,
            Binary::Div => a.div_floor(b),
            Binary::Mod => a.mod_floor(b),
            Binary::BitAnd => a & b,
            Binary::BitOr => a | b,
            _ => a ^ b,
        };
        if value.bits() > MAX_INT_BITS {
            let instead = format!("numbers of at most {MAX_INT_BITS} bits");
            return Err(self.refuse(span, "a number this large", instead));
        }
        if matches!(op, Binary::AddSaturating | Binary::SubSaturating)
            && let Type::Fixed { width, signed } = ty
        {
            let (least, most) = range(*width, *signed);
            return Ok(Typed::known(ty.clone(), value.clamp(least, most), span));
        }
        Ok(known_in(ty.clone(), value, span))
    }

    fn compare(&mut self, op: Binary, l: &Typed, r: &Typed, span: Span) -> Checked<Typed> {
        if !matches!(l.ty, Type::Fixed { .. } | Type::Int) {
            let message = format!("`{}` cannot be applied to {}", op.symbol(), l.ty);
            return Err(self.error(span, message, "only numbers have an order"));
        }
        if let (Some(a), Some(b)) = (l.constant(), r.constant()) {
            let holds = match op {
                Binary::Less => a < b,
                Binary::Greater => a > b,
                Binary::LessEqual => a <= b,
                _ => a >= b,
            };
            return Ok(Typed::bool(holds, span));
        }
        let sign = l.ty.sign();
        let op = match op {
            Binary::Less => BinaryOp::Lt(sign),
            Binary::Greater => BinaryOp::Gt(sign),
            Binary::LessEqual => BinaryOp::Le(sign),
            _ => BinaryOp::Ge(sign),
        };
        self.operation(op, l, r, Type::Bool, 1, span)
    }

    /// Equality of numbers, and field by field of structs and headers (sections 8.16 and 8.17).
    fn equality(&mut self, op: Binary, l: &Typed, r: &Typed, span: Span) -> Checked<Typed> {
        if let (Some(a), Some(b)) = (l.constant(), r.constant()) {
            return Ok(Typed::bool((a == b) == (op == Binary::Equal), span));
        }
        if l.ty.width().is_some() {
            let op = if op == Binary::Equal { BinaryOp::Eq } else { BinaryOp::Ne };
            return self.operation(op, l, r, Type::Bool, 1, span);
        }
        if !matches!(l.ty, Type::Header(_) | Type::Struct(_) | Type::Stack(..)) {
            let message = format!("{} cannot be compared", l.ty);
            return Err(self.error(span, message, "compare its fields"));
        }
        let (a, b) = (self.scalars(l)?, self.scalars(r)?);
        if a.iter().chain(&b).all(|number| matches!(number.kind, ir::ExprKind::Const(_))) {
            return Ok(Typed::bool((a == b) == (op == Binary::Equal), span));
        }
        let equal = equal_parts(&l.ty, &mut a.into_iter(), &mut b.into_iter());
        let result = if op == Binary::Equal { equal } else { not(equal) };
        Ok(Typed::computed(Type::Bool, result, span))
    }

    fn logical(&mut self, op: Binary, l: &Typed, r: &Typed, span: Span) -> Checked<Typed> {
        for side in [l, r] {
            if side.ty != Type::Bool {
                let message = format!("`{}` between {} and {}", op.symbol(), l.ty, r.ty);
                let hint = "it is for bools; compare: `... != 0`, or use `&` or `|`";
                return Err(self.error(side.span, message, hint));
            }
        }
        let is_and = op == Binary::And;
        // `true && x`, `false || x`.
        match l.constant().map(|v| !v.is_zero()) {
            Some(left) if left == is_and => return Ok(Typed { span, ..r.clone() }),
            Some(left) => return Ok(Typed::bool(left, span)),
            None => {}
        }
        let op = if is_and { BinaryOp::And } else { BinaryOp::Or };
        self.operation(op, l, r, Type::Bool, 1, span)
    }

    fn shift(&mut self, op: Binary, l: &Typed, r: &Typed, span: Span) -> Checked<Typed> {
        let ty = l.ty.underlying().clone();
        let amount = r.ty.underlying();
        if !matches!(ty, Type::Fixed { .. } | Type::Int) {
            let message = format!("`{}` cannot be applied to {ty}", op.symbol());
            return Err(self.error(span, message, "only numbers can be shifted"));
        }
        let negative = r.constant().is_some_and(|v| v.sign() == Sign::Minus);
        let unsigned = matches!(amount, Type::Fixed { signed: false, .. });
        if negative || !(unsigned || r.constant().is_some()) {
            let message = format!("a shift by {amount}");
            let hint = "shifts are by `bit<W>` or by a number that is not negative";
            return Err(self.error(r.span, message, hint));
        }
        if ty == Type::Int {
            return self.shift_int(op, l, r, span);
        }
        let width = ty.width().unwrap_or(1);
        if let (Some(a), Some(n)) = (l.constant(), r.constant()) {
            let n = n.to_usize().unwrap_or(usize::MAX).min(usize::from(width));
            let value = if op == Binary::ShiftLeft { a << n } else { a >> n };
            return Ok(known_in(ty, value, span));
        }
        let amount = match r.constant() {
            // Any shift by the width or more is the same; an `int` has no width of its own.
            Some(n) => {
                let n = n.to_u16().unwrap_or(u16::MAX);
                if n >= width {
                    let message = format!("a shift of {ty} by {n} or more bits");
                    self.messages.warn(r.span, message, "nothing of the number is left");
                }
                ir::Expr::constant(u128::from(n), 16)
            }
            None => self.scalar(r)?,
        };
        let sign = ty.sign();
        let op = if op == Binary::ShiftLeft { BinaryOp::Shl } else { BinaryOp::Shr(sign) };
        let value = self.scalar(l)?;
        let kind = ir::ExprKind::Binary(op, Box::new(value), Box::new(amount));
        Ok(Typed::computed(ty, ir::Expr { kind, width }, span))
    }

    fn shift_int(&mut self, op: Binary, l: &Typed, r: &Typed, span: Span) -> Checked<Typed> {
        let (Some(a), Some(n)) = (l.constant(), r.constant()) else {
            let message = "an `int` is shifted by what is not known at compile time";
            return Err(self.error(span, message, "give the number a width, such as `32w1`"));
        };
        let n = n.to_u64().unwrap_or(u64::MAX);
        if op == Binary::ShiftRight {
            let n = n.min(MAX_INT_BITS) as usize;
            return Ok(Typed::known(Type::Int, a >> n, span));
        }
        if a.bits().saturating_add(n) > MAX_INT_BITS {
            let instead = format!("numbers of at most {MAX_INT_BITS} bits");
            return Err(self.refuse(span, "a number this large", instead));
        }
        Ok(Typed::known(Type::Int, a << n, span))
    }

    fn concat(&mut self, l: &Typed, r: &Typed, span: Span) -> Checked<Typed> {
        let (a, b) = (l.ty.underlying().clone(), r.ty.underlying().clone());
        let (Type::Fixed { width: m, signed }, Type::Fixed { width: n, .. }) = (&a, &b) else {
            let message = format!("`++` between {a} and {b}");
            return Err(self.error(span, message, "both need a width, such as `8w1`"));
        };
        let width = m + n;
        if width > ir::MAX_WIDTH {
            let instead = format!("at most {} bits", ir::MAX_WIDTH);
            return Err(self.refuse(span, &format!("{width} bits"), instead));
        }
        let ty = Type::Fixed { width, signed: *signed };
        if let (Some(x), Some(y)) = (l.constant(), r.constant()) {
            let value = (x << usize::from(*n)) + BigInt::from(as_bits(y, *n));
            return Ok(known_in(ty, value, span));
        }
        let (x, y) = (self.scalar(l)?, self.scalar(r)?);
        let kind = ir::ExprKind::Concat(Box::new(x), Box::new(y));
        Ok(Typed::computed(ty, ir::Expr { kind, width }, span))
    }

    /// Bits `high` to `low`.
    pub(super) fn slice(
        &mut self,
        base: &Typed,
        high: &Typed,
        low: &Typed,
        span: Span,
    ) -> Checked<Typed> {
        let (h, l) =
            (self.known(high, "the end of a slice")?, self.known(low, "the end of a slice")?);
        let ty = base.ty.underlying().clone();
        let width = match &ty {
            Type::Fixed { width, .. } => *width,
            Type::Int => ir::MAX_WIDTH,
            _ => {
                let message = format!("a slice of {ty}");
                return Err(self.error(base.span, message, "only numbers have bits"));
            }
        };
        let (Some(high), Some(low)) = (h.to_u16().filter(|h| *h < width), l.to_u16()) else {
            let message = format!("bits {h} to {l} of {ty}");
            return Err(self.error(span, message, format!("bits are 0 to {}", width - 1)));
        };
        if low > high {
            let message = format!("bits {high} to {low}: the higher one comes first");
            return Err(self.error(span, message, format!("write `[{low}:{high}]`")));
        }
        let slice = ir::Slice { high, low };
        let ty = Type::bits(slice.width());
        if let Some(value) = base.constant() {
            return Ok(known_in(ty, value >> usize::from(low), span));
        }
        if let Value::Stored { storage, slice: of, readonly } = &base.value {
            let readonly = match &base.ty {
                // The enum is cast to the type of its values (section 8.3).
                Type::Enum(_) => readonly.or(Some("a part of an enum")),
                _ => *readonly,
            };
            let under = of.map_or(0, |s| s.low);
            let slice = Some(ir::Slice { high: under + high, low: under + low });
            let value = Value::Stored { storage: storage.clone(), slice, readonly };
            return Ok(Typed { ty, value, span });
        }
        let value = self.scalar(base)?;
        let kind = ir::ExprKind::Slice(Box::new(value), slice);
        Ok(Typed::computed(ty, ir::Expr { kind, width: slice.width() }, span))
    }

    fn operation(
        &mut self,
        op: BinaryOp,
        l: &Typed,
        r: &Typed,
        ty: Type,
        width: u16,
        span: Span,
    ) -> Checked<Typed> {
        let (a, b) = (self.scalar(l)?, self.scalar(r)?);
        let kind = ir::ExprKind::Binary(op, Box::new(a), Box::new(b));
        Ok(Typed::computed(ty, ir::Expr { kind, width }, span))
    }
}

/// Whether `loose` could have the type of `other`: a number that of a number, a list that of a
/// struct.
fn can_become(loose: &Typed, other: &Typed) -> bool {
    match loose.value {
        Value::Parts(_) => matches!(other.ty, Type::Struct(_) | Type::Header(_)),
        _ => matches!(other.ty, Type::Fixed { .. }),
    }
}

/// A number as a value of a type, wrapped around where the type ends.
fn known_in(ty: Type, value: BigInt, span: Span) -> Typed {
    let value = match &ty {
        Type::Fixed { width, signed } => wrapped(&value, *width, *signed),
        _ => value,
    };
    Typed::known(ty, value, span)
}

/// The least and greatest number of a type.
fn range(width: u16, signed: bool) -> (BigInt, BigInt) {
    if signed {
        (-power(width - 1), power(width - 1) - 1)
    } else {
        (BigInt::zero(), power(width) - 1)
    }
}

fn both(op: BinaryOp, a: ir::Expr, b: ir::Expr) -> ir::Expr {
    ir::Expr { kind: ir::ExprKind::Binary(op, Box::new(a), Box::new(b)), width: 1 }
}

pub(super) fn not(a: ir::Expr) -> ir::Expr {
    ir::Expr { kind: ir::ExprKind::Unary(UnaryOp::Not, Box::new(a)), width: 1 }
}

/// Whether two values are equal, number by number. Headers are equal if both are invalid, or both
/// valid with equal fields.
fn equal_parts(
    ty: &Type,
    a: &mut impl Iterator<Item = ir::Expr>,
    b: &mut impl Iterator<Item = ir::Expr>,
) -> ir::Expr {
    let yes = || ir::Expr::constant(1, 1);
    let conjunction = |x: ir::Expr, y: ir::Expr| match x.kind {
        ir::ExprKind::Const(1) => y,
        _ => both(BinaryOp::And, x, y),
    };
    match ty {
        Type::Header(record) => {
            let (Some(x), Some(y)) = (a.next(), b.next()) else { return yes() };
            let fields = record.fields.iter().fold(yes(), |all, field| {
                let equal = equal_parts(&field.ty, a, b);
                conjunction(all, equal)
            });
            let same = both(BinaryOp::Eq, x.clone(), y);
            both(BinaryOp::And, same, both(BinaryOp::Or, not(x), fields))
        }
        Type::Struct(record) => record.fields.iter().fold(yes(), |all, field| {
            let equal = equal_parts(&field.ty, a, b);
            conjunction(all, equal)
        }),
        Type::Stack(record, size) => (0..*size).fold(yes(), |all, _| {
            let equal = equal_parts(&Type::Header(Rc::clone(record)), a, b);
            conjunction(all, equal)
        }),
        _ => match (a.next(), b.next()) {
            (Some(x), Some(y)) => both(BinaryOp::Eq, x, y),
            _ => yes(),
        },
    }
}
