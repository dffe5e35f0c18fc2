//! `trimline`: the command line. A thin shell over the crates `scenario` and `report`.

mod args;
mod bench;
mod compare;
mod html;
mod progress;
mod run;
mod table;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use scenario::Error;

use args::{Cli, Command};

/// What a command ends with.
type Ended = Result<(), Error>;

fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::List { what } => run::list(what),
        Command::Report { dir } => run::report(&dir),
        Command::Bench(args) => bench::bench(&args),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("{}", error.render(std::io::stderr().is_terminal()));
            ExitCode::from(error.exit_code())
        }
    }
}
