//! What parsers and controls have in common: parameters and local declarations.

use std::rc::Rc;

use super::super::ast::{Direction, Local, Param};
use super::super::diagnostic::Reported;
use super::scope::Symbol;
use super::types::Type;
use super::value::Storage;
use super::{Checked, Checker, Within};

impl Checker<'_> {
    /// The types of a block's parameters.
    pub(super) fn block_params(&mut self, params: &[Param]) -> Checked<Vec<Type>> {
        self.distinct_names(params)?;
        params.iter().map(|p| self.type_of(&p.ty)).collect()
    }

    /// Give a parameter its storage; `None` is the packet.
    pub(super) fn bind(
        &mut self,
        param: &Param,
        ty: &Type,
        storage: Option<Storage>,
    ) -> Checked<()> {
        let symbol = match storage {
            None => Symbol::Packet,
            Some(storage) => {
                let readonly = match param.direction {
                    Direction::In => Some("an `in` parameter"),
                    Direction::None => Some("a parameter without direction"),
                    Direction::Out | Direction::InOut => None,
                };
                Symbol::Variable { ty: ty.clone(), storage, readonly }
            }
        };
        self.declare(&param.name, symbol)
    }

    /// Declarations before `apply` or the states. A mistake in one does not hide those in others.
    pub(super) fn locals(&mut self, locals: &[Local]) -> Checked<()> {
        let mut result = Ok(());
        for local in locals {
            if self.within == Within::Deparser && !matches!(local, Local::Constant(_)) {
                let instead = "declare it in the control before; a deparser only emits";
                let span = local.name().span;
                result = Err(self.refuse(span, "this declaration in a deparser", instead));
            }
            let done: Result<(), Reported> = match local {
                Local::Constant(constant) => self.constant(constant, false),
                Local::Variable(variable) => self.variable(variable),
                Local::Instance(instance) => self.instance(instance),
                Local::Action(action) => self.local_action(action),
                Local::Table(table) => self.table(&Rc::clone(table)),
            };
            if let Err(reported) = self.or_broken(local.name(), done) {
                result = Err(reported);
            }
        }
        result
    }
}
