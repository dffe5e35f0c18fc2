//! A program as it is written: what the parser makes of the tokens. Nothing is resolved yet.

use std::fmt;
use std::rc::Rc;

use super::source::Span;
use super::token::Literal;

/// A name and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) text: Rc<str>,
    pub(crate) span: Span,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A type as written.
#[derive(Debug, Clone)]
pub(crate) struct TypeRef {
    pub(crate) kind: TypeKind,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum TypeKind {
    Bool,
    /// `bit<W>`, `int<W>`.
    Fixed {
        width: Box<Expr>,
        signed: bool,
    },
    /// `int`: arbitrary precision.
    Int,
    Error,
    Void,
    /// `_`: a type that is not named.
    Any,
    Name(Name),
    /// `register<bit<16>>`.
    Specialized(Name, Vec<TypeRef>),
    /// `vlan_t[4]`: a header stack.
    Stack(Box<TypeRef>, Box<Expr>),
}

/// An expression.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
    /// How deep the tree is: the parser bounds it, so that nothing that walks it can run out of
    /// stack.
    pub(crate) depth: u16,
}

#[derive(Debug, Clone)]
pub(crate) enum ExprKind {
    Number(Literal),
    Bool(bool),
    Text,
    /// `x`, and `.x`, which is looked for at the top level only.
    Name {
        name: Name,
        global: bool,
    },
    /// `error.NoMatch`.
    Error(Name),
    /// `_` as an argument.
    Any,
    Member(Box<Expr>, Name),
    Index(Box<Expr>, Box<Expr>),
    /// `x[7:4]`.
    Slice(Box<Expr>, Box<Expr>, Box<Expr>),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `c ? a : b`.
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    Cast(Box<TypeRef>, Box<Expr>),
    Call {
        callee: Box<Expr>,
        types: Vec<TypeRef>,
        args: Vec<Arg>,
    },
    /// `{a, b}`.
    List(Vec<Expr>),
    /// `{x = a, y = b}`.
    Record(Vec<(Name, Expr)>),
}

/// An argument of a call: by place, or by the parameter's name.
#[derive(Debug, Clone)]
pub(crate) struct Arg {
    pub(crate) name: Option<Name>,
    pub(crate) value: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    /// `!`
    Not,
    /// `~`
    Complement,
    /// `-`
    Minus,
    /// `+`
    Plus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Concat,
    Add,
    Sub,
    /// `|+|`: stays at the largest value.
    AddSaturating,
    /// `|-|`: stays at the smallest value.
    SubSaturating,
    Mul,
    Div,
    Mod,
}

/// Binary operators from the loosest to the tightest (the `%left` lines of appendix G), as written.
/// All associate to the left.
pub(crate) const LEVELS: &[&[(&str, Binary)]] = &[
    &[("||", Binary::Or)],
    &[("&&", Binary::And)],
    &[("==", Binary::Equal), ("!=", Binary::NotEqual)],
    &[
        ("<", Binary::Less),
        (">", Binary::Greater),
        ("<=", Binary::LessEqual),
        (">=", Binary::GreaterEqual),
    ],
    &[("|", Binary::BitOr)],
    &[("^", Binary::BitXor)],
    &[("&", Binary::BitAnd)],
    &[("<<", Binary::ShiftLeft), (">>", Binary::ShiftRight)],
    &[
        ("++", Binary::Concat),
        ("+", Binary::Add),
        ("-", Binary::Sub),
        ("|+|", Binary::AddSaturating),
        ("|-|", Binary::SubSaturating),
    ],
    &[("*", Binary::Mul), ("/", Binary::Div), ("%", Binary::Mod)],
];

impl Binary {
    /// As written.
    pub(crate) fn symbol(self) -> &'static str {
        LEVELS.iter().copied().flatten().find(|(_, op)| *op == self).map_or("", |(text, _)| text)
    }
}

impl Unary {
    /// As written.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Not => "!",
            Self::Complement => "~",
            Self::Minus => "-",
            Self::Plus => "+",
        }
    }
}

/// What a `select` case or a table entry is matched with (`simpleKeysetExpression`).
#[derive(Debug, Clone)]
pub(crate) enum KeySet {
    /// `default` or `_`.
    Any,
    Value(Expr),
    /// `value &&& mask`.
    Mask(Expr, Expr),
    /// `first .. last`.
    Range(Expr, Expr),
}

/// `@name`, `@latency(2)`: the name, and the one number or string in its body, if that is all.
#[derive(Debug, Clone)]
pub(crate) struct Annotation {
    pub(crate) name: Name,
    pub(crate) number: Option<Literal>,
}

/// How a parameter is passed (section 6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
    InOut,
    /// Known when the program is compiled; for actions, given by the control plane.
    None,
}

#[derive(Debug, Clone)]
pub(crate) struct Param {
    pub(crate) direction: Direction,
    pub(crate) ty: TypeRef,
    pub(crate) name: Name,
}

#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) ty: TypeRef,
    pub(crate) name: Name,
}

/// A function or method without its body.
#[derive(Debug, Clone)]
pub(crate) struct Prototype {
    pub(crate) annotations: Vec<Annotation>,
    /// `None` for a constructor.
    pub(crate) returns: Option<TypeRef>,
    pub(crate) name: Name,
    pub(crate) type_params: Vec<Name>,
    pub(crate) params: Vec<Param>,
}

/// `const bit<16> RTT = 9;`
#[derive(Debug, Clone)]
pub(crate) struct Constant {
    pub(crate) ty: TypeRef,
    pub(crate) name: Name,
    pub(crate) value: Expr,
}

/// `bit<16> n = 0;`
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) ty: TypeRef,
    pub(crate) name: Name,
    pub(crate) value: Option<Expr>,
}

/// `register<bit<16>>(16) credit;`
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    pub(crate) ty: TypeRef,
    pub(crate) args: Vec<Arg>,
    pub(crate) name: Name,
}

/// A header or a struct.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) name: Name,
    pub(crate) fields: Vec<Field>,
}

/// The kind of a block: what its declared type begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Parser,
    Control,
    Package,
}

/// `control Ingress<M>(inout M meta);`
#[derive(Debug, Clone)]
pub(crate) struct BlockType {
    pub(crate) kind: BlockKind,
    pub(crate) name: Name,
    pub(crate) type_params: Vec<Name>,
    pub(crate) params: Vec<Param>,
}

#[derive(Debug, Clone)]
pub(crate) struct Parser {
    pub(crate) name: Name,
    pub(crate) params: Vec<Param>,
    pub(crate) locals: Vec<Local>,
    pub(crate) states: Vec<State>,
}

#[derive(Debug, Clone)]
pub(crate) struct Control {
    pub(crate) name: Name,
    pub(crate) params: Vec<Param>,
    pub(crate) locals: Vec<Local>,
    pub(crate) body: Block,
}

/// What stands before the states of a parser or the `apply` of a control.
#[derive(Debug, Clone)]
pub(crate) enum Local {
    Constant(Constant),
    Variable(Variable),
    Instance(Instance),
    Action(Rc<Action>),
    Table(Rc<Table>),
}

#[derive(Debug, Clone)]
pub(crate) struct Action {
    pub(crate) name: Name,
    pub(crate) params: Vec<Param>,
    pub(crate) body: Block,
}

#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) name: Name,
    pub(crate) keys: Vec<Key>,
    pub(crate) actions: Vec<ActionRef>,
    pub(crate) default_action: Option<(bool, ActionRef)>,
    pub(crate) entries: Vec<Entry>,
    /// Entries of the program that the control plane may not change.
    pub(crate) const_entries: bool,
    pub(crate) size: Option<Expr>,
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) value: Expr,
    pub(crate) match_kind: Name,
}

/// An action in a table, with the arguments that are given there.
#[derive(Debug, Clone)]
pub(crate) struct ActionRef {
    pub(crate) annotations: Vec<Annotation>,
    pub(crate) name: Name,
    pub(crate) args: Vec<Arg>,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) keys: Vec<KeySet>,
    pub(crate) action: ActionRef,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) name: Name,
    pub(crate) body: Vec<Statement>,
    pub(crate) transition: Transition,
}

#[derive(Debug, Clone)]
pub(crate) enum Transition {
    /// No `transition`: the specification's 13.4 makes it `reject`.
    Missing,
    To(Name),
    Select {
        keys: Vec<Expr>,
        cases: Vec<Case>,
        span: Span,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) keys: Vec<KeySet>,
    pub(crate) to: Name,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) statements: Vec<Statement>,
}

#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) kind: StatementKind,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum StatementKind {
    Empty,
    Constant(Constant),
    Variable(Variable),
    Assign(Expr, Expr),
    /// A call whose result nobody wants.
    Call(Expr),
    If(Expr, Box<Statement>, Option<Box<Statement>>),
    Block(Block),
    Return,
    Exit,
    Switch {
        on: Expr,
        cases: Vec<SwitchCase>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct SwitchCase {
    /// `None` is `default`.
    pub(crate) label: Option<Expr>,
    /// `None` falls through to the next one.
    pub(crate) body: Option<Block>,
    pub(crate) span: Span,
}

/// What stands at the top level.
#[derive(Debug, Clone)]
pub(crate) enum Declaration {
    Constant(Constant),
    /// `typedef bit<16> port_t;` and, if distinct, `type bit<16> port_t;`.
    Typedef {
        ty: TypeRef,
        name: Name,
        distinct: bool,
    },
    Header(Record),
    Struct(Record),
    Enum {
        name: Name,
        underlying: Option<TypeRef>,
        members: Vec<(Name, Option<Expr>)>,
    },
    Errors(Vec<Name>),
    MatchKinds(Vec<Name>),
    Function(Prototype),
    Extern {
        name: Name,
        type_params: Vec<Name>,
        methods: Vec<Prototype>,
    },
    BlockType(BlockType),
    Action(Rc<Action>),
    Parser(Rc<Parser>),
    Control(Rc<Control>),
    Instance(Instance),
}

impl Declaration {
    /// The name that it declares, if it is one.
    pub(crate) fn name(&self) -> Option<&Name> {
        match self {
            Self::Constant(constant) => Some(&constant.name),
            Self::Header(record) | Self::Struct(record) => Some(&record.name),
            Self::Typedef { name, .. } | Self::Enum { name, .. } | Self::Extern { name, .. } => {
                Some(name)
            }
            Self::Errors(_) | Self::MatchKinds(_) => None,
            Self::Function(function) => Some(&function.name),
            Self::BlockType(block) => Some(&block.name),
            Self::Action(action) => Some(&action.name),
            Self::Parser(parser) => Some(&parser.name),
            Self::Control(control) => Some(&control.name),
            Self::Instance(instance) => Some(&instance.name),
        }
    }
}

impl Local {
    /// The name that it declares.
    pub(crate) fn name(&self) -> &Name {
        match self {
            Self::Constant(constant) => &constant.name,
            Self::Variable(variable) => &variable.name,
            Self::Instance(instance) => &instance.name,
            Self::Action(action) => &action.name,
            Self::Table(table) => &table.name,
        }
    }
}
