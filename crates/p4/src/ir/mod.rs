//! The intermediate representation of a P4 program: typed, resolved, every width known.
//!
//! A [`Program`] has one or more [`Pipeline`]s: parser, control, deparser, each optional, in that
//! order. A pipeline works on a frame of [`Slot`]s. Whatever a P4 program can name (fields of
//! headers, valid bits, members of structs, parameters, local variables) is a slot, so structs are
//! gone, and copies into and out of parameters are assignments. Slots and expressions have a width
//! of 1 to 128 bits; a bool is one bit; an `int<W>` is its two's complement, and operators that
//! treat it differently say [`Sign::Signed`]. Expressions have no effects: calls are statements.
//!
//! What P4-16 (v1.2.4) leaves unspecified is fixed here, so that all back ends agree:
//!
//! - Every slot is 0 when a pipeline begins, except those that its caller sets.
//! - [`StmtKind::SetValid`] with `valid: false` makes the header's fields 0. So a field of an
//!   invalid header reads as 0, unless the program itself has written it meanwhile.
//! - Reading a register beyond its end gives 0, writing there does nothing, nor does counting.
//!
//! Nothing recurs (actions call only actions before them) and nothing loops (the front end unrolls
//! the loops of parsers), so a pipeline is a [`circuit`], whose [`Schedule`] says what of it
//! happens at once.

/// Numbers of things, each a type of its own; `$of` may make one of any number.
macro_rules! ids {
    ($of:vis, $($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name($of u32);

        impl $name {
            /// As an index.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

mod calls;
mod check;
pub mod circuit;
mod display;
#[cfg(test)]
pub(crate) mod example;
mod hazards;

pub use check::{EntryFault, Fault, check, check_choice, check_entry, prefix_length};
pub use circuit::{Circuit, Port, Ready, Schedule, Unit};
pub use display::called;
pub use hazards::{Access, End, Hardware, Hazard, Memory, PACKET_CYCLES, Spacing};

/// Widest value, bits.
pub const MAX_WIDTH: u16 = 128;

ids! {
    pub,
    /// Index into [`Program::pipelines`].
    PipelineId;
    /// Index into [`Pipeline::slots`].
    SlotId;
    /// Index into [`Pipeline::headers`].
    HeaderId;
    /// Index into [`Pipeline::actions`].
    ActionId;
    /// Index into [`Parser::states`].
    StateId;
    /// Index into [`Program::tables`].
    TableId;
    /// Index into [`Program::registers`].
    RegisterId;
    /// Index into [`Program::counters`].
    CounterId;
    /// Index into [`Program::externs`].
    ExternId;
    /// Index into [`Program::errors`].
    ErrorId;
}

/// `error.NoError`, the first of [`Program::errors`].
pub const NO_ERROR: ErrorId = ErrorId(0);
/// `error.PacketTooShort`: extract past the end of the packet (P4-16 section 12.8.1).
pub const PACKET_TOO_SHORT: ErrorId = ErrorId(1);
/// `error.NoMatch`: a select without a matching case (P4-16 section 12.6).
pub const NO_MATCH: ErrorId = ErrorId(2);

/// Names of the first errors of every program, in the order that `core.p4` declares them.
pub const CORE_ERRORS: [&str; 3] = ["NoError", "PacketTooShort", "NoMatch"];

/// Where something stands in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Index into [`Program::files`].
    pub file: u16,
    /// From 1; 0: nowhere.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// A whole program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Name of the package instance's type, for instance `Nano`.
    pub architecture: String,
    /// Names of the source files.
    pub files: Vec<String>,
    /// All error codes, [`CORE_ERRORS`] first. A value of type `error` is an index, 8 bits wide.
    pub errors: Vec<String>,
    /// In the order of the package's arguments.
    pub pipelines: Vec<Pipeline>,
    /// Tables of all pipelines.
    pub tables: Vec<Table>,
    /// Registers of all pipelines, which may share them.
    pub registers: Vec<Register>,
    /// Counters of all pipelines, which may share them.
    pub counters: Vec<Counter>,
    /// What programs may call and whoever runs them supplies: one for each method of an instance
    /// that is called, one for each function that is called.
    pub externs: Vec<Extern>,
}

/// Width of a value of type `error`, bits.
pub const ERROR_WIDTH: u16 = 8;

/// A parser, a control and a deparser over one frame of slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pipeline {
    /// Name of the package's parameter, for instance `ingress`.
    pub name: String,
    /// Everything that has a value.
    pub slots: Vec<Slot>,
    /// Headers that can be extracted, emitted, valid.
    pub headers: Vec<Header>,
    /// What the caller sets before and reads after, in the order in which the architecture declares
    /// it: the members of those parameters whose types the architecture fixes.
    pub meta: Vec<Meta>,
    /// Without one, the pipeline begins with its control.
    pub parser: Option<Parser>,
    /// Actions; an action calls only actions before it.
    pub actions: Vec<Action>,
    /// Body of the control.
    pub control: Block,
    /// Headers in the order in which they are emitted, where they are valid.
    pub deparser: Vec<HeaderId>,
}

/// A value with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its path in the source, for instance `hdr.ndp.msg_len`; a valid bit ends in `.$valid`, what
    /// the front end adds begins with `$`. Unique in the pipeline.
    pub name: String,
    /// 1 to [`MAX_WIDTH`] bits.
    pub width: u16,
    /// Where it is declared.
    pub place: Place,
}

/// A header instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its path in the source, for instance `hdr.ndp`.
    pub name: String,
    /// One bit: whether it is valid.
    pub valid: SlotId,
    /// Its fields in the order on the wire, without gaps, the first at the most significant bit of
    /// the first byte.
    pub fields: Vec<Field>,
    /// Length, bits: the sum of its fields' widths.
    pub bits: u32,
}

/// A field of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its value.
    pub slot: SlotId,
    /// First bit in the header, from its beginning.
    pub offset: u32,
}

/// A value that passes between a pipeline and its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Its path by the architecture's names, for instance `meta.msg_len`, whatever the program
    /// calls its own parameter.
    pub name: String,
    /// Where the value is.
    pub slot: SlotId,
    /// Who sets it.
    pub direction: Direction,
}

/// Direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The caller sets it.
    In,
    /// The pipeline sets it; it begins as 0.
    Out,
    /// Both.
    InOut,
}

/// A parser: states, the first of which is the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Parser {
    /// `start` first. No state leads back to one that led to it.
    pub states: Vec<State>,
}

/// A state of a parser.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Its name in the source; of a loop unrolled with the number of its turn.
    pub name: String,
    /// What it does first: assignments, [`StmtKind::Extract`] and what else is for parsers, scopes,
    /// conditions, calls of externs; no tables, no actions.
    pub body: Block,
    /// Where it leads.
    pub transition: Transition,
    /// Where it is declared.
    pub place: Place,
}

/// The end of a parser's state.
#[derive(Clone, Debug, PartialEq)]
pub enum Transition {
    /// Always there.
    To(Target),
    /// To the first case all of whose patterns match; without one, reject with [`NO_MATCH`].
    Select {
        /// What is matched.
        on: Vec<Expr>,
        /// In order.
        cases: Vec<SelectCase>,
    },
}

/// A case of a select.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectCase {
    /// One for each expression.
    pub patterns: Vec<Pattern>,
    /// Where it leads.
    pub to: Target,
}

/// Where a transition leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To another state.
    State(StateId),
    /// The parser is done; the control follows.
    Accept,
    /// The packet is refused; nothing follows.
    Reject,
}

/// A set of values of a given width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// All.
    Any,
    /// One.
    Value(u128),
    /// All that agree with `value` in the bits of `mask`. `value` has no other bits.
    Mask {
        /// The bits.
        value: u128,
        /// Which count.
        mask: u128,
    },
    /// From `low` to `high`, both included; unsigned.
    Range {
        /// Least.
        low: u128,
        /// Greatest.
        high: u128,
    },
}

impl Pattern {
    /// The same set, always written the same way: a mask without bits is [`Self::Any`], one with
    /// all bits of the width is a value.
    #[must_use]
    pub fn canonical(self, width: u16) -> Self {
        match self {
            Self::Mask { mask: 0, .. } => Self::Any,
            Self::Mask { value, mask: bits } if bits == mask(width) => Self::Value(value),
            other => other,
        }
    }

    /// Whether it has this value.
    #[must_use]
    pub fn matches(self, x: u128) -> bool {
        match self {
            Self::Any => true,
            Self::Value(value) => x == value,
            Self::Mask { value, mask } => x & mask == value,
            Self::Range { low, high } => (low..=high).contains(&x),
        }
    }
}

/// Statements, in order.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// Where it stands.
    pub place: Place,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// The value is computed whole before the slot changes.
    Assign {
        /// Which slot.
        to: SlotId,
        /// Only these bits of it; the value is as wide.
        slice: Option<Slice>,
        /// The value.
        value: Expr,
    },
    /// Makes a header valid or not. One that was invalid and becomes valid keeps what its fields
    /// hold; one that becomes invalid gets fields of 0.
    SetValid {
        /// Which.
        header: HeaderId,
        /// What it becomes.
        valid: bool,
    },
    /// A condition.
    If {
        /// One bit.
        on: Expr,
        /// Where it is 1.
        then: Block,
        /// Where it is 0.
        otherwise: Block,
    },
    /// The first case that has the value, else `default`. Cases do not fall through. Not in
    /// parsers.
    Switch {
        /// What is compared.
        on: Expr,
        /// Values and what follows.
        cases: Vec<(Vec<u128>, Block)>,
        /// Where no case has the value.
        default: Block,
    },
    /// Statements with an end for [`StmtKind::Return`]: the body of a control that another one
    /// applies. Not in parsers.
    Scope(Block),
    /// Calls an action.
    Run {
        /// Which.
        action: ActionId,
        /// One for each of [`Action::params`].
        args: Vec<Expr>,
    },
    /// Applies a table: looks its keys up, runs the action that is found or the default, and then,
    /// unless that has left the control, says what it did.
    Apply {
        /// Which.
        table: TableId,
        /// One bit: set to whether there was an entry.
        hit: Option<SlotId>,
        /// [`ACTION_WIDTH`] bits: set to the index of the action in [`Table::actions`].
        action_run: Option<SlotId>,
    },
    /// Calls what the architecture supplies.
    Call {
        /// What.
        which: ExternId,
        /// One for each of [`Extern::args`].
        args: Vec<Expr>,
        /// One for each of [`Extern::results`], all different.
        results: Vec<SlotId>,
    },
    /// Reads a register.
    ReadRegister {
        /// Which.
        register: RegisterId,
        /// Which of its values.
        index: Expr,
        /// As wide as its values.
        to: SlotId,
    },
    /// Writes a register.
    WriteRegister {
        /// Which.
        register: RegisterId,
        /// Which of its values.
        index: Expr,
        /// As wide as its values.
        value: Expr,
    },
    /// Counts the packet and its bytes.
    Count {
        /// Which.
        counter: CounterId,
        /// Which of its values.
        index: Expr,
    },
    /// Leaves the innermost action, scope, or the control.
    Return,
    /// Leaves the control, wherever it stands (P4-16 section 11.5).
    Exit,
    /// Parsers only: takes the header from the front of what is left of the packet and makes it
    /// valid. Without bits enough, rejects with [`PACKET_TOO_SHORT`].
    Extract(HeaderId),
    /// Parsers only: the slot's width of bits at the front of what is left, which stay. Without
    /// bits enough, rejects with [`PACKET_TOO_SHORT`].
    Lookahead(SlotId),
    /// Parsers only: skips that many bits. Without bits enough, rejects with [`PACKET_TOO_SHORT`].
    Advance(Expr),
    /// Parsers only: rejects with the error unless the condition holds.
    Verify {
        /// One bit.
        on: Expr,
        /// What is reported.
        error: ErrorId,
    },
}

/// Bits `high` down to `low` of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Most significant, included.
    pub high: u16,
    /// Least significant.
    pub low: u16,
}

impl Slice {
    /// How many bits.
    #[must_use]
    pub fn width(self) -> u16 {
        self.high - self.low + 1
    }
}

/// An expression, without effects.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// Width of its value, bits.
    pub width: u16,
}

/// What an expression computes.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A number that fits the width.
    Const(u128),
    /// What a slot holds; also whether a header is valid ([`Header::valid`]).
    Slot(SlotId),
    /// Of an operand as wide as the result.
    Unary(UnaryOp, Box<Expr>),
    /// Of two operands; see [`BinaryOp`] for their widths.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// Some bits of a value.
    Slice(Box<Expr>, Slice),
    /// The first operand's bits above the second's (`++`).
    Concat(Box<Expr>, Box<Expr>),
    /// The same value in another width: cut off at the top, or filled there with zeros or, if
    /// signed, with the sign.
    Resize(Box<Expr>, Sign),
    /// The second operand if the first (one bit) is 1, else the third.
    Mux(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// How an operator reads its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// `bit<W>`.
    Unsigned,
    /// `int<W>`, two's complement.
    Signed,
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Every bit inverted (`~`, and `!` of one bit).
    Not,
    /// Two's complement.
    Neg,
}

/// Operators with two operands, both as wide as the result except where it says otherwise.
/// Arithmetic wraps around (P4-16 section 8.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `|+|`: stops at the ends of the type's range.
    AddSat(Sign),
    /// `|-|`: stops at the ends of the type's range.
    SubSat(Sign),
    /// `&`, and `&&` of single bits.
    And,
    /// `|`, and `||` of single bits.
    Or,
    /// `^`
    Xor,
    /// `<<`: the right operand has any width; shifts by the left one's width or more give 0.
    Shl,
    /// `>>`: the right operand has any width; shifts by the left one's width or more give 0 or, if
    /// signed, the sign in every bit.
    Shr(Sign),
    /// `==`: one bit, of operands of one width.
    Eq,
    /// `!=`: one bit, of operands of one width.
    Ne,
    /// `<`: one bit, of operands of one width.
    Lt(Sign),
    /// `<=`: one bit, of operands of one width.
    Le(Sign),
    /// `>`: one bit, of operands of one width.
    Gt(Sign),
    /// `>=`: one bit, of operands of one width.
    Ge(Sign),
}

/// An action.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Its name in the source, with the controls around it.
    pub name: String,
    /// Set to the arguments before the body runs: of a call, or of a table's entry. What a call
    /// gives back (`out`, `inout`) the front end copies after it.
    pub params: Vec<SlotId>,
    /// What it does.
    pub body: Block,
    /// Where it is declared.
    pub place: Place,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name in the source, with the controls around it.
    pub name: String,
    /// Whose slots and actions it names.
    pub pipeline: PipelineId,
    /// What is matched; none: the default action always runs.
    pub keys: Vec<Key>,
    /// The actions that it may run.
    pub actions: Vec<TableAction>,
    /// What runs where no entry matches; `action` is an index into `actions`.
    pub default: Choice,
    /// The control plane must not change the default.
    pub const_default: bool,
    /// Entries that the source gives.
    pub entries: Vec<Entry>,
    /// The control plane must not change the entries.
    pub const_entries: bool,
    /// Most entries.
    pub size: u32,
    /// Where it is declared.
    pub place: Place,
}

/// Width of the slot that [`StmtKind::Apply`] says an action in, bits.
pub const ACTION_WIDTH: u16 = 16;

/// An action in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableAction {
    /// Which.
    pub action: ActionId,
    /// Entries may name it (not `@defaultonly`).
    pub in_entries: bool,
    /// The default may be it (not `@tableonly`).
    pub as_default: bool,
}

/// A part of a table's key.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// As the source writes it.
    pub name: String,
    /// What is looked up, in the slots of the table's pipeline.
    pub value: Expr,
    /// How.
    pub kind: MatchKind,
}

/// How a key matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// Equal in the bits of the entry's mask; of entries that match, that with the best priority.
    Ternary,
    /// Equal in the entry's first bits; of entries that match, that with the longest prefix.
    Lpm,
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// One for each key: `Value` for exact keys, any but `Range` for ternary and (masks that are
    /// prefixes) for lpm.
    pub patterns: Vec<Pattern>,
    /// Where keys are ternary: the entry with the smallest number wins; entries of one number win
    /// in their order.
    pub priority: u32,
    /// What runs.
    pub choice: Choice,
}

/// An action of a table with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index into [`Table::actions`].
    pub action: u16,
    /// One for each of [`Action::params`], which fits its width.
    pub args: Vec<u128>,
}

/// An array of values that outlive the packet, 0 at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name in the source.
    pub name: String,
    /// Of each value, bits.
    pub width: u16,
    /// How many values.
    pub size: u32,
    /// Where it is declared.
    pub place: Place,
}

/// An array of counts of packets and bytes, 0 at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name in the source.
    pub name: String,
    /// How many pairs of counts.
    pub size: u32,
    /// Where it is declared.
    pub place: Place,
}

/// What the architecture supplies: a function, or a method of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extern {
    /// Of what kind: name of the `extern` type, or of the function.
    pub kind: String,
    /// Name of the instance in the source; empty for a function.
    pub instance: String,
    /// Name of the method; empty for a function.
    pub method: String,
    /// Arguments of the instance's constructor.
    pub constructor: Vec<u128>,
    /// What a call gives: `in` and `inout` parameters, structs by members.
    pub args: Vec<Value>,
    /// What a call gives back: `out` and `inout` parameters and then the return value, structs by
    /// members.
    pub results: Vec<Value>,
    /// Cycles from a call to its results (`@latency`), 0: none to wait for.
    pub latency: u32,
    /// Where the instance or the function is declared.
    pub place: Place,
}

/// An argument or result of an extern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its path, for instance `req.src_ip`; `return` for a return value.
    pub name: String,
    /// Bits.
    pub width: u16,
}

/// What stands behind the last point of a path, as the source writes it.
fn last_part(path: &str) -> &str {
    plain(path.rsplit('.').next().unwrap_or(path))
}

/// Without the `$2` that tells it from another one of its name.
fn plain(name: &str) -> &str {
    name.split('$').next().unwrap_or(name)
}

/// All ones in the lowest `width` bits.
#[must_use]
pub fn mask(width: u16) -> u128 {
    if width >= MAX_WIDTH { u128::MAX } else { (1 << width) - 1 }
}

impl Program {
    /// The pipeline of this name.
    #[must_use]
    pub fn pipeline(&self, name: &str) -> Option<PipelineId> {
        let at = self.pipelines.iter().position(|pipeline| pipeline.name == name)?;
        Some(PipelineId(u32::try_from(at).ok()?))
    }

    /// The first of the externs that are of the same instance as this one (or the same function).
    #[must_use]
    pub fn instance(&self, which: ExternId) -> ExternId {
        let known = &self.externs[which.index()];
        let same = |other: &Extern| other.instance == known.instance && other.kind == known.kind;
        let first = (0..).zip(&self.externs).find(|(_, other)| same(other));
        first.map_or(which, |(at, _)| ExternId(at))
    }

    /// The table of this name: the whole, or the part behind the last point if only one table has
    /// that.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<TableId> {
        let whole = self.tables.iter().position(|table| table.name == name);
        let at = whole.or_else(|| {
            let mut alike = (0..).zip(&self.tables).filter(|(_, t)| last_part(&t.name) == name);
            alike.next().filter(|_| alike.next().is_none()).map(|(at, _)| at)
        })?;
        Some(TableId(u32::try_from(at).ok()?))
    }

    /// Parameters of an action of a table, as [`Choice::args`] has them: names as the action
    /// declares them, and widths.
    #[must_use]
    pub fn params(&self, table: &Table, action: &TableAction) -> Vec<(&str, u16)> {
        let pipeline = &self.pipelines[table.pipeline.index()];
        let action = &pipeline.actions[action.action.index()];
        let named = action.params.iter().map(|param| {
            let slot = &pipeline.slots[param.index()];
            let inside = slot.name.strip_prefix(&*action.name).and_then(|n| n.strip_prefix('.'));
            (plain(inside.unwrap_or_else(|| last_part(&slot.name))), slot.width)
        });
        named.collect()
    }

    /// The name that the source gives an action of a table.
    #[must_use]
    pub fn action_name(&self, table: &Table, action: &TableAction) -> &str {
        let pipeline = &self.pipelines[table.pipeline.index()];
        last_part(&pipeline.actions[action.action.index()].name)
    }

    /// A number for the program's text: whether code was generated from just this program. (FNV-1a,
    /// 64 bits.)
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

impl Pipeline {
    /// Position in [`Pipeline::meta`] of what the architecture calls so.
    #[must_use]
    pub fn meta(&self, name: &str) -> Option<usize> {
        self.meta.iter().position(|meta| meta.name == name)
    }
}

impl Expr {
    /// A number.
    #[must_use]
    pub fn constant(value: u128, width: u16) -> Self {
        Self { kind: ExprKind::Const(value & mask(width)), width }
    }

    /// What a slot of this width holds.
    #[must_use]
    pub fn slot(slot: SlotId, width: u16) -> Self {
        Self { kind: ExprKind::Slot(slot), width }
    }
}
