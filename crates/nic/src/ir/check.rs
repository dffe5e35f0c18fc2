//! Whether a program keeps the rules of [`crate::ir`]. A front end that breaks one has a mistake; the
//! back ends rely on them.

use std::collections::BTreeSet;

use super::{
    ACTION_WIDTH, Action, BinaryOp, Block, CORE_ERRORS, Choice, Entry, Expr, ExprKind, Header,
    MAX_WIDTH, MatchKind, Parser, Pattern, Pipeline, PipelineId, Place, Program, SelectCase, Slice,
    SlotId, State, Stmt, StmtKind, Table, TableId, Target, Transition, Value, mask,
};

/// A rule that a program breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{}: {text}", place.line, place.column)]
pub struct Fault {
    /// Where, as far as known.
    pub place: Place,
    /// Which.
    pub text: String,
}

/// What makes an entry impossible in its table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryFault {
    /// Number of keys.
    #[error("table {table} has {wanted} keys, the entry {got}")]
    Keys {
        /// The table's name.
        table: String,
        /// Its keys.
        wanted: usize,
        /// The entry's.
        got: usize,
    },
    /// A value, mask or prefix that its key cannot have.
    #[error("key {key} is {kind} with {width} bits: {pattern} cannot be matched with it")]
    Pattern {
        /// The key's name.
        key: String,
        /// How it matches.
        kind: &'static str,
        /// Its width, bits.
        width: u16,
        /// What the entry has.
        pattern: String,
    },
    /// An action that is not the table's, or not for entries, or not as a default.
    #[error("table {table} may not run action {action} {role}")]
    Action {
        /// The table's name.
        table: String,
        /// Index in the table's actions.
        action: u16,
        /// For what.
        role: &'static str,
    },
    /// Number of arguments.
    #[error("action {action} takes {wanted} arguments, not {got}")]
    Arguments {
        /// The action's name.
        action: String,
        /// Its parameters.
        wanted: usize,
        /// What it gets.
        got: usize,
    },
    /// An argument wider than its parameter.
    #[error("{value:#x} does not fit the {width} bits of {param}")]
    Argument {
        /// The parameter's name.
        param: String,
        /// Its width.
        width: u16,
        /// What it gets.
        value: u128,
    },
}

/// Checks a whole program.
///
/// # Errors
/// The first rule that is broken.
pub fn check(program: &Program) -> Result<(), Fault> {
    let core = program.errors.iter().map(String::as_str).take(CORE_ERRORS.len());
    ensure(core.eq(CORE_ERRORS), Place::default(), || "the errors of core.p4 come first".into())?;
    for register in &program.registers {
        width(register.width, register.place)?;
    }
    for known in &program.externs {
        for value in known.args.iter().chain(&known.results) {
            width(value.width, known.place)?;
        }
    }
    for (at, pipeline) in (0..).zip(&program.pipelines) {
        Checker { program, pipeline, id: PipelineId(at) }.pipeline()?;
    }
    for (at, table) in (0..).zip(&program.tables) {
        let pipeline = program.pipelines.get(table.pipeline.index());
        let pipeline = pipeline.ok_or_else(|| fault(table.place, "of no pipeline"))?;
        Checker { program, pipeline, id: table.pipeline }.table(TableId(at), table)?;
    }
    Ok(())
}

/// Checks an entry against its table.
///
/// # Errors
/// What is wrong with it.
pub fn check_entry(program: &Program, table: &Table, entry: &Entry) -> Result<(), EntryFault> {
    let (wanted, got) = (table.keys.len(), entry.patterns.len());
    if wanted != got {
        return Err(EntryFault::Keys { table: table.name.clone(), wanted, got });
    }
    for (key, pattern) in table.keys.iter().zip(&entry.patterns) {
        let width = key.value.width;
        let (kind, allowed) = match key.kind {
            MatchKind::Exact => ("exact", matches!(pattern, Pattern::Value(_))),
            MatchKind::Ternary => ("ternary", !matches!(pattern, Pattern::Range { .. })),
            MatchKind::Lpm => ("lpm", prefix_length(*pattern, width).is_some()),
        };
        if !allowed || !pattern_fits(*pattern, width) {
            let (key, pattern) = (key.name.clone(), pattern.to_string());
            return Err(EntryFault::Pattern { key, kind, width, pattern });
        }
    }
    check_choice(program, table, &entry.choice, false)
}

/// Checks an action and its arguments against the table that is to run it.
///
/// # Errors
/// What is wrong with it.
pub fn check_choice(
    program: &Program,
    table: &Table,
    choice: &Choice,
    as_default: bool,
) -> Result<(), EntryFault> {
    let role = if as_default { "by default" } else { "in an entry" };
    let known = table.actions.get(usize::from(choice.action));
    let known = known.filter(|known| if as_default { known.as_default } else { known.in_entries });
    let pipeline = program.pipelines.get(table.pipeline.index());
    let (Some(known), Some(pipeline)) = (known, pipeline) else {
        let (table, action) = (table.name.clone(), choice.action);
        return Err(EntryFault::Action { table, action, role });
    };
    let action = &pipeline.actions[known.action.index()];
    let (wanted, got) = (action.params.len(), choice.args.len());
    if wanted != got {
        return Err(EntryFault::Arguments { action: action.name.clone(), wanted, got });
    }
    for (param, &value) in action.params.iter().zip(&choice.args) {
        let slot = &pipeline.slots[param.index()];
        if value > mask(slot.width) {
            let (param, width) = (slot.name.clone(), slot.width);
            return Err(EntryFault::Argument { param, width, value });
        }
    }
    Ok(())
}

/// How many of the first bits a pattern wants equal, if it is a prefix of so wide a value.
#[must_use]
pub fn prefix_length(pattern: Pattern, width: u16) -> Option<u16> {
    match pattern {
        Pattern::Any => Some(0),
        Pattern::Value(_) => Some(width),
        Pattern::Mask { mask: bits, .. } => {
            let length = (0..=width).find(|&n| bits == mask(width) & !mask(width - n))?;
            Some(length)
        }
        Pattern::Range { .. } => None,
    }
}

fn pattern_fits(pattern: Pattern, width: u16) -> bool {
    let most = mask(width);
    match pattern {
        Pattern::Any => true,
        Pattern::Value(value) => value <= most,
        Pattern::Mask { value, mask } => mask <= most && value & !mask == 0,
        Pattern::Range { low, high } => low <= high && high <= most,
    }
}

fn fault(place: Place, text: impl Into<String>) -> Fault {
    Fault { place, text: text.into() }
}

fn ensure(holds: bool, place: Place, text: impl FnOnce() -> String) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(fault(place, text())) }
}

fn width(bits: u16, place: Place) -> Result<(), Fault> {
    ensure((1..=MAX_WIDTH).contains(&bits), place, || format!("{bits} bits wide"))
}

/// Where a statement stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Parser,
    /// A scope in a parser's state.
    ParserScope,
    /// An action, by its number: it may call those before it.
    Action(usize),
    Control,
}

impl Within {
    fn parser(self) -> bool {
        matches!(self, Self::Parser | Self::ParserScope)
    }

    /// A scope here.
    fn scope(self) -> Self {
        if self.parser() { Self::ParserScope } else { self }
    }
}

struct Checker<'a> {
    program: &'a Program,
    pipeline: &'a Pipeline,
    id: PipelineId,
}

impl Checker<'_> {
    fn pipeline(&self) -> Result<(), Fault> {
        let mut names = BTreeSet::new();
        for slot in &self.pipeline.slots {
            width(slot.width, slot.place)?;
            ensure(names.insert(&slot.name), slot.place, || format!("two slots {}", slot.name))?;
        }
        self.pipeline.headers.iter().try_for_each(|header| self.header(header))?;
        for meta in &self.pipeline.meta {
            self.slot(meta.slot, Place::default())?;
        }
        if let Some(parser) = &self.pipeline.parser {
            self.parser(parser)?;
        }
        for (number, action) in self.pipeline.actions.iter().enumerate() {
            self.action(number, action)?;
        }
        self.block(&self.pipeline.control, Within::Control)?;
        let known = |header: &super::HeaderId| header.index() < self.pipeline.headers.len();
        let emits = self.pipeline.deparser.iter().all(known);
        ensure(emits, Place::default(), || "the deparser emits no header".into())
    }

    fn slot(&self, slot: SlotId, place: Place) -> Result<u16, Fault> {
        let slot = self.pipeline.slots.get(slot.index());
        slot.map(|slot| slot.width).ok_or_else(|| fault(place, "no such slot"))
    }

    fn header(&self, header: &Header) -> Result<(), Fault> {
        let nowhere = Place::default();
        ensure(self.slot(header.valid, nowhere)? == 1, nowhere, || "a wide valid bit".into())?;
        let mut end = 0;
        for field in &header.fields {
            let named = || format!("{}: fields with gaps", header.name);
            ensure(field.offset == end, nowhere, named)?;
            end += u32::from(self.slot(field.slot, nowhere)?);
        }
        ensure(header.bits == end, nowhere, || format!("{}: {end} bits", header.name))
    }

    fn parser(&self, parser: &Parser) -> Result<(), Fault> {
        let nowhere = Place::default();
        ensure(!parser.states.is_empty(), nowhere, || "a parser without a state".into())?;
        for state in &parser.states {
            self.block(&state.body, Within::Parser)?;
            let target = |to: &Target| match to {
                Target::State(to) => to.index() < parser.states.len(),
                Target::Accept | Target::Reject => true,
            };
            let fine = match &state.transition {
                Transition::To(to) => target(to),
                Transition::Select { on, cases } => {
                    on.iter().try_for_each(|e| self.expr(e, state.place))?;
                    cases.iter().all(|case| target(&case.to) && case_fits(on, case))
                }
            };
            ensure(fine, state.place, || format!("state {}: transition", state.name))?;
        }
        self.acyclic(parser)
    }

    /// No state leads back: states are taken away while some are left to which none leads.
    fn acyclic(&self, parser: &Parser) -> Result<(), Fault> {
        let mut left: BTreeSet<usize> = (0..parser.states.len()).collect();
        loop {
            let led_to: BTreeSet<usize> =
                left.iter().flat_map(|&at| followers(&parser.states[at])).collect();
            let before = left.len();
            left.retain(|at| led_to.contains(at));
            let Some(first) = left.first() else { return Ok(()) };
            let state = &parser.states[*first];
            ensure(left.len() < before, state.place, || format!("state {} loops", state.name))?;
        }
    }

    fn action(&self, number: usize, action: &Action) -> Result<(), Fault> {
        for param in &action.params {
            self.slot(*param, action.place)?;
        }
        self.block(&action.body, Within::Action(number))
    }

    fn table(&self, id: TableId, table: &Table) -> Result<(), Fault> {
        let fault = |text: String| Fault { place: table.place, text };
        for key in &table.keys {
            self.expr(&key.value, table.place)?;
        }
        let lpm = table.keys.iter().filter(|key| key.kind == MatchKind::Lpm).count();
        ensure(lpm <= 1, table.place, || format!("{}: two lpm keys", table.name))?;
        let known = |at: usize| at < self.pipeline.actions.len();
        let actions = table.actions.iter().all(|action| known(action.action.index()));
        ensure(actions, table.place, || format!("{}: no such action", table.name))?;
        ensure(table.entries.len() <= table.size as usize, table.place, || {
            format!("table {} ({id:?}) has room for {} entries", table.name, table.size)
        })?;
        for entry in &table.entries {
            check_entry(self.program, table, entry).map_err(|e| fault(e.to_string()))?;
        }
        check_choice(self.program, table, &table.default, true).map_err(|e| fault(e.to_string()))
    }

    fn block(&self, block: &Block, within: Within) -> Result<(), Fault> {
        block.iter().try_for_each(|stmt| self.stmt(stmt, within))
    }

    fn stmt(&self, stmt: &Stmt, within: Within) -> Result<(), Fault> {
        let place = stmt.place;
        match &stmt.kind {
            StmtKind::If { on, then, otherwise } => {
                self.value(on, 1, place)?;
                self.block(then, within)?;
                self.block(otherwise, within)
            }
            StmtKind::Switch { on, cases, default } => {
                self.expr(on, place)?;
                for (values, body) in cases {
                    let fit = values.iter().all(|value| *value <= mask(on.width));
                    ensure(fit, place, || "a case that does not fit".into())?;
                    self.block(body, within)?;
                }
                self.block(default, within)
            }
            StmtKind::Scope(body) => self.block(body, within.scope()),
            StmtKind::Extract(_)
            | StmtKind::Lookahead(_)
            | StmtKind::Advance(_)
            | StmtKind::Verify { .. } => {
                ensure(within.parser(), place, || "only in parsers".into())?;
                self.parsing(&stmt.kind, place)
            }
            StmtKind::Run { .. } | StmtKind::Apply { .. } => self.dispatch(stmt, within),
            StmtKind::Return => Ok(()),
            StmtKind::Exit => ensure(within != Within::Parser, place, || "exit in a parser".into()),
            simple => self.simple(simple, place),
        }
    }

    fn parsing(&self, stmt: &StmtKind, place: Place) -> Result<(), Fault> {
        match stmt {
            StmtKind::Extract(header) => self.known_header(*header, place),
            StmtKind::Lookahead(to) => self.slot(*to, place).map(|_| ()),
            StmtKind::Advance(bits) => self.expr(bits, place),
            StmtKind::Verify { on, error } => {
                let known = error.index() < self.program.errors.len();
                ensure(known, place, || "no such error".into())?;
                self.value(on, 1, place)
            }
            _ => Ok(()),
        }
    }

    /// Calls of actions and tables.
    fn dispatch(&self, stmt: &Stmt, within: Within) -> Result<(), Fault> {
        let place = stmt.place;
        match &stmt.kind {
            StmtKind::Run { action, args } => {
                let earlier = match within {
                    Within::Parser | Within::ParserScope => false,
                    Within::Action(number) => action.index() < number,
                    Within::Control => true,
                };
                let called = self.pipeline.actions.get(action.index()).filter(|_| earlier);
                let called = called.ok_or_else(|| fault(place, "no action to call from here"))?;
                let counts = args.len() == called.params.len();
                ensure(counts, place, || format!("arguments of {}", called.name))?;
                let mut pairs = called.params.iter().zip(args);
                pairs.try_for_each(|(to, arg)| self.value(arg, self.slot(*to, place)?, place))
            }
            StmtKind::Apply { table, hit, action_run } => {
                let table = self.program.tables.get(table.index());
                let own = table.is_some_and(|table| table.pipeline == self.id);
                let fine = own && within == Within::Control;
                ensure(fine, place, || "no table to apply here".into())?;
                for (to, wanted) in [(hit, 1), (action_run, ACTION_WIDTH)] {
                    let Some(to) = to else { continue };
                    self.result(*to, wanted, place)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn simple(&self, stmt: &StmtKind, place: Place) -> Result<(), Fault> {
        match stmt {
            StmtKind::Assign { to, slice, value } => {
                let width = self.slot(*to, place)?;
                let wanted = slice.map_or(Ok(width), |slice| part(slice, width, place))?;
                self.value(value, wanted, place)
            }
            StmtKind::SetValid { header, .. } => self.known_header(*header, place),
            StmtKind::Call { which, args, results } => {
                let known = self.program.externs.get(which.index());
                let known = known.ok_or_else(|| fault(place, "no such extern"))?;
                self.call(&known.args, args, &known.results, results, place)
            }
            StmtKind::ReadRegister { register, index, to } => {
                let width = self.register(*register, place)?;
                self.expr(index, place)?;
                self.result(*to, width, place)
            }
            StmtKind::WriteRegister { register, index, value } => {
                let width = self.register(*register, place)?;
                self.expr(index, place)?;
                self.value(value, width, place)
            }
            StmtKind::Count { counter, index } => {
                let known = counter.index() < self.program.counters.len();
                ensure(known, place, || "no such counter".into())?;
                self.expr(index, place)
            }
            _ => Ok(()),
        }
    }

    fn call(
        &self,
        wanted_args: &[Value],
        args: &[Expr],
        wanted_results: &[Value],
        results: &[SlotId],
        place: Place,
    ) -> Result<(), Fault> {
        let counts = wanted_args.len() == args.len() && wanted_results.len() == results.len();
        ensure(counts, place, || "arguments or results of a call".into())?;
        let mut args = wanted_args.iter().zip(args);
        args.try_for_each(|(wanted, arg)| self.value(arg, wanted.width, place))?;
        let different: BTreeSet<&SlotId> = results.iter().collect();
        ensure(different.len() == results.len(), place, || "two results in a slot".into())?;
        let mut results = wanted_results.iter().zip(results);
        results.try_for_each(|(wanted, to)| self.result(*to, wanted.width, place))
    }

    fn known_header(&self, header: super::HeaderId, place: Place) -> Result<(), Fault> {
        let known = header.index() < self.pipeline.headers.len();
        ensure(known, place, || "no such header".into())
    }

    fn register(&self, register: super::RegisterId, place: Place) -> Result<u16, Fault> {
        let known = self.program.registers.get(register.index());
        known.map(|register| register.width).ok_or_else(|| fault(place, "no such register"))
    }

    /// A slot that takes a value so wide.
    fn result(&self, slot: SlotId, wanted: u16, place: Place) -> Result<(), Fault> {
        let width = self.slot(slot, place)?;
        ensure(width == wanted, place, || format!("{wanted} bits into a slot of {width}"))
    }

    /// An expression so wide.
    fn value(&self, expr: &Expr, wanted: u16, place: Place) -> Result<(), Fault> {
        self.expr(expr, place)?;
        let width = expr.width;
        ensure(width == wanted, place, || format!("{width} bits where {wanted} are wanted"))
    }

    fn expr(&self, expr: &Expr, place: Place) -> Result<(), Fault> {
        width(expr.width, place)?;
        let own = |e: &Expr| self.value(e, expr.width, place);
        match &expr.kind {
            ExprKind::Const(value) => {
                let fits = *value <= mask(expr.width);
                ensure(fits, place, || format!("{value:#x} in {} bits", expr.width))
            }
            ExprKind::Slot(slot) => self.result(*slot, expr.width, place),
            ExprKind::Unary(_, a) => own(a),
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, expr.width, place),
            ExprKind::Slice(a, slice) => {
                self.expr(a, place)?;
                let width = part(*slice, a.width, place)?;
                ensure(width == expr.width, place, || "a slice of another width".into())
            }
            ExprKind::Concat(a, b) => {
                self.expr(a, place)?;
                self.expr(b, place)?;
                let sum = a.width + b.width;
                ensure(sum == expr.width, place, || "a concatenation of another width".into())
            }
            ExprKind::Resize(a, _) => self.expr(a, place),
            ExprKind::Mux(on, a, b) => {
                self.value(on, 1, place)?;
                own(a)?;
                own(b)
            }
        }
    }

    fn binary(
        &self,
        op: BinaryOp,
        a: &Expr,
        b: &Expr,
        width: u16,
        place: Place,
    ) -> Result<(), Fault> {
        match op {
            BinaryOp::Shl | BinaryOp::Shr(_) => {
                self.value(a, width, place)?;
                self.expr(b, place)
            }
            BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt(_)
            | BinaryOp::Le(_)
            | BinaryOp::Gt(_)
            | BinaryOp::Ge(_) => {
                ensure(width == 1, place, || "a wide comparison".into())?;
                self.expr(a, place)?;
                self.value(b, a.width, place)
            }
            BinaryOp::Div | BinaryOp::Mod => {
                let constant = matches!(b.kind, ExprKind::Const(value) if value != 0);
                ensure(constant, place, || "division by what may be 0".into())?;
                self.value(a, width, place)?;
                self.value(b, width, place)
            }
            _ => {
                self.value(a, width, place)?;
                self.value(b, width, place)
            }
        }
    }
}

/// Width of a slice of a value so wide.
fn part(slice: Slice, width: u16, place: Place) -> Result<u16, Fault> {
    let Slice { high, low } = slice;
    let inside = low <= high && high < width;
    ensure(inside, place, || format!("bits {high}:{low} of {width}"))?;
    Ok(slice.width())
}

fn case_fits(on: &[Expr], case: &SelectCase) -> bool {
    let mut pairs = on.iter().zip(&case.patterns);
    on.len() == case.patterns.len() && pairs.all(|(e, pattern)| pattern_fits(*pattern, e.width))
}

/// States that a state leads to.
fn followers(state: &State) -> Vec<usize> {
    let index = |to: Target| match to {
        Target::State(to) => Some(to.index()),
        Target::Accept | Target::Reject => None,
    };
    match &state.transition {
        Transition::To(to) => index(*to).into_iter().collect(),
        Transition::Select { cases, .. } => cases.iter().filter_map(|c| index(c.to)).collect(),
    }
}
