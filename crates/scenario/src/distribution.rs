//! Size distributions by name: one that a scenario names, or a command.

use std::path::Path;
use std::sync::Arc;

use workload::SizeDist;

use crate::diagnostic::{Checked, Diagnostic, Source, did_you_mean};
use crate::files;
use crate::reader::Reader;

/// The published distribution `named` so, or that of the points in the file of that name.
///
/// # Errors
/// There is neither, or the file is not one of points.
pub fn size_distribution(named: &str) -> Result<SizeDist, Diagnostic> {
    if let Some(shipped) = SizeDist::shipped(named) {
        return Ok(shipped);
    }
    let path = Path::new(named);
    if !path.exists() {
        let names: Vec<&str> = SizeDist::names().collect();
        let message = format!("`{named}` is neither a published size distribution nor a file");
        return Err(Diagnostic::new(message).hint(did_you_mean(named, &names)));
    }
    let text = files::read_text(path).map_err(|why| {
        let hint = "name a file of points, or a distribution: `trimline list workloads`";
        Diagnostic::new(format!("cannot read {named}: {why}")).hint(hint)
    })?;
    let source = Arc::new(Source { name: named.to_owned(), text });
    workload::read_sizes(&source.text, named).map_err(|why| files::located(&source, &why))
}

/// The published distribution `name`, the value of `key`.
pub(crate) fn shipped(table: &Reader<'_>, key: &str, name: &str) -> Checked<SizeDist> {
    SizeDist::shipped(name).ok_or_else(|| {
        let names: Vec<&str> = SizeDist::names().collect();
        let error = table.error(key, format!("unknown distribution `{name}`"), "here");
        error.hint(did_you_mean(name, &names))
    })
}
