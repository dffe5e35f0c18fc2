//! Programs that mean nothing, drawn from a seed, for the generator of Rust to be held against the
//! interpreter. The build script compiles them; the test draws the same ones again.

use p4::ir::{
    ACTION_WIDTH, Action, ActionId, BinaryOp, Block, CORE_ERRORS, Choice, Counter, CounterId,
    Direction, Entry, ErrorId, Expr, ExprKind, Extern, ExternId, Field, Header, HeaderId, Key,
    MatchKind, Meta, Parser, Pattern, Pipeline, PipelineId, Place, Program, Register, RegisterId,
    SelectCase, Sign, Slice, Slot, SlotId, State, StateId, Stmt, StmtKind, Table, TableAction,
    TableId, Target, Transition, UnaryOp, Value, mask, prefix_length,
};

/// How many programs.
pub(crate) const PROGRAMS: u64 = 24;

/// Numbers from a seed (splitmix64).
#[derive(Clone)]
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// At the ends of the range more often than chance has it.
    pub(crate) fn value(&mut self, width: u16) -> u128 {
        let any = u128::from(self.bits()) << 64 | u128::from(self.bits());
        let value = match self.below(6) {
            0 => 0,
            1 => u128::MAX,
            2 => 1 << (width - 1),
            3 => u128::from(self.below(5)),
            _ => any,
        };
        value & mask(width)
    }

    fn width(&mut self) -> u16 {
        match self.below(3) {
            0 => self.one(&[1, 8, 16, 32, 64, 128]),
            1 => self.one(&[2, 7, 9, 12, 24, 48, 65, 112, 120]),
            _ => 1 + self.below(128) as u16,
        }
    }
}

/// The program of this number.
pub(crate) fn program(number: u64) -> Program {
    let mut draw = Drawing { draw: Draw(number), program: Program::default(), actions: 0 };
    draw.program.architecture = format!("Drawn{number}");
    draw.program.files = vec![format!("drawn{number}.p4")];
    draw.program.errors = CORE_ERRORS.map(str::to_owned).to_vec();
    draw.program.errors.push("Odd".into());
    draw.everywhere();
    draw.program.pipelines.push(Pipeline { name: "only".into(), ..Pipeline::default() });
    draw.values();
    draw.actions();
    draw.tables();
    draw.parser();
    let control = draw.block(3, Within::Control);
    draw.pipeline().control = control;
    draw.program
}

#[derive(Clone, Copy, PartialEq)]
enum Within {
    Parser,
    Action,
    Control,
}

struct Drawing {
    draw: Draw,
    program: Program,
    /// Actions there are to call.
    actions: u32,
}

impl Drawing {
    fn pipeline(&mut self) -> &mut Pipeline {
        &mut self.program.pipelines[0]
    }

    /// What pipelines share.
    fn everywhere(&mut self) {
        for name in ["first", "second"] {
            let width = self.draw.width();
            let register = Register { name: name.into(), width, size: 5, place: Place::default() };
            self.program.registers.push(register);
        }
        self.program.counters.push(Counter {
            name: "seen".into(),
            size: 3,
            place: Place::default(),
        });
        for (instance, method) in [("", ""), ("unit", "execute"), ("unit", "second")] {
            let mut values = |what: &str| -> Vec<Value> {
                let count = self.draw.below(4);
                let values = (0..count).map(|n| (format!("{what}{n}"), self.draw.width()));
                values.map(|(name, width)| Value { name, width }).collect()
            };
            let (args, results) = (values("arg"), values("result"));
            self.program.externs.push(Extern {
                kind: "Unit".into(),
                instance: instance.into(),
                method: method.into(),
                constructor: vec![3],
                args,
                results,
                latency: 2,
                place: Place::default(),
            });
        }
    }

    fn slot(&mut self, name: String, width: u16) -> SlotId {
        let slots = &mut self.pipeline().slots;
        slots.push(Slot { name, width, place: Place::default() });
        SlotId(slots.len() as u32 - 1)
    }

    /// Headers, metadata, local variables.
    fn values(&mut self) {
        let whole_bytes = self.draw.below(2) == 0;
        for number in 0..2 + self.draw.below(3) {
            let name = format!("hdr.h{number}");
            let valid = self.slot(format!("{name}.$valid"), 1);
            let mut widths: Vec<u16> =
                (0..1 + self.draw.below(5)).map(|_| self.draw.width()).collect();
            let over = widths.iter().sum::<u16>() % 8;
            if whole_bytes && over > 0 {
                widths.push(8 - over);
            }
            let mut header = Header { name: name.clone(), valid, fields: Vec::new(), bits: 0 };
            for (number, width) in widths.into_iter().enumerate() {
                let slot = self.slot(format!("{name}.f{number}"), width);
                header.fields.push(Field { slot, offset: header.bits });
                header.bits += u32::from(width);
            }
            self.pipeline().headers.push(header);
            self.pipeline().deparser.push(HeaderId(number as u32));
        }
        for number in 0..8 {
            let direction = self.draw.one(&[Direction::In, Direction::Out, Direction::InOut]);
            let width = self.draw.width();
            let name = format!("meta.m{number}");
            let slot = self.slot(name.clone(), width);
            self.pipeline().meta.push(Meta { name, slot, direction });
        }
        for number in 0..6 {
            let width = self.draw.width();
            self.slot(format!("local{number}"), width);
        }
        // There is a slot for every kind of result.
        self.slot("bit".into(), 1);
        self.slot("action_run".into(), ACTION_WIDTH);
    }

    fn actions(&mut self) {
        for number in 0..4 {
            let params = (0..self.draw.below(3)).map(|p| format!("act{number}.p{p}"));
            let params: Vec<String> = params.collect();
            let params: Vec<SlotId> = params
                .into_iter()
                .map(|name| {
                    let width = self.draw.width();
                    self.slot(name, width)
                })
                .collect();
            let body = self.block(2, Within::Action);
            let name = format!("act{number}");
            let place = Place { file: 0, line: number + 1, column: 1 };
            self.pipeline().actions.push(Action { name, params, body, place });
            self.actions += 1;
        }
    }

    fn tables(&mut self) {
        for number in 0..3 {
            let kinds: &[MatchKind] = self.draw.one(&[
                &[MatchKind::Exact],
                &[MatchKind::Exact, MatchKind::Exact],
                &[MatchKind::Ternary, MatchKind::Exact],
                &[MatchKind::Lpm],
                &[MatchKind::Exact, MatchKind::Lpm],
                &[],
            ]);
            let key = |(number, kind): (usize, &MatchKind)| {
                // Narrow ones, which entries hit.
                let width = 1 + self.draw.below(4) as u16;
                let value = self.expr(width, 2);
                Key { name: format!("key{number}"), value, kind: *kind }
            };
            let keys: Vec<Key> = kinds.iter().enumerate().map(key).collect();
            let action =
                |n| TableAction { action: ActionId(n), in_entries: true, as_default: true };
            let constant = number > 0;
            let mut table = Table {
                name: format!("table{number}"),
                pipeline: PipelineId(0),
                keys,
                actions: vec![action(1), action(3), action(0)],
                default: Choice { action: 0, args: Vec::new() },
                const_default: constant,
                entries: Vec::new(),
                const_entries: constant,
                size: 64,
                place: Place::default(),
            };
            table.default = choice(&mut self.draw, &self.program, &table);
            let count = if kinds.is_empty() { 0 } else { self.draw.below(6) };
            for _ in 0..count {
                let entry = entry(&mut self.draw, &self.program, &table);
                table.entries.push(entry);
            }
            self.program.tables.push(table);
        }
    }

    fn parser(&mut self) {
        let count = self.program.pipelines[0].headers.len() as u32;
        let mut states = Vec::new();
        for at in 0..count {
            let mut body = self.block(1, Within::Parser);
            body.push(stmt(StmtKind::Extract(HeaderId(at))));
            let on: Vec<Expr> = (0..1 + self.draw.below(2))
                .map(|_| {
                    let width = self.draw.width();
                    self.expr(width, 1)
                })
                .collect();
            let target = |draw: &mut Draw| match draw.below(8) {
                0 => Target::Reject,
                1 => Target::Accept,
                _ if at + 1 < count => {
                    Target::State(StateId(at + 1 + draw.below((count - at - 1).into()) as u32))
                }
                _ => Target::Accept,
            };
            let mut cases: Vec<SelectCase> = Vec::new();
            for _ in 0..self.draw.below(4) {
                let draw = &mut self.draw;
                let patterns = on.iter().map(|e| select_pattern(draw, e.width)).collect();
                cases.push(SelectCase { patterns, to: target(draw) });
            }
            let mut transition = Transition::To(target(&mut self.draw));
            if !cases.is_empty() {
                if self.draw.below(4) > 0 {
                    let patterns = vec![Pattern::Any; on.len()];
                    cases.push(SelectCase { patterns, to: target(&mut self.draw) });
                }
                transition = Transition::Select { on, cases };
            }
            let name = if at == 0 { "start".into() } else { format!("h{at}") };
            states.push(State { name, body, transition, place: Place::default() });
        }
        self.pipeline().parser = Some(Parser { states });
    }

    fn any_slot(&mut self) -> (SlotId, u16) {
        let slots = &self.program.pipelines[0].slots;
        let at = self.draw.below(slots.len() as u64) as usize;
        (SlotId(at as u32), slots[at].width)
    }

    /// A slot of this width other than these, if there is one.
    fn slot_of(&mut self, width: u16, but: &[SlotId]) -> Option<SlotId> {
        let slots = (0..).map(SlotId).zip(&self.program.pipelines[0].slots);
        let fits: Vec<SlotId> = slots
            .filter(|(id, slot)| slot.width == width && !but.contains(id))
            .map(|(id, _)| id)
            .collect();
        if fits.is_empty() { None } else { Some(self.draw.one(&fits)) }
    }

    fn block(&mut self, depth: u32, within: Within) -> Block {
        let count = self.draw.below(if depth == 3 { 14 } else { 4 });
        (0..count).filter_map(|_| self.stmt(depth, within)).map(stmt).collect()
    }

    fn stmt(&mut self, depth: u32, within: Within) -> Option<StmtKind> {
        let kind = self.draw.below(20);
        Some(match kind {
            0..=2 if depth > 0 => StmtKind::If {
                on: self.expr(1, 2),
                then: self.block(depth - 1, within),
                otherwise: self.block(depth - 1, within),
            },
            3 if depth > 0 && within != Within::Parser => {
                let width = 1 + self.draw.below(6) as u16;
                let on = self.expr(width, 2);
                let mut values: Vec<u128> = (0..4).map(|_| self.draw.value(width)).collect();
                values.sort_unstable();
                values.dedup();
                let cases =
                    values.chunks(2).map(|v| (v.to_vec(), self.block(depth - 1, within))).collect();
                StmtKind::Switch { on, cases, default: self.block(depth - 1, within) }
            }
            4 if depth > 0 && within != Within::Parser => {
                let mut body = self.block(depth - 1, within);
                if self.draw.below(2) == 0 {
                    let on = self.expr(1, 2);
                    let then = vec![stmt(StmtKind::Return)];
                    body.insert(0, stmt(StmtKind::If { on, then, otherwise: Vec::new() }));
                }
                StmtKind::Scope(body)
            }
            5 | 6 if within != Within::Parser => {
                if self.actions == 0 {
                    return None;
                }
                let action = self.draw.below(self.actions.into()) as usize;
                let pipeline = &self.program.pipelines[0];
                let params = pipeline.actions[action].params.iter();
                let widths: Vec<u16> =
                    params.map(|slot| pipeline.slots[slot.index()].width).collect();
                let args = widths.into_iter().map(|width| self.expr(width, 2)).collect();
                StmtKind::Run { action: ActionId(action as u32), args }
            }
            7 | 8 if within == Within::Control => {
                let table = TableId(self.draw.below(3) as u32);
                let hit = self.slot_of(1, &[]).filter(|_| kind == 7);
                let action_run = self.slot_of(ACTION_WIDTH, &[]);
                StmtKind::Apply { table, hit, action_run }
            }
            9 if within == Within::Parser => self.parsing(),
            9 if depth < 2 => self.draw.one(&[0, 0, 1]).eq(&0).then_some(StmtKind::Return)?,
            10 if depth < 2 && within != Within::Parser => StmtKind::Exit,
            11 => {
                let header = self.draw.below(self.program.pipelines[0].headers.len() as u64);
                let valid = self.draw.below(2) == 0;
                StmtKind::SetValid { header: HeaderId(header as u32), valid }
            }
            12 => self.call()?,
            13 => {
                let register = self.draw.below(2) as usize;
                let to = self.slot_of(self.program.registers[register].width, &[])?;
                let index = self.expr(4, 2);
                StmtKind::ReadRegister { register: RegisterId(register as u32), index, to }
            }
            14 => {
                let register = self.draw.below(2) as usize;
                let value = self.expr(self.program.registers[register].width, 2);
                let index = self.expr(4, 2);
                StmtKind::WriteRegister { register: RegisterId(register as u32), index, value }
            }
            15 => StmtKind::Count { counter: CounterId(0), index: self.expr(3, 2) },
            _ => {
                let (to, width) = self.any_slot();
                let high = self.draw.below(width.into()) as u16;
                let low = self.draw.below(u64::from(high) + 1) as u16;
                let slice = (kind == 16).then_some(Slice { high, low });
                let width = slice.map_or(width, Slice::width);
                StmtKind::Assign { to, slice, value: self.expr(width, 3) }
            }
        })
    }

    fn parsing(&mut self) -> StmtKind {
        match self.draw.below(3) {
            0 => StmtKind::Lookahead(self.any_slot().0),
            1 => StmtKind::Advance(Expr::constant(8 * u128::from(self.draw.below(3)), 32)),
            _ => {
                // Holds as a rule.
                let (a, b) = (self.expr(1, 1), self.expr(1, 1));
                let on = binary(BinaryOp::Or, binary(BinaryOp::Or, a, b, 1), self.expr(1, 1), 1);
                StmtKind::Verify { on, error: ErrorId(3) }
            }
        }
    }

    fn call(&mut self) -> Option<StmtKind> {
        let which = self.draw.below(self.program.externs.len() as u64) as usize;
        let known = self.program.externs[which].clone();
        let args = known.args.iter().map(|arg| self.expr(arg.width, 2)).collect();
        let mut results = Vec::new();
        for result in &known.results {
            let to = match self.slot_of(result.width, &results) {
                Some(to) => to,
                None => {
                    let count = self.program.pipelines[0].slots.len();
                    self.slot(format!("$result{count}"), result.width)
                }
            };
            results.push(to);
        }
        Some(StmtKind::Call { which: ExternId(which as u32), args, results })
    }

    fn expr(&mut self, width: u16, depth: u32) -> Expr {
        use Sign::{Signed, Unsigned};
        let of = |kind| Expr { kind, width };
        let sign = self.draw.one(&[Signed, Unsigned]);
        match self.draw.below(if depth == 0 { 3 } else { 13 }) {
            0 => Expr::constant(self.draw.value(width), width),
            1 | 2 => {
                let (slot, slot_width) = self.any_slot();
                let slot = Expr::slot(slot, slot_width);
                if slot_width == width { slot } else { of(ExprKind::Resize(Box::new(slot), sign)) }
            }
            3 => {
                let op = self.draw.one(&[UnaryOp::Not, UnaryOp::Neg]);
                of(ExprKind::Unary(op, Box::new(self.expr(width, depth - 1))))
            }
            4 => {
                let (on, a) = (self.expr(1, depth - 1), self.expr(width, depth - 1));
                let b = self.expr(width, depth - 1);
                of(ExprKind::Mux(Box::new(on), Box::new(a), Box::new(b)))
            }
            5 if width > 1 => {
                let low = 1 + self.draw.below(u64::from(width) - 1) as u16;
                let (a, b) = (self.expr(width - low, depth - 1), self.expr(low, depth - 1));
                of(ExprKind::Concat(Box::new(a), Box::new(b)))
            }
            6 => {
                let low = self.draw.below(u64::from(129 - width)) as u16;
                let above = self.draw.below(u64::from(129 - width - low)) as u16;
                let a = self.expr(low + width + above, depth - 1);
                let slice = Slice { high: low + width - 1, low };
                of(ExprKind::Slice(Box::new(a), slice))
            }
            7 => {
                let op = self.draw.one(&[BinaryOp::Shl, BinaryOp::Shr(sign)]);
                let by = self.draw.one(&[1, 3, 7, 8, 16, 32, 64, 128]);
                let by = match self.draw.below(2) {
                    0 => Expr::constant(u128::from(self.draw.below(140)), 8),
                    _ => self.expr(by, depth - 1),
                };
                binary(op, self.expr(width, depth - 1), by, width)
            }
            9 | 10 if width == 1 => {
                let op = self.draw.one(&[
                    BinaryOp::Eq,
                    BinaryOp::Ne,
                    BinaryOp::Lt(sign),
                    BinaryOp::Le(sign),
                    BinaryOp::Gt(sign),
                    BinaryOp::Ge(sign),
                ]);
                let wide = self.draw.width();
                binary(op, self.expr(wide, depth - 1), self.expr(wide, depth - 1), 1)
            }
            _ => {
                let op = self.draw.one(&[
                    BinaryOp::Add,
                    BinaryOp::Sub,
                    BinaryOp::Mul,
                    BinaryOp::AddSat(sign),
                    BinaryOp::SubSat(sign),
                    BinaryOp::And,
                    BinaryOp::Or,
                    BinaryOp::Xor,
                ]);
                binary(op, self.expr(width, depth - 1), self.expr(width, depth - 1), width)
            }
        }
    }
}

fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, place: Place { file: 0, line: 7, column: 1 } }
}

fn binary(op: BinaryOp, a: Expr, b: Expr, width: u16) -> Expr {
    Expr { kind: ExprKind::Binary(op, Box::new(a), Box::new(b)), width }
}

fn select_pattern(draw: &mut Draw, width: u16) -> Pattern {
    match draw.below(4) {
        0 => Pattern::Any,
        1 => Pattern::Value(draw.value(width)),
        2 => {
            let mask = 1 << draw.below(width.into());
            Pattern::Mask { value: draw.value(width) & mask, mask }
        }
        _ => {
            let (a, b) = (draw.value(width), draw.value(width));
            Pattern::Range { low: a.min(b), high: a.max(b) }
        }
    }
}

/// An action with arguments that a table may run.
pub(crate) fn choice(draw: &mut Draw, program: &Program, table: &Table) -> Choice {
    let action = draw.below(table.actions.len() as u64) as usize;
    let pipeline = &program.pipelines[0];
    let params = &pipeline.actions[table.actions[action].action.index()].params;
    let args = params.iter().map(|slot| draw.value(pipeline.slots[slot.index()].width));
    Choice { args: args.collect(), action: action as u16 }
}

/// An entry that a table may have.
pub(crate) fn entry(draw: &mut Draw, program: &Program, table: &Table) -> Entry {
    let pattern = |key: &Key| {
        let width = key.value.width;
        match key.kind {
            MatchKind::Exact => Pattern::Value(draw.value(width)),
            MatchKind::Ternary => {
                let mask = draw.value(width);
                Pattern::Mask { value: draw.value(width) & mask, mask }
            }
            MatchKind::Lpm => {
                let length = draw.below(u64::from(width) + 1) as u16;
                let mask = mask(width) & !mask(width - length);
                let pattern = Pattern::Mask { value: draw.value(width) & mask, mask };
                assert_eq!(prefix_length(pattern, width), Some(length));
                pattern
            }
        }
    };
    let patterns = table.keys.iter().map(pattern).collect();
    Entry { patterns, priority: draw.below(3) as u32, choice: choice(draw, program, table) }
}
