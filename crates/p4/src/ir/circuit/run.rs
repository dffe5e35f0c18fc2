//! A circuit at work, cycle by cycle, with several packets in it.
//!
//! Every access happens in its cycle, on memories that all packets share, so packets that come too
//! close behind one another see what a real pipeline would show them. Of the packets that come to
//! a memory in one cycle the one ahead is first: what it changes is forwarded to those behind.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::{ErrorId, Fault, PipelineId, Program, mask};
use super::graph::{AccessId, NodeId, compute};
use super::{Circuit, Node, Port, Schedule, first_argument};
use crate::bits;
use crate::interp::deparse;
use crate::program::{Externs, Parsed};
use crate::state::State;

/// What becomes of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What the parser says.
    pub result: Result<Parsed, ErrorId>,
    /// Metadata: what the caller gave where the pipeline has set nothing, and all of it where the
    /// packet was refused.
    pub meta: Vec<u128>,
    /// The headers that the deparser emits.
    pub out: Vec<u8>,
}

/// A pipeline with packets in it.
#[derive(Clone, Debug)]
pub struct Pipelined {
    program: Arc<Program>,
    pipeline: PipelineId,
    circuit: Circuit,
    /// What happens in each cycle, operands first.
    cycles: Vec<Vec<Event>>,
    state: State,
    /// The oldest first.
    flights: VecDeque<Flight>,
    /// What the packet that left last has accessed.
    accessed: Vec<AccessId>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Node(NodeId),
    Access(AccessId),
}

/// A packet in the pipeline.
#[derive(Clone, Debug)]
struct Flight {
    packet: Vec<u8>,
    meta: Vec<u128>,
    /// Cycles since it came.
    age: usize,
    values: Vec<u128>,
    answers: Vec<Vec<u128>>,
}

impl Pipelined {
    /// A pipeline as the schedule has it, empty.
    ///
    /// # Errors
    /// As [`Circuit::new`].
    pub fn new(program: Arc<Program>, pipeline: PipelineId) -> Result<Self, Fault> {
        let circuit = Circuit::new(&program, pipeline)?;
        let schedule = Schedule::new(&program, &circuit, None);
        let cycles = events(&circuit, &schedule);
        let state = State::new(Arc::clone(&program));
        let (flights, accessed) = (VecDeque::new(), Vec::new());
        Ok(Self { program, pipeline, circuit, cycles, state, flights, accessed })
    }

    /// The circuit.
    #[must_use]
    pub const fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// What the packet that left last has accessed.
    #[must_use]
    pub fn accessed(&self) -> &[AccessId] {
        &self.accessed
    }

    /// Tables, registers and counters.
    pub fn state(&mut self) -> &mut State {
        &mut self.state
    }

    /// A packet comes in the next cycle, with one value for each of
    /// [`Pipeline::meta`](super::super::Pipeline::meta).
    pub fn enter(&mut self, packet: &[u8], meta: &[u128]) {
        self.flights.push_back(Flight {
            packet: packet.to_vec(),
            meta: meta.to_vec(),
            age: 0,
            values: vec![0; self.circuit.graph.nodes().len()],
            answers: vec![Vec::new(); self.circuit.accesses.len()],
        });
    }

    /// Whether no packet is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// One cycle; the packet that leaves in it.
    pub fn step<E: Externs + ?Sized>(&mut self, externs: &mut E) -> Option<Outcome> {
        for flight in &mut self.flights {
            for &event in self.cycles.get(flight.age).into_iter().flatten() {
                match event {
                    Event::Node(id) => flight.compute(&self.circuit, id),
                    Event::Access(id) => {
                        let access = self.circuit.access(id);
                        let on = flight.value(access.on) == 1;
                        let args: Vec<u128> =
                            access.args.iter().map(|a| flight.value(*a)).collect();
                        // What is not asked says anything.
                        let mut answers = vec![u128::MAX; access.results.len()];
                        if on {
                            answers.fill(0);
                            self.state.access(access.port, &args, &mut answers, externs);
                        }
                        flight.answers[id.index()] = answers;
                    }
                }
            }
            flight.age += 1;
        }
        let last = self.flights.front().is_some_and(|flight| flight.age >= self.cycles.len());
        let flight = if last { self.flights.pop_front()? } else { return None };
        let is_on = |id: &AccessId| flight.value(self.circuit.access(*id).on) == 1;
        self.accessed = self.circuit.access_ids().filter(is_on).collect();
        Some(self.outcome(flight))
    }

    fn outcome(&self, mut flight: Flight) -> Outcome {
        let outputs = &self.circuit.outputs;
        if flight.value(outputs.accepted) == 0 {
            let error = ErrorId(flight.value(outputs.error) as u32);
            return Outcome { result: Err(error), meta: flight.meta, out: Vec::new() };
        }
        for (at, node) in outputs.meta.iter().enumerate() {
            if let Some(node) = node {
                flight.meta[at] = flight.value(*node);
            }
        }
        let mut out = Vec::new();
        let pipeline = &self.program.pipelines[self.pipeline.index()];
        deparse(pipeline, &mut out, |header, field| {
            let (valid, fields) = &outputs.headers[header];
            flight.value(field.map_or(*valid, |field| fields[field]))
        });
        let bytes = flight.value(outputs.bytes) as usize;
        Outcome { result: Ok(Parsed { bytes }), meta: flight.meta, out }
    }
}

impl Flight {
    fn value(&self, id: NodeId) -> u128 {
        self.values[id.index()]
    }

    fn compute(&mut self, circuit: &Circuit, id: NodeId) {
        let value = circuit.graph.value(id);
        let result = match value.node {
            Node::Input(at) => self.meta[at as usize],
            Node::Length => self.packet.len() as u128,
            Node::Packet(at) => self.bits(at as usize, value.width),
            Node::PacketAt(at) => {
                let at = usize::try_from(self.value(at)).unwrap_or(usize::MAX);
                self.bits(at, value.width)
            }
            Node::Result(access, at) => {
                self.answers[access.index()].get(at as usize).copied().unwrap_or(0)
            }
            node => compute(node, value.width, &|id| (self.value(id), circuit.graph.width(id))),
        };
        self.values[id.index()] = result & mask(value.width);
    }

    /// Bits of the packet; beyond its end anything.
    fn bits(&self, at: usize, width: u16) -> u128 {
        let end = at.saturating_add(usize::from(width));
        if end > self.packet.len() * 8 {
            return u128::MAX;
        }
        bits::get(&self.packet, at, width)
    }
}

impl State {
    /// What a packet does to a memory.
    fn access<E: Externs + ?Sized>(
        &mut self,
        port: Port,
        args: &[u128],
        answers: &mut [u128],
        externs: &mut E,
    ) {
        match port {
            Port::Read(register) => answers[0] = self.register(register, args[0]),
            Port::Write(register) => self.set_register(register, args[0], args[1]),
            Port::Call(which) => externs.call(which, args, answers),
            Port::Count(counter) => {
                let bytes = usize::try_from(args[1]).unwrap_or(usize::MAX);
                self.count(counter, args[0], bytes);
            }
            Port::LookUp(id) => {
                let program = Arc::clone(self.program());
                let (choice, hit) = self.look_up(id, args);
                let first = first_argument(&program, id, choice.action);
                let choice = choice.clone();
                answers[0] = hit.into();
                answers[1] = choice.action.into();
                let own = &mut answers[first..first + choice.args.len()];
                own.copy_from_slice(&choice.args);
            }
        }
    }
}

/// What happens in each cycle, operands first.
fn events(circuit: &Circuit, schedule: &Schedule) -> Vec<Vec<Event>> {
    let mut cycles: Vec<Vec<Event>> = vec![Vec::new(); schedule.cycles() as usize];
    let mut done = 0;
    let mut reach = |cycles: &mut Vec<Vec<Event>>, end: u32| {
        for id in (done..end).map(AccessId) {
            cycles[schedule.access(id).cycle as usize].push(Event::Access(id));
        }
        done = done.max(end);
    };
    for at in 0..circuit.graph.nodes().len() as u32 {
        let id = NodeId(at);
        if let Node::Result(access, _) = circuit.graph.value(id).node {
            reach(&mut cycles, access.0 + 1);
        }
        cycles[schedule.node(id).cycle as usize].push(Event::Node(id));
    }
    reach(&mut cycles, circuit.accesses.len() as u32);
    cycles
}
