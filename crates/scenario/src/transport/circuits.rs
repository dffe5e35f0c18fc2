//! `backend = "rtl"`: NICs that are circuits, built once for a run by Verilator.

use nic::nano::config::Config;
use nic::nano::ticking::Ticking;
use rtl::kept;
use rtl::machine::Circuit;
use rtl::nic::build;
use rtl::sim::Program;
use rtl::tools::Tools;

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
    /// Build it, if it has not been built before.
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
        let program = kept::built(&tools, &nic.texts(), &nic.ports())
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
