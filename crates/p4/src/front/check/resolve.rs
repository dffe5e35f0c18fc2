//! Types as they are written: what they are.

use std::rc::Rc;

use num_traits::ToPrimitive;

use super::super::ast::{Annotation, Name, TypeKind, TypeRef};
use super::super::diagnostic::did_you_mean;
use super::super::limits::{MAX_LATENCY, MAX_STACK};
use super::super::source::Span;
use super::scope::Symbol;
use super::types::Type;
use super::{Checked, Checker};
use crate::ir;

impl Checker<'_> {
    /// Do something where these type parameters are known.
    pub(super) fn with_types<T>(
        &mut self,
        types: &[(Rc<str>, Type)],
        inner: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.scopes.open();
        for (name, _) in types {
            // Two of one name were reported where they are declared.
            let nowhere = Span { file: 0, start: 0, end: 0 };
            let _ = self.scopes.declare(name, Symbol::Type(Type::Param(Rc::clone(name))), nowhere);
        }
        let done = inner(self);
        self.scopes.close();
        done
    }

    /// What a type as written is.
    pub(super) fn type_of(&mut self, ty: &TypeRef) -> Checked<Type> {
        match &ty.kind {
            TypeKind::Bool => Ok(Type::Bool),
            TypeKind::Int => Ok(Type::Int),
            TypeKind::Error => Ok(Type::Error),
            TypeKind::Void => Ok(Type::Void),
            TypeKind::Any => Ok(Type::Param("_".into())),
            TypeKind::Fixed { width, signed } => {
                let given = self.expr(width)?;
                let value = self.known(&given, "a width")?;
                match value.to_u16() {
                    Some(width) if (1..=ir::MAX_WIDTH).contains(&width) => {
                        Ok(Type::Fixed { width, signed: *signed })
                    }
                    _ => {
                        let what = format!("{value} bits");
                        let instead = format!("1 to {} bits; cut it into fields", ir::MAX_WIDTH);
                        Err(self.refuse(width.span, &what, instead))
                    }
                }
            }
            TypeKind::Name(name) => self.named_type(name, None),
            TypeKind::Specialized(name, args) => {
                let args = args.iter().map(|a| self.type_of(a)).collect::<Checked<Vec<_>>>()?;
                self.named_type(name, Some(args))
            }
            TypeKind::Stack(of, size) => {
                let given = self.expr(size)?;
                let value = self.known(&given, "the size of a header stack")?;
                let of_type = self.type_of(of)?;
                let Type::Header(record) = of_type else {
                    let message = format!("a stack of {of_type}");
                    return Err(self.error(of.span, message, "stacks are of headers"));
                };
                match value.to_u32().filter(|n| (1..=MAX_STACK).contains(n)) {
                    Some(size) => Ok(Type::Stack(record, size)),
                    None => {
                        let what = format!("a stack of {value} headers");
                        Err(self.refuse(size.span, &what, format!("1 to {MAX_STACK}")))
                    }
                }
            }
        }
    }

    fn named_type(&mut self, name: &Name, args: Option<Vec<Type>>) -> Checked<Type> {
        let (params, ty) = match self.scopes.find(&name.text) {
            Some(Symbol::Type(Type::Extern(e, params))) if args.is_some() => {
                let with = Type::Extern(Rc::clone(e), args.clone().unwrap_or_default());
                (params.len(), with)
            }
            Some(Symbol::BlockType(b)) => {
                let with = Type::Block(Rc::clone(b), args.clone().unwrap_or_default());
                (b.type_params.len(), with)
            }
            Some(Symbol::Type(ty)) => (0, ty.clone()),
            Some(other) => {
                let other = other.clone();
                return Err(self.misused(name, &other, "", "a type"));
            }
            None => {
                let known = self.scopes.names(|s| matches!(s, Symbol::Type(_)));
                let hint = did_you_mean(&name.text, known, "types are declared before their use");
                if self.scopes.is_later(&name.text) {
                    return Err(self.unknown(name));
                }
                return Err(self.error(name.span, format!("unknown type `{name}`"), hint));
            }
        };
        let given = args.map_or(params, |a| a.len());
        if given != params {
            let message = format!("`{name}` has {params} type parameters, not {given}");
            return Err(self.error(name.span, message, "give one type for each"));
        }
        Ok(ty)
    }

    /// `@latency(2)`: cycles until the results are there.
    pub(super) fn latency(&mut self, annotations: &[Annotation]) -> Checked<u32> {
        let Some(found) = annotations.iter().find(|a| &*a.name.text == "latency") else {
            return Ok(0);
        };
        let number = found.number.as_ref().and_then(|n| n.value.to_u32());
        number.filter(|cycles| *cycles <= MAX_LATENCY).ok_or_else(|| {
            let hint = format!("it is one number, 0 to {MAX_LATENCY}");
            self.error(found.name.span, "`@latency` without its cycles", hint)
        })
    }
}
