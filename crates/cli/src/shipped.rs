//! What the program carries: scenarios, studies, P4 programs and Wireshark's script, as they are in
//! the sources.

use std::fs;
use std::io;
use std::path::Path;

use scenario::{Diagnostic, Error};

use crate::{Ended, say_written, write_new};

/// Path and text of each file, sorted.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The scenarios and what they are called.
pub(crate) fn scenarios() -> Vec<(&'static str, String)> {
    let named = |(path, text): &(&'static str, &str)| {
        let name = text.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some((*path, name.trim_matches('"').to_owned()))
    };
    let scenarios = FILES.iter().filter(|(path, _)| path.starts_with("scenarios/"));
    scenarios.filter(|(path, _)| path.ends_with(".toml")).filter_map(named).collect()
}

/// The studies and their titles.
pub(crate) fn studies() -> Vec<(&'static str, String)> {
    let titled = |(path, text): &(&'static str, &str)| {
        let name = path.strip_prefix("studies/")?.strip_suffix("/study.toml")?;
        let title = text.lines().find_map(|line| line.strip_prefix("title = "))?;
        Some((name, title.trim_matches('"').to_owned()))
    };
    FILES.iter().filter_map(titled).collect()
}

/// Changes with any of the files.
pub(crate) fn fingerprint() -> u32 {
    let all = FILES.iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]);
    let all: Vec<u8> = all.flatten().copied().collect();
    // The low bits of a product are as good as any.
    scenario::fingerprint_128(&all) as u32
}

/// `trimline examples`.
pub(crate) fn examples(dir: &Path, json: bool) -> Ended {
    write(dir)?;
    let (name, count) = (dir.display(), FILES.len());
    let next = format_args!("try: cd {name} && trimline run scenarios/first.toml");
    say_written(json, dir, format_args!("{count} files in {name}; {next}"))
}

/// Write all files below `dir`. A file that is there and differs is left alone, and nothing is
/// written.
pub(crate) fn write(dir: &Path) -> Ended {
    let there = FILES.iter().find(|(name, text)| {
        let path = dir.join(name);
        path.exists() && fs::read(&path).ok().as_deref() != Some(text.as_bytes())
    });
    if let Some((name, _)) = there {
        let path = dir.join(name);
        let error = Diagnostic::new(format!("{} is there, and it differs", path.display()));
        return Err(error.hint("choose another directory, or remove it").into());
    }
    for (name, text) in FILES {
        put(&dir.join(name), text).map_err(|e| unwritable(&dir.join(name), &e))?;
    }
    Ok(())
}

/// A link in the place of a file is not followed.
fn put(path: &Path, text: &str) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    match write_new(path, text) {
        // The same text, as was looked at before.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written,
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    let error = Diagnostic::new(format!("cannot write {}: {error}", path.display()));
    error.hint("choose another directory").into()
}
