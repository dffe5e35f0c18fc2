//! `trimline p4 check`: a P4 program, its mistakes, and what it comes to in hardware.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use nic::ir;
use scenario::{Diagnostic, Source, check_program, read_text};

use crate::args::P4Check;
use crate::{Ended, say};

/// `trimline p4 check FILE`. Warnings are said and change nothing.
pub(crate) fn check(args: &P4Check) -> Ended {
    let name = args.file.display().to_string();
    let text = read_text(&args.file)
        .map_err(|why| Diagnostic::new(format!("cannot read {name}: {why}")))?;
    let main = Arc::new(Source { name, text });
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let mut checked = check_program(&main, folder, &args.constants);
    checked.warnings.iter().for_each(show);
    if let Some(last) = checked.errors.pop() {
        checked.errors.iter().for_each(show);
        return Err(last.into());
    }
    checked.program.map_or(Ok(()), |program| describe(&program, &main.name))
}

fn show(diagnostic: &Diagnostic) {
    eprint!("{}", diagnostic.render(std::io::stderr().is_terminal()));
}

/// One line for each pipeline.
fn describe(program: &ir::Program, main: &str) -> Ended {
    say(format_args!("{main}: {}, {} pipelines", program.architecture, program.pipelines.len()))?;
    for (pipeline, schedule) in program.pipelines.iter().zip(ir::stages(program)) {
        let states = pipeline.parser.as_ref().map_or(0, |parser| parser.states.len());
        say(format_args!(
            "  {}: {states} parser states, {} stages, {} cycles, {} values",
            pipeline.name,
            schedule.stages,
            schedule.cycles,
            pipeline.slots.len(),
        ))?;
    }
    Ok(())
}
