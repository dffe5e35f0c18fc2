//! Whole NICs with their bytes beside the model of the clocked law.

use std::sync::Arc;

use p4::state::State;
use trimline_rtl::cosim::bytes::{Bytes, Pace};
use trimline_rtl::cosim::traffic::Plan;
use trimline_rtl::nic;

use crate::busy::{config, traffic};
use crate::whole::{Case, NDP, packets};
use crate::{folder, tools};

fn agree(case: &Case) {
    let Some(tools) = tools(case.name) else { return };
    let (program, config) = (case.compile(), config(case.protocols));
    let state = State::new(Arc::clone(&program));
    let nic = nic::data::build(&program, &state, &config).unwrap();
    let folder = folder(&format!("data_{}", case.name));
    let built =
        nic.design(&folder).unwrap().build(&tools, &folder).unwrap_or_else(|why| panic!("{why}"));
    for (seed, pace, is_dense) in
        [(1, Pace::Beats, true), (2, Pace::Link, false), (3, Pace::Stalls, true)]
    {
        let plan = Plan { seed, spacing: case.spacing, is_dense };
        let traffic = traffic(&program, case.protocols, plan);
        let mut run = Bytes::new(built.start().unwrap(), traffic, config.clone(), pace);
        match run.run(packets()) {
            Ok(carried) => println!("{}, {pace:?}: {carried:?}", case.name),
            Err(why) => panic!("{}, {pace:?}: {why}", case.name),
        }
    }
}

#[test]
fn ndp_with_bytes() {
    agree(&NDP);
}
