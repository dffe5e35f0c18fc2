//! What transports count for single messages, against what they count in all.

use std::path::Path;

use trimline_scenario::{Options, Scenario, simulate};

/// Sixteen servers answer over a port of 64 packets: losses of every kind, several messages per
/// connection.
#[test]
fn the_counts_of_messages_add_up_to_those_of_the_run() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/incast/base.toml");
    let sets = ["traffic.senders=16", "measure.to=2s"].map(str::to_owned);
    let scenario = Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let run = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    let sum =
        |count: fn(&metrics::FlowRow) -> u32| run.flows.iter().map(|r| u64::from(count(r))).sum();
    let all = |stat| run.outcome.counters.stat(stat);
    let counts: [(endpoint::Stat, u64); 3] = [
        (endpoint::Stat::Timeout, sum(|r| r.timeouts)),
        (endpoint::Stat::FastRetransmit, sum(|r| r.fast_retransmits)),
        (endpoint::Stat::Retransmission, sum(|r| r.retransmissions)),
    ];
    for (stat, of_messages) in counts {
        assert!(of_messages > 0 && of_messages == all(stat), "{stat:?}: {of_messages}");
    }
    // A block lasts at least as long as the timer of its slowest message.
    let waited = run
        .flows
        .iter()
        .filter(|r| r.timeouts > 0)
        .filter_map(|r| r.acked.map(|t| t.since(r.start)));
    assert!(
        waited.clone().count() > 16
            && waited.min().is_some_and(|least| least >= units::Dur::from_ms(200))
    );
}
