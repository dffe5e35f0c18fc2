//! `kind = "job"` with a `file`: a trace of a training job.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ai::readers::{self, File, Format, Options, ReadError, Trace};

use super::Context;
use crate::diagnostic::{Checked, Diagnostic, Source};
use crate::files;
use crate::reader::Reader;

/// Keys of files beside a trace.
const BESIDE: [&str; 3] = ["groups", "system", "network"];
/// What ends the name of a Chakra trace.
const CHAKRA: &str = "et";

/// The trace that `file` names, with room for `ranks` ranks. What of it counts for nothing is
/// warned of.
pub(super) fn read(cx: &mut Context<'_, '_>, ranks: u32) -> Checked<Trace> {
    let (paths, all) = contents(cx.table, "file", cx.dir, "fingerprint")?;
    let format = Format::of(&all[0].0).ok_or_else(|| {
        let message = format!("`{}` is no trace that can be read", all[0].0);
        let ends: Vec<_> =
            Format::ALL.iter().map(|(_, name, end)| format!("`{end}` ({name})")).collect();
        let hint = format!("a name that ends in {}", ends.join(", "));
        cx.table.error("file", message, "unknown kind of file").hint(hint)
    })?;
    let mut beside = [None, None, None];
    for (file, key) in beside.iter_mut().zip(BESIDE) {
        *file = maybe(cx, key)?;
        if file.is_some() && format != Format::Chakra {
            let message = format!("`{key}` goes with Chakra traces, and this is none");
            cx.table.warn(cx.table.error(key, message, "no effect").hint("leave it out").warning());
        }
    }
    fn view((name, bytes): &(String, Vec<u8>)) -> File<'_> {
        File { name, bytes }
    }
    let files: Vec<File<'_>> = all.iter().map(view).collect();
    let [groups, system, network] = beside.each_ref().map(|file| file.as_ref().map(view));
    let options = Options { ranks, groups, system, network };
    let trace = readers::read(&files, format, &options).map_err(|error| {
        let texts: Vec<_> = all.iter().chain(beside.iter().flatten()).collect();
        located(cx, &texts, error)
    })?;
    for warning in &trace.warnings {
        let message = format!("{}: {warning}", paths.display());
        cx.table.warn(cx.table.error("file", message, "this trace").warning());
    }
    Ok(trace)
}

/// Names and contents of files.
type Contents = Vec<(String, Vec<u8>)>;

/// The file that `key` names, or all Chakra traces of a folder. As [`files::read`].
fn contents(
    table: &mut Reader<'_>,
    key: &'static str,
    dir: &Path,
    note: &'static str,
) -> Checked<(PathBuf, Contents)> {
    let written: PathBuf = table.need(key)?;
    let path = if table.is_set_by_option(key) && written.exists() {
        written.clone()
    } else {
        dir.join(&written)
    };
    let unreadable = |table: &Reader<'_>, path: &Path, why: String| {
        let message = format!("cannot read {}: {why}", path.display());
        let hint = "a path is relative to the scenario file (with --set: to where you are)";
        table.error(key, message, "named here").hint(hint)
    };
    let list = listed(&path).map_err(|why| unreadable(table, &path, why))?;
    let mut all = Contents::new();
    for file in &list {
        let bytes = files::read_bytes(file).map_err(|why| unreadable(table, file, why))?;
        let name = if *file == path {
            written.clone()
        } else {
            written.join(file.file_name().unwrap_or_default())
        };
        all.push((name.display().to_string(), bytes));
    }
    if all.is_empty() {
        return Err(unreadable(table, &path, format!("no file *.{CHAKRA} is in it")));
    }
    let absolute = std::path::absolute(&path).unwrap_or(path);
    table.resolve(key, &absolute);
    files::unchanged_bytes(table, note, all.iter().map(|(_, bytes)| bytes.as_slice()))?;
    Ok((written, all))
}

/// `path`, or the Chakra traces in it in the order of their names.
fn listed(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(|e| files::plain(&e))?;
    let mut all = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| files::plain(&e))?.path();
        if path.extension().is_some_and(|end| end == CHAKRA) {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

/// The file that `key` names, if it is written.
fn maybe(cx: &mut Context<'_, '_>, key: &'static str) -> Checked<Option<(String, Vec<u8>)>> {
    if !cx.table.has(key) {
        return Ok(None);
    }
    let (_, all) = contents(cx.table, key, cx.dir, key)?;
    Ok(all.into_iter().next())
}

/// The error of a reader, with the line if the file is a text.
fn located(cx: &Context<'_, '_>, all: &[&(String, Vec<u8>)], error: ReadError) -> Diagnostic {
    match error {
        ReadError::Text(error) => {
            let text = all.iter().find(|(name, _)| *name == error.file);
            let text = text.map_or(String::new(), |(_, b)| String::from_utf8_lossy(b).into_owned());
            let source = Arc::new(Source { name: error.file.clone(), text });
            files::located(&source, &error)
        }
        ReadError::Record(error) => {
            let hint = error.hint.clone();
            let text = error.to_string();
            let message = text.split("\n  hint: ").next().unwrap_or(&text).to_owned();
            cx.table.error("file", message, "in this trace").hint(hint)
        }
    }
}
