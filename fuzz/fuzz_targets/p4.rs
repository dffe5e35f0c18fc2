//! The P4 front end on arbitrary text, and on Trimline's own programs with a piece replaced: it never
//! panics, and what it accepts keeps the rules of the IR, is interpreted and becomes Rust.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use p4::interp::Machine;
use p4::program::{NoExterns, Program};
use p4::{front, ir, rust};

/// Programs to spoil, and what they include.
const PROGRAMS: &[(&str, &str)] = &[
    ("ndp.p4", include_str!("../../p4/ndp.p4")),
    ("homa.p4", include_str!("../../p4/homa.p4")),
    ("flow_counter.p4", include_str!("../../crates/p4/tests/small/flow_counter.p4")),
    ("ecn_echo.p4", include_str!("../../crates/p4/tests/small/ecn_echo.p4")),
    ("source_route.p4", include_str!("../../crates/p4/tests/small/source_route.p4")),
];
const INCLUDES: &[(&str, &str)] = &[
    ("headers.p4", include_str!("../../p4/headers.p4")),
    ("homa_rules.p4", include_str!("../../p4/homa_rules.p4")),
    ("ndp_rules.p4", include_str!("../../p4/ndp_rules.p4")),
    ("box.p4", include_str!("../../crates/p4/tests/small/box.p4")),
];

fuzz_target!(|data: &[u8]| {
    compile(&String::from_utf8_lossy(data));
    // Two bytes say which program and where, one how much of it goes, the rest takes its place.
    if let [which, at, much, new @ ..] = data {
        let (_, program) = PROGRAMS[usize::from(*which) % PROGRAMS.len()];
        let start = usize::from(*at) * program.len() / 256;
        let end = (start + usize::from(*much)).min(program.len());
        let bytes = [&program.as_bytes()[..start], new, &program.as_bytes()[end..]].concat();
        compile(&String::from_utf8_lossy(&bytes));
    }
});

fn compile(text: &str) {
    let files = |name: &str| match INCLUDES.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok((*text).to_owned()),
        None if name == "main.p4" => Ok(text.to_owned()),
        None => Err("there is none".to_owned()),
    };
    let compiled = front::check(&files, "main.p4", &[]);
    for diagnostic in &compiled.diagnostics {
        assert!(!diagnostic.to_string().is_empty());
    }
    if let Some(program) = compiled.program {
        assert_eq!(ir::check(&program), Ok(()));
        let _ = ir::hazards(&program);
        let program = Arc::new(program);
        let _ = rust::generate(&program, "Fuzzed");
        let mut machine = Machine::new(Arc::clone(&program));
        for (at, pipeline) in (0..).map(ir::PipelineId).zip(&program.pipelines) {
            let mut meta = vec![u128::MAX; pipeline.meta.len()];
            let packet = text.as_bytes();
            let _ = machine.run(at, packet, &mut meta, &mut Vec::new(), &mut NoExterns);
        }
    }
}
