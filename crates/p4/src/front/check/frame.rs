//! The pipeline that is being built: its slots, and the block that statements go into.

use std::rc::Rc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::super::limits::{MAX_ALL_SLOTS, MAX_SLOTS};
use super::super::source::Span;
use super::scope::{Instance, Lowered};
use super::types::Type;
use super::value::{Stack, Storage};
use super::{Checked, Checker};
use crate::ir::{self, Header, HeaderId, Pipeline, Slot, SlotId};

/// A pipeline in the making.
#[derive(Default)]
pub(super) struct Frame {
    pub(super) pipeline: Pipeline,
    /// Where statements go.
    pub(super) block: ir::Block,
    /// Storage of the blocks' common parameters, by the architecture's names for them.
    pub(super) shared: Vec<(Rc<str>, Type, Storage)>,
    /// Actions of the top level that this pipeline uses.
    pub(super) actions: Vec<Rc<Lowered>>,
    /// How often a name of a slot has been given.
    names: HashMap<String, u32, FxBuildHasher>,
    /// Names of the controls being inlined: `outer.inner.`.
    pub(super) path: String,
    /// How far each header stack is filled, while a parser is walked.
    pub(super) filled: Vec<u32>,
    /// Whether the state that is being walked extracts beyond the end of a stack.
    pub(super) overflow: bool,
    /// Where the result of the next call may go.
    pub(super) into: Option<(Type, Storage)>,
    /// Names of the actions that are being lowered.
    pub(super) lowering: Vec<Rc<str>>,
    /// How deep actions are called in what is being lowered.
    pub(super) called: usize,
    /// Whether what is being lowered may `exit`.
    pub(super) exits: bool,
    /// Instances of externs by their paths: a control that is applied twice has each of them once.
    pub(super) instances: HashMap<String, Rc<Instance>, FxBuildHasher>,
    /// Indices of the pipeline's tables.
    pub(super) tables: Vec<TableActions>,
}

/// A lowered table and the names of its actions.
pub(super) struct TableActions {
    pub(super) id: ir::TableId,
    pub(super) names: Vec<Rc<str>>,
    /// Whether one of them may `exit`.
    pub(super) exits: bool,
    /// Statements of all of them.
    pub(super) statements: usize,
}

impl Frame {
    /// A name that nothing has yet.
    pub(super) fn fresh(&mut self, name: &str) -> String {
        self.unique(&format!("{name}#")).replace('#', "")
    }

    /// A name that no slot has yet.
    fn unique(&mut self, name: &str) -> String {
        let count = self.names.entry(name.to_owned()).or_insert(0);
        *count += 1;
        let number = *count;
        if number == 1 {
            return name.to_owned();
        }
        // No name of a program contains `$`, so this one is new.
        format!("{name}${number}")
    }
}

impl Checker<'_> {
    /// A new slot.
    pub(super) fn slot(&mut self, name: &str, width: u16, span: Span) -> SlotId {
        let name = self.frame.unique(name);
        let place = self.place(span);
        let id = SlotId(self.frame.pipeline.slots.len() as u32);
        self.frame.pipeline.slots.push(Slot { name, width, place });
        id
    }

    /// A slot for an intermediate result.
    pub(super) fn temporary(&mut self, width: u16, span: Span) -> SlotId {
        self.slot("$temp", width, span)
    }

    /// Slots for a variable.
    pub(super) fn storage(&mut self, name: &str, ty: &Type, span: Span) -> Checked<Storage> {
        let total = self.frame.pipeline.slots.len();
        if ty.slots() > MAX_SLOTS || total > MAX_ALL_SLOTS {
            let message = format!("`{name}` is too large: {ty} has too many fields");
            return Err(self.error(span, message, "use fewer or smaller structs"));
        }
        match ty {
            Type::Header(record) => {
                let mut fields = Vec::new();
                let (mut layout, mut bits) = (Vec::new(), 0);
                let valid = self.slot(&format!("{name}.$valid"), 1, span);
                for field in &record.fields {
                    let width = field.ty.width().unwrap_or(1);
                    let slot = self.slot(&format!("{name}.{}", field.name), width, field.span);
                    layout.push(ir::Field { slot, offset: bits });
                    bits += u32::from(width);
                    fields.push(slot);
                }
                let id = HeaderId(self.frame.pipeline.headers.len() as u32);
                let header = Header { name: name.to_owned(), valid, fields: layout, bits };
                self.frame.pipeline.headers.push(header);
                Ok(Storage::Header { id, valid, fields })
            }
            Type::Struct(record) => {
                let mut parts = Vec::new();
                for field in &record.fields {
                    parts.push(self.storage(
                        &format!("{name}.{}", field.name),
                        &field.ty,
                        field.span,
                    )?);
                }
                Ok(Storage::Struct(parts))
            }
            Type::Stack(record, size) => {
                let mut elements = Vec::new();
                let ty = Type::Header(Rc::clone(record));
                for n in 0..*size {
                    elements.push(self.storage(&format!("{name}[{n}]"), &ty, span)?);
                }
                let number = self.frame.filled.len();
                self.frame.filled.push(0);
                Ok(Storage::Stack(Rc::new(Stack { elements, number })))
            }
            _ => match ty.width() {
                Some(width) => Ok(Storage::Scalar(self.slot(name, width, span))),
                None => {
                    let hint = "variables are numbers, bools, enums, headers and structs";
                    Err(self.error(span, format!("no variable can have the type {ty}"), hint))
                }
            },
        }
    }

    /// The full name of something in the control that is being walked.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}{name}", self.frame.path)
    }
}
