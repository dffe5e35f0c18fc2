//! The results of an earlier `trimline bench --json`, to compare with.

use std::path::Path;
use std::sync::Arc;

use scenario::{Diagnostic, Error, Source};
use serde::Deserialize;

use super::cases::Case;

/// What is compared of one case and number of threads. Keys that are not compared may be anything.
#[derive(Deserialize)]
pub(super) struct Old {
    pub(super) name: String,
    pub(super) threads: u32,
    pub(super) ns_per_packet_hop: f64,
    pub(super) wall_s: f64,
    #[serde(default)]
    pub(super) instructions_per_packet_hop: Option<f64>,
    pub(super) peak_rss_mb: f64,
    /// Absent from files of version 0.1.0 and before.
    #[serde(default)]
    pub(super) digest: Option<String>,
}

const HINT: &str = "give what an earlier `trimline bench --json` printed";

/// Read the results in `path`, of which at least one must be of `cases` and `threads`.
pub(super) fn read(path: &Path, cases: &[&Case], threads: &[u32]) -> Result<Vec<Old>, Error> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|e| Diagnostic::new(format!("cannot read {name}: {e}")).hint(HINT))?;
    let all: Vec<Old> = serde_json::from_str(&text).map_err(|e| malformed(&name, text, &e))?;
    let common = |old: &&Old| {
        cases.iter().any(|case| case.name == old.name) && threads.contains(&old.threads)
    };
    if all.iter().any(|old| common(&old)) {
        return Ok(all);
    }
    let has: Vec<String> =
        all.iter().map(|old| format!("{} with --threads {}", old.name, old.threads)).collect();
    let has = if has.is_empty() { "nothing".to_owned() } else { has.join(", ") };
    let what = "has no case and number of threads of this bench, so there is nothing to compare";
    Err(Diagnostic::new(format!("{name} {what}")).hint(format!("it has {has}")).into())
}

/// Not JSON, or not that of a bench: where, and what is wrong.
fn malformed(name: &str, text: String, error: &serde_json::Error) -> Diagnostic {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let offset = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
    let mut start = offset.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let what = error.to_string();
    // The place is drawn, not said.
    let what = what.rsplit_once(" at line ").map_or(what.as_str(), |(what, _)| what);
    let source = Arc::new(Source { name: name.to_owned(), text });
    Diagnostic::new(format!("{name} is not the result of a bench: {what}"))
        .at(&source, start..start + 1, "here")
        .hint(HINT)
}
