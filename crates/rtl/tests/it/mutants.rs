//! Mistakes planted at each value and each register of a pipeline, all in one build: packets at the
//! least spacing have to find each, unless a proof shows that nothing can.
//!
//! A sample of NDP in every run; all of NDP and Homa-Tr where `TRIMLINE_RTL` is `all`.

use std::fmt::Write as _;
use std::fs;
use std::thread;

use trimline_rtl::emit::{Module, SELECT, emit_with_mutants};
use trimline_rtl::prove::{Proof, ProveError, Prover};
use trimline_rtl::record::Port;
use trimline_rtl::sim::Design;

use crate::draw::Draw;
use crate::rig::{Rig, benches_of};
use crate::traffic;
use crate::{everything, folder, tools};

/// Packets through each pipeline before a mistake counts as not found. Most are found by the first
/// ones, so more of them cost little.
const PACKETS: usize = 6000;

/// Threads that look for mistakes.
const WORKERS: usize = 4;

/// One in so many mistakes in a default run.
const SAMPLE: usize = 16;

/// A frame of a program that has mistakes, in half of the cases wrong in the bytes that a parser
/// chooses by, cut off, or both. One in four has many small numbers behind its flags: programs
/// compare fields with such. One in sixteen has no flag that a program knows.
fn frame(draw: &mut Draw) -> Vec<u8> {
    let mut frame = traffic::frame(draw);
    if draw.below(4) == 0 {
        for byte in frame.iter_mut().skip(35) {
            if draw.below(2) == 0 {
                *byte = draw.below(3) as u8;
            }
        }
    }
    let mut set = |at: usize, value: u8| frame.get_mut(at).map(|byte| *byte = value);
    if draw.below(16) == 0 {
        set(34, [0x00, 0x20, 0x40, 0x80][draw.below(4) as usize]);
    }
    set(23, [154, 155][draw.below(2) as usize]);
    if draw.below(4) == 0 {
        set([12, 13, 14, 23][draw.below(4) as usize], draw.bits() as u8);
    }
    if draw.below(3) == 0 {
        frame.truncate(draw.below(70) as usize);
    }
    frame
}

/// Those that a test is true of. Most of the time the two ends of a pipe wait for one another, so
/// several at once.
fn some<T: Copy + Sync + Send>(all: &[T], test: impl Fn(&T) -> bool + Sync) -> Vec<T> {
    let test = &test;
    let chunks = all.chunks(all.len().div_ceil(WORKERS).max(1));
    thread::scope(|scope| {
        let of = |chunk: &'_ [T]| chunk.iter().filter(|one| test(one)).copied().collect::<Vec<T>>();
        let workers: Vec<_> = chunks.map(|chunk| scope.spawn(move || of(chunk))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

fn check(name: &str, file: &str, constants: &[(&str, i128)]) {
    let Some(tools) = tools(name) else { return };
    let prover = match Prover::find() {
        Ok(prover) => prover,
        Err(why) => {
            println!("{name} skipped: {why}");
            return;
        }
    };
    let program = traffic::compile(file, constants);
    let make = |at, state: &_, name: &str| emit_with_mutants(&program, at, state, name);
    let benches = benches_of(name, &program, frame, PACKETS, make);
    let rig = Rig::new(&tools, name, benches);
    rig.hold(None).unwrap_or_else(|why| panic!("without a mistake: {why}"));
    let every = if everything() { 1 } else { SAMPLE };
    for (at, bench) in rig.benches().iter().enumerate() {
        let module = bench.module();
        let mutants = (1..).zip(module.mutants()).step_by(every);
        let (unread, read): (Vec<_>, Vec<_>) = mutants.partition(|(_, mutant)| mutant.is_unread());
        let missed = some(&read, |(number, _)| rig.hold(Some((at, *number))).is_ok());
        let shown = some(&missed, |(number, mutant)| {
            match no_input_shows(&prover, module, *number) {
                Ok(_) => println!("{}: {mutant}: no input shows it", module.name()),
                Err(ProveError::Broken { .. }) => return true,
                Err(why) => panic!("{mutant}: {why}"),
            }
            false
        });
        let shown: Vec<String> = shown.iter().map(|(_, mutant)| mutant.to_string()).collect();
        println!(
            "{}: of {} mistakes {} are found, {} change what nothing reads, no input shows {}",
            module.name(),
            unread.len() + read.len(),
            read.len() - missed.len(),
            unread.len(),
            missed.len() - shown.len(),
        );
        assert!(shown.is_empty(), "{}: not found: {shown:#?}", module.name());
    }
}

#[test]
fn mistakes_in_ndp_are_found() {
    check("mutants_ndp", "ndp.p4", &[]);
}

#[test]
fn mistakes_in_homa_tr_are_found() {
    if everything() {
        check("mutants_homa_tr", "homa.p4", &[("TRIM", 1)]);
    }
}

/// The module with and without a mistake, and that all that anybody may look at is the same.
fn miter(module: &Module) -> String {
    let name = module.name();
    let (mut ports, mut joins, mut body) = (String::new(), String::new(), String::new());
    for port in module.inputs().iter().filter(|port| port.name() != SELECT.0) {
        let (bits, port) = (port.bits() - 1, port.name());
        let _ = write!(ports, ",\n  input logic [{bits}:0] {port}");
        let _ = write!(joins, ", .{port}({port})");
    }
    for (side, number) in [("sound", "16'd0"), ("wrong", "16'(Mutant)")] {
        let mut own = joins.clone();
        for port in module.outputs() {
            let (bits, port) = (port.bits() - 1, port.name());
            let _ = writeln!(body, "  logic [{bits}:0] {side}_{port};");
            let _ = write!(own, ", .{port}({side}_{port})");
        }
        let select = SELECT.0;
        let _ = writeln!(
            body,
            "  {name} u_{side} (.clk_i(clk_i), .rst_ni(rst_ni), .{select}({number}){own});"
        );
    }
    let same = |port: &str| format!("sound_{port} == wrong_{port}");
    let mut claims = Vec::new();
    for port in module.outputs().iter().map(Port::name) {
        let request =
            module.requests().iter().find(|request| request.args.iter().any(|arg| arg == port));
        let when = match (port, request) {
            (_, Some(request)) => format!("!sound_{} || ", request.valid),
            ("accepted_o", _) => "!sound_valid_o || ".to_owned(),
            ("error_o", _) => "!sound_valid_o || sound_accepted_o || ".to_owned(),
            _ if port == "valid_o" || is_free(module, port) => String::new(),
            _ => "!(sound_valid_o && sound_accepted_o) || ".to_owned(),
        };
        claims.push(format!("({when}{})", same(port)));
    }
    format!(
        "module miter #(parameter int Mutant = 0) (\n  input logic clk_i,\n  input logic rst_ni{ports}\n);\n\
         {body}  always_ff @(posedge clk_i) begin\n    if (rst_ni) begin\n      \
         same: assert ({});\n    end\n  end\nendmodule\n",
        claims.join(" &&\n        ")
    )
}

/// Whether an output means something in every cycle: that of a request, or of a reading.
fn is_free(module: &Module, port: &str) -> bool {
    module.requests().iter().any(|request| request.valid == port)
        || module.readings().iter().any(|reading| reading.values.iter().any(|value| value == port))
}

/// A proof that no inputs at the least spacing show a mistake. What comes out depends on no more
/// cycles than the latency, and what registers hold before is anything.
fn no_input_shows(prover: &Prover, module: &Module, number: usize) -> Result<Proof, ProveError> {
    let folder = folder(&format!("miter_{}_{number}", module.name()));
    fs::create_dir_all(&folder)?;
    let select = format!("if ({} == 16'd0) too_close: assume (", SELECT.0);
    let text = module.text().replace("too_close: assert (", &select);
    let sources = [("module.sv", text), ("miter.sv", miter(module))];
    let sources = sources.map(|(file, text)| (folder.join(file), text));
    for (file, text) in &sources {
        fs::write(file, text)?;
    }
    let design = Design {
        top: "miter".into(),
        sources: sources.map(|(file, _)| file).into(),
        parameters: vec![("Mutant".into(), number.to_string())],
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    prover.prove(&design, module.latency() + 2, &folder)
}
