//! From statements to nodes: what each slot holds on each way through parser and control.

use super::super::{ACTION_WIDTH, BinaryOp, Direction, Place, Sign};
use super::super::{
    ActionId, Block, ERROR_WIDTH, ErrorId, Expr, ExprKind, Fault, HeaderId, NO_ERROR, NO_MATCH,
    PACKET_TOO_SHORT, Parser, Pattern, Pipeline, Program, Slice, SlotId, StateId, Stmt, StmtKind,
    Table, TableId, Target, Transition, mask,
};
use super::conditions::{ALWAYS, Cond, Conditions, NEVER};
use super::graph::{AccessId, CURSOR_WIDTH, Graph, LENGTH_WIDTH, Node, NodeId};
use super::{Outputs, Port};

/// Most statements on all ways through a pipeline, actions as often as they are called.
const MOST_STATEMENTS: u32 = 1 << 18;

/// An access as the source has it.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) port: Port,
    /// Where packets come to it.
    pub(super) on: Cond,
    pub(super) args: Vec<NodeId>,
    /// Widths of its answers.
    pub(super) results: Vec<u16>,
    pub(super) place: Place,
}

/// What is known at a point of a pipeline.
#[derive(Clone, Debug)]
struct Frame {
    /// Where packets come here.
    on: Cond,
    slots: Vec<NodeId>,
    /// Bits of the packet that the parser has taken.
    cursor: NodeId,
}

/// How statements end.
#[derive(Debug, Default)]
struct Ends {
    /// At their end.
    next: Option<Frame>,
    /// By a return.
    returned: Option<Frame>,
    /// By an exit.
    exited: Option<Frame>,
}

/// A pipeline as it is translated.
pub(super) struct Build<'a> {
    program: &'a Program,
    pipeline: &'a Pipeline,
    pub(super) graph: Graph,
    pub(super) conditions: Conditions,
    pub(super) sites: Vec<Site>,
    /// Where packets are refused, and why.
    refused: Vec<(Cond, ErrorId)>,
    statements: u32,
}

type Done<T> = Result<T, Fault>;

/// What follows on one of several ways.
#[derive(Clone, Copy)]
enum Way<'b> {
    Block(&'b Block),
    Action(ActionId, &'b [NodeId]),
}

impl<'a> Build<'a> {
    pub(super) fn new(program: &'a Program, pipeline: &'a Pipeline) -> Self {
        Self {
            program,
            pipeline,
            graph: Graph::default(),
            conditions: Conditions::new(),
            sites: Vec::new(),
            refused: Vec::new(),
            statements: 0,
        }
    }

    /// All of it, and what comes out.
    pub(super) fn run(&mut self) -> Done<Outputs> {
        let mut frame = self.begin();
        if let Some(parser) = &self.pipeline.parser {
            frame = self.parse(parser, frame)?;
        }
        let accepted = frame.on;
        let ends = if accepted == NEVER {
            Ends { next: Some(frame), ..Ends::default() }
        } else {
            self.block(frame, &self.pipeline.control)?
        };
        let end = self.either(ends.next, ends.returned);
        let end = self.either(end, ends.exited);
        let end = end.unwrap_or_else(|| self.begin());
        let outputs = self.outputs(accepted, &end);
        self.limits(Place::default())?;
        Ok(outputs)
    }

    /// What the caller has set, and zeros.
    fn begin(&mut self) -> Frame {
        let slots = self.pipeline.slots.iter();
        let mut slots: Vec<NodeId> = slots.map(|s| self.graph.number(0, s.width)).collect();
        for (at, meta) in (0..).zip(&self.pipeline.meta) {
            if meta.direction != Direction::Out {
                let width = self.pipeline.slots[meta.slot.index()].width;
                let input = self.graph.node(Node::Input(at), width);
                self.graph.name(input, meta.slot);
                slots[meta.slot.index()] = input;
            }
        }
        Frame { on: ALWAYS, slots, cursor: self.graph.number(0, CURSOR_WIDTH) }
    }

    fn outputs(&mut self, accepted: Cond, end: &Frame) -> Outputs {
        self.graph.here = Place::default();
        let mut error = self.graph.number(NO_ERROR.0.into(), ERROR_WIDTH);
        for (on, why) in std::mem::take(&mut self.refused) {
            let number = self.graph.number(why.0.into(), ERROR_WIDTH);
            let on = self.conditions.node(&mut self.graph, on);
            error = self.graph.mux(on, number, error);
        }
        let accepted = self.conditions.node(&mut self.graph, accepted);
        let seven = self.graph.number(7, CURSOR_WIDTH);
        let over = self.graph.node(Node::Binary(BinaryOp::Add, end.cursor, seven), CURSOR_WIDTH);
        let bytes = self.graph.slice(over, 3, LENGTH_WIDTH);
        let slot = |id: SlotId| end.slots[id.index()];
        let metas = self.pipeline.meta.iter();
        let meta = metas.map(|m| (m.direction != Direction::In).then(|| slot(m.slot))).collect();
        let headers = self.pipeline.deparser.iter().map(|header| {
            let header = &self.pipeline.headers[header.index()];
            (slot(header.valid), header.fields.iter().map(|field| slot(field.slot)).collect())
        });
        Outputs { accepted, error, bytes, meta, headers: headers.collect() }
    }

    // ---- Ways

    /// After two ways that exclude one another.
    fn either(&mut self, one: Option<Frame>, other: Option<Frame>) -> Option<Frame> {
        let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
        let any = self.conditions.or(one.on, other.on);
        let first = self.conditions.restrict(one.on, any);
        let on = self.conditions.node(&mut self.graph, first);
        Some(self.join(on, one, other))
    }

    /// After two ways, the first of which is taken where a node is 1.
    fn join(&mut self, on: NodeId, one: &Frame, other: &Frame) -> Frame {
        let pairs = one.slots.iter().zip(&other.slots);
        let slots = pairs.map(|(a, b)| if a == b { *a } else { self.graph.mux(on, *a, *b) });
        Frame {
            slots: slots.collect(),
            on: self.conditions.or(one.on, other.on),
            cursor: self.graph.mux(on, one.cursor, other.cursor),
        }
    }

    fn joined(&mut self, on: NodeId, one: Option<Frame>, other: Option<Frame>) -> Option<Frame> {
        let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
        Some(self.join(on, one, other))
    }

    /// The first of several ways whose node of one bit is 1, else the last.
    fn one_of(&mut self, frame: Frame, ways: &[(NodeId, Way<'_>)], last: Way<'_>) -> Done<Ends> {
        let (mut rest, mut taken) = (frame, Vec::new());
        for (on, way) in ways {
            self.limits(self.graph.here)?;
            let cond = self.conditions.of(&self.graph, *on);
            let here = self.conditions.and(rest.on, cond);
            let not = self.conditions.not(cond);
            let there = self.conditions.and(rest.on, not);
            if here == NEVER {
                continue;
            }
            let ends = self.way(Frame { on: here, ..rest.clone() }, *way)?;
            taken.push((*on, ends));
            rest.on = there;
            if there == NEVER {
                break;
            }
        }
        let mut all = match rest.on {
            NEVER => taken.pop().map(|(_, ends)| ends).unwrap_or_default(),
            _ => self.way(rest, last)?,
        };
        for (on, ends) in taken.into_iter().rev() {
            all = Ends {
                next: self.joined(on, ends.next, all.next),
                returned: self.joined(on, ends.returned, all.returned),
                exited: self.joined(on, ends.exited, all.exited),
            };
        }
        Ok(all)
    }

    fn way(&mut self, frame: Frame, way: Way<'_>) -> Done<Ends> {
        match way {
            Way::Block(block) => self.block(frame, block),
            Way::Action(action, args) => self.action(frame, action, args),
        }
    }

    fn block(&mut self, frame: Frame, block: &Block) -> Done<Ends> {
        let mut all = Ends { next: Some(frame), ..Ends::default() };
        for stmt in block {
            let Some(frame) = all.next else { break };
            let ends = self.stmt(frame, stmt)?;
            all = Ends {
                next: ends.next,
                returned: self.either(all.returned, ends.returned),
                exited: self.either(all.exited, ends.exited),
            };
        }
        Ok(all)
    }

    /// What a return leaves.
    fn within(&mut self, frame: Frame, block: &Block) -> Done<Ends> {
        let ends = self.block(frame, block)?;
        let next = self.either(ends.next, ends.returned);
        Ok(Ends { next, returned: None, exited: ends.exited })
    }

    fn limits(&mut self, place: Place) -> Done<()> {
        self.statements += 1;
        if self.statements > MOST_STATEMENTS || self.conditions.too_many() {
            let text = "a pipeline with too many ways through it for a circuit: split its actions";
            return Err(Fault { place, text: text.into() });
        }
        Ok(())
    }

    fn stmt(&mut self, frame: Frame, stmt: &Stmt) -> Done<Ends> {
        self.limits(stmt.place)?;
        self.graph.here = stmt.place;
        match &stmt.kind {
            StmtKind::Return => Ok(Ends { returned: Some(frame), ..Ends::default() }),
            StmtKind::Exit => Ok(Ends { exited: Some(frame), ..Ends::default() }),
            StmtKind::If { on, then, otherwise } => {
                let on = self.expr(&frame, on);
                self.one_of(frame, &[(on, Way::Block(then))], Way::Block(otherwise))
            }
            StmtKind::Switch { on, cases, default } => {
                let on = self.expr(&frame, on);
                self.switch(frame, on, cases, default)
            }
            StmtKind::Scope(body) => self.within(frame, body),
            StmtKind::Run { action, args } => {
                let args: Vec<NodeId> = args.iter().map(|arg| self.expr(&frame, arg)).collect();
                self.action(frame, *action, &args)
            }
            StmtKind::Apply { table, hit, action_run } => {
                self.apply(frame, *table, [*hit, *action_run], stmt.place)
            }
            StmtKind::Extract(_)
            | StmtKind::Lookahead(_)
            | StmtKind::Advance(_)
            | StmtKind::Verify { .. } => Ok(self.parsing(frame, &stmt.kind)),
            _ => {
                let mut frame = frame;
                self.simple(&mut frame, stmt);
                Ok(Ends { next: Some(frame), ..Ends::default() })
            }
        }
    }

    fn switch(
        &mut self,
        frame: Frame,
        on: NodeId,
        cases: &[(Vec<u128>, Block)],
        default: &Block,
    ) -> Done<Ends> {
        let width = self.graph.width(on);
        let mut ways = Vec::new();
        for (values, body) in cases {
            let mut is = self.graph.number(0, 1);
            for value in values {
                let value = self.graph.number(*value, width);
                let same = self.graph.node(Node::Binary(BinaryOp::Eq, on, value), 1);
                is = self.graph.node(Node::Binary(BinaryOp::Or, is, same), 1);
            }
            ways.push((is, Way::Block(body)));
        }
        self.one_of(frame, &ways, Way::Block(default))
    }

    fn action(&mut self, mut frame: Frame, action: ActionId, args: &[NodeId]) -> Done<Ends> {
        let action = &self.pipeline.actions[action.index()];
        for (param, arg) in action.params.iter().zip(args) {
            frame.slots[param.index()] = *arg;
            self.graph.name(*arg, *param);
        }
        self.within(frame, &action.body)
    }

    // ---- Tables

    fn apply(
        &mut self,
        frame: Frame,
        id: TableId,
        told: [Option<SlotId>; 2],
        place: Place,
    ) -> Done<Ends> {
        let table = &self.program.tables[id.index()];
        let keys: Vec<NodeId> =
            table.keys.iter().map(|key| self.expr(&frame, &key.value)).collect();
        let mut results = vec![1, ACTION_WIDTH];
        results.extend(params(self.pipeline, table).map(|(_, width)| width));
        // Whether or not a packet comes here: that changes nothing.
        let site = self.access(ALWAYS, Port::LookUp(id), keys, results, place);
        let answers = [self.result(site, 0), self.result(site, 1)];
        let mut first = 2;
        let mut runs = Vec::new();
        for action in &table.actions {
            let count = self.pipeline.actions[action.action.index()].params.len() as u32;
            let args: Vec<NodeId> = (0..count).map(|n| self.result(site, first + n)).collect();
            first += count;
            runs.push((action.action, args));
        }
        let mut ends = self.chosen(frame, answers[1], &runs)?;
        // Also where the action has returned, but not where it has left the control.
        if let Some(frame) = &mut ends.next {
            for (slot, answer) in told.iter().zip(answers) {
                if let Some(slot) = slot {
                    frame.slots[slot.index()] = answer;
                    self.graph.name(answer, *slot);
                }
            }
        }
        Ok(ends)
    }

    /// The action of this number.
    fn chosen(
        &mut self,
        frame: Frame,
        number: NodeId,
        runs: &[(ActionId, Vec<NodeId>)],
    ) -> Done<Ends> {
        let Some(((last, args), others)) = runs.split_last() else {
            return Ok(Ends { next: Some(frame), ..Ends::default() });
        };
        let mut ways = Vec::new();
        for (at, (action, args)) in (0..).zip(others) {
            let wanted = self.graph.number(at, ACTION_WIDTH);
            let is = self.graph.node(Node::Binary(BinaryOp::Eq, number, wanted), 1);
            ways.push((is, Way::Action(*action, args)));
        }
        self.one_of(frame, &ways, Way::Action(*last, args))
    }

    // ---- Statements that go on

    fn simple(&mut self, frame: &mut Frame, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Assign { to, slice, value } => self.assign(frame, *to, *slice, value),
            StmtKind::SetValid { header, valid } => self.set_valid(frame, *header, *valid),
            StmtKind::Call { which, args, results } => {
                let known = &self.program.externs[which.index()];
                let args = args.iter().map(|arg| self.expr(frame, arg)).collect();
                let widths = known.results.iter().map(|value| value.width).collect();
                let site = self.access(frame.on, Port::Call(*which), args, widths, stmt.place);
                self.take(frame, site, results);
            }
            StmtKind::ReadRegister { register, index, to } => {
                let width = self.program.registers[register.index()].width;
                let args = vec![self.expr(frame, index)];
                let port = Port::Read(*register);
                let site = self.access(frame.on, port, args, vec![width], stmt.place);
                self.take(frame, site, &[*to]);
            }
            StmtKind::WriteRegister { register, index, value } => {
                let args = vec![self.expr(frame, index), self.expr(frame, value)];
                self.access(frame.on, Port::Write(*register), args, Vec::new(), stmt.place);
            }
            StmtKind::Count { counter, index } => {
                let length = self.graph.node(Node::Length, LENGTH_WIDTH);
                let args = vec![self.expr(frame, index), length];
                self.access(frame.on, Port::Count(*counter), args, Vec::new(), stmt.place);
            }
            _ => {}
        }
    }

    fn access(
        &mut self,
        on: Cond,
        port: Port,
        args: Vec<NodeId>,
        results: Vec<u16>,
        place: Place,
    ) -> AccessId {
        self.sites.push(Site { port, on, args, results, place });
        AccessId(self.sites.len() as u32 - 1)
    }

    fn result(&mut self, site: AccessId, at: u32) -> NodeId {
        let width = self.sites[site.index()].results[at as usize];
        self.graph.node(Node::Result(site, at), width)
    }

    /// What an access answers goes into slots.
    fn take(&mut self, frame: &mut Frame, site: AccessId, slots: &[SlotId]) {
        for (at, slot) in (0..).zip(slots) {
            let result = self.result(site, at);
            self.graph.name(result, *slot);
            frame.slots[slot.index()] = result;
        }
    }

    fn assign(&mut self, frame: &mut Frame, to: SlotId, slice: Option<Slice>, value: &Expr) {
        let mut value = self.expr(frame, value);
        if let Some(Slice { high, low }) = slice {
            let old = frame.slots[to.index()];
            let width = self.graph.width(old);
            if low > 0 {
                let rest = self.graph.slice(old, 0, low);
                value = self.graph.node(Node::Concat(value, rest), high + 1);
            }
            if high + 1 < width {
                let rest = self.graph.slice(old, high + 1, width - high - 1);
                value = self.graph.node(Node::Concat(rest, value), width);
            }
        }
        self.graph.name(value, to);
        frame.slots[to.index()] = value;
    }

    fn set_valid(&mut self, frame: &mut Frame, header: HeaderId, valid: bool) {
        let header = &self.pipeline.headers[header.index()];
        frame.slots[header.valid.index()] = self.graph.number(valid.into(), 1);
        for field in header.fields.iter().filter(|_| !valid) {
            let slot = field.slot.index();
            frame.slots[slot] = self.graph.number(0, self.pipeline.slots[slot].width);
        }
    }

    fn expr(&mut self, frame: &Frame, expr: &Expr) -> NodeId {
        let node = match &expr.kind {
            ExprKind::Const(value) => return self.graph.number(*value, expr.width),
            ExprKind::Slot(slot) => return frame.slots[slot.index()],
            ExprKind::Unary(op, a) => Node::Unary(*op, self.expr(frame, a)),
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.expr(frame, a), self.expr(frame, b));
                Node::Binary(*op, a, b)
            }
            ExprKind::Slice(a, slice) => Node::Slice(self.expr(frame, a), slice.low),
            ExprKind::Concat(a, b) => {
                let (a, b) = (self.expr(frame, a), self.expr(frame, b));
                Node::Concat(a, b)
            }
            ExprKind::Resize(a, sign) => Node::Resize(self.expr(frame, a), *sign),
            ExprKind::Mux(on, a, b) => {
                let (on, a, b) = (self.expr(frame, on), self.expr(frame, a), self.expr(frame, b));
                Node::Mux(on, a, b)
            }
        };
        self.graph.node(node, expr.width)
    }

    // ---- Parsers

    /// Where packets are accepted.
    fn parse(&mut self, parser: &Parser, frame: Frame) -> Done<Frame> {
        let mut waiting: Vec<Option<Frame>> = vec![None; parser.states.len()];
        let nowhere = Frame { on: NEVER, ..frame.clone() };
        waiting[0] = Some(frame);
        let mut accepted = None;
        for at in in_order(parser) {
            let Some(frame) = waiting[at].take() else { continue };
            let state = &parser.states[at];
            let ends = self.block(frame, &state.body)?;
            let Some(frame) = ends.next else { continue };
            self.limits(state.place)?;
            self.graph.here = state.place;
            for (target, frame) in self.transition(frame, &state.transition) {
                let to = match target {
                    Target::State(StateId(to)) => &mut waiting[to as usize],
                    Target::Accept => &mut accepted,
                    Target::Reject => {
                        self.refused.push((frame.on, NO_ERROR));
                        continue;
                    }
                };
                let before = to.take();
                let joined = self.either(before, Some(frame));
                match target {
                    Target::State(StateId(to)) => waiting[to as usize] = joined,
                    _ => accepted = joined,
                }
            }
        }
        Ok(accepted.unwrap_or(nowhere))
    }

    /// Where a state leads, and what is known there.
    fn transition(&mut self, frame: Frame, transition: &Transition) -> Vec<(Target, Frame)> {
        let (on, cases) = match transition {
            Transition::To(to) => return vec![(*to, frame)],
            Transition::Select { on, cases } => (on, cases),
        };
        let on: Vec<NodeId> = on.iter().map(|e| self.expr(&frame, e)).collect();
        let (mut left, mut found) = (frame.on, Vec::new());
        for case in cases {
            let mut is = self.graph.number(1, 1);
            for (value, pattern) in on.iter().zip(&case.patterns) {
                let one = self.matches(*value, *pattern);
                is = self.graph.node(Node::Binary(BinaryOp::And, is, one), 1);
            }
            let is = self.conditions.of(&self.graph, is);
            let here = self.conditions.and(left, is);
            let not = self.conditions.not(is);
            left = self.conditions.and(left, not);
            if here != NEVER {
                found.push((case.to, Frame { on: here, ..frame.clone() }));
            }
        }
        if left != NEVER {
            self.refused.push((left, NO_MATCH));
        }
        found
    }

    fn matches(&mut self, value: NodeId, pattern: Pattern) -> NodeId {
        let width = self.graph.width(value);
        let compare = |build: &mut Self, op, a, number| {
            let number = build.graph.number(number, width);
            build.graph.node(Node::Binary(op, a, number), 1)
        };
        match pattern {
            Pattern::Any => self.graph.number(1, 1),
            Pattern::Value(wanted) => compare(self, BinaryOp::Eq, value, wanted),
            Pattern::Mask { value: wanted, mask: bits } => {
                let bits = self.graph.number(bits & mask(width), width);
                let part = self.graph.node(Node::Binary(BinaryOp::And, value, bits), width);
                compare(self, BinaryOp::Eq, part, wanted)
            }
            Pattern::Range { low, high } => {
                let above = compare(self, BinaryOp::Ge(Sign::Unsigned), value, low);
                let below = compare(self, BinaryOp::Le(Sign::Unsigned), value, high);
                self.graph.node(Node::Binary(BinaryOp::And, above, below), 1)
            }
        }
    }

    /// What only parsers have. Where it refuses the packet, nothing follows.
    fn parsing(&mut self, mut frame: Frame, stmt: &StmtKind) -> Ends {
        let none = |build: &mut Self, width| build.graph.number(0, width);
        let (holds, why) = match stmt {
            StmtKind::Extract(header) => {
                let bits = self.pipeline.headers[header.index()].bits;
                let by = self.graph.number(bits.into(), CURSOR_WIDTH);
                let zero = none(self, 1);
                (self.has(frame.cursor, by, zero), PACKET_TOO_SHORT)
            }
            StmtKind::Lookahead(to) => {
                let bits = self.pipeline.slots[to.index()].width;
                let by = self.graph.number(bits.into(), CURSOR_WIDTH);
                let zero = none(self, 1);
                (self.has(frame.cursor, by, zero), PACKET_TOO_SHORT)
            }
            StmtKind::Advance(by) => {
                let (by, far) = self.advance(&frame, by);
                (self.has(frame.cursor, by, far), PACKET_TOO_SHORT)
            }
            StmtKind::Verify { on, error } => (self.expr(&frame, on), *error),
            _ => return Ends { next: Some(frame), ..Ends::default() },
        };
        let cond = self.conditions.of(&self.graph, holds);
        let not = self.conditions.not(cond);
        let refused = self.conditions.and(frame.on, not);
        if refused != NEVER {
            self.refused.push((refused, why));
        }
        frame.on = self.conditions.and(frame.on, cond);
        if frame.on == NEVER {
            return Ends::default();
        }
        self.moved(&mut frame, stmt);
        Ends { next: Some(frame), ..Ends::default() }
    }

    /// How far to go on: as a position, and whether that is beyond all packets.
    fn advance(&mut self, frame: &Frame, by: &Expr) -> (NodeId, NodeId) {
        /// Positions in a packet.
        const BITS: u16 = LENGTH_WIDTH + 3;
        let by = self.expr(frame, by);
        let width = self.graph.width(by);
        let mut far = self.graph.number(0, 1);
        if width > BITS {
            let above = self.graph.slice(by, BITS, width - BITS);
            let zero = self.graph.number(0, width - BITS);
            far = self.graph.node(Node::Binary(BinaryOp::Ne, above, zero), 1);
        }
        let near = self.graph.slice(by, 0, width.min(BITS));
        (self.graph.node(Node::Resize(near, Sign::Unsigned), CURSOR_WIDTH), far)
    }

    /// Whether the packet has so many bits more.
    fn has(&mut self, cursor: NodeId, by: NodeId, far: NodeId) -> NodeId {
        let end = self.graph.node(Node::Binary(BinaryOp::Add, cursor, by), CURSOR_WIDTH);
        let fits = self.fits(end);
        let near = self.graph.not(far, 1);
        self.graph.node(Node::Binary(BinaryOp::And, near, fits), 1)
    }

    /// Whether a position is within the packet; a choice of numbers compares numbers.
    fn fits(&mut self, end: NodeId) -> NodeId {
        let length = self.graph.node(Node::Length, LENGTH_WIDTH);
        match self.graph.value(end).node {
            Node::Const(bits) => {
                let bytes = bits.div_ceil(8);
                if bytes > mask(LENGTH_WIDTH) {
                    return self.graph.number(0, 1);
                }
                let bytes = self.graph.number(bytes, LENGTH_WIDTH);
                let enough = Node::Binary(BinaryOp::Ge(Sign::Unsigned), length, bytes);
                self.graph.node(enough, 1)
            }
            _ => {
                let zeros = self.graph.number(0, 3);
                let bits = self.graph.node(Node::Concat(length, zeros), LENGTH_WIDTH + 3);
                let bits = self.graph.node(Node::Resize(bits, Sign::Unsigned), CURSOR_WIDTH);
                self.graph.node(Node::Binary(BinaryOp::Le(Sign::Unsigned), end, bits), 1)
            }
        }
    }

    /// What a parser's statement takes from the packet that has enough.
    fn moved(&mut self, frame: &mut Frame, stmt: &StmtKind) {
        match stmt {
            StmtKind::Extract(header) => {
                let header = &self.pipeline.headers[header.index()];
                for field in &header.fields {
                    let at = self.position(frame.cursor, field.offset);
                    self.read(frame, at, field.slot);
                }
                frame.slots[header.valid.index()] = self.graph.number(1, 1);
                frame.cursor = self.position(frame.cursor, header.bits);
            }
            StmtKind::Lookahead(to) => self.read(frame, frame.cursor, *to),
            StmtKind::Advance(by) => {
                let (by, _) = self.advance(frame, by);
                let sum = Node::Binary(BinaryOp::Add, frame.cursor, by);
                frame.cursor = self.graph.node(sum, CURSOR_WIDTH);
            }
            _ => {}
        }
    }

    fn position(&mut self, from: NodeId, by: u32) -> NodeId {
        let by = self.graph.number(by.into(), CURSOR_WIDTH);
        self.graph.node(Node::Binary(BinaryOp::Add, from, by), CURSOR_WIDTH)
    }

    fn read(&mut self, frame: &mut Frame, at: NodeId, to: SlotId) {
        let width = self.pipeline.slots[to.index()].width;
        let bits = self.graph.node(Node::PacketAt(at), width);
        self.graph.name(bits, to);
        frame.slots[to.index()] = bits;
    }
}

/// What a table's actions take, in the order of its actions, with their widths.
pub(super) fn params<'a>(
    pipeline: &'a Pipeline,
    table: &'a Table,
) -> impl Iterator<Item = (SlotId, u16)> + 'a {
    let actions = table.actions.iter().map(|run| &pipeline.actions[run.action.index()]);
    actions
        .flat_map(|action| &action.params)
        .map(|slot| (*slot, pipeline.slots[slot.index()].width))
}

/// States, each behind all that lead to it.
fn in_order(parser: &Parser) -> Vec<usize> {
    let mut order = Vec::new();
    let mut seen = vec![false; parser.states.len()];
    // A state with what of its followers has been seen.
    let mut open: Vec<(usize, Vec<usize>)> = vec![(0, parser.states[0].followers())];
    seen[0] = true;
    while let Some((at, rest)) = open.last_mut() {
        match rest.pop() {
            Some(next) if !seen[next] => {
                seen[next] = true;
                open.push((next, parser.states[next].followers()));
            }
            Some(_) => {}
            None => {
                order.push(*at);
                open.pop();
            }
        }
    }
    order.reverse();
    order
}
