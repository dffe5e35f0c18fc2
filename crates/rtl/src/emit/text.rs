//! Expressions of SystemVerilog.

use p4::ir::{BinaryOp, Sign, UnaryOp, mask};

/// An operand: what stands for it, and its number if that is known.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) text: String,
    pub(super) width: u16,
    pub(super) number: Option<u128>,
}

impl Operand {
    /// A bit of it.
    fn bit(&self, at: u16) -> String {
        match self.number {
            Some(number) => format!("1'b{}", number >> at & 1),
            None if self.width == 1 => self.text.clone(),
            None => format!("{}[{at}]", self.text),
        }
    }

    /// Its most significant bit.
    fn sign(&self) -> String {
        self.bit(self.width - 1)
    }

    /// Some of its bits.
    pub(super) fn bits(&self, low: u16, width: u16) -> String {
        match self.number {
            Some(number) => literal(number >> low, width),
            None if width == self.width => self.text.clone(),
            None if width == 1 => self.bit(low),
            None => format!("{}[{}:{low}]", self.text, low + width - 1),
        }
    }
}

/// A number.
pub(super) fn literal(value: u128, width: u16) -> String {
    format!("{width}'h{:x}", value & mask(width))
}

/// `logic` of so many bits, to stand before a name.
pub(super) fn logic(width: u32) -> String {
    if width == 1 { "logic".into() } else { format!("logic [{}:0]", width - 1) }
}

pub(super) fn unary(op: UnaryOp, a: &Operand) -> String {
    match op {
        UnaryOp::Not => format!("~{}", a.text),
        UnaryOp::Neg => format!("-{}", a.text),
    }
}

/// The same value in a wider word.
pub(super) fn resize(a: &Operand, sign: Sign, width: u16) -> String {
    let more = width - a.width;
    match sign {
        Sign::Unsigned => format!("{{{}, {}}}", literal(0, more), a.text),
        Sign::Signed => format!("{{{{{more}{{{}}}}}, {}}}", a.sign(), a.text),
    }
}

/// An operator, and what is to be computed before it: an expression that `own` names.
pub(super) fn binary(
    op: BinaryOp,
    a: &Operand,
    b: &Operand,
    own: &str,
) -> (Option<String>, String) {
    let (x, y) = (&a.text, &b.text);
    let plain = |op: &str| (None, format!("{x} {op} {y}"));
    let compare = |op: &str, sign: Sign| match sign {
        Sign::Unsigned => (None, format!("{x} {op} {y}")),
        Sign::Signed => (None, format!("$signed({x}) {op} $signed({y})")),
    };
    match op {
        BinaryOp::Add => plain("+"),
        BinaryOp::Sub => plain("-"),
        BinaryOp::Mul => plain("*"),
        BinaryOp::And => plain("&"),
        BinaryOp::Or => plain("|"),
        BinaryOp::Xor => plain("^"),
        BinaryOp::Eq => plain("=="),
        BinaryOp::Ne => plain("!="),
        BinaryOp::Lt(sign) => compare("<", sign),
        BinaryOp::Le(sign) => compare("<=", sign),
        BinaryOp::Gt(sign) => compare(">", sign),
        BinaryOp::Ge(sign) => compare(">=", sign),
        BinaryOp::AddSat(Sign::Unsigned) => (None, add_saturating(a, b)),
        BinaryOp::SubSat(Sign::Unsigned) => (None, subtract_saturating(a, b)),
        BinaryOp::AddSat(Sign::Signed) => (Some(plain("+").1), clamped(a, b, "==", own)),
        BinaryOp::SubSat(Sign::Signed) => (Some(plain("-").1), clamped(a, b, "!=", own)),
        BinaryOp::Shl => (None, shift(b, &format!("{x} << "), &literal(0, a.width))),
        BinaryOp::Shr(Sign::Unsigned) => {
            (None, shift(b, &format!("{x} >> "), &literal(0, a.width)))
        }
        BinaryOp::Shr(Sign::Signed) => {
            let fill = format!("{{{}{{{}}}}}", a.width, a.sign());
            (None, shift(b, &format!("$signed({x}) >>> "), &fill))
        }
    }
}

fn add_saturating(a: &Operand, b: &Operand) -> String {
    let (a, b) = if a.number.is_some() { (b, a) } else { (a, b) };
    let rest = b.number.map_or(format!("~{}", b.text), |number| literal(!number, b.width));
    if b.number == Some(0) {
        return a.text.clone();
    }
    let most = literal(u128::MAX, a.width);
    format!("({} > {rest}) ? {most} : ({} + {})", a.text, a.text, b.text)
}

fn subtract_saturating(a: &Operand, b: &Operand) -> String {
    let difference = format!("{} - {}", a.text, b.text);
    if b.number == Some(0) || a.number == Some(mask(a.width)) {
        return difference;
    }
    format!("({} < {}) ? {} : ({difference})", a.text, b.text, literal(0, a.width))
}

/// `own`, or the end of the range that it has run over: where the operands' signs are so, and the
/// result's is not the first one's.
fn clamped(a: &Operand, b: &Operand, signs: &str, own: &str) -> String {
    let top = a.width - 1;
    let result = if top == 0 { own.to_owned() } else { format!("{own}[{top}]") };
    let end = match top {
        0 => a.sign(),
        _ => format!("{{{}, {{{top}{{~{}}}}}}}", a.sign(), a.sign()),
    };
    let over = format!("{} {signs} {} && {result} != {}", a.sign(), b.sign(), a.sign());
    format!("({over}) ? {end} : {own}")
}

/// A shift; by the width or more there is only `fill`.
fn shift(b: &Operand, before: &str, fill: &str) -> String {
    /// Bits of a distance that can be shorter than the widest word.
    const BITS: u16 = 8;
    let whole = |distance: &str| format!("$unsigned({before}{distance})");
    match b.number {
        Some(by) => whole(&literal(by, BITS)),
        None if b.width <= BITS => whole(&b.text),
        None => {
            let far = b.bits(BITS, b.width - BITS);
            format!("(|{far}) ? {fill} : {}", whole(&b.bits(0, BITS)))
        }
    }
}
