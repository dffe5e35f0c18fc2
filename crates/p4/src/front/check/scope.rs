//! What names stand for, and where (section 6.9).

use std::rc::Rc;

use super::super::ast::{Action, BlockType, Control, Parser, Prototype};
use super::super::source::Span;
use super::types::Type;
use super::value::{Storage, Value};
use crate::ir::{ActionId, CounterId, RegisterId, TableId};

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Symbol {
    /// A number, or a struct of them.
    Constant {
        ty: Type,
        value: Value,
    },
    Type(Type),
    MatchKind,
    Function(Rc<Prototype>),
    /// An action; lowered once for the pipeline, or for the control that it is declared in.
    Action(Rc<Action>),
    Parser(Rc<Parser>),
    Control(Rc<Control>),
    BlockType(Rc<BlockType>),
    Instance(Rc<Instance>),
    /// A variable or parameter, and why it cannot be assigned.
    Variable {
        ty: Type,
        storage: Storage,
        readonly: Option<&'static str>,
    },
    Packet,
    /// A table, and its name as written.
    Table(TableId, Rc<str>),
    /// What has been declared wrongly, which has been reported: uses of it are not.
    Broken,
    /// A lowered action.
    Lowered(Rc<Lowered>),
}

/// An action in the IR, and how it is called.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) action: Rc<Action>,
    pub(super) id: ActionId,
    pub(super) params: Vec<LoweredParam>,
    /// Whether it may `exit`.
    pub(super) exits: bool,
    /// How deep the actions that it calls call one another; 0: it calls none.
    pub(super) depth: usize,
    /// How many statements it has, with those of all actions that it calls.
    pub(super) statements: usize,
}

#[derive(Debug, Clone)]
pub(super) struct LoweredParam {
    pub(super) ty: Type,
    pub(super) storage: Storage,
}

/// An instance of an extern, or of a control.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) ty: Type,
    /// With the controls around it.
    pub(super) path: String,
    pub(super) kind: InstanceKind,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) enum InstanceKind {
    Register(RegisterId),
    Counter(CounterId),
    /// Constructor arguments.
    Extern(Vec<u128>),
    Control(Rc<Control>),
}

impl Symbol {
    /// How messages call it.
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Self::Constant { .. } => "a constant",
            Self::Type(_) => "a type",
            Self::MatchKind => "a match kind",
            Self::Function(_) => "a function",
            Self::Action(_) | Self::Lowered(_) => "an action",
            Self::Parser(_) => "a parser",
            Self::Control(_) => "a control",
            Self::BlockType(_) => "the type of a block",
            Self::Instance(_) => "an instance",
            Self::Variable { .. } => "a variable",
            Self::Packet => "the packet",
            Self::Broken => "declared wrongly",
            Self::Table(..) => "a table",
        }
    }
}

struct Entry {
    name: Rc<str>,
    symbol: Symbol,
    span: Span,
}

/// Scopes in one another; the first is the top level.
#[derive(Default)]
pub(super) struct Scopes {
    all: Vec<Vec<Entry>>,
    /// How many names of the top level are known: a block that is walked after others were declared
    /// sees those before it only.
    horizon: Option<usize>,
}

impl Scopes {
    pub(super) fn open(&mut self) {
        self.all.push(Vec::new());
    }

    pub(super) fn close(&mut self) {
        self.all.pop();
    }

    /// Declare a name; `Err` says where it is declared in the same scope already.
    pub(super) fn declare(
        &mut self,
        name: &Rc<str>,
        symbol: Symbol,
        span: Span,
    ) -> Result<(), Span> {
        let Some(scope) = self.all.last_mut() else { return Ok(()) };
        if let Some(entry) = scope.iter().find(|e| e.name == *name) {
            return Err(entry.span);
        }
        scope.push(Entry { name: Rc::clone(name), symbol, span });
        Ok(())
    }

    pub(super) fn find(&self, name: &str) -> Option<&Symbol> {
        let inner = self.all.iter().skip(1).rev().flatten().find(|e| *e.name == *name);
        inner.map(|e| &e.symbol).or_else(|| self.find_global(name))
    }

    pub(super) fn find_global(&self, name: &str) -> Option<&Symbol> {
        self.visible().iter().find(|e| *e.name == *name).map(|e| &e.symbol)
    }

    /// Names of the top level that are known here.
    fn visible(&self) -> &[Entry] {
        let all = self.all.first().map_or(&[][..], Vec::as_slice);
        &all[..self.horizon.map_or(all.len(), |n| n.min(all.len()))]
    }

    /// Whether the name is declared at the top level, but further down.
    pub(super) fn is_later(&self, name: &str) -> bool {
        let mut all = self.all.iter().take(1).flatten();
        self.find_global(name).is_none() && all.any(|e| *e.name == *name)
    }

    /// All names that are known here and stand for something of that kind.
    pub(super) fn names(&self, wanted: impl Fn(&Symbol) -> bool) -> Vec<&str> {
        let inner = self.all.iter().skip(1).rev().flatten();
        inner.chain(self.visible()).filter(|e| wanted(&e.symbol)).map(|e| &*e.name).collect()
    }

    /// How many scopes are open.
    pub(super) fn depth(&self) -> usize {
        self.all.len()
    }

    /// Hide the scopes within the first `depth`, until they are shown again.
    pub(super) fn hide(&mut self, depth: usize) -> Hidden {
        Hidden(self.all.split_off(depth.min(self.all.len())))
    }

    pub(super) fn show(&mut self, hidden: Hidden) {
        self.all.extend(hidden.0);
    }

    /// Know only what stands before `block` at the top level, for a while: `restore` brings the
    /// rest back.
    pub(super) fn only_before(&mut self, block: &str) -> ScopesApart {
        let at = self.all.first().and_then(|all| all.iter().position(|e| *e.name == *block));
        let horizon = std::mem::replace(&mut self.horizon, at);
        ScopesApart { inner: self.all.split_off(1.min(self.all.len())), horizon }
    }

    pub(super) fn restore(&mut self, apart: ScopesApart) {
        self.all.truncate(1);
        self.all.extend(apart.inner);
        self.horizon = apart.horizon;
    }
}

/// Scopes that are hidden.
pub(super) struct Hidden(Vec<Vec<Entry>>);

/// Scopes that are not looked at for a while.
pub(super) struct ScopesApart {
    inner: Vec<Vec<Entry>>,
    horizon: Option<usize>,
}
