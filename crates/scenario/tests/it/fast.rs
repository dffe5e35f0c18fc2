//! FAST TCP against its equilibrium (specs/tcp.md#8.5,T13): N flows queue N alpha packets
//! and share the link equally.

use std::path::Path;

use trimline_scenario::{Options, Scenario, simulate};

#[test]
fn t13_each_flow_keeps_alpha_packets_queued() {
    for (flows, alpha) in [(2, 10.0), (4, 10.0), (2, 30.0)] {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/dctcp_two_flows.toml");
        let sets = [
            "topology.hosts=9".to_owned(),
            "queue={kind=\"drop-tail\", capacity=\"700 packets\"}".to_owned(),
            format!(
                "transport={{kind=\"tcp\", preset=\"ns2\", mss=\"1460B\", rule=\"fast\", recovery=\"sack\", \
                 ecn=false, window_cap=\"unlimited\", rto_min=\"10ms\", fast_alpha={alpha}, \
                 fast_gamma=0.5, fast_slow_start_delay=\"2us\"}}"
            ),
            format!("traffic.senders={flows}"),
            "measure={from=\"40ms\", to=\"60ms\"}".to_owned(),
        ];
        let scenario =
            Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)));
        let simulated = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
        // One port of nine has a queue: the 99th percentile among all samples is its 91st, which is
        // a packet or two above the mean, of which the law speaks.
        let queue = f64::from(simulated.outcome.queue_bytes_p99.unwrap()) / 1500.0;
        let want = f64::from(flows) * alpha;
        assert!(
            (queue - want).abs() <= 0.1 * want + 2.0,
            "{flows} flows of {alpha}: {queue} packets"
        );
        let shares: Vec<f64> =
            simulated.flows.iter().map(|row| row.placed_in_window as f64).collect();
        assert!(metrics::jain(shares.iter().copied()) > Some(0.99), "{shares:?}");
    }
}
