//! `trimline`: the command line. A thin shell over the crates `scenario` and `report`.

mod args;
mod bench;
mod check;
mod compare;
mod html;
mod list;
mod p4;
mod progress;
mod reproduce;
mod run;
mod sizing;
mod sweep;
mod table;

use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use scenario::{Diagnostic, Error};

use args::{Cli, Command, Nic, P4};

/// A simulation's memory is touched all over: with an allocator that asks for huge pages, addresses are
/// translated more quickly. Measured: docs/performance.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What a command ends with.
type Ended = Result<(), Error>;

/// Print a line on stdout. A reader that has seen enough (`| head`) is no error.
fn say(line: impl Display) -> Ended {
    match writeln!(std::io::stdout(), "{line}") {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            let error = Diagnostic::new(format!("cannot write to standard output: {e}"));
            Err(error.hint("what was asked for is done; only its summary is lost").into())
        }
        _ => Ok(()),
    }
}

/// The processor cores that this process may use.
fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}

fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Check(args) => check::check(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::List { what } => list::list(what),
        Command::Report { dir } => html::report(&dir),
        Command::Bench(args) => bench::bench(&args),
        Command::P4(P4::Check(args)) => p4::check(&args),
        Command::Nic(Nic::Size(args)) => sizing::size(&args),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprint!("{}", error.render(std::io::stderr().is_terminal()));
            ExitCode::from(error.exit_code())
        }
    }
}
