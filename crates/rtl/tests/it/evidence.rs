//! A mistake that is planted in a block is found, made small, and can be shown again. With
//! `TRIMLINE_RTL_MUTANTS=1`: a NIC that writes waveforms takes a while to build.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use nic::nano::endpoint::Runs;
use p4::interp::Machine;
use p4::state::State;
use trimline_rtl::cosim::traffic::{Plan, Traffic};
use trimline_rtl::cosim::{Again, Cosim, CosimError, evidence, locate, recorded};
use trimline_rtl::nic as hardware;

use crate::busy::{config, traffic};
use crate::whole::NDP;
use crate::{folder, tools};

/// The generator forgets to take the flag of a PULL that waits out of its ACK: text and mistake.
const FROM: &str = "ctrl_i.flags & ~PullFlag;";
const TO: &str = "ctrl_i.flags;";

#[test]
fn a_mistake_is_made_small_and_shown() {
    if std::env::var_os("TRIMLINE_RTL_MUTANTS").is_none() {
        println!("evidence skipped: set TRIMLINE_RTL_MUTANTS=1");
        return;
    }
    let Some(tools) = tools("evidence") else { return };
    let (program, config) = (NDP.compile(), config(&[155]));
    let state = State::new(Arc::clone(&program));
    let nic = hardware::build(&program, &state, &config).unwrap();
    let mut texts = nic.texts();
    let (_, block) = texts.iter_mut().find(|(name, _)| name == "generator.sv").unwrap();
    assert!(block.contains(FROM));
    *block = block.replace(FROM, TO);
    let folder = folder("evidence");
    let design = nic.ports().written(&texts, &folder).unwrap();
    // One build for both: that with waveforms does the same.
    let built = design.build_waves(&tools, &folder).unwrap();
    let plan = Plan { seed: 1, spacing: 2, is_dense: true };
    let begin = || traffic(&program, &[155], plan);
    let mut run = Cosim::new(built.start().unwrap(), begin(), config.clone());
    let failure = run.run(5_000, &mut |_| {}).unwrap_err();
    let CosimError::Mismatch(mismatch) = &failure else { panic!("{failure}") };
    let located = locate(&program, mismatch);
    assert_eq!(located.field, "headers.ndp.flags", "{located:?} {mismatch}");
    assert!(located.place.contains("ndp_rules.p4:"), "{located:?}");

    let runs = || Box::new(Machine::new(Arc::clone(&program))) as Runs;
    let again = Again { program: &program, runs: &runs, config: &config, spacing: 2 };
    let trace = recorded(begin(), &failure);
    let found = evidence(&again, &built, &trace, Duration::from_secs(30)).unwrap().unwrap();
    println!(
        "{} events in {} cycles, of {} in {}; {} inputs tried",
        found.trace.events().len(),
        found.trace.len(),
        trace.events().len(),
        trace.len(),
        found.tried
    );
    // Two packets that want a PULL at once: one has to wait.
    assert!(found.trace.events().len() <= 4, "{found:?}");
    assert!(found.trace.len() < 200, "{found:?}");
    let CosimError::Mismatch(small) = &found.failure else { panic!("{:?}", found.failure) };
    assert_eq!(small.what, mismatch.what);

    // It fails again as it did, and the right circuit passes what is left.
    let replay = |circuit| {
        let traffic = Traffic::alone(&program, &runs, &config).unwrap();
        Cosim::new(circuit, traffic, config.clone()).replay(&found.trace)
    };
    let waves = folder.join("waves.vcd");
    let failed = replay(built.start_waves(&waves, 5).unwrap()).unwrap_err();
    assert_eq!(failed.to_string(), found.failure.to_string());
    let text = fs::read_to_string(&waves).unwrap();
    assert!(text.contains("$enddefinitions") && text.contains("tx_frame_o"), "a VCD of the ports");
    let times = text.lines().filter_map(|line| line.strip_prefix('#')?.parse::<u64>().ok());
    assert_eq!(times.min(), Some(10), "from cycle 5 on");
}
