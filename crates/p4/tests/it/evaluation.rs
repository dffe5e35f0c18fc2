//! Drawn expressions, compiled and interpreted, have the values that arithmetic on plain integers
//! gives them: written from sections 8.6 to 8.11 of the P4-16 specification, without the compiler's
//! folding.

use std::sync::Arc;

use proptest::prelude::*;
use trimline_p4::front;
use trimline_p4::interp::Machine;
use trimline_p4::ir::{self, PipelineId};
use trimline_p4::program::{NoExterns, Program};

/// An expression of 16 bits.
#[derive(Debug, Clone)]
enum Tree {
    A,
    B,
    Number(u16),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    Minus(Box<Tree>),
    Complement(Box<Tree>),
    /// Shifted by the low bits of another one.
    Shift(&'static str, Box<Tree>, Box<Tree>),
    /// Cut to some bits and widened again.
    Narrow(u8, Box<Tree>),
    /// The bytes the other way round.
    Swap(Box<Tree>),
    Choice(&'static str, Box<Tree>, Box<Tree>, Box<Tree>, Box<Tree>),
}

const BINARY: [&str; 8] = ["+", "-", "*", "&", "|", "^", "|+|", "|-|"];
const COMPARE: [&str; 6] = ["<", "<=", ">", ">=", "==", "!="];

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![Just(Tree::A), Just(Tree::B), any::<u16>().prop_map(Tree::Number)];
    leaf.prop_recursive(5, 30, 4, |inner| {
        let boxed = inner.prop_map(Box::new);
        let (a, b, c, d) = (boxed.clone(), boxed.clone(), boxed.clone(), boxed.clone());
        prop_oneof![
            4 => (prop::sample::select(&BINARY[..]), a.clone(), b.clone())
                .prop_map(|(op, a, b)| Tree::Binary(op, a, b)),
            1 => a.clone().prop_map(Tree::Minus),
            1 => a.clone().prop_map(Tree::Complement),
            1 => (prop::sample::select(&["<<", ">>"][..]), a.clone(), b.clone())
                .prop_map(|(op, a, b)| Tree::Shift(op, a, b)),
            1 => (1u8..16, a.clone()).prop_map(|(width, a)| Tree::Narrow(width, a)),
            1 => a.clone().prop_map(Tree::Swap),
            1 => (prop::sample::select(&COMPARE[..]), a, b, c, d)
                .prop_map(|(op, a, b, c, d)| Tree::Choice(op, a, b, c, d)),
        ]
    })
}

impl Tree {
    /// As P4, of type `bit<16>` or `int<16>`.
    fn text(&self, signed: bool) -> String {
        let ty = if signed { "int" } else { "bit" };
        let t = |tree: &Self| tree.text(signed);
        match self {
            Self::A => "a".to_owned(),
            Self::B => "b".to_owned(),
            Self::Number(n) => format!("16{}{n}", if signed { 's' } else { 'w' }),
            Self::Binary(op, a, b) => format!("({} {op} {})", t(a), t(b)),
            Self::Minus(a) => format!("(-{})", t(a)),
            Self::Complement(a) => format!("(~{})", t(a)),
            Self::Shift(op, a, b) => format!("({} {op} {}[4:0])", t(a), t(b)),
            Self::Narrow(width, a) => format!("(({ty}<16>)({ty}<{width}>){})", t(a)),
            Self::Swap(a) => format!("(({ty}<16>)({0}[7:0] ++ {0}[15:8]))", t(a)),
            Self::Choice(op, a, b, c, d) => {
                format!("({} {op} {} ? {} : {})", t(a), t(b), t(c), t(d))
            }
        }
    }

    /// Its value, as an integer in the range of the type.
    fn value(&self, signed: bool, a: i64, b: i64) -> i64 {
        let v = |tree: &Self| tree.value(signed, a, b);
        let fit = |x: i64| in_range(x, 16, signed);
        let (least, most) = if signed { (-0x8000, 0x7fff) } else { (0, 0xffff) };
        match self {
            Self::A => a,
            Self::B => b,
            Self::Number(n) => fit(i64::from(*n)),
            Self::Binary(op, x, y) => {
                let (x, y) = (v(x), v(y));
                match *op {
                    "+" => fit(x + y),
                    "-" => fit(x - y),
                    "*" => fit(x * y),
                    "&" => fit(x & y),
                    "|" => fit(x | y),
                    "^" => fit(x ^ y),
                    "|+|" => (x + y).clamp(least, most),
                    _ => (x - y).clamp(least, most),
                }
            }
            Self::Minus(x) => fit(-v(x)),
            Self::Complement(x) => fit(!v(x)),
            Self::Shift(op, x, y) => match *op {
                "<<" => fit(v(x) << (v(y) & 31)),
                _ => v(x) >> (v(y) & 31),
            },
            Self::Narrow(width, x) => in_range(v(x), u32::from(*width), signed),
            Self::Swap(x) => fit(i64::from((v(x) as u16).swap_bytes())),
            Self::Choice(op, x, y, yes, no) => {
                let (x, y) = (v(x), v(y));
                let holds = match *op {
                    "<" => x < y,
                    "<=" => x <= y,
                    ">" => x > y,
                    ">=" => x >= y,
                    "==" => x == y,
                    _ => x != y,
                };
                if holds { v(yes) } else { v(no) }
            }
        }
    }
}

/// The number that the low bits mean.
fn in_range(x: i64, width: u32, signed: bool) -> i64 {
    let low = x & ((1 << width) - 1);
    if signed && low >> (width - 1) == 1 { low - (1 << width) } else { low }
}

fn program(expr: &str, signed: bool) -> String {
    let ty = if signed { "int<16>" } else { "bit<16>" };
    format!(
        "#include <core.p4>
        struct info_t {{ bit<16> a; bit<16> b; bit<16> result; }}
        header none_t {{ bit<8> n; }}
        control Work<H>(inout H h, inout info_t info);
        package Box<H>(Work<H> work);
        control W(inout none_t h, inout info_t info) {{
            apply {{
                {ty} a = ({ty})info.a; {ty} b = ({ty})info.b;
                info.result = (bit<16>){expr};
            }}
        }}
        Box(W()) main;"
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn expressions_have_the_values_of_integers(
        tree in trees(), signed in any::<bool>(), inputs in any::<[(u16, u16); 3]>(),
    ) {
        let text = program(&tree.text(signed), signed);
        let compiled = front::check(&|_| Ok(text.clone()), "x.p4", &[]);
        let said: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
        let Some(program) = compiled.program else { panic!("{}", said.join("\n")) };
        prop_assert_eq!(ir::check(&program), Ok(()));
        let mut machine = Machine::new(Arc::new(program));
        for (a, b) in inputs {
            let mut meta = [u128::from(a), u128::from(b), 0];
            let done = machine.run(PipelineId(0), &[], &mut meta, &mut Vec::new(), &mut NoExterns);
            prop_assert!(done.is_ok());
            let [x, y] = [a, b].map(|n| in_range(i64::from(n), 16, signed));
            let expected = tree.value(signed, x, y) as u16;
            prop_assert_eq!(meta[2], u128::from(expected), "{} of {} and {}", text, x, y);
        }
    }
}
