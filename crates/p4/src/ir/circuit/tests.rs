use super::*;
use crate::ir::example::{ANSWER, KIND, LENGTH, PORT, binary, program, stmt};
use crate::ir::{BinaryOp, Block, Expr, ExprKind, Sign, SlotId, Stmt, StmtKind};

fn assign(to: SlotId, value: Expr) -> Stmt {
    stmt(StmtKind::Assign { to, slice: None, value })
}

fn call(arg: Expr) -> Stmt {
    stmt(StmtKind::Call { which: ExternId(0), args: vec![arg], results: vec![ANSWER] })
}

fn kind() -> Expr {
    Expr::slot(KIND, 8)
}

fn length() -> Expr {
    Expr::slot(LENGTH, 16)
}

fn answer() -> Expr {
    Expr::slot(ANSWER, 16)
}

fn low_bits(value: Expr, width: u16) -> Expr {
    Expr { kind: ExprKind::Resize(Box::new(value), Sign::Unsigned), width }
}

fn is_zero(value: Expr) -> Expr {
    let zero = Expr::constant(0, value.width);
    binary(BinaryOp::Eq, value, zero, 1)
}

/// The cycles of the accesses in the order of the circuit, that of the port at the end, and stages
/// and cycles.
fn times(control: Block) -> (Vec<u32>, u32, u32, u32) {
    let mut program = program();
    program.pipelines[0].control = control;
    let circuit = Circuit::new(&program, PipelineId(0)).unwrap();
    let schedule = Schedule::new(&program, &circuit, None);
    let accesses = schedule.accesses().iter().map(|at| at.cycle).collect();
    let port = circuit.outputs().meta[0].map_or(0, |node| schedule.node(node).cycle);
    (accesses, port, schedule.stages(), schedule.cycles())
}

#[test]
fn what_reads_an_answer_waits_for_it() {
    // Two calls of two cycles each, one after the other.
    let control = vec![call(length()), call(answer()), assign(PORT, low_bits(answer(), 9))];
    assert_eq!(times(control), (vec![0, 2], 4, 3, 5));
}

#[test]
fn a_slot_written_anew_waits_for_nothing() {
    let control = vec![
        call(length()),
        assign(PORT, low_bits(answer(), 9)),
        assign(PORT, Expr::constant(1, 9)),
    ];
    assert_eq!(times(control), (vec![0], 0, 2, 3));
}

#[test]
fn a_choice_waits_for_its_condition() {
    let then = vec![assign(PORT, Expr::constant(1, 9))];
    let choice = StmtKind::If { on: is_zero(answer()), then, otherwise: Vec::new() };
    assert_eq!(times(vec![call(length()), stmt(choice)]), (vec![0], 2, 2, 3));
}

#[test]
fn the_end_of_a_scope_ends_what_its_return_means() {
    let leave = vec![stmt(StmtKind::Return)];
    let leave = StmtKind::If { on: is_zero(answer()), then: leave, otherwise: Vec::new() };
    let scope = |behind: Vec<Stmt>| {
        let mut body = vec![call(length()), stmt(leave.clone())];
        body.extend(behind);
        stmt(StmtKind::Scope(body))
    };
    let port = || assign(PORT, Expr::constant(1, 9));
    assert_eq!(times(vec![scope(vec![port()])]).1, 2);
    assert_eq!(times(vec![scope(Vec::new()), port()]).1, 0);
}

#[test]
fn a_register_keeps_the_order_of_its_accesses() {
    let write = |value| StmtKind::WriteRegister { register: RegisterId(0), index: kind(), value };
    let read = StmtKind::ReadRegister { register: RegisterId(0), index: kind(), to: LENGTH };
    let control = vec![
        call(length()),
        stmt(write(answer())),
        stmt(read),
        assign(PORT, low_bits(length(), 9)),
    ];
    assert_eq!(times(control), (vec![0, 2, 3], 4, 4, 5));
}

#[test]
fn a_register_is_not_read_before_it_must_be() {
    let read = StmtKind::ReadRegister { register: RegisterId(0), index: kind(), to: LENGTH };
    let sum = binary(BinaryOp::Add, length(), answer(), 16);
    let write = StmtKind::WriteRegister { register: RegisterId(0), index: kind(), value: sum };
    let control = vec![stmt(read), call(Expr::constant(1, 16)), call(answer()), stmt(write)];
    // Reading in cycle 0 would keep the next packet away for four cycles.
    assert_eq!(times(control).0, [0, 2, 2, 4]);
}

#[test]
fn a_table_takes_a_stage_from_keys_to_actions() {
    let program = program();
    let circuit = Circuit::new(&program, PipelineId(0)).unwrap();
    let schedule = Schedule::new(&program, &circuit, None);
    let stages = circuit.access_ids().map(|id| (circuit.access(id).port, schedule.access(id)));
    let stages: Vec<_> = stages.map(|(port, at)| (port.name(&program), at.stage)).collect();
    let wanted = [("seen.count", 0), ("ask.what", 0), ("by_kind.apply", 0), ("said.write", 1)];
    assert_eq!(stages, wanted.map(|(name, stage)| (name.to_owned(), stage)));
    assert_eq!((schedule.stages(), schedule.cycles()), (2, 3));
}

/// One access, with a chosen argument; not where a packet may come to both.
#[test]
fn calls_that_exclude_one_another_are_one() {
    let either =
        |then, otherwise| stmt(StmtKind::If { on: is_zero(kind()), then: vec![then], otherwise });
    let count = |control: Block| times(control).0.len();
    assert_eq!(count(vec![either(call(length()), vec![call(answer())])]), 1);
    assert_eq!(count(vec![either(call(length()), Vec::new()), call(answer())]), 2);
    let not = binary(BinaryOp::Ne, kind(), Expr::constant(0, 8), 1);
    let also = |body| stmt(StmtKind::If { on: not.clone(), then: vec![body], otherwise: vec![] });
    // The way round is the same; that it is `!=` and not the negation of `==` is not seen.
    assert_eq!(count(vec![either(call(length()), Vec::new()), also(call(length()))]), 2);
    // The second call is given what the first answers where it is not made: joined, they would wait
    // for one another.
    let other = Expr {
        kind: ExprKind::Unary(crate::ir::UnaryOp::Not, Box::new(is_zero(kind()))),
        width: 1,
    };
    let then = vec![call(answer())];
    let second = stmt(StmtKind::If { on: other, then, otherwise: Vec::new() });
    assert_eq!(count(vec![either(call(length()), Vec::new()), second]), 2);
}

/// With a clock, what is longer than a period goes on in the next cycle, and a multiplication over
/// several.
#[test]
fn logic_takes_the_time_of_a_target() {
    let sum = binary(BinaryOp::Add, length(), kind_wide(), 16);
    let product = binary(BinaryOp::Mul, sum.clone(), sum, 16);
    let mut program = program();
    program.pipelines[0].control = vec![assign(PORT, low_bits(product, 9))];
    let circuit = Circuit::new(&program, PipelineId(0)).unwrap();
    let none = Delay::default();
    let target = Target {
        period: 100,
        logic: none,
        mux: none,
        equal: none,
        add: Delay { fixed: 20, doubling: 10 },
        saturate: none,
        shift: none,
        multiply: Delay { fixed: 250, doubling: 0 },
    };
    let schedule = Schedule::new(&program, &circuit, Some(&target));
    let port = circuit.outputs().meta[0].unwrap();
    // The sum takes 60 ps of the first cycle, the product three cycles of its own.
    assert_eq!(schedule.node(port).cycle, 4);
    assert_eq!(Schedule::new(&program, &circuit, None).node(port).cycle, 0);
}

fn kind_wide() -> Expr {
    low_bits(kind(), 16)
}

/// A pipeline with more conditions than are decided about is refused, not worked on for ever; one
/// with almost as many is not.
#[test]
fn too_many_ways_are_refused() {
    let ways = |count: u128| {
        let one = |number: u128| {
            let on = binary(BinaryOp::Eq, length(), Expr::constant(number, 16), 1);
            let then = vec![assign(PORT, Expr::constant(number, 9)), stmt(StmtKind::Return)];
            stmt(StmtKind::If { on, then, otherwise: Vec::new() })
        };
        let mut program = program();
        program.pipelines[0].control = (0..count).map(one).collect();
        Circuit::new(&program, PipelineId(0)).map(|circuit| circuit.graph().nodes().len())
    };
    let why = ways(3000).unwrap_err().to_string();
    assert!(why.starts_with("9:5: a pipeline with too many ways through it"), "{why}");
    assert!(ways(1000).is_ok_and(|nodes| nodes > 1000));
}
