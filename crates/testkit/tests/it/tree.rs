//! The files of the repository, as text.

use std::path::{Path, PathBuf};

/// Folders with sources and pages, from the root of the repository.
const FOLDERS: [&str; 9] =
    ["benches", "crates", "docs", "fuzz", "p4", "python", "scenarios", "studies", ".github"];

/// Kinds of files that are read: sources, data, pages.
const KINDS: [&str; 8] = ["cm", "md", "p4", "py", "rs", "toml", "txt", "yml"];

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.parent().unwrap().to_owned()
}

/// Every text file: its path from the root, with slashes, and what it holds. In order of paths.
pub(crate) fn files() -> Vec<(String, String)> {
    let root = root();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut list = |folder: &Path, inner: Option<&mut Vec<PathBuf>>| {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let (inside, own): (Vec<_>, Vec<_>) =
            entries.map(|entry| entry.unwrap().path()).partition(|path| path.is_dir());
        paths.extend(own);
        if let Some(inner) = inner {
            inner.extend(inside.into_iter().filter(|path| !path.ends_with("target")));
        }
    };
    list(&root, None);
    while let Some(folder) = folders.pop() {
        list(&folder, Some(&mut folders));
    }
    paths.sort();
    let known = |path: &PathBuf| {
        let kind = path.extension().and_then(|kind| kind.to_str());
        kind.is_some_and(|kind| KINDS.contains(&kind)) || path.ends_with("Makefile")
    };
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        let path = path.strip_prefix(&root).unwrap();
        let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
        Some((parts.join("/"), text))
    };
    paths.into_iter().filter(known).filter_map(read).collect()
}

/// Comments of sources are wrapped as code is, which `cargo fmt` does not do. Rows of tables and
/// figures in fences cannot be.
#[test]
fn comments_are_at_most_100_columns_wide() {
    let mut wide = Vec::new();
    for (path, text) in files() {
        if !path.starts_with("crates/") || !path.ends_with(".rs") {
            continue;
        }
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            let comment = line.trim_start().strip_prefix("//");
            let Some(comment) = comment.map(|rest| rest.trim_start_matches(['/', '!', ' '])) else {
                fenced = false;
                continue;
            };
            fenced ^= comment.starts_with("```");
            let fixed = fenced || comment.starts_with('|') || comment.starts_with("http");
            if !fixed && line.chars().count() > 100 {
                wide.push(format!("{path}:{}", number + 1));
            }
        }
    }
    assert!(wide.is_empty(), "{} comments to wrap:\n{}", wide.len(), wide.join("\n"));
}
