//! `trimline rtl report`: what a design takes. Area and clock need tools; all else does not.

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use nic::nano::config::Config;
use p4::ir::{PipelineId, Spacing};
use rtl::kept;
use rtl::paths::{Paths, paths};
use rtl::report::{BlockCost, Report as Cost, report as cost};
use rtl::state::State;
use rtl::synth::{SynthError, SynthTools};
use scenario::{Diagnostic, Error};
use serde::Serialize;
use units::Bytes;

use super::{Made, What};
use crate::args::RtlReport;
use crate::p4::apart;
use crate::table::right;
use crate::{Ended, say, warn};

/// The clock that the publication assumes, and the law: 3.2 GHz.
const ASSUMED_HZ: f64 = 3.2e9;

/// What is printed, in tables or as JSON.
#[derive(Serialize)]
struct Report {
    program: String,
    pipelines: Vec<Pipeline>,
    /// Packets a second at 3.2 GHz.
    packets_per_second: f64,
    nic: Option<Nic>,
    synthesis: Option<Synthesis>,
    /// Why there is none.
    synthesis_skipped: Option<String>,
}

#[derive(Serialize)]
struct Pipeline {
    name: String,
    cycles: Paths,
    spacing: u32,
    /// What sets it, with lines.
    set_by: String,
}

#[derive(Serialize)]
struct Nic {
    /// Cycles of the law from a packet to what it does, and from a choice to its first beat.
    in_cycles: u32,
    out_cycles: u32,
    state: State,
    /// Bytes of each message's state, sent and received.
    state_bytes: [f64; 2],
    messages: [u16; 2],
    /// Buffers of each direction.
    buffer_bytes: u64,
    /// Messages that are remembered, of each kind.
    remembered: u32,
}

#[derive(Serialize)]
struct Synthesis {
    cost: Cost,
    area_um2: f64,
    cells: u64,
    flip_flops: u64,
    memory_bits: u64,
    period_ps: f64,
    packets_per_second: f64,
    /// The slowest block, and where its longest path begins and ends.
    slowest: Option<Slowest>,
}

#[derive(Serialize)]
struct Slowest {
    block: String,
    path: [String; 2],
    /// Lines of P4 in which the path's ends are made, of a pipeline.
    lines: Vec<String>,
}

/// `trimline rtl report PROGRAM`.
pub(crate) fn report(args: &RtlReport) -> Ended {
    let made = Made::new(&args.hardware, false)?;
    let synthesis = match args.no_synthesis {
        true => Err("--no-synthesis".to_owned()),
        false => synthesis(&made)?,
    };
    let (synthesis, synthesis_skipped) = match synthesis {
        Ok(synthesis) => (Some(synthesis), None),
        Err(why) => (None, Some(why)),
    };
    let report = Report {
        program: args.hardware.program.file.display().to_string(),
        pipelines: pipelines(&made)?,
        packets_per_second: ASSUMED_HZ / made.spacing() as f64,
        nic: nic(&made),
        synthesis,
        synthesis_skipped,
    };
    if args.json {
        let json = serde_json::to_string_pretty(&report);
        return say(json.map_err(|why| Diagnostic::new(why.to_string()))?);
    }
    print(&report)
}

fn pipelines(made: &Made) -> Result<Vec<Pipeline>, Error> {
    let program = made.program();
    let one = |spacing: &Spacing| {
        let at: PipelineId = spacing.pipeline;
        let protocols = made.protocols();
        let cycles = paths(&made.state, at, &protocols).map_err(|why| Diagnostic::new(why.text))?;
        Ok(Pipeline {
            name: program.pipelines[at.index()].name.clone(),
            cycles,
            spacing: spacing.cycles,
            set_by: apart(program, spacing),
        })
    };
    made.spacings.iter().map(one).collect()
}

fn nic(made: &Made) -> Option<Nic> {
    let What::Nic(nic) = &made.what else { return None };
    let config: &Config = &nic.1;
    let state = State::new(made.program(), config);
    let bytes = |class: &nic::nano::buffers::SizeClass| {
        u64::from(class.bytes.next_multiple_of(64)) * u64::from(class.buffers)
    };
    Some(Nic {
        in_cycles: config.ingress_cycles,
        out_cycles: config.egress_cycles,
        state_bytes: state.bits().map(|bits| f64::from(bits) / 8.0),
        state,
        messages: [config.tx_messages, config.rx_messages],
        buffer_bytes: config.classes.iter().map(bytes).sum(),
        remembered: config.remember.unwrap_or(0),
    })
}

/// Area and clock, or why they are skipped.
fn synthesis(made: &Made) -> Result<Result<Synthesis, String>, Error> {
    if !matches!(made.what, What::Nic(_)) {
        return Ok(Err("of whole NICs alone".into()));
    }
    let tools = match SynthTools::find() {
        Ok(tools) => tools,
        Err(why) => return Ok(Err(why.to_string())),
    };
    warn("area and clock take minutes the first time; --no-synthesis leaves them out");
    let failed = |why: SynthError| Error::Run {
        what: why.to_string(),
        hint: "--no-synthesis prints everything else".into(),
    };
    let folder = kept::folder().join(format!("synthesis.{}", std::process::id()));
    let design = made.ports().written(&made.texts(), &folder).map_err(|why| failed(why.into()))?;
    let cache = kept::folder().join("synthesis");
    let cost = cost(&tools, &design, &folder.join("work"), &cache);
    // Nothing of it is wanted, whatever came of it.
    let _ = std::fs::remove_dir_all(&folder);
    let cost = cost.map_err(failed)?;
    let spacing = made.spacing() as u32;
    Ok(Ok(Synthesis {
        area_um2: cost.area(),
        cells: cost.cells(),
        flip_flops: cost.flip_flops(),
        memory_bits: cost.memory_bits(),
        period_ps: cost.period_ps(),
        packets_per_second: cost.packets_per_second(spacing),
        slowest: cost.slowest().map(|block| slowest(made, block)),
        cost,
    }))
}

fn slowest(made: &Made, block: &BlockCost) -> Slowest {
    let path = block.cost.path.clone();
    Slowest { block: block.module.clone(), lines: lines(made, block), path }
}

/// The lines of P4 beside the signals at the ends of a block's longest path.
fn lines(made: &Made, block: &BlockCost) -> Vec<String> {
    let texts = made.texts();
    let name = format!("{}.sv", block.module);
    let Some((_, text)) = texts.iter().find(|(known, _)| *known == name) else { return Vec::new() };
    let mut found: Vec<String> =
        block.cost.path.iter().filter_map(|end| rtl::paths::line_of(text, end)).collect();
    found.dedup();
    found
}

fn print(report: &Report) -> Ended {
    say(&report.program)?;
    for pipeline in &report.pipelines {
        let Paths { paths, min, median, max, results } = pipeline.cycles;
        say(format_args!(
            "  {}: {paths} paths of {min}, {median}, {max} cycles (min, median, max), results in \
             cycle {results}",
            pipeline.name
        ))?;
        say(format_args!("  {}: packets {}", pipeline.name, pipeline.set_by))?;
    }
    say(format_args!("  {} packets a second at 3.2 GHz", millions(report.packets_per_second)))?;
    if let Some(nic) = &report.nic {
        print_nic(nic)?;
    }
    match (&report.synthesis, &report.synthesis_skipped) {
        (Some(synthesis), _) => print_synthesis(synthesis),
        (None, why) => {
            say(format_args!("  area and clock skipped: {}", why.as_deref().unwrap_or("")))
        }
    }
}

fn print_nic(nic: &Nic) -> Ended {
    say(format_args!(
        "  the NIC: what a packet does takes effect in cycle {}, a packet begins {} cycles after \
         its choice",
        nic.in_cycles, nic.out_cycles
    ))?;
    for (way, kept, bytes, messages) in [
        ("sent", &nic.state.sent, nic.state_bytes[0], nic.messages[0]),
        ("received", &nic.state.received, nic.state_bytes[1], nic.messages[1]),
    ] {
        let each: Vec<String> = kept.iter().map(|k| format!("{} {}", k.name, k.bits)).collect();
        say(format_args!(
            "  state of a message {way}: {bytes:.1} B, {messages} messages ({} bits)",
            each.join(", ")
        ))?;
    }
    say(format_args!(
        "  memory: buffers of {} each way, {} messages of each kind remembered",
        Bytes(nic.buffer_bytes),
        nic.remembered
    ))
}

fn print_synthesis(synthesis: &Synthesis) -> Ended {
    let mut table = Table::new();
    let header = ["block", "area um^2", "cells", "flip-flops", "memory bits", "period ps"];
    table.load_style(UTF8_FULL_CONDENSED).set_header(header);
    for BlockCost { module, cost, .. } in &synthesis.cost.blocks {
        table.add_row([
            module.clone(),
            format!("{:.0}", cost.area),
            cost.cells.to_string(),
            cost.flip_flops.to_string(),
            cost.memory_bits.to_string(),
            format!("{:.0}", cost.period_ps),
        ]);
    }
    table.add_row([
        "all".to_owned(),
        format!("{:.0}", synthesis.area_um2),
        synthesis.cells.to_string(),
        synthesis.flip_flops.to_string(),
        synthesis.memory_bits.to_string(),
        format!("{:.0}", synthesis.period_ps),
    ]);
    say(right(table))?;
    say(format_args!(
        "  {} packets a second at its own clock (Nangate 45 nm, typical, no wires, memories as \
         black boxes)",
        millions(synthesis.packets_per_second)
    ))?;
    let Some(Slowest { block, path: [from, to], lines }) = &synthesis.slowest else {
        return Ok(());
    };
    let lines = if lines.is_empty() { String::new() } else { format!(" ({})", lines.join(", ")) };
    say(format_args!("  longest path: {block}, from {from} to {to}{lines}"))
}

fn millions(rate: f64) -> String {
    format!("{:.0} million", rate / 1e6)
}
