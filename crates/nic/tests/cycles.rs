//! Extern requests cycle by cycle, as hardware will see them (nanotransport.md, section 4): a
//! read-modify-write unit reads its memory in one cycle, writes it in the next, and answers in the one
//! after that. It must not be asked in two cycles running, or the second request would read what the
//! first is about to replace.

mod shipped;

use std::collections::BTreeMap;

use proptest::prelude::*;
use shipped::{HOMA_TR, compile};
use trimline_nic::ir::{self, ExternId, StmtKind};
use trimline_nic::nano::cells::{Cells, Op};

/// Cycles from a request to its answer.
const LATENCY: u64 = 2;

/// A unit of `IfElseRaw`, clocked.
struct Unit {
    memory: Vec<u16>,
    /// Read in the cycle before: cell and new value, to be written now.
    write: Option<(u64, usize, u16)>,
    /// When which answer is there.
    answers: BTreeMap<u64, u16>,
    last: Option<u64>,
}

impl Unit {
    fn new() -> Self {
        Self { memory: vec![0; 16], write: None, answers: BTreeMap::new(), last: None }
    }

    /// A request in `cycle`. Refused in the cycle after another.
    fn request(&mut self, cycle: u64, index: usize, op: Op, data: u16) -> Result<(), u64> {
        if self.last.is_some_and(|last| cycle < last + LATENCY) {
            return Err(cycle);
        }
        self.last = Some(cycle);
        if let Some((at, cell, value)) = self.write.take() {
            assert!(at < cycle, "written before it is read again");
            self.memory[cell] = value;
        }
        let old = self.memory[index];
        let new = match op {
            Op::Read => old,
            Op::Write => data,
            Op::Add => old.wrapping_add(data),
        };
        self.write = Some((cycle + 1, index, new));
        self.answers.insert(cycle + LATENCY, new);
        Ok(())
    }
}

fn any_request() -> impl Strategy<Value = (u64, usize, Op, u16)> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Write), Just(Op::Add)];
    // Packets of 2 to 18 words.
    (2..19u64, 0..16usize, op, any::<u16>())
}

proptest! {
    /// N1: answers are there exactly two cycles after their requests, and are those of the blocks,
    /// which know no cycles.
    #[test]
    fn n1_answers_come_two_cycles_after_requests(requests in prop::collection::vec(any_request(), 1..100)) {
        let (mut unit, mut cells) = (Unit::new(), Cells::new(16, 0xffff));
        let mut cycle = 0;
        for (words, index, op, data) in requests {
            unit.request(cycle, index, op, data).unwrap();
            let expected = cells.apply(index as u128, op, data.into());
            let (&at, &answer) = unit.answers.last_key_value().unwrap();
            prop_assert_eq!((at, u128::from(answer)), (cycle + 2, expected));
            cycle += words;
        }
    }
}

/// In which cycles of the pipeline a program calls each of its externs.
fn call_sites(program: &ir::Program) -> BTreeMap<ExternId, Vec<u64>> {
    let mut sites: BTreeMap<ExternId, Vec<u64>> = BTreeMap::new();
    for step in ir::stages(program).iter().flat_map(|schedule| &schedule.steps) {
        if let StmtKind::Call { which, .. } = step.stmt.kind {
            sites.entry(which).or_default().push(step.at.cycle.into());
        }
    }
    sites
}

/// The shortest packet has 65 bytes, two words of 512 bits; they come back to back.
const SHORTEST_WORDS: u64 = 2;

/// Requests of one unit's port for packets of `words` back to back, if each is delayed to the last place
/// where the program makes it.
fn stream(sites: &[u64], words: u64) -> Result<(), u64> {
    let place = sites.iter().copied().max().unwrap_or(0);
    let mut unit = Unit::new();
    (0..100).try_for_each(|packet| unit.request(packet * words + place, 0, Op::Add, 1))
}

/// N12: no two requests in consecutive cycles, for every port of every program.
#[test]
fn n12_no_requests_in_consecutive_cycles() {
    for program in [compile("ndp.p4", &[]), compile("homa.p4", HOMA_TR)] {
        let sites = call_sites(&program);
        assert!(!sites.is_empty());
        for (which, sites) in sites {
            let called = &program.externs[which.index()];
            assert_eq!(stream(&sites, SHORTEST_WORDS), Ok(()), "{called:?}");
            assert!(stream(&sites, 1).is_err(), "packets of one word would be too many");
            let slow = ["IfElseRaw", "DualPortRaw", "SrptScheduler", "get_rx_msg_info"];
            if slow.contains(&called.kind.as_str()) {
                assert_eq!(u64::from(called.latency), LATENCY, "N1 {called:?}");
            }
        }
    }
}
