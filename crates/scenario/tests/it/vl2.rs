//! VL2 (Greenberg et al., SIGCOMM 2009) under NDP and TCP: load is uniform whatever the traffic,
//! and links that fail are gone round.

use std::path::Path;

use fabric::{Node, Tier};
use trimline_scenario::{Options, Results, Scenario, evaluate};

fn load(sets: &[&str]) -> Scenario {
    let sets: Vec<String> = sets.iter().map(|&s| s.to_owned()).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/vl2_permutation.toml");
    Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)))
}

fn results(scenario: &Scenario) -> Results {
    evaluate(scenario, &Options::default(), &mut |_| ()).unwrap()
}

/// The utilization of the links from one tier to another.
fn utilizations(scenario: &Scenario, results: &Results, from: Tier, to: Tier) -> Vec<f64> {
    let joins = |a: Node, b: Node| match (a, b) {
        (Node::Switch(a, _), Node::Switch(b, _)) => (a, b) == (from, to),
        _ => false,
    };
    let links = scenario.topology().links().iter().zip(&results.links);
    let between = links.filter(|(link, _)| joins(link.from, link.to));
    between.map(|(_, row)| row.utilization.unwrap()).collect()
}

/// Section 4.2 of the paper: with VLB the load of the links above the racks depends on how much
/// racks send, not on to whom. All hosts of each rack send to the next rack only, which for half of
/// them hangs at the same aggregation switches: every link to and from a core switch has the same
/// load.
#[test]
fn traffic_from_rack_to_rack_loads_all_core_links_alike() {
    let hosts = 8 * 8;
    let pairs = (0..hosts).map(|src| (src, (src + 8) % hosts));
    let line = |(src, dst)| format!("{src}->{dst} id {} start 0 size 0\n", src + 1);
    let lines: String = pairs.map(line).collect();
    let cm = format!("Nodes {hosts}\nConnections {hosts}\n{lines}");
    let file = std::env::temp_dir().join(format!("trimline-vl2-{}.cm", std::process::id()));
    std::fs::write(&file, cm).unwrap();
    let traffic = format!("traffic={{kind=\"file\", file=\"{}\"}}", file.display());
    for (mode, least) in [("permute", 0.95), ("random", 0.85)] {
        let mode = format!("routing.mode={mode}");
        let window = "measure={from=\"1ms\", to=\"3ms\"}";
        let scenario = load(&[&traffic, &mode, window]);
        let results = results(&scenario);
        assert!(results.summary.flows.utilization.unwrap() > 0.8, "{mode}");
        for (from, to) in [(Tier::Agg, Tier::Core), (Tier::Core, Tier::Agg)] {
            let used = utilizations(&scenario, &results, from, to);
            assert_eq!(used.len(), 16);
            let most = used.iter().copied().fold(0.0, f64::max);
            let even = used.iter().all(|used| used / most > least);
            assert!(even && most > 0.8, "{mode}, {from} to {to}: {used:?}");
        }
    }
    std::fs::remove_file(&file).unwrap();
}

/// Once everybody knows, neither senders nor switches use a dead link, wherever it is.
#[test]
fn a_dead_link_is_gone_round_by_senders_and_switches() {
    for (a, b) in [("tor 0", "agg 0"), ("agg 1", "core 2"), ("core 3", "agg 2")] {
        let fault = format!("fault=[{{at=\"300us\", link=\"{a} -> {b}\", action=\"down\"}}]");
        for mode in ["permute", "random", "ecmp"] {
            let routing = format!("routing={{mode=\"{mode}\", reroute_after=\"100us\"}}");
            // What was under way when the news came is through by then.
            let scenario = load(&[&fault, &routing, "measure={from=\"600us\", to=\"900us\"}"]);
            let results = results(&scenario);
            let named = |from: &str, to: &str| {
                let name = format!("{from} -> {to}");
                results.links.iter().find(|row| row.name == name).unwrap()
            };
            let both = [named(a, b), named(b, a)];
            assert!(both.iter().any(|row| row.dropped > 0) || mode == "ecmp", "{a}, {mode}");
            assert!(both.iter().all(|row| row.utilization == Some(0.0)), "{a}, {mode}");
            assert!(results.summary.flows.utilization.unwrap() > 0.5, "{a}, {mode}");
        }
    }
}
