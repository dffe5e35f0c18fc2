//! Programs that mean nothing.

use std::sync::Arc;

use p4::interp::Machine;
use p4::ir::{PipelineId, TableId};
use p4::program::Program;

use crate::draw::{self, Draw, PROGRAMS};
use crate::traffic::packet;
use crate::{Answers, outcome};

/// The programs, compiled by the build script.
#[allow(warnings, clippy::all)]
mod compiled {
    use std::sync::Arc;

    use p4::bits;
    use p4::ir::{
        self, CounterId, ErrorId, ExternId, NO_ERROR, NO_MATCH, PACKET_TOO_SHORT, PipelineId,
        RegisterId, TableId,
    };
    use p4::program::{Externs, Parsed, Program};
    use p4::rust::{Context, Exit};
    use p4::state::State;

    include!(concat!(env!("OUT_DIR"), "/drawn.rs"));
}

#[test]
fn generated_rust_does_what_the_interpreter_does_on_drawn_programs() {
    let mut accepted = 0;
    for number in 0..PROGRAMS {
        let program = Arc::new(draw::program(number));
        let mut machine = Machine::new(Arc::clone(&program));
        let mut compiled = compiled::all(number, Arc::clone(&program));
        let mut draw = Draw(!number);
        for turn in 0..2000 {
            if turn % 100 == 99 {
                change_table(&mut draw, &mut machine, compiled.as_mut());
            }
            let (bytes, seed) = (packet(&mut draw), draw.bits());
            let wanted = outcome(&mut machine, PipelineId(0), &bytes, seed);
            let got = outcome(compiled.as_mut(), PipelineId(0), &bytes, seed);
            assert_eq!(got, wanted, "program {number}, packet {turn}\n{program}");
        }
        accepted += accepts(&mut machine);
    }
    assert!(accepted > PROGRAMS / 2, "{accepted}: too few programs let packets through");
}

/// Whether a packet gets through the parser.
fn accepts(machine: &mut Machine) -> u64 {
    let count = machine.program().pipelines[0].meta.len();
    let mut meta = vec![0; count];
    let mut answers = Answers(1);
    let packets = [[0; 300], [0xff; 300], [1; 300]];
    let through = packets.iter().any(|bytes| {
        machine.run(PipelineId(0), bytes, &mut meta, &mut Vec::new(), &mut answers).is_ok()
    });
    u64::from(through)
}

/// The control plane adds, removes and changes the default, of both alike.
fn change_table(draw: &mut Draw, one: &mut Machine, other: &mut dyn Program<Answers>) {
    let program = Arc::clone(one.program());
    let (id, table) = (TableId(0), &program.tables[0]);
    let one: &mut dyn Program<Answers> = one;
    let states = [one.state(), other.state()];
    let entry = draw::entry(draw, &program, table);
    let choice = draw::choice(draw, &program, table);
    let old = states[0].entries(id).first().cloned();
    let results = states.map(|state| {
        let removed = old.as_ref().map(|old| state.remove(id, &old.patterns, old.priority));
        let inserted = state.insert(id, entry.clone());
        let modified = state.modify(id, &entry.patterns, entry.priority, entry.choice.clone());
        (removed, inserted, modified, state.set_default(id, choice.clone()))
    });
    assert_eq!(results[0], results[1]);
}
