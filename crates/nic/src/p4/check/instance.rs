//! Instances of externs and controls (section 11.3).

use std::rc::Rc;

use super::super::ast::{Arg, Instance as AstInstance, TypeKind};
use super::super::source::Span;
use super::call::arguments;
use super::scope::{Instance, InstanceKind, Symbol};
use super::types::{Bindings, Extern, Type};
use super::value::as_bits;
use super::{Checked, Checker};
use crate::ir::{self, Counter, CounterId, Register, RegisterId};

impl Checker<'_> {
    /// An instance of an extern or a control.
    pub(super) fn instance(&mut self, instance: &AstInstance) -> Checked<()> {
        let path = self.path(&instance.name.text);
        if let TypeKind::Name(name) = &instance.ty.kind
            && let Some(Symbol::Control(control)) = self.scopes.find(&name.text)
        {
            let control = Rc::clone(control);
            if let Some(arg) = instance.args.first() {
                let hint = "controls have no constructor parameters here";
                return Err(self.error(arg.value.span, "too many arguments", hint));
            }
            let kind = InstanceKind::Control(control);
            let made = Instance { ty: Type::Void, path, kind, span: instance.name.span };
            return self.declare(&instance.name, Symbol::Instance(Rc::new(made)));
        }
        let ty = self.type_of(&instance.ty)?;
        let Type::Extern(declared, types) = &ty else {
            let message = format!("{ty} cannot be instantiated");
            let hint = "instances are of externs and controls; variables are `Type name;`";
            return Err(self.error(instance.ty.span, message, hint));
        };
        if let Some(Type::Param(_)) = types.first() {
            let message = format!("`{}` needs type arguments", declared.name);
            let hint = format!("such as `{}<bit<16>>(...)`", declared.name);
            return Err(self.error(instance.ty.span, message, hint));
        }
        let (declared, types) = (Rc::clone(declared), types.clone());
        let args = self.constructor(&declared, &types, &instance.args, instance.ty.span)?;
        let kind = self.instance_kind(&declared, &types, args, &path, instance)?;
        let made = Instance { ty, path, kind, span: instance.name.span };
        self.declare(&instance.name, Symbol::Instance(Rc::new(made)))
    }

    /// `Register` and `Counter` are the machine's own; what else there is, the architecture supplies.
    fn instance_kind(
        &mut self,
        declared: &Extern,
        types: &[Type],
        args: Vec<u128>,
        path: &str,
        instance: &AstInstance,
    ) -> Checked<InstanceKind> {
        let place = self.place(instance.name.span);
        let size = || args.first().and_then(|&n| u32::try_from(n).ok());
        match (&*declared.name, types) {
            ("Register", [of]) => {
                let (Some(width), Some(size)) = (of.width(), size()) else {
                    let hint = "write one register for each field";
                    let what = format!("registers of {of}");
                    return Err(self.refuse(instance.ty.span, &what, hint));
                };
                let id = RegisterId(self.program.registers.len() as u32);
                let name = path.to_owned();
                self.program.registers.push(Register { name, width, size, place });
                Ok(InstanceKind::Register(id))
            }
            ("Counter", []) => {
                let id = CounterId(self.program.counters.len() as u32);
                let (name, size) = (path.to_owned(), size().unwrap_or(0));
                self.program.counters.push(Counter { name, size, place });
                Ok(InstanceKind::Counter(id))
            }
            _ => Ok(InstanceKind::Extern(args)),
        }
    }

    /// Check and evaluate the arguments of an extern's constructor.
    fn constructor(
        &mut self,
        declared: &Extern,
        types: &[Type],
        args: &[Arg],
        span: Span,
    ) -> Checked<Vec<u128>> {
        let constructors = declared.methods.iter().filter(|m| m.returns.is_none());
        let found = constructors.clone().find(|m| m.params.len() == args.len());
        let Some(constructor) = found.cloned() else {
            let counts: Vec<String> = constructors.map(|m| m.params.len().to_string()).collect();
            let message = format!("`{}` is not made of {}", declared.name, arguments(args.len()));
            let hint = if counts.is_empty() {
                "it has no constructor: the architecture makes it".to_owned()
            } else {
                format!("it takes {}", counts.join(" or "))
            };
            return Err(self.error(span, message, hint));
        };
        let bound: Bindings =
            declared.type_params.iter().cloned().zip(types.iter().cloned()).collect();
        let mut values = Vec::new();
        for (param, arg) in constructor.params.iter().zip(args) {
            let wanted = self.with_types(&bound, |c| c.type_of(&param.ty))?.substitute(&bound);
            let given = self.expr(&arg.value)?;
            let given = self.convert(given, &wanted)?;
            let value = self.known(&given, "an argument of a constructor")?;
            let width = wanted.width().unwrap_or(ir::MAX_WIDTH);
            values.push(as_bits(&value, width));
        }
        Ok(values)
    }
}
