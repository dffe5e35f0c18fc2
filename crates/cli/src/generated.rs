//! What shells and `man` know of the command line, made from its one definition.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use scenario::Diagnostic;

use crate::args::Cli;
use crate::{Ended, say};

/// `trimline completions`: the script that completes commands and options in `shell`.
pub(crate) fn completions(shell: Shell) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "trimline", &mut script);
    say(String::from_utf8_lossy(&script).trim_end())
}

/// `trimline man`: a page for each command, in `dir`.
pub(crate) fn man(dir: &Path) -> Ended {
    let written =
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
    written.map_err(|e| {
        let error = Diagnostic::new(format!("cannot write to {}: {e}", dir.display()));
        error.hint("choose another directory")
    })?;
    say(format_args!("pages in {0}; try: man {0}/trimline.1", dir.display()))
}
