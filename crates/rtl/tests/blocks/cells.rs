//! The cells of programs: IfElseRaw and DualPortRaw.

use nic::nano::cells::{Cells, Op};

use crate::bench::{Block, Case, Forbidden, Model, Mutant, Rng, Values};

const IF_ELSE: &[Mutant] = &[
    Mutant::new("if_else_raw", "predicate_i ? op0_i : op1_i", "predicate_i ? op1_i : op0_i"),
    Mutant::new("if_else_raw", "predicate_i ? data0_i : data1_i", "data0_i"),
    Mutant::new("if_else_raw", "Add = 8'd2", "Add = 8'd3"),
    Mutant::new("if_else_raw", "value = cell_q + data_q;", "value = cell_q | data_q;"),
    // A missing clear: a cell is not zero at first, or forgets.
    Mutant::new("if_else_raw", "written_q[index_q] <= 1'b1;", "written_q[index_q] <= 1'b0;"),
    Mutant::new("if_else_raw", "cells_q[index_q] <= value;", "cells_q[index] <= value;"),
    Mutant::new("if_else_raw", "default: value = cell_q;", "default: value = data_q;"),
    Mutant::new(
        "if_else_raw",
        "assign value_o = value_q;",
        "assign value_o = busy_q ? value : '0;",
    ),
    Mutant::new("if_else_raw", "value_q <= busy_q ? value : '0;", "value_q <= value;"),
];

const DUAL_PORT: &[Mutant] = &[
    // Stale forwards: an operation does not see the one of the cycle before on the other port.
    Mutant::new("dual_port_raw", "if (first_q && first_index_q == index) return first_value;", ""),
    Mutant::new(
        "dual_port_raw",
        "if (second_q && second_index_q == index) return second_value;",
        "",
    ),
    // Nor that in its own cycle, or sees it though there is none.
    Mutant::new(
        "dual_port_raw",
        "second_q && second_index_q == first_index_q ? second_value : first_cell_q",
        "first_cell_q",
    ),
    Mutant::new(
        "dual_port_raw",
        "second_q && second_index_q == first_index_q ? second_value : first_cell_q",
        "second_index_q == first_index_q ? second_value : first_cell_q",
    ),
    // Of another cell.
    Mutant::new("dual_port_raw", "second_q && second_index_q == index", "second_q"),
    Mutant::new("dual_port_raw", "if (second_q) written_q[second_index_q] <= 1'b1;", ""),
    Mutant::new("dual_port_raw", "predicate_i ? data0_i : data1_i", "data1_i"),
    Mutant::new("dual_port_raw", "second_op_q    <= second_op_i", "second_op_q    <= op0_i"),
    Mutant::new("dual_port_raw", "return old + data;", "return old - data;"),
    // Of two writes in one cycle the wrong one stays.
    Mutant::new(
        "dual_port_raw",
        "    if (second_q) cells_q[second_index_q] <= second_value;
    if (first_q) cells_q[first_index_q] <= first_value;",
        "    if (first_q) cells_q[first_index_q] <= first_value;
    if (second_q) cells_q[second_index_q] <= second_value;",
    ),
];

/// Requests that are too close.
const CLOSE: &[Forbidden] = &[
    Forbidden { assertion: "two_cycles_apart", inputs: &[("valid_i", 1)], cycles: 2 },
    Forbidden { assertion: "second_two_cycles_apart", inputs: &[("second_valid_i", 1)], cycles: 2 },
];

/// Either kind: an operation is done whole in the cycle of its request.
struct Units {
    rng: Rng,
    cells: Cells,
    width: u32,
    second: bool,
    /// Cycles since the last request of each port.
    since: [u64; 2],
    /// What each port answers in this cycle and the next.
    answers: [[u128; 2]; 2],
}

impl Units {
    fn op(&mut self) -> (u8, u128) {
        let data = u128::from(self.rng.next()) << 64 | u128::from(self.rng.next());
        (self.rng.below(4) as u8, data & mask(self.width))
    }

    /// Few cells most of the time, so that operations meet; any index at others.
    fn index(&mut self) -> u16 {
        let range = if self.rng.one_in(4) { 1 << 16 } else { 3 };
        self.rng.below(range) as u16
    }

    /// Whether a port asks for something: as often as it may, or less.
    fn asks(&mut self, port: usize) -> bool {
        self.since[port] += 1;
        let asks = self.since[port] >= 2 && !self.rng.one_in(3);
        if asks {
            self.since[port] = 0;
        }
        asks
    }

    /// Inputs are set, and mean nothing unless it `asks`.
    fn second(&mut self, inputs: &mut Values<'_>) -> u128 {
        let (asks, index, (op, data)) = (self.asks(1), self.index(), self.op());
        inputs.set("second_valid_i", asks);
        inputs.set("second_index_i", index);
        inputs.set("second_op_i", op);
        inputs.set("second_data_i", data);
        if asks { self.cells.apply(index.into(), Op::from_number(op.into()), data) } else { 0 }
    }

    fn execute(&mut self, inputs: &mut Values<'_>) -> u128 {
        let (asks, index, predicate) = (self.asks(0), self.index(), self.rng.one_in(2));
        let [(op0, data0), (op1, data1)] = [self.op(), self.op()];
        inputs.set("valid_i", asks);
        inputs.set("index_i", index);
        inputs.set("predicate_i", predicate);
        inputs.set("op0_i", op0);
        inputs.set("data0_i", data0);
        inputs.set("op1_i", op1);
        inputs.set("data1_i", data1);
        let ops = [(op0, data0), (op1, data1)];
        let ops = ops.map(|(op, data)| (Op::from_number(op.into()), data));
        if asks { self.cells.if_else(index.into(), predicate, ops) } else { 0 }
    }
}

impl Model for Units {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        let [first, second] = self.answers.map(|[now, _]| now);
        outputs.set("value_o", first);
        if self.second {
            outputs.set("second_value_o", second);
        }
        let second = if self.second { self.second(inputs) } else { 0 };
        let first = self.execute(inputs);
        for (answers, new) in self.answers.iter_mut().zip([first, second]) {
            *answers = [answers[1], new];
        }
    }
}

fn mask(width: u32) -> u128 {
    u128::MAX >> (128 - width)
}

fn case(ids: u16, width: u32, second: bool) -> Case {
    let mut inputs = vec![
        ("valid_i", 1),
        ("index_i", 16),
        ("predicate_i", 1),
        ("op0_i", 8),
        ("data0_i", width),
        ("op1_i", 8),
        ("data1_i", width),
    ];
    let mut outputs = vec![("value_o", width)];
    if second {
        inputs.extend([
            ("second_valid_i", 1),
            ("second_index_i", 16),
            ("second_op_i", 8),
            ("second_data_i", width),
        ]);
        outputs.push(("second_value_o", width));
    }
    Case {
        parameters: vec![("Ids", ids.to_string()), ("Width", width.to_string())],
        inputs,
        outputs,
        model: Box::new(move |seed| {
            Box::new(Units {
                rng: Rng::new(seed),
                cells: Cells::new(ids, mask(width)),
                width,
                second,
                since: [2; 2],
                answers: [[0; 2]; 2],
            })
        }),
    }
}

fn block(name: &'static str, second: bool, mutants: &'static [Mutant]) -> Block {
    let cases = vec![case(16, 16, second), case(128, 112, second)];
    Block { name, parts: &[], cases, mutants, forbidden: &CLOSE[..1 + usize::from(second)] }
}

#[test]
fn if_else_raw() {
    block("if_else_raw", false, IF_ELSE).check();
}

#[test]
fn dual_port_raw() {
    block("dual_port_raw", true, DUAL_PORT).check();
}
