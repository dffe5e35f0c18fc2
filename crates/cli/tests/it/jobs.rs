//! Sweeps and comparisons as jobs: killed and resumed, with workers killed, on a full disk, as an
//! array of a batch system, one by one.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

/// Sixteen hosts, three points with four seeds; a run takes about a tenth of a second.
const SWEEP: &str = r#"
name = "a small sweep"
seed = 1
[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
link_rate = "10Gbps"
uplink_rate = "20Gbps"
link_delay = "1us"
[queue]
kind = "ndp"
capacity = "8 packets"
[routing]
mode = "permute"
[transport]
kind = "ndp"
preset = "paper"
payload = "9000B"
initial_window = 12
[traffic]
kind = "poisson"
distribution = "google-rpc"
load = 0.5
[measure]
from = "1ms"
to = "20ms"
[sweep]
axes = { load = [0.02, 0.03, 0.04] }
set = ["traffic.load={load}"]
seeds = "1-4"
metrics = ["fct_us.p99", "packets.trimmed"]
"#;

/// A program that this test has started ends with it.
pub(crate) struct Started(pub(crate) Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trimline"));
    command.current_dir(dir).args(args);
    command
}

pub(crate) fn trimline(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().unwrap()
}

pub(crate) fn start(dir: &Path, args: &[&str]) -> Started {
    let mut command = command(dir, args);
    Started(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a sweep prints on standard output, without the names of files.
fn table(output: &Output) -> String {
    let said = text(&output.stdout);
    assert!(said.contains('│'), "{output:?}");
    said.lines()
        .filter(|line| line.contains(['│', '╞']))
        .map(|line| line.to_owned() + "\n")
        .collect()
}

fn with_sweep() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), SWEEP).unwrap();
    dir
}

/// The finished jobs in an output directory, and when each was finished.
pub(crate) fn finished(out: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let jobs = fs::read_dir(out.join("jobs")).into_iter().flatten().flatten();
    let summaries = jobs.map(|job| job.path().join("summary.json"));
    summaries
        .filter_map(|path| Some((path.clone(), fs::metadata(path).ok()?.modified().ok()?)))
        .collect()
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(120), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The child processes of a process.
fn children(of: u32) -> Vec<u32> {
    let children = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let lists = children.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()
        })
        .collect()
}

fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success(), "{pid}");
}

#[test]
fn a_sweep_that_is_killed_goes_on_where_it_was() {
    let dir = with_sweep();
    let whole = trimline(dir.path(), &["sweep", "x.toml", "--out", "whole"]);
    assert!(text(&whole.stderr).contains("12 jobs: 0 finished before, 12 run now"), "{whole:?}");

    let out = dir.path().join("killed");
    let mut sweep = start(dir.path(), &["sweep", "x.toml", "--out", "killed", "--threads", "2"]);
    wait_until("four jobs", || finished(&out).len() >= 4);
    let workers = children(sweep.0.id());
    sweep.0.kill().unwrap();
    sweep.0.wait().unwrap();
    wait_until("its workers end with it", || {
        workers.iter().all(|pid| !Path::new(&format!("/proc/{pid}/exe")).exists())
    });
    let before = finished(&out);
    assert!((4..12).contains(&before.len()), "it was killed in the midst: {}", before.len());
    assert!(!out.join("study.json").exists());

    let resumed = trimline(dir.path(), &["sweep", "x.toml", "--out", "killed"]);
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    let said = format!("{} finished before, {} run now, 0", before.len(), 12 - before.len());
    assert!(text(&resumed.stderr).contains(&said), "{resumed:?}");
    assert_eq!(table(&resumed), table(&whole));
    let after = finished(&out);
    assert_eq!(after.len(), 12);
    assert!(before.iter().all(|(job, at)| after[job] == *at), "no job is run twice");
    assert_eq!(names(&out.join("jobs")), names(&dir.path().join("whole/jobs")));
}

#[test]
fn a_sweep_that_is_interrupted_keeps_its_jobs_and_says_how_to_go_on() {
    let dir = with_sweep();
    let out = dir.path().join("out");
    let mut command = command(dir.path(), &["sweep", "x.toml", "--out", "out", "--threads", "1"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut sweep = Started(child);
    wait_until("two jobs", || finished(&out).len() >= 2);
    let pid = sweep.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let mut said = String::new();
    sweep.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(sweep.0.wait().unwrap().code(), Some(130), "{said}");
    assert!(
        said.contains("finished jobs stay") && said.contains("the same command goes on"),
        "{said}"
    );
    let before = finished(&out).len();
    assert!((2..12).contains(&before), "{before}");

    let resumed = trimline(dir.path(), &["sweep", "x.toml", "--out", "out"]);
    let said = format!("12 jobs: {before} finished before, {} run now, 0", 12 - before);
    assert!(text(&resumed.stderr).contains(&said), "{resumed:?}");
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_worker_that_is_killed_loses_no_other_job() {
    let dir = with_sweep();
    // The first job goes on for long.
    let slow = SWEEP.replace("[0.02, 0.03, 0.04]", "[0.2, 0.02]").replace("\"1-4\"", "[1, 2]");
    let slow = slow.replace("to = \"20ms\"", "to = \"60ms\"");
    fs::write(dir.path().join("x.toml"), slow).unwrap();
    let mut sweep = command(dir.path(), &["sweep", "x.toml", "--out", "o", "--threads", "1"]);
    let sweep = sweep.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut workers = Vec::new();
    wait_until("a worker", || {
        workers = children(sweep.id());
        !workers.is_empty()
    });
    kill(workers[0]);
    let output = sweep.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    let why = "x sweep load=0.2, seed 1: its process was killed (signal 9): out of memory?";
    assert!(said.contains(why), "{said}");
    assert!(said.contains("1 of 4 jobs have no results"), "{said}");
    let again = "to go on: trimline sweep x.toml --out o";
    assert!(said.split_whitespace().collect::<Vec<_>>().join(" ").contains(again), "{said}");
    assert_eq!(finished(&dir.path().join("o")).len(), 3);
    let resumed = trimline(dir.path(), &["sweep", "x.toml", "--out", "o"]);
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    assert!(text(&resumed.stderr).contains("3 finished before, 1 run now"), "{resumed:?}");
}

/// A batch system in a few lines: it runs the elements of an array, the last one first.
const SCHEDULER: &str = r#"
last=$(sed -n 's/^#SBATCH --array=0-//p' "$1")
log=$(sed -n 's/^#SBATCH --output="\(.*\)"/\1/p' "$1")
while [ "$last" -ge 0 ]; do
    SLURM_ARRAY_TASK_ID=$last sh "$1" > "$(echo "$log" | sed "s/%a/$last/")" 2>&1 || exit 1
    last=$((last - 1))
done
"#;

#[test]
fn an_array_runs_the_scenario_that_it_was_written_for() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.toml"), SWEEP).unwrap();
    trimline(dir.path(), &["sweep", "x.toml", "--out", "o", "--emit", "slurm"]);
    fs::write(dir.path().join("x.toml"), SWEEP.replace("1us", "2us")).unwrap();
    let mut element = Command::new("sh");
    element.arg("o/slurm/array.sh").env("SLURM_ARRAY_TASK_ID", "0").current_dir(dir.path());
    let ran = element.output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    assert!(text(&ran.stderr).contains("another one than when the array was written"), "{ran:?}");
}

#[test]
fn an_array_of_a_batch_system_has_the_same_numbers() {
    let dir = tempfile::tempdir().unwrap();
    // A path as people have them.
    let here = dir.path().join("my sweep");
    fs::create_dir(&here).unwrap();
    fs::write(here.join("x.toml"), SWEEP).unwrap();
    let whole = trimline(&here, &["sweep", "x.toml", "--out", "whole"]);
    let set = ["sweep", "x.toml", "--set", "name=it's an array", "--out", "array"];
    let emitted = trimline(&here, &[&set[..], &["--emit", "slurm"]].concat());
    let said = text(&emitted.stdout);
    assert!(said.contains("12 jobs in 12 elements") && said.contains("--collect"), "{emitted:?}");

    let early = trimline(&here, &[&set[..], &["--collect"]].concat());
    assert_eq!(early.status.code(), Some(1), "{early:?}");
    assert!(text(&early.stderr).contains("12 of 12 jobs have no results: not run"), "{early:?}");

    let mut scheduler = Command::new("sh");
    scheduler.args(["-c", SCHEDULER, "sh", "array/slurm/array.sh"]).current_dir("/");
    let ran = scheduler.current_dir(&here).output().unwrap();
    let logs = || fs::read_to_string(here.join("array/slurm/11.log"));
    assert!(ran.status.success(), "{ran:?} {:?}", logs());
    let collected = trimline(&here, &[&set[..], &["--collect"]].concat());
    assert_eq!(collected.status.code(), Some(0), "{collected:?}");
    assert_eq!(table(&collected), table(&whole));
    let again = trimline(&here, &[&set[..], &["--emit", "slurm"]].concat());
    assert!(text(&again.stdout).contains("nothing to submit"), "{again:?}");
}

/// A point of which a seed is missing, be it the first, is a mean over the others, and says so.
#[test]
fn a_mean_over_fewer_seeds_says_so() {
    let dir = with_sweep();
    let list = ["sweep", "x.toml", "--out", "o", "--list-jobs", "--json"];
    let listed: Value = serde_json::from_slice(&trimline(dir.path(), &list).stdout).unwrap();
    let is_left_out = |job: &&Value| {
        job["axes"]["load"] == "0.02" && [1, 3].contains(&job["seed"].as_u64().unwrap())
    };
    let others = listed.as_array().unwrap().iter().filter(|job| !is_left_out(job));
    let numbers: Vec<String> = others.map(|job| job["number"].to_string()).collect();
    assert_eq!(numbers.len(), 10);
    let ran = trimline(dir.path(), &["sweep", "x.toml", "--out", "o", "--job", &numbers.join(",")]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let collected = trimline(dir.path(), &["sweep", "x.toml", "--out", "o", "--collect"]);
    assert_eq!(collected.status.code(), Some(1), "{collected:?}");
    let said = text(&collected.stdout);
    assert_eq!(said.matches("of 4 seeds").count(), 1, "{said}");
    assert!(said.contains("│ 0.02 (2 of 4 seeds) ┆"), "{said}");

    let json = trimline(dir.path(), &["sweep", "x.toml", "--out", "o", "--collect", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let trimmed = &json["results"]["figures"][1]["curves"][0]["measured"][0];
    let of_seed = |seed: &str| -> f64 {
        let args = ["run", "x.toml", "--json", "--set", "traffic.load=0.02", "--seed", seed];
        let run: Value = serde_json::from_slice(&trimline(dir.path(), &args).stdout).unwrap();
        run["results"]["packets"]["trimmed"].as_f64().unwrap()
    };
    assert_eq!(trimmed["seeds"], 2);
    assert_eq!(trimmed["y"].as_f64().unwrap(), (of_seed("2") + of_seed("4")) / 2.0);
}

/// As a program does that hands jobs to workers of its own.
#[test]
fn jobs_are_listed_and_run_one_by_one() {
    let dir = with_sweep();
    let list = || {
        let args = ["sweep", "x.toml", "--seeds", "7,9", "--out", "o", "--list-jobs", "--json"];
        serde_json::from_slice::<Vec<Value>>(&trimline(dir.path(), &args).stdout).unwrap()
    };
    let jobs = list();
    assert_eq!(jobs.len(), 6);
    assert_eq!((&jobs[3]["axes"]["load"], &jobs[3]["seed"]), (&"0.03".into(), &9.into()));
    for job in &jobs {
        assert_eq!((&job["finished"], &job["needed"]), (&false.into(), &true.into()));
        let words = job["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let words: Vec<&str> = words.collect();
        let ran =
            Command::new(words[0]).args(&words[1..]).current_dir(dir.path()).output().unwrap();
        assert!(ran.status.success() && ran.stdout.is_empty(), "{ran:?}");
        let there = dir.path().join(job["directory"].as_str().unwrap());
        assert_eq!(names(&there), ["manifest.json", "metrics.json", "summary.json"]);
    }
    assert!(list().iter().all(|job| job["finished"] == true && job["needed"] == false));
    let no_such = trimline(dir.path(), &["sweep", "x.toml", "--job", "12"]);
    assert_eq!(no_such.status.code(), Some(2), "{no_such:?}");
    assert!(text(&no_such.stderr).contains("they are numbered from 0 to 11"), "{no_such:?}");
}

#[test]
fn seeds_are_added_until_the_interval_is_narrow() {
    let dir = tempfile::tempdir().unwrap();
    let until = SWEEP.replace("seeds = \"1-4\"", "seeds = \"1-30\"\nuntil = \"10%\"");
    let until = until.replace("\"packets.trimmed\"", "\"fct_us.p50\"").replace("20ms", "2ms");
    fs::write(dir.path().join("x.toml"), until.replace("[0.02, 0.03, 0.04]", "[0.02, 0.1]"))
        .unwrap();
    let runs = |args: &[&str]| {
        let output = trimline(dir.path(), &[&["sweep", "x.toml"], args].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let study = fs::read_to_string(dir.path().join("out/sweep/x/study.json")).unwrap();
        let study: Value = serde_json::from_str(&study).unwrap();
        let mut of_point: BTreeMap<String, usize> = BTreeMap::new();
        for run in study["figures"][0]["runs"].as_array().unwrap() {
            *of_point.entry(run["run"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        let figures = study["figures"].as_array().unwrap();
        let points = figures.iter().flat_map(|f| f["curves"][0]["measured"].as_array().unwrap());
        let share = |p: &Value| p["interval"].as_f64().unwrap() / p["y"].as_f64().unwrap();
        (of_point.into_values().collect::<Vec<_>>(), points.map(share).fold(0.0, f64::max))
    };
    let (narrow, share) = runs(&[]);
    assert!(narrow.iter().all(|n| (10..=30).contains(n)), "{narrow:?}");
    assert!(share <= 0.1 || narrow.contains(&30), "{share} {narrow:?}");
    assert_eq!(runs(&["--until", "99%"]).0, [10, 10], "ten at least");
    let out = ["--out", "narrow", "--list-jobs", "--json"];
    let listed = trimline(dir.path(), &[&["sweep", "x.toml"], &out[..]].concat());
    let listed: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
    let needed = listed.iter().filter(|job| job["needed"] == true).count();
    assert_eq!((listed.len(), needed), (60, 20), "more seeds are asked for later");
    assert_eq!(runs(&["--until", "0.1%"]).0, [30, 30], "as many as there are");
    assert_eq!(runs(&["--until", "0.1%", "--seeds", "1-12"]).0, [12, 12]);
}

#[test]
fn a_job_of_another_engine_is_named_and_run_again() {
    let dir = with_sweep();
    let args = ["sweep", "x.toml", "--seeds", "1", "--out", "o"];
    trimline(dir.path(), &args);
    let jobs = dir.path().join("o/jobs");
    let old = jobs.join(&names(&jobs)[0]);
    let manifest = fs::read_to_string(old.join("manifest.json")).unwrap();
    let mut json: Value = serde_json::from_str(&manifest).unwrap();
    json["versions"]["engine"] = 1.into();
    // Another version would have given it another name.
    fs::rename(&old, jobs.join("of_another_version")).unwrap();
    fs::write(jobs.join("of_another_version/manifest.json"), json.to_string()).unwrap();
    let output = trimline(dir.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("1 jobs in o/jobs are of engine 1, this is"), "{said}");
    assert!(said.contains("3 jobs: 2 finished before, 1 run now"), "{said}");
}

/// A file system of some size, mounted for the life of the value.
struct Mount(tempfile::TempDir);

impl Mount {
    fn tmpfs(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().ok()?;
        let options = format!("size={size}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(dir.path());
        mount.output().is_ok_and(|m| m.status.success()).then(|| Self(dir))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn on_a_full_disk_the_results_of_other_jobs_stay() {
    let Some(disk) = Mount::tmpfs("120k") else {
        println!("skipped: cannot mount a tmpfs (not root, or a closed sandbox)");
        return;
    };
    let dir = with_sweep();
    let out = disk.0.path().join("o");
    let out = out.to_str().unwrap();
    let output = trimline(dir.path(), &["sweep", "x.toml", "--out", out, "--threads", "1"]);
    assert_ne!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stderr).contains("the disk is full"), "{output:?}");
    let before = finished(Path::new(out));
    assert!((1..12).contains(&before.len()), "{}", before.len());
    let larger = Command::new("mount").args(["-o", "remount,size=8m"]).arg(disk.0.path()).status();
    assert!(larger.unwrap().success());
    let resumed = trimline(dir.path(), &["sweep", "x.toml", "--out", out]);
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    let after = finished(Path::new(out));
    assert!(after.len() == 12 && before.iter().all(|(job, at)| after[job] == *at));
    let read_only = Command::new("mount").args(["-o", "remount,ro"]).arg(disk.0.path()).status();
    assert!(read_only.unwrap().success());
    let refused = trimline(dir.path(), &["sweep", "x.toml", "--out", out, "--collect"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = text(&refused.stderr).replace("\n        ", " ");
    assert!(said.contains("the file system is read-only"), "{said}");
    assert!(said.contains("to where you may write"), "{said}");
}

#[test]
fn on_a_full_disk_a_first_scenario_leaves_no_empty_file() {
    let Some(disk) = Mount::tmpfs("64k") else {
        println!("skipped: cannot mount a tmpfs (not root, or a closed sandbox)");
        return;
    };
    let dir = disk.0.path();
    fs::write(dir.join("filler"), vec![0; 1 << 20]).unwrap_err();
    let output = trimline(dir, &["init", "first.toml"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("cannot write first.toml"), "{output:?}");
    assert!(!dir.join("first.toml").exists());
}

#[test]
fn a_sweep_and_a_process_share_their_jobs() {
    let dir = with_sweep();
    let args = ["sweep", "x.toml", "--out", "o"];
    // Jobs that this process runs, the sweep waits for.
    let mut other =
        start(dir.path(), &[&args[..], &["--job", "0,1,2,3,4,5,6,7,8,9,10,11"]].concat());
    let here = trimline(dir.path(), &args);
    assert_eq!(here.status.code(), Some(0), "{here:?}");
    assert!(other.0.wait().unwrap().success());
    assert_eq!(finished(&dir.path().join("o")).len(), 12);
}

/// A worker reads the scenario, and its directory is called after what it runs.
#[test]
fn a_scenario_that_changes_meanwhile_gives_no_wrong_results() {
    let dir = with_sweep();
    let sweep = command(dir.path(), &["sweep", "x.toml", "--out", "o", "--threads", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("a worker", || !children(sweep.id()).is_empty());
    fs::write(dir.path().join("x.toml"), SWEEP.replace("seeds = \"1-4\"", "seeds = \"5-8\""))
        .unwrap();
    let output = sweep.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("the scenario has changed meanwhile"), "{output:?}");
}
