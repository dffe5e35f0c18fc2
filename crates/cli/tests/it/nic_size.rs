//! `trimline nic size`: what it prints runs, and what makes no sense is refused.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

fn trimline(args: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::cargo_bin("trimline").unwrap().current_dir(root).args(args).output().unwrap()
}

fn size(args: &[&str]) -> Output {
    trimline(&[&["nic", "size"], args].concat())
}

/// specs/nanotransport.md#15.3: 16 messages of 39 KB take 1.2 MB; specs/nanotransport.md#17: 128 of
/// 32 KB take 8.4 MB.
#[test]
fn the_memory_of_the_publication() {
    for (sram, longest, buffers) in [("1245184B", "38912B", 16), ("8388608B", "32768B", 128)] {
        let output = size(&["homa-w3", "--sram", sram, "--longest", longest, "--json"]);
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let single = &said["single"];
        assert_eq!(single["sram_bytes"].as_u64().unwrap().to_string() + "B", sram);
        assert_eq!(single["classes"][0]["buffers"], buffers);
        let chosen = &said["chosen"];
        assert!(chosen["sram_bytes"].as_u64() <= single["sram_bytes"].as_u64());
        assert!(said["at_once"].as_u64() > Some(10 * buffers), "classes hold more: {said}");
        let all_at_once = &chosen["refused"][1];
        assert_eq!(all_at_once["at_once"], said["at_once"]);
        assert!(all_at_once["share"].as_f64().unwrap() <= 0.001, "{said}");
    }
}

#[test]
fn the_keys_that_it_prints_make_a_nic() {
    let output = size(&["homa-w3", "--sram", "1245184B"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let (_, keys) = said.split_once("kind = \"nic\":\n").unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/p4");
    let scenario = std::fs::read_to_string(root.join("window.toml")).unwrap();
    let scenario = scenario.replace("\"../../p4", &format!("\"{}/../../p4", root.display()));
    let preset = "preset = \"firesim\"\n";
    assert!(scenario.contains(preset), "{scenario}");
    // The classes of buffers at the end, so that what follows `preset` stays in [transport].
    let (ids, classes) = keys.split_once("[[").unwrap();
    let scenario = scenario.replacen(preset, &format!("{preset}{ids}"), 1) + "\n[[" + classes;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sized.toml");
    std::fs::write(&file, scenario).unwrap();
    let out = dir.path().join("out");
    let ran = trimline(&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let stdout = String::from_utf8(ran.stdout).unwrap();
    let completed = stdout.lines().find(|line| line.contains("messages completed")).unwrap();
    assert!(completed.ends_with(" 4 │"), "{completed}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (args, says, hint) in [
        (&["homa-w33", "--sram", "1MB"][..], "neither a published", "did you mean `homa-w3`"),
        (&["homa-w3"], "neither --sram nor --messages", "how much memory"),
        (&["homa-w3", "--sram", "9MB"], "more than buffer pointers", "8388608B"),
        (&["homa-w3", "--sram", "70KB"], "cannot hold one message", "77824B can"),
        (&["homa-w3", "--messages", "4096", "--classes", "1"], "each way", "reach 4194304B"),
        (&["homa-w5", "--sram", "1MB", "--longest", "100B"], "no message is as short", "1430B"),
        (&["README.md", "--sram", "1MB"], "more than two columns", "README.md:3:18"),
        (&["homa-w3", "--sram", "1M"], "--sram", "1M"),
        (&["homa-w3", "--messages", "0"], "--messages", "1..=4096"),
        (&["homa-w3", "--longest", "70KB"], "--longest", "65472B"),
        (&["homa-w3", "--refused", "-1"], "-1", "--help"),
    ] {
        let output = size(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(says) && said.contains(hint), "{args:?}:\n{said}");
    }
}
