//! Whether a program keeps the rules of [`crate::ir`]. A front end that breaks one has a mistake;
//! the back ends rely on them.

use std::collections::BTreeSet;

use super::{
    ACTION_WIDTH, Action, BinaryOp, Block, CORE_ERRORS, Choice, Entry, Expr, ExprKind, Header,
    MAX_WIDTH, MatchKind, Parser, Pattern, Pipeline, PipelineId, Place, Program, SelectCase, Slice,
    SlotId, State, Stmt, StmtKind, Table, Target, Transition, Value, mask,
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
    /// Without keys nothing is looked up (P4-16 section 14.2.1.1).
    #[error("table {table} has no keys, and so no entries")]
    Keyless {
        /// The table's name.
        table: String,
    },
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
    for table in &program.tables {
        let pipeline = program.pipelines.get(table.pipeline.index());
        let pipeline = pipeline.ok_or_else(|| fault(table.place, "of no pipeline"))?;
        Checker { program, pipeline, id: table.pipeline }.table(table)?;
    }
    Ok(())
}

/// Checks an entry against its table.
///
/// # Errors
/// What is wrong with it.
pub fn check_entry(program: &Program, table: &Table, entry: &Entry) -> Result<(), EntryFault> {
    let (wanted, got) = (table.keys.len(), entry.patterns.len());
    if wanted == 0 {
        return Err(EntryFault::Keyless { table: table.name.clone() });
    }
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
    /// An action, by its number: it may call those before it.
    Action(usize),
    Control,
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
                left.iter().flat_map(|&at| parser.states[at].followers()).collect();
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

    fn table(&self, table: &Table) -> Result<(), Fault> {
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
            format!("table {} has room for {} entries", table.name, table.size)
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
            StmtKind::Switch { .. } | StmtKind::Scope(_) | StmtKind::Return | StmtKind::Exit
                if within == Within::Parser =>
            {
                Err(fault(place, "not in a parser"))
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
            StmtKind::Scope(body) => self.block(body, within),
            StmtKind::Extract(_)
            | StmtKind::Lookahead(_)
            | StmtKind::Advance(_)
            | StmtKind::Verify { .. } => {
                ensure(within == Within::Parser, place, || "only in parsers".into())?;
                self.parsing(&stmt.kind, place)
            }
            StmtKind::Run { .. } | StmtKind::Apply { .. } => self.dispatch(stmt, within),
            StmtKind::Return | StmtKind::Exit => Ok(()),
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
                    Within::Parser => false,
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

impl State {
    /// States that it leads to.
    pub(super) fn followers(&self) -> Vec<usize> {
        let index = |to: Target| match to {
            Target::State(to) => Some(to.index()),
            Target::Accept | Target::Reject => None,
        };
        match &self.transition {
            Transition::To(to) => index(*to).into_iter().collect(),
            Transition::Select { cases, .. } => cases.iter().filter_map(|c| index(c.to)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example::{self, ANSWER, KIND, LENGTH, PORT, VALID, binary, stmt};
    use super::super::{
        ActionId, ErrorId, ExternId, HeaderId, Key, Register, StateId, TableAction, TableId,
    };
    use super::*;

    /// What [`check`] says of the example after a change.
    fn fault_of(change: impl FnOnce(&mut Program)) -> String {
        let mut program = example::program();
        assert_eq!(check(&program), Ok(()));
        change(&mut program);
        check(&program).unwrap_err().to_string()
    }

    /// What it says of a statement in the control.
    fn fault_in_control(kind: StmtKind) -> String {
        fault_of(|program| program.pipelines[0].control.push(stmt(kind)))
    }

    fn assign(value: Expr) -> StmtKind {
        StmtKind::Assign { to: LENGTH, slice: None, value }
    }

    #[test]
    fn widths_must_agree() {
        let length = || Expr::slot(LENGTH, 16);
        let sum = |other| binary(BinaryOp::Add, length(), other, 16);
        let wide = fault_in_control(assign(Expr::slot(KIND, 8)));
        assert_eq!(wide, "9:5: 8 bits where 16 are wanted");
        let operand = fault_in_control(assign(sum(Expr::constant(1, 8))));
        assert_eq!(operand, "9:5: 8 bits where 16 are wanted");
        let slot = fault_in_control(assign(Expr::slot(KIND, 16)));
        assert_eq!(slot, "9:5: 16 bits into a slot of 8");
        let constant = Expr { kind: ExprKind::Const(0x1_0000), width: 16 };
        assert_eq!(fault_in_control(assign(constant)), "9:5: 0x10000 in 16 bits");
        let none = fault_in_control(assign(sum(Expr { kind: ExprKind::Const(0), width: 129 })));
        assert_eq!(none, "9:5: 129 bits wide");
        let compared = binary(BinaryOp::Lt(super::super::Sign::Unsigned), length(), length(), 16);
        assert_eq!(fault_in_control(assign(compared)), "9:5: a wide comparison");
        let on = StmtKind::If { on: length(), then: Vec::new(), otherwise: Vec::new() };
        assert_eq!(fault_in_control(on), "9:5: 16 bits where 1 are wanted");
        let slice = ExprKind::Slice(Box::new(length()), Slice { high: 16, low: 1 });
        let beyond = fault_in_control(assign(Expr { kind: slice, width: 16 }));
        assert_eq!(beyond, "9:5: bits 16:1 of 16");
    }

    #[test]
    fn what_is_named_must_exist() {
        let slot = Expr::slot(SlotId(99), 16);
        assert_eq!(fault_in_control(assign(slot)), "9:5: no such slot");
        let header = StmtKind::SetValid { header: HeaderId(1), valid: true };
        assert_eq!(fault_in_control(header), "9:5: no such header");
        let apply = StmtKind::Apply { table: TableId(1), hit: None, action_run: None };
        assert_eq!(fault_in_control(apply), "9:5: no table to apply here");
        let call = |which, results| StmtKind::Call {
            which: ExternId(which),
            args: vec![Expr::slot(LENGTH, 16)],
            results,
        };
        assert_eq!(fault_in_control(call(1, vec![])), "9:5: no such extern");
        assert_eq!(fault_in_control(call(0, vec![])), "9:5: arguments or results of a call");
        assert_eq!(fault_in_control(call(0, vec![PORT])), "9:5: 16 bits into a slot of 9");
        let run = StmtKind::Run { action: ActionId(2), args: Vec::new() };
        assert_eq!(fault_in_control(run), "9:5: no action to call from here");
    }

    #[test]
    fn two_results_need_two_slots() {
        let fault = fault_of(|program| {
            let again = program.externs[0].results[0].clone();
            program.externs[0].results.push(again);
            let StmtKind::Call { results, .. } = &mut program.pipelines[0].control[1].kind else {
                panic!("the second statement is a call");
            };
            results.push(ANSWER);
        });
        assert_eq!(fault, "9:5: two results in a slot");
    }

    #[test]
    fn actions_call_only_actions_before_them() {
        let fault = fault_of(|program| {
            let run = StmtKind::Run { action: example::SEND, args: vec![Expr::constant(1, 9)] };
            program.pipelines[0].actions[0].body.push(stmt(run));
        });
        assert_eq!(fault, "9:5: no action to call from here");
    }

    #[test]
    fn parsers_do_not_loop_and_controls_do_not_parse() {
        let fault = fault_of(|program| {
            let parser = program.pipelines[0].parser.as_mut().unwrap();
            parser.states[0].transition = Transition::To(Target::State(StateId(0)));
        });
        assert_eq!(fault, "3:1: state start loops");
        assert_eq!(fault_in_control(StmtKind::Extract(HeaderId(0))), "9:5: only in parsers");
        for (kind, text) in [
            (StmtKind::Exit, "9:5: not in a parser"),
            (StmtKind::Return, "9:5: not in a parser"),
            (StmtKind::Scope(Vec::new()), "9:5: not in a parser"),
            (
                StmtKind::Switch {
                    on: Expr::constant(1, 1),
                    cases: Vec::new(),
                    default: Vec::new(),
                },
                "9:5: not in a parser",
            ),
            (
                StmtKind::Verify { on: Expr::constant(1, 1), error: ErrorId(9) },
                "9:5: no such error",
            ),
        ] {
            let fault = fault_of(|program| {
                let parser = program.pipelines[0].parser.as_mut().unwrap();
                parser.states[0].body.push(stmt(kind));
            });
            assert_eq!(fault, text);
        }
    }

    #[test]
    fn headers_have_no_gaps_and_names_differ() {
        let gap = fault_of(|program| program.pipelines[0].headers[0].fields[1].offset = 9);
        assert_eq!(gap, "0:0: hdr.h: fields with gaps");
        let valid = fault_of(|program| program.pipelines[0].headers[0].valid = KIND);
        assert_eq!(valid, "0:0: a wide valid bit");
        let names = fault_of(|program| {
            let name = program.pipelines[0].slots[VALID.index()].name.clone();
            program.pipelines[0].slots[1].name = name;
        });
        assert_eq!(names, "3:1: two slots hdr.h.$valid");
        let wide = fault_of(|program| {
            let nowhere = Place::default();
            let register = Register { name: "r".into(), width: 0, size: 1, place: nowhere };
            program.registers.push(register);
        });
        assert_eq!(wide, "0:0: 0 bits wide");
    }

    #[test]
    fn tables_fit_their_entries() {
        let of_table = |change: fn(&mut Table)| fault_of(|program| change(&mut program.tables[0]));
        let pattern = of_table(|table| table.entries[0].patterns[0] = Pattern::Any);
        assert_eq!(pattern, "3:1: key kind is exact with 8 bits: _ cannot be matched with it");
        let wide = of_table(|table| table.entries[0].patterns[0] = Pattern::Value(256));
        assert_eq!(wide, "3:1: key kind is exact with 8 bits: 0x100 cannot be matched with it");
        let arguments = of_table(|table| table.entries[0].choice.args.clear());
        assert_eq!(arguments, "3:1: action send takes 1 arguments, not 0");
        let argument = of_table(|table| table.entries[0].choice.args[0] = 512);
        assert_eq!(argument, "3:1: 0x200 does not fit the 9 bits of send.port");
        let default = of_table(|table| table.default = table.entries[0].choice.clone());
        assert_eq!(default, "3:1: table by_kind may not run action 1 by default");
        let keys = of_table(|table| table.entries[0].patterns.clear());
        assert_eq!(keys, "3:1: table by_kind has 1 keys, the entry 0");
        let small = of_table(|table| table.size = 1);
        assert_eq!(small, "3:1: table by_kind has room for 1 entries");
        let lpm = of_table(|table| {
            let key = Key { kind: MatchKind::Lpm, ..table.keys[0].clone() };
            table.keys = vec![key.clone(), key];
        });
        assert_eq!(lpm, "3:1: by_kind: two lpm keys");
        let action = of_table(|table| {
            let known = TableAction { action: ActionId(7), in_entries: true, as_default: true };
            table.actions.push(known);
        });
        assert_eq!(action, "3:1: by_kind: no such action");
    }

    #[test]
    fn a_prefix_is_ones_and_then_zeros() {
        let mask = |mask| Pattern::Mask { value: 0, mask };
        assert_eq!(prefix_length(mask(0xf0), 8), Some(4));
        assert_eq!(prefix_length(mask(0), 8), Some(0));
        assert_eq!(prefix_length(mask(0xff), 8), Some(8));
        assert_eq!(prefix_length(mask(0x0f), 8), None);
        assert_eq!(prefix_length(Pattern::Any, 8), Some(0));
        assert_eq!(prefix_length(Pattern::Value(3), 128), Some(128));
    }
}
