//! A switch's port: the two pipelines of a program for `SwitchPort`, the registers that they share,
//! and the queues between them (docs/nic.md, S1 to S6).

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use p4::ir::{self, PipelineId, Program, RegisterId};
use p4::state::State;
use thiserror::Error;

use crate::blocks::OF_PORTS;
use crate::emit::{Module, Request, Unsupported, emit};
use crate::ports::Meaning;
use crate::record::Port;
use crate::sim::Design;

/// Sizes of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// For each queue, two to eight, packets that are served in a round in which others wait.
    pub weights: Vec<u8>,
    /// Packets that each queue holds, a power of two.
    pub places: u32,
    /// Bytes that the port holds.
    pub memory: u32,
}

/// Why there is no port.
#[derive(Debug, Error)]
pub enum SwitchError {
    /// A pipeline.
    #[error("{0}")]
    Unsupported(#[from] Unsupported),
    /// It is a program for something else, or calls what no port has.
    #[error("a switch's port in hardware has no `{0}`")]
    Unknown(String),
    /// The queues cannot be of these sizes.
    #[error(
        "a port in hardware has 2 to 8 queues, each with a weight of 1 or more, and places for \
             a power of two of packets"
    )]
    Sizes,
}

/// A port as SystemVerilog.
#[derive(Clone, Debug)]
pub struct SwitchPort {
    /// Files beside the blocks, the top module `switch_port` last.
    pub files: Vec<(String, String)>,
    /// Its inputs beside clock and reset.
    pub inputs: Vec<Port>,
    /// Its outputs.
    pub outputs: Vec<Port>,
    /// Cycles from a packet to its decision.
    pub deciding: u32,
    /// For each register that both pipelines use: the cycle in which an arriving packet reads it,
    /// and that in which a departure writes it, each behind the packet.
    pub shared: Vec<(RegisterId, u32, u32)>,
}

/// Packets come to a port, and leave it, so many cycles apart at least (S1).
pub const APART: u32 = 4;

/// The ports of the top module: see [`crate::ports::Meaning`].
pub(crate) const MEANINGS: &[Meaning] = &[
    ("clk_i", "", "clock: the cycles of the rules"),
    ("rst_ni", "", "reset, active low"),
    ("rx_valid_i", "", "a packet comes, with its last bit (S1); 4 cycles behind another, or later"),
    ("rx_packet_i", "the headers that arrival extracts", "its first bytes, the first at the top"),
    ("rx_length_i", "`arrival.length`", "its bytes on the wire"),
    ("rx_bounced_i", "`arrival.bounced`", "it is on its way back to its sender"),
    ("rx_random_i", "`arrival.random`", "drawn for it"),
    ("rx_tag_i", "", "where its bytes are: comes out again with it"),
    ("take_i", "", "the packet that `valid_o` offers is in service now (S3)"),
    ("done_i", "", "the last bit of the packet in service has left (S4)"),
    ("decided_o", "", "the program has said what becomes of a packet (S1)"),
    ("trimmed_o", "`decision.trim_to`", "only that many bytes of it are left"),
    ("bounced_o", "`decision.bounce`", "its header goes back to its sender"),
    ("dropped_o", "`decision.drop`", "it is lost, or its parser has refused it"),
    ("lost_o", "", "it found no place in its queue (S2)"),
    ("decided_length_o", "`decision.trim_to`", "bytes that are left of it"),
    ("decided_tag_o", "", "its tag"),
    ("valid_o", "", "a packet waits to be taken"),
    ("queue_o", "`decision.queue`, `departure.queue`", "its queue"),
    ("length_o", "`departure.length`", "its bytes"),
    ("tag_o", "", "its tag"),
    ("bytes_o", "", "bytes that the port holds, those in service included"),
    ("trims_o", "", "packets that were trimmed, modulo 2^32"),
    ("bounces_o", "", "those that went back"),
    ("drops_o", "", "those that the program has dropped"),
    ("losses_o", "", "those that found no place"),
];

impl SwitchPort {
    /// Its files and those of the blocks: names and texts, the top module last.
    #[must_use]
    pub fn texts(&self) -> Vec<(String, String)> {
        let blocks = OF_PORTS.iter().map(|(name, text)| (format!("{name}.sv"), (*text).to_owned()));
        blocks.chain(self.files.iter().cloned()).collect()
    }

    /// The design without its files.
    #[must_use]
    pub fn ports(&self) -> Design {
        Design {
            top: "switch_port".into(),
            sources: Vec::new(),
            parameters: Vec::new(),
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
        }
    }

    /// The design, with its files in `folder`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn design(&self, folder: &Path) -> io::Result<Design> {
        self.ports().written(&self.texts(), folder)
    }
}

/// The port of this program.
///
/// # Errors
/// See [`SwitchError`].
pub fn build(program: &Program, state: &State, sizes: &Sizes) -> Result<SwitchPort, SwitchError> {
    let unknown = |what: &str| SwitchError::Unknown(what.to_owned());
    if program.architecture != "SwitchPort" || program.pipelines.len() != 2 {
        return Err(unknown(&program.architecture));
    }
    let fits = (2..=8).contains(&sizes.weights.len()) && !sizes.weights.contains(&0);
    if !fits || !sizes.places.is_power_of_two() || sizes.places < 2 {
        return Err(SwitchError::Sizes);
    }
    let arrival = emit(program, PipelineId(0), state, None, "arrival")?;
    let departure = emit(program, PipelineId(1), state, None, "departure")?;
    let mut top = Top { program, state, text: String::new() };
    let shared = top.registers(&arrival, &departure)?;
    top.queues(sizes);
    let meta = |at: usize, module: &Module, name: &str| {
        let place = program.pipelines[at].meta(name)?;
        module.ports().meta_out.get(place)?.clone()
    };
    for (name, bits) in [("trim_to", 16), ("queue", 3), ("bounce", 1), ("drop", 1)] {
        let port = meta(0, &arrival, &format!("decision.{name}"));
        let value = port.map_or_else(|| "'0".to_owned(), |port| format!("in_{port}"));
        top.line(&format!("assign {name} = in_accepted_o ? {value} : {bits}'d0;"));
    }
    let given = |module: &Module, at: usize, known: &[(&str, &str)]| {
        let pipeline = &program.pipelines[at];
        let ports = pipeline.meta.iter().zip(&module.ports().meta_in);
        let found = ports.filter_map(|(meta, port)| {
            let value = known.iter().find(|(name, _)| *name == meta.name)?.1;
            Some((port.clone()?, value.to_owned()))
        });
        found.collect::<Vec<_>>()
    };
    let mut into = given(
        &arrival,
        0,
        &[
            ("arrival.length", "rx_length_i"),
            ("arrival.bounced", "rx_bounced_i"),
            ("arrival.random", "rx_random_i"),
        ],
    );
    let frame =
        [("valid_i", "rx_valid_i"), ("length_i", "rx_length_i"), ("packet_i", "rx_packet_i")];
    into.extend(frame.map(|(port, value)| (port.to_owned(), value.to_owned())));
    top.module("in", &arrival, &into);
    let known = [("departure.queue", "sent_queue"), ("departure.length", "sent_length")];
    let mut into = given(&departure, 1, &known);
    into.push(("valid_i".into(), "sent_valid".into()));
    top.module("out", &departure, &into);
    top.delays(arrival.latency());
    let window = (8 * arrival.window()).max(1);
    let ports = |list: &[(&str, u32)]| -> Vec<Port> {
        list.iter().map(|(name, bits)| Port::new(name, *bits)).collect()
    };
    let inputs = ports(&[
        ("rx_valid_i", 1),
        ("rx_packet_i", window),
        ("rx_length_i", 16),
        ("rx_bounced_i", 1),
        ("rx_random_i", 64),
        ("rx_tag_i", 16),
        ("take_i", 1),
        ("done_i", 1),
    ]);
    let outputs = ports(&[
        ("decided_o", 1),
        ("trimmed_o", 1),
        ("bounced_o", 1),
        ("dropped_o", 1),
        ("lost_o", 1),
        ("decided_length_o", 16),
        ("decided_tag_o", 16),
        ("valid_o", 1),
        ("queue_o", 3),
        ("length_o", 16),
        ("tag_o", 16),
        ("bytes_o", 32),
        ("trims_o", 32),
        ("bounces_o", 32),
        ("drops_o", 32),
        ("losses_o", 32),
    ]);
    let text = top.finish(&inputs, &outputs, &[("in", &arrival), ("out", &departure)]);
    let files = vec![
        ("arrival.sv".into(), arrival.text().into()),
        ("departure.sv".into(), departure.text().into()),
        ("switch_port.sv".into(), text),
    ];
    Ok(SwitchPort { files, inputs, outputs, deciding: arrival.latency(), shared })
}

/// The top module in the making.
struct Top<'a> {
    program: &'a Program,
    state: &'a State,
    text: String,
}

/// What is decided, counted and passed on; the rest is instances.
const DECIDE: &str = "
  logic        decided, trims, drops, bounces;
  logic [15:0] length, trim_to, left;
  logic [15:0] tag;
  logic [2:0]  queue;
  logic        bounce, drop;
  assign trims            = decided && trim_to != '0;
  assign left             = trim_to != '0 && trim_to < length ? trim_to : length;
  assign drops            = decided && (drop || !in_accepted_o);
  assign bounces          = decided && bounce && !drops;
  assign decided_o        = decided;
  assign trimmed_o        = trims;
  assign bounced_o        = bounces;
  assign dropped_o        = drops;
  assign decided_length_o = decided ? left : '0;
  assign decided_tag_o    = decided ? tag : '0;
  // What became of packets, modulo 2^32.
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      trims_o   <= '0;
      bounces_o <= '0;
      drops_o   <= '0;
      losses_o  <= '0;
    end else begin
      trims_o   <= trims_o + 32'(trims);
      bounces_o <= bounces_o + 32'(bounces);
      drops_o   <= drops_o + 32'(drops);
      losses_o  <= losses_o + 32'(lost_o);
    end
  end
";

impl Top<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "  {text}");
    }

    /// The registers that both pipelines use: read and written in a cycle, what is read is there
    /// in the next.
    fn registers(
        &mut self,
        arrival: &Module,
        departure: &Module,
    ) -> Result<Vec<(RegisterId, u32, u32)>, SwitchError> {
        let mut shared = Vec::new();
        let requests = |module: &Module, prefix: &'static str| {
            let each = module.requests().iter().cloned();
            each.map(move |request| (prefix, request)).collect::<Vec<_>>()
        };
        let all = [requests(arrival, "in"), requests(departure, "out")].concat();
        for (_, request) in &all {
            if !matches!(request.port, ir::Port::Read(_) | ir::Port::Write(_)) {
                return Err(SwitchError::Unknown(request.port.name(self.program)));
            }
        }
        for (id, register) in (0..).map(RegisterId).zip(&self.program.registers) {
            let of = |way: ir::Port| all.iter().filter(move |(_, request)| request.port == way);
            let reads: Vec<&(&str, Request)> = of(ir::Port::Read(id)).collect();
            let writes: Vec<&(&str, Request)> = of(ir::Port::Write(id)).collect();
            if reads.is_empty() && writes.is_empty() {
                continue;
            }
            let write = match writes.as_slice() {
                [(prefix @ "out", write)] if register.size == 1 => (prefix, write),
                _ => return Err(SwitchError::Unknown(format!("{} written so", register.name))),
            };
            let name = format!("shared{}_q", id.index());
            let bits = register.width;
            let first = self.state.register(id, 0);
            let (prefix, write) = write;
            let (valid, value) = (&write.valid, write.args.last().cloned().unwrap_or_default());
            self.line(&format!("// {}", register.name));
            self.line(&format!("logic [{}:0] {name};", bits - 1));
            let mut clocked = format!("if ({prefix}_{valid}) {name} <= {prefix}_{value};\n");
            let mut reset = format!("{name} <= {bits}'d{first};\n");
            for (prefix, read) in &reads {
                let answer = read.results.first().cloned().unwrap_or_default();
                self.line(&format!("logic [{}:0] {prefix}_{answer};", bits - 1));
                let _ = writeln!(clocked, "      {prefix}_{answer} <= {name};");
                let _ = writeln!(reset, "      {prefix}_{answer} <= '0;");
                if *prefix == "in" {
                    shared.push((id, read.cycle, write.cycle));
                }
            }
            let block = format!(
                "always_ff @(posedge clk_i or negedge rst_ni) begin\n    if (!rst_ni) begin\n      \
                 {reset}    end else begin\n      {clocked}    end\n  end"
            );
            self.line(&block);
        }
        Ok(shared)
    }

    fn queues(&mut self, sizes: &Sizes) {
        let weights: String = sizes.weights.iter().rev().map(|w| format!("{w:02x}")).collect();
        let (count, bits) = (sizes.weights.len(), 8 * sizes.weights.len());
        let (places, memory) = (sizes.places, sizes.memory);
        self.text.push_str(DECIDE);
        self.line("logic sent_valid;\n  logic [2:0] sent_queue;\n  logic [15:0] sent_length;");
        self.line(&format!(
            "trim_queue #(\n    .Queues({count}), .Weights({bits}'h{weights}), .Depth({places}), \
             .Memory({memory})\n  ) u_queues (\n    .clk_i, .rst_ni,\n    .join_valid_i(decided \
             && !drops && !bounces), .join_queue_i(queue),\n    .join_length_i(left), \
             .join_tag_i(tag), .lost_o, .valid_o, .queue_o, .length_o, .tag_o,\n    .take_i, \
             .done_i, .sent_valid_o(sent_valid), .sent_queue_o(sent_queue),\n    \
             .sent_length_o(sent_length), .bytes_o\n  );"
        ));
    }

    /// What of a packet the decision needs, when it is there.
    fn delays(&mut self, cycles: u32) {
        for (from, to, bits) in [("rx_length_i", "length", 16), ("rx_tag_i", "tag", 16)] {
            self.line(&format!(
                "delay #(.Width({bits}), .Cycles({cycles})) u_{to} (\n    .clk_i, .rst_ni, \
                 .data_i({from}), .data_o({to})\n  );"
            ));
        }
        self.line("assign decided = in_valid_o;");
    }

    /// An emitted module with all its ports.
    fn module(&mut self, prefix: &str, module: &Module, into: &[(String, String)]) {
        let answers: Vec<&String> = module.requests().iter().flat_map(|r| &r.results).collect();
        let mut ports = vec![".clk_i".to_owned(), ".rst_ni".to_owned()];
        for port in module.inputs() {
            let name = port.name();
            let given =
                into.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            let answer = answers.iter().any(|known| *known == name);
            let value = given.unwrap_or_else(|| {
                if answer { format!("{prefix}_{name}") } else { "'0".to_owned() }
            });
            ports.push(format!(".{name}({value})"));
        }
        let outputs = module.outputs().iter().map(Port::name);
        ports.extend(outputs.map(|name| format!(".{name}({prefix}_{name})")));
        let name = module.name();
        self.line(&format!("{name} u_{name} (\n    {}\n  );", ports.join(",\n    ")));
    }

    fn finish(self, inputs: &[Port], outputs: &[Port], modules: &[(&str, &Module)]) -> String {
        let logic =
            |bits: u32| if bits == 1 { "logic".into() } else { format!("logic [{}:0]", bits - 1) };
        let (mut wires, mut unused) = (String::new(), Vec::new());
        for (prefix, module) in modules {
            for port in module.outputs() {
                let wire = format!("{prefix}_{}", port.name());
                let _ = writeln!(wires, "  {} {wire};", logic(port.bits()));
                let word = |c: char| c.is_alphanumeric() || c == '_';
                if self.text.split(|c| !word(c)).filter(|text| *text == wire).count() < 2 {
                    unused.push(wire);
                }
            }
        }
        let mut text = "// Made by trimline: a switch's port around its program. Do not change \
                        it.\nmodule switch_port (\n  input  logic clk_i,\n  input  logic rst_ni"
            .to_owned();
        let ways = inputs.iter().map(|port| ("input ", port));
        for (way, port) in ways.chain(outputs.iter().map(|port| ("output", port))) {
            let _ = write!(text, ",\n  {way} {} {}", logic(port.bits()), port.name());
        }
        let _ = write!(text, "\n);\n{wires}{}", self.text);
        if !unused.is_empty() {
            let _ =
                write!(text, "  logic unused;\n  assign unused = ^{{{}}};\n", unused.join(", "));
        }
        text + "endmodule\n"
    }
}
