//! Compiles the programs to Rust (`nic::rust`).

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

#[path = "tests/drawn/programs.rs"]
mod drawn;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=tests/drawn/programs.rs");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    write_drawn(Path::new(&out));
}

/// The drawn programs, a module each, for the test `drawn`.
fn write_drawn(out: &Path) {
    let mut source = String::new();
    for number in 0..drawn::PROGRAMS {
        let program = Arc::new(drawn::program(number));
        nic::ir::check(&program)
            .unwrap_or_else(|fault| panic!("drawn {number}: {fault}\n{program}"));
        let code = nic::rust::generate(&program, "Drawn");
        let _ = writeln!(source, "mod drawn{number} {{\nuse super::*;\n{code}}}\n");
    }
    source.push_str("pub fn all<E: Externs + ?Sized>(number: u64, program: Arc<ir::Program>) -> Box<dyn Program<E>> {\nmatch number {\n");
    for number in 0..drawn::PROGRAMS {
        let _ = writeln!(source, "{number} => Box::new(drawn{number}::Drawn::new(program)),");
    }
    source.push_str("_ => unreachable!(),\n}\n}\n");
    fs::write(out.join("drawn.rs"), source).expect("OUT_DIR can be written");
}
