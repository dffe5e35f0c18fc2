//! The arrows between crates (ARCHITECTURE.md), against one table.

use std::collections::BTreeSet;
use std::path::Path;

/// What each crate may depend on. A crate that is not here may not exist.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("wire", &["units"]),
    ("endpoint", &["units", "wire"]),
    ("transports", &["units", "wire", "endpoint"]),
    ("p4", &[]),
    ("nic", &["units", "wire", "endpoint", "p4"]),
    ("programs", &["p4"]),
    ("rtl", &["units", "wire", "endpoint", "p4", "nic"]),
    ("workload", &["units", "endpoint"]),
    ("ai", &["units", "endpoint", "workload"]),
    ("queues", &["units", "wire", "endpoint"]),
    ("fabric", &["units", "wire", "endpoint", "queues"]),
    ("xdp", &[]),
    ("host", &["units", "wire", "endpoint", "xdp"]),
    ("flow", &["units", "endpoint", "fabric"]),
    ("switch", &["units", "wire", "endpoint", "queues", "fabric", "xdp"]),
    ("c", &["units", "endpoint", "transports", "host"]),
    ("metrics", &["units"]),
    ("report", &["units", "metrics"]),
    ("testkit", &["units", "wire", "endpoint"]),
    (
        "scenario",
        &[
            "units",
            "wire",
            "endpoint",
            "transports",
            "p4",
            "nic",
            "rtl",
            "programs",
            "workload",
            "ai",
            "queues",
            "fabric",
            "flow",
            "host",
            "switch",
            "metrics",
        ],
    ),
    ("study", &["units", "endpoint", "fabric", "metrics", "scenario"]),
    (
        "cli",
        &[
            "units", "p4", "nic", "rtl", "fabric", "switch", "metrics", "report", "scenario",
            "study",
        ],
    ),
    ("python", &["units", "endpoint", "metrics", "scenario", "study", "cli"]),
];

fn manifest(folder: &Path) -> toml::Table {
    let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    text.parse().unwrap()
}

fn own_dependencies(manifest: &toml::Table, table: &str) -> BTreeSet<String> {
    let names: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    let dependencies = manifest.get(table).and_then(toml::Value::as_table);
    let all = dependencies.into_iter().flat_map(toml::Table::keys);
    all.filter(|name| names.contains(name.as_str())).cloned().collect()
}

#[test]
fn crates_depend_only_along_the_arrows() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let allowed = ARROWS.iter().find(|(known, _)| *known == name);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("crate {name} is not in the table"));
        let manifest = manifest(&folder);
        for table in ["dependencies", "build-dependencies"] {
            for dependency in own_dependencies(&manifest, table) {
                assert!(
                    allowed.contains(&dependency.as_str()),
                    "{name} must not depend on {dependency}"
                );
            }
        }
        found.insert(name);
    }
    assert_eq!(found.len(), ARROWS.len(), "the table names crates that do not exist: {found:?}");
}

/// One function asks the processor to prefetch; two files share memory with the kernel and call it
/// where no library does; one trusts the pointers of programs in C. Nothing else is unsafe.
#[test]
fn unsafe_code_stands_in_four_files() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        let sources = entry.unwrap().path().join("src");
        let mut folders = vec![sources];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if std::fs::read_to_string(&path).is_ok_and(|t| t.contains("(unsafe_code)"))
                {
                    found.push(path.strip_prefix(crates).unwrap().to_owned());
                }
            }
        }
    }
    found.sort();
    let allowed =
        ["c/src/lib.rs", "endpoint/src/prefetch.rs", "xdp/src/kernel.rs", "xdp/src/memory.rs"];
    assert_eq!(found, allowed.map(Path::new));
}

/// Tests may use the testkit; programs may not.
#[test]
fn the_testkit_is_for_tests() {
    for (name, allowed) in ARROWS {
        assert!(!allowed.contains(&"testkit"), "{name}");
    }
}
