//! The program `trimline`.

use std::process::ExitCode;

/// A simulation's memory is touched all over: with an allocator that asks for huge pages, addresses
/// are translated more quickly. Measured: docs/performance.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    // The path, not the name: a name may be that of another program by now.
    let program = std::env::current_exe().map(Into::into).ok().or_else(|| args.next());
    ExitCode::from(trimline_cli::main(program.into_iter().collect(), std::env::args_os().skip(1)))
}
