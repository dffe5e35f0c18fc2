//! Ultra Ethernet by the public cases of specs/uet.md#9 that are small, with their limits, and the
//! same digest for any number of threads.

use std::path::Path;

use metrics::FlowRow;
use trimline_scenario::{Options, Scenario, Simulated, simulate};

/// Other traffic than the file's, and other settings.
fn run(traffic: &str, sets: &[&str], threads: u32) -> Simulated {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/uet");
    let file = std::fs::read_to_string(path.join("permutation_16.toml")).unwrap();
    let rest = file.split("[traffic]").next().unwrap();
    let text = format!("{rest}[traffic]\n{traffic}\nsize = \"2000000B\"\n");
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let scenario = Scenario::parse("uet.toml", &text, &path, &sets);
    let scenario = scenario.unwrap_or_else(|e| panic!("{}", e.render(false)));
    let options = Options { threads: Some(threads), ..Options::default() };
    simulate(&scenario, &options, &mut |_| ()).unwrap()
}

/// When the last message is there, us.
fn tail(simulated: &Simulated, messages: usize) -> f64 {
    let done: Vec<f64> =
        simulated.flows.iter().filter_map(FlowRow::fct).map(|fct| fct.0 as f64 / 1e6).collect();
    assert_eq!(done.len(), messages);
    done.into_iter().fold(0.0, f64::max)
}

const ONE: &str = "kind = \"incast\"\nsenders = 1\nreceiver = 13";
const INCAST: &str = "kind = \"incast\"\nsenders = 15\nreceiver = 15";
const PERMUTATION: &str = "kind = \"permutation\"";

/// Rows 1, 3, 8 and 10. The limits are of the sender, which hears 6 us after the receiver.
#[test]
fn small_public_cases_are_within_their_limits() {
    let back = 6.1;
    for (traffic, sets, messages, limit) in [
        (ONE, &["transport.entropies=64"][..], 1, 190.0),
        (INCAST, &["transport.entropies=64"], 15, 2550.0),
        (PERMUTATION, &[], 16, 210.0),
        (PERMUTATION, &["transport.entropies=1"], 16, 1300.0),
    ] {
        let tail = tail(&run(traffic, sets, 1), messages);
        assert!(tail + back < limit, "{traffic}: {tail} us of {limit}");
    }
}

/// specs/uet.md#U11: with trimming, marks and any choice of values.
#[test]
fn u11_any_number_of_threads_gives_the_same_run() {
    for spray in ["oblivious", "bitmap", "reps", "mixed"] {
        let spray = format!("transport.spray={spray}");
        for traffic in [INCAST, PERMUTATION] {
            let digest = |threads| run(traffic, &[&spray], threads).outcome.digest;
            let one = digest(1);
            assert!([2, 4].into_iter().all(|threads| digest(threads) == one), "{spray}");
        }
    }
    assert!(run(INCAST, &[], 1).outcome.counters.trimmed > 0);
    assert!(run(INCAST, &[], 1).outcome.counters.marked > 0);
}
