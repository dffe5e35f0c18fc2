//! What whole NICs cost in cells, with `TRIMLINE_RTL_COST=1`: minutes.

use std::sync::Arc;

use p4::state::State;
use trimline_rtl::nic;
use trimline_rtl::sim::Design;
use trimline_rtl::synth::{SynthTools, synthesise};

use crate::busy::{compile, config};
use crate::folder;

const COST: &str = "TRIMLINE_RTL_COST";

#[test]
fn pipelines_and_blocks_in_cells() {
    if std::env::var_os(COST).is_none() {
        println!("cost skipped: set {COST}=1");
        return;
    }
    let tools = SynthTools::find().unwrap();
    for (name, file, protocol) in [("ndp", "ndp.p4", 155), ("homa", "homa.p4", 154)] {
        let program = compile(file, &[]);
        let state = State::new(Arc::clone(&program));
        let nic = nic::build(&program, &state, &config(&[protocol])).unwrap();
        let folder = folder(&format!("cost_{name}"));
        let whole = nic.design(&folder).unwrap();
        for top in ["ingress", "egress", "reassembly", "packetization", "generator", "srpt", "nic"]
        {
            let design = Design { top: top.into(), ..whole.clone() };
            match synthesise(&tools, &design, &folder.join(top)) {
                Ok(cost) => println!("{name} {top}: {cost:?}"),
                Err(why) => println!("{name} {top}: {why}"),
            }
        }
    }
}
