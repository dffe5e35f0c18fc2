//! Rust names for the names of the source.

use std::collections::BTreeSet;

use crate::ir::{ActionId, Pipeline, SlotId};

/// Names that may not be used, or mean something else.
const TAKEN: [&str; 53] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "cx", "_",
];

/// Names of a pipeline.
pub(super) struct Names {
    slots: Vec<String>,
    actions: Vec<String>,
}

impl Names {
    pub(super) fn new(pipeline: &Pipeline) -> Self {
        let mut slots = Unique::default();
        let mut actions = Unique::default();
        Self {
            slots: pipeline.slots.iter().map(|slot| slots.name("", &slot.name)).collect(),
            actions: pipeline.actions.iter().map(|a| actions.name("action_", &a.name)).collect(),
        }
    }

    /// Field of a slot.
    pub(super) fn slot(&self, slot: SlotId) -> &str {
        &self.slots[slot.index()]
    }

    /// Method of an action.
    pub(super) fn action(&self, action: ActionId) -> &str {
        &self.actions[action.index()]
    }
}

/// Makes names that are legal and differ.
#[derive(Default)]
pub(super) struct Unique {
    used: BTreeSet<String>,
}

impl Unique {
    /// `prefix` and the name, in snake case: `hdr.ndp.msg_len` is `hdr_ndp_msg_len`,
    /// `hdr.ndp.$valid` is `hdr_ndp_is_valid`. A number follows where that is used already.
    pub(super) fn name(&mut self, prefix: &str, source: &str) -> String {
        let plain = snake(&source.replace("$valid", "is_valid"));
        let mut name = format!("{prefix}{plain}");
        if TAKEN.contains(&name.as_str()) || name.starts_with(|c: char| c.is_ascii_digit()) {
            name = format!("p4_{name}");
        }
        let mut count = 1;
        let first = name.clone();
        while !self.used.insert(name.clone()) {
            count += 1;
            name = format!("{first}_{count}");
        }
        name
    }
}

/// In snake case, with letters, digits and underscores only.
fn snake(source: &str) -> String {
    let mut out = String::new();
    let mut lower = false;
    for c in source.chars() {
        if c.is_ascii_uppercase() {
            if lower {
                out.push('_');
            }
            out.push(c.to_ascii_lowercase());
        } else if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
        lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    out
}

/// A name in camel case, for types: `ingress_parser` is `IngressParser`.
pub(super) fn camel(source: &str) -> String {
    let words = snake(source);
    let words = words.split('_').map(|word| {
        let (first, rest) = word.split_at(usize::from(!word.is_empty()));
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_differ() {
        let mut unique = Unique::default();
        let names = ["hdr.ndp.msgLen", "hdr.ndp.$valid", "hdr.ndp.is_valid", "type", "$temp", "8x"];
        let names: Vec<String> = names.iter().map(|name| unique.name("", name)).collect();
        let wanted = [
            "hdr_ndp_msg_len",
            "hdr_ndp_is_valid",
            "hdr_ndp_is_valid_2",
            "p4_type",
            "temp",
            "p4_8x",
        ];
        assert_eq!(names, wanted);
        assert_eq!(camel("ingress_parser"), "IngressParser");
    }
}
