//! `trimline rtl`: designs that are written, compared and reported, and what is refused.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use rtl::tools::{Tools, VERILATOR};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rtl(args: &[&str]) -> Output {
    let mut command = Command::cargo_bin("trimline").unwrap();
    command.current_dir(root()).arg("rtl").args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8([&output.stdout[..], &output.stderr[..]].concat()).unwrap()
}

/// The same, its long lines whole.
fn unwrapped(output: &Output) -> String {
    said(output).replace("\n  │ ", " ").replace("\n        ", " ")
}

/// The design of a program, and what the command says.
fn build(args: &[&str]) -> (tempfile::TempDir, PathBuf, String) {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("design");
    let output = rtl(&[&["build"], args, &["--out", out.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    (dir, out, said(&output))
}

fn text(dir: &Path, file: &str) -> String {
    std::fs::read_to_string(dir.join(file)).unwrap()
}

/// Every program that is a NIC, and those whose pipelines alone are made.
#[test]
fn designs_are_whole() {
    for (program, more, top) in [
        ("ndp.p4", &[][..], "nic"),
        ("homa.p4", &["--constant", "TRIM=true", "--set", "rx_messages=32"], "nic"),
        ("ndp_homa.p4", &["--constant", "TRIM=true"], "nic"),
        ("window.p4", &[], "nic"),
        ("ndp_bypass.p4", &[], "nic"),
        ("hpcc.p4", &["--pipelines"], "pipelines"),
        ("swift.p4", &["--pipelines"], "pipelines"),
        ("dcqcn.p4", &["--pipelines"], "pipelines"),
        ("nscc.p4", &["--pipelines"], "pipelines"),
        ("ndp_switch.p4", &["--pipelines"], "pipelines"),
        ("ndp_switch.p4", &["--set", "memory=80KB"], "switch_port"),
        ("ndp.p4", &["--bytes"], "nic_data"),
        ("homa.p4", &["--constant", "TRIM=true", "--bytes"], "nic_data"),
    ] {
        let file = format!("p4/{program}");
        let (_dir, out, said) = build(&[&[file.as_str()], more].concat());
        assert!(said.contains(&format!("`{top}`")) && said.contains("cycle"), "{said}");
        let list = text(&out, &format!("{top}.f"));
        assert!(list.lines().count() >= 3 && list.ends_with(&format!("rtl/{top}.sv\n")), "{list}");
        for source in list.lines() {
            assert!(
                text(&out, source).contains("endmodule") || source.contains("_pkg"),
                "{source}"
            );
        }
        let page = text(&out, "PORTS.md");
        let must_say =
            |line: &&str| line.contains(" in |") || top != "pipelines" && line.contains(" out |");
        for row in page.lines().filter(|line| line.starts_with("| `")).filter(must_say) {
            assert!(!row.ends_with("|  |  |"), "{program}: nothing is said of {row}");
        }
        assert!(text(&out, &format!("cocotb/test_{top}.py")).contains("async def"));
    }
}

#[test]
fn sizes_and_protocols_are_in_the_design() {
    let (_dir, out, _) = build(&["p4/ndp_homa.p4", "--set", "rx_messages=64"]);
    assert!(text(&out, "rtl/nic.sv").contains(".Ids(64)"));
    assert!(text(&out, "cocotb/test_nic.py").contains("PROTOCOLS = [154, 155]"));
    let page = text(&out, "PORTS.md");
    for part in ["| `rx_frame_i` | in |", "`nic.nic_ip`", "pull_offset`", "grant_offset"] {
        assert!(page.contains(part), "no {part:?} in\n{page}");
    }
}

/// The example runs where cocotb and Verilator are.
#[test]
fn the_example_runs() {
    let python = root().join("target/rtl-tools/bin/python");
    let has_cocotb = std::process::Command::new(&python)
        .args(["-c", "import cocotb, verilator"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_cocotb || std::env::var_os("TRIMLINE_RTL_MUTANTS").is_none() {
        println!("the example skipped: it needs make rtl-setup and TRIMLINE_RTL_MUTANTS=1");
        return;
    }
    for (args, tests) in [
        (&["p4/ndp_homa.p4"][..], 2),
        (&["p4/ndp_homa.p4", "--bytes"], 2),
        (&["p4/hpcc.p4", "--pipelines"], 2),
        (&["p4/ndp_switch.p4"], 1),
    ] {
        let passed = format!("{tests} of {tests} tests passed");
        let (_dir, out, _) = build(args);
        let mut run = std::process::Command::new(&python);
        let output = run.arg("cocotb/run.py").current_dir(&out).output().unwrap();
        let said = said(&output);
        assert!(output.status.success() && said.contains(&passed), "{said}");
    }
}

/// What the generator of the design forgets: to take the flag of a PULL that waits out of its ACK.
const FORGETS: &str = "s/ctrl_i.flags & ~PullFlag;/ctrl_i.flags;/";

/// A Verilator that plants a mistake in each design it is given, in `dir`.
fn planting(real: &Path, dir: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let script = format!(
        "#!/bin/sh\nfor file; do\n  case $file in\n    */generator.sv) sed -i '{FORGETS}' \"$file\" \
         ;;\n  esac\ndone\nexec {} \"$@\"\n",
        real.display()
    );
    let path = dir.join("planting");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The command as a whole, on a NIC with a planted mistake: it says what differs, and leaves the
/// shortest inputs, a waveform and a command that repeats it.
#[test]
fn a_mistake_in_a_nic_is_left_small_and_comes_again() {
    let tools = match Tools::find() {
        Ok(tools) if std::env::var_os("TRIMLINE_RTL_MUTANTS").is_some() => tools,
        _ => {
            println!("skipped: it needs make rtl-setup and TRIMLINE_RTL_MUTANTS=1");
            return;
        }
    };
    let real = std::path::absolute(tools.verilator().get_program()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (planted, out) = (planting(&real, dir.path()), dir.path().join("out"));
    // What is built is kept below TMPDIR by what the design was before the mistake.
    let run = |verilator: &Path, kept: &str, args: &[&str]| {
        let kept = dir.path().join(kept);
        std::fs::create_dir_all(&kept).unwrap();
        let mut command = Command::cargo_bin("trimline").unwrap();
        let command = command.current_dir(root()).env(VERILATOR, verilator).env("TMPDIR", kept);
        command.args(args).output().unwrap()
    };
    let args = ["rtl", "cosim", "p4/ndp.p4", "--packets", "5000", "--seed", "1", "--out"];
    let failed = run(&planted, "wrong", &[&args[..], &[out.to_str().unwrap()]].concat());
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let said = unwrapped(&failed);
    for part in ["p4/ndp.p4, seed 1: headers.ndp.flags (", "ndp_rules.p4:", "cycle ", "waves.vcd"] {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }

    let trace: serde_json::Value = serde_json::from_str(&text(&out, "trace.json")).unwrap();
    let events = trace["trace"]["events"].as_array().unwrap().len();
    // Two packets that want a PULL at once: one has to wait.
    assert!((2..=4).contains(&events), "{trace}");
    let cycle = trace["cycle"].as_u64().unwrap();
    let waves = text(&out, "waves.vcd");
    assert!(waves.contains("$enddefinitions") && waves.contains("tx_frame_o"));
    let times: Vec<u64> =
        waves.lines().filter_map(|line| line.strip_prefix('#')?.parse().ok()).collect();
    let (first, last) = (times[0], *times.last().unwrap());
    assert_eq!(first, 2 * cycle.saturating_sub(200));
    assert!((2 * cycle..2 * cycle + 4).contains(&last), "to {last}, it fails in {cycle}");

    let (_, again) = said.split_once("again: trimline ").unwrap();
    let again: Vec<&str> = again.split_whitespace().collect();
    let repeated = run(&planted, "wrong", &again);
    assert_eq!(repeated.status.code(), Some(1), "{repeated:?}");
    // Of long lines of bytes the terminal's width is broken anywhere.
    let joined = |text: &str| text.split_whitespace().collect::<String>();
    let mismatch = trace["mismatch"].as_str().unwrap().lines().next().unwrap();
    let said = joined(&unwrapped(&repeated));
    assert!(said.contains(&joined(mismatch)), "no {mismatch:?} in\n{said}");
    let right = run(&real, "right", &again);
    assert_eq!(right.status.code(), Some(0), "the shipped circuit passes: {right:?}");
}

#[test]
fn nothing_is_written_over_and_nothing_is_left_half_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("design");
    let path = out.to_str().unwrap();
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("mine"), "").unwrap();
    let taken = rtl(&["build", "p4/ndp.p4", "--out", path]);
    assert_eq!(taken.status.code(), Some(2), "{taken:?}");
    assert!(said(&taken).contains("it is not empty"), "{taken:?}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let nowhere = dir.path().join("not/there");
    let nowhere = rtl(&["build", "p4/ndp.p4", "--out", nowhere.to_str().unwrap()]);
    assert!(nowhere.status.success(), "{nowhere:?}");
}

#[test]
fn what_no_hardware_is_made_of_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("design");
    let path = out.to_str().unwrap();
    for (args, parts) in [
        (&["p4/homa.p4", "--rate", "800Gbps"][..], &["one every 4", "homa_rules.p4:126"][..]),
        (&["p4/homa.p4", "--rate", "0Gbps"], &["a link has some rate"]),
        (&["p4/ndp_switch.p4", "--set", "rx_messages=16"], &["rx_messages", "memory"]),
        (&["p4/ndp_switch.p4", "--set", "places=100"], &["places", "a power of two"]),
        (&["p4/ndp_switch.p4", "--set", "weights=[1, 0]"], &["a weight for each", "two to eight"]),
        (&["p4/ndp_switch.p4", "--bytes"], &["has no NIC", "leave it out"]),
        (&["p4/hpcc.p4", "--pipelines", "--set", "rx_messages=16"], &["cannot be used with"]),
        (&["p4/hpcc.p4"], &["set_flow", "--pipelines"]),
        (&["p4/kv_cache.p4"], &["no block of hardware", "--pipelines"]),
        (&["p4/ndp.p4", "--set", "rx_messages=12"], &["12", "powers of two", "--set"]),
        (&["p4/ndp.p4", "--set", "rx_messages=256"], &["256", "128 at most"]),
        (&["p4/ndp.p4", "--set", "rx_mesages=16"], &["rx_mesages", "did you mean `rx_messages`"]),
        (&["p4/ndp.p4", "--set", "protocol=17"], &["protocol 17", "155"]),
        (&["p4/ndp.p4", "--set", "clocked=false"], &["clocked law"]),
        (&["p4/ndp.p4", "--set", "ingress_cycles=5"], &["too late", "--set ingress_cycles="]),
        (&["p4/ndp.p4", "--set", "max_pulls=100"], &["a power of two"]),
        (&["crates/p4/tests/broken/cyclic_parser.p4"], &["cyclic_parser.p4:4:30"]),
        (&["p4/nowhere.p4"], &["cannot read"]),
    ] {
        let output = rtl(&[&["build"], args, &["--out", path]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty() && !out.exists(), "{args:?}: {output:?}");
        let said = unwrapped(&output);
        for part in parts {
            assert!(said.contains(part), "{args:?}: no {part:?} in\n{said}");
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing beside it");
}

/// Without its tools a design is not compared, and the message says what to do.
#[test]
fn a_missing_tool_is_named() {
    let mut command = Command::cargo_bin("trimline").unwrap();
    let command = command.current_dir(root()).env("TRIMLINE_VERILATOR", "/nowhere/verilator");
    let output = command.args(["rtl", "cosim", "p4/ndp.p4"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = said(&output);
    for part in ["/nowhere/verilator", "does not run", "docs/rtl.md"] {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
}

/// What a trace says beside the design's inputs.
fn written(trace: &str) -> String {
    let about =
        r#""program": "x", "seed": 1, "mismatch": "", "field": "", "place": "", "cycle": 0"#;
    format!("{{{about},\n \"trace\": {trace}}}")
}

/// Without a word about tools: a trace is read before anything is built.
#[test]
fn a_trace_that_is_none_is_refused() {
    let output = rtl(&["cosim", "p4/ndp_switch.p4", "--spaced"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let (ndp, switch) = (&["p4/ndp.p4"][..], &["p4/ndp_switch.p4", "--pipelines"][..]);
    let arrival = r#"{"pipeline": "arrival", "fields": [], "packets": []}"#;
    let nowhere = r#"{"pipeline": "nowhere", "fields": [], "packets": []}"#;
    let late = r#"{"cycles": 3, "open": [], "events": [
        {"cycle": 3, "message": {"id": 0, "dst": 2, "bytes": 9, "transport": 0}}]}"#;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace.json");
    for (program, text, why) in [
        (ndp, "{\n  \"seed\": \"x\" }".to_owned(), "trace.json:2:13: invalid type"),
        (ndp, written(r#"{"cycles": 0, "open": [], "events": []}"#), "it has no cycles"),
        (ndp, written(r#"{"cycles": 3, "open": [], "evens": []}"#), "trace.json:2:43: unknown"),
        (ndp, written(late), "an event in cycle 3, of 3 cycles"),
        (ndp, written(arrival), "trace.json:2:21: unknown field `pipeline`"),
        (switch, written(late), "trace.json:2:19: unknown field `cycles`"),
        (switch, written(nowhere), "no pipeline `nowhere`"),
        (switch, written(arrival), "`fields` are ; those of arrival are arrival."),
    ] {
        std::fs::write(&file, text).unwrap();
        let args = [&["cosim"], program, &["--replay", file.to_str().unwrap()]].concat();
        let output = rtl(&args);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = unwrapped(&output);
        assert!(said.contains(why) && said.contains("--replay wants"), "{why}\n{said}");
    }
}

/// specs/nanotransport.md#1: below 100 bytes of state for a message.
#[test]
fn a_report_without_tools() {
    for (args, spacing) in [(&["p4/ndp.p4"][..], 2), (&["p4/homa.p4", "--constant", "TRIM=1"], 4)] {
        let output = rtl(&[&["report"], args, &["--no-synthesis", "--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let ingress = &report["pipelines"][0];
        assert_eq!(ingress["spacing"], spacing);
        assert!(ingress["set_by"].as_str().unwrap().contains("_rules.p4:"), "{ingress}");
        let cycles = |name: &str| ingress["cycles"][name].as_u64().unwrap();
        let [min, median, max, results] = ["min", "median", "max", "results"].map(cycles);
        assert!(min <= median && median < max && max <= results, "{ingress}");
        assert_eq!(report["nic"]["in_cycles"], 23);
        assert_eq!(report["nic"]["out_cycles"], 12);
        for way in 0..2 {
            let bytes = report["nic"]["state_bytes"][way].as_f64().unwrap();
            assert!((10.0..100.0).contains(&bytes), "{report}");
        }
        assert!(report["synthesis"].is_null() && report["synthesis_skipped"].is_string());
    }
}
