//! `trimline`: the command line. A thin shell over the crates `scenario` and `report`.
//!
//! A library, so that the Python package has the same command. [`main`] is all of it; [`run_into`]
//! runs a scenario as `trimline run` does, and [`life_json`] is what `trimline explain` says.

mod args;
mod bench;
mod check;
mod compare;
mod comparison;
mod estimate;
mod explain;
mod generated;
mod html;
mod init;
mod jobs;
mod list;
mod new;
mod p4;
mod progress;
mod reproduce;
mod rtl;
mod run;
mod scoreboard;
mod shipped;
mod sizing;
mod sweep;
mod switch;
mod table;
mod testbed;
mod tune;
mod validate;
mod workers;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use clap::Parser;
use scenario::{Diagnostic, Error};
use serde::Serialize;

pub use explain::life_json;
pub use run::{Ran, run_into};

use args::{Cli, Command, New, Nic, P4, Rtl, Testbed};

/// The exit code of an interrupted program, as shells have it: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;

/// What a command ends with.
type Ended = Result<(), Error>;

/// Print a line on stdout. A reader that has seen enough (`| head`) is no error.
fn say(line: impl Display) -> Ended {
    match writeln!(io::stdout(), "{line}") {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            let error = Diagnostic::new(format!("cannot write to standard output: {e}"));
            Err(error.hint("what was asked for is done; only its summary is lost").into())
        }
        _ => Ok(()),
    }
}

/// Print one JSON document on stdout.
fn say_json(value: &impl Serialize) -> Ended {
    let text = serde_json::to_string_pretty(value);
    // Structures of ours with texts as keys: this cannot fail.
    say(text.unwrap_or_default())
}

/// Results and where their files are, for `--json`.
#[derive(Serialize)]
struct Printed<'a, T> {
    directory: &'a Path,
    results: &'a T,
}

/// What a command has written, for `--json`.
#[derive(Serialize)]
struct Written<'a> {
    written: &'a Path,
}

/// Say that `path` is written: one JSON document, or `line`.
fn say_written(json: bool, path: &Path, line: impl Display) -> Ended {
    if json { say_json(&Written { written: path }) } else { say(line) }
}

/// Print on stderr. Whoever reads it may have gone (`2>&1 | head`): that stops no run.
fn tell(what: impl Display) {
    drop(write!(io::stderr(), "{what}"));
}

/// That results could not be printed is no failure of a command that has written them to `dir`,
/// unless what it prints was `asked` for as JSON: who reads that would take nothing for a success.
fn said(printed: Ended, dir: &Path, asked: bool) -> Ended {
    let Err(error) = printed else { return Ok(()) };
    let complete = format!("the results are complete all the same, in {}", dir.display());
    if asked {
        warn(&complete);
        return Err(error);
    }
    tell(error.render(io::stderr().is_terminal()));
    warn(&complete);
    Ok(())
}

/// Print a warning on stderr.
fn warn(warning: &str) {
    let (on, off) = if io::stderr().is_terminal() { ("\u{1b}[33m", "\u{1b}[0m") } else { ("", "") };
    tell(format_args!("{on}warning:{off} {}\n", table::printable(warning)));
}

/// Set once the command that runs ends by itself when it is interrupted: what is said then.
static ENDS_ITSELF: OnceLock<&str> = OnceLock::new();
/// Set once the command that runs has finished jobs to keep: what is said then.
static GOES_ON: OnceLock<&str> = OnceLock::new();
/// Whether it has been interrupted.
static INTERRUPT: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// On Ctrl-C, and when it is told to end, the program leaves its directories as it found them,
/// unless the command ends by itself. A second time it does not wait for that.
fn clear_when_interrupted() {
    let ended = ctrlc::set_handler(|| {
        if let Some(said) = ENDS_ITSELF.get()
            && !INTERRUPT.swap(true, Ordering::Relaxed)
        {
            tell(said);
            return;
        }
        metrics::discard_unfinished();
        tell(GOES_ON.get().unwrap_or(&"interrupted: what was unfinished is discarded\n"));
        std::process::exit(INTERRUPTED);
    });
    if let Err(error) = ended {
        warn(&format!("an interrupted run will leave its unfinished files: {error}"));
    }
}

/// Write a file that is not there yet, whole: what a full disk leaves of it is removed.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(text.as_bytes()).inspect_err(|_| {
        // The error is said; that it cannot be removed changes nothing.
        let _ = std::fs::remove_file(path);
    })
}

/// The processor cores that this process may use.
fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1))
}

/// The most memory that this process has held, bytes.
fn peak_rss() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0)
}

/// How this process was started.
struct Started {
    /// The words that start the program.
    program: Vec<OsString>,
    /// Those after them.
    args: Vec<OsString>,
}

static STARTED: OnceLock<Started> = OnceLock::new();

/// The words that start this program again.
fn own_program() -> Vec<String> {
    let program = STARTED.get().map(|started| started.program.as_slice()).unwrap_or_default();
    match program {
        [] => vec!["trimline".to_owned()],
        words => words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
    }
}

/// `file` as an argument that is no option, whatever it begins with.
fn operand(file: &Path) -> String {
    let file = file.display().to_string();
    if file.starts_with('-') { format!("./{file}") } else { file }
}

/// The command line that repeats what this process does.
fn own_command_line() -> String {
    let args = STARTED.get().map(|started| started.args.as_slice()).unwrap_or_default();
    scenario::command_line(args.iter().map(|arg| arg.to_string_lossy().into_owned()))
}

/// Do what `args` say, and return the exit code. `program` is what one types before them to start
/// the same program. Once in a process.
pub fn main(program: Vec<OsString>, args: impl Iterator<Item = OsString>) -> u8 {
    let Started { args, .. } = STARTED.get_or_init(|| Started { program, args: args.collect() });
    clear_when_interrupted();
    let named = std::iter::once(OsString::from("trimline")).chain(args.iter().cloned());
    let Cli { command, progress } = match Cli::try_parse_from(named) {
        Ok(cli) => cli,
        Err(said) => {
            // Help and versions are such errors, too. A reader that has gone is none.
            let _ = said.print();
            return u8::try_from(said.exit_code()).unwrap_or(2);
        }
    };
    let ended = match command {
        Command::Init(args) => init::init(&args),
        Command::New(New::Transport(args)) => new::transport(&args),
        Command::Run(args) => run::run(&args, progress),
        Command::Check(args) => check::check(&args),
        Command::Estimate(args) => estimate::estimate(&args, progress),
        Command::Compare(args) => compare::compare(&args, progress),
        Command::Explain(args) => explain::explain(&args, progress),
        Command::Sweep(args) => sweep::sweep(&args, progress),
        Command::Tune(args) => tune::tune(&args, progress),
        Command::Reproduce(args) => reproduce::reproduce(&args, progress),
        Command::Scoreboard(args) => scoreboard::scoreboard(&args),
        Command::Validate(args) => validate::validate(&args, progress),
        Command::List { what, json } => list::list(what, json),
        Command::Examples { dir, json } => shipped::examples(&dir, json),
        Command::Completions { shell, json } => generated::completions(shell, json),
        Command::Man { dir, json } => generated::man(&dir, json),
        Command::Report { dir, json } => html::report(&dir, json),
        Command::Bench(args) => bench::bench(&args),
        Command::P4(P4::Check(args)) => p4::check(&args),
        Command::Nic(Nic::Size(args)) => sizing::size(&args),
        Command::Rtl(Rtl::Build(args)) => rtl::build(&args),
        Command::Rtl(Rtl::Cosim(args)) => rtl::cosim(&args, progress),
        Command::Rtl(Rtl::Report(args)) => rtl::report(&args),
        Command::Switch(args) => switch::switch(&args, progress),
        Command::Testbed(Testbed::Up(args)) => testbed::up(&args),
        Command::Testbed(Testbed::Run(args)) => testbed::run(&args),
        Command::Testbed(Testbed::Down(args)) => testbed::down(&args),
    };
    match ended {
        Ok(()) => 0,
        Err(error) => {
            tell(error.render(io::stderr().is_terminal()));
            error.exit_code()
        }
    }
}
