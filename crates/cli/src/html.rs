//! Reports: pages made by the crate `report`, put in place whole; `trimline report`.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use scenario::{Diagnostic, Error};

use crate::{Ended, say_written};

/// `trimline report DIR`.
pub(crate) fn report(dir: &Path, json: bool) -> Ended {
    let path = publish(&of_run(dir)?, &dir.join("report.html"))?;
    say_written(json, &path, path.display())
}

/// The page of the run or study whose results are in `dir`.
pub(crate) fn of_run(dir: &Path) -> Result<String, Error> {
    report::render(dir).map_err(|e| unreadable(&e))
}

/// The page that compares the runs whose results are in `dirs`.
pub(crate) fn of_runs(dirs: &[PathBuf]) -> Result<String, Error> {
    report::render_comparison(dirs).map_err(|e| unreadable(&e))
}

fn unreadable(error: &report::ReportError) -> Error {
    Diagnostic::new(error.to_string()).into()
}

/// What every page of ours has in its head.
const OURS: &str = "· Trimline</title>";
/// So many bytes of a file are looked at: a head has a tenth.
const HEAD: u64 = 1 << 16;

/// Nothing but a page of ours is replaced at `path`.
pub(crate) fn check_ours(path: &Path) -> Ended {
    // One that is not there, or not to be looked at, is for writing to speak of.
    let Ok(there) = std::fs::metadata(path) else { return Ok(()) };
    if there.is_file() && is_page(path) {
        return Ok(());
    }
    let error = Diagnostic::new(format!("{} is no page of Trimline", path.display()));
    let hint = "choose another directory with --out or another file with --page, or move that file";
    Err(error.hint(hint).into())
}

/// Whether the file begins as a page of ours.
fn is_page(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && String::from_utf8_lossy(&head).contains(OURS)
}

/// Put `page` at `path`, whole or not at all.
pub(crate) fn publish(page: &str, path: &Path) -> Result<PathBuf, Error> {
    check_ours(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let written = std::fs::write(&partial, page).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|e| {
        // What was written is worth nothing; that it cannot be removed changes nothing.
        let _ = std::fs::remove_file(&partial);
        Diagnostic::new(format!("cannot write {}: {e}", path.display()))
            .hint("check the directory and the disk")
    })?;
    Ok(path.to_owned())
}
