//! Every program in p4/ compiles, keeps the rules of the IR, has no warnings, and is as long as the
//! docs say.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use p4::interp::Machine;
use p4::{front, ir};
use trimline_nic::switch::SwitchPort;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4")
}

fn compiled(name: &str, constants: &[(String, i128)]) -> front::Compiled {
    let read = |file: &str| std::fs::read_to_string(folder().join(file)).map_err(|e| e.to_string());
    front::check(&read, name, constants)
}

#[test]
fn programs_compile_without_a_word() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if !name.ends_with(".p4") || !text.contains(" main;") {
            continue;
        }
        let compiled = compiled(&name, &[]);
        let said: Vec<String> = compiled.diagnostics.iter().map(ToString::to_string).collect();
        assert!(said.is_empty(), "{name}:\n{}", said.join("\n"));
        let program = compiled.program.unwrap();
        assert_eq!(ir::check(&program), Ok(()), "{name}");
        count += 1;
    }
    assert!(count >= 2, "ndp.p4 and homa.p4 at least");
}

#[test]
fn constants_make_another_program_of_the_same_text() {
    let plain = compiled("homa.p4", &[]).program.unwrap();
    let trimming = compiled("homa.p4", &[("TRIM".to_owned(), 1)]).program.unwrap();
    assert_ne!(plain, trimming);
    let spoilt = compiled("homa.p4", &[("N_UNSCHED".to_owned(), 300)]);
    assert!(spoilt.program.is_none());
    assert!(spoilt.diagnostics.iter().any(|d| d.message.contains("300 does not fit bit<8>")));
}

/// A program of a switch port that wants more than registers and counters is told what.
#[test]
fn a_switch_port_has_no_externs() {
    let read = |file: &str| {
        let text = std::fs::read_to_string(folder().join(file)).map_err(|e| e.to_string())?;
        let calls = text.replacen("    apply {", "    apply { magic(1);", 1);
        Ok(calls.replace(
            "control NdpSwitchArrival",
            "extern void magic(in bit<8> x);\ncontrol NdpSwitchArrival",
        ))
    };
    let program = front::check(&read, "ndp_switch.p4", &[]).program.unwrap();
    let machine = Machine::new(Arc::new(program.clone()));
    let refused = SwitchPort::new(&program, Box::new(machine)).err().unwrap().to_string();
    assert_eq!(refused, "a switch port has no extern `magic`: it has registers and counters");
}

/// Lines of a program's files: all, and those that are neither blank nor comments alone.
fn lines(files: &[&str]) -> (usize, usize) {
    let texts: Vec<String> =
        files.iter().map(|file| std::fs::read_to_string(folder().join(file)).unwrap()).collect();
    let all = texts.iter().flat_map(|text| text.lines()).map(str::trim);
    let written = all.clone().filter(|line| !line.is_empty() && !line.starts_with("//"));
    (all.count(), written.count())
}

/// Issue 8: "lines of P4 per program beside the paper's 376 and 520".
#[test]
fn the_page_says_how_long_programs_are() {
    let page = folder().join("../docs/nic.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut named = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| `p4/")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let files = cells[1].split('`').skip(1).step_by(2);
        let files: Vec<&str> = files.map(|file| file.trim_start_matches("p4/")).collect();
        let said = (cells[3].parse().unwrap(), cells[4].parse().unwrap());
        assert_eq!(said, lines(&files), "{row}");
        named.extend(files);
    }
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".p4") {
            let rows = named.iter().filter(|file| **file == name).count();
            assert_eq!(rows, 1, "{name} has a row of its own in docs/nic.md");
        }
    }
}
