//! Tells the crate which commit it is built from, for the manifests of runs. A tree without git (a
//! release's archive) or a machine without it has none.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let Some(crate_dir) = std::env::var_os("CARGO_MANIFEST_DIR") else { return };
    let root = Path::new(&crate_dir).join("../..");
    // Not the repository of somebody who unpacked an archive inside theirs.
    if !root.join(".git").exists() {
        return;
    }
    let git = |args: &[&str]| {
        let output = Command::new("git").current_dir(&root).args(args).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    if let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) {
        println!("cargo::rustc-env=TRIMLINE_GIT={commit}");
    }
    // Written at every commit and checkout; a path that is not there would mean a build each time.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        let log = root.join(log);
        if log.is_file() {
            println!("cargo::rerun-if-changed={}", log.display());
        }
    }
}
