//! Homa and Homa-Tr through switches that trim (specs/homa-tr.md): `scenarios/homa_tr_incast.toml`.

use std::path::Path;

use trimline_scenario::{Options, Scenario, Simulated, simulate};
use units::{Dur, Time};

fn run(sets: &[&str], options: &Options) -> Simulated {
    let sets = sets.iter().chain(&crate::EXACT).map(|&s| s.to_owned());
    let sets: Vec<String> = sets.collect();
    let file = "../../scenarios/homa_tr_incast.toml";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let scenario = Scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{}", e.render(false)));
    simulate(&scenario, options, &mut |_| ()).unwrap()
}

fn digest(sets: &[&str]) -> u64 {
    run(sets, &Options::default()).outcome.digest
}

const BIG: [&str; 4] = [
    "queue.class.0.capacity=200KB",
    "queue.class.1.capacity=200KB",
    "queue.class.2.capacity=200KB",
    "queue.class.3.capacity=200KB",
];

/// Where nothing is trimmed, Homa-Tr is Homa to the picosecond, strict or not; where something is,
/// it is not.
#[test]
fn r3_with_room_for_all_homa_tr_is_homa() {
    let with = |set| digest(&[&[set], &BIG[..]].concat());
    let homa = with("transport.trimmed=lost");
    assert_eq!([homa; 2], [with("name=same"), with("transport.trimmed=refused-as-published")]);
    assert_ne!(digest(&["transport.trimmed=lost"]), digest(&[]));
    assert_ne!(digest(&["transport.trimmed=refused-as-published"]), digest(&[]));
}

/// Completion times of the ten messages, summed up.
fn total(simulated: &Simulated) -> Dur {
    assert!(simulated.flows.iter().all(|row| row.finish.is_some()));
    let times = simulated.flows.iter().filter_map(|row| Some(row.finish?.since(row.start)));
    times.fold(Dur::ZERO, |sum, time| sum + time)
}

/// specs/homa-tr.md#8: with half the buffer Homa waits for its timeouts and Homa-Tr does not. The
/// link needs 12.6 us for the 290 packets.
#[test]
fn the_incast_is_repaired_without_timeouts() {
    let [homa, homa_tr] = ["transport.trimmed=lost", "name=same"].map(|set| {
        let simulated = run(&[set], &Options::default());
        let end = simulated.flows.iter().filter_map(|row| row.finish).max();
        assert!(end > Some(Time(12_600_000)), "{end:?}");
        println!("{set}: {} {:?}", total(&simulated), simulated.outcome.counters);
        let timeouts: u32 = simulated.flows.iter().map(|row| row.timeouts).sum();
        (total(&simulated), timeouts)
    });
    assert!(homa.1 > 0 && homa_tr.1 == 0, "{} and {} timeouts", homa.1, homa_tr.1);
    assert!(homa.0 * 2 > homa_tr.0 * 3, "{} and {}", homa.0, homa_tr.0);
}

/// E8: headers and control packets that find no room are lost, which switches count; everything
/// arrives all the same.
#[test]
fn e8_lost_headers_are_counted() {
    let packet = (0..4).map(|class| format!("queue.class.{class}.capacity=1088B"));
    let sets: Vec<String> = packet.collect();
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let simulated = run(&sets, &Options { check: true, ..Options::default() });
    total(&simulated);
    let counters = simulated.outcome.counters;
    assert!(counters.dropped > 0 && counters.trimmed > counters.dropped, "{counters:?}");
}
