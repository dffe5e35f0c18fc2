//! What a whole NIC costs: each of its blocks as [`crate::synth`] has it, and their sum.
//!
//! Blocks are mapped one by one, as the NIC has them with its parameters; what is not in a block
//! (values that wait, the wires between) is one more, [`WIRING`]. So the clock is that of the
//! slowest block, without paths from one block into the next. A block that was mapped before is not
//! mapped again: results are kept by the text of what Yosys has read.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sim::Design;
use crate::synth::{self, SynthError, SynthTools, Synthesis};
use crate::yosys;

/// The name of what is in no block.
pub const WIRING: &str = "between blocks";

/// Modules that are wiring.
const DELAY: &str = "delay";

/// What a NIC costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its blocks, the largest first.
    pub blocks: Vec<BlockCost>,
}

/// What one block costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockCost {
    /// The module: `ingress`, `reassembly`, ..., or [`WIRING`].
    pub module: String,
    /// Its instance in the NIC.
    pub instance: String,
    /// Area, cells, memory, clock and longest path.
    pub cost: Synthesis,
}

impl Report {
    /// Area of all cells without memories, um^2.
    #[must_use]
    pub fn area(&self) -> f64 {
        self.blocks.iter().map(|block| block.cost.area).sum()
    }

    /// How many cells.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.blocks.iter().map(|block| block.cost.cells).sum()
    }

    /// Cells that store a bit.
    #[must_use]
    pub fn flip_flops(&self) -> u64 {
        self.blocks.iter().map(|block| block.cost.flip_flops).sum()
    }

    /// Bits in memories.
    #[must_use]
    pub fn memory_bits(&self) -> u64 {
        self.blocks.iter().map(|block| block.cost.memory_bits).sum()
    }

    /// The block whose longest path is the longest. None of no blocks.
    #[must_use]
    pub fn slowest(&self) -> Option<&BlockCost> {
        self.blocks.iter().max_by(|a, b| a.cost.period_ps.total_cmp(&b.cost.period_ps))
    }

    /// The shortest clock period of all blocks, ps.
    #[must_use]
    pub fn period_ps(&self) -> f64 {
        self.slowest().map_or(0.0, |block| block.cost.period_ps)
    }

    /// Packets a second, one each `spacing` cycles of the slowest block's clock.
    #[must_use]
    pub fn packets_per_second(&self, spacing: u32) -> f64 {
        1e12 / (self.period_ps() * f64::from(spacing.max(1)))
    }
}

/// What `design`, a NIC of [`crate::nic`], costs. Files go to `folder`; results that are in `cache`
/// are taken from there, others put there.
///
/// # Errors
/// See [`SynthError`].
pub fn report(
    tools: &SynthTools,
    design: &Design,
    folder: &Path,
    cache: &Path,
) -> Result<Report, SynthError> {
    fs::create_dir_all(folder)?;
    let parts = split(tools, design, folder)?;
    let mut blocks = parts
        .into_iter()
        .map(|part| part.cost(tools, cache))
        .collect::<Result<Vec<BlockCost>, SynthError>>()?;
    blocks.sort_by(|a, b| b.cost.area.total_cmp(&a.cost.area));
    Ok(Report { blocks })
}

/// A block as Yosys has read it.
struct Part {
    module: String,
    instance: String,
    file: PathBuf,
}

/// A file for each block, and one for the rest.
fn split(tools: &SynthTools, design: &Design, folder: &Path) -> Result<Vec<Part>, SynthError> {
    let at = |file: &str| folder.join(file);
    let (all, modules) = (at("all.il"), at("modules.json"));
    let reads = yosys::read(design, " --ignore-assertions --keep-hierarchy").into_iter().chain([
        // Where a line stood is not what it is.
        "setattr -unset src".into(),
        "setattr -mod -unset src".into(),
        format!("write_rtlil {}", all.display()),
        format!("tee -q -o {} stat -json", modules.display()),
    ]);
    yosys::run::<SynthError>(tools.python(), reads, &at("read.py"))?;
    let parts = parts(&synth::modules(design, &modules)?, &design.top, folder);
    let mut passes = vec![format!("read_rtlil {}", all.display()), "design -save all".into()];
    for part in &parts {
        if part.module == WIRING {
            for block in parts.iter().filter(|block| block.module != WIRING) {
                passes.push(format!("blackbox {}", block.name(&design.top)));
            }
            passes.push(format!("hierarchy -top {}", design.top));
            passes.push("flatten -separator .".into());
        } else {
            passes.push(format!("hierarchy -top {}", part.name(&design.top)));
            passes.push("flatten -separator .".into());
            passes.push(format!("rename -top {}", part.module));
        }
        passes.push("opt_clean -purge".into());
        passes.push(format!("write_rtlil {}", part.file.display()));
        passes.push("design -load all".into());
    }
    yosys::run::<SynthError>(tools.python(), passes, &at("split.py"))?;
    Ok(parts)
}

/// The blocks among `modules`, which are named `MODULE$TOP.INSTANCE`.
fn parts(modules: &[String], top: &str, folder: &Path) -> Vec<Part> {
    let middle = format!("${top}.");
    let named = modules.iter().filter_map(|name| name.trim_start_matches('\\').split_once(&middle));
    // An instance within a block has one more point.
    let blocks = named.filter(|(module, instance)| *module != DELAY && !instance.contains('.'));
    let part = |module: &str, instance: &str| Part {
        module: module.to_owned(),
        instance: instance.to_owned(),
        file: folder.join(format!("{instance}.il")),
    };
    let rest = Part { file: folder.join("rest.il"), ..part(WIRING, top) };
    blocks.map(|(module, instance)| part(module, instance)).chain([rest]).collect()
}

impl Part {
    fn name(&self, top: &str) -> String {
        format!("{}${top}.{}", self.module, self.instance)
    }

    fn cost(self, tools: &SynthTools, cache: &Path) -> Result<BlockCost, SynthError> {
        let text = fs::read_to_string(&self.file)?;
        let mut hasher = DefaultHasher::new();
        (&text, synth::method()).hash(&mut hasher);
        let folder = cache.join(format!("{:016x}", hasher.finish()));
        let kept = folder.join("cost.json");
        let known =
            fs::read_to_string(&kept).ok().and_then(|text| serde_json::from_str(&text).ok());
        let cost = match known {
            Some(cost) => cost,
            None => self.map(tools, &folder, &kept)?,
        };
        Ok(BlockCost { module: self.module, instance: self.instance, cost })
    }

    fn map(&self, tools: &SynthTools, folder: &Path, kept: &Path) -> Result<Synthesis, SynthError> {
        let top = if self.module == WIRING { &self.instance } else { &self.module };
        let reads =
            [format!("read_rtlil {}", self.file.display()), format!("hierarchy -top {top}")];
        let cost = synth::map(tools, top, reads, folder)?;
        fs::write(kept, serde_json::to_string(&cost).unwrap_or_default())?;
        Ok(cost)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{WIRING, parts};

    #[test]
    fn blocks_are_instances_of_the_top_that_are_no_delays() {
        let names = ["\\fifo$nic.u_a.u_queue", "\\a$nic.u_a", "\\delay$nic.u_later_1", "\\nic"];
        let parts = parts(&names.map(Into::into), "nic", Path::new("x"));
        let names: Vec<_> = parts.iter().map(|part| (&*part.module, &*part.instance)).collect();
        assert_eq!(names, [("a", "u_a"), (WIRING, "nic")]);
        assert_eq!(parts[0].name("nic"), "a$nic.u_a");
    }
}
