//! The top module in the making: its words, and the two pipelines with all their ports.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nic::nano::config::Config;
use p4::ir::Program;

use super::{EGRESS, INGRESS, NicError};
use crate::emit::Module;
use crate::record::Port;

/// The top module in the making.
pub(super) struct Top<'a> {
    pub(super) program: &'a Program,
    pub(super) config: &'a Config,
    pub(super) ingress: &'a Module,
    pub(super) egress: &'a Module,
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
    pub(super) body: String,
    pub(super) delays: u32,
    /// What drives each input of the two modules.
    pub(super) into: [BTreeMap<String, String>; 2],
    /// Cycles that a packet waits before the ingress pipeline.
    pub(super) wait: u64,
    /// What is there and read by nobody.
    pub(super) unused: Vec<String>,
}

impl<'a> Top<'a> {
    pub(super) fn new(
        program: &'a Program,
        config: &'a Config,
        ingress: &'a Module,
        egress: &'a Module,
    ) -> Self {
        Self {
            program,
            config,
            ingress,
            egress,
            inputs: Vec::new(),
            outputs: Vec::new(),
            body: String::new(),
            delays: 0,
            into: [BTreeMap::new(), BTreeMap::new()],
            wait: 0,
            unused: Vec::new(),
        }
    }

    pub(super) fn all(&mut self) -> Result<(), NicError> {
        self.check()?;
        self.wait = self.waits()?;
        self.clock();
        self.arrivals();
        self.reassembly()?;
        self.cells()?;
        self.scheduler()?;
        self.priorities()?;
        self.packetization()?;
        self.generator()?;
        self.departures()?;
        self.module(INGRESS, self.ingress);
        self.module(EGRESS, self.egress);
        Ok(())
    }

    // ---- Words

    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.body, "  {}", text.as_ref());
    }

    pub(super) fn input(&mut self, name: &str, width: u32) {
        self.inputs.push(Port::new(name, width));
    }

    pub(super) fn output(&mut self, name: &str, width: u32, value: &str) {
        self.outputs.push(Port::new(name, width));
        self.line(format!("assign {name} = {value};"));
    }

    pub(super) fn wire(&mut self, name: &str, width: u32) {
        self.line(format!("{} {name};", logic(width)));
    }

    pub(super) fn assign(&mut self, name: &str, width: u32, value: &str) {
        self.line(format!("{} {name};\n  assign {name} = {value};", logic(width)));
    }

    /// A value some cycles later.
    pub(super) fn later(&mut self, value: &str, width: u32, cycles: u64) -> String {
        if cycles == 0 {
            return value.to_owned();
        }
        self.delays += 1;
        let name = format!("later_{}", self.delays);
        self.wire(&name, width);
        self.line(format!(
            "delay #(.Width({width}), .Cycles({cycles})) u_{name} (\n    .clk_i, .rst_ni, \
             .data_i({value}), .data_o({name})\n  );"
        ));
        name
    }

    /// Several values at once.
    pub(super) fn all_later(&mut self, values: &[(String, u32)], cycles: u64) -> Vec<String> {
        values.iter().map(|(value, width)| self.later(value, *width, cycles)).collect()
    }

    /// An emitted module with all its ports.
    pub(super) fn module(&mut self, at: usize, module: &Module) {
        let (prefix, name) = (["in", "out"][at], module.name());
        let mut ports = vec![".clk_i".to_owned(), ".rst_ni".to_owned()];
        for port in module.inputs() {
            let value = self.into[at].get(port.name()).cloned().unwrap_or_else(|| "'0".into());
            ports.push(format!(".{}({value})", port.name()));
        }
        for port in module.outputs() {
            let wire = format!("{prefix}_{}", port.name());
            ports.push(format!(".{}({wire})", port.name()));
        }
        self.line(format!("{name} u_{name} (\n    {}\n  );", ports.join(",\n    ")));
    }

    pub(super) fn finish(mut self) -> (String, Vec<Port>, Vec<Port>) {
        // Wires stand before everything that reads them.
        let mut wires = String::new();
        for (prefix, module) in [("in", self.ingress), ("out", self.egress)] {
            for port in module.outputs() {
                let wire = format!("{prefix}_{}", port.name());
                let _ = writeln!(wires, "  {} {wire};", logic(port.bits()));
                let word = |c: char| c.is_alphanumeric() || c == '_';
                let reads = self.body.split(|c| !word(c)).filter(|text| *text == wire).count();
                if reads < 2 {
                    self.unused.push(wire);
                }
            }
        }
        if !self.unused.is_empty() {
            let unused = self.unused.join(", ");
            self.line("// What nothing here looks at.");
            self.line(format!("logic unused;\n  assign unused = ^{{{unused}}};"));
        }
        let mut text = "// Made by trimline: a NIC around its program. Do not change it.\n\
                        module nic (\n  input  logic clk_i,\n  input  logic rst_ni"
            .to_owned();
        let inputs = self.inputs.iter().map(|port| ("input ", port));
        for (way, port) in inputs.chain(self.outputs.iter().map(|port| ("output", port))) {
            let _ = write!(text, ",\n  {way} {} {}", logic(port.bits()), port.name());
        }
        let _ = write!(text, "\n);\n{wires}{}endmodule\n", self.body);
        (text, self.inputs, self.outputs)
    }
}

/// The type of a signal of this width.
fn logic(width: u32) -> String {
    if width == 1 { "logic".into() } else { format!("logic [{}:0]", width - 1) }
}
