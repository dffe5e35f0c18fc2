//! Test: expressions are read as they were meant, with as few parentheses as the precedences of
//! appendix G allow.

use num_bigint::BigInt;
use proptest::prelude::*;

use super::super::ast::{Binary, ExprKind, LEVELS, Unary};
use super::super::diagnostic::Messages;
use super::super::token::{Kind, Token};
use super::super::{ast, lexer};
use super::Parser;

/// An expression, independent of the parser's tree.
#[derive(Debug, Clone)]
enum Tree {
    Number(u32),
    Name(&'static str),
    Binary(usize, usize, Box<Tree>, Box<Tree>),
    Unary(&'static str, Box<Tree>),
    Cast(Box<Tree>),
    Choice(Box<Tree>, Box<Tree>, Box<Tree>),
    Slice(Box<Tree>),
    Member(Box<Tree>),
    Call(&'static str, Vec<Tree>),
}

/// Tighter than all binary operators.
const PREFIX: usize = LEVELS.len();
const POSTFIX: usize = PREFIX + 1;

impl Tree {
    /// How tightly the outermost operator binds; `?:` is `None`, the loosest.
    fn level(&self) -> Option<usize> {
        match self {
            Self::Choice(..) => None,
            Self::Binary(level, ..) => Some(*level),
            Self::Unary(..) | Self::Cast(_) => Some(PREFIX),
            _ => Some(POSTFIX),
        }
    }

    /// With parentheses only where the tree could not be told without.
    fn terse(&self) -> String {
        let at = |tree: &Self, least: usize| match tree.level() {
            Some(level) if level >= least => tree.terse(),
            _ => format!("({})", tree.terse()),
        };
        match self {
            Self::Number(n) => n.to_string(),
            Self::Name(name) => (*name).to_owned(),
            Self::Binary(level, op, a, b) => {
                format!("{} {} {}", at(a, *level), LEVELS[*level][*op].0, at(b, level + 1))
            }
            // With a blank, since `++` is another operator.
            Self::Unary(op, a) => format!("{op} {}", at(a, PREFIX)),
            Self::Cast(a) => format!("(bit<8>){}", at(a, PREFIX)),
            Self::Choice(a, b, c) => format!("{} ? {} : {}", at(a, 0), b.terse(), c.terse()),
            Self::Slice(a) => format!("{}[7:0]", at(a, POSTFIX)),
            Self::Member(a) => format!("{}.f", at(a, POSTFIX)),
            Self::Call(name, args) => {
                let args: Vec<String> = args.iter().map(Self::terse).collect();
                format!("{name}({})", args.join(", "))
            }
        }
    }

    /// With parentheses everywhere.
    fn full(&self) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Name(name) => (*name).to_owned(),
            Self::Binary(level, op, a, b) => {
                format!("({} {} {})", a.full(), LEVELS[*level][*op].0, b.full())
            }
            Self::Unary(op, a) => format!("({op}{})", a.full()),
            Self::Cast(a) => format!("((bit<8>){})", a.full()),
            Self::Choice(a, b, c) => format!("({} ? {} : {})", a.full(), b.full(), c.full()),
            Self::Slice(a) => format!("{}[7:0]", a.full()),
            Self::Member(a) => format!("{}.f", a.full()),
            Self::Call(name, args) => {
                let args: Vec<String> = args.iter().map(Self::full).collect();
                format!("{name}({})", args.join(", "))
            }
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let names = prop::sample::select(vec!["a", "b", "key", "apply", "priority"]);
    let leaf =
        prop_oneof![(0u32..1000).prop_map(Tree::Number), names.clone().prop_map(Tree::Name),];
    leaf.prop_recursive(6, 40, 3, move |inner| {
        let operator =
            (0..LEVELS.len()).prop_flat_map(|level| (Just(level), 0..LEVELS[level].len()));
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            4 => (operator, boxed.clone(), boxed.clone())
                .prop_map(|((level, op), a, b)| Tree::Binary(level, op, a, b)),
            1 => (prop::sample::select(vec!["!", "~", "-", "+"]), boxed.clone())
                .prop_map(|(op, a)| Tree::Unary(op, a)),
            1 => boxed.clone().prop_map(Tree::Cast),
            1 => (boxed.clone(), boxed.clone(), boxed.clone())
                .prop_map(|(a, b, c)| Tree::Choice(a, b, c)),
            1 => boxed.clone().prop_map(Tree::Slice),
            1 => boxed.prop_map(Tree::Member),
            1 => (names.clone(), prop::collection::vec(inner, 0..3))
                .prop_map(|(name, args)| Tree::Call(name, args)),
        ]
    })
}

/// The parser's tree in the form of [`Tree::full`].
fn written(expr: &ast::Expr) -> String {
    match &expr.kind {
        ExprKind::Number(n) => n.value.to_string(),
        ExprKind::Name { name, .. } => name.to_string(),
        ExprKind::Binary(op, a, b) => format!("({} {} {})", written(a), symbol(*op), written(b)),
        ExprKind::Unary(op, a) => format!("({}{})", sign(*op), written(a)),
        ExprKind::Cast(_, a) => format!("((bit<8>){})", written(a)),
        ExprKind::Choice(a, b, c) => format!("({} ? {} : {})", written(a), written(b), written(c)),
        ExprKind::Slice(a, ..) => format!("{}[7:0]", written(a)),
        ExprKind::Member(a, name) => format!("{}.{name}", written(a)),
        ExprKind::Call { callee, args, .. } => {
            let args: Vec<String> = args.iter().map(|a| written(&a.value)).collect();
            format!("{}({})", written(callee), args.join(", "))
        }
        _ => "?".to_owned(),
    }
}

fn symbol(op: Binary) -> &'static str {
    op.symbol()
}

fn sign(op: Unary) -> &'static str {
    op.symbol()
}

fn tokens(text: &str) -> (Vec<Token>, Messages) {
    let mut messages = Messages::default();
    let tokens = lexer::tokens(&|_| Ok(text.to_owned()), "x.p4", &mut messages);
    (tokens, messages)
}

/// Read one expression, which must be the whole text.
fn read(text: &str) -> Result<String, String> {
    let (tokens, mut messages) = tokens(text);
    let mut parser = Parser::new(&tokens, &mut messages);
    let expr = parser.expr();
    let at_end = *parser.kind() == Kind::End;
    match expr {
        Ok(expr) if at_end => Ok(written(&expr)),
        _ => Err(messages.into_sorted().0.iter().map(|d| d.message.clone()).collect()),
    }
}

proptest! {
    #[test]
    fn expressions_are_read_as_they_were_meant(tree in trees()) {
        let text = tree.terse();
        prop_assert_eq!(read(&text), Ok(tree.full()), "{}", text);
    }
}

/// `%left` lines of appendix G, by hand.
#[test]
fn precedences_of_the_grammar() {
    for (text, meant) in [
        ("a + b * 2", "(a + (b * 2))"),
        ("a << b + 2", "(a << (b + 2))"),
        ("a & b << 2", "(a & (b << 2))"),
        ("a ^ b & 2", "(a ^ (b & 2))"),
        ("a | b ^ 2", "(a | (b ^ 2))"),
        ("a < b | 2", "(a < (b | 2))"),
        ("a == b < 2", "(a == (b < 2))"),
        ("a && b == 2", "(a && (b == 2))"),
        ("a || b && 2", "(a || (b && 2))"),
        ("a - b - 2", "((a - b) - 2)"),
        ("a ++ b |-| 2", "((a ++ b) |-| 2)"),
        ("a >> b >> 2", "((a >> b) >> 2)"),
        ("-a[7:0]", "(-a[7:0])"),
        ("(bit<8>)a.f + b", "(((bit<8>)a.f) + b)"),
        ("!a ? b : a ? 1 : 2", "((!a) ? b : (a ? 1 : 2))"),
        ("a < b >> 2", "(a < (b >> 2))"),
    ] {
        assert_eq!(read(text).as_deref(), Ok(meant), "{text}");
    }
}

#[test]
fn nesting_is_limited_and_long_chains_are_refused_not_fatal() {
    let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(read(&deep).unwrap_err().contains("levels in one another"));
    let long = format!("a{}", " + a".repeat(100_000));
    assert!(read(&long).unwrap_err().contains("levels in one another"));
    let prefixes = "-".repeat(100_000);
    assert!(read(&prefixes).unwrap_err().contains("levels in one another"));
    let fits = format!("a{}", " + a".repeat(90));
    assert!(read(&fits).is_ok());
}

#[test]
fn type_arguments_and_comparisons_are_told_apart() {
    assert_eq!(read("f<bit<8>>(a)").as_deref(), Ok("f(a)"));
    assert_eq!(read("a < b").as_deref(), Ok("(a < b)"));
    assert_eq!(read("f(a < b, c > (d))").as_deref(), Ok("f((a < b), (c > d))"));
    assert_eq!(read("a < 3 == (b > 2)").as_deref(), Ok("((a < 3) == (b > 2))"));
    let number = BigInt::from(7);
    let (tokens, _) = tokens("8w7");
    assert!(matches!(&tokens[0].kind, Kind::Number(n) if n.value == number));
}
