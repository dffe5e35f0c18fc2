//! `trimline check`: what a scenario will do and what looks wrong in it.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

const FIRST: &str = include_str!("../../../../scenarios/first.toml");

/// `trimline check` of the scenario `text`.
fn check(text: &str, args: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.toml"), text).unwrap();
    let args = [&["check", "x.toml"], args].concat();
    let output =
        Command::cargo_bin("trimline").unwrap().current_dir(dir.path()).args(args).output();
    assert!(!dir.path().join("out").exists(), "nothing runs");
    output.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn says_what_a_scenario_will_do() {
    let output = check(FIRST, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    insta::assert_snapshot!("check_first", text(&output.stdout));
    assert_eq!(text(&output.stderr), "");
    let incast = ["traffic={kind=\"incast\",receiver=0,senders=15,size=\"1MB\"}", "measure={}"];
    let output = check(FIRST, &["--set", incast[0], "--set", incast[1]]);
    insta::assert_snapshot!("check_incast", text(&output.stdout));
}

#[test]
fn warnings_stand_where_they_belong_and_are_no_error() {
    let queue = "kind = \"ndp\"\ncapacity = \"8 packets\"";
    assert!(FIRST.contains(queue));
    let plain = FIRST.replace(queue, "kind = \"drop-tail\"\ncapacity = \"80 packets\"");
    let output = check(&plain, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    insta::assert_snapshot!("check_warning", text(&output.stderr));
    assert!(text(&output.stdout).contains("1 warning\n"), "{output:?}");
    let wrong = check(FIRST, &["--set", "transport.initial_window=0"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    assert!(wrong.stdout.is_empty());
}

/// The page and the summary of a run say the same.
#[test]
fn a_run_and_its_page_have_the_warnings() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.toml"), FIRST).unwrap();
    let args = ["run", "x.toml", "--set", "traffic.priority=3", "--set", "measure.to=1200us"];
    let output =
        Command::cargo_bin("trimline").unwrap().current_dir(dir.path()).args(args).output();
    let says = "the priority of these messages has no effect";
    assert!(text(&output.unwrap().stderr).contains(says));
    let read = |name: &str| std::fs::read_to_string(dir.path().join("out/x").join(name)).unwrap();
    assert!(read("summary.json").contains(says));
    assert!(read("report.html").contains(says));
    assert!(Path::new(&dir.path().join("out/x/manifest.json")).is_file());
}
