//! `trimline new transport`: what it writes compiles here, and its own tests are run with ours.
//! `make recipes` builds it as a crate outside of the tree.

use std::path::Path;

use assert_cmd::Command;

/// The program of the template with its transport and its tests.
#[allow(dead_code, unreachable_pub, missing_docs)]
#[path = "../../template/src/main.rs"]
mod template;

fn new(dir: &Path, args: &[&str]) -> std::process::Output {
    let mut command = Command::cargo_bin("trimline").unwrap();
    command.current_dir(dir).args(["new", "transport"]).args(args).output().unwrap()
}

#[test]
fn a_crate_is_written_once_and_names_the_sources() {
    let dir = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let written = new(dir.path(), &["my-own", "--trimline", root.to_str().unwrap()]);
    assert!(written.status.success(), "{written:?}");
    let made = dir.path().join("my-own");
    let manifest = std::fs::read_to_string(made.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"my-own\""), "{manifest}");
    assert!(manifest.contains("crates/endpoint\" }"), "{manifest}");
    for file in ["src/main.rs", "src/transport.rs", "scenario.toml", "Cargo.lock"] {
        assert!(made.join(file).is_file(), "{file}");
    }
    let again = new(dir.path(), &["my-own"]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    for bad in [&["Own"][..], &["own", "--trimline", "nowhere"], &["../own"]] {
        let refused = new(dir.path(), bad);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing of the refused ones");
}
