//! Generated Rust does what the interpreter does, on programs drawn from a seed, over packets,
//! metadata, table entries and answers of externs drawn from another.

mod programs;

use std::sync::Arc;

use nic::interp::Machine;
use nic::ir::{CounterId, ExternId, PipelineId, RegisterId, TableId};
use nic::program::{Externs, Program};
use programs::{Draw, PROGRAMS};

/// The programs, compiled by the build script.
#[allow(warnings, clippy::all)]
mod compiled {
    use std::sync::Arc;

    use nic::bits;
    use nic::ir::{
        self, CounterId, ErrorId, ExternId, NO_ERROR, NO_MATCH, PACKET_TOO_SHORT, PipelineId,
        RegisterId, TableId,
    };
    use nic::program::{Externs, Parsed, Program};
    use nic::rust::Context;
    use nic::state::State;

    include!(concat!(env!("OUT_DIR"), "/drawn.rs"));
}

/// Answers that depend on the call and on all calls before it.
#[derive(Clone, Debug, PartialEq)]
struct Answers(u64);

impl Externs for Answers {
    fn call(&mut self, which: ExternId, args: &[u128], results: &mut [u128]) {
        let seed = args.iter().fold(self.0 ^ u64::from(which.0), |seed, arg| {
            Draw(seed ^ *arg as u64 ^ (*arg >> 64) as u64).bits()
        });
        let mut draw = Draw(seed);
        self.0 = draw.bits();
        for result in results {
            *result = u128::from(draw.bits()) << 64 | u128::from(draw.bits());
        }
    }
}

/// What a packet does: the result, metadata, headers, and the externs afterwards.
fn outcome(program: &mut dyn Program<Answers>, seed: u64) -> impl PartialEq + std::fmt::Debug {
    let count = program.state().program().pipelines[0].meta.len();
    let mut draw = Draw(seed);
    let length = draw.below(120) as usize;
    let few = draw.below(2) == 0;
    let packet: Vec<u8> = (0..length)
        .map(|_| if few { [0, 0, 1, 0xff][draw.below(4) as usize] } else { draw.bits() as u8 })
        .collect();
    // Values too wide on purpose.
    let mut meta: Vec<u128> = (0..count).map(|_| draw.value(128)).collect();
    let (mut out, mut answers) = (vec![7], Answers(draw.bits()));
    let result = program.run(PipelineId(0), &packet, &mut meta, &mut out, &mut answers);
    let state = program.state();
    let registers: Vec<u128> =
        (0..10).map(|at: u32| state.register(RegisterId(at % 2), u128::from(at / 2))).collect();
    let counted: Vec<_> = (0..3).map(|at| state.counted(CounterId(0), at)).collect();
    (result, meta, out, answers, registers, counted)
}

#[test]
fn generated_rust_does_what_the_interpreter_does() {
    let mut accepted = 0;
    for number in 0..PROGRAMS {
        let program = Arc::new(programs::program(number));
        let mut machine = Machine::new(Arc::clone(&program));
        let mut compiled = compiled::all(number, Arc::clone(&program));
        let mut draw = Draw(!number);
        for packet in 0..2000 {
            if packet % 100 == 99 {
                change_table(&mut draw, &mut machine, compiled.as_mut());
            }
            let seed = draw.bits();
            let wanted = outcome(&mut machine, seed);
            let got = outcome(compiled.as_mut(), seed);
            assert_eq!(got, wanted, "program {number}, packet {packet}, seed {seed}\n{program}");
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
    let through = packets.iter().any(|packet| {
        machine.run(PipelineId(0), packet, &mut meta, &mut Vec::new(), &mut answers).is_ok()
    });
    u64::from(through)
}

/// The control plane adds, removes and changes the default, of both alike.
fn change_table(draw: &mut Draw, one: &mut Machine, other: &mut dyn Program<Answers>) {
    let program = Arc::clone(one.program());
    let (id, table) = (TableId(0), &program.tables[0]);
    let one: &mut dyn Program<Answers> = one;
    let states = [one.state(), other.state()];
    let entry = programs::entry(draw, &program, table);
    let choice = programs::choice(draw, &program, table);
    let old = states[0].entries(id).first().cloned();
    let results = states.map(|state| {
        let removed = old.as_ref().map(|old| state.remove(id, &old.patterns, old.priority));
        (removed, state.insert(id, entry.clone()), state.set_default(id, choice.clone()))
    });
    assert_eq!(results[0], results[1]);
}
