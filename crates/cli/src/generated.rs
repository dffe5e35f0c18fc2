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

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands that print no results, and why there is no `--json`.
    const WITHOUT_JSON: [(&str, &str); 9] = [
        ("init", "writes a scenario, after questions"),
        ("new transport", "writes a crate"),
        ("examples", "writes files"),
        ("completions", "prints a script for a shell"),
        ("man", "writes pages"),
        ("report", "writes a page"),
        ("rtl build", "writes a design"),
        ("testbed up", "makes namespaces"),
        ("testbed down", "removes them"),
    ];

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
    fn every_command_that_prints_results_prints_json() {
        let mut found = Vec::new();
        commands(&Cli::command(), "", &mut found);
        for (name, json) in &found {
            let exempt = WITHOUT_JSON.iter().any(|(without, _)| without == name);
            assert!(*json != exempt, "{name}: --json {json}, in the list {exempt}");
        }
        for (name, _) in WITHOUT_JSON {
            assert!(found.iter().any(|(found, _)| found == name), "{name} is no command");
        }
    }
}
