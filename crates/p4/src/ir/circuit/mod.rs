//! A pipeline as one circuit: what it computes, under which condition it touches what outlives the
//! packet, and in which cycle.
//!
//! Parser, control and deparser become a graph. Its [nodes](Node) are values of the packet that is
//! in the pipeline, each once, whatever way through the program computes it; its [accesses](Access)
//! are what it does to memories and externs, each under a condition. Calls over one port that
//! exclude one another are one access with chosen arguments, in the cycle of the latest.
//!
//! A [`Schedule`] gives every node and access its cycle. Without a [`Target`] logic takes no time:
//! a stage is what lies between two accesses to memory, and what an extern, a register or a table
//! answers is there a stage later (and its latency in cycles later). That is how
//! specs/nanotransport.md#1 counts stages: NDP's ingress asks reassembly, then the credit register,
//! then says what it has found, which is three. With a target, a clock period holds as many
//! operators as fit, and what takes longer is spread over several cycles.
//!
//! A packet's values move from cycle to cycle in registers of their own, so a later assignment to
//! the same slot waits for nothing. Accesses to one memory keep the order of the source, and each
//! of its ports serves one of them at a time. What that means for packets that follow one another,
//! [`spacings`](super::Hardware::spacings) says.

mod build;
mod conditions;
mod graph;
mod merge;
mod run;
mod schedule;

pub use graph::{AccessId, CURSOR_WIDTH, Graph, LENGTH_WIDTH, Node, NodeId, Value};
pub use run::{Outcome, Pipelined};
pub(super) use schedule::Window;
pub use schedule::{Delay, Ready, Schedule, Target};

use super::{CounterId, ExternId, Fault, PipelineId, Place, Program, RegisterId, TableId};

/// Cycles from a table's keys to the action, and from a register's index to its value.
pub const MEMORY_LATENCY: u32 = 1;

/// How something that outlives packets is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// A register is read; the argument is the index.
    Read(RegisterId),
    /// A register is written; the arguments are index and value.
    Write(RegisterId),
    /// A method or a function is called.
    Call(ExternId),
    /// A packet is counted; the arguments are the index and its bytes.
    Count(CounterId),
    /// A table is looked up; the arguments are the keys, the answers whether there is an entry, the
    /// action's number, and the arguments of each of its actions.
    LookUp(TableId),
}

/// A register, or an instance of an extern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// A register.
    Register(RegisterId),
    /// An instance, or a function, by the first of its externs.
    Extern(ExternId),
}

impl Port {
    /// The memory whose accesses keep their order. Counting has no order, and packets do not change
    /// tables.
    #[must_use]
    pub fn unit(self, program: &Program) -> Option<Unit> {
        match self {
            Self::Read(register) | Self::Write(register) => Some(Unit::Register(register)),
            Self::Call(which) => Some(Unit::Extern(program.instance(which))),
            Self::Count(_) | Self::LookUp(_) => None,
        }
    }

    /// Whether it does something beside answering.
    fn has_effects(self) -> bool {
        !matches!(self, Self::Read(_) | Self::LookUp(_))
    }

    /// Whether it serves accesses that exclude one another. A table of constants is logic, and may
    /// be there twice.
    fn is_shared(self) -> bool {
        !matches!(self, Self::LookUp(_))
    }

    /// Cycles from an access to its answer.
    #[must_use]
    pub fn latency(self, program: &Program) -> u32 {
        match self {
            Self::Call(which) => program.externs[which.index()].latency,
            Self::LookUp(table) if program.tables[table.index()].keys.is_empty() => 0,
            Self::Read(_) | Self::LookUp(_) => MEMORY_LATENCY,
            Self::Write(_) | Self::Count(_) => 0,
        }
    }

    /// Least cycles from an access of a packet to another one of the same memory that it makes
    /// later. In one cycle a register gives a packet what it had, and an instance one answer.
    fn until(self, next: Self, program: &Program) -> u32 {
        match (self, next) {
            (Self::Read(_), Self::Write(_)) => 0,
            (Self::Read(_) | Self::Write(_), _) => MEMORY_LATENCY,
            (Self::Call(which), _) if self == next => program.externs[which.index()].latency.max(1),
            (Self::Call(_), _) => 1,
            _ => 0,
        }
    }

    /// Least cycles from an access of a packet to one of the next packet, where one of them changes
    /// what the other sees. What a packet does in a cycle is forwarded to packets behind it that
    /// come to the same memory in this cycle: a register is read as it is being written, and of
    /// two methods that of the packet ahead is first. One port serves one packet at a time.
    pub(super) fn before(self, next: Self) -> Option<u32> {
        match (self, next) {
            (Self::Read(_), Self::Read(_)) => None,
            _ => Some(u32::from(self == next)),
        }
    }

    /// What messages call it: `granted.execute`, `window.read`.
    #[must_use]
    pub fn name(self, program: &Program) -> String {
        let register = |id: RegisterId| &program.registers[id.index()].name;
        match self {
            Self::Read(id) => format!("{}.read", register(id)),
            Self::Write(id) => format!("{}.write", register(id)),
            Self::Call(which) => super::called(&program.externs[which.index()]),
            Self::Count(id) => format!("{}.count", program.counters[id.index()].name),
            Self::LookUp(id) => format!("{}.apply", program.tables[id.index()].name),
        }
    }
}

/// What a packet does to something that outlives it.
#[derive(Clone, Debug)]
pub struct Access {
    /// How.
    pub port: Port,
    /// One bit: whether this packet does it.
    pub on: NodeId,
    /// What it gives.
    pub args: Vec<NodeId>,
    /// Widths of what it is answered.
    pub results: Vec<u16>,
    /// The statements that do it, which exclude one another.
    pub places: Vec<Place>,
}

/// Two accesses that keep their order.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// The first.
    pub before: AccessId,
    /// The other.
    pub after: AccessId,
    /// Least cycles between them.
    pub gap: u32,
}

/// What comes out of a pipeline.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// One bit: whether the parser accepts the packet. Otherwise only [`Self::error`] holds.
    pub accepted: NodeId,
    /// Why not ([`ErrorId`](super::ErrorId)).
    pub error: NodeId,
    /// Bytes that the parser has taken from the front.
    pub bytes: NodeId,
    /// For each of [`Pipeline::meta`](super::Pipeline::meta), if the pipeline sets it.
    pub meta: Vec<Option<NodeId>>,
    /// For each of [`Pipeline::deparser`](super::Pipeline::deparser): whether it is valid, and its
    /// fields.
    pub headers: Vec<(NodeId, Vec<NodeId>)>,
}

impl Outputs {
    /// With other nodes.
    fn map(&self, of: &mut impl FnMut(NodeId) -> NodeId) -> Self {
        Self {
            accepted: of(self.accepted),
            error: of(self.error),
            bytes: of(self.bytes),
            meta: self.meta.iter().map(|meta| meta.map(&mut *of)).collect(),
            headers: self
                .headers
                .iter()
                .map(|(valid, fields)| {
                    (of(*valid), fields.iter().map(|field| of(*field)).collect())
                })
                .collect(),
        }
    }

    /// All nodes that come out.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let headers = self.headers.iter();
        let headers = headers.flat_map(|(valid, fields)| fields.iter().chain([valid]));
        let meta = self.meta.iter().flatten();
        [self.accepted, self.error, self.bytes].into_iter().chain(meta.chain(headers).copied())
    }
}

/// The circuit of a pipeline.
#[derive(Clone, Debug)]
pub struct Circuit {
    graph: Graph,
    accesses: Vec<Access>,
    order: Vec<Order>,
    outputs: Outputs,
}

impl Circuit {
    /// Of a pipeline of a program that [`check`](super::check()) accepts.
    ///
    /// # Errors
    /// There are more ways through the pipeline than a circuit can have.
    pub fn new(program: &Program, pipeline: PipelineId) -> Result<Self, Fault> {
        let mut build = build::Build::new(program, &program.pipelines[pipeline.index()]);
        let outputs = build.run()?;
        Ok(merge::finish(program, build, &outputs))
    }

    /// Its values.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What it does to what outlives the packet, in an order that keeps that of each memory.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// An access by its number.
    #[must_use]
    pub fn access(&self, id: AccessId) -> &Access {
        &self.accesses[id.index()]
    }

    /// The numbers of all of them.
    pub fn access_ids(&self) -> impl Iterator<Item = AccessId> + use<> {
        (0..self.accesses.len() as u32).map(AccessId)
    }

    /// Which accesses keep their order.
    #[must_use]
    pub fn order(&self) -> &[Order] {
        &self.order
    }

    /// What comes out.
    #[must_use]
    pub fn outputs(&self) -> &Outputs {
        &self.outputs
    }
}

/// Where among the answers of a look-up the arguments of an action begin, by its number in the
/// table.
#[must_use]
pub fn first_argument(program: &Program, table: TableId, action: u16) -> usize {
    let table = &program.tables[table.index()];
    let actions = &program.pipelines[table.pipeline.index()].actions;
    let before = table.actions.iter().take(action.into());
    2 + before.map(|run| actions[run.action.index()].params.len()).sum::<usize>()
}

/// The circuits of all pipelines, in their order.
///
/// # Errors
/// As [`Circuit::new`].
pub fn circuits(program: &Program) -> Result<Vec<Circuit>, Fault> {
    let pipelines = (0..program.pipelines.len() as u32).map(PipelineId);
    pipelines.map(|pipeline| Circuit::new(program, pipeline)).collect()
}

#[cfg(test)]
mod tests;
