//! Bounded proofs: that no input whatever breaks an assertion of a design within some cycles of its
//! reset. Yosys' own SAT solver searches all of them (the Python wheel `pyosys`).
//!
//! What memories hold at first is anything. Assumptions of the design (`assume`) say what its
//! inputs may be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

use crate::sim::Design;
use crate::tools::{ToolError, output};
use crate::yosys;

/// A Python that has Yosys.
#[derive(Clone, Debug)]
pub struct Prover {
    python: PathBuf,
}

/// That there is no counterexample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Cycles after the reset.
    pub cycles: u32,
    /// Clauses of the problem that has no solution.
    pub clauses: u64,
}

/// Why there is no proof.
#[derive(Debug, Error)]
pub enum ProveError {
    /// Yosys is not here, or refuses the design.
    #[error("{0}")]
    Tool(#[from] ToolError),
    /// A file.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Inputs that break an assertion, cycle by cycle.
    #[error("`{top}` breaks an assertion:\n{inputs}")]
    Broken {
        /// The top module.
        top: String,
        /// The inputs of each cycle; the reset's is the first.
        inputs: String,
    },
    /// Yosys says something else than it should.
    #[error("Yosys on `{top}`: {said}")]
    Said {
        /// The top module.
        top: String,
        /// What it said.
        said: String,
    },
}

impl Prover {
    /// Looks in the folder of `make rtl-setup`.
    ///
    /// # Errors
    /// It is not there.
    pub fn find() -> Result<Self, ToolError> {
        let python = yosys::python();
        output(Command::new(&python).args(["-c", "import pyosys"]))?;
        Ok(Self { python })
    }

    /// Search for inputs that break an assertion of `design` in the `cycles` after its reset; files
    /// go to `folder`.
    ///
    /// # Errors
    /// See [`ProveError`].
    pub fn prove(&self, design: &Design, cycles: u32, folder: &Path) -> Result<Proof, ProveError> {
        fs::create_dir_all(folder)?;
        let passes = yosys::read(design, "").into_iter().chain(passes_of(design, cycles));
        let said = yosys::run::<ProveError>(&self.python, passes, &folder.join("prove.py"))?;
        let top = design.top.clone();
        if let Some(inputs) = counterexample(&said) {
            return Err(ProveError::Broken { top, inputs });
        }
        let clauses = clauses(&said).filter(|_| said.contains("no model found: SUCCESS"));
        clauses.map(|clauses| Proof { cycles, clauses }).ok_or(ProveError::Said { top, said })
    }
}

/// The passes behind reading: a cycle of reset, then `cycles` without.
fn passes_of(design: &Design, cycles: u32) -> [String; 9] {
    let last = cycles + 1;
    let resets = (1..=last).map(|cycle| format!(" -set-at {cycle} rst_ni {}", u8::from(cycle > 1)));
    let resets: String = resets.collect();
    [
        "proc".into(),
        "flatten".into(),
        "opt_clean".into(),
        "memory_map".into(),
        "async2sync".into(),
        "chformal -lower".into(),
        "opt -full".into(),
        format!("select -assert-min 1 t:$assert {}/t:$assert", design.top),
        format!("sat -prove-asserts -set-assumes -show-inputs -seq {last}{resets}"),
    ]
}

/// The table of inputs, where Yosys has found some.
fn counterexample(said: &str) -> Option<String> {
    let from = said.find("proof finished - model found")?;
    let rows = said[from..].lines().filter(|line| line.contains('\\') || line.contains("----"));
    Some(rows.collect::<Vec<_>>().join("\n"))
}

/// The size of the problem: `Solving problem with 12 variables and 34 clauses..`.
fn clauses(said: &str) -> Option<u64> {
    let line = said.lines().rfind(|line| line.starts_with("Solving problem with"))?;
    line.split_whitespace().nth_back(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{clauses, counterexample};

    #[test]
    fn what_yosys_says() {
        let none = "Solving problem with 12 variables and 34 clauses..\n\
                    SAT proof finished - no model found: SUCCESS!\n";
        assert_eq!((clauses(none), counterexample(none)), (Some(34), None));
        let some = "SAT proof finished - model found: FAIL!\n  Time Signal\n  ----\n   1 \\a_i 0\n";
        assert_eq!(counterexample(some).as_deref(), Some("  ----\n   1 \\a_i 0"));
    }
}
