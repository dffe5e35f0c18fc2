//! What goes wrong in a pipeline that works on several packets at once: a packet must not reach a
//! memory before the packet ahead of it is done there.
//!
//! Packets follow one another by at least [`PACKET_CYCLES`] (specs/nanotransport.md#4,N12),
//! so a register that a packet reads in one cycle and writes in the next is safe: the next packet
//! reads it after that. Where more has to lie between the first and the last access of a packet,
//! the next one reads what is about to be replaced. Two pipelines work at once, so only one of them
//! may write a register. Externs change their memory by themselves, one request per packet and
//! port; those that answer nothing queue what they are given.

use std::collections::BTreeMap;
use std::fmt;

use super::{
    ActionId, Block, ExternId, Pipeline, PipelineId, Program, Ready, RegisterId, StmtKind, called,
    stages::{self, stages},
};

/// Least cycles from a packet to the next: the shortest, of 65 bytes, is two words of 64.
pub const PACKET_CYCLES: u32 = 2;

/// A register, or an instance of an extern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// A register.
    Register(RegisterId),
    /// An instance, or a function, by the first of its externs.
    Extern(ExternId),
}

/// How a unit is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Port {
    /// A register is read.
    Read,
    /// A register is written.
    Write,
    /// A method or a function is called.
    Call(ExternId),
}

/// A statement that accesses a unit.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// In which pipeline.
    pub pipeline: PipelineId,
    /// How.
    pub port: Port,
    /// When.
    pub at: Ready,
}

/// What outlives packets, and when it is accessed.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Which.
    pub unit: Unit,
    /// Its name in the source.
    pub name: String,
    /// In the order of pipelines and of the source.
    pub accesses: Vec<Access>,
}

/// Why a program does not do in a pipeline what it does packet by packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hazard {
    /// Between the first and the last access of a packet the next one can come.
    Window {
        /// The register.
        name: String,
        /// Where.
        pipeline: String,
        /// Cycles from the first access to the last.
        cycles: u32,
    },
    /// Several pipelines write a register.
    Writers {
        /// The register.
        name: String,
        /// Which.
        pipelines: Vec<String>,
    },
    /// A packet may call a method or a function more than once.
    Requests {
        /// What is called.
        called: String,
        /// Where.
        pipeline: String,
        /// The most calls on any way through it.
        calls: u32,
    },
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window { name, pipeline, cycles } => write!(
                f,
                "{name}: the last access of a packet in {pipeline} is {cycles} cycles after its first, \
                 and the next packet comes after {PACKET_CYCLES}"
            ),
            Self::Writers { name, pipelines } => {
                write!(f, "{name}: {} write it, and work at once", pipelines.join(" and "))
            }
            Self::Requests { called, pipeline, calls } => {
                write!(f, "{called}: called up to {calls} times for a packet in {pipeline}")
            }
        }
    }
}

/// All registers and externs that a program accesses, and when.
#[must_use]
pub fn memories(program: &Program) -> Vec<Memory> {
    let mut all: BTreeMap<Unit, Vec<Access>> = BTreeMap::new();
    for (pipeline, schedule) in (0..).map(PipelineId).zip(stages(program)) {
        for step in schedule.steps {
            let (unit, port) = match &step.stmt.kind {
                StmtKind::ReadRegister { register, .. } => (Unit::Register(*register), Port::Read),
                StmtKind::WriteRegister { register, .. } => {
                    (Unit::Register(*register), Port::Write)
                }
                StmtKind::Call { which, .. } => {
                    (Unit::Extern(program.instance(*which)), Port::Call(*which))
                }
                _ => continue,
            };
            all.entry(unit).or_default().push(Access { pipeline, port, at: step.at });
        }
    }
    let name = |unit| match unit {
        Unit::Register(register) => program.registers[register.index()].name.clone(),
        Unit::Extern(which) => {
            let known = &program.externs[which.index()];
            if known.instance.is_empty() { known.kind.clone() } else { known.instance.clone() }
        }
    };
    let all = all.into_iter();
    all.map(|(unit, accesses)| Memory { unit, name: name(unit), accesses }).collect()
}

/// What of a program is not as it seems where packets follow one another closely.
#[must_use]
pub fn hazards(program: &Program) -> Vec<Hazard> {
    let mut found = Vec::new();
    for memory in memories(program) {
        match memory.unit {
            Unit::Register(_) => of_register(program, &memory, &mut found),
            Unit::Extern(_) => of_extern(program, &memory, &mut found),
        }
    }
    found
}

fn of_register(program: &Program, memory: &Memory, found: &mut Vec<Hazard>) {
    let name = |at: usize| program.pipelines[at].name.clone();
    let writes = |access: &&Access| access.port == Port::Write;
    let mut writers: Vec<usize> =
        memory.accesses.iter().filter(writes).map(|access| access.pipeline.index()).collect();
    writers.dedup();
    for &at in &writers {
        let cycles = window(program, at, memory.unit);
        if cycles >= PACKET_CYCLES {
            let (name, pipeline) = (memory.name.clone(), name(at));
            found.push(Hazard::Window { name, pipeline, cycles });
        }
    }
    if writers.len() > 1 {
        let pipelines = writers.into_iter().map(name).collect();
        found.push(Hazard::Writers { name: memory.name.clone(), pipelines });
    }
}

/// Least cycles from a packet's first access to a register to its last. What is read early and
/// written late for another reason is read later.
fn window(program: &Program, pipeline: usize, unit: Unit) -> u32 {
    let Unit::Register(register) = unit else { return 0 };
    let pipeline = &program.pipelines[pipeline];
    let accesses = |delayed: &[(RegisterId, Ready)]| -> Option<(Ready, Ready)> {
        let steps = stages::schedule(program, pipeline, delayed).steps;
        let touches = |kind: &StmtKind| match kind {
            StmtKind::ReadRegister { register: r, .. }
            | StmtKind::WriteRegister { register: r, .. } => *r == register,
            _ => false,
        };
        let here = steps.iter().filter(|step| touches(&step.stmt.kind)).map(|step| step.at);
        Some((here.clone().min_by_key(|at| at.cycle)?, here.max_by_key(|at| at.cycle)?))
    };
    let cycles = |(first, last): (Ready, Ready)| last.cycle - first.cycle;
    let Some(early) = accesses(&[]) else { return 0 };
    let before = |n: u32| n.saturating_sub(1);
    let late = early.1;
    let late = Ready { stage: before(late.stage), cycle: before(late.cycle), depth: late.depth };
    let late = accesses(&[(register, late)]);
    late.map_or(0, cycles).min(cycles(early))
}

fn of_extern(program: &Program, memory: &Memory, found: &mut Vec<Hazard>) {
    let mut seen = Vec::new();
    for access in &memory.accesses {
        let Port::Call(which) = access.port else { continue };
        let queues = program.externs[which.index()].results.is_empty();
        if queues || seen.contains(&(access.pipeline, which)) {
            continue;
        }
        seen.push((access.pipeline, which));
        let pipeline = &program.pipelines[access.pipeline.index()];
        let mut ways = Ways { program, pipeline, which, actions: BTreeMap::new() };
        let calls = ways.block(&pipeline.control).most();
        if calls > 1 {
            let called = called(&program.externs[which.index()]);
            found.push(Hazard::Requests { called, pipeline: pipeline.name.clone(), calls });
        }
    }
}

/// The most calls on the ways through some statements, by how they end.
#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    /// At the end. None: no way leads there.
    through: Option<u32>,
    /// By a return.
    returned: Option<u32>,
    /// By an exit.
    exited: Option<u32>,
}

impl Calls {
    fn most(self) -> u32 {
        self.through.max(self.returned).max(self.exited).unwrap_or(0)
    }

    /// Either way.
    fn or(self, other: Self) -> Self {
        Self {
            through: self.through.max(other.through),
            returned: self.returned.max(other.returned),
            exited: self.exited.max(other.exited),
        }
    }

    /// One after the other.
    fn then(self, next: Self) -> Self {
        let Some(before) = self.through else { return self };
        let after = |calls: Option<u32>| calls.map(|calls| calls.saturating_add(before));
        Self {
            through: after(next.through),
            returned: self.returned.max(after(next.returned)),
            exited: self.exited.max(after(next.exited)),
        }
    }

    /// What a return leaves.
    fn within(self) -> Self {
        Self { through: self.through.max(self.returned), returned: None, exited: self.exited }
    }
}

/// The ways through a pipeline, and how often one extern is called on them.
struct Ways<'a> {
    program: &'a Program,
    pipeline: &'a Pipeline,
    which: ExternId,
    /// Those through actions, once they are known.
    actions: BTreeMap<ActionId, Calls>,
}

impl Ways<'_> {
    fn block(&mut self, block: &Block) -> Calls {
        let through = Calls { through: Some(0), ..Calls::default() };
        block.iter().fold(through, |calls, stmt| calls.then(self.stmt(&stmt.kind)))
    }

    fn stmt(&mut self, stmt: &StmtKind) -> Calls {
        let once = |count| Calls { through: Some(count), ..Calls::default() };
        match stmt {
            StmtKind::Call { which, .. } => once(u32::from(*which == self.which)),
            StmtKind::If { then, otherwise, .. } => self.block(then).or(self.block(otherwise)),
            StmtKind::Switch { cases, default, .. } => {
                let default = self.block(default);
                cases.iter().fold(default, |calls, (_, body)| calls.or(self.block(body)))
            }
            StmtKind::Scope(body) => self.block(body).within(),
            StmtKind::Run { action, .. } => self.action(*action),
            StmtKind::Apply { table, .. } => {
                let actions = &self.program.tables[table.index()].actions;
                let none = Calls::default();
                actions.iter().fold(none, |calls, run| calls.or(self.action(run.action)))
            }
            StmtKind::Return => Calls { returned: Some(0), ..Calls::default() },
            StmtKind::Exit => Calls { exited: Some(0), ..Calls::default() },
            _ => once(0),
        }
    }

    fn action(&mut self, action: ActionId) -> Calls {
        if let Some(known) = self.actions.get(&action) {
            return *known;
        }
        let pipeline = self.pipeline;
        let calls = self.block(&pipeline.actions[action.index()].body).within();
        self.actions.insert(action, calls);
        calls
    }
}
