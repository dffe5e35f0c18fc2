//! How many cycles packets take through a pipeline, by what they do on their way.
//!
//! A path is a set of accesses that some packet makes. It ends with the last of them. Paths are
//! found by sending drawn packets through the interpreter, with externs that answer anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use p4::interp::Machine;
use p4::ir::circuit::{Circuit, Port, Schedule};
use p4::ir::{ExternId, Fault, PipelineId};
use p4::program::{Externs, Program};
use p4::state::State;
use serde::Serialize;

use crate::cosim::packets::{Input, Packets};
use crate::cosim::pipelines::Answers;
use crate::cosim::traffic::Plan;

/// Packets that are drawn.
const PACKETS: u64 = 20_000;

/// Cycles of the paths through a pipeline, from the packet to the last thing that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Paths {
    /// How many paths were found.
    pub paths: usize,
    /// Cycles of the shortest.
    pub min: u32,
    /// Half of the paths are no longer.
    pub median: u32,
    /// Cycles of the longest.
    pub max: u32,
    /// Cycles to the results: headers and metadata.
    pub results: u32,
}

/// Notes what is called.
struct Noting<'a> {
    answers: Answers,
    called: &'a mut BTreeSet<ExternId>,
}

impl Externs for Noting<'_> {
    fn call(&mut self, which: ExternId, args: &[u128], results: &mut [u128]) {
        self.called.insert(which);
        self.answers.call(which, args, results);
    }
}

/// Of a pipeline whose tables are those of `state`, for packets of these protocols.
///
/// # Errors
/// There are more ways through the pipeline than a circuit can have.
pub fn paths(state: &State, at: PipelineId, protocols: &[u8]) -> Result<Paths, Fault> {
    let program = state.program();
    let circuit = Circuit::new(program, at)?;
    let schedule = Schedule::new(program, &circuit, None);
    let mut cycles: BTreeMap<ExternId, u32> = BTreeMap::new();
    for id in circuit.access_ids() {
        if let Port::Call(which) = circuit.access(id).port {
            let cycle = cycles.entry(which).or_default();
            *cycle = (*cycle).max(schedule.access(id).cycle);
        }
    }
    let mut machine = Machine::new(Arc::clone(program));
    *Program::<Answers>::state(&mut machine) = state.clone();
    let (mut answers, mut found) = (Answers::new(program), BTreeSet::new());
    let plan = Plan { seed: 1, spacing: 1, is_dense: true };
    let drawn = Packets::draw(&program.pipelines[at.index()], protocols, plan, PACKETS);
    for Input { bytes, mut meta, .. } in drawn.packets {
        let (mut out, mut called) = (Vec::new(), BTreeSet::new());
        let mut noting = Noting { answers, called: &mut called };
        // A packet that is refused has a path, too: it calls nothing.
        let _ = machine.run(at, &bytes, &mut meta, &mut out, &mut noting);
        answers = noting.answers;
        found.insert(called);
    }
    let last = |path: &BTreeSet<ExternId>| {
        path.iter().filter_map(|which| cycles.get(which)).max().copied().unwrap_or(0)
    };
    let mut all: Vec<u32> = found.iter().map(last).collect();
    all.sort_unstable();
    let nth = |at: usize| all.get(at).copied().unwrap_or(0);
    Ok(Paths {
        paths: all.len(),
        min: nth(0),
        median: nth(all.len() / 2),
        max: nth(all.len().saturating_sub(1)),
        results: schedule.cycles() - 1,
    })
}

/// The line of P4 that an emitted module names beside the assignment of a signal; `signal` may be a
/// bit of it, some cycles later (`value_q2[3]`).
#[must_use]
pub fn line_of(module: &str, signal: &str) -> Option<String> {
    let name = signal.split(['[', '.']).next()?;
    let name = match name.rsplit_once("_q") {
        Some((name, cycles)) if cycles.chars().all(|c| c.is_ascii_digit()) => name,
        _ => name,
    };
    let begin = format!("assign {name} = ");
    let line = module.lines().find(|line| line.trim_start().starts_with(&begin))?;
    line.rsplit_once("// ").map(|(_, place)| place.to_owned())
}

#[cfg(test)]
mod tests {
    use super::line_of;

    #[test]
    fn a_register_leads_to_its_line() {
        let text = "  logic a_v;\n  assign a_v = b + c;  // ndp_rules.p4:22\n  assign d = e;\n";
        for signal in ["a_v", "a_v[3]", "a_v_q", "a_v_q12[0]"] {
            assert_eq!(line_of(text, signal).as_deref(), Some("ndp_rules.p4:22"), "{signal}");
        }
        assert_eq!(line_of(text, "d"), None);
    }
}
