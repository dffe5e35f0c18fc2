//! Programs that once meant something else than P4-16 (1.2.4) says: each with the sentence that
//! settles it, run by the interpreter.

use std::sync::Arc;

use trimline_p4::front;
use trimline_p4::interp::Machine;
use trimline_p4::ir::{ExternId, PipelineId};
use trimline_p4::program::{Externs, Program};

/// An architecture of parser, control and deparser, with externs of one argument.
const AROUND: &str = "
    #include <core.p4>
    struct info_t { bit<8> a; bit<8> r; bit<8> u; }
    extern Register<T> { Register(bit<32> size); T read(in bit<32> index);
                         void write(in bit<32> index, in T value); }
    extern Pair { Pair(bit<8> first, bit<8> second); bit<8> ask(); }
    extern bit<8> next(in bit<8> n);
    extern bit<8> both(out bit<4> low);
    parser P<H>(packet_in p, out H h);
    control W<H>(inout H h, inout info_t info);
    control D<H>(packet_out p, in H h);
    package Box<H>(P<H> p, W<H> w, D<H> d);
    header x_t { bit<8> x; }
    struct H { x_t x; x_t[3] s; }";

/// What a program consists of beside `AROUND`.
struct Text {
    top: &'static str,
    start: &'static str,
    locals: &'static str,
    apply: &'static str,
}

const EMPTY: Text = Text { top: "", start: "transition accept;", locals: "", apply: "" };

fn compile(text: &Text) -> front::Compiled {
    let Text { top, start, locals, apply } = text;
    let text = format!(
        "{AROUND} {top}
        parser MyP(packet_in p, out H h) {{ state start {{ p.extract(h.x); {start} }} }}
        control C(inout H h, inout info_t info) {{ {locals} apply {{ {apply} }} }}
        control MyD(packet_out p, in H h) {{ apply {{ p.emit(h); }} }}
        Box(MyP(), C(), MyD()) main;"
    );
    front::check(&|_| Ok(text.clone()), "x.p4", &[])
}

/// Answers of the externs: `next` counts its calls, `both` says 0xcd and 5, a `Pair` its first.
struct Answers {
    calls: u128,
    first: Vec<Option<u128>>,
}

impl Externs for Answers {
    fn call(&mut self, which: ExternId, args: &[u128], results: &mut [u128]) {
        match (self.first[which.index()], results, args) {
            (Some(first), [answer], _) => *answer = first,
            (None, [low, answer], _) => (*low, *answer) = (5, 0xcd),
            (None, [answer], [n]) => {
                self.calls += 1;
                *answer = n * 16 + self.calls;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// `info.r` and `info.u` after the packet `0a 0b 0c 0d`, with `info.a` 1.
fn run(text: &Text) -> [u128; 2] {
    let compiled = compile(text);
    let said: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
    let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{}", said.join("\n"))));
    let first = program.externs.iter().map(|e| e.constructor.first().copied()).collect();
    let mut answers = Answers { calls: 0, first };
    let (mut meta, mut out) = ([1, 0, 0], Vec::new());
    let packet = [0x0a, 0x0b, 0x0c, 0x0d];
    let done = Machine::new(program).run(PipelineId(0), &packet, &mut meta, &mut out, &mut answers);
    assert!(done.is_ok(), "{done:?}");
    [meta[1], meta[2]]
}

fn refused(text: &Text, part: &str) {
    let compiled = compile(text);
    let said: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
    let said = said.join("\n");
    assert!(compiled.program.is_none() && said.contains(part), "no {part:?} in\n{said}");
}

/// Section 11.3: an instance is made once, however often it is applied.
#[test]
fn a_control_that_is_applied_twice_has_its_registers_once() {
    let top = "control I(inout bit<8> o) { Register<bit<8>>(1) r; apply { o = r.read(0); r.write(0, 5); } }";
    let locals = "I() i; I() j;";
    let apply = "i.apply(info.r); i.apply(info.u); info.r = info.u; j.apply(info.u);";
    assert_eq!(run(&Text { top, locals, apply, ..EMPTY }), [5, 0]);
}

/// Section 6.8: arguments may be given by name, all or none.
#[test]
fn names_of_arguments_count_everywhere() {
    let locals = "
        action a(bit<8> x, bit<8> y) { info.r = x; info.u = y; }
        table t { key = { info.a: exact; } actions = { a; } default_action = a(0, 0);
                  const entries = { 1: a(y = 2, x = 3); } }";
    assert_eq!(run(&Text { locals, apply: "t.apply();", ..EMPTY }), [3, 2]);
    let locals = "
        action a(bit<8> x, bit<8> y) { info.r = x; info.u = y; }
        table t { actions = { a; } default_action = a(y = 7, x = 9); }";
    assert_eq!(run(&Text { locals, apply: "t.apply();", ..EMPTY }), [9, 7]);
    let locals = "
        action a(in bit<8> x, in bit<8> y) { info.r = x; info.u = y; }
        table t { actions = { a(y = 4, x = info.a); } default_action = a(y = 4, x = info.a); }";
    assert_eq!(run(&Text { locals, apply: "t.apply();", ..EMPTY }), [1, 4]);
    let locals = "Pair(second = 1, first = 2) q;";
    assert_eq!(run(&Text { locals, apply: "info.r = q.ask();", ..EMPTY })[0], 2);
    let start = "verify(toSignal = error.NoMatch, check = h.x.x == 0x0a); p.advance(sizeInBits = 8); \
                 p.extract(hdr = h.x); transition accept;";
    assert_eq!(run(&Text { start, apply: "info.r = h.x.x;", ..EMPTY })[0], 0x0c);
    let locals = "action a(in bit<8> x, in bit<8> y) { }";
    refused(&Text { locals, apply: "a(x = 1, 2);", ..EMPTY }, "an argument without a name");
    for (start, locals, apply) in [
        (EMPTY.start, "Pair(first = 2, third = 1) q;", ""),
        (EMPTY.start, "", "h.s.push_front(by = 1);"),
        ("p.advance(bits = 8); transition accept;", "", ""),
    ] {
        refused(&Text { start, locals, apply, ..EMPTY }, "arameter");
    }
}

/// Section 6.8: arguments are evaluated from left to right as they are written.
#[test]
fn arguments_by_name_are_evaluated_as_they_are_written() {
    let locals = "action a(in bit<8> x, in bit<8> y) { info.r = x; info.u = y; }";
    let apply = "a(y = next(1), x = next(2));";
    assert_eq!(run(&Text { locals, apply, ..EMPTY }), [0x22, 0x11]);
}

/// Section 13.3: what a state declares is its own.
#[test]
fn variables_of_a_state_are_not_seen_by_the_next() {
    let top = "const bit<8> t = 7;";
    let start = "bit<8> t = 1; transition b; } state b { h.x.x = t; transition accept;";
    assert_eq!(run(&Text { top, start, apply: "info.r = h.x.x;", ..EMPTY })[0], 7);
    let start = "bit<8> v = 1; transition b; } state b { h.x.x = v; transition accept;";
    refused(&Text { start, ..EMPTY }, "unknown name `v`");
}

/// Section 6.8: all arguments are evaluated before the call begins.
#[test]
fn an_out_argument_is_invalid_only_once_all_are_evaluated() {
    let top = "control I(out x_t o, in bool v, out bit<8> r) { apply { r = v ? 8w1 : 2; } }";
    let apply = "i.apply(h.x, h.x.isValid(), info.r); info.u = h.x.isValid() ? 8w1 : 0;";
    assert_eq!(run(&Text { top, locals: "I() i;", apply, ..EMPTY }), [1, 0]);
}

/// Section 14.2.1.1: without keys nothing is looked up.
#[test]
fn a_table_without_keys_has_no_entries() {
    let locals = "
        action a(bit<8> x) { info.r = x; }
        table t { actions = { a; } const default_action = a(1); const entries = { _: a(2); } }";
    refused(&Text { locals, apply: "t.apply();", ..EMPTY }, "an entry in a table without keys");
}

/// Section 6.8: the value of an `inout` argument is taken in its turn, and it is copied back to
/// what it names, whatever later arguments do to it. The example there is `f(a, g(a))`.
#[test]
fn a_later_argument_changes_nothing_of_an_earlier_one() {
    let top = "extern bit<8> bump(inout bit<8> n);"; // Makes it 5 and returns 0xcd.
    let locals = "action f(inout bit<8> x, in bit<8> y) { info.u = x; x = y + 1; }";
    let apply = "bit<8> v = 1; f(v, bump(v)); info.r = v;";
    assert_eq!(run(&Text { top, locals, apply, ..EMPTY }), [0xce, 1]);
    let apply = "info.r = 7; f(info.r[3:0] ++ 4w0, bump(info.r));";
    refused(&Text { top, locals, apply, ..EMPTY }, "this cannot be assigned");
    let top = "extern bit<8> bump(inout bit<8> n);
        control F(inout bit<8> x, in bit<8> y, out bit<8> seen) { apply { seen = x; x = y + 1; } }";
    let (locals, apply) = ("F() f;", "bit<8> v = 1; f.apply(v, bump(v), info.u); info.r = v;");
    assert_eq!(run(&Text { top, locals, apply, ..EMPTY }), [0xce, 1]);
    let apply = "bit<8> v = 3; bit<8> w = both_of(v, next(1)); info.r = v; info.u = w;";
    let top = "extern bit<8> both_of(inout bit<8> n, in bit<8> m);";
    assert_eq!(run(&Text { top, apply, ..EMPTY }), [5, 0xcd]);
}

/// Section 8.16: `const S x = { a = 10, b = 20 };`.
#[test]
fn constants_may_be_structs() {
    let top = "struct S { bit<8> a; bit<8> b; } const S x = { a = 10, b = 20 };
        const S y = { 1, x.b }; const bool same = x == y;";
    let apply = "S s = x; info.r = s.b + x.a; info.u = y.b; if (same) { info.u = 0; }";
    assert_eq!(run(&Text { top, apply, ..EMPTY }), [30, 20]);
    refused(&Text { top, apply: "x.a = 3;", ..EMPTY }, "a constant cannot be assigned");
}

/// Section 8.15.4: a range whose first number is the larger one is the empty set.
#[test]
fn an_empty_range_matches_nothing() {
    let start = "transition select(h.x.x) { 12 .. 3: reject; 3 .. 12: accept; default: reject; }";
    let compiled = compile(&Text { start, ..EMPTY });
    assert!(compiled.diagnostics[0].message.contains("an empty range"));
    assert_eq!(run(&Text { start, apply: "info.r = 1;", ..EMPTY })[0], 1);
}

/// What an `apply` did is kept only where somebody asks.
#[test]
fn an_apply_keeps_what_is_asked_for() {
    let locals = "table t { actions = { NoAction; } default_action = NoAction; }";
    for (apply, kept) in [
        ("t.apply(); t.apply();", &[][..]),
        ("if (t.apply().hit) { info.r = 1; }", &[1]),
        ("switch (t.apply().action_run) { NoAction: { info.r = 1; } }", &[16]),
    ] {
        let program = compile(&Text { locals, apply, ..EMPTY }).program.unwrap();
        let slots = program.pipelines[0].slots.iter().filter(|s| s.name.starts_with("$temp"));
        assert_eq!(slots.map(|s| s.width).collect::<Vec<_>>(), kept, "{apply}");
    }
}

/// Section 6.8: what `out` brings is copied before the result is assigned.
#[test]
fn a_result_is_assigned_after_what_is_copied_out() {
    let apply = "bit<8> v = 0; v = both(v[3:0]); info.r = v;";
    assert_eq!(run(&Text { apply, ..EMPTY })[0], 0xcd);
}

/// Section 8.18: stacks are equal if all their elements are.
#[test]
fn stacks_are_compared_element_by_element() {
    let top = "struct Q { x_t[2] s; bit<8> n; }";
    let locals = "Q p; Q q;";
    let apply =
        "p.n = 1; q.n = 2; if (p == q) { info.r = 1; } q.n = 1; if (p == q) { info.u = 1; }";
    assert_eq!(run(&Text { top, locals, apply, ..EMPTY }), [0, 1]);
    let apply =
        "q.s[1].setValid(); if (p.s == q.s) { info.r = 1; } if (p.s != q.s) { info.u = 1; }";
    assert_eq!(run(&Text { top, locals, apply, ..EMPTY }), [0, 1]);
}

/// Section 8.18: `push_front`, `pop_front` and assignment move `nextIndex`, by a positive number.
#[test]
fn a_stack_that_moves_is_filled_from_where_it_ends() {
    let apply = "info.r = h.s[0].x; info.u = h.s[1].x;";
    let start = "p.extract(h.s.next); h.s.pop_front(1); p.extract(h.s.next); transition accept;";
    assert_eq!(run(&Text { start, apply, ..EMPTY }), [0x0c, 0]);
    let start = "p.extract(h.s.next); h.s.push_front(1); p.extract(h.s.next); transition accept;";
    assert_eq!(
        run(&Text { start, apply: "info.r = h.s[1].x; info.u = h.s[2].x;", ..EMPTY }),
        [0x0b, 0x0c]
    );
    let start = "x_t[3] t; p.extract(t.next); h.s = t; p.extract(h.s.next); transition accept;";
    assert_eq!(run(&Text { start, apply, ..EMPTY }), [0x0b, 0x0c]);
    for apply in ["h.s.push_front(-1);", "h.s.pop_front(0);"] {
        refused(&Text { apply, ..EMPTY }, "a stack moves by");
    }
    let start = "if (h.x.x == 1) { h.s.push_front(1); } transition accept;";
    refused(&Text { start, ..EMPTY }, "moves under a condition");
}

/// Actions that call one another are bounded in depth and in all.
#[test]
fn actions_that_double_are_refused_at_once() {
    use std::fmt::Write;
    let chain = |length: usize, calls: usize| {
        let mut text = "action a0() { info.r = 1; }".to_owned();
        for n in 1..length {
            let call = format!("a{}(); ", n - 1).repeat(calls);
            write!(text, "action a{n}() {{ {call} }}").unwrap();
        }
        let apply = format!("a{}();", length - 1);
        (&*text.leak(), &*apply.leak())
    };
    for (length, calls) in [(16, 1), (12, 2)] {
        let (locals, apply) = chain(length, calls);
        assert_eq!(run(&Text { locals, apply, ..EMPTY })[0], 1, "{length} {calls}");
    }
    let (locals, apply) = chain(4000, 1);
    refused(&Text { locals, apply, ..EMPTY }, "actions this deep in one another");
    let (locals, apply) = chain(16, 4);
    refused(&Text { locals, apply, ..EMPTY }, "the program becomes too long");
    let (top, apply) = chain(4000, 1);
    let top = top.replace("info.r = 1;", "").leak();
    refused(&Text { top, apply, ..EMPTY }, "actions this deep in one another");
}

/// Every host and every port has all registers: their memory is bounded.
#[test]
fn registers_beyond_all_memory_are_refused() {
    for locals in
        ["Register<bit<128>>(0xFFFFFFFF) r;", "Register<bit<8>>(1 << 20) r; Register<bit<8>>(1) q;"]
    {
        refused(&Text { locals, ..EMPTY }, "cells in");
    }
}

/// Of many warnings, the first are given, and quickly.
#[test]
fn warnings_are_limited() {
    let apply = "info.r = 300;\n".repeat(20_000).leak();
    assert_eq!(compile(&Text { apply, ..EMPTY }).diagnostics.len(), 50);
}

/// `@latency` is one number.
#[test]
fn latency_is_one_small_number() {
    for wrong in ["@latency(1 + 1)", "@latency(\"2\")", "@latency(4294967295)", "@latency"] {
        let top = format!("{wrong} extern bit<8> late(in bit<8> n);").leak();
        refused(&Text { top, apply: "info.r = late(1);", ..EMPTY }, "`@latency` without");
    }
}

/// Files that include others twice double at every level.
#[test]
fn includes_are_bounded_in_all() {
    let files = |name: &str| match name.trim_end_matches(".p4").parse::<u32>() {
        Ok(n) if n < 15 => Ok(format!("#include \"{0}.p4\"\n#include \"{0}.p4\"\n", n + 1)),
        Ok(_) => Ok("// nothing\n".repeat(10_000)),
        Err(why) => Err(why.to_string()),
    };
    let compiled = front::check(&files, "0.p4", &[]);
    assert!(
        compiled.diagnostics[0].message.contains("includes in all"),
        "{:?}",
        compiled.diagnostics[0].message
    );
}
