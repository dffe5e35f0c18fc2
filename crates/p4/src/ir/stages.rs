//! What of a control can happen at once, as a pipeline in hardware would do it.
//!
//! A stage is what lies between two accesses to memory: logic is wires, but what an extern, a
//! register or a table answers is there a stage later (and its latency in cycles later). That is
//! how specs/nanotransport.md#1 counts stages: NDP's ingress asks reassembly, then the credit
//! register, then says what it has found, which is three.
//!
//! A value is ready when all that it is computed from is; under a condition, when that is, too. A
//! packet's values move from stage to stage in registers of their own, so a later assignment to the
//! same slot waits for nothing. Accesses to one register or one extern instance keep their order,
//! and each of its ports (reading, writing, a method) serves one of them at a time. What that means
//! for packets that follow one another, [`hazards`](super::hazards()) says.

use super::{
    ActionId, Block, Expr, ExprKind, Pipeline, Program, RegisterId, SlotId, Stmt, StmtKind, Table,
    TableId,
};

/// Cycles from a table's keys to the action, and from a register's index to its value.
pub const MEMORY_LATENCY: u32 = 1;

/// The stages of every pipeline's control, in the order of [`Program::pipelines`].
pub type Stages<'a> = Vec<Schedule<'a>>;

/// The stages of a control.
#[derive(Clone, Debug, Default)]
pub struct Schedule<'a> {
    /// Every statement, without those that only hold others, in the order of the source; those of
    /// an action each time it is called.
    pub steps: Vec<Step<'a>>,
    /// How many stages.
    pub stages: u32,
    /// Cycles from the parsed headers to the last result.
    pub cycles: u32,
    /// Operators one after the other in the worst stage.
    pub depth: u32,
}

/// A statement in its stage.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Which.
    pub stmt: &'a Stmt,
    /// When it can happen.
    pub at: Ready,
}

/// When something is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Stage, from 0.
    pub stage: u32,
    /// Cycle, from 0.
    pub cycle: u32,
    /// Operators before it in its stage.
    pub depth: u32,
}

impl Ready {
    /// When both are.
    fn and(self, other: Self) -> Self {
        let depth = match self.stage.cmp(&other.stage) {
            std::cmp::Ordering::Less => other.depth,
            std::cmp::Ordering::Equal => self.depth.max(other.depth),
            std::cmp::Ordering::Greater => self.depth,
        };
        let (stage, cycle) = (self.stage.max(other.stage), self.cycle.max(other.cycle));
        Self { stage, cycle, depth }
    }

    /// After one more operator.
    fn operator(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// The answer of what takes so long; of what takes no time, there at once.
    fn answered(self, latency: u32) -> Self {
        if latency == 0 {
            return self;
        }
        Self { stage: self.stage + 1, cycle: self.cycle.saturating_add(latency), depth: 0 }
    }
}

/// Schedules every control of a program that [`check`](super::check()) accepts.
#[must_use]
pub fn stages(program: &Program) -> Stages<'_> {
    program.pipelines.iter().map(|pipeline| schedule(program, pipeline, &[])).collect()
}

/// Schedules a control in which registers are not accessed before some time.
pub(super) fn schedule<'a>(
    program: &'a Program,
    pipeline: &'a Pipeline,
    delayed: &[(RegisterId, Ready)],
) -> Schedule<'a> {
    let mut state = Known {
        slots: vec![Ready::default(); pipeline.slots.len()],
        reads: vec![Ready::default(); program.registers.len()],
        writes: vec![Ready::default(); program.registers.len()],
        externs: vec![Ready::default(); program.externs.len()],
        ports: vec![Ready::default(); program.externs.len()],
        on: Ready::default(),
    };
    for (register, ready) in delayed {
        state.reads[register.index()] = *ready;
    }
    let mut walk = Walk { program, pipeline, known: state, steps: Vec::new(), end: 0 };
    walk.block(&pipeline.control);
    let last = walk.known.all();
    let (steps, end) = (walk.steps, walk.end);
    let all = steps.iter().map(|step| step.at).chain([last]);
    Schedule {
        stages: all.clone().map(|at| at.stage).max().unwrap_or(0) + 1,
        cycles: all.clone().map(|at| at.cycle).max().unwrap_or(0).max(end) + 1,
        depth: all.map(|at| at.depth).max().unwrap_or(0),
        steps,
    }
}

/// What is ready when, at a point of the control.
#[derive(Clone)]
struct Known {
    slots: Vec<Ready>,
    /// When a register can be read next, and when written.
    reads: Vec<Ready>,
    writes: Vec<Ready>,
    /// Last call of the instance, by the first extern of the program that is of that instance.
    externs: Vec<Ready>,
    /// When a method can be called next.
    ports: Vec<Ready>,
    /// Whether this point is reached.
    on: Ready,
}

impl Known {
    fn all(&self) -> Ready {
        self.slots.iter().fold(self.on, |all, slot| all.and(*slot))
    }

    /// After either of two ways: what one of them has changed is ready when the choice between them
    /// and both values are.
    fn join(&mut self, before: &Self, other: &Self) {
        let on = self.on.and(other.on);
        let pairs = [
            (&mut self.slots, &before.slots, &other.slots),
            (&mut self.reads, &before.reads, &other.reads),
            (&mut self.writes, &before.writes, &other.writes),
            (&mut self.externs, &before.externs, &other.externs),
            (&mut self.ports, &before.ports, &other.ports),
        ];
        for (here, before, other) in pairs {
            for ((here, before), other) in here.iter_mut().zip(before).zip(other) {
                if *here != *before || *other != *before {
                    *here = here.and(*other).and(on).operator();
                }
            }
        }
        self.on = on;
    }
}

struct Walk<'a> {
    program: &'a Program,
    pipeline: &'a Pipeline,
    known: Known,
    steps: Vec<Step<'a>>,
    /// Last cycle in which an extern that answers nothing is at work.
    end: u32,
}

impl<'a> Walk<'a> {
    fn block(&mut self, block: &'a Block) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::If { on, then, otherwise } => {
                let on = self.expr(on);
                self.either(on, &[then, otherwise]);
            }
            StmtKind::Switch { on, cases, default } => {
                let on = self.expr(on).operator();
                let mut bodies: Vec<&Block> = cases.iter().map(|(_, body)| body).collect();
                bodies.push(default);
                self.either(on, &bodies);
            }
            StmtKind::Scope(body) => {
                let before = self.known.on;
                self.block(body);
                if !self.exits(body) {
                    self.known.on = before;
                }
            }
            StmtKind::Run { action, args } => {
                let args: Vec<Ready> = args.iter().map(|arg| self.expr(arg)).collect();
                self.action(*action, &args);
            }
            StmtKind::Apply { table, hit, action_run } => {
                self.apply(stmt, *table, [*hit, *action_run]);
            }
            _ => self.simple(stmt),
        }
    }

    /// One of several blocks, by a condition that is known then.
    fn either(&mut self, on: Ready, bodies: &[&'a Block]) {
        let on = self.known.on.and(on);
        let before = self.known.clone();
        let mut joined: Option<Known> = None;
        for body in bodies {
            self.known = Known { on, ..before.clone() };
            self.block(body);
            match &mut joined {
                None => joined = Some(self.known.clone()),
                Some(joined) => joined.join(&before, &self.known),
            }
        }
        self.known = joined.unwrap_or_else(|| before.clone());
        // What follows happens in any case, unless a body may leave.
        if !bodies.iter().any(|body| self.leaves(body)) {
            self.known.on = before.on;
        }
    }

    fn action(&mut self, action: ActionId, args: &[Ready]) {
        let before = self.known.on;
        let action = &self.pipeline.actions[action.index()];
        for (param, ready) in action.params.iter().zip(args) {
            self.known.slots[param.index()] = ready.and(before);
        }
        self.block(&action.body);
        if !self.exits(&action.body) {
            self.known.on = before;
        }
    }

    /// The keys go to the memory, the action and its arguments come from there.
    fn apply(&mut self, stmt: &'a Stmt, table: TableId, results: [Option<SlotId>; 2]) {
        let program = self.program;
        let table: &'a Table = &program.tables[table.index()];
        let keys = table.keys.iter().map(|key| self.expr(&key.value));
        let asked = keys.fold(self.known.on, Ready::and);
        self.steps.push(Step { stmt, at: asked });
        let found = asked.answered(if table.keys.is_empty() { 0 } else { MEMORY_LATENCY });
        for slot in results.into_iter().flatten() {
            self.known.slots[slot.index()] = found;
        }
        let before = self.known.clone();
        let mut joined: Option<Known> = None;
        for action in &table.actions {
            self.known = Known { on: found, ..before.clone() };
            let params = self.pipeline.actions[action.action.index()].params.len();
            self.action(action.action, &vec![found; params]);
            match &mut joined {
                None => joined = Some(self.known.clone()),
                Some(joined) => joined.join(&before, &self.known),
            }
        }
        self.known = joined.unwrap_or_else(|| before.clone());
        if !table.actions.iter().any(|run| self.exits(self.body(run.action))) {
            self.known.on = before.on;
        }
    }

    fn body(&self, action: ActionId) -> &'a Block {
        &self.pipeline.actions[action.index()].body
    }

    /// Whether a block may leave the control.
    fn exits(&self, block: &Block) -> bool {
        block.iter().any(|stmt| match &stmt.kind {
            StmtKind::Exit => true,
            StmtKind::If { then, otherwise, .. } => self.exits(then) || self.exits(otherwise),
            StmtKind::Switch { cases, default, .. } => {
                cases.iter().any(|(_, body)| self.exits(body)) || self.exits(default)
            }
            StmtKind::Scope(body) => self.exits(body),
            StmtKind::Run { action, .. } => self.exits(self.body(*action)),
            StmtKind::Apply { table, .. } => {
                let actions = &self.program.tables[table.index()].actions;
                actions.iter().any(|run| self.exits(self.body(run.action)))
            }
            _ => false,
        })
    }

    /// Whether a block may leave what it stands in.
    fn leaves(&self, block: &Block) -> bool {
        let returns = block.iter().any(|stmt| match &stmt.kind {
            StmtKind::Return => true,
            StmtKind::If { then, otherwise, .. } => self.leaves(then) || self.leaves(otherwise),
            StmtKind::Switch { cases, default, .. } => {
                cases.iter().any(|(_, body)| self.leaves(body)) || self.leaves(default)
            }
            _ => false,
        });
        returns || self.exits(block)
    }

    fn simple(&mut self, stmt: &'a Stmt) {
        let on = self.known.on;
        let mut at = on;
        match &stmt.kind {
            StmtKind::Assign { to, slice, value } => {
                at = at.and(self.expr(value));
                let slot = &mut self.known.slots[to.index()];
                *slot = if slice.is_some() { at.and(*slot) } else { at };
            }
            StmtKind::SetValid { header, valid } => {
                let header = &self.pipeline.headers[header.index()];
                self.known.slots[header.valid.index()] = at;
                for field in header.fields.iter().filter(|_| !valid) {
                    self.known.slots[field.slot.index()] = at;
                }
            }
            StmtKind::Call { which, args, results } => {
                let known = &self.program.externs[which.index()];
                let unit = self.program.instance(*which).index();
                at = at.and(self.known.externs[unit]).and(self.known.ports[which.index()]);
                at = args.iter().fold(at, |at, a| at.and(self.expr(a)));
                self.known.externs[unit] = at;
                let busy = known.latency.max(1);
                self.known.ports[which.index()] = at.answered(busy);
                self.end = self.end.max(at.cycle.saturating_add(busy - 1));
                for to in results {
                    self.known.slots[to.index()] = at.answered(known.latency);
                }
            }
            StmtKind::ReadRegister { register, index, to } => {
                at = at.and(self.expr(index)).and(self.known.reads[register.index()]);
                self.known.reads[register.index()] = at.answered(MEMORY_LATENCY);
                // Not before what is read: in one cycle a memory gives what it had.
                let writes = &mut self.known.writes[register.index()];
                *writes = writes.and(at);
                self.known.slots[to.index()] = at.answered(MEMORY_LATENCY);
            }
            StmtKind::WriteRegister { register, index, value } => {
                at = at.and(self.expr(index)).and(self.expr(value));
                at = at.and(self.known.writes[register.index()]);
                for next in [&mut self.known.reads, &mut self.known.writes] {
                    next[register.index()] = at.answered(MEMORY_LATENCY);
                }
            }
            StmtKind::Count { index, .. } => at = at.and(self.expr(index)),
            _ => {}
        }
        self.steps.push(Step { stmt, at });
    }

    fn expr(&self, expr: &Expr) -> Ready {
        match &expr.kind {
            ExprKind::Const(_) => Ready::default(),
            ExprKind::Slot(slot) => self.known.slots[slot.index()],
            ExprKind::Unary(_, a) => self.expr(a).operator(),
            ExprKind::Binary(_, a, b) => self.expr(a).and(self.expr(b)).operator(),
            // Wires only.
            ExprKind::Slice(a, _) | ExprKind::Resize(a, _) => self.expr(a),
            ExprKind::Concat(a, b) => self.expr(a).and(self.expr(b)),
            ExprKind::Mux(on, a, b) => self.expr(on).and(self.expr(a)).and(self.expr(b)).operator(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::example::{ANSWER, KIND, LENGTH, PORT, binary, program, stmt};
    use crate::ir::{BinaryOp, ExternId, RegisterId};

    fn assign(to: SlotId, value: Expr) -> Stmt {
        stmt(StmtKind::Assign { to, slice: None, value })
    }

    fn call(arg: Expr) -> Stmt {
        stmt(StmtKind::Call { which: ExternId(0), args: vec![arg], results: vec![ANSWER] })
    }

    fn stages_of(control: Block) -> (Vec<u32>, u32, u32) {
        let mut program = program();
        program.pipelines[0].control = control;
        let all = stages(&program);
        let steps = all[0].steps.iter().map(|step| step.at.stage).collect();
        (steps, all[0].stages, all[0].cycles)
    }

    fn kind() -> Expr {
        Expr::slot(KIND, 8)
    }

    fn answer() -> Expr {
        Expr::slot(ANSWER, 16)
    }

    #[test]
    fn what_reads_an_answer_waits_for_it_and_nothing_else_does() {
        let control = vec![
            call(Expr::slot(LENGTH, 16)),
            assign(KIND, binary(BinaryOp::Add, kind(), kind(), 8)),
            assign(LENGTH, answer()),
            call(answer()),
            assign(LENGTH, answer()),
        ];
        // Two calls of two cycles each, one after the other.
        assert_eq!(stages_of(control), (vec![0, 0, 1, 1, 2], 3, 5));
    }

    #[test]
    fn a_condition_is_waited_for_and_a_slot_written_anew_is_not() {
        let on = binary(BinaryOp::Eq, answer(), Expr::constant(0, 16), 1);
        let then = vec![assign(PORT, Expr::constant(1, 9))];
        let control = vec![
            call(Expr::slot(LENGTH, 16)),
            stmt(StmtKind::If { on, then, otherwise: Vec::new() }),
            assign(
                KIND,
                Expr {
                    kind: ExprKind::Resize(
                        Box::new(Expr::slot(PORT, 9)),
                        crate::ir::Sign::Unsigned,
                    ),
                    width: 8,
                },
            ),
            assign(ANSWER, Expr::constant(0, 16)),
            assign(LENGTH, answer()),
        ];
        assert_eq!(stages_of(control).0, [0, 1, 1, 0, 0]);
    }

    #[test]
    fn what_follows_a_possible_return_waits_for_its_condition() {
        let on = binary(BinaryOp::Eq, answer(), Expr::constant(0, 16), 1);
        let leave = StmtKind::If { on, then: vec![stmt(StmtKind::Return)], otherwise: Vec::new() };
        let control = vec![
            stmt(StmtKind::Scope(vec![
                call(Expr::slot(LENGTH, 16)),
                stmt(leave),
                assign(PORT, Expr::constant(1, 9)),
            ])),
            assign(KIND, Expr::constant(1, 8)),
        ];
        assert_eq!(stages_of(control).0, [0, 1, 1, 0], "the scope ends what its return means");
    }

    #[test]
    fn a_register_keeps_the_order_of_its_accesses() {
        let write =
            |value| StmtKind::WriteRegister { register: RegisterId(0), index: kind(), value };
        let read = StmtKind::ReadRegister { register: RegisterId(0), index: kind(), to: LENGTH };
        let control = vec![
            call(Expr::slot(LENGTH, 16)),
            stmt(write(answer())),
            stmt(read),
            assign(PORT, Expr::constant(3, 9)),
        ];
        assert_eq!(stages_of(control).0, [0, 1, 2, 0]);
    }

    #[test]
    fn a_table_takes_a_stage_from_keys_to_actions() {
        let program = program();
        let all = stages(&program);
        let steps: Vec<u32> = all[0].steps.iter().map(|step| step.at.stage).collect();
        // Count, call, keys; the action; the register and the invalid header.
        assert_eq!(steps, [0, 0, 0, 1, 1, 1]);
        assert_eq!((all[0].stages, all[0].cycles), (2, 3));
    }
}
