//! `trimline validate`: lists of the public Ultra Ethernet simulator, as they are.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

const MATRIX: &str = "Nodes 16\nConnections 2\n0->13 id 1 start 3 size 100000\n\
                      1->14 id 2 start 3 size 100000\n";

/// One case within its limit, one that is not supported, one whose flow has an impossible limit,
/// one that ends too early, one with a message that never starts.
const LIST: &str = "\
two.cm
!Experiment well within
!Binary ./htsim_uec
!Param -sender_cc_only
!tailFCT 100
!FCT Uec_0_13 100
two.cm
!Experiment a model of PCIe
!Binary ./htsim_uec
!Param -pcie 1
!tailFCT 100
two.cm
!Experiment one is too slow
!Binary ./htsim_uec
!FCT Uec_1_14 5
two.cm
!Experiment it ends too early
!Binary ./htsim_uec
!Param -end 5
!tailFCT 100
late.cm
!Experiment one never starts
!Binary ./htsim_uec
!Param -end 40
!tailFCT 100
";

/// A limit for a message that the matrix does not have.
#[test]
fn a_limit_of_no_message_is_refused_at_its_name() {
    let dir = lists();
    let list = "two.cm\n!Binary ./htsim_uec\n!FCT Uec_9_8 100\n";
    std::fs::write(dir.path().join("list.txt"), list).unwrap();
    let (code, _, said) = validate(dir.path(), &[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("no message of the matrix is `Uec_9_8`"), "{said}");
    assert!(said.contains("list.txt:3:6"), "{said}");
}

/// The second message would start after the end of the run.
const LATE: &str = "Nodes 16\nConnections 2\n0->13 id 1 start 3 size 100000\n\
                    1->14 id 2 start 50 size 100000\n";

fn validate(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("trimline").unwrap();
    let output = command.current_dir(dir).args(["validate", "list.txt"]).args(args).output();
    let output = output.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn lists() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("list.txt"), LIST).unwrap();
    std::fs::write(dir.path().join("two.cm"), MATRIX).unwrap();
    std::fs::write(dir.path().join("late.cm"), LATE).unwrap();
    dir
}

#[test]
fn a_case_that_is_refused_is_named_and_the_others_run() {
    let dir = lists();
    let (code, out, err) = validate(dir.path(), &["--json"]);
    assert_eq!(code, 1);
    let cases: Vec<Value> = serde_json::from_str(&out).unwrap();
    let verdicts: Vec<&str> = cases.iter().map(|case| case["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["pass", "refused", "fail", "fail", "fail"]);
    // Starts are in microseconds: 25 packets from 3 us on, and an answer over 6 links each way.
    let tail = cases[0]["tail_us"].as_f64().unwrap();
    assert!((22.0..30.0).contains(&tail), "{tail}");
    assert_eq!(cases[0]["flows"][0]["flow"], "Uec_0_13");
    assert!(cases[1]["refused"].as_str().unwrap().starts_with("list.txt:10:8: `-pcie` is not"));
    assert!(cases[2]["flows"][0]["tail_us"].as_f64().unwrap() > 5.0);
    assert_eq!((&cases[3]["complete"], &cases[3]["messages"]), (&0.into(), &2.into()));
    assert_eq!((&cases[4]["complete"], &cases[4]["messages"]), (&1.into(), &2.into()));
    assert!(err.contains("of 5 cases 3 failed and 1 were refused"), "{err}");
}

/// The messages are there a few microseconds before their senders hear of it.
#[test]
fn an_answer_after_the_end_does_not_count() {
    let dir = lists();
    let (_, out, _) = validate(dir.path(), &["--json", "--only", "well"]);
    let cases: Vec<Value> = serde_json::from_str(&out).unwrap();
    let tail = cases[0]["tail_us"].as_f64().unwrap();
    let verdict = |end: f64| {
        let case = format!("two.cm\n!Binary ./htsim_uec\n!tailFCT 100\n!Param -end {end}\n");
        std::fs::write(dir.path().join("list.txt"), case).unwrap();
        let (_, out, _) = validate(dir.path(), &["--json"]);
        let cases: Vec<Value> = serde_json::from_str(&out).unwrap();
        cases[0]["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!([verdict(tail.floor()), verdict(tail.ceil())], ["fail", "pass"]);
}

#[test]
fn some_of_the_cases_can_be_run() {
    let dir = lists();
    let (code, out, err) = validate(dir.path(), &["--only", "well"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("well within") && out.contains("pass") && !out.contains("PCIe"));
    let (code, _, err) = validate(dir.path(), &["--only", "nothing"]);
    assert_eq!(code, 2);
    assert!(err.contains("there are: well within; a model of PCIe"), "{err}");
}

/// A table for each list that has cases of this name, and sums of all.
#[test]
fn several_lists_run_in_one_command() {
    let dir = lists();
    let other = "two.cm\n!Experiment another one\n!Binary ./htsim_uec\n!tailFCT 100\n";
    std::fs::write(dir.path().join("other.txt"), other).unwrap();
    let (code, out, err) = validate(dir.path(), &["other.txt"]);
    assert_eq!(code, 1);
    let names = out.lines().filter(|line| line.ends_with(".txt")).collect::<Vec<_>>();
    assert_eq!(names, ["list.txt", "other.txt"]);
    assert_eq!(out.lines().last(), Some("6 cases of 2 lists: 2 pass, 3 fail, 1 refused"));
    assert!(err.contains("of 6 cases 3 failed and 1 were refused"), "{err}");
    let (code, out, _) = validate(dir.path(), &["other.txt", "--only", "another"]);
    assert_eq!((code, out.lines().last()), (0, Some("1 case of 1 list: 1 pass")));
    assert!(!out.contains("list.txt"), "no table without cases");
    let (_, out, _) = validate(dir.path(), &["other.txt", "--json"]);
    let cases: Vec<Value> = serde_json::from_str(&out).unwrap();
    let of: Vec<&str> = cases.iter().map(|case| case["list"].as_str().unwrap()).collect();
    assert_eq!(of, ["list.txt", "list.txt", "list.txt", "list.txt", "list.txt", "other.txt"]);
}

/// Nothing runs if one of several is no list.
#[test]
fn a_wrong_list_beside_a_right_one_ends_with_2() {
    let dir = lists();
    std::fs::write(dir.path().join("other.txt"), "!Param -x\n").unwrap();
    let (code, out, err) = validate(dir.path(), &["other.txt"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("other.txt:1:1"), "{err}");
}

#[test]
fn what_is_no_list_ends_with_2() {
    let dir = lists();
    std::fs::write(dir.path().join("list.txt"), "!Param -x\n").unwrap();
    let (code, _, err) = validate(dir.path(), &[]);
    assert_eq!(code, 2);
    assert!(err.contains("list.txt:1:1"), "{err}");
}
