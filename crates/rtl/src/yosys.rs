//! Yosys, through the Python wheel `pyosys`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::sim::Design;
use crate::tools::{ToolError, folder, output};

/// The Python that `make rtl-setup` has put Yosys into.
pub(crate) fn python() -> PathBuf {
    folder().join("python")
}

/// The pass that reads `design` with slang, and its top; `flags` go before the rest.
pub(crate) fn read(design: &Design, flags: &str) -> [String; 2] {
    let sources = design.sources.iter().map(|path| format!(" {}", path.display()));
    let parameters = design.parameters.iter().map(|(name, value)| format!(" -G {name}={value}"));
    let read = format!(
        "read_slang{flags} --top {}{}{}",
        design.top,
        parameters.collect::<String>(),
        sources.collect::<String>()
    );
    [read, format!("hierarchy -top {}", design.top)]
}

/// Run passes, written to `file` as a script; what Yosys says.
pub(crate) fn run<E: From<io::Error> + From<ToolError>>(
    python: &Path,
    passes: impl IntoIterator<Item = String>,
    file: &Path,
) -> Result<String, E> {
    let passes = passes.into_iter().map(|pass| format!("ys.run_pass({pass:?}, design)\n"));
    let passes: String = passes.collect();
    let begin = "from pyosys import libyosys as ys\ndesign = ys.Design()\n";
    fs::write(file, begin.to_owned() + &passes)?;
    Ok(output(Command::new(python).arg(file))?)
}
