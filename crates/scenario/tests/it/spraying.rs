//! NDP where switches choose the way of each packet at random, the baseline of its permuted paths.

use std::path::Path;

use fabric::{Node, Outcome, Tier};
use trimline_scenario::{Options, Scenario, simulate};

fn scenario(file: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&s| s.to_owned()).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(file);
    Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

/// A returned header finds its way back although no switch knows the way it came.
#[test]
fn headers_bounce_home_over_any_path() {
    let sets = [
        "topology.k=6",
        "traffic.senders=50",
        "routing.mode=random",
        "queue.header_capacity=\"640B\"",
    ];
    let scenario = scenario("ndp_incast_100x135KB.toml", &sets);
    let options = Options { check: true, ..Options::default() };
    let simulated = simulate(&scenario, &options, &mut |_| ()).unwrap();
    assert!(simulated.outcome.counters.bounced > 100, "{:?}", simulated.outcome.counters);
    assert!(simulated.flows.iter().all(|row| row.finish.is_some()));
    // The run ends with the last delivery: only that one's sender may not have heard yet.
    let unheard = simulated.flows.iter().filter(|row| row.acked.is_none());
    let last = simulated.flows.iter().filter_map(|row| row.finish).max();
    assert!(unheard.map(|row| row.finish).all(|finish| finish == last));
}

/// NDP paper, section 3.1.1: at 128 hosts, permuted paths hardly ever trim on the way up (0.01 %),
/// random ones often (2.4 %). Permuted ones keep the load of all paths equal.
#[test]
fn permuted_paths_trim_far_less_on_the_way_up_than_random_ones() {
    let share = |mode| {
        let sets = [mode, "topology.k=8", "measure={from=\"500us\", to=\"1500us\"}"];
        let scenario = scenario("ndp_permutation_432.toml", &sets);
        let outcome = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap().outcome;
        trimmed_on_uplinks(&scenario, &outcome) as f64 / outcome.counters.data_sent as f64
    };
    let (permuted, random) = (share("routing.mode=permute"), share("routing.mode=random"));
    assert!(random > 0.01 && permuted < random / 3.0, "permuted {permuted}, random {random}");
}

fn trimmed_on_uplinks(scenario: &Scenario, outcome: &Outcome) -> u64 {
    let links = scenario.topology().links().iter().zip(&outcome.links);
    let up = links.filter(|(link, _)| {
        matches!((link.from, link.to), (Node::Switch(Tier::Tor, _), Node::Switch(Tier::Agg, _)))
    });
    up.map(|(_, stats)| stats.trimmed).sum()
}
