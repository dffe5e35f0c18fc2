//! What results say, where they go, and what becomes of them when something is in the way.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::Value;

/// Bursts into one host, whose link is dead for so long that senders give up.
const GIVEN_UP: &str = r#"
name = "given up"
seed = 1
[topology]
kind = "star"
hosts = 4
link_rate = "10Gbps"
link_delay = "1us"
[transport]
kind = "rdma"
rule = "swift"
preset = "paper"
payload = "1000B"
class = 0
ack_class = 0
[queue]
kind = "drop-tail"
capacity = "64 packets"
[routing]
mode = "random"
reroute_after = "0"
[[traffic]]
name = "lost"
kind = "incast"
receiver = 0
senders = 3
size = "20KB"
[measure]
limit = "3000s"
[[fault]]
at = "1us"
link = "host 0 -> tor 0"
one_way = false
action = "loss"
probability = 1.0
until = "2999s"
"#;

/// Long enough to be interrupted.
const LONG: &str = include_str!("../../../../scenarios/first.toml");

fn trimline(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("trimline").unwrap();
    command.current_dir(dir).args(args);
    command
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What the first step of a training job took is said while the job goes on.
#[test]
fn the_first_step_is_said_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/ai/ring.toml");
    let set = "traffic.0.size=1MiB";
    let args = ["--progress", "lines", "run", file, "--set", set];
    let said = trimline(dir.path(), &args).output().unwrap();
    let stderr = String::from_utf8(said.stderr).unwrap();
    assert!(said.status.success(), "{stderr}");
    let lines: Vec<&str> = stderr.lines().filter(|line| line.starts_with("ring: ")).collect();
    let [line] = lines[..] else { panic!("{stderr}") };
    assert!(line.starts_with("ring: step 0 took ") && line.ends_with("exposed communication"));
}

#[test]
fn what_a_transport_gave_up_is_counted_by_cause() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), GIVEN_UP).unwrap();
    let output = trimline(dir.path(), &["run", "x.toml"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let summary = json(&dir.path().join("out/x/summary.json"));
    let failed = &summary["messages"]["failed"];
    assert_eq!((&failed["total"], &failed["timed_out"]), (&3.into(), &3.into()), "{failed}");
    assert_eq!(summary["measured"]["failed"], 3);
    assert_eq!(summary["measured"]["unfinished"], 0, "that is another thing");
    assert_eq!(summary["traffic"]["lost"]["messages"]["failed"]["timed_out"], 3);
    let rows = metrics::read_flows(&dir.path().join("out/x/flows.parquet")).unwrap();
    assert!(rows.iter().all(|row| row.failed == Some(metrics::Failure::TimedOut)), "{rows:?}");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    for label in ["messages failed", "failed: timed out"] {
        assert!(stdout.contains(label), "{stdout}");
    }
    assert!(stderr.contains("3 of the measured messages were given up"), "{stderr}");
    let page = fs::read_to_string(dir.path().join("out/x/report.html")).unwrap();
    assert!(page.contains("messages failed") && page.contains("failed: timed out 3"));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A run of minutes, in `dir`.
fn long_run(dir: &Path) -> Child {
    fs::write(dir.join("x.toml"), LONG).unwrap();
    let program = assert_cmd::cargo::cargo_bin("trimline");
    let args = ["run", "x.toml", "--set", "measure.to=10s", "--set", "measure.limit=20s"];
    let mut run = Process::new(program);
    run.current_dir(dir).args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Wait until it is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn interrupt(child: &Child) {
    let kill = Process::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
}

#[test]
fn an_interrupted_run_leaves_partial_results_that_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = long_run(dir.path());
    let out = dir.path().join("out/x");
    until("it does not begin", || out.join(".trimline-unfinished/lock").exists());
    // Ends, whenever it is interrupted; in the first instants nothing is there to be kept.
    std::thread::sleep(Duration::from_millis(1_500));
    interrupt(&child);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    let warning = "partial results: the run was interrupted at";
    assert!(said.contains(warning) && said.contains("again to discard it"), "{said}");
    let summary = fs::read_to_string(out.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["partial"], true);
    assert!(summary["sim_time_us"].as_f64().unwrap() < 10e6, "{summary}");
    assert!(summary["packet_hops"].as_u64().unwrap() > 0, "{summary}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains(warning), "the page says it, too");
    for file in ["flows.parquet", "series.parquet", "links.parquet", "manifest.json"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    assert!(!out.join(".trimline-unfinished").exists());
}

/// The first step's time is there long before the end, and all steps so far are kept.
#[test]
fn an_interrupted_job_keeps_its_steps() {
    let dir = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/ai/ring.toml");
    let sets = ["traffic.0.size=64KiB", "traffic.0.steps=20000", "measure.limit=100s"];
    let mut args = vec!["--progress", "lines", "run", file, "--out", "o"];
    sets.iter().for_each(|set| args.extend(["--set", set]));
    let mut run = Process::new(assert_cmd::cargo::cargo_bin("trimline"));
    run.current_dir(dir.path()).args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("ring: step 0 took ") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it has ended");
    }
    interrupt(&child);
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    let summary = json(&dir.path().join("o/summary.json"));
    assert_eq!(summary["partial"], true);
    let done = summary["steps"]["completed"].as_u64().unwrap();
    assert!((1..20_000).contains(&done), "{summary}");
    for file in ["steps.parquet", "collectives.parquet", "critical.parquet"] {
        assert!(dir.path().join("o").join(file).is_file(), "{file}");
    }
}

#[test]
fn a_run_that_is_interrupted_twice_leaves_the_directory_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = long_run(dir.path());
    let stage = dir.path().join("out/x/.trimline-unfinished");
    until("it does not begin", || stage.join("lock").exists());
    interrupt(&child);
    // Either ended it, or it has been told to end and has not yet written all.
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let left = dir.path().join("out/x/summary.json").exists();
    assert!(left || !dir.path().join("out").exists(), "all or nothing");
}

#[test]
fn results_that_cannot_be_printed_are_there_all_the_same() {
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        println!("skipped: no /dev/full here");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), LONG).unwrap();
    let short = ["run", "x.toml", "--set", "measure.to=1100us"];
    let program = assert_cmd::cargo::cargo_bin("trimline");
    let mut child = Process::new(&program);
    let child = child.current_dir(dir.path()).args(short).stdout(full.try_clone().unwrap());
    let output = child.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("cannot write to standard output"), "{said}");
    assert!(said.contains("the results are complete all the same, in out/x"), "{said}");
    assert!(dir.path().join("out/x/summary.json").is_file());
    // What only prints has failed.
    let mut list = Process::new(program);
    let list = list.args(["list", "queues"]).stdout(full).stderr(Stdio::piped());
    assert_eq!(list.spawn().unwrap().wait().unwrap().code(), Some(2));
}

#[test]
fn a_directory_that_is_not_ours_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), LONG).unwrap();
    fs::create_dir(dir.path().join("mine")).unwrap();
    fs::write(dir.path().join("mine/report.html"), "mine").unwrap();
    fs::write(dir.path().join("mine/packets.pcapng"), "mine").unwrap();
    for command in ["run", "compare"] {
        let output = trimline(dir.path(), &[command, "x.toml", "--out", "mine"]).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("report.html is "), "{said}");
        assert!(said.contains("choose another directory with --out"), "{said}");
    }
    let mut names: Vec<_> = fs::read_dir(dir.path().join("mine"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["packets.pcapng", "report.html"]);
}

#[test]
fn a_name_does_not_command_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let name = "name = \"\\u001b[31mred\"\n";
    let text_of = format!("{name}{}", LONG.replace("name = ", "# name = "));
    fs::write(dir.path().join("x.toml"), text_of).unwrap();
    for command in ["run", "check"] {
        let args = [command, "x.toml", "--set", "measure.to=1100us"];
        let output = trimline(dir.path(), &args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(text(&output.stdout).contains("\\u{1b}[31mred"), "{output:?}");
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b));
    }
}

#[test]
fn the_version_names_commit_and_engine() {
    let output = Command::cargo_bin("trimline").unwrap().arg("-V").output().unwrap();
    let said = text(&output.stdout);
    assert!(said.starts_with(concat!("trimline ", env!("CARGO_PKG_VERSION"), " (")), "{said}");
    assert!(said.contains("engine "), "{said}");
}

#[test]
fn scenarios_and_studies_come_with_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let listed = trimline(dir.path(), &["list", "scenarios"]).output().unwrap();
    let listed = text(&listed.stdout);
    assert!(listed.contains("scenarios/first.toml"), "{listed}");
    let write = ["examples", "all"];
    assert!(trimline(dir.path(), &write).output().unwrap().status.success());
    let all = dir.path().join("all");
    let run = ["run", "scenarios/htsim/connection_matrix.toml"];
    assert!(trimline(&all, &run).output().unwrap().status.success(), "with the file it names");
    let studies = trimline(&all, &["list", "studies"]).output().unwrap();
    assert!(text(&studies.stdout).contains("\nhoma  "), "{studies:?}");
    assert!(trimline(dir.path(), &write).output().unwrap().status.success(), "nothing differs");
    fs::write(all.join("scenarios/first.toml"), "mine").unwrap();
    let output = trimline(dir.path(), &write).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(fs::read_to_string(all.join("scenarios/first.toml")).unwrap(), "mine");
}

#[test]
fn nobody_who_reads_stderr_any_more_stops_nothing() {
    // Two warnings, and a stderr whose reader has gone, as with `2>&1 | head`.
    let dir = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/dctcp_two_flows.toml");
    let unmarked = "queue={kind=\"drop-tail\",capacity=\"100KB\"}";
    for command in ["check", "run"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut trimline = Process::new(env!("CARGO_BIN_EXE_trimline"));
        trimline.current_dir(dir.path()).arg(command).arg(&file).args(["--set", unmarked]);
        if command == "run" {
            trimline.args(["--set", "measure.to=61ms", "--set", "measure.from=60ms"]);
        }
        let status = trimline.stdout(Stdio::null()).stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(0), "{command}");
    }
}

#[test]
fn the_manifest_of_another_engine_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), GIVEN_UP).unwrap();
    let run = |args: &[&str]| {
        let mut program = Command::cargo_bin("trimline").unwrap();
        program.current_dir(dir.path()).args(args).output().unwrap()
    };
    run(&["run", "x.toml", "--out", "o"]);
    let again = ["run", "o/manifest.json", "--out", "again"];
    let said = |output: std::process::Output| String::from_utf8(output.stderr).unwrap();
    assert!(!said(run(&again)).contains("is of engine"));
    let file = dir.path().join("o/manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    manifest["versions"]["engine"] = 2.into();
    fs::write(&file, manifest.to_string()).unwrap();
    let warned = said(run(&again));
    assert!(warned.contains("o/manifest.json is of engine 2, this is"), "{warned}");
}
