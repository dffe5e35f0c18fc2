//! Tokens of P4-16 (specification 1.2.4, section 6.4 and appendix B).

use std::rc::Rc;

use num_bigint::BigInt;

use super::source::Span;

/// A token and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name that is no keyword.
    Name(Rc<str>),
    /// A keyword of [`KEYWORDS`].
    Word(&'static str),
    /// One of [`SYMBOLS`].
    Symbol(&'static str),
    /// `12`, `0xff`, `8w12`, `4s3`.
    Number(Literal),
    /// The text between quotes, escapes as written.
    Text(Rc<str>),
    /// The end of the program.
    End,
}

/// An integer as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Literal {
    pub(crate) value: BigInt,
    /// Width and whether it is signed: `8w`, `4s`. Without, the literal is an arbitrary-precision
    /// `int` (section 7.1.6.6).
    pub(crate) width: Option<(u32, bool)>,
}

/// Reserved keywords (appendix B).
pub(crate) const KEYWORDS: &[&str] = &[
    "abstract",
    "action",
    "actions",
    "apply",
    "bit",
    "bool",
    "const",
    "control",
    "default",
    "else",
    "entries",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "key",
    "list",
    "match_kind",
    "out",
    "package",
    "parser",
    "priority",
    "return",
    "select",
    "state",
    "string",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "type",
    "typedef",
    "value_set",
    "varbit",
    "void",
    "_",
];

/// Keywords that the grammar takes as names, too (`nonTypeName` and `name` in appendix G).
pub(crate) const ALSO_NAMES: &[&str] =
    &["apply", "key", "actions", "state", "entries", "type", "list", "priority"];

/// Operators and punctuation, longer ones first. `>>` is two `>`: it also closes two type
/// argument lists, and the parser knows which it is.
pub(crate) const SYMBOLS: &[&str] = &[
    "&&&", "|+|", "|-|", "...", "{#}", "==", "!=", "<=", ">=", "&&", "||", "++", "..", "<<", "<",
    ">", "=", "!", "~", "+", "-", "*", "/", "%", "&", "|", "^", "?", ":", ";", ",", ".", "(", ")",
    "[", "]", "{", "}", "@",
];

impl Kind {
    /// How messages name it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Name(name) => format!("`{name}`"),
            Self::Word(text) | Self::Symbol(text) => format!("`{text}`"),
            Self::Number(literal) => format!("the number {}", literal.value),
            // A message is one line.
            Self::Text(text) => match text.split_once(['\n', '\r']) {
                None => format!("the string \"{text}\""),
                Some((line, _)) => format!("the string \"{line}...\""),
            },
            Self::End => "the end of the file".to_owned(),
        }
    }
}
