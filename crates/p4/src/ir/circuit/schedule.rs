//! When everything in a circuit happens.

use std::collections::BTreeMap;

use super::super::{BinaryOp, PACKET_CYCLES, Program};
use super::graph::{Graph, Node, NodeId, Value};
use super::{Access, AccessId, Circuit, Port, Unit};

/// When something is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Stage, from 0.
    pub stage: u32,
    /// Cycle, from 0.
    pub cycle: u32,
    /// Picoseconds into the cycle.
    pub ps: u32,
    /// Operators before it in its stage.
    pub depth: u32,
}

impl Ready {
    /// When both are.
    fn and(self, other: Self) -> Self {
        let later = |one: u32, other: u32, a: u32, b: u32| match one.cmp(&other) {
            std::cmp::Ordering::Less => b,
            std::cmp::Ordering::Equal => a.max(b),
            std::cmp::Ordering::Greater => a,
        };
        Self {
            stage: self.stage.max(other.stage),
            cycle: self.cycle.max(other.cycle),
            ps: later(self.cycle, other.cycle, self.ps, other.ps),
            depth: later(self.stage, other.stage, self.depth, other.depth),
        }
    }

    /// The answer of what takes so long; of what takes no time, there at once.
    fn answered(self, latency: u32) -> Self {
        if latency == 0 {
            return self;
        }
        let cycle = self.cycle.saturating_add(latency);
        Self { stage: self.stage + 1, cycle, ps: 0, depth: 0 }
    }
}

/// How long logic takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The clock's period, picoseconds.
    pub period: u32,
    /// `&`, `|`, `^`, `~`.
    pub logic: Delay,
    /// The choice between two values.
    pub mux: Delay,
    /// `==`, `!=`.
    pub equal: Delay,
    /// `+`, `-`, `<` and the like.
    pub add: Delay,
    /// `|+|`, `|-|`.
    pub saturate: Delay,
    /// Shifts by what a packet says.
    pub shift: Delay,
    /// `*`. What is longer than a cycle is spread over several.
    pub multiply: Delay,
}

/// A delay in picoseconds, by the width of the operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// Of one bit.
    pub fixed: u32,
    /// For each doubling of the width.
    pub doubling: u32,
}

impl Delay {
    fn of(self, width: u16) -> u32 {
        self.fixed + self.doubling * width.max(1).next_power_of_two().trailing_zeros()
    }
}

impl Target {
    fn delay(&self, graph: &Graph, value: &Value) -> u32 {
        let constant = |id: NodeId| graph.constant(id).is_some();
        match value.node {
            Node::Unary(super::super::UnaryOp::Not, _) => self.logic.of(1),
            Node::Unary(super::super::UnaryOp::Neg, _) => self.add.of(value.width),
            Node::Mux(..) => self.mux.of(value.width),
            // By a constant: wires.
            Node::Binary(BinaryOp::Shl | BinaryOp::Shr(_), _, b) if constant(b) => 0,
            Node::Binary(op, a, _) => {
                let width = graph.width(a);
                match op {
                    BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => self.logic.of(1),
                    BinaryOp::Eq | BinaryOp::Ne => self.equal.of(width),
                    BinaryOp::AddSat(_) | BinaryOp::SubSat(_) => self.saturate.of(width),
                    BinaryOp::Shl | BinaryOp::Shr(_) => self.shift.of(width),
                    BinaryOp::Mul => self.multiply.of(width),
                    _ => self.add.of(width),
                }
            }
            Node::PacketAt(_) => self.shift.of(value.width),
            _ => 0,
        }
    }
}

/// Whether a node is an operator rather than wires.
fn is_operator(node: Node) -> bool {
    matches!(node, Node::Unary(..) | Node::Binary(..) | Node::Mux(..) | Node::PacketAt(_))
}

/// When everything in a circuit happens.
#[derive(Clone, Debug)]
pub struct Schedule {
    nodes: Vec<Ready>,
    /// When the operator begins, which may be cycles before the value is there.
    begins: Vec<u32>,
    accesses: Vec<Ready>,
    stages: u32,
    cycles: u32,
    depth: u32,
}

/// Most nodes of a circuit whose accesses are moved together.
const MOST_MOVED: usize = 1 << 17;

/// Most turns of moving accesses because others have moved.
const MOST_TURNS: u32 = 64;

impl Schedule {
    /// Everything as early as it can be, but for accesses that later ones of the same memory want
    /// close to them: those wait where nothing comes out later for it.
    #[must_use]
    pub fn new(program: &Program, circuit: &Circuit, target: Option<&Target>) -> Self {
        let early = Early { program, circuit, target };
        early.closest()
    }

    /// When a value is there.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Ready {
        self.nodes[id.index()]
    }

    /// The cycle in which an operator gets its operands; what it makes may be there cycles later.
    #[must_use]
    pub fn begins(&self, id: NodeId) -> u32 {
        self.begins[id.index()]
    }

    /// When an access happens.
    #[must_use]
    pub fn access(&self, id: AccessId) -> Ready {
        self.accesses[id.index()]
    }

    /// When each access happens.
    #[must_use]
    pub fn accesses(&self) -> &[Ready] {
        &self.accesses
    }

    /// How many stages.
    #[must_use]
    pub fn stages(&self) -> u32 {
        self.stages
    }

    /// Cycles from the packet to the last result.
    #[must_use]
    pub fn cycles(&self) -> u32 {
        self.cycles
    }

    /// Operators one after the other in the worst stage.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }
}

/// The accesses to a memory: of each port the first and the last, by when they come.
pub(in crate::ir) struct Window<'a> {
    circuit: &'a Circuit,
    schedule: &'a Schedule,
    ends: Vec<[AccessId; 2]>,
}

impl<'a> Window<'a> {
    pub(in crate::ir) fn of(
        accesses: &[AccessId],
        circuit: &'a Circuit,
        schedule: &'a Schedule,
    ) -> Self {
        let mut window = Self { circuit, schedule, ends: Vec::new() };
        for &id in accesses {
            let port = window.port(id);
            match window.ends.iter().position(|[first, _]| window.port(*first) == port) {
                None => window.ends.push([id; 2]),
                Some(at) => {
                    let [first, last] = window.ends[at];
                    let cycle = window.cycle(id);
                    let first = if cycle < window.cycle(first) { id } else { first };
                    let last = if cycle >= window.cycle(last) { id } else { last };
                    window.ends[at] = [first, last];
                }
            }
        }
        window
    }

    fn port(&self, id: AccessId) -> Port {
        self.circuit.access(id).port
    }

    fn cycle(&self, id: AccessId) -> u32 {
        self.schedule.access(id).cycle
    }

    /// Least cycles between packets that meet here in order, and what says so: an access of a
    /// packet, which must not come before one of the packet ahead of it. None where packets do not
    /// meet.
    pub(in crate::ir) fn needs(&self) -> Option<(u32, [AccessId; 2])> {
        let mut most: Option<(u32, [AccessId; 2])> = None;
        for &[_, late] in &self.ends {
            for &[early, _] in &self.ends {
                let Some(gap) = self.port(late).before(self.port(early)) else { continue };
                let cycles = (self.cycle(late) + gap).saturating_sub(self.cycle(early));
                if most.is_none_or(|(known, _)| cycles > known) {
                    most = Some((cycles, [early, late]));
                }
            }
        }
        most
    }

    /// Where an access must not come before, for packets so many cycles apart.
    fn floor(&self, port: Port, cycles: u32) -> Option<Ready> {
        let ahead = self.ends.iter().filter_map(|[_, late]| {
            let by = cycles.saturating_sub(self.port(*late).before(port)?);
            let at = self.schedule.access(*late);
            Some(Ready {
                stage: at.stage.saturating_sub(1),
                cycle: at.cycle.saturating_sub(by),
                ..Ready::default()
            })
        });
        ahead.max_by_key(|at| at.cycle)
    }
}

/// Everything as early as it can be.
struct Early<'a> {
    program: &'a Program,
    circuit: &'a Circuit,
    target: Option<&'a Target>,
}

type Units = BTreeMap<Unit, Vec<AccessId>>;

/// The least cycles between packets at each memory that are wanted.
type Bounds = BTreeMap<Unit, u32>;

impl Early<'_> {
    /// Early accesses wait for late ones of their memory: of all memories as far as packets can
    /// come closer for it, then of each register as far as the others let it.
    fn closest(&self) -> Schedule {
        let mut best = self.schedule(&vec![Ready::default(); self.circuit.accesses.len()]);
        if self.circuit.graph.nodes().len() > MOST_MOVED {
            return best;
        }
        let units = self.circuit.units(self.program);
        let needs = |accesses: &Vec<AccessId>| {
            let needs = Window::of(accesses, self.circuit, &best).needs();
            needs.map_or(PACKET_CYCLES, |(cycles, _)| cycles.max(PACKET_CYCLES))
        };
        let mut wanted: Bounds = units.iter().map(|(unit, all)| (*unit, needs(all))).collect();
        let all: Vec<Unit> = units.keys().copied().collect();
        let registers = all.iter().filter(|unit| matches!(unit, Unit::Register(_)));
        let each: Vec<Vec<Unit>> = registers.map(|unit| vec![*unit]).collect();
        for these in std::iter::once(all).chain(each) {
            self.closer(&mut best, &units, &mut wanted, &these);
        }
        best
    }

    /// Packets as close as they can be at these memories, where nothing else gets worse.
    fn closer(&self, best: &mut Schedule, units: &Units, wanted: &mut Bounds, these: &[Unit]) {
        let mut low = PACKET_CYCLES;
        let mut high = these.iter().map(|unit| wanted[unit]).max().unwrap_or(low);
        while low < high {
            let cycles = low.midpoint(high);
            let mut bounds = wanted.clone();
            for unit in these {
                bounds.entry(*unit).and_modify(|old| *old = (*old).min(cycles));
            }
            match self.moved(best, units, &bounds) {
                None => low = cycles + 1,
                Some(schedule) => {
                    high = cycles;
                    *wanted = bounds;
                    *best = schedule;
                }
            }
        }
    }

    /// With accesses moved until packets can be so many cycles apart at each memory, if nothing
    /// comes out later for it.
    fn moved(&self, best: &Schedule, units: &Units, bounds: &Bounds) -> Option<Schedule> {
        let mut floors = vec![Ready::default(); self.circuit.accesses.len()];
        for _ in 0..MOST_TURNS {
            let schedule = self.schedule(&floors);
            if schedule.cycles > best.cycles || schedule.stages > best.stages {
                return None;
            }
            let mut changed = false;
            for (unit, accesses) in units {
                let window = Window::of(accesses, self.circuit, &schedule);
                for &id in accesses {
                    let floor = window.floor(self.circuit.access(id).port, bounds[unit]);
                    let now = schedule.access(id).cycle;
                    if let Some(floor) = floor.filter(|floor| floor.cycle > now) {
                        floors[id.index()] = floor;
                        changed = true;
                    }
                }
            }
            if !changed {
                return Some(schedule);
            }
        }
        None
    }

    /// No access before its floor.
    fn schedule(&self, floors: &[Ready]) -> Schedule {
        let count = self.circuit.graph.nodes().len();
        let mut schedule = Schedule {
            nodes: Vec::with_capacity(count),
            begins: Vec::with_capacity(count),
            accesses: Vec::new(),
            stages: 0,
            cycles: 0,
            depth: 0,
        };
        let mut before: Vec<Vec<(AccessId, u32)>> = vec![Vec::new(); floors.len()];
        for order in &self.circuit.order {
            before[order.after.index()].push((order.before, order.gap));
        }
        for value in self.circuit.graph.nodes() {
            if let Node::Result(access, _) = value.node {
                // Its arguments are before the answer.
                self.accesses(&mut schedule, access.index() + 1, floors, &before);
                let latency = self.circuit.access(access).port.latency(self.program);
                let at = schedule.access(access).answered(latency);
                schedule.nodes.push(at);
                schedule.begins.push(at.cycle);
            } else {
                let (begins, at) = self.computed(&schedule, value);
                schedule.nodes.push(at);
                schedule.begins.push(begins);
            }
        }
        self.accesses(&mut schedule, floors.len(), floors, &before);
        self.sum_up(&mut schedule);
        schedule
    }

    /// When an operator begins and when its value is there.
    fn computed(&self, schedule: &Schedule, value: &Value) -> (u32, Ready) {
        let operands = value.node.operands().map(|operand| schedule.node(operand));
        let mut at = operands.fold(Ready::default(), Ready::and);
        at.depth += u32::from(is_operator(value.node));
        let Some(target) = self.target else { return (at.cycle, at) };
        let delay = target.delay(&self.circuit.graph, value);
        if at.ps + delay > target.period && at.ps > 0 {
            at = Ready { cycle: at.cycle + 1, ps: 0, ..at };
        }
        let begins = at.cycle;
        if delay > target.period {
            at.cycle += delay.div_ceil(target.period.max(1));
        } else {
            at.ps += delay;
        }
        (begins, at)
    }

    /// The accesses below a number.
    fn accesses(
        &self,
        schedule: &mut Schedule,
        end: usize,
        floors: &[Ready],
        before: &[Vec<(AccessId, u32)>],
    ) {
        while schedule.accesses.len() < end {
            let at = schedule.accesses.len();
            let access = &self.circuit.accesses[at];
            let given = access.args.iter().chain([&access.on]).map(|arg| schedule.node(*arg));
            let earlier = before[at].iter().map(|(id, gap)| schedule.access(*id).answered(*gap));
            let ready = given.chain(earlier).fold(floors[at], Ready::and);
            schedule.accesses.push(ready);
        }
    }

    fn sum_up(&self, schedule: &mut Schedule) {
        let outputs = self.circuit.outputs.nodes().map(|node| schedule.node(node));
        let accesses = self.circuit.accesses.iter().zip(&schedule.accesses);
        let ends = accesses.map(|(access, at)| self.end(access, *at));
        let ends: Vec<Ready> = outputs.chain(ends).collect();
        let most = |of: fn(&Ready) -> u32| ends.iter().map(of).max().unwrap_or(0);
        schedule.stages = most(|at| at.stage) + 1;
        schedule.cycles = most(|at| at.cycle).saturating_add(1);
        let nodes = schedule.nodes.iter().chain(&schedule.accesses);
        schedule.depth = nodes.map(|at| at.depth).max().unwrap_or(0);
    }

    /// When an access is over: its answer is there, or what answers nothing is at work for the last
    /// time.
    fn end(&self, access: &Access, at: Ready) -> Ready {
        let latency = access.port.latency(self.program);
        if access.results.is_empty() {
            return Ready { cycle: at.cycle.saturating_add(latency.max(1) - 1), ..at };
        }
        at.answered(latency)
    }
}

impl Circuit {
    /// The accesses to each memory whose accesses have an order.
    #[must_use]
    pub fn units(&self, program: &Program) -> BTreeMap<Unit, Vec<AccessId>> {
        let mut units: Units = BTreeMap::new();
        for (at, access) in (0..).zip(&self.accesses) {
            if let Some(unit) = access.port.unit(program) {
                units.entry(unit).or_default().push(AccessId(at));
            }
        }
        units
    }
}
