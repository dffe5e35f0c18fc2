//! Files that a scenario names: found relative to the scenario, read whole, errors located.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use workload::TextError;

use crate::diagnostic::{Checked, Diagnostic, Source};
use crate::reader::Reader;

/// The largest file that is read, bytes.
const LARGEST: u64 = 1 << 30;

/// A file that a scenario names.
pub(crate) struct Named {
    /// Its absolute path.
    pub(crate) path: PathBuf,
    /// Its name as messages show it, and its text.
    pub(crate) source: Arc<Source>,
}

/// Read the file that `key` names. A path in the scenario is relative to the scenario's directory
/// `dir`; one given with `--set` is relative to the working directory if such a file exists, and
/// an error if there is another one in `dir`. The resolved scenario holds the absolute path and, in
/// `about`, a fingerprint of the text; read again from a manifest, the file must be the same.
pub(crate) fn read(table: &mut Reader<'_>, key: &'static str, dir: &Path) -> Checked<Named> {
    read_noting(table, key, dir, "fingerprint")
}

/// As [`read`], for the second file of a table: its fingerprint is noted under another name.
pub(crate) fn read_noting(
    table: &mut Reader<'_>,
    key: &'static str,
    dir: &Path,
    note: &'static str,
) -> Checked<Named> {
    let written: PathBuf = table.need(key)?;
    let path = locate(table, key, dir, &written)?;
    let text = read_text(&path).map_err(|why| {
        let message = format!("cannot read {}: {why}", path.display());
        let hint = "a path is relative to the scenario file (with --set: to where you are)";
        table.error(key, message, "named here").hint(hint)
    })?;
    let path = std::path::absolute(&path).unwrap_or(path);
    table.resolve(key, &path);
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    unchanged_text(table, note, &text)?;
    let source = Arc::new(Source { name: written.display().to_string(), text });
    Ok(Named { path, source })
}

/// Where the file `written` is.
fn locate(table: &Reader<'_>, key: &str, dir: &Path, written: &Path) -> Checked<PathBuf> {
    let beside = dir.join(written);
    if !table.is_set_by_option(key) || !written.is_file() {
        return Ok(beside);
    }
    let is_same = written.canonicalize().ok() == beside.canonicalize().ok();
    if beside.is_file() && !is_same {
        let message = format!("there are two files {}", written.display());
        let hint = format!(
            "one is where you are, one beside the scenario ({}): write the whole path",
            beside.display()
        );
        return table.fail(key, message, "named here", hint);
    }
    Ok(written.to_owned())
}

/// Note a fingerprint of `text` in the resolved scenario, and check that it is that of the run if
/// the scenario comes from a manifest.
pub(crate) fn unchanged_text(
    table: &mut Reader<'_>,
    note: &'static str,
    text: &str,
) -> Checked<()> {
    unchanged(table, note, &format!("{:016x}", fingerprint(text)))
}

/// The same for the bytes of several files, one after the other.
pub(crate) fn unchanged_bytes<'b>(
    table: &mut Reader<'_>,
    note: &'static str,
    all: impl Iterator<Item = &'b [u8]>,
) -> Checked<()> {
    let fingerprint =
        all.fold(FNV_BASIS, |hash, bytes| fnv(fnv(hash, bytes), &bytes.len().to_le_bytes()));
    unchanged(table, note, &format!("{fingerprint:016x}"))
}

/// The same for a fingerprint.
fn unchanged(table: &mut Reader<'_>, note: &'static str, fingerprint: &str) -> Checked<()> {
    let mut noted = toml::Table::new();
    noted.insert(note.to_owned(), toml::Value::String(fingerprint.to_owned()));
    table.keep("about", noted);
    let Some(mut about) = table.table("about")? else { return Ok(()) };
    match about.maybe::<String>(note)? {
        Some(before) if before != fingerprint => {
            let message = "the file has changed since the run of this manifest";
            let error = about.error(note, message, "it was another one");
            Err(error.hint(
                "restore the file; to run with the new one, run the scenario, not its manifest",
            ))
        }
        _ => Ok(()),
    }
}

/// FNV-1a, 64 bits (Fowler, Noll and Vo; RFC 9923): enough to tell whether a file has changed.
fn fingerprint(text: &str) -> u64 {
    fnv(FNV_BASIS, text.as_bytes())
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// FNV-1a, 128 bits: a name for a text among many.
#[must_use]
pub fn fingerprint_128(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = (1 << 88) + 0x13b;
    bytes.iter().fold(BASIS, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

/// The text of the file at `path`.
///
/// # Errors
/// Why there is none, in a few words.
pub fn read_text(path: &Path) -> Result<String, String> {
    String::from_utf8(read_bytes(path)?).map_err(|_| "it is not text (UTF-8)".to_owned())
}

/// What is in the file at `path`, or why nothing is.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    let about = std::fs::metadata(path).map_err(|e| plain(&e))?;
    if !about.is_file() {
        return Err("it is not a file".to_owned());
    }
    if about.len() > LARGEST {
        return Err(format!("it has {} bytes; at most {LARGEST} are read", about.len()));
    }
    std::fs::read(path).map_err(|e| plain(&e))
}

/// The error in words, without the number that the system adds.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.to_lowercase())
}

/// The error of a reader in `workload`, as a [`Diagnostic`] that shows the line.
pub(crate) fn located(source: &Arc<Source>, error: &TextError) -> Diagnostic {
    let label = if error.value.is_empty() { "something is missing here" } else { "here" };
    Diagnostic::new(&error.message)
        .at_line(source, error.line, error.column, error.len, label)
        .hint(&error.hint)
}

#[cfg(test)]
mod tests {
    use super::fingerprint_128;

    /// The values of RFC 9923, appendix C, for an empty text and for `a`.
    #[test]
    fn fingerprints_by_the_book() {
        assert_eq!(fingerprint_128(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fingerprint_128(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
