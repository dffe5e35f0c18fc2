//! Expressions. A value of one bit is a `bool`; a wider one is the smallest unsigned integer that
//! holds it, with zeros above its width.

use super::names::Names;
use crate::ir::{BinaryOp, Expr, ExprKind, Sign, Slice, UnaryOp, mask};

/// The type of values so wide.
pub(super) fn type_of(width: u16) -> &'static str {
    match width {
        1 => "bool",
        2..=8 => "u8",
        9..=16 => "u16",
        17..=32 => "u32",
        33..=64 => "u64",
        _ => "u128",
    }
}

/// Bits of the unsigned integer that holds values so wide.
pub(super) fn native(width: u16) -> u16 {
    width.next_power_of_two().max(8)
}

/// The unsigned integer that holds values so wide, also of one bit.
fn number_type(width: u16) -> &'static str {
    type_of(width.max(2))
}

/// A number so wide.
fn literal(value: u128, width: u16) -> String {
    let kind = number_type(width);
    if value <= 1024 { format!("{value}_{kind}") } else { format!("{value:#x}_{kind}") }
}

/// `text` of type `from` as one of type `to`, cut off at the top if it is wider.
pub(super) fn cast(text: &str, from: &str, to: &str) -> String {
    let bits = |kind: &str| kind[1..].parse::<u16>().unwrap_or(1);
    if from == to {
        text.to_owned()
    } else if from == "bool" || (to != "bool" && bits(from) < bits(to)) {
        format!("{to}::from({text})")
    } else if to == "bool" {
        format!("({text} & 1 == 1)")
    } else {
        format!("({text} as {to})")
    }
}

/// Without what lies above the width.
pub(super) fn masked(text: String, width: u16) -> String {
    if width == native(width) {
        return text;
    }
    format!("({text} & {})", literal(mask(width), width))
}

/// Writes expressions over the slots of a pipeline.
pub(super) struct Exprs<'a> {
    pub(super) names: &'a Names,
}

impl Exprs<'_> {
    /// An expression of type [`type_of`] its width. It binds as tightly as a method call.
    pub(super) fn value(&self, expr: &Expr) -> String {
        if expr.width > 1 {
            return self.number(expr);
        }
        self.bit(expr)
    }

    /// As the last thing in a line, where brackets around it are only noise.
    pub(super) fn bare(&self, expr: &Expr) -> String {
        bare(self.value(expr))
    }

    /// As a `u128`, as externs and tables take it.
    pub(super) fn wide(&self, expr: &Expr) -> String {
        if let ExprKind::Const(value) = expr.kind {
            return literal(value, 128);
        }
        cast(&self.value(expr), type_of(expr.width), "u128")
    }

    /// One bit.
    fn bit(&self, expr: &Expr) -> String {
        let of = |e: &Expr| self.value(e);
        match &expr.kind {
            ExprKind::Const(value) => (*value == 1).to_string(),
            ExprKind::Slot(slot) => format!("self.{}", self.names.slot(*slot)),
            ExprKind::Unary(UnaryOp::Not, a) => format!("!{}", of(a)),
            ExprKind::Mux(on, a, b) => match (&a.kind, &b.kind) {
                (ExprKind::Const(1), ExprKind::Const(0)) => of(on),
                (ExprKind::Const(0), ExprKind::Const(1)) => format!("!{}", of(on)),
                _ => mux(&of(on), &of(a), &of(b)),
            },
            ExprKind::Binary(op, a, b) => match (op, comparison(*op)) {
                (_, Some((symbol, sign))) => self.compare(symbol, sign, a, b),
                (BinaryOp::And, _) => format!("({} & {})", of(a), of(b)),
                (BinaryOp::Or, _) => format!("({} | {})", of(a), of(b)),
                (BinaryOp::Xor, _) => format!("({} ^ {})", of(a), of(b)),
                // Rare: as numbers.
                _ => format!("({} == 1)", self.number(expr)),
            },
            ExprKind::Slice(a, Slice { low, .. }) => {
                format!("({} >> {low} & 1 == 1)", self.number(a))
            }
            ExprKind::Resize(a, _) => cast(&of(a), type_of(a.width), "bool"),
            ExprKind::Unary(UnaryOp::Neg, _) | ExprKind::Concat(..) => {
                format!("({} == 1)", self.number(expr))
            }
        }
    }

    fn compare(&self, symbol: &str, sign: Sign, a: &Expr, b: &Expr) -> String {
        // A bit against 0 or 1 is itself or its opposite.
        if let (1, ExprKind::Const(bit), "==" | "!=") = (a.width, &b.kind, symbol) {
            let same = (*bit == 1) == (symbol == "==");
            return if same { self.bit(a) } else { format!("!{}", self.bit(a)) };
        }
        match sign {
            Sign::Unsigned => format!("({} {symbol} {})", self.value(a), self.value(b)),
            Sign::Signed => format!("({} {symbol} {})", self.signed(a), self.signed(b)),
        }
    }

    /// An expression as a number, also of one bit.
    fn number(&self, expr: &Expr) -> String {
        let (of, width) = (|e: &Expr| self.number(e), expr.width);
        let kind = number_type(width);
        match &expr.kind {
            ExprKind::Const(value) => literal(*value, width),
            ExprKind::Slot(slot) => {
                cast(&format!("self.{}", self.names.slot(*slot)), type_of(width), kind)
            }
            ExprKind::Unary(UnaryOp::Not, a) if width > 1 => masked(format!("(!{})", of(a)), width),
            ExprKind::Unary(UnaryOp::Neg, a) => masked(format!("{}.wrapping_neg()", of(a)), width),
            ExprKind::Binary(op, a, b) if comparison(*op).is_none() => self.binary(*op, a, b),
            ExprKind::Slice(a, Slice { low, .. }) => {
                let shifted = match low {
                    0 => of(a),
                    _ => format!("({} >> {low})", of(a)),
                };
                masked(cast(&shifted, number_type(a.width), kind), width)
            }
            ExprKind::Concat(a, b) => {
                let part = |e: &Expr| cast(&self.value(e), type_of(e.width), kind);
                format!("({} << {} | {})", part(a), b.width, part(b))
            }
            ExprKind::Resize(a, Sign::Signed) if a.width < width => {
                let unused = native(a.width) - a.width;
                let signed = match unused {
                    0 => self.signed(a),
                    _ => format!("({} >> {unused})", self.signed(a)),
                };
                let to = format!("i{}", native(width));
                masked(format!("{to}::from({signed}).cast_unsigned()"), width)
            }
            ExprKind::Resize(a, _) => {
                let same = cast(&self.value(a), type_of(a.width), kind);
                if a.width > width { masked(same, width) } else { same }
            }
            ExprKind::Mux(on, a, b) => mux(&self.value(on), &of(a), &of(b)),
            // What is one bit by its nature.
            ExprKind::Unary(UnaryOp::Not, _) | ExprKind::Binary(..) => {
                cast(&self.bit(expr), "bool", kind)
            }
        }
    }

    /// Operators whose result is as wide as the left operand.
    fn binary(&self, op: BinaryOp, a: &Expr, b: &Expr) -> String {
        let (width, unused) = (a.width, native(a.width) - a.width);
        let (x, y) = (self.number(a), if shifts(op) { String::new() } else { self.number(b) });
        let method = |name: &str| masked(format!("{x}.wrapping_{name}({y})"), width);
        let infix = |symbol: &str| format!("({x} {symbol} {y})");
        // The sum of the operands moved to the top of the integer stops where it should.
        let signed = |name: &str| {
            let (a, b) = (self.signed(a), self.signed(b));
            format!("({a}.saturating_{name}({b}).cast_unsigned() >> {unused})")
        };
        match op {
            BinaryOp::Add => method("add"),
            BinaryOp::Sub => method("sub"),
            BinaryOp::Mul => method("mul"),
            BinaryOp::AddSat(Sign::Unsigned) => {
                format!("{x}.saturating_add({y}).min({})", literal(mask(width), width))
            }
            BinaryOp::SubSat(Sign::Unsigned) => format!("{x}.saturating_sub({y})"),
            BinaryOp::AddSat(Sign::Signed) => signed("add"),
            BinaryOp::SubSat(Sign::Signed) => signed("sub"),
            BinaryOp::And => infix("&"),
            BinaryOp::Or => infix("|"),
            BinaryOp::Xor => infix("^"),
            _ => self.shift(op, a, b),
        }
    }

    fn shift(&self, op: BinaryOp, a: &Expr, b: &Expr) -> String {
        let (x, width) = (self.number(a), a.width);
        let left = op == BinaryOp::Shl;
        if let (ExprKind::Const(by), false) = (&b.kind, op == BinaryOp::Shr(Sign::Signed)) {
            let symbol = if left { "<<" } else { ">>" };
            let shifted = format!("({x} {symbol} {by})");
            return match *by < u128::from(width) {
                true if left => masked(shifted, width),
                true => shifted,
                false => literal(0, width),
            };
        }
        let by = match native(b.width) {
            8 | 16 => cast(&self.value(b), type_of(b.width), "u32"),
            32 => self.value(b),
            _ => format!("u32::try_from({}).unwrap_or(u32::MAX)", self.value(b)),
        };
        let unused = native(width) - width;
        match op {
            BinaryOp::Shl => masked(format!("{x}.checked_shl({by}).unwrap_or(0)"), width),
            BinaryOp::Shr(Sign::Unsigned) => format!("{x}.checked_shr({by}).unwrap_or(0)"),
            _ => {
                let (most, x) = (native(width) - 1, self.signed(a));
                format!("(({x} >> {by}.min({most})).cast_unsigned() >> {unused})")
            }
        }
    }

    /// As a signed integer, moved to its top, so that the sign is where Rust wants it.
    fn signed(&self, expr: &Expr) -> String {
        let unused = native(expr.width) - expr.width;
        match unused {
            0 => format!("{}.cast_signed()", self.number(expr)),
            _ => format!("({} << {unused}).cast_signed()", self.number(expr)),
        }
    }
}

/// Without the brackets around the whole.
pub(super) fn bare(text: String) -> String {
    let inner = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let closed_early = |inner: &str| {
        let mut depth = 0_i32;
        inner.chars().any(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth < 0
        })
    };
    match inner {
        Some(inner) if !closed_early(inner) => inner.to_owned(),
        _ => text,
    }
}

fn mux(on: &str, a: &str, b: &str) -> String {
    let on = bare(on.to_owned());
    format!("(if {on} {{ {a} }} else {{ {b} }})")
}

fn shifts(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Shl | BinaryOp::Shr(_))
}

fn comparison(op: BinaryOp) -> Option<(&'static str, Sign)> {
    match op {
        BinaryOp::Eq => Some(("==", Sign::Unsigned)),
        BinaryOp::Ne => Some(("!=", Sign::Unsigned)),
        BinaryOp::Lt(sign) => Some(("<", sign)),
        BinaryOp::Le(sign) => Some(("<=", sign)),
        BinaryOp::Gt(sign) => Some((">", sign)),
        BinaryOp::Ge(sign) => Some((">=", sign)),
        _ => None,
    }
}
