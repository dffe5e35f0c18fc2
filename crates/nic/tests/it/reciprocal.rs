//! `p4/reciprocal.p4` and `p4/inverse_root.p4` against division and roots: their tables are what
//! their formulas say, and the bounds that their comments state are never exceeded.

use crate::step;

use std::path::Path;
use std::sync::Arc;

use p4::front;
use p4::interp::Machine;
use p4::ir::{Pattern, PipelineId, TableId};
use p4::program::{NoExterns, Program};
use step::Drawn;

/// A packet is x, and goes out as what CONTROL makes of it.
const USER: &str = r#"
#include "box.p4"
#include "FILE"
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
    CONTROL() control_;
    apply {
        bit<18> inverse;
        bit<8> exponent;
        control_.apply(h.x.x, inverse, exponent);
        h.x.setInvalid();
        h.inverse.setValid();
        h.inverse.exponent = OFFSET + exponent;
        h.inverse.inverse = (bit<24>)inverse;
    }
}
control Deparse(packet_out packet, in headers_t h) {
    apply { packet.emit(h); }
}
Box(Parse(), Work(), Deparse()) main;
"#;

fn machine(file: &str, control: &str) -> Machine {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../p4/tests/small");
    let p4 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4");
    let offset = if control == "Reciprocal" { "18" } else { "0" };
    let user = USER.replace("FILE", file).replace("CONTROL", control).replace("OFFSET", offset);
    let read = |file: &str| match file {
        "user.p4" => Ok(user.clone()),
        "box.p4" => std::fs::read_to_string(tests.join(file)).map_err(|e| e.to_string()),
        file => std::fs::read_to_string(p4.join(file)).map_err(|e| e.to_string()),
    };
    let compiled = front::check(&read, "user.p4", &[]);
    let said: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
    assert!(said.is_empty(), "{}", said.join("\n"));
    Machine::new(Arc::new(compiled.program.unwrap()))
}

/// What it makes of `x`.
fn value(machine: &mut Machine, x: u32) -> f64 {
    let (mut meta, mut out) = ([0, 0], Vec::new());
    let ran = machine.run(PipelineId(0), &x.to_be_bytes(), &mut meta, &mut out, &mut NoExterns);
    ran.unwrap();
    let [exponent, a, b, c] = *out else { panic!("{out:?}") };
    f64::from(u32::from_be_bytes([0, a, b, c])) / (1u64 << exponent) as f64
}

/// Entries from `from` to 31, each by its number.
fn the_table_is(machine: &Machine, from: usize, formula: impl Fn(f64) -> f64) {
    let table = &machine.program().tables[TableId(0).index()];
    assert!(table.const_entries && table.entries.len() == 32 - from);
    for (k, entry) in (from..32).zip(&table.entries) {
        assert_eq!(entry.patterns, [Pattern::Value(k as u128)]);
        assert_eq!(entry.choice.args, [formula(k as f64 + 0.5).round() as u128], "entry {k}");
    }
}

/// Never more, and less by at most `bound`, which is no larger than need be.
fn the_bound_holds(machine: &mut Machine, exact: impl Fn(f64) -> f64, bound: f64) {
    let mut drawn = Drawn(1);
    let small = 1..20_000;
    let edges =
        (0..32).flat_map(|bit| [1u32 << bit, (1 << bit) + 1, (1 << bit) - 1, u32::MAX >> bit]);
    let large = (0..60_000).map(|_| drawn.scaled(1.0, f64::from(u32::MAX)) as u32);
    let mut least = 0.0f64;
    for x in small.chain(edges).chain(large).filter(|x| *x > 0) {
        let error = value(machine, x) / exact(x.into()) - 1.0;
        assert!(-bound <= error && error <= 0.0, "{x}: {error}");
        least = least.min(error);
    }
    assert!(least < -0.9 * bound, "{least}");
}

#[test]
fn reciprocals_are_less_by_at_most_their_bound() {
    let mut machine = machine("reciprocal.p4", "Reciprocal");
    the_table_is(&machine, 0, |k| 1024.0 / ((32.0 + k) / 64.0));
    the_bound_holds(&mut machine, |x| 1.0 / x, 0.00026);
}

#[test]
fn inverse_roots_are_less_by_at_most_their_bound() {
    let mut machine = machine("inverse_root.p4", "InverseRoot");
    the_table_is(&machine, 8, |k| 1024.0 / (k / 32.0).sqrt());
    the_bound_holds(&mut machine, |x| 1.0 / x.sqrt(), 0.0014);
}
