//! Names of signals: those of the program as far as SystemVerilog lets them.

use std::collections::BTreeSet;

/// Names that are taken.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

/// Words of the language with an underscore in them. Those without cannot be names here.
const KEYWORDS: [&str; 14] = [
    "accept_on",
    "always_comb",
    "always_ff",
    "always_latch",
    "first_match",
    "reject_on",
    "s_always",
    "s_eventually",
    "s_nexttime",
    "s_until",
    "s_until_with",
    "sync_accept_on",
    "sync_reject_on",
    "until_with",
];

impl Names {
    /// The path of something in the source as a name of a signal that no other has.
    pub(super) fn signal(&mut self, path: &str) -> String {
        let name = plain(path);
        // A word alone may be one of the language's.
        let odd = !name.contains('_') || KEYWORDS.contains(&name.as_str());
        self.unique(if odd { format!("{name}_v") } else { name }, "")
    }

    /// A name that ends so, of a port: what stands behind the last point of a path, or more of it if
    /// that is taken.
    pub(super) fn port(&mut self, path: &str, end: &str) -> String {
        let last = plain(path.rsplit('.').next().unwrap_or(path));
        if self.0.contains(&format!("{last}{end}")) {
            return self.unique(plain(path), end);
        }
        self.unique(last, end)
    }

    pub(super) fn unique(&mut self, name: String, end: &str) -> String {
        let mut whole = format!("{name}{end}");
        let mut number = 1;
        while !self.0.insert(whole.clone()) {
            number += 1;
            whole = format!("{name}_{number}{end}");
        }
        whole
    }
}

/// A path as one word.
pub(super) fn plain(path: &str) -> String {
    let path = path.replace("$valid", "valid");
    let words = path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let name = words.join("_");
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("p4_{name}") }
}
