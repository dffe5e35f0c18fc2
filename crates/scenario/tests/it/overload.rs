//! Unresponsive overload (figure 2 of the NDP paper): what switches make of n sources, each at the
//! rate of the link that all of them must pass, against what arithmetic says (specs/ndp.md#4).

use std::path::Path;

use trimline_scenario::{Options, Scenario, simulate};

/// Bytes on the wire: of a full packet, and of a header.
const FULL: f64 = 9064.0;
const HEADER: f64 = 64.0;

/// Goodput of each of `n` sources, over its share of the link, lowest first.
fn shares(queue: &str, n: u32) -> Vec<f64> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/overload_cut_payload.toml");
    let sets = [
        format!("topology.hosts={}", n + 1),
        format!("traffic.senders={n}"),
        format!("queue={queue}"),
        "measure.to=22ms".to_owned(),
    ];
    let sets = [&sets[..], &crate::EXACT.map(str::to_owned)].concat();
    let scenario = Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let simulated = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    assert_eq!(simulated.flows.len(), n as usize);
    // 20 ms at 10 Gb/s.
    let share = 25e6 / f64::from(n) * 9000.0 / FULL;
    let mut shares: Vec<f64> =
        simulated.flows.iter().map(|row| row.placed_in_window as f64 / share).collect();
    shares.sort_by(f64::total_cmp);
    shares
}

fn mean(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / shares.len() as f64
}

/// Of each period's n packets a share f passes whole and the rest as headers, together what the
/// link carries: f FULL + (n - f) HEADER = FULL.
#[test]
fn cut_payload_collapses_under_its_headers() {
    let queue = "{kind=\"cut-payload\", capacity=\"16 packets\"}";
    for n in [1, 5, 20, 50, 100] {
        let carried = (FULL - f64::from(n) * HEADER) / (FULL - HEADER);
        let found = mean(&shares(queue, n));
        assert!((found - carried).abs() < 0.005, "{n} sources: {found}, by arithmetic {carried}");
    }
    // More headers than the link carries: the queue is full of them.
    assert!(mean(&shares(queue, 160)) < 0.01);
}

/// Ten headers at most go before each full packet.
#[test]
fn ndp_stays_above_ten_headers_per_packet() {
    let queue = "{kind=\"ndp\", capacity=\"8 packets\"}";
    let floor = FULL / (FULL + 10.0 * HEADER);
    for n in [11, 50, 160] {
        let found = mean(&shares(queue, n));
        assert!((found - floor).abs() < 0.001, "{n} sources: {found}, not {floor}");
    }
}

/// Sources keep their phases, and a queue that always trims who comes too late trims the same ones
/// for ever. NDP's coin lets everybody through now and then.
#[test]
fn cut_payload_starves_some_sources_and_ndp_none() {
    let worst = |queue| shares(queue, 50)[0];
    assert!(worst("{kind=\"cut-payload\", capacity=\"16 packets\"}") < 0.01);
    assert!(worst("{kind=\"ndp\", capacity=\"8 packets\"}") > 0.1);
}
