//! The front end on text that nobody meant: it ends soon, never panics, gives places inside the
//! text, and what it accepts keeps the rules of the IR. The long form of this is the fuzz target
//! `p4`.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use trimline_p4::interp::Machine;
use trimline_p4::program::{NoExterns, Program};
use trimline_p4::{front, ir, rust};

/// Pieces of the language, to be put anywhere.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    ":",
    ",",
    ".",
    "=",
    "==",
    "&&&",
    "..",
    "++",
    "|+|",
    ">>",
    "?",
    "_",
    "-",
    "!",
    "~",
    "@",
    "#",
    "\"",
    "/*",
    "*/",
    "//",
    "\n#include <core.p4>\n",
    "\n#ifdef X\n",
    "\n#endif\n",
    "8w",
    "4s3",
    "0xFF",
    "99999999999999999999",
    "bit<8>",
    "bit<0>",
    "bit<4000000000>",
    "int",
    "bool",
    "error",
    "header h_t { }",
    "struct",
    "control",
    "parser",
    "state start",
    "transition select(",
    "accept",
    "default",
    "table",
    "key = {",
    "actions = {",
    "apply",
    "if (",
    "else",
    "return;",
    "exit;",
    "extern",
    "package",
    "main",
    "const",
    "typedef",
    "h.next",
    "packet.extract(",
    "setValid()",
    "[3:0]",
    "[70000:0]",
    "in",
    "out",
    "inout",
    "é",
    "\0",
    "Register<bit<8>>(16) r;",
    "1 << 100000",
    "switch (",
    "enum bit<8> E { A = 1 }",
];

fn programs() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = [
        "../../p4/ndp.p4",
        "../../p4/homa.p4",
        "../../p4/homa_rules.p4",
        "tests/small/flow_counter.p4",
        "tests/small/ecn_echo.p4",
        "tests/small/source_route.p4",
    ];
    files.iter().map(|f| std::fs::read_to_string(root.join(f)).unwrap()).collect()
}

/// Compile, and see that the answer is well formed.
fn compile(text: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["../../p4", "tests/small"];
    let files = |name: &str| match name {
        "main.p4" => Ok(text.to_owned()),
        _ if name.contains(['/', '\0']) => Err("not here".to_owned()),
        _ => folders
            .iter()
            .find_map(|f| std::fs::read_to_string(root.join(f).join(name)).ok())
            .ok_or_else(|| "there is none".to_owned()),
    };
    let compiled = front::check(&files, "main.p4", &[]);

    for diagnostic in &compiled.diagnostics {
        assert!(diagnostic.span.start <= diagnostic.source.text.len(), "{diagnostic:?}");
        assert!(!diagnostic.to_string().contains('\n'), "one line: {diagnostic}");
    }
    match compiled.program {
        Some(program) => use_program(program, text),
        None => assert!(!compiled.diagnostics.is_empty(), "refused without a word:\n{text}"),
    }
}

/// What is accepted keeps the rules of the IR, and all that works on the IR can take it.
fn use_program(program: ir::Program, text: &str) {
    assert_eq!(ir::check(&program), Ok(()), "of\n{text}");
    if let Ok(hardware) = ir::Hardware::new(&program) {
        let _ = (hardware.hazards(), hardware.spacings(&["extern"]));
    }
    let program = Arc::new(program);
    assert!(rust::generate(&program, "Drawn").contains("FINGERPRINT"));
    let mut machine = Machine::new(Arc::clone(&program));
    for (at, pipeline) in (0..).map(ir::PipelineId).zip(&program.pipelines) {
        for byte in [0, 8, 0xff] {
            let mut meta = vec![u128::MAX; pipeline.meta.len()];
            let packet = [byte; 80];
            let _ = machine.run(at, &packet, &mut meta, &mut Vec::new(), &mut NoExterns);
        }
    }
}

/// Cut `text` at a character near a byte.
fn cut(text: &str, at: Index, after: usize) -> (usize, usize) {
    let start = text.floor_char_boundary(at.index(text.len()));
    (start, text.floor_char_boundary((start + after).min(text.len())))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        compile(&text);
    }

    #[test]
    fn any_order_of_pieces_is_answered(picks in prop::collection::vec(any::<Index>(), 0..60)) {
        let pieces: Vec<&str> = picks.iter().map(|p| PIECES[p.index(PIECES.len())]).collect();
        compile(&pieces.join(" "));
    }

    /// Real programs with pieces cut out, put in, or moved over from elsewhere in them.
    #[test]
    fn spoilt_programs_are_answered(
        which in any::<Index>(),
        edits in prop::collection::vec((any::<Index>(), 0usize..12, any::<Index>(), any::<bool>()), 1..4),
    ) {
        let programs = programs();
        let mut text = programs[which.index(programs.len())].clone();
        for (at, length, other, moved) in edits {
            let (start, end) = cut(&text, at, length);
            let (from, to) = cut(&text, other, 12);
            let new = if moved { text[from..to].to_owned() } else { PIECES[other.index(PIECES.len())].to_owned() };
            text.replace_range(start..end, &new);
        }
        compile(&text);
    }
}

/// What grows quickly if it is let: each of these would take for ever, or all memory.
#[test]
fn growth_is_limited() {
    let doubling: String =
        (1..60).map(|n| format!("struct s{n} {{ s{0} a; s{0} b; }}\n", n - 1)).collect();
    compile(&format!("struct s0 {{ bit<8> a; }}\n{doubling}"));
    let calls: String = (1..40)
        .map(|n| {
            format!(
                "control c{n}(inout bit<8> x) {{ apply {{ c{0}.apply(x); c{0}.apply(x); }} }}\n",
                n - 1
            )
        })
        .collect();
    compile(&format!("control c0(inout bit<8> x) {{ apply {{ x = x + 1; }} }}\n{calls}"));
    for (length, calls) in [(4000, 1), (40, 2)] {
        let body = |n: usize| format!("a{}(); ", n - 1).repeat(calls);
        let actions: String =
            (1..length).map(|n| format!("action a{n}() {{ {} }}\n", body(n))).collect();
        let last = format!("apply {{ a{}(); }}", length - 1);
        compile(&format!("action a0() {{ }} {actions} control c() {{ {last} }}"));
        compile(&format!("control c() {{ action a0() {{ }} {actions} {last} }}"));
    }
    compile("const int a = 1 << 1000000000;");
    compile(&format!("const int a = {};", "(1 << 4000) * ".repeat(50) + "1"));
    compile(&"header h { bit<8> a; } ".repeat(20_000));
    compile(&"control c(".repeat(20_000));
    compile(&"if (".repeat(20_000));
    compile(&format!(
        "control c(inout bit<8> x) {{ apply {{ {} }} }}",
        "if (x == 1) ".repeat(20_000)
    ));
    compile(&format!("control c(inout bit<8> x) {{ apply {{ {} x = 1; }} }}", "{".repeat(20_000)));
    compile(&format!("control c(inout bit<8> x) {{ apply {{ x = {}; }} }}", "x<x<".repeat(20_000)));
    compile(&format!("typedef {}", "a<".repeat(20_000)));
    let stack = "#include <core.p4>
        header h { bit<8> a; } struct s { h[64] x; h[64] y; }
        parser p(packet_in b, out s v) {
            state start { transition select(b.lookahead<bit<8>>()) { 0: x; 1: y; default: accept; } }
            state x { b.extract(v.x.next); transition start; }
            state y { b.extract(v.y.next); transition start; }
        }";
    compile(stack);
}
