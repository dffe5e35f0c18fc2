//! Cycles through a pipeline, by what packets do on their way.
//!
//! A path is a set of accesses that some packet makes: calls of externs, reads and writes of
//! registers, counters, tables. It ends with the last of them or, where it is answered, with its
//! answer. Paths are found by sending drawn packets through the circuit, one by one, with externs
//! that answer anything.

use std::collections::BTreeSet;
use std::sync::Arc;

use p4::ir::circuit::{AccessId, Circuit, Node, Pipelined, Schedule};
use p4::ir::{Fault, PipelineId, Program};
use p4::state::State;
use serde::Serialize;

use crate::cosim::packets::{Input, Packets};
use crate::cosim::pipelines::Answers;
use crate::cosim::traffic::Plan;

/// Packets that are drawn.
const PACKETS: u64 = 20_000;

/// Cycles of the paths through a pipeline, from the packet to the end of what it does.
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

/// Of a pipeline whose tables are those of `state`, for packets of these protocols.
///
/// # Errors
/// There are more ways through the pipeline than a circuit can have.
pub fn paths(state: &State, at: PipelineId, protocols: &[u8]) -> Result<Paths, Fault> {
    let program = state.program();
    let mut pipeline = Pipelined::new(Arc::clone(program), at)?;
    *pipeline.state() = state.clone();
    let schedule = Schedule::new(program, pipeline.circuit(), None);
    let ends = ends(program, pipeline.circuit(), &schedule);
    let (mut answers, mut found) = (Answers::new(program), BTreeSet::new());
    let plan = Plan { seed: 1, spacing: 1, is_dense: true };
    let drawn = Packets::draw(&program.pipelines[at.index()], protocols, plan, PACKETS);
    for Input { bytes, meta, .. } in &drawn.packets {
        pipeline.enter(bytes, meta);
        while !pipeline.is_empty() {
            // What comes out is no part of the path.
            let _ = pipeline.step(&mut answers);
        }
        found.insert(pipeline.accessed().to_vec());
    }
    let last = |path: &Vec<AccessId>| path.iter().map(|id| ends[id.index()]).max().unwrap_or(0);
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

/// The cycle in which each access is over.
fn ends(program: &Program, circuit: &Circuit, schedule: &Schedule) -> Vec<u32> {
    let is_answered = |id: AccessId| {
        let mut nodes = circuit.graph().nodes().iter();
        nodes.any(|value| matches!(value.node, Node::Result(of, _) if of == id))
    };
    let end = |id: AccessId| {
        let latency = circuit.access(id).port.latency(program);
        schedule.access(id).cycle + if is_answered(id) { latency } else { 0 }
    };
    circuit.access_ids().map(end).collect()
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
