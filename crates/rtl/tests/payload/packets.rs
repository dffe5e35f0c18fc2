//! Each frame's word for its writer, while messages begin, become whole, are read, are not wanted,
//! and fall silent.

use std::collections::{BTreeMap, VecDeque};

use crate::bench::{Bench, Block, Failure, Mutant};

/// Messages and the law's buffers, places beyond them, and words of each.
const IDS: usize = 4;
const EXTRA: usize = 3;
const WORDS: usize = 16;

/// Cycles from a frame to its lookup's answer, and from there to the results.
const ANSWER: u64 = 3;
const BEHIND: u64 = 2;

/// A message that is not whole.
#[derive(Clone, Copy)]
struct Message {
    buffer: usize,
    place: usize,
    len: u32,
}

/// What is known of a frame.
#[derive(Clone, Copy, Default)]
struct Frame {
    taken: u64,
    keep: bool,
    whole: bool,
    place: usize,
    /// Packet, bytes of its message, and whose it is.
    says: [u32; 4],
}

/// The places that nobody has: the lowest of so many.
fn lowest(taken: &[usize], count: usize) -> Option<usize> {
    (0..count).map(|at| at * WORDS).find(|place| !taken.contains(place))
}

#[derive(Default)]
struct Model {
    live: BTreeMap<usize, Message>,
    frames: VecDeque<Frame>,
    /// Those whose results have come.
    packets: VecDeque<Frame>,
    /// Places of messages that are whole and not read, and of one that is not wanted.
    unread: VecDeque<usize>,
    dropped: Option<usize>,
}

impl Model {
    fn places(&self) -> Vec<usize> {
        let whole = self.frames.iter().chain(&self.packets).filter(|frame| frame.whole);
        let places = whole.map(|frame| frame.place).chain(self.unread.iter().copied());
        let live = self.live.values().map(|message| message.place);
        places.chain(live).chain(self.dropped).collect()
    }

    /// The lookup of the frame that is due for it: a message that lives, a new one, or none.
    fn look_up(&mut self, bench: &mut Bench) {
        let (now, places) = (bench.now(), self.places());
        let due = self.frames.iter().position(|frame| frame.taken + ANSWER == now);
        let id = bench.rng.between(0, IDS - 1);
        let says = [bench.rng.below(4) as u32, 1024 * 4 + bench.rng.below(1024) as u32];
        let from = [bench.rng.next() as u32, bench.rng.next() as u32 & 0xffff];
        let buffers: Vec<usize> = self.live.values().map(|message| message.buffer).collect();
        let known = self.live.get(&id).copied();
        let fresh = lowest(&buffers, IDS).zip(lowest(&places, IDS + EXTRA));
        let fresh = fresh.map(|(buffer, place)| Message { buffer, place, len: says[1] });
        let message = known.or(fresh).filter(|_| due.is_some() && !bench.rng.one_in(5));
        let keep = bench.rng.one_in(2);
        let buffer = message.map_or(0, |message| message.buffer);
        bench.set("lookup_valid_i", &[message.is_some().into()]);
        bench.set("lookup_begins_i", &[known.is_none().into()]);
        bench.set("lookup_keep_i", &[keep.into()]);
        bench.set("lookup_id_i", &[id as u32]);
        bench.set("lookup_buf_ptr_i", &[buffer as u32]);
        bench.set("lookup_offset_i", &[says[0]]);
        bench.set("lookup_msg_len_i", &[says[1]]);
        bench.set("lookup_src_ip_i", &[from[0]]);
        bench.set("lookup_src_context_i", &[from[1]]);
        let (Some(at), Some(message)) = (due, message) else { return };
        let whole = keep && bench.rng.one_in(2);
        let says = [says[0], message.len, from[0], from[1]];
        let Message { place, .. } = message;
        self.frames[at] = Frame { keep, whole, place, says, ..self.frames[at] };
        self.live.insert(id, message);
        if whole {
            self.live.remove(&id);
        }
    }

    /// The results of the frame that is due for them.
    fn results(&mut self, bench: &mut Bench) -> Option<Frame> {
        let now = bench.now();
        let frame = self.frames.pop_front_if(|frame| frame.taken + ANSWER + BEHIND == now);
        let keeps = !bench.rng.one_in(4);
        bench.set("results_valid_i", &[frame.is_some().into()]);
        bench.set("results_keep_i", &[keeps.into()]);
        bench.set("results_whole_i", &[frame.is_some_and(|frame| frame.whole).into()]);
        frame.map(|frame| Frame { keep: frame.keep && keeps, ..frame })
    }
}

fn drive(bench: &mut Bench, _: usize) -> Result<(), Failure> {
    let mut model = Model::default();
    let mut count = 0;
    for _ in 0..6000 {
        let open = count < EXTRA;
        let taken = open && bench.rng.one_in(2);
        bench.set("frame_taken_i", &[taken.into()]);
        // What ends: a message is read, one is not wanted, one falls silent.
        let done = if bench.rng.one_in(6) { model.unread.pop_front() } else { None };
        bench.set("done_valid_i", &[done.is_some().into()]);
        bench.set("done_place_i", &[done.unwrap_or(0) as u32]);
        let dropped = model.dropped;
        bench.set("dropped_valid_i", &[dropped.is_some().into()]);
        bench.set("dropped_place_i", &[dropped.unwrap_or(0) as u32]);
        // A place that is free in this cycle is lent in the next.
        model.unread.extend(done);
        model.look_up(bench);
        if done.is_some() {
            model.unread.pop_back();
        }
        model.dropped = None;
        let results = model.results(bench);
        let silent = bench.rng.between(0, IDS - 1);
        let asked = bench.given("lookup_id_i")[0] as usize;
        let expires = model.live.contains_key(&silent) && silent != asked && bench.rng.one_in(20);
        bench.set("expired_valid_i", &[expires.into()]);
        bench.set("expired_id_i", &[silent as u32]);
        let front = model.packets.front().copied();
        let takes = bench.rng.one_in(3);
        bench.set("packet_ready_i", &[takes.into()]);
        bench.cycle()?;
        bench.check("frame_open_o", &[open.into()])?;
        bench.check("packet_valid_o", &[front.is_some().into()])?;
        if let Some(frame) = front {
            bench.check("packet_keep_o", &[frame.keep.into()])?;
            bench.check("packet_whole_o", &[frame.whole.into()])?;
            if frame.keep || frame.whole {
                bench.check("packet_buf_ptr_o", &[frame.place as u32])?;
                for (port, value) in SAYS.iter().zip(frame.says) {
                    bench.check(port, &[value])?;
                }
            }
        }
        if expires {
            model.live.remove(&silent);
        }
        count += usize::from(taken);
        count -= usize::from(done.is_some());
        if let Some(frame) = model.packets.pop_front_if(|_| takes) {
            match (frame.keep, frame.whole) {
                (true, true) => model.unread.push_back(frame.place),
                (false, true) => model.dropped = Some(frame.place),
                _ => {}
            }
            count -= usize::from(!(frame.keep && frame.whole));
        }
        model.packets.extend(results);
        let taken = taken.then(|| Frame { taken: bench.now() - 1, ..Frame::default() });
        model.frames.extend(taken);
    }
    Ok(())
}

const SAYS: [&str; 4] =
    ["packet_offset_o", "packet_msg_len_o", "packet_src_ip_o", "packet_src_context_o"];

const PACKETS: &str = "rx_packets/rx_packets";

pub(crate) const BLOCK: Block = Block {
    name: "rx_packets",
    files: &["stream_fifo/stream_fifo", "delay/delay", "rx_places/rx_places", PACKETS],
    cases: &[&[
        ("Ids", IDS as u64),
        ("Extra", EXTRA as u64),
        ("Behind", BEHIND),
        ("ClassBytes", 64 * WORDS as u64),
        ("ClassBuffers", IDS as u64),
    ]],
    sources: &[],
    sinks: &[],
    inputs: &[
        ("frame_taken", 1),
        ("lookup_valid", 1),
        ("lookup_begins", 1),
        ("lookup_keep", 1),
        ("lookup_id", 2),
        ("lookup_buf_ptr", 16),
        ("lookup_offset", 8),
        ("lookup_msg_len", 16),
        ("lookup_src_ip", 32),
        ("lookup_src_context", 16),
        ("expired_valid", 1),
        ("expired_id", 2),
        ("results_valid", 1),
        ("results_whole", 1),
        ("results_keep", 1),
        ("packet_ready", 1),
        ("dropped_valid", 1),
        ("dropped_place", 16),
        ("done_valid", 1),
        ("done_place", 16),
    ],
    outputs: &[
        ("frame_open", 1),
        ("packet_valid", 1),
        ("packet_keep", 1),
        ("packet_whole", 1),
        ("packet_buf_ptr", 16),
        ("packet_offset", 8),
        ("packet_msg_len", 16),
        ("packet_src_ip", 32),
        ("packet_src_context", 16),
    ],
    run: drive,
    mutants: &[
        // A packet's own word on its message's length is believed.
        Mutant::new(
            PACKETS,
            "lookup_begins_i ? lookup_msg_len_i : lengths_q[lookup_id_i]",
            "lookup_msg_len_i",
        ),
        // A message that is not wanted counts as one that will be read.
        Mutant::new(PACKETS, "&& !(packet_keep_o && packet_whole_o)", "&& !packet_whole_o"),
        // Payload is kept that the program does not want.
        Mutant::new(PACKETS, "results_keep_i && known.keep", "known.keep"),
        // And that of a packet without a message.
        Mutant::new(PACKETS, "lookup_valid_i && lookup_keep_i", "lookup_keep_i"),
        // One frame too few.
        Mutant::new(PACKETS, "count_q != CountW'(Extra)", "count_q != CountW'(Extra - 1)"),
    ],
};

#[test]
fn rx_packets() {
    BLOCK.check();
}
