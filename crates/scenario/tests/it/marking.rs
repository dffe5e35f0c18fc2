//! Marking switches against what must hold of them, whatever the senders do: long TCP flows into
//! one port (`scenarios/dctcp_two_flows.toml`, with other queues).

use std::path::Path;

use fabric::Outcome;
use trimline_scenario::{Options, Scenario, simulate};

/// Bytes of a full packet.
const PACKET: f64 = 1500.0;

fn run(sets: &[&str]) -> Outcome {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/dctcp_two_flows.toml");
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)));
    simulate(&scenario, &Options::default(), &mut |_| ()).unwrap().outcome
}

/// Packets in the queues, on average and at most, over the samples from 20 ms on.
fn average_queue(outcome: &Outcome) -> (f64, f64) {
    let samples = outcome.samples.iter().filter(|sample| sample.at.0 >= 20_000_000_000);
    let lengths: Vec<f64> = samples.map(|s| s.queue_bytes.total as f64 / PACKET).collect();
    let most = lengths.iter().copied().fold(0.0, f64::max);
    (lengths.iter().sum::<f64>() / lengths.len() as f64, most)
}

/// The average packet is marked with the probability of the average queue, because the ramp is a
/// straight line: eight flows that each react to how many of their packets are marked keep the
/// queue on it.
#[test]
fn the_share_of_marked_packets_is_that_of_the_ramp_at_the_average_queue() {
    let ramp = "red_min=\"10 packets\", red_max=\"210 packets\", red_probability=0.1";
    for at in ["arrival", "departure"] {
        for weight in ["", ", red_weight=0.01"] {
            let queue = format!(
                "queue={{kind=\"drop-tail\", capacity=\"700 packets\", {ramp}, \
                 mark_at=\"{at}\", not_ect=\"drop\"{weight}}}"
            );
            let flows = ["topology.hosts=9", "traffic.senders=8", "measure.to=400ms"];
            let outcome = run(&[&[&queue[..]], &flows[..]].concat());
            let (mean, most) = average_queue(&outcome);
            let expected = 0.1 * (mean - 10.0) / 200.0;
            let link = outcome.links.iter().max_by_key(|link| link.marked).unwrap();
            let share = link.marked as f64 / link.packets as f64;
            assert!(most < 210.0, "on the ramp: {most}");
            assert!((share / expected - 1.0).abs() < 0.04, "{at}{weight}: {share}, {expected}");
            assert_eq!(outcome.counters.dropped, 0, "whatever has no payload waits elsewhere");
        }
    }
}

/// What cannot be marked is lost above the threshold of 65 packets; where it passes, only the
/// capacity of 300 ends it.
#[test]
fn what_cannot_be_marked_is_lost_or_fills_the_queue() {
    for (not_ect, most) in [("drop", 66), ("pass", 300)] {
        let sets = ["transport.ecn=false", "transport.rule=newreno", "queue.capacity=300 packets"];
        let key = format!("queue.not_ect={not_ect}");
        let outcome = run(&[&sets[..], &[&key]].concat());
        let longest = outcome.links.iter().map(|link| link.max_queue_bytes).max().unwrap();
        assert_eq!(f64::from(longest), f64::from(most) * PACKET, "{not_ect}");
        assert!(outcome.counters.dropped > 0, "{not_ect}");
        assert_eq!(outcome.counters.marked, 0);
    }
}

/// In slow start two packets arrive for each that leaves. Marked on arrival at a queue of K, a
/// packet waits for K others to leave, and the queue has grown by K when the news is on its way at
/// last; marked as it leaves, it carries the news at once.
#[test]
fn marks_at_departure_save_the_threshold_in_overshoot() {
    for k in [65, 150] {
        let threshold = format!("queue.ecn_threshold={k} packets");
        let [arrival, departure] = ["arrival", "departure"].map(|at| {
            let mark_at = format!("queue.mark_at={at}");
            let sets = ["queue.capacity=9000 packets", "measure.to=21ms", &threshold, &mark_at];
            let links = run(&sets).links;
            links.iter().map(|link| f64::from(link.max_queue_bytes)).fold(0.0, f64::max) / PACKET
        });
        let saved = arrival - departure;
        assert!((saved - f64::from(k)).abs() < 5.0, "K = {k}: {arrival} and {departure} packets");
    }
}
