//! Keys, output and public names have the words of the field. `vocabulary.toml` beside this file
//! lists those that they must not have, where each is looked for, and what to write instead.

use toml::{Table, Value};

use crate::tree;

/// The sections of `vocabulary.toml` called `name`: the section, an old word, the new one.
fn words(name: &str) -> Vec<(Table, String, String)> {
    let list: Table = include_str!("vocabulary.toml").parse().unwrap();
    let sections = list[name].as_array().unwrap().iter();
    let pairs = sections.flat_map(|section| {
        let section = section.as_table().unwrap();
        let pair = |(old, new): (&String, &Value)| {
            (section.clone(), old.clone(), new.as_str().unwrap().to_owned())
        };
        section["words"].as_table().unwrap().iter().map(pair).collect::<Vec<_>>()
    });
    pairs.collect()
}

/// Whether one of the strings in `section[key]` satisfies `is`; also if there are none.
fn is_one(section: &Table, key: &str, is: impl Fn(&str) -> bool) -> bool {
    let Some(list) = section.get(key).and_then(Value::as_array) else { return true };
    list.iter().filter_map(Value::as_str).any(is)
}

/// The product sources: `crates/NAME/src`, without tests that have a file of their own.
fn sources() -> Vec<(String, String)> {
    let is_product = |path: &str| {
        path.starts_with("crates/")
            && path.contains("/src/")
            && path.ends_with(".rs")
            && !path.contains("tests")
            && !path.starts_with("crates/testkit/")
    };
    tree::files().into_iter().filter(|(path, _)| is_product(path)).collect()
}

/// The string literals of a source: the line of each, what stands before it, what it holds.
fn literals(text: &str) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut at = 0;
        while let Some(open) = line[at..].find(['"', '/']).map(|open| at + open) {
            if line[open..].starts_with("//") {
                break;
            }
            if line[open..].starts_with('/') || line[..open].ends_with('\'') {
                at = open + 1;
                continue;
            }
            let body = &line[open + 1..];
            let escaped = |i: usize| body[..i].chars().rev().take_while(|c| *c == '\\').count() % 2;
            let end = body.match_indices('"').find(|(i, _)| escaped(*i) == 0);
            let end = end.map_or(body.len(), |(i, _)| i);
            found.push((number + 1, &line[..open], &body[..end]));
            at = (open + end + 2).min(line.len());
        }
    }
    found
}

/// The keys that a `keys!` table defines: the line and the name of each.
fn defined(text: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        inside = (inside || line.starts_with("keys!")) && !line.starts_with('}');
        let Some(rest) = line.strip_prefix("    ").filter(|_| inside) else { continue };
        let name = rest.split([':', ' ']).next().unwrap_or("");
        found.push((number + 1, name));
    }
    found
}

/// The keys of a table and of those in it.
fn keys_of(table: &Table, found: &mut Vec<String>) {
    for (key, value) in table {
        found.push(key.clone());
        let inner: Vec<&Value> = match value {
            Value::Array(list) => list.iter().collect(),
            value => vec![value],
        };
        inner.into_iter().filter_map(Value::as_table).for_each(|table| keys_of(table, found));
    }
}

fn check(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} to rename:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn keys_have_the_words_of_the_field() {
    let words = words("keys");
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let Some(file) = path.strip_prefix("crates/scenario/src/") else { continue };
        let literals = literals(&text).into_iter();
        let literals = literals.filter(|(_, before, _)| !before.ends_with(".was("));
        let found: Vec<(usize, &str)> =
            literals.map(|(line, _, text)| (line, text)).chain(defined(&text)).collect();
        for (section, old, new) in &words {
            if !is_one(section, "files", |files| file.starts_with(files)) {
                continue;
            }
            let here = found.iter().filter(|(_, text)| text == old);
            wrong.extend(here.map(|(line, _)| format!("{path}:{line}: `{old}`: write `{new}`")));
        }
    }
    check(&wrong);
}

#[test]
fn scenarios_and_the_reference_have_the_words_of_the_field() {
    let words = words("keys");
    let everywhere: Vec<_> =
        words.iter().filter(|(section, ..)| !section.contains_key("files")).collect();
    let mut wrong = Vec::new();
    for (path, text) in tree::files() {
        let mut keys = Vec::new();
        if path == "docs/scenario-reference.md" {
            let cells = text.lines().filter_map(|line| line.strip_prefix("| `"));
            keys.extend(
                cells.filter_map(|rest| rest.split_once('`')).map(|(key, _)| key.to_owned()),
            );
        } else if path.starts_with("scenarios/") || path.starts_with("studies/") {
            let Some(table) = path.ends_with(".toml").then(|| text.parse().ok()).flatten() else {
                continue;
            };
            keys_of(&table, &mut keys);
        }
        for (_, old, new) in &everywhere {
            if keys.iter().any(|key| key == old || key.ends_with(&format!(".{old}"))) {
                wrong.push(format!("{path}: `{old}`: write `{new}`"));
            }
        }
    }
    check(&wrong);
}

#[test]
fn output_has_the_words_of_the_field() {
    let words = words("output");
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let of = path.split('/').nth(1).unwrap();
        let words =
            words.iter().filter(|(section, ..)| is_one(section, "crates", |only| only == of));
        let words: Vec<_> = words.collect();
        for (line, _, text) in literals(&text) {
            for (section, old, new) in &words {
                let whole = section.contains_key("whole");
                // "  median, us" is a label, too.
                let label = text.split(',').next().unwrap_or("").trim();
                if label == old || (!whole && text.contains(old.as_str())) {
                    wrong.push(format!("{path}:{line}: \"{old}\": write \"{new}\""));
                }
            }
        }
    }
    for (path, text) in tree::files() {
        if !path.starts_with("docs/") || path.starts_with("docs/notebook/") {
            continue;
        }
        for (section, old, new) in &words {
            if !section.contains_key("whole") && text.contains(old.as_str()) {
                wrong.push(format!("{path}: \"{old}\": write \"{new}\""));
            }
        }
    }
    check(&wrong);
}

#[test]
fn public_names_have_the_words_of_the_field() {
    let kinds = [
        ("types", &["struct", "enum", "trait", "type"][..]),
        ("functions", &["fn", "const fn", "unsafe fn"][..]),
    ];
    let mut wrong = Vec::new();
    for (name, kinds) in kinds {
        let words = words(name);
        for (path, text) in sources() {
            let of = path.split('/').nth(1).unwrap();
            for (number, line) in text.lines().enumerate() {
                let Some(line) = line.trim_start().strip_prefix("pub ") else { continue };
                let name = kinds.iter().find_map(|kind| line.strip_prefix(&format!("{kind} ")));
                let Some(name) = name else { continue };
                let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
                let name = &name[..end.unwrap_or(name.len())];
                for (section, old, new) in &words {
                    if name == old && is_one(section, "crates", |only| only == of) {
                        wrong.push(format!("{path}:{}: `{old}`: write `{new}`", number + 1));
                    }
                }
            }
        }
    }
    check(&wrong);
}

/// The checks themselves.
#[test]
fn literals_and_keys_are_found() {
    let text = "let a = \"one\"; // \"no\"\nb('\"', \"t\\\"wo\").was(\"three\")";
    let found: Vec<_> = literals(text).into_iter().map(|(line, _, text)| (line, text)).collect();
    assert_eq!(found, [(1, "one"), (2, "t\\\"wo"), (2, "three")]);
    assert!(literals(text)[2].1.ends_with(".was("));
    let table = "keys! { KEYS: Config {\n    gain: f64, \"text\";\n    per_hop (get)\n}}\n    x: y";
    assert_eq!(defined(table), [(2, "gain"), (3, "per_hop")]);
    let mut keys = Vec::new();
    keys_of(&"a.b = 1\n[[c]]\nd = { e = 2 }".parse().unwrap(), &mut keys);
    assert_eq!(keys, ["a", "b", "c", "d", "e"]);
    assert!(words("types").len() > 10 && words("keys").len() > 20);
}
