//! A switch's port in hardware beside its program in the interpreter and a model of its queues
//! (docs/nic.md, S1 to S6): every output in every cycle.

use std::collections::VecDeque;
use std::sync::Arc;

use endpoint::{Draw, Purpose};
use p4::interp::Machine;
use p4::ir::{self, PipelineId, RegisterId};
use p4::program::{NoExterns, Program as _};
use p4::state::State;
use thiserror::Error;

use super::locate::{Located, setters};
use crate::record::{Layout, Record};
use crate::sim::{SimError, Simulation};
use crate::switch::{APART, Sizes, SwitchPort};

const DRAWS: Purpose = Purpose::new("rtl switch");

/// How often packets come and leave, on average one in so many cycles; another of these after some
/// hundred cycles.
const BUSY: [[u64; 2]; 4] = [[2, 4], [1, 60], [20, 2], [1, 1]];

/// Cycles that the simulation is given at once.
const BATCH: usize = 256;

/// What has been compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Cycles.
    pub cycles: u64,
    /// Packets that came.
    pub packets: u64,
    /// Those that were trimmed, went back, were dropped, and found no place.
    pub trims: u32,
    /// See above.
    pub bounces: u32,
    /// See above.
    pub drops: u32,
    /// See above.
    pub losses: u32,
}

/// The port and its model part, or the simulation ends.
#[derive(Debug, Error)]
pub enum PortError {
    /// An output differs.
    #[error(
        "cycle {cycle}, after {packets} packets: {} is {found:#x}, in the model {expected:#x}",
        located.field
    )]
    Mismatch {
        /// In which cycle.
        cycle: u64,
        /// Packets that came before.
        packets: u64,
        /// The output, and where it is made.
        located: Located,
        /// What it is.
        found: u128,
        /// What it should be.
        expected: u128,
    },
    /// There is no output.
    #[error(transparent)]
    Sim(#[from] SimError),
}

/// Give `run`, the simulation of `port`, packets that `seed` draws until it has had so many, and
/// compare. `progress` is told how many came.
///
/// # Errors
/// See [`PortError`].
pub fn run(
    run: &mut Simulation,
    (port, sizes): (&SwitchPort, &Sizes),
    state: &State,
    (seed, packets): (u64, u64),
    progress: &mut dyn FnMut(u64),
) -> Result<Compared, PortError> {
    let (ins, outs) = (run.inputs().clone(), run.outputs().clone());
    let mut model = Model::new(state, port, sizes, seed);
    while model.packets < packets {
        let first = run.cycle();
        let cycles = (first..).take(BATCH);
        let all: Vec<(u64, Record, Record)> = cycles
            .map(|cycle| {
                let (input, output) = model.cycle(cycle, (&ins, &outs));
                (model.packets, input, output)
            })
            .collect();
        let inputs: Vec<Record> = all.iter().map(|(_, input, _)| input.clone()).collect();
        let found = run.run(&inputs)?;
        for ((cycle, (packets, _, expected)), found) in (first..).zip(&all).zip(&found) {
            same(state.program(), &outs, (cycle, *packets), found, expected)?;
        }
        progress(model.packets.min(packets));
    }
    let [trims, bounces, drops, losses] = model.counts;
    let (cycles, packets) = (run.cycle(), model.packets);
    Ok(Compared { cycles, packets, trims, bounces, drops, losses })
}

fn same(
    program: &ir::Program,
    outs: &Layout,
    (cycle, packets): (u64, u64),
    found: &Record,
    expected: &Record,
) -> Result<(), PortError> {
    for (at, port) in outs.ports().iter().enumerate() {
        let (found, expected) = (outs.get(found, at), outs.get(expected, at));
        if found != expected {
            let located = locate(program, port.name());
            return Err(PortError::Mismatch { cycle, packets, located, found, expected });
        }
    }
    Ok(())
}

/// Where an output is made: lines of the program, or the block.
fn locate(program: &ir::Program, output: &str) -> Located {
    let decides = match output {
        "trimmed_o" | "decided_length_o" | "trims_o" => "trim_to",
        "bounced_o" | "bounces_o" => "bounce",
        "dropped_o" | "drops_o" => "drop",
        "queue_o" => "queue",
        _ => return Located { field: output.to_owned(), place: "block trim_queue".to_owned() },
    };
    let (pipeline, field) = (&program.pipelines[0], format!("decision.{decides}"));
    let lines = pipeline.meta(&field).map(|meta| {
        let slot = pipeline.meta[meta].slot;
        setters(program, PipelineId(0), slot).join(" or ")
    });
    Located { field: output.to_owned(), place: lines.unwrap_or_default() }
}

#[derive(Clone, Copy)]
struct Packet {
    queue: u8,
    length: u16,
    tag: u16,
}

/// A packet on its way to its decision.
struct Arrived {
    cycle: u64,
    frame: Vec<u8>,
    length: u16,
    bounced: bool,
    random: u64,
    tag: u16,
}

/// What the program says of a packet.
struct Said {
    trim_to: u16,
    queue: u8,
    bounce: bool,
    drop: bool,
}

struct Model {
    draw: Draw,
    drawn: u64,
    program: Arc<ir::Program>,
    sizes: Sizes,
    deciding: u64,
    shared: Vec<(RegisterId, u32, u32)>,
    arrival: Machine,
    departure: Machine,
    /// Values of shared registers with the cycles in which they are written.
    written: Vec<VecDeque<(u64, u128)>>,
    arrived: VecDeque<Arrived>,
    queues: Vec<VecDeque<Packet>>,
    /// Whose each place of a round is, and the place of the last choice.
    round: Vec<u8>,
    turn: usize,
    service: Option<Packet>,
    bytes: u32,
    /// What the departure pipeline is told next, and cycles since it was told something.
    told: VecDeque<Packet>,
    silent: u32,
    /// Cycles since one was taken, and since one came.
    served: u32,
    since: u32,
    busy: [u64; 2],
    packets: u64,
    /// Trims, bounces, drops, losses.
    counts: [u32; 4],
}

const COUNTS: [&str; 4] = ["trims_o", "bounces_o", "drops_o", "losses_o"];

impl Model {
    fn new(first: &State, port: &SwitchPort, sizes: &Sizes, seed: u64) -> Self {
        let program = Arc::clone(first.program());
        let machine = || {
            let mut machine = Machine::new(Arc::clone(&program));
            *state(&mut machine) = first.clone();
            machine
        };
        let places = |(queue, weight): (u8, &u8)| vec![queue; usize::from(*weight)];
        let written = |(id, ..): &(RegisterId, _, _)| VecDeque::from([(0, first.register(*id, 0))]);
        Self {
            draw: Draw::new(seed, DRAWS, 0),
            drawn: 0,
            deciding: port.deciding.into(),
            written: port.shared.iter().map(written).collect(),
            shared: port.shared.clone(),
            arrival: machine(),
            departure: machine(),
            arrived: VecDeque::new(),
            queues: vec![VecDeque::new(); sizes.weights.len()],
            round: (0..).zip(&sizes.weights).flat_map(places).collect(),
            sizes: sizes.clone(),
            turn: 0,
            service: None,
            bytes: 0,
            told: VecDeque::new(),
            silent: 1,
            served: 0,
            since: 0,
            busy: [4, 20],
            packets: 0,
            counts: [0; 4],
            program,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.drawn += 1;
        self.draw.below(DRAWS, self.drawn, bound)
    }

    fn bits(&mut self) -> u64 {
        self.drawn += 1;
        self.draw.bits(DRAWS, self.drawn)
    }

    /// Ethernet, IPv4 and the beginning of a transport header, NDP's as a rule; some of it
    /// anything.
    fn frame(&mut self) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..64).map(|_| self.below(256) as u8).collect();
        if self.below(20) != 0 {
            frame[12..14].copy_from_slice(&[8, 0]);
        }
        if self.below(10) != 0 {
            frame[23] = 199;
        }
        let flags = [[0, 1], [0, 1], [0, 0x81], [0, 2], [0, 0]][self.below(5) as usize];
        frame[34..36].copy_from_slice(&flags);
        frame
    }

    /// Metadata of a pipeline with these values, by name.
    fn meta(&self, at: usize, values: &[(&str, u128)]) -> Vec<u128> {
        let meta = self.program.pipelines[at].meta.iter();
        let value = |name: &str| values.iter().find(|(known, _)| *known == name);
        meta.map(|meta| value(&meta.name).map_or(0, |(_, value)| *value)).collect()
    }

    /// The departure pipeline hears of a packet (S5), and what it writes comes some cycles later
    /// (S6).
    fn tell(&mut self, cycle: u64) {
        self.silent += 1;
        if self.silent < 2 {
            return;
        }
        let Some(sent) = self.told.pop_front() else { return };
        self.silent = 0;
        let queue = ("departure.queue", u128::from(sent.queue));
        let mut meta = self.meta(1, &[queue, ("departure.length", sent.length.into())]);
        passes(&mut self.departure, 1, &[], &mut meta);
        for ((register, _, write), written) in self.shared.iter().zip(&mut self.written) {
            let value = state(&mut self.departure).register(*register, 0);
            written.push_back((cycle + u64::from(*write), value));
        }
    }

    /// What the program says of a packet, with the registers as they were when it read them.
    fn decide(&mut self, packet: &Arrived) -> Said {
        for ((register, read, _), written) in self.shared.iter().zip(&mut self.written) {
            let read = packet.cycle + u64::from(*read);
            while written.get(1).is_some_and(|(cycle, _)| *cycle < read) {
                written.pop_front();
            }
            let value = written.front().map_or(0, |(_, value)| *value);
            state(&mut self.arrival).set_register(*register, 0, value);
        }
        let mut meta = self.meta(
            0,
            &[
                ("arrival.length", packet.length.into()),
                ("arrival.bounced", packet.bounced.into()),
                ("arrival.random", packet.random.into()),
            ],
        );
        if !passes(&mut self.arrival, 0, &packet.frame, &mut meta) {
            return Said { trim_to: 0, queue: 0, bounce: false, drop: true };
        }
        let pipeline = &self.program.pipelines[0];
        let says = |name: &str| pipeline.meta(&format!("decision.{name}")).map_or(0, |at| meta[at]);
        let [bounce, drop] = ["bounce", "drop"].map(|name| says(name) != 0);
        Said { trim_to: says("trim_to") as u16, queue: says("queue") as u8, bounce, drop }
    }

    /// Whose turn it is, and the place in the round (S3).
    fn chosen(&self) -> Option<(usize, usize)> {
        let holds = |queue: &usize| !self.queues[*queue].is_empty();
        let holding: Vec<usize> = (0..self.queues.len()).filter(holds).collect();
        match holding.as_slice() {
            [] => None,
            [only] => Some((*only, self.turn)),
            _ => (1..=self.round.len())
                .map(|step| (self.turn + step) % self.round.len())
                .map(|place| (usize::from(self.round[place]), place))
                .find(|(queue, _)| holds(queue)),
        }
    }

    /// A packet is decided, and joins a queue or does not (S2).
    fn decision(&mut self, packet: &Arrived, out: &mut impl FnMut(&str, u128)) {
        let said = self.decide(packet);
        let Said { trim_to, queue, .. } = said;
        let length = if trim_to == 0 { packet.length } else { packet.length.min(trim_to) };
        out("decided_o", 1);
        out("decided_length_o", length.into());
        out("decided_tag_o", packet.tag.into());
        if trim_to != 0 {
            out("trimmed_o", 1);
            self.counts[0] += 1;
        }
        if said.drop {
            out("dropped_o", 1);
            self.counts[2] += 1;
        } else if said.bounce {
            out("bounced_o", 1);
            self.counts[1] += 1;
        } else {
            self.join(Packet { queue, length, tag: packet.tag }, out);
        }
    }

    fn join(&mut self, packet: Packet, out: &mut impl FnMut(&str, u128)) {
        let bytes = self.bytes + u32::from(packet.length);
        match self.queues.get_mut(usize::from(packet.queue)) {
            Some(fifo) if bytes <= self.sizes.memory && fifo.len() < self.sizes.places as usize => {
                fifo.push_back(packet);
                self.bytes = bytes;
            }
            _ => {
                out("lost_o", 1);
                self.counts[3] += 1;
                self.told.push_back(packet);
            }
        }
    }

    fn arrive(&mut self, cycle: u64, ins: &Layout, input: &mut Record) {
        self.since += 1;
        if self.since < APART || self.below(self.busy[0]) != 0 {
            return;
        }
        (self.since, self.packets) = (0, self.packets + 1);
        let frame = self.frame();
        let length = if self.below(2) == 0 { 64 } else { 64 + self.below(9000) as u16 };
        let (bounced, random) = (self.below(8) == 0, self.bits());
        let tag = self.below(1 << 16) as u16;
        ins.set_bytes(input, ins.port("rx_packet_i"), &frame);
        for (port, value) in [
            ("rx_valid_i", 1),
            ("rx_length_i", u128::from(length)),
            ("rx_bounced_i", bounced.into()),
            ("rx_random_i", random.into()),
            ("rx_tag_i", tag.into()),
        ] {
            ins.set_named(input, port, value);
        }
        self.arrived.push_back(Arrived { cycle, frame, length, bounced, random, tag });
    }

    /// All inputs and outputs of a cycle.
    fn cycle(&mut self, cycle: u64, (ins, outs): (&Layout, &Layout)) -> (Record, Record) {
        let (mut input, mut output) = (ins.zero(), outs.zero());
        let mut out = |name: &str, value| outs.set_named(&mut output, name, value);
        if self.below(500) == 0 {
            self.busy = BUSY[self.below(BUSY.len() as u64) as usize];
        }
        out("bytes_o", self.bytes.into());
        COUNTS.iter().zip(self.counts).for_each(|(name, count)| out(name, count.into()));
        self.tell(cycle);
        let chosen = self.chosen();
        if let Some(front) = chosen.and_then(|(queue, _)| self.queues[queue].front()) {
            out("valid_o", 1);
            out("queue_o", front.queue.into());
            out("length_o", front.length.into());
            out("tag_o", front.tag.into());
        }
        self.served += 1;
        let ends = self.served >= APART && self.below(self.busy[1]) == 0;
        if let Some(done) = self.service.take_if(|_| ends) {
            ins.set_named(&mut input, "done_i", 1);
            self.bytes -= u32::from(done.length);
            self.told.push_back(done);
        }
        if let Some((queue, place)) = chosen.filter(|_| self.service.is_none()) {
            ins.set_named(&mut input, "take_i", 1);
            (self.turn, self.served) = (place, 0);
            self.service = self.queues[queue].pop_front();
        }
        let decided = |packet: &mut Arrived| packet.cycle + self.deciding == cycle;
        if let Some(packet) = self.arrived.pop_front_if(decided) {
            self.decision(&packet, &mut out);
        }
        self.arrive(cycle, ins, &mut input);
        (input, output)
    }
}

/// Run a pipeline; whether its parser accepts the packet.
fn passes(machine: &mut Machine, at: u32, frame: &[u8], meta: &mut [u128]) -> bool {
    machine.run(PipelineId(at), frame, meta, &mut Vec::new(), &mut NoExterns).is_ok()
}

fn state(machine: &mut Machine) -> &mut State {
    p4::program::Program::<NoExterns>::state(machine)
}
