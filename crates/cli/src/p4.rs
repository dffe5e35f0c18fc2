//! `trimline p4 check`: a P4 program, its mistakes, and what it comes to in hardware.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use p4::ir;
use p4::state::State;
use scenario::{Diagnostic, Entries, Source, check_program, read_text};

use crate::args::P4Check;
use crate::{Ended, say, tell};

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
    let Some(program) = checked.program.map(Arc::new) else { return Ok(()) };
    let mut state = State::new(Arc::clone(&program));
    if let Some(file) = &args.entries {
        let name = file.display().to_string();
        let text =
            read_text(file).map_err(|why| Diagnostic::new(format!("cannot read {name}: {why}")))?;
        Entries::read(&program, &name, &text)?.apply(&mut state);
    }
    describe(&state, &main.name)
}

fn show(diagnostic: &Diagnostic) {
    tell(diagnostic.render(std::io::stderr().is_terminal()));
}

/// One line for each pipeline, memory, hazard and table.
fn describe(state: &State, main: &str) -> Ended {
    let program = state.program();
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
    for memory in ir::memories(program) {
        say(format_args!("  {}: {}", memory.name, touched(program, &memory)))?;
    }
    for hazard in ir::hazards(program) {
        say(format_args!("  hazard: {hazard}"))?;
    }
    for (id, table) in (0..).map(ir::TableId).zip(&program.tables) {
        let entries = state.entries(id).len();
        say(format_args!("  table {}: {entries} of {} entries", table.name, table.size))?;
    }
    Ok(())
}

/// In which stages a memory is accessed, from 1: "ingress stage 2, egress stages 1 to 2".
fn touched(program: &ir::Program, memory: &ir::Memory) -> String {
    let of = |pipeline: ir::PipelineId| {
        let here = memory.accesses.iter().filter(move |access| access.pipeline == pipeline);
        let stages = here.map(|access| access.at.stage + 1);
        let (first, last) = (stages.clone().min()?, stages.max()?);
        let name = &program.pipelines[pipeline.index()].name;
        Some(match first == last {
            true => format!("{name} stage {first}"),
            false => format!("{name} stages {first} to {last}"),
        })
    };
    let all: Vec<String> =
        (0..).map(ir::PipelineId).take(program.pipelines.len()).filter_map(of).collect();
    all.join(", ")
}
