//! What once hung, panicked, broke a rule or was silent ends well: with a result, or with one clear
//! message and exit code 2. The scenarios in `repro/` are those that showed it, with today's names.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

/// Much longer than any of them takes: what is not done by then hangs.
const PATIENCE: Duration = Duration::from_secs(120);

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/repro").join(name)
}

/// What `trimline COMMAND repro/NAME` does, with its results in `out`.
fn ends(command: &str, name: &str, out: &Path) -> Output {
    let mut trimline = Command::cargo_bin("trimline").unwrap();
    trimline.args(["--progress", "never", command]).arg(file(name)).arg("--out").arg(out);
    trimline.timeout(PATIENCE).output().unwrap()
}

/// The summary of `repro/NAME`, and what its run says on stderr.
fn result(name: &str) -> (Value, String) {
    let dir = tempfile::tempdir().unwrap();
    let output = ends("run", name, dir.path());
    assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
    let summary = std::fs::read_to_string(dir.path().join("summary.json")).unwrap();
    (serde_json::from_str(&summary).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// The one message of `repro/NAME`, which is refused.
fn refusal(command: &str, name: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let output = ends(command, name, &out);
    assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
    assert!(output.stdout.is_empty() && !out.exists(), "{name}: {output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.matches("  × ").count(), 1, "one message: {stderr}");
    assert!(stderr.contains(name), "with its place: {stderr}");
    stderr
}

fn count(summary: &Value, pointer: &str) -> u64 {
    let value = summary.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {summary}"));
    value.as_u64().unwrap_or_else(|| panic!("{pointer} is {value}"))
}

#[test]
fn messages_given_up_are_counted_by_cause() {
    let (summary, stderr) = result("given_up_messages_not_counted.toml");
    let of = |key: &str| count(&summary, &format!("/messages/{key}"));
    assert_eq!((of("submitted"), of("completed")), (1067, 647));
    assert_eq!((of("failed/total"), of("failed/timed_out"), of("failed/refused")), (420, 420, 0));
    assert_eq!(count(&summary, "/measured/unfinished"), 0);
    assert!(stderr.contains("420 of the measured messages were given up"), "{stderr}");
}

#[test]
fn a_nic_s_message_is_delivered_once() {
    let (summary, stderr) = result("nano_delivered_twice.toml");
    assert_eq!(count(&summary, "/delivered_twice"), 0);
    assert!(count(&summary, "/messages/completed") > 20_000);
    assert!(!stderr.contains("invariant"), "{stderr}");
}

#[test]
fn a_table_of_two_messages_is_chosen_knowingly() {
    let (summary, stderr) = result("p4_remember2_rule_broken.toml");
    let of = |key: &str| count(&summary, &format!("/messages/{key}"));
    assert_eq!(of("submitted"), of("completed") + of("failed/total"));
    assert!(!stderr.contains("invariant"), "{stderr}");
}

#[test]
fn a_run_that_stood_still_for_ever_reaches_its_limit() {
    let (summary, stderr) = result("p4_remember2_stack_hang.toml");
    assert_eq!(count(&summary, "/delivered_twice"), 1);
    assert!(stderr.contains("messages delivered twice: 1"), "{stderr}");
    assert!(stderr.contains("the run ended at its limit, 229 us"), "{stderr}");
}

#[test]
fn a_header_queue_of_a_byte_is_refused() {
    let stderr = refusal("run", "header_capacity_1B.toml");
    assert!(stderr.contains("a header queue of 1B holds no header of 64B"), "{stderr}");
}

#[test]
fn what_is_wrong_in_a_large_scenario_is_said_before_it_is_built() {
    let begun = std::time::Instant::now();
    let stderr = refusal("run", "slow_to_read.toml");
    assert!(stderr.contains("slow_to_read.toml:30:30"), "{stderr}");
    let stderr = refusal("run", "slow_to_read_key.toml");
    assert!(stderr.contains("unknown key `probability`"), "{stderr}");
    assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
}

#[test]
fn a_sweep_of_2_to_the_70_points_is_refused() {
    let stderr = refusal("sweep", "sweep_2pow70_points.toml");
    assert!(stderr.contains("about 1.2e21 runs"), "{stderr}");
    let (summary, _) = result("sweep_2pow70_points.toml");
    assert_eq!(count(&summary, "/messages/completed"), 2, "a run needs no sweep");
}
