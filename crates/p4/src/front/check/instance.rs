//! Instances of externs and controls (section 11.3).

use std::rc::Rc;

use super::super::ast::{Arg, Instance as AstInstance, TypeKind};
use super::super::limits::MAX_CELLS;
use super::super::source::Span;
use super::call::arguments;
use super::scope::{Instance, InstanceKind, Symbol};
use super::types::{Bindings, Extern, Type};
use super::value::as_bits;
use super::{Checked, Checker, Within};
use crate::ir::{self, Counter, CounterId, Register, RegisterId};

impl Checker<'_> {
    /// An instance of an extern or a control.
    pub(super) fn instance(&mut self, instance: &AstInstance) -> Checked<()> {
        let path = self.path(&instance.name.text);
        if let TypeKind::Name(name) = &instance.ty.kind
            && let Some(Symbol::Control(control)) = self.scopes.find(&name.text)
        {
            let control = Rc::clone(control);
            if self.within == Within::Parser {
                let message = "an instance of a control in a parser";
                return Err(self.error(instance.name.span, message, "controls apply controls"));
            }
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
        if let Some(known) = self.frame.instances.get(&path) {
            let known = Rc::clone(known);
            return self.declare(&instance.name, Symbol::Instance(known));
        }
        let kind = self.instance_kind(&declared, &types, args, &path, instance)?;
        let made = Rc::new(Instance { ty, path: path.clone(), kind, span: instance.name.span });
        self.frame.instances.insert(path, Rc::clone(&made));
        self.declare(&instance.name, Symbol::Instance(made))
    }

    /// `Register` and `Counter` are the machine's own; what else there is, the architecture
    /// supplies.
    fn instance_kind(
        &mut self,
        declared: &Extern,
        types: &[Type],
        args: Vec<u128>,
        path: &str,
        instance: &AstInstance,
    ) -> Checked<InstanceKind> {
        let place = self.place(instance.name.span);
        match (&*declared.name, types) {
            ("Register", [of]) => {
                let Some(width) = of.width() else {
                    let hint = "write one register for each field";
                    let what = format!("registers of {of}");
                    return Err(self.refuse(instance.ty.span, &what, hint));
                };
                let size = self.cells(&args, instance)?;
                let id = RegisterId(self.program.registers.len() as u32);
                let name = path.to_owned();
                self.program.registers.push(Register { name, width, size, place });
                Ok(InstanceKind::Register(id))
            }
            ("Counter", []) => {
                let id = CounterId(self.program.counters.len() as u32);
                let (name, size) = (path.to_owned(), self.cells(&args, instance)?);
                self.program.counters.push(Counter { name, size, place });
                Ok(InstanceKind::Counter(id))
            }
            _ => Ok(InstanceKind::Extern(args)),
        }
    }

    /// The size of a register or counter. Every host and port has all cells of its own.
    fn cells(&mut self, args: &[u128], instance: &AstInstance) -> Checked<u32> {
        let sizes = self.program.registers.iter().map(|r| r.size);
        let sizes = sizes.chain(self.program.counters.iter().map(|c| c.size));
        let before: u128 = sizes.map(u128::from).sum();
        let size = args.first().copied().unwrap_or(0);
        let fits = before.saturating_add(size) <= MAX_CELLS;
        match u32::try_from(size).ok().filter(|_| fits) {
            Some(size) => Ok(size),
            None => {
                let what = format!("{size} cells in `{}`", instance.name);
                let instead = format!("registers and counters have {MAX_CELLS} cells in all");
                Err(self.refuse(instance.ty.span, &what, instead))
            }
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
        let args = self.ordered(&constructor.params, args, &declared.name, span)?;
        let bound: Bindings =
            declared.type_params.iter().cloned().zip(types.iter().cloned()).collect();
        let mut values = Vec::new();
        for (param, arg) in constructor.params.iter().zip(args) {
            let wanted = self.with_types(&bound, |c| c.type_of(&param.ty))?.substitute(&bound);
            let given = self.expr(arg)?;
            let given = self.convert(given, &wanted)?;
            let value = self.known(&given, "an argument of a constructor")?;
            let width = wanted.width().unwrap_or(ir::MAX_WIDTH);
            values.push(as_bits(&value, width));
        }
        Ok(values)
    }
}
