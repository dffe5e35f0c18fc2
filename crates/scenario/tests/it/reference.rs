//! docs/scenario-reference.md and docs/scenario.schema.json say of keys what their definitions say.
//! With UPDATE=1 in the environment they are written anew.

use std::path::{Path, PathBuf};

use trimline_scenario::list;

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Compare `text` with the page `name`, or write it.
fn same(name: &str, text: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(page(name), text).unwrap();
    }
    let there = std::fs::read_to_string(page(name)).unwrap_or_default();
    let line = there.lines().zip(text.lines()).find(|(there, text)| there != text);
    assert!(there == text, "docs/{name} differs: {line:?}; UPDATE=1 writes it anew");
}

#[test]
fn the_reference_has_every_key_as_it_is_defined() {
    let mut text = std::fs::read_to_string(page("scenario-reference.md")).unwrap();
    for section in list::keys() {
        let begin = format!("<!-- keys: {} -->\n", section.name());
        let end = "<!-- end of keys -->";
        let at = text.find(&begin).unwrap_or_else(|| panic!("no {begin}"));
        let from = at + begin.len();
        let to = from + text[from..].find(end).unwrap_or_else(|| panic!("no end of {begin}"));
        text.replace_range(from..to, &section.markdown());
    }
    same("scenario-reference.md", &text);
}

#[test]
fn the_schema_has_every_key_as_it_is_defined() {
    let schema = serde_json::to_string_pretty(&list::schema()).unwrap();
    same("scenario.schema.json", &(schema + "\n"));
}
