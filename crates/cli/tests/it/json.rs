//! `--json`: one document on standard output and nothing else, whatever the command.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

/// A small scenario with a sweep and two variants.
const SMALL: &str = r#"
name = "small"
seed = 1
[topology]
kind = "star"
hosts = 4
link_rate = "10Gbps"
link_delay = "1us"
[transport]
kind = "ndp"
preset = "paper"
payload = "9000B"
initial_window = 12
[queue]
kind = "ndp"
capacity = "8 packets"
[routing]
mode = "permute"
[traffic]
kind = "incast"
receiver = 0
senders = 3
size = "90KB"
[sweep]
axes = { n = [2, 3] }
x = "n"
set = ["traffic.senders={n}"]
seeds = [1, 2]
metrics = ["fct_us.p99"]
"#;

/// What the command prints, in `dir`: one JSON document.
fn json(dir: &Path, args: &[&str]) -> Value {
    let mut command = Command::cargo_bin("trimline").unwrap();
    let output = command.current_dir(dir).args(args).arg("--json").output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {output:?}"))
}

fn small() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.toml"), SMALL).unwrap();
    dir
}

#[test]
fn what_is_run_is_one_document() {
    let dir = small();
    let json = |args: &[&str]| json(dir.path(), args);
    let run = json(&["run", "x.toml"]);
    assert_eq!(
        (&run["directory"], &run["results"]["messages"]["completed"]),
        (&"out/x".into(), &3.into())
    );
    let file = std::fs::read_to_string(dir.path().join("out/x/summary.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file, run["results"], "as in the file");

    let compared = json(&["compare", "x.toml", "x.toml"]);
    assert_eq!(compared["runs"].as_array().unwrap().len(), 2);
    assert_eq!(compared["runs"][1]["summary"]["digest"], run["results"]["digest"]);

    let seeds =
        json(&["compare", "x.toml", "x.toml", "--seeds", "1-2", "--set", "traffic.size=9KB"]);
    assert_eq!(
        (&seeds["directory"], &seeds["results"]["seeds"]),
        (&"out/comparison".into(), &2.into())
    );

    let sweep = json(&["sweep", "x.toml"]);
    assert_eq!(
        sweep["results"]["figures"][0]["curves"][0]["measured"].as_array().unwrap().len(),
        2
    );
    assert_eq!(json(&["sweep", "x.toml", "--list-jobs"]).as_array().unwrap().len(), 4);

    let life = json(&["explain", "x.toml"]);
    let spent = life["spent_ps"].as_object().unwrap().values();
    assert_eq!(life["fct_ps"].as_u64().unwrap(), spent.map(|ps| ps.as_u64().unwrap()).sum::<u64>());
}

#[test]
fn what_is_said_without_a_run_is_one_document() {
    let dir = small();
    let json = |args: &[&str]| json(dir.path(), args);
    let checked = json(&["check", "x.toml"]);
    assert_eq!(checked["scenario"], "small");
    assert!(checked["forecast"].as_array().unwrap().iter().any(|row| row["label"] == "topology"));
    for what in ["transports", "topologies", "queues", "workloads", "keys", "studies", "scenarios"]
    {
        let listed = json(&["list", what]);
        assert!(
            listed[0]["name"].is_string() && listed[0]["about"].is_string(),
            "{what}: {listed}"
        );
    }
    assert_eq!(json(&["list", "schema"])["type"], "object");

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join("p4/ndp.p4").display().to_string();
    let checked = json(&["p4", "check", &program]);
    assert!(checked["pipelines"][0]["stages"].as_u64().unwrap() > 0, "{checked}");
}

#[test]
fn of_an_error_nothing_is_on_standard_output() {
    let dir = small();
    for args in [["run", "nowhere.toml"], ["check", "nowhere.toml"], ["estimate", "nowhere.toml"]] {
        let mut command = Command::cargo_bin("trimline").unwrap();
        let output = command.current_dir(dir.path()).args(args).arg("--json").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn a_run_that_ends_soon_is_not_estimated_but_counted() {
    let dir = small();
    let estimates = json(dir.path(), &["estimate", "x.toml"]);
    let run = json(dir.path(), &["run", "x.toml"]);
    let estimate = &estimates[0];
    assert_eq!(estimate["share"], 1.0);
    for (ours, key) in [("packet_hops", "packet_hops"), ("messages", "messages")] {
        let counted = &run["results"][key];
        let counted = counted.as_f64().unwrap_or_else(|| counted["submitted"].as_f64().unwrap());
        assert_eq!(estimate[ours].as_f64(), Some(counted), "{estimate}");
    }
    assert!(!dir.path().join("out/x/estimate").exists());
}

/// Two hundred messages of a megabyte, of which a part says what all take.
#[test]
fn a_part_of_a_run_says_what_all_of_it_takes() {
    let dir = small();
    let many =
        ["--set", "topology.hosts=16", "--set", "traffic={kind=\"permutation\",size=\"200MB\"}"];
    let estimates =
        json(dir.path(), &[&["estimate", "x.toml", "--for", "100ms"][..], &many].concat());
    let run = json(dir.path(), &[&["run", "x.toml"][..], &many].concat());
    let estimate = &estimates[0];
    assert!(estimate["share"].as_f64().unwrap() < 0.9, "a part only: {estimate}");
    let ratio =
        estimate["packet_hops"].as_f64().unwrap() / run["results"]["packet_hops"].as_f64().unwrap();
    assert!((0.8..1.25).contains(&ratio), "{ratio}: {estimate}");
    assert_eq!(estimate["messages"], 16.0);
    assert!(estimate["wall_s"].as_f64().unwrap() > 0.1, "{estimate}");
    assert!(estimate["memory_mb"].as_f64().unwrap() > 10.0, "{estimate}");
}

/// Two senders, and three: two seeds each.
#[test]
fn the_jobs_of_a_sweep_are_estimated_by_point() {
    let dir = small();
    let points = json(dir.path(), &["estimate", "--sweep", "x.toml"]);
    let points = points.as_array().unwrap();
    assert_eq!(points.len(), 2, "{points:?}");
    for point in points {
        assert_eq!((&point["jobs"], &point["share"]), (&2.into(), &1.0.into()), "{point}");
    }
    let messages: Vec<_> = points.iter().map(|point| point["messages"].as_f64()).collect();
    assert_eq!(messages, [2.0, 3.0].map(Some));
    assert_eq!(json(dir.path(), &["estimate", "x.toml"])[0]["jobs"], 1);
    let mut command = Command::cargo_bin("trimline").unwrap();
    let output = command.current_dir(dir.path()).args(["estimate", "--sweep", "x.toml"]).output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(said.contains("4 jobs, "), "{said}");
}

#[test]
fn what_writes_files_says_where() {
    let dir = small();
    let json = |args: &[&str]| json(dir.path(), args);
    let written = |path: &str| serde_json::json!({ "written": path });
    assert_eq!(json(&["init", "first.toml"]), written("first.toml"));
    assert_eq!(json(&["new", "transport", "mine"]), written("mine"));
    assert_eq!(json(&["examples", "theirs"]), written("theirs"));
    assert_eq!(json(&["man", "pages"]), written("pages"));
    json(&["run", "x.toml"]);
    assert_eq!(json(&["report", "out/x"]), written("out/x/report.html"));
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/ndp.p4");
    let program = program.display().to_string();
    assert_eq!(json(&["rtl", "build", &program, "--out", "design"]), written("design"));
    let script = json(&["completions", "bash"]);
    assert!(script["script"].as_str().unwrap().contains("newreno"), "answers of init");
    assert!(script["script"].as_str().unwrap().contains("nanotransport"), "studies");
}

#[test]
fn what_cannot_be_printed_is_a_failure() {
    let dir = small();
    for command in ["run", "sweep"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_trimline"));
        let args = [command, "x.toml", "--json", "--out", command];
        let ran = program.current_dir(dir.path()).args(args).stdout(full).output().unwrap();
        assert_eq!(ran.status.code(), Some(2), "{ran:?}");
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(said.contains("complete all the same"), "{said}");
        assert!(dir.path().join(command).join("report.html").exists());
    }
}

#[test]
fn jobs_that_run_elsewhere_are_documents() {
    let dir = small();
    let json = |args: &[&str]| json(dir.path(), args);
    let array = json(&["sweep", "x.toml", "--emit", "slurm"]);
    assert_eq!((&array["jobs"], &array["elements"]), (&4.into(), &4.into()));
    assert_eq!(array["script"], "out/sweep/x/slurm/array.sh");
    let ran = json(&["sweep", "x.toml", "--job", "0,2"]);
    assert_eq!((&ran[1]["number"], &ran[1]["error"]), (&2.into(), &Value::Null));
    let listed = json(&["sweep", "x.toml", "--list-jobs"]);
    assert_eq!(ran[0]["directory"], listed[0]["directory"]);
    assert!(dir.path().join(ran[0]["directory"].as_str().unwrap()).join("summary.json").exists());
    assert_eq!(json(&["sweep", "x.toml", "--emit", "slurm"])["jobs"], 2, "what is left");
}
