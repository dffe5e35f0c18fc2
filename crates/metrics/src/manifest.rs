//! [`Manifest`]: `manifest.json`, what was run and how to run it again.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::FileError;
use crate::output::{read_json, write_json};
use crate::{OutputDir, RESULT_SCHEMA};

/// Versions that a result depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The program's version, for example `0.1.0`.
    pub trimline: String,
    /// The commit that was checked out when this program was built, if that was known.
    pub git: Option<String>,
    /// The engine's: results of two runs with the same one are comparable by digest.
    pub engine: u32,
    /// The result files': [`RESULT_SCHEMA`].
    pub schema: u32,
}

/// What was run and how to run it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The scenario as it was run: defaults filled in, `--set` applied.
    pub scenario: Value,
    /// The seed of every draw.
    pub seed: u64,
    /// What it was run with.
    pub versions: Versions,
    /// The exact command that repeats the run.
    pub command: String,
}

impl Manifest {
    /// The manifest of a run.
    #[must_use]
    pub fn new(
        scenario: Value,
        seed: u64,
        trimline: &str,
        git: Option<&str>,
        engine: u32,
        command: &str,
    ) -> Self {
        let versions = Versions {
            trimline: trimline.to_owned(),
            git: git.map(str::to_owned),
            engine,
            schema: RESULT_SCHEMA,
        };
        Self { scenario, seed, versions, command: command.to_owned() }
    }

    /// Writes `manifest.json`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, out: &OutputDir) -> Result<(), FileError> {
        write_json(out, "manifest.json", self)
    }

    /// Reads a `manifest.json`.
    ///
    /// # Errors
    /// The file is missing or broken.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        read_json(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let out = OutputDir::create(dir.path()).unwrap();
        let scenario = serde_json::json!({"transport": {"kind": "ndp", "iw": 30}});
        let command = "trimline run x.toml --seed 18446744073709551615";
        let manifest = Manifest::new(scenario, u64::MAX, "0.1.0", None, 1, command);
        manifest.write(&out).unwrap();
        out.commit().unwrap();
        assert_eq!(Manifest::read(&dir.path().join("manifest.json")).unwrap(), manifest);
    }
}
