//! Widths, signs and values of expressions, by the tables and sentences of the P4-16 specification
//! 1.2.4. The expected values are the specification's, or follow from the sentence that is cited.

use trimline_p4::front;
use trimline_p4::ir::{self, Block, Expr, ExprKind, StmtKind};

/// A program that assigns one expression to `result`, a local variable of the given type.
fn program(ty: &str, expr: &str) -> String {
    format!(
        "#include <core.p4>
        struct info_t {{ bit<8> port; }}
        struct pair_t {{ bit<8> a; bit<8> b; }}
        header word_t {{ bit<8> w; }}
        enum bit<8> E {{ a = 5 }}
        enum Plain {{ P, Q }}
        type bit<8> port_t;
        control Work<H>(inout H h, inout info_t info);
        package Box<H>(Work<H> work);
        control W(inout word_t h, inout info_t info) {{
            apply {{
                bit<8> x = info.port; bit<16> y = 0; int<8> z = 0; bool t = x == 1; bit<1> b = 0;
                port_t p = (port_t)info.port;
                {ty} result = {expr};
            }}
        }}
        Box(W()) main;"
    )
}

struct Outcome {
    /// The value that is assigned, if the program is accepted.
    value: Result<Expr, Vec<String>>,
    warnings: usize,
}

fn outcome(ty: &str, expr: &str) -> Outcome {
    let text = program(ty, expr);
    let compiled = front::check(&|_| Ok(text.clone()), "x.p4", &[]);
    let messages = compiled.diagnostics.iter().map(|d| d.message.clone()).collect();
    let warnings = compiled.diagnostics.iter().filter(|d| d.severity == front::Severity::Warning);
    let warnings = warnings.count();
    let value = compiled.program.map(|program| last(&program.pipelines[0].control)).ok_or(messages);
    Outcome { value, warnings }
}

fn last(block: &Block) -> Expr {
    match &block.last().unwrap().kind {
        StmtKind::Assign { value, .. } => value.clone(),
        other => panic!("{other:?}"),
    }
}

fn constant(ty: &str, expr: &str) -> u128 {
    match outcome(ty, expr).value {
        Ok(Expr { kind: ExprKind::Const(value), .. }) => value,
        other => panic!("{expr}: {other:?}"),
    }
}

fn accepted(ty: &str, expr: &str) {
    assert!(outcome(ty, expr).value.is_ok(), "{expr}: {:?}", outcome(ty, expr).value);
}

fn refused(expr: &str) {
    for ty in ["bit<8>", "bit<16>", "int<8>", "int<16>", "bool", "bit<32>", "bit<1>"] {
        assert!(outcome(ty, expr).value.is_err(), "{ty} = {expr} is accepted");
    }
}

/// Section 8.11.2: what the compiler converts unasked, and where it warns.
#[test]
fn implicit_casts() {
    for (ty, expr, warnings) in [
        ("bit<8>", "x + 1", 0),
        ("bool", "z < 0", 0),
        ("bit<8>", "x | 0xFFF", 1),
        ("bit<8>", "x + E.a", 0),
        ("bit<8>", "x << 256", 1),
        ("bit<16>", "16w11 << E.a", 0),
        ("bit<6>", "x[E.a:0]", 0),
        ("bit<16>", "E.a ++ 8w0", 0),
    ] {
        let outcome = outcome(ty, expr);
        assert!(outcome.value.is_ok(), "{expr}: {:?}", outcome.value);
        assert_eq!(outcome.warnings, warnings, "{expr}");
    }
}

/// Section 8.11.3, the whole table: what is illegal, and the alternatives that it gives.
#[test]
fn illegal_arithmetic_and_its_alternatives() {
    for expr in
        ["x + y", "x + z", "(int<8>)y", "y + z", "x << z", "x < z", "1 << x", "~1", "5 & -3"]
    {
        refused(expr);
    }
    for (ty, expr) in [
        ("bit<16>", "(bit<16>)x + y"),
        ("bit<8>", "x + (bit<8>)y"),
        ("int<8>", "(int<8>)x + z"),
        ("bit<8>", "x + (bit<8>)z"),
        ("int<8>", "(int<8>)(bit<8>)y"),
        ("int<8>", "(int<8>)(int<16>)y"),
        ("int<8>", "(int<8>)(bit<8>)y + z"),
        ("bit<16>", "y + (bit<16>)(bit<8>)z"),
        ("bit<8>", "(bit<8>)y + (bit<8>)z"),
        ("int<16>", "(int<16>)y + (int<16>)z"),
        ("bit<8>", "x << (bit<8>)z"),
        ("bool", "x < (bit<8>)z"),
        ("bool", "(int<8>)x < z"),
        ("bit<32>", "32w1 << x"),
        ("bit<32>", "~32w1"),
        ("bit<32>", "32w5 & -3"),
    ] {
        accepted(ty, expr);
    }
}

/// Section 8.11.1.
#[test]
fn explicit_casts() {
    for (ty, expr, value) in [
        ("bool", "(bool)1w1", 1),
        ("bit<1>", "(bit<1>)true", 1),
        ("bool", "(bool)0", 0),
        ("bit<8>", "(bit<8>)(-8s1)", 255),
        ("int<8>", "(int<8>)8w255", 0xff),
        ("bit<4>", "(bit<4>)8w0x5A", 0xA),
        ("bit<16>", "(bit<16>)8w255", 255),
        ("int<16>", "(int<16>)(-8s2)", 0xfffe),
        ("int<4>", "(int<4>)8s0x5A", 0xA),
        ("bit<8>", "(bit<8>)E.a", 5),
        ("E", "(E)8w5", 5),
    ] {
        assert_eq!(constant(ty, expr), value, "{expr}");
    }
    for expr in ["(bool)x", "(bool)2", "(bit<8>)t", "(bit<1>)x == t", "(bit<8>)h"] {
        refused(expr);
    }
    accepted("bit<8>", "(bit<8>)p");
    refused("p + 1");
    refused("p + x");
}

/// Sections 8.6 to 8.9: wrapping, saturation, shifts, slices, concatenation.
#[test]
fn values_of_operations() {
    for (ty, expr, value) in [
        ("bit<8>", "8w250 + 8w10", 4),
        ("bit<8>", "8w1 - 8w2", 255),
        ("bit<8>", "-8w1", 255),
        ("bit<8>", "8w16 * 8w17", 16),
        ("bit<8>", "8w250 |+| 8w10", 255),
        ("bit<8>", "8w1 |-| 8w2", 0),
        ("int<8>", "8s100 |+| 8s100", 127),
        ("int<8>", "-8s100 |-| 8s100", 0x80),
        ("bit<16>", "16w1 << 1024", 0),
        ("bit<8>", "8w0x80 >> 7", 1),
        ("int<8>", "-8s4 >> 1", 0xfe),
        ("int<8>", "-8s4 >> 100", 0xff),
        ("bit<4>", "-8w2[7:4]", 0),
        ("bit<4>", "(-8w2)[7:4]", 15),
        ("bit<4>", "(-1)[3:0]", 15),
        ("bit<12>", "4w0xA ++ 8s0x5B", 0xA5B),
        ("int<12>", "4s0x5 ++ 8w0xAB", 0x5AB),
        ("bit<8>", "(7 / 2) * 16 + 7 % 3", 49),
        ("bit<8>", "(1 << 100) >> 98", 4),
        ("bool", "8w255 > 8w1", 1),
        ("bool", "8s255 > 8s1", 0),
        ("bool", "8w6 & 8w3 == 8w2", 1),
        ("bool", "Plain.P == Plain.Q", 0),
        ("bool", "!true || true && true", 1),
    ] {
        assert_eq!(constant(ty, expr), value, "{expr}");
    }
    for expr in ["7 / 0", "-7 / 2", "7 % -2", "8w7 / 8w2", "x / 2", "1 |+| 2", "t + t", "x && x"] {
        refused(expr);
    }
}

/// What is computed at run time has the width of section 8's rules in the IR, too.
#[test]
fn widths_of_the_run_time() {
    for (ty, expr, width) in [
        ("bit<8>", "x + 1", 8),
        ("bool", "x < 1", 1),
        ("bit<24>", "x ++ y", 24),
        ("bit<3>", "x[4:2]", 3),
        ("bit<16>", "y << x", 16),
        ("bit<16>", "(bit<16>)x", 16),
        ("bit<8>", "t ? x : 0", 8),
        ("bit<1>", "t ? 1w1 : 0", 1),
    ] {
        assert_eq!(outcome(ty, expr).value.map(|e| e.width), Ok(width), "{expr}");
    }
    refused("t ? 1 : 2");
}

/// Section 8.16 and 8.17: structs and headers are equal field by field; a header also by validity.
#[test]
fn lists_fill_structs_and_are_compared() {
    accepted("bool", "h == h");
    accepted("pair_t", "{x, 1}");
    accepted("pair_t", "{b = 1, a = x}");
    refused("{x, 1}");
    for expr in ["{x}", "{x, y}", "{a = 1, c = 2}"] {
        assert!(outcome("pair_t", expr).value.is_err(), "{expr}");
    }
}

/// Section 8.1: operands are evaluated from left to right, and `&&`, `||` and `?:` evaluate only
/// what they need. Calls become statements; what was read before one is kept.
#[test]
fn calls_in_expressions_keep_their_order() {
    let text = "#include <core.p4>
        struct info_t { bit<8> port; }
        extern bit<8> next(inout bit<8> n);
        control Work<H>(inout H h, inout info_t info);
        package Box<H>(Work<H> work);
        header word_t { bit<8> w; }
        control W(inout word_t h, inout info_t info) {
            apply {
                h.w = info.port + next(info.port);
                if (h.isValid() && next(info.port) == 1) { h.w = 0; }
            }
        }
        Box(W()) main;";
    let program = front::compile(&|_| Ok(text.to_owned()), "x.p4", &[]).unwrap();
    assert_eq!(ir::check(&program), Ok(()));
    let kinds: Vec<&str> = program.pipelines[0]
        .control
        .iter()
        .map(|s| match &s.kind {
            StmtKind::Assign { .. } => "assign",
            StmtKind::Call { .. } => "call",
            StmtKind::If { .. } => "if",
            _ => "other",
        })
        .collect();
    // port kept, call, sum; valid bit kept, call under `if`, the statement's own `if`.
    assert_eq!(kinds, ["assign", "call", "assign", "assign", "if", "if"]);
}
