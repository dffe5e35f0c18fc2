//! Scenario kind `p4`: the shipped example, who runs it, and what is wrong with programs that are
//! not right.

use std::path::Path;

use trimline_scenario::{Options, Scenario, evaluate, simulate};

fn load(file: &str, edits: &[&str]) -> Result<Scenario, String> {
    let edits: Vec<String> = edits.iter().map(|&s| s.to_owned()).collect();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/p4");
    Scenario::load(&dir.join(file), &edits).map_err(|e| e.to_string())
}

/// Completed messages, trimmed packets and the digest.
fn run(file: &str, edits: &[&str]) -> (usize, u64, u64) {
    let scenario = load(file, edits).unwrap();
    let simulated = simulate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    let done = simulated.flows.iter().filter(|row| row.finish.is_some()).count();
    (done, simulated.outcome.counters.trimmed, simulated.outcome.digest)
}

#[test]
fn interpreter_and_generated_rust_give_the_same_run() {
    let homa = "transport.constants.TRIM=false";
    for (file, edits) in
        [("incast.toml", &[][..]), ("incast.toml", &[homa]), ("incast_ndp.toml", &[])]
    {
        let with = |backend| run(file, &[edits, &[backend]].concat());
        let interpreted = with("transport.backend=interpreter");
        assert_eq!(interpreted.0, 10, "{file} {edits:?}");
        assert!(interpreted.1 > 0, "{file}: nothing was trimmed");
        assert_eq!(with("transport.backend=rust"), interpreted, "{file} {edits:?}");
    }
}

#[test]
fn every_back_end_of_a_model_gives_the_same_run() {
    for (file, program) in
        [("incast_ndp.toml", "ndp"), ("incast.toml", "homa"), ("incast.toml", "homa-tr")]
    {
        let nic = format!("kind=\"nic\", preset=\"firesim\", program=\"{program}\"");
        let with = |backend| run(file, &[&format!("transport={{{nic}, backend=\"{backend}\"}}")]);
        let model = with("model");
        assert_eq!(model.0, 10, "{program}");
        assert_eq!([with("rust"), with("interpreter")], [model, model], "{program}");
    }
}

fn error(edits: &[&str]) -> String {
    match load("incast.toml", edits) {
        Ok(_) => panic!("{edits:?} is accepted"),
        Err(error) => error,
    }
}

#[test]
fn what_is_wrong_with_a_program_is_said_in_its_place() {
    let missing = error(&["transport.program=nowhere.p4"]);
    assert!(missing.contains("cannot read") && missing.contains("nowhere.p4"), "{missing}");
    let constant = error(&["transport.constants={TRUM=true}"]);
    assert!(constant.contains("TRUM"), "{constant}");
    let kind = error(&["transport.constants={TRIM=\"yes\"}"]);
    assert!(kind.contains("`TRIM` is a text, not a number or true or false"), "{kind}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("broken.p4");
    std::fs::write(
        &file,
        "#include <core.p4>\n#include <nano.p4>\nheader h_t { bit<8> a; }\nbit<8> x = ;\n",
    )
    .unwrap();
    let broken = error(&[&format!("transport.program={}", file.display())]);
    assert!(broken.contains("broken.p4:4:"), "{broken}");
    std::fs::write(&file, "#include \"wrong.inc\"\n").unwrap();
    std::fs::write(dir.path().join("wrong.inc"), "header h_t { bit<8> a }\n").unwrap();
    let included = error(&[&format!("transport.program={}", file.display())]);
    let place = format!("{}:1:21: ", dir.path().join("wrong.inc").display());
    assert!(included.starts_with(&place), "with its folder: {included}");
    std::fs::write(dir.path().join("wrong.inc"), [0xff]).unwrap();
    let binary = error(&[&format!("transport.program={}", file.display())]);
    assert!(binary.contains("cannot read `wrong.inc`: it is not text (UTF-8)"), "{binary}");
}

/// A run says what its program is warned of, for it may be the cause of its results.
#[test]
fn warnings_of_a_program_are_warnings_of_the_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4");
    let dir = tempfile::tempdir().unwrap();
    for file in ["homa.p4", "homa_rules.p4", "headers.p4"] {
        let mut text = std::fs::read_to_string(folder.join(file)).unwrap();
        if file == "homa.p4" {
            text += "const bit<8> ODD = 300;\n";
        }
        std::fs::write(dir.path().join(file), text).unwrap();
    }
    let program = dir.path().join("homa.p4");
    let program = format!("transport.program={}", program.display());
    let scenario = load("incast.toml", &[&program, "transport.backend=interpreter"]).unwrap();
    let results = evaluate(&scenario, &Options::default(), &mut |_| ()).unwrap();
    let said = &results.summary.warnings;
    assert!(
        said.iter().any(|w| w.contains("homa.p4:") && w.contains("300 does not fit")),
        "{said:?}"
    );
}

#[test]
fn impossible_nics_are_refused() {
    let error = |edit| error(&[edit]);
    assert!(error("transport.rx_messages=12").contains("powers of two"));
    assert!(error("transport.priorities=0").contains("`priorities` is zero"));
    assert!(error("transport.timeout=0").contains("`timeout` is zero"));
    let generated = error(
        "transport={kind=\"nic\", program=\"../../p4/homa.p4\", backend=\"rust\", protocol=154, priorities=4, preset=\"firesim\", constants={OVERCOMMITMENT=2}}",
    );
    assert!(generated.contains("there is no generated Rust"), "{generated}");
}

/// A message that no buffer can hold is an error before the run where that is known.
#[test]
fn a_message_too_long_for_the_nic_is_an_error_of_its_traffic() {
    let long = error(&["traffic={kind=\"incast\", senders=10, receiver=0, size=\"40KB\"}"]);
    let hint = "38912B at most, or larger [[transport.buffer]]";
    assert!(long.contains("no message of 40000B") && long.contains(hint), "{long}");
    let endless = error(&["traffic={kind=\"incast\", senders=1, receiver=0, size=\"unbounded\"}"]);
    assert!(endless.contains("no message without an end"), "{endless}");
}
