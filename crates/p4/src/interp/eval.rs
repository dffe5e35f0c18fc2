//! Values of expressions (P4-16 section 8). A value is kept in the lowest bits of a `u128`, the
//! bits above its width 0.

use crate::ir::{BinaryOp, Expr, ExprKind, MAX_WIDTH, Sign, UnaryOp, mask};

/// The value of an expression over a frame of slots.
pub(crate) fn eval(expr: &Expr, slots: &[u128]) -> u128 {
    let of = |e: &Expr| eval(e, slots);
    let value = match &expr.kind {
        ExprKind::Const(value) => return *value,
        ExprKind::Slot(slot) => return slots[slot.index()],
        ExprKind::Unary(UnaryOp::Not, a) => !of(a),
        ExprKind::Unary(UnaryOp::Neg, a) => of(a).wrapping_neg(),
        ExprKind::Binary(op, a, b) => binary(*op, of(a), of(b), a.width),
        ExprKind::Slice(a, slice) => of(a) >> slice.low,
        ExprKind::Concat(a, b) => (of(a) << b.width) | of(b),
        ExprKind::Resize(a, Sign::Unsigned) => of(a),
        ExprKind::Resize(a, Sign::Signed) => signed(of(a), a.width).cast_unsigned(),
        ExprKind::Mux(on, a, b) => {
            if of(on) == 1 {
                of(a)
            } else {
                of(b)
            }
        }
    };
    value & mask(expr.width)
}

/// The number that so many bits are in two's complement.
pub(crate) fn signed(value: u128, width: u16) -> i128 {
    let unused = MAX_WIDTH - width;
    (value << unused).cast_signed() >> unused
}

/// Least and greatest number of so many bits in two's complement.
fn range(width: u16) -> (i128, i128) {
    let unused = MAX_WIDTH - width;
    (i128::MIN >> unused, i128::MAX >> unused)
}

/// The result, perhaps with bits above its width. `width` is the left operand's.
pub(crate) fn binary(op: BinaryOp, a: u128, b: u128, width: u16) -> u128 {
    let number = |value| signed(value, width);
    match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::AddSat(Sign::Unsigned) => a.saturating_add(b).min(mask(width)),
        BinaryOp::SubSat(Sign::Unsigned) => a.saturating_sub(b),
        BinaryOp::AddSat(Sign::Signed) => clamp(number(a).saturating_add(number(b)), width),
        BinaryOp::SubSat(Sign::Signed) => clamp(number(a).saturating_sub(number(b)), width),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => distance(b, width).map_or(0, |by| a << by),
        BinaryOp::Shr(Sign::Unsigned) => distance(b, width).map_or(0, |by| a >> by),
        BinaryOp::Shr(Sign::Signed) => {
            let by = distance(b, width).unwrap_or(u32::from(MAX_WIDTH) - 1);
            (number(a) >> by).cast_unsigned()
        }
        BinaryOp::Eq => u128::from(a == b),
        BinaryOp::Ne => u128::from(a != b),
        BinaryOp::Lt(sign) => less(a, b, width, sign),
        BinaryOp::Le(sign) => 1 - less(b, a, width, sign),
        BinaryOp::Gt(sign) => less(b, a, width, sign),
        BinaryOp::Ge(sign) => 1 - less(a, b, width, sign),
    }
}

fn clamp(value: i128, width: u16) -> u128 {
    let (least, greatest) = range(width);
    value.clamp(least, greatest).cast_unsigned()
}

/// How far to shift; nothing if that is the width or more.
fn distance(by: u128, width: u16) -> Option<u32> {
    u32::try_from(by).ok().filter(|by| *by < u32::from(width))
}

fn less(a: u128, b: u128, width: u16, sign: Sign) -> u128 {
    u128::from(match sign {
        Sign::Unsigned => a < b,
        Sign::Signed => signed(a, width) < signed(b, width),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ir::{Slice, SlotId};

    /// Widths of the slots that drawn expressions read.
    const WIDTHS: [u16; 6] = [1, 7, 8, 33, 64, 128];

    /// A value bit by bit, the least significant first: arithmetic as circuits do it, to hold the
    /// arithmetic above against.
    type Bits = Vec<bool>;

    fn to_bits(value: u128, width: u16) -> Bits {
        (0..width).map(|bit| value >> bit & 1 == 1).collect()
    }

    fn to_number(bits: &[bool]) -> u128 {
        bits.iter().rev().fold(0, |value, bit| value << 1 | u128::from(*bit))
    }

    /// A ripple-carry adder: the sum and the carry out.
    fn add(a: &[bool], b: &[bool], mut carry: bool) -> (Bits, bool) {
        let sum = a.iter().zip(b).map(|(&a, &b)| {
            let bit = a ^ b ^ carry;
            carry = (a && b) || (carry && (a || b));
            bit
        });
        (sum.collect(), carry)
    }

    fn not(a: &[bool]) -> Bits {
        a.iter().map(|bit| !bit).collect()
    }

    /// a < b: no carry out of a - b; signed, with the signs swapped first.
    fn below(a: &[bool], b: &[bool], sign: Sign) -> bool {
        let (mut a, mut b) = (a.to_vec(), b.to_vec());
        if sign == Sign::Signed {
            for bits in [&mut a, &mut b] {
                let top = bits.last_mut().unwrap();
                *top = !*top;
            }
        }
        !add(&a, &not(&b), true).1
    }

    fn shift_add(a: &[bool], b: &[bool]) -> Bits {
        let mut product = vec![false; a.len()];
        for (at, _) in b.iter().enumerate().filter(|(_, bit)| **bit) {
            let shifted: Bits = (0..a.len()).map(|bit| bit >= at && a[bit - at]).collect();
            product = add(&product, &shifted, false).0;
        }
        product
    }

    fn saturating(a: &[bool], b: &[bool], minus: bool, sign: Sign) -> Bits {
        let other = if minus { not(b) } else { b.to_vec() };
        let (sum, carry) = add(a, &other, minus);
        let (top, width) = (a.len() - 1, a.len());
        match sign {
            Sign::Unsigned if minus && !carry => vec![false; width],
            Sign::Unsigned if !minus && carry => vec![true; width],
            Sign::Signed if a[top] == other[top] && sum[top] != a[top] => {
                (0..width).map(|bit| (bit == top) == a[top]).collect()
            }
            _ => sum,
        }
    }

    fn slow(expr: &Expr, slots: &[u128]) -> Bits {
        let of = |e: &Expr| slow(e, slots);
        let one = |bit: bool| vec![bit];
        match &expr.kind {
            ExprKind::Const(value) => to_bits(*value, expr.width),
            ExprKind::Slot(slot) => to_bits(slots[slot.index()], expr.width),
            ExprKind::Unary(UnaryOp::Not, a) => not(&of(a)),
            ExprKind::Unary(UnaryOp::Neg, a) => add(&not(&of(a)), &to_bits(0, expr.width), true).0,
            ExprKind::Slice(a, s) => of(a)[usize::from(s.low)..=usize::from(s.high)].to_vec(),
            ExprKind::Concat(a, b) => of(b).into_iter().chain(of(a)).collect(),
            ExprKind::Resize(a, sign) => {
                let a = of(a);
                let fill = *sign == Sign::Signed && *a.last().unwrap();
                let rest = std::iter::repeat(fill);
                a.into_iter().chain(rest).take(usize::from(expr.width)).collect()
            }
            ExprKind::Mux(on, a, b) => {
                if of(on)[0] {
                    of(a)
                } else {
                    of(b)
                }
            }
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (of(a), of(b));
                let both =
                    |f: fn(bool, bool) -> bool| a.iter().zip(&b).map(move |(a, b)| f(*a, *b));
                let shift = |fill: bool, from: &dyn Fn(usize, u128) -> Option<usize>| {
                    let by = to_number(&b);
                    let bit = |at| from(at, by).and_then(|at| a.get(at)).copied().unwrap_or(fill);
                    (0..a.len()).map(bit).collect()
                };
                let right = |at: usize, by: u128| {
                    usize::try_from(by).ok().and_then(|by| at.checked_add(by))
                };
                match op {
                    BinaryOp::Add => add(&a, &b, false).0,
                    BinaryOp::Sub => add(&a, &not(&b), true).0,
                    BinaryOp::Mul => shift_add(&a, &b),
                    BinaryOp::AddSat(sign) => saturating(&a, &b, false, *sign),
                    BinaryOp::SubSat(sign) => saturating(&a, &b, true, *sign),
                    BinaryOp::And => both(|a, b| a && b).collect(),
                    BinaryOp::Or => both(|a, b| a || b).collect(),
                    BinaryOp::Xor => both(|a, b| a != b).collect(),
                    BinaryOp::Shl => shift(false, &|at, by| {
                        usize::try_from(by).ok().and_then(|by| at.checked_sub(by))
                    }),
                    BinaryOp::Shr(Sign::Unsigned) => shift(false, &right),
                    BinaryOp::Shr(Sign::Signed) => shift(*a.last().unwrap(), &right),
                    BinaryOp::Eq => one(a == b),
                    BinaryOp::Ne => one(a != b),
                    BinaryOp::Lt(sign) => one(below(&a, &b, *sign)),
                    BinaryOp::Le(sign) => one(!below(&b, &a, *sign)),
                    BinaryOp::Gt(sign) => one(below(&b, &a, *sign)),
                    BinaryOp::Ge(sign) => one(!below(&a, &b, *sign)),
                }
            }
        }
    }

    /// Numbers at the ends of ranges more often than chance has them.
    fn number() -> impl Strategy<Value = u128> {
        let near_a_power = (0_u32..128, -1_i8..=1)
            .prop_map(|(bit, by)| (1_u128 << bit).wrapping_add_signed(by.into()));
        prop_oneof![Just(0), Just(u128::MAX), 0_u128..10, near_a_power, any::<u128>()]
    }

    /// An expression of this width from drawn numbers: `take` gives the next.
    fn draw(width: u16, depth: u32, take: &mut impl FnMut() -> u128) -> Expr {
        use Sign::{Signed, Unsigned};
        let pick = take() % if depth == 0 { 2 } else { 10 };
        let of = |kind| Expr { kind, width };
        let mut below = |width| Box::new(draw(width, depth - 1, take));
        match pick {
            0 => Expr::constant(take(), width),
            1 => {
                let slot = (take() % WIDTHS.len() as u128) as usize;
                let slot = Expr::slot(SlotId(slot as u32), WIDTHS[slot]);
                let sign = if take().is_multiple_of(2) { Signed } else { Unsigned };
                of(ExprKind::Resize(Box::new(slot), sign))
            }
            2 => of(ExprKind::Unary(UnaryOp::Neg, below(width))),
            3 => of(ExprKind::Mux(below(1), below(width), below(width))),
            4 if width > 1 => of(ExprKind::Concat(below(width / 2), below(width - width / 2))),
            5 => {
                let low = 128_u16.saturating_sub(width) / 2;
                let slice = Slice { high: low + width - 1, low };
                of(ExprKind::Slice(below(128), slice))
            }
            6 if width == 1 => {
                let ops = [
                    BinaryOp::Eq,
                    BinaryOp::Ne,
                    BinaryOp::Lt(Unsigned),
                    BinaryOp::Lt(Signed),
                    BinaryOp::Le(Unsigned),
                    BinaryOp::Le(Signed),
                    BinaryOp::Gt(Unsigned),
                    BinaryOp::Gt(Signed),
                    BinaryOp::Ge(Unsigned),
                    BinaryOp::Ge(Signed),
                ];
                let wide = WIDTHS[(take() % WIDTHS.len() as u128) as usize];
                let op = ops[(take() % ops.len() as u128) as usize];
                let mut below = |width| Box::new(draw(width, depth - 1, take));
                of(ExprKind::Binary(op, below(wide), below(wide)))
            }
            6 | 7 => {
                let ops = [BinaryOp::Shl, BinaryOp::Shr(Unsigned), BinaryOp::Shr(Signed)];
                let op = ops[(take() % 3) as usize];
                let mut below = |width| Box::new(draw(width, depth - 1, take));
                of(ExprKind::Binary(op, below(width), below(8)))
            }
            _ => {
                let ops = [
                    BinaryOp::Add,
                    BinaryOp::Sub,
                    BinaryOp::Mul,
                    BinaryOp::AddSat(Unsigned),
                    BinaryOp::AddSat(Signed),
                    BinaryOp::SubSat(Unsigned),
                    BinaryOp::SubSat(Signed),
                    BinaryOp::And,
                    BinaryOp::Or,
                    BinaryOp::Xor,
                ];
                let op = ops[(take() % ops.len() as u128) as usize];
                let mut below = |width| Box::new(draw(width, depth - 1, take));
                of(ExprKind::Binary(op, below(width), below(width)))
            }
        }
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_circuits(
            width in prop_oneof![proptest::sample::select(&WIDTHS[..]), 1_u16..=128],
            choices in proptest::collection::vec(number(), 64),
            values in proptest::collection::vec(number(), WIDTHS.len()),
        ) {
            let mut at = 0;
            let mut take = || {
                at += 1;
                choices[at % choices.len()]
            };
            let expr = draw(width, 4, &mut take);
            let slots: Vec<u128> = values.iter().zip(WIDTHS).map(|(v, w)| v & mask(w)).collect();
            prop_assert_eq!(eval(&expr, &slots), to_number(&slow(&expr, &slots)), "{:?}", expr);
        }
    }
}
