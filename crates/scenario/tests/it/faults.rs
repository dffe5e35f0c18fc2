//! What docs/faults.md says of the scenarios in scenarios/faults, on shorter runs.

use std::path::Path;

use metrics::{Phase, Summary};
use trimline_scenario::{Options, Scenario, evaluate};

fn run(file: &str, sets: &[&str]) -> Summary {
    let sets: Vec<String> = sets.iter().map(|&s| s.to_owned()).collect();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/faults");
    let scenario = Scenario::load(&dir.join(file), &sets);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
    let options = Options { threads: Some(1), ..Options::default() };
    evaluate(&scenario, &options, &mut |_| ()).unwrap().summary
}

/// A dead core switch from 20 ms on: nobody knows until 40 ms, it works again at 60 ms.
fn dead_core(sets: &[&str]) -> Vec<Phase> {
    let short =
        ["fault.at=20ms", "fault.until=60ms", "routing.reroute_after=20ms", "measure.to=100ms"];
    let phases = run("dead_core.toml", &[&short, sets].concat()).phases;
    assert!(
        phases.iter().all(|phase| phase.submitted >= 15 && phase.unfinished == 0),
        "{phases:?}"
    );
    phases
}

fn median(phase: &Phase) -> f64 {
    phase.fct_us.p50.unwrap()
}

#[test]
fn a_dead_core_switch_hurts_until_the_news_is_out() {
    let phases = dead_core(&[]);
    let what: Vec<&str> = phases.iter().map(|phase| &phase.what[..]).collect();
    let wanted =
        ["start", "core 0 is down", "paths avoid core 0", "core 0 is up", "paths use core 0 again"];
    assert_eq!(what, wanted);
    let [before, dead, avoided, _, after] = &phases[..] else { panic!("{what:?}") };
    // 445 packets of 7.25 us each, alone on the way.
    assert!((3_220.0..3_400.0).contains(&median(before)), "{before:?}");
    assert!(median(dead) > 1_000.0 + median(before), "a timeout of 1 ms: {dead:?}");
    assert!(median(avoided) < median(dead) - 500.0, "{avoided:?}");
    assert!(after.fct_us.p99.unwrap() < 1.05 * median(before), "{after:?}");
}

#[test]
fn the_scoreboard_leaves_dead_paths_out_before_the_news() {
    let [with, without] = ["decaying", "off"]
        .map(|scoreboard| dead_core(&[&format!("transport.scoreboard={scoreboard}")]));
    assert!(median(&with[1]) < median(&without[1]) - 300.0, "{with:?} {without:?}");
    assert!(with[1].goodput_gbps > without[1].goodput_gbps);
}

#[test]
fn every_encoding_is_the_same_run_through_faults() {
    let digest = |encoding: &str| {
        let sets = [&format!("routing.path_encoding={encoding}")[..], "measure.to=320ms"];
        run("dead_core.toml", &sets).digest
    };
    let computed = digest("computed");
    for encoding in ["source-route", "core-label", "core-address"] {
        assert_eq!(digest(encoding), computed, "{encoding}");
    }
}

#[test]
fn slow_and_lossy_links_are_not_avoided_unless_announced() {
    for file in ["slow_link.toml", "lossy_link.toml"] {
        let short = ["fault.at=5ms", "fault.until=40ms", "measure.to=45ms"];
        let avoided = |run: &Summary| run.phases.iter().any(|p| p.what.contains("paths avoid"));
        let silent = run(file, &short);
        let told = ["fault.announce=true", "routing.reroute_after=1ms"];
        let told = run(file, &[&short[..], &told].concat());
        assert!(!avoided(&silent) && avoided(&told), "{file}");
        if file == "lossy_link.toml" {
            let [lost, less] = [silent, told].map(|run| run.packets.dropped);
            assert!(lost > 20 && less * 4 < lost, "{lost} {less}");
            // What a link loses is not put down to the queues.
            let often = run(file, &[&short[..], &["fault.probability=0.5"]].concat());
            let mut lost = often.warnings.iter().filter(|warning| warning.contains("lost"));
            assert!(lost.next().is_some_and(|warning| warning.ends_with("by faults of links")));
            assert_eq!(lost.next(), None);
        }
    }
    let flap = run("flap.toml", &["measure.to=150ms"]);
    assert!(flap.packets.dropped > 100, "{:?}", flap.packets);
}
