//! A whole NIC around the two pipelines of a program: blocks of `rtl/` wired to the ports of the
//! emitted modules, so that everything happens in the cycle that the clocked law says
//! (docs/nic.md, C1 to C11).
//!
//! A packet of cycle k goes into the ingress pipeline so late that its lookup comes in cycle k + 4;
//! what it asks of packetization and of the generator waits until k + `ingress_cycles`. What the
//! arbiter chooses in cycle k is out at k + `egress_cycles`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use nic::nano::blocks::clocked::{GRANT_RESTART, LOOKUP};
use nic::nano::config::Config;
use p4::ir::{self, ExternId, PipelineId, Program};
use p4::state::State;
use thiserror::Error;

use crate::blocks::BLOCKS;
use crate::emit::{Module, Request, Unsupported, emit};
use crate::record::Port;
use crate::sim::Design;

/// Bytes of a beat: what frames go in and come out by.
const BEAT: u32 = 64;

/// What a NIC cannot be made of.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NicError {
    /// A pipeline.
    #[error(transparent)]
    Pipeline(#[from] Unsupported),
    /// It is for another architecture.
    #[error("a program for `{0}` is no NIC: #include <nano.p4> and instantiate NanoNic")]
    Architecture(String),
    /// A block is missing.
    #[error(
        "`{0}`: no block of hardware does that; leave it out, or run the program in simulation"
    )]
    Extern(String),
    /// A port serves one access of a packet.
    #[error("`{0}` is accessed more than once by a packet: its block answers one request")]
    Twice(String),
    /// A size that blocks do not have.
    #[error("`{key}` is {value}: a circuit has {wanted}")]
    Size {
        /// The key.
        key: &'static str,
        /// What it is.
        value: u64,
        /// What it may be.
        wanted: &'static str,
    },
    /// It is not ready in its cycle.
    #[error(
        "`{what}` comes {late} cycles too late: raise `{key}` by as many, or shorten what it waits for"
    )]
    Late {
        /// The access, or the results.
        what: String,
        /// By how much.
        late: u64,
        /// What would make room.
        key: &'static str,
    },
}

/// A NIC as SystemVerilog.
#[derive(Clone, Debug)]
pub struct Nic {
    /// Files beside the [blocks](crate::blocks::BLOCKS): names and texts, the top module last.
    pub files: Vec<(String, String)>,
    /// Inputs of the top module `nic` beside clock and reset.
    pub inputs: Vec<Port>,
    /// Its outputs.
    pub outputs: Vec<Port>,
    /// Cycles from the arbiter's choice of a packet to its headers at `made_frame_o`, which comes
    /// before `tx_frame_o`.
    pub making: u32,
}

/// The NIC of `config` with this program.
///
/// # Errors
/// See [`NicError`].
pub fn build(program: &Program, state: &State, config: &Config) -> Result<Nic, NicError> {
    if program.pipelines.len() != 2 || program.architecture != "NanoNic" {
        return Err(NicError::Architecture(program.architecture.clone()));
    }
    check_sizes(config)?;
    let ingress = emit(program, PipelineId(0), state, None, "ingress")?;
    let egress = emit(program, PipelineId(1), state, None, "egress")?;
    let mut top = Top::new(program, config, &ingress, &egress);
    top.all()?;
    let (text, inputs, outputs) = top.finish();
    let files = vec![
        ("ingress.sv".into(), ingress.text().into()),
        ("egress.sv".into(), egress.text().into()),
        ("nic.sv".into(), text),
    ];
    Ok(Nic { files, inputs, outputs, making: egress.latency() })
}

/// Whether the blocks can have these sizes.
fn check_sizes(config: &Config) -> Result<(), NicError> {
    // Deadlines are compared within 32 bits of cycles.
    const LONGEST: u64 = 1 << 30;
    let cycles = |time| config.tick().of(time).0;
    let pulls = u64::from(config.max_pulls);
    let timeouts = config.max_timeouts.map_or(1, u64::from);
    let (tx, rx) = (u64::from(config.tx_messages), u64::from(config.rx_messages));
    let sizes = [
        ("tx_messages", tx, tx >= 2, "2 or more"),
        ("rx_messages", rx, rx >= 2, "2 or more"),
        ("max_pulls", pulls, pulls >= 2 && pulls.is_power_of_two(), "a power of two from 2 on"),
        ("max_timeouts", timeouts, timeouts > 0, "1 or more"),
        ("timeout", cycles(config.timeout), cycles(config.timeout) < LONGEST, "below 2^30 cycles"),
        (
            "ingress_timeouts",
            config.ingress_timeouts.into(),
            cycles(config.silence()) < LONGEST,
            "timeouts of below 2^30 cycles in all",
        ),
    ];
    match sizes.into_iter().find(|(_, _, fits, _)| !fits) {
        Some((key, value, _, wanted)) => Err(NicError::Size { key, value, wanted }),
        None => Ok(()),
    }
}

/// The top module in the making.
struct Top<'a> {
    program: &'a Program,
    config: &'a Config,
    ingress: &'a Module,
    egress: &'a Module,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    body: String,
    delays: u32,
    /// What drives each input of the two modules.
    into: [BTreeMap<String, String>; 2],
    /// Cycles that a packet waits before the ingress pipeline.
    wait: u64,
    /// What is there and read by nobody.
    unused: Vec<String>,
}

/// Where a request of a pipeline leads.
struct Asked {
    valid: String,
    args: Vec<String>,
    results: Vec<String>,
    /// Cycles from the packet to the request.
    cycle: u64,
}

const INGRESS: usize = 0;
const EGRESS: usize = 1;

/// Packetization is told what a packet says so many cycles before it counts.
const AHEAD: u64 = 1;

impl Nic {
    /// Its files and those of the blocks in `folder`, and the design that they are.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn design(&self, folder: &Path) -> io::Result<Design> {
        fs::create_dir_all(folder)?;
        let blocks = BLOCKS.iter().map(|(name, text)| (format!("{name}.sv"), (*text).to_owned()));
        let mut sources = Vec::new();
        for (name, text) in blocks.chain(self.files.iter().cloned()) {
            sources.push(folder.join(name));
            fs::write(&sources[sources.len() - 1], text)?;
        }
        Ok(Design { sources, ..self.ports() })
    }

    /// The design without its files.
    #[must_use]
    pub fn ports(&self) -> Design {
        Design {
            top: "nic".into(),
            sources: Vec::new(),
            parameters: Vec::new(),
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
        }
    }
}

impl<'a> Top<'a> {
    fn new(
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

    fn all(&mut self) -> Result<(), NicError> {
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

    fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.body, "  {}", text.as_ref());
    }

    fn input(&mut self, name: &str, width: u32) {
        self.inputs.push(Port::new(name, width));
    }

    fn output(&mut self, name: &str, width: u32, value: &str) {
        self.outputs.push(Port::new(name, width));
        self.line(format!("assign {name} = {value};"));
    }

    fn wire(&mut self, name: &str, width: u32) {
        self.line(format!("{} {name};", logic(width)));
    }

    fn assign(&mut self, name: &str, width: u32, value: &str) {
        self.line(format!("{} {name};\n  assign {name} = {value};", logic(width)));
    }

    /// A value some cycles later.
    fn later(&mut self, value: &str, width: u32, cycles: u64) -> String {
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
    fn all_later(&mut self, values: &[(String, u32)], cycles: u64) -> Vec<String> {
        values.iter().map(|(value, width)| self.later(value, *width, cycles)).collect()
    }

    // ---- Requests of the pipelines

    fn module_of(&self, at: usize) -> &'a Module {
        [self.ingress, self.egress][at]
    }

    fn width(&self, at: usize, output: &str) -> u32 {
        let module = self.module_of(at);
        let port = module.outputs().iter().find(|port| port.name() == output);
        port.map_or(1, Port::bits)
    }

    fn requests(&self, at: usize) -> impl Iterator<Item = (ExternId, &'a Request)> + use<'a> {
        self.module_of(at).requests().iter().filter_map(|request| match request.port {
            ir::Port::Call(which) => Some((which, request)),
            _ => None,
        })
    }

    /// Everything that the program calls has a block.
    fn check(&self) -> Result<(), NicError> {
        const KNOWN: [&str; 7] = [
            "get_rx_msg_info",
            "delivered",
            "credit_to_btx",
            "ctrl_pkt",
            "ack_pkt",
            "nack_pkt",
            "grant_pkt",
        ];
        const KINDS: [&str; 4] = ["IfElseRaw", "DualPortRaw", "TxMsgPrio", "SrptScheduler"];
        for (which, _) in self.requests(INGRESS).chain(self.requests(EGRESS)) {
            let kind = self.program.externs[which.index()].kind.as_str();
            if !KNOWN.contains(&kind) && !KINDS.contains(&kind) {
                return Err(NicError::Extern(ir::called(&self.program.externs[which.index()])));
            }
        }
        let shared = |module: &Module| {
            module.requests().iter().find(|r| !matches!(r.port, ir::Port::Call(_))).map(|r| r.port)
        };
        match shared(self.ingress).or_else(|| shared(self.egress)) {
            Some(port) => Err(NicError::Extern(port.name(self.program))),
            None => Ok(()),
        }
    }

    /// The request of a kind and a method, of the instance that `instance` is the first extern of.
    fn asked(
        &self,
        at: usize,
        kind: &str,
        method: &str,
        instance: Option<ExternId>,
    ) -> Result<Option<Asked>, NicError> {
        let is_it = |which: ExternId| {
            let called = &self.program.externs[which.index()];
            let same = instance.is_none_or(|known| self.program.instance(which) == known);
            called.kind == kind && called.method == method && same
        };
        let mut found = self.requests(at).filter(|(which, _)| is_it(*which));
        let Some((which, request)) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(NicError::Twice(ir::called(&self.program.externs[which.index()])));
        }
        let prefix = ["in", "out"][at];
        let wait = if at == INGRESS { self.wait } else { 0 };
        Ok(Some(Asked {
            valid: format!("{prefix}_{}", request.valid),
            args: request.args.iter().map(|arg| format!("{prefix}_{arg}")).collect(),
            results: request.results.clone(),
            cycle: wait + u64::from(request.cycle),
        }))
    }

    /// A request of the ingress pipeline to the sending side, `ahead` cycles before it takes
    /// effect: valid, and its arguments.
    fn effect(
        &mut self,
        kind: &str,
        method: &str,
        ahead: u64,
    ) -> Result<Option<Vec<String>>, NicError> {
        let Some(asked) = self.asked(INGRESS, kind, method, None)? else { return Ok(None) };
        let by = in_time(kind, asked.cycle, u64::from(self.config.ingress_cycles) - ahead)?;
        let mut values = vec![(asked.valid, 1)];
        for arg in asked.args {
            let width = self.width(INGRESS, arg.strip_prefix("in_").unwrap_or(&arg));
            values.push((arg, width));
        }
        Ok(Some(self.all_later(&values, by)))
    }

    /// How long a packet waits, so that its lookup comes when the law says.
    fn waits(&self) -> Result<u64, NicError> {
        let lookup = self.asked(INGRESS, "get_rx_msg_info", "", None)?;
        let cycle = lookup.map_or(0, |asked| asked.cycle);
        in_time("get_rx_msg_info", cycle, LOOKUP)
    }

    // ---- Blocks

    fn clock(&mut self) {
        for (name, width) in [("nic_mac_i", 48), ("switch_mac_i", 48), ("nic_ip_i", 32)] {
            self.input(name, width);
        }
        self.line("// The number of this cycle (C1).");
        self.wire("now_q", 32);
        self.line("always_ff @(posedge clk_i or negedge rst_ni) begin");
        self.line("  if (!rst_ni) now_q <= '0;\n    else now_q <= now_q + 32'd1;\n  end");
    }

    /// What a pipeline is told beside its packet; `behind` is the cycle of the packet.
    fn told(&self, name: &str, behind: u64) -> Option<String> {
        Some(match name {
            "nic.nic_mac" => "nic_mac_i".into(),
            "nic.switch_mac" => "switch_mac_i".into(),
            "nic.nic_ip" => "nic_ip_i".into(),
            "nic.rtt_pkts" => format!("16'd{}", self.config.rtt_packets),
            "nic.now" => format!("now_q - 32'd{behind}"),
            _ => return None,
        })
    }

    fn arrivals(&mut self) {
        let beats = self.ingress.window().div_ceil(BEAT).max(1);
        let bits = beats * BEAT * 8;
        self.input("rx_valid_i", 1);
        self.input("rx_frame_i", bits);
        self.input("rx_length_i", 16);
        self.line("// A packet waits, so that its lookup comes in cycle 4 (C2).");
        let wait = self.wait;
        let valid = self.later("rx_valid_i", 1, wait);
        let frame = self.later("rx_frame_i", bits, wait);
        let length = self.later("rx_length_i", 16, wait);
        let window = self.ingress.window() * 8;
        let into = &mut self.into[INGRESS];
        into.insert("valid_i".into(), valid);
        into.insert("length_i".into(), length);
        if window > 0 {
            let text = if window == bits {
                frame.clone()
            } else {
                format!("{frame}[{}:{}]", bits - 1, bits - window)
            };
            into.insert("packet_i".into(), text);
        }
        if window < bits {
            let unused =
                if window == 0 { frame } else { format!("{frame}[{}:0]", bits - window - 1) };
            self.unused.push(unused);
        }
        let pipeline = &self.program.pipelines[INGRESS];
        for (meta, port) in pipeline.meta.iter().zip(&self.ingress.ports().meta_in) {
            let Some(port) = port else { continue };
            let told = self.told(&meta.name, wait).unwrap_or_else(|| "'0".into());
            self.into[INGRESS].insert(port.clone(), told);
        }
    }

    /// Parameters that reassembly and packetization share.
    fn classes(&self) -> String {
        let list = |of: &dyn Fn(&nic::nano::buffers::SizeClass) -> u32| {
            let classes = self.config.classes.iter().rev();
            classes.map(|class| format!("32'd{}", of(class))).collect::<Vec<_>>().join(", ")
        };
        format!(
            ".Classes({}), .ClassBytes({{{}}}), .ClassBuffers({{{}}})",
            self.config.classes.len(),
            list(&|class| class.bytes),
            list(&|class| u32::from(class.buffers))
        )
    }

    fn cycles(&self, time: units::Dur) -> u64 {
        self.config.tick().of(time).0
    }

    fn reassembly(&mut self) -> Result<(), NicError> {
        let rx = u32::from(self.config.rx_messages);
        let id = rx.trailing_zeros().max(1);
        self.line("// Reassembly (C2, C4, C6, C7, C9).");
        for (name, width) in
            [("completed", 1), ("completed_id", id), ("expired", 1), ("expired_id", id)]
        {
            self.wire(name, width);
        }
        let asked = self.asked(INGRESS, "get_rx_msg_info", "", None)?;
        let (valid, args, results) = match &asked {
            Some(asked) => (asked.valid.clone(), asked.args.clone(), asked.results.clone()),
            None => ("1'b0".into(), vec!["'0".into(); 6], Vec::new()),
        };
        let names =
            ["mark_received", "src_ip", "src_context", "tx_msg_id", "msg_len", "pkt_offset"];
        let mut ports: Vec<String> =
            names.iter().zip(&args).map(|(name, arg)| format!(".{name}_i({arg})")).collect();
        let answers = [
            ("fail", 1),
            ("rx_msg_id", 16),
            ("is_new_msg", 1),
            ("is_new_pkt", 1),
            ("is_last_pkt", 1),
            ("ack_no", 9),
            ("is_done", 1),
        ];
        for (at, (name, width)) in answers.into_iter().enumerate() {
            let wire = format!("info_{name}");
            self.wire(&wire, width);
            ports.push(format!(".{name}_o({wire})"));
            match results.get(at) {
                Some(input) => drop(self.into[INGRESS].insert(input.clone(), wire)),
                None => self.unused.push(wire),
            }
        }
        self.wire("info_buf_ptr", 16);
        self.unused.push("info_buf_ptr".into());
        self.wire("restart", 1);
        self.wire("restart_id", id);
        let text = format!(
            "reassembly #(\n    .Ids({rx}), .TimeoutCycles({}), .Remember({}),\n    {}\n  ) \
             u_reassembly (\n    .clk_i, .rst_ni, .now_i(now_q), .valid_i({valid}),\n    {},\n    \
             .buf_ptr_o(info_buf_ptr), .granted_valid_i(restart), .granted_id_i(restart_id),\n    \
             .completed_valid_o(completed), .completed_id_o(completed_id),\n    \
             .expired_valid_o(expired), .expired_id_o(expired_id)\n  );",
            self.cycles(self.config.silence()),
            self.config.remember.unwrap_or(0),
            self.classes(),
            ports.join(", ")
        );
        self.line(text);
        self.deliveries(asked.as_ref())
    }

    /// A message that its lookup has found whole is announced when the packet takes effect, if the
    /// program says so (C7).
    fn deliveries(&mut self, asked: Option<&Asked>) -> Result<(), NicError> {
        let effect = u64::from(self.config.ingress_cycles);
        let results = self.wait + u64::from(self.ingress.latency());
        let by = in_time("the results of ingress", results, effect)?;
        let pipeline = &self.program.pipelines[INGRESS];
        let meta = |name: &str| {
            let at = pipeline.meta(name)?;
            self.ingress.ports().meta_out.get(at)?.as_ref().map(|port| format!("in_{port}"))
        };
        let zero = || "1'b0".to_owned();
        let (last, dropped) = (meta("ingress.is_last_pkt"), meta("ingress.drop"));
        let software = meta("ingress.to").map_or_else(zero, |to| format!("{to} == 2'd1"));
        let says = format!(
            "in_valid_o && in_accepted_o && {} && !({}) && !({software})",
            last.unwrap_or_else(zero),
            dropped.unwrap_or_else(zero)
        );
        self.assign("says_whole", 1, &says);
        let says = self.later("says_whole", 1, by);
        // Reassembly knows one cycle behind the lookup.
        let whole = self.later("completed", 1, effect - LOOKUP - 1);
        self.output("delivered_valid_o", 1, &format!("{says} && {whole}"));
        for (name, at, width) in
            [("src_ip", 1, 32), ("src_context", 2, 16), ("tx_msg_id", 3, 16), ("msg_len", 4, 16)]
        {
            let value = asked.map_or_else(|| "'0".to_owned(), |asked| asked.args[at].clone());
            let value = self.later(&value, width, effect - LOOKUP);
            self.output(&format!("delivered_{name}_o"), width, &value);
        }
        Ok(())
    }

    /// Instances of a kind that a pipeline calls, each by its first extern.
    fn instances(&self, kinds: &[&str]) -> Vec<ExternId> {
        let called = self.requests(INGRESS).chain(self.requests(EGRESS));
        let called = called.filter(|(which, _)| {
            kinds.contains(&self.program.externs[which.index()].kind.as_str())
        });
        let mut found: Vec<ExternId> =
            called.map(|(which, _)| self.program.instance(which)).collect();
        found.sort();
        found.dedup();
        found
    }

    fn cells(&mut self) -> Result<(), NicError> {
        let rx = self.config.rx_messages;
        for kind in ["IfElseRaw", "DualPortRaw"] {
            for instance in self.instances(&[kind]) {
                let known = &self.program.externs[instance.index()];
                let width = u32::from(known.results.last().map_or(1, |value| value.width));
                let module = if kind == "IfElseRaw" { "if_else_raw" } else { "dual_port_raw" };
                let name = format!("cells_{}", instance.index());
                self.line(format!("// {}", known.instance));
                let first = self.asked(INGRESS, kind, "execute", Some(instance))?;
                let mut ports = self.cell_port(
                    &name,
                    width,
                    first.as_ref(),
                    &["index", "predicate", "op0", "data0", "op1", "data1"],
                    "",
                );
                if kind == "DualPortRaw" {
                    let second = self.asked(INGRESS, kind, "second", Some(instance))?;
                    let names = ["index", "op", "data"];
                    ports.extend(self.cell_port(&name, width, second.as_ref(), &names, "second_"));
                }
                self.line(format!(
                    "{module} #(.Ids({rx}), .Width({width})) u_{name} (\n    .clk_i, .rst_ni, {}\n  );",
                    ports.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Connections of a port of cells.
    fn cell_port(
        &mut self,
        name: &str,
        width: u32,
        asked: Option<&Asked>,
        args: &[&str],
        prefix: &str,
    ) -> Vec<String> {
        let value = format!("{name}_{prefix}value");
        self.wire(&value, width);
        let valid = asked.map_or("1'b0".to_owned(), |asked| asked.valid.clone());
        let mut ports = vec![format!(".{prefix}valid_i({valid})")];
        for (at, arg) in args.iter().enumerate() {
            let given = asked.map_or("'0", |asked| asked.args[at].as_str());
            ports.push(format!(".{prefix}{arg}_i({given})"));
        }
        ports.push(format!(".{prefix}value_o({value})"));
        match asked.and_then(|asked| asked.results.first()) {
            Some(input) => drop(self.into[INGRESS].insert(input.clone(), value)),
            None => self.unused.push(value),
        }
        ports
    }

    fn scheduler(&mut self) -> Result<(), NicError> {
        let rx = u32::from(self.config.rx_messages);
        let id = rx.trailing_zeros().max(1);
        let instances = self.instances(&["SrptScheduler"]);
        if let Some(second) = instances.get(1) {
            return Err(NicError::Twice(ir::called(&self.program.externs[second.index()])));
        }
        let asked = self.asked(INGRESS, "SrptScheduler", "schedule", None)?;
        let Some(asked) = asked else {
            self.line("assign restart = 1'b0;\n  assign restart_id = '0;");
            self.unused.extend(["completed_id", "expired", "expired_id"].map(Into::into));
            return Ok(());
        };
        self.line("// The scheduler; ids that are free leave it behind the packet (C6).");
        let behind = asked.cycle.checked_sub(LOOKUP + 1).ok_or_else(|| NicError::Late {
            what: "SrptScheduler.schedule".into(),
            late: LOOKUP + 1 - asked.cycle,
            key: "ingress_cycles",
        })?;
        let drops = self.all_later(
            &[
                ("completed".into(), 1),
                ("completed_id".into(), id),
                ("expired".into(), 1),
                ("expired_id".into(), id),
            ],
            behind,
        );
        let args = ["rx_msg_id", "remove", "rank", "granted", "grantable"];
        let args: Vec<String> =
            args.iter().zip(&asked.args).map(|(name, arg)| format!(".{name}_i({arg})")).collect();
        let answers = [("success", 1), ("prio_level", 8), ("rx_msg_id", 16), ("grant_offset", 16)];
        let mut outs = Vec::new();
        for ((name, width), input) in answers.into_iter().zip(&asked.results) {
            let wire = format!("best_{name}");
            self.wire(&wire, width);
            outs.push(format!(".{name}_o({wire})"));
            self.into[INGRESS].insert(input.clone(), wire);
        }
        let level = self.program.externs[instances[0].index()].constructor.first();
        self.line(format!(
            "srpt #(.Ids({rx}), .Overcommitment({})) u_srpt (\n    .clk_i, .rst_ni, .valid_i({}), \
             {},\n    .drop_valid_i({{{}, {}}}), .drop0_id_i({}), .drop1_id_i({}),\n    {}\n  );",
            level.copied().unwrap_or(0),
            asked.valid,
            args.join(", "),
            drops[2],
            drops[0],
            drops[1],
            drops[3],
            outs.join(", ")
        ));
        let answered = asked.cycle + 2;
        let by = in_time("SrptScheduler.schedule", answered, LOOKUP + GRANT_RESTART.0)?;
        let restart = self.later("best_success", 1, by);
        let message = self.later(&format!("best_rx_msg_id[{}:0]", id - 1), id, by);
        self.line(format!("assign restart = {restart};\n  assign restart_id = {message};"));
        Ok(())
    }

    fn priorities(&mut self) -> Result<(), NicError> {
        let tx = u32::from(self.config.tx_messages);
        let id = tx.trailing_zeros().max(1);
        self.line("// Priorities of messages (C3, C5).");
        for (name, width) in [("prio_live", 1), ("prio_tx_msg_id", 16), ("prio_src_context", 16)] {
            self.wire(name, width);
        }
        let instances = self.instances(&["TxMsgPrio"]);
        if let Some(second) = instances.get(1) {
            return Err(NicError::Twice(ir::called(&self.program.externs[second.index()])));
        }
        let grant = self.effect("TxMsgPrio", "grant", AHEAD)?;
        let read = self.asked(EGRESS, "TxMsgPrio", "read", None)?;
        let zeros = || vec!["1'b0".to_owned(), "16'd0".into(), "16'd0".into(), "8'd0".into()];
        let grant = grant.unwrap_or_else(zeros);
        self.line(format!(
            "assign prio_tx_msg_id = {};\n  assign prio_src_context = {};",
            grant[1], grant[2]
        ));
        if instances.is_empty() {
            self.unused.push("prio_live".into());
            return Ok(());
        }
        self.wire("prio", 8);
        let valid = self.later(&grant[0], 1, AHEAD);
        let granted = self.later(&format!("prio_tx_msg_id[{}:0]", id - 1), id, AHEAD);
        let prio = self.later(&grant[3], 8, AHEAD);
        let cycle = read.as_ref().map_or(0, |read| read.cycle);
        let asked = read.as_ref().map_or_else(
            || "'0), .read_tx_msg_id_i('0), .read_update_i('0), .read_prio_i('0".to_owned(),
            |read| {
                format!(
                    "{}), .read_tx_msg_id_i({}), .read_update_i({}), .read_prio_i({}",
                    read.valid, read.args[0], read.args[1], read.args[2]
                )
            },
        );
        self.line(format!(
            "tx_msg_prio #(.Ids({tx}), .ReadCycles({cycle})) u_prio (\n    .clk_i, .rst_ni,\n    \
             .grant_valid_i({valid} && prio_live), .grant_id_i({granted}), \
             .grant_prio_i({prio}),\n    .read_valid_i({asked}), .prio_o(prio)\n  );"
        ));
        match read.as_ref().and_then(|read| read.results.first()) {
            Some(input) => drop(self.into[EGRESS].insert(input.clone(), "prio".into())),
            None => self.unused.push("prio".into()),
        }
        Ok(())
    }

    fn packetization(&mut self) -> Result<(), NicError> {
        let config = self.config;
        let tx = u32::from(config.tx_messages);
        let id = tx.trailing_zeros().max(1);
        self.line("// Packetization (C3, C4, C8).");
        let submits = [
            ("submit_valid_i", 1),
            ("submit_protocol_i", 8),
            ("submit_dst_ip_i", 32),
            ("submit_dst_context_i", 16),
            ("submit_src_context_i", 16),
            ("submit_msg_len_i", 16),
            ("submit_generation_i", 16 - id),
        ];
        submits.iter().for_each(|(name, width)| self.input(name, *width));
        self.input("cancel_valid_i", 1);
        self.input("cancel_id_i", id);
        for (name, width) in [
            ("submit_ready_o", 1),
            ("submit_id_o", id),
            ("submit_buf_ptr_o", 16),
            ("acked_valid_o", 1),
            ("acked_id_o", id),
            ("gave_up_valid_o", 1),
            ("gave_up_id_o", id),
        ] {
            self.outputs.push(Port::new(name, width));
        }
        self.wire("has_data", 1);
        self.wire("take_data", 1);
        self.line("nano_pkg::egress_meta_t data_packet;");
        let names = ["valid", "tx_msg_id", "src_context", "pkts"];
        let delivered = self.ports_of("delivered", "delivered", &names)?;
        let names =
            ["valid", "tx_msg_id", "src_context", "rtx", "rtx_pkt_offset", "update", "new_credit"];
        let credit = self.ports_of("credit_to_btx", "credit", &names)?;
        let submits: Vec<String> = submits.iter().map(|(name, _)| format!(".{name}")).collect();
        let text = format!(
            "packetization #(\n    .Ids({tx}), .RttPkts({}), .TimeoutCycles({}), \
             .MaxTimeouts({}), .Probe(1'b{}),\n    {}\n  ) u_packetization (\n    .clk_i, .rst_ni, \
             .now_i(now_q), .has_data_o(has_data), .packet_o(data_packet), \
             .take_i(take_data),\n    {}, .submit_ready_o, .submit_id_o, .submit_buf_ptr_o,\n    .cancel_valid_i, .cancel_id_i, \
             .prio_tx_msg_id_i(prio_tx_msg_id), .prio_src_context_i(prio_src_context), \
             .prio_live_o(prio_live),\n    {},\n    {},\n    .done_valid_o(acked_valid_o), \
             .done_id_o(acked_id_o), .gave_up_valid_o, .gave_up_id_o\n  );",
            config.rtt_packets,
            self.cycles(config.timeout),
            config.max_timeouts.unwrap_or(0),
            u8::from(config.probe),
            self.classes(),
            submits.join(", "),
            delivered.join(", "),
            credit.join(", ")
        );
        self.line(text);
        Ok(())
    }

    /// Connections of what an extern does to the sending side.
    fn ports_of(
        &mut self,
        kind: &str,
        prefix: &str,
        names: &[&str],
    ) -> Result<Vec<String>, NicError> {
        let values =
            self.effect(kind, "", AHEAD)?.unwrap_or_else(|| vec!["'0".into(); names.len()]);
        let pairs = names.iter().zip(values);
        Ok(pairs.map(|(name, value)| format!(".{prefix}_{name}_i({value})")).collect())
    }

    fn generator(&mut self) -> Result<(), NicError> {
        self.line("// The packet generator (C8).");
        let mut ports = Vec::new();
        for kind in ["ack", "nack", "ctrl", "grant"] {
            let asked = self.effect(&format!("{kind}_pkt"), "", 0)?;
            let (valid, packet) = match asked {
                // The notes behind the first fourteen are for programs that set flows.
                Some(values) => {
                    self.unused.extend(values[15..].iter().cloned());
                    (values[0].clone(), format!("{{{}}}", values[1..15].join(", ")))
                }
                None => ("1'b0".into(), "'0".into()),
            };
            ports.push(format!(".{kind}_valid_i({valid}), .{kind}_i({packet})"));
        }
        for (name, width) in [("has_control", 1), ("take_control", 1), ("lost", 5)] {
            self.wire(name, width);
        }
        self.line("nano_pkg::egress_meta_t control_packet;");
        self.line(format!(
            "generator #(.PullCycles({}), .MaxPulls({})) u_generator (\n    .clk_i, .rst_ni,\n    \
             {},\n    .has_control_o(has_control), .packet_o(control_packet), \
             .take_i(take_control), .lost_o(lost)\n  );",
            self.config.pull_cycles,
            self.config.max_pulls,
            ports.join(",\n    ")
        ));
        self.output("lost_o", 5, "lost");
        Ok(())
    }

    fn departures(&mut self) -> Result<(), NicError> {
        self.input("tx_open_i", 1);
        self.output("waits_o", 1, "has_control || has_data");
        self.line("// The arbiter, and the way out (C5).");
        self.wire("chosen", 1);
        self.line("nano_pkg::egress_meta_t packet;");
        self.line(
            "arbiter u_arbiter (\n    .clk_i, .rst_ni, .tx_open_i, .has_control_i(has_control), \
             .control_i(control_packet),\n    .take_control_o(take_control), \
             .has_data_i(has_data), .data_i(data_packet), .take_data_o(take_data),\n    \
             .valid_o(chosen), .packet_o(packet)\n  );",
        );
        self.into[EGRESS].insert("valid_i".into(), "chosen".into());
        self.into[EGRESS].insert("length_i".into(), "'0".into());
        let pipeline = &self.program.pipelines[EGRESS];
        for (meta, port) in pipeline.meta.iter().zip(&self.egress.ports().meta_in) {
            let Some(port) = port else { continue };
            let field = meta.name.rsplit('.').next().unwrap_or_default();
            let told = self.told(&meta.name, 0).unwrap_or_else(|| {
                if field.starts_with("note") { "'0".into() } else { format!("packet.{field}") }
            });
            self.into[EGRESS].insert(port.clone(), told);
        }
        let latency = u64::from(self.egress.latency());
        let egress = u64::from(self.config.egress_cycles);
        let by = spare("the results of egress", latency, egress, "egress_cycles")?;
        if !self.egress.ports().header {
            return Err(NicError::Extern("an egress deparser that writes nothing".into()));
        }
        self.made(latency);
        let bits = self.width(EGRESS, "header_o");
        let all = bits.div_ceil(BEAT * 8) * BEAT * 8;
        let valid = self.later("out_valid_o", 1, by);
        let frame = self.later("out_header_o", bits, by);
        let bytes = self.later("out_header_length_o", 16, by);
        let frame = if all == bits { frame } else { format!("{{{frame}, {}'d0}}", all - bits) };
        self.output("tx_valid_o", 1, &valid);
        self.output("tx_frame_o", all, &frame);
        self.output("tx_bytes_o", 16, &bytes);
        Ok(())
    }

    /// A packet as soon as it is made, and what it is, for whoever has the wire.
    fn made(&mut self, latency: u64) {
        let bits = self.width(EGRESS, "header_o");
        self.output("made_valid_o", 1, "out_valid_o");
        self.output("made_frame_o", bits, "out_header_o");
        self.output("made_bytes_o", 16, "out_header_length_o");
        for (field, width) in [
            ("protocol", 8),
            ("dst_ip", 32),
            ("dst_context", 16),
            ("msg_len", 16),
            ("pkt_offset", 8),
            ("tx_msg_id", 16),
            ("flags", 8),
        ] {
            let value = self.later(&format!("packet.{field}"), width, latency);
            self.output(&format!("made_{field}_o"), width, &value);
        }
    }

    /// An emitted module with all its ports.
    fn module(&mut self, at: usize, module: &Module) {
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

    fn finish(mut self) -> (String, Vec<Port>, Vec<Port>) {
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

/// Cycles from `cycle` to `limit`, or by how much it is late and which key would make room.
fn spare(what: &str, cycle: u64, limit: u64, key: &'static str) -> Result<u64, NicError> {
    let late = || NicError::Late { what: what.to_owned(), late: cycle - limit, key };
    limit.checked_sub(cycle).ok_or_else(late)
}

/// The same on the way in.
fn in_time(what: &str, cycle: u64, limit: u64) -> Result<u64, NicError> {
    spare(what, cycle, limit, "ingress_cycles")
}

fn logic(width: u32) -> String {
    if width == 1 { "logic".into() } else { format!("logic [{}:0]", width - 1) }
}
