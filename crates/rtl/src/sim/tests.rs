use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A simulation that is this shell script.
pub(crate) fn script(name: &str, text: &str, inputs: &[&str]) -> Simulation {
    let program = std::env::temp_dir().join(format!("trimline-{name}-{}", std::process::id()));
    fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let inputs = Layout::new(inputs.iter().map(|name| Port::new(name, 40)).collect());
    let outputs = Layout::new(vec![Port::new("tx_o", 40)]);
    let top = "nic".to_owned();
    let built = Program { top, program, inputs, outputs, patience: PATIENCE };
    built.with_patience(Duration::from_millis(50)).start().unwrap()
}

const INPUTS: [&str; 2] = ["idle_i", "rx_i"];

fn ends(mut simulation: Simulation) -> (String, How) {
    let mut input = simulation.inputs().zero();
    simulation.inputs().set_named(&mut input, "rx_i", 0x12_3456_789a);
    let error = simulation.step(&input).unwrap_err();
    fs::remove_file(&simulation.built.program).unwrap();
    let SimError::Died { how, .. } = &error else { panic!("{error}") };
    (error.to_string(), *how)
}

#[test]
fn a_simulation_that_ends_tells_its_last_input_and_what_it_said() {
    // It waits for its input, so that writing succeeds.
    let (error, how) =
        ends(script("ends", "head -c 16 >/dev/null; echo 'it broke' >&2; exit 3", &INPUTS));
    assert_eq!(how, How::Ended);
    let whole = "the simulation of `nic` ended in cycle 0; its last input: rx_i = 123456789a; it \
                 said: it broke";
    assert_eq!(error, whole);
}

#[test]
fn a_simulation_that_hangs_is_ended_and_tells_its_last_input() {
    let (error, how) = ends(script("hangs", "exec sleep 1000", &INPUTS));
    assert_eq!(how, How::Hung(Duration::from_millis(50)));
    assert!(error.contains("did not answer for 50ms in cycle 0; its last input: rx_i = 12"));
}

#[test]
fn a_simulation_that_nobody_asks_does_not_hang() {
    let simulation = script("waits", "exec cat", &INPUTS);
    std::thread::sleep(Duration::from_millis(250));
    assert!(!simulation.guard.has_ended_it());
    fs::remove_file(&simulation.built.program).unwrap();
}
