//! `backend = "rtl"`: a scenario with NICs in hardware is the scenario with the models of them.

use std::path::Path;

use endpoint::Observer;
use rtl::tools::Tools;
use trimline_scenario::{Options, Scenario, observe};

/// All NICs of both incasts, not only some.
const ALL: &str = "TRIMLINE_RTL_ALL";

fn digest(file: &str, set: &[&str]) -> u64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/p4").join(file);
    let edits: Vec<String> = set.iter().map(|&set| set.to_owned()).collect();
    let scenario =
        Scenario::load(&path, &edits).unwrap_or_else(|why| panic!("{}", why.render(false)));
    let options = Options { threads: Some(1), ..Options::default() };
    observe(&scenario, &options, Nobody).unwrap_or_else(|why| panic!("{why}")).0.digest
}

/// Looks at nothing.
struct Nobody;

impl Observer for Nobody {}

/// nanoTransport's incast: ten senders, one receiver (specs/nanotransport.md#15.4).
fn agrees(file: &str, sets: &[&[&str]]) {
    if let Err(why) = Tools::find() {
        println!("{file} with circuits skipped: {why}");
        return;
    }
    let clocked = "transport.clocked=true";
    let model = digest(file, &[clocked]);
    for set in sets {
        let all: Vec<&str> =
            [clocked, "transport.backend=rtl"].into_iter().chain(set.iter().copied()).collect();
        assert_eq!(digest(file, &all), model, "{file} {set:?}");
    }
}

const RECEIVER: &[&str] = &["transport.rtl_hosts=[0]"];
const EVERYBODY: &[&str] = &[];

fn is_all() -> bool {
    std::env::var_os(ALL).is_some()
}

#[test]
fn an_incast_of_ndp_has_one_digest_with_models_and_with_circuits() {
    agrees("incast_ndp.toml", &[RECEIVER, EVERYBODY]);
}

#[test]
fn an_incast_of_homa_has_one_digest_with_models_and_with_circuits() {
    agrees("incast.toml", if is_all() { &[RECEIVER, EVERYBODY] } else { &[RECEIVER] });
}
