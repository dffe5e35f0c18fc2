//! `trimline tune`: killed and resumed, with any number of workers; what it prints, and what it
//! refuses.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::jobs::{finished, start, text, trimline, wait_until};

/// One message over two links; a run takes a few milliseconds.
const TUNE: &str = r#"
name = "one flow"
seed = 1
[topology]
kind = "star"
hosts = 2
link_rate = "10Gbps"
link_delay = "1us"
[queue]
kind = "ndp"
capacity = "400 packets"
[routing]
mode = "permute"
[transport]
kind = "ndp"
preset = "paper"
payload = "1500B"
initial_window = 1000
[traffic]
kind = "incast"
senders = 1
receiver = 0
size = "100KB"
[tune]
axes = { payload = { from = "500B", to = "9000B", scale = "logarithmic" } }
set = ["transport.payload={payload}"]
points = 4
seeds = "1-12"
budget = 16
confirm = 4
minimise = "fct_us.max"
"#;

fn with_tune(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), text).unwrap();
    dir
}

/// `tune.json` without the command, which names the output directory.
fn results(out: &Path) -> Value {
    let mut results: Value =
        serde_json::from_str(&fs::read_to_string(out.join("tune.json")).unwrap()).unwrap();
    results.as_object_mut().unwrap().remove("command").unwrap();
    results
}

#[test]
fn a_search_that_is_killed_goes_on_and_workers_change_nothing() {
    let dir = with_tune(TUNE);
    let whole = trimline(dir.path(), &["tune", "x.toml", "--out", "whole", "--threads", "1"]);
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    let all = finished(&dir.path().join("whole")).len();
    assert!(text(&whole.stderr).contains(&format!("{all} jobs: 0 finished before, {all} run now")));

    let out = dir.path().join("killed");
    let mut killed = start(dir.path(), &["tune", "x.toml", "--out", "killed", "--threads", "3"]);
    wait_until("five jobs", || finished(&out).len() >= 5);
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    let before = finished(&out);
    assert!(!out.join("tune.json").exists());

    let resumed = trimline(dir.path(), &["tune", "x.toml", "--out", "killed", "--threads", "3"]);
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    let after = finished(&out);
    assert!(before.iter().all(|(job, at)| after[job] == *at), "a finished job was run again");
    assert_eq!(after.len(), all);
    assert_eq!(results(&out), results(&dir.path().join("whole")));

    // With a larger budget the runs of the first round are there.
    let more = ["tune", "x.toml", "--out", "killed", "--budget", "24"];
    let said = text(&trimline(dir.path(), &more).stderr);
    let (_, found) = said.split_once(" jobs: ").unwrap();
    let found: usize = found.split_once(" finished").unwrap().0.parse().unwrap();
    assert!(found >= 4 * 2, "{said}");
}

#[test]
fn a_row_per_point_and_a_page_with_a_plot_per_axis() {
    let two = TUNE.replace("\"logarithmic\" }", "\"logarithmic\" }, window = [20, 1000]");
    let two = two.replace("{payload}\"]", "{payload}\", \"transport.initial_window={window}\"]");
    let dir = with_tune(&two);
    let output = trimline(dir.path(), &["tune", "x.toml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stdout);
    let best = said.lines().find(|line| line.starts_with("best: payload=")).unwrap();
    assert!(best.contains("window=") && best.ends_with("over 4 fresh seeds"), "{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with('│')).count(), 1 + 4, "{said}");
    let out = dir.path().join("out/tune/x");
    assert!(out.join("runs.parquet").exists());
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    let body = crate::body(&page);
    assert_eq!(body.matches("<figure").count(), 2, "a plot per axis");
    assert!(
        body.contains("trimline run x.toml --set transport.payload="),
        "the best is repeatable"
    );

    let json = trimline(dir.path(), &["tune", "x.toml", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["directory"], "out/tune/x");
    assert_eq!(json["results"]["points"].as_array().unwrap().len(), 4);
    assert_eq!(json["results"]["points"][0]["stands"], "best");
}

#[test]
fn without_a_feasible_point_the_one_that_violates_least_is_named() {
    let text_of = format!("{TUNE}constraints = [\"packets.data_sent <= 2\"]\n");
    let dir = with_tune(&text_of);
    let output = trimline(dir.path(), &["tune", "x.toml"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("no point meets the constraints"), "{said}");
    assert!(said.contains("the one that violates them least is payload="), "{said}");
    let results = results(&dir.path().join("out/tune/x"));
    assert_eq!(results["points"][0]["stands"], "infeasible", "its results are there all the same");
    assert!(results["flat"].is_null());
}

#[test]
fn jobs_can_be_listed_collected_and_run_elsewhere() {
    let dir = with_tune(TUNE);
    let listed = trimline(dir.path(), &["tune", "x.toml", "--out", "o", "--list-jobs", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let jobs = listed.as_array().unwrap();
    assert_eq!(jobs.len(), 4 * 12);
    let needed = |job: &&Value| job["needed"] == true;
    let first: Vec<String> =
        jobs.iter().filter(needed).map(|job| job["number"].to_string()).collect();
    assert_eq!(first.len(), 4 * 2, "two seeds of each point in the first round");
    let ran = trimline(dir.path(), &["tune", "x.toml", "--out", "o", "--job", &first.join(",")]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let collected = trimline(dir.path(), &["tune", "x.toml", "--out", "o", "--collect"]);
    assert_eq!(collected.status.code(), Some(1), "the second round is missing");
    let said = text(&collected.stdout);
    assert_eq!(said.matches("open │").count(), 4, "{said}");
}

/// A metric that runs do not have is no failed run, and no success.
#[test]
fn points_without_a_value_are_named_with_the_reason() {
    let dir =
        with_tune(&TUNE.replace("fct_us.max", "fct_us.max / (packets.trimmed - packets.trimmed)"));
    let output = trimline(dir.path(), &["tune", "x.toml"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("no best point: 4 of 4 points have no value; payload="), "{said}");
    assert!(said.contains("is inf"), "{said}");
}

/// What is said of the search with `from` replaced by `to`.
fn refused(from: &str, to: &str) -> String {
    assert!(TUNE.contains(from), "{from:?} is not in the scenario");
    refused_with(&TUNE.replacen(from, to, 1), &[])
}

/// What is said of a search with these arguments.
fn refused_with(scenario: &str, args: &[&str]) -> String {
    let dir = with_tune(scenario);
    let output = trimline(dir.path(), &[&["tune", "x.toml"], args].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!dir.path().join("out").exists());
    text(&output.stderr)
}

#[test]
fn what_is_wrong_in_a_search() {
    insta::assert_snapshot!("no_tune", refused("[tune]", "[sweep]"));
    insta::assert_snapshot!("unknown_key", refused("[\"transport.payload", "[\"transport.payloda"));
    insta::assert_snapshot!("upside_down", refused("from = \"500B\"", "from = \"10KB\""));
    let axes = "[tune]\naxes = { payload = { from = 0, to = 9000, scale = \"logarithmic\" } }\n#";
    insta::assert_snapshot!("log_from_zero", refused("[tune]\n", axes));
    insta::assert_snapshot!("no_points", refused("points = 4\n", ""));
    insta::assert_snapshot!("no_budget", refused("budget = 16\n", ""));
    insta::assert_snapshot!("small_budget", refused("budget = 16\n", "budget = 7\n"));
    insta::assert_snapshot!("few_seeds", refused("\"1-12\"", "\"1-4\""));
    insta::assert_snapshot!("misspelt", refused("budget = 16\n", "budgte = 16\n"));
    insta::assert_snapshot!("no_aim", refused("minimise = \"fct_us.max\"\n", ""));
    let two = "minimise = \"fct_us.max\"\nmaximise = \"goodput_gbps\"\n";
    insta::assert_snapshot!("two_aims", refused("minimise = \"fct_us.max\"\n", two));
    insta::assert_snapshot!("constant_aim", refused("fct_us.max", "1 / 2"));
    insta::assert_snapshot!("unknown_metric", refused("fct_us.max", "fct_us.mxa"));
    let constraint = "\nconstraints = [\"goodput_gbps > 9\"]\n";
    insta::assert_snapshot!(
        "no_constraint",
        refused("\nminimise", &format!("{constraint}minimise"))
    );
    let condition = "where = [\"payloads <= 9000\"]\nset = [";
    insta::assert_snapshot!("unknown_axis", refused("set = [", condition));
    insta::assert_snapshot!("value_refused", refused("to = \"9000B\"", "to = \"90MB\""));
    let inf = "\nconstraints = [\"goodput_gbps <= 1/0\"]\nminimise";
    insta::assert_snapshot!("no_bound", refused("\nminimise", inf));
    insta::assert_snapshot!("own_seed", refused("{payload}\"]", "{payload}\", \"seed=3\"]"));
    let nothing = "where = [\"payload <= 1\"]\nset = [";
    insta::assert_snapshot!("no_point_left", refused("set = [", nothing));
}

#[test]
fn options_that_cannot_hold_are_refused_where_they_were_given() {
    insta::assert_snapshot!("option_budget", refused_with(TUNE, &["--budget", "3"]));
    insta::assert_snapshot!("option_seeds", refused_with(TUNE, &["--seeds", "1-3"]));
    insta::assert_snapshot!("option_seed", refused_with(TUNE, &["--set", "seed=4"]));
    insta::assert_snapshot!("option_tune", refused_with(TUNE, &["--set", "tune.budget=40"]));
    let cancels = refused_with(TUNE, &["--set", "transport.payload=\"1KB\""]);
    insta::assert_snapshot!("option_cancels", cancels);
}
