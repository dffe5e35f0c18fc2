//! Incast control of Homa (specs/homa.md#10): without it, throughput falls with more than some 300
//! responses of 10 kB at once on 10 Gb/s; with it, it does not.

use std::path::Path;

use trimline_scenario::{Options, Scenario, evaluate};

/// Throughput of so many responses at once, Gb/s, and packets lost.
fn responses(calls: u32, control: bool) -> (f64, u64) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/homa_incast.toml");
    let mut sets = vec![format!("traffic.calls={calls}"), format!("traffic.outstanding={calls}")];
    if !control {
        sets.push("transport.incast_threshold=1000000".to_owned());
    }
    let scenario = Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let summary = evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap().summary;
    assert_eq!(summary.flows.messages.completed, u64::from(calls) * 2);
    let took = summary.flows.last_completion_us.unwrap();
    (f64::from(calls) * 10_000.0 * 8.0 / (took * 1000.0), summary.packets.dropped)
}

#[test]
fn many_responses_at_once_need_incast_control() {
    // 93.8 % of the link are payload: 1442 of 1538 B.
    for calls in [100, 290] {
        let (with, without) = (responses(calls, true), responses(calls, false));
        assert!(with.0 > 9.2 && without.0 > 9.2, "{calls}: {with:?} {without:?}");
    }
    let (with, without) = (responses(600, true), responses(600, false));
    assert!(with.0 > 9.2 && with.1 == 0, "{with:?}");
    assert!(without.0 < 6.0 && without.1 > 1000, "{without:?}");
    let (with, without) = (responses(1000, true), responses(1000, false));
    assert!(with.0 > 9.0 && without.0 < 6.0, "{with:?} {without:?}");
}
