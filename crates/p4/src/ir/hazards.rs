//! What goes wrong in a pipeline that works on several packets at once: a packet must not reach a
//! memory before the packet ahead of it is done there.
//!
//! Packets follow one another by at least [`PACKET_CYCLES`] (specs/nanotransport.md#4,N12), so a
//! register that a packet reads in one cycle and writes up to two cycles later is safe: the next
//! packet reads it when it is written or after that, and what is written in a cycle is forwarded to
//! who reads in it. Where more has to lie between the first and the last access of a packet,
//! packets must come further apart: by the [`Spacing`] of the memory. That goes for registers and
//! for externs with all their methods. Two pipelines work at once, so only one of them may write a
//! register. Methods that answer serve one request per packet.

use std::collections::BTreeMap;
use std::fmt;

use super::circuit::{Access as Touch, AccessId, Circuit, Port, Ready, Schedule, Target};
use super::circuit::{Unit, Window, circuits};
use super::{ExternId, Fault, PipelineId, Place, Program};

/// Least cycles from a packet to the next: the shortest, of 65 bytes, is two words of 64.
pub const PACKET_CYCLES: u32 = 2;

/// An access of a unit.
#[derive(Clone, Debug)]
pub struct Access {
    /// In which pipeline.
    pub pipeline: PipelineId,
    /// How.
    pub port: Port,
    /// When.
    pub at: Ready,
    /// The statements that make it, which exclude one another.
    pub places: Vec<Place>,
}

/// What outlives packets, and when it is accessed.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Which.
    pub unit: Unit,
    /// Its name in the source.
    pub name: String,
    /// In the order of pipelines and, where that matters, of the source.
    pub accesses: Vec<Access>,
}

/// How far apart packets of a pipeline have to be so that one does what it would do alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spacing {
    /// The pipeline.
    pub pipeline: PipelineId,
    /// Cycles from a packet to the next.
    pub cycles: u32,
    /// What sets it: an access of a packet and one of the next, which must not come before it.
    /// None: no memory is in the way.
    pub between: Option<[End; 2]>,
}

/// An end of a loop through a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The access, as messages call it.
    pub name: String,
    /// Where it stands in the source, if it does.
    pub place: Option<Place>,
    /// In which cycle of the pipeline.
    pub cycle: u32,
}

/// Why a program does not do in a pipeline what it does packet by packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hazard {
    /// Between the first and the last access of a packet the next one can come.
    Window {
        /// The register, or the instance.
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
        /// How often.
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

/// A program's circuits with their schedules: what is asked about stages and hazards.
#[derive(Clone, Debug)]
pub struct Hardware<'a> {
    program: &'a Program,
    circuits: Vec<Circuit>,
    schedules: Vec<Schedule>,
}

impl<'a> Hardware<'a> {
    /// Of a program that [`check`](super::check()) accepts, where logic takes no time.
    ///
    /// # Errors
    /// There are more ways through a pipeline than a circuit can have.
    pub fn new(program: &'a Program) -> Result<Self, Fault> {
        Self::timed(program, None)
    }

    /// The same on a target, where it does.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn timed(program: &'a Program, target: Option<&Target>) -> Result<Self, Fault> {
        let circuits = circuits(program)?;
        let schedule = |circuit| Schedule::new(program, circuit, target);
        let schedules = circuits.iter().map(schedule).collect();
        Ok(Self { program, circuits, schedules })
    }

    /// The circuit of every pipeline, in the order of [`Program::pipelines`].
    #[must_use]
    pub fn circuits(&self) -> &[Circuit] {
        &self.circuits
    }

    /// When everything in them happens.
    #[must_use]
    pub fn schedules(&self) -> &[Schedule] {
        &self.schedules
    }

    fn pipelines(&self) -> impl Iterator<Item = (PipelineId, &Circuit, &Schedule)> {
        let all = self.circuits.iter().zip(&self.schedules);
        (0..).map(PipelineId).zip(all).map(|(id, (circuit, schedule))| (id, circuit, schedule))
    }

    /// All registers and externs that the program accesses, and when.
    #[must_use]
    pub fn memories(&self) -> Vec<Memory> {
        let mut all: BTreeMap<Unit, Vec<Access>> = BTreeMap::new();
        for (pipeline, circuit, schedule) in self.pipelines() {
            for (unit, accesses) in circuit.units(self.program) {
                let here = all.entry(unit).or_default();
                here.extend(accesses.into_iter().map(|id| {
                    let Touch { port, places, .. } = circuit.access(id);
                    let (places, at) = (places.clone(), schedule.access(id));
                    Access { pipeline, port: *port, at, places }
                }));
            }
        }
        let memory = |(unit, accesses)| Memory { unit, name: self.name(unit), accesses };
        all.into_iter().map(memory).collect()
    }

    fn name(&self, unit: Unit) -> String {
        match unit {
            Unit::Register(register) => self.program.registers[register.index()].name.clone(),
            Unit::Extern(which) => {
                let known = &self.program.externs[which.index()];
                if known.instance.is_empty() { &known.kind } else { &known.instance }.clone()
            }
        }
    }

    /// The least spacing of each pipeline: see [`Spacing::of`].
    #[must_use]
    pub fn spacings(&self, fed: &[&str]) -> Vec<Spacing> {
        let all = self.pipelines().map(|(pipeline, circuit, schedule)| {
            Spacing::of(self.program, pipeline, circuit, schedule, fed)
        });
        all.collect()
    }

    /// What of the program is not as it seems where packets follow one another by
    /// [`PACKET_CYCLES`].
    #[must_use]
    pub fn hazards(&self) -> Vec<Hazard> {
        let mut found = Vec::new();
        let memories = self.memories();
        for memory in &memories {
            self.windows(memory, &mut found);
            self.writers(memory, &mut found);
            self.requests(memory, &mut found);
        }
        found
    }

    fn windows(&self, memory: &Memory, found: &mut Vec<Hazard>) {
        for (pipeline, circuit, schedule) in self.pipelines() {
            let units = circuit.units(self.program);
            let Some(accesses) = units.get(&memory.unit) else { continue };
            let loops = Loops { program: self.program, circuit, schedule };
            let Some((cycles, [first, last])) = loops.at(accesses) else { continue };
            // That a method is asked twice is said for itself.
            let asks = |id: &AccessId| !circuit.access(*id).results.is_empty();
            let twice = first.name == last.name && accesses.iter().any(asks);
            if cycles > PACKET_CYCLES && !(twice && matches!(memory.unit, Unit::Extern(_))) {
                let pipeline = self.program.pipelines[pipeline.index()].name.clone();
                let cycles = last.cycle - first.cycle;
                found.push(Hazard::Window { name: memory.name.clone(), pipeline, cycles });
            }
        }
    }

    fn writers(&self, memory: &Memory, found: &mut Vec<Hazard>) {
        let writes = memory.accesses.iter().filter(|a| matches!(a.port, Port::Write(_)));
        let mut writers: Vec<PipelineId> = writes.map(|access| access.pipeline).collect();
        writers.dedup();
        if writers.len() > 1 {
            let name = |at: &PipelineId| self.program.pipelines[at.index()].name.clone();
            let pipelines = writers.iter().map(name).collect();
            found.push(Hazard::Writers { name: memory.name.clone(), pipelines });
        }
    }

    /// Methods that answer and that a packet calls more than once. Those that answer nothing queue
    /// what they are given.
    fn requests(&self, memory: &Memory, found: &mut Vec<Hazard>) {
        let mut calls: BTreeMap<(PipelineId, ExternId), u32> = BTreeMap::new();
        for access in &memory.accesses {
            if let Port::Call(which) = access.port
                && !self.program.externs[which.index()].results.is_empty()
            {
                *calls.entry((access.pipeline, which)).or_default() += 1;
            }
        }
        for ((pipeline, which), calls) in calls.into_iter().filter(|(_, calls)| *calls > 1) {
            let called = super::called(&self.program.externs[which.index()]);
            let pipeline = self.program.pipelines[pipeline.index()].name.clone();
            found.push(Hazard::Requests { called, pipeline, calls });
        }
    }
}

impl Spacing {
    /// The least spacing of a pipeline as a schedule has it. `fed` names externs (functions, kinds
    /// of instances) whose answers change with what the pipeline's results do when they are there:
    /// a packet must not ask them before the results of the packet ahead of it are.
    #[must_use]
    pub fn of(
        program: &Program,
        pipeline: PipelineId,
        circuit: &Circuit,
        schedule: &Schedule,
        fed: &[&str],
    ) -> Self {
        let loops = Loops { program, circuit, schedule };
        let units = circuit.units(program);
        let memories = units.values().filter_map(|accesses| loops.at(accesses));
        let mut most = (1, None);
        for (cycles, between) in memories.chain(loops.results(fed)) {
            if cycles > most.0 {
                most = (cycles, Some(between));
            }
        }
        Self { pipeline, cycles: most.0, between: most.1 }
    }
}

/// The loops through the memories of a pipeline: how many cycles they keep packets apart, and the
/// early and the late access.
struct Loops<'a> {
    program: &'a Program,
    circuit: &'a Circuit,
    schedule: &'a Schedule,
}

impl Loops<'_> {
    fn end(&self, id: AccessId) -> End {
        let access = self.circuit.access(id);
        End {
            name: access.port.name(self.program),
            place: access.places.first().copied(),
            cycle: self.cycle(id),
        }
    }

    fn cycle(&self, id: AccessId) -> u32 {
        self.schedule.access(id).cycle
    }

    fn port(&self, id: AccessId) -> Port {
        self.circuit.access(id).port
    }

    /// That of the accesses to one memory.
    fn at(&self, accesses: &[AccessId]) -> Option<(u32, [End; 2])> {
        // A unit that reads, changes and answers takes no two requests in a row.
        let slow = |id: &&AccessId| self.port(**id).latency(self.program) >= PACKET_CYCLES;
        let slow = accesses.iter().find(slow).map(|id| (PACKET_CYCLES, [*id; 2]));
        let needs = Window::of(accesses, self.circuit, self.schedule).needs();
        let needs = needs.filter(|(cycles, _)| slow.is_none_or(|(known, _)| *cycles > known));
        let (cycles, ends) = needs.or(slow)?;
        Some((cycles, ends.map(|id| self.end(id))))
    }

    /// That of results which change what externs answer.
    fn results(&self, fed: &[&str]) -> Option<(u32, [End; 2])> {
        let last = self.schedule.cycles() - 1;
        let asks = self.circuit.access_ids().filter(|id| {
            let Port::Call(which) = self.port(*id) else { return false };
            fed.contains(&self.program.externs[which.index()].kind.as_str())
        });
        let first = asks.min_by_key(|id| self.cycle(*id))?;
        let results = End { name: "the results".into(), place: None, cycle: last };
        // What they change in a cycle is changed for what is asked in it.
        Some((last - self.cycle(first), [self.end(first), results]))
    }
}
