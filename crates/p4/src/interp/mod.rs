//! The reference interpreter of [`crate::ir`]: it walks the statements as they stand.

mod eval;

use std::sync::Arc;

use crate::bits;
use crate::ir::{
    ActionId, Block, ErrorId, Expr, ExternId, HeaderId, NO_ERROR, NO_MATCH, PACKET_TOO_SHORT,
    Parser, Pipeline, PipelineId, Slice, SlotId, StateId, Stmt, StmtKind, TableId, Target,
    Transition, mask,
};
use crate::ir::{Direction, Program as Ir};
use crate::program::{Externs, Parsed, Program};
use crate::state::State;
use eval::eval;
pub(crate) use eval::{binary, signed};

/// A program with its state, interpreted.
#[derive(Clone, Debug)]
pub struct Machine {
    program: Arc<Ir>,
    state: State,
    /// Values of the pipeline's slots, kept between packets for its memory only.
    slots: Vec<u128>,
    scratch: Scratch,
}

/// Room for keys, arguments and results, so that nothing is allocated for each packet.
#[derive(Clone, Debug, Default)]
struct Scratch {
    args: Vec<u128>,
    results: Vec<u128>,
}

impl Machine {
    /// A program that [`check`](crate::ir::check()) accepts.
    #[must_use]
    pub fn new(program: Arc<Ir>) -> Self {
        let state = State::new(Arc::clone(&program));
        Self { program, state, slots: Vec::new(), scratch: Scratch::default() }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Arc<Ir> {
        &self.program
    }
}

impl<E: Externs + ?Sized> Program<E> for Machine {
    fn run(
        &mut self,
        pipeline: PipelineId,
        packet: &[u8],
        meta: &mut [u128],
        out: &mut Vec<u8>,
        externs: &mut E,
    ) -> Result<Parsed, ErrorId> {
        let pipeline = &self.program.pipelines[pipeline.index()];
        assert_eq!(meta.len(), pipeline.meta.len(), "metadata of {}", pipeline.name);
        self.slots.clear();
        self.slots.resize(pipeline.slots.len(), 0);
        for (known, value) in pipeline.meta.iter().zip(&*meta) {
            if known.direction != Direction::Out {
                let slot = known.slot.index();
                self.slots[slot] = value & mask(pipeline.slots[slot].width);
            }
        }
        let mut run = Run {
            program: &self.program,
            pipeline,
            state: &mut self.state,
            slots: &mut self.slots,
            scratch: &mut self.scratch,
            packet,
            cursor: 0,
            externs,
        };
        if let Some(parser) = &pipeline.parser {
            run.parse(parser)?;
        }
        run.block(&pipeline.control);
        let bytes = run.cursor.div_ceil(8);
        for (known, value) in pipeline.meta.iter().zip(meta) {
            if known.direction != Direction::In {
                *value = self.slots[known.slot.index()];
            }
        }
        let slots = &self.slots;
        deparse(pipeline, out, |header, field| {
            let header = &pipeline.headers[pipeline.deparser[header].index()];
            slots[field.map_or(header.valid, |field| header.fields[field].slot).index()]
        });
        Ok(Parsed { bytes })
    }

    fn duplicate(&self) -> Box<dyn Program<E>> {
        Box::new(self.clone())
    }

    fn state(&mut self) -> &mut State {
        &mut self.state
    }
}

/// Replaces `out` by the valid headers, one after the other; zeros fill the last byte. `of` gives
/// the valid bit and the fields of a header by its place in the deparser.
pub(crate) fn deparse(
    pipeline: &Pipeline,
    out: &mut Vec<u8>,
    of: impl Fn(usize, Option<usize>) -> u128,
) {
    out.clear();
    let headers = pipeline.deparser.iter().map(|header| &pipeline.headers[header.index()]);
    let mut at = 0;
    for (number, header) in headers.enumerate().filter(|(number, _)| of(*number, None) == 1) {
        let end = at + header.bits as usize;
        out.resize(end.div_ceil(8), 0);
        for (place, field) in header.fields.iter().enumerate() {
            let width = pipeline.slots[field.slot.index()].width;
            bits::put(out, at + field.offset as usize, width, of(number, Some(place)));
        }
        at = end;
    }
}

/// How a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// At its end.
    Next,
    /// By a return, which leaves the innermost action, scope or control.
    Return,
    /// By an exit, which leaves the control.
    Exit,
}

/// One packet in one pipeline.
struct Run<'a, E: ?Sized> {
    program: &'a Ir,
    pipeline: &'a Pipeline,
    state: &'a mut State,
    slots: &'a mut [u128],
    scratch: &'a mut Scratch,
    packet: &'a [u8],
    /// Bits of the packet that the parser has taken.
    cursor: usize,
    externs: &'a mut E,
}

impl<E: Externs + ?Sized> Run<'_, E> {
    fn parse(&mut self, parser: &Parser) -> Result<(), ErrorId> {
        let mut at = StateId(0);
        loop {
            let state = &parser.states[at.index()];
            self.parser_block(&state.body)?;
            let to = match &state.transition {
                Transition::To(to) => *to,
                Transition::Select { on, cases } => {
                    let case = cases.iter().find(|case| {
                        let mut pairs = on.iter().zip(&case.patterns);
                        pairs.all(|(e, pattern)| pattern.matches(self.eval(e)))
                    });
                    case.ok_or(NO_MATCH)?.to
                }
            };
            match to {
                Target::State(next) => at = next,
                Target::Accept => return Ok(()),
                Target::Reject => return Err(NO_ERROR),
            }
        }
    }

    /// Statements of a parser: those that may reject, and those that are as in a control.
    fn parser_block(&mut self, block: &Block) -> Result<(), ErrorId> {
        for stmt in block {
            match &stmt.kind {
                StmtKind::Extract(header) => self.extract(*header)?,
                StmtKind::Lookahead(to) => {
                    let width = self.pipeline.slots[to.index()].width;
                    self.has(u128::from(width))?;
                    self.slots[to.index()] = bits::get(self.packet, self.cursor, width);
                }
                StmtKind::Advance(by) => self.cursor += self.has(self.eval(by))?,
                StmtKind::Verify { on, error } => {
                    if self.eval(on) == 0 {
                        return Err(*error);
                    }
                }
                StmtKind::If { .. } => {
                    let body = self.chosen(&stmt.kind);
                    self.parser_block(body)?;
                }
                _ => {
                    // Nothing leaves a parser but what rejects.
                    let flow = self.stmt(stmt);
                    debug_assert!(flow == Flow::Next, "{flow:?} in a parser");
                }
            }
        }
        Ok(())
    }

    /// Whether so many bits are left; as many.
    fn has(&self, wanted: u128) -> Result<usize, ErrorId> {
        let left = self.packet.len() * 8 - self.cursor;
        let wanted = usize::try_from(wanted).ok().filter(|wanted| *wanted <= left);
        wanted.ok_or(PACKET_TOO_SHORT)
    }

    fn extract(&mut self, header: HeaderId) -> Result<(), ErrorId> {
        let header = &self.pipeline.headers[header.index()];
        let bits = self.has(u128::from(header.bits))?;
        for field in &header.fields {
            let (slot, at) = (field.slot.index(), self.cursor + field.offset as usize);
            self.slots[slot] = bits::get(self.packet, at, self.pipeline.slots[slot].width);
        }
        self.slots[header.valid.index()] = 1;
        self.cursor += bits;
        Ok(())
    }

    fn block(&mut self, block: &Block) -> Flow {
        for stmt in block {
            let flow = self.stmt(stmt);
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    fn stmt(&mut self, stmt: &Stmt) -> Flow {
        match &stmt.kind {
            StmtKind::Return => return Flow::Return,
            StmtKind::Exit => return Flow::Exit,
            StmtKind::If { .. } | StmtKind::Switch { .. } => {
                let body = self.chosen(&stmt.kind);
                return self.block(body);
            }
            StmtKind::Scope(body) => return self.within(body),
            StmtKind::Run { action, args } => {
                self.evaluate(args);
                for at in 0..args.len() {
                    let param = self.pipeline.actions[action.index()].params[at];
                    self.slots[param.index()] = self.scratch.args[at];
                }
                return self.action(*action);
            }
            StmtKind::Apply { table, hit, action_run } => {
                return self.apply(*table, *hit, *action_run);
            }
            StmtKind::Assign { to, slice, value } => self.assign(*to, *slice, value),
            StmtKind::SetValid { header, valid } => self.set_valid(*header, *valid),
            StmtKind::Call { which, args, results } => self.call(*which, args, results),
            StmtKind::ReadRegister { register, index, to } => {
                self.slots[to.index()] = self.state.register(*register, self.eval(index));
            }
            StmtKind::WriteRegister { register, index, value } => {
                let (index, value) = (self.eval(index), self.eval(value));
                self.state.set_register(*register, index, value);
            }
            StmtKind::Count { counter, index } => {
                self.state.count(*counter, self.eval(index), self.packet.len());
            }
            // Only in parsers: see `parser_block`.
            StmtKind::Extract(_)
            | StmtKind::Lookahead(_)
            | StmtKind::Advance(_)
            | StmtKind::Verify { .. } => {}
        }
        Flow::Next
    }

    /// The body that a condition or a switch leads to.
    fn chosen<'s>(&self, stmt: &'s StmtKind) -> &'s Block {
        const NOTHING: &Block = &Block::new();
        match stmt {
            StmtKind::If { on, then, otherwise } => {
                if self.eval(on) == 1 {
                    then
                } else {
                    otherwise
                }
            }
            StmtKind::Switch { on, cases, default } => {
                let value = self.eval(on);
                let case = cases.iter().find(|(values, _)| values.contains(&value));
                case.map_or(default, |(_, body)| body)
            }
            _ => NOTHING,
        }
    }

    /// A body that a return leaves.
    fn within(&mut self, body: &Block) -> Flow {
        match self.block(body) {
            Flow::Return => Flow::Next,
            flow => flow,
        }
    }

    fn action(&mut self, action: ActionId) -> Flow {
        self.within(&self.pipeline.actions[action.index()].body)
    }

    fn apply(&mut self, id: TableId, hit: Option<SlotId>, action_run: Option<SlotId>) -> Flow {
        let table = &self.program.tables[id.index()];
        self.scratch.args.clear();
        for key in &table.keys {
            self.scratch.args.push(eval(&key.value, self.slots));
        }
        let (choice, found) = self.state.look_up(id, &self.scratch.args);
        let number = choice.action;
        let action = table.actions[usize::from(number)].action;
        for (param, arg) in self.pipeline.actions[action.index()].params.iter().zip(&choice.args) {
            self.slots[param.index()] = *arg;
        }
        let flow = self.action(action);
        if flow == Flow::Exit {
            return flow;
        }
        if let Some(to) = hit {
            self.slots[to.index()] = u128::from(found);
        }
        if let Some(to) = action_run {
            self.slots[to.index()] = u128::from(number);
        }
        flow
    }

    fn assign(&mut self, to: SlotId, slice: Option<Slice>, value: &Expr) {
        let value = self.eval(value);
        let slot = &mut self.slots[to.index()];
        *slot = match slice {
            None => value,
            Some(slice) => (*slot & !(mask(slice.width()) << slice.low)) | (value << slice.low),
        };
    }

    fn set_valid(&mut self, header: HeaderId, valid: bool) {
        let header = &self.pipeline.headers[header.index()];
        self.slots[header.valid.index()] = u128::from(valid);
        for field in header.fields.iter().filter(|_| !valid) {
            self.slots[field.slot.index()] = 0;
        }
    }

    fn call(&mut self, which: ExternId, args: &[Expr], results: &[SlotId]) {
        self.evaluate(args);
        self.scratch.results.clear();
        self.scratch.results.resize(results.len(), 0);
        self.externs.call(which, &self.scratch.args, &mut self.scratch.results);
        for (to, value) in results.iter().zip(&self.scratch.results) {
            self.slots[to.index()] = value & mask(self.pipeline.slots[to.index()].width);
        }
    }

    /// Values of arguments, into the scratch.
    fn evaluate(&mut self, args: &[Expr]) {
        self.scratch.args.clear();
        for arg in args {
            self.scratch.args.push(eval(arg, self.slots));
        }
    }

    fn eval(&self, expr: &Expr) -> u128 {
        eval(expr, self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{CounterId, RegisterId, example};
    use crate::state::Count;

    /// Answers with the argument and one more, and remembers that it was asked.
    #[derive(Default)]
    struct Ask(Vec<u128>);

    impl Externs for Ask {
        fn call(&mut self, which: ExternId, args: &[u128], results: &mut [u128]) {
            assert_eq!(which, ExternId(0));
            self.0.push(args[0]);
            // Too wide on purpose.
            results[0] = (1 << 16) + args[0] + 1;
        }
    }

    /// What becomes of a packet: result, port, headers.
    fn run(machine: &mut Machine, packet: &[u8]) -> (Result<Parsed, ErrorId>, u128, Vec<u8>) {
        let (mut meta, mut out) = ([77], vec![9]);
        let mut ask = Ask::default();
        let result = machine.run(PipelineId(0), packet, &mut meta, &mut out, &mut ask);
        assert_eq!(ask.0.len(), usize::from(result.is_ok()));
        (result, meta[0], out)
    }

    #[test]
    fn a_packet_goes_through_parser_control_and_deparser() {
        let mut machine = Machine::new(Arc::new(example::program()));
        let known = run(&mut machine, &[2, 0x12, 0x34, 0xaa]);
        assert_eq!(known, (Ok(Parsed { bytes: 3 }), 0x22, vec![2, 0x12, 0x34]));
        let unknown = run(&mut machine, &[3, 0x12, 0x34]);
        assert_eq!(unknown, (Ok(Parsed { bytes: 3 }), 77, vec![]), "invalid, so not emitted");
        let state = <Machine as Program<Ask>>::state(&mut machine);
        assert_eq!(state.register(RegisterId(0), 2), 0x1235, "the answer, cut to its width");
        assert_eq!(state.counted(CounterId(0), 2), Count { packets: 1, bytes: 4 });
    }

    #[test]
    fn what_the_parser_rejects_changes_nothing() {
        let mut machine = Machine::new(Arc::new(example::program()));
        let untouched = |error| (Err(error), 77, vec![9]);
        assert_eq!(run(&mut machine, &[2, 0x12]), untouched(PACKET_TOO_SHORT));
        assert_eq!(run(&mut machine, &[]), untouched(PACKET_TOO_SHORT));
        assert_eq!(run(&mut machine, &[1, 0, 0]), untouched(ErrorId(3)), "verify");
        assert_eq!(run(&mut machine, &[4, 0, 1]), untouched(NO_MATCH));
        assert_eq!(run(&mut machine, &[0x85, 0, 1]), untouched(NO_ERROR), "to reject");
    }
}
