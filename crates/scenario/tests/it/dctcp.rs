//! DCTCP against its analysis (SIGCOMM'10, section 3.3; specs/tcp.md#8.4,13): two long flows
//! keep the queue between K and K + N packets at its highest, and the link full.

use std::path::Path;

use trimline_scenario::{Options, Scenario, simulate};

/// Bytes of a full packet.
const PACKET: f64 = 1500.0;
/// Payload of the link at full rate, bytes in the window of 40 ms.
const FULL: f64 = 50e6 * 1460.0 / PACKET;

/// Over the window: the queue's 99th percentile over the three ports, in packets, and the share
/// of the link that is used. One port of the three has a queue, so that it is its 97th.
fn run(sets: &[&str]) -> (f64, f64, u64) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/dctcp_two_flows.toml");
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let simulated = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    let placed: u64 = simulated.flows.iter().map(|row| row.placed_in_window).sum();
    let outcome = simulated.outcome;
    let queue = f64::from(outcome.queue_bytes_p99.unwrap()) / PACKET;
    (queue, placed as f64 / FULL, outcome.counters.dropped)
}

/// K is above a seventh of the bandwidth-delay product of 84 packets: the queue never runs empty.
#[test]
fn two_flows_keep_the_queue_at_the_threshold() {
    for (threshold, delayed_ack) in [(20.0, "off"), (65.0, "off"), (65.0, "40ms")] {
        let k = format!("queue.ecn_threshold={threshold} packets");
        let (queue, share, dropped) = run(&[&k, &format!("transport.delayed_ack={delayed_ack}")]);
        let highest = threshold + 2.0;
        assert!((queue - highest).abs() <= 3.0, "K = {threshold}: {queue} packets");
        assert!(share > 0.99, "K = {threshold}: {share}");
        assert_eq!(dropped, 0);
    }
}

/// NewReno halves at each mark: it needs as much queue as bandwidth-delay product to keep the link
/// full and loses throughput where DCTCP does not.
#[test]
fn reacting_to_how_many_are_marked_keeps_the_link_full() {
    let k = "queue.ecn_threshold=15 packets";
    let (_, dctcp, _) = run(&[k]);
    let (_, halving, _) = run(&[k, "transport.rule=newreno"]);
    assert!(dctcp > 0.99 && halving < 0.97, "{dctcp} and {halving}");
}
