//! [`FileError`]: what went wrong with a result file, for the user.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// A result file or directory that could not be read or written. `Display` is one line with the
/// path, the cause and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot {action} {}: {cause} ({hint})", path.display())]
pub struct FileError {
    /// The verb: `create`, `write`, `read`, ...
    pub action: &'static str,
    /// The file or directory, under its final name.
    pub path: PathBuf,
    /// Why not.
    pub cause: String,
    /// What the user can do about it.
    pub hint: String,
}

/// Causes for which another directory is the remedy, or another user.
const DENIED: &str = "permission denied";
const READ_ONLY: &str = "the file system is read-only";

impl FileError {
    /// Whether it is that nothing may be written there.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        [DENIED, READ_ONLY].contains(&self.cause.as_str())
    }

    pub(crate) fn new(
        action: &'static str,
        path: &Path,
        cause: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { action, path: path.to_owned(), cause: cause.into(), hint: hint.into() }
    }

    /// What an operation on `path` said; `action` is what was to be done with it.
    #[must_use]
    pub fn io(action: &'static str, path: &Path, error: &io::Error) -> Self {
        let (cause, hint) = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ("the disk is full", "free some space, or choose another directory with --out")
            }
            io::ErrorKind::PermissionDenied => (
                DENIED,
                "choose a directory that you may write with --out, or change its permissions",
            ),
            io::ErrorKind::ReadOnlyFilesystem => (READ_ONLY, "choose another directory with --out"),
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => (
                "a file of that name is in the way",
                "choose another directory with --out, or move the file",
            ),
            io::ErrorKind::NotFound if action == "read" => {
                ("there is no such file or directory", "check the path, or run the scenario again")
            }
            io::ErrorKind::NotFound => {
                ("no directory can be made there", "choose another directory with --out")
            }
            _ if action != "read" => {
                let hint = "choose another directory with --out";
                return Self::new(action, path, error.to_string(), hint);
            }
            _ => return Self::new(action, path, error.to_string(), "check the path and the disk"),
        };
        Self::new(action, path, cause, hint)
    }

    /// A parquet error; an I/O error inside it is reported as such.
    pub(crate) fn parquet(action: &'static str, path: &Path, error: &ParquetError) -> Self {
        if let ParquetError::External(inner) = error
            && let Some(io) = inner.downcast_ref::<io::Error>()
        {
            return Self::io(action, path, io);
        }
        Self::new(action, path, error.to_string(), "run the scenario again to make the file anew")
    }

    /// A JSON error; an I/O error inside it is reported as such.
    pub(crate) fn json(action: &'static str, path: &Path, error: serde_json::Error) -> Self {
        if error.is_io() {
            return Self::io(action, path, &io::Error::from(error));
        }
        Self::new(action, path, error.to_string(), "run the scenario again to make the file anew")
    }
}
