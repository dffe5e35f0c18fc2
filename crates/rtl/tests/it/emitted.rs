//! What the emitter makes does what the interpreter does: drawn programs and those of `p4/`, at
//! their least spacing, with externs that answer anything after their latency.
//!
//! A few of each in every run; all of them, with more packets, where `TRIMLINE_RTL` is `all`.

use std::fs;
use std::sync::Arc;

use p4::front;
use p4::ir::circuit::{Delay, Target};
use p4::ir::{self, PipelineId};
use p4::state::State;
use programs::PROGRAMS;
use trimline_rtl::emit::emit;

use crate::draw;
use crate::rig::{Bench, Rig, benches};
use crate::traffic;
use crate::{everything, folder, tools};

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
    let mut all = forwarding(count);
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
    let each_cycle: Vec<Bench> = others.filter(|b| b.spacing() == 1).take(many).collect();
    assert_eq!(each_cycle.len(), many, "too few drawn programs touch no memory");
    all.extend(each_cycle);
    // With a clock, values take cycles, multiplications several.
    let hpcc = traffic::compile("hpcc.p4", &[]);
    all.extend(benches("hpcc_clocked", &hpcc, traffic::frame, count, Some(&TARGET)));
    let (mut packets, mut rigs) = (0, 0);
    while !all.is_empty() {
        let some = all.split_off(all.len().saturating_sub(10));
        let rig = Rig::new(&tools, &format!("emitted{rigs}"), some);
        packets += rig.hold(None).unwrap_or_else(|why| panic!("{why}"));
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
        extern Unit {{ Unit(); @latency(2) bit<32> ask(in bit<32> n);
                       @latency(2) bit<32> ask2(in bit<32> n);
                       @latency(1) void tell(in bit<32> n); }}
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

/// A register that is written two cycles after it has been read, at two cycles a packet; and an
/// extern with two methods, at four.
fn forwarding(count: usize) -> Vec<Bench> {
    let benches = |name, locals, apply, spacing| {
        let program = program("packet.extract(h);", locals, apply);
        let benches = benches(name, &program, traffic::packet, count, None);
        let spacings: Vec<u64> = benches.iter().map(Bench::spacing).collect();
        assert_eq!(spacings, [spacing], "{name}");
        benches
    };
    let twice = "bit<32> old = r.read(h.x & 3); info.b = r.read(old & 3);
                 r.write(h.x & 3, info.b + info.a);";
    let asked = "info.b = q.ask(h.x); info.a = q.ask2(info.b); q.tell(info.a);";
    let mut all = benches("register", "Register<bit<32>>(4) r;", twice, 2);
    all.extend(benches("methods", "Unit() q;", asked, 4));
    all
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
            "x.p4:14: where this header begins depends on a number in the packet: advance by",
        ),
        (
            "packet.advance(8192); packet.extract(h);",
            "",
            "info.b = h.x;",
            "x.p4:14: the parser looks 1028 bytes into the packet, and at most 1024 are there",
        ),
        (
            "packet.extract(h);",
            "Register<bit<128>>(65536) r;",
            "info.a = (bit<32>)r.read(info.b);",
            "x.p4:19: register Work.r has 8388608 bits, and at most 4194304 are made: give it fewer",
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
    let wanted = "x.p4:20: table Work.t has 1025 entries, and at most 1024 are made: give it fewer";
    assert!(why.starts_with(wanted), "{why}");
}
