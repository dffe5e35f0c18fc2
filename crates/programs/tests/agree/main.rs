//! Generated Rust and circuits do what the interpreter does: on programs drawn from a seed and on
//! those of `p4/`, over packets, metadata, table entries and answers of externs drawn from another.

mod draw;
mod drawn;
mod pipelined;
mod shipped;
mod traffic;

use std::sync::Arc;

use p4::ir::{CounterId, ExternId, PipelineId, RegisterId};
use p4::program::{Externs, Program};

use draw::Draw;

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

/// What a packet does in a pipeline: the result, metadata, headers; and afterwards the externs and
/// the first values of registers and counters.
fn outcome(
    program: &mut dyn Program<Answers>,
    pipeline: PipelineId,
    packet: &[u8],
    seed: u64,
) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut draw = Draw(seed);
    let known = Arc::clone(program.state().program());
    // Values too wide on purpose.
    let meta = known.pipelines[pipeline.index()].meta.iter();
    let mut meta: Vec<u128> = meta.map(|_| draw.value(128)).collect();
    let (mut out, mut answers) = (vec![7], Answers(draw.bits()));
    let result = program.run(pipeline, packet, &mut meta, &mut out, &mut answers);
    let state = program.state();
    let places = |count: usize| (0..count as u32).flat_map(|id| (0..8).map(move |at| (id, at)));
    let registers = places(known.registers.len());
    let registers: Vec<u128> =
        registers.map(|(id, at)| state.register(RegisterId(id), at)).collect();
    let counted = places(known.counters.len());
    let counted: Vec<_> = counted.map(|(id, at)| state.counted(CounterId(id), at)).collect();
    (result, meta, out, answers, registers, counted)
}
