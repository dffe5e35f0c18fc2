//! `trimline p4 check`: a P4 program, its mistakes, and what it comes to in hardware.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use nic::{ir, p4};
use scenario::{Diagnostic, Source};

use crate::args::P4Check;
use crate::{Ended, say};

/// `trimline p4 check FILE`. Warnings are said and change nothing.
pub(crate) fn check(args: &P4Check) -> Ended {
    let folder = args.file.parent().unwrap_or(Path::new("")).to_owned();
    let main = args.file.display().to_string();
    // Included files are looked for beside the program.
    let read = |name: &str| {
        let path = if name == main { args.file.clone() } else { folder.join(name) };
        std::fs::read_to_string(path).ok()
    };
    let compiled = p4::check(&read, &main, &args.constants);
    let mut errors = Vec::new();
    for found in &compiled.diagnostics {
        match found.severity {
            p4::Severity::Warning => show(&diagnostic(found, &main, &folder, "warning: ")),
            p4::Severity::Error => errors.push(diagnostic(found, &main, &folder, "")),
        }
    }
    if let Some(last) = errors.pop() {
        errors.iter().for_each(show);
        return Err(last.into());
    }
    compiled.program.map_or(Ok(()), |program| describe(&program, &main))
}

fn show(diagnostic: &Diagnostic) {
    eprint!("{}", diagnostic.render(std::io::stderr().is_terminal()));
}

/// `folder` is where included files are.
fn diagnostic(found: &p4::Diagnostic, main: &str, folder: &Path, kind: &str) -> Diagnostic {
    let mut name = found.source.name.clone();
    if name != main && !name.starts_with('<') {
        name = folder.join(name).display().to_string();
    }
    let source = Source { name, text: found.source.text.clone() };
    let message = format!("{kind}{}", found.message);
    let made = Diagnostic::new(message).at(&Arc::new(source), found.span.clone(), "here");
    if found.hint.is_empty() { made } else { made.hint(found.hint.clone()) }
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
