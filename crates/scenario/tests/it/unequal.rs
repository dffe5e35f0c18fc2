//! What docs/unequal-paths.md says of Jellyfish and BCube, on shorter runs.

use std::path::Path;

use fabric::{Link, Node};
use trimline_scenario::{Options, Scenario, evaluate};

fn load(file: &str, sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&s| s.to_owned()).collect();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/unequal");
    let scenario = Scenario::load(&dir.join(file), &sets);
    scenario.unwrap_or_else(|e| panic!("{}", e.render(false)))
}

/// Goodput, Gb/s, and how many links between switches were crossed per payload byte delivered.
fn measure(file: &str, sets: &[&str]) -> (f64, f64) {
    let window = "measure={from=\"1ms\", to=\"3ms\"}";
    let scenario = load(file, &[sets, &[window]].concat());
    let results = evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    let between =
        scenario.topology().links().iter().zip(&results.links).filter(|(link, _)| {
            matches!((link.from, link.to), (Node::Switch(..), Node::Switch(..)))
        });
    let sent: f64 = between.map(|(_, row)| row.utilization.unwrap() * row.rate.as_gbps_f64()).sum();
    let goodput = results.summary.flows.goodput_gbps.unwrap();
    (goodput, sent / goodput)
}

const SHORTEST: &str = "topology.stretch=0";

#[test]
fn long_paths_help_a_jellyfish_with_links_to_spare_and_cost_a_full_one() {
    let jellyfish =
        |hosts, sets: &[&str]| measure("jellyfish_permutation.toml", &[&[hosts], sets].concat());
    let few = "topology.hosts_per_switch=1";
    let (all, shortest) = (jellyfish(few, &[]), jellyfish(few, &[SHORTEST]));
    assert!(all.0 > shortest.0 * 1.03, "{all:?} {shortest:?}");
    let many = "topology.hosts_per_switch=6";
    let (all, shortest) = (jellyfish(many, &[]), jellyfish(many, &[SHORTEST]));
    assert!(all.0 < shortest.0 * 0.8 && all.1 > shortest.1 * 1.5, "{all:?} {shortest:?}");
}

/// Half of the packets take one step of two links, half take three: twice the links of the one
/// step alone, for the same goodput.
#[test]
fn neighbours_in_a_bcube_gain_nothing_from_the_long_way() {
    let (all, links) = measure("bcube_neighbours.toml", &[]);
    let (shortest, shortest_links) = measure("bcube_neighbours.toml", &[SHORTEST]);
    assert!((0.93..1.0).contains(&(all / shortest)), "{all} {shortest}");
    assert!((1.9..2.2).contains(&(links / shortest_links)), "{links} {shortest_links}");
    // Two links and what headers and control add: below 5 %.
    assert!((2.0..2.1).contains(&shortest_links), "{shortest_links}");
}

/// Once everybody knows, neither senders nor switches use a dead link, in either direction.
#[test]
fn a_dead_link_is_gone_round_by_senders_and_switches() {
    let small = [
        ("jellyfish_permutation.toml", "topology.hosts_per_switch=1"),
        ("bcube_permutation.toml", "topology.n=4"),
    ];
    for (file, size) in small {
        let whole = load(file, &[size]);
        let between = |l: &&Link| [l.from, l.to].iter().all(|n| matches!(n, Node::Switch(..)));
        let &dead = whole.topology().links().iter().find(between).unwrap();
        let fault = format!("fault=[{{at=\"300us\", link=\"{dead}\", action=\"down\"}}]");
        for mode in ["permute", "single", "random", "ecmp"] {
            let routing = format!("routing={{mode=\"{mode}\", reroute_after=\"100us\"}}");
            // What was under way when the news came is through by then.
            let window = "measure={from=\"600us\", to=\"900us\"}";
            let scenario = load(file, &[size, &fault, &routing, window]);
            let results = evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap();
            let find = |from, to| scenario.topology().find_link(from, to).unwrap() as usize;
            let both = [find(dead.from, dead.to), find(dead.to, dead.from)];
            let both = both.map(|link| &results.links[link]);
            let lost: u64 = both.iter().map(|row| row.dropped).sum();
            // Few flows may all be hashed elsewhere.
            let spread = ["permute", "random"].contains(&mode);
            assert!(lost > 0 || !spread, "{file}, {mode}: nothing was lost before the news");
            for row in both {
                assert_eq!(row.utilization, Some(0.0), "{file}, {mode}: {}", row.name);
            }
        }
    }
}
