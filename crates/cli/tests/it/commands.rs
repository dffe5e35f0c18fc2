//! The commands when all is well.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

fn scenario(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    dir.join(name).display().to_string()
}

fn trimline(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("trimline").unwrap();
    let output = command.current_dir(dir).args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_first_scenario_is_written_once_and_runs() {
    let dir = tempfile::tempdir().unwrap();
    let said = trimline(dir.path(), &["init", "my.toml", "--transport", "dctcp"]);
    assert!(text(&said.stdout).contains("trimline run my.toml"), "{said:?}");
    let scenario = std::fs::read_to_string(dir.path().join("my.toml")).unwrap();
    assert!(scenario.contains("rule = \"dctcp\"") && scenario.contains("leaf-spine"), "{scenario}");
    trimline(dir.path(), &["run", "my.toml"]);
    let mut again = Command::cargo_bin("trimline").unwrap();
    let again = again.current_dir(dir.path()).args(["init", "my.toml"]).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(text(&again.stderr).contains("it is there already"), "{again:?}");
    assert_eq!(std::fs::read_to_string(dir.path().join("my.toml")).unwrap(), scenario);
}

#[test]
fn shells_and_man_know_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let script = text(&trimline(dir.path(), &["completions", "bash"]).stdout);
    trimline(dir.path(), &["man", "pages"]);
    for command in ["run", "sweep", "testbed", "init"] {
        assert!(script.contains(&format!("trimline__subcmd__{command}")), "{command}");
        let page = dir.path().join(format!("pages/trimline-{command}.1"));
        assert!(std::fs::read_to_string(page).unwrap().contains(".TH"), "{command}");
    }
}

#[test]
fn run_leaves_its_files_and_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let output = trimline(dir.path(), &["run", &scenario("first.toml"), "--seed", "5"]);
    let out: PathBuf = dir.path().join("out/first");
    let expected = [
        "flows.parquet",
        "links.parquet",
        "manifest.json",
        "report.html",
        "series.parquet",
        "summary.json",
    ];
    assert_eq!(files(&out), expected);
    let stdout = text(&output.stdout);
    for part in ["first scenario", "messages completed", "out/first/report.html"] {
        assert!(stdout.contains(part), "{part:?} is missing in\n{stdout}");
    }
    assert!(!text(&output.stderr).contains('\u{1b}'), "no bar and no colour in a pipe");
    let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"seed\": 5"), "{manifest}");
    assert!(manifest.contains("Google, all RPCs"), "the distribution and where it comes from");
}

#[test]
fn the_manifest_s_command_and_the_manifest_itself_repeat_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let digest = |args: &[&str]| {
        let stdout = text(&trimline(dir.path(), args).stdout);
        stdout.lines().find(|line| line.contains("digest")).unwrap().to_owned()
    };
    let first = scenario("first.toml");
    let one = digest(&["run", &first, "--set", "measure.to=2ms", "--out", "one"]);
    assert_eq!(one, digest(&["run", "one/manifest.json", "--out", "two"]));
    let other = ["run", &first, "--set", "measure.to=2ms", "--out", "four"];
    assert_eq!(one, digest(&[&other[..], &["--events", "heap", "--departures", "eager"]].concat()));
    let traced = ["run", &first, "--set", "measure.to=2ms", "--threads", "3", "--check"];
    let traced = [&traced[..], &["--trace", "packets,queues", "--out", "three"]].concat();
    assert_eq!(one, digest(&traced));
    let written = files(&dir.path().join("three"));
    for file in ["packets.pcapng", "hops.pcapng", "trace.perfetto.json", "queues.parquet"] {
        assert!(written.iter().any(|name| name == file), "{file} in {written:?}");
    }
}

/// What a line of a life says, in picoseconds: the number before " us".
fn picoseconds(line: &str) -> u64 {
    let number = line.split(" us").next().unwrap().rsplit(' ').next().unwrap();
    number.replace('.', "").parse().unwrap_or_else(|e| panic!("{line:?}: {e}"))
}

#[test]
fn a_life_is_that_of_the_run_and_its_causes_sum_up() {
    let dir = tempfile::tempdir().unwrap();
    let (file, short) = (scenario("first.toml"), ["--set", "measure.to=2ms"]);
    let run = ["run", &file, "--out", "run", "--set", "measure.life=true"];
    let run = trimline(dir.path(), &[&run[..], &short].concat());
    assert!(run.status.success(), "{run:?}");
    assert!(dir.path().join("run/life.parquet").exists());
    let page = std::fs::read_to_string(dir.path().join("run/report.html")).unwrap();
    assert!(page.contains("Where the time went"));

    let of_run = trimline(dir.path(), &["explain", "run", "--page", "life.html"]);
    let of_file = trimline(dir.path(), &[&["explain", &file, "max"][..], &short].concat());
    let (of_run, of_file) = (text(&of_run.stdout), text(&of_file.stdout));
    let (of_run, said) = of_run.rsplit_once("page: ").unwrap();
    // What is no page of ours stays, also if it is no text.
    std::fs::write(dir.path().join("photo"), [0xff, 0xd8, 0xff]).unwrap();
    let mut foreign = Command::cargo_bin("trimline").unwrap();
    let foreign = foreign.current_dir(dir.path()).args(["explain", "run", "--page", "photo"]);
    assert_eq!(foreign.output().unwrap().status.code(), Some(2));
    assert_eq!(std::fs::read(dir.path().join("photo")).unwrap(), [0xff, 0xd8, 0xff]);
    assert_eq!(said.trim(), "life.html");
    assert!(of_run.starts_with("message ") && of_run == of_file, "{of_run}\n{of_file}");
    // The page of the run has this message as the slowest, its own page has each part.
    let named = of_run.split(": ").next().unwrap().trim_start_matches("message ");
    assert!(page.contains(&format!(">{named}</text>")), "{named}");
    let life = std::fs::read_to_string(dir.path().join("life.html")).unwrap();
    for text in [&format!("<h1>Message {named}</h1>"), "<td>receiver wait</td>", " -&gt; host "] {
        assert!(life.contains(text), "{text} is missing");
    }
    let sums: Vec<&str> = of_run.split("\n\n").last().unwrap().lines().collect();
    let (fct, causes) = sums.split_last().unwrap();
    assert!(fct.starts_with("completion time") && causes.len() > 3, "{of_run}");
    assert_eq!(picoseconds(fct), causes.iter().map(|line| picoseconds(line)).sum::<u64>());
}

#[test]
fn threads_change_nothing_and_are_not_in_the_repeat_command_unless_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let first = scenario("first.toml");
        let short = ["run", &first, "--set", "measure.to=1100us", "--out", "r"];
        let output = trimline(dir.path(), &[&short, args].concat());
        assert!(!text(&output.stderr).contains("threads"), "{output:?}");
        let stdout = text(&output.stdout);
        let digest = stdout.lines().find(|line| line.contains("digest")).unwrap().to_owned();
        let manifest = std::fs::read_to_string(dir.path().join("r/manifest.json")).unwrap();
        (digest, manifest.contains("threads"))
    };
    let (auto, _) = run(&[]);
    assert_eq!(run(&[]), (auto.clone(), false));
    for n in ["auto", "1", "2", "3", "8"] {
        assert_eq!(run(&["--threads", n]), (auto.clone(), true));
    }
    let help = text(&trimline(dir.path(), &["run", "--help"]).stdout);
    assert!(help.contains("No effect on results"), "{help}");
    assert!(help.contains("[default: auto]"), "{help}");
}

#[test]
fn a_load_beyond_the_network_ends_soon_with_one_warning() {
    let dir = tempfile::tempdir().unwrap();
    let first = scenario("first.toml");
    let sets = ["--set", "traffic.load=3", "--set", "measure.max_in_flight=5000"];
    let output = trimline(dir.path(), &[&["run", &first][..], &sets].concat());
    let said = text(&output.stderr);
    assert_eq!(said.matches("warning:").count(), 1, "{said}");
    assert!(said.contains("more than 5000 messages were in flight"), "{said}");
    let manifest = |args: &[&str]| {
        trimline(dir.path(), args);
        std::fs::read_to_string(dir.path().join("m/manifest.json")).unwrap()
    };
    let usual = manifest(&["run", &first, "--set", "measure.to=1100us", "--out", "m"]);
    assert!(usual.contains("\"max_in_flight\": 100000"), "{usual}");
    let incast = scenario("demo/incast_ndp.toml");
    let bounded = ["--set", "topology.k=4", "--set", "traffic.senders=3", "--out", "m"];
    let bounded = manifest(&[&["run", &incast][..], &bounded].concat());
    assert!(!bounded.contains("max_in_flight"), "{bounded}");
}

#[test]
fn compare_prints_one_table_and_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let (ndp, newreno) = (scenario("demo/incast_ndp.toml"), scenario("demo/incast_newreno.toml"));
    let small = ["--set", "topology.k=4", "--set", "traffic.senders=12"];
    let args = [&["compare", &ndp, &newreno][..], &small].concat();
    let stdout = text(&trimline(dir.path(), &args).stdout);
    let header = stdout.lines().find(|line| line.contains("scenario")).unwrap();
    assert!(header.contains("NDP") && header.contains("NewReno"), "{stdout}");
    assert!(stdout.contains("messages completed"), "{stdout}");
    assert!(stdout.contains("report: out/compare/report.html"), "{stdout}");
    let page = dir.path().join("out/compare/report.html");
    let before = std::fs::read_to_string(&page).unwrap();
    assert!(dir.path().join("out/compare/incast_ndp/summary.json").is_file());
    std::fs::remove_file(&page).unwrap();
    trimline(dir.path(), &["report", "out/compare"]);
    assert_eq!(std::fs::read_to_string(&page).unwrap(), before, "the page can be built again");
}

#[test]
fn runs_of_one_scenario_are_compared_by_the_names_of_their_directories() {
    let dir = tempfile::tempdir().unwrap();
    let first = scenario("first.toml");
    for (load, out) in [("0.1", "low"), ("0.2", "high")] {
        let load = format!("traffic.load={load}");
        let sets = ["--set", "measure.to=1100us", "--set", &load, "--out", out];
        trimline(dir.path(), &[&["run", &first][..], &sets].concat());
    }
    let args = ["compare", "low/manifest.json", "high/manifest.json"];
    let stdout = text(&trimline(dir.path(), &args).stdout);
    let header = stdout.lines().find(|line| line.contains("scenario")).unwrap();
    assert!(header.contains("low") && header.contains("high"), "{stdout}");
    for run in ["low", "high"] {
        assert!(dir.path().join("out/compare").join(run).join("summary.json").is_file());
    }
}

#[test]
fn report_rebuilds_the_page() {
    let dir = tempfile::tempdir().unwrap();
    trimline(dir.path(), &["run", &scenario("htsim/connection_matrix.toml"), "--out", "r"]);
    let page = dir.path().join("r/report.html");
    let before = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(&page).unwrap();
    trimline(dir.path(), &["report", "r"]);
    assert_eq!(std::fs::read_to_string(&page).unwrap(), before);
}

#[test]
fn list_names_what_scenarios_can_name() {
    let dir = tempfile::tempdir().unwrap();
    for what in ["transports", "topologies", "queues", "workloads"] {
        insta::assert_snapshot!(what, text(&trimline(dir.path(), &["list", what]).stdout));
    }
    // The reference has all of them.
    for what in ["keys", "schema"] {
        let all = text(&trimline(dir.path(), &["list", what]).stdout);
        let first: Vec<&str> = all.lines().take(12).collect();
        insta::assert_snapshot!(what, first.join("\n"));
    }
}
