//! A training job from a trace: GOAL, SimAI, AICB or Chakra files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ai::TaskGraph;
use ai::collective::Algorithm;
use ai::readers::{self, File, Format, Options, ReadError, Trace};

use super::Context;
use crate::diagnostic::{Checked, Diagnostic, Source};
use crate::files;

/// A file that was read: its name as messages show it, and what it holds.
struct Loaded {
    name: String,
    bytes: Vec<u8>,
}

impl Loaded {
    fn file(&self) -> File<'_> {
        File { name: &self.name, bytes: &self.bytes }
    }
}

/// The tasks of the trace that `file` names, for at most `room` ranks, and the algorithm of
/// collectives if its files say it.
pub(super) fn trace(
    cx: &mut Context<'_, '_>,
    room: u32,
) -> Checked<(TaskGraph, Option<Algorithm>)> {
    let (path, first) = load(cx, "file")?;
    let Some(format) = Format::of(&first.name) else {
        let message = format!("`{}` is no trace of a training job", first.name);
        let ends = Format::ALL.map(|(_, name, end)| format!("{end} ({name})"));
        let error = cx.table.error("file", message, "unknown kind of file");
        return Err(error.hint(format!("traces end in {}", ends.join(", "))));
    };
    let files = match format {
        Format::Chakra => of_all_ranks(cx, &path, first)?,
        _ => vec![first],
    };
    let mut json = Vec::new();
    for key in ["groups", "system"] {
        json.push(if cx.table.has(key) { Some(load(cx, key)?.1) } else { None });
    }
    let all = files.iter().chain(json.iter().flatten());
    let all: Vec<&[u8]> = all.map(|loaded| loaded.bytes.as_slice()).collect();
    files::unchanged_bytes(cx.table, "fingerprint", all)?;
    let [groups, system] = [&json[0], &json[1]].map(|json| json.as_ref().map(Loaded::file));
    let list: Vec<File<'_>> = files.iter().map(Loaded::file).collect();
    let trace = readers::read(&list, format, &Options { ranks: room, groups, system });
    let trace = trace.map_err(|error| {
        let loaded = files.iter().chain(json.iter().flatten());
        diagnostic(cx, error, loaded)
    })?;
    warn(cx, &trace);
    Ok((trace.graph, trace.algorithm))
}

/// Read the file that `key` names.
fn load(cx: &mut Context<'_, '_>, key: &'static str) -> Checked<(PathBuf, Loaded)> {
    let written: PathBuf = cx.table.need(key)?;
    let path = files::found(cx.table, key, cx.dir, &written);
    let path = std::path::absolute(&path).unwrap_or(path);
    let bytes = files::read_bytes(&path)
        .map_err(|why| files::unreadable(cx.table, key, &path, &why))?;
    cx.table.resolve(key, &path);
    Ok((path, Loaded { name: written.display().to_string(), bytes }))
}

/// The files of all ranks: those beside `first` that differ from it in the rank only.
fn of_all_ranks(cx: &Context<'_, '_>, path: &Path, first: Loaded) -> Checked<Vec<Loaded>> {
    let stem = |name: &str| {
        let (stem, rank) = name.strip_suffix(".et")?.rsplit_once('.')?;
        rank.parse::<u32>().is_ok().then(|| stem.to_owned())
    };
    let name_of = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let Some(wanted) = name_of(path).and_then(|name| stem(&name)) else {
        let message = format!("`{}` does not name a rank", first.name);
        let error = cx.table.error("file", message, "NAME.0.et is missing");
        return Err(error.hint("name the file of rank 0: those of the others are beside it"));
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let shown = Path::new(&first.name).parent().unwrap_or(Path::new("")).to_owned();
    let unreadable = |path: &Path, why: &str| files::unreadable(cx.table, "file", path, why);
    let entries =
        std::fs::read_dir(folder).map_err(|e| unreadable(folder, &files::plain(&e)))?;
    let mut all = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| unreadable(folder, &files::plain(&e)))?.path();
        let Some(name) = name_of(&path) else { continue };
        if stem(&name).as_ref() != Some(&wanted) {
            continue;
        }
        let bytes = files::read_bytes(&path).map_err(|why| unreadable(&path, &why))?;
        all.push(Loaded { name: shown.join(name).display().to_string(), bytes });
    }
    // The order of a folder is nobody's: that of fingerprints must not depend on it.
    all.sort_by(|a, b| (a.name.len(), &a.name).cmp(&(b.name.len(), &b.name)));
    Ok(all)
}

fn diagnostic<'l>(
    cx: &Context<'_, '_>,
    error: ReadError,
    mut loaded: impl Iterator<Item = &'l Loaded>,
) -> Diagnostic {
    match error {
        ReadError::Text(error) => {
            let bytes = loaded.find(|loaded| loaded.name == error.file);
            let text = String::from_utf8_lossy(bytes.map_or(&[], |loaded| &loaded.bytes));
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
            files::located(&Arc::new(Source { name: error.file.clone(), text }), &error)
        }
        ReadError::Record(error) => {
            let text = error.to_string();
            let message = text.split("\n  hint: ").next().unwrap_or("").to_owned();
            cx.table.error("file", message, "of this trace").hint(error.hint)
        }
    }
}

/// Name what of the trace is not played as it stands.
fn warn(cx: &Context<'_, '_>, trace: &Trace) {
    for warning in &trace.warnings {
        let warning = cx.table.error("file", warning.to_string(), "in this trace").warning();
        cx.table.warn(warning.hint("docs/specs/ai-traces.md says what traces hold"));
    }
}
