//! `backend = "rtl"`: NICs that are circuits, built once for a run by Verilator.

use std::hash::Hasher as _;
use std::sync::atomic::{AtomicU64, Ordering};

use nic::nano::config::Config;
use nic::nano::ticking::Ticking;
use rtl::blocks::BLOCKS;
use rtl::machine::Circuit;
use rtl::nic::{Nic, build};
use rtl::sim::{Program, SimError};
use rtl::tools::Tools;
use rustc_hash::FxHasher;

use super::Made;
use crate::diagnostic::Checked;
use crate::p4::Compiled;
use crate::reader::Reader;

/// The circuit of a program's NIC, built.
pub(super) struct Circuits {
    program: Program,
    making: u32,
}

impl Circuits {
    /// Build it, in a folder named by what it is.
    pub(super) fn new(table: &Reader<'_>, compiled: &Compiled, config: &Config) -> Checked<Self> {
        let refuse = |why: String, hint: &str| {
            table.error("backend", why, "no circuit of this NIC").hint(hint.to_owned())
        };
        if !config.clocked {
            let why = "a circuit keeps to the clocked law".to_owned();
            return Err(refuse(why, "add `clocked = true`"));
        }
        let tools =
            Tools::find().map_err(|why| refuse(why.to_string(), "or use another back end"))?;
        let nic = build(&compiled.program, &compiled.state(), config)
            .map_err(|why| refuse(why.to_string(), "docs/nic.md says what circuits have"))?;
        let mut hash = FxHasher::default();
        hash.write(tools.version().as_bytes());
        BLOCKS.iter().for_each(|(_, text)| hash.write(text.as_bytes()));
        nic.files.iter().for_each(|(_, text)| hash.write(text.as_bytes()));
        let name = format!("{:016x}", hash.finish());
        let program = built(&tools, &nic, &name)
            .map_err(|why| refuse(why.to_string(), "or use another back end"))?;
        Ok(Self { program, making: nic.making })
    }

    /// The NIC of a host.
    pub(super) fn endpoint(&self, config: &Config) -> Made {
        let started = self.program.start();
        let started = started.map_err(|why| format!("its circuit cannot be started: {why}"))?;
        let circuit = Circuit::new(started, config.clone(), self.making);
        Ok(Box::new(Ticking::new(circuit, config)))
    }
}

/// Builds of this process: sweeps read scenarios side by side.
static BUILDS: AtomicU64 = AtomicU64::new(0);

/// The design of this name, built once for all runs. Several may build it at once: it appears
/// whole.
fn built(tools: &Tools, nic: &Nic, name: &str) -> Result<Program, SimError> {
    let all = std::env::temp_dir().join("trimline-rtl");
    let folder = all.join(name);
    if !folder.join("simulation").exists() {
        let nth = BUILDS.fetch_add(1, Ordering::Relaxed);
        let own = all.join(format!("{name}.{}.{nth}", std::process::id()));
        nic.design(&own)?.build(tools, &own)?;
        // Where somebody was quicker, theirs is the same.
        if std::fs::rename(&own, &folder).is_err() {
            std::fs::remove_dir_all(&own)?;
        }
    }
    Ok(nic.ports().program(&folder))
}
