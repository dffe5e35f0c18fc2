//! The programs of `p4/`, over frames that mostly are theirs.

use std::sync::Arc;

use p4::interp::Machine;
use p4::ir::{self, PipelineId};
use trimline_programs::{PROGRAMS, Variant};

use crate::draw::Draw;
use crate::traffic::{compile, frame};
use crate::{Answers, outcome};

#[test]
fn generated_rust_does_what_the_interpreter_does_on_the_programs_of_p4() {
    for variant in PROGRAMS {
        let program = compile(variant.file, variant.constants);
        assert_eq!(ir::check(&program), Ok(()), "{}", variant.name);
        let mut machine = Machine::new(Arc::clone(&program));
        let mut compiled = trimline_programs::find::<Answers>(Arc::clone(&program)).unwrap();
        let mut draw = Draw(7);
        for turn in 0..5000 {
            let pipeline = PipelineId(draw.below(program.pipelines.len() as u64) as u32);
            let (frame, seed) = (frame(&mut draw), draw.bits());
            let wanted = outcome(&mut machine, pipeline, &frame, seed);
            let got = outcome(compiled.as_mut(), pipeline, &frame, seed);
            assert_eq!(got, wanted, "{}, frame {turn}", variant.name);
        }
    }
}

#[test]
fn a_program_with_other_constants_is_another_program() {
    let odd = Variant { name: "", file: "homa.p4", constants: &[("OVERCOMMITMENT", 4)] };
    assert!(trimline_programs::find::<Answers>(compile(odd.file, odd.constants)).is_none());
}

/// As many stages as the paper gives (specs/nanotransport.md#1), and cycles from the parsed headers
/// to the last event.
#[test]
fn stages_are_those_of_the_paper() {
    for variant in PROGRAMS {
        let program = compile(variant.file, variant.constants);
        let hardware = ir::Hardware::new(&program).unwrap();
        let schedules = hardware.schedules().iter();
        let got: Vec<_> = schedules.map(|s| (s.stages(), s.cycles())).collect();
        let wanted = match variant.file {
            "ndp.p4" | "ndp_bypass.p4" | "window.p4" => [(3, 5), (1, 1)],
            "homa.p4" => [(5, 9), (2, 3)],
            // Not in the paper: what the flow has, what divides one after the other, what is said.
            "hpcc.p4" | "swift.p4" => [(5, 5), (1, 1)],
            "dcqcn.p4" => [(3, 3), (1, 1)],
            "nscc.p4" => [(4, 4), (3, 3)],
            // Not in the paper: what is read, then what is written.
            "ndp_switch.p4" => [(2, 2), (2, 2)],
            // The longer of the two.
            _ => [(5, 9), (2, 3)],
        };
        assert_eq!(got, wanted, "{}", variant.name);
    }
}

/// Operators one after the other in the longest stage, as docs/nic.md has them.
#[test]
fn programs_that_compute_have_long_stages() {
    for (file, depth) in [("hpcc.p4", 40), ("swift.p4", 28), ("dcqcn.p4", 38), ("nscc.p4", 31)] {
        let program = compile(file, &[]);
        let hardware = ir::Hardware::new(&program).unwrap();
        assert_eq!(hardware.schedules()[0].depth(), depth, "{file}");
    }
}
