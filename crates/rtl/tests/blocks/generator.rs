//! The packet generator with its pacer (rules 10 and 22, C8).

use std::collections::VecDeque;

use crate::bench::{Block, Case, Forbidden, Model, Mutant, Rng, Values};
use crate::meta::{BITS, Meta};

const MUTANTS: &[Mutant] = &[
    // The pacer one cycle short, and one long.
    Mutant::new("generator", "WaitW'(PullCycles - 1)", "WaitW'(PullCycles - 2)"),
    Mutant::new("generator", "WaitW'(PullCycles - 1)", "WaitW'(PullCycles)"),
    // What has waited goes before what finds the token, or takes no token.
    Mutant::new("generator", "release_pull = token && !pull &&", "release_pull = token &&"),
    Mutant::new("generator", "if (pull_joins || release_pull)", "if (pull_joins)"),
    // A packet without a PULL holds the release up.
    Mutant::new(
        "generator",
        "token && !pull && pull_valid",
        "token && !ctrl_valid_i && pull_valid",
    ),
    // Flags.
    Mutant::new("generator", "ctrl_pull.flags = PullFlag;", ""),
    Mutant::new("generator", "ctrl_i.flags & ~PullFlag;", "ctrl_i.flags;"),
    Mutant::new("generator", " && !(pull_waits && ctrl_rest.flags == '0);", ";"),
    // The order of the queues.
    Mutant::new(
        "generator",
        "localparam int unsigned Nack = 1;
  localparam int unsigned Ctrl = 2;",
        "localparam int unsigned Nack = 2;
  localparam int unsigned Ctrl = 1;",
    ),
    Mutant::new("generator", "assign data[Grant] = grant_i;", "assign data[Grant] = ack_i;"),
    // The queue: pointers and places off by one, a place that is given too late, a second entry
    // over the first.
    Mutant::new("fifo", "read_q  <= read_q + PtrW'(pop_i);", "read_q  <= read_q;"),
    Mutant::new("fifo", "write_q <= write_d;", "write_q <= second;"),
    Mutant::new(
        "fifo",
        "room_o    = pop_i || count_q != (PtrW+1)'(Depth);",
        "room_o    = pop_i || count_q < (PtrW+1)'(Depth - 1);",
    ),
    Mutant::new(
        "fifo",
        "room_o    = pop_i || count_q != (PtrW+1)'(Depth);",
        "room_o    = count_q != (PtrW+1)'(Depth);",
    ),
    // The front: the next one is not there, or another's.
    Mutant::new("fifo", "stays = pop_i ? more : valid_q;", "stays = pop_i ? valid_q : valid_q;"),
    Mutant::new("fifo", "(kept_o[0] ? data0_i : data1_i);", "data0_i;"),
    Mutant::new("fifo", "stays ? places_q[read_q + PtrW'(1)]", "stays ? places_q[read_q]"),
    Mutant::new("fifo", "(push_i[0] ? left < (PtrW+1)'(Depth - 1) : room_o);", "room_o;"),
    Mutant::new(
        "fifo",
        "second    = kept_o[0] ? write_q + PtrW'(1) : write_q;",
        "second    = write_q;",
    ),
    Mutant::new(
        "fifo",
        "if (kept_o[1]) places_q[second] <= data1_i;",
        "if (kept_o[1]) places_q[second] <= data0_i;",
    ),
];

const PULL: u8 = 8;

/// Queues and pacer as the law says.
struct Generator {
    rng: Rng,
    now: u64,
    period: u64,
    room: usize,
    places: usize,
    token_back: u64,
    pulls: VecDeque<Meta>,
    queues: [VecDeque<Meta>; 4],
    /// How often things happen, which changes now and then: from 0 on, more and more seldom.
    busy: [u64; 2],
}

impl Generator {
    fn push(&mut self, queue: usize, packet: Meta) -> bool {
        let room = self.queues[queue].len() < self.places;
        if room {
            self.queues[queue].push_back(packet);
        }
        room
    }

    /// What of a packet of `ctrl_pkt` goes at once (rule 22).
    fn ask(&mut self, packet: Meta) -> Option<Meta> {
        if packet.flags & PULL == 0 {
            return Some(packet);
        }
        if self.token_back <= self.now {
            self.token_back = self.now + self.period;
            return Some(packet);
        }
        if self.pulls.len() < self.room {
            self.pulls.push_back(Meta { flags: PULL, ..packet });
        }
        let flags = packet.flags & !PULL;
        (flags != 0).then_some(Meta { flags, ..packet })
    }

    fn release(&mut self) -> Option<Meta> {
        if self.token_back > self.now {
            return None;
        }
        let pull = self.pulls.pop_front()?;
        self.token_back = self.now + self.period;
        Some(pull)
    }
}

impl Model for Generator {
    fn cycle(&mut self, inputs: &mut Values<'_>, outputs: &mut Values<'_>) {
        if self.rng.one_in(200) {
            self.busy = [0; 2].map(|_| self.rng.below(12) + 1);
        }
        let [asks, takes] = self.busy;
        if let Some(packet) = self.queues.iter().find_map(|queue| queue.front().copied()) {
            outputs.set("has_control_o", 1u8);
            outputs.set_words("packet_o", &packet.words());
            if self.rng.one_in(takes) {
                inputs.set("take_i", 1u8);
                let _ = self.queues.iter_mut().find_map(VecDeque::pop_front);
            }
        }
        let names = [("ack_valid_i", "ack_i"), ("nack_valid_i", "nack_i")];
        let names =
            names.into_iter().chain([("ctrl_valid_i", "ctrl_i"), ("grant_valid_i", "grant_i")]);
        let mut lost = 0u8;
        for (queue, (valid, data)) in names.enumerate() {
            let mut packet = Meta::draw(&mut self.rng);
            // Also a PULL alone, and nothing at all.
            if self.rng.one_in(2) {
                packet.flags &= [PULL, PULL | 2][self.rng.below(2) as usize];
            }
            inputs.set_words(data, &packet.words());
            if !self.rng.one_in(asks * 3) {
                continue;
            }
            inputs.set(valid, 1u8);
            let goes = if queue == 2 { self.ask(packet) } else { Some(packet) };
            let bit = [1, 2, 4, 16][queue];
            if goes.is_some_and(|packet| !self.push(queue, packet)) {
                lost |= bit;
            }
        }
        let released = self.release();
        if released.is_some_and(|pull| !self.push(2, pull)) {
            lost |= 8;
        }
        outputs.set("lost_o", lost);
        self.now += 1;
    }
}

fn case(period: u64, room: usize, places: usize) -> Case {
    Case {
        parameters: vec![
            ("PullCycles", period.to_string()),
            ("MaxPulls", room.to_string()),
            ("Places", places.to_string()),
        ],
        inputs: vec![
            ("ack_valid_i", 1),
            ("ack_i", BITS),
            ("nack_valid_i", 1),
            ("nack_i", BITS),
            ("ctrl_valid_i", 1),
            ("ctrl_i", BITS),
            ("grant_valid_i", 1),
            ("grant_i", BITS),
            ("take_i", 1),
        ],
        outputs: vec![("has_control_o", 1), ("packet_o", BITS), ("lost_o", 5)],
        model: Box::new(move |seed| {
            Box::new(Generator {
                rng: Rng::new(seed),
                now: 0,
                period,
                room,
                places,
                token_back: 0,
                pulls: VecDeque::new(),
                queues: [const { VecDeque::new() }; 4],
                busy: [1; 2],
            })
        }),
    }
}

#[test]
fn generator() {
    // Small queues are full now and then; those of the law, seldom.
    let cases = vec![case(14, 8, 16), case(140, 256, 256)];
    Block {
        name: "generator",
        parts: &["nano_pkg", "fifo"],
        cases,
        mutants: MUTANTS,
        forbidden: &[Forbidden {
            assertion: "take_what_is_there",
            inputs: &[("take_i", 1)],
            cycles: 1,
        }],
    }
    .check();
}
