//! Places of messages in memory while the law's buffers come and go.

use std::collections::{BTreeMap, VecDeque};

use crate::bench::{Bench, Block, Failure, Mutant};

/// Cycles of a run.
const CYCLES: usize = 5000;

/// Size classes of a case: words of a buffer, and how many the law has; messages; buffers beyond
/// the law's.
struct Size {
    classes: &'static [(usize, usize)],
    ids: usize,
    extra: usize,
}

const SIZES: [Size; 2] = [
    Size { classes: &[(16, 4), (64, 2)], ids: 8, extra: 3 },
    Size { classes: &[(608, 16)], ids: 16, extra: 20 },
];

/// The lowest of `count` places from `first` on that nobody has, each of `words`.
fn lowest(taken: &[usize], first: usize, words: usize, count: usize) -> Option<usize> {
    (0..count).map(|at| first + at * words).find(|place| !taken.contains(place))
}

/// A message that is not whole: its law's buffer, and its place.
#[derive(Clone, Copy)]
struct Message {
    buffer: usize,
    place: usize,
}

fn drive(bench: &mut Bench, case: usize) -> Result<(), Failure> {
    let Size { classes, ids, extra } = SIZES[case];
    let mut live: BTreeMap<usize, Message> = BTreeMap::new();
    // Whole, in the order in which they are read.
    let mut whole: VecDeque<usize> = VecDeque::new();
    for _ in 0..CYCLES {
        let buffers: Vec<usize> = live.values().map(|message| message.buffer).collect();
        let mut places: Vec<usize> = live.values().map(|message| message.place).collect();
        places.extend(&whole);
        // What ends in this cycle: one is read, one falls silent.
        let done = if bench.rng.one_in(4) { whole.pop_front() } else { None };
        bench.set("done_valid_i", &[done.is_some().into()]);
        bench.set("done_place_i", &[done.unwrap_or_default() as u32]);
        let some = |bench: &mut Bench| bench.rng.between(0, ids - 1);
        let silent = some(bench);
        let expired = live.get(&silent).copied().filter(|_| bench.rng.one_in(10));
        bench.set("expired_valid_i", &[expired.is_some().into()]);
        bench.set("expired_id_i", &[silent as u32]);
        // A packet: the first of a message, or of one that lives; it may make it whole.
        let id = some(bench);
        let (first, begins) = (!live.contains_key(&id), bench.rng.one_in(2));
        let class = bench.rng.between(0, classes.len() - 1);
        let (words, count) = classes[class];
        let law = classes[..class].iter().map(|(words, count)| words * count).sum();
        let ours = classes[..class].iter().map(|(words, count)| words * (count + extra)).sum();
        let buffer = lowest(&buffers, law, words, count).filter(|_| first && begins);
        let known = live.get(&id).copied().filter(|_| expired.is_none() || id != silent);
        let place = buffer.and_then(|_| lowest(&places, ours, words, count + extra));
        let message = match (buffer, place) {
            (Some(buffer), Some(place)) => Some(Message { buffer, place }),
            (Some(_), None) => return Err(Failure::Hangs("the model has no place".into())),
            _ => known,
        };
        // Before its place is looked for, as many messages as may wait do.
        let completes = whole.len() < extra && bench.rng.one_in(3);
        let dropped = message.filter(|_| completes && bench.rng.one_in(6) && buffer.is_none());
        let buf_ptr = message.map_or(0, |message| message.buffer);
        bench.set("packet_valid_i", &[message.is_some().into()]);
        bench.set("packet_begins_i", &[buffer.is_some().into()]);
        bench.set("packet_id_i", &[id as u32]);
        bench.set("packet_buf_ptr_i", &[buf_ptr as u32]);
        bench.set("dropped_valid_i", &[dropped.is_some().into()]);
        let place = dropped.map_or(0, |message| message.place);
        bench.set("dropped_place_i", &[place as u32]);
        bench.cycle()?;
        if expired.is_some() {
            live.remove(&silent);
        }
        if let Some(message) = message {
            bench.check("packet_place_o", &[message.place as u32])?;
            live.insert(id, message);
            if dropped.is_some() {
                live.remove(&id);
            } else if completes {
                live.remove(&id);
                whole.push_back(message.place);
            }
        }
    }
    Ok(())
}

const PLACES: &str = "rx_places/rx_places";

pub(crate) const BLOCK: Block = Block {
    name: "rx_places",
    files: &[PLACES],
    cases: &[
        &[
            ("Ids", 8),
            ("Extra", 3),
            ("Classes", 2),
            ("ClassBytes", 4096 << 32 | 1024),
            ("ClassBuffers", 2 << 32 | 4),
        ],
        &[],
    ],
    sources: &[],
    sinks: &[],
    inputs: &[
        ("packet_valid", 1),
        ("packet_begins", 1),
        ("packet_id", 4),
        ("packet_buf_ptr", 16),
        ("expired_valid", 1),
        ("expired_id", 4),
        ("done_valid", 1),
        ("done_place", 16),
        ("dropped_valid", 1),
        ("dropped_place", 16),
    ],
    outputs: &[("packet_place", 16)],
    run: drive,
    mutants: &[
        // A place is given to the next message while it waits to be read.
        Mutant::new(PLACES, "& ~(Total'(takes) << fresh)", "& ~(Total'(packet_valid_i) << fresh)"),
        // A message that has fallen silent keeps its place.
        Mutant::new(PLACES, "if (expired_valid_i) given", "if (1'b0) given"),
        // So does one that nobody wants, and one that has been read.
        Mutant::new(PLACES, "if (dropped_valid_i &&", "if (1'b0 &&"),
        Mutant::new(PLACES, "if (done_valid_i &&", "if (1'b0 &&"),
        // The packet after the first is looked for where a new message would be.
        Mutant::new(PLACES, "packet_begins_i ? fresh : places_q[packet_id_i]", "fresh"),
        // Classes have as many places as the law has buffers.
        Mutant::new(
            PLACES,
            "first += ClassBuffers[32*c +: 32] + Extra;",
            "first += ClassBuffers[32*c +: 32];",
        ),
        // A message gets a place of the class after its own.
        Mutant::new(PLACES, ">= law_word_of(class_of(i - 1)) &&", ">= law_word_of(class_of(i)) &&"),
    ],
};

#[test]
fn rx_places() {
    BLOCK.check();
}
