//! `p4/ndp_switch.p4` at every switch port does, packet for packet, what the native NDP queue does
//! that always trims the arriving packet.

use std::path::Path;

use trimline_scenario::{Options, Scenario, simulate};

/// The incast with these settings: digest, packets trimmed and bounced.
fn run(sets: &[String], options: &Options) -> (u64, u64, u64) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/p4/ndp_switch.toml");
    let scenario = Scenario::load(&file, sets).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let outcome = simulate(&scenario, options, &mut |_| ()).unwrap().outcome;
    let count = |of: fn(&fabric::LinkStats) -> u64| outcome.links.iter().map(of).sum();
    (outcome.digest, count(|link| link.trimmed), count(|link| link.bounced))
}

/// The native queue with so much room for headers.
fn native(header_capacity: u32) -> Vec<String> {
    let ndp = "kind=\"ndp\", capacity=\"72000B\", trim_arriving=1.0";
    vec![format!("queue={{{ndp}, header_capacity=\"{header_capacity}B\"}}")]
}

/// The program with so much room for headers, run so.
fn program(header_capacity: u32, backend: &str) -> Vec<String> {
    vec![
        format!("queue.backend={backend}"),
        format!("queue.constants={{HEADER_CAPACITY={header_capacity}}}"),
    ]
}

#[test]
fn the_program_does_what_the_native_queue_does() {
    let options = Options::default();
    let wanted = run(&native(72_000), &options);
    assert!(wanted.1 > 100, "{} trimmed", wanted.1);
    for backend in ["interpreter", "rust"] {
        assert_eq!(run(&program(72_000, backend), &options), wanted, "{backend}");
    }
}

/// With room for ten headers, some go back to their senders.
#[test]
fn headers_without_room_go_back() {
    let options = Options::default();
    let wanted = run(&native(640), &options);
    assert!(wanted.2 > 10, "{} bounced", wanted.2);
    assert_eq!(run(&program(640, "interpreter"), &options), wanted);
}

#[test]
fn any_number_of_threads_and_eager_departures_give_the_same() {
    let sets = program(72_000, "interpreter");
    let wanted = run(&sets, &Options { threads: Some(1), ..Options::default() });
    for options in [
        Options { threads: Some(3), ..Options::default() },
        Options { eager: true, heap: true, ..Options::default() },
        Options { check: true, ..Options::default() },
    ] {
        assert_eq!(run(&sets, &options), wanted);
    }
}
