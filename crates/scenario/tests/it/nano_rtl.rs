//! `backend = "rtl"`: a scenario with NICs in hardware is the scenario with the models of them.

use std::path::{Path, PathBuf};

use endpoint::{Observer, Stat};
use fabric::Counters;
use rtl::tools::Tools;
use trimline_scenario::{Diagnostic, Options, Scenario, observe};

use crate::lossy::Lossy;

type Checked<T> = Result<T, Diagnostic>;

/// Every NIC of every incast in hardware, not only the receiver of two.
const ALL: &str = "TRIMLINE_RTL_ALL";

/// Several messages at an instant, of which packets are lost, to receivers that end messages
/// before they are asked again and know the last four: all is repeated, and forgotten.
const BURSTS: Lossy = Lossy {
    hosts: 4,
    capacity: "4 packets",
    connections: 8,
    size: "3KB",
    to: "12us",
    probability: 0.4,
};

/// Their hosts.
const HOSTS: &str = "
[host]
clock_ppm = 0
send_jitter = 0
[transport]
kind = \"nic\"
program = \"ndp\"
preset = \"firesim\"
clocked = true
ingress_timeouts = 1
timeout = \"1us\"
remember = 4
";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/p4")
}

/// What all hosts do, and what their transports count.
fn run(scenario: Checked<Scenario>) -> (u64, Counters) {
    let scenario = scenario.unwrap_or_else(|why| panic!("{}", why.render(false)));
    let options = Options { threads: Some(1), ..Options::default() };
    let outcome = observe(&scenario, &options, Nobody).unwrap_or_else(|why| panic!("{why}")).0;
    (outcome.digest, outcome.counters)
}

fn edits(set: &[&str]) -> Vec<String> {
    set.iter().map(|&set| set.to_owned()).collect()
}

/// Looks at nothing.
struct Nobody;

impl Observer for Nobody {}

/// nanoTransport's incast: ten senders, one receiver (specs/nanotransport.md#15.4), in its
/// `variant`.
fn agrees(file: &str, variant: &[&str], sets: &[&[&str]]) {
    if let Err(why) = Tools::find() {
        println!("{file} with circuits skipped: {why}");
        return;
    }
    let clocked = "transport.clocked=true";
    let run = |set: &[&str]| {
        run(Scenario::load(&folder().join(file), &edits(&[&[clocked], variant, set].concat())))
    };
    let model = run(&[]);
    for set in sets {
        let circuits = run(&[&["transport.backend=rtl"], *set].concat());
        assert_eq!(circuits, model, "{file} {variant:?} {set:?}");
        println!("{file} {variant:?} {set:?}: {:016x}", model.0);
    }
}

const RECEIVER: &[&str] = &["transport.rtl_hosts=[0]"];
const EVERYBODY: &[&str] = &[];

/// The study's bigger buffer, of a hundred packets, in each class of a scenario of its two.
const BIG_NDP: &[&str] = &["queue.class.0.capacity=108800B", "queue.class.1.capacity=108800B"];
const BIG_HOMA: &[&str] = &[
    "queue.class.0.capacity=108800B",
    "queue.class.1.capacity=108800B",
    "queue.class.2.capacity=108800B",
    "queue.class.3.capacity=108800B",
];
const NO_TRIM: &[&str] = &["transport.constants.TRIM=false"];

fn is_all() -> bool {
    std::env::var_os(ALL).is_some()
}

#[test]
fn an_incast_of_ndp_has_one_digest_with_models_and_with_circuits() {
    if !is_all() {
        return agrees("incast_ndp.toml", &[], &[RECEIVER]);
    }
    for variant in [&[], BIG_NDP] {
        agrees("incast_ndp.toml", variant, &[RECEIVER, EVERYBODY]);
    }
}

/// Homa-Tr, and Homa where all run.
#[test]
fn an_incast_of_homa_has_one_digest_with_models_and_with_circuits() {
    if !is_all() {
        return agrees("incast.toml", &[], &[RECEIVER]);
    }
    let no_trim_and_big = [NO_TRIM, BIG_HOMA].concat();
    for variant in [&[], BIG_HOMA, NO_TRIM, &no_trim_and_big] {
        agrees("incast.toml", variant, &[RECEIVER, EVERYBODY]);
    }
}

#[test]
fn bursts_that_are_lost_and_forgotten_are_counted_alike() {
    let text = BURSTS.text() + HOSTS;
    let run = |set: &[&str]| run(Scenario::parse("x.toml", &text, &folder(), &edits(set)));
    let model = run(&["transport.backend=interpreter"]);
    for stat in [Stat::Retransmission, Stat::Duplicate, Stat::Forgotten, Stat::DeliveredTwice] {
        assert!(model.1.stat(stat) > 0, "{stat:?} is not tried: {model:?}");
    }
    // It counts rejections that a program does not know of.
    assert_eq!(run(&["transport.backend=model"]).0, model.0);
    match Tools::find() {
        Ok(_) => {
            assert_eq!(run(&["transport.backend=rtl", "transport.rtl_hosts=[0, 1]"]), model);
        }
        Err(why) => println!("bursts with circuits skipped: {why}"),
    }
}
