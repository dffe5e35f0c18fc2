//! What shells and `man` know of the command line, made from its one definition.

use std::borrow::Cow;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use scenario::Diagnostic;
use serde::Serialize;

use crate::args::Cli;
use crate::{Ended, say, say_json, say_written};

/// `trimline completions`: the script that completes commands and options in `shell`.
pub(crate) fn completions(shell: Shell, json: bool) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "trimline", &mut script);
    let script = String::from_utf8_lossy(&script);
    if json {
        say_json(&Script { shell: shell.to_string(), script })
    } else {
        say(script.trim_end())
    }
}

/// What completes commands, for `--json`.
#[derive(Serialize)]
struct Script<'a> {
    shell: String,
    script: Cow<'a, str>,
}

/// `trimline man`: a page for each command, in `dir`.
pub(crate) fn man(dir: &Path, json: bool) -> Ended {
    let written =
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
    written.map_err(|e| {
        let error = Diagnostic::new(format!("cannot write to {}: {e}", dir.display()));
        error.hint("choose another directory")
    })?;
    let said = format!("pages in {0}; try: man {0}/trimline.1", dir.display());
    say_written(json, dir, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that have no others below them.
    fn commands(of: &clap::Command, name: &str, found: &mut Vec<(String, bool)>) {
        for command in of.get_subcommands() {
            let name = format!("{name}{}", command.get_name());
            if command.has_subcommands() {
                commands(command, &format!("{name} "), found);
            } else {
                let json = command.get_arguments().any(|arg| arg.get_long() == Some("json"));
                found.push((name, json));
            }
        }
    }

    #[test]
    fn every_command_prints_json_if_asked() {
        let mut found = Vec::new();
        commands(&Cli::command(), "", &mut found);
        let without: Vec<&str> =
            found.iter().filter(|(_, json)| !json).map(|(name, _)| name.as_str()).collect();
        assert!(found.len() > 20 && without.is_empty(), "{without:?}");
    }
}
