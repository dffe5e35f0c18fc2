//! Lists the files that the program carries: scenarios, studies, the P4 programs that they name,
//! and what Wireshark needs.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

const SHIPPED: [&str; 4] = ["scenarios", "studies", "p4", "wireshark"];

fn main() -> io::Result<()> {
    let var = |name| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let root = var("CARGO_MANIFEST_DIR").join("../..");
    let mut files = Vec::new();
    for dir in SHIPPED {
        println!("cargo::rerun-if-changed={}", root.join(dir).display());
        collect(&root.join(dir), &mut files)?;
    }
    files.sort();
    let mut list = "&[\n".to_owned();
    for file in files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?;
        let file = fs::canonicalize(&file)?;
        let line = writeln!(list, "    ({name:?}, include_str!({file:?})),");
        line.map_err(io::Error::other)?;
    }
    fs::write(var("OUT_DIR").join("shipped.rs"), list + "]\n")
}

/// All files below `dir`.
fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
