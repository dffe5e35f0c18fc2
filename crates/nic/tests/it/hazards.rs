//! Programs whose packets follow one another closely (`ir::hazards`; specs/nanotransport.md#N12):
//! the shipped ones, which are safe, and small ones, which are not.

use crate::shipped;

use p4::{front, ir};
use shipped::{HOMA_TR, compile};

/// N12, and that what a program does packet by packet it does in a pipeline, too: no port of a unit
/// is asked twice by a packet, no register is read while the packet before is about to write it,
/// and none is written from two pipelines.
#[test]
fn n12_shipped_programs_have_no_hazards() {
    let programs =
        ["ndp.p4", "homa.p4", "window.p4", "ndp_homa.p4", "ndp_switch.p4", "hpcc.p4", "dcqcn.p4"];
    for (file, constants) in
        programs.map(|file| (file, &[][..])).into_iter().chain([("homa.p4", HOMA_TR)])
    {
        let program = compile(file, constants);
        assert_eq!(ir::hazards(&program), [], "{file}");
        assert!(!ir::memories(&program).is_empty(), "{file}");
    }
}

/// Swift computes for longer on a flow's windows than its next acknowledgement may take
/// (docs/p4.md).
#[test]
fn swift_reads_windows_that_are_about_to_change() {
    let found = ir::hazards(&compile("swift.p4", &[]));
    let windows = found.iter().map(|hazard| match hazard {
        ir::Hazard::Window { name, cycles, .. } => (name.as_str(), *cycles),
        other => panic!("{other}"),
    });
    let wanted = [("SwiftIngress.react.fabric_window", 3), ("SwiftIngress.react.host_window", 2)];
    assert_eq!(windows.collect::<Vec<_>>(), wanted);
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
            &["C.r: the last access of a packet in w is 2 cycles after its first"],
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
        let found: Vec<String> = ir::hazards(&program).iter().map(ToString::to_string).collect();
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
                info.a = q.ask(0); info.r = q.ask(1);
                tell(1);
            }
        }
        Box(C()) main;";
    let program = front::compile(&|_| Ok(text.to_owned()), "x.p4", &[]).unwrap();
    let cycles: Vec<Vec<u32>> = ir::memories(&program)
        .iter()
        .map(|memory| memory.accesses.iter().map(|access| access.at.cycle).collect())
        .collect();
    assert_eq!(cycles, [vec![0, 1, 1, 2], vec![0, 2], vec![0]]);
    let schedule = &ir::stages(&program)[0];
    assert_eq!(schedule.cycles, 5, "two answers of two cycles each, one after the other");
}
