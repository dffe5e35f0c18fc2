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
    /// The path of something in the source as a name that no other has: it alone, and with each of
    /// these ends.
    pub(super) fn signal(&mut self, path: &str, ends: &[String]) -> String {
        let mut name = plain(path);
        // A word alone may be one of the language's.
        if !name.contains('_') || KEYWORDS.contains(&name.as_str()) {
            name += "_v";
        }
        let mut own = name.clone();
        let mut number = 1;
        let taken = |names: &BTreeSet<String>, own: &str| {
            names.contains(own) || ends.iter().any(|end| names.contains(&format!("{own}{end}")))
        };
        while taken(&self.0, &own) {
            number += 1;
            own = format!("{name}_{number}");
        }
        self.0.extend(ends.iter().map(|end| format!("{own}{end}")));
        self.0.insert(own.clone());
        own
    }

    /// A name that ends so, of a port: what stands behind the last point of a path, or all of it if
    /// that is taken.
    pub(super) fn port(&mut self, path: &str, end: &str) -> String {
        let last = plain(path.rsplit('.').next().unwrap_or(path));
        if self.0.contains(&format!("{last}{end}")) {
            return self.unique(&plain(path), end);
        }
        self.unique(&last, end)
    }

    /// This name with this end, and a number between them if that is taken.
    pub(super) fn unique(&mut self, name: &str, end: &str) -> String {
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
