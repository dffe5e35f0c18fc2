//! The timer bank (rule 16, C4).

use crate::bench::{Block, Case, Forbidden, Model, Mutant, Rng, Values};

const MUTANTS: &[Mutant] = &[
    // A timer of which somebody else stops the other.
    Mutant::new("timers", "ended[cancel1_id_i] = 1'b1;", "ended[cancel0_id_i] = 1'b1;"),
    // One cycle short, and one long.
    Mutant::new("timers", "cycles_t'(TimeoutCycles);", "cycles_t'(TimeoutCycles - 1);"),
    Mutant::new("timers", "cycles_t'(TimeoutCycles);", "cycles_t'(TimeoutCycles + 1);"),
    // The looks one cycle late, and one slot further.
    Mutant::new("timers", "look = !now_i[0]", "look = now_i[0]"),
    Mutant::new("timers", "slot = now_i[IdW:1];", "slot = now_i[IdW:1] + IdW'(1);"),
    // A missing clear: what is stopped runs on.
    Mutant::new("timers", "(running_q | begun) & ~ended", "running_q | begun"),
    // A restart starts what does not run.
    Mutant::new(
        "timers",
        "begun[restart_id_i] = running_q[restart_id_i];",
        "begun[restart_id_i] = 1'b1;",
    ),
    // The look does not see what happens in its cycle.
    Mutant::new("timers", "due_o && !begun[slot]", "due_o"),
    Mutant::new("timers", " && !ended[slot];", ";"),
    // It fires for ever, or never again.
    Mutant::new("timers", "running_q[slot] <= again_i;", "running_q[slot] <= 1'b1;"),
    Mutant::new("timers", "running_q[slot] <= again_i;", "running_q[slot] <= 1'b0;"),
    // The deadline is not set anew where a timer fires and starts again.
    Mutant::new("timers", "begun[i] || (due_o && slot == IdW'(i))", "begun[i]"),
    // A deadline's width too small for its time.
    Mutant::new("timers", "$clog2(Longest + 1) + 1;", "$clog2(Longest + 1);"),
];

/// Deadlines by slot.
struct Timers {
    rng: Rng,
    /// From the host's first cycle; the block sees it modulo 2^32.
    now: u64,
    timeout: u64,
    deadlines: Vec<Option<u64>>,
}

impl Model for Timers {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        let ids = self.deadlines.len() as u64;
        let slot = (self.now / 2 % ids) as usize;
        let deadline = Some(self.now + self.timeout);
        inputs.set("now_i", self.now & 0xffff_ffff);
        let is_due = |deadline: Option<u64>| deadline.is_some_and(|deadline| deadline <= self.now);
        let is_looked_at = self.now.is_multiple_of(2);
        outputs.set("due_o", is_looked_at && is_due(self.deadlines[slot]));
        // Often that which is looked at.
        let mut draw = |one_in| {
            let id = if self.rng.one_in(4) { slot } else { self.rng.below(ids) as usize };
            self.rng.one_in(one_in).then_some(id)
        };
        let [restart, start, cancel0, cancel1] = [draw(6), draw(12), draw(40), draw(40)];
        if let Some(id) = restart {
            inputs.set("restart_valid_i", 1u8);
            inputs.set("restart_id_i", id as u64);
            if self.deadlines[id].is_some() {
                self.deadlines[id] = deadline;
            }
        }
        if let Some(id) = start {
            inputs.set("start_valid_i", 1u8);
            inputs.set("start_id_i", id as u64);
            self.deadlines[id] = deadline;
        }
        for (at, cancel) in [cancel0, cancel1].into_iter().enumerate() {
            if let Some(id) = cancel {
                inputs.set(["cancel0_id_i", "cancel1_id_i"][at], id as u64);
                self.deadlines[id] = None;
            }
        }
        let cancels = u8::from(cancel0.is_some()) | u8::from(cancel1.is_some()) << 1;
        inputs.set("cancel_valid_i", cancels);
        if is_looked_at && is_due(self.deadlines[slot]) {
            outputs.set("fire_valid_o", 1u8);
            outputs.set("fire_id_o", slot as u64);
            let again = self.rng.one_in(2);
            inputs.set("again_i", again);
            self.deadlines[slot] = again.then_some(self.now + self.timeout);
        }
        self.now += 1;
    }
}

fn case(ids: u64, timeout: u64) -> Case {
    let id = ids.ilog2();
    Case {
        parameters: vec![("Ids", ids.to_string()), ("TimeoutCycles", timeout.to_string())],
        inputs: vec![
            ("now_i", 32),
            ("restart_valid_i", 1),
            ("restart_id_i", id),
            ("start_valid_i", 1),
            ("start_id_i", id),
            ("cancel_valid_i", 2),
            ("cancel0_id_i", id),
            ("cancel1_id_i", id),
            ("again_i", 1),
        ],
        outputs: vec![("due_o", 1), ("fire_valid_o", 1), ("fire_id_o", id)],
        model: Box::new(move |seed| {
            Box::new(Timers {
                rng: Rng::new(seed),
                // So that the count turns over on the way.
                now: (1 << 32) - 5_000,
                timeout,
                deadlines: vec![None; ids as usize],
            })
        }),
    }
}

#[test]
fn timers() {
    let block = Block {
        name: "timers",
        parts: &[],
        cases: vec![case(16, 100), case(128, 1000), case(2, 3)],
        mutants: MUTANTS,
        forbidden: &[Forbidden {
            assertion: "again_what_fires",
            inputs: &[("again_i", 1)],
            cycles: 1,
        }],
    };
    block.check();
}
