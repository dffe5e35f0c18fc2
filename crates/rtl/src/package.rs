//! A design that needs nothing else: its sources, a list of them for tools (`nic.f`), a page about
//! its ports (`PORTS.md`), and an example that runs under cocotb.

use std::fmt::Write as _;

use ::nic::nano::config::Config;
use p4::ir::{self, PipelineId, Program};

use crate::emit::Module;
use crate::nic::{self, Nic};
use crate::pipelines::{self, Pipelines};
use crate::ports::{self, Meaning, meaning};
use crate::record::Port;
use crate::sim::Design;
use crate::switch::{self, SwitchPort};

/// What runs the example.
const RUN: &str = include_str!("../../../rtl/cocotb/run.py");

/// What its test begins with.
const DESIGN: &str = include_str!("../../../rtl/cocotb/design.py");

/// Paths below the design's folder, and texts.
pub type Files = Vec<(String, String)>;

/// The files of a whole NIC of `config`, with or without its bytes, which `program` has been made
/// into.
#[must_use]
pub fn of_nic(program: &Program, nic: &Nic, config: &Config) -> Files {
    let protocols: Vec<String> = config.protocols.iter().map(u8::to_string).collect();
    let (test, frames) = if nic.top == nic::TOP {
        (include_str!("../../../rtl/cocotb/test_nic.py"), ["`rx_frame_i`", "`tx_frame_o`"])
    } else {
        (include_str!("../../../rtl/cocotb/test_nic_data.py"), ["frames that come", "frames"])
    };
    let test = test.replace("@PROTOCOLS@", &protocols.join(", "));
    let design = nic.ports();
    let page = page(program, &design, ports::MEANINGS, &[(0, frames[0]), (1, frames[1])]);
    packed(&design, nic.texts(), page, &test)
}

/// The files of a switch's port, which `program` has been made into.
#[must_use]
pub fn of_switch(program: &Program, port: &SwitchPort) -> Files {
    let test = include_str!("../../../rtl/cocotb/test_switch_port.py");
    let test = test.replace("@DECIDING@", &port.deciding.to_string());
    let design = port.ports();
    let page = page(program, &design, switch::MEANINGS, &[(0, "`rx_packet_i`")]);
    packed(&design, port.texts(), page, &test)
}

/// The files of the pipelines of `program` alone.
#[must_use]
pub fn of_pipelines(program: &Program, pipelines: &Pipelines) -> Files {
    let latency = |module: &Module| format!("\"{}\": {}", module.name(), module.latency());
    let latencies: Vec<String> = pipelines.modules().iter().map(latency).collect();
    let test = include_str!("../../../rtl/cocotb/test_pipelines.py");
    let test = test.replace("@LATENCIES@", &latencies.join(", "));
    let page = pipelines_page(program, pipelines);
    packed(&pipelines.ports(), pipelines.texts(), page, &test)
}

fn packed(design: &Design, sources: Files, page: String, test: &str) -> Files {
    let top = &design.top;
    let inputs: Vec<&str> = design.inputs.iter().map(Port::name).collect();
    let sources = sources.into_iter().map(|(name, text)| (format!("rtl/{name}"), text));
    let mut files: Files = sources.collect();
    let list = files.iter().map(|(path, _)| format!("{path}\n")).collect();
    files.push((format!("{top}.f"), list));
    files.push(("PORTS.md".into(), page));
    let run = RUN.replace("@TOP@", top).replace("@LIST@", &format!("{top}.f"));
    files.push(("cocotb/run.py".into(), run));
    files.push(("cocotb/design.py".into(), DESIGN.replace("@INPUTS@", &inputs.join("\n"))));
    files.push((format!("cocotb/test_{top}.py"), test.into()));
    files
}

const HEAD: &str = "| port | | bits | in the program | |\n|---|---|---|---|---|\n";

fn main_file(program: &Program) -> &str {
    program.files.first().map_or("a program", String::as_str)
}

/// A page about all ports, and the headers of some pipelines: where they are.
fn page(
    program: &Program,
    design: &Design,
    meanings: &'static [Meaning],
    frames: &[(usize, &str)],
) -> String {
    let top = &design.top;
    let mut page = format!(
        "# Ports of `{top}`, made of {}\n\nRules and their numbers are those of Trimline's \
         docs/nic.md. Build it with `verilator -f {top}.f --top-module {top}`,\nrun the example \
         with `python cocotb/run.py`.\n\n{HEAD}",
        main_file(program)
    );
    let clock = [Port::new("clk_i", 1), Port::new("rst_ni", 1)];
    let inputs = clock.iter().chain(&design.inputs).map(|port| ("in", port));
    for (way, port) in inputs.chain(design.outputs.iter().map(|port| ("out", port))) {
        let (_, field, text) = meaning(meanings, port.name()).copied().unwrap_or_default();
        let _ =
            writeln!(page, "| `{}` | {way} | {} | {field} | {text} |", port.name(), port.bits());
    }
    for (at, frame) in frames {
        let _ = write!(page, "\n## Headers in {frame}\n{}", headers(program, *at));
    }
    page
}

/// The headers of a pipeline, with their fields.
fn headers(program: &Program, at: usize) -> String {
    let pipeline = &program.pipelines[at];
    let mut text = "\n| field | first bit of its header | bits |\n|---|---|---|\n".to_owned();
    for header in &pipeline.headers {
        for field in &header.fields {
            let slot = &pipeline.slots[field.slot.index()];
            let _ = writeln!(text, "| `{}` | {} | {} |", slot.name, field.offset, slot.width);
        }
    }
    text
}

fn pipelines_page(program: &Program, pipelines: &Pipelines) -> String {
    let mut page = format!(
        "# Ports of `{top}`, made of {}\n\nEach pipeline is a module of its name; the top has the \
         ports of all with the name before them.\nRun the example with `python cocotb/run.py`.\n",
        main_file(program),
        top = pipelines::TOP
    );
    for (at, module) in (0..).map(PipelineId).zip(pipelines.modules()) {
        let _ = write!(
            page,
            "\n## `{}`: results {} cycles behind the packet, packets {} apart at least\n\n{HEAD}",
            module.name(),
            module.latency(),
            module.spacing()
        );
        let known = fields(program, at, module);
        let inputs = module.inputs().iter().map(|port| ("in", port));
        for (way, port) in inputs.chain(module.outputs().iter().map(|port| ("out", port))) {
            let found = known.iter().find(|(name, ..)| name == port.name());
            let (field, text) = found.map_or(("", ""), |(_, field, text)| (field, text));
            let row = (port.name(), port.bits());
            let _ = writeln!(page, "| `{}` | {way} | {} | {field} | {text} |", row.0, row.1);
        }
        let _ = write!(page, "\nHeaders:\n{}", headers(program, at.index()));
    }
    page
}

/// Ports of a module: names, what the program calls them, and what they mean.
fn fields(program: &Program, at: PipelineId, module: &Module) -> Vec<(String, String, String)> {
    let row = |name: &str, field: &str, text: &str| {
        let field = if field.is_empty() { String::new() } else { format!("`{field}`") };
        (name.to_owned(), field, text.to_owned())
    };
    let mut all = vec![
        row("valid_i", "", "a packet comes"),
        row("length_i", "", "bytes of the whole packet"),
        row("packet_i", "", "its first bytes, the first at the top"),
        row("valid_o", "", "the results of a packet"),
        row("accepted_o", "", "whether the parser accepts it; otherwise only `error_o` holds"),
        row("error_o", "", "why not"),
        row("bytes_o", "", "bytes that the parser has taken"),
        row("header_o", "", "headers that are emitted, the first byte at the top"),
        row("header_length_o", "", "bytes of them"),
    ];
    let meta = &program.pipelines[at.index()].meta;
    for (ports, text) in [
        (&module.ports().meta_in, "with the packet"),
        (&module.ports().meta_out, "with its results"),
    ] {
        let named = ports.iter().zip(meta).filter_map(|(port, meta)| Some((port.as_ref()?, meta)));
        all.extend(named.map(|(port, meta)| row(port, &meta.name, text)));
    }
    for request in module.requests() {
        let called = request.port.name(program);
        let when = format!("{} cycles behind the packet", request.cycle);
        all.push(row(&request.valid, &called, &format!("it is called, {when}")));
        let (args, results) = parts(program, request.port);
        let args = request.args.iter().zip(args);
        all.extend(args.map(|(port, name)| row(port, &format!("{called}: {name}"), "argument")));
        let text = format!("answer, {} cycles behind the call", request.latency);
        let results = request.results.iter().zip(results);
        all.extend(results.map(|(port, name)| row(port, &format!("{called}: {name}"), &text)));
    }
    for reading in module.readings() {
        all.push(row(&reading.index, &reading.name, "which place the control plane reads"));
        all.extend(reading.values.iter().map(|port| row(port, &reading.name, "what is there")));
    }
    all
}

/// Names of the arguments and the results of an access.
fn parts(program: &Program, port: ir::Port) -> (Vec<String>, Vec<String>) {
    let names = |values: &[ir::Value]| values.iter().map(|value| value.name.clone()).collect();
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    match port {
        ir::Port::Call(which) => {
            let known = &program.externs[which.index()];
            (names(&known.args), names(&known.results))
        }
        ir::Port::Read(_) => (words(&["index"]), words(&["value"])),
        ir::Port::Write(_) => (words(&["index", "value"]), Vec::new()),
        ir::Port::Count(_) => (words(&["index", "bytes"]), Vec::new()),
        ir::Port::LookUp(_) => (Vec::new(), Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A meaning that stands behind one that begins its name would never be found.
    #[test]
    fn every_meaning_is_found() {
        for of in [ports::MEANINGS, switch::MEANINGS] {
            for (name, ..) in of {
                assert_eq!(meaning(of, name).map(|(known, ..)| *known), Some(*name));
            }
        }
    }
}
