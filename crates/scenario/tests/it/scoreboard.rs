//! NDP's path scoreboard in whole fabrics: what it saves where paths differ, and that it does
//! nothing where they do not.

use std::path::Path;

use endpoint::Stat;
use fabric::Outcome;
use metrics::FlowRow;
use trimline_scenario::{Options, Scenario, simulate};

/// A permutation over 54 hosts (k = 6, nine paths) for 14 ms, with these edits.
fn run(rule: &str, sets: &[&str]) -> (Outcome, Vec<FlowRow>) {
    let rule = format!("transport.scoreboard={rule}");
    let sets: Vec<String> = ["topology.k=6", "measure={from=\"2ms\", to=\"14ms\"}", &rule]
        .iter()
        .chain(sets)
        .map(|&s| s.to_owned())
        .collect();
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/ndp_permutation_432.toml");
    let scenario = Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let run = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    (run.outcome, run.flows)
}

/// The slowest flow, in Gb/s of payload.
fn slowest(flows: &[FlowRow]) -> f64 {
    let placed = flows.iter().map(|row| row.placed_in_window).min().unwrap();
    placed as f64 * 8.0 / 12e-3 / 1e9
}

/// The fabric without faults: no path is ever so much worse that anything changes.
#[test]
fn paths_that_are_alike_are_used_alike() {
    let digests = ["off", "decaying", "literal"].map(|rule| run(rule, &[]).0.digest);
    assert_eq!(digests, [digests[0]; 3]);
}

/// NDP figure 22: one link between a core switch and a pod runs at 1 Gb/s. Once a path has its
/// hundred samples, half way through the run, the flows that have it use the others.
#[test]
fn a_slow_link_is_left() {
    let slow = ["topology.link=[{link=\"agg 0 -> core 0\", rate=\"1Gbps\"}]"];
    let [off, decaying, literal] =
        ["off", "decaying", "literal"].map(|rule| slowest(&run(rule, &slow).1));
    assert!(decaying > 1.05 * off && literal > 1.05 * off, "{off} {decaying} {literal} Gb/s");
}

/// A core switch's link dies and nobody is told: what is sent over it is lost until the timeout.
/// The scoreboard has the path sit out for longer each time.
#[test]
fn a_dead_link_is_tried_less_and_less() {
    let dead = [
        "fault=[{at=\"1ms\", link=\"agg 0 -> core 0\", action=\"down\"}]",
        "routing.reroute_after=1s",
        "transport.rto_initial=1ms",
        "transport.rto_min=1ms",
        "transport.rto_max=1ms",
    ];
    let [off, decaying] = ["off", "decaying"].map(|rule| run(rule, &dead));
    // Resent, and not because it was trimmed. (Answers are lost there, too: receivers keep no
    // score.)
    let lost = |run: &(Outcome, _)| {
        run.0.counters.stat(Stat::Retransmission).saturating_sub(run.0.counters.trimmed)
    };
    assert!(lost(&decaying) * 3 < lost(&off), "{} of {}", lost(&decaying), lost(&off));
    assert!(slowest(&decaying.1) > slowest(&off.1), "{} Gb/s", slowest(&decaying.1));
}
