//! The tables of tests/golden: what peers gave, and whether every point is to be run.

use std::path::{Path, PathBuf};

/// The directory of `peer`.
pub(crate) fn dir(peer: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(peer)
}

/// The rows of a table of `peer`, without its heading.
pub(crate) fn rows(peer: &str, file: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(dir(peer).join(file)).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Whether every point is wanted (`make golden`), not the quick ones only.
pub(crate) fn is_whole() -> bool {
    std::env::var("TRIMLINE_GOLDEN").is_ok_and(|which| which == "all")
}
