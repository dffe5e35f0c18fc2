//! Headers and payloads become frames.

use crate::bench::{
    BEAT, Bench, Block, Channel, Failure, HEADER, Mutant, beats_in, beats_out, words,
};

/// Bytes of the longest header in each case.
const HEADERS: [usize; 3] = [65, 192, 100];

fn run(bench: &mut Bench, case: usize) -> Result<(), Failure> {
    let longest = HEADERS[case];
    for _ in 0..250 {
        let rng = &mut bench.rng;
        let header = match rng.below(4) {
            0 => 64,
            1 => longest - rng.between(0, 1),
            _ => rng.between(1, longest),
        };
        let payload = match rng.below(8) {
            0 => 0,
            1 => 1024,
            2 => 64 * rng.between(1, 3),
            // So that the sum is about a whole beat.
            3 => 64 * rng.between(3, 5) + 1 - header % 64 - rng.between(0, 2),
            _ => rng.between(1, 300),
        };
        // What is beyond the header's end is anything.
        let mut wide = rng.bytes(longest);
        let payload = rng.bytes(payload);
        let has_payload = u32::from(!payload.is_empty());
        let fields = vec![words(&wide), vec![header as u32], vec![has_payload]];
        bench.offer("header", fields);
        if !payload.is_empty() {
            let beats = beats_in(&mut bench.rng, &payload);
            beats.into_iter().for_each(|beat| bench.offer("payload", vec![beat]));
        }
        wide.truncate(header);
        let frame = [wide, payload].concat();
        beats_out(&frame).into_iter().for_each(|beat| bench.expect("frame", vec![beat]));
    }
    bench.finish()?;
    bench.never("cycles without a beat", bench.gaps("frame"))
}

const MERGE: &str = "header_merge/header_merge";

pub(crate) const BLOCK: Block = Block {
    name: "header_merge",
    files: &["stream_pkg/stream_pkg", MERGE],
    cases: &[&[("HeaderBytes", 65)], &[("HeaderBytes", 192)], &[("HeaderBytes", 100)]],
    sources: &[
        Channel {
            name: "header",
            ready: true,
            fields: &[("header", HEADER), ("header_bytes", 8), ("header_payload", 1)],
        },
        Channel { name: "payload", ready: true, fields: &[("payload_beat", BEAT)] },
    ],
    sinks: &[Channel { name: "frame", ready: true, fields: &[("frame_beat", BEAT)] }],
    inputs: &[],
    outputs: &[],
    run,
    mutants: &[
        // A frame that just fits is one beat too long.
        Mutant::new(MERGE, "payload_beat_i.last && sum <=", "payload_beat_i.last && sum <"),
        // What is beyond the header's end gets into the frame.
        Mutant::new(
            MERGE,
            "clean(data, header_left > 8'(BeatBytes) ? 7'(BeatBytes) : header_left[6:0])",
            "data",
        ),
        // What is beyond the payload's end gets into the frame.
        Mutant::new(
            MERGE,
            "clean(payload_beat_i.data, payload_beat_i.bytes)",
            "payload_beat_i.data",
        ),
        // A full beat of header waits for payload.
        Mutant::new(MERGE, "header_left >= 8'(BeatBytes) ||", "header_left > 8'(BeatBytes) ||"),
        // The rest is a byte short.
        Mutant::new(MERGE, "7'(sum - 8'(BeatBytes))", "7'(sum - 8'(BeatBytes) - 8'd1)"),
        // The header is not gone through from its beginning.
        Mutant::new(MERGE, "header_ready_o ? '0 : at_q + 2'd1", "at_q + 2'd1").in_case(1),
        // A rest is forgotten, and one comes where there is none.
        Mutant::new(MERGE, "default: frame_valid_o = 1'b1;", "default: frame_valid_o = 1'b0;"),
        Mutant::new(
            MERGE,
            "if (frame_beat_o.last) state_d = Header;",
            "if (frame_beat_o.last && !joins) state_d = Header;",
        ),
        // The payload is taken while the frame waits.
        Mutant::new(MERGE, "payload_ready_o = give && joins", "payload_ready_o = joins"),
        // A frame of header alone has no end.
        Mutant::new(MERGE, "frame_beat_o.last  = !header_payload_i;", "frame_beat_o.last  = 1'b0;"),
        // The shift forgets the header's length.
        Mutant::new(MERGE, "7'(sum - 8'(BeatBytes)) : ahead_bytes", "7'(sum - 8'(BeatBytes)) : '0"),
    ],
};

#[test]
fn header_merge() {
    BLOCK.check();
}
