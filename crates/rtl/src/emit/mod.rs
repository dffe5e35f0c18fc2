//! A pipeline of a P4 program as one module of SystemVerilog.
//!
//! The module is the [circuit](p4::ir::circuit) of the pipeline as its schedule has it: a wire for
//! each value, an assignment with the line of P4 that it comes from, and registers that carry it
//! from cycle to cycle for as long as something needs it. A packet goes in with `valid_i`: its
//! first bytes (as many as the parser can want, the first at the top), its length, its metadata.
//! Its results come out [`Module::latency`] cycles later with `valid_o`. Packets may follow one
//! another by the program's least spacing ([`p4::ir::Hardware::spacings`]), not closer. Who reads a
//! register in the cycle in which a packet ahead writes it reads what is being written.
//!
//! Registers, counters and tables are inside; a register or counter that other pipelines access as
//! well is outside. So are externs: each access is a group of ports, the request out with its valid
//! bit in its cycle, the answer in as many cycles later as its `@latency` says.

mod memory;
mod mutants;
mod names;
mod text;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use p4::ir::circuit::{AccessId, Circuit, LENGTH_WIDTH, Node, NodeId, Schedule, Target};
use p4::ir::{self, Direction, Pipeline, PipelineId, Place, Program, Spacing};
use p4::state::State;
use thiserror::Error;

use crate::record::Port;
pub use mutants::{Change, Mutant, SELECT};
use names::Names;
use text::{Operand, literal, logic};

/// Most bytes of a packet's front that a parser may look at.
pub const MOST_WINDOW: u32 = 1024;

/// Most entries of a table.
pub const MOST_ENTRIES: usize = 1024;

/// Most bits of a register.
pub const MOST_REGISTER: u64 = 1 << 22;

/// What a program has that the emitter does not.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file}:{line}: {text}")]
pub struct Unsupported {
    /// The source file.
    pub file: String,
    /// The line; 0: nowhere.
    pub line: u32,
    /// What, and what to do.
    pub text: String,
}

/// A module and its ports.
#[derive(Clone, Debug)]
pub struct Module {
    name: String,
    text: String,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    window: u32,
    latency: u32,
    spacing: u32,
    ports: Ports,
    requests: Vec<Request>,
    readings: Vec<Reading>,
    mutants: Vec<Mutant>,
}

/// The ports of a packet, by name.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    /// For each of [`Pipeline::meta`] that the caller sets.
    pub meta_in: Vec<Option<String>>,
    /// For each of them that the pipeline sets.
    pub meta_out: Vec<Option<String>>,
    /// Whether the deparser writes anything: `header_o` and `header_length_o` are there.
    pub header: bool,
}

/// An access to what is outside.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is accessed.
    pub port: ir::Port,
    /// In which cycle of a packet the request comes out.
    pub cycle: u32,
    /// Cycles from the request to the answer.
    pub latency: u32,
    /// Output: whether there is a request.
    pub valid: String,
    /// Outputs: the arguments.
    pub args: Vec<String>,
    /// Inputs: the answers.
    pub results: Vec<String>,
}

/// What the control plane reads of a register or a counter inside: the index goes in, the value
/// comes out in the same cycle.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Its name in the source.
    pub name: String,
    /// Input.
    pub index: String,
    /// Outputs: of a register its value, of a counter packets and bytes.
    pub values: Vec<String>,
    /// How many places it has.
    pub size: u32,
}

impl Module {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// It, in SystemVerilog.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its inputs beside clock and reset.
    #[must_use]
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// Its outputs.
    #[must_use]
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Bytes of a packet's front that go in; 0: there is no `packet_i`.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Cycles from a packet to its results.
    #[must_use]
    pub fn latency(&self) -> u32 {
        self.latency
    }

    /// Cycles from a packet to the next, at least.
    #[must_use]
    pub fn spacing(&self) -> u32 {
        self.spacing
    }

    /// The ports of a packet.
    #[must_use]
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Accesses to what is outside. Of those that come in one cycle the first is that of the packet
    /// ahead, and is served first.
    #[must_use]
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// What the control plane can read.
    #[must_use]
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }
}

/// The module `name` of a pipeline, with the table entries of a state.
///
/// # Errors
/// The pipeline has something that no module is made of.
pub fn emit(
    program: &Program,
    pipeline: PipelineId,
    state: &State,
    target: Option<&Target>,
    name: &str,
) -> Result<Module, Unsupported> {
    make(program, pipeline, state, target, name, false)
}

/// The same with planted mistakes at each value and each register, of which the input `mutant_i`
/// chooses one ([`Module::mutants`]).
///
/// # Errors
/// See [`emit`].
pub fn emit_with_mutants(
    program: &Program,
    pipeline: PipelineId,
    state: &State,
    name: &str,
) -> Result<Module, Unsupported> {
    make(program, pipeline, state, None, name, true)
}

fn make(
    program: &Program,
    pipeline: PipelineId,
    state: &State,
    target: Option<&Target>,
    name: &str,
    has_mutants: bool,
) -> Result<Module, Unsupported> {
    let file =
        |place: Place| program.files.get(usize::from(place.file)).cloned().unwrap_or_default();
    let circuit = Circuit::new(program, pipeline).map_err(|fault| Unsupported {
        file: file(fault.place),
        line: fault.place.line,
        text: fault.text,
    })?;
    let schedule = Schedule::new(program, &circuit, target);
    let mut emitter = Emitter::new(program, pipeline, state, &circuit, &schedule, name)?;
    emitter.has_mutants = has_mutants;
    emitter.all();
    Ok(emitter.finish())
}

/// A signal and which of its bits something reads.
#[derive(Clone, Debug)]
struct Signal {
    width: u32,
    read: Vec<bool>,
}

/// A module in the making.
struct Emitter<'a> {
    program: &'a Program,
    pipeline: &'a Pipeline,
    id: PipelineId,
    state: &'a State,
    circuit: &'a Circuit,
    schedule: &'a Schedule,
    names: Names,
    signals: BTreeMap<String, Signal>,
    /// The wire of each node that something needs.
    wires: Vec<Option<String>>,
    /// The last cycle in which each node is needed.
    until: Vec<u32>,
    live: Vec<bool>,
    answered: Vec<bool>,
    /// What the signals of each access begin with.
    bases: Vec<String>,
    /// The signals of each access's answers.
    answers: Vec<Vec<String>>,
    /// Memories inside, whose changes come at the end.
    inside: Vec<ir::Port>,
    /// Reads of registers outside that may meet writes of packets ahead.
    forwarded: Vec<AccessId>,
    has_mutants: bool,
    body: String,
    module: Module,
}

impl<'a> Emitter<'a> {
    fn new(
        program: &'a Program,
        id: PipelineId,
        state: &'a State,
        circuit: &'a Circuit,
        schedule: &'a Schedule,
        name: &str,
    ) -> Result<Self, Unsupported> {
        let nodes = circuit.graph().nodes().len();
        let mut emitter = Self {
            program,
            pipeline: &program.pipelines[id.index()],
            id,
            state,
            circuit,
            schedule,
            names: Names::default(),
            signals: BTreeMap::new(),
            wires: vec![None; nodes],
            until: vec![0; nodes],
            live: vec![false; nodes],
            answered: vec![false; circuit.accesses().len()],
            bases: Vec::new(),
            answers: vec![Vec::new(); circuit.accesses().len()],
            inside: Vec::new(),
            forwarded: Vec::new(),
            has_mutants: false,
            body: String::new(),
            module: Module {
                name: name.to_owned(),
                text: String::new(),
                inputs: Vec::new(),
                outputs: Vec::new(),
                window: 0,
                latency: schedule.cycles() - 1,
                spacing: Spacing::of(program, id, circuit, schedule, &[]).cycles,
                ports: Ports::default(),
                requests: Vec::new(),
                readings: Vec::new(),
                mutants: Vec::new(),
            },
        };
        emitter.module.window = emitter.window()?;
        emitter.check_sizes()?;
        emitter.find_live();
        emitter.find_lives();
        Ok(emitter)
    }

    fn unsupported(&self, place: Place, text: String) -> Unsupported {
        let file = self.program.files.get(usize::from(place.file));
        Unsupported { file: file.cloned().unwrap_or_default(), line: place.line, text }
    }

    /// Bytes of the packet's front that are looked at.
    fn window(&self) -> Result<u32, Unsupported> {
        let mut bits = 0;
        for value in self.circuit.graph().nodes() {
            match value.node {
                Node::Packet(from) => bits = bits.max(from + u32::from(value.width)),
                Node::PacketAt(_) => {
                    let text = "where this header begins depends on a number in the packet: \
                                advance by constants, in a state for each length";
                    return Err(self.unsupported(value.place, text.into()));
                }
                _ => {}
            }
            if bits.div_ceil(8) > MOST_WINDOW {
                let text = format!(
                    "the parser looks {} bytes into the packet, and at most {MOST_WINDOW} are \
                     there: extract fewer headers",
                    bits.div_ceil(8)
                );
                return Err(self.unsupported(value.place, text));
            }
        }
        Ok(bits.div_ceil(8))
    }

    /// Whether what is inside is small enough.
    fn check_sizes(&self) -> Result<(), Unsupported> {
        for (id, table) in (0..).map(ir::TableId).zip(&self.program.tables) {
            let entries = self.state.entries(id).len();
            if table.pipeline == self.id && entries > MOST_ENTRIES {
                let text = format!(
                    "table {} has {entries} entries, and at most {MOST_ENTRIES} are made: give \
                     it fewer, or put what it does behind an extern",
                    table.name
                );
                return Err(self.unsupported(table.place, text));
            }
        }
        for register in &self.program.registers {
            let bits = u64::from(register.size) * u64::from(register.width);
            if bits > MOST_REGISTER {
                let text = format!(
                    "register {} has {bits} bits, and at most {MOST_REGISTER} are made: give it \
                     fewer cells",
                    register.name
                );
                return Err(self.unsupported(register.place, text));
            }
        }
        Ok(())
    }

    /// Whether another pipeline accesses a register or a counter of this one.
    fn is_shared(&self, port: ir::Port) -> bool {
        let touches = |stmts: &ir::Block| touches(stmts, port);
        let others = self.program.pipelines.iter().enumerate();
        others.filter(|(at, _)| *at != self.id.index()).any(|(_, other)| {
            let states = other.parser.iter().flat_map(|parser| &parser.states);
            let actions = other.actions.iter().map(|action| &action.body);
            states.map(|s| &s.body).chain(actions).chain([&other.control]).any(touches)
        })
    }

    /// Which nodes and answers something needs.
    fn find_live(&mut self) {
        let mut open: Vec<NodeId> = self.circuit.outputs().nodes().collect();
        let operands = |id: AccessId| {
            let access = self.circuit.access(id);
            access.args.iter().chain([&access.on]).copied().collect::<Vec<_>>()
        };
        for id in self.circuit.access_ids() {
            let port = self.circuit.access(id).port;
            if !matches!(port, ir::Port::Read(_) | ir::Port::LookUp(_)) {
                self.answered[id.index()] = true;
                open.extend(operands(id));
            }
        }
        while let Some(node) = open.pop() {
            if std::mem::replace(&mut self.live[node.index()], true) {
                continue;
            }
            let node = self.circuit.graph().value(node).node;
            open.extend(node.operands());
            if let Node::Result(access, _) = node
                && !std::mem::replace(&mut self.answered[access.index()], true)
            {
                open.extend(operands(access));
            }
        }
    }

    /// Accesses that are made.
    fn accesses(&self) -> impl Iterator<Item = AccessId> + use<> {
        let answered = self.answered.clone();
        self.circuit.access_ids().filter(move |id| answered[id.index()])
    }

    /// How long each node is needed.
    fn find_lives(&mut self) {
        let last = self.module.latency;
        let mut need = |id: NodeId, cycle: u32| {
            self.until[id.index()] = self.until[id.index()].max(cycle);
        };
        for id in self.circuit.graph().ids().filter(|id| self.live[id.index()]) {
            let begins = self.schedule.begins(id);
            need(id, begins.max(self.schedule.node(id).cycle));
            let node = self.circuit.graph().value(id).node;
            node.operands().for_each(|operand| need(operand, begins));
        }
        for id in self.circuit.access_ids().filter(|id| self.answered[id.index()]) {
            let access = self.circuit.access(id);
            let cycle = self.schedule.access(id).cycle;
            access.args.iter().chain([&access.on]).for_each(|arg| need(*arg, cycle));
        }
        self.circuit.outputs().nodes().for_each(|node| need(node, last));
    }

    // ---- Signals

    fn input(&mut self, name: String, width: u32) -> String {
        self.module.inputs.push(Port::new(&name, width));
        self.declare(&name, width);
        for by in 1..=self.module.latency {
            self.names.unique(&delayed(&name, by), "");
        }
        name
    }

    fn output(&mut self, name: String, width: u32) -> String {
        self.module.outputs.push(Port::new(&name, width));
        name
    }

    fn declare(&mut self, name: &str, width: u32) {
        let signal = Signal { width, read: vec![false; width as usize] };
        self.signals.insert(name.to_owned(), signal);
    }

    /// Bits of a signal are read.
    fn read(&mut self, name: &str, low: u32, width: u32) {
        if let Some(signal) = self.signals.get_mut(name) {
            signal.read[low as usize..(low + width) as usize].fill(true);
        }
    }

    fn read_all(&mut self, name: &str) {
        if let Some(signal) = self.signals.get_mut(name) {
            signal.read.fill(true);
        }
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.body, "  {text}");
    }

    /// A wire of its own.
    fn wire(&mut self, name: &str, width: u32, value: &str, comment: &str) {
        self.declare(name, width);
        self.line(&format!("{} {name};", logic(width)));
        let comment = if comment.is_empty() { String::new() } else { format!("  // {comment}") };
        let value = self.mutated(name, width, value);
        self.line(&format!("assign {name} = {value};{comment}"));
    }

    /// File and line.
    fn place(&self, place: Place) -> String {
        let file = self.program.files.get(usize::from(place.file)).map_or("", String::as_str);
        let file = file.rsplit('/').next().unwrap_or(file);
        if place.line == 0 { String::new() } else { format!("{file}:{}", place.line) }
    }

    /// A node as something reads it in a cycle.
    fn operand(&mut self, id: NodeId, cycle: u32) -> Operand {
        let operand = self.named(id, cycle);
        self.read_all(&operand.text);
        operand
    }

    /// The same, of which only some bits are read.
    fn bits(&mut self, id: NodeId, cycle: u32, low: u16, width: u16) -> String {
        let operand = self.named(id, cycle);
        self.read(&operand.text, low.into(), width.into());
        operand.bits(low, width)
    }

    fn named(&self, id: NodeId, cycle: u32) -> Operand {
        let width = self.circuit.graph().width(id);
        if let Some(number) = self.circuit.graph().constant(id) {
            return Operand { text: literal(number, width), width, number: Some(number) };
        }
        let wire = self.wires[id.index()].clone().unwrap_or_default();
        let text = delayed(&wire, cycle.saturating_sub(self.schedule.begins(id)));
        Operand { text, width, number: None }
    }

    // ---- The module

    fn all(&mut self) {
        self.packet_ports();
        self.valid_chain();
        self.memories();
        let mut done = self.accesses().peekable();
        for id in self.circuit.graph().ids() {
            if !self.live[id.index()] {
                continue;
            }
            if let Node::Result(access, _) = self.circuit.graph().value(id).node {
                while let Some(next) = done.next_if(|next| *next <= access) {
                    self.access(next);
                }
            }
            self.node(id);
        }
        done.for_each(|next| self.access(next));
        self.changes();
        self.results();
    }

    fn packet_ports(&mut self) {
        for name in ["clk_i", "rst_ni", "valid_q", "header_o", "header_length_o", "unused_v"] {
            self.names.unique(name, "");
        }
        let valid = self.names.unique("valid", "_i");
        self.input(valid, 1);
        if self.has_mutants {
            let select = self.names.unique(SELECT.0, "");
            self.input(select, SELECT.1);
            self.read_all(SELECT.0);
        }
        if self.module.window > 0 {
            let packet = self.names.unique("packet", "_i");
            self.input(packet, self.module.window * 8);
        }
        let length = self.names.unique("length", "_i");
        self.input(length, LENGTH_WIDTH.into());
        for meta in &self.pipeline.meta {
            let width = self.pipeline.slots[meta.slot.index()].width.into();
            let name = (meta.direction != Direction::Out).then(|| {
                let name = self.names.unique(&names::plain(&meta.name), "_i");
                self.input(name, width)
            });
            self.module.ports.meta_in.push(name);
            let name = (meta.direction != Direction::In).then(|| {
                let name = self.names.unique(&names::plain(&meta.name), "_o");
                self.output(name, width)
            });
            self.module.ports.meta_out.push(name);
        }
        for (name, width) in
            [("valid_o", 1), ("accepted_o", 1), ("error_o", 8), ("bytes_o", LENGTH_WIDTH)]
        {
            self.names.unique(name, "");
            self.output(name.into(), width.into());
        }
    }

    /// Whether there is a packet in each cycle.
    fn valid_chain(&mut self) {
        let last = self.module.latency;
        if last > 0 {
            self.declare("valid_q", last);
            self.line(&format!("// Bit i: a packet is in cycle i + 1, of {}.", last + 1));
            self.line(&format!("{} valid_q;", logic(last)));
            let next = match last {
                1 => self.mutated_register("valid_q", 1, "valid_i"),
                2.. if self.has_mutants => self.mutated_chain(last),
                2 => "{valid_q[0], valid_i}".to_owned(),
                _ => format!("{{valid_q[{}:0], valid_i}}", last - 2),
            };
            self.read("valid_q", 0, last - 1);
            self.line("always_ff @(posedge clk_i or negedge rst_ni) begin");
            self.line(&format!("  if (!rst_ni) valid_q <= {last}'d0;"));
            self.line("  else begin");
            self.line(&format!("    valid_q <= {next};"));
            if let Some(close) = self.module.spacing.checked_sub(2) {
                self.read("valid_q", 0, close + 1);
                let close = if last == 1 { String::new() } else { format!("[{close}:0]") };
                self.line(&format!("    too_close: assert (!valid_i || valid_q{close} == '0);"));
            }
            self.line("  end");
            self.line("end");
        }
        self.read_all("valid_i");
    }

    /// Whether there is a packet in a cycle.
    fn valid(&mut self, cycle: u32) -> String {
        if cycle == 0 {
            return "valid_i".into();
        }
        self.read("valid_q", cycle - 1, 1);
        if self.module.latency == 1 { "valid_q".into() } else { format!("valid_q[{}]", cycle - 1) }
    }

    /// A node's wire and the registers behind it.
    fn node(&mut self, id: NodeId) {
        let value = *self.circuit.graph().value(id);
        let width = u32::from(value.width);
        let begins = self.schedule.begins(id);
        let text = match value.node {
            Node::Const(_) => return,
            Node::Input(at) => self.module.ports.meta_in[at as usize].clone().unwrap_or_default(),
            Node::Length => "length_i".into(),
            Node::Result(access, at) => self.answers[access.index()][at as usize].clone(),
            _ => String::new(),
        };
        if !text.is_empty() {
            // It has a name already.
            let text = self.mutated_port(text, width);
            self.wires[id.index()] = Some(text.clone());
            return self.registers(id, &text, width);
        }
        let path = value.name.map(|slot| self.pipeline.slots[slot.index()].name.clone());
        let path = path.unwrap_or_else(|| format!("n_{}", id.index()));
        let cycles = self.until[id.index()].saturating_sub(begins);
        let mut ends: Vec<String> = (1..=cycles).map(|by| delayed("", by)).collect();
        ends.push("_raw".into());
        let name = self.names.signal(&path, &ends);
        let text = self.expression(value.node, value.width, begins, &name);
        let place = self.place(value.place);
        let comment = format!("{place}{}cycle {begins}", if place.is_empty() { "" } else { ", " });
        self.wire(&name, width, &text, &comment);
        self.wires[id.index()] = Some(name.clone());
        self.registers(id, &name, width);
    }

    /// What carries a value as long as it is needed.
    fn registers(&mut self, id: NodeId, name: &str, width: u32) {
        let cycles = self.until[id.index()].saturating_sub(self.schedule.begins(id));
        if cycles == 0 {
            return;
        }
        let chain: Vec<String> = (0..=cycles).map(|by| delayed(name, by)).collect();
        for register in &chain[1..] {
            self.declare(register, width);
        }
        self.line(&format!("{} {};", logic(width), chain[1..].join(", ")));
        let next: Vec<String> =
            chain.windows(2).map(|pair| self.mutated_register(&pair[1], width, &pair[0])).collect();
        if cycles == 1 {
            self.line(&format!("always_ff @(posedge clk_i) {} <= {};", chain[1], next[0]));
        } else {
            self.line("always_ff @(posedge clk_i) begin");
            for (register, next) in chain[1..].iter().zip(&next) {
                self.line(&format!("  {register} <= {next};"));
            }
            self.line("end");
        }
        chain[..chain.len() - 1].iter().for_each(|read| self.read_all(read));
    }

    fn expression(&mut self, node: Node, width: u16, cycle: u32, own: &str) -> String {
        match node {
            Node::Packet(from) => {
                let high = self.module.window * 8 - 1 - from;
                let low = high + 1 - u32::from(width);
                self.read("packet_i", low, width.into());
                if width == 1 {
                    format!("packet_i[{low}]")
                } else {
                    format!("packet_i[{high}:{low}]")
                }
            }
            Node::Unary(op, a) => {
                let a = self.operand(a, cycle);
                text::unary(op, &a)
            }
            Node::Binary(op, a, b) => {
                let (a, b) = (self.operand(a, cycle), self.operand(b, cycle));
                let before = format!("{own}_raw");
                let (first, text) = text::binary(op, &a, &b, &before);
                if let Some(first) = first {
                    self.wire(&before, width.into(), &first, "");
                    self.read_all(&before);
                }
                text
            }
            Node::Slice(a, low) => self.bits(a, cycle, low, width),
            Node::Concat(a, b) => {
                let (a, b) = (self.operand(a, cycle), self.operand(b, cycle));
                format!("{{{}, {}}}", a.text, b.text)
            }
            Node::Resize(a, sign) => {
                let a = self.operand(a, cycle);
                text::resize(&a, sign, width)
            }
            Node::Mux(on, a, b) => {
                let [on, a, b] = [on, a, b].map(|id| self.operand(id, cycle).text);
                format!("{on} ? {a} : {b}")
            }
            Node::Const(_) | Node::Input(_) | Node::Length | Node::Result(..) => String::new(),
            Node::PacketAt(_) => String::new(),
        }
    }

    /// What comes out in the last cycle.
    fn results(&mut self) {
        let last = self.module.latency;
        let outputs = self.circuit.outputs();
        let valid = self.valid(last);
        self.line("// Results.");
        self.line(&format!("assign valid_o = {valid};"));
        let named = [("accepted_o", outputs.accepted), ("error_o", outputs.error)];
        for (name, node) in named.into_iter().chain([("bytes_o", outputs.bytes)]) {
            let value = self.operand(node, last).text;
            self.line(&format!("assign {name} = {value};"));
        }
        for (at, node) in outputs.meta.iter().enumerate() {
            let Some(node) = node else { continue };
            let value = self.operand(*node, last).text;
            let name = self.module.ports.meta_out[at].clone().unwrap_or_default();
            self.line(&format!("assign {name} = {value};"));
        }
        self.deparse();
    }

    /// The headers that are valid, one behind the other from the top down. What comes behind a
    /// header is joined first, as long as it can be, and moves up where the header is not there.
    fn deparse(&mut self) {
        let last = self.module.latency;
        let (mut rest, mut bits) = (String::new(), 0_u32);
        let mut lengths = Vec::new();
        let headers = self.circuit.outputs().headers.clone();
        for (at, (valid, fields)) in headers.iter().enumerate().rev() {
            let header = &self.pipeline.headers[self.pipeline.deparser[at].index()];
            let valid = self.operand(*valid, last);
            if valid.number == Some(0) || header.bits == 0 {
                continue;
            }
            let fields: Vec<String> =
                fields.iter().map(|field| self.operand(*field, last).text).collect();
            let behind = if bits == 0 { String::new() } else { format!(", {rest}") };
            let mut text = format!("{{{}{behind}}}", fields.join(", "));
            let mut length = literal(header.bits.into(), 19);
            if valid.number.is_none() {
                let zeros = format!("{}'d0", header.bits);
                let without = if bits == 0 { zeros } else { format!("{{{rest}, {zeros}}}") };
                text = format!("{} ? {text} : {without}", valid.text);
                length = format!("({} ? {length} : 19'd0)", valid.text);
            }
            bits += header.bits;
            let name = self.names.signal(&format!("from_{}", header.name), &[]);
            self.wire(&name, bits, &text, &header.name);
            self.read_all(&name);
            lengths.push(length);
            rest = name;
        }
        if bits == 0 {
            return;
        }
        let bytes = bits.div_ceil(8);
        self.output("header_o".into(), bytes * 8);
        self.output("header_length_o".into(), LENGTH_WIDTH.into());
        self.module.ports.header = true;
        let spare = bytes * 8 - bits;
        let whole = if spare == 0 { rest } else { format!("{{{rest}, {spare}'d0}}") };
        self.line(&format!("assign header_o = {whole};"));
        let sum = self.names.signal("header_bits", &[]);
        lengths.push("19'd7".into());
        self.wire(&sum, 19, &lengths.join(" + "), "and seven, to whole bytes");
        self.read(&sum, 3, LENGTH_WIDTH.into());
        self.line(&format!("assign header_length_o = {sum}[18:3];"));
    }

    fn finish(mut self) -> Module {
        self.find_unread_mutants();
        let mut unused = Vec::new();
        for clock in ["clk_i", "rst_ni"].into_iter().filter(|name| !self.body.contains(name)) {
            unused.push(clock.to_owned());
        }
        for (name, signal) in &self.signals {
            unused.extend(unread(name, signal));
        }
        if !unused.is_empty() {
            self.line("// What nothing here looks at.");
            self.line("logic unused_v;");
            self.line(&format!("assign unused_v = ^{{{}}};", unused.join(", ")));
        }
        let mut module = self.module;
        module.requests.sort_by_key(|request| Reverse(request.cycle));
        let mut text = format!(
            "// Made by trimline from the pipeline `{}` of {}. Do not change it.\n\
             // Results {} cycles behind the packet, packets at least {} apart.\n\
             module {} (\n  input  logic clk_i,\n  input  logic rst_ni",
            self.pipeline.name,
            self.program.files.first().map_or("a program", String::as_str),
            module.latency,
            module.spacing,
            module.name,
        );
        let inputs = module.inputs.iter().map(|port| ("input ", port));
        for (way, port) in inputs.chain(module.outputs.iter().map(|port| ("output", port))) {
            let _ = write!(text, ",\n  {way} {} {}", logic(port.bits()), port.name());
        }
        let _ = write!(text, "\n);\n{}endmodule\n", self.body);
        module.text = text;
        module
    }
}

/// A value some cycles later.
fn delayed(name: &str, cycles: u32) -> String {
    match cycles {
        0 => name.to_owned(),
        1 => format!("{name}_q"),
        _ => format!("{name}_q{cycles}"),
    }
}

/// The bits of a signal that nothing reads.
fn unread(name: &str, signal: &Signal) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 0;
    let width = signal.width as usize;
    while at < width {
        let end = (at..width).find(|bit| signal.read[*bit]).unwrap_or(width);
        match end - at {
            0 => {}
            all if all == width => found.push(name.to_owned()),
            1 => found.push(format!("{name}[{at}]")),
            _ => found.push(format!("{name}[{}:{at}]", end - 1)),
        }
        at = end + 1;
    }
    found
}

/// Whether statements access the memory of a port.
fn touches(stmts: &ir::Block, port: ir::Port) -> bool {
    use ir::{Port as Way, StmtKind};
    stmts.iter().any(|stmt| match (&stmt.kind, port) {
        (
            StmtKind::ReadRegister { register, .. } | StmtKind::WriteRegister { register, .. },
            Way::Read(known) | Way::Write(known),
        ) => *register == known,
        (StmtKind::Count { counter, .. }, Way::Count(known)) => *counter == known,
        (StmtKind::If { then, otherwise, .. }, _) => {
            touches(then, port) || touches(otherwise, port)
        }
        (StmtKind::Switch { cases, default, .. }, _) => {
            touches(default, port) || cases.iter().any(|(_, body)| touches(body, port))
        }
        (StmtKind::Scope(body), _) => touches(body, port),
        _ => false,
    })
}
