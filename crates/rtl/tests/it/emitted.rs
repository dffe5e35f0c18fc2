//! What the emitter makes does what the interpreter does: drawn programs and those of `p4/`, at
//! their least spacing, with externs that answer anything after their latency.
//!
//! A few of each in every run; all of them, with more packets, where `TRIMLINE_RTL` is `all`.

use std::collections::VecDeque;
use std::fs;
use std::sync::Arc;

use p4::front;
use p4::ir::circuit::{Delay, Outcome, Target};
use p4::ir::{self, PipelineId, Port as Way, RegisterId};
use p4::program::{Externs, Parsed};
use p4::state::{Count, State};
use programs::PROGRAMS;
use trimline_rtl::emit::{Module, Request, emit};
use trimline_rtl::record::{Layout, Port, Record};
use trimline_rtl::sim::{Design, Simulation};
use trimline_rtl::tools::Tools;

use crate::draw::{self, Draw};
use crate::traffic::{self, All, Input, Instances, inputs, left_behind, one_by_one};
use crate::{folder, tools};

/// Whether to run all there is.
fn everything() -> bool {
    std::env::var("TRIMLINE_RTL").is_ok_and(|value| value == "all")
}

/// What goes through a module, and what comes out.
struct Bench {
    name: String,
    module: Module,
    program: Arc<ir::Program>,
    ins: Layout,
    outs: Layout,
    /// Registers and counters that other pipelines share, which are outside.
    state: State,
    externs: Instances,
    /// Answers by the cycle in which they are due, with the request.
    due: VecDeque<(u64, usize, Vec<u128>)>,
    draw: Draw,
    spacing: u64,
    packets: Vec<Input>,
    wanted: All,
    outcomes: Vec<Outcome>,
}

impl Bench {
    fn new(
        name: &str,
        program: &Arc<ir::Program>,
        at: PipelineId,
        packets: Vec<Input>,
        target: Option<&Target>,
    ) -> Self {
        let state = State::new(Arc::clone(program));
        let name = format!("{name}_{}", program.pipelines[at.index()].name);
        let module = emit(program, at, &state, target, &name);
        let module = module.unwrap_or_else(|why| panic!("{name}: {why}"));
        let spacing = module.spacing();
        Self {
            name,
            ins: Layout::new(module.inputs().to_vec()),
            outs: Layout::new(module.outputs().to_vec()),
            module,
            program: Arc::clone(program),
            state,
            externs: Instances::new(program),
            due: VecDeque::new(),
            draw: Draw(99),
            spacing: spacing.into(),
            wanted: said(program, at, one_by_one(program, at, &packets, None)),
            packets,
            outcomes: Vec::new(),
        }
    }

    /// Anything on all inputs, and no packet.
    fn idle(&mut self) -> Record {
        let mut record = self.ins.zero();
        for port in 0..self.ins.ports().len() {
            let words: Vec<u32> =
                (0..self.ins.ports()[port].words()).map(|_| self.draw.bits() as u32).collect();
            self.ins.set_words(&mut record, port, &words);
        }
        self.set(&mut record, "valid_i", 0);
        record
    }

    fn set(&self, record: &mut Record, name: &str, value: u128) {
        self.ins.set(record, self.ins.port(name), value);
    }

    fn get(&self, record: &Record, name: &str) -> u128 {
        self.outs.get(record, self.outs.port(name))
    }

    fn enter(&self, record: &mut Record, (packet, meta): &Input) {
        self.set(record, "valid_i", 1);
        self.set(record, "length_i", packet.len() as u128);
        for (name, value) in self.module.ports().meta_in.iter().zip(meta) {
            if let Some(name) = name {
                self.set(record, name, *value);
            }
        }
        let window = self.module.window() as usize;
        if window > 0 {
            let port = self.ins.port("packet_i");
            // What is behind the packet's end is anything.
            let mut words = self.ins.get_words(record, port).to_vec();
            for (at, byte) in packet.iter().take(window).enumerate() {
                let low = 8 * (window - 1 - at);
                let word = &mut words[low / 32];
                *word = *word & !(0xff << (low % 32)) | u32::from(*byte) << (low % 32);
            }
            self.ins.set_words(record, port, &words);
        }
    }

    /// The inputs of a cycle.
    fn inputs(&mut self, now: u64) -> Record {
        let mut record = self.idle();
        if now.is_multiple_of(self.spacing)
            && let Some(input) = self.packets.get((now / self.spacing) as usize)
        {
            self.enter(&mut record, input);
        }
        while let Some((_, request, values)) = self.due.pop_front_if(|(due, ..)| *due == now) {
            let names = &self.module.requests()[request].results;
            for (name, value) in names.iter().zip(values) {
                self.set(&mut record, name, value);
            }
        }
        record
    }

    /// The outputs of a cycle.
    fn outputs(&mut self, out: &Record, now: u64) {
        self.answer(out, now);
        let name = &self.name;
        let since = now.checked_sub(self.module.latency().into());
        let due = since.is_some_and(|since| {
            since.is_multiple_of(self.spacing) && since / self.spacing < self.packets.len() as u64
        });
        assert_eq!(self.get(out, "valid_o") == 1, due, "{name}: valid in cycle {now}");
        if due {
            let (outcome, number) = (self.outcome(out), self.outcomes.len());
            let wanted = &self.wanted.outcomes[number];
            assert_eq!(&outcome, wanted, "{name}: packet {number}, cycle {now}");
            self.outcomes.push(outcome);
        }
    }

    fn is_done(&self) -> bool {
        self.outcomes.len() == self.packets.len()
    }

    /// Asks the externs what the module asks.
    fn answer(&mut self, out: &Record, now: u64) {
        let mut writes = Vec::new();
        for (at, request) in self.module.requests().iter().enumerate() {
            if self.get(out, &request.valid) == 0 {
                continue;
            }
            let Request { port, latency, args, results, .. } = request;
            let args: Vec<u128> = args.iter().map(|name| self.get(out, name)).collect();
            let mut values = vec![0; results.len()];
            match *port {
                Way::Call(which) => self.externs.call(which, &args, &mut values),
                Way::Read(register) => values[0] = self.state.register(register, args[0]),
                Way::Write(register) => writes.push((register, args)),
                Way::Count(counter) => self.state.count(counter, args[0], args[1] as usize),
                Way::LookUp(_) => unreachable!("tables are inside"),
            }
            if !values.is_empty() {
                self.due.push_back((now + u64::from(*latency), at, values));
            }
        }
        for (register, args) in writes {
            self.state.set_register(register, args[0], args[1]);
        }
        // Latencies differ.
        self.due.make_contiguous().sort_by_key(|(due, ..)| *due);
    }

    fn outcome(&self, out: &Record) -> Outcome {
        if self.get(out, "accepted_o") == 0 {
            let error = ir::ErrorId(self.get(out, "error_o") as u32);
            return Outcome { result: Err(error), meta: Vec::new(), out: Vec::new() };
        }
        let bytes = self.get(out, "bytes_o") as usize;
        let names = self.module.ports().meta_out.iter();
        let meta = names.map(|name| name.as_ref().map_or(0, |name| self.get(out, name))).collect();
        let mut header = Vec::new();
        if self.module.ports().header {
            let port = self.outs.port("header_o");
            let words = self.outs.get_words(out, port);
            let whole = self.outs.ports()[port].bits() as usize / 8;
            let byte = |at: usize| {
                let low = 8 * (whole - 1 - at);
                (words[low / 32] >> (low % 32)) as u8
            };
            let length = self.get(out, "header_length_o") as usize;
            header.extend((0..whole).map(byte));
            assert!(header[length..].iter().all(|byte| *byte == 0), "zeros behind the headers");
            header.truncate(length);
        }
        Outcome { result: Ok(Parsed { bytes }), meta, out: header }
    }

    /// The inputs that ask for a place of all registers and counters inside.
    fn ask(&mut self, index: u128) -> Record {
        let mut record = self.idle();
        for reading in self.module.readings() {
            self.set(&mut record, &reading.index, index);
        }
        record
    }

    /// What they hold there.
    fn told(&mut self, out: &Record, index: u128) {
        for reading in self.module.readings().to_vec() {
            if index < reading.size.into() {
                let values: Vec<u128> =
                    reading.values.iter().map(|name| self.get(out, name)).collect();
                self.remember(&reading.name, index, &values);
            }
        }
    }

    /// Registers, counters and externs are as the interpreter leaves them.
    fn check_what_is_left(&mut self) {
        let outcomes = std::mem::take(&mut self.outcomes);
        let got = left_behind(outcomes, self.externs.clone(), &self.state);
        assert!(got == self.wanted, "{}: what is left behind", self.name);
    }

    fn remember(&mut self, name: &str, index: u128, values: &[u128]) {
        if let [value] = *values {
            let known = self.program.registers.iter().position(|r| r.name == name).unwrap();
            self.state.set_register(RegisterId(known as u32), index, value);
            return;
        }
        let known = self.program.counters.iter().position(|c| c.name == name).unwrap();
        let count = Count { packets: values[0] as u64, bytes: values[1] as u64 };
        let counter = ir::CounterId(known as u32);
        // A state counts; it is not told what it has counted.
        for packet in 0..count.packets {
            let bytes = if packet == 0 { count.bytes as usize } else { 0 };
            self.state.count(counter, index, bytes);
        }
    }
}

/// Only what the module says: metadata that it sets, and none of a packet that is refused.
fn said(program: &ir::Program, at: PipelineId, mut all: All) -> All {
    for outcome in &mut all.outcomes {
        for (value, known) in outcome.meta.iter_mut().zip(&program.pipelines[at.index()].meta) {
            if known.direction == ir::Direction::In {
                *value = 0;
            }
        }
        if outcome.result.is_err() {
            outcome.meta.clear();
            outcome.out.clear();
        }
    }
    all
}

/// Modules side by side in one design: building each alone would take longer.
struct Rig {
    benches: Vec<Bench>,
    run: Simulation,
}

impl Rig {
    fn new(tools: &Tools, name: &str, benches: Vec<Bench>) -> Self {
        let folder = folder(name);
        // What an earlier run with other modules has left would be compiled, too.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let mut sources = Vec::new();
        for bench in &benches {
            let source = folder.join(format!("{}.sv", bench.name));
            fs::write(&source, bench.module.text()).unwrap();
            sources.push(source);
        }
        let top = folder.join(format!("{name}.sv"));
        fs::write(&top, top_of(name, &benches)).unwrap();
        sources.push(top);
        let ports = |of: fn(&Module) -> &[Port]| {
            let each = benches.iter().flat_map(|bench| {
                let name = &bench.name;
                let ports = of(&bench.module).iter();
                ports.map(move |port| Port::new(&format!("{name}_{}", port.name()), port.bits()))
            });
            each.collect()
        };
        let (inputs, outputs) = (ports(Module::inputs), ports(Module::outputs));
        let parameters = Vec::new();
        let design = Design { top: name.to_owned(), sources, parameters, inputs, outputs };
        let run = design.start(tools, &folder).unwrap_or_else(|why| panic!("{name}: {why}"));
        Self { benches, run }
    }

    /// A cycle with the inputs that each module gets, and each module's outputs.
    fn step(&mut self, inputs: &[Record]) -> Vec<Record> {
        let (ins, outs) = (self.run.inputs().clone(), self.run.outputs().clone());
        let (mut whole, mut port) = (ins.zero(), 0);
        for (bench, record) in self.benches.iter().zip(inputs) {
            for own in 0..bench.ins.ports().len() {
                ins.set_words(&mut whole, port, bench.ins.get_words(record, own));
                port += 1;
            }
        }
        let out = self.run.step(&whole).unwrap_or_else(|why| panic!("{why}"));
        let (mut all, mut port) = (Vec::new(), 0);
        for bench in &self.benches {
            let mut record = bench.outs.zero();
            for own in 0..bench.outs.ports().len() {
                bench.outs.set_words(&mut record, own, outs.get_words(&out, port));
                port += 1;
            }
            all.push(record);
        }
        all
    }

    /// All packets of all modules, then what they leave behind; how many packets.
    fn hold(mut self) -> usize {
        while !self.benches.iter().all(Bench::is_done) {
            let now = self.run.cycle();
            let inputs: Vec<Record> = self.benches.iter_mut().map(|b| b.inputs(now)).collect();
            let outputs = self.step(&inputs);
            for (bench, out) in self.benches.iter_mut().zip(&outputs) {
                bench.outputs(out, now);
            }
        }
        for index in 0..64 {
            let inputs: Vec<Record> = self.benches.iter_mut().map(|b| b.ask(index)).collect();
            let outputs = self.step(&inputs);
            for (bench, out) in self.benches.iter_mut().zip(&outputs) {
                bench.told(out, index);
            }
        }
        self.benches.iter_mut().for_each(Bench::check_what_is_left);
        self.benches.iter().map(|bench| bench.packets.len()).sum()
    }
}

/// About what a slow process does in a cycle of 1 GHz.
const TARGET: Target = Target {
    period: 1000,
    logic: Delay { fixed: 40, doubling: 0 },
    mux: Delay { fixed: 60, doubling: 5 },
    equal: Delay { fixed: 60, doubling: 40 },
    add: Delay { fixed: 80, doubling: 60 },
    saturate: Delay { fixed: 120, doubling: 60 },
    shift: Delay { fixed: 60, doubling: 70 },
    multiply: Delay { fixed: 400, doubling: 350 },
};

/// A module with all of them in it, and their ports with their names before them.
fn top_of(name: &str, benches: &[Bench]) -> String {
    let (mut ports, mut body) = (String::new(), String::new());
    for bench in benches {
        let own = &bench.name;
        let mut joins = String::new();
        let inputs = bench.module.inputs().iter().map(|port| ("input", port));
        let outputs = bench.module.outputs().iter().map(|port| ("output", port));
        for (way, port) in inputs.chain(outputs) {
            let (bits, port) = (port.bits() - 1, port.name());
            ports += &format!(",\n  {way} logic [{bits}:0] {own}_{port}");
            joins += &format!(", .{port}({own}_{port})");
        }
        body += &format!("  {own} u_{own} (.clk_i(clk_i), .rst_ni(rst_ni){joins});\n");
    }
    format!(
        "module {name} (\n  input logic clk_i,\n  input logic rst_ni{ports}\n);\n{body}endmodule\n"
    )
}

/// The benches of all pipelines of a program.
fn benches(
    name: &str,
    program: &Arc<ir::Program>,
    packet: fn(&mut Draw) -> Vec<u8>,
    count: usize,
    target: Option<&Target>,
) -> Vec<Bench> {
    let all = (0..program.pipelines.len() as u32).map(PipelineId);
    let bench = |at| {
        Bench::new(name, program, at, inputs(&mut Draw(5), program, at, packet, count), target)
    };
    all.map(bench).collect()
}

/// All modules of all programs, whether or not they run here.
#[test]
fn verilator_has_nothing_to_say_of_any_module() {
    let Some(tools) = tools("emitted") else { return };
    let folder = folder("lint");
    fs::create_dir_all(&folder).unwrap();
    let shipped = PROGRAMS.iter().map(|variant| {
        (variant.name.to_owned(), traffic::compile(variant.file, variant.constants))
    });
    let drawn = (0..draw::PROGRAMS).map(|n| (format!("drawn{n}"), Arc::new(draw::program(n))));
    let mut lint = tools.verilator();
    // Every module is a top here.
    lint.args(["--lint-only", "-Wall", "-Wno-MULTITOP"]);
    for (name, program) in shipped.chain(drawn) {
        let state = State::new(Arc::clone(&program));
        for (at, pipeline) in (0..).map(PipelineId).zip(&program.pipelines) {
            let name = format!("{name}_{}", pipeline.name);
            let module = emit(&program, at, &state, None, &name);
            let module = module.unwrap_or_else(|why| panic!("{name}: {why}"));
            let source = folder.join(format!("{name}.sv"));
            fs::write(&source, module.text()).unwrap();
            lint.arg(source);
        }
    }
    let said = lint.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn modules_do_what_the_interpreter_does() {
    let Some(tools) = tools("emitted") else { return };
    let (count, drawn) = if everything() { (20_000, draw::PROGRAMS) } else { (1000, 4) };
    let few = ["ndp", "homa_tr", "ndp_switch"];
    let mut all = Vec::new();
    for variant in PROGRAMS.iter().filter(|v| everything() || few.contains(&v.name)) {
        let program = traffic::compile(variant.file, variant.constants);
        all.extend(benches(variant.name, &program, traffic::frame, count, None));
    }
    for number in 0..drawn {
        let program = Arc::new(draw::program(number));
        all.extend(benches(&format!("drawn{number}"), &program, traffic::packet, count, None));
    }
    // Those that touch no memory take a packet each cycle.
    let many = if everything() { 12 } else { 2 };
    let others = (draw::PROGRAMS..draw::PROGRAMS + 400).flat_map(|number| {
        let program = Arc::new(draw::program(number));
        benches(&format!("drawn{number}"), &program, traffic::packet, count, None)
    });
    let each_cycle: Vec<Bench> = others.filter(|b| b.spacing == 1).take(many).collect();
    assert_eq!(each_cycle.len(), many, "too few drawn programs touch no memory");
    all.extend(each_cycle);
    // With a clock, values take cycles, multiplications several.
    let hpcc = traffic::compile("hpcc.p4", &[]);
    all.extend(benches("hpcc_clocked", &hpcc, traffic::frame, count, Some(&TARGET)));
    let (mut packets, mut rigs) = (0, 0);
    while !all.is_empty() {
        let some = all.split_off(all.len().saturating_sub(10));
        packets += Rig::new(&tools, &format!("emitted{rigs}"), some).hold();
        rigs += 1;
    }
    println!("{packets} packets, all as the interpreter has them");
}

/// A program of a parser and a control around these statements.
fn program(parser: &str, locals: &str, apply: &str) -> Arc<ir::Program> {
    let text = format!(
        "#include <core.p4>
        struct info_t {{ bit<32> a; bit<32> b; }}
        extern Register<T> {{ Register(bit<32> size); @latency(1) T read(in bit<32> index);
                             @latency(1) void write(in bit<32> index, in T value); }}
        header x_t {{ bit<32> x; }}
        parser P<H>(packet_in packet, out H h);
        control C<H>(inout H h, inout info_t info);
        package Box<H>(P<H> p, C<H> c);
        parser Parse(packet_in packet, out x_t h) {{
            state start {{
                {parser}
                transition accept;
            }}
        }}
        control Work(inout x_t h, inout info_t info) {{
            {locals}
            apply {{ {apply} }}
        }}
        Box(Parse(), Work()) main;"
    );
    let compiled = front::compile(&|_| Ok(text.clone()), "x.p4", &[]);
    Arc::new(compiled.unwrap_or_else(|errors| panic!("{}", errors[0])))
}

/// What the emitter does not make is refused with its line and what to do.
#[test]
fn what_no_module_is_made_of_is_refused() {
    let refused = |program: &Arc<ir::Program>, state: &State| {
        emit(program, PipelineId(0), state, None, "m").unwrap_err().to_string()
    };
    for (parser, locals, apply, wanted) in [
        (
            "packet.extract(h); packet.advance(h.x); packet.extract(h);",
            "",
            "info.b = h.x;",
            "x.p4:11: where this header begins depends on a number in the packet: advance by",
        ),
        (
            "packet.advance(8192); packet.extract(h);",
            "",
            "info.b = h.x;",
            "x.p4:11: the parser looks 1028 bytes into the packet, and at most 1024 are there",
        ),
        (
            "packet.extract(h);",
            "Register<bit<128>>(65536) r;",
            "info.a = (bit<32>)r.read(info.b);",
            "x.p4:16: register Work.r has 8388608 bits, and at most 4194304 are made: give it fewer",
        ),
    ] {
        let program = program(parser, locals, apply);
        let why = refused(&program, &State::new(Arc::clone(&program)));
        assert!(why.starts_with(wanted), "{why}");
    }
    let table = "action set(bit<32> to) { info.b = to; }
        table t { key = { info.a: exact; } actions = { set; NoAction; } size = 2000;
                  default_action = NoAction(); }";
    let program = program("packet.extract(h);", table, "t.apply();");
    let mut state = State::new(Arc::clone(&program));
    for value in 0..1025 {
        let choice = ir::Choice { action: 0, args: vec![value] };
        let entry = ir::Entry { patterns: vec![ir::Pattern::Value(value)], priority: 0, choice };
        state.insert(ir::TableId(0), entry).unwrap();
    }
    let why = refused(&program, &state);
    let wanted = "x.p4:17: table Work.t has 1025 entries, and at most 1024 are made: give it fewer";
    assert!(why.starts_with(wanted), "{why}");
}
