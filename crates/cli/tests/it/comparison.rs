//! `trimline compare --seeds`, and `[[variant]]` tables.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use metrics::RunTable;
use serde_json::Value;

/// Eight hosts and short messages, under NDP with two windows and under TCP.
const SCENARIO: &str = r#"
name = "eight hosts"
seed = 1
[topology]
kind = "star"
hosts = 8
link_rate = "10Gbps"
link_delay = "1us"
[queue]
kind = "ndp"
capacity = "8 packets"
[routing]
mode = "single"
[transport]
kind = "ndp"
preset = "paper"
payload = "9000B"
initial_window = 12
[traffic]
kind = "poisson"
distribution = "google-rpc"
load = 0.1
[measure]
from = "1ms"
to = "4ms"
limit = "3s"

[[variant]]
name = "NDP"
[[variant]]
name = "one packet"
set = { "transport.initial_window" = 1 }
[[variant]]
name = "TCP"
set.transport = { kind = "tcp", rule = "newreno", preset = "linux-datacenter", recovery = "newreno", ecn = false, mss = "1000B" }
set.queue = { kind = "drop-tail", capacity = "100 packets" }
"#;

fn trimline(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trimline"));
    command.current_dir(dir).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn with(scenario: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), scenario).unwrap();
    dir
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn variants_are_compared_in_pairs_of_equal_traffic() {
    let dir = with(SCENARIO);
    let args = ["compare", "x.toml", "--seeds", "1-6", "--metric", "fct_us.p50"];
    let more = ["--metric", "packets.data_sent", "--metric", "1 / packets.data_sent", "--out", "o"];
    let output = trimline(dir.path(), &[&args[..], &more].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.contains("traffic: with each seed the same measured messages"), "{said}");
    let about =
        "6 comparisons: with 95 % no yes or no among them is wrong (Bonferroni: each at 99.17 %)";
    assert!(said.contains(about), "{said}");
    // NDP's packets are nine times as long.
    let fewer = "TCP's 1 / packets.data_sent is lower than NDP's: yes, by ";
    let more = "TCP's data packets sent is lower than NDP's: no, it is higher by ";
    assert!(said.contains(fewer) && said.contains(more), "{said}");
    assert!(said.contains("TCP's completion time p50 (µs) is lower than NDP's: "), "{said}");
    let window = said.lines().find(|line| line.contains("transport.initial_window")).unwrap();
    let cells: Vec<&str> = window.split(['│', '┆']).map(str::trim).collect();
    assert_eq!(cells[1..5], ["transport.initial_window", "12", "1", "10.0"]);
    assert!(said.contains("settings that not all of them have"), "{said}");

    let results = json(&dir.path().join("o/comparison.json"));
    let metric = &results["metrics"][0];
    let table = RunTable {
        texts: vec!["variant".to_owned()],
        metrics: vec!["fct_us.p50".to_owned()],
        ..RunTable::default()
    };
    let rows = table.read(&dir.path().join("o/runs.parquet")).unwrap();
    assert_eq!(rows.len(), 18, "a row for each variant and seed");
    let of = |variant: &str| -> Vec<f64> {
        let own = rows.iter().filter(|row| row.texts == [variant]);
        own.map(|row| row.values[0].unwrap()).collect()
    };
    let (ndp, tcp) = (of("NDP"), of("TCP"));
    let differences: Vec<f64> = tcp.iter().zip(&ndp).map(|(tcp, ndp)| tcp - ndp).collect();
    let mean = differences.iter().sum::<f64>() / 6.0;
    let variance = differences.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / 5.0;
    let estimate = &metric["differences"][1]["estimate"];
    let close =
        |value: &Value, expected: f64| (value.as_f64().unwrap() / expected - 1.0).abs() < 1e-9;
    assert!(close(&estimate["mean"], mean), "{estimate}");
    // Student's t for five degrees of freedom.
    assert!(close(&estimate["interval"], 2.571 * (variance / 6.0).sqrt()), "{estimate}");

    let page = fs::read_to_string(dir.path().join("o/report.html")).unwrap();
    for part in [fewer, more, about, "Slowdown by message size", "transport.rule"] {
        assert!(page.contains(part), "{part}");
    }
    let rows = trimline(dir.path(), &["report", "o"]);
    assert_eq!(rows.status.code(), Some(0), "{rows:?}");
    assert_eq!(fs::read_to_string(dir.path().join("o/report.html")).unwrap(), page);

    let repeat = "trimline run x.toml --set 'transport.initial_window=1' --seed 1";
    let repeated = results["repeat"][1].as_str().unwrap();
    assert_eq!(repeated.replace('\'', ""), repeat.replace('\'', ""));
}

/// More metrics and seeds take no job again, and another baseline none at all.
#[test]
fn what_was_run_serves_for_other_comparisons() {
    let dir = with(SCENARIO);
    let out = ["--out", "o"];
    let first =
        trimline(dir.path(), &[&["compare", "x.toml", "--seeds", "1-2"], &out[..]].concat());
    assert!(text(&first.stderr).contains("6 jobs: 0 finished before, 6 run now"), "{first:?}");
    let more = ["compare", "x.toml", "--seeds", "1-3", "--metric", "goodput_gbps"];
    let more = trimline(dir.path(), &[&more[..], &out].concat());
    assert!(text(&more.stderr).contains("9 jobs: 6 finished before, 3 run now"), "{more:?}");
    let other = ["compare", "x.toml", "--seeds", "1-3", "--baseline", "TCP"];
    let other = trimline(dir.path(), &[&other[..], &out].concat());
    assert!(text(&other.stderr).contains("9 jobs: 9 finished before, 0 run now"), "{other:?}");
    let said = text(&other.stdout);
    assert!(said.contains("NDP's slowdown p99 is lower than TCP's"), "{said}");
    assert!(!said.contains("TCP's slowdown p99 is lower"), "{said}");
}

#[test]
fn other_traffic_is_said_to_be_other() {
    let dir = with(SCENARIO.split_once("[[variant]]").unwrap().0);
    let other = fs::read_to_string(dir.path().join("x.toml")).unwrap();
    fs::write(dir.path().join("y.toml"), other.replace("load = 0.1", "load = 0.2")).unwrap();
    let output = trimline(dir.path(), &["compare", "x.toml", "y.toml", "--seeds", "1-2"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stdout);
    assert!(said.contains("traffic: not the same with each seed"), "{said}");
    assert!(said.contains("eight hosts (y.toml)'s slowdown p99"), "named by its file: {said}");
    assert!(dir.path().join("out/comparison/comparison.json").exists());
}

/// Without `--seeds` each variant is run once, as each file was before.
#[test]
fn without_seeds_variants_are_run_once() {
    let dir = with(SCENARIO);
    let output = trimline(dir.path(), &["compare", "x.toml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let head = text(&output.stdout);
    let head = head.lines().find(|line| line.contains("scenario")).unwrap().to_owned();
    assert!(["NDP", "one packet", "TCP"].iter().all(|variant| head.contains(variant)), "{head}");
    for name in ["x-NDP", "x-one_packet", "x-TCP"] {
        let manifest = json(&dir.path().join("out/compare").join(name).join("manifest.json"));
        let kind = if name == "x-TCP" { "tcp" } else { "ndp" };
        assert_eq!(
            manifest["scenario"]["transport"][0]["kind"]
                .as_str()
                .or(manifest["scenario"]["transport"]["kind"].as_str()),
            Some(kind)
        );
    }
    let option = trimline(dir.path(), &["compare", "x.toml", "--collect"]);
    assert_eq!(option.status.code(), Some(2), "{option:?}");
    assert!(text(&option.stderr).contains("--collect has no effect without --seeds"), "{option:?}");
}

/// A sweep has a line for each variant.
#[test]
fn variants_are_an_axis_of_a_sweep() {
    let sweep = "[sweep]\naxes = { load = [0.05, 0.1] }\nset = [\"traffic.load={load}\"]\nseeds = [1]\n\
                 metrics = [\"fct_us.p99\"]\n";
    let dir = with(&format!("{SCENARIO}{sweep}"));
    let output = trimline(dir.path(), &["sweep", "x.toml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stdout);
    for variant in ["NDP", "one packet", "TCP"] {
        let rows = said.lines().filter(|line| line.contains(&format!(" {variant} ┆")));
        assert_eq!(rows.count(), 2, "{said}");
    }
    let named = with(
        &format!("{SCENARIO}{sweep}")
            .replace("load = [0.05", "variant = [0.05")
            .replace("{load}", "{variant}"),
    );
    let refused = trimline(named.path(), &["sweep", "x.toml"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("an axis cannot be called `variant`"), "{refused:?}");
}

/// What is said of the scenario with `from` replaced by `to`.
fn said_of(from: &str, to: &str, args: &[&str], code: i32) -> String {
    assert!(SCENARIO.contains(from), "{from:?} is not in the scenario");
    let dir = with(&SCENARIO.replacen(from, to, 1));
    let output = trimline(dir.path(), &[&["compare", "x.toml"], args].concat());
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert_eq!(dir.path().join("out").exists(), code == 0);
    text(&output.stderr)
}

#[test]
fn what_is_wrong_in_a_comparison() {
    let seeds = ["--seeds", "1-2"];
    let path = "\"transport.initial_window\" = 1";
    let refused = |from: &str, to: &str| said_of(from, to, &seeds, 2);
    insta::assert_snapshot!("unknown_path", refused(path, "\"transport.initial_windw\" = 1"));
    insta::assert_snapshot!("wrong_value", refused(path, "\"transport.initial_window\" = -1"));
    insta::assert_snapshot!("incomplete_table", refused("rule = \"newreno\", ", ""));
    insta::assert_snapshot!("two_of_one_name", refused("\"one packet\"", "\"NDP\""));
    insta::assert_snapshot!("seed_in_a_variant", refused(path, "seed = 3"));
    let without = |args: &[&str]| said_of("eight", "eight", args, 2);
    insta::assert_snapshot!("seeds_malformed", without(&["--seeds", "1-"]));
    insta::assert_snapshot!("seeds_twice", without(&["--seeds", "1-3,2"]));
    insta::assert_snapshot!(
        "unknown_metric_of_comparison",
        without(&["--seeds", "1", "--metric", "fct_us.p98"])
    );
    let twice = ["--seeds", "1", "--metric", "fct_us.p50", "--metric", "fct_us.p50"];
    insta::assert_snapshot!("metric_of_comparison_twice", without(&twice));
    insta::assert_snapshot!("unknown_baseline", without(&["--seeds", "1", "--baseline", "NPD"]));
    let dir = with(SCENARIO.split_once("[[variant]]").unwrap().0);
    let alone = trimline(dir.path(), &["compare", "x.toml", "--seeds", "1"]);
    assert_eq!(alone.status.code(), Some(2), "{alone:?}");
    insta::assert_snapshot!("nothing_to_compare_with", text(&alone.stderr));
    insta::assert_snapshot!(
        "unknown_path_without_seeds",
        said_of(path, "\"queue.capcity\" = 1", &[], 2)
    );
}

#[test]
fn a_variant_that_changes_nothing_gets_a_warning() {
    let path = "\"transport.initial_window\" = 1";
    let said = |to: &str| said_of(path, to, &["--seeds", "1"], 0);
    let same = said("\"transport.initial_window\" = 12");
    assert!(same.contains("the variants `NDP` and `one packet` are the same"), "{same}");
    let dir = with(&SCENARIO.replacen(
        "name = \"NDP\"",
        "name = \"NDP\"\nset = { \"queue.capacity\" = \"8 packets\" }",
        1,
    ));
    let nothing = text(&trimline(dir.path(), &["compare", "x.toml", "--seeds", "1"]).stderr);
    assert!(nothing.contains("the variant `NDP` changes nothing"), "{nothing}");
    assert!(nothing.contains("x.toml:29:8"), "{nothing}");
}
