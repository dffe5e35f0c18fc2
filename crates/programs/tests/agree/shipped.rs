//! The programs of `p4/`, over frames that mostly are theirs.

use std::path::Path;
use std::sync::Arc;

use p4::interp::Machine;
use p4::ir::{self, PipelineId};
use trimline_programs::{PROGRAMS, Variant};

use crate::draw::Draw;
use crate::{Answers, outcome};

/// A program as a scenario would compile it.
pub(crate) fn compile(variant: &Variant) -> Arc<ir::Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|e| e.to_string());
    let constants = variant.constants.iter().map(|(name, value)| ((*name).to_owned(), *value));
    let constants: Vec<(String, i128)> = constants.collect();
    Arc::new(p4::front::compile(&text, variant.file, &constants).unwrap())
}

/// Ethernet, IPv4 and bytes of a transport header, now and then cut off or not quite right.
pub(crate) fn frame(draw: &mut Draw) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..64 + draw.below(60)).map(|_| draw.bits() as u8).collect();
    frame[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    frame[23] = [154, 155, 197, 198, 199, 253, 200][draw.below(7) as usize];
    // One flag as a rule.
    frame[34] = if draw.below(4) == 0 { draw.bits() as u8 } else { 1 << draw.below(5) };
    if draw.below(4) == 0 {
        key_value(draw, &mut frame);
    }
    if draw.below(20) == 0 {
        let at = draw.below(frame.len() as u64) as usize;
        frame[at] ^= 1 << draw.below(8);
    }
    if draw.below(20) == 0 {
        frame.truncate(draw.below(70) as usize);
    }
    frame
}

/// A request of `kv_rules.p4` behind the header: few keys, so that some are found.
fn key_value(draw: &mut Draw, frame: &mut Vec<u8>) {
    frame[34] = 0x01;
    frame[39..41].copy_from_slice(&32_u16.to_be_bytes());
    frame.truncate(64);
    frame.extend(b"KVC1");
    frame.push(1 + draw.below(2) as u8);
    frame.extend([0; 10]);
    frame.push(draw.below(4) as u8);
    frame.extend((0..16).map(|_| draw.bits() as u8));
}

#[test]
fn generated_rust_does_what_the_interpreter_does_on_the_programs_of_p4() {
    for variant in PROGRAMS {
        let program = compile(variant);
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
    assert!(trimline_programs::find::<Answers>(compile(&odd)).is_none());
}

/// As many stages as the paper gives (specs/nanotransport.md#1), and cycles from the parsed headers
/// to the last event.
#[test]
fn stages_are_those_of_the_paper() {
    for variant in PROGRAMS {
        let program = compile(variant);
        let hardware = ir::Hardware::new(&program).unwrap();
        let schedules = hardware.schedules().iter();
        let got: Vec<_> = schedules.map(|s| (s.stages(), s.cycles())).collect();
        let wanted = match variant.file {
            "ndp.p4" | "ndp_bypass.p4" | "window.p4" => [(3, 5), (1, 1)],
            "homa.p4" => [(5, 9), (2, 3)],
            // Not in the paper: what the flow has, what divides one after the other, what is said.
            "hpcc.p4" | "swift.p4" => [(5, 5), (1, 1)],
            "dcqcn.p4" => [(3, 3), (1, 1)],
            // Not in the paper: what is read, then what is written.
            "ndp_switch.p4" => [(2, 2), (2, 2)],
            // The longer of the two.
            _ => [(5, 9), (2, 3)],
        };
        assert_eq!(got, wanted, "{}", variant.name);
    }
}
