//! The priority scheduler (rule 28, C6), beside that of the NIC's model.

use std::collections::VecDeque;

use nic::nano::srpt::{Choice, Entry, Scheduler};

use crate::bench::{Block, Case, Forbidden, Model, Mutant, Rng, Values};

const MUTANTS: &[Mutant] = &[
    // A tie the wrong way: the higher id wins.
    Mutant::new(
        "srpt",
        "ahead[r][s] = {state_q.registers[s].rank, id_of(id_t'(s), state_q.registers[s].id)}",
        "ahead[r][s] = {state_q.registers[s].rank, ~id_of(id_t'(s), state_q.registers[s].id)}",
    ),
    // Who is better is not who is worse.
    Mutant::new("srpt", "ahead[s][r] = !ahead[r][s];", "ahead[s][r] = 1'b0;"),
    // Only entries with something to grant count as better.
    Mutant::new("srpt", "(ahead[r] & state_q.valid)", "(ahead[r] & wants)"),
    // What is not there counts, too.
    Mutant::new("srpt", "(ahead[r] & state_q.valid)", "(ahead[r])"),
    Mutant::new("srpt", "(ahead[r] & wants) == '0", "(ahead[r] & state_q.valid) == '0"),
    // Pointers and bounds off by one.
    Mutant::new("srpt", "32'(levels[r]) < Overcommitment", "32'(levels[r]) <= Overcommitment"),
    Mutant::new("srpt", "Compared = 16;", "Compared = 15;").in_case(1),
    Mutant::new("srpt", "&& state.waiting[i].id == entry.id;", ";").in_case(1),
    Mutant::new(
        "srpt",
        "without.registers[r] = state.waiting[0];",
        "without.registers[r] = state.waiting[1];",
    )
    .in_case(1),
    Mutant::new("srpt", "CountW'(gone);", "CountW'(1'b0);").in_case(1),
    // Missing clears.
    Mutant::new("srpt", "without.valid[r]     = state.count != '0;", ""),
    Mutant::new("srpt", "drop_valid_q[1] ? without(dropped, drop_ids_q[1])", "1'b0 ? dropped"),
    Mutant::new(
        "srpt",
        "granted.registers[r].granted = state_q.registers[r].grantable;",
        "granted.registers[r].granted = state_q.registers[r].granted;",
    ),
    // Drops are lost, not held back, or one is taken for the other; the entry is not new.
    Mutant::new("srpt", "drop_valid_q <= drop_valid_i;", "drop_valid_q <= '0;"),
    Mutant::new("srpt", "{drop1_id_i, drop0_id_i}", "{drop0_id_i, drop1_id_i}"),
    Mutant::new("srpt", "        with_entry.registers[r] = entry;", ""),
    // A choice without a request.
    Mutant::new("srpt", "busy_q && is_best[r]", "is_best[r]"),
    // An entry that waits is not kept up to date.
    Mutant::new("srpt", "if (kept[i] || (!placed", "if ((!placed").in_case(1),
    // The level of another cycle.
    Mutant::new("srpt", "8'(answer_q.level);", "8'(answer.level);"),
];

/// Requests at drawn distances, ids that are free in any cycle.
struct Srpt {
    rng: Rng,
    scheduler: Scheduler,
    ids: u64,
    /// Cycles since the last request.
    since: u64,
    answers: VecDeque<Option<Choice>>,
}

impl Model for Srpt {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        self.since += 1;
        let asks = self.since >= 2 && !self.rng.one_in(3);
        // Where ids are many, few leave, so that registers are full most of the time.
        let leaves = if self.rng.one_in(500) { 2 } else { 16 };
        let remove = self.rng.one_in(leaves);
        let rx_msg_id = self.rng.below(self.ids) as u16;
        let [rank, granted, extra] = [20, 8, 4].map(|below| self.rng.below(below) as u16);
        let grantable = granted + extra.saturating_sub(1);
        inputs.set("valid_i", asks);
        inputs.set("rx_msg_id_i", rx_msg_id);
        inputs.set("remove_i", remove);
        inputs.set("rank_i", rank);
        inputs.set("granted_i", granted);
        inputs.set("grantable_i", grantable);
        let mut choice = None;
        if asks {
            self.since = 0;
            let entry = Entry { rx_msg_id, rank, granted, grantable };
            choice = match remove {
                true => self.scheduler.update_without(rx_msg_id),
                false => self.scheduler.update(entry),
            };
        }
        let drops = [0, 1].map(|_| (self.rng.one_in(2 * leaves), self.rng.below(self.ids) as u16));
        inputs.set("drop_valid_i", u8::from(drops[0].0) | u8::from(drops[1].0) << 1);
        inputs.set("drop0_id_i", drops[0].1);
        inputs.set("drop1_id_i", drops[1].1);
        for (_, id) in drops.iter().filter(|(valid, _)| *valid) {
            self.scheduler.remove(*id);
        }
        self.answers.push_back(choice);
        if let Some(Choice { rx_msg_id, level, grant_offset }) = self.answers.pop_front().flatten()
        {
            outputs.set("success_o", 1u8);
            outputs.set("prio_level_o", level);
            outputs.set("rx_msg_id_o", rx_msg_id);
            outputs.set("grant_offset_o", grant_offset);
        }
    }
}

fn case(ids: u64, overcommitment: u8) -> Case {
    let id = ids.ilog2();
    Case {
        parameters: vec![("Ids", ids.to_string()), ("Overcommitment", overcommitment.to_string())],
        inputs: vec![
            ("valid_i", 1),
            ("rx_msg_id_i", 16),
            ("remove_i", 1),
            ("rank_i", 16),
            ("granted_i", 16),
            ("grantable_i", 16),
            ("drop_valid_i", 2),
            ("drop0_id_i", id),
            ("drop1_id_i", id),
        ],
        outputs: vec![
            ("success_o", 1),
            ("prio_level_o", 8),
            ("rx_msg_id_o", 16),
            ("grant_offset_o", 16),
        ],
        model: Box::new(move |seed| {
            Box::new(Srpt {
                rng: Rng::new(seed),
                scheduler: Scheduler::new(overcommitment),
                ids,
                since: 2,
                answers: VecDeque::from([None; 2]),
            })
        }),
    }
}

#[test]
fn srpt() {
    let cases = vec![case(16, 3), case(32, 3), case(128, 1)];
    Block {
        name: "srpt",
        parts: &[],
        cases,
        mutants: MUTANTS,
        forbidden: &[
            Forbidden { assertion: "two_cycles_apart", inputs: &[("valid_i", 1)], cycles: 2 },
            Forbidden {
                assertion: "a_message",
                inputs: &[("valid_i", 1), ("rx_msg_id_i", 16)],
                cycles: 1,
            },
        ],
    }
    .check();
}
