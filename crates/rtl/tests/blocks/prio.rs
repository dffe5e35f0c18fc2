//! The priorities of messages that are being sent (rules 14 and 31, C5).

use std::collections::VecDeque;

use crate::bench::{Block, Case, Model, Mutant, Rng, Values};

const MUTANTS: &[Mutant] = &[
    // A grant too early, and too late.
    Mutant::new("tx_msg_prio", "assign due = waiting_q[ReadCycles-1];", "assign due = grant;"),
    Mutant::new(
        "tx_msg_prio",
        "assign due = waiting_q[ReadCycles-1];",
        "grant_t late_q; assign due = late_q; always_ff @(posedge clk_i) late_q <= waiting_q[ReadCycles-1];",
    ),
    // Of a read and a grant in one cycle the read comes last.
    Mutant::new(
        "tx_msg_prio",
        "      if (read_valid_i) prio_q[read_id] <= value;
      if (due.valid) prio_q[due.id] <= due.prio;",
        "      if (due.valid) prio_q[due.id] <= due.prio;
      if (read_valid_i) prio_q[read_id] <= value;",
    ),
    // A read sees the grant of its own cycle.
    Mutant::new(
        "tx_msg_prio",
        "read_prio_i : prio_q[read_id];",
        "read_prio_i : (due.valid && due.id == read_id ? due.prio : prio_q[read_id]);",
    ),
    Mutant::new("tx_msg_prio", "if (read_valid_i) prio_q[read_id] <= value;", ""),
    Mutant::new("tx_msg_prio", "value_q <= read_valid_i ? value : '0;", "value_q <= value;"),
    Mutant::new("tx_msg_prio", "prio_q[due.id] <= due.prio;", "prio_q[due.id] <= grant_prio_i;"),
    Mutant::new("tx_msg_prio", "read_update_i ? read_prio_i :", "read_update_i ? 8'd0 :"),
];

struct Prio {
    rng: Rng,
    ids: u64,
    /// Priorities as the arbiter's cycle finds them.
    cells: Vec<u8>,
    /// Packets that were chosen: their reads come later, with what is so now.
    reads: VecDeque<Option<(u16, bool, u8, u8)>>,
    answers: VecDeque<u8>,
}

impl Model for Prio {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        // The choice: it reads, or begins a message.
        let (number, update) = (self.rng.next() as u16, self.rng.one_in(3));
        let number = if self.rng.one_in(2) { number % 3 } else { number };
        let prio = self.rng.next() as u8;
        let cell = &mut self.cells[usize::from(number) % self.ids as usize];
        let read = (!self.rng.one_in(3)).then(|| {
            *cell = if update { prio } else { *cell };
            (number, update, prio, *cell)
        });
        self.reads.push_back(read);
        // Then what packets do in the same cycle.
        let among = if self.rng.one_in(2) { 3.min(self.ids) } else { self.ids };
        let id = self.rng.below(among);
        let (granted, prio) = (self.rng.one_in(2), self.rng.next() as u8);
        inputs.set("grant_valid_i", granted);
        inputs.set("grant_id_i", id);
        inputs.set("grant_prio_i", prio);
        if granted {
            self.cells[id as usize] = prio;
        }
        let (number, update, prio, answer) = match self.reads.pop_front().flatten() {
            Some(read) => {
                inputs.set("read_valid_i", 1u8);
                read
            }
            None => (self.rng.next() as u16, true, self.rng.next() as u8, 0),
        };
        inputs.set("read_tx_msg_id_i", number);
        inputs.set("read_update_i", update);
        inputs.set("read_prio_i", prio);
        self.answers.push_back(answer);
        outputs.set("prio_o", self.answers.pop_front().unwrap_or(0));
    }
}

fn case(ids: u64, read_cycles: usize) -> Case {
    let id = ids.ilog2();
    Case {
        parameters: vec![("Ids", ids.to_string()), ("ReadCycles", read_cycles.to_string())],
        inputs: vec![
            ("grant_valid_i", 1),
            ("grant_id_i", id),
            ("grant_prio_i", 8),
            ("read_valid_i", 1),
            ("read_tx_msg_id_i", 16),
            ("read_update_i", 1),
            ("read_prio_i", 8),
        ],
        outputs: vec![("prio_o", 8)],
        model: Box::new(move |seed| {
            Box::new(Prio {
                rng: Rng::new(seed),
                ids,
                cells: vec![0; ids as usize],
                reads: VecDeque::from(vec![None; read_cycles]),
                answers: VecDeque::from([0; 2]),
            })
        }),
    }
}

#[test]
fn tx_msg_prio() {
    let cases = vec![case(16, 1), case(128, 4), case(2, 0)];
    Block { name: "tx_msg_prio", parts: &[], cases, mutants: MUTANTS, forbidden: &[] }.check();
}
