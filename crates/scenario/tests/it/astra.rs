//! astra-sim's micro benchmarks beside its own results: tests/golden/astra, whose README says how
//! its times come about and what differs.

use std::path::Path;

use trimline_scenario::{Options, Scenario, evaluate};

const POINTS: &str = include_str!("../../../../tests/golden/astra/points.csv");

/// A star whose two links and one packet at the switch take 510 ns: 2 x 178.1 ns and 8258 B.
const STAR: &str = r#"
name = "astra-sim's micro benchmarks"
seed = 1
[topology]
kind = "star"
hosts = 16
link_rate = "429496729600bps"
link_delay = "178100ps"
[host]
clock_ppm = 0
send_jitter = 0
[queue]
kind = "lossless"
preset = "hpcc"
[routing]
mode = "single"
[transport]
kind = "rdma"
rule = "none"
preset = "roce"
payload = "8192B"
ack_bytes = "40B"
[traffic]
kind = "job"
name = "job"
ranks_per_host = 1
placement = "packed"
connections = "persistent"
"#;

/// 2^20 bytes over 50 GB/s, of 2^30 bytes each, in ns.
const WHOLE_NS: f64 = 1e9 / 1024.0 / 50.0;

/// How long the trace of `operation` takes on `ranks` ranks, in ns.
fn run(operation: &str, ranks: u32, keys: &str) -> f64 {
    let folder = format!("astra-sim/{operation}/{ranks}npus_1MB");
    let text = format!("{STAR}file = \"{folder}\"\n{keys}");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ai/tests/data");
    let scenario = Scenario::parse("astra.toml", &text, &data, &[])
        .unwrap_or_else(|e| panic!("{}", e.render(false)));
    let results = evaluate(&scenario, &Options::default(), &mut |_| ());
    let steps = results.unwrap_or_else(|e| panic!("{e}")).summary.steps;
    assert_eq!((steps.completed, steps.unfinished), (1, 0));
    steps.time_us.max.unwrap() * 1e3
}

#[test]
fn astra_sims_own_examples_take_the_time_that_it_says() {
    let mut compared = 0;
    for line in POINTS.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [operation, ranks, system, "no", ns] = fields[..] else { continue };
        let (ranks, ns): (u32, f64) = (ranks.parse().unwrap(), ns.parse().unwrap());
        let expected = match operation {
            // Its switch forwards whole messages: one more of them, and one more latency.
            "all_to_all" => ns - WHOLE_NS / f64::from(ranks) - 500.0,
            _ => ns,
        };
        let keys = match system {
            "Ring_4chunks" => "algorithm = \"trace\"\nsystem = \"astra-sim/Ring_4chunks.json\"\n",
            "whole" => "algorithm = \"ring\"\n",
            _ => "algorithm = \"direct\"\n",
        };
        let took = run(operation, ranks, keys);
        let more = took / expected - 1.0;
        println!("{operation} {ranks} {system}: {took:.0} ns, {:.2} % more", more * 100.0);
        assert!((0.0..0.02).contains(&more), "{line}: {took} ns, {more}");
        compared += 1;
    }
    assert_eq!(compared, 21);
}
