//! docs/third-party.md lists what the program is linked with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const HEAD: &str = "# Third-party licences\n\nThe libraries that `trimline` and its Python package are \
linked with on Linux, by licence. Made from Cargo.lock by `TRIMLINE_BLESS=1 cargo test -p trimline licences`.\n\n\
| licence | libraries |\n|---|---|\n";

/// What stands in the pages of results.
fn of_pages(root: &Path) -> String {
    let folder = "crates/report/vendor/uplot";
    let read = |file: &str| std::fs::read_to_string(root.join(folder).join(file)).unwrap();
    let (licence, library) = (read("LICENSE"), read("uPlot.iife.min.js"));
    assert!(licence.starts_with("The MIT License (MIT)"), "{licence}");
    let version = library.split_once("(v").and_then(|(_, rest)| rest.split_once(')')).unwrap().0;
    format!("\nPages of results contain uPlot {version} (MIT), which is in `{folder}`.\n")
}

#[test]
fn every_library_and_its_licence_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let what = [
        "tree",
        "-p",
        "trimline",
        "-p",
        "trimline-python",
        "-e",
        "normal",
        "--prefix",
        "none",
        "--offline",
    ];
    let target = ["--target", "x86_64-unknown-linux-gnu", "--format", "{p}|{l}"];
    let output =
        Command::new(env!("CARGO")).current_dir(&root).args(what).args(target).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut by_licence: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let Some((package, licence)) = line.split_once('|') else { continue };
        let name = package.split(' ').next().unwrap_or(package).to_owned();
        // What is repeated is marked; `/` is an old way to write OR.
        let licence = licence.trim_end_matches(" (*)").replace('/', " OR ");
        if !name.starts_with("trimline") {
            by_licence.entry(licence).or_default().insert(name);
        }
    }
    let line = |(licence, names): (&String, &BTreeSet<String>)| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        format!("| {licence} | {} |\n", names.join(", "))
    };
    let whole =
        HEAD.to_owned() + &by_licence.iter().map(line).collect::<String>() + &of_pages(&root);
    let page = root.join("docs/third-party.md");
    if std::env::var_os("TRIMLINE_BLESS").is_some() {
        std::fs::write(&page, &whole).unwrap();
    }
    let there = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(there == whole, "docs/third-party.md: run this test with TRIMLINE_BLESS=1");
}
