//! Compiles the programs of `p4/` to Rust (`p4::rust`), a module for each.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

use p4::front::Diagnostic;

#[path = "tests/agree/draw.rs"]
mod draw;

/// Name, file, and the constants that are not as the file has them.
type Variant = (&'static str, &'static str, &'static [(&'static str, i128)]);

/// What is compiled.
const PROGRAMS: [Variant; 16] = [
    ("ndp", "ndp.p4", &[]),
    ("homa", "homa.p4", &[]),
    ("homa_strict", "homa.p4", &[("STRICT_PAPER", 1)]),
    ("homa_tr", "homa.p4", &[("TRIM", 1)]),
    ("homa_tr_count_chops", "homa.p4", &[("TRIM", 1), ("COUNT_CHOPS", 1)]),
    ("homa_tr_strict", "homa.p4", &[("TRIM", 1), ("STRICT_PAPER", 1)]),
    ("ndp_homa", "ndp_homa.p4", &[]),
    ("ndp_homa_tr", "ndp_homa.p4", &[("TRIM", 1)]),
    ("window", "window.p4", &[]),
    ("kv_cache", "kv_cache.p4", &[]),
    ("ndp_bypass", "ndp_bypass.p4", &[]),
    ("hpcc", "hpcc.p4", &[("BASE_RTT", 4_500), ("INCREASE", 176)]),
    ("swift", "swift.p4", &[]),
    ("dcqcn", "dcqcn.p4", &[]),
    ("nscc", "nscc.p4", &[("RATE", 100_000), ("BASE_RTT", 40_170)]),
    ("ndp_switch", "ndp_switch.p4", &[]),
];

fn main() {
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let p4 = Path::new(&here).join("../../p4");
    for changed in ["build.rs", "tests/agree/draw.rs", "../../p4"] {
        println!("cargo::rerun-if-changed={changed}");
    }
    let (mut modules, mut table) = (String::new(), String::new());
    for (name, file, constants) in PROGRAMS {
        let program = Arc::new(compiled(&p4, file, constants));
        let title = p4::rust::type_name(name);
        let _ = writeln!(modules, "pub(super) mod {name} {{\nuse super::*;\n");
        modules += &p4::rust::generate(&program, name);
        modules += "}\n\n";
        let _ = writeln!(
            table,
            "{name}::{title}::FINGERPRINT => Some(Box::new({name}::{title}::new(program))),"
        );
    }
    let fingerprint =
        |(name, ..): &Variant| format!("{name}::{}::FINGERPRINT", p4::rust::type_name(name));
    let fingerprints: Vec<String> = PROGRAMS.iter().map(fingerprint).collect();
    let _ = writeln!(
        modules,
        "pub(super) const FINGERPRINTS: [u64; {}] = [{}];\n",
        fingerprints.len(),
        fingerprints.join(", ")
    );
    let names: Vec<String> = PROGRAMS.iter().map(variant).collect();
    let _ = writeln!(
        modules,
        "/// See [`super::PROGRAMS`].\npub const PROGRAMS: [Variant; {}] = [{}];\n",
        names.len(),
        names.join(", ")
    );
    let _ = writeln!(
        modules,
        "pub(super) fn find<E: Externs + ?Sized>(program: Arc<ir::Program>) \
         -> Option<Box<dyn Program<E>>> {{\n\
         match program.fingerprint() {{\n{table}_ => None,\n}}\n}}"
    );
    let out = Path::new(&out);
    fs::write(out.join("programs.rs"), modules).expect("OUT_DIR can be written");
    fs::write(out.join("drawn.rs"), drawn_programs()).expect("OUT_DIR can be written");
}

/// A variant as Rust source.
fn variant((name, file, constants): &Variant) -> String {
    format!("Variant {{ name: {name:?}, file: {file:?}, constants: &{constants:?} }}")
}

/// A program of `p4/`. Its mistakes end the build.
fn compiled(p4: &Path, file: &str, constants: &[(&str, i128)]) -> p4::ir::Program {
    let text = |name: &str| fs::read_to_string(p4.join(name)).map_err(|e| e.to_string());
    let constants: Vec<(String, i128)> =
        constants.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    p4::front::compile(&text, file, &constants).unwrap_or_else(|diagnostics| {
        let all: Vec<String> = diagnostics.iter().map(Diagnostic::to_string).collect();
        panic!("{}", all.join("\n"))
    })
}

/// The drawn programs, a module each, for the test `agree`.
fn drawn_programs() -> String {
    let (mut modules, mut table) = (String::new(), String::new());
    for number in 0..draw::PROGRAMS {
        let program = Arc::new(draw::program(number));
        let checked = p4::ir::check(&program);
        checked.unwrap_or_else(|fault| panic!("drawn {number}: {fault}\n{program}"));
        let _ = writeln!(modules, "mod drawn{number} {{\nuse super::*;\n");
        modules += &p4::rust::generate(&program, "Drawn");
        modules += "}\n\n";
        let _ = writeln!(table, "{number} => Box::new(drawn{number}::Drawn::new(program)),");
    }
    let _ = writeln!(
        modules,
        "pub fn all<E: Externs + ?Sized>(number: u64, program: Arc<ir::Program>) \
         -> Box<dyn Program<E>> {{\n\
         match number {{\n{table}_ => unreachable!(),\n}}\n}}"
    );
    modules
}
