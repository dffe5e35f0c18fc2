//! The pipelines of a program side by side, without a NIC around them: each a module, and a top
//! with all their ports, `PIPELINE_PORT`.

use std::fmt::Write as _;

use p4::ir::{PipelineId, Program};
use p4::state::State;

use crate::emit::{Module, Unsupported, emit};
use crate::record::Port;
use crate::sim::Design;

/// The top module.
pub(crate) const TOP: &str = "pipelines";

/// See the top of the file.
#[derive(Clone, Debug)]
pub struct Pipelines {
    modules: Vec<Module>,
}

impl Pipelines {
    /// Those of a program, with the table entries of a state.
    ///
    /// # Errors
    /// A pipeline has something that no module is made of.
    pub fn new(program: &Program, state: &State) -> Result<Self, Unsupported> {
        let all = (0..).map(PipelineId).zip(&program.pipelines);
        let modules = all.map(|(at, known)| emit(program, at, state, None, &known.name));
        Ok(Self::of(modules.collect::<Result<_, _>>()?))
    }

    /// These modules, of any programs, whose names differ.
    #[must_use]
    pub const fn of(modules: Vec<Module>) -> Self {
        Self { modules }
    }

    /// A module for each pipeline, in the order of the program.
    #[must_use]
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Files: names and texts, the top last.
    #[must_use]
    pub fn texts(&self) -> Vec<(String, String)> {
        let each = self.modules.iter();
        let each = each.map(|module| (format!("{}.sv", module.name()), module.text().to_owned()));
        each.chain([(format!("{TOP}.sv"), self.top())]).collect()
    }

    /// What the top calls a port of a module.
    pub(crate) fn name(module: &Module, port: &Port) -> String {
        format!("{}_{}", module.name(), port.name())
    }

    /// The design without its files.
    #[must_use]
    pub fn ports(&self) -> Design {
        let ports = |of: fn(&Module) -> &[Port]| {
            let all = self.modules.iter().flat_map(|module| {
                of(module).iter().map(|port| Port::new(&Self::name(module, port), port.bits()))
            });
            all.collect()
        };
        Design {
            top: TOP.into(),
            sources: Vec::new(),
            parameters: Vec::new(),
            inputs: ports(Module::inputs),
            outputs: ports(Module::outputs),
        }
    }

    fn top(&self) -> String {
        let (mut ports, mut body) = (String::new(), String::new());
        for module in &self.modules {
            let mut joins = vec![".clk_i".to_owned(), ".rst_ni".to_owned()];
            let inputs = module.inputs().iter().map(|port| ("input ", port));
            let outputs = module.outputs().iter().map(|port| ("output", port));
            for (way, port) in inputs.chain(outputs) {
                let (name, bits) = (Self::name(module, port), port.bits());
                let range = if bits == 1 { String::new() } else { format!("[{}:0] ", bits - 1) };
                let _ = write!(ports, ",\n  {way} logic {range}{name}");
                joins.push(format!(".{}({name})", port.name()));
            }
            let (name, joins) = (module.name(), joins.join(",\n    "));
            let _ = writeln!(body, "  {name} u_{name} (\n    {joins}\n  );");
        }
        format!(
            "// Made by trimline: the pipelines of a program side by side. Do not change it.\n\
             module {TOP} (\n  input  logic clk_i,\n  input  logic rst_ni{ports}\n);\n{body}endmodule\n"
        )
    }
}
