//! Broken programs, one mistake or a few in each, and what is said of them (`broken/*.txt` beside
//! them). To see the messages after a change: `ACCEPT=1 cargo test -p trimline-nic --test broken`,
//! and read the difference.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use trimline_p4::front;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken")
}

/// All messages about a program, and beneath each the first line of the text that it is about.
fn said(name: &str) -> (bool, String) {
    let read = |file: &str| {
        std::fs::read_to_string(folder().join(file)).map_err(|_| "there is none".to_owned())
    };
    let compiled = front::check(&read, name, &[]);
    let mut text = String::new();
    for diagnostic in &compiled.diagnostics {
        let meant = &diagnostic.source.text[diagnostic.span.clone()];
        let first = meant.lines().next().unwrap_or_default();
        writeln!(text, "{diagnostic}\n    {first}").unwrap();
    }
    (compiled.program.is_some(), text)
}

#[test]
fn every_mistake_is_said_with_its_place_and_a_hint() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "p4") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let (accepted, text) = said(&name);
        assert!(text.contains(".p4:") || text.contains(".inc:"), "{name} says nothing: {text:?}");
        assert_eq!(
            accepted,
            !text.contains(": error: "),
            "{name}: refused for errors only\n{text}"
        );
        let expected = path.with_extension("txt");
        if std::env::var_os("ACCEPT").is_some() {
            std::fs::write(&expected, &text).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != text {
            wrong.push(format!("--- {name}\n{text}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "other messages than before:\n{}", wrong.join("\n"));
    assert!(count >= 40, "only {count} programs");
}
