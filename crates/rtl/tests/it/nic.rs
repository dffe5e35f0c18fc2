//! Whole NICs in hardware beside the model of the clocked law.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use p4::ir;
use p4::state::State;
use trimline_rtl::blocks::BLOCKS;
use trimline_rtl::cosim::Cosim;
use trimline_rtl::cosim::traffic::Plan;
use trimline_rtl::nic::{self, Nic};
use trimline_rtl::sim::Design;
use trimline_rtl::tools::Tools;

use crate::traffic::{compile, config, traffic};
use crate::{folder, tools};

/// A design of the NIC in a folder.
fn design(nic: &Nic, folder: &Path) -> Design {
    fs::create_dir_all(folder).unwrap();
    let blocks = BLOCKS.iter().map(|(name, text)| (format!("{name}.sv"), (*text).to_owned()));
    let files: Vec<(String, String)> = blocks.chain(nic.files.iter().cloned()).collect();
    let sources = files.iter().map(|(name, text)| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    });
    Design {
        top: "nic".into(),
        sources: sources.collect(),
        parameters: Vec::new(),
        inputs: nic.inputs.clone(),
        outputs: nic.outputs.clone(),
    }
}

fn agree(tools: &Tools, name: &str, program: &Arc<ir::Program>, protocol: u8, plans: &[Plan], packets: u64) {
    let config = config(protocol);
    let state = State::new(Arc::clone(program));
    let nic = nic::build(program, &state, &config).unwrap();
    let folder = folder(name);
    let built = design(&nic, &folder).build(tools, &folder).unwrap_or_else(|why| panic!("{why}"));
    for plan in plans {
        let circuit = built.start().unwrap();
        let mut cosim = Cosim::new(circuit, traffic(program, protocol, *plan), config.clone());
        match cosim.run(packets) {
            Ok(compared) => println!("{name}, {plan:?}: {compared:?}"),
            Err(why) => panic!("{name}, {plan:?}: {why}"),
        }
    }
}

#[test]
fn ndp_in_hardware_is_the_clocked_model() {
    let Some(tools) = tools("ndp_in_hardware") else { return };
    let plans = [Plan { seed: 1, spacing: 2, is_dense: true }, Plan { seed: 2, spacing: 2, is_dense: false }];
    agree(&tools, "nic_ndp", &compile("ndp.p4", &[]), 155, &plans, 20_000);
}
