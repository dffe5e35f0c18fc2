//! The port of `ndp_switch.p4` beside the interpreter and a model of its queues (docs/nic.md, S1 to
//! S6), every output in every cycle.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use p4::interp::Machine;
use p4::ir::{self, PipelineId, RegisterId};
use p4::program::{NoExterns, Program};
use p4::state::State;
use trimline_rtl::record::{Layout, Record};
use trimline_rtl::switch::{self, Sizes, SwitchPort};

use crate::draw::Draw;
use crate::{folder, tools, traffic};

const CYCLES: u64 = 30_000;

fn run(machine: &mut Machine, at: u32, frame: &[u8], meta: &mut [u128]) -> bool {
    machine.run(PipelineId(at), frame, meta, &mut Vec::new(), &mut NoExterns).is_ok()
}

fn state(machine: &mut Machine) -> &mut State {
    <Machine as Program<NoExterns>>::state(machine)
}

#[derive(Clone, Copy)]
struct Packet {
    queue: u8,
    length: u16,
    tag: u16,
}

struct Arrived {
    cycle: u64,
    frame: Vec<u8>,
    length: u16,
    bounced: bool,
    random: u64,
    tag: u16,
}

struct Model {
    draw: Draw,
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
    round: Vec<u8>,
    turn: usize,
    service: Option<Packet>,
    bytes: u32,
    told: VecDeque<Packet>,
    silent: u32,
    served: u32,
    since: u32,
    busy: [u64; 2],
    counts: BTreeMap<&'static str, u32>,
}

impl Model {
    fn new(program: &Arc<ir::Program>, port: &SwitchPort, sizes: Sizes) -> Self {
        let machine = || Machine::new(Arc::clone(program));
        let places = |(queue, weight): (u8, &u8)| vec![queue; usize::from(*weight)];
        Self {
            draw: Draw(7),
            program: Arc::clone(program),
            deciding: port.deciding.into(),
            shared: port.shared.clone(),
            arrival: machine(),
            departure: machine(),
            written: vec![VecDeque::from([(0, 0)]); port.shared.len()],
            arrived: VecDeque::new(),
            queues: vec![VecDeque::new(); sizes.weights.len()],
            round: (0..).zip(&sizes.weights).flat_map(places).collect(),
            sizes,
            turn: 0,
            service: None,
            bytes: 0,
            told: VecDeque::new(),
            silent: 1,
            served: 0,
            since: 0,
            busy: [4, 20],
            counts: ["trims_o", "bounces_o", "drops_o", "losses_o"].map(|name| (name, 0)).into(),
        }
    }

    /// Ethernet, IPv4 and the beginning of NDP, most of them; some of it anything.
    fn frame(&mut self) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..36).map(|_| self.draw.bits() as u8).collect();
        if self.draw.below(20) != 0 {
            frame[12..14].copy_from_slice(&[8, 0]);
        }
        if self.draw.below(10) != 0 {
            frame[23] = 199;
        }
        let flags = [[0, 1], [0, 1], [0, 0x81], [0, 2], [0, 0]][self.draw.below(5) as usize];
        frame[34..36].copy_from_slice(&flags);
        frame
    }

    fn set_meta(&self, at: usize, values: &[(&str, u128)]) -> Vec<u128> {
        let pipeline = &self.program.pipelines[at];
        let mut meta = vec![0; pipeline.meta.len()];
        values.iter().for_each(|(name, value)| meta[pipeline.meta(name).unwrap()] = *value);
        meta
    }

    fn tell(&mut self, cycle: u64) {
        self.silent += 1;
        if self.silent < 2 {
            return;
        }
        let Some(sent) = self.told.pop_front() else { return };
        self.silent = 0;
        let queue = ("departure.queue", u128::from(sent.queue));
        let mut meta = self.set_meta(1, &[queue, ("departure.length", sent.length.into())]);
        assert!(run(&mut self.departure, 1, &[], &mut meta));
        for ((register, _, write), written) in self.shared.iter().zip(&mut self.written) {
            let value = state(&mut self.departure).register(*register, 0);
            written.push_back((cycle + u64::from(*write), value));
        }
    }

    /// What the program says of a packet, with the registers as they were when it read them.
    fn decide(&mut self, packet: &Arrived) -> BTreeMap<&'static str, u128> {
        for ((register, read, _), written) in self.shared.iter().zip(&mut self.written) {
            let read = packet.cycle + u64::from(*read);
            while written.get(1).is_some_and(|(cycle, _)| *cycle < read) {
                written.pop_front();
            }
            state(&mut self.arrival).set_register(*register, 0, written[0].1);
        }
        let mut meta = self.set_meta(
            0,
            &[
                ("arrival.length", packet.length.into()),
                ("arrival.bounced", packet.bounced.into()),
                ("arrival.random", packet.random.into()),
            ],
        );
        let accepted = run(&mut self.arrival, 0, &packet.frame, &mut meta);
        let pipeline = &self.program.pipelines[0];
        let said = |name: &'static str| {
            let value = meta[pipeline.meta(&format!("decision.{name}")).unwrap()];
            (name, if accepted { value } else { u128::from(name == "drop") })
        };
        ["trim_to", "queue", "bounce", "drop"].map(said).into()
    }

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

    fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    fn decision(&mut self, packet: &Arrived, out: &mut impl FnMut(&str, u128)) {
        let said = self.decide(packet);
        let trim_to = said["trim_to"] as u16;
        let length = if trim_to == 0 { packet.length } else { packet.length.min(trim_to) };
        out("decided_o", 1);
        out("decided_length_o", length.into());
        out("decided_tag_o", packet.tag.into());
        if trim_to != 0 {
            out("trimmed_o", 1);
            self.count("trims_o");
        }
        if said["drop"] != 0 {
            out("dropped_o", 1);
            self.count("drops_o");
        } else if said["bounce"] != 0 {
            out("bounced_o", 1);
            self.count("bounces_o");
        } else {
            let queue = said["queue"] as u8;
            let joining = Packet { queue, length, tag: packet.tag };
            let bytes = self.bytes + u32::from(length);
            match self.queues.get_mut(usize::from(queue)) {
                Some(fifo)
                    if bytes <= self.sizes.memory && fifo.len() < self.sizes.places as usize =>
                {
                    fifo.push_back(joining);
                    self.bytes = bytes;
                }
                _ => {
                    out("lost_o", 1);
                    self.count("losses_o");
                    self.told.push_back(joining);
                }
            }
        }
    }

    fn arrive(&mut self, cycle: u64, ins: &Layout, input: &mut Record) {
        self.since += 1;
        if self.since < 4 || self.draw.below(self.busy[0]) != 0 {
            return;
        }
        self.since = 0;
        let frame = self.frame();
        let small = self.draw.below(2) == 0;
        let length = if small { 64 } else { 64 + self.draw.below(9000) as u16 };
        let (bounced, random) = (self.draw.below(8) == 0, self.draw.bits());
        let tag = self.draw.bits() as u16;
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
        if self.draw.below(500) == 0 {
            self.busy = [[2, 4], [1, 60], [20, 2], [1, 1]][self.draw.below(4) as usize];
        }
        out("bytes_o", self.bytes.into());
        self.counts.iter().for_each(|(name, count)| out(name, (*count).into()));
        self.tell(cycle);
        let chosen = self.chosen();
        if let Some((queue, _)) = chosen {
            let front = self.queues[queue][0];
            out("valid_o", 1);
            out("queue_o", front.queue.into());
            out("length_o", front.length.into());
            out("tag_o", front.tag.into());
        }
        self.served += 1;
        let ends = self.served >= 4 && self.draw.below(self.busy[1]) == 0;
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

/// A mistake in the top: what stands there, and what instead.
const MISTAKES: [(&str, &str); 5] = [
    (".join_length_i(left)", ".join_length_i(length)"),
    ("&& !drops && !bounces", "&& !drops"),
    ("(drop || !in_accepted_o)", "drop"),
    ("trim_to < length ? trim_to : length", "trim_to > length ? trim_to : length"),
    (".done_i,", ".done_i(take_i && done_i),"),
];

/// Where the port and its model part.
fn differs(
    program: &Arc<ir::Program>,
    memory: u32,
    mistake: Option<(&str, &str)>,
) -> Result<BTreeMap<&'static str, u32>, String> {
    let tools = tools("switch").ok_or("no tools")?;
    let sizes = Sizes { weights: vec![10, 1], places: 64, memory };
    let mut port = switch::build(program, &State::new(Arc::clone(program)), &sizes).unwrap();
    if let Some((from, to)) = mistake {
        let (_, top) = port.files.last_mut().unwrap();
        assert!(top.contains(from), "{from}");
        *top = top.replace(from, to);
    }
    let folder = folder(&format!("switch-{memory}-{}", mistake.map_or(0, |(from, _)| from.len())));
    let built = port.design(&folder).unwrap().build(&tools, &folder);
    let mut circuit = built.map_err(|why| why.to_string())?.start().unwrap();
    let (ins, outs) = (circuit.inputs().clone(), circuit.outputs().clone());
    let mut model = Model::new(program, &port, sizes);
    for cycle in 0..CYCLES {
        let (input, wanted) = model.cycle(cycle, (&ins, &outs));
        let found = circuit.step(&input).map_err(|why| why.to_string())?;
        if found != wanted {
            let (found, wanted) = (outs.show(&found), outs.show(&wanted));
            return Err(format!("cycle {cycle}: {found}; expected {wanted}"));
        }
    }
    Ok(model.counts)
}

/// NDP's switch with queues so short that headers go back; with memory that is too small for what
/// the program lets in; and with mistakes.
#[test]
fn the_port_of_ndp_is_its_program_between_its_queues() {
    if tools("switch").is_none() {
        return;
    }
    let constants = [("DATA_CAPACITY", 30_000), ("HEADER_CAPACITY", 1_000)];
    let program = traffic::compile("ndp_switch.p4", &constants);
    let all = std::env::var("TRIMLINE_RTL").is_ok_and(|value| value == "all");
    let counts = differs(&program, 31_000, None).unwrap_or_else(|why| panic!("{why}"));
    println!("31000 B: {CYCLES} cycles equal, {counts:?}");
    for tried in ["trims_o", "bounces_o", "drops_o"] {
        assert!(counts[tried] > 100, "{counts:?}");
    }
    if all {
        let counts = differs(&program, 20_000, None).unwrap_or_else(|why| panic!("{why}"));
        println!("20000 B: {CYCLES} cycles equal, {counts:?}");
        assert!(counts["losses_o"] > 100, "{counts:?}");
    }
    for mistake in MISTAKES.into_iter().take(if all { MISTAKES.len() } else { 1 }) {
        let found = differs(&program, 31_000, Some(mistake)).unwrap_err();
        println!("`{}` found: {found}", mistake.1);
        // Not because it is no SystemVerilog.
        assert!(found.starts_with("cycle ") || found.contains("Assertion failed"), "{found}");
    }
}
