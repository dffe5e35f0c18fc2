//! `trimline p4 check`: what it says of a good program and of a broken one.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

fn check(file: &str, more: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::cargo_bin("trimline").unwrap();
    command.current_dir(root).args(["p4", "check", file]).args(more).output().unwrap()
}

#[test]
fn a_good_program_is_described() {
    let output = check("p4/ndp.p4", &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    // specs/nanotransport.md#1: NDP takes three stages on ingress and one on egress.
    assert!(said.contains("ingress: 3 parser states, 3 stages"), "{said}");
    assert!(said.contains("egress: 0 parser states, 1 stages"), "{said}");
}

/// How far apart packets have to be, and the loop that says so, with its lines.
#[test]
fn the_least_spacing_is_said_with_its_loop() {
    let output = check("p4/homa.p4", &["--constant", "TRIM=true"]);
    let said = String::from_utf8(output.stdout).unwrap();
    for part in [
        "  ingress: packets 4 cycles apart: HomaIngress.granted.execute (homa_rules.p4:",
        ") in cycle 2, HomaIngress.granted.second (homa_rules.p4:",
        "  ingress, messages freed after the last stage: packets 8 cycles apart: get_rx_msg_info",
        "  hazard: HomaIngress.granted: the last access of a packet in ingress is 4 cycles",
    ] {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
}

/// Unknown field, width mismatch, missing default, unsupported construct, cyclic parser (issue 8).
#[test]
fn broken_programs_are_refused_with_place_line_and_hint() {
    for (file, place, line) in [
        ("unknown_field", ":7:20]", "h.ethernet.typ = 0x0800;"),
        ("width_mismatch", ":7:23]", "info.length + info.port;"),
        ("missing_default", ":5:9]", "transition select(h.ethernet.type)"),
        ("unsupported_varbit", ":2:20]", "varbit<320> all;"),
        ("cyclic_parser", ":4:30]", "state again { transition start; }"),
    ] {
        let output = check(&format!("crates/p4/tests/broken/{file}.p4"), &[]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        for part in [file, place, line, "help: "] {
            assert!(said.contains(part), "{file}: no {part:?} in\n{said}");
        }
    }
}

#[test]
fn constants_are_checked() {
    let code = |constant| check("p4/homa.p4", &["--constant", constant]).status.code();
    for right in ["TRIM=1", "TRIM=true", "TRIM=0x1", "TRIM=0b0"] {
        assert_eq!(code(right), Some(0), "{right}");
    }
    for wrong in ["TRIN=1", "TRIM=2", "TRIM=-1", "TRIM", "TRIM=x", "TRIM=--1", "TRIM=0x-1"] {
        assert_eq!(code(wrong), Some(2), "{wrong}");
    }
    let twice = check("p4/homa.p4", &["--constant", "TRIM=1", "--constant", "TRIM=0"]);
    assert_eq!(twice.status.code(), Some(2));
    let said = String::from_utf8(twice.stderr).unwrap();
    assert!(said.contains("two values are to replace that of `TRIM`"), "{said}");
}

#[test]
fn entries_are_checked_against_the_program() {
    let program = "crates/p4/tests/small/flow_counter.p4";
    let dir = tempfile::tempdir().unwrap();
    let with = |name: &str, text: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        check(program, &["--entries", file.to_str().unwrap()])
    };
    let text = "[[entry]]\ntable = \"flows\"\n\
                key = { \"h.ipv4.dst\" = \"10.0.2.0/24\", \"h.ipv4.protocol\" = 6 }\n\
                action = \"flow\"\narguments = { number = 3 }\n";
    let good = with("good.toml", text);
    assert_eq!(good.status.code(), Some(0), "{good:?}");
    let said = String::from_utf8(good.stdout).unwrap();
    assert!(said.contains("  table Work.flows: 3 of 64 entries"), "{said}");
    let broken = with("broken.toml", &text.replace("number = 3", "number = 300"));
    assert_eq!(broken.status.code(), Some(2), "{broken:?}");
    let said = String::from_utf8(broken.stderr).unwrap();
    for part in ["broken.toml:5:24", "`number`: 300 does not fit 8 bits", "help: "] {
        assert!(said.contains(part), "no {part:?} in\n{said}");
    }
    let missing = check(program, &["--entries", "nowhere.toml"]);
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
}
