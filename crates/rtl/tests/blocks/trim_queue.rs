//! The queues of a switch's port (docs/nic.md, S1 to S5).

use std::collections::VecDeque;

use crate::bench::{Block, Case, Forbidden, Model, Mutant, Rng, Values};

const MUTANTS: &[Mutant] = &[
    Mutant::new("trim_queue", "wanted <= Memory", "wanted < Memory"),
    Mutant::new("trim_queue", "turn_d = TurnW'(place);", "turn_d = turn_q;"),
    Mutant::new("trim_queue", "turn_q           <= turn_d;", "turn_q           <= '0;"),
    Mutant::new("trim_queue", "step = 1; step <= Places", "step = 0; step < Places"),
    Mutant::new("trim_queue", "if (several) begin", "if (1'b1) begin"),
    Mutant::new("trim_queue", "if (place >= first)", "if (place > first)"),
    Mutant::new(
        "trim_queue",
        "bytes_q <= kept ? wanted : left;",
        "bytes_q <= kept ? wanted : bytes_q;",
    ),
    Mutant::new("trim_queue", "wanted = left +", "wanted = bytes_q +"),
    Mutant::new("trim_queue", "32'(join_queue_i) < Queues", "32'(join_queue_i) <= Queues"),
    Mutant::new("trim_queue", "service_queue_q  <= queue_o;", "service_queue_q  <= join_queue_i;"),
    Mutant::new(
        "trim_queue",
        "service_length_q <= length_o;",
        "service_length_q <= join_length_i;",
    ),
    Mutant::new("trim_queue", ".push_i({lost_o, done_i})", ".push_i({1'b0, done_i})"),
    Mutant::new("trim_queue", "8'(Apart - 1)", "8'(Apart - 2)"),
    Mutant::new("trim_queue", "room[QueueW'(join_queue_i)] &&", "room[0] &&").in_case(1),
];

#[derive(Clone, Copy)]
struct Packet {
    queue: u8,
    length: u16,
    tag: u16,
}

struct Sizes {
    weights: Vec<u8>,
    depth: usize,
    memory: u32,
}

struct Port {
    rng: Rng,
    sizes: Sizes,
    queues: Vec<VecDeque<Packet>>,
    /// Whose each place of the round is, and the place that was served last.
    round: Vec<u8>,
    turn: usize,
    service: Option<Packet>,
    bytes: u32,
    told: VecDeque<Packet>,
    /// One of so many cycles has an arrival, and ends what is in service.
    busy: [u64; 2],
    since: u32,
    /// Since a packet was taken, and one was told.
    served: u32,
    silent: u32,
}

impl Port {
    fn new(seed: u64, sizes: Sizes) -> Self {
        let places = |(queue, weight): (u8, &u8)| vec![queue; usize::from(*weight)];
        let round = (0..).zip(&sizes.weights).flat_map(places).collect();
        let queues = vec![VecDeque::new(); sizes.weights.len()];
        let rng = Rng::new(seed);
        Self {
            rng,
            sizes,
            queues,
            round,
            turn: 0,
            service: None,
            bytes: 0,
            told: VecDeque::new(),
            busy: [3, 4],
            since: 0,
            served: 0,
            silent: 1,
        }
    }

    /// Whose turn it is, and the place of the round that this is.
    fn chosen(&self) -> Option<(usize, usize)> {
        let holding: Vec<usize> =
            (0..self.queues.len()).filter(|queue| !self.queues[*queue].is_empty()).collect();
        match holding.as_slice() {
            [] => None,
            [only] => Some((*only, self.turn)),
            _ => (1..=self.round.len())
                .map(|step| (self.turn + step) % self.round.len())
                .map(|place| (usize::from(self.round[place]), place))
                .find(|(queue, _)| holding.contains(queue)),
        }
    }

    fn draw(&mut self) -> Packet {
        let free = self.sizes.memory - self.bytes;
        let length = match self.rng.below(4) {
            0 | 1 => 64,
            // Just what there is room for, or one byte more.
            2 if (64..9000).contains(&free) => free as u16 + self.rng.below(2) as u16,
            _ => 64 + self.rng.below(9000) as u16,
        };
        // A queue that there is not is one that the program made up.
        let unknown = self.rng.one_in(40);
        let queues = self.queues.len() as u64;
        let queue = if unknown { queues } else { self.rng.below(queues) } as u8;
        Packet { queue, length, tag: self.rng.below(1 << 16) as u16 }
    }

    fn arrive(&mut self, packet: Packet, outputs: &mut Values<'_>) {
        let bytes = self.bytes + u32::from(packet.length);
        let depth = self.sizes.depth;
        match self.queues.get_mut(usize::from(packet.queue)) {
            Some(queue) if bytes <= self.sizes.memory && queue.len() < depth => {
                queue.push_back(packet);
                self.bytes = bytes;
            }
            _ => {
                outputs.set("lost_o", 1u8);
                self.told.push_back(packet);
            }
        }
    }
}

impl Model for Port {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        if self.rng.one_in(400) {
            self.busy = [[2, 3], [2, 40], [30, 3], [2, 2]][self.rng.below(4) as usize];
        }
        outputs.set("bytes_o", self.bytes);
        self.silent += 1;
        if self.silent > 1
            && let Some(sent) = self.told.pop_front()
        {
            self.silent = 0;
            outputs.set("sent_valid_o", 1u8);
            outputs.set("sent_queue_o", sent.queue);
            outputs.set("sent_length_o", sent.length);
        }
        let chosen = self.chosen();
        if let Some((queue, _)) = chosen {
            let front = self.queues[queue][0];
            outputs.set("valid_o", 1u8);
            outputs.set("queue_o", front.queue);
            outputs.set("length_o", front.length);
            outputs.set("tag_o", front.tag);
        }
        self.served += 1;
        if self.service.is_some() && self.served >= 4 && self.rng.one_in(self.busy[1]) {
            let done = self.service.take();
            inputs.set("done_i", 1u8);
            self.bytes -= done.map_or(0, |packet| u32::from(packet.length));
            self.told.extend(done);
        }
        let fits_again = self.service.is_none() && !self.rng.one_in(4);
        if let Some((queue, place)) = chosen.filter(|_| fits_again) {
            inputs.set("take_i", 1u8);
            self.turn = place;
            self.served = 0;
            self.service = self.queues[queue].pop_front();
        }
        let packet = self.draw();
        inputs.set("join_queue_i", packet.queue);
        inputs.set("join_length_i", packet.length);
        inputs.set("join_tag_i", packet.tag);
        // Four cycles apart at least (S1).
        self.since += 1;
        if self.since >= 4 && self.rng.one_in(self.busy[0]) {
            self.since = 0;
            inputs.set("join_valid_i", 1u8);
            self.arrive(packet, outputs);
        }
    }
}

fn case(weights: &[u8], depth: usize, memory: u32) -> Case {
    let packed = weights.iter().rev().map(|weight| format!("{weight:02x}")).collect::<String>();
    let bits = 8 * weights.len();
    let weights = weights.to_vec();
    Case {
        parameters: vec![
            ("Queues", weights.len().to_string()),
            ("Weights", format!("{bits}'h{packed}")),
            ("Depth", depth.to_string()),
            ("Memory", memory.to_string()),
        ],
        inputs: vec![
            ("join_valid_i", 1),
            ("join_queue_i", 3),
            ("join_length_i", 16),
            ("join_tag_i", 16),
            ("take_i", 1),
            ("done_i", 1),
        ],
        outputs: vec![
            ("lost_o", 1),
            ("valid_o", 1),
            ("queue_o", 3),
            ("length_o", 16),
            ("tag_o", 16),
            ("sent_valid_o", 1),
            ("sent_queue_o", 3),
            ("sent_length_o", 16),
            ("bytes_o", 32),
        ],
        model: Box::new(move |seed| {
            let sizes = Sizes { weights: weights.clone(), depth, memory };
            Box::new(Port::new(seed, sizes))
        }),
    }
}

#[test]
fn trim_queue() {
    let forbidden = &[
        Forbidden { assertion: "no_pop_of_nothing", inputs: &[("take_i", 1)], cycles: 1 },
        Forbidden { assertion: "done_in_service", inputs: &[("done_i", 1)], cycles: 1 },
    ];
    // As NDP has them; three queues, of which memory is never short.
    let cases = vec![case(&[10, 1], 64, 72_000), case(&[3, 1, 2], 8, 1 << 20)];
    Block { name: "trim_queue", parts: &["fifo"], cases, mutants: MUTANTS, forbidden }.check();
}
