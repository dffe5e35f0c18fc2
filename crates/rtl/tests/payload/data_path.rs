//! The data path as a whole: messages in frames that come, messages that go in frames; both at
//! once.

use std::collections::VecDeque;

use crate::bench::{
    BEAT, Bench, Block, Channel, Failure, HEADER, Moved, Mutant, Rng, beats_in, beats_out, words,
};

/// Bytes of the window and of the longest header.
const LONGEST: usize = 100;

/// Words of each message RAM.
const WORDS: usize = 4096;

/// Bytes of a packet's payload.
const PAYLOAD: usize = 1024;

/// The lookup's answer, which says where a payload belongs, comes 4 cycles after the window.
const LOOKUP: u64 = 4;

/// The first word of a packet comes 3 cycles after the arbiter's request.
const FIRST_WORD: u64 = 3;

/// Picoseconds of a byte on a link of 200 Gb/s, and of a cycle, in halves.
const BYTE: u64 = 80;
const CYCLE: u64 = 625;

/// How frames come and go.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// A beat each cycle.
    Beats,
    /// Frames back to back on the link: 65 bytes, or 1088, or both.
    Link(&'static [usize]),
}

/// What is known of a frame that comes.
struct Arriving {
    beats: usize,
    header: usize,
    /// Metadata of its packet; none if the pipeline drops it.
    packet: Option<[u32; 7]>,
}

/// The side that receives.
struct Receiver {
    frames: VecDeque<Arriving>,
    /// Beats of the first of them that have gone in.
    taken: usize,
    /// When the last answers came.
    parsed: u64,
    looked_up: u64,
    /// Where the next buffer begins, and when the link is free.
    buffer: usize,
    link: u64,
}

fn header_len(rng: &mut Rng, pace: Pace) -> usize {
    if pace == Pace::Beats && rng.one_in(2) { rng.between(1, LONGEST) } else { 64 }
}

/// Bytes of a message: of as many packets as a few.
fn message_len(rng: &mut Rng, pace: Pace) -> usize {
    match pace {
        Pace::Link(frames) => {
            let frame = frames[rng.below(frames.len() as u64) as usize];
            // The link's frames are all of one length: a message of full packets, or of one.
            if frame == 1088 { PAYLOAD * rng.between(1, 5) } else { frame - 64 }
        }
        Pace::Beats if rng.one_in(3) => rng.between(1, 6000),
        Pace::Beats => rng.between(1, 200),
    }
}

impl Receiver {
    /// A message comes: its packets in any order, some of them twice, a dropped frame between them.
    fn arrives(&mut self, bench: &mut Bench, pace: Pace) {
        let rng = &mut bench.rng;
        let len = message_len(rng, pace);
        let message = rng.bytes(len);
        let from = [rng.next() as u32, rng.next() as u32 & 0xffff];
        let packets = len.div_ceil(PAYLOAD);
        if self.buffer + packets * 16 > WORDS {
            self.buffer = 0;
        }
        let buf_ptr = self.buffer;
        self.buffer += packets * 16;
        let mut order: Vec<(usize, bool)> = (0..packets).map(|packet| (packet, true)).collect();
        if pace == Pace::Beats {
            (0..packets).for_each(|at| order.swap(at, rng.between(at, packets - 1)));
            let again = rng.between(0, packets - 1);
            let place = order.iter().position(|(packet, _)| *packet == again).unwrap_or(0);
            if rng.one_in(3) {
                order.insert(rng.between(place + 1, packets), (again, false));
            }
        }
        let last = order.iter().rposition(|(_, keep)| *keep);
        for (at, (packet, keep)) in order.into_iter().enumerate() {
            let payload = &message[PAYLOAD * packet..len.min(PAYLOAD * (packet + 1))];
            let whole = u32::from(Some(at) == last);
            let [src_ip, src_context] = from;
            let metadata = [
                u32::from(keep),
                whole,
                buf_ptr as u32,
                packet as u32,
                len as u32,
                src_ip,
                src_context,
            ];
            self.frame(bench, pace, payload, Some(metadata));
        }
        if pace == Pace::Beats && bench.rng.one_in(4) {
            let payload = bench.rng.bytes(1);
            self.frame(bench, pace, &payload, None);
        }
        for beat in beats_out(&message) {
            let fields = [from[0], from[1], len as u32].map(|value| vec![value]);
            bench.expect("rx_app", std::iter::once(beat).chain(fields).collect());
        }
        bench.expect("rx_done", vec![vec![buf_ptr as u32]]);
    }

    fn frame(&mut self, bench: &mut Bench, pace: Pace, payload: &[u8], packet: Option<[u32; 7]>) {
        let header = header_len(&mut bench.rng, pace);
        let frame = [bench.rng.bytes(header), payload.to_vec()].concat();
        let seen = frame.len().min(LONGEST);
        let beats = beats_in(&mut bench.rng, &frame);
        self.frames.push_back(Arriving { beats: beats.len(), header, packet });
        for (at, beat) in beats.into_iter().enumerate() {
            let bytes = frame.len().min(64 * (at + 1));
            let cycle = (self.link + bytes as u64 * BYTE) / CYCLE;
            let from = if pace == Pace::Beats { 0 } else { cycle };
            bench.offer_from("rx_frame", vec![beat], from);
        }
        self.link += frame.len() as u64 * BYTE;
        bench.expect("rx_window", vec![words(&frame[..seen]), vec![seen as u32]]);
        bench.expect("rx_length", vec![vec![frame.len() as u32]]);
    }

    /// The pipeline answers: when the window is there, and when the lookup is.
    fn follow(&mut self, bench: &mut Bench, moved: &Moved) {
        if moved.on("rx_frame").is_none() {
            return;
        }
        self.taken += 1;
        let Some(frame) = self.frames.front() else { return };
        if self.taken == frame.beats.min(LONGEST.div_ceil(64)) {
            let slack = if bench.full_rate { 0 } else { bench.rng.below(30) };
            self.parsed = (self.parsed + 1).max(bench.now() + 1 + slack);
            let parsed = [frame.header as u32, u32::from(frame.packet.is_none())];
            bench.offer_from("rx_parsed", parsed.map(|value| vec![value]).into(), self.parsed);
            if let Some(packet) = frame.packet {
                self.looked_up = (self.looked_up + 1).max(bench.now() + LOOKUP + slack);
                let packet = packet.map(|value| vec![value]).into();
                bench.offer_from("rx_packet", packet, self.looked_up);
            }
        }
        if self.taken == frame.beats {
            self.frames.pop_front();
            self.taken = 0;
        }
    }
}

/// The side that sends.
#[derive(Default)]
struct Sender {
    /// Messages that are offered and not submitted: their bytes and buffers.
    offered: VecDeque<(Vec<u8>, usize)>,
    /// Frames of messages that have been submitted and not sent.
    frames: usize,
    /// When each of them has to be out, and how many were not.
    due: VecDeque<u64>,
    late: u64,
    buffer: usize,
    link: u64,
}

impl Sender {
    fn message(&mut self, bench: &mut Bench, pace: Pace) {
        let rng = &mut bench.rng;
        let len = message_len(rng, pace);
        let message = rng.bytes(len);
        let to = [rng.next() as u32, rng.next() as u32 & 0xffff, len as u32];
        let room = len.div_ceil(PAYLOAD) * 16;
        if self.buffer + room > WORDS {
            self.buffer = 0;
        }
        bench.offer("tx_app", to.map(|value| vec![value]).into());
        bench.expect("tx_submit", to.map(|value| vec![value]).into());
        let beats = beats_in(&mut bench.rng, &message);
        beats.into_iter().for_each(|beat| bench.offer("tx_words", vec![beat]));
        self.offered.push_back((message, self.buffer));
        self.buffer += room;
    }

    fn follow(&mut self, bench: &mut Bench, pace: Pace, moved: &Moved) {
        if moved.on("tx_submit").is_some() {
            let Some((message, buffer)) = self.offered.pop_front() else { return };
            for (packet, payload) in message.chunks(PAYLOAD).enumerate() {
                self.link = self.link.max(bench.now() * CYCLE);
                let from = if pace == Pace::Beats { bench.now() } else { self.link / CYCLE };
                let request = [buffer, packet, message.len()].map(|value| vec![value as u32]);
                bench.offer_from("tx_packet", request.into(), from);
                let header = header_len(&mut bench.rng, pace);
                let bytes = bench.rng.bytes(header);
                let fields = vec![words(&bytes), vec![header as u32], vec![1]];
                // The egress pipeline takes longer than that.
                bench.offer_from("tx_header", fields, from + FIRST_WORD);
                let frame = [bytes.as_slice(), payload].concat();
                let beats = beats_out(&frame);
                self.due.push_back(from + FIRST_WORD + beats.len() as u64);
                beats.into_iter().for_each(|beat| bench.expect("tx_frame", vec![beat]));
                self.link += frame.len() as u64 * BYTE;
                self.frames += 1;
            }
        }
        let beat = moved.on("tx_frame").map_or(0, |fields| fields[0][16]);
        // The bit behind the count of bytes: the frame's last beat.
        if beat & 0x80 != 0 {
            self.frames -= 1;
            self.late += u64::from(self.due.pop_front().is_some_and(|due| bench.now() > due));
        }
    }
}

fn drive(bench: &mut Bench, case: usize) -> Result<(), Failure> {
    const PACES: [Pace; 4] =
        [Pace::Beats, Pace::Link(&[65]), Pace::Link(&[1088]), Pace::Link(&[65, 1088])];
    let pace = PACES[case];
    let (mut arriving, mut leaving) = (80, 80);
    let (frames, buffer) = (VecDeque::new(), 0);
    let mut receiver = Receiver { frames, taken: 0, parsed: 0, looked_up: 0, buffer, link: 0 };
    let mut sender = Sender::default();
    while bench.busy() || arriving + leaving > 0 {
        if arriving > 0 && receiver.frames.len() < 40 {
            arriving -= 1;
            receiver.arrives(bench, pace);
        }
        if leaving > 0 && sender.offered.len() < 4 && sender.frames < 16 {
            leaving -= 1;
            sender.message(bench, pace);
        }
        let buffer = sender.offered.front().map_or(0, |(_, buffer)| *buffer);
        bench.set("tx_submit_buf_ptr_i", &[buffer as u32]);
        let moved = bench.cycle()?;
        receiver.follow(bench, &moved);
        sender.follow(bench, pace, &moved);
    }
    bench.finish()?;
    bench.never("beats refused", bench.refused("rx_frame"))?;
    if pace == Pace::Beats {
        return bench.never("cycles without a beat", bench.gaps("tx_frame"));
    }
    bench.never("packets that wait", bench.refused("rx_packet"))?;
    bench.never("frames that are late", sender.late)
}

const PATH: &str = "data_path/data_path";

pub(crate) const BLOCK: Block = Block {
    name: "data_path",
    files: &[
        "stream_pkg/stream_pkg",
        "stream_fifo/stream_fifo",
        "header_align/payload_realign",
        "header_align/header_align",
        "header_merge/header_merge",
        "message_ram/message_ram",
        "burst_writer/burst_writer",
        "burst_reader/burst_reader",
        "rx_writer/rx_writer",
        "rx_reader/rx_reader",
        "tx_writer/tx_writer",
        "tx_reader/tx_reader",
        PATH,
    ],
    cases: &[PARAMETERS; 4],
    sources: &[
        Channel { name: "rx_frame", ready: true, fields: &[("rx_frame_beat", BEAT)] },
        Channel {
            name: "rx_parsed",
            ready: false,
            fields: &[("rx_parsed_bytes", 8), ("rx_parsed_drop", 1)],
        },
        Channel {
            name: "rx_packet",
            ready: true,
            fields: &[
                ("rx_packet_keep", 1),
                ("rx_packet_whole", 1),
                ("rx_packet_buf_ptr", 16),
                ("rx_packet_offset", 8),
                ("rx_packet_msg_len", 16),
                ("rx_packet_src_ip", 32),
                ("rx_packet_src_context", 16),
            ],
        },
        Channel {
            name: "tx_app",
            ready: true,
            fields: &[("tx_app_dst_ip", 32), ("tx_app_dst_context", 16), ("tx_app_msg_len", 16)],
        },
        Channel { name: "tx_words", ready: true, fields: &[("tx_words_beat", BEAT)] },
        Channel {
            name: "tx_packet",
            ready: true,
            fields: &[
                ("tx_packet_buf_ptr", 16),
                ("tx_packet_offset", 8),
                ("tx_packet_msg_len", 16),
            ],
        },
        Channel {
            name: "tx_header",
            ready: true,
            fields: &[("tx_header", HEADER), ("tx_header_bytes", 8), ("tx_header_payload", 1)],
        },
    ],
    sinks: &[
        Channel {
            name: "rx_window",
            ready: false,
            fields: &[("rx_window", HEADER), ("rx_window_bytes", 8)],
        },
        Channel { name: "rx_length", ready: false, fields: &[("rx_length", 16)] },
        Channel { name: "rx_dropped", ready: false, fields: &[("rx_dropped_buf_ptr", 16)] },
        Channel { name: "rx_wrong_length", ready: false, fields: &[] },
        Channel {
            name: "rx_app",
            ready: true,
            fields: &[
                ("rx_app_beat", BEAT),
                ("rx_app_src_ip", 32),
                ("rx_app_src_context", 16),
                ("rx_app_msg_len", 16),
            ],
        },
        Channel { name: "rx_done", ready: false, fields: &[("rx_done_buf_ptr", 16)] },
        Channel {
            name: "tx_submit",
            ready: true,
            fields: &[
                ("tx_submit_dst_ip", 32),
                ("tx_submit_dst_context", 16),
                ("tx_submit_msg_len", 16),
            ],
        },
        Channel { name: "tx_wrong_length", ready: false, fields: &[] },
        Channel { name: "tx_frame", ready: true, fields: &[("tx_frame_beat", BEAT)] },
    ],
    inputs: &[("tx_submit_buf_ptr", 16)],
    outputs: &[],
    run: drive,
    mutants: &[
        // The readers do not know what is pending.
        Mutant::new(PATH, ".pending_i(rx_pending)", ".pending_i('0)"),
        Mutant::new(PATH, ".pending_i(tx_pending)", ".pending_i('0)"),
        // They keep behind the other way's writer.
        Mutant::new(PATH, ".pending_addr_i(rx_write_addr)", ".pending_addr_i(tx_write_addr)"),
        // One RAM is read at the other's address.
        Mutant::new(PATH, ".read_addr_i(tx_read_addr)", ".read_addr_i(rx_read_addr)"),
        // The queue in front of the pipeline is too short for its time.
        Mutant::new(PATH, ".Beats(Beats)", ".Beats(2)"),
    ],
};

const PARAMETERS: &[(&str, u64)] =
    &[("HeaderBytes", LONGEST as u64), ("Words", WORDS as u64), ("Messages", 16), ("Beats", 64)];

#[test]
fn data_path() {
    BLOCK.check();
}
