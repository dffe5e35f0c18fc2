//! Whole NICs in hardware beside the model of the clocked law: NDP, Homa-Tr and both in one in
//! every run, their variants where `TRIMLINE_RTL` is `all`.

use std::sync::Arc;

use p4::ir;
use p4::state::State;
use trimline_rtl::cosim::Cosim;
use trimline_rtl::cosim::traffic::Plan;
use trimline_rtl::nic;

use crate::busy::{compile, config, traffic};
use crate::{counted, everything, folder, tools};

/// A program as a whole NIC.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    file: &'static str,
    constants: &'static [(&'static str, i128)],
    pub(crate) protocols: &'static [u8],
    /// The program's least spacing.
    pub(crate) spacing: u64,
}

pub(crate) const NDP: Case =
    Case { name: "ndp", file: "ndp.p4", constants: &[], protocols: &[155], spacing: 2 };
pub(crate) const HOMA: Case =
    Case { name: "homa", file: "homa.p4", constants: &[], protocols: &[154], spacing: 4 };
pub(crate) const HOMA_TR: Case = Case { name: "homa_tr", constants: &[("TRIM", 1)], ..HOMA };
pub(crate) const BOTH: Case = Case {
    name: "ndp_homa",
    file: "ndp_homa.p4",
    constants: &[("TRIM", 1)],
    protocols: &[155, 154],
    spacing: 4,
};
pub(crate) const WINDOW: Case =
    Case { name: "window", file: "window.p4", constants: &[], protocols: &[253], spacing: 2 };
pub(crate) const BYPASS: Case = Case { name: "ndp_bypass", file: "ndp_bypass.p4", ..NDP };

/// Packets of a program, half in each plan, if they are to be others.
const PACKETS: &str = "TRIMLINE_RTL_PACKETS";

pub(crate) fn packets() -> u64 {
    std::env::var(PACKETS).ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

/// A variant of a program that runs in every run.
fn agree_where_all_run(case: &Case) {
    if everything() {
        agree(case);
    } else {
        println!("{} skipped: it runs with TRIMLINE_RTL=all", case.name);
    }
}

impl Case {
    pub(crate) fn compile(&self) -> Arc<ir::Program> {
        compile(self.file, self.constants)
    }
}

/// A NIC with the program, under traffic as close as it may come and at drawn distances.
fn agree(case: &Case) {
    let Some(tools) = tools(case.name) else { return };
    let (program, config) = (case.compile(), config(case.protocols));
    let state = State::new(Arc::clone(&program));
    let nic = nic::build(&program, &state, &config).unwrap();
    let folder = folder(&format!("nic_{}", case.name));
    let built =
        nic.design(&folder).unwrap().build(&tools, &folder).unwrap_or_else(|why| panic!("{why}"));
    for (seed, is_dense) in [(1, true), (2, false)] {
        let plan = Plan { seed, spacing: case.spacing, is_dense };
        let traffic = traffic(&program, case.protocols, plan);
        let mut cosim = Cosim::new(built.start().unwrap(), traffic, config.clone());
        match cosim.run(packets() / 2, &mut |_| {}) {
            Ok(compared) => println!("{}, {plan:?}: {compared:?}", case.name),
            Err(why) => panic!("{}, {plan:?}: {why}", case.name),
        }
    }
    counted::rejections(&program, &config, &built, nic.making);
}

#[test]
fn ndp_in_hardware_is_the_clocked_model() {
    agree(&NDP);
}

#[test]
fn homa_in_hardware_is_the_clocked_model() {
    agree_where_all_run(&HOMA);
}

#[test]
fn homa_tr_in_hardware_is_the_clocked_model() {
    agree(&HOMA_TR);
}

#[test]
fn both_in_hardware_are_the_clocked_model() {
    agree_where_all_run(&BOTH);
}

#[test]
fn a_window_in_hardware_is_the_clocked_model() {
    agree_where_all_run(&WINDOW);
}

#[test]
fn a_bypass_in_hardware_is_the_clocked_model() {
    agree_where_all_run(&BYPASS);
}
