//! What the programmable NIC promises: each message is delivered at most once, natively and in P4.
//! A table of a fixed size breaks that, which is counted; docs/nic.md, "What the NIC promises".

use std::path::Path;

use endpoint::{Observer, Stat};
use fabric::{Counters, Outcome};
use trimline_scenario::{Options, Scenario, observe};

use crate::lossy::Lossy;

struct Nothing;

impl Observer for Nothing {}

/// Fifteen senders of short messages to one host whose link loses three of ten acknowledgements to
/// one of them: thousands of messages are over before that one hears of its own.
const MANY: Lossy = Lossy {
    hosts: 16,
    capacity: "200 packets",
    connections: 4,
    size: "64B",
    to: "300us",
    probability: 0.3,
};

/// Receivers that end a message before its sender has asked again, so that most of them begin anew.
const HASTY: &str = "
name = \"receivers without patience\"
seed = 1
[host]
clock_ppm = 0
send_jitter = 0
[topology]
kind = \"star\"
hosts = 9
link_rate = \"200Gbps\"
link_delay = \"131ns\"
[queue]
kind = \"drop-tail\"
capacity = \"4 packets\"
[routing]
mode = \"single\"
[traffic]
kind = \"incast\"
receiver = 0
senders = 8
size = \"30KB\"
every = \"30us\"
until = \"1ms\"
[measure]
limit = \"3ms\"
";

const NATIVE: &str = "kind = \"nic\"\nprogram = \"ndp\"";
const P4: &str = "kind = \"nic\"\nprogram = \"../../p4/ndp.p4\"\nbackend = \"rust\"\nprotocol = 155\n\
                  priorities = 1";

/// Messages delivered, and delivered twice, of [`MANY`].
fn run(transport: &str) -> (u64, u64) {
    let outcome = run_of(&MANY.text(), transport);
    (outcome.counters.delivered, outcome.counters.stat(Stat::DeliveredTwice))
}

fn run_of(scenario: &str, transport: &str) -> Outcome {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/p4");
    let text = format!("{scenario}[transport]\npreset = \"firesim\"\n{transport}\n");
    let scenario = Scenario::parse("x.toml", &text, &here, &[]);
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(false)));
    let options = Options { threads: Some(1), ..Options::default() };
    observe(&scenario, &options, Nothing).unwrap_or_else(|e| panic!("{e}")).0
}

#[test]
fn by_default_nothing_is_delivered_twice() {
    let (native, p4) = (run(NATIVE), run(P4));
    assert!(native.0 > 10_000 && native.1 == 0, "{native:?}");
    assert_eq!(native, p4);
}

#[test]
fn what_a_table_forgets_is_delivered_twice_and_counted() {
    let of = |transport: &str| run(&format!("{transport}\nremember = 1024"));
    let (native, p4) = (of(NATIVE), of(P4));
    assert!(native.1 > 0, "{native:?}");
    assert_eq!(native, p4);
}

/// A table of two places was a broken rule of the engine once.
#[test]
fn a_table_of_any_size_ends_no_run() {
    for remember in [0, 1, 2, 64] {
        let (_, twice) = run(&format!("{P4}\nremember = {remember}"));
        assert!(twice > 0, "remember = {remember}");
    }
}

/// Nor does what a sender takes for delivered when its packets came in different lives of the
/// message: such a message has failed.
#[test]
fn what_a_table_forgets_in_parts_has_failed() {
    let hasty = "ingress_timeouts = 1\ntimeout = \"1us\"\nremember = ";
    let of = |transport: &str, remember: &str| {
        let outcome = run_of(HASTY, &format!("{transport}\n{hasty}{remember}"));
        let Counters { submitted, delivered, failed, .. } = outcome.counters;
        (submitted, delivered, failed, outcome.counters.stat(Stat::Forgotten))
    };
    for remember in ["0", "1", "2"] {
        let (native, p4) = (of(NATIVE, remember), of(P4, remember));
        assert!(native.2 > 0 && native.3 > 0, "remember = {remember}: {native:?}");
        assert_eq!(native, p4);
    }
    assert_eq!(of(NATIVE, "\"lifetime\"").3, 0);
}
