//! Windows, lengths and payloads of frames.

use crate::bench::{
    BEAT, Bench, Block, Channel, Failure, HEADER, Mutant, beats_in, beats_out, words,
};

/// Bytes of the window in each case.
const WINDOWS: [usize; 4] = [64, 192, 100, 34];

/// The longest header.
const LONGEST: usize = 192;

/// Cycles of the ingress pipeline at most.
const PIPELINE: usize = 23;

/// A frame's header and whether its payload is wanted; the lengths that matter are often drawn.
fn draw(bench: &mut Bench, window: usize) -> (Vec<u8>, usize, bool) {
    let rng = &mut bench.rng;
    let header = match rng.below(4) {
        0 => 64,
        1 => [0, 1, 63, 65, 128, 192][rng.below(6) as usize],
        _ => rng.between(0, LONGEST),
    };
    let len = match rng.below(6) {
        0 => rng.between(1, 200),
        1 => (header + rng.between(0, 2)).max(1),
        2 => (window + rng.between(0, 2)).saturating_sub(1).max(1),
        3 => 1088,
        4 => 64 * rng.between(1, 5),
        _ => rng.between(65, 1300),
    };
    let frame = rng.bytes(len);
    let drops = rng.one_in(5);
    (frame, header, drops)
}

fn run(bench: &mut Bench, case: usize) -> Result<(), Failure> {
    let window = WINDOWS[case];
    let mut headers = std::collections::VecDeque::new();
    for _ in 0..200 {
        let (frame, header, drops) = draw(bench, window);
        let seen = frame.len().min(window);
        let beats = beats_in(&mut bench.rng, &frame);
        headers.push_back((beats.len().min(window.div_ceil(64)), beats.len(), header, drops));
        beats.into_iter().for_each(|beat| bench.offer("frame", vec![beat]));
        bench.expect("window", vec![words(&frame[..seen]), vec![seen as u32]]);
        bench.expect("length", vec![vec![frame.len() as u32]]);
        let payload = frame.get(header..).unwrap_or_default();
        if !drops {
            beats_out(payload).into_iter().for_each(|beat| bench.expect("payload", vec![beat]));
        }
    }
    // The pipeline's answer: from the window's cycle on, and in order.
    let (mut taken, mut last) = (0, 0);
    while bench.busy() {
        let moved = bench.cycle()?;
        if moved.on("frame").is_none() {
            continue;
        }
        taken += 1;
        let (in_window, beats, header, drops) = headers[0];
        if taken == in_window {
            let delay = if bench.full_rate { PIPELINE } else { bench.rng.between(0, 60) };
            last = (last + 1).max(bench.now() + delay as u64);
            let answer = vec![vec![header as u32], vec![u32::from(drops)]];
            bench.offer_from("parsed", answer, last);
        }
        if taken == beats {
            headers.pop_front();
            taken = 0;
        }
    }
    bench.finish()?;
    bench.never("beats refused", bench.refused("frame"))
}

const ALIGN: &str = "header_align/header_align";
const REALIGN: &str = "header_align/payload_realign";

pub(crate) const BLOCK: Block = Block {
    name: "header_align",
    files: &[
        "stream_pkg/stream_pkg",
        "stream_fifo/stream_fifo",
        "header_align/payload_realign",
        "header_align/header_align",
    ],
    cases: &[
        &[("HeaderBytes", 64), ("Beats", 64)],
        &[("HeaderBytes", 192), ("Beats", 64)],
        &[("HeaderBytes", 100), ("Beats", 64)],
        &[("HeaderBytes", 34), ("Beats", 64)],
    ],
    sources: &[
        Channel { name: "frame", ready: true, fields: &[("frame_beat", BEAT)] },
        Channel {
            name: "parsed",
            ready: false,
            fields: &[("parsed_bytes", 8), ("parsed_drop", 1)],
        },
    ],
    sinks: &[
        Channel {
            name: "window",
            ready: false,
            fields: &[("window", HEADER), ("window_bytes", 8)],
        },
        Channel { name: "length", ready: false, fields: &[("length", 16)] },
        Channel { name: "payload", ready: true, fields: &[("payload_beat", BEAT)] },
    ],
    inputs: &[],
    outputs: &[],
    run,
    mutants: &[
        // The shift is a byte short.
        Mutant::new(REALIGN, ">> {shift_q, 3'd0}", ">> {shift_q - 6'd1, 3'd0}"),
        // The window one beat late.
        Mutant::new(ALIGN, "at_q == 2'(WindowBeats - 1)", "at_q == 2'(WindowBeats)").in_case(1),
        // What the window had of the frame before remains.
        Mutant::new(ALIGN, "else if (first) window_q[512*i +: 512] <= '0;", "").in_case(1),
        // The length goes on from the frame before.
        Mutant::new(ALIGN, "(first ? '0 : length_q)", "length_q"),
        // A short frame's window says that it is full.
        Mutant::new(ALIGN, "seen < 8'(HeaderBytes) ? seen : 8'(HeaderBytes)", "8'(HeaderBytes)"),
        // What is beyond the frame's end comes into the window.
        Mutant::new(ALIGN, "clean(frame_beat_i.data, frame_beat_i.bytes)", "frame_beat_i.data"),
        // Beats of the header are not passed over.
        Mutant::new(REALIGN, "in_header && !frame_beat_i.last", "1'b0"),
        // An end that just fits is one beat too long.
        Mutant::new(
            REALIGN,
            "frame_beat_i.bytes <= 7'(shift_q)",
            "frame_beat_i.bytes < 7'(shift_q)",
        ),
        // The last beat of a frame waits for a next one, which is another frame's.
        Mutant::new(REALIGN, "held_last_q || shift_q == '0", "shift_q == '0"),
        // A held beat is overwritten while it waits.
        Mutant::new(REALIGN, "(pass || free)", "1'b1"),
        // A bubble behind each frame.
        Mutant::new(REALIGN, "!held_q || give", "!held_q || (give && !held_last_q)"),
        // A frame that ends in its header leaves its bytes behind.
        Mutant::new(REALIGN, "in_header ? '0 : frame_beat_i.bytes", "frame_beat_i.bytes"),
        // Beats of a frame count on into the next.
        Mutant::new(REALIGN, "if (frame_beat_i.last) gone_q <= '0;\n        else ", ""),
        // The beat that ends in the one before is held, too.
        Mutant::new(REALIGN, " && !(held_q && !complete && ends)", ""),
        // What is not wanted comes out.
        Mutant::new(REALIGN, "cut_drop_i || (in_header", "(in_header"),
    ],
};

#[test]
fn header_align() {
    BLOCK.check();
}
