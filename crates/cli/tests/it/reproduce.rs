//! `trimline reproduce` on the tiny study of the crate `study`.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

const FIGURE: &str = include_str!("../../../study/tests/tiny/fig1/figure.toml");

/// A directory with `studies/tiny`, its figure changed by `edit`.
fn studies(edit: impl Fn(&str) -> String) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../study/tests/tiny");
    let to = dir.path().join("studies/tiny");
    std::fs::create_dir_all(to.join("fig1")).unwrap();
    for file in ["study.toml", "fig1/incast.toml", "fig1/notes.md"] {
        std::fs::copy(from.join(file), to.join(file)).unwrap();
    }
    std::fs::write(to.join("fig1/figure.toml"), edit(FIGURE)).unwrap();
    record(&dir, "cause tested");
    dir
}

/// Record the verdict of the row that is known to differ.
fn record(dir: &TempDir, verdict: &str) {
    let forms = format!("{{ full = \"{verdict}\", quick = \"{verdict}\" }}");
    let text = format!("[fig1]\n\"known to differ\" = {forms}\n");
    std::fs::write(dir.path().join("studies/tiny/verdicts.toml"), text).unwrap();
}

/// The figure with one row out of its band, of which the cause is tested.
fn good(figure: &str) -> String {
    figure
        .replace("flow_goodput_gbps.min", "hosts / 9")
        .replace(
            "target = 0\nhigh = 0\nsource = \"nobody\"\nwhy = \"the experiment",
            "low = 1\nsource = \"nobody\"\nwhy = \"the experiment",
        )
        .replace("below = -1e6", "below = -200")
}

fn trimline(dir: &TempDir, args: &[&str]) -> Output {
    Command::cargo_bin("trimline").unwrap().current_dir(dir.path()).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn verdicts_are_printed_and_written() {
    let dir = studies(good);
    let output = trimline(&dir, &["reproduce", "tiny"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = text(&output.stdout);
    let cells =
        |line: &str| line.split(['│', '┆']).map(|c| c.trim().to_owned()).collect::<Vec<_>>();
    let line = said.lines().find(|line| line.contains("last n=8")).unwrap();
    let [_, name, target, band, measured, unit, verdict, _] = &cells(line)[..] else {
        panic!("{line}");
    };
    assert_eq!([name, target, band], ["fig1: last n=8", "590.0", "560.5 .. 619.5"]);
    assert_eq!([unit, verdict], ["us", "in band"]);
    assert!(measured.contains('±'), "{measured}: three seeds");
    assert!(said.contains(">= 1.900") && said.contains("<= 0.000"), "bounds: {said}");
    let score = "published rows in band: 6 of 7; cause tested: 1; not reproduced: 0";
    assert!(said.contains(score), "{said}");
    assert!(said.contains("report:  out/reproduce/tiny/report.html"), "{said}");
    assert!(text(&output.stderr).is_empty(), "no bar in a pipe: {output:?}");
    let out = dir.path().join("out/reproduce/tiny");
    let results = std::fs::read_to_string(out.join("results.json")).unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_str(&results).unwrap();
    assert_eq!(rows.len(), 12);
    assert_eq!(rows[4]["verdict"], "cause tested");
    assert_eq!(rows[4]["evidence"], "studies/tiny/fig1/notes.md#trimmed-packets");
    let repeat = "trimline run studies/tiny/fig1/incast.toml --set traffic.senders=8 --seed 1";
    assert_eq!(rows[2]["evidence"], repeat);
}

#[test]
fn the_page_is_self_contained_and_can_be_rebuilt() {
    let dir = studies(good);
    trimline(&dir, &["reproduce", "tiny", "--out", "r"]);
    let path = dir.path().join("r/report.html");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.contains("content=\"default-src 'none'; "), "it may load nothing");
    let body = crate::body(&page);
    for word in ["http", "//", "<link", "<img", "url(", "@import", "src="] {
        assert!(!body.contains(word), "{word:?} in the page");
    }
    let (scripts, data) = ("<script", "<script type=\"application/json\">");
    assert_eq!(body.matches(scripts).count(), body.matches(data).count(), "no script of others");
    for part in [
        "A tiny study",
        "The last completion grows",
        "cause tested",
        "experiment single",
        "6 of 7",
        "notes.md#trimmed-packets",
        "Eight senders send ten packets each",
        "--set traffic.senders=4 --seed 2",
        "trimline reproduce tiny --out r",
        "<svg",
    ] {
        assert!(page.contains(part), "{part:?} is missing in the page");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(trimline(&dir, &["report", "r"]).status.success());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), page);
}

#[test]
fn a_row_that_does_not_come_out_is_exit_code_1_with_all_files() {
    let dir = studies(str::to_owned);
    let output = trimline(&dir, &["reproduce", "tiny/fig1", "--quick", "--threads", "1"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    for part in [
        "2 of 6 rows left their recorded verdicts",
        "fig1: cause refuted: not reproduced, not recorded",
        "`flow_goodput_gbps.min` has no value",
    ] {
        assert!(said.contains(part), "{said}");
    }
    for file in ["results.json", "study.json", "report.html"] {
        assert!(dir.path().join("out/reproduce/tiny/fig1").join(file).is_file(), "{file}");
    }
}

#[test]
fn a_row_that_leaves_its_verdict_is_named_until_it_is_recorded() {
    let dir = studies(good);
    for (was, way) in [("in band", "worse"), ("not reproduced", "better")] {
        record(&dir, was);
        let output = trimline(&dir, &["reproduce", "tiny", "--quick"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let named = format!("fig1: known to differ: cause tested, was {was}: {way}");
        assert!(text(&output.stderr).contains(&named), "{output:?}");
    }
    let output = trimline(&dir, &["reproduce", "tiny", "--quick", "--record"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let recorded = std::fs::read_to_string(dir.path().join("studies/tiny/verdicts.toml")).unwrap();
    let line = r#""known to differ" = { full = "not reproduced", quick = "cause tested" }"#;
    assert!(recorded.contains(line), "the full form is as it was: {recorded}");
    assert!(recorded.contains(r#""last n=8" = { quick = "in band" }"#), "{recorded}");
    record(&dir, "fine");
    let output = trimline(&dir, &["reproduce", "tiny", "--quick"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn published_rows_alone_leave_the_record_of_the_others_as_it_is() {
    let dir = studies(good);
    let path = dir.path().join("studies/tiny/verdicts.toml");
    let recorded = "[fig1]\n\
        \"gone\" = { full = \"holds\" }\n\
        \"known to differ\" = { full = \"in band\", quick = \"cause tested\" }\n\
        \"ratio\" = { full = \"does not hold\", quick = \"holds\" }\n";
    std::fs::write(&path, recorded).unwrap();
    let output = trimline(&dir, &["reproduce", "tiny", "--published"]);
    assert_eq!(output.status.code(), Some(1), "the verdict of the full form: {output:?}");
    let named = "fig1: known to differ: cause tested, was in band: worse";
    assert!(text(&output.stderr).contains(named), "{output:?}");
    let output = trimline(&dir, &["reproduce", "tiny", "--published", "--record"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).contains("5 rows are left to the full form"), "{output:?}");
    let recorded = std::fs::read_to_string(&path).unwrap();
    for line in [
        "\"known to differ\" = { published = \"cause tested\", quick = \"cause tested\" }\n",
        "\"last n=8\" = { published = \"in band\" }\n",
        "\"ratio\" = { full = \"does not hold\", quick = \"holds\" }\n",
    ] {
        assert!(recorded.contains(line), "{line} is not in {recorded}");
    }
    assert!(!recorded.contains("gone"), "the study has no such row: {recorded}");
    let page = std::fs::read_to_string(dir.path().join("out/reproduce/tiny/report.html")).unwrap();
    assert!(page.contains("Published rows, with all their sizes and seeds; 5 rows are left"));
    trimline(&dir, &["scoreboard", "out/reproduce/tiny", "--page", "page.md"]);
    let page = std::fs::read_to_string(dir.path().join("page.md")).unwrap();
    assert!(
        page.contains("| [tiny](#tiny), published rows | 6 of 7 | 86 % | 1 | 0 | – |"),
        "{page}"
    );
    let output = trimline(&dir, &["reproduce", "tiny", "--published", "--quick"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let output = trimline(&dir, &["reproduce", "tiny", "--record"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let recorded = std::fs::read_to_string(&path).unwrap();
    assert!(!recorded.contains("published ="), "the full form has these rows, too: {recorded}");
}

/// The recorded verdict stays, and forms that do not have the row say nothing.
#[test]
fn rows_that_take_a_missing_tool_are_skipped() {
    let dir = studies(|figure| {
        good(figure).replace("id = \"large\"", "id = \"large\"\nneeds = \"verilator\"")
    });
    let path = dir.path().join("studies/tiny/verdicts.toml");
    let line = "\"ratio\" = { full = \"does not hold\" }\n";
    let recorded = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, recorded + line).unwrap();
    let without = |args: &[&str]| {
        let mut command = Command::cargo_bin("trimline").unwrap();
        let command = command.current_dir(dir.path()).env("TRIMLINE_VERILATOR", "/nowhere/it");
        command.args(args).output().unwrap()
    };
    let output = without(&["reproduce", "tiny", "--record"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let why = text(&output.stderr);
    assert!(why.contains("fig1/ratio: skipped: `/nowhere/it` does not run"), "{output:?}");
    assert!(!text(&output.stdout).contains("ratio"), "{output:?}");
    let study = std::fs::read_to_string(dir.path().join("out/reproduce/tiny/study.json")).unwrap();
    assert!(!study.contains("\"large"), "it was run: {study}");
    let recorded = std::fs::read_to_string(&path).unwrap();
    assert!(recorded.contains(line), "{line} is not in {recorded}");
    let quick = without(&["reproduce", "tiny", "--quick"]);
    assert!(!text(&quick.stderr).contains("skipped"), "{quick:?}");
    let unknown = studies(|figure| {
        good(figure).replace("id = \"large\"", "id = \"large\"\nneeds = \"verilater\"")
    });
    let output = trimline(&unknown, &["reproduce", "tiny"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("did you mean `verilator`"), "{output:?}");
}

/// In an empty directory: those that the program carries, and commands that repeat their runs.
#[test]
fn studies_that_come_with_the_program_need_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let listed = trimline(&dir, &["list", "studies"]);
    assert!(text(&listed.stdout).contains("nanotransport"), "{listed:?}");
    let args = ["reproduce", "mmptcp/stall", "--quick", "--out", "stall"];
    let output = trimline(&dir, &args);
    assert!(output.status.success(), "{output:?}");
    let results = std::fs::read_to_string(dir.path().join("stall/results.json")).unwrap();
    assert!(results.contains("trimline run out/shipped/"), "{results}");
    assert!(results.contains("/studies/mmptcp/"), "{results}");
    let record = trimline(&dir, &["reproduce", "mmptcp/stall", "--quick", "--record"]);
    assert_eq!(record.status.code(), Some(2), "{record:?}");
    assert!(text(&record.stderr).contains("recorded in ./studies/mmptcp"), "{record:?}");
    let unknown = trimline(&dir, &["reproduce", "stall"]);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
}

#[test]
fn scores_of_studies_are_lines_and_a_page() {
    let dir = studies(good);
    trimline(&dir, &["reproduce", "tiny", "--quick", "--out", "r"]);
    let output = trimline(&dir, &["scoreboard", "r", "--page", "page.md"]);
    let said = text(&output.stdout);
    assert!(said.starts_with("tiny: published rows in band: 4 of 5; cause tested: 1"), "{said}");
    let page = std::fs::read_to_string(dir.path().join("page.md")).unwrap();
    assert!(page.contains("| [tiny](#tiny), quick form | 4 of 5 | 80 % | 1 | 0 | – |"), "{page}");
    assert!(
        page.contains("| fig1 | known to differ | 0 | 69.0 | packets | cause tested |"),
        "{page}"
    );
    assert_eq!(trimline(&dir, &["scoreboard", "nowhere"]).status.code(), Some(2));
}

/// No row would tell: the run is there for its curve.
#[test]
fn a_run_that_fails_is_exit_code_1() {
    const NOTHING_ARRIVES: &str = r#"
        [[run]]
        id = "cut_off"
        scenario = "incast.toml"
        seeds = [1]
        probe = "last-link"
        set = ["measure.limit=1us"]
        [[curve]]
        label = "nothing"
        run = "cut_off"
        cdf = "fct_us"
    "#;
    let dir = studies(|figure| good(figure) + NOTHING_ARRIVES);
    let output = trimline(&dir, &["reproduce", "tiny"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("1 of 19 runs failed, first cut_off with seed 1"), "{said}");
    assert!(dir.path().join("out/reproduce/tiny/report.html").is_file());
}

#[test]
fn a_wrong_study_is_exit_code_2_without_files() {
    let dir = studies(|figure| figure.replace("seeds = [1, 2, 3]", "seeds = []"));
    let output = trimline(&dir, &["reproduce", "tiny"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("studies/tiny/fig1/figure.toml:9:9"), "{output:?}");
    assert!(!dir.path().join("out").exists());
    let output = trimline(&dir, &["reproduce", "tinny"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("did you mean `tiny`"), "{output:?}");
}

#[test]
fn studies_are_listed() {
    let dir = studies(good);
    let output = trimline(&dir, &["list", "studies"]);
    assert_eq!(text(&output.stdout), "tiny  A tiny study\n");
}
