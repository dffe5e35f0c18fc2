//! Deadlines of messages, and D2TCP (Vamanan and others, SIGCOMM 2012), which heeds them: at one
//! bottleneck flows that are near their deadlines get more of the link than those that are far from
//! them, as the paper wants it, and without deadlines it is DCTCP.

use std::path::Path;

use metrics::Deadlines;
use trimline_scenario::{Options, Results, Scenario, evaluate};

fn results(file: &str, sets: &[&str]) -> Results {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(file);
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)));
    evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap()
}

/// What three flows of 10 MB with 40 ms get while six share the link, over what three with 100 ms
/// get; and the deadlines of all.
fn near_over_far(rule: &str, seed: u64) -> (f64, Deadlines) {
    let sets = [format!("transport.rule={rule}"), format!("seed={seed}")];
    let window = ["measure.from=10ms", "measure.to=30ms"];
    let shared = results("d2tcp_deadlines.toml", &[&sets[0], &sets[1], window[0], window[1]]);
    let gbps = |name| shared.summary.traffic[name].goodput_gbps.unwrap();
    let whole = results("d2tcp_deadlines.toml", &[&sets[0], &sets[1]]);
    (gbps("near") / gbps("far"), whole.summary.flows.deadlines)
}

/// Equal shares take 50 ms, so that under DCTCP who has 40 ms is late; with D2TCP all are in time.
/// As d < 1 for the ones and d > 1 for the others, their windows are in proportion to about
/// alpha^-d.
#[test]
fn near_deadlines_get_more_of_the_link() {
    for seed in 1..=3 {
        let (ratio, deadlines) = near_over_far("d2tcp", seed);
        assert!((1.5..4.0).contains(&ratio), "seed {seed}: {ratio}");
        assert_eq!(deadlines, Deadlines { met: 6, missed: 0 }, "seed {seed}");
        let (ratio, deadlines) = near_over_far("dctcp", seed);
        assert!((0.8..1.25).contains(&ratio), "seed {seed}: {ratio}");
        assert!(deadlines.met + deadlines.missed == 6 && deadlines.missed >= 2, "{deadlines:?}");
    }
}

#[test]
fn without_deadlines_d2tcp_is_dctcp() {
    let run = |rule| results("dctcp_two_flows.toml", &[rule]).summary;
    let [dctcp, d2tcp] = ["transport.rule=dctcp", "transport.rule=d2tcp"].map(run);
    assert!(dctcp.packets.ecn_marked > 100, "{:?}", dctcp.packets);
    assert_eq!(dctcp.digest, d2tcp.digest);
    assert_eq!(dctcp.flows.deadlines, Deadlines::default(), "nobody has one");
}

/// Others do not heed them: the run is the same, only the verdict differs.
#[test]
fn a_deadline_changes_nothing_for_dctcp() {
    let run =
        |deadline| results("d2tcp_deadlines.toml", &["transport.rule=dctcp", deadline]).summary;
    let [tight, loose] = ["traffic.0.deadline=1ms", "traffic.0.deadline=1s"].map(run);
    assert_eq!(tight.digest, loose.digest);
    assert_eq!(tight.traffic["near"].deadlines, Deadlines { met: 0, missed: 3 });
    assert_eq!(loose.traffic["near"].deadlines, Deadlines { met: 3, missed: 0 });
}

#[test]
fn impossible_deadlines_are_refused() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/d2tcp_deadlines.toml");
    for (set, message) in [
        ("traffic.0.deadline=0us", "no message can be whole at once"),
        ("traffic.0.size=unbounded", "a message without an end is never whole"),
    ] {
        match Scenario::load(&file, &[set.to_owned()]) {
            Ok(_) => panic!("{set} was taken"),
            Err(error) => assert!(error.render(false).contains(message), "{}", error.render(false)),
        }
    }
}
