//! `p4/reciprocal.p4` against division: its table is what its formula says, and the bound that its comment states is
//! never exceeded.

mod step;

use std::path::Path;
use std::sync::Arc;

use step::Drawn;
use trimline_nic::interp::Machine;
use trimline_nic::ir::{Pattern, PipelineId, TableId};
use trimline_nic::p4;
use trimline_nic::program::{NoExterns, Program};

/// A packet is x, and goes out as its reciprocal.
const USER: &str = r#"
#include "box.p4"
#include "reciprocal.p4"
header x_t { bit<32> x; }
header inverse_t { bit<8> exponent; bit<24> inverse; }
struct headers_t { x_t x; inverse_t inverse; }
parser Parse(packet_in packet, out headers_t h) {
    state start {
        packet.extract(h.x);
        transition accept;
    }
}
control Work(inout headers_t h, inout box_t box) {
    Reciprocal() reciprocal;
    apply {
        bit<18> inverse;
        bit<8> exponent;
        reciprocal.apply(h.x.x, inverse, exponent);
        h.x.setInvalid();
        h.inverse.setValid();
        h.inverse.exponent = exponent;
        h.inverse.inverse = (bit<24>)inverse;
    }
}
control Deparse(packet_out packet, in headers_t h) {
    apply { packet.emit(h); }
}
Box(Parse(), Work(), Deparse()) main;
"#;

fn machine() -> Machine {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/small");
    let p4 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4");
    let read = |file: &str| match file {
        "user.p4" => Ok(USER.to_owned()),
        "box.p4" => std::fs::read_to_string(tests.join(file)).map_err(|e| e.to_string()),
        file => std::fs::read_to_string(p4.join(file)).map_err(|e| e.to_string()),
    };
    let compiled = p4::check(&read, "user.p4", &[]);
    let said: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
    assert!(said.is_empty(), "{}", said.join("\n"));
    Machine::new(Arc::new(compiled.program.unwrap()))
}

/// By how much 1/x is missed, as a part of it.
fn error(machine: &mut Machine, x: u32) -> f64 {
    let (mut meta, mut out) = ([0, 0], Vec::new());
    let ran = machine.run(PipelineId(0), &x.to_be_bytes(), &mut meta, &mut out, &mut NoExterns);
    ran.unwrap();
    let [exponent, a, b, c] = *out else { panic!("{out:?}") };
    let inverse = f64::from(u32::from_be_bytes([0, a, b, c]));
    inverse * f64::from(x) / (1u64 << (18 + exponent)) as f64 - 1.0
}

#[test]
fn the_table_is_its_formula() {
    let machine = machine();
    let table = &machine.program().tables[TableId(0).index()];
    assert!(table.const_entries && table.entries.len() == 32);
    for (k, entry) in table.entries.iter().enumerate() {
        let middle = (32.5 + k as f64) / 64.0;
        assert_eq!(entry.patterns, [Pattern::Value(k as u128)]);
        assert_eq!(entry.choice.args, [(1024.0 / middle).round() as u128], "entry {k}");
    }
}

/// Never more, and less by at most 0.026 %.
#[test]
fn the_bound_holds() {
    let mut machine = machine();
    let mut drawn = Drawn(1);
    let small = 1..20_000;
    let edges =
        (0..32).flat_map(|bit| [1u32 << bit, (1 << bit) + 1, (1 << bit) - 1, u32::MAX >> bit]);
    let large = (0..40_000).map(|_| drawn.scaled(1.0, f64::from(u32::MAX)) as u32);
    let (mut least, mut most) = (0.0f64, -1.0f64);
    for x in small.chain(edges).chain(large).filter(|x| *x > 0) {
        let error = error(&mut machine, x);
        assert!((-0.00026..=0.0).contains(&error), "1/{x}: {error}");
        (least, most) = (least.min(error), most.max(error));
    }
    assert!(
        least < -0.00023 && most > -0.000_02,
        "the bound is no larger than need be: {least} {most}"
    );
}
