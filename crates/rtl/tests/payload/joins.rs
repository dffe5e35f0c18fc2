//! What joins the data path to the control path: the door for frames, and packets that are chosen
//! and have not left.

use std::collections::VecDeque;

use crate::bench::{
    BEAT, Bench, Block, Channel, Failure, HEADER, Mutant, beats_in, compare, words,
};

/// Beats of a frame that are let in, and cycles between packets, in each case.
const LONGEST: usize = 19;
const SPACING: [u64; 2] = [2, 5];

fn drive_gate(bench: &mut Bench, case: usize) -> Result<(), Failure> {
    let mut open = true;
    let mut last = None;
    for _ in 0..300 {
        let beats = match bench.rng.below(6) {
            0 => bench.rng.between(LONGEST - 1, 3 * LONGEST),
            1 => LONGEST,
            _ => bench.rng.between(1, 4),
        };
        let len = 64 * (beats - 1) + bench.rng.between(1, 64);
        let frame = bench.rng.bytes(len);
        for (at, beat) in beats_in(&mut bench.rng, &frame).into_iter().enumerate() {
            bench.offer("in", vec![beat.clone()]);
            if at < LONGEST {
                let mut let_in = beat;
                let_in[16] |= u32::from(at + 1 == LONGEST) << 7;
                bench.expect("out", vec![let_in]);
            }
        }
    }
    while bench.busy() {
        // What is open stays so until a packet is taken.
        open = open || bench.rng.one_in(4);
        bench.set("open_i", &[open.into()]);
        let moved = bench.cycle()?;
        let taken = moved.on("out").is_some_and(|beat| beat[0][16] & 0x80 != 0);
        bench.check("taken_o", &[taken.into()])?;
        if taken {
            let close = last.is_some_and(|last| bench.now() < last + SPACING[case]);
            compare("packets too close, or not wanted", &[u32::from(close || !open)], &[0])?;
            last = Some(bench.now());
            open = bench.full_rate || !bench.rng.one_in(5);
        }
    }
    bench.finish()
}

const GATE: &str = "frame_gate/frame_gate";

pub(crate) const FRAME_GATE: Block = Block {
    name: "frame_gate",
    files: &["stream_pkg/stream_pkg", GATE],
    cases: &[
        &[("Spacing", SPACING[0]), ("Longest", LONGEST as u64)],
        &[("Spacing", SPACING[1]), ("Longest", LONGEST as u64)],
    ],
    sources: &[Channel { name: "in", ready: true, fields: &[("in_beat", BEAT)] }],
    sinks: &[Channel { name: "out", ready: true, fields: &[("out_beat", BEAT)] }],
    inputs: &[("open", 1)],
    outputs: &[("taken", 1)],
    run: drive_gate,
    mutants: &[
        // Packets are one cycle too close.
        Mutant::new(GATE, "WaitW'(Spacing - 1)", "WaitW'(Spacing - 2)"),
        // Nobody asks whether there is room.
        Mutant::new(GATE, "(wait_q != '0 || !open_i)", "wait_q != '0"),
        // A frame is cut off a beat late, and what is behind the cut is a frame.
        Mutant::new(GATE, "at_q == AtW'(Longest - 1)", "at_q == AtW'(Longest)"),
        Mutant::new(GATE, "over_q <= (over_q || taken_o)", "over_q <= (over_q && taken_o)"),
        // The count of beats goes on in the next frame.
        Mutant::new(GATE, "if (taken_o) at_q <= '0;", "if (in_beat_i.last && !gives) at_q <= '0;"),
    ],
};

#[test]
fn frame_gate() {
    FRAME_GATE.check();
}

/// Packets that may be ahead; bytes of the longest header.
const AHEAD: usize = 8;
const BYTES: usize = 70;

/// Cycles from a choice to its header.
const MAKING: u64 = 3;

/// A packet that is chosen and has not left.
struct Ahead {
    buffer: Option<u32>,
    made: u64,
    header: Vec<u8>,
}

fn drive_packets(bench: &mut Bench, _: usize) -> Result<(), Failure> {
    let mut ahead: VecDeque<Ahead> = VecDeque::new();
    // The first of them is leaving: its header is gone.
    let mut leaving = false;
    for _ in 0..4000 {
        let now = bench.now();
        let room = ahead.len() < AHEAD;
        let chosen = (room && !bench.rng.one_in(3)).then(|| {
            let len = if bench.rng.one_in(10) { 0 } else { bench.rng.between(1, BYTES - 1) };
            let buffer = bench.rng.one_in(2).then(|| bench.rng.below(4) as u32 * 608);
            Ahead { buffer, made: now + MAKING, header: bench.rng.bytes(len) }
        });
        let buffer = chosen.as_ref().and_then(|packet| packet.buffer);
        bench.set("chosen_valid_i", &[chosen.is_some().into()]);
        bench.set("chosen_data_i", &[buffer.is_some().into()]);
        bench.set("chosen_buf_ptr_i", &[buffer.unwrap_or(608)]);
        let made = ahead.iter().find(|packet| packet.made == now);
        bench.set("made_valid_i", &[made.is_some().into()]);
        let is_data = made.is_some_and(|packet| packet.buffer.is_some());
        let header = made.map(|packet| packet.header.clone()).unwrap_or_default();
        bench.set("made_data_i", &[is_data.into()]);
        bench.set("made_header_i", &words(&header));
        bench.set("made_bytes_i", &[header.len() as u32]);
        let front = ahead.iter().find(|packet| packet.made < now);
        let front = front.filter(|_| !leaving);
        let skips = front.is_some_and(|packet| packet.header.is_empty());
        let takes = front.is_some() && !skips && bench.rng.one_in(2);
        let gone = (leaving || takes) && bench.rng.one_in(3);
        bench.set("header_ready_i", &[takes.into()]);
        bench.set("gone_i", &[gone.into()]);
        let asked = bench.rng.below(5) as u32 * 608;
        bench.set("ask_buf_ptr_i", &[asked]);
        let busy = ahead.iter().any(|packet| packet.buffer == Some(asked));
        let sent = front.filter(|_| !skips).map(|packet| {
            let pad = u32::from(packet.buffer.is_none());
            (words(&packet.header), packet.header.len() as u32 + pad, 1 - pad)
        });
        bench.cycle()?;
        bench.check("room_o", &[room.into()])?;
        bench.check("busy_o", &[busy.into()])?;
        if let Some((header, bytes, payload)) = sent {
            bench.check("header_valid_o", &[1])?;
            bench.check("header_o", &header)?;
            bench.check("header_bytes_o", &[bytes])?;
            bench.check("header_payload_o", &[payload])?;
        } else if !leaving {
            bench.check("header_valid_o", &[0])?;
        }
        if gone || skips {
            ahead.pop_front();
        }
        leaving = (leaving || takes) && !gone;
        ahead.extend(chosen);
    }
    Ok(())
}

const PACKETS: &str = "tx_packets/tx_packets";

pub(crate) const TX_PACKETS: Block = Block {
    name: "tx_packets",
    files: &["stream_fifo/stream_fifo", PACKETS],
    cases: &[&[("Ahead", AHEAD as u64), ("HeaderBytes", BYTES as u64)]],
    sources: &[],
    sinks: &[],
    inputs: &[
        ("chosen_valid", 1),
        ("chosen_data", 1),
        ("chosen_buf_ptr", 16),
        ("ask_buf_ptr", 16),
        ("made_valid", 1),
        ("made_data", 1),
        ("made_header", HEADER),
        ("made_bytes", 8),
        ("header_ready", 1),
        ("gone", 1),
    ],
    outputs: &[
        ("room", 1),
        ("busy", 1),
        ("header_valid", 1),
        ("header", HEADER),
        ("header_bytes", 8),
        ("header_payload", 1),
    ],
    run: drive_packets,
    mutants: &[
        // A buffer is free while a packet of it is on its way.
        Mutant::new(PACKETS, "busy_o = 1'b1;", "busy_o = 1'b0;"),
        // One that a control packet names is not.
        Mutant::new(PACKETS, "here_q[i] && data_q[i] &&", "here_q[i] &&"),
        // Packets that have left stay.
        Mutant::new(
            PACKETS,
            "if (leaves) here_d[out_q] = 1'b0;",
            "if (skips) here_d[out_q] = 1'b0;",
        ),
        // A choice of which nothing was made leaves before the packet in front of it.
        Mutant::new(PACKETS, "front_valid && empty && !sends_q", "front_valid && empty"),
        // A control packet is as short as its header.
        Mutant::new(PACKETS, "front_bytes + 8'd1", "front_bytes"),
    ],
};

#[test]
fn tx_packets() {
    TX_PACKETS.check();
}
