//! `trimline sweep` on a scenario that comes with it.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

const SWEEP: &str = include_str!("../../../../scenarios/incast_sweep.toml");

fn trimline(dir: &Path, args: &[&str]) -> Output {
    Command::cargo_bin("trimline").unwrap().current_dir(dir).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What is said of the sweep with `from` replaced by `to`.
fn refused(from: &str, to: &str) -> String {
    assert!(SWEEP.contains(from), "{from:?} is not in the scenario");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.toml"), SWEEP.replacen(from, to, 1)).unwrap();
    let output = trimline(dir.path(), &["sweep", "x.toml"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!dir.path().join("out").exists());
    text(&output.stderr)
}

#[test]
fn a_row_per_point_and_a_plot_per_metric() {
    let dir = tempfile::tempdir().unwrap();
    let set = ["--set", "topology.k=4", "--set", "traffic.size=9KB"];
    let fewer = SWEEP.replace("[1, 10, 40, 120]", "[1, 4, 15]");
    std::fs::write(dir.path().join("x.toml"), fewer).unwrap();
    let output = trimline(dir.path(), &[&["sweep", "x.toml"], &set[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stdout);
    let rows = said.lines().filter(|line| line.contains("iw="));
    let points: Vec<String> = rows
        .map(|line| {
            line.split(['│', '┆']).skip(1).take(2).map(str::trim).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(points, ["1 iw=1", "4 iw=1", "15 iw=1", "1 iw=23", "4 iw=23", "15 iw=23"]);
    assert_eq!(said.matches('±').count(), 6 * 3, "three metrics, three seeds: {said}");
    let out = dir.path().join("out/sweep/x");
    assert!(!out.join("results.json").exists(), "nothing is judged");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert_eq!(page.matches("<figure").count(), 3, "a plot per metric");
    let repeat = "trimline run x.toml --set traffic.senders=4 --set transport.initial_window=1 \
                  --set topology.k=4 --set traffic.size=9KB --seed 2";
    assert!(page.contains(repeat), "every run can be repeated");
    assert!(!crate::body(&page).contains("rows"), "no verdicts");
}

#[test]
fn a_point_without_a_value_is_shown_and_explained() {
    let dir = tempfile::tempdir().unwrap();
    let metrics = SWEEP.lines().find(|line| line.starts_with("metrics")).unwrap();
    let few = SWEEP.replace("[1, 10, 40, 120]", "[1]").replace("iw = [1, 23]", "iw = [1]");
    let few = few.replace(metrics, "metrics = [\"n / 0\"]");
    std::fs::write(dir.path().join("x.toml"), few).unwrap();
    let output = trimline(dir.path(), &["sweep", "x.toml", "--set", "topology.k=4"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stdout);
    let row = said.lines().find(|line| line.contains("iw=1")).unwrap();
    assert!(row.trim_end_matches(['│', ' ']).ends_with('-'), "{said}");
    let why = "n=1 iw=1: `n / 0` is inf";
    assert!(text(&output.stderr).contains(why), "{output:?}");
    let page = std::fs::read_to_string(dir.path().join("out/sweep/x/report.html")).unwrap();
    assert!(page.contains(why));
}

#[test]
fn a_single_run_does_not_care_for_the_sweep() {
    let dir = tempfile::tempdir().unwrap();
    let digest = |name: &str, scenario: &str| {
        std::fs::write(dir.path().join(name), scenario).unwrap();
        let said = text(&trimline(dir.path(), &["run", name, "--set", "topology.k=8"]).stdout);
        said.lines().find(|line| line.contains("digest")).map(str::to_owned)
    };
    let without = SWEEP.split_once("[sweep]").unwrap().0;
    let with = digest("with.toml", SWEEP);
    assert!(with.is_some());
    assert_eq!(with, digest("without.toml", without));
}

/// The first has more points than a number holds, the others ate all memory.
#[test]
fn a_sweep_that_nobody_could_run_is_refused_with_its_count() {
    let axis = |n: usize| format!("a{n} = [1, 2]");
    let many: Vec<String> = (0..70).map(axis).collect();
    let long = format!("[{}]", (1..=2000).map(|n| n.to_string()).collect::<Vec<_>>().join(", "));
    let three = format!("n = {long}, iw = {long}, z = {long}");
    let (seventy, three) = (many.join(", "), three.as_str());
    for (axes, count) in [(seventy.as_str(), "about 3.5e21 runs"), (three, "24000000000 runs")] {
        let line = SWEEP.lines().find(|line| line.starts_with("axes")).unwrap();
        let sets = SWEEP.lines().find(|line| line.starts_with("set ")).unwrap();
        let names =
            axes.split(", ").filter_map(|axis| axis.split_once(" = ")).map(|(name, _)| name);
        let edits: Vec<String> = names.map(|name| format!("\"name={{{name}}}\"")).collect();
        let text = SWEEP.replace(line, &format!("axes = {{ {axes} }}"));
        let text = text.replace(sets, &format!("set = [{}]", edits.join(", ")));
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x.toml"), text).unwrap();
        let output = trimline(dir.path(), &["sweep", "x.toml"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = self::text(&output.stderr);
        assert!(said.contains(count) && said.contains("100000 runs at most"), "{said}");
    }
}

#[test]
fn what_is_wrong_in_a_sweep() {
    insta::assert_snapshot!("no_sweep", refused("[sweep]", "[measure]"));
    insta::assert_snapshot!("which_axis", refused("x = \"n\"\n", ""));
    insta::assert_snapshot!("unknown_metric", refused("\"packets.trimmed\"", "\"packets.trimed\""));
    let metrics = SWEEP.lines().find(|line| line.starts_with("metrics")).unwrap();
    insta::assert_snapshot!("no_metrics", refused(metrics, "metrics = []"));
    let twice = metrics.replacen('[', "[\"packets.trimmed\", \"packets.trimmed\", ", 1);
    insta::assert_snapshot!("metric_twice", refused(metrics, &twice));
    insta::assert_snapshot!("no_seeds", refused("seeds = [1, 2, 3]\n", ""));
}

/// What `trimline sweep x.toml` says with `args`, of the sweep with `more` after it.
fn said(more: &str, args: &[&str]) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("x.toml"), format!("{SWEEP}\n{more}")).unwrap();
    let output = trimline(dir.path(), &[&["sweep", "x.toml"], args].concat());
    (output.status.code(), text(&output.stderr))
}

#[test]
fn options_that_a_sweep_decides_itself_are_refused() {
    for (set, why) in [
        ("seed=5", "a sweep has its own seeds"),
        ("sweep.seeds=[5]", "the sweep itself is not edited"),
        ("traffic.0.senders=5", "it cancels `traffic.senders={n}`"),
        ("traffic.senders=5", "it cancels `traffic.senders={n}`, which the sweep varies"),
        ("traffic={kind=\"incast\"}", "it cancels `traffic.senders={n}`"),
    ] {
        let (code, said) = said("", &["--set", set]);
        assert_eq!(code, Some(2), "{set}: {said}");
        assert!(said.contains(why), "{set}: {said}");
    }
}

#[test]
fn choices_without_effect_are_named() {
    let variants = "[[variant]]\nname = \"few\"\nset = { \"traffic.senders\" = 3 }\n";
    let (_, warned) = said(variants, &["--collect", "--threads", "2"]);
    let cancelled = "`traffic.senders=3` of `few` is cancelled by `traffic.senders={n}`";
    assert!(warned.contains(cancelled), "{warned}");
    assert!(warned.contains("--threads has no effect: nothing is run"), "{warned}");
    let (_, warned) = said("", &["--collect"]);
    assert!(!warned.contains("cancelled") && !warned.contains("no effect"), "{warned}");
}

/// A sweep of a few small runs, with other lines of its table `[sweep]`.
fn small(dir: &Path, table: &str) {
    let few = SWEEP.replace("[1, 10, 40, 120]", "[1]").replace("iw = [1, 23]", "iw = [1]");
    let at = few.find("[sweep]").unwrap() + "[sweep]\n".len();
    let text = format!("{}{table}{}", &few[..at], &few[at..]);
    std::fs::write(dir.join("x.toml"), text).unwrap();
}

const SMALL: [&str; 4] = ["--set", "topology.k=4", "--set", "traffic.size=9KB"];

/// What a sweep says that has these lines in its table and these options.
fn swept(dir: &Path, table: &str, options: &[&str]) -> String {
    small(dir, table);
    let output = trimline(dir, &[&["sweep", "x.toml"], &SMALL[..], options].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    text(&output.stderr)
}

#[test]
fn what_runs_warn_of_is_said_and_on_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let said = swept(dir.path(), "", &[]);
    assert!(said.contains("iw=1, n=1: only 1 measured messages"), "{said}");
    let page = std::fs::read_to_string(dir.path().join("out/sweep/x/report.html")).unwrap();
    assert!(page.contains("Before you trust these numbers"), "{said}");
}

#[test]
fn a_stop_rule_that_runs_out_of_seeds_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let jitter = ["--set", "host.send_jitter=1us"];
    let said = swept(dir.path(), "until = \"0.0001%\"\n", &jitter);
    assert!(said.contains("have intervals of more than ± 0.0001 %"), "{said}");
}

#[test]
fn results_of_another_kind_stay() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path(), "");
    let few = ["--set", "traffic.senders=2", "--out", "o"];
    let run = |args: &[&str]| {
        let own: &[&str] = if args[0] == "run" { &few } else { &few[2..] };
        trimline(dir.path(), &[args, &SMALL[..], own].concat())
    };
    assert_eq!(run(&["sweep", "x.toml"]).status.code(), Some(0));
    let refused = run(&["run", "x.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("it has the results of a sweep or a study"), "{said}");
    assert!(dir.path().join("o/runs.parquet").exists());
    assert_eq!(run(&["sweep", "x.toml"]).status.code(), Some(0), "the same kind goes on");
}

#[test]
fn a_scenario_without_a_seed_lacks_a_seed() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path(), "");
    let file = dir.path().join("x.toml");
    let seedless = std::fs::read_to_string(&file).unwrap().replace("\nseed = 1\n", "\n");
    std::fs::write(&file, seedless).unwrap();
    for command in ["run", "check"] {
        let said = text(&trimline(dir.path(), &[command, "x.toml"]).stderr);
        assert!(said.contains("`seed` is missing"), "{said}");
    }
}

#[test]
fn check_reads_the_sweep_and_the_variants() {
    let dir = tempfile::tempdir().unwrap();
    small(dir.path(), "axis = 3\n");
    let said = text(&trimline(dir.path(), &["check", "x.toml"]).stderr);
    assert!(said.contains("unknown key `axis`"), "{said}");
    small(dir.path(), "");
    let file = dir.path().join("x.toml");
    let variant = "\n[[variant]]\nname = \"w\"\nset = { \"transport.initial_windo\" = 3 }\n";
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + variant).unwrap();
    let said = text(&trimline(dir.path(), &["check", "x.toml"]).stderr);
    assert!(said.contains("x.toml") && said.contains("initial_windo"), "{said}");
}

#[test]
fn a_file_that_no_command_can_name_is_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"s\xe9.toml");
    std::fs::write(dir.path().join(name), SWEEP).unwrap();
    let mut program = Command::cargo_bin("trimline").unwrap();
    let output = program.current_dir(dir.path()).arg("sweep").arg(name).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("is not UTF-8"), "{output:?}");
}
