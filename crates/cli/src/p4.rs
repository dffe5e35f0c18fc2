//! `trimline p4 check`: a P4 program, its mistakes, and what it comes to in hardware.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use nic::nano::externs::FREED_BY_RESULTS;
use p4::ir::{self, Hardware};
use p4::state::State;
use scenario::{Diagnostic, Entries, Error, Source, check_program, read_text};
use serde_json::{Value, json};

use crate::args::{P4Check, P4Program};
use crate::{Ended, say, say_json, tell};

/// `trimline p4 check FILE`. Warnings are said and change nothing.
pub(crate) fn check(args: &P4Check) -> Ended {
    let mut state = compile(&args.program)?;
    if let Some(entries) = &args.program.entries {
        enter(entries, &mut state)?;
    }
    let main = args.program.file.display().to_string();
    if args.json { say_json(&described(&state, &main)?) } else { describe(&state, &main) }
}

/// The program with its tables as they begin. All that is wrong with it is said, the last as the
/// error.
pub(crate) fn compile(args: &P4Program) -> Result<State, Error> {
    let name = args.file.display().to_string();
    let text = read_text(&args.file)
        .map_err(|why| Diagnostic::new(format!("cannot read {name}: {why}")))?;
    let main = Arc::new(Source { name, text });
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let mut checked = check_program(&main, folder, &args.constants);
    checked.warnings.iter().for_each(show);
    let last = checked.errors.pop();
    checked.errors.iter().for_each(show);
    match (checked.program, last) {
        (Some(program), None) => Ok(State::new(Arc::new(program))),
        (_, Some(error)) => Err(error.into()),
        (None, None) => Err(Diagnostic::new("the program cannot be compiled").into()),
    }
}

/// Put the entries of a file into its tables.
pub(crate) fn enter(file: &Path, state: &mut State) -> Ended {
    let name = file.display().to_string();
    let text =
        read_text(file).map_err(|why| Diagnostic::new(format!("cannot read {name}: {why}")))?;
    Entries::read(state.program(), &name, &text)?.apply(state);
    Ok(())
}

fn show(diagnostic: &Diagnostic) {
    tell(diagnostic.render(std::io::stderr().is_terminal()));
}

/// One line for each pipeline, spacing, memory, hazard and table.
fn describe(state: &State, main: &str) -> Ended {
    let program = state.program();
    let hardware = hardware_of(program)?;
    say(format_args!("{main}: {}, {} pipelines", program.architecture, program.pipelines.len()))?;
    for (pipeline, schedule) in program.pipelines.iter().zip(hardware.schedules()) {
        let states = pipeline.parser.as_ref().map_or(0, |parser| parser.states.len());
        say(format_args!(
            "  {}: {states} parser states, {} stages, {} cycles, {} values",
            pipeline.name,
            schedule.stages(),
            schedule.cycles(),
            pipeline.slots.len(),
        ))?;
    }
    spacings(&hardware, program)?;
    for memory in hardware.memories() {
        say(format_args!("  {}: {}", memory.name, touched(program, &memory)))?;
    }
    for hazard in hardware.hazards() {
        say(format_args!("  hazard: {hazard}"))?;
    }
    for (id, table) in (0..).map(ir::TableId).zip(&program.tables) {
        let entries = state.entries(id).len();
        say(format_args!("  table {}: {entries} of {} entries", table.name, table.size))?;
    }
    Ok(())
}

/// The same, for `--json`.
fn described(state: &State, main: &str) -> Result<Value, Error> {
    let program = state.program();
    let hardware = hardware_of(program)?;
    let (usual, late) = (hardware.spacings(&[]), hardware.spacings(FREED_BY_RESULTS));
    let spacings = usual.iter().zip(&late);
    let pipelines = program.pipelines.iter().zip(hardware.schedules()).zip(spacings);
    let pipeline =
        |((pipeline, schedule), (usual, late)): ((&ir::Pipeline, &ir::Schedule), (_, _))| {
            let (usual, late): (&ir::Spacing, &ir::Spacing) = (usual, late);
            json!({
                "name": pipeline.name,
                "parser_states": pipeline.parser.as_ref().map_or(0, |parser| parser.states.len()),
                "stages": schedule.stages(),
                "cycles": schedule.cycles(),
                "values": pipeline.slots.len(),
                "packets_apart": usual.cycles,
                "set_by": apart(program, usual),
                "packets_apart_if_freed_late": late.cycles,
            })
        };
    let memory =
        |memory: &ir::Memory| json!({ "name": memory.name, "stages": touched(program, memory) });
    let table = |(id, table): (ir::TableId, &ir::Table)| json!({ "name": table.name, "entries": state.entries(id).len(), "size": table.size });
    Ok(json!({
        "program": main,
        "architecture": program.architecture,
        "pipelines": pipelines.map(pipeline).collect::<Vec<_>>(),
        "memories": hardware.memories().iter().map(memory).collect::<Vec<_>>(),
        "hazards": hardware.hazards().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "tables": (0..).map(ir::TableId).zip(&program.tables).map(table).collect::<Vec<_>>(),
    }))
}

/// Its circuits with their schedules.
pub(crate) fn hardware_of(program: &ir::Program) -> Result<Hardware<'_>, Diagnostic> {
    Hardware::new(program).map_err(|fault| {
        let (file, text) = (file_of(program, fault.place), fault.text);
        Diagnostic::new(format!("{file}:{}: {text}", fault.place.line))
    })
}

/// How far apart packets have to be, and why: a line for each pipeline, and another one where more
/// is needed if messages are freed after the last stage.
fn spacings(hardware: &Hardware<'_>, program: &ir::Program) -> Ended {
    let freed_late = hardware.spacings(FREED_BY_RESULTS);
    for (spacing, late) in hardware.spacings(&[]).iter().zip(&freed_late) {
        let name = &program.pipelines[spacing.pipeline.index()].name;
        say(format_args!("  {name}: packets {}", apart(program, spacing)))?;
        if late.cycles > spacing.cycles {
            let apart = apart(program, late);
            say(format_args!("  {name}, messages freed after the last stage: packets {apart}"))?;
        }
    }
    Ok(())
}

/// "4 cycles apart: granted.execute (homa_rules.p4:126) in cycle 2, ..."
pub(crate) fn apart(program: &ir::Program, spacing: &ir::Spacing) -> String {
    let ends = spacing.between.iter().flatten().map(|end| {
        let at = |place| format!(" ({}:{})", file_of(program, place), place.line);
        format!("{}{} in cycle {}", end.name, end.place.map_or(String::new(), at), end.cycle)
    });
    let mut ends: Vec<String> = ends.collect();
    ends.dedup();
    let why = if ends.is_empty() { String::new() } else { format!(": {}", ends.join(", ")) };
    let cycles = if spacing.cycles == 1 { "cycle" } else { "cycles" };
    format!("{} {cycles} apart{why}", spacing.cycles)
}

/// The name of the file of a place.
fn file_of(program: &ir::Program, place: ir::Place) -> &str {
    program.files.get(usize::from(place.file)).map_or("", String::as_str)
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
