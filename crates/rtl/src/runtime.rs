//! What all simulations share, compiled once: Verilator's runtime and its headers, which take
//! longer than most designs.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::sim::SimError;
use crate::tools::{self, Tools, output};

/// The file that includes all headers; what the compiler has made of it lies beside it.
pub(crate) const HEADERS: &str = "headers.h";

/// Whether a design can write waveforms, which makes it larger and slower.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Waves {
    Yes,
    No,
}

const INCLUDED: [&str; 5] = ["verilated.h", "cstdint", "cstdio", "unistd.h", "vector"];
const SOURCES: [&str; 2] = ["verilated.cpp", "verilated_threads.cpp"];

/// For the compiler. `-O1` takes twice as long and makes simulations 15 % faster, `-O0` makes them
/// 16 times slower.
const FLAGS: [&str; 6] =
    ["-std=c++20", "-Og", "-w", "-pthread", "-DVL_TIME_CONTEXT", "-DVERILATOR=1"];

/// One build at a time in this process.
static ONE: Mutex<()> = Mutex::new(());

/// A folder with the compiled runtime and headers.
pub(crate) struct Runtime {
    folder: PathBuf,
    key: u64,
}

impl Runtime {
    /// Compiles it if it does not stand: in the folder of `make rtl-setup`, and beside `folder`
    /// where there is none.
    pub(crate) fn find(tools: &Tools, folder: &Path, waves: Waves) -> Result<Self, SimError> {
        let key = key(tools, waves);
        let tools_folder = tools::folder();
        let home = if tools_folder.is_dir() { &tools_folder } else { folder };
        let home = home.parent().unwrap_or(home);
        let runtime = Self { folder: home.join(format!("runtime-{key:016x}")), key };
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        if !runtime.folder.exists() {
            runtime.compile(tools, waves)?;
        }
        Ok(runtime)
    }

    fn compile(&self, tools: &Tools, waves: Waves) -> Result<(), SimError> {
        // Other processes may be here: whole or not at all.
        let own = self.folder.with_extension(std::process::id().to_string());
        fs::create_dir_all(&own)?;
        let (headers, sources) = (own.join(HEADERS), own.join("verilated_all.cc"));
        fs::write(&headers, INCLUDED.map(|file| format!("#include <{file}>\n")).concat())?;
        let more = (waves == Waves::Yes).then_some("verilated_vcd_c.cpp");
        let text = SOURCES.into_iter().chain(more).map(|file| format!("#include \"{file}\"\n"));
        fs::write(&sources, text.collect::<String>())?;
        let compiled = own.join(format!("{HEADERS}.gch"));
        output(
            compiler(tools, waves).args(["-x", "c++-header"]).arg(headers).arg("-o").arg(compiled),
        )?;
        output(compiler(tools, waves).arg("-c").arg(sources).arg("-o").arg(own.join(OBJECT)))?;
        if fs::rename(&own, &self.folder).is_err() {
            // Somebody else was first.
            fs::remove_dir_all(&own)?;
        }
        Ok(())
    }

    /// Where the headers are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What to link.
    pub(crate) fn object(&self) -> PathBuf {
        self.folder.join(OBJECT)
    }

    /// See [`key`].
    pub(crate) const fn key(&self) -> u64 {
        self.key
    }
}

/// The same for the same tools and flags.
pub(crate) fn key(tools: &Tools, waves: Waves) -> u64 {
    let mut hash = DefaultHasher::new();
    (tools.version(), tools.include(), tools.compiler(), FLAGS, waves).hash(&mut hash);
    hash.finish()
}

const OBJECT: &str = "verilated.o";

/// The compiler with the flags of all that is linked together.
pub(crate) fn compiler(tools: &Tools, waves: Waves) -> Command {
    let mut compiler = Command::new(tools::COMPILER);
    compiler.args(FLAGS);
    if waves == Waves::Yes {
        compiler.args(["-DVM_TRACE=1", "-DVM_TRACE_VCD=1"]);
    }
    compiler.arg("-I").arg(tools.include()).arg("-I").arg(tools.include().join("vltstd"));
    compiler
}
