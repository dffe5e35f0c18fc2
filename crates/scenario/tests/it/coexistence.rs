//! Several transports on the same hosts, over the same port: NDP and TCP (issue 4;
//! specs/ndp.md#3.4,12), and TCP beside TCP with another rule (issue 6, mixed fleets).

use std::path::Path;

use trimline_scenario::{Options, Scenario, simulate};

/// The shares of the first and the second transport in the receiver's link.
fn shares(file: &str, sets: &[&str]) -> [f64; 2] {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/coexistence");
    let sets: Vec<String> = sets.iter().map(|&s| s.to_owned()).collect();
    let scenario = Scenario::load(&dir.join(file), &sets);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
    let simulated = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    // Every host submits two messages, the first transport's first unless it starts later.
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

/// NDP alone would have all of the link, TCP alone as well: the port wastes nothing on who is
/// silent.
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

/// RFC 8257, section 6: conventional TCP, which does not see the marks, leaves DCTCP next to
/// nothing. It pays itself where a switch drops what it cannot mark.
#[test]
fn of_two_tcps_in_a_shared_queue_the_one_that_sees_the_marks_gives_way() {
    let file = "dctcp_beside_newreno.toml";
    let [dctcp, newreno] = shares(file, &["measure.to=100ms"]);
    assert!(dctcp < 0.05 && newreno > 0.9, "DCTCP {dctcp}, NewReno {newreno}");
    let [dctcp, newreno] = shares(file, &["measure.to=100ms", "queue.not_ect=drop"]);
    assert!(dctcp > 0.7 && newreno < 0.2, "DCTCP {dctcp}, NewReno {newreno}");
}

/// Separate queues as for NDP beside TCP, by class, which the second of a kind keeps.
#[test]
fn two_tcps_with_separate_queues_get_about_half_each() {
    let class = |class, more| {
        format!("{{class={class}, kind=\"drop-tail\", capacity=\"250 packets\"{more}}}")
    };
    let (marking, plain) = (class(0, ", ecn_threshold=\"65 packets\""), class(1, ""));
    let queue = format!("queue={{kind=\"fair\", class=[{marking}, {plain}]}}");
    let sets = ["measure.to=100ms", "transport.1.class=1", &queue];
    let both = shares("dctcp_beside_newreno.toml", &sets);
    assert!(both.iter().all(|share| (0.45..0.55).contains(share)), "{both:?}");
}

/// Whichever number its packets bear, a TCP that is alone is the same TCP.
#[test]
fn the_second_of_a_kind_works_as_the_first_does() {
    let late = |n| format!("traffic.{n}.start=200ms");
    let alike = ["transport.1.rule=dctcp", "transport.1.ecn=true", "measure.to=100ms"];
    let alone = |silent| {
        let late = late(silent);
        shares("dctcp_beside_newreno.toml", &[&alike[..], &[&late]].concat())
    };
    let ([first, none], [second, also_none]) = (alone(1), alone(0));
    assert!(none == 0.0 && also_none == 0.0 && first > 0.95, "{first}");
    assert!((first - second).abs() < 0.001, "{first} and {second}");
}
