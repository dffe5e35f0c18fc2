//! A small program by hand, for tests: a header of a kind and a length, a table that says what to
//! do with a kind, a unit to ask, a register of what it has said.

use super::{
    Action, ActionId, BinaryOp, Choice, Counter, CounterId, Direction, Entry, Expr, ExprKind,
    Extern, ExternId, Field, Header, HeaderId, Key, MatchKind, Meta, Parser, Pattern, Pipeline,
    PipelineId, Place, Program, Register, RegisterId, SelectCase, Slot, SlotId, State, Stmt,
    StmtKind, Table, TableAction, TableId, Target, Transition, Value,
};

pub(crate) const VALID: SlotId = SlotId(0);
pub(crate) const KIND: SlotId = SlotId(1);
pub(crate) const LENGTH: SlotId = SlotId(2);
pub(crate) const PORT: SlotId = SlotId(3);
pub(crate) const ANSWER: SlotId = SlotId(4);
pub(crate) const PARAM: SlotId = SlotId(5);
pub(crate) const HIT: SlotId = SlotId(6);

pub(crate) const NOTHING: ActionId = ActionId(0);
pub(crate) const SEND: ActionId = ActionId(1);

/// A statement on line 9.
pub(crate) fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, place: Place { file: 0, line: 9, column: 5 } }
}

pub(crate) fn binary(op: BinaryOp, a: Expr, b: Expr, width: u16) -> Expr {
    Expr { kind: ExprKind::Binary(op, Box::new(a), Box::new(b)), width }
}

/// Kinds up to 3 are accepted; lengths must not be 0.
pub(crate) fn program() -> Program {
    let place = Place { file: 0, line: 3, column: 1 };
    let slot = |name: &str, width| Slot { name: name.into(), width, place };
    let slots = vec![
        slot("hdr.h.$valid", 1),
        slot("hdr.h.kind", 8),
        slot("hdr.h.len", 16),
        slot("meta.port", 9),
        slot("answer", 16),
        slot("send.port", 9),
        slot("$hit", 1),
    ];
    let fields = vec![Field { slot: KIND, offset: 0 }, Field { slot: LENGTH, offset: 8 }];
    let action =
        |name: &str, params: Vec<SlotId>, body| Action { name: name.into(), params, body, place };
    let to_port = StmtKind::Assign { to: PORT, slice: None, value: Expr::slot(PARAM, 9) };
    let pipeline = Pipeline {
        name: "main".into(),
        slots,
        headers: vec![Header { name: "hdr.h".into(), valid: VALID, fields, bits: 24 }],
        meta: vec![Meta { name: "meta.port".into(), slot: PORT, direction: Direction::InOut }],
        parser: Some(parser(place)),
        actions: vec![
            action("nothing", Vec::new(), Vec::new()),
            action("send", vec![PARAM], vec![stmt(to_port)]),
        ],
        control: control(),
        deparser: vec![HeaderId(0)],
    };
    Program {
        architecture: "Example".into(),
        files: vec!["example.p4".into()],
        errors: ["NoError", "PacketTooShort", "NoMatch", "Empty"].map(str::to_owned).to_vec(),
        pipelines: vec![pipeline],
        tables: vec![table(place)],
        registers: vec![Register { name: "said".into(), width: 16, size: 4, place }],
        counters: vec![Counter { name: "seen".into(), size: 4, place }],
        externs: vec![Extern {
            kind: "Ask".into(),
            instance: "ask".into(),
            method: "what".into(),
            constructor: vec![7],
            args: vec![Value { name: "len".into(), width: 16 }],
            results: vec![Value { name: "return".into(), width: 16 }],
            latency: 2,
            place,
        }],
    }
}

fn parser(place: Place) -> Parser {
    let not_empty = binary(BinaryOp::Ne, Expr::slot(LENGTH, 16), Expr::constant(0, 16), 1);
    let verify = StmtKind::Verify { on: not_empty, error: super::ErrorId(3) };
    let case = |pattern, to| SelectCase { patterns: vec![pattern], to };
    let state = State {
        name: "start".into(),
        body: vec![stmt(StmtKind::Extract(HeaderId(0))), stmt(verify)],
        transition: Transition::Select {
            on: vec![Expr::slot(KIND, 8)],
            cases: vec![
                case(Pattern::Range { low: 0, high: 3 }, Target::Accept),
                case(Pattern::Mask { value: 0x80, mask: 0x80 }, Target::Reject),
            ],
        },
        place,
    };
    Parser { states: vec![state] }
}

fn control() -> super::Block {
    let (kind, answer) = (|| Expr::slot(KIND, 8), || Expr::slot(ANSWER, 16));
    let ask = StmtKind::Call {
        which: ExternId(0),
        args: vec![Expr::slot(LENGTH, 16)],
        results: vec![ANSWER],
    };
    let said = StmtKind::WriteRegister { register: RegisterId(0), index: kind(), value: answer() };
    vec![
        stmt(StmtKind::Count { counter: CounterId(0), index: kind() }),
        stmt(ask),
        stmt(StmtKind::Apply { table: TableId(0), hit: Some(HIT), action_run: None }),
        stmt(StmtKind::If {
            on: Expr::slot(HIT, 1),
            then: vec![stmt(said)],
            otherwise: vec![stmt(StmtKind::SetValid { header: HeaderId(0), valid: false })],
        }),
    ]
}

fn table(place: Place) -> Table {
    let may = |action| TableAction { action, in_entries: true, as_default: action == NOTHING };
    let entry = |value, port| Entry {
        patterns: vec![Pattern::Value(value)],
        priority: 0,
        choice: Choice { action: 1, args: vec![port] },
    };
    Table {
        name: "by_kind".into(),
        pipeline: PipelineId(0),
        keys: vec![Key { name: "kind".into(), value: Expr::slot(KIND, 8), kind: MatchKind::Exact }],
        actions: vec![may(NOTHING), may(SEND)],
        default: Choice { action: 0, args: Vec::new() },
        const_default: true,
        entries: vec![entry(1, 0x11), entry(2, 0x22)],
        const_entries: false,
        size: 4,
        place,
    }
}
