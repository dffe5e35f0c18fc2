//! The traffic that NICs are compared under is what it says.

use std::path::Path;
use std::sync::Arc;

use nic::nano::config::Config;
use p4::interp::Machine;
use p4::ir;
use trimline_rtl::cosim::traffic::{Plan, Traffic};
use units::Dur;

pub(crate) fn compile(name: &str, constants: &[(&str, i128)]) -> Arc<ir::Program> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4");
    let files = |file: &str| std::fs::read_to_string(dir.join(file)).map_err(|e| e.to_string());
    let constants: Vec<_> =
        constants.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    Arc::new(p4::front::compile(&files, name, &constants).unwrap())
}

pub(crate) fn config(protocols: &[u8]) -> Config {
    let prototype = Config::prototype(9, Dur::from_ns(1000));
    Config { protocols: protocols.to_vec(), remember: Some(64), clocked: true, ..prototype }
}

pub(crate) fn traffic(program: &Arc<ir::Program>, protocols: &[u8], plan: Plan) -> Traffic {
    traffic_of(program, &config(protocols), plan)
}

/// The same among NICs of other sizes.
pub(crate) fn traffic_of(program: &Arc<ir::Program>, config: &Config, plan: Plan) -> Traffic {
    let runs = || Box::new(Machine::new(Arc::clone(program))) as nic::nano::endpoint::Runs;
    Traffic::new(program, &runs, config, plan).unwrap()
}

/// Everything that a NIC can do happens, often.
#[test]
fn everything_happens() {
    for (file, constants, protocol) in
        [("ndp.p4", &[][..], 155), ("homa.p4", &[("TRIM", 1)][..], 154)]
    {
        let program = compile(file, constants);
        let plan = Plan { seed: 1, spacing: 8, is_dense: true };
        let mut traffic = traffic(&program, &[protocol], plan);
        let (mut refused, mut sent, mut delivered, mut acked, mut gave_up) = (0, 0, 0, 0, 0);
        let mut cycles = 0;
        while traffic.arrived() < 10_000 {
            let (given, done) = traffic.cycle();
            refused += u32::from(given.message.is_some() && !done.takes);
            sent += u32::from(done.sends.is_some());
            delivered += u32::from(done.delivers.is_some());
            acked += u32::from(done.acked.is_some());
            gave_up += u32::from(done.gives_up.is_some());
            cycles += 1;
        }
        println!("{file}: {cycles} {refused} {sent} {delivered} {acked} {gave_up}");
        assert!(refused > 20 && sent > 5_000 && delivered > 200 && acked > 200 && gave_up > 5);
    }
}
