//! Types, resolved (section 7).

use std::fmt;
use std::rc::Rc;

use num_bigint::BigInt;

use super::super::ast::{BlockType, Prototype};
use super::super::source::Span;
use crate::ir;

/// A type.
#[derive(Debug, Clone)]
pub(super) enum Type {
    Void,
    Bool,
    /// `int`: compile-time values of any size.
    Int,
    /// `bit<W>`, `int<W>`.
    Fixed {
        width: u16,
        signed: bool,
    },
    Error,
    Text,
    Enum(Rc<Enum>),
    /// `type bit<16> port_t`: a type of its own.
    Distinct(Rc<Distinct>),
    Header(Rc<Record>),
    Struct(Rc<Record>),
    /// A header stack and its size.
    Stack(Rc<Record>, u32),
    /// An extern with its type arguments.
    Extern(Rc<Extern>, Vec<Type>),
    /// A declared parser, control or package type with its type arguments.
    Block(Rc<BlockType>, Vec<Type>),
    /// A type parameter, or `_`.
    Param(Rc<str>),
}

#[derive(Debug)]
pub(super) struct Enum {
    pub(super) name: Rc<str>,
    pub(super) members: Vec<(Rc<str>, BigInt)>,
    /// The type of its values, if it has one; otherwise members are numbered.
    pub(super) underlying: Option<Type>,
    pub(super) width: u16,
}

#[derive(Debug)]
pub(super) struct Distinct {
    pub(super) name: Rc<str>,
    pub(super) of: Type,
}

/// A header or struct.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) name: Rc<str>,
    pub(super) fields: Vec<Field>,
    /// How many slots a value of it takes.
    pub(super) slots: usize,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: Rc<str>,
    pub(super) ty: Type,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) struct Extern {
    pub(super) name: Rc<str>,
    pub(super) type_params: Vec<Rc<str>>,
    pub(super) methods: Vec<Prototype>,
}

impl Record {
    pub(super) fn field(&self, name: &str) -> Option<(usize, &Field)> {
        self.fields.iter().enumerate().find(|(_, f)| *f.name == *name)
    }
}

/// What stands for type parameters.
pub(super) type Bindings = Vec<(Rc<str>, Type)>;

impl PartialEq for Type {
    /// Records, enums and externs are the same if they have the same name: names at the top level
    /// are unique.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Void, Self::Void)
            | (Self::Bool, Self::Bool)
            | (Self::Int, Self::Int)
            | (Self::Error, Self::Error)
            | (Self::Text, Self::Text) => true,
            (Self::Fixed { width: a, signed: b }, Self::Fixed { width: c, signed: d }) => {
                a == c && b == d
            }
            (Self::Enum(a), Self::Enum(b)) => a.name == b.name,
            (Self::Distinct(a), Self::Distinct(b)) => a.name == b.name,
            (Self::Header(a), Self::Header(b)) | (Self::Struct(a), Self::Struct(b)) => {
                a.name == b.name
            }
            (Self::Stack(a, n), Self::Stack(b, m)) => a.name == b.name && n == m,
            (Self::Extern(a, s), Self::Extern(b, t)) => a.name == b.name && s == t,
            (Self::Block(a, s), Self::Block(b, t)) => a.name.text == b.name.text && s == t,
            (Self::Param(a), Self::Param(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_args = |f: &mut fmt::Formatter<'_>, name: &str, args: &[Self]| {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            if args.is_empty() {
                f.write_str(name)
            } else {
                write!(f, "{name}<{}>", args.join(", "))
            }
        };
        match self {
            Self::Void => f.write_str("void"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Fixed { width, signed } => {
                write!(f, "{}<{width}>", if *signed { "int" } else { "bit" })
            }
            Self::Error => f.write_str("error"),
            Self::Text => f.write_str("string"),
            Self::Enum(e) => write!(f, "enum {}", e.name),
            Self::Distinct(d) => f.write_str(&d.name),
            Self::Header(r) => write!(f, "header {}", r.name),
            Self::Struct(r) => write!(f, "struct {}", r.name),
            Self::Stack(r, n) => write!(f, "header stack {}[{n}]", r.name),
            Self::Extern(e, args) => with_args(f, &e.name, args),
            Self::Block(b, args) => with_args(f, &b.name.text, args),
            Self::Param(name) => f.write_str(name),
        }
    }
}

impl Type {
    pub(super) const fn bits(width: u16) -> Self {
        Self::Fixed { width, signed: false }
    }

    /// How many bits a value has at run time, if it is one number.
    pub(super) fn width(&self) -> Option<u16> {
        match self {
            Self::Bool => Some(1),
            Self::Fixed { width, .. } => Some(*width),
            Self::Error => Some(ir::ERROR_WIDTH),
            Self::Enum(e) => Some(e.width),
            Self::Distinct(d) => d.of.width(),
            _ => None,
        }
    }

    pub(super) fn is_signed(&self) -> bool {
        match self {
            Self::Fixed { signed, .. } => *signed,
            Self::Enum(e) => e.underlying.as_ref().is_some_and(Self::is_signed),
            Self::Distinct(d) => d.of.is_signed(),
            _ => false,
        }
    }

    pub(super) fn sign(&self) -> ir::Sign {
        if self.is_signed() { ir::Sign::Signed } else { ir::Sign::Unsigned }
    }

    /// How many slots a variable of it takes.
    pub(super) fn slots(&self) -> usize {
        match self {
            Self::Header(r) => r.slots.saturating_add(1),
            Self::Struct(r) => r.slots,
            Self::Stack(r, n) => r.slots.saturating_add(1).saturating_mul(*n as usize),
            _ => 1,
        }
    }

    /// With an enum of a given type taken for a value of that type (section 8.11.2).
    pub(super) fn underlying(&self) -> &Self {
        match self {
            Self::Enum(e) => e.underlying.as_ref().unwrap_or(self),
            _ => self,
        }
    }

    /// With type parameters replaced by what stands for them.
    pub(super) fn substitute(&self, bound: &[(Rc<str>, Self)]) -> Self {
        let all = |args: &[Self]| args.iter().map(|a| a.substitute(bound)).collect();
        match self {
            Self::Param(name) => {
                let found = bound.iter().find(|(n, _)| n == name);
                found.map_or_else(|| self.clone(), |(_, ty)| ty.clone())
            }
            Self::Extern(e, args) => Self::Extern(Rc::clone(e), all(args)),
            Self::Block(b, args) => Self::Block(Rc::clone(b), all(args)),
            _ => self.clone(),
        }
    }

    /// Whether it is `wanted` with types put in for type parameters; those are added to `bound`.
    pub(super) fn unify(&self, wanted: &Self, bound: &mut Bindings) -> bool {
        match (self, wanted) {
            (_, Self::Param(name)) if **name == *"_" => true,
            (_, Self::Param(name)) => match bound.iter().find(|(n, _)| n == name) {
                Some((_, ty)) => self == ty,
                None => {
                    bound.push((Rc::clone(name), self.clone()));
                    true
                }
            },
            (Self::Extern(a, s), Self::Extern(b, t)) => {
                a.name == b.name
                    && s.len() == t.len()
                    && s.iter().zip(t).all(|(x, y)| x.unify(y, bound))
            }
            _ => self == wanted,
        }
    }
}
