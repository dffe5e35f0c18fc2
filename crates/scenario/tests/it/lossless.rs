//! What lossless switches do to flows that are not to blame: the scenarios of `docs/lossless.md`,
//! against targets P1 and P3 and invariant specs/rdma.md#I5.

use std::path::Path;

use metrics::Summary;
use trimline_scenario::{Options, Scenario, evaluate};

/// A scenario of `scenarios/lossless`, changed.
fn run(name: &str, sets: &[&str]) -> Summary {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/lossless").join(name);
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)));
    evaluate(&scenario, &Options::default(), &mut |_| ())
        .unwrap_or_else(|e| panic!("{}", e.render(false)))
        .summary
}

/// The mean goodput of the long flows of a table, Gb/s.
fn goodput(summary: &Summary, table: &str) -> f64 {
    summary.traffic[table].flow_goodput_gbps.mean.unwrap()
}

/// The near sender has a third of the link, or half of it where the hashes of the far ones agree;
/// twice what the slowest of them has, or more.
#[test]
fn p1_whoever_has_a_port_for_himself_has_more() {
    for seed in 1..=3 {
        let summary = run("parking_lot.toml", &[&format!("seed={seed}"), "measure.to=4ms"]);
        let near = goodput(&summary, "near");
        let (third, half) = (37.7 / 3.0, 37.7 / 2.0);
        assert!((near - third).abs() < 0.3 || (near - half).abs() < 0.3, "{near}");
        let slowest = summary.traffic["far"].flow_goodput_gbps.min.unwrap();
        // Two of the three far ones share a third.
        assert!(near >= 1.98 * slowest, "{near} and {slowest}");
        assert_eq!(summary.packets.dropped, 0);
    }
}

/// Seed 1: the victim's hash puts it on a link with two of the four. Everybody on a link that is
/// stopped has the same.
#[test]
fn p3_a_victim_pays_for_senders_that_it_never_meets() {
    let victim = |from: &str, to: &str| {
        let sets = [format!("measure.from={from}"), format!("measure.to={to}")];
        let summary = run("victim.toml", &sets.each_ref().map(String::as_str));
        assert_eq!(
            (summary.packets.dropped, summary.pfc.pause_depth),
            (0, Some(5)),
            "over five switches"
        );
        goodput(&summary, "victim")
    };
    let (none, one) = (victim("2ms", "4ms"), victim("12ms", "14ms"));
    assert!(one <= 0.6 * none, "{none}, {one}");
}

/// I5: three switches in a ring, of which each waits for the next; the watchdog ends it, one way or
/// the other.
#[test]
fn i5_a_ring_deadlocks_and_the_watchdog_ends_it() {
    let stuck = run("deadlock.toml", &[]);
    let cycle = stuck.pfc.deadlock.as_deref().unwrap();
    assert_eq!(cycle.matches(" -> ").count(), 3, "{cycle}");
    assert!(stuck.warnings.iter().any(|warning| warning.contains(cycle)), "{:?}", stuck.warnings);
    assert!(stuck.pfc.longest_pause_us.unwrap() > 4_000.0);
    assert_eq!(stuck.packets.dropped, 0, "nothing is lost, and nothing arrives");
    for (action, loses) in [("drop", true), ("forward", false)] {
        let set = format!("queue.watchdog_action={action}");
        let free = run("deadlock.toml", &["queue.watchdog=500us", &set]);
        assert!(
            free.flows.goodput_gbps > stuck.flows.goodput_gbps.map(|rate| 3.0 * rate),
            "{action}"
        );
        assert!(free.pfc.watchdog > Some(0), "{action}");
        assert_eq!(free.packets.dropped > 0, loses, "{action}: {:?}", free.packets);
        assert_eq!(
            free.pfc.deadlock, None,
            "{action}: before anybody has waited for a millisecond"
        );
    }
}
