//! NDP and TCP on the same hosts, over the same port (issue 4; ndp.md sections 3.4 and 12).

use std::path::Path;

use trimline_scenario::{Options, Scenario, simulate};

/// The shares of NDP and TCP in the receiver's link.
fn shares(file: &str, sets: &[&str]) -> [f64; 2] {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/coexistence");
    let sets: Vec<String> = sets.iter().map(|&s| s.to_owned()).collect();
    let scenario = Scenario::load(&dir.join(file), &sets);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
    let simulated = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    // Every host submits two messages, NDP's first unless it starts later.
    let mut bytes = [0; 2];
    for row in &simulated.flows {
        bytes[row.msg as usize] += row.placed_in_window;
    }
    let window = scenario.measure().to.unwrap().since(scenario.measure().from);
    let link = scenario.topology().links()[0].rate.bytes_in(window);
    bytes.map(|bytes| bytes as f64 / link.0 as f64)
}

#[test]
fn in_a_shared_queue_tcp_starves() {
    let [ndp, tcp] = shares("shared_queue.toml", &["measure.to=100ms"]);
    assert!(ndp > 0.9 && tcp < 0.05, "NDP {ndp}, TCP {tcp}");
}

#[test]
fn with_separate_queues_each_gets_about_half() {
    let [ndp, tcp] = shares("separate_queues.toml", &["measure.to=100ms"]);
    for share in [ndp, tcp] {
        assert!((0.45..0.55).contains(&share), "NDP {ndp}, TCP {tcp}");
    }
}

/// NDP alone would have all of the link, TCP alone as well: the port wastes nothing on who is silent.
#[test]
fn whoever_is_alone_has_the_link() {
    let late = ["measure.to=100ms", "traffic.1.start=200ms"];
    let [ndp, tcp] = shares("separate_queues.toml", &late);
    assert!(ndp > 0.98 && tcp == 0.0, "NDP {ndp}, TCP {tcp}");
    let late = ["measure.to=100ms", "traffic.0.start=200ms"];
    let [tcp, ndp] = shares("separate_queues.toml", &late);
    assert!(ndp == 0.0 && tcp > 0.95, "NDP {ndp}, TCP {tcp}");
}

/// In a fabric of many paths NDP sprays and TCP keeps to one path, under either kind of routing.
#[test]
fn each_keeps_its_own_way_of_choosing_paths() {
    let fabric = "topology={kind=\"fat-tree\", k=4, link_rate=\"10Gbps\", link_delay=\"1us\"}";
    for mode in ["permute", "ecmp"] {
        let mode = format!("routing.mode={mode}");
        let all = ["traffic.0.senders=15", "traffic.1.senders=15"];
        let sets = [fabric, &mode, "measure.to=100ms", all[0], all[1]];
        let [ndp, tcp] = shares("separate_queues.toml", &sets);
        for share in [ndp, tcp] {
            assert!((0.45..0.55).contains(&share), "{mode}: NDP {ndp}, TCP {tcp}");
        }
    }
}
