//! The instance `main` of the architecture's package: its blocks become pipelines.
//!
//! A parser begins a pipeline; a control joins the parser before it, or begins one; a deparser (a
//! control that is given the packet to write) ends it. Blocks of a pipeline share the parameters
//! that the architecture calls by the same name.

use std::rc::Rc;

use super::super::ast::{
    BlockKind, BlockType, Control, Declaration, Direction, Expr, ExprKind, Instance as AstInstance,
    Name, Param, Parser, TypeKind,
};
use super::super::diagnostic::{Reported, did_you_mean};
use super::super::source::Span;
use super::call::type_parameters;
use super::frame::Frame;
use super::scope::Symbol;
use super::types::{Bindings, Type};
use super::value::Storage;
use super::{Checked, Checker, Within};
use crate::ir::{self, Meta};

/// What the program puts into a place of the package.
enum Block {
    Parser(Rc<Parser>),
    Control(Rc<Control>),
}

impl Block {
    fn params(&self) -> &[Param] {
        match self {
            Self::Parser(p) => &p.params,
            Self::Control(c) => &c.params,
        }
    }

    fn name(&self) -> &Name {
        match self {
            Self::Parser(p) => &p.name,
            Self::Control(c) => &c.name,
        }
    }
}

/// A block and the declared type that it has to have.
struct Placed {
    block: Block,
    declared: Rc<BlockType>,
    /// The package's name for it.
    name: Rc<str>,
}

impl Checker<'_> {
    pub(super) fn main(&mut self, instance: &AstInstance) -> Checked<()> {
        let span = instance.ty.span;
        let (package, mut bound) = self.package(instance)?;
        if !self.program.architecture.is_empty() {
            return Err(self.error(instance.name.span, "a second `main`", "remove one"));
        }
        self.program.architecture = package.name.text.to_string();
        let args = self.ordered(&package.params, &instance.args, &package.name.text, span)?;
        let mut blocks = Vec::new();
        for (param, arg) in package.params.iter().zip(args) {
            blocks.push(self.placed(&package, param, arg, &mut bound)?);
        }
        let mut rest = &blocks[..];
        while !rest.is_empty() {
            let count = self.pipeline_length(rest);
            let (these, others) = rest.split_at(count);
            rest = others;
            // Mistakes in one pipeline do not hide those in the next.
            let _ = self.pipeline(these);
        }
        Ok(())
    }

    /// The package of `main`, and what stands for its type parameters as far as written.
    fn package(&mut self, instance: &AstInstance) -> Checked<(Rc<BlockType>, Bindings)> {
        let (TypeKind::Name(name) | TypeKind::Specialized(name, _)) = &instance.ty.kind else {
            return Err(self.error(instance.ty.span, "`main` is a package", ""));
        };
        let args = match &instance.ty.kind {
            TypeKind::Specialized(_, args) => {
                args.iter().map(|a| self.type_of(a)).collect::<Checked<Vec<_>>>()?
            }
            _ => Vec::new(),
        };
        match self.scopes.find(&name.text) {
            Some(Symbol::BlockType(block)) if block.kind == BlockKind::Package => {
                let wanted = block.type_params.len();
                if !args.is_empty() && args.len() != wanted {
                    let given = args.len();
                    let message = format!("`{name}` has {}, not {given}", type_parameters(wanted));
                    return Err(self.error(instance.ty.span, message, "give one type for each"));
                }
                let names = block.type_params.iter().map(|p| Rc::clone(&p.text));
                Ok((Rc::clone(block), names.zip(args).collect()))
            }
            Some(_) => {
                let message = format!("`{name}` is no package");
                Err(self.error(name.span, message, "`main` is an instance of a package"))
            }
            None => {
                let known = self.scopes.names(|s| matches!(s, Symbol::BlockType(_)));
                let otherwise = "include the architecture: `#include <nano.p4>`";
                let hint = did_you_mean(&name.text, known, otherwise);
                Err(self.error(name.span, format!("unknown package `{name}`"), hint))
            }
        }
    }

    /// One argument of the package, checked against the declared type.
    fn placed(
        &mut self,
        package: &BlockType,
        param: &Param,
        arg: &Expr,
        bound: &mut Bindings,
    ) -> Checked<Placed> {
        let names: Bindings =
            package.type_params.iter().map(|p| (Rc::clone(&p.text), Type::Void)).collect();
        let wanted = self.with_types(&names, |c| c.type_of(&param.ty))?;
        let Type::Block(declared, args) = wanted else {
            let message = format!("the package's parameter `{}` is no block", param.name);
            return Err(self.error(param.name.span, message, ""));
        };
        let block = self.block_of(arg)?;
        let kind = match block {
            Block::Parser(_) => BlockKind::Parser,
            Block::Control(_) => BlockKind::Control,
        };
        if kind != declared.kind {
            let message = format!("`{}` is not a {}", block.name(), declared.name);
            let hint = "parsers and controls stand where the package wants them";
            return Err(self.error(arg.span, message, hint));
        }
        self.matches(&block, &declared, &args, bound)?;
        Ok(Placed { block, declared, name: Rc::clone(&param.name.text) })
    }

    /// `MyParser()`.
    fn block_of(&mut self, arg: &Expr) -> Checked<Block> {
        if let ExprKind::Call { callee, args, .. } = &arg.kind
            && let ExprKind::Name { name, .. } = &callee.kind
        {
            match self.scopes.find(&name.text).cloned() {
                Some(Symbol::Parser(parser)) if args.is_empty() => {
                    return Ok(Block::Parser(parser));
                }
                Some(Symbol::Control(control)) if args.is_empty() => {
                    return Ok(Block::Control(control));
                }
                Some(Symbol::Broken) => return Err(Reported),
                None => return Err(self.unknown(name)),
                _ => {}
            }
        }
        let hint = "a package is given new parsers and controls: `MyParser()`";
        Err(self.error(arg.span, "this is no parser or control", hint))
    }

    /// Whether the block's parameters are those of its declared type.
    fn matches(
        &mut self,
        block: &Block,
        declared: &BlockType,
        args: &[Type],
        bound: &mut Bindings,
    ) -> Checked<()> {
        let name = block.name();
        let (mine, wanted) = (block.params(), &declared.params);
        if mine.len() != wanted.len() {
            let shape: Vec<&str> = wanted.iter().map(|p| &*p.name.text).collect();
            let hint = format!("{} has {}", declared.name, shape.join(", "));
            let message = format!("`{name}` has {} parameters, not {}", mine.len(), wanted.len());
            return Err(self.error(name.span, message, hint));
        }
        let of = |c: &mut Self, p: &Param| c.type_of(&p.ty);
        let params: Bindings = declared
            .type_params
            .iter()
            .map(|p| Rc::clone(&p.text))
            .zip(args.iter().cloned())
            .collect();
        for (mine, wanted) in mine.iter().zip(wanted) {
            let declared_type = self.with_types(&params, |c| of(c, wanted))?.substitute(&params);
            let ty = of(self, mine)?;
            if mine.direction != wanted.direction {
                let message =
                    format!("`{}` has another direction than in {}", mine.name, declared.name);
                let hint = format!(
                    "write `{}{} {}`",
                    word(wanted.direction),
                    written_type(&ty),
                    mine.name
                );
                return Err(self.error(mine.name.span, message, hint));
            }
            if !ty.unify(&declared_type, bound) {
                let wanted = declared_type.substitute(bound);
                let message = format!("`{}` has the type {ty}, not {wanted}", mine.name);
                let hint = "the blocks in `main` have to agree on their types";
                return Err(self.error(mine.ty.span, message, hint));
            }
        }
        Ok(())
    }

    fn is_deparser(&self, placed: &Placed) -> bool {
        let writes =
            |p: &Param| matches!(&p.ty.kind, TypeKind::Name(n) if &*n.text == "packet_out");
        placed.declared.params.iter().any(writes)
    }

    /// How many of the blocks make the next pipeline.
    fn pipeline_length(&self, blocks: &[Placed]) -> usize {
        let mut control = false;
        for (n, placed) in blocks.iter().enumerate() {
            match placed.block {
                Block::Parser(_) if n > 0 => return n,
                Block::Parser(_) => {}
                Block::Control(_) if self.is_deparser(placed) => return n + 1,
                Block::Control(_) if control => return n,
                Block::Control(_) => control = true,
            }
        }
        blocks.len()
    }

    fn pipeline(&mut self, blocks: &[Placed]) -> Checked<()> {
        let main = blocks.iter().find(|b| matches!(b.block, Block::Control(_)));
        let name = main.or(blocks.first()).map(|b| b.name.to_string()).unwrap_or_default();
        self.frame = Frame::default();
        self.frame.pipeline.name = name;
        let mut result = Ok(());
        for placed in blocks {
            if let Err(reported) = self.walk_block(placed) {
                result = Err(reported);
            }
        }
        let frame = std::mem::take(&mut self.frame);
        self.program.pipelines.push(frame.pipeline);
        result
    }

    /// Walk one block; its parameters are those of the pipeline.
    fn walk_block(&mut self, placed: &Placed) -> Checked<()> {
        let within = match placed.block {
            Block::Parser(_) => Within::Parser,
            Block::Control(_) if self.is_deparser(placed) => Within::Deparser,
            Block::Control(_) => Within::Control,
        };
        let name = placed.block.name().clone();
        self.frame.path = format!("{name}.");
        let apart = self.scopes.only_before(&name.text);
        self.scopes.open();
        let around = std::mem::replace(&mut self.within, within);
        let done = self.collect(|c| c.block_inner(placed));
        self.within = around;
        self.scopes.close();
        self.scopes.restore(apart);
        let (parser, block) = done?;
        match within {
            Within::Parser => self.frame.pipeline.parser = parser,
            Within::Control => self.frame.pipeline.control = block,
            _ => {}
        }
        Ok(())
    }

    fn block_inner(&mut self, placed: &Placed) -> Checked<Option<ir::Parser>> {
        let resolved = self.block_params(placed.block.params())?;
        for ((param, ty), declared) in
            placed.block.params().iter().zip(resolved).zip(&placed.declared.params)
        {
            let storage = match &ty {
                Type::Extern(..) => None,
                ty => Some(self.shared(placed, param, declared, ty)?),
            };
            if let (Some(storage), Direction::Out) = (&storage, param.direction) {
                self.invalidate(&storage.clone(), param.name.span)?;
            }
            self.bind(param, &ty, storage)?;
        }
        match &placed.block {
            Block::Parser(parser) => self.parser_body(parser).map(Some),
            Block::Control(control) => self.control_body(control).map(|()| None),
        }
    }

    /// The storage of a parameter: that of the blocks before, if they have one of that name.
    fn shared(
        &mut self,
        placed: &Placed,
        param: &Param,
        declared: &Param,
        ty: &Type,
    ) -> Checked<Storage> {
        let name = &declared.name.text;
        let own = matches!(&declared.ty.kind, TypeKind::Name(t)
            if placed.declared.type_params.iter().any(|p| p.text == t.text));
        let known = self.frame.shared.iter().find(|(n, of, _)| n == name && of == ty);
        let storage = match known {
            Some((_, _, storage)) => storage.clone(),
            None => {
                let storage = self.storage(&param.name.text, ty, param.name.span)?;
                self.frame.shared.push((Rc::clone(name), ty.clone(), storage.clone()));
                storage
            }
        };
        if !own {
            self.meta(name, ty, &storage, param.direction);
        }
        Ok(storage)
    }

    /// The members of a parameter whose type the architecture fixes.
    fn meta(&mut self, name: &str, ty: &Type, storage: &Storage, direction: Direction) {
        match (ty, storage) {
            (Type::Struct(record), Storage::Struct(parts)) => {
                for (field, part) in record.fields.iter().zip(parts) {
                    self.meta(&format!("{name}.{}", field.name), &field.ty, part, direction);
                }
            }
            (Type::Header(record), Storage::Header { valid, fields, .. }) => {
                self.meta_slot(format!("{name}.$valid"), *valid, direction);
                for (field, slot) in record.fields.iter().zip(fields) {
                    self.meta_slot(format!("{name}.{}", field.name), *slot, direction);
                }
            }
            (_, Storage::Scalar(slot)) => self.meta_slot(name.to_owned(), *slot, direction),
            _ => {}
        }
    }

    /// If several blocks have the parameter, together they read what the first reads and write what
    /// the last writes.
    fn meta_slot(&mut self, name: String, slot: ir::SlotId, direction: Direction) {
        let direction = match direction {
            Direction::Out => ir::Direction::Out,
            Direction::InOut => ir::Direction::InOut,
            Direction::In | Direction::None => ir::Direction::In,
        };
        let metas = &mut self.frame.pipeline.meta;
        match metas.iter_mut().find(|m| m.slot == slot) {
            Some(known) => {
                known.direction = match (known.direction, direction) {
                    (ir::Direction::In, ir::Direction::In) => ir::Direction::In,
                    (ir::Direction::Out, _) => ir::Direction::Out,
                    _ => ir::Direction::InOut,
                }
            }
            None => metas.push(Meta { name, slot, direction }),
        }
    }

    /// Walk the blocks and actions that nothing uses, for their mistakes only. Without `main`, that
    /// is a mistake, too.
    pub(super) fn unused_blocks(&mut self, declarations: &[Declaration]) {
        if self.messages.full() {
            return;
        }
        let program = self.program.clone();
        for declaration in declarations {
            let (block, name) = match declaration {
                Declaration::Parser(p) => (Block::Parser(Rc::clone(p)), &p.name),
                Declaration::Control(c) => (Block::Control(Rc::clone(c)), &c.name),
                Declaration::Action(action) => {
                    if !self.used.contains(&action.name.text) {
                        self.frame = Frame::default();
                        let _ = self.global_action(action);
                    }
                    continue;
                }
                _ => continue,
            };
            if !self.used.contains(&name.text) {
                let kind = match block {
                    Block::Parser(_) => BlockKind::Parser,
                    Block::Control(_) => BlockKind::Control,
                };
                let params = block.params().to_vec();
                let declared =
                    BlockType { kind, name: name.clone(), type_params: Vec::new(), params };
                let placed = Placed { block, declared: Rc::new(declared), name: "".into() };
                let _ = self.pipeline(&[placed]);
            }
        }
        self.program = program;
        if self.program.architecture.is_empty() && !self.messages.failed() {
            let span = Span { file: 0, start: 0, end: 0 };
            let hint =
                "a program ends with its package, such as `NanoNic(P(), I(), E(), D()) main;`";
            self.error(span, "there is no `main`", hint);
        }
    }
}

/// A direction as a program writes it, with a space behind it.
fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "in ",
        Direction::Out => "out ",
        Direction::InOut => "inout ",
        Direction::None => "",
    }
}

/// A type as a program writes it.
fn written_type(ty: &Type) -> String {
    match ty {
        Type::Header(r) | Type::Struct(r) => r.name.to_string(),
        other => other.to_string(),
    }
}
