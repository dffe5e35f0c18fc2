//! The tests of the Python package, in `python/tests`, with the library of this build. They need
//! the tools of `make python-setup`; without them they are skipped.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The interpreter with everything that the tests import; `None` without it.
fn python() -> Option<PathBuf> {
    let tools = root().join("target/python");
    if tools.join("ready").exists() {
        return Some(tools.join("bin/python"));
    }
    println!("skipped: no {}: make python-setup", tools.join("ready").display());
    None
}

/// The package as it is imported: the sources, and the library, which cargo leaves beside this
/// test.
fn package(dir: &Path) {
    let package = dir.join("trimline");
    std::fs::create_dir(&package).unwrap();
    for entry in std::fs::read_dir(root().join("python/trimline")).unwrap() {
        let path = entry.unwrap().path();
        symlink(&path, package.join(path.file_name().unwrap())).unwrap();
    }
    let exe = std::env::current_exe().unwrap();
    let library = exe.with_file_name("lib_trimline.so");
    symlink(library, package.join("_trimline.abi3.so")).unwrap();
}

/// Run `python -m` with `words` at the root of the repository; it must succeed.
fn run(words: &[&str]) {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    package(dir.path());
    let mut command = Command::new(python);
    command.arg("-m").args(words).current_dir(root());
    command.env("PYTHONPATH", dir.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{said}");
    // What was skipped, too.
    println!("{said}");
}

#[test]
fn the_package_does_what_its_tests_say() {
    // With what is skipped, and why. Most tests wait for a process.
    run(&["pytest", "-q", "-rs", "-n", "2", "-p", "no:cacheprovider"]);
}

#[test]
fn its_types_are_right() {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy");
    run(&["mypy", "--cache-dir", cache.to_str().unwrap()]);
}
