//! Programs whose packets follow one another closely (`ir::Hardware`; specs/nanotransport.md#N12):
//! the shipped ones, which are safe, and small ones, which are not.

use crate::shipped;

use p4::front;
use p4::ir::{self, Hardware, Hazard};
use shipped::{HOMA_TR, compile};
use trimline_nic::nano::externs::FREED_BY_RESULTS;

/// Pipeline, least spacing, and the accesses that set it, in their cycles.
fn spacing(program: &ir::Program, at: usize, fed: &[&str]) -> (u32, Vec<(String, u32)>) {
    let spacing = Hardware::new(program).unwrap().spacings(fed).swap_remove(at);
    let ends = spacing.between.into_iter().flatten();
    (spacing.cycles, ends.map(|end| (end.name, end.cycle)).collect())
}

fn hazards(program: &ir::Program) -> Vec<Hazard> {
    Hardware::new(program).unwrap().hazards()
}

/// N12, and that what a program does packet by packet it does in a pipeline, too: no port of a unit
/// is asked twice by a packet, nothing is read while the packet before is about to change it, and
/// no register is written from two pipelines.
#[test]
fn n12_shipped_programs_without_hazards() {
    let files = ["ndp.p4", "window.p4", "ndp_bypass.p4", "ndp_switch.p4", "dcqcn.p4", "hpcc.p4"];
    for file in files {
        let program = compile(file, &[]);
        assert_eq!(hazards(&program), [], "{file}");
        assert!(!Hardware::new(&program).unwrap().memories().is_empty(), "{file}");
    }
}

/// Programs of which a memory is changed more than two cycles after it has been read: Homa's for
/// the message that is granted, Swift's and NSCC's for the flow (docs/nic.md).
#[test]
fn what_changes_late_is_a_hazard() {
    let homa = ["granted", "first_missing", "origins"].map(|name| (name, 4));
    for (file, constants, wanted) in [
        ("homa.p4", &[][..], &homa[..]),
        ("homa.p4", HOMA_TR, &homa),
        ("ndp_homa.p4", &[], &homa),
        ("swift.p4", &[], &[("fabric_window", 3)]),
        ("nscc.p4", &[], &[("windows", 3)]),
    ] {
        let found = hazards(&compile(file, constants));
        let windows = found.iter().map(|hazard| match hazard {
            Hazard::Window { name, cycles, .. } => (name.rsplit('.').next().unwrap(), *cycles),
            other => panic!("{file}: {other}"),
        });
        assert_eq!(windows.collect::<Vec<_>>(), wanted, "{file}");
    }
}

/// How close packets may come (issue 23): with a message freed in its last lookup, and where what
/// the program says frees it after the last stage.
#[test]
fn shipped_programs_have_these_spacings() {
    let named = |name: &str, cycle| (name.to_owned(), cycle);
    let lookup = || named("get_rx_msg_info", 0);
    let homa = compile("homa.p4", HOMA_TR);
    let loops = [named("HomaIngress.granted.execute", 2), named("HomaIngress.granted.second", 6)];
    assert_eq!(spacing(&homa, 0, &[]), (4, loops.to_vec()));
    let results = |cycle| vec![lookup(), named("the results", cycle)];
    assert_eq!(spacing(&homa, 0, FREED_BY_RESULTS), (8, results(8)));
    assert_eq!(spacing(&homa, 1, &[]).0, 2);
    let ndp = compile("ndp.p4", &[]);
    assert_eq!(spacing(&ndp, 0, &[]), (2, vec![lookup(), lookup()]));
    assert_eq!(spacing(&ndp, 0, FREED_BY_RESULTS), (4, results(4)));
    assert_eq!(spacing(&ndp, 1, &[]), (1, vec![]));
    for (file, cycles) in [
        ("window.p4", 2),
        ("ndp_homa.p4", 4),
        ("hpcc.p4", 2),
        ("swift.p4", 3),
        ("dcqcn.p4", 2),
        ("nscc.p4", 3),
    ] {
        assert_eq!(spacing(&compile(file, &[]), 0, &[]).0, cycles, "{file}");
    }
}

/// What is said of programs that are not so, in order.
#[test]
fn hazards_are_found() {
    for (locals, apply, said) in [
        ("", "info.r = r.read(0); r.write(0, info.a);", &[][..]),
        ("", "r.write(0, r.read(0) + 1); info.r = q.ask(1);", &[]),
        ("", "if (info.a == 1) { info.r = q.ask(1); } else { info.r = q.ask(2); }", &[]),
        ("", "if (info.a == 1) { info.r = q.ask(1); return; } info.r = q.ask(2);", &[]),
        (
            "",
            "info.r = r.read(0); info.r = r.read((bit<32>)info.r); r.write(0, info.r);",
            &[],
        ),
        ("", "info.r = q.ask(1); r.write(0, r.read(0) + info.r);", &[]),
        (
            "",
            "bit<8> old = r.read(0); info.r = q.ask(old); r.write(0, info.r);",
            &["C.r: the last access of a packet in w is 3 cycles after its first"],
        ),
        (
            "action twice() { info.r = q.ask(1); info.r = q.ask(2); }",
            "twice(); if (info.a == 1) { info.r = q.ask(3); }",
            &["C.q.ask: called up to 3 times for a packet in w"],
        ),
        (
            "action ask() { info.r = q.ask(1); }
             table t { key = { info.a: exact; } actions = { ask; NoAction; } default_action = ask(); }",
            "t.apply(); if (info.r == 1) { exit; } info.r = q.ask(1);",
            &["C.q.ask: called up to 2 times for a packet in w"],
        ),
        ("", "shared.write(0, 1);", &["shared: w and v write it, and work at once"]),
    ] {
        let text = format!(
            "#include <core.p4>
            struct info_t {{ bit<8> a; bit<8> r; }}
            extern Register<T> {{ Register(bit<32> size); @latency(1) T read(in bit<32> index);
                                 @latency(1) void write(in bit<32> index, in T value); }}
            extern Raw {{ Raw(); @latency(2) bit<8> ask(in bit<8> n); }}
            header x_t {{ bit<8> x; }}
            control W<H>(inout H h, inout info_t info);
            control V<H>(inout H h, inout info_t info);
            package Box<H>(W<H> w, V<H> v);
            Register<bit<8>>(1) shared;
            control C(inout x_t h, inout info_t info) {{
                Register<bit<8>>(4) r; Raw() q; {locals} apply {{ {apply} }}
            }}
            control D(inout x_t h, inout info_t info) {{ apply {{ shared.write(0, 2); }} }}
            Box(C(), D()) main;"
        );
        let compiled = front::compile(&|_| Ok(text.clone()), "x.p4", &[]);
        let program = compiled.unwrap_or_else(|errors| panic!("{}", errors[0]));
        let found: Vec<String> = hazards(&program).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), said.len(), "{apply}: {found:?}");
        for (found, said) in found.iter().zip(said) {
            assert!(found.starts_with(said), "{apply}: {found}");
        }
    }
}

/// A port serves one access of a packet at a time.
#[test]
fn accesses_over_one_port_follow_one_another() {
    let text = "#include <core.p4>
        struct info_t { bit<8> a; bit<8> r; }
        extern Register<T> { Register(bit<32> size); @latency(1) T read(in bit<32> index);
                             @latency(1) void write(in bit<32> index, in T value); }
        extern Raw { Raw(); @latency(2) bit<8> ask(in bit<8> n); }
        @latency(3) extern void tell(in bit<8> n);
        header x_t { bit<8> x; }
        control W<H>(inout H h, inout info_t info);
        package Box<H>(W<H> w);
        control C(inout x_t h, inout info_t info) {
            Register<bit<8>>(4) r; Raw() q;
            apply {
                info.a = r.read(0); info.r = r.read(1); r.write(2, 7); r.write(3, 8);
                info.a = q.ask(info.a); info.r = q.ask(info.r);
                tell(1);
            }
        }
        Box(C()) main;";
    let program = front::compile(&|_| Ok(text.to_owned()), "x.p4", &[]).unwrap();
    let hardware = Hardware::new(&program).unwrap();
    let cycles: Vec<Vec<u32>> = hardware
        .memories()
        .iter()
        .map(|memory| memory.accesses.iter().map(|access| access.at.cycle).collect())
        .collect();
    assert_eq!(cycles, [vec![0, 1, 1, 2], vec![1, 3], vec![0]]);
    assert_eq!(
        hardware.schedules()[0].cycles(),
        6,
        "two answers of two cycles each, one after the other"
    );
}
