//! Words of 8 bytes and beats of 64, both ways; and the queue.

use crate::bench::{BEAT, Bench, Block, Channel, Failure, Mutant, Rng, Words, beats_in, beats_out};

/// The width of a word: data, bytes, last.
const WORD: u32 = 69;

const fn channel(name: &'static str, fields: &'static [(&'static str, u32)]) -> Channel {
    Channel { name, ready: true, fields }
}

/// Any length in which a frame may end.
fn frame(rng: &mut Rng) -> Vec<u8> {
    let n = if rng.one_in(4) { rng.between(1, 700) } else { rng.between(1, 130) };
    rng.bytes(n)
}

/// The words of a frame; what is beyond its end is `beyond`.
fn words_of(frame: &[u8], mut beyond: impl FnMut() -> u8) -> Vec<Words> {
    let n = frame.len().div_ceil(8);
    frame
        .chunks(8)
        .enumerate()
        .map(|(at, chunk)| {
            let byte = |at| chunk.get(at).copied().unwrap_or_else(&mut beyond);
            let mut words = crate::bench::words(&std::array::from_fn::<u8, 8, _>(byte));
            words.push(chunk.len() as u32 | u32::from(at + 1 == n) << 4);
            words
        })
        .collect()
}

fn widen(bench: &mut Bench, _: usize) -> Result<(), Failure> {
    for _ in 0..150 {
        let frame = frame(&mut bench.rng);
        let words = words_of(&frame, || bench.rng.next() as u8);
        words.into_iter().for_each(|word| bench.offer("in", vec![word]));
        beats_out(&frame).into_iter().for_each(|beat| bench.expect("out", vec![beat]));
    }
    bench.finish()?;
    bench.never("words refused", bench.refused("in"))
}

fn narrow(bench: &mut Bench, _: usize) -> Result<(), Failure> {
    for _ in 0..150 {
        let frame = frame(&mut bench.rng);
        let beats = beats_in(&mut bench.rng, &frame);
        beats.into_iter().for_each(|beat| bench.offer("in", vec![beat]));
        words_of(&frame, || 0).into_iter().for_each(|word| bench.expect("out", vec![word]));
    }
    bench.finish()?;
    bench.never("cycles without a word", bench.gaps("out"))
}

fn queue(bench: &mut Bench, _: usize) -> Result<(), Failure> {
    for _ in 0..3000 {
        let item = vec![vec![bench.rng.next() as u32, bench.rng.next() as u32 & 0xff]];
        bench.offer("in", item.clone());
        bench.expect("out", item);
    }
    bench.finish()?;
    bench.never("items refused", bench.refused("in"))
}

pub(crate) const WIDEN: Block = Block {
    name: "width_64_to_512",
    files: &["stream_pkg/stream_pkg", "width_64_to_512/width_64_to_512"],
    cases: &[&[]],
    sources: &[channel("in", &[("in_word", WORD)])],
    sinks: &[channel("out", &[("out_beat", BEAT)])],
    inputs: &[],
    outputs: &[],
    run: widen,
    mutants: &[
        // A word of the beat before remains.
        Mutant::new(
            "width_64_to_512/width_64_to_512",
            "else if (at_q == '0) words_q[i] <= '0;",
            "",
        ),
        // What is beyond the end remains.
        Mutant::new(
            "width_64_to_512/width_64_to_512",
            "4'(i) < in_word_i.bytes ? in_word_i.data[8*i +: 8] : 8'h00",
            "in_word_i.data[8*i +: 8]",
        ),
        // A bubble after each beat.
        Mutant::new("width_64_to_512/width_64_to_512", "!whole_q || out_ready_i", "!whole_q"),
        // A beat is overwritten while it waits.
        Mutant::new("width_64_to_512/width_64_to_512", "!whole_q || out_ready_i", "1'b1"),
        // The place does not begin anew with a frame.
        Mutant::new(
            "width_64_to_512/width_64_to_512",
            "in_word_i.last ? '0 : at_q + 3'd1",
            "at_q + 3'd1",
        ),
        // Bytes counted one word short.
        Mutant::new(
            "width_64_to_512/width_64_to_512",
            "{1'b0, at_q, 3'd0} + 7'(in_word_i.bytes)",
            "{1'b0, at_q, 3'd0}",
        ),
        // A beat stays when it has been taken.
        Mutant::new(
            "width_64_to_512/width_64_to_512",
            "whole_q <= 1'b0;\n      end\n      full",
            "whole_q <= whole_q;\n      end\n      full",
        ),
    ],
};

pub(crate) const NARROW: Block = Block {
    name: "width_512_to_64",
    files: &["stream_pkg/stream_pkg", "width_512_to_64/width_512_to_64"],
    cases: &[&[]],
    sources: &[channel("in", &[("in_beat", BEAT)])],
    sinks: &[channel("out", &[("out_word", WORD)])],
    inputs: &[],
    outputs: &[],
    run: narrow,
    mutants: &[
        // A full last word counts as one of more.
        Mutant::new(
            "width_512_to_64/width_512_to_64",
            "left_q <= 7'(WordBytes)",
            "left_q < 7'(WordBytes)",
        ),
        // A bubble between beats.
        Mutant::new(
            "width_512_to_64/width_512_to_64",
            "!out_valid_o || (give && ends)",
            "!out_valid_o",
        ),
        // A beat is taken before its last word has gone.
        Mutant::new("width_512_to_64/width_512_to_64", "(give && ends)", "ends"),
        // What is beyond the end comes out.
        Mutant::new(
            "width_512_to_64/width_512_to_64",
            "clean(in_beat_i.data, in_beat_i.bytes)",
            "in_beat_i.data",
        ),
        // The frame ends with each beat.
        Mutant::new("width_512_to_64/width_512_to_64", "ends && last_q", "ends"),
        // A word moves on although it waits.
        Mutant::new("width_512_to_64/width_512_to_64", "else if (give) begin", "else begin"),
        Mutant::new("stream_pkg/stream_pkg", "7'(i) < bytes", "7'(i) <= bytes"),
    ],
};

pub(crate) const QUEUE: Block = Block {
    name: "stream_fifo",
    files: &["stream_fifo/stream_fifo"],
    cases: &[&[("Width", 40), ("Depth", 16)], &[("Width", 40), ("Depth", 2)]],
    sources: &[channel("in", &[("in_data", 40)])],
    sinks: &[channel("out", &[("out_data", 40)])],
    inputs: &[],
    outputs: &[],
    run: queue,
    mutants: &[
        // One place too many, and one too few to hold the full rate.
        Mutant::new("stream_fifo/stream_fifo", "count != (PtrW+1)'(Depth);", "1'b1;"),
        Mutant::new(
            "stream_fifo/stream_fifo",
            "count != (PtrW+1)'(Depth);",
            "count != (PtrW+1)'(Depth - 1);",
        )
        .in_case(1),
        // It writes although it is full.
        Mutant::new(
            "stream_fifo/stream_fifo",
            "if (in_valid_i && in_ready_o) places_q",
            "if (in_valid_i) places_q",
        ),
        // The front goes on by itself.
        Mutant::new("stream_fifo/stream_fifo", "(out_valid_o && out_ready_i)", "(out_valid_o)"),
        // Nothing is taken from an empty queue.
        Mutant::new("stream_fifo/stream_fifo", "(out_valid_o && out_ready_i)", "(out_ready_i)"),
    ],
};

#[test]
fn width_64_to_512() {
    WIDEN.check();
}

#[test]
fn width_512_to_64() {
    NARROW.check();
}

#[test]
fn stream_fifo() {
    QUEUE.check();
}
