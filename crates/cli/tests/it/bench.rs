//! `trimline bench`, with its smallest case.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

/// `trimline bench` with the smallest case, once, and more arguments.
fn bench(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("trimline").unwrap();
    let quick = ["bench", "--case", "quick", "--runs", "1"];
    command.current_dir(dir).args(quick).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a good bench prints.
fn good(dir: &Path, args: &[&str]) -> String {
    let output = bench(dir, args);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "nothing to say in a pipe: {output:?}");
    text(&output.stdout)
}

#[test]
fn json_has_the_keys_of_the_contract_and_one_digest_for_all_threads() {
    let dir = tempfile::tempdir().unwrap();
    let all: Value =
        serde_json::from_str(&good(dir.path(), &["--json", "--threads", "1,3,1"])).unwrap();
    let all = all.as_array().unwrap();
    let keys = [
        "cpu_s",
        "digest",
        "events",
        "instructions_per_packet_hop",
        "name",
        "ns_per_packet_hop",
        "packet_hops",
        "packet_hops_per_s",
        "peak_rss_mb",
        "threads",
        "wall_s",
    ];
    for line in all {
        let mut has: Vec<&String> = line.as_object().unwrap().keys().collect();
        has.sort();
        assert_eq!(has, keys);
        assert_eq!(line["name"], "quick");
        for key in ["packet_hops", "cpu_s", "wall_s", "ns_per_packet_hop", "peak_rss_mb"] {
            assert!(line[key].as_f64().unwrap() > 0.0, "{key}: {line}");
        }
    }
    let threads: Vec<&Value> = all.iter().map(|line| &line["threads"]).collect();
    assert_eq!(threads, [1, 3]);
    assert_eq!(all[0]["digest"], all[1]["digest"]);
    assert_eq!(all[0]["digest"].as_str().unwrap().len(), 16);
}

#[test]
fn the_table_compares_threads_and_ratios_compare_with_an_earlier_bench() {
    let dir = tempfile::tempdir().unwrap();
    let old = good(dir.path(), &["--json", "--threads", "1"]);
    std::fs::write(dir.path().join("old.json"), &old).unwrap();
    let compare = ["--threads", "1,2", "--compare", "old.json"];
    let tables = good(dir.path(), &compare);
    for part in ["M hops/s", "instr./hop", "speed-up", "new / old", "same"] {
        assert!(tables.contains(part), "{part:?} is missing in\n{tables}");
    }
    let rows = tables.lines().filter(|line| line.contains("quick")).count();
    assert_eq!(rows, 3, "two measured, one of them in the old file\n{tables}");

    let output = bench(dir.path(), &[&compare[..], &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok(), "{output:?}");
    assert!(text(&output.stderr).contains("new / old"), "the ratios");
}

/// What a bench says that is refused, before it measures anything.
fn refused(args: &[&str], old: Option<&str>) -> String {
    let dir = tempfile::tempdir().unwrap();
    if let Some(old) = old {
        std::fs::write(dir.path().join("old.json"), old).unwrap();
    }
    let output = bench(dir.path(), args);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    text(&output.stderr)
}

const COMPARE: &[&str] = &["--threads", "1", "--compare", "old.json"];

#[test]
fn compare_with_a_file_that_is_not_there() {
    insta::assert_snapshot!(refused(COMPARE, None));
}

#[test]
fn compare_with_a_file_that_is_cut_off() {
    insta::assert_snapshot!(refused(COMPARE, Some("[\n  {\n    \"name\": \"quick\",\n    \"thre")));
}

#[test]
fn compare_with_an_empty_file() {
    insta::assert_snapshot!(refused(COMPARE, Some("")));
}

#[test]
fn compare_with_a_file_without_a_key() {
    insta::assert_snapshot!(refused(
        COMPARE,
        Some("[\n  { \"name\": \"quick\", \"threads\": 1 }\n]\n")
    ));
}

#[test]
fn compare_with_the_summary_of_a_run() {
    insta::assert_snapshot!(refused(COMPARE, Some("{\n  \"schema\": 1\n}\n")));
}

#[test]
fn compare_with_nothing_in_common() {
    let old = r#"[{"name": "quick", "threads": 2, "wall_s": 1, "ns_per_packet_hop": 1, "peak_rss_mb": 1},
        {"name": "slow", "threads": 1, "wall_s": 1, "ns_per_packet_hop": 1, "peak_rss_mb": 1}]"#;
    insta::assert_snapshot!(refused(COMPARE, Some(old)));
    insta::assert_snapshot!("compare_with_an_empty_list", refused(COMPARE, Some("[]")));
}

#[test]
fn unknown_case() {
    insta::assert_snapshot!(refused(&["--case", "ndp-incast-431"], None));
}

#[test]
fn numbers_out_of_range() {
    let said = refused(&["--threads", "0"], None);
    assert!(said.contains("0 is not in 1..=1024"), "{said}");
    let said = refused(&["--threads", "1,"], None);
    assert!(said.contains("invalid value '' for '--threads <LIST>'"), "{said}");
    let output = Command::cargo_bin("trimline").unwrap().args(["bench", "--runs=0"]).output();
    let said = text(&output.unwrap().stderr);
    assert!(said.contains("invalid value '0' for '--runs <N>'"), "{said}");
}
