//! Designs that have been built, kept by their text: each is built once for all runs.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sim::{Design, Program, SimError};
use crate::tools::Tools;

/// Builds of this process: sweeps read scenarios side by side.
static BUILDS: AtomicU64 = AtomicU64::new(0);

/// Where they are.
#[must_use]
pub fn folder() -> PathBuf {
    std::env::temp_dir().join("trimline-rtl")
}

/// The design of `texts`, names and texts of its sources, whose ports are those of `ports`.
///
/// # Errors
/// It cannot be built.
pub fn built(
    tools: &Tools,
    texts: &[(String, String)],
    ports: &Design,
) -> Result<Program, SimError> {
    let mut hash = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), tools.version(), texts).hash(&mut hash);
    let name = format!("{:016x}", hash.finish());
    let folder = folder().join(&name);
    if !folder.join("simulation").exists() {
        let nth = BUILDS.fetch_add(1, Ordering::Relaxed);
        let own = folder.with_file_name(format!("{name}.{}.{nth}", std::process::id()));
        ports.written(texts, &own)?.build(tools, &own)?;
        // Where somebody was quicker, theirs is the same.
        if fs::rename(&own, &folder).is_err() {
            fs::remove_dir_all(&own)?;
        }
    }
    Ok(ports.program(&folder))
}
